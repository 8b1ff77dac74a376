//! Every experiment of every paper: what is done is kept, and what is measured can be judged again.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use report::{
    Cell, Claim, Column, ResultsTable, Tally, claims_page, claims_table, write_atomically,
};
use reproductions::claims::Measured;
use reproductions::kept::KeptRuns;
use reproductions::{Findings, Watcher};
use scenario::BadInput;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Effort, Experiment, Paper, away, failed, lost, page, papers, unknown};
use crate::VERSION;
use crate::engine::cluster::Cluster;
use crate::engine::{Busy, Failure, Place, caught};

/// The commit that is built; empty where it is not known.
pub(super) const COMMIT: &str = env!("RACKLOOM_COMMIT");
/// What an experiment measured, in its directory.
pub(super) const MEASURED: &str = "measured.json";
/// Its page, there too.
pub(super) const REPORT: &str = "report.html";
/// Its runs, there too, until it has ended.
const RUNS: &str = "runs";
/// How often experiments under way are looked at (our choice).
pub(super) const PATIENCE: Duration = Duration::from_millis(200);

/// An experiment and its paper.
pub type One = (&'static Paper, &'static Experiment);

/// What an experiment measured, and what measured it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stored {
    rackloom_version: String,
    commit: String,
    /// Year, month and day, UTC.
    date: String,
    effort: String,
    /// How long it took, with whatever went on beside it.
    wall_seconds: f64,
    /// How long its runs took, one after the other.
    #[serde(default)]
    run_seconds: f64,
    measured: BTreeMap<String, Measured>,
}

impl Stored {
    /// Whether this build would measure the same.
    pub(super) fn is_ours(&self, effort: Effort) -> bool {
        let build = (self.rackloom_version.as_str(), self.commit.as_str());
        build == (VERSION, COMMIT) && self.effort == word(effort)
    }

    /// What is stored in `directory`; `None`: nothing, or half of it.
    pub(super) fn read(directory: &Path) -> Option<Self> {
        let text = std::fs::read(directory.join(MEASURED)).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

/// How the directory and the stored figures name an effort.
pub(super) fn word(effort: Effort) -> &'static str {
    match effort {
        Effort::Quick => "quick",
        Effort::Full => "full",
    }
}

/// What is to be done about experiments that have not been measured by this build.
#[derive(Clone, Copy)]
pub enum Missing<'a> {
    /// They are run, so many at a time.
    Run(usize),
    /// They are run on the machines of a cluster.
    On(&'a dyn Cluster),
    /// What another build measured is judged; nothing is run.
    Judge,
}

/// How far all experiments have come.
#[derive(Clone, PartialEq, Debug)]
pub struct Progress {
    /// Work that is done, with the parts that are of experiments under way: seconds that it takes on one core.
    pub done: f64,
    /// That part of it which an earlier command did.
    pub found: f64,
    /// Work in all, in the same.
    pub total: f64,
    /// Those under way.
    pub under_way: Vec<String>,
    /// What is to be known of where they run, since this was last told.
    pub told: Vec<String>,
}

/// One paper's rows.
#[derive(Clone, Debug)]
pub struct OfPaper {
    /// The paper.
    pub paper: &'static Paper,
    /// Its rows, in the order of its experiments.
    pub rows: Vec<Claim>,
    /// Experiments that have not been measured.
    pub missing: Vec<&'static str>,
    /// Rows that the last release reproduced and this one does not.
    pub lost: Vec<String>,
    /// Checks that do not hold.
    pub failed: Vec<String>,
    /// Version, commit and date of what measured them, each once.
    pub(super) builds: Vec<[String; 3]>,
    /// Experiments whose figures are those of the larger runs.
    pub(super) full: Vec<&'static str>,
}

/// All papers' rows.
#[derive(Clone, Debug)]
pub struct All {
    /// How much computing the runs took.
    pub effort: Effort,
    /// In the order of the papers.
    pub papers: Vec<OfPaper>,
    /// Experiments that broke, and why.
    pub broken: Vec<(String, String)>,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
}

impl All {
    /// What each paper's claims came to, a row each, and all together.
    #[must_use]
    pub fn table(&self) -> ResultsTable {
        let columns = [
            ("paper", "Paper"),
            ("claims", "Distinct claims"),
            ("reproduced", "Reproduced"),
            ("differ", "Differ"),
            ("tested", "of these for a tested cause"),
            ("not_run", "Not run"),
            ("checks_held", "Checks that hold"),
            ("checks_failed", "that do not"),
            ("sensitivities", "Sensitivities"),
            ("inputs", "Fitted inputs"),
            ("missing", "Experiments to do"),
        ];
        let columns = columns.map(|(key, title)| Column::new(key, title));
        let mut table = ResultsTable::new(columns.to_vec());
        let mut push = |name: &str, tally: Tally, missing: usize| {
            let counts = [
                tally.claims(),
                tally.reproduced,
                tally.differ,
                tally.tested,
                tally.not_run,
                tally.checks_held,
                tally.checks_failed,
                tally.sensitivities,
                tally.inputs,
                missing,
            ];
            let cells = counts.map(|count| Cell::new(Value::from(count), report::Unit::Count));
            table.push(std::iter::once(Cell::text(name)).chain(cells).collect());
        };
        let (mut all, mut missing) = (Tally::default(), 0);
        for paper in &self.papers {
            let tally = Tally::of(&paper.rows);
            push(paper.paper.name, tally, paper.missing.len());
            (all, missing) = (all.and(tally), missing + paper.missing.len());
        }
        push("all", all, missing);
        table
    }

