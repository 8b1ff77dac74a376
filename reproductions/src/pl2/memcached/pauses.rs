//! memcached beside hosts whose threads pause after each message, so that they do not fill the line (§6.2.1, Figs 3 and 4).

use report::Unit;
use report::page::{Axis, Block, Plot, PlotSeries, SeriesStyle};
use serde_json::{Value, json};

use super::super::incast::Faster;
use super::super::racks::quotients;
use super::cases::{CUBIC, Carried, PL2, Run};
use super::{over, p99, rate, tail};
use crate::claims::{Measured, Sheet};
use crate::drawing::{findings, plot, published};
use crate::runs::ScenarioFile;
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

const FILE: ScenarioFile = ScenarioFile {
    path: "reproductions/pl2/memcached-pauses.toml",
    text: include_str!("../../../pl2/memcached-pauses.toml"),
};
/// Size of a value in bytes.
const VALUE: u64 = 4096;
/// Threads of a host.
const THREADS: u32 = 12;
/// At how many shares of the calls the plot has a step: 99 % is among them.
const SHARES: usize = 500;

/// A run but for its seed.
#[derive(Clone, Copy, Debug)]
struct Case {
    run: Run,
    /// How many hosts send, memcached's own first.
    hosts: u32,
    faster: Faster,
}

impl Case {
    fn new(fabric: usize, hosts: u32, effort: Effort) -> Self {
        // CUBIC counts once its windows have grown until packets were lost, time and again: some 40 ticks.
        let (milliseconds, start) = match (fabric, effort) {
            (PL2, Effort::Quick) => (220, 20),
            (PL2, Effort::Full) => (820, 20),
            (_, Effort::Quick) => (1_000, 400),
            (_, Effort::Full) => (20_000, 8_000),
        };
        // Windows grow by the clock, and packets are lost whenever many messages come together: with a faster clock
        // windows are a little larger.
        let faster = Faster(if effort == Effort::Full { 1 } else { 20 });
        let run = Run { file: FILE, fabric, value: VALUE, milliseconds, start };
        Self { run, hosts, faster }
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        let mut settings = vec![
            ("workload.parts.0.start", json!(format!("{} ms", self.run.start))),
            ("workload.parts.1.servers", json!(self.hosts)),
            ("workload.parts.1.outstanding", json!(self.hosts * THREADS)),
            ("run.time", json!(format!("{} ms", self.run.milliseconds))),
        ];
        settings.extend(self.faster.settings([
            "fabric.1.transport.clock.tick",
            "fabric.1.transport.rto_min",
            "fabric.1.transport.stream.rto_initial",
            "fabric.1.transport.stream.ack_delay",
        ]));
        settings
    }
}

/// What Figs 3 and 4 have beside four such hosts, and what one of them makes.
pub(in crate::pl2) fn beside_pauses(
    effort: Effort,
    watch: &mut Watch<'_>,
) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../../pl2/fig3-pauses.claims.toml"));
    let cases =
        [(PL2, 4), (CUBIC, 4), (CUBIC, 1)].map(|(fabric, hosts)| Case::new(fabric, hosts, effort));
    let seeds = effort.seeds();
    let runs = spread(&with_seeds(&cases, seeds), watch, |(case, seed), pulse| {
        case.run.carry(&case.settings(), *seed, pulse)
    })?;
    let [pl2, cubic, one] = [0, 1, 2].map(|case| &runs[case * seeds as usize..][..seeds as usize]);
    let mut put = |word: &str, measured| sheet.measure(&format!("fig3-pauses.{word}"), measured);
    let [loads, cubic_loads] = [pl2, cubic].map(|runs| over(runs, |run| run.background));
    put("downlink", Measured::mean(&cubic_loads));
    let more: Vec<f64> = loads.iter().zip(&cubic_loads).map(|(pl2, cubic)| pl2 - cubic).collect();
    put("more", Measured::mean(&more));
    put("one-load", Measured::mean(&over(one, |run| run.background)));
    put("p99-pl2", tail(pl2));
    put("p99-cubic", tail(cubic));
    put("p99-ratio", Measured::mean(&quotients(&over(cubic, p99), &over(pl2, p99))));
    put("rate", Measured::mean(&quotients(&over(pl2, rate), &over(cubic, rate))));
    let text = "One client asks for values of 4 KiB, one at a time, beside four hosts of twelve threads that each send it \
                a message of 1 MB and pause for 2.75 ms.";
    let blocks = vec![Block::Plots(vec![latencies(pl2, cubic)])];
    Ok(findings("memcached beside TCP of hosts that pause", text, blocks, sheet))
}

/// What calls beside four hosts took, as Fig. 4 tells it of two quantiles.
fn latencies(pl2: &[Carried], cubic: &[Carried]) -> Plot {
    let of = |name, runs: &[Carried]| {
        PlotSeries::new(name, SeriesStyle::Steps, runs[0].calls.steps(SHARES))
    };
    let theirs = [("PL2, published", 56e-6), ("CUBIC, published", 127e-6)];
    let theirs = theirs.map(|(name, seconds)| published(name, vec![(seconds, 0.99)]));
    let lines = [of("PL2", pl2), of("CUBIC", cubic)].into_iter().chain(theirs);
    plot(
        "Fig. 4, four hosts",
        "The first seed. The points are the two that the paper's text has: 99th percentiles.",
        Axis::log("Latency of calls", Unit::Seconds),
        Axis::linear("Part of calls", Unit::Share),
        lines.collect(),
    )
}
