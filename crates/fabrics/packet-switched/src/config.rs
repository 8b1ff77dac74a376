//! The `[fabric]` table of a packet-switched rack and the checked plan the model runs on.
//!
//! Defaults are the packet-switched rack of Shoal §7.3: 512 nodes at 50 Gbps in a folded Clos of full
//! bisection.

use ::rack::equipment::{Bill, PacketParts};
use ::rack::topology::{LeafSpine, Mesh, Shape, SingleSwitch, ThreeTier, Torus};
use ::rack::{Fault, Problem, ranges};
use kernel::{Bytes, Rate, Span};
use packets::Routing;
use packets::config::{Failures, Host};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::switch::Switch;
use crate::transport::Transport;

/// A packet-switched rack.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Nodes; takes the place of `topology.hosts` where that is not written. Default 0: as many as
    /// the topology has, 512 (Shoal §7.1).
    pub nodes: u32,
    /// Hosts, switches and links. Default leaf-spine: 24 switches of 64 ports at 50 Gbps, no
    /// oversubscription (Shoal §5, §7.3).
    pub topology: Shape,
    /// The node rate that load 1.0 refers to. Unit: bit/s. Default 0 bps: that of the slowest node,
    /// all its links together.
    pub load_rate: Rate,
    /// How equal paths are shared. Default: what the transport asks for: source-path for NDP (NDP
    /// §3.1.1), random-spray for Homa, else ecmp (Shoal §7.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing: Option<Routing>,
    /// What all switches are like.
    pub switch: Switch,
    /// What all hosts are like: what packets and messages take inside of them.
    pub host: Host,
    /// From a failure or repair to new routes in all switches. Unit: time. Default 1 ms (our choice:
    /// link-state routing in a rack takes 0.1 to 10 ms).
    pub convergence: Span,
    /// How hosts find out that others have died.
    pub failures: Failures,
    /// Probability that a packet is lost on a link. Default 0. Below 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub loss_rate: f64,
    /// Probability that a bit is flipped on a link; the packet is then dropped at the link's end.
    /// Default 0. Below 0.001.
    #[schemars(range(min = 0.0, max = 0.001))]
    pub bit_error_rate: f64,
    /// How far the clocks of hosts and switches may be off: all lines of one are slower than their rate by a
    /// part that is drawn, from none to twice this; IEEE 802.3 allows 100. Without it hosts that fill a port
    /// with packets of one size keep step for ever, and some may find no room there for as long. Unit:
    /// parts per million. Default 0. At most 10000.
    #[schemars(range(max = 10_000))]
    pub clock_tolerance: u32,
    /// The transport of the hosts. Default dctcp (one of Shoal §7.3's three).
    pub transport: Transport,
    /// Power and cost of the parts (Shoal §5).
    pub equipment: PacketParts,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            nodes: 0,
            topology: Shape::default(),
            load_rate: Rate::default(),
            routing: None,
            switch: Switch::default(),
            host: Host::default(),
            convergence: Span::from_us(1000),
            failures: Failures::default(),
            loss_rate: 0.0,
            bit_error_rate: 0.0,
            clock_tolerance: 0,
            transport: Transport::default(),
            equipment: PacketParts::default(),
        }
    }
}

/// Why a transport without recovery needs a network that loses nothing.
const SENDS_ONCE: &str = "raw sends a lost packet only once; set transport.losses = \"repeat\" or \"forget\", or let nothing be lost";

/// A checked configuration with what follows from it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The configuration with nothing left open.
    pub config: Config,
    /// The network.
    pub network: packets::Plan,
    /// What it is made of.
    pub bill: Bill,
}

impl Plan {
    /// The same plan with faults.
    ///
    /// # Errors
    /// For each component that the rack does not have: the problem's key is its index.
    pub fn with_faults(self, faults: &[Fault]) -> Result<Self, Vec<Problem>> {
        if !self.config.transport.table().recovers() {
            Fault::refuse_all(faults, &format!("would fail, but {SENDS_ONCE}"))?;
        }
        Ok(Self { network: self.network.with_faults(faults)?, ..self })
    }
}

impl Config {
    /// What planning and running it will take, open flows and their packets apart. Builds nothing.
    /// Unit: bytes.
    #[must_use]
    pub fn memory(&self) -> Bytes {
        self.sized().memory()
    }

    /// What it takes on top of that where something fails. Unit: bytes.
    #[must_use]
    pub fn failures_memory(&self) -> Bytes {
        self.sized().failures_memory()
    }

    /// The network as far as its size goes.
    fn sized(&self) -> packets::Config {
        let usual = Transport::default();
        // As in the plan: a transport that makes no sense is refused there.
        let transport = self.transport.table();
        let transport = if transport.check().is_empty() { transport } else { usual.table() };
        let asks = transport.asks();
        let mut config = Self {
            routing: Some(self.routing.unwrap_or(asks.routing)),
            switch: self.switch.resolve(&asks),
            ..self.clone()
        };
        // What the two counts disagree on is the plan's to refuse, too.
        let _ = config.count_nodes();
        config.network(transport.mtu())
    }

