//! The clock of a TiN, and the sets that it sends and takes (M911 to M915).

use super::clock::Clock;
use super::delay::{Measurement, Step, TIME_MASK};
use super::{Settings, cycles};
use crate::link::ordered_sets::OrderedSet;

/// Ports that a node may have.
const PORTS: usize = 64;
/// In a set's status: the time is that of the primary.
const LOCKED: u8 = 0x80;
/// The sender runs by itself.
const HOLDOVER: u8 = 0x40;
/// How many links the sender is from the primary.
const STRATUM: u8 = 0x0F;

/// How good a clock is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quality {
    /// It was never set.
    Free,
    /// It follows the primary, so many links away; at the primary itself 0.
    Locked(u8),
    /// It did, and has lost it: it runs by itself.
    Holdover,
}

impl Quality {
    /// As it stands in a set.
    #[must_use]
    pub const fn status(self) -> u8 {
        match self {
            Self::Free => 0,
            Self::Locked(stratum) => LOCKED | stratum & STRATUM,
            Self::Holdover => HOLDOVER,
        }
    }

    /// How far from the primary a set was sent, if it is to be applied; `None`: it is not.
    #[must_use]
    pub const fn applies(status: u8) -> Option<u8> {
        let stratum = status & STRATUM;
        if status & !STRATUM == LOCKED && stratum < STRATUM { Some(stratum) } else { None }
    }
}

/// What a node is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Nothing.
    Idle,
    /// Its time is everybody's.
    Primary,
    /// It takes the time from a port, and from no other (I91).
    Client(u8),
}

/// What comes to a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// Software configures it. The first set after that is applied however far off it is (M915).
    Configure {
        /// The number of the configuration: older ones are not taken any more.
        epoch: u32,
        /// What it is for.
        role: Role,
        /// The ports at which it passes the time on, a bit each.
        outputs: u64,
    },
    /// An ordered set has come in at a port.
    Set {
        /// The port.
        port: u8,
        /// Its bytes.
        bytes: [u8; 8],
    },
    /// Time has passed.
    Tick,
}

/// A set that waits for a gap between cells; [`Node::stamp`] makes bytes of it when it goes on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sending {
    /// The time.
    Time,
    /// A measurement of a number.
    Ask(u16),
    /// The answer to one.
    Answer {
        /// Its number.
        number: u16,
        /// What it said. Unit: ticks.
        ticks: u64,
        /// The cycle at which it was taken.
        since: u64,
    },
}

/// What a node wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// A set is to go out at a port.
    Send(u8, Sending),
    /// Software is to be told: the node has lost the time, or cannot measure its link.
    Fail,
}

/// What has happened so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Times that were applied.
    pub applied: u64,
    /// Times that were not, though they came at the right port.
    pub invalid: u64,
    /// Sets that came at other ports, or when nothing was expected.
    pub stray: u64,
    /// Bytes that are no set.
    pub unreadable: u64,
    /// Failures that were told.
    pub failures: u64,
}

/// The clock of a TiN.
#[derive(Clone, Debug)]
pub struct Node {
    interval: u64,
    threshold: i64,
    silence: u64,
    invalid_max: u8,
    samples: u8,
    clock: Clock,
    quality: Quality,
    role: Role,
    epoch: u32,
    outputs: u64,
    /// By port: what its link takes, once it was measured. Unit: ticks.
    delays: [Option<u64>; PORTS],
    measurement: Option<Measurement>,
    /// The number of the last measurement.
    number: u16,
    /// Whether the next time is applied however far off it is.
    is_new: bool,
    invalid: u8,
    has_failed: bool,
    /// When something was applied, or the node was configured. Unit: cycles.
    heard: u64,
    /// When it last sent. Unit: cycles.
    sent: u64,
    counts: Counts,
}

