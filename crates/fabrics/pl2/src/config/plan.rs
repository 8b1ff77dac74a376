//! What follows from a configuration: the network below, slots, the switch's program.

use kernel::{Bytes, Span};
use packets::config::{Host, WakeUp};
use rack::equipment::Bill;
use rack::topology::{Shape, SingleSwitch};
use rack::{Estimate, Fault, NodeId, Problem};

use super::{Acknowledgments, Config, Entering, Outstanding, Schedule, ShareBy, Tracking};
use crate::message::{CONTROL_WIRE, FRAMING_MAX};
use crate::switch::ideal::Ideal;
use crate::switch::matching::Matching;
use crate::switch::{Accounting, Copies, Decrement, Instants, Pipeline, Scheduler, Settings};
use crate::wire::{on_the_wire, tag};

/// A checked configuration with what follows from it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The configuration with nothing left open.
    pub config: Config,
    /// The network.
    pub network: packets::Plan,
    /// What it is made of.
    pub bill: Bill,
    /// What a packet counts in the switch.
    pub increment: u32,
    /// The time that stands for 1 in the counters.
    pub unit: Span,
}

/// Most threads, and destinations: what a tag tells apart.
const AGENTS_MAX: u32 = tag::THREADS_MAX;
/// Most lanes of a rack, from an agent to a destination: what a receiver and a sender know of one takes some
/// 60 bytes (our choice: 4 GB in all).
const LANES_MAX: u64 = 1 << 26;
/// Longest slot: as many as a counter can say are within the clock's range (our choice).
const SLOT_MAX: Span = Span::from_us(1_000);
/// What a packet counts where the share of entering traffic is kept by increments: a part in a hundred
/// of the line is a count of one.
const INCREMENT: u32 = 100;

/// Why a transport without recovery needs a network that loses nothing.
const SENDS_ONCE: &str = "raw sends a lost packet only once; set losses = \"repeat\" or \"forget\", or \
                          let nothing be lost";

/// Why counters to the letter need one, too.
const TURNS_BELOW_ZERO: &str = "with switch.accounting = \"literal\" counters turn to 4294967295 \
                                below zero, and who asks next waits for as many slots; set \
                                \"flagged\", or let nothing be lost";

/// What the hosts' ends of a lane take: what waits in it, and what a receiver has seen of it.
const LANE: u64 = 60;
/// A thread, or destination, of a host: its exchange, its gate and its timers.
const AGENT: u64 = 200;
/// What is known of a pair of hosts: reserved slots, in the switch and at the host, and their tracking.
const PAIR: u64 = 40;

impl Config {
    /// What planning and running it will take, open flows and their packets apart. Builds nothing.
    /// Unit: bytes.
    #[must_use]
    pub fn memory(&self) -> Bytes {
        let hosts = u64::from(self.nodes);
        let pairs = hosts.saturating_mul(hosts);
        let (agents, lanes) = match self.outstanding {
            Outstanding::Thread => {
                let threads = self.threads.into();
                (hosts.saturating_mul(threads), pairs.saturating_mul(threads))
            }
            Outstanding::Destination => (pairs, pairs),
        };
        Estimate::new()
            .plus(self.network(Bytes::ZERO).memory())
            .and(lanes, LANE)
            .and(agents, AGENT)
            .and(pairs, PAIR)
            .bytes()
    }

    /// What it takes on top of that where something fails. Unit: bytes.
    #[must_use]
    pub fn failures_memory(&self) -> Bytes {
        self.network(Bytes::ZERO).failures_memory()
    }

