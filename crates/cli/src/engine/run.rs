//! One run: the flows to a file as they end, the rest when it is over.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rack::Stage;
use rack::results::{Description, EngineTime, FlowRecord, FlowSink, RunResult, seeds};
use rack::run::{Progress, Stop};
use rack::trace::Trace;
use report::page::{Block, Library};
use report::underway::ProgressFile;
use report::{
    FileError, FlowWriter, Provenance, ResultsDir, read_flows, run_page, slow_flows, slowest_first,
    write_links, write_series, write_trace,
};
use scenario::{Scenario, Sink};
use serde_json::Value;

use super::machine::memory_available;
use super::place::Place;
use super::{Busy, Failure, checksums, guarded, peak_rss};
use crate::VERSION;

/// A run whose results are stored.
#[derive(Clone, Debug)]
pub struct Finished {
    /// What it measured.
    pub result: RunResult,
    /// Where its files are.
    pub directory: PathBuf,
    /// Whether its packets were to be recorded and were too many, so that nothing of them is stored.
    pub is_trace_full: bool,
}

impl Finished {
    /// Whether it was stopped before its end; its files then say so too.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.result.summary["interrupted"] == Value::Bool(true)
    }

    /// Whether it ended since nothing came of it any more.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        self.result.summary["stopped"] == Stop::NoProgress.as_str()
    }
}

/// The table of flows of a run.
pub const FLOWS: &str = "flows.parquet";
/// The record of a run's packets, if it keeps one.
pub const TRACE: &str = "trace.parquet";
/// What each line of the network carried, of a run with such a record.
pub const LINKS: &str = "links.parquet";

/// The files of every run, in the order in which they are written; `SHA256SUMS` comes before the last.
pub(super) const FILES: [&str; 5] =
    [FLOWS, "series.parquet", "scenario.toml", "report.html", "summary.json"];

/// The files of the run in `directory`, as `SHA256SUMS` has them.
pub(super) fn files_in(directory: &Path) -> Vec<&'static str> {
    let record = [TRACE, LINKS].into_iter().filter(|name| directory.join(name).exists());
    record.chain(FILES).collect()
}

/// Runs the first fabric of `scenario`, on all cores unless it says otherwise, and stores the results in
/// `directory`: `scenario.toml`,
/// `flows.parquet`, `series.parquet`, if packets are recorded `trace.parquet` and `links.parquet`, `report.html`, `SHA256SUMS` and,
/// last, `summary.json`, whose presence says that the others are whole. `progress` is called now and then; if it breaks, what was
/// measured until then is stored and marked `"interrupted": true`.
///
/// # Errors
/// When the input, the directory or the run is bad; nothing is stored then.
pub fn run(
    scenario: &Scenario,
    directory: &Path,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Finished, Failure> {
    run_with(scenario, directory, Library::Within, progress)
}

/// The same with a report that has its chart library elsewhere.
pub(super) fn run_with(
    scenario: &Scenario,
    directory: &Path,
    library: Library<'_>,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Finished, Failure> {
    guarded(|| {
        let place = Place::create(directory)?;
        let scenario = Scenario { free_threads: free_threads(scenario), ..scenario.clone() };
        // Gone before the directory is looked at again, which vanishes if nothing is in it.
        let mut told = ProgressFile::new(directory, &scenario.fabrics[0].label);
        let mut progress = |p: Progress| {
            told.update(p.ended, p.total, p.now.as_seconds());
            progress(p)
        };
        let (result, is_trace_full) = store(&scenario, &place, library, &mut progress)?;
        drop(told);
        place.keep();
        Ok(Finished { result, directory: directory.to_path_buf(), is_trace_full })
    })
}

/// As many threads as the machine has cores, and memory for: each has a part of the network, which may take as
/// much as the whole, and the whole is there until it is cut.
fn free_threads(scenario: &Scenario) -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let fitting = memory_available().map_or(1, |free| free.get() / scenario.memory(0).get().max(1));
    cores.min(fitting.saturating_sub(1)).max(1) as u32
}

/// Runs and stores: the result, and whether there were too many packets to record. In this order a killed run never leaves a summary beside files of another.
fn store(
    scenario: &Scenario,
    place: &Place,
    library: Library<'_>,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<(RunResult, bool), Failure> {
    let origin = Origin::of(scenario);
    let directory = place.directory();
    let [flow_table, series, resolved, report, summary] = FILES;
    let mut flows = FlowFile::new(directory.file(flow_table), &origin);
    let result = carry(scenario, &origin, Some(&mut flows), progress)?;
    // From here on the directory is in the making; an older summary must not vouch for it.
    place.forget_summary()?;
    let trace = flows.finish()?;
    write_series(&directory.file(series), &result.series, &origin.provenance())?;
    directory.write(resolved, &result.scenario)?;
    let slow = store_trace(directory, trace.as_ref(), &origin)?;
    let page = run_page(&result, slow, "rackloom run scenario.toml");
    directory.write(report, &page.to_html_with(library))?;
    let text = format!("{:#}\n", result.summary);
    let files = files_in(directory.path());
    checksums::write(directory, &files[..files.len() - 1], (summary, text.as_bytes()))?;
    directory.write(summary, &text)?;
    Ok((result, trace.is_some_and(|trace| trace.is_full)))
}

