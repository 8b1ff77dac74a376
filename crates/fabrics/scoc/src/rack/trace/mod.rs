//! The record of chosen flows' packets, as a rack keeps it that is asked to ([`rack::trace`]).
//!
//! A packet has two hops: the line of its node, and the switch's line to its destination. What the chip takes at the
//! least, its serial links included, is time inside the switch; what a packet takes longer it waits for the line of its
//! destination: behind what goes on that, or, while nothing does, for the crossbar to bring it there.
//!
//! Whether there is a record is asked twice a cycle, so a run without it pays nothing for a packet.
//!
//! [`rack::trace`]: ::rack::trace

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use ::rack::trace::{Followed, HOPS_MAX, Hop, LineRecorder, Outcome, Place, Tally, Trace};
use ::rack::{Flow, FlowId};
use kernel::{Bytes, Span, Time};
use switching::{Departure, Line, Packet, Ticks};

use super::header::{self, LAST};
use super::hosts::Uplink;
use crate::config::Plan;

/// The link-layer header type of captures for packets of a SCOC rack: LINKTYPE_USER1, for private use (our choice).
const LINK_TYPE: u16 = 148;

/// What was on a line.
#[derive(Clone, Copy, Debug)]
struct Sent {
    start: Time,
    end: Time,
    flow: Option<FlowId>,
    bytes: Bytes,
}

/// A wait for a line, and what went on that meanwhile.
#[derive(Clone, Debug)]
struct Wait {
    since: Time,
    tally: Tally<FlowId>,
}

impl Wait {
    fn new(since: Time) -> Self {
        Self { since, tally: Tally::default() }
    }

    /// `sent` was on the line for which `flow` waits.
    fn add(&mut self, flow: FlowId, sent: &Sent) {
        let Sent { start, end, flow: whose, bytes } = *sent;
        self.tally.add_since(self.since, flow, whose, [start, end], bytes.get());
    }
}

/// A recorded flow at its source, which waits for its next packet to go.
#[derive(Clone, Debug)]
struct Turn {
    flow: FlowId,
    until: Time,
    wait: Wait,
    /// Packets that have gone.
    packets: u32,
}

/// A packet of a recorded flow in the switch.
#[derive(Clone, Debug)]
struct Waiter {
    flow: FlowId,
    packet: Packet,
    number: u32,
    arrived: Time,
    /// Packets and bytes for the same destination that it found in the switch.
    found: (u32, Bytes),
    wait: Wait,
}

/// The switch's line to a node.
#[derive(Clone, Debug, Default)]
struct Output {
    /// What is in the switch for it.
    packets: u32,
    bytes: Bytes,
    waiters: Vec<Waiter>,
    /// What goes on it, as far as that is known and not over.
    ahead: VecDeque<Sent>,
    /// When it is free again: a crossbar may be faster than the lines.
    free: Ticks,
}

/// The record in the making.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    plan: Plan,
    line: Line,
    nodes: u32,
    /// By flow: when it ends.
    ends: BTreeMap<FlowId, Time>,
    /// By source and number there: the flows.
    names: BTreeMap<(u16, u32), FlowId>,
    /// By node: its recorded flows.
    turns: BTreeMap<u16, Vec<Turn>>,
    /// By node: what it has sent last.
    last: Vec<Option<Sent>>,
    outputs: Vec<Output>,
    hops: Vec<Hop>,
    is_full: bool,
    lines: LineRecorder,
}

impl Recorder {
    /// Of these flows.
    pub(super) fn new(plan: &Plan, followed: &[Followed]) -> Self {
        let nodes = plan.config.nodes;
        Self {
            line: plan.switch.line(),
            nodes,
            ends: followed.iter().map(|flow| (flow.flow, flow.end)).collect(),
            names: BTreeMap::new(),
            turns: BTreeMap::new(),
            last: vec![None; nodes as usize],
            outputs: vec![Output::default(); nodes as usize],
            hops: Vec::new(),
            is_full: false,
            lines: LineRecorder::new(2 * nodes as usize),
            plan: plan.clone(),
        }
    }

