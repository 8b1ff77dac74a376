//! The rack for a driver outside of the simulator: nodes and the switch by themselves, messages as bytes, time as
//! it comes.
//!
//! A message is what instances exchange, with a checksum of the link behind it (CRC-32). The link is synchronous
//! and loses nothing (§6.A: credits; there is no retransmission in the paper).

use ::rack::Flow;
use ::rack::NodeId;
use ::rack::node::{self, Ending, FlowName, Nodes, Stands, Unit};
use ::rack::shards::{NEVER, Outbox, Shard};
use kernel::{Bytes, Span, Time};
use switching::{Line, Packet};

use super::header::{self, LAST};
use super::instances::{Instance, Message, instances};
use super::receivers::End;
use crate::config::Plan;

/// Bytes of a link's checksum.
const CHECKSUM: usize = 4;

/// A node, or the switch.
struct Single {
    place: u32,
    nodes: u32,
    instance: Instance,
    line: Line,
    /// Application bytes of a full packet, and its header.
    sizes: (Bytes, Bytes),
    /// On cables and in the switch's serial links.
    constant: Span,
    out: Outbox<Message>,
    ends: Vec<End>,
    /// Messages that could not be decoded.
    malformed: u64,
}

/// Nodes and the switch of an idle rack, each on its own; `None` where nodes cannot count the room that they have
/// in the switch.
pub(super) fn apart(plan: &Plan, seed: u64) -> Option<Nodes> {
    let line = plan.switch.line();
    let nodes = plan.config.nodes;
    let single = |(place, instance): (u32, Instance)| -> Box<dyn node::Node> {
        Box::new(Single {
            place,
            nodes,
            instance,
            line,
            sizes: (plan.payload(), plan.config.header),
            constant: plan.constant(),
            out: Outbox::new(nodes as usize + 1),
            ends: Vec::new(),
            malformed: 0,
        })
    };
    let all = (0..).zip(instances(plan, seed).ok()?).map(single).collect();
    // Half a cycle; the beginnings of cycles are rounded to picoseconds.
    let half = line.span(line.cycle()).as_ps() / 2;
    let delay = Span::from_ps(half.saturating_sub(2).max(1));
    // Nobody sends again: a credit that is lost is lost for ever.
    Some(Nodes { nodes: all, delay, stands: Stands::Nothing, memory: None })
}

/// How drivers name the flow of a packet. Instances of a node count its flows to each destination.
fn named(packet: &Packet) -> FlowName {
    FlowName {
        src: NodeId::new(packet.source.into()),
        dst: NodeId::new(packet.destination.into()),
        number: packet.tag & !LAST,
    }
}

/// What a packet is known by.
fn unit(packet: &Packet) -> Unit {
    let FlowName { src, dst, number } = named(packet);
    let [src, dst, number] = [src.get(), dst.get(), number].map(u128::from);
    Unit(src << 96 | dst << 64 | number << 32 | u128::from(packet.sequence))
}

impl Single {
    /// When a half cycle begins.
    fn start_of(&self, half: u64) -> Time {
        let cycle = Time::ZERO + self.line.span(self.line.start_of(half / 2));
        let middle = self.line.span(self.line.cycle()).as_ps() / 2;
        if half.is_multiple_of(2) { cycle } else { cycle + Span::from_ps(middle) }
    }

    /// The first half cycle that begins at `time` or later.
    fn half_from(&self, time: Time) -> u64 {
        let cycle = self.line.cycle_of(self.line.ticks_of(time)).saturating_sub(1);
        (2 * cycle..2 * cycle + 6).find(|&half| self.start_of(half) >= time).unwrap_or(NEVER)
    }

