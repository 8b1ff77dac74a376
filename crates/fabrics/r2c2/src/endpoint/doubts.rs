//! Sources that a node cannot reach, as far as it knows, and what it hears of them.
//!
//! News of a link and broadcasts travel by different paths: what a node hears of a source that it cannot reach
//! may be old, if it was long under way, or new, if the node's own map is old. So the node enters what it hears of
//! any source, and forgets a source that it cannot reach once it has heard nothing of it for as long as it takes
//! until all know of a change (**our choice**). Rates are right meanwhile: what is cut off crosses no link.

use kernel::{Span, Time};
use packets::{Outbox, Timer};
use rack::NodeId;

use super::LOOK;

/// When each node heard of each source last.
#[derive(Clone, Debug)]
pub(super) struct Doubts {
    nodes: usize,
    /// How long a node remembers a source that it cannot reach.
    memory: Span,
    /// By node and source: when it heard of it last, or the beginning; empty where nothing fails.
    heard: Vec<Time>,
    /// By node: when it looks at what it has heard of sources that it cannot reach; `NEVER`: nothing.
    looks_at: Vec<Time>,
}

impl Doubts {
    /// Nothing was heard by any of `nodes`. Without a `memory` nothing fails, and nobody asks.
    pub(super) fn new(nodes: u32, memory: Option<Span>) -> Self {
        let nodes = nodes as usize;
        let fails = if memory.is_some() { nodes } else { 0 };
        Self {
            nodes,
            memory: memory.unwrap_or_default(),
            heard: vec![Time::ZERO; fails * fails],
            looks_at: vec![Time::NEVER; fails],
        }
    }

    /// A node hears of a source, which it can reach or not.
    pub(super) fn hears(
        &mut self,
        (node, source): (NodeId, NodeId),
        is_joined: bool,
        out: &mut Outbox,
    ) {
        let now = out.now();
        self.heard[node.index() * self.nodes + source.index()] = now;
        if !is_joined {
            self.look(node, now + self.memory, out);
        }
    }

    /// Until when a node remembers a source that it cannot reach.
    pub(super) fn until(&self, node: NodeId, source: NodeId) -> Time {
        match self.heard[node.index() * self.nodes + source.index()] {
            Time::ZERO => Time::ZERO,
            heard => heard + self.memory,
        }
    }

    /// A node looks now.
    pub(super) fn looks(&mut self, node: NodeId) {
        self.looks_at[node.index()] = Time::NEVER;
    }

    /// A node looks at `at` for sources that it cannot reach, unless it does sooner.
    pub(super) fn look(&mut self, node: NodeId, at: Time, out: &mut Outbox) {
        let looks_at = &mut self.looks_at[node.index()];
        if at < *looks_at {
            *looks_at = at;
            out.set_timer(Timer::Host(node, LOOK), at);
        }
    }
}
