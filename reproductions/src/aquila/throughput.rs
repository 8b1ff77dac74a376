//! What the Clique carries of cells that nothing holds back: uniform traffic and the worst pattern (§2; X15).

use aquila::config::WithinClass;
use aquila::link::classes::Mode;
use aquila::raw::{Pattern, Traffic};
use aquila::switch::settings::Settings;
use aquila::topology::{Fibres, Shape};
use kernel::{Bytes, Rate};
use report::Unit;
use report::page::{Axis, Block, Plot, Scale};
use serde_json::json;

use super::clique::{Clique, run as run_cells, us};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{curve, findings, plot, table};
use crate::paper::part;
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// The class of bulk data (our choice, M210).
pub(super) const DATA: u8 = 7;
/// Cells of a packet of 4160 B.
pub(super) const TRAIN: u32 = 29;
/// What the hosts of a TiN inject (§5.1), and what it injects at the most (§6: we read as much again from its Ethernet).
/// Unit: Gbps.
const HOSTS: u64 = 100;
const MOST: u64 = 200;

/// Less than links carry, by some (our choice). Unit: Gbps a TiN.
const LESS: u64 = 180;
/// Room of a channel at an output where it is more than it takes: packets of [`TRAIN`] cells, seven of them (our
/// choice).
const ROOMY: Bytes = Bytes::new(32 * 1_024);

/// Share of the experiment's time that all but the rows of other settings take.
const MAIN: f64 = 0.75;

/// What is offered.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Offered {
    pub(super) pattern: Pattern,
    /// Unit: Gbps a TiN. More than 100 come from the Ethernet's ports too.
    pub(super) gbps: u64,
    /// Cells of a packet.
    pub(super) cells: u32,
}

/// The same, and how bulk data is routed.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Case {
    mode: Mode,
    offered: Offered,
}

/// What arrives, of which the first two fifths are not measured. Unit: bit/s a TiN.
pub(super) fn carried(
    clique: &Clique,
    settings: &Settings,
    offered: Offered,
    micros: u64,
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<f64, Failure> {
    let traffic = Traffic {
        pattern: offered.pattern,
        cells: offered.cells,
        ethernet: offered.gbps > HOSTS,
        rate: Rate::from_gbps(offered.gbps),
        class: DATA,
        until: us(micros),
        from: us(micros * 2 / 5),
    };
    let mut cells = clique.raw(settings, traffic, seed);
    run_cells(&mut cells, traffic.until, pulse)?;
    cells.check().map_err(Failure::Model)?;
    let seconds = (traffic.until - traffic.from).as_seconds() * f64::from(clique.shape().tins());
    let blocks: u64 = cells.sets().iter().map(|set| set.endpoints().arrived().blocks).sum();
    Ok(blocks as f64 * 64.0 / seconds)
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
        Effort::Full => 100,
    }
}

/// Uniform traffic and each pod to the next.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/throughput.claims.toml"));
    let clique = Clique::new(&Shape::FULL, Fibres::Grid);
    let (adaptive, minimal) = (Mode::FullyAdaptive, Mode::MinimalAdaptive);
    let case =
        |pattern, mode, gbps, cells| Case { mode, offered: Offered { pattern, gbps, cells } };
    let loads: &[u64] = match effort {
        Effort::Quick => &[HOSTS, MOST],
        Effort::Full => &[50, HOSTS, 150, MOST],
    };
    let series = [
        (Pattern::Uniform, adaptive, TRAIN),
        (Pattern::Uniform, adaptive, 1),
        (Pattern::Uniform, minimal, 1),
        (Pattern::Uniform, minimal, TRAIN),
        (Pattern::NextPod, adaptive, TRAIN),
        (Pattern::NextPod, minimal, TRAIN),
    ];
    let cases: Vec<Case> = series
        .into_iter()
        .flat_map(|(pattern, mode, cells)| {
            loads.iter().map(move |&gbps| case(pattern, mode, gbps, cells))
        })
        .collect();
    let jobs = with_seeds(&cases, effort.seeds_of_longest());
    let found = spread(&jobs, &mut part(watch, 0.0..MAIN), |&(case, seed), pulse| {
        carried(&clique, &routed(case.mode), case.offered, micros(effort), seed, pulse)
    })?;
    let of = |wanted: Case| -> Vec<f64> {
        let all = jobs.iter().zip(&found);
        all.filter(|((case, _), _)| *case == wanted).map(|(_, &carried)| carried).collect()
    };
    let routed_share = |pattern, mode, gbps: u64, cells| {
        let carried = of(case(pattern, mode, gbps, cells));
        let shares: Vec<f64> =
            carried.iter().map(|carried| carried / (gbps as f64 * 1e9)).collect();
        Measured::mean(&shares)
    };
    let share = |pattern, gbps, cells| routed_share(pattern, adaptive, gbps, cells);
    let by_shortest = routed_share(Pattern::Uniform, minimal, MOST, 1);
    sheet.measure("throughput.uniform-200-minimal", by_shortest);
    sheet.measure("throughput.uniform", share(Pattern::Uniform, HOSTS, TRAIN));
    sheet.measure("throughput.uniform-200", share(Pattern::Uniform, MOST, 1));
    sheet.measure("throughput.uniform-200-packets", share(Pattern::Uniform, MOST, TRAIN));
    sheet.measure("throughput.worst", share(Pattern::NextPod, MOST, TRAIN));
    let shortest = of(case(Pattern::NextPod, minimal, MOST, TRAIN));
    sheet.measure("throughput.worst-minimal", Measured::mean(&shortest));
    let worst = case(Pattern::NextPod, adaptive, MOST, TRAIN);
    others(&mut sheet, &clique, worst, effort, &mut part(watch, MAIN..1.0))?;
    let blocks = vec![Block::Plots(vec![drawing(&cases, loads, &of)]), numbers(&cases, &of)];
    let text = "Every TiN of the full Clique sends cells of 160 B at random instants, single ones or 29 as a packet of \
                4160 B has them, over its NIC's four ports; above 100 Gbps over those of its Ethernet too. It takes \
                all that comes: nothing asks for it. Rates are those of cells, with headers. What can be carried: the \
                two links of a pod pair have 50 Gbps, of which credits take 8 B for every 320 B, and each TiN's 200 \
                Gbps of uniform traffic ask for 50.1 of them, so 97 % get through at the best. A pod that sends all it \
                has to one other reaches it over 94 links, each of which brings one cell for two links used: 98 Gbps \
                a TiN at the best.";
    Ok(findings("What the topology carries", text, blocks, sheet))
}

