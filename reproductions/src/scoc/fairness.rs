//! The fairness microbenchmarks on the chip, its variants and other switches (§3.A; Figs. 5, 6).

use kernel::Bytes;
use report::page::{Block, TableBlock};
use report::{Cell, Column, ResultsTable, Unit};
use scoc::microbenchmarks::{ALL, Microbenchmark};
use scoc::{
    Chip, ChipConfig, Crrd, CrrdConfig, FlatConfig, GrantOrder, Hiera, HieraConfig, InputChoice,
    Requesting, Shares, Transfers, flat,
};
use serde_json::json;
use switching::{Arrivals, Bench, Line, Pattern, Phase, Sizes, Switch, Traffic, Turns};

use super::{SEEDS, papers_chip};
use crate::claims::{Measured, Shape, Sheet, Spread};
use crate::drawing::findings;
use crate::paper::part;
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// Share of the time that lines are busy: all but always, and drifting. Lines that are always busy
/// keep their phases for ever and hide what happens when they meet in another order (our choice).
const LOAD: f64 = 0.98;
/// §4.E: the base packet.
const PACKET: Bytes = Bytes::new(288);

/// What is on the bench.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum System {
    Scoc,
    /// The chip with the policy that fails in the microbenchmark of this number.
    Variant,
    /// The same with room for 1,024 packets at each input.
    VariantLarge,
    /// The same with buffers that do not fill in the time of the experiment.
    VariantNeverFull,
    /// The variant where packets of an input go to its outputs in turn, with the chip's buffers.
    VariantInTurn,
    /// The same with buffers that do not fill.
    VariantLargeInTurn,
    Flat,
    /// Flat whose crossbar is as fast as the lines.
    FlatSlow,
    Hiera,
    /// Hiera with room for 16 packets at each output of a subswitch.
    HieraOutputs,
    Crrd,
    /// CRRD with buffers that do not fill in the time of the experiment.
    CrrdLarge,
}

const SYSTEMS: [System; 12] = [
    System::Scoc,
    System::Variant,
    System::VariantLarge,
    System::VariantNeverFull,
    System::VariantInTurn,
    System::VariantLargeInTurn,
    System::Flat,
    System::FlatSlow,
    System::Hiera,
    System::HieraOutputs,
    System::Crrd,
    System::CrrdLarge,
];

/// Packets for which an input has room that never fills: four inputs at the line rate bring fewer in
/// the longest window.
const NEVER_FULL: usize = 1_000_000;

impl System {
    fn name(self, scenario: &Microbenchmark) -> String {
        match self {
            Self::Scoc => "SCOC".into(),
            Self::Variant => format!("X{}", scenario.number),
            Self::VariantLarge => format!("X{}, buffers of 1,024 packets", scenario.number),
            Self::VariantNeverFull => format!("X{}, buffers never full", scenario.number),
            Self::VariantInTurn => format!("X{}, outputs in turn", scenario.number),
            Self::VariantLargeInTurn => {
                format!("X{}, outputs in turn, buffers never full", scenario.number)
            }
            Self::Flat => "Flat, 1.45×".into(),
            Self::FlatSlow => "Flat, 1.0×".into(),
            Self::Hiera => "Hiera".into(),
            Self::HieraOutputs => "Hiera, 16 packets at outputs of subswitches".into(),
            Self::Crrd => "CRRD".into(),
            Self::CrrdLarge => "CRRD, buffers never full".into(),
        }
    }

    /// Whether the experiment has it in this scenario: a variant where there is one, large buffers where the
    /// paper speaks of them (microbenchmarks 3 and 5), and Flat without speed-up where it does (7).
    fn is_in(self, scenario: &Microbenchmark) -> bool {
        match self {
            Self::Variant => variant(scenario.number).is_some(),
            Self::HieraOutputs => scenario.number == 1,
            Self::VariantLarge | Self::VariantNeverFull => scenario.number == 3,
            Self::VariantInTurn | Self::VariantLargeInTurn => scenario.number == 3,
            Self::FlatSlow => scenario.number == 7,
            Self::CrrdLarge => scenario.number == 5,
            _ => true,
        }
    }
}

/// The chip with the policy that fails in microbenchmark `number` (M33 to M38).
fn variant(number: usize) -> Option<ChipConfig> {
    let chip = papers_chip();
    let selective = Requesting::Selective;
    Some(match number {
        1 => ChipConfig { transfers: Transfers::Single, requesting: selective, ..chip },
        2 => ChipConfig { input_choice: InputChoice::RoundRobin, ..chip },
        3 => ChipConfig { input_choice: InputChoice::OldestLink, ..chip },
        4 => ChipConfig { grant_order: GrantOrder::GroupFirst, ..chip },
        5 => ChipConfig { shares: Shares::PerGroup, ..chip },
        6 => ChipConfig { requesting: selective, ..chip },
        _ => return None,
    })
}

