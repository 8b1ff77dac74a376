//! The `pattern` table: who sends to whom.

use std::collections::BTreeSet;

use kernel::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::WorkloadContext;
use super::problems::Problems;
use crate::workload::patterns::{self, Pattern, Pools};

/// Who sends to whom.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PatternConfig {
    /// Source uniform over the nodes, destination uniform over the others.
    Uniform(NoKeys),
    /// One random derangement: every node sends to one other and receives from one.
    Permutation(PermutationConfig),
    /// A share of the nodes each send to a distinct node (R2C2 §5.2).
    PartialPermutation(PartialPermutationConfig),
    /// To the node whose number has all bits inverted; a power of two of nodes.
    BitComplement(NoKeys),
    /// To the node whose number has its bits reversed; a power of two of nodes.
    BitReverse(NoKeys),
    /// To the node whose number has its bits rotated left by one; a power of two of nodes.
    BitShuffle(NoKeys),
    /// Node (x, y) of a square to (y, x); a square number of nodes.
    Transpose(NoKeys),
    /// Almost half-way round in each dimension: place d of k to d + ceil(k / 2) - 1.
    Tornado(GridConfig),
    /// The next place in each dimension.
    Neighbour(GridConfig),
    /// A share of the flows to a few hot nodes, the rest uniform over the others.
    HotSpot(HotSpotConfig),
    /// Given nodes to one: incast that lasts.
    Gather(GatherConfig),
    /// Pools of compute, memory and storage nodes with skewed traffic between them (Shoal §7.4).
    Pools(PoolsConfig),
}

/// A pattern without keys of its own.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoKeys {}

/// A random derangement.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PermutationConfig {
    /// How many flows, among as many nodes drawn at random, each of which sends one and receives one
    /// (Shoal §7.2, Fig. 12); a single flow has a sender and a receiver. Default: as many as nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairs: Option<u32>,
    /// Seed of the permutation alone. Default: the run's seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// A part of a random derangement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartialPermutationConfig {
    /// Share of the nodes that send. Above 0, at most 1. No default.
    pub share: f64,
    /// Seed of the permutation alone. Default: the run's seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// The nodes as a grid.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GridConfig {
    /// Size of each dimension, the one in which node numbers count fastest first. The product is the
    /// number of nodes. Default: one dimension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<u32>>,
}

/// A hot spot.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HotSpotConfig {
    /// Share of the flows that go to the hot nodes. From 0 to 1. No default.
    pub share: f64,
    /// The hot nodes. Default: node 0.
    #[serde(default = "node_zero")]
    pub nodes: Vec<u32>,
}

/// Given nodes to one.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GatherConfig {
    /// Who receives. Default: node 0.
    pub receiver: u32,
    /// Who sends. Default: all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub senders: Option<Vec<u32>>,
}

fn node_zero() -> Vec<u32> {
    vec![0]
}

/// Pools of nodes. The defaults make more than 84 % of the flows run among a third of the nodes, as
/// Shoal §7.4 reports of its traces; the rest of them is our choice, for the traces are not public.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PoolsConfig {
    /// Share of the nodes that compute: the first of the rack. Default 1/6 (our choice).
    pub compute: f64,
    /// Share of the nodes that are memory: the next. Default 1/6 (our choice).
    pub memory: f64,
    /// Share of the nodes that store: the last. Default 2/3 (our choice).
    pub storage: f64,
    /// Share of the flows from each pool (row) to each pool (column), in the order compute, memory,
    /// storage; in any unit. Default: 43 % each way between compute and memory, 6 % each way between
    /// compute and storage, 1 % each way between memory and storage.
    pub traffic: [[f64; 3]; 3],
}

impl Default for PoolsConfig {
    fn default() -> Self {
        Self {
            compute: 1.0 / 6.0,
            memory: 1.0 / 6.0,
            storage: 2.0 / 3.0,
            traffic: [[0.0, 0.43, 0.06], [0.43, 0.0, 0.01], [0.06, 0.01, 0.0]],
        }
    }
}

impl Default for PatternConfig {
    fn default() -> Self {
        Self::Uniform(NoKeys {})
    }
}

