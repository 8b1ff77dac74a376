//! Priority flow control: thresholds, headroom, and when marking acts before any pause.
//!
//! Models: DCQCN §4 (Zhu et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015):
//! headroom for what is under way, a threshold that follows the free memory, and the bound on ECN's
//! threshold below which no switch pauses a sender before it has begun to mark.

use kernel::{Bytes, Rate, Span};
use rack::Problem;
use rack::topology::Vertex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FlowControl, Plan};
use crate::net::QUANTUM;
use crate::packet::PRIORITIES;

/// Priority flow control. The bytes that came in by one port and priority and have not left count.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Pfc {
    /// Priorities that are never dropped but paused. Default 1 to 7 (our choice: all but control).
    pub priorities: Vec<u8>,
    /// Above it the sender is paused; 0 B: the threshold follows the free memory, by `beta`. Unit:
    /// bytes. Default 0 B (DCQCN §4).
    pub xoff: Bytes,
    /// At it or below the sender is resumed; 0 B: two largest packets below the threshold (DCQCN §4).
    /// Unit: bytes. Default 0 B. At most `xoff`.
    pub xon: Bytes,
    /// Room beyond the threshold for what is under way when the pause is sent; 0 B: what the link
    /// needs ([`Pfc::headroom_for`]). Unit: bytes. Default 0 B.
    pub headroom: Bytes,
    /// With `xoff` at 0 B, a port and priority may hold `beta` times an eighth of what is free of the
    /// switch's memory, headroom apart. Default 8 (DCQCN §4). From 1/128 to 128; kept in steps of
    /// 1/1024.
    #[schemars(range(min = 0.0078125, max = 128.0))]
    pub beta: f64,
    /// How long a pause lasts that is not renewed, in units of 512 bit times of its link; it is said
    /// again halfway, as long as it must last. Default 65535: the most that a frame can say (802.1Qbb).
    /// At most that, and enough for the frame to be in time: 63 at 1500 B.
    #[schemars(range(min = 1, max = 65535))]
    pub quanta: u32,
}

impl Default for Pfc {
    fn default() -> Self {
        Self {
            priorities: (1..PRIORITIES).collect(),
            xoff: Bytes::ZERO,
            xon: Bytes::ZERO,
            headroom: Bytes::ZERO,
            beta: 8.0,
            quanta: QUANTA_MAX,
        }
    }
}

/// Size of a pause frame: the smallest Ethernet frame (802.1Qbb).
pub(crate) const PAUSE_FRAME: Bytes = Bytes::new(64);
/// The most quanta that a pause frame can say: it has 16 bits for them (802.1Qbb).
const QUANTA_MAX: u32 = u16::MAX as u32;
/// Largest threshold and headroom: both together are counted in 32 bits (our choice).
const BYTES_MAX: Bytes = Bytes::new(1_000_000_000);
/// Denominator of beta.
const BETA_ONE: u64 = 1024;

impl Pfc {
    /// A sender is paused above `xoff` and resumed two packets of 1500 B below, whatever memory is
    /// free.
    #[must_use]
    pub fn fixed(xoff: Bytes) -> Self {
        Self { xoff, ..Self::default() }
    }

    /// The room that a lossless link needs beyond the threshold (802.1Qbb Annex O, without its
    /// response times): the packet that crosses the threshold; what comes while the pause waits for a
    /// packet and an earlier frame on its line and is sent; the packet that its receiver has just
    /// started; what is on the wire and in the switch's pipeline.
    #[must_use]
    pub fn headroom_for(rate: Rate, propagation: Span, pipeline: Span, mtu: Bytes) -> Bytes {
        let travel = rate.bytes_in(propagation * 2 + pipeline);
        // One byte for what the division rounds off.
        mtu * 3 + PAUSE_FRAME * 2 + travel + Bytes::new(1)
    }

    /// The room beyond the threshold of a port on such a link.
    pub(crate) fn headroom_on(
        &self,
        rate: Rate,
        propagation: Span,
        pipeline: Span,
        mtu: Bytes,
    ) -> Bytes {
        match self.headroom {
            Bytes::ZERO => Self::headroom_for(rate, propagation, pipeline, mtu),
            given => given,
        }
    }

    /// Beta in 1/1024, over the switch's eight priorities.
    pub(crate) fn share(&self) -> (u64, u64) {
        ((self.beta * BETA_ONE as f64) as u64, BETA_ONE * u64::from(PRIORITIES))
    }

    /// The fewest quanta with which a pause that is renewed halfway never runs out: its second frame
    /// may have to wait for a packet and a frame of each other priority longer than its first.
    fn quanta_min(mtu: Bytes) -> u32 {
        let wait = mtu + PAUSE_FRAME * u64::from(PRIORITIES);
        (wait * 2).get().div_ceil(QUANTUM.get()) as u32
    }

    /// How far below the threshold a sender is resumed.
    pub(crate) fn gap(mtu: Bytes) -> Bytes {
        mtu * 2
    }

