//! The sending half of an NDP flow.
//!
//! Models: NDP §3.2 and §3.2.1 to §3.2.4. A whole window leaves at line rate; from then on a packet
//! leaves for each pull: first those that were refused, then new ones. What a flow may send is a
//! number of tokens, here `credit`: the window's at first, then each arrival at the receiver hands
//! one on to a pull. A packet that never reaches the receiver, even as a header, takes its token
//! along; see [`Sender::returned`] and [`Sender::overdue`] for how it comes back.

use kernel::{Bytes, Ring, Span, Stream, Time};
use packets::{FlowKey, Framing, Kind, Marks, Opening, Packet};
use rack::NodeId;

use super::paths::{Fate, Paths};

/// Priority of data; headers and control packets have 0.
pub(crate) const DATA_PRIORITY: u8 = 1;
/// The timeout doubles at most so often (our choice: 1 ms becomes 64 ms).
const PATIENCE_MAX: u8 = 6;
/// Acknowledgments for which one token that came back goes out again (our choice: a receiver's line
/// is so asked for an eighth more than it has at most; with one for each, every second packet of a
/// great incast was trimmed again and again).
const ACKS_PER_TOKEN: u8 = 8;
/// A closed flow gives memory back beyond so many packets (our choice).
const RECORDS_KEPT: usize = 1024;

/// What is known of a packet that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// Nothing yet.
    #[default]
    UnderWay,
    /// The receiver got its header: it will pull for it.
    Refused,
    /// It came back, or nothing was heard of it: the receiver does not know of it.
    Missed,
    /// It arrived.
    Arrived,
}

#[derive(Clone, Copy, Debug, Default)]
struct Record {
    sent: Time,
    path: u16,
    state: State,
}

/// One flow at its source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sender {
    pub(crate) src: NodeId,
    pub(crate) dst: NodeId,
    pub(crate) is_open: bool,
    key: FlowKey,
    size: Bytes,
    entropy: u16,
    /// The class of the flow, which its receiver may pull by.
    class: u8,
    /// Packets in the flow.
    total: u64,
    /// First packet that was never sent.
    next: u64,
    /// First packet that is not known to have arrived.
    base: u64,
    /// The packets `base..next`.
    records: Ring<Record>,
    /// Packets to send again, in order; those that have arrived since are passed over.
    again: Ring<u64>,
    /// Of the packets `base..next`, how many are in each state.
    under_way: u32,
    refused: u32,
    missed: u32,
    /// Packets that may be sent.
    credit: u64,
    /// Tokens that came back with their packets and were not used yet.
    stranded: u32,
    /// Acknowledgments since one of them was used.
    acks: u8,
    /// Highest pull number seen.
    pulled: u64,
    /// Since when nothing was heard.
    heard: Time,
    /// How often the timeout has doubled.
    patience: u8,
    paths: Paths,
}

impl Sender {
    /// Begins a flow.
    pub(crate) fn open(
        &mut self,
        opening: &Opening,
        framing: Framing,
        window: u32,
        paths_max: u16,
        stream: &mut Stream,
        now: Time,
    ) {
        assert!(!self.is_open, "flow key {} is given out twice", opening.key.get());
        let mut old = std::mem::take(self);
        let total = framing.packets(opening.flow.size);
        old.paths.reset(opening.paths.max(1), paths_max, stream);
        *self = Self {
            src: opening.flow.src,
            dst: opening.flow.dst,
            is_open: true,
            key: opening.key,
            size: opening.flow.size,
            entropy: opening.flow.id.get() as u16,
            class: opening.flow.class.get(),
            total,
            credit: u64::from(window).min(total),
            heard: now,
            paths: old.paths,
            records: old.records,
            again: old.again,
            ..Self::default()
        };
    }

    /// Ends it and gives back what was large.
    pub(crate) fn close(&mut self) {
        self.is_open = false;
        for ring in [self.records.capacity(), self.again.capacity()] {
            if ring > RECORDS_KEPT {
                (self.records, self.again) = (Ring::new(), Ring::new());
            }
        }
        self.records.clear();
        self.again.clear();
    }

