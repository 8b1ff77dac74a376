//! DCQCN: rates cut by congestion notifications, raised by timers, over a network that loses nothing.
//!
//! Models: "Congestion control for large-scale RDMA deployments" (SIGCOMM 2015): the notification
//! point (§3.1: at most one notification a flow in 50 µs), the reaction point with its published
//! parameters (§3.1, §5.2), flows that start at line rate. The congestion point is the switches'
//! RED marking, losslessness their PFC: see the network's `queues`. Recovery is go-back-N, as in
//! RoCEv2 adapters of the time: a receiver takes packets in order only, and asks once for what is
//! missing. A NIC serves its flows by the instant at which their rates let them send.
//!
//! Leaves out: queue pairs shared by messages (each flow has its own), adapters that mark
//! notifications per priority, rate limiters that are given up at line rate.

mod config;
mod header;
#[cfg(test)]
mod network_tests;
mod rate;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use kernel::{Bytes, Span, Time};
use packets::wire::Codec;
use packets::{
    FlowKey, Framing, Kind, Line, Marks, Opening, Outbox, Packet, Surroundings, Timer, Timers,
    Transport, answer, reply,
};
use rack::NodeId;

pub use config::Config;

use crate::kinds;
use header::Roce;
use rate::{Law, Limiter};

/// The timer of a flow: nothing was acknowledged for long.
const SILENT: u8 = 0;
/// The timeout doubles at most so often (our choice: 4 ms becomes a quarter of a second).
const PATIENCE_MAX: u8 = 6;

/// A flow at its source.
#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    src: NodeId,
    dst: NodeId,
    size: Bytes,
    is_open: bool,
    entropy: u16,
    /// Tells this flow from others that had its key.
    serial: u64,
    total: u64,
    /// Next packet, first unacknowledged one, end of those ever sent.
    next: u64,
    base: u64,
    sent: u64,
    /// When the rate lets the next packet go.
    due: Time,
    /// Whether it waits for its turn at the NIC.
    waits: bool,
    limiter: Limiter,
    patience: u8,
}

/// A flow at its destination.
#[derive(Clone, Copy, Debug, Default)]
struct Receiver {
    /// First packet that is missing; packets since the last acknowledgment.
    expected: u64,
    unacknowledged: u32,
    /// When it may ask again for what is missing, and notify again.
    nack_at: Time,
    notify_at: Time,
}

/// A flow's turn at a NIC: when, then in order of start.
type Turn = Reverse<(Time, u64, FlowKey)>;

/// DCQCN endpoints of all hosts.
#[derive(Clone, Debug)]
pub struct Dcqcn {
    config: Config,
    framing: Framing,
    control: u16,
    law: Law,
    senders: Vec<Sender>,
    receivers: Vec<Receiver>,
    /// By host: flows that have something to send.
    turns: Vec<BinaryHeap<Turn>>,
    /// Flows passed over in one call of `pull`.
    blocked: Vec<Turn>,
    started: u64,
    arrived: u64,
    marked: u64,
    notifications: u64,
    timeouts: u64,
}

impl Sender {
    /// Whether a packet could be sent, if the rate lets it.
    #[inline]
    fn is_ready(&self, window: u32) -> bool {
        self.is_open
            && self.next < self.total
            && (window == 0 || self.next - self.base < u64::from(window))
    }
}

impl Dcqcn {
    /// Endpoints for a network. The configuration has passed [`Config::check`].
    #[must_use]
    pub fn new(config: &Config, around: &Surroundings) -> Self {
        Self {
            framing: config.framing(),
            control: config.control.get() as u16,
            law: Law::new(config, around.line_rate),
            senders: Vec::new(),
            receivers: Vec::new(),
            turns: vec![BinaryHeap::new(); around.hosts as usize],
            blocked: Vec::new(),
            started: 0,
            arrived: 0,
            marked: 0,
            notifications: 0,
            timeouts: 0,
            config: config.clone(),
        }
    }

    /// Data packets that arrived, and how many of them were marked.
    #[must_use]
    pub fn marks(&self) -> (u64, u64) {
        (self.arrived, self.marked)
    }

    /// Lets a flow that has something to send wait for its turn; true if it has.
    fn queue(&mut self, key: FlowKey, now: Time) -> bool {
        let flow = &mut self.senders[key.index()];
        if flow.waits || !flow.is_ready(self.config.window) {
            return false;
        }
        flow.waits = true;
        flow.due = flow.due.max(now);
        self.turns[flow.src.index()].push(Reverse((flow.due, flow.serial, key)));
        true
    }

