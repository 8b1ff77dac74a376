//! The experiments that are cheap, and every file of claims.

use std::ops::ControlFlow;

use report::{Claim, Verdict};

use super::*;
use crate::Effort;
use crate::claims::Sheet;

fn claims_of(name: &str) -> Vec<Claim> {
    let experiment = PAPER.experiments.iter().find(|experiment| experiment.name == name).unwrap();
    let mut watch = |_: f64, _: &str| ControlFlow::Continue(());
    experiment.run(Effort::Quick, &mut watch).unwrap().claims
}

#[test]
fn cheap_experiments_are_reproduced_but_for_equation_1() {
    for name in ["fig8", "fig9"] {
        for claim in claims_of(name) {
            assert!(claim.claim.starts_with(&format!("{name}.")), "{}", claim.claim);
            let expected = match claim.claim.as_str() {
                "fig9.equation" => Verdict::Differs,
                _ => Verdict::Reproduced,
            };
            assert_eq!(claim.verdict, expected, "{}: {}", claim.claim, claim.ours);
        }
    }
}

/// Every file of claims, by experiment.
const FILES: [(&str, &str); 9] = [
    ("fairness", include_str!("../../scoc/fairness.claims.toml")),
    ("fig8", include_str!("../../scoc/fig8.claims.toml")),
    ("fig9", include_str!("../../scoc/fig9.claims.toml")),
    ("fig10", include_str!("../../scoc/fig10.claims.toml")),
    ("fig11", include_str!("../../scoc/fig11.claims.toml")),
    ("fig12", include_str!("../../scoc/fig12.claims.toml")),
    ("scale", include_str!("../../scoc/scale.claims.toml")),
    ("spine", include_str!("../../scoc/spine.claims.toml")),
    ("hot-spot", include_str!("../../scoc/hot-spot.claims.toml")),
];

#[test]
fn every_file_of_claims_is_of_its_experiment() {
    let names: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.name).collect();
    assert_eq!(FILES.map(|(name, _)| name)[..], names);
    for (name, text) in FILES {
        for claim in Sheet::read(text).published() {
            assert!(claim.id.starts_with(&format!("{name}.")), "{}", claim.id);
        }
    }
}

#[test]
fn what_a_release_is_held_to_are_claims_that_there_are() {
    let ids = |(_, text): &(&str, &str)| -> Vec<String> {
        Sheet::read(text).published().iter().map(|claim| claim.id.clone()).collect()
    };
    let known: Vec<String> = FILES.iter().flat_map(ids).collect();
    for effort in [Effort::Quick, Effort::Full] {
        let released = PAPER.released(effort);
        assert!(!released.is_empty());
        for id in released {
            assert!(known.contains(&id), "{id}");
        }
    }
}
