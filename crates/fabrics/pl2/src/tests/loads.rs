//! What PL2 claims under load: nothing lost, short queues, lines well used.

use super::*;
use crate::config::{Entering, Outstanding, Schedule, Scheduling, ShareBy};
use crate::switch::Decrement;

/// The most that PL2 §2 and §4.1 allow a queue: 200 KiB.
const QUEUE_MAX: u64 = 200 * 1_024;

/// E08, I01, I02: persistent flows of 12 threads a host to one receiver; messages of four packets in
/// the paper, whole flows here.
#[track_caller]
fn check_incast(config: &Config, senders: u32, least_gbps: f64) -> Outcome {
    let outcome = carry(config, &incast(senders, 12, 150 * 1_458));
    let totals = outcome.rack.totals();
    assert_eq!(totals.drops, outcome.count("unsolicited_dropped"), "{:?}", outcome.rack.details());
    let queue = totals.queue_max.get();
    assert!(queue <= QUEUE_MAX, "{queue} B wait with {senders} senders");
    let gbps = outcome.gbps();
    assert!(gbps >= least_gbps, "{gbps} Gbps with {senders} senders");
    outcome
}

#[test]
fn i01_i02_incast_loses_nothing_and_queues_stay_short() {
    for senders in 1..=5 {
        for transport in [raw(), Transport::default()] {
            let config = Config { transport, ..Config::default() };
            check_incast(&config, senders, 75.0);
        }
    }
}

/// M07: taken down when packets come in, counters hide what waits: with the five threads of five hosts
/// that send to one, 20 slots are reserved at most, and bursts go unsolicited while the queue grows.
#[test]
fn m07_counters_taken_down_at_ingress_hide_the_queue() {
    let config = Config { threads: 1, transport: raw(), ..Config::default() };
    let mut at_ingress = config.clone();
    at_ingress.switch.decrement = Decrement::Ingress;
    let flows = incast(5, 1, 600 * 1_458);
    let [egress, ingress] =
        [&config, &at_ingress].map(|config| carry(config, &flows).rack.totals().queue_max.get());
    assert!(egress <= QUEUE_MAX && ingress > 2 * QUEUE_MAX, "{egress} B and {ingress} B");
}

/// M22: the NIC's variant carries an incast just as well, and without losses.
#[test]
fn m22_one_exchange_a_destination_fills_the_line_of_a_receiver() {
    let outstanding = Outstanding::Destination;
    let config =
        Config { outstanding, unsolicited_below: 0, transport: raw(), ..Config::default() };
    check_incast(&config, 5, 80.0);
}

/// M22: flows from five hosts to one are answered by as many of its threads: where each burst is much work,
/// and a window is a burst, five take less than twice as long as one, though their answers come apart. In
/// one thread they would take five times as long.
#[test]
fn m22_a_receiver_answers_in_as_many_threads_as_it_has() {
    let mut above = ::transports::uncontrolled::Config::default();
    above.stream.handshake = false;
    above.stream.receive_window = Bytes::new(4 * 1_448);
    let mut config = Config { transport: Transport::Uncontrolled(above), ..steady() };
    config.host.burst_cost = Span::from_us(20);
    let [one, five] = [1, 5].map(|senders| carry(&config, &incast(senders, 1, 400 * 1_448)).last());
    assert!(five.as_seconds() < 2.0 * one.as_seconds(), "{one} and {five}");
}

/// M22, §5: a thread that answers three hosts without a pause sends its own data in turn with the answers: each of
/// the 40 packets goes in a burst of its own at the worst, and each burst behind one to each of the three.
#[test]
fn m22_answers_that_never_end_do_not_hold_up_a_threads_data() {
    let mut above = ::transports::uncontrolled::Config::default();
    above.stream.handshake = false;
    let transport = Transport::Uncontrolled(above);
    let config = Config { threads: 1, unsolicited_below: 0, transport, ..steady() };
    let to_one = |(id, src)| flow(id, src, 1, 2_000 * 1_448, Time::ZERO);
    let mut flows: Vec<_> = [(0, 0), (1, 2), (2, 3)].map(to_one).into();
    flows.push(flow(3, 1, 4, 40 * 1_448, Time::ZERO + Span::from_us(50)));
    let outcome = carry(&config, &flows);
    let end = |id| {
        let ends = &outcome.ends.completed;
        let (flow, end) = ends.iter().find(|(flow, _)| flow.id == FlowId::new(id)).unwrap();
        *end - flow.start
    };
    let most = config.longest_exchange() * (40 * 4) + Span::from_us(10);
    assert!(end(3) < most, "{} of {most}", end(3));
    assert!(end(0) > most * 2, "answers end after {}", end(0));
}

