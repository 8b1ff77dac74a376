//! This machine as a [`Cluster`]: jobs run in threads, their results where they belong.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::cluster::{Cluster, Ended, Job, News, carry_out};
use super::{Budget, Failure};

/// The threads of this machine.
struct Here<'a> {
    jobs: Sender<Job>,
    /// Threads.
    size: usize,
    ended: Receiver<(String, Ended)>,
    is_cancelled: &'a AtomicBool,
}

/// Does `work` with this machine for a cluster, on which as many jobs run at a time as `budget` has room for;
/// their results go to `folder`, each below its key.
pub(super) fn here<T>(
    budget: &Budget<'_>,
    folder: &Path,
    work: impl FnOnce(&dyn Cluster) -> T,
) -> T {
    let (jobs, waiting) = mpsc::channel();
    let (done, ended) = mpsc::channel();
    let (waiting, is_cancelled) = (Mutex::new(waiting), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..budget.jobs() {
            let done = done.clone();
            scope.spawn(|| run(&waiting, done, (budget, folder), &is_cancelled));
        }
        let machine = Here { jobs, size: budget.jobs(), ended, is_cancelled: &is_cancelled };
        let outcome = work(&machine);
        machine.cancel();
        // Who waits for jobs hears that there are no more.
        drop(machine);
        outcome
    })
}

/// What one thread does, until there are no more jobs.
fn run(
    waiting: &Mutex<Receiver<Job>>,
    done: Sender<(String, Ended)>,
    (budget, folder): (&Budget<'_>, &Path),
    is_cancelled: &AtomicBool,
) {
    let stop = || is_cancelled.load(Ordering::Relaxed);
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        let Some(_share) = budget.take(job.memory, stop).filter(|_| !stop()) else { continue };
        let ended = match carry_out(&job.work, &job.files, &folder.join(&job.key), &stop) {
            Ok(()) => Ended::Here,
            Err(Failure::Interrupted) => continue,
            Err(failure) => Ended::Failed(failure.to_string()),
        };
        // Nobody waits for it any more: it is stored nevertheless.
        let _ = done.send((job.key, ended));
    }
}

impl Cluster for Here<'_> {
    fn submit(&self, job: Job) -> Result<(), Failure> {
        self.jobs.send(job).expect("threads live as long as this");
        Ok(())
    }

    fn next(&self, patience: Duration) -> Result<Option<News>, Failure> {
        match self.ended.recv_timeout(patience) {
            Ok((key, ended)) => Ok(Some(News::Job(key, ended))),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
        }
    }

    fn size(&self) -> usize {
        self.size
    }

    fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }
}