    /// An instant at the nodes.
    fn time(&self, at: Ticks) -> Time {
        Time::ZERO + self.line.span(at)
    }

    /// A flow begins, which its source calls by a number.
    pub(super) fn begins(&mut self, flow: &Flow, number: u32) {
        let source = flow.src.get() as u16;
        self.names.insert((source, number), flow.id);
        let Some(&until) = self.ends.get(&flow.id) else { return };
        let mut wait = Wait::new(flow.start);
        if let Some(last) = &self.last[usize::from(source)] {
            wait.add(flow.id, last);
        }
        let turn = Turn { flow: flow.id, until, wait, packets: 0 };
        self.turns.entry(source).or_default().push(turn);
    }

    fn flow_of(&self, packet: &Packet) -> Option<FlowId> {
        self.names.get(&(packet.source, packet.tag & !LAST)).copied()
    }

    fn see(&mut self, hop: Hop) {
        self.is_full |= self.hops.len() >= HOPS_MAX;
        if !self.is_full {
            self.hops.push(hop);
        }
    }

    /// A packet goes on the line of its node.
    fn enters(&mut self, packet: &Packet) {
        let (start, end) = (packet.entered, packet.entered + self.line.send_time(packet.size()));
        let (start, end) = (self.time(start), self.time(end));
        let flow = self.flow_of(packet);
        let sent = Sent { start, end, flow, bytes: packet.size() };
        self.last[usize::from(packet.source)] = Some(sent);
        self.lines.sends(packet.source.into(), start, packet.size().get() as u16, 0);
        let mut gone = None;
        if let Some(turns) = self.turns.get_mut(&packet.source) {
            turns.retain(|turn| start <= turn.until);
            for turn in turns {
                if Some(turn.flow) == flow {
                    let wait = std::mem::replace(&mut turn.wait, Wait::new(end));
                    gone = Some((turn.flow, turn.packets, wait));
                    turn.packets += 1;
                } else {
                    turn.wait.add(turn.flow, &sent);
                }
            }
        }
        if let Some((flow, number, wait)) = gone {
            let arrived = start + self.plan.config.cable;
            let hop = self.hop((flow, number), packet, u32::from(packet.source), wait);
            let propagation = self.plan.config.cable;
            self.see(Hop { started: start, sent: end, arrived, propagation, ..hop });
            self.comes_to_switch((flow, number), packet, arrived);
        }
        let output = &mut self.outputs[usize::from(packet.destination)];
        output.packets += 1;
        output.bytes += packet.size();
    }

    /// A packet of a recorded flow is in the switch.
    fn comes_to_switch(&mut self, (flow, number): (FlowId, u32), packet: &Packet, arrived: Time) {
        let least = packet.entered + self.plan.switch.least_delay(packet.size());
        let joined = self.at_output(least);
        let output = &mut self.outputs[usize::from(packet.destination)];
        let mut wait = Wait::new(joined);
        output.ahead.iter().for_each(|sent| wait.add(flow, sent));
        let found = (output.packets, output.bytes);
        output.waiters.push(Waiter { flow, packet: *packet, number, arrived, found, wait });
    }

    /// An instant at the switch's outputs: behind a cable, and the serial links of the chip.
    fn at_output(&self, at: Ticks) -> Time {
        self.time(at) + self.plan.config.cable + self.plan.latency
    }

