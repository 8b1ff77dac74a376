//! What the paper leaves open (part E of our reading): each choice is a key with its default, or there is a reason why it
//! is none.

use serde_json::{Value, json};

use super::*;

/// How a choice can be made otherwise.
enum Ours {
    /// By these keys, whose defaults are these.
    Keys(&'static [(&'static str, &'static str)]),
    /// Not by a key of a Clique.
    NoKey(&'static str),
}

use Ours::{Keys, NoKey};

/// All of them, in order.
const CHOICES: [(u8, Ours); 61] = [
    (1, Keys(&[("switch.iterations", "2")])),
    (2, Keys(&[("switch.speedup", "2.0")])),
    (
        3,
        Keys(&[
            ("link.local_buffer", "\"1.28 KB\""),
            ("link.global_buffer", "\"5.12 KB\""),
            ("switch.terminal_buffer", "\"1.28 KB\""),
        ]),
    ),
    // 16 cells and not four: §2's uniform traffic is carried so.
    (4, Keys(&[("switch.output_queue", "\"2.56 KB\""), ("switch.terminal_queue", "\"1.28 KB\"")])),
    (
        5,
        Keys(&[
            ("link.update_after", "\"320 B\""),
            ("link.update_timer", "\"200 ns\""),
            ("link.refresh", "\"100 us\""),
        ]),
    ),
    (6, Keys(&[("link.local_rate", "\"25 Gbps\""), ("link.global_rate", "\"25 Gbps\"")])),
    (7, Keys(&[("link.start_of_cell", "\"0 B\"")])),
    (8, Keys(&[("switch.terminal_rate", "\"50 Gbps\"")])),
    (9, Keys(&[("local_wiring", "\"card-mate\"")])),
    (10, NoKey("any wiring that gives each two pods as many links is like any other")),
    (11, Keys(&[("fibres", "\"grid\"")])),
    (12, Keys(&[("turns", "\"p1\"")])),
    (13, NoKey("tables by input port tell no more than one local hop before")),
    (14, NoKey("the other way has a circle of channels that wait for each other")),
    // 8 cells and not one, as of 4.
    (15, Keys(&[("switch.detour_weight", "2.0"), ("switch.detour_bias", "\"1.28 KB\"")])),
    (16, Keys(&[("switch.draw_again", "\"50 ns\"")])),
    (17, NoKey("any hash that differs from TiN to TiN is like any other")),
    (18, Keys(&[("classes.requests.mode", ""), ("classes.bulk_requests.mode", "")])),
    (19, Keys(&[("classes.data.mode", ""), ("ip.class_of_service", "1")])),
    (20, NoKey("what needs an escape has no other way: without escapes it would be lost")),
    (21, Keys(&[("switch.at_dead_link", "\"flush\"")])),
    (22, Keys(&[("ip.data_header", "\"4 B\"")])),
    (23, NoKey("fields of a layout; requests have no room for others")),
    (24, Keys(&[("ip.order", "\"source\"")])),
    (25, Keys(&[("ip.ingress_buffer", "\"2.097152 MB\""), ("ip.ingress_share", "1.0")])),
    (26, Keys(&[("ip.egress_buffer", "\"262.144 KB\"")])),
    (27, Keys(&[("ip.window", "\"65.536 KB\"")])),
    (28, Keys(&[("ip.burst", "2"), ("ip.weights", "[1,1,1,1,1,1,1]")])),
    (29, Keys(&[("ip.drop_above", "1024"), ("ip.mark_above", "64"), ("ip.queue_limit", "2048")])),
    (30, Keys(&[("ip.request_timeout", "\"10 ms\""), ("ip.reassembly_timeout", "\"1 ms\"")])),
    (31, Keys(&[("ip.mtu", "\"4.16 KB\"")])),
    (32, Keys(&[("ip.sharing", "\"packets\"")])),
    (
        33,
        Keys(&[
            ("rma.pcie.doorbell", "\"250 ns\""),
            ("rma.pcie.read", "\"600 ns\""),
            ("rma.pcie.completion", "\"350 ns\""),
            ("rma.pcie.rate", "\"104 Gbps\""),
        ]),
    ),
    (34, Keys(&[("rma.payload", "\"128 B\""), ("rma.tag", "\"16 B\"")])),
    (
        35,
        Keys(&[
            ("rma.window", "\"65.536 KB\""),
            ("rma.slots", "512"),
            ("rma.deadline", "\"1 ms\""),
        ]),
    ),
    (
        36,
        Keys(&[
            ("rma.request_gap", "\"10 ns\""),
            ("rma.request_time", "\"100 ns\""),
            ("rma.landing_time", "\"50 ns\""),
        ]),
    ),
    (37, Keys(&[("rma.software.target", "\"10 us\""), ("rma.software.beta", "0.8")])),
    (38, Keys(&[("host.preset", "")])),
    (39, Keys(&[("transport.beta", "")])),
    (40, Keys(&[("rma.power.after", "\"20 us\""), ("rma.power.exit", "\"8 us\"")])),
    (41, NoKey("of an application on remote memory, not of a Clique: hosts::clique_map::Settings")),
    (42, NoKey("another fabric: keys of packet-switched, reproductions/aquila/ethernet.toml")),
    (43, Keys(&[("placement", "\"even\""), ("nodes", "")])),
    (44, NoKey("results have the median, 99 % and 99.9 %")),
    (45, NoKey("of the control plane")),
    (46, NoKey("of the control plane")),
    (47, NoKey("of the control plane")),
    (48, NoKey("of the control plane")),
    (49, Keys(&[("outside.ports", "0")])),
    (50, NoKey("counts of the control plane")),
    (51, NoKey("of the control plane")),
    (52, NoKey("of the control plane")),
    (53, Keys(&[("link.local_bit_error_rate", "0.0"), ("link.global_bit_error_rate", "0.0")])),
    (54, Keys(&[("timesync.threshold", "\"50 ns\"")])),
    (55, Keys(&[("trace.one_in", "10000"), ("trace.records_per_second", "10000")])),
    (56, Keys(&[("ip.early_requests", "true")])),
    (57, Keys(&[("classes.bulk_data.weight", ""), ("classes.data.level", "")])),
    (58, Keys(&[("ip.depth", "\"requests\"")])),
    (59, NoKey("a layout of cells")),
    (60, Keys(&[("switch.hops", "16")])),
    (61, Keys(&[("outside.delay", "\"14 us\""), ("outside.rate", "\"100 Gbps\"")])),
];

/// The value of a key in a configuration with nothing left open.
fn value<'a>(config: &'a Value, key: &str) -> Option<&'a Value> {
    config.pointer(&format!("/{}", key.replace('.', "/")))
}

