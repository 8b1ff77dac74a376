//! `progress.json`: how far a run has come, for who looks at its directory while it is under way.
//!
//! The file is replaced now and then, is whole whenever it is read, and is gone when the run is over: it is no
//! result. It is not synced, since after a crash of the machine nothing is under way.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::unfinished::Unfinished;

/// Its name in the directory of the run.
pub const PROGRESS: &str = "progress.json";

/// How often it is written (our choice): as often as people look at a bar, and too rarely to be measured.
pub const PERIOD: Duration = Duration::from_secs(1);

/// How far a run has come.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Underway {
    /// What the run's fabric is called.
    pub label: String,
    /// Measured flows that have ended.
    pub ended: u64,
    /// Measured flows in all, where known.
    pub total: Option<u64>,
    /// Simulated time, in seconds.
    pub simulated_seconds: f64,
    /// Time since the run began, in seconds of the machine's clock.
    pub wall_seconds: f64,
}

/// The file while the run is under way; dropping this removes it.
#[derive(Debug)]
pub struct ProgressFile {
    directory: PathBuf,
    label: String,
    began: Instant,
    written: Instant,
    noted: Option<Unfinished>,
}

impl ProgressFile {
    /// Of the run that is called `label`, in `directory`. Nothing is written before [`PERIOD`] is over: short runs
    /// leave no trace. A file that a killed run has left is removed: who writes here has the directory alone.
    #[must_use]
    pub fn new(directory: &Path, label: &str) -> Self {
        let _ = fs::remove_file(directory.join(PROGRESS));
        let now = Instant::now();
        let (directory, label) = (directory.to_path_buf(), label.to_string());
        Self { directory, label, began: now, written: now, noted: None }
    }

    /// The run has come this far: ended flows, flows in all, simulated seconds. A file that cannot be written is
    /// done without, since the run does not need it.
    pub fn update(&mut self, ended: u64, total: Option<u64>, simulated_seconds: f64) {
        if self.written.elapsed() < PERIOD {
            return;
        }
        self.written = Instant::now();
        let wall_seconds = self.began.elapsed().as_secs_f64();
        let label = self.label.clone();
        let now = Underway { label, ended, total, simulated_seconds, wall_seconds };
        let _ = self.write(&now);
    }

    fn write(&mut self, now: &Underway) -> io::Result<()> {
        let target = self.directory.join(PROGRESS);
        // As files in the making are called, so that one that is left behind is removed with the others.
        let partial = self.directory.join(format!(".{PROGRESS}.now.partial"));
        let text = serde_json::to_string(now).map_err(io::Error::other)?;
        let place = || {
            fs::write(&partial, text)?;
            fs::rename(&partial, &target)?;
            Ok(((), target.clone()))
        };
        match self.noted {
            Some(_) => place().map(drop),
            None => Unfinished::make(place).map(|((), noted)| self.noted = Some(noted)),
        }
    }
}

impl Drop for ProgressFile {
    fn drop(&mut self) {
        if let Some(noted) = &self.noted {
            let _ = fs::remove_file(noted.path());
        }
    }
}

/// What the run in `directory` has last said of itself, and how long ago; `None`: none is under way, or it has
/// said nothing yet.
#[must_use]
pub fn progress_of(directory: &Path) -> Option<(Underway, Duration)> {
    let path = directory.join(PROGRESS);
    let age = fs::metadata(&path).ok()?.modified().ok()?.elapsed().unwrap_or_default();
    let text = fs::read_to_string(&path).ok()?;
    serde_json::from_str(&text).ok().map(|underway| (underway, age))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_run_writes_nothing_and_a_longer_one_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let mut file = ProgressFile::new(place.path(), "Shoal");
        file.update(1, Some(10), 1e-6);
        assert_eq!(progress_of(place.path()), None);
        file.written -= PERIOD;
        file.update(2, Some(10), 2e-6);
        let (underway, _) = progress_of(place.path()).unwrap();
        assert_eq!((underway.ended, underway.total), (2, Some(10)));
        assert_eq!((underway.label.as_str(), underway.simulated_seconds), ("Shoal", 2e-6));
        file.written -= PERIOD;
        file.update(3, None, 3e-6);
        assert_eq!(progress_of(place.path()).unwrap().0.total, None);
        drop(file);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_that_is_gone_stops_nobody() {
        let place = tempfile::tempdir().unwrap();
        let mut file = ProgressFile::new(&place.path().join("gone"), "Shoal");
        file.written -= PERIOD;
        file.update(1, None, 0.0);
        assert_eq!(progress_of(&place.path().join("gone")), None);
    }
}
