//! Switches, links and NIC queues: all of the network but the endpoints.
//!
//! A packet's way through a switch: it arrives (its last bit, or in a cut-through switch its first 64
//! bytes, and the switch's latency later), the routes name an output port, the port's queues take it,
//! mark it, cut it or drop it ([`admit`](Net::admit)), the scheduler picks it ([`pick`](Net::pick)),
//! and the line carries it to the next vertex ([`launch`](Net::launch)). A port without a queue costs
//! one event a packet, one with a queue two.
//!
//! Leaves out: the time and memory of a packet while it is on the line (its bytes leave the queue's
//! count when its first bit is sent), input contention (switches are output-queued), and multicast.

mod admit;
mod ahead;
mod arena;
mod build;
mod counts;
mod credit;
mod deadline;
mod detour;
mod event;
mod faults;
mod halves;
mod hops;
mod limits;
mod line;
mod losses;
mod passing;
mod pause;
mod perflow;
mod places;
mod port;
mod schedule;
mod timers;
mod tracing;

use std::collections::VecDeque;
use std::sync::Arc;

use kernel::{Agenda, LinkClock, Stream, Time};
use rack::NodeId;
use rack::shards::Outbox;
use rack::topology::{PortId, Vertex};
use rack::trace::Outcome;

use crate::config::Plan;
use crate::message::Message;
use crate::packet::{FlowKey, Kind, Packet};
use crate::route::{Chooser, Known, Live, Tables};
use crate::transport::Loss;
use crate::wire::Codec;

pub(crate) use arena::{Arena, NONE};
pub(crate) use counts::Counts;
pub(crate) use detour::can_go_first;
pub(crate) use event::{Event, Ties, Word};
pub(crate) use faults::hopeless;
pub(crate) use halves::{Found, Halves};
pub use halves::{Journey, Name};
pub(crate) use losses::LOST_FRAME;
pub(crate) use pause::QUANTUM;
pub(crate) use perflow::FlowQueues;
pub(crate) use port::{OutPort, Wire};
pub(crate) use timers::Timers;
pub(crate) use tracing::{Recorder, Sight, What, owner};

use credit::Credits;
use detour::Detours;
use faults::Faults;
pub use hops::{NextHop, NextHops};
use limits::Limits;
use losses::{Losses, original};
use pause::Pauses;

/// The state of the network.
#[derive(Clone, Debug)]
pub(crate) struct Net {
    pub(crate) plan: Arc<Plan>,
    pub(crate) now: Time,
    pub(crate) calendar: Agenda<Word>,
    /// In which order packets come by several ports at one instant.
    pub(crate) ties: Ties,
    pub(crate) arena: Arena,
    /// Output ports, by port of the topology; then the injection ports of hosts that pass traffic
    /// on.
    pub(crate) ports: Vec<OutPort>,
    pub(crate) wires: Arc<[Wire]>,
    /// By port: the vertex that it belongs to, as in its wire.
    vertices: Arc<[Vertex]>,
    /// By port: the clock of its line.
    pub(crate) clocks: Vec<LinkClock>,
    /// By host: the port of its NIC.
    pub(crate) nics: Arc<[u32]>,
    /// Hosts whose NIC may be able to send something, for the network to see to.
    pub(crate) ready_nics: Vec<u32>,
    /// The flows of all hosts.
    pub(crate) halves: Halves,
    pub(crate) tables: Arc<Tables>,
    /// The tables of the network without any fault.
    pub(crate) whole: Arc<Tables>,
    /// Tables that were built for what works, for all who have to.
    pub(crate) known: Arc<Known>,
    pub(crate) chooser: Chooser,
    pub(crate) live: Live,
    pub(crate) counts: Counts,
    limits: Limits,
    /// By vertex: bytes in its shared buffer.
    shared: Vec<u64>,
    /// One stream a vertex, for marking and trimming by chance; none where nothing is drawn.
    chance: Vec<Stream>,
    /// By port and priority: bytes that the next queue of a round may send (deficit round robin).
    deficits: Vec<[u32; 8]>,
    /// Whether anything holds senders back: one of the next three.
    is_controlled: bool,
    pauses: Option<Box<Pauses>>,
    credits: Option<Box<Credits>>,
    pub(crate) flow_queues: Option<Box<FlowQueues>>,
    /// Where packets go first, where they do not go straight.
    detours: Option<Box<Detours>>,
    /// Whether a packet's next port can be found out before it is there: it has its route with it, or
    /// routes stay, and the choice among them draws nothing.
    knows_ways_ahead: bool,
    /// Whether anybody looks at what goes on a line: the next two.
    is_observed: bool,
    /// How packets look in bytes, if each goes through them on each link.
    codec: Option<Arc<dyn Codec>>,
    /// Where packets of chosen flows are, if that is recorded.
    pub(crate) recorder: Option<Box<Recorder>>,
    /// Whether a packet that comes to a switch's port has first to pass [`Net::admit_apart`]: flows have queues of
    /// their own, or there is a record.
    admits_apart: bool,
    /// Whether one that a host has for its NIC has first to pass [`Net::refuses_at_nic`]: hosts speak to their
    /// neighbours, or there is a record.
    pub(crate) asks_at_nics: bool,
    /// Whether anything can get lost on a link.
    is_lossy: bool,
    losses: Option<Box<Losses>>,
    pub(crate) faults: Faults,
    /// Whether neighbours tell each other things, and what of that was lost, of which they hear now.
    pub(crate) has_neighbours: bool,
    /// Whether they say of what they are told that it got lost on its link.
    pub(crate) repairs_links: bool,
    pub(crate) unheard: Vec<(Packet, Loss)>,
    /// Whether switches tell each other words.
    pub(crate) has_words: bool,
    /// Whether a program wants to know what goes on the lines of switches, and what did: ports and
    /// packets, which are on the line as long as they are noted here.
    pub(crate) notes_departures: bool,
    pub(crate) departures: Vec<(u32, u32)>,
    /// What was to go on the lines of switches and is gone: for each departure of [`GONE`], in order.
    pub(crate) gone: VecDeque<Packet>,
    /// Which part of a network this is; none where it is all of it.
    cut: Option<Share>,
    /// What goes to other parts, and what of that is still noted among departures.
    pub(crate) passing: Outbox<Message>,
    passed: Vec<u32>,
}

