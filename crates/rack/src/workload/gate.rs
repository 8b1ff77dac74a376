//! Flows that wait for other flows: a list in which each may name earlier ones.
//!
//! What waits for what is fixed when the list is made, so it is the same for every network; only
//! the instants differ. A flow can wait only for what was added before it, so no list can lock
//! itself up.

use kernel::{Bytes, Span, Time};

use super::ready::Ready;
use super::{Bound, Bounds, Workload};
use crate::{Class, Flow, FlowId, NodeId};

/// What a flow of a gate is, apart from its number and its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Task {
    /// Who sends.
    pub src: NodeId,
    /// Who receives.
    pub dst: NodeId,
    /// How much.
    pub size: Bytes,
    /// Traffic class.
    pub class: Class,
    /// It does not start before this instant.
    pub not_before: Time,
    /// Time between the end of the last flow it waits for and its start: a computation, say.
    pub delay: Span,
}

/// Something that others can wait for: a flow, or a point where several meet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Step(u32);

/// A step before it has happened.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// The flow; `None` for a meeting point.
    flow: Option<FlowId>,
    /// What its flow is part of.
    bound: Bound,
    /// How many steps it still waits for.
    waiting: u32,
    /// When the last of those so far happened, and which that was: of several at once the first in the list.
    ready: Time,
    cause: Option<Step>,
    delay: Span,
    /// First of its dependents in the list of edges; they end where the next step's begin.
    dependents: u32,
}

/// Makes a [`Gate`].
#[derive(Debug)]
pub struct GateBuilder {
    /// What flows are part of that are added now.
    bound: Bound,
    tasks: Vec<(Task, Step)>,
    pending: Vec<Pending>,
    /// (what happens, who waits for it).
    edges: Vec<(Step, Step)>,
}

impl GateBuilder {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        let (tasks, pending, edges) = (Vec::new(), Vec::new(), Vec::new());
        Self { bound: Bound::Transfer, tasks, pending, edges }
    }

    /// Flows that are added from now on are part of this. What they were part of until now.
    pub fn begin(&mut self, bound: Bound) -> Bound {
        std::mem::replace(&mut self.bound, bound)
    }

    /// Adds a flow that starts when all of `after` have ended, plus its delay. Its number is how
    /// many flows were added before.
    ///
    /// # Panics
    /// If it sends to itself or sends nothing.
    pub fn flow(&mut self, task: Task, after: &[Step]) -> Step {
        assert!(task.src != task.dst, "{} sends to itself", task.src);
        assert!(task.size > Bytes::ZERO, "{} sends nothing to {}", task.src, task.dst);
        let flow = FlowId::new(self.tasks.len() as u64);
        let step = self.add(Some(flow), task.delay, after);
        self.tasks.push((task, step));
        step
    }

    /// Adds a point that is reached when all of `after` have ended, plus `delay`: it stands for
    /// them, so that m flows can wait for n others without m times n edges.
    pub fn meeting(&mut self, delay: Span, after: &[Step]) -> Step {
        self.add(None, delay, after)
    }

    fn add(&mut self, flow: Option<FlowId>, delay: Span, after: &[Step]) -> Step {
        let step = Step(u32::try_from(self.pending.len()).expect("fewer than 2^32 steps"));
        self.edges.extend(after.iter().map(|&earlier| (earlier, step)));
        // A delay counts from the last step waited for; without any, there is nothing to count from.
        let delay = if after.is_empty() { Span::ZERO } else { delay };
        let waiting = after.len() as u32;
        self.pending.push(Pending {
            flow,
            bound: self.bound,
            waiting,
            ready: Time::ZERO,
            cause: None,
            delay,
            dependents: 0,
        });
        step
    }

    /// The workload.
    #[must_use]
    pub fn build(mut self) -> Gate {
        // By what happens; stable, so dependents stay in the order in which they were added.
        self.edges.sort_by_key(|&(earlier, _)| earlier);
        let mut edge = 0;
        for (step, pending) in (0..).map(Step).zip(&mut self.pending) {
            pending.dependents = edge as u32;
            edge += self.edges[edge..].iter().take_while(|&&(earlier, _)| earlier == step).count();
        }
        let dependents = self.edges.into_iter().map(|(_, later)| later).collect();
        let open: Vec<_> =
            (0..).map(Step).zip(&self.pending).filter(|(_, p)| p.waiting == 0).collect();
        let open: Vec<Step> = open.into_iter().map(|(step, _)| step).collect();
        let mut gate = Gate {
            tasks: self.tasks,
            reactive: self.pending.iter().any(|pending| pending.waiting > 0),
            pending: self.pending,
            dependents,
            ready: Ready::default(),
            met: Time::ZERO,
            end: None,
        };
        open.into_iter().for_each(|step| gate.release(step));
        gate
    }
}

