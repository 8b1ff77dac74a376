//! What other readings of the feedback, and of the fair share, would make of claims (§3.3.2, §3.3.3, §7.2).
//!
//! The rack counts feedback to the slot. Eq. 6 to the letter and Eq. 1 in whole epochs are the other values of
//! `feedback`; the fair share of §7.2 may be meant of nodes' links alone.

use report::Unit;
use serde_json::{Value, json};
use shoal::Config;

use super::fairness::{self, Ideal, ReadyQueue};
use super::throughput::{FIG12, cells_an_epoch, pairs, window};
use super::{detour, incast};
use crate::claims::{Measured, Sheet};
use crate::drawing::{findings, table};
use crate::runs::config_of;
use crate::spread::{Pulse, spread};
use crate::{Effort, Failure, Findings, Watch};

/// Epochs before and in a window (our choice).
const EPOCHS: (u64, u64) = (30, 70);
/// Nodes of the rack.
const ALL: u32 = 512;
/// Senders of the incasts (our choice, of those of Fig. 13).
const SENDERS: [u32; 3] = [10, 50, 100];
/// Random flows: the workload of §7.2 that does worst.
const FLOWS: u32 = 1_024;
/// All but the longest queue of Fig. 14 are looked at with one seed (our choice): what they change is far larger than
/// what a seed does.
const SEED: u64 = 1;

/// Eq. 6 to the letter, and Eq. 1 in whole epochs.
const MINUS_ONE: &str = "minus-one";
const WHOLE_EPOCHS: &str = "whole-epochs";
/// What claims are judged by.
const PHASE_EXACT: &str = "phase-exact";

/// A run and its figure.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Look {
    /// Bits a second of each of so many pairs.
    Rate(u32, &'static str),
    /// Longest queue less the number of senders.
    Incast(u32),
    /// Longest queue for a destination of degree one, with this seed.
    Intermediate(u64),
    /// Flows near their fair share.
    Near { ready: ReadyQueue, feedback: &'static str, ideal: Ideal },
}

/// All of them: the row that each is part of, and what it is.
const LOOKS: [(&str, &str, Look); 11] = [
    ("peak-minus-one", "One pair, Eq. 6 to the letter, bit/s", Look::Rate(1, MINUS_ONE)),
    ("half-minus-one", "512 pairs, Eq. 6 to the letter, bit/s", Look::Rate(ALL, MINUS_ONE)),
    ("peak-whole-epochs", "One pair, whole epochs, bit/s", Look::Rate(1, WHOLE_EPOCHS)),
    (
        INCAST,
        "10 senders, Eq. 6 to the letter, longest queue less senders",
        Look::Incast(SENDERS[0]),
    ),
    (INCAST, "50 senders", Look::Incast(SENDERS[1])),
    (INCAST, "100 senders", Look::Incast(SENDERS[2])),
    (DETOUR, "Fig. 14, Eq. 6 to the letter, longest queue", Look::Intermediate(1)),
    (DETOUR, "Another seed", Look::Intermediate(2)),
    (
        "fair-share-phase-exact",
        "1,024 flows, ready queue, to the slot, share near their fair share",
        near(ReadyQueue::On, PHASE_EXACT, Ideal::VirtualLinks),
    ),
    (
        "fair-share-minus-one",
        "1,024 flows, ready queue, Eq. 6 to the letter, share near their fair share",
        near(ReadyQueue::On, MINUS_ONE, Ideal::VirtualLinks),
    ),
    (
        "fair-share-node-links",
        "1,024 flows, no ready queue, share near what nodes' links alone allow",
        near(ReadyQueue::Off, PHASE_EXACT, Ideal::NodeLinks),
    ),
];

/// Rows of several runs.
const INCAST: &str = "incast-queue-minus-one";
const DETOUR: &str = "detour-queue-minus-one";

const fn near(ready: ReadyQueue, feedback: &'static str, ideal: Ideal) -> Look {
    Look::Near { ready, feedback, ideal }
}

/// The rate of each of so many pairs, headers included, as in Fig. 12.
fn rate(count: u32, feedback: &str, pulse: &mut Pulse<'_>) -> Result<f64, Failure> {
    let settings = [("workload.pattern.pairs", json!(count)), ("fabric.feedback", json!(feedback))];
    let scenario = FIG12.with(&settings, SEED)?;
    let plan = config_of::<Config>(&scenario).plan().expect("the scenario was checked");
    let steady = window(&plan, EPOCHS.0, EPOCHS.1);
    let cells = cells_an_epoch(&plan, &pairs(&scenario)?, &steady, SEED, pulse)?;
    let epoch = plan.config.slot * u64::from(plan.schedule.slots());
    let cells = cells.iter().sum::<f64>() / f64::from(count);
    Ok(cells * plan.config.cell.bits() as f64 / epoch.as_seconds())
}

fn look(look: Look, pulse: &mut Pulse<'_>) -> Result<f64, Failure> {
    let minus_one: [(&'static str, Value); 1] = [("fabric.feedback", json!(MINUS_ONE))];
    match look {
        Look::Rate(count, feedback) => rate(count, feedback, pulse),
        Look::Incast(senders) => {
            let incast = incast::carry(senders, &minus_one, SEED, pulse)?;
            Ok(incast.queue - f64::from(senders))
        }
        Look::Intermediate(seed) => detour::longest_queue(&minus_one, seed, Effort::Quick, pulse),
        Look::Near { ready, feedback, ideal } => {
            let more = [("fabric.feedback", json!(feedback))];
            fairness::near_among(FLOWS, ready, &more, ideal, EPOCHS, pulse)
        }
    }
}

/// The experiment.
pub(super) fn run(_: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/readings.claims.toml"));
    let found = spread(&LOOKS, watch, |&(.., one), pulse| look(one, pulse))?;
    let of = |row: &str| -> Vec<f64> {
        let all = LOOKS.iter().zip(&found);
        all.filter(|((known, ..), _)| *known == row).map(|(_, &found)| found).collect()
    };
    let mut put = |row: &str, measured| sheet.measure(&format!("readings.{row}"), measured);
    let [peak, half] = ["peak-minus-one", "half-minus-one"].map(|row| of(row)[0]);
    put("peak-minus-one", Measured::one(peak));
    put("half-minus-one", Measured::one(half / peak));
    for row in [INCAST, DETOUR] {
        put(row, Measured::largest(&of(row)));
    }
    for row in [
        "peak-whole-epochs",
        "fair-share-phase-exact",
        "fair-share-minus-one",
        "fair-share-node-links",
    ] {
        put(row, Measured::one(of(row)[0]));
    }
    let columns = [("look", "", Unit::Count), ("found", "Found", Unit::Ratio)];
    let rows =
        LOOKS.iter().zip(&found).map(|((_, name, _), found)| vec![json!(name), json!(found)]);
    let blocks = vec![table("", &columns, rows.collect())];
    let text = "Figs 12 to 14 and the fairness of §7.2 with feedback as Eq. 6 has it to the letter, and in \
                whole epochs; and fairness against the max-min rates of a network in which each node's link \
                alone has an end.";
    Ok(findings("Other readings", text, blocks, sheet))
}
