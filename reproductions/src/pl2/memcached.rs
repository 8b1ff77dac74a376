//! memcached beside hosts that send to its client as fast as they can (§6.2.1, §6.2.2, Figs 3 to 6).

use report::Unit;
use report::page::{Axis, Block, Plot};
use serde_json::{Value, json};

use super::SEEDS;
use super::racks::{LOST, at_ingress, goodput, quotients};
use super::rpcs::{Calls, Latencies};
use crate::claims::{Measured, Shape, Sheet, Spread};
use crate::drawing::{curve, findings, plot, published, table};
use crate::runs::{ScenarioFile, find_number, number, run_nth};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

const FILE: ScenarioFile = ScenarioFile {
    path: "reproductions/pl2/memcached.toml",
    text: include_str!("../../pl2/memcached.toml"),
};

/// Hosts that send to the client, in the order in which they join in: memcached's own first (§6.2.1).
const SENDERS: [u32; 4] = [5, 4, 3, 2];
/// The scenario's `[[fabric]]` entries.
const NAMES: [&str; 2] = ["PL2", "Without PL2"];
const PL2: usize = 0;
const CUBIC: usize = 1;
/// Requests that the scenario's client may send: more than it can.
const ROUNDS: u64 = 1_000_000;

/// What the background speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Background {
    Tcp,
    Udp,
}

/// A run but for its seed.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Case {
    fabric: usize,
    background: Background,
    /// How many hosts send.
    hosts: usize,
    variant: Variant,
    /// How long a run is, and when memcached begins.
    milliseconds: u64,
    start: u64,
}

/// What else a run varies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Variant {
    /// Nothing.
    Usual,
    /// Values of 1 KiB.
    Small,
    /// Receivers' windows of 30 KB: all that is under way to the client fits the switch's port.
    Bounded,
    /// Counters that know nothing of queues.
    Ingress,
}

impl Case {
    fn new(fabric: usize, background: Background, hosts: usize, effort: Effort) -> Self {
        // Losses of slow starts are over after 20 ms; datagrams fill queues at once.
        let start = if background == Background::Tcp { 20 } else { 1 };
        // Calls that wait for time-outs take hundreds of milliseconds, and beside datagrams of four hosts
        // seconds.
        let quick = match (fabric, background, hosts) {
            (CUBIC, Background::Udp, 4) => 3_000,
            (CUBIC, Background::Udp, 2 | 3) => 800,
            (CUBIC, Background::Tcp, 2..) => 400,
            _ => 60,
        };
        let times = if effort == Effort::Full { 10 } else { 1 };
        let variant = Variant::Usual;
        Self { fabric, background, hosts, variant, milliseconds: quick * times, start }
    }

    /// When memcached begins, in seconds.
    fn from(&self) -> f64 {
        self.start as f64 * 1e-3
    }

    /// Size of a value in bytes.
    fn value(&self) -> u64 {
        if self.variant == Variant::Small { 1024 } else { 4096 }
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        let classes = if self.background == Background::Udp { json!([1]) } else { json!([]) };
        let mut parts = vec![json!({
            "kind": "requests", "clients": 1, "servers": 1,
            "request": { "kind": "fixed", "size": "64 B" },
            "response": { "kind": "fixed", "size": format!("{} B", self.value()) },
            "service_time": "8.5 us", "outstanding": 1, "rounds": ROUNDS,
            "start": format!("{} ms", self.start),
        })];
        if self.hosts > 0 {
            parts.push(json!({
                "kind": "bulk", "size": "10 GB", "class": 1,
                "pattern": { "kind": "gather", "senders": SENDERS[..self.hosts] },
                "timing": { "rounds": 12, "period": "1 ns" },
            }));
        }
        let mut settings = vec![
            ("workload.parts", json!(parts)),
            ("run.flows", json!(2 * ROUNDS)),
            ("run.time", json!(format!("{} ms", self.milliseconds))),
            ("fabric.0.transport.datagram_classes", classes.clone()),
            ("fabric.1.transport.datagram_classes", classes),
        ];
        match self.variant {
            Variant::Usual | Variant::Small => {}
            Variant::Bounded => {
                let key = "fabric.1.transport.stream.stream.receive_window";
                settings.push((key, json!("30 KB")));
            }
            Variant::Ingress => settings.push(at_ingress("fabric.0.switch.decrement")),
        }
        settings
    }

    fn run(&self, seed: u64, pulse: &mut Pulse<'_>) -> Result<Carried, Failure> {
        let scenario = FILE.with(&self.settings(), seed)?;
        let mut calls = Calls::new(2 * ROUNDS);
        let result = run_nth(&scenario, self.fabric, &mut calls, pulse)?;
        let calls = calls.after(self.from(), self.milliseconds as f64 * 1e-3);
        let own = calls.rate * self.value() as f64 * 8.0;
        Ok(Carried {
            background: goodput(&result, self.from()) - own,
            own,
            calls,
            drops: find_number(&result, LOST).unwrap_or_else(|| number(&result, "drops")),
        })
    }
}

