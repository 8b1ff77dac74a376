//! Faults that nobody tells of, and how many packets have to be traced until the collector names them (§6; X23).

use aquila::link::classes::class_of;
use aquila::tables::{Component, Row, component};
use aquila::topology::{Far, Fibres, PortKind, Shape};
use aquila::trace::measure::{Load, Planted, run as trace};
use aquila::trace::{Culprit, Journey, Settings, Step};
use kernel::{Span, Stream};
use report::Unit;
use report::page::{Axis, Block, Scale};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::clique::Clique;
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{distribution, findings, plot, table};
use crate::runs::quantile;
use crate::spread::{Pulse, spread_anew};
use crate::{Effort, Failure, Findings, Watch};

/// Traced packets of a run, one size after the other until the fault is named; the last is the most that it may take
/// (our choice).
const PACKETS: [u64; 7] = [30, 100, 300, 1_000, 2_000, 5_000, 10_000];
const MOST: u64 = PACKETS[PACKETS.len() - 1];
/// Packets of "more than 1 KB" on average (§3.3). Unit: bytes.
const PACKET: u16 = 1_024;
/// Cells that have to be lost on a link, or misled by an entry, until the collector names it, if few others go by it: three
/// that are lost where one in 100,000 is by chance are rarer than one false alarm in a million Cliques, and of two wrong
/// steps both may not be records that are wrong themselves.
const LOST: u64 = 3;
const MISLED: u64 = 2;
/// The pod that packets to one pod go to in a sound Clique (our choice).
const POD: u16 = 1;
/// From one packet to the next in all of the Clique: it is next to idle.
const GAP: Span = Span::from_ns(100);

/// What is broken, and which packets are traced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A link that drops all, or a tenth, of what it carries; packets between random TiNs.
    Dead,
    Lossy,
    /// The same; packets to a pod that such packets are missing in: one that some of those over the link go to.
    DeadOfPod,
    LossyOfPod,
    /// An entry that leads elsewhere; packets between random TiNs.
    Entry,
    /// The same; packets to the pod that is complained about.
    EntryOfPod,
}

const KINDS: [(Kind, &str, &str); 6] = [
    (Kind::Dead, "dead", "a link drops all cells, packets to anywhere"),
    (Kind::Lossy, "lossy", "a link drops a tenth of them, packets to anywhere"),
    (Kind::DeadOfPod, "dead-of-pod", "a link drops all cells, packets to a pod behind it"),
    (Kind::LossyOfPod, "lossy-of-pod", "a link drops a tenth of them, packets to a pod behind it"),
    (Kind::Entry, "entry", "an entry leads elsewhere, packets to anywhere"),
    (Kind::EntryOfPod, "entry-of-pod", "an entry leads elsewhere, packets to the pod it is about"),
];

impl Kind {
    /// Of a link: how much of what it carries it drops, and whether packets are of one pod.
    const fn losses(self) -> Option<(f64, bool)> {
        match self {
            Self::Dead => Some((1.0, false)),
            Self::Lossy => Some((0.1, false)),
            Self::DeadOfPod => Some((1.0, true)),
            Self::LossyOfPod => Some((0.1, true)),
            Self::Entry | Self::EntryOfPod => None,
        }
    }
}

/// A planted fault: what it is, what should be named, and the pod that packets go to.
struct Case {
    planted: Planted,
    culprit: Culprit,
    pod: Option<u16>,
}

impl Case {
    /// Traced cells that the fault has lost or misled, and how many it takes until it is named.
    fn met(&self, shape: &Shape, journeys: &[Journey]) -> (u64, u64) {
        let count = |is_met: &dyn Fn(&Journey) -> bool| {
            journeys.iter().filter(|journey| is_met(journey)).count() as u64
        };
        match self.planted {
            Planted::Entry((tin, port, rvc, entry), row) => {
                let (pod, place) = shape.split(tin);
                let misleads = |step: &Step| {
                    let channel = class_of(step.input_vc).map(|(_, rvc)| rvc);
                    (step.tin, step.input, channel) == (tin, port, Some(rvc))
                        && row.minimal.contains(&step.output)
                };
                let is_of_entry = |journey: &Journey| {
                    component(shape, pod, place, journey.to) == Component::Far(entry)
                };
                let is_met =
                    |journey: &Journey| is_of_entry(journey) && journey.steps.iter().any(misleads);
                (count(&is_met), MISLED)
            }
            Planted::Loss(from, _) => {
                let ends = |step: &Step| (step.tin, step.output) == (from.tin, from.port);
                (count(&|journey| journey.steps.last().is_some_and(ends)), LOST)
            }
            Planted::Nothing => (0, 0),
        }
    }
}

