//! A search among scenarios: what to try next is a sampler's business, what came of it is judged here.
//!
//! A trial is a scenario with some keys set, and its runs are points as those of a sweep: each lies in a folder
//! named by its hash, so nothing that is finished runs twice. A search that was stopped is gone through again
//! from its first trial, whose runs are there, until something new is to be tried.
//!
//! **Invariant:** with `jobs` trials at a time, trial number n is chosen when the outcomes of the first n - jobs + 1
//! are known, and those alone, whichever has ended by then: the same search gives the same trials.

mod aims;
mod files;
mod names;
mod record;
mod space;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use report::page::CHART_LIBRARY;
use report::write_atomically;
use scenario::{Argument, BadInput, Document, Located, Registry, Scenario};
use serde_json::Value;
use sha2::{Digest, Sha256};

pub use aims::{Aim, Constraint, Judgement};
pub use files::{FRONT, Shown, table};
pub use space::{COUNTED_MAX, Over, Quantity, Range};

use super::cluster::{Cluster, Ended, Job, News, keep};
use super::here::here;
use super::place::Place;
use super::sweep::{Axis, LIBRARY, Machines, Outcome, Point, finished, mean};
use super::{Busy, Failure, guarded};

/// How long news is waited for before the user is listened to (our choice: below what people notice).
const PERIOD: Duration = Duration::from_millis(50);
/// How often a sampler may suggest what was tried already (our choice). Afterwards chance decides.
const ATTEMPTS: usize = 20;
/// The key that stands for the fabrics of a scenario that has several.
pub const FABRIC: &str = "fabric";

/// What is searched, and for what.
pub struct Search {
    /// The scenario as written.
    pub document: Document,
    /// Settings for all trials.
    pub arguments: Vec<Argument>,
    /// What differs. Of a scenario with several fabrics, which it is comes on top.
    pub space: Vec<Over>,
    /// What is to be small or large; of several, no trial of the front is worse in all.
    pub aims: Vec<Aim>,
    /// What has to hold.
    pub constraints: Vec<Constraint>,
    /// How many trials there are in all.
    pub trials: usize,
    /// How many of them run at a time.
    pub jobs: usize,
}

/// Chooses what is tried. Trials are told in the order in which they were asked for.
pub trait Sampler {
    /// What to try next, a number for each key of the space, and the sampler's own number of this trial. If
    /// `fixed`, those are tried.
    ///
    /// # Errors
    /// When the sampler breaks.
    fn ask(&self, fixed: Option<&[f64]>) -> Result<(u64, Vec<f64>), Failure>;

    /// A trial is not made, and says nothing.
    ///
    /// # Errors
    /// When the sampler breaks.
    fn forget(&self, trial: u64) -> Result<(), Failure>;

    /// What came of a trial: its aims, if they are known, and by how many limits each condition is violated.
    ///
    /// # Errors
    /// When the sampler breaks.
    fn tell(&self, trial: u64, judgement: &Judgement) -> Result<(), Failure>;
}

/// What a sampler is made for.
#[derive(Clone, Debug)]
pub struct Study {
    /// The keys, in the order of the numbers.
    pub space: Vec<Over>,
    /// The aims.
    pub aims: Vec<Aim>,
    /// The seed of its chance.
    pub seed: u64,
}

/// Makes a sampler.
pub type MakeSampler<'a> = dyn Fn(&Study) -> Result<Box<dyn Sampler>, Failure> + 'a;

/// One trial.
#[derive(Clone, Debug)]
pub struct Trial {
    /// What the sampler chose: a number for each key.
    pub numbers: Vec<f64>,
    /// The value of each key, as it stands in the scenario.
    pub settings: Vec<String>,
    /// Its runs, one a seed.
    pub points: Vec<Point>,
    /// Figures, means if there are several seeds; `None` if it did not run.
    pub summary: Option<Value>,
    /// What the search makes of it.
    pub judgement: Judgement,
    /// Whether no feasible trial is better: the best, or one of the front.
    pub is_best: bool,
    /// How it stands.
    pub status: Status,
}

/// How a trial stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Every condition holds.
    Feasible,
    /// A condition does not hold, or is not known to.
    Infeasible,
    /// It cannot run, or broke.
    Failed,
    /// The search was stopped before it ended.
    NotRun,
}

impl Status {
    /// In a word, for tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Feasible => "feasible",
            Self::Infeasible => "infeasible",
            Self::Failed => "failed",
            Self::NotRun => "not run",
        }
    }
}

