//! Max-min fair rates that follow flows as they come and go.
//!
//! Water-filling (Bertsekas and Gallager, "Data Networks", §6.5.2): all rates rise together; a flow
//! stops when a link on its way is full. A flow that comes, or goes, with rate x changes no rate below
//! x: until the water stands at x, every link fills as before. So only flows at x or above are
//! computed anew, and of those only the ones that share links, directly or through others, with the
//! flow that changed. Changes at one instant are made together: rates are computed once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Rates that differ by less than this share are the same: far above the rounding of the sums, far
/// below any difference that is reported (our choice).
const SAME: f64 = 1e-9;

/// A flow's use of one link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Use {
    /// Index of the link.
    pub(super) link: u32,
    /// How much of the flow's rate crosses the link.
    pub(super) share: f64,
}

/// A link and who uses it.
#[derive(Clone, Debug)]
struct Link {
    capacity: f64,
    /// Flows, and the share of each.
    flows: Vec<(u32, f64)>,
    /// While the water rises: capacity not taken by flows that have stopped, the sum of the shares of
    /// those that rise, and how many they are.
    free: f64,
    rising: f64,
    left: u32,
    /// Whether it takes part in the computation under way.
    is_touched: bool,
}

/// A flow.
#[derive(Clone, Debug, Default)]
struct Flow {
    uses: Vec<Use>,
    rate: f64,
    is_rising: bool,
    /// Whether its rate is yet to be computed.
    is_new: bool,
}

/// The rates of all flows.
#[derive(Clone, Debug)]
pub(super) struct Waterfill {
    links: Vec<Link>,
    flows: Vec<Flow>,
    /// Links of the flows that came or went since rates were computed, and how many these were.
    pending: Vec<u32>,
    changes: usize,
    /// Rates below this are as they were.
    floor: f64,
    /// Flows computed anew by the last change.
    changed: Vec<u32>,
    touched: Vec<u32>,
    levels: BinaryHeap<Reverse<(Level, u32)>>,
}

/// A level of the water: a float with a total order.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Level(f64);

impl Eq for Level {}

impl PartialOrd for Level {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Level {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Link {
    /// The rate at which the rising flows fill the link.
    fn level(&self) -> Level {
        Level(self.free.max(0.0) / self.rising.max(f64::MIN_POSITIVE))
    }
}

impl Waterfill {
    /// Links of these capacities and no flow.
    pub(super) fn new(capacities: &[f64]) -> Self {
        let link = |&capacity: &f64| Link {
            capacity,
            flows: Vec::new(),
            free: 0.0,
            rising: 0.0,
            left: 0,
            is_touched: false,
        };
        Self {
            links: capacities.iter().map(link).collect(),
            flows: Vec::new(),
            pending: Vec::new(),
            changes: 0,
            floor: f64::INFINITY,
            changed: Vec::new(),
            touched: Vec::new(),
            levels: BinaryHeap::new(),
        }
    }

    /// The rate of a flow.
    pub(super) fn rate(&self, flow: u32) -> f64 {
        self.flows[flow as usize].rate
    }

    /// The flows whose rate the last change may have changed.
    pub(super) fn changed(&self) -> &[u32] {
        &self.changed
    }

    /// Whether flows came or went since rates were computed.
    pub(super) fn is_pending(&self) -> bool {
        self.changes > 0
    }

    /// Adds a flow in an unused place. It has a rate when rates have been computed.
    pub(super) fn add(&mut self, flow: u32, uses: Vec<Use>) {
        assert!(!uses.is_empty(), "flow {flow} uses no link: its rate has no bound");
        if self.flows.len() <= flow as usize {
            self.flows.resize(flow as usize + 1, Flow::default());
        }
        // Of several new flows none knows the level that all of them leave.
        let level = match self.changes {
            0 => uses.iter().map(|used| self.level_with(used)).fold(f64::INFINITY, f64::min),
            _ => 0.0,
        };
        for used in &uses {
            self.links[used.link as usize].flows.push((flow, used.share));
        }
        self.note(&uses, level);
        self.flows[flow as usize] = Flow { uses, rate: level, is_rising: false, is_new: true };
    }