/// A load of so many packets.
fn load(packets: u64, pod: Option<u16>) -> Load {
    Load { packets, length: PACKET, gap: GAP, is_traced: true, pod }
}

/// TiNs may tell all that they see: how much they may is a limit of time, not of packets.
fn settings() -> Settings {
    Settings { records_per_second: 100_000_000, ..Settings::default() }
}

/// A fault of a kind on the way of some packet: on what more packets take it is likelier.
fn plant(clique: &Clique, journeys: &[Journey], kind: Kind, stream: &mut Stream) -> Case {
    let shape = *clique.shape();
    let crosses =
        |step: &Step| step.output < shape.ports() && shape.kind(step.output) != PortKind::Terminal;
    loop {
        let journey = &journeys[stream.below(journeys.len() as u64) as usize];
        let step = journey.steps[stream.below(journey.steps.len() as u64) as usize];
        let Some((_, rvc)) = class_of(step.input_vc).filter(|_| crosses(&step)) else { continue };
        let (tin, port) = (step.tin, step.input);
        if let Some((share, is_of_pod)) = kind.losses() {
            let port = step.output;
            let planted = Planted::Loss(Far { tin, port }, share);
            let pod = is_of_pod.then(|| journey.to.pod());
            return Case { planted, culprit: Culprit::Link { tin, port }, pod };
        }
        let (pod, place) = shape.split(tin);
        let Component::Far(component) = component(&shape, pod, place, journey.to) else { continue };
        let entry = clique.tables.entry(clique.tables.block(tin, port, rvc), component);
        let row = clique.tables.by_index(entry);
        let right = row.minimal_ports() | row.other_ports();
        let wrong: Vec<u8> =
            (0..shape.external_ports()).filter(|&port| right >> port & 1 == 0).collect();
        if wrong.is_empty() {
            continue;
        }
        let wrong = wrong[stream.below(wrong.len() as u64) as usize];
        let row = Row { minimal: [wrong; 8], ..Row::EMPTY };
        let planted = Planted::Entry((tin, port, rvc, component), row);
        let culprit = Culprit::Entry { tin, port, rvc, component };
        let pod = (kind == Kind::EntryOfPod).then(|| journey.to.pod());
        return Case { planted, culprit, pod };
    }
}

/// What came of a fault.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Found {
    /// Packets that were traced until it was named before all others; `None`: it never was.
    after: Option<u64>,
    /// Whether it has lost or misled as many cells as the collector needs.
    is_met: bool,
    /// Whether anything else was named with the most packets.
    others: bool,
}

fn find(clique: &Clique, case: &Case, seed: u64, pulse: &mut Pulse<'_>) -> Result<Found, Failure> {
    let mut after = None;
    let (mut others, mut is_met) = (false, false);
    for (step, packets) in (0..).zip(PACKETS) {
        if after.is_some() && packets < MOST {
            continue;
        }
        let (load, settings) = (load(packets, case.pod), settings());
        let run = trace(&clique.topology, &clique.tables, case.planted, (&load, &settings), seed);
        let suspects = run.collector.suspects();
        if after.is_none() && suspects.first().is_some_and(|first| first.culprit == case.culprit) {
            after = Some(packets);
        }
        let (met, needed) = case.met(clique.shape(), &run.journeys);
        is_met = met >= needed;
        others |= suspects.iter().any(|suspect| suspect.culprit != case.culprit);
        if pulse.at(f64::from(step) / PACKETS.len() as f64).is_break() {
            return Err(Failure::Interrupted);
        }
    }
    Ok(Found { after, is_met, others })
}

