//! Greetings on the wire: how nodes come to know which links and nodes work (§3.2,
//! [`crate::discovery`]).
//!
//! A node greets while it has a half of a flow or knows of one; elsewhere greetings would be of no use, take a
//! millionth of each link, and keep an idle rack busy (**our choice**): what fails or returns meanwhile is found
//! out once there is a flow. It asks its neighbours to greet too, and these theirs, up to the diameter of the rack:
//! so a node that does not know yet of the flow is not taken for dead. A node that knows of a dead link asks all
//! nodes, whatever the length of the paths that are left, or that the link's return will open. Nodes do not know
//! what fails when; only where a scenario lets nothing fail at all there are no greetings.
//! They and the states of links go before all else in a queue, so that a long one is not taken for a
//! dead link (**our choice**).

use std::sync::Arc;

use kernel::{Span, Stream};
use packets::{Outbox, Packet, Timer};
use rack::NodeId;
use rack::topology::{PortId, Topology};

use crate::config::Plan;
use crate::discovery::{Discovery, Word};
use crate::endpoint::kinds;
use crate::wire::{self, Message};

use super::frames::{carried, carry};
use super::news::port_of;
use super::{ADOPT, GREET};

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
    /// By node: when in an interval it greets; to how many hops, itself included, it asks nodes to greet,
    /// zero if it does not; and whether it is going to adopt another map.
    phases: Vec<Span>,
    reach: Vec<u8>,
    is_due: Vec<bool>,
    /// By node: the reach if it has something to find out. All nodes: as far as these are apart in the whole
    /// rack, or, if it knows of a dead link, as they may be in what is left.
    wide: Vec<u8>,
    reach_whole: u8,
    words: Vec<(PortId, Word)>,
    /// Greetings and states of links that were sent.
    told: u64,
}

