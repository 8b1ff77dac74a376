//! Degrees counted exactly; every case small enough is listed.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::patterns::Pattern;
use super::super::testing::check_open_loop;
use super::*;

const ONCE: Rounds = Rounds { start: Time::ZERO, period: Span::ZERO, count: 1, jitter: Span::ZERO };

fn burst(nodes: u32, round: Round, rounds: Rounds) -> Vec<Flow> {
    check_open_loop(nodes, Burst::new(nodes, 1, round, rounds, Bytes::new(448)))
}

/// How many flows each node sends and receives.
fn degrees(flows: &[Flow]) -> (BTreeMap<u32, u32>, BTreeMap<u32, u32>) {
    let (mut out, mut into) = (BTreeMap::new(), BTreeMap::new());
    for flow in flows {
        *out.entry(flow.src.get()).or_insert(0) += 1;
        *into.entry(flow.dst.get()).or_insert(0) += 1;
    }
    (out, into)
}

proptest! {
    #[test]
    fn incast_and_outcast_have_their_degree(nodes in 2u32..40, seed: u64, fixed in prop::option::of(0u32..40), share in 0.0f64..1.0) {
        let count = 1 + (share * f64::from(nodes - 1)) as u32;
        let one = fixed.map(|node| NodeId::new(node % nodes));
        let rounds = Rounds { period: Span::from_us(1), count: 3, ..ONCE };
        let incast = Round::Incast { senders: count, receiver: one };
        let outcast = Round::Outcast { receivers: count, sender: one };
        let run = |round| check_open_loop(nodes, Burst::new(nodes, seed, round, rounds, Bytes::new(9)));
        let (incast, outcast) = (run(incast), run(outcast));
        for at in 0..3 {
            let round = at * count as usize..(at + 1) * count as usize;
            let (out, into) = degrees(&incast[round.clone()]);
            prop_assert_eq!((out.len() as u32, into.len()), (count, 1));
            prop_assert!(one.is_none_or(|one| into.contains_key(&one.get())));
            let (out, into) = degrees(&outcast[round]);
            prop_assert_eq!((out.len(), into.len() as u32), (1, count));
            prop_assert!(one.is_none_or(|one| out.contains_key(&one.get())));
        }
    }

    #[test]
    fn a_shuffle_joins_every_mapper_to_every_other_reducer(nodes in 2u32..30, m in 1u32..30, r in 1u32..30) {
        let (mappers, reducers) = (m.min(nodes), r.min(nodes));
        let flows = burst(nodes, Round::Shuffle { mappers, reducers }, ONCE);
        let pairs: BTreeSet<_> = flows.iter().map(|f| (f.src.get(), f.dst.get())).collect();
        let expected: BTreeSet<_> = (0..mappers)
            .flat_map(|src| (nodes - reducers..nodes).map(move |dst| (src, dst)))
            .filter(|(src, dst)| src != dst)
            .collect();
        prop_assert_eq!(pairs, expected);
    }
}

#[test]
fn all_to_all_joins_every_pair_once_in_any_order() {
    for nodes in 2..=12 {
        let random = Order::random(nodes, &mut Stream::new(5, "test", 0));
        for order in [Order::Ring, Order::Ascending, random] {
            let flows = burst(nodes, Round::AllToAll(order.clone()), ONCE);
            let pairs: BTreeSet<_> = flows.iter().map(|f| (f.src, f.dst)).collect();
            assert_eq!((pairs.len(), flows.len()), ((nodes * (nodes - 1)) as usize, pairs.len()));
            if order == Order::Ascending {
                assert!(flows.is_sorted_by_key(|flow| flow.dst));
                continue;
            }
            // In rings every step is a permutation: nobody sends or receives twice.
            for step in flows.chunks(nodes as usize) {
                let (out, into) = degrees(step);
                assert_eq!((out.len(), into.len()), (nodes as usize, nodes as usize));
            }
        }
    }
}

#[test]
fn one_flow_from_each_node_of_a_permutation() {
    let map = super::super::patterns::permutation(9, &mut Stream::new(1, "test", 0));
    let pairs = Box::new(Pairs::new(9, Pattern::Fixed(map), 1));
    let flows = burst(9, Round::OneEach(pairs.clone()), ONCE);
    let (out, into) = degrees(&flows);
    assert_eq!((out.len(), into.len(), flows.len()), (9, 9, 9));
    assert_eq!(burst(9, Round::Drawn { pairs, flows: 50 }, ONCE).len(), 50);
}

#[test]
fn rounds_come_at_their_period_and_jitter_stays_within_its_bound() {
    let rounds = Rounds {
        start: Time::from_ps(500),
        period: Span::from_ns(100),
        count: 20,
        jitter: Span::from_ns(30),
    };
    let flows = burst(33, Round::Incast { senders: 32, receiver: None }, rounds);
    let mut delays = vec![];
    for (round, flows) in flows.chunks(32).enumerate() {
        let start = rounds.start + rounds.period * round as u64;
        delays.extend(flows.iter().map(|flow| (flow.start - start).as_ps() as f64));
    }
    assert!(delays.iter().all(|&delay| delay < 30_000.0));
    // Uniform over 30 ns: deviation 8.66 ns; four standard errors of 640 draws.
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    assert!((mean - 15_000.0).abs() < 4.0 * 8_660.0 / 640f64.sqrt(), "{mean}");
    let still = Rounds { jitter: Span::ZERO, ..rounds };
    let flows = burst(33, Round::Incast { senders: 32, receiver: None }, still);
    assert!(flows.iter().all(|flow| (flow.start.as_ps() - 500) % 100_000 == 0));
}

#[test]
fn jitter_moves_starts_but_not_pairs() {
    let round = || Round::Incast { senders: 5, receiver: None };
    let pairs = |jitter| -> BTreeSet<_> {
        let rounds = Rounds { period: Span::from_us(1), count: 1, jitter, ..ONCE };
        burst(9, round(), rounds).iter().map(|f| (f.src, f.dst)).collect()
    };
    assert_eq!(pairs(Span::ZERO), pairs(Span::from_ns(100)));
}

#[test]
fn no_rounds_are_no_flows() {
    let none = Rounds { count: 0, ..ONCE };
    assert!(burst(4, Round::AllToAll(Order::Ring), none).is_empty());
}
