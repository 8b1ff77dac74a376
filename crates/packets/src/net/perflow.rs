//! Per-flow queues with hop-by-hop backpressure: R2C2's ideal baseline (R2C2 §2.2.2, §5.2).
//!
//! Each output port has a queue for each flow that has packets there; they take turns, a packet each.
//! A flow may have so many packets on a link and in the queue behind it; each that leaves there lets
//! one follow, after the wire's delay. Buffers are as many as it takes: an ideal to compare with, not
//! a design.
//!
//! Full queues never wait for each other in a circle: along a shortest path each hop leads nearer to the
//! flow's destination. Packets that go elsewhere first wait in queues of their own meanwhile, where each
//! hop leads farther from the source.

use std::collections::VecDeque;

use kernel::{Lookup, Time};

use super::Net;
use super::arena::{Fifo, NONE};
use super::event::Event;
use super::halves::Name;
use super::places::{Lane, Places};
use crate::packet::FlowKey;

/// One lane at one output port.
#[derive(Clone, Debug)]
struct FlowQueue {
    port: u32,
    lane: Lane,
    fifo: Fifo,
    /// Packets on the link and in the queue behind it.
    ahead: u32,
    /// Whether it is among the port's turns.
    is_listed: bool,
}

/// All of them.
#[derive(Clone, Debug)]
pub(crate) struct FlowQueues {
    /// By output port: packets of a flow that may be ahead.
    pub(crate) window: Vec<u32>,
    /// Largest packet, in bytes.
    pub(super) mtu: u32,
    /// Lanes of a flow: one for each leg.
    legs: u32,
    /// Flows that have a queue somewhere, and how many queues each has. A flow's lanes follow from its place.
    flow_of: Lookup,
    flows: Vec<(Name, u32)>,
    free_flows: Vec<u32>,
    queues: Vec<FlowQueue>,
    free: Vec<u32>,
    /// Place by port and lane.
    places: Places,
    /// By output port: queues that may send.
    turns: Vec<VecDeque<u32>>,
    /// By flow's half at its source: bytes that it may still send.
    pub(crate) source_room: Vec<u32>,
}

impl FlowQueues {
    pub(super) fn new(window: Vec<u32>, mtu: u32, legs: u32) -> Self {
        let turns = vec![VecDeque::new(); window.len()];
        let places = Places::new(window.len());
        Self {
            window,
            mtu,
            legs,
            flow_of: Lookup::default(),
            flows: Vec::new(),
            free_flows: Vec::new(),
            queues: Vec::new(),
            free: Vec::new(),
            places,
            turns,
            source_room: Vec::new(),
        }
    }

    /// The lane of a flow on its last leg, or on the one before.
    fn lane(&mut self, name: Name, is_first: bool) -> Lane {
        let flow = self.flow_of.get(name.words()).unwrap_or_else(|| self.open_flow(name));
        Lane(flow * self.legs + u32::from(is_first))
    }

    /// Gives a flow a place.
    fn open_flow(&mut self, name: Name) -> u32 {
        let flow = self.free_flows.pop().unwrap_or(self.flows.len() as u32);
        if flow as usize == self.flows.len() {
            self.flows.push((name, 0));
        }
        self.flows[flow as usize] = (name, 0);
        self.flow_of.insert(name.words(), flow);
        (0..self.legs).for_each(|leg| self.places.open(Lane(flow * self.legs + leg)));
        flow
    }

    /// The flow of a lane.
    fn flow(&self, lane: Lane) -> usize {
        lane.index() / self.legs as usize
    }

    /// What a lane is called between hosts.
    pub(crate) fn name(&self, lane: Lane) -> (Name, u32) {
        (self.flows[self.flow(lane)].0, lane.0 % self.legs)
    }

    fn place(&mut self, port: u32, lane: Lane) -> u32 {
        let known = self.places.get(port, lane);
        if known != NONE {
            return known;
        }
        let queue = FlowQueue { port, lane, fifo: Fifo::EMPTY, ahead: 0, is_listed: false };
        let place = match self.free.pop() {
            Some(place) => {
                self.queues[place as usize] = queue;
                place
            }
            None => {
                self.queues.push(queue);
                self.queues.len() as u32 - 1
            }
        };
        self.places.insert(port, lane, place);
        let flow = self.flow(lane);
        self.flows[flow].1 += 1;
        place
    }

    /// Forgets a queue that is of no use, and its flow with its last queue.
    fn forget(&mut self, place: u32) {
        let FlowQueue { port, lane, .. } = self.queues[place as usize];
        self.places.remove(port, lane);
        self.free.push(place);
        let flow = self.flow(lane);
        let (name, queues) = &mut self.flows[flow];
        *queues -= 1;
        if *queues == 0 {
            self.flow_of.remove(name.words());
            self.free_flows.push(flow as u32);
        }
    }

    /// Gives a queue a turn if it may send; forgets it if it is of no use.
    fn review(&mut self, place: u32) {
        let queue = &mut self.queues[place as usize];
        let window = self.window[queue.port as usize];
        if queue.fifo.is_empty() {
            if queue.ahead == 0 {
                self.forget(place);
            }
        } else if queue.ahead < window && !queue.is_listed {
            queue.is_listed = true;
            self.turns[queue.port as usize].push_back(place);
        }
    }

    /// A flow starts at the NIC of `port`.
    pub(crate) fn flow_starts(&mut self, flow: FlowKey, port: u32) {
        if self.source_room.len() <= flow.index() {
            self.source_room.resize(flow.index() + 1, 0);
        }
        self.source_room[flow.index()] = self.window[port as usize] * self.mtu;
    }
}

