//! Packets cut into cells and put together again.
//!
//! Models: Shoal §3.3.1, §3.5 (claims S27, S28): packets are cut into fixed-size cells at the
//! source and rebuilt at the destination from the start-of-packet and end-of-packet marks.
//!
//! The header has no length, so a receiver could not tell data from the filling of a last cell.
//! **Our choice**: as in ATM's AAL5, the last two bytes of the last cell hold the packet's length;
//! a packet that leaves no room for them takes one cell more.
//!
//! This file is the arithmetic, for models that carry no bytes; [`frames`] does it to real ones.

pub mod frames;

use kernel::Bytes;
use rack::Problem;

use crate::wire::Header;

pub use frames::{FrameCell, FramingError, Reassembler, segment};

/// Bytes at the end of a packet's last cell that hold the packet's length.
pub const TRAILER_BYTES: u64 = 2;

/// The longest packet whose length fits the trailer.
pub const PACKET_BYTES_MAX: u64 = 0xFFFF;

/// Bytes of application data in a full packet. Shoal §7.3 uses 1500 B packets for its baselines and
/// names none for itself; **our choice** is the same.
pub const PACKET_BYTES_DEFAULT: u64 = 1500;

/// Bytes of a cell behind its header: 64 B cells with 8 B headers (§3.5, §7.1).
pub const PAYLOAD_BYTES_DEFAULT: u64 = 56;

/// Where in its packet a cell stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// First of several.
    First,
    /// Neither first nor last.
    Middle,
    /// Last of several.
    Last,
    /// First and last.
    Only,
}

impl Place {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::First, Self::Middle, Self::Last, Self::Only];

    /// The place that the two marks of a cell header tell.
    #[must_use]
    pub fn told_by(header: &Header) -> Self {
        match (header.start_of_packet, header.end_of_packet) {
            (true, false) => Self::First,
            (false, false) => Self::Middle,
            (false, true) => Self::Last,
            (true, true) => Self::Only,
        }
    }

    /// The place of the cell with this index, from 0, of a packet of `cells`.
    #[must_use]
    pub fn of_cell(index: u64, cells: u64) -> Self {
        match (index, cells) {
            (0, 1) => Self::Only,
            (0, _) => Self::First,
            (index, cells) if index + 1 == cells => Self::Last,
            _ => Self::Middle,
        }
    }

    /// The start-of-packet mark.
    #[must_use]
    pub fn is_start(self) -> bool {
        matches!(self, Self::First | Self::Only)
    }

    /// The end-of-packet mark.
    #[must_use]
    pub fn is_end(self) -> bool {
        matches!(self, Self::Last | Self::Only)
    }
}

/// One cell of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    /// Where in its packet it stands.
    pub place: Place,
    /// Application bytes in it; the rest of its payload is filling and length.
    pub data: Bytes,
}

/// How flows become cells: every packet of a flow is full, except the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CellPlan {
    packet: u64,
    payload: u64,
    cells_per_packet: u64,
}

impl CellPlan {
    /// Packets of `packet` application bytes in cells of `payload` bytes behind the header.
    ///
    /// # Errors
    /// If a packet is empty or too long for its trailer, or a cell does not hold the trailer.
    pub fn new(packet: Bytes, payload: Bytes) -> Result<Self, Problem> {
        let (packet, payload) = (packet.get(), payload.get());
        if !(1..=PACKET_BYTES_MAX).contains(&packet) {
            let message = format!("{packet} B: a packet holds 1 to {PACKET_BYTES_MAX} bytes");
            return Err(Problem::new("packet", message));
        }
        if payload <= TRAILER_BYTES {
            let message = format!(
                "{payload} B of payload: a cell holds more than the {TRAILER_BYTES} bytes of a \
                 packet's length; make the cell larger"
            );
            return Err(Problem::new("cell", message));
        }
        let mut plan = Self { packet, payload, cells_per_packet: 0 };
        plan.cells_per_packet = plan.cells_of_packet(packet);
        Ok(plan)
    }

    /// Application bytes of a full packet.
    #[must_use]
    pub fn packet(&self) -> Bytes {
        Bytes::new(self.packet)
    }

    /// Bytes of a cell behind its header.
    #[must_use]
    pub fn payload(&self) -> Bytes {
        Bytes::new(self.payload)
    }

    /// Cells of a full packet.
    #[must_use]
    pub fn cells_per_packet(&self) -> u64 {
        self.cells_per_packet
    }

    /// How many cells carry a flow of `size` bytes.
    #[must_use]
    pub fn cells(&self, size: Bytes) -> u64 {
        let (full, rest) = (size.get() / self.packet, size.get() % self.packet);
        full * self.cells_per_packet + if rest == 0 { 0 } else { self.cells_of_packet(rest) }
    }

    /// The cell with this index, counted from 0, of a flow of `size` bytes.
    ///
    /// # Panics
    /// If the flow has no such cell.
    #[must_use]
    pub fn cell(&self, size: Bytes, index: u64) -> Cell {
        let (packet, within) = (index / self.cells_per_packet, index % self.cells_per_packet);
        let before = packet * self.packet;
        assert!(before < size.get(), "cell {index} of a flow of {size}");
        let length = self.packet.min(size.get() - before);
        let cells = self.cells_of_packet(length);
        assert!(within < cells, "cell {index} of a flow of {size}");
        let data = length.saturating_sub(within * self.payload).min(self.payload);
        Cell { place: Place::of_cell(within, cells), data: Bytes::new(data) }
    }

    /// Application bytes in the first `count` cells of a flow of `size` bytes.
    #[must_use]
    pub fn data_before(&self, size: Bytes, count: u64) -> Bytes {
        let (packets, within) = (count / self.cells_per_packet, count % self.cells_per_packet);
        let started = (within * self.payload).min(self.packet);
        Bytes::new((packets * self.packet + started).min(size.get()))
    }

    /// Cells of a packet of `length` bytes, its trailer included.
    fn cells_of_packet(&self, length: u64) -> u64 {
        (length + TRAILER_BYTES).div_ceil(self.payload)
    }
}

#[cfg(test)]
mod tests;
