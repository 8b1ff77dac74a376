//! Packets in one piece in place of cells (§1, §3.1, §3.4; X20): what a small message waits for behind them.
//!
//! The largest cell has 160 B, and the largest packet 26 times as many. A switch whose lines and buffers are counted in
//! units of 26 B for each byte takes such a packet for one cell: all times are those of lines of 25 Gbps, and so are its
//! 40 ns a hop. What is not so: a smallest cell is then 416 B, as long as the small messages here, and so nothing asks for
//! packets first.

use std::collections::{BTreeMap, VecDeque};

use aquila::link::classes::{CellKind, Half};
use aquila::switch::blocks::{Blocks, best};
use aquila::switch::cell::Cell;
use aquila::switch::settings::{Settings, TICK};
use aquila::switch::{Endpoints, Room, Switches, Wishes};
use kernel::{Bytes, Rate, Span, Stream, Time};
use serde::{Deserialize, Serialize};

use super::clique::{Clique, quantile, run, us};
use crate::Failure;
use crate::spread::Pulse;

/// Of a packet in one piece: bytes for each byte that a switch counts.
const UNIT: u64 = 26;
/// Terminal ports of a NIC.
const TERMINALS: u8 = 4;

/// How packets cross the Clique.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pieces {
    /// As cells.
    Cells,
    /// In one piece, where buffers hold as many packets as they held cells.
    Packets,
    /// In one piece, where each buffer holds four, and each queue two.
    ShallowPackets,
}

impl Pieces {
    /// Lengths of the cells of a message of a kind (small first), on the wire. Unit: blocks.
    fn cells(self, kind: usize) -> &'static [u8] {
        match (self, kind) {
            (Self::Cells, 0) => &[20, 20, 12],
            (Self::Cells, _) => &[20; UNIT as usize],
            (_, 0) => &[2],
            (..) => &[20],
        }
    }

    fn settings(self) -> Settings {
        let mut settings = Settings::default();
        if self == Self::Cells {
            return settings;
        }
        let Settings { link, switch, .. } = &mut settings;
        for rate in [&mut link.local_rate, &mut link.global_rate, &mut switch.terminal_rate] {
            *rate = Rate::from_bps(rate.as_bps() / UNIT);
        }
        switch.speedup /= UNIT as f64;
        // Credits take as large a share of a line as they do beside cells; they are not kept back longer than a packet
        // takes.
        link.update_timer = Span::from_ns(1_500);
        if self == Self::ShallowPackets {
            let packets = |count: u64| Bytes::new(count * 160);
            (link.local_buffer, link.global_buffer) = (packets(4), packets(4));
            (switch.terminal_buffer, switch.terminal_queue) = (packets(4), packets(2));
            (switch.output_queue, switch.detour_bias) = (packets(2), packets(1));
        }
        settings
    }
}

/// What is sent: small messages, and packets. Unit: bytes on the wire, Gbps a TiN, and the half of the channels.
const KINDS: [(u64, u64, Half); 2] = [(416, 2, Half::LowLatency), (UNIT * 160, 50, Half::Bulk)];

/// What came of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Point {
    /// From a message's arrival at its TiN to its last bit at another, 99 %: of small ones and of packets. Unit: s.
    pub(super) small: f64,
    pub(super) large: f64,
    /// What is carried of packets. Unit: share of what is offered.
    pub(super) carried: f64,
}

#[derive(Clone, Debug, Default)]
struct Source {
    /// By kind: when the next message comes, in ps, and those that wait.
    next: [u64; 2],
    waiting: [VecDeque<(u64, u16)>; 2],
    /// By terminal port and kind: the message that it sends, and how many of its cells it has sent.
    sending: [[Option<(u64, u16, usize)>; 2]; TERMINALS as usize],
}

/// The ends.
#[derive(Clone, Debug)]
struct Ends {
    pieces: Pieces,
    /// By TiN.
    addresses: Vec<u16>,
    hops: u8,
    sources: Vec<Source>,
    streams: Vec<Stream>,
    until: u64,
    /// By source and name of a message: cells of it that have come.
    coming: BTreeMap<(u16, u64), usize>,
    /// By kind: when messages that are whole came, and how long they took.
    arrived: [Vec<(Time, Span)>; 2],
}

/// A message's name where it goes: when it came, and its kind.
const fn name(at: u64, kind: usize) -> u64 {
    at << 1 | kind as u64
}

impl Ends {
    fn new(clique: &Clique, pieces: Pieces, hops: u8, until: Time, seed: u64) -> Self {
        let tins = clique.shape().tins();
        Self {
            pieces,
            addresses: (0..tins).map(|tin| clique.address(tin)).collect(),
            hops,
            sources: vec![Source::default(); tins.into()],
            streams: (0..tins).map(|tin| Stream::new(seed, "aquila/pieces", tin.into())).collect(),
            until: until.as_ps(),
            coming: BTreeMap::new(),
            arrived: Default::default(),
        }
    }