    /// As [`Dcqcn::queue`], and lets the NIC know.
    fn offer(&mut self, key: FlowKey, out: &mut Outbox) {
        if self.queue(key, out.now()) {
            out.wake(self.senders[key.index()].src);
        }
    }

    /// A data packet has reached its destination.
    fn take(&mut self, packet: &Packet, out: &mut Outbox) {
        let now = out.now();
        let control = self.control;
        let answer = |kind| Packet { priority: 0, ..reply(packet, kind, control) };
        let flow = &mut self.receivers[packet.flow.index()];
        self.arrived += 1;
        if packet.marks.contains(Marks::CE) {
            self.marked += 1;
            if now >= flow.notify_at {
                flow.notify_at = now + self.config.notification_interval;
                self.notifications += 1;
                out.send(answer(kinds::CNP));
            }
        }
        if packet.seq > flow.expected {
            if now >= flow.nack_at {
                flow.nack_at = now + self.config.nack_interval;
                out.send(Packet { ack: flow.expected, ..answer(kinds::NACK) });
            }
            return;
        }
        let is_next = packet.seq == flow.expected;
        if is_next {
            flow.expected += 1;
            flow.nack_at = now;
            out.delivered(packet.flow, Bytes::new(packet.payload.into()));
            flow.unacknowledged += 1;
        }
        let is_last = is_next && packet.marks.contains(Marks::LAST);
        if is_last || !is_next || flow.unacknowledged == self.config.ack_every {
            flow.unacknowledged = 0;
            out.send(Packet { ack: flow.expected, ..answer(kinds::ACK) });
        }
        if is_last {
            out.complete(packet.flow);
            out.close(packet.flow);
        }
    }

    /// All packets below `packet.ack` are acknowledged, or all of the flow; a refusal asks for the one at
    /// it.
    fn acknowledged(&mut self, packet: &Packet, out: &mut Outbox) {
        let flow = &mut self.senders[packet.flow.index()];
        let ack = if packet.marks.contains(Marks::LAST) { flow.total } else { packet.ack };
        if ack > flow.sent {
            return out.unexpected();
        }
        if ack > flow.base {
            flow.base = ack;
            flow.patience = 0;
        }
        if packet.kind == kinds::NACK && ack == flow.base {
            flow.next = flow.base;
        }
        flow.next = flow.next.max(flow.base);
        if flow.base == flow.total {
            self.end(packet.flow);
            out.close(packet.flow);
            return;
        }
        self.offer(packet.flow, out);
    }

    fn expect(&self, key: FlowKey, out: &mut Outbox) {
        let patience = self.senders[key.index()].patience;
        let at = out.now() + self.config.timeout * (1 << patience);
        out.set_timer(Timer::Flow(key, SILENT), at);
    }

    fn end(&mut self, key: FlowKey) {
        let flow = &mut self.senders[key.index()];
        // What waits for its turn is passed over when the turn comes: its number is of the past.
        (flow.is_open, flow.waits) = (false, false);
    }

    /// The next flow of `host` whose turn has come and that the line admits.
    fn next_turn(&mut self, host: NodeId, line: Line<'_>, out: &mut Outbox) -> Option<FlowKey> {
        let whole = self.framing.payload + self.framing.header;
        let turns = &mut self.turns[host.index()];
        let mut found = None;
        while let Some(&Reverse((due, serial, key))) = turns.peek() {
            let flow = &self.senders[key.index()];
            let is_current = flow.serial == serial && flow.waits;
            if is_current && due > out.now() {
                out.wake_at(host, due);
                break;
            }
            let turn = turns.pop().expect("it was just seen");
            if !is_current {
                continue;
            }
            if line.admits(key, whole) {
                found = Some(key);
                break;
            }
            self.blocked.push(turn);
        }
        turns.extend(self.blocked.drain(..));
        found
    }
}

