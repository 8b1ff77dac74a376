//! Rates against the paper's examples, against linear programmes, against
//! the definition of max-min fairness, and against themselves in another order.

mod crowds;
mod examples;
mod fairness;
mod programmes;
mod racks;
mod same_bits;

use std::collections::BTreeMap;
use std::num::NonZeroU8;

use kernel::{Rate, Stream};
use rack::NodeId;

use super::*;
use crate::routing::Protocol;

/// Shares written down flow by flow.
#[derive(Clone, Debug, Default)]
struct Written {
    nodes: usize,
    links: usize,
    uses: BTreeMap<Course, Vec<(usize, f64)>>,
    /// By node: what Valiant's flows send over each link.
    leaving: Vec<Vec<f64>>,
    arriving: Vec<Vec<f64>>,
}

impl Courses for Written {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn links(&self) -> usize {
        self.links
    }

    fn uses(&mut self, course: Course, mut visit: impl FnMut(usize, f64)) {
        self.uses[&course].iter().for_each(|&(link, share)| visit(link, share));
    }

    fn leaving(&mut self, source: NodeId, mut visit: impl FnMut(usize, f64)) {
        self.leaving[source.index()].iter().enumerate().for_each(|(link, &x)| visit(link, x));
    }

    fn arriving(&mut self, destination: NodeId, mut visit: impl FnMut(usize, f64)) {
        self.arriving[destination.index()].iter().enumerate().for_each(|(link, &x)| visit(link, x));
    }
}

impl Written {
    /// All links that a flow crosses.
    fn row(&self, course: Course) -> Vec<(usize, f64)> {
        if course.protocol != Protocol::Valiant {
            return self.uses[&course].clone();
        }
        let halves =
            (&self.leaving[course.source.index()], &self.arriving[course.destination.index()]);
        let sums = halves.0.iter().zip(halves.1).map(|(a, b)| a + b).enumerate();
        sums.filter(|&(_, share)| share > 0.0).collect()
    }
}

fn course(source: u32, destination: u32, protocol: Protocol) -> Course {
    Course { source: NodeId::new(source), destination: NodeId::new(destination), protocol }
}

fn weight(weight: u8) -> Terms {
    Terms { weight: NonZeroU8::new(weight).unwrap(), ..Terms::default() }
}

/// A random network, and flows over it.
#[derive(Clone, Debug)]
struct Case {
    courses: Written,
    capacities: Vec<f64>,
    flows: Vec<(Course, Terms)>,
}

/// What random flows may be like.
#[derive(Clone, Copy, Debug)]
struct Kinds {
    weight_max: u64,
    priorities: u64,
    /// The chance of a demand.
    limited: f64,
    /// The chance of Valiant's routing.
    spread: f64,
}

const PLAIN: Kinds = Kinds { weight_max: 1, priorities: 1, limited: 0.0, spread: 0.0 };
const ALL: Kinds = Kinds { weight_max: 9, priorities: 3, limited: 0.4, spread: 0.3 };

/// A share that is not so small that its rounding shows: shares are whole multiples of 2⁻³⁰.
fn share(draw: &mut Stream) -> f64 {
    0.01 + 0.99 * draw.unit()
}

impl Case {
    /// Capacities are of the order of 10,000; shares are small fractions and any numbers.
    fn random(seed: u64, links: usize, flows: usize, kinds: Kinds) -> Self {
        let mut draw = Stream::new(seed, "test/rates", 0);
        let nodes = 6;
        let capacities = (0..links).map(|_| (1 + draw.below(20)) as f64 * 1_000.0).collect();
        let half = |draw: &mut Stream| -> Vec<f64> {
            (0..links).map(|_| if draw.bernoulli(0.4) { share(draw) } else { 0.0 }).collect()
        };
        // Everybody crosses a link on each half, so that no flow is without bound.
        let leg = |draw: &mut Stream| {
            let mut leg = half(draw);
            leg[draw.below(links as u64) as usize] = 0.25;
            leg
        };
        let leaving = (0..nodes).map(|_| leg(&mut draw)).collect();
        let arriving = (0..nodes).map(|_| leg(&mut draw)).collect();
        let uses = BTreeMap::new();
        let mut courses = Written { nodes, links, uses, leaving, arriving };
        let flows = (0..flows).map(|_| courses.flow(&mut draw, kinds)).collect();
        Self { courses, capacities, flows }
    }

    fn waterfill(&self) -> Waterfill<Written> {
        Waterfill::new(self.courses.clone(), self.capacities.clone())
    }

    /// The rates of all flows.
    fn rates(&self) -> Vec<f64> {
        let mut rates = self.waterfill();
        for (place, &(course, terms)) in (0..).zip(&self.flows) {
            rates.join(place, course, terms);
        }
        rates.fill(Whose::All);
        assert!(rates.rounds() <= self.flows.len() as u64, "I08: {} rounds", rates.rounds());
        (0..self.flows.len() as u32).map(|place| rates.rate(place)).collect()
    }

    fn load(&self, link: usize, rates: &[f64]) -> f64 {
        let share = |&(course, _): &(Course, Terms)| {
            let row = self.courses.row(course);
            row.iter().find(|used| used.0 == link).map_or(0.0, |used| used.1)
        };
        self.flows.iter().zip(rates).map(|(flow, rate)| share(flow) * rate).sum()
    }
}

impl Written {
    fn flow(&mut self, draw: &mut Stream, kinds: Kinds) -> (Course, Terms) {
        let protocol = if draw.bernoulli(kinds.spread) { Protocol::Valiant } else { Protocol::Rps };
        let source = draw.below(self.nodes as u64) as u32;
        let further = 1 + draw.below(self.nodes as u64 - 1) as u32;
        let course = super::tests::course(source, (source + further) % self.nodes as u32, protocol);
        if protocol != Protocol::Valiant && !self.uses.contains_key(&course) {
            let mut row: Vec<(usize, f64)> = Vec::new();
            for _ in 0..=draw.below(4) {
                let link = draw.below(self.links as u64) as usize;
                let share = [1.0, 0.5, 0.25, 1.0 / 3.0, share(draw)][draw.below(5) as usize];
                if row.iter().all(|used| used.0 != link) {
                    row.push((link, share));
                }
            }
            self.uses.insert(course, row);
        }
        let terms = Terms {
            weight: NonZeroU8::new(1 + draw.below(kinds.weight_max) as u8).unwrap(),
            priority: draw.below(kinds.priorities) as u8,
            demand: draw.bernoulli(kinds.limited).then(|| Rate::from_bps(100 * draw.below(100))),
        };
        (course, terms)
    }
}

/// The rates of two flows of these demands on a link of this capacity.
pub(super) fn rates_on_a_link(capacity: f64, demands: [Option<Rate>; 2]) -> [f64; 2] {
    let flow = course(0, 1, Protocol::Rps);
    let uses = [(flow, vec![(0, 1.0)])].into();
    let written = Written { nodes: 2, links: 1, uses, ..Written::default() };
    let mut rates = Waterfill::new(written, vec![capacity]);
    for (place, demand) in (0..).zip(demands) {
        rates.join(place, flow, Terms { demand, ..Terms::default() });
    }
    rates.fill(Whose::All);
    [rates.rate(0), rates.rate(1)]
}
