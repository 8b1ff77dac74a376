//! What runs on the nodes: all of R2C2's stack above the links (§3), as a transport of the packet
//! network.
//!
//! A flow's life (§3.1): its source announces it to all nodes by a broadcast and sends at once; every
//! node computes, each in its own time and from what it has heard, the rates of its own flows, and
//! holds each to its rate by a token bucket; each packet goes by the route that its source drew;
//! when the last is sent, the source announces the flow's end.
//!
//! Nodes know of each other what broadcasts told them ([`crate::view`]), and of links what greetings
//! and others told them ([`crate::discovery`]). What several of them would compute alike (routes,
//! shares, trees) is kept once ([`maps`]).
//!
//! Reading order: [`senders`], [`receivers`], [`news`] (broadcasts), [`pace`] (rates), [`neighbours`]
//! (greetings), [`failures`].

mod failures;
mod maps;
mod neighbours;
mod news;
mod pace;
mod receivers;
mod repeats;
mod selector;
mod senders;
#[cfg(test)]
mod tests;

use kernel::{Bytes, Span, Stream, Time};
use packets::{
    FlowKey, Framing, Kind, Line, Loss, Opening, Outbox, Packet, Timer, Timers, Transport,
};
use rack::NodeId;
use serde_json::{Map, Value, json};

use crate::config::Plan;
use crate::view::Event;
use maps::Maps;
use neighbours::Neighbours;
use news::{Allocation, News, Scene};
use pace::Pace;
use receivers::Receivers;
use selector::Selector;
use senders::Senders;

/// A flow's timer at its source, where packets can be lost: it asks whether all has arrived.
const PROBE: u8 = 0;
/// A flow's timer at its destination: it asks for what is missing.
const MISSING: u8 = 1;
/// A host's timer: its next computation of rates.
const TICK: u8 = 0;
/// A host's timer: it says again what was dropped.
const REPEAT: u8 = 1;
/// A host's timer: its turn to search for better routing.
const SEARCH: u8 = 2;
/// A host's timer: it greets its neighbours.
const GREET: u8 = 3;
/// A host's timer: it goes by what it has heard of links.
const ADOPT: u8 = 4;
/// A host's timer, that of the first for all: something is about to fail or to return.
const EXPECT: u8 = 5;

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
    /// How long a flow's end waits for what is lost; `None` where nothing can be.
    patience: Option<Span>,
    /// Flows that are not closed.
    open: u64,
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
            senders: Senders::new(plan, seed),
            receivers: Receivers::new(framing, plan.nodes()),
            news: News::new(plan, seed),
            pace: Pace::new(plan, seed),
            selector: Selector::new(plan, seed),
            patience: plan.can_lose().then_some(plan.config.recovery.patience),
            open: 0,
        }
    }

    /// What tells nodes of flows, and where it does.
    fn speak<'a>(&'a mut self, out: &'a mut Outbox) -> (&'a mut News, Scene<'a>) {
        let Self { news, maps, neighbours, plan, .. } = self;
        (news, Scene { topology: &plan.network.topology, maps, neighbours, out })
    }

    /// Nothing is left of a flow.
    fn close(&mut self, key: FlowKey, out: &mut Outbox) {
        self.open -= 1;
        out.close(key);
    }

    /// A flow has nothing more to send: all nodes are told, once.
    fn sent_all(&mut self, key: FlowKey, out: &mut Outbox) {
        let source = self.senders.flow(key).src;
        let record = self.senders.end(key);
        let (news, mut scene) = self.speak(out);
        news.finish(source, record, &mut scene);
        self.follow_event(source, out);
        if let Some(patience) = self.patience {
            out.set_timer(Timer::Flow(key, PROBE), out.now() + patience);
        }
    }

    /// `node` knows of one event more, by its own doing or another's.
    fn follow_event(&mut self, node: NodeId, out: &mut Outbox) {
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

    /// The destination has all of a flow.
    fn received_all(&mut self, key: FlowKey, out: &mut Outbox) {
        out.complete(key);
        match self.patience {
            None => self.close(key, out),
            Some(_) => {
                out.cancel_timer(Timer::Flow(key, MISSING));
                self.senders.control(key, (Kind::Ack, 0), &self.maps, out);
            }
        }
    }

    /// `node` hears that flows use other protocols now, some of them its own.
    fn switch_own(&mut self, node: NodeId, event: &Event, out: &mut Outbox) {
        let Event::Routes(pairs) = event else { return };
        for &(old, new) in pairs {
            let course = self.news.views.record(new).allocation.course;
            // One that was void before it came is of nobody's concern.
            if course.source != node || !self.news.views.knows(node.get(), new) {
                continue;
            }
            let protocol = self.maps.of(node).usable(course.protocol);
            if !self.senders.switch(node, (old, new), protocol) {
                // It has ended or changed meanwhile.
                let (news, mut scene) = self.speak(out);
                news.finish(node, new, &mut scene);
            }
        }
    }

    /// The destination of a flow asks for what is missing, and will again.
    fn ask(&mut self, key: FlowKey, out: &mut Outbox) {
        let patience = self.patience.expect("packets are asked for where they get lost");
        let missing = self.receivers.missing(key);
        self.senders.control(key, (Kind::Nack, missing), &self.maps, out);
        out.set_timer(Timer::Flow(key, MISSING), out.now() + patience);
    }

    /// The source of a flow has heard nothing for a while: it asks. If no way leads to its destination
    /// any more, and all had arrived there, there is nobody left to say so, and nothing left to do.
    fn probe(&mut self, key: FlowKey, out: &mut Outbox) {
        let flow = *self.senders.flow(key);
        let is_reached = self.maps.of(flow.src).routes.leads(flow.src, flow.dst);
        if !is_reached && self.receivers.has_all(key) {
            self.senders.forget(key);
            return self.close(key, out);
        }
        let patience = self.patience.expect("timers of flows run where packets get lost");
        self.senders.probe(key, out);
        out.set_timer(Timer::Flow(key, PROBE), out.now() + patience);
    }

    /// What comes for a flow of this node from its other end.
    fn receive_of_flow(&mut self, packet: &Packet, out: &mut Outbox) {
        let key = packet.flow;
        match packet.kind {
            Kind::Data => {
                let arrival = self.receivers.arrive(packet, out);
                if arrival.is_last {
                    self.received_all(key, out);
                } else if arrival.is_repeat && self.receivers.has_all(key) {
                    // The word that all is there was lost.
                    self.senders.control(key, (Kind::Ack, 0), &self.maps, out);
                } else if arrival.leaves_more {
                    self.ask(key, out);
                } else if let Some(patience) = self.patience.filter(|_| !arrival.is_repeat) {
                    // A packet that comes again, as its source asks, does not put off the answer.
                    out.set_timer(Timer::Flow(key, MISSING), out.now() + patience);
                }
            }
            Kind::Nack => self.senders.send_again(key, packet.seq, out),
            Kind::Ack => {
                self.senders.forget(key);
                out.cancel_timer(Timer::Flow(key, PROBE));
                self.close(key, out);
            }
            other => unreachable!("R2C2 sends no {other:?} for a flow"),
        }
    }
}

