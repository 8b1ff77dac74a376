//! Five hosts to one, messages that fit a round trip, under PL2 and RDS (§2, Fig. 1).

use report::Unit;
use report::page::{Axis, Block, Plot, PlotSeries, SeriesStyle};
use serde_json::{Value, json};

use super::racks::{
    Case, LOST, Ran, at_ingress, carry_all, gauge, numbers, on_the_line, quotients,
};
use crate::claims::{Measured, Shape, Sheet, Spread};
use crate::drawing::{findings, plot, published, table};
use crate::paper::part;
use crate::runs::{ScenarioFile, find_number, number};
use crate::{Effort, Failure, Findings, Watch};

/// The scenario; its `[[fabric]]` entries are PL2 and RDS.
pub(super) const FILE: ScenarioFile = ScenarioFile {
    path: "reproductions/pl2/microbursts.toml",
    text: include_str!("../../pl2/microbursts.toml"),
};

pub(super) const PL2: usize = 0;
pub(super) const RDS: usize = 1;

/// Messages of a run (our choice: in full ones 200 are beyond the 99.9th percentile).
pub(super) fn messages(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => 40_000,
        Effort::Full => 200_000,
    }
}

/// Hosts that send (§2: "5-way incast").
const SENDERS: u64 = 5;
/// Messages of a microburst at each host (§2: "only 6 simultaneous 5 µs (1 RTT) network transfers per rack-scale
/// unit" overrun 2 MB).
const AT_ONCE: u64 = 6;
/// Within so long all messages of a microburst begin: fitted to RDS's losses (Fig. 1c) in full runs. Within less RDS
/// collapses sooner or later.
const APART: &str = "26.5 us";
/// Such a time where RDS's time-outs are those of [`LONG_TIME_OUT`]: fitted to the same losses. Nothing collapses.
const APART_LATE: &str = "20 us";
/// What time-outs would be if one were two orders of a port's 120 µs (Fig. 1a).
const LONG_TIME_OUT: &str = "10 ms";
/// Another such time (our choice): what a port has room for has gone by a third.
const FAR_APART: &str = "40 us";

/// The microbursts of Fig. 1.
pub(super) fn microbursts(messages: u64) -> Vec<(&'static str, Value)> {
    at_once(messages, APART)
}

/// Microbursts of six messages at each of five hosts, that begin within `apart`; a host's 252 packets each 170.82 µs
/// are 18 Gbps with all that Ethernet adds.
fn at_once(messages: u64, apart: &str) -> Vec<(&'static str, Value)> {
    let rounds = messages / (SENDERS * AT_ONCE);
    let timing = json!({ "rounds": rounds, "period": "170.82 us", "jitter": apart });
    let incast = json!({ "kind": "incast", "senders": SENDERS, "receiver": 0, "size": "61 KiB",
                         "timing": timing });
    let parts = vec![incast; AT_ONCE as usize];
    let workload = json!({ "kind": "mix", "parts": parts });
    vec![("workload", workload), ("run.flows", json!(rounds * SENDERS * AT_ONCE))]
}

/// The same load in messages that come at random (Poisson) at each host.
pub(super) fn at_random(messages: u64) -> Vec<(&'static str, Value)> {
    let workload = json!({
        "kind": "poisson", "load": 0.1462, "sizes": { "kind": "fixed", "size": "61 KiB" },
        "pattern": { "kind": "gather" },
    });
    vec![("workload", workload), ("run.flows", json!(messages))]
}

