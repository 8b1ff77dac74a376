//! Packets between two control processors, over management ordered sets.
//!
//! Models: Aquila §3.5, §4.4 (M613, M614): a management ordered set carries six bytes to the TiN at the other end of a
//! link, whether the link layer is up or not; on top of it stands a robust packet layer for bootstrap and debugging.
//! **Our choice**: frames of up to 1500 bytes with a CRC-32, a window of four frames that is sent again from the
//! first one that is missing (go-back-N), a time-out of 10 ms that doubles up to 1 s.
//!
//! Beside the header of M614 a frame names the *session* of its sender, 16 bits that its driver draws at each start:
//! otherwise a processor that has restarted would take frames, or acknowledgements, of its former life for its own.
//! Who gets frames of a session without its first one says so, and they are numbered again in a new session.
//!
//! Acknowledgements have a channel of their own, whose words go first, so that they need not wait for a frame of
//! 252 words. The time-out runs from when the last word of the window has gone.
//!
//! Leaves out: how often a word goes. Whoever has the wire calls [`End::next_word`] for each, or, to count the words of
//! a whole frame at once, [`End::next_ack`], [`End::next_frame`] and [`End::has_gone`].

mod frame;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use aquila::link::ordered_sets::OrderedSet;
use kernel::{Span, Time};
use thiserror::Error;

use crate::memory::{Charge, Memory, OutOfMemory, Purpose};

pub use frame::{DATA_BYTES_MAX, FRAME_BYTES_MAX, Frame, FrameError, Joiner, Kind, Words};

/// Frames that may be under way (M614, our choice).
pub const WINDOW: usize = 4;
/// Frames that wait behind those, and frames that have come and wait to be taken (our choice): as many again, so that
/// neither end's user has to be called for each.
pub const QUEUE: usize = 4;
/// How long until frames are sent again for the first time (M614, our choice).
pub const TIMEOUT_MIN: Span = Span::from_us(10_000);
/// And at the most (M614, our choice).
pub const TIMEOUT_MAX: Span = Span::from_us(1_000_000);

/// Channels of management ordered sets (our choice).
const FRAMES: u8 = 0;
const ACKS: u8 = 1;

/// The number after another: 1 follows 255, as 0 is that of a session's first frame alone.
const fn after(sequence: u8) -> u8 {
    if sequence == u8::MAX { 1 } else { sequence + 1 }
}

/// What has happened at an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Frames handed over.
    pub delivered: u64,
    /// Frames sent more than once, each time.
    pub sent_again: u64,
    /// Frames with a wrong checksum, length or kind.
    pub damaged: u64,
    /// Whole frames that were not the next.
    pub out_of_order: u64,
    /// Frames for which there was no room, as those before them had not been taken.
    pub refused: u64,
    /// Sessions begun because the other end did not know the one before.
    pub sessions: u64,
}

/// Why a packet was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Refused {
    /// It is no data, or too much.
    #[error("{0} bytes; expected DHCP, RPC or DEBUG of at most {DATA_BYTES_MAX}")]
    Packet(usize),
    /// Too many wait.
    #[error("{} frames wait; expected room for one more, send it later", WINDOW + QUEUE)]
    Full,
}

/// One end of a link: sends packets and receives them, each once and in order.
#[derive(Debug)]
pub struct End {
    /// Room for all that it may hold.
    _room: Charge,
    session: u16,
    /// Number of the first frame that is not acknowledged.
    first: u8,
    /// From that frame on: those under way, and those that wait.
    frames: VecDeque<(Kind, Vec<u8>)>,
    /// How many of them have been sent since the window was sent again.
    sent: usize,
    /// How many have been sent ever.
    sent_ever: usize,
    /// The frame that is on its way, word by word.
    words: Option<Words>,
    timeout: Span,
    /// The first time-out.
    timeout_min: Span,
    /// A whole frame is on the wire, of which [`End::has_gone`] tells the end; there is no time-out until then.
    is_on_wire: bool,
    /// When frames are sent again.
    deadline: Option<Time>,
    /// The other end's session, and the frame that is expected next.
    peer: Option<(u16, u8)>,
    /// An acknowledgement that is due.
    due: Option<Frame>,
    ack_words: Option<Words>,
    joiners: [Joiner; 2],
    delivered: VecDeque<(Kind, Vec<u8>)>,
    counts: Counts,
}

