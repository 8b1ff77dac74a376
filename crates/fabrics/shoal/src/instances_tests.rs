//! Nodes that are instances of their own and exchange nothing but bytes.

use std::collections::BTreeMap;

use kernel::{Bytes, Span, Stream, Time};
use rack::shards::{NEVER, Outbox, Shard as _};
use rack::{Component, Fabric, Failure, Fault, Flow, NodeId};

use crate::cell::{Cell, Frame};
use crate::config::{Config, PairOrder, Plan, Transport};
use crate::instance::{End, How, Instance, Message, instances};
use crate::rack::Rack;
use crate::tests::{Ends, flow};
use crate::wire::Codec;

/// Instances of a node each, and the wires between them.
struct Instances {
    plan: Plan,
    nodes: Vec<Instance>,
    /// Encoded messages, and when they arrive.
    wires: Vec<(u64, Vec<u8>)>,
    cells: u64,
    /// One of so many cells has a bit flipped on its way.
    damages: Option<(u64, Stream)>,
    damaged: u64,
    /// Flows by what cells carried of them: bytes, each once however often it was sent.
    carried: BTreeMap<(u32, Bytes), Bytes>,
}

impl Instances {
    fn new(config: &Config) -> Self {
        Self::of(config.plan().unwrap())
    }

    fn of(plan: Plan) -> Self {
        let nodes = instances(&plan, 1).unwrap();
        let (wires, carried) = (Vec::new(), BTreeMap::new());
        Self { plan, nodes, wires, cells: 0, damages: None, damaged: 0, carried }
    }

    /// Lets a slot pass. Gives the flows that have arrived, where and with how many cells; none fails.
    fn step(&mut self, slot: u64) -> Vec<(u32, u32, u64)> {
        let whole = |(index, end): (u32, End)| match end.how {
            How::Arrived { cells } => (end.flow, index, cells),
            _ => panic!("{end:?}"),
        };
        self.ends_of(slot).into_iter().map(whole).collect()
    }

    /// Lets a slot pass. Gives the ends of flows, and where.
    fn ends_of(&mut self, slot: u64) -> Vec<(u32, End)> {
        let mut all = Vec::new();
        let (due, rest) =
            std::mem::take(&mut self.wires).into_iter().partition(|w| w.0 <= 2 * slot);
        self.wires = rest;
        for (_, bytes) in due {
            let message = Message::decode(&bytes).unwrap();
            self.nodes[message.to as usize].take(&mut vec![message]);
        }
        for (index, node) in (0..).zip(&mut self.nodes) {
            let mut out = Outbox::new(self.plan.config.nodes as usize);
            // What arrives in the slot, and what is sent in it.
            node.run(2 * slot + 2, &mut out);
            for (to, mut message) in out.drain() {
                assert!(to as u32 == message.to && to as u32 != index);
                if let Some(payload) = node.payload(&message) {
                    self.carried.insert((payload.flow, payload.offset), payload.length);
                }
                self.cells += 1;
                if let Some((one_of, draw)) = &mut self.damages
                    && draw.below(*one_of) == 0
                {
                    let bit = draw.below(8 * message.cell.len() as u64) as usize;
                    message.cell[bit / 8] ^= 1 << (bit % 8);
                    self.damaged += 1;
                }
                self.wires.push((message.at, message.encode()));
            }
            let mut ends = Vec::new();
            node.report(&mut ends);
            all.extend(ends.into_iter().map(|end| (index, end)));
        }
        all
    }

    /// Lets flows arrive, one every few slots; each source alone is told of its own. All bytes of all arrive.
    fn carry(&mut self, flows: &[Flow], slots: u64) {
        let mut arrived = BTreeMap::new();
        for slot in 0..slots {
            if let Some(flow) = flows.get(slot as usize / 3).filter(|_| slot % 3 == 0) {
                self.nodes[flow.src.get() as usize].offer(flow, flow.id.get() as u32);
            }
            for (handle, node, cells) in self.step(slot) {
                assert_eq!(arrived.insert(handle, (node, cells)), None, "flow {handle} ends once");
            }
        }
        let wanted = |flow: &Flow| {
            (flow.id.get() as u32, (flow.dst.get(), self.plan.cells.cells(flow.size)))
        };
        assert_eq!(arrived, flows.iter().map(wanted).collect());
        for flow in flows {
            let id = flow.id.get() as u32;
            let all = self.carried.range((id, Bytes::ZERO)..(id + 1, Bytes::ZERO));
            let end = all.fold(Bytes::ZERO, |end, (&(_, offset), &length)| {
                assert_eq!(offset, end, "{flow:?}");
                offset + length
            });
            assert_eq!(end, flow.size);
        }
    }
}

