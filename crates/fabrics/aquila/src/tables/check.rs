//! A proof, from the installed tables alone, that cells cannot wait for each other in a circle and that all
//! arrive.
//!
//! Models: Aquila §3.2 (M307, M318; I20, I22, I23, I25, I27, I29). It asks nothing of how the tables came to
//! be: [`circle`] builds the graph of channels that wait for each other from every entry of every port, and
//! [`check`] follows every move that a cell may make, from every TiN to every other.

use std::fmt;

use thiserror::Error;

use super::condition::State;
use super::{Component, Condition, NONE, ROUTING_VCS, Row, Tables, component, next_rvc};
use crate::address::{Address, Endpoint};
use crate::tables::slots::ports;
use crate::topology::{PortKind, Topology};
use crate::turns::{self, HopType, TurnTable};

/// Most links of a way on ordinary channels (M318): two in each of three pods, and two between them.
pub const LINKS_MAX: u8 = 8;

/// A directed link and a channel on it: where cells wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// The TiN that sends.
    pub tin: u16,
    /// Its port.
    pub port: u8,
    /// The routing channel; [`ROUTING_VCS`]: an escape channel.
    pub rvc: u8,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tin, port, rvc } = self;
        match *rvc {
            ROUTING_VCS => write!(f, "port {port} of TiN {tin} on the escape channel"),
            rvc => write!(f, "port {port} of TiN {tin} on channel {rvc}"),
        }
    }
}

/// Where a cell is: the port it came in at (the first terminal port if it was injected) and its channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The TiN.
    pub tin: u16,
    /// The input port.
    pub port: u8,
    /// The routing channel that it came on.
    pub rvc: u8,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tin, port, rvc } = self;
        write!(f, "TiN {tin}, input port {port}, channel {rvc}")
    }
}

/// What is wrong with tables.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Flaw {
    /// Channels wait for each other.
    #[error("a circle of channels that wait for each other: {}", list(.0))]
    Circle(Vec<Wait>),
    /// An entry names a port at which nothing lives.
    #[error("{place}: an entry names port {output}, which leads nowhere")]
    DeadEnd {
        /// Whose entry.
        place: Place,
        /// The port.
        output: u8,
    },
    /// An entry sends a cell back to the TiN it came from.
    #[error("{place}: an entry sends back by port {output}")]
    SentBack {
        /// Whose entry.
        place: Place,
        /// The port.
        output: u8,
    },
    /// An entry needs a channel above the last.
    #[error("{place}: an entry needs channel {} for port {output}", ROUTING_VCS)]
    NoChannel {
        /// Whose entry.
        place: Place,
        /// The port.
        output: u8,
    },
    /// An entry takes a turn that the table of turns forbids.
    #[error("{place}: an entry takes a forbidden turn to port {output}")]
    Turn {
        /// Whose entry.
        place: Place,
        /// The port.
        output: u8,
    },
    /// A cell in its destination's pod is sent out of it.
    #[error("{place}: an entry leaves the destination's pod by port {output}")]
    Leaves {
        /// Whose entry.
        place: Place,
        /// The port.
        output: u8,
    },
    /// A way has too many links.
    #[error("a way from {place} has {links} links; expected {LINKS_MAX} at the most")]
    TooLong {
        /// Where it begins.
        place: Place,
        /// Its links.
        links: u8,
    },
    /// An escape does not arrive, or goes up after it came down: a black hole (I25) where entries end.
    #[error("the escape from TiN {from} to TiN {to} goes wrong at TiN {at}")]
    Escape {
        /// Where it begins.
        from: u16,
        /// Where it should end.
        to: u16,
        /// Where it goes wrong.
        at: u16,
    },
}

fn list(waits: &[Wait]) -> String {
    waits.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// What was found of tables without flaw.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Links of the longest way on ordinary channels.
    pub longest: u8,
    /// The same in modes that take shortest ways alone.
    pub longest_minimal: u8,
    /// Links of the longest escape.
    pub longest_escape: u8,
    /// Places, with their destinations, from which cells must take an escape channel.
    pub escapes: u64,
    /// The same in modes that take shortest ways alone.
    pub escapes_minimal: u64,
    /// Ordered pairs of TiNs that live, and between which failures have left no link at all.
    pub cut_off: u64,
}

