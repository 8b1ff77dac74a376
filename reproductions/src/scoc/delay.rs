//! Delay over load under four patterns of traffic (§4.E; Fig. 11).

use kernel::{Bytes, Span};
use report::Unit;
use report::page::{Axis, Block, Plot, Scale};
use scoc::{Chip, Crrd, CrrdConfig, FlatConfig, Hiera, HieraConfig, fall_through, flat};
use serde::{Deserialize, Serialize};
use switching::{Arrivals, Line, Pattern, Phase, Sizes, Switch, Traffic};

use super::{SEEDS, Window, papers_chip, papers_crrd, run_bench};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{curve, findings};
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

const PORTS: usize = 128;
/// §4.E: the base packet.
const PACKET: Bytes = Bytes::new(288);
/// Ports of a part of the partitioned traffic (§4.E).
const PART: usize = 8;

/// What is on the bench: a curve of the figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum System {
    Scoc,
    Flat,
    Hiera,
    /// Hiera with 16 packets at each input of a subswitch.
    HieraLarge,
    /// Not in the figure: Hiera with room for 16 packets at each output of a subswitch.
    HieraOutputs,
    /// Not in the figure: CRRD with 32 times the buffers.
    CrrdLarge,
}

use System::{CrrdLarge, Flat, HieraLarge, HieraOutputs, Scoc};

const SYSTEMS: [(System, &str); 5] = [
    (Scoc, "SCOC"),
    (Flat, "Flat"),
    (System::Hiera, "Hiera"),
    (HieraLarge, "Hiera′"),
    (CrrdLarge, "CRRD, 32× buffers"),
];

/// The four parts of the figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Uniform,
    Partitioned,
    /// Not in the figure: the same where no port sends to itself.
    PartitionedOthers,
    Diagonal,
    LogDiagonal,
}

const PARTS: [(Part, &str); 4] = [
    (Part::Uniform, "(a) uniform"),
    (Part::Partitioned, "(b) partitioned"),
    (Part::Diagonal, "(c) diagonal"),
    (Part::LogDiagonal, "(d) log-diagonal"),
];

impl Part {
    fn pattern(self) -> Pattern {
        match self {
            Self::Uniform => Pattern::Uniform,
            Self::Partitioned => Pattern::Partitioned(PART),
            Self::PartitionedOthers => to_others_of_a_part(),
            Self::Diagonal => Pattern::Diagonal,
            Self::LogDiagonal => Pattern::LogDiagonal,
        }
    }
}

/// Each port's share of what it sends to each other one of its part.
fn to_others_of_a_part() -> Pattern {
    let others = |port: usize| {
        let part = port / PART * PART..(port / PART + 1) * PART;
        part.filter(move |&other| other != port).map(|other| (other, 1.0 / (PART - 1) as f64))
    };
    Pattern::Connections((0..PORTS).map(|port| others(port).collect()).collect())
}

/// Loads in hundredths; the last is more than any switch carries.
const LOADS: [u32; 9] = [10, 30, 50, 60, 65, 70, 80, 90, 100];
/// The load up to which the paper draws.
const HIGH: u32 = 90;

/// Where traffic to others alone is tested.
const OTHERS: [Case; 2] =
    [(System::Hiera, Part::PartitionedOthers, 100), (HieraLarge, Part::PartitionedOthers, 100)];
/// Where room at the outputs of Hiera's subswitches is tested.
const OUTPUTS: [Case; 3] = [
    (HieraOutputs, Part::Uniform, HIGH),
    (HieraOutputs, Part::Diagonal, 100),
    (HieraOutputs, Part::LogDiagonal, 100),
];
/// Loads below the largest that the paper draws, where the same is tested for its delay.
const LOWER: [u32; 7] = [10, 30, 50, 60, 65, 70, 80];

const fn window(effort: Effort) -> Window {
    match effort {
        Effort::Quick => (60, 250),
        Effort::Full => (500, 5_000),
    }
}

/// Large buffers take thousands of packet times to fill, and CRRD's pointers as long to part.
const fn long_window(effort: Effort) -> Window {
    match effort {
        Effort::Quick => (3_000, 250),
        Effort::Full => (10_000, 5_000),
    }
}

/// What one seed gave.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Point {
    /// Mean delay in seconds, first bit in to first bit out.
    delay: f64,
    /// The least of any packet.
    least: f64,
    /// What left, as a share of what the lines carry.
    carried: f64,
}

type Case = (System, Part, u32);

