//! How much may be asked for and not there yet (§3.3; X26).

use aquila::config::Ip;
use aquila::ip::open_loop::{OpenLoop, latencies};
use aquila::link::classes::CellKind;
use aquila::switch::Switches;
use aquila::switch::settings::Settings;
use aquila::topology::{Fibres, Shape};
use kernel::{Bytes, Rate, Time};
use report::Unit;
use report::page::{Axis, Block, Scale};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::SEEDS;
use super::bursts::stream;
use super::clique::{BULK, Clique, Uniform, VALUE, quantile, run as run_cells, send_all, us};
use super::incast::{self, Case};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{curve, findings, plot, table};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// Windows. Unit: KiB.
const WINDOWS: [u64; 8] = [8, 16, 32, 64, 128, 256, 512, 1_024];
/// The default.
const OURS: u64 = 64;
/// Packets that are asked for at once after a port was idle: ours, and so many that the window alone holds them back.
const BURSTS: [u32; 2] = [2, 64];
/// Senders of incasts, each a row where windows are ours and one where the window alone holds back; and packets of each.
const INCASTS: [(u32, u32, &str); 4] = [
    (32, BURSTS[0], "window.queues-incast-32"),
    (128, BURSTS[0], "window.queues-incast-128"),
    (32, BURSTS[1], "window.queues-incast-32-unpaced"),
    (128, BURSTS[1], "window.queues-incast-128-unpaced"),
];
const EACH: u64 = 8;
/// What a TiN offers in uniform traffic. Unit: Gbps.
const LOAD: u64 = 90;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Point {
    /// What one TiN sends to another. Unit: bit/s.
    pair: f64,
    /// Uniform traffic: the 99th percentile from source to destination in s, and most bytes of data cells in the fabric.
    p99: f64,
    data: f64,
}

/// IP with a window, and so many packets that are asked for at once.
fn windowed((kibibytes, burst): (u64, u32)) -> Ip {
    let window = Bytes::new(kibibytes << 10);
    let egress_buffer = Some(Ip::default().egress_buffer().max(window));
    Ip { window: Some(window), egress_buffer, burst, ..Ip::default() }
}

