//! The `[fabric]` table of a rack behind one switch, and the checked plan that the model runs on.
//!
//! Defaults are those of SCOC §4.E: 128 lines of 25 Gb/s, packets of 288 B.

use kernel::{Bytes, Rate, Span};
use rack::equipment::{Bill, PacketParts};
use rack::topology::SingleSwitch;
use rack::{Estimate, Fault, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use switching::{Line, OutputQueued, Ticks};

use crate::chip_config::SCHEDULING;
use crate::hardware::{CHIP, CROSSING, fall_through};
use crate::{
    AnySwitch, Chip, ChipConfig, ChipPlan, Crrd, CrrdConfig, FlatConfig, Hiera, HieraConfig, entry,
    flat,
};

/// A rack whose nodes are the ports of one switch: at most 4096, for whose pairs the model has memory
/// (our choice: 4096² queues of a flat crossbar take 200 MB).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Nodes, and ports of the switch. Default 128 (§4.E). From 2 to 4096.
    #[schemars(range(min = 2, max = 4096))]
    pub nodes: u32,
    /// Rate of each line. Unit: bit/s. Default 25 Gbps (§5).
    #[schemars(extend("x-above" = "0 bps"))]
    pub line_rate: Rate,
    /// The node rate that load 1.0 refers to. Unit: bit/s. Default 0 bps: the line rate.
    pub load_rate: Rate,
    /// Largest packet into which flows are cut, header included. Unit: bytes. Default 288 B (§4.E).
    /// At most `switch.packet_max` of SCOC.
    #[schemars(extend("x-maximum" = "65535 B"))]
    pub segment: Bytes,
    /// Header of each packet. Unit: bytes. Default 0 B: the paper gives sizes of whole packets. Less
    /// than `segment`.
    pub header: Bytes,
    /// Time on the cable between a node and the switch, one way. Unit: time. Default 10 ns (our choice:
    /// two metres).
    pub cable: Span,
    /// Time through the switch beyond what its cycles model. Unit: time. Default: what follows from
    /// §4.E: for SCOC serial links and link logic, 52 ns; for Hiera all of SCOC's fall-through time,
    /// 63 ns; for the others none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Span>,
    /// The switch. Default SCOC.
    pub switch: SwitchTable,
    /// What the chip draws.
    pub equipment: Equipment,
}

/// Which switch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SwitchTable {
    /// The chip: a bufferless Clos network (§2).
    Scoc(ChipConfig),
    /// A flat crossbar with virtual output queues and iSLIP (§3.A).
    Flat(FlatTable),
    /// A hierarchical crossbar of small buffered subswitches (§3.A).
    Hiera(HieraTable),
    /// A Clos network with memories in its first and last stage (§3.A).
    Crrd(CrrdTable),
    /// The ideal, which queues at its outputs only: a bound for all others.
    OutputQueued(OutputQueuedTable),
}

/// Keys of a flat crossbar.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FlatTable {
    /// Iterations of iSLIP in a slot. Default 1 (§3.A). From 1.
    #[schemars(range(min = 1))]
    pub iterations: usize,
    /// Packets at each input and at each output. Default 16 (§4.E). From 1.
    #[schemars(range(min = 1))]
    pub packets: usize,
    /// Rate of the crossbar for each port. Unit: bit/s. Default 0 bps: the line rate, no speed-up
    /// (§4.E); SCOC's is 36.32 Gbps (§5).
    pub port_rate: Rate,
}

/// Keys of a hierarchical crossbar.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HieraTable {
    /// Ports of a subswitch, p. Default 8 (§4.E). From 1 to 64; divides the ports.
    #[schemars(range(min = 1, max = 64))]
    pub subswitch: usize,
    /// Packets at each input of a subswitch. Default 1 (§4.E); 16 is Hiera′. From 1 to 65,535.
    #[schemars(range(min = 1, max = 65535))]
    pub packets: usize,
    /// Packets at each output of a subswitch. Default: as many as at its inputs (our choice: the paper
    /// is silent). From 1 to 65,535.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub output_packets: Option<usize>,
}

