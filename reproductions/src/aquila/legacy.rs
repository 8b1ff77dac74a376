//! Applications that sleep until an answer is there (§6; X18).

use report::Unit;
use serde_json::{Value, json};

use super::SEEDS;
use super::requests::{Answered, answered};
use crate::claims::{Measured, Shape, Sheet, Spread};
use crate::drawing::{findings, table};
use crate::runs::{Collected, ScenarioFile, quantile, run_nth};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

const FILE: ScenarioFile = ScenarioFile {
    path: "reproductions/aquila/legacy.toml",
    text: include_str!("../../aquila/legacy.toml"),
};

/// Which fabric of the file, and what its hosts are.
type Case = (usize, &'static str);

const AQUILA: usize = 0;
const ETHERNET: usize = 1;
const CASES: [Case; 4] = [
    (AQUILA, "legacy"),
    (ETHERNET, "legacy"),
    (AQUILA, "pony-express"),
    (ETHERNET, "pony-express"),
];

/// The median and the 99th percentile of the time from request to answer. Unit: s.
fn measure(
    (fabric, host): Case,
    effort: Effort,
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<[f64; 2], Failure> {
    let times = if effort == Effort::Quick { 1 } else { 10 };
    let key = format!("fabric.{fabric}.host.preset");
    let settings = [("run.flows", json!(4_000 * times)), (key.as_str(), json!(host))];
    let mut flows = Collected::default();
    run_nth(&FILE.with(&settings, seed)?, fabric, &mut flows, pulse)?;
    let times: Vec<f64> = answered(&flows, 1).iter().map(Answered::seconds).collect();
    Ok([0.5, 0.99].map(|share| quantile(&times, share)))
}

/// On Aquila and on Ethernet, with threads that sleep and with ones that poll.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/legacy.claims.toml"));
    let jobs = with_seeds(&CASES, SEEDS);
    let found = spread(&jobs, watch, |&(case, seed), pulse| measure(case, effort, seed, pulse))?;
    let of = |wanted: Case, which: usize| -> Vec<f64> {
        let all = jobs.iter().zip(&found).filter(|((case, _), _)| *case == wanted);
        all.map(|(_, times)| times[which]).collect()
    };
    let ratios = |host| -> Vec<f64> {
        let (ours, theirs) = (of((AQUILA, host), 1), of((ETHERNET, host), 1));
        ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect()
    };
    let (sleeping, polling) = (ratios("legacy"), ratios("pony-express"));
    sheet.measure("legacy.tail", Measured::mean(&sleeping));
    let (asleep, awake) = (Spread::of(&sleeping).mean, Spread::of(&polling).mean);
    let words = format!("{awake:.2} where they poll, {asleep:.2} where they sleep");
    let hides = (asleep - 1.0).abs() < (awake - 1.0).abs();
    sheet.measure("legacy.network", Measured::shape(words, Shape::of(hides)));
    let row = |&case: &Case| -> Vec<Value> {
        let name = if case.0 == AQUILA { "Aquila" } else { "Ethernet" };
        let mean = |which| json!(Spread::of(&of(case, which)).mean);
        vec![json!(name), json!(case.1), mean(0), mean(1)]
    };
    let columns = [
        ("fabric", "Fabric", Unit::Count),
        ("host", "Hosts", Unit::Count),
        ("p50", "From request to answer, median", Unit::Seconds),
        ("p99", "99 %", Unit::Seconds),
    ];
    let blocks = vec![table("Means over seeds", &columns, CASES.iter().map(row).collect())];
    let text = "136 hosts ask each other for 4 KB, 10,000 times a second each, over TCP. Legacy hosts take 20 to 50 µs to \
                wake the thread that waits, for the request and for the answer; the others poll.";
    Ok(findings("Legacy applications", text, blocks, sheet))
}
