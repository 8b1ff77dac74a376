//! Where packets are put together, and leave in order.
//!
//! Models: Aquila §3.3 (M418 to M422): a place is reserved before any data comes; cells come by any way in any order; a
//! packet leaves when it is whole and all earlier ones of its flow have left. **Our choice** (M421, U24): which packets
//! are a flow's, and that a packet of which something does not come in time is given up, so that later ones leave.

use std::collections::VecDeque;

use super::Settings;
use super::ages::Ages;
use super::clearing::Request;
use crate::cells::ip::{ABORT, Data, Pointer};
use crate::config::Order;

/// No place, no packet.
pub(super) const NONE: u32 = u32::MAX;
/// Lists of flows of a TiN (our choice: as many packets are put together at a time, about).
const LISTS: usize = 64;

/// What a place is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// Nothing is in it.
    #[default]
    Free,
    /// Cells of its packet are missing.
    Coming,
    /// Its packet is whole, and waits for earlier ones.
    Whole,
    /// Its packet will not come.
    Dead,
}

/// A place: one packet.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Cells that are there, by index.
    seen: u128,
    /// When it was asked for. Unit: ps.
    since: u64,
    packet: u32,
    /// The next in its list.
    next: u32,
    from: u16,
    to: u16,
    length: u16,
    flow_hash: u16,
    class_of_service: u8,
    generation: u8,
    cells: u8,
    state: State,
    may_be_marked: bool,
    is_damaged: bool,
}

/// A packet that leaves the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Left {
    pub(super) packet: u32,
    /// The address that it goes to.
    pub(super) to: u16,
    pub(super) length: u16,
    pub(super) class_of_service: u8,
    pub(super) may_be_marked: bool,
    pub(super) is_damaged: bool,
    /// Whether it is whole; else its room is given back and it is lost.
    pub(super) is_whole: bool,
}

/// What a data cell has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Came {
    /// Its place is another packet's by now, or it had come before.
    Stray,
    /// More have to come.
    Part,
    /// It was the last that was missing, or says that no more come; so many bytes are no longer outstanding. The
    /// place is in this list.
    Ended { length: u16, to: u16, list: usize },
}

/// The egress buffer of a TiN.
#[derive(Clone, Debug)]
pub(super) struct Egress {
    places: Vec<Place>,
    /// Places that nothing is in: the one that was left first is taken first, so that few cells meet another packet's
    /// in theirs.
    free: VecDeque<u32>,
    ages: Ages,
    /// Packets that were asked for, in that order, those of a flow in the same list: first and last place.
    lists: [[u32; 2]; LISTS],
}

impl Default for Egress {
    fn default() -> Self {
        let ages = Ages::default();
        Self { places: Vec::new(), free: VecDeque::new(), ages, lists: [[NONE; 2]; LISTS] }
    }
}

impl Egress {
    /// Reserves a place for a packet that is about to be asked for. Whether it is the only one.
    pub(super) fn reserve(
        &mut self,
        request: &Request,
        now: u64,
        settings: &Settings,
    ) -> (Pointer, bool) {
        let slot = self.free.pop_front().unwrap_or(self.places.len() as u32);
        if slot as usize == self.places.len() {
            self.places.push(Place::default());
        }
        let place = &mut self.places[slot as usize];
        let rts = &request.rts;
        *place = Place {
            seen: 0,
            since: now,
            packet: NONE,
            next: NONE,
            from: request.from,
            to: request.to,
            length: rts.length,
            flow_hash: match settings.order {
                Order::Source | Order::None => 0,
                Order::Hash => rts.flow_hash,
            },
            class_of_service: rts.class_of_service,
            generation: place.generation,
            cells: settings.cells(rts.length),
            state: State::Coming,
            may_be_marked: rts.may_be_marked,
            is_damaged: false,
        };
        let list = place.list();
        let pointer = Pointer { slot, generation: place.generation };
        let [first, last] = self.lists[list];
        match last {
            NONE => self.lists[list] = [slot; 2],
            last => {
                self.places[last as usize].next = slot;
                self.lists[list] = [first, slot];
            }
        }
        (pointer, self.ages.push(slot))
    }

    /// The place of a pointer, if it is still the same use of it and cells are missing.
    fn coming(&mut self, pointer: Pointer) -> Option<&mut Place> {
        let place = self.places.get_mut(pointer.slot as usize)?;
        let is_it = place.state == State::Coming && place.generation == pointer.generation;
        is_it.then_some(place)
    }

    /// Whether cells of the packet at a place are missing.
    pub(super) fn is_coming(&mut self, pointer: Pointer) -> bool {
        self.coming(pointer).is_some()
    }

