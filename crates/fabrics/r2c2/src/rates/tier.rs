//! The flows of one priority, as the links see them.
//!
//! Models: R2C2 §3.3.1, §3.3.2 (claims M17, M21): the weight of a flow on a link is its own times
//! its share there. Kept from one computation to the next: a flow that comes or goes changes what
//! lies on its way and nothing else.

use super::legs::{Half, Legs};
use super::terms::{Course, Courses};
use crate::routing::Protocol;

/// A bundle that crosses a link, and the quanta of its share there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) bundle: u32,
    pub(super) quanta: u32,
}

/// A bundle's use of a link: its share, in quanta.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) link: u32,
    pub(super) quanta: u32,
}

/// Flows of one course and one priority: their rates are to each other as their weights.
#[derive(Clone, Debug)]
pub(super) struct Bundle {
    pub(super) course: Course,
    pub(super) tier: u32,
    /// How many flows it has; none if it is idle, or its place is free.
    pub(super) flows: u32,
    /// The links that it uses; none if it is spread over all of them.
    pub(super) entries: Vec<Entry>,
    /// Its place among the bundles that are spread.
    pub(super) spread_at: u32,
}

impl Bundle {
    /// Whether its flows are spread over all links, as Valiant's are.
    pub(super) fn is_spread(&self) -> bool {
        self.course.protocol == Protocol::Valiant && self.course.source != self.course.destination
    }
}

/// The flows of one priority.
#[derive(Clone, Debug)]
pub(super) struct Tier {
    pub(super) priority: u8,
    /// Sum of the weights of all flows.
    pub(super) weight: u64,
    /// By link: the weights of the flows on it, those that are spread left out. Unit: quanta.
    pub(super) loads: Vec<u64>,
    /// By link: the bundles that use it, idle ones too, in no particular order.
    pub(super) members: Vec<Vec<Member>>,
    /// Flows whose demand limits them, by place, in no particular order.
    pub(super) limited: Vec<u32>,
    pub(super) spread: Spread,
}

impl Tier {
    pub(super) fn new(priority: u8, links: usize) -> Self {
        Self {
            priority,
            weight: 0,
            loads: vec![0; links],
            members: vec![Vec::new(); links],
            limited: Vec::new(),
            spread: Spread::default(),
        }
    }

    /// Takes all flows out.
    pub(super) fn clear(&mut self) {
        self.weight = 0;
        self.loads.fill(0);
        self.members.iter_mut().for_each(Vec::clear);
        self.limited.clear();
        self.spread.clear();
    }
}

/// The flows under Valiant load balancing: weights by source and by destination.
#[derive(Clone, Debug, Default)]
pub(super) struct Spread {
    /// By link: their weights on it, as of the last refresh. Empty until there is such a flow. Unit:
    /// quanta.
    pub(super) loads: Vec<u64>,
    /// The bundles.
    pub(super) bundles: Vec<u32>,
    leaving: Weights,
    arriving: Weights,
}

impl Spread {
    /// Counts the weight of a flow in (positive) or out.
    pub(super) fn change(&mut self, courses: &impl Courses, course: Course, weight: i64) {
        self.loads.resize(courses.links(), 0);
        for weights in [&mut self.leaving, &mut self.arriving] {
            weights.resize(courses.nodes());
        }
        self.leaving.change(course.source.index(), weight);
        self.arriving.change(course.destination.index(), weight);
    }

    /// Brings the loads up to date.
    pub(super) fn refresh(&mut self, courses: &mut impl Courses, legs: &mut Legs) {
        let Self { loads, leaving, arriving, .. } = self;
        for (half, weights) in [(Half::Leaving, leaving), (Half::Arriving, arriving)] {
            weights.settle(|node, change| {
                legs.prepare(courses, half, node);
                legs.add(courses, half, node, change, loads);
            });
        }
    }

    fn clear(&mut self) {
        self.loads.fill(0);
        self.bundles.clear();
        self.leaving.clear();
        self.arriving.clear();
    }
}

/// A weight for each node, and what of it is not yet accounted for.
#[derive(Clone, Debug, Default)]
pub(super) struct Weights {
    /// By node: the change since it was last settled.
    changes: Vec<i64>,
    /// The nodes with a change, or that had one.
    changed: Vec<u32>,
    is_listed: Vec<bool>,
}

impl Weights {
    /// Makes room for so many nodes.
    pub(super) fn resize(&mut self, nodes: usize) {
        self.changes.resize(nodes, 0);
        self.is_listed.resize(nodes, false);
    }

    pub(super) fn change(&mut self, node: usize, weight: i64) {
        self.changes[node] += weight;
        if !std::mem::replace(&mut self.is_listed[node], true) {
            self.changed.push(node as u32);
        }
    }

    /// Whether there is no change.
    pub(super) fn is_settled(&self) -> bool {
        self.changed.is_empty()
    }

    /// Calls `account` with each node and its change, and forgets them.
    pub(super) fn settle(&mut self, mut account: impl FnMut(usize, i64)) {
        for node in self.changed.drain(..) {
            let node = node as usize;
            self.is_listed[node] = false;
            let change = std::mem::take(&mut self.changes[node]);
            if change != 0 {
                account(node, change);
            }
        }
    }

    /// Forgets all changes.
    pub(super) fn clear(&mut self) {
        self.settle(|_, _| ());
    }
}
