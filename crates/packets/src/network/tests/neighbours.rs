//! What neighbours tell each other, and packets that follow their own routes.

use kernel::{Bytes, Rate, Span, Time};
use rack::topology::{Mesh, PortId, Shape, Torus, Vertex};
use rack::{Advance, Component, Fabric, Fault, NodeId};

use super::{Ends, endless, flow, plan};
use crate::config::{Config, Failures, Plan, Queues, Routing};
use crate::network::Network;
use crate::outbox::Outbox;
use crate::packet::{FlowKey, Kind, Packet};
use crate::route::Live;
use crate::transport::{Framing, Line, Loss, Opening, Timer, Timers, Transport};

/// Bytes of what is told: 800 ps each at 10 Gbps.
const WORD: u16 = 16;

/// A ring of six hosts at 10 Gbps, 100 ns from one to the next.
fn ring(queues: Queues) -> Config {
    let torus = Torus { dimensions: vec![6], rate: Rate::from_gbps(10), delay: Span::from_ns(100) };
    Config {
        topology: Shape::Torus(torus),
        routing: Routing::SourceRoute,
        switch_latency: Span::ZERO,
        queues,
        ..Config::default()
    }
}

/// Sends a flow as one packet along a stated route, and tells neighbours of it: who hears a word for
/// the first time tells all its neighbours.
#[derive(Clone)]
struct Gossip {
    plan: Plan,
    route: u128,
    /// How often it says the same word.
    times: u32,
    /// By host: when it first heard of the flow.
    heard: Vec<Option<Time>>,
    /// What was lost: for lack of room, and on links.
    unheard: [u32; 2],
    works: Vec<Live>,
    pending: Option<Packet>,
}

impl Gossip {
    fn tell_all(&mut self, host: NodeId, out: &mut Outbox) {
        self.heard[host.index()].get_or_insert(out.now());
        for port in self.plan.topology.ports_of(Vertex::new(host.get())) {
            let word = Packet {
                flow: FlowKey::NEIGHBOURS,
                src: host,
                wire: WORD,
                kind: Kind::of_transport(2),
                ..Packet::default()
            };
            (0..self.times).for_each(|_| out.tell(port, word));
        }
    }
}

impl Transport for Gossip {
    fn name(&self) -> &'static str {
        "gossip"
    }

    fn timers(&self) -> Timers {
        Timers::default()
    }

    fn framing(&self) -> Framing {
        Framing { payload: 1_460, header: 40 }
    }

    fn speaks_to_neighbours(&self) -> bool {
        true
    }

    fn start(&mut self, opening: &Opening, out: &mut Outbox) {
        assert_ne!(opening.key, FlowKey::NEIGHBOURS);
        let packet = Packet {
            flow: opening.key,
            src: opening.flow.src,
            dst: opening.flow.dst,
            payload: 1_460,
            wire: 1_500,
            ..Packet::default()
        };
        self.pending = Some(packet.with_route(self.route));
        self.tell_all(opening.flow.src, out);
        out.wake(opening.flow.src);
    }

    fn receive(&mut self, host: NodeId, packet: &Packet, out: &mut Outbox) {
        assert_eq!(packet.dst, host);
        if packet.flow != FlowKey::NEIGHBOURS {
            out.delivered(packet.flow, Bytes::new(1_460));
            out.complete(packet.flow);
            out.close(packet.flow);
        } else if self.heard[host.index()].is_none() {
            self.tell_all(host, out);
        }
    }

    fn timer(&mut self, _: Timer, _: &mut Outbox) {}

    fn pull(&mut self, _: NodeId, _: Line<'_>, _: &mut Outbox) -> Option<Packet> {
        self.pending.take()
    }

    fn abandon(&mut self, _: FlowKey, _: &mut Outbox) {}

    fn repairs_links(&self) -> bool {
        true
    }

    fn unheard(&mut self, packet: &Packet, why: Loss, _: &mut Outbox) {
        assert_eq!((packet.flow, packet.wire), (FlowKey::NEIGHBOURS, WORD));
        self.unheard[usize::from(why != Loss::NoRoom)] += 1;
    }

    fn routes_changed(&mut self, works: &Live, _: &mut Outbox) {
        self.works.push(works.clone());
    }
}

/// Carries one packet from host 0 to host `to` along `hops`, and lets all who hear of it tell others.
fn gossip(plan: Plan, to: u32, hops: &[u128]) -> (Network<Gossip>, Ends) {
    repeat(plan, to, hops, 1)
}

/// The same, with each word said so many times.
fn repeat(plan: Plan, to: u32, hops: &[u128], times: u32) -> (Network<Gossip>, Ends) {
    let route = hops.iter().rev().fold(0, |route, hop| route << 3 | hop);
    let heard = vec![None; plan.topology.hosts() as usize];
    let gossip = Gossip {
        plan: plan.clone(),
        route,
        times,
        heard,
        unheard: [0, 0],
        works: Vec::new(),
        pending: None,
    };
    let mut network = Network::new(plan, gossip, 1).unwrap();
    let mut ends = Ends::default();
    network.offer(&flow(0, 0, to, 1_460, 0));
    assert_eq!(network.advance(Time::NEVER, &mut ends), Advance::Idle);
    network.check().unwrap();
    (network, ends)
}

