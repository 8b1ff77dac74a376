//! The links that matter to shares: bundles of links that every flow uses alike.
//!
//! A flow spreads evenly over its shortest paths. In a regular network whole sets of links then carry
//! the same part of every flow; such a set is as good as one link of their sum. Sets are found, not
//! assumed: two links belong together if they have the same rate and carry the same share of the
//! traffic between every two places where hosts are attached.
//!
//! A set that could carry all that its hosts can send, or receive, at once never limits anyone: it is
//! left out. In a Clos of full bisection only the hosts' own links remain.

use std::collections::HashMap;

use rack::topology::{PortId, Tier, Vertex};

use super::waterfill::Use;
use crate::net::Net;
use crate::route::Tables;

/// Shares are compared in steps of 2⁻³⁰: far above the rounding of sums, far below any real
/// difference (our choice).
const SHARE_ONE: f64 = (1u64 << 30) as f64;
/// Odd constant that folds shares into a signature (the golden ratio in 64 bits).
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Bundles of links.
#[derive(Clone, Debug)]
pub(super) struct Classes {
    /// By port of the topology.
    of_port: Vec<u32>,
    /// By class: the sum of the rates, in bit/s.
    pub(super) capacity: Vec<f64>,
    /// By class: it never limits a flow.
    is_ample: Vec<bool>,
}

/// A place where hosts are attached.
struct Place {
    /// One of the hosts.
    host: u32,
    /// What all of them can send, and receive, in bit/s; infinite for a host that is a place of its
    /// own.
    rate: f64,
}

/// The part of a unit of traffic that crosses each port, walked from source to destination.
struct Spread {
    /// By vertex: what reaches it.
    at: Vec<f64>,
}

impl Spread {
    /// Calls `visit` with each port between two vertices and the share that crosses it.
    fn walk(
        &mut self,
        net: &Net,
        tables: &Tables,
        from: Vertex,
        host: u32,
        mut visit: impl FnMut(u32, f64),
    ) {
        // All vertices of a step are equally far from the destination.
        let (mut here, mut next) = (vec![from], Vec::new());
        self.at[from.index()] = 1.0;
        while !here.is_empty() {
            for &vertex in &here {
                let share = std::mem::take(&mut self.at[vertex.index()]);
                if vertex.get() == host {
                    continue;
                }
                let group = tables.group(vertex, host).1;
                for index in 0..group.len {
                    let port = tables.member(group, index);
                    let part = share / f64::from(group.len);
                    visit(port.get(), part);
                    let peer = net.plan.topology.port(port).peer;
                    if self.at[peer.index()] == 0.0 {
                        next.push(peer);
                    }
                    self.at[peer.index()] += part;
                }
            }
            std::mem::swap(&mut here, &mut next);
            next.clear();
        }
    }
}

impl Classes {
    pub(super) fn new(net: &Net) -> Self {
        let topology = &net.plan.topology;
        let ports = topology.ports();
        let mut signatures = vec![0u64; ports.len()];
        let mut spread = Spread { at: vec![0.0; topology.vertices() as usize] };
        let places = places(net);
        for (pair, (from, to)) in (1u64..).zip(pairs(&places)) {
            spread.walk(net, &net.tables, Vertex::new(from.host), to.host, |port, share| {
                let word = (share * SHARE_ONE).round() as u64 ^ pair.wrapping_mul(FACTOR);
                let signature = &mut signatures[port as usize];
                *signature = (signature.rotate_left(5) ^ word).wrapping_mul(FACTOR);
            });
        }
        let mut numbers = HashMap::new();
        let mut classes = Self { of_port: Vec::new(), capacity: Vec::new(), is_ample: Vec::new() };
        for (port, end) in ports.iter().enumerate() {
            // The link of a host is its own.
            let is_host =
                [end.vertex, end.peer].into_iter().any(|v| topology.tier(v) == Tier::Host);
            let own = if is_host { port as u64 + 1 } else { 0 };
            let rate =
                topology.carried_rate(PortId::new(port as u32), net.plan.config.mtu).as_bps();
            let fresh = classes.capacity.len() as u32;
            let number = *numbers.entry((own, signatures[port], rate)).or_insert(fresh);
            if number == fresh {
                classes.capacity.push(0.0);
                classes.is_ample.push(false);
            }
            classes.capacity[number as usize] += rate as f64;
            classes.of_port.push(number);
        }
        classes.find_ample(net, &places);
        classes
    }

