//! The rack: one of the networks, whatever its transport, as a fabric.

use ::rack::equipment::Bill;
use ::rack::results::Table;
use ::rack::{Advance, Fabric, Flow, Gauge, Probe, Stage, Totals};
use kernel::{Span, Time};
use serde_json::{Map, Value};

use crate::config::Plan;
use crate::transport::{Network, each};

/// A packet-switched rack under simulation.
pub struct Rack {
    network: Network,
    /// The transport's `kind`.
    transport: &'static str,
    bill: Bill,
}

impl Rack {
    /// An idle rack. `seed` is that of all chance in it.
    #[must_use]
    pub fn new(plan: Plan, seed: u64) -> Self {
        let transport = &plan.config.transport;
        Self {
            transport: transport.name(),
            network: transport.network(plan.network, seed),
            bill: plan.bill,
        }
    }
}

impl Fabric for Rack {
    fn name(&self) -> &'static str {
        "packet-switched"
    }

    fn nodes(&self) -> u32 {
        each!(&self.network, network => network.nodes())
    }

    fn now(&self) -> Time {
        each!(&self.network, network => network.now())
    }

    fn offer(&mut self, flow: &Flow) {
        each!(&mut self.network, network => network.offer(flow));
    }

    fn advance<P: Probe>(&mut self, until: Time, probe: &mut P) -> Advance {
        each!(&mut self.network, network => network.advance(until, probe))
    }

    fn ideal_fct(&self, flow: &Flow) -> Span {
        each!(&self.network, network => network.ideal_fct(flow))
    }

    fn totals(&self) -> Totals {
        each!(&self.network, network => network.totals())
    }

    fn stages(&self) -> &'static [Stage] {
        each!(&self.network, network => network.stages())
    }

    fn gauges(&self) -> &'static [Gauge] {
        each!(&self.network, network => network.gauges())
    }

    fn sample(&mut self, row: &mut [f64]) {
        each!(&mut self.network, network => network.sample(row));
    }

    fn unfinished(&self, limit: usize) -> Vec<Flow> {
        each!(&self.network, network => network.unfinished(limit))
    }

    fn check(&self) -> Result<(), String> {
        each!(&self.network, network => network.check())
    }

    fn bill(&self) -> Option<Bill> {
        Some(self.bill)
    }

    fn tables(&self) -> Vec<Table> {
        each!(&self.network, network => network.tables())
    }

    fn details(&self) -> Map<String, Value> {
        let mut details = Map::new();
        details.insert("transport".into(), self.transport.into());
        details.extend(each!(&self.network, network => network.details()));
        details
    }
}
