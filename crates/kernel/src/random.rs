//! Random streams that never disturb one another.
//!
//! A stream is named by (seed, purpose, entity): the run's seed, what is drawn, and for whom. Two
//! names give two independent streams, so a new draw in one place never moves another's. The bits
//! come from xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators",
//! 2021), the real-valued draws from basic arithmetic and `libm`, so a name gives the same values
//! on every machine. Golden values below keep it so.

use std::convert::Infallible;

use rand::{Rng, SeedableRng, TryRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The increment of SplitMix64: 2⁶⁴ over the golden ratio (Steele et al., OOPSLA 2014).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// Offset basis of the 64-bit FNV-1a hash (Fowler, Noll and Vo; RFC 9923).
const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
/// Prime of the 64-bit FNV-1a hash.
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// The mix of SplitMix64: spreads a word over 64 bits. A bijection.
#[inline]
#[must_use]
pub const fn mix64(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// One step of SplitMix64: adds the increment, then mixes. A bijection on 64 bits.
const fn splitmix64(state: u64) -> u64 {
    mix64(state.wrapping_add(GOLDEN))
}

/// FNV-1a of the bytes of `text`.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(FNV_BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
}

/// An independent random stream.
///
/// ```
/// let mut sizes = kernel::Stream::new(1, "workload/sizes", 0);
/// let again = kernel::Stream::new(1, "workload/sizes", 0).below(100);
/// assert_eq!(sizes.below(100), again);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of this name. Key: `mix(mix(mix(seed) ^ fnv1a(purpose)) ^ entity)` with `mix` a
    /// step of SplitMix64; the generator's state is the next four outputs of SplitMix64 from it.
    /// For one seed and purpose no two entities share a key.
    #[must_use]
    pub fn new(seed: u64, purpose: &str, entity: u64) -> Self {
        let key = splitmix64(splitmix64(splitmix64(seed) ^ fnv1a(purpose)) ^ entity);
        Self(Xoshiro256PlusPlus::seed_from_u64(key))
    }

    /// A whole number in `0..n`, each equally likely (Lemire, "Fast random integer generation in
    /// an interval", 2019).
    ///
    /// # Panics
    /// If `n` is zero.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "a draw from an empty range");
        let mut product = u128::from(self.next_u64()) * u128::from(n);
        if (product as u64) < n {
            let reject_below = n.wrapping_neg() % n;
            while (product as u64) < reject_below {
                product = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// A real number in [0, 1), a multiple of 2⁻⁵³.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A real number in (0, 1], a multiple of 2⁻⁵³: safe to take the logarithm of.
    #[inline]
    pub fn open_unit(&mut self) -> f64 {
        1.0 - self.unit()
    }

    /// An exponential draw of this mean, by inverse transform.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(self.open_unit())
    }

    /// A Pareto draw: P(X > x) = (scale / x)^shape for x >= scale, by inverse transform.
    #[inline]
    pub fn pareto(&mut self, shape: f64, scale: f64) -> f64 {
        scale * libm::pow(self.open_unit(), -1.0 / shape)
    }

    /// True with probability `p`.
    #[inline]
    pub fn bernoulli(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// The number of failures before the first success, each trial succeeding with probability
    /// `p`, by inverse transform: mean (1 - p) / p. Skips over rare events in one draw.
    ///
    /// # Panics
    /// Unless 0 < p <= 1.
    pub fn geometric(&mut self, p: f64) -> u64 {
        assert!(p > 0.0 && p <= 1.0, "a geometric draw with success probability {p}");
        // At p = 1 the divisor is minus infinity and the quotient 0. A quotient beyond 64 bits
        // (p below 10⁻¹⁷) saturates: "never" for any run.
        (libm::log(self.open_unit()) / libm::log1p(-p)) as u64
    }

    /// Puts `items` in a random order, each equally likely (Fisher and Yates, Durstenfeld's form).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// The stream as a generator of the `rand` ecosystem.
impl TryRng for Stream {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0.next_u32())
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.0.fill_bytes(bytes);
        Ok(())
    }
}

#[cfg(test)]
#[path = "random_tests.rs"]
mod tests;
