//! The `[fabric]` table of a rack of leaves and spines, and the checked plan that the model runs on.
//!
//! Defaults: the chip's lines (§5), and a rack scaled down to 128 hosts (E25), for the paper does not
//! say how large its network was.

use ::rack::equipment::{Bill, PacketParts};
use ::rack::{Estimate, Fault, Problem};
use kernel::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use switching::Line;
use transports::dctcp;

use super::layout::topology;
use super::transport::Transport;
use crate::config::{Equipment as ChipEquipment, OutputQueuedTable, SEGMENT_MAX, SwitchPlan};
use crate::hardware::CHIP;
use crate::{ChipConfig, FlatConfig, ete};

/// A rack of leaves and spines.
///
/// Bounds are our choice: 4096 nodes as in a rack of one switch, for messages have 16 bits for one; 1024
/// spines, for a message finds its spine by a sum of 16 bits; 1 GB in a queue, for 32 bits count it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Nodes. Default 128 (our choice). A multiple of `leaves`.
    #[schemars(range(min = 2, max = 4096))]
    pub nodes: u32,
    /// Leaf switches. Default 16 (our choice). At least 2.
    #[schemars(range(min = 2, max = 1024))]
    pub leaves: u32,
    /// Spine switches, each with a link to each leaf. Default 8 (our choice): as many as a leaf has
    /// nodes, so that nothing is oversubscribed. At least 1.
    #[schemars(range(min = 1, max = 1024))]
    pub spines: u32,
    /// Rate of each link. Unit: bit/s. Default 25 Gbps (§5).
    #[schemars(extend("x-above" = "0 bps"))]
    pub line_rate: Rate,
    /// The node rate that load 1.0 refers to. Unit: bit/s. Default 0 bps: the line rate.
    pub load_rate: Rate,
    /// Time on a cable, one way. Unit: time. Default 10 ns (our choice: two metres).
    pub cable: Span,
    /// Largest segment into which leaves cut packets. Unit: bytes. Default 288 B (§4.E: a frequent
    /// size of segments that carry frames of 1500 B). At most what a spine carries, 320 B for SCOC.
    #[schemars(extend("x-above" = "0 B"))]
    pub segment: Bytes,
    /// Time through a leaf, once on the way in and once on the way out. Unit: time. Default 50 ns (our
    /// choice: the paper is silent).
    pub leaf_latency: Span,
    /// Time through a spine beyond what its cycles model, whatever its core. Unit: time. Default: what
    /// follows from §4.E for SCOC's serial links and link logic, 52 ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spine_latency: Option<Span>,
    /// Most bytes of one queue of a leaf, for one destination, acknowledged ones apart; what does not
    /// fit is dropped. Unit: bytes. Default 150 KB: 100 packets (our choice).
    #[schemars(extend("x-maximum" = "1 GB"))]
    pub queue: Bytes,
    /// Bytes of a queue from which on packets that allow it are marked; 0 B: none. Unit: bytes.
    /// Default 45 KB: 30 packets (our choice, as DCTCP elsewhere).
    #[schemars(extend("x-maximum" = "1 GB"))]
    pub mark_from: Bytes,
    /// Bytes that a leaf grants for one of its nodes before they have gone on the node's line. Unit:
    /// bytes. Default 9 KB (our choice: six packets, several round trips of requests).
    #[schemars(extend("x-maximum" = "1 GB"))]
    pub credit: Bytes,
    /// The core of the spines. Default SCOC.
    pub spine: SpineTable,
    /// The transport of the hosts. Default dctcp.
    pub transport: Transport,
    /// What the parts draw and cost.
    pub equipment: Equipment,
}

/// What the parts draw and cost. The paper has the power of its chip alone, so a network with other spines has
/// no such figures.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Equipment {
    /// The spines. They cost what packet switches of their bandwidth do (our choice: no price is published).
    pub chip: ChipEquipment,
    /// The leaves, which are packet switches, and the NICs.
    pub leaf: PacketParts,
}

/// The core of a spine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SpineTable {
    /// The chip: a bufferless Clos network (§2).
    Scoc(ChipConfig),
    /// A flat crossbar with virtual output queues and iSLIP (§4.F).
    Flat(FlatSpine),
    /// The ideal, which queues at its outputs only.
    OutputQueued(OutputQueuedTable),
}

