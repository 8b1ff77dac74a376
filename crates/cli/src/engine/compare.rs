//! `compare`: the same flows through several fabrics.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rack::results::RunResult;
use rack::run::Progress;
use report::comparison_page;
use scenario::Scenario;
use serde_json::Value;

use super::place::Place;
use super::{Budget, Busy, Failure, Finished, checksums, guarded, run, slug};

/// A comparison whose results are stored.
#[derive(Clone, Debug)]
pub struct Compared {
    /// One a fabric, in the order of the scenario; of an interrupted comparison those that began.
    pub results: Vec<RunResult>,
    /// Where the files of each run are, in the same order.
    pub folders: Vec<PathBuf>,
    /// Where the files of the comparison are.
    pub directory: PathBuf,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
}

impl Compared {
    /// The summaries in the order of the scenario: what `--format json` prints.
    #[must_use]
    pub fn summaries(&self) -> Value {
        self.results.iter().map(|result| result.summary.clone()).collect()
    }
}

/// Called now and then with the index of a fabric that runs, from several threads; a break ends the
/// comparison.
pub type CompareProgress<'a> = dyn Fn(usize, Progress) -> ControlFlow<()> + Sync + 'a;

/// Runs every fabric of `scenario`, as many at a time as the budget has room for: which one is over first
/// changes no result but its own speed. Each run is stored in a folder of its own below `directory`,
/// named by its label; beside them `scenario.toml`, `report.html`, `SHA256SUMS` and `summary.json`, an
/// array.
///
/// # Errors
/// When the input, the directory or a run is bad; runs that were finished before stay.
pub fn compare(
    scenario: &Scenario,
    directory: &Path,
    budget: &Budget<'_>,
    progress: &CompareProgress<'_>,
) -> Result<Compared, Failure> {
    guarded(|| {
        let place = Place::create(directory)?;
        // The folders below are about to change; an older summary must not vouch for them.
        place.forget_summary()?;
        let finished = carry_out(scenario, directory, budget, progress);
        let finished = finished.into_values().collect::<Result<Vec<_>, _>>()?;
        let compared = store(scenario, &place, finished)?;
        place.keep();
        Ok(compared)
    })
}

/// Stores what the runs together show; the summary comes last.
fn store(scenario: &Scenario, place: &Place, finished: Vec<Finished>) -> Result<Compared, Failure> {
    let interrupted = finished.iter().any(Finished::is_interrupted);
    let (results, folders): (Vec<RunResult>, Vec<PathBuf>) =
        finished.into_iter().map(|run| (run.result, run.directory)).unzip();
    let page = comparison_page(&scenario.name, &results, "rackloom compare scenario.toml");
    let directory = place.directory().path().to_path_buf();
    let compared = Compared { results, folders, directory, interrupted };
    place.directory().write("scenario.toml", &scenario.to_toml())?;
    place.directory().write("report.html", &page.to_html())?;
    let text = format!("{:#}\n", compared.summaries());
    let files = ["scenario.toml", "report.html"];
    checksums::write(place.directory(), &files, ("summary.json", text.as_bytes()))?;
    place.directory().write("summary.json", &text)?;
    Ok(compared)
}

/// Runs the fabrics on as many threads as there are jobs, each taking the next that nobody has, until one
/// run breaks or is interrupted.
fn carry_out(
    scenario: &Scenario,
    directory: &Path,
    budget: &Budget<'_>,
    progress: &CompareProgress<'_>,
) -> BTreeMap<usize, Result<Finished, Failure>> {
    let next = AtomicUsize::new(0);
    let is_over = AtomicBool::new(false);
    let runs = Mutex::new(BTreeMap::new());
    let worker = || {
        while !is_over.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(choice) = scenario.fabrics.get(index) else { return };
            let need = scenario.memory(index);
            let Some(_share) = budget.take(need, || is_over.load(Ordering::Relaxed)) else {
                return;
            };
            let busy = Busy::begin();
            let below = directory.join(folder(index, &choice.label, scenario));
            let run = run(&scenario.with_fabric(index), &below, &mut |p| {
                let flow = progress(index, p);
                if flow.is_break() {
                    busy.stopping();
                }
                flow
            });
            if run.as_ref().map_or(true, Finished::is_interrupted) {
                is_over.store(true, Ordering::Relaxed);
            }
            runs.lock().expect("no thread panics while it holds this").insert(index, run);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..budget.jobs().min(scenario.fabrics.len()) {
            scope.spawn(worker);
        }
    });
    runs.into_inner().expect("no thread panics while it holds this")
}

/// The folder of one run: its label, with its number where two labels look alike as a file name.
fn folder(index: usize, label: &str, scenario: &Scenario) -> String {
    let name = slug(label);
    let alike = scenario.fabrics.iter().filter(|choice| slug(&choice.label) == name).count();
    if alike > 1 { format!("{name}-{}", index + 1) } else { name }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use kernel::Bytes;
    use scenario::{Document, Format, Registry};

    use super::*;

    const THREE: &str = "[run]\nflows = 2000\n[workload]\nkind = 'poisson'\nload = 0.3\n\
        sizes = { kind = 'fixed', size = '5 KB' }\n\
        [[fabric]]\nkind = 'shoal'\nnodes = 16\n[[fabric]]\nkind = 'packet-switched'\nnodes = 16\n\
        [[fabric]]\nkind = 'pl2'\nnodes = 16\n";

    /// What runs share: all but what the engine took.
    fn summaries(compared: &Compared) -> Vec<Value> {
        let without = |result: &RunResult| {
            let mut summary = result.summary.clone();
            summary.as_object_mut().unwrap().shift_remove("engine");
            summary
        };
        compared.results.iter().map(without).collect()
    }

    #[test]
    fn fabrics_for_which_there_is_no_memory_wait_and_their_results_are_the_same() {
        let document = Document::parse("three.toml", THREE, Format::Toml).unwrap();
        let scenario = Scenario::read(document, &[], &Registry::standard()).unwrap();
        let place = tempfile::tempdir().unwrap();
        let go_on = |_, _| ControlFlow::Continue(());
        let ample = Budget::new(3, Bytes::new(16 << 30), &|text| panic!("{text}"));
        let expected = compare(&scenario, &place.path().join("ample"), &ample, &go_on).unwrap();
        // As much as the largest needs, and no other beside it.
        let most = (0..3).map(|index| scenario.memory(index)).max().unwrap();
        let told = Mutex::new(Vec::new());
        let tell = |text: &str| told.lock().unwrap().push(text.to_string());
        let tight = Budget::new(3, most, &tell);
        let began = Instant::now();
        let found = compare(&scenario, &place.path().join("tight"), &tight, &|_, _| {
            // The first to run does not end before another has asked for its part.
            while told.lock().unwrap().is_empty() && began.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(1));
            }
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(summaries(&found), summaries(&expected));
        let told = told.into_inner().unwrap();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains(" instead of 3 at a time: they take some "), "{told:?}");
    }
}
