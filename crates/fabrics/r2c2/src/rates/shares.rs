//! Shares as whole multiples of a quantum, so that their sums are exact.
//!
//! Nodes must come to equal rates from equal views (E29, claim I05), whatever the order in which
//! they heard of the flows. Sums of floats depend on their order; sums of whole numbers do not. Weights
//! are whole numbers, so weighted sums of shares are whole numbers of quanta too, and a flow that leaves
//! takes out just what it put in. They are kept in 64 bits, which the weights of all flows that a run may
//! have open fit many times over, and rounded once, to the 53 bits of a float, where a level is computed.

/// What shares are multiples of. Of a packet that crosses a link once in a thousand million, a link
/// need not know (our choice): the shares of all paths between the farthest nodes of an 8x8x8 torus are
/// above 2⁻¹⁹.
pub(super) const QUANTUM: f64 = 1.0 / (1u64 << 30) as f64;

/// The most that the weights of all flows of a priority may sum to: 16 million flows of the largest
/// weight. A link's sum of shares is at most twice that (a packet crosses a link at most once on each
/// leg), and 2³³ shares are 2⁶³ quanta.
pub(super) const WEIGHT_MAX: u64 = u32::MAX as u64;

/// The nearest multiple of the quantum to a share.
#[inline]
pub(super) fn whole(share: f64) -> f64 {
    // Floats from 2²² up to 2²³ lie a quantum apart.
    const ROUNDER: f64 = 1.5 * (1u64 << 22) as f64;
    (share + ROUNDER) - ROUNDER
}

/// A sum of weighted shares from its quanta, rounded to the nearest float.
#[inline]
pub(super) fn load_of(quanta: u64) -> f64 {
    quanta as f64 * QUANTUM
}

/// The quanta of a share that is a whole multiple.
#[inline]
pub(super) fn quanta_of(share: f64) -> u32 {
    (share / QUANTUM) as u32
}

/// The quanta that so much weight puts on a link. Exact: see [`WEIGHT_MAX`].
#[inline]
pub(super) fn load(weight: u32, quanta: u32) -> u64 {
    u64::from(weight) * u64::from(quanta)
}

/// Adds to a load what a change of weight puts on it.
#[inline]
pub(super) fn change_load(load: &mut u64, change: i64, quanta: u32) {
    let part = self::load(change.unsigned_abs() as u32, quanta);
    if change < 0 {
        *load -= part;
    } else {
        *load += part;
    }
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
            assert_eq!(load_of(quanta_of(share).into()), share);
        }
    }

    #[test]
    fn the_largest_sum_of_weighted_shares_fits() {
        let most = u32::try_from(WEIGHT_MAX).unwrap();
        assert_eq!(load(most, quanta_of(2.0)), WEIGHT_MAX << 31);
        assert_eq!(load_of(load(most, quanta_of(2.0))), 2.0 * WEIGHT_MAX as f64);
    }

    #[test]
    fn a_flow_that_leaves_takes_out_what_it_put_in() {
        let mut draw = Stream::new(2, "test/shares", 0);
        // More than the 53 bits of a float in all: as floats, these would depend on the order.
        let mut parts: Vec<(i64, u32)> = (0..1 << 20)
            .map(|_| (1 + draw.below(255) as i64, quanta_of(whole(2.0 * draw.unit()))))
            .collect();
        let mut sum = 0;
        parts.iter().for_each(|&(weight, quanta)| change_load(&mut sum, weight, quanta));
        assert!(sum > 1 << 56, "{sum}");
        draw.shuffle(&mut parts);
        parts.iter().for_each(|&(weight, quanta)| change_load(&mut sum, -weight, quanta));
        assert_eq!(sum, 0);
    }
}