    /// Takes a flow out.
    pub(super) fn remove(&mut self, flow: u32) {
        let Flow { uses, rate, is_new, .. } = std::mem::take(&mut self.flows[flow as usize]);
        for used in &uses {
            let flows = &mut self.links[used.link as usize].flows;
            let at = flows.iter().position(|&(other, _)| other == flow);
            flows.swap_remove(at.expect("a flow is on the links that it uses"));
        }
        self.note(&uses, if is_new { 0.0 } else { rate });
    }

    /// A flow with these uses has come or gone, which changes no rate below `level`.
    fn note(&mut self, uses: &[Use], level: f64) {
        self.pending.extend(uses.iter().map(|used| used.link));
        self.changes += 1;
        self.floor = self.floor.min(level);
    }

    /// The rate at which a new flow would fill a link whose other flows go on as they are or give way
    /// to it.
    fn level_with(&self, used: &Use) -> f64 {
        let link = &self.links[used.link as usize];
        let (mut free, mut rising) = (link.capacity, used.share);
        for &(_, share) in &link.flows {
            rising += share;
        }
        // Flows slower than the level keep their rate, which raises the level for the others.
        let mut slower = f64::NEG_INFINITY;
        loop {
            let level = free / rising;
            let (mut found, mut top) = (false, slower);
            for &(flow, share) in &link.flows {
                let rate = self.rate(flow);
                if rate > slower && rate < level {
                    free -= rate * share;
                    rising -= share;
                    found = true;
                    top = top.max(rate);
                }
            }
            if !found {
                return level;
            }
            slower = top;
        }
    }

    /// Computes anew the rates that the changes since the last time can reach.
    pub(super) fn refill(&mut self) {
        self.gather();
        for &index in &self.touched {
            let link = &self.links[index as usize];
            if link.left > 0 {
                self.levels.push(Reverse((link.level(), index)));
            }
        }
        // A link's level only rises while flows stop below it, so an entry may be too low: then it is
        // put back.
        while let Some(Reverse((level, index))) = self.levels.pop() {
            let link = &self.links[index as usize];
            if link.left == 0 {
                continue;
            }
            let now = link.level();
            if now.0 > level.0 * (1.0 + SAME) {
                self.levels.push(Reverse((now, index)));
            } else {
                self.fill(index, now.0);
            }
        }
        for index in self.touched.drain(..) {
            self.links[index as usize].is_touched = false;
        }
    }

    /// Finds the flows and links that take part: from the links of what came and went over flows at the
    /// floor or above to their links, and so on.
    fn gather(&mut self) {
        let Self { links, flows, pending, changed, touched, .. } = self;
        let floor = std::mem::replace(&mut self.floor, f64::INFINITY) * (1.0 - SAME);
        self.changes = 0;
        changed.clear();
        let touch = |index: u32, links: &mut [Link], touched: &mut Vec<u32>| {
            let link = &mut links[index as usize];
            if !std::mem::replace(&mut link.is_touched, true) {
                (link.free, link.rising, link.left) = (link.capacity, 0.0, 0);
                touched.push(index);
            }
        };
        for index in pending.drain(..) {
            touch(index, links, touched);
        }
        let mut at = 0;
        while let Some(&index) = touched.get(at) {
            at += 1;
            for place in 0..links[index as usize].flows.len() {
                let (other, share) = links[index as usize].flows[place];
                let entry = &mut flows[other as usize];
                let link = &mut links[index as usize];
                if entry.rate < floor {
                    link.free -= entry.rate * share;
                    continue;
                }
                link.rising += share;
                link.left += 1;
                if !std::mem::replace(&mut entry.is_rising, true) {
                    changed.push(other);
                    entry.is_new = false;
                    for used in &entry.uses {
                        touch(used.link, links, touched);
                    }
                }
            }
        }
    }

