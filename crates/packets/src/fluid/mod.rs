//! The fluid oracle: flows as fluids that share the network max-min fairly, at every instant.
//!
//! A lower bound to draw beside packet networks: no queues, no control loop, no lost time; each flow
//! spreads evenly over all its shortest paths and has its max-min fair rate at once whenever a flow
//! starts or ends. Headers count as in packets, and a flow alone takes just the time that its packets
//! would take alone ([`Fabric::ideal_fct`]). Faults are known, and avoided, at once. Rates of fluids
//! are real numbers; the times at which flows end are rounded up to picoseconds.

mod classes;
mod faults;
mod waterfill;

#[cfg(test)]
mod tests;

use kernel::{Bytes, Calendar, PS_PER_SECOND, Rate, Span, Time};
use rack::topology::Vertex;
use rack::{
    Advance, Completion, Fabric, Failure, Flow, Gauge, GaugeKind, NodeId, Probe, Problem, Stage,
    Totals, Unfinished,
};

use crate::config::Plan;
use crate::net::Net;
use crate::network::completion_time;
use crate::transport::Framing;

use classes::Classes;
use faults::Faults;
use waterfill::Waterfill;

/// Odd constant of the event hash (the golden ratio in 64 bits).
const HASH_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Steps, and rates computed anew, between two questions to the probe: milliseconds (our choice).
const WORK_PER_POLL: u64 = 1 << 16;

const STAGES: &[Stage] = &[
    Stage { name: "sharing", meaning: "Longer than alone, for the others' fair shares" },
    Stage { name: "alone", meaning: "What the flow takes alone in the idle network" },
];

const COLUMNS: &[Gauge] = &[
    Gauge {
        name: "open_flows",
        meaning: "Flows offered and not yet delivered",
        kind: GaugeKind::Level,
    },
    Gauge {
        name: "delivered_bytes",
        meaning: "Application bytes that have flowed",
        kind: GaugeKind::Count,
    },
];

/// How far a flow has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Its start is to come.
    Waiting,
    /// It has a rate.
    Flowing,
    /// No path leads to its destination, yet.
    Stalled,
    /// All is sent; the last of it is on the way.
    Draining,
    /// It has ended.
    Over,
}

/// A flow.
#[derive(Clone, Debug)]
struct Fluid {
    flow: Flow,
    ideal: Span,
    /// From the last of the fluid sent to the flow's end.
    offset: Span,
    /// Bits left at `since`, and the rate from then on, in bit/s.
    left: f64,
    rate: f64,
    since: Time,
    state: State,
}

/// What is to happen at a known time.
#[derive(Clone, Copy, Debug)]
enum Event {
    Start(u32),
    End(u32),
    Break(u32),
    Mend(u32),
}

/// Max-min fair fluids on the network of a plan.
#[derive(Clone, Debug)]
pub struct Oracle {
    net: Net,
    framing: Framing,
    classes: Classes,
    rates: Waterfill,
    flows: Vec<Fluid>,
    free: Vec<u32>,
    /// By flow: when its fluid has run out at its present rate; `NEVER` for the others.
    dry: Vec<Time>,
    /// The first of these, as of the last time that rates were computed.
    dry_first: Time,
    calendar: Calendar<Event>,
    faults: Faults,
    now: Time,
    open: u64,
    totals: Totals,
    sampled: Bytes,
    failures: Vec<(u32, Failure)>,
    is_paused: bool,
    /// Since the probe was asked last.
    work: u64,
}

impl Oracle {
    /// The fluids of `plan`, cut into packets as `framing` says for what headers take.
    #[must_use]
    pub fn new(plan: Plan, framing: Framing) -> Self {
        let mut calendar = Calendar::new();
        for (index, fault) in (0..).zip(&plan.faults) {
            calendar.push(fault.at, Event::Break(index));
            if let Some(until) = fault.until {
                calendar.push(until, Event::Mend(index));
            }
        }
        let faults = Faults::new(&plan);
        let net = Net::new(plan.with_faults(&[]).expect("no fault is always right"), 0);
        let classes = Classes::new(&net);
        Self {
            rates: Waterfill::new(&classes.capacity),
            net,
            framing,
            classes,
            flows: Vec::new(),
            free: Vec::new(),
            dry: Vec::new(),
            dry_first: Time::NEVER,
            calendar,
            faults,
            now: Time::ZERO,
            open: 0,
            totals: Totals::default(),
            sampled: Bytes::ZERO,
            failures: Vec::new(),
            is_paused: false,
            work: 0,
        }
    }

    /// Bits on the wire of a flow, headers included.
    fn bits(&self, flow: &Flow) -> f64 {
        let headers = Bytes::new(self.framing.header.into()) * self.framing.packets(flow.size);
        (flow.size + headers).bits() as f64
    }