/// A list of flows, each released when what it waits for has ended.
#[derive(Clone, Debug)]
pub struct Gate {
    tasks: Vec<(Task, Step)>,
    pending: Vec<Pending>,
    dependents: Vec<Step>,
    /// Released flows by start, then by number.
    ready: Ready,
    reactive: bool,
    /// When the last of the points that were reached is, delays included.
    met: Time,
    /// What has happened last, and when: of several at once the first in the list.
    end: Option<(Time, Step)>,
}

impl Default for GateBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// Steps that wait for nothing more: flows become ready, meeting points pass on.
    fn release(&mut self, step: Step) {
        let mut released = vec![step];
        while let Some(step) = released.pop() {
            let Pending { flow, ready, delay, .. } = self.pending[step.0 as usize];
            match flow {
                Some(flow) => {
                    let not_before = self.tasks[flow.get() as usize].0.not_before;
                    self.ready.push((ready + delay).max(not_before), flow);
                }
                None => {
                    self.met = self.met.max(ready + delay);
                    self.pass(step, ready + delay, &mut released);
                }
            }
        }
    }

    /// `step` happened at `at`; adds those that waited for it alone to `released`.
    fn pass(&mut self, step: Step, at: Time, released: &mut Vec<Step>) {
        if self.end.is_none_or(|(end, last)| at > end || at == end && step < last) {
            self.end = Some((at, step));
        }
        let first = self.pending[step.0 as usize].dependents as usize;
        let end = self
            .pending
            .get(step.0 as usize + 1)
            .map_or(self.dependents.len(), |next| next.dependents as usize);
        for &later in &self.dependents[first..end] {
            let pending = &mut self.pending[later.0 as usize];
            let is_later = at > pending.ready;
            if is_later || at == pending.ready && pending.cause.is_none_or(|cause| step < cause) {
                (pending.ready, pending.cause) = (at, Some(step));
            }
            pending.waiting -= 1;
            if pending.waiting == 0 {
                released.push(later);
            }
        }
    }
}

impl Workload for Gate {
    fn next_start(&mut self) -> Option<Time> {
        self.ready.next_start()
    }

    fn next_flow(&mut self) -> Option<Flow> {
        let (start, id) = self.ready.take()?;
        let Task { src, dst, size, class, .. } = self.tasks[id.get() as usize].0;
        Some(Flow { id, src, dst, size, start, class })
    }

    fn total(&self) -> Option<u64> {
        Some(self.tasks.len() as u64)
    }

    fn is_reactive(&self) -> bool {
        self.reactive
    }

    fn ended(&mut self, flow: FlowId, at: Time) {
        let step = self.tasks[flow.get() as usize].1;
        let mut released = vec![];
        self.pass(step, at, &mut released);
        released.into_iter().for_each(|step| self.release(step));
    }

    fn busy_until(&self) -> Time {
        self.met
    }