impl End {
    /// An end that has neither sent nor heard anything. `session` should be another one than in the lives before: a
    /// random number, or one that counts starts.
    ///
    /// # Errors
    /// The memory is not there.
    pub fn new(memory: &Memory, session: u16) -> Result<Self, OutOfMemory> {
        // Frames that are kept, those that have come, one that goes and two that come.
        let room = memory.charge(Purpose::Pmos, (WINDOW + 2 * QUEUE + 3) * FRAME_BYTES_MAX)?;
        Ok(Self {
            _room: room,
            session,
            first: 0,
            frames: VecDeque::new(),
            sent: 0,
            sent_ever: 0,
            words: None,
            timeout: TIMEOUT_MIN,
            timeout_min: TIMEOUT_MIN,
            is_on_wire: false,
            deadline: None,
            peer: None,
            due: None,
            ack_words: None,
            joiners: Default::default(),
            delivered: VecDeque::new(),
            counts: Counts::default(),
        })
    }

    /// The same on a slow wire, on which words take so long that an answer takes more than the usual time-out.
    #[must_use]
    pub fn with_timeout(mut self, first: Span) -> Self {
        (self.timeout, self.timeout_min) = (first, first);
        self
    }

    /// Takes a packet, to send it.
    ///
    /// # Errors
    /// It is none, or there is no room.
    pub fn send(&mut self, kind: Kind, data: &[u8]) -> Result<(), Refused> {
        if !kind.is_data() || data.len() > DATA_BYTES_MAX {
            return Err(Refused::Packet(data.len()));
        }
        if self.frames.len() == WINDOW + QUEUE {
            return Err(Refused::Full);
        }
        self.frames.push_back((kind, data.to_vec()));
        Ok(())
    }

    /// The next word for the wire, which is free now; `None`: there is nothing to say.
    pub fn next_word(&mut self, now: Time) -> Option<OrderedSet> {
        if self.ack_words.is_none() {
            self.ack_words = self.due.take().map(|ack| Words::new(&ack, ACKS));
        }
        if let Some(word) = self.ack_words.as_mut().and_then(Iterator::next) {
            return Some(word);
        }
        self.ack_words = None;
        // One that is due since the last word of the one before.
        if self.due.is_some() {
            return self.next_word(now);
        }
        if let Some(word) = self.words.as_mut().and_then(Iterator::next) {
            self.restart(now);
            return Some(word);
        }
        self.words = None;
        self.words = Some(Words::new(&self.advance()?, FRAMES));
        self.restart(now);
        self.words.as_mut().and_then(Iterator::next)
    }

    /// The next frame of the window, from now on under way.
    fn advance(&mut self) -> Option<Frame> {
        if self.sent >= self.frames.len().min(WINDOW) {
            return None;
        }
        let (kind, data) = self.frames[self.sent].clone();
        let sequence = (0..self.sent).fold(self.first, |sequence, _| after(sequence));
        self.sent += 1;
        self.counts.sent_again += u64::from(self.sent <= self.sent_ever);
        self.sent_ever = self.sent_ever.max(self.sent);
        Some(Frame { kind, sequence, session: self.session, data })
    }

    /// An acknowledgement for the wire, at once: its words go between those of a frame.
    pub fn next_ack(&mut self) -> Option<Frame> {
        self.due.take()
    }

    /// The next whole frame for the wire, which is free now. No other is given until [`End::has_gone`].
    pub fn next_frame(&mut self) -> Option<Frame> {
        if self.is_on_wire {
            return None;
        }
        let frame = self.advance()?;
        self.is_on_wire = true;
        self.deadline = None;
        Some(frame)
    }

    /// The last word of the frame on the wire has gone.
    pub fn has_gone(&mut self, now: Time) {
        self.is_on_wire = false;
        self.restart(now);
    }

