//! What a paper is made of, as the command sees it.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::time::Duration;

use rack::run::RunError;
use report::Claim;
use report::page::Section;
use scenario::BadInput;
use serde::Deserialize;

use crate::claims::{Measured, Sheet};
use crate::configuration::Configuration;
use crate::kept::KeptRuns;

/// How much computing a reproduction may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Effort {
    /// Minutes on two cores: fewer flows than the paper.
    #[default]
    Quick,
    /// The paper's size.
    Full,
}

impl Effort {
    /// Seeds where a run takes long (our choice).
    pub(crate) const fn seeds(self) -> u64 {
        match self {
            Self::Quick => 2,
            Self::Full => 5,
        }
    }

    /// Seeds where a quick look would take too long with more, or only tests a cause (our choice).
    pub(crate) const fn seeds_of_longest(self) -> u64 {
        match self {
            Self::Quick => 1,
            Self::Full => self.seeds(),
        }
    }
}

/// Carries out an experiment.
type Run = fn(Effort, &mut Watch<'_>) -> Result<Findings, Failure>;

/// One experiment of a paper.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// What the command calls it: `fig12`.
    pub name: &'static str,
    /// Where it is in the paper.
    pub section: &'static str,
    /// What it shows, in one line.
    pub what: &'static str,
    /// Its file of claims.
    claims: &'static str,
    run: Run,
}

/// One line of a paper's list: its folder, the experiment's name, section and words, and the function that
/// carries it out. The file of claims is the one of that name in that folder.
macro_rules! experiment {
    ($paper:literal, $name:literal, $section:literal, $what:literal, $run:expr $(,)?) => {
        $crate::Experiment::new(
            $name,
            $section,
            $what,
            include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/",
                $paper,
                "/",
                $name,
                ".claims.toml"
            )),
            $run,
        )
    };
}
pub(crate) use experiment;

impl Experiment {
    pub(crate) const fn new(
        name: &'static str,
        section: &'static str,
        what: &'static str,
        claims: &'static str,
        run: Run,
    ) -> Self {
        Self { name, section, what, claims, run }
    }

    /// Its claims, none of them measured.
    #[must_use]
    pub fn sheet(&self) -> Sheet {
        Sheet::read(self.claims)
    }

    /// How long it takes on one core, in seconds; for estimates alone.
    #[must_use]
    pub fn seconds(&self, effort: Effort) -> f64 {
        let takes = self.sheet().takes();
        match effort {
            Effort::Quick => takes.quick,
            Effort::Full => takes.full,
        }
    }

    /// The rows of its table from what an earlier run measured, judged by the claims as they are now.
    ///
    /// # Errors
    /// The claims that were not measured then.
    pub fn judge(&self, measured: &BTreeMap<String, Measured>) -> Result<Vec<Claim>, Vec<String>> {
        let mut sheet = self.sheet();
        let missing = sheet.recall(measured);
        if missing.is_empty() { Ok(sheet.finish()) } else { Err(missing) }
    }

    /// Carries it out.
    ///
    /// # Errors
    /// When a run breaks, or the watch stops it.
    pub fn run(&self, effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
        (self.run)(effort, watch)
    }
}

/// What an experiment gave.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Its rows of the table.
    pub claims: Vec<Claim>,
    /// What was measured for each of them, to be judged again later.
    pub measured: BTreeMap<String, Measured>,
    /// Its part of the report.
    pub section: Section,
}

/// Hears how far an experiment has come, and may have its runs kept.
pub type Watch<'a> = dyn Watcher + 'a;

/// What an experiment is watched by. A closure watches, and keeps nothing.
pub trait Watcher {
    /// How far it has come, from 0 to 1 and in a few words; a break stops it.
    fn hear(&mut self, share: f64, words: &str) -> ControlFlow<()>;

    /// Where its runs are kept, if they are.
    fn kept(&mut self) -> Option<&mut KeptRuns> {
        None
    }

    /// Some of its runs have taken this long, one after the other.
    fn spent(&mut self, time: Duration) {
        let _ = time;
    }

    /// Such a share of it, from 0 to 1, was not carried out now: those runs were kept.
    fn found(&mut self, share: f64) {
        let _ = share;
    }
}

impl<F: FnMut(f64, &str) -> ControlFlow<()>> Watcher for F {
    fn hear(&mut self, share: f64, words: &str) -> ControlFlow<()> {
        self(share, words)
    }
}

/// A watch that takes what it hears for a part of what another watches.
pub(crate) struct Part<'a, 'b> {
    whole: &'a mut Watch<'b>,
    part: Range<f64>,
}

/// The watch of a part of an experiment, from one share of it to another.
pub(crate) fn part<'a, 'b>(whole: &'a mut Watch<'b>, part: Range<f64>) -> Part<'a, 'b> {
    Part { whole, part }
}

impl Watcher for Part<'_, '_> {
    fn hear(&mut self, share: f64, words: &str) -> ControlFlow<()> {
        let Range { start, end } = self.part;
        self.whole.hear(start + (end - start) * share, words)
    }

    fn kept(&mut self) -> Option<&mut KeptRuns> {
        self.whole.kept()
    }

    fn spent(&mut self, time: Duration) {
        self.whole.spent(time);
    }

    fn found(&mut self, share: f64) {
        self.whole.found((self.part.end - self.part.start) * share);
    }
}

/// Why an experiment gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Its scenario cannot be used: a mistake of ours.
    #[error(transparent)]
    Input(#[from] BadInput),
    /// A run broke.
    #[error(transparent)]
    Broken(#[from] RunError),
    /// The model broke one of its own invariants.
    #[error("the model broke: {0}")]
    Model(String),
    /// The watch stopped it.
    #[error("interrupted")]
    Interrupted,
}

impl From<scenario::Error> for Failure {
    fn from(error: scenario::Error) -> Self {
        match error {
            scenario::Error::Input(bad) => Self::Input(bad),
            scenario::Error::Run(broken) => Self::Broken(broken),
        }
    }
}

/// A paper with experiments to repeat.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// What the command calls it: `shoal`.
    pub name: &'static str,
    /// Authors, title, venue.
    pub citation: &'static str,
    /// Its experiments in the order of the paper.
    pub experiments: &'static [Experiment],
    /// The file of the configuration under which its claims are judged.
    pub(crate) configuration: &'static str,
    /// The file of the rows that the last release reproduced; empty where none is held to.
    pub(crate) released: &'static str,
}

/// The rows that the last release reproduced, by effort.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Released {
    quick: Vec<String>,
    full: Vec<String>,
}

impl Paper {
    /// The one configuration under which its claims are judged, and what is beside it.
    ///
    /// # Panics
    /// If its file cannot be read: a mistake of ours that a test finds.
    #[must_use]
    pub fn configuration(&self) -> Configuration {
        toml::from_str(self.configuration).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// The claims that the last release reproduced with this effort: one that is not any more is an
    /// alarm.
    #[must_use]
    pub fn released(&self, effort: Effort) -> Vec<String> {
        let released: Released = toml::from_str(self.released).expect("a test reads it");
        match effort {
            Effort::Quick => released.quick,
            Effort::Full => released.full,
        }
    }
}
