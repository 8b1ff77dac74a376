use kernel::Time;

use super::super::Workload;
use super::super::jobs::{Job, Jobs};
use super::super::testing::play;
use super::super::{Bound, JobState};
use super::*;

fn node(id: u64, after: &[u64], work: Work) -> Node {
    Node { id, after: after.to_vec(), work }
}

fn compute(id: u64, after: &[u64], us: u64) -> Node {
    node(id, after, Work::Compute(Span::from_us(us)))
}

fn collective(id: u64, after: &[u64], operation: Operation, size: u64) -> Node {
    node(id, after, Work::Collective { operation, group: 0, size: Bytes::new(size) })
}

fn execution(ranks: Vec<Vec<Node>>) -> Execution {
    let all = (0..ranks.len() as u32).collect();
    let groups = vec![("all".into(), all)];
    Execution { ranks, groups, algorithm: Algorithm::Ring, class: Class::default() }
}

/// When it is over in a network that carries any flow in a microsecond.
fn end(execution: &Execution, start: Span) -> Time {
    state(execution, start).end.expect("all has ended")
}

/// The same, with all that is known of it.
fn state(execution: &Execution, start: Span) -> JobState {
    let work = Box::new(execution.gate().unwrap());
    let nodes = (0..execution.ranks.len() as u32).map(NodeId::new).collect();
    let mut jobs = Jobs::new(vec![Job { name: "it".into(), nodes, start, work }]);
    let mut flying = std::collections::VecDeque::new();
    loop {
        let next = jobs.next_start();
        match flying.front().copied() {
            Some((end, id)) if next.is_none_or(|start| end <= start) => {
                flying.pop_front();
                jobs.ended(id, end);
            }
            _ if next.is_some() => {
                let flow = jobs.next_flow().unwrap();
                flying.push_back((flow.start + Span::from_us(1), flow.id));
            }
            _ => break,
        }
    }
    let state = jobs.jobs().remove(0);
    let sum: Span = state.bounds.iter().map(|(_, span)| *span).sum();
    assert_eq!(sum, state.end.expect("all has ended") - state.start, "{:?}", state.bounds);
    state
}

#[track_caller]
fn check_bounds(execution: &Execution, expected: &[(Bound, u64)]) {
    let found = state(execution, Span::from_us(3)).bounds;
    let expected: Vec<_> = expected.iter().map(|&(bound, us)| (bound, Span::from_us(us))).collect();
    assert_eq!(found, expected);
}

#[test]
fn what_bounds_a_job_is_its_longest_chain() {
    let send =
        |id, after: &[u64]| node(id, after, Work::Send { to: 1, tag: 0, size: Bytes::new(9) });
    let receive = |id, after: &[u64]| node(id, after, Work::Receive { from: 0, tag: 0 });
    // A millisecond, a message, and 200 us after it; what rank 1 does meanwhile is over before.
    let ranks = vec![
        vec![compute(0, &[], 1_000), send(1, &[0])],
        vec![compute(0, &[], 900), receive(1, &[0]), compute(2, &[1], 200)],
    ];
    check_bounds(&execution(ranks), &[(Bound::Compute, 1_200), (Bound::Transfer, 1)]);
    // Rank 1 is the last, and the message has long been there: it bounds nothing.
    let ranks = vec![
        vec![compute(0, &[], 1_000), send(1, &[0])],
        vec![compute(0, &[], 1_500), receive(1, &[0]), compute(2, &[1], 200)],
    ];
    check_bounds(&execution(ranks), &[(Bound::Compute, 1_700), (Bound::Transfer, 0)]);
    // An all-reduce among four in 6 steps behind the last of its ranks, then an all-to-all at once.
    let rank = |rank: u64| {
        vec![
            compute(0, &[], 10 * (rank + 1)),
            collective(1, &[0], Operation::AllReduce, 400),
            collective(2, &[1], Operation::AllToAll, 400),
        ]
    };
    let expected = [(Bound::Compute, 40), (Bound::AllReduce, 6), (Bound::AllToAll, 1)];
    check_bounds(&execution((0..4).map(rank).collect()), &expected);
}

