//! The flow manager: puts operations in an order in which nothing is missing.
//!
//! Models: Aquila §4.1 (M705, M707, I70, I72): a flow is programmed after its group is known to be, and a group is taken
//! out after no flow leads to it. Results go into the base, for the routing engine. What is to be programmed is
//! the rows of the base, what is programmed is its results: an instance that takes over finds both there.
//!
//! **Our choice**: flows wait for a group that is changed in place, but not by PMOS. A TiN that has not answered for 10 s
//! (M813) does not hold up a batch. It is unreachable until it answers, and what was asked of it then is still done when it
//! comes back. Where control processors are slow, one that carries others' traffic and has a session is waited for longer: it
//! takes minutes for its tables, and may not be taken for a dead one.

use std::collections::{BTreeMap, BTreeSet};

use aquila::pipeline::routes::Next;
use kernel::{Span, Time};

use super::front_end::{Operation, Program, Results};
use super::rows::{BatchRow, IpFlow, Outcome, PROGRAMMED, ResultRow, SessionRow, key, split_key};
use crate::nib::{Changes, Key, LAYOUT, Table, Write};

/// How long a batch waits for a TiN (M813: reconnect).
pub const PATIENCE: Span = Span::from_us(10_000_000);
/// After how long operations are said once more, if there are no results (our choice).
const AGAIN: Span = Span::from_us(2_000_000);
/// The key of the Batch row.
const CURRENT: &[u8] = &[];

/// What the flow manager wants done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// To the front end.
    Program(Program),
    /// To the base.
    Write(Vec<Write>),
}

/// A row whose programming is not known to be finished.
#[derive(Debug)]
struct Pending {
    version: u64,
    value: Option<Vec<u8>>,
    /// When it was said first and last.
    sent: Option<(Time, Time)>,
    /// Its group is not there: it is said when that is.
    is_held_back: bool,
    /// A group of which the chip has an earlier version: it is changed in place, and flows need not wait.
    is_there: bool,
}

/// What is pending at a TiN.
#[derive(Debug, Default)]
struct Tin {
    pending: BTreeMap<(Table, Vec<u8>), Pending>,
    /// Flows that it had no entry for. One that is taken out may make room, as it does where a TiN was away while another flow
    /// took an entry over: what is taken out comes last.
    failed: BTreeMap<(Table, Vec<u8>), Pending>,
    /// It has let a batch wait in vain, and not answered since.
    is_unreachable: bool,
    /// Until then nothing is to be looked at, unless something changes, which makes it the beginning of time.
    quiet_until: Time,
    /// As the base has it.
    session: SessionRow,
}

impl Tin {
    /// What is known of its session has changed.
    fn learn(&mut self, session: SessionRow) {
        if session.boot != self.session.boot {
            self.pending.values_mut().for_each(|pending| pending.is_there = false);
        }
        self.session = session;
        self.quiet_until = Time::ZERO;
    }

    /// Whether it carries others' traffic, and can be reached.
    fn is_at_work(&self) -> bool {
        let SessionRow { is_up, is_ready, is_over_pmos, .. } = self.session;
        is_up && is_ready && !is_over_pmos
    }
}

/// The application.
#[derive(Debug, Default)]
pub struct FlowManager {
    term: u64,
    seen: u64,
    batch: BatchRow,
    tins: BTreeMap<u16, Tin>,
    /// By row: what is known of its programming, as in the base or on the way there.
    results: BTreeMap<Key, ResultRow>,
    /// Results that are not in the base yet; `None`: the row is gone.
    unwritten: BTreeMap<Key, Option<ResultRow>>,
    is_writing: bool,
    /// After how long operations are said once more, if there are no results.
    again: Span,
    /// How long a batch waits for a TiN that is at work.
    patience: Span,
    counts: Counts,
}

/// What has happened so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Batches whose results are all in.
    pub batches: u64,
    /// Operations that were done.
    pub done: u64,
    /// That failed.
    pub failed: u64,
    /// That were held back as their group was not there.
    pub held_back: u64,
    /// That were not answered in time.
    pub unreachable: u64,
}

impl FlowManager {
    /// One that leads in a term, and knows nothing yet.
    #[must_use]
    pub fn new(term: u64) -> Self {
        Self { term, again: AGAIN, patience: PATIENCE, ..Self::default() }
    }

    /// The same, which says operations once more after another time without results.
    #[must_use]
    pub fn asking_again(self, again: Span) -> Self {
        Self { again, ..self }
    }

