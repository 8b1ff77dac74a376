//! Raw line-rate sending: no window, no acknowledgment, no recovery.
//!
//! Models: the sender without control that PL2 §6 compares with, and under per-flow backpressure
//! R2C2's ideal baseline (R2C2 §5.2). Flows of a host take turns, a packet each; each packet tells the
//! length of its message. A packet that is lost stays lost, and its flow never completes, unless
//! [`Recovery::Repeat`] is asked for; with [`Recovery::Forget`] it fails then.

mod config;

use std::collections::{BTreeSet, VecDeque};

use kernel::{Bytes, Span, Stream};
use packets::{
    FlowKey, Framing, Kind, Line, Marks, Opening, Outbox, Packet, Timer, Timers, Transport, answer,
    reply,
};
use rack::NodeId;

pub use self::config::{Config, Losses};
use crate::arrivals::Arrivals;
use crate::kinds;

/// What raw endpoints do about losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Recovery {
    /// Nothing: for networks that lose nothing.
    #[default]
    None,
    /// A receiver to which nothing has come for a while says what it has, and the sender sends the rest
    /// again; a sender that has sent all and hears nothing sends its last packet again. Each waits twice
    /// as long if that brings nothing. A receiver that has all says so. Before a repeated packet a host
    /// may rest, by chance, so that senders in step do not lose the same packets for ever.
    Repeat {
        /// Seed of the rests.
        seed: u64,
        /// How long nothing must have come: above any wait on the way, or else packets are repeated that
        /// are not lost.
        patience: Span,
    },
    /// Nothing, and the flow is forgotten: packets are datagrams, readable as they arrive in whatever
    /// order, and a flow of which some are missing so long after the last was sent fails.
    Forget {
        /// From the sending of the last packet to the end of hope.
        patience: Span,
    },
}

/// Longest rest before a repeated packet: a few packet times of a 10 Gbps link (our choice).
const REST_MAX: Span = Span::from_us(4);
/// Most times that a wait is doubled (our choice).
const DOUBLINGS_MAX: u8 = 6;
/// Packets that a receiver reports missing in one request: the bits of a word.
const REPORT: u64 = 64;
/// Most complaints of a receiver about a flow at a time (our choice).
const REPORTS_MAX: u32 = 16;
/// A receiver of datagrams forgets a flow of which nothing has come for so many times as long as its sender
/// hopes (our choice: a sender that has others to serve may pause for long).
const HOPES: u64 = 16;
/// What an endpoint says without payload, on the wire: a smallest frame (our choice).
const CONTROL: u16 = 64;

/// A flow at its source.
#[derive(Clone, Debug, Default)]
struct Sender {
    src: NodeId,
    dst: NodeId,
    size: Bytes,
    total: u64,
    entropy: u16,
    /// Next packet to send for the first time.
    next: u64,
    /// Packets to send again.
    again: BTreeSet<u64>,
    /// Whether it is among the turns of its host.
    has_turn: bool,
    is_open: bool,
    /// How often it has waited in a row and heard nothing.
    vain_waits: u8,
}

/// A flow at its destination.
#[derive(Clone, Debug, Default)]
struct Receiver {
    src: NodeId,
    dst: NodeId,
    size: Bytes,
    total: u64,
    entropy: u16,
    /// Packets that have arrived; not those of datagrams, of which `seen` counts how many have.
    arrivals: Arrivals,
    /// One more than the highest packet that has arrived.
    seen: u64,
    vain_waits: u8,
}

impl Receiver {
    /// Notes a packet. False if it was there already.
    fn insert(&mut self, seq: u64) -> bool {
        if seq >= self.total {
            return false;
        }
        self.seen = self.seen.max(seq + 1);
        self.arrivals.insert(seq)
    }
}

/// Endpoints that send at line rate.
#[derive(Clone, Debug)]
pub struct Raw {
    framing: Framing,
    recovery: Recovery,
    senders: Vec<Sender>,
    receivers: Vec<Receiver>,
    /// Flows of each host with something to send, in turn.
    turns: Vec<VecDeque<FlowKey>>,
    /// By host: whether it has rested before its next repeated packet, and its stream of rests.
    rested: Vec<bool>,
    rests: Vec<Stream>,
}

impl Raw {
    /// Endpoints of `hosts` hosts.
    #[must_use]
    pub fn new(hosts: u32, framing: Framing, recovery: Recovery) -> Self {
        let rests = match recovery {
            Recovery::None | Recovery::Forget { .. } => Vec::new(),
            Recovery::Repeat { seed, .. } => {
                (0..hosts).map(|host| Stream::new(seed, "packets/raw", host.into())).collect()
            }
        };
        Self {
            framing,
            recovery,
            senders: Vec::new(),
            receivers: Vec::new(),
            turns: vec![VecDeque::new(); hosts as usize],
            rested: vec![false; hosts as usize],
            rests,
        }
    }

