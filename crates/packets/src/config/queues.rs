//! The `queues` table: how a switch port holds, marks, cuts, drops and holds back packets.

use kernel::Bytes;
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pfc::Pfc;
use crate::packet::PRIORITIES;

/// The queues of a switch port, one for each priority.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Queues {
    /// Most bytes that wait at one port, all priorities together; with trimming, header queue apart.
    /// The packet on the line does not count. Unit: bytes. Default 150 KB: 100 packets (Shoal §7.3).
    pub port_buffer: Bytes,
    /// Memory that the ports of a switch share; 0 B: as much as the ports' limits add up to. Unit:
    /// bytes. Default 0 B.
    pub shared_buffer: Bytes,
    /// Of a shared buffer, a queue may hold at most `alpha` times what is free (Choudhury and Hahne,
    /// "Dynamic queue length thresholds for shared-memory packet switches", 1998). Default 1.0. From
    /// 1/128 to 128; kept in steps of 1/1024.
    #[schemars(range(min = 0.0078125, max = 128.0))]
    pub alpha: f64,
    /// Which priority goes first. Default strict.
    pub scheduling: Scheduling,
    /// When packets that allow it are marked instead of dropped. Default none.
    pub marking: Marking,
    /// Cuts the payload off packets that find the queue full (NDP §3.2). Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trimming: Option<Trimming>,
    /// What holds a sender back at each link. Default none.
    pub flow_control: FlowControl,
}

impl Default for Queues {
    fn default() -> Self {
        Self {
            port_buffer: Bytes::new(150_000),
            shared_buffer: Bytes::ZERO,
            alpha: 1.0,
            scheduling: Scheduling::default(),
            marking: Marking::default(),
            trimming: None,
            flow_control: FlowControl::default(),
        }
    }
}

/// Which priority goes first.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Scheduling {
    /// The most urgent that waits.
    #[default]
    Strict,
    /// Some strictly first, the others by weight.
    Deficit(Deficit),
}

/// Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Deficit {
    /// For each priority, from the most urgent: 0, served strictly before all with a weight, or its
    /// share of the bytes. Up to 8; those not given are 0. No default. Each at most 100.
    pub weights: Vec<u32>,
}

/// When packets are marked. Each priority's queue counts for itself.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Marking {
    /// Never.
    #[default]
    None,
    /// Above a threshold (DCTCP §3.1).
    Step(Step),
    /// With a probability that rises between two thresholds (DCQCN §3.1).
    Red(Red),
}

/// A threshold of marking.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Step {
    /// A packet that finds more than this waiting is marked: DCTCP's K. Unit: bytes. Default 97.5 KB:
    /// 65 packets (DCTCP §4, at 10 Gbps). Less than `port_buffer`.
    pub threshold: Bytes,
}

impl Default for Step {
    fn default() -> Self {
        Self { threshold: Bytes::new(97_500) }
    }
}

/// Two thresholds of marking.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Red {
    /// Below it nothing is marked: Kmin. Unit: bytes. Default 5 KB (DCQCN §5.2).
    pub min: Bytes,
    /// Above it everything is marked: Kmax. Unit: bytes. Default 200 KB (DCQCN §5.2). Above `min`; if
    /// above what the queue holds, probability rises on the same slope until that is full.
    pub max: Bytes,
    /// Probability just below `max`: Pmax. Default 0.01 (DCQCN §5.2). From 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub probability: f64,
}

impl Default for Red {
    fn default() -> Self {
        Self { min: Bytes::new(5_000), max: Bytes::new(200_000), probability: 0.01 }
    }
}

/// Trimming to the header (NDP §3.2): priority 0 is the header queue, the others hold data.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Trimming {
    /// Most bytes in the header queue. Unit: bytes. Default 18 KB: as much memory as 12 data packets
    /// (NDP §3.2: both queues have equal size). At least one header.
    pub header_buffer: Bytes,
    /// Size of a packet without its payload. Unit: bytes. Default 64 B (NDP §3.2).
    pub header: Bytes,
    /// Packets of the header queue for each of data while both wait. Default 10 (NDP §3.2). At least
    /// 1.
    #[schemars(range(min = 1))]
    pub ratio: u32,
    /// What becomes of a header that finds the header queue full. Default return (NDP §3.2.4).
    pub overflow: Overflow,
}

