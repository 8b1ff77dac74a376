//! Each node alone, or with any others: endpoints which have never heard of those of the rest. All that
//! nodes know of each other came in bytes, which links lose, damage and, where they are dead, take.
//!
//! No queues behind the source's line: a packet takes that, and then a time. What is told to neighbours
//! takes a time. Who sent what a link lost or damaged is told, as by the network: a neighbour asks again.

use std::collections::{BTreeMap, VecDeque};

use kernel::{Calendar, LinkClock, Stream};
use packets::{Effect, Line, Loss, Opening, Outbox, Packet, Timer, Transport};
use rack::topology::{PortId, Vertex};
use rack::{Component, Fault};

use super::super::frames::{carried, carry};
use super::*;
use crate::endpoint::kinds;
use crate::selection::Utility;

/// From a line's end to the destination.
const DELAY: Span = Span::from_us(2);

#[derive(Clone, Copy, Debug)]
enum Event {
    Start(u32),
    Arrive(NodeId, Packet),
    Unheard(Packet, Loss),
    Free(NodeId),
    Alarm(NodeId),
    Timer(NodeId, Timer),
}

/// What became of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Fate {
    delivered: u64,
    completed_at: Option<Time>,
    /// Whether its sender has closed, and its receiver.
    closed: [bool; 2],
}

/// The halves at some nodes: by place the number of the flow, and by number the place, `None` once closed.
#[derive(Clone, Debug, Default)]
struct Halves {
    flows: Vec<Option<u32>>,
    places: BTreeMap<u32, Option<u32>>,
}

impl Halves {
    fn open(&mut self, flow: u32) -> u32 {
        let free = self.flows.iter().position(Option::is_none);
        let place = free.unwrap_or(self.flows.len());
        self.flows.resize(self.flows.len().max(place + 1), None);
        self.flows[place] = Some(flow);
        self.places.insert(flow, Some(place as u32));
        place as u32
    }
}

/// Endpoints of some nodes.
struct Instance {
    endpoints: Endpoints,
    /// Those of flows from these nodes, and of flows to them.
    halves: [Halves; 2],
}

struct Node {
    timers: BTreeMap<String, Time>,
    line: (LinkClock, Time),
    queue: VecDeque<Packet>,
}

/// What links do to packets.
#[derive(Clone, Copy, Debug, Default)]
struct Links {
    /// The parts of packets that they lose, and damage.
    loss: f64,
    damage: f64,
    /// One that is dead for a time.
    dead: Option<(PortId, Time, Time)>,
}

struct Alone {
    plan: Plan,
    /// Node `n` is in instance `n % instances.len()`.
    instances: Vec<Instance>,
    nodes: Vec<Node>,
    flows: Vec<Flow>,
    fates: Vec<Fate>,
    calendar: Calendar<Event>,
    out: Outbox,
    links: Links,
    stream: Stream,
    lost: u64,
    damaged: u64,
    greetings: u64,
}

impl Alone {
    /// Nodes in so many instances.
    fn new(plan: Plan, instances: u32, links: Links, seed: u64) -> Self {
        let node = |_| Node {
            timers: BTreeMap::new(),
            line: (LinkClock::new(Rate::from_gbps(40)), Time::ZERO),
            queue: VecDeque::new(),
        };
        let instance =
            |_| Instance { endpoints: Endpoints::new(&plan, seed), halves: Default::default() };
        Self {
            instances: (0..instances).map(instance).collect(),
            nodes: (0..plan.nodes()).map(node).collect(),
            plan,
            flows: Vec::new(),
            fates: Vec::new(),
            calendar: Calendar::new(),
            out: Outbox::default(),
            links,
            stream: Stream::new(seed, "alone", 0),
            lost: 0,
            damaged: 0,
            greetings: 0,
        }
    }

    fn of(&mut self, node: NodeId) -> &mut Instance {
        let count = self.instances.len();
        &mut self.instances[node.index() % count]
    }

    fn endpoints(&self, node: NodeId) -> &Endpoints {
        &self.instances[node.index() % self.instances.len()].endpoints
    }

