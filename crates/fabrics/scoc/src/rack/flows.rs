//! Flows under way as the driver knows them, and where their time went.

use kernel::{Bytes, Lookup, Slab, Span, Time};
use rack::{Flow, Stage, Unfinished};
use switching::{Line, Ticks};

use super::receivers::End;
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
struct Open {
    flow: Flow,
    /// As its source counts its flows.
    number: u32,
    is_open: bool,
    /// Whether its last bit has left the switch, which is told at that instant.
    is_whole: bool,
}

/// A flow that has ended: it, its end, and its time by [`STAGES`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) flow: Flow,
    pub(super) end: Time,
    pub(super) stages: [Span; 4],
}

/// Whoever offers flows and hears of their ends: all flows under way. Nodes know nothing of it.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    line: Line,
    /// Application bytes of a full packet, and its header.
    payload: Bytes,
    header: Bytes,
    /// On cables and in the switch's serial links.
    constant: Span,
    slab: Slab<Open>,
    /// Places by source, destination and number.
    places: Lookup,
}

/// How long ticks count at the least: what takes longer is computed without them.
const TICKS_LAST: Span = Span::from_us(12 * 3_600 * 1_000_000);

impl Flows {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            line: plan.switch.line(),
            payload: plan.payload(),
            header: plan.config.header,
            constant: plan.constant(),
            slab: Slab::default(),
            places: Lookup::default(),
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.slab.live()
    }

    /// Notes a flow that its source calls by a number.
    pub(super) fn open(&mut self, flow: &Flow, number: u32) {
        let open = Open { flow: *flow, number, is_open: true, is_whole: false };
        let place = self.slab.insert(open);
        self.places.insert([flow.src.get(), flow.dst.get(), number], place);
    }

    /// The last packet of a flow is on its last line.
    pub(super) fn leaves(&mut self, end: &End) {
        if let Some(place) = self.place(end) {
            self.slab[place as usize].is_whole = true;
        }
    }

    /// The place of a flow that has ended, if there is such a flow.
    pub(super) fn place(&self, end: &End) -> Option<u32> {
        self.places.get([end.source.into(), end.destination.into(), end.number])
    }

    /// Closes a flow that has ended.
    pub(super) fn close(&mut self, place: u32, told: &End) -> Ended {
        let open = &mut self.slab[place as usize];
        open.is_open = false;
        let flow = open.flow;
        self.places.remove([flow.src.get(), flow.dst.get(), open.number]);
        self.slab.release(place);
        let end = Time::ZERO + self.line.span(told.at) + self.constant;
        let mean = |sum: u64| self.line.span(Ticks::new(sum / u64::from(told.packets)));
        let (host, switch) = (mean(told.host), mean(told.switch));
        let links = mean(told.line) + self.constant;
        let all = end - flow.start;
        let known = host + switch + links;
        let rest = if all > known { all - known } else { Span::ZERO };
        Ended { flow, end, stages: [host, switch, links, rest] }
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

    /// Flows not yet closed, at most `limit`; `delivered` tells what has arrived of one.
    pub(super) fn unfinished(
        &self,
        limit: usize,
        delivered: impl Fn(&Flow, u32) -> Bytes,
    ) -> Vec<Unfinished> {
        let open = self.slab.iter().filter(|open| open.is_open);
        let unfinished = |Open { flow, number, is_whole, .. }: &Open| Unfinished {
            flow: *flow,
            delivered: if *is_whole { flow.size } else { delivered(flow, *number) },
        };
        let mut flows: Vec<_> = open.map(unfinished).collect();
        flows.sort_by_key(|open| open.flow.id);
        flows.truncate(limit);
        flows
    }
}
