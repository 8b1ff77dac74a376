//! Files that are whole or absent: written under another name, synced, then renamed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::NamedTempFile;

use crate::unfinished::Unfinished;

/// Why a result could not be stored.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A file stands where the directory should be.
    #[error("{path}: is a file, not a directory; choose another place for the results")]
    NotADirectory {
        /// The file.
        path: String,
    },
    /// Another run has it.
    #[error(
        "{path}: another run is writing its results here; wait for it to end, or choose another place"
    )]
    InUse {
        /// The directory.
        path: String,
    },
    /// The user may not write there.
    #[error("{path}: no permission to write; choose another place for the results")]
    Unwritable {
        /// The file or directory.
        path: String,
    },
    /// The disk, or the user's part of it, is full.
    #[error("{path}: no space left; free some, or choose another place for the results")]
    Full {
        /// The file that did not fit.
        path: String,
    },
    /// Anything else.
    #[error("{path}: {source}")]
    Other {
        /// The file or directory.
        path: String,
        /// What the system, or the encoder, said.
        source: io::Error,
    },
}

impl FileError {
    /// What `source` means for `path`.
    #[must_use]
    pub fn new(path: &Path, source: io::Error) -> Self {
        let path = path.display().to_string();
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::Unwritable { path }
            }
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::Full { path },
            io::ErrorKind::NotADirectory => Self::NotADirectory { path },
            _ => Self::Other { path, source },
        }
    }
}

/// A file in the making. Dropped before [`AtomicFile::finish`], it leaves nothing behind.
pub(crate) struct AtomicFile {
    target: PathBuf,
    writing: Writing,
}

/// Where the bytes of a file in the making go.
enum Writing {
    /// To a file beside it, which takes its name at the end.
    Beside {
        temporary: NamedTempFile,
        /// Forgotten last.
        _noted: Unfinished,
    },
    /// To what stands there: a device, a pipe or `/dev/stdout`, which no file may replace.
    Straight(File),
}

/// Files in the making are called `.NAME.RANDOM.partial`.
const PARTIAL: &str = ".partial";

impl AtomicFile {
    /// Begins `target`: a hidden file beside it, so that the rename stays on one file system.
    pub(crate) fn create(target: &Path) -> Result<Self, FileError> {
        let error = |source| FileError::new(target, source);
        if is_stream(target) {
            let file = File::options().append(true).open(target).map_err(error)?;
            return Ok(Self { target: target.to_path_buf(), writing: Writing::Straight(file) });
        }
        let name = target
            .file_name()
            .ok_or_else(|| error(io::Error::new(io::ErrorKind::InvalidInput, "not a file name")))?;
        let mut builder = tempfile::Builder::new();
        let prefix = format!(".{}.", name.to_string_lossy());
        builder.prefix(&prefix).suffix(PARTIAL);
        // Results are for colleagues too: the user's mask decides, not the private default.
        #[cfg(unix)]
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        #[cfg(unix)]
        builder.permissions(permissions);
        let make = || {
            let temporary = builder.tempfile_in(directory_of(target))?;
            let path = temporary.path().to_path_buf();
            Ok((temporary, path))
        };
        let (temporary, noted) = Unfinished::make(make).map_err(error)?;
        let writing = Writing::Beside { temporary, _noted: noted };
        Ok(Self { target: target.to_path_buf(), writing })
    }

    fn file(&self) -> &File {
        match &self.writing {
            Writing::Beside { temporary, .. } => temporary.as_file(),
            Writing::Straight(file) => file,
        }
    }

    fn write(&self, bytes: &[u8]) -> Result<(), FileError> {
        self.file().write_all(bytes).map_err(|source| FileError::new(&self.target, source))
    }

    /// Another handle to write through, for a writer that wants to own one.
    pub(crate) fn handle(&self) -> Result<File, FileError> {
        self.file().try_clone().map_err(|e| FileError::new(&self.target, e))
    }

    /// Makes the bytes last, then shows them under the final name.
    pub(crate) fn finish(self) -> Result<(), FileError> {
        let Self { target, writing } = self;
        let Writing::Beside { temporary, _noted } = writing else { return Ok(()) };
        let error = |source| FileError::new(&target, source);
        temporary.as_file().sync_all().map_err(error)?;
        temporary.persist(&target).map_err(|e| error(e.error))?;
        sync_directory(directory_of(&target)).map_err(error)
    }
}

