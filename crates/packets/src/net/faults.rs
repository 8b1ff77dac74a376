//! Links and vertices that break and come back.
//!
//! What breaks when is configuration: each part of the network follows the whole plan of faults, and so knows
//! the state of each end of each link. A link that goes down loses what is on it and what waits for it. Until the
//! routes have converged, a stated time later, switches go on sending to it, and the packets are lost. A vertex takes its links with it.

use rack::topology::{Parts, PortId, Vertex};
use rack::{Failure, NodeId};

use super::Net;
use super::event::Event;
use crate::route::{Live, Tables};

/// What is broken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// By fault of the plan: what it means.
    pub(super) parts: Vec<Parts>,
    /// By vertex: how many faults keep it dead.
    pub(super) dead: Vec<u8>,
    /// Changes of routes that are under way.
    pub(super) converging: u32,
    /// Faults that will end.
    pub(super) repairs_left: u32,
}

impl Faults {
    /// By fault of the plan: what it means.
    pub(crate) fn parts(&self) -> &[Parts] {
        &self.parts
    }
}

impl Net {
    /// Puts all faults of the plan in the calendar.
    pub(super) fn schedule_faults(&mut self) {
        for (index, fault) in (0..).zip(self.plan.faults.clone()) {
            self.calendar.push(fault.at, Event::Break { fault: index }.pack());
            if let Some(until) = fault.until {
                self.calendar.push(until, Event::Mend { fault: index }.pack());
                self.faults.repairs_left += 1;
            }
        }
    }

    /// Whether a vertex is dead.
    pub(crate) fn is_dead(&self, vertex: Vertex) -> bool {
        self.faults.dead.get(vertex.index()).is_some_and(|&faults| faults > 0)
    }

    /// Whether things stay as they are: no repair and no change of routes is to come.
    pub(crate) fn is_settled(&self) -> bool {
        self.faults.repairs_left == 0 && self.faults.converging == 0
    }

    /// Fault `index` begins. Returns the vertex that died, if it is one.
    pub(crate) fn break_part(&mut self, index: u32) -> Option<Vertex> {
        let parts = self.faults.parts[index as usize].clone();
        for port in self.links_of(&parts) {
            self.link_down(port);
        }
        self.expect_routes();
        let Parts::Vertex(vertex) = parts else { return None };
        self.faults.dead[vertex.index()] += 1;
        Some(vertex)
    }

    /// Fault `index` ends.
    pub(crate) fn mend_part(&mut self, index: u32) {
        self.faults.repairs_left -= 1;
        let parts = self.faults.parts[index as usize].clone();
        if let Parts::Vertex(vertex) = parts {
            self.faults.dead[vertex.index()] -= 1;
        }
        for port in self.links_of(&parts) {
            self.link_up(port);
        }
        self.expect_routes();
    }

    /// One end of each link that a fault takes down.
    fn links_of(&self, parts: &Parts) -> Vec<PortId> {
        match parts {
            Parts::Vertex(vertex) => self.plan.topology.ports_of(*vertex).collect(),
            Parts::Links(links) => links.clone(),
        }
    }

    /// Links that a fault has just taken down, or the end of one brought back: one end of each. Those that other
    /// faults keep down are not among them.
    pub(crate) fn changed_by(&self, fault: u32, works: bool) -> Vec<PortId> {
        let faults = if works { 0 } else { 1 };
        let links = self.links_of(&self.faults.parts[fault as usize]);
        links.into_iter().filter(|port| self.ports[port.index()].faults == faults).collect()
    }

    /// The hosts here whose line a fault is about, in order.
    pub(crate) fn hosts_at(&self, fault: u32) -> Vec<NodeId> {
        let links = self.links_of(&self.faults.parts[fault as usize]);
        let ends = links.iter().flat_map(|&port| [port, self.plan.topology.port(port).reverse]);
        let is_nic = |port: &PortId| self.wires[port.index()].nic.is_some();
        let mut hosts: Vec<_> = ends
            .filter(is_nic)
            .map(|port| self.vertices[port.index()])
            .filter(|&vertex| self.owns(vertex))
            .map(|vertex| NodeId::new(vertex.get()))
            .collect();
        hosts.sort_unstable();
        hosts
    }

    fn expect_routes(&mut self) {
        self.faults.converging += 1;
        self.calendar.push(self.now + self.plan.config.convergence, Event::Converge.pack());
    }

    fn link_down(&mut self, port: PortId) {
        let reverse = self.plan.topology.port(port).reverse;
        let ends = [port.get(), reverse.get()];
        for end in ends {
            let out = &mut self.ports[end as usize];
            out.faults += 1;
            out.life = out.life.wrapping_add(1);
        }
        for end in ends {
            self.flush(end);
        }
    }

    fn link_up(&mut self, port: PortId) {
        let reverse = self.plan.topology.port(port).reverse;
        let ends = [port.get(), reverse.get()];
        for end in ends {
            self.ports[end as usize].faults -= 1;
        }
        if self.ports[port.index()].faults > 0 {
            return;
        }
        for end in ends {
            if !self.owns(self.vertices[end as usize]) {
                continue;
            }
            if self.pauses.is_some() {
                self.pause_reset(end);
            }
            self.credit_reset(end);
            self.serve(end);
        }
    }

    /// All switches know what works.
    pub(crate) fn converge(&mut self) {
        self.faults.converging -= 1;
        let mut live = self.live.clone();
        for (port, works) in live.ports.iter_mut().enumerate() {
            *works = self.ports[port].faults == 0;
        }
        for (vertex, works) in live.vertices.iter_mut().enumerate() {
            *works = self.faults.dead[vertex] == 0;
        }
        if live != self.live {
            self.tables = self.known.tables(&self.plan, &live);
            self.chooser.routes_changed();
            self.live = live;
        }
    }
}

/// Why a flow from a host, which may be dead, to another can never complete, as far as that is known: by
/// what works by now for all, its tables, and whether that stays so.
pub(crate) fn hopeless(
    (from, to): (NodeId, NodeId),
    is_dead: bool,
    live: &Live,
    tables: &Tables,
    is_settled: bool,
) -> Option<Failure> {
    if is_dead {
        return Some(Failure::SourceDied);
    }
    let (src, dst) = (Vertex::new(from.get()), Vertex::new(to.get()));
    let is_cut_off = is_settled && tables.paths(src, to.get()) == 0;
    (!live.vertices[dst.index()] || is_cut_off).then_some(Failure::DestinationDied)
}
