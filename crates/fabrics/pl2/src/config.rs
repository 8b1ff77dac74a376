//! The `[fabric]` table of a rack under PL2 and the checked plan that the model runs on.
//!
//! Defaults are the prototype of PL2 §5 and §6.1: six servers at 100 Gbps, bursts of four packets, a
//! threshold of 15 slots, one exchange a thread. Delays are what §5 measured.

mod host;
mod plan;
mod switch;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;

use kernel::{Rate, Span};
use packets::config::Failures;
use rack::NodeId;
use rack::equipment::PacketParts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::transport::Transport;

pub use host::{Host, Jitter, Pending, TimeStamps};
pub use plan::Plan;
pub use switch::{Schedule, Switch};

/// A rack under PL2: hosts at one switch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Hosts. Default 6 (PL2 §5). From 2 to 64 times `hosts_per_port`.
    #[schemars(range(min = 2))]
    pub nodes: u32,
    /// Rate of a host's line. Unit: bit/s. Default 100 Gbps (PL2 §5).
    pub line_rate: Rate,
    /// From a host's NIC to the switch, and back: NIC, transceivers and wire. Unit: time. Default
    /// 320 ns: an exchange from NIC to NIC then takes 1 us at least (PL2 §5), 347 ns of it in the
    /// switch.
    pub line_delay: Span,
    /// Hosts that share a port of the switch, and so its counters, as four of 25 Gbps do at one port
    /// of 100 Gbps (PL2 §4.2.1). Default 1.
    pub hosts_per_port: NonZeroU32,
    /// The node rate that load 1.0 refers to. Unit: bit/s. Default 0 bps: that of a host's line.
    pub load_rate: Rate,
    /// Who says when bursts go. Default reservations.
    pub scheduling: Scheduling,
    /// Most packets of a burst (K). Default 4 (PL2 §4.3). From 1 to 16.
    #[schemars(range(min = 1, max = 16))]
    pub burst_packets: u32,
    /// A burst goes unsolicited while the slot chosen last is below it (t). Default 15 (PL2 §6.1);
    /// 0: never. Below `switch.drop_above`.
    pub unsolicited_below: u32,
    /// How long a grant is current: a burst goes unsolicited only if the last one is no older than this.
    /// Unit: time. Default 0 ns: the longest
    /// exchange of the rack when idle, and what a burst costs its thread and its host; 22.18 us here. PL2 §4.4 has "comparable to
    /// the time for a RSV-GRT exchange", and says that it holds "when senders send consecutive bursts to
    /// the same destination". With two usual exchanges, 4.1 us, it would not: the prototype's threads
    /// send a burst in 7.2 us (PL2 §6.4), so that none would ever go unsolicited.
    pub unsolicited_age: Span,
    /// Length of a slot, at most 1 ms. Unit: time. Default 0 ns: the time that the longest packet of a slot
    /// takes on the line. That is a packet of the transport's largest size and the 38 bytes that Ethernet adds: 123.04
    /// ns with 1500 B at 100 Gbps (PL2 §4.1: "the time it takes to transmit an MTU sized packet"; with the 120 ns of
    /// the packet alone the switch gives out more than the line carries). Where receivers answer each packet, slots are
    /// reserved for that, and the switch's counters know of no queue (`switch.decrement = "ingress"`, or another
    /// schedule), 84 bytes more for the grants of the answers, which share the line with the data: 129.76 ns (our
    /// choice: without it a full line loses packets). As much for copies of grants.
    pub slot: Span,
    /// What has one exchange of reservation and grant at a time: each thread of a host, or each destination.
    /// Default thread (PL2 §4.2.1).
    pub outstanding: Outstanding,
    /// Threads of a host. A flow belongs to the thread that has the fewest, the first of them, at its
    /// sender, and at its receiver for acknowledgments; between equals the flows of the other direction decide. Default 12 (PL2 §6.4). From 1 to 64. Of no effect
    /// with one exchange a destination.
    #[schemars(range(min = 1, max = 64))]
    pub threads: u32,
    /// Who waits for a grant. Default same-thread (PL2 §5).
    pub grant_handling: GrantHandling,
    /// Whether slots are reserved for packets without data, too. Default reserved (our choice: PL2
    /// does not say).
    pub acknowledgments: Acknowledgments,
    /// The switch.
    pub switch: Switch,
    /// What all hosts are like.
    pub host: Host,
    /// What happens to lost reservations and grants, and when senders die.
    pub recovery: Recovery,
    /// Traffic that enters the rack from others. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entering: Option<Entering>,
    /// From a failure or repair until the switch knows, and hosts if an oracle tells them. Unit: time. Default
    /// 1 ms (our choice: as the packet-switched racks).
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
    /// The transport of the hosts, over PL2. Default uncontrolled: TCP without congestion control (PL2 §4.5).
    pub transport: Transport,
    /// Power and cost of the parts.
    pub equipment: PacketParts,
}

