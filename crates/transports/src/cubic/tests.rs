//! The window against RFC 9438's functions in closed form.

use kernel::Bytes;

use super::*;
use crate::newreno::tests::{acked, start};
use crate::testing::{around, check_near, periodic, window_under_loss};

fn plan() -> Plan {
    Config::default().control(1)
}

/// Feeds a window of acknowledgments in each round trip of `rtt`, for `seconds` after a cut from
/// `peak` segments; gives (seconds, window in segments) after each round.
fn after_a_cut(plan: &Plan, peak: u64, rtt: Span, seconds: f64) -> (Window, Vec<(f64, f64)>) {
    let mut window = Window::new(plan, &start(peak));
    window.congested(plan, Signal::Loss, peak * 1_000, Time::ZERO);
    let mut now = Time::ZERO;
    let mut rounds = Vec::new();
    while now.as_seconds() < seconds {
        let count = window.cwnd as u64;
        for segment in 0..count {
            let now = now + rtt * segment / count;
            window.acked(plan, &Acked { now, rtt, srtt: rtt, ..acked(1_000) });
        }
        now += rtt;
        rounds.push((now.as_seconds(), window.cwnd));
    }
    (window, rounds)
}

#[test]
fn the_window_follows_the_cubic_function() {
    // RFC 9438 §4.2: W(t) = C (t - K)³ + W_max, K = ∛(W_max (1 - beta) / C); the window aims at the
    // function one round trip ahead.
    let plan = plan();
    for (peak, rtt_us) in [(1_000u64, 100_000u64), (2_000, 100_000), (5_000, 50_000)] {
        let rtt = Span::from_us(rtt_us);
        let k = libm::cbrt(peak as f64 * 0.3 / 0.4);
        let (_, rounds) = after_a_cut(&plan, peak, rtt, 2.0 * k);
        for (t, found) in rounds.into_iter().skip(2) {
            let off = t - k;
            check_near("window", found, 0.4 * off * off * off + peak as f64, 0.015);
        }
    }
}

#[test]
fn a_cut_leaves_beta_and_remembers_the_peak() {
    let (window, _) = after_a_cut(&plan(), 1_000, Span::from_us(100_000), 0.0);
    assert_eq!((window.cwnd, window.ssthresh, window.w_max), (700.0, 700.0, 1_000.0));
    assert_eq!(window.window(), 700_000);
}

#[test]
fn fast_convergence_gives_way_below_the_last_peak() {
    let cut_twice = |fast_convergence| {
        let plan = Plan { fast_convergence, ..plan() };
        let mut window = Window::new(&plan, &start(1_000));
        window.congested(&plan, Signal::Loss, 1_000_000, Time::ZERO);
        window.congested(&plan, Signal::Loss, 700_000, Time::ZERO);
        check_near("window", window.cwnd, 490.0, 1e-9);
        window.w_max
    };
    // 700 × (1 + 0.7) / 2 = 595.
    check_near("plateau", cut_twice(true), 595.0, 1e-9);
    check_near("plateau", cut_twice(false), 700.0, 1e-9);
}

#[test]
fn a_timeout_starts_anew_at_its_own_plateau() {
    let plan = plan();
    let mut window = Window::new(&plan, &start(100));
    window.congested(&plan, Signal::Timeout(Expiry::First), 100_000, Time::ZERO);
    assert_eq!((window.cwnd, window.ssthresh), (1.0, 70.0));
    window.congested(&plan, Signal::Timeout(Expiry::Repeated), 1_000, Time::ZERO);
    assert_eq!((window.cwnd, window.ssthresh), (1.0, 70.0));
    (0..69).for_each(|_| window.acked(&plan, &acked(1_000)));
    assert_eq!((window.cwnd, window.epoch), (70.0, None));
    window.acked(&plan, &acked(1_000));
    let epoch = window.epoch.unwrap();
    assert_eq!((epoch.k, epoch.w_max), (0.0, 70.0));
}

#[test]
fn short_round_trips_grow_as_reno_does() {
    // RFC 9438 §4.3: alpha = 3 (1 - beta) / (1 + beta) segments a round trip up to the last window,
    // then one.
    let plan = plan();
    let (_, rounds) = after_a_cut(&plan, 100, Span::from_us(100), 0.03);
    let alpha = 3.0 * 0.3 / 1.7;
    let reached = (30.0 / alpha) as usize;
    check_near("window", rounds[reached / 2].1, 70.0 + alpha * (reached / 2) as f64, 0.01);
    check_near("window", rounds[reached + 100].1, 200.0, 0.02);
}

#[test]
fn the_target_is_at_most_half_again_a_round_trip() {
    let plan = Plan { c: 4e6, ..plan() };
    let (_, rounds) = after_a_cut(&plan, 1_000, Span::from_us(100_000), 1.0);
    // Each acknowledgment adds at most half a segment, for as many as the round began with.
    assert!(rounds.windows(2).all(|pair| pair[1].1 <= pair[0].1 * 1.5 + 1.0), "{rounds:?}");
}

/// The mean window of a flow that loses a segment when it has `peak` under way, at the end of its
/// second round, and from then on each `period`-th.
fn throughput(rtt: Span, peak: u64, period: u64, rounds: u64) -> f64 {
    let stream = StreamConfig {
        handshake: false,
        initial_window: peak as u32 / 2,
        receive_window: Bytes::new(1448 * 60_000),
        ..StreamConfig::default()
    };
    let config = Config { hystart: false, fast_convergence: false, stream, ..Config::default() };
    let mut others = periodic(period);
    let mut first = Some(peak / 2);
    let loses = move |packet: &packets::Packet| {
        others(packet) || first.take_if(|first| packet.seq == *first).is_some()
    };
    window_under_loss(config.build(&around(1)).unwrap(), rtt, rounds, Box::new(loses))
}

/// RFC 9438 §5, without fast convergence: the mean window is ∜(C (3 + beta) / (4 (1 - beta)))
/// RTT^(3/4) / p^(3/4), with peaks of 4 / (3 + beta) times that. The plateau is flat, so from far off
/// a flow gets there in hundreds of losses; one that starts there stays.
#[test]
fn slow_throughput_under_loss_is_the_response_function() {
    for (rtt_us, period) in [(100_000, 10_000), (100_000, 100_000), (50_000, 100_000)] {
        let rtt = Span::from_us(rtt_us);
        let factor = (0.4f64 * 3.7 / (4.0 * 0.3)).sqrt().sqrt();
        let expected = factor * (rtt.as_seconds() * period as f64).powf(0.75);
        let peak = (expected * 4.0 / 3.7) as u64;
        let found = throughput(rtt, peak, period, 2_000);
        check_near("mean window", found, expected, 0.02);
    }
}

/// RFC 9438 §4.3: where round trips are short it is that of Reno.
#[test]
fn throughput_under_loss_in_a_rack_is_that_of_reno() {
    let found = throughput(Span::from_us(100), 50, 1_000, 20_000);
    check_near("mean window", found, (1.5f64 * 1_000.0).sqrt(), 0.06);
}

#[test]
fn bad_tables_are_refused() {
    let config = Config { c: 0.0, beta: 1.0, hystart_rise_max: Span::ZERO, ..Config::default() };
    let keys: Vec<_> = config.check().into_iter().map(|problem| problem.key).collect();
    assert_eq!(keys, ["c", "beta", "hystart_rise_min"]);
    assert!(config.build(&around(1)).is_err());
}
