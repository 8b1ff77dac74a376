//! Shares as whole multiples of a quantum, so that their sums are exact.
//!
//! Nodes must come to equal rates from equal views (E29, claim I05), whatever the order in which
//! they heard of the flows. Sums of floats depend on their order; sums of multiples of a power of
//! two do not, as long as they fit the 53 bits of a float's mantissa. Weights are whole numbers, so
//! weighted sums of shares are exact too, and a flow that leaves takes out just what it put in.

/// What shares are multiples of. Of a packet that crosses a link once in a thousand million, a link
/// need not know (our choice): the shares of all paths between the farthest nodes of an 8x8x8 torus are
/// above 2⁻¹⁹.
pub(super) const QUANTUM: f64 = 1.0 / (1u64 << 30) as f64;

/// The most that the weights of all flows of a priority may sum to. A link's sum of shares is at
/// most twice that (a packet crosses a link at most once on each leg), and 2²³ quanta of 2⁻³⁰ are
/// the last number of 53 bits.
pub(super) const WEIGHT_MAX: u64 = 1 << 22;

/// The nearest multiple of the quantum to a share.
#[inline]
pub(super) fn whole(share: f64) -> f64 {
    // Floats from 2²² up to 2²³ lie a quantum apart.
    const ROUNDER: f64 = 1.5 * (1u64 << 22) as f64;
    (share + ROUNDER) - ROUNDER
}

/// The share of so many quanta. Exact: a share is at most two.
#[inline]
pub(super) fn share_of(quanta: u32) -> f64 {
    f64::from(quanta) * QUANTUM
}

/// The quanta of a share that is a whole multiple.
#[inline]
pub(super) fn quanta_of(share: f64) -> u32 {
    (share / QUANTUM) as u32
}

#[cfg(test)]
mod tests {
    use kernel::Stream;

    use super::*;

    #[test]
    fn a_share_is_rounded_to_the_nearest_quantum() {
        let mut draw = Stream::new(1, "test/shares", 0);
        for _ in 0..10_000 {
            let share = 2.0 * draw.unit();
            let quanta = whole(share) / QUANTUM;
            assert_eq!(quanta.fract(), 0.0);
            assert!((quanta - share / QUANTUM).abs() <= 0.5, "{share}");
        }
        assert_eq!([0.0, 0.5, 1.0, QUANTUM].map(whole), [0.0, 0.5, 1.0, QUANTUM]);
        assert_eq!(whole(QUANTUM / 4.0), 0.0);
        for share in [0.0, 1.0 / 3.0, 1.0, 2.0].map(whole) {
            assert_eq!(share_of(quanta_of(share)), share);
        }
    }

    #[test]
    fn sums_of_shares_do_not_depend_on_their_order() {
        let mut draw = Stream::new(2, "test/shares", 0);
        let mut parts: Vec<f64> =
            (0..4096).map(|_| whole(2.0 * draw.unit()) * (1 + draw.below(1023)) as f64).collect();
        let sum: f64 = parts.iter().sum();
        assert!(sum < 2.0 * WEIGHT_MAX as f64);
        draw.shuffle(&mut parts);
        assert_eq!(parts.iter().sum::<f64>(), sum);
        assert_eq!(parts.iter().fold(sum, |rest, part| rest - part), 0.0);
    }
}
