//! A vertex of the network for a driver outside of the simulator: packets as bytes, time as it comes.
//!
//! Each host and each switch is a part of its own. A message is what a link carries, with a checksum of the
//! link behind it (CRC-32, as Ethernet's frames have).

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::Time;
use rack::node::{Ending, FlowName, Message, Node, Nodes, Payload, Stands, Unit};
use rack::shards::{Outbox, Shard as _};
use rack::topology::Vertex;
use rack::{Failure, Flow, FlowId};

use super::Network;
use super::part::Part;
use super::reports::{Report, What};
use crate::cut::Cut;
use crate::message::{self, Body};
use crate::net::{Name, can_go_first};
use crate::packet::{FlowKey, Marks, Packet};
use crate::program::{Post, Program};
use crate::transport::Transport;
use crate::wire::Codec;

/// Bytes of a link's checksum.
const CHECKSUM: usize = 4;

/// A host or a switch.
struct Single<T, S> {
    part: Part<T, S>,
    out: Outbox<message::Message>,
    /// Flows offered here, by place.
    flows: Vec<(FlowId, Name)>,
    /// By port: the last arrival, as a link brings one thing at a time.
    last: BTreeMap<u32, Time>,
    reports: Vec<Report>,
    /// Messages that could not be decoded.
    unexpected: u64,
    codec: Arc<dyn Codec>,
}

impl<T: Transport, S: Program> Network<T, S> {
    /// Each host and each switch by itself, as they are at time zero; `None` where the network is one part.
    pub(super) fn taken_apart(&self) -> Option<Nodes> {
        let whole = self.parts.get(0);
        let cut = Cut::each(&whole.net.plan.topology);
        if !self.can_be_cut(&cut) || self.has_begun {
            return None;
        }
        let single = |part: &Part<T, S>| -> Box<dyn Node> {
            let mut part = part.clone();
            part.tells_at_once = true;
            part.program.stand_alone();
            part.begin();
            Box::new(Single {
                part,
                out: Outbox::new(cut.parts()),
                flows: Vec::new(),
                last: BTreeMap::new(),
                reports: Vec::new(),
                unexpected: 0,
                codec: whole.transport.codec(),
            })
        };
        let nodes = self.cut_up(&cut).iter().map(single).collect();
        let recovers = whole.transport.recovers() && whole.program.recovers();
        let stands = if recovers { Stands::Loss } else { Stands::Nothing };
        Some(Nodes { nodes, delay: whole.net.lookahead(&cut), stands, memory: None })
    }
}

/// How drivers name a flow.
fn named(name: Name) -> FlowName {
    FlowName { src: name.src, dst: name.dst, number: name.number }
}

/// What a packet with bytes of a flow is known by.
fn unit(packet: &Packet) -> Option<Unit> {
    let is_of_flow = packet.flow != FlowKey::NEIGHBOURS;
    let carries = is_of_flow && packet.is_data() && packet.payload > 0;
    carries.then(|| {
        // One that is sent back keeps what it has.
        let is_back = packet.marks.contains(Marks::RETURNED);
        let (src, dst) = if is_back { (packet.dst, packet.src) } else { (packet.src, packet.dst) };
        let ends = u128::from(src.get() as u16) << 16 | u128::from(dst.get() as u16);
        let flow = ends << 32 | u128::from(packet.flow.get());
        Unit(flow << 64 | u128::from(packet.seq))
    })
}

impl<T: Transport, S: Program> Single<T, S> {
    /// Which bytes are in a packet that its source sends.
    fn payload(&self, packet: &Packet) -> Option<Payload> {
        let is_sources = self.part.net.owns(Vertex::new(packet.src.get()))
            && !packet.marks.contains(Marks::RETURNED);
        (is_sources && unit(packet).is_some()).then(|| Payload {
            flow: named(Name::of(packet)),
            offset: self.part.transport.offset_of(packet),
            bytes: packet.payload.into(),
        })
    }

