//! What holds of every rack, whatever it carries and whatever breaks.

use kernel::{Bytes, Span, Stream, Time};
use proptest::prelude::*;
use rack::{Advance, Fabric, Flow};

use crate::config::Config;
use crate::rack::Rack;
use crate::tests::{Case, Ends, cases, config, flow};

/// The books of a run.
struct Books {
    offered: Vec<Flow>,
    ends: Ends,
    /// Completions and failures that were checked.
    checked: (usize, usize),
}

impl Books {
    fn of(offered: Vec<Flow>) -> Self {
        Self { offered, ends: Ends::default(), checked: (0, 0) }
    }

    /// Advances a rack. Nothing may end before the instant to which it had come.
    fn advance(&mut self, rack: &mut Rack, until: Time) -> Advance {
        let before = rack.now();
        let advance = rack.advance(until, &mut self.ends);
        assert!(rack.now() >= before, "{} after {before}", rack.now());
        for (id, end, ideal, _) in &self.ends.0[self.checked.0..] {
            let flow = self.offered[*id as usize];
            assert!(*end >= before, "flow {id} ends at {end}, before {before}");
            assert!(*end - flow.start >= *ideal, "{flow:?} ends at {end}, at best after {ideal}");
            assert_eq!(*ideal, rack.ideal_fct(&flow));
        }
        for (id, at, _) in &self.ends.1[self.checked.1..] {
            assert!(*at >= before, "flow {id} fails at {at}, before {before}");
        }
        self.checked = (self.ends.0.len(), self.ends.1.len());
        advance
    }

    /// Of the first `count` flows each is completed, failed or open, and so is each byte.
    fn check(&self, rack: &Rack, count: usize) {
        let open = rack.unfinished(usize::MAX);
        let completed = self.ends.0.iter().map(|end| end.0);
        let failed = self.ends.1.iter().map(|failed| failed.0);
        let mut all: Vec<_> = completed.chain(failed).collect();
        all.extend(open.iter().map(|open| open.flow.id.get()));
        all.sort_unstable();
        assert_eq!(all, (0..count as u64).collect::<Vec<_>>(), "at {}", rack.now());
        let totals = rack.totals();
        let missing: Bytes = open.iter().map(|open| open.flow.size - open.delivered).sum();
        let offered: Bytes = self.offered[..count].iter().map(|flow| flow.size).sum();
        let (delivered, lost) = (totals.delivered, totals.lost);
        assert_eq!(delivered + lost + missing, offered, "{delivered}, {lost} and {missing}");
    }
}

/// Runs a case that much later and keeps its books; gives when each flow ended, failed ones with an
/// order of their own.
fn run(case: &Case, later: Span) -> Vec<(u64, Span, bool)> {
    let mut rack = case.rack(later);
    let mut books = Books::of(case.flows(later));
    let offered = books.offered.clone();
    for (count, flow) in offered.iter().enumerate() {
        books.advance(&mut rack, flow.start);
        books.check(&rack, count);
        rack.offer(flow);
        books.check(&rack, count + 1);
    }
    let limit = Time::ZERO + later + Span::from_us(20_000);
    let mut at = rack.now();
    while at < limit {
        at = limit.min(at + Span::from_us(3));
        let advance = books.advance(&mut rack, at);
        books.check(&rack, offered.len());
        if advance == Advance::Idle {
            break;
        }
    }
    let fct = |id: u64, end: Time| end - offered[id as usize].start;
    let mut all: Vec<_> = books.ends.0.iter().map(|end| (end.0, fct(end.0, end.1), true)).collect();
    all.extend(books.ends.1.iter().map(|end| (end.0, fct(end.0, end.1), false)));
    all
}