/// Keys of a flat crossbar as a spine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FlatSpine {
    /// Iterations of iSLIP in a slot. Default 1 (§3.A). From 1.
    #[schemars(range(min = 1))]
    pub iterations: usize,
    /// Packets at each input and at each output. Default 16 (§4.E). From 1.
    #[schemars(range(min = 1))]
    pub packets: usize,
    /// Rate of the crossbar for each port. Unit: bit/s. Default 0 bps: twice the line rate (§4.F).
    pub port_rate: Rate,
}

impl Default for FlatSpine {
    fn default() -> Self {
        let FlatConfig { iterations, packets, .. } = FlatConfig::default();
        Self { iterations, packets, port_rate: Rate::default() }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            nodes: 128,
            leaves: 16,
            spines: 8,
            line_rate: CHIP.line_rate,
            load_rate: Rate::default(),
            cable: Span::from_ns(10),
            segment: Bytes::new(288),
            leaf_latency: Span::from_ns(50),
            spine_latency: None,
            queue: Bytes::new(150_000),
            mark_from: Bytes::new(45_000),
            credit: Bytes::new(9_000),
            spine: SpineTable::Scoc(ChipConfig::default()),
            transport: Transport::Dctcp(dctcp::Config::default()),
            equipment: Equipment::default(),
        }
    }
}

/// A checked configuration with what follows from it.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The configuration with nothing left open.
    pub config: Config,
    /// The data switch of a spine.
    pub(super) spine: SwitchPlan,
    /// The ETE switch beside the data switch.
    pub(super) control: SwitchPlan,
    /// Time through a spine beyond what its cycles model.
    pub(super) spine_latency: Span,
}

impl Plan {
    /// What the network draws and costs, where the paper has figures.
    pub(super) fn bill(&self) -> Option<Bill> {
        let Config { leaves, spines, line_rate, spine, equipment, .. } = &self.config;
        if !matches!(spine, SpineTable::Scoc(_)) {
            return None;
        }
        let whole = equipment.leaf.bill(&topology(&self.config));
        let links = f64::from(*leaves) * f64::from(*spines);
        let drawn = |watts: f64, rate: Rate| {
            links * line_rate.as_bps() as f64 / rate.as_bps() as f64 * watts
        };
        let as_packet_switches = drawn(equipment.leaf.switch_watts, equipment.leaf.switch_rate);
        let as_chips = drawn(equipment.chip.chip_watts, equipment.chip.chip_rate);
        let switches_watts = whole.switches_watts - as_packet_switches + as_chips;
        Some(Bill { switches_watts, ..whole })
    }

    /// The same plan with faults.
    ///
    /// # Errors
    /// For each of them: nothing fails here.
    pub fn with_faults(self, faults: &[Fault]) -> Result<Self, Vec<Problem>> {
        let why = "does not fail in a scoc-network; packet-switched has racks that do";
        Fault::refuse_all(faults, why).map(|()| self)
    }
}

/// Nodes and leaves for whose pairs the model has memory (our choice: a pair takes some 200 bytes).
const PAIRS_MAX: u64 = 1 << 20;

/// What a pair of a node and a leaf takes: its queue at one end, and what is put together at the other.
const PAIR: u64 = 200;
/// What is allocated whatever the size: the engine's calendar and histograms.
const FIXED: u64 = 1 << 20;
/// A link: two ports of the engine, and what waits at its ends.
const LINK: u64 = 1_200;

impl Config {
    /// What planning and running it will take, open flows and their packets apart. Builds nothing.
    /// Unit: bytes.
    #[must_use]
    pub fn memory(&self) -> Bytes {
        let (nodes, leaves) = (u64::from(self.nodes), u64::from(self.leaves));
        let spines = u64::from(self.spines);
        let spine = match &self.spine {
            SpineTable::Scoc(_) => self.chip().memory(leaves),
            SpineTable::Flat(_) => Estimate::new().and(leaves.saturating_mul(leaves), 48).bytes(),
            SpineTable::OutputQueued(_) => Bytes::ZERO,
        };
        let control = self.chip().memory(leaves);
        let links = nodes.saturating_add(leaves.saturating_mul(spines));
        let vertices = nodes.saturating_add(leaves).saturating_add(spines);
        Estimate::new()
            .and(1, FIXED)
            .and(nodes.saturating_mul(leaves), PAIR)
            .and(links, LINK)
            .and(nodes.saturating_mul(vertices), 2)
            .and(spine.get().saturating_add(control.get()), spines)
            .bytes()
    }

    /// What it takes on top of that where something fails: nothing does here. Unit: bytes.
    #[must_use]
    pub fn failures_memory(&self) -> Bytes {
        Bytes::ZERO
    }

