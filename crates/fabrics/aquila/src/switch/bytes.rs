//! What crosses a link as its bytes: with `run.wire` every cell and every ordered set goes through them.

use super::Body;
use super::cell::{BLOCK, Cell};
use super::contents::Content;
use crate::address::Address;
use crate::cells::ip::{Clear, Data, Rts};
use crate::cells::rma::{Request, Response};
use crate::link::classes::{CellKind, Half, class_of};
use crate::link::header::Header;
use crate::link::ordered_sets::{CHANNELS_MAX, Counts, OrderedSet};

/// A cell as the other end reads it, and its channel; `None` if it cannot. The time at which it is there is no part of
/// it, nor is what the line has done to it. What it carries beyond a word is written anew.
pub(super) fn cell(cell: &Cell, channel: u8, content: Option<&mut Content>) -> Option<(Cell, u8)> {
    let header = Header {
        destination: Address::from_bits(cell.to),
        source: Address::from_bits(cell.from),
        length: cell.blocks * BLOCK as u8,
        kind: CellKind::from_number(cell.kind)?,
        vc: channel,
        hops: cell.hops(),
        is_traced: cell.is_traced(),
    };
    let read = Header::decode(header.encode()).ok()?;
    // The escape channels are no class's; what comes by them is treated as bulk.
    let class = class_of(read.vc).map_or(read.kind.class(Half::Bulk), |(class, _)| class);
    let mut there = *cell;
    (there.to, there.from) = (read.destination.bits(), read.source.bits());
    (there.blocks, there.kind, there.class) = (read.length / BLOCK as u8, read.kind as u8, class);
    there.payload = payload(read.kind, cell.payload, content)?;
    Some((there.with_hops(read.hops).traced(read.is_traced), read.vc))
}

/// What is behind a header as the other end reads it.
fn payload(kind: CellKind, word: u64, content: Option<&mut Content>) -> Option<u64> {
    Some(match kind {
        CellKind::Req | CellKind::WriteReq => {
            let content = content?;
            let request = Request::of_parts(word, content.bytes()).ok()?;
            let (word, rest) = request.parts();
            *content = Content::new(&rest);
            word
        }
        CellKind::Resp | CellKind::RespError => Response::of_word(word).ok()?.word(),
        CellKind::Rts => Rts::decode(&Rts::of_word(word).ok()?.encode()).ok()?.word(),
        CellKind::Cts | CellKind::Ctd => {
            Clear::decode(&Clear::of_word(word).ok()?.encode()).ok()?.word()
        }
        CellKind::Data => Data::decode(&Data::of_word(word).encode()).ok()?.0.word(),
        _ => word,
    })
}

/// An ordered set as the other end reads it; `None` if it cannot.
pub(super) fn set(body: Body) -> Option<Body> {
    let set = match body {
        Body::Credit(first, count, limits) => {
            OrderedSet::FlowControl(Counts::new(first, &limits[..usize::from(count)])?)
        }
        Body::Sync(channel, used) => OrderedSet::CreditSync(Counts::new(channel, &[used])?),
        Body::Cell(..) => return None,
    };
    match OrderedSet::decode(set.encode()).ok()? {
        OrderedSet::FlowControl(counts) => {
            let (mut limits, mut count) = ([0; CHANNELS_MAX], 0);
            let first = counts.iter().next()?.0;
            for (limit, (_, said)) in limits.iter_mut().zip(counts.iter()) {
                (*limit, count) = (said, count + 1);
            }
            Some(Body::Credit(first, count, limits))
        }
        OrderedSet::CreditSync(counts) => {
            counts.iter().next().map(|(channel, used)| Body::Sync(channel, used))
        }
        _ => None,
    }
}
