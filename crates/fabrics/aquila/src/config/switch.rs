//! The `[fabric.switch]` table.

use kernel::{Bytes, Rate, Span};
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::link::credits::UNIT_BYTES;
use crate::link::header::CELL_MAX;

/// The cell switch of a TiN, and how cells choose their way through it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Switch {
    /// Rate of a terminal port, towards an endpoint and from it. Unit: bit/s. Default 50 Gbps: four of them carry
    /// what a NIC of 100 Gbps needs with all headers (our choice, U08).
    pub terminal_rate: Rate,
    /// How many times as fast as a port of 25.6 Gbps the crossbar is. Default 2 (our choice, U02: else queues of
    /// outputs stay empty, and service by level and weight has nothing to choose from). From 1 to 8.
    #[schemars(range(min = 1.0, max = 8.0))]
    pub speedup: f64,
    /// Iterations of request, grant and accept in a cycle of 2.5 ns. Default 2 (our choice, U01). From 1 to 8.
    #[schemars(range(min = 1, max = 8))]
    pub iterations: u32,
    /// Queue of a virtual channel at an output towards another TiN. Unit: bytes. Default 2560 B: 16 of the
    /// largest cells. Our choice (U04): with 4 cells uniform traffic at 0.9 of what is injected gets 61 of 90 Gbps a
    /// TiN on the full Clique, as a queue that overflows with the cells of one packet cannot tell that from
    /// congestion; Aquila §2 says that it is carried. From 160 B to 3920 B.
    pub output_queue: Bytes,
    /// Queue of a virtual channel at an output to an endpoint. Unit: bytes. Default 1280 B (our choice, U04). From
    /// 160 B to 3920 B.
    pub terminal_queue: Bytes,
    /// Buffer of a virtual channel for what an endpoint injects. Unit: bytes. Default 1280 B (our choice, U03). From
    /// 160 B to 32752 B.
    pub terminal_buffer: Bytes,
    /// What a byte queued on a longer way counts, where one on a shortest way counts 1. Default 2: it loads twice
    /// the links between pods (our choice, U15). From 0 to 100.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub detour_weight: f64,
    /// Bytes by which a shortest way's queue must be longer besides until a longer way is taken. Unit: bytes.
    /// Default 1280 B, half of `output_queue`: more than what one packet's cells leave behind (our choice, U15; with
    /// 160 B uniform traffic is not carried, see `output_queue`). Up to 65535 B; from `output_queue` on no queue is that
    /// much longer, and cells take longer ways only where no shortest one is left.
    pub detour_bias: Bytes,
    /// How long a cell waits at the head of its buffer until its way is drawn again. Unit: time. Default 50 ns (our
    /// choice, U16). 0 ns: never. Up to 500 ns.
    pub draw_again: Span,
    /// Compares all ports of an entry, not two of 8 and three of 24 that are drawn. Default false (Aquila §3.2: drawing
    /// keeps neighbours from moving congestion to the same place).
    pub compares_all: bool,
    /// Which channel of a class goes first at an output, where levels and shares of classes leave a choice (M108).
    /// Default in-turn (our choice: Aquila §3.1 has weighted round robin and strict priority between channels, and
    /// does not say which is used within a class).
    pub within_class: WithinClass,
    /// What a port does whose link is down, until the tables no longer name it. Default flush (our choice, U21).
    pub at_dead_link: AtDeadLink,
    /// Switches that a cell may pass. Default 16, twice the longest way (our choice, U60). From 9, those of the eight links
    /// that are the longest way while all works, to 31; escapes round failures may take more.
    #[schemars(range(min = 9, max = 31))]
    pub hops: u8,
}

/// Which channel of a class goes first at an output. A class has three, and a cell takes the next behind each fibre
/// that it has crossed (§3.2, M303).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WithinClass {
    /// They take turns, by their share.
    #[default]
    InTurn,
    /// That of cells that have crossed more fibres. Where links between pods are full, what was injected waits,
    /// and not what a link was already used for.
    FartherFirst,
}

