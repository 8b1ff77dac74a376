//! Throughput of flows that never end, and the queues they make (§6.4, Figs 9 and 10).

use report::Unit;
use report::page::{Axis, Block, Plot, PlotSeries};
use serde_json::{Value, json};

use super::racks::{
    Case, LOST, Ran, at_ingress, carry_all, gauge, goodput, numbers, on_the_line, quotients,
};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{curve, findings, plot, published, table};
use crate::runs::{ScenarioFile, number};
use crate::{Effort, Failure, Findings, Watch};

pub(super) const FILE: ScenarioFile = ScenarioFile {
    path: "reproductions/pl2/incast.toml",
    text: include_str!("../../pl2/incast.toml"),
};

/// The scenario's `[[fabric]]` entries.
pub(super) const NAMES: [&str; 4] = ["PL2, raw Ethernet", "Raw Ethernet", "PL2, TCP", "TCP CUBIC"];
pub(super) const PL2: usize = 0;
pub(super) const RAW: usize = 1;
pub(super) const PL2_TCP: usize = 2;
pub(super) const CUBIC: usize = 3;
/// Most hosts at the many end (§6.4).
const MOST: usize = 4;
/// Flows of a sender (§6.4).
const FLOWS: usize = 12;
/// What is not measured of a run, in seconds: queues are full within a tenth of it.
const WARM_UP: f64 = 1e-3;
const WARM_UP_TCP: f64 = 10e-3;
/// How long 24 million messages of 6 KiB of one host take on a line with 94.9 Gbps of payload, in seconds: what one
/// host adds to a run of the paper (§6.4).
const RUN: f64 = 24e6 * 6_144.0 * 8.0 / 94.9e9;

/// A run: so many senders and receivers with twelve flows from each to each, in threads of their own at
/// either end, under the fabric of this index.
pub(super) fn case(fabric: usize, senders: usize, receivers: usize, effort: Effort) -> Case {
    let milliseconds = match (fabric, effort) {
        (CUBIC, _) => (RUN * senders as f64 * 1e3 / Faster::of(effort).0 as f64).round() as u64,
        (PL2_TCP, Effort::Quick) => 60,
        (PL2_TCP, Effort::Full) => 1_000,
        (_, Effort::Quick) => 4,
        (_, Effort::Full) => 100,
    };
    let threads = FLOWS * senders.max(receivers);
    let mut settings = vec![
        ("workload.mappers", json!(senders)),
        ("workload.reducers", json!(receivers)),
        ("workload.timing.rounds", json!(FLOWS)),
        ("fabric.0.threads", json!(threads)),
        ("fabric.1.threads", json!(threads)),
        ("fabric.2.threads", json!(threads)),
        ("fabric.3.threads", json!(threads)),
        ("run.time", json!(format!("{milliseconds} ms"))),
    ];
    if fabric == CUBIC {
        settings.extend(Faster::of(effort).settings([
            "fabric.3.transport.clock.tick",
            "fabric.3.transport.rto_min",
            "fabric.3.transport.stream.rto_initial",
            "fabric.3.transport.stream.ack_delay",
        ]));
    }
    Case { file: FILE, fabric, settings }
}

/// How much faster than its own the clock of VMA's TCP goes, so that the paper's runs take as much less: their losses come
/// at ticks, and a tick is long beside a round trip either way.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Faster(pub(super) u64);

impl Faster {
    pub(super) fn of(effort: Effort) -> Self {
        Self(if effort == Effort::Full { 10 } else { 100 })
    }

