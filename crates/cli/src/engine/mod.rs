//! Carries out scenarios and keeps what comes of it.

pub mod boot;
mod budget;
mod busy;
mod checksums;
pub mod cluster;
mod compare;
pub mod estimate;
mod failure;
mod guard;
mod here;
mod keys;
mod machine;
mod place;
pub mod record;
mod run;
pub mod search;
pub mod sweep;

pub use budget::{Budget, Share};
pub use busy::{Busy, Standing, standing};
pub use compare::{Compared, compare};
pub use failure::{EXIT_BROKEN, EXIT_INPUT, EXIT_INTERRUPTED, Failure};
pub use guard::{Panic, caught, guarded};
pub use machine::{memory_available, registry};
pub(crate) use place::Place;
pub use run::{FLOWS, Finished, TRACE, measure, run};

use std::path::PathBuf;

use kernel::Bytes;
use scenario::Scenario;

/// Where results go if nobody says: below the working directory.
const RESULTS: &str = "results";

/// The results directory of a scenario if nobody names one: `results/NAME-HASH`.
#[must_use]
pub fn default_directory(scenario: &Scenario) -> PathBuf {
    PathBuf::from(RESULTS).join(format!("{}-{}", scenario.name, scenario.hash()))
}

/// Longest file name made of a label; file systems take 255 bytes, and a number may follow.
const SLUG_MAX: usize = 80;

/// A label as a file name: letters and digits stay, the rest becomes `-`.
pub fn slug(label: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
    let text = label.chars().map(|c| if fits(c) { c } else { '-' });
    let text: String = text.take(SLUG_MAX).collect();
    let text = text.trim_matches(['-', '.']);
    if text.is_empty() { "fabric".into() } else { text.into() }
}

/// The most memory this process has held at once; zero where the system does not tell.
#[must_use]
pub fn peak_rss() -> Bytes {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    Bytes::new(kibibytes.unwrap_or(0) * 1024)
}