/// What a port does whose link is down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AtDeadLink {
    /// Its queues stay, and fill: cells that look at queues go elsewhere, all others wait.
    QueueOnly,
    /// Its queues are emptied and look full; what still comes is discarded, so that nothing waits behind it.
    #[default]
    Flush,
    /// The same, and it is left out of choices by a hash as well.
    PortMask,
}

impl Default for Switch {
    fn default() -> Self {
        let cells = |count: u64| Bytes::new(count * u64::from(CELL_MAX));
        Self {
            terminal_rate: Rate::from_gbps(50),
            speedup: 2.0,
            iterations: 2,
            output_queue: cells(16),
            terminal_queue: cells(8),
            terminal_buffer: cells(8),
            detour_weight: 2.0,
            detour_bias: cells(8),
            draw_again: Span::from_ns(50),
            compares_all: false,
            within_class: WithinClass::default(),
            at_dead_link: AtDeadLink::default(),
            hops: crate::link::header::HOPS,
        }
    }
}

/// Largest queue of an output: its units are a byte, which adaptive routing reads (our choice).
const QUEUE_MAX: Bytes = Bytes::new(245 * UNIT_BYTES as u64);
/// Largest buffer: half of what credits can count.
const BUFFER_MAX: Bytes = Bytes::new(crate::link::credits::UNITS_MAX as u64 * UNIT_BYTES as u64);
/// Longest time until a way is drawn again (our choice).
const DRAW_AGAIN_MAX: Span = Span::from_ns(500);
/// Slowest and fastest terminal port (our choice).
const RATES: [Rate; 2] = [Rate::from_gbps(1), Rate::from_gbps(1_000)];

/// What crosses the switch by a port where its speed is 1: 8 B in a cycle of 2.5 ns (M103).
pub const CROSSBAR_RATE: Rate = Rate::from_bps(25_600_000_000);

impl Switch {
    /// What an endpoint gets into the switch by a terminal port.
    #[must_use]
    pub fn injection_rate(&self) -> Rate {
        let crossbar = self.speedup.clamp(0.0, 1e3) * CROSSBAR_RATE.as_bps() as f64;
        self.terminal_rate.min(Rate::from_bps(crossbar as u64))
    }

    /// Every mistake in it.
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |is_bad: bool, key: &str, message: String| {
            if is_bad {
                problems.push(Problem::new(key, message));
            }
        };
        let rate = self.terminal_rate;
        let message = format!("{rate}; expected {} to {}", RATES[0], RATES[1]);
        refuse(!(RATES[0]..=RATES[1]).contains(&rate), "terminal_rate", message);
        let cell = Bytes::new(CELL_MAX.into());
        for (key, bytes, most) in [
            ("output_queue", self.output_queue, QUEUE_MAX),
            ("terminal_queue", self.terminal_queue, QUEUE_MAX),
            ("terminal_buffer", self.terminal_buffer, BUFFER_MAX),
        ] {
            let is_whole = bytes.get().is_multiple_of(UNIT_BYTES.into());
            let message = format!(
                "{bytes}; expected {cell}, the largest cell, to {most}, in units of {UNIT_BYTES} B"
            );
            refuse(!is_whole || !(cell..=most).contains(&bytes), key, message);
        }
        for (key, found, least, most) in [
            ("speedup", self.speedup, 1.0, 8.0),
            ("detour_weight", self.detour_weight, 0.0, 100.0),
            ("iterations", f64::from(self.iterations), 1.0, 8.0),
            ("hops", f64::from(self.hops), 9.0, 31.0),
        ] {
            let message = format!("{found}; expected {least} to {most}");
            refuse(!(least..=most).contains(&found), key, message);
        }
        let message = format!("{}; expected 65535 B at the most", self.detour_bias);
        refuse(self.detour_bias > Bytes::new(65_535), "detour_bias", message);
        let message = format!("{}; expected {DRAW_AGAIN_MAX} at the most", self.draw_again);
        refuse(self.draw_again > DRAW_AGAIN_MAX, "draw_again", message);
        problems
    }
}