    /// Ticks of 200 ms, time-outs of three, also at first as connections last, answers after half a one.
    pub(super) fn settings(self, keys: [&'static str; 4]) -> Vec<(&'static str, Value)> {
        let spans = [200_000, 600_000, 600_000, 100_000].map(|us| format!("{} us", us / self.0));
        keys.into_iter().zip(spans).map(|(key, span)| (key, json!(span))).collect()
    }
}

/// Settings by which threads of the first fabric do nothing but send.
pub(super) fn free() -> [(&'static str, Value); 2] {
    [("fabric.0.host.byte_cost", json!("0 ns")), free_exchanges()]
}

/// The setting by which exchanges cost hosts of the first fabric nothing.
pub(super) fn free_exchanges() -> (&'static str, Value) {
    ("fabric.0.host.exchange_cost", json!("0 ns"))
}

/// Payload that arrived once nothing changed any more, in bit/s.
pub(super) fn steady(fabric: usize, run: &Ran) -> f64 {
    goodput(run, if matches!(fabric, PL2_TCP | CUBIC) { WARM_UP_TCP } else { WARM_UP })
}

/// The runs of a sweep over hosts: for each fabric those of each number of them.
struct Swept<'a> {
    fabrics: &'a [usize],
    runs: Vec<Vec<Ran>>,
}

impl Swept<'_> {
    fn at(&self, fabric: usize, hosts: usize) -> &[Ran] {
        let place = self.fabrics.iter().position(|&known| known == fabric).expect("it is swept");
        &self.runs[place * MOST + hosts - 1]
    }

    fn goodput(&self, fabric: usize, hosts: usize) -> Vec<f64> {
        self.at(fabric, hosts).iter().map(|run| steady(fabric, run)).collect()
    }

    fn over(&self, fabric: usize, hosts: usize, path: &str) -> Vec<f64> {
        numbers(self.at(fabric, hosts), path)
    }

    /// A number of all runs of a fabric.
    fn all(&self, fabric: usize, path: &str) -> Vec<f64> {
        (1..=MOST).flat_map(|hosts| self.over(fabric, hosts, path)).collect()
    }

    /// A line for each of some fabrics.
    fn lines(&self, fabrics: &[usize], get: impl Fn(usize, usize) -> Vec<f64>) -> Vec<PlotSeries> {
        let line = |&fabric: &usize| {
            let point = |hosts: usize| (hosts as f64, Spread::of(&get(fabric, hosts)));
            curve(NAMES[fabric], &(1..=MOST).map(point).collect::<Vec<_>>())
        };
        fabrics.iter().map(line).collect()
    }

    /// Every figure: means over seeds.
    fn numbers(&self) -> Block {
        let columns = [
            ("fabric", "", Unit::Count),
            ("hosts", "Hosts at the many end", Unit::Count),
            ("goodput", "Throughput", Unit::BitsPerSecond),
            ("drops", "Packets dropped", Unit::Count),
            ("again", "Packets sent again", Unit::Count),
            ("queue_p99", "Queue found, 99 %", Unit::Bytes),
            ("queue", "Longest queue", Unit::Bytes),
        ];
        let row = |(fabric, hosts): (usize, usize)| {
            let mean = |values: Vec<f64>| json!(Spread::of(&values).mean);
            let of = |path| mean(self.over(fabric, hosts, path));
            vec![
                json!(NAMES[fabric]),
                json!(hosts),
                mean(self.goodput(fabric, hosts)),
                of("drops"),
                of("retransmissions"),
                of("queue.p99_bytes"),
                of("queue.max_bytes"),
            ]
        };
        let points = self.fabrics.iter().flat_map(|&fabric| (1..=MOST).map(move |n| (fabric, n)));
        table("Means over seeds", &columns, points.map(row).collect())
    }
}

