//! Cells that pass while the controller writes: what a failure or planned work costs (X21, X22).
//!
//! Bare cells, uniform; tables change entry by entry, as the controller of a plan has written them. What hosts send makes no
//! difference to the control plane, so of time in which nothing happens and nothing is written only [`KEPT`] is carried.

use std::ops::ControlFlow;
use std::sync::Arc;

use aquila::link::classes::Mode;
use aquila::raw::{Pattern, Raw, Traffic};
use aquila::switch::Counts;
use aquila::switch::blocks::{Blocks, best};
use aquila::switch::settings::Settings;
use aquila::tables::Condition;
use aquila::tables::compute::compute;
use aquila::tables::journal::{Journal, Write};
use aquila::{Hardware, Plan};
use kernel::{Rate, Span, Time};

use super::journal;

/// So much is carried of time in which nothing happens and nothing is written (our choice: the queues of an output fill and
/// empty in less).
pub const KEPT: Span = Span::from_us(5);
/// How often losses are looked at (our choice).
const STEP: Span = Span::from_ns(50);
/// How long cells are sent behind the last write (our choice).
const BEHIND: Span = Span::from_us(4);
/// Cells of a packet: 4 KB.
const TRAIN: u32 = 29;

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// By each TiN.
    pub rate: Rate,
    /// The class of its cells.
    pub class: u8,
    /// How they are routed.
    pub mode: Mode,
    /// Of all chance.
    pub seed: u64,
}

/// What became of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outcome {
    /// From what happened to the last register that was written for it, the longest; `None`: nothing had to be, or it was
    /// not finished.
    pub repair: Option<Span>,
    /// From the first thing that happened to the last cell that was lost.
    pub stall: Span,
    /// Cells that were injected.
    pub injected: u64,
    /// Cells that were lost, for whatever reason.
    pub lost: u64,
    /// Those of them later than 1 us behind the last register.
    pub after: u64,
    /// Cells that needed an escape channel.
    pub escapes: u64,
    /// Cells neither delivered nor lost at the end.
    pub stuck: u64,
    /// Batches that the routing engine wrote.
    pub batches: u64,
    /// Entries that were written to chips.
    pub entries: u64,
}

/// Instants as they are carried, and as they were.
struct Squeezed {
    instants: Vec<(Time, Time)>,
}

impl Squeezed {
    /// Cuts what is longer than [`KEPT`] between instants, in their order.
    fn new(mut real: Vec<Time>) -> Self {
        real.sort_unstable();
        real.dedup();
        let mut instants: Vec<(Time, Time)> = Vec::with_capacity(real.len());
        for time in real {
            let at = instants.last().map_or(time, |&(at, before)| at + (time - before).min(KEPT));
            instants.push((at, time));
        }
        Self { instants }
    }

    fn carried(&self, real: Time) -> Time {
        let at = self.instants.partition_point(|&(_, known)| known < real);
        self.instants[at].0
    }

    fn real(&self, carried: Time) -> Time {
        let at = self.instants.partition_point(|&(known, _)| known <= carried);
        let (known, real) = self.instants[at.saturating_sub(1)];
        real + (carried - known)
    }

    fn last(&self) -> Time {
        self.instants.last().map_or(Time::ZERO, |&(at, _)| at)
    }
}

