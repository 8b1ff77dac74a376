//! One run: the flows to a file as they end, the rest when it is over.

use std::any::Any;
use std::io;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rack::Stage;
use rack::results::{Description, EngineTime, FlowRecord, FlowSink, RunResult};
use rack::run::Progress;
use report::{FlowWriter, Provenance, run_page, write_series};
use scenario::{Scenario, Sink};
use serde_json::Value;

use super::place::Place;
use super::{Failure, peak_rss};
use crate::VERSION;

/// A run whose results are stored.
#[derive(Clone, Debug)]
pub struct Finished {
    /// What it measured.
    pub result: RunResult,
    /// Where its files are.
    pub directory: PathBuf,
}

impl Finished {
    /// Whether it was stopped before its end; its files then say so too.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.result.summary["interrupted"] == Value::Bool(true)
    }
}

/// Runs the first fabric of `scenario` and stores the results in `directory`: `scenario.toml`,
/// `flows.parquet`, `series.parquet`, `report.html` and, last, `summary.json`, whose presence says
/// that the others are whole. `progress` is called now and then; if it breaks, what was measured
/// until then is stored and marked `"interrupted": true`.
///
/// # Errors
/// When the input, the directory or the run is bad; nothing is stored then.
pub fn run(
    scenario: &Scenario,
    directory: &Path,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Finished, Failure> {
    let place = Place::create(directory)?;
    let origin = Origin::of(scenario);
    let mut flows = FlowFile::new(place.directory().file("flows.parquet"), &origin);
    let result = carry(scenario, &origin, &mut flows, progress)?;
    // From here on the directory is in the making; an older summary must not vouch for it.
    place.forget_summary()?;
    flows.finish()?;
    write_series(&place.directory().file("series.parquet"), &result.series, &origin.provenance())?;
    place.directory().write("scenario.toml", &result.scenario)?;
    let page = run_page(&result, "rackloom run scenario.toml");
    place.directory().write("report.html", &page.to_html())?;
    place.directory().write_json("summary.json", &result.summary)?;
    place.keep();
    Ok(Finished { result, directory: directory.to_path_buf() })
}

/// Runs the first fabric of `scenario` and stores nothing.
///
/// # Errors
/// When the input or the run is bad.
pub fn measure(
    scenario: &Scenario,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<RunResult, Failure> {
    carry(scenario, &Origin::of(scenario), &mut (), progress)
}

fn carry(
    scenario: &Scenario,
    origin: &Origin,
    sink: &mut dyn Sink,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<RunResult, Failure> {
    let start = Instant::now();
    // An invariant that does not hold is a panic with its numbers; it ends this run and no other.
    let outcome = catch_unwind(AssertUnwindSafe(|| scenario.execute(0, sink, progress)));
    let result = outcome.map_err(|panic| Failure::Model(words(panic.as_ref())))??;
    let engine = EngineTime { wall_seconds: start.elapsed().as_secs_f64(), peak_rss: peak_rss() };
    let description = Description {
        label: scenario.fabrics[0].label.clone(),
        scenario: origin.scenario.clone(),
        version: VERSION.into(),
        hash: origin.hash.clone(),
        seed: scenario.seed,
    };
    Ok(result.describe(&description, engine))
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").into()
}

/// Which scenario the results belong to.
struct Origin {
    scenario: String,
    hash: String,
    seed: u64,
}

impl Origin {
    fn of(scenario: &Scenario) -> Self {
        Self { scenario: scenario.to_toml(), hash: scenario.hash(), seed: scenario.seed }
    }

    fn provenance(&self) -> Provenance {
        Provenance {
            version: VERSION.into(),
            scenario_hash: self.hash.clone(),
            seed: self.seed,
            scenario: self.scenario.clone(),
        }
    }
}

/// `flows.parquet`, begun when the run starts. Dropped unfinished, it leaves nothing.
struct FlowFile {
    path: PathBuf,
    provenance: Provenance,
    writer: Option<FlowWriter>,
}

impl FlowFile {
    fn new(path: PathBuf, origin: &Origin) -> Self {
        Self { path, provenance: origin.provenance(), writer: None }
    }

    fn finish(self) -> Result<(), Failure> {
        Ok(self.writer.map_or(Ok(()), FlowWriter::finish)?)
    }
}

impl Sink for FlowFile {
    fn begin(&mut self, stages: &[Stage]) -> io::Result<()> {
        let writer = FlowWriter::create(&self.path, stages, &self.provenance);
        self.writer = Some(writer.map_err(io::Error::other)?);
        Ok(())
    }
}

impl FlowSink for FlowFile {
    fn record(&mut self, record: &FlowRecord<'_>) -> io::Result<()> {
        let writer = self.writer.as_mut().expect("the run begins its sink before the first flow");
        writer.record(record)
    }
}
