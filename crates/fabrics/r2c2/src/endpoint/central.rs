//! The centralised design that R2C2 is compared with (§2.2.2, §5.2): one node computes the rates of all.
//!
//! Models: R2C2 §5.2, Fig. 19 (claim M53). At each start, end and change of a flow "the source sends a
//! unicast message to the controller, which computes the rates and sends to each rack node sourcing a flow
//! a different rate message with all the new rates for its own flows". Nothing is broadcast; nodes know of no
//! flows but their own. With an interval the controller computes once in it, if it has heard anything.
//!
//! The paper says no more. **Our choices**:
//!
//! - Messages take shortest paths: the controller's broadcast trees, one for each node, up and down. So what
//!   one node says comes in order, where no link corrupts it.
//! - A rate has no name with it (Fig. 19 leaves room for 4 bytes a rate). The controller says of which list of
//!   the node's flows it speaks, by a tag; the node remembers its last lists, and finds the flows by that.
//! - A packet of the simulated network carries 32 bytes, five rates; more flows of a node take more packets, which
//!   together are as long as the one of the design ([`super::frames`]).
//! - While the controller is out of reach flows keep their last rates, and new ones go at the initial rate.
//!   Where nodes or links may fail, a message of which a node on the way goes by another map is dropped. There a
//!   source that has no answer after the interval and `recovery.patience` says all its flows again, each time
//!   after twice as long; and the controller answers also nodes whose last flow is over.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kernel::{Span, Time};
use packets::{Outbox, Packet, Timer};
use rack::NodeId;
use serde::Serialize;

use crate::config::{Batch, Plan, SPAN_MAX};
use crate::endpoint::kinds;
use crate::wire::central::{tag, tag_of_sum};
use crate::wire::{self, Announcement, Event, Kbps, Message, Rates, Report, Tail};

use super::frames::{carried, carry};
use super::news::{News, Scene, name_of_anew, name_of_said, vertex};
use super::senders::Senders;
use super::{ANSWER, Endpoints};

/// How many changes of its list a source remembers: more than come between a message of the controller and the
/// source's last word that it had heard, unless its links are full.
const CHANGES_MAX: usize = 1 << 12;
/// How many parts a list may have.
const PARTS_MAX: usize = 256;
/// How often a source without flows asks again, when the controller does not answer.
const ASKS_MAX: u32 = 6;

/// A flow in the list of its source: where it goes, and which of the flows there.
type Named = (NodeId, u8);

/// What became of messages to and from the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub(super) struct Counts {
    /// Sent by sources.
    reports: u64,
    /// Packets with rates that the controller sent.
    rates: u64,
    /// Packets of both put on links.
    copies: u64,
    /// Their bytes. Unit: bytes.
    bytes: u64,
    /// Packets that a link or a full queue lost; those of a link that lives are retransmitted.
    lost: u64,
    /// Messages for which no way led, or that a node on the way dropped because it went by another map.
    dropped: u64,
    /// Packets with rates of a list that the source does not remember, or older than others.
    stale: u64,
    /// Times that a source said all its flows again because the controller had not answered.
    unanswered: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.reports += other.reports;
        self.rates += other.rates;
        self.copies += other.copies;
        self.bytes += other.bytes;
        self.lost += other.lost;
        self.dropped += other.dropped;
        self.stale += other.stale;
        self.unanswered += other.unanswered;
    }
}

/// A flow came into a list, changed there or left it.
#[derive(Clone, Copy, Debug)]
struct Change {
    named: Named,
    /// The number under which it was in the list before; `None`: it was not.
    before: Option<u8>,
    /// The sum of all before.
    sum_before: u32,
}

/// What a source has reported, and heard.
#[derive(Clone, Debug, Default)]
struct Source {
    /// Its flows, each with the number of what it said last.
    list: BTreeMap<Named, u8>,
    /// Of what they add to the tag.
    sum: u32,
    /// How the list came to be, the last change last.
    changes: VecDeque<Change>,
    /// The round of the last rates that came.
    round: Option<u16>,
    /// The parts that have come of the rates of the list as it is, in that round.
    parts: BTreeSet<u8>,
    /// Since when it waits for an answer.
    asked_at: Option<Time>,
    /// How often it has asked in vain.
    asks: u32,
    /// Whether its timer is set.
    is_timed: bool,
}

