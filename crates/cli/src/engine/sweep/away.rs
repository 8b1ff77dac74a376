//! The points of a sweep on the machines of a cluster: handed in as they are checked, stored as they come.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::super::cluster::{Cluster, Ended, Job, News, keep};
use super::super::{Busy, Failure};
use super::queue::{Queue, Step, Task};
use super::{Outcome, Point, finished};

/// How long a point that has ended is waited for before the user is listened to (our choice: below what
/// people notice).
const PERIOD: Duration = Duration::from_millis(50);

/// What is under way elsewhere.
struct Away<'a> {
    queue: &'a Queue<'a>,
    cluster: &'a dyn Cluster,
    /// The folder of the points.
    place: &'a Path,
    /// By key; more than one where points are the same, written in several ways.
    tasks: BTreeMap<String, Vec<Task>>,
}

/// Runs all points of `queue` on a cluster; those that have ended, and why it was given up, if it was.
pub(super) fn carry_out(
    queue: Queue<'_>,
    place: &Path,
    cluster: &dyn Cluster,
) -> (Vec<Point>, Option<Failure>) {
    let busy = Busy::begin();
    let mut away = Away { queue: &queue, cluster, place, tasks: BTreeMap::new() };
    let broken = away.carry_out(&busy).err();
    cluster.cancel();
    // What has ended meanwhile is worth keeping.
    while let Ok(Some(news)) = cluster.next(Duration::ZERO) {
        away.hear(news);
    }
    let left = std::mem::take(&mut away.tasks);
    left.into_values().flatten().for_each(|task| queue.end(task));
    loop {
        match queue.next() {
            Step::End => break,
            Step::Check(index) => queue.check(index, true),
            Step::Run(task) => queue.end(*task),
        }
    }
    (queue.into_points(), broken)
}

