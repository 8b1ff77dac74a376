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

/// Rows whose figures are not ours, each with its reason in the file of claims.
const DIFFER: [&str; 8] = [
    "fig2.rps-complement",
    "fig2.rps-transpose",
    "fig2.rps-worst",
    "fig2.dtr-transpose",
    "fig2.dtr-worst",
    "fig2.wlb-transpose",
    "fig2.romm-transpose",
    "paths.average",
];

#[test]
fn cheap_experiments_are_reproduced_but_for_known_rows() {
    for name in ["fig2", "paths", "fig9", "examples", "memory", "fig19"] {
        for claim in claims_of(name) {
            let differs = DIFFER.contains(&claim.claim.as_str());
            let expected = if differs { Verdict::Differs } else { Verdict::Reproduced };
            assert_eq!(claim.verdict, expected, "{}: {}", claim.claim, claim.ours);
            assert!(!differs || !claim.note.starts_with("No cause"), "{}", claim.claim);
        }
    }
}

/// Each experiment's file.
const FILES: [(&str, &str); 15] = [
    ("fig2", include_str!("../../r2c2/fig2.claims.toml")),
    ("saturation", include_str!("../../r2c2/saturation.claims.toml")),
    ("paths", include_str!("../../r2c2/paths.claims.toml")),
    ("fig9", include_str!("../../r2c2/fig9.claims.toml")),
    ("examples", include_str!("../../r2c2/examples.claims.toml")),
    ("memory", include_str!("../../r2c2/memory.claims.toml")),
    ("fig7", include_str!("../../r2c2/fig7.claims.toml")),
    ("fig8", include_str!("../../r2c2/fig8.claims.toml")),
    ("fig10", include_str!("../../r2c2/fig10.claims.toml")),
    ("fig12", include_str!("../../r2c2/fig12.claims.toml")),
    ("fig15", include_str!("../../r2c2/fig15.claims.toml")),
    ("served", include_str!("../../r2c2/served.claims.toml")),
    ("fig17", include_str!("../../r2c2/fig17.claims.toml")),
    ("fig18", include_str!("../../r2c2/fig18.claims.toml")),
    ("fig19", include_str!("../../r2c2/fig19.claims.toml")),
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
fn released_rows_are_claims() {
    let rows = |(_, text)| Sheet::read(text).published().to_vec();
    let known: Vec<String> = FILES.into_iter().flat_map(rows).map(|claim| claim.id).collect();
    let released = PAPER.released(Effort::Quick);
    assert!(!released.is_empty());
    for id in released {
        assert!(known.contains(&id), "{id}");
    }
    assert!(PAPER.released(Effort::Full).iter().all(|id| known.contains(id)));
}
