//! The one wall between the network and endpoint cores.
//!
//! A transport is one value that holds the endpoints of any set of hosts in flat arrays: the halves of
//! flows by [`FlowKey`], and what belongs to a host by its number. It owns no clock, no global random stream and
//! no wires: each call hands it the instant and an [`Outbox`]; what it wants done goes there. The network
//! calls
//!
//! - [`Transport::start`] at the sender when a flow is offered,
//! - [`Transport::accept`] at the receiver when the first packet of a flow has reached it,
//! - [`Transport::receive`] when a packet has reached a half, that first one too,
//! - [`Transport::timer`] when a timer fires,
//! - [`Transport::pull`] when a NIC's line is free and its queue is empty. What to send is so decided
//!   at the last moment: windows, pacing, shortest-remaining-first all live in `pull`.
//!
//! A flow has two halves, which know of each other what packets tell. The sender's begins with `start`,
//! the receiver's with `accept`. The receiver says [`Outbox::delivered`] as bytes become readable in
//! order, and [`Outbox::complete`] with the last; or the sender does, where it moves them without the
//! destination's software, which then opens no half. Each half says [`Outbox::close`] when it has nothing
//! left to do; its timers are then cancelled, and its key comes back for another flow. A packet that
//! comes for a half that is closed goes to [`Transport::stray`], where a receiver may say once more that
//! it has all ([`crate::answer`]). A half that waits for an answer says so each time that none has come
//! ([`Outbox::in_vain`]). The network may end a half by itself, when that has gone on for too long or the host
//! of the half dies: then it calls [`Transport::abandon`], and the half is closed without a further call.
//!
//! Data and control packets alike may be returned by `pull` or put in the NIC's queue by
//! [`Outbox::send`]; queued packets go first, by priority. Acknowledgments normally take the queue,
//! data normally waits to be pulled.

use std::sync::Arc;

use kernel::{Bytes, Rate, Span, Time};
use rack::{Class, Flow, NodeId, Problem};

use crate::config::MTU_MAX;
use crate::outbox::Outbox;
use crate::packet::{FlowKey, PRIORITIES, Packet};
use crate::route::Live;
use crate::wire::{Codec, Datagrams};

/// A flow as it starts.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// The sender's half: its place in the arrays until it is closed.
    pub key: FlowKey,
    /// Names the flow in what is to be sent when the half may be closed by then.
    pub label: FlowKey,
    /// What to carry.
    pub flow: Flow,
    /// How many paths of least hops lead to the destination: the useful values of
    /// [`Packet::path`] are below it.
    pub paths: u32,
}

/// A timer of a transport. Setting one again moves it; each fires once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    /// One of a flow's timers: its number is below [`Timers::flow`].
    Flow(FlowKey, u8),
    /// One of a host's timers: its number is below [`Timers::host`].
    Host(NodeId, u8),
}

/// How many timers a transport uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timers {
    /// For each half of a flow.
    pub flow: u8,
    /// For each host.
    pub host: u8,
}

/// How a transport cuts a flow into packets: all that a flow alone in the idle network needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Framing {
    /// Most application bytes in one packet.
    pub payload: u16,
    /// Headers of each data packet on the wire.
    pub header: u16,
}

impl Framing {
    /// Packets of up to `mtu`, headers included. Both sizes have passed [`Framing::check`].
    #[must_use]
    pub fn of(mtu: Bytes, header: Bytes) -> Self {
        let header = header.get() as u16;
        Self { payload: mtu.get() as u16 - header, header }
    }

    /// What is wrong with these sizes: the problems of a key `mtu`.
    #[must_use]
    pub fn check(mtu: Bytes, header: Bytes) -> Vec<Problem> {
        let mut problems = Vec::new();
        if mtu <= header {
            let message =
                format!("{mtu} leaves no room for payload behind a header of {header}; raise it");
            problems.push(Problem::new("mtu", message));
        }
        if mtu > MTU_MAX {
            problems.push(Problem::new("mtu", format!("{mtu}; expected at most {MTU_MAX}")));
        }
        problems
    }

    /// How many packets carry `size`.
    #[must_use]
    pub fn packets(&self, size: Bytes) -> u64 {
        size.get().div_ceil(u64::from(self.payload))
    }

    /// Application bytes in packet `index` of a flow of `size`; zero beyond its end.
    #[must_use]
    pub fn payload_of(&self, size: Bytes, index: u64) -> u16 {
        let before = index * u64::from(self.payload);
        size.get().saturating_sub(before).min(u64::from(self.payload)) as u16
    }
}

/// How a transport cuts the flows of each class.
#[derive(Clone, Debug)]
pub struct Framings(Box<[Framing]>);

impl Framings {
    /// Those of a transport.
    #[must_use]
    pub fn new(transport: &impl Transport) -> Self {
        let classes = (0..=u8::MAX).map(Class::new);
        Self(classes.map(|class| transport.framing_of(class)).collect())
    }

