//! A packet network with its endpoints: the event loop, and the door through which a transport acts.

mod details;
mod ends;
mod fabric;
mod gauges;
mod ideal;
mod ledger;
mod programmed;
mod uniform;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use kernel::{Bytes, Time};
use rack::topology::Vertex;
use rack::{Failure, FlowId, NodeId, Probe, Problem, Stage};

use crate::config::Plan;
use crate::net::{Event, Found, Net, Timers, Word};
use crate::outbox::{Effect, Outbox};
use crate::packet::{FlowKey, Marks, Packet};
use crate::program::{Orders, Plain, Program};
use crate::transport::{Framing, Line, Room, Surroundings, Timer, Transport};

use gauges::Gauges;
pub(crate) use ideal::completion_time;
use ledger::Ledger;

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
    /// The flows to carry.
    ledger: Ledger,
    /// By host: the alarm it asked for.
    alarms: Vec<Time>,
    /// Flows that fail now, by place in the ledger.
    failures: Vec<(u32, Failure)>,
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
    /// Its place in the ledger.
    place: u32,
    /// Which flow that is: its place may be another's by then.
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
        let mut network = Self {
            timers: Timers::new(transport.timers(), hosts),
            framing,
            ledger: Ledger::default(),
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
    fn step(&mut self, now: Time, event: Word, probe: &mut dyn Probe) {
        self.events += 1;
        self.net.now = now;
        match event.kind() {
            Word::ARRIVE => {
                self.net.ask_ahead_of_packets();
                if S::RUNS {
                    self.arrive_at_program(event.subject(), event.port());
                    self.serve_program();
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
                    self.serve_program();
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
                    self.serve_program();
                }
            }
        }
        self.settle(probe);
        // What hosts that pass traffic on have just put on their lines.
        while S::RUNS && !self.net.departures.is_empty() {
            self.serve_program();
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

    /// Hands a packet to the half of its flow at the host that it has reached.
    #[inline]
    fn receive(&mut self, index: u32) {
        let mut packet = *self.net.arena.get(index);
        self.net.take_out(index);
        self.out.set_now(self.net.now);
        if packet.flow == FlowKey::NEIGHBOURS {
            return self.transport.receive(packet.dst, &packet, &mut self.out);
        }
        let key = match self.net.halves.find(&packet) {
            Found::Half(key) => key,
            Found::New => self.meet(&packet),
            Found::Closed => {
                self.net.counts.stray += 1;
                return self.transport.stray(&packet, &mut self.out);
            }
        };
        if key.is_receivers() && packet.is_data() && !packet.marks.contains(Marks::TRIMMED) {
            let receiver = self.net.halves.receiver_mut(key);
            if !receiver.is_complete {
                receiver.journey.note(packet.stamp, self.net.now, packet.wire);
            }
        }
        packet.flow = key;
        self.transport.receive(packet.dst, &packet, &mut self.out);
    }

    fn fire(&mut self, timer: Timer) {
        self.out.set_now(self.net.now);
        self.transport.timer(timer, &mut self.out);
    }

    /// Carries out what the transport wants, lets NICs send, and reports ends, until all is quiet.
    #[inline]
    fn settle(&mut self, probe: &mut dyn Probe) {
        let is_quiet = self.out.effects.is_empty() && self.net.ready_nics.is_empty();
        if !is_quiet || !self.failures.is_empty() || !self.net.unheard.is_empty() {
            self.settle_all(probe);
        }
    }

    fn settle_all(&mut self, probe: &mut dyn Probe) {
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
            } else if let Some((place, why)) = self.failures.pop() {
                self.fail(place, why, probe);
            } else {
                return;
            }
        }
    }

    #[inline]
    fn carry_out(&mut self, effect: Effect, probe: &mut dyn Probe) {
        match effect {
            Effect::Send(packet) => self.send(self.labelled(packet)),
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
                self.net.halves.receiver_mut(key).delivered += bytes;
            }
            Effect::Complete(key) => self.complete(key, probe),
            Effect::Close(key) => {
                // It may have been abandoned since it said so.
                if self.net.halves.is_open(key) {
                    self.close(key);
                }
            }
            Effect::GiveUp(key) => self.give_up(key, probe),
            Effect::Resent(packets) => self.net.counts.retransmissions += packets,
            Effect::Held(bytes) => {
                let max = &mut self.net.counts.reorder_max;
                *max = (*max).max(bytes.get());
            }
        }
    }

    /// A packet as it travels: it names its flow as the host at the other end knows it.
    #[inline]
    fn labelled(&self, packet: Packet) -> Packet {
        let key = packet.flow;
        if key == FlowKey::NEIGHBOURS || key.is_closed() {
            return Packet { flow: key.at(key.place()), ..packet };
        }
        Packet { flow: self.net.halves.label(key), ..packet }
    }

    /// Puts a packet in the queue of its host's NIC.
    fn send(&mut self, packet: Packet) {
        let nic = self.net.nics[packet.src.index()];
        let index = self.net.take_in(packet);
        // Where neighbours find out by themselves what works, nothing waits for a dead link; nor in a
        // dead host, whose flows go on until that is known.
        let is_dead = self.net.is_dead(Vertex::new(packet.src.get()));
        if is_dead || (self.net.has_neighbours && self.net.ports[nic as usize].faults > 0) {
            return self.net.drop_at_dead_link(index, nic);
        }
        self.net.enqueue(nic, packet.priority, index);
        self.net.serve(nic);
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
        let index = self.net.take_in(self.labelled(packet));
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

    /// Nothing is on its way where nothing is to happen.
    fn check_packets(&self) -> Result<(), String> {
        let live = u64::from(self.net.arena.live());
        // What waits for a link that is down waits until it is up again, if ever.
        let held_up = self.net.ports.iter().filter(|port| port.faults > 0);
        let held_up: u64 = held_up.map(|port| u64::from(port.packets)).sum();
        if self.net.calendar.is_empty() && live > held_up {
            return Err(format!("{live} packets in a network where nothing will happen"));
        }
        Ok(())
    }
}
