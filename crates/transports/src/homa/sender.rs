//! The sending half of a Homa message.
//!
//! Models: Homa §3.2 (unscheduled bytes at once, the rest as granted) and §3.7 (what a RESEND asks
//! for is retransmitted).

use kernel::Bytes;
use packets::{FlowKey, Framing, Kind, Marks, Opening, PRIORITIES, Packet};
use rack::NodeId;

use crate::kinds;
use crate::ranking::Entry;

/// One message at its source.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outgoing {
    pub(crate) key: FlowKey,
    pub(crate) src: NodeId,
    pub(crate) dst: NodeId,
    pub(crate) size: Bytes,
    pub(crate) is_open: bool,
    /// Its place among the messages of its host that may send, if it may.
    pub(crate) entry: Option<Entry>,
    /// Rises with each message.
    pub(crate) order: u64,
    /// Packets in the message.
    pub(crate) total: u64,
    /// Packets that go without a grant.
    pub(crate) unscheduled: u64,
    /// Packets that may be sent.
    pub(crate) granted: u64,
    /// First packet that was never sent.
    pub(crate) next: u64,
    /// Packets to send again, `first..end`.
    again: (u64, u64),
    entropy: u16,
    /// Priorities of unscheduled packets, of scheduled ones, of what is retransmitted.
    level: u8,
    granted_level: u8,
    again_level: u8,
}

impl Outgoing {
    /// Begins a message of which `unscheduled` packets go at once, with priority `level`.
    pub(crate) fn open(
        opening: &Opening,
        framing: Framing,
        order: u64,
        unscheduled: u64,
        level: u8,
    ) -> Self {
        let total = framing.packets(opening.flow.size);
        Self {
            key: opening.key,
            src: opening.flow.src,
            dst: opening.flow.dst,
            size: opening.flow.size,
            is_open: true,
            order,
            total,
            unscheduled,
            granted: unscheduled,
            entropy: opening.flow.id.get() as u16,
            level,
            granted_level: level,
            ..Self::default()
        }
    }

    /// Whether a packet may leave now.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.next < self.granted || self.again.0 < self.again.1
    }

    /// Bytes never sent yet: what shortest-remaining-first goes by.
    #[inline]
    pub(crate) fn remaining(&self, framing: Framing) -> u64 {
        self.size.get().saturating_sub(self.next * u64::from(framing.payload))
    }

    /// Its place in the ranking.
    pub(crate) fn ranked(&self, framing: Framing) -> Entry {
        Entry { remaining: self.remaining(framing), order: self.order, flow: self.key }
    }

    /// Priority of the packet that would leave now.
    #[inline]
    pub(crate) fn priority(&self) -> u8 {
        if self.again.0 < self.again.1 {
            self.again_level
        } else if self.next < self.unscheduled {
            self.level
        } else {
            self.granted_level
        }
    }

    /// The next packet, and whether it was sent before; [`Outgoing::is_ready`] holds.
    #[inline]
    pub(crate) fn transmit(&mut self, framing: Framing) -> (Packet, bool) {
        let priority = self.priority();
        let is_again = self.again.0 < self.again.1;
        let place = if is_again { &mut self.again.0 } else { &mut self.next };
        let seq = *place;
        *place += 1;
        let payload = framing.payload_of(self.size, seq);
        let last = if seq + 1 == self.total { Marks::LAST } else { Marks::empty() };
        let packet = Packet {
            seq,
            // Each packet tells the length of its message, and how much of it goes unscheduled.
            word: self.size.get(),
            ack: self.unscheduled,
            flow: self.key,
            src: self.src,
            dst: self.dst,
            entropy: self.entropy,
            path: self.entropy.wrapping_add(seq as u16),
            wire: payload + framing.header,
            payload,
            kind: Kind::DATA,
            priority,
            marks: last,
            ..Packet::default()
        };
        (packet, is_again)
    }

    /// A grant: packets below `packet.ack` may be sent, with the priority in `packet.word`.
    pub(crate) fn grant(&mut self, packet: &Packet) {
        self.granted = self.granted.max(packet.ack.min(self.total));
        self.granted_level = level(packet.word);
    }

    /// A RESEND of the packets `packet.ack..packet.word`, with the priority in `packet.seq`. What was
    /// never sent counts as granted: the grant was lost.
    pub(crate) fn resend(&mut self, packet: &Packet) {
        self.granted = self.granted.max(packet.word.min(self.total));
        let (first, end) = (packet.ack, packet.word.min(self.next));
        if first >= end {
            return;
        }
        self.again_level = level(packet.seq);
        self.again = match self.again {
            (from, to) if from >= to => (first, end),
            (from, to) => (from.min(first), to.max(end)),
        };
    }

    /// Asks the receiver what it lacks, with all that it has to know of the message.
    pub(crate) fn enquire(&self, wire: u16) -> Packet {
        let (word, ack) = (self.size.get(), self.unscheduled);
        Packet { word, ack, ..self.say(kinds::RESEND, wire) }
    }

    /// A control packet to the receiver.
    pub(crate) fn say(&self, kind: Kind, wire: u16) -> Packet {
        Packet {
            flow: self.key,
            src: self.src,
            dst: self.dst,
            entropy: self.entropy,
            path: self.entropy,
            wire,
            kind,
            priority: 0,
            ..Packet::default()
        }
    }
}

/// A priority that a packet told.
fn level(told: u64) -> u8 {
    told.min(u64::from(PRIORITIES - 1)) as u8
}
