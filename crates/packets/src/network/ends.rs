//! How flows begin and end: at their hosts, and in the driver's list.

use kernel::{Span, Time};
use rack::topology::Vertex;
use rack::{Completion, Failure, Flow, NodeId, Probe};

use super::ledger::Life;
use super::{Doomed, Network, ideal};
use crate::net::Name;
use crate::packet::{FlowKey, Packet};
use crate::program::Program;
use crate::transport::{Opening, Transport};

impl<T: Transport, S: Program> Network<T, S> {
    /// A flow of the ledger begins at its source.
    pub(super) fn start(&mut self, place: u32) {
        let flow = self.ledger.get(place).flow;
        if let Some(why) = self.hopeless(flow.src, flow.dst) {
            self.failures.push((place, why));
            return;
        }
        let (key, name) = self.net.halves.open_sender(flow.src, flow.dst, place);
        self.ledger.starts(place, name);
        self.make_room();
        let nic = self.net.nics[flow.src.index()];
        if let Some(queues) = &mut self.net.flow_queues {
            queues.flow_starts(key, nic);
        }
        let paths = self.net.tables.paths(Vertex::new(flow.src.get()), flow.dst.get()).max(1);
        self.out.set_now(self.net.now);
        let label = FlowKey::label(name.number, false);
        self.transport.start(&Opening { key, label, flow, paths }, &mut self.out);
    }

    /// The first packet of a flow has reached its destination.
    #[inline(never)]
    pub(super) fn meet(&mut self, packet: &Packet) -> FlowKey {
        let key = self.net.halves.open_receiver(Name::of(packet));
        self.make_room();
        let label = FlowKey::label(packet.flow.place(), true).like(packet.flow);
        let packet = Packet { flow: key, ..*packet };
        self.transport.accept(&packet, label, &mut self.out);
        key
    }

    fn make_room(&mut self) {
        self.timers.grow(self.net.halves.places());
    }

    /// All of a flow is readable at its destination.
    pub(super) fn complete(&mut self, key: FlowKey, probe: &mut dyn Probe) {
        let end = self.net.now;
        let receiver = self.net.halves.receiver_mut(key);
        assert!(!receiver.is_complete, "{:?} completes twice", receiver.name);
        receiver.is_complete = true;
        let (name, delivered) = (receiver.name, receiver.delivered);
        // It may have failed meanwhile, for its source.
        let Some(place) = self.ledger.find(name) else { return };
        let flow = self.ledger.strike_out(place).flow;
        assert_eq!(
            delivered, flow.size,
            "{:?} completes with other bytes than it was given",
            flow.id
        );
        self.net.counts.digest.note(flow.id.get(), end.as_ps());
        let completion = Completion {
            flow: &flow,
            end,
            ideal: ideal::completion_time(&self.net, self.framing, &flow),
            stages: &self.stages_of(key, &flow, end),
        };
        self.is_paused |= probe.completed(&completion).is_break();
    }

    /// Divides a completion time over [`super::STAGES`]. For each packet that arrived, from the flow's
    /// start to its end is a sum of three parts; the middle one is divided by what it takes in the idle
    /// network.
    fn stages_of(&self, key: FlowKey, flow: &Flow, end: Time) -> [Span; 4] {
        let journey = &self.net.halves.receiver(key).journey;
        let since_start = |sum: u128| {
            mean(sum - u128::from(flow.start.as_ps()) * u128::from(journey.count), journey.count)
        };
        let all = end - flow.start;
        let source = since_start(journey.sent);
        let received = since_start(journey.received);
        let under_way = received - source;
        let idle = ideal::mean_transit(&self.net, flow, journey).min(under_way);
        [source, under_way - idle, idle, all - received.min(all)]
    }

    /// A half has nothing left to do.
    pub(super) fn close(&mut self, key: FlowKey) {
        self.timers.cancel_flow(key);
        self.net.halves.close(key);
    }

    /// A sender sends no more of a flow: unless that is complete, it has failed.
    pub(super) fn give_up(&mut self, key: FlowKey, probe: &mut dyn Probe) {
        let place = self.net.halves.ticket(key);
        let entry = self.ledger.get(place);
        if entry.life == Life::Open && self.net.halves.sender_named(entry.name) == Some(key) {
            return self.fail(place, Failure::PacketsLost, probe);
        }
        self.out.set_now(self.net.now);
        self.transport.abandon(key, &mut self.out);
        self.close(key);
    }

