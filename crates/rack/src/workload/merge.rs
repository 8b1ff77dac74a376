//! Several workloads at once: incast over a background, say.
//!
//! Flows are numbered anew, the same way for every network. Open-loop parts give flows in one order
//! whatever the network does, so they are numbered in that order. With a reactive part the order
//! depends on the network, so a number depends only on the part and the number there: the parts of
//! known length lie one after another, those of unknown length interleave after them.

use kernel::Time;

use super::Workload;
use crate::{Flow, FlowId};

/// Where a part's flow numbers lie: its flow k is number `first + k * stride`.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    first: u64,
    stride: u64,
    /// How many there are, where known.
    count: Option<u64>,
}

/// Workloads that happen together.
pub struct Merge {
    parts: Vec<Box<dyn Workload>>,
    numbers: Vec<Numbers>,
    reactive: bool,
    finite: bool,
    taken: u64,
}

impl std::fmt::Debug for Merge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Merge").field("numbers", &self.numbers).finish_non_exhaustive()
    }
}

impl Merge {
    /// All of `parts` at once. At one instant, flows of earlier parts come first.
    #[must_use]
    pub fn new(parts: Vec<Box<dyn Workload>>) -> Self {
        let totals = parts.iter().filter_map(|part| part.total());
        let known = totals.fold(0u64, u64::saturating_add);
        let stride = parts.iter().filter(|part| part.total().is_none()).count() as u64;
        let (mut next_known, mut next_unknown) = (0u64, known);
        let mut number = |part: &dyn Workload| match part.total() {
            Some(count) => {
                let first = next_known;
                next_known = next_known.saturating_add(count);
                Numbers { first, stride: 1, count: Some(count) }
            }
            None => {
                next_unknown += 1;
                Numbers { first: next_unknown - 1, stride, count: None }
            }
        };
        let numbers = parts.iter().map(|part| number(part.as_ref())).collect();
        let reactive = parts.iter().any(|part| part.is_reactive());
        let finite = parts.iter().all(|part| part.is_finite());
        Self { parts, numbers, reactive, finite, taken: 0 }
    }

    /// The part with the earliest next flow.
    fn first(&mut self) -> Option<(Time, usize)> {
        let starts = self.parts.iter_mut().enumerate();
        starts.filter_map(|(at, part)| Some((part.next_start()?, at))).min()
    }
}

impl Workload for Merge {
    fn next_start(&mut self) -> Option<Time> {
        self.first().map(|(start, _)| start)
    }

    fn next_flow(&mut self) -> Option<Flow> {
        let (_, at) = self.first()?;
        let flow = self.parts[at].next_flow()?;
        let Numbers { first, stride, .. } = self.numbers[at];
        let id = if self.reactive { first + flow.id.get() * stride } else { self.taken };
        self.taken += 1;
        Some(Flow { id: FlowId::new(id), ..flow })
    }

    fn total(&self) -> Option<u64> {
        self.numbers.iter().try_fold(0u64, |all, numbers| all.checked_add(numbers.count?))
    }

    fn is_finite(&self) -> bool {
        self.finite
    }

    fn is_reactive(&self) -> bool {
        self.reactive
    }

    fn ended(&mut self, flow: FlowId, at: Time) {
        if !self.reactive {
            return;
        }
        for (part, numbers) in self.parts.iter_mut().zip(&self.numbers) {
            let Some(offset) = flow.get().checked_sub(numbers.first) else { continue };
            let number = offset / numbers.stride;
            if offset % numbers.stride == 0 && numbers.count.is_none_or(|count| number < count) {
                part.ended(FlowId::new(number), at);
                return;
            }
        }
        panic!("the end of flow {}, which no part began", flow.get());
    }

    fn busy_until(&self) -> Time {
        self.parts.iter().map(|part| part.busy_until()).max().unwrap_or(Time::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Bytes, Span};

    use super::super::burst::{Burst, Order, Round, Rounds};
    use super::super::collectives::Collective;
    use super::super::patterns::Pattern;
    use super::super::poisson::{Poisson, Stop};
    use super::super::sizes::Sizes;
    use super::super::testing::{check_open_loop, drain, play};
    use super::*;
    use crate::Class;

    fn background(class: u8, until: Time) -> Poisson {
        let sizes = Sizes::Fixed(Bytes::new(1_000));
        let stop = Stop { flows: Some(300), until };
        Poisson::new(8, u64::from(class), 50_000.0, sizes, Pattern::Uniform, stop)
            .with_class(Class::new(class))
    }

    fn incast() -> Burst {
        let rounds =
            Rounds { start: Time::ZERO, period: Span::from_us(5), count: 4, jitter: Span::ZERO };
        let round = Round::Incast { senders: 7, receiver: None };
        Burst::new(8, 1, round, rounds, Bytes::new(448))
    }

    fn ring() -> super::super::gate::Gate {
        let collective = Collective {
            nodes: 8,
            start: Time::ZERO,
            rounds: 2,
            compute: Span::from_ns(1),
            class: Class::new(3),
        };
        collective.ring_all_reduce(Bytes::new(800))
    }

    #[test]
    fn parts_keep_their_flows_and_get_numbers_of_their_own() {
        let merged = Merge::new(vec![Box::new(background(1, Time::NEVER)), Box::new(incast())]);
        assert_eq!(merged.total(), Some(328));
        assert!(!merged.is_reactive());
        let flows = check_open_loop(8, merged);
        let part = |class: u8| -> Vec<Flow> {
            let mine = flows.iter().filter(|flow| flow.class == Class::new(class));
            (0..).zip(mine).map(|(at, flow)| Flow { id: FlowId::new(at), ..*flow }).collect()
        };
        assert_eq!(part(1), drain(background(1, Time::NEVER)));
        assert_eq!(part(0), drain(incast()));
    }

    #[test]
    fn numbers_do_not_depend_on_the_network() {
        let merged = || {
            let until = Time::from_ps(9_000_000);
            Merge::new(vec![
                Box::new(background(1, until)),
                Box::new(ring()),
                Box::new(background(2, until)),
                Box::new(incast()),
            ])
        };
        assert_eq!((merged().total(), merged().is_reactive()), (None, true));
        let content = |slowest, seed| -> Vec<_> {
            let flows = play(8, merged(), Span::from_ps(slowest), seed);
            flows.iter().map(|c| (c.flow.id, c.flow.src, c.flow.dst, c.flow.class)).collect()
        };
        let quick = content(10, 1);
        assert_eq!(quick, content(1_000_000, 2));
        assert_eq!(quick.len(), {
            let open = drain(background(1, Time::from_ps(9_000_000))).len();
            open + drain(background(2, Time::from_ps(9_000_000))).len() + 2 * 112 + 28
        });
    }

    #[test]
    fn at_one_instant_earlier_parts_come_first() {
        let once = |class| {
            let rounds =
                Rounds { start: Time::ZERO, period: Span::ZERO, count: 1, jitter: Span::ZERO };
            Burst::new(3, 1, Round::AllToAll(Order::Ring), rounds, Bytes::new(1))
                .with_class(Class::new(class))
        };
        let flows = drain(Merge::new(vec![Box::new(once(5)), Box::new(once(2))]));
        let classes: Vec<_> = flows.iter().map(|flow| flow.class.get()).collect();
        assert_eq!(classes, [[5; 6], [2; 6]].concat());
    }

    #[test]
    #[should_panic(expected = "the end of flow 224, which no part began")]
    fn the_end_of_an_unknown_flow_is_a_mistake() {
        Merge::new(vec![Box::new(ring())]).ended(FlowId::new(224), Time::ZERO);
    }
}
