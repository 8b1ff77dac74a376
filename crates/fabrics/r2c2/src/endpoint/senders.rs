//! Sources of flows: which packet a node sends next, when, and by which route (§3.5).
//!
//! Flows of a node take turns, a packet each, as their token buckets allow. A flow that is limited
//! by its application rather than by the network sends what the application has given so far.

use std::collections::VecDeque;

use kernel::{Bytes, PS_PER_SECOND, Rate, Stream, Time};
use packets::{FlowKey, Framing, Kind, Marks, Outbox, Packet};
use rack::{Flow, NodeId};
use transports::turns::Turns;

use crate::config::{Class, DATA_PRIORITY, Plan};
use crate::rates::{Bucket, Course, Demand, DemandPlan, Terms};
use crate::routing::Protocol;
use crate::view::FactId;
use crate::wire::batch::INDEX_MODULUS;

use super::bytes_of;
use super::maps::Maps;
use super::news::Name;

/// A flow at its source.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    pub(super) flow: Flow,
    pub(super) course: Course,
    /// Which of the flows to its destination it is, as all nodes are told.
    index: u8,
    /// What its source knows of it: what was announced last.
    pub(super) fact: FactId,
    /// Whether it waits for an index, and sends nothing yet.
    is_waiting: bool,
    pub(super) bucket: Bucket,
    /// How fast the application gives data, if that may be slower than the network; the demand that
    /// follows from it (§3.3.2), when it was last estimated, and what was sent since.
    application: Option<Rate>,
    demand: Demand,
    estimated_at: Time,
    sent: Bytes,
    packets: u64,
    /// First packet that has not been sent.
    next: u64,
    /// Packets to be sent again, first.
    again: VecDeque<u64>,
    /// Whether its end has been announced.
    is_over: bool,
    /// How often its source has asked although no way leads to the destination any more.
    asks: u32,
}

/// The sources of flows, by key.
#[derive(Clone, Debug)]
pub(super) struct Senders {
    framing: Framing,
    classes: Vec<Class>,
    burst: Bytes,
    flows: Vec<Sender>,
    /// Flows of each node with something to send.
    turns: Turns,
    /// By node: how fast its flows go at first.
    initial: Vec<Rate>,
}

impl Sender {
    /// Whether its end has been announced.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// As all nodes are told.
    pub(super) fn name(&self) -> Name {
        (self.course.source, self.course.destination, self.index)
    }

    /// Bytes that the application has given by `now` and that have not been sent.
    fn waiting(&self, now: Time, framing: Framing) -> Bytes {
        let given = match self.application {
            None => self.flow.size,
            Some(_) if now >= self.given_at(self.flow.size) => self.flow.size,
            Some(rate) => rate.bytes_in(now - self.flow.start).min(self.flow.size),
        };
        let sent = Bytes::new(self.next * u64::from(framing.payload)).min(self.flow.size);
        // Rounding may give a part of a packet that was sent whole.
        given - sent.min(given)
    }

    /// When the application has given all of a packet that ends with byte `end`; [`Time::NEVER`] if that
    /// is beyond all time.
    fn given_at(&self, end: Bytes) -> Time {
        let Some(rate) = self.application else { return self.flow.start };
        let work = u128::from(end.get()) * 8 * u128::from(PS_PER_SECOND);
        let at = u128::from(self.flow.start.as_ps()) + work.div_ceil(u128::from(rate.as_bps()));
        u64::try_from(at).map_or(Time::NEVER, Time::from_ps)
    }

    /// The packet that is to go next, if there is one.
    fn pending(&self) -> Option<u64> {
        let new = (self.next < self.packets).then_some(self.next);
        self.again.front().copied().or(new)
    }
}

impl Senders {
    pub(super) fn new(plan: &Plan) -> Self {
        let nodes = plan.nodes();
        Self {
            framing: plan.framing(),
            classes: plan.config.classes.clone(),
            burst: plan.config.burst,
            flows: Vec::new(),
            turns: Turns::of_senders(nodes as usize),
            initial: (0..nodes).map(|node| plan.initial_rate(NodeId::new(node))).collect(),
        }
    }

    /// The class of a flow; those beyond the last are of the last.
    fn class(&self, flow: &Flow) -> &Class {
        let class = usize::from(flow.class.get()).min(self.classes.len() - 1);
        &self.classes[class]
    }

    /// How a flow is to be treated.
    pub(super) fn decide(&self, flow: &Flow, maps: &Maps) -> (Course, Terms) {
        let class = self.class(flow);
        let protocol = maps.of(flow.src).usable(class.protocol);
        let course = Course { source: flow.src, destination: flow.dst, protocol };
        (course, Terms { weight: class.weight, priority: class.priority, demand: None })
    }

