//! How soon a new flow uses all virtual links (§3.3.3: "after a max of log(N) epochs").
//!
//! A quarter of the nodes are each sent to by all others, so that every node has long queues for them. Then a
//! node that has sent nothing yet begins a flow to another that nobody sends to. The same rack without that
//! flow runs beside it: by the first slot at which a queue is longer than there, the flow has a cell in it.

use kernel::{Bytes, Time};
use rack::{Class, Fabric, Flow, FlowId, NodeId};
use report::Unit;
use serde::{Deserialize, Serialize};
use serde_json::json;
use shoal::schedule::Schedule;
use shoal::{Config, Rack};

use crate::claims::{Measured, Shape, Sheet, Spread};
use crate::drawing::{findings, table};
use crate::spread::{Pulse, spread};
use crate::{Effort, Failure, Findings, Watch};

/// Who begins the flow, and who receives it.
const SOURCE: u32 = 0;
const DESTINATION: u32 = 1;
/// Epochs until queues are as long as they get (our choice: twice and more the longest, 254 cells of as many
/// senders, take a cell an epoch and queue each).
const SETTLED: u64 = 80;
/// Epochs that are looked at.
const LOOKED_AT: u64 = 16;
/// A queue of more cells than this is long: no flow of the first three epochs may use it.
const LONG: u32 = 8;

/// A rack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Case {
    nodes: u32,
    age_rule: bool,
}

/// What was found.
#[derive(Serialize, Deserialize)]
struct Found {
    /// Cells in each long queue as the flow begins.
    lengths: Vec<f64>,
    /// By long queue: whole epochs until a cell of the flow was in it; none within [`LOOKED_AT`].
    epochs: Vec<Option<u64>>,
}

impl Found {
    /// Until all were used.
    fn all(&self) -> f64 {
        let last = self.epochs.iter().map(|epochs| epochs.unwrap_or(LOOKED_AT)).max();
        last.expect("there are long queues") as f64
    }
}

/// An endless flow.
fn flow(id: u64, src: u32, dst: u32, start: Time) -> Flow {
    let [src, dst] = [src, dst].map(NodeId::new);
    let (size, class) = (Bytes::new(1 << 40), Class::new(0));
    Flow { id: FlowId::new(id), src, dst, size, start, class }
}

fn carry(case: Case, pulse: &mut Pulse<'_>) -> Result<Found, Failure> {
    let Case { nodes, age_rule } = case;
    let config = Config { nodes, age_rule, ..Config::default() };
    let plan = config.plan().expect("the rack of §7.1 with fewer nodes is sound");
    let slot = plan.config.slot;
    let slots = u64::from(Schedule::new(nodes, plan.config.channels, plan.config.schedule).slots());
    let mut racks = [Rack::new(plan.clone(), 1), Rack::new(plan, 1)];
    let busy = || DESTINATION + 1..DESTINATION + 1 + nodes / 4;
    let pairs = busy().flat_map(|dst| (SOURCE + 1..nodes).map(move |src| (src, dst)));
    let flows = pairs.filter(|(src, dst)| src != dst).zip(1..);
    for ((src, dst), id) in flows {
        racks.iter_mut().for_each(|rack| rack.offer(&flow(id, src, dst, Time::ZERO)));
    }
    let start = Time::ZERO + slot * (slots * SETTLED);
    let mut to = |racks: &mut [Rack; 2], now: Time| {
        racks.iter_mut().for_each(|rack| {
            rack.advance(now, &mut ());
        });
        let share =
            (now - Time::ZERO).as_seconds() / (slot * (slots * (SETTLED + LOOKED_AT))).as_seconds();
        if pulse.at(share).is_break() { Err(Failure::Interrupted) } else { Ok(()) }
    };
    to(&mut racks, start)?;
    let [without, with] = &mut racks;
    with.offer(&flow(0, SOURCE, DESTINATION, start));
    let queued = |rack: &Rack, peer| rack.queued(NodeId::new(SOURCE), NodeId::new(peer));
    let long: Vec<u32> = busy().filter(|&peer| queued(without, peer) > LONG).collect();
    let lengths = long.iter().map(|&peer| f64::from(queued(without, peer))).collect();
    let mut epochs = vec![None; long.len()];
    for passed in 0..slots * LOOKED_AT {
        to(&mut racks, start + slot * (passed + 1))?;
        let [without, with] = &racks;
        for (peer, epochs) in long.iter().zip(&mut epochs) {
            if epochs.is_none() && queued(with, *peer) > queued(without, *peer) {
                *epochs = Some(passed / slots);
            }
        }
    }
    Ok(Found { lengths, epochs })
}

/// The experiment.
pub(super) fn run(_: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/convergence.claims.toml"));
    let cases =
        [(64, true), (256, true), (64, false)].map(|(nodes, age_rule)| Case { nodes, age_rule });
    let found = spread(&cases, watch, |&case, pulse| carry(case, pulse))?;
    let mut put = |word: &str, measured| sheet.measure(&format!("convergence.{word}"), measured);
    put("links-64", Measured::one(found[0].all()));
    put("links-256", Measured::one(found[1].all()));
    put("without", Measured::one(found[2].all()));
    let early = |found: &Found| found.epochs.iter().filter(|&&epochs| epochs == Some(0)).count();
    let early: usize = found[..2].iter().map(early).sum();
    let all: usize = found[..2].iter().map(|found| found.epochs.len()).sum();
    let words = format!("{early} of {all} long queues");
    put("early", Measured::shape(words, Shape::of(early == 0 && all > 0)));
    let columns = [
        ("nodes", "Nodes", Unit::Count),
        ("rule", "Age rule", Unit::Count),
        ("long", "Long queues at the source", Unit::Count),
        ("cells", "Cells in them, mean", Unit::Count),
        ("first", "First used after epochs", Unit::Count),
        ("last", "All used after epochs", Unit::Count),
    ];
    let row = |(case, found): (&Case, &Found)| {
        let first = found.epochs.iter().flatten().min();
        let rule = if case.age_rule { "yes" } else { "no" };
        let cells = Spread::of(&found.lengths).mean;
        let long = found.epochs.len();
        vec![
            json!(case.nodes),
            json!(rule),
            json!(long),
            json!(cells),
            json!(first),
            json!(found.all()),
        ]
    };
    let rows = cases.iter().zip(&found).map(row).collect();
    let text = "A quarter of the nodes are each sent to by all others; a node that has sent nothing yet begins a \
                flow. A cell of a new flow goes to a queue of at most 2^age cells, its age in epochs.";
    Ok(findings(
        "A new flow's virtual links",
        text,
        vec![table("Long queues", &columns, rows)],
        sheet,
    ))
}
