//! The checksum of a cell: eight bits that catch every short burst of bit errors.
//!
//! Models: Shoal §3.5, Fig. 5 (claims S22, S23): "CRC checksum, 8 bits". The paper gives neither
//! the polynomial nor the bytes it covers. **Our choice**: the polynomial x⁸ + x² + x + 1 and the
//! mask 0x55 of the ATM header checksum (ITU-T I.432.1), over the whole cell, since nothing else in
//! Shoal would notice a damaged payload. The mask keeps a dead line (all zeros) from looking
//! intact.
//!
//! The checksum stands in the header, before the payload. It is chosen so that the *whole cell in
//! wire order*, read as one polynomial, leaves the fixed remainder [`MASK`]: a receiver runs its
//! division over the cell as it arrives and compares once. Dividing header and payload first and
//! inserting the result would not detect every short burst that straddles the checksum.
//! When only the header is covered the checksum is its last byte and this is plain I.432.1.

use crc::{CRC_8_SMBUS, Crc, Table};

/// Added to the checksum (ITU-T I.432.1, coset leader 01010101).
pub const MASK: u8 = 0x55;

/// x has this order modulo the polynomial, (x + 1)(x⁷ + x⁶ + x⁵ + x⁴ + x³ + x² + 1): multiplying by
/// x this many times changes nothing. So does appending this many zero bytes.
pub const PERIOD: usize = 127;

/// Zeros to append so that a checksum lands before its payload; see [`checksum`].
static ZEROS: [u8; PERIOD] = [0; PERIOD];

/// Division by x⁸ + x² + x + 1: no mask, no preset, most significant bit first.
static DIVISION: Crc<u8, Table<1>> = Crc::<u8, Table<1>>::new(&CRC_8_SMBUS);

/// `RESIDUES[e]` is the remainder that one flipped bit leaves when `e` bits follow it, `e` modulo
/// [`PERIOD`].
static RESIDUES: [u8; PERIOD] = residues();

const fn residues() -> [u8; PERIOD] {
    let mut table = [0; PERIOD];
    let mut residue: u8 = 1;
    let mut exponent = 0;
    while exponent < PERIOD {
        table[exponent] = residue;
        let carry = residue >> 7;
        residue = (residue << 1) ^ (carry * CRC_8_SMBUS.poly);
        exponent += 1;
    }
    table
}

/// The checksum to insert between `before` and `after`.
///
/// Division after the last byte has multiplied by x⁸, and the checksum's own place is a factor of
/// x to the length of `after`. Zeros up to a multiple of [`PERIOD`] bytes undo both.
#[must_use]
pub fn checksum(before: &[u8], after: &[u8]) -> u8 {
    let mut digest = DIVISION.digest();
    digest.update(before);
    digest.update(&[0]);
    digest.update(after);
    let behind = (after.len() + 1) % PERIOD;
    digest.update(&ZEROS[..(PERIOD - behind) % PERIOD]);
    digest.finalize() ^ MASK
}

/// Whether the bytes are as they were sent: `checksum` stands between `before` and `after`.
#[must_use]
pub fn is_intact(before: &[u8], checksum: u8, after: &[u8]) -> bool {
    let mut digest = DIVISION.digest();
    digest.update(before);
    digest.update(&[checksum ^ MASK]);
    digest.update(after);
    digest.finalize() == 0
}

