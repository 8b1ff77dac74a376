//! Homa: short messages at once, long ones as the receiver grants, both by network priorities.
//!
//! Models: "Homa: a receiver-driven low-latency transport protocol using network priorities"
//! (SIGCOMM 2018): unscheduled bytes (§3.2), grants and shortest-remaining-first at both ends
//! (§3.2, §3.3), priorities by the sizes of the workload (§3.4), overcommitment (§3.5), incast
//! control if wanted (§3.6), RESEND and BUSY (§3.7). A flow is a one-way message. Where the response to
//! a request tells that the request has arrived (§3.1), here the receiver says so when the last byte is
//! there (our choice): the sender forgets the message then, the receiver at once.
//!
//! Leaves out: remote procedure calls with their at-least-once semantics, giving up on a server that
//! does not answer (the network says which hosts are dead), the limit on what a NIC has queued (§4:
//! here the NIC asks for each packet when its line is free), and priorities that follow the traffic.

mod config;
mod header;
#[cfg(test)]
mod network_tests;
mod priorities;
mod receiver;
mod sender;
mod silence;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kernel::{Bytes, Lookup, Span};
use packets::wire::Codec;
use packets::{
    FlowKey, Framing, Kind, Line, Opening, Outbox, Packet, Surroundings, Timer, Timers, Transport,
    answer,
};
use rack::NodeId;

pub use config::{Config, Incast};
pub use priorities::{Priorities, Profile};

use crate::arrivals::bytes_between;
use crate::kinds;
use crate::ranking::{Entry, Ranking};
use header::Messages;
use receiver::Incoming;
use sender::Outgoing;
use silence::Lines;

/// The timer of a receiver: something expected has not come.
const MISSING: u8 = 0;
/// The timer of a sender: the receiver says nothing.
const SILENT: u8 = 1;

/// Homa endpoints of all hosts.
#[derive(Clone, Debug)]
pub struct Homa {
    config: Config,
    framing: Framing,
    priorities: Priorities,
    control: u16,
    /// A round trip in packets: unscheduled ones, and those granted but not received.
    window: u64,
    overcommitment: usize,
    outgoing: Vec<Outgoing>,
    incoming: Vec<Incoming>,
    /// By host: messages that may send, by what they have left to send.
    sending: Ranking,
    /// By host: messages that need grants, by what they have left to receive.
    granting: Ranking,
    /// By host: messages to it that it knows of.
    open: Vec<u32>,
    /// By pair of hosts, for incast control: how many open messages the other said to have last.
    crowds: Lookup,
    lines: Lines,
    /// The idle round trip: what is granted or asked for cannot be there before.
    round_trip: Span,
    /// Messages that were started here, and those that were met.
    started: u64,
    met: u64,
    asked: u64,
    busy: u64,
}

impl Homa {
    /// Endpoints for a network whose messages are as `profile` says. The configuration has passed
    /// [`Config::check`].
    #[must_use]
    pub fn new(config: &Config, around: &Surroundings, profile: &Profile) -> Self {
        let framing = config.framing();
        let rtt_bytes = match config.rtt_bytes {
            Bytes::ZERO => {
                let links = u64::from(around.hops_max) + 1;
                around.line_rate.bytes_in(around.base_rtt) + config.mtu * links
            }
            given => given,
        };
        let window = framing.packets(rtt_bytes).max(1);
        let rtt_bytes = Bytes::new(window * u64::from(framing.payload));
        let priorities = Priorities::new(config, profile, rtt_bytes);
        let overcommitment = match config.overcommitment {
            0 => usize::from(priorities.scheduled()),
            given => given as usize,
        };
        let hosts = around.hosts as usize;
        Self {
            framing,
            priorities,
            control: config.control.get() as u16,
            window,
            overcommitment,
            outgoing: Vec::new(),
            incoming: Vec::new(),
            sending: Ranking::new(hosts),
            granting: Ranking::new(hosts),
            open: vec![0; hosts],
            crowds: Lookup::default(),
            lines: Lines::new(hosts, around.line_rate, around.line_rate.send_time(config.mtu)),
            round_trip: around.base_rtt,
            started: 0,
            met: 0,
            asked: 0,
            busy: 0,
            config: config.clone(),
        }
    }

    /// How priorities are divided.
    #[must_use]
    pub fn priorities(&self) -> &Priorities {
        &self.priorities
    }

