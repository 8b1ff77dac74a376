//! Packets that a switch stores whole before it looks at them.

use crate::{Line, Packet, Wheel};

/// The longest packet in slots of the largest speed-up that is sensible: a bound for the wheel.
const ARRIVAL_SLOTS_MAX: u64 = 63;

/// Packets by the slot in which they have arrived whole.
#[derive(Clone, Debug)]
pub struct Arriving {
    line: Line,
    wheel: Wheel<Packet>,
    arrived: Vec<Packet>,
    /// The next slot.
    slot: u64,
}

impl Arriving {
    /// None.
    #[must_use]
    pub fn new(line: Line) -> Self {
        Self { line, wheel: Wheel::new(ARRIVAL_SLOTS_MAX), arrived: Vec::new(), slot: 0 }
    }

    /// Takes a packet whose first bit arrives, or, of a short one that the switch hears of late, has
    /// arrived.
    pub fn put(&mut self, packet: Packet) {
        let whole = packet.entered + self.line.send_time(packet.size());
        self.wheel.put(self.line.cycle_from(whole).max(self.slot), packet);
    }

    /// Goes on to the next slot: the packets that are there now.
    pub fn turn(&mut self) -> &[Packet] {
        self.wheel.turn(&mut self.arrived);
        self.slot += 1;
        &self.arrived
    }

    /// Goes on to `slot` at once; no packet arrives.
    pub fn skip_to(&mut self, slot: u64) {
        self.wheel.skip_to(slot);
        self.slot = slot;
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Bytes, Rate};

    use super::*;
    use crate::Ticks;

    #[test]
    fn a_packet_is_there_in_the_first_slot_after_its_last_bit() {
        let size = Bytes::new(100);
        let line = Line::slotted(Rate::from_gbps(10), size, (1, 1));
        let mut arriving = Arriving::new(line);
        let at = |entered| {
            let mut packet = Packet::new(0, 1, size, Ticks::default());
            packet.entered = entered;
            packet
        };
        arriving.put(at(line.start_of(0)));
        arriving.put(at(line.start_of(0) + Ticks::new(1)));
        let counts: Vec<_> = (0..3).map(|_| arriving.turn().len()).collect();
        assert_eq!(counts, [0, 1, 1]);
        arriving.put(at(line.start_of(0)));
        assert_eq!(arriving.turn().len(), 1, "what is late is there at once");
    }
}
