//! What a transport asks of switches where the scenario does not say.

use kernel::Bytes;
use packets::Routing;
use packets::config::{FlowControl, Marking};

use crate::switch::Trimming;

/// Settings of the network that a transport was designed for.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Asks {
    pub(crate) routing: Routing,
    pub(crate) port_buffer: Bytes,
    pub(crate) marking: Marking,
    pub(crate) trimming: Trimming,
    pub(crate) flow_control: FlowControl,
}

/// Packets that a port holds, for all transports but NDP and Homa (Shoal §7.3).
const PORT_PACKETS: u64 = 100;

impl Asks {
    /// Plain queues that drop what does not fit, paths by hash (Shoal §7.3).
    pub(crate) fn drop_tail(mtu: Bytes) -> Self {
        Self {
            routing: Routing::Ecmp,
            port_buffer: mtu * PORT_PACKETS,
            marking: Marking::None,
            trimming: Trimming::None,
            flow_control: FlowControl::None,
        }
    }
}
