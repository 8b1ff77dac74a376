//! RDS over the real network, against closed forms.

use packets::config::Queues;
use packets::{Network, Routing};
use rack::{Fabric, Flow};

use super::*;
use crate::chaos::flow;
use crate::networked::{Ends, carry, leaf_spine, network, permutation, star};
use kernel::Rate;

const FULL: u64 = 1_458;
const LINE: Rate = Rate::from_bps(10_000_000_000);
/// What a line can carry of payload.
const POSSIBLE: f64 = 1_458.0 / 1_500.0;

fn queues(packets: u64) -> Queues {
    Queues { port_buffer: Bytes::new(1_500 * packets), ..Queues::default() }
}

fn run(net: &packets::Config, flows: &[Flow]) -> (Network<Rds>, Ends) {
    let mut network =
        network(net.plan().unwrap(), 5, |around| Rds::new(&Config::default(), around));
    let ends = carry(&mut network, flows);
    (network, ends)
}

#[test]
fn one_sender_and_incast_fill_the_line() {
    for senders in [1, 2, 5] {
        let packets = 4_000 / u64::from(senders);
        let flows: Vec<_> = (1..=senders).map(|src| flow(src, 0, FULL * packets, 0)).collect();
        let (network, ends) = run(&star(senders + 1, queues(1_000)), &flows);
        let share = ends.share(1, LINE) / POSSIBLE;
        assert!(share > 0.97 && share <= 1.0, "{senders} senders: {share:.3} of the line");
        assert_eq!(network.totals().drops, 0);
    }
}

#[test]
fn the_queue_is_that_of_the_blind_packets() {
    // All lines are alike: what waits at the receiver's port is what came blindly, but for what it
    // has sent on while that came.
    let senders = 5;
    let flows: Vec<_> = (1..=senders).map(|src| flow(src, 0, FULL * 1_000, 0)).collect();
    let (network, _) = run(&star(senders + 1, queues(1_000)), &flows);
    let blind = 61 * 1_024 / FULL + 1;
    let queue = network.totals().queue_max_cells;
    let expected = blind * u64::from(senders - 1);
    assert!(queue.abs_diff(expected) <= 8, "{queue} packets waited, {expected} expected");
}

#[test]
fn what_the_buffer_cannot_hold_of_blind_packets_is_lost_and_comes_again() {
    let flows: Vec<_> = (1..=5).map(|src| flow(src, 0, FULL * 100, 0)).collect();
    let (network, ends) = run(&star(6, queues(60)), &flows);
    assert_eq!(ends.completed.len(), 5);
    let totals = network.totals();
    assert!(totals.drops > 0 && totals.retransmissions >= totals.drops, "{totals:?}");
}

/// PL2 §6.2.3: a receiver that knows nothing of a sender's other receivers gives it slots that it cannot
/// use. One sender has 1,000 packets for each of four receivers, and another 3,000 for the first of them:
/// 4,000 slots could do for all lines. But the receiver gives both as many slots, and the first sender uses
/// a quarter of its line: so 6,000. Only what it gives ahead, W packets, helps: it takes 4 W slots until they
/// are all owed by the busy sender, and that many before its end it has them all, when the other gets three
/// quarters of the line; so 6,000 - 3 W.
#[test]
fn a_receiver_of_a_busy_sender_leaves_its_line_idle() {
    let busy = (2..6).map(|dst| flow(0, dst, FULL * 1_000, 0));
    let flows: Vec<_> = busy.chain([flow(1, 2, FULL * 3_000, 0)]).collect();
    for overcommitment in [1, 4] {
        let config = Config { overcommitment, ..Config::default() };
        let plan = star(6, queues(1_000)).plan().unwrap();
        let mut network = network(plan, 5, |around| Rds::new(&config, around));
        let slots = 7_000.0 * POSSIBLE / carry(&mut network, &flows).share(1, LINE);
        let ahead = (61 * 1_024u64).div_ceil(FULL) * u64::from(overcommitment);
        let expected = 6_000.0 - 3.0 * ahead as f64;
        assert!((slots - expected).abs() < 20.0, "{slots:.0} slots, {expected} expected");
    }
}

#[test]
fn a_permutation_gets_what_grants_leave() {
    let (_, ends) = run(&star(16, queues(1_000)), &permutation(16, 5, FULL * 2_000));
    // A grant of 64 B for four packets goes the other way on each line.
    let possible = POSSIBLE * 6_000.0 / 6_064.0;
    let share = ends.share(16, LINE);
    assert!(share > 0.95 * possible && share <= possible, "{share:.3} for {possible:.3}");
}

#[test]
fn random_losses_are_recovered_and_runs_repeat() {
    let flows = permutation(16, 5, FULL * 100);
    let hashes = [(); 2].map(|()| {
        let net = leaf_spine(16, 8, Routing::Ecmp, queues(1_000));
        let (network, ends) = run(&packets::Config { loss_rate: 0.005, ..net }, &flows);
        assert_eq!(ends.completed.len(), 16);
        network.totals().event_hash
    });
    assert_eq!(hashes[0], hashes[1]);
}