    fn bounds(&self) -> Bounds {
        let mut spans = [Span::ZERO; Bound::ALL.len()];
        let mut occurs = [false; Bound::ALL.len()];
        for Pending { flow, bound, delay, .. } in &self.pending {
            occurs[Bound::Compute as usize] |= *delay > Span::ZERO;
            if let Some(flow) = flow {
                occurs[*bound as usize] = true;
                let not_before = self.tasks[flow.get() as usize].0.not_before;
                occurs[Bound::Waiting as usize] |= not_before > Time::ZERO;
            }
        }
        let between = |from: Time, to: Time| if to > from { to - from } else { Span::ZERO };
        let mut next = self.end;
        while let Some((end, step)) = next {
            let Pending { flow, bound, ready, cause, delay, .. } = self.pending[step.0 as usize];
            let computed = ready + delay;
            spans[Bound::Compute as usize] += between(ready, computed);
            if let Some(flow) = flow {
                let start = computed.max(self.tasks[flow.get() as usize].0.not_before);
                spans[Bound::Waiting as usize] += between(computed, start);
                spans[bound as usize] += between(start, end);
            }
            next = cause.map(|cause| (ready, cause));
        }
        let all = Bound::ALL.into_iter().zip(spans).zip(occurs);
        all.filter(|(_, occurs)| *occurs).map(|(part, _)| part).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{check_open_loop, play};
    use super::*;

    fn task(src: u32, dst: u32) -> Task {
        Task {
            src: NodeId::new(src),
            dst: NodeId::new(dst),
            size: Bytes::new(100),
            class: Class::default(),
            not_before: Time::ZERO,
            delay: Span::ZERO,
        }
    }

    #[test]
    fn a_flow_starts_after_the_last_that_it_waits_for_plus_its_delay() {
        let mut list = GateBuilder::new();
        let a = list.flow(task(0, 1), &[]);
        let b = list.flow(task(1, 2), &[]);
        list.flow(Task { delay: Span::from_ps(7), ..task(2, 0) }, &[a, b]);
        let mut gate = list.build();
        assert!(gate.is_reactive());
        assert_eq!(gate.next_flow().unwrap().id, FlowId::new(0));
        assert_eq!(gate.next_flow().unwrap().id, FlowId::new(1));
        assert_eq!(gate.next_start(), None);
        gate.ended(FlowId::new(1), Time::from_ps(100));
        assert_eq!(gate.next_start(), None);
        gate.ended(FlowId::new(0), Time::from_ps(60));
        assert_eq!(gate.next_start(), Some(Time::from_ps(107)));
        assert_eq!(gate.next_flow().unwrap().src, NodeId::new(2));
        assert_eq!(gate.next_flow(), None);
    }

    #[test]
    fn a_flow_does_not_start_before_its_time_even_when_free() {
        let mut list = GateBuilder::new();
        let late = Task { not_before: Time::from_ps(500), ..task(0, 1) };
        let first = list.flow(task(1, 0), &[]);
        list.flow(late, &[first]);
        let mut gate = list.build();
        gate.next_flow();
        gate.ended(FlowId::new(0), Time::from_ps(10));
        assert_eq!(gate.next_start(), Some(Time::from_ps(500)));
    }

    #[test]
    fn meetings_chain_and_add_their_delays() {
        let mut list = GateBuilder::new();
        let flows: Vec<_> = (1..5).map(|src| list.flow(task(src, 0), &[])).collect();
        let all = list.meeting(Span::from_ps(10), &flows);
        let later = list.meeting(Span::from_ps(5), &[all]);
        list.flow(task(0, 1), &[later]);
        let mut gate = list.build();
        assert_eq!((0..4).filter_map(|_| gate.next_flow()).count(), 4);
        (0..4).for_each(|id| gate.ended(FlowId::new(id), Time::from_ps(100 + id)));
        assert_eq!(gate.next_start(), Some(Time::from_ps(118)));
    }

    #[test]
    fn without_dependencies_it_is_an_open_loop_in_order_of_start() {
        let mut list = GateBuilder::new();
        for at in [30, 10, 20, 10] {
            list.flow(Task { not_before: Time::from_ps(at), ..task(0, 1) }, &[]);
        }
        let mut gate = list.build();
        assert!(!gate.is_reactive());
        let order: Vec<_> = std::iter::from_fn(|| gate.next_flow())
            .map(|flow| (flow.id.get(), flow.start.as_ps()))
            .collect();
        assert_eq!(order, [(1, 10), (3, 10), (2, 20), (0, 30)]);
        check_open_loop(1, GateBuilder::new().build());
    }

    #[test]
    fn starts_never_decrease_even_when_an_end_is_reported_late() {
        let mut list = GateBuilder::new();
        let first = list.flow(task(0, 1), &[]);
        list.flow(Task { not_before: Time::from_ps(100), ..task(1, 0) }, &[]);
        list.flow(task(1, 2), &[first]);
        let mut gate = list.build();
        assert_eq!((0..2).filter_map(|_| gate.next_flow()).count(), 2);
        gate.ended(FlowId::new(0), Time::from_ps(50));
        assert_eq!(gate.next_start(), Some(Time::from_ps(100)));
    }

    #[test]
    #[should_panic(expected = "node 3 sends to itself")]
    fn a_flow_to_itself_is_refused() {
        GateBuilder::new().flow(task(3, 3), &[]);
    }

    proptest! {
        #[test]
        fn every_flow_of_any_list_is_released_once_after_what_it_waits_for(
            steps in prop::collection::vec(
                (0u32..8, 1u32..8, 0u64..1000, 0u64..50, prop::collection::vec(any::<prop::sample::Index>(), 0..4), 0u8..5),
                1..80,
            ),
            seed: u64,
        ) {
            let (mut list, mut added, mut waits) = (GateBuilder::new(), vec![], vec![]);
            for (src, hop, start, delay, after, kind) in steps {
                let delay = Span::from_ps(delay);
                let after: Vec<Step> = if added.is_empty() { vec![] } else {
                    after.iter().map(|index| added[index.index(added.len())]).collect()
                };
                if kind == 0 {
                    added.push(list.meeting(delay, &after));
                    waits.push(None);
                } else {
                    let task = Task { not_before: Time::from_ps(start), delay, ..task(src, (src + hop) % 8) };
                    added.push(list.flow(task, &after));
                    waits.push(Some((task, after)));
                }
            }
            let flows: Vec<_> = waits.into_iter().flatten().collect();
            let steps: Vec<Step> = list.tasks.iter().map(|(_, step)| *step).collect();
            let carried = play(8, list.build(), Span::from_ps(500), seed);
            prop_assert_eq!(carried.len(), flows.len());
            for (found, (task, after)) in carried.iter().zip(&flows) {
                prop_assert!(found.flow.start >= task.not_before);
                for earlier in after {
                    if let Ok(place) = steps.binary_search(earlier) {
                        prop_assert!(found.flow.start >= carried[place].end + task.delay);
                    }
                }
            }
        }
    }
}
