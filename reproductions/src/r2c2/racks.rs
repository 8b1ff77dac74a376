//! The rack of 512 nodes of §5.2, run in three ways over the same flows.

use std::collections::BTreeMap;

use kernel::Time;
use rack::results::{FlowEnd, FlowRecord, FlowSink, LONG_MIN, RunResult, SHORT_MAX};
use scenario::Sink;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::runs::{Collected, ScenarioFile, find_number, number, quantile, run_nth};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Watch};

/// The scenario that all of §5.2's runs vary.
const FIG10: ScenarioFile = ScenarioFile {
    path: "reproductions/r2c2/fig10.toml",
    text: include_str!("../../r2c2/fig10.toml"),
};

/// §5.2: nodes, and what a node's six links carry, in bit/s.
const NODES: f64 = 512.0;
const NODE_RATE: f64 = 60e9;
/// §5.2: mean size of a flow, in bits.
const MEAN_BITS: f64 = 100e3 * 8.0;

/// How the rack is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rack {
    /// Flows start at their share by what their node knows.
    R2c2,
    /// On one path a flow.
    Tcp,
    /// A queue for each flow at each node.
    Pfq,
    /// R2C2 as §5.1 has its computations: only of flows that have lasted an interval. Until then flows go
    /// as fast as a link.
    Lasting,
    /// All flows are considered, and go as fast as a link until their node computes.
    Linked,
}

/// The first three in the order of the scenario's `[[fabric]]` entries.
pub(super) const RACKS: [Rack; 4] = [Rack::R2c2, Rack::Tcp, Rack::Pfq, Rack::Lasting];

impl Rack {
    /// As the scenario labels it, if it has it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::R2c2 => "R2C2",
            Self::Tcp => "TCP",
            Self::Pfq => "PFQ",
            Self::Lasting => "R2C2, lasting flows alone",
            Self::Linked => "R2C2, all flows, at first at a link's rate",
        }
    }

    /// Which of the scenario's fabrics it is.
    fn fabric(self) -> usize {
        match self {
            Self::R2c2 | Self::Lasting | Self::Linked => 0,
            Self::Tcp => 1,
            Self::Pfq => 2,
        }
    }
}

/// A run but for its seed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Case {
    pub(super) rack: Rack,
    /// Mean time from one flow of the rack to the next (τ), in nanoseconds.
    pub(super) gap: u64,
    pub(super) flows: u64,
    /// R2C2: from one computation of rates to the next (ρ), in microseconds.
    pub(super) interval: u64,
    /// R2C2: the part of links that rates leave free.
    pub(super) headroom: f64,
    /// R2C2: how fast an application gives its node the data of a flow, in Gbit/s; at once if there is none.
    pub(super) limit: Option<u64>,
}

impl Case {
    /// A rack as §5.2 has it by default: ρ = 500 µs, 5 % of headroom.
    pub(super) fn new(rack: Rack, gap: u64) -> Self {
        Self { rack, gap, flows: flows(gap), interval: 500, headroom: 0.05, limit: None }
    }

    /// A run of three times as many flows (our choice), for what grows with it.
    pub(super) fn longer(self) -> Self {
        Self { flows: 3 * self.flows, ..self }
    }

    /// A run of a third as many (our choice), to tell what it grows from.
    pub(super) fn shorter(self) -> Self {
        Self { flows: self.flows / 3, ..self }
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        let load = MEAN_BITS / (self.gap as f64 * 1e-9) / (NODES * NODE_RATE);
        let mut settings = vec![
            ("workload.load", json!(load)),
            ("workload.flows", json!(self.flows)),
            ("fabric.0.interval", json!(format!("{} us", self.interval))),
            ("fabric.0.headroom", json!(self.headroom)),
        ];
        if self.rack == Rack::Lasting {
            settings.push(("fabric.0.batch", json!("lasting")));
        }
        if matches!(self.rack, Rack::Lasting | Rack::Linked) {
            settings.push(("fabric.0.start", json!("link")));
        }
        if let Some(limit) = self.limit {
            let class = json!({ "application_rate": format!("{limit} Gbps") });
            settings.push(("fabric.0.classes", json!([class])));
        }
        settings
    }