/// Keys of a memory-space-memory Clos network.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CrrdTable {
    /// Ports of a module, and centre modules. Default 4, as SCOC. From 1 to 64; divides the ports.
    #[schemars(range(min = 1, max = 64))]
    pub per_group: usize,
    /// Iterations of the first phase. Default 1 (our choice). From 1.
    #[schemars(range(min = 1))]
    pub iterations: usize,
    /// Packets for which a module has room, for each of its inputs. Default 16 (§3.A); 512 with 32
    /// times the buffers (§4.E). From 1.
    #[schemars(range(min = 1))]
    pub packets: usize,
    /// Rate inside for each port. Unit: bit/s. Default 0 bps: the line rate, no speed-up.
    pub port_rate: Rate,
}

/// The ideal has no keys.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OutputQueuedTable {}

/// What the chip draws; the paper has no such figures of other switches, nor any price.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Equipment {
    /// Power of a chip of `chip_rate`; others in proportion. Unit: W. Default 150 (§5). From 0.
    #[schemars(range(min = 0.0))]
    pub chip_watts: f64,
    /// Rate of that chip, all ports together. Unit: bit/s. Default 3.4 Tbps: 136 ports of 25 Gbps
    /// (§5).
    #[schemars(extend("x-above" = "0 bps"))]
    pub chip_rate: Rate,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            nodes: 128,
            line_rate: CHIP.line_rate,
            load_rate: Rate::default(),
            segment: Bytes::new(288),
            header: Bytes::ZERO,
            cable: Span::from_ns(10),
            latency: None,
            switch: SwitchTable::Scoc(ChipConfig::default()),
            equipment: Equipment::default(),
        }
    }
}

impl Default for FlatTable {
    fn default() -> Self {
        let FlatConfig { iterations, packets, .. } = FlatConfig::default();
        Self { iterations, packets, port_rate: Rate::default() }
    }
}

impl Default for HieraTable {
    fn default() -> Self {
        let HieraConfig { subswitch, packets, output_packets, .. } = HieraConfig::default();
        Self { subswitch, packets, output_packets }
    }
}

impl Default for CrrdTable {
    fn default() -> Self {
        let CrrdConfig { per_group, iterations, packets, .. } = CrrdConfig::default();
        Self { per_group, iterations, packets, port_rate: Rate::default() }
    }
}

impl Default for Equipment {
    fn default() -> Self {
        Self { chip_watts: CHIP.watts, chip_rate: CHIP.line_rate * CHIP.ports as u64 }
    }
}

/// A switch that was checked.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum SwitchPlan {
    Scoc(Box<ChipPlan>),
    Flat(FlatConfig),
    Hiera(HieraConfig),
    Crrd(CrrdConfig),
    OutputQueued(Line),
}

/// A checked configuration with what follows from it.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The configuration with nothing left open.
    pub config: Config,
    pub(crate) switch: SwitchPlan,
    /// Time through the switch beyond what its cycles model.
    pub(crate) latency: Span,
}

impl Plan {
    /// The same plan with faults.
    ///
    /// # Errors
    /// For each of them: nothing fails here.
    pub fn with_faults(self, faults: &[Fault]) -> Result<Self, Vec<Problem>> {
        Fault::refuse_all(faults, "does not fail in a rack of one switch").map(|()| self)
    }

    /// The switch, empty, and its lines: to put it on a bench. `seed` is that of all chance in it.
    #[must_use]
    pub fn switch(&self, seed: u64) -> (AnySwitch, Line) {
        (self.switch.build(self.config.nodes as usize, seed), self.switch.line())
    }

    /// Application bytes of a full packet.
    pub(crate) fn payload(&self) -> Bytes {
        self.config.segment - self.config.header
    }

    /// On cables and in the switch's serial links.
    pub(crate) fn constant(&self) -> Span {
        self.config.cable * 2 + self.latency
    }

