//! RDS: a round trip's bytes at once, the rest in slots that the receiver gives.
//!
//! Models: the receiver-driven scheme that PL2 §6.1 compares with, built after Homa: blind packets,
//! grants of up to four packets, loss told by packets out of order, timeouts at both ends. No
//! priorities, as in PL2 §6.2.3. A flow is a one-way message.
//!
//! Where PL2 is silent: a receiver acknowledges a whole message, so that its sender forgets it; and it
//! announces itself when the first packet of a longer message has come, for its grants may be late.
//!
//! Leaves out: the two threads at each host and the queue between them; what software costs.

mod config;
mod header;
#[cfg(test)]
mod network_tests;
mod receiver;
mod schedule;
mod sender;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kernel::{Bytes, Time};
use packets::wire::Codec;
use packets::{
    FlowKey, Framing, Kind, Line, Opening, Outbox, Packet, Surroundings, Timer, Timers, Transport,
    answer,
};
use rack::NodeId;

pub use config::Config;

use crate::arrivals::bytes_between;
use crate::kinds;
use crate::turns::Turns;
use header::Granted;
use receiver::Incoming;
use schedule::{Schedule, Turn};
use sender::Outgoing;

/// The queue of all its packets: there are no priorities (PL2 §6.2.3).
const QUEUE: u8 = 1;
/// The timer of a receiver: something granted has not come.
const MISSING: u8 = 0;
/// The timer of a sender: the receiver says nothing.
const SILENT: u8 = 1;
/// A receiver's time-out doubles at most so often (our choice: PL2 does not say that it grows).
const LONGER_MAX: u32 = 20;
/// After so many time-outs a sender that waits to be granted more asks whether its receiver is there (our
/// choice: PL2 does not say what becomes of receivers that die).
const SILENCES_MAX: u32 = 8;
/// The timer of a host: its next slot begins.
const SLOT: u8 = 0;

/// RDS endpoints of all hosts.
#[derive(Clone, Debug)]
pub struct Rds {
    config: Config,
    framing: Framing,
    control: u16,
    /// Packets of a message that go before the receiver is heard of.
    blind: u64,
    outgoing: Vec<Outgoing>,
    incoming: Vec<Incoming>,
    /// By host: messages that may send, in turn.
    sending: Turns,
    schedule: Schedule,
    grants: u64,
    notices: u64,
    silences: u64,
    blind_again: u64,
}

impl Rds {
    /// Endpoints for a network. The configuration has passed [`Config::check`].
    #[must_use]
    pub fn new(config: &Config, around: &Surroundings) -> Self {
        let framing = config.framing();
        let blind = framing.packets(config.blind);
        let due_max = blind * u64::from(config.overcommitment);
        let batch = u64::from(config.batch);
        Self {
            framing,
            control: config.control.get() as u16,
            blind,
            outgoing: Vec::new(),
            incoming: Vec::new(),
            sending: Turns::of_senders(around.hosts as usize),
            schedule: Schedule::new(
                around.hosts,
                around.line_rate,
                config.mtu,
                batch,
                due_max,
                config.turns,
            ),
            grants: 0,
            notices: 0,
            silences: 0,
            blind_again: 0,
            config: config.clone(),
        }
    }

    /// Lets a message take its turns at its host, if it may send.
    fn rank(&mut self, flow: FlowKey, out: &mut Outbox) {
        let message = &self.outgoing[flow.index()];
        if message.is_ready() {
            self.sending.join(message.src.index(), flow);
            out.wake(message.src);
        }
    }

    /// Gives the slots that are due at `host`.
    fn schedule(&mut self, host: NodeId, out: &mut Outbox) {
        loop {
            let incoming = &self.incoming;
            let left = |flow: FlowKey| incoming[flow.index()].left();
            match self.schedule.turn(host, out.now(), left) {
                Turn::Grant(flow, packets) => self.grant(flow, packets, out),
                Turn::Later(at) => return out.set_timer(Timer::Host(host, SLOT), at),
                Turn::Wait => return,
            }
        }
    }

    fn grant(&mut self, flow: FlowKey, packets: u64, out: &mut Outbox) {
        let message = &mut self.incoming[flow.index()];
        message.granted += packets;
        self.grants += 1;
        let grant = message.say(flow, kinds::GRANT, self.control);
        out.send(Packet { ack: message.granted, ..grant });
        if message.left() == 0 {
            self.schedule.leave(flow, message.dst, message.src);
        }
        self.watch(flow, out);
    }

    /// Tells the sender that the packets `from..to` are lost.
    fn notify(&mut self, flow: FlowKey, (from, to): (u64, u64), out: &mut Outbox) {
        self.notices += 1;
        let notice = self.incoming[flow.index()].say(flow, kinds::RESEND, self.control);
        out.send(Packet { ack: from, word: to, ..notice });
    }

