//! Flat: the crossbar that SCOC replaces (M46).
//!
//! Models: SCOC §3.A, §4.E: virtual output queues, synchronous slots of the packet's size, iSLIP,
//! 16 packets at each input and output, store and forward; without speed-up but for the
//! microbenchmarks and one curve. The crossbar itself is shared code: `switching::Crossbar`.

use kernel::{Bytes, Rate};
use rack::Problem;
use switching::{Crossbar, CrossbarConfig, Line};

/// A flat crossbar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlatConfig {
    /// Ports. Default 128 (§4.E).
    pub ports: usize,
    /// Iterations of iSLIP. Default one (§3.A).
    pub iterations: usize,
    /// Speed-up as a quotient. Default 1 (§4.E); SCOC's 1.4528 in the microbenchmarks.
    pub speed_up: (u64, u64),
    /// Packets at each input and at each output. Default 16 (§4.E).
    pub packets: usize,
    /// The packet that fills a slot. Default 288 B (§4.E).
    pub slot: Bytes,
    /// Line rate. Default 25 Gbps.
    pub line_rate: Rate,
}

/// SCOC's speed-up: 36.32 Gb/s a port over 25 Gb/s (§5, D03).
pub(crate) const SPEED_UP: (u64, u64) = (3632, 2500);

impl Default for FlatConfig {
    fn default() -> Self {
        Self {
            ports: 128,
            iterations: 1,
            speed_up: (1, 1),
            packets: 16,
            slot: Bytes::new(288),
            line_rate: Rate::from_gbps(25),
        }
    }
}

impl FlatConfig {
    /// With SCOC's speed-up.
    #[must_use]
    pub fn sped_up() -> Self {
        Self { speed_up: SPEED_UP, ..Self::default() }
    }

    /// Its lines; a cycle is a slot.
    #[must_use]
    pub fn line(&self) -> Line {
        Line::slotted(self.line_rate, self.slot, self.speed_up)
    }
}

/// What is wrong with a speed-up.
pub(crate) fn check_speed_up((rate, line_rate): (u64, u64)) -> Option<Problem> {
    let slow = rate < line_rate;
    let message = "slower than the lines; a crossbar has at least their rate";
    (slow || rate / line_rate > SPEED_UP_MAX).then(|| {
        let message = if slow { message } else { "more than 32 times the lines' rate" };
        Problem::new("port_rate", message)
    })
}

/// Most iterations: as many as a switch has ports; more find nothing more (our choice).
pub(crate) const ITERATIONS_MAX: usize = 4096;

/// The largest speed-up: half the slots for which a packet may arrive (our choice).
const SPEED_UP_MAX: u64 = 32;

impl FlatConfig {
    /// Checks it.
    ///
    /// # Errors
    /// Every problem.
    pub fn check(&self) -> Result<(), Vec<Problem>> {
        let mut problems: Vec<Problem> = check_speed_up(self.speed_up).into_iter().collect();
        for (key, value) in [("iterations", self.iterations), ("packets", self.packets)] {
            if value == 0 {
                problems.push(Problem::new(key, "must be more than zero"));
            }
        }
        if self.iterations > ITERATIONS_MAX {
            let message = format!("{}; expected at most {ITERATIONS_MAX}", self.iterations);
            problems.push(Problem::new("iterations", message));
        }
        if let Err(message) = Line::check_slot(self.line_rate, self.slot, self.speed_up) {
            problems.push(Problem::new("port_rate", message));
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

/// The switch.
#[must_use]
pub fn flat(config: FlatConfig) -> Crossbar {
    Crossbar::new(CrossbarConfig {
        ports: config.ports,
        iterations: config.iterations,
        input_places: config.packets,
        output_places: config.packets,
        line: config.line(),
    })
}
