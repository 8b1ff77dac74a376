//! Leaves and spines in parts of the network, which exchange messages alone.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use ::rack::topology::{PortId, Topology, Vertex};
use ::rack::{Advance, Class, Completion, Fabric, Flow, FlowId, NodeId, Probe};
use kernel::{Bytes, Span, Stream, Time};
use packets::{Cut, Hop, Network, Orders, Packet, Program, Verdict, surroundings};
use serde_json::{Map, Value};
use transports::dctcp;

use super::Switches;
use crate::network::rack::engine;
use crate::network::{Config, Plan, Transport};

/// Damages every third word of room.
#[derive(Clone)]
struct Damaged {
    switches: Switches,
    heard: u64,
}

impl Program for Damaged {
    const WATCHES_LINES: bool = true;
    const SPEAKS: bool = true;
    const TELLS: bool = true;

    fn arrives(&mut self, hop: &Hop, packet: &mut Packet, orders: &mut Orders) -> Verdict {
        self.switches.arrives(hop, packet, orders)
    }

    fn leaves(&mut self, port: PortId, packet: &Packet, orders: &mut Orders) {
        self.switches.leaves(port, packet, orders);
    }

    fn hears(&mut self, port: PortId, word: u32, orders: &mut Orders) {
        self.heard += 1;
        let damage = if self.heard.is_multiple_of(3) { 1 << 30 } else { 0 };
        self.switches.hears(port, word ^ damage, orders);
    }

    fn wake(&mut self, switch: Vertex, orders: &mut Orders) {
        self.switches.wake(switch, orders);
    }
}

#[derive(Default)]
struct Ends(BTreeMap<u64, Time>);

impl Probe for Ends {
    fn may_pause(&self) -> bool {
        false
    }

    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        self.0.insert(completion.flow.id.get(), completion.end);
        ControlFlow::Continue(())
    }
}

fn plan() -> Plan {
    let mut dctcp = dctcp::Config::default();
    dctcp.stream.handshake = true;
    let transport = Transport::Dctcp(dctcp);
    Config { nodes: 16, leaves: 4, spines: 3, transport, ..Config::default() }.plan().unwrap()
}

fn flows() -> Vec<Flow> {
    let mut stream = Stream::new(8, "test/flows", 0);
    let mut start = Time::ZERO;
    (0..200)
        .map(|id| {
            // Many start at once.
            start += Span::from_us(stream.below(3));
            let src = stream.below(16) as u32;
            Flow {
                id: FlowId::new(id),
                src: NodeId::new(src),
                dst: NodeId::new((src + 1 + stream.below(15) as u32) % 16),
                size: Bytes::new(1 + stream.below(30_000)),
                start,
                class: Class::default(),
            }
        })
        .collect()
}

fn network<P: Program>(
    program: impl FnOnce(&Plan, &Topology) -> P,
) -> Network<impl packets::Transport, P> {
    let plan = plan();
    let Transport::Dctcp(table) = &plan.config.transport else {
        panic!("a transport of this test")
    };
    let engine = engine(&plan);
    let transport = table.build(&surroundings(&engine, 1)).unwrap();
    let program = program(&plan, &engine.topology);
    Network::with_program(engine, transport, program, 1).unwrap()
}

fn carry<P: Program>(
    mut network: Network<impl packets::Transport, P>,
) -> (BTreeMap<u64, Time>, Map<String, Value>) {
    let mut ends = Ends::default();
    network.set_wire(true).unwrap();
    flows().iter().for_each(|flow| network.offer(flow));
    assert_eq!(network.advance(Time::NEVER, &mut ends), Advance::Idle);
    network.check().unwrap();
    (ends.0, network.details())
}

#[test]
fn slow_m50_each_switch_and_each_host_a_part_that_hears_messages_alone_makes_no_difference() {
    let whole = || network(|plan, topology| Switches::new(plan, topology, 1));
    let one = carry(whole());
    assert_eq!(one.0.len(), flows().len());
    let topology = engine(&plan()).topology;
    let cuts = [2, 3, 8].map(|parts| Cut::balanced(&topology, parts));
    for cut in cuts.into_iter().chain([Cut::each(&topology)]) {
        let mut cut_up = whole();
        assert!(cut_up.can_be_cut(&cut));
        cut_up.set_cut(cut.clone(), 2);
        assert!(carry(cut_up) == one, "{cut:?}");
    }
}

#[test]
fn what_makes_no_sense_to_a_leaf_is_counted_and_dropped() {
    let mut ends = Ends::default();
    let mut network =
        network(|plan, topology| Damaged { switches: Switches::new(plan, topology, 1), heard: 0 });
    // Room that is not heard of is lost to its leaf, so that in the end nothing goes on; nothing breaks.
    flows().iter().for_each(|flow| network.offer(flow));
    network.advance(Time::ZERO + Span::from_us(2_000), &mut ends);
    let Damaged { switches, heard } = network.program();
    let unexpected = switches.counts.unexpected;
    assert!(unexpected == heard / 3 && unexpected > 100, "{unexpected}");
}
