//! Runs on other machines: what is sent there, what is done there, what comes back.
//!
//! No file system is shared: a job holds its scenario, already checked and with all defaults, and names the
//! files that it reads besides; what comes back are the files of its results, which are those that a run here
//! would have left, byte for byte but for the engine's speed. Which cluster it is, and what becomes of jobs
//! whose machine is lost, is the business of whoever implements [`Cluster`].

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kernel::Bytes;
use report::write_atomically;
use scenario::{Argument, BadInput, Document, Format, InputFiles, Located, Registry, Scenario};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::estimate;
use super::place::Place;
use super::run::{FILES, LINKS, TRACE, run_with};
use super::sweep::{LIBRARY_OF_POINT, finished};
use super::{Failure, checksums, guarded};

/// What a machine of a cluster is to do.
#[derive(Clone, Debug)]
pub struct Job {
    /// Names it among all; the hash of its scenario.
    pub key: String,
    /// What [`carry_out`] takes.
    pub work: Vec<u8>,
    /// Memory that it takes, about: no machine with less is any use. Unit: bytes.
    pub memory: Bytes,
    /// Files of this machine whose content it needs.
    pub files: Vec<PathBuf>,
}

/// What became of a job.
#[derive(Clone, Debug)]
pub enum Ended {
    /// The files that it left, by name.
    Files(Vec<(String, Vec<u8>)>),
    /// Its files are where they belong already: it ran on this machine.
    Here,
    /// Why there are none.
    Failed(String),
}

/// What is heard of a cluster.
#[derive(Clone, Debug)]
pub enum News {
    /// The job of this key has ended.
    Job(String, Ended),
    /// Something that the user should know: that there are no machines yet, say.
    Note(String),
}

/// Other machines. Called by one thread.
pub trait Cluster {
    /// Takes a job in; does not wait for a machine that is free.
    ///
    /// # Errors
    /// When the cluster is gone, or a file of the job cannot be read.
    fn submit(&self, job: Job) -> Result<(), Failure>;

    /// What is new; waits for it as long as `patience`.
    ///
    /// # Errors
    /// When the cluster is gone, or none of its machines is any use.
    fn next(&self, patience: Duration) -> Result<Option<News>, Failure>;

    /// How many jobs run at a time, as far as is known now; at least one.
    fn size(&self) -> usize;

    /// Cancels every job that has not ended. Those that have are still to be had from
    /// [`next`](Cluster::next).
    fn cancel(&self);
}

/// What [`Job::work`] holds, as JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    /// The resolved scenario, as TOML.
    scenario: String,
    /// The hash that it has where it was read.
    hash: String,
    /// The files that its workload is read from, in the order of the job's.
    inputs: Vec<Input>,
}

/// Files that a key of the workload names.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The key, below the workload.
    key: String,
    /// What stands there.
    original: Value,
    /// How many files that is.
    count: usize,
    /// Whether the key takes a list.
    is_list: bool,
}

impl Job {
    /// A run of `scenario`, which has one fabric and one seed.
    ///
    /// # Errors
    /// When its workload cannot be drawn.
    pub fn of(scenario: &Scenario, hash: &str) -> Result<Self, Failure> {
        let (mut inputs, mut files) = (Vec::new(), Vec::new());
        for InputFiles { key, original, paths, is_list } in scenario.workload.inputs() {
            inputs.push(Input { key, original, count: paths.len(), is_list });
            files.extend(paths);
        }
        let order = Order { scenario: scenario.to_toml(), hash: hash.into(), inputs };
        let work = serde_json::to_vec(&order)
            .map_err(|error| bad(format!("cannot be sent elsewhere: {error}")))?;
        let memory = estimate::memory(scenario)?;
        Ok(Self { key: hash.into(), work, memory, files })
    }
}

/// Does what a [`Job`] asks for: leaves in `directory` what a point of a sweep leaves. `files` are copies of the
/// job's, in its order. `stop` is asked now and then.
///
/// # Errors
/// As a run here; and when it was told to stop.
pub fn carry_out(
    work: &[u8],
    files: &[PathBuf],
    directory: &Path,
    stop: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    guarded(|| {
        let scenario = read(work, files)?;
        let mut progress = |_| match stop() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let done = run_with(&scenario, directory, LIBRARY_OF_POINT, &mut progress)?;
        if done.is_interrupted() { Err(Failure::Interrupted) } else { Ok(()) }
    })
}

/// The scenario of a job. Whether it fits was decided before it was sent to this machine.
fn read(work: &[u8], files: &[PathBuf]) -> Result<Scenario, Failure> {
    let order: Order = serde_json::from_slice(work)
        .map_err(|error| bad(format!("{error}; expected one of this version")))?;
    let document = Document::parse("job", &order.scenario, Format::Toml)?;
    let mut copies = files.iter().map(|copy| Value::from(copy.to_string_lossy().into_owned()));
    let arguments = order.inputs.iter().map(|input| {
        let mut these: Vec<Value> = copies.by_ref().take(input.count).collect();
        let value = match input.is_list {
            true => Value::from(these),
            false => these.pop().unwrap_or_default(),
        };
        Argument::value(&format!("workload.{}", input.key), &value, "the copy of its trace")
    });
    let arguments: Vec<_> = arguments.collect();
    let mut scenario = Scenario::read(document, &arguments, &Registry::standard())?;
    let originals = order.inputs.into_iter().map(|input| (input.key, input.original));
    scenario.workload.set_originals(originals.collect());
    assert_eq!(scenario.hash(), order.hash, "the resolved scenario reads as another");
    Ok(scenario)
}

fn bad(message: String) -> BadInput {
    BadInput::single(Located::whole("job", message))
}

/// Stores what came back of a job in `directory`, as if its run had been here; its summary.
///
/// # Errors
/// When it cannot be stored, or is not what a run leaves; or why the job has failed.
pub(super) fn keep(ended: Ended, directory: &Path, hash: &str) -> Result<Value, String> {
    match ended {
        Ended::Failed(why) => return Err(why),
        Ended::Files(files) => store(&files, directory).map_err(|failure| failure.to_string())?,
        Ended::Here => {}
    }
    let summary = finished(directory, hash);
    summary.ok_or_else(|| "what came back from the cluster is not whole".into())
}

/// Stores files, the summary last.
fn store(files: &[(String, Vec<u8>)], directory: &Path) -> Result<(), Failure> {
    let of = |name: &str| {
        let found = files.iter().find(|(known, _)| known == name);
        found.map(|(_, bytes)| bytes.as_slice()).ok_or_else(|| {
            Failure::Cluster(format!(
                "{name} is missing in what came back of {}",
                directory.display()
            ))
        })
    };
    let place = Place::create(directory)?;
    place.forget_summary()?;
    let (last, others) = FILES.split_last().expect("a run leaves files");
    let came = |name: &&&str| files.iter().any(|(known, _)| known == **name);
    let record = [&TRACE, &LINKS].into_iter().filter(came);
    for name in record.chain(others).chain([&checksums::NAME, last]) {
        write_atomically(&directory.join(name), of(name)?)?;
    }
    place.keep();
    Ok(())
}