/// Packets for which an input of microbenchmark 3 has room that never fills: what does not go through waits, of half an
/// input's packets at the most, as its connections are two.
const fn never_full(effort: Effort) -> usize {
    let (warm_up, measured) = window(effort);
    ((warm_up + measured) / 2) as usize
}

/// Packet times that are not measured and that are.
const fn window(effort: Effort) -> (u64, u64) {
    match effort {
        Effort::Quick => (1_000, 10_000),
        Effort::Full => (2_000, 100_000),
    }
}

/// The rates of a scenario's connections, packets of an input to outputs at random.
fn rates(
    switch: impl Switch,
    line: (Line, Turns),
    (scenario, per_group, arrivals): (&Microbenchmark, usize, Arrivals),
    effort: Effort,
    seed: u64,
) -> Result<Vec<f64>, Failure> {
    let pattern = scenario.pattern(switch.ports(), per_group).expect("128 ports are enough");
    rates_of(switch, line, (scenario, per_group, pattern, arrivals), effort, seed)
}

/// The same of packets to outputs by a pattern.
fn rates_of(
    switch: impl Switch,
    (line, turns): (Line, Turns),
    (scenario, per_group, pattern, arrivals): (&Microbenchmark, usize, Pattern, Arrivals),
    effort: Effort,
    seed: u64,
) -> Result<Vec<f64>, Failure> {
    let traffic = Traffic { pattern, arrivals, sizes: Sizes::Fixed(PACKET), phase: Phase::Random };
    let packet = line.cycle_from(line.send_time(PACKET));
    let (warm_up, measured) = window(effort);
    let mut bench = Bench::new(switch, line, traffic, seed).with_turns(turns);
    bench.run(warm_up * packet, measured * packet);
    bench.check().map_err(Failure::Model)?;
    Ok(scenario.ports(per_group).map(|(from, to)| bench.rate(from, to)).collect())
}

fn measure(
    system: System,
    scenario: &Microbenchmark,
    effort: Effort,
    seed: u64,
) -> Result<Vec<f64>, Failure> {
    let usual = Turns::default();
    let drifting = Arrivals::Drifting(LOAD);
    let chip = |config: ChipConfig| {
        let plan = config.plan().expect("the variants are sound");
        let line = plan.line;
        rates(Chip::new(plan, seed), (line, usual), (scenario, 4, drifting), effort, seed)
    };
    let crrd = |config: CrrdConfig| {
        rates(Crrd::new(config), (config.line(), usual), (scenario, 4, drifting), effort, seed)
    };
    match system {
        System::Scoc => chip(papers_chip()),
        System::Variant => chip(variant(scenario.number).expect("only where there is one")),
        System::VariantLarge | System::VariantNeverFull => {
            let is_large = system == System::VariantLarge;
            let input_packets = if is_large { 1_024 } else { never_full(effort) };
            let config = variant(scenario.number).expect("only where there is one");
            chip(ChipConfig { input_packets, ..config })
        }
        System::VariantInTurn | System::VariantLargeInTurn => {
            let config = variant(scenario.number).expect("only where there is one");
            let is_large = system == System::VariantLargeInTurn;
            let input_packets = if is_large { never_full(effort) } else { config.input_packets };
            let plan =
                ChipConfig { input_packets, ..config }.plan().expect("the variants are sound");
            let (line, chip) = (plan.line, Chip::new(plan, seed));
            let pattern = scenario.in_turn(chip.ports(), 4).expect("128 ports are enough");
            rates_of(chip, (line, usual), (scenario, 4, pattern, drifting), effort, seed)
        }
        System::Flat => {
            let config = FlatConfig::sped_up();
            rates(flat(config), (config.line(), usual), (scenario, 4, drifting), effort, seed)
        }
        System::FlatSlow => {
            // Pointers move together while every queue has something: lines that are always busy. A slotted switch
            // has no phases that these could keep.
            let config = FlatConfig::default();
            let shape = (scenario, 4, Arrivals::Saturated);
            rates(flat(config), (config.line(), usual), shape, effort, seed)
        }
        System::Hiera | System::HieraOutputs => {
            // Its groups are its subswitches.
            let output_packets = (system == System::HieraOutputs).then_some(16);
            let config = HieraConfig { output_packets, ..HieraConfig::default() };
            let shape = (scenario, config.subswitch, drifting);
            rates(Hiera::new(config), (config.line(), usual), shape, effort, seed)
        }
        System::Crrd => crrd(CrrdConfig::default()),
        System::CrrdLarge => crrd(CrrdConfig { packets: NEVER_FULL, ..CrrdConfig::default() }),
    }
}

