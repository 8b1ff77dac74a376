//! The courses of flows as the routing protocols of a network have them.

use rack::{NodeId, Problem};

use super::terms::{Course, Courses};
use crate::routing::{Network, Protocol, Scratch, Shares};

/// The shares of some protocols on a network.
#[derive(Clone, Debug)]
pub struct Routed {
    nodes: usize,
    links: usize,
    /// By number of the protocol.
    shares: Vec<Option<Shares>>,
    scratch: Scratch,
}

impl Routed {
    /// The shares of these protocols; flows of no other may be asked for.
    ///
    /// # Errors
    /// As [`Shares::new`].
    pub fn new(network: &Network, protocols: &[Protocol]) -> Result<Self, Problem> {
        let mut shares = vec![None; Protocol::ALL.len()];
        for &protocol in protocols {
            shares[usize::from(protocol.number())] = Some(Shares::new(network, protocol)?);
        }
        Ok(Self {
            nodes: network.nodes() as usize,
            links: network.topology().ports().len(),
            shares,
            scratch: Scratch::new(network),
        })
    }
}

/// The shares of a protocol.
fn of(shares: &[Option<Shares>], protocol: Protocol) -> &Shares {
    let found = shares[usize::from(protocol.number())].as_ref();
    found.unwrap_or_else(|| panic!("the shares of {} are not prepared", protocol.name()))
}

impl Courses for Routed {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn links(&self) -> usize {
        self.links
    }

    fn uses(&mut self, course: Course, mut visit: impl FnMut(usize, f64)) {
        let Course { source, destination, protocol } = course;
        let Self { shares, scratch, .. } = self;
        for &(port, share) in of(shares, protocol).unordered(source, destination, scratch) {
            visit(port.index(), share);
        }
    }

    fn leaving(&mut self, source: NodeId, mut visit: impl FnMut(usize, f64)) {
        let Self { shares, scratch, .. } = self;
        let legs = of(shares, Protocol::Valiant).legs().expect("Valiant's way has two legs");
        for &(port, share) in legs.outbound(source, scratch) {
            visit(port.index(), share);
        }
    }

    fn arriving(&mut self, destination: NodeId, mut visit: impl FnMut(usize, f64)) {
        let Self { shares, scratch, .. } = self;
        let legs = of(shares, Protocol::Valiant).legs().expect("Valiant's way has two legs");
        for &(port, share) in legs.inbound(destination, scratch) {
            visit(port.index(), share);
        }
    }
}
