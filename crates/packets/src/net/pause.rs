//! Priority flow control: pause frames by ingress port and priority (IEEE 802.1Qbb).
//!
//! A switch counts the bytes that came in by each port and priority and have not left. Above the
//! threshold it pauses the sender, two packets below it resumes it. The threshold is fixed, or follows
//! what is free of the switch's memory (DCQCN §4). The frames are real: they wait for the packet on
//! the line, take their time on it, and travel. A pause runs out after the time that its frame names,
//! so a switch says it again halfway, as long as it must last. Leaves out: the time that a port takes
//! to react.

use kernel::Bytes;

use super::Net;
use super::deadline::Deadline;
use super::event::Event;
use super::limits::{PauseLimits, Threshold};
use super::port::LINK_QUEUE;
use crate::config::PAUSE_FRAME;
use crate::packet::{Kind, Packet};

/// The state of pauses.
#[derive(Clone, Debug)]
pub(crate) struct Pauses {
    /// By port.
    pub(super) ingress: Vec<Ingress>,
    /// What a pause frame names: its time in units of [`QUANTUM`] on the link.
    pub(super) quanta: u64,
    /// By output port and priority: when its pause runs out.
    pub(super) ends: Vec<[Deadline; 8]>,
    /// By ingress port and priority: when its sender is to be paused again.
    pub(super) again: Vec<[Deadline; 8]>,
    /// By vertex.
    pub(super) memory: Vec<Memory>,
    /// By vertex, where thresholds follow its memory: ports and priorities to resume, and some that
    /// need it no more.
    pub(super) waiting: Vec<Vec<(u32, u8)>>,
}

/// What came in by a port and has not left.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Ingress {
    /// By priority: bytes in the switch.
    pub(super) held: [u32; 8],
    /// Most bytes beyond a fixed XOFF that each priority may hold.
    pub(super) headroom: u32,
    /// Bit `p`: the sender was told to pause priority `p`.
    pub(super) paused: u8,
}

impl Ingress {
    pub(super) fn new(headroom: u32) -> Self {
        Self { held: [0; 8], headroom, paused: 0 }
    }
}

/// The memory of a switch for what must not be dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(super) size: u64,
    /// What is not headroom.
    pub(crate) pool: u64,
    pub(crate) used: u64,
}

impl Memory {
    /// What a port and priority may hold now, of so many parts in `whole`.
    #[inline]
    fn threshold(self, share: u64, whole: u64) -> u64 {
        self.pool.saturating_sub(self.used).saturating_mul(share) / whole
    }
}

/// The unit of a pause's time: 512 bits on the link (802.1Qbb, 802.3 Annex 31B).
pub(crate) const QUANTUM: Bytes = Bytes::new(64);
/// A pause frame of no time resumes. Frames say their quanta in the `ack` field.
const RESUME: u64 = 0;

impl PauseLimits {
    /// What a packet adds to what is held: of a priority that may be lost, nothing. Such priorities
    /// go through the same steps and are never paused, which is quicker than a mispredicted branch.
    #[inline]
    fn counted(self, packet: &Packet) -> u32 {
        u32::from(packet.wire) * u32::from(self.lossless >> packet.priority & 1)
    }
}

impl Net {
    /// Counts a packet in by its ingress port. False if the headroom is used up: it is lost.
    pub(super) fn pause_admits(&mut self, index: u32, port: u32) -> bool {
        let packet = self.arena.get(index);
        let priority = packet.priority;
        let Some(limits) = self.limits.pause else { return true };
        let size = limits.counted(packet);
        let vertex = self.vertices[port as usize].index();
        let pauses = self.pauses.as_mut().expect("pause limits come with their state");
        let ingress = &mut pauses.ingress[port as usize];
        let held = &mut ingress.held[usize::from(priority)];
        let memory = &mut pauses.memory[vertex];
        *held += size;
        memory.used += u64::from(size);
        self.counts.ingress_max = self.counts.ingress_max.max(*held);
        let (pauses_at, fits) = match limits.threshold {
            Threshold::Fixed { xoff, .. } => (u64::from(xoff), *held <= xoff + ingress.headroom),
            Threshold::Free { share, whole, .. } => {
                (memory.threshold(share, whole), memory.used <= memory.size)
            }
        };
        let bit = 1 << priority;
        if u64::from(*held) > pauses_at && ingress.paused & bit == 0 {
            ingress.paused |= bit;
            if matches!(limits.threshold, Threshold::Free { .. }) {
                pauses.waiting[vertex].push((port, priority));
            }
            self.counts.pauses += 1;
            self.pause(port, priority);
        }
        fits || size == 0
    }

