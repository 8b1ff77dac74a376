//! How far a run has come: a bar on a terminal, a line now and then elsewhere, nothing if quiet.

use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use rack::run::Progress;
use report::terminal::{printable, printable_line};

use crate::output::{Output, say};

/// Off a terminal a line is written each time another tenth is done, or, of what has no known end, this
/// often (our choice).
const LINE_EVERY: Duration = Duration::from_secs(10);
const LINES: u64 = 10;
/// Characters of a label that are shown; bars of several runs stand below each other.
const LABEL_MAX: usize = 24;

/// Shows how far something has come.
pub struct Meter {
    face: Face,
}

enum Face {
    None,
    Bar(ProgressBar),
    Lines { label: String, began: Instant, last: Instant, tenths: u64 },
}

/// How far something has come.
pub struct Step<'a> {
    /// How much is done.
    pub done: u64,
    /// Of how much, where that is known.
    pub total: Option<u64>,
    /// What is counted: `flows`. Empty: shares of something, which are no use as numbers.
    pub what: &'a str,
    /// More in a few words; may be empty.
    pub note: String,
}

impl Step<'_> {
    /// `6,400 of 40,000 flows, 1.2 ms simulated`.
    fn text(&self) -> String {
        let counted = match (self.what, self.total) {
            ("", _) => String::new(),
            (what, Some(total)) => format!("{} of {} {what}", grouped(self.done), grouped(total)),
            (what, None) => format!("{} {what}", grouped(self.done)),
        };
        let parts = [counted.as_str(), self.note.as_str()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }

    fn per_cent(&self) -> Option<u64> {
        self.total.map(|total| self.done.min(total).saturating_mul(100) / total.max(1))
    }
}

/// A number with its thousands set off.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A label as it stands before a bar.
fn shown(label: &str) -> String {
    let label = printable_line(label);
    if label.chars().count() <= LABEL_MAX {
        return label.into_owned();
    }
    label.chars().take(LABEL_MAX - 1).chain(['…']).collect()
}

impl Meter {
    /// A meter for what is called `label`.
    pub fn new(label: &str, output: &Output) -> Self {
        let bar = || ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        Self::with_bar(&shown(label), output, bar)
    }

    /// A meter that draws, on a terminal, the bar that `bar` makes.
    fn with_bar(label: &str, output: &Output, bar: impl FnOnce() -> ProgressBar) -> Self {
        let now = Instant::now();
        let face = if output.is_quiet() {
            Face::None
        } else if io::stderr().is_terminal() {
            let bar = bar();
            bar.set_prefix(label.to_string());
            // `wide_msg` is cut where the line ends, so a bar never takes two.
            bar.set_style(style("{prefix} {spinner} [{elapsed}] {wide_msg}"));
            Face::Bar(bar)
        } else {
            Face::Lines { label: label.into(), began: now, last: now, tenths: 0 }
        };
        Self { face }
    }

    /// It has come this far.
    pub fn update(&mut self, step: impl FnOnce() -> Step<'static>) {
        match &mut self.face {
            Face::None => {}
            Face::Bar(bar) => {
                let step = step();
                if let Some(total) = step.total {
                    if bar.length().is_none() {
                        let template =
                            "{prefix} [{bar:20}] {percent:>3} % [{elapsed}, {eta} left] {wide_msg}";
                        bar.set_style(style(template));
                    }
                    // It may grow: a sweep learns what it holds on the way.
                    bar.set_length(total.max(step.done));
                }
                bar.set_position(step.done);
                bar.set_message(step.text());
            }
            Face::Lines { label, began, last, tenths } => {
                let step = step();
                if let Some(line) = line(&step, tenths, last, *began) {
                    say(&format!("{label}: {line}"));
                }
            }
        }
    }

    /// A run has come this far.
    pub fn run(&mut self, progress: Progress) {
        self.update(|| run_step(progress));
    }

