//! Water-filling: all rates rise together, in proportion to their weights, until links are full.
//!
//! Models: R2C2 §3.3.1 (claims M17, M18): a flow stops when a link on its way is full, or when it has
//! what its host can send. The *level* of the water is a rate for a weight of one.
//!
//! Which link fills next is [`Links`]' to say. Flows that are spread over all links are taken out of
//! them together, source by source.
//!
//! The water stops rising when all is known that was asked for, and rises on from there if more is
//! asked for before a flow has come or gone: nodes with one view are served by one computation.

use std::cmp::Reverse;

use super::bundles::Bundles;
use super::legs::{Half, Legs};
use super::links::{Links, rank};
use super::terms::Courses;
use super::tier::{Bundle, Tier, Weights};
use super::waterfill::{Place, Whose};

/// What a computation looks at and does not change.
pub(super) struct Scene<'a> {
    pub(super) legs: &'a Legs,
    pub(super) bundles: &'a Bundles,
    /// The tier under way, and its number.
    pub(super) tier: &'a Tier,
    pub(super) number: u32,
    /// Whose rates are asked for.
    pub(super) whose: Whose,
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
    links: Links,
    /// The flows of a tier that their hosts limit, the lowest level last.
    limits: Vec<Limit>,
    /// Bundles that stop in a round.
    stopping: Vec<u32>,
    spread: Spreading,
    /// The last round, if links do not account for it yet: its level, and the link that was full.
    unsettled: Option<(f64, Option<u32>)>,
    /// How many tiers are done, and whether the next has set out.
    done: usize,
    is_poured: bool,
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
    /// The same by link, in quanta.
    stopped: Vec<u64>,
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

    /// How many tiers have stopped altogether.
    pub(super) fn tiers_done(&self) -> usize {
        self.done
    }

    /// Begins a computation, with the weights of all bundles.
    pub(super) fn begin(&mut self, capacities: &[f64], weights: &[u32]) {
        self.rounds = 0;
        (self.done, self.is_poured, self.unsettled) = (0, false, None);
        self.levels.clear();
        self.levels.resize(weights.len(), f64::NAN);
        self.rising.clear();
        self.rising.extend_from_slice(weights);
        self.links.begin(capacities);
    }

    /// Whether flows of a bundle rise.
    fn rises(&self, bundle: u32) -> bool {
        self.rising[bundle as usize] > 0
    }

    /// The first bundle that is asked for and rises, among those from place `from` on; and its place.
    fn wanted(&self, scene: &Scene<'_>, from: usize) -> Option<(usize, u32)> {
        match scene.whose {
            Whose::All => {
                let place = self.rising[from..].iter().position(|&weight| weight > 0)?;
                Some((from + place, (from + place) as u32))
            }
            Whose::From(node) => {
                let own = scene.bundles.of_source(node).iter().copied().enumerate().skip(from);
                { own }.find(|&(_, bundle)| self.rises(bundle))
            }
        }
    }

    /// Lets the flows of the next tier rise in what earlier ones have left, until all has stopped that
    /// is asked for: whether that is so. If not, the tier is done.
    pub(super) fn tier(
        &mut self,
        courses: &mut impl Courses,
        scene: &Scene<'_>,
        places: &[Place],
    ) -> bool {
        let mut wanted = self.wanted(scene, 0);
        while let Some((place, bundle)) = wanted {
            if !self.is_poured {
                self.pour(scene, places);
                self.spread.resize(courses);
            }
            self.settle(courses, scene);
            if !self.round(scene) {
                self.overflow(scene);
                self.links.account_all(scene.tier);
                (self.done, self.is_poured) = (self.done + 1, false);
                return false;
            }
            if !self.rises(bundle) {
                wanted = self.wanted(scene, place + 1);
            }
        }
        true
    }

    /// Sets the state of the links and flows of a tier.
    fn pour(&mut self, scene: &Scene<'_>, places: &[Place]) {
        let tier = scene.tier;
        self.is_poured = true;
        self.links.pour(tier, scene.bundles.all.len());
        self.spread.restart(&tier.spread.bundles);
        self.links.expect(self.expected(scene));
        self.limits.clear();
        self.limits.extend(tier.limited.iter().map(|&place| {
            let Place { bundle, weight, demand, .. } = places[place as usize];
            Limit { rank: rank(demand / f64::from(weight)), bundle, weight }
        }));
        // Of flows with the same level the order does not matter as long as it is always the same.
        let course = |limit: &Limit| scene.bundles.all[limit.bundle as usize].course;
        self.limits.sort_unstable_by_key(|limit| Reverse((limit.rank, course(limit))));
    }

    /// A level that what is asked for reaches, and seldom exceeds by much.
    fn expected(&self, scene: &Scene<'_>) -> f64 {
        let Whose::From(node) = scene.whose else { return f64::INFINITY };
        let rising = scene.bundles.of_source(node).iter().filter(|&&bundle| self.rises(bundle));
        let own = rising.map(|&bundle| &scene.bundles.all[bundle as usize]);
        let here = own.filter(|bundle| bundle.tier == scene.number);
        here.map(|bundle| self.links.least(bundle)).fold(0.0, f64::max)
    }

    /// Lets the water rise until flows stop. False if nothing limits what still rises.
    fn round(&mut self, scene: &Scene<'_>) -> bool {
        let link = self.links.next(scene.tier);
        let full = link.map_or(u64::MAX, |(rank, _)| rank);
        let limit = self.limits.last().map(|limit| limit.rank).filter(|&rank| rank <= full);
        match (limit, link) {
            (Some(rank), _) => {
                self.stop_limited(scene, rank);
                self.unsettled = Some((f64::from_bits(rank), None));
            }
            (None, Some((rank, link))) => {
                self.stop_link(scene, f64::from_bits(rank), link);
                self.unsettled = Some((f64::from_bits(rank), Some(link)));
            }
            (None, None) => return false,
        }
        true
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
            if self.rises(bundle) {
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
        stopping.extend(members.filter(|&bundle| self.rises(bundle)));
        let Self { spread, rising, .. } = self;
        spread.bundles.retain(|&bundle| {
            let course = &scene.bundles.all[bundle as usize].course;
            let (source, destination) = (course.source.index(), course.destination.index());
            let is_rising = rising[bundle as usize] > 0;
            let stops = is_rising && scene.legs.crosses(source, destination, link as usize);
            if stops {
                stopping.push(bundle);
            }
            is_rising && !stops
        });
        stopping.sort_unstable_by_key(|&bundle| scene.bundles.all[bundle as usize].course);
        for &bundle in &stopping {
            self.stop(scene, bundle, self.rising[bundle as usize], level);
        }
        self.rounds += u64::from(!stopping.is_empty());
        self.stopping = stopping;
    }

    /// Stops flows of a bundle, of this weight, at a level.
    fn stop(&mut self, scene: &Scene<'_>, at: u32, weight: u32, level: f64) {
        let bundle = &scene.bundles.all[at as usize];
        if bundle.is_spread() {
            self.spread.stop(bundle, weight);
        } else {
            self.links.stop(at, bundle, weight, level);
        }
        self.rising[at as usize] -= weight;
        if self.rising[at as usize] == 0 {
            self.levels[at as usize] = level;
        }
    }

    /// Takes the spread flows that stopped in the last round out of the links, and closes the link that
    /// was full. Put off until another round follows: what links have left matters to nobody once all
    /// has stopped that is wanted.
    fn settle(&mut self, courses: &mut impl Courses, scene: &Scene<'_>) {
        let Some((level, full)) = self.unsettled.take() else { return };
        if self.spread.gather(courses, scene.legs) {
            self.links.stop_spread(&self.spread.stopped, level);
        }
        if let Some(link) = full {
            self.links.close(scene.tier, link);
        }
    }

    /// No link limits what still rises: flows to their own source.
    fn overflow(&mut self, scene: &Scene<'_>) {
        for (at, bundle) in scene.bundles.all.iter().enumerate() {
            if bundle.tier == scene.number && self.rising[at] > 0 {
                self.rising[at] = 0;
                self.levels[at] = f64::INFINITY;
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
        stopped.resize(courses.links(), 0);
        for (half, weights) in [(Half::Leaving, leaving), (Half::Arriving, arriving)] {
            weights.settle(|node, weight| legs.add(courses, half, node, weight, stopped));
        }
        true
    }
}
