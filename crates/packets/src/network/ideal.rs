//! What the idle network takes: the time of a flow alone, and of a packet alone.
//!
//! The idle network has no faults. If faults made ideals longer, a flow that ended before the fault, or began
//! after the repair, would be faster than its ideal.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use kernel::{Bytes, Rate, Span};
use rack::Flow;
use rack::topology::{PortId, Shape, Vertex};

use crate::config::Routing;
use crate::net::{Journey, Net, Wire};
use crate::transport::Framing;

/// A link of a path.
struct Hop<'a> {
    wire: &'a Wire,
    rate: Rate,
}

impl Hop<'_> {
    /// From the first bit sent to the next vertex, or host, acting on the packet. Rounded down, as the
    /// clock of a line may.
    fn transit(&self, size: Bytes, dst: u32) -> Span {
        let time = self.rate.least_send_time(self.wire.on_line(size));
        match self.wire.cut_through {
            _ if self.wire.peer.get() == dst => time + self.wire.last_delay,
            Some(header) => header.min(time) + self.wire.delay,
            None => time + self.wire.delay,
        }
    }
}

fn hop(net: &Net, port: u32) -> Hop<'_> {
    Hop { wire: &net.wires[port as usize], rate: net.rate(port) }
}

/// A host that passes traffic on sends through its own switch first.
fn own_port(net: &Net, src: u32) -> Option<u32> {
    (net.plan.topology.degree(Vertex::new(src)) > 1).then_some(net.nics[src as usize])
}

/// The links from a host to another, by the first of the shortest paths; the host's own link first.
fn path(net: &Net, src: u32, dst: u32) -> impl Iterator<Item = u32> + '_ {
    let ports = net.whole.path(&net.plan.topology, Vertex::new(src), dst).map(PortId::get);
    own_port(net, src).into_iter().chain(ports)
}

/// From the first bit sent to the packet's arrival.
fn transit(net: &Net, src: u32, dst: u32, size: Bytes) -> Span {
    path(net, src, dst).map(|port| hop(net, port).transit(size, dst)).sum()
}

/// The mean of that over packets of a flow.
pub(super) fn mean_transit(net: &Net, flow: &Flow, journey: &Journey) -> Span {
    if journey.count == 0 {
        return Span::ZERO;
    }
    let size = Bytes::new(journey.wire / journey.count);
    transit(net, flow.src.get(), flow.dst.get(), size)
}

/// A flow's packets: all of one size but the last.
#[derive(Clone, Copy)]
struct Packets {
    dst: u32,
    count: u64,
    full: Bytes,
    last: Bytes,
}

/// How far they have come: on each link the last packet is ready when it has come in and the one before
/// it has gone out; the others are spaced by the slowest link so far.
#[derive(Clone, Copy)]
struct Front {
    /// When the first and the last packet are ready to go on.
    first: Span,
    last: Span,
    /// The slowest link so far that all packets crossed.
    slowest: Option<Rate>,
    /// Whether all packets took this way, in the order in which they were sent.
    keeps_order: bool,
}

impl Front {
    const START: Self =
        Self { first: Span::ZERO, last: Span::ZERO, slowest: None, keeps_order: true };

    /// The packets between the first and the last two, at the slowest link.
    fn spacing(&self, packets: &Packets) -> Span {
        let between = packets.full * packets.count.saturating_sub(2);
        self.slowest.map_or(Span::ZERO, |rate| rate.least_send_time(between))
    }

    /// After a hop at which they spread, or not.
    fn after(mut self, net: &Net, port: u32, spreads: bool, packets: &Packets) -> Self {
        let Hop { wire, rate } = hop(net, port);
        self.keeps_order &= !spreads;
        let is_last = wire.peer.get() == packets.dst && net.plan.topology.degree(wire.peer) == 1;
        if self.keeps_order || is_last {
            self.slowest = Some(self.slowest.map_or(rate, |slowest| slowest.min(rate)));
        }
        if self.keeps_order && packets.count > 1 {
            let line_free = self.first + self.spacing(packets) + rate.least_send_time(packets.full);
            self.last = self.last.max(line_free);
        }
        let hop = Hop { wire, rate };
        self.first += hop.transit(packets.full, packets.dst);
        self.last += hop.transit(packets.last, packets.dst);
        self
    }

    /// No later than either.
    fn least(self, other: Self) -> Self {
        let slowest = match (self.slowest, other.slowest) {
            (Some(a), Some(b)) => Some(a.max(b)),
            _ => None,
        };
        Self {
            first: self.first.min(other.first),
            last: self.last.min(other.last),
            slowest,
            keeps_order: self.keeps_order && other.keeps_order,
        }
    }

    /// When all are there.
    fn end(&self, packets: &Packets) -> Span {
        // Spread over several paths, the last packet may come before the one before it.
        let before_last =
            if packets.count > 1 { self.first + self.spacing(packets) } else { Span::ZERO };
        self.last.max(before_last)
    }
}

/// The completion time of a flow alone in the idle network, with what it takes at the least in its hosts.
pub(crate) fn completion_time(net: &Net, framing: Framing, flow: &Flow) -> Span {
    let network = network_time(net, framing, flow);
    let host = &net.plan.config.host;
    if !host.takes_time() {
        return network;
    }
    let packets = framing.packets(flow.size);
    // Where packets take ways of their own the last, which may be small, may be the first to come.
    let index = if net.plan.config.routing == Routing::Ecmp { 0 } else { packets - 1 };
    let payload = framing.payload_of(flow.size, index);
    let size = Bytes::new(u64::from(payload) + u64::from(framing.header));
    let first = transit(net, flow.src.get(), flow.dst.get(), size).min(network);
    network + host.least(packets, network, first)
}

