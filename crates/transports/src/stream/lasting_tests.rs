//! Messages on connections that stay open, over the real network.

use kernel::{Bytes, Rate, Span, Time};
use packets::config::{Failures, Queues};
use packets::{Config, Network, Routing, Surroundings};
use proptest::prelude::*;
use rack::{Component, Fabric, Fault, Flow, NodeId};

use super::config::Config as StreamConfig;
use super::tests::quick;
use super::*;
use crate::chaos::flow;
use crate::networked::{Ends, carry, leaf_spine, network, star};
use crate::{newreno, uncontrolled};

/// Payload of a full segment, and its headers.
const SEGMENT: u64 = 1_448;
const HEADER: u64 = 52;

fn lasting(connections: u32, nagle: bool) -> StreamConfig {
    StreamConfig { connections, nagle, handshake: false, ..quick() }
}

fn free(around: &Surroundings, stream: StreamConfig) -> uncontrolled::Uncontrolled {
    uncontrolled::Config { rto_min: Span::from_us(200), stream }.build(around).unwrap()
}

fn reno(around: &Surroundings, stream: StreamConfig) -> newreno::NewReno {
    let rto_min = Span::from_us(200);
    newreno::Config { ecn: false, rto_min, stream }.build(around).unwrap()
}

fn wide() -> Queues {
    Queues { port_buffer: Bytes::new(1_500 * 400), ..Queues::default() }
}

/// When each of the flows ends, in the order in which they were given.
fn times<C: Congestion>(network: &mut Network<Stream<C>>, flows: &[Flow]) -> Vec<Time> {
    let ends = carry(network, flows);
    assert_eq!(ends.failed, []);
    let total = flows.iter().map(|flow| flow.size).sum::<Bytes>();
    assert_eq!(network.totals().delivered, total, "each byte once");
    at_rest(network);
    by_number(&ends, flows.len())
}

fn by_number(ends: &Ends, flows: usize) -> Vec<Time> {
    let mut times = vec![Time::NEVER; flows];
    for (flow, end) in &ends.completed {
        times[flow.id.get() as usize] = *end;
    }
    times
}

/// Nothing is left of flows that have ended.
fn at_rest<C: Congestion>(network: &Network<Stream<C>>) {
    let bank = network.transport();
    assert!(bank.turns.iter().all(Ring::is_empty), "turns are left");
    assert!(bank.senders.iter().all(Sender::is_idle), "segments are left");
    let connections = bank.connections.as_ref().unwrap();
    assert!((0..connections.len()).all(|place| connections.carrier(place).is_none()));
}

/// From the first bit of a packet of so much payload on its host's line to its last at its destination, in [`star`].
fn way(payload: u64) -> Span {
    let line = Rate::from_gbps(10);
    // Two wires and a switch of 500 ns each, and twice its time on a line.
    Span::from_ns(1_500) + line.send_time(Bytes::new(payload + HEADER)) * 2
}

/// The first message leaves at once; what is handed over while it does fills segments, whatever its boundaries.
#[test]
fn messages_share_segments() {
    let flows: Vec<_> = (0..100).map(|_| flow(0, 1, 100, 0)).collect();
    let make = |around: &Surroundings| free(around, lasting(1, false));
    let mut network = network(star(2, wide()).plan().unwrap(), 1, make);
    let ends = times(&mut network, &flows);
    assert!(ends.is_sorted(), "one behind the other");
    let line = Rate::from_gbps(10);
    // 100 B, then 9,900 B: six full segments and one of 1,212 B, which waits in the switch behind the sixth.
    let before = line.send_time(Bytes::new(100 + HEADER + 5 * (SEGMENT + HEADER)));
    let rest = line.send_time(Bytes::new(9_900 - 6 * SEGMENT + HEADER));
    assert_eq!(*ends.last().unwrap(), Time::ZERO + before + way(SEGMENT) + rest);
    assert_eq!(ends[0], Time::ZERO + way(100));
    // The second segment has all of 14 messages and a part of the next.
    let second = line.send_time(Bytes::new(100 + HEADER)) + way(SEGMENT);
    assert_eq!(ends[1..15], [Time::ZERO + second; 14]);
    assert!(ends[15] > ends[14]);
}

