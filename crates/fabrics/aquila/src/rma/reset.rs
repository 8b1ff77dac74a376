//! A host as it is when it comes back after it, or its TiN, has died (M922).

use super::control::Software;
use super::pcie::Pipe;
use super::{Engine, TERMINALS};
use crate::switch::Wishes;

impl Engine {
    /// A host has lost all that it had asked for and was asked for; nobody is told of operations that were under way.
    /// What memory it has registered is the same when it is back, and so are the counts of its slots' uses, so that
    /// nothing that comes late is taken for what it asks for then.
    ///
    /// # Panics
    /// If the TiN is not here.
    pub fn reset(&mut self, tin: u16, host: usize, wishes: &mut Wishes) {
        let place = self.places[usize::from(tin)] as usize;
        let state = &mut self.tins[place].hosts[host];
        state.software = Software::default();
        state.initiator.clear();
        state.target.clear();
        state.landings.clear();
        (state.from_memory, state.to_memory) = (Pipe::default(), Pipe::default());
        state.fetches_next = false;
        let stalled = std::mem::take(&mut state.stalled);
        let (first, count) = TERMINALS[host];
        (first..first + count).for_each(|terminal| wishes.resume(terminal, stalled));
    }
}
