//! Which bytes of memory are in which cells, for drivers that carry them beside the cells (`rack::node`).

use std::collections::BTreeMap;

use super::Engine;
use super::target::Completion;
use crate::cells::rma::{Response, Status};
use crate::link::classes::CellKind;
use crate::switch::cell::Cell;

/// Bytes in cells that have not left their TiN: address and length, by name of the cell.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces(BTreeMap<u128, (u64, u32)>);

/// What a cell with bytes of memory is known by while it is under way: its ends, and what it answers; `None` for others.
#[must_use]
pub fn piece(cell: &Cell) -> Option<u128> {
    let is_response = CellKind::from_number(cell.kind) == Some(CellKind::Resp);
    let response = Response::of_word(cell.payload).ok().filter(|_| is_response)?;
    let has_bytes = response.status == Status::Done && response.length > 0;
    let ends = u128::from(cell.from) << 16 | u128::from(cell.to);
    has_bytes.then_some(ends << 64 | u128::from(cell.payload))
}

impl Pieces {
    pub(super) fn keep(&mut self, cell: &Cell, of: &Completion) {
        // What an atomic operation returns is none of a flow's bytes.
        if let Some(name) = piece(cell).filter(|_| of.value.is_none()) {
            self.0.insert(name, (of.address, of.length));
        }
    }
}

impl Engine {
    /// Keeps which bytes are in cells, from now on, until [`Engine::take_piece`] asks.
    pub fn keep_pieces(&mut self) {
        self.pieces = Some(Pieces::default());
    }

    /// The address and the length of the bytes in a cell that leaves its source now ([`piece`]).
    pub fn take_piece(&mut self, name: u128) -> Option<(u64, u32)> {
        self.pieces.as_mut()?.0.remove(&name)
    }
}
