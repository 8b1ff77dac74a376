//! A packet network with its endpoints: its parts, and the driver that gives them time and flows.
//!
//! A part (`part`) holds some hosts and switches, or all. The driver (`desk`) keeps the list of flows, joins
//! it with what hosts report of them, and tells the probe. Parts run side by side in windows
//! ([`rack::shards`]): what one does reaches another no sooner than a packet takes over a link between them.
//! The results are the same however the network is cut, as events of one instant have an order of their own
//! ([`crate::net::Event`]).

mod desk;
mod details;
mod ends;
mod fabric;
mod gauges;
mod hosts;
mod ideal;
mod judge;
mod ledger;
mod node;
mod part;
mod programmed;
mod reports;
mod shard;
mod trace;
mod uniform;
mod watch;

#[cfg(test)]
mod tests;

use kernel::{Bytes, Span, Time};
use rack::shards::{Shards, Stop, Windows, usable_threads};
use rack::topology::Vertex;
use rack::{Flow, Problem, Stage};

use crate::config::Plan;
use crate::cut::Cut;
use crate::net::{Counts, Net};
use crate::program::{Plain, Program};
use crate::transport::{Surroundings, Transport};

use desk::Desk;
use gauges::Gauges;
pub(crate) use ideal::completion_time;
use part::Part;
use part::{EVENTS_PER_POLL, Leg, just_after};

/// The parts of a completion time, in order.
pub(crate) const STAGES: &[Stage] = &[
    Stage { name: "source", meaning: "At the source, before the first bit is sent" },
    Stage { name: "queueing", meaning: "In queues of the network, beyond the idle network's time" },
    Stage { name: "propagation", meaning: "On wires and through switches, as in the idle network" },
    Stage { name: "recovery", meaning: "At the destination, until the last byte is there" },
];

/// The least time that something takes from one part to another for which a network is cut unasked (our choice: a
/// window costs as much as some events).
const LOOKAHEAD_MIN: Span = Span::from_ns(20);
/// Events of a packet on its way, about, and in a window for which a network is cut unasked (our choice: as
/// many as several threads are used for by [`rack::shards`]).
const EVENTS_PER_PACKET: u64 = 8;
const EVENTS_MIN: u64 = 100;
/// Windows until the first look at how long they take (our choice).
const WINDOWS_FIRST: u64 = 64;

/// A run of several parts is no longer than this and half as much between two questions to the probe (our
/// choice: so little happens that it makes no difference).
const STRIDE_MAX: Span = Span::from_us(100_000);

/// A packet network under simulation, carrying transport `T`, with switches that run `S`.
#[derive(Clone, Debug)]
pub struct Network<T: Transport, S: Program = Plain> {
    parts: Shards<Part<T, S>>,
    desk: Desk,
    /// How the network is to be cut, on how many threads, once it begins.
    wanted: Wanted,
    /// How it is cut, and how long anything takes from part to part; `None`: it is whole.
    cut: Option<(Cut, Span)>,
    /// Whether the transport was told that the network is there.
    has_begun: bool,
    /// Flows offered before that, with their places in the ledger.
    early: Vec<(Flow, u32)>,
    /// Flows offered so far, modulo 2^32.
    offered: u32,
    reached: Time,
    /// Everything before it has happened; where parts wait until they have more to do at a time, that is
    /// before `reached`.
    simulated: Time,
    gauges: Gauges,
    /// How long a run of several parts is between two questions to the probe.
    stride: Span,
}

/// How a network is to be cut.
#[derive(Clone, Debug)]
enum Wanted {
    /// As it is best for so many threads.
    Threads(usize),
    /// So, on so many threads, whatever there is to do.
    Cut(Cut, usize),
}

/// What a transport for the network of `plan` should know.
#[must_use]
pub fn surroundings(plan: &Plan, seed: u64) -> Surroundings {
    let net = Net::new(plan.clone(), seed);
    let (base_rtt, hops_max) = ideal::farthest(&net);
    Surroundings {
        hosts: plan.topology.hosts(),
        line_rate: plan.line_rate(),
        uniform_rate: uniform::rate(&net, plan.line_rate()),
        base_rtt: base_rtt + plan.config.host.round_trip(),
        hops_max,
        seed,
    }
}

impl<T: Transport> Network<T> {
    /// An idle network of plain switches. `seed` is that of all chance in it.
    ///
    /// # Errors
    /// If the transport's packets do not fit the network.
    pub fn new(plan: Plan, transport: T, seed: u64) -> Result<Self, Problem> {
        Self::with_program(plan, transport, Plain, seed)
    }
}

