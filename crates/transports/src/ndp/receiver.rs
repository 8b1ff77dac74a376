//! The receiving side of NDP: what each flow has, and the one pull queue of each host.
//!
//! Models: NDP §3.2 and §3.2.1. Every arrival, whole or trimmed, is answered at once and adds a pull
//! to the queue; pulls leave at the rate at which full packets can arrive. The queue is kept as one
//! number for each flow and the order of turns.

use kernel::{Bytes, LinkClock, Rate, Time};
use packets::{FlowKey, Marks, Outbox, Packet, reply};
use rack::NodeId;

use super::config::PullOrder;
use crate::arrivals::Arrivals;
use crate::kinds;
use crate::turns::Turns;

/// Classes that a pull queue tells apart; those beyond share the last.
const LANES: usize = 8;

/// No sender is so far ahead of what its receiver lacks: a packet that says so is none of the flow, and is given no
/// memory (our choice: many round trips' worth of the fastest line).
const AHEAD_MAX: u64 = 1 << 20;

/// One flow at its destination.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receiver {
    pub(crate) arrivals: Arrivals,
    /// Packets in the flow, once the last has been seen, whole or trimmed.
    total: Option<u64>,
    /// One more than the highest packet that has come, whole or trimmed.
    seen: u64,
    /// Application bytes in the last packet, once it has come whole.
    last: u16,
    /// Packets that the sender may send before the first pull.
    window: u64,
    /// Pulls that are still to be sent.
    owed: u64,
    /// Pulls sent.
    pulls: u64,
    /// Refusals sent.
    refusals: u64,
    host: NodeId,
    peer: NodeId,
    entropy: u16,
    lane: u8,
}

impl Receiver {
    /// Meets the flow of a packet, whole or trimmed.
    pub(crate) fn open(&mut self, packet: &Packet, window: u32) {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        arrivals.clear();
        *self = Self {
            arrivals,
            window: window.into(),
            host: packet.dst,
            peer: packet.src,
            entropy: packet.entropy,
            lane: packet.word.min(LANES as u64 - 1) as u8,
            ..Self::default()
        };
    }

    /// Answers a data packet and counts what is to be pulled for it. True if it brought something
    /// new.
    pub(crate) fn take(&mut self, packet: &Packet, control: u16, out: &mut Outbox) -> bool {
        self.seen = self.seen.max(packet.seq + 1);
        if packet.marks.contains(Marks::LAST) {
            self.total = Some(packet.seq + 1);
        }
        let is_header = packet.marks.contains(Marks::TRIMMED);
        if packet.marks.contains(Marks::LAST) && !is_header {
            self.last = packet.payload;
        }
        let is_new = !is_header && self.arrivals.insert(packet.seq);
        // A header of what is here already is acknowledged: the sender took it for lost.
        let is_here = self.arrivals.contains(packet.seq);
        let kind = if is_here { kinds::ACK } else { kinds::NACK };
        out.send(Packet { seq: packet.seq, priority: 0, ..reply(packet, kind, control) });
        self.refusals += u64::from(!is_here);
        // Once the last packet is known, every packet has been sent: only headers need a pull.
        if !is_here || (is_new && self.total.is_none()) {
            self.owed += 1;
        }
        if let Some(total) = self.total {
            // NDP §3.2: pulls that can bring nothing leave the queue.
            let missing = total - self.arrivals.count();
            // A pull that overtook its refusal has brought a new packet instead, and must be made up
            // for: what the first window does not hold, and each refused packet again, needs a pull.
            let needed = total.saturating_sub(self.window) + self.refusals;
            self.owed = self.owed.max(needed.saturating_sub(self.pulls)).min(missing);
        }
        is_new
    }

    /// Whether a data packet may be one of this flow.
    pub(crate) fn makes_sense(&self, packet: &Packet, full: u16) -> bool {
        let is_last = packet.marks.contains(Marks::LAST);
        let is_header = packet.marks.contains(Marks::TRIMMED);
        let fits = match self.total {
            Some(total) if is_last => packet.seq + 1 == total,
            Some(total) => packet.seq + 1 < total,
            None if is_last => packet.seq < u64::MAX && packet.seq + 1 >= self.seen,
            None => packet.seq < u64::MAX,
        };
        let is_near = packet.seq < self.arrivals.next().saturating_add(AHEAD_MAX);
        let is_short = is_last && (1..full).contains(&packet.payload);
        fits && is_near && (is_header || packet.payload == full || is_short)
    }

