//! What is said again: broadcasts that found no room, copies that a link corrupted, and copies that a
//! link took which failed so shortly that nobody noticed.
//!
//! §3.2 leaves open how often and when, and has the checksum find corruption but nobody mend it.
//! **Our choices**: a source says again what was dropped after a pause; a neighbour that finds a copy
//! corrupted asks the one who sent it, who sends it again, after the same pause; and the end of a link
//! that was dead for less than it takes to notice sends again what was lost on it when it next hears a
//! greeting from there. (The network says which copies these were; a count of copies in greetings
//! would.)

use kernel::Span;
use packets::{Outbox, Packet, Timer};
use rack::NodeId;
use rack::topology::PortId;

use super::REPEAT;
use crate::view::Event;

/// What each node is to say again.
#[derive(Clone, Debug)]
pub(super) struct Repeats {
    pause: Span,
    events: Vec<Vec<Event>>,
    copies: Vec<Vec<Packet>>,
    /// By port: what was lost while its link was dead and counted as living.
    cut: Vec<Vec<Packet>>,
}

impl Repeats {
    pub(super) fn new(nodes: u32, ports: usize, pause: Span) -> Self {
        let nodes = nodes as usize;
        Self {
            pause,
            events: vec![Vec::new(); nodes],
            copies: vec![Vec::new(); nodes],
            cut: vec![Vec::new(); ports],
        }
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

    /// A node will send a copy by a port again once it hears from there.
    pub(super) fn cut(&mut self, port: PortId, copy: Packet) {
        self.cut[port.index()].push(copy);
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

    /// What was cut off at a port.
    pub(super) fn take_cut(&mut self, port: PortId) -> Vec<Packet> {
        std::mem::take(&mut self.cut[port.index()])
    }

    /// Whether anything is to be said again.
    pub(super) fn is_empty(&self) -> bool {
        self.events.iter().all(Vec::is_empty)
            && self.copies.iter().all(Vec::is_empty)
            && self.cut.iter().all(Vec::is_empty)
    }
}
