//! How the ends of flows find out that the other has died, or is out of reach for good.

use kernel::Span;
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest silence (our choice: far longer than any run).
const SILENCE_MAX: Span = Span::from_us(1_000_000_000);

/// How hosts find out that others have died, where a scenario has faults: by silence, or by an oracle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Failures {
    /// Whether both ends of all flows of a host know that it has died, or that no path will ever lead to it
    /// again, as soon as routes have converged: what no host can know by itself. Default false.
    pub oracle: bool,
    /// How long a host goes on asking without an answer: the first unanswered time-out of a flow begins this
    /// time, and a time-out after its end gives the flow up (RFC 1122 §4.2.3.5 has such a bound, R2; RFC 5482 lets
    /// users set it). A host whose own line is dead gives up what it is to send after that time, too. Unit: time.
    /// Default 100 ms (our choice: a hundred times the default of `convergence`; TCP's 100 s are far too long in
    /// a rack). More than 0 ns.
    pub patience: Span,
    /// How long a receiver that has nothing to ask for keeps the state of a flow of which nothing comes. Unit:
    /// time. Default 10 s (our choice: longer than any time-out of a sender). From `patience` to 1000 s.
    pub silence: Span,
}

impl Default for Failures {
    fn default() -> Self {
        Self { oracle: false, patience: Span::from_us(100_000), silence: Span::from_us(10_000_000) }
    }
}

impl Failures {
    /// By an oracle.
    #[must_use]
    pub fn told() -> Self {
        Self { oracle: true, ..Self::default() }
    }

    /// Every mistake in the table.
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        let Self { patience, silence, .. } = *self;
        let mut problems = Vec::new();
        if patience == Span::ZERO {
            problems.push(Problem::new(
                "patience",
                "0 ns; expected more: how long to ask without an answer",
            ));
        }
        if silence < patience || silence > SILENCE_MAX {
            let message = format!("{silence}; expected {patience}, as patience, to {SILENCE_MAX}");
            problems.push(Problem::new("silence", message));
        }
        problems
    }
}
