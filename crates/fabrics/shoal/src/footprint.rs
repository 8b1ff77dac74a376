//! How much of the computer's memory a simulated rack takes, estimated before it is allocated.
//!
//! Most of it is state for each pair of nodes. Counted is what a rack has before the first flow, and the
//! cells that are on the wires when all send; what flows and queued cells add depends on the workload, and
//! is small beside it. Faults add a quarter or so.

use std::mem::size_of;

use kernel::Bytes;
use rack::Estimate;

use crate::config::{Config, Transport};
use crate::nic::{BYTES_PER_FLOW, BYTES_PER_LINK, BYTES_PER_SENT, FLOWS_AT_FIRST};
use crate::schedule::Order;
use crate::wire::notice_words;

/// Slot numbers, epochs and indices of the tables below.
const WORD: u128 = 8;
const HALF: u128 = 4;
const QUARTER: u128 = 2;

impl Config {
    /// An estimate of the memory that a rack of this configuration takes, without faults and before any
    /// flow; of any configuration, also one that [`Config::plan`] refuses. Takes none itself.
    #[must_use]
    pub fn memory(&self) -> Bytes {
        let losses = if self.may_lose_cells() { self.losses_memory() } else { Bytes::ZERO };
        Estimate::new().plus(self.lossless_memory()).plus(losses).bytes()
    }

    /// What it takes on top of that where something fails. Unit: bytes.
    #[must_use]
    pub fn failures_memory(&self) -> Bytes {
        let losses = if self.may_lose_cells() { Bytes::ZERO } else { self.losses_memory() };
        Estimate::new().plus(losses).plus(self.reach_memory()).bytes()
    }

    /// What a rack takes that loses no cell.
    fn lossless_memory(&self) -> Bytes {
        let (nodes, channels) = (u128::from(self.nodes), u128::from(self.channels.max(1)));
        let classes = u128::from(self.classes.max(1));
        let positions = nodes.div_ceil(channels) * channels;
        let slots = (positions / channels).max(1);
        let (delay, depth) = self.delay_and_depth(slots);
        let (met, pairs) = (positions * nodes, nodes * nodes);
        // The links, the feedback matrix and its epochs, which flow is whose, what is busy.
        let mut bytes = met * classes * BYTES_PER_LINK
            + 2 * positions * (FLOWS_AT_FIRST * nodes + 1) * HALF
            + pairs * classes * QUARTER
            + positions * nodes.div_ceil(64) * WORD;
        // Flows at their sources; pairs above the NICs and their sequence numbers, at both ends.
        bytes += nodes * FLOWS_AT_FIRST * BYTES_PER_FLOW + pairs * classes * 4 * HALF;
        if depth > 1 {
            bytes = bytes.saturating_add(met.saturating_mul(depth).saturating_mul(QUARTER));
        }
        // Cells on the wires.
        let frame = size_of::<crate::cell::Frame>() as u128;
        let slot = size_of::<crate::flight::Arrivals>() as u128 + nodes * channels * frame;
        bytes = bytes.saturating_add(delay.saturating_mul(slot));
        Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// What nodes know of who reaches whom, once something has failed: what each has heard from each other,
    /// has still to tell it, and by way of whom it reaches it.
    fn reach_memory(&self) -> Bytes {
        let pairs = u128::from(self.nodes).saturating_mul(u128::from(self.nodes));
        let payload = self.cell.get().saturating_sub(self.header.get());
        let per_cell = (notice_words(payload as usize) as u128).clamp(1, 1 << 10);
        let segments = u128::from(self.nodes).div_ceil(64).div_ceil(per_cell).min(16);
        let bytes = pairs.saturating_mul(segments * 2 * HALF + 2 * QUARTER);
        Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// What being able to lose cells takes: copies of what was sent, and the switches' schedules.
    fn losses_memory(&self) -> Bytes {
        let (nodes, channels) = (u128::from(self.nodes), u128::from(self.channels.max(1)));
        let positions = nodes.div_ceil(channels) * channels;
        let (_, depth) = self.delay_and_depth((positions / channels).max(1));
        let (met, pairs) = (positions * nodes, nodes * nodes);
        let copies = met.saturating_mul(depth).saturating_mul(BYTES_PER_SENT);
        let tables = (met + 2 * pairs) * QUARTER + pairs;
        Bytes::new(u64::try_from(copies.saturating_add(tables)).unwrap_or(u64::MAX))
    }

    fn may_lose_cells(&self) -> bool {
        self.queue_limit > 0 || self.bit_error_rate > 0.0 || self.transport == Transport::Reliable
    }

    /// Slots from sending a cell to acting on it, and epochs until feedback on it comes.
    fn delay_and_depth(&self, slots: u128) -> (u128, u128) {
        let slot = u128::from(self.slot.as_ps().max(1));
        let switches = if self.nodes <= self.radix { 1 } else { 3 };
        let latency = u128::from(self.wire_latency.as_ps())
            + u128::from(self.switch_latency.as_ps()) * switches
            + u128::from(self.nic_latency.as_ps());
        // The guard band and the cell are a slot at most.
        let delay = 1 + latency.div_ceil(slot);
        let (gap, spread) = match self.schedule {
            Order::PropagationAware => (slots / 2, 0),
            Order::Cyclic => (0, slots - 1),
        };
        let wait = gap + delay.saturating_sub(gap).div_ceil(slots) * slots;
        let depth = (wait + spread + delay).div_ceil(slots).max(1);
        (delay + 1, depth)
    }
}
