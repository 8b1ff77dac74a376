//! Water-filling: all rates rise together, in proportion to their weights, until links are full.
//!
//! Models: R2C2 §3.3.1 (claims M17, M18): a flow stops when a link on its way is full, or when it has
//! what its host can send. The *level* of the water is a rate for a weight of one.
//!
//! The paper looks at all links in every round: O(NL + N²) for N flows and L links. Here the link
//! that fills next is on top of a heap. A flow that stops leaves more to the others on its links, so
//! the level at which a link fills only ever rises: what the heap holds is a lower bound, looked at
//! again when it comes to the top. That leaves O(U log L), U being the uses of links by flows. Flows
//! that are spread over all links are taken out of them together, source by source.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::legs::{Half, Legs};
use super::terms::Courses;
use super::tier::{Bundle, Tier, Weights};
use super::waterfill::{Place, Whose};

/// A link that fills above a bound by less than this share may fill below it, but for rounding. Far
/// above the rounding of a quotient (our choice).
const ROUNDING: f64 = 1e-9;

/// A level as a number that sorts alike: a float that is not negative, by its bits.
fn rank(level: f64) -> u64 {
    level.max(0.0).to_bits()
}

/// What a computation looks at and does not change.
pub(super) struct Scene<'a> {
    pub(super) legs: &'a Legs,
    pub(super) bundles: &'a [Bundle],
    /// The tier under way, and its number.
    pub(super) tier: &'a Tier,
    pub(super) number: u32,
}

/// A flow that its host limits.
#[derive(Clone, Copy, Debug)]
struct Limit {
    rank: u64,
    bundle: u32,
    weight: u32,
}

/// The state of a computation; nothing in it is allocated anew once it is warm.
#[derive(Clone, Debug, Default)]
pub(super) struct Fill {
    /// By bundle: the level at which it stopped, not a number before.
    levels: Vec<f64>,
    /// By bundle: the weight of its flows that still rise.
    rising: Vec<u32>,
    /// By link: capacity left by the flows that have stopped.
    room: Vec<f64>,
    /// By link: the weight of the flows that rise on it. Exact.
    weight: Vec<f64>,
    /// Links by the level at which they fill, or a lower one.
    links: BinaryHeap<Reverse<(u64, u32)>>,
    /// The flows of a tier that their hosts limit, the lowest level last.
    limits: Vec<Limit>,
    /// Bundles that stop in a round.
    stopping: Vec<u32>,
    spread: Spreading,
    whose: Option<u32>,
    /// Bundles whose level is asked for and not yet known.
    wanted: usize,
    rounds: u64,
}

/// The state of the flows that are spread over all links.
#[derive(Clone, Debug, Default)]
struct Spreading {
    /// Bundles that rise, and some that have stopped.
    bundles: Vec<u32>,
    /// Weights that stop in a round, by source and by destination.
    leaving: Weights,
    arriving: Weights,
    /// The same by link.
    stopped: Vec<f64>,
}

impl Fill {
    /// The level at which a bundle stopped; not a number if that is not known.
    pub(super) fn level(&self, bundle: u32) -> f64 {
        self.levels.get(bundle as usize).copied().unwrap_or(f64::NAN)
    }

    /// A bundle is another one from now on.
    pub(super) fn forget(&mut self, bundle: u32) {
        if let Some(level) = self.levels.get_mut(bundle as usize) {
            *level = f64::NAN;
        }
    }

    pub(super) fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Whether all is known that was asked for.
    pub(super) fn is_done(&self) -> bool {
        self.wanted == 0
    }

    /// Begins a computation.
    pub(super) fn begin(&mut self, capacities: &[f64], bundles: &[Bundle], whose: Whose) {
        self.whose = match whose {
            Whose::All => None,
            Whose::From(node) => Some(node.get()),
        };
        self.rounds = 0;
        self.levels.clear();
        self.levels.resize(bundles.len(), f64::NAN);
        self.rising.clear();
        self.rising.extend(bundles.iter().map(|bundle| bundle.weight));
        self.wanted =
            bundles.iter().filter(|bundle| bundle.weight > 0 && self.wants(bundle)).count();
        self.room.clear();
        self.room.extend_from_slice(capacities);
    }

