//! Collective operations of parallel programs: what each node sends depends on what it received.
//!
//! Models: ring all-reduce (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009),
//! tree all-reduce (reduce to the root of a binary tree, then broadcast), the dispatch and combine
//! all-to-all of mixture-of-experts layers, and an all-to-all that keeps a bounded number of flows
//! open. Leaves out: the cost of adding numbers, except as a stated delay.

use kernel::{Bytes, Span, Time};

use super::Bound;
use super::burst::Order;
use super::gate::{Gate, GateBuilder, Step, Task};
use crate::{Class, NodeId};

/// What all collectives have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Collective {
    /// Nodes 0 to this, less one, take part; at least two.
    pub nodes: u32,
    /// Start of the first round.
    pub start: Time,
    /// How often it is done; a node begins the next round when it has finished this one.
    pub rounds: u64,
    /// Computation of a node between two rounds.
    pub compute: Span,
    /// Traffic class.
    pub class: Class,
}

impl Collective {
    fn task(&self, src: u32, dst: u32, size: Bytes) -> Task {
        Task {
            src: NodeId::new(src),
            dst: NodeId::new(dst),
            size,
            class: self.class,
            not_before: self.start,
            delay: Span::ZERO,
        }
    }

    /// Lists each round by `round`, which takes what each node waits for and returns the same for
    /// the round after it.
    fn repeat(
        &self,
        bound: Bound,
        mut round: impl FnMut(&mut GateBuilder, &[Vec<Step>]) -> Vec<Vec<Step>>,
    ) -> Gate {
        let mut list = GateBuilder::new();
        list.begin(bound);
        let mut free = vec![vec![]; self.nodes as usize];
        for _ in 0..self.rounds {
            let done = round(&mut list, &free);
            free = done.iter().map(|done| vec![list.meeting(self.compute, done)]).collect();
        }
        list.build()
    }

    /// Ring all-reduce of `size` bytes at each node: 2 (N - 1) steps in which every node passes one
    /// N-th of the data to the next. Each node sends 2 (N - 1) / N of the size in all (exactly,
    /// where N divides it; else parts differ by a byte).
    ///
    /// # Panics
    /// If there are fewer bytes than nodes.
    #[must_use]
    pub fn ring_all_reduce(&self, size: Bytes) -> Gate {
        let count = u64::from(self.nodes);
        assert!(size.get() >= count, "{size} in {count} parts");
        let part = |index: u64| {
            Bytes::new(size.get() / count + u64::from(index % count < size.get() % count))
        };
        self.repeat(Bound::AllReduce, |list, free| {
            let (mut received, mut all) = (free.to_vec(), vec![vec![]; self.nodes as usize]);
            for step in 0..2 * (count - 1) {
                // What a node passes on holds its own part of the sum, so it has to be free itself.
                let mut next = free.to_vec();
                for node in 0..self.nodes {
                    let to = (node + 1) % self.nodes;
                    let size = part(u64::from(node) + 2 * count - step);
                    let sent = list.flow(self.task(node, to, size), &received[node as usize]);
                    next[to as usize].push(sent);
                    all[to as usize].push(sent);
                }
                received = next;
            }
            all
        })
    }

    /// Tree all-reduce of `size` bytes at each node, in `chunks` parts that follow one another: up
    /// a binary tree (node i under (i - 1) / 2) once both children have arrived, then down again.
    /// 2 (N - 1) flows a chunk.
    ///
    /// # Panics
    /// If there are fewer bytes than chunks.
    #[must_use]
    pub fn tree_all_reduce(&self, size: Bytes, chunks: u64) -> Gate {
        assert!(chunks > 0 && size.get() >= chunks, "{size} in {chunks} chunks");
        self.repeat(Bound::AllReduce, |list, free| {
            let mut done = vec![vec![]; self.nodes as usize];
            for chunk in 0..chunks {
                let size = size.get() / chunks + u64::from(chunk < size.get() % chunks);
                for (node, arrived) in self.tree(list, free, Bytes::new(size)) {
                    done[node as usize].push(arrived);
                }
            }
            done
        })
    }

