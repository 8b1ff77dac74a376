//! A rack whose nodes are the ports of one switch, advanced cycle by cycle.
//!
//! Models: SCOC §4.E and §6.A as far as one switch goes: flows are cut into packets at their node and
//! enter the switch as it lends credits; a cycle is the switch's, or its slot. Cables and serial
//! links are constant times. Leaves out what the network around the chip does: leaf switches, QCN,
//! end-to-end credits.

mod details;
mod flows;
pub mod header;
mod hosts;
mod instances;
mod link;
mod node;
mod receivers;
mod senders;
#[cfg(test)]
mod tests;
mod trace;

use ::rack::equipment::Bill;
use ::rack::node::Nodes;
use ::rack::results::Table;
use ::rack::trace::{Followed, Trace};
use ::rack::{
    Advance, Completion, Fabric, Flow, Gauge, GaugeKind, Probe, Problem, Stage, Totals, Unfinished,
};
use kernel::{Bytes, Rate, Span, Time};
use serde_json::{Map, Value};
use switching::{Departure, Line, Packet, Switch, Wheel};

use crate::AnySwitch;
use crate::config::Plan;
use flows::{Ended, Flows, STAGES};
use hosts::Hosts;
pub use instances::{Instance, Message, instances};
use link::{Counted, Link};
pub use receivers::End;
use receivers::Receivers;
use senders::Numbers;
use trace::{Recorder, Watched};

/// Odd constant of the event hash (the golden ratio in 64 bits).
const HASH_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Cycles that the wheel of arrivals looks ahead; what takes longer is looked at again.
const AHEAD: u64 = 1023;
/// Cycles between two questions to the probe: milliseconds (our choice).
const CYCLES_PER_POLL: u64 = 1 << 12;

/// Columns of the time series.
const GAUGES: &[Gauge] = &[
    Gauge {
        name: "open_flows",
        meaning: "Flows offered and not yet delivered",
        kind: GaugeKind::Level,
    },
    Gauge { name: "held_packets", meaning: "Packets in the switch", kind: GaugeKind::Level },
    Gauge {
        name: "input_max_packets",
        meaning: "Most packets of one input in the switch since the last sample",
        kind: GaugeKind::Peak,
    },
    Gauge { name: "hops", meaning: "Packets sent on a link", kind: GaugeKind::Count },
    Gauge {
        name: "delivered_bytes",
        meaning: "Application bytes that left the switch",
        kind: GaugeKind::Count,
    },
];

/// A rack under simulation.
#[derive(Clone, Debug)]
pub struct Rack {
    plan: Plan,
    seed: u64,
    line: Line,
    switch: AnySwitch,
    hosts: Hosts,
    flows: Flows,
    receivers: Receivers,
    /// Flows that have left the switch whole, by the cycle in which they arrive.
    arriving: Wheel<End>,
    arrived: Vec<End>,
    departures: Vec<Departure>,
    /// What passes between nodes and the switch.
    link: Link,
    counted: Counted,
    /// Next cycle to simulate.
    cycle: u64,
    /// Everything before has happened.
    reached: Time,
    totals: Totals,
    /// The counts at the last sample.
    sampled: Totals,
    departed: u64,
    /// The record of packets, if there is one.
    recorder: Option<Box<Recorder>>,
}

impl Rack {
    /// An idle rack. `seed` is that of all chance in it.
    #[must_use]
    pub fn new(plan: Plan, seed: u64) -> Self {
        let (line, nodes) = (plan.switch.line(), plan.config.nodes as usize);
        Self {
            line,
            switch: plan.switch.build(nodes, seed),
            hosts: Hosts::new(&plan, Numbers::OfSource),
            flows: Flows::new(&plan),
            receivers: Receivers::new(line, plan.config.header, nodes),
            arriving: Wheel::new(AHEAD),
            arrived: Vec::new(),
            departures: Vec::new(),
            link: Link::new(plan.config.nodes),
            counted: Counted::new(nodes),
            cycle: 0,
            reached: Time::ZERO,
            totals: Totals::default(),
            sampled: Totals::default(),
            departed: 0,
            recorder: None,
            plan,
            seed,
        }
    }