    /// The message that is in the bytes of a link.
    fn decode(&self, wire: u32, at: Time, bytes: &[u8]) -> Option<message::Message> {
        let (body, checksum) = bytes.split_last_chunk::<CHECKSUM>()?;
        if crc32fast::hash(body).to_be_bytes() != *checksum {
            return None;
        }
        let message = message::Message::decode(&*self.codec, body).ok()?;
        let hosts = self.part.net.plan.topology.hosts();
        let is_of_hosts = |packet: &Packet| packet.src.get().max(packet.dst.get()) < hosts;
        let is_known = match &message.body {
            Body::Packet { packet, first, .. } => {
                let is_good = is_of_hosts(packet) && can_go_first(*first, hosts);
                is_good || packet.is_link_frame()
            }
            Body::Unheard { packet, .. } | Body::Posted(Post::Packet(packet, _)) => {
                is_of_hosts(packet)
            }
            _ => true,
        };
        if !is_known {
            return None;
        }
        Some(message::Message { at, port: wire, ..message })
    }
}

impl<T: Transport, S: Program> Node for Single<T, S> {
    fn next(&self) -> Time {
        self.part.net.calendar.next_time().unwrap_or(Time::NEVER)
    }

    fn offer(&mut self, flow: &Flow) {
        let place = self.flows.len() as u32;
        self.flows.push((flow.id, Name { src: flow.src, dst: flow.dst, number: 0 }));
        self.part.offer(flow, place, place, flow.start.max(self.part.net.now));
    }

    fn receive(&mut self, wire: u32, at: Time, bytes: &[u8]) -> Option<Unit> {
        let last = self.last.entry(wire).or_insert(Time::ZERO);
        *last = at.max(Time::from_ps(last.as_ps() + 1));
        let last = *last;
        let Some(message) = self.decode(wire, last, bytes) else {
            self.unexpected += 1;
            return None;
        };
        let unit = match &message.body {
            Body::Packet { packet, .. } | Body::Posted(Post::Packet(packet, _)) => unit(packet),
            Body::Posted(Post::Note(note)) => self.part.program.load(note).map(|(unit, _)| unit),
            _ => None,
        };
        self.part.take(&mut vec![message]);
        unit
    }

    fn run(&mut self, until: Time, send: &mut dyn FnMut(Message<'_>)) {
        self.part.run(until.as_ps(), &mut self.out);
        let sent: Vec<_> = self.out.drain().collect();
        for (to, message) in sent {
            let mut bytes = message.encode(&*self.codec);
            let checksum = crc32fast::hash(&bytes).to_be_bytes();
            bytes.extend(checksum);
            let (unit, payload) = match &message.body {
                Body::Packet { packet, .. } | Body::Posted(Post::Packet(packet, _)) => {
                    (unit(packet), self.payload(packet))
                }
                Body::Posted(Post::Note(note)) => match self.part.program.load(note) {
                    Some((unit, payload)) => (Some(unit), payload),
                    None => (None, None),
                },
                _ => (None, None),
            };
            send(Message { to, wire: message.port, at: message.at, bytes: &bytes, unit, payload });
        }
    }

    fn endings(&mut self, endings: &mut Vec<Ending>) {
        self.part.report(&mut self.reports);
        for Report { at, what } in self.reports.drain(..) {
            let (name, failure) = match what {
                What::Started { place, name } => {
                    self.flows[place as usize].1 = name;
                    continue;
                }
                What::Left { .. } => continue,
                What::Refused { place, why } => (self.flows[place as usize].1, Some(why)),
                What::Whole { name, .. } => (name, None),
                What::GaveUp { name } => (name, Some(Failure::PacketsLost)),
            };
            endings.push(Ending { flow: named(name), at, failure });
        }
    }

    fn unexpected(&self) -> u64 {
        self.unexpected + self.part.out.unexpected_count()
    }
}
