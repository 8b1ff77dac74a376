//! What the switches of a Clique are set to.

use kernel::{Bytes, Rate, Span};
use rack::Problem;

use super::cell::BLOCKS_MAX;
use crate::topology::PortKind;

/// A cycle of the core's clock: 400 MHz, 8 bytes a cycle and port (derived from the paper's 20, 30 and 40 ns
/// and the 2.5 ns of App. B.2; M103).
pub const TICK: Span = Span::from_ps(2_500);
/// Traffic classes (§3.1: 32 channels are ten classes of three and two more).
pub const CLASSES: usize = 10;
/// Virtual channels of a link (§3.1).
pub const CHANNELS: usize = 32;
/// The channel of cells that may stall at their end, and that of those that never do, where failures leave
/// them no legal way (§3.2, M308).
pub const ESCAPE: [u8; 2] = [30, 31];

/// How a cell chooses among the ports of a table's row (§3.2, M314).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Two of the shortest ways and three others, by weighted queues.
    Adaptive,
    /// Two of the shortest ways, by queues.
    MinimalAdaptive,
    /// By a hash of source, destination and class, among all.
    Deterministic,
    /// The same among the shortest.
    MinimalDeterministic,
}

/// What a traffic class is served like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Class {
    /// How its cells choose their way.
    pub mode: Mode,
    /// Strict level at outputs: higher ones go first.
    pub level: u8,
    /// Share among those of a level. Unit: cells of the largest size a turn.
    pub weight: u8,
}

/// What a port does whose link is down, until the tables no longer name it (M319).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtDeadLink {
    /// Its queues stay, and fill: those who look at queues go elsewhere, all others wait.
    Queue,
    /// Its queues are emptied and look full; what still comes is discarded, so that nobody waits behind it (our
    /// choice).
    Flush,
    /// It is left out of all choices besides, also of those by a hash.
    Mask,
}

/// The settings.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Rate of cells on links inside a pod, and on those between pods (M202, U06).
    pub local_rate: Rate,
    /// The same between pods.
    pub global_rate: Rate,
    /// Rate at which endpoints hand cells over and take them (M102, U08).
    pub terminal_rate: Rate,
    /// From a head's arrival to its first bit on the next wire, on an idle way (§3.2: 40 ns).
    pub hop: Span,
    /// From a head's arrival until its cell may be arbitrated: the half of `hop` that is not the core (§3.1).
    pub receive: Span,
    /// Error correction on links between pods (§3.2: 30 ns).
    pub correction: Span,
    /// How much faster than a port the crossbar is, in hundredths (M107, U02).
    pub speedup_percent: u16,
    /// Iterations of a match (U01).
    pub iterations: u32,
    /// Input FIFO of a channel at a local, global and terminal port. Unit: 16 B (M214, U03).
    pub input_units: [u16; 3],
    /// Output queue of a channel at a local, global and terminal port. Unit: 16 B (M109, U04).
    pub output_units: [u16; 3],
    /// Freed units from which on an input tells the other end (M213, U05).
    pub update_units: u16,
    /// How long it keeps back less (M213, U05).
    pub update_after: Span,
    /// How often every channel's credit is told anew, and how often what was sent (M213, M216).
    pub refresh: Span,
    /// W of M312, in hundredths: what a cell queued on a longer way counts.
    pub detour_percent: u16,
    /// B of M312: what a longer way counts beside. Unit: 16 B.
    pub detour_units: u16,
    /// How long a head waits until its way is drawn again (M313, U16); zero: never.
    pub draw_again: Span,
    /// Whether all ports of a row are compared, not five that are drawn: to test why they are (M321).
    pub compares_all: bool,
    /// Bytes of a start-of-cell block before each cell (M205, U07).
    pub start_bytes: u16,
    /// Switches that a cell may pass (M309, U60).
    pub hops: u8,
    /// Bit errors of links inside a pod and between pods, behind error correction (U53).
    pub bit_errors: [f64; 2],
    /// What a port does whose link is down (M319, U21).
    pub at_dead_link: AtDeadLink,
    /// The traffic classes.
    pub classes: [Class; CLASSES],
}

impl Default for Settings {
    fn default() -> Self {
        use Mode::{Adaptive, Deterministic, MinimalDeterministic};
        let class = |mode, level, weight| Class { mode, level, weight };
        Self {
            local_rate: Rate::from_gbps(25),
            global_rate: Rate::from_gbps(25),
            terminal_rate: Rate::from_gbps(50),
            hop: Span::from_ns(40),
            receive: Span::from_ns(20),
            correction: Span::from_ns(30),
            speedup_percent: 200,
            iterations: 2,
            input_units: [80, 320, 80],
            output_units: [40, 40, 80],
            update_units: 20,
            update_after: Span::from_ns(200),
            refresh: Span::from_us(100),
            detour_percent: 200,
            detour_units: 10,
            draw_again: Span::from_ns(50),
            compares_all: false,
            start_bytes: 0,
            hops: 16,
            bit_errors: [0.0; 2],
            at_dead_link: AtDeadLink::Flush,
            classes: [
                class(MinimalDeterministic, 3, 1),
                class(Adaptive, 3, 1),
                class(Adaptive, 2, 1),
                class(Adaptive, 2, 1),
                class(MinimalDeterministic, 3, 1),
                class(MinimalDeterministic, 1, 1),
                class(Adaptive, 1, 1),
                class(Adaptive, 0, 8),
                class(Adaptive, 0, 1),
                class(Deterministic, 0, 1),
            ],
        }
    }
}