impl PatternConfig {
    /// The pattern in this rack, if nothing is wrong.
    pub(super) fn build(
        &self,
        context: &WorkloadContext,
        problems: &mut Problems,
    ) -> Option<Pattern> {
        let nodes = context.nodes;
        let random = |seed: Option<u64>| {
            Stream::new(seed.unwrap_or(context.seed), "workload/permutation", 0)
        };
        let map = match self {
            Self::Uniform(_) => return Some(Pattern::Uniform),
            Self::HotSpot(hot) => return hot.build(nodes, problems),
            Self::Pools(pools) => return pools.build(nodes, problems),
            Self::Permutation(PermutationConfig { pairs: None, seed }) => {
                patterns::permutation(nodes, &mut random(*seed))
            }
            Self::Permutation(PermutationConfig { pairs: Some(pairs), seed }) => {
                if !(1..=nodes).contains(pairs) {
                    let message = format!("found {pairs}; expected 1 to {nodes} in this rack");
                    problems.add("pairs", message);
                    return None;
                }
                patterns::permutation_among(nodes, *pairs, &mut random(*seed))
            }
            Self::PartialPermutation(PartialPermutationConfig { share, seed }) => {
                let senders = libm::round(share * f64::from(nodes));
                if !(senders >= 1.0 && *share <= 1.0) {
                    let message = format!(
                        "found {share}, which is {senders} of {nodes} nodes; expected a share of \
                         at most 1 and at least one node"
                    );
                    problems.add("share", message);
                    return None;
                }
                patterns::partial_permutation(nodes, senders as u32, &mut random(*seed))
            }
            Self::BitComplement(_) => by_bits(nodes, problems, patterns::bit_complement)?,
            Self::BitReverse(_) => by_bits(nodes, problems, patterns::bit_reverse)?,
            Self::BitShuffle(_) => by_bits(nodes, problems, patterns::bit_shuffle)?,
            Self::Transpose(_) => {
                let side = nodes.isqrt();
                if side * side != nodes {
                    let (below, above) = (side * side, (side + 1) * (side + 1));
                    let message = format!(
                        "a transpose needs a square number of nodes, and the rack has {nodes}; \
                         {below} and {above} are squares"
                    );
                    problems.add("kind", message);
                    return None;
                }
                patterns::transpose(nodes)
            }
            Self::Tornado(grid) => patterns::tornado(&grid.shape(nodes, problems)?),
            Self::Gather(gather) => gather.build(nodes, problems)?,
            Self::Neighbour(grid) => patterns::neighbour(&grid.shape(nodes, problems)?),
        };
        if (0..).zip(&map).all(|(node, &to)| node == to) {
            let message = format!("in a rack of {nodes} nodes this pattern sends nothing anywhere");
            problems.add("kind", message);
            return None;
        }
        Some(Pattern::Fixed(map))
    }
}

fn by_bits(
    nodes: u32,
    problems: &mut Problems,
    make: fn(u32) -> patterns::Map,
) -> Option<patterns::Map> {
    if nodes.is_power_of_two() {
        return Some(make(nodes));
    }
    let above = u64::from(nodes).next_power_of_two();
    let message = format!(
        "patterns of bits need a power of two of nodes, and the rack has {nodes}; {} and {above} \
         are powers of two",
        above / 2
    );
    problems.add("kind", message);
    None
}

/// Most dimensions of a grid of nodes (our choice: as many as have two nodes each, in the largest rack).
const DIMENSIONS_MAX: usize = 20;

impl GridConfig {
    fn shape(&self, nodes: u32, problems: &mut Problems) -> Option<Vec<u32>> {
        let Some(shape) = &self.shape else { return Some(vec![nodes]) };
        let product = shape.iter().try_fold(1u32, |all, &size| all.checked_mul(size));
        if product == Some(nodes) && shape.len() <= DIMENSIONS_MAX {
            return Some(shape.clone());
        }
        let message =
            format!("found {shape:?}; expected sizes whose product is {nodes}, the nodes");
        let message = match shape.len() {
            0..=DIMENSIONS_MAX => message,
            count => format!("found {count} sizes; expected at most {DIMENSIONS_MAX}"),
        };
        problems.add("shape", message);
        None
    }
}

