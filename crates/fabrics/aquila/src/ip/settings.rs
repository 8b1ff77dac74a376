//! The configuration of IP as the engine looks at it.

use kernel::{Bytes, Rate};

use super::{GROUPS, ingress, unsolicited};
use crate::config::{self, Depth, Order, Sharing};
use crate::link::header::{CELL_MIN, CELL_STEP, HEADER_BYTES};

/// Line of the control processor (our choice).
const CONTROL_RATE: Rate = Rate::from_gbps(1);
/// What a packet has more on an Ethernet line: header, frame check, preamble and gap (M428). Unit: bytes.
const ETHERNET_FRAMING: u32 = 14 + 24;

/// The configuration as the engine looks at it. Times in ps, sizes in bytes.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) segments: u32,
    /// Most packets of an ingress buffer.
    pub(super) places: u32,
    pub(super) ingress_share: f64,
    pub(super) egress_buffer: u32,
    pub(super) window: u32,
    pub(super) drop_above: u32,
    pub(super) mark_above: u32,
    pub(super) depth: Depth,
    pub(super) queue_limit: u32,
    pub(super) weights: [u8; 7],
    pub(super) sharing: Sharing,
    pub(super) order: Order,
    pub(super) is_solicited: bool,
    pub(super) request_timeout: u64,
    pub(super) reassembly_timeout: u64,
    pub(super) cell_payload: u32,
    pub(super) cell_headers: u32,
    pub(super) hops: u8,
    pub(super) mtu: u32,
    port_rate: Rate,
    pub(super) asks_early: bool,
    /// By group: what the token bucket of a line holds. Unit: ps.
    pub(super) bursts: [u64; GROUPS],
}

/// How long the line of a group takes for a packet, where ports have this rate. Unit: ps.
pub(super) fn line_time(port_rate: Rate, group: usize, length: u32) -> u64 {
    let (rate, bytes) = match group {
        0 => (port_rate, length),
        1 => (port_rate, length + ETHERNET_FRAMING),
        _ => (CONTROL_RATE, length),
    };
    // As `Rate::send_time`, for sizes that need no wider number.
    (u64::from(bytes) * 8_000_000_000_000).div_ceil(rate.as_bps())
}

impl Settings {
    pub(super) fn new(ip: &config::Ip, hops: u8) -> Self {
        let bytes = |of: Bytes| of.get() as u32;
        let mut settings = Self {
            segments: bytes(ip.ingress_buffer()) / ingress::SEGMENT,
            places: if ip.solicitation { 1 << 20 } else { unsolicited::PLACES },
            ingress_share: ip.ingress_share,
            egress_buffer: bytes(ip.egress_buffer()),
            window: bytes(ip.window()),
            drop_above: ip.drop_above,
            mark_above: ip.mark_above,
            depth: ip.depth,
            sharing: ip.sharing,
            queue_limit: ip.queue_limit,
            weights: ip.weights,
            order: ip.order,
            is_solicited: ip.solicitation,
            request_timeout: ip.request_timeout.as_ps(),
            reassembly_timeout: ip.reassembly_timeout.as_ps(),
            cell_payload: ip.cell_payload(),
            cell_headers: u32::from(HEADER_BYTES) + bytes(ip.data_header),
            hops,
            mtu: bytes(ip.mtu),
            port_rate: ip.port_rate,
            asks_early: ip.early_requests,
            bursts: [0; GROUPS],
        };
        let burst = ip.burst * settings.mtu;
        settings.bursts = std::array::from_fn(|group| settings.line_time(group, burst));
        settings
    }

    /// Whether a queue of so many requests for so many bytes is deeper than a threshold.
    pub(super) fn is_deeper(&self, (requests, bytes): (u32, u64), threshold: u32) -> bool {
        match self.depth {
            Depth::Requests => requests > threshold,
            Depth::Bytes => bytes > u64::from(threshold) * u64::from(self.mtu),
        }
    }

    /// Data cells of a packet.
    pub(super) fn cells(&self, length: u16) -> u8 {
        u32::from(length).div_ceil(self.cell_payload).max(1) as u8
    }

    /// Blocks of a data cell with so many bytes of its packet.
    pub(super) fn blocks(&self, bytes: u32) -> u8 {
        let whole = (bytes + self.cell_headers).next_multiple_of(CELL_STEP.into());
        (whole.max(CELL_MIN.into()) / u32::from(CELL_STEP)) as u8
    }

    /// How long the line of a group takes for a packet. Unit: ps.
    pub(super) fn line_time(&self, group: usize, length: u32) -> u64 {
        line_time(self.port_rate, group, length)
    }
}
