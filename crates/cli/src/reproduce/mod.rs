//! Papers whose figures can be reproduced: chosen, carried out, stored.

pub mod all;
pub mod away;
mod page;

use std::ops::ControlFlow;
use std::path::Path;

use report::{Claim, Kind, Verdict, claims_page};
use scenario::{BadInput, Located};
use serde_json::Value;

use crate::engine::{Busy, Failure, Place, caught};

pub use reproductions::{Effort, Experiment, Paper, papers, spread};

/// The paper of this name.
///
/// # Errors
/// When there is none; the message names those that are.
pub fn paper(name: &str) -> Result<&'static Paper, BadInput> {
    let found = papers().iter().find(|paper| paper.name == name);
    found.ok_or_else(|| {
        let names: Vec<String> = papers().iter().map(|paper| paper.name.into()).collect();
        unknown("paper", name, &names)
    })
}

/// The experiments of `paper` with these names; all of them if there are none.
///
/// # Errors
/// When a name is not one of them: every such name.
pub fn select(paper: &Paper, names: &[String]) -> Result<Vec<Experiment>, BadInput> {
    let all = paper.experiments;
    if names.is_empty() {
        return Ok(all.to_vec());
    }
    let known: Vec<String> = all.iter().map(|experiment| experiment.name.into()).collect();
    let missing = names.iter().filter(|name| !known.contains(name));
    let missing = missing.flat_map(|name| unknown("experiment", name, &known).into_problems());
    BadInput::unless_empty(missing.collect())?;
    Ok(all
        .iter()
        .filter(|experiment| names.iter().any(|n| n == experiment.name))
        .copied()
        .collect())
}

/// A name that is none of `known`.
#[must_use]
pub fn unknown(what: &str, name: &str, known: &[String]) -> BadInput {
    let hint = scenario::suggest(name, known);
    BadInput::single(Located::whole(&format!("{what} {name:?}"), format!("unknown; {hint}")))
}

/// What a reproduction gave, stored.
#[derive(Clone, Debug, Default)]
pub struct Reproduction {
    /// The rows of the table, by experiment.
    pub claims: Vec<Claim>,
    /// Experiments that broke, and why: an invariant that does not hold is one.
    pub broken: Vec<(String, String)>,
    /// Claims that the last release reproduced and this one does not.
    pub lost: Vec<String>,
    /// Checks that do not hold.
    pub failed: Vec<String>,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
}

/// Carries out `experiments` of `paper` and stores `claims.json` and `report.html` in `directory`.
/// `watch` hears the experiment, then how far it has come.
///
/// # Errors
/// When the directory is bad. An experiment that breaks does not stop the others.
pub fn reproduce(
    paper: &Paper,
    experiments: &[Experiment],
    effort: Effort,
    directory: &Path,
    watch: &mut dyn FnMut(&Experiment, f64, &str) -> ControlFlow<()>,
) -> Result<Reproduction, Failure> {
    let place = Place::create(directory)?;
    let busy = Busy::begin();
    let mut all = Reproduction::default();
    let mut sections = Vec::new();
    for experiment in experiments {
        let mut heard = |share: f64, what: &str| {
            let flow = watch(experiment, share, what);
            if flow.is_break() {
                busy.stopping();
            }
            flow
        };
        let outcome = caught(|| experiment.run(effort, &mut heard));
        let outcome = outcome.map_err(|panic| reproductions::Failure::Model(panic.message));
        match outcome.and_then(|outcome| outcome) {
            Ok(findings) => {
                all.claims.extend(findings.claims);
                sections.push(findings.section);
            }
            Err(reproductions::Failure::Interrupted) => {
                all.interrupted = true;
                break;
            }
            Err(failure) => all.broken.push((experiment.name.into(), failure.to_string())),
        }
    }
    if all.claims.is_empty() {
        return Ok(all);
    }
    all.lost = lost(paper, effort, &all.claims);
    all.failed = failed(&all.claims);
    let rows: Value = report::claims_table(&all.claims).to_json();
    let title = format!("Reproduction of {}", paper.name);
    let page = claims_page(&title, paper.citation, &all.claims, sections);
    place.directory().write("report.html", &page.to_html())?;
    place.directory().write_json("claims.json", &rows)?;
    place.keep();
    Ok(all)
}

/// The rows that the last release reproduced and these do not.
fn lost(paper: &Paper, effort: Effort, rows: &[Claim]) -> Vec<String> {
    let released = paper.released(effort);
    let differs =
        rows.iter().filter(|row| row.verdict == Verdict::Differs && row.kind != Kind::Check);
    differs.map(|row| row.claim.clone()).filter(|row| released.contains(row)).collect()
}

/// The checks among these rows that do not hold.
fn failed(rows: &[Claim]) -> Vec<String> {
    let fails =
        rows.iter().filter(|row| row.verdict == Verdict::Differs && row.kind == Kind::Check);
    fails.map(|row| row.claim.clone()).collect()
}