/// What came of a run.
#[derive(Clone, Debug)]
struct Carried {
    calls: Latencies,
    /// Payload of memcached and of the background, in bit/s.
    own: f64,
    background: f64,
    drops: f64,
}

/// Runs with zero to four hosts in the background, under both fabrics.
struct Swept(Vec<Carried>);

impl Swept {
    fn carry(cases: &[Case], watch: &mut Watch<'_>) -> Result<Self, Failure> {
        let jobs = with_seeds(cases, SEEDS);
        Ok(Self(spread(&jobs, watch, |(case, seed), pulse| case.run(*seed, pulse))?))
    }

    fn at(&self, case: usize) -> &[Carried] {
        let seeds = SEEDS as usize;
        &self.0[case * seeds..(case + 1) * seeds]
    }

    /// Of a sweep: the runs of a fabric with so many hosts.
    fn with(&self, fabric: usize, hosts: usize) -> &[Carried] {
        self.at(fabric * (SENDERS.len() + 1) + hosts)
    }
}

fn over(runs: &[Carried], get: impl Fn(&Carried) -> f64) -> Vec<f64> {
    runs.iter().map(get).collect()
}

fn p99(run: &Carried) -> f64 {
    run.calls.quantile(0.99)
}

fn rate(run: &Carried) -> f64 {
    run.calls.rate
}

/// The sweep over hosts for both fabrics.
fn sweep(background: Background, effort: Effort) -> Vec<Case> {
    let of =
        |fabric| (0..=SENDERS.len()).map(move |hosts| Case::new(fabric, background, hosts, effort));
    [PL2, CUBIC].into_iter().flat_map(of).collect()
}

/// Figs 3 and 4.
pub(super) fn beside_tcp(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../pl2/fig3.claims.toml"));
    let mut cases = sweep(Background::Tcp, effort);
    let four = |fabric, variant| Case { variant, ..Case::new(fabric, Background::Tcp, 4, effort) };
    let first = cases.len();
    cases.extend([PL2, CUBIC].map(|fabric| four(fabric, Variant::Small)));
    cases.extend([four(CUBIC, Variant::Bounded), four(PL2, Variant::Ingress)]);
    let swept = Swept::carry(&cases, watch)?;
    let mut put = |word: &str, measured| sheet.measure(&format!("fig3.{word}"), measured);
    let between = |hosts, get: fn(&Carried) -> f64, [above, below]: [usize; 2]| {
        let runs = [above, below].map(|fabric| over(swept.with(fabric, hosts), get));
        quotients(&runs[0], &runs[1])
    };
    put("idle-load", Measured::mean(&over(swept.with(CUBIC, 0), |run| run.own)));
    put("idle", Measured::mean(&between(0, rate, [PL2, CUBIC])));
    put("idle-latency", Measured::mean(&between(0, p99, [PL2, CUBIC])));
    put("one-load", Measured::mean(&over(swept.with(CUBIC, 1), |run| run.background)));
    put("one", Measured::mean(&between(1, rate, [PL2, CUBIC])));
    put("downlink", Measured::mean(&over(swept.with(CUBIC, 4), |run| run.background)));
    let more = over(swept.with(PL2, 4), |run| run.background);
    let more = more.iter().zip(over(swept.with(CUBIC, 4), |run| run.background));
    put("more", Measured::mean(&more.map(|(pl2, cubic)| pl2 - cubic).collect::<Vec<_>>()));
    put("rate", Measured::mean(&between(4, rate, [PL2, CUBIC])));
    put("p99-pl2", Measured::mean(&over(swept.with(PL2, 4), p99)));
    put("p99-cubic", Measured::mean(&over(swept.with(CUBIC, 4), p99)));
    put("p99-ratio", Measured::mean(&between(4, p99, [CUBIC, PL2])));
    let drops: Vec<f64> =
        (0..=4).flat_map(|hosts| over(swept.with(PL2, hosts), |run| run.drops)).collect();
    put("loss", Measured::largest(&drops));
    let runs = [0, 1].map(|case| Spread::of(&over(swept.at(first + case), p99)).mean);
    let words = runs.map(|seconds| Unit::Seconds.format(seconds)).join(" and ");
    put("small", Measured::shape(words, Shape::of(runs[PL2] < runs[CUBIC])));
    let [bounded, ingress] = [swept.at(first + 2), swept.at(first + 3)];
    let usual = swept.with(PL2, 4);
    put("p99-bounded", Measured::mean(&over(bounded, p99)));
    put("ratio-bounded", Measured::mean(&quotients(&over(bounded, p99), &over(usual, p99))));
    put("rate-bounded", Measured::mean(&quotients(&over(usual, rate), &over(bounded, rate))));
    put("loss-ingress", Measured::largest(&over(ingress, |run| run.drops)));
    let text = "One client asks for values of 4 KiB, one at a time, beside up to four hosts that each \
                send it 12 TCP flows that never end; the first of them is memcached's own.";
    let points = [("PL2, published", 56e-6), ("CUBIC, published", 127e-6)];
    let blocks = vec![Block::Plots(plots("Figs 3", "4", &swept, &points)), numbers_of(&swept)];
    Ok(findings("memcached beside TCP", text, blocks, sheet))
}

