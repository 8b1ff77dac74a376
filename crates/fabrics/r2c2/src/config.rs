//! The `[fabric]` table of a rack with R2C2 and the checked plan that the model runs on.
//!
//! Defaults are the simulations of R2C2 §5.2: 512 nodes in a 3D torus at 10 Gbps a link, 100 ns a
//! hop, headroom 5 %, rates recomputed every 500 µs, random packet spraying.

mod bounds;
mod memory;
mod plan;
mod selection;
#[cfg(test)]
mod tests;

use std::num::NonZeroU8;

use kernel::{Bytes, Rate, Span};
use packets::config::{Failures, MTU_MAX};
use rack::Problem;
use rack::equipment::PacketParts;
use rack::topology::{Shape, Torus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::routing::Protocol;
use crate::wire;

pub use plan::{Plan, Wiring};
pub use selection::{Selection, Turn};

/// A direct-connect rack under R2C2.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Nodes: what the topology has, to be written where a reader should see it. Default 0: as many
    /// as that, 512 (R2C2 §5.2).
    pub nodes: u32,
    /// Nodes and links: a torus, a mesh, or a graph of hosts alone, at most eight links a node.
    /// Default torus of 8 x 8 x 8, 10 Gbps, 100 ns (R2C2 §5.2).
    pub topology: Shape,
    /// The node rate that load 1.0 refers to. Unit: bit/s. Default 0 bps: that of the slowest node,
    /// all its links together.
    pub load_rate: Rate,
    /// How flows are treated, by the class of the flow; those of later classes as the last. Default:
    /// one, of weight 1 and priority 0, by random packet spraying.
    pub classes: Vec<Class>,
    /// The part of each link that rates leave free, for flows that not all nodes know yet. Default
    /// 0.05 (R2C2 §5.2). From 0 to 0.99.
    #[schemars(range(min = 0.0, max = 0.99))]
    pub headroom: f64,
    /// From one computation of rates at a node to the next (ρ). 0 ns: one at each event that the node
    /// hears of (§3.1). Unit: time. Default 500 us (R2C2 §5.2). Else from 100 ns to a day.
    #[schemars(extend("x-maximum" = "86400 s"))]
    pub interval: Span,
    /// The node that computes all rates, in place of every node its own: the centralised design that R2C2 is
    /// compared with (R2C2 §5.2). Sources report each start and end of a flow to it, and it sends each of
    /// them the rates of its flows. Default: none; every node computes. A node of the rack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<u32>,
    /// Whether a node computes rates also when a flow of its own starts. Default link: it does not
    /// (§3.3.2 computes them periodically; §3.1 has a flow sent at once, and does not say how fast).
    pub start: Start,
    /// How fast a flow goes before its rate has been computed. Unit: bit/s. Default 0 bps: at the rate
    /// of its node's fastest link (our choice).
    pub initial_rate: Rate,
    /// Which flows a computation considers. Default all.
    pub batch: Batch,
    /// Largest data packet, its header of 36 bytes included. Unit: bytes. Default 1500 B (R2C2 §3.4).
    pub mtu: Bytes,
    /// Bytes that a flow may send at once when it has not sent for long. Unit: bytes. Default 3 KB:
    /// two packets (our choice: the paper gives none).
    pub burst: Bytes,
    /// Broadcast trees of a node, which take turns. Default 4 (our choice: the paper has "several").
    /// From 1 to 15.
    #[schemars(range(min = 1, max = 15))]
    pub trees: u8,
    /// The priority of broadcasts; data has 7. Default 7: in one queue with the data (R2C2 §5.2, "a
    /// single queue per port"). From 0, the most urgent, to 7.
    #[schemars(range(min = 0, max = 7))]
    pub broadcast_priority: u8,
    /// Most bytes that wait at a port. Unit: bytes. Default 0 B: no limit (our choice: R2C2 §5.2
    /// measures what waits).
    pub port_buffer: Bytes,
    /// From a packet's arrival at a node to its queue. Unit: time. Default 0 ns: it is part of the
    /// link's delay (R2C2 §5.2: 100 ns a hop). At most 1 s.
    #[schemars(extend("x-maximum" = "1 s"))]
    pub node_latency: Span,
    /// Estimates of what hosts can send.
    pub demand: Demand,
    /// The search for better routing of long flows. Default: none; flows keep the protocol of their
    /// class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection: Option<Selection>,
    /// What happens to lost packets and broadcasts.
    pub recovery: Recovery,
    /// How nodes find out which links and nodes work. In a scenario with faults a node greets its neighbours
    /// while it sends, receives or knows of a flow.
    pub discovery: Discovery,
    /// How the ends of flows find out that the other has died, or is out of reach.
    pub failures: Failures,
    /// Probability that a packet is lost on a link. Default 0. Below 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub loss_rate: f64,
    /// Probability that a bit is flipped on a link; the packet is then dropped at the link's end.
    /// Default 0. Below 0.001.
    #[schemars(range(min = 0.0, max = 0.001))]
    pub bit_error_rate: f64,
    /// Power and cost of the parts.
    pub equipment: PacketParts,
}

