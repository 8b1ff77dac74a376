//! The output buffers of a switch and the lines behind them.
//!
//! A packet leaves in the order in which its output got it, as soon as it is ready and the line is
//! free; so the moment of leaving is known on arrival. A place is reserved before it is used, so a
//! bufferless core never has to drop.

use kernel::Ring;

use crate::{Departure, Line, Packet, Ticks};

/// Packets noted at an output before those that have left are forgotten: our choice, a cache line
/// or two.
const FORGET_FROM: usize = 12;

/// The output side of all ports.
#[derive(Clone, Debug)]
pub struct Egress {
    line: Line,
    /// Packets for which each output has room.
    places: usize,
    outputs: Vec<Output>,
}

#[derive(Clone, Debug, Default)]
struct Output {
    /// When the line is free again.
    free_at: Ticks,
    /// When each packet held has left with its last bit.
    leaving: Ring<Ticks>,
    /// Places promised to packets on their way.
    promised: usize,
}

impl Egress {
    /// Outputs for `ports`, each with room for `places` packets; `usize::MAX` is no bound, and
    /// nothing is noted of what waits then.
    #[must_use]
    pub fn new(line: Line, ports: usize, places: usize) -> Self {
        Self { line, places, outputs: vec![Output::default(); ports] }
    }

    /// Whether `output` can promise another place at `now`.
    #[inline]
    pub fn has_room(&mut self, output: usize, now: Ticks) -> bool {
        let port = &mut self.outputs[output];
        // To forget is the dearer half, so only what is full or grows without bound is looked at.
        if port.leaving.len() + port.promised < self.places.min(FORGET_FROM) {
            return true;
        }
        port.forget(now);
        port.leaving.len() + port.promised < self.places
    }

    /// Promises a place.
    #[inline]
    pub fn promise(&mut self, output: usize) {
        self.outputs[output].promised += 1;
    }

    /// Takes a promise back.
    #[inline]
    pub fn withdraw(&mut self, output: usize) {
        debug_assert!(self.outputs[output].promised > 0, "nothing promised at output {output}");
        self.outputs[output].promised -= 1;
    }

    /// Takes a packet whose place was promised and that may leave from `ready` on.
    #[inline]
    pub fn take(&mut self, packet: Packet, ready: Ticks) -> Departure {
        self.withdraw(usize::from(packet.destination));
        let port = &mut self.outputs[usize::from(packet.destination)];
        let at = port.free_at.max(ready);
        port.free_at = at + self.line.send_time(packet.size());
        if self.places == usize::MAX {
            return Departure { packet, at };
        }
        port.leaving.push(port.free_at);
        if port.leaving.len() + port.promised > self.places {
            port.forget(ready);
        }
        debug_assert!(
            port.leaving.len() + port.promised <= self.places,
            "output {} holds {} packets and has promised {} places of {}",
            packet.destination,
            port.leaving.len(),
            port.promised,
            self.places
        );
        Departure { packet, at }
    }
}

impl Output {
    #[inline]
    fn forget(&mut self, now: Ticks) {
        while self.leaving.front().is_some_and(|&end| end <= now) {
            self.leaving.pop();
        }
    }
}
