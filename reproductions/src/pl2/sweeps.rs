//! When bursts go unsolicited, and what a reservation costs (§4.4, §5, §7).

use report::Unit;
use report::page::{Axis, Block, Plot};
use serde_json::{Value, json};

use super::incast::{self, overhead};
use super::microbursts::{self, lost};
use super::racks::{Case, Ran, carry_all, numbers, quotients};
use super::rpcs::Calls;
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{curve, findings, plot, table};
use crate::runs::{number, run_nth};
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// Thresholds (§4.4: 10 to 25, and 35).
const THRESHOLDS: [u32; 5] = [10, 15, 20, 25, 35];
/// Those between which loss and latency do not change, and one that is large (§4.4).
const ROBUST: [u32; 4] = [10, 15, 20, 25];
const LARGE: u32 = 35;

pub(super) fn over(runs: &[Ran], get: impl Fn(&Ran) -> f64) -> Vec<f64> {
    runs.iter().map(get).collect()
}

/// t: the microbursts of Fig. 1; half as many of its messages at random, and half as many microbursts of threads that
/// only send.
pub(super) fn thresholds(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../pl2/threshold.claims.toml"));
    let messages = microbursts::messages(effort);
    let cases = |workload: fn(u64) -> Vec<(&'static str, Value)>, messages: u64| {
        THRESHOLDS.map(|threshold| {
            let mut settings = workload(messages);
            settings.push(("fabric.0.unsolicited_below", json!(threshold)));
            Case { file: microbursts::FILE, fabric: microbursts::PL2, settings }
        })
    };
    let usual = cases(microbursts::microbursts, messages);
    let random = cases(microbursts::at_random, messages / 2);
    let free = cases(microbursts::microbursts, messages / 2).map(incast::without_work);
    let all = carry_all(&[usual, random, free].concat(), effort.seeds(), watch)?;
    let groups: Vec<&[Vec<Ran>]> = all.chunks(THRESHOLDS.len()).collect();
    let [usual, random, free] = groups[..] else { unreachable!("three kinds of runs") };
    let mut put = |word: &str, measured| sheet.measure(&format!("threshold.{word}"), measured);
    let robust = ROBUST.iter().flat_map(|&threshold| over(of(usual, threshold), lost));
    put("loss", Measured::largest(&robust.collect::<Vec<_>>()));
    put("large", Measured::mean(&over(of(usual, LARGE), lost)));
    let dropped = |run: &Ran| number(run, "drops");
    for (word, runs) in [("", usual), ("-random", random)] {
        put(&format!("latency{word}"), latency(runs));
        put(&format!("drops{word}"), drops(runs));
        put(&format!("drops-large{word}"), Measured::mean(&over(of(runs, LARGE), dropped)));
    }
    put("free-latency", latency(free));
    put("free-drops-large", Measured::mean(&over(of(free, LARGE), dropped)));
    let curves = [("Microbursts", usual), ("at random", random), ("threads that only send", free)];
    let words = ["", ", at random", ", threads that only send"];
    let names = words.iter().flat_map(|word| THRESHOLDS.map(|t| format!("t = {t}{word}")));
    let names: Vec<String> = names.collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let blocks = vec![Block::Plots(threshold_plots(&curves)), microbursts::summary(&names, &all)];
    let text = "The microbursts of Fig. 1 with thresholds of 10 to 35 slots below which bursts go unsolicited; then \
                half as many of its messages, at random, and half as many microbursts of threads that do nothing \
                but send.";
    Ok(findings("When bursts go unsolicited (t)", text, blocks, sheet))
}

/// The runs with a threshold.
fn of(runs: &[Vec<Ran>], threshold: u32) -> &[Ran] {
    let place = THRESHOLDS.iter().position(|&known| known == threshold);
    &runs[place.expect("it is swept")]
}

/// The most that the switch drops with those thresholds between which loss is not to change, by what it does with the
/// large one: unsolicited packets, too, which come again.
fn drops(runs: &[Vec<Ran>]) -> Measured {
    let mean = |threshold| Spread::of(&numbers(of(runs, threshold), "drops")).mean;
    Measured::one(ROBUST.map(mean).into_iter().fold(0.0, f64::max) / mean(LARGE))
}

/// The largest 99th percentile of those by the smallest.
fn latency(runs: &[Vec<Ran>]) -> Measured {
    let p99 = ROBUST.map(|t| Spread::of(&numbers(of(runs, t), "fct.all.p99")).mean);
    let [low, high] = [f64::min, f64::max].map(|of| p99.into_iter().reduce(of).expect("four"));
    Measured::one(high / low)
}

