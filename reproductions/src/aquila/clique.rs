//! Cliques without hosts, as most experiments run them: switches, and IP packets or bare cells at their ends.

use std::sync::Arc;

use aquila::address::{Address, Endpoint};
use aquila::config::Ip;
use aquila::ip::open_loop::{OpenLoop, Packet};
use aquila::raw::{Raw, Traffic};
use aquila::switch::blocks::{Blocks, best};
use aquila::switch::settings::Settings;
use aquila::switch::{Endpoints, Switches};
use aquila::tables::{Condition, Tables, compute::compute};
use aquila::topology::placement::{HostPlace, Placement, places};
use aquila::topology::{Fibres, Shape, Topology};
use aquila::turns::TurnTable;
use kernel::{Bytes, Rate, Span, Stream, Time};

use crate::Failure;
use crate::spread::Pulse;

/// Hosts of the testbed (§5.1).
pub(super) const HOSTS: u32 = 500;
/// A value of 4 KB with what is around it: one packet (our choice, U31).
pub(super) const VALUE: u16 = 4_160;
/// An acknowledgment (our choice).
pub(super) const ACK: u16 = 64;
/// The class of service of what is not urgent (our choice, M427), and that of what is.
pub(super) const BULK: u8 = 1;
pub(super) const URGENT: u8 = 6;
/// Parts of a run after which it says how far it is.
const PARTS: u64 = 40;

/// Links and tables, which many runs share.
#[derive(Clone, Debug)]
pub(super) struct Clique {
    pub(super) topology: Topology,
    pub(super) tables: Arc<Tables>,
}

impl Clique {
    pub(super) fn new(shape: &Shape, fibres: Fibres) -> Self {
        Self::with_turns(shape, fibres, &TurnTable::P1)
    }

    pub(super) fn with_turns(shape: &Shape, fibres: Fibres, turns: &TurnTable) -> Self {
        let topology = Topology::new(shape, fibres).expect("the profiles can be wired");
        let tables = Arc::new(compute(&topology, turns, &Condition::healthy(&topology)));
        Self { topology, tables }
    }

    pub(super) fn shape(&self) -> &Shape {
        self.topology.shape()
    }

    /// All its switches with these endpoints.
    pub(super) fn carry<E: Endpoints>(
        &self,
        settings: &Settings,
        endpoints: E,
        seed: u64,
    ) -> Switches<E> {
        let own: Vec<u16> = (0..self.shape().tins()).collect();
        let (tables, settings) = (Arc::clone(&self.tables), Arc::new(settings.clone()));
        Switches::new(&self.topology, tables, settings, &own, seed, endpoints)
    }

    /// The same with IP, and no packets.
    pub(super) fn ip(&self, settings: &Settings, ip: &Ip, seed: u64) -> Switches<OpenLoop> {
        assert_eq!(ip.check(), [], "the experiments' settings are sound");
        let open_loop = OpenLoop::new(self.shape(), ip, settings.switch.hops, seed);
        self.carry(settings, open_loop, seed)
    }

    /// Bare cells of every TiN.
    pub(super) fn raw(&self, settings: &Settings, traffic: Traffic, seed: u64) -> Blocks<Raw> {
        let raw = || Raw::new(self.shape(), traffic, settings.switch.hops, seed);
        let mut cells = self.carry_in_sets(settings, raw, seed);
        for tin in 0..self.shape().tins() {
            cells.of(tin).act(tin, Time::ZERO, |raw, wishes| raw.begin(tin, wishes));
        }
        cells
    }

    /// What there is at the ends of each set of TiNs, in as many sets as are best on one thread.
    pub(super) fn carry_in_sets<E: Endpoints>(
        &self,
        settings: &Settings,
        endpoints: impl FnMut() -> E,
        seed: u64,
    ) -> Blocks<E> {
        let (blocks, settings) = (best(self.shape().tins()), Arc::new(settings.clone()));
        Blocks::new(&self.topology, &self.tables, &settings, blocks, seed, endpoints)
    }