    /// Carries all flows, until nothing is left to do.
    #[track_caller]
    fn carry(&mut self, flows: &[Flow]) {
        self.run(flows, Time::ZERO + Span::from_us(10_000_000));
        assert!(self.calendar.is_empty(), "still busy after 10 s: {:?}", self.fates);
        for (flow, fate) in self.flows.iter().zip(&self.fates) {
            let completed_at = fate.completed_at;
            let expected = Fate { delivered: flow.size.get(), completed_at, closed: [true, true] };
            assert_eq!((*fate, completed_at.is_some()), (expected, true), "{flow:?}");
        }
        assert_eq!(self.out.unexpected_count(), self.damaged, "packets made no sense");
        for node in (0..self.plan.nodes()).map(NodeId::new) {
            let facts = &self.endpoints(node).news.facts;
            assert_eq!((facts.known(node).count(), facts.waiting()), (0, 0), "{node}");
        }
    }

    /// Lets flows start, and all happen until a time.
    fn run(&mut self, flows: &[Flow], until: Time) {
        for at in 0..self.instances.len() {
            self.instances[at].endpoints.begin(&mut self.out);
            let effects: Vec<Effect> = self.out.drain().collect();
            for effect in effects {
                // An instance says it for all nodes; those that it does not hold are others'.
                match effect {
                    Effect::Set(Timer::Host(node, _), _)
                        if node.index() % self.instances.len() != at => {}
                    Effect::Set(Timer::Host(node, _), _) => self.carry_out(effect, node),
                    _ => panic!("{effect:?} before the first flow"),
                }
            }
        }
        for (number, flow) in (0..).zip(flows) {
            self.calendar.push(flow.start, Event::Start(number));
        }
        self.flows = flows.to_vec();
        self.fates = vec![Fate::default(); flows.len()];
        while let Some((now, event)) = self.calendar.pop_before(until) {
            self.out.set_now(now);
            self.step(now, event);
        }
    }

    fn step(&mut self, now: Time, event: Event) {
        let node = match event {
            Event::Start(number) => {
                let flow = self.flows[number as usize];
                let key = FlowKey::new(self.of(flow.src).halves[0].open(number));
                let label = FlowKey::label(key.place(), false);
                let opening = Opening { key, label, flow, paths: 1 };
                let count = self.instances.len();
                let instance = &mut self.instances[flow.src.index() % count];
                instance.endpoints.start(&opening, &mut self.out);
                flow.src
            }
            Event::Unheard(packet, why) => {
                let count = self.instances.len();
                let instance = &mut self.instances[packet.src.index() % count];
                instance.endpoints.unheard(&packet, why, &mut self.out);
                packet.src
            }
            Event::Arrive(node, packet) => {
                self.arrive(node, packet);
                node
            }
            Event::Free(node) | Event::Alarm(node) => {
                self.serve(node);
                node
            }
            Event::Timer(node, timer) => {
                let entry = &mut self.nodes[node.index()];
                let name = format!("{timer:?}");
                if entry.timers.get(&name) == Some(&now) {
                    entry.timers.remove(&name);
                    let count = self.instances.len();
                    let instance = &mut self.instances[node.index() % count];
                    instance.endpoints.timer(timer, &mut self.out);
                }
                node
            }
        };
        self.settle(node);
    }

    /// A packet at its node: it finds its half, or opens one, or comes too late.
    fn arrive(&mut self, at: NodeId, packet: Packet) {
        let count = self.instances.len();
        let node = &mut self.instances[at.index() % count];
        if packet.flow == FlowKey::NEIGHBOURS {
            return node.endpoints.receive(at, &packet, &mut self.out);
        }
        let side = usize::from(!packet.goes_to_source());
        let number = packet.flow.place();
        let known = node.halves[side].places.get(&number).copied();
        let place = match known {
            Some(Some(place)) => place,
            None if side == 1 => node.halves[side].open(number),
            _ => return node.endpoints.stray(&packet, &mut self.out),
        };
        let key = if side == 0 { FlowKey::new(place) } else { FlowKey::receivers(place) };
        let packet = Packet { flow: key, ..packet };
        if known.is_none() {
            node.endpoints.accept(&packet, FlowKey::label(number, true), &mut self.out);
        }
        node.endpoints.receive(at, &packet, &mut self.out);
    }

