//! What breaks in the fabric, and when nodes notice (§3.5).
//!
//! A node hears from every other node once an epoch. When a cell is missing it gives the sender up
//! and falls silent towards it, so that the sender notices in its turn: both directions of a pair go
//! down together. Only the pairs that a fault touches are looked at, so that a healthy rack costs
//! nothing. What is broken is known here alone; nodes act on the cells that they miss, and on what others
//! tell them. A pair whose slot falls into no fault notices nothing of it.
//!
//! All of it follows from the plan of faults and the schedule, whatever flows there are: cells with news are
//! sent in every slot, and bit errors do not touch them. So where a rack is cut into shards each of them works
//! it out for all nodes, in the same order, and acts on its own; when flows are given up is its own matter, and
//! comes last in a slot.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use kernel::{Bitmap, Slot, Time};
use rack::{Component, Fault};

use crate::clos::{Direction, SwitchSchedules};
use crate::schedule::Schedule;

/// Something that happens at the start of a slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Event {
    /// A fault of the scenario begins; its index.
    Begin(u32),
    /// It ends.
    End(u32),
    /// The slot of a pair in which the receiver may hear nothing.
    Silence {
        /// Who should be heard.
        from: u16,
        /// Who listens.
        to: u16,
    },
    /// A node that heard nothing knows it now.
    Noticed {
        /// Who was not heard.
        from: u16,
        /// Who listened.
        to: u16,
    },
    /// A repaired pair has heard each other long enough.
    Trusted(u16, u16),
    /// Time to give up flows to which no path is left.
    GiveUp,
    /// Time to see whether nodes have been gone, or back, for long.
    Review,
    /// Time to go over to a schedule of the nodes that are there.
    Reschedule,
}

/// The state of the fabric's parts and the events to come.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    switches: SwitchSchedules,
    faults: Vec<Fault>,
    active: Vec<bool>,
    /// `[from * nodes + to]`: nothing gets through.
    broken: Bitmap,
    /// Nodes that nothing gets to or from.
    isolated: Bitmap,
    /// Dead nodes.
    dead: Bitmap,
    /// By slot, then in order of insertion, [`Event::GiveUp`] apart.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    inserted: u64,
    nodes: usize,
    /// Slot of the next [`Event::GiveUp`]; `u64::MAX`: none is to come.
    giving_up: u64,
    /// Since which slot pairs, lower node first, work again that were broken.
    whole_since: BTreeMap<(u32, u32), u64>,
    /// Nodes that the schedule leaves out.
    removed: Bitmap,
}

/// The change that a fault brings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Change {
    /// Nodes that died.
    pub(crate) died: Vec<u32>,
    /// Nodes that were cut off, dead ones included.
    pub(crate) cut_off: Vec<u32>,
}

impl Faults {
    pub(crate) fn new(
        switches: SwitchSchedules,
        faults: &[Fault],
        slot_of: impl Fn(Time) -> u64,
    ) -> Self {
        let nodes = switches.clos().nodes() as usize;
        let mut all = Self {
            switches,
            faults: faults.to_vec(),
            active: vec![false; faults.len()],
            broken: Bitmap::new(nodes * nodes),
            isolated: Bitmap::new(nodes),
            dead: Bitmap::new(nodes),
            events: BinaryHeap::new(),
            inserted: 0,
            nodes,
            giving_up: u64::MAX,
            whole_since: BTreeMap::new(),
            removed: Bitmap::new(nodes),
        };
        for (index, fault) in faults.iter().enumerate() {
            all.at(slot_of(fault.at), Event::Begin(index as u32));
            if let Some(until) = fault.until {
                all.at(slot_of(until), Event::End(index as u32));
            }
        }
        all
    }

    pub(crate) fn at(&mut self, slot: u64, event: Event) {
        let last = event == Event::GiveUp;
        self.events.push(Reverse((slot, if last { u64::MAX } else { self.inserted }, event)));
        self.inserted += 1;
    }

    /// Has the flows without a path looked through in a slot, or before.
    pub(crate) fn give_up_at(&mut self, slot: u64) {
        if slot < self.giving_up {
            self.giving_up = slot;
            self.at(slot, Event::GiveUp);
        }
    }

    /// The slot of the next event.
    pub(crate) fn next_slot(&self) -> Option<u64> {
        self.events.peek().map(|Reverse((slot, ..))| *slot)
    }

    /// Takes the next event if it is due.
    pub(crate) fn pop_due(&mut self, slot: u64) -> Option<Event> {
        if self.next_slot()? > slot {
            return None;
        }
        let Reverse((slot, _, event)) = self.events.pop()?;
        if event == Event::GiveUp && slot >= self.giving_up {
            self.giving_up = u64::MAX;
        }
        Some(event)
    }

    fn pair(&self, from: u32, to: u32) -> usize {
        from as usize * self.nodes + to as usize
    }

