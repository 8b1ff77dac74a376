//! What carries flows: packets of IP, or operations on remote memory.

use ::rack::equipment::Bill;
use ::rack::node::Nodes;
use ::rack::results::Table;
use ::rack::{Advance, Fabric, Flow, Gauge, Probe, Problem, Stage, Totals, Unfinished};
use kernel::{Bytes, Rate, Span, Time};
use serde_json::{Map, Value};

use super::Packets;
use super::remote::Remote;
use crate::config::{Carrier, Plan};

/// A rack under simulation.
pub enum Rack {
    /// Hosts send packets.
    Packets(Box<Packets>),
    /// Hosts read and write each other's memory.
    Memory(Box<Remote>),
}

impl Rack {
    /// An idle rack. `seed` is that of all chance in it.
    #[must_use]
    pub fn new(plan: Plan, seed: u64) -> Self {
        match plan.config.carrier {
            Carrier::Ip => Self::Packets(Box::new(Packets::new(plan, seed))),
            Carrier::RmaRead | Carrier::RmaWrite => Self::Memory(Box::new(Remote::new(plan, seed))),
        }
    }

    fn either(&self) -> &dyn Fabric {
        match self {
            Self::Packets(rack) => &**rack,
            Self::Memory(rack) => &**rack,
        }
    }

    fn either_mut(&mut self) -> &mut dyn Fabric {
        match self {
            Self::Packets(rack) => &mut **rack,
            Self::Memory(rack) => &mut **rack,
        }
    }
}

impl Fabric for Rack {
    fn name(&self) -> &'static str {
        "aquila"
    }

    fn nodes(&self) -> u32 {
        self.either().nodes()
    }

    fn node_rate(&self) -> Rate {
        self.either().node_rate()
    }

    fn has_handshake(&self) -> bool {
        self.either().has_handshake()
    }

    fn now(&self) -> Time {
        self.either().now()
    }

    fn hint_sizes(&mut self, sizes: &[Bytes]) {
        self.either_mut().hint_sizes(sizes);
    }

    fn set_wire(&mut self, is_on: bool) -> Result<(), Problem> {
        self.either_mut().set_wire(is_on)
    }

    fn set_threads(&mut self, threads: usize) {
        self.either_mut().set_threads(threads);
    }

    fn set_shards(&mut self, shards: usize) -> usize {
        self.either_mut().set_shards(shards)
    }

    fn apart(&self) -> Option<Nodes> {
        self.either().apart()
    }

    fn offer(&mut self, flow: &Flow) {
        self.either_mut().offer(flow);
    }

    fn advance(&mut self, until: Time, probe: &mut dyn Probe) -> Advance {
        self.either_mut().advance(until, probe)
    }

    fn ideal_fct(&self, flow: &Flow) -> Span {
        self.either().ideal_fct(flow)
    }

    fn totals(&self) -> Totals {
        self.either().totals()
    }

    fn stages(&self) -> &'static [Stage] {
        self.either().stages()
    }

    fn gauges(&self) -> &'static [Gauge] {
        self.either().gauges()
    }

    fn sample(&mut self, row: &mut [f64]) {
        self.either_mut().sample(row);
    }

    fn unfinished(&self, limit: usize) -> Vec<Unfinished> {
        self.either().unfinished(limit)
    }

    fn check(&self) -> Result<(), String> {
        self.either().check()
    }

    fn bill(&self) -> Option<Bill> {
        self.either().bill()
    }

    fn tables(&self) -> Vec<Table> {
        self.either().tables()
    }

    fn details(&self) -> Map<String, Value> {
        self.either().details()
    }
}
