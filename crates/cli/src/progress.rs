//! How far a run has come: a bar on a terminal, a line now and then elsewhere, nothing if quiet.

use std::io::{self, IsTerminal};
use std::sync::{Mutex, MutexGuard};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use rack::run::Progress;
use report::grouped;
use report::terminal::{printable, printable_line};

use crate::output::{Output, say};

/// Off a terminal a line is written each time another tenth is done, and of what takes hours not less often than this;
/// of what has no known end, more often (our choices).
const LINE_AT_LEAST_EVERY: Duration = Duration::from_secs(300);
const LINE_EVERY: Duration = Duration::from_secs(10);
const LINES: u64 = 10;
/// Characters of a label that are shown; bars of several runs stand below each other.
const LABEL_MAX: usize = 24;
/// On a terminal narrower than this a bar would leave no room for counts: there is none, and labels are
/// shorter.
const NARROW: u16 = 72;
const LABEL_MAX_NARROW: usize = 12;

/// Shows how far something has come.
pub struct Meter {
    face: Face,
}

enum Face {
    None,
    Bar(ProgressBar),
    Lines { label: String, pace: Pace },
}

/// When lines are due, and what this command did not do: work of an earlier one that it goes on with says nothing of
/// how long the rest takes.
struct Pace {
    began: Instant,
    last: Instant,
    tenths: u64,
    /// What was done when the first step came, or what has been found done since.
    from: Option<u64>,
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

/// A label as it stands before a bar on a terminal of this many columns.
fn shown(label: &str, columns: u16) -> String {
    let most = if columns < NARROW { LABEL_MAX_NARROW } else { LABEL_MAX };
    let label = printable_line(label);
    if label.chars().count() <= most {
        return label.into_owned();
    }
    label.chars().take(most - 1).chain(['…']).collect()
}

/// So many seconds in the unit that says most: `54 s`, `25 minutes`.
pub fn rough(seconds: f64) -> String {
    if seconds < 100.0 {
        return format!("{seconds:.0} s");
    }
    HumanDuration(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)).to_string()
}

/// Columns of the terminal; 80 where there is none.
fn columns() -> u16 {
    report::terminal::size().map_or(80, |(columns, _)| columns)
}

/// How a bar of known length looks on a terminal of this many columns. What does not fit is cut where the line
/// ends (`wide_msg`), so a bar never takes two lines.
fn template(columns: u16) -> &'static str {
    if columns < NARROW {
        "{prefix} {percent:>3}% {eta} {wide_msg}"
    } else {
        "{prefix} [{bar:16}] {percent:>3}% {eta:>4} left  {wide_msg}"
    }
}

impl Meter {
    /// A meter for what is called `label`.
    pub fn new(label: &str, output: &Output) -> Self {
        let bar = || ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        Self::with_bar(&shown(label, columns()), output, bar)
    }

