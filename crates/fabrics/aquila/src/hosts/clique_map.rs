//! A store of keys and values that clients read by remote memory: CliqueMap.
//!
//! Models: Aquila §5.1, §5.2 (Figs. 8, 9, 11). **Our choice** (U41): a lookup takes the client
//! some time, reads a bucket of the index, then the value, which depends on it, and checks that. With three replicas
//! it reads three buckets, waits until most agree, and takes the value from the first that answered. A client that
//! sleeps until an answer is there takes some time to wake (§6: that is what legacy applications wait for); one that
//! polls, none. Lookups come at random instants, whether earlier ones have ended or not.

use std::collections::{BTreeMap, VecDeque};

use kernel::{Span, Stream, Time};
use packets::config::Law;

use crate::config::Rma;
use crate::rma::{Access, Counts, Engine, Grant, Kind, Outcome, Permissions};
use crate::switch::cell::{Cell, Watch};
use crate::switch::settings::TICK;
use crate::switch::{Endpoints, Room, Switches, Wishes};
use crate::topology::Shape;

/// A host: its TiN, and which of the two there.
pub type Host = (u16, usize);

/// What a lookup is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    /// A value. Unit: bytes (§5.1: 4 KB).
    pub value: u32,
    /// A bucket of the index. Unit: bytes (C.1: 1 KB).
    pub bucket: u32,
    /// 1, or 3 of which most must agree.
    pub replicas: u8,
    /// What a lookup takes the client before it reads anything (C.1: 1 us).
    pub client: Span,
    /// What it takes to check the value (C.1: 0.3 us).
    pub check: Span,
    /// Threads of a client: so many lookups take it time at once (our choice: 4).
    pub threads: usize,
    /// What a thread takes to wake when its answer is there; zero: it polls.
    pub wake_up: Span,
    /// How that is distributed.
    pub law: Law,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            value: 4_096,
            bucket: 1_024,
            replicas: 1,
            client: Span::from_ns(1_000),
            check: Span::from_ns(300),
            threads: 4,
            wake_up: Span::ZERO,
            law: Law::Fixed,
        }
    }
}

/// Lookups that clients do by themselves.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Load {
    /// Lookups of a client a second.
    pub rate: f64,
    /// None comes at or after this instant.
    pub until: Time,
}

/// A lookup, and what became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lookup {
    /// Whose.
    pub client: Host,
    /// When it was asked for.
    pub at: Time,
    /// When it was done; `None`: not yet, or never.
    pub end: Option<Time>,
    /// Total execution latency of the reads that it waited for.
    pub execution: Span,
    /// Whether one of its reads failed.
    pub has_failed: bool,
    /// The first of its replicas, among backends.
    backend: u32,
    /// Replicas whose buckets are there, and the first of them.
    buckets: u8,
    first: u8,
}

/// What a client does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// It reads buckets.
    Buckets,
    /// It reads the value.
    Value,
    /// It checks the value.
    Check,
    /// It is done.
    End,
}

/// What there is of a client.
#[derive(Clone, Debug)]
struct Client {
    /// When its threads have time. Unit: ps.
    threads: Vec<u64>,
    stream: Stream,
    /// When its next lookup comes. Unit: ps.
    next: u64,
}

/// Clients and backends.
#[derive(Clone, Debug)]
pub struct CliqueMap {
    settings: Settings,
    load: Load,
    engine: Engine,
    backends: Vec<(Host, Grant)>,
    clients: BTreeMap<Host, Client>,
    lookups: Vec<Lookup>,
    /// By TiN: what is to be done there, and when, in ps.
    steps: Vec<BTreeMap<(u64, u32), Step>>,
    /// Steps to be put where they belong.
    ready: VecDeque<(u64, u32, Step)>,
}

/// No instant.
const NEVER: u64 = u64::MAX;
/// Reads of a lookup that a handle tells apart: three buckets and the value.
const READS: u32 = 4;
/// Memory of a backend. Unit: bytes.
const MEMORY: u64 = 1 << 30;