    fn settle(&mut self, node: NodeId) {
        while !self.out.is_empty() {
            let effects: Vec<Effect> = self.out.drain().collect();
            effects.into_iter().for_each(|effect| self.carry_out(effect, node));
        }
    }

    /// The number of the flow of an open half.
    fn number(&self, node: NodeId, key: FlowKey) -> u32 {
        let instance = &self.instances[node.index() % self.instances.len()];
        let halves = &instance.halves[usize::from(key.is_receivers())];
        halves.flows[key.index()].expect("a half that is open")
    }

    fn carry_out(&mut self, effect: Effect, node: NodeId) {
        let now = self.out.now();
        match effect {
            Effect::Send(packet) => {
                assert_eq!(packet.src, node, "{packet:?}");
                let packet = self.labelled(packet);
                self.nodes[node.index()].queue.push_back(packet);
                self.serve(node);
            }
            Effect::Wake(woken) => {
                assert_eq!(woken, node);
                self.serve(node);
            }
            Effect::WakeAt(woken, at) => {
                assert_eq!(woken, node);
                self.calendar.push(at, Event::Alarm(node));
            }
            Effect::Set(Timer::Host(other, _), _) if other != node => {
                panic!("{node} sets a timer of {other}");
            }
            Effect::Set(timer, at) => {
                self.nodes[node.index()].timers.insert(format!("{timer:?}"), at);
                self.calendar.push(at, Event::Timer(node, timer));
            }
            Effect::Cancel(timer) => {
                self.nodes[node.index()].timers.remove(&format!("{timer:?}"));
            }
            Effect::Delivered(key, bytes) => {
                let number = self.number(node, key) as usize;
                self.fates[number].delivered += bytes.get();
            }
            Effect::Complete(key) => {
                let number = self.number(node, key) as usize;
                assert_eq!(self.fates[number].delivered, self.flows[number].size.get());
                let was = self.fates[number].completed_at.replace(now);
                assert_eq!(was, None, "{key:?} completes twice");
            }
            Effect::Close(key) => self.close(key, node),
            Effect::GiveUp(key) => panic!("{key:?} is given up"),
            Effect::Tell(port, packet) => self.tell(node, port, packet),
            Effect::Unpack(piece) => unreachable!("a packet here is of one flow: {piece:?}"),
            Effect::Resent(_) | Effect::Held(_) | Effect::InVain(_) => {}
        }
    }

    fn close(&mut self, key: FlowKey, node: NodeId) {
        let side = usize::from(key.is_receivers());
        let number = self.number(node, key);
        let halves = &mut self.of(node).halves[side];
        halves.flows[key.index()] = None;
        halves.places.insert(number, None);
        let entry = &mut self.nodes[node.index()];
        entry.timers.remove(&format!("{:?}", Timer::Flow(key, 0)));
        let was = std::mem::replace(&mut self.fates[number as usize].closed[side], true);
        assert!(!was, "{key:?} closes twice");
    }

    /// What is told to a neighbour is on its link for a time, if that takes it.
    fn tell(&mut self, node: NodeId, port: PortId, packet: Packet) {
        assert_eq!(packet.src, node, "{packet:?}");
        let is_greeting = matches!(packet.kind, kinds::GREETING | kinds::LINK_STATE);
        self.greetings += u64::from(is_greeting);
        let at = self.out.now() + DELAY;
        if self.is_dead(port) {
            return self.calendar.push(at, Event::Unheard(packet, Loss::Dead));
        }
        let to = NodeId::new(self.plan.network.topology.port(port).peer.get());
        if self.stream.bernoulli(self.links.loss) {
            self.lost += 1;
            return self.calendar.push(at, Event::Unheard(packet, Loss::Link));
        }
        // Its bytes arrive, and where it came from.
        let (bytes, length) = carried(&packet).expect("no more bytes than fit");
        let mut bytes = bytes[..length].to_vec();
        if self.stream.bernoulli(self.links.damage) {
            self.damage(&mut bytes);
            self.calendar.push(at, Event::Unheard(packet, Loss::Link));
        }
        let Packet { src, kind, entropy, path, .. } = packet;
        let heard = Packet { src, dst: to, kind, entropy, path, ..carry(&bytes) };
        self.calendar.push(at, Event::Arrive(to, heard));
    }

