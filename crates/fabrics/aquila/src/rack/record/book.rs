//! What all parts have seen, put together: which cells were of which packet, and beside whom they waited.
//!
//! A cell names a place in a buffer, which is one packet's for a while: what it is about follows from who had the place
//! then. So it makes no difference which part has seen what.

use std::collections::BTreeMap;

use ::rack::FlowId;
use ::rack::trace::{CellHop, Covered, Hop, LineRecorder, Outcome, Purpose, Tally};
use kernel::{Span, Time};
use packets::{Inner, Inside, Name, Packet};

use super::super::blueprint::Blueprint;
use super::header::header;
use super::{Heir, LINK_TYPE, Left, Owner, Record};
use crate::cells::ip::Data;
use crate::cells::rma::Response;
use crate::ip;
use crate::link::classes::CellKind;
use crate::switch::cell::{BLOCK, Cell};
use crate::switch::record::{Beside, Fed, Granted, Key, Numbers, Seen, Step};
use crate::switch::settings::TICK;

/// What a part has recorded.
pub(in crate::rack) struct Ended {
    pub(in crate::rack) record: Record,
    pub(in crate::rack) seen: Seen,
}

/// Which cell: its packet; its kind; of remote memory since when its command has its slot; and which of those.
type Which = (u32, u8, u64, u64);

/// The way of a cell.
#[derive(Default)]
struct Way {
    fed: Option<Fed>,
    steps: Vec<Step>,
}

/// All of it.
struct Book<'a> {
    blueprint: &'a Blueprint,
    numbers: &'a Numbers,
    packets: Vec<(Packet, Time)>,
    /// By key and instant.
    owners: Vec<Owner>,
    /// By TiN and group of ports, by when lines are busy.
    granted: BTreeMap<(u16, u8), Vec<Granted>>,
    left: BTreeMap<(u16, bool), Vec<Left>>,
}

/// The record of all parts.
pub(in crate::rack) fn close(blueprint: &Blueprint, parts: Vec<Ended>) -> Option<Inside> {
    let numbers = parts.first()?.record.numbers.clone();
    let mut book = Book {
        blueprint,
        numbers: &numbers,
        packets: Vec::new(),
        owners: Vec::new(),
        granted: BTreeMap::new(),
        left: BTreeMap::new(),
    };
    let mut lines = LineRecorder::new(numbers.count as usize);
    let (mut fed, mut steps, mut fates) = (Vec::new(), Vec::new(), Vec::new());
    let mut heirs = Vec::new();
    for Ended { record, seen } in parts {
        let first = book.packets.len() as u32;
        book.packets.extend(record.packets);
        let owner = |owner: Owner| Owner { packet: owner.packet.map(|at| first + at), ..owner };
        book.owners.extend(record.owners.into_iter().map(owner));
        heirs.extend(record.heirs);
        for left in record.left {
            book.left.entry((left.tin, left.is_ethernet)).or_default().push(left);
        }
        for granted in seen.granted {
            book.granted.entry((granted.tin, granted.group)).or_default().push(granted);
        }
        fed.extend(seen.fed);
        steps.extend(seen.steps);
        fates.extend(seen.fates);
        lines.join(seen.lines);
    }
    book.owners.sort_by_key(|owner| (owner.key, owner.at));
    let inherit = |heir: &Heir| {
        let &Heir { key, at, of, after } = heir;
        let owner = *book.owner(of, at)?;
        let [first, end] = owner.bytes;
        Some(Owner { key, at, bytes: [first + after, end], ..owner })
    };
    let inherited: Vec<Owner> = heirs.iter().filter_map(inherit).collect();
    book.owners.extend(inherited);
    book.owners.sort_by_key(|owner| (owner.key, owner.at));
    let mut ways: BTreeMap<Which, Way> = BTreeMap::new();
    for fed in fed {
        if let Some(which) = book.which(&fed.cell, fed.start) {
            ways.entry(which).or_default().fed = Some(fed);
        }
    }
    for step in steps {
        if let Some(which) = book.which(&step.cell, step.head) {
            ways.entry(which).or_default().steps.push(step);
        }
    }
    for way in ways.values_mut() {
        way.steps.sort_by_key(|step| (step.head, step.started));
    }
    for (cell, at, why) in fates {
        let which = book.which(&cell, at);
        if let Some(way) = which.and_then(|which| ways.get_mut(&which)) {
            let before = way.steps.iter_mut().rfind(|step| step.started <= at);
            before.into_iter().for_each(|step| step.outcome = why);
        }
    }
    let packets = book.close(ways);
    let (is_inner, names) = blueprint.lines();
    Some(Inside { packets, lines, link_type: LINK_TYPE, is_inner, names })
}

