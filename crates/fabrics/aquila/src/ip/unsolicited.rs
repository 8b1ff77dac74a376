//! Packets that nobody asked for, to measure what asking is for (X09, X17, X20).
//!
//! The paper's argument is that credits and shallow buffers need end-to-end solicitation beside them (§1, M002). With
//! `ip.solicitation = false` a packet's cells go as soon as its header has come, at whatever rate they find a way.
//! **Our choice**, as the chip has no such mode: the receiver finds the cells of a packet by the TiN that sent it and
//! a number that it gave it; it takes room for the whole packet with the first cell that comes, so that
//! what it has begun it can finish; a packet that finds no room is thrown away there, after it has crossed the fabric.
//! What a request would have said (length, class, marks) the first bytes of the packet say: its IP header.

use std::collections::BTreeMap;

use super::clearing::Request;
use super::{Engine, GROUP_OF, Loss, Outcome, port_of};
use crate::address::Address;
use crate::cells::ip::{Clear, Data, Pointer, Rts};
use crate::switch::Wishes;
use crate::switch::cell::Cell;

/// Packets of an ingress buffer at the most: half as many as a pointer can tell apart, so that as many more can be on
/// their way.
pub(super) const PLACES: u32 = 1 << 13;

/// The pointer in data cells of the packet of this number that a TiN has sent: no other packet has it that is on its
/// way. Ten bits name the TiN, fourteen the packet.
fn pointer(from: u16, number: u32) -> Pointer {
    let address = Address::from_bits(from);
    let tin = u32::from(address.pod()) << 4 | u32::from(address.tin());
    Pointer { slot: (tin << 10) | (number % 1_024), generation: (number >> 10) as u8 % 16 }
}

/// What the IP header in a packet's first bytes says of it, in a word.
pub(super) fn header(rts: &Rts) -> u32 {
    u32::from(rts.length)
        | u32::from(rts.class_of_service) << 14
        | u32::from(rts.may_be_marked) << 17
        | u32::from(rts.flow_hash) << 18
}

/// The same read; the rest of what a request says has no meaning here.
fn read(header: u32) -> Rts {
    Rts {
        length: (header & 0x3FFF) as u16,
        class_of_service: (header >> 14 & 7) as u8,
        may_be_marked: header >> 17 & 1 != 0,
        flow_hash: (header >> 18 & 0xFFF) as u16,
        ..Rts::default()
    }
}

/// The word in a data cell's content; nothing where there is none.
fn said(content: &[u8]) -> u32 {
    content.first_chunk().map_or(0, |&word| u32::from_be_bytes(word))
}

/// What is known of a packet of which cells come or will come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// No cell has come yet.
    Announced,
    /// It is put together here.
    At(Pointer),
    /// It found no room; so many of its cells are still on their way.
    Refused(u8),
}

/// Packets of which cells come to a TiN, by their pointers; and the number of the next that it sends.
#[derive(Clone, Debug, Default)]
pub(super) struct Unsolicited {
    packets: BTreeMap<(u32, u8), (u32, State)>,
    /// Packets that this TiN has sent.
    sent: u32,
}

impl Unsolicited {
    /// What the packet is whose cells will come with a pointer.
    pub(super) fn announce(&mut self, pointer: Pointer, packet: u32) {
        self.packets.insert((pointer.slot, pointer.generation), (packet, State::Announced));
    }

    /// Forgets all packets that were put together here. Those of which nothing has come.
    pub(super) fn clear_all(&mut self) -> Vec<u32> {
        let all = std::mem::take(&mut self.packets).into_values();
        all.filter(|&(_, state)| state == State::Announced).map(|(packet, _)| packet).collect()
    }

    /// Whether nothing is expected.
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

impl Engine {
    /// A packet has come to the ingress buffer of a TiN: it goes at once.
    pub(super) fn send_at_once(
        &mut self,
        tin: u16,
        from: u16,
        ingress: Pointer,
        wishes: &mut Wishes,
    ) {
        let state = &mut self.tins[self.places[usize::from(tin)] as usize];
        let egress = pointer(from, state.unsolicited.sent);
        state.unsolicited.sent = state.unsolicited.sent.wrapping_add(1);
        let clear = Clear { ingress, egress };
        self.start_draining(tin, &clear, from, wishes);
    }

    /// A data cell that nobody asked for has come. The packet's place, if it has one.
    pub(super) fn place_of(
        &mut self,
        tin: u16,
        cell: &Cell,
        at: u64,
        wishes: &mut Wishes,
    ) -> Option<Pointer> {
        let place = self.places[usize::from(tin)] as usize;
        let egress = Data::of_word(cell.payload).egress;
        let key = (egress.slot, egress.generation);
        let state = &mut self.tins[place];
        let &(packet, known) = state.unsolicited.packets.get(&key)?;
        match known {
            State::At(pointer) if state.egress.is_coming(pointer) => return Some(pointer),
            // Its time is over, and it is given up.
            State::At(_) => {
                state.unsolicited.packets.remove(&key);
                return None;
            }
            State::Refused(left) => {
                match left {
                    1 => state.unsolicited.packets.remove(&key),
                    _ => state.unsolicited.packets.insert(key, (packet, State::Refused(left - 1))),
                };
                return None;
            }
            State::Announced => {}
        }
        let rts = read(said(wishes.enclosed(cell)));
        let group = GROUP_OF[port_of(cell.to).map_or(0, usize::from)];
        let (budget, bytes) = (&mut state.groups[group].budget, u32::from(rts.length));
        if bytes > budget.free {
            match self.settings.cells(rts.length) {
                1 => state.unsolicited.packets.remove(&key),
                cells => state.unsolicited.packets.insert(key, (packet, State::Refused(cells - 1))),
            };
            self.counts.lost[Loss::Dropped as usize] += 1;
            self.outcomes.push_back((tin, Outcome::Lost { packet, why: Loss::Dropped }));
            return None;
        }
        budget.free -= bytes;
        budget.outstanding += bytes;
        let (outstanding, used) = (budget.outstanding, self.settings.egress_buffer - budget.free);
        self.counts.outstanding_max = self.counts.outstanding_max.max(outstanding);
        self.counts.egress_max = self.counts.egress_max.max(used);
        let request = Request { from: cell.from, to: cell.to, watch: cell.watch(), rts };
        let (pointer, is_first) = state.egress.reserve(&request, at, &self.settings);
        state.egress.attach(pointer, packet);
        state.unsolicited.packets.insert(key, (packet, State::At(pointer)));
        if is_first {
            state.arm(at + self.settings.reassembly_timeout, wishes);
        }
        Some(pointer)
    }

    /// The last cell of a packet that nobody asked for has come.
    pub(super) fn forget(&mut self, tin: u16, egress: Pointer) {
        let place = self.places[usize::from(tin)] as usize;
        self.tins[place].unsolicited.packets.remove(&(egress.slot, egress.generation));
    }
}
