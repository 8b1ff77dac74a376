//! A tick of the core's clock: all that is due, one kind after another.

use super::calendar::{Delivery, Lanes, Mail, Place, Queue, split, split_queue};
use super::settings::{CHANNELS, HOP, TICK_PS};
use super::tin::{NEVER, at};
use super::{Endpoints, Room, Switches, Wish};
use crate::address::Address;
use crate::topology::PortKind;

/// How many entries of a list ahead memory is asked for (our choice: some 100 ns).
const AHEAD: usize = 8;

/// What stands some places ahead in a list, or last: it is asked for without a branch to mispredict.
#[inline]
fn ahead<T: Copy>(list: &[T], at: usize, places: usize) -> T {
    list[(at + places).min(list.len() - 1)]
}

impl<E: Endpoints> Switches<E> {
    /// Does what is due at a tick.
    pub(super) fn tick<const RECORDS: bool>(&mut self, tick: u64) {
        self.shared.calendar.begin(tick);
        self.shared.wishes.now = tick * TICK_PS;
        if self.writes.next() == tick {
            self.write_tables(tick);
        }
        // What is put in these lists for this tick from here on is done when all else has been.
        let Lanes { looks, injections, wakes, .. } = &mut self.shared.calendar.lanes;
        let (looks, injections) = (looks.take(tick), injections.take(tick));
        let wakes = wakes.take(tick);
        self.release_all::<RECORDS>(tick);
        self.take_all::<RECORDS>(tick);
        self.deliver_all(tick);
        self.wake_all(wakes, tick);
        self.inject_all::<RECORDS>(injections, tick);
        self.draw_all::<RECORDS>(tick);
        self.tell_all(tick);
        self.look_all::<RECORDS>(looks, tick);
        self.match_all::<RECORDS>(tick);
        self.expect_draws(tick);
    }

    /// Inputs from which cells have crossed whole.
    #[inline]
    fn release_all<const RECORDS: bool>(&mut self, tick: u64) {
        let list = self.shared.calendar.lanes.releases.take(tick);
        for (at, release) in list.iter().enumerate() {
            self.prefetch_input(ahead(&list, at, AHEAD).queue);
            let (slot, port, channel) = split_queue(ahead(&list, at, AHEAD / 2).queue);
            let head = self.tins[slot].inputs[super::at(channel, port)].head;
            self.shared.pool.prefetch(head);
            let (slot, ..) = split_queue(release.queue);
            self.tins[slot].release::<RECORDS>(&mut self.shared, *release, tick);
        }
        self.shared.calendar.lanes.releases.give_back(list);
    }

    /// What has come over links.
    #[inline]
    fn take_all<const RECORDS: bool>(&mut self, tick: u64) {
        let list = self.shared.calendar.lanes.mail.take(tick);
        for (at, mail) in list.iter().enumerate() {
            if let Mail::Cell { queue, cell } = ahead(&list, at, AHEAD) {
                self.shared.pool.prefetch(cell);
                self.prefetch_input(queue);
            }
            if let Mail::Cell { queue, cell } = ahead(&list, at, AHEAD / 2) {
                self.prefetch_ways(queue, cell);
            }
            let (Mail::Cell { queue, .. } | Mail::Sync { queue, .. }) = *mail;
            let (slot, ..) = split_queue(queue);
            self.tins[slot].take_mail::<RECORDS>(&mut self.shared, *mail, tick);
        }
        self.shared.calendar.lanes.mail.give_back(list);
        let list = self.shared.calendar.lanes.credits.take(tick);
        for (at, credit) in list.iter().enumerate() {
            let next = ahead(&list, at, AHEAD);
            self.prefetch_output(next.place, next.first.into());
            let (slot, _) = split(credit.place);
            self.tins[slot].take_credit(&mut self.shared, *credit, tick);
        }
        self.shared.calendar.lanes.credits.give_back(list);
    }

    /// What comes to endpoints.
    #[inline(always)]
    fn deliver_all(&mut self, tick: u64) {
        let list = self.shared.calendar.lanes.deliveries.take(tick);
        for (at, delivery) in list.iter().enumerate() {
            self.shared.pool.prefetch(ahead(&list, at, AHEAD).cell);
            self.hand_over(*delivery);
        }
        self.shared.calendar.lanes.deliveries.give_back(list);
    }

