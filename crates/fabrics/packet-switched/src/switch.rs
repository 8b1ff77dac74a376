//! The `switch` table: what all switches of the network are like.
//!
//! Keys that depend on the transport have no fixed default: what is not written is what the transport
//! asks for ([`crate::transport::Transport`]), and stands in the resolved scenario.

use kernel::{Bytes, Span};
use packets::config::{self, FlowControl, Forwarding, Marking, Queues, Scheduling};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::asks::Asks;

/// The switches of a network. In a torus, a mesh and wherever hosts pass packets on, these are the
/// hosts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Switch {
    /// From a packet's arrival at a switch, or its first 64 bytes', to its arrival in the output
    /// queue. Unit: time. Default 500 ns (our choice: a present Ethernet switch; Shoal does not say).
    pub latency: Span,
    /// When a switch starts to send a packet on. Default store-and-forward, as the simulator that
    /// Shoal §7.3 used for these networks.
    pub forwarding: Forwarding,
    /// Most bytes that wait at one port, all priorities together; with trimming, header queue apart.
    /// Unit: bytes. Default: what the transport asks for: 100 packets (Shoal §7.3), for NDP 12 (Shoal
    /// §7.3; NDP §6 has 8), for Homa 1000 (our choice: its receivers grant more than 100, Homa §3.5).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_buffer: Option<Bytes>,
    /// Memory that the ports of a switch share; 0 B: as much as the ports' limits add up to. Unit:
    /// bytes. Default 0 B.
    pub shared_buffer: Bytes,
    /// Of a shared buffer, a queue may hold at most `alpha` times what is free (Choudhury and Hahne,
    /// 1998). Default 1.0. From 1/128 to 128.
    #[schemars(range(min = 0.0078125, max = 128.0))]
    pub alpha: f64,
    /// Which priority goes first. Default strict.
    pub scheduling: Scheduling,
    /// When packets that allow it are marked. Default: what the transport asks for: a step at 30
    /// packets for DCTCP, RED for DCQCN, else none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marking: Option<Marking>,
    /// Whether packets that find the queue full lose their payload instead of their place. Default:
    /// what the transport asks for: header for NDP, else none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trimming: Option<Trimming>,
    /// What holds a sender back at each link. Default: what the transport asks for: pfc for DCQCN and
    /// for raw sending, else none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_control: Option<FlowControl>,
}

/// What becomes of a packet that finds its queue full.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Trimming {
    /// It is dropped.
    #[default]
    None,
    /// If it allows that, its header goes on alone, before other data (NDP §3.2).
    Header(config::Trimming),
}

impl Default for Switch {
    fn default() -> Self {
        Self {
            latency: Span::from_ns(500),
            forwarding: Forwarding::default(),
            port_buffer: None,
            shared_buffer: Bytes::ZERO,
            alpha: 1.0,
            scheduling: Scheduling::default(),
            marking: None,
            trimming: None,
            flow_control: None,
        }
    }
}

impl Switch {
    /// The same table with nothing left open: what it does not say is as the transport asks.
    pub(crate) fn resolve(&self, asks: &Asks) -> Self {
        let own = self.clone();
        Self {
            port_buffer: own.port_buffer.or(Some(asks.port_buffer)),
            marking: own.marking.or_else(|| Some(asks.marking.clone())),
            trimming: own.trimming.or_else(|| Some(asks.trimming.clone())),
            flow_control: own.flow_control.or_else(|| Some(asks.flow_control.clone())),
            ..own
        }
    }

    /// The queues of a port. The table has been resolved.
    pub(crate) fn queues(&self) -> Queues {
        Queues {
            port_buffer: self.port_buffer.expect(RESOLVED),
            shared_buffer: self.shared_buffer,
            alpha: self.alpha,
            scheduling: self.scheduling.clone(),
            marking: self.marking.clone().expect(RESOLVED),
            trimming: match self.trimming.as_ref().expect(RESOLVED) {
                Trimming::None => None,
                Trimming::Header(trimming) => Some(trimming.clone()),
            },
            flow_control: self.flow_control.clone().expect(RESOLVED),
        }
    }
}

const RESOLVED: &str = "nothing is left open in a resolved table";
