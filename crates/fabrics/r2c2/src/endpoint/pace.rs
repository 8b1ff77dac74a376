//! How fast the flows of each node may go: computed by the node itself, now and then, from its own
//! view (§3.3).
//!
//! One water-filling serves all nodes that go by one map: it is taken from the view of one to that of
//! the next by the flows in which they differ, and its rates do not depend on the way there
//! ([`crate::rates`]).

use kernel::{Rate, Span, Stream, Time};
use packets::{Outbox, Timer};
use rack::NodeId;

use crate::config::{Batch, Plan, Start};
use crate::rates::{DemandPlan, Routed, Terms, Waterfill, Whose};
use crate::view::{Fact, FactId};
use crate::wire::{Event, Kbps};

use super::TICK;
use super::maps::Map;
use super::news::{News, Scene};
use super::senders::Senders;

/// The computations of all nodes.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    /// From one computation of a node to the next (ρ); zero: one at each event that it hears of.
    interval: Span,
    start: Start,
    batch: Batch,
    /// The facts that the next node knows, in order, with their serials.
    wanted: Vec<(FactId, u64)>,
    /// By node: when in the interval it computes, and whether it is going to.
    phases: Vec<Span>,
    is_due: Vec<bool>,
    demands: DemandPlan,
    computations: u64,
}

impl Pace {
    pub(super) fn new(plan: &Plan, seed: u64) -> Self {
        let nodes = plan.nodes();
        let interval = plan.config.interval;
        let phase = |node| match interval {
            Span::ZERO => Span::ZERO,
            _ => {
                let mut draw = Stream::new(seed, "r2c2/phases", u64::from(node));
                Span::from_ps(draw.below(interval.as_ps()))
            }
        };
        Self {
            interval,
            start: plan.config.start,
            batch: plan.config.batch,
            wanted: Vec::new(),
            phases: (0..nodes).map(phase).collect(),
            is_due: vec![false; nodes as usize],
            demands: plan.demands(),
            computations: 0,
        }
    }

    /// Whether nodes compute at each event that they hear of, as the strawman of §3.1 does.
    pub(super) fn follows_every_event(&self) -> bool {
        self.interval == Span::ZERO
    }

    /// Adds those of other nodes.
    pub(super) fn add_computations(&mut self, other: &Self) {
        self.computations += other.computations;
    }

    /// How many computations there have been.
    pub(super) fn computations(&self) -> u64 {
        self.computations
    }

    /// A node has a flow to send: it computes at the next of its times.
    pub(super) fn has_flows(&mut self, node: NodeId, out: &mut Outbox) {
        if self.follows_every_event() || std::mem::replace(&mut self.is_due[node.index()], true) {
            return;
        }
        let (phase, interval) = (self.phases[node.index()].as_ps(), self.interval.as_ps());
        let now = out.now().as_ps();
        let since = (now + interval - phase) % interval;
        out.set_timer(Timer::Host(node, TICK), out.now() + Span::from_ps(interval - since));
    }

    /// A flow of a node has started.
    pub(super) fn flow_starts(
        &mut self,
        node: NodeId,
        senders: &mut Senders,
        news: &News,
        scene: &mut Scene<'_>,
    ) {
        if self.start == Start::Share && !self.follows_every_event() {
            self.assign(node, senders, news, scene);
        }
    }

    /// It is time for a node to compute: whether it has anything to compute for.
    pub(super) fn tick(&mut self, node: NodeId, senders: &Senders, out: &mut Outbox) -> bool {
        self.is_due[node.index()] = false;
        let has_flows = senders.of_node(node).next().is_some();
        if has_flows {
            self.has_flows(node, out);
        }
        has_flows
    }

    /// A node computes the rates of its flows and holds them to these.
    pub(super) fn recompute(
        &mut self,
        node: NodeId,
        senders: &mut Senders,
        news: &mut News,
        mut scene: Scene<'_>,
    ) {
        if senders.of_node(node).next().is_none() {
            return;
        }
        self.assign(node, senders, news, &mut scene);
        self.observe(node, senders, news, &mut scene);
        scene.out.wake(node);
    }