#[test]
fn a_chain_of_computations_takes_their_sum_and_what_waits_for_none_overlaps() {
    let chain = vec![compute(1, &[], 5), compute(2, &[1], 7), compute(9, &[2], 11)];
    assert_eq!(end(&execution(vec![chain]), Span::ZERO), Time::from_ps(23_000_000));
    // Listed before what it waits for, and from a later start.
    let fork = vec![compute(3, &[1, 2], 1), compute(1, &[], 5), compute(2, &[], 7)];
    assert_eq!(end(&execution(vec![fork]), Span::from_us(4)), Time::from_ps(12_000_000));
}

#[test]
fn a_message_leaves_when_it_is_due_and_is_over_at_both_ends_when_it_arrives() {
    let send =
        |id, after: &[u64], tag| node(id, after, Work::Send { to: 1, tag, size: Bytes::new(9) });
    let receive = |id, after: &[u64], tag| node(id, after, Work::Receive { from: 0, tag });
    let ranks = vec![
        vec![compute(0, &[], 10), send(1, &[0], 5), compute(2, &[1], 100)],
        vec![compute(0, &[], 3), receive(1, &[0], 5), compute(2, &[1], 200)],
    ];
    assert_eq!(end(&execution(ranks), Span::ZERO), Time::from_ps(211_000_000));
    // One that arrives before it is waited for; the second of a tag meets the second.
    let ranks = vec![
        vec![send(1, &[], 5), compute(2, &[], 50), send(3, &[2], 5)],
        vec![compute(0, &[], 20), receive(1, &[0], 5), receive(2, &[], 5), compute(3, &[1], 7)],
    ];
    assert_eq!(end(&execution(ranks), Span::ZERO), Time::from_ps(51_000_000));
}

#[test]
fn an_all_reduce_begins_at_each_rank_when_that_is_ready() {
    for count in 2..=6u64 {
        // In step k every rank waits for the one before: 2 (n - 1) steps of a flow each.
        let rank = |_| vec![compute(0, &[], 4), collective(1, &[0], Operation::AllReduce, 600)];
        let all = execution((0..count).map(rank).collect());
        let expected = Time::from_ps((4 + 2 * (count - 1)) * 1_000_000);
        assert_eq!(end(&all, Span::ZERO), expected);
        // The last rank comes late: the ring begins anew from there.
        let late = |rank| {
            let us = if rank == count - 1 { 50 } else { 4 };
            vec![compute(0, &[], us), collective(1, &[0], Operation::AllReduce, 600)]
        };
        let all = execution((0..count).map(late).collect());
        assert_eq!(end(&all, Span::ZERO), Time::from_ps((50 + 2 * (count - 1)) * 1_000_000));
    }
}

#[test]
fn flows_are_carried_by_any_network_in_any_order() {
    let rank = |rank: u32| {
        vec![
            collective(0, &[], Operation::AllGather, 50),
            compute(1, &[0], 1),
            node(2, &[1], Work::Send { to: (rank + 1) % 5, tag: 0, size: Bytes::ZERO }),
            node(3, &[1], Work::Receive { from: (rank + 4) % 5, tag: 0 }),
            collective(4, &[2, 3], Operation::AllToAll, 500),
        ]
    };
    let all = execution((0..5).map(rank).collect());
    for seed in 0..20 {
        let flows = play(5, all.gate().unwrap(), Span::from_us(3), seed);
        assert_eq!(flows.len(), 20 + 5 + 20);
    }
}

#[track_caller]
fn check_fault(execution: &Execution, rank: u32, node: Option<u64>, message: &str) {
    let fault = execution.gate().unwrap_err();
    assert_eq!((fault.rank, fault.node, fault.message.as_str()), (rank, node, message));
}

