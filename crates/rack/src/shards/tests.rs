//! Toy shards against one plain loop over all events.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

const LOOKAHEAD: u64 = 50;
const WINDOWS: Windows = Windows::of(LOOKAHEAD);
const NODES: u32 = 37;
const SEED: u64 = 7;

/// A ball that nodes throw at each other: when it arrives, where, and which of how many throws it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Ball {
    at: u64,
    to: u32,
    from: u32,
    throws_left: u32,
}

/// The end of a ball's life.
type End = (u64, u32);

/// Nodes with their balls and a record of what each saw, in order.
#[derive(Clone, Debug, Default)]
struct Toy {
    of: usize,
    shards: usize,
    balls: BinaryHeap<Reverse<Ball>>,
    seen: BTreeMap<u32, Vec<Ball>>,
    ends: Vec<End>,
    /// Panics when it catches a ball at this instant or later.
    bad_from: Option<u64>,
}

fn shard_of(node: u32, shards: usize) -> usize {
    node as usize * shards / NODES as usize
}

fn mix(mut word: u64) -> u64 {
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

impl Ball {
    /// The balls that are thrown when this one is caught: none, one or two, after the lookahead or more.
    fn throws(self) -> Vec<Ball> {
        if self.throws_left == 0 {
            return Vec::new();
        }
        let draw = |purpose: u64| {
            let who = u64::from(self.from) << 32 | u64::from(self.to);
            mix(SEED ^ mix(self.at) ^ mix(who) ^ purpose)
        };
        let count = 1 + u64::from(draw(0) % 40 == 0);
        let ball = |number: u64| Ball {
            at: self.at + LOOKAHEAD + draw(10 + number) % 300,
            to: (draw(20 + number) % u64::from(NODES)) as u32,
            from: self.to,
            throws_left: self.throws_left - 1,
        };
        (0..count).map(ball).collect()
    }
}

fn first_balls() -> Vec<Ball> {
    let ball = |node| Ball {
        at: 1 + mix(u64::from(node)) % 500,
        to: node,
        from: node,
        throws_left: 100 + node,
    };
    (0..NODES).map(ball).collect()
}

impl Shard for Toy {
    type Message = Ball;
    type Report = End;

    fn next(&self) -> u64 {
        self.balls.peek().map_or(NEVER, |Reverse(ball)| ball.at)
    }

    fn take(&mut self, messages: &mut Vec<Ball>) {
        self.balls.extend(messages.drain(..).map(Reverse));
    }

    fn run(&mut self, end: u64, out: &mut Outbox<Ball>) -> u64 {
        let mut events = 0;
        while self.next() < end {
            let Some(Reverse(ball)) = self.balls.pop() else { break };
            assert!(self.bad_from.is_none_or(|bad| ball.at < bad), "a bad catch at {}", ball.at);
            events += 1;
            self.seen.entry(ball.to).or_default().push(ball);
            let throws = ball.throws();
            if throws.is_empty() {
                self.ends.push((ball.at, ball.to));
            }
            for ball in throws {
                match shard_of(ball.to, self.shards) {
                    own if own == self.of => self.balls.push(Reverse(ball)),
                    other => out.send(other, ball.at, ball),
                }
            }
        }
        events
    }

    fn report(&mut self, reports: &mut Vec<End>) {
        reports.append(&mut self.ends);
    }
}

fn toys(shards: usize) -> Vec<Toy> {
    let mut toys: Vec<_> = (0..shards).map(|of| Toy { of, shards, ..Toy::default() }).collect();
    for ball in first_balls() {
        toys[shard_of(ball.to, shards)].balls.push(Reverse(ball));
    }
    toys
}

/// What each node sees and when balls end, from one loop over all events in order of time.
fn plain() -> (BTreeMap<u32, Vec<Ball>>, Vec<End>) {
    let mut balls: BinaryHeap<_> = first_balls().into_iter().map(Reverse).collect();
    let (mut seen, mut ends) = (BTreeMap::<u32, Vec<Ball>>::new(), Vec::new());
    while let Some(Reverse(ball)) = balls.pop() {
        seen.entry(ball.to).or_default().push(ball);
        let throws = ball.throws();
        if throws.is_empty() {
            ends.push((ball.at, ball.to));
        }
        balls.extend(throws.into_iter().map(Reverse));
    }
    (seen, ends)
}

fn seen(shards: &Shards<Toy>) -> BTreeMap<u32, Vec<Ball>> {
    shards.iter().flat_map(|toy| toy.seen.clone()).collect()
}

/// More threads than the machine has, and whatever it has to do.
fn shards(count: usize, threads: usize) -> Shards<Toy> {
    Shards::new(toys(count)).on_threads(threads).alone_below(0)
}

const CUTS: [usize; 5] = [1, 2, 3, 8, 16];

#[test]
fn any_number_of_shards_and_threads_gives_what_one_loop_gives() {
    let (all, ends) = plain();
    let (mut windows, mut busiest) = (Vec::new(), Vec::new());
    for count in CUTS {
        for threads in 1..=3 {
            let mut shards = shards(count, threads);
            let mut told = Vec::new();
            let stop = shards.run(NEVER, WINDOWS, &mut |reports, _| {
                told.append(reports);
                ControlFlow::Continue(())
            });
            assert_eq!(stop, Stop::Idle, "{count} shards, {threads} threads");
            assert_eq!(seen(&shards), all, "{count} shards, {threads} threads");
            assert_eq!(told, ends, "{count} shards, {threads} threads");
            let counts = shards.counts();
            assert_eq!(counts.events, all.values().map(|seen| seen.len() as u64).sum::<u64>());
            assert!(counts.busiest * threads as u64 >= counts.events && counts.busiest > 0);
            let by_shards = counts.busiest_shard..=counts.busiest_shard * count as u64;
            assert!(by_shards.contains(&counts.events) && counts.busiest_shard <= counts.busiest);
            busiest.push((count, counts.busiest_shard));
            assert!((counts.messages > 0) == (count > 1));
            windows.push(counts.windows);
        }
    }
    assert!(windows.iter().all(|&count| count == windows[0]), "{windows:?}");
    // What the busiest shard has to do depends on the cut, and not on the threads.
    let first = |count| busiest.iter().find(|of| of.0 == count).expect("each count was run").1;
    assert!(busiest.iter().all(|&(count, most)| most == first(count)), "{busiest:?}");
}

#[test]
fn a_run_in_parts_is_the_same_run() {
    let (all, ends) = plain();
    let last = ends.iter().map(|end| end.0).max().unwrap();
    for (count, threads) in [(1, 1), (3, 2), (8, 3)] {
        let (mut shards, mut told, mut until) = (shards(count, threads), Vec::new(), 0);
        while until <= last {
            until += 777;
            let stop = shards.run(until, WINDOWS, &mut |reports, _| {
                told.append(reports);
                ControlFlow::Continue(())
            });
            let done = shards.iter().all(|toy| toy.next() >= until);
            assert!(done && stop != Stop::Paused(until), "{stop:?} at {until}");
        }
        assert_eq!((seen(&shards), &told), (all.clone(), &ends));
    }
}

#[test]
fn the_caller_pauses_after_the_same_windows_whatever_the_cut() {
    let mut all: Vec<Vec<(u64, Vec<End>)>> = Vec::new();
    for (count, threads) in [(1, 1), (2, 2), (3, 1), (8, 3), (16, 2)] {
        let (mut shards, mut pauses) = (shards(count, threads), Vec::new());
        loop {
            let mut told = Vec::new();
            let stop = shards.run(NEVER, WINDOWS, &mut |reports, _| {
                told.append(reports);
                ControlFlow::Break(())
            });
            let Stop::Paused(end) = stop else { break };
            assert!(told.iter().all(|&(at, _)| at < end && at + 350 > end), "{told:?} by {end}");
            pauses.push((end, told));
        }
        all.push(pauses);
    }
    assert!(all[0].len() > 10);
    assert!(all.iter().all(|pauses| *pauses == all[0]));
}

#[test]
fn a_panic_in_one_shard_ends_the_run_with_it() {
    for (bad, threads) in [(0, 1), (0, 2), (1, 2), (2, 3), (0, 3)] {
        let mut toys = toys(3);
        toys[bad].bad_from = Some(5_000);
        let mut shards = Shards::new(toys).on_threads(threads);
        let run =
            AssertUnwindSafe(|| shards.run(NEVER, WINDOWS, &mut |_, _| ControlFlow::Continue(())));
        let panic = catch_unwind(run).expect_err("it catches badly");
        let text = panic.downcast_ref::<String>().expect("a message");
        assert!(text.starts_with("a bad catch at 5"), "{text}");
    }
}

#[test]
fn windows_end_on_the_grid_where_the_lookahead_lets_them() {
    let windows = Windows { lookahead: 2, grid: 2, offset: 1 };
    assert_eq!([3, 4, 5].map(|first| windows.end(first, NEVER)), [5, 5, 7]);
    let windows = Windows { lookahead: 1, ..windows };
    assert_eq!([3, 4, 5].map(|first| windows.end(first, NEVER)), [4, 5, 6]);
    let windows = Windows { lookahead: 59, ..windows };
    assert_eq!([3, 4].map(|first| windows.end(first, 1_000)), [61, 63]);
    assert_eq!(windows.end(990, 1_000), 1_000);
    assert_eq!(Windows::of(7).end(3, NEVER), 10);
}

#[test]
fn a_copy_goes_its_own_way() {
    let mut shards = shards(4, 2);
    let mut quiet = |_: &mut Vec<End>, _| ControlFlow::Continue(());
    shards.run(3_000, WINDOWS, &mut quiet);
    let mut copy = shards.clone();
    shards.run(NEVER, WINDOWS, &mut quiet);
    assert_ne!(seen(&copy), seen(&shards));
    copy.run(NEVER, WINDOWS, &mut quiet);
    assert_eq!(seen(&copy), seen(&shards));
}

#[test]
fn threads_are_no_more_than_shards_or_cores() {
    assert_eq!(shards(3, 9).threads(), 3);
    assert_eq!(shards(3, 0).threads(), 1);
    assert_eq!(usable_threads(0), 1);
    let cores = std::thread::available_parallelism().unwrap().get();
    assert_eq!(usable_threads(usize::MAX), cores);
}
