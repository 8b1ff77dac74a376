//! The rack cut into instances: one for each node and one for the switch, which exchange messages alone.
//!
//! In a rack that is one value a node offers a packet and is answered at once, so it can only be one shard.
//! Instances count the room of their input instead, which the switch tells them of as
//! it comes free (§6.A: credits). Results are the same: the answer of an input whose room is its own is what
//! its node can count. Hiera and CRRD, where room depends on others, have no such instances.
//!
//! The instants of [`rack::shards`] are half cycles: in the first half of a cycle nodes send, in the second
//! the switch acts on what they sent, and what it sends is there in the next cycle. So messages are under way
//! for half a cycle, whatever the cables, whose time is added to the ends of flows.

use ::rack::shards::{NEVER, Outbox, Shard};
use ::rack::{Flow, Problem};
use kernel::Time;
use switching::{Departure, Line, Packet, Switch, Ticks};

use super::header::{self, HEADER};
use super::hosts::{Hosts, Uplink};
use super::receivers::{End, Receivers};
use super::senders::Numbers;
use crate::AnySwitch;
use crate::config::{Plan, SwitchPlan};

/// What one instance sends another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// Whom it is for: a node, or, beyond the last of them, the switch.
    pub to: u32,
    /// When it is there, in half cycles.
    pub at: u64,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    /// To the switch: a packet.
    Enters(Packet),
    /// To a node: a packet, and when its first bit leaves the switch.
    Leaves(Packet, Ticks),
    /// To a node: its input has room for so many packets more.
    Room(u32),
}

/// Bytes of a message: what it is, whom it is for and when it is there, one number more, and a header.
const MESSAGE: usize = 21 + HEADER;

impl Message {
    /// The packet that it brings.
    pub(super) fn packet(&self) -> Option<Packet> {
        match self.what {
            What::Enters(packet) | What::Leaves(packet, _) => Some(packet),
            What::Room(_) => None,
        }
    }

    /// Its bytes: 57, or 21 without a packet; numbers have their lowest byte first.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (kind, number, packet) = match self.what {
            What::Enters(packet) => (0, 0, Some(packet)),
            What::Leaves(packet, at) => (1, at.get(), Some(packet)),
            What::Room(count) => (2, count.into(), None),
        };
        let mut bytes = Vec::with_capacity(MESSAGE);
        bytes.push(kind);
        bytes.extend(self.to.to_le_bytes());
        bytes.extend(self.at.to_le_bytes());
        bytes.extend(number.to_le_bytes());
        bytes.extend(packet.iter().flat_map(header::encode));
        bytes
    }

    /// The message of these bytes, in a rack of so many nodes; `None` if they are none.
    #[must_use]
    pub fn decode(bytes: &[u8], nodes: u32) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<21>()?;
        let long =
            |at: usize| head[at..at + 8].iter().rev().fold(0, |all, &b| all << 8 | u64::from(b));
        let to = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
        let (at, number) = (long(5), long(13));
        let packet = || header::decode(rest, nodes);
        let what = match head[0] {
            0 if to == nodes && number == 0 => What::Enters(packet()?),
            1 => What::Leaves(
                packet().filter(|packet| u32::from(packet.destination) == to)?,
                Ticks::new(number),
            ),
            2 if to < nodes && rest.is_empty() => What::Room(u32::try_from(number).ok()?),
            _ => return None,
        };
        Some(Self { to, at, what })
    }
}

/// A node, with the room that it knows of.
#[derive(Clone, Debug)]
struct Node {
    number: u32,
    hosts: Hosts,
    receivers: Receivers,
    /// Packets for which its input has room; none: without bound.
    credits: Option<u32>,
    room_max: u32,
}

/// The switch.
#[derive(Clone, Debug)]
struct Middle {
    switch: AnySwitch,
    /// By input: places free, as far as its node was told.
    told: Vec<usize>,
    departures: Vec<Departure>,
}

