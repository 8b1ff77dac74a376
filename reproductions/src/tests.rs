//! What holds for every paper: its files of claims, and the rows that a release is held to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use report::Claim;

use crate::claims::Sheet;
use crate::{Effort, Paper, papers};

/// The claims of a quick run of an experiment.
pub(crate) fn claims_of(paper: &Paper, name: &str) -> Vec<Claim> {
    let experiment = paper.experiments.iter().find(|experiment| experiment.name == name).unwrap();
    let mut watch = |_: f64, _: &str| ControlFlow::Continue(());
    let claims = experiment.run(Effort::Quick, &mut watch).unwrap().claims;
    for claim in &claims {
        assert!(claim.claim.starts_with(&format!("{name}.")), "{}", claim.claim);
    }
    claims
}

/// By experiment that a paper's folder has a file for: the ids of its claims.
fn ids(paper: &Paper) -> BTreeMap<String, Vec<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(paper.name);
    let mut ids = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let file = entry.unwrap();
        let name = file.file_name().into_string().unwrap();
        let Some(experiment) = name.strip_suffix(".claims.toml") else { continue };
        let sheet = Sheet::read(&fs::read_to_string(file.path()).unwrap());
        let claims = sheet.published().iter().map(|claim| claim.id.clone());
        ids.insert(experiment.into(), claims.collect());
    }
    ids
}

#[test]
fn every_experiment_has_a_file_of_claims_that_are_its_own() {
    for paper in papers() {
        let names: BTreeSet<_> =
            paper.experiments.iter().map(|experiment| experiment.name.to_owned()).collect();
        assert_eq!(names.len(), paper.experiments.len(), "{}: names are not unique", paper.name);
        let ids = ids(paper);
        assert_eq!(ids.keys().cloned().collect::<BTreeSet<_>>(), names, "{}", paper.name);
        for (experiment, ids) in ids {
            assert!(!ids.is_empty(), "{} {experiment}", paper.name);
            for id in ids {
                assert!(id.starts_with(&format!("{experiment}.")), "{} {id}", paper.name);
            }
        }
    }
}

#[test]
fn what_a_release_is_held_to_are_claims_that_there_are() {
    for paper in papers() {
        let known: BTreeSet<_> = ids(paper).into_values().flatten().collect();
        assert!(!paper.released(Effort::Quick).is_empty(), "{}", paper.name);
        for effort in [Effort::Quick, Effort::Full] {
            for id in paper.released(effort) {
                assert!(known.contains(&id), "{} {id}", paper.name);
            }
        }
    }
}