/// Traced packets.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/tracing.claims.toml"));
    let (shapes, faults) = match effort {
        Effort::Quick => ([(&Shape::MINI, "mini")].to_vec(), 8),
        Effort::Full => ([(&Shape::MINI, "mini"), (&Shape::FULL, "full")].to_vec(), 50),
    };
    let cliques: Vec<_> =
        shapes.iter().map(|&(shape, _)| Clique::new(shape, Fibres::Grid)).collect();
    let loads: Vec<_> =
        [None, Some(POD)].iter().flat_map(|&pod| cliques.iter().map(move |c| (c, pod))).collect();
    let sound = spread_anew(&loads, watch, |&(clique, pod), _| {
        let (load, settings) = (load(MOST, pod), settings());
        Ok(trace(&clique.topology, &clique.tables, Planted::Nothing, (&load, &settings), 1))
    })?;
    let named = sound.iter().map(|run| run.collector.suspects().len()).sum::<usize>();
    sheet.measure("tracing.sound", Measured::one(named as f64));
    let jobs: Vec<(usize, Kind, u64)> = (0..shapes.len())
        .flat_map(|which| KINDS.map(|(kind, ..)| (which, kind)))
        .flat_map(|(which, kind)| (1..=faults).map(move |seed| (which, kind, seed)))
        .collect();
    let found = spread_anew(&jobs, watch, |&(which, kind, seed), pulse| {
        let mut stream = Stream::new(seed, "reproductions/aquila/planted", kind as u64);
        let case = plant(&cliques[which], &sound[which].journeys, kind, &mut stream);
        find(&cliques[which], &case, seed, pulse)
    })?;
    let of = |which: usize, kind: Kind| -> Vec<Found> {
        let all = jobs.iter().zip(&found);
        all.filter(|((shape, other, _), _)| (*shape, *other) == (which, kind))
            .map(|(_, &found)| found)
            .collect()
    };
    // Claims are about the largest Clique of the run.
    let last = shapes.len() - 1;
    for (kind, word, _) in KINDS {
        sheet.measure(&format!("tracing.{word}"), Measured::one(named_share(&of(last, kind))));
    }
    for (kind, word) in [(Kind::Dead, "dead"), (Kind::Lossy, "lossy"), (Kind::Entry, "entry")] {
        let met: Vec<_> = of(last, kind).into_iter().filter(|found| found.is_met).collect();
        sheet.measure(&format!("tracing.{word}-met"), Measured::one(named_share(&met)));
    }
    let others = found.iter().filter(|found| found.others).count();
    sheet.measure("tracing.others", Measured::one(others as f64));
    let names: Vec<&str> = shapes.iter().map(|&(_, name)| name).collect();
    let text = "IP packets of 1 KB between random TiNs of a Clique that does little else; all are traced, and a \
                fault is on the way of some. The collector knows the wiring and the tables as they are meant to be, \
                and hears records of TiNs. A rule that traces packets to one pod alone (M903) finds what is wrong on \
                ways to it sooner than one that traces packets to anywhere.";
    let blocks = drawn(&names, faults, &of);
    Ok(findings("Faults that tracing finds", text, blocks, sheet))
}

/// Packets until faults were named, of those that were.
fn counts(found: &[Found]) -> Vec<f64> {
    found.iter().filter_map(|found| found.after.map(|count| count as f64)).collect()
}

fn named_share(found: &[Found]) -> f64 {
    counts(found).len() as f64 / found.len() as f64
}

/// The figure, and its numbers.
fn drawn(sizes: &[&str], faults: u64, of: &dyn Fn(usize, Kind) -> Vec<Found>) -> Vec<Block> {
    let (mut rows, mut series) = (Vec::new(), Vec::new());
    for (which, size) in sizes.iter().enumerate() {
        for (kind, _, name) in KINDS {
            let found = of(which, kind);
            let after = counts(&found);
            let unseen = found.len() - after.len();
            let spread = (!after.is_empty()).then(|| Spread::of(&after));
            if spread.is_some() {
                let never = if unseen > 0 { format!(" ({unseen} never)") } else { String::new() };
                series.push(distribution(&format!("{size}: {name}{never}"), &after));
            }
            rows.push(vec![
                json!(size),
                json!(name),
                json!(named_share(&found)),
                json!(spread.map(|_| quantile(&after, 0.5))),
                json!(spread.map(|spread| spread.high)),
                json!(found.iter().filter(|found| found.others).count()),
            ]);
        }
    }
    let axis = |label: &str, unit, scale| Axis { label: label.into(), unit, scale };
    let (x, y) = (
        axis("traced packets", Unit::Count, Scale::Log),
        axis("of the faults that were named", Unit::Share, Scale::Linear),
    );
    let note = "Named: by the collector, before all else. Numbers of packets are those of the runs: 30 to 10,000.";
    let columns = [
        ("size", "Clique", Unit::Count),
        ("fault", "Fault", Unit::Count),
        ("named", "Named within 10,000 packets", Unit::Share),
        ("median", "Packets, median of those", Unit::Count),
        ("most", "most", Unit::Count),
        ("others", "Runs that named something else, too", Unit::Count),
    ];
    vec![
        Block::Plots(vec![plot("Packets until a fault is named", note, x, y, series)]),
        table(&format!("{faults} faults of each kind"), &columns, rows),
    ]
}