/// Whether a configuration may have a key: one of the right name is refused for its value alone.
fn is_known(key: &str) -> bool {
    let wrong = json!([[[]]]);
    let config = key.rsplit('.').fold(wrong, |below, name| json!({ name: below }));
    // A transport is known by its kind.
    let config = match key.strip_prefix("transport.") {
        Some(name) => json!({ "transport": { "kind": "swift", name: [[[]]] } }),
        None => config,
    };
    let refused = serde_json::from_value::<Config>(config).expect_err("it is no value of any key");
    !refused.to_string().contains("unknown field")
}

#[test]
fn each_choice_is_a_key_with_its_default_or_has_a_reason() {
    let config = Config::default().plan().unwrap().config;
    let config = serde_json::to_value(&config).unwrap();
    for (at, (number, ours)) in (1..).zip(&CHOICES) {
        assert_eq!(*number, at, "choices stand in order");
        match ours {
            NoKey(why) => assert!(!why.is_empty(), "U{number:02}: no reason"),
            Keys(keys) => {
                for (key, default) in *keys {
                    assert!(is_known(key), "U{number:02}: there is no {key}");
                    let found = value(&config, key).map(Value::to_string);
                    let is_shown = !default.is_empty();
                    let expected = is_shown.then(|| (*default).to_string());
                    assert!(!is_shown || found == expected, "U{number:02}: {key} is {found:?}");
                }
            }
        }
    }
    assert!(!is_known("ip.depht") && !is_known("transport.batea"), "this test can fail");
}