    /// Tosses a coin whether a host rests now. After a rest it does not rest again at once.
    fn rests(&mut self, host: NodeId, out: &mut Outbox) -> bool {
        let rested = &mut self.rested[host.index()];
        let stream = &mut self.rests[host.index()];
        if std::mem::take(rested) || stream.below(2) == 0 {
            return false;
        }
        *rested = true;
        out.wake_at(host, out.now() + Span::from_ps(1 + stream.below(REST_MAX.as_ps())));
        true
    }

    /// Gives a flow a turn, if it has none.
    fn offer(&mut self, flow: FlowKey, out: &mut Outbox) {
        let sender = &mut self.senders[flow.index()];
        if !std::mem::replace(&mut sender.has_turn, true) {
            self.turns[sender.src.index()].push_back(flow);
            out.wake(sender.src);
        }
    }

    /// A half will do something if nothing comes for `patience`, doubled for each wait in vain.
    fn wait(&self, flow: FlowKey, vain_waits: u8, out: &mut Outbox) {
        if let Recovery::Repeat { patience, .. } = self.recovery {
            let patience = patience * (1 << vain_waits.min(DOUBLINGS_MAX));
            out.set_timer(Timer::Flow(flow, 0), out.now() + patience);
        }
    }

    /// Takes a flow out of its host's turns.
    fn end(&mut self, flow: FlowKey) {
        let sender = &mut self.senders[flow.index()];
        sender.is_open = false;
        sender.again.clear();
        if std::mem::take(&mut sender.has_turn) {
            self.turns[sender.src.index()].retain(|&other| other != flow);
        }
    }

    /// A data packet at its receiver.
    fn take(&mut self, packet: &Packet, out: &mut Outbox) {
        let flow = packet.flow;
        let receiver = &mut self.receivers[flow.index()];
        let got = if let Recovery::Forget { .. } = self.recovery {
            // Readable at once; the network doubles none, so that counting them is enough.
            receiver.seen += 1;
            out.delivered(flow, Bytes::new(packet.payload.into()));
            receiver.seen
        } else {
            let before = receiver.arrivals.next();
            let is_new = receiver.insert(packet.seq);
            let expected = receiver.arrivals.next();
            let step = u64::from(self.framing.payload);
            let below = |packets: u64| (packets * step).min(receiver.size.get());
            let readable = below(expected) - below(before);
            if readable > 0 {
                out.delivered(flow, Bytes::new(readable));
            } else {
                let held = receiver.arrivals.count() - expected;
                out.held(Bytes::new(held * step));
            }
            if is_new {
                receiver.vain_waits = 0;
            }
            expected
        };
        if got < receiver.total {
            if let Recovery::Forget { patience } = self.recovery {
                // Nothing tells it that the rest is lost.
                return out.set_timer(Timer::Flow(flow, 0), out.now() + patience * HOPES);
            }
            let vain_waits = receiver.vain_waits;
            return self.wait(flow, vain_waits, out);
        }
        out.complete(flow);
        if let Recovery::Repeat { .. } = self.recovery {
            out.send(Packet { priority: 0, ..reply(packet, kinds::ACK, CONTROL) });
        }
        receiver.arrivals.clear();
        out.close(flow);
    }

    /// Nothing has come to a receiver for long: it says what it lacks.
    fn complain(&mut self, flow: FlowKey, out: &mut Outbox) {
        let receiver = &mut self.receivers[flow.index()];
        receiver.vain_waits = receiver.vain_waits.saturating_add(1);
        let (mut from, seen) = (receiver.arrivals.next(), receiver.seen);
        let mut reports = 0;
        // The last speaks of what was never seen, too.
        while reports < REPORTS_MAX && (reports == 0 || from < seen) {
            let bits = receiver.arrivals.bits(from);
            let is_last = from + REPORT >= seen;
            if is_last || bits != u64::MAX {
                out.send(Packet {
                    flow,
                    src: receiver.dst,
                    dst: receiver.src,
                    entropy: receiver.entropy,
                    wire: CONTROL,
                    kind: kinds::NACK,
                    ack: from,
                    word: bits,
                    seq: seen,
                    ..Packet::default()
                });
                reports += 1;
            }
            from += REPORT;
        }
        let vain_waits = receiver.vain_waits;
        self.wait(flow, vain_waits, out);
        out.in_vain(flow);
    }