    /// One bit is another.
    fn damage(&mut self, bytes: &mut [u8]) {
        let bit = self.stream.below(8 * bytes.len() as u64) as usize;
        bytes[bit / 8] ^= 1 << (bit % 8);
        self.damaged += 1;
    }

    fn is_dead(&self, port: PortId) -> bool {
        let reverse = self.plan.network.topology.port(port).reverse;
        self.links.dead.is_some_and(|(dead, from, until)| {
            (port == dead || reverse == dead) && (from..until).contains(&self.out.now())
        })
    }

    /// A packet on its way names its flow by number.
    fn labelled(&self, packet: Packet) -> Packet {
        let key = packet.flow;
        let number = if key.is_closed() { key.place() } else { self.number(packet.src, key) };
        Packet { flow: key.at(number), ..packet }
    }

    /// Lets a node send, if its line is free.
    fn serve(&mut self, node: NodeId) {
        let now = self.out.now();
        let entry = &mut self.nodes[node.index()];
        if entry.line.1 > now {
            return;
        }
        let packet = match entry.queue.pop_front() {
            Some(packet) => packet,
            None => {
                let count = self.instances.len();
                let instance = &mut self.instances[node.index() % count];
                match instance.endpoints.pull(node, Line::OPEN, &mut self.out) {
                    Some(packet) => self.labelled(packet),
                    None => return,
                }
            }
        };
        let (clock, free_at) = &mut self.nodes[node.index()].line;
        *free_at = now + clock.send(packet.size());
        let end = *free_at;
        self.calendar.push(end, Event::Free(node));
        let route = self.route(&packet);
        let is_cut = route.iter().any(|&port| self.is_dead(port));
        if is_cut || self.stream.bernoulli(self.links.loss) {
            self.lost += 1;
            return;
        }
        let codec = self.instances[0].endpoints.codec();
        // All that it says is in the header that the paper gives.
        assert_eq!(packets::wire::rides(&*codec, &packet), [""; 0], "{packet:?}");
        let mut bytes = packets::wire::encode(&*codec, &packet);
        if self.stream.bernoulli(self.links.damage) {
            self.damage(&mut bytes);
        }
        match packets::wire::decode(&*codec, &bytes) {
            Ok(heard) => {
                assert_eq!(heard, packet);
                self.calendar.push(end + DELAY, Event::Arrive(heard.dst, heard));
            }
            Err(_) => self.out.unexpected(),
        }
    }

    /// A packet's route leads to its destination: its ports. It may pass by there before.
    #[track_caller]
    fn route(&self, packet: &Packet) -> Vec<PortId> {
        let topology = &self.plan.network.topology;
        let mut at = Vertex::new(packet.src.get());
        let mut route = Vec::new();
        for hop in 0..packets::ROUTE_HOPS_MAX {
            let is_last = (hop..packets::ROUTE_HOPS_MAX).all(|hop| packet.hop_of_route(hop) == 0);
            if is_last && at == Vertex::new(packet.dst.get()) {
                return route;
            }
            let port = topology.ports_of(at).nth(packet.hop_of_route(hop).into());
            let port = port.expect("a hop is a port");
            route.push(port);
            at = topology.port(port).peer;
        }
        panic!("{packet:?} does not arrive");
    }
}

