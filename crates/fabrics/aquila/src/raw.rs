//! Cells without a protocol: open-loop traffic on the switches alone, to measure what the topology and the
//! switch carry (X15, §2: "non-blocking for uniform random traffic, 2:1 for the worst pattern").
//!
//! Every TiN sends packets that come at random instants, each to a TiN of the pattern's, as cells of the largest
//! size over the terminal ports of its NIC, or over those of its NIC and its Ethernet. Nothing asks for them first, and
//! all are taken at once.

use std::collections::VecDeque;

use kernel::{Rate, Span, Stream, Time};

use crate::address::{Address, Endpoint};
use crate::switch::cell::{BLOCKS_MAX, Cell};
use crate::switch::{Endpoints, Room, Switches, Wishes};
use crate::topology::Shape;

/// Terminal ports of the NIC, which come first (M102).
const NIC: u8 = 4;
/// Those with the ports of the Ethernet behind them: 200 Gbps, the most that a TiN injects (§6).
const NIC_AND_ETHERNET: u8 = 8;
/// The code of a cell that carries data (M208).
const DATA: u8 = 3;

/// Where packets go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// To any other TiN.
    Uniform,
    /// From each pod to the next: to any TiN there.
    NextPod,
    /// From each TiN to the next of its pod.
    NextTin,
}

/// What is sent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Traffic {
    /// Where to.
    pub pattern: Pattern,
    /// Cells of a packet.
    pub cells: u32,
    /// Rate offered by a TiN, headers of cells included.
    pub rate: Rate,
    /// Traffic class of the cells.
    pub class: u8,
    /// Whether a TiN sends and takes with the terminal ports of its Ethernet too, not with its NIC's alone.
    pub ethernet: bool,
    /// No packet comes at or after this instant.
    pub until: Time,
    /// Cells that are delivered from here on are measured.
    pub from: Time,
}

impl Traffic {
    /// Terminal ports that a TiN sends with.
    fn terminals(&self) -> u8 {
        if self.ethernet { NIC_AND_ETHERNET } else { NIC }
    }
}

/// What arrived from `from` on, until `until`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arrived {
    /// Cells.
    pub cells: u64,
    /// Blocks of 8 bytes.
    pub blocks: u64,
    /// Links that they have passed, in all.
    pub links: u64,
    /// From packets' arrivals to cells' last bits, in all. Unit: ps.
    pub waits: u128,
    /// The longest of these. Unit: ps.
    pub wait_max: u64,
    /// A sum over all cells of instant, source and destination: equal runs have equal ones.
    pub hash: u64,
}

impl Arrived {
    /// Adds what arrived elsewhere.
    pub fn add(&mut self, other: &Self) {
        self.cells += other.cells;
        self.blocks += other.blocks;
        self.links += other.links;
        self.waits += other.waits;
        self.wait_max = self.wait_max.max(other.wait_max);
        self.hash = self.hash.wrapping_add(other.hash);
    }
}

#[derive(Clone, Debug, Default)]
struct Source {
    packets: VecDeque<(u64, u16)>,
    next: u64,
    /// By terminal port: the packet that it sends, and cells left of it.
    trains: [(u64, u16, u32); NIC_AND_ETHERNET as usize],
}

/// The endpoints.
#[derive(Clone, Debug)]
pub struct Raw {
    shape: Shape,
    traffic: Traffic,
    gap: Span,
    hops: u8,
    sources: Vec<Source>,
    streams: Vec<Stream>,
    arrived: Arrived,
}

impl Raw {
    /// Sources at all TiNs of a Clique. `hops` is what switches let cells pass.
    #[must_use]
    pub fn new(shape: &Shape, traffic: Traffic, hops: u8, seed: u64) -> Self {
        let tins = usize::from(shape.tins());
        let bytes = kernel::Bytes::new(u64::from(traffic.cells) * u64::from(BLOCKS_MAX) * 8);
        let stream = |tin: usize| Stream::new(seed, "aquila/raw", tin as u64);
        Self {
            shape: *shape,
            gap: traffic.rate.send_time(bytes),
            traffic,
            hops,
            sources: vec![Source::default(); tins],
            streams: (0..tins).map(stream).collect(),
            arrived: Arrived::default(),
        }
    }

    /// Begins: to be called for each TiN at time zero.
    pub fn begin(&mut self, tin: u16, wishes: &mut Wishes) {
        self.schedule(tin, 0, wishes);
    }

