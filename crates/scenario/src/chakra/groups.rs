//! Which ranks a group has: as a file says, or those whose traces name it.

use std::collections::BTreeMap;

use super::nodes::{Draft, DraftWork};

/// The groups of a trace, by name.
#[derive(Debug)]
pub(super) struct Groups {
    index: BTreeMap<String, usize>,
    list: Vec<(String, Vec<u32>)>,
}

/// What an operation that names no group is carried out by: all ranks.
const ALL: &str = "";

impl Groups {
    /// The groups that the nodes of all ranks name. `file`: name and text of the file that lists them.
    pub(super) fn of(ranks: &[Vec<Draft>], file: Option<(&str, &str)>) -> Result<Self, String> {
        let count = ranks.len() as u32;
        let mut named: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for (rank, drafts) in (0u32..).zip(ranks) {
            for draft in drafts {
                let DraftWork::Collective { group, .. } = &draft.work else { continue };
                match named.get_mut(group) {
                    Some(ranks) if ranks.last() == Some(&rank) => {}
                    Some(ranks) => ranks.push(rank),
                    None => _ = named.insert(group.clone(), vec![rank]),
                }
            }
        }
        let mut listed = match file {
            Some((name, text)) => Some(read(name, text, count)?),
            None => None,
        };
        let (mut index, mut list) = (BTreeMap::new(), Vec::new());
        for (name, ranks) in named {
            let ranks = match (&mut listed, name.as_str()) {
                (_, ALL) => (0..count).collect(),
                (None, _) => ranks,
                (Some(listed), _) => listed.remove(&name).ok_or_else(|| {
                    let (file, _) = file.unwrap_or_default();
                    format!("{file}: has no group {name:?}, which rank {} names", ranks[0])
                })?,
            };
            index.insert(name.clone(), list.len());
            list.push((name, ranks));
        }
        Ok(Self { index, list })
    }

    /// The index of a group, and its ranks.
    pub(super) fn get(&self, name: &str) -> (usize, &[u32]) {
        let index = self.index[name];
        (index, &self.list[index].1)
    }

    pub(super) fn into_list(self) -> Vec<(String, Vec<u32>)> {
        self.list
    }
}

/// A file of groups: names, and lists of ranks.
fn read(name: &str, text: &str, count: u32) -> Result<BTreeMap<String, Vec<u32>>, String> {
    let groups: BTreeMap<String, Vec<u32>> = serde_json::from_str(text).map_err(|error| {
        format!(
            "{name}: {error}; expected groups and their ranks, as {{\"0\": [0, 1, 2, 3], \"1\": [0, 2]}}"
        )
    })?;
    for (group, ranks) in &groups {
        if ranks.is_empty() {
            return Err(format!("{name}: group {group:?} has no ranks"));
        }
        if let Some(rank) = ranks.iter().find(|&&rank| rank >= count) {
            return Err(format!(
                "{name}: group {group:?} has rank {rank}; the trace has ranks 0 to {}",
                count - 1
            ));
        }
        let mut sorted = ranks.clone();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("{name}: group {group:?} has rank {} twice", twice[0]));
        }
    }
    Ok(groups)
}