    /// Every row, as JSON, with its paper behind.
    #[must_use]
    pub fn rows(&self) -> Value {
        let mut rows = Vec::new();
        for paper in &self.papers {
            let Value::Array(of_paper) = claims_table(&paper.rows).to_json() else { continue };
            rows.extend(of_paper.into_iter().map(|mut row| {
                row["paper"] = Value::from(paper.paper.name);
                row
            }));
        }
        Value::Array(rows)
    }

    /// The page of all papers' claims, in Markdown.
    #[must_use]
    pub fn page(&self) -> String {
        page::page(self)
    }

    /// Writes the page to a file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_page(&self, path: &Path) -> Result<(), Failure> {
        Ok(write_atomically(path, self.page().as_bytes())?)
    }
}

/// The experiments of these names, `PAPER` or `PAPER/EXPERIMENT`, in that order, each once; every experiment of
/// every paper if there are none.
///
/// # Errors
/// When a name is none of them: every such name.
pub fn select(names: &[String]) -> Result<Vec<One>, BadInput> {
    let each =
        papers().iter().flat_map(|paper| paper.experiments.iter().map(move |one| (paper, one)));
    if names.is_empty() {
        return Ok(each.collect());
    }
    let mut chosen: Vec<(&Paper, &Experiment)> = Vec::new();
    let mut problems = Vec::new();
    for name in names {
        let (of, experiment) =
            name.split_once('/').map_or((&**name, None), |(of, it)| (of, Some(it)));
        let is_meant = |(paper, one): &(&Paper, &Experiment)| {
            paper.name == of && experiment.is_none_or(|experiment| experiment == one.name)
        };
        let meant: Vec<_> = each.clone().filter(is_meant).collect();
        if meant.is_empty() {
            let known: Vec<String> =
                each.clone().map(|(paper, one)| format!("{}/{}", paper.name, one.name)).collect();
            problems.extend(unknown("paper or experiment", name, &known).into_problems());
        }
        let is_new = |(paper, one): &(&Paper, &Experiment)| {
            !chosen.iter().any(|(p, o)| (p.name, o.name) == (paper.name, one.name))
        };
        let new: Vec<_> = meant.into_iter().filter(is_new).collect();
        chosen.extend(new);
    }
    BadInput::unless_empty(problems)?;
    Ok(chosen)
}

