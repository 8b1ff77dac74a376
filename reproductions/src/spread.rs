//! Many runs on all cores, their results in order: how many cores there are changes nothing.

use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rack::run::Progress;
use rayon::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::kept::KeptRuns;
use crate::{Failure, Watch};

/// How often the watch is asked whether to go on (our choice).
const PATIENCE: Duration = Duration::from_millis(200);
/// Parts into which a run's progress is cut (our choice).
const PARTS: f64 = 1_000.0;

/// What one run says of itself while it goes on.
pub struct Pulse<'a> {
    stop: &'a AtomicBool,
    /// Parts done, of all runs together.
    done: &'a AtomicU64,
    /// Parts of this run that are counted in `done`.
    counted: u64,
    /// How long it took when it was made, if it is not made now.
    before: Option<Duration>,
}

impl Pulse<'_> {
    /// Tells how far this run has come, from 0 to 1; a break ends it.
    pub fn at(&mut self, share: f64) -> ControlFlow<()> {
        let parts = (share.clamp(0.0, 1.0) * PARTS) as u64;
        let more = parts.saturating_sub(self.counted);
        self.counted += more;
        self.done.fetch_add(more, Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// The same from the runner's report.
    pub fn report(&mut self, progress: Progress) -> ControlFlow<()> {
        let share = progress.total.map_or(0.0, |all| progress.ended as f64 / all.max(1) as f64);
        self.at(share)
    }
}

/// Carries out `run` for each of `jobs` on all cores, but for those that the watch has kept. The results are in the
/// order of the jobs.
///
/// # Errors
/// The first failure in the order of the jobs; [`Failure::Interrupted`] if the watch stopped them.
pub fn spread<J: Sync, R: Send + Serialize + DeserializeOwned>(
    jobs: &[J],
    watch: &mut Watch<'_>,
    run: impl Fn(&J, &mut Pulse<'_>) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    let kept = watch.kept().map(KeptRuns::next_list);
    let places: Vec<usize> = (0..jobs.len()).collect();
    spread_anew(&places, watch, |&at, pulse| {
        if let Some((took, result)) = kept.as_ref().and_then(|kept| kept.find(at)) {
            pulse.before = Some(took);
            return Ok(result);
        }
        let began = Instant::now();
        let result = run(&jobs[at], pulse)?;
        if let Some(kept) = &kept {
            kept.keep(at, began.elapsed(), &result);
        }
        Ok(result)
    })
}

/// The same where no run is kept: for those that take seconds, or whose results are of crates that store none.
///
/// # Errors
/// As [`spread`].
pub fn spread_anew<J: Sync, R: Send>(
    jobs: &[J],
    watch: &mut Watch<'_>,
    run: impl Fn(&J, &mut Pulse<'_>) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    let results: Vec<Mutex<Option<R>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    spread_any(jobs.len(), watch, &|at, pulse| {
        let result = run(&jobs[at], pulse)?;
        *results[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        Ok(())
    })?;
    let taken = results.into_iter().map(|place| {
        place.into_inner().unwrap_or_else(PoisonError::into_inner).expect("its run has ended well")
    });
    Ok(taken.collect())
}

/// The same for runs by their number: one function for all kinds of runs, as there are over a hundred.
fn spread_any(
    count: usize,
    watch: &mut Watch<'_>,
    run: &(dyn Fn(usize, &mut Pulse<'_>) -> Result<(), Failure> + Sync),
) -> Result<(), Failure> {
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let [finished, found, spent] = [0; 3].map(AtomicU64::new);
    let (send, receive) = mpsc::channel();
    let results: Vec<Result<(), Failure>> = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            // Dropped with the closure, when all is done: the loop below then ends.
            let _send: mpsc::Sender<()> = send;
            let one = |at: usize| {
                let mut pulse = Pulse { stop: &stop, done: &done, counted: 0, before: None };
                pulse.at(0.0).is_continue().then_some(()).ok_or(Failure::Interrupted)?;
                let began = Instant::now();
                // An invariant that does not hold is a panic with its numbers.
                let result = catch_unwind(AssertUnwindSafe(|| run(at, &mut pulse)))
                    .unwrap_or_else(|panic| Err(Failure::Model(words(panic.as_ref()))));
                let _ = pulse.at(1.0);
                let took = began.elapsed() + pulse.before.unwrap_or_default();
                found.fetch_add(u64::from(pulse.before.is_some()), Ordering::Relaxed);
                spent.fetch_add(took.as_micros() as u64, Ordering::Relaxed);
                finished.fetch_add(1, Ordering::Relaxed);
                result
            };
            (0..count).into_par_iter().with_max_len(1).map(one).collect()
        });
        while receive.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            watch.found(found.swap(0, Ordering::Relaxed) as f64 / count as f64);
            let share = done.load(Ordering::Relaxed) as f64 / (PARTS * count as f64);
            let words = format!("{} of {count} runs", finished.load(Ordering::Relaxed));
            if watch.hear(share, &words).is_break() {
                stop.store(true, Ordering::Relaxed);
            }
        }
        worker.join().expect("each run's panic is caught")
    });
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    watch.found(found.into_inner() as f64 / count.max(1) as f64);
    watch.spent(Duration::from_micros(spent.into_inner()));
    results.into_iter().collect()
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").into()
}