    /// A sender hears what its receiver lacks: what was sent of that is retransmitted.
    fn repeat(&mut self, packet: &Packet, out: &mut Outbox) {
        let sender = &mut self.senders[packet.flow.index()];
        sender.vain_waits = 0;
        let (from, seen) = (packet.ack, packet.seq.min(sender.next));
        let end = from.saturating_add(REPORT);
        let lacks = |seq: &u64| (packet.word >> (seq - from)) & 1 == 0;
        sender.again.extend((from..end.min(seen)).filter(lacks));
        if end >= seen {
            sender.again.extend(seen..sender.next);
        }
        if !sender.again.is_empty() {
            self.offer(packet.flow, out);
        }
    }

    /// A sender has heard nothing since it sent all: its last packet is retransmitted.
    fn ask(&mut self, flow: FlowKey, out: &mut Outbox) {
        let sender = &mut self.senders[flow.index()];
        sender.vain_waits = sender.vain_waits.saturating_add(1);
        if sender.again.is_empty() {
            sender.again.insert(sender.total - 1);
        }
        self.offer(flow, out);
        out.in_vain(flow);
    }

    fn packet(&self, flow: FlowKey, seq: u64) -> Packet {
        let sender = &self.senders[flow.index()];
        let payload = self.framing.payload_of(sender.size, seq);
        Packet {
            flow,
            src: sender.src,
            dst: sender.dst,
            entropy: sender.entropy,
            path: seq as u16,
            seq,
            word: sender.size.get(),
            payload,
            wire: payload + self.framing.header,
            priority: 1,
            marks: Marks::ECT,
            ..Packet::default()
        }
    }

    /// The last packet of a flow that is to go has gone.
    fn spent(&mut self, flow: FlowKey, out: &mut Outbox) {
        let sender = &mut self.senders[flow.index()];
        sender.has_turn = false;
        match self.recovery {
            Recovery::None => {
                sender.is_open = false;
                out.close(flow);
            }
            Recovery::Repeat { .. } => {
                let vain_waits = sender.vain_waits;
                self.wait(flow, vain_waits, out);
            }
            Recovery::Forget { patience } => {
                out.set_timer(Timer::Flow(flow, 0), out.now() + patience);
            }
        }
    }
}

