//! Room to work in, kept from one question to the next so that none allocates.

use rack::topology::{PortId, Topology, Vertex};

use super::Network;

/// Where [`Shares`](super::Shares) computes and answers.
#[derive(Clone, Debug)]
pub struct Scratch {
    /// By port: what has been added so far; zero between questions.
    shares: Vec<f64>,
    /// The ports whose share is not zero, in the order in which they were first added to.
    touched: Vec<PortId>,
    /// By vertex: how many packets are there; zero between questions.
    pub(super) mass: Vec<f64>,
    /// Vertices to visit.
    pub(super) queue: Vec<Vertex>,
    /// The answer.
    pub(super) pairs: Vec<(PortId, f64)>,
    /// Another answer, kept while this one is found.
    pub(super) aside: Vec<(PortId, f64)>,
}

impl Scratch {
    /// Room for questions about this network.
    #[must_use]
    pub fn new(network: &Network) -> Self {
        Self::of_topology(network.topology())
    }

    pub(super) fn of_topology(topology: &Topology) -> Self {
        Self {
            shares: vec![0.0; topology.ports().len()],
            touched: Vec::new(),
            mass: vec![0.0; topology.vertices() as usize],
            queue: Vec::new(),
            pairs: Vec::new(),
            aside: Vec::new(),
        }
    }

    /// Adds to a port's share.
    #[inline]
    pub(super) fn add(&mut self, port: PortId, share: f64) {
        if share > 0.0 {
            let sum = &mut self.shares[port.index()];
            if *sum == 0.0 {
                self.touched.push(port);
            }
            *sum += share;
        }
    }

    /// Moves what was added to the answer.
    pub(super) fn answer(&mut self) {
        self.pairs.clear();
        for port in self.touched.drain(..) {
            self.pairs.push((port, std::mem::take(&mut self.shares[port.index()])));
        }
    }

    /// Makes the sum of both answers the answer.
    pub(super) fn add_up(&mut self) {
        let (pairs, aside) = (std::mem::take(&mut self.pairs), std::mem::take(&mut self.aside));
        for &(port, share) in aside.iter().chain(&pairs) {
            self.add(port, share);
        }
        (self.pairs, self.aside) = (pairs, aside);
        self.answer();
    }
}
