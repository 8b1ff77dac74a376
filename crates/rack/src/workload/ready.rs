//! Flows that wait for their start, where starts depend on when others ended.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use kernel::Time;

use crate::FlowId;

/// Flows that can be offered, by start, then by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Ready {
    flows: BinaryHeap<Reverse<(Time, FlowId)>>,
    /// Start of the last flow taken.
    last: Time,
}

impl Ready {
    /// A flow can be offered from `start` on.
    pub(super) fn push(&mut self, start: Time, flow: FlowId) {
        self.flows.push(Reverse((start, flow)));
    }

    /// The start of the next flow.
    pub(super) fn next_start(&self) -> Option<Time> {
        // An end reported late cannot make a flow start before one that was taken already.
        self.flows.peek().map(|&Reverse((start, _))| start.max(self.last))
    }

    /// Takes the next flow, with its start.
    pub(super) fn take(&mut self) -> Option<(Time, FlowId)> {
        let start = self.next_start()?;
        let Reverse((_, flow)) = self.flows.pop()?;
        self.last = start;
        Some((start, flow))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_go_by_start_and_number_and_none_before_one_that_went() {
        let at = Time::from_ps;
        let mut ready = Ready::default();
        assert_eq!(ready.take(), None);
        for (start, flow) in [(30, 2), (10, 9), (30, 1)] {
            ready.push(at(start), FlowId::new(flow));
        }
        assert_eq!(ready.take(), Some((at(10), FlowId::new(9))));
        assert_eq!(ready.take(), Some((at(30), FlowId::new(1))));
        ready.push(at(20), FlowId::new(3));
        assert_eq!(ready.next_start(), Some(at(30)));
        assert_eq!(ready.take(), Some((at(30), FlowId::new(3))));
        assert_eq!(ready.take(), Some((at(30), FlowId::new(2))));
        assert_eq!(ready.next_start(), None);
    }
}
