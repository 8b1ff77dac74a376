//! One window after the other: on one thread, and the part of one thread of several.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::mail::{Mail, Outbox};
use super::signal::{Barrier, Broken, Padded};
use super::{Counts, NEVER, Shard, Stop, Tell, Windows};

/// A shard with what the driver keeps for it. Alone on its cache lines: two threads that share one lose a
/// third of their speed.
#[repr(align(128))]
#[derive(Debug)]
pub(super) struct Place<S: Shard> {
    pub(super) shard: S,
    pub(super) index: usize,
    pub(super) out: Outbox<S::Message>,
}

impl<S: Shard> Place<S> {
    pub(super) fn new(shard: S, index: usize, count: usize) -> Self {
        Self { shard, index, out: Outbox::new(count) }
    }

    fn run(&mut self, end: u64) -> u64 {
        self.out.begin();
        self.shard.run(end, &mut self.out)
    }
}

/// How far to run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    pub(super) until: u64,
    pub(super) windows: Windows,
    /// The end of the first window.
    pub(super) end: u64,
}

/// What a run came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) stop: Stop,
    pub(super) counts: Counts,
}

/// Why a run ends after a window, if it does: when the next thing to do is at `first`.
fn stop_of(first: u64, paused: Option<u64>, until: u64) -> Option<Stop> {
    match paused {
        Some(end) => Some(Stop::Paused(end)),
        None if first == NEVER => Some(Stop::Idle),
        None => (first >= until).then_some(Stop::Reached),
    }
}

/// Hands reports to the caller, in order, if there are any. Whether it asked to stop.
fn tell_all<R: Ord>(reports: &mut Vec<R>, end: u64, tell: Tell<'_, R>) -> bool {
    reports.sort_unstable();
    let is_break = tell(reports, end).is_break();
    reports.clear();
    is_break
}

/// Runs all shards on the caller's thread.
pub(super) fn run_alone<S: Shard>(
    places: &mut [Box<Place<S>>],
    goal: Goal,
    reports: &mut Vec<S::Report>,
    tell: Tell<'_, S::Report>,
) -> Ended {
    let Goal { until, windows, mut end } = goal;
    let mut counts = Counts::default();
    loop {
        let (mut events, mut most) = (0, 0);
        for place in places.iter_mut() {
            let own = place.run(end);
            (events, most) = (events + own, own.max(most));
            place.shard.report(reports);
            counts.messages += place.out.count();
        }
        counts.windows += 1;
        counts.events += events;
        counts.busiest += events;
        counts.busiest_shard += most;
        // All have run: what they sent is taken at once.
        for from in 0..places.len() {
            for to in (0..places.len()).filter(|&to| to != from) {
                let mut messages = std::mem::take(places[from].out.messages_to(to));
                if !messages.is_empty() {
                    places[to].shard.take(&mut messages);
                    messages.clear();
                }
                *places[from].out.messages_to(to) = messages;
            }
        }
        let paused = (!reports.is_empty() && tell_all(reports, end, tell)).then_some(end);
        let first = places.iter().map(|place| place.shard.next()).min().unwrap_or(NEVER);
        if let Some(stop) = stop_of(first, paused, until) {
            return Ended { stop, counts };
        }
        end = windows.end(first, until);
    }
}

/// What a thread tells the others at the end of a window.
#[derive(Debug, Default)]
struct Board {
    /// Its next thing to do, or the first arrival of what it sent.
    first: AtomicU64,
    events: AtomicU64,
    /// Of the shard with most to do.
    most: AtomicU64,
    reports: AtomicBool,
}

/// What all threads share.
#[derive(Debug)]
pub(super) struct Shared<S: Shard> {
    mail: Mail<S::Message>,
    /// Reports of the window that has just ended.
    reports: Mutex<Vec<S::Report>>,
    /// The caller asked to stop.
    is_paused: AtomicBool,
}

impl<S: Shard> Shared<S> {
    pub(super) fn new(shards: usize) -> Self {
        Self {
            mail: Mail::new(shards),
            reports: Mutex::default(),
            is_paused: AtomicBool::new(false),
        }
    }
}

