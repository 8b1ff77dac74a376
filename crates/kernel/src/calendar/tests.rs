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
    /// Push one of [`USUAL`] after the last event popped.
    Usual(usize),
    /// Push at the instant of the last push.
    Again,
    Pop,
    /// Pop if the next event lies before so many picoseconds after the last one popped.
    PopBefore(u64),
}

/// Delays that come again and again: more than there are lanes, and two of each length.
const USUAL: [u64; 2 * LANES] = {
    let mut delays = [0; 2 * LANES];
    let mut at = 0;
    while at < delays.len() {
        delays[at] = (at as u64 / 2) * 100_003 + at as u64 % 2;
        at += 1;
    }
    delays
};

/// Delays of every magnitude that a run has, ticks and slots of each level straddled.
fn delay() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..52).prop_map(|(bits, size)| bits >> (63 - size))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => delay().prop_map(Step::Push),
        6 => (0..USUAL.len()).prop_map(Step::Usual),
        // As in most networks: few of them.
        6 => (0..4usize).prop_map(Step::Usual),
        1 => Just(Step::Again),
        12 => Just(Step::Pop),
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
    fn agrees_with_a_heap_of_time_and_sequence(
        steps in prop::collection::vec(step(), 1..800),
        numbers_left in prop::option::of(1u32..500),
    ) {
        let mut pair = Pair::default();
        // Some runs use up the numbers of events on the way.
        pair.calendar.number = numbers_left.map_or(0, |left| u32::MAX - left);
        for step in steps {
            match step {
                Step::Push(delay) => pair.push(pair.now + delay),
                Step::Usual(which) => pair.push(pair.now + USUAL[which]),
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
fn a_delay_that_comes_again_gets_a_lane_and_keeps_it() {
    let mut calendar = Calendar::new();
    let lanes =
        |calendar: &Calendar<()>| calendar.queues.lanes.iter().map(Lane::len).sum::<usize>();
    for _ in 0..500 {
        calendar.push(calendar.queues.now + crate::Span::from_ps(1_000), ());
        calendar.push(calendar.queues.now + crate::Span::from_ps(1_001), ());
        calendar.pop();
    }
    // The first to come were those without a lane.
    assert_eq!(calendar.len(), 500);
    assert_eq!(lanes(&calendar), 500);
    // A delay of another network takes an empty lane once all have been given out.
    while calendar.pop().is_some() {}
    for delay in 0..4 * LANES as u64 {
        for _ in 0..100 {
            calendar.push(calendar.queues.now + crate::Span::from_ps(5_000 + 7 * delay), ());
        }
        assert!(lanes(&calendar) > 0, "delay {delay} found no lane");
        while calendar.pop().is_some() {}
    }
}

/// Delays come and go, more of them at first than pops look at as a rule: lanes move, and the order of
/// events is that of the oracle throughout.
#[test]
fn delays_out_of_use_lose_their_lanes_and_pops_look_at_few_again() {
    let mut pair = Pair::default();
    let mut draw = crate::Stream::new(1, "test/calendar", 0);
    for (phase, (first, count)) in [(0, 13), (10, 4), (20, 6), (3, 9)].into_iter().enumerate() {
        for _ in 0..8_000 {
            // The one in sixteen is a delay of its own, which waits in the wheel.
            let usual = USUAL[(first + draw.below(count)) as usize];
            let delay = if draw.below(16) == 0 { draw.below(1 << 20) } else { usual };
            pair.push(pair.now + delay);
            if pair.calendar.len() > 40 {
                pair.pop_before(u64::MAX);
            }
        }
        pair.check();
        assert_eq!(pair.calendar.queues.heads.is_wide(), count >= 8, "phase {phase}");
    }
    while !pair.heap.is_empty() {
        pair.pop_before(u64::MAX);
    }
    pair.check();
}

/// How many events a calendar has room for.
fn room(calendar: &Calendar<u32>) -> usize {
    calendar.queues.wheel.capacity()
        + calendar.queues.lanes.iter().map(Lane::capacity).sum::<usize>()
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
        let usual = [1_000, 1 << 20, draw.below(1 << 24)][draw.below(3) as usize];
        calendar.push(now + crate::Span::from_ps(usual), event);
        if round == 50_000 {
            sizes = Some(room(&calendar));
        }
    }
    assert_eq!(calendar.len(), 1_000);
    assert_eq!(sizes, Some(room(&calendar)));
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
