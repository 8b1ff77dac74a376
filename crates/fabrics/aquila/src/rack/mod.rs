//! The Clique as a fabric: hosts of the packet engine, with the fabric of TiNs between them.
//!
//! Hosts, their transports and their lines to TiNs are the engine's; a TiN is one of its switches, whose program is the
//! [`Clique`]. What happens between a packet's arrival at its TiN and its way out of another is cells
//! ([`crate::ip`], [`crate::switch`]): the links between TiNs carry nothing that the engine sees.

mod blueprint;
mod carrier;
mod clique;
mod commands;
mod faults;
mod ideal;
mod jobs;
mod nic;
mod outside;
mod record;
mod remote;
#[cfg(test)]
mod tests;
mod tracing;

use ::rack::topology::{Builder, Link, Tier, Topology as Graph, Vertex};
use ::rack::{Advance, Fabric, Flow, Probe, WithIdeal};
use kernel::{Bytes, Span, Time};
use packets::Framings;
use packets::config::{Forwarding, Queues};
use serde_json::{Map, Value};

use crate::config::Plan;
use crate::switch::Counts;
use crate::tables::journal::{Journal, Repair, Upgrade};
use crate::transport::{Network, each};
pub use carrier::Rack;
pub(crate) use clique::Clique;
pub use faults::Hardware;
use ideal::Ideal;

/// A rack whose hosts send packets.
pub struct Packets {
    network: Network,
    ideal: Ideal,
    plan: Plan,
    seed: u64,
}

/// Room of a port's queue in the engine: what comes to it was paced to its line, so nothing is dropped there (our
/// choice: more than any buffer of a TiN).
const ENDLESS: Bytes = Bytes::new(2_000_000_000);
/// From a host to its TiN (our choice: as a copper link of 1 m; what PCIe takes belongs to hosts).
const HOST_LINK: Span = Span::from_ns(5);

/// The engine's graph: nodes, then TiNs, and the links between them; and the switch outside, if there is something.
fn graph(plan: &Plan) -> Graph {
    let shape = plan.topology.shape();
    let mut build = Builder::new(plan.nodes());
    let tins = build.switches(Tier::Leaf, shape.tins().into());
    let host_link = Link { rate: plan.config.ip.port_rate, delay: HOST_LINK };
    for (node, place) in (0..).zip(&plan.hosts) {
        build.link(Vertex::new(node), tins[usize::from(place.tin)], host_link);
    }
    for link in plan.topology.links() {
        let rate =
            if link.is_global { plan.config.link.global_rate } else { plan.config.link.local_rate };
        let delay = plan.topology.delay(link.low.tin, link.low.port);
        let ends = [link.low, link.high].map(|end| tins[usize::from(end.tin)]);
        build.link(ends[0], ends[1], Link { rate, delay });
    }
    let (outside, attached) = (&plan.config.outside, outside::attached(plan));
    if !attached.is_empty() {
        let switch = build.switch(Tier::Spine);
        let far = Link { rate: outside.rate, delay: outside.delay };
        for node in plan.config.nodes..plan.nodes() {
            build.link(Vertex::new(node), switch, far);
        }
        let uplink = Link { rate: plan.config.ip.port_rate, delay: outside.uplink_delay };
        for tin in attached {
            build.link(tins[usize::from(tin)], switch, uplink);
        }
    }
    build.build().expect("a checked Clique is connected")
}

/// The engine's part of a plan.
pub(crate) fn engine(plan: &Plan) -> packets::Plan {
    // What TiNs send is paced to its line, so that the switch outside alone ever fills a buffer.
    let outside = &plan.config.outside;
    let port_buffer = if outside.hosts > 0 { outside.buffer } else { ENDLESS };
    let config = packets::Config {
        forwarding: Forwarding::CutThrough,
        switch_latency: Span::ZERO,
        load_rate: plan.config.load_rate,
        convergence: plan.config.convergence,
        failures: plan.config.failures,
        mtu: plan.config.transport.table().mtu(),
        host: plan.config.host.clone(),
        queues: Queues { port_buffer, ..Queues::default() },
        ..packets::Config::default()
    };
    packets::Plan { config, topology: graph(plan), faults: plan.faults.clone() }
}

