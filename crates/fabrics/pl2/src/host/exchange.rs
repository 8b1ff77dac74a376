//! A burst's way from its lane to the line: Algorithm 2.
//!
//! Models: PL2 §4.2.1, §4.4, §5 (claims M19 to M24, M28). Where the paper's lines leave gaps:
//!
//! - What is known of a port is known of a lane: the paper keeps one `lastChosenTimeslot`, which holds
//!   "when senders send consecutive bursts to the same destination".
//! - Line 17 asks whether the slot before was below t; here whether this burst went unsolicited, for one
//!   that did not because the slot was known too long ago would be sent twice.
//! - A burst that is retransmitted says whether the switch has counted its first copy, as far as its grant
//!   tells (M13).
//! - A grant that does not come is asked for again; one that comes when nobody waits is given back.
//!   A destination that does not answer at all is another matter ([`super::silence`]).

use kernel::{Bytes, Span, Time};
use packets::{FlowKey, Kind, Outbox, Packet, Transport};
use rack::NodeId;

use super::books::Holding;
use super::bursts::{Agent, Burst, State};
use super::held::{NONE, Note};
use super::nic::{Passage, Role};
use super::wait::{chosen, waiting};
use super::{Shim, framed_size};
use crate::config::{GrantHandling, Pending, Scheduling, TimeStamps};
use crate::message;
use crate::message::{Message, framed};
use crate::wire::tag::{BURSTS, Place, THREADS_MAX};
use crate::wire::{Flags, Opcode, Tag};

/// Bits of a burst's number that name the agent.
const AGENT_BITS: u32 = THREADS_MAX.ilog2();
/// Most times that the wait for a grant is doubled (our choice: 4 ms with the usual patience).
pub(super) const DOUBLINGS_MAX: u8 = 6;

impl<T: Transport> Shim<T> {
    /// An idle agent makes a burst of what its next lane holds (Alg. 2, `scheduleBurst`).
    #[inline]
    pub(super) fn begin(&mut self, agent: u32, out: &mut Outbox) {
        if self.agents[agent as usize].state != State::Idle {
            return;
        }
        let Some(lane) = self.next_lane(agent) else { return };
        self.shut(agent);
        let guest = &mut self.agents[agent as usize].guest;
        if *guest == lane {
            *guest = NONE;
        }
        let waiting = &mut self.lanes[lane as usize].waiting;
        let packets = self.held.split(waiting, self.rules.burst_packets);
        if waiting.count > 0 {
            self.list(agent, lane);
        }
        let sizes = || self.held.iter(packets).map(|slot| self.held.note(slot).size);
        let size = sizes().map(framed_size).sum::<Bytes>();
        let work = self.rules.host.work(Bytes::new(sizes().map(u64::from).sum()));
        let burst = self.bursts.insert(Burst {
            packets,
            size,
            agent,
            lane,
            dst: self.layout.destination(lane),
            number: 0,
            passages: 0,
            is_settled: false,
            was_unsolicited: false,
            holding: Holding::NONE,
        });
        self.counts.bursts += 1;
        self.counts.packets += u64::from(packets.count);
        let host = self.agents[agent as usize].host;
        let delay = self.delays.draw(&mut self.chance[host.index()]);
        let at = self.take_turn(host, out.now() + delay);
        let entry = &mut self.agents[agent as usize];
        entry.state = State::Preparing;
        entry.burst = burst;
        entry.work = work;
        entry.sequence = entry.sequence.wrapping_add(1);
        entry.since = out.now();
        if at == out.now() {
            return self.ask(agent, at, out);
        }
        entry.deadline = at;
        self.nics[host.index()].push_ask(at, agent);
        self.ask_for_pull_at(host, at, out);
        self.free_if_in_vain(agent, out);
    }

    /// When a thread that would make a reservation at `at` does, as those of its host take turns at that work.
    fn take_turn(&mut self, host: NodeId, at: Time) -> Time {
        let cost = self.rules.host.exchange_cost;
        if cost == Span::ZERO || self.rules.scheduling == Scheduling::None {
            return at;
        }
        let turn = &mut self.turns[host.index()];
        let at = at.max(*turn);
        *turn = at + cost;
        at
    }

    /// A reservation that turns out to be useless leaves the agent free at its instant, and not when the
    /// line asks for the next packet.
    pub(super) fn free_if_in_vain(&mut self, agent: u32, out: &mut Outbox) {
        let Agent { state, burst, deadline, .. } = self.agents[agent as usize];
        if state == State::Preparing && self.is_in_vain(burst) {
            out.set_timer(self.timer_of(agent), deadline);
        }
    }

