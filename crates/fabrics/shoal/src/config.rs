//! The `[fabric]` table of a Shoal rack and the checked plan the model runs on.
//!
//! Defaults are the simulated rack of Shoal §7.1: 512 nodes, 100 Gbps in four channels.

use kernel::{Bytes, Rate, Span};
use rack::{Fault, NodeId, Problem, ranges};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clos::{Clos, SwitchSchedules};
use crate::equipment::Equipment;
use crate::packets::CellPlan;
use crate::schedule::{Order, Schedule};
use crate::stages::SlotTimes;
use crate::sync::SyncConfig;

/// How a node computes the feedback on a remote queue (§3.3.2, Eqs 1, 2 and 6). The paper leaves
/// open how the fraction of an epoch between feedback and release is counted; the choice matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Feedback {
    /// The queue as it will be when the next cell of the subflow can arrive: the static schedule
    /// tells how often it drains until then. Full rate, and no bound is ever broken.
    #[default]
    PhaseExact,
    /// Eq. 1 to the letter: the queue now; epochs since then counted whole. Loses a quarter to nearly
    /// half of a lone flow's rate in the paper's rack, by how far its nodes are apart in the schedule; a
    /// third on average.
    WholeEpochs,
    /// Eq. 6 to the letter: one less than the queues now. Full rate, but a subflow may briefly have
    /// two cells in a queue, which breaks Eqs 3 and 5 by as much.
    MinusOne,
}

/// Whether a reliable end-to-end transport runs above Shoal (§3.5, §8).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Reliable if anything in the scenario can lose a cell for good, otherwise none.
    #[default]
    Auto,
    /// None, as in the paper's evaluation: the link layer alone, lossless while nothing fails.
    None,
    /// Selective repeat between each pair of nodes, its acknowledgments carried as cells.
    Reliable,
}

/// How the flows of a workload from one node to another share what Shoal calls a flow: all that one
/// sends to the other (§3.3.2, which leaves this open).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PairOrder {
    /// They take turns, a packet each.
    #[default]
    RoundRobin,
    /// The first goes first.
    Fifo,
}

/// When the cell of the next flow id in a ready queue joins the queue (§3.3.3: "Shoal then scans the local flow
/// ids", without a time).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Admission {
    /// As soon as the local cell before it leaves: cells of others that come until the queue's next slot wait
    /// behind it.
    #[default]
    Departure,
    /// In the queue's next slot, behind what is there by then: a node holds fewer cells of its own.
    Slot,
}