    /// What is wrong, with keys below the table of queues.
    pub(super) fn check(&self, mtu: Bytes) -> Vec<Problem> {
        let Self { priorities, xoff, xon, beta, quanta, .. } = self;
        let mut problems = Vec::new();
        let mut refuse = |bad: bool, key: &str, message: String| {
            if bad {
                problems.push(Problem::new(key, message));
            }
        };
        refuse(
            priorities.is_empty() || priorities.iter().any(|&p| p >= PRIORITIES),
            "flow_control.priorities",
            format!("{priorities:?}; expected one or more, each from 0 to 7"),
        );
        refuse(
            *xoff > Bytes::ZERO && *xoff < mtu,
            "flow_control.xoff",
            format!("{xoff} holds no packet of {mtu}; expected at least that, or 0 B"),
        );
        for (key, size) in [("flow_control.xoff", *xoff), ("flow_control.headroom", self.headroom)]
        {
            refuse(size > BYTES_MAX, key, format!("{size}; expected at most {BYTES_MAX}"));
        }
        refuse(
            xon > xoff,
            "flow_control.xon",
            format!("{xon} is above xoff = \"{xoff}\"; lower it"),
        );
        refuse(
            !(1.0 / 128.0..=128.0).contains(beta),
            "flow_control.beta",
            format!("{beta}; expected 1/128 to 128"),
        );
        let least = Self::quanta_min(mtu);
        refuse(
            !(least..=QUANTA_MAX).contains(quanta),
            "flow_control.quanta",
            format!("{quanta}; expected {least} to {QUANTA_MAX} with packets of {mtu}"),
        );
        problems
    }
}

impl Plan {
    /// The memory of a switch: the shared buffer, or its ports' limits together.
    pub(crate) fn memory(&self, vertex: Vertex) -> Bytes {
        let queues = &self.config.queues;
        match queues.shared_buffer {
            Bytes::ZERO => queues.port_buffer * self.ways_in(vertex),
            shared => shared,
        }
    }

    /// Ports by which packets come into a switch; a host that passes packets on has one for its own.
    fn ways_in(&self, vertex: Vertex) -> u64 {
        let own = u64::from(self.topology.is_host(vertex));
        self.topology.ports_of(vertex).count() as u64 + own
    }

    /// The headroom of all ports and lossless priorities of a switch.
    pub(crate) fn headroom(&self, vertex: Vertex, pfc: &Pfc) -> Bytes {
        let (config, topology) = (&self.config, &self.topology);
        let ports = topology.ports_of(vertex).map(|port| {
            let link = topology.port(port).link;
            pfc.headroom_on(link.rate, link.delay, config.switch_latency, config.mtu)
        });
        let own = topology
            .is_host(vertex)
            .then(|| pfc.headroom_on(self.host_rate(vertex), Span::ZERO, Span::ZERO, config.mtu));
        ports.chain(own).sum::<Bytes>() * pfc.priorities.len() as u64
    }

    /// All that pass packets on.
    fn switches(&self) -> impl Iterator<Item = Vertex> {
        let passes_on =
            |&vertex: &Vertex| !self.topology.is_host(vertex) || self.topology.degree(vertex) > 1;
        (0..self.topology.vertices()).map(Vertex::new).filter(passes_on)
    }

    /// The bound on the threshold of marking below which every switch marks before it pauses anybody,
    /// even if all that waits came in by one port (DCQCN §4: `t_PFC` > n `t_ECN`, where just before
    /// marking the n output ports hold n `t_ECN` of each lossless priority); none without pauses.
    #[must_use]
    pub fn marking_bound(&self) -> Option<Bytes> {
        let FlowControl::Pfc(pfc) = &self.config.queues.flow_control else { return None };
        let (beta, whole) = pfc.share();
        let bound = |vertex: Vertex| {
            let ways = self.ways_in(vertex);
            if pfc.xoff > Bytes::ZERO {
                return pfc.xoff.get() / ways;
            }
            let room = self.memory(vertex).get().saturating_sub(self.headroom(vertex, pfc).get());
            let parts = u128::from(ways)
                * (u128::from(whole) + u128::from(beta) * pfc.priorities.len() as u128);
            (u128::from(beta) * u128::from(room) / parts) as u64
        };
        self.switches().map(bound).min().map(Bytes::new)
    }

    /// Whether every switch has the memory that its pauses need.
    pub(super) fn check_pauses(&self) -> Option<Problem> {
        let queues = &self.config.queues;
        let FlowControl::Pfc(pfc) = &queues.flow_control else { return None };
        let is_bounded = queues.shared_buffer > Bytes::ZERO;
        if pfc.xoff > Bytes::ZERO && !is_bounded {
            return None;
        }
        // Beside the headroom, a fixed threshold for each port and priority, or one packet for each.
        let least = if pfc.xoff > Bytes::ZERO { pfc.xoff } else { self.config.mtu };
        let need = |vertex| {
            let thresholds = least * (self.ways_in(vertex) * pfc.priorities.len() as u64);
            self.headroom(vertex, pfc) + thresholds
        };
        let mut wants = self.switches().map(|vertex| (self.memory(vertex), need(vertex)));
        let (memory, need) = wants.find(|(memory, need)| memory < need)?;
        let key = if is_bounded { "queues.shared_buffer" } else { "queues.port_buffer" };
        let message = format!(
            "a switch's memory of {memory} cannot hold xoff and headroom of every port and lossless \
             priority, {need}; raise it, or name fewer priorities"
        );
        Some(Problem::new(key, message))
    }
}