impl CliqueMap {
    /// These clients and backends in a Clique, idle. `hops` is what switches let cells pass.
    #[must_use]
    pub fn new(
        (shape, rma, hops): (&Shape, &Rma, u8),
        (settings, load): (Settings, Load),
        (clients, backends): (&[Host], &[Host]),
        seed: u64,
    ) -> Self {
        let own: Vec<u16> = (0..shape.tins()).collect();
        let mut engine = Engine::new(rma, shape, &own, hops, seed);
        let mut open = |&(tin, host): &Host| {
            let memory = engine.memory(tin, host);
            let region = memory.register(0, MEMORY, Permissions::READ).expect("the first");
            ((tin, host), memory.grant(region, 1).expect("it is registered"))
        };
        let backends = backends.iter().map(&mut open).collect();
        let client = |&(tin, host): &Host| {
            let stream = Stream::new(seed, "aquila/lookups", 2 * u64::from(tin) + host as u64);
            let threads = vec![0; settings.threads.max(1)];
            ((tin, host), Client { threads, stream, next: NEVER })
        };
        Self {
            settings,
            load,
            engine,
            backends,
            clients: clients.iter().map(client).collect(),
            lookups: Vec::new(),
            steps: vec![BTreeMap::new(); own.len()],
            ready: VecDeque::new(),
        }
    }

    /// Begins at a TiN, at time zero.
    pub fn begin(&mut self, tin: u16, wishes: &mut Wishes) {
        (0..2).for_each(|host| self.schedule((tin, host), 0, wishes));
    }

    /// All lookups so far, in the order in which they came.
    #[must_use]
    pub fn lookups(&self) -> &[Lookup] {
        &self.lookups
    }

    /// What remote memory counts.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.engine.counts()
    }

    /// Remote memory.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    fn schedule(&mut self, client: Host, now: u64, wishes: &mut Wishes) {
        let (load, Some(state)) = (self.load, self.clients.get_mut(&client)) else { return };
        let next = now + (state.stream.exponential(1e12 / load.rate) as u64).max(1);
        state.next = if next < load.until.as_ps() { next } else { NEVER };
        if state.next != NEVER {
            wishes.wake_at(Time::from_ps(next));
        }
    }

    /// A thread of a client works for some time from `at` on: when it is done. Unit: ps.
    fn work(&mut self, client: Host, at: u64, time: Span) -> u64 {
        let Some(state) = self.clients.get_mut(&client) else { return at };
        let free = state.threads.iter_mut().min().expect("there is one at least");
        *free = at.max(*free) + time.as_ps();
        *free
    }

    /// A new lookup of a client.
    fn look_up(&mut self, client: Host, at: u64) {
        let Some(state) = self.clients.get_mut(&client) else { return };
        let backend = loop {
            let drawn = state.stream.below(self.backends.len() as u64) as u32;
            if self.backends[drawn as usize].0 != client || self.backends.len() == 1 {
                break drawn;
            }
        };
        let number = self.lookups.len() as u32;
        self.lookups.push(Lookup {
            client,
            at: Time::from_ps(at),
            end: None,
            execution: Span::ZERO,
            has_failed: false,
            backend,
            buckets: 0,
            first: 0,
        });
        let begun = self.work(client, at, self.settings.client);
        self.ready.push_back((begun, number, Step::Buckets));
    }

    /// Reads something for a lookup.
    fn read(&mut self, number: u32, (replica, part): (u8, u32), length: u32, wishes: &mut Wishes) {
        let lookup = &self.lookups[number as usize];
        let place = (lookup.backend as usize + usize::from(replica)) % self.backends.len();
        let ((tin, host), grant) = self.backends[place];
        let access = Access {
            handle: number * READS + part,
            to: self.engine.address(tin, host),
            kind: Kind::Read,
            length,
            grant,
            offset: 0,
            local: 0,
            half: None,
            watch: Watch::NONE,
        };
        let (tin, host) = lookup.client;
        self.engine.submit(tin, host, &access, wishes);
    }

    /// Does a step of a lookup.
    fn step(&mut self, number: u32, step: Step, at: u64, wishes: &mut Wishes) {
        let Settings { value, bucket, replicas, check, .. } = self.settings;
        match step {
            Step::Buckets => (0..replicas).for_each(|replica| {
                self.read(number, (replica, replica.into()), bucket, wishes);
            }),
            Step::Value => {
                let first = self.lookups[number as usize].first;
                self.read(number, (first, READS - 1), value, wishes);
            }
            Step::Check => {
                let done = self.work(self.lookups[number as usize].client, at, check);
                self.ready.push_back((done, number, Step::End));
            }
            Step::End => self.lookups[number as usize].end = Some(Time::from_ps(at)),
        }
    }

    /// Hears what has become of reads.
    fn settle(&mut self) {
        while let Some((_, outcome)) = self.engine.next_outcome() {
            let (handle, done) = match outcome {
                Outcome::Done { handle, handed, at, .. } => (handle, Some((at, at - handed))),
                Outcome::Failed { handle, .. } => (handle, None),
            };
            let (number, part) = (handle / READS, handle % READS);
            let lookup = &mut self.lookups[number as usize];
            let Some((at, took)) = done else {
                lookup.has_failed = true;
                continue;
            };
            let is_value = part == READS - 1;
            if !is_value {
                lookup.first = if lookup.buckets == 0 { part as u8 } else { lookup.first };
                lookup.buckets += 1;
                if lookup.buckets != self.settings.replicas / 2 + 1 {
                    continue;
                }
            }
            lookup.execution += took;
            let client = lookup.client;
            let step = if is_value { Step::Check } else { Step::Value };
            let awake = at.as_ps() + self.wake_up(client);
            self.ready.push_back((awake, number, step));
        }
    }

    /// How long a client's thread takes to wake. Unit: ps.
    fn wake_up(&mut self, client: Host) -> u64 {
        let Settings { law, wake_up, .. } = self.settings;
        let state = self.clients.get_mut(&client);
        state.map_or(wake_up, |state| law.draw(wake_up, &mut state.stream)).as_ps()
    }

    /// Puts steps where they belong.
    fn put(&mut self, wishes: &mut Wishes) {
        while let Some((at, number, step)) = self.ready.pop_front() {
            let tin = usize::from(self.lookups[number as usize].client.0);
            self.steps[tin].insert((at, number), step);
            wishes.wake_at(Time::from_ps(at.next_multiple_of(TICK.as_ps())));
        }
    }
}

