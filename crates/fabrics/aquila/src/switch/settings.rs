//! What the switches of a Clique are set to, in the units in which they count.

use kernel::{Bytes, Rate, Span};

use super::cell::BLOCKS_MAX;
use crate::config::{AtDeadLink, Link, Plan, Switch, WithinClass};
use crate::link::classes::{self, Class, Mode, Service};
use crate::link::credits::UNIT_BYTES;
use crate::topology::PortKind;

/// A cycle of the core's clock: 400 MHz, 8 bytes a cycle and port (derived from the paper's 20, 30 and 40 ns
/// and the 2.5 ns of App. B.2; M103).
pub const TICK: Span = Span::from_ps(2_500);
/// The same. Unit: ps.
pub(super) const TICK_PS: u64 = TICK.as_ps();
/// From a head's arrival to its first bit on the next wire, on an idle way (§3.2).
pub(super) const HOP: Span = Span::from_ns(40);
/// From a head's arrival until its cell may be matched: the half of a hop that is not the core's (§3.1).
pub(super) const RECEIVE: Span = Span::from_ns(20);
/// Virtual channels of a link (§3.1).
pub(super) const CHANNELS: usize = classes::VCS as usize;
/// The channel of cells that may wait at their sink, and that of those that never do, where failures leave
/// them no legal way (§3.2, M308).
pub(super) const ESCAPE: [usize; 2] =
    [classes::ESCAPE_WAITING as usize, classes::ESCAPE_SINKING as usize];
/// Units of a largest cell.
pub(super) const CELL_UNITS: u16 = BLOCKS_MAX.div_ceil(2) as u16;

/// The settings.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Links, their buffers and credits.
    pub link: Link,
    /// The switch.
    pub switch: Switch,
    /// The traffic classes.
    pub classes: [Class; classes::CLASSES as usize],
}

impl Default for Settings {
    fn default() -> Self {
        Self { link: Link::default(), switch: Switch::default(), classes: classes::DEFAULT }
    }
}

impl From<&Plan> for Settings {
    fn from(plan: &Plan) -> Self {
        let (link, switch) = (plan.config.link.clone(), plan.config.switch.clone());
        Self { link, switch, classes: plan.classes }
    }
}

/// By kind of port.
type ByKind<T> = [T; 3];

/// What follows from the settings, worked out once.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// Buffer of a channel at an input. Unit: 16 B.
    pub(super) inputs: ByKind<u16>,
    /// Queue of a channel at an output. Unit: 16 B.
    pub(super) outputs: ByKind<u16>,
    /// Nothing is sent for which there may be no room.
    pub(super) credits: bool,
    /// What must be free until the other end is told at once. Unit: 16 B.
    pub(super) update: u16,
    /// How long it is kept back, and how long until everything is told again. Unit: ticks.
    pub(super) update_after: u64,
    pub(super) refresh: u64,
    /// How long until a way is drawn again; zero: never. Unit: ticks.
    pub(super) draw_again: u64,
    /// What a queued unit of a longer way counts, and what such a way counts beside, in hundredths of a unit.
    pub(super) detour_weight: u32,
    pub(super) detour_bias: u32,
    /// Bit errors of links.
    pub(super) errors: ByKind<f64>,
    /// How a channel is served, and the channels of each strict level.
    pub(super) services: [Service; CHANNELS],
    pub(super) levels: [u32; classes::LEVELS as usize],
    /// How cells of each class are routed.
    pub(super) modes: [Mode; classes::CLASSES as usize],
    /// All ports of a row are compared, not some that are drawn.
    pub(super) compares_all: bool,
    pub(super) within_class: WithinClass,
    /// Iterations of a match.
    pub(super) iterations: u32,
    pub(super) at_dead_link: AtDeadLink,
    /// What error correction takes on a fibre. Unit: ps.
    pub(super) correction: u64,
}