    /// What the rack draws and costs, where the paper has figures.
    pub(crate) fn bill(&self) -> Option<Bill> {
        if !matches!(self.switch, SwitchPlan::Scoc(_)) {
            return None;
        }
        let Config { nodes, line_rate, equipment, .. } = &self.config;
        let parts = PacketParts {
            switch_watts: equipment.chip_watts,
            switch_rate: equipment.chip_rate,
            ..PacketParts::default()
        };
        let shape = SingleSwitch { hosts: *nodes, rate: *line_rate, ..SingleSwitch::default() };
        shape.build().ok().map(|topology| parts.bill(&topology))
    }
}

impl SwitchPlan {
    /// The lines.
    pub(crate) fn line(&self) -> Line {
        match self {
            Self::Scoc(plan) => plan.line,
            Self::Flat(config) => config.line(),
            Self::Hiera(config) => config.line(),
            Self::Crrd(config) => config.line(),
            Self::OutputQueued(line) => *line,
        }
    }

    /// The longest packet that it takes.
    pub(crate) fn packet_max(&self) -> Bytes {
        match self {
            Self::Scoc(plan) => plan.config.packet_max,
            Self::Flat(config) => config.slot,
            _ => SEGMENT_MAX,
        }
    }

    /// The switch, empty.
    pub(crate) fn build(&self, ports: usize, seed: u64) -> AnySwitch {
        match self {
            Self::Scoc(plan) => AnySwitch::Scoc(Box::new(Chip::new(ChipPlan::clone(plan), seed))),
            Self::Flat(config) => AnySwitch::Flat(Box::new(flat(*config))),
            Self::Hiera(config) => AnySwitch::Hiera(Box::new(Hiera::new(*config))),
            Self::Crrd(config) => AnySwitch::Crrd(Box::new(Crrd::new(*config))),
            Self::OutputQueued(line) => {
                AnySwitch::OutputQueued(Box::new(OutputQueued::new(*line, ports)))
            }
        }
    }

    /// The least time from a packet's first bit at the idle switch to its first bit leaving: less
    /// only what the wait for a cycle, a colour or a slot adds.
    pub(crate) fn least_delay(&self, size: Bytes) -> Ticks {
        match self {
            // The word is at its output in the cycle after it crosses.
            Self::Scoc(plan) => {
                entry::wait(plan, size) + plan.line.start_of(plan.first_word() + CROSSING)
            }
            Self::Flat(_) | Self::Crrd(_) => self.line().send_time(size),
            Self::Hiera(_) | Self::OutputQueued(_) => Ticks::default(),
        }
    }

    /// What §4.E says of the time through the switch beyond what the cycles model.
    pub(crate) fn latency(&self) -> Span {
        match self {
            Self::Scoc(plan) => {
                let clock = plan.config.clock_hertz;
                let all = fall_through(clock);
                let modelled = plan.line.span(plan.line.start_of(SCHEDULING + CROSSING));
                if all > modelled { all - modelled } else { Span::ZERO }
            }
            Self::Hiera(config) => fall_through(config.clock_hertz),
            Self::Flat(_) | Self::Crrd(_) | Self::OutputQueued(_) => Span::ZERO,
        }
    }
}

/// What a pair of an input and an output, or of groups of them, takes in a switch, queues and arbiters
/// together.
const PAIR: u64 = 48;
/// What is allocated whatever the size: wheels of events and histograms.
const FIXED: u64 = 1 << 20;
/// A node's own state.
const NODE: u64 = 400;

