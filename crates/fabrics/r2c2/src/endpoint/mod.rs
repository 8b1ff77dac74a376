//! What runs on the nodes: all of R2C2's stack above the links (§3), as a transport of the packet
//! network.
//!
//! A flow's life (§3.1): its source announces it to all nodes by a broadcast and sends at once; every
//! node computes, each in its own time and from what it has heard, the rates of its own flows, and
//! holds each to its rate by a token bucket; each packet goes by the route that its source drew;
//! when the last is sent, the source announces the flow's end.
//!
//! A flow has a half at its source and one at its destination, which know of each other what packets told
//! them. The last packet of a flow is marked: the header of 36 bytes that the paper gives has no field for
//! a flow's size, and a bit to spare ([`crate::wire::data`]). Where packets can be lost the destination
//! says so when all has come, and forgets the flow; the source asks until it hears that.
//!
//! Nodes know of each other what broadcasts told them ([`crate::view`]), and of links what greetings
//! and others told them ([`crate::discovery`]): bytes, of which packets carry no more than their headers
//! have ([`frames`]). One value holds any set of nodes, of which none knows more for being held with
//! others: what several would compute or read alike (routes, shares, trees, announcements) is kept once
//! ([`maps`], [`readings`]), and that is all they share.
//!
//! Reading order: [`senders`], [`receivers`], [`news`] (broadcasts), [`dropped`] and [`repeats`] (those that
//! get lost), [`doubts`] (of sources out of reach), [`pace`] (rates), [`neighbours`] (greetings), [`failures`];
//! [`central`] (the centralised design, in which one node computes all rates).

mod central;
mod doubts;
mod dropped;
mod failures;
pub(crate) mod frames;
mod kinds;
mod maps;
mod neighbours;
mod news;
mod pace;
mod readings;
mod receivers;
mod repeats;
mod selector;
mod senders;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use kernel::{Bytes, Span, Stream, Time};
use packets::wire::Codec;
use packets::{
    FlowKey, Framing, Kind, Line, Loss, Opening, Outbox, Packet, Timer, Timers, Transport, answer,
};
use rack::NodeId;
use serde_json::{Map, Value, json};

use crate::config::{DATA_PRIORITY, Plan, SPAN_MAX};
use crate::routing::Protocol;
use crate::wire::{Assignments, Event};
use maps::Maps;
use neighbours::Neighbours;
use news::{News, Scene};
use pace::Pace;
use receivers::{Arrival, Receivers};
use selector::Selector;
use senders::Senders;

/// The timer of a half, where packets can be lost: the source asks whether all has arrived, the
/// destination for what is missing.
const ASK: u8 = 0;
/// Where an oracle tells of failures: how often a source asks a destination to which no way will lead any
/// more, each time after twice as long, before it gives up (**our choice**: 64 times the first wait).
const PROBES_MAX: u32 = 6;
/// A host's timer: its next computation of rates.
const TICK: u8 = 0;
/// A host's timer: it retransmits what was dropped.
const REPEAT: u8 = 1;
/// A host's timer: its turn to search for better routing.
const SEARCH: u8 = 2;
/// A host's timer: it greets its neighbours.
const GREET: u8 = 3;
/// A host's timer: it goes by what it has heard of links.
const ADOPT: u8 = 4;
/// A host's timer: it looks for sources that it cannot reach, and has heard nothing of for long.
const LOOK: u8 = 5;
/// A host's timer, where a controller may fail: it looks whether that has answered.
const ANSWER: u8 = 6;

/// The endpoints of all nodes.
#[derive(Clone, Debug)]
pub struct Endpoints {
    plan: Plan,
    framing: Framing,
    maps: Maps,
    neighbours: Neighbours,
    senders: Senders,
    receivers: Receivers,
    news: News,
    pace: Pace,
    selector: Selector,
    /// By node: draws the routes of its packets.
    draws: Vec<Stream>,
    /// How long a flow's end waits for what is lost; `None` where nothing can be.
    patience: Option<Span>,
    /// With an oracle: from when on whoever is out of reach stays so.
    hopeless_after: Option<Time>,
    /// By node: halves of flows that are open.
    open: Vec<u32>,
    /// By source, destination and tenant: flows that wait for an index, the first to come first.
    waiting: BTreeMap<(NodeId, NodeId, u32), VecDeque<FlowKey>>,
}

