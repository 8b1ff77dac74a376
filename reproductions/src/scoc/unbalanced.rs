//! Unbalanced traffic, packet sizes and ways of requesting (§4.E; Fig. 12).

use kernel::Bytes;
use report::Unit;
use report::page::{Axis, Block, Plot, Scale};
use scoc::{Chip, ChipConfig, Crrd, CrrdConfig, FlatConfig, Requesting, Transfers, flat};
use switching::{Arrivals, Bench, Line, Pattern, Phase, Sizes, Switch, Traffic};

use super::{SEEDS, papers_chip, papers_crrd};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{self, findings};
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

pub(super) const PORTS: usize = 128;

/// What is measured: a curve of the figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum System {
    /// The chip with packets of this many bytes.
    Scoc(u64, Requesting, Transfers),
    /// The same with room for 16 packets at each output.
    Roomy(u64),
    /// The chip with the mix of two sizes.
    Bimodal,
    Flat,
    FlatFast,
    Crrd(Buffers, Outputs),
}

/// What inputs of CRRD have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Buffers {
    Usual,
    /// 32 times the buffers.
    Large,
    /// The same with SCOC's speed-up.
    LargeFast,
}

/// Room at the outputs of Flat in packets, "the same buffers as SCOC" (§4.E), whose chip has 12 (§5).
const ROOM: usize = 16;

/// What outputs of CRRD have, of which the paper says nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outputs {
    /// Room for 16 packets.
    Usual,
    /// Room for whatever the centre sends.
    Unlimited,
}

impl Buffers {
    fn config(self, outputs: Outputs) -> CrrdConfig {
        let usual = match outputs {
            Outputs::Usual => papers_crrd(),
            Outputs::Unlimited => CrrdConfig::default(),
        };
        let large = CrrdConfig { packets: 32 * usual.packets, ..usual };
        match self {
            Self::Usual => usual,
            Self::Large => large,
            Self::LargeFast => CrrdConfig { speed_up: FlatConfig::sped_up().speed_up, ..large },
        }
    }
}

const CHIP: fn(u64) -> System =
    |size| System::Scoc(size, Requesting::OldestFake, Transfers::Multiple);

const FAST_CRRD: System = System::Crrd(Buffers::LargeFast, Outputs::Usual);
const FREE_CRRD: System = System::Crrd(Buffers::LargeFast, Outputs::Unlimited);

fn curves() -> Vec<(&'static str, System)> {
    use Requesting::{OldestFake, Selective, UnlimitedFakes};
    use Transfers::{Multiple, Single};
    vec![
        ("SCOC, 288 B", CHIP(288)),
        ("SCOC, 120 B", CHIP(120)),
        ("SCOC, 85 B", CHIP(85)),
        ("SCOC, 40 B", CHIP(40)),
        ("SCOC, 90 % 40 B, 10 % 288 B", System::Bimodal),
        ("85 B, selective", System::Scoc(85, Selective, Multiple)),
        ("85 B, unlimited fakes", System::Scoc(85, UnlimitedFakes, Multiple)),
        ("288 B, room for 16 packets at outputs", System::Roomy(288)),
        ("40 B, the same", System::Roomy(40)),
        ("40 B, one transfer an input", System::Scoc(40, OldestFake, Single)),
        ("40 B, one transfer, unlimited fakes", System::Scoc(40, UnlimitedFakes, Single)),
        ("120 B, one transfer an input", System::Scoc(120, OldestFake, Single)),
        ("Flat", System::Flat),
        ("Flat, 1.45×", System::FlatFast),
        ("CRRD", System::Crrd(Buffers::Usual, Outputs::Usual)),
        ("CRRD, 32× buffers", System::Crrd(Buffers::Large, Outputs::Usual)),
        ("CRRD, 32× buffers, 1.45×", FAST_CRRD),
        ("CRRD, outputs never full", System::Crrd(Buffers::Usual, Outputs::Unlimited)),
        ("CRRD, 32×, outputs never full", System::Crrd(Buffers::Large, Outputs::Unlimited)),
        ("CRRD, 32×, 1.45×, outputs never full", FREE_CRRD),
    ]
}

/// Shares of directed traffic in hundredths.
pub(super) const UNBALANCE: [u32; 6] = [0, 20, 40, 60, 80, 100];
/// More of them, where SCOC is the most times CRRD.
const CLOSER: [u32; 10] = [10, 12, 14, 16, 18, 22, 24, 26, 28, 30];

/// Packet times of 288 B that are not measured and that are.
pub(super) const fn window(effort: Effort) -> (u64, u64) {
    match effort {
        Effort::Quick => (100, 300),
        Effort::Full => (500, 5_000),
    }
}

/// Large buffers take thousands of packet times to fill, and the pointers as long to part.
const fn long_window(effort: Effort) -> (u64, u64) {
    match effort {
        Effort::Quick => (3_000, 1_000),
        Effort::Full => (10_000, 5_000),
    }
}

