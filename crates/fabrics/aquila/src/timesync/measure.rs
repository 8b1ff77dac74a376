//! How exact the clocks of a Clique are (X24): all nodes, links with their delays, sets as bytes, and the software.
//!
//! Open loop: there are no cells. What a set waits for them is drawn, up to the 128 ns of App. B.2.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use kernel::{Span, Stream, Time};

use super::clock::{Oscillator, PARTS};
use super::{Coordinator, Failure, Input, Node, Output, Quality, Sending, Settings, cycles};
use crate::config::Link;
use crate::link::ordered_sets::SET_BYTES;
use crate::switch::settings::TICK;
use crate::topology::{PortKind, Topology};

/// Bytes of an ordered set are this long on a link's wire.
fn on_wire(link: &Link, kind: PortKind) -> Span {
    let rate = if kind == PortKind::Global { link.global_rate } else { link.local_rate };
    rate.send_time(kernel::Bytes::new(SET_BYTES.into()))
}

/// From a set's first bit on a wire until it can be taken at the other end.
fn delay(topology: &Topology, link: &Link, tin: u16, port: u8) -> Span {
    let kind = topology.kind(port);
    let correction = if kind == PortKind::Global { link.fec_delay } else { Span::ZERO };
    topology.delay(tin, port) + correction + on_wire(link, kind)
}

/// Something that is due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    /// A set goes on the wire at a port.
    Leave { tin: u16, port: u8, sending: u8, number: u16, ticks: u64, since: u64 },
    /// A set can be taken at a port.
    Come { tin: u16, port: u8, bytes: [u8; 8] },
    /// A node wanted to be told.
    Wake { tin: u16 },
    /// A node is configured: role (a port, 254 primary, 255 idle), outputs.
    Configure { tin: u16, epoch: u32, role: u8, outputs: u64 },
    /// Software hears of a failure.
    Report { tin: u16, epoch: u32 },
    /// Software acts.
    Act,
}

/// What is measured of the TiNs of a depth.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Depth {
    /// TiNs.
    pub nodes: u32,
    /// The largest error behind a set that was applied.
    pub corrected: Span,
    /// The largest error at all: before one is applied.
    pub largest: Span,
    /// What the largest error can be (I90), by the closed form ([`World::bound`]).
    pub bound: Span,
}

/// A Clique's clocks.
#[derive(Clone, Debug)]
pub struct World {
    topology: Topology,
    link: Link,
    settings: Settings,
    nodes: Vec<Node>,
    oscillators: Vec<Oscillator>,
    is_dead: Vec<bool>,
    /// By TiN and port: whether the link out of it is cut.
    is_cut: Vec<bool>,
    coordinator: Coordinator,
    queue: BinaryHeap<Reverse<(Time, u64, Event)>>,
    number: u64,
    stream: Stream,
    /// Probability that a set is lost.
    loss: f64,
    now: Time,
    depths: Vec<Depth>,
    /// From when on errors are measured.
    from: Time,
    /// Against whose clock.
    reference: u16,
    out: Vec<Output>,
}

impl World {
    /// Clocks that were never set, of random rates and phases; the software begins.
    #[must_use]
    pub fn new(topology: &Topology, link: &Link, settings: &Settings, seed: u64) -> Self {
        let tins = usize::from(topology.shape().tins());
        let mut stream = Stream::new(seed, "aquila/clocks", 0);
        let most = 1_000 * i64::from(settings.parts_per_million);
        let oscillators: Vec<_> = (0..tins)
            .map(|_| {
                let off = stream.below(2 * most as u64 + 1) as i64 - most;
                Oscillator::new(off as i32, stream.below(TICK.as_ps()))
            })
            .collect();
        let coordinator = Coordinator::new(topology, settings);
        let mut world = Self {
            topology: topology.clone(),
            link: link.clone(),
            settings: *settings,
            nodes: vec![Node::new(settings); tins],
            oscillators,
            is_dead: vec![false; tins],
            is_cut: vec![false; tins * usize::from(topology.shape().external_ports())],
            reference: coordinator.tree().primary(),
            coordinator,
            queue: BinaryHeap::new(),
            number: 0,
            stream,
            loss: 0.0,
            now: Time::ZERO,
            depths: Vec::new(),
            from: Time::NEVER,
            out: Vec::new(),
        };
        let orders = world.coordinator.begin();
        world.give(&orders);
        world
    }

