//! Shards: parts of a network that know of each other only what messages tell, and the driver that runs
//! them on several threads.
//!
//! A *shard* holds the state of a set of nodes. It takes messages, runs up to an instant and puts messages
//! out; what it sends arrives at least the *lookahead* later. So all shards may run side by side through a
//! *window* that ends a lookahead after the first thing that any of them has to do: nothing that one of
//! them does in it can reach another before its end. Windows do not depend on how the network is cut, nor
//! on the number of threads; a shard whose order within an instant does not depend on the cut either gives
//! the same results for any number of both.
//!
//! One barrier a window: a shard puts what it sends into the mail of the window's parity and takes what
//! others sent from that of the other, and each thread finds the same end of the next window from what all
//! have posted. Only after a window in which something was reported threads wait a second time, until the
//! caller has seen the reports and said whether to go on.

mod crew;
mod mail;
mod signal;
#[cfg(test)]
mod tests;
mod window;

use std::fmt;
use std::ops::ControlFlow;

use crew::Crew;
pub use mail::Outbox;
use window::{Place, Shared};

/// An instant that never comes.
pub const NEVER: u64 = u64::MAX;

/// Events in a window below which more than one thread costs more than it gains (our choice, measured: a
/// barrier costs up to some microseconds where cores are shared, and a hundred events 5 to 20 of them).
const EVENTS_MIN: u64 = 100;

/// The state of a set of nodes.
///
/// Instants are numbers whose unit is the network's own: picoseconds, or slots.
pub trait Shard: Send + 'static {
    /// What one shard sends another.
    type Message: Send + 'static;
    /// What a shard tells the caller; told in this order at the end of a window, whoever reports it.
    type Report: Ord + Send + 'static;

    /// The instant of the next thing to do, messages taken included; [`NEVER`] if there is none. Windows are
    /// made from it: one that is too early costs time, and one that depends on the cut makes windows do so.
    fn next(&self) -> u64;

    /// Takes the messages of one sender, in the order in which they were sent, and leaves none.
    fn take(&mut self, messages: &mut Vec<Self::Message>);

    /// Does everything before `end`. What it sends arrives the lookahead or more after the instant at which
    /// it is sent. Gives how many things were done.
    fn run(&mut self, end: u64, out: &mut Outbox<Self::Message>) -> u64;

    /// Appends what there is to report since it was last asked.
    fn report(&mut self, reports: &mut Vec<Self::Report>);
}

/// How long windows are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Windows {
    /// No message arrives sooner after it was sent; at least one. Less is allowed, and makes windows shorter.
    pub lookahead: u64,
    /// Windows end at instants that leave the rest `offset` when divided by `grid`, wherever the lookahead
    /// lets them.
    pub grid: u64,
    /// Less than `grid`.
    pub offset: u64,
}

impl Windows {
    /// Windows of a lookahead that end anywhere.
    #[must_use]
    pub const fn of(lookahead: u64) -> Self {
        Self { lookahead, grid: 1, offset: 0 }
    }

    /// The end of a window in which the first thing to do is at `first`.
    fn end(self, first: u64, until: u64) -> u64 {
        let end = first.saturating_add(self.lookahead);
        let behind = (end % self.grid + self.grid - self.offset) % self.grid;
        let aligned = end.saturating_sub(behind);
        until.min(if aligned > first { aligned } else { end })
    }
}

/// Why [`Shards::run`] returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// Everything before the wanted instant is done.
    Reached,
    /// The caller asked to stop, at the end of a window; everything before this instant is done.
    Paused(u64),
    /// No shard has anything left to do.
    Idle,
}

/// What a caller does with the reports of a window that has just ended, in order, and with the instant at
/// which it ended; it may empty the list. `Break` ends the run there.
pub type Tell<'a, R> = &'a mut dyn FnMut(&mut Vec<R>, u64) -> ControlFlow<()>;

/// What the windows of a network have come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Windows so far.
    pub windows: u64,
    /// Things done in all windows.
    pub events: u64,
    /// Messages between shards.
    pub messages: u64,
    /// Over all windows, the sum of what was done by the thread with most to do.
    pub busiest: u64,
    /// The same of the shard with most to do: what a thread for each shard would leave to the busiest.
    pub busiest_shard: u64,
}

