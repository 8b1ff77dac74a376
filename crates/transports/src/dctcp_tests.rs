//! The estimate step by step, and the steady state against the paper's equations.

use kernel::{Bytes, Rate};

use super::*;
use crate::newreno::tests::{acked, start};
use crate::testing::{Bottleneck, ENDLESS, Rig, around, check_near};

const PLAN: Plan = Plan { g: 0.0625, alpha_initial: 1.0 };

/// Ten segments are under way at any time, so that a window ends with the eleventh acknowledgment
/// after the last: alpha after windows with so many marked.
fn alphas(marked: &[u64]) -> Vec<f64> {
    let mut window = Window::new(&PLAN, &start(10));
    let mut una = 1;
    // The first window ends with the first acknowledgment: nothing had been sent before it.
    window.acked(&PLAN, &Acked { una, next: una + 10, is_marked: true, ..acked(1_000) });
    let round = |&marked: &u64| {
        for segment in 0..11 {
            una += 1;
            let is_marked = segment < marked;
            window.acked(&PLAN, &Acked { una, next: una + 10, is_marked, ..acked(1_000) });
        }
        window.alpha()
    };
    marked.iter().map(round).collect()
}

#[test]
fn alpha_follows_its_recursion() {
    // 1, then 15/16, (15/16)², and 15/16 alpha + F/16 (RFC 8257 §3.3, step 6).
    let found = alphas(&[0, 0, 11, 5]);
    let second = 225.0 / 256.0;
    let third = second * 15.0 / 16.0 + 1.0 / 16.0;
    let expected = [0.9375, second, third, third * 15.0 / 16.0 + 5.0 / 11.0 / 16.0];
    let off = found.iter().zip(&expected).map(|(a, b): (&f64, &f64)| (a - b).abs());
    assert!(off.fold(0.0, f64::max) < 1e-12, "{found:?} {expected:?}");
}

#[test]
fn a_mark_cuts_by_half_of_alpha_and_a_loss_by_half() {
    for (alpha_initial, expected) in [(1.0, 10_000), (0.5, 15_000), (0.125, 18_750), (0.0, 20_000)]
    {
        let plan = Plan { alpha_initial, ..PLAN };
        let mut window = Window::new(&plan, &start(20));
        window.congested(&plan, Signal::Mark, 20_000, Time::ZERO);
        assert_eq!(window.window(), expected, "alpha {alpha_initial}");
        let mut window = Window::new(&plan, &start(20));
        window.congested(&plan, Signal::Loss, 20_000, Time::ZERO);
        assert_eq!(window.window(), 10_000);
    }
}

/// The rig of the paper's analysis: 10 Gbps, round trip of `rtt` us, packets of 1,500 bytes.
fn steady(flows: u32, threshold: usize, rtt_us: u64) -> (Rig<Dctcp>, f64) {
    let stream =
        StreamConfig { receive_window: Bytes::new(1448 * 2_000), ..StreamConfig::default() };
    let bank = Config { stream, ..Config::default() }.build(&around(flows)).unwrap();
    let rate = Rate::from_gbps(10);
    let rtt = Span::from_us(rtt_us);
    let bottleneck = Bottleneck { rate, rtt, buffer: 10_000, threshold, hops: 1 };
    let mut rig = Rig::new(bank, flows, ENDLESS, bottleneck);
    rig.run(Span::from_us(100_000), |_, _| ());
    rig.seen.clear();
    let packet = rate.send_time(Bytes::new(1500));
    (rig, rtt.as_ps() as f64 / packet.as_ps() as f64 + 1.0)
}

