//! Links that fail under load (§2, §3.2; X21).

use std::sync::Arc;

use aquila::link::classes::Mode;
use aquila::raw::{Pattern, Traffic};
use aquila::switch::settings::Settings;
use aquila::tables::condition::State;
use aquila::tables::{Condition, compute::compute};
use aquila::topology::packaging::{Packaging, Part};
use aquila::topology::{Fibres, Shape};
use aquila::turns::TurnTable;
use kernel::{Rate, Span, Stream, Time};
use report::Unit;
use report::page::{Axis, Block, Plot, PlotSeries, Scale, SeriesStyle};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::clique::{Clique, us};
use super::throughput::{DATA, TRAIN, routed};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{findings, plot, table};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// Half of what a TiN's hosts inject. Unit: Gbps.
const LOAD: u64 = 50;
/// When links fail, and when tables are in place that leave them out (our choice: a controller takes longer, which
/// shows nothing more).
const FAIL: u64 = 6;
const REPAIR: u64 = 12;
/// No cell is sent from here on.
const OVER: u64 = 14;
/// How often losses are looked at.
const STEP: Span = Span::from_ns(50);
/// Such looks until 2 us after the failure.
const LATE: usize = 40;
/// Looks of half a microsecond, over which losses are added.
const HALF: usize = 10;
/// The latest that can be seen: there tables change. Unit: s.
const END: f64 = ((REPAIR - FAIL) * 20 - HALF as u64) as f64 * 50e-9;

/// What fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Link,
    Cable,
    Bundle,
}

/// Links that fail alone, each of another bundle: on one so few cells are under way that a single one which comes late
/// would decide.
const ALONE: usize = 24;

const ALL: [(What, &str); 3] = [
    (What::Link, "24 links, each alone"),
    (What::Cable, "a cable of 8"),
    (What::Bundle, "a bundle of 32"),
];

/// What became of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Reaction {
    /// Cells lost by 50 ns since the failure, until repair.
    losses: Vec<u64>,
    /// Those of them that had come round by another pod.
    round: Vec<u64>,
    /// Cells lost after repair.
    after: u64,
    /// Cells neither delivered nor lost at the end.
    stuck: u64,
}

fn links(clique: &Clique, what: What, seed: u64) -> Vec<u32> {
    let packaging = Packaging::new(&clique.topology);
    let mut stream = Stream::new(seed, "reproductions/aquila/failures", what as u64);
    let pick = |stream: &mut Stream, is_it: fn(&Part) -> bool| {
        let parts: Vec<Part> = packaging.parts(0).filter(is_it).collect();
        packaging.links(parts[stream.below(parts.len() as u64) as usize])
    };
    match what {
        What::Link => {
            let mut bundles: Vec<Part> =
                packaging.parts(0).filter(|part| matches!(part, Part::Bundle(_))).collect();
            stream.shuffle(&mut bundles);
            let mut one = |&bundle: &Part| {
                let links = packaging.links(bundle);
                links[stream.below(links.len() as u64) as usize]
            };
            bundles[..ALONE].iter().map(&mut one).collect()
        }
        What::Cable => pick(&mut stream, |part| matches!(part, Part::Cable(_))),
        What::Bundle => pick(&mut stream, |part| matches!(part, Part::Bundle(_))),
    }
}

