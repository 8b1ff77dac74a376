//! `search.json`: what a search has tried by now, so that it goes on from there. What came of it lies in the folders
//! of its points.

use std::path::Path;

use report::{FileError, write_json};
use scenario::{BadInput, Located};
use serde::{Deserialize, Serialize};

use super::super::Failure;
use super::Plan;

const NAME: &str = "search.json";

/// What stands in the file.
#[derive(Serialize, Deserialize)]
struct Record {
    name: String,
    /// Of the scenario without its seeds and without what is searched.
    base: String,
    seed: u64,
    seeds: u32,
    fabrics: Vec<String>,
    over: Vec<String>,
    aims: Vec<String>,
    subject: Vec<String>,
    /// What was tried: a number for each key.
    trials: Vec<Vec<f64>>,
}

impl Record {
    fn of(plan: &Plan, trials: Vec<Vec<f64>>) -> Self {
        let over = plan.space.iter().filter(|over| !over.text.is_empty());
        Self {
            name: plan.name.clone(),
            base: plan.base.clone(),
            seed: plan.seed,
            seeds: plan.seeds,
            fabrics: plan.labels.clone(),
            over: over.map(|over| over.text.clone()).collect(),
            aims: plan.aims.clone(),
            subject: plan.subject.clone(),
            trials,
        }
    }

    /// What differs from another, in words.
    fn differs(&self, other: &Self) -> Option<&'static str> {
        let same = [
            (self.name == other.name && self.base == other.base, "scenario"),
            (self.fabrics == other.fabrics, "fabrics"),
            (self.seed == other.seed && self.seeds == other.seeds, "seeds"),
            (self.over == other.over, "--over"),
            (self.aims == other.aims, "--minimise or --maximise"),
            (self.subject == other.subject, "--subject"),
        ];
        same.into_iter().find(|(is_same, _)| !is_same).map(|(_, what)| what)
    }
}

/// Writes the file.
pub(super) fn write(directory: &Path, plan: &Plan, trials: Vec<Vec<f64>>) -> Result<(), FileError> {
    let record = Record::of(plan, trials);
    let value = serde_json::to_value(&record).expect("texts and numbers are JSON");
    write_json(&directory.join(NAME), &value)
}

/// What the search in `directory` has tried; nothing if there is none.
///
/// # Errors
/// When it is another search than `plan`.
pub(super) fn load(directory: &Path, plan: &Plan) -> Result<Vec<Vec<f64>>, Failure> {
    let path = directory.join(NAME);
    let Ok(text) = std::fs::read_to_string(&path) else { return Ok(Vec::new()) };
    let bad = |message: String| {
        Failure::from(BadInput::single(Located::whole(&path.display().to_string(), message)))
    };
    let found: Record = serde_json::from_str(&text).map_err(|error| {
        bad(format!("holds no search: {error}; give another directory with --out"))
    })?;
    if let Some(what) = found.differs(&Record::of(plan, Vec::new())) {
        return Err(bad(format!(
            "is of another search, with other {what}; give another directory with --out, or remove this file: runs \
             that are the same are not made again"
        )));
    }
    if found.trials.iter().any(|numbers| numbers.len() != plan.space.len()) {
        return Err(bad(format!("expected {} numbers in each trial", plan.space.len())));
    }
    Ok(found.trials)
}