impl Endpoints for CliqueMap {
    fn deliver(&mut self, tin: u16, terminal: u8, cell: &Cell, at: Time, wishes: &mut Wishes) {
        self.engine.deliver(tin, terminal, cell, at, wishes);
        self.settle();
        self.put(wishes);
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
        let now = wishes.now().as_ps();
        for host in 0..2 {
            let next = |map: &Self| map.clients.get(&(tin, host)).map_or(NEVER, |one| one.next);
            while next(self) < now + TICK.as_ps() {
                let at = next(self);
                self.look_up((tin, host), at);
                self.schedule((tin, host), at, wishes);
            }
        }
        self.engine.wake(tin, wishes);
        self.settle();
        self.put(wishes);
        while let Some(first) = self.steps[usize::from(tin)].first_entry() {
            if first.key().0 > now {
                break;
            }
            let ((at, number), step) = first.remove_entry();
            self.step(number, step, at, wishes);
            self.settle();
            self.put(wishes);
        }
    }

    fn run(switches: &mut Switches<Self>, end: Time) {
        switches.advance(end);
    }
}

/// How long lookups took that came within `from..until` and are done, shortest first.
#[must_use]
pub fn latencies(lookups: &[Lookup], from: Time, until: Time) -> Vec<Span> {
    let is_within = |lookup: &&Lookup| (from..until).contains(&lookup.at);
    let took = |lookup: &Lookup| lookup.end.map(|end| end - lookup.at);
    let mut found: Vec<_> = lookups.iter().filter(is_within).filter_map(took).collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::Power;
    use crate::switch::Switches;
    use crate::switch::settings::Settings as SwitchSettings;
    use crate::tables::{Condition, compute::compute};
    use crate::topology::{Fibres, Topology};
    use crate::turns::TurnTable;

    /// Lookups of the first hosts of the mini Clique's TiNs at the second hosts, until all have ended.
    fn run(rma: &Rma, settings: Settings, rate: f64, us: u64) -> Vec<Lookup> {
        let shape = Shape::MINI;
        let topology = Topology::new(&shape, Fibres::Metres(30)).unwrap();
        let tables = Arc::new(compute(&topology, &TurnTable::P1, &Condition::healthy(&topology)));
        let own: Vec<u16> = (0..shape.tins()).collect();
        let hosts = |host| own.iter().map(|&tin| (tin, host)).collect::<Vec<_>>();
        let switches = Arc::new(SwitchSettings::default());
        let load = Load { rate, until: Time::ZERO + Span::from_us(us) };
        let of = (&shape, rma, switches.switch.hops);
        let map = CliqueMap::new(of, (settings, load), (&hosts(0), &hosts(1)), 1);
        let mut clique = Switches::new(&topology, tables, switches, &own, 1, map);
        for &tin in &own {
            clique.act(tin, Time::ZERO, |map, wishes| map.begin(tin, wishes));
        }
        clique.run(Time::NEVER);
        clique.check_home().unwrap();
        clique.endpoints().engine().check_home().unwrap();
        clique.endpoints().lookups().to_vec()
    }

    /// U41: a lookup is what the client takes, two reads, one after the other, and the check, but for cycles; a client
    /// that sleeps takes its time twice.
    #[test]
    fn u41_a_lookup_is_two_reads_and_the_clients_time() {
        for wake_up in [Span::ZERO, Span::from_us(5)] {
            let settings = Settings { wake_up, ..Settings::default() };
            let lookups = run(&Rma::default(), settings, 5_000.0, 400);
            assert!(lookups.len() > 60, "{}", lookups.len());
            for lookup in &lookups {
                let took = lookup.end.unwrap() - lookup.at;
                let known = lookup.execution + Span::from_ns(1_300) + wake_up * 2;
                // What comes within a cycle is done at its beginning or at the next one's.
                let (low, high) = (known - TICK, known + TICK * 3);
                assert!((low..=high).contains(&took), "{took}, of which {known} are known");
                assert!(!lookup.has_failed);
            }
            let times = latencies(&lookups, Time::ZERO, Time::NEVER);
            let least = Span::from_ns(1_300 + 2 * 1_500) + wake_up * 2;
            assert!(times[0] > least && times[0] < least + Span::from_us(3), "{}", times[0]);
        }
    }

    /// U41: of three replicas the value comes from the first that answers, when two have: no later than from one alone
    /// in the mean by more than what a second answer takes.
    #[test]
    fn u41_most_of_three_replicas_agree() {
        let one = run(&Rma::default(), Settings::default(), 5_000.0, 400);
        let settings = Settings { replicas: 3, ..Settings::default() };
        let three = run(&Rma::default(), settings, 5_000.0, 400);
        assert_eq!(one.len(), three.len(), "the same lookups");
        assert!(three.iter().all(|lookup| lookup.buckets == 3 && lookup.end.is_some()));
        assert!(three.iter().any(|lookup| lookup.first != 0));
        let mean = |of: &[Lookup]| {
            let times = latencies(of, Time::ZERO, Time::NEVER);
            times.iter().map(|span| span.as_seconds()).sum::<f64>() / times.len() as f64
        };
        assert!((mean(&three) / mean(&one) - 1.0).abs() < 0.1, "{} {}", mean(&three), mean(&one));
    }

    /// X05, U40: where idle servers sleep, more load makes lookups faster; where they don't, it never does.
    #[test]
    fn slow_x05_more_load_is_faster_where_idle_servers_sleep() {
        let median = |sleeps: bool, rate: f64, us: u64| {
            let rma = Rma { power: Power { sleeps, ..Power::default() }, ..Rma::default() };
            let lookups = run(&rma, Settings::default(), rate, us);
            let times = latencies(&lookups, Time::ZERO, Time::NEVER);
            times[times.len() / 2]
        };
        let (low, high) = (median(true, 2_000.0, 1_000), median(true, 400_000.0, 40));
        assert!(high + Span::from_us(6) < low, "{low}, then {high}");
        let (low, high) = (median(false, 2_000.0, 1_000), median(false, 400_000.0, 40));
        assert!(high + Span::from_ns(100) >= low, "{low}, then {high}");
    }
}
