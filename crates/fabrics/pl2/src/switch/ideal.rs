//! What if the switch could update both counters at once?
//!
//! Models: PL2 §4.2 (claim M10): "In the absence of the first limitation, the switch could update both
//! … to max(inReservation, outReservation)", and send one slot. The slot chosen grows from burst to
//! burst at either port, so bursts cannot collide.
//!
//! The sentence leaves out that both counters then hold slots in which nothing is sent: where one was
//! behind the other, the slots between are skipped and no packet ever takes them off. So this variant
//! keeps instants instead of counts, which needs a clock beside the state: hardware without the first
//! limitation, and with time. A slot that the sender cannot reach in time is not given out: the least
//! wait is `lead`.

use kernel::{Span, Time};

use super::pipeline::Between;

/// The first instant at which each input and output is free.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ideal {
    slot: Span,
    lead: Span,
    input: Vec<Time>,
    output: Vec<Time>,
}

impl Ideal {
    /// `ports` free ports. A slot is `slot` long; data comes `lead` after its reservation at the
    /// earliest.
    ///
    /// # Panics
    /// If `slot` is zero.
    #[must_use]
    pub fn new(ports: u32, slot: Span, lead: Span) -> Self {
        assert!(slot > Span::ZERO, "a slot of no length");
        let free = || vec![Time::ZERO; ports as usize];
        Self { slot, lead, input: free(), output: free() }
    }

    /// Reserves `demand` slots at both ports. Returns how many slots from now the first is.
    pub fn reserve(&mut self, now: Time, demand: u16, between: Between) -> u32 {
        let free_at = self.free_at(between).max(now + self.lead);
        let slots = (free_at - now).div_ceil(self.slot);
        let end = now + self.slot * (slots + u64::from(demand));
        self.input[between.input as usize] = end;
        self.output[between.output as usize] = end;
        u32::try_from(slots).unwrap_or(u32::MAX)
    }

    /// Slots from now until the output is free.
    #[must_use]
    pub fn waiting(&self, now: Time, output: u32) -> u32 {
        let free_at = self.output[output as usize].max(now);
        u32::try_from((free_at - now).div_ceil(self.slot)).unwrap_or(u32::MAX)
    }

    fn free_at(&self, between: Between) -> Time {
        self.input[between.input as usize].max(self.output[between.output as usize])
    }
}
