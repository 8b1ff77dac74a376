//! The network's part of a `[fabric]` table, and the checked plan that the model runs on.
//!
//! Defaults are Shoal's packet-switched rack (§7.3): 512 hosts at 50 Gbps in a folded Clos of full
//! bisection, queues of 100 packets of 1,500 bytes. The transport has a table of its own.

mod failures;
mod hosts;
mod memory;
mod pfc;
mod queues;

use kernel::{Bytes, Rate, Span};
use rack::topology::{Shape, Topology, Vertex};
use rack::{Fault, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use failures::Failures;
pub(crate) use hosts::Times;
pub use hosts::{Engine, Host, Law, Preset, Sleep, WakeUp};
pub(crate) use pfc::PAUSE_FRAME;
pub use pfc::Pfc;
pub use queues::{
    CreditFlow, Deficit, FlowControl, Marking, Overflow, PerFlow, Queues, Red, Scheduling, Step,
    Trimming,
};

use crate::transport::Framing;

/// How a switch chooses among next hops that are equally near.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Routing {
    /// By a hash of source, destination and ports: a flow keeps its path (RFC 2992).
    #[default]
    Ecmp,
    /// At random for each packet.
    RandomSpray,
    /// For each packet the next of a random order of all, and a new order after each round: even
    /// use, no pattern (NDP §3.1.1 does so at the sender).
    PermutationSpray,
    /// Each packet first goes to a host drawn at random, then to its destination, both ways at random
    /// among the shortest (Valiant load balancing, R2C2 §2.2.1): where hosts pass packets on.
    Valiant,
    /// By the path number that the sender wrote into the packet.
    SourcePath,
    /// Along the route that the sender wrote into the packet, port by port: for transports that do
    /// (R2C2 §3.5).
    #[serde(skip)]
    SourceRoute,
}

impl Routing {
    /// Whether the same packet at the same switch always takes the same way, while routes stay.
    pub(crate) fn is_steady(self) -> bool {
        matches!(self, Self::Ecmp | Self::SourcePath)
    }
}

/// When a switch starts to send a packet on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Forwarding {
    /// Once it is all there.
    #[default]
    StoreAndForward,
    /// Once its first 64 bytes are there, where the output is not faster than the input and free.
    CutThrough,
}

/// A packet-switched network.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Hosts, switches and links. Default: leaf and spine, 512 hosts (Shoal §7.3).
    pub topology: Shape,
    /// The node rate that load 1.0 refers to; 0 bps: that of the slowest host. Unit: bit/s. Default
    /// 0 bps.
    pub load_rate: Rate,
    /// How equal paths are shared. Default ecmp (Shoal §7.3, DCTCP and DCQCN).
    pub routing: Routing,
    /// Whether packets that carry their routes may take longer ones than the shortest.
    #[serde(skip)]
    pub takes_detours: bool,
    /// When a switch starts to send a packet on. Default store-and-forward, as the simulator that
    /// Shoal §7.3 used for these networks.
    pub forwarding: Forwarding,
    /// From a packet's arrival at a switch, or its first 64 bytes', to its arrival in the output
    /// queue. Unit: time. Default 500 ns (our choice: a present Ethernet switch; Shoal does not say).
    pub switch_latency: Span,
    /// What hosts take in time.
    pub host: Host,
    /// Largest packet, with all headers. Unit: bytes. Default 1500 B (Shoal §7.3). At most 9216 B.
    pub mtu: Bytes,
    /// Queues of a switch port.
    pub queues: Queues,
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
    /// part that is drawn, from none to twice this. Unit: parts per million. Default 0. At most 10000.
    #[schemars(range(max = 10_000))]
    pub clock_tolerance: u32,
}

/// Most that a clock may be off, in parts per million (our choice: a hundred times what IEEE 802.3 allows).
pub const CLOCK_TOLERANCE_MAX: u32 = 10_000;

impl Default for Config {
    fn default() -> Self {
        Self {
            topology: Shape::default(),
            load_rate: Rate::default(),
            routing: Routing::default(),
            takes_detours: false,
            forwarding: Forwarding::default(),
            switch_latency: Span::from_ns(500),
            host: Host::default(),
            mtu: Bytes::new(1500),
            queues: Queues::default(),
            convergence: Span::from_us(1000),
            failures: Failures::default(),
            loss_rate: 0.0,
            bit_error_rate: 0.0,
            clock_tolerance: 0,
        }
    }
}

/// Bytes that a cut-through switch waits for: enough for all headers (our choice: the smallest
/// Ethernet frame).
pub const CUT_THROUGH_HEADER: Bytes = Bytes::new(64);
/// Most bytes of a packet: a jumbo frame with room for headers (our choice; 16 bits hold it).
pub const MTU_MAX: Bytes = Bytes::new(9216);

