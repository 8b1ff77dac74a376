//! A part of the network: some of its hosts and switches, with the event loop that moves them.
//!
//! A part knows of the rest what packets tell, and what is configuration: the topology, the plan of
//! faults, the routes that follow from it. What crosses to another part leaves as a
//! [`Message`](crate::message::Message).

use std::collections::VecDeque;

use kernel::{Bytes, Span, Time};
use rack::topology::Vertex;
use rack::{Flow, NodeId};

use super::hosts::Hosts;
use super::reports::Report;
use super::watch::Watch;
use crate::net::{Event, FlowQueues, Found, Halves, Name, Net, Timers, Word};
use crate::outbox::{Effect, Outbox};
use crate::packet::{FlowKey, Marks, Packet};
use crate::program::{Orders, Program};
use crate::transport::{Line, Room, Timer, Transport};

/// Events that a part alone lets happen between two questions to the probe: milliseconds (our choice).
pub(super) const EVENTS_PER_POLL: u64 = 1 << 16;

/// Some hosts and switches, with transport `T` and program `S`. What drives it gives it time, flows and what
/// other parts send, by [`rack::shards::Shard`] and [`Part::offer`].
#[derive(Clone, Debug)]
pub struct Part<T, S> {
    pub(crate) net: Net,
    pub(super) transport: T,
    pub(super) program: S,
    pub(super) out: Outbox,
    pub(super) orders: Orders,
    pub(super) timers: Timers,
    /// What happens inside of hosts; `None` where that takes no time.
    pub(super) hosts: Option<Box<Hosts>>,
    /// How halves find out that nothing comes any more; `None` where nothing fails, or an oracle tells.
    pub(super) watch: Option<Box<Watch>>,
    /// Halves whose time-outs have just gone unanswered.
    pub(super) in_vain: Vec<FlowKey>,
    /// By host: the alarm it asked for.
    pub(super) alarms: Vec<Time>,
    /// Flows that are to start, in places that are used again, with their places in the driver's list.
    pub(super) offers: Vec<(Flow, u32)>,
    pub(super) free_offers: Vec<u32>,
    /// Hosts that have died, until that is known: when it will be.
    pub(super) doomed: VecDeque<(NodeId, Time)>,
    /// By host, if any has died: when its last death became known. What was sent from it or to it before belongs
    /// to a flow that is forgotten.
    pub(super) forgotten: Vec<Time>,
    /// Events so far; those that all parts share count in one of them.
    pub(super) events: u64,
    /// Application bytes delivered at these hosts.
    pub(super) delivered: Bytes,
    /// What the driver is to be told.
    pub(super) reports: Vec<Report>,
    /// Whether the driver wants to be told of ends at the end of each window.
    pub(super) tells_at_once: bool,
}

/// How far a part has come by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    /// Everything before it has happened.
    pub(super) end: Time,
    /// Whether it stopped there because that took long.
    pub(super) is_long: bool,
}

/// What tells apart events of one host or one port, as hosts name flows.
fn name_of(
    event: Event,
    halves: &Halves,
    queues: Option<&FlowQueues>,
    timers: &Timers,
) -> ([u32; 3], u32, u32) {
    match event {
        Event::Timer { index, .. } => match timers.timer(index) {
            Timer::Host(_, number) => (Name::default().words(), 0, number.into()),
            Timer::Flow(key, number) => {
                (halves.name(key).words(), 1 + u32::from(key.is_receivers()), number.into())
            }
        },
        Event::Room { lane, .. } => {
            let (name, leg) = queues.map_or_else(Default::default, |queues| queues.name(lane));
            (name.words(), leg, 0)
        }
        _ => Default::default(),
    }
}

impl<T: Transport, S: Program> Part<T, S> {
    /// The whole of a network.
    pub(super) fn new(net: Net, transport: T, program: S, seed: u64) -> Self {
        let hosts = net.plan.topology.hosts();
        let times = net.plan.config.host.times();
        let mut timers = transport.timers();
        let config = net.plan.config.failures;
        let watches = !net.plan.faults.is_empty() && !config.oracle;
        let watch = watches.then(|| Box::new(Watch::new(config, hosts, &mut timers)));
        Self {
            timers: Timers::new(timers, hosts),
            hosts: Hosts::new(times, seed, hosts),
            watch,
            in_vain: Vec::new(),
            net,
            transport,
            program,
            out: Outbox::at_hosts(times.latency, times.send_latency),
            orders: Orders::default(),
            alarms: vec![Time::NEVER; hosts as usize],
            offers: Vec::new(),
            free_offers: Vec::new(),
            doomed: VecDeque::new(),
            forgotten: Vec::new(),
            events: 0,
            delivered: Bytes::ZERO,
            reports: Vec::new(),
            tells_at_once: false,
        }
    }

