//! The scenario, and a short run: shape and order of transports.

use std::ops::ControlFlow;

use serde_json::Value;

use super::slowdowns::{Carried, FIG12, TRANSPORTS, WORKLOADS, carry};
use crate::spread::spread;

#[test]
fn the_scenario_is_the_papers_network_with_the_transports_in_order() {
    let scenario = FIG12.with(&[], 1).unwrap();
    let labels: Vec<_> = scenario.fabrics.iter().map(|choice| choice.label.as_str()).collect();
    assert_eq!(labels, TRANSPORTS);
    for choice in &scenario.fabrics {
        let config = choice.plan.config();
        let found = |key: &str| config.pointer(key).unwrap_or(&Value::Null).clone();
        assert_eq!(found("/nodes"), 144);
        assert_eq!(found("/topology/rate"), "10 Gbps");
        assert_eq!(found("/topology/trunk_rate"), "40 Gbps");
        assert_eq!(found("/load_rate"), "10 Gbps");
        assert_eq!(found("/switch/latency"), "250 ns");
    }
}

/// The shortest half of W1 and W3 in short runs, in which DCTCP's queues are still growing: Homa below
/// the published bound, NDP far above Homa, DCTCP above NDP; and no tenth of the messages beats the idle
/// network.
#[test]
fn short_messages_hardly_notice_a_load_of_four_fifths_under_homa_alone() {
    let jobs: Vec<_> =
        [0, 2].into_iter().flat_map(|workload| [0, 1, 2].map(|by| (workload, by))).collect();
    let mut watch = |_: f64, _: &str| ControlFlow::Continue(());
    let runs = spread(&jobs, &mut watch, |&(workload, by), pulse| {
        carry(WORKLOADS[workload], by, 20_000, 1, pulse)
    });
    for (runs, workload) in runs.unwrap().chunks(TRANSPORTS.len()).zip(["W1", "W3"]) {
        let p99 = |index: usize| runs[index].by_size.half.p99;
        let (homa, ndp, dctcp) = (p99(0), p99(1), p99(2));
        assert!(homa < 2.2, "{workload}: {homa}");
        assert!(ndp > 2.0 * homa && dctcp > ndp, "{workload}: {homa}, {ndp}, {dctcp}");
        let is_fair = |run: &Carried| run.by_size.tenths.iter().all(|tenth| tenth.median >= 1.0);
        assert!(runs.iter().all(is_fair), "{workload}");
    }
}
