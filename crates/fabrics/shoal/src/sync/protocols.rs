//! What keeps the clocks of a rack together, and how closely.
//!
//! Models: Shoal §3.4, §6.1 (claim S44). One clock is distributed to all nodes and switches
//! (Synchronous Ethernet), so that clocks never drift apart; a time protocol between the end nodes
//! then takes out what offset is left. Precision is an input: how the protocols reach it is not
//! modelled.

use kernel::Span;

/// How precisely a protocol aligns two clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Precision {
    /// To within this span.
    Within(Span),
    /// To within this many periods of the clock for each hop between the two.
    Periods(u64),
    /// To the same period of the clock: everybody acts on the same edge.
    SamePeriod,
}

/// A protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeProtocol {
    /// Its name.
    pub name: &'static str,
    /// Its precision.
    pub precision: Precision,
    /// Where the figure stands.
    pub source: &'static str,
}

/// White Rabbit.
pub const WHITE_RABBIT: TimeProtocol = TimeProtocol {
    name: "White Rabbit",
    precision: Precision::Within(Span::from_ps(50)),
    source: "Shoal §3.4: below 50 ps",
};

/// The Datacenter Time Protocol, as its authors bound it.
pub const DTP: TimeProtocol = TimeProtocol {
    name: "DTP",
    precision: Precision::Periods(4),
    source: "Globally Synchronized Time via Datacenter Networks, SIGCOMM 2016: 4 periods a hop",
};

/// DTP in Shoal's prototype, on one clock.
pub const DTP_PROTOTYPE: TimeProtocol = TimeProtocol {
    name: "DTP (Shoal's prototype)",
    precision: Precision::SamePeriod,
    source: "Shoal §6.1: less than a clock cycle",
};

/// All of them.
pub const PROTOCOLS: &[TimeProtocol] = &[WHITE_RABBIT, DTP, DTP_PROTOTYPE];

impl TimeProtocol {
    /// What the guard band has to allow for two clocks with this period that are `hops` apart, as
    /// the protocol counts hops.
    ///
    /// A clock that is off by less than a period costs a clocked switch nothing: it acts on its own
    /// edge, the same one for everybody. That is why one cycle of guard band, the reconfiguration,
    /// is enough in the prototype (§6.1).
    #[must_use]
    pub fn allowance(&self, period: Span, hops: u64) -> Span {
        match self.precision {
            Precision::Within(span) => span,
            Precision::Periods(periods) => period * periods * hops,
            Precision::SamePeriod => Span::ZERO,
        }
    }
}
