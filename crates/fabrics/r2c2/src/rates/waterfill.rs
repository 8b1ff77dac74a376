//! Who shares the links: flows come, go, and get their rates.
//!
//! Models: R2C2 §3.3.1, §3.3.2 (claims M17, M18, M20 to M23). Flows of one course and one priority
//! are computed as one bundle, of the sum of their weights. A table of who uses which link is kept
//! from one computation to the next, so that going over to a view in which a few flows differ costs
//! what these flows cost. Sums in it are exact (`shares`), so whatever the way to a set of flows,
//! their rates are the same to the last bit.
//!
//! Leaves out rates that follow each flow without filling anew, as the oracle of packet networks
//! does: they are the same numbers but for rounding, which depends on the way there, and nodes with
//! equal views must not differ (claim I05).

use kernel::Rate;
use rack::NodeId;
use rack::topology::Topology;

use super::fill::{Fill, Scene};
use super::legs::Legs;
use super::shares::{WEIGHT_MAX, whole};
use super::terms::{Course, Courses, Terms};
use super::tier::{Bundle, Entry, Member, Tier};
use crate::routing::Protocol;

/// What flows may take of each directed link: its rate less the headroom, in bit/s, by port.
///
/// # Panics
/// Unless `headroom` is a fraction: at least 0 and less than 1.
#[must_use]
pub fn capacities(topology: &Topology, headroom: f64) -> Vec<f64> {
    assert!((0.0..1.0).contains(&headroom), "a headroom of {headroom}; expected 0 up to 1");
    let rates = topology.ports().iter().map(|port| port.link.rate.as_bps() as f64);
    rates.map(|rate| rate * (1.0 - headroom)).collect()
}

/// Whose rates are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whose {
    /// Those of all flows.
    All,
    /// Those of the flows that start at a node, which are all that it needs (§3.3.1). The same
    /// numbers, sooner.
    From(NodeId),
}

/// A flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) bundle: u32,
    pub(super) weight: u32,
    /// In bit/s; infinite if its host is no limit.
    pub(super) demand: f64,
    /// Its place among the limited flows of its tier.
    limited_at: u32,
}

/// Stands for a place without a flow.
const VACANT: Place = Place { bundle: u32::MAX, weight: 0, demand: 0.0, limited_at: 0 };

/// Flows, the links they share, and their rates.
///
/// ```
/// use kernel::Rate;
/// use r2c2::rates::{Course, Courses, Terms, Waterfill, Whose};
/// use r2c2::routing::Protocol;
/// use rack::NodeId;
///
/// /// Two nodes and a link each way.
/// struct Wire;
/// impl Courses for Wire {
///     fn nodes(&self) -> usize { 2 }
///     fn links(&self) -> usize { 2 }
///     fn uses(&mut self, course: Course, mut visit: impl FnMut(usize, f64)) {
///         visit(course.source.index(), 1.0);
///     }
///     fn leaving(&mut self, _: NodeId, _: impl FnMut(usize, f64)) {}
///     fn arriving(&mut self, _: NodeId, _: impl FnMut(usize, f64)) {}
/// }
///
/// let (source, destination) = (NodeId::new(0), NodeId::new(1));
/// let course = Course { source, destination, protocol: Protocol::Rps };
/// let mut rates = Waterfill::new(Wire, vec![10e9, 10e9]);
/// rates.join(0, course, Terms::default());
/// rates.join(1, course, Terms { demand: Some(Rate::from_gbps(2)), ..Terms::default() });
/// rates.fill(Whose::All);
/// assert_eq!((rates.rate(0), rates.rate(1)), (8e9, 2e9));
/// ```
#[derive(Clone, Debug)]
pub struct Waterfill<C> {
    courses: C,
    capacities: Vec<f64>,
    /// Tiers, in the order in which their priorities were first seen, and their order by priority.
    tiers: Vec<Tier>,
    order: Vec<u32>,
    bundles: Vec<Bundle>,
    free: Vec<u32>,
    /// By source: its bundles.
    of_source: Vec<Vec<u32>>,
    places: Vec<Place>,
    legs: Legs,
    fill: Fill,
}

