//! Invented results in the shape of real ones: enough of everything to see each part of a report.
//! No figure here is a result of any simulation.

use kernel::Bytes;
use rack::results::{Cdf, Figure, Quantiles, RunResult, SeriesTable, SizeBin, Table};
use rack::{Gauge, GaugeKind, Stage};
use report::page::{Axis, Block, Page, Plot, PlotSeries, Section, SeriesStyle};
use report::{Cause, Claim, Kind, Unit, Verdict, claims_page};
use serde_json::{Value, json};

const STAGES: [Stage; 5] = [
    Stage {
        name: "source_backlog",
        meaning: "Waiting at the source for earlier data of the node.",
    },
    Stage { name: "source_queue", meaning: "In the source's queue to the intermediate node." },
    Stage { name: "propagation", meaning: "On the wires and in the switches." },
    Stage { name: "intermediate_queue", meaning: "In a queue of the intermediate node." },
    Stage { name: "reassembly", meaning: "At the receiver, until the cells before it arrive." },
];

const GAUGES: [Gauge; 10] = [
    Gauge { name: "queue_max_cells", meaning: "Longest single queue.", kind: GaugeKind::Peak },
    Gauge { name: "queue_mean_cells", meaning: "Mean queue length.", kind: GaugeKind::Level },
    Gauge {
        name: "queue_node_max_cells",
        meaning: "All cells queued at the fullest node.",
        kind: GaugeKind::Peak,
    },
    Gauge { name: "backlog_bytes", meaning: "Data offered and not sent.", kind: GaugeKind::Level },
    Gauge { name: "hops", meaning: "Payload cells sent on a link", kind: GaugeKind::Count },
    Gauge {
        name: "cell_slots",
        meaning: "Cells the schedule has room for, empty ones too",
        kind: GaugeKind::Count,
    },
    Gauge { name: "delivered_bytes", meaning: "Bytes delivered", kind: GaugeKind::Count },
    Gauge { name: "links_down_share", meaning: "Links that are down.", kind: GaugeKind::Level },
    Gauge {
        name: "reorder_max_bytes",
        meaning: "Most data held out of order for one flow.",
        kind: GaugeKind::Peak,
    },
    Gauge { name: "flows_active", meaning: "Flows begun and not ended.", kind: GaugeKind::Level },
];

/// A rough wobble between 0 and 1, the same on every machine.
fn wobble(step: usize, salt: usize) -> f64 {
    let mixed = (step as u64 * 0x9e37_79b9 + salt as u64 * 0x85eb_ca6b).wrapping_mul(0xc2b2_ae35);
    ((mixed >> 12) % 1000) as f64 / 1000.0
}

/// A sample run; `pace` scales its times, so that several differ.
pub fn run(label: &str, pace: f64) -> RunResult {
    RunResult {
        label: label.into(),
        scenario: "name = \"shoal-rack\"\nseed = 7\n\n[shoal]\nnodes = 512\nslot = \"20.48 ns\"\n\
                   guard = \"2.75 ns\"\n\n[workload]\nkind = \"poisson\"\nsizes = \"homa-w4\"\n\
                   load = 0.5\nflows = 100000\n"
            .into(),
        summary: summary(pace),
        stages: STAGES.to_vec(),
        bins: bins(pace),
        cdfs: cdfs(pace),
        series: series(pace),
        tables: vec![Table {
            title: "Bounds".into(),
            note: "What the design promises, and the most that was seen.".into(),
            columns: ["Quantity", "Source", "Bound", "Seen"].map(String::from).to_vec(),
            rows: [
                ["Cells in one queue", "Eq. 3", "11", "8"],
                ["Cells at one node", "Eq. 4", "511", "336"],
                ["Data out of order", "Eq. 6", "1.2 MB", "186 KB"],
            ]
            .map(|row| row.map(String::from).to_vec())
            .to_vec(),
        }],
    }
}

fn class(count: u64, scale: f64) -> Value {
    json!({
        "count": count, "unfinished": 0, "mean": 1.4 * scale, "p50": scale, "p95": 2.6 * scale, "p99": 4.4 * scale,
        "p999": 8.2 * scale, "max": 13.7 * scale,
    })
}

