//! The search for better routing of long flows, while they run (§3.4).
//!
//! A node whose turn it is searches on its own view and broadcasts what it found. A source that hears
//! of a flow of its own sends further packets by the new protocol; if the flow has ended or changed
//! meanwhile, it takes the news back.

use kernel::{Stream, Time};
use packets::{Outbox, Timer};
use rack::NodeId;

use crate::config::{Plan, Selection};
use crate::selection::{Duty, LongFlow, Outcome, search};
use crate::view::{Event, RecordId};

use super::news::{Allocation, News, Scene};
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

    /// It is a node's turn: it searches, and tells all what it found. What the node itself hears.
    pub(super) fn turn(
        &mut self,
        node: NodeId,
        pace: &mut Pace,
        news: &mut News,
        mut scene: Scene<'_>,
    ) -> Vec<Event> {
        self.waits[node.index()] = false;
        let Some(settings) = self.settings.clone() else { return Vec::new() };
        if news.views.known(node.get()).next().is_none() {
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
                    true => self.publish(&flows, &found, news),
                    false => Vec::new(),
                }
            }
        };
        // Told in any case: that a search is over is what ends a round.
        let batches = pairs.chunks(self.pairs_max).map(|pairs| Event::Routes(pairs.into()));
        let events: Vec<Event> = match pairs.is_empty() {
            true => vec![Event::Routes(Box::default())],
            false => batches.collect(),
        };
        for event in &events {
            news.announce(node, event.clone(), &mut scene);
        }
        self.heard(node, node, scene.out);
        events
    }

    /// Makes a record of each flow that is to use another protocol, in place of the one it has.
    fn publish(
        &mut self,
        flows: &[LongFlow],
        found: &Outcome,
        news: &mut News,
    ) -> Vec<(RecordId, RecordId)> {
        let changed = flows.iter().zip(&found.protocols);
        let changed = changed.filter(|(flow, protocol)| flow.protocol != **protocol);
        let pairs = changed.map(|(flow, &protocol)| {
            let known = news.views.record(flow.place).allocation;
            let course = flow.course(protocol);
            let record = news.views.add_for(flow.place, Allocation { course, ..known });
            (flow.place, record)
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

/// The flows that a node knows and that have lasted.
fn long_flows(node: NodeId, settings: &Selection, news: &News, scene: &Scene<'_>) -> Vec<LongFlow> {
    let (now, map) = (scene.out.now(), scene.maps.of(node));
    let lasts = |&id: &RecordId| now - news.views.record(id).allocation.since >= settings.age;
    let flow = |id: RecordId| {
        let Allocation { course, terms, tenant, .. } = news.views.record(id).allocation;
        LongFlow {
            place: id,
            source: course.source,
            destination: course.destination,
            protocol: map.usable(course.protocol),
            terms,
            tenant,
        }
    };
    let joined = |flow: &LongFlow| map.routes.leads(flow.source, flow.destination);
    news.views.known(node.get()).filter(lasts).map(flow).filter(joined).collect()
}
