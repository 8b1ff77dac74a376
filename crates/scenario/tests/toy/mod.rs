//! A fabric for tests: every flow takes its sending time and one microsecond, alone or not.

use std::collections::BTreeMap;

use kernel::{Bytes, Rate, Span, Time};
use rack::{
    Advance, Completion, Component, Fabric, Fault, Flow, Gauge, Probe, Problem, Stage, Totals,
    Unfinished,
};
use scenario::Registry;
use scenario::registry::{FabricKind, Model, Registered};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The time that every flow takes beside its sending time.
pub const LATENCY: Span = Span::from_us(1);

/// A rack in which nobody waits.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Nodes in the rack. Default 8. At least 2.
    pub nodes: u32,
    /// Rate of a node. Unit: bit/s. Default 10 Gbps.
    pub rate: Rate,
    /// Guard band. Unit: time. Default 2.75 ns. Has no effect.
    pub guard: Span,
}

impl Default for Config {
    fn default() -> Self {
        Self { nodes: 8, rate: Rate::from_gbps(10), guard: Span::from_ps(2_750) }
    }
}

/// The model of [`Config`].
pub struct Toy;

impl Model for Toy {
    const NAME: &'static str = "toy";
    const SUMMARY: &'static str = "A rack in which nobody waits.";
    type Config = Config;
    type Plan = Config;
    type Rack = Rack;

    fn memory(config: &Config) -> Bytes {
        Bytes::new(u64::from(config.nodes) * 1_000)
    }

    fn plan(config: &Config) -> Result<Config, Vec<Problem>> {
        if config.nodes < 2 {
            let message = format!("a rack of {}; expected at least 2 nodes", config.nodes);
            return Err(vec![Problem::new("nodes", message)]);
        }
        Ok(config.clone())
    }

    fn resolved(plan: &Config) -> &Config {
        plan
    }

    fn nodes(plan: &Config) -> u32 {
        plan.nodes
    }

    fn load_rate(plan: &Config) -> Rate {
        plan.rate
    }

    fn with_faults(plan: Config, faults: &[Fault]) -> Result<Config, Vec<Problem>> {
        let is_node = |fault: &&Fault| matches!(fault.component, Component::Node(_));
        let alien = faults.iter().filter(|fault| !is_node(fault));
        let problems: Vec<_> = alien
            .map(|fault| Problem::new("", format!("there is no {}", fault.component)))
            .collect();
        if problems.is_empty() { Ok(plan) } else { Err(problems) }
    }

    fn rack(plan: Config, _: u64) -> Rack {
        Rack { plan, now: Time::ZERO, under_way: BTreeMap::new(), totals: Totals::default() }
    }
}

static TOYS: &[&dyn FabricKind] = &[&Registered::<Toy>::new()];

/// A registry with nothing else.
pub fn registry() -> Registry {
    Registry::of(TOYS)
}

/// The running network.
pub struct Rack {
    plan: Config,
    now: Time,
    /// Flows by end and number.
    under_way: BTreeMap<(Time, u64), Flow>,
    totals: Totals,
}

impl Fabric for Rack {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn nodes(&self) -> u32 {
        self.plan.nodes
    }

    fn node_rate(&self) -> Rate {
        self.plan.rate
    }

    fn now(&self) -> Time {
        self.now
    }

    fn offer(&mut self, flow: &Flow) {
        let end = flow.start + self.ideal_fct(flow);
        self.under_way.insert((end, flow.id.get()), *flow);
    }

    fn advance(&mut self, until: Time, probe: &mut dyn Probe) -> Advance {
        while let Some(first) = self.under_way.first_entry().filter(|e| e.key().0 < until) {
            let ((end, number), flow) = first.remove_entry();
            self.now = self.now.max(end);
            self.totals.hops += 1;
            self.totals.events += 1;
            self.totals.delivered += flow.size;
            let mixed = self.totals.event_hash.rotate_left(5) ^ end.as_ps() ^ (number << 40);
            self.totals.event_hash = mixed;
            let ideal = end - flow.start;
            let stages = [ideal];
            let completion = Completion { flow: &flow, end, ideal, stages: &stages };
            if probe.completed(&completion).is_break() {
                return Advance::Paused;
            }
        }
        if until != Time::NEVER {
            self.now = self.now.max(until);
        }
        if self.under_way.is_empty() { Advance::Idle } else { Advance::Reached }
    }

    fn ideal_fct(&self, flow: &Flow) -> Span {
        self.plan.rate.send_time(flow.size) + LATENCY
    }

    fn totals(&self) -> Totals {
        self.totals
    }

    fn stages(&self) -> &'static [Stage] {
        &[Stage { name: "wire", meaning: "On the wire." }]
    }

    fn gauges(&self) -> &'static [Gauge] {
        &[]
    }

    fn sample(&mut self, _: &mut [f64]) {}

    fn unfinished(&self, limit: usize) -> Vec<Unfinished> {
        let open = |flow: &Flow| Unfinished { flow: *flow, delivered: Bytes::ZERO };
        self.under_way.values().take(limit).map(open).collect()
    }
}