    /// Finds the classes between switches that hold the most that all places can send over them, or
    /// receive.
    fn find_ample(&mut self, net: &Net, places: &[Place]) {
        if places.iter().any(|place| place.rate == f64::INFINITY) {
            return;
        }
        let count = self.capacity.len();
        let load = |most: &[f64]| -> Vec<f64> {
            let mut load = vec![0.0; count];
            for (place, shares) in places.iter().zip(most.chunks(count)) {
                for (load, share) in load.iter_mut().zip(shares) {
                    *load += place.rate * share;
                }
            }
            load
        };
        // By place and class: the largest share of a flow from there, and of one to there.
        let mut from_most = vec![0.0f64; places.len() * count];
        let mut to_most = from_most.clone();
        for (from, source) in places.iter().enumerate() {
            for (to, target) in places.iter().enumerate().filter(|&(to, _)| to != from) {
                for used in self.uses(net, source.host, target.host) {
                    for (place, most) in [(from, &mut from_most), (to, &mut to_most)] {
                        let most = &mut most[place * count + used.link as usize];
                        *most = most.max(used.share);
                    }
                }
            }
        }
        let (sent, received) = (load(&from_most), load(&to_most));
        let is_host = |port: usize| {
            let end = net.plan.topology.ports()[port];
            [end.vertex, end.peer].into_iter().any(|v| net.plan.topology.is_host(v))
        };
        for port in (0..self.of_port.len()).filter(|&port| !is_host(port)) {
            let class = self.of_port[port] as usize;
            // Sums of shares are off by a rounding.
            let holds = self.capacity[class] * (1.0 + 1e-9);
            self.is_ample[class] = sent[class].min(received[class]) <= holds;
        }
    }

    /// How a flow uses the classes.
    pub(super) fn uses(&self, net: &Net, src: u32, dst: u32) -> Vec<Use> {
        let mut spread = Spread { at: vec![0.0; net.plan.topology.vertices() as usize] };
        let mut uses: Vec<Use> = Vec::new();
        spread.walk(net, &net.tables, Vertex::new(src), dst, |port, share| {
            let link = self.of_port[port as usize];
            if self.is_ample[link as usize] {
                return;
            }
            match uses.iter_mut().find(|used| used.link == link) {
                Some(used) => used.share += share,
                None => uses.push(Use { link, share }),
            }
        });
        uses
    }
}

/// Every two places, one way and the other.
fn pairs(places: &[Place]) -> impl Iterator<Item = (&Place, &Place)> {
    let others = |from| places.iter().filter(move |to| !std::ptr::eq(from, *to));
    places.iter().flat_map(move |from| others(from).map(move |to| (from, to)))
}

/// The places where hosts are attached: hosts with one link to the same switch are alike; a host with
/// several is a place of its own. Those whose only link is down send nothing.
fn places(net: &Net) -> Vec<Place> {
    let topology = &net.plan.topology;
    let mut number = vec![None; topology.vertices() as usize];
    let mut places: Vec<Place> = Vec::new();
    for host in 0..topology.hosts() {
        let vertex = Vertex::new(host);
        let port = topology.ports_of(vertex).next().expect("every host has a link");
        if topology.degree(vertex) == 1 && !net.live.ports[port.index()] {
            continue;
        }
        let end = topology.port(port);
        let (at, rate) = match topology.degree(vertex) {
            1 => (end.peer, end.link.rate.as_bps() as f64),
            _ => (vertex, f64::INFINITY),
        };
        let place = *number[at.index()].get_or_insert(places.len());
        if place == places.len() {
            places.push(Place { host, rate: 0.0 });
        }
        places[place].rate += rate;
    }
    places
}