    /// Sends reservations whose instant has come: before anything else that a host does.
    #[inline]
    pub(super) fn send_ripe_asks(&mut self, host: NodeId, out: &mut Outbox) {
        if self.nics[host.index()].is_ripe(out.now()) {
            self.send_asks(host, out);
        }
    }

    #[inline(never)]
    fn send_asks(&mut self, host: NodeId, out: &mut Outbox) {
        while let Some((at, agent)) = self.nics[host.index()].ripe_ask(out.now()) {
            self.ask(agent, at, out);
        }
    }

    /// Sends the reservation that has come to the NIC at `at`, and behind it the burst, if it may go
    /// unsolicited (Alg. 2, lines 7 to 9).
    fn ask(&mut self, agent: u32, at: Time, out: &mut Outbox) {
        let place = self.agents[agent as usize].burst;
        if self.is_in_vain(place) {
            return self.give_up(agent, out);
        }
        if self.rules.scheduling == Scheduling::None {
            return self.send_unasked(agent, at, out);
        }
        let lane = self.bursts[place as usize].lane;
        if self.is_silent(lane, at) {
            return self.drop_burst(agent, out);
        }
        let is_unsolicited = self.may_go_unsolicited(lane, at);
        let stamp = self.agents[agent as usize].since;
        self.reserve(agent, is_unsolicited, stamp, at, out);
        if is_unsolicited {
            let number = self.lanes[lane as usize].number;
            self.lanes[lane as usize].number = (number + 1) % BURSTS;
            let burst = &mut self.bursts[place as usize];
            (burst.number, burst.was_unsolicited) = (number, true);
            self.counts.unsolicited += 1;
            self.depart(place, at, Role::Unsolicited, out);
        }
    }

    /// Sends a burst as it comes; its thread goes on when it has left.
    fn send_unasked(&mut self, agent: u32, at: Time, out: &mut Outbox) {
        let entry = &mut self.agents[agent as usize];
        (entry.state, entry.since) = (State::Leaving, at);
        let place = entry.burst;
        self.bursts[place as usize].is_settled = true;
        self.depart(place, at, Role::Unasked, out);
    }

    /// M23: the slot chosen last at this lane was below t, and is known since a short time.
    fn may_go_unsolicited(&self, lane: u32, now: Time) -> bool {
        let lane = &self.lanes[lane as usize];
        let is_current = now <= lane.last_response + self.rules.unsolicited_age;
        is_current && lane.last_chosen < self.rules.unsolicited_below
    }

    /// Sends a reservation (RSV) at `at`, which is now or shortly before, and waits for its grant.
    fn reserve(
        &mut self,
        agent: u32,
        is_unsolicited: bool,
        stamp: Time,
        at: Time,
        out: &mut Outbox,
    ) {
        let entry = &mut self.agents[agent as usize];
        let host = entry.host;
        let burst = &self.bursts[entry.burst as usize];
        let reservation = Message {
            opcode: Opcode::Reserve,
            flags: Flags { is_unsolicited, is_crowded: false },
            demand: burst.packets.count as u16,
            burst: entry.sequence << AGENT_BITS | self.layout.local(agent),
            send_slot: 0,
            receive_slot: 0,
            pair_slots: 0,
            stamp,
        };
        entry.state = State::Asking;
        let patience = self.rules.patience * (1 << entry.repeats.min(DOUBLINGS_MAX));
        let deadline = at + patience;
        entry.deadline = deadline;
        self.counts.reservations += 1;
        self.nics[host.index()].push_control(reservation.packet(host, burst.dst));
        self.ask_for_pull(host, out);
        if deadline < self.looks[host.index()] {
            self.look_at(host, deadline.max(out.now()), out);
        }
    }