/// Carries out those of the chosen experiments that this build has not measured yet, each in a directory of its
/// own, and judges all that is measured, of whatever paper; what was measured in the directory `beside`, too, where
/// it took more computing, or is not measured here.
///
/// # Errors
/// When the directory is bad. An experiment that breaks does not stop the others.
pub fn all(
    chosen: &[One],
    effort: Effort,
    (directory, beside): (&Path, Option<&Path>),
    missing: Missing<'_>,
    watch: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<All, Failure> {
    let place = Place::create(directory)?;
    let mut outcome = Outcome::default();
    if !matches!(missing, Missing::Judge) {
        let todo = |(paper, experiment): &One| {
            let stored = Stored::read(&directory.join(paper.name).join(experiment.name));
            !stored.is_some_and(|stored| {
                stored.is_ours(effort) && experiment.judge(&stored.measured).is_ok()
            })
        };
        let left: Vec<_> = chosen.iter().filter(|one| todo(one)).copied().collect();
        let (work, where_to) = (Work::new(chosen, &left, effort), (effort, directory));
        outcome = match missing {
            Missing::Run(jobs) => {
                Queue::new(left, work, effort, directory).carry_out(jobs, watch)?
            }
            Missing::On(cluster) => away::carry_out_all(&left, &work, where_to, cluster, watch)?,
            Missing::Judge => outcome,
        };
    }
    let papers = papers().iter().map(|paper| gather(paper, effort, directory, beside)).collect();
    let Outcome { broken, interrupted } = outcome;
    let all = All { effort, papers, broken, interrupted };
    place.directory().write_json("claims.json", &all.rows())?;
    place.keep();
    Ok(all)
}

/// What has been measured of a paper, judged.
fn gather(
    paper: &'static Paper,
    effort: Effort,
    directory: &Path,
    beside: Option<&Path>,
) -> OfPaper {
    let mut found = OfPaper {
        paper,
        rows: Vec::new(),
        missing: Vec::new(),
        lost: Vec::new(),
        failed: Vec::new(),
        builds: Vec::new(),
        full: Vec::new(),
    };
    for experiment in paper.experiments {
        let read = |root: &Path| Stored::read(&root.join(paper.name).join(experiment.name));
        let here = read(directory).filter(|stored| stored.effort == word(effort));
        let mut all: Vec<Stored> = here.into_iter().chain(beside.and_then(read)).collect();
        // The larger first, and of two alike that which is here.
        all.sort_by_key(|stored| stored.effort != word(Effort::Full));
        let judge = |stored: Stored| Some((experiment.judge(&stored.measured).ok()?, stored));
        let Some((rows, stored)) = all.into_iter().find_map(judge) else {
            found.missing.push(experiment.name);
            continue;
        };
        let is_full = stored.effort == word(Effort::Full);
        found.lost.extend(lost(paper, if is_full { Effort::Full } else { Effort::Quick }, &rows));
        found.rows.extend(rows);
        if is_full {
            found.full.push(experiment.name);
        }
        let build = [stored.rackloom_version, stored.commit, stored.date];
        if !found.builds.contains(&build) {
            found.builds.push(build);
        }
    }
    found.builds.sort();
    found.failed = failed(&found.rows);
    found
}

/// How much work experiments are: seconds that they take on one core.
pub(super) struct Work {
    /// Those that were done before.
    pub(super) before: f64,
    /// Each of those to be run.
    pub(super) each: Vec<f64>,
}

impl Work {
    fn new(chosen: &[One], left: &[One], effort: Effort) -> Self {
        // However short an experiment is, that it is done is seen.
        let seconds = |(_, experiment): &One| experiment.seconds(effort).max(1.0);
        let each: Vec<f64> = left.iter().map(seconds).collect();
        let all: f64 = chosen.iter().map(seconds).sum();
        Self { before: (all - each.iter().sum::<f64>()).max(0.0), each }
    }

    pub(super) fn total(&self) -> f64 {
        self.before + self.each.iter().sum::<f64>()
    }
}

/// What came of the experiments that were run.
#[derive(Default)]
pub(super) struct Outcome {
    /// Which broke, and why.
    pub(super) broken: Vec<(String, String)>,
    pub(super) interrupted: bool,
}

/// Experiments to be run, of which each thread takes the next.
struct Queue<'a> {
    todo: Vec<One>,
    work: Work,
    effort: Effort,
    directory: &'a Path,
    next: AtomicUsize,
    stop: AtomicBool,
    /// How far each of `todo` has come, once it has begun.
    come: Mutex<Vec<Option<Come>>>,
    broken: Mutex<Vec<(usize, String)>>,
}

/// How far an experiment has come: shares of it.
#[derive(Clone, Copy, Default)]
struct Come {
    done: f64,
    /// What an earlier command did of that.
    found: f64,
}