/// RFC 896: while something is not acknowledged a short segment waits, and a full one does not.
#[test]
fn nagle_holds_short_segments_back_until_all_is_acknowledged() {
    for nagle in [false, true] {
        let flows = [flow(0, 1, 100, 0), flow(0, 1, 200, 1), flow(0, 1, SEGMENT, 2)];
        let make = |around: &Surroundings| free(around, lasting(1, nagle));
        let mut network = network(star(2, wide()).plan().unwrap(), 1, make);
        let ends = times(&mut network, &flows);
        let at = |us| Time::ZERO + Span::from_us(us);
        let first = at(0) + way(100);
        assert_eq!(ends[0], first);
        if !nagle {
            assert_eq!(ends[1..], [at(1) + way(200), at(2) + way(SEGMENT)]);
            continue;
        }
        // With the third message there is a full segment, which goes; the rest, 200 B, waits for both
        // acknowledgments.
        assert_eq!(ends[1], at(2) + way(SEGMENT));
        assert_eq!(ends[2], at(2) + way(SEGMENT) + way(0) + way(200));
    }
}

/// A message goes where the fewest bytes wait.
#[test]
fn messages_are_spread_over_connections_by_what_these_carry() {
    let flows = [flow(0, 1, 1_000_000, 0), flow(0, 1, 10_000, 1), flow(0, 1, 10_000, 2)];
    let make = |around: &Surroundings| free(around, lasting(2, false));
    let mut network = network(star(2, wide()).plan().unwrap(), 1, make);
    let ends = times(&mut network, &flows);
    assert!(ends[1] < ends[2] && ends[2] < ends[0], "{ends:?}");
    // The second takes turns with the first at the line.
    let alone = Rate::from_gbps(10).send_time(Bytes::new(7 * (SEGMENT + HEADER)));
    assert!(ends[1] < Time::ZERO + Span::from_us(1) + alone * 2 + way(SEGMENT));
}

/// A window goes on where it stood.
#[test]
fn what_a_connection_has_learned_of_the_network_stays() {
    let took = |connections: u32| {
        let flows = [flow(0, 1, 100_000, 0), flow(0, 1, 100_000, 10_000)];
        let stream = StreamConfig { initial_window: 1, ..lasting(connections, false) };
        let mut network =
            network(star(2, wide()).plan().unwrap(), 1, |around| reno(around, stream));
        let ends = carry(&mut network, &flows);
        let ends = by_number(&ends, 2);
        [0, 1].map(|index| ends[index] - flows[index].start)
    };
    let [first, second] = took(0);
    assert_eq!(first, second, "each begins anew");
    let [slow, fast] = took(1);
    assert_eq!(slow, first);
    let line = Rate::from_gbps(10);
    let all = line.send_time(Bytes::new(100_000 + 70 * HEADER));
    assert!(fast < all + Span::from_us(5), "{fast} for {all} at the line's rate");
    // Windows of one, two and four segments do not last for a round trip.
    let idle = (way(SEGMENT) + way(0)) * 3 - line.send_time(Bytes::new(7 * (SEGMENT + HEADER)));
    assert_eq!(slow, fast + idle);
}

/// With a handshake a connection opens once.
#[test]
fn a_connection_opens_once() {
    let flows: Vec<_> = (0..5).map(|index| flow(0, 1, 1_000, 100 * index)).collect();
    let stream = StreamConfig { handshake: true, ..lasting(1, false) };
    let mut network = network(star(2, wide()).plan().unwrap(), 1, |around| free(around, stream));
    let ends = times(&mut network, &flows);
    let took: Vec<_> = ends.iter().zip(&flows).map(|(end, flow)| *end - flow.start).collect();
    assert_eq!(took[0], way(0) * 2 + way(1_000));
    assert_eq!(took[1..], [way(1_000); 4]);
}