    /// Carries it out; flows go to `sink`.
    fn run(
        &self,
        seed: u64,
        sink: &mut dyn Sink,
        pulse: &mut Pulse<'_>,
    ) -> Result<RunResult, Failure> {
        let scenario = FIG10.with(&self.settings(), seed)?;
        run_nth(&scenario, self.rack.fabric(), sink, pulse)
    }

    /// The flows that were delivered.
    pub(super) fn delivered(&self, seed: u64, pulse: &mut Pulse<'_>) -> Result<Collected, Failure> {
        let mut collected = Collected::default();
        self.run(seed, &mut collected, pulse)?;
        Ok(collected)
    }

    fn carry(&self, seed: u64, pulse: &mut Pulse<'_>) -> Result<Carried, Failure> {
        let mut log = Log::default();
        let result = self.run(seed, &mut log, pulse)?;
        let of_r2c2 = |key: &str| find_number(&result, &format!("r2c2.{key}")).unwrap_or(f64::NAN);
        Ok(Carried {
            realised: number(&result, "load.realised"),
            short: log.short,
            long: log.long,
            concurrent: most_at_a_time(&mut log.changes),
            queue_p50: of_r2c2("port_queue_max_p50_bytes"),
            queue_p99: of_r2c2("port_queue_max_p99_bytes"),
            held_p95: of_r2c2("packets_held_p95"),
            held_by_node: of_r2c2("packets_held_by_node_p95"),
            held_max: of_r2c2("packets_held_max"),
        })
    }
}

/// Flows of a run; more where the rack takes long to fill. The paper does not say how many it ran. Sizes have no end, and so
/// mean size, queues and flows under way grow with the run: its peak of flows at τ = 100 ns (§5.2) is that of some
/// ten thousand (`r2c2/configuration.toml`).
pub(super) fn flows(gap: u64) -> u64 {
    match gap {
        ..1_000 => 20_000,
        1_000 => 10_000,
        _ => 4_000,
    }
}

/// Seeds of a run (our choice): a run of the paper's size has no more flows, and so more seeds.
fn seeds(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => effort.seeds(),
        Effort::Full => 10,
    }
}

/// What a rack made of its flows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Carried {
    pub(super) realised: f64,
    /// Completion times of short flows, in seconds.
    pub(super) short: Vec<f64>,
    /// Throughput of each long flow that was delivered, by its number, in bit/s.
    pub(super) long: BTreeMap<u64, f64>,
    /// Most flows under way at a time.
    pub(super) concurrent: f64,
    /// The longest queue of a port: median and 99th percentile over ports, in bytes; of R2C2 alone,
    /// as what follows.
    pub(super) queue_p50: f64,
    pub(super) queue_p99: f64,
    /// Packets held to be put in order: the most of each flow, 95th percentile over flows, the same
    /// over nodes, and the largest.
    pub(super) held_p95: f64,
    pub(super) held_by_node: f64,
    pub(super) held_max: f64,
}

impl Carried {
    pub(super) fn short_p99(&self) -> f64 {
        quantile(&self.short, 0.99)
    }
}

/// Carries out every case with every seed: a group of seeds for each case.
pub(super) fn carry_all(
    cases: &[Case],
    effort: Effort,
    watch: &mut Watch<'_>,
) -> Result<Vec<Vec<Carried>>, Failure> {
    carry(cases, seeds(effort), watch)
}

/// The same where a quick look would take too long with more than a seed.
pub(super) fn carry_longest(
    cases: &[Case],
    effort: Effort,
    watch: &mut Watch<'_>,
) -> Result<Vec<Vec<Carried>>, Failure> {
    let seeds = if effort == Effort::Quick { effort.seeds_of_longest() } else { seeds(effort) };
    carry(cases, seeds, watch)
}

fn carry(cases: &[Case], seeds: u64, watch: &mut Watch<'_>) -> Result<Vec<Vec<Carried>>, Failure> {
    let jobs = with_seeds(cases, seeds);
    let runs = spread(&jobs, watch, |&(case, seed), pulse| case.carry(seed, pulse))?;
    Ok(runs.chunks(seeds as usize).map(<[Carried]>::to_vec).collect())
}

