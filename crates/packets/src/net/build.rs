//! The network of a plan, idle.

use std::collections::VecDeque;
use std::sync::Arc;

use kernel::{Agenda, LinkClock, Rate, Span, Stream, Time};
use rack::shards::Outbox;
use rack::topology::{PortId, Vertex};

use super::credit::Credits;
use super::deadline::Deadline;
use super::detour::Detours;
use super::event::{Event, Ties};
use super::faults::Faults;
use super::limits::Limits;
use super::losses::Losses;
use super::pause::{Ingress, Memory, Pauses};
use super::perflow::FlowQueues;
use super::{Arena, Counts, Halves, Net, OutPort, Wire};
use crate::config::{CUT_THROUGH_HEADER, FlowControl, Forwarding, Plan, Routing};
use crate::route::{Chooser, Live, Tables};

impl Net {
    /// The network, with its faults in the calendar. `seed` is that of all chance in it.
    pub(crate) fn new(plan: Plan, seed: u64) -> Self {
        let plan = Arc::new(plan);
        let wires: Arc<[Wire]> = wires(&plan).into();
        assert!(wires.len() < Event::LIMIT as usize, "{} ports", wires.len());
        let rates: Vec<Rate> = rates(&plan, &wires);
        let clocks = clocks(&plan, &wires, &rates, seed);
        let topology = &plan.topology;
        let live = Live::all(topology);
        let vertices = topology.vertices();
        let limits = Limits::new(&plan.config.queues, plan.config.mtu);
        let draws = limits.red.is_some() || limits.trim.is_some();
        let stream = |vertex| Stream::new(seed, "packets/queue", u64::from(vertex));
        let faults = Faults {
            parts: plan.faults.iter().filter_map(|f| topology.parts(f.component).ok()).collect(),
            dead: vec![0; vertices as usize],
            ..Faults::default()
        };
        let (loss_rate, bit_error_rate) = (plan.config.loss_rate, plan.config.bit_error_rate);
        let losses = Losses::new(wires.len() as u32, loss_rate, bit_error_rate, seed);
        let tables = Arc::new(Tables::for_routing(topology, &live, plan.config.routing));
        let mut net = Self {
            now: Time::ZERO,
            calendar: Agenda::new(),
            ties: Ties::new(seed),
            arena: Arena::new(),
            ports: clocks.iter().zip(wires.iter()).map(|(c, wire)| OutPort::new(c, wire)).collect(),
            vertices: wires.iter().map(|wire| wire.vertex).collect(),
            clocks,
            nics: nics(&plan, &wires).into(),
            ready_nics: Vec::new(),
            halves: Halves::default(),
            whole: Arc::clone(&tables),
            tables,
            known: Arc::default(),
            chooser: Chooser::new(plan.config.routing, topology.hosts(), vertices, seed)
                .with_routes(topology),
            live,
            counts: Counts::default(),
            shared: vec![0; vertices as usize],
            chance: (0..if draws { vertices } else { 0 }).map(stream).collect(),
            deficits: vec![[0; 8]; if limits.quanta.is_some() { wires.len() } else { 0 }],
            pauses: pauses(&plan, &wires, &rates),
            is_controlled: plan.config.queues.flow_control != FlowControl::None,
            credits: None,
            flow_queues: flow_queues(&plan, &wires, &rates),
            detours: (plan.config.routing == Routing::Valiant)
                .then(|| Box::new(Detours::new(topology.hosts(), seed))),
            knows_ways_ahead: plan.config.routing == Routing::SourceRoute
                || (plan.config.routing.is_steady() && plan.faults.is_empty()),
            is_observed: false,
            codec: None,
            recorder: None,
            admits_apart: matches!(plan.config.queues.flow_control, FlowControl::PerFlow(_)),
            asks_at_nics: false,
            is_lossy: losses.is_some() || !plan.faults.is_empty(),
            losses,
            faults,
            has_neighbours: false,
            repairs_links: false,
            unheard: Vec::new(),
            has_words: false,
            notes_departures: false,
            departures: Vec::new(),
            gone: VecDeque::new(),
            cut: None,
            passing: Outbox::new(1),
            passed: Vec::new(),
            limits,
            wires,
            plan,
        };
        net.credits = credits(&net.plan, net.wires.len());
        net.schedule_faults();
        net
    }

    /// What a port's line is meant to carry. Its clock may be slower.
    pub(crate) fn rate(&self, port: u32) -> Rate {
        rate(&self.plan, &self.wires[port as usize], port as usize)
    }
}

/// The wires of the topology's ports, then one for each host that passes traffic on: from its NIC
/// into its own switch.
fn wires(plan: &Plan) -> Vec<Wire> {
    let (topology, config) = (&plan.topology, &plan.config);
    let is_slower = |vertex: Vertex, rate: Rate| {
        topology.ports_of(vertex).all(|port| topology.port(port).link.rate <= rate)
    };
    let header = |rate: Rate| rate.send_time(CUT_THROUGH_HEADER);
    let host_latency = config.host.times().latency;
    let wire = |port: PortId| {
        let end = topology.port(port);
        let cuts =
            config.forwarding == Forwarding::CutThrough && is_slower(end.peer, end.link.rate);
        let is_host = topology.is_host(end.vertex) && topology.degree(end.vertex) == 1;
        Wire {
            vertex: end.vertex,
            peer: end.peer,
            reverse: end.reverse.get(),
            propagation: end.link.delay,
            delay: end.link.delay + config.switch_latency,
            last_delay: end.link.delay + host_latency,
            cut_through: cuts.then(|| header(end.link.rate)),
            nic: is_host.then_some(end.vertex.get()),
            is_tunnel: topology.is_tunnel(port),
        }
    };
    let mut wires: Vec<Wire> =
        (0..topology.ports().len() as u32).map(|port| wire(PortId::new(port))).collect();
    for host in (0..topology.hosts()).map(Vertex::new) {
        if topology.degree(host) > 1 {
            wires.push(Wire {
                vertex: host,
                peer: host,
                reverse: wires.len() as u32,
                propagation: Span::ZERO,
                delay: Span::ZERO,
                last_delay: Span::ZERO,
                // The packet is all there: it is the host's own.
                cut_through: Some(Span::ZERO),
                nic: Some(host.get()),
                is_tunnel: false,
            });
        }
    }
    wires
}