/// An idle connection costs nothing but itself: keys are used again.
#[test]
fn memory_follows_open_flows() {
    let make = |around: &Surroundings| free(around, lasting(2, false));
    let mut network = network(star(3, wide()).plan().unwrap(), 1, make);
    let mut ends = Ends::default();
    for number in 0..2_000u64 {
        let id = rack::FlowId::new(number);
        let one = flow(number as u32 % 3, (number as u32 + 1) % 3, 3_000, 20 * number);
        network.offer(&Flow { id, ..one });
        network.advance(Time::ZERO + Span::from_us(20 * number + 20), &mut ends);
    }
    network.advance(Time::NEVER, &mut ends);
    assert_eq!(ends.completed.len(), 2_000);
    at_rest(&network);
    assert_eq!(network.transport().senders.len(), 6, "two connections for each of three pairs");
}

/// A host dies while connections to and from it are full, and comes back: what they carried fails, what starts
/// later arrives, and others notice nothing.
#[test]
fn a_host_that_dies_breaks_its_connections_off() {
    let at = |us: u64| Time::ZERO + Span::from_us(us);
    let fault = |until| Fault { component: Component::Node(NodeId::new(1)), at: at(300), until };
    for oracle in [false, true] {
        let failures = Failures { oracle, patience: Span::from_us(2_000), ..Failures::default() };
        let config = Config { failures, ..star(4, wide()) };
        let plan = config.plan().unwrap().with_faults(&[fault(Some(at(5_000)))]).unwrap();
        let stream = lasting(2, false);
        let mut network = network(plan, 1, |around| free(around, stream));
        let many = |src, dst, start: u64| (0..40).map(move |_| flow(src, dst, 50_000, start));
        let flows: Vec<_> = [many(0, 1, 0), many(1, 2, 0), many(2, 3, 0), many(0, 1, 20_000)]
            .into_iter()
            .flatten()
            .collect();
        let ends = carry(&mut network, &flows);
        at_rest(&network);
        let failed = |src: u32, from: u64| {
            let is_meant = |flow: &&Flow| flow.src.get() == src && flow.start == at(from);
            ends.failed.iter().filter(is_meant).count()
        };
        assert!((1..40).contains(&failed(0, 0)), "{} of 40, oracle {oracle}", failed(0, 0));
        assert!((1..40).contains(&failed(1, 0)), "{} of 40, oracle {oracle}", failed(1, 0));
        assert_eq!([failed(2, 0), failed(0, 20_000)], [0, 0], "oracle {oracle}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Spraying overtakes, small queues drop, links lose: every message arrives once and whole, those of one
    /// connection in their order, and a second run ends them at the same instants.
    #[test]
    fn messages_arrive_once_in_order_and_the_same_on_repeat(
        buffer in 1u64..30,
        loss_rate in prop_oneof![Just(0.0), 0.0..0.05f64],
        messages in prop::collection::vec((0u32..8, 1u32..3, 1u64..60_000, 0u64..200), 1..60),
        (connections, nagle, handshake) in (1u32..4, any::<bool>(), any::<bool>()),
        recovery in super::tests::recovery(),
        ack_segments in 1u32..4,
        seed: u64,
    ) {
        let mut flows: Vec<_> = messages
            .into_iter()
            .map(|(src, off, size, start)| flow(src, (src + off) % 8, size, start))
            .collect();
        flows.sort_by_key(|flow| flow.start);
        let queues = Queues { port_buffer: Bytes::new(1500 * buffer), ..Queues::default() };
        let config = Config { loss_rate, ..leaf_spine(8, 4, Routing::RandomSpray, queues) };
        let stream = StreamConfig { handshake, recovery, ack_segments, ..lasting(connections, nagle) };
        let run = |in_bytes: bool| {
            let make = |around: &Surroundings| reno(around, stream.clone());
            let mut network = network(config.plan().unwrap(), seed, make);
            network.set_wire(in_bytes).unwrap();
            times(&mut network, &flows)
        };
        let ends = run(false);
        prop_assert_eq!(&run(false), &ends);
        prop_assert_eq!(&run(true), &ends, "as bytes");
        for (later, flow) in flows.iter().enumerate().filter(|_| connections == 1) {
            let earlier = flows[..later].iter().zip(&ends);
            for (_, end) in earlier.filter(|(one, _)| (one.src, one.dst) == (flow.src, flow.dst)) {
                prop_assert!(*end <= ends[later]);
            }
        }
    }
}