impl<C: Courses> Waterfill<C> {
    /// Links of these capacities, in bit/s, and no flow.
    ///
    /// # Panics
    /// If the capacities are not as many as the links, or one is not a number of bits.
    #[must_use]
    pub fn new(courses: C, capacities: Vec<f64>) -> Self {
        assert_eq!(capacities.len(), courses.links(), "capacities of all links");
        for (link, &capacity) in capacities.iter().enumerate() {
            assert!(capacity >= 0.0 && capacity.is_finite(), "link {link} has {capacity} bit/s");
        }
        let of_source = vec![Vec::new(); courses.nodes()];
        Self {
            courses,
            capacities,
            tiers: Vec::new(),
            order: Vec::new(),
            bundles: Vec::new(),
            free: Vec::new(),
            of_source,
            places: Vec::new(),
            legs: Legs::default(),
            fill: Fill::default(),
        }
    }

    /// Whether there is a flow in a place.
    #[must_use]
    pub fn has(&self, place: u32) -> bool {
        self.places.get(place as usize).is_some_and(|flow| flow.weight > 0)
    }

    /// Puts a flow in a place of the caller's choice; places are best small numbers. A flow that goes
    /// to its own source takes nothing of any link.
    ///
    /// # Panics
    /// If the place is taken, or the weights of a priority sum to more than 2²².
    pub fn join(&mut self, place: u32, course: Course, terms: Terms) {
        if self.places.len() <= place as usize {
            self.places.resize(place as usize + 1, VACANT);
        }
        assert!(!self.has(place), "place {place} is taken");
        let tier = self.tier(terms.priority);
        let bundle = self.bundle(tier, course);
        let weight = u32::from(terms.weight.get());
        let demand = terms.demand.map_or(f64::INFINITY, |rate| rate.as_bps() as f64);
        self.places[place as usize] = Place { bundle, weight, demand, limited_at: 0 };
        self.bundles[bundle as usize].flows += 1;
        self.reweigh(bundle, i64::from(weight));
        let tier = &mut self.tiers[tier as usize];
        assert!(
            tier.weight <= WEIGHT_MAX,
            "weights of priority {} sum to {}; at most {WEIGHT_MAX}",
            tier.priority,
            tier.weight
        );
        if terms.demand.is_some() {
            self.places[place as usize].limited_at = tier.limited.len() as u32;
            tier.limited.push(place);
        }
    }

    /// Takes the flow of a place out.
    ///
    /// # Panics
    /// If there is none.
    pub fn leave(&mut self, place: u32) {
        assert!(self.has(place), "place {place} has no flow");
        let flow = std::mem::replace(&mut self.places[place as usize], VACANT);
        let tier = self.bundles[flow.bundle as usize].tier as usize;
        if flow.demand.is_finite() {
            let limited = &mut self.tiers[tier].limited;
            limited.swap_remove(flow.limited_at as usize);
            if let Some(&moved) = limited.get(flow.limited_at as usize) {
                self.places[moved as usize].limited_at = flow.limited_at;
            }
        }
        self.reweigh(flow.bundle, -i64::from(flow.weight));
        self.bundles[flow.bundle as usize].flows -= 1;
        if self.bundles[flow.bundle as usize].flows == 0 {
            self.dissolve(flow.bundle);
        }
    }

    /// Takes all flows out.
    pub fn clear(&mut self) {
        self.tiers.iter_mut().for_each(Tier::clear);
        self.of_source.iter_mut().for_each(Vec::clear);
        self.places.clear();
        self.free.clear();
        for (at, bundle) in (0..).zip(&mut self.bundles) {
            (bundle.weight, bundle.flows) = (0, 0);
            bundle.entries.clear();
            self.free.push(at);
        }
    }

    /// Computes the rates.
    pub fn fill(&mut self, whose: Whose) {
        for &tier in &self.order {
            self.tiers[tier as usize].spread.refresh(&mut self.courses, &mut self.legs);
        }
        let Self { courses, legs, tiers, order, bundles, places, fill, .. } = self;
        fill.begin(&self.capacities, bundles, whose);
        for &number in order.iter() {
            if fill.is_done() {
                break;
            }
            let tier = &tiers[number as usize];
            fill.tier(courses, &Scene { legs, bundles, tier, number }, places);
        }
    }

    /// The rate of a flow as of the last computation, in bit/s. Infinite if neither a link nor its
    /// host limits it.
    ///
    /// # Panics
    /// If the last computation was not asked for it.
    #[inline]
    #[must_use]
    pub fn rate(&self, place: u32) -> f64 {
        let flow = &self.places[place as usize];
        let level = self.fill.level(flow.bundle);
        assert!(!level.is_nan(), "the rate of place {place} was not asked for");
        let weight = f64::from(flow.weight);
        // The same quotient as that at which the flow stopped, if it did: then it has its demand, to
        // the bit.
        if flow.demand / weight <= level { flow.demand } else { weight * level }
    }

