//! Greetings on the wire: how nodes come to know which links and nodes work (§3.2,
//! [`crate::discovery`]).
//!
//! Greetings are sent from two intervals before anything of the plan fails or returns until all can know
//! of it, and while flows are open; elsewhere they would tell nothing, take a millionth of each link, and
//! keep a rack busy in which nothing happens for long (**our choice**). Where nothing can fail there are none.
//! They and the states of links go before all else in a queue, so that a long one is not taken for a
//! dead link (**our choice**).

use std::sync::Arc;

use kernel::{Span, Stream, Time};
use packets::{FlowKey, Kind, Outbox, Packet, Timer};
use rack::NodeId;
use rack::topology::{PortId, Topology};

use crate::config::Plan;
use crate::discovery::{Discovery, Word};
use crate::wire::{self, Message};

use super::{ADOPT, EXPECT, GREET};

/// The priority of greetings and states of links.
const PRIORITY: u8 = 0;

/// What nodes say and hear of links.
#[derive(Clone, Debug)]
pub(super) struct Neighbours {
    /// `None` where nothing fails.
    discovery: Option<Discovery>,
    topology: Arc<Topology>,
    interval: Span,
    hold: Span,
    /// When something fails or returns, in order; and how long before that and after it greetings are
    /// sent though there is no flow.
    changes: Vec<Time>,
    before: Span,
    after: Span,
    /// By node: when in an interval it greets, whether it is going to, and whether it is going to
    /// adopt another map.
    phases: Vec<Span>,
    greets: Vec<bool>,
    is_due: Vec<bool>,
    silent: u32,
    words: Vec<(PortId, Word)>,
    /// Greetings and states of links that were sent.
    told: u64,
}

impl Neighbours {
    pub(super) fn new(plan: &Plan, seed: u64) -> Self {
        let (nodes, config) = (plan.nodes(), plan.config.discovery);
        let topology = Arc::new(plan.network.topology.clone());
        let changes = plan.changes();
        let fails = !changes.is_empty();
        let phase = |node| {
            let mut draw = Stream::new(seed, "r2c2/greetings", u64::from(node));
            Span::from_ps(draw.below(config.interval.as_ps()))
        };
        Self {
            discovery: fails.then(|| Discovery::new(Arc::clone(&topology), config.missed)),
            topology,
            interval: config.interval,
            hold: config.hold,
            changes,
            before: config.interval * 2,
            after: config.duration(),
            phases: (0..nodes).map(phase).collect(),
            greets: vec![false; nodes as usize],
            is_due: vec![false; nodes as usize],
            silent: if fails { nodes } else { 0 },
            words: Vec::new(),
            told: 0,
        }
    }

    /// Whether a port's link lives, as the node at its end knows.
    #[inline]
    pub(super) fn lives(&self, port: PortId) -> bool {
        self.discovery.as_ref().is_none_or(|discovery| discovery.lives(port))
    }

    /// Whether a node has heard of changes by which it does not go yet.
    pub(super) fn has_news(&self, node: NodeId) -> bool {
        self.discovery.as_ref().is_some_and(|discovery| discovery.has_news(node))
    }

    /// How many greetings and states of links were sent.
    pub(super) fn told(&self) -> u64 {
        self.told
    }

    /// Whether something of the plan is still to fail or to return, or to be known by all.
    pub(super) fn expects_more(&self, now: Time) -> bool {
        self.changes.last().is_some_and(|&last| now <= last + self.after)
    }

    /// Whether there is something to find out, flows or not.
    fn expects_change(&self, now: Time) -> bool {
        let next = self.changes.partition_point(|&change| change + self.after < now);
        self.changes.get(next).is_some_and(|&change| change <= now + self.before)
    }

