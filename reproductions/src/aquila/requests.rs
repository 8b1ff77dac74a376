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

/// Those of which both flows were measured, in the order in which they were asked: number 2n is a request, the next its
/// answer.
pub(super) fn answered(flows: &Collected) -> Vec<Answered> {
    let mut asked = BTreeMap::new();
    let mut answers = BTreeMap::new();
    for done in &flows.flows {
        let number = done.flow.id.get();
        match number % 2 {
            0 => asked.insert(number / 2, done.flow.start),
            _ => answers.insert(number / 2, done.end),
        };
    }
    let pair =
        |(number, &asked): (&u64, &Time)| answers.get(number).map(|&end| Answered { asked, end });
    asked.iter().filter_map(pair).collect()
}