#[test]
fn what_would_never_end_is_refused_with_its_place() {
    let mut all = execution(vec![vec![compute(0, &[7], 1)], vec![]]);
    check_fault(&all, 0, Some(0), "waits for node 7, which the rank does not have");
    all.ranks[0] = vec![compute(4, &[], 1), compute(4, &[], 1)];
    check_fault(&all, 0, Some(4), "there are two nodes of this number");
    all.ranks[0] = vec![compute(0, &[], 1), compute(1, &[2], 1), compute(2, &[1], 1)];
    assert_eq!(all.gate().unwrap_err().message, "waits, by way of others, for itself");
    all.ranks[0] = vec![node(3, &[], Work::Receive { from: 1, tag: 2 })];
    let message = "waits for message 0 of rank 1 with tag 2, and rank 1 sends 0 of these: it would \
                   wait for ever";
    check_fault(&all, 0, Some(3), message);
    all.ranks[0] = vec![node(3, &[], Work::Send { to: 2, tag: 2, size: Bytes::new(1) })];
    check_fault(&all, 0, Some(3), "names rank 2; the trace has ranks 0 to 1");
    all.ranks[0] = vec![collective(0, &[], Operation::AllReduce, 5)];
    let message = "rank 0 takes part in 1 operations of group \"all\" and rank 1 in 0: those that are \
                   missing at one never end at the other";
    check_fault(&all, 1, None, message);
    all.ranks[1] = vec![collective(8, &[], Operation::AllReduce, 6)];
    let message = "operation 0 of group \"all\" is AllReduce of 6 B here, and AllReduce of 5 B at node 0 \
                   of rank 0: ranks of a group do the same in the same order";
    check_fault(&all, 1, Some(8), message);
    // Across ranks: each waits for the other's message before it sends.
    let crossed = |to: u32| {
        vec![
            node(0, &[1], Work::Send { to, tag: 0, size: Bytes::new(1) }),
            node(1, &[], Work::Receive { from: to, tag: 0 }),
        ]
    };
    let all = execution(vec![crossed(1), crossed(0)]);
    assert_eq!(all.gate().unwrap_err().message, "waits, by way of others, for itself");
}

#[test]
fn what_takes_too_long_or_too_much_is_refused() {
    let day = 24 * 3_600 * 1_000_000;
    let long = execution(vec![vec![compute(0, &[], 20 * day), compute(1, &[0], 20 * day)]]);
    check_fault(
        &long,
        0,
        Some(1),
        "computations up to here take more than 30 days, when a run ends",
    );
    let many = |_| (0..250).map(|id| collective(id, &[], Operation::AllToAll, 1)).collect();
    let many = execution((0..128).map(many).collect());
    let fault = many.gate().unwrap_err();
    assert!(fault.message.contains("at most 4000000 fit in one list"), "{}", fault.message);
}

#[test]
fn jobs_have_nodes_and_numbers_of_their_own_alone_and_together() {
    let rank = |_| vec![collective(0, &[], Operation::AllReduce, 600), compute(1, &[0], 30)];
    let work = || Box::new(execution((0..3).map(rank).collect()).gate().unwrap());
    let nodes = |first: u32| (0..3).map(|rank| NodeId::new(first + 2 * rank)).collect();
    let jobs = || {
        Jobs::new(vec![
            Job { name: "a".into(), nodes: nodes(0), start: Span::ZERO, work: work() },
            Job { name: "b".into(), nodes: nodes(1), start: Span::from_us(9), work: work() },
        ])
    };
    let flows = play(6, jobs(), Span::from_us(1), 3);
    assert_eq!(flows.len(), 24);
    for (at, carried) in flows.iter().enumerate() {
        assert_eq!(carried.flow.src.get() % 2, u32::from(at >= 12), "flow {at}");
        assert!(at < 12 || carried.flow.start >= Time::from_ps(9_000_000), "flow {at}");
    }
    let alone = |index: usize| {
        let mut jobs = jobs().alone(index);
        let mut last = Time::ZERO;
        let mut numbers = vec![];
        while let Some(flow) = jobs.next_flow() {
            last = flow.start + Span::from_us(1);
            numbers.push(flow.id.get());
            jobs.ended(flow.id, last);
        }
        let states = jobs.jobs();
        assert_eq!((states.len(), states[0].flows, states[0].bytes.get()), (1, 12, 2_400));
        assert_eq!(states[0].end, Some(last + Span::from_us(30)));
        numbers.sort_unstable();
        (states[0].name.clone(), numbers)
    };
    assert_eq!(alone(0), ("a".into(), (0..12).collect()));
    assert_eq!(alone(1), ("b".into(), (12..24).collect()));
}
