//! Another version of the firmware for all TiNs, a few at a time.
//!
//! Models: Aquila §4.3, §6 (M609, M617): whoever leads sends the image to TiNs that are ready, over the session that they
//! have, as requests between those about registers, which come first; has it verified and chosen; and the processor restarts
//! while the chip goes on. When the TiN is back its registers are compared with what is wanted, as after any loss of a
//! session, and nothing has to be written (I76).
//!
//! An image runs on trial until this has heard of it: the first request of the first session in which a TiN says that it
//! runs another version confirms it, also by PMOS, and also if another plan has followed. An image that never gets a
//! session gives way to the one before it; when that one is back the TiN has failed ([`Failure::RolledBack`]).
//!
//! What is wanted, the image, and how far each TiN is are rows of the base, so another instance that takes over goes on; and
//! what a flash holds of an image already is not sent again.
//!
//! **Our choice**: how many at once; that of neighbours one restarts at a time, and none beside a TiN that is being
//! programmed by PMOS, as that may be through it; with the chip (M611) one TiN of the Clique at a time; that it ends with
//! the first TiN that does not run what it is to run.

mod rows;
#[cfg(test)]
mod tests;
mod work;

use std::collections::BTreeMap;

use kernel::{Span, Time};

pub use rows::{Failure, FirmwareRow, PlanRow, Progress, Stage};

use self::work::{News, Work};
use crate::apps::Clique;
use crate::flash::Image;
use crate::nib::{Change, Changes, Table};
use crate::rpc::{Item, Outcome, Restart};

/// For how long a TiN is waited for whose processor restarts, and one whose chip does (our choice): longer than a trial, and
/// what ran before is back.
const BACK: Span = Span::from_us(300_000_000);
const BACK_COLD: Span = Span::from_us(4 * 3_600_000_000);

/// What is known of a TiN beside its upgrade.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// It has a session over TCP, and is ready.
    pub is_ready: bool,
    /// It is being programmed by PMOS.
    pub is_over_pmos: bool,
    /// It has a session, by whatever way.
    pub is_up: bool,
}

/// For how long images are on trial (our choice: [`Trials::default`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trials {
    /// If the processor restarts alone.
    pub processor: Span,
    /// If the chip does, and has to be booted before anything is heard of it.
    pub chip: Span,
}

impl Default for Trials {
    fn default() -> Self {
        Self { processor: Span::from_us(120_000_000), chip: Span::from_us(2 * 3_600_000_000) }
    }
}

impl Trials {
    /// As the flash takes it: at least one. Unit: s.
    fn seconds(&self, restart: Restart) -> u16 {
        let trial = match restart {
            Restart::Processor => self.processor,
            Restart::Chip => self.chip,
        };
        u16::try_from(trial.as_ps() / 1_000_000_000_000).unwrap_or(u16::MAX).max(1)
    }
}

/// Upgrades of a Clique.
#[derive(Debug, Default)]
pub struct Upgrade {
    seen: u64,
    is_loaded: bool,
    plan: Option<PlanRow>,
    parts: BTreeMap<u16, Vec<u8>>,
    /// All of its parts.
    image: Option<Image>,
    /// Nothing more comes of it.
    is_over: bool,
    rows: BTreeMap<u16, FirmwareRow>,
    work: BTreeMap<u16, Work>,
    /// By TiN that restarts and is not back: when it is taken for lost.
    back: BTreeMap<u16, Time>,
    /// By TiN that runs another version than before, of whatever plan: which it is to be told to keep.
    heard: BTreeMap<u16, u16>,
    /// TiNs whose rows have to be written.
    changed: Vec<u16>,
}

impl Upgrade {
    /// The version of the base that it knows.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// The base has changed, or is read for the first time. Rows of TiNs are this application's own, and are read once.
    pub fn learn(&mut self, changes: &Changes) {
        for change in changes.changes.iter().filter(|change| change.key.0 == Table::Firmware) {
            self.learn_one(change);
        }
        (self.seen, self.is_loaded) = (changes.version, true);
        let Some(plan) = self.plan.filter(|_| self.image.is_none()) else { return };
        if self.parts.len() == rows::parts(&plan.header) {
            let bytes: Vec<u8> = self.parts.values().flatten().copied().collect();
            let image = Image::of(plan.header.version, plan.header.generation, bytes.into());
            self.image = Some(image.with_header(plan.header));
            self.parts.clear();
        }
    }

    fn learn_one(&mut self, change: &Change) {
        let Some(value) = &change.value else { return };
        let key = &change.key.1;
        if let Ok(tin) = key[..].try_into().map(u16::from_be_bytes) {
            let row = FirmwareRow::decode(value).filter(|_| !self.is_loaded);
            self.rows.extend(row.map(|row| (tin, row)));
        } else if let Some((number, part)) = rows::split_part(key) {
            // Parts are written with their plan, which has a later version or the same.
            if self.plan.is_none_or(|plan| plan.number != number || self.image.is_none()) {
                self.parts.insert(part, value.clone());
            }
        } else if key.is_empty()
            && let Some(plan) = PlanRow::decode(value)
            && self.plan != Some(plan)
        {
            (self.plan, self.image, self.is_over) = (Some(plan), None, false);
            self.work.clear();
            self.back.clear();
        }
    }