fn measure((system, part, load): Case, effort: Effort, seed: u64) -> Result<Point, Failure> {
    let load = match load {
        100 => Arrivals::Saturated,
        load => Arrivals::Drifting(f64::from(load) / 100.0),
    };
    let traffic = Traffic {
        pattern: part.pattern(),
        arrivals: load,
        sizes: Sizes::Fixed(PACKET),
        phase: Phase::Random,
    };
    let run = match system {
        CrrdLarge => long_window(effort),
        _ => window(effort),
    };
    match system {
        Scoc => {
            let plan = papers_chip().plan().expect("the paper's chip is sound");
            // Its cycles are the scheduler's and the crossbar's; links take the rest.
            let line = plan.line;
            let modelled = line.span(line.start_of(plan.first_word() + 1));
            let rest = fall_through(plan.config.clock_hertz) - modelled;
            on_bench(Chip::new(plan, seed), line, rest, traffic, run, seed)
        }
        Flat => {
            let config = FlatConfig::default();
            on_bench(flat(config), config.line(), Span::ZERO, traffic, run, seed)
        }
        System::Hiera | HieraLarge | HieraOutputs => {
            let packets = if system == HieraLarge { 16 } else { 1 };
            let output_packets = (system == HieraOutputs).then_some(16);
            let config = HieraConfig { packets, output_packets, ..HieraConfig::default() };
            // §4.E: "yielding the same fall-through latency as SCOC".
            let rest = fall_through(config.clock_hertz);
            on_bench(Hiera::new(config), config.line(), rest, traffic, run, seed)
        }
        CrrdLarge => {
            let usual = papers_crrd();
            let config = CrrdConfig { packets: 32 * usual.packets, ..usual };
            on_bench(Crrd::new(config), config.line(), Span::ZERO, traffic, run, seed)
        }
    }
}

/// `rest`: time through the switch that its cycles do not model.
fn on_bench(
    switch: impl Switch,
    line: Line,
    rest: Span,
    traffic: Traffic,
    window: Window,
    seed: u64,
) -> Result<Point, Failure> {
    let bench = run_bench(switch, line, traffic, window, seed)?;
    let measured = bench.measured();
    let seconds = |ticks| line.seconds(ticks) + rest.as_seconds();
    let delay = seconds(measured.delay.mean().unwrap_or(0.0));
    let least = seconds(measured.delay.min().unwrap_or(0) as f64);
    Ok(Point { delay, least, carried: measured.throughput(PORTS) })
}

/// All that was measured.
struct Figure {
    jobs: Vec<(Case, u64)>,
    found: Vec<Point>,
}

impl Figure {
    /// Over seeds.
    fn of(&self, case: Case, what: fn(&Point) -> f64) -> Vec<f64> {
        let all = self.jobs.iter().zip(&self.found);
        all.filter(|((point, _), _)| *point == case).map(|(_, point)| what(point)).collect()
    }

    fn carried(&self, case: Case) -> Vec<f64> {
        self.of(case, |point| point.carried)
    }

    fn delay(&self, case: Case) -> Vec<f64> {
        self.of(case, |point| point.delay)
    }

    /// What one system carries beyond another when inputs are always busy, relative, seed by seed.
    fn gain(&self, part: Part, one: System, other: System) -> Measured {
        let (ones, others) = (self.carried((one, part, 100)), self.carried((other, part, 100)));
        let gains: Vec<f64> =
            ones.iter().zip(&others).map(|(one, other)| one / other - 1.0).collect();
        Measured::mean(&gains)
    }

    /// How far a system's mean delay is from SCOC's in uniform traffic: the largest over the loads that the paper
    /// draws, relative.
    fn apart(&self, system: System) -> Measured {
        let mean = |system, load| Spread::of(&self.delay((system, Part::Uniform, load))).mean;
        let loads = LOWER.iter().copied().chain([HIGH]);
        let apart = loads.map(|load| (mean(system, load) / mean(Scoc, load) - 1.0).abs());
        Measured::one(apart.fold(0.0, f64::max))
    }

    /// What one system carries beyond another in points of what the lines carry.
    fn points(&self, part: Part, one: System, other: System) -> Measured {
        let (ones, others) = (self.carried((one, part, 100)), self.carried((other, part, 100)));
        let gains: Vec<f64> = ones.iter().zip(&others).map(|(one, other)| one - other).collect();
        Measured::mean(&gains)
    }
}

