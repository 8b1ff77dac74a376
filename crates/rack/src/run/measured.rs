//! Which flows a run measures: a fixed set, the same in every fabric.

use kernel::{Rate, Time};

use crate::results::steady::{Settling, mser5};
use crate::{Flow, Workload};

/// The flows that are measured: by number and by start, never by when they end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeasuredSet {
    /// The first flow, by number; those before are the warm-up.
    pub first: u64,
    /// How many flows, by number; `None`: all that follow.
    pub count: Option<u64>,
    /// Flows that start earlier are the warm-up.
    pub from: Time,
    /// Flows that start at this time or later are not measured.
    pub until: Time,
}

impl Default for MeasuredSet {
    /// All flows.
    fn default() -> Self {
        Self { first: 0, count: None, from: Time::ZERO, until: Time::NEVER }
    }
}

impl MeasuredSet {
    /// Whether `flow` is measured.
    #[must_use]
    pub fn contains(&self, flow: &Flow) -> bool {
        let number = flow.id.get();
        let last = self.count.map_or(u64::MAX, |count| self.first.saturating_add(count));
        (self.first..last).contains(&number) && (self.from..self.until).contains(&flow.start)
    }

    /// Whether no flow of it is still to come, `offered` of them being there, and the next flow of the
    /// workload, if any, starting at `next`. `follows`: flows may start when others end.
    pub(crate) fn is_complete(&self, offered: u64, next: Option<Time>, follows: bool) -> bool {
        let all = self.count.is_some_and(|count| offered >= count);
        all || match next {
            Some(start) => !follows && start >= self.until,
            None => !follows,
        }
    }
}

/// Flows that are looked at to find a warm-up (our choice: enough for any that is found).
const FLOWS_SEEN: u64 = 1 << 20;

/// How many of the first flows of `workload` find a rack that is still filling: MSER-5 over the number
/// of flows that each finds open if every flow takes the time that its bytes need at `rate`. That is the
/// workload's own share of the transient, and the least that any network has; it is known before a
/// network is chosen, so that all measure the same flows.
///
/// Looks at `flows` flows, or at those that start before `until`. `None` where they never settle.
pub fn warm_up_flows(
    workload: &mut dyn Workload,
    rate: Rate,
    flows: u64,
    until: Time,
) -> Option<u64> {
    let mut open: std::collections::BinaryHeap<std::cmp::Reverse<Time>> = Default::default();
    let mut found = Vec::new();
    while (found.len() as u64) < flows.min(FLOWS_SEEN)
        && workload.next_start().is_some_and(|start| start < until)
    {
        let Some(flow) = workload.next_flow() else { break };
        while open.peek().is_some_and(|end| end.0 <= flow.start) {
            open.pop();
        }
        found.push(open.len() as f64);
        // What ends after the run ends never; a time out of range must not be computed.
        let work = u128::from(flow.size.get()) * 8 * u128::from(kernel::PS_PER_SECOND);
        let end = u128::from(flow.start.as_ps()) + work / u128::from(rate.as_bps().max(1));
        let end = u64::try_from(end).map_or(Time::NEVER, Time::from_ps);
        open.push(std::cmp::Reverse(end));
    }
    match mser5(&found) {
        Settling::After(count) => Some(count as u64),
        Settling::TooShort => Some(0),
        Settling::Never => None,
    }
}

#[cfg(test)]
mod tests {
    use kernel::Bytes;

    use super::*;
    use crate::workload::poisson::{Poisson, Stop};
    use crate::workload::sizes::Sizes;
    use crate::{Class, FlowId, NodeId};

    fn flow(number: u64, start: u64) -> Flow {
        Flow {
            id: FlowId::new(number),
            src: NodeId::new(0),
            dst: NodeId::new(1),
            size: Bytes::new(1),
            start: Time::from_ps(start),
            class: Class::new(0),
        }
    }

    #[test]
    fn membership_is_by_number_and_start_alone() {
        let set = MeasuredSet { first: 10, count: Some(5), ..MeasuredSet::default() };
        let members: Vec<u64> = (0..30).filter(|&n| set.contains(&flow(n, 7))).collect();
        assert_eq!(members, [10, 11, 12, 13, 14]);
        let (from, until) = (Time::from_ps(5), Time::from_ps(8));
        let set = MeasuredSet { from, until, ..MeasuredSet::default() };
        let members: Vec<u64> = (0..30).filter(|&n| set.contains(&flow(n, n))).collect();
        assert_eq!(members, [5, 6, 7]);
        assert!(MeasuredSet::default().contains(&flow(u64::MAX - 1, 0)));
    }

    #[test]
    fn a_set_is_complete_when_none_of_it_is_to_come() {
        let count = MeasuredSet { count: Some(3), ..MeasuredSet::default() };
        assert!(!count.is_complete(2, Some(Time::ZERO), false));
        assert!(count.is_complete(3, Some(Time::ZERO), false));
        assert!(count.is_complete(1, None, false) && !count.is_complete(1, None, true));
        let window = MeasuredSet { until: Time::from_ps(9), ..MeasuredSet::default() };
        assert!(!window.is_complete(7, Some(Time::from_ps(8)), false));
        assert!(window.is_complete(7, Some(Time::from_ps(9)), false));
        assert!(!window.is_complete(7, Some(Time::from_ps(9)), true));
    }

    /// Flows of 1 ms each, 1,000 a millisecond: after a millisecond the rack is as full as ever.
    #[test]
    fn the_warm_up_covers_the_filling_of_the_rack() {
        let rate = Rate::from_gbps(1);
        let stop = Stop { flows: None, until: Time::NEVER };
        for seed in 1..6 {
            let sizes = Sizes::Fixed(Bytes::new(125_000));
            let pattern = crate::workload::patterns::Pattern::Uniform;
            let mut flows = Poisson::new(64, seed, 1e6, sizes, pattern, stop);
            let cut = warm_up_flows(&mut flows, rate, 20_000, Time::NEVER).unwrap();
            assert!((900..4_000).contains(&cut), "seed {seed}: {cut} flows");
        }
    }

    #[test]
    fn a_rack_that_fills_to_the_end_has_no_warm_up_that_would_do() {
        let stop = Stop { flows: None, until: Time::NEVER };
        let sizes = Sizes::Fixed(Bytes::new(125_000_000));
        let pattern = crate::workload::patterns::Pattern::Uniform;
        let mut flows = Poisson::new(64, 1, 1e6, sizes, pattern, stop);
        assert_eq!(warm_up_flows(&mut flows, Rate::from_gbps(1), 20_000, Time::NEVER), None);
    }
}
