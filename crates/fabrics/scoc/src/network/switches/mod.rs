//! What leaves and spines do, as the program of the engine's switches.
//!
//! A node's packet comes to its leaf and is kept there until it goes on the line of its destination;
//! on the way between, its segments are packets of the program's own. Messages of two leaves take
//! one spine, so that they stay in order.

mod account;
mod leaves;

use ::rack::topology::{PortId, Topology, Vertex};
use kernel::{Bytes, Calendar, Rate, Ring, Span, Stream, Time};
use packets::{FlowKey, Handle, Hop, Kind, Orders, Packet, Program, Verdict};
use serde_json::{Map, Value};

use super::Plan;
use super::egress::Egress;
use super::ingress::{Held, Ingress};
use super::layout::{Layout, Role};
use super::spine::Clocked;
use account::Counts;

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
    fn schedule(&mut self, at: Time, task: Task, switch: Vertex, orders: &mut Orders) {
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

    /// A segment or message has come to a spine.
    fn cross(&mut self, spine: usize, hop: &Hop, packet: &Packet, orders: &mut Orders) -> Verdict {
        let plane = if packet.kind == Kind::DATA { Plane::Data } else { Plane::Control };
        let (from, to) = (self.layout.far(hop.from), self.layout.far(hop.to));
        let unit = unit(spine, plane);
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
        // A leaf hears of free places as long after as its cable is.
        for leaf in 0..self.layout.leaves {
            let count = self.units[unit].freed(leaf);
            if count > 0 {
                let task = Task::Room { leaf: leaf as u16, unit: unit as u32, count: count as u16 };
                self.schedule(now + self.cable, task, self.layout.leaf_vertex(leaf), orders);
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
}

impl Program for Switches {
    const WATCHES_LINES: bool = true;
    const SPEAKS: bool = true;

    fn arrives(&mut self, hop: &Hop, packet: &mut Packet, orders: &mut Orders) -> Verdict {
        match self.layout.role(hop.switch) {
            Role::Spine(spine) => self.cross(spine, hop, packet, orders),
            Role::Leaf(_) if packet.flow == FlowKey::NEIGHBOURS => {
                match packet.kind {
                    Kind::DATA => self.gather(packet, orders),
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
        if packet.kind == Kind::DATA
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
        self.check_all()
    }

    fn details(&self, _: Time) -> Map<String, Value> {
        self.summary()
    }
}
