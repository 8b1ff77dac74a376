//! The family on the real network: queues that drop and mark, many paths, keys that are used again.

use kernel::{Bytes, Rate, Span, Time};
use packets::config::{
    CreditFlow, Engine, FlowControl, Host, Law, Marking, PerFlow, Pfc, Queues, Step,
};
use packets::{Config, Routing};
use proptest::prelude::*;
use rack::{Class, Fabric, Flow};

use super::tests::quick;
use super::*;
use crate::chaos::flow;
use crate::networked::{Ends, carry, leaf_spine, network, permutation, star};
use crate::{cubic, dctcp, newreno, swift};

const RTO_MIN: Span = Span::from_us(200);

/// Drop-tail queues of so many packets.
fn tail(packets: u64) -> Queues {
    Queues { port_buffer: Bytes::new(1500 * packets), ..Queues::default() }
}

/// The same, with marks above a threshold in packets.
fn marking(packets: u64, threshold: u64) -> Queues {
    let step = Step { threshold: Bytes::new(1500 * threshold) };
    Queues { marking: Marking::Step(step), ..tail(packets) }
}

fn reno(around: &Surroundings) -> newreno::NewReno {
    newreno::Config { ecn: false, rto_min: RTO_MIN, stream: quick() }.build(around).unwrap()
}

fn cubic(around: &Surroundings) -> cubic::Cubic {
    let config = cubic::Config { rto_min: RTO_MIN, stream: quick(), ..cubic::Config::default() };
    config.build(around).unwrap()
}

fn dctcp(around: &Surroundings) -> dctcp::Dctcp {
    let config = dctcp::Config { rto_min: RTO_MIN, stream: quick(), ..dctcp::Config::default() };
    config.build(around).unwrap()
}

fn swift(around: &Surroundings) -> swift::Swift {
    let config = swift::Config { rto_min: RTO_MIN, stream: quick(), ..swift::Config::default() };
    config.build(around).unwrap()
}

/// `sources` hosts send 1 MB each to the last one.
fn incast(sources: u32) -> Vec<Flow> {
    (0..sources).map(|src| flow(src, sources, 1_000_000, 0)).collect()
}

/// Runs an incast of 16 and gives the share of the receiver's line and the retransmissions.
fn incast_under<C: Congestion>(
    queues: Queues,
    make: impl FnOnce(&Surroundings) -> Stream<C>,
) -> (f64, Ends, u64) {
    let plan = star(17, queues).plan().unwrap();
    let mut network = network(plan, 1, make);
    let ends = carry(&mut network, &incast(16));
    assert!(ends.failed.is_empty());
    let sent = network.totals().retransmissions;
    (ends.share(1, Rate::from_gbps(10)), ends, sent)
}

#[test]
fn dctcps_incast_fills_the_line_and_loses_nothing_where_marks_come_in_time() {
    let (share, _, resent) = incast_under(marking(400, 20), dctcp);
    assert!(share > 0.93, "{share} of the line");
    assert_eq!(resent, 0);
}

#[test]
fn swifts_incast_fills_the_line_and_loses_nothing() {
    let (share, _, resent) = incast_under(tail(400), swift);
    assert!(share > 0.9, "{share} of the line");
    assert_eq!(resent, 0);
}

#[test]
fn incasts_of_reno_and_cubic_end_in_spite_of_losses() {
    for (share, _, resent) in [incast_under(tail(100), reno), incast_under(tail(100), cubic)] {
        assert!(share > 0.7, "{share} of the line");
        assert!(resent > 0, "the first windows alone overflow a hundred packets");
    }
}

/// Every kind of window ends every flow where a queue holds one packet.
#[test]
fn queues_of_one_packet_are_survived() {
    let flows = permutation(8, 3, 200_000);
    let config = leaf_spine(8, 4, Routing::Ecmp, tail(1));
    macro_rules! survives {
        ($($make:expr),*) => {$(
            let ends = carry(&mut network(config.plan().unwrap(), 1, $make), &flows);
            assert_eq!(ends.completed.len(), 8);
        )*};
    }
    survives!(reno, cubic, dctcp, swift);
}

