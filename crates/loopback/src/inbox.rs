//! What waits for a node: messages on its wires, and the time.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use kernel::Time;

/// A message on a wire.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) wire: u32,
    pub(crate) at: Time,
    /// The message, then what rides behind it.
    pub(crate) bytes: Vec<u8>,
    /// How long the message itself is.
    pub(crate) head: usize,
}

/// What a node has to do, as others see it.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) frames: Vec<Frame>,
    /// The first arrival of `frames`.
    first: Time,
    /// What the node itself said last.
    next: Time,
    is_over: bool,
}

/// Where others leave messages for a node, and the node waits.
#[derive(Debug)]
pub(crate) struct Inbox {
    work: Mutex<Work>,
    bell: Condvar,
}

impl Inbox {
    pub(crate) fn new(next: Time) -> Self {
        let work = Work { frames: Vec::new(), first: Time::NEVER, next, is_over: false };
        Self { work: Mutex::new(work), bell: Condvar::new() }
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message for the node.
    pub(crate) fn post(&self, frame: Frame) {
        let mut work = self.work();
        work.first = work.first.min(frame.at);
        work.frames.push(frame);
    }

    /// The first thing that the node has to do.
    pub(crate) fn next(&self) -> Time {
        let work = self.work();
        work.next.min(work.first)
    }

    /// Wakes the node if it has something to do by `now`.
    pub(crate) fn ring(&self, now: Time) {
        let work = self.work();
        if work.next.min(work.first) <= now {
            self.bell.notify_one();
        }
    }

    /// Lets the node wait no longer.
    pub(crate) fn close(&self) {
        self.work().is_over = true;
        self.bell.notify_one();
    }

    /// Waits for something to do by the time that `now` tells; what has come meanwhile, or `None` if all is
    /// over. The node counts as busy with what it had to do until it says what is next.
    pub(crate) fn wait(&self, now: impl Fn() -> Time) -> Option<Vec<Frame>> {
        let mut work = self.work();
        loop {
            if work.is_over {
                return None;
            }
            if work.next.min(work.first) <= now() {
                work.next = work.next.min(work.first);
                work.first = Time::NEVER;
                return Some(std::mem::take(&mut work.frames));
            }
            work = self.bell.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The node has done what there was, and says what is next.
    pub(crate) fn done(&self, next: Time) {
        self.work().next = next;
    }
}