/// Who says when bursts go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// The switch: PL2.
    #[default]
    Reservations,
    /// Nobody: a thread's burst goes when the thread has it, and its next one when that has left. The same hosts
    /// without PL2, to compare with: their threads, and what bursts cost them.
    None,
}

/// What has one exchange of reservation and grant at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outstanding {
    /// Each thread, whatever its destinations: the prototype (PL2 §4.2.1, §5).
    #[default]
    Thread,
    /// Each destination: PL2 in the NIC (PL2 §4.2.1).
    Destination,
}

/// Who waits for a grant (PL2 §5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GrantHandling {
    /// The thread that sends: it asks for the next burst when this one is out.
    #[default]
    SameThread,
    /// Another: the next burst is asked for when the grant of this one is in.
    Async,
}

/// Whether slots are reserved for packets without data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Acknowledgments {
    /// Yes: one each.
    #[default]
    Reserved,
    /// No: they go at once, and the switch does not count them.
    Unreserved,
}

/// What happens to lost reservations and grants, and when senders die.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Recovery {
    /// How long a host waits for a grant before it asks again; twice as long each time after. Unit:
    /// time. Default 67 us: three of the longest exchanges that PL2 §5 measured (our choice: what comes
    /// late leaves slots reserved for nothing).
    #[schemars(extend("x-above" = "0 ns"))]
    pub patience: Span,
    /// Who tracks what was granted, so that what frames that get lost had reserved is given back. Default:
    /// pairs, where the switch counts so that it can (`switch.schedule`, `decrement` and `accounting` as
    /// they are by default), else none (our choice: PL2 §4.5 suggests receivers, and built nothing).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracking: Option<Tracking>,
    /// How long a sender is silent before its receiver gives back what was granted to it. Unit: time.
    /// Default 200 us (our choice: above any wait for a slot where nothing fails).
    #[schemars(extend("x-above" = "0 ns"))]
    pub silence: Span,
}

/// Who tracks what was granted (PL2 §4.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tracking {
    /// Nobody.
    None,
    /// The switch, by pair of hosts, in a third register array: grants say what is reserved for their
    /// pair, and hosts give back what they do not hold (our choice).
    Pairs,
    /// Receivers, by copies of grants (PL2 §4.5).
    Receivers,
}

/// Traffic that enters the rack from others, unreserved (PL2 §7).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Entering {
    /// The ports that lead out of the rack, as the nodes that stand for what is there. Default: none.
    pub nodes: Vec<NodeId>,
    /// Per cent of each line that is kept for what enters there, all such ports together. Default 10
    /// (PL2 §7). From 1 to 90.
    #[schemars(range(min = 1, max = 90))]
    pub share_percent: u32,
    /// How the share is kept. Default slot.
    pub by: ShareBy,
}

/// How a share is kept free of reservations (PL2 §7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ShareBy {
    /// Slots are so much longer.
    #[default]
    Slot,
    /// A packet counts as more than one, and the unit of the counters is shorter.
    Increment,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            nodes: 6,
            line_rate: Rate::from_gbps(100),
            line_delay: Span::from_ns(320),
            hosts_per_port: NonZeroU32::MIN,
            load_rate: Rate::default(),
            scheduling: Scheduling::default(),
            burst_packets: 4,
            unsolicited_below: 15,
            unsolicited_age: Span::ZERO,
            slot: Span::ZERO,
            outstanding: Outstanding::default(),
            threads: 12,
            grant_handling: GrantHandling::default(),
            acknowledgments: Acknowledgments::default(),
            switch: Switch::default(),
            host: Host::default(),
            recovery: Recovery::default(),
            entering: None,
            convergence: Span::from_us(1_000),
            failures: Failures::default(),
            loss_rate: 0.0,
            bit_error_rate: 0.0,
            transport: Transport::default(),
            equipment: PacketParts::default(),
        }
    }
}

impl Default for Recovery {
    fn default() -> Self {
        Self { patience: Span::from_us(67), tracking: None, silence: Span::from_us(200) }
    }
}

impl Default for Entering {
    fn default() -> Self {
        Self { nodes: Vec::new(), share_percent: 10, by: ShareBy::default() }
    }
}
