//! The links that matter to shares: bundles of links that every flow uses alike.
//!
//! A flow spreads evenly over its shortest paths. In a regular network whole sets of links then carry
//! the same part of every flow; such a set is as good as one link of their sum. Sets are found, not
//! assumed: two links belong together if they have the same rate and carry the same share of the
//! traffic between every two places where hosts are attached.

use std::collections::HashMap;

use rack::topology::{Tier, Vertex};

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
        let mut pair = 0u64;
        for &from in &places {
            for &to in places.iter().filter(|&&to| to != from) {
                pair += 1;
                spread.walk(net, &net.tables, Vertex::new(from), to, |port, share| {
                    let word = (share * SHARE_ONE).round() as u64 ^ pair.wrapping_mul(FACTOR);
                    let signature = &mut signatures[port as usize];
                    *signature = (signature.rotate_left(5) ^ word).wrapping_mul(FACTOR);
                });
            }
        }
        let mut numbers = HashMap::new();
        let mut classes = Self { of_port: Vec::with_capacity(ports.len()), capacity: Vec::new() };
        for (port, end) in ports.iter().enumerate() {
            // The link of a host is its own.
            let is_host =
                [end.vertex, end.peer].into_iter().any(|v| topology.tier(v) == Tier::Host);
            let own = if is_host { port as u64 + 1 } else { 0 };
            let rate = end.link.rate.as_bps();
            let fresh = classes.capacity.len() as u32;
            let number = *numbers.entry((own, signatures[port], rate)).or_insert(fresh);
            if number == fresh {
                classes.capacity.push(0.0);
            }
            classes.capacity[number as usize] += rate as f64;
            classes.of_port.push(number);
        }
        classes
    }

    /// How a flow uses the classes.
    pub(super) fn uses(&self, net: &Net, src: u32, dst: u32) -> Vec<Use> {
        let mut spread = Spread { at: vec![0.0; net.plan.topology.vertices() as usize] };
        let mut uses: Vec<Use> = Vec::new();
        spread.walk(net, &net.tables, Vertex::new(src), dst, |port, share| {
            let link = self.of_port[port as usize];
            match uses.iter_mut().find(|used| used.link == link) {
                Some(used) => used.share += share,
                None => uses.push(Use { link, share }),
            }
        });
        uses
    }
}

/// One host for each place where hosts are attached: hosts with one link to the same switch are
/// alike; a host with several is a place of its own.
fn places(net: &Net) -> Vec<u32> {
    let topology = &net.plan.topology;
    let mut seen = vec![false; topology.vertices() as usize];
    let is_first = |&host: &u32| {
        let vertex = Vertex::new(host);
        let port = topology.ports_of(vertex).next().expect("every host has a link");
        let place = if topology.degree(vertex) == 1 { topology.port(port).peer } else { vertex };
        !std::mem::replace(&mut seen[place.index()], true)
    };
    (0..topology.hosts()).filter(is_first).collect()
}