impl Neighbours {
    pub(super) fn new(plan: &Plan, seed: u64) -> Self {
        let (nodes, config) = (plan.nodes(), plan.config.discovery);
        let topology = Arc::new(plan.network.topology.clone());
        let fails = plan.has_faults();
        let reach_whole = if fails { reach_whole(plan) } else { 0 };
        let phase = |node| {
            let mut draw = Stream::new(seed, "r2c2/greetings", u64::from(node));
            Span::from_ps(draw.below(config.interval.as_ps()))
        };
        Self {
            discovery: fails.then(|| Discovery::new(Arc::clone(&topology), config.missed)),
            topology,
            interval: config.interval,
            hold: config.hold,
            phases: (0..nodes).map(phase).collect(),
            reach: vec![0; nodes as usize],
            is_due: vec![false; nodes as usize],
            wide: vec![reach_whole; nodes as usize],
            reach_whole,
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

    /// Adds what other nodes have told.
    pub(super) fn add_told(&mut self, other: &Self) {
        self.told += other.told;
    }

    /// How many greetings and states of links were sent.
    pub(super) fn told(&self) -> u64 {
        self.told
    }

    /// Whether anything can fail.
    pub(super) fn can_fail(&self) -> bool {
        self.discovery.is_some()
    }

    /// A node has something to find out: it greets, and asks all others to.
    pub(super) fn wake(&mut self, node: NodeId, out: &mut Outbox) {
        let phase = self.phases[node.index()];
        self.rise(node, self.wide[node.index()], phase, out);
    }

    /// A node greets from now on, if it has not, first after `wait`.
    fn rise(&mut self, node: NodeId, reach: u8, wait: Span, out: &mut Outbox) {
        let Some(discovery) = &mut self.discovery else { return };
        let had = &mut self.reach[node.index()];
        if *had == 0 && reach > 0 {
            discovery.resume(node);
            out.set_timer(Timer::Host(node, GREET), out.now() + wait);
        }
        *had = reach.max(*had);
    }

    /// A node greets its neighbours; it will again, if there is anything to find out, or as often as it
    /// takes until all that it has asked have heard that there is not.
    pub(super) fn greet(&mut self, node: NodeId, has_flows: bool, out: &mut Outbox) {
        let Some(discovery) = &mut self.discovery else { return };
        discovery.greet(node, self.reach[node.index()], &mut self.words);
        self.say(node, out);
        let next = out.now() + self.interval;
        let asked = self.reach[node.index()].saturating_sub(1);
        let reach = if has_flows { self.wide[node.index()] } else { asked };
        self.reach[node.index()] = reach;
        if reach > 0 {
            out.set_timer(Timer::Host(node, GREET), next);
        }
    }

    /// A node hears a greeting, or a state of links. The port by which it does; none if it makes no sense.
    pub(super) fn hear(
        &mut self,
        node: NodeId,
        packet: &Packet,
        out: &mut Outbox,
    ) -> Option<PortId> {
        let port = self.topology.port(port_of(&self.topology, packet)?).reverse;
        let (bytes, length) = carried(packet)?;
        let message = wire::decode(&bytes[..length], self.topology.hosts()).ok()?;
        if let Message::Hello(hello) = &message {
            // Who is greeted while it is silent answers at once.
            self.rise(node, hello.reach.saturating_sub(1), Span::ZERO, out);
        }
        let discovery = self.discovery.as_mut()?;
        match message {
            Message::Hello(hello) => discovery.hear_hello(port, &hello, &mut self.words),
            Message::LinkState(state) => discovery.hear_state(port, &state, &mut self.words),
            _ => return None,
        }
        self.say(node, out);
        Some(port)
    }

    /// The links that a node takes to be dead, now that it adopts another map.
    pub(super) fn adopt(&mut self, node: NodeId) -> Vec<PortId> {
        self.is_due[node.index()] = false;
        let discovery = self.discovery.as_mut().expect("only they who discover adopt");
        discovery.takes_news(node);
        let dead = discovery.dead(node);
        let most = u8::try_from(self.topology.hosts()).unwrap_or(u8::MAX);
        self.wide[node.index()] = if dead.is_empty() { self.reach_whole } else { most };
        dead
    }

    /// Puts on the links what a node is to say, and lets it adopt what it has heard.
    fn say(&mut self, node: NodeId, out: &mut Outbox) {
        let mut ports = self.topology.ports_of(self.topology.host(node));
        let first = ports.next().map_or(0, PortId::get);
        self.told += self.words.len() as u64;
        for (port, word) in self.words.drain(..) {
            let (kind, bytes) = match word {
                Word::Hello(hello) => (kinds::GREETING, hello.encode()),
                Word::State(state) => (kinds::LINK_STATE, state.encode()),
            };
            let packet = Packet {
                src: node,
                kind,
                entropy: (port.get() - first) as u16,
                priority: PRIORITY,
                ..carry(&bytes)
            };
            out.tell(port, packet);
        }
        if self.has_news(node) && !std::mem::replace(&mut self.is_due[node.index()], true) {
            out.set_timer(Timer::Host(node, ADOPT), out.now() + self.hold);
        }
    }
}

/// As far apart as nodes are in the whole rack, both counted; as far as a greeting can say.
fn reach_whole(plan: &Plan) -> u8 {
    let nodes = || (0..plan.nodes()).map(NodeId::new);
    let pairs = nodes().flat_map(|a| nodes().map(move |b| (a, b)));
    let widest = pairs.filter_map(|(a, b)| plan.routing.distance(a, b)).max().unwrap_or(0);
    u8::try_from(widest + 1).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use kernel::Time;
    use packets::Effect;
    use rack::topology::{Shape, Torus};
    use rack::{Component, Fault};

    use super::*;
    use crate::config::Config;

    /// Nodes of a ring of which each knows what packets tell it, a link away from each other.
    struct Ring {
        nodes: Vec<Neighbours>,
        now: Time,
        /// When each greets next.
        timers: Vec<Option<Time>>,
    }

    impl Ring {
        fn new(nodes: u32) -> Self {
            let torus = Torus { dimensions: vec![nodes], ..Torus::default() };
            let config = Config { topology: Shape::Torus(torus), ..Config::default() };
            let at = Time::ZERO + Span::from_us(10_000_000);
            let fault = Fault { component: Component::Node(NodeId::new(0)), at, until: None };
            let plan = config.plan().unwrap().with_faults(&[fault]).unwrap();
            let one = Neighbours::new(&plan, 1);
            let timers = vec![None; nodes as usize];
            Self { nodes: vec![one; nodes as usize], now: Time::ZERO, timers }
        }

        fn carry_out(&mut self, node: NodeId, out: &mut Outbox) {
            let effects: Vec<Effect> = out.drain().collect();
            for effect in effects {
                match effect {
                    Effect::Set(Timer::Host(_, GREET), at) => self.timers[node.index()] = Some(at),
                    Effect::Tell(port, packet) => {
                        let to = self.nodes[0].topology.port(port).peer;
                        let to = NodeId::new(to.get());
                        let mut out = Outbox::new(self.now);
                        let heard = self.nodes[to.index()].hear(to, &packet, &mut out);
                        assert!(heard.is_some(), "{packet:?} is not understood");
                        self.carry_out(to, &mut out);
                    }
                    _ => {}
                }
            }
        }

        fn wake(&mut self, node: NodeId) {
            let mut out = Outbox::new(self.now);
            self.nodes[node.index()].wake(node, &mut out);
            self.carry_out(node, &mut out);
        }

        /// Greets for a time, or until nobody does; node 0 alone has flows. How many greetings there were.
        fn run(&mut self, time: Span, has_flows: bool) -> u64 {
            let (end, before) = (self.now + time, self.told());
            while let Some((node, at)) = self.next().filter(|&(_, at)| at <= end) {
                self.now = at;
                self.timers[node.index()] = None;
                let mut out = Outbox::new(at);
                self.nodes[node.index()].greet(node, has_flows && node == NodeId::new(0), &mut out);
                self.carry_out(node, &mut out);
            }
            self.told() - before
        }

        fn next(&self) -> Option<(NodeId, Time)> {
            let due =
                (0..).zip(&self.timers).filter_map(|(node, at)| Some((NodeId::new(node), (*at)?)));
            due.min_by_key(|&(_, at)| at)
        }

        fn told(&self) -> u64 {
            self.nodes.iter().map(|node| node.told()).sum()
        }
    }

    /// One node knows of a flow, and the others are silent: they greet as they are asked to, nobody is
    /// taken for dead, and once the flow is over greetings end.
    #[test]
    fn m14_who_is_silent_is_asked_and_not_taken_for_dead() {
        let nodes = 9;
        let mut ring = Ring::new(nodes);
        ring.wake(NodeId::new(0));
        let told = ring.run(Span::from_us(50_000), true);
        // Each greets by two links once an interval; twice if it is asked the instant after it did.
        assert!((49 * 2 * 9..=2 * 51 * 2 * 9).contains(&told), "{told}");
        for neighbours in &ring.nodes {
            let ports = ring.nodes[0].topology.links();
            assert!({ ports }.all(|port| neighbours.lives(port)), "a link is taken for dead");
        }
        let told = ring.run(Span::from_us(1_000_000), false);
        assert_eq!(ring.next(), None, "they greet for ever");
        assert!(told <= 2 * 9 * 6, "{told} greetings after the flow");
    }
}