    /// One chunk up and down the tree; returns what completes it at each node.
    fn tree(&self, list: &mut GateBuilder, free: &[Vec<Step>], size: Bytes) -> Vec<(u32, Step)> {
        let mut waits = free.to_vec();
        // Children have higher numbers than their parents.
        for node in (1..self.nodes).rev() {
            let parent = (node - 1) / 2;
            let sent = list.flow(self.task(node, parent, size), &waits[node as usize]);
            waits[parent as usize].push(sent);
        }
        let mut arrived = vec![(0, list.meeting(Span::ZERO, &waits[0]))];
        for node in 1..self.nodes {
            let parent = (node - 1) / 2;
            let (_, ready) = arrived[parent as usize];
            arrived.push((node, list.flow(self.task(parent, node, size), &[ready])));
        }
        arrived
    }

    /// A layer of experts, one on each node: every node dispatches `size` bytes to every other;
    /// an expert that has received all computes for `expert` and sends as much back; a node's round
    /// ends when all has come back. 2 N (N - 1) flows.
    #[must_use]
    pub fn expert_all_to_all(&self, size: Bytes, expert: Span) -> Gate {
        self.repeat(Bound::AllToAll, |list, free| {
            let mut tokens = self.exchange(list, free, size);
            // A node's own tokens are there from the start of its round.
            tokens.iter_mut().zip(free).for_each(|(tokens, own)| tokens.extend(own));
            let computed: Vec<_> =
                tokens.iter().map(|tokens| vec![list.meeting(expert, tokens)]).collect();
            self.exchange(list, &computed, size)
        })
    }

    /// Every node sends `size` bytes to every other once it has what it waits for; returns what
    /// each receives.
    fn exchange(&self, list: &mut GateBuilder, free: &[Vec<Step>], size: Bytes) -> Vec<Vec<Step>> {
        let mut received = vec![vec![]; self.nodes as usize];
        for index in 0..u64::from(self.nodes) * u64::from(self.nodes - 1) {
            let (src, dst) = Order::Ring.pair(self.nodes, index);
            let sent = list.flow(self.task(src, dst, size), &free[src as usize]);
            received[dst as usize].push(sent);
        }
        received
    }

