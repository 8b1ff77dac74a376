//! What is retransmitted: broadcasts that found no room, copies that a link corrupted, and copies lost on a
//! link whose failure was too short to be noticed.
//!
//! §3.2 has the node that drops a broadcast tell its source, "who can then re-transmit", leaves open to
//! whom, how often and when, and has the checksum find corruption but no node correct it. **Our choices**:
//!
//! - A source retransmits what was dropped to those who have missed it: the notice names the node that
//!   had no room and the neighbour for which the copy was ([`crate::wire::Notice`]); the copy goes by the
//!   same tree to that node, and from there on as it would have gone ([`crate::wire::Again`]). Sources keep
//!   what they said for that ([`crate::view::Names`]).
//! - It waits for a pause first, and after each further drop of that copy twice as long, and up to as
//!   long again by chance, so that what was dropped together does not come again together.
//! - A neighbour that finds a copy corrupted asks the one who sent it, who sends it again after the
//!   pause.
//! - The end of a link that was dead for less than it takes to notice sends again what was lost on it
//!   when it next hears a greeting from there. (The network says which copies these were; a count of
//!   copies in greetings would.)
//!
//! Repeating ends, whatever the buffers:
//!
//! 1. A node passes a broadcast on once, to each of its children in the tree. A copy, the notice of its
//!    loss and the copy retransmitted take each other's place. So of a broadcast there are at most as many
//!    of these, together, as nodes that have not heard it: fewer than there are nodes, however often any is
//!    lost, and none when all have heard it. (Where it goes by all links: at most one an end of a link.)
//! 2. A copy that was dropped `n` times has waited for at least `2^n - 1` pauses. In a time `t` it is
//!    retransmitted at most `log2(1 + t / pause)` times, and what all take of the links in that time grows
//!    with the logarithm of `t`, not with `t`: after a while it is less than any part of them. Yet it
//!    never waits for more than two pauses and twice as long as it has waited before.
//! 3. Then data alone can fill queues. There is so much of it as flows have left; once they have
//!    ended each copy finds room, as no packet is larger than a port's buffer.

use std::collections::BTreeMap;

use kernel::{Span, Stream, Time};
use packets::{Outbox, Packet, Timer};
use rack::NodeId;
use rack::topology::PortId;

use super::{REPEAT, streams};
use crate::config::SPAN_MAX;

/// What each node is to say again.
#[derive(Clone, Debug)]
pub(super) struct Repeats {
    pause: Span,
    /// By node: how much longer than it must it waits.
    draws: Vec<Stream>,
    /// By node: what it retransmits, in order of time, and then of loss.
    waiting: Vec<BTreeMap<(Time, u64), Packet>>,
    made: u64,
    /// By port: what was lost while its link was dead and counted as living.
    cut: Vec<Vec<Packet>>,
}

impl Repeats {
    pub(super) fn new(nodes: u32, ports: usize, pause: Span, seed: u64) -> Self {
        Self {
            pause,
            draws: streams(nodes, seed, "r2c2/repeats"),
            waiting: vec![BTreeMap::new(); nodes as usize],
            made: 0,
            cut: vec![Vec::new(); ports],
        }
    }

    /// `copy.src` will send a copy again that a link has lost.
    pub(super) fn copy(&mut self, copy: Packet, out: &mut Outbox) {
        self.wait(copy, self.pause, out);
    }

    /// `copy.src` will send a copy again that has found no room.
    pub(super) fn put_off(&mut self, mut copy: Packet, out: &mut Outbox) {
        // Of how many queues it was put off for lack of room.
        let times = u32::from(copy.path);
        let longest = SPAN_MAX.as_ps();
        let least = self.pause.as_ps().saturating_mul(1u64.checked_shl(times).unwrap_or(longest));
        let least = least.min(longest);
        let more = self.draws[copy.src.index()].below(least);
        // Beyond as many doublings as a time has bits it makes no difference.
        if times < u64::BITS {
            copy.path += 1;
        }
        self.wait(copy, Span::from_ps(least + more), out);
    }

    /// A node will send a copy by a port again once it hears from there.
    pub(super) fn cut(&mut self, port: PortId, copy: Packet) {
        self.cut[port.index()].push(copy);
    }

    fn wait(&mut self, copy: Packet, time: Span, out: &mut Outbox) {
        let (node, at) = (copy.src, out.now() + time);
        let waiting = &mut self.waiting[node.index()];
        if waiting.first_key_value().is_none_or(|(&(first, _), _)| at < first) {
            out.set_timer(Timer::Host(node, REPEAT), at);
        }
        waiting.insert((at, self.made), copy);
        self.made += 1;
    }

    /// A node's time has come: what it retransmits now.
    pub(super) fn take(&mut self, node: NodeId, out: &mut Outbox) -> Vec<Packet> {
        let waiting = &mut self.waiting[node.index()];
        let mut due = Vec::new();
        while let Some(first) = waiting.first_entry() {
            let at = first.key().0;
            if at > out.now() {
                out.set_timer(Timer::Host(node, REPEAT), at);
                break;
            }
            due.push(first.remove());
        }
        due
    }

    /// What was cut off at a port.
    pub(super) fn take_cut(&mut self, port: PortId) -> Vec<Packet> {
        std::mem::take(&mut self.cut[port.index()])
    }

    /// Whether anything is to be retransmitted.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.iter().all(BTreeMap::is_empty) && self.cut.iter().all(Vec::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each wait is at least twice as long as the one before it had to be, and no time overflows.
    #[test]
    fn m13_what_finds_no_room_again_and_again_waits_twice_as_long_each_time() {
        let node = NodeId::new(0);
        let pause = Span::from_us(10);
        let mut repeats = Repeats::new(1, 4, pause, 1);
        let mut out = Outbox::new(Time::ZERO);
        let mut copy = Packet { src: node, ..Packet::default() };
        for times in 0..100 {
            let before = out.now();
            repeats.put_off(copy, &mut out);
            let &(at, _) = repeats.waiting[0].keys().next().unwrap();
            let least = pause.as_ps().saturating_mul(1 << times.min(40)).min(SPAN_MAX.as_ps());
            let took = (at - before).as_ps();
            assert!(took >= least && took < 2 * least, "time {times}: {took} ps, from {least}");
            assert!(repeats.take(node, &mut out).is_empty());
            out.set_now(at);
            copy = repeats.take(node, &mut out)[0];
            assert_eq!(u32::from(copy.path), (times as u32 + 1).min(u64::BITS));
            // Or else a hundred waits of the longest come to more than a time can be.
            out.set_now(Time::ZERO + (at - before).min(Span::from_us(1)));
        }
        assert!(repeats.is_empty());
    }

    #[test]
    fn what_is_dropped_together_comes_again_at_times_of_its_own() {
        let mut repeats = Repeats::new(1, 4, Span::from_us(10), 1);
        let mut out = Outbox::new(Time::ZERO);
        for seq in 0..100 {
            repeats.put_off(Packet { seq, ..Packet::default() }, &mut out);
        }
        let mut times: Vec<Time> = repeats.waiting[0].keys().map(|&(at, _)| at).collect();
        times.dedup();
        assert_eq!(times.len(), 100);
    }
}
