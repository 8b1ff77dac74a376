//! How large flows are: fixed, Pareto, or drawn from a table.

use kernel::{Bytes, Stream};

use super::limits::FLOW_MAX;
use super::tables::SizeTable;

/// No draw is larger: larger ones are drawn as that. Of the papers' distribution (shape 1.05, mean 100 KB)
/// one in 600 million is: no run sees one, though they make 38 % of its mean, which stays as published: it
/// is what a load refers to.
const LARGEST: f64 = FLOW_MAX.get() as f64;

/// A Pareto distribution, P(X > x) = (scale / x)^shape, cut off at a cap or not.
///
/// Cut off means that draws above the cap never happen (the others keep their proportions), as in
/// the bounded Pareto distribution; nothing piles up at the cap.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pareto {
    shape: f64,
    scale: f64,
    cap: Option<f64>,
}

impl Pareto {
    /// The unbounded distribution of this shape and mean: scale = mean (shape - 1) / shape.
    ///
    /// # Panics
    /// Unless shape > 1 (else the mean is infinite) and mean > 0.
    #[must_use]
    pub fn unbounded(shape: f64, mean: f64) -> Self {
        assert!(shape > 1.0, "a Pareto distribution of shape {shape} has no mean");
        assert!(mean > 0.0, "a mean of {mean} bytes");
        Self { shape, scale: mean * (shape - 1.0) / shape, cap: None }
    }

    /// The unbounded distribution of this shape and mean, cut off at `cap`: its mean is smaller.
    ///
    /// # Panics
    /// As [`Pareto::unbounded`], and unless the cap lies above the scale.
    #[must_use]
    pub fn cut(shape: f64, mean: f64, cap: f64) -> Self {
        let whole = Self::unbounded(shape, mean);
        assert!(cap > whole.scale, "a cap of {cap} bytes at or below the scale {}", whole.scale);
        Self { cap: Some(cap), ..whole }
    }

    /// The distribution of this shape, cut off at `cap`, whose mean is `mean`: the scale is raised
    /// until it is. Any shape above zero will do.
    ///
    /// # Panics
    /// Unless shape > 0 and 0 < mean < cap.
    #[must_use]
    pub fn rescaled(shape: f64, mean: f64, cap: f64) -> Self {
        assert!(shape > 0.0, "a Pareto distribution of shape {shape}");
        assert!(mean > 0.0 && mean < cap, "a mean of {mean} bytes under a cap of {cap}");
        let with = |scale| Self { shape, scale, cap: Some(cap) };
        // The mean rises with the scale, from 0 to the cap. Halving the logarithm's interval 200
        // times leaves no room between the ends.
        let (mut low, mut high) = (f64::MIN_POSITIVE, mean);
        for _ in 0..200 {
            let middle = libm::sqrt(low) * libm::sqrt(high);
            if with(middle).mean() < mean {
                low = middle;
            } else {
                high = middle;
            }
        }
        with(high)
    }

    /// The smallest size, in bytes.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// The share of the unbounded distribution that the cap leaves.
    fn kept(&self) -> f64 {
        match self.cap {
            None => 1.0,
            // 1 - (scale / cap)^shape, without cancellation.
            Some(cap) => -libm::expm1(self.shape * libm::log(self.scale / cap)),
        }
    }

    /// The exact mean, in bytes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let whole = self.shape * self.scale / (self.shape - 1.0);
        let Some(cap) = self.cap else { return whole };
        let log_ratio = libm::log(self.scale / cap);
        if self.shape == 1.0 {
            return -self.scale * log_ratio / self.kept();
        }
        // whole (1 - (scale / cap)^(shape - 1)) / kept
        whole * -libm::expm1((self.shape - 1.0) * log_ratio) / self.kept()
    }

    /// Draws a size in bytes, not rounded.
    fn draw(&self, kept: f64, stream: &mut Stream) -> f64 {
        let survivors = 1.0 - stream.unit() * kept;
        let size = self.scale * libm::pow(survivors, -1.0 / self.shape);
        self.cap.map_or(size, |cap| size.min(cap))
    }
}

