//! Numbers that wrap: which of two is later, and which full number a short one stands for.
//!
//! Models: the sequence number of the cell header (Shoal §3.5, claim S24). The paper says only that
//! it restores the order. **Our choice**: one count of cells for each ordered pair of nodes, which
//! wraps; half the space is the future and half the past, as in RFC 1982.

/// Arithmetic on numbers of `bits` bits that wrap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Serial {
    bits: u32,
}

impl Serial {
    /// Numbers of this many bits.
    ///
    /// # Panics
    /// Unless there are 1 to 32 of them.
    #[must_use]
    pub const fn new(bits: u32) -> Self {
        assert!(bits >= 1 && bits <= 32, "a wrapping number has 1 to 32 bits");
        Self { bits }
    }

    /// Half of the space: how far ahead of each other two numbers may be and still be ordered.
    #[must_use]
    pub const fn window(self) -> u32 {
        1 << (self.bits - 1)
    }

    /// A full number as it stands on the wire.
    #[must_use]
    pub const fn shorten(self, full: u32) -> u32 {
        full & (u32::MAX >> (32 - self.bits))
    }

    /// How far `to` is ahead of `from`; negative: behind. From minus half the space up to half the
    /// space less one.
    #[must_use]
    pub const fn distance(self, from: u32, to: u32) -> i32 {
        let unused = 32 - self.bits;
        (to.wrapping_sub(from) << unused) as i32 >> unused
    }

    /// Whether `a` comes before `b`.
    #[must_use]
    pub const fn is_before(self, a: u32, b: u32) -> bool {
        self.distance(a, b) > 0
    }

    /// The full number nearest to `near` that stands on the wire as `short`.
    #[must_use]
    pub const fn extend(self, short: u32, near: u32) -> u32 {
        near.wrapping_add_signed(self.distance(near, short))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn s24_order_wraps_with_the_field() {
        let serial = Serial::new(8);
        // from, to, distance: the table of a clock with 256 marks.
        let rows = [(0, 1, 1), (255, 0, 1), (0, 255, -1), (0, 127, 127), (0, 128, -128), (7, 7, 0)];
        for (from, to, distance) in rows {
            assert_eq!(serial.distance(from, to), distance, "{from} to {to}");
            assert_eq!(serial.is_before(from, to), distance > 0, "{from} to {to}");
        }
        assert_eq!(Serial::new(32).distance(u32::MAX, 4), 5);
        assert_eq!(Serial::new(1).distance(0, 1), -1);
    }

    proptest! {
        #[test]
        fn s24_a_short_number_is_restored_within_half_the_space(
            bits in 1_u32..=32, near in any::<u32>(), fraction in any::<i32>()
        ) {
            let serial = Serial::new(bits);
            let offset = fraction >> (32 - bits);
            let full = near.wrapping_add_signed(offset);
            prop_assert_eq!(serial.extend(serial.shorten(full), near), full);
        }
    }
}
