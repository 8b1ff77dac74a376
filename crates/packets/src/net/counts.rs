//! What the network counts.

use kernel::{Digest, Time};

use crate::packet::Packet;

/// Queue lengths are kept in steps of this many bytes: the smallest packet (our choice).
pub(crate) const STEP: u64 = 64;

/// Counts since the start, and peaks since the last sample.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Packets put on a line, link frames apart; and those of them with payload.
    pub(crate) hops: u64,
    pub(crate) payload_hops: u64,
    /// Of every hop and every end of a flow.
    pub(crate) digest: Digest,
    /// Frames of links that arrived.
    pub(crate) link_frames: u64,
    /// Dropped: a queue or buffer was full.
    pub(crate) overflows: u64,
    /// Dropped: no way leads to the destination.
    pub(crate) unroutable: u64,
    /// Dropped: sent to, waiting for or on a link that was down.
    pub(crate) dead_link: u64,
    /// Dropped: lost at random.
    pub(crate) lost: u64,
    /// Dropped: a bit was flipped.
    pub(crate) corrupted: u64,
    /// Dropped: the switch's program did not want it.
    pub(crate) refused: u64,
    /// Held by the program of a switch now.
    pub(crate) kept: u64,
    /// Arrived after its flow was closed.
    pub(crate) stray: u64,
    pub(crate) trimmed: u64,
    pub(crate) returned: u64,
    pub(crate) marked: u64,
    pub(crate) pauses: u64,
    /// The most bytes that one lossless priority held of what came in by one port.
    pub(crate) ingress_max: u32,
    pub(crate) retransmissions: u64,
    pub(crate) reorder_max: u64,
    /// Packets in switches' queues now.
    pub(crate) queued: u64,
    /// The longest port queue, in bytes and in packets.
    pub(crate) queue_max: u32,
    pub(crate) queue_max_packets: u32,
    /// The longest since the last sample, in bytes.
    pub(crate) queue_peak: u32,
    /// How many packets found a queue of so many times [`STEP`], rounded up.
    found: Vec<u64>,
}

impl Counts {
    /// All packets dropped in the network.
    pub(crate) fn drops(&self) -> u64 {
        let by_chance = self.lost + self.corrupted;
        self.overflows + self.unroutable + self.dead_link + self.refused + by_chance
    }

    /// Adds what another part has counted.
    pub(crate) fn add(&mut self, other: &Self) {
        let sums = [
            (&mut self.hops, other.hops),
            (&mut self.payload_hops, other.payload_hops),
            (&mut self.link_frames, other.link_frames),
            (&mut self.overflows, other.overflows),
            (&mut self.unroutable, other.unroutable),
            (&mut self.dead_link, other.dead_link),
            (&mut self.lost, other.lost),
            (&mut self.corrupted, other.corrupted),
            (&mut self.refused, other.refused),
            (&mut self.kept, other.kept),
            (&mut self.stray, other.stray),
            (&mut self.trimmed, other.trimmed),
            (&mut self.returned, other.returned),
            (&mut self.marked, other.marked),
            (&mut self.pauses, other.pauses),
            (&mut self.retransmissions, other.retransmissions),
            (&mut self.queued, other.queued),
        ];
        sums.into_iter().for_each(|(sum, count)| *sum += count);
        self.digest.add(other.digest);
        let largest = [
            (&mut self.ingress_max, other.ingress_max),
            (&mut self.queue_max, other.queue_max),
            (&mut self.queue_max_packets, other.queue_max_packets),
            (&mut self.queue_peak, other.queue_peak),
        ];
        largest.into_iter().for_each(|(most, count)| *most = (*most).max(count));
        self.reorder_max = self.reorder_max.max(other.reorder_max);
        if self.found.len() < other.found.len() {
            self.found.resize(other.found.len(), 0);
        }
        self.found.iter_mut().zip(&other.found).for_each(|(sum, count)| *sum += count);
    }

    /// A packet, no frame of the link, goes on the line of `port`.
    #[inline]
    pub(crate) fn launched(&mut self, packet: &Packet, port: u32, now: Time) {
        self.hops += 1;
        self.payload_hops += u64::from(packet.payload > 0);
        let (from, to) = (u64::from(packet.src.get()), u64::from(packet.dst.get()));
        let what = packet.seq ^ u64::from(packet.flow.get()) << 32 ^ from << 20 ^ to << 44;
        self.digest.note(now.as_ps() ^ u64::from(port) << 36, what);
    }

    /// A packet finds `bytes` waiting.
    #[inline]
    pub(crate) fn found(&mut self, bytes: u32) {
        let step = u64::from(bytes).div_ceil(STEP) as usize;
        if self.found.len() <= step {
            self.found.resize(step + 1, 0);
        }
        self.found[step] += 1;
    }

    /// The queue length that 99 % of arriving packets did not find exceeded, in bytes.
    pub(crate) fn found_p99(&self) -> u64 {
        let total: u64 = self.found.iter().sum();
        let wanted = total - total / 100;
        let mut seen = 0;
        let step = self.found.iter().position(|&count| {
            seen += count;
            seen >= wanted
        });
        step.unwrap_or(0) as u64 * STEP
    }

    #[inline]
    pub(crate) fn queue_grew(&mut self, bytes: u32, packets: u32) {
        self.queued += 1;
        self.queue_max = self.queue_max.max(bytes);
        self.queue_max_packets = self.queue_max_packets.max(packets);
        self.queue_peak = self.queue_peak.max(bytes);
    }

    #[inline]
    pub(crate) fn queue_shrank(&mut self) {
        self.queued -= 1;
    }
}