/// A search that is over, or was stopped.
#[derive(Clone, Debug)]
pub struct Searched {
    /// The name of the scenario.
    pub name: String,
    /// What was searched.
    pub space: Vec<Over>,
    /// What for.
    pub aims: Vec<Aim>,
    /// What had to hold.
    pub constraints: Vec<Constraint>,
    /// The trials, in their order.
    pub trials: Vec<Trial>,
    /// Whether every point of the space was tried.
    pub is_exhausted: bool,
    /// Where its files are.
    pub directory: PathBuf,
}

/// Hears of a search.
pub trait Watch {
    /// A trial is over; there are `count` in all.
    fn ended(&self, count: usize, trial: &Trial) {
        let _ = (count, trial);
    }

    /// Something is to be known.
    fn told(&self, text: &str) {
        let _ = text;
    }

    /// Asked now and then: whether the search is to stop.
    fn stop(&self) -> bool {
        false
    }
}

/// Watches nothing.
impl Watch for () {}

/// Searches.
///
/// # Errors
/// When no scenario of the space can be read (nothing is written then), the directory is bad or holds another
/// search, or the cluster or the sampler is of no use any more: what has ended until then is kept.
pub fn search(
    search: &Search,
    directory: Option<&Path>,
    sampler: &MakeSampler<'_>,
    machines: Machines<'_>,
    registry: &Registry,
    watch: &dyn Watch,
) -> Result<Searched, Failure> {
    guarded(|| {
        let plan = Plan::of(search, registry)?;
        let directory = directory.map_or_else(
            || PathBuf::from(super::RESULTS).join(format!("{}-search", plan.name)),
            PathBuf::from,
        );
        let recorded = record::load(&directory, &plan)?;
        names::check(search, &plan, registry, machines.memory_to_look())?;
        let sampler = sampler(&plan.study(search))?;
        let place = Place::create(&directory)?;
        let folder = directory.join("points");
        let go = |cluster: &dyn Cluster| {
            let mut desk = Desk {
                search,
                plan: &plan,
                registry,
                directory: &directory,
                cluster,
                sampler: sampler.as_ref(),
                watch,
                recorded: &recorded,
                open: Vec::new(),
                waiting: BTreeMap::new(),
                tried: HashSet::new(),
                told: 0,
                is_exhausted: false,
            };
            let broken = desk.carry_out().err();
            desk.give_up();
            (desk.open.into_iter().map(|open| open.trial).collect(), desk.is_exhausted, broken)
        };
        let (trials, is_exhausted, broken) = match machines {
            Machines::This(budget) => here(budget, &folder, go),
            Machines::Cluster(cluster) => go(cluster),
        };
        let mut searched = Searched {
            name: plan.name.clone(),
            space: plan.space.clone(),
            aims: search.aims.clone(),
            constraints: search.constraints.clone(),
            trials,
            is_exhausted,
            directory: directory.clone(),
        };
        searched.find_best();
        if searched.trials.iter().any(|trial| trial.summary.is_some()) {
            files::write(&searched)?;
            place.keep();
        }
        broken.map_or(Ok(searched), Err)
    })
}

impl Searched {
    /// Marks the feasible trials than which none is better.
    fn find_best(&mut self) {
        let feasible = |trial: &Trial| {
            trial.judgement.values.clone().filter(|_| trial.status == Status::Feasible)
        };
        let all: Vec<_> = self.trials.iter().map(feasible).collect();
        let is_beaten = |values: &[f64]| {
            all.iter().flatten().any(|other| aims::dominates(other, values, &self.aims))
        };
        let best: Vec<bool> =
            all.iter().map(|own| own.as_ref().is_some_and(|own| !is_beaten(own))).collect();
        for (trial, is_best) in self.trials.iter_mut().zip(best) {
            trial.is_best = is_best;
        }
    }
}

/// What is known before the first trial.
struct Plan {
    name: String,
    /// The space, with the fabrics where there are several.
    space: Vec<Over>,
    labels: Vec<String>,
    seed: u64,
    seeds: u32,
    /// What trials have in common.
    base: String,
    /// The search in words, as the record keeps it.
    aims: Vec<String>,
    subject: Vec<String>,
}

