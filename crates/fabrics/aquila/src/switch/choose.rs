//! Which way a head takes (§3.2, M301 to M317).
//!
//! Decided when a cell becomes the head of its FIFO, from what the switch itself sees: queues of its own
//! outputs (M310). Drawn again while it waits (M313). Chance depends on the switch, the port, the channel,
//! the cell's ends and how many were drawn there before, so the order in which heads are looked at makes no difference.

use super::cell::{Cell, NONE};
use super::settings::ESCAPE;
use super::tin::{LANES, Tin, UNDECIDED, at};
use super::traced::NOWHERE;
use super::{Endpoints, Switches, split};
use crate::address::Address;
use crate::config::AtDeadLink;
use crate::link::classes::{CellKind, Mode};
use crate::tables::{self, Component, MINIMAL_SLOTS, OTHER_SLOTS, Row, Tables};
use crate::topology::PortKind;

/// A way on: output, and channel there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Way {
    pub(super) output: usize,
    pub(super) onward: usize,
}

/// Which ways there are.
enum Ways<'a> {
    /// A row of the tables, for cells that stay on their class's channels.
    Of(&'a Row, usize),
    /// One, on an escape channel.
    Escape(Way),
    /// None.
    None,
}

impl<E: Endpoints> Switches<E> {
    /// The head of a FIFO has come there: decides its way, and asks for it.
    pub(super) fn decide(&mut self, place: usize, port: usize, channel: usize, tick: u64) {
        let head = self.tins[place].inputs[at(channel, port)].head;
        debug_assert_ne!(head, NONE, "nothing to decide");
        let cell = *self.pool.get(head);
        self.counts.decisions += 1;
        let Some((way, mode)) = self.choose(place, port, channel, &cell) else {
            return self.discard_head(place, port, channel, tick);
        };
        let tin = &mut self.tins[place];
        let input = &mut tin.inputs[at(channel, port)];
        (input.output, input.onward) = (way.output as u8, way.onward as u8);
        input.drawn = tick as u8;
        input.draws = input.draws.wrapping_add(1);
        tin.ask(port, channel, way.output, way.onward);
        let is_ours = tin.ports[way.output].kind == PortKind::Terminal;
        let redraws = matches!(mode, Mode::FullyAdaptive | Mode::MinimalAdaptive);
        if redraws && !is_ours && self.limits.draw_again > 0 {
            self.drawn.push(((place << 6 | port) as u32, channel as u8));
        }
        if self.tins[place].wanted & self.tins[place].free_outputs != 0 {
            self.mark(place);
        }
    }

    /// Heads that have drawn a way at this tick and did not go at once draw again later, if they wait until then.
    pub(super) fn expect_draws(&mut self, tick: u64) {
        let mut drawn = std::mem::take(&mut self.drawn);
        for (place, channel) in drawn.drain(..) {
            let (tin, port) = split(place);
            let input = &self.tins[tin].inputs[at(channel.into(), port)];
            if input.output != UNDECIDED && input.drawn == tick as u8 {
                self.calendar.at(tick + self.limits.draw_again).draws.push((place, channel));
            }
        }
        self.drawn = drawn;
    }

    /// A head may have waited for long: if it is still the one, and still waits, its way is drawn again.
    pub(super) fn draw_again(&mut self, place: u32, channel: usize, tick: u64) {
        let (place, port) = split(place);
        let again = self.limits.draw_again;
        let tin = &mut self.tins[place];
        let input = &mut tin.inputs[at(channel, port)];
        if input.output == UNDECIDED || input.drawn != (tick - again) as u8 {
            return;
        }
        let (output, onward) = (usize::from(input.output), usize::from(input.onward));
        input.output = UNDECIDED;
        tin.unask(port, channel, output, onward);
        self.decide(place, port, channel, tick);
    }

    /// The way of a cell that came in at a port on a channel; none if there is none.
    fn choose(
        &mut self,
        place: usize,
        port: usize,
        channel: usize,
        cell: &Cell,
    ) -> Option<(Way, Mode)> {
        let tin = &self.tins[place];
        let mode = self.settings.classes[usize::from(cell.class)].mode;
        let to = Address::from_bits(cell.to);
        let component = tables::component(self.tables.shape(), tin.pod, tin.place, to);
        let (row, onward) = match ways(&self.tables, tin, (port, channel), cell, component) {
            Ways::Of(row, onward) => (row, onward),
            Ways::Escape(way) => {
                self.counts.escapes += u64::from(!ESCAPE.contains(&channel));
                return Some((way, Mode::Deterministic));
            }
            Ways::None => return None,
        };
        let queued = &tin.queued[onward];
        let is_here = matches!(component, Component::Own(_));
        let output = if is_here {
            hand_over(row, queued, mode, || hash(tin, cell), || tin.chance(port, channel, cell))
        } else {
            match mode {
                Mode::Deterministic => self.by_hash(tin, row, cell, OTHER_SLOTS),
                Mode::MinimalDeterministic => self.by_hash(tin, row, cell, 0),
                Mode::FullyAdaptive | Mode::MinimalAdaptive => {
                    let draw = tin.chance(port, channel, cell);
                    let is_minimal = mode == Mode::MinimalAdaptive;
                    let (output, is_detour) = self.compare(row, queued, draw, is_minimal);
                    self.counts.detours += u64::from(is_detour);
                    output
                }
            }
        };
        Some((Way { output: usize::from(output), onward }, mode))
    }

