//! When a sequence of observations has settled: MSER-5.
//!
//! Models: White, "An effective truncation heuristic for bias reduction in simulation output",
//! Simulation 69 (1997), and White, Cobb and Spratt, "A comparison of five steady-state truncation
//! heuristics for simulation", Winter Simulation Conference 2000: observations are averaged in batches of
//! five, and the first batches are left out whose removal makes the standard error of the mean of the
//! rest smallest. A point in the second half means that the sequence has not settled.

/// Observations in a batch: the 5 of MSER-5.
const BATCH: usize = 5;
/// Batches left out at most before the sequence counts as one that has not settled.
const SHARE_MAX: f64 = 0.5;

/// Where a sequence settles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settling {
    /// After so many observations.
    After(usize),
    /// Not within its first half.
    Never,
    /// There are too few observations to say.
    TooShort,
}

/// MSER-5 of `observations`.
#[must_use]
pub fn mser5(observations: &[f64]) -> Settling {
    let mean = |batch: &[f64]| batch.iter().sum::<f64>() / batch.len() as f64;
    let batches: Vec<f64> = observations.chunks_exact(BATCH).map(mean).collect();
    match truncation(&batches) {
        None => Settling::TooShort,
        Some(batch) if batch as f64 > SHARE_MAX * batches.len() as f64 => Settling::Never,
        Some(batch) => Settling::After(batch * BATCH),
    }
}

/// The number of batches to leave out: the smallest that minimises the squared standard error of the
/// mean of those left. `None` for fewer than ten batches. The last five are never left alone: so few
/// look settled by chance (White et al., §3).
fn truncation(batches: &[f64]) -> Option<usize> {
    const LEAST: usize = 10;
    const LEFT: usize = 5;
    if batches.len() < LEAST {
        return None;
    }
    let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
    let mut best: Option<(f64, usize)> = None;
    // From the end, so that sums grow batch by batch; a later find at an equal error leaves out less.
    for (place, &value) in batches.iter().enumerate().rev() {
        sum += value;
        squares += value * value;
        count += 1.0;
        if batches.len() - place < LEFT {
            continue;
        }
        let spread = (squares - sum * sum / count).max(0.0);
        let error = spread / (count * count);
        if best.is_none_or(|(least, _)| error <= least) {
            best = Some((error, place));
        }
    }
    best.map(|(_, place)| place)
}

/// Slowdowns of flows in the order of their numbers, many to a place once there are many.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// Flows a place.
    width: u64,
    /// Sums of the logarithms of slowdowns, and how many, by place.
    places: Vec<(f64, u32)>,
}

/// Where the measured flows of a run settle.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Settled {
    pub(crate) settling: Settling,
    /// The share of the measured flows that it leaves out; of those that never settle, all.
    pub(crate) share: f64,
}

impl Default for Order {
    fn default() -> Self {
        Self { width: 1, places: Vec::new() }
    }
}

/// Places kept at most (our choice: MSER takes little time for so many).
const PLACES_MAX: usize = 1 << 14;

impl Order {
    /// Flow number `number` has this slowdown, or at least this. Logarithms, since a single flow that
    /// waits for a time-out would otherwise outweigh thousands.
    pub(crate) fn record(&mut self, number: u64, slowdown: f64) {
        while number / self.width >= PLACES_MAX as u64 {
            self.halve();
        }
        let place = (number / self.width) as usize;
        if self.places.len() <= place {
            self.places.resize(place + 1, (0.0, 0));
        }
        let (sum, count) = &mut self.places[place];
        *sum += slowdown.max(f64::MIN_POSITIVE).ln();
        *count += 1;
    }

    fn halve(&mut self) {
        let both = |pair: &[(f64, u32)]| {
            pair.iter().fold((0.0, 0), |sum, place| (sum.0 + place.0, sum.1 + place.1))
        };
        self.places = self.places.chunks(2).map(both).collect();
        self.width *= 2;
    }

