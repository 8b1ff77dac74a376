//! Throughput against the number of communicating pairs (§7.2, Fig. 12).

use kernel::Bytes;
use rack::NodeId;
use report::Unit;
use report::page::{Axis, Block, Plot, PlotSeries, SeriesStyle};
use scenario::Scenario;
use serde_json::json;
use shoal::config::PairOrder;
use shoal::packets::TRAILER_BYTES;
use shoal::{Config, Plan, Rack};

use crate::claims::{Measured, Shape, Sheet, Spread};
use crate::drawing::{curve, findings, plot, published};
use crate::runs::{ScenarioFile, config_of};
use crate::spread::{Pulse, spread, with_seeds};
use crate::steady::{self, Steady};
use crate::{Effort, Failure, Findings, Watch};

pub(super) const FIG12: ScenarioFile = ScenarioFile {
    path: "reproductions/shoal/fig12.toml",
    text: include_str!("../../shoal/fig12.toml"),
};

/// Pairs swept (our choice; the paper: from 1 to 512).
const PAIRS: [u32; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 384, 512];

/// From so many positions an epoch a message is several packets, not a cell (our choice): fine enough
/// for a window of a hundred epochs, and few enough under way that finding a cell's message is cheap.
const LARGE: u32 = 256;
/// Packets of such a message: about a hundred cells.
const PACKETS: u64 = 4;

/// A window of so many epochs, flows supplied anew each epoch. A node can send a cell in every
/// position of an epoch, and what is under way is less than four epochs' worth.
pub(super) fn window(plan: &Plan, warm_up: u64, window: u64) -> Steady {
    let one_cell = plan.cells.payload() - Bytes::new(TRAILER_BYTES);
    let message = match plan.schedule.positions() {
        LARGE.. => plan.config.packet * PACKETS,
        _ => plan.config.packet.min(one_cell),
    };
    let cells = u64::from(plan.schedule.positions());
    let ahead = 4 * cells.div_ceil(plan.cells.cells(message)) + 4;
    let step = plan.config.slot * u64::from(plan.schedule.slots());
    Steady { message, ahead, step, warm_up, window }
}

/// Who sends to whom in a scenario, each pair once.
pub(super) fn pairs(scenario: &Scenario) -> Result<Vec<(NodeId, NodeId)>, Failure> {
    let mut workload = scenario.draw()?;
    let mut pairs = Vec::new();
    while workload.next_start().is_some() {
        let Some(flow) = workload.next_flow() else { break };
        pairs.push((flow.src, flow.dst));
    }
    pairs.sort_unstable();
    pairs.dedup();
    Ok(pairs)
}

