//! What all switches of a set have in common: what each step of one of them is handed beside the switch itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::rack::trace::Outcome;

use super::calendar::{Calendar, Place, Queue};
use super::cell::{Cell, Pool};
use super::settings::{Durations, Limits, TICK_PS};
use super::tin::{LANES, Tin};
use super::{Counts, Posted, Wishes, faults, traced};
use crate::tables::Tables;

/// The same for all switches, and where they put what they bring about.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) limits: Limits,
    pub(super) durations: Durations,
    pub(super) tables: Arc<Tables>,
    pub(super) pool: Pool,
    pub(super) calendar: Calendar,
    /// Switches that may match something.
    pub(super) dirty: Vec<u64>,
    /// What endpoints want, and what cells carry.
    pub(super) wishes: Wishes,
    pub(super) posted: Vec<Posted>,
    /// What was seen of traced cells and not asked for yet.
    pub(super) seen: Vec<traced::Seen>,
    pub(super) counts: Counts,
    /// By switch: the errors of its links; none where there are none.
    pub(super) errors: Option<Vec<faults::Errors>>,
    /// By tick: ports whose credit is to be told anew.
    pub(super) refreshes: Later,
    /// Queues of inputs whose heads have drawn a way at the tick at hand.
    pub(super) drawn: Vec<Queue>,
    /// Everything on links goes through its bytes.
    pub(super) is_wire: bool,
    /// It does, or a record is kept: what goes on links takes the longer way through the code, to the same end.
    pub(super) is_observed: bool,
    /// Ordered sets may get lost: credit is told even where nothing has changed since it was told last.
    pub(super) may_lose_sets: bool,
    /// Matches of a switch at the tick at hand: room for them.
    pub(super) matches: switching::islip::Matches,
}

impl Shared {
    /// Marks a switch that may match something.
    #[inline]
    pub(super) fn mark(&mut self, tin: &Tin) {
        let word = &mut self.dirty[tin.slot as usize / 64];
        *word |= u64::from(tin.may_match()) << (tin.slot % 64);
    }

    /// Lets an output be looked at at a tick, if that is sooner than what is due.
    #[inline]
    pub(super) fn look_at(&mut self, tin: &mut Tin, port: usize, tick: u64) {
        let state = &mut tin.ports[port % LANES];
        if tick < state.look_at {
            state.look_at = tick;
            let place = tin.place(port);
            self.calendar.at(tick).looks.push(tick, place);
        }
    }

    /// Lets a terminal port be asked for a cell at a tick, or when its line is free.
    #[inline]
    pub(super) fn expect_injection(&mut self, tin: &mut Tin, port: usize, tick: u64) {
        let state = &mut tin.ports[port % LANES];
        let tick = tick.max(state.feed_free / TICK_PS);
        if tick < state.feed_at {
            state.feed_at = tick;
            let place = tin.place(port);
            self.calendar.at(tick).injections.push(tick, place);
        }
    }

    /// Throws a cell away.
    #[inline(never)]
    pub(super) fn discard(&mut self, index: u32, why: Outcome) {
        let cell = self.pool.take(index);
        self.note_lost(index, &cell, why);
        self.wishes.contents.release(&cell);
    }

    /// A cell goes from an endpoint on the line into a terminal port.
    pub(super) fn note_fed(&mut self, place: Place, cell: &Cell, line: [u64; 2]) {
        let Wishes { recorder, contents, .. } = &mut self.wishes;
        if let Some(recorder) = recorder {
            let content = contents.get(cell).map_or(&[][..], |content| content.bytes());
            recorder.feeds(place, cell, content, line);
        }
    }

    /// A cell joins a FIFO.
    pub(super) fn note_entered(&mut self, place: Place, index: u32) {
        let Self { pool, wishes, .. } = self;
        wishes.record(|recorder| recorder.enters(place, index, pool.get(index)));
    }

    /// A cell is lost.
    pub(super) fn note_lost(&mut self, index: u32, cell: &Cell, why: Outcome) {
        let now = self.calendar.now() * TICK_PS;
        self.wishes.record(|recorder| recorder.is_lost(index, cell, why, now));
    }

    /// The queue of an output's channel has no room for a largest cell, or has it again.
    pub(super) fn note_room(&mut self, place: Place, channel: usize, has_room: bool) {
        let now = self.calendar.now();
        self.wishes.record(|recorder| recorder.room(place, channel as u8, has_room, now));
    }
}

/// What is due at ticks that may lie beyond the calendar's reach.
#[derive(Clone, Debug)]
pub(super) struct Later {
    due: BTreeMap<u64, Vec<Place>>,
    /// The first tick, or none.
    next: u64,
}

impl Default for Later {
    fn default() -> Self {
        Self { due: BTreeMap::new(), next: u64::MAX }
    }
}

impl Later {
    /// The first tick at which something is due, or `u64::MAX`.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Something is due at a tick.
    pub(super) fn put(&mut self, tick: u64, place: Place) {
        self.due.entry(tick).or_default().push(place);
        self.next = self.next.min(tick);
    }

    /// What is due at a tick, in the order in which it was put.
    #[inline]
    pub(super) fn take(&mut self, tick: u64) -> Option<Vec<Place>> {
        if tick == self.next { self.take_first() } else { None }
    }

    #[inline(never)]
    fn take_first(&mut self) -> Option<Vec<Place>> {
        let first = self.due.pop_first();
        self.next = self.due.first_key_value().map_or(u64::MAX, |(&tick, _)| tick);
        first.map(|(_, places)| places)
    }
}