impl Limits {
    pub(super) fn new(settings: &Settings) -> Self {
        let Settings { link, switch, classes } = settings;
        let units = |bytes: Bytes| (bytes.get() / u64::from(UNIT_BYTES)) as u16;
        let ticks = |span: Span| span.as_ps() / TICK.as_ps();
        let services = classes::services(classes);
        let mut levels = [0; classes::LEVELS as usize];
        for (channel, service) in services.iter().enumerate() {
            levels[usize::from(service.level)] |= 1 << channel;
        }
        Self {
            inputs: [link.local_buffer, link.global_buffer, switch.terminal_buffer].map(units),
            outputs: [switch.output_queue, switch.output_queue, switch.terminal_queue].map(units),
            credits: link.credits,
            update: units(link.update_after),
            update_after: ticks(link.update_timer).max(1),
            refresh: ticks(link.refresh).max(1),
            draw_again: ticks(switch.draw_again),
            detour_weight: (switch.detour_weight * 100.0).round() as u32,
            detour_bias: u32::from(units(switch.detour_bias)) * 100,
            errors: [link.local_bit_error_rate, link.global_bit_error_rate, 0.0],
            services,
            levels,
            modes: classes.map(|class| class.mode),
            compares_all: switch.compares_all,
            within_class: switch.within_class,
            iterations: switch.iterations,
            at_dead_link: switch.at_dead_link,
            correction: link.fec_delay.as_ps(),
        }
    }
}

impl Settings {
    /// The rate of a port's line.
    fn rate(&self, kind: PortKind) -> Rate {
        match kind {
            PortKind::Local => self.link.local_rate,
            PortKind::Global => self.link.global_rate,
            PortKind::Terminal => self.switch.terminal_rate,
        }
    }
}

/// Lengths that arrays have room for: a power of two, so that an index needs no check.
const LENGTHS: usize = (BLOCKS_MAX as usize + 1).next_power_of_two();

/// Durations by length, worked out once.
#[derive(Clone, Debug)]
pub(super) struct Durations {
    /// By kind of port and blocks: on the wire. Unit: ps.
    wire: [[u32; LENGTHS]; 3],
    /// By blocks: in the crossbar. Unit: ticks.
    cross: [u8; LENGTHS],
    /// By kind of port and blocks: from a head's arrival until it may cross, so that the crossbar never waits for
    /// what is still on the wire. Unit: ps.
    eligible: [[u32; LENGTHS]; 3],
    /// An ordered set on the wire of a kind of port. Unit: ps.
    pub(super) ordered_set: [u32; 3],
}

impl Durations {
    pub(super) fn new(settings: &Settings) -> Self {
        let start = settings.link.start_of_cell.get();
        let wire = |kind: PortKind, blocks: usize| {
            let bytes = match kind {
                PortKind::Terminal => blocks as u64 * 8,
                _ => blocks as u64 * 8 + start,
            };
            settings.rate(kind).send_time(Bytes::new(bytes)).as_ps() as u32
        };
        // No cell is longer than the longest.
        let length = |blocks: usize| blocks.min(BLOCKS_MAX.into());
        let kinds = [PortKind::Local, PortKind::Global, PortKind::Terminal];
        let speedup = (settings.switch.speedup * 100.0).round() as usize;
        let cross = |blocks: usize| (blocks * 100).div_ceil(speedup).max(1);
        let receive = RECEIVE.as_ps() as u32;
        let eligible = |kind, blocks: usize| {
            let crossing = cross(blocks) as u32 * TICK.as_ps() as u32;
            receive.max(wire(kind, blocks).saturating_sub(crossing))
        };
        Self {
            wire: kinds.map(|kind| std::array::from_fn(|blocks| wire(kind, length(blocks)))),
            cross: std::array::from_fn(|blocks| cross(length(blocks)) as u8),
            eligible: kinds
                .map(|kind| std::array::from_fn(|blocks| eligible(kind, length(blocks)))),
            ordered_set: kinds.map(|kind| wire(kind, 1)),
        }
    }

    /// The longest time from now until something at a switch that is certain to come: a line is busy with a cell and
    /// with all that tells of credit on all its channels twice, and what comes then crosses. Unit: ps.
    pub(super) fn longest(&self) -> u64 {
        let longest = |of: &[u32]| u64::from(of.iter().copied().max().unwrap_or(0));
        let cell = longest(self.wire.as_flattened()) + longest(self.eligible.as_flattened());
        let sets = 4 * CHANNELS as u64 * longest(&self.ordered_set);
        let crossing = longest(&self.cross.map(u32::from)) * TICK_PS;
        2 * cell + sets + crossing + HOP.as_ps()
    }

    #[inline]
    pub(super) fn wire(&self, kind: PortKind, blocks: u8) -> u64 {
        u64::from(self.wire[kind as usize][usize::from(blocks) % LENGTHS])
    }

    #[inline]
    pub(super) fn cross(&self, blocks: u8) -> u64 {
        u64::from(self.cross[usize::from(blocks) % LENGTHS])
    }

    #[inline]
    pub(super) fn eligible(&self, kind: PortKind, blocks: u8) -> u64 {
        u64::from(self.eligible[kind as usize][usize::from(blocks) % LENGTHS])
    }
}
