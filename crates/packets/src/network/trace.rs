//! The record of a network: what its parts have seen, put together.
//!
//! The order is by time, then by the number of switches crossed, then by port, so it does not depend on the cut. Packets
//! have no number of their own on their way; which sights are of one follows from what its header says and from where
//! it went.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kernel::Time;
use rack::FlowId;
use rack::topology::{Tier, Vertex};
use rack::trace::{Covered, ETHERNET, Followed, Hop, LineRecorder, Outcome, Place, Tally, Trace};

use super::Network;
use crate::inside::{Chosen, Inner};
use crate::net::{NONE, Name, Net, Sight, What};
use crate::packet::{Marks, Packet};
use crate::program::Program;
use crate::transport::Transport;
use crate::wire::{self, Codec};

impl<T: Transport, S: Program> Network<T, S> {
    /// From now on records packets of these flows.
    pub(super) fn record(&mut self, followed: &[Followed]) {
        self.desk.names = Some(Vec::new());
        let chosen = Arc::new(Chosen::new(followed));
        for part in self.parts.iter_mut() {
            part.net.record(followed, &chosen);
            part.program.record(&chosen);
        }
    }

    /// What was recorded since.
    pub(super) fn recorded(&mut self) -> Trace {
        let (mut sights, mut chosen, mut is_full) = (Vec::new(), BTreeMap::new(), false);
        let mut lines: Option<LineRecorder> = None;
        for part in self.parts.iter_mut() {
            let Some(recorder) = part.net.recorder.take() else { continue };
            sights.extend(recorder.sights);
            chosen.extend(recorder.names);
            is_full |= recorder.is_full;
            match &mut lines {
                Some(lines) => lines.join(recorder.lines),
                None => lines = Some(recorder.lines),
            }
        }
        sights.retain(|sight| chosen.contains_key(&Name::of(&sight.packet)));
        sights.sort_by_key(order);
        let mut all = self.desk.names.take().unwrap_or_default();
        all.sort_unstable();
        let inside = S::recorded(self.parts.iter_mut().map(|part| &mut part.program));
        let net = self.net();
        let mut book = Book { net, all, chosen, ..Book::new(net) };
        book.comes = inside.is_some().then(HashMap::new);
        let codec = self.transport().codec();
        for sight in &sights {
            let offset = self.transport().offset_of(&sight.packet);
            book.enter(sight, offset, header(&*codec, &sight.packet));
        }
        let mut ports = Ports::new(net);
        if let Some(inside) = inside {
            for inner in &inside.packets {
                book.enter_inner(inner, self.transport().offset_of(&inner.packet));
            }
            if let Some(lines) = &mut lines {
                lines.join(inside.lines);
            }
            ports.inside = Some((inside.link_type, inside.is_inner, inside.names));
        }
        let trace = Trace::of_hops(book.hops, |port| ports.place(port));
        let lines = lines.map(|lines| lines.close(|port| ports.place(port)));
        Trace { is_full, lines: lines.unwrap_or_default(), ..trace }
    }
}

/// By what sights are put in order. A packet is seen at several ports at one instant where a host passes on what it
/// sends itself.
fn order(sight: &Sight) -> (Time, u8, u32, [u32; 3], [u64; 4]) {
    let Packet { hops, seq, ack, word, stamp, flow, .. } = sight.packet;
    let what = u64::from(matches!(sight.what, What::Gone(_)));
    let mark = what << 32 | u64::from(flow.get());
    let name = Name::of(&sight.packet).words();
    (sight.at, hops, sight.port, name, [mark, seq, stamp.as_ps(), ack ^ word])
}

/// The frame of a packet without its payload.
fn header(codec: &dyn Codec, packet: &Packet) -> Vec<u8> {
    let frame = wire::real(&wire::encode(codec, packet)).expect("it was just written");
    let length = frame.len() - wire::FCS;
    frame[..length - usize::from(packet.payload).min(length)].to_vec()
}

/// What tells a packet on its way from others.
type Identity = ([u32; 3], u32, u8, u64, Time);

