//! Which requests are granted when: the queues of requests at a TiN, and the scheduler that clears packets to be sent.
//!
//! Models: Aquila §3.3 (M411 to M415, M423): for each port and class of service one queue, of all sources; a packet is
//! asked for when the port's bandwidth and a place to put it together are free. **Our choice** (U27 to U29): class 7
//! goes first, the others have shares by bytes (deficit round robin); a token bucket at the port's rate and a window
//! in bytes.

use std::collections::VecDeque;

use super::Settings;
use crate::cells::ip::Rts;
use crate::switch::cell::Watch;

/// Quantum of a share of 1 (our choice, M413). Unit: bytes.
const QUANTUM: u32 = 4 << 10;
/// The class of service that goes before all others.
const STRICT: usize = 7;

/// A request that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// Where the packet is.
    pub(super) from: u16,
    /// The address that it goes to.
    pub(super) to: u16,
    pub(super) watch: Watch,
    pub(super) rts: Rts,
}

/// The queues of a port, one for each class of service.
#[derive(Clone, Debug, Default)]
pub(super) struct Queues {
    queues: [VecDeque<Request>; 8],
    /// What they ask for. Unit: bytes.
    asked: [u64; 8],
    /// Bytes that classes below the strict one may still ask for in their turn.
    deficits: [u32; STRICT],
    turn: usize,
    waiting: u32,
}

impl Queues {
    /// Requests of a class of service that wait.
    pub(super) fn depth(&self, class_of_service: u8) -> u32 {
        self.queues[usize::from(class_of_service)].len() as u32
    }

    /// The same, and the bytes that they ask for.
    pub(super) fn depths(&self, class_of_service: u8) -> (u32, u64) {
        (self.depth(class_of_service), self.asked[usize::from(class_of_service)])
    }

    /// Requests that wait.
    pub(super) fn waiting(&self) -> u32 {
        self.waiting
    }

    pub(super) fn push(&mut self, request: Request) {
        let class = usize::from(request.rts.class_of_service);
        self.asked[class] += u64::from(request.rts.length);
        self.queues[class].push_back(request);
        self.waiting += 1;
    }

    /// The request whose turn it is. The same, until it is popped or one of the strict class comes.
    pub(super) fn pick(&mut self, weights: [u8; STRICT]) -> Option<Request> {
        if let Some(&first) = self.queues[STRICT].front() {
            return Some(first);
        }
        if self.waiting == 0 {
            return None;
        }
        loop {
            let turn = self.turn;
            if let Some(&first) = self.queues[turn].front() {
                if self.deficits[turn] >= first.rts.length.into() {
                    return Some(first);
                }
            } else {
                self.deficits[turn] = 0;
            }
            self.turn = (turn + 1) % STRICT;
            if !self.queues[self.turn].is_empty() {
                self.deficits[self.turn] += QUANTUM * u32::from(weights[self.turn]);
            }
        }
    }

    /// Takes out the first request of a class, the one that was picked.
    pub(super) fn pop(&mut self, class_of_service: u8) -> Option<Request> {
        let class = usize::from(class_of_service);
        let request = self.queues[class].pop_front()?;
        self.waiting -= 1;
        self.asked[class] -= u64::from(request.rts.length);
        if class != STRICT {
            self.deficits[class] -= u32::from(request.rts.length);
        }
        Some(request)
    }
}

/// Bandwidth and room of a group of ports that share a line of 100 Gbps.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    /// Bytes of the egress buffer that nothing is put together in and nothing waits in.
    pub(super) free: u32,
    /// Bytes that were asked for and are not all there.
    pub(super) outstanding: u32,
    /// Until when the line has work by what was asked for. Unit: ps.
    paid: u64,
}

/// Why nothing is asked for now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    /// No place to put it together, or as much is outstanding as may be.
    Room,
    /// The line has enough to do until this instant. Unit: ps.
    Until(u64),
}

impl Budget {
    pub(super) fn new(settings: &Settings) -> Self {
        Self { free: settings.egress_buffer, outstanding: 0, paid: 0 }
    }

    /// Until when the line has work by what was asked for. Unit: ps.
    pub(super) fn paid(&self) -> u64 {
        self.paid
    }

    /// Takes what a packet needs, or says what is missing. `times` are how long the line takes for it, and for what
    /// the token bucket holds.
    pub(super) fn take(
        &mut self,
        length: u16,
        times: (u64, u64),
        now: u64,
        settings: &Settings,
    ) -> Result<(), Wait> {
        let bytes = u32::from(length);
        let is_over = self.outstanding > 0 && self.outstanding + bytes > settings.window;
        if bytes > self.free || is_over {
            return Err(Wait::Room);
        }
        let (time, burst) = times;
        let from = self.paid.saturating_sub(burst.saturating_sub(time));
        if from > now {
            return Err(Wait::Until(from));
        }
        self.paid = self.paid.max(now) + time;
        self.free -= bytes;
        self.outstanding += bytes;
        Ok(())
    }
}
