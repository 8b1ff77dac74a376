//! What a Shoal rack adds to the summary and the report.

use serde_json::{Map, Value, json};

use crate::rack::Rack;

/// The summary's `shoal` object: SI units, snake case.
pub(crate) fn details(rack: &Rack) -> Map<String, Value> {
    let plan = &rack.plan;
    let cell = plan.config.cell.get();
    let slots = plan.schedule.slots();
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| map.insert(key.to_string(), value);
    put("cell_slots", json!(rack.totals.events));
    put("payload_hops", json!(rack.totals.hops));
    put("slot_use", json!(rack.totals.hops as f64 / rack.totals.events.max(1) as f64));
    put("epoch_seconds", json!((plan.config.slot * u64::from(slots)).as_seconds()));
    put("epoch_slots", json!(slots));
    put("delay_slots", json!(plan.delay_slots));
    put("node_queue_max_cells", json!(rack.bank.fullest_node()));
    put("node_queue_max_bytes", json!(u64::from(rack.bank.fullest_node()) * cell));
    if let Some(losses) = &rack.losses {
        put("pairs_given_up", json!(losses.given_up));
        put("pairs_taken_up", json!(losses.taken_up));
        put("cells_swallowed", json!(losses.swallowed));
        put("cells_resent", json!(rack.bank.loss_counts().1));
        put("cells_repeated", json!(rack.messages.repeats));
        if let Some(corruption) = &losses.corruption {
            put("cells_corrupted", json!(corruption.corrupted));
            put("cells_corrupted_undetected", json!(corruption.undetected));
        }
    }
    map
}
