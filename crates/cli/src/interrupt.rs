//! Ctrl-C: once to stop and keep what is finished, twice to die.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::EXIT_INTERRUPTED;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Starts to listen for SIGINT and SIGTERM.
pub fn listen() {
    let heard = || {
        if ASKED.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(EXIT_INTERRUPTED));
        }
    };
    // Where signals cannot be caught the default stays: the first one kills.
    let _ = ctrlc::set_handler(heard);
}

/// Whether the user asked to stop.
pub fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
