//! The chip's documented numbers, and the times and rates that follow from them (§1, §4.E, §5).
//!
//! Power and area are figures of the paper, for comparison; nothing here predicts another chip's.

use kernel::{Rate, Span};

use crate::chip_config::{ChipConfig, SCHEDULING};

/// A part of the time through the idle chip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// What takes the time.
    pub name: &'static str,
    /// How long in picoseconds, apart from cycles.
    pub fixed: Span,
    /// How long in cycles of the chip's clock.
    pub cycles: u64,
}

/// A word's way across the crossbar and into the output: one cycle (§2.B: a word a cycle).
pub(crate) const CROSSING: u64 = 1;
/// All cycles through the chip (§4.E).
const CYCLES: u64 = 15;

/// The parts of the fall-through latency. §4.E gives 15 ns a direction for the serial links and
/// clock domain crossing and 15 cycles for crossbar and link logic; of the cycles, the scheduler's
/// are known from §2.B and the rest is link logic.
pub const FALL_THROUGH: [Part; 6] = [
    Part { name: "serial link and clock domain in", fixed: Span::from_ns(15), cycles: 0 },
    Part { name: "request, grant, accept", fixed: Span::ZERO, cycles: SCHEDULING - 1 },
    Part { name: "memory read", fixed: Span::ZERO, cycles: 1 },
    Part { name: "crossbar", fixed: Span::ZERO, cycles: CROSSING },
    Part {
        name: "link receive and send logic",
        fixed: Span::ZERO,
        cycles: CYCLES - SCHEDULING - CROSSING,
    },
    Part { name: "serial link and clock domain out", fixed: Span::from_ns(15), cycles: 0 },
];

/// The time through the idle chip at a clock of this frequency.
#[must_use]
pub fn fall_through(clock_hertz: u64) -> Span {
    let fixed: Span = FALL_THROUGH.iter().map(|part| part.fixed).sum();
    let cycles: u64 = FALL_THROUGH.iter().map(|part| part.cycles).sum();
    fixed + Span::from_ps(cycles * kernel::PS_PER_SECOND / clock_hertz)
}

/// Numbers of the chip as published, in SI units.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Facts {
    /// Ports of each of its two switches.
    pub ports: usize,
    /// Clock in cycles a second.
    pub clock_hertz: u64,
    /// Line rate, and with the coding's overhead.
    pub line_rate: Rate,
    /// Raw rate of a serial link.
    pub raw_rate: Rate,
    /// Technology in metres.
    pub process_metres: f64,
    /// Edge of the square die in metres.
    pub die_edge_metres: f64,
    /// Power in watts.
    pub watts: f64,
    /// Of that, the serial links.
    pub link_watts: f64,
    /// Gates.
    pub gates: u64,
    /// Metal layers.
    pub metal_layers: u32,
    /// Edge of the data crossbar in metres.
    pub crossbar_edge_metres: f64,
    /// Edge of its scheduler in metres.
    pub scheduler_edge_metres: f64,
    /// Edge of the crossbar for control messages in metres.
    pub ete_crossbar_edge_metres: f64,
    /// Edge of its scheduler in metres.
    pub ete_scheduler_edge_metres: f64,
    /// Area of a quad, the logic of a group, in square metres.
    pub quad_square_metres: f64,
}

/// The chip (§1, §5).
pub const CHIP: Facts = Facts {
    ports: 136,
    clock_hertz: 454_000_000,
    line_rate: Rate::from_gbps(25),
    raw_rate: Rate::from_gbps(28),
    process_metres: 32e-9,
    die_edge_metres: 18.4e-3,
    watts: 150.0,
    link_watts: 130.0,
    gates: 45_000_000,
    metal_layers: 11,
    crossbar_edge_metres: 2.5e-3,
    scheduler_edge_metres: 2.6e-3,
    ete_crossbar_edge_metres: 1.2e-3,
    ete_scheduler_edge_metres: 2.0e-3,
    quad_square_metres: 1.6e-6,
};

impl ChipConfig {
    /// The chip as built: 136 ports (§5).
    #[must_use]
    pub fn as_built() -> Self {
        Self { ports: CHIP.ports, ..Self::default() }
    }

    /// The rate at which the crossbar moves words, all inputs together, one direction. The paper's
    /// 9.9 Tb/s counts both (D02).
    #[must_use]
    pub fn crossbar_rate(&self) -> Rate {
        let groups = (self.ports / self.ports_per_group) as u64;
        Rate::from_bps(self.word.bits() * self.clock_hertz * groups)
    }

    /// How much faster the crossbar is than the lines.
    #[must_use]
    pub fn speed_up(&self) -> f64 {
        self.rate_without_speed_up().as_bps() as f64 / self.line_rate.as_bps() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d02_d03_the_chip_moves_9_9_terabits_both_ways_at_a_speed_up_of_1_45() {
        let chip = ChipConfig::as_built();
        let both = 2.0 * chip.crossbar_rate().as_bps() as f64;
        assert!((both - 9.9e12).abs() < 0.05e12, "{both}");
        assert!((chip.speed_up() - 1.45).abs() < 0.005, "{}", chip.speed_up());
        chip.plan().unwrap();
    }

    #[test]
    fn d04_falling_through_takes_the_published_time_but_for_its_rounding() {
        // 15 + 15 + 33.04 ns are 63 ns; 61 needs 14 ns a direction, and the paper says "approx.".
        let found = fall_through(454_000_000);
        assert_eq!(FALL_THROUGH.iter().map(|part| part.cycles).sum::<u64>(), 15);
        assert!((found.as_seconds() - 63.04e-9).abs() < 0.01e-9, "{found}");
        assert!((found.as_seconds() - 61e-9).abs() < 2.1e-9);
    }

    #[test]
    fn d08_d16_power_and_area_add_up() {
        let each = CHIP.link_watts / CHIP.ports as f64;
        assert!((each - 1.0).abs() < 0.05);
        let per_bit: f64 = 1.0 / CHIP.raw_rate.as_bps() as f64;
        assert!((per_bit - 36e-12).abs() < 0.5e-12);
        let edges = [
            CHIP.crossbar_edge_metres,
            CHIP.scheduler_edge_metres,
            CHIP.ete_crossbar_edge_metres,
            CHIP.ete_scheduler_edge_metres,
        ];
        let squares: f64 = edges.iter().map(|edge| edge * edge).sum();
        let named = squares + 34.0 * CHIP.quad_square_metres;
        assert!((named / CHIP.die_edge_metres.powi(2) - 0.215).abs() < 0.002);
    }
}
