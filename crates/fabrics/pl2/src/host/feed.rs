//! Between the transport above and the lanes: what it wants done, and what it has to send.
//!
//! Models: PL2 §5 (claims M28, M29), which intercepts the calls that put a buffer on the wire. A send
//! call blocks while its thread has an exchange under way, so packets are taken from the transport
//! when an agent is free and not before: up to K for one destination, as many as there are at that
//! instant (our choice: nothing waits for a burst to fill).

use kernel::Time;
use packets::{Effect, Gate, Line, Outbox, Packet, Transport};
use rack::NodeId;

use super::bursts::{Agent, State};
use super::held::NONE;
use super::{ANSWER, Shim};
use crate::message::framed;
use crate::wire::Tag;

/// Whether the shim has a part in what the transport wants.
#[inline]
fn concerns(wish: &Effect) -> bool {
    match wish {
        Effect::Send(_) | Effect::Wake(_) | Effect::WakeAt(..) => true,
        Effect::Close(_) => true,
        Effect::Tell(..) | Effect::Set(..) | Effect::Cancel(_) | Effect::Delivered(..) => false,
        Effect::Complete(_) | Effect::Resent(_) | Effect::Held(_) | Effect::Unpack(_) => false,
        // Then the network abandons the flow.
        Effect::GiveUp(_) | Effect::InVain(_) => false,
    }
}

impl<T: Transport> Shim<T> {
    /// Does what is to be done until all is quiet.
    #[inline]
    pub(super) fn settle(&mut self, out: &mut Outbox) {
        self.relay(out);
        if !self.feeds.is_empty() || !self.calls.is_empty() {
            self.settle_all(out);
        }
    }

    #[inline(never)]
    fn settle_all(&mut self, out: &mut Outbox) {
        loop {
            if let Some(host) = self.feeds.pop() {
                self.feed(host, out);
            } else if let Some(agent) = self.calls.pop() {
                self.agents[agent as usize].is_called = false;
                self.begin(agent, out);
            } else {
                return;
            }
            self.relay(out);
        }
    }

    /// Calls the transport, and keeps what it wants if the shim has a part in it: as a rule it tells what
    /// was delivered, or sets a timer, and that stays in `out`.
    #[inline]
    pub(super) fn of_transport<R>(
        &mut self,
        out: &mut Outbox,
        call: impl FnOnce(&mut T, &mut Outbox) -> R,
    ) -> R {
        let before = out.len();
        let answer = call(&mut self.inner, out);
        out.divert(before, &mut self.wishes, concerns);
        answer
    }

    /// Carries out what the transport wants.
    #[inline]
    fn relay(&mut self, out: &mut Outbox) {
        if !self.wishes.is_empty() {
            self.relay_all(out);
        }
    }

    #[inline(never)]
    fn relay_all(&mut self, out: &mut Outbox) {
        for index in 0..self.wishes.len() {
            self.carry_out(self.wishes[index], out);
        }
        self.wishes.clear();
    }

    fn carry_out(&mut self, wish: Effect, out: &mut Outbox) {
        match wish {
            Effect::Send(packet) => self.accept(&packet, out),
            Effect::Wake(host) => self.feeds.push(host),
            Effect::WakeAt(host, at) => {
                let alarm = &mut self.alarms[host.index()];
                *alarm = at.min(*alarm);
                self.ask_for_pull_at(host, at, out);
            }
            Effect::Close(flow) => self.close(flow, out),
            other => out.pass_on(other),
        }
    }

    /// Takes packets from a host's transport, as long as an agent takes some.
    fn feed(&mut self, host: NodeId, out: &mut Outbox) {
        if self.outside.holds(host) {
            return out.wake(host);
        }
        while self.open[host.index()] > 0 {
            let before = out.len();
            let line = Line::at_gates(&self.ways, &self.gates);
            let packet = self.inner.pull(host, line, out);
            out.divert(before, &mut self.wishes, concerns);
            let Some(packet) = packet else { return };
            if !self.is_dead[host.index()] {
                let way = self.take_in(&packet, out);
                way.into_iter().for_each(|(agent, lane)| self.seat(agent, lane));
            }
        }
    }

    /// After a packet that an agent has pulled for another lane than the one whose turn it is: the rest is for the
    /// burst that comes next.
    #[inline]
    fn seat(&mut self, agent: u32, lane: u32) {
        if self.layout.width == 1 {
            return;
        }
        let entry = &mut self.agents[agent as usize];
        if entry.first != lane && entry.guest == NONE {
            entry.guest = lane;
        }
        if entry.is_open {
            self.gates[agent as usize] = Gate::of_lane(entry.first);
        }
    }

    /// Takes a packet that does not wait to be pulled.
    fn accept(&mut self, packet: &Packet, out: &mut Outbox) {
        if self.is_dead[packet.src.index()] {
            return;
        }
        if self.outside.holds(packet.src) {
            let (life, _) = self.hold(packet);
            self.outside.push(&mut self.held, packet, life);
            return out.wake(packet.src);
        }
        let _ = self.take_in(packet, out);
    }

    /// Takes note of a packet that will be held: the life of its flow, and the thread that sends it.
    #[inline]
    fn hold(&mut self, packet: &Packet) -> (u32, u32) {
        if packet.flow.is_closed() {
            return (ANSWER, self.idlest_thread(self.layout.hosts + packet.src.get()));
        }
        let known = self.known_mut(packet.flow);
        known.held += 1;
        (known.life, known.thread)
    }

