//! Where a flow's time went.
//!
//! The parts add up to the completion time to the picosecond. They follow the **critical packet**: the one that
//! brought the last bytes that were missing, as it came. From the flow's end backwards:
//!
//! 1. from its arrival at the destination to the end of the flow, *destination*;
//! 2. hop by hop the way of the critical packet, each in *queueing*, *transmission* and *propagation*, and between its
//!    arrival at a switch and its queue there *inside*, where the switch keeps it;
//! 3. from the flow's beginning until the critical packet went on the source's line, what that line did: carry the
//!    flow's packets before it (*sending*), carry others (*others at source*), or nothing. Nothing is divided by when:
//!    before the flow's first data (*start*), until the critical packet's bytes were sent for the first time
//!    (*waiting*), and after, as those had got lost (*recovery*).
//!
//! What this is not: a chain of causes. While the source waits for a credit, what delays the credit is not followed
//! any further.

use std::collections::BTreeMap;

use kernel::{Span, Time};

use super::{Covered, Followed, Hop, Purpose};
use crate::FlowId;

/// A part of a completion time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Part {
    /// At the source, idle line, before the first data is sent.
    Start,
    /// At the source, the line carries the flow's packets before the critical one.
    Sending,
    /// At the source, the line carries other flows' packets.
    SourceOthers,
    /// At the source, idle line, between the flow's packets.
    Waiting,
    /// At the source, idle line, after the critical bytes were sent for the first time.
    Recovery,
    /// In a switch's queue, behind packets of the same flow.
    QueueOwn,
    /// In a switch's queue, behind packets of others.
    QueueOthers,
    /// In a switch's queue, with nothing on the line.
    QueueHeld,
    /// A request to send cells, on its way to the destination.
    Request,
    /// The request at the destination, whose line has the flow's other packets to come.
    SolicitationOwn,
    /// The same, with packets of others to come.
    SolicitationOthers,
    /// The same, with nothing to come.
    SolicitationHeld,
    /// What the destination asks by for data, on its way to the source.
    Solicitation,
    /// Inside a switch, before its queue.
    Inside,
    /// Onto a line.
    Transmission,
    /// Over a cable, and through the switch behind it.
    Propagation,
    /// At the destination.
    Destination,
}

impl Part {
    /// All of them, in the order in which a flow comes by them.
    pub const ALL: [Self; 17] = [
        Self::Start,
        Self::Sending,
        Self::SourceOthers,
        Self::Waiting,
        Self::Recovery,
        Self::Request,
        Self::SolicitationOwn,
        Self::SolicitationOthers,
        Self::SolicitationHeld,
        Self::Solicitation,
        Self::QueueOwn,
        Self::QueueOthers,
        Self::QueueHeld,
        Self::Inside,
        Self::Transmission,
        Self::Propagation,
        Self::Destination,
    ];

    /// Its name in results, snake case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "before_first_data",
            Self::Sending => "sending_before",
            Self::SourceOthers => "source_behind_others",
            Self::Waiting => "source_waiting",
            Self::Recovery => "retransmission_wait",
            Self::Request => "request_way",
            Self::SolicitationOwn => "solicitation_behind_own",
            Self::SolicitationOthers => "solicitation_behind_others",
            Self::SolicitationHeld => "solicitation_held",
            Self::Solicitation => "solicitation_way",
            Self::QueueOwn => "queue_behind_own",
            Self::QueueOthers => "queue_behind_others",
            Self::QueueHeld => "queue_held",
            Self::Inside => "inside_switch",
            Self::Transmission => "transmission",
            Self::Propagation => "propagation",
            Self::Destination => "destination",
        }
    }

    /// What it is, in a few words for people.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Start => "before the first data: handshake, credit, grant, slot or host",
            Self::Sending => "sending the flow's packets before the critical one",
            Self::SourceOthers => "source's line busy with other flows",
            Self::Waiting => "source's line idle: window, credit, pull, pacing or schedule",
            Self::Recovery => "source's line idle until lost bytes were sent again",
            Self::QueueOwn => "in the queue behind the flow's own packets",
            Self::QueueOthers => "in the queue behind other flows",
            Self::QueueHeld => {
                "in the queue of an idle line: paused, no credit, not its slot, or down"
            }
            Self::Request => "request to send, on its way",
            Self::SolicitationOwn => "until asked for, behind the flow's own packets",
            Self::SolicitationOthers => "until asked for, behind other flows",
            Self::SolicitationHeld => "until asked for: window, room or turn",
            Self::Solicitation => "clearance or request for data, on its way",
            Self::Inside => "inside the switch, before its queue",
            Self::Transmission => "transmission",
            Self::Propagation => "cable and switch latency",
            Self::Destination => "at the destination, after the last packet",
        }
    }
}