    /// The same, whose batches wait as long for a TiN that carries others' traffic and has a session over TCP.
    #[must_use]
    pub fn waiting(self, patience: Span) -> Self {
        Self { patience, ..self }
    }

    /// The tables that it reads.
    pub const TABLES: [Table; 8] = [
        PROGRAMMED[0],
        PROGRAMMED[1],
        PROGRAMMED[2],
        PROGRAMMED[3],
        PROGRAMMED[4],
        Table::ProgrammingResult,
        Table::TinSession,
        Table::Batch,
    ];

    /// The last version of the base that it has seen.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The base has changed.
    pub fn learn(&mut self, now: Time, changes: Changes, out: &mut Vec<Output>) {
        if changes.layout != LAYOUT || changes.version < self.seen {
            return;
        }
        let is_everything = changes.is_everything || self.seen == 0;
        if is_everything {
            let Self { term, counts, again, patience, .. } = *self;
            *self = Self { term, counts, again, patience, ..Self::default() };
        }
        self.seen = changes.version;
        if changes.changes.is_empty() && !is_everything {
            return;
        }
        let mut rows = Vec::new();
        for change in changes.changes {
            match change.key.0 {
                Table::Batch => {
                    let row = change.value.as_deref().and_then(BatchRow::decode);
                    self.batch = row.unwrap_or_default();
                }
                Table::ProgrammingResult => {
                    self.learn_result(&change.key.1, change.value.as_deref())
                }
                Table::TinSession => {
                    if let Some((tin, _)) = split_key(&change.key.1) {
                        let row = change.value.as_deref().and_then(SessionRow::decode);
                        self.tins.entry(tin).or_default().learn(row.unwrap_or_default());
                    }
                }
                _ => rows.push(change),
            }
        }
        let mut wanted = BTreeSet::new();
        for change in rows {
            if change.value.is_some() {
                wanted.insert(change.key.clone());
            }
            self.want(change.key, change.version, change.value, is_everything);
        }
        if is_everything {
            self.forget_rows_without(&wanted);
        }
        self.go_on(now, out);
    }

    /// When all rows are known: what has a result, and is no row any more, is to be taken out.
    fn forget_rows_without(&mut self, wanted: &BTreeSet<Key>) {
        let gone: Vec<Key> =
            self.results.keys().filter(|key| !wanted.contains(*key)).cloned().collect();
        for key in gone {
            let version = self.seen;
            self.want(key, version, None, true);
        }
    }

    fn learn_result(&mut self, key: &[u8], value: Option<&[u8]>) {
        let Some((&table, rest)) = key.split_first() else { return };
        let Some(&table) = Table::ALL.get(usize::from(table)) else { return };
        let row = (table, rest.to_vec());
        if self.unwritten.contains_key(&row) {
            // What we know is newer.
            return;
        }
        let found = value.and_then(ResultRow::decode);
        let before = match found {
            Some(result) => self.results.insert(row, result),
            None => self.results.remove(&row),
        };
        if before != found
            && let Some(tin) = split_key(rest).and_then(|(tin, _)| self.tins.get_mut(&tin))
        {
            tin.quiet_until = Time::ZERO;
        }
    }

    /// A row is to be programmed, unless it is. `is_everything`: of a base that is read for the first time.
    fn want(&mut self, row: Key, version: u64, value: Option<Vec<u8>>, is_everything: bool) {
        let Some((tin, rest)) = split_key(&row.1) else { return };
        let place = (row.0, rest.to_vec());
        let known = self.results.get(&row);
        let is_finished = match (known, &value) {
            (Some(result), Some(_)) => {
                // Whoever takes over does not know what has been taken out since it failed.
                let is_final = match result.outcome {
                    Outcome::Failed => row.0 != Table::IpFlow || !is_everything,
                    outcome => outcome == Outcome::Done,
                };
                result.version == version && is_final
            }
            // Where nothing was ever asked, nothing is to be taken out.
            (None, None) => !self.tins.get(&tin).is_some_and(|t| t.pending.contains_key(&place)),
            _ => false,
        };
        let tin = self.tins.entry(tin).or_default();
        tin.failed.remove(&place);
        tin.quiet_until = Time::ZERO;
        if is_finished {
            tin.pending.remove(&place);
        } else {
            let was_there = match (tin.pending.get(&place), known) {
                (Some(pending), _) => pending.is_there,
                (None, known) => known.is_some_and(|known| known.outcome == Outcome::Done),
            };
            let is_there = was_there && value.is_some();
            let pending = Pending { version, value, sent: None, is_held_back: false, is_there };
            tin.pending.insert(place, pending);
        }
    }