    /// A flow is there, and waits.
    pub(super) fn enter(&mut self, key: FlowKey, flow: Flow, course: Course) {
        let sender = Sender {
            flow,
            course,
            index: 0,
            fact: 0,
            is_waiting: true,
            bucket: Bucket::new(self.burst, flow.start),
            application: self.class(&flow).application_rate,
            demand: Demand::default(),
            estimated_at: flow.start,
            sent: Bytes::ZERO,
            packets: self.framing.packets(flow.size),
            next: 0,
            again: VecDeque::new(),
            is_over: false,
            asks: 0,
        };
        match self.flows.get_mut(key.index()) {
            Some(place) => *place = sender,
            None => {
                self.flows.resize(key.index(), sender.clone());
                self.flows.push(sender);
            }
        }
    }

    /// A flow has been announced under an index, and sends at once (§3.1).
    pub(super) fn start(&mut self, key: FlowKey, index: u8, fact: FactId, now: Time) {
        let sender = &mut self.flows[key.index()];
        let source = sender.flow.src.index();
        (sender.index, sender.fact, sender.is_waiting) = (index, fact, false);
        sender.estimated_at = now;
        sender.bucket = Bucket::new(self.burst, now);
        sender.bucket.set_pace(now, Some(self.initial[source]));
        self.turns.join(source, key);
    }

    pub(super) fn flow(&self, key: FlowKey) -> &Flow {
        &self.flows[key.index()].flow
    }

    pub(super) fn get(&self, key: FlowKey) -> &Sender {
        &self.flows[key.index()]
    }

    pub(super) fn get_mut(&mut self, key: FlowKey) -> &mut Sender {
        &mut self.flows[key.index()]
    }

