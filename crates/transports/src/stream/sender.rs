//! The sending half: which segment goes next, and what an acknowledgment means.
//!
//! Models: RFC 9293 §3.5 (opening), RFC 6675 §5 (recovery with selective acknowledgments), RFC 6582
//! §3.2 (recovery without), RFC 5681 §3.2 (recovery of one segment, as libvma has it), RFC 3042 (limited
//! transmit, which follows from the pipe), RFC 6298 §5 (the timer), RFC 3168 §6.1.2 (answering marks). Leaves
//! out: proportional rate reduction (RFC 6937), RACK (RFC 8985), undoing of needless retransmissions (RFC
//! 4015, RFC 5682).

use kernel::{Span, Time};
use packets::{FlowKey, Kind, Marks, Packet};
use rack::NodeId;

use super::config::{Echo, Plan, Recovery};
use super::congestion::{Acked, Congestion, Expiry, Phase, Signal, Start};
use super::cuts::Cuts;
use super::rtt::Timed;
use super::sack::Report;
use super::scoreboard::{DUP_THRESH, Scoreboard};
use super::timeout::Timeout;
use crate::kinds;

/// How far the connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Stage {
    /// No flow.
    #[default]
    Closed,
    /// A SYN is to be sent.
    Opening,
    /// A SYN is under way.
    Waiting,
    /// Data may flow.
    Open,
}

/// What a sender would send now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Choice {
    /// Nothing, until something comes.
    Nothing,
    /// Nothing before this instant.
    Wait(Time),
    /// A SYN.
    Syn,
    /// The next new segment.
    New,
    /// A segment again.
    Again(u64),
    /// The one more chance at a recovery's end (RFC 6675 §4, rule 4).
    Rescue(u64),
}

impl Choice {
    pub(crate) fn is_packet(self) -> bool {
        !matches!(self, Self::Nothing | Self::Wait(_))
    }
}

/// What became of the retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Alarm {
    /// As it was.
    Keep,
    /// To be set to this long from now.
    Set(Span),
    /// Off: nothing is under way.
    Off,
}

/// Counts over all flows, for the summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) recoveries: u64,
    pub(crate) timeouts: u64,
    pub(crate) syn_timeouts: u64,
    pub(crate) mark_answers: u64,
}

/// A flow as its sender sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ends {
    pub(crate) key: FlowKey,
    pub(crate) src: NodeId,
    pub(crate) dst: NodeId,
    pub(crate) entropy: u16,
    pub(crate) size: u64,
    pub(crate) class: u8,
}

/// The sender of one flow, or of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Sender<C> {
    pub(crate) control: C,
    pub(crate) board: Scoreboard,
    pub(crate) ends: Ends,
    /// Segments of the whole flow; of a connection no number is.
    total: u64,
    /// Of a connection: where its segments end. Those of a flow are full but for the last.
    pub(crate) cuts: Option<Box<Cuts>>,
    timeout: Timeout,
    timed: Timed,
    pub(crate) stage: Stage,
    pub(crate) phase: Phase,
    /// The phase ends when everything below has arrived (RFC 6675: RecoveryPoint).
    recover: u64,
    /// The next mark counts when something at or above has arrived.
    answered: u64,
    /// Duplicate acknowledgments, where there are no selective ones.
    duplicates: u64,
    /// Timeouts since the last progress.
    expiries: u32,
    /// Pacing: nothing goes before.
    gap_until: Time,
    /// The retransmission timer runs.
    is_timed: bool,
    /// The first segment is to be retransmitted whatever the window says (RFC 6675 §5, step 4.3).
    is_first_due: bool,
    /// Rule 4 of RFC 6675 §4 applies once this much has arrived.
    rescue_from: u64,
    /// The next new segment tells the receiver that its echo was answered.
    owes_cwr: bool,
    /// Its place in the turns of its host is taken.
    pub(crate) is_queued: bool,
}

