//! A rack whose nodes are the ports of one switch, advanced cycle by cycle.
//!
//! Models: SCOC §4.E and §6.A as far as one switch goes: flows are cut into packets at their node and
//! enter the switch as it lends credits; a cycle is the switch's, or its slot. Cables and serial
//! links are constant times. Leaves out what the network around the chip does: leaf switches, QCN,
//! end-to-end credits.

mod details;
mod flows;
mod hosts;
#[cfg(test)]
mod tests;

use ::rack::equipment::Bill;
use ::rack::results::Table;
use ::rack::{
    Advance, Completion, Fabric, Flow, Gauge, GaugeKind, Probe, Stage, Totals, Unfinished,
};
use kernel::{Bytes, Histogram, Rate, Span, Time};
use serde_json::{Map, Value};
use switching::{Departure, Line, Switch, Wheel};

use crate::AnySwitch;
use crate::config::Plan;
use flows::{Flows, STAGES};
use hosts::Hosts;

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

/// What one input has in the switch.
#[derive(Clone, Copy, Debug, Default)]
struct Inside {
    packets: u32,
    bytes: Bytes,
}

/// A rack under simulation.
#[derive(Clone, Debug)]
pub struct Rack {
    plan: Plan,
    line: Line,
    switch: AnySwitch,
    hosts: Hosts,
    flows: Flows,
    /// Flows that have left the switch whole, by the cycle in which they arrive.
    arriving: Wheel<u32>,
    arrived: Vec<u32>,
    departures: Vec<Departure>,
    inside: Vec<Inside>,
    /// What a packet found of its input in the switch, in bytes.
    found: Histogram,
    /// Next cycle to simulate.
    cycle: u64,
    /// Everything before has happened.
    reached: Time,
    totals: Totals,
    /// Since the last sample: the counts then, and the most packets of an input.
    sampled: Totals,
    peak: u32,
    admitted: u64,
    departed: u64,
}

impl Rack {
    /// An idle rack. `seed` is that of all chance in it.
    #[must_use]
    pub fn new(plan: Plan, seed: u64) -> Self {
        let (line, nodes) = (plan.switch.line(), plan.config.nodes as usize);
        Self {
            line,
            switch: plan.switch.build(nodes, seed),
            hosts: Hosts::new(line, nodes),
            flows: Flows::new(&plan),
            arriving: Wheel::new(AHEAD),
            arrived: Vec::new(),
            departures: Vec::new(),
            inside: vec![Inside::default(); nodes],
            found: Histogram::new(),
            cycle: 0,
            reached: Time::ZERO,
            totals: Totals::default(),
            sampled: Totals::default(),
            peak: 0,
            admitted: 0,
            departed: 0,
            plan,
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
        let Self { hosts, switch, flows, inside, found, totals, peak, admitted, .. } = self;
        hosts.feed(self.cycle, switch, flows, |packet| {
            let input = &mut inside[usize::from(packet.source)];
            found.record(input.bytes.get());
            input.packets += 1;
            input.bytes += packet.size();
            *peak = (*peak).max(input.packets);
            totals.queue_max_cells = totals.queue_max_cells.max(u64::from(input.packets));
            totals.queue_max = totals.queue_max.max(input.bytes);
            totals.hops += 1;
            *admitted += 1;
        });
    }

    /// What leaves the switch.
    fn depart(&mut self) {
        for departure in &self.departures {
            let Departure { packet, at } = departure;
            let input = &mut self.inside[usize::from(packet.source)];
            input.packets -= 1;
            input.bytes -= packet.size();
            self.departed += 1;
            self.totals.hops += 1;
            self.totals.delivered += packet.size() - self.plan.config.header;
            let ports = u64::from(packet.source) << 16 | u64::from(packet.destination);
            let hash = fold(self.totals.event_hash, ports);
            self.totals.event_hash = fold(hash, at.get());
            if let Some(end) = self.flows.left(departure) {
                let due = self.line.cycle_of(end).clamp(self.cycle, self.cycle + AHEAD);
                self.arriving.put(due, packet.tag);
            }
        }
    }

    /// Tells of the flows whose last bit leaves the switch in this cycle.
    fn complete(&mut self, probe: &mut dyn Probe) -> bool {
        let mut arrived = std::mem::take(&mut self.arrived);
        self.arriving.turn(&mut arrived);
        let next = self.line.start_of(self.cycle + 1);
        arrived.retain(|&place| {
            let end = self.flows.get(place).end;
            let now = end < next;
            if !now {
                let due = self.line.cycle_of(end).min(self.cycle + AHEAD);
                self.arriving.put(due, place);
            }
            now
        });
        arrived.sort_unstable_by_key(|&place| (self.flows.get(place).end, place));
        let mut paused = false;
        for &place in &arrived {
            let (flow, end, stages) = self.flows.close(place);
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

    fn offer(&mut self, flow: &Flow) {
        let place = self.flows.open(flow);
        let start = self.flows.get(place).start;
        self.hosts.add(flow, place, start, self.cycle);
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
        let queue_p99 = Bytes::new(self.found.quantile(0.99).unwrap_or(0));
        Totals { queue_p99, ..self.totals }
    }

    fn stages(&self) -> &'static [Stage] {
        STAGES
    }

    fn gauges(&self) -> &'static [Gauge] {
        GAUGES
    }

    fn sample(&mut self, row: &mut [f64]) {
        let values = [
            self.flows.count() as f64,
            self.switch.held() as f64,
            f64::from(self.peak),
            (self.totals.hops - self.sampled.hops) as f64,
            (self.totals.delivered - self.sampled.delivered).get() as f64,
        ];
        row.copy_from_slice(&values);
        self.sampled = self.totals;
        self.peak = self.inside.iter().map(|input| input.packets).max().unwrap_or(0);
    }

    fn unfinished(&self, limit: usize) -> Vec<Unfinished> {
        self.flows.unfinished(limit)
    }

    fn check(&self) -> Result<(), String> {
        let held = self.switch.held() as u64;
        if self.admitted != self.departed + held {
            let (admitted, departed) = (self.admitted, self.departed);
            return Err(format!("{admitted} packets entered, {departed} left and {held} are held"));
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