#[derive(Clone, Debug)]
enum Role {
    Node(Box<Node>),
    Switch(Box<Middle>),
}

/// One instance.
#[derive(Clone, Debug)]
pub struct Instance {
    role: Role,
    line: Line,
    nodes: u32,
    /// The next cycle.
    cycle: u64,
    /// Messages that have not been acted on.
    waiting: Vec<Message>,
    ends: Vec<End>,
    /// Messages that made no sense here: dropped.
    unexpected: u64,
    is_bounded: bool,
}

/// An instance for each node, in order, and one for the switch.
///
/// # Errors
/// If the room for a packet in this switch depends on more than the input that it comes by.
pub fn instances(plan: &Plan, seed: u64) -> Result<Vec<Instance>, Problem> {
    if matches!(plan.switch, SwitchPlan::Hiera(_) | SwitchPlan::Crrd(_)) {
        let message = "the room for a packet in hiera and crrd depends on what other inputs sent, so that \
                       nodes cannot count it; expected scoc, flat or output-queued";
        return Err(Problem::new("switch.kind", message));
    }
    let (nodes, line) = (plan.config.nodes, plan.switch.line());
    let switch = plan.switch.build(nodes as usize, seed);
    let room = switch.places_free(0);
    let is_bounded = room != usize::MAX;
    let new = |role| Instance {
        role,
        line,
        nodes,
        cycle: 0,
        waiting: Vec::new(),
        ends: Vec::new(),
        unexpected: 0,
        is_bounded,
    };
    let node = |number| Node {
        number,
        hosts: Hosts::new(plan, Numbers::OfPair),
        receivers: Receivers::new(line, plan.config.header, nodes as usize),
        credits: is_bounded.then_some(room as u32),
        room_max: room as u32,
    };
    let mut all: Vec<_> = (0..nodes).map(|n| new(Role::Node(Box::new(node(n))))).collect();
    let middle = Middle { switch, told: vec![room; nodes as usize], departures: Vec::new() };
    all.push(new(Role::Switch(Box::new(middle))));
    Ok(all)
}

/// The way into the switch of a node that counts the room that it was told of.
struct Counting<'a> {
    credits: &'a mut Option<u32>,
    at: u64,
    nodes: u32,
    out: &'a mut Outbox<Message>,
}

impl Uplink for Counting<'_> {
    fn has_room(&mut self, _: &Packet) -> bool {
        *self.credits != Some(0)
    }

    fn has_room_by_output(&self) -> bool {
        false
    }

    fn send(&mut self, packet: Packet) {
        *self.credits = self.credits.map(|credits| credits - 1);
        let message = Message { to: self.nodes, at: self.at, what: What::Enters(packet) };
        self.out.send(self.nodes as usize, self.at, message);
    }
}

impl Instance {
    /// Gives a node a flow of its own, once its start has come. Gives the flow's number among those to its
    /// destination, by which [`End`] names it.
    ///
    /// # Panics
    /// If this is not the instance of the flow's source.
    pub fn offer(&mut self, flow: &Flow) -> u32 {
        match &mut self.role {
            Role::Node(node) if node.number == flow.src.get() => node.hosts.add(flow, self.cycle),
            _ => panic!("{:?} begins at another node", flow.id),
        }
    }

    /// The half cycle in which a node can send what starts at `time`.
    #[must_use]
    pub fn instant_of(&self, time: Time) -> u64 {
        2 * self.line.cycle_of(self.line.ticks_of(time))
    }

    /// Messages that made no sense here, so far.
    #[must_use]
    pub fn unexpected(&self) -> u64 {
        let packets = match &self.role {
            Role::Node(node) => node.receivers.unexpected,
            Role::Switch(_) => 0,
        };
        self.unexpected + packets
    }

    fn is_switch(&self) -> bool {
        matches!(self.role, Role::Switch(_))
    }