/// The most slots from the one in which a cell is sent to the one in which its receiver acts on it (our
/// choice: 24 ms of the default slots).
const DELAY_SLOTS_MAX: u64 = 1 << 20;
/// A Shoal rack.
///
/// The largest times, 1 s, and sizes, 65,536 B, are our choice: a million times what a rack has, and
/// nothing that follows from them overflows in the 30 days that a run may be long.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Nodes in the rack. Default 512 (Shoal §7.1). From 2 to 2,048.
    #[schemars(range(min = 2, max = 2048))]
    pub nodes: u32,
    /// Bandwidth of a node, all channels together. Unit: bit/s. Default 100 Gbps (Shoal §7.1). At least
    /// 1 bps for each channel.
    pub node_rate: Rate,
    /// The node rate that load 1.0 refers to. Unit: bit/s. Default 50 Gbps: a Shoal node has twice
    /// the bandwidth of the packet-switched node it stands for, to make up for detours (Shoal §5).
    #[schemars(extend("x-above" = "0 bps"))]
    pub load_rate: Rate,
    /// Channels that switch independently, each its own plane of switches. Default 4 (Shoal §7.1).
    /// From 1 to 16.
    #[schemars(range(min = 1, max = 16))]
    pub channels: u32,
    /// Time from the start of one cell to the start of the next. Unit: time. Default 23.25 ns (Shoal
    /// §7.1). Holds the guard band, the framing and one cell. At most 1 s.
    #[schemars(extend("x-maximum" = "1 s"))]
    pub slot: Span,
    /// Guard band between cells: reconfiguration, propagation spread and synchronisation error. Unit:
    /// time. Default 2.75 ns (Shoal §7.1). Less than the slot.
    pub guard: Span,
    /// Cell with its header. Unit: bytes. Default 64 B (Shoal §7.1). At most 65,536 B, and 3 B or more
    /// beyond the header.
    #[schemars(extend("x-maximum" = "65536 B"))]
    pub cell: Bytes,
    /// Cell header, not counted as payload. Unit: bytes. Default 8 B (Shoal Fig. 5). Less than the
    /// cell.
    pub header: Bytes,
    /// Framing that the link adds to each cell. Unit: bytes. Default 0 B; the FPGA prototype's MAC
    /// took 24 B (Shoal §6.1). At most 65,536 B.
    #[schemars(extend("x-maximum" = "65536 B"))]
    pub framing: Bytes,
    /// Largest packet into which a flow is cut before packets are cut into cells. Unit: bytes.
    /// Default 1500 B (our choice: Ethernet's). From 1 B to 65,535 B.
    #[schemars(extend("x-minimum" = "1 B", "x-maximum" = "65535 B"))]
    pub packet: Bytes,
    /// Ports of a circuit switch. Default 64 (Shoal §5). An even number.
    #[schemars(range(min = 2))]
    pub radix: u32,
    /// Propagation over all wires of a path. Unit: time. Default 40 ns (Shoal §6.2). At most 1 s, and all
    /// latencies together at most 1,048,575 slots.
    #[schemars(extend("x-maximum" = "1 s"))]
    pub wire_latency: Span,
    /// Latency of one circuit switch; a path crosses three, or one where a single switch holds the
    /// rack. Unit: time. Default 128 ns: 50 cycles at 390.625 MHz (Shoal §4.1). 0 ns for optical
    /// switches (Shoal §3.5). At most 1 s.
    #[schemars(extend("x-maximum" = "1 s"))]
    pub switch_latency: Span,
    /// Latency of both end nodes together. Unit: time. Default 230.4 ns: 90 cycles at 390.625 MHz
    /// (Shoal §6.2). At most 1 s.
    #[schemars(extend("x-maximum" = "1 s"))]
    pub nic_latency: Span,
    /// Order of the schedule's permutations. Default propagation-aware (Shoal Appendix A).
    pub schedule: Order,
    /// How remote queues are reported. Default phase-exact (Shoal §3.3.2, Eqs 1, 2, 6).
    pub feedback: Feedback,
    /// Whether local cells wait as flow ids in a ready queue, one cell at a time entering the queue
    /// (Shoal §3.3.3, Eqs 4, 5). Default true.
    pub ready_queue: bool,
    /// When the next local cell of a ready queue joins the queue. Default departure (our choice; Shoal §3.3.3 does
    /// not say). Of no effect without `ready_queue`.
    pub admission: Admission,
    /// Whether feedback counts the ready queue too (Shoal §3.3.3, Eq. 6). Default true; needs
    /// `ready_queue`.
    pub feedback_counts_ready: bool,
    /// Whether a new flow starts on short queues only, `len ≤ 2^age` (Shoal §3.3.3). Default true.
    pub age_rule: bool,
    /// In which order several flows from one node to another send. Default round-robin, by
    /// packet (our choice; Shoal §3.3.2 does not say).
    pub pair_order: PairOrder,
    /// Traffic classes, served in strict priority (Shoal Appendix C). Default 1. From 1 to 8.
    #[schemars(range(min = 1, max = 8))]
    pub classes: u32,
    /// The most cells of other nodes that a node holds for one destination and class; a cell beyond is
    /// dropped and its sender told. Default 0: no limit (Shoal §3.3.4 sizes memory for the worst case).
    pub queue_limit: u32,
    /// Probability that a bit is flipped on its way through the fabric (Shoal Appendix D). Default
    /// 0. At most 0.001.
    #[schemars(range(min = 0.0, max = 0.001))]
    pub bit_error_rate: f64,
    /// End-to-end transport. Default auto (Shoal §3.5, §8).
    pub transport: Transport,
    /// Epochs for which a repaired pair of nodes must hear each other before it is used again.
    /// Default 8 (our choice; Shoal does not describe re-integration).
    #[schemars(range(min = 1))]
    pub reintegration_epochs: u32,
    /// Time after which an oracle takes nodes that stay dead out of everyone's schedule, and nodes that are
    /// back in again: it knows the scenario's faults, and changes all nodes and switches in one slot, which
    /// no message does. 0 ns: no oracle. Unit: time. Default 0 ns. The paper only suggests a new schedule,
    /// and does not say who changes it (Shoal §7.3).
    pub schedule_oracle_after: Span,
    /// Clocks, and what the guard band has to cover (Shoal §3.4).
    pub sync: SyncConfig,
    /// Power and cost of the parts, for this rack and a packet-switched one (Shoal §5).
    pub equipment: Equipment,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            nodes: 512,
            node_rate: Rate::from_gbps(100),
            load_rate: Rate::from_gbps(50),
            channels: 4,
            slot: Span::from_ps(23_250),
            guard: Span::from_ps(2_750),
            cell: Bytes::new(64),
            header: Bytes::new(8),
            framing: Bytes::ZERO,
            packet: Bytes::new(1500),
            radix: 64,
            wire_latency: Span::from_ns(40),
            switch_latency: Span::from_ns(128),
            nic_latency: Span::from_ps(230_400),
            schedule: Order::default(),
            feedback: Feedback::default(),
            ready_queue: true,
            admission: Admission::default(),
            feedback_counts_ready: true,
            age_rule: true,
            pair_order: PairOrder::default(),
            classes: 1,
            queue_limit: 0,
            bit_error_rate: 0.0,
            transport: Transport::default(),
            reintegration_epochs: 8,
            schedule_oracle_after: Span::ZERO,
            sync: SyncConfig::default(),
            equipment: Equipment::default(),
        }
    }
}