/// The same without hosts: its packets leave back to back. Of several paths it is the fastest's, so that no flow
/// takes less.
fn network_time(net: &Net, framing: Framing, flow: &Flow) -> Span {
    let (src, dst) = (flow.src.get(), flow.dst.get());
    let count = framing.packets(flow.size);
    let header = Bytes::new(framing.header.into());
    let packets = Packets {
        dst,
        count,
        full: header + Bytes::new(framing.payload.into()),
        last: header + Bytes::new(framing.payload_of(flow.size, count - 1).into()),
    };
    let config = &net.plan.config;
    let (ideal, goes_round) = match config.topology {
        Shape::Graph(_) | Shape::Racks(_) => (
            by_shortest_paths(net, src, &packets),
            matches!(config.routing, Routing::Valiant | Routing::SourceRoute),
        ),
        Shape::Torus(_) | Shape::Mesh(_) => (
            by_first_path(net, src, &packets),
            config.routing == Routing::Valiant || config.takes_detours,
        ),
        _ => return by_first_path(net, src, &packets),
    };
    // A way round a fault, or by another host, may have more links and take less; several ways at a time
    // may take less than the one that is shortest.
    match net.plan.faults.is_empty() && !goes_round {
        true => ideal,
        false => ideal.min(by_any_path(net, src, &packets)),
    }
}

/// Whether packets go different ways from here.
fn spreads(net: &Net, port: u32, dst: u32) -> bool {
    let wire = &net.wires[port as usize];
    let has_choice = wire.vertex != wire.peer && net.plan.config.routing != Routing::Ecmp;
    has_choice && net.whole.group(wire.vertex, dst).1.len > 1
}

/// Where all shortest paths are alike.
fn by_first_path(net: &Net, src: u32, packets: &Packets) -> Span {
    let step =
        |front: Front, port| front.after(net, port, spreads(net, port, packets.dst), packets);
    path(net, src, packets.dst).fold(Front::START, step).end(packets)
}

/// Where they are not: at each vertex the least of all ways to it.
fn by_shortest_paths(net: &Net, src: u32, packets: &Packets) -> Span {
    let own = own_port(net, src);
    let start = own.map_or(Front::START, |port| Front::START.after(net, port, false, packets));
    // All vertices of a step are equally far from the destination.
    let mut fronts = vec![(Vertex::new(src), start)];
    while fronts[0].0.get() != packets.dst {
        let mut next: Vec<(Vertex, Front)> = Vec::new();
        for (vertex, front) in fronts {
            let group = net.whole.group(vertex, packets.dst).1;
            for index in 0..group.len {
                let port = net.whole.member(group, index).get();
                let there = net.wires[port as usize].peer;
                let front = front.after(net, port, spreads(net, port, packets.dst), packets);
                match next.iter_mut().find(|(vertex, _)| *vertex == there) {
                    Some((_, other)) => *other = other.least(front),
                    None => next.push((there, front)),
                }
            }
        }
        fronts = next;
    }
    fronts[0].1.end(packets)
}

/// A bound for any path at all: the last packet leaves when the others have, by the source's line and, if
/// it has one, by the destination's; and takes the fastest way.
fn by_any_path(net: &Net, src: u32, packets: &Packets) -> Span {
    let topology = &net.plan.topology;
    let dst = Vertex::new(packets.dst);
    let mut rate = net.rate(net.nics[src as usize]);
    if topology.degree(dst) == 1 {
        rate =
            topology.ports_of(dst).map(|port| topology.port(port).link.rate).fold(rate, Rate::min);
    }
    let others = rate.least_send_time(packets.full * (packets.count - 1));
    if !matches!(net.plan.config.topology, Shape::Graph(_) | Shape::Racks(_)) {
        // All links are alike: a shortest way is the fastest.
        return others + transit(net, src, packets.dst, packets.last);
    }
    let own = own_port(net, src)
        .map_or(Span::ZERO, |port| hop(net, port).transit(packets.last, packets.dst));
    others + own + fastest(net, Vertex::new(src), packets)
}

/// The least transit of the last packet, over all paths.
fn fastest(net: &Net, src: Vertex, packets: &Packets) -> Span {
    let topology = &net.plan.topology;
    let mut least = vec![Span::from_ps(u64::MAX); topology.vertices() as usize];
    let mut open = BinaryHeap::from([Reverse((Span::ZERO, src))]);
    while let Some(Reverse((span, vertex))) = open.pop() {
        if vertex.get() == packets.dst {
            return span;
        }
        let passes = vertex == src || !topology.is_host(vertex) || topology.degree(vertex) > 1;
        if span >= least[vertex.index()] || !passes {
            continue;
        }
        least[vertex.index()] = span;
        for port in topology.ports_of(vertex) {
            let hop = hop(net, port.get());
            let there = span + hop.transit(packets.last, packets.dst);
            open.push(Reverse((there, hop.wire.peer)));
        }
    }
    Span::ZERO
}

/// The longest round trip of a full packet out and a header back, and the most switches on a path.
pub(super) fn farthest(net: &Net) -> (Span, u32) {
    let hosts = net.plan.topology.hosts();
    // Hosts of the same distance are alike in every regular network: the farthest from host 0, and
    // from the host farthest from it.
    let longest = |from: u32| {
        let trips = (0..hosts).filter(|&host| host != from).map(|host| {
            let there = transit(net, from, host, net.plan.config.mtu);
            let back = transit(net, host, from, Bytes::new(64));
            let switches = path(net, from, host).count() as u32 - 1;
            (there + back, switches, host)
        });
        trips.max_by_key(|&(trip, switches, _)| (trip, switches)).expect("two hosts or more")
    };
    let first = longest(0);
    let second = longest(first.2);
    (first.0.max(second.0), first.1.max(second.1))
}
