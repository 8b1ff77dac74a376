//! When a slot begins, how long it is, and how precisely nodes know it.
//!
//! Models: Shoal §3.4, §6.1, §7.1 (claims S40, S41, S43): the guard band as the sum of what it must
//! cover, and slot, cell and epoch that follow from it. [`protocols`] has what synchronises the
//! rack and how precisely, [`bootstrap`] the start of a rack, [`clock`] the loss of its clock
//! master. Leaves out: the elastic buffers of switches and temperature drift of the wires (§3.4
//! calls both small inside a rack).

pub mod bootstrap;
pub mod clock;
mod config;
mod master;
pub mod protocols;

use kernel::{Bytes, Rate, Span};
use rack::Problem;

pub use bootstrap::{Bootstrap, BootstrapTiming, Phase};
pub use clock::{ClockLoss, Takeover};
pub use config::SyncConfig;
pub(crate) use master::Clock;
pub use protocols::TimeProtocol;

/// Propagation in optical fibre: 5 ns/m (§3.4).
pub const PROPAGATION_PER_MILLIMETRE: Span = Span::from_ps(5);

/// How much longer or shorter than intended a wire of the rack may be: 2 cm (§3.4).
pub const WIRE_TOLERANCE_DEFAULT: Millimetres = Millimetres::new(20);

/// A length of wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Millimetres(u64);

impl Millimetres {
    /// A length of `count` millimetres.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The time a signal takes over it.
    #[must_use]
    pub fn propagation(self) -> Span {
        PROPAGATION_PER_MILLIMETRE * self.0
    }
}

/// The difference in propagation between the longest and the shortest wire, all of them equal but
/// for this much more or less.
#[must_use]
pub fn propagation_spread(tolerance: Millimetres) -> Span {
    tolerance.propagation() * 2
}

/// What a guard band has to cover (§3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GuardBand {
    /// The switches change their circuits.
    pub reconfiguration: Span,
    /// Wires differ in length.
    pub propagation_spread: Span,
    /// Clocks differ.
    pub synchronisation: Span,
    /// Receivers at layer 0 find the clock of a new sender (§3.5); zero at layer 1.
    pub clock_recovery: Span,
}

impl GuardBand {
    /// The least guard band that covers all of it.
    #[must_use]
    pub fn total(&self) -> Span {
        self.reconfiguration + self.propagation_spread + self.synchronisation + self.clock_recovery
    }

    /// What a guard band of `guard` leaves for clocks to differ in, beyond all else that it covers;
    /// `None`: it does not even cover the rest.
    #[must_use]
    pub fn synchronisation_margin(&self, guard: Span) -> Option<Span> {
        let rest = self.total() - self.synchronisation;
        (guard >= rest).then(|| guard - rest)
    }
}

/// A guard band that does not suffice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "each cell would be clipped by {clipped}: it leaves {available} between cells, and {} for \
     reconfiguration, {} for the spread of propagation, {} for synchronisation and {} for clock \
     recovery take {}; make the slot longer or the cell smaller",
    needed.reconfiguration, needed.propagation_spread, needed.synchronisation,
    needed.clock_recovery, needed.total()
)]
pub struct ClippedCell {
    /// How much of each cell is lost in the worst case.
    pub clipped: Span,
    /// The time between the end of a cell and the start of the next.
    pub available: Span,
    /// What that time must cover.
    pub needed: GuardBand,
}

/// One slot of one channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotTiming {
    slot: Span,
    guard: Span,
    framing: Bytes,
    rate: Rate,
}

impl SlotTiming {
    /// A slot with a guard band, on a channel of `rate` whose link adds `framing` to each cell.
    ///
    /// # Errors
    /// If the rate is zero or the slot has no room for a byte.
    pub fn new(slot: Span, guard: Span, framing: Bytes, rate: Rate) -> Result<Self, Problem> {
        if rate == Rate::default() {
            return Err(Problem::new("node_rate", "a channel of 0 bps sends nothing"));
        }
        let overhead = guard + rate.send_time(framing);
        if slot <= overhead || rate.bytes_in(slot - overhead) == Bytes::ZERO {
            let message = format!(
                "{slot} is too short: guard band and framing take {overhead}, and a byte at {rate} \
                 takes {}",
                rate.send_time(Bytes::new(1))
            );
            return Err(Problem::new("slot", message));
        }
        Ok(Self { slot, guard, framing, rate })
    }

    /// The shortest slot for a cell of this size.
    ///
    /// # Errors
    /// If the rate is zero or the cell empty.
    pub fn for_cell(cell: Bytes, guard: Span, framing: Bytes, rate: Rate) -> Result<Self, Problem> {
        if rate == Rate::default() {
            return Err(Problem::new("node_rate", "a channel of 0 bps sends nothing"));
        }
        Self::new(guard + rate.send_time(framing) + rate.send_time(cell), guard, framing, rate)
    }

    /// From the start of a cell to the start of the next.
    #[must_use]
    pub fn slot(&self) -> Span {
        self.slot
    }

    /// The guard band.
    #[must_use]
    pub fn guard(&self) -> Span {
        self.guard
    }

    /// The part of a slot in which a cell can be sent.
    #[must_use]
    pub fn usable(&self) -> Span {
        self.slot - self.guard - self.rate.send_time(self.framing)
    }

    /// The largest cell that fits, in whole bytes (§3.4: the cell follows from the slot).
    #[must_use]
    pub fn cell(&self) -> Bytes {
        self.rate.bytes_in(self.usable())
    }

    /// The time from the end of a cell of this size to the start of the next cell.
    ///
    /// # Panics
    /// If the cell does not fit.
    #[must_use]
    pub fn gap(&self, cell: Bytes) -> Span {
        assert!(cell <= self.cell(), "a cell of {cell} in a slot for {}", self.cell());
        self.slot - self.rate.send_time(self.framing + cell)
    }

    /// An epoch of this many slots.
    #[must_use]
    pub fn epoch(&self, slots: u64) -> Span {
        self.slot * slots
    }

    /// The fraction of time in which cells are sent (§3.4: duty cycle).
    #[must_use]
    pub fn duty_cycle(&self) -> f64 {
        self.usable().as_ps() as f64 / self.slot.as_ps() as f64
    }

    /// Whether the guard band, with what a cell leaves of the rest of its slot, covers everything.
    ///
    /// # Errors
    /// If cells would be clipped, by how much.
    pub fn check_guard(&self, cell: Bytes, needed: GuardBand) -> Result<(), ClippedCell> {
        let (available, total) = (self.gap(cell), needed.total());
        if available >= total {
            return Ok(());
        }
        Err(ClippedCell { clipped: total - available, available, needed })
    }
}

/// Slots of an epoch: each node meets every other once, over `channels` at a time (§3.4).
#[must_use]
pub fn slots_per_epoch(nodes: u32, channels: u32) -> u64 {
    u64::from(nodes - 1).div_ceil(u64::from(channels))
}

#[cfg(test)]
mod tests;
