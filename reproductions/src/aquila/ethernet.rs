//! The Ethernet beside which Aquila was measured (§5.1; Fig. 9's bars of Pony Express on it, X03).

use rack::results::RunResult;
use report::Unit;
use report::page::Block;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::SEEDS;
use super::requests::{Answered, answered};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::table;
use crate::runs::{Collected, ScenarioFile, number, quantile, run_into};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Watch};

const FILE: ScenarioFile = ScenarioFile {
    path: "reproductions/aquila/ethernet.toml",
    text: include_str!("../../aquila/ethernet.toml"),
};

/// The network: as configured, or another that the word "conventional" would fit, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Network {
    /// Full bisection, switches that store and forward.
    Usual,
    /// Leaves with a third of that towards spines.
    Oversubscribed,
    /// Switches that cut through in 300 ns.
    CutThrough,
    /// Three tiers, joined by cables as long as the Clique's fibres may be (§6).
    Far,
}

/// A bar: the network, and whether there is bulk traffic beside the lookups.
type Bar = (Network, bool);

/// What was measured of a bar.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Point {
    /// Round trips of lookups in the network. Unit: s.
    p50: f64,
    p99: f64,
    p999: f64,
    /// From request to answer, hosts and all, 99 %. Unit: s.
    lookup_p99: f64,
    /// Round trips of bulk traffic, if there is any.
    bulk_p99: Option<f64>,
    /// Packets dropped.
    drops: f64,
}