/// Stores the record of a run's packets, and gives what its report says of them. One of an earlier run in the
/// directory goes.
fn store_trace(
    directory: &ResultsDir,
    trace: Option<&Trace>,
    origin: &Origin,
) -> Result<Vec<Block>, Failure> {
    let [path, links] = [TRACE, LINKS].map(|name| directory.file(name));
    let Some(trace) = trace.filter(|trace| !trace.is_full) else {
        for path in [path, links] {
            match std::fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(FileError::new(&path, source).into());
                }
                _ => {}
            }
        }
        return Ok(Vec::new());
    };
    write_trace(&path, trace, &origin.provenance())?;
    write_links(&links, &trace.lines, &origin.provenance())?;
    let flows = trace.flows();
    let rows = read_flows(&directory.file(FLOWS), &|flow| flows.binary_search(&flow).is_ok())?;
    Ok(slow_flows(&slowest_first(rows), trace))
}

/// Runs the first fabric of `scenario` and stores nothing.
///
/// # Errors
/// When the input or the run is bad.
pub fn measure(
    scenario: &Scenario,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<RunResult, Failure> {
    guarded(|| carry(scenario, &Origin::of(scenario), None, progress))
}

/// Runs each seed of the scenario, and puts the runs together if there are several. One that is
/// interrupted is the last.
fn carry(
    scenario: &Scenario,
    origin: &Origin,
    mut flows: Option<&mut FlowFile>,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<RunResult, Failure> {
    let seeds = scenario.with_each_seed();
    let count = seeds.len() as u64;
    let (mut runs, mut ended) = (Vec::new(), 0);
    for alone in seeds {
        let mut of_this = 0;
        let mut report = |p: Progress| {
            of_this = p.total.unwrap_or(p.ended);
            progress(Progress {
                ended: ended + p.ended,
                total: p.total.map(|total| total * count),
                now: p.now,
            })
        };
        let run = carry_seed(&alone, origin, flows.as_deref_mut(), &mut report)?;
        ended += of_this;
        let is_interrupted = run.summary["interrupted"] == Value::Bool(true);
        runs.push(run);
        if is_interrupted {
            break;
        }
    }
    match runs.len() {
        1 => Ok(runs.remove(0)),
        _ => Ok(seeds::together(runs)),
    }
}

/// Runs a scenario of one seed.
fn carry_seed(
    scenario: &Scenario,
    origin: &Origin,
    flows: Option<&mut FlowFile>,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<RunResult, Failure> {
    let start = Instant::now();
    let busy = Busy::begin();
    let mut nothing = ();
    let sink: &mut dyn Sink = match flows {
        Some(flows) => {
            flows.seed = scenario.seed;
            flows
        }
        None => &mut nothing,
    };
    let result = scenario.execute(0, sink, &mut |p| {
        let flow = progress(p);
        if flow.is_break() {
            busy.stopping();
        }
        flow
    })?;
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

/// `flows.parquet`, begun when the first run starts. Dropped unfinished, it leaves nothing.
struct FlowFile {
    path: PathBuf,
    provenance: Provenance,
    /// Of the run whose flows come.
    seed: u64,
    writer: Option<FlowWriter>,
    /// Where packets were, if that was recorded.
    trace: Option<Trace>,
}

impl FlowFile {
    fn new(path: PathBuf, origin: &Origin) -> Self {
        Self { path, provenance: origin.provenance(), seed: origin.seed, writer: None, trace: None }
    }

    /// Gives the file its name; where packets were, if that was recorded.
    fn finish(self) -> Result<Option<Trace>, Failure> {
        self.writer.map_or(Ok(()), FlowWriter::finish)?;
        Ok(self.trace)
    }
}

impl Sink for FlowFile {
    fn begin(&mut self, stages: &[Stage]) -> io::Result<()> {
        let writer = match self.writer.take() {
            Some(writer) => writer,
            None => FlowWriter::create(&self.path, stages, &self.provenance)
                .map_err(io::Error::other)?,
        };
        self.writer.insert(writer).set_seed(self.seed);
        Ok(())
    }

    fn wants_trace(&self) -> bool {
        true
    }

    fn trace(&mut self, trace: Trace) -> io::Result<()> {
        self.trace = Some(trace);
        Ok(())
    }
}

impl FlowSink for FlowFile {
    fn record(&mut self, record: &FlowRecord<'_>) -> io::Result<()> {
        let writer = self.writer.as_mut().expect("the run begins its sink before the first flow");
        writer.record(record)
    }
}