/// SIGCOMM 2010 §3.3: W* = (C × RTT + K) / N; alpha² (1 - alpha / 4) = (2 W* + 1) / (W* + 1)²; the
/// window swings by D = (W* + 1) alpha / 2, the queue by N D, from K + N down.
fn model(flows: f64, threshold: f64, bandwidth_delay: f64) -> (f64, f64, f64) {
    let w = (bandwidth_delay + threshold) / flows;
    let goal = (2.0 * w + 1.0) / ((w + 1.0) * (w + 1.0));
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let alpha: f64 = (low + high) / 2.0;
        if alpha * alpha * (1.0 - alpha / 4.0) < goal { low = alpha } else { high = alpha }
    }
    (w, low, (w + 1.0) * low / 2.0)
}

#[test]
fn a_lone_flow_swings_as_the_papers_equations_say() {
    for (threshold, rtt) in [(40, 100), (65, 100), (65, 250)] {
        let (mut rig, bandwidth_delay) = steady(1, threshold, rtt);
        let (w, alpha, swing) = model(1.0, threshold as f64, bandwidth_delay);
        let (mut sum, mut count, mut widest) = (0.0, 0.0, 0);
        rig.run(Span::from_us(200_000), |_, bank| {
            let control = &bank.sender(packets::FlowKey::new(0)).control;
            (sum, count) = (sum + control.alpha(), count + 1.0);
            widest = widest.max(control.window());
        });
        let (least, _, most) = rig.queue();
        check_near("alpha", sum / count, alpha, 0.1);
        check_near("largest window", widest as f64 / 1448.0, w + 1.0, 0.03);
        assert!(most.abs_diff(threshold + 1) <= 2, "queue up to {most}, threshold {threshold}");
        check_near("swing of the queue", (most - least) as f64, swing, 0.25);
        assert_eq!(rig.drops, 0);
        assert!(least > 0, "the line is never idle");
    }
}

#[test]
fn many_flows_share_evenly_and_keep_the_queue_at_the_threshold() {
    let (flows, threshold) = (8, 65);
    let (mut rig, _) = steady(flows, threshold, 100);
    let before = rig.delivered.clone();
    rig.run(Span::from_us(500_000), |_, _| ());
    let shares: Vec<_> = rig.delivered.iter().zip(&before).map(|(a, b)| (a - b) as f64).collect();
    let total: f64 = shares.iter().sum();
    // Full rate, by the payload's share of a packet.
    check_near("rate", total * 8.0 / 0.5, 10e9 * 1448.0 / 1500.0, 0.005);
    let fairness = total * total / (f64::from(flows) * shares.iter().map(|x| x * x).sum::<f64>());
    assert!(fairness > 0.98, "Jain's index {fairness}");
    let (_, mean, most) = rig.queue();
    check_near("mean queue", mean, threshold as f64, 0.25);
    // K + N, and the burst of a window that opens again.
    assert!(most <= threshold + 3 * flows as usize, "queue up to {most}");
}

#[test]
fn delayed_acknowledgments_keep_the_share_of_marks() {
    let run = |ack_segments| {
        let stream = StreamConfig { ack_segments, ..StreamConfig::default() };
        let bank = Config { stream, ..Config::default() }.build(&around(1)).unwrap();
        let rate = Rate::from_gbps(10);
        let rtt = Span::from_us(100);
        let bottleneck = Bottleneck { rate, rtt, buffer: 10_000, threshold: 40, hops: 1 };
        let mut rig = Rig::new(bank, 1, ENDLESS, bottleneck);
        rig.run(Span::from_us(100_000), |_, _| ());
        let (mut sum, mut count) = (0.0, 0.0);
        rig.run(Span::from_us(200_000), |_, bank| {
            sum += bank.sender(packets::FlowKey::new(0)).control.alpha();
            count += 1.0;
        });
        sum / count
    };
    check_near("alpha", run(2), run(1), 0.35);
}

#[test]
fn bad_tables_are_refused() {
    let config = Config { g: 0.0, alpha_initial: 1.5, ..Config::default() };
    let found: Vec<_> = config.check().iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        ["g: 0; expected above 0 and at most 1", "alpha_initial: 1.5; expected 0 to 1"]
    );
    assert!(Config { g: f64::NAN, ..Config::default() }.build(&around(1)).is_err());
}
