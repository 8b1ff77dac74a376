//! Planted faults, and what the collector makes of them (X23); the switches' records (I93).

use std::sync::Arc;

use kernel::{Span, Stream};
use proptest::prelude::*;

use super::*;
use crate::address::{Address, Endpoint};
use crate::cells::ip::Rts;
use crate::link::classes::{CellKind, class_of, vc};
use crate::switch::cell::Cell;
use crate::switch::traced::{NOWHERE, Seen};
use crate::tables::{self, Component, Condition, Row, Tables, compute::compute};
use crate::topology::{Far, Fibres, PortKind, Shape, Topology};
use crate::turns::TurnTable;

/// A Clique with its tables as they are meant to be.
struct Clique {
    topology: Topology,
    tables: Arc<Tables>,
}

impl Clique {
    fn new(shape: &Shape) -> Self {
        let topology = Topology::new(shape, Fibres::Metres(30)).unwrap();
        let tables = compute(&topology, &TurnTable::P1, &Condition::healthy(&topology));
        Self { topology, tables: Arc::new(tables) }
    }

    fn shape(&self) -> &Shape {
        self.topology.shape()
    }

    fn address(&self, tin: u16) -> Address {
        let (pod, place) = self.shape().split(tin);
        Address::new(pod, place, Endpoint::HOST_0)
    }

    /// Links that lead from a TiN's port to another's, in that direction.
    fn links(&self) -> Vec<(Far, Far)> {
        let both = |link: &crate::topology::Link| [(link.low, link.high), (link.high, link.low)];
        self.topology.links().iter().flat_map(both).collect()
    }
}

/// What is wrong with a Clique.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    None,
    /// A link loses a share of its cells.
    Loses(Far, f64),
    /// A TiN swallows a share of what comes.
    Swallows(u16, f64),
    /// A TiN loses a share of what leaves.
    Spills(u16, f64),
    /// The cables of two ports are swapped.
    Swapped(Far, Far),
}

/// Cells that go through tables without queues, and whose records are lost now and then.
struct Walk<'a> {
    clique: &'a Clique,
    /// What is installed, which may not be what is meant.
    installed: &'a Tables,
    fault: Fault,
    records_lost: f64,
    stream: Stream,
    reporters: Vec<Reporter>,
    collector: Collector,
    closed: Vec<Journey>,
    tick: u64,
    /// TiN, port, channel and component of an entry, and how often it was looked up.
    watched: Option<(u16, u8, u8, u16)>,
    met: u64,
}

impl<'a> Walk<'a> {
    fn new(clique: &'a Clique, installed: &'a Tables, fault: Fault, seed: u64) -> Self {
        let tins = clique.shape().tins();
        Self {
            clique,
            installed,
            fault,
            records_lost: 0.0,
            stream: Stream::new(seed, "test/walk", 0),
            reporters: (0..tins).map(|tin| Reporter::new(tin, 100_000_000)).collect(),
            collector: Collector::new(&clique.topology, Arc::clone(&clique.tables)),
            closed: Vec::new(),
            tick: 0,
            watched: None,
            met: 0,
        }
    }

    /// A way on: any slot, as an adaptive switch may take any; `None`: there is none.
    fn next(&mut self, tin: u16, port: u8, channel: u8, cell: &Cell) -> Option<(u8, u8)> {
        let shape = self.clique.shape();
        let (pod, place) = shape.split(tin);
        let (class, rvc) = class_of(channel).expect("no escapes in these tests");
        let row = match tables::component(shape, pod, place, Address::from_bits(cell.to)) {
            Component::Own(endpoint) => self.installed.terminals(endpoint),
            Component::Far(component) => {
                self.met += u64::from(self.watched == Some((tin, port, rvc, component)));
                let block = self.installed.block(tin, port, rvc);
                self.installed.by_index(self.installed.entry(block, component))
            }
            Component::Unknown => return None,
        };
        let ports = [&row.minimal[..], &row.minimal[..], &row.others[..]].concat();
        let ports: Vec<u8> = ports.into_iter().filter(|&port| port != tables::NONE).collect();
        let output = *ports.get(self.stream.below(ports.len().max(1) as u64) as usize)?;
        let is_raised = shape.kind(port) == PortKind::Global && output < shape.external_ports();
        let rvc = rvc + u8::from(is_raised);
        (rvc < 3).then(|| (output, vc(class, rvc)))
    }

    fn tell(&mut self, seen: &Seen) {
        let full = self.reporters[usize::from(seen.tin)].report(seen, self.tick);
        let full = full.filter(|_| !self.stream.bernoulli(self.records_lost));
        full.into_iter().for_each(|datagram| self.collector.hear(&datagram, &mut self.closed));
    }

