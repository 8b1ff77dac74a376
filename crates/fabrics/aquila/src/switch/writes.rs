//! Writes to the tables of switches while cells pass ([`crate::tables::journal`]).
//!
//! A write counts from the beginning of its tick on. A cell that has gone to its output keeps its way; heads of the
//! switch choose anew, by what is in the tables now (M313).

use std::collections::VecDeque;
use std::sync::Arc;

use super::tin::NO_TIN;
use super::{Endpoints, Switches, TICK_PS};
use crate::tables::journal::{Change, Editor, Journal};

/// Writes that are to come.
#[derive(Clone, Debug, Default)]
pub(super) struct Writes {
    journal: Arc<Journal>,
    /// Of the journal's, those of the TiNs here, by time.
    own: VecDeque<u32>,
    /// The tick of the first.
    next: Option<u64>,
    /// `None`: the tables are still those that all switches of a Clique have in common.
    editor: Option<Box<Editor>>,
}

impl Writes {
    /// The tick of the next one.
    #[inline]
    pub(super) fn next(&self) -> Option<u64> {
        self.next
    }

    fn look(&mut self) {
        let first = self.own.front().map(|&index| self.journal.writes()[index as usize]);
        self.next = first.map(|write| write.at.as_ps().div_ceil(TICK_PS));
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
        self.writes = Writes { journal, own, next: None, editor: self.writes.editor.take() };
        self.writes.look();
        let now = self.calendar.now();
        assert!(self.writes.next.is_none_or(|next| next >= now), "{:?} < {now}", self.writes.next);
    }

    /// Carries out the writes of a tick.
    #[inline(never)]
    pub(super) fn write_tables(&mut self, tick: u64) {
        let mut editor = match self.writes.editor.take() {
            Some(editor) => editor,
            None => {
                let here = |tin: u16| self.places[usize::from(tin)] != super::NONE;
                let (editor, tables) = Editor::new(&self.tables, here);
                self.tables = Arc::new(tables);
                Box::new(editor)
            }
        };
        while self.writes.next == Some(tick) {
            let index = self.writes.own.pop_front().expect("it is the next");
            let write = self.writes.journal.writes()[index as usize];
            self.writes.look();
            editor.apply(Arc::make_mut(&mut self.tables), write.tin, &write.change);
            let place = self.places[usize::from(write.tin)] as usize;
            match write.change {
                Change::Down { ports } => self.set_down(place, ports),
                Change::Reset => self.set_down(place, 0),
                _ => {}
            }
            let next = self.writes.own.front();
            let next = next.map(|&index| self.writes.journal.writes()[index as usize].tin);
            if self.writes.next != Some(tick) || next != Some(write.tin) {
                self.choose_again(place, tick);
            }
        }
        self.writes.editor = Some(editor);
    }

    /// Which ports of a switch lead down the tree of the escape channels: what comes in at others has come down.
    fn set_down(&mut self, place: usize, down: u64) {
        for (port, state) in self.tins[place].ports.iter_mut().enumerate() {
            state.comes_down = state.far_tin != NO_TIN && down >> port & 1 == 0;
        }
    }
}
