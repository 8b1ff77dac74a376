//! More ports, more routes, and messages of a data centre (§4.E).

use kernel::Bytes;
use rack::workload::sizes::Sizes as FlowSizes;
use rack::workload::tables::{self, Reading};
use report::Unit;
use report::page::{Axis, Block, Plot, Scale};
use scoc::{
    Chip, ChipConfig, Crossbars, Crrd, CrrdConfig, FlatConfig, Hiera, HieraConfig, Transfers, flat,
};
use switching::{Arrivals, Line, Pattern, Phase, Sizes, Switch, Traffic};

use super::{SEEDS, Window, papers_chip, papers_crrd, run_bench};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{curve, findings};
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// What is on the bench.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum System {
    /// The chip with four routes.
    Scoc,
    /// The same with one transfer for each input.
    Single,
    /// The chip with a crossbar for each of its four routes, so with one transfer for each input.
    Separate,
    /// The chip with sixteen routes through narrow crossbars of a faster clock.
    Wide,
    Flat,
    FlatFast,
    Hiera,
    Crrd,
}

/// What it carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Load {
    /// Packets of so many bytes, and the share of directed traffic in hundredths.
    Packets(u64, u32),
    /// Messages cut into packets, uniform.
    Messages,
}

/// A point: who, with how many ports, under what.
type Case = (System, usize, Load);

/// Ports of the switches that are compared (§4.E).
const PORTS: [usize; 3] = [128, 256, 512];
/// Shares of directed traffic in hundredths.
const UNBALANCE: [u32; 5] = [0, 25, 50, 75, 100];
/// Packets through sixteen routes (§4.E: "as small as 64B").
const WIDE_PACKETS: [u64; 3] = [64, 128, 288];

pub(super) const fn window(effort: Effort) -> Window {
    match effort {
        Effort::Quick => (60, 150),
        Effort::Full => (500, 3_000),
    }
}

/// §4.E: 256 ports, m = 16, w = 4 B, 1.56 GHz, one transfer for each input and fake requests for its
/// oldest packet.
fn wide_chip() -> ChipConfig {
    ChipConfig {
        ports_per_group: 16,
        routes: 16,
        word: Bytes::new(4 * 16),
        clock_hertz: 1_560_000_000,
        crossbars: Crossbars::Separate,
        transfers: Transfers::Single,
        ..papers_chip()
    }
}

/// §4.E: "four independent middle-stage crossbars", whose inputs are read once at a time.
fn separate_chip() -> ChipConfig {
    ChipConfig { crossbars: Crossbars::Separate, transfers: Transfers::Single, ..papers_chip() }
}

/// Messages of the sizes of the data centre that the paper cites, its reference \[2\]; so many of an input take turns.
pub(super) fn messages(at_once: usize) -> Sizes {
    let named = tables::Published::named("W5");
    let table = named.first().expect("the catalogue has the web search of DCTCP");
    let name = "W5".into();
    let sizes = FlowSizes::Table { table: table.table(Reading::Linear), name };
    Sizes::Messages { sizes, segment: Bytes::new(288), at_once }
}

/// The chip with one transfer for each input.
fn single_chip() -> ChipConfig {
    ChipConfig { transfers: Transfers::Single, ..papers_chip() }
}

fn measure((system, ports, load): Case, effort: Effort, seed: u64) -> Result<f64, Failure> {
    let (pattern, sizes) = match load {
        Load::Packets(size, u) => {
            let sink = (0..ports).collect();
            let pattern = Pattern::Unbalanced { sink, share: f64::from(u) / 100.0 };
            (pattern, Sizes::Fixed(Bytes::new(size)))
        }
        Load::Messages => (Pattern::Uniform, messages(1)),
    };
    let traffic = Traffic { pattern, arrivals: Arrivals::Saturated, sizes, phase: Phase::Random };
    let chip = |config: ChipConfig, traffic| {
        let plan = ChipConfig { ports, ..config }.plan().expect("the variants are sound");
        let line = plan.line;
        carried(Chip::new(plan, seed), line, traffic, effort, seed)
    };
    match system {
        System::Scoc => chip(papers_chip(), traffic),
        System::Single => chip(single_chip(), traffic),
        System::Separate => chip(separate_chip(), traffic),
        System::Wide => chip(wide_chip(), traffic),
        System::Flat | System::FlatFast => {
            let usual =
                if system == System::Flat { FlatConfig::default() } else { FlatConfig::sped_up() };
            let config = FlatConfig { ports, ..usual };
            carried(flat(config), config.line(), traffic, effort, seed)
        }
        System::Crrd => {
            let config = CrrdConfig { ports, ..papers_crrd() };
            carried(Crrd::new(config), config.line(), traffic, effort, seed)
        }
        System::Hiera => {
            let config = HieraConfig { ports, ..HieraConfig::default() };
            carried(Hiera::new(config), config.line(), traffic, effort, seed)
        }
    }
}

