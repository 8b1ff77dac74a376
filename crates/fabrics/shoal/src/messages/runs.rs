//! Which message a cell of a pair belongs to.
//!
//! The cells of a pair are numbered in the order in which they are sent, whatever message they are
//! of. A *run* is a stretch of these numbers that belongs to one message: the whole of it, or, where
//! messages take turns, the packets of one turn.

use super::{Messages, NONE};

/// Cells of one message that follow each other in their pair's sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) message: u32,
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
    slab: Vec<Run>,
    free: Vec<u32>,
}

impl Runs {
    fn add(&mut self, run: Run) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.slab[index as usize] = run;
                index
            }
            None => {
                self.slab.push(run);
                (self.slab.len() - 1) as u32
            }
        }
    }
}

impl Messages {
    /// Lets the message that a pair is to send go on from here to its end, until it is interrupted.
    pub(super) fn start_run(&mut self, pair: u32) {
        let state = &self.pairs[pair as usize];
        let message = &self.slab[state.sending as usize];
        let start = state.position(state.sequence);
        let (first, end) = (message.taken, start + message.cells - message.taken);
        let run = Run { message: state.sending, next: NONE, start, end, first };
        let index = self.runs.add(run);
        let state = &mut self.pairs[pair as usize];
        match state.last_run {
            NONE => state.first_run = index,
            last => self.runs.slab[last as usize].next = index,
        }
        state.last_run = index;
    }

    /// Ends the last run of a pair before its next cell. Whether it has any.
    pub(super) fn interrupt_run(&mut self, pair: u32) -> bool {
        let state = &self.pairs[pair as usize];
        let position = state.position(state.sequence);
        let run = &mut self.runs.slab[state.last_run as usize];
        let has_cells = position > run.start;
        if has_cells {
            run.end = position;
        }
        has_cells
    }

    /// The run to which a cell belongs that was sent, sought from the pair's oldest; none if its run
    /// has arrived whole.
    #[inline]
    fn run_of(&self, pair: u32, sequence: u32) -> Option<(&Run, u64)> {
        let pair = &self.pairs[pair as usize];
        let position = pair.position(sequence);
        let mut index = pair.first_run;
        while index != NONE && position >= self.runs.slab[index as usize].end {
            index = self.runs.slab[index as usize].next;
        }
        let run = self.runs.slab.get(index as usize)?;
        (position >= run.start).then_some((run, position))
    }

    /// The message to which a cell belongs that was sent; none if it need not be asked: the message
    /// or the turn has arrived whole.
    #[inline]
    pub(super) fn message_of(&self, pair: u32, sequence: u32) -> Option<u32> {
        self.run_of(pair, sequence).map(|(run, _)| run.message)
    }

    /// The message of a cell that was sent, and which of its cells it is.
    pub(super) fn cell_of(&self, pair: u32, sequence: u32) -> Option<(u32, u64)> {
        self.run_of(pair, sequence).map(|(run, at)| (run.message, run.first + at - run.start))
    }

    /// Whether the oldest run of a pair has arrived whole.
    #[inline]
    pub(super) fn has_whole_run(&self, pair: u32) -> bool {
        let pair = &self.pairs[pair as usize];
        let run = self.runs.slab.get(pair.first_run as usize);
        run.is_some_and(|run| pair.arrived >= run.end)
    }

    /// The message of a pair's oldest run, and how many of the run's cells have arrived in order.
    pub(super) fn begun_run(&self, pair: u32) -> Option<(u32, u64)> {
        let pair = &self.pairs[pair as usize];
        let run = self.runs.slab.get(pair.first_run as usize)?;
        Some((run.message, pair.arrived.clamp(run.start, run.end) - run.start))
    }

    /// Forgets the oldest run of a pair. Gives its message and how many cells of it there were.
    pub(super) fn pop_run(&mut self, pair: u32) -> Option<(u32, u64)> {
        let state = &mut self.pairs[pair as usize];
        let index = state.first_run;
        let run = *self.runs.slab.get(index as usize)?;
        state.first_run = run.next;
        if run.next == NONE {
            state.last_run = NONE;
        }
        self.runs.free.push(index);
        Some((run.message, run.end - run.start))
    }
}