/// Checks tables: everything that this module proves.
///
/// # Errors
/// The first flaw.
pub fn check(
    topology: &Topology,
    turns: &TurnTable,
    condition: &Condition,
    tables: &Tables,
) -> Result<Report, Flaw> {
    if let Some(circle) = circle(topology, tables) {
        return Err(Flaw::Circle(circle));
    }
    let mut report =
        Report { longest_escape: escapes(topology, condition, tables)?, ..Report::default() };
    for ways in [Ways::All, Ways::Shortest] {
        let mut walk = Walk::new(topology, turns, condition, tables, ways);
        for pod in 0..topology.shape().pods {
            walk.pod(pod)?;
        }
        match ways {
            Ways::All => {
                (report.longest, report.escapes) = (walk.longest, walk.escapes);
                report.cut_off = walk.cut_off;
            }
            Ways::Shortest => {
                (report.longest_minimal, report.escapes_minimal) = (walk.longest, walk.escapes);
            }
        }
    }
    Ok(report)
}

/// Channels that wait for each other in a circle, in order; `None`: there are none (I20).
///
/// A channel waits for all on which any entry of its port sends cells on, whatever their destination, whether
/// such a cell can be there or not. A cell may change from an ordinary channel to an escape channel, and
/// never back: so no circle has both.
#[must_use]
pub fn circle(topology: &Topology, tables: &Tables) -> Option<Vec<Wait>> {
    let ends: Vec<(u16, u8)> = topology
        .links()
        .iter()
        .flat_map(|link| [(link.low.tin, link.low.port), (link.high.tin, link.high.port)])
        .collect();
    let channels = usize::from(ROUTING_VCS) + 1;
    // Output ports by channel of a link, at the TiN where it ends.
    let onward: Vec<u64> = (0..ends.len() * channels)
        .map(|node| {
            let (tin, port) = ends[node / channels];
            let far = topology.far(tin, port).expect("the end of a link");
            match (node % channels) as u8 {
                ROUTING_VCS => escape_outputs(tables, tin, far.tin),
                rvc => outputs(tables, far.tin, far.port, rvc),
            }
        })
        .collect();
    let next = |node: usize| {
        let (tin, port) = ends[node / channels];
        let far = topology.far(tin, port).expect("the end of a link");
        let rvc = (node % channels) as u8;
        ports(onward[node]).filter_map(move |output| {
            let channel = topology.channel(far.tin, output)? as usize;
            let next = match rvc {
                ROUTING_VCS => rvc,
                rvc => next_rvc(topology.kind(far.port), topology.kind(output), rvc),
            };
            // An entry that needs a channel above the last is another flaw.
            (next <= ROUTING_VCS).then_some(channel * channels + usize::from(next))
        })
    };
    let circle = turns::circle(onward.len(), next)?;
    let wait = |node: usize| {
        let (tin, port) = ends[node / channels];
        Wait { tin, port, rvc: (node % channels) as u8 }
    };
    Some(circle.into_iter().map(wait).collect())
}

/// All ports that any entry of an input port and channel names.
fn outputs(tables: &Tables, tin: u16, port: u8, rvc: u8) -> u64 {
    let block = tables.block(tin, port, rvc);
    let rows =
        (0..super::components(tables.shape())).map(|component| tables.entry(block, component));
    rows.fold(0, |mask, row| {
        let row = tables.by_index(row);
        mask | row.minimal_ports() | row.other_ports()
    })
}

/// All ports by which escapes go on that came from one TiN to another.
fn escape_outputs(tables: &Tables, from: u16, to: u16) -> u64 {
    let has_come_down = tables.escapes().is_down(from, to);
    let destinations = (0..tables.shape().tins()).filter(|&destination| destination != to);
    let outputs = destinations.map(|destination| tables.escape(to, has_come_down, destination));
    outputs.filter(|&port| port != NONE).fold(0, |mask, port| mask | 1 << port)
}

/// Follows every escape; returns the links of the longest.
fn escapes(topology: &Topology, condition: &Condition, tables: &Tables) -> Result<u8, Flaw> {
    let tins = 0..topology.shape().tins();
    let mut longest = 0;
    for from in tins.clone().filter(|&tin| tables.escapes().has(tin)) {
        for to in tins.clone().filter(|&tin| tables.escapes().has(tin)) {
            let (mut at, mut has_come_down, mut links) = (from, false, 0);
            while at != to {
                let flaw = Flaw::Escape { from, to, at };
                let port = tables.escape(at, has_come_down, to);
                let far = lives(topology, condition, at, port).ok_or_else(|| flaw.clone())?;
                let is_down = tables.escapes().is_down(at, far.tin);
                if has_come_down && !is_down || links == u8::MAX {
                    return Err(flaw);
                }
                (at, has_come_down, links) = (far.tin, is_down, links + 1);
            }
            longest = longest.max(links);
        }
    }
    Ok(longest)
}

/// What a port leads to, if neither it nor the link is dead.
fn lives(
    topology: &Topology,
    condition: &Condition,
    tin: u16,
    port: u8,
) -> Option<crate::topology::Far> {
    let (link, far) = (topology.link(tin, port)?, topology.far(tin, port)?);
    let is_dead = condition.link(link) == State::Dead || condition.tin(far.tin) == State::Dead;
    (!is_dead).then_some(far)
}