/// The port of `host`, among its own, that leads to `peer`.
fn port(plan: &Plan, host: u32, peer: u32) -> u128 {
    let leads = |port: PortId| plan.topology.port(port).peer == Vertex::new(peer);
    let mut ports = plan.topology.ports_of(Vertex::new(host));
    ports.position(leads).expect("they are neighbours") as u128
}

#[test]
fn a_word_spreads_by_one_link_at_a_time() {
    let (network, _) =
        gossip(plan(&ring(endless()), &[]), 1, &[port(&plan(&ring(endless()), &[]), 0, 1)]);
    // 12.8 ns for 16 bytes and 100 ns of wire a hop; at the source the flow's own packet is not in
    // the way, as words leave at once and it has to pass the host's own switch first.
    let hop = Span::from_ps(112_800);
    let near = [0, 1, 2, 3, 2, 1].map(|hops: u64| Some(Time::ZERO + hop * hops));
    assert_eq!(network.transport().heard[..4], near[..4]);
    assert_eq!(network.transport().heard[5], near[5]);
    assert_eq!((network.transport().unheard, network.totals().delivered.get()), ([0, 0], 1_460));
}

#[test]
fn a_packet_follows_its_route_however_long() {
    let usual = plan(&ring(endless()), &[]);
    let walk = |path: &[u32]| -> Vec<u128> {
        path.windows(2).map(|pair| port(&usual, pair[0], pair[1])).collect()
    };
    let ends = [&[0, 1][..], &[0, 5, 4, 3, 2, 1], &[0, 5, 0, 1]].map(|path| {
        let (_, ends) = gossip(usual.clone(), 1, &walk(path));
        ends.completed[0].1 - Time::ZERO
    });
    // Store-and-forward: 1.2 us of packet and 100 ns of wire for each hop; words (12.8 ns each) may
    // be in the way.
    for (end, hops) in ends.into_iter().zip([1, 5, 3]) {
        let alone = Span::from_ns(1_300) * hops;
        assert!(end >= alone && end <= alone + Span::from_ns(30) * hops, "{end} for {hops} hops");
    }
}

#[test]
fn a_route_from_a_host_with_one_link_begins_with_that_link() {
    let mesh = Shape::Mesh(Mesh { dimensions: vec![4], ..Mesh::default() });
    let usual = plan(&Config { topology: mesh, ..ring(endless()) }, &[]);
    let hops = [port(&usual, 0, 1), port(&usual, 1, 2), port(&usual, 2, 3)];
    let (network, ends) = gossip(usual, 3, &hops);
    assert_eq!((ends.completed.len(), network.totals().drops), (1, 0));
}

#[test]
fn a_route_to_a_port_that_is_not_there_loses_the_packet() {
    let (network, ends) = gossip(plan(&ring(endless()), &[]), 1, &[7]);
    assert_eq!((ends.completed.len(), network.totals().drops), (0, 1));
}

#[test]
fn what_is_lost_on_a_dead_link_is_told_and_so_is_what_works() {
    let link = |a, b| Component::Link { a, b, link: 0 };
    let fault = Fault { component: link(0, 5), at: Time::ZERO, until: None };
    let usual = plan(&ring(endless()), &[]);
    let failures = Failures { oracle: true, ..Failures::default() };
    let config = Config { failures, ..ring(endless()) };
    let (network, _) = gossip(plan(&config, &[fault]), 1, &[port(&usual, 0, 1)]);
    let told = network.transport();
    // Each end told the other once, in vain; the far end hears the long way round.
    assert_eq!(told.unheard, [0, 2]);
    assert!(told.heard[5] > told.heard[3]);
    assert_eq!(told.works.len(), 1);
    let dead = told.works[0].ports.iter().filter(|&&works| !works).count();
    assert_eq!((dead, told.works[0].vertices.iter().all(|&works| works)), (2, true));
}

/// What a link loses by chance the neighbour tells by frames of the link: one for each, which wait for the line
/// and take their time on it. The flow's own packet is nobody's word.
#[test]
fn what_a_link_loses_is_told_by_frames_of_the_link() {
    let usual = plan(&ring(endless()), &[]);
    let config = Config { loss_rate: 0.2, ..ring(endless()) };
    let (network, ends) = repeat(plan(&config, &[]), 1, &[port(&usual, 0, 1)], 50);
    let told = network.transport().unheard;
    let words = network.net().counts.lost - (1 - ends.completed.len() as u64);
    assert_eq!(told, [0, words as u32]);
    assert_eq!(network.net().counts.link_frames, words);
    // Of 600 words, 120 but for chance.
    assert!((70..170).contains(&words), "{words}");
}

#[test]
fn what_finds_no_room_is_told() {
    let tight = Queues { port_buffer: Bytes::new(1_500), ..Queues::default() };
    let usual = plan(&ring(endless()), &[]);
    let (network, _) = repeat(plan(&ring(tight), &[]), 1, &[port(&usual, 0, 1)], 100);
    // At each of the twelve ports one word is on the line, 93 wait, and six find no room; nor does
    // the flow's packet, which comes to its port behind the words.
    assert_eq!(network.transport().unheard, [12 * 6, 0]);
    assert_eq!(network.totals().drops, 12 * 6 + 1);
    assert!(network.transport().heard.iter().all(Option::is_some));
}
