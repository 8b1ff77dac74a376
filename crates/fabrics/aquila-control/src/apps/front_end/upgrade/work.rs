//! One TiN's part of an upgrade: what is asked of its flash next.

use kernel::{Span, Time};

use super::rows::Failure;
use crate::apps::front_end::bucket::Bucket;
use crate::flash::{BLOCK_BYTES, Image, Staged, Trial};
use crate::registers::Status;
use crate::rpc::{Item, Outcome, Restart};

/// After so long what the flash was too busy for is asked again, and whether a restart may be (our choice).
const AGAIN: Span = Span::from_us(20_000);
/// How often an image may be damaged, and a TiN come back with what it ran before (our choice).
const TRIES: u8 = 2;
/// How often the flash may say that it holds something else than was thought (our choice).
const SURPRISES: u8 = 8;

/// What is asked next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// What the flash holds.
    Look,
    /// To begin the image.
    Stage,
    /// To take a block.
    Store(u32),
    /// To look whether it is whole.
    Verify,
    /// To choose it, and restart.
    Activate,
    /// Nothing: it restarts.
    Restarted,
    /// To keep this version, which it runs on trial.
    Confirm(u16),
    /// Nothing: it runs the image, which is kept.
    Confirmed,
}

/// What has become of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// It goes on.
    Nothing,
    /// It restarts.
    Restarts,
    /// It has come to an end.
    Failed(Failure),
}

/// The upgrade of one TiN.
#[derive(Debug)]
pub struct Work {
    step: Step,
    bucket: Bucket,
    /// Nothing is asked before.
    not_before: Time,
    /// When it was asked to choose the image, if it may have done so.
    asked: Option<Time>,
    /// What the flash last said of its records, and how many there were when it was last to choose the image: if the one
    /// before it was gone back to since, it has had its trial.
    records: u32,
    tried: Option<u32>,
    damaged: u8,
    /// It has said that it runs what it ran before, and its flash has not been looked at since.
    runs_old: bool,
    old: u8,
    surprises: u8,
}

impl Work {
    /// One that begins, at so many bytes a second; it goes on where the flash is.
    pub fn new(now: Time, rate: u64) -> Self {
        Self {
            step: Step::Look,
            bucket: Bucket::holding(rate, BLOCK_BYTES, now),
            not_before: now,
            asked: None,
            records: 0,
            tried: None,
            damaged: 0,
            runs_old: false,
            old: 0,
            surprises: 0,
        }
    }

    /// One that restarts.
    pub fn restarted(now: Time, rate: u64) -> Self {
        Self { step: Step::Restarted, tried: Some(0), ..Self::new(now, rate) }
    }

    /// What is to be asked now; `Err`: nothing before then. `trial`: how long the image has to be confirmed, in seconds;
    /// `may_restart`: nothing speaks against it.
    pub fn next(
        &mut self,
        now: Time,
        image: &Image,
        (restart, trial): (Restart, u16),
        may_restart: bool,
    ) -> Result<Item, Time> {
        if now < self.not_before {
            return Err(self.not_before);
        }
        Ok(match self.step {
            Step::Look => Item::Flash,
            Step::Stage => Item::Stage(image.header),
            Step::Store(block) => {
                let bytes = image.block(block);
                self.bucket.take(now, bytes.len())?;
                Item::Store { offset: block * BLOCK_BYTES, bytes: bytes.to_vec() }
            }
            Step::Verify => Item::Verify,
            Step::Activate if !may_restart => return Err(now + AGAIN),
            Step::Activate => {
                (self.asked, self.tried) = (Some(now), Some(self.records));
                Item::Activate { version: image.header.version, restart, trial }
            }
            Step::Confirm(version) => Item::Confirm { version },
            Step::Restarted | Step::Confirmed => return Err(Time::NEVER),
        })
    }

