//! Which flows of cells may change next, so that nothing is missing in between.
//!
//! Models: Aquila §4.1 (M703, M728, I71): a route solution is written in sequenced batches. **Our choice**: batches are
//! worked out from the flows as they are and as they are to be, and from nothing else; so whatever has changed in the
//! meantime, and whoever works out the next batch, it begins from what there is.
//!
//! The operations of a batch take effect in any order. A flow changes only
//!
//! - if, wherever a cell goes by its new ports, it finds a way on there before and after this batch;
//! - if cells that still come by others' old flows find a way on by it, too.
//!
//! If the second does not hold yet, it gets its new ports beside its old ones. Turn rules and routing channels keep all
//! these mixtures free of circles: a cell that finds a way on at each TiN arrives.

use std::collections::BTreeSet;

use aquila::tables::condition::State;
use aquila::tables::flows::{Flow, Flows, InputClass};
use aquila::tables::{Condition, components, next_rvc};
use aquila::topology::PortKind;

use crate::apps::Clique;

/// A flow's place: TiN, class, channel, component.
type Place = (u16, InputClass, u8, u16);

/// Rows that change: TiN, class and channel.
pub type Rows = BTreeSet<(u16, usize, u8)>;

/// What the next batch makes of flows, beside the rows that it changes.
#[derive(Debug)]
pub struct Wave {
    /// As they are after it.
    pub flows: Flows,
    /// What changes.
    pub rows: Rows,
    /// Flows that are changed although a condition does not hold, as there was no other way on.
    pub forced: u64,
}

struct Waves<'a> {
    clique: &'a Clique,
    condition: &'a Condition,
    /// By TiN: ports that lead to what is not dead.
    live: &'a [u64],
    before: &'a Flows,
    target: &'a Flows,
    after: Flows,
}

/// By TiN: ports whose link and far end are not dead.
#[must_use]
pub fn live(clique: &Clique, condition: &Condition) -> Vec<u64> {
    let topology = &clique.topology;
    let shape = topology.shape();
    let lives = |tin: u16, port: u8| {
        let link = topology.link(tin, port).map(|link| condition.link(link));
        let far = topology.far(tin, port).map(|far| condition.tin(far.tin));
        matches!((link, far), (Some(link), Some(far)) if link != State::Dead && far != State::Dead)
    };
    let mask = |tin| {
        let ports = (0..shape.external_ports()).filter(|&port| lives(tin, port));
        ports.fold(0, |mask, port| mask | 1 << port)
    };
    (0..shape.tins()).map(mask).collect()
}

/// The next batch on the way from flows to others, at TiNs that differ.
#[must_use]
pub fn next(
    clique: &Clique,
    condition: &Condition,
    live: &[u64],
    (before, target): (&Flows, &Flows),
    tins: &BTreeSet<u16>,
) -> Wave {
    let mut waves = Waves { clique, condition, live, before, target, after: before.clone() };
    let mut rows = Rows::new();
    let mut left: Vec<Place> = Vec::new();
    let all = components(clique.topology.shape());
    for &tin in tins {
        for class in InputClass::ALL {
            for rvc in class.channels() {
                for place in (0..all).map(|component| (tin, class, rvc, component)) {
                    if waves.get(before, place) == waves.get(target, place) {
                        continue;
                    }
                    if waves.change(place) {
                        rows.insert((tin, class.index(), rvc));
                    } else {
                        left.push(place);
                    }
                }
            }
        }
    }
    let mut forced = 0;
    if rows.is_empty() {
        forced = left.len() as u64;
        for place in left {
            let (tin, class, rvc, component) = place;
            waves.after.set(tin, class, rvc, component, waves.get(target, place));
            rows.insert((tin, class.index(), rvc));
        }
    }
    Wave { flows: waves.after, rows, forced }
}