    /// A line beside the progress.
    pub fn say(&self, text: &str) {
        match &self.face {
            Face::None => {}
            Face::Bar(bar) => bar.println(printable(text)),
            Face::Lines { .. } => say(text),
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Face::Bar(bar) = &self.face {
            bar.finish_and_clear();
        }
    }
}

/// One meter for each of several runs at a time, below each other.
pub struct Meters {
    meters: Vec<Mutex<Meter>>,
}

impl Meters {
    /// A meter for each of `labels`.
    pub fn new(labels: &[String], output: &Output) -> Self {
        let board = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let width = labels.iter().map(|label| shown(label).chars().count()).max().unwrap_or(0);
        let meter = |label: &String| {
            let label = shown(label);
            let label = if io::stderr().is_terminal() { format!("{label:<width$}") } else { label };
            Mutex::new(Meter::with_bar(&label, output, || board.add(ProgressBar::no_length())))
        };
        Self { meters: labels.iter().map(meter).collect() }
    }

    /// Run number `index` has come this far.
    pub fn run(&self, index: usize, progress: Progress) {
        self.meters[index].lock().expect("no thread panics while it holds this").run(progress);
    }

    /// A line beside the progress.
    pub fn say(&self, text: &str) {
        if let Some(meter) = self.meters.first() {
            meter.lock().expect("no thread panics while it holds this").say(text);
        }
    }
}

/// A run's own report as a step: the only place that knows what a run reports.
fn run_step(progress: Progress) -> Step<'static> {
    let simulated = report::Unit::Seconds.format(progress.now.as_seconds());
    Step {
        done: progress.ended,
        total: progress.total,
        what: "flows",
        note: format!("{simulated} simulated"),
    }
}

/// The line that is due, if one is.
fn line(step: &Step<'_>, tenths: &mut u64, last: &mut Instant, began: Instant) -> Option<String> {
    let reached = step.total.map(|total| step.done.saturating_mul(LINES) / total.max(1));
    let is_due = reached.map_or(last.elapsed() >= LINE_EVERY, |reached| reached > *tenths);
    if !is_due {
        return None;
    }
    (*last, *tenths) = (Instant::now(), reached.unwrap_or(0));
    let share = step.per_cent().map_or(String::new(), |share| format!("{share} %, "));
    let elapsed = began.elapsed();
    let left = step.total.filter(|_| step.done > 0).map(|total| {
        let left = total.saturating_sub(step.done) as f64 / step.done as f64;
        format!(", some {:.0} s left", elapsed.as_secs_f64() * left)
    });
    let text = step.text();
    Some(format!("{share}{text} ({} s{})", elapsed.as_secs(), left.unwrap_or_default()))
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .expect("the template is well-formed")
        .progress_chars("=> ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::Time;

    #[test]
    fn a_run_shows_its_count_with_every_share() {
        let progress =
            Progress { ended: 6_400, total: Some(40_000), now: Time::from_ps(1_200_000_000) };
        let step = run_step(progress);
        assert_eq!(step.text(), "6,400 of 40,000 flows, 1.20 ms simulated");
        assert_eq!(step.per_cent(), Some(16));
        let open = Step { total: None, ..step };
        assert_eq!(open.text(), "6,400 flows, 1.20 ms simulated");
    }

    #[test]
    fn thousands_are_set_off() {
        let expected = ["0", "999", "1,000", "12,345", "1,234,567"];
        let numbers = [0, 999, 1_000, 12_345, 1_234_567];
        assert_eq!(numbers.map(grouped), expected);
    }

    #[test]
    fn off_a_terminal_there_is_one_line_a_tenth() {
        let (mut tenths, began) = (0, Instant::now());
        let mut last = began;
        let step = |done| Step { done, total: Some(1_000), what: "flows", note: String::new() };
        let lines: Vec<_> = (0..=1_000)
            .filter_map(|done| line(&step(done), &mut tenths, &mut last, began))
            .collect();
        assert_eq!(lines.len(), 10, "{lines:#?}");
        assert!(
            lines[0].starts_with("10 %, 100 of 1,000 flows (0 s, some 0 s left)"),
            "{lines:#?}"
        );
        assert!(lines[9].starts_with("100 %, 1,000 of 1,000 flows"), "{lines:#?}");
    }

    #[test]
    fn a_label_takes_no_more_than_its_place_and_commands_nothing() {
        assert_eq!(shown("shoal"), "shoal");
        assert_eq!(shown("\u{1b}[2J"), "\\u{1b}[2J");
        assert_eq!(shown(&"x".repeat(1_000_000)).chars().count(), LABEL_MAX);
    }
}
