//! The clocked ideal as the switch of a network, against the engine's own output-queued switch.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use ::rack::topology::{PortId, Shape, SingleSwitch, Vertex};
use ::rack::{Class, Completion, Fabric, Flow, FlowId, NodeId, Probe};
use kernel::{Bytes, Calendar, Rate, Span, Stream, Time};
use packets::config::Queues;
use packets::{Handle, Hop, Network, Orders, Packet, Program, Verdict, surroundings};
use switching::{Line, Ticks};
use transports::raw;

use super::spine::Clocked;
use crate::config::SwitchPlan;

const NODES: u32 = 12;
const LATENCY: Span = Span::from_ns(100);

/// One clocked switch as the only switch of a network.
#[derive(Clone)]
struct OneSwitch {
    switch: Clocked,
    ports: Vec<PortId>,
    handles: Vec<Option<Handle>>,
    agenda: Calendar<Option<(Handle, PortId)>>,
}

impl OneSwitch {
    fn place(&self, port: PortId) -> usize {
        self.ports.iter().position(|&own| own == port).unwrap()
    }
}

impl Program for OneSwitch {
    fn arrives(&mut self, hop: &Hop, packet: &mut Packet, orders: &mut Orders) -> Verdict {
        let number = hop.handle.get() as usize;
        self.handles.resize(self.handles.len().max(number + 1), None);
        self.handles[number] = Some(hop.handle);
        let (from, to) = (self.place(hop.from), self.place(hop.to));
        let mut inside = switching::Packet::new(from, to, packet.size(), Ticks::default());
        inside.tag = hop.handle.get();
        if let Some(at) = self.switch.admit(inside, orders.now(), orders.now()) {
            self.agenda.push(at, None);
            orders.wake_at(hop.switch, at);
        }
        Verdict::Keep
    }

    fn wake(&mut self, switch: Vertex, orders: &mut Orders) {
        while let Some((now, task)) = self.agenda.pop_before(orders.now() + Span::from_ps(1)) {
            if let Some((handle, port)) = task {
                orders.emit(handle, port);
                continue;
            }
            let next = self.switch.step();
            let left = self.switch.departures().iter().map(|departure| {
                let handle = self.handles[departure.packet.tag as usize].unwrap();
                let port = self.ports[usize::from(departure.packet.destination)];
                let at = self.switch.time(departure.at) + LATENCY;
                assert!(at >= now, "a departure of the past");
                (at, Some((handle, port)))
            });
            for (at, task) in left.chain(next.map(|at| (at, None))) {
                self.agenda.push(at, task);
                orders.wake_at(switch, at);
            }
        }
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

fn plan(latency: Span) -> packets::Plan {
    let rate = Rate::from_gbps(25);
    let config = packets::Config {
        topology: Shape::SingleSwitch(SingleSwitch {
            hosts: NODES,
            rate,
            ..SingleSwitch::default()
        }),
        switch_latency: latency,
        queues: Queues { port_buffer: Bytes::new(1_000_000_000), ..Queues::default() },
        ..packets::Config::default()
    };
    config.plan().unwrap()
}

fn carry<F: Fabric>(mut network: F, flows: &[Flow]) -> BTreeMap<u64, Time> {
    let mut ends = Ends::default();
    flows.iter().for_each(|flow| network.offer(flow));
    network.advance(Time::NEVER, &mut ends);
    network.check().unwrap();
    assert_eq!(ends.0.len(), flows.len());
    ends.0
}

/// Flows at random, and a fan-in. No two start at once: which of two packets that come at one instant
/// goes first is a matter of order, not of the switch.
fn flows() -> Vec<Flow> {
    let mut stream = Stream::new(4, "test/flows", 0);
    let mut start = Time::ZERO;
    (0..300)
        .map(|id| {
            start += Span::from_ps(1_000 + stream.below(300_000));
            let src = stream.below(NODES.into()) as u32;
            let dst = (src + 1 + stream.below(u64::from(NODES) - 1) as u32) % NODES;
            Flow {
                id: FlowId::new(id),
                src: NodeId::new(src),
                dst: NodeId::new(if id % 3 == 0 && src != 0 { 0 } else { dst }),
                size: Bytes::new(1 + stream.below(9_000)),
                start,
                class: Class::default(),
            }
        })
        .collect()
}

#[test]
fn the_ideal_switch_as_a_program_is_the_engines_own_output_queued_switch() {
    let raw = raw::Config::default();
    let flows = flows();
    let own = {
        let plan = plan(LATENCY);
        let transport = raw.build(&surroundings(&plan, 1));
        carry(Network::new(plan, transport, 1).unwrap(), &flows)
    };
    let clocked = {
        let plan = plan(Span::ZERO);
        let switch = Vertex::new(NODES);
        let mut ports = vec![PortId::default(); NODES as usize];
        for port in plan.topology.ports_of(switch) {
            ports[plan.topology.port(port).peer.index()] = port;
        }
        let line = Line::clocked(Rate::from_gbps(25), 454_000_000);
        let program = OneSwitch {
            switch: Clocked::new(&SwitchPlan::OutputQueued(line), NODES as usize, 1),
            ports,
            handles: Vec::new(),
            agenda: Calendar::new(),
        };
        let transport = raw.build(&surroundings(&plan, 1));
        carry(Network::with_program(plan, transport, program, 1).unwrap(), &flows)
    };
    for (id, end) in own {
        // An instant is rounded up to a tick of the switch, and back to a picosecond.
        let off = clocked[&id].as_ps().abs_diff(end.as_ps());
        assert!(off <= 4, "flow {id} ends {off} ps apart");
    }
}
