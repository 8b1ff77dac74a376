//! Control traffic beside that of a controller, as packets put it on links (§5.2, Fig. 19).
//!
//! Each node has so many flows that go on; then a few more start, one at a time, far enough apart for all that
//! one causes to be over before the next. What is counted is what these put on all links. `fig19` has the same
//! by arithmetic.
//!
//! Rates are of no interest here, so that flows are kept slow: nearly all of each link is left free.

use kernel::{Bytes, Rate, Span, Stream, Time};
use r2c2::Rack;
use r2c2::config::Config;
use r2c2::wire::SHORT_BYTES;
use rack::{Fabric, Flow, FlowId, NodeId};
use report::Unit;
use report::page::{Axis, Block, PlotSeries, SeriesStyle};

use super::assigned::rack;
use super::control::{CONTROLLER, central};
use crate::claims::{Measured, Shape, Sheet};
use crate::drawing::{findings, plot};
use crate::spread::spread;
use crate::{Effort, Failure, Findings, Watch};

/// Nodes of the rack (§5.2).
const NODES: u32 = 512;
/// When all know of the flows that go on: their news take 11 us of the controller's links.
const SETTLED: Span = Span::from_us(200);
/// From one event to the next: rates for all nodes take 5 us of the controller's links.
const APART: Span = Span::from_us(40);
/// Flows that are counted go where no other of their node goes: it has ten others at most.
const FLOWS_BESIDE: u32 = 10;

/// Who works rates out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    /// Every node.
    All,
    /// One.
    Controller,
}

/// Flows of a node that go on.
fn flows(effort: Effort) -> &'static [u32] {
    match effort {
        Effort::Quick => &[0, 1, 10],
        Effort::Full => &[0, 1, 2, 4, 7, 10],
    }
}

/// Events that are counted.
fn events(effort: Effort) -> u32 {
    match effort {
        Effort::Quick => 4,
        Effort::Full => 40,
    }
}

/// Bytes that control has put on links so far.
fn control_bytes(rack: &Rack, by: By) -> f64 {
    let details = rack.details();
    let count =
        |path: &str| details.get(path.split('.').next()?)?.get(path.split('.').nth(1)?)?.as_f64();
    let bytes = match by {
        By::All => count("broadcasts.copies").map(|copies| copies * SHORT_BYTES as f64),
        By::Controller => count("controller.bytes"),
    };
    bytes.expect("the rack counts it")
}

/// Bytes on all links of one start of a flow, in a rack whose nodes have so many flows each that go on.
fn measure(going_on: u32, by: By, events: u32) -> f64 {
    let config = Config {
        controller: (by == By::Controller).then_some(CONTROLLER.get()),
        // The controller computes at each of the events that are counted, and a few times before; nodes never.
        interval: if by == By::All { Span::from_us(1_000_000) } else { Span::from_us(10) },
        headroom: 0.99,
        initial_rate: Rate::from_bps(10_000_000),
        ..Config::default()
    };
    let plan = config.plan().expect("the rack of §5.2 is sound");
    let mut rack = Rack::new(plan, 1);
    let mut ids = (0..).map(FlowId::new);
    let mut start = |rack: &mut Rack, src: u32, step: u32, start: Time| {
        let ends = [src, (src + 1 + 51 * step) % NODES].map(NodeId::new);
        let id = ids.next().expect("there is no end of them");
        let (size, class) = (Bytes::new(1 << 40), rack::Class::new(0));
        rack.offer(&Flow { id, src: ends[0], dst: ends[1], size, start, class });
    };
    for node in 0..NODES {
        (0..going_on).for_each(|step| start(&mut rack, node, step, Time::ZERO));
    }
    let mut now = Time::ZERO + SETTLED;
    rack.advance(now, &mut ());
    let before = control_bytes(&rack, by);
    let mut draw = Stream::new(1, "events", 0);
    for _ in 0..events {
        start(&mut rack, draw.below(NODES.into()) as u32, FLOWS_BESIDE, now);
        now += APART;
        rack.advance(now, &mut ());
    }
    (control_bytes(&rack, by) - before) / f64::from(events)
}

/// The experiment.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../r2c2/controller.claims.toml"));
    let counts = flows(effort);
    let jobs: Vec<(u32, By)> =
        counts.iter().flat_map(|&count| [(count, By::All), (count, By::Controller)]).collect();
    // Events of the rack without other flows: the first alone, as the second is not.
    let events = |going_on| if going_on == 0 { 1 } else { events(effort) };
    let found = spread(&jobs, watch, |&(count, by), _| Ok(measure(count, by, events(count))))?;
    let of = |count: u32, by: By| {
        let at = jobs.iter().position(|&job| job == (count, by));
        found[at.expect("it was measured")]
    };
    let ratio = |count| of(count, By::Controller) / of(count, By::All);
    sheet.measure("controller.one", Measured::one(ratio(1)));
    sheet.measure("controller.ten", Measured::one(ratio(10)));
    sheet.measure("controller.constant", Measured::one(of(10, By::All) / of(1, By::All)));
    let grows = of(10, By::Controller) / of(1, By::Controller);
    sheet.measure(
        "controller.grows",
        Measured::shape(format!("{grows:.2} times"), Shape::of(grows > 1.0)),
    );
    let [few, own] = [By::Controller, By::All].map(|by| of(0, by));
    let words = format!("{} beside {}", Unit::Bytes.format(few), Unit::Bytes.format(own));
    sheet.measure("controller.few", Measured::shape(words, Shape::of(few < own)));
    let counted = of(10, By::Controller) / central(&rack(), 10);
    sheet.measure("controller.arithmetic", Measured::one(counted));
    let line = |name, by| {
        let points = counts.iter().filter(|&&count| count > 0);
        let points = points.map(|&count| (f64::from(count), of(count, by)));
        PlotSeries::new(name, SeriesStyle::Line, points.collect())
    };
    let series = vec![line("one controller", By::Controller), line("R2C2", By::All)];
    let x = Axis::linear("Long flows a node at a time", Unit::Count);
    let y = Axis::log("Control traffic of an event", Unit::Bytes);
    let figure = plot("Fig. 19, by packets", "", x, y, series);
    let text = "Bytes on all links of one start of a flow, as a run counts them: 512 nodes, each with so many \
                flows that go on. A controller hears of the event in 16 bytes and sends every node 12 bytes and \
                4 for each of its flows.";
    Ok(findings("Control traffic, by packets", text, vec![Block::Plots(vec![figure])], sheet))
}