/// Most units of an output queue: their number is a byte, which adaptive routing reads.
const OUTPUT_UNITS_MAX: u16 = 245;
/// Most units of an input FIFO: credits count them modulo 4096, half of which is ahead (M212).
const INPUT_UNITS_MAX: u16 = 2_047;
/// Units of a largest cell.
pub(super) const CELL_UNITS: u16 = BLOCKS_MAX.div_ceil(2) as u16;

impl Settings {
    /// What does not fit.
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |key: &str, message: String| problems.push(Problem::new(key, message));
        let mut units = |key: &str, found: &[u16; 3], most: u16| {
            for &units in found {
                if !(CELL_UNITS..=most).contains(&units) {
                    let (least, most) = (CELL_UNITS * 16, most * 16);
                    refuse(
                        key,
                        format!("{} B; expected {least} to {most} B a channel", units * 16),
                    );
                }
            }
        };
        units("input_buffer", &self.input_units, INPUT_UNITS_MAX);
        units("output_queue", &self.output_units, OUTPUT_UNITS_MAX);
        if !(100..=800).contains(&self.speedup_percent) {
            let found = f64::from(self.speedup_percent) / 100.0;
            refuse("speedup", format!("{found}; expected 1 to 8 times the rate of a port"));
        }
        for (key, rate) in ["local_bit_errors", "global_bit_errors"].iter().zip(self.bit_errors) {
            if !(0.0..=1e-3).contains(&rate) {
                refuse(key, format!("{rate}; expected 0 to 0.001, a share of the bits"));
            }
        }
        if self.update_units > self.input_units[0].min(self.input_units[1]) {
            let found = self.update_units * 16;
            refuse("credit_update", format!("{found} B; expected no more than an input buffer"));
        }
        problems
    }

    /// The rate of a port's line.
    pub(super) fn rate(&self, kind: PortKind) -> Rate {
        match kind {
            PortKind::Local => self.local_rate,
            PortKind::Global => self.global_rate,
            PortKind::Terminal => self.terminal_rate,
        }
    }
}

/// Durations by length, worked out once.
#[derive(Clone, Debug)]
pub(super) struct Durations {
    /// By kind of port and blocks: on the wire. Unit: ps.
    wire: [[u32; BLOCKS_MAX as usize + 1]; 3],
    /// By blocks: in the crossbar. Unit: ticks.
    cross: [u8; BLOCKS_MAX as usize + 1],
    /// By kind of port and blocks: from a head's arrival until it may cross, so that the crossbar never waits for
    /// what is still on the wire. Unit: ps.
    eligible: [[u32; BLOCKS_MAX as usize + 1]; 3],
    /// An ordered set on the wire of a kind of port. Unit: ps.
    pub(super) ordered_set: [u32; 3],
}

impl Durations {
    pub(super) fn new(settings: &Settings) -> Self {
        let start = u64::from(settings.start_bytes);
        let wire = |kind: PortKind, blocks: usize| {
            let bytes = match kind {
                PortKind::Terminal => blocks as u64 * 8,
                _ => blocks as u64 * 8 + start,
            };
            settings.rate(kind).send_time(Bytes::new(bytes)).as_ps() as u32
        };
        let kinds = [PortKind::Local, PortKind::Global, PortKind::Terminal];
        let cross = |blocks: usize| (blocks * 100).div_ceil(settings.speedup_percent.into()).max(1);
        let receive = settings.receive.as_ps() as u32;
        let eligible = |kind, blocks: usize| {
            let crossing = cross(blocks) as u32 * TICK.as_ps() as u32;
            receive.max(wire(kind, blocks).saturating_sub(crossing))
        };
        Self {
            wire: kinds.map(|kind| std::array::from_fn(|blocks| wire(kind, blocks))),
            cross: std::array::from_fn(|blocks| cross(blocks) as u8),
            eligible: kinds.map(|kind| std::array::from_fn(|blocks| eligible(kind, blocks))),
            ordered_set: kinds.map(|kind| wire(kind, 1)),
        }
    }

    #[inline]
    pub(super) fn wire(&self, kind: PortKind, blocks: u8) -> u64 {
        u64::from(self.wire[kind as usize][usize::from(blocks)])
    }

    #[inline]
    pub(super) fn cross(&self, blocks: u8) -> u64 {
        u64::from(self.cross[usize::from(blocks)])
    }

    #[inline]
    pub(super) fn eligible(&self, kind: PortKind, blocks: u8) -> u64 {
        u64::from(self.eligible[kind as usize][usize::from(blocks)])
    }
}
