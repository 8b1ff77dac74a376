//! The fair share of every flow: max-min fairness by water-filling, as an ideal to measure against.
//!
//! Models: Bertsekas and Gallager, "Data Networks", §6.5.2, with links that carry only a share of a
//! flow (Shoal §7.2 spreads each flow over all nodes, so a link of the second hop carries 1/N of
//! it). All rates rise together; a flow stops when a link on its way is full. Leaves out time: it is
//! the steady state of flows that all last for ever.
//!
//! The link that fills next is on top of a heap. A flow that stops leaves more to the others on its
//! links, so the level at which a link fills only ever rises: what the heap holds is a lower bound,
//! and is looked at again when it comes to the top. A look at all links for each level that fills
//! took minutes for the subflows of a thousand flows.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A flow's use of one link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Use {
    /// Index of the link.
    pub link: usize,
    /// How much of the flow's rate crosses the link: 1 for a flow on one path.
    pub share: f64,
}

/// The max-min fair rate of each flow: no rate can grow without making a smaller one smaller.
///
/// `capacities` of the links and the rates are in the same unit, whatever it is. A flow that uses
/// no link is unbounded: its rate is infinite. A flow with a limit of its own gets a link of its
/// own.
///
/// # Panics
/// If a capacity or share is negative or not a number, or a link does not exist.
///
/// ```
/// use rack::fairness::{Use, max_min};
/// let on = |links: &[usize]| links.iter().map(|&link| Use { link, share: 1.0 }).collect();
/// // Two links of 10 and 4: one flow over both, one on each.
/// let rates = max_min(&[10.0, 4.0], &[on(&[0, 1]), on(&[0]), on(&[1])]);
/// assert_eq!(rates, [2.0, 8.0, 2.0]);
/// ```
#[must_use]
pub fn max_min(capacities: &[f64], flows: &[Vec<Use>]) -> Vec<f64> {
    check(capacities, flows);
    let mut links: Vec<Link> =
        capacities.iter().map(|&free| Link { free, rising: 0.0, left: 0, flows: vec![] }).collect();
    for (flow, uses) in flows.iter().enumerate() {
        for used in uses.iter().filter(|used| used.share > 0.0) {
            links[used.link].rising += used.share;
            links[used.link].left += 1;
            links[used.link].flows.push(flow);
        }
    }
    let mut rates = vec![f64::INFINITY; flows.len()];
    let mut stopped = vec![false; flows.len()];
    let used = (0..links.len()).filter(|&link| links[link].left > 0);
    let mut open: BinaryHeap<Reverse<(Level, usize)>> =
        used.map(|link| Reverse((links[link].level(), link))).collect();
    while let Some(Reverse((level, link))) = open.pop() {
        if links[link].left == 0 {
            continue;
        }
        let water = links[link].level();
        if water > level {
            open.push(Reverse((water, link)));
            continue;
        }
        for flow in std::mem::take(&mut links[link].flows) {
            if std::mem::replace(&mut stopped[flow], true) {
                continue;
            }
            rates[flow] = water.0;
            for used in flows[flow].iter().filter(|used| used.share > 0.0) {
                links[used.link].stop(water.0, used.share);
            }
        }
    }
    rates
}

fn check(capacities: &[f64], flows: &[Vec<Use>]) {
    for (link, &capacity) in capacities.iter().enumerate() {
        assert!(capacity >= 0.0 && capacity.is_finite(), "link {link} has capacity {capacity}");
    }
    for used in flows.iter().flatten() {
        assert!(used.link < capacities.len(), "link {} of {}", used.link, capacities.len());
        assert!(used.share >= 0.0 && used.share.is_finite(), "share {} of a flow", used.share);
    }
}

/// The rate at which a link is full.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Level(f64);

impl Eq for Level {}

impl Ord for Level {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Level {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A link while the water rises.
struct Link {
    /// Capacity not taken by flows that have stopped.
    free: f64,
    /// Sum of the shares of the flows that still rise.
    rising: f64,
    /// How many uses that sum has left; it tells when nothing rises, for the sum keeps a rounding
    /// error.
    left: usize,
    /// The flows that use it.
    flows: Vec<usize>,
}

impl Link {
    /// The rate at which the rising flows fill the link.
    fn level(&self) -> Level {
        Level(self.free.max(0.0) / self.rising.max(f64::MIN_POSITIVE))
    }

    /// A flow that uses `share` of its rate here stops rising at `rate`.
    fn stop(&mut self, rate: f64, share: f64) {
        self.free -= rate * share;
        self.rising = (self.rising - share).max(0.0);
        self.left -= 1;
    }
}

#[cfg(test)]
mod tests {
    use kernel::Stream;
    use proptest::prelude::*;

    use super::*;

    /// Rounding allowed, relative to the largest capacity.
    const EPSILON: f64 = 1e-9;

    fn load(flows: &[Vec<Use>], rates: &[f64], link: usize) -> f64 {
        let uses = flows.iter().zip(rates);
        uses.flat_map(|(f, rate)| f.iter().filter(|u| u.link == link).map(move |u| u.share * rate))
            .sum()
    }

    /// The bottleneck condition, which holds for the max-min fair rates and no others: no link is
    /// over its capacity, and each flow has a full link on which no flow is faster.
    fn check_bottlenecks(
        capacities: &[f64],
        flows: &[Vec<Use>],
        rates: &[f64],
    ) -> Result<(), String> {
        for (link, &capacity) in capacities.iter().enumerate() {
            let load = load(flows, rates, link);
            if load > capacity + EPSILON {
                return Err(format!("link {link} carries {load} of {capacity}"));
            }
        }
        for (flow, uses) in flows.iter().enumerate() {
            let bottleneck = uses.iter().filter(|u| u.share > 0.0).any(|used| {
                let full = load(flows, rates, used.link) >= capacities[used.link] - EPSILON;
                let others = flows
                    .iter()
                    .zip(rates)
                    .filter(|(f, _)| f.iter().any(|u| u.link == used.link && u.share > 0.0));
                full && others.map(|(_, r)| *r).all(|r| r <= rates[flow] + EPSILON)
            });
            if !bottleneck && rates[flow].is_finite() {
                return Err(format!("flow {flow} at {} has no bottleneck", rates[flow]));
            }
        }
        Ok(())
    }

