//! PL2's parameters, and what a reservation costs (§4.3, §4.4, §5, §7).

use rack::results::RunResult;
use report::Unit;
use report::page::{Axis, Block, Plot};
use serde_json::{Value, json};

use super::incast::{self, overhead};
use super::microbursts::{self, lost};
use super::racks::{Case, carry_all, goodput, numbers};
use crate::claims::{Measured, Shape, Sheet, Spread};
use crate::drawing::{curve, findings, plot, table};
use crate::runs::number;
use crate::{Effort, Failure, Findings, Watch};

/// Packets in a burst (§4.3 names 4; the others are our choice).
const BURSTS: [u32; 5] = [1, 2, 4, 8, 16];
/// Thresholds (§4.4: 10 to 25, and 35; a far larger one is our choice).
const THRESHOLDS: [u32; 6] = [10, 15, 20, 25, 35, 90];

/// K: one host to another with three flows, and three hosts to one.
pub(super) fn bursts(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../pl2/burst.claims.toml"));
    let with = |mut case: Case, packets: u32| {
        case.settings.push(("fabric.0.burst_packets", json!(packets)));
        case
    };
    let alone = |&packets: &u32| {
        let mut case = with(incast::case(incast::PL2, 1, 1, effort), packets);
        case.settings.push(("workload.timing.rounds", json!(3)));
        case.settings.push(("fabric.0.host.burst_cost", json!("0 ns")));
        case
    };
    let three = |&packets: &u32| with(incast::case(incast::PL2, 3, 1, effort), packets);
    let messages = |&packets: &u32| {
        let settings = vec![("run.flows", json!(microbursts::messages(effort)))];
        with(Case { file: microbursts::FILE, fabric: microbursts::PL2, settings }, packets)
    };
    let cases: Vec<Case> = [
        BURSTS.iter().map(alone).collect::<Vec<_>>(),
        BURSTS.iter().map(three).collect(),
        BURSTS.iter().map(messages).collect(),
    ]
    .concat();
    let runs = carry_all(&cases, watch)?;
    let [alone, three, messages] =
        [0, 1, 2].map(|part| &runs[part * BURSTS.len()..][..BURSTS.len()]);
    let rates = |group: &[Vec<RunResult>]| -> Vec<Spread> {
        group.iter().map(|runs| Spread::of(&over(runs, |run| goodput(run, 1e-3)))).collect()
    };
    let latencies = |path: &str| -> Vec<Spread> {
        messages.iter().map(|runs| Spread::of(&numbers(runs, path))).collect()
    };
    let (one, three) = (rates(alone), rates(three));
    let p99 = latencies("fct.all.p99");
    let rising = one.windows(2).all(|pair| pair[1].mean >= pair[0].mean);
    let words: Vec<_> = one.iter().map(|rate| Unit::BitsPerSecond.format(rate.mean)).collect();
    sheet.measure("burst.small", Measured::shape(words.join(", "), Shape::of(rising)));
    let best = (0..BURSTS.len()).min_by(|&a, &b| p99[a].mean.total_cmp(&p99[b].mean));
    let words: Vec<_> = p99.iter().map(|latency| Unit::Seconds.format(latency.mean)).collect();
    let is_four = best.is_some_and(|place| BURSTS[place] == 4);
    sheet.measure("burst.best", Measured::shape(words.join(", "), Shape::of(is_four)));
    let x = || Axis::log("Packets in a burst", Unit::Count);
    let rate = Axis::linear("Throughput", Unit::BitsPerSecond);
    let latency = Axis::log("Latency of microbursts", Unit::Seconds);
    let line = |name: &str, values: &[Spread]| {
        let points =
            BURSTS.iter().zip(values).map(|(&packets, &value)| (f64::from(packets), value));
        curve(name, &points.collect::<Vec<_>>())
    };
    let plots = vec![
        plot(
            "Throughput",
            "",
            x(),
            rate,
            vec![line("One to one, three flows", &one), line("Three to one", &three)],
        ),
        plot(
            "Latency",
            "",
            x(),
            latency,
            vec![line("99 %", &p99), line("Median", &latencies("fct.all.p50"))],
        ),
    ];
    let names: Vec<String> = BURSTS.iter().map(|packets| format!("K = {packets}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let blocks = vec![Block::Plots(plots), microbursts::summary(&names, messages)];
    let text =
        "The incast of Fig. 9 and the microbursts of Fig. 1 with bursts of one to sixteen packets.";
    Ok(findings("Packets in a burst (K)", text, blocks, sheet))
}

fn over(runs: &[RunResult], get: impl Fn(&RunResult) -> f64) -> Vec<f64> {
    runs.iter().map(get).collect()
}

/// t: the microbursts of Fig. 1.
pub(super) fn thresholds(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../pl2/threshold.claims.toml"));
    let case = |&threshold: &u32| {
        let settings: Vec<(&'static str, Value)> = vec![
            ("run.flows", json!(microbursts::messages(effort))),
            ("fabric.0.unsolicited_below", json!(threshold)),
        ];
        Case { file: microbursts::FILE, fabric: microbursts::PL2, settings }
    };
    let runs = carry_all(&THRESHOLDS.iter().map(case).collect::<Vec<_>>(), watch)?;
    let of = |threshold: u32| {
        let place = THRESHOLDS.iter().position(|&known| known == threshold);
        &runs[place.expect("it is swept")]
    };
    let robust = [10, 15, 20, 25].map(of);
    let losses: Vec<f64> = robust.iter().flat_map(|runs| over(runs, lost)).collect();
    sheet.measure("threshold.loss", Measured::largest(&losses));
    let p99 = robust.map(|runs| Spread::of(&numbers(runs, "fct.all.p99")).mean);
    let [low, high] = [f64::min, f64::max].map(|of| p99.into_iter().reduce(of).expect("four"));
    sheet.measure("threshold.latency", Measured::one(high / low));
    sheet.measure("threshold.large", Measured::mean(&over(of(35), lost)));
    let longest = |runs: &Vec<RunResult>| Spread::of(&numbers(runs, "queue.max_bytes"));
    let points: Vec<_> =
        THRESHOLDS.iter().zip(&runs).map(|(&t, runs)| (f64::from(t), longest(runs))).collect();
    let plots: Vec<Plot> = vec![plot(
        "Queues",
        "Bars: least and most over five seeds.",
        Axis::linear("Threshold t in slots", Unit::Count),
        Axis::linear("Longest queue", Unit::Bytes),
        vec![curve("Microbursts", &points)],
    )];
    let names = THRESHOLDS.map(|threshold| format!("t = {threshold}"));
    let names = names.each_ref().map(String::as_str);
    let blocks = vec![Block::Plots(plots), microbursts::summary(&names, &runs)];
    let text = "The microbursts of Fig. 1 with thresholds of 10 to 90 slots below which bursts go \
                unsolicited.";
    Ok(findings("When bursts go unsolicited (t)", text, blocks, sheet))
}

/// What a reservation takes in an idle rack, and what reservations take of a busy one.
pub(super) fn exchange(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../pl2/exchange.claims.toml"));
    let messages: u64 = if effort == Effort::Full { 1_000_000 } else { 10_000 };
    // One host to another, a packet now and then.
    let idle = |delay: Option<(&str, &str)>| {
        let mut settings = vec![
            ("workload.load", json!(0.0005)),
            ("workload.sizes.size", json!("1500 B")),
            ("workload.pattern.senders", json!([1])),
            ("run.flows", json!(messages)),
        ];
        if let Some((software, jitter)) = delay {
            settings.push(("fabric.0.host.delay", json!(software)));
            settings.push(("fabric.0.host.jitter.median", json!(jitter)));
        }
        Case { file: microbursts::FILE, fabric: microbursts::PL2, settings }
    };
    let cases = [idle(None), idle(Some(("0 ns", "0 ns"))), incast::case(incast::PL2, 4, 1, effort)];
    let runs = carry_all(&cases, watch)?;
    let [software, hardware, busy] = &runs[..] else { unreachable!("three cases") };
    let mut put = |word: &str, measured| sheet.measure(&format!("exchange.{word}"), measured);
    for (name, runs) in [("software", software), ("hardware", hardware)] {
        put(&format!("{name}-min"), Measured::smallest(&numbers(runs, "pl2.exchange_min_seconds")));
        put(&format!("{name}-p50"), Measured::mean(&numbers(runs, "pl2.exchange_p50_seconds")));
        put(&format!("{name}-max"), Measured::largest(&numbers(runs, "pl2.exchange_max_seconds")));
    }
    put("overhead", Measured::mean(&over(busy, overhead)));
    let columns = [
        ("case", "", Unit::Count),
        ("min", "Exchange, least", Unit::Seconds),
        ("p50", "median", Unit::Seconds),
        ("p99", "99 %", Unit::Seconds),
        ("max", "most", Unit::Seconds),
        ("overhead", "Control by payload", Unit::Share),
    ];
    let row = |(name, runs): (&str, &Vec<RunResult>)| {
        let mean = |path: &str| {
            json!(
                Spread::of(&over(runs, |run| number(run, &format!("pl2.exchange_{path}_seconds"))))
                    .mean
            )
        };
        let overhead = Spread::of(&over(runs, overhead)).mean;
        vec![json!(name), mean("min"), mean("p50"), mean("p99"), mean("max"), json!(overhead)]
    };
    let names = ["Idle", "Idle, NIC to NIC", "Four hosts to one"];
    let rows = names.into_iter().zip(&runs).map(row).collect();
    let blocks = vec![table("Means over seeds", &columns, rows)];
    let text = "A reservation, its grant, and the bytes of both.";
    Ok(findings("A reservation and its grant", text, blocks, sheet))
}
