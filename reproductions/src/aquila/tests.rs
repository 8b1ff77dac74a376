//! The experiments that are cheap.

use report::Verdict;

use super::*;
use crate::tests::claims_of;

#[test]
fn cheap_experiments_are_reproduced() {
    for name in ["timing", "overhead"] {
        for claim in claims_of(&PAPER, name) {
            assert_eq!(claim.verdict, Verdict::Reproduced, "{}: {}", claim.claim, claim.ours);
        }
    }
}
