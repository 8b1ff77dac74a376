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
fn cheap_experiments_are_reproduced() {
    for name in ["timing", "overhead"] {
        for claim in claims_of(name) {
            assert!(claim.claim.starts_with(&format!("{name}.")), "{}", claim.claim);
            assert_eq!(claim.verdict, Verdict::Reproduced, "{}: {}", claim.claim, claim.ours);
        }
    }
}

/// Every file of claims, by experiment.
const FILES: [(&str, &str); 12] = [
    ("ablation", include_str!("../../aquila/ablation.claims.toml")),
    ("pair", include_str!("../../aquila/pair.claims.toml")),
    ("throughput", include_str!("../../aquila/throughput.claims.toml")),
    ("failures", include_str!("../../aquila/failures.claims.toml")),
    ("timing", include_str!("../../aquila/timing.claims.toml")),
    ("incast", include_str!("../../aquila/incast.claims.toml")),
    ("window", include_str!("../../aquila/window.claims.toml")),
    ("built", include_str!("../../aquila/built.claims.toml")),
    ("fig7", include_str!("../../aquila/fig7.claims.toml")),
    ("fig10", include_str!("../../aquila/fig10.claims.toml")),
    ("hosts", include_str!("../../aquila/hosts.claims.toml")),
    ("overhead", include_str!("../../aquila/overhead.claims.toml")),
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
        for id in PAPER.released(effort) {
            assert!(known.contains(&id), "{id}");
        }
    }
}
