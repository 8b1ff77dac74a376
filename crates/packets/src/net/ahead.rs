//! Asking for memory before its turn.
//!
//! Where the next packet is and where it goes is as good as random, and the state of a large network
//! is larger than a core's cache. The calendar knows the events of the current tick in order, so what
//! they will touch is asked for while earlier ones happen: first the packet and its port, then, once
//! these are there, what they point to.

use kernel::prefetch;

use super::Net;
use super::event::Event;

/// Events ahead at which packets and ports are asked for (our choice, measured).
const FAR: usize = 8;
/// Events ahead at which routes and flows are asked for (our choice, measured).
const NEAR: usize = 4;

impl Net {
    /// Asks for what the events to come will touch.
    #[inline]
    pub(crate) fn ask_ahead(&self) {
        match self.calendar.upcoming(FAR) {
            Some(Event::Arrive { packet, port }) => {
                self.arena.prefetch(packet);
                prefetch(&self.wires, port as usize);
            }
            Some(Event::Free { port }) => {
                prefetch(&self.wires, port as usize);
                prefetch(&self.ports, port as usize);
            }
            _ => {}
        }
        match self.calendar.upcoming(NEAR) {
            Some(Event::Arrive { packet, port }) => {
                let (packet, vertex) = (self.arena.get(packet), self.wires[port as usize].vertex);
                if packet.dst.get() == vertex.get() {
                    self.flows.prefetch(packet.flow);
                } else {
                    self.tables.prefetch(vertex, packet.dst.get());
                }
            }
            Some(Event::Free { port }) => {
                let out = &self.ports[port as usize];
                self.arena.prefetch(out.front());
            }
            _ => {}
        }
    }
}