    /// A grant has come (Alg. 2, `receiveGRT`).
    pub(super) fn granted(
        &mut self,
        host: NodeId,
        packet: &Packet,
        grant: Message,
        out: &mut Outbox,
    ) {
        self.send_ripe_asks(host, out);
        self.counts.grants += 1;
        self.answers(host, packet.src, grant.burst);
        let Some(agent) = self.asking(host, grant.burst) else {
            self.counts.grants_late += 1;
            // What a burst behind its reservation has used is not there to be given back.
            if !grant.flags.is_unsolicited || self.was_dropped(grant) {
                self.give_back(host, host, packet.src, grant.demand.into(), out);
            }
            return;
        };
        let Agent { since, burst: place, .. } = self.agents[agent as usize];
        let delay = self.delays.draw(&mut self.chance[host.index()]);
        let read_at = out.now() + delay;
        let slot = chosen(grant.send_slot, grant.receive_slot);
        let exchange = read_at - grant.stamp;
        self.counts.exchange.record((read_at - since).as_ps());
        self.counts.chosen.record(slot.into());
        if self.books.are_kept() {
            self.give_back_what_leaked((host, packet.src), place, grant, out);
        }
        let burst = &mut self.bursts[place as usize];
        burst.is_settled = true;
        let lane = &mut self.lanes[burst.lane as usize];
        (lane.last_chosen, lane.last_response) = (slot, read_at);
        let role = self.role_after(place, slot, grant);
        if self.books.are_kept() {
            self.settle_holding((host, packet.src), place, role);
        }
        if let Some(role) = role {
            let pending = match self.rules.host.pending {
                // What would remain after the wait makes the burst late, and no wait less than none
                // mends that.
                Pending::Remaining => Span::ZERO,
                Pending::AtGrant => {
                    self.rules.line_rate.send_time(self.nics[host.index()].pending())
                }
            };
            let wait = waiting(slot, self.rules.unit, exchange, pending);
            let delay = self.delays.draw(&mut self.chance[host.index()]);
            self.depart(place, read_at + wait + delay, role, out);
        }
        let is_out = self.bursts[place as usize].passages == 0;
        if is_out {
            self.free(place, out);
        }
        match self.rules.handling {
            GrantHandling::SameThread if !is_out => {
                let entry = &mut self.agents[agent as usize];
                (entry.state, entry.since) = (State::Leaving, read_at);
            }
            _ => self.finish(agent, read_at, out),
        }
    }

    /// The agent of a host that has sent the reservation of this number and waits for its grant.
    #[inline]
    pub(super) fn asking(&self, host: NodeId, number: u32) -> Option<u32> {
        let local = number & (THREADS_MAX - 1);
        if local >= self.layout.agents {
            return None;
        }
        let agent = self.layout.agents_of(host).start + local;
        let Agent { state, sequence, .. } = self.agents[agent as usize];
        let is_it = state == State::Asking && sequence << AGENT_BITS | local == number;
        is_it.then_some(agent)
    }

    /// How a burst goes after its grant; `None`: it has gone (Alg. 2, lines 12 and 16 to 20).
    fn role_after(&mut self, place: u32, slot: u32, grant: Message) -> Option<Role> {
        if !self.bursts[place as usize].was_unsolicited {
            return Some(Role::Solicited);
        }
        if slot <= self.rules.unsolicited_below && !grant.flags.is_crowded {
            return None;
        }
        if self.was_dropped(grant) {
            self.counts.again += 1;
            return Some(Role::Again);
        }
        if self.is_nobodys(place) {
            return None;
        }
        self.counts.again_uncounted += 1;
        Some(Role::AgainUncounted)
    }

    /// M13: whether the switch has dropped the packets behind a reservation, for all that its grant tells:
    /// they found at the output what was there before, their own slots, and what others had reserved or
    /// used in between, which no message says. Near T that makes it an estimate.
    fn was_dropped(&self, grant: Message) -> bool {
        let own = u32::from(grant.demand) * self.rules.increment;
        grant.flags.is_crowded || grant.receive_slot.saturating_add(own) > self.rules.drop_above
    }

    /// Whether the flows of all packets of a burst are over.
    fn is_nobodys(&self, place: u32) -> bool {
        let mut slots = self.held.iter(self.bursts[place as usize].packets);
        slots.all(|slot| {
            let Note { flow, life, .. } = self.held.note(slot);
            self.is_over(flow, life)
        })
    }

    /// Whether no packet of a burst is worth asking for ever.
    pub(super) fn is_dispensable_burst(&self, place: u32) -> bool {
        let mut slots = self.held.iter(self.bursts[place as usize].packets);
        slots.all(|slot| {
            let Note { flow, life, .. } = self.held.note(slot);
            self.is_dispensable(flow, life)
        })
    }

    /// Whether nobody waits for a burst, or its destination is dead.
    fn is_in_vain(&self, place: u32) -> bool {
        let dst = self.bursts[place as usize].dst;
        self.is_dead[dst.index()] || self.is_nobodys(place)
    }