    /// Lets sets be lost with a probability.
    pub fn set_loss(&mut self, loss: f64) {
        self.loss = loss;
    }

    /// A TiN dies.
    pub fn kill(&mut self, tin: u16) {
        self.is_dead[usize::from(tin)] = true;
    }

    /// A link is cut, in both directions.
    pub fn cut(&mut self, tin: u16, port: u8) {
        let far = self.topology.far(tin, port).map(|far| (far.tin, far.port));
        for (tin, port) in far.into_iter().chain([(tin, port)]) {
            let place = self.place(tin, port);
            self.is_cut[place] = true;
        }
    }

    fn place(&self, tin: u16, port: u8) -> usize {
        usize::from(tin) * usize::from(self.topology.shape().external_ports()) + usize::from(port)
    }

    /// The software.
    #[must_use]
    pub fn coordinator(&self) -> &Coordinator {
        &self.coordinator
    }

    /// The clock of a TiN.
    #[must_use]
    pub fn node(&self, tin: u16) -> &Node {
        &self.nodes[usize::from(tin)]
    }

    /// The instant up to which all has happened.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Whether all TiNs that live and that the tree reaches follow its primary, by its configuration.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let tree = self.coordinator.tree();
        (0..self.topology.shape().tins()).all(|tin| {
            let node = self.node(tin);
            let wanted = tree.depth(tin).map(Quality::Locked);
            let is_right =
                Some(node.quality()) == wanted && node.epoch() == self.coordinator.epoch();
            self.is_dead[usize::from(tin)] || wanted.is_none() || is_right
        })
    }

    /// Measures errors against the primary of the tree from now on, and forgets earlier ones.
    pub fn begin_measuring(&mut self) {
        self.reference = self.coordinator.tree().primary();
        self.from = self.now;
        let tree = self.coordinator.tree();
        self.depths = (0..=tree.height())
            .map(|depth| Depth { bound: self.bound(depth), ..Depth::default() })
            .collect();
        for tin in 0..self.topology.shape().tins() {
            if let Some(depth) = tree.depth(tin).filter(|_| !self.is_dead[usize::from(tin)]) {
                self.depths[usize::from(depth)].nodes += 1;
            }
        }
    }

    /// What was measured, by depth.
    #[must_use]
    pub fn depths(&self) -> &[Depth] {
        &self.depths
    }

    /// What an error can be at a depth (I90): for each link a tick for how a time is written down and taken, and what its
    /// delay may be measured wrong, a tick and the half to which it is rounded; and what the clocks drift apart meanwhile:
    /// twice their deviation, over an interval of the slowest, waiting and wires.
    #[must_use]
    pub fn bound(&self, depth: u8) -> Span {
        let links = u64::from(depth);
        let tick = TICK.as_ps();
        let way = self.settings.wait.as_ps() + self.longest() + 2 * tick;
        let off = u64::from(self.settings.parts_per_million);
        let meanwhile = self.settings.interval.as_ps() + links * 2 * way;
        let drift = (2 * off * meanwhile).div_ceil(1_000_000) + 1;
        let drift = if depth == 0 { 0 } else { drift + drift / 1_000 };
        Span::from_ps(links * (tick + tick + tick / 2) + drift)
    }

    /// The longest delay of a link. Unit: ps.
    fn longest(&self) -> u64 {
        let shape = self.topology.shape();
        let ports = (0..shape.tins())
            .flat_map(|tin| (0..shape.external_ports()).map(move |port| (tin, port)));
        let delays = ports.map(|(tin, port)| delay(&self.topology, &self.link, tin, port).as_ps());
        delays.max().unwrap_or(0)
    }

    /// How far a TiN's clock is off that of another. Unit: ps, negative: behind.
    #[must_use]
    pub fn error(&self, tin: u16, of: u16) -> i64 {
        let exact = |tin: u16| {
            let oscillator = &self.oscillators[usize::from(tin)];
            oscillator.exact(self.node(tin).clock(), self.now)
        };
        let parts = exact(tin) - exact(of);
        (i128::from(parts) * i128::from(TICK.as_ps()) / i128::from(PARTS)) as i64
    }

    /// By how much the delay of the link at a port was measured wrong: the delay itself and the tick that is added.
    /// Unit: ps. `None`: it was not measured.
    #[must_use]
    pub fn delay_error(&self, tin: u16, port: u8) -> Option<i64> {
        let measured = self.node(tin).delay(port)? * TICK.as_ps();
        let right = delay(&self.topology, &self.link, tin, port).as_ps() + TICK.as_ps();
        Some(measured as i64 - right as i64)
    }

    /// Does everything that is due before `end`.
    pub fn run(&mut self, end: Time) {
        while let Some(&Reverse((at, _, event))) = self.queue.peek() {
            if at >= end {
                break;
            }
            self.queue.pop();
            self.now = at;
            self.handle(event);
        }
        self.now = self.now.max(end);
    }

    fn put(&mut self, at: Time, event: Event) {
        self.number += 1;
        self.queue.push(Reverse((at, self.number, event)));
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Leave { tin, port, sending, number, ticks, since } => {
                let sending = match sending {
                    0 => Sending::Time,
                    1 => Sending::Ask(number),
                    _ => Sending::Answer { number, ticks, since },
                };
                self.leave(tin, port, sending);
            }
            Event::Come { tin, port, bytes } => self.step(tin, Input::Set { port, bytes }),
            Event::Wake { tin } => {
                let cycle = self.oscillators[usize::from(tin)].cycle(self.now);
                if self.node(tin).next().is_some_and(|next| next <= cycle) {
                    self.step(tin, Input::Tick);
                }
            }
            Event::Configure { tin, epoch, role, outputs } => {
                let role = match role {
                    255 => super::Role::Idle,
                    254 => super::Role::Primary,
                    port => super::Role::Client(port),
                };
                self.step(tin, Input::Configure { epoch, role, outputs });
            }
            Event::Report { tin, epoch } => {
                self.coordinator.hear(self.now, Failure { tin, epoch });
                if let Some(due) = self.coordinator.next() {
                    self.put(due.max(self.now), Event::Act);
                }
            }
            Event::Act => {
                let orders = self.coordinator.act(self.now);
                self.give(&orders);
            }
        }
    }

    fn give(&mut self, orders: &[super::Order]) {
        let at = self.now + self.settings.software;
        for order in orders {
            let Input::Configure { epoch, role, outputs } = order.input else { continue };
            let role = match role {
                super::Role::Idle => 255,
                super::Role::Primary => 254,
                super::Role::Client(port) => port,
            };
            self.put(at, Event::Configure { tin: order.tin, epoch, role, outputs });
        }
    }

    /// A set goes on the wire.
    fn leave(&mut self, tin: u16, port: u8, sending: Sending) {
        let Some(far) = self.topology.far(tin, port) else { return };
        let is_lost = self.loss > 0.0 && self.stream.bernoulli(self.loss);
        if self.is_dead[usize::from(tin)] || self.is_cut[self.place(tin, port)] || is_lost {
            return;
        }
        let cycle = self.oscillators[usize::from(tin)].cycle(self.now);
        let bytes = self.node(tin).stamp(sending, cycle);
        let arrival = self.now + delay(&self.topology, &self.link, tin, port);
        // It is taken with the next edge of the clock there.
        let (_, at) = self.oscillators[usize::from(far.tin)].next_edge(arrival);
        self.put(at, Event::Come { tin: far.tin, port: far.port, bytes });
    }

    fn step(&mut self, tin: u16, input: Input) {
        if self.is_dead[usize::from(tin)] {
            return;
        }
        self.note(tin, false);
        let (cycle, at) = self.oscillators[usize::from(tin)].next_edge(self.now);
        debug_assert!(at - self.now <= TICK + TICK, "{tin}: {cycle}");
        let mut out = std::mem::take(&mut self.out);
        let applied = self.node(tin).counts().applied;
        self.nodes[usize::from(tin)].step(cycle, input, &mut out);
        if self.node(tin).counts().applied > applied {
            self.note(tin, true);
        }
        for output in out.drain(..) {
            self.carry_out(tin, output);
        }
        self.out = out;
        if let Some(next) = self.node(tin).next() {
            let at = self.oscillators[usize::from(tin)].edge(next);
            self.put(at.max(self.now + Span::from_ps(1)), Event::Wake { tin });
        }
    }

    fn carry_out(&mut self, tin: u16, output: Output) {
        match output {
            Output::Fail => {
                let epoch = self.node(tin).epoch();
                self.put(self.now + self.settings.software, Event::Report { tin, epoch });
            }
            Output::Send(port, sending) => {
                let wait = self.stream.below(self.settings.wait.as_ps() + 1);
                let (sending, number, ticks, since) = match sending {
                    Sending::Time => (0, 0, 0, 0),
                    Sending::Ask(number) => (1, number, 0, 0),
                    Sending::Answer { number, ticks, since } => (2, number, ticks, since),
                };
                let at = self.now + Span::from_ps(wait);
                self.put(at, Event::Leave { tin, port, sending, number, ticks, since });
            }
        }
    }

    /// Notes the error of a TiN that follows the primary.
    fn note(&mut self, tin: u16, is_corrected: bool) {
        if self.now < self.from || self.is_dead[usize::from(self.reference)] {
            return;
        }
        let Quality::Locked(depth) = self.node(tin).quality() else { return };
        let error = Span::from_ps(self.error(tin, self.reference).unsigned_abs());
        if let Some(of) = self.depths.get_mut(usize::from(depth)) {
            of.largest = of.largest.max(error);
            if is_corrected {
                of.corrected = of.corrected.max(error);
            }
        }
    }
}