    /// Sets the receiver's timer, as something is due or not.
    fn watch(&self, flow: FlowKey, out: &mut Outbox) {
        let timer = Timer::Flow(flow, MISSING);
        let incoming = &self.incoming[flow.index()];
        if incoming.due() > 0 {
            // Notices that a slow host cannot send in time would pile up without end.
            let longer = 1 << incoming.silences.min(LONGER_MAX);
            out.set_timer(timer, out.now() + self.config.timeout * longer);
        } else {
            out.cancel_timer(timer);
        }
    }

    /// A data packet has reached its destination.
    fn take(&mut self, host: NodeId, packet: &Packet, out: &mut Outbox) {
        let flow = packet.flow;
        let Incoming { size, total, granted, .. } = self.incoming[flow.index()];
        if packet.seq >= granted || packet.word != size.get() {
            return out.unexpected();
        }
        let incoming = &mut self.incoming[flow.index()];
        incoming.silences = 0;
        let before = incoming.arrivals.next();
        if !incoming.arrivals.insert(packet.seq) {
            return out.send(incoming.say(flow, kinds::BUSY, self.control));
        }
        let (after, count) = (incoming.arrivals.next(), incoming.arrivals.count());
        let skipped = incoming.skipped(packet.seq);
        self.schedule.settle(host, 1);
        if after > before {
            out.delivered(flow, bytes_between(self.framing, size, before, after));
        } else {
            out.held(Bytes::new((count - after) * u64::from(self.framing.payload)));
        }
        if let Some(range) = skipped {
            self.notify(flow, range, out);
        }
        self.watch(flow, out);
        if count == total {
            out.complete(flow);
            out.send(self.incoming[flow.index()].say(flow, kinds::ACK, self.control));
            self.leave(flow);
            out.close(flow);
        }
        self.schedule(host, out);
    }

    /// Forgets a message at its source.
    fn end(&mut self, flow: FlowKey) {
        let message = &mut self.outgoing[flow.index()];
        assert!(message.is_open, "flow key {} ends twice", flow.get());
        message.is_open = false;
        self.sending.leave(message.src.index(), flow);
    }

    /// Forgets a message at its destination.
    fn leave(&mut self, flow: FlowKey) {
        let message = &mut self.incoming[flow.index()];
        self.schedule.settle(message.dst, message.due());
        self.schedule.leave(flow, message.dst, message.src);
        message.arrivals.clear();
        message.is_open = false;
    }

    fn wait_for_receiver(&self, flow: FlowKey, out: &mut Outbox) {
        // A receiver that knows of the message has a timer of its own, and speaks first.
        let turns = 1 + u64::from(self.outgoing[flow.index()].is_heard);
        out.set_timer(Timer::Flow(flow, SILENT), out.now() + self.config.timeout * turns);
    }

    /// The sender has heard nothing for a while after it sent what it may.
    fn receiver_is_silent(&mut self, flow: FlowKey, out: &mut Outbox) {
        let message = &mut self.outgoing[flow.index()];
        if !message.is_spent() {
            return;
        }
        if !message.is_heard {
            self.blind_again += 1;
            message.repeat(0, message.blind);
        } else {
            message.silences += 1;
            // Perhaps the acknowledgment is lost: the last packet asks for it again. A receiver that has
            // others to serve first is asked seldom, if it is there.
            if message.next < message.total && !message.silences.is_multiple_of(SILENCES_MAX) {
                return;
            }
            message.repeat(message.next - 1, message.next);
        }
        self.rank(flow, out);
        out.in_vain(flow);
    }

    /// The receiver has heard nothing of what it has granted for a while.
    fn sender_is_silent(&mut self, flow: FlowKey, out: &mut Outbox) {
        self.silences += 1;
        self.incoming[flow.index()].silences += 1;
        let mut from = 0;
        while let Some(gap) = self.gap(flow, from) {
            self.notify(flow, gap, out);
            from = gap.1;
        }
        self.watch(flow, out);
        out.in_vain(flow);
    }

    /// The first gap at or after `from` in what is granted.
    fn gap(&self, flow: FlowKey, from: u64) -> Option<(u64, u64)> {
        let incoming = &self.incoming[flow.index()];
        incoming.arrivals.gap_after(from, incoming.granted)
    }
}

