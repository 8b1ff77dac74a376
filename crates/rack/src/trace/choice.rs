//! Which flows are recorded: chosen by how a run has ended.

use std::io;

use kernel::{Span, Time};

use super::Followed;
use crate::results::{FlowEnd, FlowRecord, FlowSink};
use crate::{Flow, FlowId};

/// What of a flow decides whether it is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// The flow as it was offered.
    pub flow: Flow,
    /// When it ended; `None`: not before the run.
    pub end: Option<Time>,
    /// Its completion time, and that of the same flow alone in the idle network; of those that completed.
    pub times: Option<(Span, Span)>,
}

impl Ended {
    /// Whether it took more times its ideal than `other`, or as many and has the lower number.
    fn is_slower(&self, other: &Self) -> bool {
        // Exact: a quotient would make flows alike that are not.
        let cross = |a: Option<(Span, Span)>, b: Option<(Span, Span)>| match (a, b) {
            (Some((fct, _)), Some((_, ideal))) => {
                u128::from(fct.as_ps()) * u128::from(ideal.as_ps())
            }
            (Some(_), None) => 1,
            (None, _) => 0,
        };
        let (ours, theirs) = (cross(self.times, other.times), cross(other.times, self.times));
        ours > theirs || (ours == theirs && self.flow.id < other.flow.id)
    }
}

/// The `count` of `flows` with the largest slowdown, the slowest first.
#[must_use]
pub fn slowest(mut flows: Vec<Ended>, count: usize) -> Vec<Ended> {
    let order = |a: &Ended, b: &Ended| b.is_slower(a).cmp(&a.is_slower(b));
    if flows.len() > count {
        flows.select_nth_unstable_by(count, order);
        flows.truncate(count);
    }
    flows.sort_by(order);
    flows
}

/// Keeps of the flows that pass by to a sink those that are to be recorded.
#[derive(Clone, Debug)]
pub enum Chooser {
    /// So many of the measured that completed, those with the largest slowdown.
    Slowest {
        /// How many.
        count: usize,
        /// More than those, now and then cut down to them.
        kept: Vec<Ended>,
    },
    /// These, by number.
    Flows {
        /// Which, sorted.
        numbers: Vec<FlowId>,
        /// Those of them that have passed.
        kept: Vec<Ended>,
    },
}

impl Chooser {
    /// So many of the slowest.
    #[must_use]
    pub fn slowest(count: usize) -> Self {
        Self::Slowest { count, kept: Vec::new() }
    }

    /// These.
    #[must_use]
    pub fn flows(mut numbers: Vec<FlowId>) -> Self {
        numbers.sort_unstable();
        Self::Flows { numbers, kept: Vec::new() }
    }

    /// The flows to record, by number; what has not ended is recorded until the run ends.
    #[must_use]
    pub fn chosen(self) -> Vec<Followed> {
        let kept = match self {
            Self::Slowest { count, kept } => slowest(kept, count),
            Self::Flows { kept, .. } => kept,
        };
        let follow = |ended: Ended| {
            let Flow { id, src, dst, start, .. } = ended.flow;
            Followed { flow: id, src, dst, start, end: ended.end.unwrap_or(Time::NEVER) }
        };
        let mut chosen: Vec<_> = kept.into_iter().map(follow).collect();
        chosen.sort_unstable_by_key(|followed| followed.flow);
        chosen
    }
}

impl FlowSink for Chooser {
    fn record(&mut self, record: &FlowRecord<'_>) -> io::Result<()> {
        let flow = *record.flow;
        let (end, times) = match record.end {
            FlowEnd::Completed { at, ideal, .. } => (Some(at), Some((at - flow.start, ideal))),
            FlowEnd::Failed { at, .. } => (Some(at), None),
            FlowEnd::Unfinished { .. } => (None, None),
        };
        let ended = Ended { flow, end, times };
        match self {
            Self::Slowest { count, kept } if record.measured && times.is_some() => {
                kept.push(ended);
                if kept.len() >= 1024.max(2 * *count) {
                    *kept = slowest(std::mem::take(kept), *count);
                }
            }
            Self::Flows { numbers, kept } if numbers.binary_search(&flow.id).is_ok() => {
                kept.push(ended);
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kernel::Bytes;

    use super::*;
    use crate::{Class, NodeId};

    fn flow(number: u64) -> Flow {
        Flow {
            id: FlowId::new(number),
            src: NodeId::new(0),
            dst: NodeId::new(1),
            size: Bytes::new(1),
            start: Time::from_ps(10),
            class: Class::default(),
        }
    }

    fn pass(chooser: &mut Chooser, number: u64, fct: u64, ideal: u64, measured: bool) {
        let flow = flow(number);
        let (at, ideal) = (flow.start + Span::from_ps(fct), Span::from_ps(ideal));
        let end = FlowEnd::Completed { at, ideal, stages: &[] };
        chooser.record(&FlowRecord { flow: &flow, measured, end }).unwrap();
    }

    #[test]
    fn the_slowest_of_the_measured_by_slowdown_not_by_time_are_chosen() {
        let mut chooser = Chooser::slowest(2);
        for (number, fct, ideal, measured) in
            [(0, 9_000, 9_000, true), (1, 50, 10, true), (2, 900, 1, false), (3, 41, 10, true)]
        {
            pass(&mut chooser, number, fct, ideal, measured);
        }
        let chosen: Vec<_> = chooser.chosen().iter().map(|f| f.flow.get()).collect();
        assert_eq!(chosen, [1, 3]);
    }

    #[test]
    fn of_equals_those_with_lower_numbers_are_chosen_however_many_pass() {
        let mut chooser = Chooser::slowest(3);
        for number in (0..5_000).rev() {
            pass(&mut chooser, number, 20 + 20 * (number % 2), 10 + 10 * (number % 2), true);
        }
        let chosen: Vec<_> = chooser.chosen().iter().map(|f| f.flow.get()).collect();
        assert_eq!(chosen, [0, 1, 2]);
    }

    #[test]
    fn flows_are_chosen_by_number_whatever_became_of_them() {
        let mut chooser = Chooser::flows([7, 3, 99].map(FlowId::new).to_vec());
        pass(&mut chooser, 3, 5, 5, false);
        pass(&mut chooser, 4, 5, 5, true);
        let open = flow(7);
        let end = FlowEnd::Unfinished { delivered: Bytes::ZERO, ideal: Span::from_ps(1) };
        chooser.record(&FlowRecord { flow: &open, measured: true, end }).unwrap();
        let ends = chooser.chosen().into_iter().map(|f| (f.flow.get(), f.end.as_ps()));
        assert_eq!(ends.collect::<Vec<_>>(), [(3, 15), (7, Time::NEVER.as_ps())]);
    }
}
