//! How long a Clique takes to boot itself (§4.4; X12), in how much memory of its firmware (§3.5; X13), and whether the
//! example of Fig. 6 is a possible run (X29).
//!
//! **Calibrated**: the paper gives neither how fast ordered sets follow each other nor how long a control processor takes
//! for an entry of a register, but the shortest and the longest bootstrap of a TiN. [`ENTRY_TIME`] and [`MOS_INTERVAL`] are
//! those with which a full Clique with 512 connected TiNs (U49) has these two; the time of the whole Clique then follows,
//! and is what is claimed. Where 24 are connected, an interval of 93 ms gives the longest bootstrap, and the rest follows.

use std::ops::ControlFlow;

use aquila::topology::{Fibres, Shape, Topology};
use aquila_control::sim::{Config, Fault, Sim};
use kernel::{Span, Time};
use report::Unit;
use serde_json::{Value, json};

use super::boot::{Boot, Outcome, Profile};
use crate::claims::{Measured, Sheet};
use crate::drawing::{findings, table};
use crate::spread::spread_anew;
use crate::{Effort, Failure, Findings, Watch};

/// From one management ordered set to the next: then the longest bootstrap of a TiN is the paper's.
pub const MOS_INTERVAL: Span = Span::from_us(112_000);
/// The same where [`FEW`] are connected.
const MOS_INTERVAL_FEW: Span = Span::from_us(93_000);
/// Connected TiNs of a Clique that is booted in many waves (our choice: §4.4 has several, and does not say how many are
/// connected).
const FEW: u16 = 24;
/// How long an entry of a register takes: then the shortest is.
pub const ENTRY_TIME: Span = Span::from_us(43_000);

/// A Clique, its connected TiNs (U49), and from one of its ordered sets to the next.
type Clique = (Profile, u16, Span);

/// Cliques; the last two are those that claims are about, with few connected TiNs and with as many as App. A has.
const fn cliques(effort: Effort) -> &'static [Clique] {
    const MANY: Clique = (Profile::Full, 512, MOS_INTERVAL);
    const SOME: Clique = (Profile::Full, FEW, MOS_INTERVAL_FEW);
    match effort {
        Effort::Quick => {
            &[(Profile::Mini, 4, MOS_INTERVAL), (Profile::Mini, 60, MOS_INTERVAL), SOME, MANY]
        }
        Effort::Full => &[
            (Profile::Full, 8, MOS_INTERVAL_FEW),
            (Profile::Full, 64, MOS_INTERVAL_FEW),
            (Profile::Full, 256, MOS_INTERVAL_FEW),
            SOME,
            MANY,
        ],
    }
}

fn boot((profile, connected, mos_interval): Clique) -> Result<Outcome, Failure> {
    let asked = Boot { profile, connected: Some(connected), mos_interval, ..Boot::default() };
    let outcome = asked.run(&mut |_, _, _| ControlFlow::Continue(()));
    let outcome = outcome.map_err(|problems| Failure::Model(format!("{problems:?}")))?;
    if !outcome.is_done {
        let left = outcome.left();
        return Err(Failure::Model(format!("{connected} connected: not ready: {left:?}")));
    }
    Ok(outcome)
}

/// Fig. 6: whether TiN 3 boots 2 and then 4, and 4 boots 5, in one of some runs of five TiNs in a row.
fn example() -> bool {
    let shape = Shape { tins_per_pod: 5, pods: 1, local_ports: 4, global_ports: 0, ..Shape::FULL };
    let topology =
        Topology::new(&shape, Fibres::Grid).expect("five TiNs that are wired each to each");
    let mut config = Config::new(&shape, vec![0, 2], 1);
    config.manager.targets_max = 1;
    config.power_on = Span::from_us(60_000_000);
    let wired = [(0, 1), (1, 2), (2, 3), (3, 4)];
    for (link, ends) in (0..).zip(topology.links()) {
        if !wired.contains(&(ends.low.tin, ends.high.tin)) {
            config.faults.push((Time::ZERO, Fault::Link { link, is_up: false }));
        }
    }
    (0..40).any(|seed| {
        let mut sim = Sim::new(Config { seed, ..config.clone() });
        let is_done = sim.run();
        let results = sim.results();
        let proxy = |tin: usize| results.tins[tin].proxy.map(|(proxy, _)| proxy);
        is_done
            && (proxy(1), proxy(3), proxy(4)) == (Some(2), Some(2), Some(3))
            && results.crossed > 0
            && results.passed_unready == 0
    })
}

