//! Whom a receiver gives its slots to.
//!
//! Models: PL2 §6.1: receivers schedule up to four packets at a time. Our choices where it is silent:
//! senders take turns, and of each sender the oldest message is active, or messages do; a slot is as long
//! as the receiver's line takes for its packets; and no more is granted and not received than the line carries in a round
//! trip, or a stated multiple of that. A receiver knows nothing of what its senders have to send to
//! others: a slot may find its sender busy, which is what PL2 §6.2.3 blames.

use kernel::{Bytes, LinkClock, Rate, Time};
use packets::FlowKey;
use rack::NodeId;

use super::config;
use crate::turns::Turns;

/// The slots of all receivers.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    /// By receiver and sender: messages that need grants, oldest first.
    waiting: Turns,
    /// By receiver: the active message of each sender.
    active: Turns,
    lines: Vec<Line>,
    packet: Bytes,
    batch: u64,
    /// Most packets of a receiver that are granted and not received.
    due_max: u64,
    turns: config::Turns,
}

/// What a receiver's line is promised.
#[derive(Clone, Debug)]
struct Line {
    clock: LinkClock,
    /// When the next slot begins.
    free_at: Time,
    /// Packets granted and not received.
    due: u64,
}

/// What a receiver is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// Grant so many packets to a message.
    Grant(FlowKey, u64),
    /// Ask again at this time.
    Later(Time),
    /// Ask again when something has arrived.
    Wait,
}

impl Schedule {
    /// Slots for packets of this size on `hosts` lines of `rate`, at most `batch` packets each, and at
    /// most `due_max` under way.
    pub(crate) fn new(
        hosts: u32,
        rate: Rate,
        packet: Bytes,
        batch: u64,
        due_max: u64,
        turns: config::Turns,
    ) -> Self {
        let hosts = hosts as usize;
        let line = Line { clock: LinkClock::new(rate), free_at: Time::ZERO, due: 0 };
        Self {
            waiting: Turns::of_receivers(hosts * hosts),
            active: Turns::of_receivers(hosts),
            lines: vec![line; hosts],
            packet,
            batch,
            due_max: due_max.max(batch),
            turns,
        }
    }

    fn pair(&self, to: NodeId, from: NodeId) -> usize {
        to.index() * self.lines.len() + from.index()
    }

    /// A message needs grants.
    pub(crate) fn join(&mut self, flow: FlowKey, to: NodeId, from: NodeId) {
        let pair = self.pair(to, from);
        self.waiting.join(pair, flow);
        if self.turns == config::Turns::Messages || self.waiting.front(pair) == Some(flow) {
            self.active.join(to.index(), flow);
        }
    }

    /// A message needs none any more: the sender's next one is active.
    pub(crate) fn leave(&mut self, flow: FlowKey, to: NodeId, from: NodeId) {
        let pair = self.pair(to, from);
        self.active.leave(to.index(), flow);
        self.waiting.leave(pair, flow);
        if let Some(next) = self.waiting.front(pair) {
            // A message that has turns of its own waits already.
            self.active.join(to.index(), next);
        }
    }

    /// So many packets are on their way to a receiver.
    pub(crate) fn expect(&mut self, to: NodeId, packets: u64) {
        self.lines[to.index()].due += packets;
    }

    /// So many packets have arrived, or will not.
    pub(crate) fn settle(&mut self, to: NodeId, packets: u64) {
        self.lines[to.index()].due -= packets;
    }

    /// How many receivers there are.
    pub(crate) fn hosts(&self) -> usize {
        self.lines.len()
    }

    /// Packets of a receiver that are granted and not received.
    pub(crate) fn due(&self, to: NodeId) -> u64 {
        self.lines[to.index()].due
    }

