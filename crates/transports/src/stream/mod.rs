//! The byte stream that the TCP family shares, with its congestion control as a parameter.
//!
//! Models: a connection for each flow, or connections that hosts keep open and flows share (`connections`),
//! opened by SYN and SYN-ACK (RFC 9293 §3.5); cumulative and selective acknowledgments (RFC 5681, 2018, 6675)
//! or cumulative alone (RFC 6582); the retransmission timer (RFC 6298); delayed acknowledgments; marks (RFC
//! 3168, RFC 8257). Segments are cut once, those of a flow at fixed places, so packets carry segment numbers
//! where the real header has byte numbers. A flow's last segment carries the FIN; its acknowledgment closes the
//! sender's half, and the receiver's half has
//! closed with it. Flows of a host take turns at its line, a packet each; where classes of flows have
//! priorities of their own the most urgent go first.
//!
//! Leaves out: data both ways on one connection, the urgent pointer, a window that the receiving
//! application closes, path MTU discovery, tail-loss probes and RACK (RFC 8985).

pub mod config;
pub mod congestion;
mod connections;
mod cuts;
mod header;
#[cfg(test)]
mod lasting_tests;
#[cfg(test)]
mod network_tests;
mod receiver;
mod rtt;
mod sack;
mod scoreboard;
mod sender;
#[cfg(test)]
mod tests;
mod timeout;
mod trips;

use std::sync::Arc;

use kernel::{Bytes, Ring, Stream as Chance, Time};
use packets::wire::Codec;
use packets::{
    FlowKey, Framing, Kind, Line, Marks, Opening, Outbox, Packet, Surroundings, Timer, Timers,
    Transport, reply,
};
use rack::NodeId;

use self::config::Plan;
use self::congestion::Congestion;
use self::connections::Connections;
use self::header::Segments;
use self::receiver::{Receiver, Urgency};
use self::sender::{Alarm, Choice, Counts, Ends, Sender};
use self::trips::Trips;
use crate::kinds;

/// A flow's timers.
const RETRANSMIT: u8 = 0;
const ACKNOWLEDGE: u8 = 1;
const PACE: u8 = 2;
const TIMERS: u8 = 3;

/// The endpoints of all hosts, under one congestion control.
#[derive(Clone, Debug)]
pub struct Stream<C: Congestion> {
    plan: Plan,
    control: C::Plan,
    /// Those that hosts keep open, if they keep any.
    connections: Option<Box<Connections>>,
    /// The halves of flows, by key, or of connections.
    senders: Vec<Sender<C>>,
    receivers: Vec<Receiver>,
    /// Flows of each host that can send, in turn: those whose sender is queued, each once. A list for each priority,
    /// where classes have their own.
    turns: Vec<Ring<FlowKey>>,
    /// Seed of what stands for the ports of a connection.
    seed: u64,
    counts: Counts,
    trips: Trips,
}

impl<C: Congestion> Stream<C> {
    pub(crate) fn with_plan(plan: Plan, control: C::Plan, around: &Surroundings) -> Self {
        Self {
            plan,
            control,
            connections: (plan.connections > 0)
                .then(|| Box::new(Connections::new(plan.connections))),
            senders: Vec::new(),
            receivers: Vec::new(),
            turns: vec![Ring::new(); around.hosts as usize * plan.priorities.levels()],
            seed: around.seed,
            counts: Counts::default(),
            trips: Trips::new(plan.round_trips),
        }
    }

    /// Where the sender or receiver of a half is.
    #[inline]
    fn place(&self, flow: FlowKey) -> usize {
        match &self.connections {
            None => flow.index(),
            Some(connections) => connections.of(flow),
        }
    }

    /// Gives the flow a turn if it can send and has none, or asks to be called when it can.
    fn offer(&mut self, flow: FlowKey, out: &mut Outbox) {
        let place = self.place(flow);
        let sender = &mut self.senders[place];
        if sender.is_queued {
            return;
        }
        match sender.choice(out.now(), &self.plan) {
            Choice::Nothing => (),
            Choice::Wait(until) => out.set_timer(Timer::Flow(flow, PACE), until),
            _ => {
                sender.is_queued = true;
                let (host, class) = (sender.ends.src, sender.ends.class);
                self.turns[self.plan.priorities.place(host, class)].push(flow);
                out.wake(host);
            }
        }
    }

