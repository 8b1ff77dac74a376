//! Credit (M212, M213, M216): what inputs free, and how the other end learns of it.

use super::settings::CHANNELS;
use super::tin::{NO_TIN, at, channels};
use super::{Body, Endpoints, Switches, split};
use crate::link::ordered_sets::CHANNELS_MAX as PER_SET;
use crate::topology::PortKind;

impl<E: Endpoints> Switches<E> {
    /// Units of a FIFO have come free: tells the other end, at once if they are many.
    #[inline]
    pub(super) fn free_units(
        &mut self,
        place: usize,
        port: usize,
        channel: usize,
        units: u16,
        tick: u64,
    ) {
        let tin = &mut self.tins[place];
        let input = &mut tin.inputs[at(channel, port)];
        input.credit.free(units);
        let state = &mut tin.ports[port];
        if state.kind == PortKind::Terminal {
            return self.expect_injection(place, port, tick);
        }
        if !self.limits.credits {
            return;
        }
        self.note_use(place, port, channel, tick);
        let tin = &mut self.tins[place];
        let (input, state) = (&mut tin.inputs[at(channel, port)], &mut tin.ports[port]);
        if input.credit.unsaid() >= self.limits.update {
            return self.tell(place, port, channel, tick);
        }
        let was_told = state.untold == 0;
        state.untold |= 1 << channel;
        if was_told {
            let after = self.limits.update_after;
            self.calendar.at(tick + after).updates.push((place << 6 | port) as u32);
        }
    }

    /// An input has kept back what it freed for long enough.
    pub(super) fn tell_freed(&mut self, place: u32, tick: u64) {
        let (place, port) = split(place);
        while let Some(channel) = channels(self.tins[place].ports[port].untold).next() {
            self.tell(place, port, channel, tick);
        }
    }

    /// Tells the other end what it may send in all on a channel and the two behind it.
    pub(super) fn tell(&mut self, place: usize, port: usize, channel: usize, tick: u64) {
        let tin = &mut self.tins[place];
        let mut limits = [0; PER_SET];
        let count = PER_SET.min(CHANNELS - channel);
        for (limit, channel) in limits.iter_mut().zip(channel..channel + count) {
            let input = &mut tin.inputs[at(channel, port)];
            *limit = input.credit.advertise();
            tin.ports[port].untold &= !(1 << channel);
        }
        if tin.ports[port].far_tin == NO_TIN || tin.ports[port].is_down {
            return;
        }
        self.counts.updates += 1;
        self.send_set(place, port, Body::Credit(channel as u8, count as u8, limits), tick);
    }

    /// The other end has told what may be sent in all.
    pub(super) fn take_credit(
        &mut self,
        place: u32,
        (first, count, limits): (u8, u8, [u16; PER_SET]),
        tick: u64,
    ) {
        let (place, port) = split(place);
        let tin = &mut self.tins[place];
        if tin.ports[port].is_down {
            return;
        }
        for (channel, limit) in (usize::from(first)..).zip(limits).take(count.into()) {
            tin.outputs[at(channel, port)].credit.update(limit);
        }
        if tin.ports[port].filled != 0 {
            self.look_at(place, port, tick);
        }
    }

    /// The other end has told what it sent in all: what of it never came takes no room (M216).
    pub(super) fn take_sync(&mut self, place: u32, channel: u8, used: u16, tick: u64) {
        let (place, port) = split(place);
        let channel = usize::from(channel);
        if self.tins[place].ports[port].is_down {
            return;
        }
        if self.tins[place].inputs[at(channel, port)].credit.synchronise(used) > 0 {
            self.tell(place, port, channel, tick);
        }
    }
}
