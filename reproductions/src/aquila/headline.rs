//! Reads of remote memory in an idle Clique (§1, §3.4; X06).

use aquila::config::Rma;
use aquila::rma::Kind;
use aquila::rma::open_loop::{Issue, latencies};
use aquila::switch::settings::Settings;
use aquila::topology::{Fibres, Shape};
use kernel::{Bytes, Rate, Span, Stream, Time};
use report::Unit;
use report::page::Block;
use serde_json::json;

use super::SEEDS;
use super::clique::{Clique, HOSTS, quantile, run as run_cells, us};
use super::memory::{READ, ends, host};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{findings, table};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// From one read to the next, so that each is alone. Unit: us.
const GAP: u64 = 20;
/// Fibres: as they are laid out, and all as long as may be (§3.2).
const FIBRES: [(Fibres, &str); 2] =
    [(Fibres::Grid, "by the layout of racks"), (Fibres::Metres(100), "100 m each")];

/// A choice that the paper leaves open (Aquila's README has them by number), another way.
pub(super) type Choice = (&'static str, &'static str, fn(&mut Rma));

/// All of them; the first is ours.
pub(super) const CHOICES: [Choice; 7] = [
    ("", "ours", |_| {}),
    ("U33", "first completion after 300 ns", |rma| rma.pcie.read = Span::from_ns(300)),
    ("U33", "first completion after 900 ns", |rma| rma.pcie.read = Span::from_ns(900)),
    ("U33", "doorbell and completion in half the time", |rma| {
        rma.pcie.doorbell = rma.pcie.doorbell / 2;
        rma.pcie.completion = rma.pcie.completion / 2;
    }),
    ("U33", "a bus of 64 Gbps", |rma| rma.pcie.rate = Rate::from_gbps(64)),
    ("U34", "responses of 64 B", |rma| rma.payload = Bytes::new(64)),
    ("U34", "responses without tag", |rma| rma.tag = Bytes::ZERO),
];

/// Reads between hosts of different pods, one after the other: how long they took, shortest first.
fn reads(
    clique: &Clique,
    rma: &Rma,
    count: u64,
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<Vec<Span>, Failure> {
    let hosts = clique.hosts(HOSTS);
    let mut stream = Stream::new(seed, "reproductions/aquila/headline", 0);
    let mut cells = ends(clique, (&Settings::default(), rma), seed);
    let pod = |number: u64| clique.shape().split(hosts[number as usize].tin).0;
    for number in 0..count {
        let (from, to) = loop {
            let (from, to) = (stream.below(HOSTS.into()), stream.below(HOSTS.into()));
            if pod(from) != pod(to) {
                break (from as usize, to as usize);
            }
        };
        let (from, to) = (host(&hosts[from]), host(&hosts[to]));
        let at = us(1 + GAP * number);
        cells.run(at);
        cells.act(from.0, at, |both, wishes| {
            let access = both.memory.access(to, Kind::Read, READ);
            both.memory.ask(Issue { from, access, at, end: None }, wishes);
        });
    }
    run_cells(&mut cells, Time::NEVER, pulse)?;
    cells.check_home().map_err(Failure::Model)?;
    let took = latencies(cells.endpoints().memory.issues(), Time::ZERO, Time::NEVER);
    assert_eq!(took.len() as u64, count, "each read alone is done");
    Ok(took)
}

/// What of a read the hosts' buses take before the first byte and behind the last: the rest is the fabric's, and what
/// TiNs take.
fn bus(rma: &Rma) -> Span {
    rma.pcie.doorbell + rma.pcie.read + rma.pcie.completion
}

/// What the choices that the paper leaves open give (`CHOICES`), over fibres of 100 m.
fn choices(clique: &Clique, count: u64, watch: &mut Watch<'_>) -> Result<Block, Failure> {
    let found = spread(&CHOICES, watch, |&(_, _, change), pulse| {
        let mut rma = Rma::default();
        change(&mut rma);
        reads(clique, &rma, count, 1, pulse)
    })?;
    let row = |(&(id, what, _), took): (&Choice, &Vec<Span>)| {
        let [median, tail] = [0.5, 0.99].map(|share| json!(quantile(took, share)));
        vec![json!(id), json!(what), median, tail]
    };
    let columns = [
        ("id", "Choice", Unit::Count),
        ("what", "", Unit::Count),
        ("p50", "Read over 100 m, median", Unit::Seconds),
        ("p99", "99 %", Unit::Seconds),
    ];
    let rows = CHOICES.iter().zip(&found).map(row).collect();
    Ok(table("What the paper leaves open (one seed)", &columns, rows))
}

/// Headline latencies.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/headline.claims.toml"));
    let cliques = FIBRES.map(|(fibres, _)| Clique::new(&Shape::FULL, fibres));
    let count = if effort == Effort::Quick { 200 } else { 2_000 };
    let jobs = with_seeds(&[0, 1], SEEDS);
    let found = spread(&jobs, watch, |&(which, seed), pulse| {
        let took = reads(&cliques[which], &Rma::default(), count, seed, pulse)?;
        Ok([0.5, 0.99, 1.0].map(|share| quantile(&took, share)))
    })?;
    let of = |which: usize, what: usize| -> Vec<f64> {
        let all = jobs.iter().zip(&found);
        all.filter(|((other, _), _)| *other == which).map(|(_, point)| point[what]).collect()
    };
    let bus = bus(&Rma::default()).as_seconds();
    let share = |which| -> Vec<f64> { of(which, 0).iter().map(|median| median - bus).collect() };
    for (which, suffix) in [(0, ""), (1, "-100m")] {
        sheet.measure(&format!("headline.read{suffix}"), Measured::mean(&of(which, 0)));
        sheet.measure(&format!("headline.fabric{suffix}"), Measured::mean(&share(which)));
    }
    let rows = FIBRES.iter().enumerate().map(|(which, (_, name))| {
        let mean = |what| json!(Spread::of(&of(which, what)).mean);
        let fabric = json!(Spread::of(&share(which)).mean);
        vec![json!(name), mean(0), fabric, json!(bus), mean(1), mean(2)]
    });
    let columns = [
        ("fibres", "Fibres", Unit::Count),
        ("p50", "Read, median", Unit::Seconds),
        ("fabric", "of it the fabric's", Unit::Seconds),
        ("bus", "and the buses'", Unit::Seconds),
        ("p99", "99 %", Unit::Seconds),
        ("longest", "longest", Unit::Seconds),
    ];
    let means = table("Means over seeds", &columns, rows.collect());
    let blocks = vec![means, choices(&cliques[1], count, watch)?];
    let text = "Hosts of a full Clique read 4 KB of hosts of other pods, one after the other. What is not the buses' \
                (doorbell, first completion, and telling software; our choice) counts as the fabric's, with what TiNs \
                take for requests and landing.";
    Ok(findings("Remote memory in an idle Clique", text, blocks, sheet))
}
