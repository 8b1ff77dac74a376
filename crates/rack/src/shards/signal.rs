//! Threads that wait for each other: they spin for a while, then sleep.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// How often a thread looks before it sleeps (our choice, measured: some microseconds, as long as neighbouring
/// windows take to end). It never yields: where other programs have the cores, a yield gives one of them
/// milliseconds, while a thread that sleeps is woken as soon as the number is there.
const LOOKS: u32 = 1_000;
/// What a signal says once a thread has panicked.
const BROKEN: u64 = u64::MAX;

/// A thread that takes part has panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// On a cache line of its own; processors fetch two at a time.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(super) struct Padded<T>(pub(super) T);

/// A number that only grows and that threads can wait for.
#[derive(Debug, Default)]
pub(super) struct Signal {
    value: Padded<AtomicU64>,
    sleepers: Padded<AtomicUsize>,
    lock: Mutex<()>,
    bell: Condvar,
}

impl Signal {
    /// Raises the number to `value`.
    pub(super) fn raise(&self, value: u64) {
        self.value.0.fetch_max(value, Ordering::SeqCst);
        // Either this sees a sleeper, or the sleeper, which counts itself first, sees the new value.
        if self.sleepers.0.load(Ordering::SeqCst) > 0 {
            let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            self.bell.notify_all();
        }
    }

    /// Lets no one wait any more.
    pub(super) fn break_up(&self) {
        self.raise(BROKEN);
    }

    /// The number now.
    pub(super) fn value(&self) -> u64 {
        self.value.0.load(Ordering::Acquire)
    }

    /// Waits until the number is `value` or more.
    pub(super) fn wait_for(&self, value: u64) -> Result<(), Broken> {
        let seen = self.look(value).unwrap_or_else(|| self.sleep(value));
        if seen == BROKEN { Err(Broken) } else { Ok(()) }
    }

    fn look(&self, value: u64) -> Option<u64> {
        for _ in 0..LOOKS {
            let seen = self.value();
            if seen >= value {
                return Some(seen);
            }
            std::hint::spin_loop();
        }
        None
    }

    #[cold]
    fn sleep(&self, value: u64) -> u64 {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.sleepers.0.fetch_add(1, Ordering::SeqCst);
        let seen = loop {
            let seen = self.value.0.load(Ordering::SeqCst);
            if seen >= value {
                break seen;
            }
            guard = self.bell.wait(guard).unwrap_or_else(PoisonError::into_inner);
        };
        self.sleepers.0.fetch_sub(1, Ordering::SeqCst);
        seen
    }
}

/// Where threads meet: each sees what the others wrote before.
#[derive(Debug)]
pub(super) struct Barrier {
    threads: usize,
    here: Padded<AtomicUsize>,
    round: Signal,
}

impl Barrier {
    pub(super) fn new(threads: usize) -> Self {
        Self { threads, here: Padded::default(), round: Signal::default() }
    }

    /// Waits for all others.
    pub(super) fn meet(&self) -> Result<(), Broken> {
        let round = self.round.value();
        if round == BROKEN {
            return Err(Broken);
        }
        if self.here.0.fetch_add(1, Ordering::AcqRel) + 1 < self.threads {
            return self.round.wait_for(round + 1);
        }
        self.here.0.store(0, Ordering::Relaxed);
        self.round.raise(round + 1);
        Ok(())
    }

    /// Lets no one wait any more: a thread will not come.
    pub(super) fn break_up(&self) {
        self.round.break_up();
    }
}
