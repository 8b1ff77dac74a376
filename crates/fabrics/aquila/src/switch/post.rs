//! What goes over a link to a switch of another part, as words: everything of [`Posted`] but when and where.

use super::cell::{BLOCKS_MAX, Cell};
use super::contents::Content;
use super::settings::CHANNELS;
use super::{Body, Posted, TICK_PS};
use crate::link::classes::{CLASSES, CellKind};
use crate::link::ordered_sets::CHANNELS_MAX;

/// How many words.
pub const WORDS: usize = 8;

/// Words of what a cell carries beyond a word: a byte that says how much, then the bytes.
const CONTENT_WORDS: usize = WORDS - 3;
/// Most bytes that a cell carries beyond a word, where it goes to another part: a request for memory has 32 (M504).
const CONTENT_MAX: usize = 8 * CONTENT_WORDS - 1;

const CELL: u64 = 1;
const CREDIT: u64 = 2;
const SYNC: u64 = 3;

impl Posted {
    /// When it may be acted upon. Unit: ps.
    #[must_use]
    pub const fn at_ps(&self) -> u64 {
        self.tick * TICK_PS
    }

    /// Its words, for cells that carry no more than a word and 39 bytes: all but bytes of memory, where these are kept,
    /// and operands.
    #[must_use]
    pub fn words(&self) -> [u64; WORDS] {
        let content = self.content.as_ref().map_or(&[][..], |content| content.bytes());
        debug_assert!(content.len() <= CONTENT_MAX, "{self:?} carries too much");
        let mut bytes = [0; 8 * CONTENT_WORDS];
        for (place, byte) in bytes[1..].iter_mut().zip(content) {
            *place = *byte;
        }
        bytes[0] = content.len() as u8;
        let mut words = [0; WORDS];
        for (word, bytes) in words[3..].iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_be_bytes(*bytes);
        }
        let place = |value: u64, byte: u32| value << (8 * byte);
        match self.body {
            Body::Cell(cell, channel) => {
                let [blocks, kind, class, marks] =
                    [cell.blocks, cell.kind, cell.class, cell.marks()].map(u64::from);
                let about = place(CELL, 7) | place(channel.into(), 6) | place(blocks, 5);
                let about = about | place(kind, 4) | place(class, 3) | place(marks, 2);
                // A head may go on some 40 ns after it has come, which is close to when it may be acted upon.
                let lead = (cell.ready as i64).wrapping_sub(self.at_ps() as i64) as i32 as u32;
                let ends = place(cell.to.into(), 6) | place(cell.from.into(), 4) | u64::from(lead);
                words[..3].copy_from_slice(&[about, ends, cell.payload]);
            }
            Body::Credit(first, count, limits) => {
                let about = place(CREDIT, 7) | place(first.into(), 6) | place(count.into(), 5);
                let limits = limits.iter().fold(0, |word, &limit| word << 16 | u64::from(limit));
                words[..2].copy_from_slice(&[about, limits]);
            }
            Body::Sync(channel, used) => {
                let about = place(SYNC, 7) | place(channel.into(), 6);
                words[..2].copy_from_slice(&[about, used.into()]);
            }
        }
        words
    }

    /// What such words say for the port of a switch at a tick; `None` if they say nothing.
    #[must_use]
    pub fn read(words: [u64; WORDS], (tin, port): (u16, u8), tick: u64) -> Option<Self> {
        let [about, middle, payload, content @ ..] = words;
        let byte = |at: u32| (about >> (8 * at)) as u8;
        let (channel, count) = (byte(6), byte(5));
        let is_channel = usize::from(channel) < CHANNELS;
        let body = match about >> 56 {
            CELL if is_channel => {
                let [blocks, kind, class, marks] = [count, byte(4), byte(3), byte(2)];
                let is_cell = (2..=BLOCKS_MAX).contains(&blocks) && class < CLASSES;
                if !is_cell || CellKind::from_number(kind).is_none() {
                    return None;
                }
                let (to, from) = ((middle >> 48) as u16, (middle >> 32) as u16);
                let lead = i64::from(middle as u32 as i32);
                let ready = ((tick * TICK_PS) as i64 + lead).max(0) as u64;
                let cell = Cell::new(from, to, class, kind, blocks, 0).with_payload(payload);
                let mut cell = cell.with_marks(marks);
                cell.ready = ready;
                Body::Cell(cell, channel)
            }
            CREDIT if usize::from(channel) + usize::from(count) <= CHANNELS => {
                let limits =
                    std::array::from_fn(|at| (middle >> (16 * (CHANNELS_MAX - 1 - at))) as u16);
                if usize::from(count) > CHANNELS_MAX {
                    return None;
                }
                Body::Credit(channel, count, limits)
            }
            SYNC if is_channel => Body::Sync(channel, middle as u16),
            _ => return None,
        };
        let content = content.map(u64::to_be_bytes);
        let [length, bytes @ ..] = content.as_flattened() else { return None };
        let content = match usize::from(*length) {
            0 => None,
            length => Some(Box::new(Content::new(bytes.get(..length)?))),
        };
        Some(Self { tick, tin, port, body, content })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(
            (to, from, payload, lead) in any::<(u16, u16, u64, i16)>(),
            (class, blocks, hops) in (0..CLASSES, 2..=BLOCKS_MAX, 0..32u8),
            (tick, channel, first) in (1_000_000..u64::MAX / 10_000, 0..32u8, 0..30u8),
            limits: [u16; CHANNELS_MAX],
            is_traced: bool,
            content in prop::collection::vec(any::<u8>(), 0..=CONTENT_MAX),
        ) {
            let kind = CellKind::Data as u8;
            let mut cell = Cell::new(from, to, class, kind, blocks, hops).traced(is_traced);
            cell.payload = payload;
            cell.ready = (tick * TICK_PS).wrapping_add_signed(lead.into());
            let bodies = [
                Body::Cell(cell, channel),
                Body::Credit(first, CHANNELS_MAX as u8 - 1, limits),
                Body::Sync(channel, limits[0]),
            ];
            for body in bodies {
                let is_cell = matches!(body, Body::Cell(..));
                let has_content = is_cell && !content.is_empty();
                let content = has_content.then(|| Box::new(Content::new(&content)));
                let posted = Posted { tick, tin: 3, port: 9, body, content };
                prop_assert_eq!(Posted::read(posted.words(), (3, 9), tick), Some(posted));
            }
        }

        /// Whatever the words are, what is read of them is something that a switch can take.
        #[test]
        fn no_words_break_the_reader(words: [u64; WORDS], tag in 0..5u64) {
            let mut words = words;
            words[0] = words[0] >> 8 | tag << 56;
            if let Some(posted) = Posted::read(words, (0, 0), 1_000_000) {
                let channels = match posted.body {
                    Body::Cell(_, channel) | Body::Sync(channel, _) => usize::from(channel) + 1,
                    Body::Credit(first, count, _) => usize::from(first) + usize::from(count),
                };
                prop_assert!(channels <= CHANNELS);
            }
        }
    }
}
