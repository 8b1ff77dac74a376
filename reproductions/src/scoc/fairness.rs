//! The fairness microbenchmarks on the chip, its variants and other switches (§3.A; Figs. 5, 6).

use kernel::Bytes;
use report::page::{Block, TableBlock};
use report::{Cell, Column, ResultsTable, Unit};
use scoc::microbenchmarks::{ALL, Microbenchmark};
use scoc::{
    Chip, ChipConfig, Crrd, CrrdConfig, FlatConfig, GrantOrder, Hiera, HieraConfig, InputChoice,
    OutputChoice, Requesting, Shares, Transfers, flat,
};
use serde_json::json;
use switching::{Arrivals, Bench, Line, Pattern, Phase, Sizes, Switch, Traffic, Turns};

use super::{SEEDS, papers_chip, papers_crrd};
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
    /// The variant where lines are always busy.
    VariantFullRate,
    /// The chip whose output groups choose at random: mode 2 (§4.D).
    RandomOutputs,
    Flat,
    /// Flat whose crossbar is as fast as the lines.
    FlatSlow,
    Hiera,
    /// Hiera with room for 16 packets at each output of a subswitch.
    HieraOutputs,
    Crrd,
    /// CRRD with buffers that do not fill in the time of the experiment.
    CrrdLarge,
    /// CRRD with unlimited room at outputs.
    CrrdUnlimited,
    /// The same with buffers at inputs that do not fill.
    CrrdLargeUnlimited,
}

