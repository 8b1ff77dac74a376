//! Runs that have ended, kept until their experiment has: one that was stopped goes on with the others.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use report::write_atomically;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The runs of one experiment, a file each, in a directory that nobody else has.
///
/// An experiment spreads its runs in the same order each time, so that the number of the list and the place in it
/// say which run it is. What another build has left counts as missing, and so does what cannot be read.
#[derive(Clone, Debug)]
pub struct KeptRuns {
    directory: PathBuf,
    /// What makes a run the same run: the build and the effort.
    build: String,
    lists: usize,
}

impl KeptRuns {
    /// Those in `directory`, which is made when the first run is kept.
    #[must_use]
    pub const fn new(directory: PathBuf, build: String) -> Self {
        Self { directory, build, lists: 0 }
    }

    /// The next list of runs.
    pub(crate) fn next_list(&mut self) -> KeptList {
        self.lists += 1;
        KeptList { runs: self.clone() }
    }

    /// Removes all of them: their experiment has ended, and what it measured is stored.
    pub fn forget(&self) {
        // What stays is of no harm: it is read again by this build alone, and is right.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// One list of an experiment's runs.
#[derive(Debug)]
pub(crate) struct KeptList {
    runs: KeptRuns,
}

impl KeptList {
    fn file(&self, index: usize) -> PathBuf {
        self.runs.directory.join(format!("{}-{index}.msgpack", self.runs.lists))
    }

    /// How long the run at `index` took and what it gave, if it is here.
    pub(crate) fn find<R: DeserializeOwned>(&self, index: usize) -> Option<(Duration, R)> {
        let bytes = fs::read(self.file(index)).ok()?;
        let (build, took, result): (String, f64, R) = rmp_serde::from_slice(&bytes).ok()?;
        let took = Duration::try_from_secs_f64(took).ok()?;
        (build == self.runs.build).then_some((took, result))
    }

    /// Keeps how long the run at `index` took, and what it gave.
    pub(crate) fn keep<R: Serialize>(&self, index: usize, took: Duration, result: &R) {
        // Where it cannot be written the run is not lost: it would only have to be made again after a stop.
        let kept = (&self.runs.build, took.as_secs_f64(), result);
        let Ok(bytes) = rmp_serde::to_vec(&kept) else { return };
        let made = fs::create_dir_all(&self.runs.directory);
        let _ = made.is_ok() && write_atomically(&self.file(index), &bytes).is_ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What runs give, as far as it is difficult: numbers that JSON does not have, and values of any kind.
    type Difficult = (Vec<f64>, serde_json::Value, Option<(u64, bool)>);

    fn runs(directory: &std::path::Path, build: &str) -> KeptList {
        KeptRuns::new(directory.join("runs"), build.into()).next_list()
    }

    #[test]
    fn what_is_kept_comes_back_to_the_bit_and_to_its_own_build_alone() {
        let place = tempfile::tempdir().unwrap();
        let values = vec![f64::NAN, f64::INFINITY, -0.0, 0.1 + 0.2, 5e-324];
        let table = serde_json::json!({"z": 1, "a": [0.1, null, "x", -3], "b": {"c": true}});
        let given: Difficult = (values, table, Some((u64::MAX, true)));
        let list = runs(place.path(), "1 full");
        assert!(list.find::<Difficult>(3).is_none());
        list.keep(3, Duration::from_millis(1_500), &given);
        let (took, found): (_, Difficult) = runs(place.path(), "1 full").find(3).unwrap();
        assert_eq!(took, Duration::from_millis(1_500));
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&found.0), bits(&given.0));
        assert_eq!(found.1.to_string(), given.1.to_string());
        assert_eq!(found.2, given.2);
        assert!(runs(place.path(), "2 full").find::<Difficult>(3).is_none());
        assert!(list.find::<Difficult>(2).is_none());
    }

    #[test]
    fn half_a_file_is_no_run() {
        let place = tempfile::tempdir().unwrap();
        let list = runs(place.path(), "1");
        list.keep(0, Duration::ZERO, &vec![1.5_f64; 100]);
        let bytes = fs::read(list.file(0)).unwrap();
        fs::write(list.file(0), &bytes[..bytes.len() / 2]).unwrap();
        assert!(list.find::<Vec<f64>>(0).is_none());
    }
}