    /// Checks the configuration and derives the plan.
    ///
    /// # Errors
    /// Every problem found, each with its key and a remedy.
    pub fn plan(&self) -> Result<Plan, Vec<Problem>> {
        let transport = below("transport", self.transport.table().check());
        let mut problems = self.check();
        problems.extend(transport.iter().cloned());
        problems = ::rack::ranges::check(self, problems);
        let is_sized = transport.is_empty();
        let mtu = if is_sized {
            self.transport.table().mtu()
        } else {
            super::Transport::default().table().mtu()
        };
        let network = match self.network(mtu + FRAMING_MAX).plan() {
            Ok(network) if problems.is_empty() => network,
            Ok(_) => return Err(problems),
            Err(wrong) => {
                problems.extend(wrong.into_iter().map(rename));
                return Err(::rack::ranges::check(self, problems));
            }
        };
        let slot = match self.slot {
            Span::ZERO => self.line_rate.send_time(self.slot_size(mtu)),
            slot => slot,
        };
        if slot > SLOT_MAX {
            let key = if self.slot == Span::ZERO { "line_rate" } else { "slot" };
            let message = format!("a slot takes {slot}; expected {SLOT_MAX} at the most");
            return Err(vec![Problem::new(key, message)]);
        }
        let unsolicited_age = match self.unsolicited_age {
            Span::ZERO => self.longest_exchange() + self.longest_work(mtu),
            age => age,
        };
        let (increment, unit) = match &self.entering {
            None => (1, slot),
            Some(entering) => shared(slot, entering, self.switch.schedule),
        };
        let load_rate = network.load_rate();
        let tracking = Some(self.tracking());
        let recovery = super::Recovery { tracking, ..self.recovery };
        let config = Self { slot, unsolicited_age, load_rate, recovery, ..self.clone() };
        let bill = config.equipment.bill(&network.topology);
        Ok(Plan { config, network, bill, increment, unit })
    }

    /// Every mistake in it that can be seen without building the network, each with its key.
    fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |bad: bool, key: &str, message: String| {
            if bad {
                problems.push(Problem::new(key, message));
            }
        };
        let (low, high) = (self.unsolicited_below, self.switch.drop_above);
        refuse(
            low >= high,
            "unsolicited_below",
            format!(
                "{low}, but the switch drops unsolicited packets above switch.drop_above, {high}; \
                 make it less, far less as a rule"
            ),
        );
        for (key, rate) in [("loss_rate", self.loss_rate), ("bit_error_rate", self.bit_error_rate)]
        {
            refuse(
                rate > 0.0 && !self.transport.table().recovers(),
                key,
                format!("{rate}, but {SENDS_ONCE}"),
            );
            let is_literal = self.switch.accounting == Accounting::Literal;
            refuse(rate > 0.0 && is_literal, key, format!("{rate}, but {TURNS_BELOW_ZERO}"));
        }
        refuse(
            self.recovery.tracking == Some(Tracking::Pairs) && !self.switch.can_track_pairs(),
            "recovery.tracking",
            "pairs, for which the switch has to count to zero at egress: set switch.schedule = \
             \"counters\", decrement = \"egress\" and accounting = \"flagged\", or remove it"
                .into(),
        );
        self.check_size(&mut refuse);
        problems.extend(self.host.check());
        problems.extend(below("switch", self.switch.check(&self.transport)));
        problems.extend(self.entering.iter().flat_map(|entering| entering.check(self.nodes)));
        problems
    }

    /// Refuses mistakes in the numbers of hosts and threads.
    fn check_size(&self, refuse: &mut impl FnMut(bool, &str, String)) {
        let (ports, registers) = (self.ports(), self.switch.registers);
        refuse(
            ports > registers,
            "nodes",
            format!(
                "{} hosts, {} to a port, need {ports} ports, but the switch has {registers} \
                 registers for them; take fewer hosts, or raise switch.registers",
                self.nodes, self.hosts_per_port
            ),
        );
        let is_per_thread = self.outstanding == Outstanding::Thread;
        refuse(
            !is_per_thread && self.nodes > AGENTS_MAX,
            "outstanding",
            format!(
                "one exchange for each of {} destinations; expected {AGENTS_MAX} or fewer, or \
                 \"thread\"",
                self.nodes
            ),
        );
        let agents = if is_per_thread { self.threads } else { 1 };
        let lanes = u64::from(self.nodes).pow(2).saturating_mul(agents.into());
        refuse(
            lanes > LANES_MAX,
            "nodes",
            format!(
                "{} hosts with {agents} threads each have {lanes} pairs of a thread and a destination; \
                 expected {LANES_MAX} or fewer",
                self.nodes
            ),
        );
    }

    /// What a line carries in a slot, at the most, where all of them are taken: a packet; where its
    /// receiver answers, the grant of the answer; where grants are copied, a copy.
    fn slot_size(&self, mtu: Bytes) -> Bytes {
        let is_reserved = self.acknowledgments == Acknowledgments::Reserved;
        // Grants that come to a receiver take its line, too. Counters that hold what waits at a port give out later
        // slots by themselves where that delays data; others would give out more than the line carries.
        let is_blind = !self.switch.counts_waiting();
        let is_answered = is_blind && is_reserved && self.transport.table().answers();
        let is_copied = self.tracking() == Tracking::Receivers;
        let frames = u64::from(is_answered) + u64::from(is_copied);
        on_the_wire(mtu, Bytes::ZERO) + Bytes::new(CONTROL_WIRE.into()) * frames
    }

    /// The most that an exchange takes where nothing else is on the lines: two frames, two ways, the
    /// switch, and chance when a reservation is sent and when its grant is read.
    pub(crate) fn longest_exchange(&self) -> Span {
        let control = self.line_rate.send_time(Bytes::new(CONTROL_WIRE.into()));
        let each_way = control + self.line_delay + self.host.delay + self.host.jitter.most();
        self.switch.latency + each_way * 2
    }

    /// The most that a burst is to its thread and to its host.
    fn longest_work(&self, mtu: Bytes) -> Span {
        self.host.work(mtu * u64::from(self.burst_packets)) + self.host.exchange_cost
    }

    /// Who tracks what was granted.
    fn tracking(&self) -> Tracking {
        let usual = if self.switch.can_track_pairs() { Tracking::Pairs } else { Tracking::None };
        self.recovery.tracking.unwrap_or(usual)
    }

    /// Ports of the switch.
    fn ports(&self) -> u32 {
        self.nodes.div_ceil(self.hosts_per_port.get())
    }

    /// The network for frames of at most `mtu`. What software takes is part of the lines: it delays
    /// every packet alike.
    fn network(&self, mtu: Bytes) -> packets::Config {
        let delay = self.line_delay + self.host.delay;
        let application = Some(self.host.application);
        let shape = SingleSwitch { hosts: self.nodes, rate: self.line_rate, delay };
        packets::Config {
            topology: Shape::SingleSwitch(shape),
            load_rate: self.load_rate,
            forwarding: self.switch.forwarding,
            switch_latency: self.switch.latency,
            mtu,
            queues: self.switch.queues(),
            convergence: self.convergence,
            failures: self.failures,
            loss_rate: self.loss_rate,
            bit_error_rate: self.bit_error_rate,
            clock_tolerance: 0,
            host: Host {
                wake_up: WakeUp { least: application, most: application },
                ..Host::default()
            },
            ..packets::Config::default()
        }
    }
}

