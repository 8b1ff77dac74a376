//! Whether flows pile up: more is offered than the network carries.
//!
//! A flow of a size that the nodes' lines pass in a small part of the run should have ended soon after it
//! started; flows that are larger are left out, for a run is too short to tell how they fare. Of the
//! others the network is saturated if it ends clearly fewer bytes than are offered in the second half of
//! the arrivals, and if the number of those that are open grows by more than chance explains.

use kernel::{Bytes, Rate, Time};

use crate::Flow;

/// Classes of sizes: up to 2, 4, 8... bytes.
const CLASSES: usize = 64;
/// Snapshots kept: when there are twice as many, every other one goes.
const ROWS: usize = 128;
/// Flows are looked at whose bytes a node's line passes in this part of the arrivals (our choice).
const PART: u64 = 20;
/// Bytes that may be missing in the second half of the arrivals, as a share of those offered then (our
/// choice: a network at 105 % of what it carries ends 95 %).
const MISSING_MAX: f64 = 0.05;
/// Standard deviations of the number of open flows that chance explains (our choice).
const DEVIATIONS: f64 = 3.0;

/// Flows and bytes by class of size, from the start of the run.
#[derive(Clone, Copy, Debug)]
struct Counts {
    flows: [u64; CLASSES],
    bytes: [u64; CLASSES],
}

impl Counts {
    const ZERO: Self = Self { flows: [0; CLASSES], bytes: [0; CLASSES] };

    #[inline]
    fn add(&mut self, size: Bytes) {
        let class = (u64::BITS - (size.get().saturating_sub(1)).leading_zeros()) as usize;
        let class = class.min(CLASSES - 1);
        self.flows[class] += 1;
        self.bytes[class] = self.bytes[class].saturating_add(size.get());
    }

    /// Of the classes below `end`.
    fn below(&self, end: usize) -> (f64, f64) {
        let sum = |values: &[u64]| values[..end].iter().map(|&value| value as f64).sum();
        (sum(&self.flows), sum(&self.bytes))
    }
}

/// What was offered and has ended, over time.
#[derive(Clone, Debug)]
pub(crate) struct Backlog {
    offered: Counts,
    ended: Counts,
    rows: Vec<(Time, Counts, Counts)>,
    /// A snapshot is taken when so much more time has passed.
    step: u64,
    last_start: Time,
}

impl Backlog {
    pub(crate) fn new() -> Self {
        let (offered, ended) = (Counts::ZERO, Counts::ZERO);
        Self { offered, ended, rows: Vec::new(), step: 1, last_start: Time::ZERO }
    }

    /// A flow is offered.
    pub(crate) fn offer(&mut self, flow: &Flow) {
        self.last_start = self.last_start.max(flow.start);
        let due = self.rows.last().map_or(0, |row| row.0.as_ps().saturating_add(self.step));
        if flow.start.as_ps() >= due {
            self.rows.push((flow.start, self.offered, self.ended));
        }
        if self.rows.len() == 2 * ROWS {
            let mut place = 0;
            self.rows.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            let covered = flow.start.as_ps() - self.rows[0].0.as_ps();
            self.step = (covered / ROWS as u64).max(self.step);
        }
        self.offered.add(flow.size);
    }

    /// A flow has ended.
    pub(crate) fn end(&mut self, flow: &Flow) {
        self.ended.add(flow.size);
    }

    /// Whether flows piled up while they arrived, at nodes whose lines have `rate`.
    pub(crate) fn is_saturated(&self, rate: Rate) -> bool {
        let Some(last) = self.rows.last() else { return false };
        let begun = self.rows[0].0.as_ps();
        let middle = begun + (last.0.as_ps() - begun) / 2;
        let Some(half) = self.rows.iter().rev().find(|row| row.0.as_ps() <= middle) else {
            return false;
        };
        let arrivals = kernel::Span::from_ps((last.0.as_ps() - begun) / PART);
        let largest = u128::from(rate.as_bps()) * u128::from(arrivals.as_ps())
            / (8 * u128::from(kernel::PS_PER_SECOND));
        let classes = (0..CLASSES).take_while(|&class| 1u128 << class <= largest).count();
        let (offered, offered_bytes) = last.1.below(classes);
        let (ended, ended_bytes) = last.2.below(classes);
        let (offered_half, offered_bytes_half) = half.1.below(classes);
        let (ended_half, ended_bytes_half) = half.2.below(classes);
        let came = offered_bytes - offered_bytes_half;
        let missing = came - (ended_bytes - ended_bytes_half);
        let (open, open_half) = (offered - ended, offered_half - ended_half);
        let chance = DEVIATIONS * (open + open_half).sqrt();
        missing > MISSING_MAX * came && open - open_half > chance
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use kernel::Stream;

    use super::*;
    use crate::{Class, FlowId, NodeId};

    /// Flows of 1 KB at 1 Gbps take 8 us each; one server takes them in turn at `load` of what it can do.
    fn queue(flows: u64, load: f64, seed: u64) -> bool {
        let mut stream = Stream::new(seed, "test", 0);
        let mut backlog = Backlog::new();
        let service = 8e6;
        let (mut now, mut free) = (0.0f64, 0.0f64);
        let mut open: VecDeque<(f64, Flow)> = VecDeque::new();
        for number in 0..flows {
            let draw = (stream.below(1 << 52) as f64 + 0.5) / (1u64 << 52) as f64;
            now -= service / load * draw.ln();
            while open.front().is_some_and(|(end, _)| *end <= now) {
                let (_, flow) = open.pop_front().unwrap();
                backlog.end(&flow);
            }
            free = free.max(now) + service;
            let flow = Flow {
                id: FlowId::new(number),
                src: NodeId::new(0),
                dst: NodeId::new(1),
                size: Bytes::new(1_000),
                start: Time::from_ps(now as u64),
                class: Class::new(0),
            };
            backlog.offer(&flow);
            open.push_back((free, flow));
        }
        backlog.is_saturated(Rate::from_gbps(1))
    }

    #[test]
    fn a_queue_with_room_is_not_saturated_whatever_the_number_of_flows() {
        for flows in [10, 100, 1_000, 10_000, 100_000] {
            for load in [0.3, 0.5, 0.8] {
                let found = (0..20).filter(|&seed| queue(flows, load, seed)).count();
                assert_eq!(found, 0, "{flows} flows at {load}");
            }
        }
    }

    #[test]
    fn an_overloaded_queue_is_whatever_the_number_of_flows() {
        for (flows, load) in [(300, 3.0), (1_000, 1.6), (10_000, 1.2), (100_000, 1.1)] {
            let found = (0..20).filter(|&seed| queue(flows, load, seed)).count();
            assert_eq!(found, 20, "{flows} flows at {load}");
        }
    }

    #[test]
    fn snapshots_stay_few() {
        let mut backlog = Backlog::new();
        for number in 0..1_000_000u64 {
            backlog.offer(&Flow {
                id: FlowId::new(number),
                src: NodeId::new(0),
                dst: NodeId::new(1),
                size: Bytes::new(number + 1),
                start: Time::from_ps(number * number),
                class: Class::new(0),
            });
        }
        assert!(backlog.rows.len() <= 2 * ROWS, "{}", backlog.rows.len());
        assert!(backlog.rows.windows(2).all(|rows| rows[0].0 < rows[1].0));
    }
}
