//! One collective operation among any nodes, as flows that wait for one another.
//!
//! Models: the algorithms that communication libraries choose from: ring (Patarasuk and Yuan,
//! "Bandwidth optimal all-reduce algorithms", 2009), recursive halving and doubling (Thakur,
//! Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005), a
//! binary tree, and direct exchange.
//!
//! The size of an operation is what each rank puts in, as in execution traces: an all-gather of S
//! bytes among n ranks leaves n S at each, a reduce-scatter S / n. No message is smaller than a byte.
//!
//! Leaves out: the cost of adding numbers; channels, chunks and the hierarchy of a machine.

use kernel::{Bytes, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Bound;
use super::gate::{GateBuilder, Step, Task};
use crate::{Class, NodeId};

/// What an operation does. Roots are places in the list of nodes that take part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Every node ends with the sum of all.
    AllReduce,
    /// Every node ends with its part of the sum.
    ReduceScatter,
    /// Every node ends with what all had.
    AllGather,
    /// Every node sends each its part.
    AllToAll,
    /// The root's data goes to all.
    Broadcast {
        /// Who has the data.
        root: usize,
    },
    /// The sum goes to the root.
    Reduce {
        /// Who gets the sum.
        root: usize,
    },
    /// What all have goes to the root.
    Gather {
        /// Who gets it.
        root: usize,
    },
    /// The root's data goes to all, in parts.
    Scatter {
        /// Who has the data.
        root: usize,
    },
    /// Nobody goes on before all have come: an all-reduce of messages of one byte.
    Barrier,
}

/// How an operation is carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema, Hash)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// Parts go round a ring, in n - 1 steps for a reduce-scatter or an all-gather and twice as many
    /// for an all-reduce. Others: as tree.
    #[default]
    Ring,
    /// Recursive halving and doubling: log2 n exchanges with partners at 1/2, 1/4, ... of the ranks;
    /// for numbers of ranks that are powers of two. Others: as tree.
    HalvingDoubling,
    /// Every rank sends each other its part at once. Broadcast and reduce: the root with each.
    Direct,
    /// All-reduce, broadcast and reduce along a binary tree by rank. Others: as ring.
    Tree,
}

/// The nodes that carry out operations together.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// By rank in the group; each once.
    pub nodes: &'a [NodeId],
    /// How.
    pub algorithm: Algorithm,
    /// Traffic class of all flows.
    pub class: Class,
}

/// What each rank waits for, and then what completes it at each rank.
type Steps = Vec<Step>;

impl Operation {
    /// How many flows it takes among `count` nodes.
    #[must_use]
    pub fn flows(self, algorithm: Algorithm, count: usize) -> u64 {
        let n = count as u64;
        let others = n.saturating_sub(1);
        let rounds = u64::from(n.max(1).ilog2());
        let half = match algorithm {
            Algorithm::HalvingDoubling => n * rounds,
            _ => n * others,
        };
        match self {
            Self::AllReduce | Self::Barrier if algorithm == Algorithm::Tree => 2 * others,
            Self::AllReduce | Self::Barrier => 2 * half,
            Self::ReduceScatter | Self::AllGather => half,
            Self::AllToAll => n * others,
            Self::Broadcast { .. } | Self::Reduce { .. } => others,
            Self::Gather { .. } | Self::Scatter { .. } => others,
        }
    }

    /// Whether `algorithm` carries it out among `count` nodes.
    #[must_use]
    pub fn fits(self, algorithm: Algorithm, count: usize) -> bool {
        let halves =
            matches!(self, Self::AllReduce | Self::ReduceScatter | Self::AllGather | Self::Barrier);
        algorithm != Algorithm::HalvingDoubling || !halves || count.is_power_of_two()
    }

    /// Adds it to `list`: rank r of the group, which puts in `sizes[r]`, begins once `ready[r]` has
    /// happened. Returns what completes it at each rank.
    ///
    /// # Panics
    /// If there are not as many sizes and steps as nodes, or it does not [fit](Operation::fits).
    pub fn add(
        self,
        list: &mut GateBuilder,
        group: &Group<'_>,
        sizes: &[Bytes],
        ready: &[Step],
    ) -> Steps {
        let count = group.nodes.len();
        assert_eq!((count, count), (sizes.len(), ready.len()), "nodes, sizes and steps");
        assert!(self.fits(group.algorithm, count), "{self:?} among {count} nodes");
        if count < 2 {
            return ready.to_vec();
        }
        let before = list.begin(self.bound());
        let done = self.steps(list, group, sizes, ready);
        list.begin(before);
        done
    }

