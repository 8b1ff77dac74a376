//! A results directory that leaves no trace if nothing came of the run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use report::{FileError, ResultsDir};

use super::Failure;

/// A results directory in use. Unless kept, the directories made for it vanish again if empty.
pub struct Place {
    directory: ResultsDir,
    /// Made by us, innermost first.
    made: Vec<PathBuf>,
}

impl Place {
    /// Makes the directory and those above it.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        let missing = path.ancestors().take_while(|p| !p.as_os_str().is_empty() && !p.exists());
        let made = missing.map(Path::to_path_buf).collect();
        // Held already while the directory is tried: a refusal must leave no trace either.
        let guard = Guard(made);
        let directory = ResultsDir::create(path).map_err(Failure::Place)?;
        Ok(Self { directory, made: guard.release() })
    }

    /// The directory.
    pub fn directory(&self) -> &ResultsDir {
        &self.directory
    }

    /// Removes the summary of an earlier run, if there is one.
    pub fn forget_summary(&self) -> Result<(), Failure> {
        let path = self.directory.file("summary.json");
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(FileError::Other { path: path.display().to_string(), source }.into())
            }
            _ => Ok(()),
        }
    }

    /// Results are in it: it stays.
    pub fn keep(mut self) {
        self.made.clear();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        remove_empty(&self.made);
    }
}

/// Directories to remove unless released.
struct Guard(Vec<PathBuf>);

impl Guard {
    fn release(mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.0)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        remove_empty(&self.0);
    }
}

/// Removes directories, innermost first, up to the first that holds something.
fn remove_empty(directories: &[PathBuf]) {
    for directory in directories {
        // Not empty, or gone already: then it is not ours to remove.
        if fs::remove_dir(directory).is_err() && directory.exists() {
            return;
        }
    }
}
