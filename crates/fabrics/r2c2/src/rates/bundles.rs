//! Flows of one course and one priority, taken together.
//!
//! A filling goes from the view of one node to that of the next, and these differ in flows that are
//! just being announced: the same flow leaves and joins again and again. So a bundle without flows
//! stays where it is, *idle*, on the lists of its links, until there are many of them.

use rack::NodeId;

use super::shares::{change_load, quanta_of, whole};
use super::terms::{Course, Courses};
use super::tier::{Bundle, Entry, Member, Tier};
use crate::routing::Protocol;

/// So many idle bundles may be kept, and as many again as half of the others (our choice: what they
/// cost is their part of the lists).
const IDLE_MAX: usize = 64;

/// The bundles of all tiers.
#[derive(Clone, Debug)]
pub(super) struct Bundles {
    pub(super) all: Vec<Bundle>,
    /// By bundle: the sum of the weights of its flows.
    pub(super) weights: Vec<u32>,
    /// Places without a bundle.
    free: Vec<u32>,
    idle: usize,
    /// By source: its bundles.
    of_source: Vec<Vec<u32>>,
}

impl Bundles {
    pub(super) fn new(nodes: usize) -> Self {
        let of_source = vec![Vec::new(); nodes];
        Self { all: Vec::new(), weights: Vec::new(), free: Vec::new(), idle: 0, of_source }
    }

    /// The bundles of a source, idle ones too.
    pub(super) fn of_source(&self, source: NodeId) -> &[u32] {
        &self.of_source[source.index()]
    }

    /// The bundle of a course in a tier, for one flow more.
    pub(super) fn join(
        &mut self,
        (number, tier): (u32, &mut Tier),
        course: Course,
        courses: &mut impl Courses,
    ) -> u32 {
        let is_it = |&&at: &&u32| {
            let bundle = &self.all[at as usize];
            bundle.tier == number && bundle.course == course
        };
        let known = self.of_source(course.source).iter().find(is_it).copied();
        let at = match known {
            Some(at) => {
                self.idle -= usize::from(self.all[at as usize].flows == 0);
                at
            }
            None => self.gather((number, tier), course, courses),
        };
        self.all[at as usize].flows += 1;
        at
    }

    /// Makes a bundle, as yet without flows.
    fn gather(
        &mut self,
        (number, tier): (u32, &mut Tier),
        course: Course,
        courses: &mut impl Courses,
    ) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            let (flows, entries, spread_at) = (0, Vec::new(), 0);
            self.all.push(Bundle { course, tier: number, flows, entries, spread_at });
            self.weights.push(0);
            self.all.len() as u32 - 1
        });
        self.of_source[course.source.index()].push(at);
        let bundle = &mut self.all[at as usize];
        (bundle.course, bundle.tier) = (course, number);
        if course.source == course.destination {
            return at;
        }
        if course.protocol == Protocol::Valiant {
            bundle.spread_at = tier.spread.bundles.len() as u32;
            tier.spread.bundles.push(at);
            return at;
        }
        courses.uses(course, |link, share| {
            let quanta = quanta_of(whole(share));
            if quanta > 0 {
                tier.members[link].push(Member { bundle: at, quanta });
                bundle.entries.push(Entry { link: link as u32, quanta });
            }
        });
        at
    }

    /// Changes the weight of a bundle.
    pub(super) fn reweigh(
        &mut self,
        at: u32,
        change: i64,
        tier: &mut Tier,
        courses: &impl Courses,
    ) {
        let bundle = &self.all[at as usize];
        let weight = &mut self.weights[at as usize];
        *weight = weight.wrapping_add_signed(change as i32);
        tier.weight = tier.weight.wrapping_add_signed(change);
        for entry in &bundle.entries {
            change_load(&mut tier.loads[entry.link as usize], change, entry.quanta);
        }
        if bundle.is_spread() {
            tier.spread.change(courses, bundle.course, change);
        }
    }

    /// A flow of a bundle has left.
    pub(super) fn leave(&mut self, at: u32, tiers: &mut [Tier]) {
        let bundle = &mut self.all[at as usize];
        bundle.flows -= 1;
        if bundle.flows > 0 {
            return;
        }
        if bundle.is_spread() {
            let spread_at = bundle.spread_at;
            let spread = &mut tiers[bundle.tier as usize].spread.bundles;
            spread.swap_remove(spread_at as usize);
            if let Some(&moved) = spread.get(spread_at as usize) {
                self.all[moved as usize].spread_at = spread_at;
            }
            let source = self.all[at as usize].course.source;
            self.of_source[source.index()].retain(|&other| other != at);
            self.free.push(at);
            return;
        }
        self.idle += 1;
        let busy = self.all.len() - self.free.len() - self.idle;
        if self.idle > IDLE_MAX + busy / 2 {
            self.sweep(tiers);
        }
    }

    /// Takes the idle bundles apart.
    fn sweep(&mut self, tiers: &mut [Tier]) {
        let Self { all, free, idle, of_source, .. } = self;
        for members in tiers.iter_mut().flat_map(|tier| &mut tier.members) {
            members.retain(|member| all[member.bundle as usize].flows > 0);
        }
        for bundles in of_source {
            bundles.retain(|&at| {
                let bundle = &mut all[at as usize];
                if bundle.flows == 0 {
                    bundle.entries.clear();
                    free.push(at);
                }
                bundle.flows > 0
            });
        }
        *idle = 0;
    }

    /// Takes all bundles apart; tiers are empty already.
    pub(super) fn clear(&mut self) {
        self.of_source.iter_mut().for_each(Vec::clear);
        self.free.clear();
        self.idle = 0;
        self.weights.fill(0);
        for (at, bundle) in (0..).zip(&mut self.all) {
            bundle.flows = 0;
            bundle.entries.clear();
            self.free.push(at);
        }
    }
}