impl Source {
    fn set(&mut self, named: Named, number: Option<u8>) {
        let before = match number {
            Some(number) => self.list.insert(named, number),
            None => self.list.remove(&named),
        };
        if self.changes.len() == CHANGES_MAX {
            self.changes.pop_front();
        }
        self.changes.push_back(Change { named, before, sum_before: self.sum });
        let adds = |number: Option<u8>| number.map_or(0, |number| tag(named, number));
        self.sum = self.sum.wrapping_add(adds(number)).wrapping_sub(adds(before));
    }

    fn clear(&mut self) {
        self.list.clear();
        self.changes.clear();
        self.sum = 0;
    }

    fn tag(&self) -> u32 {
        tag_of_sum(self.sum)
    }

    /// The list of this tag: that of now, or an earlier one.
    fn list_of(&mut self, wanted: u32) -> Option<Vec<Named>> {
        let mut list = self.list.clone();
        if self.tag() == wanted {
            return Some(list.into_keys().collect());
        }
        for at in (0..self.changes.len()).rev() {
            let Change { named, before, sum_before } = self.changes[at];
            match before {
                Some(number) => list.insert(named, number),
                None => list.remove(&named),
            };
            if tag_of_sum(sum_before) == wanted {
                // The controller has heard what led there, and will not speak of earlier lists.
                self.changes.drain(..at);
                return Some(list.into_keys().collect());
            }
        }
        None
    }
}

/// The controller, and what sources know of it.
#[derive(Clone, Debug)]
pub(super) struct Central {
    controller: NodeId,
    /// Most rates in a packet.
    rates_max: usize,
    /// At the controller, by node: the round of the last rates for it.
    rounds: Vec<u16>,
    /// How many computations are due there.
    due: u8,
    /// How many are after something was heard: where flows count only once they have lasted an interval, that
    /// is so after the next but one at the latest.
    due_after: u8,
    /// At the controller: who is to be answered, whether it has flows or not; empty where nothing fails.
    owed: BTreeSet<NodeId>,
    /// How long a source waits for an answer; `None` where nothing fails.
    wait: Option<Span>,
    sources: Vec<Source>,
    counts: Counts,
}

impl Central {
    /// As configured; `None` if each node computes its own rates.
    pub(super) fn new(plan: &Plan) -> Option<Self> {
        let controller = plan.controller()?;
        let nodes = plan.nodes() as usize;
        let config = &plan.config;
        let wait = config.interval.as_ps().saturating_add(config.recovery.patience.as_ps());
        Some(Self {
            controller,
            rates_max: plan.rates_max(),
            rounds: vec![0; nodes],
            due: 0,
            due_after: if config.batch == Batch::Lasting { 2 } else { 1 },
            owed: BTreeSet::new(),
            wait: plan.has_faults().then_some(Span::from_ps(wait)),
            sources: vec![Source::default(); nodes],
            counts: Counts::default(),
        })
    }

    /// Whether a node is the controller.
    pub(super) fn is_at(&self, node: NodeId) -> bool {
        self.controller == node
    }

    /// Whether the controller has something to compute.
    pub(super) fn is_due(&self) -> bool {
        self.due > 0
    }

    /// The controller has heard of a change.
    pub(super) fn set_due(&mut self) {
        self.due = self.due_after;
    }

    /// A packet to or from the controller is lost.
    pub(super) fn loses(&mut self) {
        self.counts.lost += 1;
    }

    fn hears(&mut self, source: NodeId) {
        self.set_due();
        if self.wait.is_some() {
            self.owed.insert(source);
        }
    }

    /// What a source reports changes the list that it has.
    fn note(&mut self, said: &Report) {
        let source = &mut self.sources[said.source().index()];
        match said {
            Report::Anew(_) => source.clear(),
            Report::Flow(Announcement { event, destination, index, number, .. }) => {
                let is_over = *event == Event::Finish;
                source.set((*destination, *index), (!is_over).then_some(*number));
            }
        }
    }

