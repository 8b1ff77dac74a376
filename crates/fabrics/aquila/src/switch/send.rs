//! Outputs: which channel goes next, and the wire (M108, M201 to M206).

use ::rack::trace::Outcome;

use super::bytes;
use super::calendar::{Credit, Delivery, Mail, queue_at};
use super::cell::NONE;
use super::faults::Hit;
use super::record::Going;
use super::settings::{CELL_UNITS, CHANNELS, HOP, RECEIVE, TICK_PS};
use super::shared::Shared;
use super::tin::{NEVER, Tin, at, channels};
use super::{Body, Posted, Wishes};
use crate::config::WithinClass;
use crate::link::classes::CLASSES;
use crate::link::credits::UNIT_BYTES;
use crate::topology::PortKind;

impl Tin {
    /// Starts a cell on an output's line within this tick, if there is one that may.
    #[inline]
    pub(super) fn look<const RECORDS: bool>(
        &mut self,
        shared: &mut Shared,
        port: usize,
        tick: u64,
    ) {
        let (begin, end) = (tick * TICK_PS, (tick + 1) * TICK_PS);
        let state = &mut self.ports[port];
        if state.look_at != tick {
            return;
        }
        state.look_at = NEVER;
        if state.filled == 0 || state.is_down {
            return;
        }
        if state.line_free >= end {
            let when = state.line_free / TICK_PS;
            return shared.look_at(self, port, when);
        }
        let (able, soon) = self.eligible(port, end, shared.limits.credits);
        if able == 0 {
            match soon {
                NEVER => shared.counts.credit_stalls += 1,
                soon => shared.look_at(self, port, soon / TICK_PS),
            }
            return;
        }
        let channel = match able & (able - 1) {
            0 => able.trailing_zeros() as usize,
            _ => self.next_in_turn(shared, port, able),
        };
        self.send::<RECORDS>(shared, port, channel, begin, tick);
    }

