//! The header that every cell begins with.
//!
//! Models: Aquila §3.1 (M206, M207): 8 bytes with both addresses, the cell's length and type, its virtual
//! channel, a hop count, a trace bit and a CRC of 8 bits. **Our choice**: widths and places of what the paper
//! gives none for.
//!
//! | byte | field | bits |
//! | --- | --- | --- |
//! | 0 | destination | 16 |
//! | 2 | source | 16 |
//! | 4 | length in bytes, header and all: 16 to 160, a multiple of 8 | 8 |
//! | 5 | type | 5 |
//! | 5.5 | virtual channel | 5 |
//! | 6.2 | hops left | 5 |
//! | 6.7 | trace | 1 |
//! | 7 | CRC-8 of bytes 0 to 6, polynomial 0x07 | 8 |

use thiserror::Error;

use super::classes::CellKind;
use super::{bits, checksum};
use crate::address::Address;

/// Bytes of a header (§3.1).
pub const HEADER_BYTES: u8 = 8;
/// Bytes of the shortest cell (§3.1).
pub const CELL_MIN: u8 = 16;
/// Bytes of the longest cell (§3.1).
pub const CELL_MAX: u8 = 160;
/// What lengths are multiples of (M206, our choice).
pub const CELL_STEP: u8 = 8;
/// Hops that a cell is sent with (M309, U60, our choice: twice the longest way).
pub const HOPS: u8 = 16;

/// A header.
///
/// ```
/// use aquila::address::{Address, Endpoint};
/// use aquila::link::classes::CellKind;
/// use aquila::link::header::{HOPS, Header};
/// let header = Header {
///     destination: Address::new(3, 7, Endpoint::HOST_1),
///     source: Address::new(0, 0, Endpoint::HOST_0),
///     length: 160,
///     kind: CellKind::Data,
///     vc: 21,
///     hops: HOPS,
///     is_traced: false,
/// };
/// assert_eq!(Header::decode(header.encode()), Ok(header));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Where it goes.
    pub destination: Address,
    /// Where it comes from.
    pub source: Address,
    /// The whole cell. Unit: bytes. A multiple of 8 from 16 to 160.
    pub length: u8,
    /// What it is.
    pub kind: CellKind,
    /// The virtual channel that it is on, below 32.
    pub vc: u8,
    /// Hops that it may still make, below 32.
    pub hops: u8,
    /// Whether TiNs on its way tell the collector of it.
    pub is_traced: bool,
}

/// Why eight bytes are no header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum HeaderError {
    /// Bits were flipped.
    #[error("its checksum is {found:#04x}; expected {expected:#04x}")]
    Checksum {
        /// What stands there.
        found: u8,
        /// What follows from the other bytes.
        expected: u8,
    },
    /// No cell is so long.
    #[error("a cell of {0} bytes; expected a multiple of 8 from 16 to 160")]
    Length(u8),
    /// No cell is of this type.
    #[error("a cell of type {0}; expected 0 to 8")]
    Kind(u8),
}

/// Whether a cell may be so long. Unit: bytes.
#[must_use]
pub const fn is_length(length: u8) -> bool {
    length >= CELL_MIN && length <= CELL_MAX && length.is_multiple_of(CELL_STEP)
}

impl Header {
    /// Its bytes, as they cross a link.
    ///
    /// # Panics
    /// If length, channel or hops are out of range.
    #[must_use]
    pub fn encode(&self) -> [u8; 8] {
        assert!(is_length(self.length), "a cell of {} bytes", self.length);
        assert!(self.vc < 32, "virtual channel {}", self.vc);
        assert!(self.hops < 32, "{} hops", self.hops);
        let word = u64::from(self.destination.bits()) << 48
            | u64::from(self.source.bits()) << 32
            | u64::from(self.length) << 24
            | (self.kind as u64) << 19
            | u64::from(self.vc) << 14
            | u64::from(self.hops) << 9
            | u64::from(self.is_traced) << 8;
        let mut bytes = word.to_be_bytes();
        bytes[7] = checksum(bytes);
        bytes
    }

