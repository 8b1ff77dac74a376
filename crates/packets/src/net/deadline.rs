//! An instant that moves, with one event in the calendar however often it does.

use kernel::Time;

/// When something is to happen; an event that comes earlier looks, and goes back to sleep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    /// When it is to happen; `NEVER`: not at all.
    at: Time,
    /// When its event comes; `NEVER`: it has none.
    event: Time,
}

impl Deadline {
    pub(super) const UNSET: Self = Self { at: Time::NEVER, event: Time::NEVER };

    /// Sets or moves it. Returns when to have an event, if another is needed.
    pub(super) fn set(&mut self, at: Time) -> Option<Time> {
        self.at = at;
        if at >= self.event {
            return None;
        }
        self.event = at;
        Some(at)
    }

    pub(super) fn cancel(&mut self) {
        self.at = Time::NEVER;
    }

    /// An event has come. Says whether it is due now, and when to have another event, if at all.
    pub(super) fn look(&mut self, now: Time) -> (bool, Option<Time>) {
        if self.event != now {
            return (false, None);
        }
        self.event = Time::NEVER;
        if self.at == now {
            self.at = Time::NEVER;
            return (true, None);
        }
        self.event = self.at;
        (false, (self.at != Time::NEVER).then_some(self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_when_it_was_last_set_to_with_few_events() {
        let at = Time::from_ps;
        let mut deadline = Deadline::UNSET;
        assert_eq!(deadline.set(at(10)), Some(at(10)));
        // Later: the event that is there will do.
        assert_eq!(deadline.set(at(25)), None);
        assert_eq!(deadline.look(at(10)), (false, Some(at(25))));
        // Earlier: another is needed, and the one at 25 means nothing any more.
        assert_eq!(deadline.set(at(20)), Some(at(20)));
        assert_eq!(deadline.look(at(20)), (true, None));
        assert_eq!(deadline.look(at(25)), (false, None));
        // Cancelled, and set again before the event came.
        assert_eq!(deadline.set(at(40)), Some(at(40)));
        deadline.cancel();
        assert_eq!(deadline.look(at(40)), (false, None));
        assert_eq!(deadline.set(at(50)), Some(at(50)));
        assert_eq!(deadline.look(at(50)), (true, None));
    }
}