    /// The words of a frame that [`End::next_ack`] or [`End::next_frame`] gave, on its channel.
    #[must_use]
    pub fn words(frame: &Frame) -> Words {
        Words::new(frame, if frame.kind.is_data() { FRAMES } else { ACKS })
    }

    /// When [`End::on_time`] is to be called; `None`: nothing is waited for.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// Sends the window again if it is time, and waits twice as long then.
    pub fn on_time(&mut self, now: Time) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        self.deadline = None;
        if self.sent > 0 {
            // A frame that is on its way is finished first: half a frame would only cost the other half.
            self.sent = 0;
            self.timeout = (self.timeout + self.timeout).min(TIMEOUT_MAX.max(self.timeout_min));
        }
    }

    /// An ordered set has come; what is none of ours is not looked at.
    pub fn receive(&mut self, now: Time, set: OrderedSet) {
        let OrderedSet::Management { is_first, is_last, channel, sequence, data } = set else {
            return;
        };
        let Some(joiner) = self.joiners.get_mut(usize::from(channel)) else { return };
        match joiner.receive((is_first, is_last, sequence), data) {
            None => {}
            Some(Err(_)) => self.counts.damaged += 1,
            Some(Ok(frame)) => self.receive_frame(now, frame),
        }
    }

    /// All words of a frame have come, unharmed and one after another: the same as [`End::receive`] for each.
    pub fn receive_frame(&mut self, now: Time, frame: Frame) {
        if frame.kind.is_data() {
            self.on_data(frame);
        } else {
            self.on_ack(now, &frame);
        }
    }

    /// The next packet that has come.
    pub fn take(&mut self) -> Option<(Kind, Vec<u8>)> {
        self.delivered.pop_front()
    }

    /// Whether the other end has everything.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.frames.is_empty()
    }

    /// Packets that the other end has not acknowledged.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.frames.len()
    }

    /// What has happened.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Waits from now on, while frames are under way.
    fn restart(&mut self, now: Time) {
        self.deadline = (self.sent > 0 && !self.is_on_wire).then(|| now + self.timeout);
    }

    fn on_data(&mut self, frame: Frame) {
        let Frame { kind, sequence, session, data } = frame;
        let ack = |kind, sequence| Frame { kind, sequence, session, data: Vec::new() };
        let expected = match self.peer {
            Some((known, expected)) if known == session => expected,
            // A session begins with its first frame.
            _ if sequence == 0 => 0,
            _ => {
                self.counts.out_of_order += 1;
                self.due = Some(ack(Kind::Unknown, sequence));
                return;
            }
        };
        if self.delivered.len() == QUEUE {
            // Nobody takes what has come: as if it had not.
            self.counts.refused += 1;
            return;
        }
        let mut next = expected;
        if sequence == expected {
            next = after(expected);
            self.counts.delivered += 1;
            self.delivered.push_back((kind, data));
        } else {
            self.counts.out_of_order += 1;
        }
        self.peer = Some((session, next));
        self.due = Some(ack(Kind::Ack, next));
    }

    fn on_ack(&mut self, now: Time, frame: &Frame) {
        if frame.session != self.session {
            return;
        }
        if frame.kind == Kind::Unknown {
            self.renew();
            return;
        }
        let mut numbers = (0..self.sent_ever).scan(self.first, |sequence, _| {
            *sequence = after(*sequence);
            Some(*sequence)
        });
        let Some(before) = numbers.position(|number| number == frame.sequence) else { return };
        let count = before + 1;
        self.frames.drain(..count);
        self.first = frame.sequence;
        self.sent_ever -= count;
        // After a time-out it may have been sent less often than it has arrived.
        self.sent = self.sent.saturating_sub(count);
        self.timeout = self.timeout_min;
        self.restart(now);
    }

    /// The other end has restarted: what it has not acknowledged is sent in a new session.
    fn renew(&mut self) {
        self.session = self.session.wrapping_add(1);
        (self.first, self.sent, self.sent_ever) = (0, 0, 0);
        self.words = None;
        self.deadline = None;
        self.timeout = self.timeout_min;
        self.counts.sessions += 1;
    }
}