    /// Puts a packet in its lane: of which agent, and which lane, if a slot is reserved for it.
    fn take_in(&mut self, packet: &Packet, out: &mut Outbox) -> Option<(u32, u32)> {
        if !self.is_reserved(packet) {
            let flow = match packet.flow.is_closed() {
                true => packet.flow,
                false => self.known(packet.flow).label,
            };
            self.send(framed(&Packet { flow, ..*packet }, Some(Tag::Unreserved)), out);
            return None;
        }
        let (life, thread) = self.hold(packet);
        let (agent, lane) = self.layout.way(packet.src, thread, packet.dst);
        self.held.push(&mut self.lanes[lane as usize].waiting, packet, life);
        let is_first = self.agents[agent as usize].first == NONE;
        self.list(agent, lane);
        self.narrow(agent, lane, is_first);
        self.call(agent);
        Some((agent, lane))
    }

    /// Gives a lane a turn, unless it has one.
    #[inline]
    pub(super) fn list(&mut self, agent: u32, lane: u32) {
        let entry = &mut self.lanes[lane as usize];
        if entry.is_listed {
            return;
        }
        entry.is_listed = true;
        entry.next = NONE;
        let agent = &mut self.agents[agent as usize];
        match agent.last {
            NONE => agent.first = lane,
            last => self.lanes[last as usize].next = lane,
        }
        agent.last = lane;
    }

    /// Takes the lane whose turn it is.
    #[inline]
    pub(super) fn next_lane(&mut self, agent: u32) -> Option<u32> {
        let agent = &mut self.agents[agent as usize];
        if agent.first == NONE {
            return None;
        }
        let lane = agent.first;
        let entry = &mut self.lanes[lane as usize];
        entry.is_listed = false;
        agent.first = entry.next;
        if agent.first == NONE {
            agent.last = NONE;
        }
        Some(lane)
    }

    /// After a packet: the burst is for its destination alone, and is full with K.
    #[inline]
    fn narrow(&mut self, agent: u32, lane: u32, is_first: bool) {
        if !self.agents[agent as usize].is_open {
            return;
        }
        if is_first && self.layout.width > 1 {
            self.gates[agent as usize] = Gate::of_lane(lane);
        }
        let front = self.agents[agent as usize].first;
        if self.lanes[front as usize].waiting.count >= self.rules.burst_packets {
            self.shut(agent);
        }
    }

    /// The agent takes no packets from the transport.
    #[inline]
    pub(super) fn shut(&mut self, agent: u32) {
        let entry = &mut self.agents[agent as usize];
        if std::mem::replace(&mut entry.is_open, false) {
            self.gates[agent as usize] = Gate::SHUT;
            self.open[entry.host.index()] -= 1;
        }
    }

    /// The agent takes packets from the transport: for the destination whose turn it is, if there is
    /// one, and one for another that then waits for its turn. Otherwise a thread that always has answers to send would
    /// never get to its data.
    #[inline]
    pub(super) fn open(&mut self, agent: u32) {
        let Agent { first: front, guest, .. } = self.agents[agent as usize];
        self.gates[agent as usize] = match front {
            NONE => Gate::OPEN,
            _ if guest == NONE && self.layout.width > 1 => Gate::OPEN,
            _ if self.lanes[front as usize].waiting.count >= self.rules.burst_packets => return,
            _ => Gate::of_lane(front),
        };
        let entry = &mut self.agents[agent as usize];
        entry.is_open = true;
        self.open[entry.host.index()] += 1;
    }

    /// Lets an idle agent be looked at once all else is done.
    #[inline]
    pub(super) fn call(&mut self, agent: u32) {
        let entry = &mut self.agents[agent as usize];
        if entry.state == State::Idle && !std::mem::replace(&mut entry.is_called, true) {
            self.calls.push(agent);
        }
    }

    /// Forgets all that a dead host was about to do.
    pub(super) fn reset_host(&mut self, host: NodeId, out: &mut Outbox) {
        let passages: Vec<_> = self.nics[host.index()].clear().collect();
        for passage in passages {
            let burst = &mut self.bursts[passage.burst as usize];
            burst.passages -= 1;
            if burst.passages == 0 && burst.is_settled {
                let agent = burst.agent as usize;
                if self.agents[agent].burst == passage.burst {
                    self.agents[agent].burst = NONE;
                }
                self.free(passage.burst, out);
            }
        }
        for agent in self.layout.agents_of(host) {
            let burst = std::mem::replace(&mut self.agents[agent as usize].burst, NONE);
            if burst != NONE {
                self.free(burst, out);
            }
            while let Some(lane) = self.next_lane(agent) {
                let mut waiting = self.lanes[lane as usize].waiting;
                self.let_go(&mut waiting, out);
                self.lanes[lane as usize].waiting = waiting;
            }
            let entry = &mut self.agents[agent as usize];
            (entry.state, entry.repeats, entry.guest) = (State::Idle, 0, NONE);
            if !entry.is_open {
                self.open(agent);
            }
        }
        self.alarms[host.index()] = Time::NEVER;
        self.tracking.forget(host);
        self.books.forget(host);
    }
}
