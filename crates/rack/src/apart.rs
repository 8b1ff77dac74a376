//! Nodes of their own in virtual time: a driver that does what is to be done next, on one thread.
//!
//! What `loopback` does by the machine's clock, this does in the same order each time; nothing is lost or damaged.
//! It is for recordings ([`crate::vectors`]), and slower than the simulator.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use kernel::Time;

use crate::node::{Ending, FlowName, Nodes};
use crate::workload::Workload;
use crate::{Flow, FlowId, NodeId};

/// What has come of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// Flows that began, and those of them that completed and failed.
    pub begun: u64,
    /// All of them is readable.
    pub completed: u64,
    /// They will never complete.
    pub failed: u64,
    /// Messages between nodes.
    pub messages: u64,
    /// Messages that nodes could not decode or did not expect.
    pub unexpected: u64,
    /// When the last thing was done.
    pub end: Time,
}

/// Messages on their way, by when they are there, to whom, and in the order in which they were sent.
type Wires = BTreeMap<(Time, usize, u64), (u32, Vec<u8>)>;

struct Run<'a> {
    nodes: &'a mut Nodes,
    wires: Wires,
    /// Flows by name, until they have ended.
    open: BTreeMap<FlowName, FlowId>,
    /// How many flows each pair has had.
    numbers: BTreeMap<(NodeId, NodeId), u32>,
    endings: Vec<Ending>,
    outcome: Outcome,
}

/// Lets nodes carry the first `flows` flows of a workload until all of them have ended, nothing is left to do, the
/// time is up, or `poll`, which is asked at each instant, says so.
pub fn carry(
    nodes: &mut Nodes,
    workload: &mut dyn Workload,
    flows: u64,
    until: Time,
    poll: &mut dyn FnMut(&Outcome) -> ControlFlow<()>,
) -> Outcome {
    let mut run = Run {
        nodes,
        wires: Wires::new(),
        open: BTreeMap::new(),
        numbers: BTreeMap::new(),
        endings: Vec::new(),
        outcome: Outcome::default(),
    };
    let mut reached = Time::ZERO;
    loop {
        let is_more = run.outcome.begun < flows;
        let start = if is_more { workload.next_start() } else { None };
        let start = start.map_or(Time::NEVER, |start| start.max(reached));
        if start == Time::NEVER && run.open.is_empty() {
            break;
        }
        let message = run.wires.first_key_value().map_or(Time::NEVER, |(&(at, ..), _)| at);
        let due = run.nodes.nodes.iter().map(|node| node.next()).min().unwrap_or(Time::NEVER);
        let now = start.min(message).min(due.max(reached));
        if now > until || now == Time::NEVER || poll(&run.outcome).is_break() {
            break;
        }
        run.deliver(now);
        if start == now
            && let Some(flow) = workload.next_flow()
        {
            run.begin(&Flow { start: now, ..flow });
        }
        reached = Time::from_ps(now.as_ps() + 1);
        run.advance(now, reached, workload);
        run.outcome.end = now;
    }
    run.outcome.unexpected = run.nodes.nodes.iter().map(|node| node.unexpected()).sum();
    run.outcome
}

impl Run<'_> {
    /// Hands over what is there now.
    fn deliver(&mut self, now: Time) {
        while let Some(entry) = self.wires.first_entry() {
            let &(at, to, _) = entry.key();
            if at > now {
                return;
            }
            let (wire, bytes) = entry.remove();
            self.nodes.nodes[to].receive(wire, at, &bytes);
        }
    }

    /// A flow begins at its source.
    fn begin(&mut self, flow: &Flow) {
        let number = self.numbers.entry((flow.src, flow.dst)).or_default();
        let name = FlowName { src: flow.src, dst: flow.dst, number: *number };
        *number += 1;
        self.open.insert(name, flow.id);
        self.outcome.begun += 1;
        let place = self.nodes.begins(flow);
        // All that comes before it is done.
        self.run(place, flow.start);
        self.nodes.nodes[place].offer(flow);
    }

    /// Lets the nodes that have something to do now do it.
    fn advance(&mut self, now: Time, until: Time, workload: &mut dyn Workload) {
        for place in 0..self.nodes.nodes.len() {
            if self.nodes.nodes[place].next() <= now {
                self.run(place, until);
            }
        }
        // In the order of nodes; the first half of a flow to speak is right.
        for Ending { flow, at, failure } in std::mem::take(&mut self.endings) {
            if let Some(id) = self.open.remove(&flow) {
                let ended = &mut self.outcome;
                let count =
                    if failure.is_none() { &mut ended.completed } else { &mut ended.failed };
                *count += 1;
                workload.ended(id, at);
            }
        }
    }

    fn run(&mut self, place: usize, until: Time) {
        let Self { nodes, wires, outcome, endings, .. } = self;
        let node = &mut nodes.nodes[place];
        node.run(until, &mut |message| {
            let key = (message.at, message.to, outcome.messages);
            wires.insert(key, (message.wire, message.bytes.to_vec()));
            outcome.messages += 1;
        });
        node.endings(endings);
    }
}