    /// The next slot of a receiver; `left` tells how many packets a message still needs grants for.
    pub(crate) fn turn(
        &mut self,
        to: NodeId,
        now: Time,
        left: impl FnOnce(FlowKey) -> u64,
    ) -> Turn {
        let Some(flow) = self.active.front(to.index()) else { return Turn::Wait };
        let count = left(flow).min(self.batch);
        let line = &mut self.lines[to.index()];
        if line.due + count > self.due_max {
            return Turn::Wait;
        }
        if now < line.free_at {
            return Turn::Later(line.free_at);
        }
        line.free_at = now + line.clock.send(self.packet * count);
        line.due += count;
        // The other senders come first.
        self.active.leave(to.index(), flow);
        self.active.join(to.index(), flow);
        Turn::Grant(flow, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::Span;

    const TO: NodeId = NodeId::new(0);
    const PACKET: Span = Span::from_ns(120);

    /// 1500 B on 100 Gbps, four packets a slot, twelve under way.
    fn schedule(turns: config::Turns) -> Schedule {
        Schedule::new(4, Rate::from_gbps(100), Bytes::new(1500), 4, 12, turns)
    }

    fn at(packets: u64) -> Time {
        Time::ZERO + PACKET * packets
    }

    #[test]
    fn senders_take_turns_and_of_each_the_oldest_message() {
        let mut schedule = schedule(config::Turns::Senders);
        let [a, b, c] = [0, 1, 2].map(FlowKey::receivers);
        let [one, two] = [1, 2].map(NodeId::new);
        schedule.join(a, TO, one);
        schedule.join(b, TO, one);
        schedule.join(c, TO, two);
        assert_eq!(schedule.turn(TO, at(0), |_| 100), Turn::Grant(a, 4));
        assert_eq!(schedule.turn(TO, at(0), |_| 100), Turn::Later(at(4)));
        assert_eq!(schedule.turn(TO, at(4), |_| 3), Turn::Grant(c, 3));
        assert_eq!(schedule.turn(TO, at(6), |_| 100), Turn::Later(at(7)));
        assert_eq!(schedule.turn(TO, at(7), |_| 100), Turn::Grant(a, 4));
        // Eleven are under way, and there is room for one.
        assert_eq!(schedule.turn(TO, at(20), |_| 2), Turn::Wait);
        assert_eq!(schedule.turn(TO, at(20), |_| 1), Turn::Grant(c, 1));
        schedule.settle(TO, 12);
        schedule.leave(a, TO, one);
        assert_eq!(schedule.turn(TO, at(30), |_| 9), Turn::Grant(c, 4));
        assert_eq!(schedule.turn(TO, at(34), |_| 9), Turn::Grant(b, 4));
        schedule.leave(c, TO, two);
        schedule.leave(b, TO, one);
        assert_eq!(schedule.turn(TO, at(99), |_| unreachable!()), Turn::Wait);
    }

    #[test]
    fn messages_take_turns_whoever_sends_them() {
        let mut schedule = schedule(config::Turns::Messages);
        let [a, b, c] = [0, 1, 2].map(FlowKey::receivers);
        let [one, two] = [1, 2].map(NodeId::new);
        schedule.join(a, TO, one);
        schedule.join(b, TO, one);
        schedule.join(c, TO, two);
        for (slot, flow) in [a, b, c, a, b, c, a, b].into_iter().enumerate() {
            assert_eq!(schedule.turn(TO, at(slot as u64), |_| 1), Turn::Grant(flow, 1));
        }
        // The oldest of a sender goes, or a younger one: the others keep their turns.
        schedule.leave(b, TO, one);
        schedule.settle(TO, 8);
        for (slot, flow) in [c, a, c].into_iter().enumerate() {
            assert_eq!(schedule.turn(TO, at(8 + slot as u64), |_| 1), Turn::Grant(flow, 1));
        }
        schedule.leave(a, TO, one);
        schedule.leave(c, TO, two);
        assert_eq!(schedule.turn(TO, at(99), |_| unreachable!()), Turn::Wait);
    }
}