    /// MSER-5 over the places.
    pub(crate) fn settling(&self) -> Settled {
        let filled = self.places.iter().filter(|(_, count)| *count > 0);
        let means: Vec<f64> = filled.map(|(sum, count)| sum / f64::from(*count)).collect();
        let settling = mser5(&means);
        let share = match settling {
            Settling::After(count) => count as f64 / means.len() as f64,
            Settling::Never => 1.0,
            Settling::TooShort => 0.0,
        };
        Settled { settling, share }
    }
}

#[cfg(test)]
mod tests {
    use kernel::Stream;
    use proptest::prelude::*;

    use super::*;

    /// The definition, in the square of the time.
    fn naive(batches: &[f64]) -> usize {
        let error = |from: usize| {
            let rest = &batches[from..];
            let mean = rest.iter().sum::<f64>() / rest.len() as f64;
            let spread: f64 = rest.iter().map(|value| (value - mean).powi(2)).sum();
            spread / (rest.len() as f64).powi(2)
        };
        (0..=batches.len() - 5).min_by(|&a, &b| error(a).total_cmp(&error(b))).unwrap()
    }

    fn noise(count: usize, seed: u64) -> impl Iterator<Item = f64> {
        let mut stream = Stream::new(seed, "test", 0);
        (0..count).map(move |_| stream.below(1_000) as f64 / 1_000.0)
    }

    #[test]
    fn a_ramp_is_left_out_and_what_follows_stays() {
        for seed in 0..20 {
            let ramp = (0..200).map(|step| -20.0 + f64::from(step) / 10.0);
            let all: Vec<f64> = ramp.chain(noise(2_000, seed)).collect();
            let Settling::After(cut) = mser5(&all) else { panic!("seed {seed}") };
            assert!((190..=400).contains(&cut), "seed {seed}: {cut}");
        }
    }

    #[test]
    fn what_is_steady_from_the_start_keeps_most_of_it() {
        let cuts: Vec<usize> = (0..20)
            .filter_map(|seed| match mser5(&noise(2_000, seed).collect::<Vec<_>>()) {
                Settling::After(cut) => Some(cut),
                _ => None,
            })
            .collect();
        let mean = cuts.iter().sum::<usize>() as f64 / cuts.len() as f64;
        assert!(cuts.len() >= 16 && mean < 500.0, "{cuts:?}");
    }

    #[test]
    fn what_grows_to_the_end_never_settles_and_little_says_nothing() {
        let growing: Vec<f64> = (0..1_000).map(f64::from).collect();
        assert_eq!(mser5(&growing), Settling::Never);
        assert_eq!(mser5(&growing[..49]), Settling::TooShort);
        assert_eq!(mser5(&[3.0; 100]), Settling::After(0));
    }

    #[test]
    fn many_flows_share_places_and_the_share_left_out_stays() {
        let share = |count: u64| {
            let mut order = Order::default();
            for (number, noise) in (0..count).zip(noise(count as usize, 7)) {
                let early = if number < count / 5 { 30.0 } else { 2.0 };
                // Any order of ends.
                order.record(number ^ 1, early + noise);
            }
            assert!(order.places.len() <= PLACES_MAX);
            order.settling().share
        };
        for count in [1_000, 100_000, 300_000] {
            let share = share(count);
            assert!((0.2..0.3).contains(&share), "{count}: {share}");
        }
        assert_eq!(Order::default().settling().settling, Settling::TooShort);
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(values in prop::collection::vec(0u32..1_000, 10..80)) {
            let batches: Vec<f64> = values.into_iter().map(f64::from).collect();
            let (found, expected) = (truncation(&batches).unwrap(), naive(&batches));
            // Equal errors in the definition may differ by a rounding here.
            if found != expected {
                let error = |from: usize| {
                    let rest = &batches[from..];
                    let mean = rest.iter().sum::<f64>() / rest.len() as f64;
                    rest.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
                };
                prop_assert!((error(found) - error(expected)).abs() <= 1e-9 * error(expected).max(1.0));
            }
        }
    }
}
