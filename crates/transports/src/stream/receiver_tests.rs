//! The receiving half: blocks against RFC 2018's own examples, marks and delays step by step.

use kernel::Bytes;
use proptest::prelude::*;

use super::super::config::Config;
use super::*;

fn plan(change: impl FnOnce(&mut Plan)) -> Plan {
    let mut plan = Config::default().plan(Span::from_us(1), Echo::None);
    change(&mut plan);
    plan
}

fn segment(seq: u64, marks: Marks) -> Packet {
    Packet { seq, payload: 1448, wire: 1500, marks, stamp: Time::from_ps(seq), ..Packet::default() }
}

/// Feeds the segments; the blocks of the acknowledgment of the last one.
fn blocks_after(segments: &[u64]) -> (u64, Vec<(u64, u64)>) {
    let plan = plan(|_| ());
    let mut receiver = Receiver::default();
    receiver.open(&segment(0, Marks::empty()));
    let mut ack = Packet::default();
    for &seq in segments {
        let packet = segment(seq, Marks::empty());
        let found = receiver.receive(&packet, Time::ZERO, &plan, |_| panic!("nothing is early"));
        assert_eq!(found.urgency, Urgency::Now);
        ack = receiver.acknowledge(&packet, Time::ZERO, &plan);
    }
    let report = Report::decode(&ack);
    assert_eq!(ack.wire, 52 + option_size(report.count()));
    let blocks = report.blocks.iter().filter(|b| !b.is_empty()).map(|b| (b.from, b.to));
    (ack.ack, blocks.collect())
}

#[test]
fn blocks_are_those_of_rfc_2018_section_7() {
    // Case 1: the last four of eight segments are lost; case 2: the first is lost and the other
    // seven arrive; case 3: the 2nd, 4th, 6th and 8th are lost. Three blocks fit beside timestamps.
    assert_eq!(blocks_after(&[0, 1, 2, 3]), (4, vec![]));
    for last in 1..8 {
        let arrived: Vec<_> = (1..=last).collect();
        assert_eq!(blocks_after(&arrived), (0, vec![(1, last + 1)]));
    }
    assert_eq!(blocks_after(&[0, 2]), (1, vec![(2, 3)]));
    assert_eq!(blocks_after(&[0, 2, 4]), (1, vec![(4, 5), (2, 3)]));
    assert_eq!(blocks_after(&[0, 2, 4, 6]), (1, vec![(6, 7), (4, 5), (2, 3)]));
    // Then the 4th comes, out of order: it joins its neighbours and is the most recent.
    assert_eq!(blocks_after(&[0, 2, 4, 6, 3]), (1, vec![(2, 5), (6, 7)]));
    // And the 2nd: all up to the 5th are in order.
    assert_eq!(blocks_after(&[0, 2, 4, 6, 3, 1]), (5, vec![(6, 7)]));
}

#[test]
fn the_oldest_block_makes_room_for_the_newest() {
    assert_eq!(blocks_after(&[2, 4, 6, 8]).1, [(8, 9), (6, 7), (4, 5)]);
    // A copy of what was pushed out makes it the most recent again.
    assert_eq!(blocks_after(&[2, 4, 6, 8, 2]).1, [(2, 3), (8, 9), (6, 7)]);
}

proptest! {
    /// In whatever order segments come, each is handed over once, in order; a block reports what is
    /// held, and the first block holds the segment that came last.
    #[test]
    fn whatever_the_order_all_is_handed_over_once(
        mut order in prop::collection::vec(0u64..200, 0..600).prop_map(|mut more| {
            more.extend(0..200);
            more
        }),
        seed: u64,
    ) {
        kernel::Stream::new(seed, "order", 0).shuffle(&mut order);
        let plan = plan(|_| ());
        let mut receiver = Receiver::default();
        receiver.open(&segment(0, Marks::empty()));
        let (mut seen, mut readable) = (std::collections::BTreeSet::new(), 0);
        for seq in order {
            let last = if seq == 199 { Marks::LAST } else { Marks::empty() };
            let packet = segment(seq, last);
            prop_assert!(receiver.makes_sense(&packet, &plan));
            let found = receiver.receive(&packet, Time::ZERO, &plan, |_| ());
            seen.insert(seq);
            prop_assert_eq!(found.from, readable);
            readable = (0..).find(|segment| !seen.contains(segment)).unwrap();
            prop_assert_eq!(found.to, readable);
            prop_assert_eq!(found.held, seen.range(readable..).count() as u64);
            prop_assert_eq!(receiver.check(), Ok(()));
            let ack = receiver.acknowledge(&packet, Time::ZERO, &plan);
            let report = Report::decode(&ack);
            prop_assert_eq!(ack.ack, readable);
            for block in report.blocks.iter().filter(|block| !block.is_empty()) {
                prop_assert!((block.from..block.to).all(|held| seen.contains(&held)));
                prop_assert!(!seen.contains(&block.to) && !seen.contains(&(block.from - 1)));
            }
            if seq > readable {
                prop_assert!((report.blocks[0].from..report.blocks[0].to).contains(&seq));
            }
            prop_assert_eq!(report.count() > 0, found.held > 0);
        }
        prop_assert!(receiver.is_complete());
        prop_assert_eq!(receiver.bytes(0, 200, &plan), Bytes::new(200 * 1448));
        prop_assert!(!receiver.makes_sense(&segment(200, Marks::LAST), &plan));
    }
}

