//! The switch front end: registers from flows and groups.
//!
//! Models: Aquila §4.1 to §4.4 (M606, M610, M706, M725, M727, M811, I70, I73, I76, I78): operations become register writes,
//! in requests of a bounded size, one at a time for each TiN and no faster than its memory allows; what became of them
//! goes back. After any loss of a session the digests of a TiN's registers are compared with what is wanted, blocks that
//! differ are read, and what differs in them is written: nothing that is right.
//!
//! What is wanted of a TiN is kept as rows, and what it holds only while it is programmed: afterwards it is the same.

pub mod bucket;
mod held;
pub mod intent;
mod link;
pub mod order;
mod plan;
pub mod upgrade;

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::{Span, Time};

use super::Clique;
use super::flow_manager;
use super::rows::{Outcome, PROGRAMMED, SessionRow, split_key};
use super::session::{Over, Progress, Request, Session};
use crate::flash::{BLOCK_BYTES, BLOCK_TIME};
use crate::nib::{Changes, Key, LAYOUT, Table};
use intent::Intent;
use link::Link;
use upgrade::{FirmwareRow, Standing, Trials, Upgrade};

/// Rates (M727, our choice), and patience.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// To a TiN that is reached by TCP. Unit: bytes a second.
    pub tcp_rate: u64,
    /// Over the bootstrap channel. Unit: bytes a second.
    pub pmos_rate: u64,
    /// After how long without an answer a TiN is asked once more, and the front end after twice that. Where sessions
    /// lose nothing, and TiNs may be slow, it can be as long as one likes.
    pub again: Span,
    /// How fast images of firmware go to a TiN (M617): no faster than flash takes them. Unit: bytes a second.
    pub image_rate: u64,
    /// For how long images are on trial until they are confirmed (M617).
    pub trials: Trials,
    /// How long a batch of routes waits for a TiN that carries others' traffic and has a session.
    pub patience: Span,
}

impl Default for Settings {
    fn default() -> Self {
        let again = Span::from_us(1_000_000);
        Self {
            tcp_rate: 4_000_000,
            pmos_rate: 200_000,
            image_rate: image_rate(BLOCK_TIME),
            trials: Trials::default(),
            again,
            patience: flow_manager::PATIENCE,
        }
    }
}

impl Settings {
    /// The same, with as much patience as it takes where a control processor takes so long for an entry of a register:
    /// all of its tables.
    #[must_use]
    pub fn with_entry_time(self, entry_time: Span) -> Self {
        let entries = order::owned().iter().map(|register| u64::from(register.entries())).sum();
        Self { patience: self.patience.max(entry_time * entries), ..self }
    }
}

/// How fast images may go where flash takes so long for a block: a tenth slower. Unit: bytes a second.
#[must_use]
pub fn image_rate(block_time: Span) -> u64 {
    let picoseconds = block_time.as_ps().max(1) * 11 / 10;
    let rate = u128::from(BLOCK_BYTES) * 1_000_000_000_000 / u128::from(picoseconds);
    rate.min(u64::MAX.into()) as u64
}

/// An operation on a row of a TiN.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    /// The row.
    pub key: Key,
    /// Of the row in the base.
    pub version: u64,
    /// What it holds; `None`: it was deleted.
    pub value: Option<Vec<u8>>,
}

/// From the flow manager: operations on one TiN.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// The flow manager's term: those of an earlier one do not count.
    pub term: u64,
    /// Which TiN.
    pub tin: u16,
    /// In any order: the front end finds one in which nothing is missing.
    pub operations: Vec<Operation>,
}

/// To the flow manager: what became of operations on one TiN.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Results {
    /// Which TiN.
    pub tin: u16,
    /// By row and version.
    pub results: Vec<(Key, u64, Outcome)>,
}

/// What the front end wants done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// To a TiN.
    Request(Request),
    /// To the session manager.
    Progress(Progress),
    /// To the flow manager.
    Results(Results),
    /// A row of TinSession is to be written.
    Session(u16, SessionRow),
    /// A row of Firmware is.
    Firmware(u16, FirmwareRow),
}

/// What has happened so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Requests, with those sent again.
    pub requests: u64,
    /// Entries of registers that were written.
    pub entries: u64,
    /// Entries that were read to reconcile.
    pub read: u64,
    /// Answers that were none, or to something else.
    pub stray: u64,
    /// Items that a chip has refused.
    pub refused: u64,
    /// Operations of flow managers that had been followed by others.
    pub deposed: u64,
}

/// What is known of a TiN.
#[derive(Debug, Default)]
struct Tin {
    intent: Intent,
    /// By row: the version that is in the intent, or that did not fit.
    rows: BTreeMap<Key, (u64, bool)>,
    /// Rows of which the flow manager waits for results.
    waiting: BTreeMap<Key, u64>,
    /// Those of them that have come since what is being programmed was planned, and of which version a result was waited for
    /// then.
    unplanned: BTreeMap<Key, Option<u64>>,
    session: SessionRow,
    link: Option<Link>,
}