    /// Checks the configuration and derives the plan.
    ///
    /// # Errors
    /// Every problem found, each with its key and a remedy.
    pub fn plan(&self) -> Result<Plan, Vec<Problem>> {
        let wrong = self.transport.table().check().into_iter();
        let mut problems: Vec<_> = wrong.map(|problem| problem.below("transport")).collect();
        // A transport that makes no sense would make none of the network either.
        let usual = Transport::default();
        let sane = if problems.is_empty() { &self.transport } else { &usual };
        let transport = sane.table();
        let asks = transport.asks();
        let mut config = Self {
            routing: Some(self.routing.unwrap_or(asks.routing)),
            switch: self.switch.resolve(&asks),
            host: self.host.resolve(),
            ..self.clone()
        };
        problems.extend(config.count_nodes().err());
        problems = ranges::check(self, problems);
        match config.network(transport.mtu()).plan() {
            Ok(network) if problems.is_empty() => {
                let mut wrong = transport.check_switch(&config.switch);
                wrong.extend(config.check_losses());
                wrong.extend(transport.check_network(&network));
                if !wrong.is_empty() {
                    return Err(wrong);
                }
                config.nodes = network.topology.hosts();
                config.load_rate = network.load_rate();
                let bill = config.equipment.bill(&network.topology);
                Ok(Plan { config, network, bill })
            }
            Ok(_) => Err(problems),
            Err(wrong) => {
                problems.extend(wrong.into_iter().map(rename));
                Err(ranges::check(self, problems))
            }
        }
    }

    /// What keeps a transport that sends everything once from ending.
    fn check_losses(&self) -> Vec<Problem> {
        let rates =
            [("loss_rate", self.loss_rate), ("bit_error_rate", self.bit_error_rate)].into_iter();
        let lossy = rates.filter(|&(_, rate)| rate > 0.0 && !self.transport.table().recovers());
        lossy.map(|(key, rate)| Problem::new(key, format!("{rate}, but {SENDS_ONCE}"))).collect()
    }

    /// Gives the topology as many hosts as `nodes` says.
    fn count_nodes(&mut self) -> Result<(), Problem> {
        let (nodes, shape) = (self.nodes, &mut self.topology);
        let (hosts, default) = match shape {
            Shape::SingleSwitch(shape) => (&mut shape.hosts, Some(usual::<SingleSwitch>().hosts)),
            Shape::LeafSpine(shape) => (&mut shape.hosts, Some(usual::<LeafSpine>().hosts)),
            Shape::ThreeTier(shape) => (&mut shape.hosts, Some(usual::<ThreeTier>().hosts)),
            Shape::Graph(shape) => (&mut shape.hosts, None),
            Shape::Torus(Torus { dimensions, .. }) | Shape::Mesh(Mesh { dimensions, .. }) => {
                let lengths = dimensions.iter().map(|&length| u64::from(length));
                let hosts = lengths.fold(1u64, u64::saturating_mul);
                return agree(nodes, hosts, "dimensions");
            }
            Shape::Racks(racks) => return agree(nodes, racks.hosts(), "racks and dimensions"),
        };
        if nodes > 0 && default == Some(*hosts) {
            *hosts = nodes;
        }
        agree(nodes, u64::from(*hosts), "hosts")
    }

    /// The network's part of a resolved configuration, for packets of at most `mtu`.
    fn network(&self, mtu: Bytes) -> packets::Config {
        packets::Config {
            topology: self.topology.clone(),
            load_rate: self.load_rate,
            routing: self.routing.expect("nothing is left open in a resolved table"),
            takes_detours: false,
            forwarding: self.switch.forwarding,
            switch_latency: self.switch.latency,
            host: self.host.clone(),
            mtu,
            queues: self.switch.queues(),
            convergence: self.convergence,
            failures: self.failures,
            loss_rate: self.loss_rate,
            bit_error_rate: self.bit_error_rate,
            clock_tolerance: self.clock_tolerance,
        }
    }
}

fn usual<T: Default>() -> T {
    T::default()
}

/// Whether `nodes`, if given, is what the topology has by `key`.
fn agree(nodes: u32, hosts: u64, key: &str) -> Result<(), Problem> {
    if nodes == 0 || u64::from(nodes) == hosts {
        return Ok(());
    }
    let message = format!("{nodes}, but topology.{key} makes {hosts}; remove one of the two");
    Err(Problem::new("nodes", message))
}

/// Where a key of the network stands in this table.
fn rename(problem: Problem) -> Problem {
    let key = match problem.key.split_once('.') {
        Some(("queues", rest)) => format!("switch.{rest}"),
        None if problem.key == "mtu" => "transport".into(),
        _ => return problem,
    };
    Problem { key, ..problem }
}
