//! The record of chosen flows' packets, as a run keeps it that is asked to.
//!
//! Whether there is one is asked where something else is asked anyway that hardly ever holds: [`Net::observe`],
//! [`Net::admit_apart`], [`Net::refuses_at_nic`]. So a run without it takes no branch for it.
//!
//! A part of a network knows of a flow whose source is elsewhere neither its number in the run nor when it starts: it
//! records all packets between the same two hosts while a chosen flow is open, and `network::trace` picks out
//! those that are meant, when all parts are put together.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use kernel::{Span, Time};
use rack::trace::{Followed, HOPS_MAX, LineRecorder, Outcome, Tally};
use rack::{Flow, FlowId};

use super::Net;
use super::halves::Name;
use crate::inside::Chosen;
use crate::packet::{FlowKey, Packet};

/// Packets that a port has sent are kept while somebody waits for it; the list is looked through for what nobody
/// needs any more whenever it has doubled, and from so many on (our choice).
const LOG_MIN: usize = 4096;

/// What was on a line.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    start: Time,
    end: Time,
    /// Whose it was; `None`: no flow's.
    name: Option<Name>,
    bytes: u16,
}

impl Sent {
    /// Counts it for a packet of `name` that has waited for the line since then.
    fn count(&self, tally: &mut Tally<Name>, name: Name, since: Time) {
        let times = [self.start, self.end];
        tally.add_since(since, name, self.name, times, self.bytes.into());
    }
}

/// A packet in a queue.
#[derive(Clone, Debug)]
struct Waiter {
    joined: Time,
    found: [u32; 2],
    /// What was on the line then.
    ahead: Sent,
    /// From where on in the log it has waited for what was sent.
    from: u64,
}

/// A flow at its source, that waits for its next packet to go.
#[derive(Clone, Debug)]
struct Turn {
    name: Name,
    since: Time,
    /// When the flow ends.
    until: Time,
    tally: Tally<Name>,
}

/// What waits for a port.
#[derive(Clone, Debug, Default)]
struct Waits {
    packets: BTreeMap<u32, Waiter>,
    turns: Vec<Turn>,
    /// What the port has sent since the first of the packets joined.
    log: VecDeque<Sent>,
    /// Entries that are no longer in the log.
    gone: u64,
    trim_at: usize,
}

impl Waits {
    /// Forgets what nobody needs.
    fn trim(&mut self) {
        let first = self.packets.values().map(|waiter| waiter.from).min();
        let first = first.unwrap_or(self.gone + self.log.len() as u64);
        let count = (first - self.gone) as usize;
        self.log.drain(..count);
        self.gone = first;
        self.trim_at = LOG_MIN.max(2 * self.log.len());
    }

    fn push(&mut self, sent: Sent) {
        if self.packets.is_empty() {
            self.gone += self.log.len() as u64;
            self.log.clear();
            return;
        }
        self.log.push_back(sent);
        if self.log.len() >= self.trim_at.max(LOG_MIN) {
            self.trim();
        }
    }
}

/// A packet at a port, as it was seen there.
#[derive(Clone, Debug)]
pub(crate) struct Sight {
    /// When: as it went on the line, or when it was lost.
    pub(crate) at: Time,
    pub(crate) port: u32,
    /// As it was then.
    pub(crate) packet: Packet,
    pub(crate) what: What,
}

/// What was seen.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// It went on the line.
    Sent(Box<Passage>),
    /// It was lost, in the queue of the port or on the way from it; of no port: where its last hop has led.
    Gone(Outcome),
}

/// How a packet went by a port.
#[derive(Clone, Debug)]
pub(crate) struct Passage {
    pub(crate) joined: Time,
    pub(crate) sent: Time,
    pub(crate) arrives: Time,
    pub(crate) propagation: Span,
    pub(crate) found: [u32; 2],
    pub(crate) own: Span,
    pub(crate) others: Span,
    pub(crate) beside: Vec<(Option<Name>, u64)>,
}

