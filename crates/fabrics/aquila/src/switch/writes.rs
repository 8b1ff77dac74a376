//! Writes to the tables of switches while cells pass ([`crate::tables::journal`]).
//!
//! A write counts from the beginning of its tick on. A cell that has gone to its output keeps its way; heads of the
//! switch choose anew, by what is in the tables now (M313).

use std::collections::VecDeque;
use std::sync::Arc;

use super::settings::TICK_PS;
use super::tin::{NEVER, NO_TIN, Tin};
use super::{Endpoints, Switches};
use crate::tables::journal::{Change, Editor, Journal};

/// Writes that are to come.
#[derive(Clone, Debug)]
pub(super) struct Writes {
    journal: Arc<Journal>,
    /// Of the journal's, those of the TiNs here, by time.
    own: VecDeque<u32>,
    /// The tick of the first, or [`NEVER`].
    next: u64,
    /// `None`: the tables are still those that all switches of a Clique have in common.
    editor: Option<Box<Editor>>,
}

impl Default for Writes {
    fn default() -> Self {
        Self { journal: Arc::default(), own: VecDeque::new(), next: NEVER, editor: None }
    }
}

impl Writes {
    /// The tick of the next one, or [`NEVER`].
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    fn look(&mut self) {
        let first = self.own.front().map(|&index| self.journal.writes()[index as usize]);
        self.next = first.map_or(NEVER, |write| write.at.as_ps().div_ceil(TICK_PS));
    }
}

impl<E: Endpoints> Switches<E> {
    /// These writes come in the run: those to TiNs here are carried out.
    ///
    /// # Panics
    /// If one of them is for an instant that is past.
    pub fn follow(&mut self, journal: Arc<Journal>) {
        let here = |tin: u16| self.places[usize::from(tin)] != super::NONE;
        let own = (0..).zip(journal.writes()).filter(|(_, write)| here(write.tin));
        let own = own.map(|(index, _)| index).collect();
        self.writes = Writes { journal, own, next: NEVER, editor: self.writes.editor.take() };
        self.writes.look();
        let now = self.shared.calendar.now();
        assert!(self.writes.next >= now, "{} < {now}", self.writes.next);
    }

    /// Carries out the writes of a tick.
    #[inline(never)]
    pub(super) fn write_tables(&mut self, tick: u64) {
        let mut editor = match self.writes.editor.take() {
            Some(editor) => editor,
            None => {
                let here = |tin: u16| self.places[usize::from(tin)] != super::NONE;
                let (editor, tables) = Editor::new(&self.shared.tables, here);
                self.tins.iter_mut().for_each(|tin| tin.read_tables(&tables));
                self.shared.tables = Arc::new(tables);
                Box::new(editor)
            }
        };
        while self.writes.next == tick {
            let index = self.writes.own.pop_front().expect("it is the next");
            let write = self.writes.journal.writes()[index as usize];
            self.writes.look();
            editor.apply(Arc::make_mut(&mut self.shared.tables), write.tin, &write.change);
            let tin = &mut self.tins[self.places[usize::from(write.tin)] as usize];
            match write.change {
                Change::Down { ports } => tin.set_down(ports),
                Change::Reset => tin.set_down(0),
                _ => {}
            }
            let next = self.writes.own.front();
            let next = next.map(|&index| self.writes.journal.writes()[index as usize].tin);
            if self.writes.next != tick || next != Some(write.tin) {
                tin.read_tables(&self.shared.tables);
                tin.choose_again(&mut self.shared, tick);
            }
        }
        self.writes.editor = Some(editor);
    }
}

impl Tin {
    /// Which ports lead down the tree of the escape channels: what comes in at others has come down.
    fn set_down(&mut self, down: u64) {
        for (port, state) in self.ports.iter_mut().enumerate() {
            state.comes_down = state.far_tin != NO_TIN && down >> port & 1 == 0;
        }
    }
}