/// How exact a Clique's clocks are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Accuracy {
    /// By depth in the tree.
    pub depths: Vec<Depth>,
    /// From the beginning until all follow the primary.
    pub settled: Span,
    /// Where the primary was killed: from then until all follow another.
    pub reformed: Option<Span>,
    /// The same: how far a clock was off that of the dead primary when it was configured anew, at most.
    pub holdover: Option<Span>,
    /// By depth in the new tree.
    pub depths_after: Vec<Depth>,
}

/// Measures the clocks of a Clique (X24): for a while once they are settled, and, if the primary is to die, for as long
/// when they are again. `None`: they were not settled within as long.
#[must_use]
pub fn accuracy(
    topology: &Topology,
    link: &Link,
    settings: &Settings,
    (duration, kills): (Span, bool),
    seed: u64,
) -> Option<Accuracy> {
    let mut world = World::new(topology, link, settings, seed);
    let settled = settle(&mut world, duration)?;
    world.begin_measuring();
    world.run(world.now() + duration);
    let depths = world.depths().to_vec();
    let mut accuracy =
        Accuracy { depths, settled, reformed: None, holdover: None, depths_after: Vec::new() };
    if !kills {
        return Some(accuracy);
    }
    let (old, epoch) = (world.coordinator().tree().primary(), world.coordinator().epoch());
    world.kill(old);
    let died = world.now();
    while world.coordinator().epoch() == epoch && world.now() - died < duration {
        world.run(world.now() + STEP);
    }
    // Its clock runs on, for nobody but us.
    let others = (0..topology.shape().tins()).filter(|&tin| tin != old);
    let furthest = others.map(|tin| world.error(tin, old).unsigned_abs()).max();
    settle(&mut world, duration)?;
    accuracy.holdover = furthest.map(Span::from_ps);
    accuracy.reformed = Some(world.now() - died);
    world.begin_measuring();
    world.run(world.now() + duration);
    accuracy.depths_after = world.depths().to_vec();
    Some(accuracy)
}

