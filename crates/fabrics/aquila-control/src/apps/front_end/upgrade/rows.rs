//! Rows of the base about firmware: what is wanted, its image, and how far each TiN is.
//!
//! **Our choice**: every byte. Numbers are big-endian.
//!
//! | key | value |
//! | --- | --- |
//! | nothing | number 4, header 11, restart 1, at once 1 |
//! | number 4, part 2 | bytes of the image, at most 32 KiB |
//! | TiN 2 | version that runs 2, number 4, stage 1; no row: as chips leave the factory |

use std::collections::BTreeMap;

use crate::flash::{FACTORY, Header, Image};
use crate::nib::{Nib, Table, Write};
use crate::rpc::Restart;

/// Most bytes of an image in a row.
const PART_BYTES: usize = 32 << 10;

/// What is wanted of all TiNs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlanRow {
    /// Which plan: what was done for another one does not count.
    pub number: u32,
    /// The image that is to run.
    pub header: Header,
    /// What restarts for it.
    pub restart: Restart,
    /// Of how many TiNs at once, at least one.
    pub at_once: u8,
}

impl PlanRow {
    /// As a row's value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.number.to_be_bytes().to_vec();
        bytes.extend(self.header.encode());
        bytes.extend([self.restart as u8, self.at_once]);
        bytes
    }

    /// From a row's value.
    #[must_use]
    pub fn decode(value: &[u8]) -> Option<Self> {
        let (&number, rest) = value.split_first_chunk()?;
        let (header, rest) = rest.split_first_chunk()?;
        let &[restart, at_once @ 1..=u8::MAX] = rest else { return None };
        let (number, header) = (u32::from_be_bytes(number), Header::decode(header));
        let restart = Restart::from_number(restart)?;
        header.fits().then_some(Self { number, header, restart, at_once })
    }

    /// The plan of a base.
    #[must_use]
    pub fn of(base: &Nib) -> Option<Self> {
        base.get(Table::Firmware, &[]).and_then(|(_, row)| Self::decode(&row))
    }

    /// All rows of a plan that takes the place of the one in a base: every TiN is to run an image.
    #[must_use]
    pub fn writes(base: &Nib, image: &Image, restart: Restart, at_once: u8) -> Vec<Write> {
        let before = Self::of(base);
        let number = before.map_or(1, |plan| plan.number.wrapping_add(1));
        let mut writes = Vec::new();
        if let Some(before) = before {
            let parts = (before.header.length as usize).div_ceil(PART_BYTES) as u16;
            let key = |part: u16| part_key(before.number, part);
            writes.extend((0..parts).map(|part| Write::delete(Table::Firmware, &key(part))));
        }
        for (part, bytes) in (0..).zip(image.bytes().chunks(PART_BYTES)) {
            writes.push(Write::set(Table::Firmware, &part_key(number, part), bytes));
        }
        let plan = Self { number, header: image.header, restart, at_once: at_once.max(1) };
        writes.push(Write::set(Table::Firmware, &[], &plan.encode()));
        writes
    }
}

fn part_key(number: u32, part: u16) -> Vec<u8> {
    [&number.to_be_bytes()[..], &part.to_be_bytes()].concat()
}

/// The number and the part of such a key.
pub(super) fn split_part(key: &[u8]) -> Option<(u32, u16)> {
    let (&number, part) = key.split_first_chunk()?;
    Some((u32::from_be_bytes(number), u16::from_be_bytes(part.try_into().ok()?)))
}

/// How many parts an image has.
pub(super) fn parts(header: &Header) -> usize {
    (header.length as usize).div_ceil(PART_BYTES)
}

/// Why a TiN does not run what it is to run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
#[repr(u8)]
pub enum Failure {
    /// The image is for chips of another generation.
    #[error("the image is for chips of another generation")]
    Generation = 4,
    /// What came was not what its header says, twice.
    #[error("the image was not what its header says, twice")]
    Damaged = 5,
    /// The flash has no room for it, or takes it again and again for something else.
    #[error("the flash does not take the image")]
    Refused = 6,
    /// The TiN has restarted, twice, and runs what it ran before.
    #[error("it has restarted twice, and runs what it ran before")]
    Old = 7,
    /// It has restarted, and nothing has been heard of it.
    #[error("it has not come back from its restart")]
    Silent = 8,
    /// The image has started and was not confirmed in time, or not before it started again: the one before it runs.
    #[error(
        "the image was not heard of in time after it had started; the one before it runs again"
    )]
    RolledBack = 9,
}

