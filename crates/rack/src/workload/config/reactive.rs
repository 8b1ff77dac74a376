//! Workloads in which flows wait for flows: `ring_all_reduce`, `tree_all_reduce`,
//! `expert_all_to_all`, `requests`.

use kernel::{Bytes, Span, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bursts::check_count;
use super::open::{nominal, pace};
use super::problems::{Problems, check_size, check_span, check_start};
use super::sizes::{FixedSizes, SizesConfig};
use super::{Boxed, Nominal, WorkloadContext, check_flows, check_listed};
use crate::Class;
use crate::workload::arrivals::Arrivals;
use crate::workload::collectives::Collective;
use crate::workload::limits::FLOW_MAX;
use crate::workload::requests::{Loop, Requests, Service};
use crate::workload::sizes::Sizes;

/// All-reduce in a ring: 2 (N - 1) steps of one N-th of the data.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RingAllReduceConfig {
    /// Data at each node. Unit: bytes. At least one byte a node. No default.
    pub size: Bytes,
    /// How many nodes take part: the first of the rack. At least 2. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// How often. Default 1.
    #[serde(default = "one")]
    pub rounds: u64,
    /// Computation of a node between two rounds. Unit: time. Default: none.
    #[serde(default)]
    pub compute: Span,
    /// Start of the first round. Unit: time. Default: the start of the run.
    #[serde(default)]
    pub start: Time,
    /// Traffic class; 0 is the most urgent. Default 0.
    #[serde(default)]
    pub class: Class,
}

fn one() -> u64 {
    1
}

/// All-reduce up and down a binary tree.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TreeAllReduceConfig {
    /// Data at each node. Unit: bytes. At least one byte a chunk. No default.
    pub size: Bytes,
    /// Parts that follow one another through the tree. Default 1.
    #[serde(default = "one")]
    pub chunks: u64,
    /// How many nodes take part: the first of the rack. At least 2. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// How often. Default 1.
    #[serde(default = "one")]
    pub rounds: u64,
    /// Computation of a node between two rounds. Unit: time. Default: none.
    #[serde(default)]
    pub compute: Span,
    /// Start of the first round. Unit: time. Default: the start of the run.
    #[serde(default)]
    pub start: Time,
    /// Traffic class; 0 is the most urgent. Default 0.
    #[serde(default)]
    pub class: Class,
}

/// Layers of experts, one on each node: dispatch to all, compute, combine from all.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpertAllToAllConfig {
    /// Tokens from one node to one expert. Unit: bytes. At least 1 B. No default.
    pub size: Bytes,
    /// Computation of an expert between the last token in and the first answer out. Unit: time.
    /// Default: none.
    #[serde(default)]
    pub expert: Span,
    /// How many nodes take part: the first of the rack. At least 2. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// How many layers, one after another. Default 1.
    #[serde(default = "one")]
    pub rounds: u64,
    /// Computation of a node between two layers. Unit: time. Default: none.
    #[serde(default)]
    pub compute: Span,
    /// Start of the first layer. Unit: time. Default: the start of the run.
    #[serde(default)]
    pub start: Time,
    /// Traffic class; 0 is the most urgent. Default 0.
    #[serde(default)]
    pub class: Class,
}

/// Checks what collectives have in common, and how many flows they list.
fn collective(
    context: &WorkloadContext,
    (nodes, rounds, start): (Option<u32>, u64, Time),
    (compute, class): (Span, Class),
    (_, listed): (&str, u64),
    problems: &mut Problems,
) -> Collective {
    let count = nodes.unwrap_or(context.nodes);
    if count < 2 || count > context.nodes {
        let message = format!("found {count}; expected 2 to {} in this rack", context.nodes);
        problems.add("nodes", message);
    }
    if rounds == 0 {
        problems.add("rounds", "found 0; expected at least one round");
    }
    check_listed("rounds", listed, problems);
    check_start("start", start, problems);
    check_span("compute", compute, problems);
    Collective { nodes: count, start, rounds, compute, class }
}

/// One of so many parts of what a node has.
fn check_part(size: Bytes, parts: u64, problems: &mut Problems) {
    let part = size.get().div_ceil(parts.max(1));
    if Bytes::new(part) > FLOW_MAX {
        let message = format!("found {} bytes, of which a flow has {part}", size.get());
        problems.add("size", message + "; a flow carries at most 1 TiB");
    }
}