/// Queues and drops against the threshold.
fn threshold_plots(curves: &[(&str, &[Vec<Ran>])]) -> Vec<Plot> {
    let one = |title: &str, head: &str, path: &'static str, unit: Unit| {
        let line = |&(name, runs): &(&str, &[Vec<Ran>])| {
            let points = THRESHOLDS.iter().zip(runs);
            let points = points.map(|(&t, runs)| (f64::from(t), Spread::of(&numbers(runs, path))));
            curve(name, &points.collect::<Vec<_>>())
        };
        let (x, y) = (Axis::linear("Threshold t in slots", Unit::Count), Axis::linear(head, unit));
        let note = "Bars: least and most over the seeds.";
        plot(title, note, x, y, curves.iter().map(line).collect())
    };
    vec![
        one("Queues", "Longest queue", "queue.max_bytes", Unit::Bytes),
        one("Drops", "Packets that the switch drops", "drops", Unit::Count),
    ]
}

/// Medians over seeds of 64 bytes there and back in an idle rack (§2), from thread to thread: unsolicited, as nothing is
/// under way, and where every burst waits for its grant.
fn round_trips(effort: Effort, watch: &mut Watch<'_>) -> Result<[Vec<f64>; 2], Failure> {
    let rounds: u64 = if effort == Effort::Full { 100_000 } else { 2_000 };
    let size = json!({ "kind": "fixed", "size": "64 B" });
    // Its next question goes when the answer has come.
    let workload = json!({
        "kind": "requests", "clients": 1, "servers": 1, "request": size, "response": size,
        "service_time": "0 ns", "outstanding": 1, "rounds": rounds,
    });
    let settings = |below: u32| {
        [
            ("workload", workload.clone()),
            ("run.flows", json!(2 * rounds)),
            ("fabric.0.unsolicited_below", json!(below)),
        ]
    };
    let jobs = with_seeds(&[15, 0], effort.seeds());
    let medians = spread(&jobs, watch, |&(below, seed), pulse| {
        let scenario = microbursts::FILE.with(&settings(below), seed)?;
        let mut calls = Calls::new(2 * rounds);
        let run = run_nth(&scenario, microbursts::PL2, &mut calls, pulse)?;
        Ok(calls.between(0.0, number(&run, "simulated_seconds")).quantile(0.5))
    })?;
    let (unsolicited, granted) = medians.split_at(effort.seeds() as usize);
    Ok([unsolicited.to_vec(), granted.to_vec()])
}

/// What exchanges take, of 99 in a hundred at the most.
const P99: &str = "pl2.exchange_p99_seconds";

/// How far that is from the median.
fn spread_of(run: &Ran) -> f64 {
    number(run, P99) - number(run, "pl2.exchange_p50_seconds")
}

/// What a reservation takes in an idle rack and in a busy one, and what reservations take of that.
pub(super) fn exchange(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../pl2/exchange.claims.toml"));
    let messages: u64 = if effort == Effort::Full { 1_000_000 } else { 10_000 };
    // One host to another, a packet now and then.
    let idle = |delay: Option<(&str, &str)>| {
        let mut settings = microbursts::at_random(messages);
        settings.extend([
            ("workload.load", json!(0.0005)),
            ("workload.sizes.size", json!("1500 B")),
            ("workload.pattern.senders", json!([1])),
        ]);
        if let Some((software, jitter)) = delay {
            settings.push(("fabric.0.host.delay", json!(software)));
            settings.push(("fabric.0.host.jitter.median", json!(jitter)));
        }
        Case { file: microbursts::FILE, fabric: microbursts::PL2, settings }
    };
    let cases = [idle(None), idle(Some(("0 ns", "0 ns"))), incast::case(incast::PL2, 4, 1, effort)];
    let runs = carry_all(&cases, effort.seeds(), watch)?;
    let [software, hardware, busy] = &runs[..] else { unreachable!("three cases") };
    let mut put = |word: &str, measured| sheet.measure(&format!("exchange.{word}"), measured);
    for (name, runs) in [("software", software), ("hardware", hardware)] {
        put(&format!("{name}-min"), Measured::smallest(&numbers(runs, "pl2.exchange_min_seconds")));
        put(&format!("{name}-p50"), Measured::mean(&numbers(runs, "pl2.exchange_p50_seconds")));
        put(&format!("{name}-max"), Measured::largest(&numbers(runs, "pl2.exchange_max_seconds")));
    }
    put("overhead", Measured::mean(&over(busy, overhead)));
    let [idle, busy_late] = [software, busy].map(|runs| numbers(runs, P99));
    put("busy-tail", Measured::mean(&quotients(&busy_late, &idle)));
    let [idle, busy_spread] = [software, busy].map(|runs| over(runs, spread_of));
    put("busy-spread", Measured::mean(&quotients(&busy_spread, &idle)));
    let [trips, granted] = round_trips(effort, watch)?;
    put("round-trip", Measured::mean(&trips));
    put("round-trip-granted", Measured::mean(&granted));
    let columns = [
        ("case", "", Unit::Count),
        ("min", "Exchange, least", Unit::Seconds),
        ("p50", "median", Unit::Seconds),
        ("p99", "99 %", Unit::Seconds),
        ("max", "most", Unit::Seconds),
        ("overhead", "Control by payload", Unit::Share),
    ];
    let row = |(name, runs): (&str, &Vec<Ran>)| {
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