    /// Endpoints that wanted to be asked.
    #[inline]
    fn wake_all(&mut self, mut list: Vec<u32>, tick: u64) {
        if let Some(wakes) = self.later.take(tick) {
            list.extend(wakes);
        }
        if !list.is_empty() {
            // Once is enough, however often it was asked for.
            list.sort_unstable();
            list.dedup();
            for &slot in &list {
                let id = self.tins[slot as usize].id;
                self.endpoints.wake(id, &mut self.shared.wishes);
                self.grant_wishes(slot as usize);
            }
        }
        self.shared.calendar.lanes.wakes.give_back(list);
    }

    /// Endpoints that may have something to send.
    #[inline]
    fn inject_all<const RECORDS: bool>(&mut self, list: Vec<Place>, tick: u64) {
        for &place in &list {
            self.inject::<RECORDS>(place, tick);
        }
        self.shared.calendar.lanes.injections.give_back(list);
    }

    /// Heads that draw again.
    #[inline]
    fn draw_all<const RECORDS: bool>(&mut self, tick: u64) {
        let list = self.shared.calendar.lanes.draws.take(tick);
        for (at, &queue) in list.iter().enumerate() {
            self.prefetch_input(ahead(&list, at, AHEAD));
            let (slot, ..) = split_queue(queue);
            self.tins[slot].draw_again::<RECORDS>(&mut self.shared, queue, tick);
        }
        self.shared.calendar.lanes.draws.give_back(list);
    }

    /// Inputs that tell of what they freed, and ports whose credit is told anew.
    #[inline(always)]
    fn tell_all(&mut self, tick: u64) {
        let list = self.shared.calendar.lanes.updates.take(tick);
        for &place in &list {
            let (slot, port) = split(place);
            self.tins[slot].tell_freed(&mut self.shared, port, tick);
        }
        self.shared.calendar.lanes.updates.give_back(list);
        for place in self.shared.refreshes.take(tick).into_iter().flatten() {
            let (slot, port) = split(place);
            self.tins[slot].refresh(&mut self.shared, port, tick);
        }
    }

    /// Outputs that may send.
    #[inline]
    fn look_all<const RECORDS: bool>(&mut self, list: Vec<Place>, tick: u64) {
        for (at, &place) in list.iter().enumerate() {
            let (slot, port) = split(ahead(&list, at, AHEAD));
            kernel::prefetch(&self.tins[slot].ports, port);
            let (slot, port) = split(ahead(&list, at, AHEAD / 2));
            let tin = &self.tins[slot];
            let channel = tin.ports[port].filled.trailing_zeros() as usize % CHANNELS;
            kernel::prefetch(&tin.outputs, super::at(channel, port));
            let (slot, port) = split(ahead(&list, at, AHEAD / 4));
            let tin = &self.tins[slot];
            let channel = tin.ports[port].filled.trailing_zeros() as usize % CHANNELS;
            self.shared.pool.prefetch(tin.outputs[super::at(channel, port)].head);
            let (slot, port) = split(place);
            let tin = &mut self.tins[slot];
            if tin.ports[port].look_at == tick {
                tin.look::<RECORDS>(&mut self.shared, port, tick);
            }
        }
        self.shared.calendar.lanes.looks.give_back(list);
    }

    /// Matches inputs and outputs of all switches that may have something to match.
    #[inline]
    fn match_all<const RECORDS: bool>(&mut self, tick: u64) {
        let list = self.shared.calendar.lanes.rounds.take(tick);
        for &slot in &list {
            self.shared.mark(&self.tins[slot as usize]);
        }
        self.shared.calendar.lanes.rounds.give_back(list);
        for word in 0..self.shared.dirty.len() {
            let marked = std::mem::take(&mut self.shared.dirty[word]);
            for bit in switching::ones(marked) {
                self.tins[word * 64 + bit].match_ports::<RECORDS>(&mut self.shared, tick);
            }
        }
    }

    /// Heads that have drawn a way at this tick and did not go at once draw again later.
    #[inline(always)]
    fn expect_draws(&mut self, tick: u64) {
        let mut drawn = std::mem::take(&mut self.shared.drawn);
        for queue in drawn.drain(..) {
            let (slot, ..) = split_queue(queue);
            self.tins[slot].expect_draw(&mut self.shared, queue, tick);
        }
        self.shared.drawn = drawn;
    }

    /// A cell's last bit has come out of a terminal port.
    #[inline]
    fn hand_over(&mut self, delivery: Delivery) {
        let (slot, port) = split(delivery.place);
        let shared = &mut self.shared;
        let cell = shared.pool.take(delivery.cell);
        shared.counts.delivered += 1;
        shared.counts.delivered_blocks += u64::from(cell.blocks);
        let terminal = port as u8 - shared.tables.shape().external_ports();
        let at = kernel::Time::from_ps(delivery.tail);
        let id = self.tins[slot].id;
        self.endpoints.deliver(id, terminal, &cell, at, &mut shared.wishes);
        shared.wishes.contents.release(&cell);
        self.grant_wishes(slot);
    }