impl<'a> Queue<'a> {
    fn new(todo: Vec<One>, work: Work, effort: Effort, directory: &'a Path) -> Self {
        let come = Mutex::new(vec![None; todo.len()]);
        let (next, stop, broken) = Default::default();
        Self { todo, work, effort, directory, next, stop, come, broken }
    }

    /// Notes how far an experiment has come.
    fn note(&self, index: usize, note: impl FnOnce(&mut Come)) {
        let mut come = self.come.lock().expect("no thread panics");
        note(come[index].get_or_insert_default());
    }

    /// Runs all, so many at a time, and tells the watch until it breaks.
    fn carry_out(
        self,
        jobs: usize,
        watch: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Outcome, Failure> {
        let busy = Busy::begin();
        reproductions::spread::set_runs(jobs);
        let written: Result<Vec<()>, Failure> = std::thread::scope(|scope| {
            // `set_runs` bounds how many runs go on. One experiment more than that is under way, so that those of the
            // next begin while the last of one is still going on.
            let threads: Vec<_> =
                (0..self.todo.len().min(jobs + 1)).map(|_| scope.spawn(|| self.work())).collect();
            while !threads.iter().all(|thread| thread.is_finished()) {
                if watch(&self.progress()).is_break() {
                    self.stop.store(true, Ordering::Relaxed);
                    busy.stopping();
                }
                std::thread::sleep(PATIENCE);
            }
            let ended = threads.into_iter().map(|thread| thread.join());
            ended.map(|end| end.expect("an experiment's panic is caught")).collect()
        });
        written?;
        let interrupted = self.stop.load(Ordering::Relaxed);
        let mut broken = self.broken.into_inner().expect("no thread panics");
        broken.sort();
        let name = |index: usize| {
            let (paper, experiment) = self.todo[index];
            format!("{} {}", paper.name, experiment.name)
        };
        let broken = broken.into_iter().map(|(index, why)| (name(index), why)).collect();
        Ok(Outcome { broken, interrupted })
    }

    fn progress(&self) -> Progress {
        let come = self.come.lock().expect("no thread panics");
        let begun = || come.iter().enumerate().filter_map(|(at, come)| Some((at, (*come)?)));
        let under_way = begun().filter(|(_, come)| come.done < 1.0).map(|(at, _)| {
            let (paper, experiment) = self.todo[at];
            format!("{} {}", paper.name, experiment.name)
        });
        let sum = |part: fn(Come) -> f64| -> f64 {
            self.work.before
                + begun().map(|(at, come)| part(come) * self.work.each[at]).sum::<f64>()
        };
        Progress {
            done: sum(|come| come.done),
            found: sum(|come| come.found),
            total: self.work.total(),
            under_way: under_way.collect(),
            told: Vec::new(),
        }
    }

    fn work(&self) -> Result<(), Failure> {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let is_over = index >= self.todo.len() || self.stop.load(Ordering::Relaxed);
            if is_over {
                return Ok(());
            }
            self.note(index, |_| ());
            let (paper, experiment) = self.todo[index];
            let began = Instant::now();
            let place = self.directory.join(paper.name).join(experiment.name);
            let build = format!("{VERSION} {COMMIT} {}", word(self.effort));
            let runs = KeptRuns::new(place.join(RUNS), build);
            let mut keeper = Keeper { queue: self, index, runs, spent: Duration::ZERO };
            let outcome = caught(|| experiment.run(self.effort, &mut keeper));
            let outcome = outcome.map_err(|panic| reproductions::Failure::Model(panic.message));
            match outcome.and_then(|outcome| outcome) {
                Ok(findings) => {
                    let took = [began.elapsed(), keeper.spent];
                    store(&place, paper, experiment, self.effort, findings, took)?;
                    keeper.runs.forget();
                }
                Err(reproductions::Failure::Interrupted) => return Ok(()),
                Err(failure) => {
                    let mut broken = self.broken.lock().expect("no thread panics");
                    broken.push((index, failure.to_string()));
                }
            }
            self.note(index, |come| come.done = 1.0);
        }
    }
}

/// Hears how far an experiment has come, and has its runs kept.
struct Keeper<'a> {
    queue: &'a Queue<'a>,
    index: usize,
    runs: KeptRuns,
    spent: Duration,
}