    /// The half cycle in which it acts next, if it has anything to do.
    fn instant(&self) -> u64 {
        2 * self.cycle + u64::from(self.is_switch())
    }

    fn has_work(&self) -> bool {
        match &self.role {
            Role::Node(node) => !node.hosts.is_idle(),
            Role::Switch(middle) => !middle.switch.is_idle(),
        }
    }

    /// Goes on to a later cycle; nothing happens here before it.
    fn skip_to(&mut self, cycle: u64) {
        match &mut self.role {
            Role::Node(node) => node.hosts.skip_to(cycle),
            Role::Switch(middle) => middle.switch.skip_to(cycle),
        }
        self.cycle = cycle;
    }

    /// Takes the messages that are there by now.
    fn take_due(&mut self, now: u64) -> Vec<Message> {
        let mut due: Vec<_> = self.waiting.extract_if(.., |message| message.at <= now).collect();
        // The same order whoever sent first.
        due.sort_by_key(|message| match message.what {
            What::Enters(packet) | What::Leaves(packet, _) => (1, packet.source),
            What::Room(_) => (0, 0),
        });
        due
    }

    fn step(&mut self, out: &mut Outbox<Message>) {
        let now = self.instant();
        let due = self.take_due(now);
        match &mut self.role {
            Role::Node(node) => {
                self.unexpected += node.act(&due, &mut self.ends);
                let Node { hosts, credits, .. } = &mut **node;
                let mut uplink = Counting { credits, at: now + 1, nodes: self.nodes, out };
                hosts.feed(self.cycle, &mut uplink);
            }
            Role::Switch(middle) => {
                self.unexpected += middle.act(&due, (now, self.is_bounded), out)
            }
        }
        self.cycle += 1;
    }
}

impl Node {
    /// Acts on messages. Gives how many made no sense.
    fn act(&mut self, messages: &[Message], ends: &mut Vec<End>) -> u64 {
        let mut unexpected = 0;
        for message in messages {
            match (message.what, &mut self.credits) {
                (What::Leaves(packet, at), _) => {
                    if let Some(end) = self.receivers.receive(&packet, at) {
                        self.receivers.close(&end);
                        ends.push(end);
                    }
                }
                (What::Room(count), Some(credits)) if *credits + count <= self.room_max => {
                    *credits += count;
                }
                _ => unexpected += 1,
            }
        }
        unexpected
    }
}

impl Middle {
    /// Advances by a cycle. Gives how many messages made no sense.
    fn act(
        &mut self,
        messages: &[Message],
        (now, is_bounded): (u64, bool),
        out: &mut Outbox<Message>,
    ) -> u64 {
        let mut unexpected = 0;
        for message in messages {
            match message.what {
                What::Enters(packet) if self.switch.has_room(&packet) => {
                    self.told[usize::from(packet.source)] -= usize::from(is_bounded);
                    self.switch.admit(packet);
                }
                _ => unexpected += 1,
            }
        }
        self.departures.clear();
        self.switch.step(&mut self.departures);
        let mut send = |to: usize, what| {
            out.send(to, now + 1, Message { to: to as u32, at: now + 1, what });
        };
        for Departure { packet, at } in &self.departures {
            send(packet.destination.into(), What::Leaves(*packet, *at));
        }
        for input in 0..if is_bounded { self.told.len() } else { 0 } {
            let free = self.switch.places_free(input);
            if free > self.told[input] {
                send(input, What::Room((free - self.told[input]) as u32));
                self.told[input] = free;
            }
        }
        unexpected
    }
}

impl Shard for Instance {
    type Message = Message;
    type Report = End;

    fn next(&self) -> u64 {
        if self.has_work() {
            return self.instant();
        }
        let first = self.waiting.iter().map(|message| message.at).min();
        first.map_or(NEVER, |first| first.max(self.instant()))
    }

    fn take(&mut self, messages: &mut Vec<Message>) {
        self.waiting.append(messages);
    }