    /// The network is there.
    pub(super) fn begin(&mut self) {
        self.transport.begin(&mut self.out);
        self.leave_out_others();
        self.program.begin(&mut self.orders);
        self.serve_program();
        self.settle();
    }

    /// Takes out of what the transport wants what concerns hosts of other parts: it was told of something
    /// that all hosts know, and each part's does what its own hosts do then.
    pub(super) fn leave_out_others(&mut self) {
        let Self { net, out, .. } = self;
        if net.is_whole() {
            return;
        }
        let owns = |host: NodeId| net.owns(Vertex::new(host.get()));
        out.effects.retain(|effect| match effect {
            Effect::Send(packet) => owns(packet.src),
            Effect::Tell(port, _) => net.owns(net.wires[port.index()].vertex),
            Effect::Wake(host) | Effect::WakeAt(host, _) => owns(*host),
            Effect::Set(Timer::Host(host, _), _) | Effect::Cancel(Timer::Host(host, _)) => {
                owns(*host)
            }
            _ => true,
        });
    }

    /// A flow of the driver's list, where it has a place, is to start at its source, which is here, at `at`: as
    /// number `turn` of those offered.
    pub fn offer(&mut self, flow: &Flow, place: u32, turn: u32, at: Time) {
        let offer = match self.free_offers.pop() {
            Some(offer) => {
                self.offers[offer as usize] = (*flow, place);
                offer
            }
            None => {
                self.offers.push((*flow, place));
                u32::try_from(self.offers.len() - 1).expect("fewer than 2^32 flows wait")
            }
        };
        let event = Event::Start { turn: turn % Event::LIMIT, flow: offer };
        self.net.calendar.push(at, event.pack());
    }

    /// The next event before `limit`.
    #[inline]
    pub(super) fn next_before(&mut self, limit: Time) -> Option<(Time, Word)> {
        let Self { net, timers, .. } = self;
        let Net { calendar, ties, halves, flow_queues, .. } = net;
        calendar.pop_before(limit, |at, words| {
            ties.sort(at, words, |event| name_of(event, halves, flow_queues.as_deref(), timers));
        })
    }

    /// Lets events happen until `until`; if it `pauses`, no further than the first instant in which there
    /// is something to report.
    pub(super) fn run_alone(&mut self, until: Time, pauses: bool) -> Leg {
        let (mut limit, last) = (until, self.events + EVENTS_PER_POLL);
        let mut is_long = false;
        while let Some((now, event)) = self.next_before(limit) {
            self.step(now, event);
            if self.events >= last || (pauses && !self.reports.is_empty()) {
                is_long = self.events >= last;
                limit = limit.min(just_after(now));
            }
        }
        Leg { end: limit, is_long }
    }

    /// Lets one event happen.
    #[inline]
    pub(super) fn step(&mut self, now: Time, event: Word) {
        self.events += 1;
        self.net.now = now;
        match event.kind() {
            Word::ARRIVE => {
                self.net.ask_ahead_of_packets();
                if S::RUNS {
                    self.arrive_at_program(event.packet(), event.about());
                    self.serve_program();
                } else {
                    self.net.arrive(event.packet(), event.about());
                }
            }
            Word::DELIVER => {
                self.net.ask_ahead_of_packets();
                if self.net.deliver(event.packet(), event.about()) {
                    match self.hosts {
                        None => self.receive(event.packet(), Span::ZERO),
                        Some(_) => self.come_to_host(event.packet()),
                    }
                }
            }
            Word::FREE => {
                self.net.ask_ahead_of_lines();
                self.net.line_free(event.about());
                if S::RUNS {
                    self.serve_program();
                }
            }
            Word::NIC_FREE => {
                let host = event.about();
                let port = self.net.nics[host as usize];
                self.net.ports[port as usize].is_expected = false;
                self.serve_nic(host);
            }
            _ => {
                // What is the same for all parts counts in one of them.
                self.events -= u64::from(event.is_of_all() && !self.net.is_first());
                self.seldom(event.unpack());
                if S::RUNS {
                    self.serve_program();
                }
            }
        }
        self.settle();
        // What hosts that pass traffic on have just put on their lines.
        while S::RUNS && !self.net.departures.is_empty() {
            self.serve_program();
            self.settle();
        }
    }