    /// Lets a burst go at `at`.
    fn depart(&mut self, place: u32, at: Time, role: Role, out: &mut Outbox) {
        let burst = &mut self.bursts[place as usize];
        burst.passages += 1;
        let host = self.agents[burst.agent as usize].host;
        let packets = burst.packets;
        let passage = Passage { burst: place, next: packets.head, left: packets.count, role };
        if at <= out.now() {
            self.held.prefetch(passage.next);
            self.nics[host.index()].push(passage, burst.size);
            self.ask_for_pull(host, out);
        } else {
            self.nics[host.index()].push_at(at, passage);
            self.ask_for_pull_at(host, at, out);
        }
    }

    /// The next packet for the line of a host.
    #[inline]
    pub(super) fn next_packet(&mut self, host: NodeId, out: &mut Outbox) -> Option<Packet> {
        self.send_ripe_asks(host, out);
        if let Some(mut packet) = self.next_control(host) {
            if packet.kind == message::KIND && self.rules.host.time_stamps == TimeStamps::Hardware {
                packet.stamp = out.now();
            }
            if self.books.are_kept() {
                self.note_control(host, &packet, out.now());
            }
            return Some(packet);
        }
        let nic = &mut self.nics[host.index()];
        if nic.is_ripe(out.now()) {
            while let Some(passage) = nic.ripe_burst(out.now()) {
                self.held.prefetch(passage.next);
                nic.push(passage, self.bursts[passage.burst as usize].size);
            }
        }
        let passage = nic.front()?;
        let Passage { burst: place, next: slot, left, role } = *passage;
        let Note { next, flow, life, size } = self.held.note(slot);
        passage.next = next;
        passage.left -= 1;
        let is_last = passage.left == 0;
        self.held.prefetch(next);
        let packet = self.held.get(slot);
        let mut framed = match role {
            Role::Solicited | Role::Unasked => framed(packet, None),
            _ => framed(packet, self.tag(place, left, role)),
        };
        if self.is_over(flow, life) {
            // Its flow is over, and the slot is still to be used: it goes for nobody.
            self.counts.orphans += 1;
            (framed.flow, framed.kind, framed.payload) = (FlowKey::NEIGHBOURS, Kind::DATA, 0);
        }
        if self.books.are_kept() {
            let pair = (host, framed.dst);
            match role {
                Role::Solicited | Role::Again => self.books.used(pair),
                Role::Unsolicited => {
                    self.books.went_unsolicited(pair, &mut self.bursts[place as usize].holding);
                }
                Role::AgainUncounted | Role::Unasked => {}
            }
        }
        self.nics[host.index()].sent(framed_size(size), is_last);
        if is_last {
            self.passed(place, out);
        }
        Some(framed)
    }

    /// What a packet says of its burst, of which `left` are to go with it.
    #[inline(never)]
    fn tag(&self, place: u32, left: u32, role: Role) -> Option<Tag> {
        let burst = &self.bursts[place as usize];
        let thread = if self.layout.width == 1 { 0 } else { self.layout.local(burst.agent) };
        let index = (burst.packets.count - left) as u8;
        let place = Place { thread: thread as u8, burst: burst.number, index };
        match role {
            Role::Solicited | Role::Unasked => None,
            Role::Unsolicited => Some(Tag::Unsolicited(place)),
            Role::Again => Some(Tag::Again(place)),
            Role::AgainUncounted => Some(Tag::AgainUncounted(place)),
        }
    }

    /// A burst has gone out.
    fn passed(&mut self, place: u32, out: &mut Outbox) {
        let burst = &mut self.bursts[place as usize];
        burst.passages -= 1;
        if burst.passages > 0 || !burst.is_settled {
            return;
        }
        let agent = burst.agent;
        self.free(place, out);
        let entry = self.agents[agent as usize];
        if entry.state == State::Leaving && entry.burst == place {
            self.finish(agent, entry.since, out);
        }
    }

    /// Forgets a burst.
    pub(super) fn free(&mut self, place: u32, out: &mut Outbox) {
        let Burst { agent, dst, mut holding, mut packets, .. } = self.bursts[place as usize];
        if !holding.is_empty() {
            let pair = (self.agents[agent as usize].host, dst);
            self.books.forgotten(pair, &mut holding);
        }
        self.let_go(&mut packets, out);
        self.bursts.release(place);
    }

    /// The agent has done with its burst at `at`; then it has its own work (M28, M39).
    pub(super) fn finish(&mut self, agent: u32, at: Time, out: &mut Outbox) {
        let entry = &mut self.agents[agent as usize];
        let until = at.max(out.now()) + entry.work;
        (entry.burst, entry.repeats) = (NONE, 0);
        if until > out.now() {
            entry.state = State::Resting;
            out.set_timer(self.timer_of(agent), until);
        } else {
            self.idle(agent);
        }
    }