    /// Rows that have changed since this was asked last.
    pub fn changed(&mut self) -> Vec<(u16, FirmwareRow)> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().map(|tin| (tin, self.row(tin))).collect()
    }

    fn row(&self, tin: u16) -> FirmwareRow {
        self.rows.get(&tin).copied().unwrap_or_default()
    }

    /// How far a TiN is with the plan that there is.
    fn stage(&self, tin: u16) -> Stage {
        let row = self.row(tin);
        let is_its = self.plan.is_some_and(|plan| plan.number == row.number);
        if is_its { row.stage } else { Stage::Idle }
    }

    /// Whether it has ended with a TiN.
    fn has_failed(&self) -> bool {
        self.rows.keys().any(|&tin| matches!(self.stage(tin), Stage::Failed(_)))
    }

    fn set(&mut self, tin: u16, row: FirmwareRow) {
        if row != self.row(tin) {
            self.rows.insert(tin, row);
            self.changed.push(tin);
        }
    }

    fn set_stage(&mut self, tin: u16, stage: Stage) {
        let Some(PlanRow { number, .. }) = self.plan else { return };
        if let Stage::Failed(_) = stage {
            // The first is the last: what has not been chosen yet is left where it is.
            let all: Vec<u16> = self.work.keys().copied().collect();
            let sending = all.into_iter().filter(|&o| o != tin && self.stage(o) == Stage::Sending);
            sending.collect::<Vec<_>>().into_iter().for_each(|o| self.set_stage(o, Stage::Idle));
        }
        self.set(tin, FirmwareRow { number, stage, ..self.row(tin) });
        if stage != Stage::Sending && stage != Stage::Restarting {
            self.work.remove(&tin);
        }
        if stage != Stage::Restarting {
            self.back.remove(&tin);
        }
    }

    /// A TiN has a session, and says which version it runs.
    pub fn session(&mut self, now: Time, tin: u16, runs: u16) {
        if self.row(tin).runs != runs {
            self.heard.insert(tin, runs);
        } else if self.heard.get(&tin).is_some_and(|&heard| heard != runs) {
            self.heard.remove(&tin);
        }
        self.set(tin, FirmwareRow { runs, ..self.row(tin) });
        let stage = self.stage(tin);
        let is_new = self.plan.is_some_and(|plan| plan.header.version == runs);
        let Some(work) = self.work.get_mut(&tin) else { return };
        match stage {
            // It is waited for until it is confirmed.
            _ if is_new => {
                work.is_new(now, runs);
                if stage != Stage::Restarting {
                    self.restarts(now, tin);
                }
            }
            // What its flash says decides what is next of it.
            Stage::Restarting => work.is_old(now),
            _ => work.again(now),
        }
    }

    fn restarts(&mut self, now: Time, tin: u16) {
        let is_cold = self.plan.is_some_and(|plan| plan.restart == Restart::Chip);
        self.set_stage(tin, Stage::Restarting);
        // A session before a restart that is due does not extend the wait for it.
        self.back.entry(tin).or_insert(now + if is_cold { BACK_COLD } else { BACK });
    }

    /// A TiN holds what it is to hold, and is ready: if it keeps its new version, it is done.
    pub fn is_whole(&mut self, tin: u16) {
        if self.work.get(&tin).is_some_and(Work::is_confirmed) {
            self.set_stage(tin, Stage::Done);
        }
    }

    /// Begins with TiNs that may be next; which.
    pub fn begin(
        &mut self,
        now: Time,
        clique: &Clique,
        rate: u64,
        standing: impl Fn(u16) -> Standing,
    ) -> Vec<u16> {
        let (Some(plan), Some(_)) = (self.plan.filter(|_| !self.is_over), &self.image) else {
            return Vec::new();
        };
        let shape = clique.topology.shape();
        let tins = 0..shape.tins();
        let mut begun = self.take_over(now, tins.clone(), rate, &standing);
        let has_failed = self.has_failed();
        let idle = |tin: &u16| self.stage(*tin) == Stage::Idle;
        let mut waiting: Vec<u16> = tins.filter(idle).collect();
        self.is_over = (has_failed || waiting.is_empty()) && self.work.is_empty();
        if has_failed {
            return begun;
        }
        let counts = |&tin: &u16| self.stage(tin) == Stage::Restarting || standing(tin).is_ready;
        let under_way = self.work.keys().copied().filter(counts).count();
        let mut room = usize::from(plan.at_once).saturating_sub(under_way);
        // Of each pod one after the other: those of a pod are neighbours.
        waiting.retain(|&tin| standing(tin).is_ready);
        waiting.sort_by_key(|&tin| {
            let (pod, place) = shape.split(tin);
            (place, pod)
        });
        for tin in waiting {
            let row = self.row(tin);
            let is_its = row.runs == plan.header.version;
            // By a plan that this one has followed it may run on trial.
            let is_tried = is_its && row.stage == Stage::Restarting;
            if is_its && !is_tried {
                self.set_stage(tin, Stage::Done);
            } else if is_tried || room > 0 {
                room = room.saturating_sub(usize::from(!is_tried));
                self.work.insert(tin, Work::new(now, rate));
                self.set_stage(tin, Stage::Sending);
                begun.push(tin);
            }
        }
        begun
    }

    /// Goes on with what another instance has begun, or a former life of this one; which TiNs.
    fn take_over(
        &mut self,
        now: Time,
        tins: std::ops::Range<u16>,
        rate: u64,
        standing: &impl Fn(u16) -> Standing,
    ) -> Vec<u16> {
        let mut begun = Vec::new();
        for tin in tins {
            let stage = self.stage(tin);
            let is_begun = stage == Stage::Sending || stage == Stage::Restarting;
            if !is_begun || self.work.contains_key(&tin) {
                continue;
            }
            begun.push(tin);
            if stage == Stage::Sending {
                self.work.insert(tin, Work::new(now, rate));
                continue;
            }
            self.work.insert(tin, Work::restarted(now, rate));
            self.restarts(now, tin);
            // It may be back already.
            if standing(tin).is_up {
                self.session(now, tin, self.row(tin).runs);
            }
        }
        begun
    }

    /// What is to be asked of a TiN now, if anything; `Err`: when it is to be looked at again.
    pub fn next(
        &mut self,
        now: Time,
        clique: &Clique,
        tin: u16,
        trials: &Trials,
        standing: impl Fn(u16) -> Standing,
    ) -> Result<Item, Time> {
        if let Some(&version) = self.heard.get(&tin) {
            return Ok(Item::Confirm { version });
        }
        let may_restart =
            self.work.contains_key(&tin) && self.may_restart(now, clique, tin, standing);
        let (Some(plan), Some(image)) = (self.plan, &self.image) else { return Err(Time::NEVER) };
        let Some(work) = self.work.get_mut(&tin) else { return Err(Time::NEVER) };
        work.next(now, image, (plan.restart, trials.seconds(plan.restart)), may_restart)
    }

    /// What restarts for the version that is wanted.
    pub fn restart(&self) -> Restart {
        self.plan.map_or(Restart::default(), |plan| plan.restart)
    }

    /// Whether a TiN has to be told to keep what it runs, before anything else is asked of it.
    pub fn is_on_trial(&self, tin: u16) -> bool {
        self.heard.contains_key(&tin) || self.work.get(&tin).is_some_and(Work::is_on_trial)
    }

    fn may_restart(
        &self,
        now: Time,
        clique: &Clique,
        tin: u16,
        standing: impl Fn(u16) -> Standing,
    ) -> bool {
        let is_cold = self.plan.is_some_and(|plan| plan.restart == Restart::Chip);
        let patience = if is_cold { BACK_COLD } else { BACK };
        let restarts = |tin: u16| {
            let asked = self.work.get(&tin).and_then(Work::asked);
            self.stage(tin) == Stage::Restarting
                || asked.is_some_and(|asked| now - asked < patience)
        };
        if is_cold && self.work.keys().any(|&other| restarts(other)) {
            return false;
        }
        let ports = 0..clique.topology.shape().external_ports();
        let mut fars = ports.filter_map(|port| clique.topology.far(tin, port));
        fars.all(|far| !restarts(far.tin) && !standing(far.tin).is_over_pmos)
    }

    /// A TiN has answered; whether it restarts.
    pub fn answered(&mut self, now: Time, tin: u16, outcome: &Outcome) -> bool {
        let runs = self.row(tin).runs;
        let is_of_trial = self.work.get(&tin).is_some_and(Work::is_on_trial);
        if self.heard.remove(&tin).is_some() && !is_of_trial {
            return false;
        }
        let (Some(image), Some(work)) = (&self.image, self.work.get_mut(&tin)) else {
            return false;
        };
        match work.answered(now, image, runs, outcome) {
            News::Nothing => {
                if work.is_confirmed() {
                    self.back.remove(&tin);
                } else if work.is_sending() && self.stage(tin) == Stage::Restarting {
                    let stage = if self.has_failed() { Stage::Idle } else { Stage::Sending };
                    self.set_stage(tin, stage);
                }
                false
            }
            News::Restarts => {
                self.restarts(now, tin);
                true
            }
            News::Failed(failure) => {
                self.set_stage(tin, Stage::Failed(failure));
                false
            }
        }
    }

    /// Gives up TiNs that have not come back.
    pub fn on_time(&mut self, now: Time) {
        let silent: Vec<u16> =
            self.back.iter().filter(|(_, at)| **at <= now).map(|(&tin, _)| tin).collect();
        silent.into_iter().for_each(|tin| self.set_stage(tin, Stage::Failed(Failure::Silent)));
    }

    /// When [`Upgrade::on_time`] has something to do.
    pub fn deadline(&self) -> Time {
        self.back.values().min().copied().unwrap_or(Time::NEVER)
    }
}
