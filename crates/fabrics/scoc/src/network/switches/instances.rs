//! Leaves and spines as instances, each with the state of one switch, which exchange bytes alone.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use ::rack::topology::{PortId, Topology, Vertex};
use ::rack::{Advance, Class, Completion, Fabric, Flow, FlowId, NodeId, Probe};
use kernel::{Bytes, Span, Stream, Time};
use packets::{Hop, Network, Orders, Packet, Program, Verdict, surroundings};
use transports::dctcp;

use super::Switches;
use crate::network::rack::engine;
use crate::network::{Config, Plan, Transport};

/// An instance for each switch. Each is asked for its own switch alone, so that the state that it has of
/// others is never used; what spines tell leaves of room is handed over as bytes.
#[derive(Clone)]
struct Instances {
    hosts: usize,
    owners: Vec<Vertex>,
    all: Vec<Switches>,
    /// Every third word of room is damaged, in a test of what makes no sense.
    damages: bool,
    heard: usize,
}

impl Instances {
    fn new(plan: &Plan, topology: &Topology) -> Self {
        let hosts = plan.config.nodes as usize;
        let switches = (plan.config.leaves + plan.config.spines) as usize;
        Self {
            hosts,
            owners: topology.ports().iter().map(|port| port.vertex).collect(),
            all: (0..switches).map(|_| Switches::new(plan, topology, 1)).collect(),
            damages: false,
            heard: 0,
        }
    }

    fn of(&mut self, switch: Vertex) -> &mut Switches {
        &mut self.all[switch.index() - self.hosts]
    }

    /// Hands what a spine told to the leaves that it is for.
    fn hand_over(&mut self, from: Vertex, orders: &mut Orders) {
        for mut told in std::mem::take(&mut self.of(from).told) {
            self.heard += 1;
            if self.damages && self.heard.is_multiple_of(3) {
                told.bytes[0] = 7;
            }
            let leaf = self.of(from).layout.leaf_vertex(usize::from(told.leaf));
            self.of(leaf).bring(told, orders);
        }
    }
}

impl Program for Instances {
    const WATCHES_LINES: bool = true;
    const SPEAKS: bool = true;

    fn arrives(&mut self, hop: &Hop, packet: &mut Packet, orders: &mut Orders) -> Verdict {
        let verdict = self.of(hop.switch).arrive(hop, packet, orders);
        self.hand_over(hop.switch, orders);
        verdict
    }

    fn leaves(&mut self, port: PortId, packet: &Packet, orders: &mut Orders) {
        let owner = self.owners[port.index()];
        self.of(owner).leaves(port, packet, orders);
    }

    fn wake(&mut self, switch: Vertex, orders: &mut Orders) {
        self.of(switch).act(switch, orders);
        self.hand_over(switch, orders);
    }
}

#[derive(Default)]
struct Ends(BTreeMap<u64, Time>);

impl Probe for Ends {
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

fn carry<P: Program>(mut network: Network<impl packets::Transport, P>) -> BTreeMap<u64, Time> {
    let mut ends = Ends::default();
    network.set_wire(true).unwrap();
    flows().iter().for_each(|flow| network.offer(flow));
    assert_eq!(network.advance(Time::NEVER, &mut ends), Advance::Idle);
    network.check().unwrap();
    ends.0
}

#[test]
fn m50_each_switch_an_instance_that_hears_bytes_alone_makes_no_difference() {
    let one = carry(network(|plan, topology| Switches::new(plan, topology, 1)));
    assert_eq!(one.len(), flows().len());
    assert_eq!(carry(network(Instances::new)), one);
}

#[test]
fn what_makes_no_sense_to_a_leaf_is_counted_and_dropped() {
    let program = |plan: &Plan, topology: &Topology| Instances {
        damages: true,
        ..Instances::new(plan, topology)
    };
    let mut ends = Ends::default();
    let mut network = network(program);
    // Room that is not heard of is lost to its leaf, so that in the end nothing goes on; nothing breaks.
    flows().iter().for_each(|flow| network.offer(flow));
    network.advance(Time::ZERO + Span::from_us(2_000), &mut ends);
    let instances = network.program();
    let unexpected: u64 = instances.all.iter().map(|one| one.counts.unexpected).sum();
    assert!(unexpected as usize == instances.heard / 3 && unexpected > 100, "{unexpected}");
}
