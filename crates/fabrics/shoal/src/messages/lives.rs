//! Nodes that come back have forgotten what they had received. How sources learn of that, and what becomes of
//! the flows to them.
//!
//! A node counts how often it has come back, and says the number in the cells of pairs that are not in use and
//! in acknowledgments. The count outlives the node's death, as a boot counter does.

use std::collections::BTreeMap;
use std::ops::Range;

use kernel::Time;
use rack::{Failure, Flow};

use super::Messages;

/// How often nodes have come back.
#[derive(Clone, Debug)]
pub(crate) struct Lives {
    first: u32,
    own: Vec<u32>,
    /// By node here and other node: the last that the one has heard of the other, if it is not 0; none: the
    /// next is taken as it comes.
    known: BTreeMap<(u32, u32), Option<u32>>,
}

/// What becomes of the flows to a node that is back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Returned {
    /// Classes of the pairs that start anew.
    pub(crate) classes: Vec<u32>,
    /// Flows that start anew with them, with their handles.
    pub(crate) young: Vec<(Flow, u32)>,
}

impl Lives {
    pub(super) fn new(own: Range<u32>) -> Self {
        Self { first: own.start, own: vec![0; own.len()], known: BTreeMap::new() }
    }

    /// How often a node here has come back.
    pub(super) fn of(&self, node: u32) -> u32 {
        self.own[(node - self.first) as usize]
    }

    /// A node here is back.
    pub(crate) fn begin(&mut self, node: u32, life: u32) {
        self.own[(node - self.first) as usize] = life;
    }

    /// A node here forgets what it knew of others.
    pub(crate) fn forget(&mut self, node: u32) {
        self.known.retain(|&(own, _), _| own != node);
    }

    /// A node here hears how often another has come back; whether that is news.
    pub(crate) fn hear(&mut self, node: u32, peer: u32, life: u32) -> bool {
        let at_first = if self.of(node) > 0 { None } else { Some(0) };
        let known = self.known.get(&(node, peer)).copied().unwrap_or(at_first);
        let is_old = known.is_some_and(|known| life.wrapping_sub(known) as i32 <= 0);
        if is_old {
            return false;
        }
        self.known.insert((node, peer), Some(life));
        known.is_some()
    }
}

impl Messages {
    /// A node here died. What it had received is lost with it; it will acknowledge nothing.
    pub(crate) fn receiver_died(&mut self, node: u32) {
        self.lives.forget(node);
        for peer in 0..self.senders.nodes {
            self.start_life(node, peer);
        }
        self.receivers.forget_node(node);
        self.note_started();
        // At once: where the node is by itself nothing else may arrive.
        self.tell_given_up();
    }

    /// A source takes the next that it hears of how often a node has come back as it comes: what it sends there
    /// is of a new life of the pair anyway.
    pub(crate) fn expect_any(&mut self, source: u32, node: u32) {
        self.lives.known.insert((source, node), None);
        self.start_life(source, node);
    }

    /// Pairs that are not known go on with the numbers of another life: the destination may have forgotten the
    /// last, or the source.
    fn start_life(&mut self, source: u32, destination: u32) {
        for class in 0..self.senders.classes {
            if self.senders.known_pair(source, destination, class).is_none() {
                self.senders.start_life(source, destination, class);
            }
        }
    }

    /// `source` learns that a node had died and is back: those of its flows to it end, at `at`, of which
    /// cells were sent and that began before `since`, when the source gave the node up if it did. All others
    /// start anew.
    pub(crate) fn receiver_returned(
        &mut self,
        (source, node): (u32, u32),
        since: Option<Time>,
        at: u64,
    ) -> Returned {
        let mut returned = Returned::default();
        for class in 0..self.senders.classes {
            let Some(pair) = self.senders.known_pair(source, node, class) else {
                self.senders.start_life(source, node, class);
                continue;
            };
            for handle in self.senders.open_messages(pair) {
                let is_lost = self.senders.message(pair, handle).is_some_and(|message| {
                    message.taken > 0 && since.is_none_or(|since| message.flow.start < since)
                });
                if is_lost {
                    self.fail(pair, handle, at, Failure::DestinationDied);
                } else if let Some(message) = self.senders.remove(pair, handle) {
                    returned.young.push((message.flow, handle));
                }
            }
            returned.classes.push(class);
            self.restart(pair);
        }
        returned
    }
}
