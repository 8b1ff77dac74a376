//! The chip's end: does what requests ask for.

use super::{Answer, HEADER_BYTES, Item, MESSAGE_BYTES_MAX, MessageError, Outcome, Request};
use crate::memory::{Charge, Memory, OutOfMemory, Purpose};
use crate::registers::Status;
use crate::registers::file::RegisterFile;

/// Bytes that an item takes in an answer if there is no room for more.
const FAILED_BYTES: usize = 2;

/// The end of a session in the firmware. It keeps one request and one answer, and nothing of the registers.
///
/// A request that comes once more, as its answer was lost, is answered with the same bytes, and nothing is done.
#[derive(Debug)]
pub struct Agent {
    /// Room for a largest request and a largest answer.
    _room: Charge,
    last: Option<Last>,
}

#[derive(Debug)]
struct Last {
    sequence: u32,
    /// CRC-32 of the request: another one of the same number is not it.
    checksum: u32,
    answer: Vec<u8>,
}

impl Agent {
    /// An end that has heard nothing. Its memory is taken once, for the largest messages (§4.2).
    ///
    /// # Errors
    /// The memory is not there.
    pub fn new(memory: &Memory) -> Result<Self, OutOfMemory> {
        let room = memory.charge(Purpose::Rpc, 2 * MESSAGE_BYTES_MAX)?;
        Ok(Self { _room: room, last: None })
    }

    /// A session begins: what was answered in another is forgotten.
    pub fn begin(&mut self) {
        self.last = None;
    }

    /// A request has come; the bytes of its answer.
    ///
    /// # Errors
    /// It is none: nothing is done, and nothing is to be answered.
    pub fn receive(
        &mut self,
        file: &mut RegisterFile,
        bytes: &[u8],
    ) -> Result<&[u8], MessageError> {
        let request = Request::decode(bytes)?;
        let (sequence, checksum) = (request.sequence, crc32fast::hash(bytes));
        let is_last = |last: &Last| (last.sequence, last.checksum) == (sequence, checksum);
        if !self.last.as_ref().is_some_and(is_last) {
            let answer = Answer { sequence, outcomes: apply(file, &request.items) }.encode();
            self.last = Some(Last { sequence, checksum, answer });
        }
        Ok(&self.last.as_ref().expect("it was set").answer)
    }
}

/// Does items in order, each whole or not at all; what the answer has no room for is not done.
fn apply(file: &mut RegisterFile, items: &[Item]) -> Vec<Outcome> {
    let mut room = MESSAGE_BYTES_MAX - HEADER_BYTES;
    let mut outcomes = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let left = FAILED_BYTES * (items.len() - at - 1);
        let outcome = one(file, item, room - left).unwrap_or_else(Outcome::Failed);
        room -= outcome.size();
        outcomes.push(outcome);
    }
    outcomes
}

fn one(file: &mut RegisterFile, item: &Item, room: usize) -> Result<Outcome, Status> {
    // Kind and length, or kind and count.
    let fits = |bytes: usize| if bytes + 3 <= room { Ok(()) } else { Err(Status::NoRoom) };
    match item {
        Item::Read { address } => {
            let entry = file.read(*address)?;
            fits(entry.as_bytes().len())?;
            Ok(Outcome::Entry(entry))
        }
        Item::Write { address, entry } => {
            file.write(*address, entry)?;
            Ok(Outcome::Written)
        }
        Item::ReadBlock { address, count } => {
            fits(file.block_bytes(*address, u32::from(*count))?)?;
            Ok(Outcome::Entries(file.read_block(*address, u32::from(*count))?))
        }
        Item::WriteBlock { address, size, bytes } => {
            file.write_block(*address, usize::from(*size), bytes)?;
            Ok(Outcome::Written)
        }
        Item::Digests { address, count } => {
            fits(8 * usize::from(*count))?;
            Ok(Outcome::Digests(file.digests(*address, u32::from(*count))?))
        }
    }
}
