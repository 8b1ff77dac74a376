use proptest::prelude::*;

use super::*;
use crate::chaos::{Chaos, Weather, flow, surroundings};
use crate::kinds;

/// Payload of a full packet.
const FULL: u64 = 1_442;

fn chaos(config: &Config, hosts: u32, weather: Weather, seed: u64) -> Chaos<Dcqcn> {
    assert_eq!(config.check(), []);
    Chaos::new(Dcqcn::new(config, &surroundings(hosts)), hosts, weather, seed)
}

fn kinds(chaos: &Chaos<Dcqcn>, kind: Kind) -> Vec<(Time, Packet)> {
    chaos.sent.iter().filter(|(_, packet)| packet.kind == kind).copied().collect()
}

fn weather() -> impl Strategy<Value = Weather> {
    (0.0..0.1f64, 0.0..0.1f64, 0.0..0.5f64, 0u64..4).prop_map(|(loss, twice, mark, jitter)| {
        Weather { loss, twice, mark, jitter: Span::from_us(jitter), ..Weather::FAIR }
    })
}

fn flows() -> impl Strategy<Value = Vec<rack::Flow>> {
    let one = (0u32..5, 1u32..5, 1u64..100_000, 0u64..300)
        .prop_map(|(src, step, size, start)| flow(src, (src + step) % 5, size, start));
    prop::collection::vec(one, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Every byte arrives once, in order, and both halves close, whatever the weather; a second run
    /// sends the same packets at the same instants.
    #[test]
    fn every_flow_comes_through_any_weather(
        weather in weather(),
        flows in flows(),
        window in prop_oneof![Just(0u32), 2u32..40],
        seed in any::<u64>(),
    ) {
        let ack_every = if window == 0 { 16 } else { window.div_ceil(2) };
        let config = Config { window, ack_every, ..Config::default() };
        let [first, second] = [(); 2].map(|()| {
            let mut chaos = chaos(&config, 5, weather, seed);
            chaos.carry(&flows);
            chaos.sent
        });
        prop_assert_eq!(first, second);
    }
}

#[test]
fn a_flow_alone_has_the_line_and_is_acknowledged_every_sixteen_packets() {
    let mut chaos = chaos(&Config::default(), 2, Weather::FAIR, 1);
    chaos.carry(&[flow(0, 1, FULL * 100, 0)]);
    for (index, (at, packet)) in kinds(&chaos, Kind::DATA).iter().enumerate() {
        assert_eq!((at.as_ps(), packet.seq), (1_200_000 * index as u64, index as u64));
    }
    let acks: Vec<_> = kinds(&chaos, kinds::ACK).iter().map(|(_, ack)| ack.ack).collect();
    assert_eq!(acks, [16, 32, 48, 64, 80, 96, 100]);
}

#[test]
fn packets_leave_at_the_limiters_rate_exactly() {
    let mut dcqcn = Dcqcn::new(&Config::default(), &surroundings(2));
    let (mut out, key) = (Outbox::new(Time::ZERO), FlowKey::new(0));
    let flow = flow(0, 1, FULL * 1_000, 0);
    dcqcn.start(
        &Opening { key, label: FlowKey::label(key.place(), false), flow, paths: 1 },
        &mut out,
    );
    let cnp = Packet { kind: kinds::CNP, ..Packet::default() };
    dcqcn.receive(flow.src, &cnp, &mut out);
    dcqcn.receive(flow.src, &cnp, &mut out);
    // 10 Gbps, halved twice: 1,500 bytes take 4.8 µs.
    for packet in 0..10u64 {
        let due = Time::from_ps(4_800_000 * packet);
        if packet > 0 {
            out.set_now(Time::from_ps(due.as_ps() - 1));
            assert_eq!(dcqcn.pull(flow.src, Line::OPEN, &mut out), None);
            let alarm = packets::Effect::WakeAt(flow.src, due);
            assert!(out.drain().any(|effect| effect == alarm), "packet {packet}");
        }
        out.set_now(due);
        assert_eq!(dcqcn.pull(flow.src, Line::OPEN, &mut out).unwrap().seq, packet);
    }
    // A flow that the line kept waiting for 30 µs sends one packet more than its rate, not six.
    out.set_now(Time::from_ps(4_800_000 * 10 + 30_000_000));
    assert!(dcqcn.pull(flow.src, Line::OPEN, &mut out).is_some());
    assert!(dcqcn.pull(flow.src, Line::OPEN, &mut out).is_some());
    assert_eq!(dcqcn.pull(flow.src, Line::OPEN, &mut out), None);
}

#[test]
fn a_receiver_notifies_at_most_once_in_fifty_microseconds() {
    let mut chaos = chaos(&Config::default(), 2, Weather { mark: 1.0, ..Weather::FAIR }, 1);
    chaos.carry(&[flow(0, 1, FULL * 400, 0)]);
    let notifications = kinds(&chaos, kinds::CNP);
    assert!(notifications.len() > 5);
    for pair in notifications.windows(2) {
        assert!(pair[1].0 - pair[0].0 >= Span::from_us(50) - Span::from_ps(100_000), "{pair:?}");
    }
    // With every packet marked each interval brings one: the rate falls to a sliver of the line.
    let data = kinds(&chaos, Kind::DATA);
    let (first, last) = (data[0].0, data[data.len() - 1].0);
    assert!(last - first > Span::from_us(480) * 4, "{last}");
}

#[test]
fn a_lost_packet_brings_one_refusal_and_everything_after_it_again() {
    let mut chaos = chaos(&Config::default(), 2, Weather::FAIR, 1);
    let mut left = 1;
    chaos.loses = Box::new(move |packet| {
        let hit = packet.kind == Kind::DATA && packet.seq == 20 && left > 0;
        left -= u32::from(hit);
        hit
    });
    chaos.carry(&[flow(0, 1, FULL * 100, 0)]);
    assert_eq!(kinds(&chaos, kinds::NACK).len(), 1);
    // The gap shows with packet 21; its refusal is back 1.2 + 2 + 0.05 + 2 µs after packet 21's
    // first bit, when packets 21 to 25 have been sent and 25 is just ending.
    assert_eq!(chaos.resent, 6);
    assert_eq!(chaos.sum(|dcqcn| dcqcn.timeouts), 0);
}

#[test]
fn a_lost_tail_waits_for_the_timeout() {
    let mut chaos = chaos(&Config::default(), 2, Weather::FAIR, 1);
    let mut left = 1;
    chaos.loses = Box::new(move |packet| {
        let hit = packet.kind == Kind::DATA && packet.seq == 9 && left > 0;
        left -= u32::from(hit);
        hit
    });
    chaos.carry(&[flow(0, 1, FULL * 10, 0)]);
    // Ten packets bring no acknowledgment, so that all of them count as lost; the answer to the
    // first says that only the last is missing, when six have left.
    assert_eq!((chaos.resent, chaos.sum(|dcqcn| dcqcn.timeouts)), (6, 1));
    let end = chaos.fates[0].completed.unwrap();
    assert!(end > Time::ZERO + Span::from_us(4_000) && end < Time::ZERO + Span::from_us(4_030));
}

#[test]
fn a_window_limits_what_is_under_way() {
    let config = Config { window: 4, ack_every: 2, ..Config::default() };
    let mut chaos = chaos(&config, 2, Weather::FAIR, 1);
    chaos.carry(&[flow(0, 1, FULL * 40, 0)]);
    let data = kinds(&chaos, Kind::DATA);
    // Packet k + 4 waits for the acknowledgment of k + 1 where k is even: its 1.2 µs on the line, 2 µs,
    // 0.0512 µs, 2 µs.
    for k in (0..36).step_by(2) {
        let gap = (data[k + 4].0 - data[k + 1].0).as_ps();
        assert_eq!(gap, 1_200_000 + 2_000_000 + 51_200 + 2_000_000, "packet {k}");
    }
}

#[test]
fn flows_of_a_host_share_its_line_fairly() {
    let mut chaos = chaos(&Config::default(), 4, Weather::FAIR, 1);
    let flows = [1, 2, 3].map(|dst| flow(0, dst, FULL * 100, 0));
    chaos.run(&flows, Time::ZERO + Span::from_us(180));
    let mut counts = [0; 3];
    kinds(&chaos, Kind::DATA).iter().for_each(|(_, data)| counts[data.dst.index() - 1] += 1);
    assert_eq!(counts.iter().sum::<i32>(), 150);
    assert!(counts.iter().all(|count| (49..=51).contains(count)), "{counts:?}");
}

#[test]
fn bad_settings_are_named() {
    let config = Config {
        mtu: Bytes::new(58),
        priority: 0,
        window: 10,
        ack_every: 6,
        gain: 0.0,
        fast_recovery: 0,
        byte_counter: Bytes::ZERO,
        rate_min: kernel::Rate::default(),
        timer: Span::ZERO,
        alpha_interval: Span::from_us(50),
        ..Config::default()
    };
    let keys: Vec<_> = config.check().into_iter().map(|problem| problem.key).collect();
    let expected = [
        "mtu",
        "control",
        "priority",
        "ack_every",
        "gain",
        "fast_recovery",
        "byte_counter",
        "rate_min",
        "timer",
        "alpha_interval",
    ];
    assert_eq!(keys, expected);
}
