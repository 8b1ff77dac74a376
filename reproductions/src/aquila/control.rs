//! The routing engine with its base and nothing else: what it writes is programmed at once. The benchmarks of
//! `rackloom bench aquila-control`, and the rows that `state` counts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aquila::pipeline::plan::Plan;
use aquila::topology::{Fibres, Shape, Topology};
use aquila::turns::TurnTable;
use aquila_control::apps::Clique;
use aquila_control::apps::routing::{Output, RoutingEngine};
use aquila_control::apps::rows::{Admin, BatchRow, SessionRow};
use aquila_control::nib::{Nib, Sizes, Table, Write};

/// Hosts of a TiN (§2).
pub(super) const HOSTS_PER_TIN: u8 = 2;

/// A Clique's routing engine and base.
pub(super) struct Alone {
    pub(super) clique: Arc<Clique>,
    pub(super) nib: Nib,
    engine: RoutingEngine,
}

/// What the engine did until nothing was left to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settled {
    /// Batches.
    pub batches: u64,
    /// Rows of all of them.
    pub rows: u64,
    /// The engine's time, without that of the base.
    pub time: Duration,
}

impl Alone {
    /// All TiNs are ready, and nothing is computed yet.
    pub(super) fn new(shape: &Shape) -> Self {
        let topology = Topology::new(shape, Fibres::Grid).expect("the profiles can be wired");
        let plan = Plan::new(shape, HOSTS_PER_TIN);
        let clique = Arc::new(Clique::new(topology, TurnTable::P1, plan));
        let engine = RoutingEngine::new(Arc::clone(&clique));
        let mut alone = Self { clique, nib: Nib::new(), engine };
        let ready = SessionRow { is_up: true, is_ready: true, is_over_pmos: false, boot: 1 };
        let row = |tin: u16| Write::set(Table::TinSession, &tin.to_be_bytes(), &ready.encode());
        let rows: Vec<_> = (0..shape.tins()).map(row).collect();
        alone.write(&rows);
        alone
    }

    fn write(&mut self, writes: &[Write]) {
        self.nib.write(writes).expect("no version is expected");
    }

    /// The operator wants something else of a link.
    fn set_link(&mut self, link: u32, admin: Admin) {
        self.write(&[Write::set(Table::Link, &link.to_be_bytes(), &[admin as u8])]);
    }

    /// Batches until nothing is left, of which all results are in at once.
    pub(super) fn settle(&mut self) -> Settled {
        let mut settled = Settled::default();
        loop {
            let changes = self.nib.since(self.engine.seen(), &RoutingEngine::TABLES);
            let mut out = Vec::new();
            let begun = Instant::now();
            self.engine.learn(&changes, &mut out);
            settled.time += begun.elapsed();
            let (number, writes) = match out.pop() {
                Some(Output::Batch { number, writes }) => (number, writes),
                // That something is drained ends it.
                Some(Output::Write(writes)) => {
                    self.write(&writes);
                    self.engine.written(&mut Vec::new());
                    return settled;
                }
                None => return settled,
            };
            settled.batches += 1;
            settled.rows += writes.len() as u64;
            self.nib.apply(number, &writes).expect("it is the next");
            let begun = Instant::now();
            self.engine.written(&mut out);
            settled.time += begun.elapsed();
            let done = BatchRow { number, is_done: true, failed: [0; 3] };
            self.write(&[Write::set(Table::Batch, &[], &done.encode())]);
        }
    }
}

/// What a benchmark does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    /// From an empty base to the last batch.
    Nothing,
    /// A link dies, inside a pod or between two.
    Link { is_global: bool },
    /// A TiN is drained.
    Drain,
}

/// A benchmark.
#[derive(Clone, Debug)]
pub struct Speed {
    /// `aquila-control-full-nothing`, …
    pub name: String,
    shape: Shape,
    what: What,
}

/// What it took.
#[derive(Clone, Debug)]
pub struct Work {
    /// One after another, each from a Clique in which nothing is left to do.
    pub settled: Vec<Settled>,
    /// What the base takes then.
    pub sizes: Sizes,
}

/// So many links die, or TiNs are drained, evenly over the Clique.
const TIMES: usize = 9;

impl Speed {
    /// All of them.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let shapes = [(Shape::MINI, "mini"), (Shape::HALF, "half"), (Shape::FULL, "full")];
        let whats = [
            (What::Nothing, "nothing"),
            (What::Link { is_global: false }, "link"),
            (What::Link { is_global: true }, "global-link"),
            (What::Drain, "drain"),
        ];
        let one = |(shape, clique): (Shape, &str)| {
            whats.map(|(what, word)| Self {
                name: format!("aquila-control-{clique}-{word}"),
                shape,
                what,
            })
        };
        shapes.into_iter().flat_map(one).collect()
    }

    /// Runs it.
    #[must_use]
    pub fn run(&self) -> Work {
        let mut alone = Alone::new(&self.shape);
        let first = alone.settle();
        let settled = match self.what {
            What::Nothing => vec![first],
            What::Link { is_global } => {
                let links = (0..).zip(alone.clique.topology.links());
                let links: Vec<u32> =
                    links.filter(|(_, link)| link.is_global == is_global).map(|l| l.0).collect();
                let some = (0..TIMES).map(|at| links[at * links.len() / TIMES]);
                some.map(|link| {
                    alone.set_link(link, Admin::Off);
                    let settled = alone.settle();
                    alone.set_link(link, Admin::InService);
                    alone.settle();
                    settled
                })
                .collect()
            }
            What::Drain => {
                let tins = usize::from(self.shape.tins());
                let some = (0..TIMES).map(|at| (at * tins / TIMES) as u16);
                let set = |alone: &mut Alone, tin: u16, admin: Admin| {
                    alone.write(&[Write::set(Table::Node, &tin.to_be_bytes(), &[admin as u8])]);
                    alone.settle()
                };
                some.map(|tin| {
                    let settled = set(&mut alone, tin, Admin::Drained);
                    set(&mut alone, tin, Admin::InService);
                    settled
                })
                .collect()
            }
        };
        Work { settled, sizes: alone.nib.sizes() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_benchmark_writes_batches_and_ends_where_it_began() {
        let mut sizes = None;
        for what in [
            What::Nothing,
            What::Link { is_global: false },
            What::Link { is_global: true },
            What::Drain,
        ] {
            let work = Speed { name: String::new(), shape: Shape::TINY, what }.run();
            assert!(work.settled.iter().all(|s| s.batches > 0 && s.rows > 0), "{what:?}: {work:?}");
            // Beside routes there are rows of links and TiNs then, of a byte.
            let raw = work.sizes.raw;
            assert!(raw - *sizes.get_or_insert(raw) <= 2 * TIMES as u64, "{what:?}: {work:?}");
        }
    }
}