    fn start(&mut self, place: u32) {
        let flow = self.flows[place as usize].flow;
        if let Some(why) = self.hopeless(&flow) {
            self.failures.push((place, why));
            return;
        }
        self.totals.events += 1;
        if !self.has_path(&flow) {
            let bits = self.bits(&flow);
            let fluid = &mut self.flows[place as usize];
            (fluid.left, fluid.rate, fluid.since) = (bits, 0.0, self.now);
            fluid.state = State::Stalled;
            return;
        }
        let uses = self.classes.uses(&self.net, flow.src.get(), flow.dst.get());
        let alone = uses
            .iter()
            .map(|used| self.classes.capacity[used.link as usize] / used.share)
            .fold(f64::INFINITY, f64::min);
        let bits = self.bits(&flow);
        let fluid = &mut self.flows[place as usize];
        let alone = span(bits / alone);
        fluid.offset = Span::from_ps(fluid.ideal.as_ps().saturating_sub(alone.as_ps()));
        (fluid.left, fluid.rate, fluid.since) = (bits, 0.0, self.now);
        fluid.state = State::Flowing;
        self.rates.add(place, uses);
    }

    /// Computes rates anew for the flows that came and went at this instant.
    fn follow_rates(&mut self) {
        self.rates.refill();
        self.work += self.rates.changed().len() as u64;
        for &place in self.rates.changed() {
            let fluid = &mut self.flows[place as usize];
            let rate = self.rates.rate(place);
            fluid.left -= fluid.rate * (self.now - fluid.since).as_seconds();
            (fluid.rate, fluid.since) = (rate, self.now);
            self.dry[place as usize] = self.now + span(fluid.left.max(0.0) / rate);
        }
        self.find_first_dry();
    }

    /// A flow's fluid has all been sent.
    fn run_dry(&mut self, place: u32) {
        self.totals.events += 1;
        self.dry[place as usize] = Time::NEVER;
        self.rates.remove(place);
        let fluid = &mut self.flows[place as usize];
        fluid.state = State::Draining;
        // No earlier than alone, by rounding or by a way round a fault that is faster.
        let end = (self.now + fluid.offset).max(fluid.flow.start + fluid.ideal);
        self.calendar.push(end, Event::End(place));
    }

    fn end(&mut self, place: u32, probe: &mut dyn Probe) {
        self.flows[place as usize].state = State::Over;
        let Fluid { flow, ideal, .. } = self.flows[place as usize];
        let all = self.now - flow.start;
        self.open -= 1;
        self.totals.delivered += flow.size;
        self.fold(flow.id.get());
        self.fold(self.now.as_ps());
        let stages = [all - ideal, ideal];
        let completion = Completion { flow: &flow, end: self.now, ideal, stages: &stages };
        self.is_paused |= probe.completed(&completion).is_break();
        self.free.push(place);
    }

    fn fold(&mut self, word: u64) {
        let hash = &mut self.totals.event_hash;
        *hash = (hash.rotate_left(5) ^ word).wrapping_mul(HASH_FACTOR);
    }

    /// Application bytes of an open flow that have flowed.
    fn flowed(&self, fluid: &Fluid) -> Bytes {
        let share = match fluid.state {
            State::Waiting | State::Over => return Bytes::ZERO,
            State::Draining => return fluid.flow.size,
            State::Flowing | State::Stalled => {
                let since = fluid.rate * (self.now - fluid.since).as_seconds();
                1.0 - (fluid.left - since) / self.bits(&fluid.flow)
            }
        };
        Bytes::new((share.clamp(0.0, 1.0) * fluid.flow.size.get() as f64) as u64)
    }

    fn fail(&mut self, place: u32, why: Failure, probe: &mut dyn Probe) {
        let flowed = self.flowed(&self.flows[place as usize]);
        let fluid = &mut self.flows[place as usize];
        let flow = fluid.flow;
        if std::mem::replace(&mut fluid.state, State::Over) == State::Flowing {
            self.dry[place as usize] = Time::NEVER;
            self.rates.remove(place);
        }
        self.open -= 1;
        self.totals.delivered += flowed;
        self.totals.lost += flow.size - flowed;
        self.fold(!flow.id.get());
        self.is_paused |= probe.failed(&flow, self.now, why).is_break();
        self.free.push(place);
    }

    /// Finds when the next fluid runs out. As many flows are open as a core reads in a microsecond or two: a
    /// heap, in which every change of rates would move most entries, is slower.
    pub(super) fn find_first_dry(&mut self) {
        self.dry_first = self.dry.iter().copied().min().unwrap_or(Time::NEVER);
    }

    /// All fluids run out that do so now.
    fn run_dry_now(&mut self) {
        for place in 0..self.dry.len() {
            if self.dry[place] == self.now {
                self.run_dry(place as u32);
            }
        }
    }

    /// A step is done: now and then the probe is asked whether to pause.
    fn poll(&mut self, probe: &mut dyn Probe) {
        self.work += 1;
        if self.work >= WORK_PER_POLL {
            self.work = 0;
            self.is_paused |= probe.poll().is_break();
        }
    }