    /// That of a flow.
    #[must_use]
    pub fn of(&self, flow: &Flow) -> Framing {
        self.0[usize::from(flow.class.get())]
    }
}

/// What a NIC's line accepts at this moment.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Bit `p`: priority `p` is not paused.
    pub(crate) open: u8,
    pub(crate) room: Room<'a>,
}

/// What is accepted of each flow.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Room<'a> {
    /// All.
    Endless,
    /// So many bytes, by key: per-flow backpressure.
    OfFlows(&'a [u32]),
    /// What its gate lets through: by key the way of a flow, and the gates.
    AtGates(&'a [Way], &'a [Gate]),
}

/// The way of a flow through a transport that carries another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Way {
    /// The gate that it passes.
    pub gate: u32,
    /// The lane in which it does; below [`u32::MAX`] - 1.
    pub lane: u32,
}

/// What a transport that carries another takes at this moment: packets of one lane, of all or of none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gate(u32);

impl Gate {
    /// It takes packets of all lanes.
    pub const OPEN: Self = Self(u32::MAX);
    /// It takes none.
    pub const SHUT: Self = Self(u32::MAX - 1);

    /// It takes packets of this lane.
    #[must_use]
    pub const fn of_lane(lane: u32) -> Self {
        Self(lane)
    }

    #[inline]
    fn admits(self, lane: u32) -> bool {
        self.0 == lane || self == Self::OPEN
    }
}

impl Line<'_> {
    /// A line that accepts everything, for tests of a core without a network.
    pub const OPEN: Line<'static> = Line { open: u8::MAX, room: Room::Endless };

    /// What a transport that carries another takes: flow `f` has the way `ways[f]`.
    #[must_use]
    pub const fn at_gates<'a>(ways: &'a [Way], gates: &'a [Gate]) -> Line<'a> {
        Line { open: u8::MAX, room: Room::AtGates(ways, gates) }
    }

    /// Whether a packet of this priority may be returned from `pull`.
    #[inline]
    #[must_use]
    pub fn is_open(&self, priority: u8) -> bool {
        debug_assert!(priority < PRIORITIES, "priority {priority} of {PRIORITIES}");
        self.open >> priority & 1 == 1
    }

    /// Whether a packet of `flow` with `wire` bytes may be returned from `pull`, the next hop's
    /// per-flow backpressure considered; always true where the network has none.
    #[inline]
    #[must_use]
    pub fn admits(&self, flow: FlowKey, wire: u16) -> bool {
        match self.room {
            Room::Endless => true,
            Room::OfFlows(room) => room[flow.index()] >= u32::from(wire),
            Room::AtGates(ways, gates) => {
                let Way { gate, lane } = ways[flow.index()];
                gates[gate as usize].admits(lane)
            }
        }
    }

    /// The place of the first of `flows` that [`Line::admits`].
    #[inline]
    #[must_use]
    pub fn first_admitted(
        &self,
        mut flows: impl Iterator<Item = FlowKey>,
        wire: u16,
    ) -> Option<usize> {
        match self.room {
            Room::Endless => flows.next().map(|_| 0),
            _ => flows.position(|flow| self.admits(flow, wire)),
        }
    }
}

/// What a transport is told of the network when it is built.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// Number of hosts; they are `0..hosts`.
    pub hosts: u32,
    /// Rate of the slowest host's line.
    pub line_rate: Rate,
    /// The rate at which every host can receive while all receive alike from all others; that of the
    /// slowest host's line, but in a network whose hosts pass packets on.
    pub uniform_rate: Rate,
    /// The longest round trip between two hosts of the idle network: from the first bit of a largest
    /// packet sent to its last received, and the same back for 64 bytes.
    pub base_rtt: Span,
    /// The most switches on a shortest path.
    pub hops_max: u32,
    /// The run's seed, for named streams.
    pub seed: u64,
}

/// Why a packet is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// Its queue had no room for it.
    NoRoom,
    /// Its link lost it at random.
    Link,
    /// Its link is dead, or died under it.
    Dead,
}