/// By port: the rate of its line; into a host's own switch as fast as all its links.
fn rates(plan: &Plan, wires: &[Wire]) -> Vec<Rate> {
    (0..).zip(wires).map(|(port, wire)| rate(plan, wire, port)).collect()
}

/// What a port's line is meant to carry: that of a host's injection port, all that its links carry.
fn rate(plan: &Plan, wire: &Wire, port: usize) -> Rate {
    plan.topology
        .ports()
        .get(port)
        .map_or_else(|| plan.host_rate(wire.vertex), |port| port.link.rate)
}

/// The clocks of lines, as fast as those of the hosts and switches that they belong to.
fn clocks(plan: &Plan, wires: &[Wire], rates: &[Rate], seed: u64) -> Vec<LinkClock> {
    let most = 2.0e-6 * f64::from(plan.config.clock_tolerance);
    let off = |vertex: u32| most * Stream::new(seed, "packets/clock", vertex.into()).unit();
    let off: Vec<f64> = match plan.config.clock_tolerance {
        0 => vec![0.0; plan.topology.vertices() as usize],
        _ => (0..plan.topology.vertices()).map(off).collect(),
    };
    let slower = |(wire, rate): (&Wire, &Rate)| {
        let less = (rate.as_bps() as f64 * off[wire.vertex.index()]) as u64;
        LinkClock::new(Rate::from_bps(rate.as_bps() - less))
    };
    wires.iter().zip(rates).map(slower).collect()
}

fn nics(plan: &Plan, wires: &[Wire]) -> Vec<u32> {
    let mut nics = vec![u32::MAX; plan.topology.hosts() as usize];
    for (port, wire) in (0..).zip(wires) {
        if let Some(host) = wire.nic {
            nics[host as usize] = port;
        }
    }
    assert!(nics.iter().all(|&port| port != u32::MAX), "a host without a NIC");
    nics
}

fn pauses(plan: &Plan, wires: &[Wire], rates: &[Rate]) -> Option<Box<Pauses>> {
    let FlowControl::Pfc(pfc) = &plan.config.queues.flow_control else { return None };
    let room = |(wire, &rate): (&Wire, &Rate)| {
        let pipeline = wire.delay - wire.propagation;
        let room = pfc.headroom_on(rate, wire.propagation, pipeline, plan.config.mtu);
        u32::try_from(room.get()).unwrap_or(u32::MAX / 2)
    };
    let memory = |vertex: Vertex| {
        let memory = plan.memory(vertex).get();
        Memory {
            size: memory,
            pool: memory.saturating_sub(plan.headroom(vertex, pfc).get()),
            used: 0,
        }
    };
    Some(Box::new(Pauses {
        ingress: wires.iter().zip(rates).map(room).map(Ingress::new).collect(),
        quanta: pfc.quanta.into(),
        ends: vec![[Deadline::UNSET; 8]; wires.len()],
        again: vec![[Deadline::UNSET; 8]; wires.len()],
        memory: (0..plan.topology.vertices()).map(Vertex::new).map(memory).collect(),
        waiting: vec![Vec::new(); plan.topology.vertices() as usize],
    }))
}

fn credits(plan: &Plan, ports: usize) -> Option<Box<Credits>> {
    let FlowControl::Credit(flow) = &plan.config.queues.flow_control else { return None };
    let buffer = flow.buffer.get() as u32;
    Some(Box::new(Credits {
        buffer,
        mtu: plan.config.mtu.get() as u32,
        frame: flow.frame.get() as u16,
        room: vec![[buffer; 8]; ports],
        owed: vec![[0; 8]; ports],
        is_waiting: vec![0; ports],
        held: vec![[0; 8]; ports],
    }))
}

fn flow_queues(plan: &Plan, wires: &[Wire], rates: &[Rate]) -> Option<Box<FlowQueues>> {
    let FlowControl::PerFlow(flow) = &plan.config.queues.flow_control else { return None };
    let mtu = plan.config.mtu;
    let window = |(wire, &rate): (&Wire, &Rate)| match flow.window {
        0 => {
            // There and back, with the switch's latency and a packet's own time, twice over.
            let trip = wire.delay + wire.propagation + rate.send_time(mtu);
            2 * rate.bytes_in(trip).get().div_ceil(mtu.get()) + 1
        }
        window => window.into(),
    };
    // Its bytes are counted in a word: more is as good as endless.
    let most = u64::from(u32::MAX) / mtu.get();
    let window =
        wires.iter().zip(rates).map(window).map(|window| window.min(most) as u32).collect();
    let legs = if plan.config.routing == Routing::Valiant { 2 } else { 1 };
    Some(Box::new(FlowQueues::new(window, mtu.get() as u32, legs)))
}