/// How much of a completion time a part is, at one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Which part.
    pub part: Part,
    /// The port, as an index into the places of the record; of what is inside a switch, that by which the packet
    /// left. `None`: at the destination.
    pub place: Option<u32>,
    /// How much.
    pub span: Span,
}

/// A port that a flow's data crossed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Queue {
    /// The port, as an index into the places of the record.
    pub place: u32,
    /// Data packets of the flow that waited for it or were dropped at it.
    pub packets: u64,
    /// Those of them that were dropped there, or lost on its line.
    pub lost: u64,
    /// How long the critical packet waited; at the source, how long the flow waited for others on the line until it
    /// was sent. `None`: it did not come by.
    pub critical: Option<Span>,
    /// How long packets waited on average.
    pub mean: Span,
    /// The longest that one waited.
    pub max: Span,
    /// The most bytes that one found waiting.
    pub deepest: u32,
    /// Beside whom the critical packet waited: bytes on the line in that time, by flow, most first; at the source, in
    /// all of the flow's time there. `None`: of no flow.
    pub beside: Vec<(Option<FlowId>, u64)>,
}

/// Where the time of a flow went that completed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Account {
    /// The flow.
    pub flow: FlowId,
    /// Its completion time.
    pub fct: Span,
    /// What that is made of, along the way; parts of no length are left out.
    pub shares: Vec<Share>,
    /// The ports that its data crossed, in the order in which the first packet did.
    pub queues: Vec<Queue>,
    /// Its critical packet, by number.
    pub critical: u32,
    /// Packets of data that were sent, and those of them that carried bytes again.
    pub packets: (u64, u64),
    /// What the parts leave of the completion time: zero, but where the record lacks something.
    pub rest: Span,
}

impl Account {
    /// A part over all places.
    #[must_use]
    pub fn total(&self, part: Part) -> Span {
        self.shares.iter().filter(|share| share.part == part).map(|share| share.span).sum()
    }

    /// The part that is the largest over all places.
    #[must_use]
    pub fn largest(&self) -> Part {
        let key = |part: &Part| (self.total(*part), std::cmp::Reverse(*part));
        Part::ALL.into_iter().max_by_key(key).expect("there are parts")
    }
}

/// Where the time of a flow went, whose hops these are, by packet; `None` if its data never came to its end in them.
#[must_use]
pub fn account(followed: &Followed, hops: &[Hop]) -> Option<Account> {
    let way = critical_way(followed.end, hops)?;
    let critical = way.last()?.packet;
    let mut shares = at_source(followed.start, way[0], hops);
    along(&way, &mut shares);
    let arrived = way.last().map_or(followed.end, |hop| hop.arrived);
    push(&mut shares, Part::Destination, None, span(arrived, followed.end));
    let fct = followed.end - followed.start;
    let sum: Span = shares.iter().map(|share| share.span).sum();
    let is_whole = hops.iter().any(|hop| hop.cell.is_none() && hop.is_data);
    let is_counted = |hop: &&Hop| hop.hop == 0 && (hop.cell.is_none() || !is_whole);
    let data = || hops.iter().filter(is_counted).filter(|hop| hop.is_data && !hop.to_source);
    let again = data().filter(|hop| hop.is_again).count() as u64;
    Some(Account {
        flow: followed.flow,
        fct,
        queues: queues(hops, &way),
        critical,
        packets: (data().count() as u64, again),
        rest: fct - sum.min(fct),
        shares,
    })
}

fn span(from: Time, to: Time) -> Span {
    if to > from { to - from } else { Span::ZERO }
}

fn push(shares: &mut Vec<Share>, part: Part, place: Option<u32>, span: Span) {
    if span == Span::ZERO {
        return;
    }
    match shares.iter_mut().find(|share| (share.part, share.place) == (part, place)) {
        Some(share) => share.span += span,
        None => shares.push(Share { part, place, span }),
    }
}