impl Transport for Rds {
    fn name(&self) -> &'static str {
        "rds"
    }

    fn can_be_cut(&self) -> bool {
        true
    }

    fn add_counts(&mut self, other: &Self) {
        self.grants += other.grants;
        self.notices += other.notices;
        self.silences += other.silences;
        self.blind_again += other.blind_again;
    }

    fn timers(&self) -> Timers {
        Timers { flow: 2, host: 1 }
    }

    fn codec(&self) -> Arc<dyn Codec> {
        Arc::new(Granted { framing: self.framing, control: self.control })
    }

    fn framing(&self) -> Framing {
        self.framing
    }

    fn start(&mut self, opening: &Opening, out: &mut Outbox) {
        let key = opening.key;
        if self.outgoing.len() <= key.index() {
            self.outgoing.resize_with(key.index() + 1, Outgoing::default);
        }
        assert!(!self.outgoing[key.index()].is_open, "flow key {} is given out twice", key.get());
        self.outgoing[key.index()].open(opening, self.framing, self.blind);
        self.rank(key, out);
        self.wait_for_receiver(key, out);
    }

    fn accept(&mut self, packet: &Packet, _: FlowKey, out: &mut Outbox) {
        let flow = packet.flow;
        if self.incoming.len() <= flow.index() {
            self.incoming.resize_with(flow.index() + 1, Incoming::default);
        }
        let message = &mut self.incoming[flow.index()];
        message.open(packet, self.framing, self.blind);
        self.schedule.expect(message.dst, message.granted);
        if message.left() > 0 {
            self.schedule.join(flow, message.dst, message.src);
            out.send(message.say(flow, kinds::BUSY, self.control));
        }
    }

    fn receive(&mut self, host: NodeId, packet: &Packet, out: &mut Outbox) {
        let flow = packet.flow;
        if flow.is_receivers() {
            return match packet.kind {
                Kind::DATA if packet.payload > 0 => self.take(host, packet, out),
                // What a switch has cut is as good as lost.
                Kind::DATA => (),
                _ => out.unexpected(),
            };
        }
        let message = &mut self.outgoing[flow.index()];
        match packet.kind {
            kinds::GRANT => message.grant(packet.ack),
            kinds::RESEND => message.repeat(packet.ack, packet.word),
            kinds::BUSY => {}
            kinds::ACK => {
                self.end(flow);
                return out.close(flow);
            }
            _ => return out.unexpected(),
        }
        message.is_heard = true;
        message.silences = 0;
        self.rank(flow, out);
        self.wait_for_receiver(flow, out);
    }

    fn timer(&mut self, timer: Timer, out: &mut Outbox) {
        match timer {
            Timer::Host(host, _) => self.schedule(host, out),
            Timer::Flow(flow, SILENT) => {
                self.wait_for_receiver(flow, out);
                self.receiver_is_silent(flow, out);
            }
            Timer::Flow(flow, _) => self.sender_is_silent(flow, out),
        }
    }

    fn pull(&mut self, host: NodeId, line: Line<'_>, out: &mut Outbox) -> Option<Packet> {
        if !line.is_open(QUEUE) {
            return None;
        }
        let (list, whole) = (host.index(), self.framing.payload + self.framing.header);
        let mut turn = self.sending.front(list);
        while turn.is_some_and(|flow| !line.admits(flow, whole)) {
            turn = turn.and_then(|flow| self.sending.after(flow));
        }
        let flow = turn?;
        let message = &mut self.outgoing[flow.index()];
        let (packet, is_again) = message.transmit(self.framing);
        let is_ready = message.is_ready();
        self.sending.leave(list, flow);
        if is_again {
            out.resent(1);
        }
        if is_ready {
            self.sending.join(list, flow);
        } else {
            self.wait_for_receiver(flow, out);
        }
        Some(packet)
    }

    fn stray(&mut self, packet: &Packet, out: &mut Outbox) {
        if packet.is_data() && !packet.goes_to_source() {
            out.send(Packet { priority: QUEUE, ..answer(packet, kinds::ACK, self.control) });
        }
    }

    fn abandon(&mut self, flow: FlowKey, out: &mut Outbox) {
        if !flow.is_receivers() {
            return self.end(flow);
        }
        let host = self.incoming[flow.index()].dst;
        self.leave(flow);
        self.schedule(host, out);
    }

    fn check(&self) -> Result<(), String> {
        let mut due = vec![0; self.schedule.hosts()];
        for message in self.incoming.iter().filter(|message| message.is_open) {
            due[message.dst.index()] += message.due();
        }
        for (host, &due) in (0..).map(NodeId::new).zip(&due) {
            let counted = self.schedule.due(host);
            if counted != due {
                return Err(format!("{host}: {due} packets are due, {counted} were counted"));
            }
        }
        Ok(())
    }

    fn details(&self, _: Time) -> serde_json::Map<String, serde_json::Value> {
        let counts = [
            ("grants", self.grants),
            ("loss_notices", self.notices),
            ("receiver_timeouts", self.silences),
            ("blind_repeats", self.blind_again),
        ];
        counts.into_iter().map(|(key, count)| (key.into(), count.into())).collect()
    }
}
