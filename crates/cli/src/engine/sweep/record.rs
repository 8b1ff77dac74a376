//! `sweep.json`: which points a sweep has by now. Later grids in the same directory join them, and reports
//! are made from them without running anything.

use std::collections::HashSet;
use std::path::Path;

use report::{FileError, write_json};
use scenario::{BadInput, Located, Scenario};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::means::SEED;
use super::{Axis, Failure, Outcome, Point, Swept, finished};

const NAME: &str = "sweep.json";

/// What stands in the file.
#[derive(Serialize, Deserialize)]
struct Record {
    name: String,
    axes: Vec<Axis>,
    points: Vec<Row>,
}

/// A point, and why it failed if it did; its results are in its folder.
#[derive(Serialize, Deserialize)]
struct Row {
    settings: Vec<String>,
    label: String,
    seed: u64,
    hash: String,
    base: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

/// Names what the points of a sweep have in common: the scenario without its seeds and without what `axes`
/// set. A grid joins older points of the same.
pub fn base(scenario: &Scenario, axes: &[Axis]) -> String {
    let mut value = scenario.to_value();
    let own = [SEED, "run.seeds"].into_iter();
    for key in axes.iter().map(|axis| axis.key.as_str()).chain(own) {
        remove(&mut value, key);
    }
    let digest = Sha256::digest(value.to_string().as_bytes());
    digest[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Removes what `key` sets; of `fabric[1].guard`, too, as the scenario has but one fabric left.
fn remove(value: &mut Value, key: &str) {
    let (step, rest) = key.split_once('.').map_or((key, None), |(step, rest)| (step, Some(rest)));
    let name = step.split('[').next().unwrap_or(step);
    let Value::Object(table) = value else { return };
    let Some(rest) = rest else {
        table.shift_remove(name);
        return;
    };
    match table.get_mut(name) {
        Some(Value::Array(parts)) => parts.iter_mut().for_each(|part| remove(part, rest)),
        Some(below) => remove(below, rest),
        None => {}
    }
}

/// Writes the file.
pub(super) fn write(swept: &Swept) -> Result<(), FileError> {
    let row = |point: &Point| Row {
        settings: point.settings.clone(),
        label: point.label.clone(),
        seed: point.seed,
        hash: point.hash.clone(),
        base: point.base.clone(),
        failed: match &point.outcome {
            Outcome::Failed(why) => Some(why.clone()),
            _ => None,
        },
    };
    let points = swept.points.iter().map(row).collect();
    let record = Record { name: swept.name.clone(), axes: swept.axes.clone(), points };
    let value = serde_json::to_value(&record).expect("texts and numbers are JSON");
    write_json(&swept.directory.join(NAME), &value)
}

/// The sweep in `directory`, with what its points left there.
///
/// # Errors
/// When there is none.
pub fn load(directory: &Path) -> Result<Swept, Failure> {
    let path = directory.join(NAME);
    let bad =
        |message: String| BadInput::single(Located::whole(&path.display().to_string(), message));
    let text = std::fs::read_to_string(&path);
    let text = text.map_err(|error| bad(format!("holds no sweep: {error}")))?;
    let record: Record =
        serde_json::from_str(&text).map_err(|error| bad(format!("holds no sweep: {error}")))?;
    let count = record.axes.len();
    if record.points.iter().any(|row| row.settings.len() != count) {
        return Err(bad(format!("expected {count} settings in each point")).into());
    }
    let points = directory.join("points");
    let point = |row: Row| {
        let outcome = match row.failed {
            Some(why) => Outcome::Failed(why),
            None => {
                finished(&points.join(&row.hash), &row.hash).map_or(Outcome::NotRun, Outcome::Found)
            }
        };
        let Row { settings, label, seed, hash, base, .. } = row;
        Point { settings, label, seed, hash, base, outcome }
    };
    Ok(Swept {
        name: record.name,
        axes: record.axes,
        points: record.points.into_iter().map(point).collect(),
        directory: directory.to_path_buf(),
        undrawn: Vec::new(),
    })
}

/// Adds the points that an older grid over the same keys of the same scenario has left here.
pub(super) fn join_older(swept: &mut Swept) {
    let Ok(older) = load(&swept.directory) else { return };
    let keys = |axes: &[Axis]| axes.iter().map(|axis| axis.key.clone()).collect::<Vec<_>>();
    if keys(&older.axes) != keys(&swept.axes) {
        return;
    }
    let known: HashSet<_> = swept.points.iter().map(|point| point.hash.clone()).collect();
    let bases: HashSet<_> = swept.points.iter().map(|point| point.base.clone()).collect();
    let joins = |point: &Point| {
        matches!(point.outcome, Outcome::Found(_))
            && bases.contains(&point.base)
            && !known.contains(&point.hash)
    };
    let joined: Vec<Point> = older.points.into_iter().filter(joins).collect();
    for (index, axis) in swept.axes.iter_mut().enumerate() {
        for point in &joined {
            if !axis.values.contains(&point.settings[index]) {
                axis.values.push(point.settings[index].clone());
            }
        }
        // Numbers stand in their order, whichever grid brought them.
        if axis.values.iter().all(|value| value.parse::<f64>().is_ok()) {
            let number = |value: &String| value.parse::<f64>().unwrap_or(f64::NAN);
            axis.values.sort_by(|a, b| number(a).total_cmp(&number(b)));
        }
    }
    swept.points.extend(joined);
    let mut labels: Vec<String> = Vec::new();
    for point in &swept.points {
        if !labels.contains(&point.label) {
            labels.push(point.label.clone());
        }
    }
    let axes = swept.axes.clone();
    swept.points.sort_by_key(|point| {
        let place = |(axis, value): (&Axis, &String)| axis.values.iter().position(|v| v == value);
        let settings: Vec<_> = axes.iter().zip(&point.settings).map(place).collect();
        (settings, labels.iter().position(|label| *label == point.label), point.seed)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    #[test]
    fn what_an_axis_sets_is_no_part_of_the_base() {
        let whole = || {
            json!({ "seed": 1, "run": { "flows": 5, "seeds": 1 }, "fabric": { "guard": "1 ns" },
                               "fault": [{ "at": "1 us" }, { "at": "2 us" }] })
        };
        let without = |key: &str| {
            let mut value = whole();
            remove(&mut value, key);
            value
        };
        assert_eq!(without("run.flows")["run"], json!({ "seeds": 1 }));
        assert_eq!(without("fabric[1].guard")["fabric"], json!({}));
        assert_eq!(without("fault[0].at")["fault"], json!([{}, {}]));
        assert_eq!(without("run"), {
            let mut rest: Map<_, _> = whole().as_object().unwrap().clone();
            rest.shift_remove("run");
            Value::Object(rest)
        });
        assert_eq!(without("no.such.key"), whole());
    }
}
