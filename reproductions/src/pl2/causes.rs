//! What rows that differ hang on: one thing of the testbed changed at a time (§6.2 to §6.4).

use serde_json::{Value, json};

use super::racks::{Case, Ran, carried_alike, carry_all, numbers, quotients};
use super::traces::{W4_AT, WINDOW_MOST, by_size, close_to_optimum, measured, p50, p99};
use super::{incast, memcached, microbursts, traces, training};
use crate::claims::{Measured, Sheet};
use crate::drawing::findings;
use crate::paper::part;
use crate::{Effort, Failure, Findings, Watch};

/// Threads of each host: as many as the optimum's one host has in all (§6.3).
const THREADS: u32 = 33;
/// Flows of all senders together.
const FLOWS: usize = 32;
/// Messages of W3 to W5 in 3 s, some time-outs of 600 ms (our choice), of which the first two fifths are not measured:
/// until then windows have come down to what the port holds. A quick run has a quarter of them in a quarter of the time, and is
/// measured from before the first time-outs are over.
const LONG_W3: (usize, u64) = (W3_AT, 10_400_000);
const LONG_W4: (usize, u64) = (W4_AT, 261_000);
const LONG_W5: (usize, u64) = (W5_AT, 11_800);
const LONG_WARM_UP: f64 = 0.4;

/// The workloads' places.
const W1_AT: usize = 0;
const W2_AT: usize = 1;
const W3_AT: usize = 2;
const W5_AT: usize = 4;

/// All of them.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../pl2/causes.claims.toml"));
    memcached::causes(&mut sheet, effort, &mut part(watch, 0.0..0.2))?;
    training::causes(&mut sheet, effort, &mut part(watch, 0.2..0.3))?;
    messages(&mut sheet, effort, &mut part(watch, 0.3..0.5))?;
    incasts(&mut sheet, effort, &mut part(watch, 0.5..0.7))?;
    long_runs(&mut sheet, effort, &mut part(watch, 0.7..1.0))?;
    let text = "Runs of Figs 3 to 9 with one thing changed that the paper does not give: what becomes of the rows \
                that differ.";
    Ok(findings("What rows that differ hang on", text, Vec::new(), sheet))
}

/// Packets of a burst with a quarter of the exchanges (§4.3 has four of them; our choice).
const LONG_BURST: u32 = 16;

/// Fewer flows and less in the background of memcached; what RDS's tail is beside a message that is
/// alone; W4 in slots that hold a grant besides; W5 in longer bursts.
pub(super) fn further(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    use traces::{CUBIC, OPTIMUM, PL2, PL2_TCP};
    let mut sheet = Sheet::read(include_str!("../../pl2/further.claims.toml"));
    memcached::further(&mut sheet, effort, &mut part(watch, 0.0..0.4))?;
    microbursts::beside_one_alone(&mut sheet, effort, &mut part(watch, 0.4..0.6))?;
    let usual = |workload, fabric| traces::case(workload, fabric, effort);
    let cases = [
        with(usual(W4_AT, PL2), [("fabric.0.slot", json!(super::SLOT_WITH_GRANT))]),
        usual(W4_AT, OPTIMUM),
        with(usual(W5_AT, PL2_TCP), [("fabric.2.burst_packets", json!(LONG_BURST))]),
        usual(W5_AT, CUBIC),
    ];
    let runs = carry_all(&cases, effort.seeds_of_longest(), &mut part(watch, 0.6..1.0))?;
    let carried = Measured::mean(&carried_alike(&runs[0], &runs[1]));
    sheet.measure("further.w4-throughput-grants", carried);
    let medians = measured(&by_size([&runs[3], &runs[2]], p50));
    sheet.measure("further.w5-tcp-median-bursts", medians);
    let text = "Runs of Figs 1, 3, 5 and 8 with one thing changed that the paper does not give.";
    Ok(findings("What else rows that differ hang on", text, Vec::new(), sheet))
}

