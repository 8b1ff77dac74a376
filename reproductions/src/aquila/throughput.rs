//! What the Clique carries of cells that nothing holds back: uniform traffic and the worst pattern (§2; X15).

use aquila::link::classes::Mode;
use aquila::raw::{self, Pattern, Traffic};
use aquila::switch::settings::Settings;
use aquila::topology::{Fibres, Shape};
use kernel::Rate;
use report::Unit;
use report::page::{Axis, Block, Plot, Scale};
use serde_json::json;

use super::SEEDS;
use super::clique::{Clique, run as run_cells, us};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{curve, findings, plot, table};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// The class of bulk data (our choice, M210).
pub(super) const DATA: u8 = 7;
/// Cells of a packet of 4160 B.
pub(super) const TRAIN: u32 = 29;
/// What a TiN injects at the most (§6): 100 Gbps of IP and as much from its Ethernet port.
const MOST: u64 = 200;

/// What is offered.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Case {
    pattern: Pattern,
    mode: Mode,
    /// Unit: Gbps a TiN.
    offered: u64,
}

/// What arrives, of which the first two fifths are not measured. Unit: bit/s a TiN.
pub(super) fn carried(
    clique: &Clique,
    settings: &Settings,
    (pattern, gbps): (Pattern, u64),
    micros: u64,
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<f64, Failure> {
    let traffic = Traffic {
        pattern,
        cells: TRAIN,
        terminals: raw::NIC,
        rate: Rate::from_gbps(gbps),
        class: DATA,
        until: us(micros),
        from: us(micros * 2 / 5),
    };
    let mut cells = clique.raw(settings, traffic, seed);
    run_cells(&mut cells, traffic.until, pulse)?;
    cells.check().map_err(Failure::Model)?;
    let seconds = (traffic.until - traffic.from).as_seconds() * f64::from(clique.shape().tins());
    Ok(cells.endpoints().arrived().blocks as f64 * 64.0 / seconds)
}

/// The settings with bulk data routed in a mode.
pub(super) fn routed(mode: Mode) -> Settings {
    let mut settings = Settings::default();
    settings.classes[usize::from(DATA)].mode = mode;
    settings
}

/// Microseconds of a run: the worst pattern fills the queues of a whole pod first, and what was sent by longer ways
/// takes a while.
const fn micros(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => 20,
        Effort::Full => 200,
    }
}

/// Uniform traffic and each pod to the next.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/throughput.claims.toml"));
    let clique = Clique::new(&Shape::FULL, Fibres::Grid);
    let (adaptive, minimal) = (Mode::FullyAdaptive, Mode::MinimalAdaptive);
    let case = |pattern, mode, offered| Case { pattern, mode, offered };
    let loads: &[u64] = match effort {
        Effort::Quick => &[100, MOST],
        Effort::Full => &[50, 100, 150, MOST],
    };
    let mut cases = Vec::new();
    for pattern in [Pattern::Uniform, Pattern::NextPod] {
        for mode in [adaptive, minimal] {
            cases.extend(loads.iter().map(|&offered| case(pattern, mode, offered)));
        }
    }
    let jobs = with_seeds(&cases, SEEDS);
    let found = spread(&jobs, watch, |&(case, seed), pulse| {
        let what = (case.pattern, case.offered);
        carried(&clique, &routed(case.mode), what, micros(effort), seed, pulse)
    })?;
    let of = |wanted: Case| -> Vec<f64> {
        let all = jobs.iter().zip(&found);
        all.filter(|((case, _), _)| *case == wanted).map(|(_, &carried)| carried).collect()
    };
    let share = |pattern, mode, offered: u64| -> Vec<f64> {
        let carried = of(case(pattern, mode, offered));
        carried.iter().map(|carried| carried / (offered as f64 * 1e9)).collect()
    };
    sheet.measure("throughput.uniform", Measured::mean(&share(Pattern::Uniform, adaptive, 100)));
    sheet.measure(
        "throughput.uniform-200",
        Measured::mean(&share(Pattern::Uniform, adaptive, MOST)),
    );
    sheet.measure("throughput.worst", Measured::mean(&share(Pattern::NextPod, adaptive, MOST)));
    let shortest = of(case(Pattern::NextPod, minimal, MOST));
    sheet.measure("throughput.worst-minimal", Measured::mean(&shortest));
    let name = |case: &Case| {
        let pattern =
            if case.pattern == Pattern::Uniform { "uniform" } else { "each pod to the next" };
        let mode = if case.mode == adaptive { "fully adaptive" } else { "minimal" };
        format!("{pattern}, {mode}")
    };
    let rows = cases.iter().map(|case| {
        let spread = Spread::of(&of(*case));
        vec![
            json!(name(case)),
            json!(case.offered as f64 * 1e9),
            json!(spread.mean),
            spread.interval(),
        ]
    });
    let columns = [
        ("traffic", "", Unit::Count),
        ("offered", "Offered a TiN", Unit::BitsPerSecond),
        ("carried", "Carried", Unit::BitsPerSecond),
        ("spread", "Over seeds", Unit::BitsPerSecond),
    ];
    let blocks = vec![
        Block::Plots(vec![drawing(&cases, loads, &of, &name)]),
        table("What is carried", &columns, rows.collect()),
    ];
    let text = "Every TiN of the full Clique sends packets of 29 of the largest cells at random instants, over its \
                NIC's four ports, and takes all that comes: nothing asks for them. Rates are those of cells, with \
                headers.";
    Ok(findings("What the topology carries", text, blocks, sheet))
}

fn drawing(
    cases: &[Case],
    loads: &[u64],
    of: &dyn Fn(Case) -> Vec<f64>,
    name: &dyn Fn(&Case) -> String,
) -> Plot {
    let series = cases.chunks(loads.len()).map(|cases| {
        let points: Vec<_> =
            cases.iter().map(|case| (case.offered as f64 * 1e9, Spread::of(&of(*case)))).collect();
        curve(name(&cases[0]), &points)
    });
    let axis =
        |label: &str| Axis { label: label.into(), unit: Unit::BitsPerSecond, scale: Scale::Linear };
    let note = "Full Clique; bars from the smallest to the largest seed.";
    plot("Carried a TiN", note, axis("offered a TiN"), axis("carried a TiN"), series.collect())
}
