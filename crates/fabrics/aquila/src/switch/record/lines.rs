//! What lines carry while recorded cells wait for them.

use std::collections::{BTreeMap, VecDeque};

use super::Key;

/// The list of a line is looked through for what nobody needs any more whenever it has doubled, and from so many
/// entries on (our choice).
const LOG_MIN: usize = 256;

/// What was on a line. Unit of instants: ps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) key: Key,
    pub(crate) bytes: u16,
}

/// What went by while something waited, of one packet: how long and how many bytes, and when it began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside {
    pub(crate) key: Key,
    pub(crate) at: u64,
    pub(crate) ps: u64,
    pub(crate) bytes: u64,
}

/// Since when somebody waits at a switch. Unit: ps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watched {
    /// Which time that it is so, counted.
    pub(super) epoch: u32,
    /// The first who waits.
    pub(super) oldest: u64,
}

/// A line.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    /// What it carried last.
    last: Option<Sent>,
    /// What it carried since somebody waits, and what was on it then.
    sent: VecDeque<Sent>,
    epoch: u32,
    trim_at: usize,
}

impl Log {
    /// Something goes on the line, when what was on it is through: nothing splits a cell (I13).
    pub(super) fn push(&mut self, sent: Sent, watched: Option<Watched>) {
        debug_assert!(
            self.last.is_none_or(|last| last.end <= sent.start),
            "{sent:?} splits {:?}",
            self.last
        );
        if let Some(Watched { epoch, oldest }) = watched {
            if self.epoch != epoch {
                self.epoch = epoch;
                self.sent.clear();
                self.sent.extend(self.last);
            }
            self.sent.push_back(sent);
            if self.sent.len() >= self.trim_at.max(LOG_MIN) {
                while self.sent.front().is_some_and(|first| first.end <= oldest) {
                    self.sent.pop_front();
                }
                self.trim_at = 2 * self.sent.len();
            }
        }
        self.last = Some(sent);
    }

    /// What was on it from `since` to `until`, for somebody who has waited since then.
    pub(super) fn between(&self, [since, until]: [u64; 2], epoch: u32) -> Vec<Beside> {
        let mut found: BTreeMap<Key, Beside> = BTreeMap::new();
        let mut add = |sent: &Sent| {
            let ps = sent.end.min(until).saturating_sub(sent.start.max(since));
            if ps > 0 {
                let new = Beside { key: sent.key, at: sent.start, ps: 0, bytes: 0 };
                let beside = found.entry(sent.key).or_insert(new);
                beside.ps += ps;
                beside.bytes += u64::from(sent.bytes);
            }
        };
        match self.epoch == epoch {
            true => self.sent.iter().for_each(&mut add),
            false => self.last.iter().for_each(&mut add),
        }
        found.into_values().collect()
    }
}

/// How long something was on a line, of all that went by.
pub(super) fn busy(beside: &[Beside]) -> u64 {
    beside.iter().map(|beside| beside.ps).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cells::ip::Pointer;

    proptest! {
        /// However often the list is trimmed, and whoever waited before, it tells what a list of everything tells.
        #[test]
        fn a_wait_is_told_all_that_went_by(
            lengths in prop::collection::vec((1..40u64, 1..30u64, 0..5u32), 1..900),
            (from, waits) in (0..900usize, 0..200u64),
        ) {
            let (mut log, mut all, mut now) = (Log::default(), Vec::new(), 0);
            let key = |slot: u32| Key::ingress(1, Pointer { slot, generation: 0 });
            for &(idle, long, slot) in &lengths {
                let start = now + idle;
                now = start + long;
                all.push(Sent { start, end: now, key: key(slot), bytes: 1 });
            }
            let since = all[from % all.len()].start + waits;
            // Nobody waits, then somebody, then that one.
            for sent in &all {
                let watched = match (sent.start >= since, sent.start % 1_000 < 500) {
                    (true, _) => Some(Watched { epoch: 1_000_000, oldest: since }),
                    (false, true) => None,
                    (false, false) => {
                        let epoch = (sent.start / 1_000) as u32 + 1;
                        Some(Watched { epoch, oldest: sent.start })
                    }
                };
                log.push(*sent, watched);
            }
            let until = now - waits.min(now.saturating_sub(since));
            let mut expected: BTreeMap<Key, (u64, u64)> = BTreeMap::new();
            for sent in &all {
                let ps = sent.end.min(until).saturating_sub(sent.start.max(since));
                if ps > 0 {
                    let sum = expected.entry(sent.key).or_default();
                    *sum = (sum.0 + ps, sum.1 + 1);
                }
            }
            let found = log.between([since, until], 1_000_000);
            let found: BTreeMap<_, _> =
                found.iter().map(|beside| (beside.key, (beside.ps, beside.bytes))).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
