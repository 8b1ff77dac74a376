use std::collections::BTreeMap;

use super::super::testing::{Carried, play};
use super::*;

const ALL: [Operation; 9] = [
    Operation::AllReduce,
    Operation::ReduceScatter,
    Operation::AllGather,
    Operation::AllToAll,
    Operation::Broadcast { root: 1 },
    Operation::Reduce { root: 1 },
    Operation::Gather { root: 1 },
    Operation::Scatter { root: 1 },
    Operation::Barrier,
];
const ALGORITHMS: [Algorithm; 4] =
    [Algorithm::Ring, Algorithm::HalvingDoubling, Algorithm::Direct, Algorithm::Tree];

/// The flows of an operation of `size` bytes a rank, among nodes that are not 0 to n - 1, and after
/// them one of a byte from each rank that begins when the rank is done.
fn carry(operation: Operation, algorithm: Algorithm, count: usize, size: u64) -> Vec<Carried> {
    let nodes: Vec<NodeId> = (0..count as u32).map(|rank| NodeId::new(2 * rank + 1)).collect();
    let group = Group { nodes: &nodes, algorithm, class: Class::default() };
    let mut list = GateBuilder::new();
    let begin = list.meeting(Span::ZERO, &[]);
    let sizes = vec![Bytes::new(size); count];
    let done = operation.add(&mut list, &group, &sizes, &vec![begin; count]);
    for (rank, step) in done.into_iter().enumerate() {
        group.flow(&mut list, (rank, (rank + 1) % count), Bytes::new(1), &[step]);
    }
    play(2 * count as u32, list.build(), Span::from_ps(1_000), 7)
}

/// Bytes that each rank sends, the flow at its end left out.
fn sent(flows: &[Carried], count: usize) -> Vec<u64> {
    let mut sent = BTreeMap::new();
    for Carried { flow, .. } in &flows[..flows.len() - count] {
        *sent.entry(flow.src.get() / 2).or_insert(0) += flow.size.get();
    }
    (0..count as u32).map(|rank| sent.get(&rank).copied().unwrap_or(0)).collect()
}

#[test]
fn there_are_as_many_flows_as_announced() {
    for operation in ALL {
        for algorithm in ALGORITHMS {
            for count in 2..=9 {
                if operation.fits(algorithm, count) {
                    let flows = carry(operation, algorithm, count, 1_000).len() - count;
                    let announced = operation.flows(algorithm, count);
                    assert_eq!(flows as u64, announced, "{operation:?} {algorithm:?} {count}");
                }
            }
        }
    }
}

/// Each node knows of itself at first; a flow carries what its sender knew when it began. A rank that
/// is done knows of all whose data it is to have.
#[test]
fn a_rank_is_done_when_it_can_have_what_it_is_to_have() {
    for operation in ALL {
        for algorithm in ALGORITHMS {
            for count in (2..=9).filter(|&count| operation.fits(algorithm, count)) {
                let flows = carry(operation, algorithm, count, 1_000);
                let knows = |rank: u32, at: Time| knowledge(&flows, rank, at);
                let everything = (1u32 << count) - 1;
                for done in &flows[flows.len() - count..] {
                    let (rank, at) = (done.flow.src.get() / 2, done.flow.start);
                    let needed = match operation {
                        Operation::Broadcast { .. } | Operation::Scatter { .. } => 0b10,
                        Operation::Reduce { .. } | Operation::Gather { .. } if rank != 1 => 0,
                        _ => everything,
                    };
                    let known = knows(rank, at);
                    let what = format!("{operation:?} {algorithm:?} {count}: rank {rank}");
                    assert_eq!(known & needed, needed, "{what} knows {known:b}");
                }
            }
        }
    }
}

/// Of whom `rank` knows by way of flows that ended by `at`, itself included.
fn knowledge(flows: &[Carried], rank: u32, at: Time) -> u32 {
    let mut ends: Vec<&Carried> = flows.iter().collect();
    ends.sort_by_key(|carried| carried.end);
    let mut known: BTreeMap<u32, Vec<(Time, u32)>> = BTreeMap::new();
    let of = |known: &BTreeMap<u32, Vec<(Time, u32)>>, rank: u32, at: Time| {
        let heard = known.get(&rank).into_iter().flatten();
        heard.filter(|(when, _)| *when <= at).fold(1 << rank, |all, (_, more)| all | more)
    };
    for Carried { flow, end } in ends {
        let brought = of(&known, flow.src.get() / 2, flow.start);
        known.entry(flow.dst.get() / 2).or_default().push((*end, brought));
    }
    of(&known, rank, at)
}