    /// Results have come.
    pub fn results(&mut self, now: Time, results: Results, out: &mut Vec<Output>) {
        let Some(tin) = self.tins.get_mut(&results.tin) else { return };
        (tin.is_unreachable, tin.quiet_until) = (false, Time::ZERO);
        for (row, version, outcome) in results.results {
            let Some((_, rest)) = split_key(&row.1) else { continue };
            let place = (row.0, rest.to_vec());
            let Some(tin) = self.tins.get_mut(&results.tin) else { continue };
            let Some(pending) = tin.pending.get_mut(&place) else { continue };
            if pending.version != version {
                pending.is_there |= version < pending.version
                    && outcome == Outcome::Done
                    && pending.value.is_some();
                continue;
            }
            let pending = tin.pending.remove(&place).expect("it is there");
            self.finish(row, pending, outcome);
        }
        self.go_on(now, out);
    }

    /// It is known what became of an operation.
    fn finish(&mut self, row: Key, pending: Pending, outcome: Outcome) {
        match outcome {
            Outcome::Done => self.counts.done += 1,
            Outcome::Failed => self.counts.failed += 1,
            Outcome::HeldBack => self.counts.held_back += 1,
            Outcome::Unreachable => self.counts.unreachable += 1,
        }
        let is_gone = pending.value.is_none() && outcome == Outcome::Done;
        let result = ResultRow { version: pending.version, outcome };
        if let Some((number, rest)) = split_key(&row.1).filter(|_| row.0 == Table::IpFlow) {
            let tin = self.tins.entry(number).or_default();
            if is_gone {
                tin.pending.append(&mut tin.failed);
            } else if outcome == Outcome::Failed {
                let pending = Pending { sent: None, ..pending };
                tin.failed.insert((row.0, rest.to_vec()), pending);
            }
        }
        if is_gone {
            self.results.remove(&row);
        } else {
            self.results.insert(row.clone(), result);
        }
        self.unwritten.insert(row, (!is_gone).then_some(result));
    }

    /// The base has taken what was written last, or not: then the application is to be started anew.
    pub fn written(&mut self, now: Time, out: &mut Vec<Output>) {
        self.is_writing = false;
        self.go_on(now, out);
    }

    /// Time goes on.
    pub fn tick(&mut self, now: Time, out: &mut Vec<Output>) {
        for tin in self.tins.values_mut() {
            let patience = if tin.is_at_work() { self.patience } else { PATIENCE };
            let waits =
                |pending: &Pending| pending.sent.is_some_and(|(first, _)| now - first >= patience);
            if !tin.is_unreachable && tin.pending.values().any(waits) {
                (tin.is_unreachable, tin.quiet_until) = (true, Time::ZERO);
            }
        }
        self.go_on(now, out);
    }

    /// Says what may be said, and finishes the batch when nothing is left.
    fn go_on(&mut self, now: Time, out: &mut Vec<Output>) {
        let is_due = |tin: &Tin| !tin.pending.is_empty() && now >= tin.quiet_until;
        let due = self.tins.iter().filter(|(_, tin)| is_due(tin));
        let numbers: Vec<u16> = due.map(|(&number, _)| number).collect();
        for &number in &numbers {
            self.give_up_or_hold_back(number);
            self.release(now, number, out);
        }
        // What has not been said by now waits for what is held back.
        let is_said = |pending: &Pending| pending.sent.is_some();
        let is_idle = |tin: &Tin| tin.is_unreachable || !tin.pending.values().any(is_said);
        let is_finished =
            !self.batch.is_done && self.batch.number > 0 && self.tins.values().all(is_idle);
        if self.is_writing || (!is_finished && (self.unwritten.is_empty() || !self.batch.is_done)) {
            return;
        }
        let mut writes = Vec::new();
        for (row, result) in std::mem::take(&mut self.unwritten) {
            let key = [&[row.0 as u8][..], &row.1].concat();
            writes.push(match result {
                Some(result) => Write::set(Table::ProgrammingResult, &key, &result.encode()),
                None => Write::delete(Table::ProgrammingResult, &key),
            });
        }
        if is_finished {
            let of =
                |outcome| self.results.values().filter(|r| r.outcome == outcome).count() as u32;
            let failed = [Outcome::Failed, Outcome::HeldBack, Outcome::Unreachable].map(of);
            self.batch = BatchRow { is_done: true, failed, ..self.batch };
            writes.push(Write::set(Table::Batch, CURRENT, &self.batch.encode()));
            self.counts.batches += 1;
        }
        self.is_writing = true;
        out.push(Output::Write(writes));
    }