impl Entering {
    /// Every mistake in the table, keys below the fabric's.
    fn check(&self, nodes: u32) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let key = format!("entering.nodes[{index}]");
            if node.get() >= nodes {
                problems.push(Problem::new(&key, format!("{node}; expected below {nodes}")));
            }
            if self.nodes[..index].contains(node) {
                problems.push(Problem::new(&key, format!("{node} again; remove it")));
            }
        }
        if self.nodes.len() + 1 >= nodes as usize {
            let message = "all nodes but one, or all; leave two inside the rack";
            problems.push(Problem::new("entering.nodes", message));
        }
        problems
    }
}

/// What a packet counts, and the time of a count, where entering traffic has a share (M32). A schedule
/// of instants counts nothing.
fn shared(slot: Span, entering: &Entering, schedule: Schedule) -> (u32, Span) {
    let increment = match (entering.by, schedule) {
        (ShareBy::Increment, Schedule::Counters) => INCREMENT,
        _ => 1,
    };
    let rest = u64::from(100 - entering.share_percent);
    let unit = (slot.as_ps() * 100).div_ceil(rest * u64::from(increment));
    (increment, Span::from_ps(unit))
}

fn below(key: &str, problems: Vec<Problem>) -> Vec<Problem> {
    problems.into_iter().map(|problem| problem.below(key)).collect()
}

