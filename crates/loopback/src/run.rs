//! A run: the threads of the nodes, and the one that moves the clock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kernel::{Span, Stream, Time};
use rack::node::{Ending, FlowName, Message, Node, Nodes};
use rack::{Failure, Flow, NodeId};

use crate::cargo::{Cargo, Flows, unload};
use crate::clock::Clock;
use crate::inbox::{Frame, Inbox};

#[cfg(test)]
mod tests;

/// How often the clock is moved while nothing calls for it (our choice).
const TICK: Duration = Duration::from_micros(50);

/// What happens to messages, and how fast the clock goes.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Nanoseconds of the machine's clock to a nanosecond of the nodes'.
    pub slowdown: u64,
    /// How far the clock may be ahead of what nodes have still to do. Default: the shortest wire, so that no
    /// message is late.
    pub ahead: Option<Span>,
    /// Of so many messages one is lost; 0: none.
    pub loses_one_in: u64,
    /// Of so many of the others one is damaged; 0: none.
    pub damages_one_in: u64,
    /// Seed of all random events.
    pub seed: u64,
    /// Gives up when flows have not ended after so much time of the nodes'.
    pub limit: Span,
    /// Gives up after so much time of the machine's.
    pub patience: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            slowdown: 1_000,
            ahead: None,
            loses_one_in: 0,
            damages_one_in: 0,
            seed: 1,
            limit: Span::from_us(10_000_000),
            patience: Duration::from_secs(120),
        }
    }
}

/// What a run has come to.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Flows that ended, each once, by number: when, and why it failed if it did.
    pub ended: BTreeMap<u64, (Time, Option<Failure>)>,
    /// Of the flows that ended well: those of which not every byte was there by then, in place and right.
    pub incomplete: Vec<u64>,
    /// Parts of flows that arrived with other bytes than were sent.
    pub wrong: u64,
    /// Messages sent, and those of them that were lost and damaged on purpose.
    pub messages: u64,
    /// Lost on purpose.
    pub lost: u64,
    /// Damaged on purpose.
    pub damaged: u64,
    /// Messages that nodes could not decode or did not expect.
    pub unexpected: u64,
    /// The nodes' time in the end.
    pub end: Time,
}

/// What all threads share.
struct Floor {
    flows: Flows,
    /// The node that has what a host sends and receives.
    places: BTreeMap<NodeId, usize>,
    clock: Clock,
    inboxes: Vec<Inbox>,
    /// Flows that have not ended.
    open: Mutex<BTreeSet<u64>>,
    is_broken: AtomicBool,
    messages: AtomicU64,
    /// Those of them that are in an inbox, or were.
    posted: AtomicU64,
    lost: AtomicU64,
    damaged: AtomicU64,
}

/// A node with its thread's things.
struct Seat<'a> {
    place: usize,
    node: Box<dyn Node>,
    floor: &'a Floor,
    config: Config,
    /// Its flows that have not begun, in order.
    flows: VecDeque<Flow>,
    cargo: Cargo,
    /// Everything before is done.
    reached: Time,
    chance: Stream,
    endings: Vec<Ending>,
    told: Vec<(FlowName, Time, Option<Failure>)>,
    wrong: u64,
}

