//! The rack: links and queues, with R2C2 on the nodes, as a fabric.

use kernel::{Rate, Span, Time};
use packets::Network;
use rack::equipment::Bill;
use rack::node::Nodes;
use rack::results::Table;
use rack::trace::{Followed, Trace};
use rack::{Advance, Fabric, Flow, Gauge, Probe, Problem, Stage, Totals, Unfinished};
use serde_json::{Map, Value};

use crate::config::Plan;
use crate::endpoint::Endpoints;

/// A rack of R2C2 under simulation.
pub struct Rack {
    network: Network<Endpoints>,
    bill: Bill,
}

impl Rack {
    /// An idle rack. `seed` is that of all chance in it.
    #[must_use]
    pub fn new(plan: Plan, seed: u64) -> Self {
        let endpoints = Endpoints::new(&plan, seed);
        let network = Network::new(plan.network, endpoints, seed);
        let network = network.expect("a packet is no larger than the MTU");
        Self { network, bill: plan.bill }
    }
}

impl Rack {
    /// What the windows have come to in which parts ran side by side.
    #[must_use]
    pub fn windows(&self) -> rack::shards::Counts {
        self.network.windows()
    }
}

impl Fabric for Rack {
    fn name(&self) -> &'static str {
        "r2c2"
    }

    fn nodes(&self) -> u32 {
        self.network.nodes()
    }

    fn node_rate(&self) -> Rate {
        self.network.node_rate()
    }

    fn now(&self) -> Time {
        self.network.now()
    }

    fn set_wire(&mut self, is_on: bool) -> Result<(), Problem> {
        self.network.set_wire(is_on)
    }

    fn set_threads(&mut self, threads: usize) {
        self.network.set_threads(threads);
    }

    fn set_shards(&mut self, shards: usize) -> usize {
        self.network.set_shards(shards)
    }

    fn can_trace(&self) -> Result<(), Problem> {
        self.network.can_trace()
    }

    fn set_trace(&mut self, followed: &[Followed]) {
        self.network.set_trace(followed);
    }

    fn take_trace(&mut self) -> Trace {
        self.network.take_trace()
    }

    fn apart(&self) -> Option<Nodes> {
        self.network.apart()
    }

    fn offer(&mut self, flow: &Flow) {
        self.network.offer(flow);
    }

    fn advance(&mut self, until: Time, probe: &mut dyn Probe) -> Advance {
        self.network.advance(until, probe)
    }

    fn ideal_fct(&self, flow: &Flow) -> Span {
        self.network.ideal_fct(flow)
    }

    fn totals(&self) -> Totals {
        self.network.totals()
    }

    fn stages(&self) -> &'static [Stage] {
        self.network.stages()
    }

    fn gauges(&self) -> &'static [Gauge] {
        self.network.gauges()
    }

    fn sample(&mut self, row: &mut [f64]) {
        self.network.sample(row);
    }

    fn unfinished(&self, limit: usize) -> Vec<Unfinished> {
        self.network.unfinished(limit)
    }

    fn check(&self) -> Result<(), String> {
        self.network.check()
    }

    fn bill(&self) -> Option<Bill> {
        Some(self.bill)
    }

    fn tables(&self) -> Vec<Table> {
        self.network.tables()
    }

    fn details(&self) -> Map<String, Value> {
        self.network.details()
    }
}
