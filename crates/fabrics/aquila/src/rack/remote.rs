//! The Clique as a fabric whose flows are operations on remote memory: no packets, no transport.
//!
//! Models: Aquila §3.4 (M501), §5: a flow from A to B is written by A into B's memory, or read by B out of A's: B then
//! knows of it at its start. **Our choice**: it goes in operations of `rma.operation` bytes, so many at a time as keep
//! the hardware busy, and has ended when the software that asks knows that all of it is done.

use ::rack::equipment::Bill;
use ::rack::{
    Advance, Completion, Fabric, Failure, Flow, Gauge, GaugeKind, Probe, Problem, Stage, Totals,
    Unfinished,
};
use kernel::{Bytes, Rate, Slab, Span, Time};
use serde_json::{Map, Value};
use std::sync::Arc;

use super::ideal::Ways;
use crate::config::{Carrier, Plan};
use crate::rma::{Access, Engine, Grant, Kind, Outcome, Permissions};
use crate::switch::Switches;
use crate::switch::settings::{Settings, TICK};
use crate::tables::{Condition, compute::compute};

/// Operations of a flow that are asked for at a time (our choice: two windows of the default operation).
const AHEAD: u32 = 8;
/// Memory that each host has registered: as much as any operation has. Unit: bytes.
const MEMORY: u64 = 1 << 20;
/// Cycles between two questions to the probe.
const CYCLES_PER_POLL: u32 = 1 << 14;
/// The process that asks.
const KEY: u32 = 1;

const STAGES: &[Stage] = &[Stage {
    name: "operations",
    meaning: "From the flow's start until software knows that its last operation is done",
}];

const GAUGES: &[Gauge] = &[
    Gauge { name: "open_flows", meaning: "Flows that have not ended", kind: GaugeKind::Level },
    Gauge { name: "hops", meaning: "Cells that crossed a switch", kind: GaugeKind::Count },
    Gauge {
        name: "delivered_bytes",
        meaning: "Bytes of memory that were read or written",
        kind: GaugeKind::Count,
    },
];

/// A flow that has not ended.
#[derive(Clone, Copy, Debug)]
struct Open {
    flow: Flow,
    /// Bytes that were asked for, and that are done.
    asked: u64,
    done: u64,
    /// Operations that are under way.
    operations: u32,
    has_failed: bool,
    is_open: bool,
}

/// An operation of a flow.
#[derive(Clone, Copy, Debug)]
struct Part {
    flow: u32,
    length: u32,
}

/// A rack under simulation.
#[derive(Clone, Debug)]
pub struct Remote {
    plan: Plan,
    switches: Switches<Engine>,
    ways: Ways,
    flows: Slab<Open>,
    parts: Slab<Part>,
    /// By node: its TiN and host, and what its memory is reached by.
    nodes: Vec<(u16, usize, Grant)>,
    /// Everything before has happened.
    reached: Time,
    delivered: Bytes,
    lost: Bytes,
    hash: u64,
    sampled: Totals,
    cycles: u32,
}

impl Remote {
    /// An idle rack. `seed` is that of all chance in it.
    pub(super) fn new(plan: Plan, seed: u64) -> Self {
        let shape = *plan.topology.shape();
        let condition = Condition::healthy(&plan.topology);
        let tables = Arc::new(compute(&plan.topology, &plan.turns, &condition));
        let settings = Arc::new(Settings::from(&plan));
        let own: Vec<u16> = (0..shape.tins()).collect();
        let hops = settings.switch.hops;
        let mut engine = Engine::new(&plan.config.rma, &shape, &own, hops, seed);
        let mut node = |place: &crate::topology::placement::HostPlace| {
            let (tin, host) = (place.tin, usize::from(place.slot));
            let memory = engine.memory(tin, host);
            let region = memory.register(0, MEMORY, Permissions::ALL).expect("the first region");
            (tin, host, memory.grant(region, KEY).expect("it is registered"))
        };
        let nodes = plan.hosts.iter().map(&mut node).collect();
        let switches = Switches::new(&plan.topology, tables, settings, &own, seed, engine);
        Self {
            ways: Ways::new(&plan),
            plan,
            switches,
            flows: Slab::default(),
            parts: Slab::default(),
            nodes,
            reached: Time::ZERO,
            delivered: Bytes::ZERO,
            lost: Bytes::ZERO,
            hash: 0,
            sampled: Totals::default(),
            cycles: 0,
        }
    }

