//! The Clique as a fabric whose flows are operations on remote memory.
//!
//! A flow of the engine goes from the host that asks to the host that is asked: the other way than a flow whose
//! destination reads. Hosts and their lines to TiNs are the engine's, as where packets carry flows; what crosses them is
//! commands ([`super::commands`]), and what moves bytes is cells ([`super::jobs`]). As nodes of their own, a TiN has the
//! memory of its hosts.

use std::ops::ControlFlow;

use ::rack::equipment::Bill;
use ::rack::node::{End, Ending, FlowName, Memory, Message, Node, Nodes, Unit};
use ::rack::trace::{Followed, Trace};
use ::rack::{
    Advance, Completion, Fabric, Failure, Flow, Gauge, Probe, Problem, Stage, Totals, Unfinished,
};
use kernel::{Bytes, Rate, Span, Time};
use packets::config::CUT_THROUGH_HEADER;
use serde_json::{Map, Value};

use super::commands::{COMMAND_BYTES, Commands};
use super::ideal::Ways;
use super::{Clique, HOST_LINK, engine};
use crate::config::{Carrier, Plan};

const STAGES: &[Stage] = &[Stage {
    name: "operations",
    meaning: "From the flow's start until software knows that its last operation is done",
}];

/// What flows take alone, and which way they are asked for.
#[derive(Clone, Debug)]
struct Manner {
    plan: Plan,
    ways: Ways,
}

impl Manner {
    fn reads(&self) -> bool {
        self.plan.config.carrier == Carrier::RmaRead
    }

    /// A flow of the engine for a flow, and the other way round.
    fn turned(&self, flow: &Flow) -> Flow {
        if self.reads() { turned(flow) } else { *flow }
    }

    fn why(&self, why: Failure) -> Failure {
        if self.reads() { turned_failure(why) } else { why }
    }

    /// The completion time of a flow alone: no flow can be faster.
    fn ideal(&self, flow: &Flow) -> Span {
        let rma = &self.plan.config.rma;
        let [from, to] = [flow.src, flow.dst].map(|node| self.plan.hosts[node.index()].tin);
        let (there, back) = (self.ways.crossing(from, to), self.ways.crossing(to, from));
        let after = Bytes::new(flow.size.get().saturating_sub(rma.payload.get()));
        let bytes = rma.pcie.read + rma.pcie.rate.least_send_time(after);
        let asked = back + rma.request_time + bytes + there + rma.landing_time;
        // The command on the host's line, as far as its TiN waits for it, and the end of its last operation.
        let command = Bytes::new(COMMAND_BYTES.into());
        let rate = self.plan.config.ip.port_rate;
        let line = rate.least_send_time(command.min(CUT_THROUGH_HEADER))
            + rate.least_send_time(command)
            + HOST_LINK * 2;
        let fixed = line + rma.pcie.doorbell + rma.pcie.completion;
        match self.reads() {
            true => fixed + asked,
            // It is offered, fetched as if it were read, and its end told.
            false => fixed + there + rma.request_time + asked + back + rma.landing_time,
        }
    }
}

/// The other way round.
fn turned(flow: &Flow) -> Flow {
    Flow { src: flow.dst, dst: flow.src, ..*flow }
}

fn turned_failure(why: Failure) -> Failure {
    match why {
        Failure::SourceDied => Failure::DestinationDied,
        Failure::DestinationDied => Failure::SourceDied,
        _ => why,
    }
}

/// A node whose flows go the other way than the engine's.
struct Turned(Box<dyn Node>);

impl Node for Turned {
    fn next(&self) -> Time {
        self.0.next()
    }

    fn offer(&mut self, flow: &Flow) {
        self.0.offer(&turned(flow));
    }

    fn receive(&mut self, wire: u32, at: Time, bytes: &[u8]) -> Option<Unit> {
        self.0.receive(wire, at, bytes)
    }

    fn run(&mut self, until: Time, send: &mut dyn FnMut(Message<'_>)) {
        self.0.run(until, send);
    }

    fn endings(&mut self, endings: &mut Vec<Ending>) {
        let known = endings.len();
        self.0.endings(endings);
        for ending in &mut endings[known..] {
            let FlowName { src, dst, number } = ending.flow;
            ending.flow = FlowName { src: dst, dst: src, number };
            ending.failure = ending.failure.map(turned_failure);
        }
    }

    fn unexpected(&self) -> u64 {
        self.0.unexpected()
    }
}

/// Tells a probe of flows as they were offered.
struct Told<'a> {
    probe: &'a mut dyn Probe,
    manner: &'a Manner,
}