    fn apply(alarm: Alarm, flow: FlowKey, out: &mut Outbox) {
        let timer = Timer::Flow(flow, RETRANSMIT);
        match alarm {
            Alarm::Keep => (),
            Alarm::Set(span) => out.set_timer(timer, out.now() + span),
            Alarm::Off => out.cancel_timer(timer),
        }
    }

    /// A segment at its receiver.
    fn take_in(&mut self, packet: &Packet, out: &mut Outbox) {
        let flow = packet.flow;
        let place = self.place(flow);
        let receiver = &mut self.receivers[place];
        let now = out.now();
        let arrived = now - out.since_arrival();
        let received = receiver.receive(packet, arrived, &self.plan, |early| out.send(early));
        if received.to > received.from {
            match &mut self.connections {
                None => {
                    out.delivered(flow, receiver.bytes(received.from, received.to, &self.plan));
                }
                Some(connections) => {
                    let to = self.senders[place].bytes_below(received.to, &self.plan);
                    connections.read(to, packet, out);
                }
            }
        } else if received.held > 0 {
            out.held(Bytes::new(received.held * u64::from(self.plan.segment)));
        }
        match received.urgency {
            Urgency::Wait => (),
            Urgency::Start => {
                out.set_timer(Timer::Flow(flow, ACKNOWLEDGE), now + self.plan.ack_delay);
            }
            Urgency::Now => {
                if self.plan.ack_segments > 1 {
                    out.cancel_timer(Timer::Flow(flow, ACKNOWLEDGE));
                }
                out.send(receiver.acknowledge(packet, now + out.send_latency(), &self.plan));
            }
        }
        if receiver.is_complete() {
            debug_assert!(!receiver.owes(), "the last segment was not acknowledged: {receiver:?}");
            receiver.close();
            out.complete(flow);
            out.close(flow);
        }
    }

    /// Whether segments are of the flow of an open half, or of one on a connection that is its carrier.
    #[inline]
    fn is_known(&self, flow: FlowKey) -> bool {
        self.connections.as_ref().is_none_or(|connections| connections.is_carrier(flow))
    }

    /// Whether a segment may be what its receiver waits for.
    #[inline]
    fn makes_sense(&self, packet: &Packet) -> bool {
        let place = self.place(packet.flow);
        match &self.connections {
            None => self.receivers[place].makes_sense(packet, &self.plan),
            Some(_) => self.senders[place].has_sent(packet),
        }
    }

    /// An acknowledgment at its sender.
    fn acknowledged(&mut self, packet: &Packet, out: &mut Outbox) {
        let place = self.place(packet.flow);
        let Self { plan, control, counts, .. } = self;
        let sender = &mut self.senders[place];
        if !sender.makes_sense(packet, out.now()) {
            return out.unexpected();
        }
        self.trips.note(packet, out, sender.ends.class);
        let here = out.since_arrival();
        let alarm = sender.acknowledged(packet, (out.now(), here), plan, control, counts);
        if let Some(connections) = &mut self.connections {
            let to = sender.bytes_below(sender.board.una(), plan);
            connections.acknowledged(place, to, out);
            if sender.is_idle() {
                return self.rest(packet.flow, out);
            }
        } else if sender.is_done() {
            self.close_sender(packet.flow);
            return out.close(packet.flow);
        }
        Self::apply(alarm, packet.flow, out);
        self.offer(packet.flow, out);
    }

    /// Forgets a flow at its source.
    fn close_sender(&mut self, flow: FlowKey) {
        self.leave_turns(flow);
        self.senders[flow.index()].close(&self.plan, &self.control);
    }