    /// Nodes greet if there is something to find out now, and again before the next change.
    pub(super) fn expect_changes(&mut self, out: &mut Outbox) {
        let now = out.now();
        if self.expects_change(now) {
            self.wake(out);
        }
        let next = self.changes.partition_point(|&change| change <= now + self.before);
        if let Some(&change) = self.changes.get(next) {
            out.set_timer(
                Timer::Host(NodeId::new(0), EXPECT),
                Time::ZERO + (change - Time::ZERO - self.before),
            );
        }
    }

    /// There is something to find out: all nodes greet.
    pub(super) fn wake(&mut self, out: &mut Outbox) {
        if self.silent == 0 {
            return;
        }
        self.silent = 0;
        if let Some(discovery) = &mut self.discovery {
            discovery.resume();
        }
        for node in 0..self.greets.len() {
            if !std::mem::replace(&mut self.greets[node], true) {
                let timer = Timer::Host(NodeId::new(node as u32), GREET);
                out.set_timer(timer, out.now() + self.phases[node]);
            }
        }
    }

    /// A node greets its neighbours; it will again, if there is anything to find out.
    pub(super) fn greet(&mut self, node: NodeId, has_flows: bool, out: &mut Outbox) {
        let Some(discovery) = &mut self.discovery else { return };
        discovery.greet(node, &mut self.words);
        self.say(node, out);
        let next = out.now() + self.interval;
        if has_flows || self.expects_change(next) {
            out.set_timer(Timer::Host(node, GREET), next);
        } else {
            self.greets[node.index()] = false;
            self.silent += 1;
        }
    }

    /// A node hears a greeting, or a state of links. The port by which it does.
    pub(super) fn hear(&mut self, node: NodeId, packet: &Packet, out: &mut Outbox) -> PortId {
        let sent =
            self.topology.ports_of(self.topology.host(packet.src)).nth(packet.entropy.into());
        let port = self.topology.port(sent.expect("a packet has its port with it")).reverse;
        let discovery = self.discovery.as_mut().expect("only they who discover send such");
        let bytes = [packet.ack.to_be_bytes(), packet.word.to_be_bytes()].concat();
        match wire::decode(&bytes, self.topology.hosts()) {
            Ok(Message::Hello(hello)) => discovery.hear_hello(port, &hello, &mut self.words),
            Ok(Message::LinkState(state)) => discovery.hear_state(port, &state, &mut self.words),
            other => unreachable!("{other:?} from a neighbour"),
        }
        self.say(node, out);
        port
    }

    /// The links that a node takes to be dead, now that it adopts another map.
    pub(super) fn adopt(&mut self, node: NodeId) -> Vec<PortId> {
        self.is_due[node.index()] = false;
        let discovery = self.discovery.as_mut().expect("only they who discover adopt");
        discovery.takes_news(node);
        discovery.dead(node)
    }

    /// Puts on the links what a node is to say, and lets it adopt what it has heard.
    fn say(&mut self, node: NodeId, out: &mut Outbox) {
        let mut ports = self.topology.ports_of(self.topology.host(node));
        let first = ports.next().map_or(0, PortId::get);
        self.told += self.words.len() as u64;
        for (port, word) in self.words.drain(..) {
            let (kind, bytes) = match word {
                Word::Hello(hello) => (Kind::Greeting, hello.encode()),
                Word::State(state) => (Kind::LinkState, state.encode()),
            };
            let packet = Packet {
                flow: FlowKey::NEIGHBOURS,
                src: node,
                kind,
                ack: u64::from_be_bytes(bytes[..8].try_into().expect("eight bytes")),
                word: u64::from_be_bytes(bytes[8..].try_into().expect("eight bytes")),
                entropy: (port.get() - first) as u16,
                wire: wire::SHORT_BYTES as u16,
                priority: PRIORITY,
                ..Packet::default()
            };
            out.tell(port, packet);
        }
        if self.has_news(node) && !std::mem::replace(&mut self.is_due[node.index()], true) {
            out.set_timer(Timer::Host(node, ADOPT), out.now() + self.hold);
        }
    }
}
