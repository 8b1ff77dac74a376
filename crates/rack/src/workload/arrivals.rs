//! When flows start: Poisson arrivals, and the load they make.
//!
//! Load is that of Shoal §7.3: L = F / (R N tau), with F the mean flow size in bits, R the stated
//! rate of a node, N the number of nodes and tau the mean time between arrivals in the whole rack.
//! It counts payload, not headers, and is relative to what all nodes together may inject.

use kernel::{PS_PER_SECOND, Rate, Stream, Time};

use super::limits::START_MAX;

/// The mean time between arrivals, in picoseconds, that makes `load`.
#[must_use]
pub fn interarrival_ps(load: f64, mean_bytes: f64, rate: Rate, nodes: u32) -> f64 {
    let bits = mean_bytes * 8.0;
    bits / (rate.as_bps() as f64 * f64::from(nodes) * load) * PS_PER_SECOND as f64
}

/// The load that arrivals with this mean distance make.
#[must_use]
pub fn load(interarrival_ps: f64, mean_bytes: f64, rate: Rate, nodes: u32) -> f64 {
    let bits = mean_bytes * 8.0;
    bits / (rate.as_bps() as f64 * f64::from(nodes) * interarrival_ps) * PS_PER_SECOND as f64
}

/// A Poisson process. Changing its mean stretches the same draws.
#[derive(Clone, Debug)]
pub struct Arrivals {
    mean_ps: f64,
    stream: Stream,
    now: Time,
    /// What rounding to whole picoseconds has left over; in [0, 1).
    carry: f64,
}

impl Arrivals {
    /// A process with `mean_ps` picoseconds between arrivals on average.
    ///
    /// # Panics
    /// Unless the mean is above zero and finite.
    #[must_use]
    pub fn new(mean_ps: f64, stream: Stream) -> Self {
        assert!(mean_ps > 0.0 && mean_ps.is_finite(), "{mean_ps} ps between arrivals");
        Self { mean_ps, stream, now: Time::ZERO, carry: 0.0 }
    }

    /// The next arrival, or `None` when no run lasts so long.
    pub fn step(&mut self) -> Option<Time> {
        // The draw is real; what is kept is whole picoseconds, the rest carried to the next.
        let gap = self.stream.exponential(self.mean_ps) + self.carry;
        let whole = gap as u64;
        self.carry = gap - whole as f64;
        let now = self.now.as_ps().checked_add(whole)?;
        self.now = Time::from_ps(now);
        (self.now <= START_MAX).then_some(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    fn times(mean_ps: f64, seed: u64) -> Vec<u64> {
        let mut arrivals = Arrivals::new(mean_ps, Stream::new(seed, "workload/arrivals", 0));
        (0..DRAWS).map(|_| arrivals.step().unwrap().as_ps()).collect()
    }

    #[test]
    fn load_is_that_of_the_paper() {
        // 512 nodes at 50 Gbps, 100 KB: load 1 is a flow each 31.25 ns; at 100 Gbps 15.625 ns.
        let tau = |rate, load| interarrival_ps(load, 1e5, Rate::from_gbps(rate), 512);
        assert!((tau(50, 1.0) - 31_250.0).abs() < 1e-6);
        assert!((tau(100, 1.0) - 15_625.0).abs() < 1e-6);
        assert!((tau(50, 0.25) - 125_000.0).abs() < 1e-6);
        assert!((load(31_250.0, 1e5, Rate::from_gbps(50), 512) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn gaps_have_the_mean_the_variance_and_the_independence_of_a_poisson_process() {
        // Four standard errors: of the mean tau / sqrt(n), of the variance tau² sqrt(8 / n), of
        // the correlation of neighbours 1 / sqrt(n). Fixed seeds.
        let root = (DRAWS as f64).sqrt();
        for (seed, tau) in [(1, 12_650.0), (2, 31_250.0), (3, 3.7), (4, 0.25)] {
            let times = times(tau, seed);
            let mean = *times.last().unwrap() as f64 / DRAWS as f64;
            assert!((mean - tau).abs() < 4.0 * tau / root, "tau {tau}: {mean}");
            if tau < 1_000.0 {
                continue;
            }
            let gaps: Vec<f64> = times.windows(2).map(|t| (t[1] - t[0]) as f64 - tau).collect();
            let variance = gaps.iter().map(|g| g * g).sum::<f64>() / DRAWS as f64;
            assert!((variance / (tau * tau) - 1.0).abs() < 4.0 * 8f64.sqrt() / root, "{variance}");
            let product: f64 = gaps.windows(2).map(|g| g[0] * g[1]).sum();
            assert!((product / variance / DRAWS as f64).abs() < 4.0 / root);
        }
    }

    #[test]
    fn counts_in_equal_intervals_are_as_varied_as_they_are_many() {
        // Index of dispersion: 1 for a Poisson process, standard error sqrt(2 / intervals).
        let times = times(1_000.0, 9);
        let intervals = 10_000;
        let width = 20 * 1_000;
        let mut counts = vec![0.0f64; intervals];
        for &time in &times {
            if let Some(count) = counts.get_mut((time / width) as usize) {
                *count += 1.0;
            }
        }
        let counts = &counts[..9_900];
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / counts.len() as f64;
        let bound = 4.0 * (2.0 / counts.len() as f64).sqrt();
        assert!((variance / mean - 1.0).abs() < bound, "{variance} {mean}");
    }

    #[test]
    fn another_mean_stretches_the_same_arrivals() {
        let (slow, fast) = (times(20_000.0, 5), times(10_000.0, 5));
        assert!(slow.iter().zip(&fast).all(|(s, f)| s.abs_diff(2 * f) <= 2));
    }

    #[test]
    fn time_ends_without_overflow() {
        let mut arrivals = Arrivals::new(1e18, Stream::new(1, "test", 0));
        let times: Vec<_> = std::iter::from_fn(|| arrivals.step()).collect();
        assert!(times.len() > 1 && times.is_sorted());
    }
}
