//! Where packets wait until they are asked for, and go out in cells.
//!
//! Models: Aquila §3.3 (M406 to M408, M416, M417, M421): a packet with a destination takes a place in the ingress
//! buffer and a request goes out, before its last byte is there; what is asked for goes as data cells, any of the
//! terminal ports takes the next. **Our choice** where §3.3 gives no figures: segments of 256 B, a dynamic threshold a
//! class of service, places that nobody asks for are given back after a while.

use std::collections::VecDeque;

use super::ages::Ages;
use super::{Arrival, Loss, Outcome, Part, Settings, unsolicited};
use crate::cells::ip::{ABORT, Clear, DATA_CELLS_MAX, Data, Pointer, Rts};
use crate::link::classes::{CellKind, data_class, half_of};
use crate::switch::cell::{BLOCK, Cell, Watch};

/// Bytes of a segment of the buffer (our choice, M406).
pub(super) const SEGMENT: u32 = 256;

/// What a place is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// Nothing is in it.
    #[default]
    Free,
    /// Its packet waits to be asked for.
    Waiting,
    /// Its packet goes out.
    Draining,
}

/// A place: one packet.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    packet: u32,
    length: u16,
    to: u16,
    from: u16,
    flow_hash: u16,
    class_of_service: u8,
    generation: u8,
    state: State,
    may_be_marked: bool,
    is_encapsulated: bool,
    watch: Watch,
    is_bad: bool,
    /// Cells that have gone, and all.
    sent: u8,
    cells: u8,
    egress: Pointer,
    /// First byte and last byte. Unit: ps.
    begun: u64,
    whole: u64,
}

/// The ingress buffer of a TiN.
#[derive(Clone, Debug, Default)]
pub(super) struct Ingress {
    places: Vec<Place>,
    /// Places that nothing is in: the one that was left first is taken first, so that few cells meet another packet's
    /// in theirs.
    free: VecDeque<u32>,
    ages: Ages,
    /// Segments in use, in all and by class of service.
    used: u32,
    by_class: [u32; 8],
}

/// What a draining packet has for a terminal port that asks.
pub(super) enum Next {
    /// A cell; what it says of its packet, where nobody has asked for that; whether it was the last.
    Cell(Cell, Option<u32>, bool),
    /// Not before this instant: its bytes are on their way here. Unit: ps.
    NotBefore(u64),
    /// Nothing: its place was given back.
    Gone,
}

impl Ingress {
    /// Takes a packet. `None`: its class has no room.
    pub(super) fn take(
        &mut self,
        arrival: &Arrival,
        now: u64,
        settings: &Settings,
    ) -> Option<Pointer> {
        let segments = u32::from(arrival.length).div_ceil(SEGMENT);
        let class = usize::from(arrival.class_of_service);
        let free = settings.segments - self.used;
        let limit = (f64::from(free) * settings.ingress_share) as u32;
        let is_full = self.free.is_empty() && self.places.len() as u32 >= settings.places;
        if segments > free || self.by_class[class] + segments > limit || is_full {
            return None;
        }
        self.used += segments;
        self.by_class[class] += segments;
        let slot = self.free.pop_front().unwrap_or(self.places.len() as u32);
        if slot as usize == self.places.len() {
            self.places.push(Place::default());
        }
        let place = &mut self.places[slot as usize];
        *place = Place {
            packet: arrival.packet,
            length: arrival.length,
            to: arrival.to,
            from: arrival.from,
            flow_hash: arrival.flow_hash,
            class_of_service: arrival.class_of_service,
            generation: place.generation,
            state: State::Waiting,
            may_be_marked: arrival.may_be_marked,
            is_encapsulated: arrival.is_encapsulated,
            watch: arrival.watch,
            is_bad: arrival.is_bad,
            sent: 0,
            cells: settings.cells(arrival.length),
            egress: Pointer::default(),
            begun: now,
            whole: arrival.whole_at.as_ps().max(now),
        };
        self.ages.push(slot);
        Some(Pointer { slot, generation: place.generation })
    }

    /// The place of a pointer, if it is still the same use of it.
    fn get(&self, pointer: Pointer) -> Option<&Place> {
        let place = self.places.get(pointer.slot as usize)?;
        (place.state != State::Free && place.generation == pointer.generation).then_some(place)
    }

    /// When the request for a place may go. Unit: ps.
    pub(super) fn asks_at(&self, pointer: Pointer, settings: &Settings) -> u64 {
        match self.get(pointer) {
            // What comes by Ethernet is stored first (U61).
            Some(place) if !settings.asks_early || super::port_of(place.from) == Some(0) => {
                place.whole
            }
            _ => 0,
        }
    }

    /// The request for a place, if its packet still waits.
    pub(super) fn request(&self, pointer: Pointer, settings: &Settings) -> Option<Cell> {
        let place = self.get(pointer).filter(|place| place.state == State::Waiting)?;
        let rts = Rts { ingress: pointer, usage: self.usage(settings), ..place.says() };
        let class = CellKind::Rts.class(half_of(place.class_of_service));
        let cell = Cell::new(place.from, place.to, class, CellKind::Rts as u8, 2, settings.hops);
        Some(cell.with_payload(rts.word()).watched(place.watch))
    }