    /// Where a link leads.
    fn far(&self, from: Far) -> Option<Far> {
        let from = match self.fault {
            Fault::Swapped(one, two) if from == one => two,
            Fault::Swapped(one, two) if from == two => one,
            _ => from,
        };
        self.clique.topology.far(from.tin, from.port)
    }

    fn loses(&mut self, from: Far, to: Far) -> bool {
        let share = match self.fault {
            Fault::Loses(link, share) if link == from => share,
            Fault::Swallows(tin, share) if tin == to.tin => share,
            Fault::Spills(tin, share) if tin == from.tin => share,
            _ => return false,
        };
        self.stream.bernoulli(share)
    }

    /// A traced cell from a TiN to another.
    fn send(&mut self, from: u16, to: u16) {
        let (mut tin, mut port) = (from, self.clique.shape().external_ports());
        let rts = Rts { length: (self.tick % 9_000) as u16, ..Rts::default() };
        let (source, to) = (self.clique.address(from), self.clique.address(to));
        let (kind, class) = (CellKind::Rts, 7);
        let mut channel = vc(class, 0);
        let mut hops = 16;
        loop {
            self.tick += 7;
            let cell = Cell::new(source.bits(), to.bits(), class, kind as u8, 2, hops);
            let cell = cell.with_payload(rts.word()).traced(true);
            let (input, input_vc) = (port, channel);
            let next = self.next(tin, port, channel, &cell);
            let (output, output_vc) = match (next, hops) {
                (Some(next), 1..) => next,
                _ => (NOWHERE, channel),
            };
            hops -= u8::from(output != NOWHERE);
            let cell = Cell::new(source.bits(), to.bits(), class, kind as u8, 2, hops);
            let cell = cell.with_payload(rts.word()).traced(true);
            let tick = self.tick;
            self.tell(&Seen { tick, tin, input, input_vc, output, output_vc, cell });
            let here = Far { tin, port: output };
            let Some(far) = self.far(here) else { return };
            if self.loses(here, far) {
                return;
            }
            (tin, port, channel) = (far.tin, far.port, output_vc);
        }
    }

    /// Cells between random TiNs, or those to one pod or place.
    fn send_many(&mut self, count: usize, to: impl Fn(u16) -> bool) {
        let tins = self.clique.shape().tins();
        for _ in 0..count {
            let (from, there) = (self.stream.below(tins.into()), self.stream.below(tins.into()));
            if from != there && to(there as u16) {
                self.send(from as u16, there as u16);
            }
        }
    }

    fn suspects(&mut self) -> Vec<Suspect> {
        for reporter in &mut self.reporters {
            let last = reporter.flush();
            last.into_iter().for_each(|datagram| self.collector.hear(&datagram, &mut self.closed));
        }
        self.collector.finish(None, &mut self.closed);
        self.collector.suspects()
    }

    fn culprits(&mut self) -> Vec<Culprit> {
        self.suspects().into_iter().map(|suspect| suspect.culprit).collect()
    }
}

/// X23: every link of the tiny Clique, in both directions, loses half of its cells; it alone is named.
#[test]
fn slow_x23_every_link_that_loses_cells_is_named() {
    let clique = Clique::new(&Shape::TINY);
    for (seed, (from, _)) in clique.links().into_iter().enumerate() {
        let mut walk = Walk::new(&clique, &clique.tables, Fault::Loses(from, 0.5), seed as u64);
        walk.send_many(6_000, |_| true);
        let link = Culprit::Link { tin: from.tin, port: from.port };
        assert_eq!(walk.culprits(), [link], "{from:?}");
    }
}

/// X23: every TiN of the tiny Clique swallows, or spills, half of its cells; it is named and none of its links.
#[test]
fn x23_every_tin_that_loses_cells_is_named() {
    let clique = Clique::new(&Shape::TINY);
    for tin in 0..clique.shape().tins() {
        for (fault, culprit) in [
            (Fault::Swallows(tin, 0.5), Culprit::Inputs(tin)),
            (Fault::Spills(tin, 0.5), Culprit::Outputs(tin)),
        ] {
            let mut walk = Walk::new(&clique, &clique.tables, fault, tin.into());
            walk.send_many(1_000, |_| true);
            assert_eq!(walk.culprits(), [culprit], "{fault:?}");
        }
    }
}

