//! Endpoints for tests of the network: flows at line rate, in turn, with or without repeats.

use std::collections::VecDeque;

use kernel::{Bytes, Span, Stream};
use rack::{Flow, NodeId};

use crate::outbox::Outbox;
use crate::packet::{FlowKey, Kind, Marks, Packet, answer, reply};
use crate::transport::{Framing, Line, Opening, Timer, Timers, Transport};

/// "This packet has come."
const ACK: Kind = Kind::of_transport(0);
/// A smallest frame.
const CONTROL: u16 = 64;
/// Most times that a wait is doubled.
const DOUBLINGS_MAX: u32 = 3;
/// Longest rest: some packet times of a 10 Gbps line.
const REST_MAX: Span = Span::from_us(4);

/// What is done about losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::network) enum Recovery {
    /// Nothing: a packet is sent once, and none is acknowledged.
    None,
    /// Each packet is acknowledged. So long after the last was sent, all that is not goes again; twice as
    /// long after that the rest of it, and so on. Before repeated packets a host rests now and then, lest
    /// senders in step lose the same packets for ever.
    Repeat(Span),
}

#[derive(Clone, Debug)]
struct Sender {
    flow: Flow,
    waits: VecDeque<u64>,
    /// By packet.
    is_acknowledged: Vec<bool>,
    left: u64,
    rounds: u32,
}

#[derive(Clone, Debug, Default)]
struct Receiver {
    has_come: Vec<bool>,
    first_missing: u64,
}

/// Endpoints that send at line rate.
#[derive(Clone, Debug)]
pub(in crate::network) struct LineRate {
    framing: Framing,
    recovery: Recovery,
    senders: Vec<Option<Sender>>,
    receivers: Vec<Receiver>,
    /// By host: its flows with something to send, in turn.
    turns: Vec<VecDeque<FlowKey>>,
    /// By host: the chance of its rests, and whether it has just rested.
    rests: Vec<(Stream, bool)>,
}

impl LineRate {
    pub(in crate::network) fn new(hosts: u32, framing: Framing, recovery: Recovery) -> Self {
        Self {
            framing,
            recovery,
            senders: Vec::new(),
            receivers: Vec::new(),
            turns: vec![VecDeque::new(); hosts as usize],
            rests: (0..hosts).map(|host| (Stream::new(1, "rests", host.into()), false)).collect(),
        }
    }

    /// By flow: how many of its packets have come.
    pub(in crate::network) fn came(&self) -> Vec<usize> {
        let came = |receiver: &Receiver| receiver.has_come.iter().filter(|&&came| came).count();
        self.receivers.iter().map(came).collect()
    }

    /// Whether a host rests now, before a repeated packet.
    fn rests(&mut self, host: NodeId, out: &mut Outbox) -> bool {
        let (chance, has_rested) = &mut self.rests[host.index()];
        *has_rested = !*has_rested && chance.below(2) == 1;
        if *has_rested {
            out.wake_at(host, out.now() + Span::from_ps(1 + chance.below(REST_MAX.as_ps())));
        }
        *has_rested
    }

    fn receivers_packet(&mut self, packet: &Packet, out: &mut Outbox) {
        let (key, step) = (packet.flow, u64::from(self.framing.payload));
        let size = packet.word;
        let receiver = &mut self.receivers[key.index()];
        let is_known = std::mem::replace(&mut receiver.has_come[packet.seq as usize], true);
        let before = receiver.first_missing;
        while receiver.has_come.get(receiver.first_missing as usize) == Some(&true) {
            receiver.first_missing += 1;
        }
        let read = |packets: u64| (packets * step).min(size);
        let readable = read(receiver.first_missing) - read(before);
        if readable > 0 {
            out.delivered(key, Bytes::new(readable));
        } else if !is_known {
            out.held(Bytes::new(packet.payload.into()));
        }
        if self.recovery != Recovery::None {
            out.send(Packet { seq: packet.seq, priority: 0, ..reply(packet, ACK, CONTROL) });
        }
        if receiver.first_missing == receiver.has_come.len() as u64 {
            out.complete(key);
            out.close(key);
        }
    }

    fn acknowledged(&mut self, packet: &Packet, out: &mut Outbox) {
        let Some(sender) = &mut self.senders[packet.flow.index()] else { return out.unexpected() };
        if !std::mem::replace(&mut sender.is_acknowledged[packet.seq as usize], true) {
            sender.left -= 1;
        }
        if sender.left == 0 {
            self.forget(packet.flow);
            out.close(packet.flow);
        }
    }