    /// Lets a terminal port be asked for a cell.
    #[inline]
    fn inject<const RECORDS: bool>(&mut self, place: Place, tick: u64) {
        let (slot, port) = split(place);
        let (tin, shared) = (&mut self.tins[slot], &mut self.shared);
        let end = (tick + 1) * TICK_PS;
        let state = &mut tin.ports[port];
        if state.feed_at != tick {
            return;
        }
        state.feed_at = NEVER;
        let feed_free = state.feed_free;
        if feed_free >= end {
            return shared.expect_injection(tin, port, tick + 1);
        }
        let terminal = port as u8 - shared.tables.shape().external_ports();
        let room = Room { inputs: &tin.inputs, port };
        let Some(mut cell) = self.endpoints.inject(tin.id, terminal, room, &mut shared.wishes)
        else {
            return self.grant_wishes(slot);
        };
        debug_assert!(room.fits(cell.class, cell.blocks), "I02: an endpoint injects without room");
        let start = feed_free.max(tick * TICK_PS);
        cell.ready = start + HOP.as_ps();
        shared.counts.injected += 1;
        let channel = 3 * usize::from(cell.class);
        let length = shared.durations.wire(PortKind::Terminal, cell.blocks);
        tin.ports[port].feed_free = start + length;
        if RECORDS {
            shared.note_fed(place, &cell, [start, start + length]);
        }
        let cell = shared.pool.put(cell);
        tin.enter::<RECORDS>(shared, port, channel, cell, tick);
        shared.expect_injection(tin, port, tick + 1);
        self.grant_wishes(slot);
    }

    /// Carries out what endpoints want.
    #[inline]
    pub(super) fn grant_wishes(&mut self, slot: usize) {
        if !self.shared.wishes.list.is_empty() {
            self.grant_all_wishes(slot);
        }
    }

    #[inline(never)]
    fn grant_all_wishes(&mut self, slot: usize) {
        let (tin, shared) = (&mut self.tins[slot], &mut self.shared);
        let now = shared.calendar.now();
        let mut list = std::mem::take(&mut shared.wishes.list);
        let first = shared.tables.shape().external_ports();
        for wish in list.drain(..) {
            match wish {
                Wish::Inject(terminal) => {
                    shared.expect_injection(tin, usize::from(first + terminal), now);
                }
                Wish::Wake(tick) if tick <= now + shared.calendar.reach() => {
                    shared.calendar.at(tick.max(now)).wakes.push(tick.max(now), tin.slot);
                }
                Wish::Wake(tick) => self.later.put(tick, tin.slot),
                Wish::Stall { terminal, channels, is_stalled } => {
                    let port = usize::from(first + terminal);
                    let state = &mut tin.ports[port];
                    let stalled = &mut state.stalled;
                    *stalled = if is_stalled { *stalled | channels } else { *stalled & !channels };
                    if !is_stalled && state.filled & channels != 0 {
                        shared.look_at(tin, port, now);
                    }
                }
            }
        }
        shared.wishes.list = list;
    }

    /// Asks for the memory of an input's channel.
    #[inline]
    fn prefetch_input(&self, queue: Queue) {
        let (slot, port, channel) = split_queue(queue);
        let tin = &self.tins[slot];
        kernel::prefetch(&tin.ports, port);
        kernel::prefetch(&tin.inputs, at(channel, port));
    }

    /// Asks for the memory of an output's channel.
    #[inline]
    fn prefetch_output(&self, place: Place, channel: usize) {
        let (slot, port) = split(place);
        let tin = &self.tins[slot];
        kernel::prefetch(&tin.ports, port);
        kernel::prefetch(&tin.outputs, at(channel, port));
    }

    /// Asks for the memory of a cell's ways on from an input.
    #[inline]
    fn prefetch_ways(&self, queue: Queue, cell: u32) {
        let (slot, port, channel) = split_queue(queue);
        let (tin, cell) = (&self.tins[slot], self.shared.pool.get(cell));
        let tables = &self.shared.tables;
        // What ends here or goes by an escape channel has no use for it: to ask in vain takes less than to find out.
        let component = tables.far_component(tin.own, Address::from_bits(cell.to));
        let rvc = channel.wrapping_sub(3 * usize::from(cell.class));
        let blocks = &tin.ports[port].blocks;
        tables.prefetch(blocks[rvc.min(blocks.len() - 1)], component);
    }
}