/// What inputs that are always busy carry through a switch, as a share of the line rate.
pub(super) fn saturate(
    switch: impl Switch,
    line: Line,
    (sizes, u): (Sizes, u32),
    (warm_up, measured): (u64, u64),
    seed: u64,
) -> Result<f64, Failure> {
    let sink = (0..PORTS).collect();
    let traffic = Traffic {
        pattern: Pattern::Unbalanced { sink, share: f64::from(u) / 100.0 },
        arrivals: Arrivals::Saturated,
        sizes,
        phase: Phase::Random,
    };
    let packet = line.cycle_from(line.send_time(Bytes::new(288)));
    let mut bench = Bench::new(switch, line, traffic, seed);
    let throughput = bench.run(warm_up * packet, measured * packet).throughput(PORTS);
    bench.check().map_err(Failure::Model)?;
    Ok(throughput)
}

/// 90 % of the packets have 40 B, the others 288 B.
pub(super) fn bimodal() -> Sizes {
    Sizes::Mixed(vec![(Bytes::new(40), 0.9), (Bytes::new(288), 0.1)])
}

fn measure(system: System, u: u32, effort: Effort, seed: u64) -> Result<f64, Failure> {
    let fixed = |size| Sizes::Fixed(Bytes::new(size));
    let chip = |config: ChipConfig, sizes| {
        let plan = config.plan().expect("the variants are sound");
        let line = plan.line;
        saturate(Chip::new(plan, seed), line, (sizes, u), window(effort), seed)
    };
    match system {
        System::Scoc(size, requesting, transfers) => {
            let config = ChipConfig { requesting, transfers, ..papers_chip() };
            chip(config, fixed(size))
        }
        System::Roomy(size) => {
            chip(ChipConfig { output_packets: ROOM, ..papers_chip() }, fixed(size))
        }
        System::Bimodal => chip(papers_chip(), bimodal()),
        System::Flat | System::FlatFast => {
            let config = match system {
                System::Flat => FlatConfig::default(),
                _ => FlatConfig::sped_up(),
            };
            saturate(flat(config), config.line(), (fixed(288), u), window(effort), seed)
        }
        System::Crrd(buffers, outputs) => {
            let config = buffers.config(outputs);
            saturate(Crrd::new(config), config.line(), (fixed(288), u), long_window(effort), seed)
        }
    }
}

/// All that was measured.
struct Figure {
    jobs: Vec<((System, u32), u64)>,
    found: Vec<f64>,
}

impl Figure {
    /// Over seeds.
    fn of(&self, system: System, u: u32) -> Vec<f64> {
        let all = self.jobs.iter().zip(&self.found);
        all.filter(|((point, _), _)| *point == (system, u)).map(|(_, &share)| share).collect()
    }

    fn mean(&self, system: System, u: u32) -> f64 {
        Spread::of(&self.of(system, u)).mean
    }

    /// The seeds of the point with the least mean.
    fn seeds_of_least(&self, system: System, unbalance: &[u32]) -> Vec<f64> {
        let by_mean = |&a: &u32, &b: &u32| self.mean(system, a).total_cmp(&self.mean(system, b));
        let least = unbalance.iter().copied().min_by(by_mean).expect("there are points");
        self.of(system, least)
    }

    fn least(&self, system: System, unbalance: &[u32]) -> Measured {
        Measured::mean(&self.seeds_of_least(system, unbalance))
    }

    /// Seed by seed at one point.
    fn difference(&self, one: System, other: System, u: u32) -> Measured {
        let pairs = self.of(one, u).into_iter().zip(self.of(other, u));
        Measured::mean(&pairs.map(|(one, other)| one - other).collect::<Vec<_>>())
    }

    /// Differences of means over the points.
    fn differences(&self, one: System, other: System, unbalance: &[u32]) -> Vec<f64> {
        unbalance.iter().map(|&u| self.mean(one, u) - self.mean(other, u)).collect()
    }
}

/// Fig. 12.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../scoc/fig12.claims.toml"));
    let closer = [CHIP(288), FAST_CRRD, FREE_CRRD];
    let points: Vec<(System, u32)> = curves()
        .iter()
        .flat_map(|&(_, system)| UNBALANCE.map(|u| (system, u)))
        .chain(closer.into_iter().flat_map(|system| CLOSER.map(|u| (system, u))))
        .collect();
    let jobs = with_seeds(&points, SEEDS);
    let found = spread(&jobs, watch, |&((system, u), seed), _| measure(system, u, effort, seed))?;
    let figure = Figure { jobs, found };
    judge(&mut sheet, &figure);
    let curve = |&(name, system): &(&str, System)| {
        let spread = |u| Spread::of(&figure.of(system, u));
        drawing::curve(name, &UNBALANCE.map(|u| (f64::from(u) / 100.0, spread(u))))
    };
    let plot = |title: &str, wanted: &dyn Fn(System) -> bool| Plot {
        title: title.into(),
        note: "Saturated inputs; bars from the smallest to the largest seed.".into(),
        x: Axis { label: "unbalance u".into(), unit: Unit::Ratio, scale: Scale::Linear },
        y: Axis { label: "throughput".into(), unit: Unit::Share, scale: Scale::Linear },
        series: curves().iter().filter(|(_, system)| wanted(*system)).map(curve).collect(),
    };
    let is_chip = |system| matches!(system, System::Scoc(..) | System::Roomy(_) | System::Bimodal);
    let plots = vec![
        plot("Switches, 288 B", &|system| system == CHIP(288) || !is_chip(system)),
        plot("Packet sizes and ways of requesting", &is_chip),
    ];
    let text = "From uniform traffic (u = 0) to a permutation (u = 1), inputs always busy.";
    Ok(findings("Unbalanced traffic", text, vec![Block::Plots(plots)], sheet))
}

