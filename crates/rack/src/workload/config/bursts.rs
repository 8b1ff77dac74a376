//! Synchronised workloads: `bulk`, `incast`, `outcast`, `all_to_all`, `shuffle`.

use kernel::{Bytes, Span, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pattern::{PatternConfig, no_such_node};
use super::problems::{Problems, check_size, check_span, check_start};
use super::{Boxed, WorkloadContext, check_listed};
use crate::workload::burst::{Burst, Order, Round, Rounds};
use crate::workload::collectives::Collective;
use crate::workload::limits::START_MAX;
use crate::workload::patterns::Pairs;
use crate::{Class, NodeId};

/// When the flows of a synchronised workload start.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TimingConfig {
    /// Start of the first round. Unit: time. Default: the start of the run.
    pub start: Time,
    /// How many rounds. Default 1.
    pub rounds: u64,
    /// From the start of a round to the start of the next. Unit: time. Above 0 if there are several
    /// rounds. Default: none.
    pub period: Span,
    /// Each flow starts a random time below this after its round. Unit: time. Default: none, all
    /// start at one instant. At most the period.
    pub jitter: Span,
}

impl Default for TimingConfig {
    fn default() -> Self {
        Self { start: Time::ZERO, rounds: 1, period: Span::ZERO, jitter: Span::ZERO }
    }
}

impl TimingConfig {
    fn build(&self, problems: &mut Problems) -> Rounds {
        let Self { start, rounds, period, jitter } = *self;
        problems.below("timing", |problems| {
            if rounds == 0 {
                problems.add("rounds", "found 0; expected at least one round");
            }
            if rounds > 1 && period == Span::ZERO {
                problems.add(
                    "period",
                    format!("missing for {rounds} rounds; add period = \"1 ms\", say"),
                );
            }
            if rounds > 1 && period > Span::ZERO && jitter > period {
                let message = format!("found {jitter}; expected at most the period, {period}");
                problems.add("jitter", message);
            }
            let found = problems.count();
            check_start("start", start, problems);
            check_span("period", period, problems);
            check_span("jitter", jitter, problems);
            let last = u128::from(rounds.saturating_sub(1));
            let end = u128::from(start.as_ps())
                + u128::from(period.as_ps()) * last
                + u128::from(jitter.as_ps());
            if problems.count() == found && end > u128::from(START_MAX.as_ps()) {
                problems.add("rounds", "the last round starts after the 30 days that a run takes");
            }
        });
        Rounds { start, period, count: rounds, jitter }
    }
}

/// One flow from each node at one instant, or a number of flows between drawn pairs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkConfig {
    /// Size of a flow. Unit: bytes. At least 1 B. No default.
    pub size: Bytes,
    /// Who sends to whom. Default: a random permutation.
    #[serde(default = "permutation")]
    pub pattern: PatternConfig,
    /// How many flows a round, between pairs drawn from the pattern. Default: one from each node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u64>,
    /// When. Default: once, at the start of the run.
    #[serde(default)]
    pub timing: TimingConfig,
    /// Traffic class; 0 is the most urgent. Default 0.
    #[serde(default)]
    pub class: Class,
}

fn permutation() -> PatternConfig {
    PatternConfig::Permutation(super::pattern::PermutationConfig::default())
}

/// Many to one at one instant.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IncastConfig {
    /// How many nodes send, drawn anew each round. From 1 to one less than the nodes. No default.
    pub senders: u32,
    /// Who receives. Default: drawn each round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<u32>,
    /// Size of a flow. Unit: bytes. At least 1 B. No default.
    pub size: Bytes,
    /// When. Default: once, at the start of the run.
    #[serde(default)]
    pub timing: TimingConfig,
    /// Traffic class; 0 is the most urgent. Default 0.
    #[serde(default)]
    pub class: Class,
}