/// Fig. 9.
pub(super) fn incast(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../pl2/fig9.claims.toml"));
    let fabrics = [PL2, RAW, PL2_TCP, CUBIC];
    let sweep = |&fabric: &usize| (1..=MOST).map(move |hosts| case(fabric, hosts, 1, effort));
    let mut cases: Vec<Case> = fabrics.iter().flat_map(sweep).collect();
    let swept_cases = cases.len();
    cases.extend((1..=MOST).map(|hosts| without_work(case(PL2, hosts, 1, effort))));
    let ingress = |hosts| {
        let mut case = case(PL2, hosts, 1, effort);
        case.settings.push(at_ingress("fabric.0.switch.decrement"));
        case
    };
    cases.extend((1..=MOST).map(ingress));
    let together = |hosts| {
        let mut case = case(CUBIC, hosts, 1, effort);
        case.settings.push(("fabric.3.transport.clock.instants", json!("together")));
        case
    };
    cases.extend((2..=MOST).map(together));
    let mut runs = carry_all(&cases, effort.seeds(), watch)?;
    let mut free = runs.split_off(swept_cases);
    let mut ingress = free.split_off(MOST);
    let together = ingress.split_off(MOST);
    let ingress = ingress.concat();
    let swept = Swept { fabrics: &fabrics, runs };
    let mut put = |word: &str, measured| sheet.measure(&format!("fig9.{word}"), measured);
    put("raw-1", Measured::mean(&swept.goodput(RAW, 1)));
    for hosts in 2..=MOST {
        let share: Vec<f64> =
            swept.at(RAW, hosts).iter().map(|run| delivered(run, hosts)).collect();
        put(&format!("raw-share-{hosts}"), Measured::mean(&share));
        put(&format!("pl2-{hosts}"), Measured::mean(&swept.goodput(PL2, hosts)));
    }
    put("pl2-1", Measured::mean(&swept.goodput(PL2, 1)));
    let rates = |runs: &[Ran]| -> Vec<f64> { runs.iter().map(|run| steady(PL2, run)).collect() };
    put("pl2-1-free", Measured::mean(&rates(&free[0])));
    put("pl2-more-free", Measured::smallest(&rates(&free[1..].concat())));
    put("loss", Measured::largest(&swept.all(PL2, LOST)));
    put("queue", Measured::largest(&swept.all(PL2, "queue.max_bytes")));
    put("loss-ingress", Measured::largest(&numbers(&ingress, LOST)));
    put("queue-ingress", Measured::largest(&numbers(&ingress, "queue.max_bytes")));
    put("raw-queue", Measured::mean(&swept.over(RAW, 2, "queue.max_bytes")));
    let queues: Vec<Queue> = (2..=MOST).flat_map(|n| swept.at(PL2, n)).map(Queue::of).collect();
    let over = |get: fn(&Queue) -> f64| queues.iter().map(get).collect::<Vec<_>>();
    put("queue-growth", Measured::mean(&over(|queue| queue.growth)));
    put("queue-variation", Measured::largest(&over(|queue| queue.variation)));
    for hosts in 2..=MOST {
        let again = swept.over(CUBIC, hosts, "retransmissions");
        put(&format!("cubic-again-{hosts}"), Measured::mean(&again));
        let again = numbers(&together[hosts - 2], "retransmissions");
        put(&format!("cubic-again-{hosts}-together"), Measured::mean(&again));
        let ratio = quotients(&swept.goodput(PL2_TCP, hosts), &swept.goodput(CUBIC, hosts));
        put(&format!("tcp-{hosts}"), Measured::mean(&ratio));
    }
    put("tcp-again", Measured::largest(&swept.all(PL2_TCP, "retransmissions")));
    put("tcp-loss", Measured::largest(&swept.all(PL2_TCP, LOST)));
    let text = "One to four hosts send to one, 12 flows each that never end. Throughput is of payload, \
                once queues have filled: 97.5 Gbps is all that a line has for it.";
    let blocks = vec![Block::Plots(plots(&swept)), swept.numbers()];
    Ok(findings("Incast of flows that never end", text, blocks, sheet))
}

/// The longest queue over time, once queues have filled: the longest of each interval between two samples.
struct Queue {
    /// The mean of the second half by that of the first.
    growth: f64,
    /// Its standard deviation by its mean.
    variation: f64,
}

impl Queue {
    fn of(run: &Ran) -> Self {
        let samples = gauge(run, "queue_max_bytes").into_iter().filter(|&(end, _)| end > WARM_UP);
        let values: Vec<f64> = samples.map(|(_, bytes)| bytes).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (first, second) = values.split_at(values.len() / 2);
        let whole = mean(&values);
        let squares: Vec<f64> = values.iter().map(|bytes| (bytes - whole).powi(2)).collect();
        Self { growth: mean(second) / mean(first), variation: mean(&squares).sqrt() / whole }
    }
}

/// The same with threads that do nothing but send.
pub(super) fn without_work(mut case: Case) -> Case {
    case.settings.extend(free());
    case
}

