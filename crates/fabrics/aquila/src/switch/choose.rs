//! Which way a head takes (§3.2, M301 to M317).
//!
//! Decided when a cell becomes the head of its FIFO, from what the switch itself sees: queues of its own
//! outputs (M310). Drawn again while it waits (M313). Chance depends on the switch, the port, the channel,
//! the cell's ends and how many were drawn there before, so the order in which heads are looked at makes no difference.

use ::rack::trace::Outcome;

use super::Counts;
use super::calendar::{Queue, split_queue};
use super::cell::{BLOCK, Cell, NONE, Pool};
use super::settings::{ESCAPE, Limits};
use super::shared::Shared;
use super::tin::{LANES, Tin, UNDECIDED, at, channels};
use super::traced::NOWHERE;
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
    /// Whether it is drawn again if it is not gone for long.
    is_drawn: bool,
}

/// What a way is chosen by, besides the switch.
#[derive(Clone, Copy)]
struct Around<'a> {
    limits: &'a Limits,
    tables: &'a Tables,
}

impl Tin {
    /// The head of a FIFO has come there: decides its way, and asks for it.
    #[inline(never)]
    pub(super) fn decide<const RECORDS: bool>(
        &mut self,
        shared: &mut Shared,
        port: usize,
        channel: usize,
        tick: u64,
    ) {
        self.decide_inline::<RECORDS>(shared, port, channel, tick);
    }

    /// The same, where most heads come.
    #[inline(always)]
    pub(super) fn decide_inline<const RECORDS: bool>(
        &mut self,
        shared: &mut Shared,
        port: usize,
        channel: usize,
        tick: u64,
    ) {
        let head = self.inputs[at(channel, port)].head;
        debug_assert_ne!(head, NONE, "nothing to decide");
        let Shared { limits, tables, counts, pool, .. } = shared;
        counts.decisions += 1;
        let around = Around { limits, tables };
        let Some(way) = self.choose(around, counts, port, channel, pool.get(head)) else {
            return self.discard_head::<RECORDS>(shared, port, channel, tick);
        };
        let input = &mut self.inputs[at(channel, port)];
        (input.output, input.onward) = (way.output as u8, way.onward as u8);
        input.drawn = tick as u8;
        input.draws = input.draws.wrapping_add(1);
        self.ask(port, channel, way.output, way.onward);
        if RECORDS {
            self.note_asked(shared, head, (way.output, way.onward), tick);
        }
        if way.is_drawn && shared.limits.draw_again > 0 {
            shared.drawn.push(self.queue(port, channel));
        }
    }

    /// A head that has drawn a way at this tick and did not go at once draws again later, if it waits until then.
    #[inline]
    pub(super) fn expect_draw(&self, shared: &mut Shared, queue: Queue, tick: u64) {
        let (_, port, channel) = split_queue(queue);
        let input = &self.inputs[at(channel, port)];
        if input.output != UNDECIDED && input.drawn == tick as u8 {
            let when = tick + shared.limits.draw_again;
            shared.calendar.at(when).draws.push(when, queue);
        }
    }

    /// A head may have waited for long: if it is still the one, and still waits, its way is drawn again.
    #[inline]
    pub(super) fn draw_again<const RECORDS: bool>(
        &mut self,
        shared: &mut Shared,
        queue: Queue,
        tick: u64,
    ) {
        let (_, port, channel) = split_queue(queue);
        let input = &mut self.inputs[at(channel, port)];
        if input.output == UNDECIDED || input.drawn != (tick - shared.limits.draw_again) as u8 {
            return;
        }
        let (output, onward) = (usize::from(input.output), usize::from(input.onward));
        input.output = UNDECIDED;
        self.unask(port, channel, output, onward);
        self.decide::<RECORDS>(shared, port, channel, tick);
        shared.mark(self);
    }