/// Flows of all sizes between all nodes of a torus of 3 by 3, several of a pair at a time.
fn hundred_flows() -> Vec<Flow> {
    let mut draw = Stream::new(7, "flows", 0);
    let one = |id| {
        let src = draw.below(9) as u32;
        let dst = (src + 1 + draw.below(8) as u32) % 9;
        let size = 1 + draw.below(200_000);
        flow(id, src, dst, size, Time::ZERO + Span::from_us(draw.below(500)))
    };
    let mut flows: Vec<Flow> = (0..100).map(one).collect();
    flows.sort_by_key(|flow| flow.start);
    flows
}

#[test]
fn nodes_alone_carry_a_hundred_flows() {
    let plan = torus(&[3, 3]).plan().unwrap();
    let mut alone = Alone::new(plan, 9, Links::default(), 1);
    alone.carry(&hundred_flows());
    assert_eq!((alone.lost, alone.greetings), (0, 0));
    let counts = alone.instances.iter().map(|instance| instance.endpoints.news.counts());
    let (sent, copies) = { counts }
        .fold((0, 0), |(sent, copies), counts| (sent + counts.sent, copies + counts.copies));
    assert_eq!((sent, copies), (200, 200 * 8));
}

/// Broadcasts among them.
#[test]
fn nodes_alone_carry_a_hundred_flows_when_one_packet_in_ten_is_lost_or_damaged() {
    for (seed, (loss, damage)) in (1..).zip([(0.1, 0.0), (0.0, 0.1), (0.1, 0.1)]) {
        let plan = Config { loss_rate: 0.1, ..torus(&[3, 3]) }.plan().unwrap();
        let mut alone = Alone::new(plan, 9, Links { loss, damage, ..Links::default() }, seed);
        alone.carry(&hundred_flows());
        assert_eq!((alone.lost > 500, alone.damaged > 500), (loss > 0.0, damage > 0.0));
    }
}

/// Rates come to be those of a view that all nodes have, to the bit, whatever links do.
#[test]
fn slow_nodes_alone_come_to_the_rates_of_a_common_view() {
    let cases = [(0.0, 0.0), (0.1, 0.1)].map(|links| [(links, None), (links, Some(4))]);
    for ((loss, damage), controller) in cases.into_iter().flatten() {
        let plan = Config { loss_rate: 0.1, controller, ..torus(&[3, 3]) }.plan().unwrap();
        let mut flows = hundred_flows();
        // Those that never end begin before, among and after the others.
        for flow in flows.iter_mut().step_by(10) {
            flow.size = Bytes::new(1 << 40);
        }
        let mut alone = Alone::new(plan, 9, Links { loss, damage, ..Links::default() }, 1);
        alone.run(&flows, Time::ZERO + Span::from_us(30_000));
        let open: Vec<Flow> = flows.iter().step_by(10).copied().collect();
        let rates = fair(&alone.plan, &open, &vec![Terms::default(); open.len()]);
        for (number, rate) in (0..).step_by(10).zip(rates) {
            let source = flows[number as usize].src;
            let endpoints = alone.endpoints(source);
            if controller.is_none() {
                assert_eq!(endpoints.news.facts.known(source).count(), open.len(), "{source}");
            }
            let halves = &alone.instances[source.index()].halves[0];
            let key = FlowKey::new(halves.places[&number].expect("it goes on"));
            let pace = endpoints.senders.get(key).bucket.pace().unwrap();
            // A controller's messages have whole kilobits.
            let step = if controller.is_some() { 1_000 } else { 1 };
            assert_eq!(pace.as_bps(), rate as u64 / step * step, "flow {number}");
        }
        for (number, fate) in alone.fates.iter().enumerate() {
            assert_eq!(fate.completed_at.is_some(), number % 10 != 0, "flow {number}");
        }
    }
}

/// A rack that searches often, and of which some flows are limited by their applications.
fn searching() -> Config {
    let selection = Selection {
        period: Span::from_us(300),
        turn: Turn::Random,
        utility: Utility::TenantTail,
        age: Span::from_us(100),
        population: 11,
        patience: 1,
        least_gain: 0.0,
        ..Selection::default()
    };
    Config {
        selection: Some(selection),
        batch: config::Batch::Lasting,
        start: config::Start::Share,
        interval: Span::from_us(50),
        classes: vec![
            config::Class::default(),
            config::Class {
                application_rate: Some(Rate::from_gbps(1)),
                ..config::Class::default()
            },
        ],
        ..torus(&[3, 3])
    }
}

