//! Cells in a switch: one pool, in which queues are linked lists.

/// Bytes of a block of the line code: lengths of cells are whole blocks (M206).
pub const BLOCK: u16 = 8;
/// Most blocks of a cell: 160 bytes (§3.1).
pub const BLOCKS_MAX: u8 = 20;
/// No cell.
pub const NONE: u32 = u32::MAX;

/// What a cell carries, as much of it as switches and endpoints look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Cell {
    /// The earliest instant of its first bit on the next wire. Unit: ps.
    pub(super) ready: u64,
    /// The bytes behind the header, as its kind has them.
    pub payload: u64,
    /// The next in its queue.
    pub(super) next: u32,
    /// The handle of what does not fit `payload`, or none.
    pub rest: u32,
    /// GNet address of its destination.
    pub to: u16,
    /// GNet address of its source.
    pub from: u16,
    /// Length on the wire, header included. Unit: blocks of 8 bytes.
    pub blocks: u8,
    /// Its kind, by its code (M208).
    pub kind: u8,
    /// Traffic class: 0 to 9 (M210).
    pub class: u8,
    /// Switches that it may still pass, and in the highest bits whether it is traced, damaged, and recorded.
    hops: u8,
}

/// In `hops`: the cell is traced (M901), bits behind its header are wrong, and a run records it, of which no link knows.
const TRACED: u8 = 0x80;
const DAMAGED: u8 = 0x40;
const RECORDED: u8 = 0x20;
/// All of them: hops are fewer than 32.
const MARKS: u8 = TRACED | DAMAGED | RECORDED;

/// Who looks at a cell on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Watch(u8);

impl Watch {
    /// Nobody.
    pub const NONE: Self = Self(0);

    /// Whether each switch reports it, and whether a run that keeps a record writes down where it is.
    #[must_use]
    pub const fn new(is_traced: bool, is_recorded: bool) -> Self {
        let recorded = if is_recorded { RECORDED } else { 0 };
        Self(if is_traced { TRACED } else { 0 } | recorded)
    }

    /// Whether a run that keeps a record writes down where it is.
    #[must_use]
    pub const fn is_recorded(self) -> bool {
        self.0 & RECORDED != 0
    }
}

impl Cell {
    /// A cell at its source, with so many switches to pass at most.
    #[must_use]
    pub const fn new(from: u16, to: u16, class: u8, kind: u8, blocks: u8, hops: u8) -> Self {
        Self { ready: 0, payload: 0, next: NONE, rest: NONE, to, from, blocks, kind, class, hops }
    }

    /// The same with these bytes behind its header.
    #[must_use]
    pub const fn with_payload(self, payload: u64) -> Self {
        Self { payload, ..self }
    }

    /// The same, traced or not.
    #[must_use]
    pub const fn traced(self, is_traced: bool) -> Self {
        let hops = self.hops & !TRACED | if is_traced { TRACED } else { 0 };
        Self { hops, ..self }
    }

    /// The same, looked at so.
    #[must_use]
    pub const fn watched(self, watch: Watch) -> Self {
        Self { hops: self.hops & !(TRACED | RECORDED) | watch.0, ..self }
    }

    /// Who looks at it on its way.
    #[must_use]
    pub const fn watch(&self) -> Watch {
        Watch(self.hops & (TRACED | RECORDED))
    }

    /// Whether each switch on its way reports it.
    #[must_use]
    pub const fn is_traced(&self) -> bool {
        self.hops & TRACED != 0
    }

    /// Whether bits behind its header were flipped on some link.
    #[must_use]
    pub const fn is_damaged(&self) -> bool {
        self.hops & DAMAGED != 0
    }

    pub(super) fn damage(&mut self) {
        self.hops |= DAMAGED;
    }

    /// Switches that it may still pass.
    #[must_use]
    pub const fn hops(&self) -> u8 {
        self.hops & !MARKS
    }

    /// The same with so many switches to pass at most.
    pub(super) const fn with_hops(self, hops: u8) -> Self {
        Self { hops: self.hops & MARKS | hops, ..self }
    }

    /// Switches that it may still pass, and what it is marked with, as one byte.
    pub(super) const fn marks(&self) -> u8 {
        self.hops
    }

    /// The same with that byte.
    pub(super) const fn with_marks(self, marks: u8) -> Self {
        Self { hops: marks, ..self }
    }

    /// It passes a switch. False if it must not any more.
    #[inline]
    pub(super) fn pass(&mut self) -> bool {
        let is_fine = self.hops() > 0;
        self.hops -= u8::from(is_fine);
        is_fine
    }

    /// Credit that it takes: units of 16 bytes, begun ones whole (M212).
    #[inline]
    #[must_use]
    pub const fn units(&self) -> u16 {
        self.blocks.div_ceil(2) as u16
    }
}

/// A cell's place, half a line of the cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Place(Cell);

/// All cells of a set of TiNs.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    cells: Vec<Place>,
    free: u32,
    count: u32,
}

impl Default for Pool {
    fn default() -> Self {
        Self { cells: Vec::new(), free: NONE, count: 0 }
    }
}

impl Pool {
    #[inline]
    pub(super) fn put(&mut self, cell: Cell) -> u32 {
        self.count += 1;
        if self.free == NONE {
            self.cells.push(Place(cell));
            return (self.cells.len() - 1) as u32;
        }
        let index = self.free;
        self.free = self.cells[index as usize].0.next;
        self.prefetch(self.free);
        self.cells[index as usize].0 = cell;
        index
    }

    #[inline]
    pub(super) fn take(&mut self, index: u32) -> Cell {
        self.count -= 1;
        let cell = self.cells[index as usize].0;
        self.cells[index as usize].0.next = self.free;
        self.free = index;
        cell
    }

    #[inline]
    pub(super) fn get(&self, index: u32) -> &Cell {
        &self.cells[index as usize].0
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: u32) -> &mut Cell {
        &mut self.cells[index as usize].0
    }

    /// Links a cell behind the last of a queue.
    #[inline]
    pub(super) fn link(&mut self, last: u32, next: u32) {
        self.cells[last as usize].0.next = next;
    }

    /// Asks for the memory of a cell.
    #[inline]
    pub(super) fn prefetch(&self, index: u32) {
        kernel::prefetch(&self.cells, index as usize);
    }

    /// Cells that there are now.
    pub(super) fn count(&self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_half_a_line_of_the_cache() {
        assert_eq!((size_of::<Cell>(), size_of::<Place>()), (32, 32));
        assert!(size_of::<crate::switch::Posted>() <= 64);
        assert_eq!(u16::from(BLOCKS_MAX) * BLOCK, 160);
    }

    #[test]
    fn a_cell_passes_as_many_switches_as_it_may() {
        let mut cell = Cell::new(1, 2, 0, 0, 2, 3).traced(true);
        assert_eq!(
            (0..5).map(|_| cell.pass()).collect::<Vec<_>>(),
            [true, true, true, false, false]
        );
        assert!(cell.is_traced() && cell.hops() == 0);
        assert_eq!(Cell::new(1, 2, 0, 0, 3, 3).units(), 2, "24 bytes are two units");
    }

    #[test]
    fn places_are_used_again() {
        let mut pool = Pool::default();
        let cell = Cell::new(1, 2, 0, 0, 2, 3);
        let (one, two) = (pool.put(cell), pool.put(cell));
        pool.take(one);
        pool.take(two);
        assert_eq!((pool.put(cell), pool.put(cell), pool.count()), (two, one, 2));
    }
}
