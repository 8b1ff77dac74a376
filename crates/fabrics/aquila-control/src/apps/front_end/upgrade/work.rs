//! One TiN's part of an upgrade: what is asked of its flash next.

use kernel::{Span, Time};

use super::rows::Failure;
use crate::apps::front_end::bucket::Bucket;
use crate::flash::{BLOCK_BYTES, Image, Staged};
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
    damaged: u8,
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
            damaged: 0,
            old: 0,
            surprises: 0,
        }
    }

    /// One that restarts.
    pub fn restarted(now: Time, rate: u64) -> Self {
        Self { step: Step::Restarted, ..Self::new(now, rate) }
    }

    /// What is to be asked now; `Err`: nothing before then. `may_restart`: nothing speaks against it.
    pub fn next(
        &mut self,
        now: Time,
        image: &Image,
        restart: Restart,
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
                self.asked = Some(now);
                Item::Activate { version: image.header.version, restart }
            }
            Step::Restarted => return Err(Time::NEVER),
        })
    }

    /// What the flash has answered.
    pub fn answered(&mut self, now: Time, image: &Image, outcome: &Outcome) -> News {
        let blocks = image.header.blocks();
        self.asked = None;
        match (self.step, outcome) {
            (Step::Look, Outcome::Flash { running, staged }) => {
                self.step = after(image, *running, staged);
                if self.step == Step::Restarted {
                    return News::Restarts;
                }
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

    /// It has come back and runs what it ran before: the restart was another one, or came too early.
    pub fn is_old(&mut self, now: Time) -> News {
        self.old += 1;
        if self.old == TRIES {
            return News::Failed(Failure::Old);
        }
        (self.step, self.not_before) = (Step::Look, now);
        News::Nothing
    }
}

/// What is next of an image, by what the flash holds.
fn after(image: &Image, running: u16, staged: &Staged) -> Step {
    let blocks = image.header.blocks();
    match staged {
        // It was chosen, and its restart is due.
        _ if running == image.header.version => Step::Restarted,
        Staged { header: Some(header), is_verified: true, .. } if *header == image.header => {
            Step::Activate
        }
        Staged { header: Some(header), blocks: found, .. } if *header == image.header => {
            if *found >= blocks { Step::Verify } else { Step::Store(*found) }
        }
        _ => Step::Stage,
    }
}