/// What of a network this is.
#[derive(Clone, Debug)]
struct Share {
    /// By vertex: its part.
    part_of: Arc<[u16]>,
    /// Which part this is.
    own: u16,
}

/// In place of a departure's packet: it will never be on the line.
pub(crate) const GONE: u32 = u32::MAX;

/// A packet's way through a switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passage {
    /// The switch.
    pub(crate) vertex: Vertex,
    /// The port by which the packet leaves.
    pub(crate) out: u32,
}

impl Net {
    /// A packet is there by `port`, at a switch.
    #[inline]
    pub(crate) fn arrive(&mut self, index: u32, port: u32) {
        if let Some(passage) = self.come_in(index, port) {
            self.go_out(index, passage.out);
        }
    }

    /// As [`Net::arrive`], up to the point where the packet's way on is known; `None` if it goes no
    /// further.
    #[inline]
    pub(crate) fn come_in(&mut self, index: u32, port: u32) -> Option<Passage> {
        if self.is_lossy && self.is_lost_on_the_way(index, port) {
            return None;
        }
        let packet = self.arena.get_mut(index);
        packet.hops = packet.hops.saturating_add(1);
        if self.is_controlled {
            self.arena.set_ingress(index, port);
            self.credit_arrives(index, port);
            if self.pauses.is_some() && !self.pause_admits(index, port) {
                self.counts.overflows += 1;
                self.note_lost(index, NONE, Outcome::NoRoom);
                self.drop_packet(index);
                return None;
            }
        }
        let vertex = self.vertices[port as usize];
        let Some(out) = self.way_on(index, vertex) else {
            self.counts.unroutable += 1;
            self.note_lost(index, NONE, Outcome::NoRoute);
            self.drop_packet(index);
            return None;
        };
        Some(Passage { vertex, out })
    }

    /// A packet is there by `port`, at the host that it is for. False if it got lost on the way.
    #[inline]
    pub(crate) fn deliver(&mut self, index: u32, port: u32) -> bool {
        if self.is_lossy && self.is_lost_on_the_way(index, port) {
            return false;
        }
        if self.is_controlled {
            self.credit_arrives(index, port);
            self.leaves_link(index, port);
        }
        true
    }

    /// Sends a packet on from a switch, by the port `out`.
    #[inline]
    pub(crate) fn go_out(&mut self, index: u32, out: u32) {
        if self.ports[out as usize].faults > 0 {
            // Until routes have converged, packets still go to the dead link.
            return self.drop_at_dead_link(index, out);
        }
        self.admit(index, out);
        self.send_waiting(out);
    }

    /// The port by which a packet leaves `vertex`.
    #[inline]
    fn way_on(&mut self, index: u32, vertex: Vertex) -> Option<u32> {
        let found = if self.knows_ways_ahead { self.arena.way(index) } else { NONE };
        if found != NONE {
            return Some(found);
        }
        self.choose_way(index, vertex)
    }

    /// As [`Net::way_on`], where it is not known yet.
    #[inline(never)]
    fn choose_way(&mut self, index: u32, vertex: Vertex) -> Option<u32> {
        if let Some(way) = self.choose_detour(index, vertex) {
            return Some(way.get());
        }
        let packet = self.arena.get(index);
        self.chooser.choose(&self.tables, vertex, packet).map(PortId::get)
    }

    /// Acts on a frame of the link that came by `port`.
    pub(crate) fn link_frame(&mut self, index: u32, port: u32) {
        if self.is_lossy && self.is_lost_on_the_way(index, port) {
            return;
        }
        let frame = *self.arena.get(index);
        self.arena.remove(index);
        self.counts.link_frames += 1;
        if frame.kind == Kind::LINK_LOST {
            self.unheard.push((original(&frame), Loss::Link));
        } else if self.pauses.is_some() {
            self.pause_frame(&frame, port);
        } else {
            self.credit_frame(&frame, port);
        }
        self.serve(port);
    }

