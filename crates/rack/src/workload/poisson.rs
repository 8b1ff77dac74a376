//! Open-loop flows: Poisson arrivals, sizes and pairs drawn one flow at a time.
//!
//! Arrivals, sizes, sources and destinations each have a stream of their own: another load leaves
//! sizes and pairs as they were. Memory does not grow with the number of flows.

use kernel::{Stream, Time};

use super::Workload;
use super::arrivals::Arrivals;
use super::patterns::{Pairs, Pattern};
use super::sizes::Sizes;
use crate::{Class, Flow, FlowId};

/// When a workload ends: after so many flows or at an instant, whichever comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stop {
    /// How many flows at most; `None`: no end.
    pub flows: Option<u64>,
    /// No flow starts at or after this instant.
    pub until: Time,
}

/// Poisson arrivals.
#[derive(Clone, Debug)]
pub struct Poisson {
    arrivals: Arrivals,
    sizes: Sizes,
    size_stream: Stream,
    pairs: Pairs,
    class: Class,
    stop: Stop,
    offered: u64,
    next: Option<Time>,
}

impl Poisson {
    /// Flows of these sizes between pairs of this pattern over `nodes` nodes, on average each
    /// `interarrival_ps` picoseconds.
    #[must_use]
    pub fn new(
        nodes: u32,
        seed: u64,
        interarrival_ps: f64,
        sizes: Sizes,
        pattern: Pattern,
        stop: Stop,
    ) -> Self {
        let mut workload = Self {
            arrivals: Arrivals::new(interarrival_ps, Stream::new(seed, "workload/arrivals", 0)),
            sizes,
            size_stream: Stream::new(seed, "workload/sizes", 0),
            pairs: Pairs::new(nodes, pattern, seed),
            class: Class::default(),
            stop,
            offered: 0,
            next: None,
        };
        workload.next = workload.arrive();
        workload
    }

    /// The same flows in this class.
    #[must_use]
    pub fn with_class(self, class: Class) -> Self {
        Self { class, ..self }
    }

    fn arrive(&mut self) -> Option<Time> {
        if self.stop.flows.is_some_and(|flows| self.offered >= flows) {
            return None;
        }
        self.arrivals.step().filter(|&start| start < self.stop.until)
    }
}

impl Workload for Poisson {
    fn next_start(&mut self) -> Option<Time> {
        self.next
    }

    fn next_flow(&mut self) -> Option<Flow> {
        let start = self.next?;
        let (src, dst) = self.pairs.draw();
        let size = self.sizes.draw(&mut self.size_stream);
        let id = FlowId::new(self.offered);
        self.offered += 1;
        self.next = self.arrive();
        Some(Flow { id, src, dst, size, start, class: self.class })
    }

    fn total(&self) -> Option<u64> {
        self.stop.flows.filter(|_| self.stop.until == Time::NEVER)
    }

    fn is_finite(&self) -> bool {
        self.stop.flows.is_some() || self.stop.until < Time::NEVER
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Bytes, Rate};

    use super::super::arrivals::{interarrival_ps, load};
    use super::super::sizes::Pareto;
    use super::super::testing::{check_open_loop, drain};
    use super::*;

    const ALWAYS: Stop = Stop { flows: Some(20_000), until: Time::NEVER };

    fn poisson(seed: u64, load: f64, stop: Stop) -> Poisson {
        let sizes = Sizes::Pareto(Pareto::cut(1.05, 1e5, 1e7));
        let tau = interarrival_ps(load, sizes.mean(), Rate::from_gbps(50), 64);
        Poisson::new(64, seed, tau, sizes, Pattern::Uniform, stop)
    }

    #[test]
    fn flows_are_well_formed_and_as_many_as_announced() {
        let flows = check_open_loop(64, poisson(1, 0.5, ALWAYS));
        assert_eq!(flows.len(), 20_000);
    }

    #[test]
    fn the_same_seed_gives_the_same_flows_and_another_seed_others() {
        let flows = |seed| drain(poisson(seed, 0.5, ALWAYS));
        assert_eq!(flows(1), flows(1));
        assert_ne!(flows(1), flows(2));
    }

    #[test]
    fn another_load_changes_neither_sizes_nor_pairs() {
        let (low, high) = (drain(poisson(1, 0.1, ALWAYS)), drain(poisson(1, 0.9, ALWAYS)));
        let content = |flow: &Flow| (flow.id, flow.src, flow.dst, flow.size);
        assert!(low.iter().map(content).eq(high.iter().map(content)));
        assert!(low.last().unwrap().start > high.last().unwrap().start);
    }

    #[test]
    fn the_realised_load_is_the_nominal_one_when_the_tail_is_short() {
        // Fixed sizes: only the arrival times vary; four standard errors, 1 / sqrt(flows).
        let sizes = Sizes::Fixed(Bytes::new(10_000));
        let tau = interarrival_ps(0.5, sizes.mean(), Rate::from_gbps(50), 64);
        let flows = drain(Poisson::new(64, 3, tau, sizes, Pattern::Uniform, ALWAYS));
        let mean_gap = flows.last().unwrap().start.as_ps() as f64 / flows.len() as f64;
        let realised = load(mean_gap, 10_000.0, Rate::from_gbps(50), 64);
        assert!((realised / 0.5 - 1.0).abs() < 4.0 / (flows.len() as f64).sqrt(), "{realised}");
    }

    #[test]
    fn stops_at_an_instant_too() {
        let until = Time::from_ps(1_000_000_000);
        let stop = Stop { until, ..ALWAYS };
        let (timed, all) = (poisson(1, 0.9, stop), drain(poisson(1, 0.9, ALWAYS)));
        assert_eq!(timed.total(), None);
        let early: Vec<_> = all.into_iter().filter(|flow| flow.start < until).collect();
        assert!(!early.is_empty() && early.len() < 20_000);
        assert_eq!(drain(timed), early);
    }

    #[test]
    fn carries_its_class() {
        let flows =
            drain(poisson(1, 0.9, Stop { flows: Some(3), ..ALWAYS }).with_class(Class::new(2)));
        assert!(flows.iter().all(|flow| flow.class == Class::new(2)));
    }
}
