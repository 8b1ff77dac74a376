//! Disaggregated applications (§7.4, Fig. 18).

use report::Unit;
use report::page::{Axis, Block, PlotSeries, SeriesStyle};
use serde_json::{Value, json};

use super::SEEDS;
use super::datacentre::{Figures, flows, of};
use super::drawing::{findings, level, plot, table};
use crate::claims::{Measured, Sheet, Spread};
use crate::runs::{Collected, ScenarioFile, run_into};
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

const FIG18: ScenarioFile = ScenarioFile {
    path: "reproductions/shoal/fig18.toml",
    text: include_str!("../../shoal/fig18.toml"),
};

/// What stands in for an application: its sizes (our choice; the paper's traces are not public).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Application {
    /// Remote memory, page by page.
    Pages,
    /// Remote procedure calls of a large operator.
    Calls,
    /// Analytics: the paper's heavy tail with a tenth of its mean.
    Analytics,
}

const APPLICATIONS: [Application; 3] =
    [Application::Pages, Application::Calls, Application::Analytics];

impl Application {
    fn name(self) -> &'static str {
        match self {
            Self::Pages => "pages of 4 KB",
            Self::Calls => "calls (Homa W3)",
            Self::Analytics => "heavy tail, mean 10 KB",
        }
    }

    fn sizes(self) -> Value {
        match self {
            Self::Pages => json!({ "kind": "fixed", "size": "4 KB" }),
            Self::Calls => json!({ "kind": "table", "name": "W3" }),
            Self::Analytics => json!({ "kind": "pareto", "mean": "10 KB" }),
        }
    }
}

/// The share of flows both of whose ends are among the first `busy` nodes.
fn share_among(flows: &Collected, busy: u32) -> f64 {
    let among = |f: &&crate::runs::Delivered| f.flow.src.get().max(f.flow.dst.get()) < busy;
    flows.flows.iter().filter(among).count() as f64 / flows.flows.len() as f64
}

/// E18.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/fig18.claims.toml"));
    let jobs = with_seeds(&APPLICATIONS, SEEDS);
    let runs = spread(&jobs, watch, |&(application, seed), pulse| {
        let settings =
            [("workload.sizes", application.sizes()), ("run.flows", json!(flows(effort)))];
        let scenario = FIG18.with(&settings, seed)?;
        let mut delivered = Collected::default();
        let result = run_into(&scenario, &mut delivered, pulse)?;
        // Compute and memory nodes come first: a third of the rack.
        let busy = scenario.nodes().div_ceil(3);
        Ok((Figures::of(&result), share_among(&delivered, busy)))
    })?;
    let skews: Vec<f64> = runs.iter().map(|(_, skew)| *skew).collect();
    sheet.measure("fig18.skew", Measured::mean(&skews));
    let figures: Vec<Figures> = runs.iter().map(|(figures, _)| *figures).collect();
    sheet.measure("fig18.queue", Measured::largest(&of(&figures, |f| f.queue)));
    let grouped: Vec<&[Figures]> = figures.chunks(SEEDS as usize).collect();
    let bars = |title: &str, label: &str, unit: Unit, get: fn(&Figures) -> f64| {
        let spreads: Vec<_> = grouped.iter().map(|runs| Spread::of(&of(runs, get))).collect();
        let means = spreads.iter().enumerate().map(|(at, s)| (at as f64, s.mean)).collect();
        let series = PlotSeries {
            intervals: spreads.iter().map(|s| (s.low, s.high)).collect(),
            ..PlotSeries::new("ours", SeriesStyle::Points, means)
        };
        let names = APPLICATIONS.map(|application| application.name().to_string()).to_vec();
        plot(title, "", Axis::named("", names), Axis::linear(label, unit), vec![series])
    };
    let mut queues = bars("Longest queue", "Longest queue", Unit::Cells, |f| f.queue);
    queues.series.push(level("published", 0.0, sheet.number("fig18.queue")));
    let tails = bars("Fig. 18a", "FCT p99.9, short flows", Unit::Seconds, |f| f.fct_p999);
    let columns = [
        ("application", "Application", Unit::Count),
        ("realised", "Load of 50 Gbps, realised", Unit::Ratio),
        ("fct_mean", "FCT short, mean", Unit::Seconds),
        ("fct_p999", "p99.9", Unit::Seconds),
        ("queue", "Longest queue", Unit::Cells),
        ("node", "Most in a node", Unit::Cells),
    ];
    let row = |(application, runs): (&Application, &&[Figures])| {
        let mean = |get: fn(&Figures) -> f64| json!(Spread::of(&of(runs, get)).mean);
        vec![
            json!(application.name()),
            mean(|f| f.realised),
            mean(|f| f.fct_mean),
            mean(|f| f.fct_p999),
            mean(|f| f.queue),
            mean(|f| f.node),
        ]
    };
    let rows = APPLICATIONS.iter().zip(&grouped).map(row).collect();
    let blocks = vec![Block::Plots(vec![tails, queues]), table("Means over seeds", &columns, rows)];
    let text = "Compute and memory nodes, a third of the rack, exchange most of the flows; one \
                arrives each 12.65 ns. At that pace flows must be small: at a mean of 21 KB the \
                busy nodes would send all they can. The sizes are stand-ins, as the traces are not \
                public.";
    Ok(findings("Disaggregated applications", text, blocks, sheet))
}
