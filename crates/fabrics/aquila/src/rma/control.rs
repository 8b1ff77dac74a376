//! What hosts' software does: congestion control, and trying again.
//!
//! Models: 1RMA as Aquila §3.4 uses it (M501, M511): hardware tells delays and failures at once, software decides. **Our
//! choice** (U37): for each destination a window of bytes, more by a step after each window of bytes whose delay is
//! below a target, less in proportion to what delay is above it, at most once in a delay, as Swift has it; an operation
//! that has failed by time is tried again after a while that doubles. An atomic one is not: it may have been done.

use std::collections::{BTreeMap, VecDeque};

use kernel::Slab;

use super::initiator::{Command, Done, Initiator, Landed};
use super::settings::Settings;
use super::{Access, Failure, Kind, Outcome};
use crate::cells::rma::{Operation, Status};
use crate::config;

/// Doublings of the time until a retry, at the most (our choice).
const DOUBLINGS_MAX: u8 = 6;
/// Least window: a small part of a segment goes every so many delays (our choice, as Swift's least window).
const WINDOW_MIN: f64 = 64.0;

/// How much may be under way to one destination.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// Unit: bytes.
    bytes: f64,
    most: f64,
    /// Until when it is not made smaller again. Unit: ps.
    cut_until: u64,
    /// The last delay. Unit: ps.
    delay: u64,
}

impl Window {
    fn new(settings: &Settings) -> Self {
        let most = f64::from(settings.window);
        Self { bytes: most, most, cut_until: 0, delay: 0 }
    }

    /// So many bytes took so long.
    fn hear(&mut self, (bytes, delay): (u32, u64), now: u64, keys: &config::Software) {
        let target = keys.target.as_ps();
        self.delay = delay;
        if delay <= target {
            let share = f64::from(bytes) / self.bytes.max(f64::from(bytes));
            let step = keys.increase.get() as f64 * share;
            self.bytes = (self.bytes + step).min(self.most);
        } else {
            let over = (delay - target) as f64 / delay as f64;
            self.cut(1.0 - keys.beta * over, now, keys);
        }
    }

    fn cut(&mut self, factor: f64, now: u64, keys: &config::Software) {
        if now >= self.cut_until {
            self.bytes = (self.bytes * factor.max(1.0 - keys.decrease_max)).max(WINDOW_MIN);
            self.cut_until = now + self.delay;
        }
    }
}

/// Operations to one destination.
#[derive(Clone, Debug)]
struct Line {
    queue: VecDeque<u32>,
    window: Window,
    /// Unit: bytes.
    open: u32,
    /// When the next may go, where the window is smaller than it. Unit: ps.
    not_before: u64,
    is_in_turn: bool,
}

/// What software waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Timer {
    /// An operation is tried again.
    Retry(u32),
    /// A destination may be asked again.
    Line(u32),
}

/// An operation.
#[derive(Clone, Copy, Debug)]
struct Open {
    access: Access,
    line: u32,
    failures: u8,
    /// When its owner asked for it. Unit: ps.
    since: u64,
}

/// The software of a host.
#[derive(Clone, Debug, Default)]
pub(super) struct Software {
    open: Slab<Open>,
    /// By destination.
    lines: Vec<Option<Box<Line>>>,
    /// Destinations that may be asked.
    turns: VecDeque<u32>,
    timers: BTreeMap<(u64, u64), Timer>,
    /// Timers so far.
    timed: u64,
    /// Commands that have ended, which software hears of at an instant, in ps.
    ended: VecDeque<(u64, Done)>,
}

impl Software {
    /// Takes an operation about the memory of a destination.
    pub(super) fn take(&mut self, access: &Access, line: u32, now: u64, settings: &Settings) {
        let operation = self.open.insert(Open { access: *access, line, failures: 0, since: now });
        if self.lines.len() <= line as usize {
            self.lines.resize(line as usize + 1, None);
        }
        self.lines[line as usize].get_or_insert_with(|| {
            let (queue, window) = (VecDeque::new(), Window::new(settings));
            Box::new(Line { queue, window, open: 0, not_before: 0, is_in_turn: false })
        });
        self.queue(operation);
    }