    /// Whether what `from` sends does not reach `to`.
    pub(crate) fn is_broken(&self, from: u32, to: u32) -> bool {
        self.broken.get(self.pair(from, to))
    }

    pub(crate) fn is_dead(&self, node: u32) -> bool {
        self.dead.get(node as usize)
    }

    /// Whether the schedule leaves a node out, which everyone knows.
    pub(crate) fn is_removed(&self, node: u32) -> bool {
        self.removed.get(node as usize)
    }

    /// Whether nothing gets to or from a node, whoever knows.
    pub(crate) fn is_isolated(&self, node: u32) -> bool {
        self.isolated.get(node as usize)
    }

    /// Since which slot a pair works again, lower node first; 0: it never broke.
    pub(crate) fn whole_since(&self, pair: (u32, u32)) -> u64 {
        self.whole_since.get(&pair).copied().unwrap_or(0)
    }

    /// The nodes that are not cut off, if they are others than those of the schedule and at least
    /// two, and nothing is broken between them.
    pub(crate) fn members_to_be(&self) -> Option<Vec<bool>> {
        let present: Vec<_> = (0..self.nodes).map(|node| !self.isolated.get(node)).collect();
        let others = (0..self.nodes).any(|node| present[node] == self.removed.get(node));
        let pairs = self.broken.iter_ones().map(|pair| (pair / self.nodes, pair % self.nodes));
        let whole = pairs.into_iter().all(|(from, to)| !present[from] || !present[to]);
        let enough = present.iter().filter(|&&is| is).count() >= 2;
        (others && whole && enough).then_some(present)
    }

    /// Notes which nodes the schedule has.
    pub(crate) fn set_members(&mut self, present: &[bool]) {
        self.removed = Bitmap::new(self.nodes);
        for node in (0..self.nodes).filter(|&node| !present[node]) {
            self.removed.set(node);
        }
    }

    /// A fault begins: breaks its pairs and lets their receivers listen for what will be missing.
    pub(crate) fn begin(&mut self, index: u32, slot: u64, schedule: &Schedule) -> Change {
        self.active[index as usize] = true;
        let component = self.faults[index as usize].component;
        let (was_dead, was_isolated) = (self.dead.clone(), self.isolated.clone());
        for (from, to) in self.touched(component) {
            let pair = self.pair(from, to);
            if self.broken.get(pair) {
                continue;
            }
            self.broken.set(pair);
            if !schedule.contains(from) || !schedule.contains(to) {
                continue;
            }
            let silence = schedule.next_slot(from, to, Slot::new(slot)).get();
            self.at(silence, Event::Silence { from: from as u16, to: to as u16 });
        }
        self.recount_nodes();
        let newly = |now: &Bitmap, before: &Bitmap| {
            now.iter_ones().filter(|&node| !before.get(node)).map(|node| node as u32).collect()
        };
        Change { died: newly(&self.dead, &was_dead), cut_off: newly(&self.isolated, &was_isolated) }
    }

    /// A fault ends. Gives the pairs, lower node first, that work again in both directions.
    pub(crate) fn end(&mut self, index: u32, slot: u64) -> Vec<(u32, u32)> {
        self.active[index as usize] = false;
        let before = self.broken.clone();
        self.broken = Bitmap::new(self.nodes * self.nodes);
        for other in 0..self.faults.len() {
            if self.active[other] {
                for (from, to) in self.touched(self.faults[other].component) {
                    self.broken.set(self.pair(from, to));
                }
            }
        }
        self.recount_nodes();
        let nodes = self.nodes;
        let was_broken = |a: u32, b: u32| before.get(a as usize * nodes + b as usize);
        let mut mended = Vec::new();
        for a in 0..self.nodes as u32 {
            for b in a + 1..self.nodes as u32 {
                let works = !self.is_broken(a, b) && !self.is_broken(b, a);
                if works && (was_broken(a, b) || was_broken(b, a)) {
                    mended.push((a, b));
                }
            }
        }
        self.whole_since.extend(mended.iter().map(|&pair| (pair, slot)));
        mended
    }

    fn touched(&self, component: Component) -> Vec<(u32, u32)> {
        let pairs = self
            .switches
            .affected_pairs(component, Direction::Both)
            .expect("the plan checked that the rack has the component");
        pairs.iter().map(|(from, to)| (from.get(), to.get())).collect()
    }

    fn recount_nodes(&mut self) {
        self.dead = Bitmap::new(self.nodes);
        for (fault, _) in self.faults.iter().zip(&self.active).filter(|(_, active)| **active) {
            if let Component::Node(node) = fault.component {
                self.dead.set(node.index());
            }
        }
        self.isolated = Bitmap::new(self.nodes);
        let nodes = self.nodes as u32;
        for node in 0..nodes {
            let cut = |other| self.is_broken(node, other) || self.is_broken(other, node);
            if (0..nodes).all(|other| other == node || cut(other)) {
                self.isolated.set(node as usize);
            }
        }
    }
}
