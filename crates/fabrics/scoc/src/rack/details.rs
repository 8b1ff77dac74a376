//! What a rack of one switch adds to the summary and the report.

use ::rack::results::Table;
use serde_json::{Map, Value, json};

use super::Rack;
use crate::config::SwitchPlan;
use crate::hardware::{CHIP, FALL_THROUGH};
use crate::{AnySwitch, Counts};

/// The summary's `scoc` object: SI units, snake case.
pub(super) fn details(rack: &Rack) -> Map<String, Value> {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| map.insert(key.to_string(), value);
    put("switch", json!(name(rack)));
    put("cycle_seconds", json!(rack.line.seconds(rack.line.cycle().get() as f64)));
    put("packets", json!(rack.departed));
    put("latency_seconds", json!(rack.plan.latency.as_seconds()));
    put("least_seconds", json!(rack.flows.constant().as_seconds()));
    if let (AnySwitch::Scoc(chip), SwitchPlan::Scoc(plan)) = (&rack.switch, &rack.plan.switch) {
        put("speed_up", json!(plan.config.speed_up()));
        put("crossbar_rate", json!(plan.config.crossbar_rate().as_bps()));
        let Counts { grants, accepts, refused_busy, refused_empty, refused_other, aged } =
            chip.counts();
        put("grants", json!(grants));
        put("accepts", json!(accepts));
        put("refused_busy", json!(refused_busy));
        put("refused_empty", json!(refused_empty));
        put("refused_other", json!(refused_other));
        put("aged", json!(aged));
        // D08, D16: as published, of the chip with 136 ports.
        put("published_chip_watts", json!(CHIP.watts));
        put("published_die_square_metres", json!(CHIP.die_edge_metres.powi(2)));
    }
    map
}

fn name(rack: &Rack) -> &'static str {
    match &rack.switch {
        AnySwitch::Scoc(_) => "scoc",
        AnySwitch::Flat(_) => "flat",
        AnySwitch::Hiera(_) => "hiera",
        AnySwitch::Crrd(_) => "crrd",
        AnySwitch::OutputQueued(_) => "output-queued",
    }
}

/// Tables for the report.
pub(super) fn tables(rack: &Rack) -> Vec<Table> {
    match &rack.plan.switch {
        SwitchPlan::Scoc(plan) => vec![fall_through(plan.config.clock_hertz), area()],
        _ => Vec::new(),
    }
}

/// Where the time through the idle chip goes (D04).
fn fall_through(clock_hertz: u64) -> Table {
    let rows = FALL_THROUGH.iter().map(|part| {
        let cycles = part.cycles as f64 / clock_hertz as f64;
        let whole = part.fixed.as_seconds() + cycles;
        vec![part.name.into(), part.cycles.to_string(), format!("{:.1}", whole * 1e9)]
    });
    Table {
        title: "Time through the idle chip".into(),
        note: "SCOC §4.E. The paper rounds to 61 ns; its parts make 63 ns.".into(),
        columns: ["part", "cycles", "ns"].map(String::from).to_vec(),
        rows: rows.collect(),
    }
}

/// What the chip is made of (D16).
fn area() -> Table {
    let groups = CHIP.ports / 4;
    let parts = [
        ("data crossbar", CHIP.crossbar_edge_metres.powi(2)),
        ("its scheduler", CHIP.scheduler_edge_metres.powi(2)),
        ("control crossbar", CHIP.ete_crossbar_edge_metres.powi(2)),
        ("its scheduler", CHIP.ete_scheduler_edge_metres.powi(2)),
        ("quads", groups as f64 * CHIP.quad_square_metres),
        ("die", CHIP.die_edge_metres.powi(2)),
    ];
    let rows = parts.map(|(name, area)| vec![name.into(), format!("{:.2}", area * 1e6)]);
    Table {
        title: "Area of the chip as built".into(),
        note: "SCOC §5: 32 nm, 136 ports of 25 Gb/s, two switches. As published, not scaled."
            .into(),
        columns: ["part", "mm²"].map(String::from).to_vec(),
        rows: rows.to_vec(),
    }
}