/// Fig. 11.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../scoc/fig11.claims.toml"));
    let cases: Vec<Case> = PARTS
        .iter()
        .flat_map(|&(part, _)| SYSTEMS.map(|(system, _)| (system, part)))
        .flat_map(|(system, part)| LOADS.map(|load| (system, part, load)))
        .chain(OUTPUTS)
        .chain(OTHERS)
        .chain(LOWER.map(|load| (HieraOutputs, Part::Uniform, load)))
        .collect();
    let jobs = with_seeds(&cases, SEEDS);
    let found = spread(&jobs, watch, |&(case, seed), _| measure(case, effort, seed))?;
    let figure = Figure { jobs, found };
    judge(&mut sheet, &figure);
    let plots = PARTS.iter().map(|&(part, title)| Plot {
        title: title.into(),
        note:
            "Bars from the smallest to the largest seed; at the right end inputs are always busy."
                .into(),
        x: Axis { label: "load".into(), unit: Unit::Share, scale: Scale::Linear },
        y: Axis { label: "mean delay".into(), unit: Unit::Seconds, scale: Scale::Log },
        series: SYSTEMS
            .iter()
            .map(|&(system, name)| {
                let points = LOADS.map(|load| {
                    (f64::from(load) / 100.0, Spread::of(&figure.delay((system, part, load))))
                });
                curve(name, &points)
            })
            .collect(),
    });
    let text = "Packets of 288 B, 128 ports. Delay counts from a packet's first bit at the switch to \
                its first bit leaving, serial links and link logic included; what waits for room \
                before the switch is not in it. SCOC sends a packet from its first bit on.";
    Ok(findings("Delay and load", text, vec![Block::Plots(plots.collect())], sheet))
}

fn judge(sheet: &mut Sheet, figure: &Figure) {
    let mut put = |id: &str, measured| sheet.measure(&format!("fig11.{id}"), measured);
    let carried = |system, part, load| Measured::mean(&figure.carried((system, part, load)));
    let delay = |system, part, load| Measured::mean(&figure.delay((system, part, load)));
    put("scoc-uniform", carried(Scoc, Part::Uniform, HIGH));
    put("hiera-uniform", carried(System::Hiera, Part::Uniform, HIGH));
    put("flat-uniform", carried(Flat, Part::Uniform, HIGH));
    put("scoc-least", delay(Scoc, Part::Uniform, LOADS[0]));
    let least = figure.of((Flat, Part::Uniform, LOADS[0]), |point| point.least);
    put("flat-least", Measured::smallest(&least));
    let higher = figure.delay((Flat, Part::Uniform, 50)).into_iter();
    let higher = higher.zip(figure.delay((Scoc, Part::Uniform, 50)));
    put("flat-delay", Measured::mean(&higher.map(|(flat, scoc)| flat / scoc).collect::<Vec<_>>()));
    put("hiera-delay", figure.apart(System::Hiera));
    put("hiera-delay-outputs", figure.apart(HieraOutputs));
    put("scoc-partitioned", carried(Scoc, Part::Partitioned, HIGH));
    put("hiera-partitioned", carried(System::Hiera, Part::Partitioned, 100));
    put("hiera-uniform-outputs", carried(HieraOutputs, Part::Uniform, HIGH));
    put("hiera-large-partitioned", carried(HieraLarge, Part::Partitioned, 100));
    put("hiera-partitioned-others", carried(System::Hiera, Part::PartitionedOthers, 100));
    put("hiera-large-partitioned-others", carried(HieraLarge, Part::PartitionedOthers, 100));
    let larger = figure.delay((HieraLarge, Part::Partitioned, 70)).into_iter();
    let larger = larger.zip(figure.delay((System::Hiera, Part::Partitioned, 70)));
    let larger: Vec<f64> = larger.map(|(large, usual)| large / usual).collect();
    put("hiera-large-delay", Measured::mean(&larger));
    for (id, part) in [("diagonal", Part::Diagonal), ("logdiagonal", Part::LogDiagonal)] {
        put(&format!("{id}-hiera"), figure.gain(part, Scoc, System::Hiera));
        put(&format!("{id}-flat"), figure.gain(part, Scoc, Flat));
        put(&format!("{id}-hiera-outputs"), figure.gain(part, Scoc, HieraOutputs));
        put(&format!("{id}-hiera-points"), figure.points(part, Scoc, System::Hiera));
        put(&format!("{id}-hiera-outputs-points"), figure.points(part, Scoc, HieraOutputs));
    }
}