    /// The next message of a kind, after `now`.
    fn schedule(&mut self, tin: u16, kind: usize, now: u64, wishes: &mut Wishes) {
        let (bytes, gbps, _) = KINDS[kind];
        let gap = Rate::from_gbps(gbps).send_time(Bytes::new(bytes)).as_ps() as f64;
        let wait = self.streams[usize::from(tin)].exponential(gap) as u64;
        let next = now + wait.max(1);
        self.sources[usize::from(tin)].next[kind] = next;
        if next < self.until {
            wishes.wake_at(Time::from_ps(next));
        }
    }

    fn begin(&mut self, tin: u16, wishes: &mut Wishes) {
        (0..2).for_each(|kind| self.schedule(tin, kind, 0, wishes));
    }
}

impl Endpoints for Ends {
    fn deliver(&mut self, _: u16, _: u8, cell: &Cell, at: Time, _: &mut Wishes) {
        let key = (cell.from, cell.payload);
        let kind = (cell.payload & 1) as usize;
        let come = self.coming.entry(key).or_insert(0);
        *come += 1;
        if *come == self.pieces.cells(kind).len() {
            self.coming.remove(&key);
            let since = Time::from_ps(cell.payload >> 1);
            self.arrived[kind].push((since, at - since));
        }
    }

    fn inject(&mut self, tin: u16, terminal: u8, room: Room<'_>, _: &mut Wishes) -> Option<Cell> {
        if terminal >= TERMINALS {
            return None;
        }
        let (source, from) =
            (&mut self.sources[usize::from(tin)], self.addresses[usize::from(tin)]);
        (0..2).find_map(|kind| {
            let class = CellKind::Data.class(KINDS[kind].2);
            let cells = self.pieces.cells(kind);
            let sending = &mut source.sending[usize::from(terminal)][kind];
            let next = sending.map_or(0, |(.., sent)| sent);
            if !room.fits(class, cells[next]) {
                return None;
            }
            let (at, to) = match *sending {
                Some((at, to, _)) => (at, to),
                None => source.waiting[kind].pop_front()?,
            };
            *sending = (next + 1 < cells.len()).then_some((at, to, next + 1));
            let cell = Cell::new(from, to, class, CellKind::Data as u8, cells[next], self.hops);
            Some(cell.with_payload(name(at, kind)))
        })
    }

    fn wake(&mut self, tin: u16, wishes: &mut Wishes) {
        let end = wishes.now().as_ps() + TICK.as_ps();
        for kind in 0..2 {
            loop {
                let at = self.sources[usize::from(tin)].next[kind];
                if at >= end.min(self.until) {
                    break;
                }
                let tins = self.addresses.len() as u64;
                let step = 1 + self.streams[usize::from(tin)].below(tins - 1);
                let to = self.addresses[((u64::from(tin) + step) % tins) as usize];
                self.sources[usize::from(tin)].waiting[kind].push_back((at, to));
                self.schedule(tin, kind, at, wishes);
            }
        }
        (0..TERMINALS).for_each(|terminal| wishes.inject(terminal));
    }

    fn run(switches: &mut Switches<Self>, end: Time) {
        switches.advance(end);
    }
}

/// Messages of both kinds from every TiN to random others.
pub(super) fn carry(
    clique: &Clique,
    pieces: Pieces,
    micros: u64,
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<Point, Failure> {
    let settings = pieces.settings().into();
    let (tins, until) = (clique.shape().tins(), us(micros));
    let hops = Settings::default().switch.hops;
    let ends = || Ends::new(clique, pieces, hops, until, seed);
    let (topology, tables) = (&clique.topology, &clique.tables);
    let mut cells = Blocks::new(topology, tables, &settings, best(tins), seed, ends);
    for tin in 0..tins {
        cells.of(tin).act(tin, Time::ZERO, |ends, wishes| ends.begin(tin, wishes));
    }
    run(&mut cells, until, pulse)?;
    cells.check().map_err(Failure::Model)?;
    // Those of the middle: the last have time to arrive.
    let (from, to) = (us(micros / 3), us(micros * 5 / 6));
    let took = |kind: usize| -> Vec<Span> {
        let all = cells.sets().iter().flat_map(|set| &set.endpoints().arrived[kind]);
        let mut took: Vec<_> =
            all.filter(|(at, _)| (from..to).contains(at)).map(|&(_, took)| took).collect();
        took.sort_unstable();
        took
    };
    let (small, large) = (took(0), took(1));
    let (bytes, gbps, _) = KINDS[1];
    let offered = gbps as f64 * 1e9 * (to - from).as_seconds() * f64::from(tins);
    Ok(Point {
        small: quantile(&small, 0.99),
        large: quantile(&large, 0.99),
        carried: large.len() as f64 * bytes as f64 * 8.0 / offered,
    })
}