    /// Start of a cycle.
    fn start_of(&self, cycle: u64) -> Time {
        Time::ZERO + self.line.span(self.line.start_of(cycle))
    }

    /// First cycle that starts at `time` or later.
    fn cycle_from(&self, time: Time) -> u64 {
        self.line.cycle_from(self.line.ticks_of(time))
    }

    fn is_idle(&self) -> bool {
        self.flows.count() == 0 && self.switch.is_idle()
    }

    /// Simulates one cycle. True if the probe asked to pause.
    fn step(&mut self, probe: &mut dyn Probe) -> bool {
        self.feed();
        self.departures.clear();
        self.switch.step(&mut self.departures);
        self.depart();
        let paused = self.complete(probe);
        self.cycle += 1;
        // A step of the engine is a cycle of a port.
        self.totals.events += u64::from(self.plan.config.nodes);
        paused
    }

    fn feed(&mut self) {
        let Self { hosts, switch, link, counted, recorder, .. } = self;
        let mut uplink = link.to(switch, counted);
        match recorder.as_deref_mut() {
            None => hosts.feed(self.cycle, &mut uplink),
            Some(recorder) => hosts.feed(self.cycle, &mut Watched { uplink, recorder }),
        }
    }

    /// What leaves the switch.
    fn depart(&mut self) {
        if let Some(recorder) = self.recorder.as_deref_mut() {
            recorder.leave(&self.departures);
        }
        for departure in &self.departures {
            let Departure { packet, at } = departure;
            self.counted.left(packet);
            self.departed += 1;
            self.totals.hops += 1;
            let ports = u64::from(packet.source) << 16 | u64::from(packet.destination);
            let hash = fold(self.totals.event_hash, ports);
            self.totals.event_hash = fold(hash, at.get());
            let mut there = Packet::default();
            let Some(packet) = self.link.deliver(packet, &mut there) else { continue };
            self.totals.delivered += packet.size() - self.plan.config.header;
            if let Some(end) = self.receivers.receive(packet, *at) {
                self.flows.leaves(&end);
                let due = self.line.cycle_of(end.at).clamp(self.cycle, self.cycle + AHEAD);
                self.arriving.put(due, end);
            }
        }
    }

    /// Tells of the flows whose last bit leaves the switch in this cycle.
    fn complete(&mut self, probe: &mut dyn Probe) -> bool {
        let mut arrived = std::mem::take(&mut self.arrived);
        self.arriving.turn(&mut arrived);
        let next = self.line.start_of(self.cycle + 1);
        arrived.retain(|end| {
            let now = end.at < next;
            if !now {
                let due = self.line.cycle_of(end.at).min(self.cycle + AHEAD);
                self.arriving.put(due, *end);
            }
            now
        });
        arrived.sort_unstable_by_key(|end| (end.at, self.flows.place(end)));
        let mut paused = false;
        for told in &arrived {
            self.receivers.close(told);
            let Some(place) = self.flows.place(told) else { continue };
            let Ended { flow, end, stages } = self.flows.close(place, told);
            for word in [flow.id.get(), end.as_ps()] {
                self.totals.event_hash = fold(self.totals.event_hash, word);
            }
            let ideal = self.flows.ideal(&self.plan, &flow);
            let completion = Completion { flow: &flow, end, ideal, stages: &stages };
            paused |= probe.completed(&completion).is_break();
        }
        self.arrived = arrived;
        paused
    }

    /// Goes on to `cycle` while nothing is under way.
    fn skip_to(&mut self, cycle: u64) {
        if cycle > self.cycle {
            self.switch.skip_to(cycle);
            self.hosts.skip_to(cycle);
            self.arriving.skip_to(cycle);
            self.cycle = cycle;
        }
    }
}

#[inline]
fn fold(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(HASH_FACTOR)
}

