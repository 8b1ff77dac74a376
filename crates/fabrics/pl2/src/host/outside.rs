//! Traffic that enters the rack from others.
//!
//! Models: PL2 §7 (claim M32): it is coordinated with nothing here, so a share of every line is kept for
//! it, and it is held to that share before it enters. Nodes that stand for what is outside reserve
//! nothing; what goes to them is reserved as everything else.

use kernel::{Rate, Time};
use packets::{Line, Outbox, Packet, Transport};
use rack::NodeId;

use super::Shim;
use super::held::{Held, Queue};
use crate::config::Plan;
use crate::message::framed;
use crate::wire::Tag;

/// The nodes outside.
#[derive(Clone, Debug)]
pub(crate) struct Outside {
    /// By node; empty: none is outside.
    gates: Vec<Option<Gate>>,
    /// What one of them may send.
    rate: Rate,
}

/// Where one of them enters.
#[derive(Clone, Copy, Debug)]
struct Gate {
    /// When it may send next.
    free_at: Time,
    /// What goes before what is pulled.
    waiting: Queue,
}

impl Outside {
    pub(crate) fn new(plan: &Plan) -> Self {
        let Some(entering) = plan.config.entering.as_ref().filter(|e| !e.nodes.is_empty()) else {
            return Self { gates: Vec::new(), rate: Rate::default() };
        };
        let gate = Gate { free_at: Time::ZERO, waiting: Queue::EMPTY };
        let nodes = (0..plan.config.nodes).map(NodeId::new);
        let gates = nodes.map(|node| plan.is_outside(node).then_some(gate)).collect();
        let line = u128::from(plan.config.line_rate.as_bps());
        let parts = 100 * entering.nodes.len() as u128;
        let share = line * u128::from(entering.share_percent) / parts;
        Self { gates, rate: Rate::from_bps(u64::try_from(share).unwrap_or(u64::MAX).max(1)) }
    }

    /// Whether a node is outside.
    #[inline]
    pub(crate) fn holds(&self, node: NodeId) -> bool {
        self.gates.get(node.index()).is_some_and(Option::is_some)
    }

    fn gate(&mut self, node: NodeId) -> &mut Gate {
        self.gates[node.index()].as_mut().expect("only what is outside has a gate")
    }

    /// Queues a packet that does not wait to be pulled.
    pub(crate) fn push(&mut self, held: &mut Held, packet: &Packet, life: u32) {
        held.push(&mut self.gate(packet.src).waiting, packet, life);
    }

    /// Packets that wait.
    pub(crate) fn waiting(&self) -> u64 {
        self.gates.iter().flatten().map(|gate| u64::from(gate.waiting.count)).sum()
    }
}

impl<T: Transport> Shim<T> {
    /// The next packet of a node outside, at the rate of its share.
    pub(super) fn pull_outside(&mut self, host: NodeId, out: &mut Outbox) -> Option<Packet> {
        let now = out.now();
        let free_at = self.outside.gate(host).free_at;
        if free_at > now {
            out.wake_at(host, free_at);
            return None;
        }
        let packet = self.next_outside(host, out);
        self.settle(out);
        let Some(packet) = packet else {
            if self.alarms[host.index()] < Time::NEVER {
                out.wake_at(host, self.alarms[host.index()]);
            }
            return None;
        };
        let framed = framed(&packet, Some(Tag::Unreserved));
        let rate = self.outside.rate;
        let gate = self.outside.gate(host);
        gate.free_at = now + rate.send_time(framed.size());
        Some(framed)
    }

    fn next_outside(&mut self, host: NodeId, out: &mut Outbox) -> Option<Packet> {
        while let Some((packet, note)) = self.held.pop(&mut self.outside.gate(host).waiting) {
            let is_over = self.is_over(note.flow, note.life);
            self.gone(note, out);
            if !is_over {
                return Some(packet);
            }
        }
        self.of_transport(out, |transport, out| transport.pull(host, Line::OPEN, out))
    }
}
