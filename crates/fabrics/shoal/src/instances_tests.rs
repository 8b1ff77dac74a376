//! Nodes that are instances of their own and exchange nothing but bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::{Bytes, Stream, Time};
use rack::Flow;
use rack::shards::{NEVER, Outbox, Shard as _};

use crate::config::{Config, PairOrder, Plan};
use crate::messages::What;
use crate::shard::{Passing, Shard};
use crate::tests::flow;
use crate::wire::{Codec, Malformed};

/// A cell on a wire: when it arrives, at which node on which channel, and its bytes.
type Wire = (u64, u32, u32, Vec<u8>);

impl Shard {
    /// Who sends to a node on a channel in a slot.
    fn heard_from(&self, slot: u64, channel: u32, node: u32) -> Option<u32> {
        let position = self.now_of(slot).position + channel;
        let schedule = &self.plan.schedule;
        (0..schedule.nodes()).find(|&from| schedule.peer(from, position) == Some(node))
    }

    /// A cell has come in on a wire of a node.
    fn hear_bytes(
        &mut self,
        codec: &Codec,
        (at, channel, node): (u64, u32, u32),
        bytes: &[u8],
    ) -> Result<(), Malformed> {
        let sent = at - u64::from(self.plan.delay_slots);
        let from = self.heard_from(sent, channel, node).expect("somebody sends to it");
        match codec.decode(bytes, (from, node)) {
            Ok(frame) => self.flight.add(at, channel, frame),
            Err(problem) => {
                self.unexpected += 1;
                return Err(problem);
            }
        }
        Ok(())
    }

    /// What a node has put on its wires, as bytes.
    fn sent_bytes(codec: &Codec, now: u64, out: &mut Outbox<Passing>) -> Vec<Wire> {
        let wire = |(to, Passing { frame, slot, channel }): (usize, Passing)| {
            let mut bytes = Vec::new();
            codec.encode(&frame, &mut bytes);
            let at = now + u64::from(slot.wrapping_sub(now as u32));
            (at, to as u32, channel, bytes)
        };
        out.drain().map(wire).collect()
    }
}

/// Instances of a node each, and the wires between them.
struct Instances {
    plan: Arc<Plan>,
    codec: Codec,
    nodes: Vec<Shard>,
    wires: Vec<Wire>,
    cells: u64,
}

impl Instances {
    fn new(config: &Config) -> Self {
        let plan = Arc::new(config.plan().unwrap());
        let count = config.nodes as usize;
        let nodes = (0..count).map(|node| Shard::new(&plan, (node, count), 1)).collect();
        let codec = Codec::new(config).unwrap();
        Self { plan, codec, nodes, wires: Vec::new(), cells: 0 }
    }

    /// Lets a slot pass. Gives the handles of the flows that have arrived whole, and where.
    fn step(&mut self, slot: u64) -> Vec<(u32, u32)> {
        let mut whole = Vec::new();
        let (due, rest) = std::mem::take(&mut self.wires).into_iter().partition(|w| w.0 == slot);
        self.wires = rest;
        for (at, node, channel, bytes) in due {
            self.nodes[node as usize].hear_bytes(&self.codec, (at, channel, node), &bytes).unwrap();
        }
        for (index, node) in (0..).zip(&mut self.nodes) {
            let mut out = Outbox::new(self.plan.config.nodes as usize);
            // What arrives in the slot, and what is sent in it.
            node.run(2 * slot + 2, &mut out);
            for (at, to, channel, bytes) in Shard::sent_bytes(&self.codec, slot, &mut out) {
                assert_ne!(to, index);
                self.cells += 1;
                self.wires.push((at, to, channel, bytes));
            }
            let mut reports = Vec::new();
            node.report(&mut reports);
            for report in reports {
                if let What::Whole { .. } = report.what {
                    whole.push((report.handle, index));
                }
            }
        }
        whole
    }
}