/// Figs 5 and 6.
pub(super) fn beside_udp(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../pl2/fig5.claims.toml"));
    let mut cases = sweep(Background::Udp, effort);
    let beside_tcp = cases.len();
    cases.push(Case::new(PL2, Background::Tcp, 4, effort));
    let swept = Swept::carry(&cases, watch)?;
    let mut put = |word: &str, measured| sheet.measure(&format!("fig5.{word}"), measured);
    put("p99-pl2", Measured::mean(&over(swept.with(PL2, 4), p99)));
    put("p99-cubic", Measured::mean(&over(swept.with(CUBIC, 4), p99)));
    for hosts in 2..=4 {
        put(&format!("rate-{hosts}"), Measured::mean(&over(swept.with(CUBIC, hosts), rate)));
        let background = over(swept.with(PL2, hosts), |run| run.background);
        put(&format!("background-{hosts}"), Measured::mean(&background));
    }
    let drops: Vec<f64> =
        (0..=4).flat_map(|hosts| over(swept.with(PL2, hosts), |run| run.drops)).collect();
    put("loss", Measured::largest(&drops));
    let [udp, tcp] = [swept.with(PL2, 4), swept.at(beside_tcp)];
    put("rate-tcp", Measured::mean(&quotients(&over(udp, rate), &over(tcp, rate))));
    put("p99-tcp", Measured::mean(&quotients(&over(udp, p99), &over(tcp, p99))));
    let text = "The runs of Figs 3 and 4 with UDP in the background, which knows no congestion control. A \
                call that the end of a run cut off counts with the time it had taken by then.";
    let points = [("PL2, published", 25e-6), ("CUBIC, published", 5.0)];
    let blocks = vec![Block::Plots(plots("Figs 5", "6", &swept, &points)), numbers_of(&swept)];
    Ok(findings("memcached beside UDP", text, blocks, sheet))
}

/// Throughput and latency against hosts in the background.
fn plots(first: &str, second: &str, swept: &Swept, points: &[(&str, f64)]) -> Vec<Plot> {
    let lines = |get: &dyn Fn(&Carried) -> f64, word: &str| {
        let line = |fabric: usize| {
            let point =
                |hosts: usize| (hosts as f64, Spread::of(&over(swept.with(fabric, hosts), get)));
            curve(format!("{}{word}", NAMES[fabric]), &(0..=4).map(point).collect::<Vec<_>>())
        };
        [PL2, CUBIC].map(line).to_vec()
    };
    let x = || Axis::linear("Hosts in the background", Unit::Count);
    let theirs = points.iter().map(|&(name, seconds)| published(name, vec![(4.0, seconds)]));
    let latencies = [
        lines(&p99, ", 99 %"),
        lines(&|run| run.calls.quantile(0.5), ", median"),
        theirs.collect(),
    ];
    let note = "Bars: least and most over five seeds.";
    vec![
        plot(
            first.trim_end_matches('s'),
            note,
            x(),
            Axis::log("Calls a second", Unit::Count),
            lines(&rate, ""),
        ),
        plot(
            &format!("Fig. {second}"),
            note,
            x(),
            Axis::log("Latency of calls", Unit::Seconds),
            latencies.concat(),
        ),
    ]
}

/// Every figure of the sweep: means over seeds.
fn numbers_of(swept: &Swept) -> Block {
    let columns = [
        ("fabric", "", Unit::Count),
        ("hosts", "Hosts in the background", Unit::Count),
        ("rate", "Calls a second", Unit::Count),
        ("p50", "Latency, median", Unit::Seconds),
        ("p99", "99 %", Unit::Seconds),
        ("background", "Background", Unit::BitsPerSecond),
        ("drops", "Packets dropped", Unit::Count),
    ];
    let row = |(fabric, hosts): (usize, usize)| {
        let runs = swept.with(fabric, hosts);
        let mean = |get: &dyn Fn(&Carried) -> f64| json!(Spread::of(&over(runs, get)).mean);
        vec![
            json!(NAMES[fabric]),
            json!(hosts),
            mean(&rate),
            mean(&|run| run.calls.quantile(0.5)),
            mean(&p99),
            mean(&|run| run.background),
            mean(&|run| run.drops),
        ]
    };
    let points =
        [PL2, CUBIC].into_iter().flat_map(|fabric| (0..=4).map(move |hosts| (fabric, hosts)));
    table("Means over seeds", &columns, points.map(row).collect())
}
