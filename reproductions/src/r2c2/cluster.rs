//! Two racks joined, by links of their own and by tunnels through an Ethernet switch (§6).
//!
//! The paper leaves this to the future: it says how, and what is better and worse. So what is held
//! here is what follows from its words by closed forms: what parallel links carry, what bridging takes,
//! what of broadcasts crosses, and what the parts cost.

use kernel::{Bytes, Span};
use r2c2::config::Config;
use r2c2::wire::data::HEADER_BYTES;
use rack::topology::{Ethernet, Racks, Shape, Torus};
use rack::{Fabric, NodeId};
use report::Unit;
use serde_json::json;

use super::slowest;
use crate::claims::{Measured, Shape as Agreement, Sheet, Spread};
use crate::drawing::{findings, table};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// Nodes of a rack, and links between the two (our choice: a node in four has one).
const DIMENSIONS: [u32; 3] = [4, 4, 4];
const NODES: u32 = 64;
const LINKS: u32 = 16;

/// What each node sends to the other rack (our choice: what all start with at the rate of a link then
/// matters little).
fn bytes(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => 4_000_000,
        Effort::Full => 40_000_000,
    }
}

/// How the racks are joined: by so many links, and by tunnels of a part of their cables' rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Join {
    name: &'static str,
    links: u32,
    oversubscription: Option<u32>,
}

const DIRECT: Join = Join { name: "links", links: LINKS, oversubscription: None };
const TUNNELLED: Join = Join { name: "tunnels", oversubscription: Some(1), ..DIRECT };
const OVERSUBSCRIBED: Join =
    Join { name: "tunnels of a quarter of the rate", oversubscription: Some(4), ..DIRECT };

impl Join {
    fn config(self) -> Config {
        let ethernet = |oversubscription| Ethernet { oversubscription, ..Ethernet::default() };
        let racks = Racks {
            dimensions: DIMENSIONS.to_vec(),
            links: self.links,
            ethernet: self.oversubscription.map(ethernet),
            ..Racks::default()
        };
        Config { topology: Shape::Racks(racks), headroom: 0.0, ..Config::default() }
    }

    fn rack(self, seed: u64) -> r2c2::Rack {
        r2c2::Rack::new(self.config().plan().expect("the configuration is sound"), seed)
    }
}

/// Carries a flow from each of these nodes to the one at its place in the other rack. How long the
/// slowest takes.
fn carry(
    rack: &mut r2c2::Rack,
    nodes: std::ops::Range<u32>,
    size: u64,
    pulse: &mut Pulse<'_>,
) -> Result<Span, Failure> {
    let other = |node: u32| NodeId::new((node + NODES) % (2 * NODES));
    let pairs = nodes.map(|node| (NodeId::new(node), other(node)));
    slowest::carry(rack, pairs, Bytes::new(size), pulse)
}

/// What all nodes of a rack together send to the other at the pace of the slowest, headers included, in bit/s.
fn capacity(join: Join, seed: u64, effort: Effort, pulse: &mut Pulse<'_>) -> Result<f64, Failure> {
    let size = bytes(effort);
    let payload = join.config().mtu.get() - HEADER_BYTES as u64;
    let fct = carry(&mut join.rack(seed), 0..2 * NODES, size, pulse)?;
    let wire = size + size.div_ceil(payload) * HEADER_BYTES as u64;
    Ok(8.0 * (u64::from(NODES) * wire) as f64 / fct.as_seconds())
}

/// How long a full packet takes to the other rack, in seconds: from a node beside one with a link there, so that the
/// announcements of its flow are gone before it comes to that link.
fn latency(join: Join, pulse: &mut Pulse<'_>) -> Result<f64, Failure> {
    let payload = join.config().mtu.get() - HEADER_BYTES as u64;
    Ok(carry(&mut join.rack(1), 1..2, payload, pulse)?.as_seconds())
}

/// Copies of a broadcast that cross from rack to rack.
fn crossing(join: Join, pulse: &mut Pulse<'_>) -> Result<f64, Failure> {
    let mut rack = join.rack(1);
    carry(&mut rack, 0..2 * NODES, 20_000, pulse)?;
    let details = rack.details();
    let count = |key: &str| details["broadcasts"][key].as_f64().expect("it is counted");
    Ok(count("to_other_racks") / count("sent"))
}

/// What the nodes of a rack of §5.2 can put on their links, in bit/s.
fn injected() -> f64 {
    let torus = Torus::default().build().expect("the paper's rack is sound");
    torus.ports().iter().map(|port| port.link.rate.as_bps() as f64).sum()
}

/// §6, "Inter-rack networking".
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../r2c2/cluster.claims.toml"));
    let joins = [DIRECT, TUNNELLED, OVERSUBSCRIBED];
    let jobs = with_seeds(&joins, effort.seeds());
    let found = spread(&jobs, watch, |&(join, seed), pulse| capacity(join, seed, effort, pulse))?;
    let capacities: Vec<&[f64]> = found.chunks(effort.seeds() as usize).collect();
    for (word, values) in ["direct", "tunnelled", "oversubscribed"].iter().zip(&capacities) {
        sheet.measure(&format!("cluster.{word}"), Measured::mean(values));
    }
    let latencies = spread(&joins, watch, |&join, pulse| latency(join, pulse))?;
    sheet.measure("cluster.latency", Measured::one(latencies[1] - latencies[0]));
    let single = [Join { links: 1, ..DIRECT }, Join { links: 1, ..TUNNELLED }];
    let crossed = spread(&single, watch, |&join, pulse| crossing(join, pulse))?;
    sheet.measure("cluster.broadcast", Measured::largest(&crossed));
    sheet.measure("cluster.back-plane", Measured::one(injected()));
    let bills = joins.map(|join| join.config().plan().expect("the configuration is sound").bill);
    let saved = bills[1].cost - bills[0].cost;
    let words = format!("{} switches, {saved:.3} of one", bills[0].switches);
    let saves = Agreement::of(bills[0].switches == 0 && saved > 0.0);
    sheet.measure("cluster.cost", Measured::shape(words, saves));
    let row = |index: usize| {
        let (join, bill) = (joins[index], &bills[index]);
        vec![
            json!(join.name),
            json!(Spread::of(capacities[index]).mean),
            json!(latencies[index]),
            json!(bill.switches),
            json!(bill.cables),
            json!(bill.watts()),
            json!(bill.cost),
        ]
    };
    let columns = [
        ("joined", "Joined by 16", Unit::Count),
        ("capacity", "Capacity each way", Unit::BitsPerSecond),
        ("latency", "A packet from rack to rack", Unit::Seconds),
        ("switches", "Switches", Unit::Count),
        ("cables", "Cables between racks", Unit::Count),
        ("watts", "Power of the network", Unit::Watts),
        ("cost", "Cost of the network", Unit::Ratio),
    ];
    let rows = (0..joins.len()).map(row).collect();
    let text = "Two racks of 4 x 4 x 4 nodes; each node sends to the one at its place in the other. \
                Capacity by packets, without headroom; a cable is 150 ns, bridging 500 ns at either end, \
                the switch 500 ns. Cost in packet switches of 64 ports of 50 Gbps.";
    let blocks = vec![table("Two racks", &columns, rows)];
    Ok(findings("Racks joined", text, blocks, sheet))
}