/// A case with settings of its own.
fn with(mut case: Case, settings: impl IntoIterator<Item = (&'static str, Value)>) -> Case {
    case.settings.extend(settings);
    case
}

/// Fig. 8: threads, work of the optimum's hosts, how long a grant counts as current, reservations.
fn messages(sheet: &mut Sheet, effort: Effort, watch: &mut Watch<'_>) -> Result<(), Failure> {
    use traces::{CUBIC, OPTIMUM, PL2, PL2_TCP};
    // Runs of the usual length in either effort: a full one has more seeds.
    let usual = |workload, fabric| traces::case(workload, fabric, Effort::Quick);
    let threads = ("fabric.0.threads", json!(THREADS));
    let current = ("fabric.2.unsolicited_age", json!("1 s"));
    let idle =
        ["fabric.1.host.byte_cost", "fabric.1.host.exchange_cost"].map(|key| (key, json!("0 ns")));
    let cases = [
        with(usual(W4_AT, PL2), [threads.clone()]),
        usual(W4_AT, OPTIMUM),
        with(usual(W5_AT, PL2), [threads]),
        usual(W5_AT, OPTIMUM),
        usual(W4_AT, PL2),
        with(usual(W4_AT, OPTIMUM), idle),
        with(usual(W1_AT, PL2_TCP), [current.clone()]),
        with(usual(W1_AT, PL2_TCP), [("fabric.2.scheduling", json!("none"))]),
        usual(W1_AT, CUBIC),
        with(usual(W2_AT, PL2_TCP), [current]),
        with(usual(W2_AT, PL2_TCP), [("fabric.2.scheduling", json!("none"))]),
        usual(W2_AT, CUBIC),
    ];
    let runs = carry_all(&cases, effort.seeds_of_longest(), watch)?;
    let [w4, w4_optimum, w5, w5_optimum, w4_usual, w4_idle, rest @ ..] = &runs[..] else {
        unreachable!("a run for each case")
    };
    let [w1, w1_free, w1_cubic, w2, w2_free, w2_cubic] = rest else {
        unreachable!("and for these")
    };
    let mut put = |word: &str, measured| sheet.measure(&format!("causes.{word}"), measured);
    put("w4-close-threads", close_to_optimum(&by_size([w4, w4_optimum], p99)));
    put("w5-close-threads", close_to_optimum(&by_size([w5, w5_optimum], p99)));
    put("w4-throughput-idle", Measured::mean(&carried_alike(w4_usual, w4_idle)));
    put("w1-current", measured(&by_size([w1, w1_cubic], p99)));
    put("w2-current", measured(&by_size([w2, w2_cubic], p99)));
    put("w1-unreserved", measured(&by_size([w1_free, w1_cubic], p99)));
    put("w2-unreserved", measured(&by_size([w2_free, w2_cubic], p99)));
    put("w1-median-unreserved", measured(&by_size([w1_free, w1_cubic], p50)));
    Ok(())
}

/// Fig. 9: as many flows in all whoever sends, and hosts whose delays do not vary.
fn incasts(sheet: &mut Sheet, effort: Effort, watch: &mut Watch<'_>) -> Result<(), Failure> {
    use incast::{CUBIC, PL2_TCP};
    let usual = |fabric, hosts| incast::case(fabric, hosts, 1, Effort::Quick);
    let shared = |hosts: usize| {
        let each = (FLOWS + hosts / 2) / hosts;
        with(usual(CUBIC, hosts), [("workload.timing.rounds", json!(each))])
    };
    let steady = |fabric, hosts| {
        let keys = ["fabric.2.host.jitter.median", "fabric.3.host.jitter.median"];
        with(usual(fabric, hosts), keys.map(|key| (key, json!("0 ns"))))
    };
    let mut cases: Vec<Case> = (2..=4).map(shared).collect();
    cases.extend(
        [2, 3].into_iter().flat_map(|hosts| [PL2_TCP, CUBIC].map(|fabric| steady(fabric, hosts))),
    );
    let runs = carry_all(&cases, effort.seeds_of_longest(), watch)?;
    let mut put = |word: String, measured| sheet.measure(&format!("causes.{word}"), measured);
    for (hosts, runs) in (2..=4).zip(&runs) {
        put(
            format!("cubic-again-{hosts}-shared"),
            Measured::mean(&numbers(runs, "retransmissions")),
        );
    }
    let goodput = |fabric: usize, runs: &[Ran]| -> Vec<f64> {
        runs.iter().map(|run| incast::steady(fabric, run)).collect()
    };
    for (hosts, pair) in [2, 3].iter().zip(runs[3..].chunks(2)) {
        let ratio = quotients(&goodput(PL2_TCP, &pair[0]), &goodput(CUBIC, &pair[1]));
        put(format!("tcp-{hosts}-steady"), Measured::mean(&ratio));
    }
    Ok(())
}

/// Fig. 8 over TCP on connections that last, from the usual windows and from all that receivers allow: one seed.
fn long_runs(sheet: &mut Sheet, effort: Effort, watch: &mut Watch<'_>) -> Result<(), Failure> {
    use traces::{CUBIC, PL2_TCP};
    let usual = |fabric, (workload, messages): (usize, u64)| {
        let case = traces::case(workload, fabric, Effort::Quick);
        with(case, [("run.flows", json!(messages)), ("run.warm_up", json!(LONG_WARM_UP))])
    };
    let full = |fabric, long| {
        let window = ("fabric.3.transport.stream.initial_window", json!(WINDOW_MOST));
        with(usual(fabric, long), [window])
    };
    let (shorter, w3_time) = match effort {
        Effort::Quick => (4, "750 ms"),
        Effort::Full => (1, "3 s"),
    };
    let [w3, w4, w5] =
        [LONG_W3, LONG_W4, LONG_W5].map(|(workload, messages)| (workload, messages / shorter));
    let cases = [
        with(full(CUBIC, w3), [("run.time", json!(w3_time))]),
        full(CUBIC, w4),
        usual(CUBIC, w4),
        usual(PL2_TCP, w4),
        full(CUBIC, w5),
        usual(CUBIC, w5),
        usual(PL2_TCP, w5),
    ];
    let runs = carry_all(&cases, 1, watch)?;
    let [w3, w4_full, w4, w4_pl2, w5_full, w5, w5_pl2] = &runs[..] else {
        unreachable!("a run for each case")
    };
    let mut put = |word: &str, measured| sheet.measure(&format!("causes.{word}"), measured);
    put("w3-cubic-rate-long", Measured::mean(&numbers(w3, "throughput.aggregate")));
    put("w4-tcp-long", measured(&by_size([w4, w4_pl2], p99)));
    put("w4-tcp-long-full", measured(&by_size([w4_full, w4_pl2], p99)));
    put("w4-tcp-median-long", measured(&by_size([w4, w4_pl2], p50)));
    put("w5-tcp-long", measured(&by_size([w5, w5_pl2], p99)));
    put("w5-tcp-long-full", measured(&by_size([w5_full, w5_pl2], p99)));
    put("w5-tcp-median-long", measured(&by_size([w5, w5_pl2], p50)));
    Ok(())
}