/// The same packets, whichever nodes are held together: flows end at the same picosecond.
#[test]
fn slow_flows_do_not_depend_on_which_nodes_are_held_together() {
    let at = Time::ZERO + Span::from_us(300);
    let until = at + Span::from_us(6_000);
    let fault =
        Fault { component: Component::Link { a: 0, b: 1, link: 0 }, at, until: Some(until) };
    let mut lossy = Config { loss_rate: 0.05, ..searching() };
    lossy.selection.as_mut().unwrap().utility = Utility::Aggregate;
    let quiet = Config { loss_rate: 0.0, ..lossy.clone() };
    let cases = [
        (torus(&[3, 3]), 0.0, None),
        (Config { interval: Span::ZERO, ..torus(&[3, 3]) }, 0.0, None),
        (searching(), 0.0, None),
        (quiet, 0.0, None),
        (lossy.clone(), 0.05, None),
        (lossy, 0.05, Some(fault)),
        (torus(&[4, 4]), 0.0, Some(fault)),
        (Config { controller: Some(4), ..torus(&[3, 3]) }, 0.0, None),
        (Config { controller: Some(2), loss_rate: 0.05, ..torus(&[3, 3]) }, 0.05, Some(fault)),
    ];
    for (case, (config, part, fault)) in cases.into_iter().enumerate() {
        let faults: Vec<Fault> = fault.into_iter().collect();
        let plan = config.plan().unwrap().with_faults(&faults).unwrap();
        let port = plan.network.topology.links_between(Vertex::new(0), Vertex::new(1)).next();
        let dead = fault.map(|_| (port.unwrap(), at, until));
        let links = Links { loss: part, damage: part, dead };
        let mut flows = hundred_flows();
        for flow in &mut flows {
            flow.class = Class::new((flow.id.get() % 2) as u8);
            // So that some are under way when the link fails and when it returns.
            flow.start += Span::from_us(100 * (flow.id.get() % 30));
            if flow.id.get() % 10 == 0 {
                flow.size = Bytes::new(3_000_000);
            }
        }
        flows.sort_by_key(|flow| flow.start);
        let run = |instances: u32| {
            let mut alone = Alone::new(plan.clone(), instances, links, 1);
            alone.carry(&flows);
            let counts = alone.instances.iter().map(|one| one.endpoints.selector.counts());
            let counts = counts.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
            (alone.fates, alone.lost, alone.damaged, alone.greetings, counts)
        };
        let apart = run(plan.nodes());
        for instances in [1, 2, 4] {
            assert_eq!(run(instances), apart, "case {case}, {instances} instances");
        }
        let utility = plan.config.selection.as_ref().map(Selection::utility);
        let found = (apart.4.0 > 0, apart.4.1 > 0);
        let finds = utility == Some(Utility::Aggregate);
        assert_eq!((found.0, found.1 || !finds), (utility.is_some(), true), "case {case}");
    }
}

/// Nodes that have no flow greet those that have, and all are silent in the end.
#[test]
fn nodes_alone_greet_each_other() {
    let at = Time::ZERO + Span::from_us(5_000);
    let fault = Fault { component: Component::Link { a: 0, b: 1, link: 0 }, at, until: None };
    let plan = torus(&[3, 3]).plan().unwrap().with_faults(&[fault]).unwrap();
    let mut alone = Alone::new(plan, 9, Links::default(), 1);
    alone.carry(&[flow(0, 0, 4, 30_000_000, Time::ZERO + Span::from_us(20_000))]);
    assert!(alone.greetings > 0);
    for node in (0..9).map(NodeId::new) {
        let routes = &alone.endpoints(node).maps.of(node).routes;
        let links: Vec<_> = alone.plan.network.topology.links().collect();
        assert!(
            links.iter().all(|&link| routes.network().lives(link)),
            "{node} takes one for dead"
        );
    }
}
