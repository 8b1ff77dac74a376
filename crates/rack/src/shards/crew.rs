//! The threads that run shards beside the caller's. They sleep between two runs.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::signal::{Broken, Signal};
use super::window::{Ended, Goal, Meeting, Place, Shared, Teller, run_part};
use super::{Shard, Tell, Windows};

/// What a thread is given for a run, and gives back.
struct Seat<S: Shard> {
    places: Vec<Box<Place<S>>>,
    messages: u64,
}

/// What a crew shares.
struct Floor<S: Shard> {
    shared: Arc<Shared<S>>,
    meeting: Meeting,
    /// One for each thread but the caller's.
    seats: Vec<Mutex<Seat<S>>>,
    goal: Mutex<Goal>,
    /// Runs begun, and those that each thread has ended.
    begun: Signal,
    ended: Vec<Signal>,
    /// Why the first thread that panicked did.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// Threads beside the caller's.
pub(super) struct Crew<S: Shard> {
    floor: Arc<Floor<S>>,
    threads: Vec<JoinHandle<()>>,
    runs: u64,
}

impl<S: Shard> Crew<S> {
    /// A crew of `threads`, the caller's included.
    pub(super) fn new(threads: usize, shared: &Arc<Shared<S>>) -> Self {
        let others = threads - 1;
        let floor = Arc::new(Floor {
            shared: Arc::clone(shared),
            meeting: Meeting::new(threads),
            seats: (0..others)
                .map(|_| Mutex::new(Seat { places: Vec::new(), messages: 0 }))
                .collect(),
            goal: Mutex::new(Goal { until: 0, windows: Windows::of(1), end: 0 }),
            begun: Signal::default(),
            ended: (0..others).map(|_| Signal::default()).collect(),
            panic: Mutex::default(),
        });
        let spawn = |other| {
            let floor = Arc::clone(&floor);
            std::thread::Builder::new()
                .name(format!("shards-{}", other + 1))
                .spawn(move || floor.work(other))
                .expect("the system has room for another thread")
        };
        let threads = (0..others).map(spawn).collect();
        Self { floor, threads, runs: 0 }
    }

    /// Runs all shards to a goal.
    pub(super) fn run(
        &mut self,
        places: &mut Vec<Box<Place<S>>>,
        goal: Goal,
        reports: &mut Vec<S::Report>,
        tell: Tell<'_, S::Report>,
    ) -> Ended {
        let floor = &*self.floor;
        let (count, threads) = (places.len(), self.threads.len() + 1);
        *floor.goal.lock().unwrap_or_else(PoisonError::into_inner) = goal;
        for other in (1..threads).rev() {
            let mut seat = floor.seats[other - 1].lock().unwrap_or_else(PoisonError::into_inner);
            seat.places.extend(places.drain(other * count / threads..));
        }
        self.runs += 1;
        floor.begun.raise(self.runs);
        let own = catch_unwind(AssertUnwindSafe(|| {
            let common = (&*floor.shared, &floor.meeting);
            run_part(0, places, goal, common, Some(Teller { reports, tell }))
        }));
        let mut ended = match own {
            Ok(Ok(ended)) => ended,
            Ok(Err(Broken)) => floor.fail(None),
            Err(panic) => floor.fail(Some(panic)),
        };
        for (seat, done) in floor.seats.iter().zip(&floor.ended) {
            if done.wait_for(self.runs).is_err() {
                floor.fail(None);
            }
            let mut seat = seat.lock().unwrap_or_else(PoisonError::into_inner);
            ended.counts.messages += seat.messages;
            places.append(&mut seat.places);
        }
        ended
    }
}

impl<S: Shard> Floor<S> {
    /// What a thread other than the caller's does.
    fn work(&self, other: usize) {
        let mut runs = 0;
        loop {
            runs += 1;
            if self.begun.wait_for(runs).is_err() {
                return;
            }
            let goal = *self.goal.lock().unwrap_or_else(PoisonError::into_inner);
            let part = catch_unwind(AssertUnwindSafe(|| {
                let mut seat = self.seats[other].lock().unwrap_or_else(PoisonError::into_inner);
                let common = (&*self.shared, &self.meeting);
                let part = run_part(other + 1, &mut seat.places, goal, common, None)?;
                seat.messages = part.counts.messages;
                Ok::<(), Broken>(())
            }));
            match part {
                Ok(Ok(())) => self.ended[other].raise(runs),
                Ok(Err(Broken)) => return,
                Err(panic) => return self.end(panic),
            }
        }
    }

    /// Ends the run of all threads with a panic; the first one counts.
    fn end(&self, panic: Box<dyn Any + Send>) {
        let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(panic);
        drop(first);
        self.meeting.barrier.break_up();
        self.begun.break_up();
        self.ended.iter().for_each(Signal::break_up);
    }

    /// Goes on with the panic of whichever thread was the first.
    fn fail(&self, panic: Option<Box<dyn Any + Send>>) -> ! {
        if let Some(panic) = panic {
            self.end(panic);
        }
        let first = self.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        resume_unwind(first.unwrap_or_else(|| Box::new("a thread of the shards ended early")))
    }
}

impl<S: Shard> Drop for Crew<S> {
    fn drop(&mut self) {
        self.floor.meeting.barrier.break_up();
        self.floor.begun.break_up();
        for thread in self.threads.drain(..) {
            // Its panic, if any, was told.
            drop(thread.join());
        }
    }
}