/// The record of a part.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    /// Flows that are to be recorded.
    chosen: Arc<Chosen>,
    /// By flow: when it ends.
    ends: Arc<BTreeMap<FlowId, Time>>,
    /// By port: what it has sent last.
    last: Vec<Sent>,
    waits: BTreeMap<u32, Waits>,
    pub(crate) sights: Vec<Sight>,
    /// Flows to be recorded that have begun at a host here.
    pub(crate) names: Vec<(Name, FlowId)>,
    /// Whether there was more to record than is kept.
    pub(crate) is_full: bool,
    /// What lines carried, of all flows.
    pub(crate) lines: LineRecorder,
}

/// Whose a packet is: the flow as its hosts name it; `None`: no flow's.
pub(crate) fn owner(packet: &Packet) -> Option<Name> {
    let is_flows = packet.flow.place() != FlowKey::NEIGHBOURS.place() && !packet.is_link_frame();
    is_flows.then(|| Name::of(packet))
}

impl Recorder {
    /// Of these flows, in a network of so many ports.
    pub(crate) fn new(followed: &[Followed], chosen: &Arc<Chosen>, ports: usize) -> Self {
        Self {
            chosen: Arc::clone(chosen),
            ends: Arc::new(followed.iter().map(|flow| (flow.flow, flow.end)).collect()),
            last: vec![Sent::default(); ports],
            waits: BTreeMap::new(),
            sights: Vec::new(),
            names: Vec::new(),
            is_full: false,
            lines: LineRecorder::new(ports),
        }
    }

    /// The flow of a packet, if it may be one that is recorded.
    fn wanted(&self, packet: &Packet, now: Time) -> Option<Name> {
        self.chosen.wanted(packet, now)
    }

    fn see(&mut self, sight: Sight) {
        self.is_full |= self.sights.len() >= HOPS_MAX;
        if !self.is_full {
            self.sights.push(sight);
        }
    }

    /// A flow begins at its source, whose NIC is `port`.
    fn begins(&mut self, flow: &Flow, name: Name, port: u32) {
        let Some(&until) = self.ends.get(&flow.id) else { return };
        self.names.push((name, flow.id));
        let mut tally = Tally::default();
        self.last[port as usize].count(&mut tally, name, flow.start);
        let waits = self.waits.entry(port).or_default();
        waits.turns.push(Turn { name, since: flow.start, until, tally });
    }

    fn joins(&mut self, index: u32, port: u32, packet: &Packet, (now, found): (Time, [u32; 2])) {
        if self.wanted(packet, now).is_none() {
            return;
        }
        let waits = self.waits.entry(port).or_default();
        let from = waits.gone + waits.log.len() as u64;
        let waiter = Waiter { joined: now, found, ahead: self.last[port as usize], from };
        waits.packets.insert(index, waiter);
    }

    /// A packet goes on the line of `port` until `end`; at the other end it `arrives`.
    fn leaves(&mut self, index: u32, port: u32, packet: &Packet, times: [Time; 3], delay: Span) {
        let [now, end, arrives] = times;
        let name = owner(packet);
        let sent = Sent { start: now, end, name, bytes: packet.wire };
        let wanted = self.wanted(packet, now);
        let waits = match wanted {
            Some(_) => Some(self.waits.entry(port).or_default()),
            None => self.waits.get_mut(&port),
        };
        let mut sight = None;
        if let Some(waits) = waits {
            let waiter = waits.packets.remove(&index);
            if let Some(name) = wanted {
                let (joined, tally, found) = waits.past(name, packet, waiter, now);
                let Tally { own, others, .. } = tally;
                let beside = tally.most();
                sight = Some(Box::new(Passage {
                    joined,
                    sent: end,
                    arrives,
                    propagation: delay,
                    found,
                    own,
                    others,
                    beside,
                }));
            }
            waits.turns.retain_mut(|turn| turn.sees(&sent, packet));
            waits.push(sent);
        }
        self.last[port as usize] = sent;
        if let Some(passage) = sight {
            self.see(Sight { at: now, port, packet: *packet, what: What::Sent(passage) });
        }
    }

    fn gone(&mut self, index: u32, port: u32, packet: &Packet, (now, why): (Time, Outcome)) {
        if let Some(waits) = self.waits.get_mut(&port) {
            waits.packets.remove(&index);
        }
        if self.wanted(packet, now).is_some() {
            self.see(Sight { at: now, port, packet: *packet, what: What::Gone(why) });
        }
    }
}