#[test]
fn s20_nodes_that_exchange_bytes_alone_carry_a_hundred_flows() {
    let eight = Config { nodes: 8, ..Config::default() };
    for config in [
        eight.clone(),
        Config { channels: 1, classes: 2, pair_order: PairOrder::Fifo, ..eight.clone() },
        Config {
            channels: 2,
            packet: Bytes::new(300),
            ready_queue: false,
            feedback_counts_ready: false,
            ..eight
        },
    ] {
        let mut draw = Stream::new(3, "test", 0);
        let flows: Vec<Flow> = (0..100)
            .map(|id| {
                let src = draw.below(8) as u32;
                let dst = (src + 1 + draw.below(7) as u32) % 8;
                flow(id, src, dst, 1 + draw.below(9_000), Time::ZERO)
            })
            .collect();
        let mut instances = Instances::new(&config);
        let mut arrived = BTreeMap::new();
        for slot in 0..40_000 {
            // A flow every few slots; its source alone is told.
            if let Some(flow) = flows.get(slot as usize / 3).filter(|_| slot % 3 == 0) {
                let source = &mut instances.nodes[flow.src.get() as usize];
                source.catch_up();
                source.offer(flow, flow.id.get() as u32);
            }
            for (handle, node) in instances.step(slot) {
                assert_eq!(arrived.insert(handle, node), None, "flow {handle} ends once");
            }
        }
        let wanted: BTreeMap<_, _> =
            flows.iter().map(|flow| (flow.id.get() as u32, flow.dst.get())).collect();
        assert_eq!(arrived, wanted);
        let plan = &instances.plan;
        let least: u64 = flows.iter().map(|flow| plan.cells.cells(flow.size)).sum();
        assert!(instances.cells > least, "{} cells of {least}", instances.cells);
        assert!(instances.nodes.iter().all(|node| node.unexpected == 0 && node.next() == NEVER));
    }
}

#[test]
fn bytes_that_make_no_sense_are_counted_and_dropped() {
    let config = Config { nodes: 8, ..Config::default() };
    let mut instances = Instances::new(&config);
    let mut draw = Stream::new(4, "test", 0);
    let (mut malformed, mut taken) = (0, 0);
    let from = flow(0, 2, 5, 100_000, Time::ZERO);
    instances.nodes[2].offer(&from, 0);
    for slot in 0..2_000 {
        // In each slot node 5 hears noise, and now and then a cell that no node sent, of a flow that there is
        // not.
        let delay = u64::from(instances.plan.delay_slots);
        if slot > delay {
            for channel in 0..config.channels {
                let mut bytes: Vec<u8> = (0..64).map(|_| draw.below(256) as u8).collect();
                let node = &mut instances.nodes[5];
                let Some(sender) = node.heard_from(slot - delay, channel, 5) else { continue };
                if draw.below(4) == 0 && sender != 2 {
                    let sequence = draw.below(1 << 32) as u32;
                    let cell = crate::cell::Cell::data(sender, draw.below(8) as u32, 0, sequence);
                    let frame = crate::cell::Frame {
                        cell,
                        payload: draw.below(1 << 32) as u32,
                        feedback: draw.below(16) as u16,
                        ..crate::cell::Frame::empty(sender, 5)
                    };
                    instances.codec.encode(&frame, &mut bytes);
                }
                match node.hear_bytes(&instances.codec, (slot, channel, 5), &bytes) {
                    Ok(()) => taken += 1,
                    Err(Malformed::Header | Malformed::Payload | Malformed::Length) => {
                        malformed += 1
                    }
                }
            }
        }
        instances.step(slot);
    }
    let node = &instances.nodes[5];
    assert_eq!(node.unexpected, malformed);
    assert!(malformed > 1_000 && taken > 100, "{malformed} {taken}");
    // Of the cells for itself some have numbers that no cell can have now.
    assert!(node.messages.receivers.strays > 5, "{}", node.messages.receivers.strays);
}