fn judge(sheet: &mut Sheet, figure: &Figure) {
    let mixed = &UNBALANCE[..UNBALANCE.len() - 1];
    let least = |values: Vec<f64>| values.into_iter().fold(f64::INFINITY, f64::min);
    let asking = |requesting| System::Scoc(85, requesting, Transfers::Multiple);
    let mut put = |id: &str, measured| sheet.measure(&format!("fig12.{id}"), measured);
    put("flat-uniform", Measured::mean(&figure.of(System::Flat, 0)));
    let above = figure.differences(CHIP(288), System::FlatFast, mixed);
    put("above-flat", Measured::one(least(above)));
    put("directed", Measured::mean(&figure.of(CHIP(288), 100)));
    put("unlimited", figure.difference(CHIP(85), asking(Requesting::UnlimitedFakes), 0));
    put("selective", figure.difference(asking(Requesting::Selective), CHIP(85), 0));
    put("bimodal-directed", Measured::mean(&figure.of(System::Bimodal, 100)));
    put("bimodal", figure.least(System::Bimodal, mixed));
    for (word, size) in [("sizes", 120), ("sizes-288", 288)] {
        let more = figure.differences(CHIP(size), CHIP(40), mixed);
        put(word, Measured::one(Spread::of(&more).mean));
    }
    let roomy =
        [288, 40].map(|size| figure.differences(System::Roomy(size), CHIP(size), &UNBALANCE));
    let apart = roomy.concat().into_iter().map(f64::abs);
    put("outputs-16", Measured::one(apart.fold(0.0, f64::max)));
    judge_crrd(sheet, figure, mixed);
    judge_single(sheet, figure);
}

/// CRRD, with room for 16 packets at outputs and for any number.
fn judge_crrd(sheet: &mut Sheet, figure: &Figure, mixed: &[u32]) {
    for (outputs, of) in [(Outputs::Usual, ""), (Outputs::Unlimited, "-unlimited")] {
        let mut put = |id: &str, measured| sheet.measure(&format!("fig12.{id}{of}"), measured);
        let [usual, large, fast] = [Buffers::Usual, Buffers::Large, Buffers::LargeFast]
            .map(|buffers| System::Crrd(buffers, outputs));
        put("crrd-below", figure.difference(usual, System::Flat, 0));
        put("crrd-large", Measured::mean(&figure.of(large, 0)));
        put("crrd-large-low", figure.least(large, mixed));
        let closer = mixed.iter().chain(&CLOSER);
        let times = closer.map(|&u| figure.mean(CHIP(288), u) / figure.mean(fast, u));
        put("crrd-large-fast", Measured::one(times.fold(f64::NEG_INFINITY, f64::max)));
    }
}

/// What one transfer for each input costs.
fn judge_single(sheet: &mut Sheet, figure: &Figure) {
    let most = |values: Vec<f64>| values.into_iter().fold(f64::NEG_INFINITY, f64::max);
    let single = |size| System::Scoc(size, Requesting::OldestFake, Transfers::Single);
    let all = System::Scoc(40, Requesting::UnlimitedFakes, Transfers::Single);
    let mut put = |id: &str, measured| sheet.measure(&format!("fig12.{id}"), measured);
    let levels = [("", CHIP(40)), ("-single", single(40)), ("-single-unlimited", all)];
    for (name, system) in levels {
        put(&format!("small{name}"), figure.least(system, &UNBALANCE));
    }
    let least = |system| figure.seeds_of_least(system, &UNBALANCE);
    for (name, system) in [("", single(40)), ("-unlimited", all)] {
        let pairs = least(CHIP(40)).into_iter().zip(least(system));
        let lost: Vec<f64> = pairs.map(|(usual, single)| usual - single).collect();
        put(&format!("small-loss{name}"), Measured::mean(&lost));
    }
    let loss = figure.differences(CHIP(120), single(120), &UNBALANCE);
    put("large-single", Measured::one(most(loss)));
    for (name, system) in [("padded", CHIP(40)), ("padded-single", single(40))] {
        let apart = figure.differences(CHIP(85), system, &UNBALANCE);
        put(name, Measured::one(most(apart.into_iter().map(f64::abs).collect())));
    }
}