fn summary(pace: f64) -> Value {
    json!({
        "rackloom_version": "0.1.0",
        "scenario_hash": "9f2c41d07be8a3c5",
        "seed": 7,
        "fabric": "shoal",
        "nodes": 512,
        "load": { "nominal": 0.5, "realised": 0.4973, "rate": 100_000_000_000_u64 },
        "saturated": pace > 2.0,
        "interrupted": false,
        "stopped": null,
        "warm_up_flows": 0,
        "warm_up": { "found_by": "none", "seconds": 0.0, "settled": true, "unsettled_share": 0.0 },
        "simulated_seconds": 0.003142,
        "event_hash": "5e1f20c49ab37d68",
        "flows": {
            "offered": 100_000, "measured": 100_000, "completed": 99_997, "failed": 3,
            "measured_failed": 3, "unfinished": 0,
        },
        "bytes": { "offered": 9.81e9, "delivered": 9.80e9, "lost": 3.2e5 },
        "fct": {
            "short": class(81_204, 9.4e-6 * pace), "medium": class(15_310, 8.8e-5 * pace),
            "long": class(3_483, 7.1e-4 * pace), "all": class(99_997, 1.3e-5 * pace),
        },
        "slowdown": {
            "short": class(81_204, 2.1 * pace), "medium": class(15_310, 2.4 * pace),
            "long": class(3_483, 1.9 * pace), "all": class(99_997, 2.1 * pace),
        },
        "goodput": { "long": { "mean": 41.2e9 / pace, "p50": 43.7e9 / pace, "p01": 17.3e9 / pace } },
        "throughput": { "mean_node": 46.4e9, "aggregate": 23.76e12 },
        "queue": { "max_bytes": 512, "max_cells": 8, "p99_bytes": 192 },
        "reorder": { "max_bytes": 186_304 },
        "drops": 0,
        "retransmissions": 0,
        "equipment": {
            "switches": 48,
            "switches_watts": 1848.0 * pace,
            "nics_watts": 704.7,
            "power_watts": 1848.0 * pace + 704.7,
            "cost_ratio": 17.2 * pace,
        },
        "shoal": {
            "epoch_seconds": 1.0466e-5,
            "slots": 153_420,
            "queue_max_cells_bound": 11,
            "queue_node_max_cells_bound": 511,
            "slots_empty_share": 0.4871,
            "sync": { "protocol": "DTP", "precision_seconds": 2.56e-8 },
            "power": { "rack_watts": 8721.0, "switches_watts": 1843.0, "joules_per_bit": 3.67e-10 },
            "cost": { "relative_ratio": 0.68 },
        },
        "engine": {
            "wall_seconds": 11.42, "hops": 306_250_000, "hops_per_second": 2.68e7,
            "events": 78_551_040, "events_per_second": 6.88e6, "peak_rss_bytes": 91_226_112,
        },
    })
}

fn quantiles(count: u64, median: f64, tail: f64) -> Quantiles {
    Quantiles {
        count,
        unfinished: 0,
        intervals: [None; 6],
        mean: Figure::Exact(median * (1.0 + tail * 0.1)),
        p50: Figure::Exact(median),
        p95: Figure::Exact(median * (1.0 + 0.6 * tail)),
        p99: Figure::Exact(median * (1.0 + tail)),
        p999: Figure::Exact(median * (1.0 + 1.9 * tail)),
        max: Figure::Exact(median * (1.0 + 3.0 * tail)),
    }
}

fn bins(pace: f64) -> Vec<SizeBin> {
    let bin = |index: usize| {
        let (from, to) = (300.0 * 1.9_f64.powi(index as i32), 570.0 * 1.9_f64.powi(index as i32));
        let size = (from * to).sqrt();
        let ideal = 2.1e-6 + size * 8.0 / 46e9;
        let slow = pace * (1.5 + 0.6 * wobble(index, 1)) * (1.0 + 0.8 / (1.0 + size / 1e5));
        let tail = 2.4 + 1.3 * wobble(index, 2) - 0.1 * index as f64;
        let count = (24_000.0 * 0.72_f64.powi(index as i32)) as u64 + 40;
        let wait = (size / 4e6).min(0.55);
        let parts = [wait, 0.34 - wait * 0.4, 0.30 - wait * 0.5, 0.24, 0.12 + wait * 0.2];
        SizeBin {
            from: Bytes::new(from as u64),
            to: Bytes::new(to as u64 - 1),
            count,
            fct: quantiles(count, ideal * slow, tail),
            slowdown: quantiles(count, slow, tail),
            stages: parts.map(|part| part * ideal * slow).to_vec(),
        }
    };
    (0..16).map(bin).collect()
}

fn cdfs(pace: f64) -> Vec<Cdf> {
    let mut cdfs = Vec::new();
    for (quantity, scale) in [("fct", 8e-6), ("slowdown", 1.7)] {
        for (class, factor) in [("short", 1.0), ("medium", 1.3), ("long", 1.6), ("all", 1.1)] {
            let stretch = if quantity == "fct" { factor * factor * factor } else { factor };
            let point = |step: usize| {
                let share = step as f64 / 2000.0;
                let value = scale * pace * stretch * (1.0 + 1.1 * -(1.0 - share * 0.9995).ln());
                (value, share)
            };
            cdfs.push(Cdf { quantity, class, points: (1..=2000).map(point).collect() });
        }
    }
    cdfs
}

