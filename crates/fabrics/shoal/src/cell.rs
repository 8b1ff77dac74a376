//! A cell as the simulator passes it: the fields of the header that travel unchanged (Fig. 5),
//! packed in one word. The bytes on the wire are in [`crate::wire`].

use std::fmt;

/// A cell's identity. 64 bits: source 12, destination 12, class 3, start-of-packet 1,
/// end-of-packet 1, datagram 1, sequence number 32.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell(u64);

const SEQUENCE_BITS: u32 = 32;
const SOURCE_SHIFT: u32 = 32;
const DESTINATION_SHIFT: u32 = 44;
const CLASS_SHIFT: u32 = 56;
const START: u64 = 1 << 59;
const END: u64 = 1 << 60;
const DATAGRAM: u64 = 1 << 61;
const NODE_MASK: u64 = 0xfff;

impl Cell {
    /// Nothing: the slot carries an empty cell.
    pub(crate) const EMPTY: Cell = Cell(u64::MAX);

    #[inline]
    pub(crate) fn data(source: u32, destination: u32, class: u32, sequence: u32) -> Self {
        debug_assert!(source <= 0xfff && destination <= 0xfff && class < 8);
        Self(
            u64::from(sequence)
                | u64::from(source) << SOURCE_SHIFT
                | u64::from(destination) << DESTINATION_SHIFT
                | u64::from(class) << CLASS_SHIFT,
        )
    }

    /// The same cell with its packet-boundary bits set.
    #[inline]
    pub(crate) fn with_boundary(self, start: bool, end: bool) -> Self {
        Self(self.0 | if start { START } else { 0 } | if end { END } else { 0 })
    }

    /// Whether it is the first and the last of its packet.
    #[inline]
    pub(crate) fn boundary(self) -> (bool, bool) {
        (self.0 & START != 0, self.0 & END != 0)
    }

    /// The same cell marked as a datagram of the transport: outside the sequence space.
    #[inline]
    pub(crate) fn as_datagram(self) -> Self {
        Self(self.0 | DATAGRAM)
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == u64::MAX
    }

    #[inline]
    pub(crate) fn source(self) -> u32 {
        (self.0 >> SOURCE_SHIFT & NODE_MASK) as u32
    }

    #[inline]
    pub(crate) fn destination(self) -> u32 {
        (self.0 >> DESTINATION_SHIFT & NODE_MASK) as u32
    }

    #[inline]
    pub(crate) fn class(self) -> u32 {
        (self.0 >> CLASS_SHIFT & 7) as u32
    }

    #[inline]
    pub(crate) fn sequence(self) -> u32 {
        (self.0 & ((1 << SEQUENCE_BITS) - 1)) as u32
    }

    #[inline]
    pub(crate) fn is_datagram(self) -> bool {
        self.0 & DATAGRAM != 0
    }

    /// The word itself, for hashing.
    #[inline]
    pub(crate) fn word(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("empty cell");
        }
        write!(f, "cell {} of {} to {}", self.sequence(), self.source(), self.destination())
    }
}

/// A cell with a handle of its payload, which NICs pass on unread. What the payload is, its ends know: the
/// simulator's applications send none, and the handle stands for the header of the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cargo {
    pub(crate) cell: Cell,
    pub(crate) payload: u32,
}

impl Cargo {
    /// Nothing.
    pub(crate) const EMPTY: Cargo = Cargo { cell: Cell::EMPTY, payload: 0 };
}

/// What crosses the fabric in one position: a cell with the fields that each hop sets anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Frame {
    pub(crate) cell: Cell,
    /// As in [`Cargo::payload`].
    pub(crate) payload: u32,
    pub(crate) from: u16,
    pub(crate) to: u16,
    /// `rate_limit_feedback` (Eqs 1, 6).
    pub(crate) feedback: u16,
    /// Bits of [`Frame::DROPPED`] and those below it.
    pub(crate) flags: u16,
}

impl Frame {
    /// A frame without payload that says nothing.
    #[inline]
    pub(crate) fn empty(from: u32, to: u32) -> Self {
        Self {
            cell: Cell::EMPTY,
            payload: 0,
            from: from as u16,
            to: to as u16,
            feedback: 0,
            flags: 0,
        }
    }

    /// The cell with its payload.
    #[inline]
    pub(crate) fn cargo(&self) -> Cargo {
        Cargo { cell: self.cell, payload: self.payload }
    }

    /// The same frame with a cell in it.
    #[inline]
    pub(crate) fn load(&mut self, cargo: Cargo) {
        (self.cell, self.payload) = (cargo.cell, cargo.payload);
    }

    /// `last-cell-dropped` (Appendices C and D).
    pub(crate) const DROPPED: u16 = 1;
    /// The fabric flipped a bit and the CRC shows it (Appendix D).
    pub(crate) const CORRUPT: u16 = 2;
    /// The fabric flipped bits and the CRC does not show it: what the cell carried is lost.
    pub(crate) const GARBLED: u16 = 4;
    /// Its sender has given the receiver up (§3.5). The payload is how often the sender has come back.
    pub(crate) const PARTED: u16 = 8;
    /// It has, and has heard the receiver for long enough to use the pair again.
    pub(crate) const TRUSTS: u16 = 16;
    /// It says whom the sender does not reach; the payload is a handle of that.
    pub(crate) const NOTICE: u16 = 32;
    /// It is sent though it says nothing: the last one said that the pair is not in use. Not on the wire.
    pub(crate) const SHOWN: u16 = 64;
}