/// Where links hold back instead of dropping, nothing is retransmitted, and a held line wakes in time.
#[test]
fn links_that_hold_back_lose_nothing() {
    let holds = [
        FlowControl::Pfc(Pfc::default()),
        FlowControl::Credit(CreditFlow::default()),
        FlowControl::PerFlow(PerFlow::default()),
    ];
    for flow_control in holds {
        let queues = Queues { flow_control, ..tail(2_000) };
        let (share, _, resent) = incast_under(queues.clone(), |around| {
            // Queues this long outlast the tests' short timeouts.
            let rto_min = Span::from_us(20_000);
            let config = newreno::Config { rto_min, stream: quick(), ecn: false };
            config.build(around).unwrap()
        });
        assert!(share > 0.9, "{share} of the line under {queues:?}");
        assert_eq!(resent, 0, "{queues:?}");
    }
}

/// A spine dies for good, and the link of a host is down for a millisecond: with routes a
/// millisecond late, every flow to a living host ends, and the network fails none.
#[test]
fn a_dead_spine_and_a_link_that_flaps_are_survived() {
    let at = |us: u64| Time::ZERO + Span::from_us(us);
    let faults = [
        rack::Fault { component: rack::Component::Spine(0), at: at(30), until: None },
        rack::Fault {
            component: rack::Component::NodeLink(NodeId::new(2)),
            at: at(200),
            until: Some(at(1_200)),
        },
    ];
    let flows = permutation(8, 3, 1_000_000);
    let config = leaf_spine(8, 4, Routing::Ecmp, tail(100));
    macro_rules! survives {
        ($($make:expr),*) => {$(
            let plan = config.plan().unwrap().with_faults(&faults).unwrap();
            let ends = carry(&mut network(plan, 1, $make), &flows);
            assert_eq!((ends.completed.len(), ends.failed.len()), (8, 0));
        )*};
    }
    survives!(reno, cubic, dctcp, swift);
}

#[test]
fn a_permutation_over_one_switch_runs_at_the_line() {
    let plan = star(8, tail(400)).plan().unwrap();
    let mut network = network(plan, 1, reno);
    let ends = carry(&mut network, &permutation(8, 3, 10_000_000));
    let share = ends.share(8, Rate::from_gbps(10));
    // Each line carries the acknowledgments of another flow too.
    assert!(share > 0.995 * 1448.0 / (1500.0 + 52.0), "{share} of the lines");
}

