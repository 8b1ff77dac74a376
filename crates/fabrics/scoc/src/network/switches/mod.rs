//! What leaves and spines do, as the program of the engine's switches.
//!
//! A node's packet comes to its leaf, which takes it out of the engine and sends it as segments, packets of
//! the program's own; the leaf of its destination puts it together again of what they say. Messages of two
//! leaves take one spine, so that they stay in order. Leaves and spines know of each other what segments,
//! messages and [`Room`] tell: a value of this type may have the state of all of them, or of those of a part
//! of the network alone. What comes and makes no sense is counted and dropped.

mod account;
mod leaves;
#[cfg(test)]
mod parts;

use ::rack::topology::{PortId, Topology, Vertex};
use kernel::{Bytes, Rate, Ring, Span, Stream, Time};
use packets::{Handle, Hop, Orders, Packet, Program, Verdict};
use serde_json::{Map, Value};

use super::Plan;
use super::agenda::{Agenda, Task, Waiting};
use super::egress::Egress;
use super::ingress::Ingress;
use super::layout::{Layout, Role};
use super::message::{Room, is_message};
use super::spine::Clocked;
use account::Counts;

/// Bytes of a packet that are there when a cut-through switch of the engine hears of it.
pub(super) const HEADER: Bytes = Bytes::new(64);

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

/// All leaves and spines.
#[derive(Clone, Debug)]
pub struct Switches {
    layout: Layout,
    rate: Rate,
    leaf_latency: Span,
    spine_latency: Span,
    queue_limit: u32,
    /// Zero: never.
    mark_from: u32,
    ingress: Ingress,
    egress: Egress,
    /// [`unit()`].
    units: Vec<Clocked>,
    agenda: Agenda,
    /// Whole packets on their way into a leaf and out of one.
    waiting: Waiting,
    /// Segments and messages in spines, by the number of their handles.
    handles: Vec<Option<Handle>>,
    /// Places of an input of the data switches, if there is a bound, and of the ETE switches.
    places: [Option<u32>; 2],
    /// `leaf * spines + spine`: messages for which the ETE switch's input has room.
    message_credits: Vec<u32>,
    /// The same: messages that wait for that.
    outbox: Vec<Ring<Packet>>,
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
            // Each switch's chance is its own.
            let own = Stream::new(seed, "scoc-network/switch", unit as u64).below(u64::MAX);
            Clocked::new(table, leaves, own)
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
            leaf_latency: config.leaf_latency,
            spine_latency: plan.spine_latency,
            queue_limit: small(config.queue),
            mark_from: small(config.mark_from),
            ingress: Ingress::new((leaves, nodes, spines), segment, places(Plane::Data)),
            egress: Egress::new(nodes, leaves, small(config.credit)),
            agenda: Agenda::new(leaves + spines),
            waiting: Waiting::default(),
            handles: Vec::new(),
            places: [places(Plane::Data), Some(messages)],
            message_credits: vec![messages; leaves * spines],
            outbox: vec![Ring::new(); leaves * spines],
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
    fn schedule(&mut self, at: Time, task: Task, switch: Vertex, orders: &mut Orders) {
        self.agenda.push(switch.index() - self.layout.nodes, at, task);
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

    /// A segment or message has come to a spine.
    fn cross(&mut self, spine: usize, hop: &Hop, packet: &Packet, orders: &mut Orders) -> Verdict {
        let plane = if is_message(packet) { Plane::Control } else { Plane::Data };
        let (from, to) = (self.layout.far(hop.from), self.layout.far(hop.to));
        let unit = unit(spine, plane);
        if !self.units[unit].has_room(from, to, packet.size()) {
            self.counts.unexpected += 1;
            return Verdict::Absorb;
        }
        let (_, past) = self.on_line(packet.wire);
        let now = orders.now();
        let size = Bytes::new(packet.wire.into());
        let mut inside = switching::Packet::new(from, to, size, switching::Ticks::default());
        inside.tag = hop.handle.get();
        self.remember(hop.handle);
        if let Some(at) = self.units[unit].admit(inside, now - past, now) {
            self.schedule(at, Task::Cycle(unit as u32), hop.switch, orders);
        }
        self.counts.spine_max = self.counts.spine_max.max(self.units[unit].held());
        Verdict::Keep
    }

    /// Clocks a switch.
    fn clock(&mut self, unit: usize, orders: &mut Orders) {
        let (now, spine) = (orders.now(), unit / 2);
        let switch = self.layout.spine_vertex(spine);
        if let Some(next) = self.units[unit].step() {
            self.schedule(next, Task::Cycle(unit as u32), switch, orders);
        }
        for index in 0..self.units[unit].departures().len() {
            let switching::Departure { packet, at } = self.units[unit].departures()[index];
            let out = self.layout.downlink(spine, usize::from(packet.destination));
            let at = self.units[unit].time(at).max(now) + self.spine_latency;
            self.schedule(at, Task::Emit(self.handle(packet.tag), out), switch, orders);
        }
        // A leaf hears of free places as long after as its cable is (§6.A: credits).
        for leaf in 0..self.layout.leaves {
            let count = self.units[unit].freed(leaf);
            if count > 0 {
                let is_control = unit % 2 == Plane::Control as usize;
                let room = Room { is_control, count: count as u16 };
                self.counts.words += 1;
                orders.tell(self.layout.downlink(spine, leaf), room.word());
            }
        }
    }

    fn perform(&mut self, task: Task, orders: &mut Orders) {
        match task {
            Task::Store { leaf, place } => {
                let packet = self.waiting.take(place);
                self.store(usize::from(leaf), packet, orders);
            }
            Task::Cycle(unit) => self.clock(unit as usize, orders),
            Task::Emit(handle, port) => orders.emit(handle, port),
            Task::Deliver { place, port } => {
                self.counts.delivered += 1;
                orders.send(port, self.waiting.take(place));
            }
        }
    }
}

impl Program for Switches {
    const WATCHES_LINES: bool = true;
    const SPEAKS: bool = true;
    const TELLS: bool = true;

