//! A node's own flows: all that it sends to one other node in one class (§3.3.2).

use std::ops::Range;

use crate::messages::Work;

use super::places::Places;
use super::{Bank, NONE, Now};

/// A flow at its source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) destination: u16,
    pub(crate) class: u8,
    /// Whether the flow is in the bank's list of those that drain.
    drains: bool,
    /// Where the owner of the bank keeps what the flow carries.
    pub(crate) tag: u32,
    /// Cells not yet in a queue.
    pub(crate) unsent: u64,
    /// Slot in which the flow went from no backlog to some: its age counts from here (§3.3.3).
    pub(super) started: u64,
    /// Slot from which the age rule no longer holds it back.
    pub(super) mature: u64,
    /// Subflows that are in a ready queue, in a queue or await feedback.
    pub(super) outstanding: u32,
    /// Epoch by which every cell reported on so far has left its remote queue.
    pub(super) drained: u32,
}

impl Outgoing {
    const UNUSED: Outgoing = Outgoing {
        destination: NONE,
        class: 0,
        drains: false,
        tag: u32::MAX,
        unsent: 0,
        started: 0,
        mature: 0,
        outstanding: 0,
        drained: 0,
    };
}

/// The flows of all nodes of a bank. A flow has a *slot* among those of its node, and a *place*
/// among those of the bank.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    first: u32,
    pub(super) places: Places,
    /// By place; a place stays taken until all that was sent has left the remote queues.
    all: Vec<Outgoing>,
    /// Which slots of a node have cells not yet in a queue: `[node * words + slot / 64]`.
    active: Vec<u64>,
    words: usize,
    /// Free slots of each node.
    free: Vec<Vec<u16>>,
}

impl Flows {
    pub(super) fn new(nodes: Range<u32>) -> Self {
        let places = Places::new(nodes.clone());
        let (first, count) = (nodes.start, nodes.end as usize);
        let free = (0..nodes.end).map(|node| match node < first {
            true => Vec::new(),
            false => free_slots(0, places.count(node)),
        });
        let free = free.collect();
        Self {
            all: vec![Outgoing::UNUSED; places.row()],
            first,
            active: vec![0; count],
            words: 1,
            free,
            places,
        }
    }

    /// Place of the flow in a slot of a node.
    #[inline]
    pub(super) fn place(&self, node: u32, slot: usize) -> usize {
        self.places.start(node) + slot
    }

    #[inline]
    pub(super) fn get(&self, place: usize) -> &Outgoing {
        &self.all[place]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: usize) -> &mut Outgoing {
        &mut self.all[place]
    }

    /// The flows of a node by slot, unused ones too.
    #[inline]
    pub(super) fn of(&self, node: u32) -> &[Outgoing] {
        &self.all[self.places.start(node)..self.places.start(node + 1)]
    }

    /// How many flows a node has.
    pub(super) fn count(&self, node: u32) -> usize {
        self.places.count(node) - self.free[node as usize].len()
    }

    /// Words of the bitmaps of [`Flows::active`].
    #[inline]
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// Which slots `64 * word` and up of a node have a backlog: one bit each.
    #[inline]
    pub(super) fn active(&self, node: u32, word: usize) -> u64 {
        self.active[node as usize * self.words + word]
    }

    fn activate(&mut self, node: u32, slot: usize) {
        self.active[node as usize * self.words + slot / 64] |= 1 << (slot % 64);
    }

    /// Notes that a flow has no backlog left; says whether that is so for its node.
    fn deactivate(&mut self, node: u32, slot: usize) -> bool {
        let words = &mut self.active[node as usize * self.words..][..self.words];
        words[slot / 64] &= !(1 << (slot % 64));
        words.iter().all(|&word| word == 0)
    }

    /// Counts epochs from one that is so many later.
    pub(super) fn forget_epochs(&mut self, epochs: u32) {
        for flow in &mut self.all {
            flow.drained = flow.drained.saturating_sub(epochs);
        }
    }

    /// Doubles the places of every node that has none left. Gives the division before.
    fn widen(&mut self) -> Places {
        let wider = self.places.widened(|node| self.free[node as usize].is_empty());
        self.all = self.places.spread(&self.all, &wider, Outgoing::UNUSED);
        let words = wider.most().div_ceil(64);
        let mut active = vec![0; self.free.len() * words];
        for (old, new) in self.active.chunks(self.words).zip(active.chunks_mut(words)) {
            new[..self.words].copy_from_slice(old);
        }
        (self.active, self.words) = (active, words);
        for (node, free) in (0..).zip(&mut self.free).skip(self.first as usize) {
            if free.is_empty() {
                *free = free_slots(self.places.count(node), wider.count(node));
            }
        }
        std::mem::replace(&mut self.places, wider)
    }
}

/// The slots `from..to`, the first to be taken last.
fn free_slots(from: usize, to: usize) -> Vec<u16> {
    (from as u16..to as u16).rev().collect()
}

