//! The experiments that are cheap, and every file of claims.

use std::ops::ControlFlow;

use report::Verdict;

use super::*;
use crate::Effort;
use crate::claims::Sheet;

#[test]
fn the_arithmetic_is_reproduced_but_for_the_slip_of_section_2() {
    let experiment = &PAPER.experiments[0];
    let mut watch = |_: f64, _: &str| ControlFlow::Continue(());
    for claim in experiment.run(Effort::Quick, &mut watch).unwrap().claims {
        let is_slip = claim.claim == "section2.overrun";
        let expected = if is_slip { Verdict::Differs } else { Verdict::Reproduced };
        assert_eq!(claim.verdict, expected, "{}: {}", claim.claim, claim.ours);
    }
}

#[test]
fn every_file_of_claims_is_of_its_experiment() {
    let files = [
        ("section2", include_str!("../../pl2/section2.claims.toml")),
        ("fig1", include_str!("../../pl2/fig1.claims.toml")),
        ("burst", include_str!("../../pl2/burst.claims.toml")),
        ("threshold", include_str!("../../pl2/threshold.claims.toml")),
        ("exchange", include_str!("../../pl2/exchange.claims.toml")),
        ("fig3", include_str!("../../pl2/fig3.claims.toml")),
        ("fig5", include_str!("../../pl2/fig5.claims.toml")),
        ("fig7", include_str!("../../pl2/fig7.claims.toml")),
        ("fig8", include_str!("../../pl2/fig8.claims.toml")),
        ("fig9", include_str!("../../pl2/fig9.claims.toml")),
        ("fig10", include_str!("../../pl2/fig10.claims.toml")),
    ];
    let names: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.name).collect();
    assert_eq!(files.map(|(name, _)| name)[..], names);
    for (name, text) in files {
        for claim in Sheet::read(text).published() {
            assert!(claim.id.starts_with(&format!("{name}.")), "{}", claim.id);
        }
    }
}

#[test]
fn threads_have_the_work_with_a_burst_that_the_scenario_names() {
    let scenario = incast::FILE.with(&[], 1).unwrap();
    let config = scenario.fabrics[incast::PL2].plan.config();
    assert_eq!(config["host"]["burst_cost"], incast::BURST_COST);
}
