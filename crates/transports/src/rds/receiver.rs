//! The receiving half of an RDS message.
//!
//! Models: PL2 §6.1: a packet that comes before an earlier one tells that the earlier one is lost, and
//! the sender hears of it at once; where a whole burst is lost, or what was retransmitted is, only silence
//! tells.

use kernel::Bytes;
use packets::{FlowKey, Framing, Kind, Packet};
use rack::NodeId;

use super::QUEUE;
use crate::arrivals::Arrivals;

/// One message at its destination.
#[derive(Clone, Debug, Default)]
pub(crate) struct Incoming {
    pub(crate) arrivals: Arrivals,
    pub(crate) src: NodeId,
    pub(crate) dst: NodeId,
    pub(crate) size: Bytes,
    /// Packets in the message.
    pub(crate) total: u64,
    pub(crate) is_open: bool,
    entropy: u16,
    /// Packets that the sender may send, as far as the receiver has said; the blind ones too.
    pub(crate) granted: u64,
    /// One more than the highest packet that has arrived.
    seen: u64,
    /// Time-outs since a packet has arrived.
    pub(crate) silences: u32,
}

impl Incoming {
    /// Meets the message of a packet, of which up to `blind` packets come without a grant.
    pub(crate) fn open(&mut self, packet: &Packet, framing: Framing, blind: u64) {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        arrivals.clear();
        let size = Bytes::new(packet.word);
        let total = framing.packets(size);
        *self = Self {
            arrivals,
            src: packet.src,
            dst: packet.dst,
            size,
            total,
            is_open: true,
            entropy: packet.entropy,
            granted: blind.min(total),
            ..Self::default()
        };
    }

    /// Packets that need a grant yet.
    #[inline]
    pub(crate) fn left(&self) -> u64 {
        self.total - self.granted
    }

    /// A packet to the sender, without payload.
    pub(crate) fn say(&self, flow: FlowKey, kind: Kind, wire: u16) -> Packet {
        Packet {
            flow,
            src: self.dst,
            dst: self.src,
            entropy: self.entropy,
            path: self.entropy,
            wire,
            kind,
            priority: QUEUE,
            ..Packet::default()
        }
    }

    /// Notes that `packet` has arrived: the packets before it that are thereby known to be lost.
    #[inline]
    pub(crate) fn skipped(&mut self, seq: u64) -> Option<(u64, u64)> {
        let first = self.seen;
        self.seen = first.max(seq + 1);
        (seq > first).then_some((first, seq))
    }

    /// Packets that are under way or lost.
    #[inline]
    pub(crate) fn due(&self) -> u64 {
        self.granted - self.arrivals.count()
    }
}
