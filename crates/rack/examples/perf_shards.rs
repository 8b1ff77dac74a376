//! What windows cost: `perf_shards [WINDOWS]`. A network whose nodes compute nothing and send empty
//! messages, so that what is left is the driver's share: of a window (a barrier), of a message.
//!
//! The constants go into T = c E s + m M / p + B(p) W, the time of E events that cost c each, of which the
//! busiest of p threads has the share s, with M messages in W windows.

use std::ops::ControlFlow;
use std::time::Instant;

use rack::shards::{NEVER, Outbox, Shard, Shards, Windows, usable_threads};

/// Sends so many messages of 24 bytes to each other shard in each window, and takes as many.
struct Idler {
    of: usize,
    shards: usize,
    now: u64,
    windows: u64,
    messages: u64,
    sum: u64,
}

impl Shard for Idler {
    type Message = [u64; 3];
    type Report = ();

    fn next(&self) -> u64 {
        if self.now < self.windows { self.now } else { NEVER }
    }

    fn take(&mut self, messages: &mut Vec<[u64; 3]>) {
        self.sum = messages.drain(..).fold(self.sum, |sum, message| sum ^ message[1]);
    }

    fn run(&mut self, end: u64, out: &mut Outbox<[u64; 3]>) -> u64 {
        while self.now < end.min(self.windows) {
            self.now += 1;
            for to in (0..self.shards).filter(|&to| to != self.of) {
                for number in 0..self.messages {
                    out.send(to, self.now, [self.now, number, self.sum]);
                }
            }
        }
        // As much as keeps the driver on all threads.
        1_000
    }

    fn report(&mut self, _: &mut Vec<()>) {}
}

/// The least time of a window of some runs. Unit: ns.
fn window(shards: usize, threads: usize, windows: u64, messages: u64) -> f64 {
    let run = || {
        let idler = |of| Idler { of, shards, now: 0, windows, messages, sum: 0 };
        let mut network = Shards::new((0..shards).map(idler)).on_threads(threads);
        let begin = Instant::now();
        network.run(NEVER, Windows::of(1), &mut |_, _| ControlFlow::Continue(()));
        begin.elapsed().as_secs_f64() * 1e9 / windows as f64
    };
    (0..5).map(|_| run()).fold(f64::INFINITY, f64::min)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let windows = std::env::args().nth(1).map_or(Ok(20_000), |word| word.parse())?;
    eprintln!("{} cores", usable_threads(usize::MAX));
    for (shards, threads) in [(1, 1), (2, 1), (8, 1), (2, 2), (8, 2), (16, 2)] {
        let empty = window(shards, threads, windows, 0);
        let pairs = (shards * (shards - 1)).max(1) as f64;
        let few = window(shards, threads, windows / 4, 1) - empty;
        let many = window(shards, threads, windows / 40, 200) - empty;
        eprintln!(
            "{shards} shards on {threads} threads: a window {empty:.0} ns; a message alone between \
             two shards {:.1} ns, one of 200 {:.1} ns, times the threads {:.1} ns",
            few / pairs,
            many / pairs / 200.0,
            many / pairs / 200.0 * threads as f64,
        );
    }
    Ok(())
}
