//! What leaves and spines do, as the program of the engine's switches.
//!
//! A node's packet comes to its leaf and is kept there until it goes on the line of its destination;
//! on the way between, its segments are packets of the program's own. Messages of two leaves take
//! one spine, so that they stay in order.

use ::rack::NodeId;
use ::rack::topology::{PortId, Topology, Vertex};
use kernel::{Bytes, Calendar, Rate, Ring, Span, Time};
use packets::{FlowKey, Handle, Hop, Kind, Marks, Orders, Packet, Program, Verdict};
use serde_json::{Map, Value, json};

use super::Plan;
use super::egress::Egress;
use super::ingress::{Held, Ingress};
use super::layout::{Layout, Role};
use super::message::{Message, SIZE, Say, Segment};
use super::spine::Clocked;

/// Bytes of a packet that are there when a cut-through switch of the engine hears of it.
pub(super) const HEADER: Bytes = Bytes::new(64);

/// What is due at an instant.
#[derive(Clone, Copy, Debug)]
enum Task {
    /// A node's packet is in its leaf whole.
    Store { leaf: u16, held: Held },
    /// A switch is clocked: [`unit`].
    Cycle(u32),
    /// A packet goes to the queue of a port: out of a spine, or whole again out of a leaf.
    Emit(Handle, PortId),
    /// The same for a node's packet.
    Deliver(Handle, PortId),
    /// A leaf hears that an input of a switch has room for so many more.
    Room { leaf: u16, unit: u32, count: u16 },
}

/// The two switches of a spine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Plane {
    Data,
    Control,
}

/// The index of a switch.
fn unit(spine: usize, plane: Plane) -> usize {
    2 * spine + plane as usize
}

/// What was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Counts {
    segments: u64,
    requests: u64,
    credits: u64,
    acknowledgments: u64,
    dropped: u64,
    marked: u64,
    queue_max: u32,
    spine_max: usize,
}

/// All leaves and spines.
#[derive(Clone, Debug)]
pub struct Switches {
    layout: Layout,
    rate: Rate,
    cable: Span,
    leaf_latency: Span,
    spine_latency: Span,
    queue_limit: u32,
    /// Zero: never.
    mark_from: u32,
    ingress: Ingress,
    egress: Egress,
    /// [`unit`].
    units: Vec<Clocked>,
    agenda: Calendar<Task>,
    /// Handles by their number.
    handles: Vec<Option<Handle>>,
    /// `leaf * spines + spine`: messages for which the ETE switch's input has room.
    message_credits: Vec<u32>,
    /// The same: messages that wait for that.
    outbox: Vec<Ring<Packet>>,
    /// Packets of nodes that are kept, on their way in, and on their way out.
    kept: usize,
    entering: usize,
    leaving: usize,
    /// Segments and messages under way.
    under_way: usize,
    counts: Counts,
}

fn small(bytes: Bytes) -> u32 {
    u32::try_from(bytes.get()).expect("the plan bounds what is counted in 32 bits")
}

impl Switches {
    /// Idle leaves and spines. `seed` is that of all chance in them.
    #[must_use]
    pub fn new(plan: &Plan, topology: &Topology, seed: u64) -> Self {
        let config = &plan.config;
        let layout = Layout::new(config, topology);
        let Layout { leaves, nodes, spines, .. } = layout;
        let switch = |unit: usize| {
            let table = if unit.is_multiple_of(2) { &plan.spine } else { &plan.control };
            // Each spine's chance is its own.
            Clocked::new(table, leaves, seed.wrapping_add(unit as u64))
        };
        let units: Vec<Clocked> = (0..2 * spines).map(switch).collect();
        let places = |plane| {
            let places = units[unit(0, plane)].places();
            places.map(|places| u32::try_from(places).expect("the plan bounds a memory"))
        };
        let messages = places(Plane::Control).expect("an ETE input has a bound");
        let segment = small(config.segment) as u16;
        Self {
            rate: config.line_rate,
            cable: config.cable,
            leaf_latency: config.leaf_latency,
            spine_latency: plan.spine_latency,
            queue_limit: small(config.queue),
            mark_from: small(config.mark_from),
            ingress: Ingress::new((leaves, nodes, spines), segment, places(Plane::Data)),
            egress: Egress::new(nodes, leaves, small(config.credit)),
            agenda: Calendar::new(),
            handles: Vec::new(),
            message_credits: vec![messages; leaves * spines],
            outbox: vec![Ring::new(); leaves * spines],
            kept: 0,
            entering: 0,
            leaving: 0,
            under_way: 0,
            counts: Counts::default(),
            layout,
            units,
        }
    }