/// How many connections of a scenario starve: below a tenth of their fair rate.
fn starving(rates: &[f64], fair: &[f64]) -> f64 {
    rates.iter().zip(fair).filter(|(rate, fair)| **rate < 0.1 * **fair).count() as f64
}

/// Microbenchmarks in which the paper has connections of CRRD starve or nearly so.
const STARVED: [usize; 3] = [2, 5, 7];

/// How many connections of CRRD starve in a microbenchmark where room in the buffer of a group goes to its inputs in
/// a fixed order, as to lines that keep their phases and lose what finds no room: one number for each numbering of
/// the inputs, the lowest of which comes first.
fn starving_in_fixed_order(
    number: usize,
    effort: Effort,
    watch: &mut Watch<'_>,
) -> Result<Vec<f64>, Failure> {
    let config = CrrdConfig::default();
    let shape = (config.line(), Turns::LowestInput);
    let numberings = ALL[number - 1].numberings();
    spread(&numberings, watch, |scenario, _| {
        let traffic = (scenario, 4, Arrivals::Saturated);
        let rates = rates(Crrd::new(config), shape, traffic, effort, 1)?;
        Ok(starving(&rates, &scenario.fair(1.0)))
    })
}

/// In how many numberings so many connections starve, in words; whether three, or in microbenchmark 2 one, do in any.
fn in_words(number: usize, counts: &[f64]) -> Measured {
    let of = |count: usize| counts.iter().filter(|&&starve| starve as usize == count).count();
    let words: Vec<String> = (0..=ALL[number - 1].connections.len())
        .filter(|&count| of(count) > 0)
        .map(|count| format!("{count} in {} of {}", of(count), counts.len()))
        .collect();
    let published = if number == 2 { 1 } else { 3 };
    Measured::shape(words.join(", "), Shape::of(of(published) > 0))
}

/// All seeds of one system in one scenario.
struct Bar {
    system: System,
    scenario: Microbenchmark,
    /// For each seed the rates of the connections.
    seeds: Vec<Vec<f64>>,
}

impl Bar {
    /// Of each seed, what `of` makes of rates and fair rates.
    fn over_seeds(&self, of: impl Fn(&[f64], &[f64]) -> f64) -> Measured {
        let fair = self.scenario.fair(LOAD);
        let values: Vec<f64> = self.seeds.iter().map(|rates| of(rates, &fair)).collect();
        Measured::mean(&values)
    }

    /// The largest distance from the fair rate, relative.
    fn distance(&self) -> Measured {
        self.over_seeds(|rates, fair| {
            rates.iter().zip(fair).map(|(rate, fair)| (rate / fair - 1.0).abs()).fold(0.0, f64::max)
        })
    }

    fn rate(&self, connection: usize) -> Measured {
        self.over_seeds(|rates, _| rates[connection])
    }

    fn gain(&self, connection: usize) -> Measured {
        self.over_seeds(|rates, fair| rates[connection] / fair[connection] - 1.0)
    }
}

/// The microbenchmarks.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../scoc/fairness.claims.toml"));
    let points: Vec<(System, Microbenchmark)> = ALL
        .iter()
        .flat_map(|scenario| SYSTEMS.map(|system| (system, scenario.clone())))
        .filter(|(system, scenario)| system.is_in(scenario))
        .collect();
    let jobs = with_seeds(&points, SEEDS);
    let found = spread(&jobs, &mut part(watch, 0.0..0.97), |((system, scenario), seed), _| {
        measure(*system, scenario, effort, *seed)
    })?;
    let bars: Vec<Bar> = points
        .iter()
        .zip(found.chunks(SEEDS as usize))
        .map(|((system, scenario), seeds)| Bar {
            system: *system,
            scenario: scenario.clone(),
            seeds: seeds.to_vec(),
        })
        .collect();
    judge(&mut sheet, &bars);
    for (number, share) in STARVED.into_iter().zip([0.97, 0.98, 0.99]) {
        let counts =
            starving_in_fixed_order(number, effort, &mut part(watch, share..share + 0.01))?;
        sheet.measure(&format!("fairness.crrd-{number}-order"), in_words(number, &counts));
    }
    let text = "A few connections at nearly the full line rate, chosen so that some way of \
                scheduling treats one of them badly. Fair rates follow from the scenario. X1 to X6 \
                are the chip with the policy that the paper rejects for it.";
    Ok(findings("Fairness microbenchmarks", text, vec![table(&bars)], sheet))
}

