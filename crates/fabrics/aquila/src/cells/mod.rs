//! What cells carry behind their headers.
//!
//! Models: Aquila §3.3, §3.4 (M408, M414, M415, M417, M504, M507, M510, M902). **Our choice** where the paper
//! gives fields and no layout, which is nearly everywhere.
//!
//! Bytes from a network are refused, never trusted: `decode` says what is wrong.

pub mod ip;
pub mod rma;
pub mod trace;

use thiserror::Error;

/// Why bytes behind a header are not what its type says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum PayloadError {
    /// There are too few.
    #[error("{found} bytes; expected {expected}")]
    Length {
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// Bits are set that have no meaning.
    #[error("spare bits are set")]
    Spare,
    /// A field has a value that means nothing.
    #[error("{field} is {value}; expected {expected}")]
    Value {
        /// Which.
        field: &'static str,
        /// What it is.
        value: u32,
        /// What it could be.
        expected: &'static str,
    },
}

/// Exactly so many bytes.
fn exactly<const N: usize>(bytes: &[u8]) -> Result<[u8; N], PayloadError> {
    let error = PayloadError::Length { found: bytes.len(), expected: N };
    bytes.try_into().map_err(|_| error)
}

/// Bits of `word` from `low` on, counted from the least significant.
const fn bits(word: u64, low: u32, width: u32) -> u64 {
    word >> low & ((1 << width) - 1)
}

/// `value` at `low`.
///
/// # Panics
/// If it is wider than that.
fn put(value: u64, low: u32, width: u32) -> u64 {
    assert!(value >> width == 0, "{value} in {width} bits");
    value << low
}