/// The bootstrap.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/bootstrap.claims.toml"));
    let found = spread_anew(cliques(effort), watch, |&clique, _| boot(clique))?;
    let [.., few, many] = &found[..] else { unreachable!("there are more than two") };
    let seconds = |time: Option<&Span>| time.map_or(f64::NAN, |time| time.as_seconds());
    for (of, rows) in [
        (few, ["bootstrap.direct-24", "bootstrap.pmos-24", "bootstrap.total-24"]),
        (many, ["bootstrap.direct", "bootstrap.pmos", "bootstrap.total"]),
    ] {
        let [direct, pmos] = of.times();
        let whole = of.total().unwrap_or(f64::NAN);
        let times = [seconds(direct.first()), seconds(pmos.last()), whole];
        rows.into_iter().zip(times).for_each(|(row, time)| sheet.measure(row, Measured::one(time)));
    }
    let [direct, pmos] = many.times();
    let is_faster = |time: &&Span| time.as_seconds() < seconds(pmos.first());
    let faster = direct.iter().filter(is_faster).count() as f64 / direct.len() as f64;
    sheet.measure("bootstrap.faster", Measured::one(faster));
    let peak = found.iter().map(|outcome| outcome.results.memory_peak()).max().unwrap_or(0);
    sheet.measure("bootstrap.memory", Measured::one(peak.into()));
    sheet.measure("bootstrap.example", Measured::one(if example() { 1.0 } else { 0.0 }));
    let text = "From power-on to all ready in simulated time: the firmware of every TiN, DHCP, sessions over TCP and by \
                PMOS, and the controller's applications. An ordered set takes 112 ms and an entry of a register 43 ms: with \
                these the shortest and the longest bootstrap of a TiN are the paper's where 512 TiNs are connected. So they \
                are with 24, and 93 ms: there the whole takes 2.5 hours, as the paper's.";
    Ok(findings("How a Clique boots itself", text, vec![by_count(&found)], sheet))
}

fn by_count(found: &[Outcome]) -> report::page::Block {
    let row = |outcome: &Outcome| -> Vec<Value> {
        let summary = outcome.summary("");
        let waves = outcome.results.waves();
        let waves: Vec<String> = waves.iter().map(ToString::to_string).collect();
        vec![
            summary["connected"].clone(),
            json!(waves.join(", ")),
            summary["total_seconds"].clone(),
            summary["bootstrap_seconds"]["direct"]["max"].clone(),
            summary["bootstrap_seconds"]["pmos"]["min"].clone(),
            summary["bootstrap_seconds"]["pmos"]["median"].clone(),
            summary["bootstrap_seconds"]["pmos"]["max"].clone(),
            summary["memory_peak_bytes"].clone(),
            summary["batches"].clone(),
        ]
    };
    let columns = [
        ("connected", "Connected TiNs", Unit::Count),
        ("waves", "TiNs by wave", Unit::Count),
        ("total", "All ready after", Unit::Seconds),
        ("direct", "Direct, longest", Unit::Seconds),
        ("pmos_min", "By PMOS, shortest", Unit::Seconds),
        ("pmos_median", "Median", Unit::Seconds),
        ("pmos_max", "Longest", Unit::Seconds),
        ("memory", "Most memory of a firmware", Unit::Bytes),
        ("batches", "Batches", Unit::Count),
    ];
    table(
        "By TiNs that are connected to the datacenter's network",
        &columns,
        found.iter().map(row).collect(),
    )
}
