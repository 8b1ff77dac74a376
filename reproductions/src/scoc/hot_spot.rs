//! One output that every input wants more of than of others (§6.A, adversarial traffic).
//!
//! The paper says in words that a congested output holds back what else its inputs have, and that a
//! flat crossbar's does so too. What finite buffers at inputs can carry at most has a closed form:
//! [`most_carried`].

use kernel::Bytes;
use report::Unit;
use report::page::{Axis, Block, PlotSeries, Scale, SeriesStyle};
use scoc::{Chip, Crrd, FlatConfig, Hiera, HieraConfig, flat};
use serde::{Deserialize, Serialize};
use switching::{Arrivals, Line, OutputQueued, Pattern, Phase, Sizes, Switch, Traffic};

use super::{SEEDS, Window, papers_chip, papers_crrd, run_bench};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{curve, findings, plot};
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

const PORTS: usize = 128;
/// §4.E: the base packet.
const PACKET: Bytes = Bytes::new(288);
/// The hot output: any does.
const HOT: usize = 37;
/// Shares of each input's traffic that go there beyond an even one, in thousandths.
const HEAT: [u32; 5] = [0, 10, 20, 50, 100];

/// What is on the bench.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum System {
    Scoc,
    FlatFast,
    Hiera,
    Crrd,
    OutputQueued,
}

const SYSTEMS: [(System, &str); 5] = [
    (System::Scoc, "SCOC"),
    (System::FlatFast, "Flat, 1.45×"),
    (System::Hiera, "Hiera"),
    (System::Crrd, "CRRD"),
    (System::OutputQueued, "output-queued, buffers without bound"),
];

/// At a share of a hundredth 1.3 packets for the hot output are too many in a packet time, so 128
/// inputs of 16 take 1,600 to fill; and the mix is even over many times what buffers hold.
const fn window(effort: Effort) -> Window {
    match effort {
        Effort::Quick => (4_000, 3_000),
        Effort::Full => (8_000, 10_000),
    }
}

/// What one seed gave, as shares of a line's rate.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Point {
    /// At the hot output.
    hot: f64,
    /// At all outputs, in the mean.
    carried: f64,
}

type Case = (System, u32);

fn share(heat: u32) -> f64 {
    f64::from(heat) / 1000.0
}

/// The most that a switch carries of traffic whose inputs each send an even mix with this share for
/// one output, once packets for it fill whatever buffers there are before it: what enters is then the
/// mix, at the pace at which the hot output serves its part.
fn most_carried(share: f64) -> f64 {
    let ports = PORTS as f64;
    1.0 / (ports * share + 1.0 - share)
}

fn measure((system, heat): Case, effort: Effort, seed: u64) -> Result<Point, Failure> {
    match system {
        System::Scoc => {
            let plan = papers_chip().plan().expect("the paper's chip is sound");
            let line = plan.line;
            on_bench(Chip::new(plan, seed), line, heat, effort, seed)
        }
        System::FlatFast => {
            let config = FlatConfig::sped_up();
            on_bench(flat(config), config.line(), heat, effort, seed)
        }
        System::Hiera => {
            let config = HieraConfig::default();
            on_bench(Hiera::new(config), config.line(), heat, effort, seed)
        }
        System::Crrd => {
            let config = papers_crrd();
            on_bench(Crrd::new(config), config.line(), heat, effort, seed)
        }
        System::OutputQueued => {
            let config = papers_chip();
            let line = Line::clocked(config.line_rate, config.clock_hertz);
            on_bench(OutputQueued::new(line, PORTS), line, heat, effort, seed)
        }
    }
}

fn on_bench(
    switch: impl Switch,
    line: Line,
    heat: u32,
    effort: Effort,
    seed: u64,
) -> Result<Point, Failure> {
    let traffic = Traffic {
        pattern: Pattern::HotSpot { output: HOT, share: share(heat) },
        arrivals: Arrivals::Saturated,
        sizes: Sizes::Fixed(PACKET),
        phase: Phase::Random,
    };
    let bench = run_bench(switch, line, traffic, window(effort), seed)?;
    let hot = (0..PORTS).map(|input| bench.rate(input, HOT)).sum();
    Ok(Point { hot, carried: bench.measured().throughput(PORTS) })
}

/// The hot output.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../scoc/hot-spot.claims.toml"));
    let cases: Vec<Case> =
        SYSTEMS.iter().flat_map(|&(system, _)| HEAT.map(|heat| (system, heat))).collect();
    let jobs = with_seeds(&cases, SEEDS);
    let found = spread(&jobs, watch, |&(case, seed), _| measure(case, effort, seed))?;
    let of = |case: Case, what: fn(&Point) -> f64| -> Vec<f64> {
        let all = jobs.iter().zip(&found);
        all.filter(|((point, _), _)| *point == case).map(|(_, point)| what(point)).collect()
    };
    judge(&mut sheet, &of);
    let axis = |label: &str| Axis { label: label.into(), unit: Unit::Share, scale: Scale::Linear };
    let curves = |what: fn(&Point) -> f64| {
        SYSTEMS.map(|(system, name)| {
            curve(name, &HEAT.map(|heat| (share(heat), Spread::of(&of((system, heat), what)))))
        })
    };
    let bound = HEAT.map(|heat| (share(heat), most_carried(share(heat))));
    let bound = PlotSeries::new("most with finite buffers", SeriesStyle::Bound, bound.to_vec());
    let mut carried = curves(|point| point.carried).to_vec();
    carried.push(bound);
    let note = "Inputs always busy; bars from the smallest to the largest seed.";
    let (x, y) = ("share for the hot output, beyond an even one", "throughput");
    let plots = vec![
        plot("All outputs", note, axis(x), axis(y), carried),
        plot("The hot output", note, axis(x), axis(y), curves(|point| point.hot).to_vec()),
    ];
    let text = "Packets for a hot output fill the buffers of every input, and what else the inputs have \
                waits behind them: whatever the core, a switch then carries no more than the mix at \
                the pace of its hot output. End-to-end credits keep such packets out of the switch \
                (experiment spine).";
    Ok(findings("A hot output", text, vec![Block::Plots(plots)], sheet))
}

fn judge(sheet: &mut Sheet, of: &dyn Fn(Case, fn(&Point) -> f64) -> Vec<f64>) {
    let mut put = |id: &str, measured| sheet.measure(&format!("hot-spot.{id}"), measured);
    let hot = HEAT[1..].iter().flat_map(|&heat| of((System::Scoc, heat), |point| point.hot));
    put("hot", Measured::smallest(&hot.collect::<Vec<_>>()));
    let carried = |system, heat| of((system, heat), |point| point.carried);
    let beside = HEAT[1..].iter().flat_map(|&heat| {
        let pairs = carried(System::Scoc, heat).into_iter().zip(carried(System::FlatFast, heat));
        pairs.map(|(scoc, flat)| (scoc / flat - 1.0).abs())
    });
    put("flat", Measured::one(beside.fold(0.0, f64::max)));
    let relative = HEAT[1..].iter().flat_map(|&heat| {
        let most = most_carried(share(heat));
        carried(System::Scoc, heat).into_iter().map(move |carried| carried / most)
    });
    put("bound", Measured::smallest(&relative.collect::<Vec<_>>()));
}