/// What the summary says of cells, whatever they carry.
fn details_of(cells: &Counts) -> Map<String, Value> {
    let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
    let mut details = Map::new();
    let mut say = |key: &str, value: Value| details.insert(key.into(), value);
    say("cell_hops", cells.hops.into());
    say("cells", cells.delivered.into());
    say("hops_per_cell", share(cells.hops, cells.delivered).into());
    say("detour_share", share(cells.detours, cells.decisions).into());
    say("credit_stalls", cells.credit_stalls.into());
    say("escape_cells", cells.escapes.into());
    say("cells_without_room", cells.dropped_full.into());
    details
}

/// What the summary says of the controller, of what it has done by `now`.
fn say_control(journal: &Journal, now: Time, details: &mut Map<String, Value>) {
    let began = |at: &&Time| **at <= now;
    let done = |repair: &&Repair| repair.until.is_some_and(|until| until <= now);
    let begun = journal.repairs.iter().filter(|repair| repair.since <= now);
    let times: Vec<Span> = begun.clone().filter(done).filter_map(|repair| repair.took()).collect();
    let us = |span: Span| span.as_ps() as f64 / 1e6;
    let mut say = |key: &str, value: Value| details.insert(key.into(), value);
    say("control_repairs", times.len().into());
    say("control_repairs_open", (begun.count() - times.len()).into());
    if let Some(&longest) = times.iter().max() {
        let sum: f64 = times.iter().map(|&span| us(span)).sum();
        say("control_repair_mean_us", (sum / times.len() as f64).into());
        say("control_repair_max_us", us(longest).into());
    }
    say("control_batches", journal.batches.iter().filter(began).count().into());
    let written = journal.writes().partition_point(|write| write.at <= now);
    say("control_entries", written.into());
    if !journal.upgrades.is_empty() {
        let done = |upgrade: &&Upgrade| upgrade.until.is_some_and(|until| until <= now);
        let done = journal.upgrades.iter().filter(done);
        say("control_upgraded", done.clone().count().into());
        let took = |upgrade: &Upgrade| Some(upgrade.until? - upgrade.since);
        if let Some(longest) = done.filter_map(took).max() {
            say("control_restart_max_us", us(longest).into());
        }
    }
}

impl Packets {
    /// An idle rack. `seed` is that of all chance in it.
    #[must_use]
    pub fn new(plan: Plan, seed: u64) -> Self {
        let network = plan.config.transport.network(&plan, seed, &[]);
        let ideal =
            Ideal::new(&plan, each!(&network, network => Framings::new(network.transport())));
        Self { network, ideal, plan, seed }
    }
}

impl Fabric for Packets {
    fn name(&self) -> &'static str {
        "aquila"
    }

    fn nodes(&self) -> u32 {
        self.plan.nodes()
    }

    fn hint_sizes(&mut self, sizes: &[Bytes]) {
        let transport = &self.plan.config.transport;
        if transport.table().follows_sizes() {
            assert_eq!(self.now(), Time::ZERO, "sizes come before the first flow");
            self.network = transport.network(&self.plan, self.seed, sizes);
        }
    }

    fn advance(&mut self, until: Time, probe: &mut dyn Probe) -> Advance {
        let ideal = &self.ideal;
        let mut corrected = WithIdeal::new(probe, |flow| ideal.completion_time(flow));
        each!(&mut self.network, network => network.advance(until, &mut corrected))
    }

    fn ideal_fct(&self, flow: &Flow) -> Span {
        self.ideal.completion_time(flow)
    }

    fn bill(&self) -> Option<::rack::equipment::Bill> {
        Some(self.plan.bill)
    }

    ::rack::leave_to_network!(each, network);

    fn details(&self) -> Map<String, Value> {
        let mut details = Map::new();
        details.insert("transport".into(), self.plan.config.transport.name().into());
        details.extend(each!(&self.network, network => network.details()));
        details
    }
}
