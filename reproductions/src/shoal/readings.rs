//! What other readings of the feedback, and of the fair share, would make of claims (§3.3.2, §3.3.3, §7.2).
//!
//! The rack counts feedback to the slot. Eq. 6 to the letter and Eq. 1 in whole epochs are the other values of
//! `feedback`; the fair share of §7.2 may be meant of nodes' links alone.

use report::Unit;
use serde_json::{Value, json};
use shoal::Config;

use super::fairness::{self, Ideal};
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
/// Each is looked at once (our choice): what they change is far larger than what a seed does.
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
    /// Longest queue by the number of senders.
    Incast(u32),
    /// Longest queue for a destination of degree one, of two seeds.
    Intermediate(u64),
    /// Flows near their fair share.
    Near { ready: bool, feedback: &'static str, ideal: Ideal },
}

/// All of them, in the order in which they are measured.
const LOOKS: [(&str, Look); 10] = [
    ("One pair, Eq. 6 to the letter, bit/s", Look::Rate(1, MINUS_ONE)),
    ("512 pairs, Eq. 6 to the letter, bit/s", Look::Rate(ALL, MINUS_ONE)),
    ("One pair, whole epochs, bit/s", Look::Rate(1, WHOLE_EPOCHS)),
    ("10 senders, Eq. 6 to the letter, longest queue a sender", Look::Incast(SENDERS[0])),
    ("50 senders", Look::Incast(SENDERS[1])),
    ("100 senders", Look::Incast(SENDERS[2])),
    ("Fig. 14, Eq. 6 to the letter, longest queue", Look::Intermediate(1)),
    ("Another seed", Look::Intermediate(2)),
    (
        "1,024 flows, ready queue, Eq. 6 to the letter, share near their fair share",
        Look::Near { ready: true, feedback: MINUS_ONE, ideal: Ideal::VirtualLinks },
    ),
    (
        "1,024 flows, no ready queue, share near what nodes' links alone allow",
        Look::Near { ready: false, feedback: PHASE_EXACT, ideal: Ideal::NodeLinks },
    ),
];

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
            Ok(incast.queue / f64::from(senders))
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
    let found = spread(&LOOKS, watch, |&(_, one), pulse| look(one, pulse))?;
    let mut put = |word: &str, measured| sheet.measure(&format!("readings.{word}"), measured);
    put("peak-minus-one", Measured::one(found[0]));
    put("half-minus-one", Measured::one(found[1] / found[0]));
    put("peak-whole-epochs", Measured::one(found[2]));
    put("incast-queue-minus-one", Measured::largest(&found[3..6]));
    put("detour-queue-minus-one", Measured::largest(&found[6..8]));
    put("fair-share-minus-one", Measured::one(found[8]));
    put("fair-share-node-links", Measured::one(found[9]));
    let columns = [("look", "", Unit::Count), ("found", "Found", Unit::Ratio)];
    let rows = LOOKS.iter().zip(&found).map(|((name, _), found)| vec![json!(name), json!(found)]);
    let blocks = vec![table("", &columns, rows.collect())];
    let text = "Figs 12 to 14 and the fairness of §7.2 with feedback as Eq. 6 has it to the letter, and in \
                whole epochs; and fairness against the max-min rates of a network in which each node's link \
                alone has an end.";
    Ok(findings("Other readings", text, blocks, sheet))
}