    /// Channels of an output whose heads may start before `end`, and when the next may of those that have credit, if
    /// that is asked for.
    #[inline]
    fn eligible(&self, port: usize, end: u64, credits: bool) -> (u32, u64) {
        let state = &self.ports[port];
        let (mut has_room, mut filled) = (!credits, state.filled);
        if state.kind == PortKind::Terminal {
            (has_room, filled) = (true, filled & !state.stalled);
        }
        let (mut able, mut soon) = (0, NEVER);
        for channel in channels(filled) {
            let queue = &self.outputs[at(channel, port)];
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

    /// Of several channels that may send: those of the highest level, and of these the one whose turn it is, by what
    /// each has sent (byte-deficit round robin).
    #[inline(never)]
    fn next_in_turn(&mut self, shared: &Shared, port: usize, able: u32) -> usize {
        let level = shared.limits.levels.iter().rev().find(|&&level| able & level != 0);
        let able = able & level.copied().unwrap_or(u32::MAX);
        let able = match shared.limits.within_class {
            WithinClass::InTurn => able,
            WithinClass::FartherFirst => farthest(able),
        };
        if able & (able - 1) == 0 {
            return able.trailing_zeros() as usize;
        }
        let next = |from: u8| switching::first_in_turn(able.into(), from.into());
        let mut channel = next(self.ports[port].turn);
        loop {
            let queue = &mut self.outputs[at(channel, port)];
            let units = i16::from(queue.blocks.div_ceil(2));
            if queue.deficit < units {
                let weight = shared.limits.services[channel].weight;
                queue.deficit += i16::from(weight) * CELL_UNITS as i16;
            }
            if queue.deficit >= units {
                queue.deficit -= units;
                let keeps = queue.deficit >= CELL_UNITS as i16;
                let turn = if keeps { channel } else { (channel + 1) % CHANNELS };
                self.ports[port].turn = turn as u8;
                return channel;
            }
            channel = next((channel as u8 + 1) % CHANNELS as u8);
        }
    }

    /// Puts the head of an output's channel on the line.
    #[inline]
    fn send<const RECORDS: bool>(
        &mut self,
        shared: &mut Shared,
        port: usize,
        channel: usize,
        begin: u64,
        tick: u64,
    ) {
        let queue = &mut self.outputs[at(channel, port)];
        let index = queue.head;
        let cell = shared.pool.get(index);
        let (blocks, next) = (cell.blocks, cell.next);
        let ready = queue.ready;
        let state = &mut self.ports[port];
        let start = state.line_free.max(ready).max(begin);
        let kind = state.kind;
        if kind != PortKind::Terminal && shared.limits.credits {
            queue.credit.send(blocks.div_ceil(2).into());
        }
        if index == queue.tail {
            queue.head = NONE;
            queue.deficit = 0;
            state.filled &= !(1 << channel);
        } else {
            queue.head = next;
            let next = shared.pool.get(next);
            (queue.ready, queue.blocks) = (next.ready, next.blocks);
        }
        let free = start + shared.durations.wire(kind, blocks);
        state.line_free = free;
        let is_filled = state.filled != 0;
        let queued = &mut self.queued[channel][port];
        *queued -= blocks.div_ceil(2);
        let queued = *queued;
        if state.room >> channel & 1 == 0 {
            self.reopen::<RECORDS>(shared, port, channel, queued);
        }
        if is_filled {
            shared.look_at(self, port, (free / TICK_PS).max(tick + 1));
        }
        match kind {
            PortKind::Terminal => {
                // The tail is no earlier than the line at which it came in allows.
                let line = shared.durations.wire(PortKind::Local, blocks);
                let tail = free.max(ready + line);
                if RECORDS {
                    self.note_sent(shared, (port, channel), index, [start, free], tail);
                }
                let delivery = Delivery { place: self.place(port), cell: index, tail };
                let tick = tail / TICK_PS;
                shared.calendar.at(tick).deliveries.push(tick, delivery);
            }
            _ => self.put_on_wire::<RECORDS>(shared, port, channel, index, start),
        }
    }

    /// An output's channel had no room for a largest cell, and may have it again.
    #[inline(never)]
    fn reopen<const RECORDS: bool>(
        &mut self,
        shared: &mut Shared,
        port: usize,
        channel: usize,
        queued: u8,
    ) {
        let state = &mut self.ports[port];
        let limit = shared.limits.outputs[state.kind as usize];
        if u16::from(queued) + CELL_UNITS <= limit {
            state.room |= 1 << channel;
            self.count_wants(port);
            shared.mark(self);
            if RECORDS {
                shared.note_room(self.place(port), channel, true);
            }
        }
    }

    /// A cell's first bit goes on the wire at `start`.
    #[inline]
    fn put_on_wire<const RECORDS: bool>(
        &mut self,
        shared: &mut Shared,
        port: usize,
        channel: usize,
        index: u32,
        start: u64,
    ) {
        self.note_use(shared, port, channel, start / TICK_PS);
        if RECORDS {
            let line = [start, self.ports[port].line_free];
            self.note_sent(shared, (port, channel), index, line, 0);
        }
        let mut channel = channel as u8;
        if shared.errors.is_some() && !self.survives(shared, port, index) {
            return;
        }
        if shared.is_wire {
            match self.pass_as_bytes(shared, channel, index) {
                Some(there) => channel = there,
                None => return,
            }
        }
        if RECORDS {
            shared.wishes.record(|recorder| recorder.leaves(index));
        }
        let state = &self.ports[port];
        let arrival = start + u64::from(state.delay);
        let cell = shared.pool.get_mut(index);
        cell.ready = arrival + HOP.as_ps();
        let able = arrival + shared.durations.eligible(state.kind, cell.blocks);
        let tick = tick_from(able);
        if state.far == NONE {
            let mut cell = shared.pool.take(index);
            let content = shared.wishes.contents.take(&mut cell).map(Box::new);
            let (tin, port) = (state.far_tin, state.far_port);
            let body = Body::Cell(cell, channel);
            return shared.posted.push(Posted { tick, tin, port, body, content });
        }
        let mail = Mail::Cell { queue: queue_at(state.far, channel), cell: index };
        shared.calendar.at(tick).mail.push(tick, mail);
    }

    /// A cell goes on the line of a port; `tail` is when its last bit is at the endpoint, if it is one's.
    #[inline(never)]
    fn note_sent(
        &self,
        shared: &mut Shared,
        (port, channel): (usize, usize),
        index: u32,
        line: [u64; 2],
        tail: u64,
    ) {
        let Shared { pool, durations, wishes, .. } = shared;
        let Wishes { recorder, contents, .. } = wishes;
        let Some(recorder) = recorder else { return };
        let (cell, state) = (pool.get(index), &self.ports[port]);
        let content = contents.get(cell).map_or(&[][..], |content| content.bytes());
        let waiting = channels(state.filled).map(|channel| u32::from(self.queued[channel][port]));
        let delay = (state.kind != PortKind::Terminal).then_some(u64::from(state.delay));
        let going = Going {
            place: self.place(port),
            channel: channel as u8,
            index,
            cell,
            content,
            line,
            delay,
            tail,
            slow: durations.wire(PortKind::Local, cell.blocks),
        };
        recorder.sends(&going, waiting.sum::<u32>() * u32::from(UNIT_BYTES));
        if delay.is_none() {
            recorder.leaves(index);
        }
    }

    /// What errors of a link leave of a cell: false if nothing.
    #[inline(never)]
    fn survives(&self, shared: &mut Shared, port: usize, index: u32) -> bool {
        let cell = *shared.pool.get(index);
        match self.hit(shared, port, &cell) {
            Hit::None => return true,
            Hit::Payload => {
                shared.counts.payload_errors += 1;
                shared.pool.get_mut(index).damage();
                return true;
            }
            Hit::Header => shared.counts.header_errors += 1,
            Hit::Silent => shared.counts.lost_silently += 1,
        }
        shared.discard(index, Outcome::Lost);
        false
    }

    /// A cell as it is read from its bytes, and its channel; `None` if it cannot be read.
    #[inline(never)]
    fn pass_as_bytes(&self, shared: &mut Shared, channel: u8, index: u32) -> Option<u8> {
        let cell = shared.pool.get(index);
        let content = shared.wishes.contents.get_mut(cell);
        match bytes::cell(cell, channel, content) {
            Some((there, vc)) => {
                *shared.pool.get_mut(index) = there;
                Some(vc)
            }
            None => {
                shared.counts.header_errors += 1;
                shared.discard(index, Outcome::Lost);
                None
            }
        }
    }

    /// Lets an ordered set take a port's line at a tick, behind what is on it; gives the tick at which it may be acted
    /// upon at the other end.
    #[inline]
    fn occupy(&mut self, shared: &Shared, port: usize, tick: u64) -> u64 {
        let state = &mut self.ports[port];
        let length = u64::from(shared.durations.ordered_set[state.kind as usize]);
        state.line_free = state.line_free.max(tick * TICK_PS) + length;
        tick_from(state.line_free + u64::from(state.delay) + RECEIVE.as_ps())
    }

    /// Sends credit over a port's link.
    #[inline]
    pub(super) fn send_credit(
        &mut self,
        shared: &mut Shared,
        port: usize,
        credit: Credit,
        tick: u64,
    ) {
        if shared.errors.is_some() || shared.is_observed || credit.place == NONE {
            let body = Body::Credit(credit.first, credit.count, credit.limits);
            return self.send_set(shared, port, body, tick);
        }
        let tick = self.occupy(shared, port, tick);
        shared.calendar.at(tick).credits.push(tick, credit);
    }

    /// Sends an ordered set over a port's link, between cells; it arrives as `body` there.
    #[inline(never)]
    pub(super) fn send_set(&mut self, shared: &mut Shared, port: usize, body: Body, tick: u64) {
        let length = u64::from(shared.durations.ordered_set[self.ports[port].kind as usize]);
        let tick = self.occupy(shared, port, tick);
        let (place, end) = (self.place(port), self.ports[port].line_free);
        shared.wishes.record(|recorder| recorder.sends_set(place, [end - length, end]));
        let (far, far_tin, far_port) = {
            let state = &self.ports[port];
            (state.far, state.far_tin, state.far_port)
        };
        // A set is as long as a header, and damaged as often.
        let set = super::cell::Cell::new(0, 0, 0, 0, 1, 0);
        let is_hit = shared.errors.is_some()
            && matches!(self.hit(shared, port, &set), Hit::Header | Hit::Payload);
        let body = match shared.is_wire {
            _ if is_hit => None,
            false => Some(body),
            true => bytes::set(body),
        };
        let Some(body) = body else {
            shared.counts.header_errors += 1;
            return;
        };
        if far == NONE {
            let (tin, port) = (far_tin, far_port);
            return shared.posted.push(Posted { tick, tin, port, body, content: None });
        }
        shared.receive_set(far, body, tick);
    }
}

/// The first tick that does not begin before an instant. Unit: ps.
#[inline]
fn tick_from(instant: u64) -> u64 {
    // `div_ceil` takes the remainder as well: no instant is so late that this addition could overflow.
    const ROUND_UP: u64 = TICK_PS - 1;
    (instant + ROUND_UP) / TICK_PS
}

impl Shared {
    /// An ordered set comes to a place at a tick.
    pub(super) fn receive_set(&mut self, place: u32, body: Body, tick: u64) {
        let due = self.calendar.at(tick);
        match body {
            Body::Credit(first, count, limits) => {
                due.credits.push(tick, Credit { place, first, count, limits });
            }
            Body::Sync(channel, used) => {
                due.mail.push(tick, Mail::Sync { queue: queue_at(place, channel), used });
            }
            Body::Cell(..) => unreachable!("a cell is no ordered set"),
        }
    }
}

/// The first channel of each class: one in three.
const FIRST: u32 = {
    let (mut first, mut class) = (0, 0);
    while class < CLASSES {
        first |= 1 << (3 * class);
        class += 1;
    }
    first
};

/// Of these channels those of which no later one of the same class is among them; escapes have no class.
#[inline]
fn farthest(channels: u32) -> u32 {
    let by_one = channels >> 1 & (FIRST | FIRST << 1);
    let by_two = channels >> 2 & FIRST;
    channels & !(by_one | by_two)
}

#[cfg(test)]
mod tests {
    use kernel::Stream;

    use super::*;

    #[test]
    fn m108_of_a_class_the_last_channel_goes_first() {
        let naive = |able: u32| {
            let has_later = |channel: usize| {
                let last = 3 * (channel / 3) + 2;
                channel < 30 && (channel + 1..=last).any(|later| able >> later & 1 == 1)
            };
            channels(able).filter(|&channel| !has_later(channel)).fold(0, |all, c| all | 1 << c)
        };
        let mut stream = Stream::new(1, "test/channels", 0);
        let drawn = (0..10_000).map(|_| stream.below(1 << 32) as u32);
        let single = (0..CHANNELS as u32).map(|channel| 1 << channel);
        for able in drawn.chain(single).chain([u32::MAX]) {
            assert_eq!(farthest(able), naive(able), "{able:032b}");
        }
        assert_eq!(farthest(0b1_011_110_111), 0b1_010_100_100);
    }
}
