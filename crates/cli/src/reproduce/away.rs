//! Experiments on the machines of a cluster: what is sent there, what is done there.
//!
//! An experiment is named, not sent: the machines have the same build, or say that they have not. What comes back are
//! the files of its directory, as if it had been run here.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kernel::Bytes;
use report::write_atomically;
use scenario::{BadInput, Located};
use serde::{Deserialize, Serialize};

use super::all::{
    COMMIT, MEASURED, One, Outcome, PATIENCE, Progress, REPORT, Stored, Work, store, word,
};
use super::{Effort, Experiment, Paper, papers};
use crate::engine::cluster::{self, Cluster, Ended, Job, News};
use crate::engine::{Busy, Failure, Place, caught};

/// What a machine has to have for an experiment (our choice: nobody knows beforehand what one takes; the quick ones
/// take less).
const MEMORY: Bytes = Bytes::new(1 << 30);

/// What [`Job::work`] holds, as JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    paper: String,
    experiment: String,
    effort: String,
    /// Of the build where the experiment was asked for.
    commit: String,
}

/// The name of an experiment among all.
pub(super) fn key(paper: &Paper, experiment: &Experiment) -> String {
    format!("{}/{}", paper.name, experiment.name)
}

/// An experiment as a job.
pub(super) fn job(paper: &Paper, experiment: &Experiment, effort: Effort) -> Job {
    let order = Order {
        paper: paper.name.into(),
        experiment: experiment.name.into(),
        effort: word(effort).into(),
        commit: COMMIT.into(),
    };
    let work = serde_json::to_vec(&order).expect("texts are JSON");
    Job { key: key(paper, experiment), work, memory: MEMORY, files: Vec::new() }
}

/// Does what a job asks for, an experiment or a run: leaves its files in `directory`. `files` are copies of the job's, in
/// its order. `stop` is asked now and then.
///
/// # Errors
/// As here; when it was told to stop; and when this is another build than that which asks.
pub fn carry_out(
    work: &[u8],
    files: &[PathBuf],
    directory: &Path,
    stop: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    let Ok(order) = serde_json::from_slice::<Order>(work) else {
        return cluster::carry_out(work, files, directory, stop);
    };
    let bad = |message: String| {
        Failure::from(BadInput::single(Located::whole(
            &format!("experiment {}/{}", order.paper, order.experiment),
            message,
        )))
    };
    if order.commit != COMMIT {
        let expected = &order.commit;
        return Err(bad(format!(
            "found a build of commit {COMMIT:?} on a worker; expected {expected:?}, as where it was asked for: figures \
             could differ; install the same build there"
        )));
    }
    let all =
        papers().iter().flat_map(|paper| paper.experiments.iter().map(move |one| (paper, one)));
    let mut named =
        all.filter(|(paper, one)| (paper.name, one.name) == (&*order.paper, &*order.experiment));
    let effort =
        [Effort::Quick, Effort::Full].into_iter().find(|effort| word(*effort) == order.effort);
    let (Some((paper, experiment)), Some(effort)) = (named.next(), effort) else {
        return Err(bad("unknown here".into()));
    };
    // A machine of a cluster has as many jobs at a time as it has threads for.
    reproductions::spread::set_runs(1);
    let began = Instant::now();
    let mut heard = |_: f64, _: &str| match stop() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let outcome = caught(|| experiment.run(effort, &mut heard));
    let outcome = outcome.map_err(|panic| reproductions::Failure::Model(panic.message));
    match outcome.and_then(|outcome| outcome) {
        Ok(findings) => {
            // One run at a time.
            let took = [began.elapsed(); 2];
            store(directory, paper, experiment, effort, findings, took)
        }
        Err(reproductions::Failure::Interrupted) => Err(Failure::Interrupted),
        Err(failure) => Err(Failure::Cluster(failure.to_string())),
    }
}

/// Has experiments carried out on a cluster, and stores each as it comes, below its key in `directory`.
///
/// # Errors
/// When the cluster is gone or of no use: what has come until then is kept.
pub(super) fn carry_out_all(
    todo: &[One],
    work: &Work,
    (effort, directory): (Effort, &Path),
    cluster: &dyn Cluster,
    watch: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Outcome, Failure> {
    let busy = Busy::begin();
    let mut away = Away { left: BTreeMap::new(), effort, directory, outcome: Outcome::default() };
    for (index, (paper, experiment)) in todo.iter().enumerate() {
        away.left.insert(key(paper, experiment), index);
        cluster.submit(job(paper, experiment, effort))?;
    }
    let mut told = Vec::new();
    while !away.left.is_empty() {
        let progress = Progress {
            found: work.before,
            done: work.total() - away.left.values().map(|&place| work.each[place]).sum::<f64>(),
            total: work.total(),
            under_way: vec![format!("{} on the cluster", away.left.len())],
            told: std::mem::take(&mut told),
        };
        if watch(&progress).is_break() {
            away.outcome.interrupted = true;
            busy.stopping();
            break;
        }
        match cluster.next(PATIENCE) {
            Ok(Some(News::Job(key, ended))) => away.land(&key, ended),
            Ok(Some(News::Note(text))) => told.push(text),
            Ok(None) => {}
            Err(failure) => {
                cluster.cancel();
                return Err(failure);
            }
        }
    }
    cluster.cancel();
    // What has ended meanwhile is worth keeping.
    while let Ok(Some(news)) = cluster.next(Duration::ZERO) {
        if let News::Job(key, ended) = news {
            away.land(&key, ended);
        }
    }
    let mut outcome = away.outcome;
    outcome.broken.sort();
    Ok(outcome)
}

/// Experiments that are under way elsewhere.
struct Away<'a> {
    /// Their places in the list, by key.
    left: BTreeMap<String, usize>,
    effort: Effort,
    directory: &'a Path,
    outcome: Outcome,
}