fn flows(seed: u64) -> Vec<Flow> {
    let mut draw = Stream::new(seed, "test", 0);
    let flow = |id| {
        let src = draw.below(8) as u32;
        let dst = (src + 1 + draw.below(7) as u32) % 8;
        flow(id, src, dst, 1 + draw.below(9_000), Time::ZERO)
    };
    (0..100).map(flow).collect()
}

fn racks() -> [Config; 3] {
    let eight = Config { nodes: 8, ..Config::default() };
    [
        eight.clone(),
        Config { channels: 1, classes: 2, pair_order: PairOrder::Fifo, ..eight.clone() },
        Config {
            channels: 2,
            packet: Bytes::new(300),
            ready_queue: false,
            feedback_counts_ready: false,
            ..eight
        },
    ]
}

#[test]
fn s20_nodes_that_exchange_bytes_alone_carry_a_hundred_flows() {
    for config in racks() {
        let mut instances = Instances::new(&config);
        let flows = flows(3);
        instances.carry(&flows, 40_000);
        let least: u64 = flows.iter().map(|flow| instances.plan.cells.cells(flow.size)).sum();
        assert!(instances.cells > least, "{} cells of {least}", instances.cells);
        assert!(instances.nodes.iter().all(|node| node.unexpected() == 0 && node.next() == NEVER));
    }
}

/// Appendix D and the transport: whatever bits are flipped on the way.
#[test]
fn s84_s96_with_a_tenth_of_the_cells_damaged_every_byte_arrives() {
    for config in racks() {
        let config = Config { transport: Transport::Reliable, ..config };
        let mut instances = Instances::new(&config);
        instances.damages = Some((10, Stream::new(9, "test", 1)));
        instances.carry(&flows(4), 60_000);
        let (damaged, cells) = (instances.damaged, instances.cells);
        assert!(damaged > cells / 12 && damaged < cells / 8, "{damaged} of {cells}");
        let unexpected = instances.nodes.iter().map(Instance::unexpected).sum::<u64>();
        assert_eq!(unexpected, 0);
    }
}