/// Carries cells through what happens in a plan, from its first instant on; tells `pulse` how far it is. `None`: that has
/// ended it.
///
/// # Panics
/// If nothing happens in the plan.
pub fn carry(
    plan: &Plan,
    load: &Load,
    mut pulse: impl FnMut(f64) -> ControlFlow<()>,
) -> Option<Outcome> {
    let written = journal(plan, load.seed);
    let outages = plan.outages();
    let works = plan.works.iter().map(|(maintenance, _)| Time::ZERO + maintenance.at);
    let happens: Vec<Time> = outages.iter().map(|&(at, ..)| at).chain(works).collect();
    let first = *happens.iter().min().expect("something happens");
    let times = written.writes().iter().map(|write| write.at).chain(happens);
    let squeezed = Squeezed::new(times.collect());
    let writes = written.writes().iter();
    let writes = writes.map(|write| Write { at: squeezed.carried(write.at), ..*write });
    let end = squeezed.last() + BEHIND;
    let mut cells = send(plan, load, end);
    let carried = Arc::new(Journal::new(writes.collect()));
    cells.sets_mut().iter_mut().for_each(|set| set.follow(Arc::clone(&carried)));
    let mut events =
        outages.iter().map(|&(at, part, works)| (squeezed.carried(at), part, works)).peekable();
    let begin = squeezed.carried(first);
    let (mut now, mut known, mut last) = (begin, 0, begin);
    cells.run(now);
    loop {
        while let Some((at, part, works)) = events.next_if(|&(at, ..)| at <= now) {
            change(plan, &mut cells, (part, works), at);
        }
        if now >= end {
            break;
        }
        now += STEP;
        cells.run(now);
        let here = lost(&cells.counts());
        if here > known {
            (known, last) = (here, now);
        }
        if pulse((now - begin).as_seconds() / (end - begin).as_seconds()).is_break() {
            return None;
        }
    }
    cells.run(Time::NEVER);
    let counts = cells.counts();
    let took: Option<Vec<Span>> = written.repairs.iter().map(|repair| repair.took()).collect();
    let is_late = last > squeezed.last() + Span::from_us(1);
    Some(Outcome {
        repair: took.and_then(|took| took.into_iter().max()),
        stall: squeezed.real(last) - first,
        injected: counts.injected,
        lost: lost(&counts),
        after: if is_late { known } else { lost(&counts) - known },
        escapes: counts.escapes,
        stuck: counts.injected - counts.delivered - lost(&counts),
        batches: written.batches.len() as u64,
        entries: written.writes().len() as u64,
    })
}

fn lost(counts: &Counts) -> u64 {
    counts.lost_at_dead_links + counts.discarded
}

/// Switches of a plan's Clique, all of whose TiNs send until `end`.
fn send(plan: &Plan, load: &Load, end: Time) -> Blocks<Raw> {
    let shape = plan.topology.shape();
    let mut settings = Settings::from(plan);
    settings.classes[usize::from(load.class)].mode = load.mode;
    let traffic = Traffic {
        pattern: Pattern::Uniform,
        cells: TRAIN,
        ethernet: false,
        rate: load.rate,
        class: load.class,
        until: end,
        from: Time::ZERO,
    };
    let raw = || Raw::new(shape, traffic, settings.switch.hops, load.seed);
    let tables = compute(&plan.topology, &plan.turns, &Condition::healthy(&plan.topology));
    let (tables, chip) = (Arc::new(tables), Arc::new(settings.clone()));
    let blocks = best(shape.tins());
    let mut cells = Blocks::new(&plan.topology, &tables, &chip, blocks, load.seed, raw);
    for tin in 0..shape.tins() {
        cells.of(tin).act(tin, Time::ZERO, |raw, wishes| raw.begin(tin, wishes));
    }
    cells
}

/// A link goes down or comes back, or all links of a TiN.
fn change(plan: &Plan, cells: &mut Blocks<Raw>, (part, works): (Hardware, bool), at: Time) {
    let links: Vec<u32> = match part {
        Hardware::Link(link) => vec![link],
        Hardware::Tin(tin) => {
            let ports = 0..plan.topology.shape().external_ports();
            ports.filter_map(|port| plan.topology.link(tin, port)).collect()
        }
    };
    for link in links.into_iter().map(|link| plan.topology.links()[link as usize]) {
        for end in [link.low, link.high] {
            let of = cells.of(end.tin);
            if works {
                of.mend_link(end.tin, end.port, at)
            } else {
                of.break_link(end.tin, end.port, at)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn instants_are_carried_in_order_and_found_again() {
        let real = [6, 10, 900, 902, 5_000].map(us);
        let squeezed = Squeezed::new(real.to_vec());
        assert_eq!(real.map(|at| squeezed.carried(at)), [6, 10, 15, 17, 22].map(us));
        assert_eq!(squeezed.real(us(16)), us(901));
        assert_eq!(squeezed.real(us(23)), us(5_001));
    }
}
