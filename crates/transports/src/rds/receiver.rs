//! The receiving half of an RDS message.
//!
//! Models: PL2 §6.1: a packet that comes before an earlier one tells that the earlier one is lost, and
//! the sender hears of it at once; where a whole burst is lost, or what was sent again is, only silence
//! tells.

use packets::{Kind, Packet};

use super::sender::Outgoing;
use crate::arrivals::Arrivals;

/// One message at its destination.
#[derive(Clone, Debug, Default)]
pub(crate) struct Incoming {
    pub(crate) arrivals: Arrivals,
    /// Whether a packet has arrived, so that the receiver knows of the message.
    pub(crate) is_known: bool,
    /// Packets that the sender may send, as far as the receiver has said; the blind ones too.
    pub(crate) granted: u64,
    /// One more than the highest packet that has arrived.
    seen: u64,
    /// Time-outs since a packet has arrived.
    pub(crate) silences: u32,
}

impl Incoming {
    /// Waits for a message.
    pub(crate) fn open(&mut self) {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        arrivals.clear();
        *self = Self { arrivals, ..Self::default() };
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

/// A control packet from the receiver of `message`.
pub(crate) fn answer(message: &Outgoing, kind: Kind, wire: u16) -> Packet {
    let packet = message.say(kind, wire);
    Packet { src: packet.dst, dst: packet.src, ..packet }
}
