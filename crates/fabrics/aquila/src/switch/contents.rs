//! What cells carry that does not fit a word: kept aside, so that cells stay half a line of the cache.

use kernel::Slab;

use super::cell::{BLOCK, BLOCKS_MAX, Cell, NONE};

/// Bytes of a largest cell behind its header and the word that it carries itself (§3.1).
pub const CONTENT_MAX: usize = (BLOCKS_MAX as usize - 2) * BLOCK as usize;

/// Bytes of a cell behind the first eight that follow its header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Content {
    length: u8,
    bytes: [u8; CONTENT_MAX],
}

impl Content {
    /// These bytes.
    ///
    /// # Panics
    /// If they fit no cell.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let mut content = Self { length: bytes.len() as u8, bytes: [0; CONTENT_MAX] };
        content.bytes[..bytes.len()].copy_from_slice(bytes);
        content
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length.into()]
    }
}

/// Contents of all cells of a set of TiNs, by [`Cell::rest`]: whoever takes a cell out of the switches for good
/// releases its content.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents(Slab<Content>);

impl Contents {
    /// The cell with these bytes.
    pub(super) fn put(&mut self, cell: Cell, bytes: &[u8]) -> Cell {
        self.insert(cell, Content::new(bytes))
    }

    /// The cell with this content.
    pub(super) fn insert(&mut self, mut cell: Cell, content: Content) -> Cell {
        debug_assert_eq!(cell.rest, NONE, "{cell:?} has a content");
        cell.rest = self.0.insert(content);
        cell
    }

    /// What a cell carries.
    pub(super) fn get(&self, cell: &Cell) -> Option<&Content> {
        (cell.rest != NONE).then(|| &self.0[cell.rest as usize])
    }

    /// What a cell carries, to be written anew.
    pub(super) fn get_mut(&mut self, cell: &Cell) -> Option<&mut Content> {
        (cell.rest != NONE).then(|| &mut self.0[cell.rest as usize])
    }

    /// Nobody needs a cell's content any more.
    #[inline]
    pub(super) fn release(&mut self, cell: &Cell) {
        if cell.rest != NONE {
            self.0.release(cell.rest);
        }
    }

    /// Takes a cell's content out.
    pub(super) fn take(&mut self, cell: &mut Cell) -> Option<Content> {
        let content = self.get(cell).cloned();
        self.release(cell);
        cell.rest = NONE;
        content
    }

    /// How many there are.
    pub(super) fn live(&self) -> usize {
        self.0.live()
    }
}
