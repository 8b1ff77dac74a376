//! How flows begin and end at their hosts, and what the driver is told of it.

use kernel::Time;
use rack::topology::Vertex;
use rack::{Failure, Flow, NodeId};

use super::part::Part;
use super::reports::{Report, What};
use crate::net::{Journey, Name, hopeless};
use crate::outbox::Effect;
use crate::packet::{FlowKey, Packet};
use crate::program::Program;
use crate::transport::{Opening, Transport};

impl<T: Transport, S: Program> Part<T, S> {
    fn report(&mut self, what: What) {
        self.reports.push(Report { at: self.net.now, what });
    }

    /// A flow that was offered begins at its source.
    pub(super) fn start(&mut self, offer: u32) {
        let (flow, place) = self.offers[offer as usize];
        self.free_offers.push(offer);
        if let Some(why) = self.refuses(flow.src, flow.dst) {
            return self.report(What::Refused { place, why });
        }
        let Flow { src, dst, .. } = flow;
        let (key, name) = self.net.halves.open_sender(src, dst);
        self.report(What::Started { place, name });
        self.net.note_begun(&flow, name);
        self.make_room();
        self.watch(key);
        let nic = self.net.nics[src.index()];
        if let Some(queues) = &mut self.net.flow_queues {
            queues.flow_starts(key, nic);
        }
        let paths = self.net.tables.paths(Vertex::new(src.get()), dst.get()).max(1);
        self.out.set_now(self.net.now);
        let label = FlowKey::label(name.number, false);
        self.transport.start(&Opening { key, label, flow, paths }, &mut self.out);
    }

    /// A flow that was offered will not begin.
    pub(super) fn refuse(&mut self, offer: u32, why: Failure) {
        let (_, place) = self.offers[offer as usize];
        self.free_offers.push(offer);
        self.report(What::Refused { place, why });
    }

    /// The first packet of a flow has reached its destination.
    #[inline(never)]
    pub(super) fn meet(&mut self, packet: &Packet) -> FlowKey {
        let key = self.net.halves.open_receiver(Name::of(packet));
        self.make_room();
        self.watch(key);
        let label = FlowKey::label(packet.flow.place(), true).like(packet.flow);
        let packet = Packet { flow: key, ..*packet };
        self.transport.accept(&packet, label, &mut self.out);
        key
    }

    /// A half has opened.
    fn watch(&mut self, key: FlowKey) {
        let Some(watch) = &mut self.watch else { return };
        let host = self.net.halves.host(key);
        if let Some((timer, at)) = watch.opens(key, host, self.net.now) {
            self.carry_out(Effect::Set(timer, at));
        }
    }

    /// A host looks for flows that are over: those of which it has heard nothing for long, although it has not
    /// all of them, and those that it cannot send, as its line is dead for long.
    pub(super) fn look_for_silence(&mut self, host: NodeId) {
        let Self { watch: Some(watch), net, .. } = self else { return };
        let (now, mut next) = (net.now, Time::NEVER);
        let mut over = Vec::new();
        for (key, name) in net.halves.open() {
            let owner = if key.is_receivers() { name.dst } else { name.src };
            if owner != host {
                continue;
            }
            match watch.ends(key, host) {
                end if end <= now => over.push((name, key)),
                end => next = next.min(end),
            }
        }
        if next < Time::NEVER
            && let Some((timer, at)) = watch.looks_again(host, next, now)
        {
            self.carry_out(Effect::Set(timer, at));
        }
        // By name, as places depend on the cut.
        over.sort_unstable();
        for (_, key) in over {
            match key.is_receivers() {
                true => self.break_off(key),
                false => self.give_up(key),
            }
        }
    }

    /// A fault begins or ends: the hosts whose lines it is about see that.
    pub(super) fn see_lines(&mut self, fault: u32) {
        for host in self.net.hosts_at(fault) {
            let Self { watch: Some(watch), net, .. } = self else { return };
            let nic = net.nics[host.index()];
            watch.line(host, net.ports[nic as usize].faults > 0, net.now);
            self.look_for_silence(host);
        }
    }

    /// A half has waited for an answer, and none has come.
    #[cold]
    pub(super) fn waits_in_vain(&mut self, key: FlowKey) {
        let now = self.net.now;
        let Some(watch) = self.watch.as_mut().filter(|_| self.net.halves.is_open(key)) else {
            return;
        };
        if !watch.is_hopeless(key, now) {
            return;
        }
        match key.is_receivers() {
            true => self.break_off(key),
            false => self.give_up(key),
        }
    }

    /// Whether a packet is of a flow that its hosts have forgotten as one of them died, or as no path leads
    /// from one to the other: as much as its destination can know by itself.
    pub(super) fn is_forgotten(&self, packet: &Packet) -> bool {
        if self.watch.is_some() {
            return false;
        }
        let name = Name::of(packet);
        let known = |host: NodeId| self.forgotten.get(host.index()).copied().unwrap_or(Time::ZERO);
        let is_old = packet.is_data() && packet.stamp < known(name.src).max(known(name.dst));
        is_old || self.is_lost(name)
    }

    /// Whether a flow can never complete, as is known by now.
    fn is_lost(&self, name: Name) -> bool {
        let src = Vertex::new(name.src.get());
        let is_unknown = self.net.is_dead(src) && self.net.live.vertices[src.index()];
        !is_unknown && self.hopeless(name.src, name.dst).is_some()
    }

    fn make_room(&mut self) {
        self.timers.grow(self.net.halves.places());
    }

