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

/// PL2 §6.2.3: receivers that know nothing of each other give one sender's time away twice.
#[test]
fn receivers_that_share_senders_leave_lines_idle_and_more_overcommitment_less() {
    let pairs = (0..4u32).flat_map(|src| [4, 5].map(|dst| (src, dst)));
    let flows: Vec<_> = pairs.map(|(src, dst)| flow(src, dst, FULL * 2_000, 0)).collect();
    let share = |overcommitment| {
        let config = Config { overcommitment, ..Config::default() };
        let plan = star(6, queues(1_000)).plan().unwrap();
        let mut network = network(plan, 5, |around| Rds::new(&config, around));
        carry(&mut network, &flows).share(2, LINE) / POSSIBLE
    };
    let (one, four) = (share(1), share(4));
    assert!(four <= 1.0 && one <= four, "{one:.3} and {four:.3} of the lines");
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
