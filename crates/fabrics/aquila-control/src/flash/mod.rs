//! The flash of a control processor: two images of firmware, one of which runs.
//!
//! Models: Aquila §4.3, §6 (M602, M609, M617): flash was among the facilities that the firmware's makers wrote themselves,
//! and an upgrade with non-stop forwarding is simple. An image is written block by block as it arrives, beside the one
//! that runs, and is charged nowhere in the processor's memory. It is checked against its header before it may be
//! chosen, and chosen by one record, so that whenever the power goes one whole image is there to start.
//!
//! An image is chosen on trial: the record says so, and for how long. Another record confirms it, once somebody has heard
//! of it. One that is not confirmed in time, or starts on trial more often than [`TRIAL_STARTS`] times, gives way to the
//! one before it, which stays untouched until then ([`Flash::start`]).
//!
//! ```text
//! sector 0, 1      which image runs: sequence 4 | slot 1 | back 1 | trial 2 | CRC-32 of these; the later whole record counts;
//!                  trial: how many seconds, 0: for good; from byte 64 on a mark for each start on trial
//! sector 2         of slot 0: header 11 | zero 1 | CRC-32; from byte 256 on a mark for each block; at 1024: verified
//! sector 3 to 258  its blocks
//! sector 259 ...   slot 1, alike
//! ```
//!
//! As in serial NOR flash a sector of 4 KiB is erased to ones, and bits are cleared when it is programmed. **Our choice**:
//! the layout, [`BLOCK_TIME`] and [`TRIAL_STARTS`].
//!
//! Leaves out: wear, and the code of a boot loader: [`Flash::start`] is what it decides.

mod image;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use kernel::{Span, Time};

pub use image::{Code, FACTORY, Header, IMAGE_BYTES, Image};

use crate::registers::{Status, map};

/// What is erased at once, and an image is sent in. Unit: bytes.
pub const BLOCK_BYTES: u32 = 4_096;
/// Largest image (our choice). Unit: bytes.
pub const IMAGE_BYTES_MAX: u32 = 1 << 20;
/// To erase and program a block: what data sheets of serial NOR flash have as typical, 45 ms and 16 pages of 0.4 ms.
pub const BLOCK_TIME: Span = Span::from_us(50_000);
/// The generation of chips whose registers this controller knows: the version of their description.
pub const GENERATION: u8 = map::VERSION as u8;

/// How often an image on trial starts: a restart of another cause, such as one power cut, is not held against it (our
/// choice).
pub const TRIAL_STARTS: usize = 2;

/// Sectors of a slot: its header and its blocks.
const SLOT_SECTORS: u16 = 1 + (IMAGE_BYTES_MAX / BLOCK_BYTES) as u16;
const MARKS_AT: usize = 256;
const VERIFIED_AT: usize = 1_024;
const RECORD_BYTES: usize = 12;
/// Of the marks of starts on trial, behind a record.
const STARTS_AT: usize = 64;

type Sector = [u8; BLOCK_BYTES as usize];

/// Erased.
const ONES: Sector = [0xFF; BLOCK_BYTES as usize];

/// What the flash holds beside the image that runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Staged {
    /// The image; `None`: there is none, or its header was cut off.
    pub header: Option<Header>,
    /// Blocks of it that are there, from the first on.
    pub blocks: u32,
    /// Whether it was found to be what its header says.
    pub is_verified: bool,
}

/// How the image that was chosen stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Trial {
    /// It was confirmed, or chosen for good.
    #[default]
    Kept = 0,
    /// It starts next, on trial.
    Due = 1,
    /// It has started on trial.
    Runs = 2,
    /// It ran before the other one, which was on trial and has given way to it again.
    Back = 3,
}

impl Trial {
    /// All of them, by number.
    pub const ALL: [Self; 4] = [Self::Kept, Self::Due, Self::Runs, Self::Back];
}

/// What a record says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Record {
    sequence: u32,
    /// Of the image that was chosen.
    slot: u16,
    /// The other one was on trial, and has given way.
    is_back: bool,
    /// For how long it is on trial; 0: it is not. Unit: s.
    trial: u16,
}

/// A flash.
#[derive(Clone)]
pub struct Flash {
    /// Sectors that are not erased; chips share those that they left the factory with.
    sectors: BTreeMap<u16, Arc<Sector>>,
    /// How long a block takes.
    block_time: Span,
    /// The block that is being programmed, and until when.
    busy: Option<(Time, u32)>,
    /// Sectors that have changed since this was asked last.
    changed: BTreeSet<u16>,
    /// In tests: what can be programmed before the power goes. Unit: bytes.
    #[cfg(test)]
    power: Option<usize>,
}

impl std::fmt::Debug for Flash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Flash");
        debug.field("running", &self.running()).field("staged", &self.staged());
        debug.finish_non_exhaustive()
    }
}

