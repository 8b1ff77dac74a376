//! Every small case by hand or by definition; draws against their law with four standard errors and
//! fixed seeds.

use proptest::prelude::*;

use super::*;

fn stream(seed: u64) -> Stream {
    Stream::new(seed, "test", 0)
}

#[track_caller]
fn check_permutes(map: &[u32]) {
    let mut sorted = map.to_vec();
    sorted.sort_unstable();
    assert!(sorted.iter().copied().eq(0..map.len() as u32), "{map:?}");
}

#[test]
fn the_classic_patterns_on_small_racks() {
    assert_eq!(bit_complement(8), [7, 6, 5, 4, 3, 2, 1, 0]);
    assert_eq!(bit_reverse(8), [0, 4, 2, 6, 1, 5, 3, 7]);
    assert_eq!(bit_shuffle(8), [0, 2, 4, 6, 1, 3, 5, 7]);
    assert_eq!(transpose(9), [0, 3, 6, 1, 4, 7, 2, 5, 8]);
    assert_eq!(tornado(&[8]), [3, 4, 5, 6, 7, 0, 1, 2]);
    assert_eq!(tornado(&[5]), [2, 3, 4, 0, 1]);
    assert_eq!(neighbour(&[4]), [1, 2, 3, 0]);
    // 4 x 2, first dimension fastest: tornado moves one in the first, none in the second.
    assert_eq!(tornado(&[4, 2]), [1, 2, 3, 0, 5, 6, 7, 4]);
    assert_eq!(neighbour(&[2, 2]), [3, 2, 1, 0]);
}

#[test]
fn the_classic_patterns_are_permutations_by_their_definition_on_bits() {
    for bits in 0..=10u32 {
        let nodes = 1u32 << bits;
        let text = |node: u32| -> Vec<bool> { (0..bits).map(|b| node >> b & 1 == 1).collect() };
        let (complement, reverse, shuffle) =
            (bit_complement(nodes), bit_reverse(nodes), bit_shuffle(nodes));
        for node in 0..nodes {
            let at = node as usize;
            let mut turned = text(node);
            turned.reverse();
            assert_eq!(text(reverse[at]), turned);
            let mut rotated = text(node);
            if bits > 0 {
                rotated.rotate_right(1);
            }
            assert_eq!(text(shuffle[at]), rotated);
            assert_eq!(text(complement[at]), text(node).iter().map(|b| !b).collect::<Vec<_>>());
            if bits.is_multiple_of(2) {
                let mut swapped = text(node);
                swapped.rotate_right(bits as usize / 2);
                assert_eq!(text(transpose(nodes)[at]), swapped);
            }
        }
        for map in [complement, reverse, shuffle, tornado(&[nodes]), neighbour(&[nodes])] {
            check_permutes(&map);
        }
    }
    check_permutes(&tornado(&[8, 8, 8]));
    check_permutes(&neighbour(&[3, 5, 7]));
}

#[test]
fn so_many_pairs_have_as_many_nodes_that_each_send_and_receive_once() {
    for nodes in 2..=9 {
        for pairs in 1..=nodes {
            let map = permutation_among(nodes, pairs, &mut stream(u64::from(nodes * 10 + pairs)));
            let senders: Vec<u32> = (0..nodes).filter(|&n| map[n as usize] != n).collect();
            let mut receivers: Vec<u32> = senders.iter().map(|&n| map[n as usize]).collect();
            receivers.sort_unstable();
            assert_eq!(senders.len(), pairs as usize, "{pairs} of {nodes}");
            assert_eq!(senders == receivers, pairs > 1, "{pairs} of {nodes}: {map:?}");
        }
    }
}

#[test]
fn every_derangement_is_equally_likely() {
    // Nine derangements of four; each count binomial, four standard deviations.
    let mut stream = stream(1);
    let mut counts = std::collections::BTreeMap::new();
    for _ in 0..9_000 {
        *counts.entry(permutation(4, &mut stream)).or_insert(0u32) += 1;
    }
    assert_eq!(counts.len(), 9);
    let deviation = (9_000.0f64 / 9.0 * 8.0 / 9.0).sqrt();
    assert!(counts.values().all(|&c| (f64::from(c) - 1_000.0).abs() < 4.0 * deviation));
}