/// Whether what stands at `target` takes bytes as they come: a device or a pipe, or a file that is
/// reached as one that the process has open, as `/dev/stdout` is.
fn is_stream(target: &Path) -> bool {
    let Ok(found) = fs::metadata(target) else { return false };
    let is_system = |path: &Path| path.starts_with("/proc");
    let is_open_file = || {
        fs::read_link(target).is_ok_and(|path| is_system(&path))
            || fs::canonicalize(directory_of(target)).is_ok_and(|place| is_system(&place))
    };
    !found.is_dir() && (!found.is_file() || is_open_file())
}

/// Without this a crash could forget the new name though the bytes are safe.
fn sync_directory(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

/// The directory that holds `path`; never the empty path, which no call accepts.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Writes `bytes` to `path` so that the file is, at every instant, the old one or the new one.
///
/// # Errors
/// When it cannot be written; what stood there stands unchanged. A device or a pipe is written to as it is.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let file = AtomicFile::create(path)?;
    file.write(bytes)?;
    file.finish()
}

/// Writes `value` as indented JSON with a newline at its end, keys in the order given.
///
/// # Errors
/// As [`write_atomically`].
pub fn write_json(path: &Path, value: &Value) -> Result<(), FileError> {
    write_atomically(path, format!("{value:#}\n").as_bytes())
}

/// The files that are written into results directories.
const OURS: [&str; 19] = [
    "SHA256SUMS",
    "claims.json",
    "flows.parquet",
    "links.parquet",
    "means.csv",
    "means.parquet",
    "measured.json",
    "plotly-basic.min.js",
    "progress.json",
    "proof",
    "report.html",
    "scenario.toml",
    "series.parquet",
    "summary.json",
    "sweep.csv",
    "sweep.json",
    "sweep.parquet",
    "tins.parquet",
    "trace.parquet",
];

/// A directory that takes the files of one run or one comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResultsDir {
    path: PathBuf,
}