impl Default for Flash {
    fn default() -> Self {
        Self::new(GENERATION)
    }
}

impl Flash {
    /// As it leaves the factory, on a chip of a generation.
    #[must_use]
    pub fn new(generation: u8) -> Self {
        static OURS: OnceLock<Flash> = OnceLock::new();
        let new = || Self::holding(&Image::new(FACTORY, generation));
        if generation == GENERATION { OURS.get_or_init(new).clone() } else { new() }
    }

    /// One that holds an image, which runs.
    #[must_use]
    pub fn holding(image: &Image) -> Self {
        let mut flash = Self::erased();
        flash.write_header(0, &image.header);
        for block in 0..image.header.blocks() {
            flash.program(sector(0, block), 0, image.block(block));
            flash.program(slot(0), MARKS_AT + block as usize, &[0]);
        }
        flash.program(slot(0), VERIFIED_AT, &[0]);
        flash.select(Record::default());
        flash.changed.clear();
        flash
    }

    fn erased() -> Self {
        Self {
            sectors: BTreeMap::new(),
            block_time: BLOCK_TIME,
            busy: None,
            changed: BTreeSet::new(),
            #[cfg(test)]
            power: None,
        }
    }

    /// One that holds these sectors, as [`Flash::changed`] has said them; all others are erased.
    #[must_use]
    pub fn from_sectors(sectors: impl IntoIterator<Item = (u16, Sector)>) -> Self {
        let sectors = sectors.into_iter().filter(|(number, _)| *number < 2 + 2 * SLOT_SECTORS);
        let sectors = sectors.map(|(number, bytes)| (number, Arc::new(bytes))).collect();
        Self { sectors, ..Self::erased() }
    }

    /// The same, with another time for a block.
    #[must_use]
    pub fn taking(self, block_time: Span) -> Self {
        Self { block_time, ..self }
    }