    /// What its flows are part of.
    const fn bound(self) -> Bound {
        match self {
            Self::AllReduce => Bound::AllReduce,
            Self::ReduceScatter => Bound::ReduceScatter,
            Self::AllGather => Bound::AllGather,
            Self::AllToAll => Bound::AllToAll,
            Self::Broadcast { .. } => Bound::Broadcast,
            Self::Reduce { .. } => Bound::Reduce,
            Self::Gather { .. } => Bound::Gather,
            Self::Scatter { .. } => Bound::Scatter,
            Self::Barrier => Bound::Barrier,
        }
    }

    /// As [`Operation::add`], among two nodes or more.
    fn steps(
        self,
        list: &mut GateBuilder,
        group: &Group<'_>,
        sizes: &[Bytes],
        ready: &[Step],
    ) -> Steps {
        let (count, size) = (group.nodes.len(), sizes[0]);
        match self {
            Self::AllReduce => group.all_reduce(list, size, ready),
            Self::Barrier => group.all_reduce(list, Bytes::ZERO, ready),
            Self::ReduceScatter => group.reduce_scatter(list, &parts(size, count), ready),
            Self::AllGather => group.all_gather(list, &vec![size; count], ready),
            Self::AllToAll => {
                let own: Vec<_> = sizes.iter().map(|&size| parts(size, count)).collect();
                group.exchange(list, |src, dst| own[src][dst], ready)
            }
            Self::Broadcast { root } => group.broadcast(list, root, size, ready),
            Self::Reduce { root } => group.reduce(list, root, size, ready),
            Self::Gather { root } => {
                let mut waits = vec![ready[root]];
                let mut done = ready.to_vec();
                for rank in (0..count).filter(|&rank| rank != root) {
                    done[rank] = group.flow(list, (rank, root), sizes[rank], &[ready[rank]]);
                    waits.push(done[rank]);
                }
                done[root] = list.meeting(Span::ZERO, &waits);
                done
            }
            Self::Scatter { root } => {
                let parts = parts(sizes[root], count);
                group.send_to_all(list, root, |rank| parts[rank], ready)
            }
        }
    }
}

/// `size` in as many parts, which differ by a byte at most; each at least one.
fn parts(size: Bytes, count: usize) -> Vec<Bytes> {
    let (size, count) = (size.get(), count as u64);
    (0..count).map(|part| Bytes::new(size / count + u64::from(part < size % count))).collect()
}