/// The way of the packet that brought the last bytes that were missing by `end`, hop by hop. Where packets go in cells,
/// with those of its cells that the rest waited for: from hop to hop backwards, the last that came before.
#[must_use]
pub fn critical_way(end: Time, hops: &[Hop]) -> Option<Vec<&Hop>> {
    let last = critical(end, hops)?;
    let all: Vec<&Hop> = hops.iter().filter(|hop| hop.packet == last.packet).collect();
    if all.iter().all(|hop| hop.cell.is_none()) {
        return Some(all);
    }
    let number = |hop: &Hop| hop.cell.as_ref().map(|cell| cell.number);
    let (mut way, mut at) = (vec![last], last);
    loop {
        let own = all.iter().find(|hop| number(hop) == number(at) && hop.hop + 1 == at.hop);
        let own = own.copied();
        let before =
            if at.cell.is_some() && own.is_some() { own } else { others(&all, at).or(own) };
        let Some(before) = before else { break };
        way.push(before);
        at = before;
    }
    way.reverse();
    Some(way)
}

/// Of what is of other cells of a packet, or of the packet itself, the last that had come when this hop began to wait.
fn others<'a>(all: &[&'a Hop], at: &Hop) -> Option<&'a Hop> {
    let number = |hop: &Hop| hop.cell.as_ref().map(|cell| cell.number);
    let others = all.iter().filter(|hop| number(hop) != number(at) && hop.arrived <= at.joined);
    let is_before = |hop: &&&Hop| (hop.joined, hop.started) < (at.joined, at.started);
    others.filter(is_before).max_by_key(|hop| (hop.arrived, hop.cell.is_some(), hop.hop)).copied()
}

/// The hop that brought the last bytes that were missing, by `end`.
fn critical(end: Time, hops: &[Hop]) -> Option<&Hop> {
    let mut arrivals: Vec<&Hop> =
        hops.iter().filter(|hop| hop.delivers() && hop.arrived <= end).collect();
    arrivals.sort_by_key(|hop| (hop.arrived, hop.packet));
    let mut covered = Covered::default();
    let brings = |hop: &&&Hop| covered.add(hop.offset, hop.payload.into()) > 0;
    arrivals.iter().filter(brings).last().copied()
}

/// What the source's line did from the flow's beginning until its packet `critical` went on it.
fn at_source(start: Time, critical: &Hop, hops: &[Hop]) -> Vec<Share> {
    let mut shares = Vec::new();
    let place = Some(critical.place);
    let mut sent: Vec<&Hop> = hops
        .iter()
        .filter(|hop| hop.hop == 0 && !hop.to_source && hop.place == critical.place)
        .filter(|hop| hop.started <= critical.started)
        .collect();
    sent.sort_by_key(|hop| hop.started);
    let bytes = |hop: &Hop| hop.offset..hop.offset + u64::from(hop.payload);
    let is_copy = |hop: &&&Hop| {
        let (ours, theirs) = (bytes(critical), bytes(hop));
        hop.is_data && ours.start < theirs.end && theirs.start < ours.end
    };
    let first_copy = sent.iter().find(is_copy).map_or(critical.started, |hop| hop.started);
    let (mut has_data, mut until) = (false, start);
    for hop in sent {
        let (gap, others) = (span(until, hop.started), hop.others);
        let others = others.min(gap);
        push(&mut shares, Part::SourceOthers, place, others);
        let idle = match has_data {
            false => Part::Start,
            true if hop.started > first_copy => Part::Recovery,
            true => Part::Waiting,
        };
        push(&mut shares, idle, place, gap - others);
        has_data |= hop.is_data;
        until = hop.sent;
        if hop.packet != critical.packet {
            push(&mut shares, Part::Sending, place, span(hop.started, hop.sent));
        }
    }
    shares
}

/// What the hops of a packet took, its wait at its source apart.
fn along(way: &[&Hop], shares: &mut Vec<Share>) {
    let mut before: Option<&Hop> = None;
    for hop in way {
        let place = Some(hop.place);
        let asks = hop.purpose().is_some_and(|purpose| purpose != Purpose::Payload);
        if let Some(before) = before.filter(|_| asks) {
            solicited(before, hop, shares);
        } else if let Some(before) = before {
            push(shares, Part::Inside, place, span(before.arrived, hop.joined));
            push(shares, Part::QueueOwn, place, hop.own.min(hop.wait()));
            push(
                shares,
                Part::QueueOthers,
                place,
                hop.others.min(hop.wait() - hop.own.min(hop.wait())),
            );
            push(shares, Part::QueueHeld, place, hop.held());
        }
        if before.is_none() || !asks {
            push(shares, Part::Transmission, place, hop.transmission());
            push(shares, Part::Propagation, place, hop.propagation);
        }
        before = Some(hop);
    }
}