/// The endpoints of a set of hosts.
pub trait Transport: Clone + Send + 'static {
    /// The name in scenario files and results, kebab case.
    fn name(&self) -> &'static str;

    /// How many timers it uses; asked once.
    fn timers(&self) -> Timers;

    /// How it cuts flows into packets, for the ideal completion time.
    fn framing(&self) -> Framing;

    /// The same for flows of this class: as all others, unless the transport says otherwise.
    fn framing_of(&self, class: Class) -> Framing {
        let _ = class;
        self.framing()
    }

    /// The network is there, at time zero, before anything happens in it.
    fn begin(&mut self, out: &mut Outbox) {
        let _ = out;
    }

    /// The application at `opening.flow.src` hands over a message: the sender's half opens.
    fn start(&mut self, opening: &Opening, out: &mut Outbox);

    /// The first packet of a flow has reached its destination: the receiver's half opens, `packet.flow`.
    /// Then `packet` goes to [`Transport::receive`]. What is to be sent when the half may be closed by then
    /// names its flow by `label`.
    fn accept(&mut self, packet: &Packet, label: FlowKey, out: &mut Outbox) {
        let _ = (packet, label, out);
    }

    /// `packet` has reached `host`, to which it was addressed (or returned), and there the half
    /// `packet.flow`, which is open. A packet that makes no sense there is dropped and
    /// counted ([`Outbox::unexpected`]).
    fn receive(&mut self, host: NodeId, packet: &Packet, out: &mut Outbox);

    /// A timer that was set has fired.
    fn timer(&mut self, timer: Timer, out: &mut Outbox);

    /// The line of `host` is free: the packet to send now, if any. The network asks again after each
    /// packet it is given, and after [`Outbox::wake`] or [`Outbox::wake_at`]; a transport that
    /// returns `None` with data left to send has to ask for one of these in time. May set timers;
    /// may also queue packets, which then go before the next pull.
    fn pull(&mut self, host: NodeId, line: Line<'_>, out: &mut Outbox) -> Option<Packet>;

    /// The network has given up the flow, because a host died or nothing is heard of it: forget this half of
    /// it, which is closed.
    fn abandon(&mut self, flow: FlowKey, out: &mut Outbox);

    /// Which byte of its flow is the first in a data packet: of one whose packets are numbered, and all full
    /// but the last, unless the transport says otherwise.
    fn offset_of(&self, packet: &Packet) -> u64 {
        packet.seq * u64::from(self.framing().payload)
    }

    /// How its packets look in bytes, for runs that go through them: plain UDP, unless it says more.
    fn codec(&self) -> Arc<dyn Codec> {
        Arc::new(Datagrams { header: self.framing().header })
    }

    /// Whether every flow ends although packets are lost.
    fn recovers(&self) -> bool {
        true
    }

    /// Whether a flow waits for a round trip before its first byte is sent.
    fn has_handshake(&self) -> bool {
        false
    }

    /// Whether it ever calls [`Outbox::tell`]; asked once.
    fn speaks_to_neighbours(&self) -> bool {
        false
    }

    /// Whether neighbours tell each other what a link between them has lost, by a frame of the link, so that
    /// [`Transport::unheard`] tells of that too; asked once.
    fn repairs_links(&self) -> bool {
        false
    }

    /// What the host `packet.src` told a neighbour is lost: it found no room in the host itself, its link has
    /// died, or, for those that [`Transport::repairs_links`], the neighbour has said so.
    fn unheard(&mut self, packet: &Packet, why: Loss, out: &mut Outbox) {
        let _ = (packet, why, out);
    }

    /// A packet has come for a half that is closed: its `flow` is no key of this host. At a flow's
    /// destination (not where it [`Packet::goes_to_source`]) it is a retransmission, whose sender may not
    /// know yet that all has arrived: an [`crate::answer`] can tell it.
    fn stray(&mut self, packet: &Packet, out: &mut Outbox) {
        let _ = (packet, out);
    }

    /// A host has died, and knows nothing of its flows any more: their halves there were abandoned.
    fn died(&mut self, host: NodeId, out: &mut Outbox) {
        let _ = (host, out);
    }

    /// All vertices know anew what works of the network, as an oracle tells them
    /// ([`crate::config::Failures`]).
    fn routes_changed(&mut self, works: &Live, out: &mut Outbox) {
        let _ = (works, out);
    }

    /// Whether the hosts of a network may be divided among several of them, copies of one before anything
    /// has happened: each host knows of others what packets tell, and what it does depends neither on which
    /// other hosts are here nor on the places of its flows.
    fn can_be_cut(&self) -> bool {
        false
    }

    /// Adds what another one has counted for other hosts, for [`Transport::details`]. For those that
    /// [`Transport::can_be_cut`].
    fn add_counts(&mut self, other: &Self) {
        let _ = other;
    }

    /// Whether a packet may bring bytes of several flows ([`Outbox::unpack`]); asked once.
    fn shares_packets(&self) -> bool {
        false
    }

    /// Where hosts keep connections open: which of those between its two hosts carries the flow of this half,
    /// which is open, counted from 0.
    fn connection(&self, flow: FlowKey) -> Option<u32> {
        let _ = flow;
        None
    }

    /// Self-checks that take too long for every step.
    ///
    /// # Errors
    /// When an invariant does not hold: which, with its numbers.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// What this transport adds to the summary, below the fabric's own keys.
    fn details(&self, now: Time) -> serde_json::Map<String, serde_json::Value> {
        let _ = now;
        serde_json::Map::new()
    }
}