fn time(ps: u64) -> Time {
    Time::from_ps(ps)
}

/// What a cell of a kind is for, and what it is called.
const fn purpose(kind: CellKind) -> (Purpose, &'static str) {
    match kind {
        CellKind::Rts => (Purpose::Request, "RTS"),
        CellKind::Cts => (Purpose::Solicitation, "CTS"),
        CellKind::Ctd => (Purpose::Notice, "CTD"),
        CellKind::Data => (Purpose::Payload, "DATA"),
        CellKind::Req => (Purpose::Solicitation, "REQ"),
        CellKind::Resp => (Purpose::Payload, "RESP"),
        CellKind::WriteReq => (Purpose::Request, "WRITE_REQ"),
        CellKind::RespError => (Purpose::Notice, "RESP_ERROR"),
        CellKind::Raw => (Purpose::Notice, "RAW"),
    }
}

/// Whether a TiN acts upon a cell at the beginning of the cycle in which its last bit comes: all else counts as there when
/// it is.
const fn is_acted_upon(kind: CellKind) -> bool {
    matches!(kind, CellKind::Rts | CellKind::Cts | CellKind::Ctd)
}

impl Book<'_> {
    /// Who has the place of a key at an instant.
    fn owner(&self, key: Key, at: u64) -> Option<&Owner> {
        let after = self.owners.partition_point(|owner| (owner.key, owner.at) <= (key, at));
        let owner = &self.owners[after.checked_sub(1)?];
        (owner.key == key).then_some(owner)
    }

    /// Which cell of which recorded packet this is, seen at an instant.
    fn which(&self, cell: &Cell, at: u64) -> Option<Which> {
        let owner = self.owner(Key::of(cell), at)?;
        let (since, number) = match CellKind::from_number(cell.kind)? {
            CellKind::Rts | CellKind::Cts | CellKind::Ctd => (0, 0),
            CellKind::Data => (0, Data::of_word(cell.payload).index.into()),
            // Slot, generation and segment, and of an answer which bytes of it.
            _ => (owner.at, cell.payload),
        };
        Some((owner.packet?, cell.kind, since, number))
    }

    /// What went by, by whose it was.
    fn tally(&self, own: Name, beside: &[Beside]) -> Tally<Name> {
        let mut tally = Tally::default();
        for beside in beside {
            let whose = self.owner(beside.key, beside.at).map(|owner| owner.name);
            tally.add(own, whose, Span::from_ps(beside.ps), beside.bytes);
        }
        tally
    }

    /// All recorded packets with their cells, in the order in which they came.
    fn close(&mut self, ways: BTreeMap<Which, Way>) -> Vec<Inner> {
        for granted in self.granted.values_mut() {
            granted.sort_by_key(|granted| granted.sent.start);
        }
        for left in self.left.values_mut() {
            left.sort_by_key(|left| left.line);
        }
        let mut of: BTreeMap<u32, Vec<(Which, Way)>> = BTreeMap::new();
        for (which, way) in ways {
            of.entry(which.0).or_default().push((which, way));
        }
        let mut packets: Vec<Inner> =
            of.into_iter().map(|(at, ways)| self.inner(at, ways)).collect();
        packets.sort_by_key(|inner| (inner.at, Name::of(&inner.packet), inner.packet.seq));
        packets
    }

    /// A packet with its cells.
    fn inner(&self, place: u32, mut cells: Vec<(Which, Way)>) -> Inner {
        let (packet, at) = self.packets[place as usize];
        let begun = |way: &Way| way.fed.as_ref().map(|fed| fed.start);
        cells.sort_by_key(|(which, way)| (begun(way), *which));
        let is = |which: &Which, wanted: CellKind| which.1 == wanted as u8;
        let asked = cells.iter().filter(|(which, _)| is(which, CellKind::Rts));
        let asked = asked.filter_map(|(_, way)| way.arrived()).next();
        let (mut hops, mut sent) = (Vec::new(), Covered::default());
        for (number, (_, way)) in (0..).zip(&cells) {
            self.cell((&packet, number), way, asked, (&mut hops, &mut sent));
        }
        let last = cells.iter().filter(|(which, _)| is(which, CellKind::Data));
        let last = last.filter_map(|(_, way)| way.arrived()).max();
        let leaves = last.and_then(|last| self.leaves(&packet, last));
        Inner { packet, at, hops, leaves }
    }

    /// Since when a packet waits to leave, all of whose cells are there by `whole`, and behind what.
    fn leaves(&self, packet: &Packet, whole: u64) -> Option<([Time; 2], Tally<Name>)> {
        let same = |other: &Packet| {
            let told = |of: &Packet| (of.src, of.dst, of.flow, of.kind, of.seq, of.stamp);
            told(other) == told(packet)
        };
        let mut of_lines = self.left.values();
        let (all, at) = of_lines.find_map(|all| {
            let from = all.partition_point(|left| left.line[0] < whole);
            let own = all[from..].iter().find(|left| same(&left.packet));
            own.map(|own| (all, own.line[0]))
        })?;
        let (own, mut tally) = (Name::of(packet), Tally::default());
        let from = all.partition_point(|left| left.line[1] <= whole);
        for Left { line, packet, .. } in all[from..].iter().take_while(|left| left.line[0] < at) {
            let line = line.map(|ps| time(ps.min(at)));
            tally.add_since(time(whole), own, Some(Name::of(packet)), line, packet.wire.into());
        }
        Some(([whole, at].map(time), tally))
    }

    /// What the line of a destination has to come while a request waits for its turn there.
    fn promised(&self, cell: &Cell, [since, until]: [u64; 2]) -> Vec<Beside> {
        let (tin, _) = self.blueprint.place_of(cell.from);
        let own = Key::of(cell);
        let Some(all) = self.granted.get(&(tin, ip::group_of(cell.from) as u8)) else {
            return Vec::new();
        };
        let from = all.partition_point(|granted| granted.sent.end <= since);
        let within = all[from..].iter().take_while(|granted| granted.sent.start < until);
        let beside = within.filter(|granted| granted.sent.key != own).map(|granted| {
            let sent = granted.sent;
            let ps = sent.end.min(until) - sent.start.max(since);
            Beside { key: sent.key, at: granted.at, ps, bytes: sent.bytes.into() }
        });
        beside.collect()
    }

    /// Which byte of its packet's payload is the first in a data cell, and how many bytes of the packet are in it.
    fn part(&self, packet: &Packet, cell: &Cell, bytes: u16) -> [u64; 2] {
        let index = u64::from(Data::of_word(cell.payload).index);
        let before = index * self.blueprint.cell_payload();
        let first = before.saturating_sub((packet.wire - packet.payload).into());
        [first.min(packet.payload.into()), bytes.into()]
    }

    /// Which byte of its flow is the first in an answer, and how many there are.
    fn memory(&self, cell: &Cell, begun: u64) -> Option<[u64; 2]> {
        let [first, end] = self.owner(Key::of(cell), begun)?.bytes;
        let of = Response::of_word(cell.payload).ok()?;
        let offset = u64::from(of.segment) * self.blueprint.segment() + 8 * u64::from(of.offset);
        let offset = (first + offset).min(end);
        Some([offset, (8 * u64::from(of.length)).min(end - offset)])
    }

    /// Adds the hops of a cell.
    fn cell(
        &self,
        (packet, number): (&Packet, u32),
        way: &Way,
        asked: Option<u64>,
        (hops, sent): (&mut Vec<(Hop, Tally<Name>)>, &mut Covered),
    ) {
        let (own, first) = (Name::of(packet), hops.len());
        let begun = way.fed.as_ref().map(|fed| fed.start);
        let begun = begun.or(way.steps.first().map(|step| step.head)).unwrap_or(0);
        let mut is_again = false;
        if let Some(fed) = &way.fed {
            let solicits = fed.cell.kind == CellKind::Cts as u8;
            let since = if solicits { asked } else { fed.since }.unwrap_or(fed.start);
            let beside = match solicits {
                true => self.promised(&fed.cell, [since, fed.start]),
                false => fed.beside.clone(),
            };
            // A TiN acts in whole cycles: not before what it acts upon is there.
            let started = fed.start.max(since);
            let vc = 3 * fed.cell.class;
            let hop = self.hop(packet, &fed.cell, (vc, &fed.content), (number, begun));
            let Some(hop) = hop else { return };
            if hop.is_data && fed.cell.kind == CellKind::Resp as u8 {
                is_again = sent.add(hop.offset, hop.payload.into()) < hop.payload.into();
            }
            let hop = Hop {
                is_again,
                place: self.numbers.feeds[Numbers::at(fed.tin, fed.port)],
                joined: time(since),
                started: time(started),
                sent: time(fed.end.max(started)),
                arrived: time(started),
                ..hop
            };
            hops.push((hop, self.tally(own, &beside)));
        }
        for step in &way.steps {
            let hop = self.hop(packet, &step.cell, (step.channel, &step.content), (number, begun));
            let Some(hop) = hop else { return };
            let is_delivered = step.propagation == 0 && step.outcome == Outcome::Arrived;
            let arrived = arrived(step);
            let hop = Hop {
                hop: (hops.len() - first) as u16,
                is_again,
                is_last: is_delivered && step.cell.kind == CellKind::Resp as u8,
                place: self.numbers.outputs[Numbers::at(step.tin, step.port)],
                outcome: step.outcome,
                joined: time(step.joined),
                started: time(step.started),
                sent: time(step.sent),
                arrived: time(arrived),
                propagation: Span::from_ps(step.propagation),
                found_bytes: step.found[0],
                found_packets: step.found[1],
                cell: hop.cell.map(|cell| Box::new(waiting(*cell, step))),
                ..hop
            };
            hops.push((hop, self.tally(own, &step.beside)));
        }
    }

    /// A hop of a cell, with nothing of where and when. `number` is the cell's among those of its packet; it left its
    /// endpoint at `begun`.
    fn hop(
        &self,
        packet: &Packet,
        cell: &Cell,
        (vc, content): (u8, &[u8]),
        (number, begun): (u32, u64),
    ) -> Option<Hop> {
        let (kind, header) = header(cell, vc, content, self.blueprint.data_header())?;
        let bytes = u16::from(cell.blocks) * BLOCK;
        let ([offset, payload], (purpose, word)) = match kind {
            CellKind::Data => (self.part(packet, cell, bytes - header.len() as u16), purpose(kind)),
            CellKind::Resp => match self.memory(cell, begun)? {
                // It says that something is written.
                [_, 0] => ([0; 2], (Purpose::Notice, "RESP")),
                some => (some, purpose(kind)),
            },
            _ => ([0; 2], purpose(kind)),
        };
        let back = packet.goes_to_source();
        let is_payload = purpose == Purpose::Payload;
        let asks_back = matches!(purpose, Purpose::Solicitation | Purpose::Notice);
        let zero = Span::ZERO;
        Some(Hop {
            flow: FlowId::new(0),
            packet: 0,
            hop: 0,
            cell: Some(Box::new(CellHop {
                number,
                purpose,
                kind: word.into(),
                vc,
                fifo: zero,
                room: zero,
                crossbar: zero,
                line: zero,
                credit: zero,
            })),
            is_data: is_payload && (packet.is_data() || kind == CellKind::Resp),
            to_source: back != asks_back,
            is_again: false,
            offset,
            payload: payload as u16,
            bytes,
            place: 0,
            is_last: false,
            is_marked: false,
            is_trimmed: false,
            outcome: Outcome::Arrived,
            joined: Time::ZERO,
            started: Time::ZERO,
            sent: Time::ZERO,
            arrived: Time::ZERO,
            propagation: zero,
            own: zero,
            others: zero,
            found_bytes: 0,
            found_packets: 0,
            beside: Vec::new(),
            header,
        })
    }
}

/// When the other end acts upon what a step brings it. Unit: ps.
fn arrived(step: &Step) -> u64 {
    let is_delivered = step.propagation == 0 && step.outcome == Outcome::Arrived;
    let waits = CellKind::from_number(step.cell.kind).is_some_and(is_acted_upon);
    let tick = TICK.as_ps();
    if is_delivered && waits { step.arrived / tick * tick } else { step.arrived }
}

/// What a cell waited for at a step.
fn waiting(cell: CellHop, step: &Step) -> CellHop {
    let waits = &step.waits;
    let [fifo, room, crossbar, line, credit] =
        [waits.fifo, waits.room, waits.matching, waits.line, waits.credit].map(Span::from_ps);
    CellHop { fifo, room, crossbar, line, credit, ..cell }
}

impl Way {
    /// When it is where it goes, if it has come there. Unit: ps.
    fn arrived(&self) -> Option<u64> {
        let last = self.steps.last()?;
        (last.propagation == 0 && last.outcome == Outcome::Arrived).then(|| arrived(last))
    }
}