/// What a hop took of a cell that asks, or is asked by: all that is its way counts as such, where its destination lets it
/// wait apart.
fn solicited(before: &Hop, hop: &Hop, shares: &mut Vec<Share>) {
    let place = Some(hop.place);
    if hop.purpose() == Some(Purpose::Request) {
        return push(shares, Part::Request, place, span(before.arrived, hop.arrived));
    }
    let own = hop.own.min(hop.wait());
    if hop.hop == 0 {
        push(shares, Part::SolicitationOwn, place, own);
        push(shares, Part::SolicitationOthers, place, hop.others.min(hop.wait() - own));
        push(shares, Part::SolicitationHeld, place, hop.held());
    } else {
        push(shares, Part::Solicitation, place, hop.wait());
    }
    push(shares, Part::Solicitation, place, span(before.arrived, hop.joined));
    push(shares, Part::Solicitation, place, span(hop.started, hop.arrived));
}

/// The ports that the data of a flow came by, and what it found there; of a flow without a critical packet, what all
/// of its packets did.
#[must_use]
pub fn queues_of(hops: &[Hop]) -> Vec<Queue> {
    queues(hops, &[])
}

fn queues(hops: &[Hop], way: &[&Hop]) -> Vec<Queue> {
    let asks = |hop: &Hop| hop.purpose() == Some(Purpose::Solicitation) && hop.hop == 0;
    let is_shown = |hop: &Hop| if hop.to_source { asks(hop) } else { hop.is_data };
    let data = hops.iter().filter(|hop| is_shown(hop));
    let mut at: BTreeMap<u32, (Time, Vec<&Hop>)> = BTreeMap::new();
    for hop in data {
        let (first, all) = at.entry(hop.place).or_insert((hop.joined, Vec::new()));
        *first = (*first).min(hop.joined);
        all.push(hop);
    }
    let mut in_order: Vec<_> = at.into_iter().collect();
    // Cells are between the packet's line into the first switch and that out of the last.
    let stage = |hop: &&Hop| match &hop.cell {
        None => (3 * u8::from(hop.hop > 0), hop.hop),
        Some(_) => (1 + u8::from(hop.is_data), hop.hop),
    };
    in_order.sort_by_key(|(place, (first, all))| (all.iter().map(stage).min(), *first, *place));
    let source = way.first();
    let queue = |(place, (_, all)): (u32, (Time, Vec<&Hop>))| {
        let on_way = way.iter().find(|hop| hop.place == place && is_shown(hop));
        let is_source = all.iter().any(|hop| hop.hop == 0 && hop.cell.is_none());
        let until = source.map(|hop| hop.started);
        let seen: Vec<&Hop> = match on_way {
            // What went before the data, as a handshake did, has waited too.
            Some(_) if is_source => {
                let sent = hops.iter().filter(|hop| hop.place == place && !hop.to_source);
                sent.filter(|hop| Some(hop.started) <= until).collect()
            }
            Some(hop) => vec![hop],
            None => Vec::new(),
        };
        let waits = |hop: &&Hop| if is_source { hop.others } else { hop.wait() };
        let count = all.len() as u64;
        let sum: Span = all.iter().map(waits).sum();
        Queue {
            place,
            packets: count,
            lost: all.iter().filter(|hop| hop.outcome != super::Outcome::Arrived).count() as u64,
            critical: on_way.map(|_| seen.iter().map(waits).sum()),
            mean: sum / count,
            max: all.iter().map(waits).max().unwrap_or(Span::ZERO),
            deepest: all.iter().map(|hop| hop.found_bytes).max().unwrap_or(0),
            beside: most(&seen),
        }
    };
    in_order.into_iter().map(queue).collect()
}

/// What hops say of other flows, together.
fn most(hops: &[&Hop]) -> Vec<(Option<FlowId>, u64)> {
    let mut sums: BTreeMap<Option<FlowId>, u64> = BTreeMap::new();
    for &(flow, bytes) in hops.iter().flat_map(|hop| &hop.beside) {
        *sums.entry(flow).or_default() += bytes;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|&(flow, bytes)| (std::cmp::Reverse(bytes), flow));
    sums.truncate(super::BESIDE_MAX);
    sums
}