fn identity(packet: &Packet) -> Identity {
    // Only of data is the stamp when it left; else it says nothing more.
    let stamp = if packet.is_data() { packet.stamp } else { Time::ZERO };
    (Name::of(packet).words(), packet.flow.get(), packet.kind.get(), packet.seq, stamp)
}

/// A packet on its way.
struct Way {
    flow: FlowId,
    number: u32,
    /// Its hops so far, as places in the list.
    hops: Vec<usize>,
    /// The port that it was sent by last, and where that leads.
    port: u32,
    at: Vertex,
    /// Whether that is its host.
    is_there: bool,
}

/// A packet that has come to a switch.
#[derive(Clone, Copy)]
struct Comes {
    flow: FlowId,
    number: u32,
    /// The places of the hop by which it came, and of that by which it left.
    hop: usize,
    next: Option<usize>,
}

/// The record in the making.
struct Book<'a> {
    net: &'a Net,
    /// The flows of the run, by name.
    all: Vec<(Name, FlowId)>,
    /// Those that are recorded.
    chosen: BTreeMap<Name, FlowId>,
    under_way: HashMap<Identity, Vec<Way>>,
    /// By packet and when it came to a switch: its flow, its number there, and the place of its hop; where programs record
    /// as well.
    comes: Option<HashMap<(Identity, Time), Comes>>,
    /// By flow: how many of its packets were seen, and which of its bytes have left the source.
    flows: BTreeMap<FlowId, (u32, Covered)>,
    hops: Vec<Hop>,
}

impl<'a> Book<'a> {
    fn new(net: &'a Net) -> Self {
        Self {
            net,
            all: Vec::new(),
            chosen: BTreeMap::new(),
            under_way: HashMap::new(),
            comes: None,
            flows: BTreeMap::new(),
            hops: Vec::new(),
        }
    }

    /// Takes a sight in; the flow's byte `offset` is the first in the packet.
    fn enter(&mut self, sight: &Sight, offset: u64, header: Vec<u8>) {
        let Some(&flow) = self.chosen.get(&Name::of(&sight.packet)) else { return };
        let place = match &sight.what {
            What::Sent(_) => Some(self.sent(flow, sight, offset)),
            What::Gone(why) => self.gone(flow, sight, (offset, *why)),
        };
        if let Some(place) = place {
            self.hops[place].header = header;
        }
    }

    /// Adds a hop: its place in the list.
    fn add(&mut self, hop: Hop) -> usize {
        self.hops.push(hop);
        self.hops.len() - 1
    }

    fn sent(&mut self, flow: FlowId, sight: &Sight, offset: u64) -> usize {
        let Sight { port, packet, .. } = sight;
        let wire = self.net.wires[*port as usize];
        let is_first = wire.nic == Some(packet.src.get());
        let known = self.under_way.entry(identity(packet)).or_default();
        // A packet that is not where it was last may have been moved by a switch's program.
        let here = known.iter().position(|way| way.at == wire.vertex && !way.is_there);
        let elsewhere = || known.iter().position(|way| !way.is_there);
        let place = here.or_else(elsewhere).filter(|_| !is_first);
        let way = place.map(|place| known.remove(place));
        if let Some(last) = way.as_ref().and_then(|way| way.hops.last()) {
            self.hops[*last].outcome = Outcome::Arrived;
        }
        let mut way = way.unwrap_or_else(|| self.sets_out(flow));
        let hop = self.hop(&way, sight, (offset, Outcome::Arrived));
        let (is_last, arrived) = (hop.is_last, hop.arrived);
        let place = self.add(hop);
        if let (Some(comes), Some(&last)) = (&mut self.comes, way.hops.last()) {
            // It has left the switch that it had come to by then.
            let known = self.hops[last].arrived;
            if let Some(before) = comes.get_mut(&(identity(packet), known)) {
                before.next = Some(place);
            }
        }
        way.hops.push(place);
        if let Some(comes) = self.comes.as_mut().filter(|_| !is_last) {
            let new = Comes { flow, number: way.number, hop: place, next: None };
            comes.insert((identity(packet), arrived), new);
        }
        (way.port, way.at) = (*port, wire.peer);
        // What has come to its host is under way no more, but it may still turn out to be lost.
        let known = self.under_way.entry(identity(packet)).or_default();
        if is_last {
            known.retain(|other| !other.is_there);
        }
        way.is_there = is_last;
        known.push(way);
        place
    }

