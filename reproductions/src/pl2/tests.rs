//! The experiment that is cheap, and what its scenarios say.

use report::Verdict;

use super::*;
use crate::tests::claims_of;

#[test]
fn the_arithmetic_is_reproduced_but_for_the_slip_of_section_2() {
    for claim in claims_of(&PAPER, "section2") {
        let is_slip = claim.claim == "section2.overrun";
        let expected = if is_slip { Verdict::Differs } else { Verdict::Reproduced };
        assert_eq!(claim.verdict, expected, "{}: {}", claim.claim, claim.ours);
    }
}
