//! What a flow takes alone in the idle Clique.

use ::rack::Flow;
use kernel::{Bytes, Rate, Span};
use packets::Framings;
use packets::config::{CUT_THROUGH_HEADER, Host};

use super::HOST_LINK;
use super::outside::attached;
use crate::config::Plan;
use crate::switch::settings::TICK;
use crate::topology::{PortKind, Topology};

/// From a head's arrival at a switch to the next, without the wire; and from there to an endpoint (§3.2).
const HOP: Span = Span::from_ns(40);
const OUT: Span = Span::from_ns(20);
/// A smallest cell.
const CELL: Bytes = Bytes::new(16);

/// What the times of packets depend on.
#[derive(Clone, Debug)]
pub(super) struct Ideal {
    framings: Framings,
    rate: Rate,
    /// Packets are asked for before they go.
    is_solicited: bool,
    host: Host,
    ways: Ways,
    /// By node of the Clique: its TiN.
    tins: Vec<u16>,
    outside: Outside,
}

/// What ways out of the Clique take.
#[derive(Clone, Debug)]
struct Outside {
    rate: Rate,
    /// From the switch to a host, and to a TiN.
    delay: Span,
    uplink: Span,
    /// By TiN: the crossing to the nearest one that is attached.
    crossings: Vec<Span>,
}

impl Outside {
    fn new(plan: &Plan, ways: &Ways) -> Self {
        let (config, attached) = (&plan.config.outside, attached(plan));
        let shape = plan.topology.shape();
        let nearest = |tin: u16| {
            let pod = |tin: u16| shape.split(tin).0;
            let inside = attached.iter().filter(|&&other| pod(other) == pod(tin));
            let found = inside.map(|&other| ways.crossing(tin, other)).min();
            let anywhere = || attached.iter().map(|&other| ways.crossing(tin, other)).min();
            found.or_else(anywhere).unwrap_or_default()
        };
        Self {
            rate: config.rate,
            delay: config.delay,
            uplink: config.uplink_delay,
            crossings: (0..shape.tins()).map(nearest).collect(),
        }
    }
}

/// What the times of cells depend on.
#[derive(Clone, Debug)]
pub(super) struct Ways {
    /// The fastest line that a cell crosses.
    cell_rate: Rate,
    fec: Span,
    /// A link inside a pod, and the shortest fibre.
    copper: Span,
    shortest: Span,
    topology: Topology,
}

impl Ways {
    pub(super) fn new(plan: &Plan) -> Self {
        let config = &plan.config;
        let delay = |is_global: bool| {
            let links = plan.topology.links().iter().filter(|link| link.is_global == is_global);
            links.map(|link| plan.topology.delay(link.low.tin, link.low.port)).min()
        };
        let rates = [config.link.local_rate, config.link.global_rate, config.switch.terminal_rate];
        Self {
            cell_rate: rates.into_iter().max().expect("there are three"),
            fec: config.link.fec_delay,
            copper: delay(false).unwrap_or_default(),
            shortest: delay(true).unwrap_or_default(),
            topology: plan.topology.clone(),
        }
    }

    /// The shortest time of a smallest cell from TiN to TiN.
    pub(super) fn crossing(&self, from: u16, to: u16) -> Span {
        OUT + self.cell_rate.least_send_time(CELL) + self.way(from, to)
    }

