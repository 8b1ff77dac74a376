//! Whether flows pile up: more is offered than the network carries.
//!
//! A flow is *due* when it would have ended alone in its network. The bytes that are due and have not ended
//! are what waits because of other flows, whatever the sizes of flows and the length of the wires. The
//! network is saturated if these grow in the second half of the arrivals by more than a small part of what
//! was due then, and by more than chance explains in a network that is offered just what it carries. Few
//! flows tell enough where the lines of the nodes are what is too slow: what they pass in the time of all
//! arrivals is known.

use kernel::{Bytes, PS_PER_SECOND, Rate, Span, Time};

use crate::Flow;

/// Buckets of time; when more are needed, two become one.
const BUCKETS: usize = 4096;
/// Bytes that may come to wait in the second half of the arrivals, as a share of those due then (our
/// choice: a network at 105 % of what it carries ends 95 %).
const MISSING_MAX: f64 = 0.05;
/// Standard deviations that chance explains (our choice). What waits in a queue that is offered just what
/// it serves is a random walk: its variance is the sum of the squares of what comes.
const DEVIATIONS: f64 = 3.0;

/// What became due and what ended in a part of the run. Bytes, and squares of flows' bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    due: f64,
    due_squares: f64,
    ended: f64,
}

impl Bucket {
    fn add(&mut self, other: &Self) {
        self.due += other.due;
        self.due_squares += other.due_squares;
        self.ended += other.ended;
    }
}

/// What was due and what has ended, over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backlog {
    buckets: Vec<Bucket>,
    /// A bucket covers `2^shift` picoseconds.
    shift: u32,
    /// Of the flows offered. The first one's is where buckets begin.
    first_start: Option<Time>,
    last_start: Time,
}

impl Backlog {
    /// A flow is offered.
    pub(crate) fn offer(&mut self, flow: &Flow) {
        let first = self.first_start.map_or(flow.start, |first| first.min(flow.start));
        // Flows are offered in the order of their starts.
        self.first_start = Some(first);
        self.last_start = self.last_start.max(flow.start);
    }

    /// A flow has ended, or never will within the run. `ideal` is what it takes alone.
    pub(crate) fn close(&mut self, flow: &Flow, ideal: Span, end: Option<Time>) {
        let bytes = flow.size.get() as f64;
        let due = self.bucket(flow.start + ideal);
        due.due += bytes;
        due.due_squares += bytes * bytes;
        if let Some(end) = end {
            self.bucket(end).ended += bytes;
        }
    }

    /// The bucket of an instant.
    fn bucket(&mut self, at: Time) -> &mut Bucket {
        let since = at.as_ps().saturating_sub(self.first_start.unwrap_or_default().as_ps());
        while since >> self.shift >= BUCKETS as u64 {
            self.shift += 1;
            let halves = self.buckets.len().div_ceil(2);
            for place in 0..halves {
                let mut pair = self.buckets[2 * place];
                if let Some(second) = self.buckets.get(2 * place + 1) {
                    pair.add(second);
                }
                self.buckets[place] = pair;
            }
            self.buckets.truncate(halves);
        }
        let place = (since >> self.shift) as usize;
        if self.buckets.len() <= place {
            self.buckets.resize(place + 1, Bucket::default());
        }
        &mut self.buckets[place]
    }

    /// What became due and what ended in some buckets.
    fn sum(&self, from: usize, to: usize) -> Bucket {
        let to = to.min(self.buckets.len());
        let mut sum = Bucket::default();
        for bucket in &self.buckets[from.min(to)..to] {
            sum.add(bucket);
        }
        sum
    }