    /// A flow that has nothing to send gives up its turn, if it has one.
    fn leave_turns(&mut self, flow: FlowKey) {
        let place = self.place(flow);
        let sender = &mut self.senders[place];
        if !std::mem::take(&mut sender.is_queued) {
            return;
        }
        // Rare: it was to retransmit a segment, whose acknowledgment came first.
        let Ends { src, class, .. } = sender.ends;
        let turns = &mut self.turns[self.plan.priorities.place(src, class)];
        for _ in 0..turns.len() {
            turns.pop().filter(|&other| other != flow).into_iter().for_each(|f| turns.push(f));
        }
    }

    /// A flow starts as a message on a connection.
    fn append(&mut self, opening: &Opening, out: &mut Outbox) {
        let Opening { key, label, flow, .. } = *opening;
        let Self { connections: Some(connections), senders, .. } = self else {
            unreachable!("flows of their own are opened")
        };
        let between = connections.between(flow.src, flow.dst);
        while senders.len() < connections.len() {
            let mut sender = Sender::new(&self.plan, &self.control);
            sender.connect(&self.plan, &self.control);
            senders.push(sender);
            self.receivers.push(Receiver::default());
        }
        let place = connections.next(between.clone(), |place| senders[place].waiting());
        let sender = &mut senders[place];
        let cuts = sender.cuts.as_mut().expect("a connection's");
        cuts.write(flow.size.get());
        let carrier = connections.append(place, (key, label.place()), cuts.written());
        if carrier == key {
            let (src, dst) = (flow.src.get(), flow.dst.get());
            let which = u64::from(src) << 40 | u64::from(dst) << 8 | (place - between.start) as u64;
            let mut ports = Chance::new(self.seed, "transports/stream/connections", which);
            let entropy = ports.below(1 << 16) as u16;
            let (src, dst, class) = (flow.src, flow.dst, flow.class.get());
            sender.ends = Ends { key, src, dst, entropy, size: 0, class };
        }
        self.offer(carrier, out);
    }

    /// All that a connection carried has been acknowledged.
    fn rest(&mut self, carrier: FlowKey, out: &mut Outbox) {
        self.leave_turns(carrier);
        let place = self.place(carrier);
        self.receivers[place].rest();
        out.cancel_timer(Timer::Flow(carrier, RETRANSMIT));
        if let Some(connections) = &mut self.connections {
            connections.rest(place, out);
        }
    }

    /// A half of a flow on a connection is given up, and that with it if it is the sender's.
    fn break_off(&mut self, flow: FlowKey, out: &mut Outbox) {
        let Some(connections) = &self.connections else { return };
        let carrier = connections.carrier(connections.of(flow));
        if let Some(carrier) = carrier.filter(|_| !flow.is_receivers()) {
            self.leave_turns(carrier);
            for number in [RETRANSMIT, PACE] {
                out.cancel_timer(Timer::Flow(carrier, number));
            }
        }
        let Self { connections: Some(connections), senders, receivers, .. } = self else { return };
        if let Some(place) = connections.abandon(flow, out) {
            senders[place].connect(&self.plan, &self.control);
            receivers[place].close();
        }
    }

    /// The next packet of the host's flows whose turns are at `place`.
    #[inline]
    fn pull_from(
        &mut self,
        host: NodeId,
        place: usize,
        line: Line<'_>,
        out: &mut Outbox,
    ) -> Option<Packet> {
        let whole = self.plan.segment + self.plan.header;
        loop {
            let turns = &mut self.turns[place];
            let passed_over = line.first_admitted(turns.iter().copied(), whole)?;
            turns.rotate_left(passed_over);
            let flow = turns.pop()?;
            let half = self.place(flow);
            let sender = &mut self.senders[half];
            debug_assert!(sender.is_queued && sender.ends.src == host, "{sender:?} has a turn");
            sender.is_queued = false;
            let choice = sender.choice(out.now(), &self.plan);
            if !choice.is_packet() {
                self.offer(flow, out);
                continue;
            }
            let (packet, alarm) = sender.send(choice, out.now(), &self.plan);
            if matches!(choice, Choice::Again(_) | Choice::Rescue(_)) {
                out.resent(1);
            }
            Self::apply(alarm, flow, out);
            match sender.choice(out.now(), &self.plan) {
                Choice::Nothing => (),
                Choice::Wait(until) => out.set_timer(Timer::Flow(flow, PACE), until),
                _ => {
                    sender.is_queued = true;
                    self.turns[place].push(flow);
                }
            }
            return Some(packet);
        }
    }