/// How a flow starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// At the initial rate, until the next of its node's computations.
    #[default]
    Link,
    /// At its rate by what its node knows then: the node computes the rates of its flows at once.
    /// Flows that a computation does not consider yet start at the initial rate.
    Share,
}

/// Which flows a node considers when it computes rates (§3.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Batch {
    /// All that it knows of.
    #[default]
    All,
    /// Those that have lasted for an interval; others are not limited.
    Lasting,
}

/// How the flows of a class are treated (§3.3.2).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Class {
    /// How their packets find their way. Default rps (R2C2 §5.2).
    pub protocol: Protocol,
    /// Their share of a link relative to others of their priority. Default 1. From 1 to 255.
    pub weight: NonZeroU8,
    /// Whose turn it is: 0 is served first, later priorities with what is left. Default 0.
    pub priority: u8,
    /// How fast an application gives its data to the node. Unit: bit/s. Default: all at once.
    /// From 10 Mbps to 1000 Tbps. Not where `interval` is 0 ns: nodes estimate it once an interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-minimum" = "10 Mbps", "x-maximum" = "1000 Tbps"))]
    pub application_rate: Option<Rate>,
}

/// How a node estimates what a host-limited flow can send, once an interval (§3.3.2, Eq. 1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Demand {
    /// Weight of a new estimate in the smoothed one: 1/2^`gain_shift`. Default 2 (our choice: the paper
    /// gives no constant). At most 16.
    #[schemars(range(min = 0, max = 16))]
    pub gain_shift: u32,
    /// An estimate is announced when it differs from the demand last announced by more than this. Unit: per cent.
    /// Default 10 (our choice). At most 10,000.
    #[schemars(range(max = 10_000))]
    pub margin_percent: u64,
}

/// How nodes find out which links work (§3.2 asks for it and leaves it open).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Discovery {
    /// From one greeting of a neighbour to the next. Unit: time. Default 1 ms (our choice: 16 bytes
    /// then are a millionth of a link). From 100 ns, and at
    /// least ten times what a greeting takes of the slowest link, to a day.
    #[schemars(extend("x-minimum" = "100 ns", "x-maximum" = "86400 s"))]
    pub interval: Span,
    /// How many greetings in a row may be missed before the link counts as dead. Default 3 (our
    /// choice). At least 1.
    #[schemars(range(min = 1, max = 1_000))]
    pub missed: u16,
    /// From hearing of a change until a node goes by it: others may follow at once. Unit: time.
    /// Default 100 us (our choice: far above any way through the rack). Above 0 ns, at most a day.
    #[schemars(extend("x-above" = "0 ns", "x-maximum" = "86400 s"))]
    pub hold: Span,
}

