//! The experiments that are cheap.

use report::Verdict;

use super::*;
use crate::tests::claims_of;

/// Rows whose figures are not ours, each with its reason in the file of claims.
const DIFFER: [&str; 15] = [
    "fig2.rps-complement",
    "fig2.rps-transpose",
    "fig2.rps-worst",
    "fig2.dtr-transpose",
    "fig2.dtr-worst",
    "fig2.wlb-transpose",
    "fig2.romm-transpose",
    "fig2.hop-complement",
    "fig2.hop-transpose",
    "fig2.hop-worst",
    "fig2.threshold-transpose",
    "fig2.up-romm-transpose",
    "fig2.up-one-wlb-transpose",
    "fig2.silent-vlb-transpose",
    "paths.average",
];

#[test]
fn cheap_experiments_are_reproduced_but_for_known_rows() {
    for name in ["fig2", "paths", "fig9", "examples", "memory", "fig19"] {
        for claim in claims_of(&PAPER, name) {
            let differs = DIFFER.contains(&claim.claim.as_str());
            let expected = if differs { Verdict::Differs } else { Verdict::Reproduced };
            assert_eq!(claim.verdict, expected, "{}: {}", claim.claim, claim.ours);
            assert!(!differs || !claim.note.starts_with("No cause"), "{}", claim.claim);
        }
    }
}
