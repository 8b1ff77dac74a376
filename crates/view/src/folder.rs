//! The directory that is looked at: what lies in it, and nothing outside it.

use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use report::summary;
use report::underway::{Underway, progress_of};
use serde::Serialize;
use serde_json::Value;

use crate::refusal::Refusal;

/// How deep results are looked for: a point of a sweep below a folder of one's own lies four deep. Our choice.
const DEPTH_MAX: usize = 8;
/// Directories that are looked at; more are left out, and the page says so. Our choice.
const DIRECTORIES_MAX: usize = 50_000;
/// A run that has said nothing for so long was killed, or its machine sleeps. It speaks once a second. Our choice.
const SILENCE: Duration = Duration::from_secs(15);

/// A results directory.
pub struct Folder {
    /// Without links and dots in it.
    root: PathBuf,
    /// As the user called it.
    shown: String,
    /// What summaries say, by their place, with the instant at which they were written.
    known: Mutex<HashMap<PathBuf, (SystemTime, Known)>>,
}

/// What a summary says for the list.
#[derive(Clone, Debug)]
struct Known {
    kind: Kind,
    name: String,
    note: String,
}

/// What lies in a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Results of one run.
    Run,
    /// The same flows through several fabrics.
    Comparison,
    /// A grid.
    Sweep,
    /// A search.
    Search,
    /// Experiments of a paper: a page of claims.
    Reproduction,
    /// A run that has not ended.
    Underway,
    /// Files without a summary: of a run that was killed, or is just beginning or ending.
    Partial,
}

/// A line of the list.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// Below the directory, with `/`; `.` is the directory itself.
    pub path: String,
    /// What lies there.
    pub kind: Kind,
    /// What it is called.
    pub name: String,
    /// More in a few words.
    pub note: String,
    /// The comparison, sweep or search that it is part of, by its path.
    pub part_of: Option<String>,
    /// When it was written, in seconds since 1970.
    pub modified: u64,
    /// How far it has come, if it is under way.
    pub progress: Option<Underway>,
}

/// All there is.
#[derive(Clone, Debug, Serialize)]
pub struct Listing {
    /// The directory, as the user called it.
    pub directory: String,
    /// By path.
    pub entries: Vec<Entry>,
    /// Whether there is more than was looked at.
    pub is_cut: bool,
}

impl Folder {
    /// The directory at `path`.
    ///
    /// # Errors
    /// When there is none, or no results are in it; in words that go behind its name.
    pub fn open(path: &Path) -> Result<Self, Refusal> {
        let shown = path.display().to_string();
        let what = "`rackloom run FILE` makes results, `rackloom view DIR` shows those of another directory";
        let root =
            fs::canonicalize(path).map_err(|error| Refusal::missing(format!("{error}; {what}")))?;
        if !root.is_dir() {
            return Err(Refusal::missing("is a file; expected a directory with results"));
        }
        let folder = Self { root, shown, known: Mutex::default() };
        match folder.list().entries.is_empty() {
            true => {
                let found = "holds no results of a run, comparison, sweep, search or reproduction";
                Err(Refusal::missing(format!("{found}; {what}")))
            }
            false => Ok(folder),
        }
    }

    /// As the user called it.
    #[must_use]
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// A directory or file below the root by the path that a request gives; links lead no further than the root, either.
    ///
    /// # Errors
    /// When there is no such thing, or it lies outside.
    pub fn place(&self, path: &str) -> Result<PathBuf, Refusal> {
        let outside = || Refusal::forbidden(format!("{path}: lies outside of {}", self.shown));
        let asked = Path::new(path);
        let is_below =
            |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !asked.components().all(is_below) || path.contains(['\\', '\0']) {
            return Err(outside());
        }
        let missing = |error| Refusal::missing(format!("{path}: {error}"));
        let found = fs::canonicalize(self.root.join(asked)).map_err(missing)?;
        match found.starts_with(&self.root) {
            true => Ok(found),
            false => Err(outside()),
        }
    }

    /// How a place below the root is called for people who type commands.
    #[must_use]
    pub fn typed(&self, path: &str) -> PathBuf {
        if path == "." { PathBuf::from(&self.shown) } else { Path::new(&self.shown).join(path) }
    }

    /// All that lies in the directory now. What vanishes meanwhile is left out.
    #[must_use]
    pub fn list(&self) -> Listing {
        let mut entries = Vec::new();
        let mut left = DIRECTORIES_MAX;
        self.walk(&self.root, (0, None), &mut entries, &mut left);
        // What lies in a directory follows it at once: `a`, `a/b`, `a-b`.
        entries.sort_by(|a: &Entry, b| a.path.split('/').cmp(b.path.split('/')));
        Listing { directory: self.shown.clone(), entries, is_cut: left == 0 }
    }

