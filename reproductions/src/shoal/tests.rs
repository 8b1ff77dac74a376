//! The experiments that are cheap; a canary.

use report::Verdict;

use super::*;
use crate::Effort;
use crate::tests::claims_of;

/// Experiments that take less than a few seconds.
const CHEAP: [&str; 7] = ["memory", "timing", "latency", "power", "fig11", "fig10", "empty-slot"];

#[test]
fn cheap_experiments_hold_what_the_release_holds() {
    let released = PAPER.released(Effort::Quick);
    for name in CHEAP {
        for claim in claims_of(&PAPER, name) {
            let is_lost = claim.verdict == Verdict::Differs && released.contains(&claim.claim);
            assert!(!is_lost, "{}: ours is {}", claim.claim, claim.ours);
            let is_explained = claim.verdict == Verdict::Reproduced || !claim.note.is_empty();
            assert!(is_explained, "{} has no note", claim.claim);
        }
    }
}

/// The alarm works: with a published figure that is wrong, the verdict is that ours differs.
#[test]
fn a_canary_differs() {
    let text = include_str!("../../shoal/latency.claims.toml");
    let wrong = text.replace("published = 320e-9", "published = 321e-9");
    assert_ne!(text, wrong);
    let mut sheet = crate::claims::Sheet::read(&wrong);
    for claim in claims_of(&PAPER, "latency") {
        let ours = claim.ours.as_f64().unwrap();
        sheet.measure(&claim.claim, crate::claims::Measured::one(ours));
    }
    let verdicts: Vec<_> =
        sheet.finish().into_iter().map(|claim| (claim.claim, claim.verdict)).collect();
    assert_eq!(verdicts[0], ("latency.switch".into(), Verdict::Differs));
    assert!(verdicts[1..].iter().all(|(_, verdict)| *verdict == Verdict::Reproduced));
}