impl Probe for Told<'_> {
    fn completed(&mut self, end: &Completion<'_>) -> ControlFlow<()> {
        let flow = self.manner.turned(end.flow);
        let (ideal, stages) = (self.manner.ideal(&flow), [end.end - flow.start]);
        self.probe.completed(&Completion { flow: &flow, end: end.end, ideal, stages: &stages })
    }

    fn failed(&mut self, flow: &Flow, at: Time, why: Failure) -> ControlFlow<()> {
        self.probe.failed(&self.manner.turned(flow), at, self.manner.why(why))
    }

    fn may_pause(&self) -> bool {
        self.probe.may_pause()
    }

    fn may_wait(&self) -> bool {
        self.probe.may_wait()
    }

    fn poll(&mut self) -> ControlFlow<()> {
        self.probe.poll()
    }
}

/// A rack under simulation.
pub struct Remote {
    network: packets::Network<Commands, Clique>,
    manner: Manner,
}

impl Remote {
    /// An idle rack. `seed` is that of all chance in it.
    pub(super) fn new(plan: Plan, seed: u64) -> Self {
        let engine = engine(&plan);
        let clique = Clique::new(&plan, &engine.topology, seed);
        // By then a command under way would have failed, and been tried once more.
        let commands = Commands::new(plan.config.rma.deadline * 2);
        let network = packets::Network::with_program(engine, commands, clique, seed)
            .expect("commands are smaller than any packet");
        Self { network, manner: Manner { ways: Ways::new(&plan), plan } }
    }
}

impl Fabric for Remote {
    fn name(&self) -> &'static str {
        "aquila"
    }

    fn nodes(&self) -> u32 {
        self.network.nodes()
    }

    fn node_rate(&self) -> Rate {
        self.network.node_rate()
    }

    fn has_handshake(&self) -> bool {
        self.network.has_handshake()
    }

    fn now(&self) -> Time {
        self.network.now()
    }

    fn set_wire(&mut self, is_on: bool) -> Result<(), Problem> {
        self.network.set_wire(is_on)
    }

    fn set_shards(&mut self, shards: usize) -> usize {
        self.network.set_shards(shards)
    }

    fn set_threads(&mut self, threads: usize) {
        self.network.set_threads(threads);
    }

    fn can_trace(&self) -> Result<(), Problem> {
        self.network.can_trace()
    }

    fn set_trace(&mut self, followed: &[Followed]) {
        let turned = |of: &Followed| match self.manner.reads() {
            true => Followed { src: of.dst, dst: of.src, ..*of },
            false => *of,
        };
        self.network.set_trace(&followed.iter().map(turned).collect::<Vec<_>>());
    }

    fn take_trace(&mut self) -> Trace {
        self.network.take_trace()
    }

    fn apart(&self) -> Option<Nodes> {
        let nodes = self.network.apart()?;
        let Plan { config, hosts, .. } = &self.manner.plan;
        let places = hosts.iter().map(|place| config.nodes as usize + usize::from(place.tin));
        let reads = self.manner.reads();
        let memory = Memory {
            places: places.collect(),
            asks: if reads { End::Destination } else { End::Source },
        };
        let turned = |node| -> Box<dyn Node> { Box::new(Turned(node)) };
        let all = nodes.nodes.into_iter();
        let all = if reads { all.map(turned).collect() } else { all.collect() };
        Some(Nodes { nodes: all, memory: Some(memory), ..nodes })
    }

    fn offer(&mut self, flow: &Flow) {
        self.network.offer(&self.manner.turned(flow));
    }

    fn advance(&mut self, until: Time, probe: &mut dyn Probe) -> Advance {
        self.network.advance(until, &mut Told { probe, manner: &self.manner })
    }

    fn ideal_fct(&self, flow: &Flow) -> Span {
        self.manner.ideal(flow)
    }

    fn totals(&self) -> Totals {
        let cells = self.network.programs().map(Clique::cells);
        let [hops, sent, there] =
            cells.fold([0; 3], |sum, one| [0, 1, 2].map(|at| sum[at] + one[at]));
        let totals = self.network.totals();
        // No packet carries bytes: cells do.
        let drops = totals.drops + sent.saturating_sub(there);
        Totals { hops, drops, ..totals }
    }

    fn stages(&self) -> &'static [Stage] {
        STAGES
    }

    fn gauges(&self) -> &'static [Gauge] {
        self.network.gauges()
    }

    fn sample(&mut self, row: &mut [f64]) {
        self.network.sample(row);
    }

    fn unfinished(&self, limit: usize) -> Vec<Unfinished> {
        let open = self.network.unfinished(limit).into_iter();
        open.map(|of| Unfinished { flow: self.manner.turned(&of.flow), ..of }).collect()
    }

    fn check(&self) -> Result<(), String> {
        self.network.check()
    }

    fn tables(&self) -> Vec<::rack::results::Table> {
        self.network.tables()
    }

    fn bill(&self) -> Option<Bill> {
        Some(self.manner.plan.bill)
    }

    fn details(&self) -> Map<String, Value> {
        self.network.details()
    }
}