    /// The events that do not come with every packet.
    #[inline(never)]
    fn seldom(&mut self, event: Event) {
        match event {
            Event::Timer { host, index } => {
                let net = &mut self.net;
                if let Some(timer) = self.timers.due(host, index, net.now, &mut net.calendar) {
                    self.fire(timer);
                }
            }
            Event::Alarm { host } => {
                if self.alarms[host as usize] == self.net.now {
                    self.alarms[host as usize] = Time::NEVER;
                    self.net.ready_nics.push(host);
                }
            }
            Event::Start { flow, .. } if self.hosts.is_none() => self.start(flow),
            Event::Start { flow, .. } => self.hand_to_host(flow),
            Event::Engine { host } => self.engine(host),
            Event::Leave { host } => self.reach_nic(host),
            Event::Rouse { host } => self.run_thread(host),
            Event::Frame { packet, port } => self.net.link_frame(packet, port),
            Event::Unheard { packet, .. } => self.net.hear_unheard(packet),
            Event::Room { port, lane } => self.net.window_opens(port, lane),
            Event::PauseEnds { port, priority } => self.net.pause_ends(port, priority),
            Event::PauseAgain { port, priority } => self.net.pause_again(port, priority),
            Event::Break { fault } => {
                if let Some(vertex) = self.net.break_part(fault) {
                    self.died(vertex);
                }
                if S::RUNS {
                    self.tell_program_of_links(fault, false);
                }
                self.see_lines(fault);
            }
            Event::Mend { fault } => {
                self.net.mend_part(fault);
                if S::RUNS {
                    self.tell_program_of_links(fault, true);
                }
                self.see_lines(fault);
            }
            Event::Word { port, word } => self.tell_program(port, word),
            Event::Program { switch } => self.wake_program(Vertex::new(switch)),
            Event::Converge => {
                self.net.converge();
                if S::RUNS {
                    self.tell_program_of_routes();
                }
                if self.watch.is_none() {
                    self.tell_of_routes();
                }
            }
            Event::Arrive { .. }
            | Event::Deliver { .. }
            | Event::Free { .. }
            | Event::NicFree { .. } => unreachable!("handled by `step`"),
        }
    }

    /// Hands a packet to the half of its flow at the host that it has reached, where it has waited so long.
    #[inline]
    pub(super) fn receive(&mut self, index: u32, waited: Span) {
        let mut packet = *self.net.arena.get(index);
        self.net.take_out(index);
        self.out.set_now(self.net.now);
        if packet.flow == FlowKey::NEIGHBOURS {
            return self.transport.receive(packet.dst, &packet, &mut self.out);
        }
        let key = match self.net.halves.find(&packet) {
            Found::Half(key) => key,
            Found::New if !self.is_forgotten(&packet) => self.meet(&packet),
            Found::New => return self.net.counts.stray += 1,
            Found::Closed => {
                self.net.counts.stray += 1;
                if self.net.halves.is_broken_off(&packet) {
                    return;
                }
                return self.transport.stray(&packet, &mut self.out);
            }
        };
        if key.is_receivers() && packet.is_data() && !packet.marks.contains(Marks::TRIMMED) {
            let receiver = self.net.halves.receiver_mut(key);
            if !receiver.is_complete {
                receiver.journey.note(packet.stamp, self.net.now - waited, packet.wire);
            }
        }
        if let Some(watch) = &mut self.watch {
            watch.hears(key, self.net.now);
        }
        packet.flow = key;
        self.transport.receive(packet.dst, &packet, &mut self.out);
    }

    fn fire(&mut self, timer: Timer) {
        self.out.set_now(self.net.now);
        match self.watch.as_mut().and_then(|watch| watch.host_of(timer)) {
            Some(host) => self.look_for_silence(host),
            None => self.transport.timer(timer, &mut self.out),
        }
    }

    /// Carries out what the transport wants, lets NICs send, and reports ends, until all is quiet.
    #[inline]
    pub(super) fn settle(&mut self) {
        let is_quiet = self.out.effects.is_empty() && self.net.ready_nics.is_empty();
        if !is_quiet || !self.net.unheard.is_empty() {
            self.settle_all();
        }
    }