    /// The way of a cell that came in at a port on a channel; none if there is none.
    #[inline(always)]
    fn choose(
        &self,
        around: Around<'_>,
        counts: &mut Counts,
        port: usize,
        channel: usize,
        cell: &Cell,
    ) -> Option<Way> {
        let Around { limits, tables } = around;
        let mode = limits.modes[usize::from(cell.class)];
        let to = Address::from_bits(cell.to);
        let component = match tables::component_from(tables.shape(), self.own, to) {
            Component::Own(endpoint) => {
                let row = tables.terminals(endpoint);
                if row.is_empty() {
                    return None;
                }
                let queued = &self.queued[channel];
                let draw = || self.chance(port, channel, cell);
                let output = hand_over(row, queued, mode, || self.hash(cell), draw);
                return Some(Way { output: output.into(), onward: channel, is_drawn: false });
            }
            Component::Unknown => return None,
            Component::Far(component) => component,
        };
        if channel >= ESCAPE[0] {
            return self.escape(tables, counts, port, channel, cell);
        }
        let first = 3 * usize::from(cell.class);
        let from = &self.ports[port];
        let block = from.blocks[channel - first];
        let row = tables.by_index(tables.entry(block, component));
        // A class has three channels: behind a fibre the next one (M303).
        let onward = channel + usize::from(from.kind == PortKind::Global);
        if row.is_empty() || onward >= first + 3 {
            return self.escape(tables, counts, port, channel, cell);
        }
        let is_minimal = mode == Mode::MinimalAdaptive;
        if is_minimal || mode == Mode::FullyAdaptive {
            let draw = self.chance(port, channel, cell);
            let queued = &self.queued[onward];
            let (output, is_detour) = compare(limits, row, queued, draw, is_minimal);
            counts.detours += u64::from(is_detour);
            return Some(Way { output: output.into(), onward, is_drawn: true });
        }
        let others = if mode == Mode::Deterministic { OTHER_SLOTS } else { 0 };
        let output = self.by_hash(limits, row, cell, others);
        Some(Way { output: output.into(), onward, is_drawn: false })
    }

    /// The way of a cell that has none on its class's channels, or none any more: on an escape channel (M308).
    #[inline(never)]
    fn escape(
        &self,
        tables: &Tables,
        counts: &mut Counts,
        port: usize,
        channel: usize,
        cell: &Cell,
    ) -> Option<Way> {
        let is_escaping = channel >= ESCAPE[0];
        let to = Address::from_bits(cell.to);
        let has_come_down = is_escaping && self.ports[port].comes_down;
        let to = tables.shape().tin(to.pod(), to.tin());
        let output = tables.escape(self.id, has_come_down, to);
        let onward = if is_escaping { channel } else { ESCAPE[usize::from(always_sinks(cell))] };
        if output == tables::NONE {
            return None;
        }
        counts.escapes += u64::from(!is_escaping);
        Some(Way { output: output.into(), onward, is_drawn: false })
    }

    /// By a hash, among the shortest ways and so many slots of others; where dead ports are left out, the next slot
    /// whose link is up (M314, M319).
    #[inline(never)]
    fn by_hash(&self, limits: &Limits, row: &Row, cell: &Cell, others: usize) -> u8 {
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
        let first = self.hash(cell) as usize % count;
        if limits.at_dead_link != AtDeadLink::PortMask {
            return slot(first);
        }
        let mut slots = (first..first + count).map(slot);
        let is_up = |port: &u8| !self.ports[usize::from(*port) % LANES].is_down;
        slots.find(is_up).unwrap_or_else(|| slot(first))
    }