/// M39: twelve threads to which a burst of 6,000 B is 5.1 µs of work besides an exchange of 2 µs send 12 times
/// that in 7.1 µs, whether the work is by burst or by byte.
#[test]
fn m39_work_of_threads_bounds_what_one_host_sends() {
    for (burst, byte) in [(Span::from_us(5) + Span::from_ns(100), 0), (Span::ZERO, 850)] {
        let mut config = Config { transport: raw(), ..steady() };
        (config.host.burst_cost, config.host.byte_cost) = (burst, Span::from_ps(byte));
        let gbps = carry(&config, &incast(1, 12, 400 * 1_458)).gbps();
        // Four packets, 1,458 B of 1,500 each.
        let expected =
            12.0 * 4.0 * 1_458.0 * 8e-9 / (config.longest_exchange().as_seconds() + 5.1e-6);
        assert!((gbps / expected - 1.0).abs() < 0.02, "{gbps} Gbps, expected {expected}");
    }
}

/// §6.4: threads of a host take turns at the work of an exchange, so a burst of 6,000 B in each 530 ns leaves
/// 90.6 Gbps of packets, however many threads there are.
#[test]
fn m39_work_of_exchanges_bounds_what_all_threads_of_a_host_send() {
    let mut config = Config { transport: raw(), ..steady() };
    config.host.exchange_cost = Span::from_ns(530);
    let gbps = carry(&config, &incast(1, 12, 400 * 1_458)).gbps();
    let expected = 4.0 * 1_458.0 * 8.0 / 530.0;
    assert!((gbps / expected - 1.0).abs() < 0.02, "{gbps} Gbps, expected {expected}");
}

/// The same hosts without reservations: one sends at line rate, four lose what the line does not carry, and nobody
/// asks for anything.
#[test]
fn hosts_without_reservations_fill_the_line_and_lose_what_it_does_not_carry() {
    for (senders, transport, is_lossy) in [(1, raw(), false), (4, raw_repeating(), true)] {
        let config = Config { transport, scheduling: Scheduling::None, ..steady() };
        let outcome = carry(&config, &incast(senders, 12, 400 * 1_458));
        let totals = outcome.rack.totals();
        assert_eq!(totals.drops > 0, is_lossy, "{senders} senders: {} drops", totals.drops);
        assert_eq!((outcome.count("reservations"), outcome.count("control_bytes")), (0, 0));
        if !is_lossy {
            let share = outcome.gbps() / (100.0 * 1_458.0 / 1_538.0);
            assert!(share > 0.98 && share <= 1.0, "{share} of the line");
        }
    }
}

/// I13: with one slot for both ports, and hosts without random delays, nothing waits but the burst
/// that goes, and what control frames hold up.
#[test]
fn i13_the_ideal_schedule_has_no_queue_beyond_a_burst() {
    for schedule in [Schedule::Ideal, Schedule::Matching] {
        let mut config = Config { transport: raw(), unsolicited_below: 0, ..steady() };
        config.switch.schedule = schedule;
        let outcome = carry(&config, &incast(5, 12, 100 * 1_458));
        let queue = outcome.rack.totals().queue_max.get();
        // Bitmaps know whole slots, from when the rack began: a burst may come a part of one late.
        let packets = u64::from(config.burst_packets) + u64::from(schedule == Schedule::Matching);
        let bound = packets * 1_538 + 12 * 84;
        assert!(queue <= bound, "{queue} B wait under {schedule:?}, above {bound} B");
    }
}

/// M11: however short slots are beside the exchange, and however many bursts wait for theirs: matching
/// gives no slot twice.
#[test]
fn m11_matching_gives_slots_once_however_far_off_they_are() {
    let usual = Config { transport: raw(), unsolicited_below: 0, ..steady() };
    let fast = Config { line_rate: kernel::Rate::from_gbps(800), threads: 1, ..usual.clone() };
    let ahead = Config { grant_handling: crate::config::GrantHandling::Async, ..usual };
    for mut config in [fast, ahead] {
        config.switch.schedule = Schedule::Matching;
        let outcome = carry(&config, &incast(5, 12, 100 * 1_458));
        let queue = outcome.rack.totals().queue_max.get();
        let bound = u64::from(config.burst_packets + 1) * 1_538 + 12 * 84;
        assert!(queue <= bound, "{queue} B wait with {:?}", config.grant_handling);
    }
}

