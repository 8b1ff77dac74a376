//! Who shares the links: flows come, go, and get their rates.
//!
//! Models: R2C2 §3.3.1, §3.3.2 (claims M17, M18, M20 to M23). Flows of one course and one priority
//! are computed as one bundle, of the sum of their weights. A table of who uses which link is kept
//! from one computation to the next, so that going over to a view in which a few flows differ costs
//! what these flows cost. Sums in it are exact (`shares`), so whatever the way to a set of flows,
//! their rates are the same to the last bit.
//!
//! Leaves out rates that follow each flow without filling anew, as the fluid oracle of packet networks
//! does: they are the same numbers but for rounding, which depends on the way there, and nodes with
//! equal views must not differ (claim I05).

use kernel::{Bytes, Rate};
use rack::NodeId;
use rack::topology::{PortId, Topology};

use super::bundles::Bundles;
use super::fill::{Fill, Scene};
use super::legs::Legs;
use super::shares::WEIGHT_MAX;
use super::terms::{Course, Courses, Terms};
use super::tier::Tier;

/// What flows may take of each directed link: its rate less the headroom, in bit/s, by port.
///
/// # Panics
/// Unless `headroom` is a fraction: at least 0 and less than 1.
#[must_use]
pub fn capacities(topology: &Topology, headroom: f64) -> Vec<f64> {
    let rates = topology.ports().iter().map(|port| port.link.rate);
    left_over(rates, headroom)
}

/// The same of flows whose packets are of this size: tunnels between racks carry less of them than their
/// rate, as they put each in a frame (§6, claim M55).
///
/// # Panics
/// As [`capacities`].
#[must_use]
pub fn capacities_for(topology: &Topology, headroom: f64, size: Bytes) -> Vec<f64> {
    let ports = (0..topology.ports().len() as u32).map(PortId::new);
    left_over(ports.map(|port| topology.carried_rate(port, size)), headroom)
}

fn left_over(rates: impl Iterator<Item = Rate>, headroom: f64) -> Vec<f64> {
    assert!((0.0..1.0).contains(&headroom), "a headroom of {headroom}; expected 0 up to 1");
    rates.map(|rate| rate.as_bps() as f64 * (1.0 - headroom)).collect()
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
    bundles: Bundles,
    places: Vec<Place>,
    legs: Legs,
    fill: Fill,
    /// Whether flows have come or gone since the last computation began.
    has_changed: bool,
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
        Self {
            bundles: Bundles::new(courses.nodes()),
            courses,
            capacities,
            tiers: Vec::new(),
            order: Vec::new(),
            places: Vec::new(),
            legs: Legs::default(),
            fill: Fill::default(),
            has_changed: true,
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
    /// If the place is taken, or the weights of a priority sum to 2³² or more.
    pub fn join(&mut self, place: u32, course: Course, terms: Terms) {
        if self.places.len() <= place as usize {
            self.places.resize(place as usize + 1, VACANT);
        }
        assert!(!self.has(place), "place {place} is taken");
        self.has_changed = true;
        let number = self.tier(terms.priority);
        let tier = &mut self.tiers[number as usize];
        let bundle = self.bundles.join((number, tier), course, &mut self.courses);
        if self.bundles.all[bundle as usize].flows == 1 {
            self.fill.forget(bundle);
        }
        let weight = u32::from(terms.weight.get());
        let demand = terms.demand.map_or(f64::INFINITY, |rate| rate.as_bps() as f64);
        self.places[place as usize] = Place { bundle, weight, demand, limited_at: 0 };
        self.bundles.reweigh(bundle, weight.into(), tier, &self.courses);
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
        self.has_changed = true;
        let tier = &mut self.tiers[self.bundles.all[flow.bundle as usize].tier as usize];
        if flow.demand.is_finite() {
            let limited = &mut tier.limited;
            limited.swap_remove(flow.limited_at as usize);
            if let Some(&moved) = limited.get(flow.limited_at as usize) {
                self.places[moved as usize].limited_at = flow.limited_at;
            }
        }
        self.bundles.reweigh(flow.bundle, -i64::from(flow.weight), tier, &self.courses);
        self.bundles.leave(flow.bundle, &mut self.tiers);
    }

    /// Takes all flows out.
    pub fn clear(&mut self) {
        self.has_changed = true;
        self.tiers.iter_mut().for_each(Tier::clear);
        self.bundles.clear();
        self.places.clear();
    }

    /// Computes the rates, or as many more of them as are asked for, if no flow has come or gone.
    pub fn fill(&mut self, whose: Whose) {
        let Self { courses, legs, tiers, order, bundles, places, fill, .. } = self;
        if std::mem::take(&mut self.has_changed) {
            for &tier in &*order {
                tiers[tier as usize].spread.refresh(courses, legs);
            }
            fill.begin(&self.capacities, &bundles.weights);
        }
        let bundles = &*bundles;
        while let Some(&number) = order.get(fill.tiers_done()) {
            let tier = &tiers[number as usize];
            if fill.tier(courses, &Scene { legs, bundles, tier, number, whose }, places) {
                break;
            }
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
}
