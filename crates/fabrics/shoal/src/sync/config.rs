//! The `[fabric.sync]` table: what the guard band has to cover, and what happens when the clock
//! master dies.

use kernel::Span;
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GuardBand;
use super::clock::{ClockLoss, DRIFT_PER_BILLION_DEFAULT};

/// Clocks, and what the guard band has to cover (Shoal §3.4, §7.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SyncConfig {
    /// Time in which a switch changes its circuits. Unit: time. Default 2.5 ns (Shoal §4.1).
    pub reconfiguration: Span,
    /// Difference in propagation between paths. Unit: time. Default 0.2 ns: links equal to ±2 cm
    /// (Shoal §3.4).
    pub propagation_spread: Span,
    /// Most by which two clocks differ. Unit: time. Default 50 ps: White Rabbit (Shoal §3.4).
    pub precision: Span,
    /// Time in which a receiver locks to a new sender. Unit: time. Default 0 ns: electrical switches
    /// retime; optical ones need some 625 ps (Shoal §3.5, §5).
    pub clock_recovery: Span,
    /// The node whose clock all follow. Default 0. If it is lost the next by number takes over
    /// (Shoal §3.5). Less than the nodes.
    pub master: u32,
    /// Time from when all nodes have missed a cell of the master, an epoch and the propagation after its
    /// loss, until all follow another. Unit: time. Default 0 ns: they hear its cells anyway (our choice;
    /// Shoal §3.5 says "seamlessly"). At most 1 s.
    #[schemars(extend("x-maximum" = "1 s"))]
    pub takeover: Span,
    /// Time in which the clocks then find their precision again. Unit: time. Default 100 us (our
    /// choice). At most 1 s.
    #[schemars(extend("x-maximum" = "1 s"))]
    pub resynchronisation: Span,
    /// How far a clock runs off that has lost the master's, in parts per billion. Default 50: one that
    /// holds on to the frequency it had (ITU-T G.8262, holdover); one left to itself may be off by 4,600.
    /// At most 1,000,000.
    #[schemars(range(max = 1_000_000))]
    pub drift_per_billion: u64,
}

impl Default for SyncConfig {
    fn default() -> Self {
        Self {
            reconfiguration: Span::from_ps(2_500),
            propagation_spread: Span::from_ps(200),
            precision: Span::from_ps(50),
            clock_recovery: Span::ZERO,
            master: 0,
            takeover: Span::ZERO,
            resynchronisation: Span::from_us(100),
            drift_per_billion: DRIFT_PER_BILLION_DEFAULT,
        }
    }
}

impl SyncConfig {
    /// What a guard band needs.
    #[must_use]
    pub fn guard_band(&self) -> GuardBand {
        GuardBand {
            reconfiguration: self.reconfiguration,
            propagation_spread: self.propagation_spread,
            synchronisation: self.precision,
            clock_recovery: self.clock_recovery,
        }
    }

    /// What the death of the master does.
    #[must_use]
    pub fn clock_loss(&self) -> ClockLoss {
        ClockLoss {
            precision: self.precision,
            before: self.precision,
            drift_per_billion: self.drift_per_billion,
            takeover: self.takeover,
            resynchronisation: self.resynchronisation,
        }
    }

    /// Every problem of the table in a rack of `nodes` with this guard band.
    #[must_use]
    pub fn check(&self, nodes: u32, guard: Span) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.master >= nodes {
            problems.push(Problem::new(
                "sync.master",
                format!(
                    "node {} in a rack of {nodes}; expected 0 to {}",
                    self.master,
                    nodes.saturating_sub(1)
                ),
            ));
        }
        let parts =
            [self.reconfiguration, self.propagation_spread, self.precision, self.clock_recovery];
        let needed = parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.as_ps()));
        let needed = Span::from_ps(needed);
        if needed > guard {
            problems.push(Problem::new(
                "guard",
                format!(
                    "a guard band of {guard} clips cells by {}: reconfiguration, propagation spread, \
                     precision and clock recovery of `sync` take {needed}",
                    needed - guard
                ),
            ));
        }
        problems
    }
}
