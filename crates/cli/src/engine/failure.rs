//! Why something was not carried out, and the exit code that says so.

use rack::run::RunError;
use report::FileError;
use scenario::{BadInput, Error};

use super::guard::Panic;
use crate::VERSION;

/// Exit code of bad input: nothing was written.
pub const EXIT_INPUT: u8 = 2;
/// Exit code of a run that broke, a check that failed or an internal error.
pub const EXIT_BROKEN: u8 = 1;
/// Exit code of an interrupted command: 128 and the number of SIGINT, as shells have it.
pub const EXIT_INTERRUPTED: u8 = 130;

/// Why something was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The input cannot be used; nothing was written.
    #[error(transparent)]
    Input(#[from] BadInput),
    /// The results have no place to go; found before the run, nothing was written.
    #[error(transparent)]
    Place(FileError),
    /// The run broke.
    #[error(transparent)]
    Broken(#[from] RunError),
    /// An invariant does not hold, of a model or of the program around it: a mistake of ours.
    #[error(
        "internal error: {} ({}). Please report this, with the scenario and the version, which is \
         {VERSION}",
        .0.message, .0.place
    )]
    Internal(Panic),
    /// The results could not be stored at the end.
    #[error(transparent)]
    Write(#[from] FileError),
    /// The cluster that was to run it is gone, or is no use.
    #[error("{0}")]
    Cluster(String),
    /// It was stopped from outside before anything was finished.
    #[error("interrupted before anything was finished")]
    Interrupted,
}

impl Failure {
    /// The exit code of a command that fails so.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            // A key that this fabric does not take: nothing ran.
            Self::Input(_) | Self::Place(_) | Self::Broken(RunError::Wire(_)) => EXIT_INPUT,
            Self::Broken(_) | Self::Internal(_) | Self::Write(_) | Self::Cluster(_) => EXIT_BROKEN,
            Self::Interrupted => EXIT_INTERRUPTED,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Input(bad) => Self::Input(bad),
            Error::Run(broken) => Self::Broken(broken),
        }
    }
}
