//! The network as a fabric.

use kernel::{Bytes, Rate, Span, Time};
use rack::results::Table;
use rack::{Advance, Fabric, Flow, Gauge, Probe, Problem, Stage, Totals, Unfinished};
use serde_json::{Map, Value};

use super::ledger::{Entry, Life};
use super::{Network, STAGES, details, gauges, ideal};
use crate::net::Event;
use crate::program::Program;
use crate::transport::Transport;

/// Events between two questions to the probe: milliseconds (our choice).
const EVENTS_PER_POLL: u64 = 1 << 16;

impl<T: Transport, S: Program> Fabric for Network<T, S> {
    fn name(&self) -> &'static str {
        self.transport.name()
    }

    fn nodes(&self) -> u32 {
        self.net.plan.topology.hosts()
    }

    fn node_rate(&self) -> Rate {
        self.net.plan.node_rate()
    }

    fn has_handshake(&self) -> bool {
        self.transport.has_handshake()
    }

    fn now(&self) -> Time {
        self.reached
    }

    fn set_wire(&mut self, is_on: bool) -> Result<(), Problem> {
        self.net.uses_wire = is_on;
        Ok(())
    }

    fn offer(&mut self, flow: &Flow) {
        assert_ne!(flow.src, flow.dst, "{:?} goes from a node to itself", flow.id);
        let place = self.ledger.enter(flow);
        if flow.start > self.reached {
            self.net.calendar.push(flow.start, Event::Start { flow: place }.pack());
            return;
        }
        self.net.now = self.reached;
        self.start(place);
        // What the transport wants done waits for `advance`, which has a probe to tell of ends.
    }

    fn advance(&mut self, until: Time, probe: &mut dyn Probe) -> Advance {
        self.settle(probe);
        while !self.is_paused {
            let Some((now, event)) = self.net.calendar.pop_before(until) else {
                if until != Time::NEVER {
                    self.reached = until;
                }
                let is_idle = self.net.calendar.is_empty();
                return if is_idle { Advance::Idle } else { Advance::Reached };
            };
            self.step(now, event, probe);
            self.reached = now;
            if self.events.is_multiple_of(EVENTS_PER_POLL) && probe.poll().is_break() {
                self.is_paused = true;
            }
        }
        // Whatever else happens at this instant belongs to it.
        let next = self.reached + Span::from_ps(1);
        while let Some((now, event)) = self.net.calendar.pop_before(next) {
            self.step(now, event, probe);
        }
        self.is_paused = false;
        Advance::Paused
    }

    fn ideal_fct(&self, flow: &Flow) -> Span {
        ideal::completion_time(&self.net, self.framing, flow)
    }

    fn totals(&self) -> Totals {
        let counts = &self.net.counts;
        Totals {
            hops: counts.payload_hops,
            events: self.events,
            event_hash: counts.digest.get(),
            delivered: self.delivered,
            lost: self.lost,
            drops: counts.drops(),
            retransmissions: counts.retransmissions,
            queue_max_cells: u64::from(counts.queue_max_packets),
            queue_max: Bytes::new(counts.queue_max.into()),
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
        let (open, delivered) = (self.ledger.open, self.delivered);
        self.gauges.sample(row, &mut self.net, open, delivered);
    }

    fn unfinished(&self, limit: usize) -> Vec<Unfinished> {
        let open = self.ledger.unfinished().map(|place| self.ledger.get(place));
        let mut open: Vec<_> = open.collect();
        open.sort_unstable_by_key(|entry| entry.flow.id);
        let delivered = |entry: &Entry| match entry.life {
            Life::Open => self.delivered_of(entry.name),
            _ => Bytes::ZERO,
        };
        let open = open.into_iter().take(limit);
        open.map(|open| Unfinished { flow: open.flow, delivered: delivered(open) }).collect()
    }

    fn check(&self) -> Result<(), String> {
        self.check_queues()?;
        self.check_packets()?;
        self.transport.check()?;
        self.program.check()
    }

    fn tables(&self) -> Vec<Table> {
        details::tables(&self.net)
    }

    fn details(&self) -> Map<String, Value> {
        let mut own = self.transport.details(self.reached);
        own.extend(self.program.details(self.reached));
        details::details(&self.net, self.out.unexpected_count(), own)
    }
}