    fn is_read(&self) -> bool {
        self.plan.config.carrier == Carrier::RmaRead
    }

    /// Asks for more of a flow.
    fn go_on(&mut self, place: u32, now: Time) {
        let most = self.plan.config.rma.operation.get();
        loop {
            let Open { flow, asked, operations, has_failed, .. } = self.flows[place as usize];
            let rest = flow.size.get() - asked;
            if rest == 0 || operations == AHEAD || has_failed {
                return;
            }
            let length = rest.min(most) as u32;
            let handle = self.parts.insert(Part { flow: place, length });
            let (kind, asks, asked) = match self.is_read() {
                true => (Kind::Read, flow.dst, flow.src),
                false => (Kind::Write, flow.src, flow.dst),
            };
            let (tin, host, _) = self.nodes[asks.index()];
            let (to, number, grant) = self.nodes[asked.index()];
            self.switches.act(tin, now, |engine, wishes| {
                let to = engine.address(to, number);
                let (offset, local, half) = (0, 0, None);
                let access = Access { handle, to, kind, length, grant, offset, local, half };
                engine.submit(tin, host, &access, wishes);
            });
            let open = &mut self.flows[place as usize];
            open.asked += u64::from(length);
            open.operations += 1;
        }
    }

    /// Hears what has become of operations, and tells of flows that have ended. True if the probe asked to pause.
    fn settle(&mut self, now: Time, probe: &mut dyn Probe) -> bool {
        let mut ended = Vec::new();
        while let Some((_, outcome)) = self.switches.endpoints_mut().next_outcome() {
            let (handle, at, is_done) = match outcome {
                Outcome::Done { handle, at, .. } => (handle, at, true),
                Outcome::Failed { handle, at, .. } => (handle, at, false),
            };
            let Part { flow, length } = self.parts[handle as usize];
            self.parts.release(handle);
            let open = &mut self.flows[flow as usize];
            open.operations -= 1;
            if is_done {
                open.done += u64::from(length);
                self.delivered += Bytes::new(length.into());
            } else {
                open.has_failed = true;
            }
            self.go_on(flow, now);
            let open = &mut self.flows[flow as usize];
            if open.operations == 0 {
                open.is_open = false;
                ended.push((at, open.flow.id, flow));
            }
        }
        ended.sort_unstable();
        let mut is_paused = false;
        for (at, id, place) in ended {
            let Open { flow, has_failed, done, .. } = self.flows[place as usize];
            self.flows.release(place);
            self.hash =
                self.hash.wrapping_add(kernel::mix64(id.get() ^ at.as_ps().rotate_left(20)));
            let answer = if has_failed {
                self.lost += Bytes::new(flow.size.get() - done);
                probe.failed(&flow, at, Failure::PacketsLost)
            } else {
                let (ideal, stages) = (self.ideal_fct(&flow), [at - flow.start]);
                let completion = Completion { flow: &flow, end: at, ideal, stages: &stages };
                probe.completed(&completion)
            };
            is_paused |= answer.is_break();
        }
        is_paused
    }
}