    /// Whether flows piled up while they arrived, at `nodes` nodes whose lines have `rate`. All flows have
    /// been closed.
    pub(crate) fn is_saturated(&self, nodes: u32, rate: Rate) -> bool {
        let Some(first) = self.first_start else { return false };
        let arrivals = (self.last_start.as_ps() - first.as_ps()) >> self.shift;
        let end = arrivals as usize;
        let late = self.sum(end / 2, end);
        let missing = late.due - late.ended;
        if missing <= MISSING_MAX * late.due {
            return false;
        }
        let seconds = (arrivals << self.shift) as f64 / PS_PER_SECOND as f64;
        let carried =
            f64::from(nodes) * rate.as_bps() as f64 / Bytes::new(1).bits() as f64 * seconds;
        let all = self.sum(0, end);
        missing > DEVIATIONS * late.due_squares.sqrt()
            || all.due - carried > DEVIATIONS * all.due_squares.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use kernel::Stream;

    use super::*;
    use crate::{Class, FlowId, NodeId};

    /// 1 KB at 1 Gbps.
    const SERVICE: Span = Span::from_us(8);

    fn flow(number: u64, size: Bytes, start: u64) -> Flow {
        Flow {
            id: FlowId::new(number),
            src: NodeId::new(0),
            dst: NodeId::new(1),
            size,
            start: Time::from_ps(start),
            class: Class::new(0),
        }
    }

    /// A number above 0 and below 1.
    fn draw(stream: &mut Stream) -> f64 {
        (stream.below(1 << 52) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// Flows in KB that arrive at random at `servers` servers, which take them in turn and are offered
    /// `load` of what they can do. Nodes' lines are `lines` times as fast as a server.
    fn queue(flows: u64, servers: u32, load: f64, lines: u64, sizes: Sizes, seed: u64) -> bool {
        let mut stream = Stream::new(seed, "test", 0);
        let mut backlog = Backlog::default();
        let mut free = vec![0.0f64; servers as usize];
        let mut now = 0.0f64;
        let service = SERVICE.as_ps() as f64;
        let all: Vec<_> = (0..flows)
            .map(|number| {
                now -= service / load / f64::from(servers) * draw(&mut stream).ln();
                let size = match sizes {
                    Sizes::Equal => 1000.0,
                    Sizes::Exponential => -1000.0 * draw(&mut stream).ln(),
                };
                let takes = service * size / 1000.0;
                let server = &mut free[stream.below(u64::from(servers)) as usize];
                *server = server.max(now) + takes;
                (flow(number, Bytes::new(size as u64 + 1), now as u64), takes, *server)
            })
            .collect();
        for (flow, takes, end) in &all {
            backlog.offer(flow);
            let ideal = Span::from_ps((takes / lines as f64) as u64);
            backlog.close(flow, ideal, Some(Time::from_ps(*end as u64)));
        }
        backlog.is_saturated(servers, Rate::from_gbps(lines))
    }

    #[derive(Clone, Copy, Debug)]
    enum Sizes {
        Equal,
        Exponential,
    }

    #[test]
    fn a_queue_with_room_is_not_saturated_whatever_the_number_of_flows() {
        for sizes in [Sizes::Equal, Sizes::Exponential] {
            for (flows, servers) in
                [(10, 1), (100, 1), (1_000, 1), (10_000, 1), (100, 64), (10_000, 64), (100_000, 64)]
            {
                for load in [0.3, 0.5, 0.7] {
                    let found = (0..20).filter(|&seed| queue(flows, servers, load, 1, sizes, seed));
                    assert_eq!(
                        found.count(),
                        0,
                        "{flows} {sizes:?} at {load} of {servers} servers"
                    );
                }
            }
        }
    }

    /// What the nodes' lines pass is known: tens of flows tell.
    #[test]
    fn nodes_that_are_offered_more_than_their_lines_carry_are() {
        for (flows, load) in [(80, 3.0), (100, 3.0), (200, 2.0), (2_000, 1.3), (20_000, 1.1)] {
            let found = (0..20).filter(|&seed| queue(flows, 1, load, 1, Sizes::Equal, seed));
            assert_eq!(found.count(), 20, "{flows} flows at {load}");
        }
    }

    /// The network behind fast lines is too slow: what piles up must exceed what chance explains.
    #[test]
    fn an_overloaded_queue_is_told_of_the_more_flows_the_slighter_the_overload() {
        for (flows, servers, load) in [
            (150, 1, 3.0),
            (1_000, 1, 1.5),
            (10_000, 1, 1.2),
            (100_000, 1, 1.1),
            (600, 64, 3.0),
            (1_000, 64, 1.5),
            (10_000, 64, 1.1),
        ] {
            let found = (0..20).filter(|&seed| queue(flows, servers, load, 4, Sizes::Equal, seed));
            assert_eq!(found.count(), 20, "{flows} flows at {load} of {servers} servers");
        }
    }

    /// Long wires and large flows keep flows open, and nothing waits.
    #[test]
    fn flows_that_take_what_they_take_alone_never_pile_up() {
        for ideal in [Span::from_ns(1), Span::from_us(800), Span::from_us(80_000)] {
            let mut backlog = Backlog::default();
            for number in 0..1000 {
                let flow = flow(number, Bytes::new(1000), number * SERVICE.as_ps());
                backlog.offer(&flow);
                backlog.close(&flow, ideal, Some(flow.start + ideal));
            }
            assert!(!backlog.is_saturated(1, Rate::from_gbps(10)), "{ideal}");
        }
    }

    #[test]
    fn a_network_that_ends_nothing_is_saturated() {
        let mut backlog = Backlog::default();
        for number in 0..100 {
            let flow = flow(number, Bytes::new(1000), number * SERVICE.as_ps());
            backlog.offer(&flow);
            backlog.close(&flow, SERVICE, None);
        }
        assert!(backlog.is_saturated(1, Rate::from_gbps(10)));
    }

    #[test]
    fn nothing_piles_up_where_all_starts_at_once_or_nothing_does() {
        let mut backlog = Backlog::default();
        assert!(!backlog.is_saturated(1, Rate::from_gbps(1)));
        for number in 0..100 {
            let flow = flow(number, Bytes::new(1000), 7);
            backlog.offer(&flow);
            backlog.close(&flow, SERVICE, Some(flow.start + SERVICE * (number + 1)));
        }
        assert!(!backlog.is_saturated(1, Rate::from_gbps(1)));
    }

    #[test]
    fn buckets_stay_few_and_lose_nothing() {
        let mut backlog = Backlog::default();
        for number in 0..100_000u64 {
            let flow = flow(number, Bytes::new(number + 1), 1_000_000 + number * number);
            backlog.offer(&flow);
            backlog.close(
                &flow,
                Span::from_ps(number),
                Some(flow.start + Span::from_ps(2 * number)),
            );
        }
        assert!(backlog.buckets.len() <= BUCKETS, "{}", backlog.buckets.len());
        let sum = backlog.sum(0, BUCKETS);
        let bytes = 100_000.0 * 100_001.0 / 2.0;
        assert_eq!((sum.due, sum.ended), (bytes, bytes));
    }
}
