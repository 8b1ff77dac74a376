//! Lost frames and dead senders: every flow ends, and no slot stays reserved for ever.

use ::rack::Component;

use super::*;
use crate::config::{Acknowledgments, Tracking};

/// Reservations, grants, notices and data get lost at random.
#[test]
fn flows_complete_and_no_slot_stays_reserved_whatever_is_lost() {
    for loss_rate in [0.005, 0.02, 0.1] {
        for tracking in [Tracking::None, Tracking::Pairs, Tracking::Receivers] {
            for transport in [raw_repeating(), Transport::default()] {
                let mut config = Config { loss_rate, transport, ..Config::default() };
                config.recovery.tracking = Some(tracking);
                let outcome = carry(&config, &incast(4, 5, 40_000));
                assert!(outcome.count("dropped_lost") > 0);
                assert!(loss_rate < 0.01 || outcome.count("reservations_repeated") > 0);
            }
        }
    }
}

/// M22: a flow that its transport gives up is over once, for its threads too.
#[test]
fn m22_flows_that_are_given_up_leave_their_threads_once() {
    let losses = ::transports::raw::Losses::Forget;
    let transport = Transport::Raw(::transports::raw::Config { losses, ..Default::default() });
    let config = Config { loss_rate: 0.1, transport, ..Config::default() };
    let outcome = carry_with(&config, &[], &incast(4, 12, 40_000));
    assert!(!outcome.ends.failed.is_empty());
}

fn death(node: u32, at: Time) -> Fault {
    Fault { component: Component::Node(NodeId::new(node)), at, until: None }
}

/// M31: a sender dies with bursts reserved. What was granted to it is given back by its receiver, or
/// else found by the audit; the others go on.
#[test]
fn m31_what_a_dead_sender_has_reserved_is_given_back() {
    for (tracking, is_given_back) in [(Tracking::None, false), (Tracking::Receivers, true)] {
        let mut config = steady();
        config.recovery.tracking = Some(tracking);
        config.transport = raw_repeating();
        // Its reservations are granted, and it dies before the bursts are out.
        let at = Time::ZERO + Span::from_us(20);
        for config in told_or_not(&config) {
            let outcome = carry_with(&config, &[death(2, at)], &incast(4, 12, 100 * 1_458));
            assert_eq!(outcome.ends.failed.len(), 12);
            assert_eq!(outcome.count("slots_given_back") > 0, is_given_back, "{tracking:?}");
            assert_eq!(outcome.count("slots_reset") > 0, !is_given_back, "{tracking:?}");
        }
    }
}

/// M31: a sender whose slot is far off is not silent: nothing of it is given back, however long it waits.
#[test]
fn m31_a_sender_that_waits_for_its_slot_is_not_taken_for_dead() {
    let slot = Span::from_us(10);
    let mut config = Config { transport: raw(), threads: 1, burst_packets: 16, slot, ..steady() };
    config.recovery.tracking = Some(Tracking::Receivers);
    config.switch.audit = Span::ZERO;
    let outcome = carry(&config, &incast(5, 1, 64 * 1_458));
    let slot_max = outcome.count("slot_max");
    assert!(slot * slot_max > config.recovery.silence * 2, "slot {slot_max} is not far off");
    assert_eq!(outcome.count("slots_offered_back"), 0);
    assert_eq!((outcome.count("slots_left"), outcome.count("counters_below_zero")), (0, 0));
}

/// M31: what a receiver gives back takes nothing off that was counted down already, as by a packet that got
/// lost behind the switch, or that others have reserved: no counter gets below zero, whatever fails.
#[test]
fn m31_no_counter_gets_below_zero_by_what_receivers_give_back() {
    let at = |us| Time::ZERO + Span::from_us(us);
    let node = |node| Component::Node(NodeId::new(node));
    let faults = [
        Fault { component: node(3), at: at(200), until: Some(at(900)) },
        Fault { component: Component::NodeLink(NodeId::new(5)), at: at(300), until: Some(at(700)) },
        Fault { component: node(6), at: at(1_000), until: None },
    ];
    let pairs =
        (0..8).flat_map(|src| (0..8).filter(move |&dst| dst != src).map(move |dst| (src, dst)));
    let flows: Vec<_> =
        (0..).zip(pairs).map(|(id, (src, dst))| flow(id, src, dst, 2_000_000, at(0))).collect();
    for loss_rate in [0.001, 0.01] {
        let convergence = Span::from_us(50);
        let transport = raw_repeating();
        let mut config =
            Config { nodes: 8, loss_rate, convergence, transport, ..Config::default() };
        config.recovery.tracking = Some(Tracking::Receivers);
        for config in told_or_not(&config) {
            let outcome = carry_with(&config, &faults, &flows);
            assert!(outcome.count("slots_given_back") > 0);
            assert_eq!(outcome.count("counters_below_zero"), 0, "{loss_rate}");
        }
    }
}