/// One run.
fn measure(
    (network, has_bulk): Bar,
    effort: Effort,
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<Point, Failure> {
    let times: u64 = if effort == Effort::Quick { 1 } else { 20 };
    let mut settings: Vec<(&str, Value)> = match network {
        Network::Usual => Vec::new(),
        // 36 ports of 50 Gbps down for 6 of 100 Gbps up.
        Network::Oversubscribed => vec![
            ("fabric.topology.radix", json!(42)),
            ("fabric.topology.oversubscription", json!(6)),
        ],
        Network::CutThrough => vec![
            ("fabric.switch.latency", json!("300 ns")),
            ("fabric.switch.forwarding", json!("cut-through")),
        ],
        Network::Far => vec![
            ("fabric.topology.kind", json!("three-tier")),
            ("fabric.topology.radix", json!(12)),
            ("fabric.topology.delay", json!("500 ns")),
        ],
    };
    if has_bulk {
        settings.push(("run.flows", json!(40_000 * times)));
    } else {
        let lookups = json!({ "kind": "requests", "interarrival": "500 ns", "class": 0 });
        settings.push(("workload", lookups));
        settings.push(("run.flows", json!(20_000 * times)));
    }
    let mut flows = Collected::default();
    let result = run_into(&FILE.with(&settings, seed)?, &mut flows, pulse)?;
    let parts = if has_bulk { 2 } else { 1 };
    let lookups: Vec<f64> = answered(&flows, parts).iter().map(Answered::seconds).collect();
    let own = |key: &str| number(&result, &format!("packet_switched.{key}"));
    let trip = |key: &str| own(&format!("round_trips.class_0.{key}_seconds"));
    Ok(Point {
        p50: trip("p50"),
        p99: trip("p99"),
        p999: trip("p999"),
        lookup_p99: quantile(&lookups, 0.99),
        bulk_p99: has_bulk.then(|| own("round_trips.class_1.p99_seconds")),
        drops: dropped(&result),
    })
}

fn dropped(result: &RunResult) -> f64 {
    number(result, "packet_switched.dropped_full")
}

/// The bars of Ethernet.
pub(super) struct Ethernet {
    bars: Vec<Bar>,
    /// By bar: over seeds.
    found: Vec<Vec<Point>>,
}

impl Ethernet {
    /// Measures them; in full runs also those of other networks that nothing is judged by.
    pub(super) fn measure(effort: Effort, watch: &mut Watch<'_>) -> Result<Self, Failure> {
        let networks: &[Network] = match effort {
            Effort::Quick => &[Network::Usual, Network::Far],
            Effort::Full => {
                &[Network::Usual, Network::Far, Network::Oversubscribed, Network::CutThrough]
            }
        };
        let bars: Vec<Bar> =
            networks.iter().flat_map(|&network| [(network, false), (network, true)]).collect();
        let jobs = with_seeds(&bars, SEEDS);
        let found = spread(&jobs, watch, |&(bar, seed), pulse| measure(bar, effort, seed, pulse))?;
        let of = |wanted: &Bar| {
            let all = jobs.iter().zip(&found).filter(|((bar, _), _)| bar == wanted);
            all.map(|(_, &point)| point).collect()
        };
        let found = bars.iter().map(of).collect();
        Ok(Self { bars, found })
    }

    fn of(&self, bar: Bar, what: fn(&Point) -> f64) -> Vec<f64> {
        let at = self.bars.iter().position(|&other| other == bar).expect("it is measured always");
        self.found[at].iter().map(what).collect()
    }

    /// Round trips of lookups in the network as configured: the median, over seeds. Unit: s.
    pub(super) fn medians(&self, has_bulk: bool) -> Vec<f64> {
        self.of((Network::Usual, has_bulk), |point| point.p50)
    }

    /// The same: 99 %.
    pub(super) fn tails(&self, has_bulk: bool) -> Vec<f64> {
        self.of((Network::Usual, has_bulk), |point| point.p99)
    }

    /// The rows that need nothing else.
    pub(super) fn judge(&self, sheet: &mut Sheet) {
        let (without, with) = (self.tails(false), self.tails(true));
        let rise: Vec<f64> =
            with.iter().zip(&without).map(|(with, without)| with / without).collect();
        sheet.measure("fig9.ethernet-rise", Measured::mean(&rise));
        sheet.measure("fig9.ethernet-base", Measured::mean(&without));
        sheet.measure("fig9.ethernet-bulk", Measured::mean(&with));
        for (id, has_bulk) in [("fig9.ethernet-base-far", false), ("fig9.ethernet-bulk-far", true)]
        {
            let tails = self.of((Network::Far, has_bulk), |point| point.p99);
            sheet.measure(id, Measured::mean(&tails));
        }
    }

    /// What was done.
    pub(super) const TEXT: &'static str = "On the Ethernet 200 hosts of a leaf-spine network ask each other for values of \
         4 KB, 10,000 times a second each, with and without 10 Gbps a host of messages of 64 KB in \
         another class; switches share their lines 8:1. Hosts are engines as Pony Express is one, \
         under Swift. A round trip is from a packet's first bit on its host's line to the arrival \
         of its acknowledgment, less what was spent in hosts: of requests and of values alike.";

    /// Its numbers.
    pub(super) fn numbers(&self) -> Block {
        numbers(&self.bars, &self.found)
    }
}

fn numbers(bars: &[Bar], found: &[Vec<Point>]) -> Block {
    let row = |(&(network, has_bulk), points): (&Bar, &Vec<Point>)| -> Vec<Value> {
        let mean = |what: fn(&Point) -> f64| {
            json!(Spread::of(&points.iter().map(what).collect::<Vec<_>>()).mean)
        };
        let name = match network {
            Network::Usual => "full bisection, store and forward",
            Network::Oversubscribed => "oversubscribed 3:1",
            Network::CutThrough => "cut-through, 300 ns",
            Network::Far => "three tiers, cables of 100 m",
        };
        let bulk: Vec<f64> = points.iter().filter_map(|point| point.bulk_p99).collect();
        let bulk_p99 = if bulk.is_empty() { Value::Null } else { json!(Spread::of(&bulk).mean) };
        vec![
            json!(name),
            json!(if has_bulk { "with" } else { "without" }),
            mean(|point| point.p50),
            mean(|point| point.p99),
            mean(|point| point.p999),
            mean(|point| point.lookup_p99),
            bulk_p99,
            mean(|point| point.drops),
        ]
    };
    let columns = [
        ("network", "Network", Unit::Count),
        ("bulk", "Bulk traffic", Unit::Count),
        ("p50", "Round trip of lookups, median", Unit::Seconds),
        ("p99", "99 %", Unit::Seconds),
        ("p999", "99.9 %", Unit::Seconds),
        ("lookup", "Whole lookup, 99 %", Unit::Seconds),
        ("bulk_p99", "Round trip of bulk traffic, 99 %", Unit::Seconds),
        ("drops", "Packets dropped", Unit::Count),
    ];
    table("On Ethernet, means over seeds", &columns, bars.iter().zip(found).map(row).collect())
}