    fn run(&mut self, end: u64, out: &mut Outbox<Message>) -> u64 {
        let mut steps = 0;
        loop {
            let next = self.next();
            if next >= end {
                break;
            }
            if next / 2 > self.cycle {
                self.skip_to(next / 2);
            }
            self.step(out);
            steps += 1;
        }
        let cycle = (end + u64::from(!self.is_switch())) / 2;
        if !self.has_work() && end != NEVER && self.waiting.is_empty() && cycle > self.cycle {
            self.skip_to(cycle);
        }
        steps
    }

    fn report(&mut self, reports: &mut Vec<End>) {
        reports.append(&mut self.ends);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::ControlFlow;

    use ::rack::shards::{Shards, Windows};
    use ::rack::{Advance, Class, Completion, Fabric, FlowId, NodeId, Probe};
    use kernel::{Bytes, Rate, Stream};

    use super::*;
    use crate::config::{Config, FlatTable, HieraTable, OutputQueuedTable, SwitchTable};
    use crate::{ChipConfig, Rack};

    const NODES: u32 = 16;

    #[derive(Default)]
    struct Ends(BTreeMap<u64, Time>);

    impl Probe for Ends {
        fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
            self.0.insert(completion.flow.id.get(), completion.end);
            ControlFlow::Continue(())
        }
    }

    fn flows() -> Vec<Flow> {
        let mut stream = Stream::new(3, "test/flows", 0);
        (0..300)
            .map(|id| {
                let src = stream.below(NODES.into()) as u32;
                // Half of them to one node, and all at once.
                let dst =
                    if id % 2 == 0 && src != 0 { 0 } else { (src + 1 + id as u32 % 15) % NODES };
                Flow {
                    id: FlowId::new(id),
                    src: NodeId::new(src),
                    dst: NodeId::new(dst),
                    size: Bytes::new(1 + stream.below(9_000)),
                    start: Time::ZERO,
                    class: Class::default(),
                }
            })
            .collect()
    }

    fn plan(switch: SwitchTable) -> Plan {
        let header = Bytes::new(8);
        Config { nodes: NODES, switch, header, ..Config::default() }.plan().unwrap()
    }

    fn switches() -> [SwitchTable; 2] {
        let port_rate = Rate::from_bps(36_320_000_000);
        let flat = FlatTable { port_rate, ..FlatTable::default() };
        [SwitchTable::Scoc(ChipConfig::default()), SwitchTable::Flat(flat)]
    }

    /// Ends of flows, from a rack of one value; every message through its bytes or not.
    fn whole(plan: &Plan, uses_bytes: bool) -> BTreeMap<u64, Time> {
        let (mut rack, mut ends) = (Rack::new(plan.clone(), 1), Ends::default());
        rack.set_wire(uses_bytes).unwrap();
        flows().iter().for_each(|flow| rack.offer(flow));
        assert_eq!(rack.advance(Time::NEVER, &mut ends), Advance::Idle);
        rack.check().unwrap();
        ends.0
    }

    /// The instant of an end as a rack of one value tells it.
    fn time(plan: &Plan, end: &End) -> Time {
        Time::ZERO + plan.switch.line().span(end.at) + plan.config.cable * 2 + plan.latency
    }

    /// Offers all flows; gives their ids by source, destination and number.
    fn offer(all: &mut [Instance]) -> BTreeMap<(u16, u16, u32), u64> {
        let mut ids = BTreeMap::new();
        for flow in flows() {
            let number = all[flow.src.index()].offer(&flow);
            ids.insert((flow.src.get() as u16, flow.dst.get() as u16, number), flow.id.get());
        }
        ids
    }