impl Tin {
    /// Says what has come of what was planned, when its first part is done or all of it: that there is enough for a call, and
    /// results of rows.
    fn tell(&mut self, clique: &Clique, number: u16, is_complete: bool, out: &mut Vec<Output>) {
        let Some(link) = &mut self.link else { return };
        if link.has_news_of_enough() {
            out.push(Output::Progress(Progress::Enough { tin: number }));
        }
        let (refused, refused_groups) =
            (link.refused_rows(clique, number, &self.intent), link.refused_groups());
        let (intent, unplanned) = (&self.intent, std::mem::take(&mut self.unplanned));
        // Flows wait for their groups, and these need not wait for the routes of others' cells.
        let is_finished = |(key, _): &(Key, u64)| {
            is_complete || intent.has_group(key) && !unplanned.contains_key(key)
        };
        let (waiting, left): (BTreeMap<Key, u64>, _) =
            std::mem::take(&mut self.waiting).into_iter().partition(is_finished);
        self.waiting = left;
        let outcome = |key: &Key| {
            if refused.contains(key) || !self.rows.get(key).is_none_or(|row| row.1) {
                return Outcome::Failed;
            }
            if !intent.is_held_back(key, &refused_groups) {
                return Outcome::Done;
            }
            Outcome::HeldBack
        };
        let found = waiting.into_iter().map(|(key, version)| {
            let o = outcome(&key);
            (key, version, o)
        });
        // Of a group that is to be changed by now, the version that the chip has.
        let is_earlier = |(key, version): (Key, Option<u64>)| {
            let is_there = link.has_group(&key) && !refused.contains(&key);
            version.filter(|_| is_there).map(|version| (key, version, Outcome::Done))
        };
        let results: Vec<_> = found.chain(unplanned.into_iter().filter_map(is_earlier)).collect();
        if !results.is_empty() {
            out.push(Output::Results(Results { tin: number, results }));
        }
    }
}

/// The application.
#[derive(Debug)]
pub struct FrontEnd {
    clique: Arc<Clique>,
    settings: Settings,
    tins: BTreeMap<u16, Tin>,
    /// The latest of a flow manager.
    term: u64,
    /// Whether it has read the base.
    is_loaded: bool,
    upgrade: Upgrade,
    counts: Counts,
}

impl FrontEnd {
    /// One that knows nothing yet: the base has to be read to it first.
    #[must_use]
    pub fn new(clique: Arc<Clique>, settings: Settings) -> Self {
        let (tins, counts) = (BTreeMap::new(), Counts::default());
        let upgrade = Upgrade::default();
        Self { clique, settings, tins, term: 0, is_loaded: false, upgrade, counts }
    }

    /// The tables that it reads when it starts.
    pub const TABLES: [Table; 8] = [
        PROGRAMMED[0],
        PROGRAMMED[1],
        PROGRAMMED[2],
        PROGRAMMED[3],
        PROGRAMMED[4],
        Table::TinSession,
        Table::Firmware,
        Table::Sideband,
    ];
    /// Those that it goes on reading.
    pub const NEWS: [Table; 2] = [Table::Firmware, Table::Sideband];

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether a TiN's registers equal what is wanted of it, as far as is known.
    #[must_use]
    pub fn is_complete(&self, tin: u16) -> bool {
        self.tins.get(&tin).and_then(|tin| tin.link.as_ref()).is_some_and(Link::is_complete)
    }

    /// The base, as it was when the application started to lead. Later changes come from the flow manager.
    pub fn load(&mut self, changes: &Changes) {
        if changes.layout != LAYOUT || self.is_loaded {
            return;
        }
        self.is_loaded = true;
        self.upgrade.learn(changes);
        let (clique, tins) = (self.clique.clone(), &mut self.tins);
        for change in &changes.changes {
            let (Some((tin, _)), Some(value)) = (split_key(&change.key.1), &change.value) else {
                continue;
            };
            let tin = tins.entry(tin).or_default();
            if change.key.0 == Table::Sideband {
                tin.intent.set_sidebands(value.first().copied().unwrap_or(0));
            } else if change.key.0 == Table::TinSession {
                let row = SessionRow::decode(value).unwrap_or_default();
                tin.session = SessionRow { is_up: false, ..row };
            } else if PROGRAMMED.contains(&change.key.0) {
                let fits = tin.intent.set(&clique, &change.key, Some(value)).is_ok();
                tin.rows.insert(change.key.clone(), (change.version, fits));
            }
        }
    }