/// M31: a receiver gives slots back by way of a host that works: node 0 has been dead for long.
#[test]
fn m31_slots_are_given_back_where_other_hosts_are_dead() {
    // T is out of reach, near which hosts can only infer what the switch has dropped.
    let mut config = Config { transport: raw_repeating(), ..steady() };
    config.recovery.tracking = Some(Tracking::Receivers);
    (config.switch.audit, config.switch.drop_above) = (Span::ZERO, 1_000);
    let at = |us| Time::ZERO + Span::from_us(us);
    let pairs = [(2, 1), (3, 1)].into_iter().flat_map(|pair| (0..12).map(move |_| pair));
    let flows: Vec<_> =
        (0..).zip(pairs).map(|(id, (src, dst))| flow(id, src, dst, 145_800, at(3_000))).collect();
    for config in told_or_not(&config) {
        let outcome = carry_with(&config, &[death(0, at(10)), death(2, at(3_010))], &flows);
        assert_eq!(outcome.ends.failed.len(), 12);
        assert!(outcome.count("slots_given_back") > 0);
        assert_eq!(outcome.count("slots_left"), 0, "{:?}", outcome.rack.details());
    }
}

/// M31: without tracking and audit, what a dead sender reserved stays reserved.
#[test]
fn m14_without_an_audit_slots_leak() {
    let mut config = steady();
    config.switch.audit = Span::ZERO;
    config.transport = raw_repeating();
    let at = Time::ZERO + Span::from_us(20);
    let outcome = carry_with(&config, &[death(2, at)], &incast(4, 12, 100 * 1_458));
    assert!(outcome.count("slots_left") > 0);
}

/// M14: what leaks at a port that is never silent stays until it is, if nobody tracks it: one packet in a
/// thousand lost, and flows 16 times as long take far more than 16 times as long. With pauses for the
/// audit they do not.
#[test]
fn m14_untracked_what_leaks_at_a_busy_port_stays_until_it_is_silent() {
    let mut config = Config { loss_rate: 0.001, transport: raw_repeating(), ..Config::default() };
    config.recovery.tracking = Some(Tracking::None);
    let once = incast(5, 12, 250 * 1_458);
    let busy = carry(&config, &incast(5, 12, 4_000 * 1_458));
    let alone = carry(&config, &once);
    // Far apart: a part takes less than 5 ms, and the audit finds a silent port in 2.
    let parts = (0..4u64).flat_map(|part| once.iter().map(move |flow| (part, flow)));
    let paused: Vec<_> = parts
        .map(|(part, one)| Flow {
            id: FlowId::new(1_000 * part + one.id.get()),
            start: Time::ZERO + Span::from_us(20_000 * part),
            ..*one
        })
        .collect();
    let paused = carry(&config, &paused);
    let most = |outcome: &Outcome| outcome.count("output_slots_max");
    // All that 60 threads can have reserved is 240; above it are slots that nobody uses.
    assert!(most(&busy) > most(&alone).max(most(&paused)) + 30, "{}", most(&busy));
    assert!(busy.gbps() < 0.75 * alone.gbps(), "{} and {} Gbps", busy.gbps(), alone.gbps());
}