impl Transport for Dcqcn {
    fn name(&self) -> &'static str {
        "dcqcn"
    }

    fn can_be_cut(&self) -> bool {
        true
    }

    fn add_counts(&mut self, other: &Self) {
        self.arrived += other.arrived;
        self.marked += other.marked;
        self.notifications += other.notifications;
        self.timeouts += other.timeouts;
    }

    fn timers(&self) -> Timers {
        Timers { flow: 1, host: 0 }
    }

    fn codec(&self) -> Arc<dyn Codec> {
        Arc::new(Roce { framing: self.framing, control: self.control })
    }

    fn framing(&self) -> Framing {
        self.framing
    }

    fn start(&mut self, opening: &Opening, out: &mut Outbox) {
        let Opening { key, flow, .. } = *opening;
        if self.senders.len() <= key.index() {
            self.senders.resize(key.index() + 1, Sender::default());
        }
        assert!(!self.senders[key.index()].is_open, "flow key {} is given out twice", key.get());
        self.started += 1;
        self.senders[key.index()] = Sender {
            src: flow.src,
            dst: flow.dst,
            size: flow.size,
            is_open: true,
            entropy: flow.id.get() as u16,
            serial: self.started,
            total: self.framing.packets(flow.size),
            due: out.now(),
            limiter: Limiter::new(&self.law),
            ..Sender::default()
        };
        self.offer(key, out);
    }

    fn accept(&mut self, packet: &Packet, _: FlowKey, out: &mut Outbox) {
        let place = packet.flow.index();
        if self.receivers.len() <= place {
            self.receivers.resize(place + 1, Receiver::default());
        }
        self.receivers[place] =
            Receiver { nack_at: out.now(), notify_at: out.now(), ..Receiver::default() };
    }

    fn receive(&mut self, _: NodeId, packet: &Packet, out: &mut Outbox) {
        match (packet.kind, packet.flow.is_receivers()) {
            (Kind::DATA, true) if packet.payload > 0 => self.take(packet, out),
            // What a switch has cut is as good as lost.
            (Kind::DATA, true) => (),
            (kinds::ACK | kinds::NACK, false) => self.acknowledged(packet, out),
            (kinds::CNP, false) => {
                let flow = &mut self.senders[packet.flow.index()];
                flow.limiter.notify(&self.law, out.now());
            }
            _ => out.unexpected(),
        }
    }

    fn stray(&mut self, packet: &Packet, out: &mut Outbox) {
        if packet.is_data() && !packet.goes_to_source() {
            let ack = answer(packet, kinds::ACK, self.control);
            out.send(Packet { priority: 0, marks: Marks::LAST, ..ack });
        }
    }

    fn timer(&mut self, timer: Timer, out: &mut Outbox) {
        let Timer::Flow(key, _) = timer else {
            unreachable!("DCQCN sets no timer of a host, yet {timer:?} fired")
        };
        let flow = &mut self.senders[key.index()];
        self.timeouts += 1;
        flow.patience = (flow.patience + 1).min(PATIENCE_MAX);
        flow.next = flow.base;
        self.offer(key, out);
        self.expect(key, out);
        out.in_vain(key);
    }

    fn pull(&mut self, host: NodeId, line: Line<'_>, out: &mut Outbox) -> Option<Packet> {
        if !line.is_open(self.config.priority) {
            return None;
        }
        let key = self.next_turn(host, line, out)?;
        let now = out.now();
        let flow = &mut self.senders[key.index()];
        flow.waits = false;
        if !flow.is_ready(self.config.window) {
            // What it wanted to send again was acknowledged meanwhile.
            return self.pull(host, line, out);
        }
        let seq = flow.next;
        flow.next += 1;
        if seq < flow.sent {
            out.resent(1);
        }
        flow.sent = flow.sent.max(flow.next);
        let payload = self.framing.payload_of(flow.size, seq);
        let packet = Packet {
            seq,
            flow: key,
            src: flow.src,
            dst: flow.dst,
            entropy: flow.entropy,
            path: flow.entropy,
            wire: payload + self.framing.header,
            payload,
            kind: Kind::DATA,
            priority: self.config.priority,
            marks: if seq + 1 == flow.total { Marks::ECT | Marks::LAST } else { Marks::ECT },
            ..Packet::default()
        };
        flow.limiter.sent(&self.law, packet.size(), now);
        // A packet that had to wait for the line does not delay those after it, but a flow that fell
        // behind by more does not catch up in a burst.
        let gap: Span = flow.limiter.rate().send_time(packet.size());
        flow.due = (flow.due + gap).max(now);
        self.expect(key, out);
        self.queue(key, now);
        Some(packet)
    }

    fn abandon(&mut self, flow: FlowKey, _: &mut Outbox) {
        if !flow.is_receivers() {
            self.end(flow);
        }
    }

    fn details(&self, _: Time) -> serde_json::Map<String, serde_json::Value> {
        let mut details = serde_json::Map::new();
        details.insert("notifications".into(), self.notifications.into());
        details.insert("marked_packets".into(), self.marked.into());
        details.insert("timeouts".into(), self.timeouts.into());
        details
    }
}