impl Waves<'_> {
    fn get(&self, flows: &Flows, (tin, class, rvc, component): Place) -> Flow {
        flows.get(tin, class, rvc, component)
    }

    /// Changes a flow as far as it may; whether it may at all.
    fn change(&mut self, place: Place) -> bool {
        let (tin, class, rvc, component) = place;
        let (now, target) = (self.get(self.before, place), self.get(self.target, place));
        let new = target.all() & !now.all() & self.live[usize::from(tin)];
        if !ports(new).all(|port| self.leads_on(place, port)) {
            return false;
        }
        let minimal = now.minimal | target.minimal;
        let both = Flow { minimal, others: (now.others | target.others) & !minimal };
        let next = if self.is_left_by_nobody(place, target) { target } else { both };
        if next == now {
            return false;
        }
        self.after.set(tin, class, rvc, component, next);
        true
    }

    /// Whether a cell that goes by this port finds a way on behind it, before and after this batch; or none is there to
    /// be found.
    fn leads_on(&self, (tin, class, rvc, component): Place, port: u8) -> bool {
        let topology = &self.clique.topology;
        let shape = topology.shape();
        let Some(far) = topology.far(tin, port) else { return false };
        let Some(next) = self.clique.class(far.tin, far.port) else { return false };
        let rvc = next_rvc(kind(class), topology.kind(port), rvc);
        if !next.channels().contains(&rvc) {
            return true;
        }
        let (pod, own) = shape.split(far.tin);
        let usable = self.live[usize::from(far.tin)] & !self.clique.back(far.tin, far.port);
        let is_there = |component| {
            let place = (far.tin, next, rvc, component);
            let has = |flows| self.get(flows, place).all() & usable != 0;
            has(self.before) && has(&self.after) || !has(self.target)
        };
        if component >= shape.pods {
            return component - shape.pods == own || is_there(component);
        }
        if component != pod {
            return is_there(component);
        }
        let lives = |&to: &u16| self.condition.tin(shape.tin(pod, to)) != State::Dead;
        let others = (0..shape.tins_per_pod).filter(|&to| to != own).filter(lives);
        others.map(|to| shape.pods + to).all(is_there)
    }

    /// Whether everybody who sends cells here, before or after this batch, finds a way on by the new flow, as far as
    /// there was one.
    fn is_left_by_nobody(&self, place: Place, flow: Flow) -> bool {
        let (tin, class, rvc, component) = place;
        let topology = &self.clique.topology;
        let shape = topology.shape();
        let live = self.live[usize::from(tin)];
        let now = self.get(self.before, place).all() & live;
        if now == 0 || class == InputClass::Terminal {
            return true;
        }
        for port in ports(live) {
            let usable = live & !self.clique.back(tin, port);
            let is_none_the_worse = flow.all() & usable != 0 || now & usable == 0;
            if is_none_the_worse || self.clique.class(tin, port) != Some(class) {
                continue;
            }
            let Some(far) = topology.far(tin, port) else { continue };
            let (own, theirs) = (shape.split(tin).0, shape.split(far.tin).0);
            let component = if component >= shape.pods && own != theirs { own } else { component };
            for from in InputClass::ALL {
                for channel in from.channels() {
                    if next_rvc(kind(from), topology.kind(far.port), channel) != rvc {
                        continue;
                    }
                    let place = (far.tin, from, channel, component);
                    let sends =
                        self.get(self.before, place).all() | self.get(&self.after, place).all();
                    if sends >> far.port & 1 != 0 {
                        return false;
                    }
                }
            }
        }
        true
    }
}

/// From what kind of port cells of a class come.
fn kind(class: InputClass) -> PortKind {
    match class {
        InputClass::Terminal => PortKind::Terminal,
        InputClass::Global => PortKind::Global,
        InputClass::Local(_) => PortKind::Local,
    }
}

/// The ports of a mask, in order.
fn ports(mut mask: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let port = (mask != 0).then(|| mask.trailing_zeros() as u8)?;
        mask &= mask - 1;
        Some(port)
    })
}

#[cfg(test)]
#[path = "waves_tests.rs"]
mod tests;
