//! How fast the calendar is, beside a binary heap: `calendar [EVENTS...]`. As many events wait all
//! the time; each step takes the next and adds one up to 4 µs later.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use kernel::{Calendar, Span, Stream, Time};

/// Steps measured.
const STEPS: u64 = 5_000_000;
/// Largest delay, in picoseconds.
const DELAY: u64 = 4_000_000;

fn nanoseconds(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1e9 / STEPS as f64
}

fn main() -> Result<(), std::num::ParseIntError> {
    let mut counts: Vec<u32> =
        std::env::args().skip(1).map(|w| w.parse()).collect::<Result<_, _>>()?;
    if counts.is_empty() {
        counts = vec![100, 1_000, 10_000, 100_000, 1_000_000];
    }
    for count in counts {
        let mut draw = Stream::new(1, "example/calendar", 0);
        let mut calendar = Calendar::new();
        for event in 0..count {
            calendar.push(Time::from_ps(draw.below(DELAY)), (event, event));
        }
        let begin = Instant::now();
        for _ in 0..STEPS {
            let (now, event) = calendar.pop().expect("one is pushed for each popped");
            calendar.push(now + Span::from_ps(draw.below(DELAY)), event);
        }
        let wheel = nanoseconds(begin);

        let mut heap = BinaryHeap::new();
        for event in 0..u64::from(count) {
            heap.push(Reverse((draw.below(DELAY), event)));
        }
        let begin = Instant::now();
        for sequence in 0..STEPS {
            let Reverse((now, _)) = heap.pop().expect("one is pushed for each popped");
            heap.push(Reverse((now + draw.below(DELAY), sequence)));
        }
        let heap = nanoseconds(begin);
        eprintln!("{count:>9} events: wheel {wheel:6.1} ns, heap {heap:6.1} ns a pop and push");
    }
    Ok(())
}
