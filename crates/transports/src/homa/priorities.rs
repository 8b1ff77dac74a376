//! Which priority a packet gets: computed once from the sizes of the workload's messages.
//!
//! Models: Homa §3.4. The share of unscheduled bytes among all bytes decides how many priorities are
//! for unscheduled packets; cutoffs divide unscheduled bytes evenly among these, shorter messages
//! higher; scheduled packets get one priority for each active message, the lowest first, so that the
//! higher ones are free when a shorter message comes. As in the paper's measurements (§4) sizes are
//! known beforehand; receivers that learn them from recent traffic are left out.

use kernel::{Bytes, Stream};
use rack::workload::sizes::Sizes;

use super::config::Config;

/// Draws that stand for a distribution (our choice: the cutoffs of the published workloads then
/// differ by less than their tables' steps).
const DRAWS: usize = 1 << 16;

/// How large messages are.
#[derive(Clone, PartialEq, Debug)]
pub struct Profile {
    /// Sizes with their weights, rising.
    points: Vec<(u64, f64)>,
}

impl Profile {
    /// Sizes with how often each occurs; any order, any sum.
    ///
    /// # Panics
    /// If there is none, or a weight is negative or no number.
    #[must_use]
    pub fn new(mut points: Vec<(Bytes, f64)>) -> Self {
        assert!(!points.is_empty(), "a profile of no messages");
        assert!(points.iter().all(|&(_, weight)| weight >= 0.0), "weights: {points:?}");
        points.sort_by_key(|&(size, _)| size);
        Self { points: points.into_iter().map(|(size, weight)| (size.get(), weight)).collect() }
    }

    /// The sizes that a workload draws.
    #[must_use]
    pub fn drawn(sizes: &Sizes, seed: u64) -> Self {
        let mut stream = Stream::new(seed, "homa/profile", 0);
        Self::new((0..DRAWS).map(|_| (sizes.draw(&mut stream), 1.0)).collect())
    }

    /// Bytes of all messages, by weight.
    fn bytes(&self) -> f64 {
        self.points.iter().map(|&(size, weight)| size as f64 * weight).sum()
    }

    /// Unscheduled bytes of each size, by weight.
    fn unscheduled(&self, limit: u64) -> impl Iterator<Item = (u64, f64)> + '_ {
        self.points.iter().map(move |&(size, weight)| (size, size.min(limit) as f64 * weight))
    }
}

/// How priorities are divided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Priorities {
    /// All.
    levels: u8,
    /// The most urgent of them are for unscheduled packets.
    unscheduled: u8,
    /// Largest message of each unscheduled priority but the last.
    cutoffs: Vec<u64>,
}

impl Priorities {
    /// What the configuration says, or else the profile demands, where `rtt_bytes` go unscheduled.
    #[must_use]
    pub fn new(config: &Config, profile: &Profile, rtt_bytes: Bytes) -> Self {
        let levels = config.priorities;
        let total: f64 = profile.unscheduled(rtt_bytes.get()).map(|(_, bytes)| bytes).sum();
        let unscheduled = match config.unscheduled_priorities {
            0 => {
                let share = total / profile.bytes();
                // The paper does not say how to round: to the nearest, but one at least for each
                // kind.
                let nearest = (f64::from(levels) * share + 0.5) as u8;
                nearest.clamp(1, (levels - 1).max(1))
            }
            given => given,
        };
        let cutoffs = match config.cutoffs.as_slice() {
            [] => cutoffs(profile, rtt_bytes.get(), total, unscheduled),
            given => given.iter().map(|size| size.get()).collect(),
        };
        Self { levels, unscheduled, cutoffs }
    }

    /// Priorities for scheduled packets; at least one, if need be a shared one.
    #[must_use]
    pub fn scheduled(&self) -> u8 {
        (self.levels - self.unscheduled).max(1)
    }

    /// Priorities for unscheduled packets.
    #[must_use]
    pub fn unscheduled(&self) -> u8 {
        self.unscheduled
    }

    /// The largest message of each unscheduled priority but the last.
    #[must_use]
    pub fn cutoffs(&self) -> &[u64] {
        &self.cutoffs
    }

    /// Priority of the unscheduled packets of a message.
    #[must_use]
    pub fn of_message(&self, size: Bytes) -> u8 {
        self.cutoffs.partition_point(|&cutoff| cutoff < size.get()) as u8
    }

