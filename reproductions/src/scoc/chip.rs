//! The chip's own figures: what it moves, how fast, and how long a packet is in it (§1, §4.E, §5).

use std::ops::ControlFlow;

use kernel::{Bytes, Span, Time};
use rack::{Completion, Fabric, Flow, FlowId, NodeId, Probe};
use report::Unit;
use report::page::Block;
use scoc::{CHIP, ChipConfig, Config, FALL_THROUGH, Part, SwitchTable, fall_through};
use serde_json::json;

use super::papers_chip;
use crate::claims::{Measured, Sheet};
use crate::drawing::{findings, table};
use crate::{Effort, Failure, Findings, Watch};

/// Sizes of the packets that fall through: those of §4.E.
const SIZES: [u64; 4] = [40, 85, 120, 288];
/// Hiera's chip (§4.E): cycles of its packets, and cycles a second.
const HIERA_CYCLES: f64 = 25.0;
const HIERA_HERTZ: f64 = 800e6;

/// Hears how long a flow takes.
struct Took(Span);

impl Probe for Took {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        self.0 = completion.end - completion.flow.start;
        ControlFlow::Continue(())
    }
}

/// From a packet's first bit into the idle chip to its first bit out, in seconds, by a run.
fn falls_through(size: u64) -> f64 {
    let config = Config { switch: SwitchTable::Scoc(papers_chip()), ..Config::default() };
    let plan = config.plan().expect("the paper's chip is sound");
    let mut rack = scoc::Rack::new(plan, 1);
    let [src, dst] = [3, 77].map(NodeId::new);
    let size = Bytes::new(size);
    let (id, start, class) = (FlowId::new(0), Time::ZERO, rack::Class::default());
    rack.offer(&Flow { id, src, dst, size, start, class });
    let mut took = Took(Span::ZERO);
    rack.advance(Time::NEVER, &mut took);
    let Config { cable, line_rate, .. } = config;
    (took.0 - cable * 2 - line_rate.send_time(size)).as_seconds()
}

/// §1, §4.E, §5.
pub(super) fn run(_: Effort, _: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../scoc/chip.claims.toml"));
    let chip = ChipConfig::as_built();
    let mut put = |word: &str, value: f64| {
        sheet.measure(&format!("chip.{word}"), Measured::one(value));
    };
    put("internal", 2.0 * chip.crossbar_rate().as_bps() as f64);
    put("speed-up", chip.speed_up());
    let times = SIZES.map(falls_through);
    put("fall-through", times.iter().copied().fold(0.0, f64::max));
    let [least, most] = [f64::min, f64::max].map(|of| times.into_iter().reduce(of).expect("four"));
    put("fall-through-sizes", most - least);
    put("hiera", HIERA_CYCLES / HIERA_HERTZ);
    put("flat", chip.line_rate.send_time(Bytes::new(288)).as_seconds());
    put("link-watts", CHIP.link_watts / CHIP.ports as f64);
    put("link-energy", 1e12 / CHIP.raw_rate.as_bps() as f64);
    let part = |part: &Part| {
        let cycles = part.cycles as f64 / CHIP.clock_hertz as f64;
        vec![json!(part.name), json!(part.cycles), json!(part.fixed.as_seconds() + cycles)]
    };
    let sum = fall_through(CHIP.clock_hertz).as_seconds();
    let rows = FALL_THROUGH.iter().map(part);
    let rows = rows.chain([vec![json!("all"), json!(null), json!(sum)]]).collect();
    let columns = [
        ("part", "Part", Unit::Count),
        ("cycles", "Cycles", Unit::Count),
        ("time", "Time", Unit::Seconds),
    ];
    let by_size = |(size, time): (u64, f64)| vec![json!(size), json!(time)];
    let sizes = SIZES.into_iter().zip(times).map(by_size).collect();
    let blocks: Vec<Block> = vec![
        table("What falling through takes", &columns, rows),
        table(
            "By a run, from the first bit in to the first bit out",
            &[("size", "Packet", Unit::Bytes), ("time", "Time", Unit::Seconds)],
            sizes,
        ),
    ];
    let text = "The chip's figures from its clock, its words and its lines; how long a packet falls through \
                by a run of one packet through the idle chip.";
    Ok(findings("The chip", text, blocks, sheet))
}