impl<T: Transport, S: Program> Network<T, S> {
    /// As [`Network::new`], with switches that run `program`.
    ///
    /// # Errors
    /// If the transport's packets do not fit the network.
    pub fn with_program(plan: Plan, transport: T, program: S, seed: u64) -> Result<Self, Problem> {
        plan.check_framing(transport.framing())?;
        let mut net = Net::new(plan, seed);
        net.notes_departures = S::RUNS && program.watches_lines();
        net.has_words = S::RUNS && (S::TELLS || S::HAS_LINKS);
        net.has_neighbours = transport.speaks_to_neighbours();
        net.asks_at_nics = net.has_neighbours;
        net.repairs_links = transport.repairs_links();
        Ok(Self {
            desk: Desk::new(&net, &transport),
            parts: Shards::new([Part::new(net, transport, program, seed)]),
            wanted: Wanted::Threads(1),
            cut: None,
            has_begun: false,
            early: Vec::new(),
            offered: 0,
            reached: Time::ZERO,
            simulated: Time::ZERO,
            gauges: Gauges::default(),
            stride: Span::ZERO,
        })
    }

    /// The transport, to look at: of the first part.
    #[must_use]
    pub fn transport(&self) -> &T {
        &self.parts.get(0).transport
    }

    /// The program of the switches, to look at: of the first part.
    #[must_use]
    pub fn program(&self) -> &S {
        &self.parts.get(0).program
    }

    /// The programs of all parts, to look at.
    pub fn programs(&self) -> impl Iterator<Item = &S> {
        self.parts.iter().map(|part| &part.program)
    }

    /// The network itself, or its first part.
    pub(crate) fn net(&self) -> &Net {
        &self.parts.get(0).net
    }

    /// Cuts the network so, before its first event, and runs the parts on so many threads even if there is
    /// little to do. Results do not depend on it. What cannot be cut stays whole ([`Network::can_be_cut`]).
    pub fn set_cut(&mut self, cut: Cut, threads: usize) {
        self.wanted = Wanted::Cut(cut, threads);
    }

    /// Whether the network can be cut: not if the transport or the program cannot, nor if something takes
    /// no time from one part to another.
    #[must_use]
    pub fn can_be_cut(&self, cut: &Cut) -> bool {
        let part = self.parts.get(0);
        let is_able = part.transport.can_be_cut() && part.program.can_be_cut();
        is_able && cut.parts() > 1 && part.net.lookahead(cut) > Span::ZERO
    }

