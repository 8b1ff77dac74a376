//! Each node alone: endpoints of its own, which have never heard of those of others. All that nodes know
//! of each other came in packets.
//!
//! No queues behind the source's line: a packet takes that, and then a time; it may be lost. Broadcasts
//! are lost here, all of them: flows must arrive without.

use std::collections::{BTreeMap, VecDeque};

use kernel::{Calendar, LinkClock, Stream};
use packets::{Effect, Line, Opening, Outbox, Packet, Timer, Transport};
use rack::topology::Vertex;
use rack::{Component, Fault};

use super::*;
use crate::endpoint::kinds;

/// From a line's end to the destination.
const DELAY: Span = Span::from_us(2);

#[derive(Clone, Copy, Debug)]
enum Event {
    Start(u32),
    Arrive(NodeId, Packet),
    Free(NodeId),
    Alarm(NodeId),
    Timer(NodeId, Timer),
}

/// What became of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Fate {
    delivered: u64,
    is_complete: bool,
    /// Whether its sender has closed, and its receiver.
    closed: [bool; 2],
}

/// The halves of a node: by place the number of the flow, and by number the place, `None` once closed.
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

struct Node {
    endpoints: Endpoints,
    /// Those of flows from it, and of flows to it.
    halves: [Halves; 2],
    timers: BTreeMap<String, Time>,
    line: (LinkClock, Time),
    queue: VecDeque<Packet>,
}

struct Alone {
    plan: Plan,
    nodes: Vec<Node>,
    flows: Vec<Flow>,
    fates: Vec<Fate>,
    calendar: Calendar<Event>,
    out: Outbox,
    loss: f64,
    stream: Stream,
    lost: u64,
    greetings: u64,
}

impl Alone {
    fn new(plan: Plan, loss: f64, seed: u64) -> Self {
        let node = |_| Node {
            endpoints: Endpoints::new(&plan, seed),
            halves: Default::default(),
            timers: BTreeMap::new(),
            line: (LinkClock::new(Rate::from_gbps(40)), Time::ZERO),
            queue: VecDeque::new(),
        };
        Self {
            nodes: (0..plan.nodes()).map(node).collect(),
            plan,
            flows: Vec::new(),
            fates: Vec::new(),
            calendar: Calendar::new(),
            out: Outbox::default(),
            loss,
            stream: Stream::new(seed, "alone", 0),
            lost: 0,
            greetings: 0,
        }
    }

    /// Carries all flows, until nothing is left to do.
    #[track_caller]
    fn carry(&mut self, flows: &[Flow]) {
        for node in (0..self.plan.nodes()).map(NodeId::new) {
            self.nodes[node.index()].endpoints.begin(&mut self.out);
            self.settle(node);
        }
        for (number, flow) in (0..).zip(flows) {
            self.calendar.push(flow.start, Event::Start(number));
        }
        self.flows = flows.to_vec();
        self.fates = vec![Fate::default(); flows.len()];
        let limit = Time::ZERO + Span::from_us(10_000_000);
        while let Some((now, event)) = self.calendar.pop_before(limit) {
            self.out.set_now(now);
            self.step(now, event);
        }
        assert!(self.calendar.is_empty(), "still busy after 10 s: {:?}", self.fates);
        for (flow, fate) in self.flows.iter().zip(&self.fates) {
            let expected =
                Fate { delivered: flow.size.get(), is_complete: true, closed: [true, true] };
            assert_eq!(*fate, expected, "{flow:?}");
        }
        assert_eq!(self.out.unexpected_count(), 0, "packets made no sense");
    }