/// M14: tracked by pair, what leaks is given back while the port is busy, without any audit: however much
/// is lost and however long it lasts, no grant tells of more slots than without losses, and the line stays
/// full. (How much of it is of use is the transport's matter, which repeats more than what got lost.)
#[test]
fn slow_m14_tracked_by_pair_nothing_leaks_at_a_busy_port() {
    let run = |loss_rate, packets: u64, tracking| {
        let mut config = Config { loss_rate, transport: raw_repeating(), ..Config::default() };
        config.switch.audit = Span::ZERO;
        config.recovery.tracking = Some(tracking);
        let outcome = carry(&config, &incast(5, 12, packets * 1_458));
        let used = outcome.count("slots_granted") - outcome.count("slots_leaked");
        let line_share = (Span::from_ps(123_040) * used).as_seconds() / outcome.last().as_seconds();
        (outcome.count("output_slots_max"), line_share)
    };
    let (most_without, _) = run(0.0, 250, Tracking::Pairs);
    for (loss_rate, packets) in [(0.0001, 4_000), (0.001, 250), (0.001, 4_000), (0.01, 4_000)] {
        let (most, line_share) = run(loss_rate, packets, Tracking::Pairs);
        let place = format!("loss {loss_rate}, {packets} packets");
        assert!(most <= most_without, "{place}: {most} slots for {most_without}");
        assert!(line_share > 0.85, "{place}: {line_share} of the line");
    }
    let (most, line_share) = run(0.001, 4_000, Tracking::None);
    assert!(most > most_without + 30 && line_share < 0.6, "{most} slots, {line_share} of the line");
}

/// M14: what the switch drops itself is counted no more, whoever tracks slots and without any audit: neither
/// a link that is cut for a while nor a buffer that is full leaves anything reserved at a port that is never
/// silent.
#[test]
fn m14_what_the_switch_drops_does_not_stay_reserved() {
    let flows = incast(5, 12, 500 * 1_458);
    let cut = |until| Fault {
        component: Component::NodeLink(NodeId::new(0)),
        at: Time::ZERO + Span::from_us(100),
        until: Some(Time::ZERO + Span::from_us(until)),
    };
    for tracking in [Tracking::None, Tracking::Pairs] {
        let mut config = Config { transport: raw_repeating(), ..Config::default() };
        config.recovery.tracking = Some(tracking);
        config.switch.audit = Span::ZERO;
        let whole = carry(&config, &flows);
        let most = whole.count("output_slots_max");
        for until in [120, 300, 900] {
            let outcome = carry_with(&config, &[cut(until)], &flows);
            assert!(outcome.count("dropped_dead_link") > 0);
            let found = outcome.count("output_slots_max");
            assert!(found <= most, "{tracking:?}: {found} slots for {most}, cut until {until} us");
            let late = outcome.last() - whole.last();
            let pause = Span::from_us(until);
            assert!(late < pause + pause, "{tracking:?}: {late} late, cut until {until} us");
        }
        config.switch.port_buffer = Bytes::new(20_000);
        let outcome = carry(&config, &flows);
        assert!(outcome.count("dropped_full") > 0);
        assert_eq!(outcome.count("slots_left"), 0, "{tracking:?}");
    }
}

/// M14: who waits for a slot that is far off is not silent, whoever tracks slots: at 1 Gbps, 912 packets that
/// went unsolicited take 11 ms to drain, and the audit, which comes every 1 ms, leaves them counted.
#[test]
fn m14_no_audit_takes_what_is_still_to_come() {
    for tracking in [Tracking::None, Tracking::Pairs, Tracking::Receivers] {
        let mut config = Config {
            nodes: 20,
            line_rate: kernel::Rate::from_gbps(1),
            burst_packets: 16,
            unsolicited_below: 300,
            unsolicited_age: Span::from_us(1_000_000),
            transport: raw(),
            ..Config::default()
        };
        config.switch.drop_above = 100_000;
        config.recovery.tracking = Some(tracking);
        config.recovery.silence = Span::from_us(100_000);
        let mut flows = incast(19, 1, 4 * 1_458);
        let late = Time::ZERO + Span::from_us(18_000);
        flows.extend(incast(19, 3, 64 * 1_458).iter().map(|one| Flow {
            id: FlowId::new(1_000 + one.id.get()),
            start: late,
            ..*one
        }));
        let outcome = carry(&config, &flows);
        assert!(outcome.count("bursts_unsolicited") > 0);
        let [reset, below] = ["slots_reset", "counters_below_zero"].map(|key| outcome.count(key));
        assert_eq!((reset, below), (0, 0), "{tracking:?}");
    }
}