impl Plan {
    /// Reads the scenario as it stands, and one of the space.
    fn of(search: &Search, registry: &Registry) -> Result<Self, Failure> {
        let mut space = search.space.clone();
        // What has to be given by the space cannot be read without; such a scenario has one fabric.
        let labels = read(search, &[], &[], None, registry).map(|scenario| labels(&scenario));
        let labels = labels.unwrap_or_default();
        let scenario = corner(search, &labels, registry)?;
        let labels = if labels.is_empty() { self::labels(&scenario) } else { labels };
        match space.iter().find(|over| over.key == FABRIC) {
            Some(over) => check_labels(over, &labels)?,
            None if labels.len() > 1 => space.push(Over {
                key: FABRIC.into(),
                text: String::new(),
                range: Range::Choice(labels.clone()),
            }),
            None => {}
        }
        let axes: Vec<Axis> =
            space.iter().map(|over| Axis { key: over.key.clone(), values: Vec::new() }).collect();
        let word = |aim: &Aim| {
            format!("{} {}", if aim.is_maximised { "maximise" } else { "minimise" }, aim.key)
        };
        Ok(Self {
            name: scenario.name.clone(),
            labels,
            seed: scenario.seed,
            seeds: scenario.run.seeds,
            base: super::sweep::base(&scenario, &axes),
            space,
            aims: search.aims.iter().map(word).collect(),
            subject: search.constraints.iter().map(|held| held.text.clone()).collect(),
        })
    }

    fn study(&self, search: &Search) -> Study {
        Study { space: self.space.clone(), aims: search.aims.clone(), seed: self.seed }
    }

    /// The runs of a trial, one a seed, with their hashes.
    fn runs(
        &self,
        search: &Search,
        settings: &[String],
        registry: &Registry,
    ) -> Result<Vec<Scenario>, Failure> {
        guarded(|| {
            let wanted = self.space.iter().position(|over| over.key == FABRIC);
            let index = wanted.map(|at| {
                let found = self.labels.iter().position(|label| *label == settings[at]);
                found.expect("labels were checked")
            });
            let scenario = read(search, &self.space, settings, index, registry)?;
            Ok(scenario.with_fabric(index.unwrap_or(0)).with_each_seed())
        })
    }
}

fn labels(scenario: &Scenario) -> Vec<String> {
    scenario.fabrics.iter().map(|fabric| fabric.label.clone()).collect()
}

/// A scenario of the space that can be read: of each fabric that of all lowest and that of all highest values are
/// tried.
fn corner(search: &Search, labels: &[String], registry: &Registry) -> Result<Scenario, BadInput> {
    let chosen = search.space.iter().find(|over| over.key == FABRIC).map(|over| &over.range);
    let is_wanted = |label: &String| match chosen {
        Some(Range::Choice(names)) => names.contains(label),
        _ => true,
    };
    let mut fabrics: Vec<Option<usize>> = vec![None];
    if labels.len() > 1 {
        let wanted = labels.iter().enumerate().filter(|(_, label)| is_wanted(label));
        fabrics = wanted.map(|(index, _)| Some(index)).collect();
    }
    if fabrics.is_empty() {
        // Which names are wrong is said by whoever checks them.
        return read(search, &[], &[], None, registry);
    }
    let mut first = None;
    for (fabric, end) in fabrics.into_iter().flat_map(|fabric| [(fabric, 0), (fabric, 1)]) {
        let settings = search.space.iter().map(|over| over.range.value(over.range.ends()[end]));
        let settings: Vec<_> = settings.collect();
        match read(search, &search.space, &settings, fabric, registry) {
            Ok(scenario) => return Ok(scenario),
            Err(bad) => first = first.or(Some(bad)),
        }
    }
    Err(first.expect("there is a fabric"))
}

/// The scenario of some settings; those of `fabric` are of that one of several.
fn read(
    search: &Search,
    space: &[Over],
    settings: &[String],
    fabric: Option<usize>,
    registry: &Registry,
) -> Result<Scenario, BadInput> {
    let set = |(over, value): (&Over, &String)| {
        let key = match (over.key.strip_prefix("fabric."), fabric) {
            (Some(rest), Some(index)) => format!("fabric[{index}].{rest}"),
            _ => over.key.clone(),
        };
        Argument::text(&key, value, &format!("--over {}={value}", over.key))
    };
    let mut arguments = search.arguments.clone();
    let keys = space.iter().zip(settings).filter(|(over, _)| over.key != FABRIC);
    arguments.extend(keys.map(set));
    Scenario::read(search.document.clone(), &arguments, registry)
}