    /// Packets leave the switch.
    pub(super) fn leave(&mut self, departures: &[Departure]) {
        for Departure { packet, at } in departures {
            let flow = self.flow_of(packet);
            let on_line = self.line.send_time(packet.size());
            let output = &mut self.outputs[usize::from(packet.destination)];
            let at = (*at).max(output.free);
            output.free = at + on_line;
            output.packets -= 1;
            output.bytes -= packet.size();
            let (waiting, end) = (output.bytes, at + on_line);
            let (start, end) = (self.at_output(at), self.at_output(end));
            let sent = Sent { start, end, flow, bytes: packet.size() };
            let port = self.nodes + u32::from(packet.destination);
            let waiting = u32::try_from(waiting.get()).unwrap_or(u32::MAX);
            self.lines.sends(port, start, packet.size().get() as u16, waiting);
            let entered = self.time(packet.entered);
            let output = &mut self.outputs[usize::from(packet.destination)];
            // What nobody can wait for who comes from now on.
            output.ahead.retain(|sent| sent.end > entered);
            output.ahead.push_back(sent);
            let is_it = |waiter: &Waiter| {
                let same = |packet: &Packet| (packet.source, packet.tag & !LAST, packet.sequence);
                same(&waiter.packet) == same(packet)
            };
            let place = output.waiters.iter().position(is_it);
            let waiter = place.map(|place| output.waiters.remove(place));
            output.waiters.iter_mut().for_each(|waiter| waiter.wait.add(waiter.flow, &sent));
            if let Some(waiter) = waiter {
                self.leaves(waiter, &sent);
            }
        }
    }

    /// A packet of a recorded flow goes on the line to its destination.
    fn leaves(&mut self, waiter: Waiter, sent: &Sent) {
        let Waiter { flow, packet, number, found, wait, arrived } = waiter;
        let port = self.nodes + u32::from(packet.destination);
        // Not before its first bit is there, whatever the switch takes at the least.
        let since = wait.since.clamp(arrived, sent.start.max(arrived));
        let hop = self.hop((flow, number), &packet, port, Wait { since, ..wait });
        let propagation = self.plan.config.cable;
        self.see(Hop {
            hop: 1,
            is_last: true,
            started: sent.start,
            sent: sent.end,
            arrived: sent.end + propagation,
            propagation,
            found_packets: found.0,
            found_bytes: u32::try_from(found.1.get()).unwrap_or(u32::MAX),
            ..hop
        });
    }

    /// A hop, without its times.
    fn hop(&self, of: (FlowId, u32), packet: &Packet, port: u32, wait: Wait) -> Hop {
        let payload = header::payload(packet, self.plan.payload(), self.plan.config.header);
        Hop {
            flow: of.0,
            packet: of.1,
            hop: 0,
            cell: None,
            is_data: true,
            to_source: false,
            is_again: false,
            offset: payload.offset.get(),
            payload: payload.length.get() as u16,
            bytes: packet.size().get() as u16,
            place: port,
            is_last: false,
            is_marked: false,
            is_trimmed: false,
            outcome: Outcome::Arrived,
            joined: wait.since,
            started: Time::ZERO,
            sent: Time::ZERO,
            arrived: Time::ZERO,
            propagation: Span::ZERO,
            own: wait.tally.own,
            others: wait.tally.others,
            found_bytes: 0,
            found_packets: 0,
            beside: wait.tally.most(),
            header: header::encode(packet).to_vec(),
        }
    }

    /// The record, in order, with the names of its ports.
    pub(super) fn close(self) -> Trace {
        let Self { nodes, hops, is_full, lines, .. } = self;
        let place = |port: u32| {
            let (node, switch) = (format!("node {}", port % nodes), "switch 0".to_string());
            let [from, to] = if port < nodes { [node, switch] } else { [switch, node] };
            Place { port, link_type: LINK_TYPE, from, to }
        };
        Trace { is_full, lines: lines.close(place), ..Trace::of_hops(hops, place) }
    }
}

/// A way into the switch on which all is noted.
pub(super) struct Watched<'a, U> {
    pub(super) uplink: U,
    pub(super) recorder: &'a mut Recorder,
}

impl<U: Uplink> Uplink for Watched<'_, U> {
    fn has_room(&mut self, packet: &Packet) -> bool {
        self.uplink.has_room(packet)
    }

    fn has_room_by_output(&self) -> bool {
        self.uplink.has_room_by_output()
    }

    fn send(&mut self, packet: Packet) {
        self.recorder.enters(&packet);
        self.uplink.send(packet);
    }
}
