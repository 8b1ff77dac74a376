//! Bounds are four standard errors wide (one false alarm in 16,000 for a fresh seed); the seeds are
//! fixed, so a failure is a change in the code, never bad luck.

use super::*;

/// Draws for each statistical check.
const DRAWS: usize = 200_000;
/// Standard errors allowed.
const Z: f64 = 4.0;

fn stream() -> Stream {
    Stream::new(7, "test", 0)
}

#[track_caller]
fn check_mean(name: &str, mean: f64, deviation: f64, mut draw: impl FnMut(&mut Stream) -> f64) {
    let mut stream = stream();
    let found = (0..DRAWS).map(|_| draw(&mut stream)).sum::<f64>() / DRAWS as f64;
    let bound = Z * deviation / (DRAWS as f64).sqrt();
    assert!((found - mean).abs() <= bound, "{name}: mean {found}, expected {mean} +- {bound}");
}

/// Computed by a second implementation, written from the papers. They must never change.
#[test]
fn streams_give_the_same_values_for_ever() {
    let take = |seed, purpose, entity| {
        let mut stream = Stream::new(seed, purpose, entity);
        [stream.next_u64(), stream.next_u64(), stream.next_u64()]
    };
    assert_eq!(
        take(0, "", 0),
        [0x8a25_7186_0bf6_62ec, 0x5768_b5b2_317b_f207, 0x00db_33be_48a0_400c]
    );
    assert_eq!(
        take(1, "workload/sizes", 0),
        [0x111d_4245_11ed_6786, 0x551f_b17c_3db1_ebfd, 0xe6f3_0f0e_64cc_6a78]
    );
    assert_eq!(
        take(u64::MAX, "workload/sizes", 511),
        [0x686f_4359_df23_cb51, 0x65ed_c518_a315_87ec, 0x7b84_3558_028c_38e6]
    );
}

#[test]
fn the_hashes_are_the_published_ones() {
    // Test vector of FNV-1a 64 (Noll's page and RFC 9923): "foobar".
    assert_eq!(fnv1a("foobar"), 0x8594_4171_f739_67e8);
    assert_eq!(fnv1a(""), FNV_BASIS);
    // First outputs of the reference SplitMix64 from state 1234567.
    assert_eq!(splitmix64(1_234_567), 6_457_827_717_110_365_317);
    assert_eq!(splitmix64(1_234_567u64.wrapping_add(GOLDEN)), 3_203_168_211_198_807_973);
}

#[test]
fn every_part_of_the_name_makes_another_stream() {
    let first = |seed, purpose, entity| Stream::new(seed, purpose, entity).next_u64();
    let mut values = vec![];
    for seed in 0..20 {
        for purpose in ["a", "b", "ab", "ba", "sizes", "arrivals"] {
            values.extend((0..50).map(|entity| first(seed, purpose, entity)));
        }
    }
    let count = values.len();
    values.sort_unstable();
    values.dedup();
    assert_eq!(values.len(), count);
}

#[test]
fn streams_of_neighbouring_names_are_uncorrelated() {
    // Correlation of uniform draws: standard error 1 / sqrt(n).
    let bound = Z / (DRAWS as f64).sqrt();
    for other in [Stream::new(7, "test", 1), Stream::new(8, "test", 0), Stream::new(7, "tesu", 0)] {
        let (mut a, mut b) = (stream(), other);
        let sum: f64 = (0..DRAWS).map(|_| (a.unit() - 0.5) * (b.unit() - 0.5)).sum();
        let correlation = sum * 12.0 / DRAWS as f64;
        assert!(correlation.abs() < bound, "{correlation}");
    }
}