impl Away<'_> {
    fn land(&mut self, key: &str, ended: Ended) {
        if self.left.remove(key).is_none() {
            return;
        }
        let kept = match ended {
            Ended::Files(files) => keep(&self.directory.join(key), &files, self.effort),
            Ended::Failed(why) => Err(why),
            Ended::Here => Ok(()),
        };
        if let Err(why) = kept {
            self.outcome.broken.push((key.replace('/', " "), why));
        }
    }
}

/// Stores what came back of an experiment.
fn keep(directory: &Path, files: &[(String, Vec<u8>)], effort: Effort) -> Result<(), String> {
    let store = || -> Result<(), Failure> {
        let place = Place::create(directory)?;
        // Last what says that all is there.
        for name in [REPORT, MEASURED] {
            let found = files.iter().find(|(known, _)| known == name);
            if let Some((_, bytes)) = found {
                write_atomically(&directory.join(name), bytes)?;
            }
        }
        place.keep();
        Ok(())
    };
    store().map_err(|failure| failure.to_string())?;
    match Stored::read(directory).is_some_and(|stored| stored.is_ours(effort)) {
        true => Ok(()),
        false => Err("what came back from the cluster is not whole".into()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::fs;

    use super::super::all::{Missing, all, select};
    use super::*;

    /// Another machine: what it gets are bytes, and so is what comes back.
    #[derive(Default)]
    struct Elsewhere {
        jobs: RefCell<VecDeque<Job>>,
        done: RefCell<Vec<String>>,
        /// Of another build.
        is_foreign: bool,
    }

    impl Cluster for Elsewhere {
        fn submit(&self, job: Job) -> Result<(), Failure> {
            self.jobs.borrow_mut().push_back(job);
            Ok(())
        }

        fn next(&self, _: Duration) -> Result<Option<News>, Failure> {
            let Some(mut job) = self.jobs.borrow_mut().pop_front() else { return Ok(None) };
            if self.is_foreign {
                let text = String::from_utf8(job.work).unwrap();
                let commit = format!("\"commit\":{:?}", COMMIT);
                assert!(text.contains(&commit), "{text}");
                job.work = text.replace(&commit, "\"commit\":\"another\"").into_bytes();
            }
            let there = tempfile::tempdir().unwrap();
            let results = there.path().join("results");
            let ended = match carry_out(&job.work, &[], &results, &|| false) {
                Ok(()) => {
                    let all = fs::read_dir(&results).unwrap().map(|entry| entry.unwrap().path());
                    let file = |path: PathBuf| {
                        let name = path.file_name().unwrap().to_string_lossy().into_owned();
                        (name, fs::read(path).unwrap())
                    };
                    Ended::Files(all.map(file).collect())
                }
                Err(failure) => Ended::Failed(failure.to_string()),
            };
            self.done.borrow_mut().push(job.key.clone());
            Ok(Some(News::Job(job.key, ended)))
        }

        fn size(&self) -> usize {
            1
        }

        fn cancel(&self) {
            self.jobs.borrow_mut().clear();
        }
    }

    /// What an experiment left but for the time that it took.
    fn measured(directory: &Path) -> (Vec<u8>, serde_json::Value) {
        let report = fs::read(directory.join(REPORT)).unwrap();
        let text = fs::read(directory.join(MEASURED)).unwrap();
        let mut stored: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let table = stored.as_object_mut().unwrap();
        for word in ["wall_seconds", "run_seconds", "date"] {
            assert!(table.remove(word).is_some(), "{word}");
        }
        (report, stored)
    }

    #[test]
    fn experiments_elsewhere_leave_what_they_leave_here_and_are_not_made_again() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let chosen = select(&["pl2/section2".into()]).unwrap();
        let watch = &mut |_: &Progress| ControlFlow::Continue(());
        all(&chosen, Effort::Quick, (here.path(), None), Missing::Run(1), watch).unwrap();
        let cluster = Elsewhere::default();
        for _ in 0..2 {
            let found =
                all(&chosen, Effort::Quick, (there.path(), None), Missing::On(&cluster), watch)
                    .unwrap();
            assert!(found.broken.is_empty() && !found.interrupted, "{:?}", found.broken);
            assert_eq!(*cluster.done.borrow(), ["pl2/section2"]);
        }
        let of = |place: &Path| measured(&place.join("pl2/section2"));
        assert_eq!(of(there.path()), of(here.path()));
    }

    #[test]
    fn another_build_is_told_and_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let chosen = select(&["pl2/section2".into()]).unwrap();
        let cluster = Elsewhere { is_foreign: true, ..Elsewhere::default() };
        let watch = &mut |_: &Progress| ControlFlow::Continue(());
        let found = all(&chosen, Effort::Quick, (place.path(), None), Missing::On(&cluster), watch)
            .unwrap();
        let [(name, why)] = &found.broken[..] else { panic!("{:?}", found.broken) };
        assert_eq!(name, "pl2 section2");
        assert!(why.contains("install the same build there"), "{why}");
        assert!(!place.path().join("pl2/section2").exists());
    }
}