const SYSTEMS: [System; 16] = [
    System::Scoc,
    System::Variant,
    System::VariantLarge,
    System::VariantNeverFull,
    System::VariantInTurn,
    System::VariantLargeInTurn,
    System::VariantFullRate,
    System::RandomOutputs,
    System::Flat,
    System::FlatSlow,
    System::Hiera,
    System::HieraOutputs,
    System::Crrd,
    System::CrrdLarge,
    System::CrrdUnlimited,
    System::CrrdLargeUnlimited,
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
            Self::VariantFullRate => format!("X{}, lines always busy", scenario.number),
            Self::RandomOutputs => "SCOC, mode 2".into(),
            Self::Flat => "Flat, 1.45×".into(),
            Self::FlatSlow => "Flat, 1.0×".into(),
            Self::Hiera => "Hiera".into(),
            Self::HieraOutputs => "Hiera, 16 packets at outputs of subswitches".into(),
            Self::Crrd => "CRRD".into(),
            Self::CrrdLarge => "CRRD, buffers never full".into(),
            Self::CrrdUnlimited => "CRRD, outputs never full".into(),
            Self::CrrdLargeUnlimited => "CRRD, buffers and outputs never full".into(),
        }
    }

    /// Whether the experiment has it in this scenario: a variant where there is one, large buffers where the
    /// paper speaks of them (microbenchmarks 3 and 5), mode 2 and Flat without speed-up where it does (4 and 7), and
    /// other readings where they make a difference.
    fn is_in(self, scenario: &Microbenchmark) -> bool {
        match self {
            Self::Variant => variant(scenario.number).is_some(),
            Self::HieraOutputs => [1, 3, 5, 7].contains(&scenario.number),
            Self::VariantFullRate => [4, 6].contains(&scenario.number),
            Self::RandomOutputs => scenario.number == 4,
            Self::VariantLarge | Self::VariantNeverFull => scenario.number == 3,
            Self::VariantInTurn | Self::VariantLargeInTurn => scenario.number == 3,
            Self::FlatSlow => scenario.number == 7,
            Self::CrrdLarge | Self::CrrdLargeUnlimited => scenario.number == 5,
            Self::CrrdUnlimited => [1, 2, 3].contains(&scenario.number),
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
    let variant = || variant(scenario.number).expect("only where there is one");
    let chip = |config: ChipConfig| on_chip(config, (scenario, drifting), effort, seed);
    let crrd = |config: CrrdConfig| {
        rates(Crrd::new(config), (config.line(), usual), (scenario, 4, drifting), effort, seed)
    };
    match system {
        System::Scoc => chip(papers_chip()),
        System::RandomOutputs => {
            chip(ChipConfig { output_choice: OutputChoice::Random, ..papers_chip() })
        }
        System::Variant => chip(variant()),
        System::VariantFullRate => {
            on_chip(variant(), (scenario, Arrivals::Saturated), effort, seed)
        }
        System::VariantLarge => chip(ChipConfig { input_packets: 1_024, ..variant() }),
        System::VariantNeverFull => {
            chip(ChipConfig { input_packets: never_full(effort), ..variant() })
        }
        System::VariantInTurn => on_chip_in_turn(variant(), scenario, effort, seed),
        System::VariantLargeInTurn => {
            let config = ChipConfig { input_packets: never_full(effort), ..variant() };
            on_chip_in_turn(config, scenario, effort, seed)
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
        System::Crrd => crrd(papers_crrd()),
        System::CrrdLarge => crrd(CrrdConfig { packets: NEVER_FULL, ..papers_crrd() }),
        System::CrrdUnlimited => crrd(CrrdConfig::default()),
        System::CrrdLargeUnlimited => {
            crrd(CrrdConfig { packets: NEVER_FULL, ..CrrdConfig::default() })
        }
    }
}

/// On a chip, packets of an input to outputs at random.
fn on_chip(
    config: ChipConfig,
    (scenario, arrivals): (&Microbenchmark, Arrivals),
    effort: Effort,
    seed: u64,
) -> Result<Vec<f64>, Failure> {
    let plan = config.plan().expect("the variants are sound");
    let line = (plan.line, Turns::default());
    rates(Chip::new(plan, seed), line, (scenario, 4, arrivals), effort, seed)
}

/// On a chip, packets of an input to its outputs one after the other.
fn on_chip_in_turn(
    config: ChipConfig,
    scenario: &Microbenchmark,
    effort: Effort,
    seed: u64,
) -> Result<Vec<f64>, Failure> {
    let plan = config.plan().expect("the variants are sound");
    let line = (plan.line, Turns::default());
    let chip = Chip::new(plan, seed);
    let pattern = scenario.in_turn(chip.ports(), 4).expect("128 ports are enough");
    rates_of(chip, line, (scenario, 4, pattern, Arrivals::Drifting(LOAD)), effort, seed)
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
    (number, config): (usize, CrrdConfig),
    effort: Effort,
    watch: &mut Watch<'_>,
) -> Result<Vec<f64>, Failure> {
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
    let outputs = [("", papers_crrd()), ("-unlimited", CrrdConfig::default())];
    for (number, share) in STARVED.into_iter().zip([0.97, 0.98, 0.99]) {
        for ((name, config), share) in outputs.into_iter().zip([share, share + 0.005]) {
            let watch = &mut part(watch, share..share + 0.005);
            let counts = starving_in_fixed_order((number, config), effort, watch)?;
            let id = format!("fairness.crrd-{number}-order{name}");
            sheet.measure(&id, in_words(number, &counts));
        }
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
    sheet.measure("fairness.x2-other", x(2).rate(2));
    for (number, connection) in [(4, 1), (6, 1)] {
        sheet.measure(&format!("fairness.x{number}"), x(number).rate(connection));
        let full = bar(System::VariantFullRate, number).rate(connection);
        sheet.measure(&format!("fairness.x{number}-full-rate"), full);
    }
    sheet.measure("fairness.mode-2-4", bar(System::RandomOutputs, 4).distance());
    sheet.measure("fairness.x5", x(5).rate(4));
    let from_third =
        |rates: &[f64], _: &[f64]| rates.iter().map(|rate| (rate - 0.33).abs()).fold(0.0, f64::max);
    sheet.measure("fairness.flat-7-slow", bar(System::FlatSlow, 7).over_seeds(from_third));
    sheet.measure("fairness.hiera-2", bar(System::Hiera, 2).distance());
    for (system, name) in [(System::Hiera, ""), (System::HieraOutputs, "-outputs")] {
        for number in [1, 3, 7] {
            let id = format!("fairness.hiera-{number}{name}");
            sheet.measure(&id, bar(system, number).distance());
        }
        sheet.measure(&format!("fairness.hiera-5{name}"), bar(system, 5).rate(4));
    }
    for (system, large, name) in [
        (System::Crrd, System::CrrdLarge, ""),
        (System::CrrdUnlimited, System::CrrdLargeUnlimited, "-unlimited"),
    ] {
        let mut put = |id: &str, measured| sheet.measure(&format!("fairness.{id}{name}"), measured);
        put("crrd-1", bar(system, 1).gain(2));
        // Of 0_0 to 1_0.
        let loss = |rates: &[f64], fair: &[f64]| 1.0 - rates[1] / fair[1];
        put("crrd-2", bar(system, 2).over_seeds(loss));
        put("crrd-3", bar(system, 3).distance());
        put("crrd-5-buffers", bar(large, 5).rate(4));
    }
    sheet.measure("fairness.crrd-7", bar(System::Crrd, 7).over_seeds(starving));
    sheet.measure("fairness.crrd-5", bar(System::Crrd, 5).over_seeds(starving));
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