    /// Application bytes in the packets `from..to`, which are here.
    pub(crate) fn bytes(&self, from: u64, to: u64, full: u16) -> Bytes {
        let all = (to - from) * u64::from(full);
        let is_short = to > from && self.total == Some(to);
        Bytes::new(if is_short { all - u64::from(full - self.last) } else { all })
    }

    /// Whether all packets are here.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        self.total == Some(self.arrivals.count())
    }

    fn pull(&mut self, flow: FlowKey, control: u16) -> Packet {
        self.owed -= 1;
        self.pulls += 1;
        Packet {
            flow,
            src: self.host,
            dst: self.peer,
            seq: self.pulls,
            // Pulls take all paths in turn, too.
            path: self.entropy.wrapping_add(self.pulls as u16),
            entropy: self.entropy,
            wire: control,
            kind: kinds::PULL,
            priority: 0,
            ..Packet::default()
        }
    }
}

/// The pull queue of each host.
#[derive(Clone, Debug)]
pub(crate) struct PullQueues {
    order: PullOrder,
    turns: Turns,
    pacers: Vec<Pacer>,
    /// What a pull asks for: a full packet.
    packet: Bytes,
    control: u16,
}

/// Spaces the pulls of one host by the time of a full packet on its line.
#[derive(Clone, Debug)]
struct Pacer {
    clock: LinkClock,
    /// When the next pull may leave.
    free_at: Time,
}

impl PullQueues {
    /// Queues of `hosts` hosts with lines of `rate`.
    pub(crate) fn new(
        hosts: u32,
        rate: Rate,
        order: PullOrder,
        packet: Bytes,
        control: u16,
    ) -> Self {
        let pacer = Pacer { clock: LinkClock::new(rate), free_at: Time::ZERO };
        let turns = Turns::of_receivers(hosts as usize * LANES);
        Self { order, turns, pacers: vec![pacer; hosts as usize], packet, control }
    }

    fn list(&self, receiver: &Receiver) -> usize {
        let lane = match self.order {
            PullOrder::RoundRobin => 0,
            PullOrder::Class => usize::from(receiver.lane),
        };
        receiver.host.index() * LANES + lane
    }

    /// Puts a flow in its host's queue, or takes it out, as it has pulls to send or not.
    #[inline]
    pub(crate) fn update(&mut self, flow: FlowKey, receiver: &Receiver) {
        let list = self.list(receiver);
        if receiver.owed > 0 {
            self.turns.join(list, flow);
        } else {
            self.turns.leave(list, flow);
        }
    }

    /// Takes a flow out.
    pub(crate) fn remove(&mut self, flow: FlowKey, receiver: &Receiver) {
        self.turns.leave(self.list(receiver), flow);
    }

    fn front(&self, host: NodeId) -> Option<FlowKey> {
        let lists = host.index() * LANES..(host.index() + 1) * LANES;
        lists.into_iter().find_map(|list| self.turns.front(list))
    }

    /// Sends the next pull of `host` if its time has come; gives the time of the one after, if one
    /// waits.
    pub(crate) fn serve(
        &mut self,
        host: NodeId,
        receivers: &mut [Receiver],
        out: &mut Outbox,
    ) -> Option<Time> {
        let flow = self.front(host)?;
        let now = out.now();
        let pacer = &mut self.pacers[host.index()];
        if now < pacer.free_at {
            return Some(pacer.free_at);
        }
        pacer.free_at = now + pacer.clock.send(self.packet);
        let next_at = pacer.free_at;
        let receiver = &mut receivers[flow.index()];
        out.send(receiver.pull(flow, self.control));
        let list = self.list(receiver);
        self.turns.leave(list, flow);
        if receiver.owed > 0 {
            self.turns.join(list, flow);
        }
        self.front(host).map(|_| next_at)
    }
}
