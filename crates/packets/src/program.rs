//! What the switches of a network may do with packets beyond forwarding them: the program of a
//! programmable data plane, or the model of a switch chip with an inside of its own.
//!
//! A program is one value for *all* switches, with its state in flat arrays, by port and by vertex.
//! It owns no clock and no wires: each call hands it the instant and a list of [`Orders`], which the
//! network carries out after the call. The network calls
//!
//! - [`Program::choose`] when a packet is at a switch and several ways lead on, if it wants to be asked,
//! - [`Program::arrives`] when a packet is at a switch and its way on is known,
//! - [`Program::leaves`] when a packet's first bit goes on the line of a switch's port,
//! - [`Program::dropped`] when it never will,
//! - [`Program::hears`] when a switch at the other end of a link has told something,
//! - [`Program::wake`] when an alarm comes that it asked for,
//! - [`Program::died`], [`Program::link_changed`] and [`Program::converged`] when parts fail,
//! - [`Program::takes`] when a switch of another part has sent something.
//!
//! **Invariant:** a network of [`Plain`] switches asks nothing: the type says so, not a test.

use std::sync::Arc;

use kernel::{Bytes, Span, Time};
use rack::Problem;
use rack::node::{Payload, Unit};
use rack::topology::{PortId, Vertex};
use serde_json::{Map, Value};

use crate::inside::{Chosen, Inside};
use crate::net::NextHops;
#[cfg(doc)]
use crate::packet::FlowKey;
use crate::packet::Packet;
use crate::route::Live;

/// A packet that the network holds, by name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Handle(pub(crate) u32);

impl Handle {
    /// The handle as a number, for flat arrays: small, and used again once its packet is gone.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// A packet on its way through a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// The switch, or the host that passes traffic on.
    pub switch: Vertex,
    /// Its port by which the packet came.
    pub from: PortId,
    /// Its port by which the routes send the packet on.
    pub to: PortId,
    /// The packet's name, while it is in the switch.
    pub handle: Handle,
}

/// What becomes of a packet that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It joins the queue of the port that the routes name.
    Forward,
    /// It joins the queue of the port by which it came: the program has made it an answer.
    Turn,
    /// It is dropped.
    Drop,
    /// It has come to its end: the program has taken out of it what it said. No loss.
    Absorb,
    /// The program keeps it until it orders [`Orders::emit`] or [`Orders::discard`]. Where the link
    /// that it came by counts buffer space, it fills that space so long.
    Keep,
}

/// One thing that a program wants done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    Emit(Handle, PortId),
    Discard(Handle),
    Send(PortId, Packet),
    WakeAt(Vertex, Time),
    Tell(PortId, u32),
    Post(PortId, Time, Post),
}

/// What switches of one part tell those of another over links of their own, which the network does not see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Post {
    /// So many bytes, which the program reads.
    Note([u64; NOTE_WORDS]),
    /// A packet that goes over to another switch, and what the program says of it.
    Packet(Packet, u64),
}

/// Words of a [`Post::Note`].
pub const NOTE_WORDS: usize = 8;

/// What a program wants done: a list that the network carries out, in order, after each call.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    pub(crate) now: Time,
    pub(crate) list: Vec<Order>,
}

impl Orders {
    /// The instant of the call.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Lets a kept packet join the queue of one of its switch's ports.
    #[inline]
    pub fn emit(&mut self, packet: Handle, port: PortId) {
        self.list.push(Order::Emit(packet, port));
    }

    /// Drops a kept packet.
    #[inline]
    pub fn discard(&mut self, packet: Handle) {
        self.list.push(Order::Discard(packet));
    }

    /// Lets a packet of the program's own, of an open flow or of none ([`Program::SPEAKS`]), join the
    /// queue of a switch's port. From there it goes as its header says.
    #[inline]
    pub fn send(&mut self, port: PortId, packet: Packet) {
        self.list.push(Order::Send(port, packet));
    }

    /// Tells the switch at the other end of a port something that takes no time on the line: it hears of it
    /// as long after as the cable is ([`Program::TELLS`]). A link that is down carries nothing.
    #[inline]
    pub fn tell(&mut self, port: PortId, word: u32) {
        self.list.push(Order::Tell(port, word));
    }

