//! The simulator's side of the comparison with the emulated rack (§5.1, Fig. 7).

use report::Unit;
use report::page::{Axis, Block};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::claims::{Sheet, Spread};
use crate::drawing::{distribution, findings, plot, table};
use crate::runs::{Collected, ScenarioFile, number, quantile, run_into};
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

const FIG7: ScenarioFile = ScenarioFile {
    path: "reproductions/r2c2/fig7.toml",
    text: include_str!("../../r2c2/fig7.toml"),
};

/// Flows of a run.
fn flows(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => 200,
        // §5.1.
        Effort::Full => 1_000,
    }
}

/// What a run gave.
#[derive(Serialize, Deserialize)]
struct Run {
    /// Throughput of each flow, in bit/s.
    throughput: Vec<f64>,
    /// The longest queue of a port, in bytes: median, 99th percentile over ports, largest.
    queues: [f64; 3],
}

/// Fig. 7.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let sheet = Sheet::read(include_str!("../../r2c2/fig7.claims.toml"));
    let jobs = with_seeds(&[flows(effort)], effort.seeds());
    let runs = spread(&jobs, watch, |&(flows, seed), pulse| {
        let mut delivered = Collected::default();
        let scenario = FIG7.with(&[("workload.flows", json!(flows))], seed)?;
        let result = run_into(&scenario, &mut delivered, pulse)?;
        let rate =
            |one: &crate::runs::Delivered| one.flow.size.bits() as f64 / one.fct().as_seconds();
        let queues =
            ["r2c2.port_queue_max_p50_bytes", "r2c2.port_queue_max_p99_bytes", "queue.max_bytes"];
        Ok(Run {
            throughput: delivered.flows.iter().map(rate).collect(),
            queues: queues.map(|key| number(&result, key)),
        })
    })?;
    let all: Vec<f64> = runs.iter().flat_map(|run| run.throughput.iter().copied()).collect();
    let x = Axis::linear("Throughput", Unit::BitsPerSecond);
    let y = Axis::linear("Part of flows", Unit::Share);
    let figure = plot("Fig. 7a", "All seeds together.", x, y, vec![distribution("R2C2", &all)]);
    let columns = [
        ("p05", "Throughput, p5", Unit::BitsPerSecond),
        ("p50", "median", Unit::BitsPerSecond),
        ("p95", "p95", Unit::BitsPerSecond),
        ("queue_p50", "Longest queue, median port", Unit::Bytes),
        ("queue_p99", "p99", Unit::Bytes),
        ("queue_max", "most", Unit::Bytes),
    ];
    let queue = |index: usize| {
        let values: Vec<f64> = runs.iter().map(|run| run.queues[index]).collect();
        json!(Spread::of(&values).mean)
    };
    let row = [0.05, 0.5, 0.95].map(|share| json!(quantile(&all, share)));
    let row = row.into_iter().chain([0, 1, 2].map(queue)).collect();
    let blocks = vec![
        Block::Plots(vec![figure]),
        table("Flows of all seeds; queues, means over seeds", &columns, vec![row]),
    ];
    let text = "16 nodes in a 2D torus of 5 Gbps a link, flows of 10 MB, one a millisecond. The \
                paper compares its simulator with an emulated rack of 16 servers; this is the \
                simulator's side.";
    Ok(findings("A rack of 16 nodes", text, blocks, sheet))
}