impl Watcher for Keeper<'_> {
    fn hear(&mut self, share: f64, _: &str) -> ControlFlow<()> {
        // Done is what is stored.
        self.queue.note(self.index, |come| come.done = share.clamp(0.0, 0.999));
        match self.queue.stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn kept(&mut self) -> Option<&mut KeptRuns> {
        Some(&mut self.runs)
    }

    fn spent(&mut self, time: Duration) {
        self.spent += time;
    }

    fn found(&mut self, share: f64) {
        self.queue.note(self.index, |come| come.found += share);
    }
}

/// Stores what an experiment has found in its directory, and how long it took and its runs.
///
/// # Errors
/// When it cannot be written.
pub(super) fn store(
    directory: &Path,
    paper: &Paper,
    experiment: &Experiment,
    effort: Effort,
    findings: Findings,
    took: [Duration; 2],
) -> Result<(), Failure> {
    let place = Place::create(directory)?;
    let title = format!("Reproduction of {}: {}", paper.name, experiment.name);
    let page = claims_page(&title, paper.citation, &findings.claims, vec![findings.section]);
    place.directory().write(REPORT, &page.to_html())?;
    let stored = Stored {
        rackloom_version: VERSION.into(),
        commit: COMMIT.into(),
        date: today(),
        effort: word(effort).into(),
        wall_seconds: took[0].as_secs_f64(),
        run_seconds: took[1].as_secs_f64(),
        measured: findings.measured,
    };
    // Last: who finds it finds the report.
    let stored = serde_json::to_value(stored).expect("numbers and texts");
    place.directory().write_json(MEASURED, &stored)?;
    place.keep();
    Ok(())
}

/// The day, UTC.
fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let [year, month, day] = civil(since.as_secs() / 86_400);
    format!("{year}-{month:02}-{day:02}")
}