/// Cells an epoch that each of `pairs` gets.
pub(super) fn cells_an_epoch(
    plan: &Plan,
    pairs: &[(NodeId, NodeId)],
    steady: &Steady,
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<Vec<f64>, Failure> {
    // Messages count as they arrive whole: one after the other, not all of a pair's at once.
    let mut plan = plan.clone();
    plan.config.pair_order = PairOrder::Fifo;
    let mut rack = Rack::new(plan.clone(), seed);
    let messages = steady::messages(&mut rack, pairs, steady, &mut |share| pulse.at(share))
        .ok_or(Failure::Interrupted)?;
    let cells = plan.cells.cells(steady.message);
    Ok(messages.iter().map(|count| (count * cells) as f64 / steady.window as f64).collect())
}

/// The closed form: P nodes that exchange P flows use each other's links for the second hop. Each of
/// the N - P others relays a cell a flow and epoch; of the P - 1 within, each link is shared by one
/// flow's first hop and another's second, which halves it, and the direct link is whole.
fn closed_form(nodes: u32, pairs: u32) -> f64 {
    if pairs == 1 { f64::from(nodes - 1) } else { f64::from(nodes) - f64::from(pairs) / 2.0 }
}

/// E07.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/fig12.claims.toml"));
    let epochs = match effort {
        Effort::Quick => (20, 60),
        Effort::Full => (40, 400),
    };
    let jobs = with_seeds(&PAIRS, effort.seeds());
    let rates = spread(&jobs, watch, |&(count, seed), pulse| {
        let scenario = FIG12.with(&[("workload.pattern.pairs", json!(count))], seed)?;
        let plan = config_of::<Config>(&scenario).plan().expect("the scenario was checked");
        let steady = window(&plan, epochs.0, epochs.1);
        let pairs = pairs(&scenario)?;
        assert_eq!(pairs.len(), count as usize, "pairs drawn for {count}");
        let cells = cells_an_epoch(&plan, &pairs, &steady, seed, pulse)?;
        Ok(cells.iter().sum::<f64>() / f64::from(count))
    })?;
    let seeds = effort.seeds() as usize;
    let config = config_of::<Config>(&FIG12.with(&[], 1)?);
    let plan = config.plan().expect("the scenario was checked");
    let epoch = (config.slot * u64::from(plan.schedule.slots())).as_seconds();
    let bits = config.cell.bits() as f64;
    let in_bits = |cells: f64| cells * bits / epoch;

    let points: Vec<(u32, Spread)> = PAIRS
        .iter()
        .zip(rates.chunks(seeds))
        .map(|(&count, rates)| (count, Spread::of(rates)))
        .collect();
    let of = |index: usize| &rates[index * seeds..(index + 1) * seeds];
    let peak = points[0].1.mean;
    sheet.measure(
        "fig12.peak",
        Measured::mean(&of(0).iter().map(|&r| in_bits(r)).collect::<Vec<_>>()),
    );
    let half: Vec<f64> = of(PAIRS.len() - 1).iter().map(|rate| rate / peak).collect();
    sheet.measure("fig12.half", Measured::mean(&half));
    // One pair and two have the same throughput, by the closed form: there, which of them measures
    // larger is a matter of how the span of the measurement cuts the last epoch.
    let exact = |count: u32| closed_form(config.nodes, count);
    let falls = points.windows(2).all(|pair| {
        let [(before, high), (after, low)] = [pair[0], pair[1]];
        high.mean >= low.mean || exact(before) <= exact(after)
    });
    let words = if falls { "falls monotonically" } else { "does not fall with each step" };
    sheet.measure("fig12.monotone", Measured::shape(words, Shape::of(falls)));
    let off = |(count, rate): &(u32, Spread)| {
        [rate.low, rate.high].map(|rate| (rate / exact(*count) - 1.0).abs())
    };
    let worst = points.iter().flat_map(off).fold(0.0, f64::max);
    sheet.measure("fig12.closed-form", Measured::one(worst));

    let figure = figure(&points, config.nodes, in_bits, &sheet);
    let text = "P of 512 nodes each send one endless flow and receive one. The more of them there \
                are, the more each node relays for others.";
    Ok(findings("Throughput", text, vec![Block::Plots(vec![figure])], sheet))
}

/// Fig. 12 beside the closed form; `in_bits` turns cells an epoch into a rate.
fn figure(
    points: &[(u32, Spread)],
    nodes: u32,
    in_bits: impl Fn(f64) -> f64,
    sheet: &Sheet,
) -> Plot {
    let ours: Vec<_> = points
        .iter()
        .map(|&(count, s)| {
            let [low, mean, high] = [s.low, s.mean, s.high].map(&in_bits);
            (f64::from(count), Spread { low, mean, high })
        })
        .collect();
    let exact =
        (1..=nodes).map(|count| (f64::from(count), in_bits(closed_form(nodes, count)))).collect();
    let printed = vec![
        (1.0, sheet.number("fig12.peak")),
        (f64::from(nodes), sheet.number("fig12.peak") * sheet.number("fig12.half")),
    ];
    let series = vec![
        curve("ours", &ours),
        PlotSeries::new("closed form", SeriesStyle::Dotted, exact),
        published("published ends", printed),
    ];
    let x = Axis::linear("Communicating pairs", Unit::Count);
    let y = Axis::linear("Throughput of a destination", Unit::BitsPerSecond);
    plot("Fig. 12", "Mean over destinations, headers included.", x, y, series)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The closed form against water-filling of every subflow.
    #[test]
    fn the_closed_form_is_the_fair_share_of_all_subflows() {
        for (nodes, count) in [(8, 1), (8, 2), (8, 5), (8, 8), (13, 7), (16, 16)] {
            let ring = |n: u32| if count == 1 { 1 } else { (n + 1) % count };
            let pairs: Vec<_> =
                (0..count).map(|n| (NodeId::new(n), NodeId::new(ring(n)))).collect();
            for rate in super::super::fairness::ideal(nodes, &pairs) {
                let exact = closed_form(nodes, count);
                assert!((rate - exact).abs() < 1e-6, "{count} of {nodes}: {rate} {exact}");
            }
        }
    }
}
