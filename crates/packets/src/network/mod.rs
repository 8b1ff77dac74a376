//! A packet network with its endpoints: the event loop, and the door through which a transport acts.

mod details;
mod fabric;
mod gauges;
mod ideal;
mod programmed;
mod uniform;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use kernel::{Bytes, Span, Time};
use rack::topology::Vertex;
use rack::{Completion, Failure, Flow, FlowId, NodeId, Probe, Problem, Stage};

use crate::config::Plan;
use crate::net::{Event, Life, Net, Timers, Word, mean};
use crate::outbox::{Effect, Outbox};
use crate::packet::{FlowKey, Marks, Packet};
use crate::program::{Orders, Plain, Program};
use crate::transport::{Framing, Line, Opening, Room, Surroundings, Timer, Transport};

use gauges::Gauges;
pub(crate) use ideal::completion_time;

/// The parts of a completion time, in order.
pub(crate) const STAGES: &[Stage] = &[
    Stage { name: "source", meaning: "At the source, before the first bit is sent" },
    Stage { name: "queueing", meaning: "In queues of the network, beyond the idle network's time" },
    Stage { name: "propagation", meaning: "On wires and through switches, as in the idle network" },
    Stage { name: "recovery", meaning: "At the destination, until the last byte is there" },
];

/// A packet network under simulation, carrying transport `T`, with switches that run `S`.
#[derive(Clone, Debug)]
pub struct Network<T, S = Plain> {
    pub(crate) net: Net,
    transport: T,
    program: S,
    out: Outbox,
    orders: Orders,
    timers: Timers,
    framing: Framing,
    /// By host: the alarm it asked for.
    alarms: Vec<Time>,
    /// Flows that ended without a chance to say so.
    failures: Vec<(FlowKey, Failure)>,
    /// Flows of hosts that have died, and when that is known: they fail then.
    doomed: VecDeque<Doomed>,
    reached: Time,
    events: u64,
    delivered: Bytes,
    lost: Bytes,
    gauges: Gauges,
    /// Whether the probe asked to pause.
    is_paused: bool,
}

/// A flow whose source or destination has died, which nobody knows yet.
#[derive(Clone, Copy, Debug)]
struct Doomed {
    key: FlowKey,
    /// Which flow that is: its key may be another's by then.
    id: FlowId,
    why: Failure,
    known_at: Time,
}

/// What a transport for the network of `plan` should know.
#[must_use]
pub fn surroundings(plan: &Plan, seed: u64) -> Surroundings {
    let net = Net::new(plan.clone(), seed);
    let (base_rtt, hops_max) = ideal::farthest(&net);
    Surroundings {
        hosts: plan.topology.hosts(),
        line_rate: plan.line_rate(),
        uniform_rate: uniform::rate(&net, plan.line_rate()),
        base_rtt,
        hops_max,
        seed,
    }
}

impl<T: Transport> Network<T> {
    /// An idle network of plain switches. `seed` is that of all chance in it.
    ///
    /// # Errors
    /// If the transport's packets do not fit the network.
    pub fn new(plan: Plan, transport: T, seed: u64) -> Result<Self, Problem> {
        Self::with_program(plan, transport, Plain, seed)
    }
}

impl<T: Transport, S: Program> Network<T, S> {
    /// As [`Network::new`], with switches that run `program`.
    ///
    /// # Errors
    /// If the transport's packets do not fit the network.
    pub fn with_program(plan: Plan, transport: T, program: S, seed: u64) -> Result<Self, Problem> {
        let framing = transport.framing();
        plan.check_framing(framing)?;
        let hosts = plan.topology.hosts();
        let mut net = Net::new(plan, seed);
        net.notes_departures = S::RUNS && program.watches_lines();
        net.has_neighbours = transport.speaks_to_neighbours();
        if net.has_neighbours || (S::RUNS && S::SPEAKS) {
            net.flows.stand();
        }
        let mut network = Self {
            timers: Timers::new(transport.timers(), hosts),
            framing,
            net,
            transport,
            program,
            out: Outbox::new(Time::ZERO),
            orders: Orders::default(),
            alarms: vec![Time::NEVER; hosts as usize],
            failures: Vec::new(),
            doomed: VecDeque::new(),
            reached: Time::ZERO,
            events: 0,
            delivered: Bytes::ZERO,
            lost: Bytes::ZERO,
            gauges: Gauges::default(),
            is_paused: false,
        };
        network.transport.begin(&mut network.out);
        network.settle(&mut ());
        Ok(network)
    }