/// Refuses names that no fabric of the scenario has.
fn check_labels(over: &Over, labels: &[String]) -> Result<(), BadInput> {
    let place = format!("--over {}", over.text);
    let Range::Choice(names) = &over.range else {
        let message = "expected names of fabrics of the scenario, such as fabric=Shoal,NDP";
        return Err(BadInput::single(Located::whole(&place, message)));
    };
    let missing = names.iter().filter(|name| !labels.contains(name));
    let problem = |name: &String| {
        let hint = scenario::suggest(name, labels);
        Located::whole(&place, format!("the scenario has no fabric {name:?}; {hint}"))
    };
    BadInput::unless_empty(missing.map(problem).collect())
}

/// A trial and how much of it is under way.
struct Open {
    trial: Trial,
    /// What the sampler calls it.
    handle: u64,
    /// Runs that have not ended.
    left: usize,
}

/// A search under way.
struct Desk<'a> {
    search: &'a Search,
    plan: &'a Plan,
    registry: &'a Registry,
    directory: &'a Path,
    cluster: &'a dyn Cluster,
    sampler: &'a dyn Sampler,
    watch: &'a dyn Watch,
    /// What an earlier search chose.
    recorded: &'a [Vec<f64>],
    open: Vec<Open>,
    /// Who waits for the run of this hash: trial and run.
    waiting: BTreeMap<String, Vec<(usize, usize)>>,
    tried: HashSet<Vec<String>>,
    /// Trials of which the sampler knows.
    told: usize,
    is_exhausted: bool,
}

