//! A bank that goes over to another schedule (§7.3: "updates the schedule of both rack nodes and
//! switches to discount the failed nodes"; the paper leaves it at that).
//!
//! Our choice: for an epoch and the delays of feedback, nodes send no payload, so that every report
//! is in; then all go over at an epoch's boundary. Queues stay as they are, under new positions.

use kernel::Bitmap;

use crate::mode::Lossy;
use crate::schedule::Schedule;

use super::subflows::Subflows;
use super::{Bank, FeedbackTable, Link, NONE, Now, feedback};

impl Bank {
    /// Slots for which nodes must send no payload before they can go over: every cell sent before
    /// is then reported on.
    pub(crate) fn quiet_slots(&self) -> u64 {
        u64::from(self.schedule.slots() * self.depth + 2 * self.delay_slots)
    }

    /// Keeps all nodes from sending payload until a slot.
    pub(crate) fn keep_quiet(&mut self, until: u64) {
        self.loss_mut().quiet_until = until;
    }

    /// Goes over to `schedule`, whose first epoch begins now.
    pub(crate) fn reschedule(&mut self, schedule: Schedule, now: Now) {
        self.empty_links_without(&schedule);
        let old = std::mem::replace(&mut self.schedule, schedule);
        let (old_links, old_subflows) = (std::mem::take(&mut self.links), self.subflows.clone());
        let positions = self.schedule.positions();
        let pairs = positions as usize * self.own as usize;
        self.links = vec![Link::EMPTY; pairs * self.classes as usize];
        self.subflows = Subflows::new(positions, &self.flows.places);
        self.depth = feedback::depth(&self.schedule, self.delay_slots);
        self.sent_ring = vec![NONE; if self.depth > 1 { pairs * self.depth as usize } else { 0 }];
        self.feedback = FeedbackTable::new(&self.schedule, self.delay_slots);
        self.busy = Bitmap::new(positions as usize * self.words * u64::BITS as usize);
        self.busy_count = 0;
        self.epoch_base = u64::from(now.epoch);
        let loss = self
            .loss
            .take()
            .map(|loss| Box::new(loss.begin_anew(positions, self.depth, self.payload)));
        self.loss = loss;
        for node in self.members() {
            for peer in (0..self.nodes).filter(|&peer| peer != node) {
                let known = old.contains(node) && old.contains(peer);
                let stays = self.schedule.contains(node) && self.schedule.contains(peer);
                if known && stays {
                    self.move_link(node, peer, &old, &old_links, &old_subflows);
                }
            }
        }
    }

    /// Drops what waits between pairs that will not meet again; the transport recovers it.
    fn empty_links_without(&mut self, schedule: &Schedule) {
        for node in self.members() {
            for peer in (0..self.nodes).filter(|&peer| peer != node) {
                let met = self.schedule.contains(node) && self.schedule.contains(peer);
                let meet = schedule.contains(node) && schedule.contains(peer);
                if met && !meet {
                    let position = self.schedule.position(node, peer);
                    for _ in self.empty_queues(position, node) {
                        self.discard();
                    }
                    self.reset_subflows(position, node);
                }
            }
        }
    }

    /// Takes over the queue and the subflows of `node` by way of `peer`.
    fn move_link(
        &mut self,
        node: u32,
        peer: u32,
        old: &Schedule,
        old_links: &[Link],
        old_subflows: &Subflows,
    ) {
        let (before, after) = (old.position(node, peer), self.schedule.position(node, peer));
        for class in 0..self.classes {
            let link = old_links[self.link::<Lossy>(before, class, node)];
            let index = self.link::<Lossy>(after, class, node);
            self.links[index] = Link { last_received: NONE, last_sent: NONE, ..link };
            if link.queued > 0 || link.ready_count() > 0 {
                self.set_busy(after, node);
            }
        }
        let places = &self.flows.places;
        for (slot, &value) in old_subflows.row(before, node, places).iter().enumerate() {
            let place = places.start(node) + slot;
            self.subflows.set(self.subflows.index(after, place), value);
        }
    }
}