    /// Sectors that have changed since this was asked last, as they are now.
    pub fn changed(&mut self) -> Vec<(u16, Sector)> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().map(|number| (number, *self.sector(number))).collect()
    }

    /// All sectors that are not erased.
    pub fn sectors(&self) -> impl Iterator<Item = (u16, &Sector)> {
        self.sectors.iter().map(|(&number, sector)| (number, &**sector))
    }

    /// What the boot loader starts on a chip of a generation: the image that was chosen, or the other one if that is not
    /// whole, or has had its trial and was not confirmed; `None`: neither is whole.
    pub fn start(&mut self, generation: u8) -> Option<Header> {
        let record = self.record();
        let is_tried = record.trial > 0;
        let is_over = is_tried && self.starts() >= TRIAL_STARTS;
        let (chosen, other) = (record.slot, 1 - record.slot);
        let is_whole = |&slot: &u16| {
            let header = self.header(slot);
            header.is_some_and(|header| {
                header.generation == generation && self.checksum(slot, &header) == header.checksum
            })
        };
        let order = if is_over { [other, chosen] } else { [chosen, other] };
        let slot = order.into_iter().find(is_whole)?;
        if slot != chosen {
            self.select(Record { slot, is_back: is_tried, ..Record::default() });
        } else if is_over {
            // There is nothing to go back to.
            self.select(Record { slot, ..Record::default() });
        } else if is_tried {
            self.mark_start();
        }
        self.header(slot)
    }

    /// How the image that was chosen stands.
    #[must_use]
    pub fn trial(&self) -> Trial {
        match self.record() {
            Record { is_back: true, .. } => Trial::Back,
            Record { trial: 0, .. } => Trial::Kept,
            _ if self.starts() == 0 => Trial::Due,
            _ => Trial::Runs,
        }
    }

    /// How often an image was chosen, confirmed or gone back to.
    #[must_use]
    pub fn records(&self) -> u32 {
        self.record().sequence
    }

    /// How long the image that runs has to be confirmed, if it is on trial.
    #[must_use]
    pub fn trial_time(&self) -> Option<Span> {
        let seconds = u64::from(self.record().trial);
        (self.trial() == Trial::Runs).then(|| Span::from_us(seconds * 1_000_000))
    }

    /// Whether the image that was chosen is one that never connects ([`Code::Silent`]).
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.sector(sector(self.chosen(), 0)).starts_with(&Image::SILENT)
    }

    /// The image that was chosen to run.
    #[must_use]
    pub fn running(&self) -> Option<Header> {
        self.header(self.chosen())
    }

    /// What stands beside it.
    #[must_use]
    pub fn staged(&self) -> Staged {
        let at = 1 - self.chosen();
        let Some(header) = self.header(at) else { return Staged::default() };
        let marks = &self.sector(slot(at))[MARKS_AT..][..header.blocks() as usize];
        let blocks = marks.iter().take_while(|&&mark| mark == 0).count() as u32;
        let is_verified = self.sector(slot(at))[VERIFIED_AT] == 0;
        Staged { header: Some(header), blocks, is_verified }
    }

    /// Begins an image beside the one that runs; what stood there is gone.
    ///
    /// # Errors
    /// It is for chips of another generation, there is no room for it, a block is being programmed, or the one that runs is
    /// on trial: what ran before it has to stay.
    pub fn stage(&mut self, now: Time, generation: u8, header: &Header) -> Result<(), Status> {
        if header.generation != generation {
            return Err(Status::Generation);
        }
        if !header.fits() {
            return Err(Status::OutOfRange);
        }
        self.is_not_tried()?;
        self.wait(now)?;
        self.write_header(1 - self.chosen(), header);
        Ok(())
    }

    /// Begins to program a block of it: the first that is not there yet.
    ///
    /// # Errors
    /// It is another block, or not as long as that one is; or a block is being programmed.
    pub fn store(&mut self, now: Time, offset: u32, bytes: &[u8]) -> Result<(), Status> {
        self.wait(now)?;
        let Staged { header: Some(header), blocks, .. } = self.staged() else {
            return Err(Status::NotNext);
        };
        let length = BLOCK_BYTES.min(header.length.saturating_sub(offset));
        if blocks == header.blocks() || offset != blocks * BLOCK_BYTES {
            return Err(Status::NotNext);
        }
        if bytes.len() != length as usize {
            return Err(Status::Width);
        }
        let at = sector(1 - self.chosen(), blocks);
        self.erase(at);
        self.program(at, 0, bytes);
        self.busy = Some((now + self.block_time, blocks));
        Ok(())
    }

    /// Looks whether the image is what its header says. One that is not is given up.
    ///
    /// # Errors
    /// It is not, it has not come whole, a block is being programmed, or the one that runs is on trial.
    pub fn verify(&mut self, now: Time) -> Result<(), Status> {
        self.is_not_tried()?;
        self.wait(now)?;
        let at = 1 - self.chosen();
        let Staged { header: Some(header), blocks, .. } = self.staged() else {
            return Err(Status::NotNext);
        };
        if blocks != header.blocks() {
            return Err(Status::NotNext);
        }
        if self.checksum(at, &header) != header.checksum {
            self.erase(slot(at));
            return Err(Status::Damaged);
        }
        self.program(slot(at), VERIFIED_AT, &[0]);
        Ok(())
    }

    /// Chooses the image: it is what starts next, on trial for so many seconds; 0: for good.
    ///
    /// # Errors
    /// It is another one, or was not verified; or one is on trial already.
    pub fn activate(&mut self, now: Time, version: u16, trial: u16) -> Result<(), Status> {
        self.is_not_tried()?;
        self.wait(now)?;
        match self.staged() {
            Staged { header: Some(header), is_verified: true, .. } if header.version == version => {
                self.select(Record { slot: 1 - self.chosen(), trial, ..Record::default() });
                Ok(())
            }
            _ => Err(Status::NotNext),
        }
    }

    /// The image that runs is kept: its trial is over. One that is kept already stays so.
    ///
    /// # Errors
    /// It is another one, or has not started yet.
    pub fn confirm(&mut self, version: u16) -> Result<(), Status> {
        let is_it = self.running().is_some_and(|header| header.version == version);
        match self.trial() {
            Trial::Kept | Trial::Back if is_it => Ok(()),
            Trial::Runs if is_it => {
                self.select(Record { slot: self.chosen(), ..Record::default() });
                Ok(())
            }
            _ => Err(Status::NotNext),
        }
    }

    /// The time of a trial is over: the image that ran before starts next.
    pub fn expire(&mut self) {
        if self.trial() == Trial::Runs {
            self.program(self.record_sector(), STARTS_AT, &[0; TRIAL_STARTS]);
        }
    }

    /// An error, if an image is on trial.
    fn is_not_tried(&self) -> Result<(), Status> {
        if self.record().trial > 0 { Err(Status::OnTrial) } else { Ok(()) }
    }

    /// Starts on trial of the image that was chosen.
    fn starts(&self) -> usize {
        let marks = &self.sector(self.record_sector())[STARTS_AT..][..TRIAL_STARTS];
        marks.iter().filter(|&&mark| mark != 0xFF).count()
    }

    fn mark_start(&mut self) {
        self.program(self.record_sector(), STARTS_AT + self.starts(), &[0]);
    }

    /// The power goes: a block that is being programmed is neither what it was nor what it was to be.
    pub fn cut(&mut self, now: Time) {
        if self.wait(now).is_err()
            && let Some((_, block)) = self.busy.take()
        {
            let half = BLOCK_BYTES as usize / 2;
            self.program(sector(1 - self.chosen(), block), half, &[0; BLOCK_BYTES as usize / 2]);
        }
    }

    /// What has been programmed by now is marked.
    fn wait(&mut self, now: Time) -> Result<(), Status> {
        match self.busy {
            Some((until, _)) if now < until => Err(Status::Busy),
            Some((_, block)) => {
                self.busy = None;
                self.program(slot(1 - self.chosen()), MARKS_AT + block as usize, &[0]);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn sector(&self, number: u16) -> &Sector {
        self.sectors.get(&number).map_or(&ONES, |sector| sector)
    }

    /// Which slot is to run.
    fn chosen(&self) -> u16 {
        self.record().slot
    }

    /// The record that counts: the later one that is whole. An empty flash is taken for one whose first slot was chosen.
    fn record(&self) -> Record {
        let record = |number| {
            let bytes = &self.sector(number)[..RECORD_BYTES];
            let (&body, &sum) = (bytes.first_chunk::<8>()?, bytes.last_chunk::<4>()?);
            let [a, b, c, d, slot @ 0..=1, back @ 0..=1, e, f] = body else { return None };
            let (sequence, trial) = (u32::from_be_bytes([a, b, c, d]), u16::from_be_bytes([e, f]));
            let is_whole = crc32fast::hash(&body) == u32::from_be_bytes(sum);
            is_whole.then(|| Record { sequence, slot: slot.into(), is_back: back == 1, trial })
        };
        let whole = [record(0), record(1)].into_iter().flatten();
        whole.max_by_key(|record| record.sequence).unwrap_or_default()
    }

    /// The sector of the record that counts.
    fn record_sector(&self) -> u16 {
        (self.record().sequence % 2) as u16
    }

    /// Writes a record behind the one that counts, which stays until this one is whole. Its number follows from that one.
    fn select(&mut self, record: Record) {
        let sequence = self.record().sequence + 1;
        let mut bytes = [0; RECORD_BYTES];
        bytes[..4].copy_from_slice(&sequence.to_be_bytes());
        bytes[4..6].copy_from_slice(&[record.slot as u8, u8::from(record.is_back)]);
        bytes[6..8].copy_from_slice(&record.trial.to_be_bytes());
        let sum = crc32fast::hash(&bytes[..8]);
        bytes[8..].copy_from_slice(&sum.to_be_bytes());
        let number = (sequence % 2) as u16;
        self.erase(number);
        self.program(number, 0, &bytes);
    }

    fn header(&self, at: u16) -> Option<Header> {
        let (&bytes, rest) = self.sector(slot(at)).split_first_chunk::<{ Header::BYTES }>()?;
        let (&[0, a, b, c, d], _) = rest.split_first_chunk::<5>()? else { return None };
        let is_whole = crc32fast::hash(&bytes) == u32::from_be_bytes([a, b, c, d]);
        let header = Header::decode(&bytes);
        (is_whole && header.fits()).then_some(header)
    }

    fn write_header(&mut self, at: u16, header: &Header) {
        let header = header.encode();
        let sum = crc32fast::hash(&header).to_be_bytes();
        self.erase(slot(at));
        self.program(slot(at), 0, &[&header[..], &[0], &sum].concat());
    }

    fn checksum(&self, at: u16, header: &Header) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        for block in 0..header.blocks() {
            let length = BLOCK_BYTES.min(header.length - block * BLOCK_BYTES) as usize;
            hasher.update(&self.sector(sector(at, block))[..length]);
        }
        hasher.finalize()
    }

    fn erase(&mut self, number: u16) {
        if self.has_power(1) == 1 && self.sectors.remove(&number).is_some() {
            self.changed.insert(number);
        }
    }

    /// Clears the bits that these bytes have cleared.
    fn program(&mut self, number: u16, at: usize, bytes: &[u8]) {
        let count = self.has_power(bytes.len());
        if count == 0 {
            return;
        }
        let sector = Arc::make_mut(self.sectors.entry(number).or_insert_with(|| Arc::new(ONES)));
        for (place, byte) in sector[at..].iter_mut().zip(&bytes[..count]) {
            *place &= byte;
        }
        self.changed.insert(number);
    }

    /// How many of so many bytes can still be programmed.
    #[cfg(not(test))]
    fn has_power(&mut self, bytes: usize) -> usize {
        bytes
    }

    #[cfg(test)]
    fn has_power(&mut self, bytes: usize) -> usize {
        let Some(power) = &mut self.power else { return bytes };
        let count = bytes.min(*power);
        *power -= count;
        count
    }
}

/// The sector with a slot's header.
const fn slot(slot: u16) -> u16 {
    2 + slot * SLOT_SECTORS
}

/// That of one of its blocks.
const fn sector(at: u16, block: u32) -> u16 {
    slot(at) + 1 + block as u16
}
