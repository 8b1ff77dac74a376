//! Link-level credits: a sender knows how much room its priority has at the other end.
//!
//! As InfiniBand: each input port has a buffer for each priority; a packet may go if the largest
//! would fit; space given back returns in frames of their own, one for each priority at a time, that
//! carry all that has come free. Nothing is ever dropped for lack of room.

use super::Net;
use super::port::LINK_QUEUE;
use crate::packet::{Kind, PRIORITIES, Packet};

/// The state of credits.
#[derive(Clone, Debug)]
pub(crate) struct Credits {
    /// Buffer of an input port for each priority, in bytes.
    pub(super) buffer: u32,
    /// Largest packet.
    pub(super) mtu: u32,
    /// Size of the frame that returns credits.
    pub(super) frame: u16,
    /// By output port and priority: bytes known to be free at the other end.
    pub(super) room: Vec<[u32; 8]>,
    /// By input port and priority: bytes come free and not yet said.
    pub(super) owed: Vec<[u32; 8]>,
    /// By input port: bit `p`: a frame for priority `p` waits.
    pub(super) is_waiting: Vec<u8>,
    /// By input port and priority: bytes in its buffer.
    pub(super) held: Vec<[u32; 8]>,
}

impl Net {
    /// A packet goes out by `port`: its room at the other end is taken.
    pub(super) fn credit_take(&mut self, port: u32, index: u32) {
        let packet = self.arena.get(index);
        let Some(credits) = &mut self.credits else { return };
        let (priority, size) = (usize::from(packet.priority), u32::from(packet.wire));
        let room = &mut credits.room[port as usize][priority];
        debug_assert!(*room >= size, "{size} bytes sent on {room} bytes of credit");
        *room -= size;
        if *room < credits.mtu {
            self.ports[port as usize].held |= 1 << priority;
        }
    }

    /// A packet comes in by `port`: it fills its buffer.
    pub(super) fn credit_arrives(&mut self, index: u32, port: u32) {
        let Some(credits) = &mut self.credits else { return };
        let packet = self.arena.get(index);
        let held = &mut credits.held[port as usize][usize::from(packet.priority)];
        *held += u32::from(packet.wire);
        debug_assert!(*held <= credits.buffer, "a buffer overflows");
    }

    /// A packet that came by `port` has left: its room is owed to the sender.
    pub(super) fn credit_return(&mut self, index: u32, port: u32) {
        let packet = self.arena.get(index);
        let Some(credits) = &mut self.credits else { return };
        let (priority, size) = (usize::from(packet.priority), u32::from(packet.wire));
        credits.held[port as usize][priority] -= size;
        credits.owed[port as usize][priority] += size;
        let bit = 1 << priority;
        if credits.is_waiting[port as usize] & bit != 0 || self.ports[port as usize].faults > 0 {
            return;
        }
        let priority = packet.priority;
        self.enqueue_credit(port, priority);
        self.serve(port);
    }

    /// Queues a frame that gives back room of a priority.
    fn enqueue_credit(&mut self, port: u32, priority: u8) {
        let Some(credits) = &mut self.credits else { return };
        credits.is_waiting[port as usize] |= 1 << priority;
        let wire = credits.frame;
        let (kind, src) = (Kind::LINK_CREDIT, self.station(port));
        let frame = Packet { kind, src, priority, wire, ..Packet::default() };
        let index = self.arena.insert(frame);
        self.enqueue(port, LINK_QUEUE, index);
    }

    /// A link frame is about to go: a credit frame takes all that is owed.
    pub(super) fn before_link_frame(&mut self, port: u32, index: u32) {
        let Some(credits) = &mut self.credits else { return };
        let frame = self.arena.get_mut(index);
        let priority = usize::from(frame.priority);
        frame.ack = u64::from(std::mem::take(&mut credits.owed[port as usize][priority]));
        credits.is_waiting[port as usize] &= !(1 << priority);
    }

    /// Room has come free at the other end of `port`.
    pub(super) fn credit_frame(&mut self, frame: &Packet, port: u32) {
        let Some(credits) = &mut self.credits else { return };
        let room = &mut credits.room[port as usize][usize::from(frame.priority)];
        *room += frame.ack as u32;
        debug_assert!(*room <= credits.buffer, "{room} bytes of credit for {}", credits.buffer);
        if *room >= credits.mtu {
            self.ports[port as usize].held &= !(1 << frame.priority);
        }
    }

    /// The link of `port` has come up: what was under way is gone, and each end has to hear how much room
    /// the other has. (It sends all that with frames, as InfiniBand does when a link is initialised.)
    pub(super) fn credit_reset(&mut self, port: u32) {
        let Some(credits) = &mut self.credits else { return };
        let (buffer, held) = (credits.buffer, credits.held[port as usize]);
        credits.room[port as usize] = [0; 8];
        credits.owed[port as usize] = held.map(|held| buffer - held);
        credits.is_waiting[port as usize] = 0;
        let out = &mut self.ports[port as usize];
        out.held = (1 << PRIORITIES) - 1;
        for priority in (0..PRIORITIES).filter(|&priority| held[usize::from(priority)] < buffer) {
            self.enqueue_credit(port, priority);
        }
    }
}