/// Has at most this many runs go on at the same time, of all experiments together; by default as many as there
/// are cores. Takes effect once, before the first run.
pub fn set_runs(count: usize) {
    // Whoever asked first has decided: it changes how long things take, and no result.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(count).build_global();
}

/// Every combination of a variation and a seed, seeds fastest.
#[must_use]
pub fn with_seeds<V: Clone>(variations: &[V], seeds: u64) -> Vec<(V, u64)> {
    let each =
        |variation: &V| (1..=seeds).map(|seed| (variation.clone(), seed)).collect::<Vec<_>>();
    variations.iter().flat_map(each).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const GO_ON: fn(f64, &str) -> ControlFlow<()> = |_, _| ControlFlow::Continue(());

    #[test]
    fn results_are_in_the_order_of_the_jobs() {
        let jobs: Vec<u64> = (0..200).collect();
        let uneven = |&job: &u64, _: &mut Pulse<'_>| {
            std::thread::sleep(Duration::from_micros(job * 37 % 500));
            Ok(job * 2)
        };
        let found = spread(&jobs, &mut GO_ON.clone(), uneven).unwrap();
        assert!(found.into_iter().eq((0..200).map(|job| job * 2)));
    }

    #[test]
    fn a_broken_invariant_is_a_failure_with_its_words() {
        let run = |&job: &u64, _: &mut Pulse<'_>| {
            assert!(job != 3, "queue of {job}");
            Ok(())
        };
        let failure = spread(&[1, 2, 3, 4], &mut GO_ON.clone(), run).unwrap_err();
        assert_eq!(failure.to_string(), "the model broke: queue of 3");
    }

    #[test]
    fn a_break_of_the_watch_stops_what_is_under_way() {
        let mut watch = |_: f64, _: &str| ControlFlow::Break(());
        let run = |_: &u64, pulse: &mut Pulse<'_>| {
            while pulse.at(0.5).is_continue() {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        };
        let failure = spread(&[1, 2, 3], &mut watch, run).unwrap_err();
        assert!(matches!(failure, Failure::Interrupted));
    }

    /// Has runs kept, and hears how many lists of them were.
    struct Keeper {
        runs: KeptRuns,
        found: f64,
    }

    impl crate::Watcher for Keeper {
        fn hear(&mut self, _: f64, _: &str) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }

        fn kept(&mut self) -> Option<&mut KeptRuns> {
            Some(&mut self.runs)
        }

        fn found(&mut self, share: f64) {
            self.found += share;
        }
    }

    /// What comes of two lists, how many of their runs were carried out and how many of six were found.
    struct Lists {
        results: Result<[Vec<u64>; 2], Failure>,
        carried: u64,
        found: u64,
    }

    /// Two lists of runs, of which those that are not kept are counted and the one at `broken` of the second breaks.
    fn two_lists(directory: &Path, broken: Option<u64>) -> Lists {
        let runs = KeptRuns::new(directory.join("runs"), "1".into());
        let mut keeper = Keeper { runs, found: 0.0 };
        let carried = AtomicU64::new(0);
        let jobs: Vec<u64> = (0..6).collect();
        let mut list = |broken: Option<u64>, offset: u64| {
            spread(&jobs, &mut keeper, |&job, _| {
                if broken == Some(job) {
                    return Err(Failure::Interrupted);
                }
                carried.fetch_add(1, Ordering::Relaxed);
                Ok(job + offset)
            })
        };
        let first = list(None, 0);
        let results = first.and_then(|first| Ok([first, list(broken, 100)?]));
        let found = (6.0 * keeper.found).round() as u64;
        Lists { results, carried: carried.into_inner(), found }
    }

    #[test]
    fn runs_that_are_kept_are_not_made_again() {
        let place = tempfile::tempdir().unwrap();
        let expected = [0, 100].map(|offset| (offset..offset + 6).collect::<Vec<u64>>());
        let stopped = two_lists(place.path(), Some(4));
        assert!(matches!(stopped.results, Err(Failure::Interrupted)));
        let all = two_lists(place.path(), None);
        assert_eq!((all.results.unwrap(), stopped.carried + all.carried), (expected.clone(), 12));
        assert!(all.carried >= 1, "the broken one at least");
        let again = two_lists(place.path(), None);
        assert_eq!((again.results.unwrap(), again.carried), (expected, 0));
        assert_eq!([stopped.found, all.found, again.found], [0, 12 - all.carried, 12]);
        KeptRuns::new(place.path().join("runs"), "1".into()).forget();
        assert_eq!(two_lists(place.path(), None).carried, 12);
    }

    #[test]
    fn seeds_vary_fastest() {
        assert_eq!(with_seeds(&["a", "b"], 2), [("a", 1), ("a", 2), ("b", 1), ("b", 2)]);
    }
}