    /// What of a cell stays the same for all of its source, destination and class, mixed with the switch (U17).
    fn hash(&self, cell: &Cell) -> u32 {
        let key = u64::from(cell.from) << 24 | u64::from(cell.to) << 8 | u64::from(cell.class);
        let mut word = (key ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word = (word ^ word >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (word >> 32) as u32
    }

    /// A head that cannot go anywhere is thrown away; the room it took comes free (M110).
    #[inline(never)]
    fn discard_head<const RECORDS: bool>(
        &mut self,
        shared: &mut Shared,
        port: usize,
        channel: usize,
        tick: u64,
    ) {
        shared.counts.discarded += 1;
        let input = &mut self.inputs[at(channel, port)];
        let cell = input.head;
        input.head = if cell == input.tail { NONE } else { shared.pool.get(cell).next };
        let (index, cell) = (cell, shared.pool.take(cell));
        shared.note_lost(index, &cell, Outcome::NoRoute);
        if cell.is_traced() {
            shared.note(self.id, (port, channel), (NOWHERE, channel as u8), cell, tick);
        }
        shared.wishes.contents.release(&cell);
        self.free_units(shared, port, channel, cell.units(), tick);
        if self.inputs[at(channel, port)].head != NONE {
            self.decide::<RECORDS>(shared, port, channel, tick);
        }
    }

    /// A recorded head asks for an output's channel.
    #[inline(never)]
    fn note_asked(&self, shared: &mut Shared, head: u32, way: (usize, usize), tick: u64) {
        let Shared { pool, wishes, .. } = shared;
        wishes.record(|recorder| {
            if recorder.has(head) {
                let found = self.waiting(pool, way.0);
                recorder.asks(head, (way.0 as u8, way.1 as u8), found, tick);
            }
        });
    }

    /// Bytes and cells in the queues of an output.
    fn waiting(&self, pool: &Pool, output: usize) -> [u32; 2] {
        let (mut bytes, mut cells) = (0, 0);
        for channel in channels(self.ports[output].filled) {
            let queue = &self.outputs[at(channel, output)];
            let mut next = queue.head;
            loop {
                let cell = pool.get(next);
                (bytes, cells) = (bytes + u32::from(cell.blocks) * u32::from(BLOCK), cells + 1);
                if next == queue.tail {
                    break;
                }
                next = cell.next;
            }
        }
        [bytes, cells]
    }
}

/// Of two ports on shortest ways and three on others, drawn without putting slots back, the one with the
/// least queue, weighted (M311, M312), and whether it is one of the others. Ties go to shortest ways, then to the
/// earlier draw.
#[inline]
fn compare(
    limits: &Limits,
    row: &Row,
    queued: &[u8; LANES],
    draw: u64,
    is_minimal: bool,
) -> (u8, bool) {
    let (weight, bias) = (limits.detour_weight, limits.detour_bias);
    if limits.compares_all {
        return compare_all(row, queued, (weight, bias), is_minimal);
    }
    // Cost first, then the order in which they were drawn, then the port: the least word is the best.
    let length = |port: u8| u64::from(queued[usize::from(port) % LANES]);
    let has_minimal = row.minimal[0] != tables::NONE;
    let mut best = u64::MAX;
    if has_minimal {
        let one = draw as usize % MINIMAL_SLOTS;
        let two = (one + 1 + (draw >> 8) as usize % (MINIMAL_SLOTS - 1)) % MINIMAL_SLOTS;
        let [one, two] = [row.minimal[one], row.minimal[two]];
        best = (length(one) * 100) << 16 | u64::from(one);
        best = best.min((length(two) * 100) << 16 | 1 << 8 | u64::from(two));
    }
    if row.others[0] != tables::NONE && !(is_minimal && has_minimal) {
        let (weight, bias) = (u64::from(weight), u64::from(bias));
        for (at, slot) in (2..).zip(three_of_24(draw >> 16)) {
            let port = row.others[slot];
            let cost = length(port) * weight + bias;
            best = best.min(cost << 16 | at << 8 | u64::from(port));
        }
    }
    (best as u8, best >> 8 & 0xff >= 2)
}

/// The same of all ports of a row, to test what drawing is for (M321).
fn compare_all(
    row: &Row,
    queued: &[u8; LANES],
    (weight, bias): (u32, u32),
    is_minimal: bool,
) -> (u8, bool) {
    let length = |port: u8| u32::from(queued[usize::from(port) % LANES]);
    let shortest = row.minimal.iter().map(|&port| (length(port) * 100, port, false));
    let others = row.others.iter().filter(|_| !is_minimal || row.minimal[0] == tables::NONE);
    let others = others.map(|&port| (length(port) * weight + bias, port, true));
    let ways = shortest.chain(others).filter(|way| way.1 != tables::NONE);
    let best = ways.min_by_key(|way| way.0).expect("a row that is not empty");
    (best.1, best.2)
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
