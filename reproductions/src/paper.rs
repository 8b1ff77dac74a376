//! What a paper is made of, as the command sees it.

use std::ops::ControlFlow;

use rack::run::RunError;
use report::Claim;
use report::page::Section;
use scenario::BadInput;
use serde::Deserialize;

/// How much computing a reproduction may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Effort {
    /// Minutes on two cores: fewer flows than the paper.
    #[default]
    Quick,
    /// The paper's size.
    Full,
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
    run: Run,
}

impl Experiment {
    pub(crate) const fn new(
        name: &'static str,
        section: &'static str,
        what: &'static str,
        run: Run,
    ) -> Self {
        Self { name, section, what, run }
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
    /// Its part of the report.
    pub section: Section,
}

/// Hears how far an experiment has come, from 0 to 1 and in a few words; a break stops it.
pub type Watch<'a> = dyn FnMut(f64, &str) -> ControlFlow<()> + 'a;

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
