//! The numbers that a search is about are checked before its first trial.

use std::collections::{BTreeSet, HashSet};

use kernel::Bytes;
use scenario::{Registry, Scenario};

use super::super::keys::{self, Wanted};
use super::{Over, Plan, Range, Search};
use crate::engine::Failure;

/// Refuses aims and conditions on numbers that no summary of the space has.
///
/// # Errors
/// Each of them, with what is like it.
pub(super) fn check(
    search: &Search,
    plan: &Plan,
    registry: &Registry,
    memory: Bytes,
) -> Result<(), Failure> {
    let aims = search.aims.iter().map(|aim| Wanted {
        place: format!("--{} {}", if aim.is_maximised { "maximise" } else { "minimise" }, aim.key),
        key: aim.key.clone(),
        others: Vec::new(),
    });
    let conditions = search.constraints.iter().map(|constraint| Wanted {
        place: format!("--subject {:?}", constraint.text),
        key: constraint.key.clone(),
        others: Vec::new(),
    });
    let wanted: Vec<_> = aims.chain(conditions).collect();
    // What cannot be read has no summary.
    let run = |settings: Vec<String>| -> Option<Scenario> {
        plan.runs(search, &settings, registry).ok()?.into_iter().next()
    };
    let scenarios = corners(&plan.space).into_iter().filter_map(run);
    Ok(keys::check(&wanted, BTreeSet::new(), scenarios, memory)?)
}

/// Settings in which every choice occurs: which numbers a summary has depends on those, and not on where in its range
/// a number lies.
fn corners(space: &[Over]) -> Vec<Vec<String>> {
    let ends = |end: usize| {
        let base = space.iter().map(|Over { range, .. }| range.value(range.ends()[end])).collect();
        keys::one_replaced(base, |axis| match &space[axis].range {
            Range::Choice(values) => values.clone(),
            _ => Vec::new(),
        })
    };
    let mut corners = [ends(0), ends(1)].concat();
    let mut seen = HashSet::new();
    corners.retain(|corner| seen.insert(corner.clone()));
    corners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_occurs_and_both_ends_do() {
        let over = |text: &str| Over::parse(text).unwrap();
        let space = [over("fabric=Shoal,NDP,DCTCP"), over("workload.load=0.1..0.9")];
        let found: BTreeSet<String> =
            corners(&space).iter().map(|settings| settings.join(" ")).collect();
        let fabrics = ["Shoal", "NDP", "DCTCP"];
        let expected =
            fabrics.iter().flat_map(|name| [format!("{name} 0.1"), format!("{name} 0.9")]);
        assert_eq!(found, expected.collect());
    }
}
