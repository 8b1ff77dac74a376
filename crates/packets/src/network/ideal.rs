//! What the idle network takes: the time of a flow alone, and of a packet alone.

use kernel::{Bytes, Rate, Span};
use rack::Flow;
use rack::topology::Vertex;

use crate::config::Routing;
use crate::net::{Journey, Net, Wire};
use crate::transport::Framing;

/// A link of a path.
struct Hop<'a> {
    wire: &'a Wire,
    rate: Rate,
    /// Whether all packets of a flow cross it: not where they are spread over several paths.
    is_shared: bool,
    /// Whether they also come to it in the order in which they were sent.
    keeps_order: bool,
}

/// The links from a host to another, by the first of the shortest paths; the host's own link first.
fn path(net: &Net, src: u32, dst: u32) -> Vec<Hop<'_>> {
    let topology = &net.plan.topology;
    let ports = net.tables.path(topology, Vertex::new(src), dst).map(|port| port.get());
    // A host that passes traffic on sends through its own switch first.
    let own = (topology.degree(Vertex::new(src)) > 1).then_some(net.nics[src as usize]);
    let mut keeps_order = true;
    let hop = |port: u32| {
        let wire = &net.wires[port as usize];
        let spreads = net.plan.config.routing != Routing::Ecmp && wire.vertex != wire.peer;
        if spreads && net.tables.group(wire.vertex, dst).1.len > 1 {
            keeps_order = false;
        }
        let is_last = wire.peer.get() == dst && topology.degree(wire.peer) == 1;
        let rate = net.clocks[port as usize].rate();
        Hop { wire, rate, is_shared: keeps_order || is_last, keeps_order }
    };
    own.into_iter().chain(ports).map(hop).collect()
}

impl Hop<'_> {
    /// From the first bit sent to the next vertex, or host, acting on the packet.
    fn transit(&self, size: Bytes, dst: u32) -> Span {
        let time = self.rate.send_time(size);
        match self.wire.cut_through {
            _ if self.wire.peer.get() == dst => time + self.wire.last_delay,
            Some(header) => header.min(time) + self.wire.delay,
            None => time + self.wire.delay,
        }
    }
}

/// From the first bit sent to the packet's arrival.
fn transit(net: &Net, src: u32, dst: u32, size: Bytes) -> Span {
    path(net, src, dst).iter().map(|hop| hop.transit(size, dst)).sum()
}

/// The mean of that over packets of a flow.
pub(super) fn mean_transit(net: &Net, flow: &Flow, journey: &Journey) -> Span {
    if journey.count == 0 {
        return Span::ZERO;
    }
    let size = Bytes::new(journey.wire / journey.count);
    transit(net, flow.src.get(), flow.dst.get(), size)
}

/// The completion time of a flow alone in the idle network: its packets leave back to back. On each
/// link the last packet is ready when it has come in and the one before it has gone out; the others,
/// all of one size, are spaced by the slowest link so far.
pub(crate) fn completion_time(net: &Net, framing: Framing, flow: &Flow) -> Span {
    let (src, dst) = (flow.src.get(), flow.dst.get());
    let count = framing.packets(flow.size);
    let header = Bytes::new(framing.header.into());
    let full = header + Bytes::new(framing.payload.into());
    let last = header + Bytes::new(framing.payload_of(flow.size, count - 1).into());
    // When the line is done with the last full packet, and when the last packet is ready for it.
    let (mut first_ready, mut slowest) = (Span::ZERO, Span::ZERO);
    let mut last_ready = Span::ZERO;
    for hop in path(net, src, dst) {
        let time = hop.rate.send_time(full);
        if hop.is_shared {
            slowest = slowest.max(time);
        }
        if hop.keeps_order && count > 1 {
            let line_free = first_ready + slowest * (count - 2) + time;
            last_ready = last_ready.max(line_free);
        }
        first_ready += hop.transit(full, dst);
        last_ready += hop.transit(last, dst);
    }
    // Spread over several paths, the last packet may come before the one before it.
    let before_last = if count > 1 { first_ready + slowest * (count - 2) } else { Span::ZERO };
    last_ready.max(before_last)
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
            let switches = path(net, from, host).len() as u32 - 1;
            (there + back, switches, host)
        });
        trips.max_by_key(|&(trip, switches, _)| (trip, switches)).expect("two hosts or more")
    };
    let first = longest(0);
    let second = longest(first.2);
    (first.0.max(second.0), first.1.max(second.1))
}