/// What threads meet with.
#[derive(Debug)]
pub(super) struct Meeting {
    pub(super) barrier: Barrier,
    /// `[parity * threads + thread]`.
    boards: Vec<Padded<Board>>,
    threads: usize,
}

impl Meeting {
    pub(super) fn new(threads: usize) -> Self {
        Self {
            barrier: Barrier::new(threads),
            boards: (0..2 * threads).map(|_| Padded::default()).collect(),
            threads,
        }
    }

    /// The boards of a window.
    fn boards(&self, parity: usize) -> &[Padded<Board>] {
        &self.boards[parity * self.threads..][..self.threads]
    }
}

/// What the caller's thread tells reports with.
pub(super) struct Teller<'a, R> {
    pub(super) reports: &'a mut Vec<R>,
    pub(super) tell: Tell<'a, R>,
}

/// Runs the shards of one thread of several; all threads do the same at the same time. The first thread,
/// the caller's, tells the reports. Counts are those of all threads, except messages.
pub(super) fn run_part<S: Shard>(
    thread: usize,
    places: &mut [Box<Place<S>>],
    goal: Goal,
    (shared, meeting): (&Shared<S>, &Meeting),
    mut teller: Option<Teller<'_, S::Report>>,
) -> Result<Ended, Broken> {
    let Goal { until, windows, mut end } = goal;
    let (mut counts, mut own_reports) = (Counts::default(), Vec::new());
    for round in 0_usize.. {
        let parity = round % 2;
        let board = &meeting.boards(parity)[thread].0;
        let (mut first, mut events, mut most) = (NEVER, 0, 0);
        for place in places.iter_mut() {
            if round > 0 {
                let Place { shard, index, .. } = &mut **place;
                shared.mail.fetch(1 - parity, *index, |messages| shard.take(messages));
            }
            let own = place.run(end);
            (events, most) = (events + own, own.max(most));
            place.shard.report(&mut own_reports);
            counts.messages += place.out.count();
            first = first.min(place.shard.next()).min(place.out.earliest());
            shared.mail.post(parity, place.index, &mut place.out);
        }
        board.first.store(first, Ordering::Relaxed);
        board.events.store(events, Ordering::Relaxed);
        board.most.store(most, Ordering::Relaxed);
        board.reports.store(!own_reports.is_empty(), Ordering::Relaxed);
        if !own_reports.is_empty() {
            let mut all = shared.reports.lock().unwrap_or_else(PoisonError::into_inner);
            all.append(&mut own_reports);
        }
        meeting.barrier.meet()?;
        let (mut has_reports, mut busiest, mut all) = (false, 0, 0);
        (first, most) = (NEVER, 0);
        for Padded(board) in meeting.boards(parity) {
            first = first.min(board.first.load(Ordering::Relaxed));
            let events = board.events.load(Ordering::Relaxed);
            (busiest, all) = (events.max(busiest), all + events);
            most = most.max(board.most.load(Ordering::Relaxed));
            has_reports |= board.reports.load(Ordering::Relaxed);
        }
        counts.windows += 1;
        counts.busiest += busiest;
        counts.busiest_shard += most;
        counts.events += all;
        let mut paused = None;
        if has_reports {
            if let Some(Teller { reports, tell }) = &mut teller {
                let mut all = shared.reports.lock().unwrap_or_else(PoisonError::into_inner);
                reports.append(&mut all);
                drop(all);
                shared.is_paused.store(tell_all(reports, end, *tell), Ordering::Relaxed);
            }
            meeting.barrier.meet()?;
            paused = shared.is_paused.load(Ordering::Relaxed).then_some(end);
        }
        if let Some(stop) = stop_of(first, paused, until) {
            // Nothing stays in the mail between two runs.
            for place in places.iter_mut() {
                let Place { shard, index, .. } = &mut **place;
                shared.mail.fetch(parity, *index, |messages| shard.take(messages));
            }
            return Ok(Ended { stop, counts });
        }
        end = windows.end(first, until);
    }
    Err(Broken)
}
