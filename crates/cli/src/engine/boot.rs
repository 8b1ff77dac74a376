//! A bootstrap of Aquila and its files.

use std::path::Path;

use report::{Provenance, write_table};
use reproductions::aquila::boot::{Boot, Outcome};

use super::place::Place;
use super::{Busy, Failure, checksums, guarded};
use crate::VERSION;

/// The files in the order in which they are written; `SHA256SUMS` comes before the last.
const FILES: [&str; 3] = ["tins.parquet", "report.html", "summary.json"];

/// Boots what `run` boots, and stores what came of it in `directory`: `tins.parquet`, `report.html`, `SHA256SUMS` and, last,
/// `summary.json`, whose presence says that the others are whole.
///
/// # Errors
/// When the input, the directory or the run is bad; nothing is stored then.
pub fn store(
    boot: &Boot,
    directory: &Path,
    run: impl FnOnce(&Boot, &Busy) -> Result<Outcome, Failure>,
) -> Result<Outcome, Failure> {
    guarded(|| {
        let place = Place::create(directory)?;
        let busy = Busy::begin();
        let outcome = run(boot, &busy)?;
        place.forget_summary()?;
        let files = place.directory();
        let [rows, report, summary] = FILES;
        let command = command(boot);
        let origin = Provenance {
            version: VERSION.into(),
            scenario_hash: String::new(),
            seed: boot.seed,
            scenario: command.clone(),
        };
        write_table(&files.file(rows), &outcome.rows(), &origin)?;
        files.write(report, &outcome.page(&command).to_html())?;
        let text = format!("{:#}\n", outcome.summary(VERSION));
        checksums::write(files, &FILES[..2], (summary, text.as_bytes()))?;
        files.write(summary, &text)?;
        drop(busy);
        place.keep();
        Ok(outcome)
    })
}

/// What to type to obtain the same.
fn command(boot: &Boot) -> String {
    let mut command = format!("rackloom aquila bootstrap --profile {}", boot.profile);
    if let Some(connected) = boot.connected {
        command += &format!(" --connected {connected}");
    }
    if boot.targets != Boot::default().targets {
        command += &format!(" --targets {}", boot.targets);
    }
    command += &format!(
        " --mos-interval '{}' --entry-time '{}' --mos-lost {} --limit '{}' --seed {}",
        boot.mos_interval, boot.entry_time, boot.mos_lost, boot.limit, boot.seed
    );
    if boot.at_once != Boot::default().at_once {
        command += &format!(" --at-once {}", boot.at_once);
    }
    if boot.versions != Boot::default().versions {
        command += &format!(" --ip {}", boot.versions);
    }
    boot.faults.iter().for_each(|fault| command += &format!(" --fault '{fault}'"));
    command
}
