//! Outputs: which channel goes next, and the wire (M108, M201 to M206).

use super::bytes;
use super::calendar::Delivery;
use super::cell::NONE;
use super::faults::Hit;
use super::settings::{CELL_UNITS, CHANNELS, HOP, RECEIVE};
use super::tin::{NEVER, Tin, at, channels};
use super::{Body, Endpoints, Mail, Posted, Switches, TICK_PS, split};
use crate::topology::PortKind;

impl<E: Endpoints> Switches<E> {
    /// Starts a cell on an output's line within this tick, if there is one that may.
    pub(super) fn look(&mut self, place: u32, tick: u64) {
        let (place, port) = split(place);
        let (begin, end) = (tick * TICK_PS, (tick + 1) * TICK_PS);
        let state = &mut self.tins[place].ports[port];
        if state.look_at != tick {
            return;
        }
        state.look_at = NEVER;
        if state.filled == 0 || state.is_down {
            return;
        }
        if state.line_free >= end {
            let when = state.line_free / TICK_PS;
            return self.look_at(place, port, when);
        }
        let (able, soon) = eligible(&self.tins[place], port, end, self.limits.credits);
        if able == 0 {
            match soon {
                NEVER => self.counts.credit_stalls += 1,
                soon => self.look_at(place, port, soon / TICK_PS),
            }
            return;
        }
        let channel = self.next_in_turn(place, port, able);
        self.send(place, port, channel, begin, tick);
    }

    /// Of channels that may send: those of the highest level, and of these the one whose turn it is, by what each
    /// has sent (byte-deficit round robin).
    fn next_in_turn(&mut self, place: usize, port: usize, able: u32) -> usize {
        let level = self.limits.levels.iter().rev().find(|&&level| able & level != 0);
        let able = able & level.copied().unwrap_or(u32::MAX);
        if able & (able - 1) == 0 {
            return able.trailing_zeros() as usize;
        }
        let Self { tins, limits, .. } = self;
        let tin = &mut tins[place];
        let next = |from: u8| switching::first_in_turn(able.into(), from.into());
        let mut channel = next(tin.ports[port].turn);
        loop {
            let queue = &mut tin.outputs[at(channel, port)];
            let units = i16::from(queue.blocks.div_ceil(2));
            if queue.deficit < units {
                let weight = limits.services[channel].weight;
                queue.deficit += i16::from(weight) * CELL_UNITS as i16;
            }
            if queue.deficit >= units {
                queue.deficit -= units;
                let keeps = queue.deficit >= CELL_UNITS as i16;
                let turn = if keeps { channel } else { (channel + 1) % CHANNELS };
                tin.ports[port].turn = turn as u8;
                return channel;
            }
            channel = next((channel as u8 + 1) % CHANNELS as u8);
        }
    }

    /// Puts the head of an output's channel on the line.
    fn send(&mut self, place: usize, port: usize, channel: usize, begin: u64, tick: u64) {
        let tin = &mut self.tins[place];
        let queue = &mut tin.outputs[at(channel, port)];
        let index = queue.head;
        let cell = *self.pool.get(index);
        let ready = queue.ready;
        let start = tin.ports[port].line_free.max(ready).max(begin);
        let state = &mut tin.ports[port];
        let kind = state.kind;
        if kind != PortKind::Terminal && self.limits.credits {
            queue.credit.send(cell.units());
        }
        if index == queue.tail {
            queue.head = NONE;
            queue.deficit = 0;
            state.filled &= !(1 << channel);
        } else {
            queue.head = cell.next;
            let next = self.pool.get(cell.next);
            (queue.ready, queue.blocks) = (next.ready, next.blocks);
        }
        let length = self.durations.wire(kind, cell.blocks);
        state.line_free = start + length;
        let (free, is_filled) = (state.line_free, state.filled != 0);
        let queued = &mut tin.queued[channel][port];
        *queued -= cell.units() as u8;
        let has_room = u16::from(*queued) + CELL_UNITS <= self.limits.outputs[kind as usize];
        if has_room && tin.ports[port].room >> channel & 1 == 0 {
            tin.ports[port].room |= 1 << channel;
            tin.count_wants(port);
            if tin.wanted & tin.free_outputs != 0 {
                self.mark(place);
            }
        }
        if is_filled {
            self.look_at(place, port, (free / TICK_PS).max(tick + 1));
        }
        match kind {
            PortKind::Terminal => {
                // The tail is no earlier than the line at which it came in allows.
                let line = self.durations.wire(PortKind::Local, cell.blocks);
                let tail = free.max(ready + line);
                let place = (place << 6 | port) as u32;
                let delivery = Delivery { place, cell: index, tail };
                self.calendar.at(tail / TICK_PS).deliveries.push(delivery);
            }
            _ => self.put_on_wire(place, port, channel, index, start),
        }
    }

