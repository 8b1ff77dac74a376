//! The network as a fabric.

use kernel::{Bytes, Rate, Span, Time};
use rack::node::Nodes;
use rack::results::Table;
use rack::trace::{Followed, Trace};
use rack::{Advance, Fabric, Flow, Gauge, Probe, Problem, Stage, Totals, Unfinished};
use serde_json::{Map, Value};

use super::{Network, STAGES, Wanted, details, gauges, ideal, just_after};
use crate::program::Program;
use crate::transport::Transport;

impl<T: Transport, S: Program> Fabric for Network<T, S> {
    fn name(&self) -> &'static str {
        self.transport().name()
    }

    fn nodes(&self) -> u32 {
        self.net().plan.topology.hosts()
    }

    fn node_rate(&self) -> Rate {
        self.net().plan.node_rate()
    }

    fn has_handshake(&self) -> bool {
        self.transport().has_handshake()
    }

    fn now(&self) -> Time {
        self.reached
    }

    fn set_wire(&mut self, is_on: bool) -> Result<(), Problem> {
        for part in self.parts.iter_mut() {
            part.program.set_wire(is_on)?;
            part.net.set_codec(is_on.then(|| part.transport.codec()));
        }
        Ok(())
    }

    fn set_threads(&mut self, threads: usize) {
        self.wanted = Wanted::Threads(threads);
    }

    fn set_shards(&mut self, shards: usize) -> usize {
        let cut = self.balanced(shards);
        if !self.can_be_cut(&cut) {
            return 1;
        }
        let parts = cut.parts();
        self.set_cut(cut, 1);
        parts
    }

    fn can_trace(&self) -> Result<(), Problem> {
        if self.transport().shares_packets() {
            let message = "flows share packets on connections that last (stream.connections), and a trace \
                           tells flows apart by their packets";
            return Err(Problem::new("trace", message));
        }
        Ok(())
    }

    fn set_trace(&mut self, followed: &[Followed]) {
        self.record(followed);
    }

    fn take_trace(&mut self) -> Trace {
        self.recorded()
    }

    fn apart(&self) -> Option<Nodes> {
        self.taken_apart()
    }

    fn offer(&mut self, flow: &Flow) {
        assert_ne!(flow.src, flow.dst, "{:?} goes from a node to itself", flow.id);
        let place = self.desk.ledger.enter(flow);
        match self.has_begun {
            true => self.hand_out(flow, place),
            false => self.early.push((*flow, place)),
        }
    }

    fn advance(&mut self, until: Time, probe: &mut dyn Probe) -> Advance {
        let pauses = probe.may_pause();
        if !self.has_begun {
            self.begin(pauses);
        }
        let is_soon = self.cut.is_some() && until < self.simulated + self.stride;
        if is_soon && !pauses && probe.may_wait() {
            self.reached = self.reached.max(until);
            return Advance::Reached;
        }
        loop {
            // Faults may end flows, which may be a reason to pause.
            let fault = if pauses { self.desk.next_fault() } else { Time::NEVER };
            let fault = if fault < Time::NEVER { just_after(fault) } else { fault };
            let leg = self.run(until.min(fault), pauses);
            self.settle(leg.end);
            let Self { parts, desk, .. } = self;
            let is_paused = desk.tell(&parts.get(0).net, probe) && pauses;
            if is_paused || (leg.is_long && probe.poll().is_break()) {
                // It is the last instant that is over, but where the leg was long for several parts.
                let is_whole_leg = leg.is_long && self.cut.is_some();
                let reached = if is_whole_leg { leg.end } else { before(leg.end) };
                self.reached = self.reached.max(reached);
                return Advance::Paused;
            }
            if leg.end < until {
                continue;
            }
            if until != Time::NEVER {
                self.reached = until;
            }
            let is_idle = self.parts.iter().all(|part| part.net.calendar.is_empty());
            return if is_idle { Advance::Idle } else { Advance::Reached };
        }
    }

    fn ideal_fct(&self, flow: &Flow) -> Span {
        ideal::completion_time(self.net(), self.transport().framing_of(flow.class), flow)
    }

    fn totals(&self) -> Totals {
        let mut counts = self.counts();
        counts.digest.add(self.desk.digest);
        let inside = self.parts.iter().map(|part| part.program.longest_queue());
        let (packets, bytes) =
            inside.fold((0, Bytes::ZERO), |most, one| (one.0.max(most.0), one.1.max(most.1)));
        Totals {
            hops: counts.payload_hops,
            events: self.events(),
            event_hash: counts.digest.get(),
            delivered: self.delivered(),
            lost: self.lost(),
            drops: counts.drops(),
            retransmissions: counts.retransmissions,
            queue_max_cells: u64::from(counts.queue_max_packets).max(packets),
            queue_max: Bytes::new(counts.queue_max.into()).max(bytes),
            queue_p99: Bytes::new(counts.found_p99()),
            reorder_max: Bytes::new(counts.reorder_max),
        }
    }

    fn stages(&self) -> &'static [Stage] {
        STAGES
    }

    fn gauges(&self) -> &'static [Gauge] {
        gauges::COLUMNS
    }

    fn sample(&mut self, row: &mut [f64]) {
        self.catch_up();
        let (open, delivered) = (self.desk.ledger.open, self.delivered());
        let nets = self.parts.iter_mut().map(|part| &mut part.net);
        self.gauges.sample(row, nets, open, delivered);
    }

    fn unfinished(&self, limit: usize) -> Vec<Unfinished> {
        let open = self.open(limit).into_iter();
        open.map(|(flow, delivered)| Unfinished { flow, delivered }).collect()
    }

    fn check(&self) -> Result<(), String> {
        for part in self.parts.iter() {
            part.check_queues()?;
            part.transport.check()?;
        }
        S::check_all(self.parts.iter().map(|part| &part.program))?;
        self.check_packets()
    }

    fn tables(&self) -> Vec<Table> {
        details::tables(self.net())
    }

    fn details(&self) -> Map<String, Value> {
        let own = |transport: &T, program: &S| {
            let mut own = transport.details(self.reached);
            own.extend(program.details(self.reached));
            own
        };
        let own = if self.parts.count() == 1 {
            own(self.transport(), self.program())
        } else {
            let (mut transport, mut program) = (self.transport().clone(), self.program().clone());
            for part in self.parts.iter().skip(1) {
                transport.add_counts(&part.transport);
                program.add_counts(&part.program);
            }
            own(&transport, &program)
        };
        let nets: Vec<_> = self.parts.iter().map(|part| &part.net).collect();
        let unexpected = self.parts.iter().map(|part| part.out.unexpected_count()).sum();
        details::details(&nets, &self.counts(), unexpected, own)
    }
}

/// The instant before `end`.
fn before(end: Time) -> Time {
    Time::from_ps(end.as_ps().saturating_sub(1))
}