proptest! {
    #[test]
    fn permutations_have_no_fixed_point(nodes in 2u32..600, seed: u64) {
        let map = permutation(nodes, &mut stream(seed));
        check_permutes(&map);
        prop_assert!((0..).zip(&map).all(|(node, &to)| node != to));
    }

    #[test]
    fn a_partial_permutation_uses_each_node_at_most_once_a_side(
        nodes in 2u32..200, share in 0.0f64..=1.0, seed: u64,
    ) {
        let senders = (share * f64::from(nodes)) as u32;
        let map = partial_permutation(nodes, senders, &mut stream(seed));
        let pairs: Vec<_> = (0..).zip(map).filter(|(src, dst)| src != dst).collect();
        prop_assert_eq!(pairs.len(), senders as usize);
        let receivers: std::collections::BTreeSet<_> = pairs.iter().map(|p| p.1).collect();
        prop_assert_eq!(receivers.len(), pairs.len());
        prop_assert!(receivers.iter().all(|&to| to < nodes));
    }

    #[test]
    fn no_pattern_draws_a_flow_to_itself_or_out_of_the_rack(
        nodes in 2u32..40, seed: u64, share in 0.0f64..=1.0, hot in prop::collection::btree_set(0u32..40, 1..8),
    ) {
        let mut hot: Vec<_> = hot.into_iter().filter(|&n| n < nodes).collect();
        if hot.is_empty() {
            hot.push(0);
        }
        let patterns = [
            Pattern::Uniform,
            Pattern::Fixed(permutation(nodes, &mut stream(seed))),
            Pattern::Fixed(neighbour(&[nodes])),
            Pattern::HotSpot { share, hot },
            Pattern::Pools(Pools::new(&[1, nodes - 1], &[vec![0.0, 1.0], vec![1.0, 0.0]])),
        ];
        for pattern in patterns {
            let mut pairs = Pairs::new(nodes, pattern, seed);
            let mut all = pairs.one_each();
            prop_assert_eq!(all.len(), nodes as usize);
            all.extend((0..100).map(|_| pairs.draw()));
            for (src, dst) in all {
                prop_assert!(src != dst && src.get() < nodes && dst.get() < nodes);
            }
        }
    }
}

/// Draws `count` pairs and returns how often each (source, destination) came.
fn matrix(nodes: u32, pattern: Pattern, count: u32) -> Vec<Vec<f64>> {
    let mut pairs = Pairs::new(nodes, pattern, 11);
    let mut matrix = vec![vec![0.0; nodes as usize]; nodes as usize];
    for _ in 0..count {
        let (src, dst) = pairs.draw();
        matrix[src.index()][dst.index()] += 1.0;
    }
    matrix
}

#[track_caller]
fn check_share(what: &str, found: f64, count: u32, share: f64) {
    let count = f64::from(count);
    let bound = 4.0 * (count * share * (1.0 - share)).sqrt();
    assert!((found - count * share).abs() <= bound, "{what}: {found}, expected {}", count * share);
}

#[test]
fn uniform_pairs_are_equally_likely() {
    let matrix = matrix(5, Pattern::Uniform, 200_000);
    for (src, row) in matrix.iter().enumerate() {
        for (dst, &count) in row.iter().enumerate() {
            let share = if src == dst { 0.0 } else { 1.0 / 20.0 };
            check_share("pair", count, 200_000, share);
        }
    }
}

#[test]
fn a_hot_spot_receives_its_share() {
    // Node 3 is hot: from the other seven it gets 30 %, itself it sends only to the rest.
    let matrix = matrix(8, Pattern::HotSpot { share: 0.3, hot: vec![3] }, 200_000);
    for (src, row) in matrix.iter().enumerate() {
        for (dst, &count) in row.iter().enumerate() {
            let share = match (src, dst) {
                _ if src == dst => 0.0,
                (3, _) => 1.0 / 7.0,
                (_, 3) => 0.3,
                _ => 0.7 / 6.0,
            };
            check_share("pair", count, 200_000, share / 8.0);
        }
    }
}

#[test]
fn pools_share_the_traffic_as_their_matrix_says() {
    let counts = [2, 3, 4];
    let shares = vec![vec![0.1, 0.4, 0.0], vec![0.2, 0.1, 0.1], vec![0.05, 0.0, 0.05]];
    let pools = Pools::new(&counts, &shares);
    let ranges: Vec<_> = (0..3).map(|pool| pools.nodes(pool)).collect();
    assert_eq!(ranges, [0..2, 2..5, 5..9]);
    let matrix = matrix(9, Pattern::Pools(pools), 200_000);
    for (from, row) in shares.iter().enumerate() {
        for (to, &share) in row.iter().enumerate() {
            let all = counts[from] * counts[to] - if from == to { counts[from] } else { 0 };
            for src in ranges[from].clone() {
                for dst in ranges[to].clone().filter(|&dst| dst != src) {
                    let count = matrix[src as usize][dst as usize];
                    check_share("pair", count, 200_000, share / f64::from(all));
                }
            }
        }
    }
}

#[test]
fn in_a_fixed_pattern_only_nodes_with_another_destination_send() {
    let mut pairs = Pairs::new(4, Pattern::Fixed(bit_reverse(4)), 1);
    let all = pairs.one_each();
    assert_eq!(all, [(NodeId::new(1), NodeId::new(2)), (NodeId::new(2), NodeId::new(1))]);
    assert!((0..100).all(|_| all.contains(&pairs.draw())));
}

#[test]
#[should_panic(expected = "nobody sends")]
fn a_pattern_in_which_nobody_sends_is_refused() {
    let _ = Pairs::new(2, Pattern::Fixed(tornado(&[2])), 1);
}
