//! What this process has begun on disk and not finished: so that it can end at any instant and leave
//! nothing behind.
//!
//! Files being written and directories made for them are noted before they exist and forgotten once
//! they are whole or gone. [`abandon`] removes what is noted; whoever calls it then ends the process.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Paths to remove, in the order in which they were made.
static NOTED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn noted() -> MutexGuard<'static, Vec<PathBuf>> {
    // A list of paths is whole whoever panicked while holding it.
    NOTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file or directory that vanishes if the process is told to end. Dropping this forgets it.
#[derive(Debug)]
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// Makes something on disk by `make`, which also says where it is.
    ///
    /// # Errors
    /// Those of `make`; nothing is noted then.
    pub fn make<T>(make: impl FnOnce() -> io::Result<(T, PathBuf)>) -> io::Result<(T, Self)> {
        // Held while it is made: what exists is noted, whenever the process ends.
        let mut noted = noted();
        let (made, path) = make()?;
        noted.push(path.clone());
        Ok((made, Self(path)))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let mut noted = noted();
        if let Some(index) = noted.iter().rposition(|path| *path == self.0) {
            noted.remove(index);
        }
    }
}

/// Removes all that is noted, the last first; directories only if nothing else is in them. Nothing can
/// be begun or finished afterwards: the process must end.
pub fn abandon() {
    let mut noted = noted();
    for path in noted.drain(..).rev() {
        // What cannot be removed stays; there is nobody left to act on it.
        let _ = if path.is_dir() { fs::remove_dir(&path) } else { fs::remove_file(&path) };
    }
    std::mem::forget(noted);
}