impl Endpoints {
    /// Idle nodes. `seed` is that of all chance in them.
    #[must_use]
    pub fn new(plan: &Plan, seed: u64) -> Self {
        let framing = plan.framing();
        Self {
            plan: plan.clone(),
            framing,
            maps: Maps::new(plan, seed),
            neighbours: Neighbours::new(plan, seed),
            senders: Senders::new(plan),
            receivers: Receivers::new(framing, plan.nodes()),
            news: News::new(plan, seed),
            pace: Pace::new(plan, seed),
            selector: Selector::new(plan, seed),
            draws: streams(plan.nodes(), seed, "r2c2/routes"),
            patience: plan.can_lose().then_some(plan.config.recovery.patience),
            hopeless_after: plan.changes_until().filter(|_| plan.network.config.failures.oracle),
            open: vec![0; plan.nodes() as usize],
            waiting: BTreeMap::new(),
        }
    }

    /// What tells nodes of flows, and where it does.
    fn speak<'a>(&'a mut self, out: &'a mut Outbox) -> (&'a mut News, Scene<'a>) {
        let Self { news, maps, neighbours, plan, .. } = self;
        (news, Scene { topology: &plan.network.topology, maps, neighbours, out })
    }

    /// Nothing is left to do for a flow at its source.
    fn close(&mut self, key: FlowKey, out: &mut Outbox) {
        self.open[self.senders.flow(key).src.index()] -= 1;
        out.close(key);
    }

    /// A flow has nothing more to send: all nodes are told, once.
    fn sent_all(&mut self, key: FlowKey, out: &mut Outbox) {
        let source = self.senders.flow(key).src;
        self.senders.end(key);
        self.finish(key, out);
        self.follow_event(source, out);
        match self.patience {
            Some(patience) => out.set_timer(Timer::Flow(key, ASK), out.now() + patience),
            None => self.close(key, out),
        }
    }

    /// A flow announces its end, and the first that waits for an index to the same destination starts.
    fn finish(&mut self, key: FlowKey, out: &mut Outbox) {
        let sender = self.senders.get(key);
        let (flow, name, course) = (sender.flow, sender.name(), sender.course);
        let (news, mut scene) = self.speak(out);
        news.finish(name, course, &mut scene);
        let line = (flow.src, flow.dst, self.news.names.tenant_of_index(name.2));
        let Some(waiting) = self.waiting.get_mut(&line) else { return };
        let next = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(&line);
        }
        next.into_iter().for_each(|key| self.announce(key, out));
        self.serve_controller(flow.src, out);
    }

    /// A flow is announced, and sends at once (§3.1); or waits until there is an index for it.
    fn announce(&mut self, key: FlowKey, out: &mut Outbox) {
        let flow = *self.senders.flow(key);
        let (src, dst, now) = (flow.src, flow.dst, out.now());
        let tenant = self.news.names.tenant_of_class(flow.class.get().into());
        let Some((index, number)) = self.news.names.start((src, dst), tenant, now) else {
            return self.waiting.entry((src, dst, tenant)).or_default().push_back(key);
        };
        let (course, terms) = self.senders.decide(&flow, &self.maps);
        let (news, mut scene) = self.speak(out);
        let name = ((src, dst, index), number);
        let fact = news.start(name, (course.protocol, terms), &mut scene);
        self.senders.get_mut(key).course = course;
        self.senders.start(key, index, fact, now);
        self.pace.has_flows(src, out);
        let Self { pace, senders, news, maps, neighbours, plan, .. } = self;
        let topology = &plan.network.topology;
        pace.flow_starts(src, senders, news, &mut Scene { topology, maps, neighbours, out });
        self.follow_event(src, out);
        self.selector.has_flows(src, out);
        self.watch(key, out);
        out.wake(src);
    }

    /// A flow to whose destination no way leads, as far as its source knows, sends nothing: it looks again.
    fn watch(&self, key: FlowKey, out: &mut Outbox) {
        let flow = self.senders.flow(key);
        let is_reached = self.maps.of(flow.src).routes.leads(flow.src, flow.dst);
        let is_told = self.plan.network.config.failures.oracle;
        if let Some(patience) = self.patience.filter(|_| !is_reached && !is_told) {
            out.set_timer(Timer::Flow(key, ASK), out.now() + patience);
        }
    }

    /// Whether a node knows of any flow in the rack.
    fn knows_flows(&self, node: NodeId) -> bool {
        self.news.facts.known(node).next().is_some()
    }

    /// A node has heard a broadcast: if there are flows it takes part in what is done as long as there are.
    fn note_flows(&mut self, node: NodeId, out: &mut Outbox) {
        let is_of_use = self.neighbours.can_fail() || self.selector.searches();
        if is_of_use && self.knows_flows(node) {
            self.neighbours.wake(node, out);
            self.selector.has_flows(node, out);
        }
    }

    /// `node` knows of one event more, by its own doing or another's.
    fn follow_event(&mut self, node: NodeId, out: &mut Outbox) {
        if self.news.central.is_some() {
            return self.serve_controller(node, out);
        }
        if self.pace.follows_every_event() {
            self.recompute(node, out);
        }
    }

    /// A node computes the rates of its flows.
    fn recompute(&mut self, node: NodeId, out: &mut Outbox) {
        let Self { pace, senders, news, maps, neighbours, plan, .. } = self;
        let scene = Scene { topology: &plan.network.topology, maps, neighbours, out };
        pace.recompute(node, senders, news, scene);
    }

    /// A data packet has reached the destination of its flow.
    fn take(&mut self, packet: &Packet, out: &mut Outbox) {
        let key = packet.flow;
        let Some(arrival) = self.receivers.arrive(packet, out) else { return out.unexpected() };
        match (arrival, self.patience) {
            (Arrival::Last, patience) => {
                out.complete(key);
                if patience.is_some() {
                    self.answer(self.receivers.control(key, kinds::ACK, 0), out);
                }
                self.open[self.receivers.close(key).index()] -= 1;
                out.close(key);
            }
            (Arrival::AskedLast, Some(_)) => self.ask(key, out),
            // A packet that comes again, as its source asks, does not put off the answer.
            (Arrival::New, Some(patience)) => {
                out.set_timer(Timer::Flow(key, ASK), out.now() + patience);
            }
            (Arrival::Again, _) | (_, None) => {}
        }
    }

    /// A destination sends a word to the source of a flow, by a shortest path.
    fn answer(&mut self, packet: Packet, out: &mut Outbox) {
        let Packet { src, dst, .. } = packet;
        let draw = &mut self.draws[src.index()];
        let route = self.maps.of(src).routes.draw(Protocol::Rps, src, dst, draw);
        let Some(route) = route else { return };
        out.send(packet.with_route(route.bits()));
    }

    /// `node` hears which protocols a search has found for flows, some of them its own.
    fn switch_own(&mut self, node: NodeId, found: &Assignments, out: &mut Outbox) {
        for pair in found.pairs.iter().filter(|pair| pair.source == node) {
            let protocol = self.maps.of(node).usable(pair.protocol);
            let to = (pair.destination, pair.index);
            for key in self.senders.meant(node, to, protocol) {
                let sender = self.senders.get(key);
                let (name, terms) = (sender.name(), self.news.facts.fact(sender.fact).terms);
                let (news, mut scene) = self.speak(out);
                let fact = news.change(name, Event::Route, (protocol, terms), &mut scene);
                let sender = self.senders.get_mut(key);
                (sender.fact, sender.course.protocol) = (fact, protocol);
            }
        }
    }

    /// The destination of a flow asks for what is missing, and will again.
    fn ask(&mut self, key: FlowKey, out: &mut Outbox) {
        let patience = self.patience.expect("packets are asked for where they get lost");
        let missing = self.receivers.missing(key);
        self.answer(self.receivers.control(key, kinds::NACK, missing), out);
        out.set_timer(Timer::Flow(key, ASK), out.now() + patience);
    }

    /// Nothing has come to the destination of a flow for a while: it asks for what is missing.
    fn miss(&mut self, key: FlowKey, out: &mut Outbox) {
        self.ask(key, out);
        out.in_vain(key);
    }

    /// The source of a flow has heard nothing for a while: it asks. Where an oracle tells that no way will
    /// lead to its destination any more, it waits longer each time, and at last gives up: there is nobody
    /// left to say whether all has arrived.
    fn probe(&mut self, key: FlowKey, out: &mut Outbox) {
        let patience = self.patience.expect("timers of flows run where packets get lost");
        let flow = *self.senders.flow(key);
        let is_reached = self.maps.of(flow.src).routes.leads(flow.src, flow.dst);
        if !self.senders.get(key).is_over() {
            // It has not sent all, for there was no way to go.
            self.watch(key, out);
            if !is_reached {
                out.in_vain(key);
            }
            return;
        }
        let is_hopeless = !is_reached && self.hopeless_after.is_some_and(|last| out.now() > last);
        let times = self.senders.asks(key, is_hopeless);
        if times > PROBES_MAX {
            return out.give_up(key);
        }
        self.senders.probe(key, out);
        let wait = Span::from_ps(patience.as_ps().saturating_mul(1 << times)).min(SPAN_MAX);
        out.set_timer(Timer::Flow(key, ASK), out.now() + wait);
        out.in_vain(key);
    }

    /// What the destination of a flow says to its source.
    fn hear_destination(&mut self, packet: &Packet, out: &mut Outbox) {
        let key = packet.flow;
        match packet.kind {
            kinds::NACK => {
                if !self.senders.send_again(key, packet.seq, out) {
                    out.unexpected();
                }
            }
            kinds::ACK if self.senders.get(key).is_over() => {
                self.senders.forget(key);
                self.close(key, out);
            }
            _ => out.unexpected(),
        }
    }
}