/// One to many at one instant.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutcastConfig {
    /// How many nodes receive, drawn anew each round. From 1 to one less than the nodes. No default.
    pub receivers: u32,
    /// Who sends. Default: drawn each round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<u32>,
    /// Size of a flow. Unit: bytes. At least 1 B. No default.
    pub size: Bytes,
    /// When. Default: once, at the start of the run.
    #[serde(default)]
    pub timing: TimingConfig,
    /// Traffic class; 0 is the most urgent. Default 0.
    #[serde(default)]
    pub class: Class,
}

/// Every node to every other.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AllToAllConfig {
    /// Size of a flow. Unit: bytes. At least 1 B. No default.
    pub size: Bytes,
    /// In which order a node's flows enter its queue. Default "ring".
    #[serde(default)]
    pub order: OrderConfig,
    /// How many flows a node keeps open: the next starts when one has ended. Rounds then follow one
    /// another without a period. Default: all at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u32>,
    /// When. Default: once, at the start of the run.
    #[serde(default)]
    pub timing: TimingConfig,
    /// Traffic class; 0 is the most urgent. Default 0.
    #[serde(default)]
    pub class: Class,
}

/// In which order the flows of an all-to-all are listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OrderConfig {
    /// Step s: node i to i + s.
    #[default]
    Ring,
    /// As the ring, with nodes and steps in a random order.
    Random,
    /// Every node to node 0, then every node to node 1, and so on: the worst.
    Ascending,
}

/// The shuffle of MapReduce: every mapper to every reducer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShuffleConfig {
    /// How many nodes map: the first of the rack. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mappers: Option<u32>,
    /// How many nodes reduce: the last of the rack. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reducers: Option<u32>,
    /// Size of a flow from one mapper to one reducer. Unit: bytes. At least 1 B. No default.
    pub size: Bytes,
    /// When. Default: once, at the start of the run.
    #[serde(default)]
    pub timing: TimingConfig,
    /// Traffic class; 0 is the most urgent. Default 0.
    #[serde(default)]
    pub class: Class,
}

/// A number of nodes that must lie between 1 and `max`.
pub(super) fn check_count(key: &str, count: u32, max: u32, problems: &mut Problems) {
    if count == 0 || count > max {
        problems.add(key, format!("found {count}; expected 1 to {max} in this rack"));
    }
}

fn check_node(key: &str, node: Option<u32>, nodes: u32, problems: &mut Problems) -> Option<NodeId> {
    let node = node?;
    if node >= nodes {
        problems.add(key, no_such_node(node, nodes));
    }
    Some(NodeId::new(node))
}

/// Rounds of `round` in this rack, if nothing is wrong with what they have in common.
fn burst(
    context: &WorkloadContext,
    (size, timing, class): (Bytes, &TimingConfig, Class),
    round: Option<Round>,
    problems: &mut Problems,
) -> Option<Boxed> {
    check_size(size, problems);
    let rounds = timing.build(problems);
    if problems.count() > 0 {
        return None;
    }
    let burst = Burst::new(context.nodes, context.seed, round?, rounds, size);
    Some(Box::new(burst.with_class(class)))
}

impl BulkConfig {
    /// A round is drawn as it begins.
    pub(super) fn listed(&self) -> (&'static str, u64) {
        ("flows", self.flows.unwrap_or(0))
    }

    pub(super) fn build(
        &self,
        context: &WorkloadContext,
        problems: &mut Problems,
    ) -> Option<Boxed> {
        let pattern = problems.below("pattern", |problems| self.pattern.build(context, problems));
        if self.flows == Some(0) {
            problems.add("flows", "found 0; expected at least one flow");
        }
        let (key, listed) = self.listed();
        check_listed(key, listed, problems);
        let round = pattern.map(|pattern| {
            let pairs = Box::new(Pairs::new(context.nodes, pattern, context.seed));
            match self.flows {
                Some(flows) => Round::Drawn { pairs, flows },
                None => Round::OneEach(pairs),
            }
        });
        burst(context, (self.size, &self.timing, self.class), round, problems)
    }
}