/// What becomes of a header that finds the header queue full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Overflow {
    /// A header of data goes back to its sender; anything else is dropped.
    #[default]
    Return,
    /// It is dropped.
    Drop,
}

impl Default for Trimming {
    fn default() -> Self {
        Self {
            header_buffer: Bytes::new(18_000),
            header: Bytes::new(64),
            ratio: 10,
            overflow: Overflow::Return,
        }
    }
}

/// What holds a sender back at each link.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FlowControl {
    /// Nothing: full queues drop.
    #[default]
    None,
    /// Pause frames by priority (IEEE 802.1Qbb).
    Pfc(Pfc),
    /// Credits for buffer space at the link's other end, by priority (as InfiniBand).
    Credit(CreditFlow),
    /// A queue and a window for each flow at each port: R2C2's ideal baseline (R2C2 §5.2).
    PerFlow(PerFlow),
}

/// Link-level credits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CreditFlow {
    /// Buffer of an input port for each priority. Unit: bytes. Default 64 KB (our choice: several
    /// round trips of a rack's link). At least one largest packet.
    pub buffer: Bytes,
    /// Size of the frame that gives credits back. Unit: bytes. Default 8 B (InfiniBand's flow control
    /// packet).
    pub frame: Bytes,
}

impl Default for CreditFlow {
    fn default() -> Self {
        Self { buffer: Bytes::new(65_536), frame: Bytes::new(8) }
    }
}

/// Queues and windows for each flow. An ideal: buffers are as many as it takes, the word that a
/// packet has left takes the wire's time but none of its capacity.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PerFlow {
    /// Packets of a flow that may be on a link or wait at its end; 0: twice the link's
    /// bandwidth-delay product and one (our choice; R2C2 does not say). Default 0.
    pub window: u32,
}

/// Largest weight: more makes bursts longer than any use (our choice).
const WEIGHT_MAX: u32 = 100;