    /// A packet that came by `port` has left the switch.
    pub(super) fn pause_release(&mut self, index: u32, port: u32) {
        let packet = self.arena.get(index);
        let priority = packet.priority;
        let Some(limits) = self.limits.pause else { return };
        let size = limits.counted(packet);
        let vertex = self.vertices[port as usize].index();
        let pauses = self.pauses.as_mut().expect("pause limits come with their state");
        let ingress = &mut pauses.ingress[port as usize];
        let held = &mut ingress.held[usize::from(priority)];
        *held -= size;
        pauses.memory[vertex].used -= u64::from(size);
        match limits.threshold {
            Threshold::Fixed { xon, .. } => {
                let bit = 1 << priority;
                if *held <= xon && ingress.paused & bit != 0 {
                    ingress.paused &= !bit;
                    self.resume(port, priority);
                }
            }
            Threshold::Free { share, whole, gap } => {
                if !pauses.waiting[vertex].is_empty() {
                    let resumes_at = pauses.memory[vertex].threshold(share, whole);
                    self.resume_all(vertex, resumes_at.saturating_sub(gap));
                }
            }
        }
    }

    /// Resumes every sender of which the switch holds `resumes_at` or less: memory was freed, by
    /// whomever.
    fn resume_all(&mut self, vertex: usize, resumes_at: u64) {
        let mut place = 0;
        loop {
            let pauses = self.pauses.as_mut().expect("the caller has just used it");
            let Some(&(port, priority)) = pauses.waiting[vertex].get(place) else { return };
            let bit = 1 << priority;
            let ingress = &mut pauses.ingress[port as usize];
            let is_paused = ingress.paused & bit != 0;
            let held = u64::from(ingress.held[usize::from(priority)]);
            if is_paused && held > resumes_at {
                place += 1;
                continue;
            }
            ingress.paused &= !bit;
            pauses.waiting[vertex].swap_remove(place);
            if is_paused {
                self.resume(port, priority);
            }
        }
    }

    /// The memory of each switch.
    #[cfg(test)]
    pub(crate) fn pauses_state(&self) -> Vec<Memory> {
        self.pauses.as_ref().map_or_else(Vec::new, |pauses| pauses.memory.clone())
    }

    /// Pauses the sender at the other end of `port`, and will again before the pause runs out.
    fn pause(&mut self, port: u32, priority: u8) {
        let pauses = self.pauses.as_mut().expect("the caller has just used it");
        let quanta = pauses.quanta;
        let again = self.now + self.clocks[port as usize].rate().send_time(QUANTUM * quanta) / 2;
        if let Some(at) = pauses.again[port as usize][usize::from(priority)].set(again) {
            self.calendar.push(at, Event::PauseAgain { port, priority }.pack());
        }
        self.send_pause(port, priority, quanta);
    }

    fn resume(&mut self, port: u32, priority: u8) {
        let pauses = self.pauses.as_mut().expect("the caller has just used it");
        pauses.again[port as usize][usize::from(priority)].cancel();
        self.send_pause(port, priority, RESUME);
    }

    /// Half of a pause has passed. It is renewed if it is still meant.
    pub(crate) fn pause_again(&mut self, port: u32, priority: u8) {
        let Some(pauses) = &mut self.pauses else { return };
        let (is_due, next) = pauses.again[port as usize][usize::from(priority)].look(self.now);
        if let Some(at) = next {
            self.calendar.push(at, Event::PauseAgain { port, priority }.pack());
        }
        if is_due {
            self.pause(port, priority);
        }
    }

    fn send_pause(&mut self, port: u32, priority: u8, quanta: u64) {
        if self.ports[port as usize].faults > 0 {
            return;
        }
        let frame = Packet {
            kind: Kind::PAUSE,
            src: self.station(port),
            priority,
            ack: quanta,
            wire: PAUSE_FRAME.get() as u16,
            ..Packet::default()
        };
        let index = self.arena.insert(frame);
        self.enqueue(port, LINK_QUEUE, index);
        self.serve(port);
    }

    /// The other end of `port` asks to pause or resume.
    pub(crate) fn pause_frame(&mut self, frame: &Packet, port: u32) {
        let Some(pauses) = &mut self.pauses else { return };
        let ends = &mut pauses.ends[port as usize][usize::from(frame.priority)];
        if frame.ack == RESUME {
            ends.cancel();
            self.ports[port as usize].held &= !(1 << frame.priority);
            return;
        }
        let time = self.clocks[port as usize].rate().send_time(QUANTUM * frame.ack);
        self.ports[port as usize].held |= 1 << frame.priority;
        if let Some(at) = ends.set(self.now + time) {
            let event = Event::PauseEnds { port, priority: frame.priority };
            self.calendar.push(at, event.pack());
        }
    }

    /// A pause of `port` may have run out: unless it was renewed, or is over.
    pub(crate) fn pause_ends(&mut self, port: u32, priority: u8) {
        let Some(pauses) = &mut self.pauses else { return };
        let (is_due, next) = pauses.ends[port as usize][usize::from(priority)].look(self.now);
        if let Some(at) = next {
            self.calendar.push(at, Event::PauseEnds { port, priority }.pack());
        }
        if is_due {
            self.ports[port as usize].held &= !(1 << priority);
            self.serve(port);
        }
    }

    /// A link has come up: neither end is paused, and each will say so anew.
    pub(super) fn pause_reset(&mut self, port: u32) {
        self.ports[port as usize].held = 0;
        if let Some(pauses) = &mut self.pauses {
            pauses.ingress[port as usize].paused = 0;
            pauses.ends[port as usize].iter_mut().for_each(Deadline::cancel);
            pauses.again[port as usize].iter_mut().for_each(Deadline::cancel);
        }
    }
}
