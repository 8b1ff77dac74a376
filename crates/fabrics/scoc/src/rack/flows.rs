//! Flows under way: what is left to send, what has arrived, where the time went.

use kernel::{Bytes, Span, Time};
use rack::{Flow, Stage, Unfinished};
use switching::{Departure, Line, Packet, Ticks};

use crate::config::Plan;

/// The parts of a completion time, in order.
pub(super) const STAGES: &[Stage] = &[
    Stage { name: "host", meaning: "At the source, until its line and the switch take the packet" },
    Stage { name: "switch", meaning: "In the switch, first bit in to first bit out" },
    Stage { name: "links", meaning: "On the line, on cables and in the switch's serial links" },
    Stage { name: "rest", meaning: "At the destination, until the flow's last packet is there" },
];

/// One flow, from its offer to its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) flow: Flow,
    /// When its first byte may be sent, on the switch's time: a cable later than on its host's.
    pub(super) start: Ticks,
    /// Application bytes left to send.
    left: Bytes,
    /// Packets sent and arrived, and all of them.
    sent: u32,
    arrived: u32,
    packets: u32,
    /// Sums over its packets that have arrived: until the first bit enters, from then to the first
    /// bit leaving, and on the line.
    host: u64,
    switch: u64,
    line: u64,
    /// When the last bit of its last packet has left the switch.
    pub(super) end: Ticks,
    is_open: bool,
}

/// All flows under way.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    line: Line,
    /// Application bytes of a full packet, and its header.
    payload: Bytes,
    header: Bytes,
    /// On cables and in the switch's serial links.
    constant: Span,
    slab: Vec<Open>,
    spare: Vec<u32>,
    /// By output: when its line is free again. A crossbar that is faster than the lines may bring a
    /// packet while the one before it is still on the line.
    line_free: Vec<Ticks>,
}

/// How long ticks count at the least: what takes longer is reckoned without them.
const TICKS_LAST: Span = Span::from_us(12 * 3_600 * 1_000_000);

impl Flows {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            line: plan.switch.line(),
            payload: plan.payload(),
            header: plan.config.header,
            constant: plan.config.cable * 2 + plan.latency,
            slab: Vec::new(),
            spare: Vec::new(),
            line_free: vec![Ticks::default(); plan.config.nodes as usize],
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.slab.len() - self.spare.len()
    }

    /// Takes a flow: its place.
    pub(super) fn open(&mut self, flow: &Flow) -> u32 {
        let packets = flow.size.get().div_ceil(self.payload.get());
        let open = Open {
            flow: *flow,
            start: self.line.ticks_of(flow.start),
            left: flow.size,
            sent: 0,
            arrived: 0,
            packets: u32::try_from(packets).expect("a flow has fewer than 2³² packets"),
            host: 0,
            switch: 0,
            line: 0,
            end: Ticks::default(),
            is_open: true,
        };
        match self.spare.pop() {
            Some(place) => {
                self.slab[place as usize] = open;
                place
            }
            None => {
                self.slab.push(open);
                (self.slab.len() - 1) as u32
            }
        }
    }

    pub(super) fn get(&self, place: u32) -> &Open {
        &self.slab[place as usize]
    }

    /// The next packet of a flow whose first bit enters at `entered`.
    pub(super) fn packet(&self, place: u32, entered: Ticks) -> Packet {
        let open = self.get(place);
        let size = open.left.min(self.payload) + self.header;
        let (source, destination) = (open.flow.src.index(), open.flow.dst.index());
        let mut packet = Packet::new(source, destination, size, open.start);
        packet.sequence = open.sent;
        packet.tag = place;
        packet.entered = entered;
        packet
    }

    /// A packet of a flow was sent. Gives whether more is left.
    pub(super) fn sent(&mut self, packet: &Packet) -> bool {
        let open = &mut self.slab[packet.tag as usize];
        open.left -= packet.size() - self.header;
        open.sent += 1;
        open.left > Bytes::ZERO
    }

    /// A packet leaves the switch. Gives when the flow has left it whole, if it was the last.
    ///
    /// # Panics
    /// If it is out of order.
    pub(super) fn left(&mut self, departure: &Departure) -> Option<Ticks> {
        let Departure { packet, at } = departure;
        let open = &mut self.slab[packet.tag as usize];
        let (number, expected) = (packet.sequence, open.arrived);
        assert!(
            number == expected,
            "packet {number} of {:?} came in place of {expected}",
            open.flow
        );
        let on_line = self.line.send_time(packet.size());
        let free = &mut self.line_free[open.flow.dst.index()];
        let at = (*at).max(*free);
        *free = at + on_line;
        open.arrived += 1;
        open.host += (packet.entered - open.start).get();
        open.switch += (at - packet.entered).get();
        open.line += on_line.get();
        open.end = at + on_line;
        (open.arrived == open.packets).then_some(open.end)
    }

    /// Closes a flow that has arrived: itself, its end, and its time by [`STAGES`].
    pub(super) fn close(&mut self, place: u32) -> (Flow, Time, [Span; 4]) {
        let open = &mut self.slab[place as usize];
        open.is_open = false;
        self.spare.push(place);
        let end = Time::ZERO + self.line.span(open.end) + self.constant;
        let mean = |sum: u64| self.line.span(Ticks::new(sum / u64::from(open.packets)));
        let (host, switch) = (mean(open.host), mean(open.switch));
        let links = mean(open.line) + self.constant;
        let all = end - open.flow.start;
        let known = host + switch + links;
        let rest = if all > known { all - known } else { Span::ZERO };
        (open.flow, end, [host, switch, links, rest])
    }

    /// From the last bit that leaves the switch to the destination.
    pub(super) fn constant(&self) -> Span {
        self.constant
    }

    /// The completion time of a flow alone, without any wait for a cycle, a colour or a slot.
    pub(super) fn ideal(&self, plan: &Plan, flow: &Flow) -> Span {
        let before = (flow.size.get() - 1) / self.payload.get();
        let full = self.payload + self.header;
        let last = flow.size - self.payload * before + self.header;
        let long = self.line.rate().least_send_time(full * before);
        if long > TICKS_LAST {
            return long + self.constant;
        }
        let on_line = self.line.send_time(full) * before + self.line.send_time(last);
        // A last packet that is small waits behind the one before it.
        let ahead = if before > 0 { plan.switch.least_delay(full) } else { Ticks::default() };
        self.line.span(on_line + plan.switch.least_delay(last).max(ahead)) + self.constant
    }

    /// Flows not yet closed, at most `limit`.
    pub(super) fn unfinished(&self, limit: usize) -> Vec<Unfinished> {
        let open = self.slab.iter().filter(|open| open.is_open);
        let unfinished = |open: &Open| {
            let delivered = (self.payload * u64::from(open.arrived)).min(open.flow.size);
            Unfinished { flow: open.flow, delivered }
        };
        let mut flows: Vec<_> = open.map(unfinished).collect();
        flows.sort_by_key(|open| open.flow.id);
        flows.truncate(limit);
        flows
    }
}
