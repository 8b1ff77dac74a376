//! The configuration of remote memory as the engine looks at it.

use kernel::{Bytes, Rate, Span};

use crate::config;
use crate::link::classes::Half;
use crate::link::header::{CELL_STEP, HEADER_BYTES};

/// The configuration as the engine looks at it. Times in ps, sizes in bytes.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) half: Half,
    pub(super) segment: u32,
    pub(super) payload: u32,
    pub(super) tag: u32,
    pub(super) window: u32,
    pub(super) slots: u16,
    pub(super) queue: usize,
    pub(super) deadline: u64,
    pub(super) request_gap: u64,
    pub(super) request_time: u64,
    pub(super) landing_time: u64,
    pub(super) doorbell: u64,
    pub(super) read: u64,
    pub(super) rate: Rate,
    pub(super) completion: u64,
    pub(super) reads: u32,
    pub(super) software: config::Software,
    pub(super) power: config::Power,
    pub(super) hops: u8,
}

impl Settings {
    pub(super) fn new(rma: &config::Rma, hops: u8) -> Self {
        let bytes = |of: Bytes| of.get() as u32;
        let ps = |of: Span| of.as_ps();
        Self {
            half: rma.half,
            segment: bytes(rma.segment),
            payload: bytes(rma.payload),
            tag: bytes(rma.tag),
            window: bytes(rma.window),
            slots: rma.slots,
            queue: rma.queue as usize,
            deadline: ps(rma.deadline),
            request_gap: ps(rma.request_gap),
            request_time: ps(rma.request_time),
            landing_time: ps(rma.landing_time),
            doorbell: ps(rma.pcie.doorbell),
            read: ps(rma.pcie.read),
            rate: rma.pcie.rate,
            completion: ps(rma.pcie.completion),
            reads: bytes(rma.pcie.reads),
            software: rma.software.clone(),
            power: rma.power.clone(),
            hops,
        }
    }

    /// Blocks of a cell with so many bytes behind its header.
    pub(super) fn blocks(bytes: u32) -> u8 {
        let whole = bytes + u32::from(HEADER_BYTES);
        (whole.next_multiple_of(CELL_STEP.into()) / u32::from(CELL_STEP)) as u8
    }

    /// Blocks of a response with so many bytes of memory.
    pub(super) fn response_blocks(&self, bytes: u32) -> u8 {
        let header = crate::cells::rma::RESPONSE_HEADER_BYTES as u32;
        Self::blocks(header + bytes.next_multiple_of(8) + self.tag)
    }
}
