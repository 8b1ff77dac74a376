//! What of a Clique works.

use crate::topology::Topology;

/// What a link or a TiN is good for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    /// Everything.
    Live,
    /// Nothing passes through it any more, so that it can be taken out (M730); a drained TiN still sends and
    /// gets its own cells.
    Drained,
    /// Nothing.
    Dead,
}

/// The state of all links and TiNs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Condition {
    links: Vec<State>,
    tins: Vec<State>,
}

impl Condition {
    /// Everything lives.
    #[must_use]
    pub fn healthy(topology: &Topology) -> Self {
        Self {
            links: vec![State::Live; topology.links().len()],
            tins: vec![State::Live; usize::from(topology.shape().tins())],
        }
    }

    /// The state of a link by itself, whatever that of its ends.
    ///
    /// # Panics
    /// If there is no such link.
    #[must_use]
    pub fn link(&self, link: u32) -> State {
        self.links[link as usize]
    }

    /// The state of a TiN.
    ///
    /// # Panics
    /// If there is no such TiN.
    #[must_use]
    pub fn tin(&self, tin: u16) -> State {
        self.tins[usize::from(tin)]
    }

    /// Sets the state of a link.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn set_link(&mut self, link: u32, state: State) {
        self.links[link as usize] = state;
    }

    /// Sets the state of a TiN.
    ///
    /// # Panics
    /// If there is no such TiN.
    pub fn set_tin(&mut self, tin: u16, state: State) {
        self.tins[usize::from(tin)] = state;
    }
}