    /// What arrived.
    #[must_use]
    pub fn arrived(&self) -> Arrived {
        self.arrived
    }

    /// Packets that wait at all sources.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.sources.iter().map(|source| source.packets.len()).sum()
    }

    fn schedule(&mut self, tin: u16, now: u64, wishes: &mut Wishes) {
        let stream = &mut self.streams[usize::from(tin)];
        let next = now + (stream.exponential(self.gap.as_ps() as f64) as u64).max(1);
        self.sources[usize::from(tin)].next = next;
        if next < self.traffic.until.as_ps() {
            wishes.wake_at(Time::from_ps(next));
        }
    }

    fn destination(&mut self, tin: u16) -> u16 {
        let Shape { tins_per_pod, pods, .. } = self.shape;
        let tins = tins_per_pod * pods;
        let stream = &mut self.streams[usize::from(tin)];
        match self.traffic.pattern {
            Pattern::Uniform => (tin + 1 + stream.below(u64::from(tins) - 1) as u16) % tins,
            Pattern::NextPod => {
                let pod = (tin / tins_per_pod + 1) % pods;
                pod * tins_per_pod + stream.below(tins_per_pod.into()) as u16
            }
            Pattern::NextTin => {
                let (pod, place) = self.shape.split(tin);
                pod * tins_per_pod + (place + 1) % tins_per_pod
            }
        }
    }

    /// Where the next packet of a TiN goes: to a NIC or, where the Ethernet takes cells too, to either.
    fn draw(&mut self, from: u16) -> u16 {
        let to = self.destination(from);
        let is_nic = !self.traffic.ethernet || self.streams[usize::from(from)].below(2) == 0;
        self.address(to, if is_nic { Endpoint::HOST_0 } else { Endpoint::ETHERNET })
    }

    fn address(&self, tin: u16, endpoint: Endpoint) -> u16 {
        let (pod, place) = self.shape.split(tin);
        Address::new(pod, place, endpoint).bits()
    }
}

impl Endpoints for Raw {
    fn deliver(&mut self, tin: u16, _: u8, cell: &Cell, at: Time, _: &mut Wishes) {
        let own = [Endpoint::HOST_0, Endpoint::ETHERNET].map(|end| self.address(tin, end));
        debug_assert!(own.contains(&cell.to), "a cell at the wrong TiN");
        if at < self.traffic.from || at >= self.traffic.until {
            return;
        }
        let wait = at.as_ps() - cell.payload;
        let arrived = &mut self.arrived;
        arrived.cells += 1;
        arrived.blocks += u64::from(cell.blocks);
        arrived.links += u64::from(self.hops - cell.hops() - 1);
        arrived.waits += u128::from(wait);
        arrived.wait_max = arrived.wait_max.max(wait);
        let word = at.as_ps() ^ u64::from(cell.from) << 48 ^ u64::from(cell.to) << 32;
        arrived.hash = arrived.hash.wrapping_add(word.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }

    fn inject(&mut self, tin: u16, terminal: u8, room: Room<'_>, _: &mut Wishes) -> Option<Cell> {
        if terminal >= self.traffic.terminals() || !room.fits(self.traffic.class, BLOCKS_MAX) {
            return None;
        }
        let cells = self.traffic.cells;
        let source = &mut self.sources[usize::from(tin)];
        let train = &mut source.trains[usize::from(terminal)];
        if train.2 == 0 {
            let (at, to) = source.packets.pop_front()?;
            *train = (at, to, cells);
        }
        train.2 -= 1;
        let (at, to, _) = *train;
        let own = if terminal < NIC { Endpoint::HOST_0 } else { Endpoint::ETHERNET };
        let from = self.address(tin, own);
        let cell = Cell::new(from, to, self.traffic.class, DATA, BLOCKS_MAX, self.hops);
        Some(cell.with_payload(at))
    }

    fn wake(&mut self, tin: u16, wishes: &mut Wishes) {
        let end = wishes.now().as_ps() + crate::switch::settings::TICK.as_ps();
        while self.sources[usize::from(tin)].next < end {
            let at = self.sources[usize::from(tin)].next;
            if at >= self.traffic.until.as_ps() {
                break;
            }
            let to = self.draw(tin);
            self.sources[usize::from(tin)].packets.push_back((at, to));
            self.schedule(tin, at, wishes);
        }
        (0..self.traffic.terminals()).for_each(|port| wishes.inject(port));
    }

    fn run(switches: &mut Switches<Self>, end: Time) {
        switches.advance(end);
    }
}