    /// Whether every packet is known to have arrived.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        self.base == self.total
    }

    /// Whether a packet of this number was ever sent.
    #[inline]
    pub(crate) fn has_sent(&self, seq: u64) -> bool {
        seq < self.next
    }

    /// Whether a packet may leave now.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.credit > 0 && (self.refused + self.missed > 0 || self.next < self.total)
    }

    /// The next packet; [`Sender::is_ready`] holds. Its path is the next of the round.
    pub(crate) fn transmit(
        &mut self,
        framing: Framing,
        penalty: bool,
        stream: &mut Stream,
        now: Time,
    ) -> (Packet, Sent) {
        debug_assert!(self.is_ready(), "{self:?}");
        self.credit -= 1;
        let path = self.paths.next(penalty, stream);
        let record = Record { sent: now, path, state: State::UnderWay };
        self.under_way += 1;
        let (seq, sent) = match self.pop_again() {
            Some(seq) => {
                let offset = (seq - self.base) as usize;
                *self.records.get_mut(offset).expect("waits to be sent again") = record;
                (seq, Sent::Again)
            }
            None => {
                let seq = self.next;
                self.next += 1;
                self.records.push(record);
                (seq, Sent::New)
            }
        };
        (self.packet(seq, path, framing), sent)
    }

    /// Takes the first packet that waits to be retransmitted.
    fn pop_again(&mut self) -> Option<u64> {
        while let Some(seq) = self.again.pop() {
            let Some(offset) = seq.checked_sub(self.base) else { continue };
            match self.records.get(offset as usize)?.state {
                State::Refused => self.refused -= 1,
                State::Missed => self.missed -= 1,
                State::UnderWay | State::Arrived => continue,
            }
            return Some(seq);
        }
        None
    }

    fn packet(&self, seq: u64, path: u16, framing: Framing) -> Packet {
        let payload = framing.payload_of(self.size, seq);
        let last = if seq + 1 == self.total { Marks::LAST } else { Marks::empty() };
        Packet {
            seq,
            word: self.class.into(),
            flow: self.key,
            src: self.src,
            dst: self.dst,
            entropy: self.entropy,
            path: self.paths.number(path),
            wire: payload + framing.header,
            payload,
            kind: Kind::DATA,
            priority: DATA_PRIORITY,
            marks: Marks::MAY_TRIM | last,
            ..Packet::default()
        }
    }

    /// Moves a packet to `state`; false if there was nothing to change.
    fn settle(&mut self, seq: u64, state: State) -> bool {
        let Some(offset) = seq.checked_sub(self.base) else { return false };
        let Some(record) = self.records.get_mut(offset as usize) else { return false };
        let before = record.state;
        let waits = matches!(before, State::Refused | State::Missed);
        if before == State::Arrived || (waits && state != State::Arrived) {
            return false;
        }
        record.state = state;
        match before {
            State::UnderWay => self.under_way -= 1,
            State::Refused => self.refused -= 1,
            State::Missed => self.missed -= 1,
            State::Arrived => unreachable!("returned above"),
        }
        match state {
            State::Refused => self.refused += 1,
            State::Missed => self.missed += 1,
            State::UnderWay | State::Arrived => {}
        }
        if state != State::Arrived {
            self.again.push(seq);
        }
        while self.records.front().is_some_and(|record| record.state == State::Arrived) {
            self.records.pop();
            self.base += 1;
        }
        true
    }

    fn hear(&mut self, now: Time) {
        self.heard = now;
        self.patience = 0;
    }

    /// A packet arrived whole (NDP §3.2: the sender may free its buffer).
    pub(crate) fn acknowledged(&mut self, packet: &Packet, now: Time) {
        self.hear(now);
        self.paths.note(self.paths.place(packet.path), Fate::Delivered);
        self.settle(packet.seq, State::Arrived);
        // Packets get through: a token that came back may go out again. (Our choice; without it a
        // flow whose window came back would go on with one packet a round trip.)
        if self.stranded > 0 {
            self.acks += 1;
            if self.acks == ACKS_PER_TOKEN {
                self.acks = 0;
                self.stranded -= 1;
                self.credit += 1;
            }
        }
    }

    /// A header arrived: the packet is made ready to be retransmitted, but waits for a pull (NDP §3.2).
    pub(crate) fn refused(&mut self, packet: &Packet, now: Time) {
        self.hear(now);
        self.paths.note(self.paths.place(packet.path), Fate::Refused);
        self.settle(packet.seq, State::Refused);
    }

    /// A pull: its number tells how many have been asked for in all, so that one that is lost or
    /// late is made up for by the next (NDP §3.2). One that finds nothing to send is kept as long as
    /// something is under way: it may have overtaken a refusal. (To keep it only for refusals that the
    /// receiver had sent before it was tried: answers that overtake each other cannot be told apart by
    /// their count, and a refused packet could be left without a pull, to wait for the timeout.)
    pub(crate) fn pulled(&mut self, packet: &Packet, now: Time) {
        self.hear(now);
        let Some(more) = packet.seq.checked_sub(self.pulled).filter(|&more| more > 0) else {
            return;
        };
        self.pulled = packet.seq;
        let sendable = u64::from(self.refused + self.missed) + (self.total - self.next);
        self.credit = (self.credit + more).min(sendable + u64::from(self.under_way));
    }

    /// A header came back, because the header queue was full (NDP §3.2.4). It is retransmitted at once
    /// only if nothing else is expected: else the incast that filled the queue would come back as an
    /// echo.
    pub(crate) fn returned(&mut self, packet: &Packet, now: Time) {
        self.hear(now);
        self.paths.note(self.paths.place(packet.path), Fate::Refused);
        if !self.settle(packet.seq, State::Missed) {
            return;
        }
        self.stranded += 1;
        let is_expecting = self.under_way > 0 || self.refused > 0 || self.credit > 0;
        if !is_expecting {
            self.stranded -= 1;
            self.credit += 1;
        }
    }

    /// The last resort (NDP §3.2.2): packets of which nothing was heard for the timeout count as
    /// lost, and may be retransmitted at once. A flow that has nothing on its way, and no pull to wait
    /// for after such a silence, sends one packet to ask. Gives the number of packets lost, and
    /// whether it asks.
    pub(crate) fn overdue(&mut self, timeout: Span, now: Time) -> (u64, u64) {
        let limit = timeout * (1 << self.patience);
        let mut lost = 0;
        for offset in 0..self.records.len() {
            let record = self.records.get(offset).copied().expect("within the ring");
            if record.state == State::UnderWay && record.sent + limit <= now {
                self.paths.note(record.path, Fate::Lost);
                self.settle(self.base + offset as u64, State::Missed);
                self.credit += 1;
                lost += 1;
            }
        }
        let is_silent = self.heard + limit <= now && self.under_way == 0 && self.credit == 0;
        let asks = is_silent && lost == 0;
        self.credit += u64::from(asks);
        if is_silent || lost > 0 {
            self.patience = (self.patience + 1).min(PATIENCE_MAX);
        }
        (lost, u64::from(asks))
    }

    /// When to look for overdue packets again: when the oldest under way may be, though the timeout
    /// may have doubled by then.
    pub(crate) fn deadline(&self, timeout: Span, now: Time) -> Time {
        let sent = self.records.iter().filter(|r| r.state == State::UnderWay).map(|r| r.sent);
        let due = sent.min().unwrap_or(now) + timeout;
        if due > now { due } else { now + timeout }
    }

    /// Counts that have to agree.
    pub(crate) fn check(&self) -> Result<(), String> {
        let count = |state| self.records.iter().filter(|record| record.state == state).count();
        let found = (
            count(State::UnderWay),
            count(State::Refused),
            count(State::Missed),
            self.records.len(),
        );
        let kept = (
            self.under_way as usize,
            self.refused as usize,
            self.missed as usize,
            (self.next - self.base) as usize,
        );
        if found == kept { Ok(()) } else { Err(format!("{found:?} packets, counted {kept:?}")) }
    }
}

/// Whether a packet was sent before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sent {
    /// For the first time.
    New,
    /// Once more.
    Again,
}