    fn arrives(&mut self, hop: &Hop, packet: &mut Packet, orders: &mut Orders) -> Verdict {
        match self.layout.role(hop.switch) {
            Role::Spine(spine) => self.cross(spine, hop, packet, orders),
            Role::Leaf(leaf) if self.layout.as_uplink(hop.from).is_some() => {
                match is_message(packet) {
                    true => self.hear(leaf, packet, orders),
                    false => self.gather(leaf, packet, orders),
                }
                Verdict::Absorb
            }
            Role::Leaf(leaf) => self.enters(leaf, hop, packet, orders),
            Role::Node => unreachable!("nodes pass nothing on"),
        }
    }

    fn leaves(&mut self, port: PortId, packet: &Packet, orders: &mut Orders) {
        match self.layout.as_uplink(port) {
            Some((leaf, spine)) if !is_message(packet) => {
                self.ingress.left(leaf, spine);
                self.spray(leaf, orders);
            }
            None if self.layout.is_node_port(port) => {
                self.egress.released(packet.dst, packet.wire);
                self.grant(packet.dst, orders);
            }
            _ => {}
        }
    }

    fn wake(&mut self, switch: Vertex, orders: &mut Orders) {
        while let Some(task) = self.agenda.pop(switch.index() - self.layout.nodes, orders.now()) {
            self.perform(task, orders);
        }
    }

    fn hears(&mut self, port: PortId, word: u32, orders: &mut Orders) {
        self.counts.words_heard += 1;
        match self.layout.as_uplink(port).zip(Room::of(word)) {
            Some((line, room)) => self.hear_of_room(line, room, orders),
            None => self.counts.unexpected += 1,
        }
    }

    fn can_be_cut(&self) -> bool {
        true
    }

    fn add_counts(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        for (unit, other) in self.units.iter_mut().zip(&other.units) {
            unit.steps += other.steps;
        }
    }

    /// A leaf never asks again: credit that is lost is lost for ever (§6.A has no word of it).
    fn recovers(&self) -> bool {
        false
    }

    fn check_all<'a>(parts: impl Iterator<Item = &'a Self>) -> Result<(), String> {
        account::check_all(&parts.collect::<Vec<_>>())
    }

    fn details(&self, _: Time) -> Map<String, Value> {
        self.summary()
    }
}