impl ResultsDir {
    /// Makes the directory, with those above it, unless it exists, and proves that it can be written
    /// to: a long run should not learn that at its end.
    ///
    /// # Errors
    /// When it cannot be made or written to.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, FileError> {
        let path = path.into();
        if path.exists() && !path.is_dir() {
            return Err(FileError::NotADirectory { path: path.display().to_string() });
        }
        let error = |source| FileError::new(&path, source);
        fs::create_dir_all(&path).map_err(error)?;
        let in_it = |failure: FileError| match failure {
            FileError::Other { source, .. } => error(source),
            FileError::Unwritable { .. } => {
                FileError::Unwritable { path: path.display().to_string() }
            }
            FileError::Full { .. } => FileError::Full { path: path.display().to_string() },
            other => other,
        };
        let proof = AtomicFile::create(&path.join("proof")).map_err(in_it)?;
        let proved = proof.file().write_all(b"rackloom");
        proved.and_then(|()| proof.file().sync_all()).map_err(error)?;
        drop(proof);
        Ok(Self { path })
    }

    /// Removes what a killed run left in the making here. For who has the directory alone.
    ///
    /// # Errors
    /// When the directory cannot be read, or a file not be removed.
    pub fn remove_partial(&self) -> Result<(), FileError> {
        let error = |source| FileError::new(&self.path, source);
        for entry in fs::read_dir(&self.path).map_err(error)? {
            let entry = entry.map_err(error)?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_ours = name.strip_suffix(PARTIAL).and_then(|name| name.strip_prefix('.'));
            // `.NAME.RANDOM`: a file of that shape and a name that we write.
            let is_ours = is_ours.and_then(|name| name.rsplit_once('.'));
            if is_ours.is_some_and(|(name, _)| OURS.contains(&name)) {
                fs::remove_file(entry.path()).map_err(|e| FileError::new(&entry.path(), e))?;
            }
        }
        Ok(())
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in it.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a text file into it, whole or not at all.
    ///
    /// # Errors
    /// As [`write_atomically`].
    pub fn write(&self, name: &str, text: &str) -> Result<(), FileError> {
        write_atomically(&self.file(name), text.as_bytes())
    }

    /// Writes a JSON file into it, whole or not at all: `summary.json`.
    ///
    /// # Errors
    /// As [`write_atomically`].
    pub fn write_json(&self, name: &str, value: &Value) -> Result<(), FileError> {
        write_json(&self.file(name), value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn names(path: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_replaces_the_old_one_and_leaves_nothing_beside_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("summary.json");
        write_json(&path, &json!({"z": 1, "a": [1.5]})).unwrap();
        write_json(&path, &json!({"z": 2, "a": {"b": 1e-9}})).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, "{\n  \"z\": 2,\n  \"a\": {\n    \"b\": 1e-9\n  }\n}\n");
        assert_eq!(names(place.path()), ["summary.json"]);
    }

    #[test]
    fn an_unfinished_file_vanishes_and_the_old_one_stands() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("flows.parquet");
        write_atomically(&path, b"old").unwrap();
        let file = AtomicFile::create(&path).unwrap();
        file.handle().unwrap().write_all(b"half").unwrap();
        assert_eq!(names(place.path()).len(), 2);
        drop(file);
        assert_eq!(names(place.path()), ["flows.parquet"]);
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_takes_the_bytes_and_stays_a_pipe() {
        use std::os::unix::fs::FileTypeExt;
        let place = tempfile::tempdir().unwrap();
        let pipe = place.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let reader = {
            let pipe = pipe.clone();
            std::thread::spawn(move || fs::read_to_string(pipe).unwrap())
        };
        write_atomically(&pipe, b"bytes").unwrap();
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        assert_eq!(reader.join().unwrap(), "bytes");
        assert_eq!(names(place.path()), ["pipe"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_is_open_is_written_to_through_the_name_of_its_descriptor() {
        use std::os::fd::AsRawFd;
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("output");
        fs::write(&path, b"before ").unwrap();
        let file = File::open(&path).unwrap();
        let name = format!("/proc/self/fd/{}", file.as_raw_fd());
        write_atomically(Path::new(&name), b"after").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"before after");
        // As /dev/stdout is a name of such a name.
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&name, &link).unwrap();
        write_atomically(&link, b" all").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"before after all");
        // Any other link is replaced, as any other file.
        let other = place.path().join("other");
        std::os::unix::fs::symlink(&path, &other).unwrap();
        write_atomically(&other, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"before after all");
        assert_eq!(fs::read(&other).unwrap(), b"new");
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_what_is_not_ours_stays() {
        let place = tempfile::tempdir().unwrap();
        let results = ResultsDir::create(place.path().join("r")).unwrap();
        let stale = [".flows.parquet.aB3x9.partial", ".summary.json.Qq1.partial"];
        let foreign =
            ["notes.txt", ".notes.txt.aB3.partial", "flows.parquet", ".partial", "x.partial"];
        for name in stale.iter().chain(&foreign) {
            fs::write(results.file(name), b"").unwrap();
        }
        results.remove_partial().unwrap();
        let mut expected = foreign.map(String::from);
        expected.sort();
        assert_eq!(names(results.path()), expected);
    }

    #[cfg(unix)]
    #[test]
    fn results_are_as_readable_as_the_mask_allows() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        let (ours, plain) = (place.path().join("ours"), place.path().join("plain"));
        write_atomically(&ours, b"").unwrap();
        fs::write(&plain, b"").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&plain));
    }

    #[test]
    fn a_results_directory_is_made_with_those_above_it() {
        let place = tempfile::tempdir().unwrap();
        let results = ResultsDir::create(place.path().join("a/b")).unwrap();
        results.write("scenario.toml", "seed = 1\n").unwrap();
        assert_eq!(names(results.path()), ["scenario.toml"]);
        assert_eq!(ResultsDir::create(results.path()).unwrap(), results);
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("results");
        fs::write(&file, b"").unwrap();
        for path in [file.clone(), file.join("below")] {
            let error = ResultsDir::create(&path).unwrap_err();
            assert!(matches!(error, FileError::NotADirectory { .. }), "{error}");
            assert!(
                error.to_string().contains("results: is a file")
                    || error.to_string().contains("below: is a file"),
                "{error}"
            );
        }
    }

    #[test]
    fn the_system_s_refusals_become_advice() {
        let path = Path::new("results/x");
        for (kind, words) in [
            (io::ErrorKind::PermissionDenied, "no permission to write"),
            (io::ErrorKind::ReadOnlyFilesystem, "no permission to write"),
            (io::ErrorKind::StorageFull, "no space left"),
            (io::ErrorKind::QuotaExceeded, "no space left"),
        ] {
            let text = FileError::new(path, kind.into()).to_string();
            assert!(text.starts_with("results/x: ") && text.contains(words), "{text}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_directory_that_refuses_is_reported() {
        // The kernel's own directory refuses even root.
        let error = ResultsDir::create("/proc/rackloom").unwrap_err();
        assert!(error.to_string().starts_with("/proc/rackloom: "), "{error}");
    }
}