    fn settle_all(&mut self) {
        let mut at = 0;
        loop {
            while let Some(&effect) = self.out.effects.get(at) {
                at += 1;
                self.carry_out(effect);
            }
            self.out.effects.clear();
            at = 0;
            if let Some(key) = self.in_vain.pop() {
                // Once all else is done that it wants, for nothing may be left that would wake a closed half.
                self.waits_in_vain(key);
            } else if let Some((packet, why)) = self.net.unheard.pop() {
                self.out.set_now(self.net.now);
                self.transport.unheard(&packet, why, &mut self.out);
            } else if let Some(host) = self.net.ready_nics.pop() {
                self.serve_nic(host);
            } else {
                return;
            }
        }
    }

    #[inline]
    pub(super) fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Send(packet) => self.send_from_host(self.labelled(packet)),
            Effect::Tell(port, packet) => self.net.tell(port.get(), packet),
            Effect::Wake(host) => self.notify_nic(host),
            Effect::WakeAt(host, at) => {
                let alarm = &mut self.alarms[host.index()];
                if at < *alarm {
                    *alarm = at;
                    self.net.calendar.push(at, Event::Alarm { host: host.get() }.pack());
                }
            }
            Effect::Set(timer, at) => {
                let Net { calendar, halves, .. } = &mut self.net;
                let host = || match timer {
                    Timer::Host(host, _) => host,
                    Timer::Flow(key, _) => halves.host(key),
                };
                self.timers.set(timer, at, host, calendar);
            }
            Effect::Cancel(timer) => self.timers.cancel(timer),
            Effect::Delivered(key, bytes) => {
                self.delivered += bytes;
                self.net.halves.deliver(key, bytes);
            }
            Effect::Complete(key) => self.rouse(key),
            Effect::Close(key) => {
                // It may have been abandoned since it said so.
                if self.net.halves.is_open(key) {
                    self.close(key);
                }
            }
            Effect::GiveUp(key) => {
                // The same.
                if self.net.halves.is_open(key) {
                    self.give_up(key);
                }
            }
            Effect::InVain(key) => {
                if self.watch.is_some() {
                    self.in_vain.push(key);
                }
            }
            Effect::Resent(packets) => self.net.counts.retransmissions += packets,
            Effect::Held(bytes) => {
                let max = &mut self.net.counts.reorder_max;
                *max = (*max).max(bytes.get());
            }
            Effect::Unpack(piece) => self.unpack(piece),
        }
    }

    /// Bytes of another flow were in the packet at hand: they go to their half as if in one of their own.
    fn unpack(&mut self, piece: Packet) {
        let mut piece = self.labelled(piece);
        let key = match self.net.halves.find(&piece) {
            Found::Half(key) => key,
            Found::New => self.meet(&piece),
            // Its destination has broken it off.
            Found::Closed => return,
        };
        let receiver = self.net.halves.receiver_mut(key);
        if !receiver.is_complete {
            let arrived = self.net.now - self.out.waited();
            receiver.journey.note(piece.stamp, arrived, piece.payload);
        }
        if let Some(watch) = &mut self.watch {
            watch.hears(key, self.net.now);
        }
        piece.flow = key;
        self.transport.receive(piece.dst, &piece, &mut self.out);
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
    pub(super) fn send(&mut self, packet: Packet) {
        let nic = self.net.nics[packet.src.index()];
        let index = self.net.take_in(packet);
        // Nothing waits in a dead host, whose flows go on until that is known.
        let is_dead = self.net.is_dead(Vertex::new(packet.src.get()));
        if is_dead || (self.net.asks_at_nics && self.net.refuses_at_nic(index, nic)) {
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

    /// What the part is carrying at the moment, for its checks.
    pub(super) fn check_queues(&self) -> Result<(), String> {
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

    /// Packets in the part that may still be on their way: what waits for a link that is down waits until it
    /// is up again, if ever.
    pub(super) fn packets_on_their_way(&self) -> u64 {
        let held_up = self.net.ports.iter().filter(|port| port.faults > 0);
        let held_up: u64 = held_up.map(|port| u64::from(port.packets)).sum();
        u64::from(self.net.arena.live()).saturating_sub(held_up)
    }
}

/// The instant after `time`.
pub(super) fn just_after(time: Time) -> Time {
    time + Span::from_ps(1)
}