    /// The transport, to look at.
    #[must_use]
    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// The program of the switches, to look at.
    #[must_use]
    pub fn program(&self) -> &S {
        &self.program
    }

    /// Lets one event happen.
    #[inline]
    fn step<P: Probe>(&mut self, now: Time, event: Word, probe: &mut P) {
        self.events += 1;
        self.net.now = now;
        match event.kind() {
            Word::ARRIVE => {
                self.net.ask_ahead_of_packets();
                if S::RUNS {
                    self.arrive_at_program(event.subject(), event.port());
                    self.obey();
                } else {
                    self.net.arrive(event.subject(), event.port());
                }
            }
            Word::DELIVER => {
                self.net.ask_ahead_of_packets();
                if self.net.deliver(event.subject(), event.port()) {
                    self.receive(event.subject());
                }
            }
            Word::FREE => {
                self.net.ask_ahead_of_lines();
                self.net.line_free(event.port());
                if S::RUNS {
                    self.obey();
                }
            }
            Word::NIC_FREE => {
                let host = event.subject();
                let port = self.net.nics[host as usize];
                self.net.ports[port as usize].is_expected = false;
                self.serve_nic(host);
            }
            _ => {
                self.seldom(event.unpack());
                if S::RUNS {
                    self.obey();
                }
            }
        }
        self.settle(probe);
        // What hosts that pass traffic on have just put on their lines.
        while S::RUNS && !self.net.departures.is_empty() {
            self.obey();
            self.settle(probe);
        }
    }

    /// The events that do not come with every packet.
    #[inline(never)]
    fn seldom(&mut self, event: Event) {
        match event {
            Event::Timer { index, generation } => {
                let net = &mut self.net;
                if let Some(timer) = self.timers.due(index, generation, net.now, &mut net.calendar)
                {
                    self.fire(timer);
                }
            }
            Event::Alarm { host } => {
                if self.alarms[host as usize] == self.net.now {
                    self.alarms[host as usize] = Time::NEVER;
                    self.net.ready_nics.push(host);
                }
            }
            Event::Start { flow } => self.start(flow),
            Event::Room { port, lane } => self.net.window_opens(port, lane),
            Event::PauseEnds { port, priority } => self.net.pause_ends(port, priority),
            Event::PauseAgain { port, priority } => self.net.pause_again(port, priority),
            Event::Break { fault } => {
                if let Some(vertex) = self.net.break_part(fault) {
                    self.died(vertex);
                }
            }
            Event::Mend { fault } => self.net.mend_part(fault),
            Event::Program { switch } => self.wake_program(Vertex::new(switch)),
            Event::Converge => {
                let is_settled = self.net.converge();
                self.out.set_now(self.net.now);
                self.transport.routes_changed(&self.net.live, &mut self.out);
                self.fail_doomed();
                self.fail_unreachable(is_settled);
            }
            Event::Arrive { .. }
            | Event::Deliver { .. }
            | Event::Free { .. }
            | Event::NicFree { .. } => unreachable!("handled by `step`"),
        }
    }

    /// Hands a packet to the transport of its host.
    #[inline]
    fn receive(&mut self, index: u32) {
        let now = self.net.now;
        let packet = *self.net.arena.get(index);
        let entry = self.net.flows.get_mut(packet.flow);
        let is_open = matches!(entry.life, Life::Open | Life::Complete | Life::Standing);
        let whole = packet.is_data() && !packet.marks.contains(Marks::TRIMMED);
        if whole && entry.life == Life::Open {
            entry.note_arrival(packet.stamp, now, packet.wire);
        }
        self.out.set_now(now);
        if is_open {
            self.transport.receive(packet.dst, &packet, &mut self.out);
        } else {
            self.net.counts.stray += 1;
            self.transport.stray(&packet, &mut self.out);
        }
        self.net.take_out(index);
    }

