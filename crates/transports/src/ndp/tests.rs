use proptest::prelude::*;

use super::*;
use crate::chaos::{Chaos, Weather, flow, surroundings};
use crate::kinds;
use kernel::{Rate, Span, Time};
use packets::Marks;

fn chaos(config: &Config, hosts: u32, weather: Weather, seed: u64) -> Chaos<Ndp> {
    assert_eq!(config.check(), []);
    Chaos::new(Ndp::new(config, &surroundings(hosts)), hosts, weather, seed)
}

fn weather() -> impl Strategy<Value = Weather> {
    (0.0..0.2f64, 0.0..0.1f64, 0.0..0.7f64, 0.0..0.5f64, 0u64..30).prop_map(
        |(loss, twice, trim, back, jitter)| Weather {
            loss,
            twice,
            trim,
            back,
            jitter: Span::from_us(jitter),
            ..Weather::FAIR
        },
    )
}

fn flows() -> impl Strategy<Value = Vec<rack::Flow>> {
    let one = (0u32..5, 1u32..5, 1u64..200_000, 0u64..300)
        .prop_map(|(src, step, size, start)| flow(src, (src + step) % 5, size, start));
    prop::collection::vec(one, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Every byte arrives once, in order, and both halves close, whatever the weather; a second run
    /// sends the same packets at the same instants.
    #[test]
    fn every_flow_comes_through_any_weather(
        weather in weather(),
        flows in flows(),
        window in 1u32..40,
        seed in any::<u64>(),
    ) {
        let config = Config { initial_window: window, ..Config::default() };
        let mut runs = [(); 2].map(|()| {
            let mut chaos = chaos(&config, 5, weather, seed);
            chaos.carry(&flows);
            chaos.sent
        });
        let [first, second] = &mut runs;
        prop_assert_eq!(first, second);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    /// However packets are trimmed and overtake each other: while none is lost, no flow waits for a
    /// timeout.
    #[test]
    fn packets_that_overtake_each_other_need_no_timeout(
        trim in 0.0..0.7f64,
        jitter in 0u64..30,
        flows in flows(),
        window in 1u32..40,
        seed in any::<u64>(),
    ) {
        let weather = Weather { trim, jitter: Span::from_us(jitter), ..Weather::FAIR };
        let config = Config { initial_window: window, ..Config::default() };
        let mut chaos = chaos(&config, 5, weather, seed);
        chaos.carry(&flows);
        prop_assert_eq!((chaos.sum(|ndp| ndp.timeouts), chaos.sum(|ndp| ndp.silences)), (0, 0));
    }
}

fn kinds(chaos: &Chaos<Ndp>, kind: Kind) -> Vec<(Time, Packet)> {
    chaos.sent.iter().filter(|(_, packet)| packet.kind == kind).copied().collect()
}

#[test]
fn the_first_window_leaves_at_line_rate_and_then_pulls_decide() {
    let mut chaos = chaos(&Config::default(), 2, Weather::FAIR, 1);
    chaos.carry(&[flow(0, 1, 1_436 * 100, 0)]);
    let data = kinds(&chaos, Kind::DATA);
    assert_eq!(data.len(), 100);
    // 1,500 bytes at 10 Gbps take 1.2 µs. The window of 35 is longer than the round trip: the line
    // never rests.
    for (index, (at, packet)) in data.iter().enumerate() {
        assert_eq!(at.as_ps(), 1_200_000 * index as u64, "packet {index}");
        assert_eq!((packet.seq, packet.wire), (index as u64, 1_500));
    }
    assert_eq!(chaos.resent, 0);
    assert_eq!(kinds(&chaos, kinds::ACK).len(), 100);
}

#[test]
fn a_window_shorter_than_the_round_trip_limits_the_rate_to_it() {
    let config = Config { initial_window: 2, ..Config::default() };
    let mut chaos = chaos(&config, 2, Weather::FAIR, 1);
    chaos.carry(&[flow(0, 1, 1_436 * 10, 0)]);
    let data = kinds(&chaos, Kind::DATA);
    // Packet k + 2 leaves when the pull for packet k arrives: its 1.2 µs, 2 µs, the 64 bytes of the
    // acknowledgment and of the pull, 2 µs.
    let trip = 1_200_000 + 2_000_000 + 2 * 51_200 + 2_000_000;
    for k in 0..8 {
        assert_eq!((data[k + 2].0 - data[k].0).as_ps(), trip, "packet {k}");
    }
}

#[test]
fn pulls_of_many_flows_leave_exactly_a_packet_time_apart_and_in_turn() {
    for rate in [10, 28] {
        let mut around = surroundings(9);
        around.uniform_rate = Rate::from_gbps(rate);
        let ndp = Ndp::new(&Config::default(), &around);
        let mut chaos = Chaos::new(ndp, 9, Weather { trim: 0.8, ..Weather::FAIR }, 3);
        let flows: Vec<_> = (0..8).map(|src| flow(src, 8, 1_436 * 200, 0)).collect();
        chaos.run(&flows, Time::ZERO + Span::from_us(500));
        let pulls = kinds(&chaos, kinds::PULL);
        assert!(pulls.len() > 300, "{} pulls", pulls.len());
        // The line of the test is 10 Gbps: a pull waits at most for the answers queued before it.
        let first = pulls[10].0;
        for (index, (at, _)) in pulls[10..].iter().enumerate() {
            let exact = 1_500u128 * 8 * 1_000 * index as u128 / u128::from(rate);
            let late = (*at - first).as_ps() as i128 - exact as i128;
            assert!(late.abs() < 51_200 * 9, "{rate} Gbps: pull {index} is {late} ps late");
        }
        for turn in pulls[40..296].chunks_exact(8) {
            let mut peers: Vec<_> = turn.iter().map(|(_, pull)| pull.dst).collect();
            peers.sort();
            peers.dedup();
            assert_eq!(peers.len(), 8, "{turn:?}");
        }
    }
}

#[test]
fn the_most_urgent_class_is_pulled_first() {
    let config = Config { pull_order: PullOrder::Class, ..Config::default() };
    let mut chaos = chaos(&config, 5, Weather { trim: 0.9, ..Weather::FAIR }, 3);
    let mut flows: Vec<_> = (0..4).map(|src| flow(src, 4, 1_436 * 35, 0)).collect();
    flows[2].class = rack::Class::new(0);
    for place in [0, 1, 3] {
        flows[place].class = rack::Class::new(3);
    }
    chaos.carry(&flows);
    let first = chaos.fates[2].completed;
    let others = [0, 1, 3].map(|place| chaos.fates[place].completed);
    assert!(others.iter().all(|end| *end > first), "{:?}", chaos.fates);
}

#[test]
fn a_lost_pull_is_made_up_for_by_the_next() {
    let mut chaos = chaos(&Config::default(), 2, Weather::FAIR, 1);
    chaos.loses = Box::new(|packet| packet.kind == kinds::PULL && packet.seq % 2 == 1);
    chaos.carry(&[flow(0, 1, 1_436 * 400, 0)]);
    // No timeout: all is sent within the time of 400 packets and a round trip or two.
    let end = chaos.fates[0].completed.unwrap();
    assert!(end < Time::ZERO + Span::from_us(480 + 20), "{end}");
    assert_eq!(chaos.sum(|ndp| ndp.timeouts), 0);
}

#[test]
fn a_lost_packet_is_sent_again_after_the_timeout_alone() {
    for lost in [0, 5, 9] {
        let mut chaos = chaos(&Config::default(), 2, Weather::FAIR, 1);
        let mut left = 1;
        chaos.loses = Box::new(move |packet| {
            let hit = packet.kind == Kind::DATA && packet.seq == lost && left > 0;
            left -= u32::from(hit);
            hit
        });
        chaos.carry(&[flow(0, 1, 1_436 * 10, 0)]);
        assert_eq!((chaos.resent, chaos.sum(|ndp| ndp.timeouts)), (1, 1), "packet {lost}");
        let end = chaos.fates[0].completed.unwrap();
        assert!(end > Time::ZERO + Span::from_us(1_000), "{end}");
        assert!(end < Time::ZERO + Span::from_us(1_030), "{end}");
    }
}

#[test]
fn a_trimmed_last_packet_needs_no_timeout() {
    let mut chaos = chaos(&Config::default(), 2, Weather { trim: 0.5, ..Weather::FAIR }, 5);
    for packets in 1..60 {
        chaos.run(
            &[flow(0, 1, 1_436 * packets, 1_000 * packets)],
            Time::ZERO + Span::from_us(1_000 * (packets + 1)),
        );
        let end = chaos.fates[packets as usize - 1].closed;
        assert!(end.is_some(), "{packets} packets");
    }
    assert_eq!(chaos.sum(|ndp| ndp.timeouts), 0);
}

fn answer(packet: &Packet, kind: Kind) -> Packet {
    Packet { seq: packet.seq, ..packets::reply(packet, kind, 64) }
}

#[test]
fn a_returned_window_begins_again_with_one_packet() {
    let ndp = &mut Ndp::new(&Config::default(), &surroundings(2));
    let mut out = Outbox::new(Time::ZERO);
    let flow = rack::Flow { size: Bytes::new(1_436 * 8), ..flow(0, 1, 1, 0) };
    let key = FlowKey::new(0);
    ndp.start(
        &Opening { key, label: FlowKey::label(key.place(), false), flow, paths: 4 },
        &mut out,
    );
    let pull = |ndp: &mut Ndp, out: &mut Outbox| {
        std::iter::from_fn(|| ndp.pull(flow.src, Line::OPEN, out)).collect::<Vec<_>>()
    };
    let window = pull(ndp, &mut out);
    assert_eq!(window.len(), 8);
    let back = |packet: &Packet| Packet {
        src: packet.dst,
        dst: packet.src,
        marks: packet.marks | Marks::TRIMMED | Marks::RETURNED,
        ..*packet
    };
    for packet in &window[..7] {
        ndp.receive(flow.src, &back(packet), &mut out);
        assert_eq!(pull(ndp, &mut out), [], "others are still expected");
    }
    ndp.receive(flow.src, &back(&window[7]), &mut out);
    let probe = pull(ndp, &mut out);
    assert_eq!(probe.len(), 1, "nothing else is expected: one packet at once");
    // Each arrival's pull sends one more; with the eighth acknowledgment, one of those returned goes
    // out beside it.
    let mut sent = probe[0];
    for arrival in 1..=7 {
        ndp.receive(flow.src, &answer(&sent, kinds::ACK), &mut out);
        assert_eq!(pull(ndp, &mut out), [], "arrival {arrival}");
        let asks = Packet { seq: arrival, ack: arrival, ..answer(&sent, kinds::PULL) };
        ndp.receive(flow.src, &asks, &mut out);
        let next = pull(ndp, &mut out);
        assert_eq!(next.len(), 1, "arrival {arrival}");
        sent = next[0];
    }
}

#[test]
fn tokens_of_returned_packets_go_out_again_one_for_eight_acknowledgments() {
    let ndp = &mut Ndp::new(&Config::default(), &surroundings(2));
    let mut out = Outbox::new(Time::ZERO);
    let flow = rack::Flow { size: Bytes::new(1_436 * 1_000), ..flow(0, 1, 1, 0) };
    ndp.start(
        &Opening { key: FlowKey::new(0), label: FlowKey::label(0, false), flow, paths: 4 },
        &mut out,
    );
    let pull = |ndp: &mut Ndp, out: &mut Outbox| {
        std::iter::from_fn(|| ndp.pull(flow.src, Line::OPEN, out)).collect::<Vec<_>>()
    };
    let window = pull(ndp, &mut out);
    let marks = window[0].marks | Marks::TRIMMED | Marks::RETURNED;
    let back = Packet { src: flow.dst, dst: flow.src, marks, ..window[0] };
    ndp.receive(flow.src, &back, &mut out);
    for (count, packet) in window[1..20].iter().enumerate() {
        ndp.receive(flow.src, &answer(packet, kinds::ACK), &mut out);
        let sent: Vec<_> = pull(ndp, &mut out).iter().map(|packet| packet.seq).collect();
        assert_eq!(sent, if count == 7 { vec![0] } else { vec![] }, "acknowledgment {count}");
    }
}

#[test]
fn pulls_that_can_bring_nothing_are_not_sent() {
    let mut chaos = chaos(&Config::default(), 2, Weather::FAIR, 1);
    chaos.carry(&[flow(0, 1, 1_436 * 10, 0)]);
    // The window holds the whole flow, and it arrives at line rate, as fast as pulls may leave. Only
    // pulls before the last packet was there can have left.
    let pulls = kinds(&chaos, kinds::PULL).len();
    assert!(pulls <= 9, "{pulls}");
    let data = kinds(&chaos, Kind::DATA).len();
    assert_eq!(data, 10);
}

#[test]
fn memory_is_given_back_and_keys_are_used_again() {
    let mut ndp = Ndp::new(&Config::default(), &surroundings(2));
    let mut out = Outbox::new(Time::ZERO);
    let flow = flow(0, 1, 1_436 * 3, 0);
    let key = FlowKey::new(0);
    for _ in 0..1_000 {
        ndp.start(
            &Opening { key, label: FlowKey::label(key.place(), false), flow, paths: 4 },
            &mut out,
        );
        ndp.pull(flow.src, Line::OPEN, &mut out).unwrap();
        ndp.abandon(key, &mut out);
        assert_eq!(ndp.pull(flow.src, Line::OPEN, &mut out), None);
    }
    assert_eq!(ndp.senders.len(), 1);
}

#[test]
fn bad_settings_are_named() {
    let config = Config {
        mtu: Bytes::new(64),
        header: Bytes::new(64),
        initial_window: 0,
        paths_max: 0,
        timeout: Span::ZERO,
        ..Config::default()
    };
    let keys: Vec<_> = config.check().into_iter().map(|problem| problem.key).collect();
    assert_eq!(keys, ["mtu", "initial_window", "paths_max", "timeout"]);
    assert_eq!(Config::jumbo().check(), []);
    assert_eq!(Config::jumbo().framing().payload, 8_936);
}