/// How finely it is looked when clocks are settled.
const STEP: Span = Span::from_us(1);

/// Runs until all follow the primary. How long that takes; `None`: longer than `most`.
fn settle(world: &mut World, most: Span) -> Option<Span> {
    let begun = world.now();
    while !world.is_settled() {
        if world.now() - begun > most {
            return None;
        }
        world.run(world.now() + STEP);
    }
    Some(world.now() - begun)
}

/// The longest that all this takes by the settings, from the death of a primary until all follow another: a last set that
/// was as late as can be, silence, software there and back, measurements, and a set for each link of the tree's height.
#[must_use]
pub fn reforming_bound(topology: &Topology, link: &Link, settings: &Settings, height: u8) -> Span {
    let world = World::new(topology, link, settings, 0);
    let once = 2 * (settings.wait.as_ps() + world.longest() + 2 * TICK.as_ps());
    let gap = super::delay::GAP * TICK.as_ps();
    let measuring = u64::from(settings.samples) * (once + gap);
    let sets = settings.interval.as_ps() + u64::from(height) * once;
    let exact = settings.silence.as_ps()
        + once * u64::from(height)
        + 2 * settings.software.as_ps()
        + settings.gather.as_ps()
        + measuring
        + sets;
    debug_assert!(cycles(settings.interval) > 0);
    // Clocks that are slow, and what we look too late.
    Span::from_ps(exact + exact / 1_000 + 2 * STEP.as_ps())
}