impl HotSpotConfig {
    fn build(&self, nodes: u32, problems: &mut Problems) -> Option<Pattern> {
        let found = problems.count();
        if !(0.0..=1.0).contains(&self.share) {
            problems.add("share", format!("found {}; expected 0 to 1", self.share));
        }
        if self.nodes.is_empty() {
            problems.add("nodes", "found no node; expected at least one");
        }
        for node in self.nodes.iter().filter(|&&node| node >= nodes) {
            problems.add("nodes", no_such_node(*node, nodes));
        }
        let mut hot = self.nodes.clone();
        hot.sort_unstable();
        hot.dedup();
        if hot.len() < self.nodes.len() {
            problems.add("nodes", "a node is named twice; remove one");
        }
        (problems.count() == found).then_some(Pattern::HotSpot { share: self.share, hot })
    }
}

impl GatherConfig {
    fn build(&self, nodes: u32, problems: &mut Problems) -> Option<patterns::Map> {
        let found = problems.count();
        let mut known = BTreeSet::new();
        if self.receiver >= nodes {
            problems.add("receiver", no_such_node(self.receiver, nodes));
        }
        let senders = self.senders.iter().flatten();
        for &node in senders {
            let message = if node >= nodes {
                no_such_node(node, nodes)
            } else if node == self.receiver {
                format!("node {node} is the receiver; remove it")
            } else if !known.insert(node) {
                format!("node {node} is named twice; remove one")
            } else {
                continue;
            };
            problems.add("senders", message);
        }
        if self.senders.as_ref().is_some_and(Vec::is_empty) {
            problems.add("senders", "found no node; expected at least one");
        }
        let sends = |node: &u32| self.senders.is_none() || known.contains(node);
        let map = (0..nodes).map(|node| if sends(&node) { self.receiver } else { node });
        (problems.count() == found).then(|| map.collect())
    }
}

/// The message for a node that is not in the rack.
pub(super) fn no_such_node(node: u32, nodes: u32) -> String {
    format!("node {node} does not exist: the rack has nodes 0 to {}", nodes - 1)
}

impl PoolsConfig {
    fn build(&self, nodes: u32, problems: &mut Problems) -> Option<Pattern> {
        const NAMES: [&str; 3] = ["compute", "memory", "storage"];
        let found = problems.count();
        let shares = [self.compute, self.memory, self.storage];
        for (name, share) in NAMES.iter().zip(shares) {
            if !(0.0..=1.0).contains(&share) {
                problems.add(name, format!("found {share}; expected a share of the nodes, 0 to 1"));
            }
        }
        let sum: f64 = shares.iter().sum();
        if problems.count() == found && (sum - 1.0).abs() > 1e-6 {
            problems
                .add("storage", format!("the three shares of the nodes add up to {sum}, not 1"));
        }
        let flat = || self.traffic.iter().flatten();
        if flat().any(|share| !share.is_finite() || *share < 0.0) {
            problems.add("traffic", "a share of traffic is negative or not a number");
        } else if !flat().sum::<f64>().is_finite() {
            problems.add("traffic", "the shares of traffic add up to more than any number");
        } else if flat().sum::<f64>() <= 0.0 {
            problems.add("traffic", "no traffic at all; expected at least one share above zero");
        }
        if problems.count() > found {
            return None;
        }
        let bound = |share: f64| libm::round(share * f64::from(nodes)) as u32;
        let (first, second) = (bound(self.compute), bound(self.compute + self.memory));
        let counts = [first, second - first, nodes - second.min(nodes)];
        for (from, row) in self.traffic.iter().enumerate() {
            for (to, _) in row.iter().enumerate().filter(|(_, share)| **share > 0.0) {
                let needed = 1 + u32::from(from == to);
                if counts[from] < needed || counts[to] < needed {
                    let message = format!(
                        "there is traffic from {} to {}, but in a rack of {nodes} those pools have \
                         {} and {} nodes",
                        NAMES[from], NAMES[to], counts[from], counts[to]
                    );
                    problems.add("traffic", message);
                }
            }
        }
        if problems.count() > found {
            return None;
        }
        let rows: Vec<Vec<f64>> = self.traffic.iter().map(|row| row.to_vec()).collect();
        Some(Pattern::Pools(Pools::new(&counts, &rows)))
    }
}
