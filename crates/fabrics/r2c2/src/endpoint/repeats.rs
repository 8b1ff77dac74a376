//! What is said again: broadcasts that found no room, and copies that a link corrupted.
//!
//! §3.2 leaves open how often and when, and has the checksum find corruption but nobody mend it.
//! **Our choices**: a source says again what was dropped after a pause; and a neighbour that finds a
//! copy corrupted asks the one who sent it, who sends it again, after the same pause.

use kernel::Span;
use packets::{Outbox, Packet, Timer};
use rack::NodeId;

use super::REPEAT;
use crate::view::Event;

/// What each node is to say again.
#[derive(Clone, Debug)]
pub(super) struct Repeats {
    pause: Span,
    events: Vec<Vec<Event>>,
    copies: Vec<Vec<Packet>>,
}

impl Repeats {
    pub(super) fn new(nodes: u32, pause: Span) -> Self {
        let nodes = nodes as usize;
        Self { pause, events: vec![Vec::new(); nodes], copies: vec![Vec::new(); nodes] }
    }

    /// A source will say again what it said.
    pub(super) fn event(&mut self, source: NodeId, event: Event, out: &mut Outbox) {
        self.wait(source, out);
        self.events[source.index()].push(event);
    }

    /// A node will send a copy to its neighbour again.
    pub(super) fn copy(&mut self, copy: Packet, out: &mut Outbox) {
        self.wait(copy.src, out);
        self.copies[copy.src.index()].push(copy);
    }

    fn wait(&mut self, node: NodeId, out: &mut Outbox) {
        if self.events[node.index()].is_empty() && self.copies[node.index()].is_empty() {
            out.set_timer(Timer::Host(node, REPEAT), out.now() + self.pause);
        }
    }

    /// The pause of a node is over: what it says again.
    pub(super) fn take(&mut self, node: NodeId) -> (Vec<Event>, Vec<Packet>) {
        let node = node.index();
        (std::mem::take(&mut self.events[node]), std::mem::take(&mut self.copies[node]))
    }

    /// The links are others now: no copy will be sent again. Those that were to be.
    pub(super) fn give_up(&mut self) -> Vec<Packet> {
        self.copies.iter_mut().flat_map(std::mem::take).collect()
    }

    /// Whether anything is to be said again.
    pub(super) fn is_empty(&self) -> bool {
        self.events.iter().all(Vec::is_empty) && self.copies.iter().all(Vec::is_empty)
    }
}
