//! Operations without applications: traffic that does not wait, to measure remote memory and the fabric with.
//!
//! Every host that asks does so at random instants; what becomes of each operation is written down.

use std::collections::VecDeque;

use kernel::{Bytes, Rate, Span, Stream, Time};

use super::{Access, Counts, Engine, Failure, Grant, Kind, NEVER, Outcome, Permissions};
use crate::address::Address;
use crate::config::Rma;
use crate::link::classes::Half;
use crate::switch::cell::{Cell, Watch};
use crate::switch::settings::TICK;
use crate::switch::{Endpoints, Room, Switches, Wishes};
use crate::topology::Shape;

/// Memory that each host has registered. Unit: bytes.
const MEMORY: u64 = 1 << 30;
/// The process that asks.
const KEY: u32 = 1;

/// An operation, and what became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Issue {
    /// Who asks: TiN and host.
    pub from: (u16, usize),
    /// What for.
    pub access: Access,
    /// When.
    pub at: Time,
    /// What became of it.
    pub end: Option<End>,
}

/// What became of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It is done.
    Done {
        /// When software handed it to the hardware, the last time.
        handed: Time,
        /// When software knew.
        at: Time,
        /// How often it was tried again.
        retries: u8,
        /// What an atomic operation found.
        value: u64,
        /// Whether bits of it were flipped.
        is_damaged: bool,
    },
    /// It has failed.
    Failed(Failure),
}

impl Issue {
    /// From the hardware's having it until it says that it is done: total execution latency (§5.1). `None` if it is not
    /// done.
    #[must_use]
    pub fn execution(&self) -> Option<Span> {
        match self.end {
            Some(End::Done { handed, at, .. }) => Some(at - handed),
            _ => None,
        }
    }
}

/// Traffic that hosts offer by themselves.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Traffic {
    /// What they do.
    pub kind: Kind,
    /// How much at a time. Unit: bytes.
    pub length: u32,
    /// Rate offered by a host: bytes of memory.
    pub rate: Rate,
    /// The half of the channels that it takes, if not the one configured.
    pub half: Option<Half>,
    /// Nothing is asked for at or after this instant.
    pub until: Time,
}

#[derive(Clone, Debug, Default)]
struct Source {
    due: VecDeque<u32>,
    next: u64,
}

/// The endpoints.
#[derive(Clone, Debug)]
pub struct OpenLoop {
    shape: Shape,
    engine: Engine,
    grants: Vec<Grant>,
    traffic: Option<Traffic>,
    /// Hosts that ask, and that are asked.
    peers: Vec<(u16, usize)>,
    /// By host: two a TiN.
    sources: Vec<Source>,
    streams: Vec<Stream>,
    issues: Vec<Issue>,
}

impl OpenLoop {
    /// Nothing to do at `own` TiNs of a Clique, every host of which has memory. `hops` is what switches let cells pass.
    #[must_use]
    pub fn new(shape: &Shape, rma: &Rma, own: &[u16], hops: u8, seed: u64) -> Self {
        let hosts = || (0..shape.tins()).flat_map(|tin| [(tin, 0), (tin, 1)]);
        let mut engine = Engine::new(rma, shape, own, hops, seed);
        let grant = |(tin, host): (u16, usize)| {
            // Another part's memory has the same secrets: they are made from the seed.
            let mut memory = engine.memory_of(tin, host, seed);
            let region = memory.register(0, MEMORY, Permissions::ALL).expect("the first region");
            memory.grant(region, KEY).expect("it is registered")
        };
        let grants = hosts().map(grant).collect();
        for (tin, host) in hosts().filter(|(tin, _)| own.contains(tin)) {
            let _ = engine.memory(tin, host).register(0, MEMORY, Permissions::ALL);
        }
        let stream = |(tin, host): (u16, usize)| {
            Stream::new(seed, "aquila/memory", 2 * u64::from(tin) + host as u64)
        };
        Self {
            shape: *shape,
            engine,
            grants,
            traffic: None,
            peers: hosts().collect(),
            sources: hosts().map(|_| Source::default()).collect(),
            streams: hosts().map(stream).collect(),
            issues: Vec::new(),
        }
    }

    /// Lets these hosts ask each other from now on; to be followed by [`OpenLoop::begin`] at each TiN.
    pub fn set_traffic(&mut self, traffic: Traffic, peers: Vec<(u16, usize)>) {
        self.traffic = Some(traffic);
        self.peers = peers;
    }

    /// Begins at a TiN, at time zero.
    pub fn begin(&mut self, tin: u16, wishes: &mut Wishes) {
        for host in 0..2 {
            self.sources[place(tin, host)].next = NEVER;
            if self.peers.contains(&(tin, host)) {
                self.schedule((tin, host), 0, wishes);
            }
        }
    }

    /// Lets a host ask for something at `at`. What a host asks for in order of time.
    pub fn ask(&mut self, issue: Issue, wishes: &mut Wishes) {
        let handle = self.issues.len() as u32;
        let access = Access { handle, ..issue.access };
        self.sources[place(issue.from.0, issue.from.1)].due.push_back(handle);
        self.issues.push(Issue { access, ..issue });
        wishes.wake_at(issue.at);
    }