    fn step(&mut self, now: Time, event: Event) {
        let node = match event {
            Event::Start(number) => {
                let flow = self.flows[number as usize];
                let node = &mut self.nodes[flow.src.index()];
                let key = FlowKey::new(node.halves[0].open(number));
                node.endpoints.start(
                    &Opening { key, label: FlowKey::label(key.place(), false), flow, paths: 1 },
                    &mut self.out,
                );
                flow.src
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
                    entry.endpoints.timer(timer, &mut self.out);
                }
                node
            }
        };
        self.settle(node);
    }

    /// A packet at its node: it finds its half, or opens one, or comes too late.
    fn arrive(&mut self, at: NodeId, packet: Packet) {
        let node = &mut self.nodes[at.index()];
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
        let halves = &self.nodes[node.index()].halves[usize::from(key.is_receivers())];
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
                // Its endpoints are no one's but its own.
                assert_eq!(now, Time::ZERO, "{node} sets a timer of {other}");
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
                let was = std::mem::replace(&mut self.fates[number].is_complete, true);
                assert!(!was, "{key:?} completes twice");
            }
            Effect::Close(key) => self.close(key, node),
            Effect::GiveUp(key) => panic!("{key:?} is given up"),
            Effect::Tell(port, packet) => self.tell(node, port, packet),
            Effect::Resent(_) | Effect::Held(_) => {}
        }
    }

    fn close(&mut self, key: FlowKey, node: NodeId) {
        let side = usize::from(key.is_receivers());
        let number = self.number(node, key);
        let entry = &mut self.nodes[node.index()];
        entry.halves[side].flows[key.index()] = None;
        entry.halves[side].places.insert(number, None);
        entry.timers.remove(&format!("{:?}", Timer::Flow(key, 0)));
        let was = std::mem::replace(&mut self.fates[number as usize].closed[side], true);
        assert!(!was, "{key:?} closes twice");
    }

    fn tell(&mut self, node: NodeId, port: rack::topology::PortId, packet: Packet) {
        assert_eq!(packet.src, node, "{packet:?}");
        if matches!(packet.kind, kinds::GREETING | kinds::LINK_STATE) {
            self.greetings += 1;
            let to = NodeId::new(self.plan.network.topology.port(port).peer.get());
            self.calendar.push(self.out.now() + DELAY, Event::Arrive(to, packet));
        }
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
            None => match entry.endpoints.pull(node, Line::OPEN, &mut self.out) {
                Some(packet) => self.labelled(packet),
                None => return,
            },
        };
        let (clock, free_at) = &mut self.nodes[node.index()].line;
        *free_at = now + clock.send(packet.size());
        let end = *free_at;
        self.calendar.push(end, Event::Free(node));
        self.check_route(&packet);
        if self.stream.bernoulli(self.loss) {
            self.lost += 1;
        } else {
            self.calendar.push(end + DELAY, Event::Arrive(packet.dst, packet));
        }
    }

    /// A packet's route leads to its destination.
    #[track_caller]
    fn check_route(&self, packet: &Packet) {
        let topology = &self.plan.network.topology;
        let mut at = Vertex::new(packet.src.get());
        for hop in 0..packets::ROUTE_HOPS_MAX {
            if at == Vertex::new(packet.dst.get()) {
                return;
            }
            let port = topology.ports_of(at).nth(packet.hop_of_route(hop).into());
            at = topology.port(port.expect("a hop is a port")).peer;
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
    let mut alone = Alone::new(plan, 0.0, 1);
    alone.carry(&hundred_flows());
    assert_eq!((alone.lost, alone.greetings), (0, 0));
}

#[test]
fn nodes_alone_carry_a_hundred_flows_when_one_packet_in_ten_is_lost() {
    for seed in 1..4 {
        let plan = Config { loss_rate: 0.1, ..torus(&[3, 3]) }.plan().unwrap();
        let mut alone = Alone::new(plan, 0.1, seed);
        alone.carry(&hundred_flows());
        assert!(alone.lost > 500, "{}", alone.lost);
    }
}

/// Nodes that have no flow greet those that have, and all are silent in the end.
#[test]
fn nodes_alone_greet_each_other() {
    let at = Time::ZERO + Span::from_us(5_000);
    let fault = Fault { component: Component::Link { a: 0, b: 1, link: 0 }, at, until: None };
    let plan = torus(&[3, 3]).plan().unwrap().with_faults(&[fault]).unwrap();
    let mut alone = Alone::new(plan, 0.0, 1);
    alone.carry(&[flow(0, 0, 4, 30_000_000, Time::ZERO + Span::from_us(20_000))]);
    assert!(alone.greetings > 0);
    for node in (0..9).map(NodeId::new) {
        let endpoints = &alone.nodes[node.index()].endpoints;
        let routes = &endpoints.maps.of(node).routes;
        let links: Vec<_> = alone.plan.network.topology.links().collect();
        assert!(
            links.iter().all(|&link| routes.network().lives(link)),
            "{node} takes one for dead"
        );
    }
}
