//! Which message a cell of a pair belongs to, and which of its cells it is, with a transport.
//!
//! The cells of a pair are numbered in the order in which they are sent, whatever message they belong
//! to. A *run* is a stretch of these numbers that belongs to one message: the whole of it, or, where
//! messages take turns, the packets of one turn.

use kernel::{Bytes, Slab};

use super::NONE;
use super::sending::Senders;

/// Cells of one message that follow each other in their pair's sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// The message's handle, and how many cells it has.
    pub(super) handle: u32,
    pub(super) cells: u64,
    /// The message's size.
    pub(super) size: Bytes,
    /// The pair's next run.
    next: u32,
    /// Positions among all cells of the pair: of its first cell, and behind its last.
    start: u64,
    end: u64,
    /// Which cell of the message the first is.
    first: u64,
}

/// The runs of all pairs.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    slab: Slab<Run>,
}

impl Runs {
    fn add(&mut self, run: Run) -> u32 {
        self.slab.insert(run)
    }
}

impl Senders {
    /// Lets the message that a pair is to send go on from here to its end, until it is interrupted.
    pub(super) fn start_run(&mut self, pair: u32) {
        if self.runs.is_none() {
            return;
        }
        let state = &self.pairs[pair as usize];
        let message = self.message_at(state.sending);
        let (start, first, handle) = (state.taken, message.taken, message.handle);
        let (cells, size) = (message.cells, message.flow.size);
        let run = Run { handle, cells, size, next: NONE, start, end: start + cells - first, first };
        let Some(runs) = &mut self.runs else { return };
        let index = runs.add(run);
        let state = &mut self.pairs[pair as usize];
        match state.last_run {
            NONE => state.first_run = index,
            last => runs.slab[last as usize].next = index,
        }
        state.last_run = index;
    }

    /// Ends the last run of a pair, which has cells, before its next cell.
    pub(super) fn interrupt_run(&mut self, pair: u32) {
        let state = &self.pairs[pair as usize];
        if let Some(runs) = &mut self.runs {
            runs.slab[state.last_run as usize].end = state.taken;
        }
    }

    /// The run to which a cell belongs that was sent, sought from the pair's oldest, and which of its
    /// message's cells it is; none if its run has arrived whole.
    pub(super) fn run_of(&self, pair: u32, sequence: u32) -> Option<(Run, u64)> {
        let runs = self.runs.as_ref()?;
        let position = self.position(pair, sequence);
        let mut index = self.pairs[pair as usize].first_run;
        while index != NONE && position >= runs.slab[index as usize].end {
            index = runs.slab[index as usize].next;
        }
        let run = *runs.slab.get(index as usize)?;
        (position >= run.start).then(|| (run, run.first + position - run.start))
    }

    /// Forgets the runs of a pair before the cell that is next to arrive in order.
    pub(super) fn forget_runs(&mut self, pair: u32, next: u32) {
        let position = self.position(pair, next);
        let Some(runs) = &mut self.runs else { return };
        let state = &mut self.pairs[pair as usize];
        while let Some(&run) = runs.slab.get(state.first_run as usize) {
            if run.end > position {
                break;
            }
            runs.slab.release(state.first_run);
            state.first_run = run.next;
        }
        if state.first_run == NONE {
            state.last_run = NONE;
        }
    }

    /// Forgets all runs of a pair.
    pub(super) fn drop_runs(&mut self, pair: u32) {
        let Some(runs) = &mut self.runs else { return };
        let state = &mut self.pairs[pair as usize];
        while let Some(&run) = runs.slab.get(state.first_run as usize) {
            runs.slab.release(state.first_run);
            state.first_run = run.next;
        }
        state.last_run = NONE;
    }
}
