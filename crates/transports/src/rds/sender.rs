//! The sending half of an RDS message.
//!
//! Models: PL2 §6.1: up to 61 KiB blindly and as fast as can be, the rest as the receiver grants; what
//! the receiver says is lost is retransmitted, before anything new.

use kernel::Bytes;
use packets::{FlowKey, Framing, Kind, Marks, Opening, Packet};
use rack::NodeId;

use super::QUEUE;
use crate::segments::Segments;

/// One message at its source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outgoing {
    pub(crate) key: FlowKey,
    pub(crate) src: NodeId,
    pub(crate) dst: NodeId,
    pub(crate) size: Bytes,
    pub(crate) is_open: bool,
    /// Packets in the message.
    pub(crate) total: u64,
    /// Packets that go before the receiver is heard of.
    pub(crate) blind: u64,
    /// Packets that may be sent.
    pub(crate) granted: u64,
    /// First packet that was never sent.
    pub(crate) next: u64,
    /// Whether the receiver is known to know of the message.
    pub(crate) is_heard: bool,
    /// How often in a row nothing was heard of it although all was sent that may be.
    pub(crate) silences: u32,
    /// Packets to send again.
    again: Segments,
    entropy: u16,
}

impl Outgoing {
    /// Begins a message whose first `blind` packets go at once, if it has so many.
    pub(crate) fn open(&mut self, opening: &Opening, framing: Framing, blind: u64) {
        let mut again = std::mem::take(&mut self.again);
        again.clear();
        let total = framing.packets(opening.flow.size);
        let blind = blind.min(total);
        *self = Self {
            key: opening.key,
            src: opening.flow.src,
            dst: opening.flow.dst,
            size: opening.flow.size,
            is_open: true,
            total,
            blind,
            granted: blind,
            again,
            entropy: opening.flow.id.get() as u16,
            ..Self::default()
        };
    }

    /// Whether a packet may leave now.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.next < self.granted || !self.again.is_empty()
    }

    /// The next packet, and whether it was sent before; [`Outgoing::is_ready`] holds.
    #[inline]
    pub(crate) fn transmit(&mut self, framing: Framing) -> (Packet, bool) {
        let (seq, is_again) = match self.again.first_present(0) {
            Some(seq) => {
                self.again.retire(seq + 1);
                (seq, true)
            }
            None => {
                self.next += 1;
                (self.next - 1, false)
            }
        };
        let payload = framing.payload_of(self.size, seq);
        let marks = if seq + 1 == self.total { Marks::LAST } else { Marks::empty() };
        let packet = Packet {
            seq,
            // Each packet tells the length of its message.
            word: self.size.get(),
            wire: payload + framing.header,
            payload,
            marks,
            ..self.say(Kind::DATA, 0)
        };
        (packet, is_again)
    }

    /// Packets below `end` may be sent.
    pub(crate) fn grant(&mut self, end: u64) {
        self.granted = self.granted.max(end.min(self.total));
    }

    /// The packets `from..to` are lost: sends again what of them was sent. What was not counts as
    /// granted, for then its grant was lost.
    pub(crate) fn repeat(&mut self, from: u64, to: u64) {
        self.grant(to);
        self.again.insert(from, to.min(self.next), |_, _| ());
    }

    /// Whether all that may be sent is sent.
    pub(crate) fn is_spent(&self) -> bool {
        !self.is_ready()
    }

    /// A packet to the receiver, without payload.
    pub(crate) fn say(&self, kind: Kind, wire: u16) -> Packet {
        Packet {
            flow: self.key,
            src: self.src,
            dst: self.dst,
            entropy: self.entropy,
            path: self.entropy,
            wire,
            kind,
            priority: QUEUE,
            ..Packet::default()
        }
    }
}
