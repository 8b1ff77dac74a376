//! What holds for every paper: its files of claims, and the rows that a release is held to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use report::{Claim, Verdict};
use scenario::{Document, Format, Registry, Scenario};

use crate::claims::{Beyond, Measured, Published, RowKind, Sheet, Tolerance};
use crate::configuration::means;
use crate::{Effort, Experiment, Paper, papers};

/// The claims of a quick run of an experiment.
pub(crate) fn claims_of(paper: &Paper, name: &str) -> Vec<Claim> {
    let experiment = paper.experiments.iter().find(|experiment| experiment.name == name).unwrap();
    let mut watch = |_: f64, _: &str| ControlFlow::Continue(());
    let claims = experiment.run(Effort::Quick, &mut watch).unwrap().claims;
    // What is judged later is judged by the same file.
    let sheet = experiment.sheet();
    let known: Vec<_> = sheet.published().iter().map(|claim| claim.id.as_str()).collect();
    assert!(claims.iter().map(|claim| claim.claim.as_str()).eq(known));
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

/// All rows of a paper.
fn rows(paper: &Paper) -> Vec<Published> {
    let sheets = paper.experiments.iter().map(|experiment| experiment.sheet());
    sheets.flat_map(|sheet| sheet.published().to_vec()).collect()
}

#[test]
fn a_claim_names_what_is_published_and_only_other_readings_of_it_do_so_too() {
    for paper in papers() {
        let rows = rows(paper);
        let of = |row: &Published| row.of.clone().unwrap_or_default();
        let claims: BTreeSet<_> =
            rows.iter().filter(|row| row.kind == RowKind::Claim).map(of).collect();
        for row in &rows {
            let (id, of) = (&row.id, of(row));
            let slug = of.chars().all(|c| c.is_ascii_lowercase() || "0123456789.-".contains(c));
            assert!(slug, "{} {id}: {of:?} is no name", paper.name);
            match row.kind {
                RowKind::Claim => assert!(!of.is_empty(), "{} {id} carries no claim", paper.name),
                RowKind::Sensitivity => {
                    let is_known = of.is_empty() || claims.contains(&of);
                    assert!(is_known, "{} {id}: no row has the claim {of}", paper.name);
                }
                RowKind::Check | RowKind::Input => {
                    assert!(of.is_empty(), "{} {id} does not count: of = {of}", paper.name);
                }
            }
        }
    }
}

#[test]
fn a_claim_that_says_why_it_differs_says_how_well_that_is_known() {
    for paper in papers() {
        for row in rows(paper).iter().filter(|row| row.kind == RowKind::Claim) {
            assert_eq!(row.differs.is_some(), row.cause.is_some(), "{} {}", paper.name, row.id);
        }
    }
}

/// The ids of an experiment's rows that differ in the quick or the full run that ships.
fn differing(paper: &Paper, experiment: &Experiment) -> BTreeSet<String> {
    let measured = Path::new(env!("CARGO_MANIFEST_DIR")).join("measured");
    let of = |effort: &str| {
        let run = measured.join(effort).join(paper.name).join(experiment.name);
        let text = fs::read(run.join("measured.json")).unwrap();
        let stored: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let figures: BTreeMap<String, Measured> =
            serde_json::from_value(stored["measured"].clone()).unwrap();
        experiment.judge(&figures).unwrap()
    };
    let rows = ["quick", "full"].map(of).into_iter().flatten();
    rows.filter(|row| row.verdict == Verdict::Differs).map(|row| row.claim).collect()
}

#[test]
fn a_row_says_why_it_differs_where_it_does_and_only_there() {
    for paper in papers() {
        for experiment in paper.experiments {
            let differing = differing(paper, experiment);
            for row in experiment.sheet().published() {
                let (says, does) = (row.differs.is_some(), differing.contains(&row.id));
                assert_eq!(says, does, "{} {}: says why, and differs", paper.name, row.id);
            }
        }
    }
}

/// Why a row's tolerance is not as wide as the paper's words, if it is not.
fn lopsided(row: &Published) -> Option<String> {
    let (Some(tolerance), RowKind::Claim) = (row.tolerance, row.kind) else {
        return row.one_sided.as_ref().map(|_| "only claims have one_sided".into());
    };
    let Some(one_sided) = &row.one_sided else {
        return tolerance.is_one_sided().then(|| "one side, and no word why".into());
    };
    let beyond = match &one_sided.beyond {
        Beyond::Nothing(why) if !why.is_empty() => return None,
        Beyond::Nothing(_) => return Some("no reason why nothing is beyond".into()),
        Beyond::Figure(beyond) => *beyond,
    };
    let published = row.published.as_f64();
    let is_sane = match tolerance {
        Tolerance::AtLeast(low) => beyond > low && published.is_none_or(|it| it <= beyond),
        Tolerance::AtMost(high) => beyond < high && published.is_none_or(|it| it >= beyond),
        _ => false,
    };
    (one_sided.says.is_empty() || !is_sane).then(|| "the other end is out of place".into())
}

#[test]
fn a_claim_has_one_side_only_where_the_paper_has_and_ends_somewhere_nonetheless() {
    for paper in papers() {
        for row in rows(paper) {
            assert_eq!(lopsided(&row), None, "{} {}", paper.name, row.id);
        }
    }
}

#[test]
fn the_alarm_about_tolerances_rings() {
    let read = |text: &str| {
        let text = format!(
            "[[claim]]\nid = \"a\"\nkind = \"claim\"\nof = \"a\"\nsection = \"§1\"\nwhat = \"a\"\n\
             published = 2.0\n{text}"
        );
        lopsided(&Sheet::read(&text).published()[0])
    };
    assert!(read("tolerance = { relative = 0.1 }").is_none());
    assert!(read("tolerance = { at_least = 1.5 }").is_some());
    let with = |tolerance: &str, beyond: &str| {
        read(&format!(
            "tolerance = {tolerance}\none_sided = {{ says = \"more\", beyond = {beyond} }}"
        ))
    };
    assert!(with("{ at_least = 1.5 }", "4.0").is_none());
    assert!(with("{ at_least = 1.5 }", "\"more is more\"").is_none());
    assert!(with("{ at_least = 1.5 }", "1.9").is_some(), "below what is published");
    assert!(with("{ at_most = 2.5 }", "3.0").is_some());
    assert!(with("{ relative = 0.1 }", "4.0").is_some(), "it has two sides already");
}

#[test]
fn every_other_reading_and_every_input_has_its_place_in_the_configuration() {
    for paper in papers() {
        let (rows, configuration) = (rows(paper), paper.configuration());
        assert!(!configuration.lead.is_empty() && !configuration.settings.is_empty());
        let readings = configuration.readings.iter().map(|one| (&one.what, &one.rows));
        let inputs = configuration.inputs.iter().map(|one| (&one.what, &one.rows));
        let lists = [
            (RowKind::Sensitivity, readings.collect::<Vec<_>>()),
            (RowKind::Input, inputs.collect()),
        ];
        for (kind, list) in lists {
            let patterns =
                || list.iter().flat_map(|(what, rows)| rows.iter().map(move |row| (what, row)));
            for row in &rows {
                let places = patterns().filter(|(_, pattern)| means(pattern, &row.id)).count();
                let expected = usize::from(row.kind == kind);
                assert_eq!(places, expected, "{} {}: places as {kind:?}", paper.name, row.id);
            }
            for (what, pattern) in patterns() {
                let is_used = rows.iter().any(|row| means(pattern, &row.id));
                assert!(is_used, "{} {what}: {pattern}", paper.name);
            }
        }
        for exclusive in &configuration.exclusive {
            for claim in &exclusive.claims {
                let is_known = rows.iter().any(|row| row.of.as_ref() == Some(claim));
                assert!(is_known, "{}: no claim {claim}", paper.name);
            }
        }
    }
}

#[test]
fn every_experiment_says_how_long_it_takes() {
    for (paper, experiment) in
        papers().iter().flat_map(|p| p.experiments.iter().map(move |e| (p, e)))
    {
        let [quick, full] = [Effort::Quick, Effort::Full].map(|effort| experiment.seconds(effort));
        assert!(
            quick >= 1.0 && full >= quick,
            "{} {}: {quick}, {full}",
            paper.name,
            experiment.name
        );
    }
}

#[test]
fn scenarios_have_the_settings_of_their_papers_configuration() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    for paper in papers() {
        for setting in paper.configuration().settings {
            let (Some(kind), Some(key), Some(value)) =
                (&setting.fabric, &setting.key, &setting.value)
            else {
                let is_words = setting.fabric.is_none() && setting.key.is_none();
                assert!(is_words && setting.value.is_none(), "{}: {}", paper.name, setting.what);
                continue;
            };
            let mut found = 0;
            for entry in fs::read_dir(manifest.join(paper.name)).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let is_other = name.contains(".claims.") || setting.except.contains(&name);
                if is_other || ["configuration.toml", "released.toml"].contains(&&*name) {
                    continue;
                }
                let path = manifest.join(paper.name).join(&name);
                let text = fs::read_to_string(&path).unwrap();
                let document = Document::parse(&name, &text, Format::Toml).unwrap();
                let scenario = Scenario::read(document, &[], &Registry::standard()).unwrap();
                for fabric in scenario.fabrics.iter().filter(|one| one.kind == kind) {
                    let pointer = format!("/{}", key.replace('.', "/"));
                    let config = fabric.plan.config();
                    assert_eq!(config.pointer(&pointer), Some(value), "{} {name}", paper.name);
                    found += 1;
                }
            }
            assert!(found > 0, "{}: no scenario has {key}", paper.name);
        }
    }
}