    /// The header of these bytes.
    ///
    /// # Errors
    /// What is wrong with them; a damaged header is known by its checksum.
    pub fn decode(bytes: [u8; 8]) -> Result<Self, HeaderError> {
        let (found, expected) = (bytes[7], checksum(bytes));
        if found != expected {
            return Err(HeaderError::Checksum { found, expected });
        }
        let word = u64::from_be_bytes(bytes);
        let length = bytes[4];
        if !is_length(length) {
            return Err(HeaderError::Length(length));
        }
        let kind = bits(word, 19, 5) as u8;
        Ok(Self {
            destination: Address::from_bits(bits(word, 48, 16) as u16),
            source: Address::from_bits(bits(word, 32, 16) as u16),
            length,
            kind: CellKind::from_number(kind).ok_or(HeaderError::Kind(kind))?,
            vc: bits(word, 14, 5) as u8,
            hops: bits(word, 9, 5) as u8,
            is_traced: bits(word, 8, 1) != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Any header.
    fn headers() -> impl Strategy<Value = Header> {
        let kinds = prop::sample::select(&CellKind::ALL[..]);
        let fields = (any::<u16>(), any::<u16>(), 2..=20u8, kinds, 0..32u8, 0..32u8, any::<bool>());
        fields.prop_map(|(destination, source, steps, kind, vc, hops, is_traced)| Header {
            destination: Address::from_bits(destination),
            source: Address::from_bits(source),
            length: steps * CELL_STEP,
            kind,
            vc,
            hops,
            is_traced,
        })
    }

    proptest! {
        #[test]
        fn i10_every_header_comes_back(header in headers()) {
            prop_assert_eq!(Header::decode(header.encode()), Ok(header));
        }

        #[test]
        fn i10_any_bytes_are_refused_or_written_back_the_same(bytes in any::<[u8; 8]>()) {
            // With the right checksum, which random bytes seldom have.
            let mut sealed = bytes;
            sealed[7] = checksum(bytes);
            for bytes in [bytes, sealed] {
                if let Ok(header) = Header::decode(bytes) {
                    prop_assert_eq!(header.encode(), bytes);
                }
            }
        }

        #[test]
        fn i10_every_error_of_up_to_three_bits_is_caught(header in headers()) {
            let sent = u64::from_be_bytes(header.encode());
            let is_caught = |error: u64| {
                let arrived = Header::decode((sent ^ error).to_be_bytes());
                matches!(arrived, Err(HeaderError::Checksum { .. }))
            };
            for a in 0..64 {
                for b in a..64 {
                    for c in b..64 {
                        let error = 1u64 << a | 1 << b | 1 << c;
                        prop_assert!(is_caught(error), "{error:#018x}");
                    }
                }
            }
        }
    }

    #[test]
    fn i10_each_value_of_each_field_comes_back() {
        let plain = Header {
            destination: Address::default(),
            source: Address::default(),
            length: CELL_MIN,
            kind: CellKind::Rts,
            vc: 0,
            hops: 0,
            is_traced: false,
        };
        let check = |header: Header| assert_eq!(Header::decode(header.encode()), Ok(header));
        for bits in 0..=u16::MAX {
            check(Header { destination: Address::from_bits(bits), ..plain });
            check(Header { source: Address::from_bits(bits), ..plain });
        }
        for number in 0..32 {
            check(Header { vc: number, ..plain });
            check(Header { hops: number, is_traced: number % 2 == 1, ..plain });
        }
        for kind in CellKind::ALL {
            check(Header { kind, ..plain });
        }
        for length in (CELL_MIN..=CELL_MAX).step_by(8) {
            check(Header { length, ..plain });
        }
    }

    #[test]
    fn m207_the_layout_in_bytes() {
        let header = Header {
            destination: Address::from_bits(0xABCD),
            source: Address::from_bits(0x1234),
            length: 160,
            kind: CellKind::Raw,
            vc: 0b10011,
            hops: 0b01110,
            is_traced: true,
        };
        // Type 01000, channel 100 11, hops 01110, trace 1.
        let bytes = header.encode();
        assert_eq!(bytes[..7], [0xAB, 0xCD, 0x12, 0x34, 0xA0, 0b0100_0100, 0b1101_1101]);
    }

    #[test]
    fn m110_what_is_no_cell_is_refused_by_name() {
        let sealed = |mut bytes: [u8; 8]| {
            bytes[7] = checksum(bytes);
            Header::decode(bytes)
        };
        assert_eq!(Header::decode([0; 8]), Err(HeaderError::Length(0)), "a dead line");
        assert_eq!(sealed([0, 0, 0, 0, 161, 0, 0, 0]), Err(HeaderError::Length(161)));
        assert_eq!(sealed([0, 0, 0, 0, 16, 0xF8, 0, 0]), Err(HeaderError::Kind(31)));
    }
}