/// 2 (n - 1) / n of the data leaves each rank in the algorithms that are optimal in bandwidth, in
/// parts of S / n for the ring.
#[test]
fn an_all_reduce_sends_twice_what_is_not_a_ranks_own() {
    for algorithm in [Algorithm::Ring, Algorithm::Direct, Algorithm::HalvingDoubling] {
        for count in [2, 4, 8] {
            let size = 1_000 * count as u64;
            let flows = carry(Operation::AllReduce, algorithm, count, size);
            let each = 2 * 1_000 * (count as u64 - 1);
            assert_eq!(sent(&flows, count), vec![each; count], "{algorithm:?} {count}");
        }
    }
    let flows = carry(Operation::AllReduce, Algorithm::Ring, 5, 5_000);
    assert!(flows[..flows.len() - 5].iter().all(|carried| carried.flow.size.get() == 1_000));
}

/// Uneven parts: in a reduce-scatter a rank sends every part but its own, in an all-gather of those
/// every part but that of the rank after it.
#[test]
fn parts_go_where_they_belong() {
    for algorithm in ALGORITHMS {
        let flows = carry(Operation::ReduceScatter, algorithm, 4, 4_003);
        if algorithm != Algorithm::HalvingDoubling {
            let own = [1_001, 1_001, 1_001, 1_000].map(|own| 4_003 - own);
            assert_eq!(sent(&flows, 4), own, "{algorithm:?}");
        }
    }
    let flows = carry(Operation::AllReduce, Algorithm::Ring, 4, 4_003);
    let parts = [1_001, 1_001, 1_001, 1_000];
    let expected: Vec<u64> =
        (0..4).map(|rank| 2 * 4_003 - parts[rank] - parts[(rank + 1) % 4]).collect();
    assert_eq!(sent(&flows, 4), expected);
}

#[test]
fn what_a_rank_puts_in_is_what_sizes_count_from() {
    let each = |operation, algorithm| sent(&carry(operation, algorithm, 4, 4_000), 4);
    assert_eq!(each(Operation::AllGather, Algorithm::Ring), [12_000; 4]);
    assert_eq!(each(Operation::AllGather, Algorithm::HalvingDoubling), [12_000; 4]);
    assert_eq!(each(Operation::ReduceScatter, Algorithm::Ring), [3_000; 4]);
    assert_eq!(each(Operation::AllToAll, Algorithm::Ring), [3_000; 4]);
    assert_eq!(each(Operation::Gather { root: 1 }, Algorithm::Ring), [4_000, 0, 4_000, 4_000]);
    assert_eq!(each(Operation::Scatter { root: 1 }, Algorithm::Ring), [0, 3_000, 0, 0]);
    assert_eq!(each(Operation::Broadcast { root: 1 }, Algorithm::Direct), [0, 12_000, 0, 0]);
    // A barrier, and data of nothing, are messages of a byte.
    assert_eq!(each(Operation::Barrier, Algorithm::Ring), [6; 4]);
    assert_eq!(sent(&carry(Operation::AllReduce, Algorithm::Ring, 3, 0), 3), [4; 3]);
}

#[test]
fn halving_and_doubling_takes_log_n_exchanges_of_half_as_much_each() {
    let flows = carry(Operation::ReduceScatter, Algorithm::HalvingDoubling, 8, 8_000);
    let of_rank_0: Vec<(u32, u64)> = flows[..flows.len() - 8]
        .iter()
        .filter(|carried| carried.flow.src.get() / 2 == 0)
        .map(|carried| (carried.flow.dst.get() / 2, carried.flow.size.get()))
        .collect();
    assert_eq!(of_rank_0, [(4, 4_000), (2, 2_000), (1, 1_000)]);
    assert!(!Operation::AllReduce.fits(Algorithm::HalvingDoubling, 6));
    assert!(Operation::AllToAll.fits(Algorithm::HalvingDoubling, 6));
}

#[test]
fn alone_a_rank_has_nothing_to_send() {
    let nodes = [NodeId::new(3)];
    for algorithm in ALGORITHMS {
        let group = Group { nodes: &nodes, algorithm, class: Class::default() };
        let mut list = GateBuilder::new();
        let begin = list.meeting(Span::ZERO, &[]);
        let done = Operation::AllReduce.add(&mut list, &group, &[Bytes::new(9)], &[begin]);
        assert_eq!((done, Operation::AllReduce.flows(algorithm, 1)), (vec![begin], 0));
    }
}
