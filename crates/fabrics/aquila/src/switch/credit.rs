//! Credit (M212, M213, M216): what inputs free, and how the other end learns of it.

use super::calendar::{Credit, Queue, split_queue};
use super::settings::CHANNELS;
use super::shared::Shared;
use super::tin::{LANES, NO_TIN, Tin, at, channels};
use crate::link::ordered_sets::CHANNELS_MAX as PER_SET;
use crate::topology::PortKind;

/// A bit for each channel of a set.
const ALL: u32 = (1 << PER_SET) - 1;

impl Tin {
    /// Units of a FIFO have come free: tells the other end, at once if they are many.
    // Always: it is called from each of the ways in which switches are compiled.
    #[inline(always)]
    pub(super) fn free_units(
        &mut self,
        shared: &mut Shared,
        port: usize,
        channel: usize,
        units: u16,
        tick: u64,
    ) {
        let input = &mut self.inputs[at(channel, port)];
        input.credit.free(units);
        let unsaid = input.credit.unsaid();
        if self.ports[port].kind == PortKind::Terminal {
            return shared.expect_injection(self, port, tick);
        }
        if !shared.limits.credits {
            return;
        }
        self.note_use(shared, port, channel, tick);
        if unsaid >= shared.limits.update {
            return self.tell(shared, port, channel, tick);
        }
        let state = &mut self.ports[port];
        let was_told = state.untold == 0;
        state.untold |= 1 << channel;
        if was_told {
            let when = tick + shared.limits.update_after;
            shared.calendar.at(when).updates.push(when, self.place(port));
        }
    }

    /// An input has kept back what it freed for long enough.
    #[inline]
    pub(super) fn tell_freed(&mut self, shared: &mut Shared, port: usize, tick: u64) {
        while let Some(channel) = channels(self.ports[port].untold).next() {
            self.tell(shared, port, channel, tick);
        }
    }

    /// Tells the other end what it may send in all on a channel and the two behind it: on those behind it as far as
    /// there is something that it does not know.
    pub(super) fn tell(&mut self, shared: &mut Shared, port: usize, channel: usize, tick: u64) {
        let mut limits = [0; PER_SET];
        let behind = self.ports[port].untold >> channel & ALL >> 1 << 1;
        let count = match shared.may_lose_sets {
            true => PER_SET.min(CHANNELS - channel),
            false => (u32::BITS - (behind | 1).leading_zeros()) as usize,
        };
        for (limit, channel) in limits.iter_mut().zip(channel..channel + count) {
            *limit = self.inputs[at(channel, port)].credit.advertise();
        }
        let state = &mut self.ports[port];
        state.untold &= !(ALL << channel);
        if state.far_tin == NO_TIN || state.is_down {
            return;
        }
        shared.counts.updates += 1;
        let (first, count) = (channel as u8, count as u8);
        let credit = Credit { place: state.far, first, count, limits };
        self.send_credit(shared, port, credit, tick);
    }

    /// The other end has told what may be sent in all.
    #[inline(always)]
    pub(super) fn take_credit(&mut self, shared: &mut Shared, credit: Credit, tick: u64) {
        let port = credit.place as usize % LANES;
        if self.ports[port].is_down {
            return;
        }
        let said = credit.limits.into_iter().take(credit.count.into());
        for (channel, limit) in (usize::from(credit.first)..).zip(said) {
            self.outputs[at(channel, port)].credit.update(limit);
        }
        if self.ports[port].filled != 0 {
            shared.look_at(self, port, tick);
        }
    }

    /// The other end has told what it sent in all: what of it never came takes no room (M216).
    pub(super) fn take_sync(&mut self, shared: &mut Shared, queue: Queue, used: u16, tick: u64) {
        let (_, port, channel) = split_queue(queue);
        if self.ports[port].is_down {
            return;
        }
        if self.inputs[at(channel, port)].credit.synchronise(used) > 0 {
            self.tell(shared, port, channel, tick);
        }
    }
}
