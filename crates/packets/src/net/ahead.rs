//! Asking for memory before its turn.
//!
//! Where the next packet is and where it goes is as good as random, and the state of a large network
//! is larger than a core's cache. The calendar knows the events of the current tick in order, so what
//! they will touch is asked for while earlier ones happen: first the packet and its port, then, once
//! these are there, what they point to.

use kernel::prefetch;

use super::Net;
use super::event::Word;

/// Events ahead at which packets and ports are asked for (our choice, measured).
const FAR: usize = 8;
/// Events ahead at which routes and flows are asked for (our choice, measured).
const NEAR: usize = 4;

impl Net {
    /// Asks for what the events to come will touch.
    #[inline]
    pub(crate) fn ask_ahead(&self) {
        if let Some(event) = self.calendar.upcoming(FAR) {
            match event.kind() {
                Word::ARRIVE | Word::DELIVER => self.arena.prefetch(event.subject()),
                _ => prefetch(&self.ports, event.port() as usize),
            }
        }
        let Some(event) = self.calendar.upcoming(NEAR) else { return };
        match event.kind() {
            Word::ARRIVE => {
                let packet = self.arena.get(event.subject());
                let vertex = self.vertices[event.port() as usize];
                self.tables.prefetch(vertex, packet.dst.get());
            }
            Word::DELIVER => self.flows.prefetch(self.arena.get(event.subject()).flow),
            Word::FREE => self.arena.prefetch(self.ports[event.port() as usize].front()),
            _ => {}
        }
    }
}
