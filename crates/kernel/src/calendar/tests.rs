//! The calendar against a sorted list of (time, sequence number).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;

use super::*;

/// What a user of a calendar does next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Push so many picoseconds after the last event popped.
    Push(u64),
    /// Push at the instant of the last push.
    Again,
    Pop,
    /// Pop if the next event lies before so many picoseconds after the last one popped.
    PopBefore(u64),
}

/// Delays of every magnitude that a run has, ticks and slots of each level straddled.
fn delay() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..52).prop_map(|(bits, size)| bits >> (63 - size))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => delay().prop_map(Step::Push),
        1 => Just(Step::Again),
        3 => Just(Step::Pop),
        2 => delay().prop_map(Step::PopBefore),
    ]
}

/// A calendar beside the oracle.
#[derive(Default)]
struct Pair {
    calendar: Calendar<u32>,
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    pushed: u32,
    now: u64,
    last: u64,
}

impl Pair {
    fn push(&mut self, at: u64) {
        self.calendar.push(Time::from_ps(at), self.pushed);
        self.heap.push(Reverse((at, self.pushed)));
        self.pushed += 1;
        self.last = at;
    }

    fn pop_before(&mut self, limit: u64) {
        let found = self.calendar.pop_before(Time::from_ps(limit));
        let is_due = self.heap.peek().is_some_and(|Reverse((at, _))| *at < limit);
        let expected = if is_due { self.heap.pop().map(|Reverse(top)| top) } else { None };
        assert_eq!(found.map(|(at, event)| (at.as_ps(), event)), expected);
        if let Some((at, _)) = expected {
            self.now = at;
        }
    }

    fn check(&self) {
        assert_eq!(self.calendar.len(), self.heap.len());
        assert_eq!(self.calendar.is_empty(), self.heap.is_empty());
        let next = self.heap.peek().map(|Reverse((at, _))| Time::from_ps(*at));
        assert_eq!(self.calendar.next_time(), next);
    }
}

proptest! {
    #[test]
    fn agrees_with_a_heap_of_time_and_sequence(steps in prop::collection::vec(step(), 1..400)) {
        let mut pair = Pair::default();
        for step in steps {
            match step {
                Step::Push(delay) => pair.push(pair.now + delay),
                Step::Again => pair.push(pair.last.max(pair.now)),
                Step::Pop => pair.pop_before(u64::MAX),
                Step::PopBefore(delay) => pair.pop_before(pair.now + delay),
            }
            pair.check();
        }
        while !pair.heap.is_empty() {
            pair.pop_before(u64::MAX);
        }
        pair.check();
        prop_assert_eq!(pair.calendar.pop(), None);
    }
}

#[test]
fn events_of_one_instant_keep_their_order_across_levels() {
    // The instant lies three levels up when the first event is pushed, and nearer for each next.
    let at = 1 << 40 | 3;
    let mut pair = Pair::default();
    for before in [1 << 40, 1 << 30, 1 << 20, 5_000, 900, 1] {
        pair.push(at);
        pair.push(at - before);
        pair.pop_before(u64::MAX);
    }
    pair.push(at);
    let order: Vec<_> = std::iter::from_fn(|| pair.calendar.pop()).collect();
    assert!(order.iter().all(|(time, _)| time.as_ps() == at), "{order:?}");
    assert!(order.is_sorted_by_key(|(_, event)| *event), "{order:?}");
    assert_eq!(order.len(), 7);
}

#[test]
fn a_limit_far_before_the_next_event_leaves_room_for_earlier_ones() {
    let mut pair = Pair::default();
    pair.push(1 << 45);
    pair.pop_before(1_000_000);
    for at in [999_999, 1_000_000, 2_000_000, 500] {
        pair.push(at);
    }
    for _ in 0..5 {
        pair.pop_before(u64::MAX);
    }
    pair.check();
}

#[test]
fn nothing_grows_while_as_many_events_wait_as_before() {
    let mut calendar = Calendar::new();
    let mut draw = crate::Stream::new(1, "test/calendar", 0);
    for event in 0..1_000u32 {
        calendar.push(Time::from_ps(draw.below(1 << 24)), event);
    }
    let mut sizes = None;
    for round in 0..200_000 {
        let (now, event) = calendar.pop().unwrap();
        calendar.push(now + crate::Span::from_ps(draw.below(1 << 24)), event);
        if round == 50_000 {
            sizes = Some(calendar.blocks.capacity());
        }
    }
    assert_eq!(calendar.len(), 1_000);
    assert_eq!(sizes, Some(calendar.blocks.capacity()));
    assert!(calendar.blocks.len() <= 1_000, "{} blocks", calendar.blocks.len());
}

#[test]
fn the_last_instant_of_all_is_a_time_like_any_other_for_pushes() {
    let mut calendar = Calendar::new();
    calendar.push(Time::from_ps(u64::MAX - 1), 1);
    assert_eq!(calendar.next_time(), Some(Time::from_ps(u64::MAX - 1)));
    assert_eq!(calendar.pop(), Some((Time::from_ps(u64::MAX - 1), 1)));
}

#[cfg(debug_assertions)]
#[test]
#[should_panic(expected = "has passed")]
fn an_event_in_the_past_is_refused() {
    let mut calendar = Calendar::new();
    calendar.push(Time::from_ps(10), ());
    calendar.pop();
    calendar.push(Time::from_ps(9), ());
}
