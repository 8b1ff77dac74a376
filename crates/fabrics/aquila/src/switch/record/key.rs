//! What cells say whose they are.

use crate::cells::ip::{Clear, Data, Pointer, Rts};
use crate::cells::rma::Response;
use crate::link::classes::CellKind;
use crate::switch::cell::Cell;

/// What all cells of a packet, or of a request for memory, have in common: the place that they are about, in which
/// use. Places are used again, so a key means something at an instant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Key(u64);

/// What a place is.
const INGRESS: u64 = 1;
const EGRESS: u64 = 2;
const COMMAND: u64 = 3;
const SEGMENT: u64 = 4;
const JOB: u64 = 5;

impl Key {
    /// Nothing that belongs to a flow: ordered sets.
    pub(crate) const NONE: Self = Self(0);

    const fn place(what: u64, address: u16, pointer: Pointer) -> Self {
        let place = (pointer.slot as u64) << 4 | pointer.generation as u64;
        Self(what << 48 | (address as u64) << 32 | place)
    }

    /// A packet that waits at the port of this GNet address.
    pub(crate) const fn ingress(address: u16, pointer: Pointer) -> Self {
        Self::place(INGRESS, address, pointer)
    }

    /// A packet that is put together at the port of this GNet address.
    pub(crate) const fn egress(address: u16, pointer: Pointer) -> Self {
        Self::place(EGRESS, address, pointer)
    }

    /// A command of a host's hardware, or its fetch of what is written there: the slot, in which use.
    pub(crate) const fn command(address: u16, (slot, generation): (u16, u8)) -> Self {
        let place = (slot as u64) << 16 | (generation as u64) << 8;
        Self(COMMAND << 48 | (address as u64) << 32 | place)
    }

    /// A segment of it, which another host has been asked for.
    pub(crate) const fn segment(self, segment: u8) -> Self {
        Self(self.0 & !(0xFFFF << 48) | SEGMENT << 48 | segment as u64)
    }

    /// All that a host has told its TiN to do for a flow.
    pub(crate) const fn job(job: u32) -> Self {
        Self(JOB << 48 | job as u64)
    }

    /// What a cell is about.
    pub(crate) fn of(cell: &Cell) -> Self {
        match CellKind::from_number(cell.kind) {
            Some(CellKind::Rts) => Rts::of_word(cell.payload)
                .map_or(Self::NONE, |rts| Self::ingress(cell.from, rts.ingress)),
            Some(CellKind::Cts | CellKind::Ctd) => Clear::of_word(cell.payload)
                .map_or(Self::NONE, |clear| Self::ingress(cell.to, clear.ingress)),
            Some(CellKind::Data) => Self::egress(cell.to, Data::of_word(cell.payload).egress),
            Some(CellKind::Req | CellKind::WriteReq) => {
                let (slot, generation, _) = asked(cell.payload);
                Self::command(cell.from, (slot, generation))
            }
            Some(CellKind::Resp | CellKind::RespError) => Response::of_word(cell.payload)
                .map_or(Self::NONE, |of| Self::command(cell.to, (of.slot, of.generation))),
            _ => Self::NONE,
        }
    }

    /// The segment that a request for memory asks for, or that is in an answer.
    pub(crate) fn segment_of(cell: &Cell) -> Self {
        let segment = match CellKind::from_number(cell.kind) {
            Some(CellKind::Req | CellKind::WriteReq) => asked(cell.payload).2,
            _ => Response::of_word(cell.payload).map_or(0, |of| of.segment),
        };
        Self::of(cell).segment(segment)
    }
}

/// Slot, generation and segment in the first eight bytes of a request for memory ([`crate::cells::rma::Request`]).
fn asked(word: u64) -> (u16, u8, u8) {
    let [_, _, _, _, high, low, segment, generation] = word.to_be_bytes();
    (u16::from_be_bytes([high, low]), generation, segment)
}