/// What a case is called.
fn name(case: &Case) -> String {
    let uniform = case.offered.pattern == Pattern::Uniform;
    let pattern = if uniform { "uniform" } else { "each pod to the next" };
    let mode = if case.mode == Mode::FullyAdaptive { "fully adaptive" } else { "minimal" };
    let cells = if case.offered.cells == 1 { ", single cells" } else { "" };
    format!("{pattern}, {mode}{cells}")
}

/// Rows of other settings and loads: the order of cells at an output, and its room.
fn others(
    sheet: &mut Sheet,
    clique: &Clique,
    worst: Case,
    effort: Effort,
    watch: &mut Watch<'_>,
) -> Result<(), Failure> {
    let far_first: fn(&mut Settings) =
        |settings| settings.switch.within_class = WithinClass::FartherFirst;
    let roomy: fn(&mut Settings) = |settings| settings.switch.output_queue = ROOMY;
    let usual: fn(&mut Settings) = |_| {};
    let uniform = |mode, gbps, cells| Case {
        mode,
        offered: Offered { pattern: Pattern::Uniform, gbps, cells },
    };
    let minimal = Mode::MinimalAdaptive;
    let rows = [
        ("throughput.worst-farther-first", worst, far_first),
        ("throughput.uniform-180", uniform(Mode::FullyAdaptive, LESS, 1), usual),
        ("throughput.uniform-200-roomy", uniform(minimal, MOST, 1), roomy),
        ("throughput.uniform-200-packets-roomy", uniform(minimal, MOST, TRAIN), roomy),
    ];
    let jobs = with_seeds(&rows, effort.seeds_of_longest());
    let found = spread(&jobs, watch, |&((_, case, change), seed), pulse| {
        let mut settings = routed(case.mode);
        change(&mut settings);
        let carried = carried(clique, &settings, case.offered, micros(effort), seed, pulse)?;
        Ok(carried / (case.offered.gbps as f64 * 1e9))
    })?;
    for (id, _, _) in rows {
        let all = jobs.iter().zip(&found).filter(|(((other, _, _), _), _)| *other == id);
        let shares: Vec<f64> = all.map(|(_, &share)| share).collect();
        sheet.measure(id, Measured::mean(&shares));
    }
    Ok(())
}

/// What is carried in each case.
fn numbers(cases: &[Case], of: &dyn Fn(Case) -> Vec<f64>) -> Block {
    let row = |case: &Case| {
        let spread = Spread::of(&of(*case));
        let offered = case.offered.gbps as f64 * 1e9;
        vec![json!(name(case)), json!(offered), json!(spread.mean), spread.interval()]
    };
    let columns = [
        ("traffic", "", Unit::Count),
        ("offered", "Offered a TiN", Unit::BitsPerSecond),
        ("carried", "Carried", Unit::BitsPerSecond),
        ("spread", "Over seeds", Unit::BitsPerSecond),
    ];
    table("What is carried", &columns, cases.iter().map(row).collect())
}

fn drawing(cases: &[Case], loads: &[u64], of: &dyn Fn(Case) -> Vec<f64>) -> Plot {
    let series = cases.chunks(loads.len()).map(|cases| {
        let points: Vec<_> = cases
            .iter()
            .map(|case| (case.offered.gbps as f64 * 1e9, Spread::of(&of(*case))))
            .collect();
        curve(name(&cases[0]), &points)
    });
    let axis =
        |label: &str| Axis { label: label.into(), unit: Unit::BitsPerSecond, scale: Scale::Linear };
    let note = "Full Clique; bars from the smallest to the largest seed.";
    plot("Carried a TiN", note, axis("offered a TiN"), axis("carried a TiN"), series.collect())
}
