//! The rates that R2C2 assigns, without packets: flows come, are computed now and then, and go when
//! their bits are gone.
//!
//! Leaves out how long news takes to spread, and queues: every computation knows every flow, and a
//! flow gets what it is assigned.

use std::time::Instant;

use kernel::Stream;
use r2c2::rates::{Course, Routed, Terms, Waterfill, Whose, capacities};
use r2c2::routing::{Network, Protocol};
use rack::NodeId;
use rack::topology::{Shape, Torus};
use serde::{Deserialize, Serialize};

/// §5.2: a link, in bit/s; what a flow sends at before its first rate.
const LINK_RATE: f64 = 10e9;
/// §5.2: headroom.
const HEADROOM: f64 = 0.05;
/// §5.2: sizes are Pareto of this shape; the scale makes the mean 100 KB.
const SHAPE: f64 = 1.05;
const SCALE_BITS: f64 = 100e3 * 8.0 * (SHAPE - 1.0) / SHAPE;

/// A flow that will come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// In seconds.
    at: f64,
    course: Course,
    bits: f64,
}

/// So many flows of §5.2's workload, `gap` seconds from one to the next on average.
pub(super) fn arrivals(network: &Network, count: usize, gap: f64, seed: u64) -> Vec<Arrival> {
    let mut draw = Stream::new(seed, "reproductions/r2c2/arrivals", 0);
    let nodes = u64::from(network.nodes());
    let mut now = 0.0;
    let mut next = || {
        now += draw.exponential(gap);
        let source = draw.below(nodes);
        let destination = (source + 1 + draw.below(nodes - 1)) % nodes;
        let [source, destination] = [source, destination].map(|node| NodeId::new(node as u32));
        let course = Course { source, destination, protocol: Protocol::Rps };
        Arrival { at: now, course, bits: draw.pareto(SHAPE, SCALE_BITS) }
    };
    (0..count).map(|_| next()).collect()
}

/// The rack of §5.2.
pub(super) fn rack() -> Network {
    let torus = Torus { dimensions: vec![8, 8, 8], ..Torus::default() };
    Network::new(&Shape::Torus(torus)).expect("a torus of 8 by 8 by 8 is sound")
}

/// When rates are computed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum When {
    /// At every start and end of a flow (ρ = 0).
    EveryEvent,
    /// Every so many seconds, of all flows.
    Every(f64),
    /// The same, of those that have lasted for as long: others are not limited (§3.3.2).
    Lasting(f64),
}

/// A flow under way.
#[derive(Clone, Copy, Debug)]
struct Flow {
    index: u32,
    bits: f64,
    rate: f64,
    has_rate: bool,
}

/// What a flow was assigned.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Assigned {
    bits: f64,
    seconds: f64,
}

impl Assigned {
    /// The mean of its rates; none if it never had one.
    pub(super) fn mean(self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.bits / self.seconds)
    }
}

/// A computation of rates.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Computation {
    pub(super) flows: usize,
    /// Wall time.
    pub(super) seconds: f64,
}

/// All flows under way, and what became of all.
struct Rack<'a> {
    arrivals: &'a [Arrival],
    filling: Waterfill<Routed>,
    now: f64,
    flows: Vec<Flow>,
    assigned: Vec<Assigned>,
    computations: Vec<Computation>,
}