/// A checked configuration with what follows from it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// As configured.
    pub config: Config,
    /// Who meets whom, when.
    pub schedule: Schedule,
    /// How flows become cells.
    pub cells: CellPlan,
    /// Time to send one cell on one channel, without framing.
    pub cell_time: Span,
    /// From the last bit sent to the last bit received.
    pub latency: Span,
    /// What breaks, when.
    pub faults: Vec<Fault>,
    /// Whether the reliable transport runs.
    pub is_reliable: bool,
    /// Whether a cell can be lost at all; if not, the model leaves out what recovery takes.
    pub is_lossy: bool,
    /// Slots from the one in which a cell is sent to the one in which its receiver acts on it: guard
    /// band, cell and latency, rounded up to whole slots. A relay checks the CRC at the cell's end before
    /// it acts.
    pub delay_slots: u32,
}

impl Plan {
    /// The same plan with faults.
    ///
    /// # Errors
    /// For each component that the rack does not have: the problem's key is its index.
    pub fn with_faults(mut self, faults: &[Fault]) -> Result<Self, Vec<Problem>> {
        let switches = self.switches();
        Fault::check_all(faults, |component| switches.check_component(component))?;
        self.is_reliable = self.config.is_reliable(faults);
        self.is_lossy = self.config.is_lossy(faults);
        self.faults = faults.to_vec();
        Ok(self)
    }

    /// What its slots are worth in time.
    pub(crate) fn times(&self) -> SlotTimes {
        let hop = self.config.guard + self.cell_time + self.latency;
        SlotTimes { slot: self.config.slot, hop }
    }

    /// How far clocks may differ before cells are clipped: what the cell leaves of its slot, less all else
    /// that the guard band is for (§3.4).
    pub(crate) fn synchronisation_margin(&self) -> Span {
        let config = &self.config;
        let gap = config.slot - config.channel_rate().send_time(config.cell + config.framing);
        let margin = config.sync.guard_band().synchronisation_margin(gap);
        margin.expect("the plan checked that the guard band suffices")
    }

    /// Whether nodes may go over to another schedule.
    pub(crate) fn may_reschedule(&self) -> bool {
        self.config.schedule_oracle_after > Span::ZERO && !self.faults.is_empty()
    }

    /// The schedule of each switch (§3.2).
    #[must_use]
    pub fn switches(&self) -> SwitchSchedules {
        let clos = self.config.clos().expect("the plan checked that switches can join the nodes");
        let peer =
            |node: NodeId, position| self.schedule.peer(node.get(), position).map(NodeId::new);
        SwitchSchedules::new(clos, self.schedule.positions(), peer)
            .expect("the schedule meets each pair once an epoch")
    }
}