impl Transport for Endpoints {
    fn name(&self) -> &'static str {
        "r2c2"
    }

    fn timers(&self) -> Timers {
        Timers { flow: 2, host: 6 }
    }

    fn framing(&self) -> Framing {
        self.framing
    }

    fn speaks_to_neighbours(&self) -> bool {
        true
    }

    fn begin(&mut self, out: &mut Outbox) {
        self.neighbours.expect_changes(out);
    }

    fn start(&mut self, opening: &Opening, out: &mut Outbox) {
        let Opening { key, flow, .. } = *opening;
        self.open += 1;
        self.neighbours.wake(out);
        let (course, terms) = self.senders.decide(&flow, &self.maps);
        let tenant = flow.class.get().into();
        let allocation = Allocation { course, terms, since: flow.start, tenant };
        let (news, mut scene) = self.speak(out);
        let record = news.start(flow.src, allocation, &mut scene);
        self.senders.start(key, flow, course, record);
        self.receivers.start(key, flow.size);
        self.pace.has_flows(flow.src, out);
        let Self { pace, senders, news, maps, neighbours, plan, .. } = self;
        let topology = &plan.network.topology;
        pace.flow_starts(flow.src, senders, news, &mut Scene { topology, maps, neighbours, out });
        self.follow_event(flow.src, out);
        self.selector.has_flows(out);
        out.wake(flow.src);
    }

    fn receive(&mut self, host: NodeId, packet: &Packet, out: &mut Outbox) {
        if packet.flow != FlowKey::NEIGHBOURS {
            return self.receive_of_flow(packet, out);
        }
        if matches!(packet.kind, Kind::Greeting | Kind::LinkState) {
            let port = self.neighbours.hear(host, packet, out);
            return self.news.repeat_cut(port, out);
        }
        let (news, mut scene) = self.speak(out);
        let Some((by, event)) = news.hear(host, packet, &mut scene) else { return };
        if let Some(event) = event {
            self.selector.heard(host, by, out);
            self.switch_own(host, &event, out);
        }
        self.follow_event(host, out);
    }

    fn timer(&mut self, timer: Timer, out: &mut Outbox) {
        match timer {
            Timer::Host(host, SEARCH) => {
                let Self { selector, pace, news, maps, neighbours, plan, .. } = self;
                let scene = Scene { topology: &plan.network.topology, maps, neighbours, out };
                for event in selector.turn(host, pace, news, scene) {
                    self.switch_own(host, &event, out);
                }
            }
            Timer::Host(host, REPEAT) => {
                let (news, mut scene) = self.speak(out);
                news.repeat(host, &mut scene);
            }
            Timer::Host(host, GREET) => self.neighbours.greet(host, self.open > 0, out),
            Timer::Host(host, ADOPT) => self.adopt(host, out),
            Timer::Host(_, EXPECT) => self.neighbours.expect_changes(out),
            Timer::Host(host, _) => {
                if self.pace.tick(host, &self.senders, out) {
                    self.recompute(host, out);
                }
            }
            Timer::Flow(key, PROBE) => self.probe(key, out),
            Timer::Flow(key, _) => self.ask(key, out),
        }
    }

    fn pull(&mut self, host: NodeId, _: Line<'_>, out: &mut Outbox) -> Option<Packet> {
        let (packet, was_last) = self.senders.pull(host, &self.maps, out)?;
        if was_last {
            self.sent_all(packet.flow, out);
        }
        Some(packet)
    }

    fn abandon(&mut self, key: FlowKey, out: &mut Outbox) {
        let source = self.senders.flow(key).src;
        self.open -= 1;
        if let Some(record) = self.senders.abandon(key) {
            let (news, mut scene) = self.speak(out);
            news.finish(source, record, &mut scene);
        }
    }

    fn unheard(&mut self, packet: &Packet, why: Loss, out: &mut Outbox) {
        let (news, mut scene) = self.speak(out);
        news.unheard(packet, why, &mut scene);
    }

    fn check(&self) -> Result<(), String> {
        self.news.check()
    }

    fn details(&self, _: Time) -> Map<String, Value> {
        let mut details = Map::new();
        details.insert("broadcasts".into(), json!(self.news.counts()));
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