/// Which slots a cell may take.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ways {
    All,
    Shortest,
}

/// Every move that a cell may make.
struct Walk<'a> {
    topology: &'a Topology,
    turns: &'a TurnTable,
    condition: &'a Condition,
    tables: &'a Tables,
    ways: Ways,
    /// The first terminal port: that of cells that were injected.
    terminal: u8,
    /// By place: the links of the longest way from there to the destination at hand; `None`: not visited.
    links: Vec<Option<u8>>,
    /// Places that were visited, so that they can be cleared.
    visited: Vec<usize>,
    longest: u8,
    escapes: u64,
    cut_off: u64,
}

/// A place from which ways are being followed: what is left of its moves, and the longest way so far.
struct Open {
    place: Place,
    moves: u64,
    longest: u8,
}

impl<'a> Walk<'a> {
    fn new(
        topology: &'a Topology,
        turns: &'a TurnTable,
        condition: &'a Condition,
        tables: &'a Tables,
        ways: Ways,
    ) -> Self {
        let shape = topology.shape();
        let terminal = shape.external_ports();
        let places =
            usize::from(shape.tins()) * usize::from(terminal + 1) * usize::from(ROUTING_VCS);
        Self {
            topology,
            turns,
            condition,
            tables,
            ways,
            terminal,
            links: vec![None; places],
            visited: Vec::new(),
            longest: 0,
            escapes: 0,
            cut_off: 0,
        }
    }

    fn index(&self, place: Place) -> usize {
        let port =
            usize::from(place.tin) * usize::from(self.terminal + 1) + usize::from(place.port);
        port * usize::from(ROUTING_VCS) + usize::from(place.rvc)
    }

    /// Every way to every TiN of a pod. Outside of the pod ways are those to any of its TiNs; what comes in is
    /// then followed to each.
    fn pod(&mut self, pod: u16) -> Result<(), Flaw> {
        let shape = *self.topology.shape();
        let lives = |tin: &u16| self.condition.tin(*tin) != State::Dead;
        let inside: Vec<u16> =
            (0..shape.tins_per_pod).map(|at| shape.tin(pod, at)).filter(lives).collect();
        let outside: Vec<u16> =
            (0..shape.tins()).filter(|&tin| shape.split(tin).0 != pod).filter(lives).collect();
        if inside.is_empty() {
            return Ok(());
        }
        let injected = |tin: u16| Place { tin, port: self.terminal, rvc: 0 };
        let sources: Vec<Place> = outside.into_iter().map(injected).collect();
        let own: Vec<Place> = inside.iter().copied().map(injected).collect();
        let entries = self.follow(&sources, To::Pod(pod, &inside))?;
        // How many links each entry has before it, is known only once those behind it are: so count those
        // to the entry, and those from there, apart.
        let to_entry = self.finish();
        let mut from_entry = 0;
        for &destination in &inside {
            let starts: Vec<Place> = own.iter().chain(&entries).copied().collect();
            self.follow(&starts, To::Tin(destination))?;
            from_entry = from_entry.max(self.finish());
        }
        let links = to_entry + from_entry;
        self.longest = self.longest.max(links);
        if links > LINKS_MAX {
            let place = sources.first().or(own.first()).copied();
            let place = place.expect("some TiN sends");
            return Err(Flaw::TooLong { place, links });
        }
        Ok(())
    }

    /// The longest way of those that were followed, which are forgotten.
    fn finish(&mut self) -> u8 {
        let mut longest = 0;
        for place in self.visited.drain(..) {
            longest = longest.max(self.links[place].take().unwrap_or(0));
        }
        longest
    }

    /// Follows all ways from some places; returns where they enter the destination's pod.
    fn follow(&mut self, starts: &[Place], to: To<'_>) -> Result<Vec<Place>, Flaw> {
        let mut entries: Vec<Place> = Vec::new();
        let mut path: Vec<Open> = Vec::new();
        for &start in starts {
            self.open(start, to, &mut path)?;
            while let Some(open) = path.last_mut() {
                let (place, moves) = (open.place, open.moves);
                if moves == 0 {
                    let longest = open.longest;
                    path.pop();
                    let index = self.index(place);
                    self.links[index] = Some(longest);
                    if let Some(before) = path.last_mut() {
                        before.longest = before.longest.max(longest + 1);
                    }
                    continue;
                }
                open.moves &= moves - 1;
                let next = self.step(place, moves.trailing_zeros() as u8)?;
                let is_entry = matches!(to, To::Pod(pod, _) if self.pod_of(next.tin) == pod);
                let seen = self.links[self.index(next)];
                if is_entry && seen.is_none() {
                    entries.push(next);
                    let index = self.index(next);
                    self.links[index] = Some(0);
                    self.visited.push(index);
                }
                let is_new = !is_entry && seen.is_none();
                if is_new {
                    self.open(next, to, &mut path)?;
                } else if let Some(open) = path.last_mut() {
                    open.longest = open.longest.max(1 + seen.unwrap_or(0));
                }
            }
        }
        Ok(entries)
    }