    /// Places of hosts, two a TiN, as many in each pod.
    pub(super) fn hosts(&self, hosts: u32) -> Vec<HostPlace> {
        places(self.shape(), 2, hosts, Placement::Even)
    }

    /// The address of a host.
    pub(super) fn host(&self, place: HostPlace) -> u16 {
        let endpoint = [Endpoint::HOST_0, Endpoint::HOST_1][usize::from(place.slot)];
        self.endpoint(place.tin, endpoint)
    }

    /// The address of the first host of a TiN.
    pub(super) fn address(&self, tin: u16) -> u16 {
        self.endpoint(tin, Endpoint::HOST_0)
    }

    fn endpoint(&self, tin: u16, endpoint: Endpoint) -> u16 {
        let (pod, place) = self.shape().split(tin);
        Address::new(pod, place, endpoint).bits()
    }
}

/// A time after the beginning.
pub(super) fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// What runs: switches in one set or in several.
pub(super) trait Steps {
    fn next(&self) -> Option<Time>;
    fn run(&mut self, end: Time);
}

impl<E: Endpoints> Steps for Switches<E> {
    fn next(&self) -> Option<Time> {
        Switches::next(self)
    }

    fn run(&mut self, end: Time) {
        Switches::run(self, end);
    }
}

impl<E: Endpoints> Steps for Blocks<E> {
    fn next(&self) -> Option<Time> {
        Blocks::next(self)
    }

    fn run(&mut self, end: Time) {
        Blocks::run(self, end);
    }
}

/// Does everything that is due before `end`, or all that there is.
pub(super) fn run(cells: &mut impl Steps, end: Time, pulse: &mut Pulse<'_>) -> Result<(), Failure> {
    let step = if end == Time::NEVER { Span::from_us(20) } else { (end - Time::ZERO) / PARTS };
    let mut part = 0;
    while let Some(next) = cells.next().filter(|&next| next < end) {
        cells.run((next + step).min(end));
        part += 1;
        if pulse.at(part as f64 / PARTS as f64 * 0.9).is_break() {
            return Err(Failure::Interrupted);
        }
    }
    cells.run(end);
    Ok(())
}

/// Offers packets.
pub(super) fn send_all(cells: &mut Switches<OpenLoop>, mut packets: Vec<Packet>) {
    packets.sort_by_key(|packet| packet.at);
    for packet in packets {
        let tin = cells.endpoints().tin(packet.from);
        cells.act(tin, Time::ZERO, |open_loop, wishes| open_loop.send(packet, wishes));
    }
}

/// What hosts send to each other, at random instants and to any other host alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Uniform {
    /// Bytes of packets that a host sends.
    pub(super) rate: Rate,
    /// Packets of a message, which come back to back.
    pub(super) packets: u32,
    pub(super) length: u16,
    pub(super) class: u8,
    pub(super) until: Time,
}

impl Uniform {
    /// The packets of these hosts.
    pub(super) fn packets(&self, hosts: &[u16], seed: u64, what: &str) -> Vec<Packet> {
        let bytes = u64::from(self.packets) * u64::from(self.length);
        let gap = self.rate.send_time(Bytes::new(bytes)).as_ps() as f64;
        let mut all = Vec::new();
        for (index, &from) in hosts.iter().enumerate() {
            let mut stream = Stream::new(seed, what, index as u64);
            let mut at = Time::ZERO + Span::from_ps(stream.exponential(gap) as u64);
            while at < self.until {
                let step = 1 + stream.below(hosts.len() as u64 - 1) as usize;
                let to = hosts[(index + step) % hosts.len()];
                let packet = Packet::new((from, to), self.length, self.class, at);
                all.extend(std::iter::repeat_n(packet, self.packets as usize));
                at += Span::from_ps(stream.exponential(gap) as u64 + 1);
            }
        }
        all
    }
}

/// The value at a share of sorted spans, in seconds.
pub(super) fn quantile(sorted: &[Span], q: f64) -> f64 {
    assert!(!sorted.is_empty(), "no packet was measured");
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1].as_seconds()
}
