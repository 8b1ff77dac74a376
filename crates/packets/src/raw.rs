//! Raw line-rate sending: no window, no acknowledgment, no recovery.
//!
//! Models: the sender without control that PL2 §6 compares with, and under per-flow backpressure
//! R2C2's ideal baseline (R2C2 §5.2). Flows of a host take turns, a packet each. A
//! packet that is lost stays lost, and its flow never completes, unless [`Recovery::Repeat`] is
//! asked for; with [`Recovery::Forget`] it fails then.

use std::collections::VecDeque;

use kernel::{Bytes, Span, Stream};
use rack::NodeId;

use crate::outbox::Outbox;
use crate::packet::{FlowKey, Kind, Marks, Packet};
use crate::transport::{Framing, Line, Opening, Timer, Timers, Transport};

/// What a raw sender does about losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Recovery {
    /// Nothing: for networks that lose nothing.
    #[default]
    None,
    /// The sender knows by an oracle what has arrived: no control packets. When all of a flow is sent
    /// and nothing more of it has arrived for a while, it sends what is missing again, and waits
    /// twice as long if that brings nothing. Before a repeated packet it may rest, by chance, lest
    /// senders in step lose the same packets for ever. An ideal for tests.
    Repeat {
        /// Seed of the rests.
        seed: u64,
        /// How long nothing must have arrived: above any wait on the way, or else packets are
        /// repeated that are not lost.
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

/// Most times that the wait for arrivals is doubled (our choice).
const DOUBLINGS_MAX: u8 = 6;

/// One flow's two halves.
#[derive(Clone, Debug, Default)]
struct Half {
    src: NodeId,
    dst: NodeId,
    size: u64,
    entropy: u16,
    /// Next packet to send.
    next: u64,
    /// First packet not yet received; of datagrams, how many are.
    expected: u64,
    /// Packets received at or beyond `expected`, by index modulo its length; grows with disorder.
    ahead: VecDeque<bool>,
    is_open: bool,
    /// Whether all of it has been sent once.
    is_repeating: bool,
    /// Whether all that is missing is on its way, as far as the sender is concerned: it has no turn.
    is_waiting: bool,
    /// How often it has waited in a row and nothing has arrived.
    vain_waits: u8,
}

impl Half {
    /// The first packet from `next` on that has not arrived.
    fn missing(&self, next: u64) -> u64 {
        let next = next.max(self.expected);
        let offset = usize::try_from(next - self.expected).expect("a flow's packets fit memory");
        let arrived = self.ahead.iter().skip(offset).take_while(|&&arrived| arrived).count();
        next + arrived as u64
    }
}

/// Endpoints that send at line rate.
#[derive(Clone, Debug)]
pub struct Raw {
    framing: Framing,
    recovery: Recovery,
    flows: Vec<Half>,
    /// Flows of each host with something to send, in turn.
    turns: Vec<VecDeque<FlowKey>>,
    /// By host: whether it has rested before its next repeated packet.
    rested: Vec<bool>,
    rests: Stream,
    started: u64,
}

impl Raw {
    /// Endpoints of `hosts` hosts.
    #[must_use]
    pub fn new(hosts: u32, framing: Framing, recovery: Recovery) -> Self {
        let seed = match recovery {
            Recovery::None | Recovery::Forget { .. } => 0,
            Recovery::Repeat { seed, .. } => seed,
        };
        Self {
            framing,
            recovery,
            flows: Vec::new(),
            turns: vec![VecDeque::new(); hosts as usize],
            rested: vec![false; hosts as usize],
            rests: Stream::new(seed, "packets/raw", 0),
            started: 0,
        }
    }

    fn packets(&self, flow: FlowKey) -> u64 {
        self.framing.packets(Bytes::new(self.flows[flow.index()].size))
    }

    /// Takes a flow out of its host's turns.
    fn end(&mut self, flow: FlowKey) {
        let half = &mut self.flows[flow.index()];
        half.is_open = false;
        self.turns[half.src.index()].retain(|&other| other != flow);
    }

    /// Tosses a coin whether a host rests now. After a rest it does not rest again at once.
    fn rests(&mut self, host: NodeId, out: &mut Outbox) -> bool {
        let rested = &mut self.rested[host.index()];
        if std::mem::take(rested) || self.rests.below(2) == 0 {
            return false;
        }
        *rested = true;
        out.wake_at(host, out.now() + Span::from_ps(1 + self.rests.below(REST_MAX.as_ps())));
        true
    }

    /// All that is missing of a flow is under way: it has no turn until nothing has arrived for so long.
    fn wait(&mut self, flow: FlowKey, out: &mut Outbox) {
        let Recovery::Repeat { patience, .. } = self.recovery else { return };
        let half = &mut self.flows[flow.index()];
        half.is_waiting = true;
        let patience = patience * (1 << half.vain_waits.min(DOUBLINGS_MAX));
        out.set_timer(Timer::Flow(flow, 0), out.now() + patience);
    }

    /// Sends what is missing of a flow again: nothing has arrived for long.
    fn repeat(&mut self, flow: FlowKey, out: &mut Outbox) {
        let half = &mut self.flows[flow.index()];
        half.next = half.expected;
        (half.is_waiting, half.is_repeating) = (false, true);
        half.vain_waits = half.vain_waits.saturating_add(1);
        self.turns[half.src.index()].push_back(flow);
        out.wake(half.src);
    }

    /// A datagram is readable at once; the network doubles none, so that counting them is enough.
    fn receive_datagram(&mut self, packet: &Packet, total: u64, out: &mut Outbox) {
        let half = &mut self.flows[packet.flow.index()];
        half.expected += 1;
        out.delivered(packet.flow, Bytes::new(packet.payload.into()));
        if half.expected == total {
            self.end(packet.flow);
            out.complete(packet.flow);
            out.close(packet.flow);
        }
    }

    fn next_packet(&mut self, flow: FlowKey) -> Packet {
        let half = &mut self.flows[flow.index()];
        let payload = self.framing.payload_of(Bytes::new(half.size), half.next);
        let seq = half.next;
        half.next += 1;
        Packet {
            flow,
            src: half.src,
            dst: half.dst,
            entropy: half.entropy,
            path: seq as u16,
            seq,
            payload,
            wire: payload + self.framing.header,
            priority: 1,
            marks: Marks::ECT,
            ..Packet::default()
        }
    }
}

impl Transport for Raw {
    fn name(&self) -> &'static str {
        "raw"
    }

    fn timers(&self) -> Timers {
        Timers { flow: u8::from(self.recovery != Recovery::None), host: 0 }
    }

    fn framing(&self) -> Framing {
        self.framing
    }

    fn start(&mut self, opening: &Opening, out: &mut Outbox) {
        let Opening { key, flow, .. } = *opening;
        if self.flows.len() <= key.index() {
            self.flows.resize(key.index() + 1, Half::default());
        }
        let half = &mut self.flows[key.index()];
        assert!(!half.is_open, "flow key {} is given out twice", key.get());
        half.ahead.clear();
        *half = Half {
            src: flow.src,
            dst: flow.dst,
            size: flow.size.get(),
            entropy: self.started as u16,
            ahead: std::mem::take(&mut half.ahead),
            is_open: true,
            ..Half::default()
        };
        self.started += 1;
        self.turns[flow.src.index()].push_back(key);
        out.wake(flow.src);
    }

    fn receive(&mut self, _: NodeId, packet: &Packet, out: &mut Outbox) {
        if packet.kind != Kind::Data || packet.payload == 0 {
            return;
        }
        let size = self.flows[packet.flow.index()].size;
        let total = self.packets(packet.flow);
        if let Recovery::Forget { .. } = self.recovery {
            return self.receive_datagram(packet, total, out);
        }
        let half = &mut self.flows[packet.flow.index()];
        let Some(offset) = packet.seq.checked_sub(half.expected) else { return };
        let offset = usize::try_from(offset).expect("a flow's packets fit memory");
        if half.ahead.len() <= offset {
            half.ahead.resize(offset + 1, false);
        }
        let is_new = !std::mem::replace(&mut half.ahead[offset], true);
        let before = half.expected;
        while half.ahead.front() == Some(&true) {
            half.ahead.pop_front();
            half.expected += 1;
        }
        let step = u64::from(self.framing.payload);
        let readable = (half.expected * step).min(size) - (before * step).min(size);
        if readable > 0 {
            out.delivered(packet.flow, Bytes::new(readable));
        } else {
            out.held(Bytes::new(half.ahead.iter().filter(|&&held| held).count() as u64 * step));
        }
        if half.expected == total {
            self.end(packet.flow);
            out.complete(packet.flow);
            out.close(packet.flow);
        } else if is_new {
            half.vain_waits = 0;
            if half.is_waiting {
                self.wait(packet.flow, out);
            }
        }
    }

    fn timer(&mut self, timer: Timer, out: &mut Outbox) {
        let Timer::Flow(flow, _) = timer else {
            unreachable!("raw sending sets no timer of a host, yet {timer:?} fired")
        };
        match self.recovery {
            Recovery::Repeat { .. } => self.repeat(flow, out),
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
        let total = self.packets(flow);
        let half = &mut self.flows[flow.index()];
        if half.is_repeating {
            // Some may have arrived since its last turn.
            half.next = half.missing(half.next);
            if half.next >= total {
                self.turns[host.index()].remove(ready);
                self.wait(flow, out);
                return self.pull(host, line, out);
            }
            if self.rests(host, out) {
                self.turns[host.index()].rotate_left(ready);
                return None;
            }
            out.resent(1);
        }
        let packet = self.next_packet(flow);
        let is_last = packet.seq + 1 == total;
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
        if is_last {
            turns.pop_back();
            match self.recovery {
                Recovery::None => {}
                Recovery::Repeat { .. } => self.wait(flow, out),
                Recovery::Forget { patience } => {
                    out.set_timer(Timer::Flow(flow, 0), out.now() + patience);
                }
            }
        }
        Some(packet)
    }

    fn abandon(&mut self, flow: FlowKey, _: &mut Outbox) {
        self.end(flow);
    }
}
