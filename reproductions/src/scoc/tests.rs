//! The experiments that are cheap.

use report::Verdict;

use super::*;
use crate::tests::claims_of;

#[test]
fn cheap_experiments_are_reproduced_but_for_equation_1() {
    for name in ["fig8", "fig9"] {
        for claim in claims_of(&PAPER, name) {
            let expected = match claim.claim.as_str() {
                "fig9.equation" => Verdict::Differs,
                _ => Verdict::Reproduced,
            };
            assert_eq!(claim.verdict, expected, "{}: {}", claim.claim, claim.ours);
        }
    }
}