    /// A packet that came by `port` leaves the switch that counted it in.
    #[inline]
    fn leaves_switch(&mut self, index: u32, port: u32) {
        if port == NONE || !self.is_controlled {
            return;
        }
        if self.pauses.is_some() {
            self.pause_release(index, port);
        }
        self.leaves_link(index, port);
    }

    /// A packet sent towards `port` no longer fills the link or the buffer behind it.
    #[inline]
    fn leaves_link(&mut self, index: u32, port: u32) {
        if self.credits.is_some() {
            self.credit_return(index, port);
        } else if self.flow_queues.is_some() {
            self.window_return(index, port);
        }
    }

    /// Drops a packet that is in a switch, but in no queue.
    pub(crate) fn drop_packet(&mut self, index: u32) {
        self.drop_for(index, Loss::NoRoom);
    }

    /// Drops a packet that finds no room at `port`.
    #[cold]
    pub(crate) fn drop_at_port(&mut self, index: u32, port: u32) {
        self.note_gone(index, port);
        self.note_lost(index, port, Outcome::NoRoom);
        self.counts.overflows += 1;
        self.drop_packet(index);
    }

    /// Drops a packet that is in no queue: it would go by `port`, whose link is dead.
    pub(crate) fn drop_at_dead_link(&mut self, index: u32, port: u32) {
        self.note_gone(index, port);
        self.note_lost(index, port, Outcome::DeadLink);
        self.counts.dead_link += 1;
        self.drop_for(index, Loss::Dead);
    }

    /// Drops a packet that is in a host that has died.
    pub(crate) fn drop_at_dead_host(&mut self, index: u32) {
        self.counts.dead_link += 1;
        self.take_out(index);
    }

    /// Keeps what was to leave by `port`, if that is a switch's, for the network to tell its program.
    pub(crate) fn note_gone(&mut self, index: u32, port: u32) {
        let is_host = self.plan.topology.is_host(self.vertices[port as usize]);
        let packet = *self.arena.get(index);
        if self.notes_departures && !is_host && !packet.is_link_frame() {
            self.departures.push((port, GONE));
            self.gone.push_back(packet);
        }
    }

    /// Drops a packet that the switch's program does not want.
    pub(crate) fn refuse(&mut self, index: u32) {
        self.note_lost(index, NONE, Outcome::Refused);
        self.counts.refused += 1;
        self.drop_packet(index);
    }

    /// Takes out a packet that the switch's program was to have.
    pub(crate) fn absorb(&mut self, index: u32) {
        self.note_lost(index, NONE, Outcome::Absorbed);
        self.leaves_switch(index, self.arena.ingress(index));
        self.take_out(index);
    }

    fn drop_for(&mut self, index: u32, why: Loss) {
        if self.is_neighbours(index) {
            self.unheard.push((*self.arena.get(index), why));
        }
        self.leaves_switch(index, self.arena.ingress(index));
        self.take_out(index);
    }

    /// From now on each packet goes through its bytes, which look as `codec` says, on each link; or not.
    pub(crate) fn set_codec(&mut self, codec: Option<Arc<dyn Codec>>) {
        self.is_observed = codec.is_some() || self.recorder.is_some();
        self.codec = codec;
    }

    /// Whether a packet is what one neighbour tells another.
    fn is_neighbours(&self, index: u32) -> bool {
        let packet = self.arena.get(index);
        self.has_neighbours && packet.flow == FlowKey::NEIGHBOURS && !packet.is_link_frame()
    }

    /// Queues a packet at a port of the host that sends it, for the neighbour there.
    pub(crate) fn tell(&mut self, port: u32, packet: Packet) {
        let peer = NodeId::new(self.wires[port as usize].peer.get());
        let index = self.take_in(Packet { dst: peer, ..packet });
        if self.ports[port as usize].faults > 0 {
            return self.drop_at_dead_link(index, port);
        }
        self.admit(index, port);
        self.send_waiting(port);
    }

    /// Who sends the frames of the link at `port`: its host or switch.
    fn station(&self, port: u32) -> NodeId {
        NodeId::new(self.vertices[port as usize].get())
    }

    /// Takes a packet out of the network.
    #[inline]
    pub(crate) fn take_out(&mut self, index: u32) {
        self.arena.remove(index);
    }

    /// Takes a packet in at its source.
    #[inline]
    pub(crate) fn take_in(&mut self, packet: Packet) -> u32 {
        self.arena.insert(packet)
    }

    /// Lets a port send if it can; a NIC is left to the network, which may ask its transport.
    #[inline]
    pub(crate) fn serve(&mut self, port: u32) {
        if self.ports[port as usize].is_nic {
            self.ready_nics.push(self.vertices[port as usize].get());
        } else {
            self.send_waiting(port);
        }
    }
}