/// Where a key of the network stands in this table.
fn rename(problem: Problem) -> Problem {
    let key = match problem.key.split_once('.') {
        Some(("queues", rest)) => format!("switch.{rest}"),
        Some(("topology", "hosts")) => "nodes".into(),
        Some(("topology", rest)) => format!("line_{rest}"),
        None if problem.key == "mtu" => "transport".into(),
        None if problem.key == "topology" => "nodes".into(),
        _ => return problem,
    };
    Problem { key, ..problem }
}

impl Plan {
    /// Whether something fails, and hosts find out by themselves.
    pub(crate) fn hosts_watch(&self) -> bool {
        !self.network.faults.is_empty() && !self.config.failures.oracle
    }

    /// The same plan with faults.
    ///
    /// # Errors
    /// For each component that the rack does not have: the problem's key is its index.
    pub fn with_faults(self, faults: &[Fault]) -> Result<Self, Vec<Problem>> {
        let why_not = if !self.config.transport.table().recovers() {
            Some(SENDS_ONCE)
        } else if self.config.switch.accounting == Accounting::Literal {
            Some(TURNS_BELOW_ZERO)
        } else {
            None
        };
        if let Some(why) = why_not {
            Fault::refuse_all(faults, &format!("would fail, but {why}"))?;
        }
        Ok(Self { network: self.network.with_faults(faults)?, ..self })
    }

    /// Ports of the switch.
    #[must_use]
    pub fn ports(&self) -> u32 {
        self.config.ports()
    }

    /// From a reservation's arrival at the switch to that of the first packet that it is for, at the
    /// least: the grant's way to its host, and the packet's way back.
    #[must_use]
    pub fn lead(&self) -> Span {
        let config = &self.config;
        let way = config.line_delay + config.host.delay;
        let control = config.line_rate.send_time(Bytes::new(CONTROL_WIRE.into()));
        config.switch.latency + control + way * 2 + config.slot
    }

    /// Bursts that a host may have under way at a time.
    #[must_use]
    pub fn agents(&self) -> u32 {
        match self.config.outstanding {
            Outstanding::Thread => self.config.threads,
            Outstanding::Destination => self.config.nodes,
        }
    }

    /// Whether a node stands for what is outside the rack.
    pub(crate) fn is_outside(&self, node: NodeId) -> bool {
        self.config.entering.as_ref().is_some_and(|entering| entering.nodes.contains(&node))
    }

    /// The switch's schedule, with nothing reserved.
    pub(crate) fn scheduler(&self) -> Scheduler {
        let (config, ports) = (&self.config, self.ports());
        let drop_above = config.switch.drop_above.saturating_mul(self.increment);
        match config.switch.schedule {
            Schedule::Counters => Scheduler::Counters(Pipeline::new(Settings {
                ports,
                drop_above,
                accounting: config.switch.accounting,
                decrement: config.switch.decrement,
                increment: self.increment,
                pairs: if self.has_pairs() { config.nodes.pow(2) } else { 0 },
            })),
            Schedule::Ideal => {
                let schedule = Ideal::new(ports, self.unit, self.lead());
                Scheduler::Ideal(Instants { schedule, drop_above })
            }
            Schedule::Matching => {
                let schedule = Matching::new(ports, self.unit, self.lead());
                Scheduler::Matching(Instants { schedule, drop_above })
            }
        }
    }

    /// Whether it is they who track what was granted.
    pub(crate) fn tracks(&self, who: Tracking) -> bool {
        self.config.recovery.tracking == Some(who)
    }

    /// Whether the switch knows what each pair has reserved: to tell the hosts, or so that what receivers
    /// give back takes nothing off that others have reserved, or that was counted down already.
    pub(crate) fn has_pairs(&self) -> bool {
        let is_tracked = !self.tracks(Tracking::None);
        is_tracked && self.config.switch.can_track_pairs()
    }

    pub(crate) fn copies(&self) -> Copies {
        if self.tracks(Tracking::Receivers) { Copies::ToReceivers } else { Copies::None }
    }

    pub(crate) fn watches_lines(&self) -> bool {
        self.config.switch.decrement == Decrement::Egress
    }
}