    /// How full the buffer is, in sixteenths.
    pub(super) fn usage(&self, settings: &Settings) -> u8 {
        (self.used * 16 / settings.segments).min(15) as u8
    }

    /// A packet is asked for. What becomes of it, or `None` if nobody asked.
    pub(super) fn clear(&mut self, clear: &Clear) -> Option<(Part, Outcome)> {
        let place = self.get(clear.ingress).filter(|place| place.state == State::Waiting)?;
        let (to, packet, is_bad) = (place.to, place.packet, place.is_bad);
        let part = Part::of(place.class_of_service);
        let place = &mut self.places[clear.ingress.slot as usize];
        (place.state, place.egress) = (State::Draining, clear.egress);
        if is_bad {
            place.cells = 1;
            return Some((part, Outcome::Lost { packet, why: Loss::Bad }));
        }
        Some((part, Outcome::Cleared { packet, to, egress: clear.egress }))
    }

    /// A packet is to be dropped. The packet, or `None` if there is none.
    pub(super) fn drop(&mut self, pointer: Pointer) -> Option<u32> {
        let packet = self.get(pointer).filter(|place| place.state == State::Waiting)?.packet;
        self.give_back(pointer.slot);
        Some(packet)
    }

    /// The next cell of a packet that was asked for.
    pub(super) fn cell(&mut self, pointer: Pointer, now: u64, settings: &Settings) -> Next {
        let Some(place) = self.get(pointer).filter(|place| place.state == State::Draining) else {
            return Next::Gone;
        };
        let place = *place;
        let (each, index) = (settings.cell_payload, u32::from(place.sent));
        let bytes = (u32::from(place.length) - (index * each).min(place.length.into())).min(each);
        let at = place.arrival_of(index * each + bytes);
        if at > now {
            return Next::NotBefore(at);
        }
        let is_last = place.sent + 1 == place.cells;
        let index = if place.is_bad { ABORT } else { place.sent };
        let data = Data { egress: place.egress, index, is_last };
        let blocks = if place.is_bad { 2 } else { settings.blocks(bytes) };
        let class = data_class(place.class_of_service);
        let cell =
            Cell::new(place.from, place.to, class, CellKind::Data as u8, blocks, settings.hops);
        match is_last {
            true => self.give_back(pointer.slot),
            false => self.places[pointer.slot as usize].sent += 1,
        }
        let cell = cell.with_payload(data.word()).watched(place.watch);
        let header = (!settings.is_solicited).then(|| unsolicited::header(&place.says()));
        Next::Cell(cell, header, is_last)
    }

    /// When the oldest place is given back at the latest. Unit: ps.
    pub(super) fn deadline(&self, settings: &Settings) -> Option<u64> {
        Some(self.places[self.ages.oldest()? as usize].begun + settings.request_timeout)
    }

    /// Gives the oldest place back, whose time is over. Its packet, if that was not under way.
    pub(super) fn expire(&mut self) -> Option<u32> {
        let slot = self.ages.oldest()?;
        let place = self.places[slot as usize];
        self.give_back(slot);
        (place.state == State::Waiting).then_some(place.packet)
    }

    /// Gives all places back. The packets that were not under way.
    pub(super) fn clear_all(&mut self) -> Vec<u32> {
        std::iter::from_fn(|| self.ages.oldest().map(|_| self.expire())).flatten().collect()
    }

    fn give_back(&mut self, slot: u32) {
        let place = &mut self.places[slot as usize];
        debug_assert_ne!(place.state, State::Free, "place {slot} is given back twice");
        place.state = State::Free;
        place.generation = (place.generation + 1) % 16;
        let segments = u32::from(place.length).div_ceil(SEGMENT);
        self.used -= segments;
        self.by_class[usize::from(place.class_of_service)] -= segments;
        self.ages.remove(slot);
        self.free.push_back(slot);
    }

    /// Segments in use.
    pub(super) fn used(&self) -> u32 {
        self.used
    }

    /// Packets in it.
    pub(super) fn packets(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

impl Place {
    /// What its request says of the packet itself.
    fn says(&self) -> Rts {
        Rts {
            length: self.length,
            class_of_service: self.class_of_service,
            egress_port: super::port_of(self.to).unwrap_or(0),
            may_be_marked: self.may_be_marked,
            is_encapsulated: self.is_encapsulated,
            flow_hash: self.flow_hash,
            ..Rts::default()
        }
    }

    /// When so many of its bytes are here: they come evenly. Unit: ps.
    fn arrival_of(&self, bytes: u32) -> u64 {
        let all = self.whole - self.begun;
        self.begun + (all * u64::from(bytes)).div_ceil(u64::from(self.length).max(1))
    }
}

/// What a TiN has to send: by terminal port requests, and by group of them answers and packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Outgoing {
    /// By terminal port and half: requests, in the order of their packets.
    pub(super) requests: [[VecDeque<Pointer>; 2]; super::LANES],
    /// By group and half: cells that answer requests.
    pub(super) answers: [[VecDeque<Cell>; 2]; super::GROUPS],
    /// By group and class of data: packets that were asked for.
    pub(super) cleared: [[VecDeque<Pointer>; Part::COUNT]; super::GROUPS],
}

const _: () = assert!(BLOCK == 8 && DATA_CELLS_MAX == ABORT);