/// Lets nodes carry flows, which begin at their start or as soon as can be, until all have ended or time is
/// up.
///
/// # Panics
/// If a node does.
#[must_use]
pub fn carry(nodes: Nodes, flows: &[Flow], config: Config) -> Outcome {
    let mut flows = flows.to_vec();
    flows.sort_by_key(|flow| (flow.start, flow.id));
    let mut begin = vec![VecDeque::new(); nodes.nodes.len()];
    flows.iter().for_each(|flow| begin[nodes.begins(flow)].push_back(*flow));
    let first = |(node, flows): (&dyn Node, &VecDeque<Flow>)| {
        let flow = flows.front().map_or(Time::NEVER, |flow| flow.start);
        Inbox::new(node.next().min(flow))
    };
    let hosts = flows.iter().flat_map(|flow| [flow.src, flow.dst]);
    let floor = Floor {
        flows: Flows::new(&flows),
        places: hosts.map(|host| (host, nodes.place(host))).collect(),
        clock: Clock::new(),
        inboxes: nodes.nodes.iter().map(|node| &**node).zip(&begin).map(first).collect(),
        open: Mutex::new(flows.iter().map(|flow| flow.id.get()).collect()),
        is_broken: AtomicBool::new(false),
        messages: AtomicU64::new(0),
        posted: AtomicU64::new(0),
        lost: AtomicU64::new(0),
        damaged: AtomicU64::new(0),
    };
    let ahead = config.ahead.unwrap_or(nodes.delay);
    let seats: Vec<_> = (0..)
        .zip(nodes.nodes.into_iter().zip(begin))
        .map(|(place, (node, flows))| Seat {
            place,
            node,
            floor: &floor,
            config,
            flows,
            cargo: Cargo::default(),
            reached: Time::ZERO,
            chance: Stream::new(config.seed, "loopback/messages", place as u64),
            endings: Vec::new(),
            told: Vec::new(),
            wrong: 0,
        })
        .collect();
    let seats = std::thread::scope(|scope| {
        let threads: Vec<_> =
            seats.into_iter().map(|seat| scope.spawn(|| seat.work_to_the_end())).collect();
        floor.keep_time(config, ahead);
        threads.into_iter().map(|thread| thread.join().and_then(|seat| seat)).collect::<Vec<_>>()
    });
    let seats: Vec<_> =
        seats.into_iter().map(|seat| seat.unwrap_or_else(|panic| resume_unwind(panic))).collect();
    outcome(&floor, &seats)
}

