//! Every value that a key can hold gives a plan that runs, or a message.

use std::time::Instant;

use kernel::{Bytes, Rate, Span, Stream, Time};
use rack::{Component, Fabric, Fault, NodeId};
use serde_json::{Value, json};

use crate::config::{Config, Feedback, Transport};
use crate::rack::Rack;
use crate::schedule::Order;
use crate::tests::{Ends, flow};

/// A whole number at the edge of something.
fn whole(draw: &mut Stream, usual: u64, most: u64) -> u64 {
    let near = |draw: &mut Stream| draw.below(3);
    match draw.below(8) {
        0 => 0,
        1 => 1,
        2 => 2 + near(draw),
        3 => most - near(draw),
        4 => most / 2 + near(draw),
        5 => 1 << draw.below(u64::from(most.ilog2()) + 1),
        6 => usual + near(draw),
        _ => usual / (1 + near(draw)),
    }
}

fn count(draw: &mut Stream, usual: u32) -> u32 {
    whole(draw, u64::from(usual), u64::from(u32::MAX)) as u32
}

fn time(draw: &mut Stream, usual: Span) -> Span {
    Span::from_ps(whole(draw, usual.as_ps(), u64::MAX))
}

fn size(draw: &mut Stream, usual: Bytes) -> Bytes {
    Bytes::new(whole(draw, usual.get(), u64::MAX))
}

fn rate(draw: &mut Stream, usual: Rate) -> Rate {
    Rate::from_bps(whole(draw, usual.as_bps(), u64::MAX))
}

fn number(draw: &mut Stream, usual: f64) -> f64 {
    let all =
        [0.0, -0.0, 1.0, -1.0, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY, f64::NAN, 1e-3, 1e12];
    if draw.below(2) == 0 { usual } else { all[draw.below(all.len() as u64) as usize] }
}

/// Changes one key.
fn change(config: &mut Config, draw: &mut Stream) {
    let usual = Config::default();
    match draw.below(34) {
        0 => config.nodes = count(draw, 16),
        1 => config.node_rate = rate(draw, usual.node_rate),
        2 => config.load_rate = rate(draw, usual.load_rate),
        3 => config.channels = count(draw, usual.channels),
        4 | 5 => config.slot = time(draw, usual.slot),
        6 | 7 => config.guard = time(draw, usual.guard),
        8 => config.cell = size(draw, usual.cell),
        9 => config.header = size(draw, usual.header),
        10 => config.framing = size(draw, usual.framing),
        11 => config.packet = size(draw, usual.packet),
        12 => config.radix = count(draw, usual.radix),
        13 => config.wire_latency = time(draw, usual.wire_latency),
        14 => config.switch_latency = time(draw, usual.switch_latency),
        15 => config.nic_latency = time(draw, usual.nic_latency),
        16 => config.schedule = Order::Cyclic,
        17 => config.feedback = Feedback::MinusOne,
        18 => config.classes = count(draw, usual.classes),
        19 => config.queue_limit = count(draw, 4),
        20 => config.bit_error_rate = number(draw, 1e-6),
        21 => config.transport = Transport::None,
        22 => config.reintegration_epochs = count(draw, usual.reintegration_epochs),
        23 => config.schedule_oracle_after = time(draw, Span::from_us(3)),
        24 => config.sync.reconfiguration = time(draw, usual.sync.reconfiguration),
        25 => config.sync.propagation_spread = time(draw, usual.sync.propagation_spread),
        26 => config.sync.precision = time(draw, usual.sync.precision),
        27 => config.sync.clock_recovery = time(draw, usual.sync.clock_recovery),
        28 => config.sync.master = count(draw, 3),
        29 => config.sync.takeover = time(draw, Span::from_us(10)),
        30 => config.sync.resynchronisation = time(draw, usual.sync.resynchronisation),
        31 => config.sync.drift_per_billion = whole(draw, 50, u64::MAX),
        32 => {
            config.equipment.switch_ports = count(draw, usual.equipment.switch_ports);
            config.equipment.bandwidth_factor = count(draw, usual.equipment.bandwidth_factor);
        }
        _ => {
            let equipment = &mut config.equipment;
            for value in [
                &mut equipment.packet_switch_watts,
                &mut equipment.nic_watts,
                &mut equipment.integration_factor,
                &mut equipment.rack_watts,
                &mut equipment.nic_cost,
            ] {
                *value = number(draw, *value);
            }
        }
    }
}

