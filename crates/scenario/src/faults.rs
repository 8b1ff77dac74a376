//! The `[[fault]]` tables: what breaks in a run, when, and for how long.

use kernel::{Span, Stream, Time};
use rack::{Component, Fault, Group, NodeId, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One `[[fault]]`: a time and one thing that fails, or a number of nodes drawn at random.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FaultConfig {
    /// When it fails, from the start of the run. Unit: time. No default.
    pub at: Span,
    /// When it works again, from the start of the run. Unit: time. Default: never. After `at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
    /// The node that fails, with its NIC. From 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// The node whose link to its leaf switch fails, both directions. From 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_link: Option<u32>,
    /// The leaf switch that fails. From 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaf: Option<u32>,
    /// The spine switch that fails. From 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spine: Option<u32>,
    /// The link between a leaf and a spine switch that fails, both directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaf_spine: Option<LeafSpine>,
    /// The switch that fails, counted over all tiers. From 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<u32>,
    /// The link between any two vertices of a packet network that fails, both directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
    /// The optical module of an Aquila Clique that fails, with its links. From 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<u32>,
    /// The cable of an Aquila Clique that fails: up to eight links between pods. From 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cable: Option<u32>,
    /// The bundle of cables of an Aquila Clique that fails. From 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<u32>,
    /// The line card of an Aquila Clique that fails: two TiNs. From 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<u32>,
    /// The chassis of an Aquila Clique that fails: the TiNs of a pod. From 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chassis: Option<u32>,
    /// The rack of an Aquila Clique that fails: two pods. From 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rack: Option<u32>,
    /// How many nodes fail, drawn at random. From 0 to all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// The share of nodes that fail, drawn at random. From 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub fraction: Option<f64>,
    /// What fails at each node that `count` or `fraction` draws. Default: the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Drawn>,
}

/// A link between two switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeafSpine {
    /// The leaf switch. From 0.
    pub leaf: u32,
    /// The spine switch. From 0.
    pub spine: u32,
    /// Which of the parallel links between the two. Default 0.
    #[serde(default)]
    pub link: u32,
}

/// A link between two vertices of a topology: nodes count from 0, switches follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// One end. From 0.
    pub a: u32,
    /// The other end. From 0.
    pub b: u32,
    /// Which of the parallel links between the two. Default 0.
    #[serde(default)]
    pub link: u32,
}

/// What fails at a node drawn at random.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Drawn {
    /// The node with its NIC.
    #[default]
    Node,
    /// The link between the node and its leaf switch.
    NodeLink,
}

/// What a `[[fault]]` names.
enum Target {
    One(Component),
    Random { count: u32, of: Drawn },
}

impl FaultConfig {
    /// The one thing this fault names. Keys of problems are below this fault.
    fn target(&self, nodes: u32) -> Result<Target, Problem> {
        let share = |fraction: f64| (fraction * f64::from(nodes)).round() as u32;
        let of = self.of.unwrap_or_default();
        let leaf_spine =
            |l: LeafSpine| Component::LeafSpine { leaf: l.leaf, spine: l.spine, link: l.link };
        let group = |index: Option<u32>, group: Group| {
            index.map(|index| Target::One(Component::Group(group, index)))
        };
        let named = [
            self.node.map(|node| Target::One(Component::Node(NodeId::new(node)))),
            self.node_link.map(|node| Target::One(Component::NodeLink(NodeId::new(node)))),
            self.leaf.map(|leaf| Target::One(Component::Leaf(leaf))),
            self.spine.map(|spine| Target::One(Component::Spine(spine))),
            self.leaf_spine.map(|link| Target::One(leaf_spine(link))),
            self.switch.map(|switch| Target::One(Component::Switch(switch))),
            self.link.map(|l| Target::One(Component::Link { a: l.a, b: l.b, link: l.link })),
            group(self.module, Group::Module),
            group(self.cable, Group::Cable),
            group(self.bundle, Group::Bundle),
            group(self.card, Group::Card),
            group(self.chassis, Group::Chassis),
            group(self.rack, Group::Rack),
            self.count.map(|count| Target::Random { count, of }),
            self.fraction.map(|fraction| Target::Random { count: share(fraction), of }),
        ];
        let mut named = named.into_iter().flatten();
        let keys = "node, node_link, leaf, spine, leaf_spine, switch, link, module, cable, bundle, card, \
                    chassis, rack, count or fraction";
        match (named.next(), named.next()) {
            (None, _) => Err(Problem::new("", format!("names nothing that fails; add {keys}"))),
            (Some(_), Some(_)) => Err(Problem::new(
                "",
                format!("names more than one thing; expected one of {keys}: write two [[fault]]"),
            )),
            (Some(Target::One(_)), None) if self.of.is_some() => {
                Err(Problem::new("of", "is only for count and fraction; remove it"))
            }
            (Some(target), None) => Ok(target),
        }
    }