/// How far a TiN is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Stage {
    /// Nothing was done.
    #[default]
    Idle,
    /// The image is being sent.
    Sending,
    /// It restarts.
    Restarting,
    /// It runs what it is to run, and its registers hold what they are to hold.
    Done,
    /// It does not: the plan has ended.
    Failed(Failure),
}

impl Stage {
    /// Why it may have failed: all there is.
    pub(super) const FAILURES: [Failure; 6] = [
        Failure::Generation,
        Failure::Damaged,
        Failure::Refused,
        Failure::Old,
        Failure::Silent,
        Failure::RolledBack,
    ];

    fn number(self) -> u8 {
        match self {
            Self::Idle => 0,
            Self::Sending => 1,
            Self::Restarting => 2,
            Self::Done => 3,
            Self::Failed(failure) => failure as u8,
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Idle),
            1 => Some(Self::Sending),
            2 => Some(Self::Restarting),
            3 => Some(Self::Done),
            _ => Self::FAILURES.into_iter().find(|&f| f as u8 == number).map(Self::Failed),
        }
    }
}

/// A TiN's row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FirmwareRow {
    /// The version that runs, as far as is known.
    pub runs: u16,
    /// The plan that the stage is about.
    pub number: u32,
    /// How far the TiN is with it.
    pub stage: Stage,
}

impl Default for FirmwareRow {
    fn default() -> Self {
        Self { runs: FACTORY, number: 0, stage: Stage::Idle }
    }
}

impl FirmwareRow {
    /// As a row's value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.runs.to_be_bytes().to_vec();
        bytes.extend(self.number.to_be_bytes());
        bytes.push(self.stage.number());
        bytes
    }

    /// From a row's value.
    #[must_use]
    pub fn decode(value: &[u8]) -> Option<Self> {
        let &[a, b, c, d, e, f, stage] = value else { return None };
        let (runs, number) = (u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f]));
        Some(Self { runs, number, stage: Stage::from_number(stage)? })
    }

    /// That of each TiN that has one.
    #[must_use]
    pub fn all(base: &Nib) -> BTreeMap<u16, Self> {
        let changes = base.since(0, &[Table::Firmware]).changes.into_iter();
        let row = |change: crate::nib::Change| {
            let tin = u16::from_be_bytes(change.key.1.try_into().ok()?);
            Some((tin, Self::decode(&change.value?)?))
        };
        changes.filter_map(row).collect()
    }
}

/// How far an upgrade is, as the base has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Progress {
    /// What is wanted.
    pub plan: PlanRow,
    /// TiNs to which the image is being sent.
    pub sending: Vec<u16>,
    /// TiNs that restart.
    pub restarting: Vec<u16>,
    /// TiNs that run it.
    pub done: u16,
    /// TiNs with which it has ended.
    pub failed: Vec<(u16, Failure)>,
}

impl Progress {
    /// Of a base; `None`: there was never an upgrade.
    #[must_use]
    pub fn of(base: &Nib) -> Option<Self> {
        let plan = PlanRow::of(base)?;
        let (mut sending, mut restarting, mut failed, mut done) = (vec![], vec![], vec![], 0);
        for (tin, row) in FirmwareRow::all(base) {
            let stage = if row.number == plan.number { row.stage } else { Stage::Idle };
            match stage {
                Stage::Sending => sending.push(tin),
                Stage::Restarting => restarting.push(tin),
                Stage::Done => done += 1,
                Stage::Failed(why) => failed.push((tin, why)),
                // One that runs it already has nothing to do.
                Stage::Idle => {}
            }
        }
        Some(Self { plan, sending, restarting, done, failed })
    }

    /// Whether nothing happens any more, in a Clique of so many TiNs all of which are reached.
    #[must_use]
    pub fn is_over(&self, tins: u16) -> bool {
        let waits = self.sending.len() + self.restarting.len();
        self.done == tins || !self.failed.is_empty() && waits == 0
    }
}