    #[test]
    fn slow_each_node_an_instance_on_threads_of_their_own_makes_no_difference() {
        for switch in switches() {
            let plan = plan(switch);
            let expected = whole(&plan, false);
            assert_eq!(expected.len(), flows().len());
            assert!(whole(&plan, true) == expected);
            for threads in [1, 2] {
                let mut all = instances(&plan, 1).unwrap();
                let (ids, mut ends) = (offer(&mut all), BTreeMap::new());
                let mut shards = Shards::new(all).on_threads(threads).alone_below(0);
                shards.run(NEVER, Windows::of(1), &mut |told, _| {
                    let named = |end: &End| {
                        (ids[&(end.source, end.destination, end.number)], time(&plan, end))
                    };
                    ends.extend(told.iter().map(named));
                    ControlFlow::Continue(())
                });
                assert!(ends == expected, "{:?}", plan.config.switch);
                assert_eq!(shards.iter().map(Instance::unexpected).sum::<u64>(), 0);
            }
        }
    }

    #[test]
    fn instances_that_exchange_bytes_alone_carry_every_byte() {
        let ideal = SwitchTable::OutputQueued(OutputQueuedTable {});
        for switch in switches().into_iter().chain([ideal.clone()]) {
            let is_ideal = switch == ideal;
            let plan = plan(switch);
            let mut all = instances(&plan, 1).unwrap();
            let ids = offer(&mut all);
            let (mut ends, mut out) = (BTreeMap::new(), Outbox::new(all.len()));
            let (mut told, mut bytes) = (Vec::new(), Bytes::ZERO);
            while let Some(now) = all.iter().map(Shard::next).min().filter(|&now| now != NEVER) {
                let mut under_way: Vec<Vec<u8>> = Vec::new();
                for one in &mut all {
                    one.run(now + 1, &mut out);
                    one.report(&mut told);
                    under_way.extend(out.drain().map(|(_, message)| message.encode()));
                }
                for message in under_way {
                    let message = Message::decode(&message, NODES).unwrap();
                    all[message.to as usize].take(&mut vec![message]);
                }
            }
            for end in &told {
                bytes += end.bytes;
                ends.insert(ids[&(end.source, end.destination, end.number)], time(&plan, end));
            }
            assert!(ends == whole(&plan, false) || is_ideal, "{:?}", plan.config.switch);
            assert_eq!(bytes, flows().iter().map(|flow| flow.size).sum());
        }
    }

    #[test]
    fn messages_that_no_instance_could_send_are_refused_and_unexpected_ones_counted() {
        let plan = plan(SwitchTable::Scoc(ChipConfig::default()));
        let mut packet = Packet::new(1, 2, Bytes::new(100), Ticks::default());
        packet.sequence = 5;
        let leaves = Message { to: 2, at: 4, what: What::Leaves(packet, Ticks::new(7)) };
        let rows = [
            (leaves, true),
            (Message { to: 3, ..leaves }, false),
            (Message { what: What::Enters(packet), ..leaves }, false),
            (Message { to: NODES, at: 5, what: What::Enters(packet) }, true),
            (Message { to: 2, at: 4, what: What::Room(3) }, true),
            (Message { to: NODES, at: 4, what: What::Room(3) }, false),
        ];
        for (message, is_good) in rows {
            let read = Message::decode(&message.encode(), NODES);
            assert_eq!(read, is_good.then_some(message));
            assert_eq!(Message::decode(&message.encode()[1..], NODES), None);
        }
        let mut node = instances(&plan, 1).unwrap().swap_remove(2);
        // A packet in the middle of a flow, more room than there is, and a packet to the switch.
        let wrong = [leaves, rows[4].0, Message { to: 2, ..rows[3].0 }];
        node.take(&mut wrong.to_vec());
        node.run(100, &mut Outbox::new(NODES as usize + 1));
        assert_eq!(node.unexpected(), 3);
        let hiera =
            self::plan(SwitchTable::Hiera(HieraTable { subswitch: 4, ..HieraTable::default() }));
        assert_eq!(instances(&hiera, 1).unwrap_err().key, "switch.kind");
    }
}