/// X23: every entry of the tiny Clique that cells use leads to some port that it should not, and it alone is named.
/// Wrong ports lead back, to other pods, to other endpoints' terminals, and to where nothing is plugged in.
#[test]
fn slow_x23_every_wrong_entry_is_named() {
    let clique = Clique::new(&Shape::TINY);
    let shape = *clique.shape();
    let mut stream = Stream::new(1, "test/entries", 0);
    let mut found = 0;
    for tin in 0..shape.tins() {
        for port in (0..shape.ports()).filter(|&port| port <= shape.external_ports()) {
            for rvc in 0..3 {
                for component in 0..tables::components(&shape) {
                    let entry = clique.tables.entry(clique.tables.block(tin, port, rvc), component);
                    let row = clique.tables.by_index(entry);
                    if row.is_empty() {
                        continue;
                    }
                    let right = row.minimal_ports() | row.other_ports();
                    let wrong = (0..shape.ports()).filter(|&port| right >> port & 1 == 0);
                    let wrong: Vec<u8> = wrong.collect();
                    let wrong = wrong[stream.below(wrong.len() as u64) as usize];
                    let row = Row { minimal: [wrong; 8], ..Row::EMPTY };
                    let installed = clique.tables.with_entry(tin, port, rvc, component, row);
                    let mut walk = Walk::new(&clique, &installed, Fault::None, entry.into());
                    let is_there = |to: u16| match shape.split(to) {
                        (pod, _) if pod != shape.split(tin).0 => pod == component,
                        (_, place) => shape.pods + place == component,
                    };
                    walk.watched = Some((tin, port, rvc, component));
                    walk.send_many(3_000, is_there);
                    let culprits = walk.culprits();
                    let culprit = Culprit::Entry { tin, port, rvc, component };
                    let expected = if walk.met >= 2 { vec![culprit] } else { Vec::new() };
                    assert_eq!(culprits, expected, "{culprit:?} leads to {wrong}");
                    found += u32::from(walk.met >= 2);
                }
            }
        }
    }
    assert!(found > 900, "{found} entries are in use");
}

/// A TiN that swallows everything and tells nothing is named all the same.
#[test]
fn x23_a_tin_that_is_silent_is_named() {
    let clique = Clique::new(&Shape::TINY);
    let mut walk = Walk::new(&clique, &clique.tables, Fault::Swallows(7, 1.0), 3);
    for round in 0..4_000u16 {
        let (from, to) = (round % 18, (round / 18 + 1) % 18);
        if from != 7 && from != to {
            walk.send(from, to);
        }
    }
    assert_eq!(walk.culprits(), [Culprit::Inputs(7)]);
}

