//! Ctrl-C: once to stop and keep what is finished, twice to end at once.
//!
//! The first one takes effect within a second, whatever the program does: work that notices it stops and keeps
//! its results; where nothing is under way that could be kept, or work does not notice in time, the process
//! ends here, and what it had half written is removed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use report::unfinished;

use crate::engine::{EXIT_INTERRUPTED, Standing, standing};
use crate::output::say;

static ASKED: AtomicBool = AtomicBool::new(false);

/// How long work may take to hear (our choice): within a second, with some of it left to clean up.
const PATIENCE: Duration = Duration::from_millis(700);
/// How often it is asked whether it has heard.
const PERIOD: Duration = Duration::from_millis(10);
/// After this long the user is told what is waited for.
const SILENCE: Duration = Duration::from_millis(900);

/// Starts to listen for SIGINT and SIGTERM.
pub fn listen() {
    // Where signals cannot be caught the default stays: the first one kills. In a process that calls
    // the command again the first handler stays, which is the same.
    let _ = ctrlc::set_handler(heard);
}

/// Whether the user asked to stop.
pub fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// A signal has come. This is an ordinary thread, of the library that catches signals.
fn heard() {
    if ASKED.swap(true, Ordering::Relaxed) {
        end(None);
    }
    if standing() == Standing::Idle {
        end(Some("interrupted before anything was finished"));
    }
    // A second signal must find this thread listening, so the wait is another's.
    let watch = std::thread::Builder::new().spawn(watch);
    if watch.is_err() {
        end(Some("interrupted"));
    }
}

/// Ends the process if there is work that does not hear.
fn watch() {
    let asked = Instant::now();
    while standing() == Standing::Working {
        if asked.elapsed() > PATIENCE {
            end(Some(
                "interrupted: the work under way did not stop in time; what was finished before is kept",
            ));
        }
        std::thread::sleep(PERIOD);
    }
    std::thread::sleep(SILENCE.saturating_sub(asked.elapsed()));
    say("interrupted: storing what there is; once more ends at once");
}

/// Removes what is half written, and ends.
fn end(last_words: Option<&str>) -> ! {
    unfinished::abandon();
    if let Some(words) = last_words {
        say(words);
    }
    std::process::exit(i32::from(EXIT_INTERRUPTED));
}