/// M14: a pair that asks for nothing any more is silent, though it answers without a pause, unreserved: what
/// it has leaked is void a millisecond later, and not held as long as it answers.
#[test]
fn m14_unreserved_answers_do_not_keep_what_leaked() {
    // What is lost is forgotten, so that nothing asks for the pair again.
    let datagrams = ::transports::raw::Config {
        losses: ::transports::raw::Losses::Forget,
        patience: Span::from_us(200),
        ..Default::default()
    };
    let datagram_classes = vec![Class::new(0)];
    let mixed = ::transports::mixed::Config { datagrams, datagram_classes, ..Default::default() };
    let transport = Transport::Mixed(mixed);
    let config =
        Config { transport, acknowledgments: Acknowledgments::Unreserved, ..Config::default() };
    let at = |us| Time::ZERO + Span::from_us(us);
    let mut leaks = 0;
    for cut_us in 5..40 {
        let cut = Fault {
            component: Component::NodeLink(NodeId::new(1)),
            at: at(cut_us),
            until: Some(at(cut_us + 2)),
        };
        // Datagrams from 1 to 0, some of them lost; then a stream from 0 to 1 for 3.5 ms.
        let plan = config.plan().and_then(|plan| plan.with_faults(&[cut])).expect("it is right");
        let mut rack = Rack::new(plan, 7);
        (0..12).for_each(|id| rack.offer(&flow(id, 1, 0, 10 * 1_458, Time::ZERO)));
        let stream = flow(100, 0, 1, 30_000 * 1_448, at(400));
        rack.offer(&Flow { class: Class::new(1), ..stream });
        let mut ends = Ends::default();
        let mut reserved = |until| {
            rack.advance(at(until), &mut ends);
            let pipeline = rack.switch().scheduler().pipeline().expect("it counts");
            let ended = ends.completed.len() + ends.failed.len();
            (pipeline.pairs().get(config.nodes), ended)
        };
        let (leaked, ended) = reserved(600);
        assert_eq!(ended, 12, "cut at {cut_us} us");
        leaks += u32::from(leaked > 0);
        assert_eq!(reserved(3_000), (0, 12), "cut at {cut_us} us");
    }
    assert!(leaks > 0, "nothing leaked");
}

/// A receiver dies: its senders' bursts for it go for nobody, so that their own inputs are counted down.
#[test]
fn bursts_to_a_dead_receiver_still_use_their_slots() {
    let mut config = steady();
    config.transport = raw_repeating();
    let mut flows = incast(4, 12, 1_000 * 1_458);
    flows.extend((0..12).map(|n| flow(500 + n, 1, 5, 100 * 1_458, Time::ZERO)));
    for config in told_or_not(&config) {
        let outcome = carry_with(&config, &[death(0, Time::ZERO + Span::from_us(20))], &flows);
        assert_eq!(outcome.ends.failed.len(), 48);
        let is_told = config.failures.oracle;
        // Who is not told goes on: its bursts are dropped as no reservation of them is answered.
        assert_eq!(outcome.count("orphans") > 0, is_told);
        assert_eq!(outcome.count("bursts_unanswered") > 0, !is_told);
    }
}

/// A thread whose reservations for a dead host the switch does not answer any more asks four times, 15 times its
/// patience, 1 ms; from then on it asks once in 4.3 ms, though a flow of 1.5 GB goes there until it is given up. So
/// what else it is to send is not held up: each burst waits for no more than one that is dropped.
#[test]
fn a_dead_receiver_holds_up_no_thread_for_long() {
    let config = Config { threads: 1, transport: raw_repeating(), ..steady() };
    let at = |us| Time::ZERO + Span::from_us(us);
    // The switch knows of the death after 1 ms.
    for (start_us, held_up) in [(1_030, 15), (2_500, 0), (20_000, 1)] {
        let mut flows = incast(1, 1, 1_000_000 * 1_458);
        flows.push(flow(1, 1, 5, 100 * 1_458, at(start_us)));
        let outcome = carry_with(&config, &[death(0, at(20))], &flows);
        assert_eq!(outcome.ends.failed, [flows[0]]);
        let took = outcome.last() - flows[1].start;
        // 25 bursts, each with an exchange of 2 us, the time of its packets and that of a burst dropped before it.
        let each = Span::from_ns(2_500 + 2 * 4 * 124);
        assert!(took < each * 25 + config.recovery.patience * held_up, "{took} from {start_us} us");
        assert!(took > Span::from_us(2 * 25), "{took}");
    }
}

