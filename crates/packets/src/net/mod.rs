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
mod limits;
mod line;
mod losses;
mod pause;
mod perflow;
mod places;
mod port;
mod schedule;
mod timers;

use std::collections::VecDeque;

use kernel::{Calendar, LinkClock, Stream, Time};
use rack::NodeId;
use rack::topology::{PortId, Vertex};

use crate::config::Plan;
use crate::packet::{FlowKey, Packet};
use crate::route::{Chooser, Live, Tables};
use crate::transport::Loss;

pub(crate) use arena::{Arena, NONE};
pub(crate) use counts::Counts;
pub(crate) use event::{Event, Word};
pub(crate) use halves::{Found, Halves, Journey, Name};
pub(crate) use pause::QUANTUM;
pub(crate) use port::{OutPort, Wire};
pub(crate) use timers::Timers;

use credit::Credits;
use detour::Detours;
use faults::Faults;
use limits::Limits;
use losses::Losses;
use pause::Pauses;
use perflow::FlowQueues;

/// The state of the network.
#[derive(Clone, Debug)]
pub(crate) struct Net {
    pub(crate) plan: Plan,
    pub(crate) now: Time,
    pub(crate) calendar: Calendar<Word>,
    pub(crate) arena: Arena,
    /// Output ports, by port of the topology; then the injection ports of hosts that pass traffic
    /// on.
    pub(crate) ports: Vec<OutPort>,
    pub(crate) wires: Vec<Wire>,
    /// By port: the vertex that it belongs to, as in its wire.
    vertices: Vec<Vertex>,
    /// By port: the clock of its line.
    pub(crate) clocks: Vec<LinkClock>,
    /// By host: the port of its NIC.
    pub(crate) nics: Vec<u32>,
    /// Hosts whose NIC may be able to send something, for the network to see to.
    pub(crate) ready_nics: Vec<u32>,
    /// The flows of all hosts.
    pub(crate) halves: Halves,
    pub(crate) tables: Tables,
    /// The tables of the whole network, once faults have changed those above.
    pub(crate) tables_whole: Option<Box<Tables>>,
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
    /// Whether each packet goes through its bytes on each link.
    pub(crate) uses_wire: bool,
    /// Whether anything can get lost on a link.
    is_lossy: bool,
    losses: Option<Box<Losses>>,
    pub(crate) faults: Faults,
    /// Whether neighbours tell each other things, and what of that was lost.
    pub(crate) has_neighbours: bool,
    pub(crate) unheard: Vec<(Packet, Loss)>,
    /// Whether a program wants to know what goes on the lines of switches, and what did: ports and
    /// packets, which are on the line as long as they are noted here.
    pub(crate) notes_departures: bool,
    pub(crate) departures: Vec<(u32, u32)>,
    /// What was to go on the lines of switches and is gone: for each departure of [`GONE`], in order.
    pub(crate) gone: VecDeque<Packet>,
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
    /// The tables of the network without any fault.
    pub(crate) fn whole(&self) -> &Tables {
        self.tables_whole.as_deref().unwrap_or(&self.tables)
    }

    /// Takes over the tables for what works now.
    pub(crate) fn replace_tables(&mut self, tables: Tables) {
        let before = std::mem::replace(&mut self.tables, tables);
        self.tables_whole.get_or_insert_with(|| Box::new(before));
    }

    /// A packet is there by `port`, at a switch or as a frame of the link.
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
        if packet.is_link_frame() {
            let frame = *packet;
            self.arena.remove(index);
            self.link_frame(&frame, port);
            return None;
        }
        packet.hops = packet.hops.saturating_add(1);
        if self.is_controlled {
            self.arena.set_ingress(index, port);
            if self.pauses.is_some() && !self.pause_admits(index, port) {
                self.counts.overflows += 1;
                self.drop_packet(index);
                return None;
            }
        }
        let vertex = self.vertices[port as usize];
        let Some(out) = self.way_on(index, vertex) else {
            self.counts.unroutable += 1;
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
    #[cold]
    fn link_frame(&mut self, frame: &Packet, port: u32) {
        self.counts.link_frames += 1;
        if self.pauses.is_some() {
            self.pause_frame(frame, port);
        } else {
            self.credit_frame(frame, port);
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
        self.counts.overflows += 1;
        self.drop_packet(index);
    }

    /// Drops a packet that is in no queue: it would go by `port`, whose link is dead.
    pub(crate) fn drop_at_dead_link(&mut self, index: u32, port: u32) {
        self.note_gone(index, port);
        self.counts.dead_link += 1;
        self.drop_for(index, Loss::Dead);
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
        self.counts.refused += 1;
        self.drop_packet(index);
    }

    /// Takes out a packet that the switch's program was to have.
    pub(crate) fn absorb(&mut self, index: u32) {
        self.leaves_switch(index, self.arena.ingress(index));
        self.take_out(index);
    }

    fn drop_for(&mut self, index: u32, why: Loss) {
        self.note_unheard(index, why);
        self.leaves_switch(index, self.arena.ingress(index));
        self.take_out(index);
    }

    /// Keeps what one neighbour told another and is lost, for the network to say so.
    pub(crate) fn note_unheard(&mut self, index: u32, why: Loss) {
        let packet = self.arena.get(index);
        if self.has_neighbours && packet.flow == FlowKey::NEIGHBOURS && !packet.is_link_frame() {
            self.unheard.push((*packet, why));
        }
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