    /// The message in what has come in on a wire: the number of the node at its other end, or 0 from the switch.
    fn decode(&self, wire: u32, bytes: &[u8]) -> Option<Message> {
        let (body, checksum) = bytes.split_last_chunk::<CHECKSUM>()?;
        if crc32fast::hash(body).to_le_bytes() != *checksum {
            return None;
        }
        let message = Message::decode(body, self.nodes)?;
        let is_wire = match message.packet() {
            Some(packet) if self.place == self.nodes => u32::from(packet.source) == wire,
            _ => wire == 0,
        };
        (message.to == self.place && is_wire).then_some(message)
    }
}

impl node::Node for Single {
    fn next(&self) -> Time {
        match self.instance.next() {
            NEVER => Time::NEVER,
            half => self.start_of(half),
        }
    }

    fn offer(&mut self, flow: &Flow) {
        self.instance.offer(flow);
    }

    fn receive(&mut self, wire: u32, at: Time, bytes: &[u8]) -> Option<Unit> {
        let Some(message) = self.decode(wire, bytes) else {
            self.malformed += 1;
            return None;
        };
        let mut heard = message;
        heard.at = self.half_from(at);
        self.instance.take(&mut vec![heard]);
        message.packet().as_ref().map(unit)
    }

    fn run(&mut self, until: Time, send: &mut dyn FnMut(node::Message<'_>)) {
        let half = self.half_from(until);
        self.instance.run(half, &mut self.out);
        let sent: Vec<_> = self.out.drain().collect();
        for (to, message) in sent {
            let mut bytes = message.encode();
            bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
            let packet = message.packet();
            let is_own = |packet: &Packet| u32::from(packet.source) == self.place;
            let payload = packet.filter(is_own).map(|packet| {
                let (full, header) = self.sizes;
                let header::Payload { offset, length, .. } = header::payload(&packet, full, header);
                let flow = named(&packet);
                node::Payload { flow, offset: offset.get(), bytes: length.get() as u32 }
            });
            send(node::Message {
                to,
                wire: if message.to == self.nodes { self.place } else { 0 },
                at: self.start_of(message.at),
                bytes: &bytes,
                unit: packet.as_ref().map(unit),
                payload,
            });
        }
    }

    fn endings(&mut self, endings: &mut Vec<Ending>) {
        self.instance.report(&mut self.ends);
        endings.extend(self.ends.drain(..).map(|end| Ending {
            flow: FlowName {
                src: NodeId::new(end.source.into()),
                dst: NodeId::new(end.destination.into()),
                number: end.number,
            },
            at: Time::ZERO + self.line.span(end.at) + self.constant,
            failure: None,
        }));
    }

    fn unexpected(&self) -> u64 {
        self.malformed + self.instance.unexpected()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ::rack::{Class, Fabric, FlowId};
    use proptest::prelude::*;

    use super::*;
    use crate::Rack;
    use crate::config::{Config, SwitchTable};

    const NODES: u32 = 8;

    fn plan(switch: SwitchTable) -> Plan {
        let header = Bytes::new(8);
        Config { nodes: NODES, switch, header, ..Config::default() }.plan().unwrap()
    }

    /// Three flows of each node, two of them to the same.
    fn flows() -> Vec<Flow> {
        let flow = |id: u32| Flow {
            id: FlowId::new(id.into()),
            src: NodeId::new(id / 3),
            dst: NodeId::new((id / 3 + 1 + id % 3 / 2) % NODES),
            size: Bytes::new(100 + 1_234 * u64::from(id % 5)),
            start: Time::from_ps(u64::from(id % 7) * 123_457),
            class: Class::default(),
        };
        (0..3 * NODES).map(flow).collect()
    }

    #[derive(Default)]
    struct Ends(BTreeMap<u64, Time>);

    impl ::rack::Probe for Ends {
        fn completed(&mut self, end: &::rack::Completion<'_>) -> std::ops::ControlFlow<()> {
            self.0.insert(end.flow.id.get(), end.end);
            std::ops::ControlFlow::Continue(())
        }
    }

    /// In a rack of one value.
    fn whole(plan: &Plan, flows: &[Flow]) -> BTreeMap<u64, Time> {
        let (mut rack, mut ends) = (Rack::new(plan.clone(), 1), Ends::default());
        for flow in flows {
            rack.advance(flow.start, &mut ends);
            rack.offer(flow);
        }
        rack.advance(Time::NEVER, &mut ends);
        ends.0
    }

    /// By instances, each message handed over when it is there.
    fn taken_apart(plan: &Plan, flows: &[Flow]) -> BTreeMap<u64, Time> {
        let mut nodes = Rack::new(plan.clone(), 1).apart().unwrap().nodes;
        let (mut ids, mut numbers) = (BTreeMap::new(), BTreeMap::new());
        let (mut flows, mut under_way) = (flows.iter().peekable(), Vec::new());
        let mut endings = Vec::new();
        loop {
            let first = nodes.iter().map(|node| node.next()).min().unwrap();
            let start = flows.peek().map_or(Time::NEVER, |flow| flow.start);
            let now = first.min(start);
            if now == Time::NEVER {
                break;
            }
            for flow in flows.by_ref().take(usize::from(start == now)) {
                let number: &mut u32 = numbers.entry((flow.src, flow.dst)).or_default();
                ids.insert((flow.src, flow.dst, *number), flow.id.get());
                *number += 1;
                let node = &mut nodes[flow.src.index()];
                node.run(now, &mut |_| panic!("there was nothing to do"));
                node.offer(flow);
            }
            for node in &mut nodes {
                node.run(if start == now { now } else { now + Span::from_ps(1) }, &mut |sent| {
                    assert!(sent.at > now && sent.unit.is_some() >= sent.payload.is_some());
                    under_way.push((sent.to, sent.wire, sent.at, sent.bytes.to_vec(), sent.unit));
                });
                node.endings(&mut endings);
            }
            for (to, wire, at, bytes, unit) in under_way.drain(..) {
                assert_eq!(nodes[to].receive(wire, at, &bytes), unit);
            }
        }
        assert_eq!(nodes.iter().map(|node| node.unexpected()).sum::<u64>(), 0);
        endings.iter().map(|e| (ids[&(e.flow.src, e.flow.dst, e.flow.number)], e.at)).collect()
    }

    #[test]
    fn nodes_apart_end_flows_when_the_rack_does() {
        let chip = SwitchTable::Scoc(crate::ChipConfig::default());
        let plan = plan(chip);
        let mut flows = flows();
        flows.sort_by_key(|flow| flow.start);
        let expected = whole(&plan, &flows);
        assert_eq!(expected.len(), flows.len());
        assert_eq!(taken_apart(&plan, &flows), expected);
    }

    #[test]
    fn where_nodes_cannot_count_their_room_nothing_is_taken_apart() {
        let crrd = plan(SwitchTable::Crrd(crate::CrrdTable::default()));
        assert!(Rack::new(crrd, 1).apart().is_none());
    }

    proptest! {
        #[test]
        fn damaged_messages_are_refused_and_counted(flip in 0usize..8 * 61) {
            let plan = plan(SwitchTable::Scoc(crate::ChipConfig::default()));
            let mut nodes = Rack::new(plan, 1).apart().unwrap().nodes;
            let mut sent = Vec::new();
            nodes[0].offer(&flows()[0]);
            nodes[0].run(Time::from_ps(1_000_000), &mut |message| {
                sent.push((message.wire, message.at, message.bytes.to_vec()));
            });
            let (wire, at, mut bytes) = sent.swap_remove(0);
            let switch = &mut nodes[NODES as usize];
            prop_assert_eq!(switch.receive(wire + 1, at, &bytes), None);
            let bits = bytes.len() * 8;
            bytes[flip % bits / 8] ^= 1 << (flip % 8);
            prop_assert_eq!(switch.receive(wire, at, &bytes), None);
            prop_assert_eq!(switch.unexpected(), 2);
        }
    }
}
