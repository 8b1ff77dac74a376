//! What runs on the nodes: all of R2C2's stack above the links (§3), as a transport of the packet
//! network.
//!
//! A flow's life (§3.1): its source announces it to all nodes by a broadcast and sends at once; every
//! node computes, each in its own time and from what it has heard, the rates of its own flows, and
//! holds each to its rate by a token bucket; each packet goes by the route that its source drew;
//! when the last is sent, the source announces the flow's end.
//!
//! Nodes know of each other what broadcasts told them ([`crate::view`]). What all of them would
//! compute alike (routes, shares, trees) is kept once.
//!
//! Reading order: [`senders`], [`receivers`], [`news`] (broadcasts), [`pace`] (rates), [`failures`].

mod failures;
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
    FlowKey, Framing, Kind, Line, Live, Loss, Opening, Outbox, Packet, Timer, Timers, Transport,
};
use rack::NodeId;
use serde_json::{Map, Value, json};

use crate::config::Plan;
use crate::view::Event;
use news::{Allocation, News};
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

/// The endpoints of all nodes.
#[derive(Clone, Debug)]
pub struct Endpoints {
    plan: Plan,
    seed: u64,
    framing: Framing,
    senders: Senders,
    receivers: Receivers,
    news: News,
    pace: Pace,
    selector: Selector,
    /// How long a flow's end waits for what is lost; `None` where nothing can be.
    patience: Option<Span>,
}

impl Endpoints {
    /// Idle nodes. `seed` is that of all chance in them.
    #[must_use]
    pub fn new(plan: &Plan, seed: u64) -> Self {
        let (framing, wiring) = (plan.framing(), plan.wiring(seed));
        Self {
            plan: plan.clone(),
            seed,
            framing,
            senders: Senders::new(plan, seed),
            receivers: Receivers::new(framing, plan.nodes()),
            news: News::new(plan, wiring.trees, seed),
            pace: Pace::new(plan, wiring.filling, seed),
            selector: Selector::new(plan, seed),
            patience: plan.can_lose().then_some(plan.config.recovery.patience),
        }
    }

    /// A flow has nothing more to send: all nodes are told, once.
    fn sent_all(&mut self, key: FlowKey, out: &mut Outbox) {
        let source = self.senders.flow(key).src;
        let record = self.senders.end(key);
        self.news.finish(source, record, out);
        self.follow_event(source, out);
        if let Some(patience) = self.patience {
            out.set_timer(Timer::Flow(key, PROBE), out.now() + patience);
        }
    }

    /// `node` knows of one event more, by its own doing or another's.
    fn follow_event(&mut self, node: NodeId, out: &mut Outbox) {
        if self.pace.follows_every_event() {
            self.pace.recompute(node, &mut self.senders, &mut self.news, out);
        }
    }

    /// The destination has all of a flow.
    fn received_all(&mut self, key: FlowKey, out: &mut Outbox) {
        out.complete(key);
        match self.patience {
            None => out.close(key),
            Some(_) => {
                out.cancel_timer(Timer::Flow(key, MISSING));
                self.senders.control(key, Kind::Ack, 0, out);
            }
        }
    }

    /// `node` hears that flows use other protocols now, some of them its own.
    fn switch_own(&mut self, node: NodeId, event: &Event, out: &mut Outbox) {
        let Event::Routes(pairs) = event else { return };
        for &(old, new) in pairs {
            let course = self.news.views.record(new).allocation.course;
            if course.source != node {
                continue;
            }
            if self.senders.switch(node, (old, new), course.protocol) {
                self.news.views.retire(old);
            } else {
                // It has ended or changed meanwhile.
                self.news.finish(node, new, out);
            }
        }
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
                    self.senders.control(key, Kind::Ack, 0, out);
                } else if let Some(patience) = self.patience {
                    out.set_timer(Timer::Flow(key, MISSING), out.now() + patience);
                }
            }
            Kind::Nack => self.senders.send_again(key, packet.seq, out),
            Kind::Ack => {
                self.senders.forget(key);
                out.cancel_timer(Timer::Flow(key, PROBE));
                out.close(key);
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
        Timers { flow: 2, host: 3 }
    }

    fn framing(&self) -> Framing {
        self.framing
    }

    fn speaks_to_neighbours(&self) -> bool {
        true
    }

    fn start(&mut self, opening: &Opening, out: &mut Outbox) {
        let Opening { key, flow, .. } = *opening;
        let (course, terms) = self.senders.decide(&flow);
        let tenant = flow.class.get().into();
        let allocation = Allocation { course, terms, since: flow.start, tenant };
        let record = self.news.start(flow.src, allocation, out);
        self.senders.start(key, flow, course, record);
        self.receivers.start(key, flow.size);
        self.pace.has_flows(flow.src, out);
        self.pace.flow_starts(flow.src, &mut self.senders, &self.news, out);
        self.follow_event(flow.src, out);
        self.selector.has_flows(out);
        out.wake(flow.src);
    }

    fn receive(&mut self, host: NodeId, packet: &Packet, out: &mut Outbox) {
        if packet.flow != FlowKey::NEIGHBOURS {
            return self.receive_of_flow(packet, out);
        }
        let Some((by, event)) = self.news.hear(host, packet, out) else { return };
        if let Some(event) = event {
            self.selector.heard(host, by, out);
            self.switch_own(host, &event, out);
        }
        self.follow_event(host, out);
    }

    fn timer(&mut self, timer: Timer, out: &mut Outbox) {
        match timer {
            Timer::Host(host, SEARCH) => {
                let news = &mut self.news;
                for event in self.selector.turn(host, &mut self.pace, news, out) {
                    self.switch_own(host, &event, out);
                }
            }
            Timer::Host(host, REPEAT) => self.news.repeat(host, out),
            Timer::Host(host, _) => self.pace.tick(host, &mut self.senders, &mut self.news, out),
            Timer::Flow(key, PROBE) => {
                let patience = self.patience.expect("timers of flows run where packets get lost");
                self.senders.probe(key, out);
                out.set_timer(timer, out.now() + patience);
            }
            Timer::Flow(key, _) => {
                let patience = self.patience.expect("timers of flows run where packets get lost");
                let missing = self.receivers.missing(key);
                self.senders.control(key, Kind::Nack, missing, out);
                out.set_timer(timer, out.now() + patience);
            }
        }
    }

    fn pull(&mut self, host: NodeId, _: Line<'_>, out: &mut Outbox) -> Option<Packet> {
        let (packet, was_last) = self.senders.pull(host, out)?;
        if was_last {
            self.sent_all(packet.flow, out);
        }
        Some(packet)
    }

    fn abandon(&mut self, key: FlowKey, out: &mut Outbox) {
        let source = self.senders.flow(key).src;
        if let Some(record) = self.senders.abandon(key) {
            self.news.finish(source, record, out);
        }
    }

    fn unheard(&mut self, packet: &Packet, why: Loss, out: &mut Outbox) {
        self.news.unheard(packet, why, out);
    }

    fn routes_changed(&mut self, works: &Live, out: &mut Outbox) {
        self.rewire(works, out);
    }

    fn check(&self) -> Result<(), String> {
        self.news.check()
    }

    fn details(&self, _: Time) -> Map<String, Value> {
        let mut details = Map::new();
        details.insert("broadcasts".into(), json!(self.news.counts()));
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