    /// How much of a packet's time on the line is still to come when the engine tells of it, and how
    /// much is past.
    #[inline]
    fn on_line(&self, size: u16) -> (Span, Span) {
        let size = Bytes::new(size.into());
        let past = self.rate.send_time(size.min(HEADER));
        (self.rate.send_time(size) - past, past)
    }

    #[inline]
    fn plan(&mut self, at: Time, task: Task, switch: Vertex, orders: &mut Orders) {
        self.agenda.push(at, task);
        orders.wake_at(switch, at);
    }

    #[inline]
    fn remember(&mut self, handle: Handle) {
        let number = handle.get() as usize;
        if self.handles.len() <= number {
            self.handles.resize(number + 1, None);
        }
        self.handles[number] = Some(handle);
    }

    #[inline]
    fn handle(&self, number: u32) -> Handle {
        self.handles[number as usize].expect("a packet is known before it is named")
    }

    /// A node's packet has come to its leaf.
    fn enters(
        &mut self,
        leaf: usize,
        hop: &Hop,
        packet: &mut Packet,
        orders: &mut Orders,
    ) -> Verdict {
        let held = Held { packet: hop.handle.get(), dst: packet.dst, size: packet.wire };
        let waiting = self.ingress.bytes(leaf, held.dst);
        if waiting + u32::from(held.size) > self.queue_limit {
            self.counts.dropped += 1;
            return Verdict::Drop;
        }
        if self.mark_from > 0 && waiting > self.mark_from && packet.marks.contains(Marks::ECT) {
            packet.marks.insert(Marks::CE);
            self.counts.marked += 1;
        }
        self.ingress.take_room(leaf, held);
        self.counts.queue_max = self.counts.queue_max.max(waiting + u32::from(held.size));
        self.remember(hop.handle);
        self.kept += 1;
        self.entering += 1;
        let (rest, _) = self.on_line(held.size);
        let task = Task::Store { leaf: leaf as u16, held };
        self.plan(orders.now() + rest + self.leaf_latency, task, hop.switch, orders);
        Verdict::Keep
    }

    /// A node's packet is in its queue: it asks.
    fn store(&mut self, leaf: usize, held: Held, orders: &mut Orders) {
        self.entering -= 1;
        self.ingress.store(leaf, held);
        let there = self.layout.leaf_of(held.dst);
        if there == leaf {
            self.egress.request(leaf, held.dst, held.size);
            return self.grant(held.dst, orders);
        }
        let (leaf, node) = (leaf as u16, held.dst.get() as u16);
        let message = Message { say: Say::Request, leaf, node, size: held.size };
        self.counts.requests += 1;
        self.tell(usize::from(leaf), there, message, orders);
    }

    /// Gives a node's credit to those who ask.
    fn grant(&mut self, node: NodeId, orders: &mut Orders) {
        let here = self.layout.leaf_of(node);
        while let Some((leaf, size)) = self.egress.grant(node) {
            if leaf == here {
                self.pass_locally(leaf, node, orders);
                continue;
            }
            let message =
                Message { say: Say::Credit, leaf: leaf as u16, node: node.get() as u16, size };
            self.counts.credits += 1;
            self.tell(here, leaf, message, orders);
        }
    }

    /// A packet between two nodes of a leaf goes on.
    fn pass_locally(&mut self, leaf: usize, node: NodeId, orders: &mut Orders) {
        let (held, number) = self.ingress.granted(leaf, node);
        let packet = (number, held.packet);
        self.egress.arrived((leaf, node), packet, held.size, orders.now());
        self.go_on(leaf, node, orders);
    }

    /// Sends a message from leaf to leaf, or keeps it until its way has room.
    fn tell(&mut self, from: usize, to: usize, message: Message, orders: &mut Orders) {
        let spine = (from + to) % self.layout.spines;
        let packet = message.packet(self.layout.node_of(from), self.layout.node_of(to));
        self.under_way += 1;
        let line = from * self.layout.spines + spine;
        self.outbox[line].push(packet);
        self.flush(from, spine, orders);
    }

    fn flush(&mut self, leaf: usize, spine: usize, orders: &mut Orders) {
        let line = leaf * self.layout.spines + spine;
        while self.message_credits[line] > 0
            && let Some(packet) = self.outbox[line].pop()
        {
            self.message_credits[line] -= 1;
            orders.send(self.layout.uplink(leaf, spine), packet);
        }
    }

    /// Lets a leaf put segments on its lines.
    fn spray(&mut self, leaf: usize, orders: &mut Orders) {
        while let Some((segment, spine)) = self.ingress.next_segment(leaf) {
            self.counts.segments += 1;
            self.under_way += 1;
            let packet = segment.packet(self.layout.node_of(leaf));
            orders.send(self.layout.uplink(leaf, spine), packet);
        }
    }

