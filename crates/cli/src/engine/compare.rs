//! The same flows through several fabrics.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use rack::results::RunResult;
use rack::run::Progress;
use report::comparison_page;
use scenario::Scenario;
use serde_json::Value;

use super::place::Place;
use super::{Failure, run, slug};

/// A comparison whose results are stored.
#[derive(Clone, Debug)]
pub struct Compared {
    /// One a fabric, in the order of the scenario.
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

/// Called now and then with the index of the fabric that runs; a break ends the comparison.
pub type CompareProgress<'a> = dyn FnMut(usize, Progress) -> ControlFlow<()> + 'a;

/// Runs every fabric of `scenario`. Each run is stored in a folder of its own below `directory`,
/// named by its label; beside them `scenario.toml`, `report.html` and `summary.json`, an array.
///
/// # Errors
/// When the input, the directory or a run is bad; runs that were finished before stay.
pub fn compare(
    scenario: &Scenario,
    directory: &Path,
    progress: &mut CompareProgress<'_>,
) -> Result<Compared, Failure> {
    let place = Place::create(directory)?;
    let mut results: Vec<RunResult> = Vec::new();
    let mut folders = Vec::new();
    let mut interrupted = false;
    for (index, choice) in scenario.fabrics.iter().enumerate() {
        let below = directory.join(folder(index, &choice.label, scenario));
        let alone = scenario.with_fabric(index);
        let finished = run(&alone, &below, &mut |p| progress(index, p))?;
        interrupted |= finished.is_interrupted();
        results.push(finished.result);
        folders.push(finished.directory);
        if interrupted {
            break;
        }
    }
    let page = comparison_page(&scenario.name, &results, "rackloom compare scenario.toml");
    place.directory().write("scenario.toml", &scenario.to_toml())?;
    place.directory().write("report.html", &page.to_html())?;
    let compared = Compared { results, folders, directory: directory.to_path_buf(), interrupted };
    place.directory().write_json("summary.json", &compared.summaries())?;
    place.keep();
    Ok(compared)
}

/// The folder of one run: its label, with its number where two labels look alike as a file name.
fn folder(index: usize, label: &str, scenario: &Scenario) -> String {
    let name = slug(label);
    let alike = scenario.fabrics.iter().filter(|choice| slug(&choice.label) == name).count();
    if alike > 1 { format!("{name}-{}", index + 1) } else { name }
}
