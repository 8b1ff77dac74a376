//! Random permutations with and without speed-up (§4.C, §4.D; Fig. 10).

use kernel::{Bytes, Stream};
use report::Unit;
use report::page::{Axis, Block, Plot, Scale};
use scoc::routes::{self, Choice, Shape, effective_iterations};
use scoc::{Chip, ChipConfig, OutputChoice};
use switching::{Arrivals, Bench, Pattern, Phase, Sizes, Traffic, patterns};

use super::{SEEDS, papers_chip};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{self, findings};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// Sizes of the paper's Fig. 10 in bytes.
const SIZES: [u64; 3] = [40, 80, 320];

/// A size that the figure does not have, for what happens beyond (our choice: four times its largest). Unit: bytes.
const LARGER: u64 = 1_280;

/// Whether the crossbar is faster than the lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Speed {
    Same,
    Chip,
}

/// A bar of the figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Point {
    size: u64,
    speed: Speed,
    choice: OutputChoice,
}

/// Permutations of each seed: five hundred or the paper's hundred in all are beyond a quick look.
const fn permutations_each(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => 2,
        Effort::Full => 20,
    }
}

/// Cycles that are not measured and cycles that are: long beside the 64 of the largest packet and
/// its schedule (our choice).
const WINDOW: (u64, u64) = (4_000, 10_000);

/// A permutation of `ports`.
type Permute = fn(usize) -> Vec<usize>;

/// Permutations of the bits of a port's number (§2.D names them).
const OF_BITS: [Permute; 4] =
    [patterns::bit_reverse, patterns::bit_complement, patterns::shuffle, patterns::transpose];

/// The throughput of a random permutation.
fn measure(point: Point, ports: usize, seed: u64, permutation: u64) -> Result<f64, Failure> {
    let mut stream = Stream::new(seed, "reproductions/scoc/permutation", permutation);
    carry(point, patterns::random_permutation(ports, &mut stream), seed)
}

/// The throughput of a permutation.
fn carry(point: Point, to: Vec<usize>, seed: u64) -> Result<f64, Failure> {
    let mut config = ChipConfig { ports: to.len(), output_choice: point.choice, ..papers_chip() };
    config.packet_max = config.packet_max.max(Bytes::new(point.size));
    if point.speed == Speed::Same {
        config.line_rate = config.rate_without_speed_up();
    }
    let plan = config.plan().expect("the paper's chip is sound");
    let ports = plan.config.ports;
    let traffic = Traffic {
        pattern: Pattern::Permutation(to),
        arrivals: Arrivals::Saturated,
        sizes: Sizes::Fixed(Bytes::new(point.size)),
        phase: Phase::Random,
    };
    let mut bench = Bench::new(Chip::new(plan.clone(), seed), plan.line, traffic, seed);
    let throughput = bench.run(WINDOW.0, WINDOW.1).throughput(ports);
    bench.check().map_err(Failure::Model)?;
    Ok(throughput)
}

/// Bytes of a word (§4.C).
const WORD: u64 = 40;
/// Rounds of F between which what it routes after effective iterations lies, 1 to 4.3 of them (Fig. 8).
const ROUNDS: [usize; 5] = [1, 2, 3, 4, 5];

/// Permutations behind what F routes, of each seed.
const fn routed_each(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => 200,
        Effort::Full => 4_000,
    }
}

/// What F or F′ routes of random permutations, four routes: the mean over the seeds.
fn routed(choice: Choice, effort: Effort) -> f64 {
    let shape = Shape { ports: ChipConfig::default().ports, routes: 4 };
    let of = |seed| routes::throughput(shape, choice, routed_each(effort), seed);
    Spread::of(&(1..=SEEDS).map(of).collect::<Vec<_>>()).mean
}

/// How far what F routes after the effective iterations of a size is from what the chip carries without speed-up: the
/// largest over sizes.
fn from_f(carried: [f64; SIZES.len()], effort: Effort) -> f64 {
    let by_rounds = ROUNDS.map(|rounds| routed(Choice::Blind { rounds }, effort));
    let apart = SIZES.iter().zip(carried).map(|(size, carried)| {
        let iterations = effective_iterations(size.div_ceil(WORD));
        let whole = iterations as usize;
        let (low, high) = (by_rounds[whole - 1], by_rounds[whole]);
        (carried - (low + (high - low) * iterations.fract())).abs()
    });
    apart.fold(0.0, f64::max)
}

/// Throughputs of the permutations of bits at the chip's speed-up, for each size and seed.
fn of_bits(watch: &mut Watch<'_>) -> Result<Vec<f64>, Failure> {
    let ports = ChipConfig::default().ports;
    let cases: Vec<(Permute, u64)> =
        OF_BITS.iter().flat_map(|&permute| SIZES.map(|size| (permute, size))).collect();
    let jobs = with_seeds(&cases, SEEDS);
    spread(&jobs, watch, |&((permute, size), seed), _| {
        let point = Point { size, speed: Speed::Chip, choice: OutputChoice::OldestLink };
        carry(point, permute(ports), seed)
    })
}