    /// The hop that it adds, if it adds one.
    fn gone(
        &mut self,
        flow: FlowId,
        sight: &Sight,
        (offset, why): (u64, Outcome),
    ) -> Option<usize> {
        let Sight { port, packet, .. } = sight;
        let vertex = self.net.wires.get(*port as usize).map(|wire| wire.vertex);
        let known = self.under_way.entry(identity(packet)).or_default();
        // Of several that look alike the first one that has not come to its end there yet.
        let hops = &self.hops;
        let last = |way: &Way| way.hops.last().map(|&last| hops[last].outcome);
        let is_on_line = |way: &Way| way.port == *port && last(way) != Some(Outcome::Absorbed);
        let on_line = known.iter().position(is_on_line);
        let on_line = on_line.or_else(|| known.iter().position(|way| way.port == *port));
        let here = known.iter().position(|way| Some(way.at) == vertex);
        let any = known.iter().position(|way| *port == NONE && !way.is_there);
        let at = on_line.or(here).or(any);
        let way = at.map(|place| known.remove(place));
        let is_past = *port == NONE || on_line.is_some();
        match way {
            Some(way) if is_past => {
                let last = way.hops.last().expect("it was seen before");
                self.hops[*last].outcome = why;
                // What a program has taken it may send on, from another switch.
                // They leave in the order in which they came, where they look alike.
                if let (Outcome::Absorbed, Some(at)) = (why, at) {
                    self.under_way.entry(identity(packet)).or_default().insert(at, way);
                }
                None
            }
            _ if *port == NONE => None,
            way => {
                let way = way.unwrap_or_else(|| self.sets_out(flow));
                let hop = self.hop(&way, sight, (offset, why));
                Some(self.add(hop))
            }
        }
    }

    /// A packet that was not seen before.
    fn sets_out(&mut self, flow: FlowId) -> Way {
        let (count, _) = self.flows.entry(flow).or_default();
        let number = *count;
        *count += 1;
        Way { flow, number, hops: Vec::new(), port: NONE, at: Vertex::new(NONE), is_there: false }
    }

    fn hop(&mut self, way: &Way, sight: &Sight, (offset, outcome): (u64, Outcome)) -> Hop {
        let Sight { at, port, packet, what } = sight;
        let to_source = packet.goes_to_source();
        let payload = packet.payload;
        let mut hop = Hop {
            flow: way.flow,
            packet: way.number,
            hop: way.hops.len() as u16,
            cell: None,
            is_data: packet.is_data(),
            to_source,
            is_again: false,
            offset,
            payload,
            bytes: packet.wire,
            place: *port,
            is_last: self.net.wires[*port as usize].peer.get() == packet.dst.get(),
            is_marked: packet.marks.contains(Marks::CE),
            is_trimmed: packet.marks.contains(Marks::TRIMMED),
            outcome,
            joined: *at,
            started: *at,
            sent: *at,
            arrived: *at,
            propagation: kernel::Span::ZERO,
            own: kernel::Span::ZERO,
            others: kernel::Span::ZERO,
            found_bytes: 0,
            found_packets: 0,
            beside: Vec::new(),
            header: Vec::new(),
        };
        hop.is_again = match way.hops.first() {
            Some(&first) => self.hops[first].is_again,
            None if hop.is_data && !to_source => {
                let (_, covered) = self.flows.entry(way.flow).or_default();
                covered.add(offset, payload.into()) < payload.into()
            }
            None => false,
        };
        if let What::Sent(passage) = what {
            (hop.joined, hop.sent, hop.arrived) = (passage.joined, passage.sent, passage.arrives);
            (hop.own, hop.others) = (passage.own, passage.others);
            hop.propagation = passage.propagation;
            [hop.found_bytes, hop.found_packets] = passage.found;
            hop.beside = self.beside(passage.beside.clone());
        }
        hop
    }