    /// All-to-all of `size` bytes a pair in which a node keeps `parallel` flows open: its next
    /// starts when the one that many before it has ended.
    ///
    /// # Panics
    /// If `parallel` is zero.
    #[must_use]
    pub fn all_to_all(&self, size: Bytes, order: &Order, parallel: u32) -> Gate {
        assert!(parallel > 0, "an all-to-all with no flow open");
        let pairs = u64::from(self.nodes) * u64::from(self.nodes - 1);
        self.repeat(Bound::AllToAll, |list, free| {
            let mut sent: Vec<Vec<Step>> = vec![vec![]; self.nodes as usize];
            let mut involved = vec![vec![]; self.nodes as usize];
            for index in 0..pairs {
                let (src, dst) = order.pair(self.nodes, index);
                let own = &sent[src as usize];
                let waits = match own.len().checked_sub(parallel as usize) {
                    Some(earlier) => vec![own[earlier]],
                    None => free[src as usize].clone(),
                };
                let flow = list.flow(self.task(src, dst, size), &waits);
                sent[src as usize].push(flow);
                involved[src as usize].push(flow);
                involved[dst as usize].push(flow);
            }
            involved
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::Workload;
    use super::super::testing::{Carried, play};
    use super::*;

    fn collective(nodes: u32, rounds: u64) -> Collective {
        Collective {
            nodes,
            start: Time::from_ps(77),
            rounds,
            compute: Span::from_ps(1_000),
            class: Class::default(),
        }
    }

    /// A network in which flows overtake one another.
    fn carry(nodes: u32, gate: Gate, seed: u64) -> Vec<Carried> {
        play(nodes, gate, Span::from_ps(10_000), seed)
    }

    fn sent(flows: &[Carried]) -> BTreeMap<u32, u64> {
        let mut sent = BTreeMap::new();
        for Carried { flow, .. } in flows {
            *sent.entry(flow.src.get()).or_insert(0) += flow.size.get();
        }
        sent
    }

    /// Plays an all-reduce by values: each node begins with its own bit; a flow carries what its
    /// sender knows of a part when it starts; returns what each node knows at the end.
    fn reduce(nodes: u32, flows: &[Carried], parts: impl Fn(usize) -> usize) -> Vec<Vec<u64>> {
        let mut order: Vec<(Time, bool, usize)> = vec![];
        for (index, carried) in flows.iter().enumerate() {
            // At one instant, ends come before starts.
            order.push((carried.end, false, index));
            order.push((carried.flow.start, true, index));
        }
        order.sort_unstable();
        let count = (0..flows.len()).map(&parts).max().unwrap() + 1;
        let mut known: Vec<Vec<u64>> = (0..nodes).map(|node| vec![1 << node; count]).collect();
        let mut carried = vec![0; flows.len()];
        for (_, starts, index) in order {
            let (flow, part) = (&flows[index].flow, parts(index));
            if starts {
                carried[index] = known[flow.src.index()][part];
            } else {
                known[flow.dst.index()][part] |= carried[index];
            }
        }
        known
    }

    proptest! {
        #[test]
        fn a_ring_all_reduce_sums_every_part_at_every_node(nodes in 2u32..12, seed: u64) {
            let size = u64::from(nodes) * 10;
            let gate = collective(nodes, 1).ring_all_reduce(Bytes::new(size));
            let flows = carry(nodes, gate, seed);
            prop_assert_eq!(flows.len() as u32, 2 * (nodes - 1) * nodes);
            let count = nodes as usize;
            // At step s node i passes on part i - s.
            let known = reduce(nodes, &flows, |index| (index % count + 2 * count - index / count) % count);
            prop_assert!(known.iter().flatten().all(|&bits| bits == (1 << nodes) - 1), "{:?}", known);
        }

        #[test]
        fn a_ring_all_reduce_sends_twice_the_data_less_two_parts(nodes in 2u32..20, extra in 0u64..50, rounds in 1u64..4) {
            let count = u64::from(nodes);
            let size = count * 7 + extra;
            let flows = carry(nodes, collective(nodes, rounds).ring_all_reduce(Bytes::new(size)), 1);
            for (&node, &bytes) in &sent(&flows) {
                let exact = rounds * 2 * (count - 1) * size / count;
                prop_assert!(bytes.abs_diff(exact) <= 2 * rounds, "node {}: {} of {}", node, bytes, exact);
                prop_assert!(extra % count != 0 || bytes == exact);
            }
            let all: u64 = sent(&flows).values().sum();
            prop_assert_eq!(all, rounds * 2 * (count - 1) * size);
        }

        /// What is passed on holds the own part of the sum, so nothing of a round leaves a node that has not
        /// received all of the round before and computed.
        #[test]
        fn no_node_of_a_ring_passes_on_before_it_is_free(nodes in 2u32..9, seed: u64) {
            let flows = carry(nodes, collective(nodes, 3).ring_all_reduce(Bytes::new(90)), seed);
            let rounds: Vec<&[Carried]> = flows.chunks((2 * (nodes - 1) * nodes) as usize).collect();
            for pair in rounds.windows(2) {
                for node in 0..nodes {
                    let to = |c: &&Carried| c.flow.dst.get() == node;
                    let last = pair[0].iter().filter(to).map(|c| c.end).max().unwrap();
                    let free = last + Span::from_ps(1_000);
                    let from = |c: &&Carried| c.flow.src.get() == node;
                    prop_assert!(pair[1].iter().filter(from).all(|c| c.flow.start >= free));
                }
            }
        }

        #[test]
        fn a_tree_all_reduce_gathers_all_at_the_root_and_brings_it_to_every_node(nodes in 2u32..20, chunks in 1u64..4, seed: u64) {
            let gate = collective(nodes, 1).tree_all_reduce(Bytes::new(100), chunks);
            let flows = carry(nodes, gate, seed);
            let per_chunk = 2 * (nodes as usize - 1);
            prop_assert_eq!(flows.len(), per_chunk * chunks as usize);
            let known = reduce(nodes, &flows, |index| index / per_chunk);
            prop_assert!(known.iter().flatten().all(|&bits| bits == (1 << nodes) - 1));
            let all: u64 = sent(&flows).values().sum();
            prop_assert_eq!(all, 2 * (u64::from(nodes) - 1) * 100);
        }

        #[test]
        fn experts_answer_when_all_tokens_are_there(nodes in 2u32..10, seed: u64, rounds in 1u64..3) {
            let expert = Span::from_ps(333);
            let collective = collective(nodes, rounds);
            let flows = carry(nodes, collective.expert_all_to_all(Bytes::new(64), expert), seed);
            let phase = (nodes * (nodes - 1)) as usize;
            prop_assert_eq!(flows.len(), 2 * phase * rounds as usize);
            let mut free = vec![Time::ZERO; nodes as usize];
            for round in flows.chunks(2 * phase) {
                let last = |flows: &[Carried], node: u32| {
                    flows.iter().filter(|c| c.flow.dst.get() == node).map(|c| c.end).max().unwrap()
                };
                for node in 0..nodes {
                    let from = |c: &&Carried| c.flow.src.get() == node;
                    let dispatch = free[node as usize].max(collective.start);
                    prop_assert!(round[..phase].iter().filter(from).all(|c| c.flow.start == dispatch));
                    let ready = last(&round[..phase], node).max(dispatch) + expert;
                    prop_assert!(round[phase..].iter().filter(from).all(|c| c.flow.start == ready));
                    free[node as usize] = last(&round[phase..], node) + collective.compute;
                }
            }
        }

        #[test]
        fn an_all_to_all_keeps_no_more_than_so_many_flows_open(nodes in 2u32..10, parallel in 1u32..5, seed: u64) {
            let gate = collective(nodes, 2).all_to_all(Bytes::new(50), &Order::Ring, parallel);
            let flows = carry(nodes, gate, seed);
            prop_assert_eq!(flows.len() as u32, 2 * nodes * (nodes - 1));
            for Carried { flow, .. } in &flows {
                let open = flows.iter().filter(|other| {
                    other.flow.src == flow.src
                        && other.flow.start <= flow.start
                        && other.end > flow.start
                });
                prop_assert!(open.count() <= parallel as usize);
            }
        }
    }

    #[test]
    fn each_round_begins_after_the_computation() {
        let flows = carry(4, collective(4, 3).ring_all_reduce(Bytes::new(40)), 3);
        assert_eq!(flows.len(), 3 * 24);
        assert!(flows[..4].iter().all(|c| c.flow.start == Time::from_ps(77)));
        for (round, first) in [(1, 24), (2, 48)] {
            for node in 0..4 {
                let start = flows[first + node].flow.start;
                // When node had received all of the round before: flows overtake one another.
                let round_before = flows[first - 24..first].iter();
                let to = |c: &&Carried| c.flow.dst.index() == node;
                let before = round_before.filter(to).map(|c| c.end).max().unwrap();
                assert_eq!(start, before + Span::from_ps(1_000), "round {round}, node {node}");
            }
        }
    }

    #[test]
    fn the_size_of_the_list_is_known_beforehand() {
        let gate = collective(512, 1).ring_all_reduce(Bytes::new(1 << 20));
        assert_eq!(gate.total(), Some(2 * 511 * 512));
        assert!(gate.is_reactive());
    }

    #[test]
    #[should_panic(expected = "3 B in 4 parts")]
    fn a_part_of_nothing_is_refused() {
        let _ = collective(4, 1).ring_all_reduce(Bytes::new(3));
    }
}