impl Transport for Raw {
    fn name(&self) -> &'static str {
        "raw"
    }

    fn can_be_cut(&self) -> bool {
        true
    }

    fn timers(&self) -> Timers {
        Timers { flow: u8::from(self.recovery != Recovery::None), host: 0 }
    }

    fn framing(&self) -> Framing {
        self.framing
    }

    fn recovers(&self) -> bool {
        matches!(self.recovery, Recovery::Repeat { .. })
    }

    fn start(&mut self, opening: &Opening, out: &mut Outbox) {
        let Opening { key, flow, .. } = *opening;
        if self.senders.len() <= key.index() {
            self.senders.resize(key.index() + 1, Sender::default());
        }
        let sender = &mut self.senders[key.index()];
        assert!(!sender.is_open, "flow key {} is given out twice", key.get());
        *sender = Sender {
            src: flow.src,
            dst: flow.dst,
            size: flow.size,
            total: self.framing.packets(flow.size),
            entropy: flow.id.get() as u16,
            again: std::mem::take(&mut sender.again),
            is_open: true,
            ..Sender::default()
        };
        self.offer(key, out);
    }

    fn accept(&mut self, packet: &Packet, _: FlowKey, _: &mut Outbox) {
        let place = packet.flow.index();
        if self.receivers.len() <= place {
            self.receivers.resize(place + 1, Receiver::default());
        }
        let size = Bytes::new(packet.word);
        let mut arrivals = std::mem::take(&mut self.receivers[place].arrivals);
        arrivals.clear();
        self.receivers[place] = Receiver {
            arrivals,
            src: packet.src,
            dst: packet.dst,
            size,
            total: self.framing.packets(size),
            entropy: packet.entropy,
            ..Receiver::default()
        };
    }

    fn receive(&mut self, _: NodeId, packet: &Packet, out: &mut Outbox) {
        match (packet.kind, packet.flow.is_receivers()) {
            (Kind::DATA, true) if packet.payload > 0 => self.take(packet, out),
            (kinds::NACK, false) if packet.ack <= packet.seq => self.repeat(packet, out),
            (kinds::ACK, false) => {
                self.end(packet.flow);
                out.close(packet.flow);
            }
            // A packet that a switch has cut is as good as lost.
            (Kind::DATA, true) => {}
            _ => out.unexpected(),
        }
    }

    fn stray(&mut self, packet: &Packet, out: &mut Outbox) {
        let is_again = packet.is_data() && !packet.goes_to_source();
        if is_again && matches!(self.recovery, Recovery::Repeat { .. }) {
            out.send(Packet { priority: 0, ..answer(packet, kinds::ACK, CONTROL) });
        }
    }

    fn timer(&mut self, timer: Timer, out: &mut Outbox) {
        let Timer::Flow(flow, _) = timer else { return };
        match self.recovery {
            Recovery::Repeat { .. } if flow.is_receivers() => self.complain(flow, out),
            Recovery::Repeat { .. } => self.ask(flow, out),
            _ if flow.is_receivers() => out.close(flow),
            _ => out.give_up(flow),
        }
    }

    fn pull(&mut self, host: NodeId, line: Line<'_>, out: &mut Outbox) -> Option<Packet> {
        if !line.is_open(1) {
            return None;
        }
        let whole = self.framing.payload + self.framing.header;
        let turns = &mut self.turns[host.index()];
        // Flows that may not send now keep their order, behind those whose turn is later.
        let ready = line.first_admitted(turns.iter().copied(), whole)?;
        let flow = turns[ready];
        let sender = &mut self.senders[flow.index()];
        let is_again = !sender.again.is_empty();
        if is_again && self.rests(host, out) {
            self.turns[host.index()].rotate_left(ready);
            return None;
        }
        let sender = &mut self.senders[flow.index()];
        let seq = sender.again.pop_first().unwrap_or_else(|| {
            sender.next += 1;
            sender.next - 1
        });
        if is_again {
            out.resent(1);
        }
        let is_spent = sender.again.is_empty() && sender.next == sender.total;
        let turns = &mut self.turns[host.index()];
        // It is the last in turn now; those passed over are before it.
        match ready {
            0 => {
                turns.pop_front();
                turns.push_back(flow);
            }
            _ if ready + 1 < turns.len() => turns.rotate_left(ready + 1),
            _ => {}
        }
        let packet = self.packet(flow, seq);
        if is_spent {
            self.turns[host.index()].pop_back();
            self.spent(flow, out);
        }
        Some(packet)
    }

    fn abandon(&mut self, flow: FlowKey, _: &mut Outbox) {
        match flow.is_receivers() {
            true => self.receivers[flow.index()].arrivals.clear(),
            false => self.end(flow),
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::Time;
    use packets::Effect;

    use super::*;

    /// A packet that names a number beyond all reason takes no memory for those before it.
    #[test]
    fn a_forged_number_takes_little_memory() {
        let framing = Framing { payload: 1_000, header: 42 };
        let recovery = Recovery::Repeat { seed: 1, patience: Span::from_us(100) };
        let mut raw = Raw::new(2, framing, recovery);
        let (mut out, flow) = (Outbox::new(Time::ZERO), FlowKey::receivers(0));
        let word = u64::MAX >> 1;
        let packet = Packet { flow, word, payload: 1_000, wire: 1_042, ..Packet::default() };
        raw.accept(&packet, flow, &mut out);
        for seq in [word / 2_000, word / 1_000, 3, word / 1_500] {
            raw.receive(NodeId::new(1), &Packet { seq, ..packet }, &mut out);
        }
        assert!(raw.receivers[0].arrivals.words() < 2_000);
        // It says what it lacks, and comes to an end with that.
        raw.timer(Timer::Flow(flow, 0), &mut out);
        let said = out.drain().filter(|effect| matches!(effect, Effect::Send(_))).count();
        assert_eq!(said, REPORTS_MAX as usize);
    }

    /// The rest of a datagram's flow is lost: its receiver forgets it after a silence, and not before.
    #[test]
    fn a_receiver_of_datagrams_keeps_no_flow_for_ever() {
        let framing = Framing { payload: 1_000, header: 42 };
        let patience = Span::from_us(100);
        let mut raw = Raw::new(2, framing, Recovery::Forget { patience });
        let (mut out, flow) = (Outbox::new(Time::ZERO), FlowKey::receivers(0));
        let packet = Packet { flow, word: 3_000, payload: 1_000, wire: 1_042, ..Packet::default() };
        raw.accept(&packet, flow, &mut out);
        for seq in [0, 1] {
            raw.receive(NodeId::new(1), &Packet { seq, ..packet }, &mut out);
        }
        let set = out.drain().filter_map(|effect| match effect {
            Effect::Set(timer, at) => Some((timer, at)),
            _ => None,
        });
        let end = Time::ZERO + patience * HOPES;
        assert_eq!(set.last(), Some((Timer::Flow(flow, 0), end)));
        out.set_now(end);
        raw.timer(Timer::Flow(flow, 0), &mut out);
        assert_eq!(out.drain().collect::<Vec<_>>(), [Effect::Close(flow)]);
    }
}