    /// The rate of a flow in whole bits per second, rounded down; `None` if nothing limits it.
    ///
    /// # Panics
    /// As [`Self::rate`].
    #[must_use]
    pub fn rate_of(&self, place: u32) -> Option<Rate> {
        let rate = self.rate(place);
        rate.is_finite().then_some(Rate::from_bps(rate as u64))
    }

    /// How many times flows stopped in the last computation, those that stopped together counted
    /// once (claim I08).
    #[must_use]
    pub fn rounds(&self) -> u64 {
        self.fill.rounds()
    }

    /// The tier of a priority.
    fn tier(&mut self, priority: u8) -> u32 {
        let place = |&tier: &u32| self.tiers[tier as usize].priority;
        match self.order.binary_search_by_key(&priority, place) {
            Ok(at) => self.order[at],
            Err(at) => {
                self.order.insert(at, self.tiers.len() as u32);
                self.tiers.push(Tier::new(priority, self.capacities.len()));
                self.order[at]
            }
        }
    }

    /// The bundle of a course in a tier.
    fn bundle(&mut self, tier: u32, course: Course) -> u32 {
        let here = &self.of_source[course.source.index()];
        let is_it = |&&at: &&u32| {
            let bundle = &self.bundles[at as usize];
            bundle.tier == tier && bundle.course == course
        };
        match here.iter().find(is_it) {
            Some(&at) => at,
            None => self.gather(tier, course),
        }
    }

    /// Makes a bundle, as yet without flows.
    fn gather(&mut self, tier: u32, course: Course) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.bundles.push(Bundle {
                course,
                tier,
                weight: 0,
                flows: 0,
                entries: Vec::new(),
                alone: 0.0,
                spread_at: 0,
            });
            self.bundles.len() as u32 - 1
        });
        self.fill.forget(at);
        self.of_source[course.source.index()].push(at);
        let Tier { members, spread, .. } = &mut self.tiers[tier as usize];
        let bundle = &mut self.bundles[at as usize];
        (bundle.course, bundle.tier, bundle.alone) = (course, tier, f64::INFINITY);
        if course.source == course.destination {
            return at;
        }
        if course.protocol == Protocol::Valiant {
            bundle.spread_at = spread.bundles.len() as u32;
            spread.bundles.push(at);
            return at;
        }
        self.courses.uses(course, |link, share| {
            let share = whole(share);
            if share > 0.0 {
                bundle.alone = bundle.alone.min(self.capacities[link] / share);
                let members = &mut members[link];
                members.push(Member { bundle: at, at: bundle.entries.len() as u32 });
                let place = members.len() as u32 - 1;
                bundle.entries.push(Entry { share, link: link as u32, at: place });
            }
        });
        at
    }

    /// Changes the weight of a bundle.
    fn reweigh(&mut self, at: u32, change: i64) {
        let bundle = &mut self.bundles[at as usize];
        let tier = &mut self.tiers[bundle.tier as usize];
        bundle.weight = (i64::from(bundle.weight) + change) as u32;
        tier.weight = tier.weight.wrapping_add_signed(change);
        for entry in &bundle.entries {
            tier.loads[entry.link as usize] += change as f64 * entry.share;
        }
        if bundle.is_spread() {
            tier.spread.change(&self.courses, bundle.course, change);
        }
    }

    /// Takes a bundle without flows apart.
    fn dissolve(&mut self, at: u32) {
        let mut entries = std::mem::take(&mut self.bundles[at as usize].entries);
        let Bundle { course, tier, spread_at, .. } = self.bundles[at as usize];
        let tier = &mut self.tiers[tier as usize];
        for entry in entries.drain(..) {
            let members = &mut tier.members[entry.link as usize];
            members.swap_remove(entry.at as usize);
            if let Some(moved) = members.get(entry.at as usize) {
                self.bundles[moved.bundle as usize].entries[moved.at as usize].at = entry.at;
            }
        }
        if self.bundles[at as usize].is_spread() {
            tier.spread.bundles.swap_remove(spread_at as usize);
            if let Some(&moved) = tier.spread.bundles.get(spread_at as usize) {
                self.bundles[moved as usize].spread_at = spread_at;
            }
        }
        self.bundles[at as usize].entries = entries;
        let here = &mut self.of_source[course.source.index()];
        let found = here.iter().position(|&other| other == at);
        here.swap_remove(found.expect("a bundle is listed at its source"));
        self.free.push(at);
    }
}