impl RingAllReduceConfig {
    /// Each node sends to all others, or in as many steps, twice a round.
    pub(super) fn listed(&self, context: &WorkloadContext) -> (&'static str, u64) {
        let nodes = u64::from(self.nodes.unwrap_or(context.nodes));
        let flows = nodes.saturating_mul(nodes.saturating_sub(1)).saturating_mul(2);
        ("rounds", flows.saturating_mul(self.rounds))
    }

    pub(super) fn build(
        &self,
        context: &WorkloadContext,
        problems: &mut Problems,
    ) -> Option<Boxed> {
        let Self { size, nodes, rounds, compute, start, class } = *self;
        let when = (nodes, rounds, start);
        let listed = self.listed(context);
        let collective = collective(context, when, (compute, class), listed, problems);
        if size.get() < u64::from(collective.nodes) {
            let message =
                format!("found {size}; expected at least a byte for each of {}", collective.nodes);
            problems.add("size", message + " nodes");
        }
        check_part(size, collective.nodes.into(), problems);
        (problems.count() == 0).then(|| Box::new(collective.ring_all_reduce(size)) as Boxed)
    }
}

impl TreeAllReduceConfig {
    /// Each chunk goes up by each link of the tree, and down.
    pub(super) fn listed(&self, context: &WorkloadContext) -> (&'static str, u64) {
        let nodes = u64::from(self.nodes.unwrap_or(context.nodes));
        let flows = nodes.saturating_sub(1) * 2;
        ("rounds", flows.saturating_mul(self.chunks).saturating_mul(self.rounds))
    }

    pub(super) fn build(
        &self,
        context: &WorkloadContext,
        problems: &mut Problems,
    ) -> Option<Boxed> {
        let Self { size, chunks, nodes, rounds, compute, start, class } = *self;
        let when = (nodes, rounds, start);
        let listed = self.listed(context);
        let collective = collective(context, when, (compute, class), listed, problems);
        if chunks == 0 || chunks > size.get() {
            let message =
                format!("found {chunks}; expected 1 to {}, one for each byte", size.get());
            problems.add("chunks", message);
        }
        check_part(size, chunks, problems);
        (problems.count() == 0).then(|| Box::new(collective.tree_all_reduce(size, chunks)) as Boxed)
    }
}

impl ExpertAllToAllConfig {
    /// Each node sends to all others, or in as many steps, twice a round.
    pub(super) fn listed(&self, context: &WorkloadContext) -> (&'static str, u64) {
        let nodes = u64::from(self.nodes.unwrap_or(context.nodes));
        let flows = nodes.saturating_mul(nodes.saturating_sub(1)).saturating_mul(2);
        ("rounds", flows.saturating_mul(self.rounds))
    }

    pub(super) fn build(
        &self,
        context: &WorkloadContext,
        problems: &mut Problems,
    ) -> Option<Boxed> {
        let Self { size, expert, nodes, rounds, compute, start, class } = *self;
        let when = (nodes, rounds, start);
        let listed = self.listed(context);
        let collective = collective(context, when, (compute, class), listed, problems);
        check_size(size, problems);
        check_span("expert", expert, problems);
        (problems.count() == 0)
            .then(|| Box::new(collective.expert_all_to_all(size, expert)) as Boxed)
    }
}

/// Requests and their responses: open loop with `load` or `interarrival`, closed loop with
/// `outstanding`; exactly one of the three is given.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RequestsConfig {
    /// How many nodes ask: the first of the rack. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// How many nodes answer: the last of the rack. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<u32>,
    /// Sizes of requests. Default: fixed, 64 B (our choice: a small remote read).
    pub request: SizesConfig,
    /// Sizes of responses. Default: fixed, 4096 B (Aquila §6: a remote read of 4 KB).
    pub response: SizesConfig,
    /// From the end of a request to the start of its response. Unit: time. Default: none.
    pub service_time: Span,
    /// Open loop: offered load of requests and responses together, as in `poisson`. Above 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// Open loop: mean time between requests in the whole rack. Unit: time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interarrival: Option<Span>,
    /// Open loop: how many requests. Default: no end of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Closed loop: how many requests each client keeps outstanding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outstanding: Option<u32>,
    /// Closed loop: how many requests follow one another in each outstanding place. Default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u64>,
    /// Closed loop: from the end of a response to the next request. Unit: time. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think_time: Option<Span>,
    /// Closed loop: start of the first requests. Unit: time. Default: the start of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Time>,
    /// Traffic class; 0 is the most urgent. Default 0.
    pub class: Class,
}