    fn walk(
        &self,
        directory: &Path,
        (depth, part_of): (usize, Option<&str>),
        entries: &mut Vec<Entry>,
        left: &mut usize,
    ) {
        if *left == 0 || depth > DEPTH_MAX {
            return;
        }
        *left -= 1;
        let Ok(found) = fs::read_dir(directory) else { return };
        let (mut names, mut below) = (Vec::new(), Vec::new());
        for entry in found.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            // Links are not followed: they could lead around in circles.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !name.starts_with('.') => below.push(entry.path()),
                Ok(kind) if kind.is_file() => names.push(name),
                _ => {}
            }
        }
        let entry = self.entry(directory, &names, part_of);
        let group = entry.as_ref().filter(|entry| entry.kind.is_group());
        let group = group.map(|entry| entry.path.clone());
        entries.extend(entry);
        below.sort();
        for path in below {
            self.walk(&path, (depth + 1, group.as_deref().or(part_of)), entries, left);
        }
    }

    /// What lies in `directory` itself, if anything of ours.
    fn entry(&self, directory: &Path, names: &[String], part_of: Option<&str>) -> Option<Entry> {
        let has = |name: &str| names.iter().any(|one| one == name);
        let path = directory.strip_prefix(&self.root).ok()?;
        let path = path.components().map(|part| part.as_os_str().to_string_lossy());
        let path = path.collect::<Vec<_>>().join("/");
        let path = if path.is_empty() { ".".to_string() } else { path };
        let called = directory.file_name().map(|name| name.to_string_lossy().into_owned());
        let called = called.unwrap_or_else(|| self.shown.clone());
        let make = |known: Known, file: &str, progress| {
            let Known { kind, name, note } = known;
            let modified = fs::metadata(directory.join(file)).and_then(|file| file.modified());
            let modified = modified.ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            let modified = modified.map_or(0, |since| since.as_secs());
            let part_of = part_of.map(str::to_string);
            Some(Entry { path: path.clone(), kind, name, note, part_of, modified, progress })
        };
        let plain = |kind, note: &str| Known { kind, name: called.clone(), note: note.into() };
        if let Some((progress, _)) = progress_of(directory).filter(|(_, age)| *age < SILENCE) {
            let note = progress.label.clone();
            return make(plain(Kind::Underway, &note), "progress.json", Some(progress));
        }
        for (file, kind) in [("sweep.json", Kind::Sweep), ("search.json", Kind::Search)] {
            if has(file) {
                return make(plain(kind, ""), file, None);
            }
        }
        if has("claims.json") {
            return make(plain(Kind::Reproduction, ""), "claims.json", None);
        }
        if has("summary.json") {
            let known = self.known(directory).unwrap_or_else(|| {
                plain(Kind::Partial, "its summary.json is none that this version reads")
            });
            return make(Known { name: called.clone(), ..known }, "summary.json", None);
        }
        let lock = ".rackloom.lock";
        let is_partial = has("flows.parquet") || has(lock);
        let file = if has(lock) { lock } else { "flows.parquet" };
        let note = "not complete: still being written, or of a run that was killed";
        if is_partial { make(plain(Kind::Partial, note), file, None) } else { None }
    }

    /// What the summary in `directory` says; read again only if it was written again.
    fn known(&self, directory: &Path) -> Option<Known> {
        let path = directory.join("summary.json");
        let written = fs::metadata(&path).and_then(|file| file.modified()).ok()?;
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = all.get(&path).filter(|(at, _)| *at == written) {
            return Some(known.clone());
        }
        let known = summarised(&serde_json::from_str(&fs::read_to_string(&path).ok()?).ok()?)?;
        all.insert(path, (written, known.clone()));
        Some(known)
    }
}

impl Kind {
    /// Whether it has runs of its own below.
    fn is_group(self) -> bool {
        matches!(self, Self::Comparison | Self::Sweep | Self::Search | Self::Reproduction)
    }
}

/// What a summary says for the list.
fn summarised(summary: &Value) -> Option<Known> {
    match summary {
        Value::Array(runs) => {
            let labels = runs.iter().filter_map(|run| run["label"].as_str());
            let note = labels.collect::<Vec<_>>().join(", ");
            Some(Known { kind: Kind::Comparison, name: String::new(), note })
        }
        Value::Object(_) => {
            let text = |key: &str| summary::cell(summary, key).map(|cell| cell.text);
            let label = summary["label"].as_str().unwrap_or_default().to_string();
            let parts = [
                Some(label),
                text("flows.measured").map(|count| format!("{count} flows")),
                text("slowdown.all.p99").map(|value| format!("slowdown 99% {value}")),
            ];
            let note = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
            Some(Known { kind: Kind::Run, name: String::new(), note })
        }
        _ => None,
    }
}