/// A distribution of flow sizes.
#[derive(Clone, PartialEq, Debug)]
pub enum Sizes {
    /// Every flow the same.
    Fixed(Bytes),
    /// Heavy-tailed.
    Pareto(Pareto),
    /// From a table.
    Table {
        /// The table with its reading.
        table: SizeTable,
        /// What to call it.
        name: String,
    },
}

impl Sizes {
    /// Draws the size of one flow: to the nearest byte, at least one.
    pub fn draw(&self, stream: &mut Stream) -> Bytes {
        match self {
            Self::Fixed(size) => *size,
            Self::Table { table, .. } => table.draw(stream),
            Self::Pareto(pareto) => {
                let size = libm::round(pareto.draw(pareto.kept(), stream)).clamp(1.0, LARGEST);
                // Not a number would be none.
                Bytes::new((size as u64).max(1))
            }
        }
    }

    /// The exact mean in bytes, before rounding to whole bytes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(size) => size.get() as f64,
            Self::Pareto(pareto) => pareto.mean(),
            Self::Table { table, .. } => table.mean(),
        }
    }

    /// One line for people: the distribution, its reading and its truncation.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Fixed(size) => format!("fixed {size}"),
            Self::Pareto(Pareto { shape, scale, cap }) => {
                let cut = cap.map_or("untruncated up to 1 TiB".into(), |cap| {
                    format!("truncated at {}", Bytes::new(cap as u64))
                });
                format!("Pareto, shape {shape}, scale {scale:.1} B, {cut}")
            }
            Self::Table { table, name } => format!("{name}, read as {}", table.reading().name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    fn draws(sizes: &Sizes, seed: u64) -> Vec<f64> {
        let mut stream = Stream::new(seed, "test", 0);
        (0..DRAWS).map(|_| sizes.draw(&mut stream).get() as f64).collect()
    }

    #[test]
    fn the_papers_pareto_has_its_published_figures() {
        let pareto = Pareto::unbounded(1.05, 100_000.0);
        assert!((pareto.scale() - 4761.9).abs() < 0.01);
        assert!((pareto.mean() - 100_000.0).abs() < 1e-6);
        // 95.9 % of flows are at most 100 KB; binomial, four standard errors.
        let draws = draws(&Sizes::Pareto(pareto), 1);
        let short = draws.iter().filter(|&&x| x <= 100_000.0).count() as f64 / DRAWS as f64;
        let exact = 1.0 - (4761.905f64 / 100_000.0).powf(1.05);
        let bound = 4.0 * (exact * (1.0 - exact) / DRAWS as f64).sqrt();
        assert!((exact - 0.959).abs() < 5e-4 && (short - exact).abs() < bound, "{short} {exact}");
    }

    #[test]
    fn a_pareto_has_its_tail_index_by_hills_estimator() {
        // Over the largest k draws: standard error shape / sqrt(k).
        for shape in [1.05, 1.5, 3.0] {
            let mut draws = draws(&Sizes::Pareto(Pareto::unbounded(shape, 1e6)), 2);
            draws.sort_by(|a, b| b.total_cmp(a));
            let k = 20_000;
            let threshold = draws[k].ln();
            let found = k as f64 / draws[..k].iter().map(|x| x.ln() - threshold).sum::<f64>();
            let bound = 4.0 * shape / (k as f64).sqrt();
            assert!((found - shape).abs() < bound, "{found} for {shape}");
        }
    }

    /// Numerical integration of the quantile function: the oracle for the closed form.
    fn integrated_mean(pareto: &Pareto, cap: f64) -> f64 {
        let kept = 1.0 - (pareto.scale / cap).powf(pareto.shape);
        // Substituting u = 1 - v^4 puts cells where the tail is.
        let cells = 2_000_000;
        (0..cells)
            .map(|cell| {
                let v = (f64::from(cell) + 0.5) / f64::from(cells);
                let u = 1.0 - v.powi(4);
                let size = pareto.scale * (1.0 - u * kept).powf(-1.0 / pareto.shape);
                size * 4.0 * v.powi(3) / f64::from(cells)
            })
            .sum()
    }

    #[test]
    fn a_truncated_pareto_has_the_mean_that_it_states() {
        for (shape, mean, cap) in
            [(1.05, 1e5, 1e9), (1.05, 1e5, 1e6), (2.5, 1e4, 5e4), (1.2, 2e3, 1e8)]
        {
            for pareto in [Pareto::cut(shape, mean, cap), Pareto::rescaled(shape, mean, cap)] {
                let integrated = integrated_mean(&pareto, cap);
                let stated = pareto.mean();
                assert!((integrated - stated).abs() < 1e-4 * stated, "{integrated} {stated}");
            }
            assert!((Pareto::rescaled(shape, mean, cap).mean() - mean).abs() < 1e-6 * mean);
            assert!(Pareto::cut(shape, mean, cap).mean() < mean);
        }
        // Shapes at and below one have no mean but for the cap.
        for shape in [0.5, 1.0] {
            let pareto = Pareto::rescaled(shape, 1e5, 1e7);
            assert!((integrated_mean(&pareto, 1e7) - 1e5).abs() < 50.0);
        }
    }

    #[test]
    fn truncated_draws_have_the_stated_mean_and_stay_below_the_cap() {
        // Variance of a bounded Pareto is finite: four standard errors from the sample's own.
        for pareto in [Pareto::cut(1.05, 1e5, 1e6), Pareto::rescaled(1.05, 1e5, 1e6)] {
            let draws = draws(&Sizes::Pareto(pareto), 5);
            let mean = draws.iter().sum::<f64>() / DRAWS as f64;
            let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / DRAWS as f64;
            assert!((mean - pareto.mean()).abs() < 4.0 * (variance / DRAWS as f64).sqrt());
            assert!(draws.iter().all(|&x| x <= 1e6 && x >= pareto.scale().floor()));
            // Nothing piles up at the cap.
            assert!(draws.iter().filter(|&&x| x >= 999_000.0).count() < 100);
        }
    }

    #[test]
    fn what_lies_beyond_the_largest_flow_is_rare_and_drawn_as_that() {
        let pareto = Pareto::unbounded(1.05, 1e5);
        let beyond = libm::pow(pareto.scale() / LARGEST, 1.05);
        assert!((1.0 / beyond - 6.0e8).abs() < 0.1e8, "one in {}", 1.0 / beyond);
        // The mean of what lies below, and the part of the published mean that lies beyond.
        let below = Pareto::cut(1.05, 1e5, LARGEST).mean();
        assert!((below / 1e5 - 0.62).abs() < 0.005, "{below}");
        // A mean so large that nine draws in ten are.
        let mut stream = Stream::new(1, "test", 0);
        let heavy = Sizes::Pareto(Pareto::unbounded(1.01, 1e14));
        let draws: Vec<_> = (0..100).map(|_| heavy.draw(&mut stream)).collect();
        assert!(draws.iter().all(|&size| size <= FLOW_MAX));
        assert!(draws.contains(&FLOW_MAX));
    }

    #[test]
    fn fixed_sizes_draw_nothing_from_the_stream() {
        let mut stream = Stream::new(1, "test", 0);
        let before = stream.clone();
        assert_eq!(Sizes::Fixed(Bytes::new(448)).draw(&mut stream), Bytes::new(448));
        assert_eq!(stream, before);
    }

    #[test]
    fn descriptions_state_scale_reading_and_truncation() {
        let pareto = Sizes::Pareto(Pareto::unbounded(1.05, 1e5));
        assert_eq!(
            pareto.describe(),
            "Pareto, shape 1.05, scale 4761.9 B, untruncated up to 1 TiB"
        );
        let cut = Sizes::Pareto(Pareto::cut(1.05, 1e5, 1e9));
        assert_eq!(cut.describe(), "Pareto, shape 1.05, scale 4761.9 B, truncated at 1 GB");
        assert_eq!(Sizes::Fixed(Bytes::new(448)).describe(), "fixed 448 B");
    }

    #[test]
    #[should_panic(expected = "shape 1 has no mean")]
    fn an_unbounded_pareto_needs_a_mean() {
        let _ = Pareto::unbounded(1.0, 1e5);
    }
}