impl Default for RequestsConfig {
    fn default() -> Self {
        let fixed = |size| SizesConfig::Fixed(FixedSizes { size: Bytes::new(size) });
        Self {
            clients: None,
            servers: None,
            request: fixed(64),
            response: fixed(4096),
            service_time: Span::ZERO,
            load: None,
            interarrival: None,
            requests: None,
            outstanding: None,
            rounds: None,
            think_time: None,
            start: None,
            class: Class::default(),
        }
    }
}

impl RequestsConfig {
    /// A closed loop has an exchange, and streams of its own, in each place.
    pub(super) fn listed(&self, context: &WorkloadContext) -> (&'static str, u64) {
        let clients = u64::from(self.clients.unwrap_or(context.nodes));
        ("outstanding", clients * u64::from(self.outstanding.unwrap_or(0)))
    }

    fn sizes(&self, problems: &mut Problems) -> (Option<Sizes>, Option<Sizes>) {
        let request = problems.below("request", |problems| self.request.build(problems));
        (request, problems.below("response", |problems| self.response.build(problems)))
    }

    /// The keys of the other loop must not be there.
    fn check_loop(&self, problems: &mut Problems) {
        let open = [
            ("load", self.load.is_some()),
            ("interarrival", self.interarrival.is_some()),
            ("requests", self.requests.is_some()),
        ];
        let closed = [
            ("rounds", self.rounds.is_some()),
            ("think_time", self.think_time.is_some()),
            ("start", self.start.is_some()),
        ];
        let (wrong, other) = match self.outstanding {
            Some(_) => (&open[..], "a closed loop, for outstanding is given"),
            None => (&closed[..], "an open loop, for outstanding is not given"),
        };
        for (key, _) in wrong.iter().filter(|(_, given)| *given) {
            problems.add(key, format!("this is {other}; remove one of the two"));
        }
    }

    pub(super) fn build(
        &self,
        context: &WorkloadContext,
        problems: &mut Problems,
    ) -> Option<Boxed> {
        let nodes = context.nodes;
        let (clients, servers) = (self.clients.unwrap_or(nodes), self.servers.unwrap_or(nodes));
        check_count("clients", clients, nodes, problems);
        check_count("servers", servers, nodes, problems);
        self.check_loop(problems);
        check_span("service_time", self.service_time, problems);
        let (request, response) = self.sizes(problems);
        let source = match self.outstanding {
            None => {
                let mean = request.as_ref().map_or(1.0, Sizes::mean)
                    + response.as_ref().map_or(1.0, Sizes::mean);
                let pace = pace(self.load, self.interarrival, mean, context, problems);
                check_flows("requests", self.requests, problems);
                let stream = Stream::new(context.seed, "workload/arrivals", 0);
                Loop::Open { arrivals: Arrivals::new(pace?, stream), requests: self.requests }
            }
            Some(outstanding) => {
                let rounds = self.rounds.unwrap_or(1);
                check_count("outstanding", outstanding, OUTSTANDING_MAX, problems);
                if problems.count() == 0 {
                    let (key, listed) = self.listed(context);
                    check_listed(key, listed, problems);
                }
                check_flows("rounds", Some(rounds), problems);
                let think_time = self.think_time.unwrap_or_default();
                let start = self.start.unwrap_or_default();
                check_span("think_time", think_time, problems);
                check_start("start", start, problems);
                Loop::Closed { outstanding, rounds, think_time, start }
            }
        };
        if problems.count() > 0 {
            return None;
        }
        let service = Service {
            clients,
            servers,
            nodes,
            request: request?,
            response: response?,
            service_time: self.service_time,
            class: self.class,
        };
        Some(Box::new(Requests::new(service, source, context.seed)))
    }

    pub(super) fn nominal(
        &self,
        context: &WorkloadContext,
        problems: &mut Problems,
    ) -> Option<Nominal> {
        let (request, response) = self.sizes(problems);
        let (request, response) = (request?, response?);
        let text = format!("requests: {}; responses: {}", request.describe(), response.describe());
        let mean = request.mean() + response.mean();
        if self.outstanding.is_some() {
            return Some(Nominal::of_sizes(text, Some(mean), context));
        }
        let pace = pace(self.load, self.interarrival, mean, context, problems)?;
        Some(nominal(pace, mean, text, context))
    }
}

/// Requests that one client keeps outstanding at most (our choice: each has streams of its own).
const OUTSTANDING_MAX: u32 = 1024;