    /// A node estimates what its hosts can send, and tells what has changed.
    pub(super) fn observe(
        &mut self,
        node: NodeId,
        senders: &mut Senders,
        news: &mut News,
        scene: &mut Scene<'_>,
    ) {
        let (keys, now): (Vec<_>, _) = (senders.of_node(node).collect(), scene.out.now());
        for key in keys {
            let sender = senders.get(key);
            if sender.is_over() {
                continue;
            }
            let (name, fact) = (sender.name(), *news.facts.fact(sender.fact));
            if let Some(demand) = senders.observe(key, &self.demands, now) {
                let told = (fact.course.protocol, Terms { demand, ..fact.terms });
                let changed = news.change(name, Event::Demand, told, scene);
                senders.get_mut(key).fact = changed;
            }
        }
    }

    /// Holds the flows of a node to their rates, from what it knows.
    fn assign(&mut self, node: NodeId, senders: &mut Senders, news: &News, scene: &mut Scene<'_>) {
        self.computations += 1;
        let now = scene.out.now();
        let map = scene.maps.of_mut(node);
        self.go_over(map, node, news, now);
        map.filling.fill(Whose::From(node));
        let keys: Vec<_> = senders.of_node(node).collect();
        for key in keys {
            let sender = senders.get_mut(key);
            // One too young to be considered goes on as it started (§3.3.2).
            if !sender.is_over() && map.filling.has(sender.fact) {
                sender.bucket.set_pace(now, map.filling.rate_of(sender.fact));
            }
        }
    }

    /// A controller computes the rates of all flows that it knows of: in whole kilobits, as its messages have
    /// them. What a computation does not consider yet is not limited.
    pub(super) fn rates_of_all(
        &mut self,
        node: NodeId,
        news: &News,
        scene: &mut Scene<'_>,
    ) -> Vec<(FactId, Kbps)> {
        self.computations += 1;
        let now = scene.out.now();
        let map = scene.maps.of_mut(node);
        self.go_over(map, node, news, now);
        map.filling.fill(Whose::All);
        let rate = |id| match map.filling.has(id).then(|| map.filling.rate_of(id)).flatten() {
            None => Kbps::UNLIMITED,
            Some(rate) if rate == Rate::default() => Kbps::new(0),
            Some(rate) => Kbps::new(Kbps::at_most(rate).get().clamp(1, u32::MAX - 1)),
        };
        news.facts.known(node).map(|id| (id, rate(id))).collect()
    }

    /// Lets a node search on what it knows, with the filling of its view.
    pub(super) fn search<T>(
        &mut self,
        node: NodeId,
        news: &News,
        scene: &mut Scene<'_>,
        search: impl FnOnce(&mut Waterfill<Routed>) -> T,
    ) -> T {
        let now = scene.out.now();
        let map = scene.maps.of_mut(node);
        self.go_over(map, node, news, now);
        let found = search(&mut map.filling);
        // Flows are under other protocols now than was announced.
        map.filling.clear();
        map.inside.clear();
        found
    }

    /// Takes a filling from the view that it has to that of `node`, which goes by its map.
    fn go_over(&mut self, map: &mut Map, node: NodeId, news: &News, now: Time) {
        let facts = &news.facts;
        self.wanted.clear();
        for id in facts.known(node) {
            if self.batch == Batch::All || now - facts.since(node, id) >= self.interval {
                self.wanted.push((id, facts.fact(id).serial));
            }
        }
        let is_whole = map.is_whole();
        let Map { filling, inside, routes, .. } = map;
        if !is_whole {
            // What is cut off crosses no link.
            self.wanted.retain(|&(id, _)| {
                let course = facts.fact(id).course;
                routes.leads(course.source, course.destination)
            });
        }
        // Those that go make room before others come.
        let mut wanted = self.wanted.iter().peekable();
        inside.retain(|have| {
            while wanted.next_if(|other| *other < have).is_some() {}
            let stays = wanted.next_if_eq(&have).is_some();
            if !stays {
                filling.leave(have.0);
            }
            stays
        });
        let mut before = inside.iter().peekable();
        for want in &self.wanted {
            if before.next_if_eq(&want).is_none() {
                let Fact { mut course, terms, .. } = *facts.fact(want.0);
                if !is_whole {
                    course.protocol = routes.usable(course.protocol);
                }
                filling.join(want.0, course, terms);
            }
        }
        std::mem::swap(inside, &mut self.wanted);
    }
}
