//! Where jobs run: which node each rank of a job has.

use kernel::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::NodeId;

/// How a job that names no nodes gets some of those that no other job has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// The first of them, in order.
    #[default]
    Packed,
    /// As far from each other as they go: of F free nodes, rank r of n has number r F / n.
    Spread,
    /// Any, drawn by the seed, in any order.
    Random,
}

/// Which nodes a job asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// These, by rank.
    Nodes(Vec<NodeId>),
    /// So many of those that are free.
    Some(u32, Placement),
}

/// The nodes of each job, in a rack of `nodes`. Named ones are taken first; jobs that name none choose
/// in order.
///
/// # Errors
/// Which job finds too few nodes free, and how many.
pub fn place(wanted: &[Wanted], nodes: u32, seed: u64) -> Result<Vec<Vec<NodeId>>, (usize, usize)> {
    let mut is_free = vec![true; nodes as usize];
    for named in wanted {
        if let Wanted::Nodes(named) = named {
            named.iter().for_each(|node| is_free[node.get() as usize] = false);
        }
    }
    let mut placed = Vec::with_capacity(wanted.len());
    for (job, wanted) in (0u64..).zip(wanted) {
        let (count, placement) = match wanted {
            Wanted::Nodes(named) => {
                placed.push(named.clone());
                continue;
            }
            Wanted::Some(count, placement) => (*count as usize, placement),
        };
        let mut free: Vec<NodeId> =
            (0..nodes).filter(|&node| is_free[node as usize]).map(NodeId::new).collect();
        if free.len() < count {
            return Err((job as usize, free.len()));
        }
        if *placement == Placement::Random {
            Stream::new(seed, "workload/placement", job).shuffle(&mut free);
        }
        let number = |rank: usize| match placement {
            Placement::Spread => rank * free.len() / count,
            Placement::Packed | Placement::Random => rank,
        };
        let chosen: Vec<NodeId> = (0..count).map(|rank| free[number(rank)]).collect();
        chosen.iter().for_each(|node| is_free[node.get() as usize] = false);
        placed.push(chosen);
    }
    Ok(placed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(wanted: &[Wanted], nodes: u32) -> Vec<Vec<u32>> {
        let placed = place(wanted, nodes, 1).unwrap();
        placed.iter().map(|nodes| nodes.iter().map(|node| node.get()).collect()).collect()
    }

    fn named(nodes: &[u32]) -> Wanted {
        Wanted::Nodes(nodes.iter().copied().map(NodeId::new).collect())
    }

    #[test]
    fn jobs_take_what_others_have_left() {
        let packed = |count| Wanted::Some(count, Placement::Packed);
        let spread = |count| Wanted::Some(count, Placement::Spread);
        assert_eq!(placed(&[packed(3), packed(2)], 8), [vec![0, 1, 2], vec![3, 4]]);
        assert_eq!(placed(&[spread(4), packed(4)], 8), [vec![0, 2, 4, 6], vec![1, 3, 5, 7]]);
        assert_eq!(placed(&[spread(3)], 8), [[0, 2, 5]]);
        // Named nodes are nobody else's, whoever comes first.
        assert_eq!(placed(&[packed(2), named(&[3, 0])], 4), [vec![1, 2], vec![3, 0]]);
        assert_eq!(place(&[packed(2), packed(3)], 4, 1), Err((1, 2)));
    }

    #[test]
    fn random_places_are_distinct_and_those_of_the_seed() {
        let random = |count| Wanted::Some(count, Placement::Random);
        let both = [random(20), random(12)];
        let all: Vec<u32> = placed(&both, 32).concat();
        let mut sorted = all.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..32).collect::<Vec<u32>>());
        assert_ne!(all, sorted);
        assert_ne!(place(&both, 32, 1), place(&both, 32, 2));
    }
}
