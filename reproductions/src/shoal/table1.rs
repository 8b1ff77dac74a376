//! Slots that a broken component wastes (§3.5, Table 1).

use rack::{Component, NodeId};
use report::Unit;
use report::page::{Axis, Block, Plot};
use serde_json::{Value, json};
use shoal::clos::Direction;
use shoal::{Config, Plan};

use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{curve, findings, plot, published, table};
use crate::runs::{ScenarioFile, config_of, number, run as carry_out};
use crate::spread::spread;
use crate::{Effort, Failure, Findings, Watch};

const TABLE1: ScenarioFile = ScenarioFile {
    path: "reproductions/shoal/table1.toml",
    text: include_str!("../../shoal/table1.toml"),
};

/// Racks with the full Clos of p-port switches: N = p²/2 (our choice of sizes; the last is the
/// paper's).
const RACKS: [(u32, u32); 4] = [(8, 4), (32, 8), (128, 16), (512, 32)];

/// A component of Table 1: its claim, its name, the fault that breaks it, and the paper's formula.
struct Row {
    id: &'static str,
    name: &'static str,
    component: Component,
    fault: fn() -> Value,
    formula: fn(f64) -> f64,
}

const ROWS: [Row; 4] = [
    Row {
        id: "table1.node-link",
        name: "node-leaf link",
        component: Component::NodeLink(NodeId::new(3)),
        fault: || json!({ "at": "10 us", "node_link": 3 }),
        formula: |nodes| 1.0 / nodes,
    },
    Row {
        id: "table1.leaf",
        name: "leaf switch",
        component: Component::Leaf(1),
        fault: || json!({ "at": "10 us", "leaf": 1 }),
        formula: |nodes| 1.0 / (2.0 * nodes).sqrt(),
    },
    Row {
        id: "table1.leaf-spine",
        name: "leaf-spine link",
        component: Component::LeafSpine { leaf: 1, spine: 1, link: 0 },
        fault: || json!({ "at": "10 us", "leaf_spine": { "leaf": 1, "spine": 1 } }),
        formula: |nodes| 2.0 / nodes,
    },
    Row {
        id: "table1.spine",
        name: "spine switch",
        component: Component::Spine(1),
        fault: || json!({ "at": "10 us", "spine": 1 }),
        formula: |nodes| 2.0 * (2.0 / nodes).sqrt(),
    },
];

fn plan(nodes: u32, radix: u32) -> Plan {
    let config = Config { nodes, radix, channels: 1, ..Config::default() };
    config.plan().expect("a full Clos joins p²/2 nodes")
}

/// E19.
pub(super) fn run(_: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/table1.claims.toml"));
    let counted: Vec<Vec<f64>> = RACKS
        .iter()
        .map(|&(nodes, radix)| {
            let switches = plan(nodes, radix).switches();
            let fraction = |row: &Row| switches.failed_slot_fraction(row.component);
            ROWS.iter().map(|row| fraction(row).expect("the rack has the component")).collect()
        })
        .collect();
    let last = &counted[RACKS.len() - 1];
    for (row, &fraction) in ROWS.iter().zip(last) {
        sheet.measure(row.id, Measured::one(fraction));
    }
    let (nodes, radix) = RACKS[RACKS.len() - 1];
    let link = Component::LeafSpine { leaf: 1, spine: 1, link: 0 };
    let both = plan(nodes, radix).switches().failed_slots(link, Direction::Both);
    let both = both.expect("the rack has the link").fraction();
    sheet.measure("table1.leaf-spine-both", Measured::one(both));

    let indices: Vec<usize> = (0..ROWS.len()).collect();
    let pairs = spread(&indices, watch, |&index, pulse| {
        let settings = [("fabric.channels", json!(1)), ("fault", json!([(ROWS[index].fault)()]))];
        let scenario = TABLE1.with(&settings, 1)?;
        let result = carry_out(&scenario, pulse)?;
        let plan = config_of::<Config>(&scenario).plan().expect("the scenario was checked");
        let switches = plan.switches();
        let broken = switches.affected_pairs(ROWS[index].component, Direction::Both);
        let expected = broken.expect("the rack has the component").with_reverse().len();
        Ok((expected as f64, number(&result, "shoal.pairs_given_up")))
    })?;
    let off = pairs.iter().map(|(expected, found)| (expected - found).abs());
    sheet.measure("table1.measured", Measured::one(off.fold(0.0, f64::max)));

    let columns = [
        ("component", "Broken", Unit::Count),
        ("formula", "Table 1 at N = 512", Unit::Share),
        ("counted", "Counted", Unit::Share),
        ("expected", "Pairs, both directions broken", Unit::Count),
        ("given_up", "Pairs given up in a run", Unit::Count),
    ];
    let rows = ROWS.iter().enumerate().map(|(index, row)| {
        vec![
            json!(row.name),
            json!((row.formula)(512.0)),
            json!(last[index]),
            json!(pairs[index].0),
            json!(pairs[index].1),
        ]
    });
    let blocks =
        vec![Block::Plots(vec![drawn(&counted)]), table("512 nodes", &columns, rows.collect())];
    let text = "Each pair of nodes has one path. What breaks on it silences the pair, and the \
                silence of one direction brings that of the other. Counted on the switches' own \
                schedules, and in a running rack in which the component fails.";
    Ok(findings("Wasted slots", text, blocks, sheet))
}

/// Slots wasted against nodes, as counted in each rack, beside the paper's formulas.
fn drawn(counted: &[Vec<f64>]) -> Plot {
    let mut series = Vec::new();
    for (index, row) in ROWS.iter().enumerate() {
        let at = |(rack, &(nodes, _)): (usize, &(u32, u32))| {
            (f64::from(nodes), Spread::of(&[counted[rack][index]]))
        };
        let points: Vec<_> = RACKS.iter().enumerate().map(at).collect();
        series.push(curve(row.name, &points).in_hue(index));
        let formula = RACKS.iter().map(|&(nodes, _)| {
            let nodes = f64::from(nodes);
            (nodes, (row.formula)(nodes))
        });
        series.push(published(format!("{}, Table 1", row.name), formula.collect()).in_hue(index));
    }
    let x = Axis::log("Nodes", Unit::Count);
    let y = Axis::log("Slots wasted", Unit::Share);
    let note = "Full Clos of p-port switches, N = p²/2. Hollow: the paper's formulas.";
    plot("Table 1", note, x, y, series)
}