    /// All of a flow is readable at its destination: that knows it, or its source does, where it moves the bytes by
    /// itself.
    pub(super) fn complete(&mut self, key: FlowKey) {
        if !key.is_receivers() {
            let (name, delivered) = (self.net.halves.name(key), self.net.halves.delivered(key));
            return self.report(What::Whole { name, delivered, journey: Journey::default() });
        }
        let receiver = self.net.halves.receiver_mut(key);
        assert!(!receiver.is_complete, "{:?} completes twice", receiver.name);
        receiver.is_complete = true;
        let (name, delivered, journey) = (receiver.name, receiver.delivered, receiver.journey);
        self.report(What::Whole { name, delivered, journey });
    }

    /// A half has nothing left to do.
    pub(super) fn close(&mut self, key: FlowKey) {
        self.leave(key);
        self.net.halves.close(key);
    }

    /// A half ends: nothing of it is left to the half that has its place next.
    fn leave(&mut self, key: FlowKey) {
        if key.is_receivers() {
            let receiver = self.net.halves.receiver(key);
            let (name, delivered) = (receiver.name, receiver.delivered);
            if !receiver.is_complete {
                self.report(What::Left { name, delivered });
            }
        }
        self.timers.forget_flow(key);
    }

    /// A half waits no longer, and what comes of its flow finds no half: the other will hear nothing, too.
    pub(super) fn break_off(&mut self, key: FlowKey) {
        self.out.set_now(self.net.now);
        self.transport.abandon(key, &mut self.out);
        self.leave(key);
        self.net.halves.break_off(key);
    }

    /// A half is forgotten by its host.
    fn abandon(&mut self, key: FlowKey) {
        self.out.set_now(self.net.now);
        self.transport.abandon(key, &mut self.out);
        self.close(key);
    }

    /// A sender sends no more of a flow.
    pub(super) fn give_up(&mut self, key: FlowKey) {
        let name = self.net.halves.name(key);
        self.report(What::GaveUp { name });
        self.abandon(key);
    }

    /// Why a flow does not begin: its source is dead, or knows that it can never complete.
    fn refuses(&self, from: NodeId, to: NodeId) -> Option<Failure> {
        match self.watch {
            None => self.hopeless(from, to),
            Some(_) => self.net.is_dead(Vertex::new(from.get())).then_some(Failure::SourceDied),
        }
    }

    /// Why a flow can never complete, as far as switches and hosts know: a host that has died knows it
    /// itself.
    fn hopeless(&self, from: NodeId, to: NodeId) -> Option<Failure> {
        let is_dead = self.net.is_dead(Vertex::new(from.get()));
        hopeless((from, to), is_dead, &self.net.live, &self.net.tables, self.net.is_settled())
    }

    /// A vertex has died. If it is a host its flows are lost with what it knew of them, even if it comes
    /// back. The other halves wait in vain; or, if an oracle tells, all are forgotten once routes have
    /// converged.
    pub(super) fn died(&mut self, vertex: Vertex) {
        if S::RUNS && self.net.owns(vertex) {
            self.tell_program_of_death(vertex);
        }
        if !self.net.plan.topology.is_host(vertex) {
            return;
        }
        self.empty_host(NodeId::new(vertex.get()));
        if self.watch.is_some() {
            return self.forget_all(NodeId::new(vertex.get()));
        }
        let known_at = self.net.now + self.net.plan.config.convergence;
        self.doomed.push_back((NodeId::new(vertex.get()), known_at));
    }

    /// A host has died: it knows nothing of its flows any more.
    fn forget_all(&mut self, node: NodeId) {
        if !self.net.owns(Vertex::new(node.get())) {
            return;
        }
        let open = self.net.halves.open().filter(|&(key, _)| self.net.halves.host(key) == node);
        let mut keys: Vec<_> = open.map(|(key, name)| (name, key)).collect();
        // By name, as places depend on the cut.
        keys.sort_unstable();
        keys.into_iter().for_each(|(_, key)| self.break_off(key));
        self.out.set_now(self.net.now);
        self.transport.died(node, &mut self.out);
    }

    /// An oracle tells what works of the network: hosts forget flows that can never complete.
    pub(super) fn tell_of_routes(&mut self) {
        self.out.set_now(self.net.now);
        self.transport.routes_changed(&self.net.live, &mut self.out);
        self.leave_out_others();
        self.abandon_doomed();
        self.abandon_unreachable();
    }

    /// It is known now that some hosts have died: flows from and to them are forgotten.
    fn abandon_doomed(&mut self) {
        while let Some(&(node, _)) =
            self.doomed.front().filter(|(_, known_at)| *known_at <= self.net.now)
        {
            self.doomed.pop_front();
            self.forgotten.resize(self.net.nics.len(), Time::ZERO);
            self.forgotten[node.index()] = self.net.now;
            self.abandon_all(|name| [name.src, name.dst].contains(&node));
        }
    }

    fn abandon_all(&mut self, is_meant: impl Fn(Name) -> bool) {
        let open = self.net.halves.open().filter(|&(_, name)| is_meant(name));
        let keys: Vec<_> = open.map(|(key, _)| key).collect();
        keys.into_iter().for_each(|key| self.abandon(key));
    }

    /// Routes are known anew: hosts forget flows to and from hosts that are dead, and if nothing more is to
    /// change those that no path leads to.
    fn abandon_unreachable(&mut self) {
        if !self.net.is_settled() && self.net.live.vertices.iter().all(|&works| works) {
            return;
        }
        let lost = self.net.halves.open().filter(|&(_, name)| self.is_lost(name));
        let keys: Vec<_> = lost.map(|(key, _)| key).collect();
        keys.into_iter().for_each(|key| self.abandon(key));
    }
}
