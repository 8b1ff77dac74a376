//! The `switch` table: the top-of-rack switch.

use kernel::{Bytes, Span};
use packets::config::{Forwarding, Marking, Queues, Trimming};
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::switch::{Accounting, Decrement};
use crate::transport::Transport;
use crate::wire::on_the_wire;

/// The top-of-rack switch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Switch {
    /// How slots are given out. Default counters (PL2 §4.1.1, Algorithm 1).
    pub schedule: Schedule,
    /// Registers in each of its two arrays, one a port. Default 64 (PL2 §5).
    pub registers: u32,
    /// Slots reserved at an output above which unsolicited packets are dropped (T). Default 100 (our
    /// choice: 12 us; PL2 §4.4 has it far above t).
    pub drop_above: u32,
    /// When a packet is taken off the counter of its output. Default egress (our choice: PL2 does not
    /// say; at ingress the switch loses packets in workloads of many long flows).
    pub decrement: Decrement,
    /// How much a packet lowers the counters by. Default flagged (our choice: PL2 leaves open what happens
    /// to a burst that arrives twice).
    pub accounting: Accounting,
    /// The control plane resets the counters of a pair of hosts (of a port, where nobody tracks pairs) that
    /// has reserved nothing and used no slot for this long after its last slot; 0 ns: never. Unit: time.
    /// Default 1 ms (our choice: PL2 §4.5 leaves it to others).
    pub audit: Span,
    /// From a packet's arrival to its arrival in the output queue. Unit: time. Default 347 ns (PL2 §5).
    pub latency: Span,
    /// When a packet is sent on. Default store-and-forward (our choice: PL2 does not say).
    pub forwarding: Forwarding,
    /// Most bytes that wait at one port. Unit: bytes. Default 1.5 MB (PL2 §2, Fig. 1: 120 us at
    /// 100 Gbps).
    pub port_buffer: Bytes,
    /// Memory that the ports share; 0 B: as much as the ports' limits add up to. Unit: bytes. Default
    /// 0 B (PL2 §2 speaks of 2 MB).
    pub shared_buffer: Bytes,
    /// Of a shared buffer, a queue may hold at most `alpha` times what is free. Default 1.0. From 1/128
    /// to 128.
    #[schemars(range(min = 0.0078125, max = 128.0))]
    pub alpha: f64,
    /// When packets that allow it are marked, for transports that go by marks. Default none (PL2 §4.5:
    /// reservations take the place of congestion control).
    pub marking: Marking,
    /// Cuts the payload off packets that find the queue full, for ndp. Default: none (our choice: where
    /// slots are reserved, no queue gets full).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trimming: Option<Trimming>,
}

/// How slots are given out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// By a counter for each input and output, each updated by itself (PL2 §4.1.1, Algorithm 1).
    #[default]
    Counters,
    /// The first slot from which both are free, noted at both at once: what the hardware cannot do
    /// (PL2 §4.2).
    Ideal,
    /// The earliest slots that are free at both, gaps included, as Fastpass has it: what the hardware
    /// cannot do either (PL2 §4.2).
    Matching,
}

impl Default for Switch {
    fn default() -> Self {
        Self {
            schedule: Schedule::default(),
            registers: 64,
            drop_above: 100,
            decrement: Decrement::default(),
            accounting: Accounting::default(),
            audit: Span::from_us(1_000),
            latency: Span::from_ns(347),
            forwarding: Forwarding::default(),
            port_buffer: Bytes::new(1_500_000),
            shared_buffer: Bytes::ZERO,
            alpha: 1.0,
            marking: Marking::default(),
            trimming: None,
        }
    }
}

impl Switch {
    /// The queues of a port. A header goes in a frame as every packet does.
    pub(super) fn queues(&self) -> Queues {
        Queues {
            port_buffer: self.port_buffer,
            shared_buffer: self.shared_buffer,
            alpha: self.alpha,
            marking: self.marking.clone(),
            trimming: self.trimming.clone().map(|trimming| Trimming {
                header: on_the_wire(trimming.header, Bytes::ZERO),
                ..trimming
            }),
            ..Queues::default()
        }
    }

    /// What its schedule, or the hosts' transport, makes nothing of.
    pub(super) fn check(&self, transport: &Transport) -> Vec<Problem> {
        let mut problems = self.check_schedule();
        let theirs = transport.table().trimmed();
        match &self.trimming {
            None => {}
            Some(trimming) if Some(trimming.header) == theirs => {}
            Some(trimming) => problems.push(match theirs {
                Some(header) => Problem::new(
                    "trimming.header",
                    format!(
                        "{}, but transport.header is {header}; make them equal",
                        trimming.header
                    ),
                ),
                None => Problem::new(
                    "trimming",
                    format!(
                        "only ndp knows what a trimmed packet is, not {}; remove it",
                        transport.name()
                    ),
                ),
            }),
        }
        problems
    }

    /// Whether slots can be told apart by pair: what is not there must not be taken off.
    pub(super) fn can_track_pairs(&self) -> bool {
        self.counts_waiting() && self.accounting == Accounting::Flagged
    }

    /// Whether slots are given out by what waits at a port, too, and not by what is to come alone.
    pub(super) fn counts_waiting(&self) -> bool {
        self.schedule == Schedule::Counters && self.decrement == Decrement::Egress
    }

    fn check_schedule(&self) -> Vec<Problem> {
        let usual = Self::default();
        let is_clock = self.schedule != Schedule::Counters;
        let set = [
            ("decrement", self.decrement != usual.decrement),
            ("accounting", self.accounting != usual.accounting),
        ];
        let idle = set.into_iter().filter(|&(_, is_set)| is_clock && is_set);
        let message = "it is about counters, and this schedule has none; remove it, or set schedule = \
                       \"counters\"";
        idle.map(|(key, _)| Problem::new(key, message)).collect()
    }
}
