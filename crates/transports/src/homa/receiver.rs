//! The receiving half of a Homa message.
//!
//! Models: Homa §3.3 (grants keep a round trip's bytes granted but not received) and §3.7 (a
//! receiver that hears nothing asks for the first gap).

use kernel::Bytes;
use packets::{FlowKey, Framing, Kind, Packet};
use rack::NodeId;

use crate::arrivals::Arrivals;
use crate::kinds;
use crate::ranking::Entry;

/// One message at its destination.
#[derive(Clone, Debug, Default)]
pub(crate) struct Incoming {
    pub(crate) arrivals: Arrivals,
    pub(crate) src: NodeId,
    pub(crate) dst: NodeId,
    pub(crate) size: Bytes,
    pub(crate) is_open: bool,
    entropy: u16,
    /// Rises with each message that is met.
    pub(crate) order: u64,
    /// Its place among the messages of its host that need grants, if it does.
    pub(crate) entry: Option<Entry>,
    /// Packets in the message.
    pub(crate) total: u64,
    /// Whether any of them has arrived.
    pub(crate) has_data: bool,
    /// Packets that the sender may send, as far as the receiver has said.
    pub(crate) granted: u64,
    /// Priority in the last grant.
    pub(crate) level: u8,
    /// Priority of the least urgent packets that may be under way.
    pub(crate) urgency: u8,
}

impl Incoming {
    /// Meets the message of a packet, whose unscheduled packets have the priority `level`.
    pub(crate) fn open(&mut self, packet: &Packet, framing: Framing, level: u8, order: u64) {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        arrivals.clear();
        let size = Bytes::new(packet.word);
        let total = framing.packets(size);
        *self = Self {
            arrivals,
            src: packet.src,
            dst: packet.dst,
            size,
            is_open: true,
            entropy: packet.entropy,
            order,
            total,
            granted: packet.ack.min(total),
            level,
            urgency: level,
            ..Self::default()
        };
    }

    /// A control packet to the sender.
    pub(crate) fn say(&self, flow: FlowKey, kind: Kind, wire: u16) -> Packet {
        Packet {
            flow,
            src: self.dst,
            dst: self.src,
            entropy: self.entropy,
            path: self.entropy,
            wire,
            kind,
            priority: 0,
            ..Packet::default()
        }
    }

    /// Whether all packets are here.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        self.total == self.arrivals.count()
    }

    /// Whether packets are under way, as far as the receiver knows.
    #[inline]
    pub(crate) fn expects(&self) -> bool {
        self.has_data && self.arrivals.count() < self.granted
    }

    /// Grants up to a round trip of `window` packets beyond what has arrived: the grant, if it says
    /// anything new.
    #[inline]
    pub(crate) fn grant(
        &mut self,
        flow: FlowKey,
        window: u64,
        level: u8,
        wire: u16,
    ) -> Option<Packet> {
        let target = (self.arrivals.count() + window).min(self.total);
        if target <= self.granted {
            return None;
        }
        let is_clear = self.arrivals.count() == self.granted;
        self.urgency = if is_clear { level } else { self.urgency.max(level) };
        (self.granted, self.level) = (target, level);
        let word = u64::from(level);
        Some(Packet { ack: target, word, ..self.say(flow, kinds::GRANT, wire) })
    }

    /// Asks for the first gap.
    pub(crate) fn ask(&self, flow: FlowKey, wire: u16) -> Packet {
        let first = self.arrivals.next();
        let end = self.arrivals.gap_end(self.granted);
        let seq = u64::from(self.level);
        Packet { ack: first, word: end, seq, ..self.say(flow, kinds::RESEND, wire) }
    }
}