impl Bank {
    #[inline]
    pub(super) fn flow_index(&self, node: u32, destination: u32, class: u32) -> usize {
        (self.own(node) * self.nodes as usize + destination as usize) * self.classes as usize
            + class as usize
    }

    /// Adds cells to a flow, starting it if need be.
    pub(crate) fn offer(&mut self, work: Work, now: Now) {
        let Work { source, destination, class, cells, tag } = work;
        if cells == 0 {
            return;
        }
        let slot = self.flow_slot((source, destination, class), tag, now);
        let place = self.flows.place(source, slot);
        let flow = self.flows.get_mut(place);
        let was_dry = flow.unsent == 0;
        flow.unsent += cells;
        if was_dry {
            flow.started = now.slot;
            flow.mature = now.slot + self.age_slots;
            self.flows.activate(source, slot);
            self.backlog.set(source as usize);
        }
    }

    /// The epoch by which what a flow sent, as far as reported, has left its remote queues.
    pub(crate) fn drained(&self, node: u32, destination: u32, class: u32) -> u32 {
        match self.flow_of[self.flow_index(node, destination, class)] {
            NONE => 0,
            slot => self.flows.of(node)[usize::from(slot)].drained,
        }
    }

    /// The slot of a flow, taken if it has none.
    fn flow_slot(
        &mut self,
        (node, destination, class): (u32, u32, u32),
        tag: u32,
        now: Now,
    ) -> usize {
        let index = self.flow_index(node, destination, class);
        let known = self.flow_of[index];
        if known != NONE {
            return usize::from(known);
        }
        if self.flows.free[node as usize].is_empty() {
            let before = self.flows.widen();
            self.subflows.widen(&before, &self.flows.places);
        }
        let slot = self.flows.free[node as usize].pop().expect("places were just added");
        let place = self.flows.place(node, usize::from(slot));
        *self.flows.get_mut(place) = Outgoing {
            destination: destination as u16,
            class: class as u8,
            tag,
            ..Outgoing::UNUSED
        };
        self.flow_of[index] = slot;
        self.outcast_peak = self.outcast_peak.max(self.flows.count(node) as u16);
        self.incast[destination as usize] += 1;
        self.incast_changes.push((now.slot, destination as u16, 1));
        usize::from(slot)
    }

    /// Moves the changes of the numbers of flows to each node, since this was last called, to `all`: slot,
    /// node, up or down.
    pub(crate) fn take_incast_changes(&mut self, all: &mut Vec<(u64, u16, i8)>) {
        all.append(&mut self.incast_changes);
    }

    /// Nothing of a flow's backlog is left.
    pub(super) fn run_dry(&mut self, node: u32, slot: usize) {
        if self.flows.deactivate(node, slot) {
            self.backlog.clear(node as usize);
        }
        let place = self.flows.place(node, slot);
        let flow = self.flows.get_mut(place);
        if !std::mem::replace(&mut flow.drains, true) {
            self.draining.push((node as u16, slot as u16));
        }
    }

    /// Forgets the backlog of a flow.
    pub(super) fn abandon_slot(&mut self, node: u32, slot: usize) {
        let place = self.flows.place(node, slot);
        if std::mem::take(&mut self.flows.get_mut(place).unsent) > 0 {
            self.run_dry(node, slot);
        }
    }

    /// Frees the flows whose cells have all left the remote queues; call once an epoch. Tells
    /// `freed` the tag of each. The slots of a node become free in the order in which their flows ran dry,
    /// whatever other nodes do.
    pub(crate) fn settle(&mut self, now: Now, mut freed: impl FnMut(u32)) {
        let mut draining = std::mem::take(&mut self.draining);
        draining.retain(|&(node, slot)| {
            let (node, slot) = (u32::from(node), usize::from(slot));
            let place = self.flows.place(node, slot);
            let flow = self.flows.get_mut(place);
            // A cell that could follow in epoch `drained` would find the last one gone on arrival.
            let gone = flow.drained + 1 + self.delay_slots.div_ceil(self.schedule.slots());
            if flow.unsent == 0 && (flow.outstanding > 0 || gone >= now.epoch) {
                return true;
            }
            flow.drains = false;
            if flow.unsent == 0 {
                freed(flow.tag);
                self.free_flow(node, slot, now);
            }
            false
        });
        self.draining = draining;
    }

    fn free_flow(&mut self, node: u32, slot: usize, now: Now) {
        let place = self.flows.place(node, slot);
        let flow = std::mem::replace(self.flows.get_mut(place), Outgoing::UNUSED);
        self.flows.free[node as usize].push(slot as u16);
        let index = self.flow_index(node, u32::from(flow.destination), u32::from(flow.class));
        self.flow_of[index] = NONE;
        self.incast[usize::from(flow.destination)] -= 1;
        self.incast_changes.push((now.slot, flow.destination, -1));
    }
}