    /// A leaf hears a message.
    fn hear(&mut self, packet: &Packet, orders: &mut Orders) {
        let Message { say, leaf, node, size } = Message::of(packet);
        self.under_way -= 1;
        let (leaf, node) = (usize::from(leaf), NodeId::new(node.into()));
        match say {
            Say::Request => {
                self.egress.request(leaf, node, size);
                self.grant(node, orders);
            }
            Say::Credit => {
                let (held, number) = self.ingress.granted(leaf, node);
                self.ingress.send(leaf, held, number);
                self.spray(leaf, orders);
            }
            Say::Acknowledgment => self.ingress.acknowledged(leaf, node, size),
        }
    }

    /// A segment is at the leaf of its node.
    fn gather(&mut self, packet: &Packet, orders: &mut Orders) {
        let Segment { leaf, node, number, packet, size } = Segment::of(packet);
        self.under_way -= 1;
        let (rest, _) = self.on_line(size);
        let pair = (usize::from(leaf), node);
        self.egress.arrived(pair, (number, packet), size, orders.now() + rest);
        self.go_on(usize::from(leaf), node, orders);
    }

    /// Lets packets of a queue go on that are whole and whose turn it is.
    fn go_on(&mut self, leaf: usize, node: NodeId, orders: &mut Orders) {
        let there = self.layout.leaf_of(node);
        while let Some(whole) = self.egress.next_whole(leaf, node) {
            self.leaving += 1;
            let task = Task::Deliver(self.handle(whole.packet), self.layout.node_port(node));
            let switch = self.layout.leaf_vertex(there);
            self.plan(whole.at + self.leaf_latency, task, switch, orders);
            if there == leaf {
                self.ingress.acknowledged(leaf, node, whole.size);
                continue;
            }
            let (from, size) = (leaf as u16, whole.size);
            let node = node.get() as u16;
            let message = Message { say: Say::Acknowledgment, leaf: from, node, size };
            self.counts.acknowledgments += 1;
            self.tell(there, leaf, message, orders);
        }
    }

    /// A segment or message has come to a spine.
    fn cross(&mut self, spine: usize, hop: &Hop, packet: &Packet, orders: &mut Orders) -> Verdict {
        let plane = if packet.kind == Kind::Data { Plane::Data } else { Plane::Control };
        let (from, to) = (self.layout.far(hop.from), self.layout.far(hop.to));
        let unit = unit(spine, plane);
        let (_, past) = self.on_line(packet.wire);
        let now = orders.now();
        let size = Bytes::new(packet.wire.into());
        let mut inside = switching::Packet::new(from, to, size, switching::Ticks::default());
        inside.tag = hop.handle.get();
        self.remember(hop.handle);
        if let Some(at) = self.units[unit].admit(inside, now - past, now) {
            self.plan(at, Task::Cycle(unit as u32), hop.switch, orders);
        }
        self.counts.spine_max = self.counts.spine_max.max(self.units[unit].held());
        Verdict::Keep
    }

    /// Clocks a switch.
    fn clock(&mut self, unit: usize, orders: &mut Orders) {
        let (now, spine) = (orders.now(), unit / 2);
        let switch = self.layout.spine_vertex(spine);
        if let Some(next) = self.units[unit].step() {
            self.plan(next, Task::Cycle(unit as u32), switch, orders);
        }
        for index in 0..self.units[unit].departures().len() {
            let switching::Departure { packet, at } = self.units[unit].departures()[index];
            let out = self.layout.downlink(spine, usize::from(packet.destination));
            let at = self.units[unit].time(at).max(now) + self.spine_latency;
            self.plan(at, Task::Emit(self.handle(packet.tag), out), switch, orders);
        }
        // A leaf hears of free places as long after as its cable is.
        for leaf in 0..self.layout.leaves {
            let count = self.units[unit].freed(leaf);
            if count > 0 {
                let task = Task::Room { leaf: leaf as u16, unit: unit as u32, count: count as u16 };
                self.plan(now + self.cable, task, self.layout.leaf_vertex(leaf), orders);
            }
        }
    }