    /// A flow has failed: its hosts forget it.
    pub(super) fn fail(&mut self, place: u32, why: Failure, probe: &mut dyn Probe) {
        let life = self.ledger.get(place).life;
        if life == Life::Free {
            return;
        }
        let (flow, name) = {
            let entry = self.ledger.strike_out(place);
            (entry.flow, entry.name)
        };
        self.lost += flow.size;
        if life == Life::Open {
            self.lost -= self.delivered_of(name);
            self.out.set_now(self.net.now);
            self.forget(name);
        }
        self.net.counts.digest.note(!flow.id.get(), self.net.now.as_ps());
        self.is_paused |= probe.failed(&flow, self.net.now, why).is_break();
    }

    /// Closes the halves of a flow; what is still under way of it finds nothing.
    fn forget(&mut self, name: Name) {
        let receiver = self.net.halves.receiver_named(name);
        if let Some(key) = self.net.halves.sender_named(name) {
            self.transport.abandon(key, &mut self.out);
            self.close(key);
        }
        match receiver {
            Some(key) => {
                self.transport.abandon(key, &mut self.out);
                self.close(key);
            }
            None => self.net.halves.never_again(name),
        }
    }

    /// Application bytes of a flow that are readable at its destination.
    pub(super) fn delivered_of(&self, name: Name) -> kernel::Bytes {
        let receiver = self.net.halves.receiver_named(name);
        receiver.map_or(kernel::Bytes::ZERO, |key| self.net.halves.receiver(key).delivered)
    }

    /// Why a flow can never complete, as far as switches and hosts know: a host that has died knows it
    /// itself.
    fn hopeless(&self, from: NodeId, to: NodeId) -> Option<Failure> {
        let (src, dst) = (Vertex::new(from.get()), Vertex::new(to.get()));
        if self.net.is_dead(src) {
            return Some(Failure::SourceDied);
        }
        let is_known_dead = !self.net.live.vertices[dst.index()];
        let is_cut_off = self.net.is_settled() && self.net.tables.paths(src, to.get()) == 0;
        (is_known_dead || is_cut_off).then_some(Failure::DestinationDied)
    }

    /// A vertex has died. If it is a host its flows are lost with what it knew of them, even if it comes
    /// back; they fail when that is known, once routes have converged.
    pub(super) fn died(&mut self, vertex: Vertex) {
        if S::RUNS {
            self.tell_program_of_death(vertex);
        }
        if !self.net.plan.topology.is_host(vertex) {
            return;
        }
        let node = NodeId::new(vertex.get());
        let known_at = self.net.now + self.net.plan.config.convergence;
        for place in self.ledger.unfinished() {
            let entry = self.ledger.get(place);
            if entry.life == Life::Open && [entry.flow.src, entry.flow.dst].contains(&node) {
                let is_source = entry.flow.src == node;
                let why = if is_source { Failure::SourceDied } else { Failure::DestinationDied };
                self.doomed.push_back(Doomed { place, id: entry.flow.id, why, known_at });
            }
        }
    }

    /// It is known now of some flows that one of their hosts has died.
    pub(super) fn fail_doomed(&mut self) {
        while let Some(&Doomed { place, id, why, .. }) =
            self.doomed.front().filter(|doomed| doomed.known_at <= self.net.now)
        {
            self.doomed.pop_front();
            let entry = self.ledger.get(place);
            if entry.life == Life::Open && entry.flow.id == id {
                self.failures.push((place, why));
            }
        }
    }

    /// Routes are known anew: flows to hosts that are dead fail, and if nothing more is to change those to
    /// hosts that no path leads to.
    pub(super) fn fail_unreachable(&mut self, is_settled: bool) {
        if !is_settled && self.net.live.vertices.iter().all(|&works| works) {
            return;
        }
        for place in self.ledger.unfinished() {
            let entry = self.ledger.get(place);
            let src = Vertex::new(entry.flow.src.get());
            let is_unknown = self.net.is_dead(src) && self.net.live.vertices[src.index()];
            if entry.life != Life::Open || is_unknown {
                continue;
            }
            if let Some(why) = self.hopeless(entry.flow.src, entry.flow.dst) {
                self.failures.push((place, why));
            }
        }
        self.abandon_unreachable();
    }

    /// What a host still has to say of flows that have ended, to another that no path leads to, it forgets.
    fn abandon_unreachable(&mut self) {
        let ended = |name: Name| self.ledger.find(name).is_none();
        let is_hopeless = |name: Name| self.hopeless(name.src, name.dst).is_some();
        let open = self.net.halves.open();
        let keys = open.filter(|&(_, name)| ended(name) && is_hopeless(name)).map(|(key, _)| key);
        let keys: Vec<_> = keys.collect();
        for key in keys {
            self.transport.abandon(key, &mut self.out);
            self.close(key);
        }
    }
}

/// `total` picoseconds over `count`.
fn mean(total: u128, count: u64) -> Span {
    let mean = total / u128::from(count.max(1));
    Span::from_ps(u64::try_from(mean).expect("a mean is not above its largest value"))
}
