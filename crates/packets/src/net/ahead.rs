//! Prefetching what the next events will touch.
//!
//! Where the next packet is and where it goes is as good as random, and the state of a large network
//! is larger than a core's cache. The calendar knows the events of the current tick in order, so what
//! they will touch is prefetched while earlier ones are handled: first the packet and its port, then, once
//! these are there, what they point to.

use kernel::prefetch;

use super::Net;
use super::event::Word;

/// Events ahead at which packets and ports are asked for (our choice, measured).
const FAR: usize = 9;
/// Events ahead at which routes and flows are asked for (our choice, measured).
const MIDDLE: usize = 6;
/// Events ahead at which a packet's next port is found out and asked for (our choice, measured).
const NEAR: usize = 3;

impl Net {
    /// Asks for what the packets to come will touch. Called in the arm of each kind of event: events of
    /// one delay are of one kind, as a rule, so that there the tests of kinds are predicted well.
    #[inline(always)]
    pub(crate) fn ask_ahead_of_packets(&mut self) {
        let [near, middle, far] = self.calendar.upcoming([NEAR, MIDDLE, FAR]);
        if let Some(event) = far {
            self.arena.prefetch(event.packet());
        }
        if let Some(event) = middle {
            match event.kind() {
                Word::ARRIVE => {
                    let packet = self.arena.get(event.packet());
                    let vertex = self.vertices[event.about() as usize];
                    self.chooser.prefetch(&self.tables, vertex, packet);
                }
                Word::DELIVER => self.halves.prefetch(self.arena.get(event.packet())),
                _ => {}
            }
        }
        if let Some(event) =
            near.filter(|event| self.knows_ways_ahead && event.kind() == Word::ARRIVE)
        {
            self.find_way_ahead(event.packet(), event.about());
        }
    }

    /// Asks for what the lines that will be free next touch.
    #[inline]
    pub(crate) fn ask_ahead_of_lines(&mut self) {
        let [middle, far] = self.calendar.upcoming([MIDDLE, FAR]);
        if let Some(event) = far {
            prefetch(&self.ports, event.about() as usize);
        }
        if let Some(event) = middle.filter(|event| event.kind() == Word::FREE) {
            self.arena.prefetch(self.ports[event.about() as usize].front());
        }
    }

    /// Finds out by which port a packet that will come by `port` is to leave, and asks for that.
    #[inline]
    fn find_way_ahead(&mut self, index: u32, port: u32) {
        let packet = self.arena.get(index);
        let vertex = self.vertices[port as usize];
        if let Some(way) = self.chooser.choose_ahead(&self.tables, vertex, packet) {
            self.arena.set_way(index, way.get());
            prefetch(&self.ports, way.index());
        }
    }
}