    fn fire(&mut self, timer: Timer) {
        self.out.set_now(self.net.now);
        self.transport.timer(timer, &mut self.out);
    }

    fn start(&mut self, key: FlowKey) {
        let flow = self.net.flows.get(key).flow;
        if let Some(why) = self.hopeless(&flow) {
            self.failures.push((key, why));
            return;
        }
        self.net.flows.get_mut(key).life = Life::Open;
        let nic = self.net.nics[flow.src.index()];
        if let Some(queues) = &mut self.net.flow_queues {
            queues.flow_starts(key, nic);
        }
        let paths = self.net.tables.paths(Vertex::new(flow.src.get()), flow.dst.get()).max(1);
        self.out.set_now(self.net.now);
        self.transport.start(&Opening { key, flow, paths }, &mut self.out);
    }

    /// Why a flow can never complete, as far as switches and hosts know: a host that has died knows it
    /// itself.
    fn hopeless(&self, flow: &Flow) -> Option<Failure> {
        let (src, dst) = (Vertex::new(flow.src.get()), Vertex::new(flow.dst.get()));
        if self.net.is_dead(src) {
            return Some(Failure::SourceDied);
        }
        let is_known_dead = !self.net.live.vertices[dst.index()];
        let is_cut_off = self.net.is_settled() && self.net.tables.paths(src, flow.dst.get()) == 0;
        (is_known_dead || is_cut_off).then_some(Failure::DestinationDied)
    }

    /// A vertex has died. If it is a host its flows are lost with what it knew of them, even if it comes
    /// back; they fail when that is known, once routes have converged.
    fn died(&mut self, vertex: Vertex) {
        if S::RUNS {
            self.tell_program_of_death(vertex);
        }
        if !self.net.plan.topology.is_host(vertex) {
            return;
        }
        let node = NodeId::new(vertex.get());
        let known_at = self.net.now + self.net.plan.config.convergence;
        for key in self.net.flows.unfinished() {
            let entry = self.net.flows.get(key);
            if entry.life == Life::Open && [entry.flow.src, entry.flow.dst].contains(&node) {
                let is_source = entry.flow.src == node;
                let why = if is_source { Failure::SourceDied } else { Failure::DestinationDied };
                self.doomed.push_back(Doomed { key, id: entry.flow.id, why, known_at });
            }
        }
    }

    /// It is known now of some flows that one of their hosts has died.
    fn fail_doomed(&mut self) {
        while let Some(&Doomed { key, id, why, .. }) =
            self.doomed.front().filter(|doomed| doomed.known_at <= self.net.now)
        {
            self.doomed.pop_front();
            let entry = self.net.flows.get(key);
            if entry.life == Life::Open && entry.flow.id == id {
                self.failures.push((key, why));
            }
        }
    }

    /// Routes are known anew: flows to hosts that are dead fail, and if nothing more is to change those to
    /// hosts that no path leads to.
    fn fail_unreachable(&mut self, is_settled: bool) {
        if !is_settled && self.net.live.vertices.iter().all(|&works| works) {
            return;
        }
        for key in self.net.flows.unfinished() {
            let entry = self.net.flows.get(key);
            let src = Vertex::new(entry.flow.src.get());
            let is_unknown = self.net.is_dead(src) && self.net.live.vertices[src.index()];
            if entry.life != Life::Open || is_unknown {
                continue;
            }
            if let Some(why) = self.hopeless(&entry.flow) {
                self.failures.push((key, why));
            }
        }
    }