    /// What its switches and wires take.
    fn way(&self, from: u16, to: u16) -> Span {
        let shape = self.topology.shape();
        let ((from_pod, _), (to_pod, _)) = (shape.split(from), shape.split(to));
        // All links inside pods are as long.
        let inside = |from: u16, to: u16| {
            let is_link = from != to;
            if is_link { HOP + self.copper } else { Span::ZERO }
        };
        if from_pod == to_pod {
            return inside(from, to);
        }
        let gateways = (0..shape.tins_per_pod).map(|place| shape.tin(from_pod, place));
        let links =
            gateways.flat_map(|tin| (0..shape.external_ports()).map(move |port| (tin, port)));
        let over = |(tin, port): (u16, u8)| {
            let far = self.topology.far(tin, port)?;
            let leads_there =
                shape.kind(port) == PortKind::Global && shape.split(far.tin).0 == to_pod;
            let fibre = HOP + self.topology.delay(tin, port) + self.fec;
            leads_there.then(|| inside(from, tin) + fibre + inside(far.tin, to))
        };
        // By a third pod it is two fibres at the least.
        let round = (HOP + self.fec + self.shortest) * 2;
        links.filter_map(over).min().map_or(round, |direct| direct.min(round))
    }
}

impl Ideal {
    pub(super) fn new(plan: &Plan, framings: Framings) -> Self {
        let tins = plan.hosts.iter().map(|place| place.tin).collect();
        let (ip, host) = (&plan.config.ip, plan.config.host.clone());
        let (rate, is_solicited) = (ip.port_rate, ip.solicitation);
        let ways = Ways::new(plan);
        let outside = Outside::new(plan, &ways);
        Self { framings, rate, is_solicited, host, ways, tins, outside }
    }

    /// From a packet's header at its TiN to its first bit on the line to its destination.
    fn through(&self, size: Bytes, rate: Rate, crossing: Span) -> Span {
        let rest = Bytes::new(size.get().saturating_sub(CUT_THROUGH_HEADER.get()));
        let asked = if self.is_solicited { crossing * 2 } else { Span::ZERO };
        let early = TICK * 4;
        let all = asked.max(rate.least_send_time(rest)) + crossing;
        if all > early { all - early } else { Span::ZERO }
    }

    /// The completion time of a flow alone: no flow can be faster.
    pub(super) fn completion_time(&self, flow: &Flow) -> Span {
        let network = self.network_time(flow);
        if !self.host.takes_time() {
            return network;
        }
        let framing = self.framings.of(flow);
        let packets = framing.packets(flow.size);
        // Where packets keep no order the last, which may be small, may be the first to come.
        let first = Bytes::new(framing.payload_of(flow.size, packets - 1).into());
        let first = self.network_time(&Flow { size: first, ..*flow }).min(network);
        network + self.host.least(packets, network, first)
    }

    /// The same without engines and threads.
    fn network_time(&self, flow: &Flow) -> Span {
        let framing = self.framings.of(flow);
        let count = framing.packets(flow.size);
        let header = Bytes::new(framing.header.into());
        let full = header + Bytes::new(framing.payload.into());
        let last = header + Bytes::new(framing.payload_of(flow.size, count - 1).into());
        let bus = self.host.latency.unwrap_or_default();
        let out = &self.outside;
        let (crossing, rate, wires) =
            match [flow.src, flow.dst].map(|node| self.tins.get(node.index()).copied()) {
                [Some(from), Some(to)] => (self.ways.crossing(from, to), self.rate, HOST_LINK * 2),
                // Of two lines in a row the faster one: no flow is faster than that.
                [Some(tin), None] | [None, Some(tin)] => {
                    let crossing = out.crossings[usize::from(tin)];
                    (crossing, self.rate.max(out.rate), HOST_LINK + out.uplink + out.delay)
                }
                [None, None] => return out.rate.least_send_time(flow.size) + out.delay * 2 + bus,
            };
        let begun = |size: Bytes, before: u64| {
            let ahead = full * before + size.min(CUT_THROUGH_HEADER);
            rate.least_send_time(ahead) + self.through(size, rate, crossing)
        };
        let own = begun(last, count - 1);
        // A last packet that is small waits behind the one before it.
        let ahead = match count {
            1 => Span::ZERO,
            _ => begun(full, count - 2) + rate.least_send_time(full),
        };
        own.max(ahead) + rate.least_send_time(last) + wires + bus
    }
}
