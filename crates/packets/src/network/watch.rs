//! How hosts find out by themselves that nothing comes of a flow any more.
//!
//! Where nothing can fail all halves end by what they hear, and no watch is kept. Where something can, and no
//! oracle tells of it, a half whose time-outs go unanswered for a stated time is closed
//! ([`crate::config::Failures`]), and so is a receiver's half that has nothing to ask for, after a stated silence.
//! A host sees whether its own line works: while that is dead, each of its senders counts as unanswered, even
//! one whose transport has not sent anything yet.

use kernel::Time;
use rack::NodeId;

use crate::config::Failures;
use crate::packet::FlowKey;
use crate::transport::{Timer, Timers};

/// A host looks for flows that are over no more often than so many times in a silence, or while a line is dead
/// in a patience (our choice).
const LOOKS: u64 = 4;

/// What a half has heard.
#[derive(Clone, Copy, Debug)]
struct Heard {
    /// When the last packet came for it, or it opened.
    last: Time,
    /// Its first wait in vain since then; `NEVER`: none.
    vain_since: Time,
}

/// What a host does besides what its transport does.
#[derive(Clone, Copy, Debug)]
struct Host {
    /// When it looks for flows that are over; `NEVER`: its timer is not set.
    looks_at: Time,
    /// Since when its line is dead; `NEVER`: it works.
    dead_since: Time,
}

/// The halves of some hosts, as they wait.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    config: Failures,
    /// The number of the timer that each host has besides those of its transport.
    timer: u8,
    hosts: Vec<Host>,
    /// By place: senders and receivers.
    heard: [Vec<Heard>; 2],
}

impl Watch {
    /// Watches beside a transport that has `timers`, to which it adds one.
    pub(super) fn new(config: Failures, hosts: u32, timers: &mut Timers) -> Self {
        timers.host += 1;
        let host = Host { looks_at: Time::NEVER, dead_since: Time::NEVER };
        let hosts = vec![host; hosts as usize];
        Self { config, timer: timers.host - 1, hosts, heard: [Vec::new(), Vec::new()] }
    }

    fn heard(&mut self, key: FlowKey) -> &mut Heard {
        &mut self.heard[usize::from(key.is_receivers())][key.index()]
    }

    /// A half opens at `host`. Gives the timer that it needs, with its instant, if that is not set.
    pub(super) fn opens(&mut self, key: FlowKey, host: NodeId, now: Time) -> Option<(Timer, Time)> {
        let list = &mut self.heard[usize::from(key.is_receivers())];
        let heard = Heard { last: now, vain_since: Time::NEVER };
        if list.len() <= key.index() {
            list.resize(key.index() + 1, heard);
        }
        list[key.index()] = heard;
        let end = self.ends(key, host);
        (end < self.hosts[host.index()].looks_at).then(|| self.look(host, end))
    }

    /// A packet has come for a half.
    pub(super) fn hears(&mut self, key: FlowKey, now: Time) {
        *self.heard(key) = Heard { last: now, vain_since: Time::NEVER };
    }

    /// A half has waited in vain: whether it has for too long.
    pub(super) fn is_hopeless(&mut self, key: FlowKey, now: Time) -> bool {
        let patience = self.config.patience;
        let since = &mut self.heard(key).vain_since;
        *since = (*since).min(now);
        now >= *since + patience
    }

    /// The line of a host dies, or works again.
    pub(super) fn line(&mut self, host: NodeId, is_dead: bool, now: Time) {
        let since = &mut self.hosts[host.index()].dead_since;
        *since = if is_dead { now.min(*since) } else { Time::NEVER };
    }

    /// The host that is to look for flows that are over, if it is that that a timer means.
    pub(super) fn host_of(&mut self, timer: Timer) -> Option<NodeId> {
        let Timer::Host(host, number) = timer else { return None };
        if number != self.timer {
            return None;
        }
        self.hosts[host.index()].looks_at = Time::NEVER;
        Some(host)
    }

    /// When a half of `host` will be over, if nothing comes: a receiver's that has been silent for too long, or a
    /// sender's whose line has been dead for too long. `NEVER`: it tells by itself when it waits in vain.
    pub(super) fn ends(&mut self, key: FlowKey, host: NodeId) -> Time {
        let Failures { patience, silence, .. } = self.config;
        let (last, dead_since) = (self.heard(key).last, self.hosts[host.index()].dead_since);
        match (key.is_receivers(), dead_since) {
            (true, _) => last + silence,
            (false, Time::NEVER) => Time::NEVER,
            (false, since) => last.max(since) + patience,
        }
    }

    /// When a host looks again, of whose halves the first will be over at `end`; none if it will sooner.
    pub(super) fn looks_again(
        &mut self,
        host: NodeId,
        end: Time,
        now: Time,
    ) -> Option<(Timer, Time)> {
        let Failures { patience, silence, .. } = self.config;
        let Host { looks_at, dead_since } = self.hosts[host.index()];
        let pause = if dead_since == Time::NEVER { silence } else { patience };
        let at = end.max(now + pause / LOOKS);
        (at < looks_at).then(|| self.look(host, at))
    }

    fn look(&mut self, host: NodeId, at: Time) -> (Timer, Time) {
        self.hosts[host.index()].looks_at = at;
        (Timer::Host(host, self.timer), at)
    }
}
