//! The nodes' side of the lines: who sends what next.
//!
//! Our choice (SCOC §6.A keeps a queue for each destination at the far end): a node's open flows take
//! turns, a packet each. A flow for whose packet the switch has no room lets the next one go, where
//! that can help: an input of the chip, of Flat and of CRRD has one memory for all, so where one packet
//! must wait all must. Credits for room that becomes free are there at once: 16 packets last 1.5 µs,
//! beside which a cable's time is nothing. So a node offers a packet and is answered at once; where an
//! input's room is its own, it can count instead ([`super::instances`](mod@super::instances)).

use kernel::Ring;
use rack::Flow;
use switching::{Line, Packet, Ticks, Wheel};

use super::senders::{Numbers, Senders};
use crate::config::Plan;

/// Cycles that the wheel of waiting nodes looks ahead; what takes longer is looked at again.
const AHEAD: u64 = 1023;

/// The way from nodes into the switch.
pub(super) trait Uplink {
    /// Whether there is room for a packet.
    fn has_room(&mut self, packet: &Packet) -> bool;

    /// Whether room depends on where a packet goes.
    fn has_room_by_output(&self) -> bool;

    /// A packet for which there is room goes on the line.
    fn send(&mut self, packet: Packet);
}

/// One node.
#[derive(Clone, Debug, Default)]
struct Host {
    /// Flows with something left to send, in turn.
    turn: Ring<u32>,
    /// When its line is free again.
    line_free: Ticks,
}

impl Host {
    /// Turns to the next flow that may send before `end` and for whose packet there is room. False if
    /// there is none: the turn is then where it was.
    fn let_another_go(&mut self, end: Ticks, senders: &Senders, uplink: &mut impl Uplink) -> bool {
        for _ in 0..self.turn.len() {
            let passed = self.turn.pop().expect("the ring is walked once");
            self.turn.push(passed);
            let next = *self.turn.front().expect("one was put back");
            let ready = senders.start(next).max(self.line_free);
            if ready < end && uplink.has_room(&senders.packet(next, ready)) {
                return true;
            }
        }
        false
    }
}

/// All nodes.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    line: Line,
    hosts: Vec<Host>,
    senders: Senders,
    due: Wheel<u16>,
    now_due: Vec<u16>,
    /// Nodes whose packet found no room.
    blocked: Vec<u16>,
    now_blocked: Vec<u16>,
}

impl Hosts {
    pub(super) fn new(plan: &Plan, numbers: Numbers) -> Self {
        let (line, count) = (plan.switch.line(), plan.config.nodes as usize);
        Self {
            line,
            senders: Senders::new(line, (plan.payload(), plan.config.header), (numbers, count)),
            hosts: vec![Host::default(); count],
            due: Wheel::new(AHEAD),
            now_due: Vec::new(),
            blocked: Vec::new(),
            now_blocked: Vec::new(),
        }
    }

    /// A node has a flow to send, from `cycle` on at the earliest. Gives its number there.
    pub(super) fn add(&mut self, flow: &Flow, cycle: u64) -> u32 {
        let (place, number) = self.senders.open(flow);
        let start = self.senders.start(place);
        let host = &mut self.hosts[flow.src.index()];
        let asleep = host.turn.is_empty();
        host.turn.push(place);
        if asleep {
            let first = self.line.cycle_of(start.max(host.line_free));
            self.due.put(first.clamp(cycle, cycle + AHEAD), flow.src.get() as u16);
        }
        number
    }

    /// Whether no node has anything to send.
    pub(super) fn is_idle(&self) -> bool {
        self.due.is_empty() && self.blocked.is_empty()
    }

    /// Lets the nodes send that wait for room or are due in this cycle.
    pub(super) fn feed(&mut self, cycle: u64, uplink: &mut impl Uplink) {
        let mut due = std::mem::take(&mut self.now_due);
        self.due.turn(&mut due);
        std::mem::swap(&mut self.blocked, &mut self.now_blocked);
        let mut blocked = std::mem::take(&mut self.now_blocked);
        for &node in blocked.iter().chain(&due) {
            self.serve(usize::from(node), cycle, uplink);
        }
        blocked.clear();
        (self.now_due, self.now_blocked) = (due, blocked);
    }

    /// Sends what a node can send in this cycle, then notes when to look at it again.
    fn serve(&mut self, node: usize, cycle: u64, uplink: &mut impl Uplink) {
        let (now, end) = (self.line.start_of(cycle), self.line.start_of(cycle + 1));
        let (host, senders) = (&mut self.hosts[node], &mut self.senders);
        while let Some(&place) = host.turn.front() {
            let ready = senders.start(place).max(host.line_free);
            if ready >= end {
                let next = self.line.cycle_of(ready).min(cycle + AHEAD);
                return self.due.put(next, node as u16);
            }
            let packet = senders.packet(place, ready.max(now));
            if !uplink.has_room(&packet) {
                if !uplink.has_room_by_output() || !host.let_another_go(end, senders, uplink) {
                    return self.blocked.push(node as u16);
                }
                continue;
            }
            host.line_free = packet.entered + self.line.send_time(packet.size());
            host.turn.pop();
            if senders.sent(place, &packet) {
                host.turn.push(place);
            }
            uplink.send(packet);
        }
    }

    /// Goes on to `cycle`; nobody has anything to send.
    pub(super) fn skip_to(&mut self, cycle: u64) {
        self.due.skip_to(cycle);
    }
}