/// What arrived of what `hosts` hosts sent at line rate.
fn delivered(run: &Ran, hosts: usize) -> f64 {
    goodput(run, WARM_UP) / (hosts as f64 * super::racks::LINE * 1_500.0 / 1_538.0)
}

/// Figs 9a to 9c.
fn plots(swept: &Swept<'_>) -> Vec<Plot> {
    let x = || Axis::linear("Hosts that send", Unit::Count);
    let rate = || Axis::linear("Throughput", Unit::BitsPerSecond);
    let goodput = |fabric, hosts| swept.goodput(fabric, hosts);
    let queue = |path: &'static str| {
        move |fabric, hosts| -> Vec<f64> {
            swept.over(fabric, hosts, path).into_iter().map(on_the_line).collect()
        }
    };
    let note = "Bars: least and most over the seeds.";
    let theirs =
        published("PL2, published", vec![(1.0, 80e9), (2.0, 97e9), (3.0, 97e9), (4.0, 97e9)]);
    let ethernet = [swept.lines(&[PL2, RAW], goodput), vec![theirs]].concat();
    vec![
        plot("Fig. 9a", note, x(), rate(), ethernet),
        plot(
            "Fig. 9b",
            "The longest queue of a run.",
            x(),
            Axis::log("Queueing delay", Unit::Seconds),
            swept.lines(&[PL2, RAW], queue("queue.max_bytes")),
        ),
        plot("Fig. 9c", note, x(), rate(), swept.lines(&[PL2_TCP, CUBIC], goodput)),
    ]
}

/// Fig. 10.
pub(super) fn outcast(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../pl2/fig10.claims.toml"));
    let fabrics = [PL2, RAW];
    let sweep = |&fabric: &usize| (1..=MOST).map(move |hosts| case(fabric, 1, hosts, effort));
    let mut cases: Vec<Case> = fabrics.iter().flat_map(sweep).collect();
    // Twelve flows in all.
    let mut few = case(PL2, 1, MOST, effort);
    few.settings.push(("workload.timing.rounds", json!(FLOWS / MOST)));
    cases.push(few);
    cases.push(without_work(case(PL2, 1, MOST, effort)));
    let mut runs = carry_all(&cases, effort.seeds(), watch)?;
    let free = runs.pop().expect("the last case");
    let few = runs.pop().expect("the case before it");
    let swept = Swept { fabrics: &fabrics, runs };
    let mut put = |word: &str, measured| sheet.measure(&format!("fig10.{word}"), measured);
    put("pl2-twelve", Measured::mean(&few.iter().map(|run| steady(PL2, run)).collect::<Vec<_>>()));
    put("pl2-free", Measured::mean(&free.iter().map(|run| steady(PL2, run)).collect::<Vec<_>>()));
    let best = |fabric| {
        let each = (1..=MOST).map(|hosts| swept.goodput(fabric, hosts));
        each.max_by(|a, b| Spread::of(a).mean.total_cmp(&Spread::of(b).mean)).expect("four cases")
    };
    put("pl2", Measured::mean(&best(PL2)));
    put("raw", Measured::mean(&best(RAW)));
    put("loss", Measured::largest(&swept.all(PL2, LOST)));
    let queues = swept.all(PL2, "queue.max_bytes");
    put("queue", Measured::largest(&queues));
    let x = Axis::linear("Hosts that receive", Unit::Count);
    let y = Axis::linear("Throughput", Unit::BitsPerSecond);
    let lines = swept.lines(&fabrics, |fabric, hosts| swept.goodput(fabric, hosts));
    let theirs = published("PL2, published, at most", vec![(4.0, 90e9)]);
    let note = "Bars: least and most over the seeds.";
    let drawn = plot("Fig. 10", note, x, y, [lines, vec![theirs]].concat());
    let text = "One host sends to one to four, in 12 flows to each that never end.";
    let blocks = vec![Block::Plots(vec![drawn]), swept.numbers()];
    Ok(findings("Outcast of flows that never end", text, blocks, sheet))
}

/// Control bytes by payload of a run under PL2.
pub(super) fn overhead(run: &Ran) -> f64 {
    number(run, "pl2.control_bytes") / (number(run, "pl2.burst_packets") * 1_500.0)
}