/// A network, cut into shards.
pub struct Shards<S: Shard> {
    places: Vec<Box<Place<S>>>,
    shared: std::sync::Arc<Shared<S>>,
    crew: Option<Crew<S>>,
    threads: usize,
    reports: Vec<S::Report>,
    counts: Counts,
    /// Things done in a window of late, on average, and below how many one thread is enough.
    recent: u64,
    events_min: u64,
}

/// So many threads, or as many as the machine lets this process use at a time if that is fewer: threads
/// that wait for a core make all others wait at the barrier.
#[must_use]
pub fn usable_threads(wanted: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    wanted.clamp(1, cores)
}

impl<S: Shard> Shards<S> {
    /// A network of these shards, on one thread.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn new(shards: impl IntoIterator<Item = S>) -> Self {
        let shards: Vec<_> = shards.into_iter().collect();
        let count = shards.len();
        assert!(count > 0, "a network of no shards");
        let place = |(index, shard)| Box::new(Place::new(shard, index, count));
        Self {
            places: shards.into_iter().enumerate().map(place).collect(),
            shared: std::sync::Arc::new(Shared::new(count)),
            crew: None,
            threads: 1,
            reports: Vec::new(),
            counts: Counts::default(),
            recent: u64::MAX,
            events_min: EVENTS_MIN,
        }
    }

    /// Runs on so many threads from now on, the caller's included; at most one for each shard. The results
    /// are the same. See [`usable_threads`].
    #[must_use]
    pub fn on_threads(mut self, threads: usize) -> Self {
        self.threads = threads.clamp(1, self.places.len());
        self.crew = None;
        self
    }

    /// Stays on the caller's thread while fewer things than this are done in a window, on average: 100, unless set. The
    /// results are the same.
    #[must_use]
    pub fn alone_below(self, events_min: u64) -> Self {
        Self { events_min, ..self }
    }

    /// How many shards there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// How many threads there are.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The shards, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &S> {
        self.places.iter().map(|place| &place.shard)
    }

    /// The shards, in order.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut S> {
        self.places.iter_mut().map(|place| &mut place.shard)
    }

    /// One shard.
    #[must_use]
    pub fn get(&self, index: usize) -> &S {
        &self.places[index].shard
    }

    /// One shard.
    pub fn get_mut(&mut self, index: usize) -> &mut S {
        &mut self.places[index].shard
    }

    /// What windows have come to so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Lets all shards run until `until`, in these windows. Tells `tell`, on the caller's thread, what was
    /// reported in a window, if anything was.
    ///
    /// # Panics
    /// If a shard does, on whichever thread; the run ends with that panic.
    pub fn run(&mut self, until: u64, windows: Windows, tell: Tell<'_, S::Report>) -> Stop {
        assert!(windows.lookahead > 0, "a window of no length");
        assert!(windows.offset < windows.grid, "{windows:?}");
        let first = self.iter().map(S::next).min().unwrap_or(NEVER);
        if first >= until {
            return if first == NEVER { Stop::Idle } else { Stop::Reached };
        }
        let goal = window::Goal { until, windows, end: windows.end(first, until) };
        let threads = if self.recent < self.events_min { 1 } else { self.threads };
        let result = if threads == 1 {
            window::run_alone(&mut self.places, goal, &mut self.reports, tell)
        } else {
            let shared = &self.shared;
            let crew = self.crew.get_or_insert_with(|| Crew::new(threads, shared));
            crew.run(&mut self.places, goal, &mut self.reports, tell)
        };
        let window::Ended { stop, counts } = result;
        self.counts.windows += counts.windows;
        self.counts.events += counts.events;
        self.counts.messages += counts.messages;
        self.counts.busiest += counts.busiest;
        self.counts.busiest_shard += counts.busiest_shard;
        self.recent = match self.recent {
            u64::MAX => counts.events / counts.windows,
            // A run may be a few windows long, and its last one is cut short.
            recent => (7 * recent + counts.events / counts.windows) / 8,
        };
        stop
    }
}

/// The same shards, on threads of their own.
impl<S: Shard + Clone> Clone for Shards<S> {
    fn clone(&self) -> Self {
        let copy = Self::new(self.iter().cloned()).on_threads(self.threads);
        Self { counts: self.counts, events_min: self.events_min, ..copy }
    }
}

impl<S: Shard + fmt::Debug> fmt::Debug for Shards<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