/// A figure of the first rack by that of the second, seed by seed.
pub(super) fn quotients(
    first: &[Carried],
    second: &[Carried],
    get: impl Fn(&Carried) -> f64,
) -> Vec<f64> {
    first.iter().zip(second).map(|(first, second)| get(first) / get(second)).collect()
}

/// By how much each quotient is below one.
pub(super) fn losses(quotients: Vec<f64>) -> Vec<f64> {
    quotients.into_iter().map(|quotient| 1.0 - quotient).collect()
}

/// Throughput of the long flows that both racks delivered, all seeds together.
pub(super) fn both(first: &[Carried], second: &[Carried]) -> [Vec<f64>; 2] {
    let mut found = [Vec::new(), Vec::new()];
    for (first, second) in first.iter().zip(second) {
        for (flow, &ours) in &first.long {
            if let Some(&theirs) = second.long.get(flow) {
                found[0].push(ours);
                found[1].push(theirs);
            }
        }
    }
    found
}

/// Mean throughput of the long flows that both delivered, of the first by the second, seed by seed.
pub(super) fn long_quotients(first: &[Carried], second: &[Carried]) -> Vec<f64> {
    let of_a_seed = |(first, second): (&Carried, &Carried)| {
        let [ours, theirs] = both(std::slice::from_ref(first), std::slice::from_ref(second));
        let sum = |values: &[f64]| values.iter().sum::<f64>();
        (!ours.is_empty()).then(|| sum(&ours) / sum(&theirs))
    };
    first.iter().zip(second).filter_map(of_a_seed).collect()
}

/// Keeps what the figures need of each flow.
#[derive(Default)]
struct Log {
    short: Vec<f64>,
    long: BTreeMap<u64, f64>,
    /// A flow more, or one less.
    changes: Vec<(Time, i32)>,
}

impl FlowSink for Log {
    fn record(&mut self, record: &FlowRecord<'_>) -> std::io::Result<()> {
        let flow = record.flow;
        self.changes.push((flow.start, 1));
        let FlowEnd::Completed { at, .. } = record.end else { return Ok(()) };
        self.changes.push((at, -1));
        let seconds = (at - flow.start).as_seconds();
        if !record.measured {
            return Ok(());
        }
        // §5.2 has "size < 100 KB" and "size > 1 MB".
        if flow.size < SHORT_MAX {
            self.short.push(seconds);
        } else if flow.size > LONG_MIN {
            self.long.insert(flow.id.get(), flow.size.bits() as f64 / seconds);
        }
        Ok(())
    }
}

impl Sink for Log {}

/// The most flows that were under way at a time.
fn most_at_a_time(changes: &mut [(Time, i32)]) -> f64 {
    changes.sort_unstable();
    let mut now = 0;
    let most = changes.iter().map(|(_, change)| {
        now += change;
        now
    });
    f64::from(most.max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_a_flow_every_so_often() {
        let scenario = Case::new(Rack::R2c2, 1_000).settings();
        let load = scenario[0].1.as_f64().unwrap();
        // 100 kB a microsecond in the rack: 800 Gbps of 512 times 60.
        assert!((load - 800.0 / 30_720.0).abs() < 1e-12, "{load}");
        let scenario = FIG10.with(&[], 1).unwrap();
        let labels: Vec<_> = scenario.fabrics.iter().map(|choice| choice.label.as_str()).collect();
        let own = RACKS.iter().filter(|&&rack| rack != Rack::Lasting);
        assert!(own.clone().all(|rack| labels[rack.fabric()] == rack.name()));
        assert_eq!(labels.len(), own.count());
    }

    #[test]
    fn flows_that_end_as_others_begin_are_not_counted_together() {
        let time = Time::from_ps;
        let mut changes = [(time(0), 1), (time(5), -1), (time(5), 1), (time(3), 1), (time(9), 1)];
        assert_eq!(most_at_a_time(&mut changes), 3.0);
    }
}