    fn perform(&mut self, task: Task, orders: &mut Orders) {
        match task {
            Task::Store { leaf, held } => self.store(usize::from(leaf), held, orders),
            Task::Cycle(unit) => self.clock(unit as usize, orders),
            Task::Emit(handle, port) => orders.emit(handle, port),
            Task::Deliver(handle, port) => {
                self.leaving -= 1;
                self.kept -= 1;
                orders.emit(handle, port);
            }
            Task::Room { leaf, unit, count } => {
                let (leaf, spine) = (usize::from(leaf), unit as usize / 2);
                if unit.is_multiple_of(2) {
                    self.ingress.credit(leaf, spine, count.into());
                    self.spray(leaf, orders);
                } else {
                    self.message_credits[leaf * self.layout.spines + spine] += u32::from(count);
                    self.flush(leaf, spine, orders);
                }
            }
        }
    }

    /// In the idle rack all credit is back.
    fn check_credits(&self) -> Result<(), String> {
        let lines = self.layout.leaves * self.layout.spines;
        let all = |plane| {
            let places = self.units[unit(0, plane)].places();
            places.map(|places| lines * places)
        };
        let data = self.ingress.credits();
        let messages: usize = self.message_credits.iter().map(|&credits| credits as usize).sum();
        let found = (data, Some(messages));
        let expected = (all(Plane::Data), all(Plane::Control));
        if self.is_idle() && found != expected {
            return Err(format!("credits of {found:?} are back of {expected:?}"));
        }
        Ok(())
    }

    /// Whether nothing happens any more by itself.
    fn is_idle(&self) -> bool {
        self.agenda.is_empty() && self.under_way == 0 && self.egress.is_released()
    }

    fn check_kept(&self) -> Result<(), String> {
        let (waiting, assembling) = (self.ingress.waiting(), self.egress.assembling());
        let found = self.entering + waiting + self.leaving + assembling;
        // What was granted still waits until its leaf hears so.
        let least = self.entering + self.leaving + waiting.max(assembling);
        if self.kept < least || self.kept > found {
            let Self { kept, entering, leaving, .. } = self;
            return Err(format!(
                "{kept} packets are kept: {entering} enter, {waiting} wait, {assembling} are \
                 granted, {leaving} leave"
            ));
        }
        if self.is_idle() && self.kept > 0 {
            return Err(format!("{} packets wait for nothing", self.kept));
        }
        Ok(())
    }
}

impl Program for Switches {
    const WATCHES_LINES: bool = true;
    const SPEAKS: bool = true;

    fn arrives(&mut self, hop: &Hop, packet: &mut Packet, orders: &mut Orders) -> Verdict {
        match self.layout.role(hop.switch) {
            Role::Spine(spine) => self.cross(spine, hop, packet, orders),
            Role::Leaf(_) if packet.flow == FlowKey::NEIGHBOURS => {
                match packet.kind {
                    Kind::Data => self.gather(packet, orders),
                    _ => self.hear(packet, orders),
                }
                Verdict::Absorb
            }
            Role::Leaf(leaf) => self.enters(leaf, hop, packet, orders),
            Role::Node => unreachable!("nodes pass nothing on"),
        }
    }

    fn leaves(&mut self, port: PortId, packet: &Packet, orders: &mut Orders) {
        if packet.flow != FlowKey::NEIGHBOURS {
            self.egress.released(packet.dst, packet.wire);
            return self.grant(packet.dst, orders);
        }
        if packet.kind == Kind::Data
            && let Some((leaf, spine)) = self.layout.as_uplink(port)
        {
            self.ingress.left(leaf, spine);
            self.spray(leaf, orders);
        }
    }

    fn wake(&mut self, _: Vertex, orders: &mut Orders) {
        let soon = orders.now() + Span::from_ps(1);
        while let Some((_, task)) = self.agenda.pop_before(soon) {
            self.perform(task, orders);
        }
    }

    fn check(&self) -> Result<(), String> {
        self.check_kept()?;
        let held: usize = self.units.iter().map(Clocked::held).sum();
        if self.is_idle() && held + self.egress.asks() > 0 {
            let asks = self.egress.asks();
            return Err(format!("{held} packets in spines and {asks} requests wait for nothing"));
        }
        self.check_credits()?;
        self.units.iter().try_for_each(Clocked::check)
    }

    fn details(&self, _: Time) -> Map<String, Value> {
        let counts = &self.counts;
        let steps: u64 = self.units.iter().map(|unit| unit.steps).sum();
        let values = [
            ("segments", json!(counts.segments)),
            ("requests", json!(counts.requests)),
            ("credits", json!(counts.credits)),
            ("acknowledgments", json!(counts.acknowledgments)),
            ("message_bytes", json!(SIZE)),
            ("dropped_at_leaves", json!(counts.dropped)),
            ("marked_at_leaves", json!(counts.marked)),
            ("leaf_queue_max_bytes", json!(counts.queue_max)),
            ("spine_max_packets", json!(counts.spine_max)),
            ("spine_cycles", json!(steps)),
        ];
        values.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}