    /// Stops all flows that rise on a full link.
    fn fill(&mut self, link: u32, rate: f64) {
        let flows = std::mem::take(&mut self.links[link as usize].flows);
        for &(flow, _) in &flows {
            let entry = &mut self.flows[flow as usize];
            if !std::mem::take(&mut entry.is_rising) {
                continue;
            }
            entry.rate = rate;
            for used in &entry.uses {
                let link = &mut self.links[used.link as usize];
                link.free -= rate * used.share;
                link.rising -= used.share;
                link.left -= 1;
            }
        }
        self.links[link as usize].flows = flows;
    }
}

#[cfg(test)]
mod tests {
    use kernel::Stream;
    use proptest::prelude::*;
    use rack::fairness::{self, max_min};

    use super::*;

    /// The rates of all flows that are there, by the solver that starts from nothing.
    fn anew(capacities: &[f64], flows: &[Option<Vec<Use>>]) -> Vec<f64> {
        let convert = |used: &Use| fairness::Use { link: used.link as usize, share: used.share };
        let uses: Vec<Vec<fairness::Use>> =
            flows.iter().flatten().map(|uses| uses.iter().map(convert).collect()).collect();
        max_min(capacities, &uses)
    }

    #[track_caller]
    fn check(capacities: &[f64], flows: &[Option<Vec<Use>>], filled: &Waterfill) {
        let here = (0..).zip(flows).filter(|(_, uses)| uses.is_some()).map(|(flow, _)| flow);
        for (flow, expected) in here.zip(anew(capacities, flows)) {
            let found = filled.rate(flow);
            assert!(
                (found - expected).abs() <= 1e-6 * expected,
                "flow {flow}: {found}, {expected}"
            );
        }
    }

    /// Flows over one to four links with shares of one, a half or a third; some come, some go.
    fn steps() -> impl Strategy<Value = Vec<(u32, Vec<(u32, u32)>)>> {
        let uses = prop::collection::vec((0u32..8, 1u32..4), 1..5);
        prop::collection::vec((0u32..12, uses), 1..80)
    }

    proptest! {
        #[test]
        fn rates_that_follow_changes_are_those_computed_anew(
            capacities in prop::collection::vec(1u32..20, 8),
            steps in steps(),
            together in 1usize..5,
        ) {
            let capacities: Vec<f64> = capacities.into_iter().map(f64::from).collect();
            let mut filled = Waterfill::new(&capacities);
            let mut flows: Vec<Option<Vec<Use>>> = vec![None; 12];
            let count = steps.len();
            for (step, (flow, uses)) in steps.into_iter().enumerate() {
                if flows[flow as usize].take().is_some() {
                    filled.remove(flow);
                } else {
                    let mut used: Vec<Use> = Vec::new();
                    for (link, part) in uses {
                        if used.iter().all(|other| other.link != link) {
                            used.push(Use { link, share: 1.0 / f64::from(part) });
                        }
                    }
                    filled.add(flow, used.clone());
                    flows[flow as usize] = Some(used);
                }
                if step % together == 0 || step + 1 == count {
                    filled.refill();
                    prop_assert!(!filled.is_pending());
                    check(&capacities, &flows, &filled);
                }
            }
        }
    }

    #[test]
    fn a_long_run_at_a_rack_s_size_does_not_drift() {
        let capacities = vec![50e9; 128];
        let mut filled = Waterfill::new(&capacities);
        let mut flows: Vec<Option<Vec<Use>>> = vec![None; 300];
        let mut draw = Stream::new(1, "test/waterfill", 0);
        for _ in 0..20_000 {
            let flow = draw.below(300) as u32;
            if flows[flow as usize].take().is_some() {
                filled.remove(flow);
            } else {
                let link = |link: u64| Use { link: link as u32, share: 1.0 };
                let uses = vec![link(draw.below(64)), link(64 + draw.below(64))];
                filled.add(flow, uses.clone());
                flows[flow as usize] = Some(uses);
            }
            filled.refill();
        }
        check(&capacities, &flows, &filled);
    }
}