/// Parts fail and come back. Nodes that exchange every cell as bytes miss those that do not come; in the simulator
/// cells that say nothing new are not there at all. Flows end at the same times for the same reasons.
#[test]
fn slow_s91_s95_nodes_that_miss_cells_do_as_the_simulator_s() {
    let us = |count| Time::ZERO + Span::from_us(count);
    let outage = |component, at, until| Fault { component, at: us(at), until };
    let node = |node| Component::Node(NodeId::new(node));
    let eight = Config { nodes: 8, radix: 4, reintegration_epochs: 2, ..Config::default() };
    let soon = Some(us(5) + Span::from_ns(30));
    let update = Span::from_us(3);
    for (config, faults) in [
        (eight.clone(), vec![outage(node(3), 5, None)]),
        (eight.clone(), vec![outage(node(3), 5, Some(us(9))), outage(node(0), 12, Some(us(30)))]),
        (
            eight.clone(),
            vec![outage(Component::Spine(1), 6, Some(us(14))), outage(node(3), 5, soon)],
        ),
        (Config { channels: 1, ..eight.clone() }, vec![outage(Component::Leaf(1), 6, Some(us(8)))]),
        (
            Config { schedule_oracle_after: update, ..eight },
            vec![outage(node(6), 4, None), outage(node(1), 6, Some(us(20)))],
        ),
    ] {
        let plan = config.plan().unwrap().with_faults(&faults).unwrap();
        let start = |index: usize| Time::ZERO + config.slot * (12 * index as u64);
        let starting = |(index, flow): (usize, Flow)| Flow { start: start(index), ..flow };
        let flows: Vec<_> = flows(6).into_iter().enumerate().map(starting).collect();
        let (mut rack, mut ends) = (Rack::new(plan.clone(), 1), Ends::default());
        for flow in &flows {
            rack.advance(flow.start, &mut ends);
            rack.offer(flow);
        }
        rack.advance(us(400), &mut ends);
        let completed = ends.0.iter().map(|end| (end.0 as u32, (end.1, None)));
        let failed = ends.1.iter().map(|end| (end.0 as u32, (end.1, Some(end.2))));
        let expected: BTreeMap<_, _> = completed.chain(failed).collect();
        assert_eq!(expected.len(), flows.len(), "{faults:?}");
        let mut instances = Instances::of(plan);
        let mut seen = BTreeMap::new();
        for slot in 0..rack.slot_from(us(400)) {
            for flow in flows.iter().filter(|flow| rack.slot_from(flow.start) == slot) {
                instances.nodes[flow.src.get() as usize].offer(flow, flow.id.get() as u32);
            }
            for (_, end) in instances.ends_of(slot) {
                let why = match end.how {
                    How::Arrived { .. } => None,
                    How::SourceDied => Some(Failure::SourceDied),
                    How::GivenUp => Some(Failure::DestinationDied),
                    How::Lost => Some(Failure::PacketsLost),
                };
                let at = Time::from_ps(end.at);
                // Of two ends the first counts.
                let first = seen.entry(end.flow).or_insert((at, why));
                if at < first.0 {
                    *first = (at, why);
                }
            }
        }
        assert_eq!(seen, expected, "{faults:?}");
        assert!(ends.1.len() > 1 || faults.len() == 1, "{:?}: {faults:?}", ends.1);
        // Cells of an earlier life of a pair; what was on its way as the schedule changed comes on top.
        let unexpected: u64 = instances.nodes.iter().map(Instance::unexpected).sum();
        let has_update = config.schedule_oracle_after > Span::ZERO;
        assert!(unexpected == rack.unexpected() || has_update, "{unexpected}: {faults:?}");
    }
}

#[test]
fn bytes_that_make_no_sense_are_counted_and_dropped() {
    let config = Config { nodes: 8, ..Config::default() };
    let mut instances = Instances::new(&config);
    let codec = Codec::new(&config).unwrap();
    let mut draw = Stream::new(4, "test", 0);
    let from = flow(0, 2, 5, 100_000, Time::ZERO);
    instances.nodes[2].offer(&from, 0);
    let delay = u64::from(instances.plan.delay_slots);
    let mut noise = 0;
    for slot in 0..2_000 {
        // In each slot node 5 hears noise, and now and then a cell that no node sent, of a flow that there is
        // not.
        for channel in 0..if slot > delay { config.channels } else { 0 } {
            let mut cell: Vec<u8> = (0..64).map(|_| draw.below(256) as u8).collect();
            let sender = (0..8).find(|&from| {
                let phase = ((slot - delay) % u64::from(instances.plan.schedule.slots())) as u32;
                let position = phase * config.channels + channel;
                instances.plan.schedule.peer(from, position) == Some(5)
            });
            if let Some(sender) = sender.filter(|&sender| sender != 2 && draw.below(4) == 0) {
                let sequence = draw.below(1 << 32) as u32;
                let frame = Frame {
                    cell: Cell::data(sender, draw.below(8) as u32, 0, sequence),
                    payload: draw.below(1 << 32) as u32,
                    feedback: draw.below(16) as u16,
                    ..Frame::empty(sender, 5)
                };
                codec.encode(&frame, None, &mut cell);
            } else {
                noise += 1;
            }
            let message = Message { to: 5, at: 2 * slot, channel, cell };
            instances.nodes[5].take(&mut vec![message]);
        }
        instances.step(slot);
    }
    let node = &instances.nodes[5];
    // Nearly all noise fails the checksum; of the cells for itself some have numbers that no cell can have now.
    assert!(node.unexpected() > noise * 9 / 10 && noise > 1_000, "{} {noise}", node.unexpected());
    assert_eq!(Message::decode(&[0; 15]), None);
}
