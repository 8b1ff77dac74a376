//! The controller's applications (Aquila §4.1, Figure 5): pure state machines around the base.
//!
//! The routing engine ([`routing`]) makes batches of rows of what it knows; the flow manager ([`flow_manager`]) puts
//! their operations in order; the front end ([`front_end`]) makes registers of them. [`inter_block`] learns what lies
//! outside. Of each there are several instances, one of which leads ([`election`], [`instance`]). [`constellation`] ties them together.

pub mod constellation;
pub mod election;
pub mod flow_manager;
pub mod front_end;
pub mod instance;
pub mod inter_block;
pub mod operator;
pub mod routing;
pub mod rows;
pub mod session;

use aquila::pipeline::plan::Plan;
use aquila::tables::flows::InputClass;
use aquila::topology::{PortKind, Topology};
use aquila::turns::{HopType, TurnTable};

/// What applications know from their configuration.
#[derive(Clone, Debug)]
pub struct Clique {
    /// Who is connected to whom.
    pub topology: Topology,
    /// Which turns cells may take.
    pub turns: TurnTable,
    /// Who has which address.
    pub plan: Plan,
    /// By TiN and external port: the ports that lead to the same TiN.
    back: Vec<u64>,
}

impl Clique {
    /// A Clique that is built so.
    #[must_use]
    pub fn new(topology: Topology, turns: TurnTable, plan: Plan) -> Self {
        let shape = topology.shape();
        let all = 0..shape.external_ports();
        let mut back = Vec::new();
        for (tin, port) in (0..shape.tins()).flat_map(|t| all.clone().map(move |p| (t, p))) {
            let far = |port| topology.far(tin, port).map(|far| far.tin);
            let same = all.clone().filter(|&other| far(other).is_some() && far(other) == far(port));
            back.push(same.fold(0, |mask, port| mask | 1 << port));
        }
        Self { topology, turns, plan, back }
    }

    /// The ports of a TiN that lead to where the cells of a port come from; none at its own endpoints' ports.
    #[must_use]
    pub fn back(&self, tin: u16, port: u8) -> u64 {
        let ports = self.topology.shape().external_ports();
        match port < ports {
            true => self.back[usize::from(tin) * usize::from(ports) + usize::from(port)],
            false => 0,
        }
    }

    /// The class of an input port as it is wired; `None`: nothing is.
    #[must_use]
    pub fn class(&self, tin: u16, port: u8) -> Option<InputClass> {
        let place = |tin| self.topology.shape().split(tin).1;
        match self.topology.kind(port) {
            PortKind::Terminal => Some(InputClass::Terminal),
            PortKind::Global => self.topology.far(tin, port).map(|_| InputClass::Global),
            PortKind::Local => {
                let far = self.topology.far(tin, port)?;
                Some(InputClass::Local(HopType::of(place(far.tin), place(tin))))
            }
        }
    }
}

#[cfg(test)]
mod tests;
