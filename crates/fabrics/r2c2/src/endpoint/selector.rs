//! The search for better routing of long flows, while they run (§3.4).
//!
//! A node whose turn it is searches on its own view and broadcasts what it found. A source that finds
//! a flow of its own in it sends further packets by the new protocol and announces that. Other nodes follow only
//! the source's announcements, which are numbered; a batch of another node has no place in that order
//! (**our choice**). What was found for a flow that has ended meanwhile is ignored.

use kernel::{Stream, Time};
use packets::{Outbox, Timer};
use rack::NodeId;

use crate::config::{Plan, Selection};
use crate::selection::{Duty, LongFlow, Outcome, search};
use crate::view::{Fact, FactId};
use crate::wire::batch::INDEX_MODULUS;
use crate::wire::{Assignment, Assignments};

use super::news::{News, Scene};
use super::pace::Pace;
use super::{SEARCH, streams};

/// Whose turn it is, and what came of it.
#[derive(Clone, Debug)]
pub(super) struct Selector {
    /// `None`: flows keep the protocol they start with.
    settings: Option<Selection>,
    duties: Vec<Duty>,
    draws: Vec<Stream>,
    /// By node: whether its timer is set.
    waits: Vec<bool>,
    /// Most flows in a broadcast.
    pairs_max: usize,
    searches: u64,
    /// Flows that were given another protocol.
    changes: u64,
}

impl Selector {
    pub(super) fn new(plan: &Plan, seed: u64) -> Self {
        let nodes = plan.nodes();
        let mut draws = streams(nodes, seed, "r2c2/selection");
        let settings = plan.config.selection.clone();
        let duties = settings.as_ref().map_or_else(Vec::new, |settings| {
            let duty = |(node, draw): (u32, &mut Stream)| {
                let me = (NodeId::new(node), nodes);
                Duty::new(settings.rota(), settings.period, me, Time::ZERO, draw)
            };
            (0..).zip(&mut draws).map(duty).collect()
        });
        let waits = vec![false; duties.len()];
        let pairs_max = plan.pairs_max();
        Self { settings, duties, draws, waits, pairs_max, searches: 0, changes: 0 }
    }

    /// Adds those of other nodes.
    pub(super) fn add_counts(&mut self, other: &Self) {
        self.searches += other.searches;
        self.changes += other.changes;
    }

    /// Searches, and flows whose protocol they changed.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.searches, self.changes)
    }

    /// Whether nodes ever search.
    pub(super) fn searches(&self) -> bool {
        self.settings.is_some()
    }

    /// A node knows of a flow: it waits for its turn.
    pub(super) fn has_flows(&mut self, node: NodeId, out: &mut Outbox) {
        if self.waits.get(node.index()) == Some(&false) {
            self.waits[node.index()] = true;
            self.wait(node, out);
        }
    }

    /// Sets the timer of a node for its turn; one that has passed in an idle rack is now.
    fn wait(&mut self, node: NodeId, out: &mut Outbox) {
        let next = self.duties[node.index()].next();
        if next != Time::NEVER {
            out.set_timer(Timer::Host(node, SEARCH), next.max(out.now()));
        }
    }

    /// It is a node's turn: it searches, and tells all what it found. What it has told.
    pub(super) fn turn(
        &mut self,
        node: NodeId,
        pace: &mut Pace,
        news: &mut News,
        mut scene: Scene<'_>,
    ) -> Vec<Assignments> {
        self.waits[node.index()] = false;
        let Some(settings) = self.settings.clone() else { return Vec::new() };
        if news.facts.known(node).next().is_none() {
            return Vec::new();
        }
        let flows = long_flows(node, &settings, news, &scene);
        let pairs = match flows.is_empty() {
            true => Vec::new(),
            false => {
                self.searches += 1;
                let draw = &mut self.draws[node.index()];
                let map = scene.maps.of(node);
                let mut plan = settings.plan();
                plan.protocols.iter_mut().for_each(|protocol| *protocol = map.usable(*protocol));
                let found = pace.search(node, news, &mut scene, |filling| {
                    search(filling, &flows, settings.utility(), &plan, draw)
                });
                match found.is_worth(settings.least_gain) {
                    true => self.changed(&flows, &found, news),
                    false => Vec::new(),
                }
            }
        };
        // Told in any case: that a search is over is what ends a round.
        let batches: Vec<&[Assignment]> = match pairs.is_empty() {
            true => vec![&[]],
            false => pairs.chunks(self.pairs_max).collect(),
        };
        let told = batches.into_iter().map(|pairs| news.assign(node, pairs, &mut scene)).collect();
        self.heard(node, node, scene.out);
        told
    }

    /// The flows that are to use another protocol than they do.
    fn changed(&mut self, flows: &[LongFlow], found: &Outcome, news: &News) -> Vec<Assignment> {
        let changed = flows.iter().zip(&found.protocols);
        let changed = changed.filter(|(flow, protocol)| flow.protocol != **protocol);
        let pairs = changed.map(|(flow, &protocol)| Assignment {
            source: flow.source,
            destination: flow.destination,
            index: news.facts.fact(flow.place).index % INDEX_MODULUS,
            protocol,
        });
        let pairs: Vec<_> = pairs.collect();
        self.changes += pairs.len() as u64;
        pairs
    }

    /// `node` hears that `by` has searched.
    pub(super) fn heard(&mut self, node: NodeId, by: NodeId, out: &mut Outbox) {
        if let Some(duty) = self.duties.get_mut(node.index()) {
            duty.heard(by, out.now(), &mut self.draws[node.index()]);
            self.waits[node.index()] = true;
            self.wait(node, out);
        }
    }
}

/// The flows that a node knows and that have lasted, by source, destination and index: a search goes by
/// their order.
fn long_flows(node: NodeId, settings: &Selection, news: &News, scene: &Scene<'_>) -> Vec<LongFlow> {
    let (now, map, facts) = (scene.out.now(), scene.maps.of(node), &news.facts);
    let lasts = |&id: &FactId| now - facts.since(node, id) >= settings.age;
    let mut known: Vec<FactId> = facts.known(node).filter(lasts).collect();
    known.sort_unstable_by_key(|&id| {
        let fact = facts.fact(id);
        (fact.course.source, fact.course.destination, fact.index)
    });
    let flow = |id: FactId| {
        let Fact { course, terms, index, .. } = *facts.fact(id);
        LongFlow {
            place: id,
            source: course.source,
            destination: course.destination,
            protocol: map.usable(course.protocol),
            terms,
            tenant: news.names.tenant_of_index(index),
        }
    };
    let joined = |flow: &LongFlow| map.routes.leads(flow.source, flow.destination);
    known.into_iter().map(flow).filter(joined).collect()
}