impl Desk<'_> {
    /// Until all trials are over or the user asks to stop.
    fn carry_out(&mut self) -> Result<(), Failure> {
        let busy = Busy::begin();
        for _ in 0..self.search.jobs {
            self.begin_next()?;
        }
        while self.told < self.open.len() {
            if self.watch.stop() {
                busy.stopping();
                return Ok(());
            }
            if self.open[self.told].left == 0 {
                self.end_next()?;
                self.begin_next()?;
                continue;
            }
            if let Some(news) = self.cluster.next(PERIOD)? {
                self.hear(news);
            }
        }
        Ok(())
    }

    /// Chooses a trial and hands its runs in, if there is another to be made.
    fn begin_next(&mut self) -> Result<(), Failure> {
        if self.open.len() >= self.search.trials || self.is_exhausted {
            return Ok(());
        }
        let Some((handle, numbers)) = self.choose()? else {
            self.is_exhausted = true;
            return Ok(());
        };
        let settings = self.settings(&numbers);
        self.tried.insert(settings.clone());
        let runs = self.plan.runs(self.search, &settings, self.registry);
        let mut trial = Trial {
            numbers,
            settings,
            points: Vec::new(),
            summary: None,
            judgement: Judgement::default(),
            is_best: false,
            status: Status::NotRun,
        };
        let runs = match runs {
            Ok(runs) => runs,
            Err(failure) => {
                trial.status = Status::Failed;
                trial.judgement.why.push(failure.to_string());
                Vec::new()
            }
        };
        trial.points = runs.iter().map(point).collect();
        let number = self.open.len();
        self.open.push(Open { trial, handle, left: runs.len() });
        for (run, scenario) in runs.iter().enumerate() {
            self.hand_in(number, run, scenario)?;
        }
        Ok(())
    }

    /// Has a run made, unless it is there or under way.
    fn hand_in(&mut self, number: usize, run: usize, scenario: &Scenario) -> Result<(), Failure> {
        let hash = self.open[number].trial.points[run].hash.clone();
        if let Some(summary) = finished(&self.directory.join("points").join(&hash), &hash) {
            self.land(number, run, Outcome::Found(summary));
            return Ok(());
        }
        if let Some(others) = self.waiting.get_mut(&hash) {
            others.push((number, run));
            return Ok(());
        }
        match Job::of(scenario, &hash) {
            Ok(job) => {
                self.waiting.insert(hash, vec![(number, run)]);
                self.cluster.submit(job)
            }
            Err(failure) => {
                self.land(number, run, Outcome::Failed(failure.to_string()));
                Ok(())
            }
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Note(text) => self.watch.told(&text),
            News::Job(key, ended) => {
                let outcome = self.kept(&key, ended);
                for (number, run) in self.waiting.remove(&key).unwrap_or_default() {
                    self.land(number, run, outcome.clone());
                }
            }
        }
    }

    fn kept(&self, key: &str, ended: Ended) -> Outcome {
        let kept = keep(ended, &self.directory.join("points").join(key), key);
        // All reports share it.
        let library = self.directory.join(LIBRARY);
        if kept.is_ok()
            && !library.exists()
            && let Err(failure) = write_atomically(&library, CHART_LIBRARY.as_bytes())
        {
            return Outcome::Failed(failure.to_string());
        }
        kept.map_or_else(Outcome::Failed, Outcome::Done)
    }

    fn land(&mut self, number: usize, run: usize, outcome: Outcome) {
        let open = &mut self.open[number];
        open.trial.points[run].outcome = outcome;
        open.left -= 1;
        if open.left == 0 {
            open.trial.judge(self.search);
        }
    }

    /// Tells the sampler of the first trial of which it does not know.
    fn end_next(&mut self) -> Result<(), Failure> {
        let Open { trial, handle, .. } = &self.open[self.told];
        self.sampler.tell(*handle, &trial.judgement)?;
        self.told += 1;
        self.watch.ended(self.search.trials, trial);
        if self.told > self.recorded.len() {
            let told = self.open[..self.told].iter().map(|open| open.trial.numbers.clone());
            record::write(self.directory, self.plan, told.collect())?;
        }
        Ok(())
    }

    /// What is tried next: what an earlier search chose, what the sampler says, or, where it repeats itself,
    /// what chance says. `None` if there is nothing new.
    fn choose(&self) -> Result<Option<(u64, Vec<f64>)>, Failure> {
        if let Some(numbers) = self.recorded.get(self.open.len()) {
            return self.sampler.ask(Some(numbers)).map(Some);
        }
        if space::size(&self.plan.space).is_some_and(|size| self.tried.len() >= size) {
            return Ok(None);
        }
        for _ in 0..ATTEMPTS {
            let (handle, numbers) = self.sampler.ask(None)?;
            if !self.tried.contains(&self.settings(&numbers)) {
                return Ok(Some((handle, numbers)));
            }
            self.sampler.forget(handle)?;
        }
        let untried = self.untried();
        if untried.is_empty() {
            return Ok(None);
        }
        let seed = format!("{} {}", self.plan.seed, self.open.len());
        let digest = Sha256::digest(seed.as_bytes());
        let drawn = digest[..8].iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        let numbers = &untried[(drawn % untried.len() as u64) as usize];
        self.sampler.ask(Some(numbers)).map(Some)
    }

    /// Every point that was not tried, if they can be counted.
    fn untried(&self) -> Vec<Vec<f64>> {
        if space::size(&self.plan.space).is_none() {
            return Vec::new();
        }
        let mut all: Vec<Vec<f64>> = vec![Vec::new()];
        for over in &self.plan.space {
            let numbers = over.range.numbers().unwrap_or_default();
            let longer = |start: &Vec<f64>| {
                let start = start.clone();
                numbers.iter().map(move |number| [start.as_slice(), &[*number]].concat()).collect()
            };
            all = all.iter().flat_map(|start| -> Vec<Vec<f64>> { longer(start) }).collect();
        }
        all.retain(|numbers| !self.tried.contains(&self.settings(numbers)));
        all
    }

    fn settings(&self, numbers: &[f64]) -> Vec<String> {
        let values = self.plan.space.iter().zip(numbers);
        values.map(|(over, number)| over.range.value(*number)).collect()
    }

    /// Cancels what is under way, and keeps what has ended.
    fn give_up(&mut self) {
        self.cluster.cancel();
        while let Ok(Some(news)) = self.cluster.next(Duration::ZERO) {
            self.hear(news);
        }
    }
}

/// A run of a trial that has not been made.
fn point(scenario: &Scenario) -> Point {
    Point {
        settings: Vec::new(),
        label: scenario.fabrics[0].label.clone(),
        seed: scenario.seed,
        hash: scenario.hash(),
        base: String::new(),
        outcome: Outcome::NotRun,
    }
}

impl Trial {
    /// Says what the search makes of it, all of its runs being over.
    fn judge(&mut self, search: &Search) {
        let points: Vec<_> = self.points.iter().collect();
        let mean = mean(Vec::new(), &points);
        if let Some(why) = mean.failed {
            self.status = Status::Failed;
            self.judgement.why.push(why);
            return;
        }
        let Some(summary) = mean.summary else { return };
        self.judgement = Judgement::of(&summary, &search.aims, &search.constraints);
        self.status = match self.judgement.is_feasible() {
            true => Status::Feasible,
            false => Status::Infeasible,
        };
        self.summary = Some(summary);
    }
}

#[cfg(test)]
mod tests;