    /// Brute force in small integers: the feasible rates (in steps of one) that are largest when
    /// sorted, compared from the smallest up. That order defines max-min fairness.
    fn brute_force(capacities: &[u32], flows: &[Vec<usize>]) -> Vec<u32> {
        let top = *capacities.iter().max().unwrap();
        let mut best: Option<(Vec<u32>, Vec<u32>)> = None;
        let mut rates = vec![0; flows.len()];
        loop {
            let fits = capacities.iter().enumerate().all(|(link, &capacity)| {
                let load: u32 = flows
                    .iter()
                    .zip(&rates)
                    .filter(|(f, _)| f.contains(&link))
                    .map(|(_, r)| r)
                    .sum();
                load <= capacity
            });
            let mut sorted = rates.clone();
            sorted.sort_unstable();
            if fits && best.as_ref().is_none_or(|(other, _)| sorted > *other) {
                best = Some((sorted, rates.clone()));
            }
            let Some(at) = rates.iter().position(|&r| r < top) else { return best.unwrap().1 };
            rates[..at].fill(0);
            rates[at] += 1;
        }
    }

    #[test]
    fn agrees_with_brute_force_on_every_small_case_with_whole_rates() {
        // Three links, three flows over every choice of non-empty link sets; capacities of 0, 6 and
        // 12 make each fair share (halves, thirds) a whole number or multiple of one half; twice.
        let paths: Vec<Vec<usize>> =
            (1..8u32).map(|set| (0..3).filter(|&l| set >> l & 1 == 1).collect()).collect();
        let mut compared = 0;
        for case in 0..7 * 7 * 7 {
            let flows: Vec<_> =
                [case % 7, case / 7 % 7, case / 49].map(|p| paths[p].clone()).into_iter().collect();
            for capacities in [[6, 6, 12], [12, 6, 6], [6, 12, 12], [0, 6, 12]] {
                let uses: Vec<Vec<Use>> = flows
                    .iter()
                    .map(|f| f.iter().map(|&link| Use { link, share: 1.0 }).collect())
                    .collect();
                let rates = max_min(&capacities.map(f64::from), &uses);
                if rates.iter().any(|r| r.fract() != 0.0) {
                    continue;
                }
                let expected: Vec<f64> =
                    brute_force(&capacities, &flows).into_iter().map(f64::from).collect();
                assert_eq!(rates, expected, "{capacities:?} {flows:?}");
                compared += 1;
            }
        }
        assert!(compared > 1_000, "{compared}");
    }

    /// Random links, and flows over random sets of them with random shares.
    fn network() -> impl Strategy<Value = (Vec<f64>, Vec<Vec<Use>>)> {
        (1usize..8).prop_flat_map(|links| {
            let share = prop_oneof![Just(1.0), 0.01f64..2.0];
            let used = (0..links, share).prop_map(|(link, share)| Use { link, share });
            let flow = prop::collection::vec(used, 1..5);
            (prop::collection::vec(0.0f64..100.0, links), prop::collection::vec(flow, 1..30))
        })
    }

    proptest! {
        #[test]
        fn every_flow_has_a_bottleneck((capacities, flows) in network()) {
            let rates = max_min(&capacities, &flows);
            let found = check_bottlenecks(&capacities, &flows, &rates);
            prop_assert!(found.is_ok(), "{:?}: {:?}", found, rates);
        }

        #[test]
        fn the_order_of_flows_does_not_matter((capacities, flows) in network(), seed: u64) {
            let mut order: Vec<usize> = (0..flows.len()).collect();
            Stream::new(seed, "test", 0).shuffle(&mut order);
            let moved: Vec<_> = order.iter().map(|&f| flows[f].clone()).collect();
            let (rates, others) = (max_min(&capacities, &flows), max_min(&capacities, &moved));
            for (place, &flow) in order.iter().enumerate() {
                prop_assert!((rates[flow] - others[place]).abs() <= EPSILON);
            }
        }
    }

    #[test]
    fn the_check_itself_finds_unfair_rates() {
        let flows = vec![vec![Use { link: 0, share: 1.0 }]; 2];
        assert!(check_bottlenecks(&[10.0], &flows, &[5.0, 5.0]).is_ok());
        assert!(check_bottlenecks(&[10.0], &flows, &[4.0, 6.0]).is_err());
        assert!(check_bottlenecks(&[10.0], &flows, &[4.0, 4.0]).is_err());
        assert!(check_bottlenecks(&[10.0], &flows, &[6.0, 6.0]).is_err());
    }

    #[test]
    fn an_incast_shares_the_receiver_and_a_flow_without_links_is_unbounded() {
        let mut flows = vec![vec![Use { link: 0, share: 1.0 }]; 8];
        flows.push(vec![]);
        let rates = max_min(&[100.0, 7.0], &flows);
        assert_eq!(rates[..8], [12.5; 8]);
        assert_eq!(rates[8], f64::INFINITY);
    }

    #[test]
    #[should_panic(expected = "link 3 of 1")]
    fn a_link_that_does_not_exist_is_refused() {
        let _ = max_min(&[1.0], &[vec![Use { link: 3, share: 1.0 }]]);
    }
}
