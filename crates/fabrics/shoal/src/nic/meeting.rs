//! The meetings of one position of the schedule, and which of them need what.

use kernel::Sieve;

use crate::cell::Frame;

/// A node meets the peer of the position, and sends it a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meeting {
    pub(super) frame: Frame,
    /// Index of the node's link of the first class.
    pub(super) link: u32,
    /// Whether the frame reports on a queue.
    pub(super) reports: bool,
    /// The node sends no payload to this peer now (§3.5).
    pub(super) is_muted: bool,
}

impl Meeting {
    #[inline]
    pub(super) fn node(&self) -> u32 {
        u32::from(self.frame.from)
    }

    #[inline]
    pub(super) fn link(&self) -> usize {
        self.link as usize
    }

    /// Whether the frame says more than an empty cell with no feedback does.
    #[inline]
    pub(super) fn matters(&self) -> bool {
        self.reports | !self.frame.cell.is_empty() | (self.frame.flags != 0)
    }
}

/// Flows of a node for which Eq. 2 holds: one bit a slot, from `64 * word`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ripe {
    pub(super) meeting: u16,
    pub(super) word: u16,
    pub(super) slots: u64,
}

/// A node sends a cell of its flow in `slot`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Local {
    pub(super) meeting: u16,
    pub(super) slot: u16,
}

/// All meetings of a position with something to say; lists of indices into them.
#[derive(Clone, Debug)]
pub(crate) struct Meetings {
    pub(super) position: u32,
    pub(super) all: Vec<Meeting>,
    /// The node has cells not yet in a queue.
    pub(super) backlogged: Sieve<u16>,
    pub(super) ripe: Sieve<Ripe>,
    /// A flow id waits for room in the queue, and there is some.
    pub(super) waiting: Sieve<u16>,
    /// There is a cell in the queue.
    pub(super) full: Sieve<u16>,
    /// The node sends a cell of its own: straight from its flow, or from the queue.
    pub(super) express: Sieve<Local>,
    pub(super) own: Sieve<u16>,
    /// The node owes a report.
    pub(super) reporting: Sieve<u16>,
}

impl Meetings {
    /// The position of all of them.
    pub(crate) fn position(&self) -> u32 {
        self.position
    }

    /// None, with room for those of a rack.
    pub(crate) fn new(nodes: u32) -> Self {
        let nodes = nodes as usize;
        Self {
            position: 0,
            all: Vec::with_capacity(nodes),
            backlogged: Sieve::new(nodes),
            ripe: Sieve::new(nodes),
            waiting: Sieve::new(nodes),
            full: Sieve::new(nodes),
            express: Sieve::new(nodes),
            own: Sieve::new(nodes),
            reporting: Sieve::new(nodes),
        }
    }

    pub(super) fn clear(&mut self, position: u32) {
        self.position = position;
        self.all.clear();
        self.backlogged.clear();
        self.express.clear();
        self.own.clear();
    }

    /// How many there are.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// The frames that are sent in them, by node, and whether each says more than an empty cell with no
    /// feedback does.
    #[inline]
    pub(crate) fn frames(&self) -> impl Iterator<Item = (&Frame, bool)> {
        self.all.iter().map(|meeting| (&meeting.frame, meeting.matters()))
    }

    /// The same of one of them.
    #[inline]
    pub(crate) fn frame(&self, index: usize) -> (Frame, bool) {
        let meeting = &self.all[index];
        (meeting.frame, meeting.matters())
    }
}