    fn forget(&mut self, key: FlowKey) {
        if let Some(sender) = self.senders[key.index()].take() {
            self.turns[sender.flow.src.index()].retain(|&other| other != key);
        }
    }
}

impl Transport for LineRate {
    fn name(&self) -> &'static str {
        "line-rate"
    }

    fn timers(&self) -> Timers {
        Timers { flow: u8::from(self.recovery != Recovery::None), host: 0 }
    }

    fn framing(&self) -> Framing {
        self.framing
    }

    fn can_be_cut(&self) -> bool {
        true
    }

    fn start(&mut self, opening: &Opening, out: &mut Outbox) {
        let Opening { key, flow, .. } = *opening;
        let packets = self.framing.packets(flow.size);
        self.senders.resize(self.senders.len().max(key.index() + 1), None);
        self.senders[key.index()] = Some(Sender {
            flow,
            waits: (0..packets).collect(),
            is_acknowledged: vec![false; packets as usize],
            left: packets,
            rounds: 0,
        });
        self.turns[flow.src.index()].push_back(key);
        out.wake(flow.src);
    }

    fn accept(&mut self, packet: &Packet, _: FlowKey, _: &mut Outbox) {
        let place = packet.flow.index();
        self.receivers.resize(self.receivers.len().max(place + 1), Receiver::default());
        let packets = self.framing.packets(Bytes::new(packet.word));
        self.receivers[place] =
            Receiver { has_come: vec![false; packets as usize], first_missing: 0 };
    }

    fn receive(&mut self, _: NodeId, packet: &Packet, out: &mut Outbox) {
        match (packet.kind, packet.flow.is_receivers()) {
            (Kind::DATA, true) if packet.payload > 0 => self.receivers_packet(packet, out),
            // A packet that a switch has cut is as good as lost.
            (Kind::DATA, true) => {}
            (ACK, false) => self.acknowledged(packet, out),
            _ => out.unexpected(),
        }
    }

    fn stray(&mut self, packet: &Packet, out: &mut Outbox) {
        if packet.is_data() && !packet.goes_to_source() && self.recovery != Recovery::None {
            out.send(Packet { seq: packet.seq, priority: 0, ..answer(packet, ACK, CONTROL) });
        }
    }

    fn timer(&mut self, timer: Timer, out: &mut Outbox) {
        let Timer::Flow(key, _) = timer else { return };
        let Some(sender) = &mut self.senders[key.index()] else { return };
        let is_open = |&seq: &u64| !sender.is_acknowledged[seq as usize];
        sender.waits = (0..sender.is_acknowledged.len() as u64).filter(is_open).collect();
        sender.rounds += 1;
        self.turns[sender.flow.src.index()].push_back(key);
        out.wake(sender.flow.src);
        out.in_vain(key);
    }

    fn pull(&mut self, host: NodeId, line: Line<'_>, out: &mut Outbox) -> Option<Packet> {
        if !line.is_open(1) {
            return None;
        }
        let turns = &mut self.turns[host.index()];
        let whole = self.framing.payload + self.framing.header;
        let ready = line.first_admitted(turns.iter().copied(), whole)?;
        // Those that may not send now keep their order, behind those whose turn is later.
        turns.rotate_left(ready);
        let key = turns[0];
        let is_again = self.senders[key.index()].as_ref().is_some_and(|sender| sender.rounds > 0);
        if is_again && self.rests(host, out) {
            return None;
        }
        let turns = &mut self.turns[host.index()];
        turns.pop_front();
        let sender = self.senders[key.index()].as_mut()?;
        let flow = sender.flow;
        let seq = sender.waits.pop_front()?;
        if is_again {
            out.resent(1);
        }
        match (self.recovery, sender.waits.is_empty()) {
            (_, false) => turns.push_back(key),
            (Recovery::None, true) => {
                self.senders[key.index()] = None;
                out.close(key);
            }
            (Recovery::Repeat(patience), true) => {
                let patience = patience * (1 << sender.rounds.min(DOUBLINGS_MAX));
                out.set_timer(Timer::Flow(key, 0), out.now() + patience);
            }
        }
        let payload = self.framing.payload_of(flow.size, seq);
        Some(Packet {
            flow: key,
            src: flow.src,
            dst: flow.dst,
            entropy: flow.id.get() as u16,
            path: seq as u16,
            seq,
            word: flow.size.get(),
            payload,
            wire: payload + self.framing.header,
            priority: 1,
            marks: Marks::ECT,
            ..Packet::default()
        })
    }

    fn abandon(&mut self, flow: FlowKey, _: &mut Outbox) {
        if !flow.is_receivers() {
            self.forget(flow);
        }
    }
}