impl Config {
    /// What planning and running it will take, open flows and their packets apart. Builds nothing.
    /// Unit: bytes.
    #[must_use]
    pub fn memory(&self) -> Bytes {
        let ports = u64::from(self.nodes);
        let switch = match &self.switch {
            SwitchTable::Scoc(chip) => chip.memory(ports),
            SwitchTable::OutputQueued(_) => Bytes::ZERO,
            _ => Estimate::new().and(ports.saturating_mul(ports), PAIR).bytes(),
        };
        Estimate::new().and(1, FIXED).and(ports, NODE).plus(switch).bytes()
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
        if !problems.is_empty() {
            return Err(problems);
        }
        match self.plan_switch() {
            Ok(switch) => {
                let load_rate = match self.load_rate {
                    rate if rate == Rate::default() => self.line_rate,
                    rate => rate,
                };
                let latency = self.latency.unwrap_or_else(|| switch.latency());
                let config = Self { load_rate, latency: Some(latency), ..self.clone() };
                Ok(Plan { config, switch, latency })
            }
            Err(wrong) => {
                problems.extend(wrong);
                Err(problems)
            }
        }
    }

    fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |key: &str, message: String| problems.push(Problem::new(key, message));
        if self.header >= self.segment {
            let (header, segment) = (self.header, self.segment);
            let message = format!("{header} leave no room for data in packets of {segment}");
            refuse("header", message);
        }
        ::rack::ranges::check(self, problems)
    }

    fn plan_switch(&self) -> Result<SwitchPlan, Vec<Problem>> {
        let (ports, line_rate, slot) = (self.nodes as usize, self.line_rate, self.segment);
        let speed_up = |rate: Rate| match rate {
            rate if rate == Rate::default() => (1, 1),
            rate => (rate.as_bps(), line_rate.as_bps()),
        };
        let found = match &self.switch {
            SwitchTable::Scoc(table) => {
                let config = ChipConfig { ports, line_rate, ..table.clone() };
                let plan = config.plan().map_err(below_switch)?;
                if plan.check_packet(slot).is_err() {
                    let most = plan.config.packet_max;
                    let message = format!("{slot}; a packet of SCOC has at most {most} (§5)");
                    return Err(vec![Problem::new("segment", message)]);
                }
                SwitchPlan::Scoc(Box::new(plan))
            }
            SwitchTable::Flat(FlatTable { iterations, packets, port_rate }) => {
                let (iterations, packets, speed_up) = (*iterations, *packets, speed_up(*port_rate));
                let config = FlatConfig { ports, iterations, speed_up, packets, slot, line_rate };
                config.check().map_err(below_switch)?;
                SwitchPlan::Flat(config)
            }
            SwitchTable::Hiera(HieraTable { subswitch, packets, output_packets }) => {
                let config = HieraConfig {
                    ports,
                    subswitch: *subswitch,
                    packets: *packets,
                    output_packets: *output_packets,
                    line_rate,
                    ..HieraConfig::default()
                };
                config.check().map_err(below_switch)?;
                SwitchPlan::Hiera(config)
            }
            SwitchTable::Crrd(CrrdTable { per_group, iterations, packets, port_rate }) => {
                let config = CrrdConfig {
                    ports,
                    per_group: *per_group,
                    iterations: *iterations,
                    packets: *packets,
                    speed_up: speed_up(*port_rate),
                    slot,
                    line_rate,
                    ..CrrdConfig::default()
                };
                config.check().map_err(below_switch)?;
                SwitchPlan::Crrd(config)
            }
            SwitchTable::OutputQueued(OutputQueuedTable {}) => {
                // Nothing depends on its clock.
                Line::check_clock(line_rate, CHIP.clock_hertz)
                    .map_err(|message| vec![Problem::new("line_rate", message)])?;
                SwitchPlan::OutputQueued(Line::clocked(line_rate, CHIP.clock_hertz))
            }
        };
        Ok(found)
    }
}

/// The largest packet: 16 bits of length (our choice).
pub(crate) const SEGMENT_MAX: Bytes = Bytes::new(u16::MAX as u64);

/// Where a key of the switch stands; its ports are the rack's nodes, its lines the rack's.
fn below_switch(problems: Vec<Problem>) -> Vec<Problem> {
    let name = |problem: Problem| match problem.key.as_str() {
        "ports" => Problem { key: "nodes".into(), ..problem },
        "line_rate" => problem,
        _ => problem.below("switch"),
    };
    problems.into_iter().map(name).collect()
}
