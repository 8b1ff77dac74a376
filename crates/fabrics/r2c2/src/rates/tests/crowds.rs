//! As many flows as a run may have open, of the largest weight, against fractions without rounding.

use super::*;

/// Open flows of a run, at most.
const OPEN_MAX: u32 = 1 << 20;

/// A number as a fraction of whole numbers, in lowest terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Fraction {
    over: i128,
    under: i128,
}

impl Fraction {
    fn new(over: i128, under: i128) -> Self {
        let (mut a, mut b) = (over.abs(), under);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        Self { over: over / a, under: under / a }
    }

    fn less(self, other: Self) -> Self {
        let over = self.over * other.under - other.over * self.under;
        Self::new(over, self.under * other.under)
    }

    fn times(self, number: i128) -> Self {
        Self::new(self.over * number, self.under)
    }

    fn is_below(self, other: Self) -> bool {
        self.over * other.under < other.over * self.under
    }
}

/// Many flows of one course, of one weight.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    course: Course,
    weight: u8,
    flows: u32,
}

/// The definition of max-min fairness, link by link: the level of each crowd, for crowds of these
/// weights that put these quarters of themselves on the links.
fn levels(capacities: &[i128], crowds: &[(i128, Vec<i128>)]) -> Vec<Fraction> {
    let mut room: Vec<Fraction> = capacities.iter().map(|&c| Fraction::new(c, 1)).collect();
    let mut levels: Vec<Option<Fraction>> = vec![None; crowds.len()];
    while levels.contains(&None) {
        let rising = |link: usize| -> i128 {
            let all = levels.iter().zip(crowds);
            all.filter(|(level, _)| level.is_none()).map(|(_, crowd)| crowd.0 * crowd.1[link]).sum()
        };
        let used = (0..room.len()).filter(|&link| rising(link) > 0);
        let fills = used.map(|link| {
            (Fraction::new(room[link].over * 4, room[link].under * rising(link)), link)
        });
        let first =
            |a: (Fraction, usize), b: (Fraction, usize)| if b.0.is_below(a.0) { b } else { a };
        let (level, full) = fills.reduce(first).expect("each crowd crosses a link");
        for (found, (weight, quarters)) in levels.iter_mut().zip(crowds) {
            if found.is_none() && quarters[full] > 0 {
                *found = Some(level);
                for (room, quarters) in room.iter_mut().zip(quarters) {
                    // The remainder of a full link is 0 / 1.
                    let taken = level.times(weight * quarters);
                    *room = room.less(Fraction::new(taken.over, taken.under * 4));
                }
            }
        }
    }
    levels.into_iter().flatten().collect()
}

/// Three links and four nodes: two crowds on paths of their own, two spread over all links.
fn courses() -> Written {
    let uses = [
        (course(0, 1, Protocol::Rps), vec![(0, 1.0), (1, 0.25)]),
        (course(1, 2, Protocol::Rps), vec![(1, 0.75)]),
    ];
    let leaving = vec![vec![0.25, 0.0, 0.5], vec![0.0; 3], vec![0.5, 0.0, 0.25], vec![0.0; 3]];
    let arriving = vec![vec![0.0; 3], vec![0.0, 0.25, 0.25], vec![0.0; 3], vec![0.0, 0.0, 0.75]];
    Written { nodes: 4, links: 3, uses: uses.into(), leaving, arriving }
}

/// Flows join in the order in which this stream draws them; what each crowd has a flow, to the bit.
fn rates(capacities: &[i128], crowds: &[Crowd], seed: u64) -> Vec<f64> {
    let mut order: Vec<(u32, Crowd)> = Vec::new();
    for crowd in crowds {
        order.extend((order.len() as u32..).zip(vec![*crowd; crowd.flows as usize]));
    }
    let mut firsts = vec![0];
    firsts.extend(crowds.iter().scan(0, |sum, crowd| {
        *sum += crowd.flows;
        Some(*sum)
    }));
    Stream::new(seed, "test/crowds", 0).shuffle(&mut order);
    let capacities = capacities.iter().map(|&capacity| capacity as f64).collect();
    let mut rates = Waterfill::new(courses(), capacities);
    for &(place, crowd) in &order {
        rates.join(place, crowd.course, weight(crowd.weight));
    }
    // And some leave and come back.
    for &(place, crowd) in order.iter().step_by(3) {
        rates.leave(place);
        rates.join(place, crowd.course, weight(crowd.weight));
    }
    rates.fill(Whose::All);
    firsts[..crowds.len()].iter().map(|&place| rates.rate(place)).collect()
}

/// Crowds of these weights and numbers of flows, the latter times `many`.
#[track_caller]
fn check(weights: [u8; 4], flows: [u32; 4], many: u32) {
    let capacities = [9_500, 7_001, 12_345];
    let of = [
        course(0, 1, Protocol::Rps),
        course(1, 2, Protocol::Rps),
        course(0, 3, Protocol::Valiant),
        course(2, 1, Protocol::Valiant),
    ];
    let crowds: Vec<Crowd> = (0..4)
        .map(|at| Crowd { course: of[at], weight: weights[at], flows: flows[at] * many })
        .collect();
    let written = courses();
    let quarters = |at: usize| {
        let row = written.row(of[at]);
        let on = |link| row.iter().find(|used| used.0 == link).map_or(0.0, |used| used.1);
        (0..3).map(|link| (4.0 * on(link)) as i128).collect()
    };
    let parts: Vec<(i128, Vec<i128>)> =
        (0..4).map(|at| (i128::from(weights[at]) * i128::from(flows[at]), quarters(at))).collect();
    let found = rates(&capacities, &crowds, 1);
    for ((level, crowd), found) in levels(&capacities, &parts).into_iter().zip(&crowds).zip(&found)
    {
        let fair = level.times(crowd.weight.into());
        let expected = fair.over as f64 / fair.under as f64 / f64::from(many);
        assert!((found / expected - 1.0).abs() < 1e-12, "{found} for {expected}: {crowd:?}");
    }
    let bits = |rates: Vec<f64>| rates.into_iter().map(f64::to_bits).collect::<Vec<u64>>();
    assert_eq!(bits(rates(&capacities, &crowds, 2)), bits(found), "I05: another order");
}

#[test]
fn few_flows_have_their_fair_rates() {
    check([1, 1, 1, 1], [1, 2, 3, 4], 1);
    check([9, 5, 2, 255], [4, 1, 7, 1], 1);
}

#[test]
fn sums_of_weights_above_22_bits_are_exact() {
    // 16,449 times 255 is the first to be above.
    check([255; 4], [4_113, 4_112, 4_112, 4_112], 1);
}

#[test]
fn slow_as_many_flows_as_a_run_may_have_open_have_their_fair_rates() {
    let each = OPEN_MAX / 16;
    check([255; 4], [3, 5, 6, 2], each);
    check([255, 1, 17, 254], [3, 5, 6, 2], each);
}