    /// A source waits for an answer from now on.
    fn expect(&mut self, node: NodeId, out: &mut Outbox) {
        let Some(wait) = self.wait else { return };
        let source = &mut self.sources[node.index()];
        source.asked_at = Some(out.now());
        source.parts.clear();
        if !std::mem::replace(&mut source.is_timed, true) {
            out.set_timer(Timer::Host(node, ANSWER), out.now() + wait);
        }
    }

    /// Whether it is time for a source to say all again; sets its timer if it waits on.
    fn is_unanswered(&mut self, node: NodeId, out: &mut Outbox) -> bool {
        let Some(wait) = self.wait else { return false };
        let source = &mut self.sources[node.index()];
        source.is_timed = false;
        let Some(asked_at) = source.asked_at else { return false };
        let wait = wait.as_ps().saturating_mul(1 << source.asks.min(20)).min(SPAN_MAX.as_ps());
        let until = asked_at + Span::from_ps(wait);
        if until > out.now() {
            source.is_timed = true;
            out.set_timer(Timer::Host(node, ANSWER), until);
            return false;
        }
        source.asks += 1;
        source.asks <= ASKS_MAX || !source.list.is_empty()
    }

    /// What the controller tells a node of its flows; `None` if the node cannot use it.
    fn read(&mut self, rates: &Rates) -> Option<BTreeMap<Named, Kbps>> {
        let source = &mut self.sources[rates.node.index()];
        let is_older = |last: u16| rates.round.wrapping_sub(last) >= 1 << 15;
        if source.round.is_some_and(is_older) {
            self.counts.stale += 1;
            return None;
        }
        let Some(list) = source.list_of(rates.tag) else {
            self.counts.stale += 1;
            return None;
        };
        if source.round != Some(rates.round) {
            source.parts.clear();
        }
        source.round = Some(rates.round);
        if source.tag() == rates.tag {
            source.parts.insert(rates.part);
            let parts = list.len().div_ceil(self.rates_max).clamp(1, PARTS_MAX);
            if source.parts.len() >= parts {
                (source.asked_at, source.asks) = (None, 0);
            }
        }
        let first = usize::from(rates.part) * self.rates_max;
        let flows = list.into_iter().skip(first).zip(rates.rates.iter().copied());
        Some(flows.collect())
    }

    /// Adds what was counted for other nodes.
    pub(super) fn add_counts(&mut self, other: &Self) {
        self.counts.add(other.counts);
    }

    /// Whether a source has had no answer to what it said last.
    #[cfg(test)]
    pub(super) fn waits(&self, node: NodeId) -> bool {
        self.sources[node.index()].asked_at.is_some()
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }
}

/// What has come by the controller's trees to where it was meant for.
pub(super) enum Heard {
    /// To the controller: news of a flow.
    News,
    /// To a source.
    Rates(Rates),
}

impl News {
    /// A source tells the controller, if it is to be reached.
    pub(super) fn report(&mut self, said: Report, round: u32, scene: &mut Scene<'_>) {
        let central = self.central.as_mut().expect("reports are for a controller");
        let (source, controller) = (said.source(), central.controller);
        central.note(&said);
        if source == controller {
            return central.set_due();
        }
        let map = scene.maps.of(source);
        if !map.is_whole() && !map.routes.joins(source, controller) {
            central.counts.dropped += 1;
            return;
        }
        central.counts.reports += 1;
        central.expect(source, scene.out);
        let tail = Tail { dead: map.digest, round, again: None };
        let bytes = tail.encode(&said.encode());
        self.pass(source, (source, None), &bytes, scene);
    }

