//! What a Shoal rack adds to the summary and the report.

use rack::results::Table;
use serde_json::{Map, Value, json};

use crate::corruption::Corruption;
use crate::losses::Losses;
use crate::memory::NodeMemory;
use crate::rack::Rack;
use crate::wire::Layout;

/// The summary's `shoal` object: SI units, snake case.
pub(crate) fn details(rack: &Rack) -> Map<String, Value> {
    let plan = &rack.plan;
    let cell = plan.config.cell.get();
    let slots = plan.schedule.slots();
    let bound = rack.largest_bound();
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| map.insert(key.to_string(), value);
    put("cell_slots", json!(rack.cell_slots()));
    put("payload_hops", json!(rack.hops()));
    put("slot_use", json!(rack.hops() as f64 / rack.cell_slots().max(1) as f64));
    put("epoch_seconds", json!((plan.config.slot * u64::from(slots)).as_seconds()));
    put("epoch_slots", json!(slots));
    put("delay_slots", json!(plan.delay_slots));
    put("latency_seconds", json!(plan.latency.as_seconds()));
    put("queue_max_cells_bound", json!(bound));
    put("node_queue_max_cells", json!(rack.fullest_node()));
    put("node_relayed_max_cells", json!(rack.fullest_relay()));
    put("node_queue_max_bytes", json!(u64::from(rack.fullest_node()) * cell));
    put("transport", json!(if plan.is_reliable { "reliable" } else { "none" }));
    if rack.unexpected() > 0 {
        put("cells_unexpected", json!(rack.unexpected()));
    }
    losses(rack, &mut map);
    power(rack, &mut map);
    map
}

/// What went wrong and was mended; absent where nothing can go wrong.
fn losses(rack: &Rack, map: &mut Map<String, Value>) {
    let Some(losses) = &rack.whole().losses else { return };
    let mut put = |key: &str, value: Value| map.insert(key.to_string(), value);
    let sum = |count: fn(&Losses) -> u64| rack.losses().map(count).sum::<u64>();
    put("pairs_given_up", json!(sum(|losses| losses.given_up)));
    put("pairs_taken_up", json!(sum(|losses| losses.taken_up)));
    // All shards go over at the same time.
    put("schedule_updates", json!(losses.schedule_updates));
    put("cells_swallowed", json!(sum(|losses| losses.swallowed)));
    put("cells_resent", json!(rack.loss_counts().1));
    put("cells_repeated", json!(rack.repeats()));
    if losses.corruption.is_some() {
        let sum = |count: fn(&Corruption) -> u64| {
            rack.losses().filter_map(|losses| losses.corruption.as_ref()).map(count).sum::<u64>()
        };
        put("cells_corrupted", json!(sum(|corruption| corruption.corrupted)));
        put("cells_corrupted_undetected", json!(sum(|corruption| corruption.undetected)));
    }
    if losses.clock.losses > 0 {
        put("clock_masters_lost", json!(losses.clock.losses));
        put("clock_error_max_seconds", json!(losses.clock.worst.as_seconds()));
        put("clock_clipped_slots", json!(losses.clock.clipped_until(rack.slot())));
    }
}

/// Power and cost (§5), where switches of the configured ports can build both networks.
fn power(rack: &Rack, map: &mut Map<String, Value>) {
    let config = &rack.plan.config;
    let Ok(compared) = config.equipment.compare(config.nodes) else { return };
    map.insert("power_watts".into(), json!(compared.shoal.total_watts));
    map.insert("power_watts_packet_switched".into(), json!(compared.packet.total_watts));
    map.insert("power_saving".into(), json!(compared.power_saving));
    map.insert("cost_relative_to_packet_switched".into(), json!(compared.relative_cost));
}

/// Tables for the report.
pub(crate) fn tables(rack: &Rack) -> Vec<Table> {
    let mut tables = vec![timing(rack)];
    tables.extend(equipment(rack));
    tables.extend(memory(rack));
    tables
}

fn row<const N: usize>(cells: [String; N]) -> Vec<String> {
    cells.to_vec()
}

fn timing(rack: &Rack) -> Table {
    let plan = &rack.plan;
    let config = &plan.config;
    let slots = u64::from(plan.schedule.slots());
    let guard = config.sync.guard_band();
    let margin = plan.synchronisation_margin();
    let rows = vec![
        row(["Slot".into(), config.slot.to_string(), "guard band, framing and one cell".into()]),
        row(["Guard band".into(), config.guard.to_string(), format!("needs {}", guard.total())]),
        row([
            "Clocks may differ by".into(),
            margin.to_string(),
            format!("they do by {}", config.sync.precision),
        ]),
        row(["Cell".into(), plan.cell_time.to_string(), config.cell.to_string()]),
        row([
            "Epoch".into(),
            (config.slot * slots).to_string(),
            format!("{slots} slots of {} channels", config.channels),
        ]),
        row([
            "Node to node".into(),
            plan.latency.to_string(),
            format!("acted on {} slots after sending", plan.delay_slots),
        ]),
    ];
    Table {
        title: "Timing".into(),
        note: "Slots, and what the guard band covers (Shoal §3.4, §7.1).".into(),
        columns: ["", "Time", "Note"].map(String::from).to_vec(),
        rows,
    }
}

fn equipment(rack: &Rack) -> Option<Table> {
    let config = &rack.plan.config;
    let compared = config.equipment.compare(config.nodes).ok()?;
    let cost = format!("{:.2}", compared.relative_cost);
    let line = |name: &str, power: &crate::equipment::NetworkPower, cost: String| {
        row([
            name.into(),
            power.switches.to_string(),
            format!("{:.0}", power.switch_watts),
            format!("{:.0}", power.nic_watts),
            format!("{:.0}", power.total_watts),
            cost,
        ])
    };
    Some(Table {
        title: "Power and cost".into(),
        note: format!(
            "This rack and a packet-switched Clos of as many nodes (Shoal §5): {:.1} % less power. \
             The prices are inputs of `[fabric.equipment]`; circuit switches below {:.1} % of the \
             cost of packet switches make this rack the cheaper one.",
            100.0 * compared.power_saving,
            100.0 * compared.break_even,
        ),
        columns: ["", "Switches", "Switches, W", "NICs, W", "Total, W", "Relative cost"]
            .map(String::from)
            .to_vec(),
        rows: vec![
            line("Shoal", &compared.shoal, cost),
            line("Packet-switched", &compared.packet, "1.00".into()),
        ],
    })
}

fn memory(rack: &Rack) -> Option<Table> {
    let config = &rack.plan.config;
    let layout = Layout::new(config.nodes, config.classes).ok()?;
    let memory = NodeMemory::new(config.nodes, config.cell, &layout);
    let line = |name: &str, size: kernel::Bytes, place: &str| {
        row([name.into(), size.to_string(), place.into()])
    };
    Some(Table {
        title: "Memory of a NIC".into(),
        note: "Sized for the worst case, all nodes sending to one (Shoal §3.3.4, §3.5).".into(),
        columns: ["", "Size", "Where"].map(String::from).to_vec(),
        rows: vec![
            line("Queues", memory.queues, "off chip"),
            line("Cell cache", memory.cell_cache, "on chip"),
            line("Feedback matrix", memory.feedback_matrix, "on chip"),
            line("Last cells sent and received", memory.last_cells, "on chip"),
        ],
    })
}
