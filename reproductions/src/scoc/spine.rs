//! The chip as the spine of a rack of leaves and spines, beside a flat crossbar with a speed-up of two
//! and the ideal (§4.F).

use report::Unit;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::SEEDS;
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{findings, table};
use crate::runs::{Collected, ScenarioFile, quantile, run_into};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

const SPINE: ScenarioFile = ScenarioFile {
    path: "reproductions/scoc/spine.toml",
    text: include_str!("../../scoc/spine.toml"),
};

/// The core of the spines, by its `kind`; the chip as the scenario has it.
const CORES: [(&str, &str); 3] =
    [("scoc", "SCOC"), ("flat", "Flat, speed-up 2"), ("output-queued", "output-queued")];

/// What the rack carries (§4.F names the three).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Load {
    Bursts,
    AllToAll,
    FanIn,
}

const LOADS: [(Load, &str, &str); 3] = [
    (Load::Bursts, "bursts", "micro-bursts"),
    (Load::AllToAll, "all-to-all", "all-to-all"),
    (Load::FanIn, "fan-in", "fan-in"),
];

/// Nodes, leaves and rounds of a load.
const fn size(effort: Effort) -> (u32, u32, u32) {
    match effort {
        Effort::Quick => (64, 8, 3),
        Effort::Full => (128, 16, 20),
    }
}

/// The `[workload]` table. Sizes and times are our choice: bursts of as many flows as nodes over a load
/// of 0.3, all pairs at once, and fan-ins of three quarters of the nodes.
fn workload(load: Load, effort: Effort) -> Value {
    let (nodes, _, rounds) = size(effort);
    match load {
        Load::Bursts => json!({ "kind": "mix", "parts": [
            { "kind": "poisson", "load": 0.3, "sizes": { "kind": "fixed", "size": "10 KB" },
              "flows": u64::from(nodes * rounds) * 3 },
            { "kind": "bulk", "size": "20 KB", "pattern": { "kind": "uniform" }, "flows": nodes,
              "timing": { "rounds": rounds, "period": "30 us" } },
        ] }),
        Load::AllToAll => json!({ "kind": "all_to_all", "size": "3 KB", "order": "random" }),
        Load::FanIn => json!({ "kind": "incast", "senders": nodes * 3 / 4, "size": "20 KB",
            "timing": { "rounds": rounds, "period": "1 ms" } }),
    }
}

/// What one seed gave.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Point {
    /// Completion times in seconds.
    mean: f64,
    p99: f64,
}

type Case = (Load, &'static str);

fn measure(
    (load, core): Case,
    effort: Effort,
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<Point, Failure> {
    let (nodes, leaves, _) = size(effort);
    let settings = [
        ("workload", workload(load, effort)),
        ("fabric.nodes", json!(nodes)),
        ("fabric.leaves", json!(leaves)),
    ];
    let other = [("fabric.spine", json!({ "kind": core }))];
    let settings = match core {
        "scoc" => settings.to_vec(),
        _ => settings.into_iter().chain(other).collect(),
    };
    let scenario = SPINE.with(&settings, seed)?;
    let mut flows = Collected::default();
    run_into(&scenario, &mut flows, pulse)?;
    let seconds = flows.seconds();
    let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
    Ok(Point { mean, p99: quantile(&seconds, 0.99) })
}

/// §4.F.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../scoc/spine.claims.toml"));
    let cases: Vec<Case> =
        LOADS.iter().flat_map(|&(load, ..)| CORES.map(|(core, _)| (load, core))).collect();
    let jobs = with_seeds(&cases, SEEDS);
    let found = spread(&jobs, watch, |&(case, seed), pulse| measure(case, effort, seed, pulse))?;
    let of = |case: Case, what: fn(&Point) -> f64| -> Vec<f64> {
        let all = jobs.iter().zip(&found);
        all.filter(|((point, _), _)| *point == case).map(|(_, point)| what(point)).collect()
    };
    for (load, id, _) in LOADS {
        for (name, what) in
            [("mean", (|point| point.mean) as fn(&Point) -> f64), ("p99", |p| p.p99)]
        {
            let beside = |core| {
                let pairs = of((load, "scoc"), what).into_iter().zip(of((load, core), what));
                Measured::mean(&pairs.map(|(chip, other)| chip / other - 1.0).collect::<Vec<_>>())
            };
            sheet.measure(&format!("spine.{id}-{name}"), beside("flat"));
            sheet.measure(&format!("spine.{id}-{name}-ideal"), beside("output-queued"));
        }
    }
    let columns = [
        ("load", "load", Unit::Count),
        ("spine", "spine", Unit::Count),
        ("mean", "mean completion time", Unit::Seconds),
        ("mean_interval", "over seeds", Unit::Seconds),
        ("p99", "99 %", Unit::Seconds),
        ("p99_interval", "over seeds", Unit::Seconds),
    ];
    let row = |(load, words): (Load, &str), (core, name): (&'static str, &str)| {
        let mean = Spread::of(&of((load, core), |point| point.mean));
        let p99 = Spread::of(&of((load, core), |point| point.p99));
        vec![
            json!(words),
            json!(name),
            json!(mean.mean),
            mean.interval(),
            json!(p99.mean),
            p99.interval(),
        ]
    };
    let rows =
        LOADS.iter().flat_map(|&(load, _, words)| CORES.map(|core| row((load, words), core)));
    let text = "Hosts speak DCTCP. Leaves keep a queue for each node, ask the node's leaf for credit over \
                the ETE switches, and spray segments of at most 288 B over eight spines. The same flows \
                through spines of three kinds.";
    let blocks = vec![table("Completion times", &columns, rows.collect())];
    Ok(findings("Spines of a rack", text, blocks, sheet))
}