    /// Takes in what a program has recorded of a packet.
    fn enter_inner(&mut self, inner: &Inner, offset: u64) {
        let key = (identity(&inner.packet), inner.at);
        let Some(&Comes { flow, number, hop, next }) =
            self.comes.as_ref().and_then(|comes| comes.get(&key))
        else {
            return;
        };
        let is_again = self.hops[hop].is_again;
        for (hop, tally) in &inner.hops {
            let Tally { own, others, .. } = *tally;
            let beside = self.beside(tally.clone().most());
            let packet = number;
            let offset = offset + hop.offset;
            let is_again = is_again || hop.is_again;
            let hop = Hop { flow, packet, is_again, offset, own, others, beside, ..hop.clone() };
            self.hops.push(hop);
        }
        let Some(([joined, started], tally)) = &inner.leaves else { return };
        // Of packets that look alike another one may be meant.
        if let Some(next) = next.filter(|&next| self.hops[next].started == *started) {
            let beside = self.beside(tally.clone().most());
            let hop = &mut self.hops[next];
            hop.joined = *joined;
            (hop.own, hop.others, hop.beside) = (tally.own, tally.others, beside);
        }
    }

    /// Names as numbers in the run.
    fn beside(&self, beside: Vec<(Option<Name>, u64)>) -> Vec<(Option<FlowId>, u64)> {
        let name = |name: Name| {
            let place = self.all.binary_search_by_key(&name, |(name, _)| *name);
            place.ok().map(|place| self.all[place].1)
        };
        beside.into_iter().map(|(of, bytes)| (of.and_then(name), bytes)).collect()
    }
}

/// By vertex: what results call it.
fn names(net: &Net) -> Vec<String> {
    let topology = &net.plan.topology;
    let mut counts: [u32; 5] = [0; 5];
    let name = |vertex: u32| {
        let (word, kind) = match topology.tier(Vertex::new(vertex)) {
            Tier::Host => ("node", 0),
            Tier::Leaf => ("leaf", 1),
            Tier::Spine => ("spine", 2),
            Tier::Core => ("core", 3),
            Tier::Other => ("switch", 4),
        };
        counts[kind] += 1;
        format!("{word} {}", counts[kind] - 1)
    };
    (0..topology.vertices()).map(name).collect()
}

/// What ports are called, and what goes on their lines.
struct Ports<'a> {
    net: &'a Net,
    /// By vertex.
    names: Vec<String>,
    /// Of what programs record: what goes on lines inside, on which of the network's that is, and the ends of others.
    inside: Option<(u16, Vec<bool>, Vec<[String; 2]>)>,
}

impl<'a> Ports<'a> {
    fn new(net: &'a Net) -> Self {
        Self { net, names: names(net), inside: None }
    }

    fn place(&self, port: u32) -> Place {
        let known = self.net.wires.len();
        let Some((link_type, is_inner, names)) = &self.inside else {
            return place(self.net, &self.names, port);
        };
        let link_type = *link_type;
        match (port as usize).checked_sub(known) {
            None if is_inner[port as usize] => {
                Place { link_type, ..place(self.net, &self.names, port) }
            }
            None => place(self.net, &self.names, port),
            Some(beyond) => {
                let [from, to] = names[beyond].clone();
                Place { port, link_type, from, to }
            }
        }
    }
}

fn place(net: &Net, names: &[String], port: u32) -> Place {
    let wire = &net.wires[port as usize];
    let [from, to] = [wire.vertex, wire.peer].map(|vertex| names[vertex.index()].clone());
    if wire.vertex == wire.peer {
        return Place { port, link_type: ETHERNET, from: format!("{from} (NIC)"), to };
    }
    let links = net.plan.topology.links_between(wire.vertex, wire.peer);
    let links: Vec<u32> = links.map(|link| link.get()).collect();
    let link = links.iter().position(|&link| link == port);
    let to = match link.filter(|_| links.len() > 1) {
        Some(link) => format!("{to} (link {link})"),
        None => to,
    };
    Place { port, link_type: ETHERNET, from, to }
}