#[test]
fn below_is_uniform_for_small_ranges() {
    // Chi-squared with n - 1 degrees of freedom: mean n - 1, variance 2 (n - 1).
    for n in [2u64, 3, 7, 10, 64, 511] {
        let mut stream = stream();
        let mut counts = vec![0u64; n as usize];
        (0..DRAWS).for_each(|_| counts[stream.below(n) as usize] += 1);
        let expected = DRAWS as f64 / n as f64;
        let chi: f64 = counts.iter().map(|&c| (c as f64 - expected).powi(2) / expected).sum();
        let freedom = (n - 1) as f64;
        assert!((chi - freedom).abs() < Z * (2.0 * freedom).sqrt() + Z, "n {n}: chi2 {chi}");
    }
}

#[test]
fn below_rejects_the_uneven_rest_of_a_huge_range() {
    // With n = 3 * 2^62 a plain remainder would make the lowest third twice as likely.
    let n = 3u64 << 62;
    check_mean("below, lowest third", 1.0 / 3.0, 0.4714, |stream| {
        f64::from(u8::from(stream.below(n) < n / 3))
    });
    assert_eq!(stream().below(1), 0);
}

#[test]
fn units_stay_in_their_intervals() {
    let mut stream = stream();
    for _ in 0..DRAWS {
        assert!((0.0..1.0).contains(&stream.unit()));
        let open = stream.open_unit();
        assert!(open > 0.0 && open <= 1.0);
    }
}

#[test]
fn draws_have_the_means_of_their_laws() {
    check_mean("unit", 0.5, (1.0f64 / 12.0).sqrt(), Stream::unit);
    check_mean("exponential", 12.65, 12.65, |s| s.exponential(12.65));
    // Pareto of shape 3 and scale 2: mean 3, variance 3.
    check_mean("pareto", 3.0, 3.0f64.sqrt(), |s| s.pareto(3.0, 2.0));
    check_mean("bernoulli", 0.3, 0.21f64.sqrt(), |s| f64::from(u8::from(s.bernoulli(0.3))));
    for p in [1e-3, 0.3, 0.999] {
        let deviation = (1.0f64 - p).sqrt() / p;
        check_mean("geometric", (1.0 - p) / p, deviation, |s| s.geometric(p) as f64);
    }
}

#[test]
fn pareto_has_its_tail_index() {
    // Hill's estimator over the whole sample is 1 / mean(log(x / scale)), standard error
    // shape / sqrt(n).
    let mut stream = stream();
    let logs: f64 = (0..DRAWS).map(|_| (stream.pareto(1.05, 4761.9) / 4761.9).ln()).sum();
    let shape = DRAWS as f64 / logs;
    assert!((shape - 1.05).abs() < Z * 1.05 / (DRAWS as f64).sqrt(), "{shape}");
}

#[test]
fn geometric_is_zero_when_success_is_certain_and_huge_when_it_is_not() {
    assert_eq!(stream().geometric(1.0), 0);
    assert!(stream().geometric(1e-300) > 1 << 60);
}

#[test]
#[should_panic(expected = "success probability 0")]
fn geometric_refuses_a_success_that_never_comes() {
    stream().geometric(0.0);
}

#[test]
#[should_panic(expected = "empty range")]
fn below_refuses_an_empty_range() {
    stream().below(0);
}

#[test]
fn shuffle_makes_every_order_equally_likely() {
    let mut stream = stream();
    let mut counts = std::collections::BTreeMap::new();
    for _ in 0..24_000 {
        let mut items = [0, 1, 2, 3];
        stream.shuffle(&mut items);
        *counts.entry(items).or_insert(0u32) += 1;
    }
    assert_eq!(counts.len(), 24);
    // Each count is binomial: mean 1000, deviation 31.
    assert!(counts.values().all(|&c| (f64::from(c) - 1000.0).abs() < Z * 31.0), "{counts:?}");
}

#[test]
fn serves_as_a_generator_of_the_rand_traits() {
    let (mut a, mut b) = (stream(), stream());
    let mut bytes = [0; 8];
    a.fill_bytes(&mut bytes);
    assert_eq!(u64::from_le_bytes(bytes), b.next_u64());
    assert_eq!(a.next_u32(), (b.next_u64() >> 32) as u32);
}
