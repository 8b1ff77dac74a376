//! The rack loses its clock master.
//!
//! Models: Shoal §3.4, §3.5 (claims S47, S48): all clocks follow one node's; if it fails another
//! takes over and all switch to it, "seamlessly". Between loss and takeover each clock runs on its
//! own and drifts; once the guard band no longer covers the difference, cells are clipped.
//! **Our choices**, where the paper only points to the SyncE standard: nodes find out as they find out
//! of every failure, from a cell that is missing, and follow the next node by number, whose cells they
//! hear anyway; two clocks drift in opposite directions, each at its limit, the worst case; after the
//! takeover they stop drifting apart, and the difference stays until the time protocol has run again.

use kernel::Span;

/// How far a Synchronous Ethernet clock that has just lost its reference is off: it holds on to the
/// frequency that it had, to 50 ns a second (ITU-T G.8262, equipment clocks: holdover at constant
/// temperature; so G.813).
pub const DRIFT_PER_BILLION_DEFAULT: u64 = 50;

/// How far such a clock may be off that never had a reference: 4.6 parts per million (ITU-T G.8262).
pub const DRIFT_PER_BILLION_FREE: u64 = 4_600;

/// Parts in a billion.
const BILLION: u64 = 1_000_000_000;

/// A loss of the clock master. Times count from the loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockLoss {
    /// How far two clocks may differ when the time protocol has run.
    pub precision: Span,
    /// How far they may differ when the master is lost: as much, or more soon after another loss.
    pub before: Span,
    /// How far a clock is off by itself, at most, in parts per billion.
    pub drift_per_billion: u64,
    /// When another node is the master and all follow it.
    pub takeover: Span,
    /// How long the time protocol then takes to bring back the precision.
    pub resynchronisation: Span,
}

/// What a loss of the clock master does to the rack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takeover {
    /// No cell is clipped.
    Seamless {
        /// The most by which two clocks differ.
        worst: Span,
    },
    /// The guard band is too short for it.
    Clipped {
        /// The most by which two clocks differ.
        worst: Span,
        /// When, after the loss, the first cell is clipped.
        from: Span,
        /// How many slots in a row are clipped for the pair of nodes that is worst off.
        slots: u64,
    },
}

impl ClockLoss {
    /// By how much two clocks differ this long after the loss, at most; rounded up.
    #[must_use]
    pub fn phase_error(&self, after: Span) -> Span {
        if after >= self.recovered() {
            return self.precision;
        }
        self.before + self.drift(after.min(self.takeover))
    }

    /// When the clocks are as close as before.
    #[must_use]
    pub fn recovered(&self) -> Span {
        self.takeover + self.resynchronisation
    }

    /// What it does to a rack whose guard band lets clocks differ by `margin`
    /// ([`super::GuardBand::synchronisation_margin`]), slot after slot from the loss on.
    ///
    /// # Panics
    /// If the slot is zero.
    #[must_use]
    pub fn effect(&self, margin: Span, slot: Span) -> Takeover {
        let before_recovery = self.recovered().div_ceil(slot);
        let worst = self.before + self.drift(self.takeover);
        // The error never falls before the recovery, so the clipped slots are all at the end.
        let (mut good, mut clipped) = (0, before_recovery);
        while good < clipped {
            let middle = good + (clipped - good) / 2;
            if self.phase_error(slot * middle) > margin {
                clipped = middle;
            } else {
                good = middle + 1;
            }
        }
        if good == before_recovery {
            return Takeover::Seamless { worst };
        }
        Takeover::Clipped { worst, from: slot * good, slots: before_recovery - good }
    }

    /// How far two clocks drift apart in a time; rounded up.
    fn drift(&self, time: Span) -> Span {
        let product = u128::from(time.as_ps()) * 2 * u128::from(self.drift_per_billion);
        let apart = product.div_ceil(u128::from(BILLION));
        let apart = u64::try_from(apart)
            .unwrap_or_else(|_| panic!("clocks drift {apart} ps apart in {time}"));
        Span::from_ps(apart)
    }
}