    fn wants(&self, bundle: &Bundle) -> bool {
        self.whose.is_none_or(|node| node == bundle.course.source.get())
    }

    /// Lets the flows of a tier rise in what earlier ones have left.
    pub(super) fn tier(&mut self, courses: &mut impl Courses, scene: &Scene<'_>, places: &[Place]) {
        self.pour(scene, places);
        self.spread.resize(courses);
        while self.wanted > 0 {
            let link = self.next_link();
            let full = link.map_or(u64::MAX, |(rank, _)| rank);
            match (self.limits.last(), link) {
                (Some(limit), _) if limit.rank <= full => {
                    let level = f64::from_bits(limit.rank);
                    self.stop_limited(scene, limit.rank);
                    self.settle_spread(courses, scene, level);
                }
                (_, Some((rank, link))) => {
                    let level = f64::from_bits(rank);
                    self.stop_link(scene, level, link);
                    self.settle_spread(courses, scene, level);
                    // What rounding has left of it is nothing.
                    self.room[link as usize] = 0.0;
                }
                _ => return self.overflow(scene),
            }
        }
    }

    /// Sets the state of the links and flows of a tier.
    fn pour(&mut self, scene: &Scene<'_>, places: &[Place]) {
        let tier = scene.tier;
        self.weight.clear();
        self.weight.extend_from_slice(&tier.loads);
        for (weight, spread) in self.weight.iter_mut().zip(&tier.spread.loads) {
            *weight += spread;
        }
        self.spread.restart(&tier.spread.bundles);
        let mut links = std::mem::take(&mut self.links).into_vec();
        links.clear();
        let rooms = (0..).zip(self.room.iter().zip(&self.weight));
        let enough = self.enough(scene) * (1.0 + ROUNDING);
        let used =
            rooms.filter(|(_, (room, weight))| **weight > 0.0 && **room <= enough * **weight);
        links.extend(used.map(|(link, (room, weight))| Reverse((rank(room / weight), link))));
        self.links = BinaryHeap::from(links);
        self.limits.clear();
        self.limits.extend(tier.limited.iter().map(|&place| {
            let Place { bundle, weight, demand, .. } = places[place as usize];
            Limit { rank: rank(demand / f64::from(weight)), bundle, weight }
        }));
        // Of flows with the same level the order does not matter as long as it is always the same.
        let course = |limit: &Limit| scene.bundles[limit.bundle as usize].course;
        self.limits.sort_unstable_by_key(|limit| Reverse((limit.rank, course(limit))));
    }

    /// A level at which all of a tier has stopped that matters: links that fill later do not. What is
    /// left to later tiers depends on all of an earlier one.
    fn enough(&self, scene: &Scene<'_>) -> f64 {
        let here = scene.bundles.iter().filter(|it| it.tier == scene.number && it.weight > 0);
        let (mut all, mut own, mut count) = (0.0f64, 0.0f64, 0);
        for bundle in here {
            all = all.max(bundle.level_max());
            if self.wants(bundle) {
                own = own.max(bundle.level_max());
                count += 1;
            }
        }
        if count < self.wanted { all } else { own }
    }

    /// The link that fills next, and the level at which it does.
    fn next_link(&mut self) -> Option<(u64, u32)> {
        while let Some(mut top) = self.links.peek_mut() {
            let Reverse((bound, link)) = *top;
            let weight = self.weight[link as usize];
            if weight == 0.0 {
                PeekMut::pop(top);
                continue;
            }
            let level = rank(self.room[link as usize] / weight);
            if level <= bound {
                return Some((bound, link));
            }
            *top = Reverse((level, link));
        }
        None
    }

    /// Stops the flows that have at this level what their hosts can send.
    fn stop_limited(&mut self, scene: &Scene<'_>, rank: u64) {
        let level = f64::from_bits(rank);
        let mut has_stopped = false;
        while let Some(&Limit { bundle, .. }) = self.limits.last().filter(|last| last.rank == rank)
        {
            let mut weight = 0;
            let is_same = |last: &Limit| last.rank == rank && last.bundle == bundle;
            while let Some(limit) = self.limits.pop_if(|last| is_same(last)) {
                weight += limit.weight;
            }
            if self.rising[bundle as usize] > 0 {
                self.stop(scene, bundle, weight, level);
                has_stopped = true;
            }
        }
        self.rounds += u64::from(has_stopped);
    }

