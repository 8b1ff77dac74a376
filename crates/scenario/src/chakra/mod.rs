//! Execution traces of MLCommons Chakra: what each accelerator of a training run computes and sends.
//!
//! A trace is a file a rank, `NAME.0.et`, `NAME.1.et` and so on, each a `GlobalMetadata` and then
//! nodes, in Protocol Buffers, each message after its length. What is read:
//!
//! | node | is |
//! | --- | --- |
//! | `COMP_NODE`, `MEM_LOAD_NODE`, `MEM_STORE_NODE`, `STORAGE_NODE`, `CHECKPOINT_NODE` | a computation of `duration_micros`, or of `num_ops` at a rate that is given |
//! | `METADATA_NODE`, `BATCH_NODE` | a point of no duration, or of its own |
//! | `COMM_SEND_NODE`, `COMM_RECV_NODE` | a message, by `comm_src`, `comm_dst`, `comm_tag`, `comm_size` |
//! | `COMM_COLL_NODE` | an operation of the group `pg_name`, by `comm_type` and `comm_size` |
//!
//! How long communication took where the trace was recorded is not used: that is what a network is
//! simulated for. What the nodes mean, and who meets whom, is in [`rack::workload::execution`].

mod groups;
mod messages;
mod nodes;
mod stream;
#[cfg(test)]
mod test_bytes;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use kernel::Bytes;
use rack::Class;
use rack::workload::execution::{Execution, Node};
use rack::workload::operation::Algorithm;

use groups::Groups;
use nodes::Draft;
use stream::Messages;

/// How a trace is to be played.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Playing {
    /// How operations of groups are carried out.
    pub algorithm: Algorithm,
    /// Operations that a rank computes a second, for computations that state these alone. Unit: 1/s.
    pub compute_rate: Option<f64>,
    /// Traffic class.
    pub class: Class,
}

/// A rank's trace: what messages call it, and what is in it.
pub struct Source<R> {
    /// The name, of a file usually.
    pub name: String,
    /// The bytes.
    pub bytes: R,
}

/// The files of the trace `prefix`, by rank.
///
/// # Errors
/// When there are none, or some between are missing.
pub fn files(prefix: &Path) -> Result<Vec<PathBuf>, String> {
    let name = prefix.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = prefix.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let entries = fs::read_dir(folder)
        .map_err(|error| format!("{} cannot be read: {error}", folder.display()))?;
    let mut ranks: Vec<(u32, PathBuf)> = Vec::new();
    for entry in entries {
        let entry =
            entry.map_err(|error| format!("{} cannot be read: {error}", folder.display()))?;
        let file = entry.file_name().to_string_lossy().into_owned();
        let rank = file.strip_prefix(&name).and_then(|rest| rest.strip_prefix('.'));
        let rank = rank.and_then(|rest| rest.strip_suffix(".et"));
        if let Some(rank) = rank.and_then(|digits| digits.parse().ok()) {
            ranks.push((rank, entry.path()));
        }
    }
    ranks.sort();
    let gap = ranks.iter().zip(0u32..).find(|((rank, _), expected)| rank != expected);
    match gap {
        _ if ranks.is_empty() => Err(format!(
            "found no {name}.0.et in {}; expected a file a rank of the trace, NAME.0.et, NAME.1.et and so on, \
             and the path up to NAME here",
            folder.display()
        )),
        Some(((rank, _), expected)) if *rank > expected => Err(format!(
            "found {name}.{rank}.et and no {name}.{expected}.et in {}; a trace has a file for each rank",
            folder.display()
        )),
        Some(((rank, _), _)) => Err(format!("found two files of rank {rank} of {name}")),
        None => Ok(ranks.into_iter().map(|(_, path)| path).collect()),
    }
}

/// Reads the trace of all ranks. `groups` is the text of a file that says which ranks each group has,
/// with its name: an object of lists in JSON, as ASTRA-sim has it. Without it a group is the ranks
/// whose traces name it.
///
/// # Errors
/// The first thing that is wrong, with file and place.
pub fn read<R: std::io::Read>(
    sources: Vec<Source<R>>,
    groups: Option<(&str, &str)>,
    playing: Playing,
    memory: Bytes,
) -> Result<Execution, String> {
    let names: Vec<String> = sources.iter().map(|source| source.name.clone()).collect();
    let mut ranks: Vec<Vec<Draft>> = Vec::with_capacity(sources.len());
    let mut taken = 0u64;
    for (rank, source) in (0u32..).zip(sources) {
        let mut messages = Messages::open(source.name, source.bytes)?;
        let mut drafts = Vec::new();
        while let Some((at, node)) = messages.next_node()? {
            let draft = Draft::of(rank, node, playing.compute_rate)
                .map_err(|message| messages.complaint(at, &message))?;
            taken += draft.memory();
            if taken > memory.get() {
                let memory = rack::memory::binary(memory);
                let message = format!(
                    "the trace takes more memory than there may be, {memory}; take fewer ranks or steps of it"
                );
                return Err(messages.complaint(at, &message));
            }
            drafts.push(draft);
        }
        ranks.push(drafts);
    }
    let groups = Groups::of(&ranks, groups)?;
    let located =
        |rank: usize, id: u64, message: String| format!("{}: node {id}: {message}", names[rank]);
    let mut resolved: Vec<Vec<Node>> = Vec::with_capacity(ranks.len());
    for (rank, drafts) in ranks.into_iter().enumerate() {
        let node = |draft: Draft| {
            let id = draft.id;
            draft.resolve(&groups).map_err(|message| located(rank, id, message))
        };
        resolved.push(drafts.into_iter().map(node).collect::<Result<_, _>>()?);
    }
    let (algorithm, class) = (playing.algorithm, playing.class);
    Ok(Execution { ranks: resolved, groups: groups.into_list(), algorithm, class })
}

/// Memory that a trace takes while it is played, by and large.
#[must_use]
pub fn memory(execution: &Execution) -> Bytes {
    let nodes = execution.ranks.iter().flatten();
    Bytes::new(nodes.map(|node| nodes::memory(node.after.len())).sum())
}
