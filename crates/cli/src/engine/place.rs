//! A results directory that one run has alone, and that is removed if the run has no results.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

use report::unfinished::Unfinished;
use report::{FileError, ResultsDir};

use super::Failure;

/// Held locked while the directory is in use; it says nothing, and is gone afterwards. A killed process
/// leaves the file and not the lock, so nobody is kept waiting by it.
const LOCK: &str = ".rackloom.lock";

/// A results directory in use, by nobody else. Unless kept, the directories made for it vanish again if
/// empty.
pub struct Place {
    directory: ResultsDir,
    lock: Option<Lock>,
    /// Made by us, innermost last.
    made: Vec<Unfinished>,
}

/// The lock of a directory. Gone when dropped.
struct Lock {
    noted: Unfinished,
    /// Closing it gives the lock back.
    _file: File,
}

impl Place {
    /// Makes the directory and those above it, takes it, and removes what a killed run left in it half
    /// made.
    ///
    /// # Errors
    /// When it cannot be made or written to, or another run has it.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        // Held already while the directory is tried: a refusal must leave no trace either.
        let made = Made(make_directories(path).map_err(Failure::Place)?);
        let directory = ResultsDir::create(path).map_err(Failure::Place)?;
        let lock = Lock::take(path).map_err(Failure::Place)?;
        directory.remove_partial().map_err(Failure::Place)?;
        Ok(Self { directory, lock: Some(lock), made: made.release() })
    }

    /// The directory.
    pub fn directory(&self) -> &ResultsDir {
        &self.directory
    }

    /// Removes what vouches for the results of an earlier run, if there is any.
    pub fn forget_summary(&self) -> Result<(), Failure> {
        // The summary vouches for all, so it goes last: who sees none finds no checksums either.
        for name in [super::checksums::NAME, "summary.json"] {
            let path = self.directory.file(name);
            match fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(FileError::new(&path, source).into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Results are in it: it stays.
    pub fn keep(mut self) {
        self.made.clear();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.lock.take());
        remove_empty(&mut self.made);
    }
}

impl Lock {
    fn take(directory: &Path) -> Result<Self, FileError> {
        let path = directory.join(LOCK);
        let error = |source| FileError::new(&path, source);
        loop {
            let open = || {
                let file = File::options().create(true).append(true).open(&path)?;
                Ok((file, path.clone()))
            };
            let (file, noted) = Unfinished::make(open).map_err(error)?;
            match file.try_lock() {
                Ok(()) => {}
                // Some network file systems know no locks: there, nothing is promised.
                Err(TryLockError::Error(source)) if source.kind() == io::ErrorKind::Unsupported => {
                }
                Err(TryLockError::Error(source)) => return Err(error(source)),
                Err(TryLockError::WouldBlock) => {
                    return Err(FileError::InUse { path: directory.display().to_string() });
                }
            }
            // Whoever had it may have removed the file between our opening and our locking it.
            if is_at(&file, &path) {
                return Ok(Self { noted, _file: file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while it is still held: the next one opens a file of its own.
        let _ = fs::remove_file(self.noted.path());
    }
}

/// Whether `file` is the one that stands at `path`.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let of = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let (opened, found) = (file.metadata().map(of), fs::metadata(path).map(of));
    matches!((opened, found), (Ok(opened), Ok(found)) if opened == found)
}

/// Elsewhere an open file cannot be removed.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

/// Directories to remove unless released.
struct Made(Vec<Unfinished>);

impl Made {
    fn release(mut self) -> Vec<Unfinished> {
        std::mem::take(&mut self.0)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        remove_empty(&mut self.0);
    }
}

/// Makes what is missing of `path`, the outermost first; what could be made of it.
fn make_directories(path: &Path) -> Result<Vec<Unfinished>, FileError> {
    let missing = path.ancestors().take_while(|p| !p.as_os_str().is_empty() && !p.exists());
    let missing: Vec<_> = missing.collect();
    let mut made = Made(Vec::new());
    for directory in missing.into_iter().rev() {
        match Unfinished::make(|| Ok((fs::create_dir(directory)?, directory.to_path_buf()))) {
            Ok(((), noted)) => made.0.push(noted),
            // Somebody else was faster.
            Err(source) if source.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(FileError::new(directory, source)),
        }
    }
    Ok(made.release())
}

/// Removes directories, innermost first, up to the first that holds something.
fn remove_empty(directories: &mut Vec<Unfinished>) {
    while let Some(directory) = directories.pop() {
        let path = directory.path();
        // Not empty, or gone already: then it is not ours to remove.
        if fs::remove_dir(path).is_err() && path.exists() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_directory_has_one_user_at_a_time_and_keeps_no_trace_of_it() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b");
        let first = Place::create(&path).unwrap();
        let refused = Place::create(&path).map(drop).unwrap_err();
        assert_eq!(refused.exit_code(), 2);
        assert!(refused.to_string().contains("another run is writing"), "{refused}");
        assert!(path.exists(), "the refusal removed what is in use");
        drop(first);
        assert!(names(root.path()).is_empty());
        let place = Place::create(&path).unwrap();
        place.keep();
        assert!(path.exists() && names(&path).is_empty());
        drop(Place::create(&path).unwrap());
        assert!(path.exists(), "it was there before");
    }

    #[test]
    fn the_lock_file_and_the_partial_files_of_a_killed_run_keep_nobody_out() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join(LOCK), b"").unwrap();
        fs::write(root.path().join(".flows.parquet.x1.partial"), b"half").unwrap();
        drop(Place::create(root.path()).unwrap());
        assert!(names(root.path()).is_empty());
    }

    #[test]
    fn of_many_who_come_at_once_one_has_it_at_a_time() {
        let root = tempfile::tempdir().unwrap();
        let inside = std::sync::atomic::AtomicUsize::new(0);
        let had = std::sync::atomic::AtomicUsize::new(0);
        let relaxed = std::sync::atomic::Ordering::SeqCst;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let Ok(place) = Place::create(&root.path().join("r")) else { continue };
                        assert_eq!(inside.fetch_add(1, relaxed), 0, "two have it");
                        had.fetch_add(1, relaxed);
                        inside.fetch_sub(1, relaxed);
                        drop(place);
                    }
                });
            }
        });
        assert!(had.into_inner() > 0);
    }
}