impl Fabric for Remote {
    fn name(&self) -> &'static str {
        "aquila"
    }

    fn nodes(&self) -> u32 {
        self.plan.config.nodes
    }

    fn node_rate(&self) -> Rate {
        self.plan.config.load_rate
    }

    fn has_handshake(&self) -> bool {
        true
    }

    fn now(&self) -> Time {
        self.reached
    }

    fn set_wire(&mut self, is_on: bool) -> Result<(), Problem> {
        self.switches.set_wire(is_on);
        Ok(())
    }

    fn offer(&mut self, flow: &Flow) {
        let (flow, is_open) = (*flow, true);
        let open = Open { flow, asked: 0, done: 0, operations: 0, has_failed: false, is_open };
        let place = self.flows.insert(open);
        self.go_on(place, flow.start.max(self.reached));
    }

    fn advance(&mut self, until: Time, probe: &mut dyn Probe) -> Advance {
        while let Some(next) = self.switches.next().filter(|&next| next < until) {
            self.switches.run(next + Span::from_ps(1));
            // What they ask for now is asked for at the next cycle.
            let now = (next + TICK).min(until);
            let is_paused = self.settle(now, probe);
            self.reached = self.reached.max(now);
            self.cycles = (self.cycles + 1) % CYCLES_PER_POLL;
            if is_paused || (self.cycles == 0 && probe.poll().is_break()) {
                return Advance::Paused;
            }
        }
        if until != Time::NEVER {
            self.reached = self.reached.max(until);
        }
        if self.switches.next().is_none() { Advance::Idle } else { Advance::Reached }
    }

    fn ideal_fct(&self, flow: &Flow) -> Span {
        let (rma, [from, to]) =
            (&self.plan.config.rma, [flow.src, flow.dst].map(|node| self.nodes[node.index()].0));
        let (there, back) = (self.ways.crossing(from, to), self.ways.crossing(to, from));
        let after = Bytes::new(flow.size.get().saturating_sub(rma.payload.get()));
        let bytes = rma.pcie.read + rma.pcie.rate.least_send_time(after);
        let asked = back + rma.request_time + bytes + there + rma.landing_time;
        let fixed = rma.pcie.doorbell + rma.pcie.completion;
        match self.is_read() {
            true => fixed + asked,
            // It is offered, fetched as if it were read, and its end told.
            false => fixed + there + rma.request_time + asked + back + rma.landing_time,
        }
    }

    fn totals(&self) -> Totals {
        let (cells, memory) = (self.switches.counts(), self.switches.endpoints().counts());
        let request = Bytes::new(48);
        Totals {
            hops: cells.hops,
            events: cells.hops + cells.decisions,
            event_hash: self.hash.wrapping_add(kernel::mix64(cells.hops)),
            delivered: self.delivered,
            lost: self.lost,
            drops: cells.injected
                - cells.delivered.min(cells.injected)
                - u64::from(self.switches.cells()),
            retransmissions: memory.retries,
            queue_max_cells: memory.queue_max.into(),
            queue_max: request * u64::from(memory.queue_max),
            queue_p99: request * self.switches.endpoints().found_p99(),
            reorder_max: Bytes::ZERO,
        }
    }

    fn stages(&self) -> &'static [Stage] {
        STAGES
    }

    fn gauges(&self) -> &'static [Gauge] {
        GAUGES
    }

    fn sample(&mut self, row: &mut [f64]) {
        let totals = self.totals();
        let values = [
            self.flows.live() as f64,
            (totals.hops - self.sampled.hops) as f64,
            (totals.delivered - self.sampled.delivered).get() as f64,
        ];
        row.copy_from_slice(&values);
        self.sampled = totals;
    }

    fn unfinished(&self, limit: usize) -> Vec<Unfinished> {
        let open = self.flows.iter().filter(|open| open.is_open);
        let of = |open: &Open| Unfinished { flow: open.flow, delivered: Bytes::new(open.done) };
        open.map(of).take(limit).collect()
    }

    fn check(&self) -> Result<(), String> {
        self.switches.check()?;
        match self.flows.live() {
            0 if self.switches.next().is_none() => self.switches.endpoints().check_home(),
            _ => Ok(()),
        }
    }

    fn bill(&self) -> Option<Bill> {
        Some(self.plan.bill)
    }

    fn details(&self) -> Map<String, Value> {
        let (cells, memory) = (self.switches.counts(), self.switches.endpoints().counts());
        let mut details = super::details_of(&cells);
        let mut say = |key: &str, value: Value| details.insert(key.into(), value);
        say("carrier", if self.is_read() { "1rma-read" } else { "1rma-write" }.into());
        say("operations", memory.operations.into());
        say("operations_late", memory.late.into());
        say("operations_failed", memory.failed.into());
        say("requests", memory.requests.into());
        say("requests_waiting_max", memory.queue_max.into());
        say("asked_max_bytes", memory.asked_max.into());
        say("stale_responses", memory.stale.into());
        say("unreadable_cells", memory.unreadable.into());
        details
    }
}
