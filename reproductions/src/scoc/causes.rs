//! What rows that differ hang on: one thing changed at a time (§4.E).

use kernel::{Bytes, Rate};
use scoc::{Chip, ChipConfig, FlatConfig, Transfers, flat};
use switching::{Arrivals, Line, Pattern, Phase, Sizes, Switch, Traffic};

use super::unbalanced::{self, PORTS, UNBALANCE, bimodal, saturate};
use super::{SEEDS, papers_chip, run_bench, scale};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::findings;
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// Lines on which 40 B packets carry what the paper has: links' raw rate (§5), a speed-up of 1.30.
const SLOWER: Rate = Rate::from_gbps(28);
/// Messages of an input that take turns: as many as there are outputs (our choice).
const IN_TURN: usize = PORTS;
/// Shares of directed traffic in hundredths from which on no crossbar is ahead.
const LEVEL: [u32; 2] = [60, 80];

/// What is on the bench.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum System {
    Scoc {
        line_rate: Rate,
        transfers: Transfers,
    },
    /// One iteration at SCOC's speed-up.
    Flat,
    /// Eight at four times the line rate: matchings that nothing could be added to, more often than packets come.
    FlatIdeal,
}

/// What it carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Load {
    /// Packets of 40 B, with this share of directed traffic in hundredths.
    Small(u32),
    /// 90 % of them, and 10 % of 288 B.
    Bimodal(u32),
    /// Packets of 288 B.
    Large(u32),
    /// Messages cut into packets, uniform; so many of an input take turns.
    Messages(usize),
}

type Case = (System, Load);

const SCOC: System =
    System::Scoc { line_rate: Rate::from_gbps(25), transfers: Transfers::Multiple };
const SINGLE: System =
    System::Scoc { line_rate: Rate::from_gbps(25), transfers: Transfers::Single };
const SCOC_SLOWER: System = System::Scoc { line_rate: SLOWER, transfers: Transfers::Multiple };
const SINGLE_SLOWER: System = System::Scoc { line_rate: SLOWER, transfers: Transfers::Single };

/// A load by its share of directed traffic, and the shares of which the least is looked for, as in `fig12`.
type Curve = (fn(u32) -> Load, &'static [u32]);

const SMALL: Curve = (Load::Small, &UNBALANCE);
const BIMODAL: Curve = (Load::Bimodal, UNBALANCE.split_at(UNBALANCE.len() - 1).0);

/// The rows that say what is least over u, with their curves.
const LEAST: [(&str, System, Curve); 4] = [
    ("small-slower", SCOC_SLOWER, SMALL),
    ("small-single-slower", SINGLE_SLOWER, SMALL),
    ("bimodal-slower", SCOC_SLOWER, BIMODAL),
    ("bimodal-single", SINGLE, BIMODAL),
];

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (_, system, (load, shares)) in LEAST {
        cases.extend(shares.iter().map(|&u| (system, load(u))));
    }
    for system in [System::Flat, System::FlatIdeal] {
        cases.extend(LEVEL.map(|u| (system, Load::Large(u))));
        cases.push((system, Load::Messages(1)));
    }
    cases.extend([SCOC, System::Flat].map(|system| (system, Load::Messages(IN_TURN))));
    cases
}

fn measure((system, load): Case, effort: Effort, seed: u64) -> Result<f64, Failure> {
    match system {
        System::Scoc { line_rate, transfers } => {
            let config = ChipConfig { line_rate, transfers, ..papers_chip() };
            let plan = config.plan().expect("the variants are sound");
            let line = plan.line;
            carry(Chip::new(plan, seed), line, load, effort, seed)
        }
        System::Flat => {
            let config = FlatConfig::sped_up();
            carry(flat(config), config.line(), load, effort, seed)
        }
        System::FlatIdeal => {
            let config = FlatConfig { iterations: 8, speed_up: (4, 1), ..FlatConfig::default() };
            carry(flat(config), config.line(), load, effort, seed)
        }
    }
}

fn carry(
    switch: impl Switch,
    line: Line,
    load: Load,
    effort: Effort,
    seed: u64,
) -> Result<f64, Failure> {
    let fixed = |size| Sizes::Fixed(Bytes::new(size));
    // What is looked for is small, and few points are measured: full windows in either effort.
    let (sizes, u, effort) = match load {
        Load::Small(u) => (fixed(40), u, effort),
        Load::Bimodal(u) => (bimodal(), u, effort),
        Load::Large(u) => (fixed(288), u, Effort::Full),
        Load::Messages(at_once) => {
            let traffic = Traffic {
                pattern: Pattern::Uniform,
                arrivals: Arrivals::Saturated,
                sizes: scale::messages(at_once),
                phase: Phase::Random,
            };
            let bench = run_bench(switch, line, traffic, scale::window(Effort::Full), seed)?;
            return Ok(bench.measured().throughput(PORTS));
        }
    };
    saturate(switch, line, (sizes, u), unbalanced::window(effort), seed)
}

/// All of them.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../scoc/causes.claims.toml"));
    let jobs = with_seeds(&cases(), SEEDS);
    let found = spread(&jobs, watch, |&(case, seed), _| measure(case, effort, seed))?;
    let of = |case: Case| -> Vec<f64> {
        let all = jobs.iter().zip(&found);
        all.filter(|((point, _), _)| *point == case).map(|(_, &share)| share).collect()
    };
    let mut put = |word: &str, measured| sheet.measure(&format!("causes.{word}"), measured);
    let mean = |seeds: &Vec<f64>| Spread::of(seeds).mean;
    for (word, system, (load, shares)) in LEAST {
        let points = shares.iter().map(|&u| of((system, load(u))));
        let least = points.min_by(|a, b| mean(a).total_cmp(&mean(b)));
        put(word, Measured::mean(&least.expect("there are several u")));
    }
    let beyond = |one: Case, other: Case| -> Vec<f64> {
        of(one).iter().zip(&of(other)).map(|(one, other)| one - other).collect()
    };
    let ideal = |load| beyond((System::FlatIdeal, load), (System::Flat, load));
    let level = LEVEL.map(|u| ideal(Load::Large(u)));
    let most = level.into_iter().max_by(|a, b| mean(a).abs().total_cmp(&mean(b).abs()));
    put("flat-ideal", Measured::mean(&most.expect("there are two u")));
    put("messages-ideal", Measured::mean(&ideal(Load::Messages(1))));
    let turns = Load::Messages(IN_TURN);
    put("messages-turns", Measured::mean(&beyond((SCOC, turns), (System::Flat, turns))));
    let text = "Runs of Fig. 12 and of its text with one thing changed: what becomes of the rows that differ.";
    Ok(findings("What rows that differ hang on", text, Vec::new(), sheet))
}
