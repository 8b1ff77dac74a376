//! Whether a packet that does not come may still wait on the receiver's own line.
//!
//! Models: what Homa §3.7 leaves open. A receiver that hears nothing of a message for a few
//! milliseconds is to ask for it; but a scheduled packet of the least urgent priority may wait as long
//! as that behind more urgent ones, and then is not lost. With a timer alone the published workloads
//! with long messages (W4, W5 at 80 % load) had thousands of packets sent twice, and queues four to
//! eight times as long. So silence counts only if the line was free for the packet at some
//! moment of it.
//!
//! Leaves out: packets that wait at other links. They are faster or shared by many paths, as a rule.

use kernel::{PS_PER_SECOND, Rate, Span, Time};
use packets::{PRIORITIES, Packet};
use rack::NodeId;

/// What has come in over the lines of all hosts.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    rate: Rate,
    /// Sending time of a largest packet.
    longest: Span,
    hosts: Vec<Seen>,
}

/// What a host has seen on its line.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// When the latest packet was there.
    last: Time,
    /// By priority: when, the last time known, nothing so urgent or more waited for the line.
    free: [Time; PRIORITIES as usize],
}

impl Lines {
    /// `hosts` lines of `rate`, on which a largest packet takes `longest`.
    pub(crate) fn new(hosts: usize, rate: Rate, longest: Span) -> Self {
        Self { rate, longest, hosts: vec![Seen::default(); hosts] }
    }

    /// A packet is there.
    #[inline]
    pub(crate) fn arrived(&mut self, host: NodeId, packet: &Packet, now: Time) {
        let seen = &mut self.hosts[host.index()];
        // Instants are rounded to a picosecond.
        let elapsed = (now - seen.last).as_ps().saturating_sub(1);
        let carried = u128::from(elapsed) * u128::from(self.rate.as_bps());
        let sent = u128::from(packet.size().bits()) * u128::from(PS_PER_SECOND);
        // The line was idle before this packet; or took it because nothing more urgent was there.
        let is_free = if carried > sent { PRIORITIES } else { packet.priority };
        seen.free[..usize::from(is_free)].fill(now);
        seen.last = now;
    }

    /// Whether, after `since`, nothing kept a packet of this priority from the line to `host`.
    pub(crate) fn was_free(&self, host: NodeId, priority: u8, since: Time, now: Time) -> bool {
        let seen = &self.hosts[host.index()];
        seen.last + self.longest < now || seen.free[usize::from(priority)] > since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: NodeId = NodeId::new(0);

    fn at(ns: u64) -> Time {
        Time::ZERO + Span::from_ns(ns)
    }

    /// Packets of 1250 B on a line of 10 Gbps, 1 µs each, as (end, priority); then whether the line
    /// was free for each priority after 10 µs.
    #[track_caller]
    fn check(arrivals: &[(u64, u8)], now: u64, expected: [bool; 3]) {
        let mut lines = Lines::new(1, Rate::from_gbps(10), Span::from_ns(1_000));
        for &(end, priority) in arrivals {
            let packet = Packet { wire: 1_250, priority, ..Packet::default() };
            lines.arrived(HOST, &packet, at(end));
        }
        let found = [0, 1, 2].map(|priority| lines.was_free(HOST, priority, at(10_000), at(now)));
        assert_eq!(found, expected, "{arrivals:?}");
    }

    #[test]
    fn a_line_is_free_for_what_is_more_urgent_than_what_it_takes() {
        check(&[(10_000, 2), (11_000, 2), (12_000, 2)], 12_500, [true, true, false]);
        check(&[(10_000, 2), (11_000, 0), (12_000, 0)], 12_500, [false, false, false]);
        check(&[(10_000, 2), (11_000, 1), (12_000, 0)], 12_500, [true, false, false]);
    }

    #[test]
    fn a_gap_frees_it_for_all() {
        check(&[(10_000, 0), (11_000, 0), (12_000, 0)], 12_500, [false, false, false]);
        check(&[(10_000, 0), (11_001, 0), (12_001, 0)], 12_500, [true, true, true]);
        // Nothing has come for longer than a packet takes.
        check(&[(10_000, 0), (11_000, 0)], 12_001, [true, true, true]);
        check(&[(10_000, 0), (11_000, 0)], 12_000, [false, false, false]);
    }

    #[test]
    fn what_was_free_before_does_not_count() {
        check(&[(9_000, 0), (10_000, 2), (11_000, 0)], 11_500, [false, false, false]);
    }
}