    fn queue(&mut self, operation: u32) {
        let line = self.open[operation as usize].line;
        if let Some(state) = &mut self.lines[line as usize] {
            state.queue.push_back(operation);
        }
        self.turn(line);
    }

    /// A destination may be asked, if there is something to ask for.
    fn turn(&mut self, line: u32) {
        let Some(state) = &mut self.lines[line as usize] else { return };
        if !state.is_in_turn && !state.queue.is_empty() {
            state.is_in_turn = true;
            self.turns.push_back(line);
        }
    }

    /// Hands operations to the hardware, destinations by turns, as far as windows and slots allow.
    pub(super) fn hand(&mut self, hardware: &mut Initiator, now: u64, settings: &Settings) {
        while hardware.has_slot(settings) {
            let Some(line) = self.turns.pop_front() else { return };
            let Some(state) = &mut self.lines[line as usize] else { continue };
            state.is_in_turn = false;
            let Some(&operation) = state.queue.front() else { continue };
            let length = self.open[operation as usize].access.length;
            let all = f64::from(state.open) + f64::from(length);
            if state.open > 0 && all > state.window.bytes {
                continue;
            }
            if now < state.not_before {
                let at = state.not_before;
                self.time(at, Timer::Line(line));
                continue;
            }
            if all > state.window.bytes {
                let part = f64::from(length) / state.window.bytes;
                state.not_before = now + (state.window.delay as f64 * part) as u64;
            }
            state.queue.pop_front();
            state.open += length;
            hardware.start(self.command(operation, settings), now, settings);
            self.turn(line);
        }
    }

    fn command(&self, operation: u32, settings: &Settings) -> Command {
        let access = &self.open[operation as usize].access;
        let (kind, operands) = match access.kind {
            Kind::Read => (Operation::Read, [0; 2]),
            Kind::Write => (Operation::Write, [0; 2]),
            Kind::CompareAndSwap { expected, new } => (Operation::CompareAndSwap, [expected, new]),
            Kind::FetchAndAdd(summand) => (Operation::FetchAndAdd, [summand, 0]),
        };
        Command {
            operation,
            to: access.to,
            kind,
            operands,
            length: access.length,
            grant: access.grant,
            offset: access.offset,
            local: access.local,
            half: access.half.unwrap_or(settings.half),
            watch: access.watch,
        }
    }

    /// What an operation that has not ended does.
    pub(super) fn access(&self, operation: u32) -> &Access {
        &self.open[operation as usize].access
    }

    /// Bytes of an operation have landed.
    pub(super) fn land(&mut self, landed: &Landed, bytes: u32, now: u64, settings: &Settings) {
        let line = self.open[landed.operation as usize].line;
        if let Some(state) = &mut self.lines[line as usize] {
            state.window.hear((bytes, landed.delay), now, &settings.software);
        }
        if let Some(done) = landed.done {
            self.close(landed.operation);
            self.ended.push_back((now + settings.completion, done));
        }
        self.turn(line);
    }

    /// An operation is no longer under way.
    fn close(&mut self, operation: u32) {
        let Open { line, access, .. } = self.open[operation as usize];
        if let Some(state) = &mut self.lines[line as usize] {
            state.open -= access.length;
        }
        self.turn(line);
    }

    /// A command has failed: why. What its owner is told, if it is not tried again.
    pub(super) fn fail(
        &mut self,
        (operation, why): (u32, Failure),
        now: u64,
        settings: &Settings,
    ) -> Option<Outcome> {
        self.close(operation);
        let keys = &settings.software;
        let Open { access, line, failures, .. } = self.open[operation as usize];
        let may_retry = !matches!(access.kind, Kind::CompareAndSwap { .. } | Kind::FetchAndAdd(_));
        if why == Failure::Late && may_retry && failures < keys.retries {
            if let Some(state) = &mut self.lines[line as usize] {
                state.window.cut(0.0, now, keys);
            }
            self.open[operation as usize].failures += 1;
            let wait = keys.backoff.as_ps() << failures.min(DOUBLINGS_MAX);
            self.time(now + wait, Timer::Retry(operation));
            return None;
        }
        self.open.release(operation);
        Some(Outcome::Failed { handle: access.handle, why, at: kernel::Time::from_ps(now) })
    }

