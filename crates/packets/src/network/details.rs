//! What a packet network adds to the summary and the report.

use kernel::Histogram;
use rack::results::Table;
use rack::topology::Tier;
use serde_json::{Map, Value, json};

use crate::net::{Counts, Net};

/// The summary's object under the fabric's name: SI units, snake case. `nets` are the parts, `counts` what
/// they have counted together, `unexpected`: packets that made no
/// sense to the endpoint that they reached.
pub(super) fn details(
    nets: &[&Net],
    counts: &Counts,
    unexpected: u64,
    transport: Map<String, Value>,
) -> Map<String, Value> {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| map.insert(key.to_string(), value);
    put("packet_hops", json!(counts.hops));
    put("payload_hops", json!(counts.payload_hops));
    put("link_frames", json!(counts.link_frames));
    let drops = [
        ("dropped_full", counts.overflows),
        ("dropped_no_route", counts.unroutable),
        ("dropped_dead_link", counts.dead_link),
        ("dropped_lost", counts.lost),
        ("dropped_corrupted", counts.corrupted),
        ("dropped_by_program", counts.refused),
    ];
    for (key, count) in drops {
        put(key, json!(count));
    }
    put("packets_stray", json!(counts.stray));
    put("packets_unexpected", json!(unexpected));
    put("packets_marked", json!(counts.marked));
    put("packets_trimmed", json!(counts.trimmed));
    put("packets_returned", json!(counts.returned));
    put("pauses", json!(counts.pauses));
    put("ingress_max_bytes", json!(counts.ingress_max));
    let peaks = peaks(nets);
    for (key, share) in [("port_queue_max_p50_bytes", 0.5), ("port_queue_max_p99_bytes", 0.99)] {
        put(key, json!(peaks.quantile(share).unwrap_or(0)));
    }
    map.extend(transport);
    map
}

/// The longest queue of each switch's port, in bytes. A port is used in one part alone.
fn peaks(nets: &[&Net]) -> Histogram {
    let mut peaks = Histogram::new();
    let ports = nets[0].ports.iter().enumerate().filter(|(_, port)| !port.is_nic);
    for (port, _) in ports {
        let peak = nets.iter().map(|net| net.ports[port].peak).max();
        peaks.record(peak.unwrap_or(0).into());
    }
    peaks
}

/// Tables for the report.
pub(super) fn tables(net: &Net) -> Vec<Table> {
    let topology = &net.plan.topology;
    let tiers = [
        ("Hosts", Tier::Host),
        ("Leaf switches", Tier::Leaf),
        ("Spine switches", Tier::Spine),
        ("Core switches", Tier::Core),
        ("Switches", Tier::Other),
    ];
    let rows = tiers.into_iter().filter_map(|(name, tier)| {
        let vertices: Vec<_> = topology.tier_vertices(tier).collect();
        let ports = vertices.iter().map(|&vertex| topology.degree(vertex)).max()?;
        Some(vec![name.to_string(), vertices.len().to_string(), ports.to_string()])
    });
    vec![Table {
        title: "Network".into(),
        note: format!("{} links.", topology.links().count()),
        columns: ["", "Count", "Ports, at most"].map(String::from).to_vec(),
        rows: rows.collect(),
    }]
}