impl Node {
    /// A clock that was never set.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            interval: cycles(settings.interval).max(1),
            threshold: cycles(settings.threshold) as i64,
            silence: cycles(settings.silence).max(1),
            invalid_max: settings.invalid_max.max(1),
            samples: settings.samples,
            clock: Clock::default(),
            quality: Quality::Free,
            role: Role::Idle,
            epoch: 0,
            outputs: 0,
            delays: [None; PORTS],
            measurement: None,
            number: 0,
            is_new: false,
            invalid: 0,
            has_failed: false,
            heard: 0,
            sent: 0,
            counts: Counts::default(),
        }
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// How good it is.
    #[must_use]
    pub fn quality(&self) -> Quality {
        self.quality
    }

    /// The configuration that it has.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// What the link at a port was measured to take, with what is added for waiting (see the module `delay`). Unit: ticks.
    #[must_use]
    pub fn delay(&self, port: u8) -> Option<u64> {
        *self.delays.get(usize::from(port))?
    }

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The cycle at which it wants to be told that time has passed.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        let sends = self.outputs != 0 && self.quality != Quality::Free;
        let listens = matches!(self.role, Role::Client(_)) && !self.has_failed;
        let send = sends.then_some(self.sent + self.interval);
        let silent = listens.then_some(self.heard + self.silence);
        let measure = self.measurement.as_ref().map(|measurement| measurement.due);
        [send, silent, measure].into_iter().flatten().min()
    }

    /// The bytes of a set that goes on the wire at a cycle: it says the time of that, however long it waited (M914).
    #[must_use]
    pub fn stamp(&self, sending: Sending, cycle: u64) -> [u8; 8] {
        let set = match sending {
            Sending::Time => {
                OrderedSet::TimeSync { status: self.quality.status(), ticks: self.clock.at(cycle) }
            }
            Sending::Ask(number) => {
                OrderedSet::Latency { is_answer: false, number, ticks: cycle & TIME_MASK }
            }
            Sending::Answer { number, ticks, since } => {
                let ticks = ticks.wrapping_add(cycle.wrapping_sub(since)) & TIME_MASK;
                OrderedSet::Latency { is_answer: true, number, ticks }
            }
        };
        set.encode()
    }

    /// Something comes at a cycle, which does not go back.
    pub fn step(&mut self, cycle: u64, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Configure { epoch, role, outputs } => {
                self.configure(cycle, epoch, role, outputs, out);
            }
            Input::Set { port, bytes } => match OrderedSet::decode(bytes) {
                Ok(OrderedSet::TimeSync { status, ticks }) => {
                    self.take_time(cycle, port, status, ticks, out);
                }
                Ok(OrderedSet::Latency { is_answer: false, number, ticks }) => {
                    out.push(Output::Send(port, Sending::Answer { number, ticks, since: cycle }));
                }
                Ok(OrderedSet::Latency { is_answer: true, number, ticks }) => {
                    self.take_answer(cycle, port, number, ticks);
                }
                Ok(_) => self.counts.stray += 1,
                Err(_) => self.counts.unreadable += 1,
            },
            Input::Tick => self.tick(cycle, out),
        }
    }

    fn configure(
        &mut self,
        cycle: u64,
        epoch: u32,
        role: Role,
        outputs: u64,
        out: &mut Vec<Output>,
    ) {
        if epoch <= self.epoch {
            return;
        }
        (self.epoch, self.role, self.outputs) = (epoch, role, outputs);
        (self.is_new, self.invalid, self.has_failed) = (true, 0, false);
        self.heard = cycle;
        self.measurement = None;
        match role {
            Role::Idle => {}
            Role::Primary => {
                self.quality = Quality::Locked(0);
                self.send_time(cycle, out);
            }
            Role::Client(port) => {
                if self.quality != Quality::Free {
                    self.quality = Quality::Holdover;
                }
                if self.delay(port).is_none() {
                    self.measurement =
                        Some(Measurement::new(port, self.samples, self.number, cycle));
                    self.tick(cycle, out);
                }
            }
        }
    }

    fn take_time(&mut self, cycle: u64, port: u8, status: u8, ticks: u64, out: &mut Vec<Output>) {
        let (true, Some(delay)) = (self.role == Role::Client(port), self.delay(port)) else {
            self.counts.stray += 1;
            return;
        };
        let off = self.clock.off(cycle, ticks.wrapping_add(delay));
        let stratum = Quality::applies(status);
        let is_near = self.is_new || off.abs() <= self.threshold;
        let (Some(stratum), true) = (stratum, is_near) else {
            self.counts.invalid += 1;
            self.invalid = self.invalid.saturating_add(1);
            if self.invalid == self.invalid_max {
                self.fail(out);
            }
            return;
        };
        self.clock.adjust(off);
        self.counts.applied += 1;
        (self.is_new, self.invalid, self.has_failed) = (false, 0, false);
        self.heard = cycle;
        self.quality = Quality::Locked(stratum + 1);
        self.send_time(cycle, out);
    }

    fn take_answer(&mut self, cycle: u64, port: u8, number: u16, ticks: u64) {
        let Some(measurement) = self.measurement.as_mut().filter(|one| one.port == port) else {
            self.counts.stray += 1;
            return;
        };
        if let Step::Done(delay) = measurement.answer(number, ticks, cycle) {
            self.number = measurement.next_number();
            self.delays[usize::from(port) % PORTS] = Some(delay);
            self.measurement = None;
            // From here on it may hear the time.
            self.heard = cycle;
        }
    }

    fn tick(&mut self, cycle: u64, out: &mut Vec<Output>) {
        if let Some(measurement) = &mut self.measurement {
            match measurement.tick(cycle) {
                Step::Ask(number) => out.push(Output::Send(measurement.port, Sending::Ask(number))),
                Step::Failed => {
                    self.number = measurement.next_number();
                    self.measurement = None;
                    self.fail(out);
                }
                Step::Done(_) | Step::Wait => {}
            }
        }
        let listens = matches!(self.role, Role::Client(_)) && !self.has_failed;
        if listens && cycle >= self.heard + self.silence {
            self.fail(out);
        }
        let sends = self.outputs != 0 && self.quality != Quality::Free;
        if sends && cycle >= self.sent + self.interval {
            self.send_time(cycle, out);
        }
    }

    /// It has lost the time: from now on it runs by itself, and says so.
    fn fail(&mut self, out: &mut Vec<Output>) {
        if self.quality != Quality::Free {
            self.quality = Quality::Holdover;
        }
        self.has_failed = true;
        self.counts.failures += 1;
        out.push(Output::Fail);
    }

    fn send_time(&mut self, cycle: u64, out: &mut Vec<Output>) {
        self.sent = cycle;
        let ports = switching::ones(self.outputs);
        out.extend(ports.map(|port| Output::Send(port as u8, Sending::Time)));
    }
}
