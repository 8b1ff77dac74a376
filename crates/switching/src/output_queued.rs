//! The ideal: every packet is in its output's queue as soon as its first bit is there.
//!
//! No switch with lines of this rate serves sooner, whatever its core. The bound for all others.

use crate::{Departure, Egress, Line, Packet, Switch};

/// The switch; its buffers have no bound.
#[derive(Clone, Debug)]
pub struct OutputQueued {
    ports: usize,
    entered: Vec<Packet>,
    egress: Egress,
}

impl OutputQueued {
    /// An empty switch.
    #[must_use]
    pub fn new(line: Line, ports: usize) -> Self {
        let egress = Egress::new(line, ports, usize::MAX);
        Self { ports, entered: Vec::new(), egress }
    }
}

impl Switch for OutputQueued {
    fn ports(&self) -> usize {
        self.ports
    }

    fn has_room(&self, _: &Packet) -> bool {
        true
    }

    fn admit(&mut self, packet: Packet) {
        self.entered.push(packet);
    }

    fn step(&mut self, departures: &mut Vec<Departure>) {
        for packet in self.entered.drain(..) {
            self.egress.promise(usize::from(packet.destination));
            departures.push(self.egress.take(packet, packet.entered));
        }
    }

    fn held(&self) -> usize {
        self.entered.len()
    }

    fn is_idle(&self) -> bool {
        self.entered.is_empty()
    }

    fn skip_to(&mut self, cycle: u64) {
        let _ = cycle;
    }
}
