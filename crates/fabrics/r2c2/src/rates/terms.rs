//! What decides a flow's rate: where it goes, and on which terms.
//!
//! Models: R2C2 §3.3.1 (a flow's protocol fixes how it divides over links, claim M16) and §3.3.2
//! (weight, priority and demand, claims M21 and M23).

use std::num::NonZeroU8;

use kernel::Rate;
use rack::NodeId;

use crate::routing::Protocol;

/// Where a flow goes: flows of one course divide over the links alike.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Course {
    /// Where it starts.
    pub source: NodeId,
    /// Where it ends.
    pub destination: NodeId,
    /// How its packets find their way.
    pub protocol: Protocol,
}

/// What the operator and the sender ask for a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// Its rate relative to the others of its priority that share its bottleneck. Default 1 (all
    /// flows alike, §3.3.1).
    pub weight: NonZeroU8,
    /// Whose turn it is: 0 is served first, and each later priority with what the earlier ones
    /// leave. Default 0. (E28: §4.2 gives a field and no order.)
    pub priority: u8,
    /// The most that its host can send; none where the host is no limit. Default none.
    pub demand: Option<Rate>,
}

impl Default for Terms {
    fn default() -> Self {
        Self { weight: NonZeroU8::MIN, priority: 0, demand: None }
    }
}

/// How flows divide over links: what the routing protocols say.
pub trait Courses {
    /// How many nodes there are.
    fn nodes(&self) -> usize;

    /// How many directed links there are.
    fn links(&self) -> usize;

    /// Calls `visit` with each link of a course, once, and the expected number of times that a
    /// packet crosses it. Not called for [`Protocol::Valiant`].
    fn uses(&mut self, course: Course, visit: impl FnMut(usize, f64));

    /// The same for the first half of [`Protocol::Valiant`]: from a source to a node drawn from all.
    fn leaving(&mut self, source: NodeId, visit: impl FnMut(usize, f64));

    /// And for the second half: from a node drawn from all to a destination.
    fn arriving(&mut self, destination: NodeId, visit: impl FnMut(usize, f64));
}
