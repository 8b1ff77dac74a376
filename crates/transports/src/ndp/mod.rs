//! NDP: senders send a first window at line rate, switches trim, receivers pull.
//!
//! Models: "Re-architecting datacenter networks and stacks for low latency and high performance"
//! (SIGCOMM 2017): the first window at line rate, without a handshake (§3.2, §3.2.5); headers and
//! control packets before data; refusals, acknowledgments and paced pulls (§3.2); fair or strictly
//! prioritised pull queues (§3.2.1); paths in permuted order (§3.1.1) with penalties (§3.2.3);
//! return-to-sender (§3.2.4); a timeout as last resort (§3.2.2). Switches do the trimming and the
//! returning, as packet headers allow: see the network's `queues.trimming`.
//!
//! Leaves out: connection identifiers and time-wait state (a flow key is never stale here), and the
//! sender's answer to a pull being delayed by a busy processor.

mod config;
mod header;
#[cfg(test)]
mod network_tests;
mod paths;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kernel::{Bytes, Rate, Stream};
use packets::wire::Codec;
use packets::{
    FlowKey, Framing, Kind, Line, Opening, Outbox, Packet, Surroundings, Timer, Timers, Transport,
    answer,
};
use rack::NodeId;

pub use config::{Config, PullOrder};

use crate::kinds;
use crate::turns::Turns;
use header::Pulled;
use receiver::{PullQueues, Receiver};
use sender::{DATA_PRIORITY, Sender, Sent};

/// The timer of a flow: something may be overdue.
const OVERDUE: u8 = 0;
/// The timer of a host: the next pull may leave.
const PULL: u8 = 0;

/// NDP endpoints of all hosts.
#[derive(Clone, Debug)]
pub struct Ndp {
    config: Config,
    framing: Framing,
    senders: Vec<Sender>,
    receivers: Vec<Receiver>,
    /// By host: flows that may send.
    ready: Turns,
    pulls: PullQueues,
    /// By host: the order of paths.
    streams: Vec<Stream>,
    timeouts: u64,
    silences: u64,
}

impl Ndp {
    /// Endpoints for a network. The configuration has passed [`Config::check`].
    #[must_use]
    pub fn new(config: &Config, around: &Surroundings) -> Self {
        let framing = config.framing();
        let streams = (0..around.hosts).map(|h| Stream::new(around.seed, "ndp/paths", h.into()));
        Self {
            framing,
            senders: Vec::new(),
            receivers: Vec::new(),
            ready: Turns::of_senders(around.hosts as usize),
            pulls: PullQueues::new(
                around.hosts,
                if config.pull_rate == Rate::default() {
                    around.uniform_rate
                } else {
                    config.pull_rate
                },
                config.pull_order,
                config.mtu,
                framing.header,
            ),
            streams: streams.collect(),
            timeouts: 0,
            silences: 0,
            config: config.clone(),
        }
    }

    /// Lets a flow that may send take its turns, and the NIC know.
    #[inline]
    fn offer(&mut self, flow: FlowKey, out: &mut Outbox) {
        let sender = &self.senders[flow.index()];
        if sender.is_ready() && !self.ready.contains(flow) {
            self.ready.join(sender.src.index(), flow);
            out.wake(sender.src);
        }
    }

    /// A data packet or its header has reached its destination.
    fn take(&mut self, host: NodeId, packet: &Packet, out: &mut Outbox) {
        let flow = packet.flow;
        let full = self.framing.payload;
        let receiver = &mut self.receivers[flow.index()];
        if !receiver.makes_sense(packet, full) {
            return out.unexpected();
        }
        let before = receiver.arrivals.next();
        let is_new = receiver.take(packet, self.framing.header, out);
        self.pulls.update(flow, receiver);
        if is_new {
            let after = receiver.arrivals.next();
            if after > before {
                out.delivered(flow, receiver.bytes(before, after, full));
            } else {
                let held = receiver.arrivals.count() - after;
                out.held(Bytes::new(held * u64::from(self.framing.payload)));
            }
            if receiver.is_done() {
                self.leave(flow);
                out.complete(flow);
                out.close(flow);
            }
        }
        self.pull_next(host, out);
    }

    fn pull_next(&mut self, host: NodeId, out: &mut Outbox) {
        if let Some(at) = self.pulls.serve(host, &mut self.receivers, out) {
            out.set_timer(Timer::Host(host, PULL), at);
        }
    }

    /// Forgets a flow at its source.
    fn end(&mut self, flow: FlowKey) {
        let sender = &mut self.senders[flow.index()];
        self.ready.leave(sender.src.index(), flow);
        sender.close();
    }

    /// Forgets a flow at its destination.
    fn leave(&mut self, flow: FlowKey) {
        let receiver = &mut self.receivers[flow.index()];
        self.pulls.remove(flow, receiver);
        receiver.arrivals.clear();
    }

