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

use super::{Covered, Followed, Hop};
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
    pub const ALL: [Self; 12] = [
        Self::Start,
        Self::Sending,
        Self::SourceOthers,
        Self::Waiting,
        Self::Recovery,
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
    let critical = critical(followed.end, hops)?;
    let way: Vec<&Hop> = hops.iter().filter(|hop| hop.packet == critical).collect();
    let mut shares = at_source(followed.start, way[0], hops);
    along(&way, &mut shares);
    let arrived = way.last().map_or(followed.end, |hop| hop.arrived);
    push(&mut shares, Part::Destination, None, span(arrived, followed.end));
    let fct = followed.end - followed.start;
    let sum: Span = shares.iter().map(|share| share.span).sum();
    let data = || hops.iter().filter(|hop| hop.hop == 0 && hop.is_data && !hop.to_source);
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

/// The packet that brought the last bytes that were missing, by `end`.
fn critical(end: Time, hops: &[Hop]) -> Option<u32> {
    let mut arrivals: Vec<&Hop> =
        hops.iter().filter(|hop| hop.delivers() && hop.arrived <= end).collect();
    arrivals.sort_by_key(|hop| (hop.arrived, hop.packet));
    let mut covered = Covered::default();
    let brings = |hop: &&&Hop| covered.add(hop.offset, hop.payload.into()) > 0;
    arrivals.iter().filter(brings).last().map(|hop| hop.packet)
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
        if let Some(before) = before {
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
        push(shares, Part::Transmission, place, hop.transmission());
        push(shares, Part::Propagation, place, hop.propagation);
        before = Some(hop);
    }
}

/// The ports that the data of a flow came by, and what it found there; of a flow without a critical packet, what all
/// of its packets did.
#[must_use]
pub fn queues_of(hops: &[Hop]) -> Vec<Queue> {
    queues(hops, &[])
}

fn queues(hops: &[Hop], way: &[&Hop]) -> Vec<Queue> {
    let data = hops.iter().filter(|hop| hop.is_data && !hop.to_source);
    let mut at: BTreeMap<u32, (Time, Vec<&Hop>)> = BTreeMap::new();
    for hop in data {
        let (first, all) = at.entry(hop.place).or_insert((hop.joined, Vec::new()));
        *first = (*first).min(hop.joined);
        all.push(hop);
    }
    let mut in_order: Vec<_> = at.into_iter().collect();
    in_order
        .sort_by_key(|(place, (first, all))| (all.iter().map(|hop| hop.hop).min(), *first, *place));
    let source = way.first();
    let queue = |(place, (_, all)): (u32, (Time, Vec<&Hop>))| {
        let on_way = way.iter().find(|hop| hop.place == place);
        let is_source = all.iter().any(|hop| hop.hop == 0);
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
