//! The largest rack that two stages of switches of 64 ports join (§3.2).

use rack::NodeId;
use report::Unit;
use serde_json::json;
use shoal::clos::proof::prove_contention_free;
use shoal::{Config, Plan};

use super::throughput::{self, cells_an_epoch, pairs, window};
use crate::claims::{Measured, Sheet};
use crate::drawing::{findings, table};
use crate::runs::config_of;
use crate::spread::spread;
use crate::{Effort, Failure, Findings, Watch};

/// Ports of a switch, and nodes that it is said to join.
const RADIX: u32 = 64;
const NODES: u32 = 2048;

/// A rack of so many nodes; none if switches of 64 ports do not join them.
fn plan(nodes: u32) -> Option<Plan> {
    Config { nodes, radix: RADIX, ..Config::default() }.plan().ok()
}

/// The most nodes whose switches are free of contention, of the published number and of one more leaf
/// switch full; all ports are followed.
fn joined() -> u32 {
    let is_free = |nodes: &u32| {
        plan(*nodes).is_some_and(|plan| {
            let peer = |node: NodeId, at| plan.schedule.peer(node.get(), at).map(NodeId::new);
            prove_contention_free(&plan.switches(), peer).is_ok()
        })
    };
    let sizes = [NODES / 2, NODES, NODES + RADIX / 2];
    sizes.into_iter().filter(is_free).max().unwrap_or(0)
}

/// §3.2's rack at its largest.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/scale.claims.toml"));
    sheet.measure("scale.nodes", Measured::one(f64::from(joined())));
    let epochs = match effort {
        Effort::Quick => (12, 8),
        Effort::Full => (20, 60),
    };
    let jobs = [1, NODES];
    let rates = spread(&jobs, watch, |&count, pulse| {
        let rack = [
            ("fabric.nodes", json!(NODES)),
            ("fabric.radix", json!(RADIX)),
            ("workload.pattern.pairs", json!(count)),
        ];
        let scenario = throughput::FIG12.with(&rack, 1)?;
        let plan = config_of::<Config>(&scenario).plan().expect("the scenario was checked");
        let steady = window(&plan, epochs.0, epochs.1);
        let cells = cells_an_epoch(&plan, &pairs(&scenario)?, &steady, 1, pulse)?;
        Ok(cells.iter().sum::<f64>() / f64::from(count))
    })?;
    sheet.measure("scale.half", Measured::one(rates[1] / rates[0]));
    let columns =
        [("pairs", "Pairs", Unit::Count), ("cells", "Cells an epoch of each", Unit::Count)];
    let rows = jobs.iter().zip(&rates).map(|(count, rate)| vec![json!(count), json!(rate)]);
    let blocks = vec![table("2,048 nodes", &columns, rows.collect())];
    let text = "Switches of 64 ports in two stages. The permutation is that of Fig. 12, in a rack four \
                times as large.";
    Ok(findings("Largest rack of two stages", text, blocks, sheet))
}
