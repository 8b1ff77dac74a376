//! Training in a pipeline: each node has some layers of a model, and hands what it has computed to the
//! next.
//!
//! Models: GPipe (Huang et al., "GPipe: Efficient training of giant neural networks using pipeline
//! parallelism", 2019): the micro-batches of a step go forward through all stages, one behind the
//! other, and then back. A stage computes one micro-batch at a time, and sends its activations (their
//! gradients on the way back) while it computes the next. The next step begins when the first stage is
//! done with the last micro-batch.
//!
//! Leaves out: schedules that begin to go back earlier (1F1B), whose flows are the same.

use kernel::{Bytes, Span, Time};

use super::gate::{Gate, GateBuilder, Step, Task};
use crate::{Class, NodeId};

/// A training run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pipeline {
    /// The first so many nodes are stages, in order; at least two.
    pub stages: u32,
    /// How many micro-batches a step has.
    pub micro_batches: u64,
    /// Activations of a micro-batch between two stages.
    pub size: Bytes,
    /// Computation of a stage for a micro-batch on its way forward.
    pub forward: Span,
    /// The same on its way back.
    pub backward: Span,
    /// How often.
    pub steps: u64,
    /// Start of the first step.
    pub start: Time,
    /// Traffic class.
    pub class: Class,
}

impl Pipeline {
    /// How many flows there are in all.
    #[must_use]
    pub fn flows(&self) -> u64 {
        let step = 2 * u64::from(self.stages.saturating_sub(1));
        step.saturating_mul(self.micro_batches).saturating_mul(self.steps)
    }

    /// The list of its flows.
    #[must_use]
    pub fn gate(&self) -> Gate {
        let mut list = GateBuilder::new();
        let mut begin = list.meeting(Span::ZERO, &[]);
        for _ in 0..self.steps {
            let forth: Vec<u32> = (0..self.stages).collect();
            let back: Vec<u32> = forth.iter().rev().copied().collect();
            let computed = self.pass(&mut list, &forth, self.forward, &vec![begin; forth.len()]);
            // Whoever was last on the way forward is the first on the way back.
            let free: Vec<Step> = computed.into_iter().rev().collect();
            let computed = self.pass(&mut list, &back, self.backward, &free);
            begin = *computed.last().expect("a pipeline has stages");
        }
        list.build()
    }

    /// All micro-batches through `stages` in this order, of which each computes from what `free` says of
    /// it; when each is done with the last.
    fn pass(
        &self,
        list: &mut GateBuilder,
        stages: &[u32],
        compute: Span,
        free: &[Step],
    ) -> Vec<Step> {
        let mut free = free.to_vec();
        for _ in 0..self.micro_batches {
            let mut arrived: Option<Step> = None;
            for (place, &stage) in stages.iter().enumerate() {
                let waits: Vec<Step> = arrived.into_iter().chain([free[place]]).collect();
                free[place] = list.meeting(compute, &waits);
                arrived = stages.get(place + 1).map(|&next| {
                    let task = Task {
                        src: NodeId::new(stage),
                        dst: NodeId::new(next),
                        size: self.size,
                        class: self.class,
                        not_before: self.start,
                        delay: Span::ZERO,
                    };
                    list.flow(task, &[free[place]])
                });
            }
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Workload;
    use super::super::testing::play;
    use super::*;

    fn pipeline(stages: u32, micro_batches: u64, steps: u64) -> Pipeline {
        Pipeline {
            stages,
            micro_batches,
            size: Bytes::new(100),
            forward: Span::from_us(10),
            backward: Span::from_us(20),
            steps,
            start: Time::ZERO,
            class: Class::default(),
        }
    }

    /// When all is done in a network that carries any flow in `carry`.
    fn end(pipeline: &Pipeline, carry: Span) -> Time {
        let mut gate = pipeline.gate();
        let mut flying = std::collections::VecDeque::new();
        let mut last = Time::ZERO;
        loop {
            let next = gate.next_start();
            match flying.front().copied() {
                Some((end, id)) if next.is_none_or(|start| end <= start) => {
                    flying.pop_front();
                    last = end;
                    gate.ended(id, end);
                }
                _ if next.is_some() => {
                    let flow = gate.next_flow().unwrap();
                    flying.push_back((flow.start + carry, flow.id));
                }
                _ => return last.max(gate.busy_until()),
            }
        }
    }

    /// GPipe's own figure: of M + P - 1 turns P - 1 are bubbles; and each way all stages are crossed.
    #[test]
    fn a_step_takes_a_turn_for_each_micro_batch_and_one_for_each_stage_but_one() {
        for (stages, micro_batches, steps) in [(2, 1, 1), (4, 8, 1), (5, 3, 2), (3, 1, 4)] {
            for carry_us in [0, 7] {
                let turns = micro_batches + u64::from(stages) - 1;
                let crossing = 2 * u64::from(stages - 1) * carry_us;
                let expected = steps * (turns * (10 + 20) + crossing);
                let pipeline = pipeline(stages, micro_batches, steps);
                let found = end(&pipeline, Span::from_us(carry_us));
                let what =
                    format!("{stages} stages, {micro_batches} of {steps} steps, {carry_us} us");
                assert_eq!(found, Time::from_ps(expected * 1_000_000), "{what}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_micro_batch_leaves_a_stage_after_it_has_come(
            stages in 2u32..6, micro_batches in 1u64..6, steps in 1u64..3, seed: u64,
        ) {
            let pipeline = pipeline(stages, micro_batches, steps);
            let flows = play(stages, pipeline.gate(), Span::from_us(30), seed);
            prop_assert_eq!(flows.len() as u64, pipeline.flows());
            let links = stages as usize - 1;
            for (batch, way) in flows.chunks(links).enumerate() {
                let is_forth = (batch as u64 / micro_batches).is_multiple_of(2);
                let span = if is_forth { pipeline.forward } else { pipeline.backward };
                for pair in way.windows(2) {
                    prop_assert_eq!(pair[0].flow.dst, pair[1].flow.src);
                    prop_assert!(pair[1].flow.start >= pair[0].end + span);
                }
                let first = if is_forth { 0 } else { stages - 1 };
                prop_assert_eq!(way[0].flow.src.get(), first);
            }
        }
    }
}