fn react(
    clique: &Clique,
    settings: &Settings,
    what: What,
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<Reaction, Failure> {
    let traffic = Traffic {
        pattern: Pattern::Uniform,
        cells: TRAIN,
        ethernet: false,
        rate: Rate::from_gbps(LOAD),
        class: DATA,
        until: us(OVER),
        from: us(0),
    };
    let mut cells = clique.raw(settings, traffic, seed);
    cells.run(us(FAIL));
    let dead = links(clique, what, seed);
    let mut condition = Condition::healthy(&clique.topology);
    for &link in &dead {
        condition.set_link(link, State::Dead);
        let link = clique.topology.links()[link as usize];
        for end in [link.low, link.high] {
            cells.of(end.tin).break_link(end.tin, end.port, us(FAIL));
        }
    }
    let (mut losses, mut round) = (Vec::new(), Vec::new());
    let mut before = cells.counts();
    let mut now = us(FAIL);
    while now < us(REPAIR) {
        now += STEP;
        cells.run(now);
        let counts = cells.counts();
        losses.push(counts.lost_at_dead_links - before.lost_at_dead_links);
        round.push(counts.lost_beyond_first_pod - before.lost_beyond_first_pod);
        before = counts;
        if pulse.at(losses.len() as f64 / 200.0).is_break() {
            return Err(Failure::Interrupted);
        }
    }
    let tables = compute(&clique.topology, &TurnTable::P1, &condition);
    let tables = Arc::new(tables);
    cells.sets_mut().iter_mut().for_each(|set| set.install(Arc::clone(&tables), us(REPAIR)));
    // What had crossed to a dead port is lost within its wire's time.
    cells.run(us(REPAIR) + Span::from_us(1));
    let repaired = cells.counts().lost_at_dead_links;
    cells.run(Time::NEVER);
    let counts = cells.counts();
    let gone = counts.delivered + counts.lost_at_dead_links + counts.discarded;
    Ok(Reaction {
        losses,
        round,
        after: counts.lost_at_dead_links - repaired,
        stuck: counts.injected - gone,
    })
}

impl Reaction {
    /// Until when cells go to dead links at more than a tenth of the rate that they did at first. Unit: s.
    fn avoided(&self) -> f64 {
        until_avoided(&self.losses)
    }

    /// The same of cells that are in the pod that they come from.
    fn avoided_at_first(&self) -> f64 {
        let both = self.losses.iter().zip(&self.round);
        until_avoided(&both.map(|(lost, round)| lost - round).collect::<Vec<_>>())
    }

    fn lost(&self) -> f64 {
        self.losses.iter().sum::<u64>() as f64
    }

    /// Cells lost from 2 us after the failure until the tables change.
    fn late(&self) -> f64 {
        self.losses[LATE..].iter().sum::<u64>() as f64
    }

    fn late_round(&self) -> f64 {
        self.round[LATE..].iter().sum::<u64>() as f64
    }
}

/// Until when losses, by step, are more than a tenth of those at first, for half a microsecond. Those of the first step
/// do not count: what was on wires and in queues is lost as well. Unit: s.
fn until_avoided(losses: &[u64]) -> f64 {
    let first = losses[1..5].iter().sum::<u64>() as f64 / 4.0;
    let is_more =
        |window: &[u64]| window.iter().sum::<u64>() as f64 / window.len() as f64 > first * 0.1;
    let last = losses.windows(HALF).rposition(is_more).unwrap_or(0);
    last as f64 * STEP.as_seconds()
}

/// The longest over seeds: where it is the end of what can be seen, no more than a bound.
fn longest(over_seeds: &[f64]) -> Measured {
    let most = Spread::of(over_seeds).high;
    Measured::largest(over_seeds).bound_if(most > END * 0.999)
}

/// How data is routed.
const MODES: [(Mode, &str); 2] =
    [(Mode::FullyAdaptive, "fully adaptive"), (Mode::MinimalDeterministic, "by a hash")];

/// Failures under load.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/failures.claims.toml"));
    let clique = Clique::new(&Shape::FULL, Fibres::Grid);
    let cases = [(0, 0), (0, 1), (0, 2), (1, 2)];
    let jobs = with_seeds(&cases, effort.seeds());
    let found = spread(&jobs, watch, |&((mode, what), seed), pulse| {
        react(&clique, &routed(MODES[mode].0), ALL[what].0, seed, pulse)
    })?;
    let of = |case: (usize, usize), what: fn(&Reaction) -> f64| -> Vec<f64> {
        let all = jobs.iter().zip(&found);
        all.filter(|((other, _), _)| *other == case).map(|(_, found)| what(found)).collect()
    };
    for (what, word) in ["link", "cable", "bundle"].into_iter().enumerate() {
        let avoided = of((0, what), Reaction::avoided);
        sheet.measure(&format!("failures.{word}"), longest(&avoided));
        let at_first = of((0, what), Reaction::avoided_at_first);
        sheet.measure(&format!("failures.{word}-first-pod"), longest(&at_first));
    }
    let share: Vec<f64> = of((0, 2), Reaction::late)
        .iter()
        .zip(of((1, 2), Reaction::late))
        .map(|(a, b)| a / b)
        .collect();
    sheet.measure("failures.late", Measured::mean(&share));
    let stuck = found.iter().map(|found| found.stuck as f64).fold(0.0, f64::max);
    sheet.measure("failures.stuck", Measured::one(stuck));
    let after = found.iter().map(|found| found.after as f64).fold(0.0, f64::max);
    sheet.measure("failures.repaired", Measured::one(after));
    let row = |&case: &(usize, usize)| -> Vec<Value> {
        let mean = |what: fn(&Reaction) -> f64| json!(Spread::of(&of(case, what)).mean);
        vec![
            json!(ALL[case.1].1),
            json!(MODES[case.0].1),
            mean(Reaction::avoided),
            mean(Reaction::lost),
            mean(Reaction::late),
            mean(Reaction::late_round),
        ]
    };
    let columns = [
        ("what", "Fails", Unit::Count),
        ("mode", "Routing of data", Unit::Count),
        ("avoided", "Avoided after", Unit::Seconds),
        ("lost", "Lost in 6 us", Unit::Cells),
        ("late", "of these after 2 us", Unit::Cells),
        ("round", "of these, had come round by another pod", Unit::Cells),
    ];
    let blocks = vec![
        Block::Plots(vec![drawn(&jobs, &found, effort.seeds())]),
        table("Means over seeds", &columns, cases.iter().map(row).collect()),
    ];
    let text = "Uniform traffic at 50 Gbps a TiN of the full Clique. After 6 us links between pods fail; 6 us later \
                tables are in place that leave them out. A cell that goes to a dead port is lost there. \"Avoided\" \
                is when the losses of half a microsecond fall below a tenth of those at first for good.";
    Ok(findings("Links that fail", text, blocks, sheet))
}

/// Cells lost at a dead bundle over time, by the way data is routed.
fn drawn(jobs: &[((usize, usize), u64)], found: &[Reaction], seeds: u64) -> Plot {
    let line = |mode: usize| {
        let all = jobs.iter().zip(found).filter(|((case, _), _)| *case == (mode, 2));
        let mut sums = vec![0; ((REPAIR - FAIL) * 20) as usize];
        for (_, reaction) in all {
            sums.iter_mut().zip(&reaction.losses).for_each(|(sum, lost)| *sum += lost);
        }
        let point = |(at, sum): (usize, u64)| {
            ((at + 1) as f64 * STEP.as_seconds(), sum as f64 / seeds as f64)
        };
        let points = sums.into_iter().enumerate().skip(1).map(point).collect();
        PlotSeries::new(MODES[mode].1, SeriesStyle::Line, points)
    };
    let axis = |label: &str, unit| Axis { label: label.into(), unit, scale: Scale::Linear };
    let (x, y) = (axis("since the failure", Unit::Seconds), axis("lost in 50 ns", Unit::Cells));
    let note = "A bundle of 32 links; means over seeds, without the first 50 ns.";
    plot("Cells lost at dead links", note, x, y, (0..2).map(line).collect())
}