impl Net {
    /// Whether queues of flows may send at `port`.
    #[inline]
    pub(super) fn has_flow_queues(&self, port: u32) -> bool {
        let Some(all) = &self.flow_queues else { return false };
        !all.turns[port as usize].is_empty() && self.ports[port as usize].faults == 0
    }

    /// Puts a packet in its flow's queue.
    pub(super) fn enqueue_flow(&mut self, index: u32, port: u32) {
        let packet = *self.arena.get(index);
        let is_first = self.detours.as_ref().is_some_and(|all| all.leaves_on_first(index));
        let Some(all) = &mut self.flow_queues else { return };
        let lane = all.lane(Name::of(&packet), is_first);
        let place = all.place(port, lane);
        self.arena.push(&mut all.queues[place as usize].fifo, index);
        all.review(place);
        let out = &mut self.ports[port as usize];
        out.bytes += u32::from(packet.wire);
        out.packets += 1;
        self.queue_grows(port, u32::from(packet.wire));
    }

    /// The front packet of the queue whose turn it is.
    pub(super) fn pick_flow(&mut self, port: u32) -> Option<u32> {
        if !self.has_flow_queues(port) {
            return None;
        }
        let all = self.flow_queues.as_mut()?;
        let place = all.turns[port as usize].pop_front()?;
        let queue = &mut all.queues[place as usize];
        queue.is_listed = false;
        let index = self.arena.pop(&mut queue.fifo);
        self.leave_flow_queue(port, index);
        Some(index)
    }

    fn leave_flow_queue(&mut self, port: u32, index: u32) {
        let size = u32::from(self.arena.get(index).wire);
        let out = &mut self.ports[port as usize];
        out.bytes -= size;
        out.packets -= 1;
        self.queue_shrinks(port, size);
    }

    /// A packet goes out by `port`.
    pub(super) fn window_take(&mut self, port: u32, index: u32) {
        let packet = *self.arena.get(index);
        let is_first = self.detours.as_ref().is_some_and(|all| all.leaves_on_first(index));
        let Some(all) = &mut self.flow_queues else { return };
        if !packet.is_data() {
            return;
        }
        let lane = all.lane(Name::of(&packet), is_first);
        let place = all.place(port, lane);
        let queue = &mut all.queues[place as usize];
        queue.ahead += 1;
        let (ahead, window) = (queue.ahead, all.window[port as usize]);
        debug_assert!(ahead <= window, "{ahead} packets ahead in a window of {window}");
        if self.ports[port as usize].is_nic
            && let Some(sender) = self.halves.sender_named(Name::of(&packet))
        {
            all.source_room[sender.index()] = (window - ahead) * all.mtu;
        }
        all.review(place);
    }

    /// A packet that came by `port` has left: after the wire's delay one may follow.
    pub(super) fn window_return(&mut self, index: u32, port: u32) {
        let packet = *self.arena.get(index);
        let was_first = self.detours.as_ref().is_some_and(|all| all.came_on_first(index));
        if !packet.is_data() {
            return;
        }
        let wire = &self.wires[port as usize];
        let (name, to, at) = (Name::of(&packet), wire.reverse, self.now + wire.propagation);
        if !self.owns(self.vertices[to as usize]) {
            return self.pass_room(to, name, was_first, at);
        }
        self.expect_room(to, name, was_first, at);
    }

    /// Room for one more packet of a flow, on its first leg or its last, comes to `port` at an instant.
    pub(super) fn expect_room(&mut self, port: u32, name: Name, is_first: bool, at: Time) {
        let Some(all) = &mut self.flow_queues else { return };
        let lane = all.lane(name, is_first);
        self.calendar.push(at, Event::Room { port, lane }.pack());
    }

    /// One more packet of a lane may go out by `port`.
    pub(crate) fn window_opens(&mut self, port: u32, lane: Lane) {
        let Some(all) = &mut self.flow_queues else { return };
        let place = all.place(port, lane);
        let queue = &mut all.queues[place as usize];
        debug_assert!(queue.ahead > 0, "room for a packet of {lane:?} that never went");
        queue.ahead -= 1;
        if self.ports[port as usize].is_nic {
            let room = (all.window[port as usize] - queue.ahead) * all.mtu;
            let (name, _) = all.flows[all.flow(lane)];
            if let Some(sender) = self.halves.sender_named(name) {
                all.source_room[sender.index()] = room;
            }
        }
        all.review(place);
        self.serve(port);
    }

    /// Empties the flows' queues of a port: its link is down.
    pub(super) fn flush_flows(&mut self, port: u32) {
        let Some(all) = &mut self.flow_queues else { return };
        all.turns[port as usize].clear();
        let mut lost = Vec::new();
        // In order of flows: places are whatever was free.
        let queues = (0..all.queues.len()).filter(|&place| all.queues[place].port == port);
        let mut queues: Vec<_> = queues.collect();
        queues.sort_unstable_by_key(|&place| all.name(all.queues[place].lane));
        for place in queues {
            let queue = &mut all.queues[place];
            queue.is_listed = false;
            while !queue.fifo.is_empty() {
                lost.push(self.arena.pop(&mut queue.fifo));
            }
        }
        for index in lost {
            self.leave_flow_queue(port, index);
            self.drop_at_dead_link(index, port);
        }
    }

    /// Bytes in the flows' queues of a port, counted one by one.
    pub(crate) fn waiting_in_flows(&self, port: u32) -> u64 {
        let Some(all) = &self.flow_queues else { return 0 };
        let queues = all.queues.iter().filter(|queue| queue.port == port);
        let packets = queues.flat_map(|queue| self.arena.iter(queue.fifo));
        packets.map(|index| u64::from(self.arena.get(index).wire)).sum()
    }
}