    /// Sends a switch of another part something over a link of the program's own: it is there at `at`, at least the
    /// lookahead later ([`Program::become_part`]). `port` is the port that it comes in by; it may be any of that switch.
    #[inline]
    pub fn post(&mut self, port: PortId, at: Time, post: Post) {
        self.list.push(Order::Post(port, at, post));
    }

    /// Asks for [`Program::wake`] with `switch` at `at`. Each alarm that is asked for comes.
    #[inline]
    pub fn wake_at(&mut self, switch: Vertex, at: Time) {
        self.list.push(Order::WakeAt(switch, at));
    }
}

/// The program of all switches, or of those of a part of the network.
pub trait Program: Clone + Send + 'static {
    /// Whether the network asks it at all.
    const RUNS: bool = true;
    /// Whether [`Program::leaves`] or [`Program::dropped`] does anything, in any of its forms.
    const WATCHES_LINES: bool = false;
    /// Whether it chooses among ways that are equally near: [`Program::choose`].
    const CHOOSES: bool = false;
    /// Whether it sends packets that belong to no flow: their key is [`FlowKey::NEIGHBOURS`]. None of
    /// them may reach a host.
    const SPEAKS: bool = false;
    /// Whether switches tell each other words beside packets ([`Orders::tell`]).
    const TELLS: bool = false;
    /// Whether its switches have links of their own, which the network does not see: as long as those of the topology
    /// that they have ports to. What happens on them is counted by [`Program::events`], and alarms are not.
    const HAS_LINKS: bool = false;

    /// `packet` has come to a switch from which several ways are equally near to where it goes: gives the
    /// index of the one that it takes. `hop.to` is what the routes say. Asked before [`Program::arrives`];
    /// not where packets carry their routes, or go by way of a host drawn for them.
    fn choose(&mut self, hop: &Hop, packet: &Packet, next: NextHops<'_>) -> u32 {
        let _ = packet;
        next.iter().position(|way| way.port == hop.to).map_or(0, |index| index as u32)
    }

    /// `packet` has come to a switch: its last bit, or in a cut-through switch its header, and the
    /// switch's latency later. The program may rewrite it, its size apart.
    fn arrives(&mut self, hop: &Hop, packet: &mut Packet, orders: &mut Orders) -> Verdict;

    /// The first bit of `packet` goes on the line of `port`, which is a switch's. Packets that
    /// [`Program::arrives`] has not seen come by as well: those that it sent itself.
    fn leaves(&mut self, port: PortId, packet: &Packet, orders: &mut Orders) {
        let _ = (port, packet, orders);
    }

    /// `packet`, which was to leave by `port`, a switch's, is gone without: it found no room there, or the
    /// link is dead. (Not what the program dropped itself, nor what knew no way on.) Chips tell it, too:
    /// they hand on what they drop, or say whose it was.
    fn dropped(&mut self, port: PortId, packet: &Packet, orders: &mut Orders) {
        let _ = (port, packet, orders);
    }

    /// Whether [`Program::leaves`] or [`Program::dropped`] does anything in this one; asked once.
    fn watches_lines(&self) -> bool {
        Self::WATCHES_LINES
    }

    /// The switch at the other end of the link of `port` has told something.
    fn hears(&mut self, port: PortId, word: u32, orders: &mut Orders) {
        let _ = (port, word, orders);
    }

    /// An alarm that was asked for.
    fn wake(&mut self, switch: Vertex, orders: &mut Orders) {
        let _ = (switch, orders);
    }

    /// A switch, or a host that passes traffic on, has died. What it knew is gone, and the packets
    /// of it that the program keeps are to be discarded.
    fn died(&mut self, switch: Vertex, orders: &mut Orders) {
        let _ = (switch, orders);
    }

    /// A link has gone down, or works again: `port` is one of its ends.
    fn link_changed(&mut self, port: PortId, works: bool, orders: &mut Orders) {
        let _ = (port, works, orders);
    }

    /// All switches know what works: routes have converged.
    fn converged(&mut self, live: &Live, orders: &mut Orders) {
        let _ = (live, orders);
    }

    /// What a switch of another part has sent is here ([`Orders::post`]).
    fn takes(&mut self, port: PortId, at: Time, post: &Post, orders: &mut Orders) {
        let _ = (port, at, post, orders);
    }

    /// The network begins. It has the switches of one part, or all, as `owns` says; what one part sends another takes
    /// `lookahead` at the least.
    fn become_part(&mut self, owns: &dyn Fn(Vertex) -> bool, lookahead: Span) {
        let _ = (owns, lookahead);
    }

    /// The network is there, at time zero, before anything happens in it.
    fn begin(&mut self, orders: &mut Orders) {
        let _ = orders;
    }

    /// The switch in whose part this one is to be, where the network is free to choose.
    fn home(&self, switch: Vertex) -> Vertex {
        switch
    }

    /// Parts into which the network is cut even on one thread, so that the state of one stays in the processor's cache
    /// through a window.
    fn blocks(&self) -> usize {
        1
    }

    /// What has happened on its links and inside its switches since this was last asked ([`Program::HAS_LINKS`]).
    fn events(&mut self) -> u64 {
        0
    }

    /// The longest queue so far inside its switches, where they have queues that the network does not see: packets, and
    /// bytes.
    fn longest_queue(&self) -> (u64, Bytes) {
        (0, Bytes::ZERO)
    }

    /// Whether what is inside of it goes through its bytes from now on, where switches have links of their own that
    /// the network does not see. Results do not depend on it.
    ///
    /// # Errors
    /// If it has no bytes, as it is configured.
    fn set_wire(&mut self, is_on: bool) -> Result<(), Problem> {
        let _ = is_on;
        Ok(())
    }

    /// Whether the switches of a network may be divided among several of them, copies of one before anything
    /// has happened: switches know of each other what packets tell, and no packet's handle matters.
    fn can_be_cut(&self) -> bool {
        false
    }

    /// From now on records what packets of these flows do inside of its switches. Asked before the network begins.
    fn record(&mut self, chosen: &Arc<Chosen>) {
        let _ = chosen;
    }

    /// What all parts have recorded since [`Program::record`]; `None`, if switches have no inside to speak of.
    fn recorded<'a>(parts: impl Iterator<Item = &'a mut Self>) -> Option<Inside> {
        let _ = parts;
        None
    }

    /// Adds what another one has counted for other switches, for [`Program::details`]. For those that
    /// [`Program::can_be_cut`].
    fn add_counts(&mut self, other: &Self) {
        let _ = other;
    }

    /// Each switch is a node of its own from now on: [`Program::load`] is asked of all that they send each other.
    fn stand_alone(&mut self) {}

    /// What a note is known by if bytes of a flow ride with it, and which they are if it is a switch here that has them
    /// and sends them now.
    fn load(&mut self, note: &[u64; NOTE_WORDS]) -> Option<(Unit, Option<Payload>)> {
        let _ = note;
        None
    }

    /// Whether switches go on after something that they told each other was lost or damaged.
    fn recovers(&self) -> bool {
        true
    }

    /// Self-checks that take too long for every step.
    ///
    /// # Errors
    /// When an invariant does not hold: which, with its numbers.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// As [`Program::check`], of all parts of a network.
    ///
    /// # Errors
    /// As there.
    fn check_all<'a>(mut parts: impl Iterator<Item = &'a Self>) -> Result<(), String> {
        parts.try_for_each(Self::check)
    }

    /// What the switches add to the summary, below the fabric's own keys.
    fn details(&self, now: Time) -> Map<String, Value> {
        let _ = now;
        Map::new()
    }
}

/// Switches that store and forward, and nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Plain;

impl Program for Plain {
    const RUNS: bool = false;

    fn can_be_cut(&self) -> bool {
        true
    }

    fn arrives(&mut self, _: &Hop, _: &mut Packet, _: &mut Orders) -> Verdict {
        Verdict::Forward
    }
}