impl IncastConfig {
    pub(super) fn build(
        &self,
        context: &WorkloadContext,
        problems: &mut Problems,
    ) -> Option<Boxed> {
        check_count("senders", self.senders, context.nodes - 1, problems);
        let receiver = check_node("receiver", self.receiver, context.nodes, problems);
        let round = Round::Incast { senders: self.senders, receiver };
        burst(context, (self.size, &self.timing, self.class), Some(round), problems)
    }
}

impl OutcastConfig {
    pub(super) fn build(
        &self,
        context: &WorkloadContext,
        problems: &mut Problems,
    ) -> Option<Boxed> {
        check_count("receivers", self.receivers, context.nodes - 1, problems);
        let sender = check_node("sender", self.sender, context.nodes, problems);
        let round = Round::Outcast { receivers: self.receivers, sender };
        burst(context, (self.size, &self.timing, self.class), Some(round), problems)
    }
}

impl AllToAllConfig {
    /// All flows if they wait for each other, those of a round if their order is drawn.
    pub(super) fn listed(&self, context: &WorkloadContext) -> (&'static str, u64) {
        let pairs = u64::from(context.nodes) * u64::from(context.nodes.saturating_sub(1));
        match self.parallel {
            Some(_) => ("timing.rounds", self.timing.rounds.saturating_mul(pairs)),
            None if self.timing.jitter > Span::ZERO => ("timing.jitter", pairs),
            None => ("timing.rounds", 0),
        }
    }

    pub(super) fn build(
        &self,
        context: &WorkloadContext,
        problems: &mut Problems,
    ) -> Option<Boxed> {
        let order = match self.order {
            OrderConfig::Ring => Order::Ring,
            OrderConfig::Ascending => Order::Ascending,
            OrderConfig::Random => {
                Order::random(context.nodes, &mut Stream::new(context.seed, "workload/order", 0))
            }
        };
        let (key, listed) = self.listed(context);
        let Some(parallel) = self.parallel else {
            check_listed(key, listed, problems);
            let round = Round::AllToAll(order);
            return burst(context, (self.size, &self.timing, self.class), Some(round), problems);
        };
        let TimingConfig { start, rounds, period, jitter } = self.timing;
        check_size(self.size, problems);
        if parallel == 0 {
            problems.add("parallel", "found 0; expected at least one flow open");
        }
        problems.below("timing", |problems| {
            for (key, span) in [("period", period), ("jitter", jitter)] {
                if span > Span::ZERO {
                    let message =
                        format!("found {span}; with parallel, a flow starts when another ends");
                    problems.add(key, message);
                }
            }
        });
        check_listed(key, listed, problems);
        problems.below("timing", |problems| check_start("start", start, problems));
        let collective = Collective {
            nodes: context.nodes,
            start,
            rounds,
            compute: Span::ZERO,
            class: self.class,
        };
        (problems.count() == 0)
            .then(|| Box::new(collective.all_to_all(self.size, &order, parallel)) as Boxed)
    }
}

impl ShuffleConfig {
    /// Those of a round.
    pub(super) fn listed(&self, context: &WorkloadContext) -> (&'static str, u64) {
        let count = |count: Option<u32>| u64::from(count.unwrap_or(context.nodes));
        ("mappers", count(self.mappers) * count(self.reducers))
    }

    pub(super) fn build(
        &self,
        context: &WorkloadContext,
        problems: &mut Problems,
    ) -> Option<Boxed> {
        let nodes = context.nodes;
        let (mappers, reducers) = (self.mappers.unwrap_or(nodes), self.reducers.unwrap_or(nodes));
        check_count("mappers", mappers, nodes, problems);
        check_count("reducers", reducers, nodes, problems);
        if problems.count() == 0 {
            let (key, listed) = self.listed(context);
            check_listed(key, listed, problems);
        }
        let round = Round::Shuffle { mappers, reducers };
        burst(context, (self.size, &self.timing, self.class), Some(round), problems)
    }
}
