//! Every transport under PL2 (claim M29): all is carried, and what switches do for some of them works.

use packets::config::{Marking, Overflow, Step, Trimming};

use super::*;

/// Whether flows share connections: then the hosts of a rack are simulated together, and what a connection carries
/// ends with it.
pub(super) fn shares_connections(transport: &Transport) -> bool {
    matches!(transport, Transport::Uncontrolled(config) if config.stream.connections > 0)
}

/// All that PL2 carries and that ends whatever is lost, as they are by default.
pub(super) fn all() -> Vec<Transport> {
    let datagrams = ::transports::raw::Config {
        losses: ::transports::raw::Losses::Repeat,
        patience: Span::from_us(100),
        ..Default::default()
    };
    let mixed = ::transports::mixed::Config {
        datagrams,
        datagram_classes: vec![Class::new(0)],
        ..Default::default()
    };
    let stream = ::transports::stream::config::Config {
        connections: 2,
        nagle: true,
        ack_segments: 2,
        ack_delay: Span::from_us(100),
        ..Default::default()
    };
    let lasting = ::transports::uncontrolled::Config { stream, ..Default::default() };
    vec![
        Transport::default(),
        Transport::Uncontrolled(lasting),
        raw_repeating(),
        Transport::Mixed(mixed),
        Transport::Newreno(::transports::newreno::Config::default()),
        Transport::Cubic(::transports::cubic::Config::default()),
        Transport::Dctcp(::transports::dctcp::Config::default()),
        Transport::Swift(::transports::swift::Config::default()),
        Transport::Ndp(::transports::ndp::Config::default()),
        Transport::Dcqcn(::transports::dcqcn::Config::default()),
        Transport::Homa(::transports::homa::Config::default()),
        Transport::Rds(::transports::rds::Config::default()),
    ]
}

/// Five hosts send to one, flows shorter and longer than what goes blindly, and it to all of them.
fn both_ways() -> Vec<Flow> {
    let mut flows = Vec::new();
    for (sender, bytes) in (1..=5).flat_map(|sender| [(sender, 900), (sender, 200_000)]) {
        let id = flows.len() as u64;
        flows.push(flow(id, sender, 0, bytes, Time::ZERO));
        flows.push(flow(id + 1, 0, sender, bytes, Time::ZERO));
    }
    flows
}

/// M29, I01: nothing is lost but unsolicited packets above T, which are retransmitted by themselves.
#[test]
fn m29_every_transport_is_carried_whole_and_without_loss() {
    let flows = both_ways();
    let bytes = flows.iter().map(|flow| flow.size).sum::<Bytes>();
    for transport in all() {
        let name = transport.name();
        let config = Config { transport, ..Config::default() };
        let outcome = carry(&config, &flows);
        assert_eq!(outcome.rack.totals().delivered, bytes, "{name}");
        assert_eq!(outcome.rack.totals().drops, outcome.count("unsolicited_dropped"), "{name}");
        assert_eq!(outcome.count("packets_marked") + outcome.count("packets_trimmed"), 0, "{name}");
    }
}

/// §6.3.1: a connection that lasts has a thread of its own, so that two messages go at once; on one connection they
/// go one behind the other.
#[test]
fn m29_connections_have_threads_of_their_own() {
    let flows = [flow(0, 1, 0, 200_000, Time::ZERO), flow(1, 1, 0, 200_000, Time::ZERO)];
    let ends = |connections: u32| {
        let stream = ::transports::stream::config::Config {
            connections,
            handshake: false,
            ..Default::default()
        };
        let transport = Transport::Uncontrolled(::transports::uncontrolled::Config {
            stream,
            ..Default::default()
        });
        let outcome = carry(&Config { transport, threads: 2, ..steady() }, &flows);
        let mut ends: Vec<_> = outcome.ends.completed.iter().map(|&(_, end)| end).collect();
        ends.sort_unstable();
        [ends[0] - Time::ZERO, ends[1] - Time::ZERO]
    };
    let [first, second] = ends(1);
    assert!(second > first * 2 - Span::from_us(20), "{first}, {second}");
    let [one, other] = ends(2);
    assert!(other < one + Span::from_us(20), "{one}, {other}");
    assert!(other < second - first / 4, "{other} with two threads, {second} with one");
}

/// What waits for its reservation is not lost: who repeats what is repeats nothing.
#[test]
fn m29_raw_sending_repeats_nothing_where_nothing_is_lost() {
    let outcome = carry(&Config { transport: raw_repeating(), ..Config::default() }, &both_ways());
    assert_eq!(outcome.rack.totals().drops, 0);
    assert_eq!(outcome.rack.totals().retransmissions, 0);
}

/// Transports that go by marks get some where the switch sets them, and answer them.
#[test]
fn m29_marks_reach_those_who_go_by_them() {
    let flows = incast(5, 4, 400_000);
    let marking = Marking::Step(Step { threshold: Bytes::new(6_000) });
    for (transport, answers) in [
        (Transport::Dctcp(::transports::dctcp::Config::default()), "mark_answers"),
        (Transport::Dcqcn(::transports::dcqcn::Config::default()), "notifications"),
    ] {
        let name = transport.name();
        let plain = Config { transport, ..Config::default() };
        let mut marked = plain.clone();
        marked.switch.marking = marking.clone();
        let [plain, marked] = [plain, marked].map(|config| carry(&config, &flows));
        assert_eq!(plain.count("packets_marked"), 0, "{name}");
        assert!(marked.count("packets_marked") > 0, "{name}");
        assert_eq!(plain.count(answers), 0, "{name}");
        assert!(marked.count(answers) > 0, "{name}");
        assert_eq!(marked.rack.totals().drops, marked.count("unsolicited_dropped"), "{name}");
    }
}

/// NDP on queues that are too short for PL2's collisions: packets are trimmed, and some headers sent
/// back; all arrives, and no slot stays reserved (which `carry` looks at).
#[test]
fn m29_trimmed_packets_come_again_and_leave_nothing_reserved() {
    let transport = Transport::Ndp(::transports::ndp::Config::default());
    let config = Config { transport, ..Config::default() };
    let flows = incast(5, 4, 400_000);
    assert_eq!(carry(&config, &flows).count("packets_trimmed"), 0, "1.5 MB are enough");
    for (header_buffer, overflow, returns) in [
        (18_000, Overflow::Return, false),
        (300, Overflow::Return, true),
        (300, Overflow::Drop, false),
    ] {
        let mut config = config.clone();
        config.switch.port_buffer = Bytes::new(3 * 1_542);
        config.switch.trimming = Some(Trimming {
            header_buffer: Bytes::new(header_buffer),
            overflow,
            ..Trimming::default()
        });
        let outcome = carry(&config, &flows);
        assert!(outcome.count("packets_trimmed") > 0, "{header_buffer}");
        assert_eq!(outcome.count("packets_returned") > 0, returns, "{header_buffer}");
        assert_eq!(outcome.rack.totals().delivered, Bytes::new(5 * 4 * 400_000));
    }
}