/// Epochs of a case in so much time, at most.
fn epochs(case: &Case, time: Span) -> Span {
    let plan = case.config.plan().unwrap();
    let epoch = plan.config.slot * u64::from(plan.schedule.slots());
    epoch * (time / epoch)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn slow_books_balance_at_every_instant_and_no_flow_beats_its_yardstick(case in cases()) {
        run(&case, Span::ZERO);
    }

    /// Up to 30 days, which is as long as runs may be.
    #[test]
    fn slow_whole_epochs_later_everything_is_the_same(case in cases(), seconds in 0_u64..2_592_000) {
        let later = epochs(&case, Span::from_us(seconds * 1_000_000));
        prop_assert_eq!(run(&case, later), run(&case, Span::ZERO));
    }

    #[test]
    fn slow_a_flow_alone_takes_an_epoch_more_than_at_best_at_most(
        nodes in 2_u32..40, channels in 1_u32..=4, size in 1_u64..100_000, at in 0_u64..3_000_000,
        ends in (0_u32..40, 0_u32..40), wire in 0_u64..1_000,
    ) {
        let (src, step) = (ends.0 % nodes, 1 + ends.1 % (nodes - 1));
        let config = Config { wire_latency: Span::from_ns(wire), ..config(nodes, channels) };
        let plan = config.plan().unwrap();
        let epoch = config.slot * u64::from(plan.schedule.slots());
        let prompt = plan.delay_slots <= plan.schedule.feedback_gap();
        let mut rack = Rack::new(plan, 1);
        let alone = flow(0, src, (src + step) % nodes, size, Time::from_ps(at));
        let mut books = Books::of(vec![alone]);
        books.advance(&mut rack, alone.start);
        rack.offer(&alone);
        let end = books.advance(&mut rack, Time::NEVER);
        prop_assert_eq!(end, Advance::Idle);
        let (_, end, ideal, _) = books.ends.0[0];
        let fct = end - alone.start;
        // Where feedback takes longer than the schedule leaves for it a lone flow loses rate.
        prop_assert!(!prompt || fct <= ideal + epoch, "{} alone, {} at best", fct, ideal);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// At another time of the epoch a flow meets other nodes first: alone that is worth an epoch at most,
    /// where the schedule leaves room for propagation (Appendix A).
    #[test]
    fn at_any_other_time_a_flow_alone_takes_as_long_within_an_epoch(
        nodes in 2_u32..40, channels in 1_u32..=4, size in 1_u64..30_000,
        later in prop_oneof![0_u64..10_000_000, 0_u64..2_592_000_000_000_000_000],
    ) {
        let (switch_latency, nic_latency) = (Span::ZERO, Span::ZERO);
        let config = Config { switch_latency, nic_latency, ..config(nodes, channels) };
        let plan = config.plan().unwrap();
        prop_assume!(plan.delay_slots <= plan.schedule.feedback_gap());
        let epoch = config.slot * u64::from(plan.schedule.slots());
        let case = Case { config, flows: vec![(0, nodes / 2, size, 0, 0)], faults: vec![] };
        let [soon, late] = [0, later].map(|later| run(&case, Span::from_ps(later))[0].1);
        let (short, long) = (soon.min(late), soon.max(late));
        prop_assert!(long - short <= epoch + case.config.slot, "{} and {}", soon, late);
    }
}

#[test]
fn slow_under_load_no_flow_beats_its_yardstick_and_books_balance() {
    for (nodes, channels, size, seed) in
        [(16, 4, 1, 1), (16, 4, 2_000, 2), (9, 2, 300, 3), (64, 4, 1, 4), (5, 1, 60, 5)]
    {
        let mut draw = Stream::new(seed, "test", 0);
        let (mut at, mut flows) = (0.0, Vec::new());
        for id in 0..2_000 {
            at += draw.exponential(1e12 * 64.0 * (size as f64 / 56.0).ceil() * 8.0 / 3e10)
                / f64::from(nodes);
            let src = draw.below(u64::from(nodes)) as u32;
            let dst = (src + 1 + draw.below(u64::from(nodes) - 1) as u32) % nodes;
            flows.push(flow(id, src, dst, size, Time::from_ps(at as u64)));
        }
        let mut rack = Rack::new(config(nodes, channels).plan().unwrap(), 1);
        let mut books = Books::of(flows);
        for index in 0..books.offered.len() {
            let flow = books.offered[index];
            books.advance(&mut rack, flow.start);
            rack.offer(&flow);
            books.check(&rack, index + 1);
        }
        assert_eq!(books.advance(&mut rack, Time::NEVER), Advance::Idle);
        books.check(&rack, 2_000);
    }
}

/// All queues are empty and the last cells of one flow are on their way when another begins: at
/// whichever slot it is, no cell of it leaves before, so that it does not beat its yardstick.
#[test]
fn a_flow_that_begins_while_cells_are_under_way_sends_none_before_its_start() {
    for (nodes, shards) in [(64, 1), (64, 2), (16, 3)] {
        let plan = || config(nodes, 4).plan().unwrap();
        let slot = plan().config.slot;
        for offset in 0..45 {
            let second = flow(1, 5, 3, 300, Time::ZERO + slot * offset + Span::from_ps(7));
            let flows = [flow(0, 2, 9, 54, Time::ZERO), second];
            let mut rack = Rack::new(plan(), 1);
            rack.set_shards(shards);
            let mut books = Books::of(flows.to_vec());
            for flow in &flows {
                books.advance(&mut rack, flow.start);
                rack.offer(flow);
            }
            assert_eq!(books.advance(&mut rack, Time::NEVER), Advance::Idle);
            books.check(&rack, 2);
        }
    }
}

/// A month of nothing between two flows, with all that may go on in the meantime.
#[test]
fn idle_time_costs_nothing() {
    let later = Span::from_us(2_592_000_000_000);
    let configs = [
        config(64, 4),
        Config { bit_error_rate: 1e-4, ..config(64, 4) },
        Config { classes: 2, queue_limit: 3, ..config(64, 4) },
        Config { transport: crate::config::Transport::Reliable, ..config(64, 4) },
    ];
    for config in configs {
        let begin = std::time::Instant::now();
        let mut rack = Rack::new(config.plan().unwrap(), 1);
        let flows = vec![
            flow(0, 43, 8, 5_574, Time::from_ps(100_000_000_000_000)),
            flow(1, 43, 48, 8_499, Time::ZERO + later),
        ];
        let mut books = Books::of(flows.clone());
        for (index, flow) in flows.iter().enumerate() {
            // A run samples now and then.
            for part in 1..=10 {
                let part = Time::from_ps(flow.start.as_ps() / 10 * part);
                books.advance(&mut rack, part);
            }
            books.advance(&mut rack, flow.start);
            rack.offer(flow);
            books.check(&rack, index + 1);
        }
        assert_eq!(books.advance(&mut rack, Time::NEVER), Advance::Idle);
        assert_eq!(books.ends.0.len(), 2);
        for (id, end, ideal, _) in &books.ends.0 {
            let fct = *end - flows[*id as usize].start;
            assert!(fct <= *ideal * 40, "flow {id} took {fct}, at best {ideal}");
        }
        assert!(begin.elapsed().as_secs() < 60, "{:?}", begin.elapsed());
    }
}