    /// Carries out what the transport wants, lets NICs send, and reports ends, until all is quiet.
    #[inline]
    fn settle<P: Probe>(&mut self, probe: &mut P) {
        let is_quiet = self.out.effects.is_empty() && self.net.ready_nics.is_empty();
        if !is_quiet || !self.failures.is_empty() || !self.net.unheard.is_empty() {
            self.settle_all(probe);
        }
    }

    fn settle_all<P: Probe>(&mut self, probe: &mut P) {
        let mut at = 0;
        loop {
            while let Some(&effect) = self.out.effects.get(at) {
                at += 1;
                self.carry_out(effect, probe);
            }
            self.out.effects.clear();
            at = 0;
            if let Some((packet, why)) = self.net.unheard.pop() {
                self.out.set_now(self.net.now);
                self.transport.unheard(&packet, why, &mut self.out);
            } else if let Some(host) = self.net.ready_nics.pop() {
                self.serve_nic(host);
            } else if let Some((key, why)) = self.failures.pop() {
                self.fail(key, why, probe);
            } else {
                return;
            }
        }
    }

    #[inline]
    fn carry_out<P: Probe>(&mut self, effect: Effect, probe: &mut P) {
        match effect {
            Effect::Send(packet) => {
                let nic = self.net.nics[packet.src.index()];
                let index = self.net.take_in(packet);
                // Where neighbours find out by themselves what works, nothing waits for a dead link; nor in
                // a dead host, whose flows go on until that is known.
                let is_dead = self.net.is_dead(Vertex::new(packet.src.get()));
                if is_dead || (self.net.has_neighbours && self.net.ports[nic as usize].faults > 0) {
                    return self.net.drop_at_dead_link(index, nic);
                }
                self.net.enqueue(nic, packet.priority, index);
                self.net.serve(nic);
            }
            Effect::Tell(port, packet) => self.net.tell(port.get(), packet),
            Effect::Wake(host) => self.net.ready_nics.push(host.get()),
            Effect::WakeAt(host, at) => {
                let alarm = &mut self.alarms[host.index()];
                if at < *alarm {
                    *alarm = at;
                    self.net.calendar.push(at, Event::Alarm { host: host.get() }.pack());
                }
            }
            Effect::Set(timer, at) => self.timers.set(timer, at, &mut self.net.calendar),
            Effect::Cancel(timer) => self.timers.cancel(timer),
            Effect::Delivered(key, bytes) => {
                self.delivered += bytes;
                self.net.flows.get_mut(key).delivered += bytes;
            }
            Effect::Complete(key) => self.complete(key, probe),
            Effect::Close(key) => {
                let life = self.net.flows.get(key).life;
                assert_eq!(life, Life::Complete, "a flow is closed before it is complete");
                self.close(key);
            }
            Effect::GiveUp(key) => self.fail(key, Failure::PacketsLost, probe),
            Effect::Resent(packets) => self.net.counts.retransmissions += packets,
            Effect::Held(bytes) => {
                let max = &mut self.net.counts.reorder_max;
                *max = (*max).max(bytes.get());
            }
        }
    }

    /// Lets a NIC send what waits in its queue, or what its transport has.
    fn serve_nic(&mut self, host: u32) {
        let port = self.net.nics[host as usize];
        if self.net.send_queued(port) {
            return self.net.expect_free(port);
        }
        let out = &self.net.ports[port as usize];
        if out.faults > 0 {
            return;
        }
        let room = match &self.net.flow_queues {
            None => Room::Endless,
            Some(queues) => Room::OfFlows(&queues.source_room),
        };
        let line = Line { open: !out.held as u8, room };
        self.out.set_now(self.net.now);
        let node = NodeId::new(host);
        let Some(packet) = self.transport.pull(node, line, &mut self.out) else { return };
        self.check_pulled(node, port, &packet);
        let index = self.net.take_in(packet);
        self.net.launch_from_nic(port, index);
        self.net.expect_free(port);
    }