    fn time(&mut self, at: u64, timer: Timer) {
        self.timers.insert((at, self.timed), timer);
        self.timed += 1;
    }

    /// Does what is due by now; whether an operation is tried again.
    pub(super) fn fire(&mut self, now: u64) -> u64 {
        let mut retries = 0;
        while let Some(first) = self.timers.first_entry().filter(|first| first.key().0 <= now) {
            match first.remove() {
                Timer::Retry(operation) => {
                    self.queue(operation);
                    retries += 1;
                }
                Timer::Line(line) => self.turn(line),
            }
        }
        retries
    }

    /// The next operation that has ended well, of which software knows by now.
    pub(super) fn next_end(&mut self, now: u64) -> Option<Outcome> {
        let &(at, done) = self.ended.front().filter(|(at, _)| *at <= now)?;
        self.ended.pop_front();
        let Open { access, failures, since, .. } = self.open[done.operation as usize];
        self.open.release(done.operation);
        let time = kernel::Time::from_ps;
        Some(Outcome::Done {
            handle: access.handle,
            since: time(since),
            handed: time(done.handed),
            at: time(at),
            retries: failures,
            value: done.value,
            is_damaged: done.is_damaged,
        })
    }

    /// When something is to be done next. Unit: ps.
    pub(super) fn next_instant(&self) -> Option<u64> {
        let timer = self.timers.first_key_value().map(|(&(at, _), _)| at);
        [timer, self.ended.front().map(|&(at, _)| at)].into_iter().flatten().min()
    }

    /// Operations that have not ended.
    pub(super) fn open(&self) -> usize {
        self.open.live()
    }
}

/// Why a target has refused, as its initiator is told.
pub(super) fn failure(status: Status) -> Failure {
    Failure::Refused(status)
}

#[cfg(test)]
mod tests {
    use kernel::Span;

    use super::*;

    fn window() -> (Window, config::Software) {
        let settings = Settings::new(&config::Rma::default(), 16);
        (Window::new(&settings), settings.software)
    }

    /// U37: below the target a window grows by its step each time as many bytes as it holds have come; above it, it
    /// shrinks by the share of delay that is too much, at most by half, and once in a delay.
    #[test]
    fn u37_windows_grow_by_steps_and_shrink_by_shares() {
        let (mut window, keys) = window();
        window.bytes = 16_384.0;
        let low = Span::from_us(4).as_ps();
        (0..4).for_each(|_| window.hear((4_096, low), 0, &keys));
        assert!((19_500.0..=20_480.0).contains(&window.bytes), "{}", window.bytes);
        (0..10_000).for_each(|_| window.hear((4_096, low), 0, &keys));
        assert_eq!(window.bytes, 65_536.0, "never more than the hardware's");
        // A fifth too much: 0.8 of that less.
        let high = Span::from_ns(12_500).as_ps();
        window.hear((4_096, high), 1, &keys);
        assert!((window.bytes - 65_536.0 * (1.0 - 0.8 * 0.2)).abs() < 1.0, "{}", window.bytes);
        let once = window.bytes;
        window.hear((4_096, high), 2, &keys);
        assert_eq!(window.bytes, once, "once in a delay");
        window.hear((4_096, 1_000 * high), high + 1, &keys);
        assert_eq!(window.bytes, once / 2.0, "half at the most");
        (1..100).for_each(|step| window.hear((1, 2 * high), 10_000 * step * high, &keys));
        assert_eq!(window.bytes, WINDOW_MIN);
    }
}