    /// The flows of a node with something to send, in turn.
    pub(super) fn of_node(&self, node: NodeId) -> impl Iterator<Item = FlowKey> + '_ {
        std::iter::successors(self.turns.front(node.index()), |&key| self.turns.after(key))
    }

    /// The packet that `node` sends now, and whether it is the last new one of its flow; asks to be
    /// asked again when the next may go.
    pub(super) fn pull(
        &mut self,
        node: NodeId,
        maps: &Maps,
        draw: &mut Stream,
        out: &mut Outbox,
    ) -> Option<(Packet, bool)> {
        let now = out.now();
        let mut soonest = Time::NEVER;
        let mut turn = self.turns.front(node.index());
        while let Some(key) = turn {
            let ready = self.ready_at(key);
            if ready <= now
                && let Some(sent) = self.send(key, maps, draw, now)
            {
                return Some(sent);
            }
            if ready > now {
                soonest = soonest.min(ready);
            }
            turn = self.turns.after(key);
        }
        if soonest != Time::NEVER {
            out.wake_at(node, soonest);
        }
        None
    }

    /// When the next packet of a flow that has one may go.
    fn ready_at(&self, key: FlowKey) -> Time {
        let sender = &self.flows[key.index()];
        let packet = sender.pending().expect("flows that take turns have something to send");
        let (payload, wire) = bytes_of(self.framing, sender.flow.size, packet);
        let end = packet * u64::from(self.framing.payload) + u64::from(payload);
        let given = sender.given_at(Bytes::new(end));
        sender.bucket.ready_at(Bytes::new(wire.into())).max(given)
    }

    /// Takes the next packet of a flow. None if no way leads to its destination.
    fn send(
        &mut self,
        key: FlowKey,
        maps: &Maps,
        draw: &mut Stream,
        now: Time,
    ) -> Option<(Packet, bool)> {
        let sender = &mut self.flows[key.index()];
        let Course { source, destination, protocol } = sender.course;
        let routes = &maps.of(source).routes;
        // A flow that is over is announced no more: what is sent of it again goes as the map of now allows.
        let protocol = if sender.is_over { routes.usable(protocol) } else { protocol };
        let route = routes.draw(protocol, source, destination, draw)?;
        let again = sender.again.pop_front();
        let seq = again.unwrap_or(sender.next);
        sender.next += u64::from(again.is_none());
        let was_last = again.is_none() && sender.next == sender.packets;
        let (payload, wire) = bytes_of(self.framing, sender.flow.size, seq);
        sender.bucket.take(now, Bytes::new(wire.into()));
        sender.sent += Bytes::new(wire.into());
        let is_done = sender.pending().is_none();
        self.turns.leave(source.index(), key);
        if !is_done {
            self.turns.join(source.index(), key);
        }
        let packet = Packet {
            flow: key,
            src: source,
            dst: destination,
            kind: Kind::DATA,
            seq,
            payload,
            wire,
            priority: DATA_PRIORITY,
            marks: if seq + 1 == sender.packets { Marks::LAST } else { Marks::empty() },
            ..Packet::default()
        };
        Some((packet.with_route(route.bits()), was_last))
    }

    /// The flows from `node` to another of which a batch speaks by this index, that use another protocol.
    pub(super) fn meant(
        &self,
        node: NodeId,
        (destination, index): (NodeId, u8),
        protocol: Protocol,
    ) -> Vec<FlowKey> {
        let is_meant = |&key: &FlowKey| {
            let Sender { flow, course, index: own, is_over, .. } = *self.get(key);
            let is_named = flow.dst == destination && own % INDEX_MODULUS == index;
            is_named && !is_over && course.protocol != protocol
        };
        self.of_node(node).filter(is_meant).collect()
    }

    /// Estimates the demand of a flow that its application may limit, if it has gone on for a period
    /// since the last estimate. The new one, if all nodes are to be told. A flow whose application has
    /// given everything is limited by the network alone: what was told of it is taken back.
    pub(super) fn observe(
        &mut self,
        key: FlowKey,
        plan: &DemandPlan,
        now: Time,
    ) -> Option<Option<Rate>> {
        let framing = self.framing;
        let sender = self.get_mut(key);
        sender.application?;
        if sender.given_at(sender.flow.size) <= now {
            return sender.demand.take_back().then_some(None);
        }
        let over = now - sender.estimated_at;
        if over < plan.period {
            return None;
        }
        sender.estimated_at = now;
        let sent = std::mem::take(&mut sender.sent);
        let allocated = sender.bucket.pace().unwrap_or(plan.ceiling);
        let waiting = sender.waiting(now, framing);
        let tells = sender.demand.observe(plan, over, allocated, (sent, waiting));
        tells.then(|| sender.demand.told())
    }

    /// All of a flow has been sent.
    pub(super) fn end(&mut self, key: FlowKey) {
        self.get_mut(key).is_over = true;
    }

    /// Gives a flow up: whether it has been announced, and its end has not.
    pub(super) fn abandon(&mut self, key: FlowKey) -> bool {
        let sender = &mut self.flows[key.index()];
        if sender.is_waiting {
            return false;
        }
        self.turns.leave(sender.flow.src.index(), key);
        !std::mem::replace(&mut sender.is_over, true)
    }

    /// All of a flow has arrived, as its source knows now.
    pub(super) fn forget(&mut self, key: FlowKey) {
        let sender = &mut self.flows[key.index()];
        sender.again.clear();
        self.turns.leave(sender.flow.src.index(), key);
    }

    /// Queues packets of a flow to be sent again: those that are missing, as its destination says
    /// (`super::receivers::Receivers::missing`), and have been sent. False if the first was never due.
    pub(super) fn send_again(&mut self, key: FlowKey, missing: u64, out: &mut Outbox) -> bool {
        let (first, there) = (missing & u64::from(u32::MAX), missing >> 32);
        let next = self.flows[key.index()].next;
        if first > next {
            return false;
        }
        let window = (0..u64::from(u32::BITS)).filter(|ahead| there >> ahead & 1 == 0);
        let packets = std::iter::once(first).chain(window.map(|ahead| first + 1 + ahead));
        self.queue_again(key, packets.take_while(|&packet| packet < next), out);
        true
    }

    /// The source of a flow asks: how often it has although that is hopeless.
    pub(super) fn asks(&mut self, key: FlowKey, is_hopeless: bool) -> u32 {
        let sender = self.get_mut(key);
        sender.asks = if is_hopeless { sender.asks + 1 } else { 0 };
        sender.asks
    }

    /// Sends the last packet of a flow again, for its destination to say what is missing.
    pub(super) fn probe(&mut self, key: FlowKey, out: &mut Outbox) {
        let last = self.flows[key.index()].packets - 1;
        self.queue_again(key, std::iter::once(last), out);
    }

    fn queue_again(&mut self, key: FlowKey, packets: impl Iterator<Item = u64>, out: &mut Outbox) {
        let sender = &mut self.flows[key.index()];
        let before = sender.again.len();
        for packet in packets {
            if !sender.again.contains(&packet) {
                sender.again.push_back(packet);
            }
        }
        out.resent((sender.again.len() - before) as u64);
        let source = sender.flow.src;
        if !sender.again.is_empty() {
            self.turns.join(source.index(), key);
            out.wake(source);
        }
    }
}
