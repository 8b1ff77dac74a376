//! From an input to an output: matches, crossings, and what an input does when a cell has left it (M104 to M107).

use ::rack::trace::Outcome;
use switching::islip::match_busy;

use super::OUT_PS;
use super::calendar::{Mail, Release, split_queue};
use super::cell::NONE;
use super::settings::{CELL_UNITS, RECEIVE, TICK_PS};
use super::shared::Shared;
use super::tin::{LANES, Tin, UNDECIDED, at, channels};
use super::traced::NOWHERE;
use crate::link::classes::class_of;
use crate::topology::PortKind;

impl Tin {
    /// What has come over a link may be acted upon.
    #[inline]
    pub(super) fn take_mail<const RECORDS: bool>(
        &mut self,
        shared: &mut Shared,
        mail: Mail,
        tick: u64,
    ) {
        match mail {
            Mail::Cell { queue, cell } => {
                let (_, port, channel) = split_queue(queue);
                self.enter::<RECORDS>(shared, port, channel, cell, tick);
            }
            Mail::Sync { queue, used } => self.take_sync(shared, queue, used, tick),
        }
    }

    /// A cell joins a FIFO.
    #[inline(always)]
    pub(super) fn enter<const RECORDS: bool>(
        &mut self,
        shared: &mut Shared,
        port: usize,
        channel: usize,
        cell: u32,
        tick: u64,
    ) {
        let units = shared.pool.get(cell).units();
        let state = &self.ports[port];
        if state.is_down {
            shared.counts.lost_at_dead_links += 1;
            return shared.discard(cell, Outcome::DeadLink);
        }
        let input = &mut self.inputs[at(channel, port)];
        if input.credit.receive(units).is_err() {
            debug_assert!(
                !shared.limits.credits,
                "I02: TiN {}, port {port}, channel {channel}: no room for {units} units",
                self.id
            );
            shared.counts.dropped_full += 1;
            return shared.discard(cell, Outcome::NoRoom);
        }
        let held = shared.limits.inputs[state.kind as usize] - input.credit.room();
        shared.counts.fifo_max = shared.counts.fifo_max.max(held);
        if RECORDS {
            shared.note_entered(self.slot << 6 | port as u32, cell);
        }
        if input.head != NONE {
            shared.pool.link(input.tail, cell);
            input.tail = cell;
            return;
        }
        (input.head, input.tail) = (cell, cell);
        // While its last cell still crosses the next waits for its release.
        let crosses = self.free_inputs >> port & 1 == 0 && usize::from(state.crossing) == channel;
        if !crosses {
            self.decide_inline::<RECORDS>(shared, port, channel, tick);
            shared.mark(self);
        }
    }

    /// Matches inputs and outputs that are free.
    #[inline]
    pub(super) fn match_ports<const RECORDS: bool>(&mut self, shared: &mut Shared, tick: u64) {
        let open = self.wanted & self.free_outputs;
        if open == 0 {
            return;
        }
        let free = (self.free_inputs, open);
        let is_open =
            match_busy(&mut self.ports, free, shared.limits.iterations, &mut shared.matches);
        for at in 0..shared.matches.count() {
            let (input, output) = shared.matches.pair(at);
            self.cross::<RECORDS>(shared, input, output, tick);
        }
        if is_open && self.may_match() {
            // What one round left open the next takes up.
            shared.calendar.at(tick + 1).rounds.push(tick + 1, self.slot);
        }
    }

