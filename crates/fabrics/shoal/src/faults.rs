//! What breaks in the fabric, and when (§3.5).
//!
//! A node hears from every other node once an epoch. Only the pairs that a fault touches are looked at, so
//! that a healthy rack costs nothing: the receiver's end of a broken pair is dark in its slot. What is broken
//! is known here alone, and says what becomes of cells; nodes act on those that they miss, and on what others
//! tell them. A pair whose slot falls into no fault notices nothing of it.
//!
//! Faults are configuration: where a rack is cut, each shard keeps the state of all parts, and acts on what
//! happens to its own nodes. When flows are given up comes last in a slot.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use kernel::{Bitmap, Time};
use rack::{Component, Fault};

use crate::clos::{Direction, SwitchSchedules};

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
    Missed {
        /// Who was not heard.
        from: u16,
        /// Who listened.
        to: u16,
    },
    /// A node may have heard a peer for long enough to use the pair again.
    Trust {
        /// Who listened.
        node: u16,
        /// Who was heard.
        peer: u16,
    },
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
    /// Slots of the [`Event::GiveUp`] to come.
    giving_up: BTreeSet<u64>,
    /// Slot of the last change.
    pub(crate) changed: u64,
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
    /// Ordered pairs that worked before.
    pub(crate) broke: Vec<(u32, u32)>,
}

/// What is set in one and not in the other.
fn newly(now: &Bitmap, before: &Bitmap) -> Vec<u32> {
    now.iter_ones().filter(|&index| !before.get(index)).map(|index| index as u32).collect()
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
            giving_up: BTreeSet::new(),
            changed: 0,
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

    /// Has the flows without a path looked through in a slot. In no other than asked for: in which slots
    /// something is to be done must not depend on how a rack is cut.
    pub(crate) fn give_up_at(&mut self, slot: u64) {
        if self.giving_up.insert(slot) {
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
        if event == Event::GiveUp {
            self.giving_up.remove(&slot);
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

    /// Whether nothing gets to or from a node.
    pub(crate) fn is_isolated(&self, node: u32) -> bool {
        self.isolated.get(node as usize)
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

    /// A fault begins: breaks its pairs.
    pub(crate) fn begin(&mut self, index: u32, slot: u64) -> Change {
        self.active[index as usize] = true;
        self.changed = slot;
        let component = self.faults[index as usize].component;
        let (was_dead, was_isolated) = (self.dead.clone(), self.isolated.clone());
        let mut broke = self.touched(component);
        broke.retain(|&(from, to)| {
            let pair = self.pair(from, to);
            !self.broken.replace(pair, true)
        });
        self.recount_nodes();
        Change {
            died: newly(&self.dead, &was_dead),
            cut_off: newly(&self.isolated, &was_isolated),
            broke,
        }
    }

    /// A fault ends. Gives the ordered pairs that work again, and the nodes that are back.
    pub(crate) fn end(&mut self, index: u32, slot: u64) -> (Vec<(u32, u32)>, Vec<u32>) {
        self.active[index as usize] = false;
        self.changed = slot;
        let (was_broken, was_dead) = (self.broken.clone(), self.dead.clone());
        self.broken = Bitmap::new(self.nodes * self.nodes);
        for other in 0..self.faults.len() {
            if self.active[other] {
                for (from, to) in self.touched(self.faults[other].component) {
                    self.broken.set(self.pair(from, to));
                }
            }
        }
        self.recount_nodes();
        let nodes = self.nodes as u32;
        let mended = newly(&was_broken, &self.broken).into_iter();
        (mended.map(|pair| (pair / nodes, pair % nodes)).collect(), newly(&was_dead, &self.dead))
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
