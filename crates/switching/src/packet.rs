//! A packet in a switch, and what a switch is to its bench.

use kernel::Bytes;

use crate::Ticks;

/// A packet on its way through a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Packet {
    /// Its input port.
    pub source: u16,
    /// Its output port.
    pub destination: u16,
    size: u16,
    /// Its number in its connection, from 0, or whatever else its sender counts.
    pub sequence: u32,
    /// What its sender knows it by; no switch looks at it.
    pub tag: u32,
    /// When its sender had it ready.
    pub born: Ticks,
    /// When its first bit reached the switch.
    pub entered: Ticks,
}

impl Packet {
    /// A packet of `size` that is ready at `born` and has not entered yet.
    ///
    /// # Panics
    /// If it is longer than 64 KB or has no byte.
    #[must_use]
    pub fn new(source: usize, destination: usize, size: Bytes, born: Ticks) -> Self {
        let port = |port: usize| u16::try_from(port).expect("a switch has at most 65,536 ports");
        let length = u16::try_from(size.get()).expect("a packet has at most 65,535 bytes");
        assert!(length > 0, "a packet without a byte");
        Self {
            source: port(source),
            destination: port(destination),
            size: length,
            sequence: 0,
            tag: 0,
            born,
            entered: born,
        }
    }

    /// Its size.
    #[inline]
    #[must_use]
    pub fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.size))
    }
}

/// A packet that leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure {
    /// The packet.
    pub packet: Packet,
    /// When its first bit leaves; may lie ahead.
    pub at: Ticks,
}

/// A switch that advances cycle by cycle. Packets are lent credits: none enters without room.
pub trait Switch {
    /// How many ports it has.
    fn ports(&self) -> usize;

    /// Whether `packet` may enter now.
    fn has_room(&self, packet: &Packet) -> bool;

    /// Whether room depends on where a packet goes: then another packet of an input may enter where one
    /// may not.
    fn has_room_by_output(&self) -> bool {
        false
    }

    /// Takes `packet`, whose first bit arrives in the coming cycle and for which there is room.
    fn admit(&mut self, packet: Packet);

    /// Advances by one cycle. Adds to `departures` what leaves for the lines, in order for each
    /// connection.
    fn step(&mut self, departures: &mut Vec<Departure>);

    /// Packets that have entered and not been reported as leaving.
    fn held(&self) -> usize;

    /// Whether nothing is under way inside: until a packet is admitted, steps change nothing but the
    /// count of cycles.
    fn is_idle(&self) -> bool;

    /// Goes on to `cycle` as steps would; only when idle.
    fn skip_to(&mut self, cycle: u64);

    /// Checks what is too slow to check each cycle.
    ///
    /// # Errors
    /// The invariant that is broken, with its numbers.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}
