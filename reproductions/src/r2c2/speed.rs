//! How long a node takes to compute rates (R2C2 §3.3.2), apart from any packet, and how that grows with
//! flows and nodes.

use std::time::{Duration, Instant};

use kernel::Stream;
use r2c2::rates::{Course, Routed, Terms, Waterfill, Whose, capacities};
use r2c2::routing::{Network, Protocol};
use rack::NodeId;
use rack::topology::{Shape, Torus};

/// Nodes along each of three dimensions: 64, 512 and 4,096 nodes.
const SIDES: [u32; 3] = [4, 8, 16];
/// Flows between random nodes: few, as many as the nodes of §5.2 twice over, and ten times that.
const FLOWS: [u32; 3] = [100, 1_000, 10_000];
/// What flows use: spraying in all networks, Valiant load balancing in that of §5.2 alone.
const PROTOCOLS: [(Protocol, &str); 2] = [(Protocol::Rps, ""), (Protocol::Valiant, "-valiant")];
/// Nodes along each dimension in §5.2.
const SIDE_PUBLISHED: u32 = 8;
/// The headroom of §5.2.
const HEADROOM: f64 = 0.05;
/// How long a benchmark goes on with computations (our choice), but for one at least.
const BUDGET: Duration = Duration::from_millis(300);

/// Which rates are computed, from what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Those of all flows, from a list of flows.
    Anew,
    /// Those of all flows, after one has ended and another has started.
    All,
    /// The same for those of one node alone, in turn: what a running rack does.
    Own,
}

/// A benchmark: rates of flows between random nodes of a torus.
#[derive(Clone, Debug)]
pub struct Speed {
    /// `rates-512-1000-own`, `rates-512-1000-own-valiant`, …: nodes, flows, what is computed, and by
    /// which protocol packets go, if not sprayed over all shortest paths.
    pub name: String,
    side: u32,
    flows: u32,
    kind: Kind,
    protocol: Protocol,
}

/// What a benchmark got done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// Computations, and the time that they took together.
    pub computations: u64,
    /// Set-up left out.
    pub time: Duration,
}

impl Speed {
    /// All of them.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let kinds = [("anew", Kind::Anew), ("all", Kind::All), ("own", Kind::Own)];
        let mut all = Vec::new();
        for (protocol, suffix) in PROTOCOLS {
            let is_published = |side: &u32| *side == SIDE_PUBLISHED;
            let everywhere = protocol == Protocol::Rps;
            for side in SIDES.into_iter().filter(|side| everywhere || is_published(side)) {
                for (flows, (word, kind)) in FLOWS.into_iter().flat_map(|f| kinds.map(|k| (f, k))) {
                    let name = format!("rates-{}-{flows}-{word}{suffix}", side.pow(3));
                    all.push(Self { name, side, flows, kind, protocol });
                }
            }
        }
        all
    }

    /// Runs it.
    ///
    /// # Panics
    /// If the model breaks an invariant.
    #[must_use]
    pub fn run(&self) -> Work {
        self.run_for(BUDGET)
    }

    fn run_for(&self, budget: Duration) -> Work {
        let torus = Shape::Torus(Torus { dimensions: vec![self.side; 3], ..Torus::default() });
        let network = Network::new(&torus).expect("the benchmarks name tori that there are");
        let routed = Routed::new(&network, &[self.protocol]).expect("any network suits both");
        let mut rates = Waterfill::new(routed, capacities(network.topology(), HEADROOM));
        let mut draw = Stream::new(1, "bench/rates", u64::from(self.flows));
        let nodes = u64::from(network.nodes());
        let mut course = || {
            let source = draw.below(nodes);
            let destination = (source + 1 + draw.below(nodes - 1)) % nodes;
            let [source, destination] = [source, destination].map(|node| NodeId::new(node as u32));
            Course { source, destination, protocol: self.protocol }
        };
        let mut flows: Vec<Course> = (0..self.flows).map(|_| course()).collect();
        enter(&mut rates, &flows);
        rates.fill(Whose::All);
        let (mut computations, mut time) = (0, Duration::ZERO);
        while computations == 0 || time < budget {
            let place = (computations % u64::from(self.flows)) as usize;
            flows[place] = course();
            let begin = Instant::now();
            if self.kind == Kind::Anew {
                rates.clear();
                enter(&mut rates, &flows);
            } else {
                rates.leave(place as u32);
                rates.join(place as u32, flows[place], Terms::default());
            }
            rates.fill(match self.kind {
                Kind::Own => Whose::From(flows[place].source),
                Kind::Anew | Kind::All => Whose::All,
            });
            time += begin.elapsed();
            computations += 1;
        }
        Work { computations, time }
    }
}

/// Lets all flows join.
fn enter(rates: &mut Waterfill<Routed>, flows: &[Course]) {
    for (place, &flow) in (0..).zip(flows) {
        rates.join(place, flow, Terms::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_benchmark_has_a_name_of_its_own_and_computes() {
        let all = Speed::all();
        let names: std::collections::BTreeSet<_> = all.iter().map(|speed| &speed.name).collect();
        assert_eq!(names.len(), 3 * 3 * 3 + 3 * 3);
        let is_small = |speed: &&Speed| speed.side <= 8 && speed.flows == 100;
        for speed in all.iter().filter(is_small) {
            let work = speed.run_for(Duration::ZERO);
            assert_eq!(work.computations, 1, "{}", speed.name);
        }
    }
}