    /// A meter that draws, on a terminal, the bar that `bar` makes.
    fn with_bar(label: &str, output: &Output, bar: impl FnOnce() -> ProgressBar) -> Self {
        let now = Instant::now();
        let face = if output.is_quiet() {
            Face::None
        } else if io::stderr().is_terminal() {
            let bar = bar();
            // The style first: what follows draws.
            bar.set_style(style("{prefix} {spinner} {elapsed} {wide_msg}"));
            bar.set_prefix(label.to_string());
            Face::Bar(bar)
        } else {
            Face::Lines { label: label.into(), pace: Pace::new(now) }
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
                        bar.set_style(style(template(columns())));
                        // What an earlier command did is not this one's pace.
                        bar.set_position(step.done);
                        bar.reset_eta();
                    }
                    // It may grow: a sweep learns what it holds on the way.
                    bar.set_length(total.max(step.done));
                }
                bar.set_position(step.done);
                bar.set_message(step.text());
            }
            Face::Lines { label, pace } => {
                if let Some(line) = pace.line(&step()) {
                    say(&format!("{label}: {line}"));
                }
            }
        }
    }

    /// An earlier command did so much of what is done; a bar goes by what was done of late.
    pub fn note_found(&mut self, found: u64) {
        if let Face::Lines { pace, .. } = &mut self.face {
            pace.from = pace.from.max(Some(found));
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

/// Meters of several runs: one for each that is under way, below each other, and how many are over.
pub struct Meters<'a> {
    labels: Vec<String>,
    output: &'a Output,
    board: MultiProgress,
    state: Mutex<Board>,
}

/// What the board shows.
struct Board {
    /// The runs under way, by the thread that carries them: a thread has one at a time.
    running: Vec<(ThreadId, usize, Meter)>,
    /// Runs that are over.
    over: usize,
    /// Shows how many are over, where there are more than are under way.
    total: Meter,
}

impl<'a> Meters<'a> {
    /// Meters for `labels`, none of them under way.
    pub fn new(labels: &[String], output: &'a Output) -> Self {
        let board = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let columns = columns();
        let labels: Vec<String> = labels.iter().map(|label| shown(label, columns)).collect();
        let total = Meter::with_bar("all", output, || board.add(ProgressBar::no_length()));
        let state = Mutex::new(Board { running: Vec::new(), over: 0, total });
        Self { labels, output, board, state }
    }

    fn lock(&self) -> MutexGuard<'_, Board> {
        self.state.lock().expect("no thread panics while it holds this")
    }

    /// Run number `index` has come this far.
    pub fn run(&self, index: usize, progress: Progress) {
        let mut state = self.lock();
        let thread = std::thread::current().id();
        let at = state.running.iter().position(|(of, which, _)| *of == thread && *which == index);
        let at = at.unwrap_or_else(|| self.begin(&mut state, thread, index));
        state.running[at].2.run(progress);
    }

    /// Shows run number `index`; the one before it on its thread is over.
    fn begin(&self, state: &mut Board, thread: ThreadId, index: usize) -> usize {
        if let Some(before) = state.running.iter().position(|(of, ..)| *of == thread) {
            drop(state.running.remove(before));
            state.over += 1;
        }
        let (over, all) = (state.over as u64, self.labels.len() as u64);
        if io::stderr().is_terminal() {
            let note = String::new();
            state.total.update(|| Step { done: over, total: Some(all), what: "networks", note });
        }
        let label = self.label(index);
        let bar = || {
            let place = state.running.len();
            self.board.insert(place, ProgressBar::no_length())
        };
        let meter = Meter::with_bar(&label, self.output, bar);
        state.running.push((thread, index, meter));
        state.running.len() - 1
    }

    /// On a terminal as wide as the widest, so that bars stand below each other.
    fn label(&self, index: usize) -> String {
        let width = self.labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
        let label = &self.labels[index];
        if io::stderr().is_terminal() { format!("{label:<width$}") } else { label.clone() }
    }

    /// A line beside the progress.
    pub fn say(&self, text: &str) {
        self.lock().total.say(text);
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

impl Pace {
    fn new(now: Instant) -> Self {
        Self { began: now, last: now, tenths: 0, from: None }
    }

    /// The line that is due, if one is.
    fn line(&mut self, step: &Step<'_>) -> Option<String> {
        let from = *self.from.get_or_insert(step.done);
        let reached = step.total.map(|total| step.done.saturating_mul(LINES) / total.max(1));
        let silent = self.last.elapsed();
        let is_due = match reached {
            Some(reached) => reached > self.tenths || silent >= LINE_AT_LEAST_EVERY,
            None => silent >= LINE_EVERY,
        };
        if !is_due {
            return None;
        }
        (self.last, self.tenths) = (Instant::now(), reached.unwrap_or(0));
        let elapsed = self.began.elapsed();
        let left = step.total.filter(|_| step.done > from).map(|total| {
            let left = total.saturating_sub(step.done) as f64 / (step.done - from) as f64;
            format!(", some {} left", rough(elapsed.as_secs_f64() * left))
        });
        let share = step.per_cent().map(|share| format!("{share} %"));
        let parts = [share.unwrap_or_default(), step.text()];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let seconds = elapsed.as_secs();
        Some(format!("{} ({seconds} s{})", parts.join(", "), left.unwrap_or_default()))
    }
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
        let mut pace = Pace::new(Instant::now());
        let step = |done| Step { done, total: Some(1_000), what: "flows", note: String::new() };
        let lines: Vec<_> = (0..=1_000).filter_map(|done| pace.line(&step(done))).collect();
        assert_eq!(lines.len(), 10, "{lines:#?}");
        assert!(
            lines[0].starts_with("10 %, 100 of 1,000 flows (0 s, some 0 s left)"),
            "{lines:#?}"
        );
        assert!(lines[9].starts_with("100 %, 1,000 of 1,000 flows"), "{lines:#?}");
    }

    #[test]
    fn what_takes_hours_has_a_line_every_five_minutes() {
        let began = Instant::now() - Duration::from_secs(301);
        let mut pace = Pace::new(began);
        let step = |done| Step { done, total: Some(1_000), what: "", note: String::new() };
        assert_eq!(pace.line(&step(20)).as_deref(), Some("2 % (301 s)"));
        assert_eq!(pace.line(&step(30)), None);
        pace.last = began;
        assert!(pace.line(&step(30)).is_some_and(|line| line.starts_with("3 % (301 s, some ")));
    }

    /// Half was done an hour ago by another command; this one did a tenth in ten seconds.
    #[test]
    fn time_left_is_told_by_what_this_command_did() {
        let began = Instant::now() - Duration::from_secs(10);
        let mut pace = Pace::new(began);
        let step = |done| Step { done, total: Some(100), what: "", note: String::new() };
        assert_eq!(pace.line(&step(50)).as_deref(), Some("50 % (10 s)"));
        assert_eq!(pace.line(&step(60)).as_deref(), Some("60 % (10 s, some 40 s left)"));
    }

    /// What was kept is found as the command goes on.
    #[test]
    fn what_is_found_done_says_nothing_of_the_time_left() {
        let began = Instant::now() - Duration::from_secs(10);
        let mut meter =
            Meter { face: Face::Lines { label: String::new(), pace: Pace::new(began) } };
        let step = |done| Step { done, total: Some(100), what: "", note: String::new() };
        meter.note_found(0);
        meter.update(|| step(0));
        meter.note_found(50);
        let Face::Lines { pace, .. } = &mut meter.face else { panic!("it was made of lines") };
        assert_eq!(pace.line(&step(50)).as_deref(), Some("50 % (10 s)"));
        assert_eq!(pace.line(&step(60)).as_deref(), Some("60 % (10 s, some 40 s left)"));
    }

    /// What stands in a template beside the message, at its longest, leaves room for the count.
    #[test]
    fn bars_leave_room_for_their_count_on_narrow_terminals_too() {
        for columns in [40, 60, 80, 120] {
            let label = shown(&"x".repeat(100), columns).chars().count();
            let rest = template(columns)
                .replace("{prefix}", &"x".repeat(label))
                .replace("{bar:16}", &"=".repeat(16))
                .replace("{percent:>3}", "100")
                .replace("{eta:>4}", "59m")
                .replace("{eta}", "59m")
                .replace("{wide_msg}", "");
            let room = usize::from(columns) - rest.chars().count();
            assert!(room >= "10 of 20".len(), "{room} of {columns} columns");
        }
    }

    #[test]
    fn a_label_takes_no_more_than_its_place_and_commands_nothing() {
        assert_eq!(shown("shoal", 80), "shoal");
        assert_eq!(shown("\u{1b}[2J", 80), "\\u{1b}[2J");
        assert_eq!(shown(&"x".repeat(1_000_000), 80).chars().count(), LABEL_MAX);
        assert_eq!(shown(&"x".repeat(1_000_000), 40).chars().count(), LABEL_MAX_NARROW);
    }
}
