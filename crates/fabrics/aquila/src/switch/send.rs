//! Outputs: which channel goes next, and the wire (M108, M201 to M206).

use super::bytes;
use super::calendar::{Credit, Delivery, Mail, queue_at};
use super::cell::NONE;
use super::faults::Hit;
use super::settings::{CELL_UNITS, CHANNELS, HOP, RECEIVE, TICK_PS};
use super::shared::Shared;
use super::tin::{NEVER, Tin, at, channels};
use super::{Body, Posted};
use crate::topology::PortKind;

impl Tin {
    /// Starts a cell on an output's line within this tick, if there is one that may.
    #[inline]
    pub(super) fn look(&mut self, shared: &mut Shared, port: usize, tick: u64) {
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
        self.send(shared, port, channel, begin, tick);
    }

    /// Channels of an output whose heads may start before `end`, and when the next may of those that have credit, if
    /// that is asked for.
    #[inline]
    fn eligible(&self, port: usize, end: u64, credits: bool) -> (u32, u64) {
        let state = &self.ports[port];
        let has_room = state.kind == PortKind::Terminal || !credits;
        let (mut able, mut soon) = (0, NEVER);
        for channel in channels(state.filled & !state.stalled) {
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
    fn send(&mut self, shared: &mut Shared, port: usize, channel: usize, begin: u64, tick: u64) {
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
        let has_room = u16::from(*queued) + CELL_UNITS <= shared.limits.outputs[kind as usize];
        if has_room && state.room >> channel & 1 == 0 {
            state.room |= 1 << channel;
            self.count_wants(port);
            shared.mark(self);
        }
        if is_filled {
            shared.look_at(self, port, (free / TICK_PS).max(tick + 1));
        }
        match kind {
            PortKind::Terminal => {
                // The tail is no earlier than the line at which it came in allows.
                let line = shared.durations.wire(PortKind::Local, blocks);
                let tail = free.max(ready + line);
                let delivery = Delivery { place: self.place(port), cell: index, tail };
                shared.calendar.at(tail / TICK_PS).deliveries.push(delivery);
            }
            _ => self.put_on_wire(shared, port, channel, index, start),
        }
    }

    /// A cell's first bit goes on the wire at `start`.
    #[inline]
    fn put_on_wire(
        &mut self,
        shared: &mut Shared,
        port: usize,
        channel: usize,
        index: u32,
        start: u64,
    ) {
        self.note_use(shared, port, channel, start / TICK_PS);
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
        let state = &self.ports[port];
        let arrival = start + u64::from(state.delay);
        let cell = shared.pool.get_mut(index);
        cell.ready = arrival + HOP.as_ps();
        let able = arrival + shared.durations.eligible(state.kind, cell.blocks);
        let tick = able.div_ceil(TICK_PS);
        if state.far == NONE {
            let mut cell = shared.pool.take(index);
            let content = shared.wishes.contents.take(&mut cell).map(Box::new);
            let (tin, port) = (state.far_tin, state.far_port);
            let body = Body::Cell(cell, channel);
            return shared.posted.push(Posted { tick, tin, port, body, content });
        }
        let mail = Mail::Cell { queue: queue_at(state.far, channel), cell: index };
        shared.calendar.at(tick).mail.push(mail);
    }

    /// What errors of a link leave of a cell: false if nothing.
    #[inline(never)]
    fn survives(&self, shared: &mut Shared, port: usize, index: u32) -> bool {
        let cell = shared.cell(index);
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
        shared.discard(index);
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
                shared.discard(index);
                None
            }
        }
    }

    /// Sends an ordered set over a port's link, between cells; it arrives as `body` there.
    pub(super) fn send_set(&mut self, shared: &mut Shared, port: usize, body: Body, tick: u64) {
        let state = &mut self.ports[port];
        let length = u64::from(shared.durations.ordered_set[state.kind as usize]);
        state.line_free = state.line_free.max(tick * TICK_PS) + length;
        let able = state.line_free + u64::from(state.delay) + RECEIVE.as_ps();
        let tick = able.div_ceil(TICK_PS);
        let (far, far_tin, far_port) = (state.far, state.far_tin, state.far_port);
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

impl Shared {
    /// An ordered set comes to a place at a tick.
    #[inline]
    pub(super) fn receive_set(&mut self, place: u32, body: Body, tick: u64) {
        let due = self.calendar.at(tick);
        match body {
            Body::Credit(first, count, limits) => {
                due.credits.push(Credit { place, first, count, limits });
            }
            Body::Sync(channel, used) => {
                due.mail.push(Mail::Sync { queue: queue_at(place, channel), used });
            }
            Body::Cell(..) => unreachable!("a cell is no ordered set"),
        }
    }
}