impl<C: Congestion> Sender<C> {
    /// A sender without a flow.
    pub(crate) fn new(plan: &Plan, control: &C::Plan) -> Self {
        Self {
            control: C::new(control, &start(plan)),
            board: Scoreboard::default(),
            ends: Ends::default(),
            total: 0,
            cuts: None,
            timeout: Timeout::new(&plan.timeout),
            timed: Timed::default(),
            stage: Stage::Closed,
            phase: Phase::Open,
            recover: 0,
            answered: 0,
            duplicates: 0,
            expiries: 0,
            gap_until: Time::ZERO,
            is_timed: false,
            is_first_due: false,
            rescue_from: 0,
            owes_cwr: false,
            is_queued: false,
        }
    }

    /// Makes the half ready for a flow; keeps its memory.
    pub(crate) fn open(&mut self, ends: Ends, plan: &Plan, control: &C::Plan) {
        self.close(plan, control);
        self.ends = ends;
        self.total = ends.size.div_ceil(u64::from(plan.segment));
        self.stage = if plan.handshake { Stage::Opening } else { Stage::Open };
    }

    /// Makes the half ready for a connection, which has nothing to send yet; keeps its memory.
    pub(crate) fn connect(&mut self, plan: &Plan, control: &C::Plan) {
        self.open(Ends::default(), plan, control);
        self.total = u64::MAX;
        self.cuts = Some(Box::default());
    }

    pub(crate) fn close(&mut self, plan: &Plan, control: &C::Plan) {
        let mut board = std::mem::take(&mut self.board);
        board.reset();
        *self = Self { board, ..Self::new(plan, control) };
    }

    /// Whether all has been acknowledged.
    pub(crate) fn is_done(&self) -> bool {
        self.stage == Stage::Open && self.board.una() == self.total
    }