#[test]
fn keys_are_used_again_so_memory_follows_open_flows() {
    let plan = star(4, tail(100)).plan().unwrap();
    let mut network = network(plan, 1, cubic);
    let mut ends = Ends::default();
    // Two thousand flows, one each 20 us; one takes about 15 us.
    for number in 0..2_000u32 {
        let (src, step) = (number % 4, 1 + number / 4 % 3);
        let start = u64::from(number) * 20;
        let id = rack::FlowId::new(number.into());
        network.offer(&Flow { id, ..flow(src, (src + step) % 4, 5_000, start) });
        network.advance(Time::ZERO + Span::from_us(start + 20), &mut ends);
    }
    network.advance(Time::NEVER, &mut ends);
    assert_eq!(ends.completed.len(), 2_000);
    let bank = network.transport();
    assert_eq!(bank.open_halves(), 0);
    assert!(bank.senders.len() < 10, "{} places", bank.senders.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Spraying overtakes, small queues drop, marks and random losses come on top: all flows end,
    /// and a second run ends them at the same instants.
    #[test]
    fn sprayed_flows_over_small_queues_all_end_and_the_same_on_repeat(
        buffer in 1u64..30,
        loss_rate in prop_oneof![Just(0.0), 0.0..0.05f64],
        flows in prop::collection::vec((0u32..8, 1u32..8, 1u64..200_000, 0u64..200), 1..12),
        which in 0u8..4,
        seed: u64,
    ) {
        let flows: Vec<_> = flows
            .into_iter()
            .map(|(src, off, size, start)| flow(src, (src + off) % 8, size, start))
            .collect();
        let queues = marking(buffer, buffer / 2);
        let config = packets::Config {
            loss_rate,
            ..leaf_spine(8, 4, Routing::RandomSpray, queues)
        };
        let run = || -> Vec<(Flow, Time)> {
            let plan = config.plan().unwrap();
            match which {
                0 => carry(&mut network(plan, seed, reno), &flows),
                1 => carry(&mut network(plan, seed, cubic), &flows),
                2 => carry(&mut network(plan, seed, dctcp), &flows),
                _ => carry(&mut network(plan, seed, swift), &flows),
            }
            .completed
        };
        let ends = run();
        prop_assert_eq!(ends.len(), flows.len());
        prop_assert_eq!(run(), ends);
    }
}

/// Round trips that the summary tells of are the network's, whatever the hosts take.
#[test]
fn round_trips_leave_out_what_is_spent_in_hosts() {
    let trips = |host: Host| {
        let config = Config { host, ..star(3, tail(400)) };
        let stream = config::Config { handshake: false, round_trips: true, ..quick() };
        let make = |around: &Surroundings| {
            swift::Config { stream, ..swift::Config::default() }.build(around).unwrap()
        };
        let mut network = network(config.plan().unwrap(), 1, make);
        let classed = Flow { class: Class::new(3), ..flow(1, 2, 1_000, 0) };
        assert_eq!(carry(&mut network, &[flow(0, 2, 1_448, 0), classed]).completed.len(), 2);
        let trips = network.details()["round_trips"].clone();
        ["class_0", "class_3"].map(|class| {
            assert_eq!(trips[class]["count"], 1, "{trips}");
            trips[class]["p50_seconds"].as_f64().unwrap()
        })
    };
    let plain = trips(Host::default());
    let ns = |ns| Some(Span::from_ns(ns));
    let engine = Engine { operation: ns(800), packet: ns(2_345), control: ns(1), law: Law::Fixed };
    let slow = Host { latency: ns(900), send_latency: ns(700), engine, ..Host::default() };
    for (plain, slow) in plain.into_iter().zip(trips(slow)) {
        // A histogram keeps a thousandth, an acknowledgment whole nanoseconds.
        assert!((plain - slow).abs() < plain * 1e-3 + 2e-9, "{slow} s for {plain} s");
    }
}

/// At a host's own line, and in the network's queues, flows go by their classes where those have queues of their own.
#[test]
fn urgent_flows_do_not_wait_for_others_of_their_host() {
    let took = |class_priorities: Vec<u8>, with_bulk: bool| {
        let stream =
            config::Config { handshake: false, initial_window: 1_000, class_priorities, ..quick() };
        let make = |around: &Surroundings| {
            let config = newreno::Config { ecn: false, rto_min: RTO_MIN, stream };
            config.build(around).unwrap()
        };
        let mut network = network(star(3, tail(2_000)).plan().unwrap(), 1, make);
        let start = Time::ZERO + Span::from_us(100);
        let mut flows = vec![Flow { start, ..flow(0, 2, 100_000, 0) }];
        if with_bulk {
            flows.push(Flow { class: Class::new(1), ..flow(0, 1, 1_000_000, 0) });
            flows.push(Flow { class: Class::new(1), ..flow(1, 2, 1_000_000, 0) });
        }
        let ends = carry(&mut network, &flows);
        let (flow, end) = ends.completed.iter().find(|(flow, _)| flow.id.get() == 0).unwrap();
        (*end - flow.start).as_seconds()
    };
    let alone = took(vec![], false);
    let (mixed, classed) = (took(vec![], true), took(vec![0, 1], true));
    assert!(mixed > 1.8 * alone, "{mixed} s, {alone} s alone");
    assert!(classed < 1.1 * alone, "{classed} s, {alone} s alone");
}
