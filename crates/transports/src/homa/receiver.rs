//! The receiving half of a Homa message.
//!
//! Models: Homa §3.3 (grants keep a round trip's bytes granted but not received) and §3.7 (a
//! receiver that hears nothing asks for the first gap).

use packets::{Kind, Packet};

use super::sender::Outgoing;
use crate::arrivals::Arrivals;
use crate::ranking::Entry;

/// One message at its destination.
#[derive(Clone, Debug, Default)]
pub(crate) struct Incoming {
    pub(crate) arrivals: Arrivals,
    /// Its place among the messages of its host that need grants, if it does.
    pub(crate) entry: Option<Entry>,
    /// Packets in the message, once one has arrived.
    pub(crate) total: Option<u64>,
    /// Packets that the sender may send, as far as the receiver has said.
    pub(crate) granted: u64,
    /// Priority in the last grant.
    pub(crate) level: u8,
    /// Priority of the least urgent packets that may be under way.
    pub(crate) urgency: u8,
}

impl Incoming {
    /// Waits for a message of which `unscheduled` packets come without a grant.
    pub(crate) fn open(&mut self, unscheduled: u64, level: u8) {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        arrivals.clear();
        *self = Self { arrivals, granted: unscheduled, level, urgency: level, ..Self::default() };
    }

    /// Whether all packets are here.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        self.total == Some(self.arrivals.count())
    }

    /// Whether packets are under way, as far as the receiver knows.
    #[inline]
    pub(crate) fn expects(&self) -> bool {
        self.total.is_some() && self.arrivals.count() < self.granted
    }

    /// Grants up to a round trip of `window` packets beyond what has arrived: the grant, if it says
    /// anything new.
    #[inline]
    pub(crate) fn grant(
        &mut self,
        window: u64,
        level: u8,
        message: &Outgoing,
        wire: u16,
    ) -> Option<Packet> {
        let target = (self.arrivals.count() + window).min(message.total);
        if target <= self.granted {
            return None;
        }
        let is_clear = self.arrivals.count() == self.granted;
        self.urgency = if is_clear { level } else { self.urgency.max(level) };
        (self.granted, self.level) = (target, level);
        let word = u64::from(level);
        Some(Packet { ack: target, word, ..answer(message, Kind::Grant, wire) })
    }

    /// Asks for the first gap.
    pub(crate) fn ask(&self, message: &Outgoing, wire: u16) -> Packet {
        let first = self.arrivals.next();
        let end = self.arrivals.gap_end(self.granted);
        let seq = u64::from(self.level);
        Packet { ack: first, word: end, seq, ..answer(message, Kind::Resend, wire) }
    }
}

/// A control packet from the receiver of `message`.
pub(crate) fn answer(message: &Outgoing, kind: Kind, wire: u16) -> Packet {
    let packet = message.say(kind, wire);
    Packet { src: packet.dst, dst: packet.src, ..packet }
}