    fn settle(&mut self, probe: &mut dyn Probe) {
        while let Some((place, why)) = self.failures.pop() {
            self.fail(place, why, probe);
        }
    }

    fn step(&mut self, event: Event, probe: &mut dyn Probe) {
        match event {
            Event::Start(place) => self.start(place),
            Event::End(place) => self.end(place, probe),
            Event::Break(fault) => self.broken(fault),
            Event::Mend(fault) => self.mended(fault),
        }
        self.settle(probe);
    }
}

/// Seconds as a span, rounded up.
fn span(seconds: f64) -> Span {
    Span::from_ps((seconds * PS_PER_SECOND as f64).ceil() as u64)
}

impl Fabric for Oracle {
    fn name(&self) -> &'static str {
        "fluid"
    }

    fn nodes(&self) -> u32 {
        self.net.plan.topology.hosts()
    }

    fn can_trace(&self) -> Result<(), Problem> {
        Err(Problem::new("trace", "fluid has no packets to record"))
    }

    fn node_rate(&self) -> Rate {
        self.net.plan.node_rate()
    }

    fn now(&self) -> Time {
        self.now
    }

    fn offer(&mut self, flow: &Flow) {
        assert_ne!(flow.src, flow.dst, "{:?} goes from a node to itself", flow.id);
        let fluid = Fluid {
            flow: *flow,
            ideal: self.ideal_fct(flow),
            offset: Span::ZERO,
            left: 0.0,
            rate: 0.0,
            since: self.now,
            state: State::Waiting,
        };
        self.open += 1;
        let place = match self.free.pop() {
            Some(place) => {
                self.flows[place as usize] = fluid;
                place
            }
            None => {
                self.flows.push(fluid);
                self.dry.push(Time::NEVER);
                self.flows.len() as u32 - 1
            }
        };
        if flow.start > self.now {
            self.calendar.push(flow.start, Event::Start(place));
        } else {
            self.start(place);
        }
    }

    fn advance(&mut self, until: Time, probe: &mut dyn Probe) -> Advance {
        self.settle(probe);
        while !self.is_paused {
            // All that is planned for an instant comes first, then rates, then what runs out at it.
            let just_after = |at: Time| Time::from_ps(at.as_ps().saturating_add(1));
            if self.rates.is_pending() && self.now < until {
                match self.calendar.pop_before(just_after(self.now)) {
                    Some((_, event)) => self.step(event, probe),
                    None => self.follow_rates(),
                }
                self.poll(probe);
                continue;
            }
            let dry_at = self.dry_first;
            if let Some((now, event)) = self.calendar.pop_before(until.min(just_after(dry_at))) {
                self.now = now;
                self.step(event, probe);
                self.poll(probe);
            } else if dry_at < until {
                self.now = dry_at;
                self.run_dry_now();
                self.poll(probe);
            } else {
                if until != Time::NEVER {
                    self.now = until;
                }
                let is_busy = dry_at != Time::NEVER || self.rates.is_pending();
                let is_idle = !is_busy && self.calendar.is_empty();
                return if is_idle { Advance::Idle } else { Advance::Reached };
            }
        }
        self.is_paused = false;
        Advance::Paused
    }

    fn ideal_fct(&self, flow: &Flow) -> Span {
        completion_time(&self.net, self.framing, flow)
    }

    fn totals(&self) -> Totals {
        let open: Bytes = self.flows.iter().map(|fluid| self.flowed(fluid)).sum();
        Totals { delivered: self.totals.delivered + open, ..self.totals }
    }

    fn stages(&self) -> &'static [Stage] {
        STAGES
    }

    fn gauges(&self) -> &'static [Gauge] {
        COLUMNS
    }

    fn sample(&mut self, row: &mut [f64]) {
        row[0] = self.open as f64;
        let delivered = self.totals().delivered;
        row[1] = (delivered - self.sampled).get() as f64;
        self.sampled = delivered;
    }

    fn unfinished(&self, limit: usize) -> Vec<Unfinished> {
        let open = self.flows.iter().filter(|fluid| fluid.state != State::Over).take(limit);
        open.map(|fluid| Unfinished { flow: fluid.flow, delivered: self.flowed(fluid) }).collect()
    }
}

/// The rate that each of these flows would have if they all lasted for ever, in bit/s.
#[must_use]
pub fn fair_rates(plan: &Plan, pairs: &[(NodeId, NodeId)]) -> Vec<f64> {
    let net = Net::new(plan.clone(), 0);
    let classes = Classes::new(&net);
    let mut rates = Waterfill::new(&classes.capacity);
    for (place, &(src, dst)) in (0..).zip(pairs) {
        let (src, dst) = (Vertex::new(src.get()), dst.get());
        rates.add(place, classes.uses(&net, src.get(), dst));
    }
    rates.refill();
    (0..pairs.len() as u32).map(|place| rates.rate(place)).collect()
}