    /// A cell's last bit has come out of a terminal port.
    pub(super) fn hand_over(&mut self, delivery: Delivery) {
        let (place, port) = split(delivery.place);
        let cell = self.pool.take(delivery.cell);
        self.counts.delivered += 1;
        self.counts.delivered_blocks += u64::from(cell.blocks);
        let terminal = port as u8 - self.tables.shape().external_ports();
        let at = kernel::Time::from_ps(delivery.tail);
        let id = self.tins[place].id;
        self.endpoints.deliver(id, terminal, &cell, at, &mut self.wishes);
        self.wishes.contents.release(&cell);
        self.grant_wishes(place);
    }

    /// A cell's first bit goes on the wire at `start`.
    fn put_on_wire(&mut self, place: usize, port: usize, channel: usize, index: u32, start: u64) {
        self.note_use(place, port, channel, start / TICK_PS);
        let hit = self.hit(place, port, &self.pool.get(index).clone());
        match hit {
            Hit::None => {}
            Hit::Header => {
                self.counts.header_errors += 1;
                self.wishes.contents.release(&self.pool.take(index));
                return;
            }
            Hit::Silent => {
                self.counts.lost_silently += 1;
                self.wishes.contents.release(&self.pool.take(index));
                return;
            }
            Hit::Payload => {
                self.counts.payload_errors += 1;
                self.pool.get_mut(index).damage();
            }
        }
        let mut channel = channel as u8;
        if self.is_wire {
            let cell = self.pool.get(index);
            let content = self.wishes.contents.get_mut(cell);
            let Some((there, vc)) = bytes::cell(cell, channel, content) else {
                self.counts.header_errors += 1;
                self.wishes.contents.release(&self.pool.take(index));
                return;
            };
            (*self.pool.get_mut(index), channel) = (there, vc);
        }
        let state = &self.tins[place].ports[port];
        let arrival = start + u64::from(state.delay);
        let (tin, far) = (state.far_tin, state.far_port);
        let cell = self.pool.get_mut(index);
        cell.ready = arrival + HOP.as_ps();
        let able = arrival + self.durations.eligible(state.kind, cell.blocks);
        let tick = able.div_ceil(TICK_PS);
        let place = self.places[usize::from(tin)];
        if place == NONE {
            let mut cell = self.pool.take(index);
            let content = self.wishes.contents.take(&mut cell).map(Box::new);
            let body = Body::Cell(cell, channel);
            return self.posted.push(Posted { tick, tin, port: far, body, content });
        }
        let place = place << 6 | u32::from(far);
        self.calendar.at(tick).mail.push(Mail::Cell { place, cell: index, channel });
    }

    /// Sends an ordered set over a port's link, between cells; it arrives as `body` there.
    pub(super) fn send_set(&mut self, place: usize, port: usize, body: Body, tick: u64) {
        let state = &mut self.tins[place].ports[port];
        let length = u64::from(self.durations.ordered_set[state.kind as usize]);
        state.line_free = state.line_free.max(tick * TICK_PS) + length;
        let able = state.line_free + u64::from(state.delay) + RECEIVE.as_ps();
        let (tin, far, tick) = (state.far_tin, state.far_port, able.div_ceil(TICK_PS));
        // A set is as long as a header, and damaged as often.
        let set = super::cell::Cell::new(0, 0, 0, 0, 1, 0);
        if matches!(self.hit(place, port, &set), Hit::Header | Hit::Payload) {
            self.counts.header_errors += 1;
            return;
        }
        let body = match self.is_wire {
            false => body,
            true => match bytes::set(body) {
                Some(body) => body,
                None => {
                    self.counts.header_errors += 1;
                    return;
                }
            },
        };
        let there = self.places[usize::from(tin)];
        if there == NONE {
            return self.posted.push(Posted { tick, tin, port: far, body, content: None });
        }
        let place = there << 6 | u32::from(far);
        let mail = match body {
            Body::Credit(first, count, limits) => Mail::Credit { place, first, count, limits },
            Body::Sync(channel, used) => Mail::Sync { place, channel, used },
            Body::Cell(..) => unreachable!("a cell is no ordered set"),
        };
        self.calendar.at(tick).mail.push(mail);
    }
}

/// Channels of an output whose heads may start before `end`, and when the next may of those that have credit, if that is
/// asked for.
fn eligible(tin: &Tin, port: usize, end: u64, credits: bool) -> (u32, u64) {
    let state = &tin.ports[port];
    let has_room = state.kind == PortKind::Terminal || !credits;
    let (mut able, mut soon) = (0, NEVER);
    for channel in channels(state.filled & !state.stalled) {
        let queue = &tin.outputs[at(channel, port)];
        if !has_room && !queue.credit.can_send(queue.blocks.div_ceil(2).into()) {
            continue;
        }
        if queue.ready >= end {
            soon = soon.min(queue.ready);
        } else {
            able |= 1 << channel;
        }
    }
    (able, soon)
}
