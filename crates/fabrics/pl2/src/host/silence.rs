//! Destinations that do not answer: how hosts find out by themselves that one is out of reach.
//!
//! Models: our answer to §4.5 (claim M31), which leaves failures to "external detection". The switch answers every
//! reservation as long as it knows a way to the destination. Where something fails and no oracle tells of it, a
//! host that has asked for a burst four times, and has no answer, takes the lane to be silent: it drops the burst,
//! as a line drops what cannot go on, and those that follow; a thread that went on asking would hold up its flows
//! to all others. Now and then one burst is asked for, once, and any answer ends the silence. The
//! transport retransmits what it needs, or gives up after its time-outs ([`packets::config::Failures`]).
//!
//! A reservation that has not left because the host's own line is dead cannot be answered: it waits for the line.

use kernel::Time;
use packets::{Outbox, Packet, Transport};
use rack::NodeId;

use super::Shim;
use super::bursts::Agent;
use super::exchange::DOUBLINGS_MAX;
use super::held::{NONE, Note};
use crate::message::Message;
use crate::wire::Opcode;
use crate::wire::tag::THREADS_MAX;

/// Reservations of a burst that are retransmitted before its lane is taken to be silent (our choice: with the usual
/// patience four go unanswered in 1 ms, as long as the switch takes to know of a failure by default).
const REPEATS_MAX: u8 = 3;
/// A lane is not taken to be silent before so many of the longest exchanges have passed, however short the patience
/// (our choice).
const EXCHANGES: u64 = 4;

impl<T: Transport> Shim<T> {
    /// Whether something fails, and hosts find out by themselves.
    #[inline]
    pub(super) fn hosts_watch(&self) -> bool {
        !self.heard_last.is_empty()
    }

    /// The reservation of a host's burst of this number is answered, in time or not: the lane is not silent.
    pub(super) fn answers(&mut self, host: NodeId, dst: NodeId, number: u32) {
        let local = number & (THREADS_MAX - 1);
        if self.hosts_watch() && local < self.layout.agents {
            let lane = self.layout.lane(host, local, dst);
            self.lanes[lane as usize].is_silent = false;
        }
    }

    /// Whether a burst is dropped unasked: its lane is silent, and was asked for not long ago.
    #[inline]
    pub(super) fn is_silent(&self, lane: u32, now: Time) -> bool {
        let lane = &self.lanes[lane as usize];
        lane.is_silent && now < lane.last_response + self.rules.patience * (1 << DOUBLINGS_MAX)
    }

    /// No grant has come for the burst of an agent: it asks again, or takes the lane to be silent.
    pub(super) fn ask_again_or_drop(&mut self, agent: u32, out: &mut Outbox) {
        let Agent { host, burst: place, repeats, since, .. } = self.agents[agent as usize];
        if self.nics[host.index()].holds_control() {
            // The line is dead: all that is worth a wait is given up in time, or goes once it works.
            if self.is_dispensable_burst(place) {
                return self.give_up(agent, out);
            }
            let pause = self.rules.patience * (1 << DOUBLINGS_MAX);
            self.agents[agent as usize].deadline = out.now() + pause;
            return;
        }
        let has_waited = out.now() >= since + self.rules.longest_exchange * EXCHANGES;
        let lane = &mut self.lanes[self.bursts[place as usize].lane as usize];
        if !lane.is_silent && (repeats < REPEATS_MAX || !has_waited) {
            return self.ask_again(agent, out);
        }
        (lane.is_silent, lane.last_chosen, lane.last_response) = (true, NONE, out.now());
        self.drop_burst(agent, out);
    }

    /// A burst for a destination that does not answer is dropped. That takes its agent as long as the line would,
    /// if all agents of the host sent there.
    pub(super) fn drop_burst(&mut self, agent: u32, out: &mut Outbox) {
        let place = self.agents[agent as usize].burst;
        self.counts.unanswered += 1;
        self.waits_in_vain(place, out);
        let burst = &mut self.bursts[place as usize];
        burst.is_settled = true;
        let time = self.rules.line_rate.send_time(burst.size) * u64::from(self.layout.agents);
        if burst.passages == 0 {
            self.free(place, out);
        }
        self.finish(agent, out.now() + time, out);
    }

    /// No reservation of a burst was answered: its flows wait for an answer, as they do where their transport
    /// has sent all that it may.
    fn waits_in_vain(&self, place: u32, out: &mut Outbox) {
        for slot in self.held.iter(self.bursts[place as usize].packets) {
            let Note { flow, life, .. } = self.held.note(slot);
            if !flow.is_closed() && !flow.is_receivers() && !self.is_over(flow, life) {
                out.in_vain(flow);
            }
        }
    }

    /// The next frame that goes before all bursts. What a host has asked for while its line was dead, and has
    /// dropped since, it does not ask for.
    #[inline]
    pub(super) fn next_control(&mut self, host: NodeId) -> Option<Packet> {
        while let Some(packet) = self.nics[host.index()].next_control() {
            let is_wanted = |message: Message| {
                message.opcode != Opcode::Reserve || self.asking(host, message.burst).is_some()
            };
            if !self.hosts_watch() || Message::of(&packet).is_none_or(is_wanted) {
                return Some(packet);
            }
            self.counts.reservations -= 1;
        }
        None
    }
}