    /// What the packet is whose cells come here. False: the place is another's by now.
    pub(super) fn attach(&mut self, pointer: Pointer, packet: u32) -> bool {
        self.coming(pointer).map(|place| place.packet = packet).is_some()
    }

    /// A data cell has come.
    pub(super) fn come(&mut self, data: Data, is_damaged: bool) -> Came {
        let Some(place) = self.coming(data.egress) else {
            return Came::Stray;
        };
        if data.index == ABORT {
            place.state = State::Dead;
        } else {
            let bit = 1u128 << data.index;
            if data.index >= place.cells || place.seen & bit != 0 {
                return Came::Stray;
            }
            place.seen |= bit;
            place.is_damaged |= is_damaged;
            if place.seen.count_ones() < u32::from(place.cells) {
                return Came::Part;
            }
            place.state = State::Whole;
        }
        Came::Ended { length: place.length, to: place.to, list: place.list() }
    }

    /// The next packet of a list that may leave: whole or dead, and, where order is kept, the first of its flow.
    pub(super) fn leave(&mut self, list: usize, order: Order) -> Option<Left> {
        let (mut before, mut slot) = (NONE, self.lists[list][0]);
        while slot != NONE {
            let place = self.places[slot as usize];
            let is_over = matches!(place.state, State::Whole | State::Dead);
            if is_over && (order == Order::None || self.is_first_of_flow(list, slot)) {
                self.unlink(list, before, slot);
                return Some(Left {
                    packet: place.packet,
                    to: place.to,
                    length: place.length,
                    class_of_service: place.class_of_service,
                    may_be_marked: place.may_be_marked,
                    is_damaged: place.is_damaged,
                    is_whole: place.state == State::Whole,
                });
            }
            (before, slot) = (slot, place.next);
        }
        None
    }

    fn is_first_of_flow(&self, list: usize, slot: u32) -> bool {
        let flow = self.places[slot as usize].flow();
        let mut other = self.lists[list][0];
        while other != slot {
            let place = &self.places[other as usize];
            if place.flow() == flow {
                return false;
            }
            other = place.next;
        }
        true
    }

    fn unlink(&mut self, list: usize, before: u32, slot: u32) {
        let place = &mut self.places[slot as usize];
        let next = place.next;
        place.state = State::Free;
        place.generation = (place.generation + 1) % 16;
        let [first, last] = &mut self.lists[list];
        if *last == slot {
            *last = before;
        }
        match before {
            NONE => *first = next,
            before => self.places[before as usize].next = next,
        }
        self.ages.remove(slot);
        self.free.push_back(slot);
    }

    /// When the oldest place is given up at the latest. Unit: ps.
    pub(super) fn deadline(&self, settings: &Settings) -> Option<u64> {
        Some(self.places[self.ages.oldest()? as usize].since + settings.reassembly_timeout)
    }

    /// The oldest place's time is over. Its packet is dead if cells of it are missing: so many bytes are no longer
    /// outstanding.
    pub(super) fn expire(&mut self) -> Option<(u16, u16, usize)> {
        let slot = self.ages.oldest()?;
        let place = &mut self.places[slot as usize];
        debug_assert_eq!(place.state, State::Coming, "the oldest waits for no other");
        place.state = State::Dead;
        Some((place.length, place.to, place.list()))
    }

    /// Gives all places back. The packets that were put together.
    pub(super) fn clear_all(&mut self) -> Vec<u32> {
        let all = std::iter::from_fn(|| {
            let slot = self.ages.oldest()?;
            let packet = self.places[slot as usize].packet;
            let list = self.places[slot as usize].list();
            let before = self.before(list, slot);
            self.unlink(list, before, slot);
            Some(packet)
        });
        all.filter(|&packet| packet != NONE).collect()
    }

    /// The place before another in its list.
    fn before(&self, list: usize, slot: u32) -> u32 {
        let (mut before, mut at) = (NONE, self.lists[list][0]);
        while at != slot {
            (before, at) = (at, self.places[at as usize].next);
        }
        before
    }

    /// Packets in it.
    pub(super) fn packets(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

impl Place {
    fn flow(&self) -> (u16, u16, u8, u16) {
        (self.from, self.to, self.class_of_service, self.flow_hash)
    }

    /// The list of its flow.
    fn list(&self) -> usize {
        let (from, to, class, hash) = self.flow();
        let word =
            u64::from(from) << 40 | u64::from(to) << 24 | u64::from(class) << 12 | u64::from(hash);
        (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize
    }
}

const _: () = assert!(LISTS == 64);