    /// The agent has time for another burst.
    fn idle(&mut self, agent: u32) {
        self.agents[agent as usize].state = State::Idle;
        self.open(agent);
        self.feeds.push(self.agents[agent as usize].host);
        if self.agents[agent as usize].first != NONE {
            self.call(agent);
        }
    }

    /// An agent's timer has fired.
    pub(super) fn agent_timer(&mut self, agent: u32, out: &mut Outbox) {
        match self.agents[agent as usize].state {
            State::Preparing => self.send_ripe_asks(self.agents[agent as usize].host, out),
            State::Resting => self.idle(agent),
            // A host that died has forgotten what it was about.
            State::Asking | State::Leaving | State::Idle => (),
        }
    }

    /// A host looks for grants that do not come: one timer for all of its agents.
    pub(super) fn watch(&mut self, host: NodeId, out: &mut Outbox) {
        let mut next = Time::NEVER;
        for agent in self.layout.agents_of(host) {
            let entry = &self.agents[agent as usize];
            if entry.state == State::Asking && entry.deadline <= out.now() {
                self.repeat(agent, out);
            }
            let entry = &self.agents[agent as usize];
            if entry.state == State::Asking {
                next = next.min(entry.deadline);
            }
        }
        self.looks[host.index()] = Time::NEVER;
        if next < Time::NEVER {
            self.look_at(host, next, out);
        }
    }

    /// A host looks for grants that do not come at `at`.
    fn look_at(&mut self, host: NodeId, at: Time, out: &mut Outbox) {
        self.looks[host.index()] = at;
        out.set_timer(self.timer_of_watch(host), at);
    }

    /// No grant has come: the reservation or the grant got lost.
    fn repeat(&mut self, agent: u32, out: &mut Outbox) {
        let place = self.agents[agent as usize].burst;
        let has_waited_long = self.agents[agent as usize].repeats >= DOUBLINGS_MAX;
        if self.is_in_vain(place) || (has_waited_long && self.is_dispensable_burst(place)) {
            return self.give_up(agent, out);
        }
        if self.hosts_watch() {
            return self.ask_again_or_drop(agent, out);
        }
        self.ask_again(agent, out);
    }

    /// Asks for the burst of an agent again.
    pub(super) fn ask_again(&mut self, agent: u32, out: &mut Outbox) {
        let entry = &mut self.agents[agent as usize];
        entry.repeats = entry.repeats.saturating_add(1);
        self.counts.repeats += 1;
        // No burst follows this one, whether one followed the first or not.
        self.reserve(agent, false, out.now(), out.now(), out);
    }

    /// Nobody wants an agent's burst any more, and no slots are known to be granted to it.
    pub(super) fn give_up(&mut self, agent: u32, out: &mut Outbox) {
        let place = self.agents[agent as usize].burst;
        self.bursts[place as usize].is_settled = true;
        if self.bursts[place as usize].passages == 0 {
            self.free(place, out);
        }
        self.finish(agent, out.now(), out);
    }

    /// What is held is in lanes and bursts, and what goes out is in bursts.
    pub(super) fn check_bursts(&self) -> Result<(), String> {
        let agents = self.agents.iter().filter(|agent| agent.burst != NONE);
        for agent in agents {
            let count = self.bursts[agent.burst as usize].packets.count;
            if !(1..=self.rules.burst_packets).contains(&count) {
                return Err(format!("a burst of {count} packets: {agent:?}"));
            }
        }
        if let Some(agent) = self.agents.iter().find(|a| a.state == State::Idle && a.burst != NONE)
        {
            return Err(format!("an idle agent with a burst: {agent:?}"));
        }
        if self.bursts.live() == 0 && self.books.held() > 0 {
            return Err(format!("{} slots held without a burst", self.books.held()));
        }
        let waiting: u64 = self.lanes.iter().map(|lane| u64::from(lane.waiting.count)).sum();
        let passages: usize = self.nics.iter().map(super::Nic::count).sum();
        let held = self.held.live() as u64;
        let is_quiet = self.bursts.live() == 0 && passages == 0;
        let outside = self.outside.waiting();
        if held < waiting + outside || (is_quiet && held != waiting + outside) {
            return Err(format!("{held} packets held, {waiting} in lanes, {outside} outside"));
        }
        Ok(())
    }
}