    /// Of two ports on shortest ways and three on others, drawn without putting slots back, the one with the
    /// least queue, weighted (M311, M312). Ties go to shortest ways, then to the earlier draw.
    #[inline]
    fn compare(&self, row: &Row, queued: &[u8; LANES], draw: u64, is_minimal: bool) -> (u8, bool) {
        if self.settings.switch.compares_all {
            return self.compare_all(row, queued, is_minimal);
        }
        let mut best = (u32::MAX, tables::NONE, false);
        let mut offer = |cost: u32, port: u8, is_detour: bool| {
            if cost < best.0 {
                best = (cost, port, is_detour);
            }
        };
        let length = |port: u8| u32::from(queued[usize::from(port) % LANES]) * 100;
        if row.minimal[0] != tables::NONE {
            let one = draw as usize % MINIMAL_SLOTS;
            let two = (one + 1 + (draw >> 8) as usize % (MINIMAL_SLOTS - 1)) % MINIMAL_SLOTS;
            for slot in [one, two] {
                offer(length(row.minimal[slot]), row.minimal[slot], false);
            }
        }
        let has_no_other = row.others[0] == tables::NONE;
        if !has_no_other && (!is_minimal || row.minimal[0] == tables::NONE) {
            let (weight, bias) = (self.limits.detour_weight, self.limits.detour_bias);
            for slot in three_of_24(draw >> 16) {
                let port = row.others[slot];
                offer(length(port) / 100 * weight + bias, port, true);
            }
        }
        (best.1, best.2)
    }

    /// The same of all ports of a row, to test what drawing is for (M321).
    fn compare_all(&self, row: &Row, queued: &[u8; LANES], is_minimal: bool) -> (u8, bool) {
        let (weight, bias) = (self.limits.detour_weight, self.limits.detour_bias);
        let length = |port: u8| u32::from(queued[usize::from(port) % LANES]);
        let shortest = row.minimal.iter().map(|&port| (length(port) * 100, port, false));
        let others = row.others.iter().filter(|_| !is_minimal || row.minimal[0] == tables::NONE);
        let others = others.map(|&port| (length(port) * weight + bias, port, true));
        let ways = shortest.chain(others).filter(|way| way.1 != tables::NONE);
        let best = ways.min_by_key(|way| way.0).expect("a row that is not empty");
        (best.1, best.2)
    }

    /// By a hash, among the shortest ways and so many slots of others; where dead ports are left out, the next slot
    /// whose link is up (M314, M319).
    fn by_hash(&self, tin: &Tin, row: &Row, cell: &Cell, others: usize) -> u8 {
        let shortest = if row.minimal[0] == tables::NONE { 0 } else { MINIMAL_SLOTS };
        // Where no shortest way is left all others are as good.
        let others = match row.others[0] {
            tables::NONE => 0,
            _ if shortest == 0 => OTHER_SLOTS,
            _ => others,
        };
        let count = shortest + others;
        let slot = |slot: usize| match slot % count {
            slot if slot < shortest => row.minimal[slot],
            slot => row.others[slot - shortest],
        };
        let first = hash(tin, cell) as usize % count;
        if self.settings.switch.at_dead_link != AtDeadLink::PortMask {
            return slot(first);
        }
        let mut slots = (first..first + count).map(slot);
        let is_up = |port: &u8| !tin.ports[usize::from(*port) % LANES].is_down;
        slots.find(is_up).unwrap_or_else(|| slot(first))
    }

    /// A head that cannot go anywhere is thrown away; the room it took comes free (M110).
    fn discard_head(&mut self, place: usize, port: usize, channel: usize, tick: u64) {
        self.counts.discarded += 1;
        let input = &mut self.tins[place].inputs[at(channel, port)];
        let cell = input.head;
        input.head = if cell == input.tail { NONE } else { self.pool.get(cell).next };
        let cell = self.pool.take(cell);
        if cell.is_traced() {
            self.note(place, (port, channel), (NOWHERE, channel as u8), cell, tick);
        }
        self.wishes.contents.release(&cell);
        self.free_units(place, port, channel, cell.units(), tick);
        if self.tins[place].inputs[at(channel, port)].head != NONE {
            self.decide(place, port, channel, tick);
        }
    }
}

