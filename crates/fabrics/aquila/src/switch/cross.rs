//! From an input to an output: matches, crossings, and what an input does when a cell has left it (M104 to M107).

use switching::islip::Requests;

use super::calendar::Release;
use super::cell::NONE;
use super::settings::{CELL_UNITS, HOP, RECEIVE};
use super::tin::{UNDECIDED, at, channels};
use super::traced::NOWHERE;
use super::{Endpoints, Mail, OUT_PS, Switches, TICK_PS, split};
use crate::topology::PortKind;

impl<E: Endpoints> Switches<E> {
    /// What has come over a link may be acted upon.
    #[inline]
    pub(super) fn take_mail(&mut self, mail: Mail, tick: u64) {
        match mail {
            Mail::Cell { place, cell, channel } => {
                let (place, port) = split(place);
                self.enter(place, port, usize::from(channel), cell, tick);
            }
            Mail::Credit { place, first, count, limits } => {
                self.take_credit(place, (first, count, limits), tick);
            }
            Mail::Sync { place, channel, used } => self.take_sync(place, channel, used, tick),
        }
    }

    /// A cell joins a FIFO.
    #[inline]
    pub(super) fn enter(
        &mut self,
        place: usize,
        port: usize,
        channel: usize,
        cell: u32,
        tick: u64,
    ) {
        let units = self.pool.get(cell).units();
        let tin = &mut self.tins[place];
        if tin.ports[port].is_down {
            self.counts.lost_at_dead_links += 1;
            self.wishes.contents.release(&self.pool.take(cell));
            return;
        }
        let input = &mut tin.inputs[at(channel, port)];
        if input.credit.receive(units).is_err() {
            debug_assert!(
                !self.limits.credits,
                "I02: TiN {}, port {port}, channel {channel}: no room for {units} units",
                tin.id
            );
            self.counts.dropped_full += 1;
            self.wishes.contents.release(&self.pool.take(cell));
            return;
        }
        let held = self.limits.inputs[tin.ports[port].kind as usize] - input.credit.room();
        self.counts.fifo_max = self.counts.fifo_max.max(held);
        if input.head != NONE {
            self.pool.link(input.tail, cell);
            input.tail = cell;
            return;
        }
        (input.head, input.tail) = (cell, cell);
        // While its last cell still crosses the next waits for its release.
        let crosses =
            tin.free_inputs >> port & 1 == 0 && usize::from(tin.ports[port].crossing) == channel;
        if !crosses {
            self.decide(place, port, channel, tick);
        }
    }

    /// Lets a terminal port be asked for a cell.
    pub(super) fn inject(&mut self, place: u32, tick: u64) {
        let (place, port) = split(place);
        let end = (tick + 1) * TICK_PS;
        let state = &mut self.tins[place].ports[port];
        if state.feed_at != tick {
            return;
        }
        state.feed_at = super::NEVER;
        if state.feed_free >= end {
            return self.expect_injection(place, port, tick + 1);
        }
        let tin = &self.tins[place];
        let terminal = port as u8 - self.tables.shape().external_ports();
        let room = super::Room { inputs: &tin.inputs, port };
        let Some(mut cell) = self.endpoints.inject(tin.id, terminal, room, &mut self.wishes) else {
            return self.grant_wishes(place);
        };
        debug_assert!(room.fits(cell.class, cell.blocks), "I02: an endpoint injects without room");
        let start = tin.ports[port].feed_free.max(tick * TICK_PS);
        cell.ready = start + HOP.as_ps();
        self.counts.injected += 1;
        let channel = 3 * usize::from(cell.class);
        let length = self.durations.wire(PortKind::Terminal, cell.blocks);
        self.tins[place].ports[port].feed_free = start + length;
        let cell = self.pool.put(cell);
        self.enter(place, port, channel, cell, tick);
        self.expect_injection(place, port, tick + 1);
        self.grant_wishes(place);
    }

    /// Matches inputs and outputs of all switches that may have something to match.
    pub(super) fn match_all(&mut self, tick: u64) {
        for word in 0..self.dirty.len() {
            let marked = std::mem::take(&mut self.dirty[word]);
            for bit in switching::ones(marked) {
                self.match_ports(word * 64 + bit, tick);
            }
        }
    }

    fn match_ports(&mut self, place: usize, tick: u64) {
        let tin = &mut self.tins[place];
        let open = tin.wanted & tin.free_outputs;
        if open == 0 {
            return;
        }
        let requests = Requests {
            of_output: &tin.of_output,
            of_input: &tin.of_input,
            free_inputs: tin.free_inputs,
            free_outputs: open,
        };
        let mut pairs = std::mem::take(&mut self.pairs);
        let is_open =
            tin.islip.schedule(requests, self.settings.switch.iterations, |input, output| {
                pairs.push((input as u8, output as u8));
            });
        for (input, output) in pairs.drain(..) {
            self.cross(place, usize::from(input), usize::from(output), tick);
        }
        self.pairs = pairs;
        let tin = &self.tins[place];
        if is_open && tin.wanted & tin.free_outputs != 0 {
            // What one round left open the next takes up.
            self.calendar.at(tick + 1).rounds.push(place as u32);
        }
    }