    #[inline]
    fn check_pulled(&self, host: NodeId, port: u32, packet: &Packet) {
        debug_assert_eq!(packet.src, host, "{packet:?} was pulled from another host");
        debug_assert!(packet.wire > 0, "{packet:?} has no size");
        debug_assert_ne!(packet.src, packet.dst, "{packet:?} goes nowhere");
        let held = self.net.ports[port as usize].held;
        debug_assert!(held >> packet.priority & 1 == 0, "{packet:?} was pulled while paused");
    }

    fn complete<P: Probe>(&mut self, key: FlowKey, probe: &mut P) {
        let end = self.net.now;
        let entry = self.net.flows.get_mut(key);
        assert_eq!(entry.life, Life::Open, "{:?} completes twice", entry.flow.id);
        assert_eq!(
            entry.delivered, entry.flow.size,
            "{:?} completes with other bytes than it was given",
            entry.flow.id
        );
        entry.life = Life::Complete;
        let flow = entry.flow;
        self.net.flows.open -= 1;
        self.net.counts.fold(flow.id.get());
        self.net.counts.fold(end.as_ps());
        let completion = Completion {
            flow: &flow,
            end,
            ideal: ideal::completion_time(&self.net, self.framing, &flow),
            stages: &self.stages_of(key, end),
        };
        self.is_paused |= probe.completed(&completion).is_break();
    }

    /// Divides a completion time over [`STAGES`]. For each packet that arrived, from the flow's start
    /// to its end is a sum of three parts; the middle one is divided by what it takes in the idle
    /// network.
    fn stages_of(&self, key: FlowKey, end: Time) -> [Span; 4] {
        let entry = self.net.flows.get(key);
        let journey = entry.journey();
        let all = end - entry.flow.start;
        let source = mean(journey.sent, journey.count);
        let received = mean(journey.received, journey.count);
        let under_way = received - source;
        let idle = ideal::mean_transit(&self.net, &entry.flow, &journey).min(under_way);
        [source, under_way - idle, idle, all - received.min(all)]
    }

    fn close(&mut self, key: FlowKey) {
        self.timers.cancel_flow(key);
        self.net.flows.close(key);
    }

    fn fail<P: Probe>(&mut self, key: FlowKey, why: Failure, probe: &mut P) {
        let entry = self.net.flows.get(key);
        let (flow, life, delivered) = (entry.flow, entry.life, entry.delivered);
        if !matches!(life, Life::Open | Life::Waiting) {
            return;
        }
        if life == Life::Open {
            self.out.set_now(self.net.now);
            self.transport.abandon(key, &mut self.out);
        }
        self.net.flows.open -= 1;
        self.lost += flow.size - delivered;
        self.net.counts.fold(!flow.id.get());
        self.close(key);
        self.is_paused |= probe.failed(&flow, self.net.now, why).is_break();
    }

    /// What the network is carrying at the moment, for its checks.
    fn check_queues(&self) -> Result<(), String> {
        let mut queued = 0;
        for (port, out) in (0..).zip(&self.net.ports) {
            let found = self.net.waiting(port).get() + self.net.waiting_in_flows(port);
            if found != u64::from(out.bytes) {
                return Err(format!("port {port} counts {} B and holds {found} B", out.bytes));
            }
            if self.net.wires[port as usize].nic.is_none() {
                queued += u64::from(out.packets);
            }
        }
        if queued != self.net.counts.queued {
            let counted = self.net.counts.queued;
            return Err(format!("{queued} packets wait in switches, {counted} were counted"));
        }
        Ok(())
    }

    /// Every packet in the arena belongs to a flow, a link frame apart.
    fn check_packets(&self) -> Result<(), String> {
        let of_flows = self.net.flows.packets();
        let live = u64::from(self.net.arena.live());
        // What waits for a link that is down waits until it is up again, if ever.
        let held_up = self.net.ports.iter().filter(|port| port.faults > 0);
        let held_up: u64 = held_up.map(|port| u64::from(port.packets)).sum();
        if live < of_flows || (self.net.calendar.is_empty() && live > held_up) {
            return Err(format!("{live} packets in the network, {of_flows} of flows"));
        }
        Ok(())
    }
}
