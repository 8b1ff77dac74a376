//! Targets and steps by hand, and a queue that stays where the target says.

use kernel::{Bytes, Rate};
use proptest::prelude::*;

use super::*;
use crate::newreno::tests::{acked, start};
use crate::testing::{Bottleneck, ENDLESS, Rig, around, check_near};

fn plan() -> Plan {
    Config::default().control()
}

#[test]
fn the_target_scales_with_hops_and_with_the_window() {
    // alpha = 100 us / (1 / √0.1 - 1 / √100) = 32.6554 us; beta = -alpha / 10.
    let plan = plan();
    let target = |window, hops| plan.target(window, hops).as_ps() as f64 / 1e6;
    let near =
        |found: f64, us: f64| assert!((found - us).abs() < 1e-3, "{found} us, expected {us}");
    near(target(100.0, 0), 25.0);
    near(target(400.0, 0), 25.0);
    near(target(0.1, 0), 125.0);
    near(target(0.01, 0), 125.0);
    near(target(100.0, 5), 30.0);
    // 32.6554 × (1 / √1 - 0.1) = 29.3899; × (1 / √25 - 0.1) = 3.2655.
    near(target(1.0, 1), 55.3899);
    near(target(25.0, 0), 28.2655);
}

fn aimd(window: f64) -> Aimd {
    Aimd { window, decreased: None }
}

/// One acknowledgment of a segment with this delay against a target of 50 us.
#[track_caller]
fn check_step(window: f64, delay_us: u64, expected: f64) {
    let mut aimd = aimd(window);
    let (delay, target) = (Span::from_us(delay_us), Span::from_us(50));
    aimd.acked(&Config::default(), delay, target, 1.0, &acked(1_000));
    assert!((aimd.window - expected).abs() < 1e-9, "{} from {window}", aimd.window);
}

#[test]
fn a_window_grows_and_shrinks_as_algorithm_1_says() {
    check_step(10.0, 49, 10.1);
    check_step(0.5, 49, 1.5);
    // 1 - 0.8 × (60 - 50) / 60 = 0.86667; at the target itself, no cut.
    check_step(10.0, 60, 10.0 * (1.0 - 0.8 / 6.0));
    check_step(10.0, 50, 10.0);
    // 1 - 0.8 × 950 / 1000 = 0.24 is below 1 - max_mdf.
    check_step(10.0, 1_000, 5.0);
    check_step(0.001, 1_000, 0.001);
    check_step(5_000.0, 10, 4_096.0);
}

#[test]
fn a_window_shrinks_once_a_round_trip() {
    let mut aimd = aimd(16.0);
    let config = Config::default();
    let mut step = |us: u64| {
        let acked =
            Acked { now: Time::ZERO + Span::from_us(us), rtt: Span::from_us(100), ..acked(1_000) };
        aimd.acked(&config, Span::from_us(1_000), Span::from_us(50), 1.0, &acked);
        aimd.window
    };
    assert_eq!([0, 40, 99, 100, 150, 200].map(&mut step), [8.0, 8.0, 8.0, 4.0, 4.0, 2.0]);
}

#[test]
fn losses_cut_by_the_most_and_timeouts_in_a_row_reset() {
    let plan = plan();
    let mut window = Window::new(&plan, &start(64));
    window.rtt = Span::from_us(20);
    let mut at = |us: u64, signal| {
        window.congested(&plan, signal, 0, Time::ZERO + Span::from_us(us));
        window.fabric.window
    };
    assert_eq!(at(100, Signal::Loss), 32.0);
    assert_eq!(at(110, Signal::Loss), 32.0);
    assert_eq!(at(120, Signal::Timeout(Expiry::First)), 16.0);
    let more = [200, 300, 400].map(|us| at(us, Signal::Timeout(Expiry::Repeated)));
    assert_eq!(more, [8.0, 4.0, 2.0]);
    assert_eq!(at(500, Signal::Timeout(Expiry::Repeated)), 0.001);
}

#[test]
fn the_endpoints_delay_moves_its_own_window() {
    let plan = plan();
    let mut window = Window::new(&plan, &start(10));
    let now = Time::ZERO + Span::from_us(500);
    let rtt = Span::from_us(1_000);
    // The receiver sat on it for all but 10 us of the round trip: the fabric is not to blame.
    let late = Acked { now, rtt, endpoint: Span::from_us(990), ..acked(1_000) };
    window.acked(&plan, &late);
    assert!(window.fabric.window > 10.0);
    // Smoothed, 990 / 8 = 123.75 us: 1 - 0.8 × 73.75 / 123.75.
    let expected = 4_096.0 * (1.0 - 0.8 * 73.75 / 123.75);
    assert!((window.endpoint.window - expected).abs() < 0.01, "{}", window.endpoint.window);
    assert_eq!(window.effective(), window.fabric.window);
}

#[test]
fn below_one_segment_the_gap_is_the_round_trip_over_the_window() {
    let plan = plan();
    let mut window = Window::new(&plan, &start(1));
    window.rtt = Span::from_us(40);
    window.fabric.window = 0.25;
    assert_eq!((window.gap(), window.window()), (Span::from_us(160), 1_000));
    window.fabric.window = 1.5;
    assert_eq!((window.gap(), window.window()), (Span::ZERO, 1_500));
}