    /// Packets of a message that go without a grant: few to a receiver that has said that many messages
    /// come to it (Homa §3.6: there it is the response's sender that is told so, in the request).
    fn unscheduled(&self, opening: &Opening) -> u64 {
        let flow = &opening.flow;
        let total = self.framing.packets(flow.size);
        let window = match &self.config.incast {
            Some(incast) if self.crowd(flow.src, flow.dst) > incast.threshold => {
                self.framing.packets(incast.unscheduled)
            }
            _ => self.window,
        };
        window.min(total)
    }

    /// How many messages come to `there`, as it told `here` last.
    fn crowd(&self, here: NodeId, there: NodeId) -> u32 {
        self.crowds.get([here.get(), there.get(), 0]).unwrap_or(0)
    }

    /// A receiver says how many messages come to it.
    fn note_crowd(&mut self, packet: &Packet) {
        if self.config.incast.is_some() {
            let count = packet.seq.min(u64::from(u32::MAX - 1)) as u32;
            self.crowds.insert([packet.dst.get(), packet.src.get(), 0], count);
        }
    }

    /// Puts a message among those that may send, or takes it out.
    fn rank_sender(&mut self, flow: FlowKey, out: &mut Outbox) {
        let message = &mut self.outgoing[flow.index()];
        match message.entry {
            None if message.is_ready() => {
                let entry = message.ranked(self.framing);
                message.entry = Some(entry);
                self.sending.insert(message.src.index(), entry);
                out.wake(message.src);
            }
            Some(entry) if !message.is_ready() => {
                message.entry = None;
                self.sending.remove(message.src.index(), entry);
            }
            _ => {}
        }
    }

    /// Grants to the messages with least left, as many as overcommitment allows (Homa §3.3, §3.5).
    fn grant(&mut self, host: NodeId, out: &mut Outbox) {
        let list = host.index();
        let mut rank = 0;
        loop {
            let active = self.granting.len(list).min(self.overcommitment);
            if rank >= active {
                return;
            }
            let entry = self.granting.at(list, rank).expect("an active message has a rank");
            let incoming = &mut self.incoming[entry.flow.index()];
            let level = self.priorities.of_rank(rank, active);
            if let Some(grant) = incoming.grant(entry.flow, self.window, level, self.control) {
                out.send(Packet { seq: self.open[list].into(), ..grant });
                let at = out.now() + self.config.resend_after;
                out.set_timer(Timer::Flow(entry.flow, MISSING), at);
            }
            if incoming.granted == incoming.total {
                incoming.entry = None;
                self.granting.remove(list, entry);
            } else {
                rank += 1;
            }
        }
    }

    /// A data packet has reached its destination.
    fn take(&mut self, host: NodeId, packet: &Packet, out: &mut Outbox) {
        let flow = packet.flow;
        let incoming = &mut self.incoming[flow.index()];
        let size = incoming.size;
        if packet.seq >= incoming.total || packet.word != size.get() {
            return out.unexpected();
        }
        let before = incoming.arrivals.next();
        incoming.has_data = true;
        let is_new = incoming.arrivals.insert(packet.seq);
        if is_new {
            let after = incoming.arrivals.next();
            if after > before {
                out.delivered(flow, bytes_between(self.framing, size, before, after));
            } else {
                let held = incoming.arrivals.count() - after;
                out.held(Bytes::new(held * u64::from(self.framing.payload)));
            }
            if incoming.is_done() {
                out.complete(flow);
                let ack = incoming.say(flow, kinds::ACK, self.control);
                self.leave(flow);
                out.send(Packet { seq: self.open[host.index()].into(), ..ack });
                out.close(flow);
                return self.grant(host, out);
            }
        }
        self.rank_receiver(host, flow, size);
        self.grant(host, out);
        self.expect(flow, out);
    }

    /// Keeps a message in order among those that need grants.
    fn rank_receiver(&mut self, host: NodeId, flow: FlowKey, size: Bytes) {
        let incoming = &mut self.incoming[flow.index()];
        let received = incoming.arrivals.count() * u64::from(self.framing.payload);
        let remaining = size.get().saturating_sub(received);
        let list = host.index();
        incoming.entry = match incoming.entry {
            Some(entry) => Some(self.granting.shorten(list, entry, remaining)),
            None if incoming.granted < incoming.total => {
                let entry = Entry { remaining, order: incoming.order, flow };
                self.granting.insert(list, entry);
                Some(entry)
            }
            None => None,
        };
    }

    /// Sets the receiver's timer, as something is expected or not.
    fn expect(&mut self, flow: FlowKey, out: &mut Outbox) {
        let timer = Timer::Flow(flow, MISSING);
        if self.incoming[flow.index()].expects() {
            out.set_timer(timer, out.now() + self.config.resend_after);
        } else {
            out.cancel_timer(timer);
        }
    }