fn measure(
    clique: &Clique,
    window: (u64, u32),
    effort: Effort,
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<Point, Failure> {
    let ip = windowed(window);
    let settings = Settings::default();
    let micros = if effort == Effort::Quick { 40 } else { 400 };
    let pair = stream(clique, (&settings, &ip), micros, seed, pulse)?;
    let until = us(micros);
    let uniform =
        Uniform { rate: Rate::from_gbps(LOAD), packets: 1, length: VALUE, class: BULK, until };
    let hosts: Vec<u16> = (0..clique.shape().tins()).map(|tin| clique.address(tin)).collect();
    let mut cells: Switches<OpenLoop> = clique.ip(&settings, &ip, seed);
    send_all(&mut cells, uniform.packets(&hosts, seed, "reproductions/aquila/window"));
    run_cells(&mut cells, Time::NEVER, pulse)?;
    let times = latencies(cells.endpoints().packets(), us(micros / 3), until);
    let data = cells.endpoints().under_way(CellKind::Data).most as f64;
    Ok(Point { pair, p99: quantile(&times, 0.99), data })
}

/// Most data in the fabric under incasts, with 1 MiB over that with ours.
fn incasts(sheet: &mut Sheet, watch: &mut Watch<'_>) -> Result<(), Failure> {
    let clique = Clique::new(&Shape::FULL, Fibres::Grid);
    let cases = INCASTS.map(|(senders, burst, _)| [OURS, 1_024].map(|to| (senders, (to, burst))));
    let jobs = with_seeds(cases.as_flattened(), SEEDS);
    let found = spread(&jobs, watch, |&((senders, window), seed), pulse| {
        let case = Case { senders, solicitation: true, packets: EACH, is_incast: true };
        let how = (&Settings::default(), &windowed(window));
        Ok(incast::carry(&clique, how, case, seed, pulse)?.data)
    })?;
    let of = |wanted: (u32, (u64, u32))| {
        let all = jobs.iter().zip(&found).filter(move |((case, _), _)| *case == wanted);
        all.map(|(_, &data)| data)
    };
    for (senders, burst, id) in INCASTS {
        let wide = of((senders, (1_024, burst)));
        let over = wide.zip(of((senders, (OURS, burst)))).map(|(wide, ours)| wide / ours);
        sheet.measure(id, Measured::mean(&over.collect::<Vec<_>>()));
    }
    Ok(())
}

/// A sweep of windows.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/window.claims.toml"));
    // The sweep is of one TiN's port: pods and TiNs of a smaller Clique do.
    let clique = Clique::new(&Shape::MINI, Fibres::Grid);
    let mut cases = WINDOWS.map(|window| (window, BURSTS[0])).to_vec();
    cases.extend([(OURS, BURSTS[1]), (1_024, BURSTS[1])]);
    let jobs = with_seeds(&cases, SEEDS);
    let found = spread(&jobs, watch, |&(window, seed), pulse| {
        measure(&clique, window, effort, seed, pulse)
    })?;
    let with = |case: (u64, u32), what: fn(&Point) -> f64| -> Vec<f64> {
        let all = jobs.iter().zip(&found);
        all.filter(|((other, _), _)| *other == case).map(|(_, point)| what(point)).collect()
    };
    let of = |window: u64, what: fn(&Point) -> f64| with((window, BURSTS[0]), what);
    let over = |top: Vec<f64>, bottom: Vec<f64>| -> Vec<f64> {
        top.iter().zip(bottom).map(|(top, bottom)| top / bottom).collect()
    };
    let pair = |window| of(window, |point| point.pair);
    sheet.measure("window.narrow", Measured::mean(&over(pair(8), pair(OURS))));
    sheet.measure("window.enough", Measured::mean(&over(pair(OURS), pair(1_024))));
    let data = |window| of(window, |point| point.data);
    sheet.measure("window.queues", Measured::mean(&over(data(1_024), data(OURS))));
    let unpaced = |window| with((window, BURSTS[1]), |point| point.data);
    sheet.measure("window.queues-unpaced", Measured::mean(&over(unpaced(1_024), unpaced(OURS))));
    incasts(&mut sheet, watch)?;
    let line = |name: &str, what: fn(&Point) -> f64| {
        let point = |window: u64| ((window << 10) as f64, Spread::of(&of(window, what)));
        curve(name, &WINDOWS.map(point))
    };
    let x = || Axis { label: "window".into(), unit: Unit::Bytes, scale: Scale::Log };
    let y = |label: &str, unit| Axis { label: label.into(), unit, scale: Scale::Linear };
    let note = "Mini Clique; bars from the smallest to the largest seed.";
    let plots = vec![
        plot(
            "One TiN to another",
            note,
            x(),
            y("carried", Unit::BitsPerSecond),
            vec![line("of 100 Gbps", |point| point.pair)],
        ),
        plot(
            "Uniform traffic at 90 Gbps a TiN",
            note,
            x(),
            y("most data in the fabric", Unit::Bytes),
            vec![line("all TiNs", |point| point.data)],
        ),
    ];
    let blocks = vec![Block::Plots(plots), numbers(&of)];
    let text = "The window limits what a port has asked for and not got. Too small, its line idles while a request \
                is answered; larger than that, packets wait in the fabric and not at their sources. The paper has \
                no figures.";
    Ok(findings("The window", text, blocks, sheet))
}

/// Every figure of the sweep; `of` gives those of a window over seeds.
fn numbers(of: &dyn Fn(u64, fn(&Point) -> f64) -> Vec<f64>) -> Block {
    let row = |&window: &u64| {
        let mean = |what: fn(&Point) -> f64| json!(Spread::of(&of(window, what)).mean);
        vec![
            json!(window << 10),
            mean(|point| point.pair),
            mean(|point| point.p99),
            mean(|point| point.data),
        ]
    };
    let columns = [
        ("window", "Window", Unit::Bytes),
        ("pair", "One TiN to another", Unit::BitsPerSecond),
        ("p99", "Uniform: way of a packet, 99 %", Unit::Seconds),
        ("data", "most data in the fabric", Unit::Bytes),
    ];
    table("Means over seeds", &columns, WINDOWS.iter().map(row).collect())
}