/// Which ways a cell has from a switch.
#[inline]
fn ways<'a>(
    tables: &'a Tables,
    tin: &Tin,
    (port, channel): (usize, usize),
    cell: &Cell,
    component: Component,
) -> Ways<'a> {
    let to = Address::from_bits(cell.to);
    let from = &tin.ports[port];
    let is_escaping = channel >= ESCAPE[0];
    let (row, rvc) = match component {
        Component::Own(endpoint) => (tables.terminals(endpoint), 0),
        _ if is_escaping => (&Row::EMPTY, 0),
        Component::Far(component) => {
            let rvc = (channel - 3 * usize::from(cell.class)) as u8;
            let block = tables.block(tin.id, port as u8, rvc);
            (
                tables.by_index(tables.entry(block, component)),
                u8::from(from.kind == PortKind::Global),
            )
        }
        Component::Unknown => return Ways::None,
    };
    if !row.is_empty()
        && (is_escaping || channel + usize::from(rvc) < 3 * usize::from(cell.class) + 3)
    {
        return Ways::Of(row, channel + usize::from(rvc));
    }
    if matches!(component, Component::Own(_)) {
        return Ways::None;
    }
    let shape = tables.shape();
    let has_come_down = is_escaping && from.comes_down;
    let output = tables.escape(tin.id, has_come_down, shape.tin(to.pod(), to.tin()));
    let onward = if is_escaping { channel } else { ESCAPE[usize::from(always_sinks(cell))] };
    match output {
        tables::NONE => Ways::None,
        output => Ways::Escape(Way { output: usize::from(output), onward }),
    }
}

/// Whether a cell's end has kept room for it: CTS, CTD, DATA and RESP always sink (M211, M308).
fn always_sinks(cell: &Cell) -> bool {
    CellKind::from_number(cell.kind).is_some_and(|kind| !kind.may_wait())
}

/// The terminal port that a cell leaves by: that with the shortest queue, from a random one on, or by a hash where
/// order matters (M102).
fn hand_over(
    row: &Row,
    queued: &[u8; LANES],
    mode: Mode,
    hash: impl FnOnce() -> u32,
    draw: impl FnOnce() -> u64,
) -> u8 {
    if matches!(mode, Mode::Deterministic | Mode::MinimalDeterministic) {
        return row.minimal[hash() as usize % MINIMAL_SLOTS];
    }
    let start = draw() as usize % MINIMAL_SLOTS;
    let slots = (0..MINIMAL_SLOTS).map(|step| row.minimal[(start + step) % MINIMAL_SLOTS]);
    slots.min_by_key(|&port| queued[usize::from(port) % LANES]).expect("eight slots")
}

/// What of a cell stays the same for all of its source, destination and class, mixed with the switch (U17).
fn hash(tin: &Tin, cell: &Cell) -> u32 {
    let key = u64::from(cell.from) << 24 | u64::from(cell.to) << 8 | u64::from(cell.class);
    let mut word = (key ^ tin.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (word >> 32) as u32
}

/// Three different ones of 24 slots.
#[inline]
fn three_of_24(draw: u64) -> [usize; 3] {
    let one = (draw & 0xffff) as usize % 24;
    let mut two = (draw >> 16 & 0xffff) as usize % 23;
    two += usize::from(two >= one);
    let (low, high) = (one.min(two), one.max(two));
    let mut three = (draw >> 32 & 0xffff) as usize % 22;
    three += usize::from(three >= low);
    three += usize::from(three >= high);
    [one, two, three]
}

#[cfg(test)]
mod tests {
    use kernel::Stream;

    use super::*;

    /// Chi-squared with 23 degrees of freedom: below 49.7 with a probability of 0.999.
    #[test]
    fn i28_all_slots_are_drawn_alike_and_none_twice() {
        let mut stream = Stream::new(1, "test/slots", 0);
        let mut counts = [[0u32; 24]; 3];
        const DRAWS: u32 = 240_000;
        for _ in 0..DRAWS {
            let slots = three_of_24(stream.below(u64::MAX));
            assert!(slots[0] != slots[1] && slots[1] != slots[2] && slots[0] != slots[2]);
            slots.iter().zip(&mut counts).for_each(|(&slot, counts)| counts[slot] += 1);
        }
        let mean = f64::from(DRAWS) / 24.0;
        for counts in counts {
            let squared: f64 = counts.iter().map(|&c| (f64::from(c) - mean).powi(2) / mean).sum();
            assert!(squared < 49.7, "{squared}: {counts:?}");
        }
    }
}
