//! The chip's end: does what requests ask for.

use kernel::Time;

use super::{
    Answer, HEADER_BYTES, Item, MESSAGE_BYTES_MAX, MessageError, Outcome, Request, Restart,
};
use crate::flash::Flash;
use crate::memory::{Charge, Memory, OutOfMemory, Purpose};
use crate::registers::Status;
use crate::registers::file::RegisterFile;
use crate::registers::map::ID_DESCRIPTION;

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
    /// Another image has been chosen to run: what is to restart.
    restart: Option<Restart>,
    /// Images for chips of another generation that were refused.
    other_generations: u64,
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
        Ok(Self { _room: room, last: None, restart: None, other_generations: 0 })
    }

    /// A session begins: what was answered in another is forgotten.
    pub fn begin(&mut self) {
        self.last = None;
    }

    /// What is to restart, if another image has been chosen since this was asked last: once the answer has gone.
    pub fn take_restart(&mut self) -> Option<Restart> {
        self.restart.take()
    }

    /// Images for chips of another generation that were refused.
    #[must_use]
    pub fn other_generations(&self) -> u64 {
        self.other_generations
    }

    /// A request has come; the bytes of its answer.
    ///
    /// # Errors
    /// It is none: nothing is done, and nothing is to be answered.
    pub fn receive(
        &mut self,
        now: Time,
        file: &mut RegisterFile,
        flash: &mut Flash,
        bytes: &[u8],
    ) -> Result<&[u8], MessageError> {
        let request = Request::decode(bytes)?;
        let (sequence, checksum) = (request.sequence, crc32fast::hash(bytes));
        let is_last = |last: &Last| (last.sequence, last.checksum) == (sequence, checksum);
        if !self.last.as_ref().is_some_and(is_last) {
            let outcomes = self.apply(now, file, flash, &request.items);
            let answer = Answer { sequence, outcomes }.encode();
            self.last = Some(Last { sequence, checksum, answer });
        }
        Ok(&self.last.as_ref().expect("it was set").answer)
    }

    /// Does items in order, each whole or not at all; what the answer has no room for is not done.
    fn apply(
        &mut self,
        now: Time,
        file: &mut RegisterFile,
        flash: &mut Flash,
        items: &[Item],
    ) -> Vec<Outcome> {
        let mut room = MESSAGE_BYTES_MAX - HEADER_BYTES;
        let mut outcomes = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let left = room - FAILED_BYTES * (items.len() - at - 1);
            let outcome = of_registers(file, item, left)
                .or_else(|| self.of_flash(now, file, flash, item, left));
            let outcome = outcome.expect("it is one of both").unwrap_or_else(Outcome::Failed);
            room -= outcome.size();
            outcomes.push(outcome);
        }
        outcomes
    }

    /// Does an item about images; `None`: it is none.
    fn of_flash(
        &mut self,
        now: Time,
        file: &RegisterFile,
        flash: &mut Flash,
        item: &Item,
        room: usize,
    ) -> Option<Result<Outcome, Status>> {
        let generation = file.get(ID_DESCRIPTION, []) as u8;
        let done = match item {
            Item::Flash => {
                let running = flash.running().map_or(0, |header| header.version);
                let (staged, trial, records) = (flash.staged(), flash.trial(), flash.records());
                let outcome = Outcome::Flash { running, staged, trial, records };
                return Some(if outcome.size() <= room {
                    Ok(outcome)
                } else {
                    Err(Status::NoRoom)
                });
            }
            Item::Stage(header) => flash.stage(now, generation, header),
            Item::Store { offset, bytes } => flash.store(now, *offset, bytes),
            Item::Verify => flash.verify(now),
            Item::Activate { version, restart, trial } => {
                flash.activate(now, *version, *trial).inspect(|()| self.restart = Some(*restart))
            }
            Item::Confirm { version } => flash.confirm(*version),
            _ => return None,
        };
        self.other_generations += u64::from(done == Err(Status::Generation));
        Some(done.map(|()| Outcome::Written))
    }
}

/// Does an item about registers; `None`: it is none.
fn of_registers(
    file: &mut RegisterFile,
    item: &Item,
    room: usize,
) -> Option<Result<Outcome, Status>> {
    // Kind and length, or kind and count.
    let fits = |bytes: usize| if bytes + 3 <= room { Ok(()) } else { Err(Status::NoRoom) };
    Some(match item {
        Item::Read { address } => file
            .read(*address)
            .and_then(|entry| fits(entry.as_bytes().len()).map(|()| Outcome::Entry(entry))),
        Item::Write { address, entry } => file.write(*address, entry).map(|()| Outcome::Written),
        Item::ReadBlock { address, count } => file
            .block_bytes(*address, u32::from(*count))
            .and_then(fits)
            .and_then(|()| file.read_block(*address, u32::from(*count)))
            .map(Outcome::Entries),
        Item::WriteBlock { address, size, bytes } => {
            file.write_block(*address, usize::from(*size), bytes).map(|()| Outcome::Written)
        }
        Item::Digests { address, count } => fits(8 * usize::from(*count))
            .and_then(|()| file.digests(*address, u32::from(*count)))
            .map(Outcome::Digests),
        _ => return None,
    })
}