    /// A head crosses.
    #[inline]
    fn cross<const RECORDS: bool>(
        &mut self,
        shared: &mut Shared,
        input: usize,
        output: usize,
        tick: u64,
    ) {
        let (channel, onward) = self.channel_of(input, output);
        debug_assert!(
            self.free_inputs >> input & 1 == 1 && self.free_outputs >> output & 1 == 1,
            "I06: a busy port is matched"
        );
        let head = &mut self.inputs[at(channel, input)];
        let index = head.head;
        debug_assert!((usize::from(head.output), usize::from(head.onward)) == (output, onward));
        let cell = shared.pool.get_mut(index);
        head.head = if index == head.tail { NONE } else { cell.next };
        head.output = UNDECIDED;
        self.unask(input, channel, output, onward);
        let (blocks, units) = (cell.blocks, cell.units() as u8);
        let now = tick * TICK_PS;
        let kind = self.ports[output].kind;
        cell.ready = match kind {
            // Half of a hop is left to go to an endpoint; what is over of it bounds the tail.
            PortKind::Terminal => cell.ready - RECEIVE.as_ps(),
            _ => cell.ready.max(now + OUT_PS),
        };
        let is_fine = cell.pass();
        let (ready, is_traced) = (cell.ready, cell.is_traced());
        self.ports[input].crossing = channel as u8;
        self.free_inputs &= !(1 << input);
        self.free_outputs &= !(1 << output);
        let release = Release { queue: self.queue(input, channel), output: output as u8, units };
        shared.counts.hops += 1;
        if is_traced {
            let to = if is_fine { output as u8 } else { NOWHERE };
            let cell = *shared.pool.get(index);
            shared.note(self.id, (input, channel), (to, onward as u8), cell, tick);
        }
        if RECORDS {
            shared.wishes.record(|recorder| recorder.crosses(index, ready, tick));
        }
        let whole = tick + shared.durations.cross(blocks);
        shared.calendar.at(whole).releases.push(whole, release);
        if !is_fine {
            shared.counts.discarded += 1;
            return shared.discard(index, Outcome::NoRoute);
        }
        if self.discards(shared, output) {
            shared.counts.lost_at_dead_links += 1;
            // Its next channel is another than the first (M303).
            let is_beyond = class_of(onward as u8).is_some_and(|(_, rvc)| rvc > 0);
            shared.counts.lost_beyond_first_pod += u64::from(is_beyond);
            return shared.discard(index, Outcome::DeadLink);
        }
        let queued = &mut self.queued[onward][output];
        *queued += units;
        if u16::from(*queued) + CELL_UNITS > shared.limits.outputs[kind as usize] {
            self.ports[output].room &= !(1 << onward);
            self.count_wants(output);
            if RECORDS {
                shared.note_room(self.place(output), onward, false);
            }
        }
        let queue = &mut self.outputs[at(onward, output)];
        if queue.head != NONE {
            shared.pool.link(queue.tail, index);
            queue.tail = index;
            return;
        }
        (queue.head, queue.tail) = (index, index);
        (queue.ready, queue.blocks) = (ready, blocks);
        let port = &mut self.ports[output];
        port.filled |= 1 << onward;
        let when = ready.max(port.line_free) / TICK_PS;
        shared.look_at(self, output, when.max(tick + 1));
    }

    /// The channel of an input whose head crosses to an output, and the one it joins there: of several the
    /// next in turn (M106).
    #[inline]
    fn channel_of(&mut self, input: usize, output: usize) -> (usize, usize) {
        let decided = self.ports[input].decided;
        debug_assert_ne!(decided, 0, "nothing asks");
        let channel = match decided & (decided - 1) {
            0 => decided.trailing_zeros() as usize,
            _ => self.channel_in_turn(input, output),
        };
        (channel, usize::from(self.inputs[at(channel, input)].onward))
    }

    /// The same where heads of several channels are decided.
    #[inline(never)]
    fn channel_in_turn(&mut self, input: usize, output: usize) -> usize {
        let heads = channels(self.ports[input].decided).filter(|&channel| {
            let head = &self.inputs[at(channel, input)];
            let has_room = self.ports[output].room >> head.onward & 1 == 1;
            usize::from(head.output) == output && has_room
        });
        let able = heads.fold(0u32, |able, channel| able | 1 << channel);
        debug_assert_ne!(able, 0, "nothing asks");
        if able & (able - 1) == 0 {
            return able.trailing_zeros() as usize;
        }
        let turn = &mut self.turns[input * LANES + output];
        let channel = switching::first_in_turn(able.into(), (*turn).into());
        *turn = (channel as u8 + 1) % 32;
        channel
    }

    /// The last byte of a cell has left an input.
    #[inline]
    pub(super) fn release<const RECORDS: bool>(
        &mut self,
        shared: &mut Shared,
        release: Release,
        tick: u64,
    ) {
        let (_, port, channel) = split_queue(release.queue);
        self.free_inputs |= 1 << port;
        self.free_outputs |= 1 << release.output;
        self.free_units(shared, port, channel, release.units.into(), tick);
        if self.inputs[at(channel, port)].head != NONE {
            self.decide_inline::<RECORDS>(shared, port, channel, tick);
        }
        shared.mark(self);
    }
}
