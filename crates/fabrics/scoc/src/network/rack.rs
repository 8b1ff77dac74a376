//! The rack as a fabric: the engine with one of the transports and the program of the switches.

use ::rack::equipment::Bill;
use ::rack::{Advance, Fabric, Flow, Probe, WithIdeal};
use kernel::{Bytes, Span, Time};
use packets::Framings;
use packets::config::{Forwarding, Queues};
use serde_json::{Map, Value};

use super::config::{Plan, SpineTable};
use super::ideal::Ideal;
use super::layout::topology;
use super::transport::{Network, each};

/// A rack under simulation.
pub struct Rack {
    network: Network,
    ideal: Ideal,
    plan: Plan,
}

/// Room of a port's queue in the engine: what comes to it was granted, so nothing is dropped there (our
/// choice: more than any credits come to).
const ENDLESS: Bytes = Bytes::new(2_000_000_000);

/// The engine's part of a plan.
pub(super) fn engine(plan: &Plan) -> packets::Plan {
    let config = packets::Config {
        forwarding: Forwarding::CutThrough,
        switch_latency: Span::ZERO,
        mtu: plan.config.transport.table().mtu(),
        queues: Queues { port_buffer: ENDLESS, ..Queues::default() },
        ..packets::Config::default()
    };
    packets::Plan { config, topology: topology(&plan.config), faults: Vec::new() }
}

impl Rack {
    /// An idle rack. `seed` is that of all chance in it.
    #[must_use]
    pub fn new(plan: Plan, seed: u64) -> Self {
        let network = plan.config.transport.network(&plan, seed, &[]);
        let ideal =
            Ideal::new(&plan, each!(&network, network => Framings::new(network.transport())));
        Self { network, ideal, plan }
    }
}

impl Fabric for Rack {
    fn name(&self) -> &'static str {
        "scoc-network"
    }

    fn nodes(&self) -> u32 {
        self.plan.config.nodes
    }

    fn advance(&mut self, until: Time, probe: &mut dyn Probe) -> Advance {
        let ideal = &self.ideal;
        let mut corrected = WithIdeal::new(probe, |flow| ideal.completion_time(flow));
        each!(&mut self.network, network => network.advance(until, &mut corrected))
    }

    fn ideal_fct(&self, flow: &Flow) -> Span {
        self.ideal.completion_time(flow)
    }

    ::rack::leave_to_network!(each, network);

    fn bill(&self) -> Option<Bill> {
        self.plan.bill()
    }

    fn details(&self) -> Map<String, Value> {
        let spine = match self.plan.config.spine {
            SpineTable::Scoc(_) => "scoc",
            SpineTable::Flat(_) => "flat",
            SpineTable::OutputQueued(_) => "output-queued",
        };
        let mut details = Map::new();
        details.insert("spine".into(), spine.into());
        details.insert("transport".into(), self.plan.config.transport.name().into());
        details.extend(each!(&self.network, network => network.details()));
        details
    }
}
