//! How far a run has come: a bar on a terminal, a line now and then elsewhere, nothing if quiet.

use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use rack::run::Progress;

use crate::output::{Output, say};

/// Off a terminal a line is written at least this often (our choice).
const LINE_EVERY: Duration = Duration::from_secs(10);
/// Or each time another tenth is done.
const LINES: u64 = 10;

/// Shows how far something has come.
pub struct Meter {
    face: Face,
}

enum Face {
    None,
    Bar(ProgressBar),
    Lines { label: String, began: Instant, last: Instant, tenths: u64 },
}

impl Meter {
    /// A meter for what is called `label`.
    pub fn new(label: &str, output: &Output) -> Self {
        let bar = || ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        Self::with_bar(label, output, bar)
    }

    /// A meter that draws, on a terminal, the bar that `bar` makes.
    fn with_bar(label: &str, output: &Output, bar: impl FnOnce() -> ProgressBar) -> Self {
        let now = Instant::now();
        let face = if output.is_quiet() {
            Face::None
        } else if io::stderr().is_terminal() {
            let bar = bar();
            bar.set_prefix(label.to_string());
            bar.set_style(style("{prefix} {spinner} {pos} {msg} [{elapsed}]"));
            Face::Bar(bar)
        } else {
            Face::Lines { label: label.into(), began: now, last: now, tenths: 0 }
        };
        Self { face }
    }

    /// `done` of `total` things are done; `note` says more.
    pub fn update(&mut self, done: u64, total: Option<u64>, note: impl FnOnce() -> String) {
        match &mut self.face {
            Face::None => {}
            Face::Bar(bar) => {
                if let Some(total) = total.filter(|_| bar.length().is_none()) {
                    bar.set_length(total);
                    let template = "{prefix} [{bar:32}] {percent:>3} % {msg} [{elapsed} < {eta}]";
                    bar.set_style(style(template));
                }
                bar.set_position(done);
                bar.set_message(note());
            }
            Face::Lines { label, began, last, tenths } => {
                let reached = total.map_or(0, |total| done.saturating_mul(LINES) / total.max(1));
                if reached <= *tenths && last.elapsed() < LINE_EVERY {
                    return;
                }
                (*last, *tenths) = (Instant::now(), reached);
                let share = total.map_or(String::new(), |total| {
                    format!(" {} %", done.saturating_mul(100) / total.max(1))
                });
                let seconds = began.elapsed().as_secs();
                say(&format!("{label}:{share} {done} {} ({seconds} s)", note()));
            }
        }
    }

    /// A run has come this far.
    pub fn run(&mut self, progress: Progress) {
        self.update(progress.ended, progress.total, || {
            let simulated = report::Unit::Seconds.format(progress.now.as_seconds());
            format!("flows, {simulated} simulated")
        });
    }

    /// A line beside the progress.
    pub fn say(&self, text: &str) {
        match &self.face {
            Face::None => {}
            Face::Bar(bar) => bar.println(text),
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
        let width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
        let meter = |label: &String| {
            let label =
                if io::stderr().is_terminal() { format!("{label:<width$}") } else { label.clone() };
            Mutex::new(Meter::with_bar(&label, output, || board.add(ProgressBar::no_length())))
        };
        Self { meters: labels.iter().map(meter).collect() }
    }

    /// Run number `index` has come this far.
    pub fn run(&self, index: usize, progress: Progress) {
        self.meters[index].lock().expect("no thread panics while it holds this").run(progress);
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .expect("the template is well-formed")
        .progress_chars("=> ")
}
