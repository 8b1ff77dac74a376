//! Tracing at work (X23): IP packets between random TiNs, or reads of their memory, through switches in which a fault is
//! planted, and what the collector makes of the records.
//!
//! Open loop: nobody sends again a packet that is lost. Reads of memory are tried again.

use std::sync::Arc;

use kernel::{Span, Stream, Time};

use super::{Collector, Journey, Reporter, Settings};
use crate::address::{Address, Endpoint};
use crate::config::{Ip, Rma};
use crate::ip::open_loop::{OpenLoop, Packet};
use crate::rma::open_loop::{Issue, OpenLoop as Memory};
use crate::rma::{Access, Kind};
use crate::switch::cell::Watch;
use crate::switch::settings::Settings as SwitchSettings;
use crate::switch::{Endpoints, Switches, Wishes};
use crate::tables::{Row, Tables};
use crate::topology::{Far, Shape, Topology};

/// A fault that nobody tells of.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Planted {
    /// None.
    Nothing,
    /// The link out of a port loses a share of its cells.
    Loss(Far, f64),
    /// An entry of a TiN's tables leads elsewhere: TiN, port, routing channel, component.
    Entry((u16, u8, u8, u16), Row),
}

/// What is sent, or read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    /// How many packets, or reads.
    pub packets: u64,
    /// Their length. Unit: bytes.
    pub length: u16,
    /// From one to the next, in all of the Clique.
    pub gap: Span,
    /// Whether they are traced.
    pub is_traced: bool,
    /// The pod that all of them go to; `None`: they go to any TiN.
    pub pod: Option<u16>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Run<E = OpenLoop> {
    /// The switches, at rest.
    pub switches: Switches<E>,
    /// The collector, which has heard everything.
    pub collector: Collector,
    /// The ways of all traced cells.
    pub journeys: Vec<Journey>,
}

struct Tracing {
    reporters: Vec<Reporter>,
    collector: Collector,
    journeys: Vec<Journey>,
}

/// How often TiNs send what is in no full datagram (our choice).
const FLUSH: Span = Span::from_us(100);

impl Tracing {
    fn flush(&mut self) {
        for datagram in self.reporters.iter_mut().filter_map(Reporter::flush) {
            self.collector.hear(&datagram, &mut self.journeys);
        }
    }

    fn hear<E: Endpoints>(&mut self, switches: &mut Switches<E>) {
        for seen in switches.seen() {
            let full = self.reporters[usize::from(seen.tin)].report(&seen, seen.tick);
            if let Some(datagram) = full {
                self.collector.hear(&datagram, &mut self.journeys);
            }
        }
    }
}

/// A TiN and another, which may have to be in a pod.
fn pair(shape: &Shape, pod: Option<u16>, stream: &mut Stream) -> (u16, u16) {
    let tins = u64::from(shape.tins());
    let from = stream.below(tins) as u16;
    loop {
        let to = match pod {
            None => (from + 1 + stream.below(tins - 1) as u16) % shape.tins(),
            Some(pod) => shape.tin(pod, stream.below(shape.tins_per_pod.into()) as u16),
        };
        if to != from {
            return (from, to);
        }
    }
}

/// The Clique that is meant to be: its wiring and its tables.
type Clique<'a> = (&'a Topology, &'a Arc<Tables>);

/// Sends packets through a Clique whose tables are meant to be `tables`, with a fault in it. `settings` say how many records
/// a TiN may make; all packets are traced, or none.
///
/// # Panics
/// If the fault is at a TiN or port that is not there.
#[must_use]
pub fn run(
    topology: &Topology,
    tables: &Arc<Tables>,
    planted: Planted,
    (load, settings): (&Load, &Settings),
    seed: u64,
) -> Run {
    let shape = *topology.shape();
    let hops = SwitchSettings::default().switch.hops;
    let mut ends = OpenLoop::new(&shape, &Ip::default(), hops, seed);
    ends.trace(load.is_traced);
    let mut send = |ends: &mut OpenLoop, (from, to), at, wishes: &mut Wishes| {
        let host = |tin| {
            let (pod, place) = shape.split(tin);
            Address::new(pod, place, Endpoint::HOST_0).bits()
        };
        let packet = Packet::new((host(from), host(to)), load.length, 3, at);
        ends.send(packet, wishes);
    };
    drive((topology, tables), planted, (load, settings), seed, (ends, &mut send))
}

/// As [`run`], of hosts that read each other's memory: all of the reads are traced, or none.
///
/// # Panics
/// If the fault is at a TiN or port that is not there.
#[must_use]
pub fn run_reads(
    topology: &Topology,
    tables: &Arc<Tables>,
    planted: Planted,
    (load, settings): (&Load, &Settings),
    seed: u64,
) -> Run<Memory> {
    let shape = *topology.shape();
    let own: Vec<u16> = (0..shape.tins()).collect();
    let hops = SwitchSettings::default().switch.hops;
    let ends = Memory::new(&shape, &Rma::default(), &own, hops, seed);
    let mut ask = |ends: &mut Memory, (from, to), at, wishes: &mut Wishes| {
        let access = ends.access((to, 0), Kind::Read, load.length.into());
        let access = Access { watch: Watch::new(load.is_traced, false), ..access };
        ends.ask(Issue { from: (from, 0), access, at, end: None }, wishes);
    };
    drive((topology, tables), planted, (load, settings), seed, (ends, &mut ask))
}

/// What lets a TiN send to another at an instant.
type Send<'a, E> = &'a mut dyn FnMut(&mut E, (u16, u16), Time, &mut Wishes);

fn drive<E: Endpoints>(
    (topology, tables): Clique<'_>,
    planted: Planted,
    (load, settings): (&Load, &Settings),
    seed: u64,
    (ends, send): (E, Send<'_, E>),
) -> Run<E> {
    let shape = *topology.shape();
    let own: Vec<u16> = (0..shape.tins()).collect();
    let installed = match planted {
        Planted::Entry((tin, port, rvc, component), row) => {
            Arc::new(tables.with_entry(tin, port, rvc, component, row))
        }
        _ => Arc::clone(tables),
    };
    let chip = Arc::new(SwitchSettings::default());
    let mut switches = Switches::new(topology, installed, chip, &own, seed, ends);
    if let Planted::Loss(from, share) = planted {
        switches.set_silent_loss(from.tin, from.port, share, seed);
    }
    let reporter = |&tin: &u16| Reporter::new(tin, settings.records_per_second);
    let mut tracing = Tracing {
        reporters: own.iter().map(reporter).collect(),
        collector: Collector::new(topology, Arc::clone(tables)),
        journeys: Vec::new(),
    };
    let mut stream = Stream::new(seed, "aquila/traced", 0);
    let (mut at, mut flush) = (Time::ZERO, Time::ZERO + FLUSH);
    for _ in 0..load.packets {
        let (from, to) = pair(&shape, load.pod, &mut stream);
        switches.run(at);
        switches.act(from, at, |ends, wishes| send(ends, (from, to), at, wishes));
        tracing.hear(&mut switches);
        at += load.gap;
        if at >= flush {
            flush = at + FLUSH;
            tracing.flush();
        }
    }
    // What is tried again may be long after.
    while let Some(next) = switches.next() {
        switches.run(next + FLUSH);
        tracing.hear(&mut switches);
        tracing.flush();
    }
    let Tracing { mut collector, mut journeys, .. } = tracing;
    collector.finish(None, &mut journeys);
    Run { switches, collector, journeys }
}