/// M27, E12: larger bursts make more of one sender's threads.
#[test]
fn m27_one_sender_with_few_threads_is_faster_with_larger_bursts() {
    let mut last = 0.0;
    for burst_packets in [1, 2, 4, 8, 16] {
        let config = Config { burst_packets, unsolicited_below: 0, transport: raw(), ..steady() };
        let gbps = carry(&config, &incast(1, 3, 320 * 1_458)).gbps();
        assert!(gbps > last, "{gbps} Gbps in bursts of {burst_packets}, {last} in smaller ones");
        last = gbps;
    }
}

/// M29: every transport that PL2 carries ends its flows, without loss and without repeating anything.
#[test]
fn m29_any_transport_runs_over_pl2_and_loses_nothing() {
    use ::transports as t;
    let transports = [
        Transport::Uncontrolled(t::uncontrolled::Config::default()),
        Transport::Raw(t::raw::Config::default()),
        Transport::Mixed(::transports::mixed::Config::default()),
        Transport::Newreno(t::newreno::Config::default()),
        Transport::Cubic(t::cubic::Config::default()),
        Transport::Dctcp(t::dctcp::Config::default()),
        Transport::Swift(t::swift::Config::default()),
        Transport::Homa(t::homa::Config::default()),
    ];
    for transport in transports {
        let name = transport.name();
        let config = Config { transport, ..Config::default() };
        let mut flows = incast(4, 6, 60_000);
        let more = (0..30u64).map(|n| {
            let (src, dst) = ((n % 6) as u32, ((n * 7 + 1) % 6) as u32);
            flow(100 + n, src, if dst == src { (dst + 1) % 6 } else { dst }, 9_000, Time::ZERO)
        });
        flows.extend(more);
        let outcome = carry(&config, &flows);
        let totals = outcome.rack.totals();
        assert_eq!(totals.drops, outcome.count("unsolicited_dropped"), "{name}");
        assert!(totals.queue_max.get() <= QUEUE_MAX, "{name}: {}", totals.queue_max);
    }
}

/// M19, §4.2.1: four hosts of 25 Gbps share a port and its counters; nothing is lost either.
#[test]
fn m19_hosts_may_share_a_port() {
    let config = Config {
        nodes: 8,
        line_rate: kernel::Rate::from_gbps(25),
        hosts_per_port: 4.try_into().expect("not zero"),
        transport: raw(),
        ..Config::default()
    };
    let outcome = carry(&config, &incast(7, 4, 100 * 1_458));
    let totals = outcome.rack.totals();
    assert_eq!(totals.drops, outcome.count("unsolicited_dropped"));
    assert!(totals.queue_max.get() <= QUEUE_MAX, "{}", totals.queue_max);
}

/// M32: what enters the rack at its share neither loses anything nor makes others lose; both ways to
/// keep the share do the same.
#[test]
fn m32_entering_traffic_has_its_share_free() {
    for by in [ShareBy::Slot, ShareBy::Increment] {
        let entering = Entering { nodes: vec![NodeId::new(5)], share_percent: 10, by };
        let config = Config { entering: Some(entering), transport: raw(), ..Config::default() };
        let mut flows = incast(4, 12, 100 * 1_458);
        flows.push(flow(900, 5, 0, 400 * 1_458, Time::ZERO));
        flows.push(flow(901, 0, 5, 40 * 1_458, Time::ZERO));
        let outcome = carry(&config, &flows);
        let totals = outcome.rack.totals();
        assert_eq!(totals.drops, outcome.count("unsolicited_dropped"), "{by:?}");
        assert!(totals.queue_max.get() <= QUEUE_MAX, "{by:?}: {}", totals.queue_max);
        // A tenth of the line: 400 packets of 1,542 bytes at 10 Gbps take 493 us.
        let entered = outcome.ends.completed.iter().find(|(flow, _)| flow.id.get() == 900);
        let seconds = entered.expect("it completes").1.as_seconds();
        assert!((490e-6..520e-6).contains(&seconds), "{by:?}: {seconds} s");
    }
}
