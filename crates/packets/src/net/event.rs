//! What happens at an instant, and in which order.
//!
//! Events of one instant come in the order of their kinds, as they are listed here, then of the part of the
//! network that they are about: a port, a host, a flow as its hosts name it. So their order depends neither on
//! the order in which they were put into the calendar nor on how the network is cut: a part sees its events in
//! the order that they have in the whole. Faults and routes, which are the same for all parts, come first.
//!
//! Packets that come to switches by several ports at one instant do so in an order that is drawn anew for each
//! instant. In the order of their ports the lowest would always find the place that has just come free in a
//! full queue, and the others none: where lines have one rate, such instants come again and again (Floyd and
//! Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", 1992).

use kernel::{Stream, Time, mix64};

use super::places::Lane;

/// An event of the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
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
    /// A flow that was offered starts.
    Start {
        /// Which of those offered, modulo [`Event::LIMIT`].
        turn: u32,
        /// Its place in the driver's list.
        flow: u32,
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
    /// A packet is there by the port, at a switch.
    Arrive {
        /// Its place in the arena.
        packet: u32,
        /// The port by which it comes.
        port: u32,
    },
    /// A frame of the link is there by the port.
    Frame {
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
    /// A packet of a flow has left the other end (per-flow backpressure).
    Room {
        /// The port that may send one more.
        port: u32,
        /// The flow, or its leg.
        lane: Lane,
    },
    /// What a host told a neighbour got lost.
    Unheard {
        /// Its place in the arena.
        packet: u32,
        /// The port by which it was told.
        port: u32,
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
    /// A transport's timer may be due.
    Timer {
        /// Its host.
        host: u32,
        /// Its place.
        index: u32,
    },
    /// A host asked to be asked for packets.
    Alarm {
        /// The host.
        host: u32,
    },
    /// The engine of a host is done with something.
    Engine {
        /// The host.
        host: u32,
    },
    /// Something that a host sends is over its bus.
    Leave {
        /// The host.
        host: u32,
    },
    /// A thread of a host runs.
    Rouse {
        /// The host.
        host: u32,
    },
    /// An alarm that the program of the switches asked for.
    Program {
        /// The switch.
        switch: u32,
    },
    /// A switch hears a word of the one at the other end of a link.
    Word {
        /// The port by which it comes.
        port: u32,
        /// The word.
        word: u32,
    },
}

/// An event in one word, as the calendar keeps it: what is written and read whole never waits for
/// its parts. From the top: four bits of kind, 28 of a port, host or whatever else it is about, 32 of
/// anything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Word(u64);

impl Event {
    /// Ports and hosts are below it.
    pub(crate) const LIMIT: u32 = 1 << 28;

    /// In one word.
    #[inline]
    pub(crate) fn pack(self) -> Word {
        let (kind, about, rest) = match self {
            Self::Break { fault } => (Word::BREAK, fault, 0),
            Self::Mend { fault } => (Word::MEND, fault, 0),
            Self::Converge => (Word::MEND, Word::CONVERGE, 0),
            Self::Start { turn, flow } => (Word::START, turn, flow),
            Self::Free { port } => (Word::FREE, port, 0),
            Self::NicFree { host } => (Word::NIC_FREE, host, 0),
            Self::Arrive { packet, port } => (Word::ARRIVE, port, packet),
            Self::Frame { packet, port } => (Word::FRAME, port, packet),
            Self::Deliver { packet, port } => (Word::DELIVER, port, packet),
            Self::Room { port, lane } => (Word::ROOM, port, lane.0),
            Self::Unheard { packet, port } => (Word::UNHEARD, port, packet),
            Self::PauseEnds { port, priority } => (Word::PAUSE_ENDS, port, priority.into()),
            Self::PauseAgain { port, priority } => (Word::PAUSE_AGAIN, port, priority.into()),
            Self::Timer { host, index } => (Word::TIMER, host, index),
            Self::Alarm { host } => (Word::ALARM, host, 0),
            Self::Engine { host } => (Word::ALARM, host, Word::ENGINE),
            Self::Leave { host } => (Word::ALARM, host, Word::LEAVE),
            Self::Rouse { host } => (Word::ALARM, host, Word::ROUSE),
            Self::Program { switch } => (Word::PROGRAM, switch, 0),
            Self::Word { port, word } => (Word::WORD, port, word),
        };
        debug_assert!(about < Self::LIMIT, "{self:?} does not fit its word");
        Word(kind << 60 | u64::from(about) << 32 | u64::from(rest))
    }
}

impl Word {
    const BREAK: u64 = 0;
    const MEND: u64 = 1;
    /// What is mended where all switches are to know what works: behind all faults.
    const CONVERGE: u32 = Event::LIMIT - 1;
    const START: u64 = 2;
    /// The kind of [`Event::Free`] and so on: the events that come with every packet.
    pub(crate) const FREE: u64 = 3;
    pub(crate) const NIC_FREE: u64 = 4;
    pub(crate) const ARRIVE: u64 = 5;
    const FRAME: u64 = 6;
    pub(crate) const DELIVER: u64 = 7;
    const ROOM: u64 = 8;
    const UNHEARD: u64 = 9;
    const PAUSE_ENDS: u64 = 10;
    const PAUSE_AGAIN: u64 = 11;
    const TIMER: u64 = 12;
    /// What hosts do by themselves: an alarm is the first.
    const ALARM: u64 = 13;
    const ENGINE: u32 = 1;
    const LEAVE: u32 = 2;
    const ROUSE: u32 = 3;
    const PROGRAM: u64 = 14;
    const WORD: u64 = 15;

    /// What kind it is.
    #[inline]
    pub(crate) fn kind(self) -> u64 {
        self.0 >> 60
    }

    /// Its port or host, or what else it is about.
    #[inline]
    pub(crate) fn about(self) -> u32 {
        (self.0 >> 32) as u32 & (Event::LIMIT - 1)
    }

    /// Its packet, or what else it brings.
    #[inline]
    pub(crate) fn packet(self) -> u32 {
        self.0 as u32
    }

    /// Whether it counts among the events of the network: faults and routes come to all who hold a part of
    /// it.
    pub(crate) fn is_of_all(self) -> bool {
        self.kind() <= Self::MEND
    }

    /// The event that was packed.
    #[inline]
    pub(crate) fn unpack(self) -> Event {
        let (about, rest) = (self.about(), self.packet());
        match self.kind() {
            Self::BREAK => Event::Break { fault: about },
            Self::MEND if about == Self::CONVERGE => Event::Converge,
            Self::MEND => Event::Mend { fault: about },
            Self::START => Event::Start { turn: about, flow: rest },
            Self::FREE => Event::Free { port: about },
            Self::NIC_FREE => Event::NicFree { host: about },
            Self::ARRIVE => Event::Arrive { packet: rest, port: about },
            Self::FRAME => Event::Frame { packet: rest, port: about },
            Self::DELIVER => Event::Deliver { packet: rest, port: about },
            Self::ROOM => Event::Room { port: about, lane: Lane(rest) },
            Self::UNHEARD => Event::Unheard { packet: rest, port: about },
            Self::PAUSE_ENDS => Event::PauseEnds { port: about, priority: rest as u8 },
            Self::PAUSE_AGAIN => Event::PauseAgain { port: about, priority: rest as u8 },
            Self::TIMER => Event::Timer { host: about, index: rest },
            Self::ALARM => match rest {
                Self::ENGINE => Event::Engine { host: about },
                Self::LEAVE => Event::Leave { host: about },
                Self::ROUSE => Event::Rouse { host: about },
                _ => Event::Alarm { host: about },
            },
            Self::PROGRAM => Event::Program { switch: about },
            _ => Event::Word { port: about, word: rest },
        }
    }
}

/// The period of draws.
const PS_PER_SECOND: u64 = 1_000_000_000_000;

/// The order of ports by which packets come at one instant: a draw for each instant and port, which needs no
/// memory, so that all parts of a network draw the same. Draws are those of a second ago: a run that is moved by
/// whole seconds stays the same run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ties(u64);

impl Ties {
    /// Those of a run with this seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(Stream::new(seed, "packets/ties", 0).below(u64::MAX))
    }

    /// Puts events of one instant in order: as they are written, but that ports of arrivals have an order of
    /// the instant, and that places of timers and lanes are whatever was free. `name` tells of two events of
    /// one host or one port what they are by.
    #[inline]
    pub(crate) fn sort<N: Ord>(self, at: Time, words: &mut [Word], name: impl Fn(Event) -> N) {
        let instant = mix64(self.0 ^ (at.as_ps() % PS_PER_SECOND));
        let turn = |word: Word| mix64(instant ^ u64::from(word.about()));
        words.sort_unstable_by(|a, b| {
            let is_one = a.0 >> 32 == b.0 >> 32;
            if is_one && matches!(a.kind(), Word::TIMER | Word::ROOM) {
                return name(a.unpack()).cmp(&name(b.unpack()));
            }
            if !is_one && a.kind() == Word::ARRIVE && b.kind() == Word::ARRIVE {
                return turn(*a).cmp(&turn(*b));
            }
            a.cmp(b)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_of_their_words_as_they_went_in() {
        let port = Event::LIMIT - 1;
        let events = [
            Event::Break { fault: 1 },
            Event::Mend { fault: port - 1 },
            Event::Converge,
            Event::Start { turn: port, flow: u32::MAX },
            Event::Free { port },
            Event::NicFree { host: port },
            Event::Arrive { packet: u32::MAX, port },
            Event::Frame { packet: 3, port },
            Event::Deliver { packet: 7, port: 0 },
            Event::Room { port, lane: Lane(u32::MAX) },
            Event::Unheard { packet: 5, port },
            Event::PauseEnds { port, priority: 7 },
            Event::PauseAgain { port, priority: 0 },
            Event::Timer { host: port, index: u32::MAX },
            Event::Alarm { host: 3 },
            Event::Engine { host: 3 },
            Event::Leave { host: 3 },
            Event::Rouse { host: 3 },
            Event::Program { switch: 9 },
            Event::Word { port: 3, word: u32::MAX },
        ];
        assert!(events.map(Event::pack).is_sorted());
        for event in events {
            assert_eq!(event.pack().unpack(), event);
        }
    }

    #[test]
    fn places_make_no_difference_to_the_order() {
        let timer = |host, index| Event::Timer { host, index }.pack();
        let free = Event::Free { port: 9 }.pack();
        let mut words = [timer(2, 5), timer(1, 7), free, timer(2, 4), timer(2, 6)];
        let names = [0, 0, 0, 0, 30, 10, 20];
        Ties::new(1).sort(Time::ZERO, &mut words, |event| match event {
            Event::Timer { index, .. } => names[index as usize],
            _ => 0,
        });
        assert_eq!(words, [free, timer(1, 7), timer(2, 5), timer(2, 6), timer(2, 4)]);
    }

    #[test]
    fn each_order_of_three_ports_is_as_likely_as_the_others() {
        let ties = Ties::new(1);
        let mut seen = std::collections::BTreeMap::<_, u32>::new();
        // Packets of 1,500 bytes at 10 Gbps, ports that differ in a bit or two.
        for instant in 0..6_000 {
            let arrive = |port| Event::Arrive { packet: 9 - port, port }.pack();
            let mut words = [4, 5, 7].map(arrive);
            let before = Event::Free { port: 6 }.pack();
            ties.sort(Time::from_ps(instant * 1_200_000), &mut words, |_| 0);
            let mut others = [words[2], before, words[1], words[0]];
            ties.sort(Time::from_ps(instant * 1_200_000), &mut others, |_| 0);
            assert_eq!(
                others,
                [before, words[0], words[1], words[2]],
                "whatever order they were in"
            );
            *seen.entry(words.map(Word::about)).or_default() += 1;
        }
        // Standard deviation 29.
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|count| count.abs_diff(1_000) < 120), "{seen:?}");
    }

    #[test]
    fn another_seed_settles_ties_another_way() {
        let arrive = |port| Event::Arrive { packet: 0, port }.pack();
        let order = |seed| {
            let mut words = [0, 1, 2, 3, 4, 5, 6, 7].map(arrive);
            Ties::new(seed).sort(Time::from_ps(1_200_000), &mut words, |_| 0);
            words
        };
        assert_ne!(order(1), order(2));
    }
}
