//! Carries out scenarios and keeps what comes of it.

mod compare;
mod failure;
mod place;
mod run;
pub mod sweep;

pub use compare::{Compared, compare};
pub use failure::{EXIT_BROKEN, EXIT_INPUT, EXIT_INTERRUPTED, Failure};
pub(crate) use place::Place;
pub use run::{Finished, measure, run};

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

/// A label as a file name: letters and digits stay, the rest becomes `-`.
fn slug(label: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
    let text: String = label.chars().map(|c| if fits(c) { c } else { '-' }).collect();
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
