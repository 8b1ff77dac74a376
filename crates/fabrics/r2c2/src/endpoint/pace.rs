//! How fast the flows of each node may go: computed by the node itself, now and then, from its own
//! view (§3.3).
//!
//! One water-filling serves all nodes: it is taken from the view of one to that of the next by the
//! flows in which they differ, and its rates do not depend on the way there ([`crate::rates`]).

use kernel::{Span, Stream};
use packets::{Outbox, Timer};
use rack::NodeId;

use crate::config::{Batch, Plan, Start};
use crate::rates::{DemandPlan, Routed, Terms, Waterfill, Whose};
use crate::view::RecordId;

use super::TICK;
use super::news::{Allocation, News};
use super::senders::Senders;

/// The computations of all nodes.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    /// From one computation of a node to the next (ρ); zero: one at each event that it hears of.
    interval: Span,
    start: Start,
    batch: Batch,
    filling: Waterfill<Routed>,
    /// The records whose flows are in it, in order, with their serials: places are used again.
    inside: Vec<(RecordId, u64)>,
    /// Those that the next node knows.
    wanted: Vec<(RecordId, u64)>,
    /// By node: when in the interval it computes, and whether it is going to.
    phases: Vec<Span>,
    is_due: Vec<bool>,
    demands: DemandPlan,
    computations: u64,
}

impl Pace {
    pub(super) fn new(plan: &Plan, filling: Waterfill<Routed>, seed: u64) -> Self {
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
            filling,
            inside: Vec::new(),
            wanted: Vec::new(),
            phases: (0..nodes).map(phase).collect(),
            is_due: vec![false; nodes as usize],
            demands: plan.demands(),
            computations: 0,
        }
    }

    /// From now on flows divide over links in another way.
    pub(super) fn reroute(&mut self, filling: Waterfill<Routed>) {
        self.filling = filling;
        self.inside.clear();
    }

    /// Whether nodes compute at each event that they hear of, as the strawman of §3.1 does.
    pub(super) fn follows_every_event(&self) -> bool {
        self.interval == Span::ZERO
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
        out: &Outbox,
    ) {
        if self.start == Start::Share && !self.follows_every_event() {
            self.assign(node, senders, news, out);
        }
    }

    /// It is time for a node to compute.
    pub(super) fn tick(
        &mut self,
        node: NodeId,
        senders: &mut Senders,
        news: &mut News,
        out: &mut Outbox,
    ) {
        self.is_due[node.index()] = false;
        if senders.of_node(node).next().is_some() {
            self.has_flows(node, out);
            self.recompute(node, senders, news, out);
        }
    }

    /// A node computes the rates of its flows and holds them to these.
    pub(super) fn recompute(
        &mut self,
        node: NodeId,
        senders: &mut Senders,
        news: &mut News,
        out: &mut Outbox,
    ) {
        let keys: Vec<_> = senders.of_node(node).collect();
        if keys.is_empty() {
            return;
        }
        self.assign(node, senders, news, out);
        for key in keys {
            if senders.get_mut(key).is_over() {
                continue;
            }
            if let Some(demand) = senders.observe(key, &self.demands, out.now()) {
                let record = senders.get_mut(key).record;
                let known = news.views.record(record).allocation;
                let terms = Terms { demand, ..known.terms };
                let changed = news.change(node, record, Allocation { terms, ..known }, out);
                senders.get_mut(key).record = changed;
            }
        }
        out.wake(node);
    }

    /// Holds the flows of a node to their rates, from what it knows.
    fn assign(&mut self, node: NodeId, senders: &mut Senders, news: &News, out: &Outbox) {
        self.computations += 1;
        self.go_over(node, news, out);
        self.filling.fill(Whose::From(node));
        let keys: Vec<_> = senders.of_node(node).collect();
        for key in keys {
            let sender = senders.get_mut(key);
            // One too young to be considered goes on as it started (§3.3.2).
            if !sender.is_over() && self.filling.has(sender.record) {
                let rate = self.filling.rate_of(sender.record);
                sender.bucket.set_pace(out.now(), rate);
            }
        }
    }

    /// Lets a node search on what it knows, with the filling of its view.
    pub(super) fn search<T>(
        &mut self,
        node: NodeId,
        news: &News,
        out: &Outbox,
        search: impl FnOnce(&mut Waterfill<Routed>) -> T,
    ) -> T {
        self.go_over(node, news, out);
        let found = search(&mut self.filling);
        // Flows are under other protocols now than their records say.
        self.filling.clear();
        self.inside.clear();
        found
    }

    /// Takes the filling from the view that it has to that of `node`.
    fn go_over(&mut self, node: NodeId, news: &News, out: &Outbox) {
        let views = &news.views;
        self.wanted.clear();
        for id in views.known(node.get()) {
            let record = views.record(id);
            let age = out.now() - record.allocation.since;
            if self.batch == Batch::All || age >= self.interval {
                self.wanted.push((id, record.serial));
            }
        }
        // Those that go make room before others come.
        let mut wanted = self.wanted.iter().peekable();
        self.inside.retain(|have| {
            while wanted.next_if(|other| *other < have).is_some() {}
            let stays = wanted.next_if_eq(&have).is_some();
            if !stays {
                self.filling.leave(have.0);
            }
            stays
        });
        let mut inside = self.inside.iter().peekable();
        for want in &self.wanted {
            if inside.next_if_eq(&want).is_none() {
                let Allocation { course, terms, .. } = views.record(want.0).allocation;
                self.filling.join(want.0, course, terms);
            }
        }
        std::mem::swap(&mut self.inside, &mut self.wanted);
    }
}
