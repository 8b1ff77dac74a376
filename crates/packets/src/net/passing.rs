//! What parts of a network exchange: packets on links, and the per-flow backpressure of an ideal network.

use std::sync::Arc;

use kernel::{Bytes, Span, Time};
use rack::shards::Outbox;
use rack::topology::Vertex;

use super::event::Event;
use super::halves::Name;
use super::losses::LOST_FRAME;
use super::{NONE, Net, Share};
use crate::config::PAUSE_FRAME;
use crate::cut::Cut;
use crate::message::{Body, Manner, Message};
use crate::packet::Packet;
use crate::program::Post;
use crate::transport::Loss;

impl Net {
    /// Keeps part `own` of the network alone. The rest of the arrays is never touched again, but for faults.
    pub(crate) fn become_part(&mut self, cut: &Cut, own: u16) {
        let part_of = Arc::clone(&cut.part_of);
        for (out, wire) in self.ports.iter_mut().zip(self.wires.iter()) {
            let [here, there] = [wire.vertex, wire.peer].map(|vertex| part_of[vertex.index()]);
            out.is_cut = here == own && there != own;
        }
        self.passing = Outbox::new(cut.parts());
        self.cut = Some(Share { part_of, own });
    }

    /// Whether this is all of the network.
    pub(crate) fn is_whole(&self) -> bool {
        self.cut.is_none()
    }

    /// Whether this is all of the network, or its first part.
    pub(crate) fn is_first(&self) -> bool {
        self.cut.as_ref().is_none_or(|share| share.own == 0)
    }

    /// Whether a vertex is here.
    #[inline]
    pub(crate) fn owns(&self, vertex: Vertex) -> bool {
        self.cut.as_ref().is_none_or(|share| share.part_of[vertex.index()] == share.own)
    }

    /// How long anything takes from one part to another at least.
    pub(crate) fn lookahead(&self, cut: &Cut) -> Span {
        let is_cut = |wire: &super::Wire| cut.part(wire.vertex) != cut.part(wire.peer);
        let ports = self.wires.iter().zip(&self.clocks).filter(|(wire, _)| is_cut(wire));
        let least = ports.map(|(wire, clock)| {
            let time = |size: Bytes| clock.rate().least_send_time(size);
            let delay = match self.plan.topology.is_host(wire.peer) {
                true => wire.delay.min(wire.last_delay),
                false => wire.delay,
            };
            let packet = delay + time(Bytes::new(1));
            let is_told = self.flow_queues.is_some()
                || self.has_words
                || (self.has_neighbours && !self.plan.faults.is_empty());
            let frame = match &self.credits {
                _ if is_told => Some(Span::ZERO),
                Some(credits) => Some(time(Bytes::new(credits.frame.into()))),
                None if self.repairs_links && self.is_lossy => {
                    Some(time(Bytes::new(LOST_FRAME.into())))
                }
                None => self.pauses.as_ref().map(|_| time(PAUSE_FRAME)),
            };
            frame.map_or(packet, |frame| packet.min(wire.propagation + frame))
        });
        least.min().unwrap_or(Span::from_us(1_000))
    }

    /// Sends what a program has for a switch of another part, by a link of its own.
    pub(crate) fn post(&mut self, port: u32, at: Time, post: Post) {
        self.send_to(port, at, Body::Posted(post));
    }

    fn send_to(&mut self, port: u32, at: Time, body: Body) {
        let vertex = self.vertices[port as usize];
        let share = self.cut.as_ref().expect("there is somebody else");
        let to = share.part_of[vertex.index()];
        self.passing.send(to.into(), at.as_ps(), Message { at, port, body });
    }

    /// Sends a packet on its way to the other end of `port`, which is another part's; there it is `at` an
    /// instant. It stays in the arena until [`Net::let_go`].
    #[cold]
    pub(super) fn pass(&mut self, port: u32, index: u32, (at, manner): (Time, Manner)) {
        let out = &self.ports[port as usize];
        let (to, life) = (out.reverse, out.life);
        let first = self.detours.as_ref().map_or(NONE, |detours| detours.first_of(index));
        let packet = *self.arena.get(index);
        self.send_to(to, at, Body::Packet { packet, life, first, manner });
    }

    /// A packet that left by a cut link is no longer here, once the program has been told of it.
    #[cold]
    pub(super) fn let_go(&mut self, index: u32, is_noted: bool) {
        match is_noted {
            true => self.passed.push(index),
            false => self.arena.remove(index),
        }
    }

    /// Lets go of what was kept for the program.
    pub(crate) fn forget_passed(&mut self) {
        while let Some(index) = self.passed.pop() {
            self.arena.remove(index);
        }
    }

    /// Tells the part of `port` of room for one more packet of a flow.
    pub(super) fn pass_room(&mut self, port: u32, name: Name, is_first: bool, at: Time) {
        self.send_to(port, at, Body::Room { name, is_first });
    }

    /// Tells the host of `port`, by which it was sent, that a packet was on a link that has died: so late that
    /// an answer to the packet would be there.
    pub(super) fn tell_unheard(&mut self, port: u32, packet: Packet) {
        let at = self.now + self.wires[port as usize].propagation;
        if self.owns(self.vertices[port as usize]) {
            self.expect_unheard(port, packet, at);
        } else {
            self.send_to(port, at, Body::Unheard { packet });
        }
    }

    /// Tells the other end of `port` a word, over which the line takes no time.
    pub(crate) fn tell_word(&mut self, port: u32, word: u32) {
        if self.ports[port as usize].faults > 0 {
            return;
        }
        let wire = &self.wires[port as usize];
        let (to, at) = (wire.reverse, self.now + wire.propagation);
        if self.owns(self.vertices[to as usize]) {
            self.calendar.push(at, Event::Word { port: to, word }.pack());
        } else {
            self.send_to(to, at, Body::Word { word });
        }
    }

    fn expect_unheard(&mut self, port: u32, packet: Packet, at: Time) {
        let index = self.arena.insert(packet);
        self.calendar.push(at, Event::Unheard { packet: index, port }.pack());
    }

    /// A host hears that a packet is lost.
    pub(crate) fn hear_unheard(&mut self, index: u32) {
        self.unheard.push((*self.arena.get(index), Loss::Dead));
        self.take_out(index);
    }

    /// Takes what another part has sent.
    pub(crate) fn take(&mut self, message: Message) {
        let Message { at, port, body } = message;
        match body {
            Body::Packet { packet, life, first, manner } => {
                let index = self.arena.insert(packet);
                if self.is_lossy {
                    self.arena.set_ingress(index, life);
                }
                if let Some(detours) = &mut self.detours {
                    detours.put(index, first);
                }
                let event = match manner {
                    Manner::Through => Event::Arrive { packet: index, port },
                    Manner::There => Event::Deliver { packet: index, port },
                    Manner::Frame => Event::Frame { packet: index, port },
                };
                self.calendar.push(at, event.pack());
            }
            Body::Room { name, is_first } => self.expect_room(port, name, is_first, at),
            Body::Unheard { packet } => self.expect_unheard(port, packet, at),
            Body::Word { word } => self.calendar.push(at, Event::Word { port, word }.pack()),
            Body::Posted(_) => debug_assert!(false, "{message:?} is for the program"),
        }
    }
}