impl Group<'_> {
    fn flow(
        &self,
        list: &mut GateBuilder,
        (src, dst): (usize, usize),
        size: Bytes,
        after: &[Step],
    ) -> Step {
        let task = Task {
            src: self.nodes[src],
            dst: self.nodes[dst],
            // A message without data crosses the network all the same.
            size: size.max(Bytes::new(1)),
            class: self.class,
            not_before: Time::ZERO,
            delay: Span::ZERO,
        };
        list.flow(task, after)
    }

    fn all_reduce(&self, list: &mut GateBuilder, size: Bytes, ready: &[Step]) -> Steps {
        if self.algorithm == Algorithm::Tree {
            let reduced = self.reduce(list, 0, size, ready);
            let mut waits = ready.to_vec();
            waits[0] = reduced[0];
            return self.broadcast(list, 0, size, &waits);
        }
        let parts = parts(size, self.nodes.len());
        let scattered = self.reduce_scatter(list, &parts, ready);
        // Rank r has part r of the sum.
        self.all_gather(list, &parts, &scattered)
    }

    /// Leaves part r of the sum at rank r.
    fn reduce_scatter(&self, list: &mut GateBuilder, parts: &[Bytes], ready: &[Step]) -> Steps {
        let count = parts.len();
        match self.algorithm {
            // In step k rank r passes on the part that ends k + 1 places behind it.
            Algorithm::Ring | Algorithm::Tree => {
                self.ring(list, ready, |rank, step| parts[(rank + 2 * count - 1 - step) % count])
            }
            Algorithm::Direct => self.exchange(list, |_, dst| parts[dst], ready),
            Algorithm::HalvingDoubling => {
                let mut distance = count;
                let halves = std::iter::from_fn(|| {
                    distance /= 2;
                    (distance > 0).then_some(distance)
                });
                let halves: Vec<usize> = halves.collect();
                self.doubling(list, ready, &halves, |_, partner, distance| {
                    block(parts, partner, distance)
                })
            }
        }
    }

    /// Brings the part of each rank to all.
    fn all_gather(&self, list: &mut GateBuilder, parts: &[Bytes], ready: &[Step]) -> Steps {
        let count = parts.len();
        match self.algorithm {
            // In step k rank r passes on the part of the rank k places behind it.
            Algorithm::Ring | Algorithm::Tree => {
                self.ring(list, ready, |rank, step| parts[(rank + count - step) % count])
            }
            Algorithm::Direct => self.exchange(list, |src, _| parts[src], ready),
            Algorithm::HalvingDoubling => {
                let doubles: Vec<usize> = (0..count.ilog2()).map(|power| 1 << power).collect();
                self.doubling(list, ready, &doubles, |rank, _, distance| {
                    block(parts, rank, distance)
                })
            }
        }
    }

    /// n - 1 steps in which each rank sends the next what `size` says of it and the step, once it is
    /// ready and has what was sent to it in the step before.
    fn ring(
        &self,
        list: &mut GateBuilder,
        ready: &[Step],
        size: impl Fn(usize, usize) -> Bytes,
    ) -> Steps {
        let count = self.nodes.len();
        let mut waits: Vec<Vec<Step>> = ready.iter().map(|&step| vec![step]).collect();
        let mut involved = waits.clone();
        for step in 0..count - 1 {
            let mut next = waits.clone();
            for (rank, waits) in waits.iter().enumerate() {
                let to = (rank + 1) % count;
                let sent = self.flow(list, (rank, to), size(rank, step), waits);
                next[to] = vec![ready[to], sent];
                involved[to].push(sent);
            }
            waits = next;
        }
        involved.iter().map(|steps| list.meeting(Span::ZERO, steps)).collect()
    }

    /// Exchanges with the partners at these distances, one after the other.
    fn doubling(
        &self,
        list: &mut GateBuilder,
        ready: &[Step],
        distances: &[usize],
        size: impl Fn(usize, usize, usize) -> Bytes,
    ) -> Steps {
        let mut done = ready.to_vec();
        for &distance in distances {
            let mut next = done.clone();
            for rank in 0..done.len() {
                let partner = rank ^ distance;
                let bytes = size(rank, partner, distance);
                let sent = self.flow(list, (rank, partner), bytes, &[done[rank]]);
                next[partner] = list.meeting(Span::ZERO, &[done[partner], sent]);
            }
            done = next;
        }
        done
    }

    /// Every rank sends each other its part, the next rank first.
    fn exchange(
        &self,
        list: &mut GateBuilder,
        size: impl Fn(usize, usize) -> Bytes,
        ready: &[Step],
    ) -> Steps {
        let count = self.nodes.len();
        let mut involved: Vec<Vec<Step>> = ready.iter().map(|&step| vec![step]).collect();
        for hop in 1..count {
            for (src, &ready) in ready.iter().enumerate() {
                let dst = (src + hop) % count;
                let sent = self.flow(list, (src, dst), size(src, dst), &[ready]);
                involved[dst].push(sent);
            }
        }
        involved.iter().map(|steps| list.meeting(Span::ZERO, steps)).collect()
    }

    fn send_to_all(
        &self,
        list: &mut GateBuilder,
        root: usize,
        size: impl Fn(usize) -> Bytes,
        ready: &[Step],
    ) -> Steps {
        let mut done = ready.to_vec();
        for rank in (0..ready.len()).filter(|&rank| rank != root) {
            let sent = self.flow(list, (root, rank), size(rank), &[ready[root]]);
            done[rank] = list.meeting(Span::ZERO, &[ready[rank], sent]);
        }
        done
    }

    /// Down a binary tree whose ranks count from the root.
    fn broadcast(&self, list: &mut GateBuilder, root: usize, size: Bytes, ready: &[Step]) -> Steps {
        if self.algorithm == Algorithm::Direct {
            return self.send_to_all(list, root, |_| size, ready);
        }
        let (count, mut done) = (ready.len(), ready.to_vec());
        let rank = |place: usize| (place + root) % count;
        for place in 1..count {
            let (parent, child) = (rank((place - 1) / 2), rank(place));
            let sent = self.flow(list, (parent, child), size, &[done[parent]]);
            done[child] = list.meeting(Span::ZERO, &[ready[child], sent]);
        }
        done
    }

    /// Up a binary tree whose ranks count from the root. A rank is done once it has sent.
    fn reduce(&self, list: &mut GateBuilder, root: usize, size: Bytes, ready: &[Step]) -> Steps {
        let count = ready.len();
        let rank = |place: usize| (place + root) % count;
        let is_direct = self.algorithm == Algorithm::Direct;
        let mut waits: Vec<Vec<Step>> = ready.iter().map(|&step| vec![step]).collect();
        let mut done = ready.to_vec();
        for place in (1..count).rev() {
            let (parent, child) = (if is_direct { 0 } else { (place - 1) / 2 }, rank(place));
            done[child] = self.flow(list, (child, rank(parent)), size, &waits[child]);
            waits[rank(parent)].push(done[child]);
        }
        done[root] = list.meeting(Span::ZERO, &waits[root]);
        done
    }
}

/// All parts of the aligned block of `width` ranks in which `rank` is.
fn block(parts: &[Bytes], rank: usize, width: usize) -> Bytes {
    let first = rank / width * width;
    Bytes::new(parts[first..first + width].iter().map(|part| part.get()).sum())
}

#[cfg(test)]
#[path = "operation_tests.rs"]
mod tests;
