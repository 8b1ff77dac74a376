//! How hosts find out by themselves that nothing comes of a flow any more.
//!
//! Where nothing can fail all halves end by what they hear, and nobody watches. Where something can, and no
//! oracle tells of it, a half that says that it has waited in vain does so for a stated time and is then closed
//! ([`crate::config::Failures`]); a receiver's that has nothing to ask for is closed after a stated silence.

use kernel::Time;
use rack::NodeId;

use crate::config::Failures;
use crate::packet::FlowKey;
use crate::transport::{Timer, Timers};

/// A host looks for silent flows no more often than so many times in a silence (our choice).
const LOOKS: u64 = 4;

/// What a half has heard.
#[derive(Clone, Copy, Debug)]
struct Heard {
    /// When the last packet came for it, or it opened.
    last: Time,
    /// Its first wait in vain since then; `NEVER`: none.
    vain_since: Time,
}

/// The halves of some hosts, as they wait.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    config: Failures,
    /// The number of the timer that each host has besides those of its transport; by host, whether it is set.
    timer: u8,
    is_set: Vec<bool>,
    /// By place: senders and receivers.
    heard: [Vec<Heard>; 2],
}

impl Watch {
    /// Watches beside a transport that has `timers`, to which it adds one.
    pub(super) fn new(config: Failures, hosts: u32, timers: &mut Timers) -> Self {
        timers.host += 1;
        let is_set = vec![false; hosts as usize];
        Self { config, timer: timers.host - 1, is_set, heard: [Vec::new(), Vec::new()] }
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
        let is_needed = key.is_receivers() && !self.is_set[host.index()];
        is_needed.then(|| self.look(host, now + self.config.silence))
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

    /// The host that is to look for silent flows, if it is that that a timer means.
    pub(super) fn host_of(&mut self, timer: Timer) -> Option<NodeId> {
        let Timer::Host(host, number) = timer else { return None };
        let is_meant = number == self.timer;
        self.is_set[host.index()] &= !is_meant;
        is_meant.then_some(host)
    }

    /// When a receiver will have been silent for too long, if nothing comes.
    pub(super) fn ends(&mut self, key: FlowKey) -> Time {
        self.heard(key).last + self.config.silence
    }

    /// When a host looks again, of whose receivers the first will have been silent for too long at `end`.
    pub(super) fn looks_again(&mut self, host: NodeId, end: Time, now: Time) -> (Timer, Time) {
        self.look(host, end.max(now + self.config.silence / LOOKS))
    }

    fn look(&mut self, host: NodeId, at: Time) -> (Timer, Time) {
        self.is_set[host.index()] = true;
        (Timer::Host(host, self.timer), at)
    }
}
