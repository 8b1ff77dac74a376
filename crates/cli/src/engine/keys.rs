//! Which numbers summaries of a scenario have, known before any of its runs: so that a name that is none is refused
//! at once, and not when hours of runs have ended.
//!
//! The keys are those of a real summary: of a run that is stopped at the first opportunity, whose numbers mean nothing.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use kernel::Bytes;
use scenario::{BadInput, Located, Scenario};
use serde_json::Value;

use super::guarded;

/// A number of the summary that somebody wants.
pub(super) struct Wanted {
    /// Where it was asked for: `--minimise fct.al.p99`.
    pub place: String,
    /// Its key.
    pub key: String,
    /// What else could have been meant, beside numbers of the summary.
    pub others: Vec<String>,
}

/// The keys of numbers in a summary, and of those that it may have, which stand as null.
pub(super) fn of(summary: &Value) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let mut walk = vec![(String::new(), summary)];
    while let Some((path, value)) = walk.pop() {
        match value {
            // Bounds stand for the figure that they are of, whose key is there too.
            Value::Object(table) => walk.extend(
                table
                    .iter()
                    .filter(|(key, _)| {
                        !["at_least", "at_most", "intervals"].contains(&key.as_str())
                    })
                    .map(|(key, value)| match path.is_empty() {
                        true => (key.clone(), value),
                        false => (format!("{path}.{key}"), value),
                    }),
            ),
            Value::Number(_) | Value::Null => _ = keys.insert(path),
            _ => {}
        }
    }
    keys
}

/// `base`, and `base` with one of its values replaced, by each that `values` has for its place: which numbers a summary
/// has may depend on any value, hardly on two together.
pub(super) fn one_replaced(
    base: Vec<String>,
    values: impl Fn(usize) -> Vec<String>,
) -> Vec<Vec<String>> {
    let mut all = vec![base.clone()];
    for place in 0..base.len() {
        for value in values(place).into_iter().filter(|value| *value != base[place]) {
            let mut other = base.clone();
            other[place] = value;
            all.push(other);
        }
    }
    all
}

/// Adds the keys that summaries of a scenario have, of all of its fabrics. False if that is not known: it would take
/// more memory than `memory`, or breaks.
fn look(scenario: &Scenario, memory: Bytes, known: &mut BTreeSet<String>) -> bool {
    let mut is_known = true;
    for index in 0..scenario.fabrics.len() {
        let summary = (scenario.memory(index) <= memory).then(|| {
            guarded(|| {
                Ok(scenario.execute(index, &mut (), &mut |_| ControlFlow::Break(()))?.summary)
            })
        });
        match summary {
            Some(Ok(summary)) => known.extend(of(&summary)),
            _ => is_known = false,
        }
    }
    is_known
}

/// Refuses numbers that no summary of these scenarios has, nor those in `known`. They are looked at one by one, until
/// all that is wanted is found. Where one of them would take more than `memory`, or cannot be looked at, nothing is
/// refused.
///
/// # Errors
/// Each number that there is not, with what is like it.
pub(super) fn check(
    wanted: &[Wanted],
    mut known: BTreeSet<String>,
    scenarios: impl IntoIterator<Item = Scenario>,
    memory: Bytes,
) -> Result<(), BadInput> {
    let missing = |known: &BTreeSet<String>| {
        wanted.iter().filter(|wanted| !known.contains(&wanted.key)).collect::<Vec<_>>()
    };
    let mut is_known = true;
    for scenario in scenarios {
        if missing(&known).is_empty() {
            return Ok(());
        }
        is_known &= look(&scenario, memory, &mut known);
    }
    if !is_known {
        return Ok(());
    }
    let problem = |wanted: &Wanted| {
        let names: Vec<String> = known.iter().chain(&wanted.others).cloned().collect();
        let hint = scenario::suggest(&wanted.key, &names);
        let message = format!("no summary of this scenario has such a number; {hint}");
        Located::whole(&wanted.place, message)
    };
    BadInput::unless_empty(missing(&known).into_iter().map(problem).collect())
}

#[cfg(test)]
mod tests {
    use scenario::{Document, Format, Registry};
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_and_what_may_be_one_are_keys_and_bounds_are_not() {
        let summary = json!({
            "label": "x", "saturated": false, "drops": 3, "equipment": null,
            "fct": { "all": { "count": 0, "p99": null, "at_least": { "p99": 2e-6 } } },
        });
        let expected = ["drops", "equipment", "fct.all.count", "fct.all.p99"];
        assert_eq!(of(&summary), expected.map(String::from).into());
    }

    fn scenario(nodes: u32) -> Scenario {
        let text = format!(
            "run.flows = 20000\nworkload = {{ kind = 'poisson', load = 0.3 }}\n\
             fabric = {{ kind = 'shoal', nodes = {nodes} }}\n"
        );
        let document = Document::parse("small.toml", &text, Format::Toml).unwrap();
        Scenario::read(document, &[], &Registry::standard()).unwrap()
    }

    #[test]
    fn what_no_summary_has_is_refused_with_what_is_like_it_and_each_at_its_place() {
        let wanted = |key: &str| Wanted {
            place: format!("--minimise {key}"),
            key: key.into(),
            others: Vec::new(),
        };
        let all = [wanted("fct.all.p99"), wanted("fct.al.p99")];
        let check = |wanted: &[Wanted], memory| {
            let known = ["mine.alone".to_string()].into();
            check(wanted, known, [scenario(16)], Bytes::new(memory))
        };
        let message = check(&all, u64::MAX).unwrap_err().to_string();
        assert!(
            message.contains("--minimise fct.al.p99: no summary of this scenario"),
            "{message}"
        );
        assert!(message.contains("did you mean \"fct.all.p99\"?"), "{message}");
        assert!(!message.contains("--minimise fct.all.p99"), "{message}");
        // What is known from elsewhere is not looked for, and what would not fit is not looked at.
        assert!(check(&[wanted("mine.alone")], 0).is_ok());
        assert!(check(&all, 0).is_ok());
    }
}
