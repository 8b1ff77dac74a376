//! How fast the cell switches run: the benchmarks of `rackloom bench aquila`.

use std::time::{Duration, Instant};

use aquila::config::{Ip, Rma};
use aquila::ip::open_loop::Packet;
use aquila::raw::{Pattern, Traffic};
use aquila::rma::{Kind, open_loop as rma};
use aquila::switch::settings::Settings;
use aquila::topology::{Fibres, Shape};
use kernel::{Bytes, Rate, Span, Time};

use super::clique::{BULK, Clique, VALUE, us};
use super::memory::{self, READ};
use super::throughput::{DATA, TRAIN};

/// What is carried.
#[derive(Clone, Copy, PartialEq, Debug)]
enum What {
    /// Cells to any TiN, at a share of 100 Gbps a TiN.
    Uniform(f64),
    /// Cells from each pod to the next, at 100 Gbps a TiN.
    NextPod,
    /// Packets of all TiNs but one to that one.
    Incast,
    /// All hosts read the memory of others, at 70 % of what a TiN takes.
    Reads,
}

/// A benchmark.
#[derive(Clone, Debug)]
pub struct Speed {
    /// `aquila-full-uniform-0.7`, …
    pub name: String,
    shape: Shape,
    what: What,
    /// Simulated time.
    length: Span,
}

/// What it got done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// Cells that crossed a switch.
    pub hops: u64,
    /// Cells that were delivered.
    pub cells: u64,
    /// Without the making of links and tables.
    pub time: Duration,
}

impl Speed {
    /// All of them: each some millions of hops.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let shapes =
            [(Shape::MINI, "mini", 200), (Shape::HALF, "half", 40), (Shape::FULL, "full", 20)];
        let whats = [
            (What::Uniform(0.3), "uniform-0.3", 3),
            (What::Uniform(0.7), "uniform-0.7", 1),
            (What::Uniform(1.0), "uniform-1", 1),
            (What::NextPod, "worst", 1),
            (What::Incast, "incast", 1),
            (What::Reads, "reads", 1),
        ];
        let one = |(shape, name, micros): (Shape, &str, u64)| {
            whats.map(|(what, word, times)| Self {
                name: format!("aquila-{name}-{word}"),
                shape,
                what,
                length: Span::from_us(micros * times),
            })
        };
        shapes.into_iter().flat_map(one).collect()
    }

    /// Runs it.
    #[must_use]
    pub fn run(&self) -> Work {
        let clique = Clique::new(&self.shape, Fibres::Grid);
        match self.what {
            What::Uniform(share) => self.cells(&clique, Pattern::Uniform, share),
            What::NextPod => self.cells(&clique, Pattern::NextPod, 1.0),
            What::Incast => self.incast(&clique),
            What::Reads => self.reads(&clique),
        }
    }

    fn cells(&self, clique: &Clique, pattern: Pattern, share: f64) -> Work {
        let end = Time::ZERO + self.length;
        let rate = Rate::from_bps((share * 100e9) as u64);
        let traffic = Traffic {
            pattern,
            cells: TRAIN,
            ethernet: false,
            rate,
            class: DATA,
            until: end,
            from: Time::ZERO,
        };
        let mut cells = clique.raw(&Settings::default(), traffic, 1);
        let begun = Instant::now();
        cells.run(end);
        let counts = cells.counts();
        Work { hops: counts.hops, cells: counts.delivered, time: begun.elapsed() }
    }

    /// All that the receiver's line takes in that time, at once.
    fn incast(&self, clique: &Clique) -> Work {
        let mut cells = clique.ip(&Settings::default(), &Ip::default(), 1);
        let line = Rate::from_gbps(100).send_time(Bytes::new(VALUE.into()));
        // A packet of data is 29 cells of some four hops, and one port takes a few gigabits of the Clique's terabits:
        // so more time is simulated.
        let senders = self.shape.tins() - 1;
        let each = (self.length * 20).as_ps() / line.as_ps() / u64::from(senders) + 1;
        for from in 1..=senders {
            let ends = (clique.address(from), clique.address(0));
            cells.act(from, Time::ZERO, |open_loop, wishes| {
                for at in 0..each {
                    let at = us(1) + line * (at * u64::from(senders));
                    open_loop.send(Packet::new(ends, VALUE, BULK, at), wishes);
                }
            });
        }
        let begun = Instant::now();
        cells.run(Time::NEVER);
        let counts = cells.counts();
        Work { hops: counts.hops, cells: counts.delivered, time: begun.elapsed() }
    }

    fn reads(&self, clique: &Clique) -> Work {
        let shape = clique.shape();
        let (settings, rma) = (Settings::default(), Rma::default());
        let peers: Vec<_> = (0..shape.tins()).flat_map(|tin| [(tin, 0), (tin, 1)]).collect();
        let until = Time::ZERO + self.length;
        let rate = Rate::from_gbps(35);
        let reads = rma::Traffic { kind: Kind::Read, length: READ, rate, half: None, until };
        let ends = || {
            let mut memory = memory::memory(clique, &rma, settings.switch.hops, 1);
            memory.set_traffic(reads, peers.clone());
            memory
        };
        let mut cells = clique.carry_in_sets(&settings, ends, 1);
        for tin in 0..shape.tins() {
            cells.of(tin).act(tin, Time::ZERO, |memory, wishes| memory.begin(tin, wishes));
        }
        let begun = Instant::now();
        cells.run(Time::NEVER);
        let counts = cells.counts();
        Work { hops: counts.hops, cells: counts.delivered, time: begun.elapsed() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_benchmark_moves_cells() {
        for what in [What::Uniform(0.3), What::NextPod, What::Incast, What::Reads] {
            let length = Span::from_us(4);
            let speed = Speed { name: String::new(), shape: Shape::TINY, what, length };
            let work = speed.run();
            assert!(work.cells > 100 && work.hops > work.cells, "{what:?}: {work:?}");
        }
    }
}