    fn check(&self, nodes: u32, target: &Target) -> Vec<Problem> {
        let mut problems = Vec::new();
        if let Some(until) = self.until.filter(|until| *until <= self.at) {
            let message = format!("found {until}; expected a time after at = \"{}\"", self.at);
            problems.push(Problem::new("until", message));
        }
        let (key, node) = match target {
            Target::One(Component::Node(node)) => ("node", node.get()),
            Target::One(Component::NodeLink(node)) => ("node_link", node.get()),
            Target::Random { count, .. } if *count > nodes => {
                let message = format!("found {count}; the rack has {nodes} nodes");
                problems.push(Problem::new("count", message));
                return problems;
            }
            _ => return problems,
        };
        if node >= nodes {
            let last = nodes.saturating_sub(1);
            let message = format!("found node {node}; expected one from 0 to {last}");
            problems.push(Problem::new(key, message));
        }
        problems
    }
}

/// The faults of a run of `nodes` nodes, in order of their start. Each fault that draws has its own
/// random stream, named by its position.
///
/// # Errors
/// Every problem, with its key below the scenario: `fault[2].until`.
pub fn expand(faults: &[FaultConfig], nodes: u32, seed: u64) -> Result<Vec<Fault>, Vec<Problem>> {
    let mut all = Vec::new();
    let mut problems = Vec::new();
    for (index, fault) in faults.iter().enumerate() {
        let below = |mut problem: Problem| {
            let dot = if problem.key.is_empty() { "" } else { "." };
            problem.key = format!("fault[{index}]{dot}{}", problem.key);
            problem
        };
        let target = match fault.target(nodes) {
            Ok(target) => target,
            Err(problem) => {
                problems.push(below(problem));
                continue;
            }
        };
        let wrong = fault.check(nodes, &target);
        if !wrong.is_empty() {
            problems.extend(wrong.into_iter().map(below));
            continue;
        }
        let at = Time::ZERO + fault.at;
        let until = fault.until.map(|until| Time::ZERO + until);
        match target {
            Target::One(component) => all.push(Fault { component, at, until }),
            Target::Random { count, of } => {
                all.extend(draw(count, nodes, seed, index).into_iter().map(|node| {
                    let component = match of {
                        Drawn::Node => Component::Node(node),
                        Drawn::NodeLink => Component::NodeLink(node),
                    };
                    Fault { component, at, until }
                }));
            }
        }
    }
    all.sort_by_key(|fault| fault.at);
    if problems.is_empty() { Ok(all) } else { Err(problems) }
}

/// `count` different nodes, in rising order (the head of a Fisher-Yates shuffle).
fn draw(count: u32, nodes: u32, seed: u64, index: usize) -> Vec<NodeId> {
    let mut stream = Stream::new(seed, "scenario/fault", index as u64);
    let mut all: Vec<NodeId> = (0..nodes).map(NodeId::new).collect();
    for at in 0..count as usize {
        let other = at + stream.below((all.len() - at) as u64) as usize;
        all.swap(at, other);
    }
    all.truncate(count as usize);
    all.sort_unstable();
    all
}
