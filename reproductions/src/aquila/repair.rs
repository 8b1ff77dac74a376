//! A controller that writes tables while cells pass: links that fail, and work that nobody is to notice (§3.2, §4.1, §4.3;
//! X21, X22).

use aquila::config::{Control, Maintenance, Profile, Sdn};
use aquila::link::classes::Mode;
use aquila::topology::packaging::{Packaging, Part};
use aquila::{Config, Plan};
use aquila_control::beside::measure::{Load, Outcome, carry};
use kernel::{Rate, Span, Stream};
use report::Unit;
use serde_json::{Value, json};

use super::clique::us;
use super::throughput::DATA;
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{findings, table};
use crate::spread::{spread_anew, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// Half of what a TiN's hosts inject, and seven tenths. Unit: Gbps.
const HALF: u64 = 50;
const MOST: u64 = 70;
/// When the first thing happens.
const FIRST: u64 = 6;

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Link,
    Cable,
    Bundle,
    /// A TiN and a cable are drained and put back.
    Drains,
    /// Control processors start again.
    Restarts,
}

const ALL: [(What, &str); 5] = [
    (What::Link, "1 link fails"),
    (What::Cable, "a cable of 8 fails"),
    (What::Bundle, "a bundle of 32 fails"),
    (What::Drains, "a TiN and a cable are drained and put back"),
    (What::Restarts, "four control processors start again"),
];

/// The plan of a Clique in which it happens.
fn plan(profile: Profile, what: What, seed: u64) -> Plan {
    let mut stream = Stream::new(seed, "reproductions/aquila/repair", what as u64);
    let mut draw = |count: u64| stream.below(count);
    let tins = u64::from(profile.shape().tins());
    let drain = |at: u64| Maintenance {
        at: Span::from_us(at),
        until: Some(Span::from_us(at + 1_000_000)),
        ..Maintenance::default()
    };
    let maintenance = match what {
        What::Drains => vec![
            Maintenance { drain_tin: Some(draw(tins) as u16), ..drain(FIRST) },
            Maintenance { drain_cable: Some(draw(8) as u32), ..drain(3_000_000) },
        ],
        What::Restarts => (0..4)
            .map(|at| Maintenance {
                at: Span::from_us(FIRST + 1_000_000 * at),
                restart: Some(draw(tins) as u16),
                ..Maintenance::default()
            })
            .collect(),
        _ => Vec::new(),
    };
    let sdn = Sdn { maintenance, ..Sdn::default() };
    let config = Config { profile: Some(profile), control: Control::Sdn, sdn, ..Config::default() };
    let plan = config.plan().expect("a Clique with a controller");
    let links = &plan.topology.links();
    let of = |is_it: fn(&Part) -> bool| -> Vec<Part> {
        Packaging::new(&plan.topology).parts(links.len() as u32).filter(is_it).collect()
    };
    let parts = match what {
        What::Link => {
            let global = (0..).zip(links.iter()).filter(|(_, link)| link.is_global);
            global.map(|(link, _)| Part::Link(link)).collect()
        }
        What::Cable => of(|part| matches!(part, Part::Cable(_))),
        What::Bundle => of(|part| matches!(part, Part::Bundle(_))),
        What::Drains | What::Restarts => return plan,
    };
    let part = parts[draw(parts.len() as u64) as usize];
    plan.failing(part, us(FIRST))
}

/// How long the repair took; none is endless. Unit: s.
fn seconds(found: &Outcome) -> f64 {
    found.repair.map_or(f64::INFINITY, Span::as_seconds)
}

/// Failures and planned work beside a controller.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/repair.claims.toml"));
    // Not the whole Clique: its 50 runs did not end in 27 minutes on two cores.
    let profile = match effort {
        Effort::Quick => Profile::Tiny,
        Effort::Full => Profile::Mini,
    };
    let modes =
        [(Mode::FullyAdaptive, "fully adaptive"), (Mode::MinimalDeterministic, "by a hash")];
    let cases: Vec<(usize, usize)> =
        (0..ALL.len()).flat_map(|what| (0..modes.len()).map(move |mode| (what, mode))).collect();
    let jobs = with_seeds(&cases, effort.seeds());
    let found = spread_anew(&jobs, watch, |&((what, mode), seed), pulse| {
        let what = ALL[what].0;
        let is_planned = matches!(what, What::Drains | What::Restarts);
        let rate = Rate::from_gbps(if is_planned { MOST } else { HALF });
        let load = Load { rate, class: DATA, mode: modes[mode].0, seed };
        carry(&plan(profile, what, seed), &load, |part| pulse.at(part)).ok_or(Failure::Interrupted)
    })?;
    let of = |is: &dyn Fn(usize, usize) -> bool, what: fn(&Outcome) -> f64| -> Vec<f64> {
        let all = jobs.iter().zip(&found).filter(|(((w, mode), _), _)| is(*w, *mode));
        all.map(|(_, found)| what(found)).collect()
    };
    let finished = of(&|what, _| what < 3, |found| f64::from(u8::from(found.repair.is_some())));
    sheet.measure("repair.finished", Measured::mean(&finished));
    let most = |all: Vec<f64>| Measured::one(all.into_iter().fold(0.0, f64::max));
    sheet.measure("repair.after", most(of(&|what, _| what < 3, |found| found.after as f64)));
    sheet.measure("repair.stuck", most(of(&|_, _| true, |found| found.stuck as f64)));
    let drains =
        |found: fn(&Outcome) -> f64| most(of(&|what, _| ALL[what].0 == What::Drains, found));
    sheet.measure("repair.hitless", drains(|found| found.lost as f64));
    sheet.measure("repair.gap", drains(|found| found.escapes as f64));
    let restarts =
        |found: fn(&Outcome) -> f64| most(of(&|what, _| ALL[what].0 == What::Restarts, found));
    sheet.measure("repair.restart-lost", restarts(|found| found.lost as f64));
    sheet.measure("repair.restart-written", restarts(|found| found.entries as f64));
    let row = |&(what, mode): &(usize, usize)| -> Vec<Value> {
        let mean = |value: fn(&Outcome) -> f64| {
            json!(Spread::of(&of(&|w, m| (w, m) == (what, mode), value)).mean)
        };
        vec![
            json!(ALL[what].1),
            json!(modes[mode].1),
            mean(seconds),
            mean(|found| found.batches as f64),
            mean(|found| found.entries as f64),
            mean(|found| found.stall.as_seconds()),
            mean(|found| found.lost as f64),
            mean(|found| found.escapes as f64),
        ]
    };
    let columns = [
        ("what", "What happens", Unit::Count),
        ("mode", "Routing of data", Unit::Count),
        ("repair", "To the last register", Unit::Seconds),
        ("batches", "Batches", Unit::Count),
        ("entries", "Entries", Unit::Count),
        ("stall", "Last cell lost after", Unit::Seconds),
        ("lost", "Cells lost", Unit::Cells),
        ("escapes", "Escapes", Unit::Cells),
    ];
    let blocks = vec![table("Means over seeds", &columns, cases.iter().map(row).collect())];
    let text = "Uniform cells at 50 Gbps a TiN while links between pods fail, and at 70 Gbps while operators drain and put \
                back, and control processors start again. The controller runs by itself (`control = \"sdn\"`, all times as \
                by default: 100 us to the Clique, 200 us a message between its parts, 2 us an entry) and its writes change tables entry by entry. \
                Of time in which nothing happens and nothing is written 5 us are carried; times are those of the controller.";
    Ok(findings("A controller that writes while cells pass", text, blocks, sheet))
}
