//! A node for a driver outside of the simulator: cells as bytes, time as it comes.
//!
//! Slots are told by the time: what a node hears on a channel in a slot comes from the peer that the schedule
//! has there, so that no cell needs to say who sent it last (§3.2). A cell that comes after its slot is lost.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::{Span, Time};
use rack::node::{Ending, FlowName, Message, Node, Nodes, Payload};
use rack::shards::{NEVER, Outbox, Shard as _};
use rack::{Flow, NodeId};

use crate::config::Plan;
use crate::messages::What;
use crate::shard::{Passing, Shard};
use crate::wire::Codec;

/// Bits of a flow's number among those of its pair, in what cells name it by; its source is above them.
const NUMBER_BITS: u32 = 20;

/// One node.
struct Single {
    node: u32,
    plan: Arc<Plan>,
    shard: Shard,
    codec: Codec,
    out: Outbox<Passing>,
    /// By destination: how many flows there were.
    numbers: BTreeMap<NodeId, u32>,
    bytes: Vec<u8>,
    /// Cells that came after their slot.
    late: u64,
}

/// All nodes of an idle rack, each on its own; `None` where cells have no room for the header of a packet.
pub(crate) fn apart(plan: &Arc<Plan>, seed: u64) -> Option<Nodes> {
    let count = plan.config.nodes as usize;
    let single = |node: usize| {
        let single = Single {
            node: node as u32,
            plan: Arc::clone(plan),
            shard: Shard::new(plan, (node, count), seed),
            codec: Codec::new(&plan.config).ok()?,
            out: Outbox::new(count),
            numbers: BTreeMap::new(),
            bytes: Vec::new(),
            late: 0,
        };
        Some(Box::new(single) as Box<dyn Node>)
    };
    let nodes = (0..count).map(single).collect::<Option<Vec<_>>>()?;
    // Sent within a slot, and there at the beginning of one.
    let delay = plan.config.slot * u64::from(plan.delay_slots) - plan.config.slot;
    Some(Nodes { nodes, delay, recovers: plan.is_reliable })
}

impl Single {
    /// When a half of a slot begins: frames arrive at the beginning of a slot, and are sent in its middle.
    fn start_of(&self, half: u64) -> Time {
        let start = self.shard.start_of(half / 2);
        if half.is_multiple_of(2) {
            start
        } else {
            start + Span::from_ps(self.plan.config.slot.as_ps() / 2)
        }
    }

    /// The first half of a slot that begins at `time` or later.
    fn half_from(&self, time: Time) -> u64 {
        let slot = time.as_ps() / self.plan.config.slot.as_ps();
        (2 * slot..).find(|&half| self.start_of(half) >= time).unwrap_or(NEVER)
    }

    /// Who sends to this node on a channel in a slot.
    fn heard_from(&self, slot: u64, channel: u32) -> Option<u32> {
        let position = self.shard.now_of(slot).position + channel;
        let schedule = &self.plan.schedule;
        (0..schedule.nodes()).find(|&from| schedule.peer(from, position) == Some(self.node))
    }
}

impl Node for Single {
    fn next(&self) -> Time {
        match self.shard.next() {
            NEVER => Time::NEVER,
            half => self.start_of(half),
        }
    }

    fn offer(&mut self, flow: &Flow) {
        let number = self.numbers.entry(flow.dst).or_insert(0);
        let handle = flow.src.get() << NUMBER_BITS | *number;
        *number += 1;
        self.shard.catch_up();
        self.shard.offer(flow, handle);
    }

    fn receive(&mut self, wire: u32, at: Time, bytes: &[u8]) -> Option<Payload> {
        let half = self.half_from(at);
        let slot = half / 2;
        // It may have had nothing to do for long.
        self.shard.run(2 * slot.saturating_sub(self.plan.delay_slots.into()), &mut self.out);
        if half % 2 == 1 || !self.shard.awaits(slot) {
            self.late += 1;
            return None;
        }
        let from = self.heard_from(slot.checked_sub(self.plan.delay_slots.into())?, wire)?;
        match self.codec.decode(bytes, (from, self.node)) {
            Ok(frame) => self.shard.flight.add(slot, wire, frame),
            Err(_) => self.shard.unexpected += 1,
        }
        None
    }

    fn run(&mut self, until: Time, send: &mut dyn FnMut(Message<'_>)) {
        let half = self.half_from(until);
        self.shard.run(half, &mut self.out);
        let now = self.shard.slot();
        for (to, Passing { frame, slot, channel }) in self.out.drain() {
            self.codec.encode(&frame, &mut self.bytes);
            let ahead = slot.wrapping_sub(now as u32) as i32;
            let slot = now.saturating_add_signed(ahead.into());
            let at = self.shard.start_of(slot);
            send(Message { to, wire: channel, at, bytes: &self.bytes, payload: None });
        }
    }

    fn endings(&mut self, endings: &mut Vec<Ending>) {
        let mut reports = Vec::new();
        self.shard.report(&mut reports);
        for report in reports {
            let (src, number) = (report.handle >> NUMBER_BITS, report.handle % (1 << NUMBER_BITS));
            let dst = NodeId::new(self.node);
            let flow = FlowName { src: NodeId::new(src), dst, number };
            let at = Time::from_ps(report.at);
            if let What::Whole { .. } = report.what {
                endings.push(Ending { flow, at, failure: None });
            }
        }
    }

    fn unexpected(&self) -> u64 {
        self.shard.unexpected + self.late
    }
}
