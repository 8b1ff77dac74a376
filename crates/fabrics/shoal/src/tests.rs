//! The rack as a whole against closed forms.

use std::ops::ControlFlow;

use kernel::{Bytes, Span, Time};
use rack::{Class, Completion, Fabric, Flow, FlowId, NodeId, Probe};

use crate::config::{Config, Feedback};
use crate::rack::Rack;
use crate::schedule::Order;

/// Keeps every completion.
#[derive(Default)]
struct Ends(Vec<(u64, Time, Span, Vec<Span>)>);

impl Probe for Ends {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        let Completion { flow, end, ideal, stages } = *completion;
        self.0.push((flow.id.get(), end, ideal, stages.to_vec()));
        ControlFlow::Continue(())
    }
}

fn flow(id: u64, src: u32, dst: u32, size: u64, start: Time) -> Flow {
    Flow {
        id: FlowId::new(id),
        src: NodeId::new(src),
        dst: NodeId::new(dst),
        size: Bytes::new(size),
        start,
        class: Class::new(0),
    }
}

/// Cells of 56 B, a packet each, so that a flow of `54 n` bytes is `n` cells.
fn config(nodes: u32, channels: u32) -> Config {
    Config { nodes, channels, packet: Bytes::new(54), ..Config::default() }
}

/// Share of the slots in which each of the flows of a permutation among `pairs` nodes delivers.
fn permutation_rate(config: Config, pairs: u32, cells: u64) -> f64 {
    let slots = config.plan().unwrap().schedule.slots();
    let (nodes, channels, slot) = (config.nodes, config.channels, config.slot);
    let mut rack = Rack::new(config.plan().unwrap());
    for node in 0..pairs {
        let dst = if pairs == 1 { nodes / 3 } else { (node + 1) % pairs };
        rack.offer(&flow(u64::from(node), node, dst, 54 * cells, Time::ZERO));
    }
    let mut ends = Ends::default();
    rack.advance(Time::NEVER, &mut ends);
    assert_eq!(ends.0.len(), pairs as usize);
    let last = ends.0.iter().map(|end| end.1).max().unwrap();
    // Filling and draining take about two epochs: not part of the rate.
    let edge = slot * u64::from(2 * slots + 60);
    let seconds = ((last - Time::ZERO) - edge).as_seconds();
    cells as f64 * slot.as_seconds() / seconds / f64::from(channels)
}

#[test]
fn s70_permutations_get_the_rate_of_the_closed_form() {
    // N nodes, P of which exchange flows: (N - P/2) / (N - 1) of the slots; 1 for one flow.
    for (nodes, channels, pairs, expected) in [
        (64, 1, 1, 1.0),
        (64, 1, 64, 64.0 / 126.0),
        (64, 1, 32, 48.0 / 63.0),
        (128, 4, 128, 128.0 / 254.0),
        (128, 4, 1, 1.0),
        (65, 1, 65, 65.0 / 128.0),
    ] {
        let config = Config {
            wire_latency: Span::ZERO,
            switch_latency: Span::ZERO,
            nic_latency: Span::ZERO,
            ..config(nodes, channels)
        };
        let rate = permutation_rate(config, pairs, 20_000);
        let ratio = rate / expected;
        println!("{nodes} {pairs}: {rate} {expected} {ratio}");
        assert!((0.96..1.03).contains(&ratio), "{nodes} nodes, {pairs} flows: {rate}, {expected}");
    }
}

#[test]
fn quick() {
    let config = Config { ..config(512, 4) };
    for pairs in [1, 256, 512] {
        let t = std::time::Instant::now();
        let rate = permutation_rate(config.clone(), pairs, 20_000);
        println!("{pairs} rate {rate} {:?}", t.elapsed());
        let _ = (Feedback::PhaseExact, Order::Cyclic);
    }
}
