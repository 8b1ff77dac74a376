//! A sender's paths: in which order packets take them, and which are left out for a while.
//!
//! Models: NDP §3.1.1 (every path once, in random order, then a new order: the load is even at all
//! times, which independent draws are not) and §3.2.3 (a scoreboard of acknowledged, refused and
//! lost packets by path; outliers are left out of the next order). The paper gives no threshold for
//! an outlier and no length for a penalty; ours are below, with their reasons.

use kernel::Stream;

/// What one packet adds to its path's score: sixteenths, so that a score can fade gently.
const ONE: u16 = 16;
/// A loss weighs as many refusals (our choice: queues refuse, broken links lose; one is enough to
/// leave a path out until its score has faded, which takes ten fadings).
const LOSS: u16 = 8 * ONE;
/// Below this score a path is not judged (our choice: two refusals, so that one is no pattern).
const JUDGED: u16 = 2 * ONE;
/// Each time, an eighth of each score fades (our choice).
const FADE: u16 = 8;
/// Scores fade at the end of the first round after so many packets (our choice: with a window of
/// 35 packets, every two round trips or so, however few paths there are).
const FADE_AFTER: usize = 64;
/// A path is an outlier when its share of refusals is above so many times the median (our choice:
/// equal paths under incast differ by chance, but seldom twofold; the mean was tried, and a few
/// broken paths raised it until none of them was an outlier).
const OUTLIER: u32 = 2;

/// What became of packets by one path, lately.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    delivered: u16,
    refused: u16,
}

impl Score {
    /// The share of refusals, in 65,536ths.
    fn share(&self) -> u32 {
        let of = u32::from(self.refused) + u32::from(self.delivered);
        (u32::from(self.refused) << 16) / of.max(1)
    }
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// It arrived whole.
    Delivered,
    /// It was trimmed or returned.
    Refused,
    /// Nothing was heard of it.
    Lost,
}

/// The paths of one flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paths {
    /// Number of the first place: flows that use a part of all paths use different parts.
    first: u16,
    /// From the number of a place to that of the next: where only a part is used, it is spread over
    /// all.
    stride: u16,
    /// All places; the round's own are in front.
    order: Vec<u16>,
    /// Places that the round still has to visit start here.
    at: usize,
    /// Places in this round.
    round: usize,
    /// Packets since scores faded.
    unfaded: usize,
    scores: Vec<Score>,
    /// Room to find the median in.
    shares: Vec<u32>,
}

impl Paths {
    /// Starts with all of `paths`, or `count_max` of them if there are more.
    pub(crate) fn reset(&mut self, paths: u32, count_max: u16, stream: &mut Stream) {
        assert!(paths > 0 && count_max > 0, "a flow without a path");
        // A header has room for 16 bits.
        let paths = paths.min(1 << 16);
        let count = paths.min(u32::from(count_max));
        let stride = paths / count;
        let spare = paths - (count - 1) * stride;
        let first = if count == paths { 0 } else { stream.below(u64::from(spare)) as u16 };
        (self.first, self.stride) = (first, stride as u16);
        self.order.clear();
        self.order.extend(0..count as u16);
        let count = self.order.len();
        self.scores.clear();
        self.scores.resize(count, Score::default());
        (self.at, self.unfaded) = (0, 0);
        self.round = self.order.len();
    }

    /// The path for the next packet: a place, to be noted with its fate.
    #[inline]
    pub(crate) fn next(&mut self, penalty: bool, stream: &mut Stream) -> u16 {
        if self.order.len() == 1 {
            return 0;
        }
        if self.at == self.round {
            self.begin_round(penalty);
        }
        let left = (self.round - self.at) as u64;
        let drawn = self.at + stream.below(left) as usize;
        self.order.swap(self.at, drawn);
        self.at += 1;
        self.order[self.at - 1]
    }

    /// The number in the packet's header for a place.
    #[inline]
    pub(crate) fn number(&self, place: u16) -> u16 {
        self.first + place * self.stride
    }

    /// The place of a number from a header.
    #[inline]
    pub(crate) fn place(&self, number: u16) -> u16 {
        number.wrapping_sub(self.first) / self.stride.max(1)
    }

    /// Notes what became of a packet that took the path at `place`.
    #[inline]
    pub(crate) fn note(&mut self, place: u16, fate: Fate) {
        let Some(score) = self.scores.get_mut(usize::from(place)) else { return };
        match fate {
            Fate::Delivered => score.delivered = score.delivered.saturating_add(ONE),
            Fate::Refused => score.refused = score.refused.saturating_add(ONE),
            Fate::Lost => score.refused = score.refused.saturating_add(LOSS),
        }
    }