    /// Whether a packet of `flow` that was due within the last `resend_after` is lost, as far as its
    /// receiver can tell.
    fn is_lost(&self, flow: FlowKey, out: &Outbox) -> bool {
        let incoming = &self.incoming[flow.index()];
        let since = out.now() + self.round_trip - self.config.resend_after;
        self.lines.was_free(incoming.dst, incoming.urgency, since, out.now())
    }

    /// A RESEND has reached the sender: it sends, or says that shorter messages go first (Homa §3.7).
    fn resend(&mut self, packet: &Packet, out: &mut Outbox) {
        let message = &mut self.outgoing[packet.flow.index()];
        message.resend(packet);
        let src = message.src;
        self.rank_sender(packet.flow, out);
        let first = self.sending.at(src.index(), 0);
        if first.is_some_and(|entry| entry.flow != packet.flow) {
            self.busy += 1;
            out.send(self.outgoing[packet.flow.index()].say(kinds::BUSY, self.control));
        }
    }

    /// A sender that hears nothing has asked: what would be the RESEND of a response. A receiver that
    /// knows nothing of the message asks for its unscheduled packets.
    fn enquiry(&mut self, flow: FlowKey, out: &mut Outbox) {
        let incoming = &self.incoming[flow.index()];
        if incoming.has_data || !self.is_lost(flow, out) {
            return out.send(incoming.say(flow, kinds::BUSY, self.control));
        }
        self.asked += 1;
        out.send(incoming.ask(flow, self.control));
    }

    /// Forgets a message at its source.
    fn end(&mut self, flow: FlowKey) {
        let message = &mut self.outgoing[flow.index()];
        assert!(message.is_open, "flow key {} ends twice", flow.get());
        message.is_open = false;
        if let Some(entry) = message.entry.take() {
            self.sending.remove(message.src.index(), entry);
        }
    }

    /// Forgets a message at its destination.
    fn leave(&mut self, flow: FlowKey) {
        let incoming = &mut self.incoming[flow.index()];
        if let Some(entry) = incoming.entry.take() {
            self.granting.remove(incoming.dst.index(), entry);
        }
        incoming.arrivals.clear();
        incoming.is_open = false;
        self.open[incoming.dst.index()] -= 1;
    }

    fn wait_for_receiver(&self, flow: FlowKey, out: &mut Outbox) {
        out.set_timer(Timer::Flow(flow, SILENT), out.now() + self.config.resend_after);
    }
}