    /// How many parts there are.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.parts.count()
    }

    /// What the windows have come to in which parts ran side by side.
    #[must_use]
    pub fn windows(&self) -> rack::shards::Counts {
        self.parts.counts()
    }

    /// The network begins, in as many parts as are wanted: one if ends of flows may pause it, so that every
    /// instant would be looked at.
    fn begin(&mut self, pauses: bool) {
        self.has_begun = true;
        let (cut, threads, is_forced) = match &self.wanted {
            Wanted::Threads(_) if pauses => (Cut::whole(), 1, false),
            &Wanted::Threads(threads) => {
                let threads = usable_threads(threads);
                let blocks = self.parts.get(0).program.blocks();
                let cut = self.balanced(blocks.max(threads).next_multiple_of(threads));
                if self.is_busy_enough(&cut) {
                    (cut, threads, false)
                } else {
                    (Cut::whole(), 1, false)
                }
            }
            Wanted::Cut(cut, threads) => (cut.clone(), *threads, true),
        };
        if self.can_be_cut(&cut) {
            let lookahead = self.net().lookahead(&cut);
            let parts = self.cut_up(&cut).on_threads(threads);
            self.parts = if is_forced { parts.alone_below(0) } else { parts };
            self.stride = lookahead * WINDOWS_FIRST;
            self.cut = Some((cut, lookahead));
        } else {
            self.parts.get_mut(0).program.become_part(&|_| true, Span::ZERO);
        }
        self.parts.iter_mut().for_each(Part::begin);
        for (flow, place) in std::mem::take(&mut self.early) {
            self.hand_out(&flow, place);
        }
    }

    /// Up to so many parts with as much to do.
    fn balanced(&self, parts: usize) -> Cut {
        let part = self.parts.get(0);
        Cut::balanced_in(&part.net.plan.topology, parts, |switch| part.program.home(switch))
    }

    /// The parts of the network, which is whole and has not begun.
    fn cut_up(&self, cut: &Cut) -> Shards<Part<T, S>> {
        let whole = self.parts.get(0);
        let lookahead = whole.net.lookahead(cut);
        let part = |own: usize| {
            let mut part = whole.clone();
            part.net.become_part(cut, own as u16);
            let net = &part.net;
            part.program.become_part(&|vertex| net.owns(vertex), lookahead);
            part
        };
        Shards::new((0..cut.parts()).map(part))
    }

    /// Whether as much happens in a window, if all hosts send, that several threads may be worth it.
    fn is_busy_enough(&self, cut: &Cut) -> bool {
        let net = self.net();
        let hosts = (0..net.plan.topology.hosts()).map(Vertex::new);
        let lookahead = net.lookahead(cut);
        if lookahead < LOOKAHEAD_MIN {
            return false;
        }
        let bytes = hosts.map(|host| net.plan.host_rate(host).bytes_in(lookahead)).sum::<Bytes>();
        bytes.get() / net.plan.config.mtu.get().max(1) * EVENTS_PER_PACKET >= EVENTS_MIN
    }

    /// The part of a host.
    fn part_of(&self, host: rack::NodeId) -> usize {
        let vertex = Vertex::new(host.get());
        self.cut.as_ref().map_or(0, |(cut, _)| cut.part(vertex))
    }

    /// Gives a flow to its source.
    fn hand_out(&mut self, flow: &Flow, place: u32) {
        let part = self.part_of(flow.src);
        let (turn, at) = (self.offered, flow.start.max(self.reached));
        self.offered = turn.wrapping_add(1);
        self.parts.get_mut(part).offer(flow, place, turn, at);
    }

    /// Lets all parts run to `until`, or not as far; if it `pauses`, to the first instant in which a flow
    /// may have ended.
    fn run(&mut self, until: Time, pauses: bool) -> Leg {
        let Some((_, lookahead)) = self.cut else {
            let part = self.parts.get_mut(0);
            let leg = part.run_alone(until, pauses);
            self.desk.reports.append(&mut part.reports);
            self.desk.reports.sort_unstable();
            return leg;
        };
        let Self { parts, desk, stride, .. } = self;
        let first = parts.iter().filter_map(|part| part.net.calendar.next_time()).min();
        let Some(first) = first.filter(|&first| first < until) else {
            return Leg { end: until, is_long: false };
        };
        let end = until.min(Time::from_ps(first.as_ps().saturating_add(stride.as_ps())));
        parts.iter_mut().for_each(|part| part.tells_at_once = pauses);
        let lookahead = if pauses { 1 } else { lookahead.as_ps() };
        let before = parts.counts().events;
        let stop = parts.run(end.as_ps(), Windows::of(lookahead), &mut |reports, _| {
            let has_ends = reports.iter().any(reports::Report::is_end);
            desk.reports.append(reports);
            if has_ends {
                std::ops::ControlFlow::Break(())
            } else {
                std::ops::ControlFlow::Continue(())
            }
        });
        parts.iter_mut().for_each(|part| desk.reports.append(&mut part.reports));
        desk.reports.sort_unstable();
        let events = parts.counts().events - before;
        if events > 2 * EVENTS_PER_POLL {
            *stride = *stride / 2;
        } else if events < EVENTS_PER_POLL && *stride < STRIDE_MAX {
            *stride = *stride * 2;
        }
        let end = match stop {
            Stop::Paused(end) => Time::from_ps(end),
            Stop::Idle => until,
            Stop::Reached => end,
        };
        Leg { end, is_long: end < until && !pauses }
    }

    /// Takes in all that has happened before `end`.
    fn settle(&mut self, end: Time) {
        self.simulated = end;
        let Self { parts, desk, .. } = self;
        desk.settle(end, &parts.get(0).net);
    }

    /// Lets parts that have waited do what they have put off.
    fn catch_up(&mut self) {
        while self.cut.is_some() && self.simulated < self.reached {
            let leg = self.run(self.reached, false);
            self.settle(leg.end);
        }
    }

    /// What all parts have counted.
    fn counts(&self) -> Counts {
        let mut counts = self.net().counts.clone();
        self.parts.iter().skip(1).for_each(|part| counts.add(&part.net.counts));
        counts
    }

    /// Events so far.
    fn events(&self) -> u64 {
        self.parts.iter().map(|part| part.events).sum()
    }

    /// Application bytes delivered.
    fn delivered(&self) -> Bytes {
        self.parts.iter().map(|part| part.delivered).sum()
    }

    /// Application bytes of failed flows that were not delivered.
    fn lost(&self) -> Bytes {
        let Desk { completed, failed, .. } = self.desk;
        if failed == Bytes::ZERO {
            return Bytes::ZERO;
        }
        let open: Bytes = self.open(usize::MAX).into_iter().map(|(_, delivered)| delivered).sum();
        failed - (self.delivered() - completed - open)
    }

    /// Flows that have not ended, with their application bytes that were delivered.
    fn open(&self, limit: usize) -> Vec<(Flow, Bytes)> {
        let halves = |host| &self.parts.get(self.part_of(host)).net.halves;
        self.desk.unfinished(limit, |entry| {
            let (there, here) = (halves(entry.flow.dst), halves(entry.flow.src));
            let found = there.receiver_named(entry.name).map(|key| there.delivered(key));
            let known = || here.sender_named(entry.name).map(|key| here.delivered(key));
            found.or_else(known).unwrap_or(Bytes::ZERO)
        })
    }

    /// Nothing is on its way where nothing is to happen.
    fn check_packets(&self) -> Result<(), String> {
        let left: u64 = self.parts.iter().map(Part::packets_on_their_way).sum();
        if left > 0 && self.parts.iter().all(|part| part.net.calendar.is_empty()) {
            return Err(format!("{left} packets in a network where nothing will happen"));
        }
        Ok(())
    }
}
