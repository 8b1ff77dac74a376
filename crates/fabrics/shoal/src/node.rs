//! A node for a driver outside of the simulator: cells as bytes, time as it comes.
//!
//! Slots are told by the time: what a node hears on a channel in a slot comes from the peer that the schedule
//! has there, so that no cell needs to say who sent it last (§3.2). A cell that comes after its slot is lost.

use std::collections::BTreeMap;

use kernel::{Span, Time};
use rack::node::{Ending, FlowName, Message, Node, Nodes, Payload, Stands, Unit};
use rack::shards::{NEVER, Outbox, Shard as _};
use rack::{Failure, Flow, NodeId};

use crate::config::Plan;
use crate::instance::{self, How, Instance, instances};
use crate::stages::SlotTimes;

/// Bits of a flow's handle: its number among those of its pair, below its source and its destination.
const NUMBER_BITS: u32 = 9;
const NODE_BITS: u32 = 11;

/// One node.
struct Single {
    node: u32,
    slot: Span,
    /// From a cell's last bit to the beginning of the slot in which its receiver acts on it.
    checks: Span,
    instance: Instance,
    out: Outbox<instance::Message>,
    /// By destination: how many flows there were.
    numbers: BTreeMap<NodeId, u32>,
    ends: Vec<instance::End>,
}

/// All nodes of an idle rack, each on its own; `None` where cells have no room for the header of a packet, or for
/// what nodes tell each other of failures.
pub(crate) fn apart(plan: &Plan, seed: u64) -> Option<Nodes> {
    let count = plan.config.nodes as usize;
    let SlotTimes { slot, hop } = plan.times();
    let acted_on = slot * u64::from(plan.delay_slots);
    let single = |(node, instance): (u32, Instance)| -> Box<dyn Node> {
        Box::new(Single {
            node,
            slot,
            checks: acted_on - hop,
            instance,
            out: Outbox::new(count),
            numbers: BTreeMap::new(),
            ends: Vec::new(),
        })
    };
    let nodes = (0..).zip(instances(plan, seed).ok()?).map(single).collect();
    // Sent in the middle of a slot, and there with its last bit.
    let [hop, middle] = [hop, middle_of(slot)].map(Span::as_ps);
    let delay = Span::from_ps(hop.saturating_sub(middle).max(1));
    let stands = if plan.is_reliable { Stands::Damage } else { Stands::Nothing };
    Some(Nodes { nodes, delay, stands, memory: None })
}

/// From the beginning of a slot to its middle.
fn middle_of(slot: Span) -> Span {
    Span::from_ps(slot.as_ps() / 2)
}

fn handle(flow: FlowName) -> u32 {
    (flow.src.get() << NODE_BITS | flow.dst.get()) << NUMBER_BITS | flow.number
}

fn name(handle: u32) -> FlowName {
    let pair = handle >> NUMBER_BITS;
    FlowName {
        src: NodeId::new(pair >> NODE_BITS),
        dst: NodeId::new(pair & ((1 << NODE_BITS) - 1)),
        number: handle & ((1 << NUMBER_BITS) - 1),
    }
}

impl Single {
    /// When a half of a slot begins: cells arrive at the beginning of a slot, and are sent in its middle.
    fn start_of(&self, half: u64) -> Time {
        let middle = if half.is_multiple_of(2) { Span::ZERO } else { middle_of(self.slot) };
        Time::ZERO + self.slot * (half / 2) + middle
    }

    /// The first half of a slot that begins at `time` or later.
    fn half_from(&self, time: Time) -> u64 {
        let slot = time.as_ps() / self.slot.as_ps();
        (2 * slot..2 * slot + 3).find(|&half| self.start_of(half) >= time).unwrap_or(NEVER)
    }
}

impl Node for Single {
    fn next(&self) -> Time {
        match self.instance.next() {
            NEVER => Time::NEVER,
            half => self.start_of(half),
        }
    }

    /// # Panics
    /// At the 513th flow between two nodes: cells name no more of them.
    fn offer(&mut self, flow: &Flow) {
        let number = self.numbers.entry(flow.dst).or_insert(0);
        assert!(*number < 1 << NUMBER_BITS, "too many flows from {} to {}", flow.src, flow.dst);
        let flow_name = FlowName { src: flow.src, dst: flow.dst, number: *number };
        *number += 1;
        self.instance.offer(flow, handle(flow_name));
    }

    fn receive(&mut self, wire: u32, at: Time, bytes: &[u8]) -> Option<Unit> {
        let at = self.half_from(at).next_multiple_of(2);
        let heard = instance::Message { to: self.node, at, channel: wire, cell: bytes.to_vec() };
        // It may have had nothing to do for long.
        let before = at.saturating_sub(self.instance.lookahead());
        self.instance.run(before, &mut self.out);
        let unit = self.instance.heard(&heard);
        let known = self.instance.unexpected();
        self.instance.take(&mut vec![heard]);
        unit.filter(|_| self.instance.unexpected() == known).map(Unit)
    }

    fn run(&mut self, until: Time, send: &mut dyn FnMut(Message<'_>)) {
        let half = self.half_from(until);
        self.instance.run(half, &mut self.out);
        let sent: Vec<_> = self.out.drain().map(|(_, message)| message).collect();
        for message in sent {
            let payload = self.instance.payload(&message);
            // The end of a packet may have no bytes of the flow.
            let payload = payload.filter(|payload| payload.length > kernel::Bytes::ZERO);
            let payload = payload.map(|payload| Payload {
                flow: name(payload.flow),
                offset: payload.offset.get(),
                bytes: payload.length.get() as u32,
            });
            let unit = self.instance.said(&message).map(Unit);
            let is_own = unit.is_some_and(|unit| (unit.0 >> 96) as u32 == self.node);
            send(Message {
                to: message.to as usize,
                wire: message.channel,
                at: self.start_of(message.at) - self.checks,
                bytes: &message.cell,
                unit: unit.filter(|_| payload.is_some() || !is_own),
                payload,
            });
        }
    }

    fn endings(&mut self, endings: &mut Vec<Ending>) {
        self.instance.report(&mut self.ends);
        endings.extend(self.ends.drain(..).map(|end| Ending {
            flow: name(end.flow),
            at: Time::from_ps(end.at),
            failure: match end.how {
                How::Arrived { .. } => None,
                How::SourceDied => Some(Failure::SourceDied),
                How::GivenUp => Some(Failure::DestinationDied),
                How::Lost => Some(Failure::PacketsLost),
            },
        }));
    }

    fn unexpected(&self) -> u64 {
        self.instance.unexpected()
    }
}