impl Away<'_> {
    /// Until all have ended or the user asks to stop.
    fn carry_out(&mut self, busy: &Busy) -> Result<(), Failure> {
        while !self.queue.is_stopped(busy) {
            let mut patience = Duration::ZERO;
            match self.queue.next() {
                Step::Check(index) => self.queue.check(index, false),
                Step::Run(task) => self.hand_in(*task)?,
                Step::End if self.tasks.is_empty() => return Ok(()),
                Step::End => patience = PERIOD,
            }
            while let Some(news) = self.cluster.next(patience)? {
                self.hear(news);
                patience = Duration::ZERO;
            }
        }
        Ok(())
    }

    /// Sends a point away, unless its results are here, or will be.
    fn hand_in(&mut self, mut task: Task) -> Result<(), Failure> {
        // Not kept: a network may be large, and there may be thousands.
        let Some(scenario) = task.scenario.take() else {
            self.queue.end(task);
            return Ok(());
        };
        let hash = task.point.hash.clone();
        if let Some(same) = self.tasks.get_mut(&hash) {
            same.push(task);
            return Ok(());
        }
        if let Some(summary) = finished(&self.place.join(&hash), &hash) {
            task.point.outcome = Outcome::Found(summary);
            self.queue.end(task);
            return Ok(());
        }
        match Job::of(&scenario, &hash) {
            Ok(job) => {
                self.tasks.insert(hash, vec![task]);
                self.cluster.submit(job)
            }
            Err(failure) => {
                task.point.outcome = Outcome::Failed(failure.to_string());
                self.queue.end(task);
                Ok(())
            }
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Job(key, ended) => self.land(&key, ended),
            News::Note(text) => self.queue.watch.told(&text),
        }
    }

    /// Stores what came back of a job.
    fn land(&mut self, key: &str, ended: Ended) {
        let Some(tasks) = self.tasks.remove(key) else { return };
        let mut outcome = match keep(ended, &self.place.join(key), key) {
            Err(why) => Outcome::Failed(why),
            Ok(summary) => match self.queue.share_library(self.place) {
                Ok(()) => Outcome::Done(summary),
                Err(failure) => Outcome::Failed(failure.to_string()),
            },
        };
        for mut task in tasks {
            task.point.outcome = outcome.clone();
            self.queue.end(task);
            // Whoever comes second finds the results of the first.
            if let Outcome::Done(summary) = outcome {
                outcome = Outcome::Found(summary);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::PathBuf;

    use kernel::Bytes;
    use scenario::{Document, Format, Registry};

    use super::super::{Axis, Drawing, Grid, Machines, Swept, Watch, sweep};
    use super::*;
    use crate::engine::{Budget, cluster};

    /// A cluster of one machine that has no files of ours, which works when it is asked what is new; the last
    /// job first.
    #[derive(Default)]
    struct Elsewhere {
        jobs: RefCell<Vec<(Job, Vec<Vec<u8>>)>>,
        /// A file of ours that is removed before it begins.
        removed: Option<PathBuf>,
        /// How many it has done.
        done: RefCell<usize>,
        /// Jobs after which it is gone.
        life: Option<usize>,
        is_cancelled: RefCell<bool>,
    }

    impl Cluster for Elsewhere {
        fn submit(&self, job: Job) -> Result<(), Failure> {
            let held = job.files.iter().map(|path| fs::read(path).unwrap()).collect();
            self.jobs.borrow_mut().push((job, held));
            Ok(())
        }

        fn next(&self, patience: Duration) -> Result<Option<News>, Failure> {
            // Not before all have been handed in.
            if patience.is_zero() || *self.is_cancelled.borrow() {
                return Ok(None);
            }
            if self.life == Some(*self.done.borrow()) {
                return Err(Failure::Cluster("the cluster is gone".into()));
            }
            self.removed.iter().for_each(|path| fs::remove_file(path).unwrap_or(()));
            let Some((job, held)) = self.jobs.borrow_mut().pop() else { return Ok(None) };
            *self.done.borrow_mut() += 1;
            let there = tempfile::tempdir().unwrap();
            let copy = |(index, content): (usize, &Vec<u8>)| {
                let copy = there.path().join(format!("copy-{index}"));
                fs::write(&copy, content).unwrap();
                copy
            };
            let copies: Vec<_> = held.iter().enumerate().map(copy).collect();
            let results = there.path().join("results");
            let ended = match cluster::carry_out(&job.work, &copies, &results, &|| false) {
                Ok(()) => Ended::Files(files(&results).into_iter().collect()),
                Err(failure) => Ended::Failed(failure.to_string()),
            };
            Ok(Some(News::Job(job.key, ended)))
        }

        fn size(&self) -> usize {
            1
        }

        fn cancel(&self) {
            self.is_cancelled.replace(true);
        }
    }

    /// Every file below `folder`, by its path.
    fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
        let (mut found, mut folders) = (BTreeMap::new(), vec![folder.to_path_buf()]);
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
        found
    }

    /// What tells how fast the engine was is no result.
    fn without_speed(mut files: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
        for (name, bytes) in &mut files {
            if name.ends_with("summary.json") {
                let mut summary: serde_json::Value = serde_json::from_slice(bytes).unwrap();
                assert!(summary["engine"].is_object());
                summary["engine"] = serde_json::Value::Null;
                *bytes = summary.to_string().into_bytes();
            }
        }
        // Both hold that speed, or the digest of what does.
        files.retain(|name, _| {
            let of_point = name.starts_with("points/");
            !(of_point && (name.ends_with("report.html") || name.ends_with("SHA256SUMS")))
        });
        files
    }

    const SMALL: &str = "name = 'small'\nrun.flows = 60\nfabric = { kind = 'shoal', nodes = 16 }\n";

    /// A sweep of [`SMALL`] with `workload`, here or there.
    fn swept(
        workload: &str,
        axis: &str,
        place: &Path,
        cluster: Option<&Elsewhere>,
        watch: &dyn Watch,
    ) -> Result<Swept, Failure> {
        let text = format!("{SMALL}workload = {workload}\n");
        let document = Document::parse("small.toml", &text, Format::Toml).unwrap();
        let axes = vec![Axis::parse(axis).unwrap()];
        let (grid, drawing) = (Grid { document, arguments: Vec::new(), axes }, Drawing::default());
        let budget = Budget::new(2, Bytes::new(u64::MAX), &|_| ());
        let machines = cluster.map_or(Machines::This(&budget), |there| Machines::Cluster(there));
        sweep(&grid, Some(place), &drawing, machines, &Registry::standard(), watch)
    }

    const POISSON: &str = "{ kind = 'poisson', load = 0.3 }";

    #[track_caller]
    fn check_same(workload: &str, axis: &str, cluster: &Elsewhere) -> Swept {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let expected = swept(workload, axis, here.path(), None, &()).unwrap();
        let found = swept(workload, axis, there.path(), Some(cluster), &()).unwrap();
        let words = |swept: &Swept| {
            let word =
                |point: &Point| format!("{:?}", point.outcome).split('(').next().map(String::from);
            swept.points.iter().map(word).collect::<Vec<_>>()
        };
        assert_eq!(words(&found), words(&expected));
        let (found_files, expected) = (files(there.path()), files(here.path()));
        assert_eq!(without_speed(found_files), without_speed(expected));
        found
    }

    #[test]
    fn a_cluster_leaves_the_files_that_this_machine_leaves() {
        // The third is a point of its own by its words alone, the last none at all.
        let found = check_same(POISSON, "workload.load=0.2,0.4,4e-1,-2", &Elsewhere::default());
        let words: Vec<_> = found.points.iter().map(|point| point.outcome.as_str()).collect();
        assert_eq!(words, ["done", "done", "done", "failed"]);
        assert!(matches!(found.points[2].outcome, Outcome::Found(_)));
    }

    #[test]
    fn a_trace_goes_along_and_results_name_where_it_came_from() {
        let place = tempfile::tempdir().unwrap();
        let trace = place.path().join("flows.csv");
        fs::write(&trace, "start_ps,src,dst,bytes\n0,0,1,5000\n1000,1,2,800\n").unwrap();
        let workload = format!("{{ kind = 'trace', path = '{}' }}", trace.display());
        let cluster = Elsewhere { removed: Some(trace), ..Elsewhere::default() };
        let found = check_same(&workload, "seed=1,2", &cluster);
        assert!(found.points.iter().all(|point| matches!(point.outcome, Outcome::Done(_))));
    }

    #[test]
    fn slow_what_has_ended_before_a_cluster_is_gone_is_kept_and_not_run_again() {
        let place = tempfile::tempdir().unwrap();
        let axis = "seed=1,2,3,4";
        let mortal = Elsewhere { life: Some(2), ..Elsewhere::default() };
        let failure = swept(POISSON, axis, place.path(), Some(&mortal), &()).unwrap_err();
        assert_eq!((failure.to_string().as_str(), failure.exit_code()), ("the cluster is gone", 1));
        assert!(*mortal.is_cancelled.borrow());
        let second = Elsewhere::default();
        let all = swept(POISSON, axis, place.path(), Some(&second), &()).unwrap();
        let found = |point: &&Point| matches!(point.outcome, Outcome::Found(_));
        assert_eq!(all.points.iter().filter(found).count(), 2);
        assert_eq!(*second.done.borrow(), 2);
    }

    /// Writes down how many points there are said to be.
    #[derive(Default)]
    struct Counted(std::sync::Mutex<Vec<usize>>);

    impl Watch for Counted {
        fn ended(&self, count: usize, _: &Point) {
            self.0.lock().unwrap().push(count);
        }
    }

    #[test]
    fn points_that_are_being_checked_are_counted() {
        let place = tempfile::tempdir().unwrap();
        let watch = Counted::default();
        swept(POISSON, "seed=1,2,3,4,5,6", place.path(), None, &watch).unwrap();
        assert_eq!(*watch.0.lock().unwrap(), [6; 6]);
    }

    /// Stops after a point has ended.
    struct Impatient(std::sync::atomic::AtomicBool);

    impl Watch for Impatient {
        fn ended(&self, _: usize, point: &Point) {
            let is_over = matches!(point.outcome, Outcome::Done(_));
            self.0.fetch_or(is_over, std::sync::atomic::Ordering::Relaxed);
        }

        fn stop(&self) -> bool {
            self.0.load(std::sync::atomic::Ordering::Relaxed)
        }
    }

    #[test]
    fn a_sweep_that_is_stopped_cancels_what_runs_and_keeps_what_has_ended() {
        let place = tempfile::tempdir().unwrap();
        let cluster = Elsewhere::default();
        let watch = Impatient(false.into());
        let stopped = swept(POISSON, "seed=1,2,3", place.path(), Some(&cluster), &watch).unwrap();
        assert!(*cluster.is_cancelled.borrow());
        let words: Vec<_> = stopped.points.iter().map(|point| point.outcome.as_str()).collect();
        assert_eq!(words.iter().filter(|word| **word == "not run").count(), 2, "{words:?}");
        let again = swept(POISSON, "seed=1,2,3", place.path(), Some(&Elsewhere::default()), &());
        assert!(again.unwrap().points.iter().all(|point| point.outcome.summary().is_some()));
    }
}