/// Of larger chips without speed-up (§4.C: "the performance did not change"): the largest distance from `small`, the
/// means of the usual one by size.
fn of_larger(small: [f64; SIZES.len()], watch: &mut Watch<'_>) -> Result<f64, Failure> {
    let cases: Vec<(usize, usize)> =
        [256, 512].iter().flat_map(|&ports| [0, 1, 2].map(|size| (ports, size))).collect();
    let jobs = with_seeds(&cases, SEEDS);
    let found = spread(&jobs, watch, |&((ports, size), seed), _| {
        let choice = OutputChoice::OldestLink;
        measure(Point { size: SIZES[size], speed: Speed::Same, choice }, ports, seed, 0)
    })?;
    let means = cases.iter().zip(found.chunks(SEEDS as usize));
    let apart = means.map(|(&(_, size), seeds)| (Spread::of(seeds).mean - small[size]).abs());
    Ok(apart.fold(0.0, f64::max))
}

/// The bars of the figure.
fn points() -> Vec<Point> {
    let of_size = |size| {
        [
            Point { size, speed: Speed::Same, choice: OutputChoice::OldestLink },
            Point { size, speed: Speed::Same, choice: OutputChoice::Random },
            Point { size, speed: Speed::Chip, choice: OutputChoice::OldestLink },
        ]
    };
    SIZES.into_iter().flat_map(of_size).collect()
}

/// Fig. 10.
pub(super) fn permutations(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../scoc/fig10.claims.toml"));
    let count = permutations_each(effort);
    let ports = ChipConfig::default().ports;
    let larger = Point { size: LARGER, speed: Speed::Same, choice: OutputChoice::OldestLink };
    let points: Vec<Point> = points().into_iter().chain([larger]).collect();
    let jobs = with_seeds(&points, SEEDS);
    let found = spread(&jobs, watch, |&(point, seed), pulse: &mut Pulse<'_>| {
        let mut all = Vec::new();
        for permutation in 0..count {
            if pulse.at(permutation as f64 / count as f64).is_break() {
                return Err(Failure::Interrupted);
            }
            all.push(measure(point, ports, seed, permutation)?);
        }
        Ok(Spread::of(&all))
    })?;
    let of = |size, speed, choice| -> Vec<Spread> {
        let wanted = Point { size, speed, choice };
        let all = jobs.iter().zip(&found);
        all.filter(|((point, _), _)| *point == wanted).map(|(_, &spread)| spread).collect()
    };
    let means = |size, speed, choice| -> Vec<f64> {
        of(size, speed, choice).iter().map(|spread| spread.mean).collect()
    };
    let first = OutputChoice::OldestLink;
    for size in SIZES {
        sheet.measure(&format!("fig10.{size}"), Measured::mean(&means(size, Speed::Same, first)));
    }
    let least: Vec<f64> = SIZES
        .iter()
        .flat_map(|&size| of(size, Speed::Chip, first))
        .map(|spread| spread.low)
        .collect();
    sheet.measure("fig10.speed-up", Measured::smallest(&least));
    sheet.measure("fig10.of-bits", Measured::smallest(&of_bits(watch)?));
    let small = SIZES.map(|size| Spread::of(&means(size, Speed::Same, first)).mean);
    sheet.measure("fig10.ports", Measured::one(of_larger(small, watch)?));
    sheet.measure("fig10.as-f", Measured::one(from_f(small, effort)));
    let maximal = routed(Choice::Common, effort);
    for (id, size) in [("fig10.maximal", 320), ("fig10.maximal-larger", LARGER)] {
        let below: Vec<f64> =
            means(size, Speed::Same, first).iter().map(|carried| carried - maximal).collect();
        sheet.measure(id, Measured::mean(&below));
    }
    let second = means(320, Speed::Same, OutputChoice::Random);
    let gain: Vec<f64> =
        second.iter().zip(means(320, Speed::Same, first)).map(|(two, one)| two - one).collect();
    sheet.measure("fig10.mode-2", Measured::mean(&gain));
    let curve = |name: &str, speed, choice| {
        let spread = |size| Spread::of(&means(size, speed, choice));
        drawing::curve(name, &SIZES.map(|size| (size as f64, spread(size))))
    };
    let plot = Plot {
        title: "Random permutations on SCOC".into(),
        note: "128 ports, four routes; bars from the smallest to the largest seed.".into(),
        x: Axis { label: "packet".into(), unit: Unit::Bytes, scale: Scale::Linear },
        y: Axis { label: "throughput".into(), unit: Unit::Share, scale: Scale::Linear },
        series: vec![
            curve("mode 1, no speed-up", Speed::Same, first),
            curve("mode 2, no speed-up", Speed::Same, OutputChoice::Random),
            curve("mode 1, speed-up 1.45", Speed::Chip, first),
        ],
    };
    let text = "Every input sends all it can to one output. Ports do not compete, only groups do \
                for their routes; the chip's speed-up makes good what its scheduler misses.";
    Ok(findings("Random permutations", text, vec![Block::Plots(vec![plot])], sheet))
}