impl Fabric for Rack {
    fn name(&self) -> &'static str {
        "scoc"
    }

    fn nodes(&self) -> u32 {
        self.plan.config.nodes
    }

    fn node_rate(&self) -> Rate {
        self.plan.config.line_rate
    }

    fn now(&self) -> Time {
        self.reached
    }

    fn set_wire(&mut self, is_on: bool) -> Result<(), Problem> {
        self.link.uses_bytes = is_on;
        Ok(())
    }

    fn can_trace(&self) -> Result<(), Problem> {
        Ok(())
    }

    fn set_trace(&mut self, followed: &[Followed]) {
        self.recorder = Some(Box::new(Recorder::new(&self.plan, followed)));
    }

    fn take_trace(&mut self) -> Trace {
        self.recorder.take().map_or_else(Trace::default, |recorder| recorder.close())
    }

    fn apart(&self) -> Option<Nodes> {
        node::apart(&self.plan, self.seed)
    }

    fn offer(&mut self, flow: &Flow) {
        let number = self.hosts.add(flow, self.cycle);
        self.flows.open(flow, number);
        if let Some(recorder) = self.recorder.as_deref_mut() {
            recorder.begins(flow, number);
        }
    }

    fn advance(&mut self, until: Time, probe: &mut dyn Probe) -> Advance {
        let end = if until == Time::NEVER { u64::MAX } else { self.cycle_from(until) };
        while self.cycle < end {
            if self.is_idle() {
                if until != Time::NEVER {
                    self.skip_to(end);
                }
                break;
            }
            let paused = self.step(probe);
            let asked = self.cycle.is_multiple_of(CYCLES_PER_POLL) && probe.poll().is_break();
            if paused || asked {
                self.reached = self.reached.max(self.start_of(self.cycle));
                return Advance::Paused;
            }
        }
        let now = if until == Time::NEVER { self.start_of(self.cycle) } else { until };
        self.reached = self.reached.max(now);
        if self.is_idle() { Advance::Idle } else { Advance::Reached }
    }

    fn ideal_fct(&self, flow: &Flow) -> Span {
        self.flows.ideal(&self.plan, flow)
    }

    fn totals(&self) -> Totals {
        let Counted { packets_max, bytes_max, .. } = self.counted;
        Totals {
            hops: self.totals.hops + self.counted.admitted,
            queue_max_cells: packets_max.into(),
            queue_max: bytes_max,
            queue_p99: Bytes::new(self.counted.found.quantile(0.99).unwrap_or(0)),
            ..self.totals
        }
    }

    fn stages(&self) -> &'static [Stage] {
        STAGES
    }

    fn gauges(&self) -> &'static [Gauge] {
        GAUGES
    }

    fn sample(&mut self, row: &mut [f64]) {
        let totals = self.totals();
        let values = [
            self.flows.count() as f64,
            self.switch.held() as f64,
            f64::from(self.counted.take_peak()),
            (totals.hops - self.sampled.hops) as f64,
            (totals.delivered - self.sampled.delivered).get() as f64,
        ];
        row.copy_from_slice(&values);
        self.sampled = totals;
    }

    fn unfinished(&self, limit: usize) -> Vec<Unfinished> {
        let delivered =
            |flow: &Flow, number: u32| self.receivers.bytes(flow.dst.get(), flow.src.get(), number);
        self.flows.unfinished(limit, delivered)
    }

    fn check(&self) -> Result<(), String> {
        let (held, admitted) = (self.switch.held() as u64, self.counted.admitted);
        let departed = self.departed;
        if admitted != departed + held {
            return Err(format!("{admitted} packets entered, {departed} left and {held} are held"));
        }
        let unexpected = self.link.malformed + self.receivers.unexpected;
        if unexpected > 0 {
            return Err(format!("{unexpected} packets made no sense to their destinations"));
        }
        self.switch.check()
    }

    fn bill(&self) -> Option<Bill> {
        self.plan.bill()
    }

    fn tables(&self) -> Vec<Table> {
        details::tables(self)
    }

    fn details(&self) -> Map<String, Value> {
        details::details(self)
    }
}
