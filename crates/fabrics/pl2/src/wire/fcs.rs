//! The frame check sequence of Ethernet (IEEE 802.3 §3.2.9): CRC-32, least significant byte first.

use crc::{CRC_32_ISO_HDLC, Crc, Table};

/// The checksum by a table of 16 steps, for a frame is checked whole.
static CHECKSUM: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);

/// Bytes of the sequence.
pub const BYTES: usize = 4;

/// The sequence that follows `frame`.
#[must_use]
pub fn sequence(frame: &[u8]) -> [u8; BYTES] {
    CHECKSUM.checksum(frame).to_le_bytes()
}

/// Writes the sequence into the last bytes of a frame; nothing, if it is shorter than that.
pub fn seal(frame: &mut [u8]) {
    if let Some((body, last)) = frame.split_last_chunk_mut::<BYTES>() {
        *last = sequence(body);
    }
}

/// Whether the last bytes of a frame are its sequence.
#[must_use]
pub fn is_intact(frame: &[u8]) -> bool {
    frame.split_last_chunk::<BYTES>().is_some_and(|(body, last)| sequence(body) == *last)
}