impl Transport for Endpoints {
    fn name(&self) -> &'static str {
        "r2c2"
    }

    fn timers(&self) -> Timers {
        let may_ask = self.news.central.is_some() && self.plan.has_faults();
        Timers { flow: 1, host: if may_ask { 7 } else { 6 } }
    }

    fn codec(&self) -> Arc<dyn Codec> {
        Arc::new(frames::Frames::new(&self.plan.network.topology))
    }

    fn framing(&self) -> Framing {
        self.framing
    }

    fn speaks_to_neighbours(&self) -> bool {
        true
    }

    fn repairs_links(&self) -> bool {
        true
    }

    fn start(&mut self, opening: &Opening, out: &mut Outbox) {
        let Opening { key, flow, .. } = *opening;
        self.open[flow.src.index()] += 1;
        self.neighbours.wake(flow.src, out);
        let (course, _) = self.senders.decide(&flow, &self.maps);
        self.senders.enter(key, flow, course);
        self.announce(key, out);
    }

    fn accept(&mut self, packet: &Packet, _: FlowKey, out: &mut Outbox) {
        self.receivers.open(packet);
        self.open[packet.dst.index()] += 1;
        self.neighbours.wake(packet.dst, out);
    }

    fn receive(&mut self, host: NodeId, packet: &Packet, out: &mut Outbox) {
        if packet.flow != FlowKey::NEIGHBOURS {
            return match (packet.flow.is_receivers(), packet.kind) {
                (true, Kind::DATA) => self.take(packet, out),
                (true, _) => out.unexpected(),
                (false, _) => self.hear_destination(packet, out),
            };
        }
        if matches!(packet.kind, kinds::GREETING | kinds::LINK_STATE) {
            return match self.neighbours.hear(host, packet, out) {
                Some(port) => self.news.repeat_cut(port, out),
                None => out.unexpected(),
            };
        }
        if packet.kind == kinds::CENTRAL {
            return self.hear_central(host, packet, out);
        }
        if !matches!(packet.kind, kinds::NOTICE | kinds::NACK) {
            return out.unexpected();
        }
        let (news, mut scene) = self.speak(out);
        let Some(by) = news.hear(host, packet, &mut scene) else { return };
        self.note_flows(host, out);
        if let Some(found) = self.news.take_found() {
            self.selector.heard(host, by, out);
            self.switch_own(host, &found, out);
        }
        self.follow_event(host, out);
    }

    fn timer(&mut self, timer: Timer, out: &mut Outbox) {
        match timer {
            Timer::Host(host, SEARCH) => {
                let Self { selector, pace, news, maps, neighbours, plan, .. } = self;
                let scene = Scene { topology: &plan.network.topology, maps, neighbours, out };
                for found in selector.turn(host, pace, news, scene) {
                    self.switch_own(host, &found, out);
                }
            }
            Timer::Host(host, REPEAT) => {
                let (news, mut scene) = self.speak(out);
                news.repeat(host, &mut scene);
            }
            Timer::Host(host, GREET) => {
                let has_flows = self.open[host.index()] > 0 || self.knows_flows(host);
                self.neighbours.greet(host, has_flows, out);
            }
            Timer::Host(host, ADOPT) => self.adopt(host, out),
            Timer::Host(host, LOOK) => {
                let (news, mut scene) = self.speak(out);
                news.look_for_unreachable(host, &mut scene);
                if let Some(central) = news.central.as_mut().filter(|one| one.is_at(host)) {
                    central.set_due();
                    self.serve_controller(host, out);
                }
            }
            Timer::Host(host, ANSWER) => self.await_answer(host, out),
            Timer::Host(host, _) if self.news.central.is_some() => self.tick_centrally(host, out),
            Timer::Host(host, _) => {
                if self.pace.tick(host, &self.senders, out) {
                    self.recompute(host, out);
                }
            }
            Timer::Flow(key, _) if key.is_receivers() => self.miss(key, out),
            Timer::Flow(key, _) => self.probe(key, out),
        }
    }

    fn pull(&mut self, host: NodeId, _: Line<'_>, out: &mut Outbox) -> Option<Packet> {
        let draw = &mut self.draws[host.index()];
        let (packet, was_last) = self.senders.pull(host, &self.maps, draw, out)?;
        if was_last {
            self.sent_all(packet.flow, out);
        }
        Some(packet)
    }

    fn stray(&mut self, packet: &Packet, out: &mut Outbox) {
        if packet.is_data() && !packet.goes_to_source() {
            let ack = answer(packet, kinds::ACK, self.framing.header);
            self.answer(Packet { priority: DATA_PRIORITY, ..ack }, out);
        }
    }

    fn abandon(&mut self, key: FlowKey, out: &mut Outbox) {
        if key.is_receivers() {
            self.open[self.receivers.close(key).index()] -= 1;
            return;
        }
        let source = self.senders.flow(key).src;
        self.open[source.index()] -= 1;
        if self.senders.abandon(key) {
            self.finish(key, out);
        }
        self.waiting.retain(|_, keys| {
            keys.retain(|&other| other != key);
            !keys.is_empty()
        });
    }

    fn unheard(&mut self, packet: &Packet, why: Loss, out: &mut Outbox) {
        let (news, mut scene) = self.speak(out);
        news.unheard(packet, why, &mut scene);
    }

    fn check(&self) -> Result<(), String> {
        self.news.check()
    }

    fn can_be_cut(&self) -> bool {
        true
    }

    fn add_counts(&mut self, other: &Self) {
        self.news.add_counts(&other.news);
        self.neighbours.add_told(&other.neighbours);
        self.pace.add_computations(&other.pace);
        self.selector.add_counts(&other.selector);
        self.receivers.add_held(&other.receivers);
    }

    fn details(&self, _: Time) -> Map<String, Value> {
        let mut details = Map::new();
        details.insert("broadcasts".into(), json!(self.news.counts()));
        if let Some(central) = &self.news.central {
            details.insert("controller".into(), json!(central.counts()));
        }
        details.insert("greetings".into(), json!(self.neighbours.told()));
        details.insert("computations".into(), json!(self.pace.computations()));
        let (searches, changes) = self.selector.counts();
        details.insert("searches".into(), json!(searches));
        details.insert("protocols_changed".into(), json!(changes));
        details.insert("packets_held_p95".into(), json!(self.receivers.held_p95()));
        let by_node = self.receivers.held_by_node_p95();
        details.insert("packets_held_by_node_p95".into(), json!(by_node));
        details.insert("packets_held_max".into(), json!(self.receivers.held_max()));
        details
    }
}

/// `count` packets' bytes, of a size that only the last falls short of.
fn bytes_of(framing: Framing, size: Bytes, packet: u64) -> (u16, u16) {
    let payload = framing.payload_of(size, packet);
    (payload, payload + framing.header)
}

/// A stream for each of `nodes`.
fn streams(nodes: u32, seed: u64, purpose: &'static str) -> Vec<Stream> {
    (0..u64::from(nodes)).map(|node| Stream::new(seed, purpose, node)).collect()
}
