//! PL2's frames, bit for bit.
//!
//! Models: PL2 §4.1, §4.4, §5 (claims M15 to M18): reservations and grants as Ethernet frames of 64
//! bytes with an 802.1Q tag of the highest priority, and the mark on data that goes unsolicited. The
//! paper gives the size, the priority and which numbers travel; **our choices** are the layout
//! ([`control`]), what the mark looks like and what else it says ([`tag`]), big endian, and that a
//! reader accepts exactly what a writer writes: spare bits are zero, and the frame check sequence is
//! right.

pub mod control;
pub mod fcs;
pub mod tag;
#[cfg(test)]
mod tests;

use kernel::Bytes;
pub use packets::wire::Address;

pub use control::{Control, Flags, Opcode};
pub use tag::Tag;

/// Bytes of a control frame, its frame check sequence included (§5): the smallest that Ethernet has
/// (IEEE 802.3 §4.4.2).
pub const CONTROL_BYTES: usize = 64;
/// Header and frame check sequence of an Ethernet frame (IEEE 802.3 §3.1.1).
pub const ENVELOPE: Bytes = Bytes::new(14 + 4);
/// Preamble, start of frame and the gap between frames (IEEE 802.3 §3.1.1, §4.4.2).
pub const SPACING: Bytes = Bytes::new(8 + 12);
/// What a frame takes on the wire beside its packet: 38 bytes.
pub const OVERHEAD: Bytes = Bytes::new(ENVELOPE.get() + SPACING.get());

/// Time on the wire, in bytes, of a packet of `size`: with its envelope, filled up to the smallest
/// frame, and the spacing; `tag` more if it is tagged.
#[inline]
#[must_use]
pub fn on_the_wire(size: Bytes, tag: Bytes) -> Bytes {
    let least = Bytes::new(CONTROL_BYTES as u64);
    (size + ENVELOPE + tag).max(least) + SPACING
}

/// Why bytes are no frame of PL2's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WireError {
    /// Too few or too many bytes.
    #[error("{found} bytes; expected {expected}")]
    Length {
        /// Bytes of such a frame.
        expected: usize,
        /// Bytes that there are.
        found: usize,
    },
    /// The frame check sequence is wrong.
    #[error("the frame check sequence is wrong")]
    Corrupted,
    /// A field has a value that no writer writes.
    #[error("{field}: {value:#x}")]
    Field {
        /// Which.
        field: &'static str,
        /// What it holds.
        value: u64,
    },
}