fn judge(sheet: &mut Sheet, bars: &[Bar]) {
    let bar = |system: System, number: usize| {
        let found = bars.iter().find(|bar| bar.system == system && bar.scenario.number == number);
        found.expect("every system is measured in every scenario that it has")
    };
    for number in 1..=ALL.len() {
        sheet.measure(&format!("fairness.scoc-{number}"), bar(System::Scoc, number).distance());
        sheet.measure(&format!("fairness.flat-{number}"), bar(System::Flat, number).distance());
    }
    let x = |number| bar(System::Variant, number);
    sheet.measure("fairness.x1", x(1).gain(2));
    sheet.measure("fairness.x2", x(2).rate(1));
    let loss = |rates: &[f64], fair: &[f64]| 1.0 - (rates[0] + rates[1]) / (fair[0] + fair[1]);
    sheet.measure("fairness.x3", x(3).over_seeds(loss));
    sheet.measure("fairness.x3-buffers", bar(System::VariantLarge, 3).rate(0));
    sheet.measure("fairness.x3-never-full", bar(System::VariantNeverFull, 3).rate(0));
    sheet.measure("fairness.x3-in-turn", bar(System::VariantInTurn, 3).over_seeds(loss));
    sheet.measure("fairness.x3-never-full-in-turn", bar(System::VariantLargeInTurn, 3).rate(0));
    sheet.measure("fairness.x4", x(4).rate(1));
    sheet.measure("fairness.x5", x(5).rate(4));
    sheet.measure("fairness.x6", x(6).rate(1));
    let from_third =
        |rates: &[f64], _: &[f64]| rates.iter().map(|rate| (rate - 0.33).abs()).fold(0.0, f64::max);
    sheet.measure("fairness.flat-7-slow", bar(System::FlatSlow, 7).over_seeds(from_third));
    for number in [1, 2, 3, 7] {
        sheet.measure(&format!("fairness.hiera-{number}"), bar(System::Hiera, number).distance());
    }
    sheet.measure("fairness.hiera-1-outputs", bar(System::HieraOutputs, 1).distance());
    sheet.measure("fairness.hiera-5", bar(System::Hiera, 5).rate(4));
    sheet.measure("fairness.crrd-1", bar(System::Crrd, 1).gain(2));
    // Of 0_0 to 1_0.
    let loss = |rates: &[f64], fair: &[f64]| 1.0 - rates[1] / fair[1];
    sheet.measure("fairness.crrd-2", bar(System::Crrd, 2).over_seeds(loss));
    sheet.measure("fairness.crrd-3", bar(System::Crrd, 3).distance());
    sheet.measure("fairness.crrd-7", bar(System::Crrd, 7).over_seeds(starving));
    sheet.measure("fairness.crrd-5", bar(System::Crrd, 5).over_seeds(starving));
    sheet.measure("fairness.crrd-5-buffers", bar(System::CrrdLarge, 5).rate(4));
}

/// Every rate that was measured.
fn table(bars: &[Bar]) -> Block {
    let heads = [
        ("microbenchmark", "microbenchmark"),
        ("system", "system"),
        ("connection", "connection"),
        ("fair", "fair rate"),
        ("rate", "rate"),
        ("interval", "over seeds"),
    ];
    let columns = heads.map(|(key, head)| Column::new(key, head)).to_vec();
    let mut table = ResultsTable::new(columns);
    for bar in bars {
        let fair = bar.scenario.fair(LOAD);
        for (index, ((from, to), fair)) in bar.scenario.connections.iter().zip(fair).enumerate() {
            let rates: Vec<f64> = bar.seeds.iter().map(|rates| rates[index]).collect();
            let spread = Spread::of(&rates);
            let connection = format!("{}_{} to {}_{}", from.0, from.1, to.0, to.1);
            table.push(vec![
                Cell::new(json!(bar.scenario.number), Unit::Count),
                Cell::new(json!(bar.system.name(&bar.scenario)), Unit::Count),
                Cell::new(json!(connection), Unit::Count),
                Cell::new(json!(fair), Unit::Share),
                Cell::new(json!(spread.mean), Unit::Share),
                Cell::new(spread.interval(), Unit::Share),
            ]);
        }
    }
    let title = "Rates as a share of the line's".into();
    Block::FoldedTable(TableBlock { title, note: String::new(), table })
}
