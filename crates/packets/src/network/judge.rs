//! What the driver knows of faults: by when which flows cannot end.
//!
//! The plan of faults is configuration: the driver follows it by itself, and tells no host of it. A flow whose
//! source dies has failed, as no other node could report that. Other flows are given up by their sources, and
//! the driver knows why. Where an oracle tells hosts of failures they forget flows at the instant at which
//! these fail here (`ends`).

use std::collections::VecDeque;
use std::sync::Arc;

use kernel::Time;
use rack::topology::{Parts, Vertex};
use rack::{Failure, Flow, NodeId};

use super::ledger::{Ledger, Life};
use crate::net::{Net, hopeless};
use crate::route::{Known, Live, Tables};

/// What happens to the network; at one instant in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Step {
    Break(usize),
    Mend(usize),
    Converge,
}

/// The state of the network that follows from the plan of faults.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    steps: VecDeque<(Time, Step)>,
    parts: Vec<Parts>,
    /// By port and by vertex: how many faults keep it down.
    ports: Vec<u8>,
    vertices: Vec<u8>,
    live: Live,
    tables: Arc<Tables>,
    known: Arc<Known>,
    /// Whether hosts know of failures by an oracle.
    is_oracle: bool,
    /// Hosts that have died, until that is known: when it will be.
    doomed: VecDeque<(NodeId, Time)>,
    /// By vertex: when it last died.
    died: Vec<Option<Time>>,
}

impl Judge {
    /// Of a network at its beginning.
    pub(super) fn new(net: &Net) -> Self {
        let plan = &net.plan;
        let mut steps = Vec::new();
        for (index, fault) in plan.faults.iter().enumerate() {
            for (at, step) in
                [(Some(fault.at), Step::Break(index)), (fault.until, Step::Mend(index))]
            {
                if let Some(at) = at {
                    steps.extend([(at, step), (at + plan.config.convergence, Step::Converge)]);
                }
            }
        }
        steps.sort_unstable();
        Self {
            steps: steps.into(),
            parts: net.faults.parts().to_vec(),
            ports: vec![0; plan.topology.ports().len()],
            vertices: vec![0; plan.topology.vertices() as usize],
            live: net.live.clone(),
            tables: Arc::clone(&net.tables),
            known: Arc::clone(&net.known),
            is_oracle: plan.config.failures.oracle,
            doomed: VecDeque::new(),
            died: vec![None; plan.topology.vertices() as usize],
        }
    }

    /// Why the source of a flow has not heard of its destination.
    pub(super) fn why_in_vain(&self, flow: &Flow) -> Failure {
        let dst = flow.dst.index();
        let has_died = self.vertices[dst] > 0 || self.died[dst].is_some_and(|at| at >= flow.start);
        let src = Vertex::new(flow.src.get());
        let is_cut_off = self.tables.paths(src, flow.dst.get()) == 0;
        match has_died || is_cut_off {
            true => Failure::DestinationDied,
            false => Failure::PacketsLost,
        }
    }

    /// When something happens next.
    pub(super) fn next(&self) -> Time {
        self.steps.front().map_or(Time::NEVER, |&(at, _)| at)
    }

    /// Lets the next thing happen to the flows of `ledger`: gives the places of those that fail.
    pub(super) fn step(&mut self, net: &Net, ledger: &Ledger) -> Vec<(u32, Failure)> {
        let Some((now, step)) = self.steps.pop_front() else { return Vec::new() };
        match step {
            Step::Break(fault) => {
                self.count(net, fault, |faults| *faults += 1);
                let Parts::Vertex(vertex) = self.parts[fault] else { return Vec::new() };
                self.died[vertex.index()] = Some(now);
                let host = NodeId::new(vertex.get());
                if !self.is_oracle {
                    let fails = |flow: &Flow| flow.src == host;
                    return failures(ledger, |flow| fails(flow).then_some(Failure::SourceDied));
                }
                self.doomed.push_back((host, now + net.plan.config.convergence));
                Vec::new()
            }
            Step::Mend(fault) => {
                self.count(net, fault, |faults| *faults -= 1);
                Vec::new()
            }
            Step::Converge => {
                self.converge(net);
                if !self.is_oracle {
                    return Vec::new();
                }
                let mut failures = self.take_doomed(now, ledger);
                failures.extend(self.unreachable(ledger));
                failures
            }
        }
    }

    fn count(&mut self, net: &Net, fault: usize, change: impl Fn(&mut u8)) {
        let topology = &net.plan.topology;
        let links: Vec<_> = match &self.parts[fault] {
            Parts::Vertex(vertex) => {
                change(&mut self.vertices[vertex.index()]);
                topology.ports_of(*vertex).collect()
            }
            Parts::Links(links) => links.clone(),
        };
        for port in links {
            change(&mut self.ports[port.index()]);
            change(&mut self.ports[topology.port(port).reverse.index()]);
        }
    }

    fn converge(&mut self, net: &Net) {
        let works = |faults: &Vec<u8>| faults.iter().map(|&faults| faults == 0).collect();
        let live = Live { ports: works(&self.ports), vertices: works(&self.vertices) };
        if live != self.live {
            self.tables = self.known.tables(&net.plan, &live);
            self.live = live;
        }
    }

    /// It is known now that some vertices have died: if they are hosts their flows fail, even if they have
    /// come back.
    fn take_doomed(&mut self, now: Time, ledger: &Ledger) -> Vec<(u32, Failure)> {
        let mut found = Vec::new();
        while let Some(&(node, _)) = self.doomed.front().filter(|(_, known_at)| *known_at <= now) {
            self.doomed.pop_front();
            found.extend(failures(ledger, |flow| match node {
                _ if flow.src == node => Some(Failure::SourceDied),
                _ if flow.dst == node => Some(Failure::DestinationDied),
                _ => None,
            }));
        }
        found
    }

    /// Routes are known anew: flows to hosts that are dead fail, and if nothing more is to change those to
    /// hosts that no path leads to.
    fn unreachable(&self, ledger: &Ledger) -> Vec<(u32, Failure)> {
        let is_settled = self.steps.is_empty();
        if !is_settled && self.live.vertices.iter().all(|&works| works) {
            return Vec::new();
        }
        let fails = |place: u32| {
            let entry = ledger.get(place);
            let src = entry.flow.src.index();
            let is_dead = self.vertices[src] > 0;
            let is_unknown = is_dead && self.live.vertices[src];
            if entry.life != Life::Open || is_unknown {
                return None;
            }
            let ends = (entry.flow.src, entry.flow.dst);
            let why = hopeless(ends, is_dead, &self.live, &self.tables, is_settled)?;
            Some((place, why))
        };
        ledger.unfinished().filter_map(fails).collect()
    }
}

/// The places of flows under way that fail, as `why` tells.
fn failures(ledger: &Ledger, why: impl Fn(&Flow) -> Option<Failure>) -> Vec<(u32, Failure)> {
    let open = ledger.unfinished().filter(|&place| ledger.get(place).life == Life::Open);
    open.filter_map(|place| Some((place, why(&ledger.get(place).flow)?))).collect()
}