    /// Operations that will not be answered soon, and flows whose group has failed (M705).
    fn give_up_or_hold_back(&mut self, number: u16) {
        let tin = &self.tins[&number];
        if tin.is_unreachable {
            let row = |place: &(Table, Vec<u8>)| (place.0, key(number, &place.1));
            for (place, pending) in &tin.pending {
                let result = ResultRow { version: pending.version, outcome: Outcome::Unreachable };
                if self.results.get(&row(place)) != Some(&result) {
                    self.counts.unreachable += 1;
                    self.results.insert(row(place), result);
                    self.unwritten.insert(row(place), Some(result));
                }
            }
            return;
        }
        let is_missing = |row: &Key| {
            let result = self.results.get(row);
            let waits = tin.pending.contains_key(&(row.0, row.1[2..].to_vec()));
            !waits && result.is_none_or(|result| result.outcome != Outcome::Done)
        };
        let mut held_back = Vec::new();
        for (place, pending) in tin.pending.iter().filter(|(place, _)| place.0 == Table::IpFlow) {
            let flow = pending.value.as_deref().and_then(IpFlow::decode);
            let group = match flow.map(|flow| flow.next) {
                Some(Next::Group(group)) => (Table::Group, key(number, &group.to_be_bytes())),
                Some(Next::Indexed(group)) => {
                    (Table::IndexedGroup, key(number, &group.to_be_bytes()))
                }
                _ => continue,
            };
            let is_held_back = is_missing(&group);
            if is_held_back != pending.is_held_back {
                held_back.push((place.clone(), is_held_back));
            }
        }
        let tin = self.tins.get_mut(&number).expect("it is known");
        for (place, is_held_back) in held_back {
            let pending = tin.pending.get_mut(&place).expect("it was there");
            pending.is_held_back = is_held_back;
            if is_held_back {
                self.counts.held_back += 1;
                pending.sent = None;
                let row = (place.0, key(number, &place.1));
                let result = ResultRow { version: pending.version, outcome: Outcome::HeldBack };
                self.results.insert(row.clone(), result);
                self.unwritten.insert(row, Some(result));
            }
        }
    }

    /// Says operations on a TiN whose turn it is: groups, then flows that lead to them; flows to be taken out, then groups.
    fn release(&mut self, now: Time, number: u16, out: &mut Vec<Output>) {
        let tin = self.tins.get_mut(&number).expect("it is known");
        let is_group = |table| matches!(table, Table::Group | Table::IndexedGroup);
        // A target by PMOS, through which nobody sends anything, has its way out as soon as there is one: while TiNs near by
        // become ready, its groups change faster than they can be programmed.
        let is_over_pmos = tin.session.is_over_pmos;
        let (mut has_groups, mut has_flows, mut has_any_flows) = (false, false, false);
        for ((table, _), pending) in &tin.pending {
            let is_set = pending.value.is_some();
            has_groups |= is_group(*table) && is_set && !(pending.is_there && is_over_pmos);
            has_flows |= *table == Table::IpFlow && is_set;
            has_any_flows |= *table == Table::IpFlow;
        }
        let is_its_turn = |table, is_set| match (table, is_set) {
            (Table::IpFlow, true) => !has_groups,
            (Table::IpFlow, false) => !has_groups && !has_flows,
            (table, false) if is_group(table) => !has_any_flows,
            _ => true,
        };
        let again = |pending: &Pending| pending.sent.map(|(_, last)| last + self.again);
        let mut operations = Vec::new();
        for (place, pending) in &mut tin.pending {
            let is_its_turn = is_its_turn(place.0, pending.value.is_some());
            let is_due = again(pending).is_none_or(|again| now >= again);
            if !is_its_turn || pending.is_held_back || !is_due {
                continue;
            }
            let first = pending.sent.map_or(now, |(first, _)| first);
            pending.sent = Some((first, now));
            let key = (place.0, key(number, &place.1));
            let (version, value) = (pending.version, pending.value.clone());
            operations.push(Operation { key, version, value });
        }
        tin.quiet_until = tin.pending.values().filter_map(again).min().unwrap_or(Time::NEVER);
        if !operations.is_empty() {
            out.push(Output::Program(Program { term: self.term, tin: number, operations }));
        }
    }
}