    /// Priority of the scheduled packets of the message at `rank` among `active` ones: the longest
    /// gets the least urgent of all.
    #[must_use]
    pub fn of_rank(&self, rank: usize, active: usize) -> u8 {
        let above = (active - 1 - rank).min(usize::from(self.scheduled() - 1)) as u8;
        self.levels - 1 - above
    }
}

/// Sizes at which the unscheduled bytes of all shorter messages reach each equal part.
fn cutoffs(profile: &Profile, limit: u64, total: f64, parts: u8) -> Vec<u64> {
    let mut cutoffs = Vec::new();
    let mut below = 0.0;
    for (size, bytes) in profile.unscheduled(limit) {
        below += bytes;
        let full = below / total * f64::from(parts);
        // One size may fill several parts; these then share its priority.
        let due =
            cutoffs.len() + 1 < usize::from(parts) && full + 1e-9 >= (cutoffs.len() + 1) as f64;
        if due && cutoffs.last() != Some(&size) {
            cutoffs.push(size);
        }
    }
    cutoffs
}

#[cfg(test)]
mod tests {
    use rack::workload::tables::Published;

    use super::*;

    fn split(points: &[(u64, f64)], rtt_bytes: u64, levels: u8) -> Priorities {
        let config = Config { priorities: levels, ..Config::default() };
        let points = points.iter().map(|&(size, weight)| (Bytes::new(size), weight)).collect();
        Priorities::new(&config, &Profile::new(points), Bytes::new(rtt_bytes))
    }

    #[test]
    fn a_small_distribution_is_divided_as_by_hand() {
        // Of each 100 B, 1,000 B and 98,900 B one: 100 KB, of which 100 + 1,000 + 10,000 go
        // unscheduled: 11.1 %, 0.9 of 8 priorities, so one.
        let split = split(&[(100, 1.0), (1_000, 1.0), (98_900, 1.0)], 10_000, 8);
        assert_eq!((split.unscheduled(), split.scheduled()), (1, 7));
        assert!(split.cutoffs().is_empty());
    }

    #[test]
    fn cutoffs_divide_unscheduled_bytes_evenly() {
        // 12 + 12 + 12 of 72 KB go unscheduled: half, so four of eight priorities, 9 KB each. They end
        // at 9, 18 and 27 KB: with the first, the second and the third size.
        let split = split(&[(1_000, 12.0), (2_000, 6.0), (16_000, 3.0)], 4_000, 8);
        assert_eq!((split.unscheduled(), split.scheduled()), (4, 4));
        assert_eq!(split.cutoffs(), [1_000, 2_000, 16_000]);
        let levels: Vec<_> = [1, 1_000, 1_001, 2_000, 2_001, 16_000, 16_001]
            .map(|size| split.of_message(Bytes::new(size)))
            .into();
        assert_eq!(levels, [0, 0, 1, 1, 2, 2, 3]);
    }

    #[test]
    fn scheduled_priorities_are_used_lowest_first() {
        let split = split(&[(1_000, 1.0), (31_000, 1.0)], 1_000, 8);
        assert_eq!((split.unscheduled(), split.scheduled()), (1, 7));
        assert_eq!(split.of_rank(0, 1), 7);
        assert_eq!([0, 1, 2].map(|rank| split.of_rank(rank, 3)), [5, 6, 7]);
        // More active messages than priorities: the shortest share the highest.
        assert_eq!([0, 1, 2, 8].map(|rank| split.of_rank(rank, 9)), [1, 1, 1, 7]);
    }

    #[test]
    fn one_priority_serves_both_kinds() {
        let split = split(&[(1_000, 1.0), (31_000, 1.0)], 1_000, 1);
        assert_eq!((split.unscheduled(), split.scheduled()), (1, 1));
        assert_eq!((split.of_message(Bytes::new(5)), split.of_rank(0, 1)), (0, 0));
    }

    #[test]
    fn the_published_workloads_get_more_scheduled_priorities_the_longer_their_messages() {
        let config = Config::default();
        let split = |name: &str| {
            let published = Published::named(name)[0];
            let table = published.table(published.reading);
            let profile = Profile::drawn(&Sizes::Table { table, name: name.into() }, 1);
            Priorities::new(&config, &profile, Bytes::new(9_700))
        };
        let names = [
            "homa_w1_fb_memcached",
            "homa_w2_google_search_rpc",
            "homa_w3_google_all_rpc",
            "homa_w4_fb_hadoop",
            "homa_w5_dctcp_websearch",
        ];
        let found = names.map(|name| split(name).unscheduled());
        assert_eq!(found, [7, 6, 3, 1, 1]);
    }
}