    /// Stops the flows that rise on a full link.
    fn stop_link(&mut self, scene: &Scene<'_>, level: f64, link: u32) {
        let mut stopping = std::mem::take(&mut self.stopping);
        stopping.clear();
        let members = scene.tier.members[link as usize].iter().map(|member| member.bundle);
        stopping.extend(members.filter(|&bundle| self.rising[bundle as usize] > 0));
        let Self { spread, rising, .. } = self;
        spread.bundles.retain(|&bundle| {
            let course = &scene.bundles[bundle as usize].course;
            let (source, destination) = (course.source.index(), course.destination.index());
            let is_rising = rising[bundle as usize] > 0;
            let stops = is_rising && scene.legs.crosses(source, destination, link as usize);
            if stops {
                stopping.push(bundle);
            }
            is_rising && !stops
        });
        stopping.sort_unstable_by_key(|&bundle| scene.bundles[bundle as usize].course);
        for &bundle in &stopping {
            self.stop(scene, bundle, self.rising[bundle as usize], level);
        }
        self.rounds += u64::from(!stopping.is_empty());
        self.stopping = stopping;
    }

    /// Stops flows of a bundle, of this weight, at a level.
    fn stop(&mut self, scene: &Scene<'_>, at: u32, weight: u32, level: f64) {
        let bundle = &scene.bundles[at as usize];
        for entry in &bundle.entries {
            let stopped = f64::from(weight) * entry.share;
            self.weight[entry.link as usize] -= stopped;
            self.room[entry.link as usize] -= level * stopped;
        }
        if bundle.is_spread() {
            self.spread.stop(bundle, weight);
        }
        self.rising[at as usize] -= weight;
        if self.rising[at as usize] == 0 {
            self.levels[at as usize] = level;
            self.wanted -= usize::from(self.wants(bundle));
        }
    }

    /// Takes the spread flows that stop in this round out of the links.
    fn settle_spread(&mut self, courses: &mut impl Courses, scene: &Scene<'_>, level: f64) {
        // What links have left matters to nobody if all have stopped that are asked for.
        if self.wanted == 0 || !self.spread.gather(courses, scene.legs) {
            return;
        }
        let links = self.weight.iter_mut().zip(&mut self.room).zip(&self.spread.stopped);
        for ((weight, room), stopped) in links {
            *weight -= stopped;
            *room -= level * stopped;
        }
    }

    /// No link limits what still rises: flows to their own source.
    fn overflow(&mut self, scene: &Scene<'_>) {
        for (at, bundle) in scene.bundles.iter().enumerate() {
            if bundle.tier == scene.number && self.rising[at] > 0 {
                self.rising[at] = 0;
                self.levels[at] = f64::INFINITY;
                self.wanted -= usize::from(self.wants(bundle));
            }
        }
    }
}

impl Spreading {
    /// Lets these bundles rise. A computation that was over early may have left something.
    fn restart(&mut self, bundles: &[u32]) {
        self.bundles.clear();
        self.bundles.extend_from_slice(bundles);
        self.leaving.clear();
        self.arriving.clear();
    }

    fn resize(&mut self, courses: &impl Courses) {
        if !self.bundles.is_empty() {
            self.leaving.resize(courses.nodes());
            self.arriving.resize(courses.nodes());
        }
    }

    /// Counts the weight of flows that stop.
    fn stop(&mut self, bundle: &Bundle, weight: u32) {
        self.leaving.change(bundle.course.source.index(), weight.into());
        self.arriving.change(bundle.course.destination.index(), weight.into());
    }

    /// Sums by link what was counted; says whether there was anything.
    fn gather(&mut self, courses: &mut impl Courses, legs: &Legs) -> bool {
        let Self { leaving, arriving, stopped, .. } = self;
        if leaving.is_settled() {
            return false;
        }
        stopped.clear();
        stopped.resize(courses.links(), 0.0);
        for (half, weights) in [(Half::Leaving, leaving), (Half::Arriving, arriving)] {
            weights.settle(|node, weight| legs.add(courses, half, node, weight as f64, stopped));
        }
        true
    }
}