impl Turn {
    /// Something goes on the line. False once the flow is over.
    fn sees(&mut self, sent: &Sent, packet: &Packet) -> bool {
        if sent.name == Some(self.name) && !packet.goes_to_source() {
            self.since = sent.end;
            self.tally = Tally::default();
        } else {
            sent.count(&mut self.tally, self.name, self.since);
        }
        sent.start <= self.until
    }
}

impl Waits {
    /// Since when a packet of `name`, which goes on the line now, has waited, what went before it, and what it found.
    fn past(
        &self,
        name: Name,
        packet: &Packet,
        waiter: Option<Waiter>,
        now: Time,
    ) -> (Time, Tally<Name>, [u32; 2]) {
        let found = waiter.as_ref().map_or([0; 2], |waiter| waiter.found);
        let turn = self.turns.iter().find(|turn| turn.name == name);
        if let Some(turn) = turn.filter(|_| !packet.goes_to_source()) {
            return (turn.since, turn.tally.clone(), found);
        }
        let Some(waiter) = waiter else { return (now, Tally::default(), found) };
        let mut tally = Tally::default();
        waiter.ahead.count(&mut tally, name, waiter.joined);
        let from = (waiter.from - self.gone) as usize;
        self.log.range(from..).for_each(|sent| sent.count(&mut tally, name, waiter.joined));
        (waiter.joined, tally, waiter.found)
    }
}

impl Net {
    /// From now on packets of these flows are recorded.
    pub(crate) fn record(&mut self, followed: &[Followed], chosen: &Arc<Chosen>) {
        self.recorder = Some(Box::new(Recorder::new(followed, chosen, self.ports.len())));
        self.is_observed = true;
        self.admits_apart = true;
        self.asks_at_nics = true;
    }

    /// A packet has gone on the line of `port` and is there `at` an instant, `delay` of which is the way.
    #[cold]
    pub(super) fn observe(&mut self, index: u32, port: u32, at: Time, delay: Span) {
        self.go_through_bytes(index);
        let Some(recorder) = &mut self.recorder else { return };
        let out = &self.ports[port as usize];
        let (times, packet) = ([self.now, out.free_at, at], self.arena.get(index));
        recorder.lines.sends(port, self.now, packet.wire, out.bytes);
        recorder.leaves(index, port, packet, times, delay);
    }

    /// A packet joins the queue of `port`, of which note is to be taken.
    pub(super) fn note_joined(&mut self, index: u32, port: u32) {
        let Some(recorder) = &mut self.recorder else { return };
        let out = &self.ports[port as usize];
        let found = [out.bytes, out.packets];
        recorder.joins(index, port, self.arena.get(index), (self.now, found));
    }

    /// A packet is lost at `port`, or on the way from it; with [`super::NONE`] where its last hop has led.
    pub(super) fn note_lost(&mut self, index: u32, port: u32, why: Outcome) {
        if let Some(recorder) = &mut self.recorder {
            recorder.gone(index, port, self.arena.get(index), (self.now, why));
        }
    }

    /// Two packets at `port` have exchanged their places in the arena.
    pub(super) fn note_exchanged(&mut self, port: u32, [a, b]: [u32; 2]) {
        let Some(recorder) = &mut self.recorder else { return };
        let Some(waits) = recorder.waits.get_mut(&port) else { return };
        let (first, second) = (waits.packets.remove(&a), waits.packets.remove(&b));
        waits.packets.extend(first.map(|waiter| (b, waiter)));
        waits.packets.extend(second.map(|waiter| (a, waiter)));
    }

    /// A packet that waited for `port` waits for another.
    pub(super) fn note_turned(&mut self, index: u32, port: u32, other: u32) {
        let Some(recorder) = &mut self.recorder else { return };
        if let Some(waits) = recorder.waits.get_mut(&port) {
            waits.packets.remove(&index);
        }
        self.note_joined(index, other);
    }

    /// A flow begins at its source.
    pub(crate) fn note_begun(&mut self, flow: &Flow, name: Name) {
        let port = self.nics[flow.src.index()];
        if let Some(recorder) = &mut self.recorder {
            recorder.begins(flow, name, port);
        }
    }
}