impl Transport for Homa {
    fn name(&self) -> &'static str {
        "homa"
    }

    fn can_be_cut(&self) -> bool {
        true
    }

    fn add_counts(&mut self, other: &Self) {
        self.asked += other.asked;
        self.busy += other.busy;
    }

    fn timers(&self) -> Timers {
        Timers { flow: 2, host: 0 }
    }

    fn codec(&self) -> Arc<dyn Codec> {
        Arc::new(Messages { framing: self.framing, control: self.control })
    }

    fn framing(&self) -> Framing {
        self.framing
    }

    fn start(&mut self, opening: &Opening, out: &mut Outbox) {
        let Opening { key, flow, .. } = *opening;
        if self.outgoing.len() <= key.index() {
            self.outgoing.resize(key.index() + 1, Outgoing::default());
        }
        assert!(!self.outgoing[key.index()].is_open, "flow key {} is given out twice", key.get());
        let unscheduled = self.unscheduled(opening);
        let level = self.priorities.of_message(flow.size);
        let message = Outgoing::open(opening, self.framing, self.started, unscheduled, level);
        self.outgoing[key.index()] = message;
        self.started += 1;
        self.rank_sender(key, out);
        self.wait_for_receiver(key, out);
    }

    fn accept(&mut self, packet: &Packet, _: FlowKey, _: &mut Outbox) {
        let place = packet.flow.index();
        if self.incoming.len() <= place {
            self.incoming.resize(place + 1, Incoming::default());
        }
        let level = self.priorities.of_message(Bytes::new(packet.word));
        self.incoming[place].open(packet, self.framing, level, self.met);
        self.open[packet.dst.index()] += 1;
        self.met += 1;
    }

    fn receive(&mut self, host: NodeId, packet: &Packet, out: &mut Outbox) {
        self.lines.arrived(host, packet, out.now());
        let flow = packet.flow;
        if flow.is_receivers() {
            return match packet.kind {
                Kind::DATA if packet.payload > 0 => self.take(host, packet, out),
                // What a switch has cut is as good as lost.
                Kind::DATA => (),
                kinds::RESEND => self.enquiry(flow, out),
                kinds::BUSY => self.expect(flow, out),
                _ => out.unexpected(),
            };
        }
        match packet.kind {
            kinds::GRANT => {
                self.note_crowd(packet);
                self.outgoing[flow.index()].grant(packet);
                self.rank_sender(flow, out);
            }
            kinds::RESEND => self.resend(packet, out),
            kinds::BUSY => {}
            kinds::ACK => {
                self.note_crowd(packet);
                self.end(flow);
                return out.close(flow);
            }
            _ => return out.unexpected(),
        }
        self.wait_for_receiver(flow, out);
    }

    fn stray(&mut self, packet: &Packet, out: &mut Outbox) {
        let asks = packet.is_data() || packet.kind == kinds::RESEND;
        if asks && !packet.goes_to_source() {
            self.lines.arrived(packet.dst, packet, out.now());
            let seq = self.open[packet.dst.index()].into();
            out.send(Packet { seq, priority: 0, ..answer(packet, kinds::ACK, self.control) });
        }
    }

    fn timer(&mut self, timer: Timer, out: &mut Outbox) {
        let Timer::Flow(flow, number) = timer else {
            unreachable!("Homa sets no timer of a host, yet {timer:?} fired")
        };
        if number == SILENT {
            let message = &self.outgoing[flow.index()];
            let has_sent = message.next >= message.unscheduled;
            if has_sent {
                out.send(message.enquire(self.control));
            }
            self.wait_for_receiver(flow, out);
            if has_sent {
                out.in_vain(flow);
            }
            return;
        }
        let is_lost = self.is_lost(flow, out);
        if is_lost {
            self.asked += 1;
            out.send(self.incoming[flow.index()].ask(flow, self.control));
        }
        self.expect(flow, out);
        if is_lost {
            out.in_vain(flow);
        }
    }

    fn pull(&mut self, host: NodeId, line: Line<'_>, out: &mut Outbox) -> Option<Packet> {
        let whole = self.framing.payload + self.framing.header;
        let list = host.index();
        let may_leave = |entry: &Entry| {
            let priority = self.outgoing[entry.flow.index()].priority();
            line.is_open(priority) && line.admits(entry.flow, whole)
        };
        let mut ranked = (0..).map_while(|rank| self.sending.at(list, rank));
        let entry = ranked.find(may_leave)?;
        let message = &mut self.outgoing[entry.flow.index()];
        let (packet, is_again) = message.transmit(self.framing);
        if is_again {
            out.resent(1);
        }
        if message.is_ready() {
            let remaining = message.remaining(self.framing);
            message.entry = Some(self.sending.shorten(list, entry, remaining));
        } else {
            message.entry = None;
            self.sending.remove(list, entry);
        }
        Some(packet)
    }

    fn abandon(&mut self, flow: FlowKey, out: &mut Outbox) {
        if !flow.is_receivers() {
            return self.end(flow);
        }
        let host = self.incoming[flow.index()].dst;
        self.leave(flow);
        self.grant(host, out);
    }

    fn check(&self) -> Result<(), String> {
        for host in 0..self.open.len() {
            let entries = |ranking: &Ranking| -> Vec<usize> {
                let ranks = 0..ranking.len(host);
                ranks.filter_map(|rank| ranking.at(host, rank)).map(|e| e.flow.index()).collect()
            };
            let sending = entries(&self.sending).into_iter().map(|at| &self.outgoing[at]);
            if let Some(message) = sending.into_iter().find(|message| !message.is_open) {
                return Err(format!("host {host}: sending a closed {message:?}"));
            }
            let granting = entries(&self.granting).into_iter().map(|at| &self.incoming[at]);
            if let Some(message) = granting.into_iter().find(|message| !message.is_open) {
                return Err(format!("host {host}: granting a closed {message:?}"));
            }
        }
        Ok(())
    }

    fn details(&self, _: kernel::Time) -> serde_json::Map<String, serde_json::Value> {
        let mut details = serde_json::Map::new();
        details.insert("resend_requests".into(), self.asked.into());
        details.insert("busy_replies".into(), self.busy.into());
        details.insert("unscheduled_priorities".into(), self.priorities.unscheduled().into());
        details.insert("scheduled_priorities".into(), self.priorities.scheduled().into());
        details
    }
}