/// Lets a rack carry two flows over the death of a node and of a link, and tells all it has to tell.
fn carry(config: &Config) {
    let slots = |count| Time::ZERO + config.slot * count;
    let fault = |component, at, until| Fault { component, at: slots(at), until };
    let faults = [
        fault(Component::Node(NodeId::new(0)), 3, None),
        fault(Component::NodeLink(NodeId::new(1)), 10, Some(slots(40))),
        Fault {
            component: Component::Node(NodeId::new(1)),
            at: Time::from_ps(u64::MAX - 1),
            until: None,
        },
    ];
    for faults in [&[][..], &faults] {
        let plan = config.plan().unwrap().with_faults(faults).unwrap();
        let mut rack = Rack::new(plan, 1);
        let mut ends = Ends::default();
        rack.offer(&flow(0, config.nodes - 1, 0, 2_000, Time::ZERO));
        rack.offer(&flow(1, 0, config.nodes - 1, 1 << 40, Time::ZERO));
        rack.advance(slots(500), &mut ends);
        assert!(rack.ideal_fct(&flow(2, 0, 1, 1 << 40, Time::ZERO)) > Span::ZERO);
        assert!(serde_json::to_string(&rack.details()).is_ok());
        assert!(!rack.tables().is_empty());
        rack.bill();
        rack.check().unwrap();
    }
}

#[test]
fn slow_every_configuration_is_planned_or_refused_at_once_and_what_is_planned_runs() {
    let mut draw = Stream::new(1, "test", 0);
    let (mut planned, mut run) = (0, 0);
    for case in 0..20_000 {
        let mut config = Config { nodes: 4 + draw.below(13) as u32, ..Config::default() };
        for _ in 0..=draw.below(4) {
            change(&mut config, &mut draw);
        }
        let begin = Instant::now();
        let plan = config.plan();
        assert!(begin.elapsed().as_secs() < 60, "{:?} for {config:?}", begin.elapsed());
        let memory = config.memory();
        match plan {
            Err(problems) => {
                assert!(!problems.is_empty(), "{config:?}");
                assert!(problems.iter().all(|problem| !problem.message.is_empty()), "{problems:?}");
            }
            Ok(_) => {
                planned += 1;
                if config.nodes <= 64 && memory < Bytes::new(20_000_000) && case % 4 == 0 {
                    run += 1;
                    carry(&config);
                }
            }
        }
    }
    assert!(planned > 3_000 && run > 500, "{planned} planned, {run} run");
}

/// Everything with a range that `rackloom describe` tells: its ends are taken, what lies beyond is not.
#[test]
fn ranges_that_are_told_are_those_that_are_taken() {
    let schema = schemars::schema_for!(Config).to_value();
    // Room for the largest of each.
    let roomy = Config { nodes: 2, slot: Span::from_us(100), ..Config::default() };
    let roomy = serde_json::to_value(roomy).unwrap();
    let mut checked = 0;
    for (table, properties) in [
        ("", &schema["properties"]),
        ("sync", &schema["$defs"]["SyncConfig"]["properties"]),
        ("equipment", &schema["$defs"]["Equipment"]["properties"]),
    ] {
        for (key, property) in properties.as_object().unwrap() {
            // Nodes that share a clock master must include it; two nodes have nodes 0 and 1.
            for (end, beyond) in [("minimum", -1.0), ("maximum", 1.0)] {
                let Some(bound) = property.get(end).filter(|_| key != "master") else { continue };
                let refused = |value: Value| {
                    let mut config = roomy.clone();
                    let place = if table.is_empty() { &mut config } else { &mut config[table] };
                    place[key] = value;
                    let Ok(config) = serde_json::from_value::<Config>(config) else { return true };
                    let path = format!("{table}.{key}");
                    let path = path.trim_start_matches('.');
                    let problems = config.plan().err().unwrap_or_default();
                    problems.iter().any(|problem| problem.key == path)
                };
                assert!(!refused(bound.clone()), "{table}.{key} = {bound}");
                let bound = bound.as_f64().unwrap();
                let is_whole = property["type"] == "integer";
                let beyond = if is_whole {
                    json!((bound + beyond) as i64)
                } else {
                    json!(bound + beyond * 1e-9 * bound.max(1.0))
                };
                assert!(refused(beyond.clone()), "{table}.{key} = {beyond}");
                checked += 1;
            }
        }
    }
    assert!(checked >= 14, "{checked}");
}
