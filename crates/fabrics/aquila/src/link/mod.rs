//! What crosses a link: cells with their headers, ordered sets between them, credits.
//!
//! Models: Aquila §3.1, §3.5, App. B (M201 to M219), as bits; when they cross is the engine's affair.

pub mod classes;
pub mod credits;
pub mod header;
pub mod ordered_sets;

#[cfg(test)]
mod credits_tests;

use crc::{CRC_8_SMBUS, Crc, Table};

/// Division by x^8 + x^2 + x + 1, polynomial 0x07, most significant bit first, nothing preset (our choice,
/// M207: it catches all errors of one, two or three bits in 64).
static DIVISION: Crc<u8, Table<16>> = Crc::<u8, Table<16>>::new(&CRC_8_SMBUS);

/// The last byte of eight, which follows from the others.
fn checksum(bytes: [u8; 8]) -> u8 {
    DIVISION.checksum(&bytes[..7])
}

/// Bits of `word` from `low` on, counted from the least significant.
const fn bits(word: u64, low: u32, width: u32) -> u64 {
    word >> low & ((1 << width) - 1)
}