proptest! {
    /// Whatever comes, windows stay within their bounds and a decrease is at most max_mdf.
    #[test]
    fn windows_stay_within_bounds(delays in prop::collection::vec((1u64..2_000, 0u64..200), 1..200)) {
        let plan = plan();
        let mut window = Window::new(&plan, &start(10));
        let mut now = Time::ZERO;
        for (rtt, pause) in delays {
            now += Span::from_us(pause);
            let before = window.fabric.window;
            window.acked(&plan, &Acked { now, rtt: Span::from_us(rtt), ..acked(1_000) });
            let after = window.fabric.window;
            prop_assert!((0.001..=4_096.0).contains(&after));
            prop_assert!(after >= before * 0.5 && after <= before + 1.0);
        }
    }
}

fn rig(flows: u32) -> Rig<Swift> {
    let stream =
        StreamConfig { receive_window: Bytes::new(1448 * 2_000), ..StreamConfig::default() };
    let bank = Config { stream, ..Config::default() }.build(&around(flows)).unwrap();
    let bottleneck = Bottleneck {
        rate: Rate::from_gbps(10),
        rtt: Span::from_us(10),
        buffer: 5_000,
        threshold: usize::MAX,
        hops: 3,
    };
    let mut rig = Rig::new(bank, flows, ENDLESS, bottleneck);
    rig.run(Span::from_us(200_000), |_, _| ());
    rig.seen.clear();
    rig
}

/// What a rig shows over 300 ms: mean delay, target at the mean window, rate, Jain's index.
fn measure(flows: u32) -> (f64, f64, f64, f64) {
    let mut rig = rig(flows);
    let before = rig.delivered.clone();
    let (mut sum, mut count) = (0.0, 0.0);
    rig.run(Span::from_us(300_000), |_, bank| {
        for flow in 0..flows {
            sum += bank.sender(packets::FlowKey::new(flow)).control.effective();
            count += 1.0;
        }
    });
    assert_eq!(rig.drops, 0);
    let (_, queue, _) = rig.queue();
    let target = plan().target(sum / count, 3).as_ps() as f64 / 1e6;
    let shares: Vec<_> = rig.delivered.iter().zip(&before).map(|(a, b)| (a - b) as f64).collect();
    let total: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    (
        10.0 + (queue + 1.0) * 1.2,
        target,
        total * 8.0 / 0.3,
        total * total / (f64::from(flows) * squares),
    )
}

/// The payload's share of 10 Gbps.
const FULL: f64 = 10e9 * 1448.0 / 1500.0;

/// §3.2: windows settle where the delay is the target, which their own size sets.
#[test]
fn slow_the_delay_settles_at_the_target() {
    for flows in [1, 4, 20] {
        let (delay, target, rate, fairness) = measure(flows);
        check_near("delay", delay, target, 0.05);
        check_near("rate", rate, FULL, 0.002);
        assert!(fairness > 0.99, "Jain's index {fairness} of {flows}");
    }
}

/// §3.4: more flows than packets fit the path. Windows are fractions; Algorithm 1 adds a whole
/// segment to them, so they swing, but nothing is dropped, all get their share, and the delay stays
/// below the largest target.
#[test]
fn slow_fractions_of_a_segment_carry_more_flows_than_packets_fit() {
    let (delay, _, rate, fairness) = measure(200);
    assert!(delay < 25.0 + 3.0 + 100.0, "{delay} us");
    assert!(rate > 0.85 * FULL, "{rate} bit/s");
    assert!(fairness > 0.98, "Jain's index {fairness}");
}

#[test]
fn bad_tables_are_refused_one_message_a_key() {
    let config = Config {
        additive_increase: 0.0,
        beta: -1.0,
        decrease_max: 1.0,
        base_target: Span::ZERO,
        endpoint_target: Span::ZERO,
        endpoint_weight: 0.0,
        flow_window_min: 0.0,
        flow_window_max: 0.0,
        window_min: 2.0,
        window_max: 0.5,
        resets_after: 0,
        ..Config::default()
    };
    let found = config.check();
    assert_eq!(found.len(), 11, "{found:?}");
    assert_eq!(found[2].to_string(), "decrease_max: 1; expected above 0 and below 1");
    assert!(config.build(&around(1)).is_err());
}

/// §3.3: what waits for a slow engine at the receiver is the endpoint's delay, not the fabric's: the endpoint's window
/// holds it at its target, while round trips in the network stay what they are.
#[test]
fn a_slow_engine_is_held_at_the_endpoints_target() {
    use packets::config::{Engine, Host, Queues};
    use rack::Fabric;

    let service = Span::from_us(10);
    let engine = Engine { packet: Some(service), ..Engine::default() };
    let queues = Queues { port_buffer: Bytes::new(6_000_000), ..Queues::default() };
    let star = crate::networked::star(2, queues);
    let host = Host { engine, ..Host::default() };
    let plan = packets::Config { host, ..star }.plan().unwrap();
    let stream = StreamConfig { handshake: false, round_trips: true, ..StreamConfig::default() };
    let config = Config { stream, ..Config::default() };
    let make = |around: &Surroundings| config.build(around).unwrap();
    let mut network = crate::networked::network(plan, 1, make);
    network.offer(&crate::chaos::flow(0, 1, 20_000_000, 0));
    let (mut sum, mut count) = (0.0, 0.0);
    for ms in 20..120 {
        network.advance(Time::ZERO + Span::from_us(1_000 * ms), &mut ());
        sum += network.transport().sender(packets::FlowKey::new(0)).control.effective();
        count += 1.0;
    }
    let held = sum / count * service.as_seconds() * 1e6;
    assert!((40.0..65.0).contains(&held), "{held} us of work for a target of 50 us");
    // There and back: 1.2 us twice for the segment, 52 B twice, 2 us of wire and 1 us of switches.
    let trips = &network.details()["round_trips"]["class_0"];
    let p99 = trips["p99_seconds"].as_f64().unwrap();
    assert!(p99 < 6e-6, "{trips}");
}