/// A checked configuration with what follows from it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// As configured.
    pub config: Config,
    /// The network's graph.
    pub topology: Topology,
    /// What breaks, when.
    pub faults: Vec<Fault>,
}

impl Plan {
    /// The same plan with faults.
    ///
    /// # Errors
    /// For each component that the network does not have: the problem's key is its index.
    pub fn with_faults(mut self, faults: &[Fault]) -> Result<Self, Vec<Problem>> {
        Fault::check_all(faults, |component| self.topology.parts(component))?;
        self.faults = faults.to_vec();
        Ok(self)
    }

    /// Whether a transport with this framing fits the network.
    ///
    /// # Errors
    /// If its packets are larger than the network's, with the network's key.
    pub fn check_framing(&self, framing: Framing) -> Result<(), Problem> {
        let largest = Bytes::new(u64::from(framing.payload) + u64::from(framing.header));
        if largest <= self.config.mtu {
            return Ok(());
        }
        let mtu = self.config.mtu;
        let message = format!("{mtu}, but the transport sends packets of {largest}; raise it");
        Err(Problem::new("mtu", message))
    }

    /// All links of a host together.
    #[must_use]
    pub fn host_rate(&self, host: Vertex) -> Rate {
        self.topology.ports_of(host).map(|port| self.topology.port(port).link.rate).sum()
    }

    /// All links of a host together, of the host where that is least.
    #[must_use]
    pub fn node_rate(&self) -> Rate {
        let hosts = (0..self.topology.hosts()).map(Vertex::new);
        hosts.map(|host| self.host_rate(host)).min().unwrap_or_default()
    }

    /// Rate of the slowest host's line.
    #[must_use]
    pub fn line_rate(&self) -> Rate {
        let hosts = (0..self.topology.hosts()).map(Vertex::new);
        hosts.map(|host| self.host_rate(host)).min().expect("a network has two hosts or more")
    }

    /// The node rate that load 1.0 refers to.
    #[must_use]
    pub fn load_rate(&self) -> Rate {
        match self.config.load_rate {
            rate if rate == Rate::default() => self.line_rate(),
            rate => rate,
        }
    }
}

impl Config {
    /// Checks the configuration and builds the network's graph.
    ///
    /// # Errors
    /// Every problem found, each with its key and a remedy.
    pub fn plan(&self) -> Result<Plan, Vec<Problem>> {
        let mut problems = self.check();
        problems.extend(self.failures.check().into_iter().map(|p| p.below("failures")));
        problems.extend(self.host.check().into_iter().map(|p| p.below("host")));
        problems.extend(self.queues.check(self.mtu).into_iter().map(|p| p.below("queues")));
        let topology = match self.topology.build() {
            Ok(topology) => topology,
            Err(wrong) => {
                problems.extend(wrong.into_iter().map(|problem| problem.below("topology")));
                return Err(problems);
            }
        };
        let mut hosts = (0..topology.hosts()).map(Vertex::new);
        if self.routing == Routing::Valiant && hosts.any(|host| topology.degree(host) == 1) {
            let message = "valiant, where a host has one link and passes no packets on; expected a \
                           torus, a mesh or a graph in which each host has two links or more";
            problems.push(Problem::new("routing", message));
        }
        if problems.is_empty() {
            let plan = Plan { config: self.clone(), topology, faults: Vec::new() };
            match plan.check_pauses() {
                None => Ok(plan),
                Some(problem) => Err(vec![problem]),
            }
        } else {
            Err(problems)
        }
    }

    fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |bad: bool, key: &str, message: String| {
            if bad {
                problems.push(Problem::new(key, message));
            }
        };
        refuse(
            self.mtu < CUT_THROUGH_HEADER || self.mtu > MTU_MAX,
            "mtu",
            format!("{}; expected {CUT_THROUGH_HEADER} to {MTU_MAX}", self.mtu),
        );
        refuse(
            !(0.0..1.0).contains(&self.loss_rate),
            "loss_rate",
            format!("{} losses a packet; expected 0 or more and below 1", self.loss_rate),
        );
        refuse(
            !(0.0..0.001).contains(&self.bit_error_rate),
            "bit_error_rate",
            format!("{} errors a bit; expected 0 or more and below 0.001", self.bit_error_rate),
        );
        refuse(
            self.clock_tolerance > CLOCK_TOLERANCE_MAX,
            "clock_tolerance",
            format!(
                "{} parts per million; expected at most {CLOCK_TOLERANCE_MAX} (IEEE 802.3: 100)",
                self.clock_tolerance
            ),
        );
        problems
    }
}

#[cfg(test)]
mod tests;
