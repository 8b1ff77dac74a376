//! The `[fabric.link]` table.

use kernel::{Bytes, Rate, Span};
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::link::credits::{UNIT_BYTES, UNITS_MAX};
use crate::link::header::{CELL_MAX, CELL_MIN};
use crate::link::ordered_sets::SET_BYTES;

/// Links, their buffers and credits.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Link {
    /// At which cells cross a link inside a pod. Unit: bit/s. Default 25 Gbps (Aquila §3.1; the 28 Gbps of
    /// §3.2 are read as the lane's, with line code and error correction, U06).
    pub local_rate: Rate,
    /// At which cells cross a link between pods. Unit: bit/s. Default 25 Gbps: error correction is outside of
    /// it (U06). With its 6 % inside: 23.58 Gbps.
    pub global_rate: Rate,
    /// What error correction adds to a link between pods. Unit: time. Default 30 ns (Aquila §3.2).
    pub fec_delay: Span,
    /// Bytes that announce a cell on the wire before it. Unit: bytes. Default 0 B: its header does (our choice,
    /// U07). 0 or 8.
    pub start_of_cell: Bytes,
    /// Buffer of a virtual channel at the end of a link inside a pod. Unit: bytes. Default 1280 B: eight of
    /// the largest cells (our choice, U03: the way of a credit there and back, and what an update waits for).
    /// From 160 B to 32752 B.
    pub local_buffer: Bytes,
    /// Buffer of a virtual channel at the end of a link between pods. Unit: bytes. Default 5120 B: 32 of the
    /// largest cells (our choice, U03, for 100 m). From 160 B to 32752 B.
    pub global_buffer: Bytes,
    /// A cell is sent only if the other end has room for it. Default true (Aquila §3.1). false: it is sent in any case,
    /// and dropped where there is no room; what §1 says would fail.
    pub credits: bool,
    /// An update of credits is due when so much was freed. Unit: bytes. Default 320 B (our choice, U05). At
    /// most the buffers.
    pub update_after: Bytes,
    /// An update of credits is due when something was freed so long ago. Unit: time. Default 200 ns (our
    /// choice, U05).
    pub update_timer: Span,
    /// All credits are said again, and what was used on the other side, each so long: this makes good what was
    /// lost. Unit: time. Default 100 us (our choice, M213, M216). Not below `update_timer`.
    pub refresh: Span,
    /// Probability that a bit is flipped on a link inside a pod. Default 0 (our choice, U53; 1e-15 is usual).
    /// Below 0.001.
    #[schemars(range(min = 0.0, max = 0.001))]
    pub local_bit_error_rate: f64,
    /// Probability that a bit is flipped on a link between pods, behind error correction. Default 0 (our
    /// choice, U53; 1e-12 is usual). Below 0.001.
    #[schemars(range(min = 0.0, max = 0.001))]
    pub global_bit_error_rate: f64,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            local_rate: Rate::from_gbps(25),
            global_rate: Rate::from_gbps(25),
            fec_delay: Span::from_ns(30),
            start_of_cell: Bytes::ZERO,
            local_buffer: Bytes::new(8 * CELL_MAX as u64),
            global_buffer: Bytes::new(32 * CELL_MAX as u64),
            credits: true,
            update_after: Bytes::new(320),
            update_timer: Span::from_ns(200),
            refresh: Span::from_us(100),
            local_bit_error_rate: 0.0,
            global_bit_error_rate: 0.0,
        }
    }
}

/// The longest delays and timers (our choice: what counts picoseconds in 32 bits takes 4 ms).
const SPAN_MAX: Span = Span::from_us(1_000);
/// The slowest link (our choice: the largest cell takes a microsecond and a quarter).
const RATE_MIN: Rate = Rate::from_gbps(1);
/// The fastest link (our choice: 8 bytes take more than 50 ps).
const RATE_MAX: Rate = Rate::from_gbps(1_000);

impl Link {
    /// Every mistake in it, where the longest fibre takes so long.
    #[must_use]
    pub fn check(&self, fibre: Span) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |bad: bool, key: &str, message: String| {
            if bad {
                problems.push(Problem::new(key, message));
            }
        };
        for (key, rate) in [("local_rate", self.local_rate), ("global_rate", self.global_rate)] {
            let message = format!("{rate}; expected {RATE_MIN} to {RATE_MAX}");
            refuse(!(RATE_MIN..=RATE_MAX).contains(&rate), key, message);
        }
        for (key, span) in [
            ("fec_delay", self.fec_delay),
            ("update_timer", self.update_timer),
            ("refresh", self.refresh),
        ] {
            let message = format!("{span}; expected {SPAN_MAX} at the most");
            refuse(span > SPAN_MAX, key, message);
        }
        let most = Bytes::new(u64::from(UNITS_MAX) * u64::from(UNIT_BYTES));
        let cell = Bytes::new(CELL_MAX.into());
        for (key, buffer) in
            [("local_buffer", self.local_buffer), ("global_buffer", self.global_buffer)]
        {
            let message = format!(
                "{buffer}; expected {cell}, the largest cell, to {most}, half of what credits can count"
            );
            refuse(!(cell..=most).contains(&buffer), key, message);
            let is_whole = buffer.get().is_multiple_of(UNIT_BYTES.into());
            let message =
                format!("{buffer}; expected a multiple of {UNIT_BYTES} B, the unit of credits");
            refuse(!is_whole, key, message);
        }
        let least = self.local_buffer.min(self.global_buffer);
        let unit = Bytes::new(CELL_MIN.into());
        let message = format!(
            "{}; expected {unit} to {least}, the smaller of the buffers: no more can be free",
            self.update_after
        );
        refuse(!(unit..=least).contains(&self.update_after), "update_after", message);
        let set = Bytes::new(SET_BYTES.into());
        let message = format!("{}; expected 0 B or {set}", self.start_of_cell);
        refuse(![Bytes::ZERO, set].contains(&self.start_of_cell), "start_of_cell", message);
        self.check_times(fibre, &mut refuse);
        problems
    }

    fn check_times(&self, fibre: Span, refuse: &mut impl FnMut(bool, &str, String)) {
        let zero = self.update_timer == Span::ZERO;
        refuse(zero, "update_timer", "0 ns; expected, for example, \"200 ns\"".into());
        let message = format!(
            "{}; expected at least update_timer, {}: what is said again less often than it changes",
            self.refresh, self.update_timer
        );
        refuse(self.refresh < self.update_timer, "refresh", message);
        let way = fibre + self.fec_delay;
        let message = format!(
            "{}, but an update takes {way} on the longest fibre alone; expected at least that, so that one is \
             not overtaken by the next",
            self.refresh
        );
        refuse(self.refresh >= self.update_timer && self.refresh < way, "refresh", message);
        for (key, rate) in [
            ("local_bit_error_rate", self.local_bit_error_rate),
            ("global_bit_error_rate", self.global_bit_error_rate),
        ] {
            let is_right = (0.0..0.001).contains(&rate);
            refuse(!is_right, key, format!("{rate}; expected 0 to below 0.001"));
        }
    }
}