/// Feeds (segment, marks); gives (acknowledgment, echo) of those sent.
fn echoes(echo: Echo, ack_segments: u32, feed: &[(u64, Marks)]) -> Vec<(u64, bool)> {
    let plan = plan(|plan| (plan.echo, plan.ack_segments) = (echo, ack_segments));
    let mut receiver = Receiver::default();
    receiver.open(&segment(0, Marks::empty()));
    let mut sent = Vec::new();
    let mut note = |ack: Packet| sent.push((ack.ack, ack.marks.contains(Marks::ECE)));
    for &(seq, marks) in feed {
        let packet = segment(seq, marks);
        let found = receiver.receive(&packet, Time::ZERO, &plan, &mut note);
        if found.urgency == Urgency::Now {
            note(receiver.acknowledge(&packet, Time::ZERO, &plan));
        }
    }
    sent
}

#[test]
fn marks_are_echoed_until_the_sender_answers() {
    let (none, ce, cwr) = (Marks::empty(), Marks::CE, Marks::CWR);
    let feed = [(0, none), (1, ce), (2, none), (3, none), (4, cwr), (5, none), (6, ce | cwr)];
    let expected = [false, true, true, true, false, false, true];
    let found: Vec<_> = echoes(Echo::UntilAnswered, 1, &feed).iter().map(|&(_, ece)| ece).collect();
    assert_eq!(found, expected);
}

#[test]
fn marks_are_echoed_each() {
    let (none, ce) = (Marks::empty(), Marks::CE);
    let feed = [(0, none), (1, ce), (2, none), (3, ce), (4, ce)];
    let found = echoes(Echo::Each, 1, &feed);
    assert_eq!(found, [(1, false), (2, true), (3, false), (4, true), (5, true)]);
}

#[test]
fn a_change_of_marks_sends_what_waits_before_it_as_in_rfc_8257_fig_1() {
    let (none, ce) = (Marks::empty(), Marks::CE);
    // Every second segment is acknowledged; at each change of the mark, at once, with the old one.
    let feed = [(0, none), (1, none), (2, none), (3, ce), (4, ce), (5, ce), (6, none), (7, none)];
    let found = echoes(Echo::Each, 2, &feed);
    assert_eq!(found, [(2, false), (3, false), (5, true), (6, true), (8, false)]);
}

#[test]
fn acknowledgments_wait_for_a_second_segment_unless_something_is_amiss() {
    let plan = plan(|plan| plan.ack_segments = 2);
    let mut receiver = Receiver::default();
    receiver.open(&segment(0, Marks::empty()));
    let mut feed = |seq: u64, marks: Marks| {
        let packet = segment(seq, marks);
        let found = receiver.receive(&packet, Time::from_ps(1_000 * seq), &plan, |_| ());
        if found.urgency == Urgency::Now {
            let ack = receiver.acknowledge(&packet, Time::from_ps(1_000 * seq), &plan);
            (found.urgency, Some((ack.ack, ack.stamp.as_ps())))
        } else {
            (found.urgency, None)
        }
    };
    let none = Marks::empty();
    assert_eq!(feed(0, none), (Urgency::Start, None));
    // The stamp echoed is that of the first segment not acknowledged (RFC 7323 §4.3).
    assert_eq!(feed(1, none), (Urgency::Now, Some((2, 0))));
    assert_eq!(feed(3, none), (Urgency::Now, Some((2, 3))));
    assert_eq!(feed(2, none), (Urgency::Now, Some((4, 2))));
    assert_eq!(feed(1, none), (Urgency::Now, Some((4, 1))));
    assert_eq!(feed(4, Marks::LAST), (Urgency::Now, Some((5, 4))));
}

#[test]
fn an_acknowledgment_tells_how_long_it_waited_and_how_far_the_data_came() {
    let plan = plan(|plan| plan.ack_segments = 2);
    let mut receiver = Receiver::default();
    receiver.open(&segment(0, Marks::empty()));
    let mut ack = Packet::default();
    for (seq, us, hops) in [(0, 10, 3), (1, 17, 5)] {
        let packet = Packet { hops, ..segment(seq, Marks::empty()) };
        let now = Time::ZERO + Span::from_us(us);
        receiver.receive(&packet, now, &plan, |_| ());
        ack = receiver.acknowledge(&packet, now, &plan);
        if seq == 0 {
            assert_eq!(Report::decode(&ack).endpoint, Span::ZERO);
            // Taken back for the test: the first still waits.
            receiver.waiting = 1;
        }
    }
    let report = Report::decode(&ack);
    assert_eq!((report.endpoint, report.hops), (Span::from_us(7), 3));
    assert_eq!(ack.size(), Bytes::new(52));
}