    /// Puts a message on the link that leads `node` towards the controller or, if it is meant for a node, to
    /// that, by the tree of the node `by`.
    fn pass(
        &mut self,
        node: NodeId,
        (by, to): (NodeId, Option<NodeId>),
        bytes: &[u8],
        scene: &mut Scene<'_>,
    ) {
        let central = self.central.as_mut().expect("messages of a controller");
        let root = central.controller;
        let trees = &mut scene.maps.of_mut(node).trees;
        trees.prepare(root);
        let tree = (by.get() % u32::from(trees.trees())) as u8;
        let port = match to {
            None => trees.parent(root, tree, vertex(node)),
            Some(to) => trees.towards(root, tree, vertex(node), vertex(to)),
        };
        let Some(port) = port else {
            central.counts.dropped += 1;
            return;
        };
        let packet = Packet { kind: kinds::CENTRAL, priority: self.priority, ..carry(bytes) };
        central.counts.copies += 1;
        central.counts.bytes += u64::from(packet.wire);
        scene.tell(node, port, packet);
    }

    /// `node` hears a message to or from the controller, and passes it on if it is for another.
    pub(super) fn hear_central(
        &mut self,
        node: NodeId,
        packet: &Packet,
        scene: &mut Scene<'_>,
    ) -> Option<Heard> {
        let nodes = scene.topology.hosts();
        let bytes = carried(packet);
        let read = bytes.and_then(|(all, length)| wire::tail::decode(&all[..length], nodes).ok());
        let (Some(central), Some((message, tail)), Some((bytes, length))) =
            (&mut self.central, read, bytes)
        else {
            scene.out.unexpected();
            return None;
        };
        if scene.maps.of(node).digest != tail.dead {
            central.counts.dropped += 1;
            return None;
        }
        let is_controller = central.is_at(node);
        let (by, to) = match message {
            Message::Report(said) if is_controller => return self.take_report(node, &said, scene),
            Message::Rates(rates) if rates.node == node && !is_controller => {
                return Some(Heard::Rates(rates));
            }
            Message::Report(said) => (said.source(), None),
            Message::Rates(rates) if !is_controller => (rates.node, Some(rates.node)),
            _ => {
                scene.out.unexpected();
                return None;
            }
        };
        self.pass(node, (by, to), &bytes[..length], scene);
        None
    }

    /// The controller hears of a flow, or that a source begins anew.
    fn take_report(&mut self, node: NodeId, said: &Report, scene: &mut Scene<'_>) -> Option<Heard> {
        let source = said.source();
        let is_usable = match said {
            Report::Flow(said) => self.may_use(said.allocation.protocol),
            Report::Anew(_) => true,
        };
        if source == node || !is_usable {
            scene.out.unexpected();
            return None;
        }
        let name = match said {
            Report::Flow(said) => name_of_said(said),
            Report::Anew(said) => name_of_anew(said),
        };
        if !self.meets(node, source, name, scene) {
            return None;
        }
        match said {
            Report::Flow(said) => {
                self.facts.hear(node, said, scene.out.now(), &mut Default::default());
            }
            Report::Anew(said) => self.facts.hear_anew(node, said),
        }
        self.central.as_mut().expect("it is there").hears(source);
        Some(Heard::News)
    }

    /// The controller tells a node the rates of its flows, each with the number of what was said last of it.
    fn send_rates(
        &mut self,
        to: NodeId,
        list: &BTreeMap<Named, (u8, Kbps)>,
        scene: &mut Scene<'_>,
    ) {
        let central = self.central.as_mut().expect("it is there");
        let (from, most) = (central.controller, central.rates_max);
        let round = &mut central.rounds[to.index()];
        *round = round.wrapping_add(1);
        let round = *round;
        let add = |sum: u32, (&named, &(number, _)): (&Named, &(u8, Kbps))| {
            sum.wrapping_add(tag(named, number))
        };
        let tag = tag_of_sum(list.iter().fold(0, add));
        let rates: Vec<Kbps> = list.values().map(|&(_, rate)| rate).collect();
        let dead = scene.maps.of(from).digest;
        // One without rates says that the controller knows of no flow.
        let parts: Vec<&[Kbps]> =
            if rates.is_empty() { vec![&[]] } else { rates.chunks(most).collect() };
        for (part, rates) in (0..PARTS_MAX).zip(parts) {
            let (way, rates) = (wire::way(0, dead, 0), rates.to_vec());
            let said = Rates { node: to, way, round, part: part as u8, tag, rates };
            let bytes = Tail { dead, ..Tail::default() }.encode(&said.encode());
            self.central.as_mut().expect("it is there").counts.rates += 1;
            self.pass(from, (to, Some(to)), &bytes, scene);
        }
    }
}