/// Cables that are swapped come out where they should not: both, in both directions, are named, also where a tenth of all
/// records is lost.
#[test]
fn x23_swapped_cables_are_named() {
    let clique = Clique::new(&Shape::TINY);
    let links = clique.links();
    for (at, &(one, _)) in links.iter().enumerate().step_by(29) {
        let (two, _) = links[(at + 31) % links.len()];
        let swapped = Fault::Swapped(one, two);
        let mut walk = Walk::new(&clique, &clique.tables, swapped, 1);
        walk.records_lost = if at % 2 == 0 { 0.0 } else { 0.1 };
        walk.send_many(4_000, |_| true);
        let suspects = walk.culprits();
        for far in [one, two] {
            let culprit = Culprit::Wiring { tin: far.tin, port: far.port };
            assert!(suspects.contains(&culprit), "{culprit:?} in {suspects:?}");
        }
        let is_wiring = |&culprit: &Culprit| matches!(culprit, Culprit::Wiring { .. });
        assert!(suspects.iter().all(is_wiring), "{one:?}, {two:?}: {suspects:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Nobody is named where nothing is broken, also where many records are lost.
    #[test]
    fn slow_x23_nothing_sound_is_named(seed: u64, records_lost in 0.0..0.5f64) {
        let clique = Clique::new(&Shape::TINY);
        let mut walk = Walk::new(&clique, &clique.tables, Fault::None, seed);
        walk.records_lost = records_lost;
        walk.send_many(4_000, |_| true);
        prop_assert_eq!(walk.culprits(), []);
        prop_assert_eq!(walk.collector.heard().refused, 0);
    }

    /// A fault of any strength is named first, or not at all where cells are too few to tell; a strong one is named. Where a
    /// tenth of all records is lost a weak one may look like one of its links, and nothing that is sound is named.
    #[test]
    fn slow_x23_faults_of_the_mini_are_named(seed: u64, share in 0.02..1.0f64, kind in 0..3u8) {
        let clique = Clique::new(&Shape::MINI);
        let mut stream = Stream::new(seed, "test/fault", 0);
        let links = clique.links();
        let (link, _) = links[stream.below(links.len() as u64) as usize];
        let (fault, culprit) = match kind {
            0 => (Fault::Loses(link, share), Culprit::Link { tin: link.tin, port: link.port }),
            1 => (Fault::Swallows(link.tin, share), Culprit::Inputs(link.tin)),
            _ => (Fault::Spills(link.tin, share), Culprit::Outputs(link.tin)),
        };
        let mut walk = Walk::new(&clique, &clique.tables, fault, seed);
        let is_lossy = seed % 2 == 0;
        walk.records_lost = if is_lossy { 0.1 } else { 0.0 };
        walk.send_many(10_000, |_| true);
        let culprits = walk.culprits();
        if share > 0.5 && !is_lossy {
            prop_assert_eq!(culprits.first(), Some(&culprit), "{:?}", fault);
        } else if let (Some(first), false) = (culprits.first(), is_lossy) {
            prop_assert_eq!(first, &culprit, "{:?}", fault);
        }
        let is_of_tin = |other: &Culprit| match *other {
            Culprit::Link { tin, port } => {
                let far = clique.topology.far(tin, port).map(|far| far.tin);
                tin == link.tin || far == Some(link.tin)
            }
            Culprit::Inputs(tin) | Culprit::Outputs(tin) => tin == link.tin,
            _ => false,
        };
        prop_assert!(culprits.iter().all(is_of_tin), "{:?}: {:?}", fault, culprits);
    }

    /// Any bytes, and records of any content: no panic, nothing but refused or unknown.
    #[test]
    fn m902_any_bytes_are_heard_without_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        (tin, input, output) in (0..30u16, any::<u8>(), any::<u8>()),
        (input_vc, hops, ticks) in (any::<u8>(), 0..32u8, 0..1u64 << 48),
        (to, from) in any::<(u16, u16)>(),
    ) {
        let clique = Clique::new(&Shape::TINY);
        let mut collector = Collector::new(&clique.topology, Arc::clone(&clique.tables));
        let mut closed = Vec::new();
        collector.hear(&bytes, &mut closed);
        let cell = Cell::new(from, to, 0, 3, 20, hops).traced(true);
        let mut reporter = Reporter::new(tin, 10_000);
        for turn in 0..3u64 {
            let seen = Seen { tick: 0, tin, input, output, input_vc, output_vc: input_vc % 32, cell };
            reporter.report(&seen, ticks.wrapping_mul(turn));
        }
        let datagram = reporter.flush().unwrap();
        collector.hear(&datagram, &mut closed);
        collector.hear(&datagram, &mut closed);
        collector.finish(None, &mut closed);
        prop_assert!(collector.suspects().len() <= 3);
        let heard = collector.heard();
        prop_assert_eq!(heard.refused + heard.records + heard.copies + heard.late,
            bytes.len().div_ceil(48) as u64 + 6);
    }
}

#[test]
fn m903_one_packet_in_so_many_is_traced() {
    for one_in in [1, 2, 7, 1_000] {
        let mut sampler = Sampler::new(one_in, 3, 1);
        let count = (0..1_000_000).filter(|_| sampler.takes()).count() as f64;
        let mean = 1e6 / f64::from(one_in);
        // Gaps have a variance of (n^2 - n) / 3; five standard errors of their number.
        let n = f64::from(one_in);
        let error = (1e6 * (n * n - n) / 3.0 / (n * n * n)).sqrt();
        assert!((count - mean).abs() <= 5.0 * error + 1.0, "{count} for {mean}");
    }
    let mut none = Sampler::new(0, 3, 1);
    assert!((0..1_000).all(|_| !none.takes()));
}

#[test]
fn m902_a_tin_makes_no_more_records_than_it_may() {
    let mut reporter = Reporter::new(3, 10_000);
    let cell = Cell::new(0, 1 << 10, 0, 0, 2, 15).traced(true);
    let mut bytes = 0;
    // A traced cell each microsecond for a second, at 400 ticks each.
    for cell_number in 0..1_000_000u64 {
        let tick = cell_number * 400;
        let seen = Seen { tick, tin: 3, input: 16, input_vc: 0, output: 0, output_vc: 0, cell };
        let datagram = reporter.report(&seen, tick);
        assert!(datagram.as_ref().is_none_or(|datagram| datagram.len() <= DATAGRAM_BYTES));
        bytes += datagram.map_or(0, |datagram| datagram.len());
    }
    bytes += reporter.flush().map_or(0, |datagram| datagram.len());
    // Those of a second less a microsecond, and the burst.
    assert_eq!(bytes / 48, 10_999);
}

mod with_switches;
