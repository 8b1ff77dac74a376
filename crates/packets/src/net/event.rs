//! What happens at an instant.

use super::places::Lane;

/// An event of the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// A packet is there by the port, at a switch or as a frame of the link.
    Arrive {
        /// Its place in the arena.
        packet: u32,
        /// The port by which it comes.
        port: u32,
    },
    /// A packet is there by the port, at the host that it is for.
    Deliver {
        /// Its place in the arena.
        packet: u32,
        /// The port by which it comes.
        port: u32,
    },
    /// The line of a switch's port is free.
    Free {
        /// The port.
        port: u32,
    },
    /// The line of a NIC is free.
    NicFree {
        /// The host.
        host: u32,
    },
    /// A host asked to be asked for packets.
    Alarm {
        /// The host.
        host: u32,
    },
    /// A transport's timer may be due.
    Timer {
        /// Its place.
        index: u32,
        /// Which setting of it; below [`Event::LIMIT`].
        generation: u32,
    },
    /// A flow that was offered early starts.
    Start {
        /// Its place in the driver's list.
        flow: u32,
    },
    /// A packet of a flow has left the other end (per-flow backpressure).
    Room {
        /// The port that may send one more.
        port: u32,
        /// The flow, or its leg.
        lane: Lane,
    },
    /// A pause that was asked for runs out, unless it was asked for again (PFC).
    PauseEnds {
        /// The port that is paused.
        port: u32,
        /// Its priority.
        priority: u8,
    },
    /// A pause is to be asked for again, if it is still meant (PFC).
    PauseAgain {
        /// The port at whose other end the paused one is.
        port: u32,
        /// Its priority.
        priority: u8,
    },
    /// Something breaks.
    Break {
        /// Which fault.
        fault: u32,
    },
    /// Something works again.
    Mend {
        /// Which fault.
        fault: u32,
    },
    /// All switches know what works.
    Converge,
    /// An alarm that the program of the switches asked for.
    Program {
        /// The switch.
        switch: u32,
    },
}

/// An event in one word, as the calendar keeps it: what is written and read whole never waits for
/// its parts. From the top: four bits of kind, 28 of a port or generation, 32 of anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Word(u64);

impl Event {
    /// Ports and generations are below it.
    pub(crate) const LIMIT: u32 = 1 << 28;

    /// In one word.
    #[inline]
    pub(crate) fn pack(self) -> Word {
        let (kind, small, large) = match self {
            Event::Arrive { packet, port } => (Word::ARRIVE, port, packet),
            Event::Deliver { packet, port } => (Word::DELIVER, port, packet),
            Event::Free { port } => (Word::FREE, port, 0),
            Event::NicFree { host } => (Word::NIC_FREE, 0, host),
            Event::Alarm { host } => (4, 0, host),
            Event::Timer { index, generation } => (5, generation, index),
            Event::Start { flow } => (6, 0, flow),
            Event::Room { port, lane } => (7, port, lane.0),
            Event::Break { fault } => (8, 0, fault),
            Event::Mend { fault } => (9, 0, fault),
            Event::PauseEnds { port, priority } => (10, port, priority.into()),
            Event::PauseAgain { port, priority } => (11, port, priority.into()),
            Event::Converge => (12, 0, 0),
            Event::Program { switch } => (13, 0, switch),
        };
        debug_assert!(small < Self::LIMIT, "{self:?} does not fit a word");
        Word(kind << 60 | u64::from(small) << 32 | u64::from(large))
    }
}

impl Word {
    /// The kind of [`Event::Arrive`] and so on: the events that come with every packet.
    pub(crate) const ARRIVE: u64 = 0;
    pub(crate) const DELIVER: u64 = 1;
    pub(crate) const FREE: u64 = 2;
    pub(crate) const NIC_FREE: u64 = 3;

    /// What kind it is.
    #[inline]
    pub(crate) fn kind(self) -> u64 {
        self.0 >> 60
    }

    /// Its port or generation.
    #[inline]
    pub(crate) fn port(self) -> u32 {
        (self.0 >> 32) as u32 & (Event::LIMIT - 1)
    }

    /// Its packet or host, or what else it is about.
    #[inline]
    pub(crate) fn subject(self) -> u32 {
        self.0 as u32
    }

    /// The event that was packed.
    #[inline]
    pub(crate) fn unpack(self) -> Event {
        let (small, large) = (self.port(), self.subject());
        match self.kind() {
            Self::ARRIVE => Event::Arrive { packet: large, port: small },
            Self::DELIVER => Event::Deliver { packet: large, port: small },
            Self::FREE => Event::Free { port: small },
            Self::NIC_FREE => Event::NicFree { host: large },
            4 => Event::Alarm { host: large },
            5 => Event::Timer { index: large, generation: small },
            6 => Event::Start { flow: large },
            7 => Event::Room { port: small, lane: Lane(large) },
            8 => Event::Break { fault: large },
            9 => Event::Mend { fault: large },
            10 => Event::PauseEnds { port: small, priority: large as u8 },
            11 => Event::PauseAgain { port: small, priority: large as u8 },
            12 => Event::Converge,
            _ => Event::Program { switch: large },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_of_their_words_as_they_went_in() {
        let (port, generation) = (Event::LIMIT - 1, Event::LIMIT - 2);
        let events = [
            Event::Arrive { packet: u32::MAX, port },
            Event::Deliver { packet: 7, port: 0 },
            Event::Free { port },
            Event::NicFree { host: u32::MAX },
            Event::Alarm { host: 3 },
            Event::Timer { index: u32::MAX, generation },
            Event::Start { flow: u32::MAX },
            Event::Room { port, lane: Lane(u32::MAX) },
            Event::Break { fault: 1 },
            Event::Mend { fault: u32::MAX },
            Event::PauseEnds { port, priority: 7 },
            Event::PauseAgain { port, priority: 0 },
            Event::Converge,
            Event::Program { switch: 9 },
        ];
        for event in events {
            assert_eq!(event.pack().unpack(), event);
        }
    }
}