fn case(fabric: usize, settings: &[Vec<(&'static str, Value)>]) -> Case {
    Case { file: FILE, fabric, settings: settings.concat() }
}

/// A time-out that only adds losses (§2), another than the 1 ms of §6.1 (our choice).
fn hasty() -> Vec<(&'static str, Value)> {
    vec![("fabric.1.transport.timeout", json!("200 us"))]
}

/// Fig. 1, and where RDS loses packets.
fn losing(messages: u64) -> [Case; 5] {
    let (burst, random) = (|| microbursts(messages), || at_random(messages));
    [
        case(PL2, &[burst()]),
        case(RDS, &[burst()]),
        case(RDS, &[burst(), hasty()]),
        case(RDS, &[random()]),
        case(RDS, &[random(), hasty()]),
    ]
}

/// Where RDS loses nothing, and PL2 with messages at random and paced.
fn others(messages: u64) -> [Case; 7] {
    let random = || at_random(messages);
    // One message a host each 28.47 µs: 18 Gbps with all that Ethernet adds to its 42 packets.
    let paced = || {
        let timing = json!({ "rounds": messages / SENDERS, "period": "28.47 us",
                             "jitter": "28.47 us" });
        let incast = json!({ "kind": "incast", "senders": SENDERS, "receiver": 0, "size": "61 KiB",
                             "timing": timing });
        vec![("workload", incast), ("run.flows", json!(messages))]
    };
    let ingress = || vec![at_ingress("fabric.0.switch.decrement")];
    let solicited = || vec![("fabric.0.unsolicited_below", json!(0))];
    [
        case(PL2, &[at_once(messages, FAR_APART)]),
        case(RDS, &[at_once(messages, FAR_APART)]),
        case(PL2, &[random()]),
        case(PL2, &[paced()]),
        case(RDS, &[paced()]),
        case(PL2, &[random(), ingress()]),
        case(PL2, &[random(), ingress(), solicited()]),
    ]
}

/// Packets that were lost, of all data packets that were sent.
pub(super) fn lost(run: &Ran) -> f64 {
    // Each message of 61 KiB is 42 packets of 1500 B of payload.
    let sent = 42.0 * number(run, "flows.offered") + number(run, "retransmissions");
    find_number(run, LOST).unwrap_or_else(|| number(run, "drops")) / sent
}

fn over(runs: &[Ran], get: impl Fn(&Ran) -> f64) -> Vec<f64> {
    runs.iter().map(get).collect()
}

/// Fig. 1.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../pl2/fig1.claims.toml"));
    let messages = messages(effort);
    let losing = carry_all(&losing(messages), SEEDS, &mut part(watch, 0.0..0.6))?;
    let beside = carry_all(&others(messages), effort.seeds(), &mut part(watch, 0.6..1.0))?;
    let [pl2, rds, hasty, random_rds, random_hasty] = &losing[..] else {
        unreachable!("five cases")
    };
    let [far, far_rds, random, paced, _, ingress, solicited] = &beside[..] else {
        unreachable!("seven cases")
    };
    let mut put = |word: &str, measured| sheet.measure(&format!("fig1.{word}"), measured);
    let [p50, p99, p999] = ["p50", "p99", "p999"].map(|word| format!("fct.all.{word}"));
    let longest = |runs| over(runs, |run| on_the_line(number(run, "queue.max_bytes")));
    put("rds-queue", Measured::mean(&longest(rds)));
    for (word, runs) in [("", rds), ("-apart", far_rds), ("-random", random_rds)] {
        let (tail, late) = (numbers(runs, &p999), numbers(runs, &p99));
        put(&format!("rds-p99{word}"), Measured::mean(&late));
        put(&format!("rds-tail{word}"), Measured::mean(&quotients(&tail, &late)));
        put(&format!("rds-drops{word}"), Measured::mean(&over(runs, lost)));
    }
    for (word, runs) in [
        ("", pl2),
        ("-random", random),
        ("-paced", paced),
        ("-ingress", ingress),
        ("-solicited", solicited),
    ] {
        put(&format!("pl2-drops{word}"), Measured::largest(&numbers(runs, LOST)));
        put(&format!("pl2-queue{word}"), Measured::largest(&numbers(runs, "queue.max_bytes")));
    }
    put("pl2-drops-all", Measured::largest(&numbers(pl2, "drops")));
    for (word, runs) in [("", pl2), ("-random", random), ("-paced", paced)] {
        let tail = quotients(&numbers(runs, &p999), &numbers(runs, &p50));
        put(&format!("pl2-tail{word}"), Measured::mean(&tail));
    }
    for (word, rds, pl2) in
        [("", rds, pl2), ("-apart", far_rds, far), ("-random", random_rds, random)]
    {
        let ahead = quotients(&numbers(rds, &p999), &numbers(pl2, &p999));
        put(&format!("tails{word}"), Measured::mean(&ahead));
    }
    put("timeout", timeout(rds, hasty, &p999));
    put("timeout-random", timeout(random_rds, random_hasty, &p999));
    let names = [
        "PL2",
        "RDS",
        "RDS, time-out of 200 µs",
        "RDS, at random",
        "RDS, at random, time-out of 200 µs",
        "PL2, within 40 µs",
        "RDS, within 40 µs",
        "PL2, at random",
        "PL2, paced",
        "RDS, paced",
        "PL2, at random, counters at ingress",
        "the same, never unsolicited",
    ];
    let drawn = [pl2, rds, random, random_rds];
    let blocks = vec![Block::Plots(plots(&drawn)), summary(&names, &[losing, beside].concat())];
    let text = "Five hosts send messages of 61 KiB to the sixth, 18 Gbps each with all that Ethernet adds: six at \
                once, each 170.82 µs, that begin within 26.5 or 40 µs; at random; or each host one at a random moment of \
                each 28.47 µs (paced).";
    Ok(findings("Microbursts", text, blocks, sheet))
}

/// RDS's tail by what a message takes that has the rack to itself.
pub(super) fn beside_one_alone(
    sheet: &mut Sheet,
    effort: Effort,
    watch: &mut Watch<'_>,
) -> Result<(), Failure> {
    let timing = json!({ "rounds": 1_000, "period": "170.82 us" });
    let incast = json!({ "kind": "incast", "senders": 1, "receiver": 0, "size": "61 KiB",
                         "timing": timing });
    let alone = vec![("workload", incast), ("run.flows", json!(1_000))];
    let cases = [case(RDS, &[microbursts(messages(effort))]), case(RDS, &[alone])];
    let runs = carry_all(&cases, effort.seeds(), watch)?;
    let beside = quotients(&numbers(&runs[0], "fct.all.p999"), &numbers(&runs[1], "fct.all.p50"));
    sheet.measure("further.rds-tail-alone", Measured::mean(&beside));
    Ok(())
}

/// Fig. 1 with RDS's time-outs of 10 ms, and what reducing them to the 1 ms of §6.1 does.
pub(super) fn long_time_outs(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../pl2/fig1-time-out.claims.toml"));
    let messages = messages(effort);
    let (burst, random) = (|| at_once(messages, APART_LATE), || at_random(messages));
    let long = || vec![("fabric.1.transport.timeout", json!(LONG_TIME_OUT))];
    let cases = [
        case(PL2, &[burst()]),
        case(RDS, &[burst(), long()]),
        case(RDS, &[burst()]),
        case(RDS, &[random(), long()]),
        case(RDS, &[random()]),
    ];
    let runs = carry_all(&cases, effort.seeds(), watch)?;
    let [pl2, rds, hasty, random_rds, random_hasty] = &runs[..] else { unreachable!("five cases") };
    let mut put = |word: &str, measured| sheet.measure(&format!("fig1-time-out.{word}"), measured);
    let [p50, p99, p999] = ["p50", "p99", "p999"].map(|word| format!("fct.all.{word}"));
    for (word, runs, hasty) in [("", rds, hasty), ("-random", random_rds, random_hasty)] {
        let (tail, late) = (numbers(runs, &p999), numbers(runs, &p99));
        put(&format!("rds-p99{word}"), Measured::mean(&late));
        put(&format!("rds-tail{word}"), Measured::mean(&quotients(&tail, &late)));
        put(&format!("rds-drops{word}"), Measured::mean(&over(runs, lost)));
        put(&format!("timeout{word}"), timeout(runs, hasty, &p999));
    }
    put("tails", Measured::mean(&quotients(&numbers(rds, &p999), &numbers(pl2, &p999))));
    put("pl2-tail", Measured::mean(&quotients(&numbers(pl2, &p999), &numbers(pl2, &p50))));
    put("pl2-drops", Measured::largest(&numbers(pl2, LOST)));
    put("pl2-queue", Measured::largest(&numbers(pl2, "queue.max_bytes")));
    let names = ["PL2", "RDS", "RDS, time-out of 1 ms", "RDS, at random", "the same, 1 ms"];
    let blocks = vec![summary(&names, &runs)];
    let text = "Fig. 1 where RDS waits 10 ms for what is lost, and the messages of a microburst begin within 20 µs.";
    Ok(findings("Microbursts, RDS with longer time-outs", text, blocks, sheet))
}

/// "Reducing the drop-timeout only increases drops, while only slightly reducing the 99.9%ile".
fn timeout(usual: &[Ran], hasty: &[Ran], p999: &str) -> Measured {
    let mean = |runs: &[Ran], get: &dyn Fn(&Ran) -> f64| {
        Spread::of(&runs.iter().map(get).collect::<Vec<_>>()).mean
    };
    let drops = [usual, hasty].map(|runs| mean(runs, &lost));
    let tails = [usual, hasty].map(|runs| mean(runs, &|run| number(run, p999)));
    let [first, second] = [0, 1].map(|case| {
        let (lost, tail) = (Unit::Share.format(drops[case]), Unit::Seconds.format(tails[case]));
        format!("{lost}, {tail}")
    });
    let words = format!("{first}; {second}");
    Measured::shape(words, Shape::of(drops[1] >= drops[0] && tails[1] <= tails[0]))
}

/// Seeds of [`losing`], quick or not: few packets are lost (our choice).
const SEEDS: u64 = 5;

/// Figs 1a to 1c: the first seed.
fn plots(runs: &[&Vec<Ran>; 4]) -> Vec<Plot> {
    let names = ["PL2", "RDS", "PL2, at random", "RDS, at random"];
    let latency = |(name, runs): (&str, &&Vec<Ran>)| {
        PlotSeries::new(name, SeriesStyle::Steps, runs[0].fct.clone())
    };
    let over_time = |name: &str, runs: &[Ran], column: &str, scale: f64| {
        let points = gauge(&runs[0], column).into_iter();
        let points = points.map(|(end, value)| (end, value * scale)).collect();
        PlotSeries::new(name, SeriesStyle::Line, points)
    };
    let seconds = || Axis::linear("Time", Unit::Seconds);
    let byte = on_the_line(1.0);
    let queues = names.iter().zip(runs);
    let queues = queues.map(|(name, runs)| over_time(name, runs, "queue_max_bytes", byte));
    let drops = names.iter().zip(runs).map(|(name, runs)| over_time(name, runs, "drops", 1.0));
    let theirs = published("RDS, 99th percentile, published", vec![(120e-6, 0.99)]);
    let latencies: Vec<_> = names.iter().copied().zip(runs).map(latency).collect();
    vec![
        plot(
            "Fig. 1a",
            "The point is the one that the paper's text has: 99 % of RDS's messages take about 120 µs at the most.",
            Axis::log("Latency of messages", Unit::Seconds),
            Axis::linear("Part of messages", Unit::Share),
            [latencies, vec![theirs]].concat(),
        ),
        plot(
            "Fig. 1b",
            "The longest in each sampling interval.",
            seconds(),
            Axis::linear("Queueing delay at the switch", Unit::Seconds),
            queues.collect(),
        ),
        plot(
            "Fig. 1c",
            "In each sampling interval.",
            seconds(),
            Axis::linear("Packets dropped", Unit::Count),
            drops.collect(),
        ),
    ]
}

/// Every figure of every case: means over seeds.
pub(super) fn summary(names: &[&str], runs: &[Vec<Ran>]) -> Block {
    let columns = [
        ("case", "", Unit::Count),
        ("p50", "Latency, median", Unit::Seconds),
        ("p99", "99 %", Unit::Seconds),
        ("p999", "99.9 %", Unit::Seconds),
        ("lost", "Packets lost", Unit::Share),
        ("again", "Packets sent again", Unit::Count),
        ("queue_p99", "Queue found, 99 %", Unit::Bytes),
        ("queue", "Longest queue", Unit::Bytes),
    ];
    let row = |(name, runs): (&&str, &Vec<Ran>)| {
        let mean = |get: &dyn Fn(&Ran) -> f64| {
            json!(Spread::of(&runs.iter().map(get).collect::<Vec<_>>()).mean)
        };
        let of = |path: &'static str| mean(&|run| number(run, path));
        vec![
            json!(name),
            of("fct.all.p50"),
            of("fct.all.p99"),
            of("fct.all.p999"),
            mean(&lost),
            of("retransmissions"),
            of("queue.p99_bytes"),
            of("queue.max_bytes"),
        ]
    };
    table("Means over seeds", &columns, names.iter().zip(runs).map(row).collect())
}
