//! A node's own flows: all that it sends to one other node in one class (§3.3.2).

use crate::messages::Work;

use super::{Bank, NONE, Now};

/// A flow at its source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) destination: u16,
    pub(crate) class: u8,
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
    /// Whether the flow is in the bank's list of those that drain.
    drains: bool,
    /// Where the owner of the bank keeps what the flow carries.
    pub(crate) tag: u32,
}

impl Outgoing {
    const UNUSED: Outgoing = Outgoing {
        destination: NONE,
        class: 0,

        unsent: 0,
        started: 0,
        mature: 0,
        outstanding: 0,
        drained: 0,
        drains: false,
        tag: u32::MAX,
    };
}

impl Bank {
    #[inline]
    pub(super) fn flow_index(&self, node: u32, destination: u32, class: u32) -> usize {
        (node as usize * self.nodes as usize + destination as usize) * self.classes as usize
            + class as usize
    }

    /// Adds cells to a flow, starting it if need be.
    pub(crate) fn offer(&mut self, work: Work, now: Now) {
        let Work { source, destination, class, cells, tag } = work;
        if cells == 0 {
            return;
        }
        let slot = self.flow_slot(source, destination, class, tag);
        let own = &mut self.own[source as usize];
        let flow = &mut own.flows[slot];
        if flow.unsent == 0 {
            flow.started = now.slot;
            flow.mature = now.slot + self.age_slots;
            own.active.push(slot as u16);
            self.backlog.set(source as usize);
        }
        flow.unsent += cells;
    }

    /// The epoch by which what a flow sent, as far as reported, has left its remote queues.
    pub(crate) fn drained(&self, node: u32, destination: u32, class: u32) -> u32 {
        match self.flow_of[self.flow_index(node, destination, class)] {
            NONE => 0,
            slot => self.own[node as usize].flows[usize::from(slot)].drained,
        }
    }

    /// The slot of a flow, taken if it has none.
    fn flow_slot(&mut self, node: u32, destination: u32, class: u32, tag: u32) -> usize {
        let index = self.flow_index(node, destination, class);
        let known = self.flow_of[index];
        if known != NONE {
            return usize::from(known);
        }
        let own = &mut self.own[node as usize];
        let slot = match own.free.pop() {
            Some(slot) => usize::from(slot),
            None => {
                own.flows.push(Outgoing::UNUSED);
                own.flows.len() - 1
            }
        };
        let all = &self.own;
        self.subflows.make_room(node, slot, |node| all[node].flows.len() - all[node].free.len());
        let own = &mut self.own[node as usize];
        own.flows[slot] = Outgoing {
            destination: destination as u16,
            class: class as u8,
            tag,
            ..Outgoing::UNUSED
        };
        self.flow_of[index] = slot as u16;
        let outcast = (own.flows.len() - own.free.len()) as u16;
        self.outcast_peak = self.outcast_peak.max(outcast);
        let incast = &mut self.incast[destination as usize];
        *incast += 1;
        self.incast_peak = self.incast_peak.max(*incast);
        slot
    }

    /// Nothing of a flow's backlog is left.
    pub(super) fn run_dry(&mut self, node: u32, slot: usize) {
        let active = &mut self.own[node as usize].active;
        let at = active.iter().position(|&other| usize::from(other) == slot);
        active.swap_remove(at.expect("a flow with a backlog is in the list of those"));
        if active.is_empty() {
            self.backlog.clear(node as usize);
        }
        let flow = &mut self.own[node as usize].flows[slot];
        if !std::mem::replace(&mut flow.drains, true) {
            self.draining.push((node as u16, slot as u16));
        }
    }

    /// Forgets the backlog of a flow.
    pub(super) fn abandon_slot(&mut self, node: u32, slot: usize) {
        let flow = &mut self.own[node as usize].flows[slot];
        if std::mem::take(&mut flow.unsent) > 0 {
            self.run_dry(node, slot);
        }
    }

    /// Frees the flows whose cells have all left the remote queues; call once an epoch. Tells
    /// `freed` the tag of each.
    pub(crate) fn settle(&mut self, now: Now, mut freed: impl FnMut(u32)) {
        let mut at = 0;
        while at < self.draining.len() {
            let (node, slot) = self.draining[at];
            let flow = &mut self.own[usize::from(node)].flows[usize::from(slot)];
            // A cell that could follow in epoch `drained` would find the last one gone on arrival.
            let gone = flow.drained + 1 + self.delay_slots.div_ceil(self.schedule.slots());
            if flow.unsent == 0 && (flow.outstanding > 0 || gone >= now.epoch) {
                at += 1;
                continue;
            }
            flow.drains = false;
            self.draining.swap_remove(at);
            if flow.unsent == 0 {
                freed(flow.tag);
                self.free_flow(u32::from(node), usize::from(slot));
            }
        }
    }

    fn free_flow(&mut self, node: u32, slot: usize) {
        let own = &mut self.own[node as usize];
        let flow = std::mem::replace(&mut own.flows[slot], Outgoing::UNUSED);
        own.free.push(slot as u16);
        let index = self.flow_index(node, u32::from(flow.destination), u32::from(flow.class));
        self.flow_of[index] = NONE;
        self.incast[usize::from(flow.destination)] -= 1;
    }
}