    /// The version of the base up to which it knows what firmware is wanted.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.upgrade.seen()
    }

    /// The base has changed: another version of the firmware may be wanted (M617), or other sidebands (M616).
    pub fn learn(&mut self, now: Time, changes: &Changes, out: &mut Vec<Output>) {
        if !self.is_loaded {
            return;
        }
        for change in changes.changes.iter().filter(|change| change.key.0 == Table::Sideband) {
            let tin = split_key(&change.key.1).map(|(tin, _)| tin);
            let tin = tin.filter(|&tin| tin < self.clique.topology.shape().tins());
            if let Some(number) = tin {
                let sidebands = change.value.as_ref().and_then(|value| value.first()).copied();
                self.set_sidebands(now, number, sidebands.unwrap_or(0), out);
            }
        }
        self.upgrade.learn(changes);
        self.go_on_with_upgrades(now, out);
    }

    fn set_sidebands(&mut self, now: Time, number: u16, sidebands: u8, out: &mut Vec<Output>) {
        let tin = self.tins.entry(number).or_default();
        if tin.intent.sidebands() == Some(sidebands) {
            return;
        }
        if let Some(link) = &mut tin.link {
            link.intent_changes(&self.clique, number, &tin.intent);
        }
        tin.intent.set_sidebands(sidebands);
        self.go_on(now, number, out);
    }

    /// Operations have come.
    pub fn program(&mut self, now: Time, program: Program, out: &mut Vec<Output>) {
        if program.term < self.term || !self.is_loaded {
            self.counts.deposed += program.operations.len() as u64;
            return;
        }
        self.term = program.term;
        let number = program.tin;
        if number >= self.clique.topology.shape().tins() {
            return;
        }
        let tin = self.tins.entry(number).or_default();
        for Operation { key, version, value } in program.operations {
            if split_key(&key.1).is_none_or(|(of, _)| of != number) {
                continue;
            }
            let (known, fitted) = tin.rows.get(&key).copied().unwrap_or((0, true));
            // What did not fit may do so now.
            if version > known || version == known && !fitted {
                if let Some(link) = &mut tin.link {
                    link.intent_changes(&self.clique, number, &tin.intent);
                }
                let fits = tin.intent.set(&self.clique, &key, value.as_deref()).is_ok();
                tin.rows.insert(key.clone(), (version, fits));
            }
            // An older one is answered for, too: it is no longer what is wanted.
            let before = tin.waiting.insert(key.clone(), version);
            if tin.link.as_ref().is_some_and(Link::is_outdated) {
                tin.unplanned.entry(key).or_insert(before);
            }
        }
        self.go_on(now, number, out);
    }

    /// Something has come of a session.
    pub fn session(&mut self, now: Time, event: Session, out: &mut Vec<Output>) {
        let number = match &event {
            Session::Up { tin, .. } | Session::Down { tin } | Session::Answer { tin, .. } => *tin,
        };
        if number >= self.clique.topology.shape().tins() || !self.is_loaded {
            return;
        }
        let tin = self.tins.entry(number).or_default();
        let before = tin.session;
        match event {
            Session::Up { over, boot, firmware, .. } => {
                self.upgrade.session(now, number, firmware);
                tin.unplanned.clear();
                tin.link = Some(Link::new(over, &self.settings, now));
                let is_ready = tin.session.is_ready && tin.session.boot == boot;
                tin.intent.set_passes(is_ready);
                let is_over_pmos = over == Over::Pmos;
                tin.session = SessionRow { is_up: true, is_ready, is_over_pmos, boot };
            }
            Session::Down { .. } => {
                tin.link = None;
                tin.session.is_up = false;
            }
            Session::Answer { bytes, .. } => {
                let counts = &mut self.counts;
                let of_flash = match &mut tin.link {
                    Some(link) => {
                        link.answer(now, &self.clique, number, &tin.intent, &bytes, counts)
                    }
                    None => {
                        counts.stray += 1;
                        None
                    }
                };
                if of_flash.is_some_and(|outcome| self.upgrade.answered(now, number, &outcome)) {
                    let restart = self.upgrade.restart();
                    out.push(Output::Progress(Progress::Restarts { tin: number, restart }));
                }
            }
        }
        if tin.session != before {
            out.push(Output::Session(number, tin.session));
        }
        self.go_on(now, number, out);
        self.go_on_with_upgrades(now, out);
    }

    /// Time goes on.
    pub fn tick(&mut self, now: Time, out: &mut Vec<Output>) {
        let due = |tin: &Tin| tin.link.as_ref().is_some_and(|link| link.wakes_at() <= now);
        let due: Vec<u16> =
            self.tins.iter().filter(|(_, tin)| due(tin)).map(|(&tin, _)| tin).collect();
        for tin in due {
            self.go_on(now, tin, out);
        }
        self.upgrade.on_time(now);
        self.go_on_with_upgrades(now, out);
    }

    /// Begins with TiNs that may have another version of the firmware, and says what of it is new.
    fn go_on_with_upgrades(&mut self, now: Time, out: &mut Vec<Output>) {
        let rate = self.settings.image_rate;
        let standing = |tin: u16| standing(&self.tins, tin);
        for tin in self.upgrade.begin(now, &self.clique, rate, standing) {
            if self.tins.contains_key(&tin) {
                self.go_on(now, tin, out);
            }
        }
        out.extend(self.upgrade.changed().into_iter().map(|(tin, row)| Output::Firmware(tin, row)));
    }

    /// Asks a TiN of which nothing else is wanted, or that is on trial, for what its upgrade needs.
    fn ask_for_upgrade(&mut self, now: Time, number: u16, out: &mut Vec<Output>) {
        let link = self.tins.get(&number).and_then(|tin| tin.link.as_ref());
        let is_free = match self.upgrade.is_on_trial(number) {
            true => link.is_some_and(Link::is_idle),
            false => link.is_some_and(Link::is_free) && standing(&self.tins, number).is_ready,
        };
        let mut next = || {
            let standing = |tin: u16| standing(&self.tins, tin);
            self.upgrade.next(now, &self.clique, number, &self.settings.trials, standing)
        };
        let next = if is_free { next() } else { return };
        let Some(link) = self.tins.get_mut(&number).and_then(|tin| tin.link.as_mut()) else {
            return;
        };
        match next {
            Ok(item) => {
                let bytes = link.ask(now, item, &mut self.counts);
                out.push(Output::Request(Request { tin: number, bytes }));
            }
            Err(at) => link.wake_by(at),
        }
    }

    /// When [`FrontEnd::tick`] has something to do.
    #[must_use]
    pub fn wakes_at(&self) -> Time {
        let links = self.tins.values().filter_map(|tin| tin.link.as_ref());
        links.map(Link::wakes_at).min().unwrap_or(Time::NEVER).min(self.upgrade.deadline())
    }

    /// Sends what can be sent to a TiN, and says what is finished.
    fn go_on(&mut self, now: Time, number: u16, out: &mut Vec<Output>) {
        // An image on trial is told first that it was heard of: by whatever way there is a session.
        if self.upgrade.is_on_trial(number) {
            self.ask_for_upgrade(now, number, out);
        }
        let tin = self.tins.get_mut(&number).expect("it is known");
        // What was planned before other things were wanted is told before these are planned.
        if tin.link.as_ref().is_some_and(|link| link.is_outdated() && link.is_first_done()) {
            tin.tell(&self.clique, number, false, out);
            tin.link.as_mut().expect("it is there").plan_anew();
        }
        let Some(link) = &mut tin.link else { return };
        let counts = &mut self.counts;
        if let Some(bytes) = link.send(now, &self.clique, number, &tin.intent, counts) {
            out.push(Output::Request(Request { tin: number, bytes }));
        }
        let is_complete = link.is_complete();
        if !is_complete && (link.is_outdated() || !link.is_first_done()) {
            return;
        }
        tin.unplanned.clear();
        tin.tell(&self.clique, number, is_complete, out);
        if is_complete && tin.intent.is_whole() {
            self.is_as_wanted(now, number, out);
        }
        self.ask_for_upgrade(now, number, out);
    }

    /// A TiN's registers equal what is wanted of it. Since its cold start that may be for the first time: then it may
    /// carry others' cells from now on, and when it does, routes may lead through it (M815, I82).
    fn is_as_wanted(&mut self, now: Time, number: u16, out: &mut Vec<Output>) {
        let tin = self.tins.get_mut(&number).expect("it is known");
        let Some(link) = &mut tin.link else { return };
        if link.has_news_of_completion() {
            out.push(Output::Progress(Progress::Complete { tin: number }));
        }
        if tin.session.is_over_pmos || tin.session.is_ready {
            if !tin.session.is_over_pmos {
                self.upgrade.is_whole(number);
            }
            return;
        }
        if tin.intent.passes() {
            tin.session.is_ready = true;
            out.push(Output::Session(number, tin.session));
            self.upgrade.is_whole(number);
            return;
        }
        link.intent_changes(&self.clique, number, &tin.intent);
        tin.intent.set_passes(true);
        self.go_on(now, number, out);
    }
}

/// What speaks for and against an upgrade of a TiN, or beside it.
fn standing(tins: &BTreeMap<u16, Tin>, tin: u16) -> Standing {
    let session = tins.get(&tin).map(|tin| tin.session).unwrap_or_default();
    let is_over_pmos = session.is_up && session.is_over_pmos;
    let (is_up, is_ready) = (session.is_up, session.is_up && session.is_ready && !is_over_pmos);
    Standing { is_ready, is_over_pmos, is_up }
}
