//! The firmware's end of requests: in pieces, one at a time, and how long they take.

use kernel::{Span, Time};

use crate::memory::{Charge, Memory, OutOfMemory, Purpose};
use crate::rpc::{Agent, Item, MESSAGE_BYTES_MAX, Request, Restart};
use crate::session::{PIECE_BYTES, Pieces};

use super::chip::Chip;

/// How the controller is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Over TCP.
    Tcp,
    /// By PMOS, through the neighbour at a port.
    Pmos(u8),
}

/// A request that is being done, and an answer that is being said.
#[derive(Debug)]
pub struct Requests {
    /// An answer, while it is said; the agent has room for the rest.
    _room: Charge,
    agent: Agent,
    pieces: Pieces,
    /// Whom it is for.
    pub source: Option<Source>,
    /// A request, and when it will have been done.
    doing: Option<(Time, Vec<u8>)>,
    answer: Vec<u8>,
    said: usize,
    entry_time: Span,
    /// Requests that were none, or pieces of none.
    pub malformed: u64,
}

impl Requests {
    /// An end without a session. `entry_time`: how long an entry takes that is read or written.
    ///
    /// # Errors
    /// The memory is not there.
    pub fn new(memory: &Memory, entry_time: Span) -> Result<Self, OutOfMemory> {
        Ok(Self {
            _room: memory.charge(Purpose::Rpc, MESSAGE_BYTES_MAX)?,
            agent: Agent::new(memory)?,
            pieces: Pieces::default(),
            source: None,
            doing: None,
            answer: Vec::new(),
            said: 0,
            entry_time,
            malformed: 0,
        })
    }

    /// A session begins, or the last has ended: what was under way is forgotten.
    pub fn begin(&mut self, source: Option<Source>) {
        self.agent.begin();
        self.pieces.clear();
        (self.source, self.doing, self.said) = (source, None, 0);
        self.answer.clear();
    }

    /// A piece has come; what does not come from where the session is does not count.
    pub fn add(&mut self, source: Source, piece: &[u8]) {
        if self.source != Some(source) || self.pieces.add(piece).is_err() {
            self.malformed += 1;
        }
    }

    /// Begins what has come whole, and ends what has been done.
    pub fn run(&mut self, now: Time, chip: &mut Chip) {
        if self.doing.is_none()
            && self.said == self.answer.len()
            && let Some(bytes) = self.pieces.take()
        {
            let entries = Request::decode(&bytes).map_or(0, |request| entries(&request));
            self.doing = Some((now + self.entry_time * entries, bytes));
        }
        let Some((_, bytes)) = self.doing.take_if(|(done, _)| *done <= now) else { return };
        let Chip { registers, flash, .. } = chip;
        match self.agent.receive(now, registers, flash, &bytes) {
            Ok(answer) => (self.answer, self.said) = (answer.to_vec(), 0),
            Err(_) => self.malformed += 1,
        }
    }

    /// Says as much of the answer as `say` takes, piece by piece.
    pub fn answer(&mut self, mut say: impl FnMut(Source, &[u8]) -> bool) {
        let Some(source) = self.source else { return };
        while self.said < self.answer.len() {
            let end = self.answer.len().min(self.said + PIECE_BYTES);
            if !say(source, &self.answer[self.said..end]) {
                return;
            }
            self.said = end;
        }
    }

    /// What is to restart, if another image has been chosen and all has been said.
    pub fn take_restart(&mut self) -> Option<Restart> {
        if self.said < self.answer.len() {
            return None;
        }
        self.agent.take_restart()
    }

    /// Images for chips of another generation that were refused.
    pub fn other_generations(&self) -> u64 {
        self.agent.other_generations()
    }

    /// When [`Requests::run`] is to be called.
    pub fn deadline(&self) -> Option<Time> {
        self.doing.as_ref().map(|&(done, _)| done)
    }
}

/// Entries that a request reads or writes.
fn entries(request: &Request) -> u64 {
    let of = |item: &Item| match item {
        Item::Read { .. } | Item::Write { .. } => 1,
        Item::ReadBlock { count, .. } => u64::from(*count),
        Item::WriteBlock { size, bytes, .. } => bytes.len() as u64 / u64::from((*size).max(1)),
        // The chip works out digests by itself.
        Item::Digests { count, .. } => u64::from(*count),
        // The flash has its own time.
        _ => 0,
    };
    request.items.iter().map(of).sum()
}