/// Whether the checksum catches the flipping of these bits of a sequence of `length` bits.
/// Bit 0 is the first on the wire. The code is linear, so the answer holds for all data: a
/// simulator need not carry bytes to know which errors pass unseen.
///
/// # Panics
/// If a bit lies outside the sequence.
#[must_use]
pub fn detects(flipped: impl IntoIterator<Item = usize>, length: usize) -> bool {
    let remainder = flipped.into_iter().fold(0, |remainder, bit| {
        assert!(bit < length, "bit {bit} of a sequence of {length} bits");
        remainder ^ RESIDUES[(length - 1 - bit) % PERIOD]
    });
    remainder != 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn s22_a_header_alone_has_the_checksum_of_itu_i432() {
        // The check value of the published catalogue for CRC-8/I-432-1.
        assert_eq!(checksum(b"123456789", &[]), 0xA1);
        let standard = Crc::<u8>::new(&crc::CRC_8_I_432_1);
        for header in [[0; 7], [0xFF; 7], [1, 2, 3, 4, 5, 6, 7]] {
            assert_eq!(checksum(&header, &[]), standard.checksum(&header));
        }
    }

    #[test]
    fn s22_the_polynomial_has_the_period_that_the_method_needs() {
        assert_eq!(RESIDUES.iter().filter(|&&residue| residue == 1).count(), 1);
        let last = RESIDUES[PERIOD - 1];
        assert_eq!((last << 1) ^ ((last >> 7) * CRC_8_SMBUS.poly), 1);
    }

    #[test]
    fn s22_a_dead_line_is_not_intact() {
        assert!(!is_intact(&[0; 7], 0, &[0; 56]));
    }

    /// Whether flipping `bits` of an intact cell of 8 + `payload` bytes is seen, bit by bit for
    /// real.
    fn seen_in_bytes(bits: &[usize], payload: usize) -> bool {
        let mut cell: Vec<u8> = (0..8 + payload).map(|byte| (byte * 37 + 11) as u8).collect();
        cell[7] = checksum(&cell[..7], &cell[8..]);
        assert!(is_intact(&cell[..7], cell[7], &cell[8..]));
        for &bit in bits {
            cell[bit / 8] ^= 0x80 >> (bit % 8);
        }
        !is_intact(&cell[..7], cell[7], &cell[8..])
    }

    #[test]
    fn s23_every_single_bit_flip_of_a_cell_is_detected() {
        for bit in 0..512 {
            assert!(seen_in_bytes(&[bit], 56), "bit {bit}");
            assert!(detects([bit], 512), "bit {bit}");
        }
    }

    #[test]
    fn s23_every_burst_of_at_most_eight_bits_is_detected() {
        // Payloads of 0, of the paper's 56, and of 120 bytes (128 B cells, Shoal §7.3).
        for payload in [0, 56, 120] {
            let length = 8 * (8 + payload);
            for start in 0..length {
                for pattern in (1_u16..256).step_by(2) {
                    let bits: Vec<usize> = (0..8)
                        .filter(|bit| pattern >> bit & 1 == 1)
                        .map(|bit| start + bit)
                        .filter(|&bit| bit < length)
                        .collect();
                    assert!(detects(bits.iter().copied(), length), "{bits:?} of {length}");
                    if pattern % 16 == 1 {
                        assert!(seen_in_bytes(&bits, payload), "{bits:?} of {length}");
                    }
                }
            }
        }
    }

    #[test]
    fn s23_two_errors_pass_only_at_multiples_of_the_period() {
        for first in 0_usize..512 {
            for second in first + 1..512 {
                let seen = !(second - first).is_multiple_of(PERIOD);
                assert_eq!(detects([first, second], 512), seen, "bits {first} and {second}");
            }
        }
        assert!(!seen_in_bytes(&[3, 3 + PERIOD], 56));
    }

    proptest! {
        #[test]
        fn s23_an_odd_number_of_errors_is_always_detected(
            bits in proptest::collection::btree_set(0_usize..512, 1..40)
        ) {
            let odd = bits.len() % 2 == 1;
            prop_assert!(!odd || detects(bits.iter().copied(), 512));
        }

        #[test]
        fn s22_the_pattern_alone_says_what_the_bytes_would(
            bits in proptest::collection::btree_set(0_usize..8 * 72, 1..12)
        ) {
            let bits: Vec<usize> = bits.into_iter().collect();
            prop_assert_eq!(seen_in_bytes(&bits, 64), detects(bits.iter().copied(), 8 * 72));
        }

        #[test]
        fn s22_a_checksum_fits_wherever_it_stands(
            before in proptest::collection::vec(any::<u8>(), 0..40),
            after in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            prop_assert!(is_intact(&before, checksum(&before, &after), &after));
        }
    }
}