/// The link of a destination is out for longer than it takes to find out, and for less than flows are worth waiting
/// for: what was dropped meanwhile is retransmitted, and once it answers no burst is dropped any more.
#[test]
fn a_destination_that_answers_again_is_not_silent() {
    let at = |us| Time::ZERO + Span::from_us(us);
    let component = Component::NodeLink(NodeId::new(0));
    let cut = Fault { component, at: at(20), until: Some(at(60_000)) };
    let config = Config { transport: raw_repeating(), ..steady() };
    let flows = incast(4, 12, 100 * 1_458);
    let outcome = carry_with(&config, &[cut], &flows);
    assert_eq!(outcome.ends.failed, []);
    assert!(outcome.count("bursts_unanswered") > 0);
    // Waits of transports double: the last may be as long as all before it.
    assert!(outcome.last() < at(150_000), "{:?}", outcome.last());
    // If it is the sender's own line nothing is dropped: what cannot leave waits. (What the receiver says goes
    // unreserved here. Once the line works, the switch answers as soon as it knows that.)
    let cut = Fault { component: Component::NodeLink(NodeId::new(1)), ..cut };
    let (acknowledgments, convergence) = (Acknowledgments::Unreserved, Span::from_us(10));
    let config = Config { acknowledgments, convergence, ..config };
    let outcome = carry_with(&config, &[cut], &incast(1, 12, 100 * 1_458));
    assert_eq!((outcome.ends.failed.len(), outcome.count("bursts_unanswered")), (0, 0));
}

/// M30: the switch fails, and the rack with it; when it comes back it knows of no reservation, what hosts
/// had under way comes to an end, and its control plane looks after counters as before.
#[test]
fn m30_a_switch_that_comes_back_has_nothing_reserved() {
    let at = |us| Time::ZERO + Span::from_us(us);
    let fault = |until| Fault { component: Component::Leaf(0), at: at(20), until };
    let flows = incast(4, 12, 100 * 1_458);
    for config in told_or_not(&Config { transport: raw_repeating(), ..Config::default() }) {
        let lost = carry_with(&config, &[fault(None)], &flows);
        assert_eq!(lost.ends.failed.len(), 48);
        for back_us in [30, 500, 5_000] {
            let outcome = carry_with(&config, &[fault(Some(at(back_us)))], &flows);
            assert_eq!(outcome.ends.failed, [], "back at {back_us} us");
            // A loss on top of it is found by the audit still.
            let mut lossy = Config { loss_rate: 0.05, ..config.clone() };
            lossy.recovery.tracking = Some(Tracking::None);
            let outcome = carry_with(&lossy, &[fault(Some(at(back_us)))], &flows);
            assert!(outcome.count("counters_reset") > 0, "back at {back_us} us");
        }
    }
}

/// A host dies for a while: its flows fail, and those that it has once it is back complete.
#[test]
fn a_host_that_comes_back_carries_on() {
    let fault = Fault {
        component: Component::Node(NodeId::new(3)),
        at: Time::ZERO + Span::from_us(10),
        until: Some(Time::ZERO + Span::from_us(3_000)),
    };
    let late = Time::ZERO + Span::from_us(6_000);
    let mut flows = incast(4, 4, 60_000);
    flows.extend((0..8).map(|n| flow(700 + n, 3, 1, 30_000, late)));
    for config in told_or_not(&Config::default()) {
        let outcome = carry_with(&config, &[fault], &flows);
        assert_eq!((outcome.ends.completed.len(), outcome.ends.failed.len()), (20, 4));
        // Only its line is cut: what was under way is retransmitted.
        let fault = Fault { component: Component::NodeLink(NodeId::new(3)), ..fault };
        assert_eq!(carry_with(&config, &[fault], &flows).ends.failed, []);
    }
}