/// What the nodes have come to.
fn outcome(floor: &Floor, seats: &[Seat<'_>]) -> Outcome {
    let mut outcome = Outcome {
        messages: floor.messages.load(Ordering::SeqCst),
        lost: floor.lost.load(Ordering::SeqCst),
        damaged: floor.damaged.load(Ordering::SeqCst),
        end: floor.clock.now(),
        ..Outcome::default()
    };
    // The first of a flow's halves to speak is right.
    let mut ends = BTreeMap::new();
    for seat in seats {
        outcome.wrong += seat.wrong;
        outcome.unexpected += seat.node.unexpected();
        for &(name, at, failure) in &seat.told {
            let end = ends.entry(name).or_insert((at, failure));
            if at < end.0 {
                *end = (at, failure);
            }
        }
    }
    for (name, (at, failure)) in ends {
        let flow = floor.flows.get(name).unwrap_or_else(|| panic!("{name:?} ends: no such flow"));
        outcome.ended.insert(flow.id.get(), (at, failure));
        let [from, to] = [flow.src, flow.dst].map(|host| floor.places[&host]);
        let whole = seats[to].cargo.whole_at(name, flow.size.get());
        let is_whole = whole.is_some_and(|whole| whole <= at);
        // What one node moves from memory to memory in itself nobody sees.
        if failure.is_none() && from != to && !is_whole {
            outcome.incomplete.push(flow.id.get());
        }
    }
    outcome.incomplete.sort_unstable();
    outcome
}

impl Floor {
    fn open(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first thing that any node has to do.
    fn first(&self) -> Time {
        loop {
            let before = self.posted.load(Ordering::SeqCst);
            let first = self.inboxes.iter().map(Inbox::next).min().unwrap_or(Time::NEVER);
            // Otherwise a node that was looked at early may have got what one that was looked at late had
            // to do.
            if self.posted.load(Ordering::SeqCst) == before {
                return first;
            }
        }
    }

    /// Moves the clock until all flows have ended, or time is up.
    fn keep_time(&self, config: Config, ahead: Span) {
        let mut hand = self.clock.hand(config.slowdown, ahead);
        let begun = Instant::now();
        loop {
            let first = self.first();
            let is_over = self.open().is_empty()
                || first == Time::NEVER
                || self.clock.now().as_ps() > config.limit.as_ps()
                || begun.elapsed() > config.patience
                || self.is_broken.load(Ordering::SeqCst);
            if is_over {
                return self.inboxes.iter().for_each(Inbox::close);
            }
            let before = self.clock.now();
            let now = hand.advance(first);
            self.inboxes.iter().for_each(|inbox| inbox.ring(now));
            if now == before {
                std::thread::sleep(TICK);
            } else {
                std::thread::yield_now();
            }
        }
    }
}

impl Seat<'_> {
    /// Works until all is over, or gives what the node has panicked with.
    fn work_to_the_end(mut self) -> std::thread::Result<Self> {
        let result = catch_unwind(AssertUnwindSafe(|| self.work()));
        self.floor.is_broken.fetch_or(result.is_err(), Ordering::SeqCst);
        result.map(|()| self)
    }

    /// What the thread of a node does.
    fn work(&mut self) {
        let floor = self.floor;
        while let Some(frames) = floor.inboxes[self.place].wait(|| floor.clock.now()) {
            let now = floor.clock.now();
            for frame in frames {
                self.receive(&frame);
            }
            while self.flows.front().is_some_and(|flow| flow.start <= now) {
                self.begin();
            }
            self.reached = Time::from_ps(now.as_ps() + 1);
            self.run(self.reached);
            self.tell();
            let flow = self.flows.front().map_or(Time::NEVER, |flow| flow.start);
            floor.inboxes[self.place].done(self.node.next().min(flow));
        }
    }

    /// The next flow begins.
    fn begin(&mut self) {
        let Some(flow) = self.flows.pop_front() else { return };
        if flow.start > self.reached {
            self.reached = flow.start;
            self.run(flow.start);
        }
        self.node.offer(&flow);
    }

    fn receive(&mut self, frame: &Frame) {
        let (head, load) = frame.bytes.split_at(frame.head.min(frame.bytes.len()));
        let at = frame.at.max(self.reached);
        let unit = self.node.receive(frame.wire, at, head);
        let Some(unit) = unit else { return };
        // Nobody but the destination looks at what rides with it.
        let is_here = |host: NodeId| self.floor.places.get(&host) == Some(&self.place);
        match unload(load) {
            Some((payload, bytes)) if is_here(payload.flow.dst) => {
                match self.floor.flows.are_of(payload, bytes) {
                    true => self.cargo.arrives(payload, at),
                    false => self.wrong += 1,
                }
            }
            _ => self.cargo.keep(unit, load),
        }
    }

    /// Lets the node do what is to be done, and puts what it sends on the wires.
    fn run(&mut self, until: Time) {
        let Self { node, floor, cargo, chance, config, place, .. } = self;
        let Config { loses_one_in, damages_one_in, .. } = *config;
        node.run(until, &mut |message: Message<'_>| {
            floor.messages.fetch_add(1, Ordering::Relaxed);
            let mut bytes = message.bytes.to_vec();
            match (message.payload, message.unit) {
                (Some(payload), _) => bytes.extend(floor.flows.load(payload)),
                (None, Some(unit)) => match cargo.get(unit) {
                    Some(load) => bytes.extend(load),
                    None => panic!("node {place} passes on {unit:?}, which it never received"),
                },
                (None, None) => {}
            }
            if loses_one_in > 0 && chance.below(loses_one_in) == 0 {
                floor.lost.fetch_add(1, Ordering::Relaxed);
                return;
            }
            if damages_one_in > 0 && chance.below(damages_one_in) == 0 {
                floor.damaged.fetch_add(1, Ordering::Relaxed);
                let bit = chance.below(8 * message.bytes.len() as u64);
                bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
            }
            let head = message.bytes.len();
            let frame = Frame { wire: message.wire, at: message.at, bytes, head };
            floor.inboxes[message.to].post(frame);
            floor.posted.fetch_add(1, Ordering::SeqCst);
        });
    }

    /// Tells of flows that have ended here.
    fn tell(&mut self) {
        self.node.endings(&mut self.endings);
        for Ending { flow, at, failure } in self.endings.drain(..) {
            self.told.push((flow, at, failure));
            if let Some(flow) = self.floor.flows.get(flow) {
                self.floor.open().remove(&flow.id.get());
            }
        }
    }
}