    /// How many halves are open.
    #[cfg(test)]
    pub(crate) fn open_halves(&self) -> usize {
        let senders = self.senders.iter().filter(|sender| sender.stage != sender::Stage::Closed);
        senders.count() + self.receivers.iter().filter(|receiver| receiver.is_open()).count()
    }

    /// The sender of a flow.
    #[cfg(test)]
    pub(crate) fn sender(&self, flow: FlowKey) -> &Sender<C> {
        &self.senders[flow.index()]
    }
}

impl<C: Congestion> Transport for Stream<C> {
    fn name(&self) -> &'static str {
        C::NAME
    }

    fn can_be_cut(&self) -> bool {
        self.connections.is_none()
    }

    fn shares_packets(&self) -> bool {
        self.connections.is_some()
    }

    fn connection(&self, flow: FlowKey) -> Option<u32> {
        self.connections.as_ref().map(|connections| connections.number_of(flow))
    }

    fn add_counts(&mut self, other: &Self) {
        self.counts.recoveries += other.counts.recoveries;
        self.counts.timeouts += other.counts.timeouts;
        self.counts.syn_timeouts += other.counts.syn_timeouts;
        self.counts.mark_answers += other.counts.mark_answers;
        self.trips.add(&other.trips);
    }

    fn timers(&self) -> Timers {
        Timers { flow: TIMERS, host: 0 }
    }

    fn codec(&self) -> Arc<dyn Codec> {
        Arc::new(Segments::new(&self.plan))
    }

    fn framing(&self) -> Framing {
        Framing { payload: self.plan.segment, header: self.plan.header }
    }

    fn has_handshake(&self) -> bool {
        self.plan.handshake
    }

    fn start(&mut self, opening: &Opening, out: &mut Outbox) {
        if self.connections.is_some() {
            return self.append(opening, out);
        }
        let Opening { key, flow, .. } = *opening;
        while self.senders.len() <= key.index() {
            self.senders.push(Sender::new(&self.plan, &self.control));
        }
        let (src, dst, size, class) = (flow.src, flow.dst, flow.size.get(), flow.class.get());
        let mut ports = Chance::new(self.seed, "transports/stream/ports", flow.id.get());
        let entropy = ports.below(1 << 16) as u16;
        let sender = &mut self.senders[key.index()];
        sender.open(Ends { key, src, dst, entropy, size, class }, &self.plan, &self.control);
        self.offer(key, out);
    }

    fn accept(&mut self, packet: &Packet, label: FlowKey, _: &mut Outbox) {
        if let Some(connections) = &mut self.connections {
            connections.accept(packet, label.place());
            if connections.is_carrier(packet.flow) {
                self.receivers[connections.of(packet.flow)].meet(packet);
            }
            return;
        }
        let place = packet.flow.index();
        if self.receivers.len() <= place {
            self.receivers.resize(place + 1, Receiver::default());
        }
        self.receivers[place].open(packet);
    }

    fn receive(&mut self, _: NodeId, packet: &Packet, out: &mut Outbox) {
        let is_sender = !packet.flow.is_receivers();
        match packet.kind {
            kinds::PIECE => {
                out.delivered(packet.flow, Bytes::new(packet.payload.into()));
                if packet.marks.contains(Marks::LAST) {
                    out.complete(packet.flow);
                    out.close(packet.flow);
                }
            }
            _ if !self.is_known(packet.flow) => out.unexpected(),
            Kind::DATA if is_sender => out.unexpected(),
            Kind::DATA if packet.payload > 0 => match self.makes_sense(packet) {
                true => self.take_in(packet, out),
                false => out.unexpected(),
            },
            // A segment cut by a switch is as good as lost.
            Kind::DATA => (),
            kinds::ACK if is_sender => self.acknowledged(packet, out),
            kinds::SYN if !is_sender => out.send(reply(packet, kinds::SYN_ACK, self.plan.header)),
            kinds::SYN_ACK if is_sender && packet.stamp <= out.now() => {
                let place = self.place(packet.flow);
                let sender = &mut self.senders[place];
                let alarm = sender.opened(packet.stamp, out.now(), &self.plan);
                Self::apply(alarm, packet.flow, out);
                self.offer(packet.flow, out);
            }
            _ => out.unexpected(),
        }
    }

    fn stray(&mut self, packet: &Packet, out: &mut Outbox) {
        if packet.kind == Kind::DATA && packet.payload > 0 && !packet.goes_to_source() {
            let endpoint = out.since_arrival() + out.send_latency();
            out.send(receiver::acknowledge_all(packet, endpoint, &self.plan));
        }
    }

    fn timer(&mut self, timer: Timer, out: &mut Outbox) {
        let Timer::Flow(flow, number) = timer else {
            unreachable!("a stream sets no timer of a host, yet {timer:?} fired")
        };
        if !self.is_known(flow) {
            // Its connection was broken off.
            return;
        }
        match number {
            RETRANSMIT => {
                let place = self.place(flow);
                let Self { plan, control, counts, senders, .. } = self;
                let sender = &mut senders[place];
                let alarm = sender.expire(out.now(), plan, control, counts);
                Self::apply(alarm, flow, out);
                self.offer(flow, out);
                out.in_vain(flow);
            }
            ACKNOWLEDGE => {
                let place = self.place(flow);
                let receiver = &mut self.receivers[place];
                if receiver.owes() {
                    let asked = receiver.stand_in(flow);
                    let leaves = out.now() + out.send_latency();
                    out.send(receiver.acknowledge(&asked, leaves, &self.plan));
                }
            }
            _ => self.offer(flow, out),
        }
    }

    fn pull(&mut self, host: NodeId, line: Line<'_>, out: &mut Outbox) -> Option<Packet> {
        let priorities = self.plan.priorities;
        if priorities.levels() == 1 {
            let (place, priority) = priorities.level(host, 0);
            return if line.is_open(priority) {
                self.pull_from(host, place, line, out)
            } else {
                None
            };
        }
        (0..priorities.levels()).find_map(|level| {
            let (place, priority) = priorities.level(host, level);
            if line.is_open(priority) { self.pull_from(host, place, line, out) } else { None }
        })
    }

    fn abandon(&mut self, flow: FlowKey, out: &mut Outbox) {
        if self.connections.is_some() {
            return self.break_off(flow, out);
        }
        match flow.is_receivers() {
            true => self.receivers[flow.index()].close(),
            false => self.close_sender(flow),
        }
    }

    fn check(&self) -> Result<(), String> {
        for (place, sender) in self.senders.iter().enumerate() {
            sender.board.check().map_err(|why| format!("sender {place}: {why}"))?;
        }
        for (place, receiver) in self.receivers.iter().enumerate() {
            receiver.check().map_err(|why| format!("receiver {place}: {why}"))?;
        }
        let Some(connections) = &self.connections else { return Ok(()) };
        for (place, sender) in self.senders.iter().enumerate() {
            let cuts = sender.cuts.as_ref().expect("a connection's");
            connections.check(place, cuts).map_err(|why| format!("connection {place}: {why}"))?;
        }
        Ok(())
    }

    fn details(&self, _: Time) -> serde_json::Map<String, serde_json::Value> {
        let Counts { recoveries, timeouts, syn_timeouts, mark_answers } = self.counts;
        let counts = [
            ("fast_recoveries", recoveries),
            ("timeouts", timeouts),
            ("syn_timeouts", syn_timeouts),
            ("mark_answers", mark_answers),
        ];
        let counts = counts.into_iter().map(|(key, count)| (key.to_owned(), count.into()));
        counts.chain(self.trips.details()).collect()
    }
}
