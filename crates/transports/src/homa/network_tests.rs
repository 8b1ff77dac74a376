//! Homa over the real network, against what its paper claims.

use packets::config::Queues;
use packets::{Network, Routing};
use rack::{Fabric, Flow};

use super::*;
use crate::chaos::flow;
use crate::networked::{Ends, carry, leaf_spine, network, permutation, star};
use kernel::{Rate, Span, Stream, Time};

const FULL: u64 = 1_440;
const LINE: Rate = Rate::from_bps(10_000_000_000);

/// Sizes of the tests: most messages of a packet, most bytes in long ones.
fn profile() -> Profile {
    Profile::new(vec![
        (Bytes::new(100), 50.0),
        (Bytes::new(FULL), 30.0),
        (Bytes::new(FULL * 10), 15.0),
        (Bytes::new(FULL * 200), 5.0),
    ])
}

/// Deep buffers: Homa assumes that they do not overflow (§3.5: "buffers of 1 MB or so").
fn queues() -> Queues {
    Queues { port_buffer: Bytes::new(2_000_000), ..Queues::default() }
}

fn run(net: &packets::Config, flows: &[Flow]) -> (Network<Homa>, Ends) {
    let plan = net.plan().unwrap();
    let mut network = network(plan, 5, |around| Homa::new(&Config::default(), around, &profile()));
    let ends = carry(&mut network, flows);
    (network, ends)
}

#[test]
fn incast_fills_the_receivers_line() {
    for senders in [2, 8, 40] {
        let packets = 4_000 / u64::from(senders);
        let flows: Vec<_> = (1..=senders).map(|src| flow(src, 0, FULL * packets, 0)).collect();
        let (network, ends) = run(&star(senders + 1, queues()), &flows);
        let share = ends.share(1, LINE) / (1_440.0 / 1_500.0);
        assert!(share > 0.98 && share <= 1.0, "{senders} senders: {share:.3} of the line");
        assert_eq!(network.totals().drops, 0);
    }
}

#[test]
fn a_receiver_holds_no_more_than_overcommitment_allows() {
    // Forty senders blast a round trip each; then at most `scheduled` round trips are granted. The
    // queue at the receiver's port is bounded by both.
    let flows: Vec<_> = (1..=40).map(|src| flow(src, 0, FULL * 100, 0)).collect();
    let (network, _) = run(&star(41, queues()), &flows);
    let homa = network.transport();
    let window = homa.window * 1_500;
    let bound = window * (40 + homa.overcommitment as u64);
    let queue = network.totals().queue_max.get();
    assert!(queue <= bound, "{queue} B waited, {bound} B may");
    assert!(queue > window * 20, "{queue} B: the blast alone is 40 windows of {window} B");
}

#[test]
fn messages_of_one_receiver_end_shortest_first() {
    // Each starts when the longer ones have been granted to for a while.
    let sizes = [400u64, 300, 200, 100];
    let message = |(&packets, src): (&u64, u32)| flow(src, 0, FULL * packets, 20 * u64::from(src));
    let flows: Vec<_> = sizes.iter().zip(1..).map(message).collect();
    let (_, ends) = run(&star(5, queues()), &flows);
    let order: Vec<_> = ends.completed.iter().map(|(flow, _)| flow.size.get() / FULL).collect();
    assert_eq!(order, [100, 200, 300, 400]);
    // Shortest first: the line is busy from 20 µs on; a message ends once it and all shorter ones are
    // through (§3.3), and what went before it came.
    let mut through = 0;
    for (flow, end) in &ends.completed {
        through += flow.size.get() / FULL;
        let late = end.as_seconds() - 20e-6 - 1.2e-6 * through as f64;
        assert!((0.0..100e-6).contains(&late), "{flow:?} ends {late} s late");
    }
}

/// A long message is granted a round trip, and then short ones, which need no grants, keep the
/// receiver's line busy for longer than two timeouts: its packets wait at the switch.
#[test]
fn packets_that_wait_are_not_taken_for_lost() {
    let (count, packets) = (900, 5);
    // One each 6 µs is what the line carries.
    let short = |number: u64| flow(1 + number as u32 % 8, 0, FULL * packets, 30 + 6 * number);
    let long = flow(9, 0, FULL * 200, 0);
    let flows: Vec<_> = std::iter::once(long).chain((0..count).map(short)).collect();
    assert!(Span::from_us(6 * count) > Config::default().resend_after * 2);
    let (network, ends) = run(&star(10, queues()), &flows);
    let (last, end) = ends.completed[flows.len() - 1];
    assert!(
        last.src == long.src && end.as_seconds() > 6e-6 * count as f64,
        "{end}: never held back"
    );
    assert_eq!(network.totals().retransmissions, 0);
    // What is lost comes again nevertheless.
    let config = packets::Config { loss_rate: 0.001, ..star(10, queues()) };
    let (network, ends) = run(&config, &flows);
    assert_eq!(ends.completed.len(), flows.len());
    assert!(network.totals().retransmissions > 0);
}

#[test]
fn a_permutation_gets_what_grants_leave() {
    let (_, ends) = run(&star(32, queues()), &permutation(32, 11, FULL * 2_000));
    let possible = 1_440.0 / (1_500.0 + 64.0);
    let share = ends.share(32, LINE);
    assert!(share > 0.95 * possible && share <= possible, "{share:.3} for {possible:.3}");
}

#[test]
fn short_messages_hardly_notice_a_loaded_network() {
    // Homa §5.2: at 80 % load the 99th percentile of short messages is within 2.2 times the idle
    // network's, most of it from a longer packet that is on the line already. Here 16 hosts, one
    // switch, exponential gaps, the sizes of the profile. Two such packets of 1.2 µs make 2.4 of a
    // message of 100 B, which takes 1.8 µs alone; others of its size take the rest.
    let (mut stream, mut flows, mut now) = (Stream::new(3, "test", 0), Vec::new(), 0.0);
    let mean = 0.5 * 100.0 + 0.3 * 1_440.0 + 0.15 * 14_400.0 + 0.05 * 288_000.0;
    let gap = mean * 8.0 / (16.0 * 0.75 * 10e9);
    while flows.len() < 20_000 {
        now += stream.exponential(gap * 1e12);
        let src = stream.below(16) as u32;
        let dst = (src + 1 + stream.below(15) as u32) % 16;
        let size = match stream.below(100) {
            0..50 => 100,
            50..80 => FULL,
            80..95 => FULL * 10,
            _ => FULL * 200,
        };
        let start = Time::from_ps(now as u64);
        flows.push(Flow { start, ..flow(src, dst, size, 0) });
    }
    let (network, ends) = run(&star(16, queues()), &flows);
    let mut slowdowns: Vec<_> = ends
        .completed
        .iter()
        .filter(|(flow, _)| flow.size.get() <= FULL)
        .map(|(flow, end)| (*end - flow.start).as_seconds() / network.ideal_fct(flow).as_seconds())
        .collect();
    slowdowns.sort_by(f64::total_cmp);
    let p99 = slowdowns[slowdowns.len() * 99 / 100];
    assert!(p99 < 3.0, "{p99}");
}

#[test]
fn random_losses_are_recovered_and_runs_repeat() {
    let flows = permutation(16, 5, FULL * 100);
    let hashes = [(); 2].map(|()| {
        let net = leaf_spine(16, 8, Routing::RandomSpray, queues());
        let (network, ends) = run(&packets::Config { loss_rate: 0.005, ..net }, &flows);
        assert_eq!(ends.completed.len(), 16);
        network.totals().event_hash
    });
    assert_eq!(hashes[0], hashes[1]);
}