impl Config {
    /// Checks the configuration and derives the plan.
    ///
    /// # Errors
    /// Every problem found, each with its key and a remedy.
    pub fn plan(&self) -> Result<Plan, Vec<Problem>> {
        let mut problems = ranges::check(self, self.check());
        if !problems.is_empty() {
            return Err(problems);
        }
        problems.extend(self.check_timing());
        problems.extend(self.clos().err());
        let cells = match CellPlan::new(self.packet, self.cell - self.header) {
            Ok(cells) if problems.is_empty() => cells,
            Ok(_) => return Err(problems),
            Err(problem) => {
                problems.push(problem);
                return Err(problems);
            }
        };
        let latency = self.latency();
        let cell_time = self.channel_rate().send_time(self.cell);
        let delay_slots = (self.guard + cell_time + latency).div_ceil(self.slot);
        if delay_slots > DELAY_SLOTS_MAX {
            let message = format!(
                "a cell takes {latency} from node to node, {delay_slots} slots of {}; expected at most \
                 {DELAY_SLOTS_MAX}: make the slot longer or the latencies shorter",
                self.slot
            );
            return Err(vec![Problem::new("slot", message)]);
        }
        Ok(Plan {
            config: self.clone(),
            schedule: Schedule::new(self.nodes, self.channels, self.schedule),
            cells,
            faults: Vec::new(),
            is_reliable: self.is_reliable(&[]),
            is_lossy: self.is_lossy(&[]),
            cell_time,
            latency,
            delay_slots: delay_slots as u32,
        })
    }

    fn is_reliable(&self, faults: &[Fault]) -> bool {
        match self.transport {
            Transport::Reliable => true,
            Transport::None => false,
            Transport::Auto => !faults.is_empty() || self.bit_error_rate > 0.0,
        }
    }

    fn is_lossy(&self, faults: &[Fault]) -> bool {
        let drops = self.queue_limit > 0 || self.bit_error_rate > 0.0;
        drops || !faults.is_empty() || self.is_reliable(faults)
    }

    /// Rate of one channel.
    pub(crate) fn channel_rate(&self) -> Rate {
        self.node_rate / u64::from(self.channels)
    }

    /// One way from NIC to NIC (§6.2).
    fn latency(&self) -> Span {
        let switches = if self.nodes <= self.radix { 1 } else { 3 };
        self.wire_latency + self.switch_latency * switches + self.nic_latency
    }

    /// The switches that join the nodes (§3.2).
    ///
    /// # Errors
    /// If switches of this radix cannot join so many nodes.
    pub fn clos(&self) -> Result<Clos, Problem> {
        Clos::for_rack(self.nodes, self.radix, self.channels)
    }

    /// What keys of the right range are to each other.
    fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |bad: bool, key: &str, message: String| {
            if bad {
                problems.push(Problem::new(key, message));
            }
        };
        refuse(
            self.radix % 2 == 1,
            "radix",
            format!("a switch of {} ports; expected an even number, such as 64", self.radix),
        );
        refuse(
            self.node_rate.as_bps() < u64::from(self.channels),
            "node_rate",
            format!(
                "{} over {} channels leaves none of them a bit a second; expected, for example, \
                 \"100 Gbps\"",
                self.node_rate, self.channels
            ),
        );
        refuse(
            self.header >= self.cell,
            "header",
            format!("a header of {} leaves no payload in a cell of {}", self.header, self.cell),
        );
        refuse(
            self.feedback_counts_ready && !self.ready_queue,
            "feedback_counts_ready",
            "there is no ready queue to count; set it to false or `ready_queue` to true".into(),
        );
        problems.extend(self.sync.check(self.nodes, self.guard));
        problems
    }

    fn check_timing(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.guard >= self.slot {
            problems.push(Problem::new(
                "guard",
                format!(
                    "a guard band of {} fills the slot of {}; it must be less",
                    self.guard, self.slot
                ),
            ));
            return problems;
        }
        let wire = self.channel_rate().send_time(self.cell + self.framing);
        let usable = self.slot - self.guard;
        if wire > usable {
            problems.push(Problem::new(
                "slot",
                format!(
                    "{} less the guard band of {} leaves {usable}, but a cell of {} takes {wire} at {}; \
                     expected a slot of {} or more",
                    self.slot,
                    self.guard,
                    self.cell + self.framing,
                    self.channel_rate(),
                    wire + self.guard
                ),
            ));
        }
        problems
    }
}