    fn pod_of(&self, tin: u16) -> u16 {
        self.topology.shape().split(tin).0
    }

    /// Visits a place: what may follow is next, unless the cell is there or has to escape.
    fn open(&mut self, place: Place, to: To<'_>, path: &mut Vec<Open>) -> Result<(), Flaw> {
        let index = self.index(place);
        if self.links[index].is_some() {
            return Ok(());
        }
        self.links[index] = Some(0);
        self.visited.push(index);
        if matches!(to, To::Tin(tin) if tin == place.tin) {
            arrived(path);
            return Ok(());
        }
        let row = self.row(place, to);
        let moves = match self.ways {
            Ways::All => row.minimal_ports() | row.other_ports(),
            Ways::Shortest => row.minimal_ports(),
        };
        if moves == 0 {
            self.escape(place, to);
            arrived(path);
            return Ok(());
        }
        if let To::Tin(tin) = to {
            self.stays(place, tin, moves)?;
        }
        path.push(Open { place, moves, longest: 0 });
        Ok(())
    }

    fn row(&self, place: Place, to: To<'_>) -> &Row {
        let shape = self.topology.shape();
        let (pod, own) = shape.split(place.tin);
        let (to_pod, to_place) = match to {
            To::Pod(pod, _) => (pod, 0),
            To::Tin(tin) => shape.split(tin),
        };
        let address = Address::new(to_pod, to_place, Endpoint::ANY);
        match component(shape, pod, own, address) {
            Component::Far(component) => {
                let block = self.tables.block(place.tin, place.port, place.rvc);
                self.tables.by_index(self.tables.entry(block, component))
            }
            Component::Own(_) | Component::Unknown => &Row::EMPTY,
        }
    }

    /// Cells for a TiN of the pod that they are in stay there.
    fn stays(&self, place: Place, destination: u16, moves: u64) -> Result<(), Flaw> {
        let pod = self.pod_of(destination);
        let leaves = |&output: &u8| {
            self.topology.far(place.tin, output).is_some_and(|far| self.pod_of(far.tin) != pod)
        };
        match ports(moves).find(leaves) {
            Some(output) => Err(Flaw::Leaves { place, output }),
            None => Ok(()),
        }
    }

    /// No entry leads on: the escape channels must. That they do between all that they join, has been seen.
    fn escape(&mut self, place: Place, to: To<'_>) {
        let destinations = match &to {
            To::Pod(_, tins) => *tins,
            To::Tin(tin) => std::slice::from_ref(tin),
        };
        for &destination in destinations {
            if self.tables.escape(place.tin, false, destination) != NONE {
                self.escapes += 1;
            } else {
                self.cut_off += u64::from(place.port == self.terminal);
            }
        }
    }

    /// Where a move leads, if it is one that a cell may make.
    fn step(&self, place: Place, output: u8) -> Result<Place, Flaw> {
        let far = lives(self.topology, self.condition, place.tin, output)
            .ok_or(Flaw::DeadEnd { place, output })?;
        let before = self.topology.far(place.tin, place.port);
        if before.is_some_and(|before| before.tin == far.tin) {
            return Err(Flaw::SentBack { place, output });
        }
        let (from, to) = (self.topology.kind(place.port), self.topology.kind(output));
        let rvc = next_rvc(from, to, place.rvc);
        // A link between pods on the last channel would need one more behind it.
        if rvc >= ROUTING_VCS || (rvc + 1 == ROUTING_VCS && to == PortKind::Global) {
            return Err(Flaw::NoChannel { place, output });
        }
        if let (PortKind::Local, PortKind::Local, Some(before)) = (from, to, before) {
            let at = |tin: u16| self.topology.shape().split(tin).1;
            let first = HopType::of(at(before.tin), at(place.tin));
            if !self.turns.allows(first, HopType::of(at(place.tin), at(far.tin))) {
                return Err(Flaw::Turn { place, output });
            }
        }
        Ok(Place { tin: far.tin, port: far.port, rvc })
    }
}

/// The link to a place at which ways end counts for the place before it.
fn arrived(path: &mut [Open]) {
    if let Some(open) = path.last_mut() {
        open.longest = open.longest.max(1);
    }
}

/// What ways lead to.
#[derive(Clone, Copy)]
enum To<'a> {
    /// Any of these TiNs, which are those of a pod.
    Pod(u16, &'a [u16]),
    /// A TiN.
    Tin(u16),
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