    /// Of a connection: whether all that was handed over has been acknowledged.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting() == 0 && self.board.flight() == 0
    }

    /// Of a connection: bytes that wait to be sent for the first time.
    pub(crate) fn waiting(&self) -> u64 {
        self.cuts.as_ref().map_or(0, |cuts| cuts.waiting())
    }

    /// Segments estimated to be in the network: Pipe (RFC 6675).
    fn pipe(&self, plan: &Plan) -> u64 {
        let left = if plan.recovery == Recovery::Single { 0 } else { self.duplicates };
        self.board.pipe().saturating_sub(left)
    }

    /// What to send now: NextSeg of RFC 6675 §4, where the window allows.
    pub(crate) fn choice(&self, now: Time, plan: &Plan) -> Choice {
        match self.stage {
            Stage::Closed | Stage::Waiting => return Choice::Nothing,
            Stage::Opening => return Choice::Syn,
            Stage::Open => (),
        }
        let una = self.board.una();
        if self.is_first_due {
            return Choice::Again(una);
        }
        if (self.pipe(plan) + 1) * u64::from(plan.segment) > self.control.window() {
            return Choice::Nothing;
        }
        let choice = self.next_segment(una, plan);
        if now < self.gap_until && choice.is_packet() {
            return Choice::Wait(self.gap_until);
        }
        choice
    }

    fn next_segment(&self, una: u64, plan: &Plan) -> Choice {
        if self.phase != Phase::Open
            && let Some(segment) = self.board.next_lost()
        {
            return Choice::Again(segment);
        }
        let next = self.board.next();
        if next < una + plan.receive_window && self.has_new(next, plan) {
            return Choice::New;
        }
        if self.phase != Phase::Recovery || plan.recovery != Recovery::Sack {
            return Choice::Nothing;
        }
        if let Some(segment) = self.board.next_hole() {
            return Choice::Again(segment);
        }
        if una < self.rescue_from {
            return Choice::Nothing;
        }
        self.board.last_hole().map_or(Choice::Nothing, Choice::Rescue)
    }

    /// Whether the next new segment is there.
    #[inline]
    fn has_new(&self, next: u64, plan: &Plan) -> bool {
        match &self.cuts {
            None => next < self.total,
            Some(cuts) => cuts.may_cut(self.board.flight(), plan),
        }
    }

    /// Sends what was chosen. Gives the packet and what becomes of the timer.
    pub(crate) fn send(&mut self, choice: Choice, now: Time, plan: &Plan) -> (Packet, Alarm) {
        let packet = match choice {
            Choice::Syn => {
                self.stage = Stage::Waiting;
                self.control_packet(kinds::SYN, now, plan)
            }
            Choice::New => {
                let segment = self.board.send_new();
                if let Some(cuts) = &mut self.cuts {
                    cuts.cut_next(plan);
                }
                self.timed.sent(segment, self.board.una(), now);
                let mut packet = self.segment(segment, plan, Marks::ECT);
                // Only new data tells of the answer (RFC 3168 §6.1.2).
                if std::mem::take(&mut self.owes_cwr) && plan.echo == Echo::UntilAnswered {
                    packet.marks |= Marks::CWR;
                }
                packet
            }
            Choice::Again(segment) => {
                self.is_first_due = false;
                self.board.send_again(segment);
                self.again(segment, plan)
            }
            Choice::Rescue(segment) => {
                self.rescue_from = u64::MAX;
                self.again(segment, plan)
            }
            Choice::Nothing | Choice::Wait(_) => unreachable!("{choice:?} is not sent"),
        };
        if self.control.gap() > Span::ZERO {
            self.gap_until = now + self.control.gap();
        }
        // RFC 6298 §5.1.
        let alarm = if self.is_timed { Alarm::Keep } else { Alarm::Set(self.timeout.rto()) };
        self.is_timed = true;
        (packet, alarm)
    }

    fn again(&mut self, segment: u64, plan: &Plan) -> Packet {
        self.timed.sent_again();
        // RFC 3168 §6.1.5: not on retransmitted packets; RFC 8257 makes no such exception.
        let is_capable = plan.echo == Echo::Each;
        self.segment(segment, plan, if is_capable { Marks::ECT } else { Marks::empty() })
    }

    fn control_packet(&self, kind: Kind, now: Time, plan: &Plan) -> Packet {
        let Ends { key, src, dst, entropy, class, .. } = self.ends;
        let (wire, priority) = (plan.header, plan.priorities.of(class));
        Packet {
            flow: key,
            src,
            dst,
            entropy,
            kind,
            wire,
            priority,
            stamp: now,
            ..Packet::default()
        }
    }

    fn segment(&self, segment: u64, plan: &Plan, capable: Marks) -> Packet {
        let Ends { key, src, dst, entropy, size, class } = self.ends;
        let mut marks = if plan.echo == Echo::None { Marks::empty() } else { capable };
        let mut payload = plan.segment;
        if let Some(cuts) = &self.cuts {
            payload = cuts.length(segment);
        } else if segment + 1 == self.total {
            marks |= Marks::LAST;
            payload = (size - segment * u64::from(payload)) as u16;
        }
        Packet {
            flow: key,
            src,
            dst,
            entropy,
            seq: segment,
            payload,
            wire: payload + plan.header,
            priority: plan.priorities.of(class),
            marks,
            ..Packet::default()
        }
    }

    /// The connection is open: a SYN was accepted, perhaps one before the SYN that is to go next.
    pub(crate) fn opened(&mut self, stamp: Time, now: Time, plan: &Plan) -> Alarm {
        if !matches!(self.stage, Stage::Waiting | Stage::Opening) {
            return Alarm::Keep;
        }
        self.stage = Stage::Open;
        let is_clean = self.expiries == 0;
        if is_clean || plan.timestamps {
            self.timeout.sample(now - stamp, &plan.timeout);
        }
        if !is_clean {
            self.timeout.after_lost_syn(&plan.timeout);
            self.control.syn_lost(&start(plan));
        }
        self.expiries = 0;
        self.is_timed = false;
        Alarm::Off
    }

    /// What an acknowledgment says that all has arrived before: all of it, if the receiver has closed.
    #[inline]
    fn arrived_before(&self, packet: &Packet) -> u64 {
        if packet.marks.contains(Marks::LAST) { self.total } else { packet.ack }
    }

    /// Whether an acknowledgment speaks of what was sent, before now.
    #[inline]
    pub(crate) fn makes_sense(&self, packet: &Packet, now: Time) -> bool {
        let next = self.board.next();
        let blocks = Report::decode(packet).blocks;
        packet.stamp <= now
            && self.arrived_before(packet) <= next
            && blocks.iter().all(|block| block.to <= next)
    }

    /// An acknowledgment has come, and has been at this host for some time.
    pub(crate) fn acknowledged(
        &mut self,
        packet: &Packet,
        (now, here): (Time, Span),
        plan: &Plan,
        control: &C::Plan,
        counts: &mut Counts,
    ) -> Alarm {
        let before = self.board.una();
        let ack = self.arrived_before(packet);
        if ack < before || self.stage != Stage::Open {
            return Alarm::Keep;
        }
        let flight = self.flight(plan);
        let bytes = self.bytes_below(ack, plan) - self.bytes_below(before, plan);
        let echo = plan.timestamps.then_some(packet.stamp);
        let sample = self.timed.sample(before, ack, now, echo);
        let mut arrived = self.board.acknowledge(ack);
        let report = Report::decode(packet);
        for block in report.blocks.iter().filter(|block| !block.is_empty()) {
            arrived += self.board.sack(block.from, block.to);
        }
        if let Some(cuts) = &mut self.cuts {
            cuts.retire(ack);
        }
        self.board.update_lost();
        match plan.recovery {
            Recovery::Sack => {}
            Recovery::Duplicates => self.count_duplicate(ack - before),
            Recovery::Single => {
                if self.count_single(ack - before) {
                    self.control.recovered(control, flight);
                }
            }
        }
        let is_progress = ack > before;
        // What was first then has arrived; whether the new first one is lost is not known.
        self.is_first_due &= !is_progress || plan.recovery == Recovery::Duplicates;
        let is_backed_off = self.expiries > 0 && is_progress;
        if let Some(rtt) = sample.or(echo.filter(|_| is_backed_off).map(|stamp| now - stamp)) {
            self.timeout.sample(rtt, &plan.timeout);
        }
        let acked = Acked {
            now,
            bytes,
            arrived,
            una: self.board.una(),
            next: self.board.next(),
            flight,
            rtt: now - packet.stamp,
            srtt: self.timeout.srtt().unwrap_or(now - packet.stamp),
            endpoint: report.endpoint + here,
            hops: report.hops,
            is_marked: packet.marks.contains(Marks::ECE),
            phase: self.phase,
            host: self.ends.src,
        };
        self.control.acked(control, &acked);
        self.end_phase();
        self.answer(&acked, plan, control, counts);
        self.alarm_after(ack - before)
    }

    /// What the timer does after an acknowledgment (RFC 6298 §5.2, §5.3).
    fn alarm_after(&mut self, progress: u64) -> Alarm {
        if progress == 0 {
            return Alarm::Keep;
        }
        self.expiries = 0;
        self.is_timed = self.board.flight() > 0;
        if self.is_timed { Alarm::Set(self.timeout.rto()) } else { Alarm::Off }
    }

    /// Everything sent before the trouble has arrived.
    fn end_phase(&mut self) {
        if self.phase != Phase::Open && self.board.una() >= self.recover {
            self.phase = Phase::Open;
            self.duplicates = 0;
            self.is_first_due = false;
        }
    }

    /// Bytes under way, acknowledged ones not counted.
    fn flight(&self, plan: &Plan) -> u64 {
        self.bytes_below(self.board.next(), plan) - self.bytes_below(self.board.una(), plan)
    }

    /// Of a connection: whether this is one of its segments, or was.
    pub(crate) fn has_sent(&self, packet: &Packet) -> bool {
        let (una, next) = (self.board.una(), self.board.next());
        let is_as_cut = |cuts: &Cuts| cuts.length(packet.seq) == packet.payload;
        match packet.seq {
            segment if segment < una => true,
            segment if segment < next => self.cuts.as_deref().is_some_and(is_as_cut),
            _ => false,
        }
    }

    /// Bytes in the segments below one that is not acknowledged, or the first that was not sent.
    pub(crate) fn bytes_below(&self, segment: u64, plan: &Plan) -> u64 {
        if let Some(cuts) = &self.cuts {
            return cuts.below(segment);
        }
        (segment * u64::from(plan.segment)).min(self.ends.size)
    }

    /// RFC 6582 §3.2 in terms of the pipe: each duplicate says that one segment has left the network;
    /// what a partial acknowledgment takes in besides the hole was said so before.
    fn count_duplicate(&mut self, progress: u64) {
        let una = self.board.una();
        match self.phase {
            Phase::Open | Phase::Recovery if progress == 0 => {
                self.duplicates = (self.duplicates + 1).min(self.board.flight());
                if self.phase == Phase::Open && self.duplicates >= DUP_THRESH as u64 {
                    self.board.declare_lost(una + 1);
                }
            }
            Phase::Recovery if una < self.recover => {
                self.duplicates = self.duplicates.saturating_sub(progress - 1);
                self.board.declare_lost(una + 1);
                self.is_first_due = true;
            }
            _ => self.duplicates = 0,
        }
    }

    /// RFC 5681 §3.2 without its inflated window: the third duplicate tells of one loss, and the first acknowledgment of
    /// new data ends the recovery. Whether it does.
    fn count_single(&mut self, progress: u64) -> bool {
        if progress > 0 {
            self.duplicates = 0;
            let ends = self.phase == Phase::Recovery;
            if ends {
                self.phase = Phase::Open;
            }
            return ends;
        }
        if self.phase == Phase::Open && self.board.flight() > 0 {
            self.duplicates += 1;
            if self.duplicates == DUP_THRESH as u64 {
                self.board.declare_lost(self.board.una() + 1);
            }
        }
        false
    }

    /// Answers losses and marks, each at most once a window of data.
    fn answer(&mut self, acked: &Acked, plan: &Plan, control: &C::Plan, counts: &mut Counts) {
        if self.phase != Phase::Open {
            return;
        }
        let was_answered = acked.una <= self.answered && self.answered > 0;
        if self.board.is_first_lost() {
            counts.recoveries += 1;
            self.phase = Phase::Recovery;
            self.recover = self.board.next();
            self.board.start_recovery();
            self.is_first_due = true;
            // RescueRxt is the segment retransmitted first; HighACK has to pass it.
            self.rescue_from = self.board.una() + 2;
            // A cut for a mark in the same window is the answer to the loss too (RFC 3168 §6.1.2);
            // not where marks are answered less than losses (RFC 8257 §3.5).
            if plan.echo != Echo::UntilAnswered || !was_answered {
                self.control.congested(control, Signal::Loss, self.flight(plan), acked.now);
                self.owes_cwr = true;
            }
            self.answered = self.recover;
        } else if acked.is_marked && !was_answered {
            counts.mark_answers += 1;
            self.control.congested(control, Signal::Mark, acked.flight, acked.now);
            self.owes_cwr = true;
            self.answered = self.board.next();
        }
    }

    /// The retransmission timer has fired (RFC 6298 §5.4 to §5.6; RFC 6675 §5.1).
    pub(crate) fn expire(
        &mut self,
        now: Time,
        plan: &Plan,
        control: &C::Plan,
        counts: &mut Counts,
    ) -> Alarm {
        debug_assert!(self.is_timed, "a timer fires that was not set");
        self.timeout.back_off(&plan.timeout);
        self.expiries += 1;
        if self.stage == Stage::Waiting {
            counts.syn_timeouts += 1;
            self.stage = Stage::Opening;
            self.is_timed = false;
            return Alarm::Keep;
        }
        counts.timeouts += 1;
        let expiry = if self.expiries == 1 { Expiry::First } else { Expiry::Repeated };
        self.control.congested(control, Signal::Timeout(expiry), self.flight(plan), now);
        self.phase = Phase::Loss;
        self.recover = self.board.next();
        self.answered = self.recover;
        self.duplicates = 0;
        self.is_first_due = false;
        self.gap_until = Time::ZERO;
        self.timed.sent_again();
        self.board.declare_all_lost();
        self.owes_cwr = true;
        Alarm::Set(self.timeout.rto())
    }
}

/// What a control is told when a flow starts.
fn start(plan: &Plan) -> Start {
    Start { segment: u64::from(plan.segment), window: plan.initial_window }
}