    /// A head crosses.
    fn cross(&mut self, place: usize, input: usize, output: usize, tick: u64) {
        let (channel, onward) = self.channel_of(place, input, output);
        let tin = &mut self.tins[place];
        debug_assert!(
            tin.free_inputs >> input & 1 == 1 && tin.free_outputs >> output & 1 == 1,
            "I06: a busy port is matched"
        );
        let head = &mut tin.inputs[at(channel, input)];
        let index = head.head;
        debug_assert!((usize::from(head.output), usize::from(head.onward)) == (output, onward));
        let cell = self.pool.get_mut(index);
        head.head = if index == head.tail { NONE } else { cell.next };
        head.output = UNDECIDED;
        tin.unask(input, channel, output, onward);
        let (blocks, units) = (cell.blocks, cell.units() as u8);
        let now = tick * TICK_PS;
        let kind = tin.ports[output].kind;
        cell.ready = match kind {
            // Half of a hop is left to go to an endpoint; what is over of it bounds the tail.
            PortKind::Terminal => cell.ready - RECEIVE.as_ps(),
            _ => cell.ready.max(now + OUT_PS),
        };
        let is_fine = cell.pass();
        let (ready, is_traced) = (cell.ready, cell.is_traced());
        tin.ports[input].crossing = channel as u8;
        tin.free_inputs &= !(1 << input);
        tin.free_outputs &= !(1 << output);
        let release = Release {
            place: (place << 6 | input) as u32,
            output: output as u8,
            channel: channel as u8,
            blocks,
        };
        self.counts.hops += 1;
        if is_traced {
            let to = if is_fine { output as u8 } else { NOWHERE };
            let cell = *self.pool.get(index);
            self.note(place, (input, channel), (to, onward as u8), cell, tick);
        }
        self.calendar.at(tick + self.durations.cross(blocks)).releases.push(release);
        if !is_fine {
            self.counts.discarded += 1;
            self.wishes.contents.release(&self.pool.take(index));
            return;
        }
        if self.discards(place, output) {
            self.counts.lost_at_dead_links += 1;
            self.wishes.contents.release(&self.pool.take(index));
            return;
        }
        let tin = &mut self.tins[place];
        let queued = &mut tin.queued[onward][output];
        *queued += units;
        if u16::from(*queued) + CELL_UNITS > self.limits.outputs[kind as usize] {
            tin.ports[output].room &= !(1 << onward);
            tin.count_wants(output);
        }
        let queue = &mut tin.outputs[at(onward, output)];
        if queue.head != NONE {
            self.pool.link(queue.tail, index);
            queue.tail = index;
            return;
        }
        (queue.head, queue.tail) = (index, index);
        (queue.ready, queue.blocks) = (ready, blocks);
        let port = &mut tin.ports[output];
        port.filled |= 1 << onward;
        let when = ready.max(port.line_free) / TICK_PS;
        self.look_at(place, output, when.max(tick + 1));
    }

    /// The channel of an input whose head crosses to an output, and the one it joins there: of several the
    /// next in turn (M106).
    fn channel_of(&mut self, place: usize, input: usize, output: usize) -> (usize, usize) {
        let tin = &mut self.tins[place];
        let heads = channels(tin.ports[input].decided).filter(|&channel| {
            let head = &tin.inputs[at(channel, input)];
            usize::from(head.output) == output && tin.ports[output].room >> head.onward & 1 == 1
        });
        let able = heads.fold(0u32, |able, channel| able | 1 << channel);
        debug_assert_ne!(able, 0, "nothing asks");
        let mut channel = able.trailing_zeros() as usize;
        if able & (able - 1) != 0 {
            let turn = &mut tin.turns[input * super::LANES + output];
            channel = switching::first_in_turn(able.into(), (*turn).into());
            *turn = (channel as u8 + 1) % 32;
        }
        (channel, usize::from(tin.inputs[at(channel, input)].onward))
    }

    /// The last byte of a cell has left an input.
    pub(super) fn release(&mut self, release: Release, tick: u64) {
        let (place, port) = split(release.place);
        let channel = usize::from(release.channel);
        let tin = &mut self.tins[place];
        tin.free_inputs |= 1 << port;
        tin.free_outputs |= 1 << release.output;
        let units = u16::from(release.blocks.div_ceil(2));
        self.free_units(place, port, channel, units, tick);
        let input = &self.tins[place].inputs[at(channel, port)];
        if input.head != NONE {
            self.decide(place, port, channel, tick);
        }
        let tin = &self.tins[place];
        if tin.wanted & tin.free_outputs != 0 {
            self.mark(place);
        }
    }
}
