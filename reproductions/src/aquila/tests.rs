//! The experiments that are cheap.

use report::Verdict;

use super::*;
use crate::tests::claims_of;

#[test]
fn cheap_experiments_are_reproduced_but_for_one_row() {
    for name in ["timing", "overhead"] {
        for claim in claims_of(&PAPER, name) {
            // Over fibres of the layout it is less by a hair.
            let holds = claim.claim != "overhead.round-trip";
            let found = claim.verdict == Verdict::Reproduced;
            assert_eq!(found, holds, "{}: {}", claim.claim, claim.ours);
        }
    }
}

/// X21, X22: what fails is repaired, and what is planned loses nothing.
#[test]
fn slow_x21_x22_the_controller_repairs_and_drains_under_load() {
    for claim in claims_of(&PAPER, "repair") {
        assert_eq!(claim.verdict, Verdict::Reproduced, "{}: {}", claim.claim, claim.ours);
    }
}

/// X20: beside packets in one piece small messages wait for whole ones, of which each takes 1.33 µs on a line of 25 Gbps;
/// what is offered is carried all the same.
#[test]
fn slow_x20_small_messages_wait_for_packets_in_one_piece() {
    use aquila::topology::{Fibres, Shape};

    use super::clique::Clique;
    use super::pieces::{Pieces, carry};
    use crate::spread::spread;

    let clique = Clique::new(&Shape::MINI, Fibres::Grid);
    let jobs = [Pieces::Cells, Pieces::Packets, Pieces::ShallowPackets];
    let mut watch = |_: f64, _: &str| std::ops::ControlFlow::Continue(());
    let found = spread(&jobs, &mut watch, |&pieces, pulse| carry(&clique, pieces, 60, 1, pulse));
    let found = found.unwrap();
    for (pieces, point) in jobs.iter().zip(&found) {
        assert!((0.9..1.1).contains(&point.carried), "{pieces:?}: {point:?}");
        let least = if *pieces == Pieces::Cells { 0.0 } else { 1.33e-6 };
        assert!(point.small - found[0].small >= least, "{pieces:?}: {point:?}");
    }
}
