//! The bytes of a cell, as far as it says something of itself.

use kernel::Bytes;

use crate::address::Address;
use crate::cells::ip::Data;
use crate::link::classes::CellKind;
use crate::link::header::Header;
use crate::switch::cell::{BLOCK, Cell};

/// The bytes of a cell on a channel, but for those of its packet, or of memory; `None` if it is none that there is.
/// `data_header` is how many bytes data cells say of themselves.
pub(super) fn header(
    cell: &Cell,
    vc: u8,
    content: &[u8],
    data_header: Bytes,
) -> Option<(CellKind, Vec<u8>)> {
    let kind = CellKind::from_number(cell.kind)?;
    let length = cell.blocks * BLOCK as u8;
    let header = Header {
        destination: Address::from_bits(cell.to),
        source: Address::from_bits(cell.from),
        length,
        kind,
        vc,
        hops: cell.hops(),
        is_traced: cell.is_traced(),
    };
    let mut bytes = header.encode().to_vec();
    match kind {
        CellKind::Data if data_header > Bytes::ZERO => {
            bytes.extend(Data::of_word(cell.payload).encode());
        }
        CellKind::Data => {}
        _ => bytes.extend(cell.payload.to_be_bytes()),
    }
    if matches!(kind, CellKind::Req | CellKind::WriteReq) {
        bytes.extend(content);
    }
    bytes.truncate(length.into());
    Some((kind, bytes))
}
