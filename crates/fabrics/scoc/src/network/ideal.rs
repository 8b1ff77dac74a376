//! The time of a flow alone in the idle rack, without any wait for a cycle, a colour or a slot.

use ::rack::Flow;
use kernel::{Bytes, Rate, Span};
use packets::Framings;
use switching::Line;

use super::Plan;
use super::message::SIZE;
use super::switches::HEADER;
use crate::config::SwitchPlan;

/// The parts that do not depend on the flow.
#[derive(Clone, Debug)]
pub(super) struct Ideal {
    framings: Framings,
    rate: Rate,
    cable: Span,
    leaf_latency: Span,
    segment: Bytes,
    spines: u64,
    nodes_per_leaf: u32,
    /// A request and its credit, there and back.
    asking: Span,
    /// From a segment's first bit on the line to a spine to its first bit on the line from it, for a
    /// full segment.
    crossing: Span,
}

/// From the first bit of a packet of `size` at a spine to its first bit leaving.
fn through(switch: &SwitchPlan, plan: &Plan, size: Bytes) -> Span {
    let line: Line = switch.line();
    let heard = plan.config.line_rate.send_time(size.min(HEADER));
    line.span(switch.least_delay(size)).max(heard) + plan.spine_latency
}

impl Ideal {
    pub(super) fn new(plan: &Plan, framings: Framings) -> Self {
        let config = &plan.config;
        let message = Bytes::new(SIZE.into());
        // The first bit there, and then all ten bytes on the line to the other leaf.
        let trip = config.cable * 2
            + through(&plan.control, plan, message)
            + config.line_rate.send_time(message);
        // A short segment crosses sooner than a full one: the least of any is what is certain.
        let least =
            (1..=config.segment.get()).map(|size| through(&plan.spine, plan, Bytes::new(size)));
        Self {
            framings,
            rate: config.line_rate,
            cable: config.cable,
            leaf_latency: config.leaf_latency,
            segment: config.segment,
            spines: config.spines.into(),
            nodes_per_leaf: config.nodes / config.leaves,
            asking: trip * 2,
            crossing: least.min().expect("a segment has a byte"),
        }
    }

    /// From a packet's last bit at its leaf to its first bit on its destination's line.
    fn between(&self, size: Bytes, is_local: bool) -> Span {
        let latencies = self.leaf_latency * 2;
        if is_local {
            return latencies;
        }
        // Its segments go over all lines at once; each line carries at least its part.
        let part = Bytes::new(size.get().div_ceil(self.spines));
        let on_line = self.rate.least_send_time(part.max(size.min(self.segment)));
        latencies + self.asking + self.cable * 2 + self.crossing + on_line
    }

    /// The completion time of a flow alone.
    pub(super) fn completion_time(&self, flow: &Flow) -> Span {
        let framing = self.framings.of(flow);
        let count = framing.packets(flow.size);
        let header = Bytes::new(framing.header.into());
        let full = header + Bytes::new(framing.payload.into());
        let last = header + Bytes::new(framing.payload_of(flow.size, count - 1).into());
        let leaf = |node: ::rack::NodeId| node.get() / self.nodes_per_leaf;
        let is_local = leaf(flow.src) == leaf(flow.dst);
        let before = self.rate.least_send_time(full * (count - 1));
        let own = before + self.rate.least_send_time(last) + self.between(last, is_local);
        // A last packet that is small waits behind the one before it.
        let ahead = match count {
            1 => Span::ZERO,
            _ => before + self.between(full, is_local) + self.rate.least_send_time(full),
        };
        own.max(ahead) + self.rate.least_send_time(last) + self.cable * 2
    }
}
