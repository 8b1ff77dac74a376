//! The window by hand, and the throughput under loss against the published laws.

use kernel::Bytes;
use rack::NodeId;

use super::*;
use crate::stream::config::Recovery;
use crate::testing::{around, check_near, periodic, random, window_under_loss};

const SEGMENT: u64 = 1_000;

pub(crate) fn start(segments: u64) -> Start {
    Start { segment: SEGMENT, window: segments * SEGMENT }
}

/// An acknowledgment of `bytes` that leaves the window used up.
pub(crate) fn acked(bytes: u64) -> Acked {
    Acked {
        now: Time::ZERO,
        bytes,
        arrived: bytes / SEGMENT,
        una: 1,
        next: 1_000,
        flight: u64::MAX / 4,
        rtt: Span::from_us(10),
        srtt: Span::from_us(10),
        endpoint: Span::ZERO,
        hops: 1,
        is_marked: false,
        phase: Phase::Open,
        host: NodeId::new(0),
    }
}

#[test]
fn slow_start_grows_by_what_is_acknowledged_but_a_segment_at_most() {
    let mut window = Window::new(&(), &start(2));
    for (bytes, expected) in [(1_000, 3_000), (400, 3_400), (2_000, 4_400), (0, 4_400)] {
        window.acked(&(), &acked(bytes));
        assert_eq!(window.window(), expected);
    }
}

#[test]
fn congestion_avoidance_grows_by_a_segment_a_window() {
    let mut window = Window::new(&(), &start(20));
    window.congested(&(), Signal::Loss, 20_000, Time::ZERO);
    assert_eq!(window.window(), 10_000);
    let mut grown = Vec::new();
    for count in 1..=40 {
        let before = window.window();
        window.acked(&(), &acked(1_000));
        if window.window() > before {
            grown.push((count, window.window()));
        }
    }
    // 10 segments, then 11, then 12: acknowledgments 10, 21 and 33.
    assert_eq!(grown, [(10, 11_000), (21, 12_000), (33, 13_000)]);
}

#[test]
fn each_signal_cuts_as_rfc_5681_says() {
    let cut = |signal, flight| {
        let mut window = Window::new(&(), &start(20));
        window.congested(&(), signal, flight, Time::ZERO);
        (window.0.window, window.0.threshold)
    };
    assert_eq!(cut(Signal::Loss, 20_000), (10_000, 10_000));
    assert_eq!(cut(Signal::Mark, 20_000), (10_000, 10_000));
    // Two segments of limited transmit are not counted; what is not used is not either.
    assert_eq!(cut(Signal::Loss, 22_000), (10_000, 10_000));
    assert_eq!(cut(Signal::Loss, 12_000), (6_000, 6_000));
    assert_eq!(cut(Signal::Loss, 1_000), (2_000, 2_000));
    assert_eq!(cut(Signal::Timeout(Expiry::First), 20_000), (1_000, 10_000));
    assert_eq!(cut(Signal::Timeout(Expiry::Repeated), 20_000), (1_000, u64::MAX));
}

#[test]
fn the_window_rests_in_recovery_on_marks_and_while_it_is_not_used() {
    let mut window = Window::new(&(), &start(10));
    window.acked(&(), &Acked { phase: Phase::Recovery, ..acked(1_000) });
    window.acked(&(), &Acked { is_marked: true, ..acked(1_000) });
    window.acked(&(), &Acked { flight: 4_000, ..acked(1_000) });
    assert_eq!(window.window(), 10_000);
    window.acked(&(), &Acked { phase: Phase::Loss, ..acked(1_000) });
    assert_eq!(window.window(), 11_000);
}

fn bank(recovery: Recovery, rto_min: Span) -> NewReno {
    let stream = StreamConfig {
        handshake: false,
        receive_window: Bytes::new(1448 * 10_000),
        rto_initial: rto_min,
        recovery,
        ..StreamConfig::default()
    };
    Config { ecn: false, rto_min, stream }.build(&around(1)).unwrap()
}

/// Mathis, Semke, Mahdavi and Ott, "The macroscopic behavior of the TCP congestion avoidance
/// algorithm" (1997), eq. 3: under periodic loss the window is a saw-tooth from W / 2 to W with
/// 3 W² / 8 = 1 / p, and so √(3 / 2p) segments a round trip. The law knows no recovery: a round trip
/// of each saw-tooth in which the window does not grow, which matters the less the larger W.
#[test]
fn slow_throughput_under_periodic_loss_is_the_macroscopic_law() {
    for (period, part) in [(300, 0.1), (1_000, 0.06), (10_000, 0.03)] {
        let bank = bank(Recovery::Sack, Span::from_us(1_000));
        let found = window_under_loss(bank, Span::from_us(100), 20_000, periodic(period));
        check_near("window", found, (1.5 * period as f64).sqrt(), part);
    }
}

/// Under independent losses the stationary mean is 1.31 / √p (Ott, Kemperman and Mathis, "The
/// stationary behavior of ideal TCP congestion avoidance", 1996).
#[test]
fn slow_throughput_under_random_loss_is_the_stationary_mean() {
    for (chance, count, part) in
        [(0.003, 20_000, 0.1), (0.001, 20_000, 0.06), (0.000_1, 20_000, 0.05)]
    {
        let bank = bank(Recovery::Sack, Span::from_us(1_000));
        let found = window_under_loss(bank, Span::from_us(100), count, random(chance));
        check_near("window", found, 1.31 / chance.sqrt(), part);
    }
}

/// The losses of Padhye's model: independent between rounds; the rest of a round is lost too.
fn rounds(chance: f64, rtt: Span) -> Box<dyn FnMut(&packets::Packet) -> bool> {
    let mut stream = kernel::Stream::new(3, "rounds", 0);
    let mut until = Time::ZERO;
    Box::new(move |packet| {
        if packet.stamp < until {
            return true;
        }
        let is_lost = stream.bernoulli(chance);
        if is_lost {
            until = packet.stamp + rtt / 2;
        }
        is_lost
    })
}

/// Padhye, Firoiu, Towsley and Kurose, "Modeling TCP throughput" (SIGCOMM 1998), full model with b = 1:
/// the law with timeouts, which rule where losses are many and the timeout is long.
#[test]
fn slow_throughput_with_timeouts_is_the_full_model() {
    let (rtt, rto) = (Span::from_us(100), Span::from_us(1_000));
    for p in [0.003f64, 0.01, 0.03, 0.06, 0.1] {
        let found = window_under_loss(bank(Recovery::Sack, rto), rtt, 30_000, rounds(p, rtt));
        let waits = (3.0 * (3.0 * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
        let ratio = rto.as_ps() as f64 / rtt.as_ps() as f64;
        let model = 1.0 / ((2.0 * p / 3.0).sqrt() + ratio * waits);
        check_near("window", found, model, 0.2);
    }
}

#[test]
fn bad_tables_are_refused_with_the_key_as_it_is_written() {
    let stream = StreamConfig { initial_window: 0, ..StreamConfig::default() };
    let config = Config { rto_min: Span::ZERO, stream, ..Config::default() };
    let keys: Vec<_> = config.check().into_iter().map(|problem| problem.key).collect();
    assert_eq!(keys, ["rto_min", "stream.initial_window"]);
    assert!(config.build(&around(1)).is_err());
    assert!(serde_json::from_str::<Config>(r#"{"ecm": true}"#).is_err());
}