    /// Something that a host does with another's memory, from the first byte on, as configured.
    #[must_use]
    pub fn access(&self, (tin, host): (u16, usize), kind: Kind, length: u32) -> Access {
        let (to, grant) = (self.engine.address(tin, host), self.grants[place(tin, host)]);
        let (offset, local) = (0, 0);
        Access { handle: 0, to, kind, length, grant, offset, local, half: None, watch: Watch::NONE }
    }

    /// All operations so far, in the order in which they were drawn.
    #[must_use]
    pub fn issues(&self) -> &[Issue] {
        &self.issues
    }

    /// What the engine counts.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.engine.counts()
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The engine, for what its hosts' memory holds.
    pub fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    fn schedule(&mut self, (tin, host): (u16, usize), now: u64, wishes: &mut Wishes) {
        let Some(traffic) = self.traffic else { return };
        let gap = traffic.rate.send_time(Bytes::new(traffic.length.into()));
        let stream = &mut self.streams[place(tin, host)];
        let next = now + (stream.exponential(gap.as_ps() as f64) as u64).max(1);
        let is_over = next >= traffic.until.as_ps();
        self.sources[place(tin, host)].next = if is_over { NEVER } else { next };
        if !is_over {
            wishes.wake_at(Time::from_ps(next));
        }
    }

    fn draw(&mut self, traffic: &Traffic, from: (u16, usize), at: u64) -> Issue {
        let stream = &mut self.streams[place(from.0, from.1)];
        let to = loop {
            let peer = self.peers[stream.below(self.peers.len() as u64) as usize];
            if peer != from {
                break peer;
            }
        };
        let offset = stream.below((MEMORY - u64::from(traffic.length)) / 8) * 8;
        let access = self.access(to, traffic.kind, traffic.length);
        let access = Access { offset, half: traffic.half, ..access };
        Issue { from, access, at: Time::from_ps(at), end: None }
    }

    fn settle(&mut self) {
        while let Some((_, outcome)) = self.engine.next_outcome() {
            let (handle, end) = match outcome {
                Outcome::Done { handle, handed, at, retries, value, is_damaged, .. } => {
                    (handle, End::Done { handed, at, retries, value, is_damaged })
                }
                Outcome::Failed { handle, why, .. } => (handle, End::Failed(why)),
            };
            let issue = &mut self.issues[handle as usize];
            assert!(issue.end.is_none(), "I61: {issue:?} ends again: {end:?}");
            issue.end = Some(end);
        }
    }

    fn ask_due(&mut self, tin: u16, host: usize, wishes: &mut Wishes) {
        let end = wishes.now().as_ps() + TICK.as_ps();
        let own = place(tin, host);
        if let Some(traffic) = self.traffic {
            while self.sources[own].next < end {
                let at = self.sources[own].next;
                let issue = self.draw(&traffic, (tin, host), at);
                self.ask(issue, wishes);
                self.schedule((tin, host), at, wishes);
            }
        }
        while let Some(&number) = self.sources[own].due.front() {
            let issue = self.issues[number as usize];
            if issue.at.as_ps() >= end {
                break;
            }
            self.sources[own].due.pop_front();
            self.engine.submit(tin, host, &issue.access, wishes);
        }
    }
}

/// The number of a host among all.
fn place(tin: u16, host: usize) -> usize {
    2 * usize::from(tin) + host
}

impl Endpoints for OpenLoop {
    fn deliver(&mut self, tin: u16, terminal: u8, cell: &Cell, at: Time, wishes: &mut Wishes) {
        let to = Address::from_bits(cell.to);
        debug_assert_eq!(self.shape.tin(to.pod(), to.tin()), tin, "a cell at the wrong TiN");
        self.engine.deliver(tin, terminal, cell, at, wishes);
        self.settle();
    }

    fn inject(
        &mut self,
        tin: u16,
        terminal: u8,
        room: Room<'_>,
        wishes: &mut Wishes,
    ) -> Option<Cell> {
        self.engine.inject(tin, terminal, room, wishes)
    }

    fn wake(&mut self, tin: u16, wishes: &mut Wishes) {
        (0..2).for_each(|host| self.ask_due(tin, host, wishes));
        self.engine.wake(tin, wishes);
        self.settle();
    }

    fn run(switches: &mut Switches<Self>, end: Time) {
        switches.advance(end);
    }
}

/// Execution latencies of operations that were asked for within `from..until` and are done, shortest first.
#[must_use]
pub fn latencies(issues: &[Issue], from: Time, until: Time) -> Vec<Span> {
    let is_within = |issue: &&Issue| (from..until).contains(&issue.at);
    let mut found: Vec<_> = issues.iter().filter(is_within).filter_map(Issue::execution).collect();
    found.sort_unstable();
    found
}

/// Bytes of memory that were read, written or changed within `from..until`, as a rate of all hosts together.
#[must_use]
pub fn achieved(issues: &[Issue], from: Time, until: Time) -> Rate {
    let bytes = issues.iter().map(|issue| match issue.end {
        Some(End::Done { at, .. }) if (from..until).contains(&at) => issue.access.length.into(),
        _ => 0,
    });
    let bits = bytes.sum::<u64>() as f64 * 8.0;
    Rate::from_bps((bits / (until - from).as_seconds()) as u64)
}