impl Queues {
    /// What is wrong, with keys below this table.
    pub(super) fn check(&self, mtu: Bytes) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |bad: bool, key: &str, message: String| {
            if bad {
                problems.push(Problem::new(key, message));
            }
        };
        let lossless =
            matches!(self.flow_control, FlowControl::Credit(_) | FlowControl::PerFlow(_));
        refuse(
            self.port_buffer < mtu && !lossless,
            "port_buffer",
            format!("{} holds no packet of {mtu}; expected at least that", self.port_buffer),
        );
        refuse(
            self.port_buffer > Bytes::new(u64::from(u32::MAX)),
            "port_buffer",
            format!("{}; expected less than 4 GiB", self.port_buffer),
        );
        refuse(
            self.shared_buffer > Bytes::ZERO && self.shared_buffer < mtu,
            "shared_buffer",
            format!(
                "{} holds no packet of {mtu}; expected at least that, or 0 B",
                self.shared_buffer
            ),
        );
        refuse(
            !(1.0 / 128.0..=128.0).contains(&self.alpha),
            "alpha",
            format!("{}; expected 1/128 to 128", self.alpha),
        );
        problems.extend(self.check_scheduling());
        problems.extend(self.check_marking());
        problems.extend(self.check_trimming(mtu));
        problems.extend(self.check_flow_control(mtu));
        problems
    }

    fn check_scheduling(&self) -> Option<Problem> {
        let Scheduling::Deficit(Deficit { weights }) = &self.scheduling else { return None };
        let key = "scheduling.weights";
        if weights.len() > usize::from(PRIORITIES) {
            let count = weights.len();
            return Some(Problem::new(key, format!("{count} weights; expected at most 8")));
        }
        if weights.iter().all(|&weight| weight == 0) {
            let message = "no weight above 0; expected one, or kind = \"strict\"";
            return Some(Problem::new(key, message));
        }
        let large = weights.iter().find(|&&weight| weight > WEIGHT_MAX)?;
        Some(Problem::new(key, format!("a weight of {large}; expected at most {WEIGHT_MAX}")))
    }

    /// The most bytes that one queue may hold, and what bounds it.
    fn longest(&self) -> (Bytes, String) {
        let port = (self.port_buffer, format!("port_buffer of {}", self.port_buffer));
        if self.shared_buffer == Bytes::ZERO {
            return port;
        }
        // A queue that alone fills its switch's memory ends where it is alpha times what is left.
        let Self { shared_buffer, alpha, .. } = self;
        let share = alpha / (1.0 + alpha);
        let alone = Bytes::new((shared_buffer.get() as f64 * share) as u64);
        let words = format!("shared_buffer of {shared_buffer} with alpha = {alpha}");
        if alone < port.0 { (alone, words) } else { port }
    }

    fn check_marking(&self) -> Option<Problem> {
        let beyond = |key: &str, threshold: Bytes| {
            let (longest, bound) = self.longest();
            let message = format!("{threshold} is never reached in a {bound}; lower it");
            (threshold >= longest).then(|| Problem::new(key, message))
        };
        // Where nothing is dropped at the output, a queue may pass the port's limit.
        let drops = self.flow_control == FlowControl::None;
        match &self.marking {
            Marking::None => None,
            Marking::Step(step) if drops => beyond("marking.threshold", step.threshold),
            Marking::Step(_) => None,
            Marking::Red(red) if red.min >= red.max => {
                let message = format!("{} is not below max = \"{}\"; lower it", red.min, red.max);
                Some(Problem::new("marking.min", message))
            }
            Marking::Red(red) if !(0.0..=1.0).contains(&red.probability) => {
                let message = format!("{}; expected 0 to 1", red.probability);
                Some(Problem::new("marking.probability", message))
            }
            Marking::Red(red) if drops => beyond("marking.min", red.min),
            Marking::Red(_) => None,
        }
    }

    fn check_trimming(&self, mtu: Bytes) -> Vec<Problem> {
        let Some(trimming) = &self.trimming else { return Vec::new() };
        let mut problems = Vec::new();
        let mut refuse = |bad: bool, key: &str, message: String| {
            if bad {
                problems.push(Problem::new(key, message));
            }
        };
        let Trimming { header, header_buffer, ratio, .. } = *trimming;
        refuse(
            header == Bytes::ZERO || header >= mtu,
            "trimming.header",
            format!("{header}; expected 1 B or more and less than the mtu of {mtu}"),
        );
        refuse(
            header_buffer < header,
            "trimming.header_buffer",
            format!("{header_buffer} holds no header of {header}; expected at least that"),
        );
        refuse(
            ratio == 0,
            "trimming.ratio",
            "0 headers for each packet; expected 1 or more".into(),
        );
        refuse(
            self.scheduling != Scheduling::Strict,
            "trimming",
            "has its own way to share the line; set scheduling.kind = \"strict\"".into(),
        );
        refuse(
            self.flow_control != FlowControl::None,
            "trimming",
            "cuts what flow control would hold back; choose one of the two".into(),
        );
        problems
    }

    fn check_flow_control(&self, mtu: Bytes) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |bad: bool, key: &str, message: String| {
            if bad {
                problems.push(Problem::new(key, message));
            }
        };
        match &self.flow_control {
            FlowControl::None | FlowControl::PerFlow(_) => {}
            FlowControl::Pfc(pfc) => return pfc.check(mtu),
            FlowControl::Credit(credit) => {
                refuse(
                    credit.buffer < mtu,
                    "flow_control.buffer",
                    format!("{} holds no packet of {mtu}; expected at least that", credit.buffer),
                );
                refuse(
                    credit.buffer > Bytes::new(u64::from(u32::MAX)),
                    "flow_control.buffer",
                    format!("{}; expected less than 4 GiB", credit.buffer),
                );
                refuse(
                    credit.frame == Bytes::ZERO || credit.frame > mtu,
                    "flow_control.frame",
                    format!("{}; expected 1 B or more, at most the mtu of {mtu}", credit.frame),
                );
            }
        }
        problems
    }
}