impl Discovery {
    /// From a change until all nodes go by it, nothing being lost: an end may have greeted just
    /// before, and a link that comes back takes a greeting each way.
    pub(crate) fn duration(&self) -> Span {
        let times = self.interval.as_ps().saturating_mul(u64::from(self.missed) + 3);
        Span::from_ps(times.saturating_add(self.hold.as_ps().saturating_mul(2)))
    }
}

impl Default for Discovery {
    fn default() -> Self {
        Self { interval: Span::from_us(1_000), missed: 3, hold: Span::from_us(100) }
    }
}

/// What happens to lost packets and broadcasts: the paper leaves it open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Recovery {
    /// How long an end of a flow waits for what is missing before it asks. Unit: time. Default 1 ms
    /// (our choice: far above any way through the rack). From 100 ns to a day.
    #[schemars(extend("x-minimum" = "100 ns", "x-maximum" = "86400 s"))]
    pub patience: Span,
    /// How long a source waits before it repeats a broadcast that was dropped for lack of room: up to
    /// twice as long the first time, and twice as long each further time. Unit: time. Default 10 us (our choice: a
    /// queue of 12 KB empties in that time). From 100 ns to a day.
    #[schemars(extend("x-minimum" = "100 ns", "x-maximum" = "86400 s"))]
    pub pause: Span,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            nodes: 0,
            topology: Shape::Torus(Torus::default()),
            load_rate: Rate::default(),
            classes: vec![Class::default()],
            headroom: 0.05,
            interval: Span::from_us(500),
            controller: None,
            start: Start::default(),
            initial_rate: Rate::default(),
            batch: Batch::default(),
            mtu: Bytes::new(1500),
            burst: Bytes::new(3000),
            trees: 4,
            broadcast_priority: DATA_PRIORITY,
            port_buffer: Bytes::ZERO,
            node_latency: Span::ZERO,
            demand: Demand::default(),
            selection: None,
            recovery: Recovery::default(),
            discovery: Discovery::default(),
            failures: Failures::default(),
            loss_rate: 0.0,
            bit_error_rate: 0.0,
            equipment: PacketParts::default(),
        }
    }
}

impl Default for Class {
    fn default() -> Self {
        Self {
            protocol: Protocol::default(),
            weight: NonZeroU8::MIN,
            priority: 0,
            application_rate: None,
        }
    }
}

impl Default for Demand {
    fn default() -> Self {
        Self { gain_shift: 2, margin_percent: 10 }
    }
}

impl Default for Recovery {
    fn default() -> Self {
        Self { patience: Span::from_us(1_000), pause: Span::from_us(10) }
    }
}

/// The priority of data (our choice: the least urgent, so that broadcasts may be put before it).
pub(crate) const DATA_PRIORITY: u8 = 7;
/// The longest time that a key may name: a day (our choice; a run takes 30 at the most).
pub(crate) const SPAN_MAX: Span = Span::from_us(24 * 3_600 * 1_000_000);
/// Most bytes that fill the token bucket: what its counters hold.
const BURST_MAX: Bytes = Bytes::new(2_000_000);

impl Config {
    /// Every mistake in it that can be seen without building the network, each with its key.
    fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |bad: bool, key: &str, message: String| {
            if bad {
                problems.push(Problem::new(key, message));
            }
        };
        let header = Bytes::new(wire::data::HEADER_BYTES as u64);
        refuse(
            self.mtu <= header || self.mtu > MTU_MAX,
            "mtu",
            format!("{}; expected more than the header's {header} and at most {MTU_MAX}", self.mtu),
        );
        refuse(
            self.burst < self.mtu || self.burst > BURST_MAX,
            "burst",
            format!(
                "{}; expected at least a packet of {} and at most {BURST_MAX}",
                self.burst, self.mtu
            ),
        );
        refuse(self.classes.is_empty(), "classes", "no class; expected one or more".into());
        problems.extend(self.check_bounds());
        problems.extend(self.check_controller());
        let wrong = self.selection.iter().flat_map(Selection::check);
        problems.extend(wrong.map(|problem| problem.below("selection")));
        ::rack::ranges::check(self, problems)
    }
}