    /// Checks the configuration and derives the plan.
    ///
    /// # Errors
    /// Every problem found, each with its key and a remedy.
    pub fn plan(&self) -> Result<Plan, Vec<Problem>> {
        let mut problems = self.check();
        let wrong = self.transport.table().check().into_iter();
        problems.extend(wrong.map(|problem| problem.below("transport")));
        problems = ::rack::ranges::check(self, problems);
        if self.line_rate == Rate::default() || !problems.is_empty() {
            return Err(problems);
        }
        let spine = self.plan_spine().map_err(below_spine)?;
        let chip = self.chip();
        let most = match spine {
            SwitchPlan::Scoc(_) => chip.packet_max,
            _ => SEGMENT_MAX,
        };
        if self.segment > most {
            let message = format!("{}; a spine carries at most {most}", self.segment);
            return Err(vec![Problem::new("segment", message)]);
        }
        let control = ete(&chip).plan().map_err(below_spine)?;
        let usual = SwitchPlan::Scoc(Box::new(ChipConfig::default().plan().expect("the chip is")));
        let spine_latency = self.spine_latency.unwrap_or_else(|| usual.latency());
        let load_rate = match self.load_rate {
            rate if rate == Rate::default() => self.line_rate,
            rate => rate,
        };
        let config = Self { load_rate, spine_latency: Some(spine_latency), ..self.clone() };
        let control = SwitchPlan::Scoc(Box::new(control));
        Ok(Plan { config, spine, control, spine_latency })
    }

    fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |bad: bool, key: &str, message: String| {
            if bad {
                problems.push(Problem::new(key, message));
            }
        };
        let (nodes, leaves) = (self.nodes, self.leaves);
        let pairs = u64::from(nodes) * u64::from(leaves);
        refuse(
            leaves >= 2 && !nodes.is_multiple_of(leaves),
            "nodes",
            format!("{leaves} leaves do not share {nodes} nodes evenly; expected a multiple"),
        );
        refuse(
            pairs > PAIRS_MAX,
            "nodes",
            format!("{nodes} nodes and {leaves} leaves make {pairs} queues; at most {PAIRS_MAX}"),
        );
        let mtu = self.transport.table().mtu();
        for (key, size) in [("queue", self.queue), ("credit", self.credit)] {
            let message = format!("{size} hold no packet of {mtu}; expected at least that");
            refuse(size < mtu, key, message);
        }
        if self.mark_from == Bytes::ZERO
            && let Some(message) = self.transport.table().needs_marks()
        {
            refuse(true, "mark_from", message.into());
        }
        problems
    }

    /// The chip of this network: of a spine that is none, the usual one, for its ETE switch.
    fn chip(&self) -> ChipConfig {
        let chip = match &self.spine {
            SpineTable::Scoc(table) => table.clone(),
            _ => ChipConfig::default(),
        };
        // Whole groups; ports that no leaf has stay dark.
        let ports = (self.leaves as usize).next_multiple_of(chip.ports_per_group.max(1));
        ChipConfig { ports, line_rate: self.line_rate, ..chip }
    }

    fn plan_spine(&self) -> Result<SwitchPlan, Vec<Problem>> {
        match &self.spine {
            SpineTable::Scoc(_) => Ok(SwitchPlan::Scoc(Box::new(self.chip().plan()?))),
            SpineTable::Flat(FlatSpine { iterations, packets, port_rate }) => {
                let line_rate = self.line_rate.as_bps();
                let port_rate = match port_rate.as_bps() {
                    0 => 2 * line_rate,
                    rate => rate,
                };
                let config = FlatConfig {
                    ports: self.leaves as usize,
                    iterations: *iterations,
                    packets: *packets,
                    speed_up: (port_rate, line_rate),
                    slot: self.segment,
                    line_rate: self.line_rate,
                };
                config.check()?;
                Ok(SwitchPlan::Flat(config))
            }
            SpineTable::OutputQueued(OutputQueuedTable {}) => {
                // Nothing depends on its clock.
                Line::check_clock(self.line_rate, CHIP.clock_hertz)
                    .map_err(|message| vec![Problem::new("line_rate", message)])?;
                Ok(SwitchPlan::OutputQueued(Line::clocked(self.line_rate, CHIP.clock_hertz)))
            }
        }
    }
}

/// Where a key of a spine stands; its lines are the rack's.
fn below_spine(problems: Vec<Problem>) -> Vec<Problem> {
    let name = |problem: Problem| match problem.key.as_str() {
        "line_rate" => problem,
        _ => problem.below("spine"),
    };
    problems.into_iter().map(name).collect()
}
