//! How much runs at a time: a number of runs, and no more memory than the machine has.
//!
//! Each scenario is held against the memory of the machine when it is read, alone. Runs of a comparison
//! or a sweep share that memory: one that does not fit beside those under way waits until they end.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kernel::Bytes;
use rack::memory::binary;

/// How often a run that waits asks whether it is to stop (our choice: below what people notice).
const PERIOD: Duration = Duration::from_millis(50);

/// What runs share.
pub struct Budget<'a> {
    jobs: usize,
    memory: Bytes,
    tell: &'a (dyn Fn(&str) + Sync),
    state: Mutex<State>,
    given_back: Condvar,
}

/// What is taken now.
#[derive(Default)]
struct State {
    memory: Bytes,
    runs: usize,
    has_told: bool,
}

/// The part of one run; given back when dropped.
pub struct Share<'a> {
    budget: &'a Budget<'a>,
    memory: Bytes,
}

impl State {
    /// Whether a run that needs this fits beside the others, or is alone.
    fn has_room(&self, need: Bytes, limit: Bytes) -> bool {
        self.runs == 0 || need.get() <= limit.get().saturating_sub(self.memory.get())
    }
}

impl<'a> Budget<'a> {
    /// At most `jobs` runs at a time, that take no more than `memory` together. `tell` is called once, when
    /// fewer run for lack of memory.
    #[must_use]
    pub fn new(jobs: usize, memory: Bytes, tell: &'a (dyn Fn(&str) + Sync)) -> Self {
        let state = Mutex::new(State::default());
        Self { jobs: jobs.max(1), memory, tell, state, given_back: Condvar::new() }
    }

    /// Runs at a time, at most.
    #[must_use]
    pub fn jobs(&self) -> usize {
        self.jobs
    }

    /// Takes what a run needs, once there is as much; `None` if it is to stop before. A run alone goes on
    /// whatever it needs: whether it may was decided when its scenario was read.
    pub fn take(&self, need: Bytes, stop: impl Fn() -> bool) -> Option<Share<'_>> {
        let mut state = self.lock();
        while !state.has_room(need, self.memory) {
            if !std::mem::replace(&mut state.has_told, true) {
                (self.tell)(&self.why(need, &state));
            }
            if stop() {
                return None;
            }
            let waited = self.given_back.wait_timeout(state, PERIOD);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.runs += 1;
        state.memory += need;
        Some(Share { budget: self, memory: need })
    }

    fn why(&self, need: Bytes, state: &State) -> String {
        let (runs, jobs) = (state.runs, self.jobs);
        format!(
            "{runs} instead of {jobs} at a time: they take some {} of memory, another would take {}, and the \
             limit is {}",
            binary(state.memory),
            binary(need),
            binary(self.memory)
        )
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let mut state = self.budget.lock();
        state.runs -= 1;
        state.memory -= self.memory;
        self.budget.given_back.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn runs_together_never_take_more_than_there_is() {
        let (now, most, told) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::new(Vec::new()));
        let tell = |text: &str| told.lock().unwrap().push(text.to_string());
        let budget = Budget::new(8, Bytes::new(100), &tell);
        std::thread::scope(|scope| {
            for run in 0..8 {
                let (budget, now, most) = (&budget, &now, &most);
                scope.spawn(move || {
                    for round in 0..200 {
                        let need = (run * 37 + round * 11) % 60;
                        let share = budget.take(Bytes::new(need), || false).unwrap();
                        let all = now.fetch_add(need, Ordering::SeqCst) + need;
                        most.fetch_max(all, Ordering::SeqCst);
                        std::thread::yield_now();
                        now.fetch_sub(need, Ordering::SeqCst);
                        drop(share);
                    }
                });
            }
        });
        assert!((60..=100).contains(&most.into_inner()));
        assert!(told.lock().unwrap().len() <= 1);
    }

    #[test]
    fn a_run_that_does_not_fit_waits_says_why_and_can_be_stopped() {
        let told = Mutex::new(Vec::new());
        let tell = |text: &str| told.lock().unwrap().push(text.to_string());
        let budget = Budget::new(4, Bytes::new(4 << 30), &tell);
        let first = budget.take(Bytes::new(3 << 30), || false).unwrap();
        for _ in 0..2 {
            assert!(budget.take(Bytes::new(2 << 30), || true).is_none());
        }
        let said = "1 instead of 4 at a time: they take some 3.0 GiB of memory, another would take 2.0 GiB, \
                    and the limit is 4.0 GiB";
        assert_eq!(*told.lock().unwrap(), [said]);
        drop(first);
        assert!(budget.take(Bytes::new(2 << 30), || true).is_some());
    }

    #[test]
    fn a_run_alone_goes_on() {
        let budget = Budget::new(2, Bytes::new(1), &|_| ());
        assert!(budget.take(Bytes::new(u64::MAX), || true).is_some());
    }
}
