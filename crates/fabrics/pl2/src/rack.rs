//! The rack: hosts under PL2 at their switch, whatever their transport, as a fabric.

use crate::config::Plan;
use crate::transport::{Network, each};

transports::rack!("pl2", Plan);

#[cfg(test)]
impl Rack {
    /// What it was built from.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Cuts it so, for tests: gives how many parts it will have.
    pub(crate) fn set_cut(&mut self, cut: &packets::Cut) -> usize {
        each!(&mut self.network, network => {
            network.set_cut(cut.clone(), 1);
            if network.can_be_cut(cut) { cut.parts() } else { 1 }
        })
    }

    /// The switch, to look at.
    pub(crate) fn switch(&self) -> &crate::switch::Tor {
        each!(&self.network, network => network.program())
    }
}