/// What each flow was assigned, in the order of arrival, and every computation.
pub(super) fn assign(
    network: &Network,
    arrivals: &[Arrival],
    when: When,
) -> (Vec<Assigned>, Vec<Computation>) {
    let routed = Routed::new(network, &[Protocol::Rps]).expect("spraying suits any graph");
    let mut rack = Rack {
        arrivals,
        filling: Waterfill::new(routed, capacities(network.topology(), HEADROOM)),
        now: 0.0,
        flows: Vec::new(),
        assigned: vec![Assigned::default(); arrivals.len()],
        computations: Vec::new(),
    };
    let mut coming = arrivals.iter().zip(0..).peekable();
    let mut ticks = 1.0;
    loop {
        let arrival = coming.peek().map(|(arrival, _)| arrival.at);
        let end = rack.next_end();
        let tick = match when {
            When::Every(interval) | When::Lasting(interval) => ticks * interval,
            When::EveryEvent => f64::INFINITY,
        };
        let Some(next) = arrival.into_iter().chain(end).reduce(f64::min) else { break };
        rack.go_on(next.min(tick));
        if tick <= next {
            ticks += 1.0;
            rack.compute(if let When::Lasting(interval) = when { interval } else { 0.0 });
            continue;
        }
        if arrival == Some(next) {
            let (arrival, index) = coming.next().expect("it was seen");
            let bits = arrival.bits;
            rack.flows.push(Flow { index, bits, rate: LINK_RATE, has_rate: false });
        }
        rack.remove_done();
        if when == When::EveryEvent {
            rack.compute(0.0);
        }
    }
    (rack.assigned, rack.computations)
}

impl Rack<'_> {
    /// When the next flow ends as things are.
    fn next_end(&self) -> Option<f64> {
        self.flows.iter().map(|flow| self.now + flow.bits / flow.rate).reduce(f64::min)
    }

    fn go_on(&mut self, until: f64) {
        let seconds = until - self.now;
        for flow in &mut self.flows {
            let bits = flow.rate * seconds;
            flow.bits -= bits;
            if flow.has_rate {
                let assigned = &mut self.assigned[flow.index as usize];
                assigned.bits += bits;
                assigned.seconds += seconds;
            }
        }
        self.now = until;
    }

    fn remove_done(&mut self) {
        let filling = &mut self.filling;
        self.flows.retain(|flow| {
            // Less than a bit is the rounding of sums.
            let stays = flow.bits >= 1.0;
            if !stays && filling.has(flow.index) {
                filling.leave(flow.index);
            }
            stays
        });
    }

    /// Computes the rates of flows that have lasted for `age`.
    fn compute(&mut self, age: f64) {
        let start = Instant::now();
        for flow in &self.flows {
            let arrival = &self.arrivals[flow.index as usize];
            if !self.filling.has(flow.index) && self.now - arrival.at >= age {
                self.filling.join(flow.index, arrival.course, Terms::default());
            }
        }
        self.filling.fill(Whose::All);
        let mut count = 0;
        for flow in &mut self.flows {
            if self.filling.has(flow.index) {
                (flow.rate, flow.has_rate) = (self.filling.rate(flow.index), true);
                count += 1;
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        self.computations.push(Computation { flows: count, seconds });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(at: f64, source: u32, bits: f64) -> Arrival {
        let (source, destination) = (NodeId::new(source), NodeId::new(source + 1));
        Arrival { at, course: Course { source, destination, protocol: Protocol::Rps }, bits }
    }

    /// Two flows over one link of 9.5 Gbps that rates may fill.
    #[test]
    fn flows_share_a_link_from_the_next_computation_on() {
        let network = rack();
        let both = [flow(0.0, 0, 9.5e6), flow(0.0, 0, 95e6)];
        let means = |when| -> Vec<f64> {
            let (assigned, _) = assign(&network, &both, when);
            assigned.iter().map(|flow| flow.mean().unwrap_or(0.0)).collect()
        };
        let near = |ours: f64, expected: f64| {
            assert!((ours - expected).abs() < 1e-6 * expected, "{ours}, expected {expected}");
        };
        // Half the link each for 2 ms; then 85.5 Mb in 9 ms.
        let ideal = means(When::EveryEvent);
        near(ideal[0], 4.75e9);
        near(ideal[1], 95e6 / 11e-3);
        // The first is over after 0.95 ms at the rate of a link, before any computation.
        let later = means(When::Every(1e-3));
        assert_eq!(later[0], 0.0);
        near(later[1], 9.5e9);
    }
}
