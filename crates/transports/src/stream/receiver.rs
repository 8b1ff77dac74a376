//! The receiving half: puts segments in order and acknowledges them.
//!
//! Models: RFC 5681 §4.2 (when to acknowledge), RFC 2018 §4 (which blocks to report), RFC 3168
//! §6.1.3 (marks echoed until answered) and RFC 8257 §3.2 (marks echoed each, also where
//! acknowledgments are delayed). The application reads at once, so the window that the real header
//! advertises is the buffer's size, which the sender knows.

use kernel::{Bytes, Span, Time};
use packets::{FlowKey, Marks, Packet};
use rack::NodeId;

use super::config::{Echo, Plan, Recovery};
use super::sack::{BLOCKS, Block, Report, option_size, say_all};
use crate::kinds;
use crate::segments::Segments;

/// The receiver of one flow, or of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receiver {
    /// The next segment in order.
    expected: u64,
    /// Segments and bytes of the whole flow, once the last segment has told.
    end: Option<End>,
    /// Where acknowledgments go that no segment asks for.
    peer: Peer,
    /// What arrived ahead of its turn.
    ahead: Segments,
    /// A segment in each of the blocks reported last, the most recent first; stale below `expected`.
    recent: [u64; BLOCKS],
    /// Segments that wait to be acknowledged.
    waiting: u32,
    /// Stamp, arrival and hops of the first of them: its acknowledgment tells of these.
    first: Arrival,
    /// The last segment that arrived was marked (`Echo::Each`), or marks are to be echoed
    /// (`Echo::UntilAnswered`).
    is_marked: bool,
    /// Whether it holds a flow.
    is_open: bool,
}

/// The other end, as the first packet of the flow told it.
#[derive(Clone, Copy, Debug, Default)]
struct Peer {
    src: NodeId,
    dst: NodeId,
    entropy: u16,
    priority: u8,
}

/// Where a flow ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct End {
    segments: u64,
    bytes: u64,
}

/// What an acknowledgment tells of the segment that it answers.
#[derive(Clone, Copy, Debug, Default)]
struct Arrival {
    stamp: Time,
    at: Time,
    hops: u8,
}

/// What a segment did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Received {
    /// Segments that became readable, from..to.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Segments held out of order.
    pub(crate) held: u64,
    pub(crate) urgency: Urgency,
}

/// When the acknowledgment is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Urgency {
    /// Now.
    Now,
    /// When the delay timer fires, which was just started.
    Start,
    /// When the delay timer fires, which runs.
    Wait,
}

impl Receiver {
    /// Makes the half ready for the flow of its first packet; keeps its memory.
    pub(crate) fn open(&mut self, packet: &Packet) {
        self.close();
        self.meet(packet);
    }

    /// A connection carries something again, of which this is the first packet.
    pub(crate) fn meet(&mut self, packet: &Packet) {
        let Packet { src, dst, entropy, priority, .. } = *packet;
        self.peer = Peer { src, dst, entropy, priority };
        self.is_open = true;
    }

    /// A connection is idle, and its other end knows that all has arrived.
    pub(crate) fn rest(&mut self) {
        debug_assert!(self.ahead.is_empty(), "{self:?} is idle");
        self.waiting = 0;
        self.is_open = false;
    }

    /// Whether a segment may be one of this flow: not beyond its end, nor beyond what the window allows.
    #[inline]
    pub(crate) fn makes_sense(&self, packet: &Packet, plan: &Plan) -> bool {
        let end = self.end.map_or(u64::MAX, |end| end.segments);
        let is_last = packet.marks.contains(Marks::LAST);
        let ends_well =
            if is_last { packet.seq.checked_add(1).is_some_and(|n| n <= end) } else { true };
        packet.seq < end
            && ends_well
            && packet.seq <= self.expected.saturating_add(plan.receive_window)
            && (is_last || packet.payload == plan.segment)
            && packet.payload <= plan.segment
    }

    /// Application bytes in the segments `from..to`, which have arrived.
    #[inline]
    pub(crate) fn bytes(&self, from: u64, to: u64, plan: &Plan) -> Bytes {
        let end = self.end.map_or(u64::MAX, |end| end.bytes);
        let below = |segment: u64| (segment * u64::from(plan.segment)).min(end);
        Bytes::new(below(to) - below(from))
    }

    /// A packet such as the receiver would have got, to answer when none has come.
    pub(crate) fn stand_in(&self, flow: FlowKey) -> Packet {
        let Peer { src, dst, entropy, priority } = self.peer;
        Packet { flow, src, dst, entropy, priority, ..Packet::default() }
    }

    pub(crate) fn close(&mut self) {
        let mut ahead = std::mem::take(&mut self.ahead);
        ahead.clear();
        *self = Self { ahead, ..Self::default() };
    }

    /// Whether all has arrived.
    pub(crate) fn is_complete(&self) -> bool {
        self.end.is_some_and(|end| self.expected == end.segments)
    }

    /// Whether the half holds a flow.
    #[cfg(test)]
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Takes a segment in that reached the host's NIC at `now`. `early` is given an acknowledgment that has to go before: of segments
    /// that came with another mark (RFC 8257 §3.2).
    pub(crate) fn receive(
        &mut self,
        packet: &Packet,
        now: Time,
        plan: &Plan,
        early: impl FnOnce(Packet),
    ) -> Received {
        let is_marked = packet.marks.contains(Marks::CE);
        if plan.echo == Echo::Each && is_marked != self.is_marked {
            if self.waiting > 0 {
                early(self.acknowledge(packet, now, plan));
            }
            self.is_marked = is_marked;
        } else if plan.echo == Echo::UntilAnswered {
            let was_answered = packet.marks.contains(Marks::CWR);
            self.is_marked = is_marked || (self.is_marked && !was_answered);
        }
        let from = self.expected;
        let urgency = self.place(packet, now, plan);
        Received { from, to: self.expected, held: self.ahead.count(), urgency }
    }

