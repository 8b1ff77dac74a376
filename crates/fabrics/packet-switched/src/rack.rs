//! The rack: one of the networks, whatever its transport, as a fabric.

use ::rack::equipment::Bill;
use ::rack::{Advance, Fabric, Flow, Probe};
use kernel::{Bytes, Span, Time};
use serde_json::{Map, Value};

use crate::config::Plan;
use crate::transport::{Network, each};

/// A packet-switched rack under simulation.
pub struct Rack {
    network: Network,
    /// What it was built from.
    plan: Plan,
    seed: u64,
    /// The transport's `kind`.
    transport: &'static str,
}

impl Rack {
    /// An idle rack. `seed` is that of all chance in it.
    #[must_use]
    pub fn new(plan: Plan, seed: u64) -> Self {
        let transport = &plan.config.transport;
        let network = transport.network(plan.network.clone(), seed, &[]);
        Self { network, transport: transport.name(), plan, seed }
    }
}

impl Fabric for Rack {
    fn name(&self) -> &'static str {
        "packet-switched"
    }

    fn nodes(&self) -> u32 {
        each!(&self.network, network => network.nodes())
    }

    fn hint_sizes(&mut self, sizes: &[Bytes]) {
        let transport = &self.plan.config.transport;
        if transport.follows_sizes() {
            assert_eq!(self.now(), Time::ZERO, "sizes are told before the first flow");
            self.network = transport.network(self.plan.network.clone(), self.seed, sizes);
        }
    }

    fn advance(&mut self, until: Time, probe: &mut dyn Probe) -> Advance {
        each!(&mut self.network, network => network.advance(until, probe))
    }

    fn ideal_fct(&self, flow: &Flow) -> Span {
        each!(&self.network, network => network.ideal_fct(flow))
    }

    fn bill(&self) -> Option<Bill> {
        Some(self.plan.bill)
    }

    ::rack::leave_to_network!(each, network);

    fn details(&self) -> Map<String, Value> {
        let mut details = Map::new();
        details.insert("transport".into(), self.transport.into());
        details.extend(each!(&self.network, network => network.details()));
        details
    }
}
