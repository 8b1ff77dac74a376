//! Requests and their answers, as the workload of that name numbers them.

use std::collections::BTreeMap;

use kernel::Time;

use crate::runs::Collected;

/// A request that was answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    asked: Time,
    /// When all of the answer was there.
    end: Time,
}

impl Answered {
    /// From the one to the other.
    pub(super) fn seconds(&self) -> f64 {
        (self.end - self.asked).as_seconds()
    }
}

/// Those of which both flows were measured, in the order in which they were asked, where they are the first of so many parts
/// of a workload without end: of its own flows number 2n is a request, the next its answer.
pub(super) fn answered(flows: &Collected, parts: u64) -> Vec<Answered> {
    let mut asked = BTreeMap::new();
    let mut answers = BTreeMap::new();
    for done in flows.flows.iter().filter(|done| done.flow.id.get() % parts == 0) {
        let number = done.flow.id.get() / parts;
        match number % 2 {
            0 => asked.insert(number / 2, done.flow.start),
            _ => answers.insert(number / 2, done.end),
        };
    }
    let pair =
        |(number, &asked): (&u64, &Time)| answers.get(number).map(|&end| Answered { asked, end });
    asked.iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use kernel::{Bytes, Span};
    use rack::{Class, Flow, FlowId, NodeId};

    use super::*;
    use crate::runs::Delivered;

    #[test]
    fn requests_find_their_answers() {
        let at = |us| Time::ZERO + Span::from_us(us);
        let flow = |id, start, end| {
            let (src, dst) = (NodeId::new(0), NodeId::new(1));
            let (size, class) = (Bytes::new(1), Class::new(0));
            let flow = Flow { id: FlowId::new(id), src, dst, size, start: at(start), class };
            Delivered { flow, end: at(end) }
        };
        // Answers end in another order; the request of the last was not measured; odd numbers are another part's.
        let flows = vec![
            flow(0, 1, 2),
            flow(8, 2, 3),
            flow(10, 3, 7),
            flow(2, 5, 9),
            flow(3, 0, 1),
            flow(6, 1, 4),
        ];
        let times = |parts| -> Vec<f64> {
            let found = answered(&Collected { flows: flows.clone() }, parts);
            found.iter().map(|one| (one.seconds() * 1e6).round()).collect()
        };
        assert_eq!(times(2), [8.0, 5.0]);
    }
}