    /// What the flash has answered of a TiN that runs a version.
    pub fn answered(&mut self, now: Time, image: &Image, runs: u16, outcome: &Outcome) -> News {
        let blocks = image.header.blocks();
        self.asked = None;
        match (self.step, outcome) {
            (Step::Look, Outcome::Flash { running, staged, trial, records }) => {
                self.records = *records;
                return self.looked(now, image, runs, (*running, staged, *trial));
            }
            (Step::Stage, Outcome::Written) => self.step = Step::Store(0),
            (Step::Store(block), Outcome::Written) if block + 1 == blocks => {
                self.step = Step::Verify;
            }
            (Step::Store(block), Outcome::Written) => self.step = Step::Store(block + 1),
            (Step::Verify, Outcome::Written) => self.step = Step::Activate,
            (Step::Activate, Outcome::Written) => {
                self.step = Step::Restarted;
                return News::Restarts;
            }
            (Step::Confirm(version), Outcome::Written) => {
                let is_its = version == image.header.version;
                self.step = if is_its { Step::Confirmed } else { Step::Look };
            }
            (_, Outcome::Failed(Status::Busy)) => self.not_before = now + AGAIN,
            (_, Outcome::Failed(Status::Generation)) => return News::Failed(Failure::Generation),
            (Step::Verify, Outcome::Failed(Status::Damaged)) => {
                self.damaged += 1;
                self.step = Step::Stage;
                if self.damaged == TRIES {
                    return News::Failed(Failure::Damaged);
                }
            }
            _ => {
                self.surprises += 1;
                self.step = Step::Look;
                if self.surprises == SURPRISES {
                    return News::Failed(Failure::Refused);
                }
            }
        }
        News::Nothing
    }

    /// What the flash holds is known: the version that was chosen, what stands beside it, and how it stands.
    fn looked(
        &mut self,
        now: Time,
        image: &Image,
        runs: u16,
        (chosen, staged, trial): (u16, &Staged, Trial),
    ) -> News {
        let runs_old = std::mem::take(&mut self.runs_old);
        let is_its = chosen == image.header.version;
        let is_staged = staged.header == Some(image.header);
        self.step = match trial {
            Trial::Runs => Step::Confirm(chosen),
            // Another one was chosen, and its restart is due.
            Trial::Due if !is_its => {
                self.not_before = now + AGAIN;
                Step::Look
            }
            Trial::Kept | Trial::Back if is_its && runs == chosen => Step::Confirmed,
            // It was chosen, and its restart is due.
            _ if is_its => Step::Restarted,
            Trial::Back if is_staged && self.tried.is_some_and(|before| self.records > before) => {
                return News::Failed(Failure::RolledBack);
            }
            _ if is_staged && staged.is_verified => Step::Activate,
            _ if is_staged && staged.blocks >= image.header.blocks() => Step::Verify,
            _ if is_staged => Step::Store(staged.blocks),
            _ => Step::Stage,
        };
        let is_well = matches!(self.step, Step::Confirm(_) | Step::Confirmed);
        // A session before a restart that is still due says nothing of that.
        if runs_old && trial != Trial::Due && !is_well {
            self.old += 1;
            if self.old == TRIES {
                return News::Failed(Failure::Old);
            }
        }
        if self.step != Step::Restarted {
            return News::Nothing;
        }
        self.tried = self.tried.or(Some(self.records));
        News::Restarts
    }

    /// Whether the image is to be sent, or chosen.
    pub fn is_sending(&self) -> bool {
        matches!(self.step, Step::Stage | Step::Store(_) | Step::Verify | Step::Activate)
    }

    /// Whether it runs the image, and keeps it.
    pub fn is_confirmed(&self) -> bool {
        self.step == Step::Confirmed
    }

    /// Whether it has to be told to keep what it runs, which comes before everything else.
    pub fn is_on_trial(&self) -> bool {
        matches!(self.step, Step::Confirm(_))
    }

    /// It has come back and runs what it is to run: on trial, unless that was heard of.
    pub fn is_new(&mut self, now: Time, version: u16) {
        if self.step != Step::Confirmed {
            (self.step, self.not_before) = (Step::Confirm(version), now);
        }
    }

    /// When it was asked to choose the image, if it may have done so and restarts.
    pub fn asked(&self) -> Option<Time> {
        self.asked
    }

    /// Its session is another one: what was asked may have been done, or not.
    pub fn again(&mut self, now: Time) {
        if self.step != Step::Restarted {
            (self.step, self.not_before) = (Step::Look, now);
        }
    }

    /// It has a session and runs what it ran before: the restart is still due, was another one, or was not the last. Its
    /// flash tells.
    pub fn is_old(&mut self, now: Time) {
        (self.step, self.not_before, self.runs_old) = (Step::Look, now, true);
    }
}
