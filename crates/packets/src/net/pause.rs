//! Priority flow control: pause frames by ingress port and priority (IEEE 802.1Qbb).
//!
//! A switch counts the bytes that came in by each port and priority and have not left. Above XOFF it
//! pauses the sender, at XON or below it resumes it. The frames are real: they wait for the packet on
//! the line, take their time on it, and travel. Leaves out: pauses that run out by themselves (a
//! paused port stays so until resumed, as if refreshed in time).

use super::Net;
use super::port::LINK_QUEUE;
use crate::config::PAUSE_FRAME;
use crate::packet::{Kind, Packet};

/// The state of pauses.
#[derive(Clone, Debug)]
pub(crate) struct Pauses {
    /// By port: most bytes beyond XOFF that each priority may hold of what came in by it.
    pub(super) headroom: Vec<u32>,
    /// By port and priority: bytes in the switch that came in by it.
    pub(super) held: Vec<[u32; 8]>,
    /// By port: bit `p`: the sender was told to pause priority `p`.
    pub(super) paused: Vec<u8>,
}

/// What a pause frame says, in its `ack` field.
const PAUSE: u64 = 1;
const RESUME: u64 = 0;

impl Net {
    /// Counts a packet in by its ingress port. False if the headroom is used up: it is lost.
    pub(super) fn pause_admits(&mut self, index: u32, port: u32) -> bool {
        let packet = *self.arena.get(index);
        let Some(limits) = self.limits.pause else { return true };
        if limits.lossless >> packet.priority & 1 == 0 {
            return true;
        }
        let pauses = self.pauses.as_mut().expect("pause limits come with their state");
        let held = &mut pauses.held[port as usize][usize::from(packet.priority)];
        *held += u32::from(packet.wire);
        self.counts.ingress_max = self.counts.ingress_max.max(*held);
        let is_over = *held > limits.xoff + pauses.headroom[port as usize];
        let bit = 1 << packet.priority;
        if *held > limits.xoff && pauses.paused[port as usize] & bit == 0 {
            pauses.paused[port as usize] |= bit;
            self.counts.pauses += 1;
            self.send_pause(port, packet.priority, PAUSE);
        }
        !is_over
    }

    /// A packet that came by `port` has left the switch.
    pub(super) fn pause_release(&mut self, index: u32, port: u32) {
        let packet = self.arena.get(index);
        let (priority, size) = (packet.priority, u32::from(packet.wire));
        let Some(limits) = self.limits.pause else { return };
        if limits.lossless >> priority & 1 == 0 {
            return;
        }
        let pauses = self.pauses.as_mut().expect("pause limits come with their state");
        let held = &mut pauses.held[port as usize][usize::from(priority)];
        *held -= size;
        let bit = 1 << priority;
        if *held <= limits.xon && pauses.paused[port as usize] & bit != 0 {
            pauses.paused[port as usize] &= !bit;
            self.send_pause(port, priority, RESUME);
        }
    }

    fn send_pause(&mut self, port: u32, priority: u8, word: u64) {
        if self.ports[port as usize].faults > 0 {
            return;
        }
        let frame = Packet {
            kind: Kind::Pause,
            priority,
            ack: word,
            wire: PAUSE_FRAME.get() as u16,
            ..Packet::default()
        };
        let index = self.arena.insert(frame);
        self.enqueue(port, LINK_QUEUE, index);
        self.serve(port);
    }

    /// The other end of `port` asks to pause or resume.
    pub(super) fn pause_frame(&mut self, frame: &Packet, port: u32) {
        let out = &mut self.ports[port as usize];
        if frame.ack == PAUSE {
            out.held |= 1 << frame.priority;
        } else {
            out.held &= !(1 << frame.priority);
        }
    }

    /// A link has come up: neither end is paused, and each will say so anew.
    pub(super) fn pause_reset(&mut self, port: u32) {
        self.ports[port as usize].held = 0;
        if let Some(pauses) = &mut self.pauses {
            pauses.paused[port as usize] = 0;
        }
    }
}
