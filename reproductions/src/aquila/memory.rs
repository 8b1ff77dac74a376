//! Reads of remote memory by hosts that do not wait for earlier ones, beside packets of IP (§5.1).

use aquila::config::{Ip, Rma};
use aquila::endpoints::Both;
use aquila::ip::open_loop::{OpenLoop as Packets, Packet};
use aquila::rma::Kind;
use aquila::rma::open_loop::{End, Issue, OpenLoop as Memory, Traffic, latencies};
use aquila::switch::Switches;
use aquila::switch::settings::Settings;
use aquila::topology::placement::HostPlace;
use kernel::{Rate, Time};
use serde::{Deserialize, Serialize};

use super::clique::{ACK, BULK, Clique, Uniform, VALUE, quantile, run as run_cells};
use crate::Failure;
use crate::spread::Pulse;

/// A value (§5.1). Unit: bytes.
pub(super) const READ: u32 = 4_096;
/// Packets of a message of 64 KB, and their size.
const MESSAGE: u32 = 16;
const PACKET: u16 = VALUE - 64;

/// What is at TiNs of these experiments.
pub(super) type Ends = Both;

/// A host of memory: TiN and which of the two.
pub(super) type Host = (u16, usize);

/// What a run is to carry.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) settings: Settings,
    pub(super) rma: Rma,
    /// What a host reads of others; bytes of memory.
    pub(super) reads: Rate,
    /// What it sends in messages of 64 KB; nothing, if none.
    pub(super) bulk: Option<Rate>,
    /// What is asked for, sent and carried within is measured; nothing comes later.
    pub(super) window: (Time, Time),
}

/// What a run gave.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Point {
    /// Total execution latency of reads. Unit: s.
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) p999: f64,
    /// Reads that were done within the window, by those that were asked for within it.
    pub(super) achieved: f64,
    /// Reads that failed, or whose first try did.
    pub(super) late: u64,
    /// Bytes of bulk packets that left within the window. Unit: bit/s.
    pub(super) bulk: f64,
}

pub(super) fn host(place: &HostPlace) -> Host {
    (place.tin, usize::from(place.slot))
}

/// Switches with idle IP and memory at every TiN.
pub(super) fn ends(
    clique: &Clique,
    (settings, rma): (&Settings, &Rma),
    seed: u64,
) -> Switches<Ends> {
    let hops = settings.switch.hops;
    let ip = Packets::new(clique.shape(), &Ip::default(), hops, seed);
    clique.carry(settings, Both { ip, memory: memory(clique, rma, hops, seed) }, seed)
}

/// Idle memory at every TiN.
pub(super) fn memory(clique: &Clique, rma: &Rma, hops: u8, seed: u64) -> Memory {
    assert_eq!(rma.check(), [], "the experiments' settings are sound");
    let own: Vec<u16> = (0..clique.shape().tins()).collect();
    Memory::new(clique.shape(), rma, &own, hops, seed)
}

/// Lets these hosts read each other's memory, and send beside it.
pub(super) fn carry(
    clique: &Clique,
    hosts: &[HostPlace],
    case: &Case,
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<Point, Failure> {
    let (from, until) = case.window;
    let mut cells = ends(clique, (&case.settings, &case.rma), seed);
    cells.endpoints_mut().ip.answer_with(ACK);
    let bulk = case.bulk.map(|rate| {
        let uniform = Uniform { rate, packets: MESSAGE, length: PACKET, class: BULK, until };
        let addresses: Vec<u16> = hosts.iter().map(|&place| clique.host(place)).collect();
        uniform.packets(&addresses, seed, "reproductions/aquila/bulk")
    });
    let mut packets = bulk.unwrap_or_default();
    packets.sort_by_key(|packet| packet.at);
    for packet in packets {
        let tin = cells.endpoints().ip.tin(packet.from);
        cells.act(tin, Time::ZERO, |both, wishes| both.ip.send(packet, wishes));
    }
    let reads = Traffic { kind: Kind::Read, length: READ, rate: case.reads, half: None, until };
    let peers: Vec<Host> = hosts.iter().map(host).collect();
    cells.endpoints_mut().memory.set_traffic(reads, peers);
    for tin in 0..clique.shape().tins() {
        cells.act(tin, Time::ZERO, |both, wishes| both.memory.begin(tin, wishes));
    }
    // Until all is done: what is asked for last has its time, too.
    run_cells(&mut cells, Time::NEVER, pulse)?;
    cells.check_home().map_err(Failure::Model)?;
    let Both { ip, memory } = cells.endpoints();
    memory.engine().check_home().map_err(Failure::Model)?;
    let took = latencies(memory.issues(), from, until);
    let is_within = |at: Time| (from..until).contains(&at);
    let done = |issue: &&Issue| matches!(issue.end, Some(End::Done { at, .. }) if is_within(at));
    let asked = memory.issues().iter().filter(|issue| is_within(issue.at)).count();
    let left = |packet: &&Packet| {
        let end = packet.latency().map(|latency| packet.at + latency);
        packet.answers.is_none() && end.is_some_and(is_within)
    };
    let bytes: u64 = ip.packets().iter().filter(left).map(|of| u64::from(of.length)).sum();
    Ok(Point {
        p50: quantile(&took, 0.5),
        p99: quantile(&took, 0.99),
        p999: quantile(&took, 0.999),
        achieved: memory.issues().iter().filter(done).count() as f64 / asked as f64,
        late: memory.counts().late,
        bulk: (bytes * 8) as f64 / (until - from).as_seconds(),
    })
}