fn series(pace: f64) -> SeriesTable {
    let rows = 1500;
    let row = |step: usize| {
        let ramp = 1.0 - (-(step as f64) / 90.0).exp();
        let noise = |salt| wobble(step, salt);
        vec![
            (3.0 + 5.0 * ramp * noise(3)).round(),
            pace * ramp * (0.6 + 0.2 * noise(4)),
            (ramp * (190.0 + 146.0 * noise(5))).round(),
            pace * 3e6 * ramp * (1.0 + 0.7 * noise(6)),
            (104_000.0 * ramp * (0.47 + 0.06 * noise(7))).round(),
            104_000.0,
            (6.3e6 * ramp * (0.9 + 0.2 * noise(8))).round(),
            if (600..800).contains(&step) { 0.01 } else { 0.0 },
            (186_304.0 * ramp * (0.35 + 0.65 * noise(9))).round(),
            (420.0 * ramp * (0.8 + 0.4 * noise(10))).round(),
        ]
    };
    SeriesTable {
        gauges: GAUGES.to_vec(),
        seconds: (0..rows)
            .map(|step| (step + 1) as f64 * 0.003142 / f64::from(rows as u32))
            .collect(),
        values: (0..rows).map(row).collect(),
    }
}

/// A sample reproduction with a plot of published points.
pub fn reproduction() -> Page {
    let claim =
        |claim: &str, what: &str, unit, published: Value, ours: Value, verdict, note: &str| Claim {
            claim: claim.into(),
            section: "§7.3, Fig. 14".into(),
            what: what.into(),
            unit,
            interval: ours.as_f64().map_or(Value::Null, |ours| json!([ours * 0.97, ours * 1.04])),
            published,
            ours,
            tolerance: "within 10%".into(),
            verdict,
            cause: (verdict == Verdict::Differs).then_some(Cause::Tested),
            note: note.into(),
            kind: Kind::Claim,
            of: claim.into(),
        };
    let claims = [
        claim(
            "latency",
            "Latency of one cell in the prototype",
            Unit::Seconds,
            json!(1.57e-6),
            json!(1.58e-6),
            Verdict::Reproduced,
            "",
        ),
        claim(
            "queue",
            "Longest queue at full load",
            Unit::Cells,
            json!("at most 11"),
            json!(9),
            Verdict::Reproduced,
            "",
        ),
        claim(
            "tail",
            "99.9% of short flows' completion times",
            Unit::Seconds,
            json!(2.4e-4),
            json!(3.1e-4),
            Verdict::Differs,
            "The paper does not say how sizes are truncated; at 100 MB ours is 29% above, at 10 MB \
             4% below.",
        ),
        claim(
            "power",
            "Power of the rack against a packet-switched one",
            Unit::Share,
            json!(0.52),
            Value::Null,
            Verdict::NotRun,
            "Needs --full.",
        ),
    ];
    let sizes = [64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0];
    let ours = |factor: f64| sizes.map(|size| (size, factor * (1.2e-6 + size * 6e-9))).to_vec();
    let curve = |name: &str, hue, factor: f64| PlotSeries {
        intervals: ours(factor).iter().map(|&(_, y)| (y * 0.9, y * 1.15)).collect(),
        ..PlotSeries::new(name, SeriesStyle::Line, ours(factor)).in_hue(hue)
    };
    let published = sizes.map(|size| (size, 1.05 * (1.2e-6 + size * 6e-9))).to_vec();
    let plot = Plot {
        title: "Latency by slot size".into(),
        note:
            "Ours: mean of five seeds, with the lowest and highest. Published points read off the \
               figure, to about 3%."
                .into(),
        x: Axis::log("Slot size", Unit::Bytes),
        y: Axis::linear("Latency", Unit::Seconds),
        series: vec![
            curve("Ours, 8 nodes", 0, 1.0),
            curve("Ours, 16 nodes", 1, 1.6),
            PlotSeries::new("Published, 8 nodes", SeriesStyle::Published, published),
        ],
    };
    let experiment = Section {
        title: "Fig. 9: latency of the prototype".into(),
        blocks: vec![
            Block::Text("Eight nodes exchange cells; the slot size is swept.".into()),
            Block::Plots(vec![plot]),
        ],
    };
    let lead = "Four claims of the paper beside our figures, over five seeds, --quick.";
    claims_page("Reproduction: Shoal", lead, &claims, vec![experiment])
}
