//! Segmentation and reassembly of real bytes.
//!
//! Models: Shoal §3.5 (claim S28). Cells reach [`Reassembler`] in order and once each
//! ([`crate::reorder`] sees to that); what a sender did wrong is named and the next packet is taken
//! up again at its start-of-packet mark.

use super::{PACKET_BYTES_MAX, Place, TRAILER_BYTES};

/// Bytes of the trailer, as an index.
const TRAILER: usize = TRAILER_BYTES as usize;

/// What follows the header of one cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameCell {
    /// Where in its packet the cell stands.
    pub place: Place,
    /// Data, filling and, in the last cell, the length: always the full payload.
    pub payload: Vec<u8>,
}

/// Cuts a packet into cells with `payload` bytes behind the header.
///
/// # Panics
/// If the packet is empty or too long for its trailer, or a cell does not hold the trailer.
pub fn segment(packet: &[u8], payload: usize) -> impl Iterator<Item = FrameCell> + '_ {
    let length = packet.len();
    assert!(payload > TRAILER, "a payload of {payload} bytes has no room for data and length");
    let trailer = match u16::try_from(length) {
        Ok(length) if length > 0 => length.to_be_bytes(),
        _ => panic!("a packet of {length} bytes: 1 to {PACKET_BYTES_MAX} make a packet"),
    };
    let cells = (length + TRAILER).div_ceil(payload);
    (0..cells).map(move |cell| {
        let data = packet.get(cell * payload..).unwrap_or(&[]);
        let data = &data[..data.len().min(payload)];
        let mut bytes = data.to_vec();
        bytes.resize(payload, 0);
        let place = Place::of_cell(cell as u64, cells as u64);
        if place.is_end() {
            bytes[payload - TRAILER..].copy_from_slice(&trailer);
        }
        FrameCell { place, payload: bytes }
    })
}

/// Why cells do not make a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FramingError {
    /// A packet starts before the one before it has ended; the earlier one is lost.
    #[error("a packet starts while {bytes} bytes of another wait for their end")]
    Unfinished {
        /// How many bytes are lost.
        bytes: usize,
    },
    /// A cell belongs to no packet.
    #[error("a cell belongs to no packet")]
    Stray,
    /// A packet has more cells than the longest one has; it is lost.
    #[error("a packet does not end within {PACKET_BYTES_MAX} bytes")]
    Endless,
    /// A packet's length does not go with its number of cells; it is lost.
    #[error("a packet of {length} bytes came in {cells} cells")]
    Length {
        /// The length in its trailer.
        length: usize,
        /// Its cells.
        cells: usize,
    },
    /// A cell's payload has the wrong size; it is ignored.
    #[error("a cell has {found} bytes of payload instead of {expected}")]
    Payload {
        /// Bytes found.
        found: usize,
        /// Bytes of every payload here.
        expected: usize,
    },
}

/// Puts the packets of one sender together.
#[derive(Clone, Debug)]
pub struct Reassembler {
    payload: usize,
    /// Payloads of the packet that is under way; empty: none is.
    waiting: Vec<u8>,
}

impl Reassembler {
    /// For cells with `payload` bytes behind the header.
    ///
    /// # Panics
    /// If a cell does not hold the trailer.
    #[must_use]
    pub fn new(payload: usize) -> Self {
        assert!(payload > TRAILER, "a payload of {payload} bytes has no room for data and length");
        Self { payload, waiting: Vec::new() }
    }

    /// Takes the next cell in order; returns the packet that it completes.
    ///
    /// # Errors
    /// If the cell does not continue what came before. A cell that starts a packet is taken up all
    /// the same, unless it is also its end.
    pub fn push(&mut self, place: Place, payload: &[u8]) -> Result<Option<Vec<u8>>, FramingError> {
        if payload.len() != self.payload {
            let (found, expected) = (payload.len(), self.payload);
            return Err(FramingError::Payload { found, expected });
        }
        let under_way = self.waiting.len();
        if place.is_start() && under_way > 0 {
            self.waiting.clear();
            if place == Place::First {
                self.waiting.extend_from_slice(payload);
            }
            return Err(FramingError::Unfinished { bytes: under_way });
        }
        if !place.is_start() && under_way == 0 {
            return Err(FramingError::Stray);
        }
        self.waiting.extend_from_slice(payload);
        if place.is_end() {
            return self.complete().map(Some);
        }
        if self.waiting.len() >= PACKET_BYTES_MAX as usize + TRAILER {
            self.waiting.clear();
            return Err(FramingError::Endless);
        }
        Ok(None)
    }

    /// Takes the packet out of the payloads.
    fn complete(&mut self) -> Result<Vec<u8>, FramingError> {
        let mut packet = std::mem::take(&mut self.waiting);
        let cells = packet.len() / self.payload;
        let end = packet.len() - TRAILER;
        let length = usize::from(u16::from_be_bytes([packet[end], packet[end + 1]]));
        if length == 0 || (length + TRAILER).div_ceil(self.payload) != cells {
            return Err(FramingError::Length { length, cells });
        }
        packet.truncate(length);
        Ok(packet)
    }
}
