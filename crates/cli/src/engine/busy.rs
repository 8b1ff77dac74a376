//! Which threads are at work on something that could still be saved, and which of them have noticed that
//! they are to stop.
//!
//! The handler of Ctrl-C asks here: work that has noticed is waited for, so that its results are kept; work
//! that does not notice in time is not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Whether each thread at work is about to stop, and a key to find it by.
static AT_WORK: Mutex<Vec<Arc<AtomicBool>>> = Mutex::new(Vec::new());

/// A thread at work; until dropped.
#[derive(Debug)]
pub struct Busy(Arc<AtomicBool>);

/// How things stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Nothing is under way that could be saved.
    Idle,
    /// All that is under way is about to stop.
    Stopping,
    /// Something is under way that has not heard.
    Working,
}

impl Busy {
    /// Work begins.
    #[must_use]
    pub fn begin() -> Self {
        let stopping = Arc::new(AtomicBool::new(false));
        at_work().push(stopping.clone());
        Self(stopping)
    }

    /// It has heard that it is to stop, and is about to.
    pub fn stopping(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        at_work().retain(|other| !Arc::ptr_eq(other, &self.0));
    }
}

/// How things stand now.
#[must_use]
pub fn standing() -> Standing {
    let at_work = at_work();
    let is_stopping = |one: &Arc<AtomicBool>| one.load(Ordering::Relaxed);
    match at_work.is_empty() {
        true => Standing::Idle,
        false if at_work.iter().all(is_stopping) => Standing::Stopping,
        false => Standing::Working,
    }
}

fn at_work() -> std::sync::MutexGuard<'static, Vec<Arc<AtomicBool>>> {
    AT_WORK.lock().unwrap_or_else(PoisonError::into_inner)
}