    fn place(&mut self, packet: &Packet, now: Time, plan: &Plan) -> Urgency {
        let segment = packet.seq;
        let is_last = packet.marks.contains(Marks::LAST);
        if is_last {
            let bytes = segment * u64::from(plan.segment) + u64::from(packet.payload);
            self.end = Some(End { segments: segment + 1, bytes });
        }
        if self.waiting == 0 {
            self.first = Arrival { stamp: packet.stamp, at: now, hops: packet.hops };
        }
        self.waiting += 1;
        if segment != self.expected {
            // Out of order or known already: told at once (RFC 5681 §4.2), with its own stamp.
            self.first = Arrival { stamp: packet.stamp, at: now, hops: packet.hops };
            if segment > self.expected {
                self.ahead.insert(segment, segment + 1, |_, _| ());
                self.note_recent(segment);
            }
            return Urgency::Now;
        }
        self.expected += 1;
        if !self.ahead.is_empty() {
            self.expected = self.ahead.first_absent(self.expected);
            self.ahead.retire(self.expected);
            // It fills a hole, or part of one (RFC 5681 §4.2).
            return Urgency::Now;
        }
        match self.waiting {
            count if count >= plan.ack_segments || is_last => Urgency::Now,
            1 => Urgency::Start,
            _ => Urgency::Wait,
        }
    }

    /// The block with `segment` becomes the most recent.
    fn note_recent(&mut self, segment: u64) {
        let start = self.ahead.run_start(segment);
        let end = self.ahead.first_absent(segment);
        let is_same = |other: &u64| (start..end).contains(other);
        let place = self.recent.iter().position(is_same).unwrap_or(BLOCKS - 1);
        self.recent[..=place].rotate_right(1);
        self.recent[0] = segment;
    }

    /// The blocks as they stand now, each once (RFC 2018 §4).
    fn blocks(&self) -> [Block; BLOCKS] {
        let mut blocks = [Block::default(); BLOCKS];
        if self.ahead.is_empty() {
            return blocks;
        }
        let (mut count, mut told) = (0, 0);
        let mut add = |segment: u64| {
            let is_known = blocks[..count].iter().any(|b| (b.from..b.to).contains(&segment));
            if count < BLOCKS && !is_known {
                let from = self.ahead.run_start(segment);
                let to = self.ahead.first_absent(segment);
                blocks[count] = Block { from, to };
                count += 1;
                told += to - from;
            }
            count < BLOCKS && told < self.ahead.count()
        };
        let is_held = |segment: &u64| *segment >= self.expected && self.ahead.contains(*segment);
        let mut has_room = true;
        for segment in self.recent.into_iter().filter(is_held) {
            has_room = add(segment);
        }
        // As many as fit: where recent blocks have come to their turn, any others, lowest first.
        let mut at = self.expected;
        while let Some(segment) = self.ahead.first_present(at).filter(|_| has_room) {
            has_room = add(segment);
            at = self.ahead.first_absent(segment);
        }
        blocks
    }

    /// The acknowledgment that leaves the host's NIC at `now` or as soon as its line is free, in answer to a packet of
    /// the flow.
    pub(crate) fn acknowledge(&mut self, packet: &Packet, now: Time, plan: &Plan) -> Packet {
        let blocks = match plan.recovery {
            Recovery::Sack => self.blocks(),
            Recovery::Duplicates | Recovery::Single => [Block::default(); BLOCKS],
        };
        let endpoint = if self.waiting > 0 { now - self.first.at } else { Span::ZERO };
        let report = Report { blocks, hops: self.first.hops, endpoint };
        let wire = plan.header + option_size(report.count());
        let mut ack = packets::reply(packet, kinds::ACK, wire);
        ack.ack = self.expected;
        ack.stamp = self.first.stamp;
        if self.is_marked {
            ack.marks |= Marks::ECE;
        }
        report.encode(&mut ack);
        if let Some(end) = self.end.filter(|end| end.segments == self.expected) {
            say_all(&mut ack, (end.segments * u64::from(plan.segment) - end.bytes) as u16);
        }
        self.waiting = 0;
        ack
    }

    /// Whether an acknowledgment is still owed.
    pub(crate) fn owes(&self) -> bool {
        self.waiting > 0
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        if self.ahead.contains(self.expected) {
            return Err(format!("the next segment in order is held back: {self:?}"));
        }
        Ok(())
    }
}

/// The acknowledgment of a segment of a flow that has all arrived, and is closed.
/// `endpoint`: from the segment's arrival until it leaves.
pub(crate) fn acknowledge_all(packet: &Packet, endpoint: Span, plan: &Plan) -> Packet {
    let mut ack = packets::answer(packet, kinds::ACK, plan.header);
    ack.marks |= Marks::LAST;
    if packet.marks.contains(Marks::CE) && plan.echo != Echo::None {
        ack.marks |= Marks::ECE;
    }
    Report { hops: packet.hops, endpoint, ..Report::default() }.encode(&mut ack);
    ack
}

#[cfg(test)]
#[path = "receiver_tests.rs"]
mod tests;