impl Endpoints {
    /// A message to or from the controller comes to a node.
    pub(super) fn hear_central(&mut self, node: NodeId, packet: &Packet, out: &mut Outbox) {
        let (news, mut scene) = self.speak(out);
        match news.hear_central(node, packet, &mut scene) {
            None => {}
            Some(Heard::News) => {
                self.note_flows(node, out);
                self.serve_controller(node, out);
            }
            Some(Heard::Rates(rates)) => {
                let central = self.news.central.as_mut().expect("it is there");
                if let Some(rates) = central.read(&rates) {
                    hold(&mut self.senders, node, &rates, out);
                }
            }
        }
    }

    /// If `node` is the controller and has heard anything new, it computes: at once, or at its next time.
    pub(super) fn serve_controller(&mut self, node: NodeId, out: &mut Outbox) {
        let Some(central) = &self.news.central else { return };
        if !central.is_at(node) || !central.is_due() {
            return;
        }
        if self.pace.follows_every_event() {
            self.compute_for_all(node, out);
        } else {
            self.pace.has_flows(node, out);
        }
    }

    /// It is time for a node to estimate what its hosts can send and, if it is the controller, to compute.
    pub(super) fn tick_centrally(&mut self, node: NodeId, out: &mut Outbox) {
        if self.pace.tick(node, &self.senders, out) {
            let Self { pace, senders, news, maps, neighbours, plan, .. } = self;
            let mut scene = Scene { topology: &plan.network.topology, maps, neighbours, out };
            pace.observe(node, senders, news, &mut scene);
        }
        let is_due = |central: &Central| central.is_at(node) && central.is_due();
        if self.news.central.as_ref().is_some_and(is_due) {
            self.compute_for_all(node, out);
            self.serve_controller(node, out);
        }
    }

    /// The controller computes the rates of all flows that it knows of, and tells their sources.
    fn compute_for_all(&mut self, node: NodeId, out: &mut Outbox) {
        let Self { pace, senders, news, maps, neighbours, plan, .. } = self;
        let mut scene = Scene { topology: &plan.network.topology, maps, neighbours, out };
        let mut lists: BTreeMap<NodeId, BTreeMap<Named, (u8, Kbps)>> = BTreeMap::new();
        for (id, rate) in pace.rates_of_all(node, news, &mut scene) {
            let fact = news.facts.fact(id);
            let named = (fact.course.destination, fact.index);
            lists.entry(fact.course.source).or_default().insert(named, (fact.number, rate));
        }
        let central = news.central.as_mut().expect("it is there");
        central.due -= 1;
        for owed in std::mem::take(&mut central.owed) {
            lists.entry(owed).or_default();
        }
        let own = lists.remove(&node).unwrap_or_default();
        for (to, list) in lists {
            news.send_rates(to, &list, &mut scene);
        }
        let own = own.into_iter().map(|(named, (_, rate))| (named, rate)).collect();
        hold(senders, node, &own, out);
    }

    /// A source has waited for an answer of the controller: if none has come, it says all its flows again.
    pub(super) fn await_answer(&mut self, node: NodeId, out: &mut Outbox) {
        let Some(central) = &mut self.news.central else { return };
        if central.is_unanswered(node, out) {
            central.counts.unanswered += 1;
            let flows = self.flows_of(node);
            self.say_anew(node, flows, out);
        }
    }
}

/// Holds flows of a node to these rates; one that is not limited goes on as it does.
fn hold(senders: &mut Senders, node: NodeId, rates: &BTreeMap<Named, Kbps>, out: &mut Outbox) {
    let keys: Vec<_> = senders.of_node(node).collect();
    for key in keys {
        let sender = senders.get_mut(key);
        let (_, destination, index) = sender.name();
        let rate = rates.get(&(destination, index)).and_then(|rate| rate.rate());
        if let Some(rate) = rate.filter(|_| !sender.is_over()) {
            sender.bucket.set_pace(out.now(), Some(rate));
        }
    }
    out.wake(node);
}