    fn overdue(&mut self, flow: FlowKey, out: &mut Outbox) {
        let timeout = self.config.timeout;
        let sender = &mut self.senders[flow.index()];
        let (lost, asks) = sender.overdue(timeout, out.now());
        self.timeouts += lost;
        self.silences += asks;
        out.set_timer(Timer::Flow(flow, OVERDUE), sender.deadline(timeout, out.now()));
        self.offer(flow, out);
        if lost + asks > 0 {
            out.in_vain(flow);
        }
    }
}

impl Transport for Ndp {
    fn name(&self) -> &'static str {
        "ndp"
    }

    fn can_be_cut(&self) -> bool {
        true
    }

    fn add_counts(&mut self, other: &Self) {
        self.timeouts += other.timeouts;
        self.silences += other.silences;
    }

    fn timers(&self) -> Timers {
        Timers { flow: 1, host: 1 }
    }

    fn codec(&self) -> Arc<dyn Codec> {
        Arc::new(Pulled { framing: self.framing })
    }

    fn framing(&self) -> Framing {
        self.framing
    }

    fn start(&mut self, opening: &Opening, out: &mut Outbox) {
        let Opening { key, flow, .. } = *opening;
        if self.senders.len() <= key.index() {
            self.senders.resize(key.index() + 1, Sender::default());
        }
        let (window, paths_max) = (self.config.initial_window, self.config.paths_max);
        let stream = &mut self.streams[flow.src.index()];
        let sender = &mut self.senders[key.index()];
        sender.open(opening, self.framing, window, paths_max, stream, out.now());
        out.set_timer(Timer::Flow(key, OVERDUE), out.now() + self.config.timeout);
        self.offer(key, out);
    }

    fn accept(&mut self, packet: &Packet, _: FlowKey, _: &mut Outbox) {
        let place = packet.flow.index();
        if self.receivers.len() <= place {
            self.receivers.resize(place + 1, Receiver::default());
        }
        self.receivers[place].open(packet, self.config.initial_window);
    }

    fn receive(&mut self, host: NodeId, packet: &Packet, out: &mut Outbox) {
        let (flow, now) = (packet.flow, out.now());
        if flow.is_receivers() {
            return match packet.kind {
                Kind::DATA => self.take(host, packet, out),
                _ => out.unexpected(),
            };
        }
        let sender = &mut self.senders[flow.index()];
        match packet.kind {
            kinds::PULL => sender.pulled(packet, now),
            _ if !sender.has_sent(packet.seq) => return out.unexpected(),
            Kind::DATA => sender.returned(packet, now),
            kinds::ACK => sender.acknowledged(packet, now),
            kinds::NACK => sender.refused(packet, now),
            _ => return out.unexpected(),
        }
        if self.senders[flow.index()].is_done() {
            self.end(flow);
            out.close(flow);
        } else {
            self.offer(flow, out);
        }
    }

    fn stray(&mut self, packet: &Packet, out: &mut Outbox) {
        if packet.is_data() && !packet.goes_to_source() {
            let ack = answer(packet, kinds::ACK, self.framing.header);
            out.send(Packet { seq: packet.seq, priority: 0, ..ack });
        }
    }

    fn timer(&mut self, timer: Timer, out: &mut Outbox) {
        match timer {
            Timer::Host(host, _) => self.pull_next(host, out),
            Timer::Flow(flow, _) => self.overdue(flow, out),
        }
    }

    fn pull(&mut self, host: NodeId, line: Line<'_>, out: &mut Outbox) -> Option<Packet> {
        if !line.is_open(DATA_PRIORITY) {
            return None;
        }
        let whole = self.framing.payload + self.framing.header;
        let mut turn = self.ready.front(host.index());
        while let Some(flow) = turn.filter(|&flow| !line.admits(flow, whole)) {
            turn = self.ready.after(flow);
        }
        let flow = turn?;
        self.ready.leave(host.index(), flow);
        let sender = &mut self.senders[flow.index()];
        if !sender.is_ready() {
            // What waited to be retransmitted has arrived meanwhile.
            return self.pull(host, line, out);
        }
        let stream = &mut self.streams[host.index()];
        let penalty = self.config.path_penalty;
        let (packet, sent) = sender.transmit(self.framing, penalty, stream, out.now());
        if sent == Sent::Again {
            out.resent(1);
        }
        if sender.is_ready() {
            self.ready.join(host.index(), flow);
        }
        Some(packet)
    }

    fn abandon(&mut self, flow: FlowKey, _: &mut Outbox) {
        match flow.is_receivers() {
            true => self.leave(flow),
            false => self.end(flow),
        }
    }

    fn check(&self) -> Result<(), String> {
        let open = self.senders.iter().enumerate().filter(|(_, sender)| sender.is_open);
        for (place, sender) in open {
            sender.check().map_err(|why| format!("flow {place}: {why}"))?;
        }
        Ok(())
    }

    fn details(&self, _: kernel::Time) -> serde_json::Map<String, serde_json::Value> {
        let mut details = serde_json::Map::new();
        details.insert("timeouts".into(), self.timeouts.into());
        details.insert("silences".into(), self.silences.into());
        details
    }
}