    /// Sorts outliers out of the next round, and lets scores fade.
    fn begin_round(&mut self, penalty: bool) {
        self.at = 0;
        self.unfaded += self.round;
        self.round = self.order.len();
        if !penalty {
            return;
        }
        if self.scores.iter().all(|score| score.refused == 0) {
            return self.fade();
        }
        self.shares.clear();
        self.shares.extend(self.scores.iter().map(Score::share));
        let middle = self.shares.len() / 2;
        let median = *self.shares.select_nth_unstable(middle).1;
        let is_outlier =
            |score: &Score| score.refused >= JUDGED && score.share() > OUTLIER * median;
        let mut kept = 0;
        for at in 0..self.order.len() {
            if !is_outlier(&self.scores[usize::from(self.order[at])]) {
                self.order.swap(kept, at);
                kept += 1;
            }
        }
        self.round = if kept == 0 { self.order.len() } else { kept };
        self.fade();
    }

    fn fade(&mut self) {
        if self.unfaded < FADE_AFTER {
            return;
        }
        self.unfaded = 0;
        for score in &mut self.scores {
            score.delivered -= score.delivered.div_ceil(FADE);
            score.refused -= score.refused.div_ceil(FADE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream() -> Stream {
        Stream::new(7, "test", 0)
    }

    fn round(paths: &mut Paths, stream: &mut Stream) -> Vec<u16> {
        (0..paths.order.len()).map(|_| paths.next(true, stream)).collect()
    }

    #[test]
    fn each_round_takes_every_path_once_in_another_order() {
        for count in 1..=40 {
            let (mut paths, mut stream) = (Paths::default(), stream());
            paths.reset(u32::from(count), 256, &mut stream);
            let rounds: Vec<_> = (0..4).map(|_| round(&mut paths, &mut stream)).collect();
            for order in &rounds {
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..count).collect::<Vec<_>>(), "{count} paths");
            }
            assert!(count < 8 || rounds[0] != rounds[1], "{count} paths: {rounds:?}");
        }
    }

    #[test]
    fn orders_are_uniform() {
        // Six orders of three paths, 6,000 rounds: each 1,000 times, five deviations of about 29.
        let (mut paths, mut stream) = (Paths::default(), stream());
        paths.reset(3, 256, &mut stream);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..6_000 {
            *seen.entry(round(&mut paths, &mut stream)).or_insert(0u32) += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|&times| times.abs_diff(1_000) < 145), "{seen:?}");
    }

    #[test]
    fn a_path_that_loses_a_packet_is_left_out_for_a_while_and_comes_back() {
        let (mut paths, mut stream) = (Paths::default(), stream());
        paths.reset(8, 256, &mut stream);
        for place in round(&mut paths, &mut stream) {
            paths.note(place, if place == 3 { Fate::Lost } else { Fate::Delivered });
        }
        // Ten fadings, of ten rounds of seven packets each.
        let mut away = 0;
        loop {
            let taken: Vec<_> = (0..7).map(|_| paths.next(true, &mut stream)).collect();
            if taken.contains(&3) {
                break;
            }
            away += 1;
            taken.iter().for_each(|&place| paths.note(place, Fate::Delivered));
        }
        assert!((80..=120).contains(&away), "away for {away} rounds");
    }

    #[test]
    fn a_path_that_refuses_twice_as_often_is_left_out_and_equal_ones_are_not() {
        let (mut paths, mut stream) = (Paths::default(), stream());
        paths.reset(4, 256, &mut stream);
        let mut taken = [0u32; 4];
        for packet in 0..400u32 {
            let place = paths.next(true, &mut stream);
            taken[usize::from(place)] += 1;
            let refused = if place == 0 { packet % 10 < 9 } else { packet % 10 < 1 };
            paths.note(place, if refused { Fate::Refused } else { Fate::Delivered });
        }
        assert!(taken[0] * 4 < taken[1] && taken[1..].iter().all(|&n| n > 90), "{taken:?}");
    }

    #[test]
    fn where_all_refuse_none_is_left_out() {
        let (mut paths, mut stream) = (Paths::default(), stream());
        paths.reset(4, 256, &mut stream);
        for _ in 0..20 {
            let mut order = round(&mut paths, &mut stream);
            order.iter().for_each(|&place| paths.note(place, Fate::Refused));
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3]);
        }
    }

    #[test]
    fn a_part_of_many_paths_is_spread_over_all_of_them() {
        for paths in [1u32, 7, 256, 257, 300, 34_650, 65_535, 65_536, u32::MAX] {
            let mut flow = Paths::default();
            flow.reset(paths, 256, &mut stream());
            let count = flow.order.len() as u16;
            let limit = paths.min(65_536);
            assert_eq!(u32::from(count), limit.min(256));
            let numbers: Vec<_> = (0..count).map(|place| flow.number(place)).collect();
            assert!(numbers.is_sorted_by(|a, b| a < b), "{paths}: {numbers:?}");
            assert!(u32::from(numbers[usize::from(count) - 1]) < limit);
            let reach = numbers[usize::from(count) - 1] - numbers[0];
            assert!(u32::from(reach) * 2 + 2 >= limit, "{paths} paths, reach {reach}");
            let back: Vec<_> = numbers.iter().map(|&number| flow.place(number)).collect();
            assert_eq!(back, (0..count).collect::<Vec<_>>());
        }
    }
}