/// Year, month and day of a day since 1970-01-01: years of the Gregorian calendar repeat every 400, and begin in
/// March here, so that the day that is there now and then is the last.
fn civil(day: u64) -> [u64; 3] {
    let day = day + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, after) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    [era * 400 + year + after, month, day]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        // `date -u -d @SECONDS +%F`, seconds by 86,400.
        assert_eq!(civil(0), [1970, 1, 1]);
        assert_eq!(civil(11_016), [2000, 2, 29]);
        assert_eq!(civil(11_017), [2000, 3, 1]);
        assert_eq!(civil(20_453), [2025, 12, 31]);
        assert_eq!(civil(20_782), [2026, 11, 25]);
        assert_eq!(civil(47_540), [2100, 2, 28]);
        assert_eq!(civil(47_541), [2100, 3, 1]);
    }

    /// An experiment that takes no time, measured into a directory as if by a build.
    fn measure(directory: &Path, commit: &str) {
        let paper = papers().iter().find(|paper| paper.name == "pl2").unwrap();
        let experiment = paper.experiments.iter().find(|one| one.name == "section2").unwrap();
        let mut watch = |_: f64, _: &str| ControlFlow::Continue(());
        let findings = experiment.run(Effort::Quick, &mut watch).unwrap();
        let (place, took) = (directory.join("pl2/section2"), Duration::from_secs(1));
        store(&place, paper, experiment, Effort::Quick, findings, [took; 2]).unwrap();
        let path = directory.join("pl2/section2").join(MEASURED);
        let text = std::fs::read_to_string(&path).unwrap();
        let mut stored: Stored = serde_json::from_str(&text).unwrap();
        stored.commit = commit.into();
        std::fs::write(path, serde_json::to_string(&stored).unwrap()).unwrap();
    }

    #[test]
    fn what_another_build_measured_is_judged_only_where_that_is_asked_for() {
        let root = tempfile::tempdir().unwrap();
        measure(root.path(), "another");
        let stored = Stored::read(&root.path().join("pl2/section2")).unwrap();
        assert!(!stored.is_ours(Effort::Quick), "it would be run again");
        let mut watch = |_: &Progress| ControlFlow::Continue(());
        let places = (root.path(), None);
        let all = all(&[], Effort::Quick, places, Missing::Judge, &mut watch).unwrap();
        let pl2 = all.papers.iter().find(|of| of.paper.name == "pl2").unwrap();
        assert!(!pl2.rows.is_empty() && !pl2.missing.contains(&"section2"));
        assert!(pl2.missing.contains(&"fig3"));
        assert_eq!(pl2.builds[0][1], "another");
        let page = all.page();
        for words in ["section2.drain", "another", "to do", "(missing)"] {
            let is_there = page.contains(words);
            assert_eq!(is_there, words != "(missing)", "{words}");
        }
        let rows: Value =
            serde_json::from_slice(&std::fs::read(root.path().join("claims.json")).unwrap())
                .unwrap();
        assert_eq!(rows[0]["paper"], "pl2");
        assert_eq!(rows.as_array().unwrap().len(), pl2.rows.len());
    }

    /// What was measured for the page that ships is in the project, and the page is what its claims make of that.
    #[test]
    fn the_page_that_ships_is_of_the_claims_as_they_are() {
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let [quick, full] =
            ["quick", "full"].map(|name| project.join("reproductions/measured").join(name));
        let effort = Effort::Quick;
        let papers =
            papers().iter().map(|paper| gather(paper, effort, &quick, Some(&full))).collect();
        let all = All { effort, papers, broken: Vec::new(), interrupted: false };
        let page = std::fs::read_to_string(project.join("docs/reproduced.md")).unwrap();
        let other = all.page().lines().zip(page.lines()).find(|(now, ships)| now != ships).map(
            |(now, ships)| {
                format!("it would have\n{now}\nwhere it has\n{ships}\n`make page` writes it anew")
            },
        );
        assert_eq!(other, None);
        assert_eq!(all.page().len(), page.len(), "`make page` writes it anew");
    }

    #[test]
    fn the_larger_of_two_measurements_is_judged() {
        let roots = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        roots
            .iter()
            .zip(["here", "beside"])
            .for_each(|(root, commit)| measure(root.path(), commit));
        let judged = |beside: Option<&Path>| {
            let mut watch = |_: &Progress| ControlFlow::Continue(());
            let places = (roots[0].path(), beside);
            let all = all(&[], Effort::Quick, places, Missing::Judge, &mut watch).unwrap();
            let pl2 = all.papers.iter().find(|of| of.paper.name == "pl2").unwrap();
            (pl2.builds[0][1].clone(), pl2.full.clone(), all.page().contains("In the larger runs"))
        };
        let beside = Some(roots[1].path());
        assert_eq!(judged(None), ("here".into(), vec![], false));
        assert_eq!(judged(beside), ("here".into(), vec![], false), "both are quick");
        let path = roots[1].path().join("pl2/section2").join(MEASURED);
        let text = std::fs::read_to_string(&path).unwrap().replace("\"quick\"", "\"full\"");
        std::fs::write(path, text).unwrap();
        assert_eq!(judged(beside), ("beside".into(), vec!["section2"], true));
        assert_eq!(judged(None), ("here".into(), vec![], false));
    }

    #[test]
    fn experiments_are_chosen_by_paper_or_by_both_names_in_the_order_asked_for() {
        let names = |names: &[&str]| -> Vec<String> {
            let names: Vec<String> = names.iter().map(|&name| name.into()).collect();
            let chosen = select(&names).unwrap();
            chosen.iter().map(|(paper, one)| format!("{}/{}", paper.name, one.name)).collect()
        };
        let of_all: usize = papers().iter().map(|paper| paper.experiments.len()).sum();
        assert_eq!(names(&[]).len(), of_all);
        assert_eq!(names(&["pl2/fig9", "homa", "pl2/fig9"]), ["pl2/fig9", "homa/fig12"]);
        assert_eq!(names(&["pl2/fig9", "pl2"]).len(), names(&["pl2"]).len());
        let wrong = select(&["pl2/fig99".into(), "pl3".into()]).unwrap_err();
        assert_eq!(wrong.into_problems().len(), 2);
    }

    #[test]
    fn what_this_build_measured_is_done_and_half_a_file_is_not() {
        let root = tempfile::tempdir().unwrap();
        measure(root.path(), COMMIT);
        let directory = root.path().join("pl2/section2");
        assert!(Stored::read(&directory).unwrap().is_ours(Effort::Quick));
        assert!(!Stored::read(&directory).unwrap().is_ours(Effort::Full));
        let text = std::fs::read_to_string(directory.join(MEASURED)).unwrap();
        std::fs::write(directory.join(MEASURED), &text[..text.len() / 2]).unwrap();
        assert!(Stored::read(&directory).is_none());
    }
}