fn carried(
    switch: impl Switch,
    line: Line,
    traffic: Traffic,
    effort: Effort,
    seed: u64,
) -> Result<f64, Failure> {
    let ports = switch.ports();
    let bench = run_bench(switch, line, traffic, window(effort), seed)?;
    Ok(bench.measured().throughput(ports))
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for ports in PORTS {
        for u in UNBALANCE {
            cases.push((System::Scoc, ports, Load::Packets(288, u)));
        }
    }
    for system in [System::Flat, System::FlatFast, System::Crrd] {
        for ports in [PORTS[0], PORTS[2]] {
            cases.extend(UNBALANCE.map(|u| (system, ports, Load::Packets(288, u))));
        }
    }
    for system in [System::Single, System::Separate] {
        cases.extend(UNBALANCE.map(|u| (system, 128, Load::Packets(288, u))));
    }
    for size in WIDE_PACKETS {
        cases.extend(UNBALANCE.map(|u| (System::Wide, 256, Load::Packets(size, u))));
    }
    for system in [System::Scoc, System::Flat, System::FlatFast, System::Hiera] {
        cases.push((system, 128, Load::Messages));
    }
    cases
}

/// More ports, more routes, messages.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../scoc/scale.claims.toml"));
    let cases = cases();
    let jobs = with_seeds(&cases, SEEDS);
    let found = spread(&jobs, watch, |&(case, seed), _| measure(case, effort, seed))?;
    let of = |case: Case| -> Vec<f64> {
        let all = jobs.iter().zip(&found);
        all.filter(|((point, _), _)| *point == case).map(|(_, &share)| share).collect()
    };
    judge(&mut sheet, &of);
    let over_u = |name: &str, system, ports, size| {
        let point = |u| Spread::of(&of((system, ports, Load::Packets(size, u))));
        curve(name, &UNBALANCE.map(|u| (f64::from(u) / 100.0, point(u))))
    };
    let plot = |title: &str, series| Plot {
        title: title.into(),
        note: "Saturated inputs; bars from the smallest to the largest seed.".into(),
        x: Axis { label: "unbalance u".into(), unit: Unit::Ratio, scale: Scale::Linear },
        y: Axis { label: "throughput".into(), unit: Unit::Share, scale: Scale::Linear },
        series,
    };
    let ports = PORTS.map(|ports| over_u(&format!("{ports} ports"), System::Scoc, ports, 288));
    let wide = WIDE_PACKETS.map(|size| over_u(&format!("{size} B"), System::Wide, 256, size));
    let plots = vec![
        plot("Four routes, 288 B", ports.to_vec()),
        plot("Sixteen routes, 256 ports, 1.56 GHz", wide.to_vec()),
    ];
    let text = "The same chip with more ports; a chip of 256 ports whose groups have sixteen ports and \
                routes, each of its own crossbar 4 B wide; and the messages of a data centre's web \
                search, cut into packets of 288 B, uniform over the outputs.";
    Ok(findings("Larger switches and messages", text, vec![Block::Plots(plots)], sheet))
}

fn judge(sheet: &mut Sheet, of: &dyn Fn(Case) -> Vec<f64>) {
    let mut put = |id: &str, measured| sheet.measure(&format!("scale.{id}"), measured);
    let mean = |case: Case| Spread::of(&of(case)).mean;
    let scoc = |ports, u| mean((System::Scoc, ports, Load::Packets(288, u)));
    let apart = UNBALANCE.iter().flat_map(|&u| {
        PORTS[1..].iter().map(move |&ports| (scoc(ports, u) - scoc(PORTS[0], u)).abs())
    });
    put("ports", Measured::one(apart.fold(0.0, f64::max)));
    let with = |system: System| move |u| mean((system, 128, Load::Packets(288, u)));
    let most_apart = |one: &dyn Fn(u32) -> f64, other: &dyn Fn(u32) -> f64| {
        let apart = UNBALANCE.map(|u| (one(u) - other(u)).abs());
        Measured::one(apart.into_iter().fold(0.0, f64::max))
    };
    let [usual, single, separate] = [System::Scoc, System::Single, System::Separate].map(with);
    put("separate", most_apart(&separate, &usual));
    put("separate-of-single", most_apart(&separate, &single));
    let slower = [
        ("flat-ports", System::FlatFast),
        ("flat-ports-slow", System::Flat),
        ("crrd-ports", System::Crrd),
    ];
    for (id, system) in slower {
        let at = |u| {
            let with = |ports| of((system, ports, Load::Packets(288, u)));
            let pairs = with(PORTS[2]).into_iter().zip(with(PORTS[0]));
            pairs.map(|(large, small)| large - small).collect::<Vec<f64>>()
        };
        // Of the u where it is most.
        let mean = |seeds: &Vec<f64>| Spread::of(seeds).mean;
        let most = UNBALANCE.map(at).into_iter().min_by(|a, b| mean(a).total_cmp(&mean(b)));
        put(id, Measured::mean(&most.expect("there are several u")));
        if system != System::Flat {
            put(&format!("{id}-half"), Measured::mean(&at(50)));
        }
    }
    for (id, unbalance) in [("uniform", &UNBALANCE[..1]), ("unbalanced", &UNBALANCE[1..])] {
        let all = WIDE_PACKETS
            .iter()
            .flat_map(|&size| unbalance.iter().map(move |&u| (size, u)))
            .flat_map(|(size, u)| of((System::Wide, 256, Load::Packets(size, u))));
        put(&format!("sixteen-{id}"), Measured::smallest(&all.collect::<Vec<_>>()));
    }
    let messages = |system| of((system, 128, Load::Messages));
    for (id, system) in [("flat", System::FlatFast), ("hiera", System::Hiera)] {
        let gains: Vec<f64> = messages(System::Scoc)
            .iter()
            .zip(&messages(system))
            .map(|(scoc, other)| scoc - other)
            .collect();
        put(&format!("messages-{id}"), Measured::mean(&gains));
    }
}
