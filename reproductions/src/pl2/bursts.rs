//! Packets in a burst (§4.3).

use report::Unit;
use report::page::{Axis, Block, Plot, PlotSeries};
use serde_json::json;

use super::racks::{Case, Ran, carry_all, goodput, numbers};
use super::sweeps::over;
use super::traces::{self, DRAWN, LOW, WORKLOADS};
use super::{incast, memcached, microbursts};
use crate::claims::{Measured, Shape, Sheet, Spread};
use crate::drawing::{curve, findings, plot, table};
use crate::paper::part;
use crate::{Effort, Failure, Findings, Watch};

/// Packets in a burst (§4.3 names 4; the others are our choice).
const BURSTS: [u32; 5] = [1, 2, 4, 8, 16];
/// What the paper has for its testbed.
const BEST: u32 = 4;
/// Runs are half as long as those of Fig. 8 (our choice).
const SHORTER: u64 = 2;

/// K: one host to another with three flows, three hosts to one, and the other experiments' workloads.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../pl2/burst.claims.toml"));
    let groups = cases(effort);
    let mut runs =
        carry_all(&groups.concat(), effort.seeds(), &mut part(watch, 0.0..0.5))?.into_iter();
    let mut next = || -> Vec<Vec<Ran>> { runs.by_ref().take(BURSTS.len()).collect() };
    let [alone, three, messages, w3, w4, w5, free] = std::array::from_fn(|_| next());
    let usual = memcached::Variant::Bursts;
    let calls = memcached::rates_by_burst(&BURSTS, usual, effort, &mut part(watch, 0.5..1.0))?;
    let rates = |group: &[Vec<Ran>]| -> Vec<Spread> {
        group.iter().map(|runs| Spread::of(&over(runs, |run| goodput(run, 1e-3)))).collect()
    };
    let (one, three) = (rates(&alone), rates(&three));
    let rising = one.windows(2).all(|pair| pair[1].mean >= pair[0].mean);
    let words = words(&one, Unit::BitsPerSecond);
    sheet.measure("burst.small", Measured::shape(words, Shape::of(rising)));
    let p99 = all(&messages, "fct.all.p99");
    let [w3, w4, w5, free] = [w3, w4, w5, free].map(|runs| all(&runs, "slowdown.all.p99"));
    sheet.measure("burst.w3-free", least(&free, Unit::Ratio));
    let slowdowns = [w3, w4, w5];
    let calls: Vec<Spread> = calls.iter().map(|rates| Spread::of(rates)).collect();
    sheet.measure("burst.best", least(&p99, Unit::Seconds));
    for (word, slowdowns) in ["w3", "w4", "w5"].iter().zip(&slowdowns) {
        sheet.measure(&format!("burst.{word}"), least(slowdowns, Unit::Ratio));
    }
    sheet.measure("burst.memcached", most(&calls, Unit::Count));
    let plots = plots(&one, &three, &p99, &all(&messages, "fct.all.p50"), &slowdowns);
    let names = BURSTS.map(|packets| format!("K = {packets}"));
    let names = names.each_ref().map(String::as_str);
    let blocks = vec![
        Block::Plots(plots),
        microbursts::summary(&names, &messages),
        by_workload(&slowdowns, &calls),
    ];
    let text = "The incast of Fig. 9, the microbursts of Fig. 1, memcached beside four hosts (Fig. 3) and W3 to W5 \
                over raw Ethernet (Fig. 8), with bursts of one to sixteen packets.";
    Ok(findings("Packets in a burst (K)", text, blocks, sheet))
}

/// Groups of runs, in each one for each length of bursts.
fn cases(effort: Effort) -> Vec<Vec<Case>> {
    let alone = {
        let mut case = incast::case(incast::PL2, 1, 1, effort);
        case.settings.push(("workload.timing.rounds", json!(3)));
        case
    };
    let three = incast::case(incast::PL2, 3, 1, effort);
    let traces = [0, 1, 2].map(|index| trace(index, effort));
    let free = without_work(trace(0, effort));
    let kinds = [alone, three, messages(effort)].into_iter().chain(traces).chain([free]);
    kinds.map(by_burst).collect()
}

/// The microbursts of Fig. 1.
fn messages(effort: Effort) -> Case {
    let settings = microbursts::microbursts(microbursts::messages(effort));
    Case { file: microbursts::FILE, fabric: microbursts::PL2, settings }
}

/// W3, W4 or W5.
fn trace(index: usize, effort: Effort) -> Case {
    let times = if effort == Effort::Full { 5 } else { 1 };
    let (_, usual, messages) = WORKLOADS[DRAWN[index]];
    // Above half of the line slots, not bursts, are what W3 waits for.
    let gbps = if index == 0 { LOW } else { usual };
    traces::loaded(DRAWN[index], traces::PL2, gbps, messages * times / SHORTER)
}

/// The same with hosts whose threads do nothing but send.
fn without_work(mut case: Case) -> Case {
    case.settings.extend(incast::free());
    case
}

/// A case with each length of bursts.
fn by_burst(case: Case) -> Vec<Case> {
    let with = |packets: u32| {
        let mut case = case.clone();
        case.settings.push(("fabric.0.burst_packets", json!(packets)));
        case
    };
    BURSTS.map(with).to_vec()
}

/// K where threads do nothing but send: for each workload, and for all of them together.
pub(super) fn run_without_work(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../pl2/burst-free.claims.toml"));
    let (latencies, slowdowns) = tails(without_work, effort, &mut part(watch, 0.0..0.6))?;
    let variant = memcached::Variant::FreeBursts;
    let calls = memcached::rates_by_burst(&BURSTS, variant, effort, &mut part(watch, 0.6..1.0))?;
    let calls: Vec<Spread> = calls.iter().map(|rates| Spread::of(rates)).collect();
    sheet.measure("burst-free.best", least(&latencies, Unit::Seconds));
    for (word, slowdowns) in ["w4", "w5"].iter().zip(&slowdowns[1..]) {
        sheet.measure(&format!("burst-free.{word}"), least(slowdowns, Unit::Ratio));
    }
    sheet.measure("burst-free.memcached", most(&calls, Unit::Count));
    let mut ratios = beside_least(&latencies, &slowdowns);
    ratios.push(beside_best(&calls, f64::max).into_iter().map(f64::recip).collect());
    sheet.measure("burst-free.together", least(&together(&ratios), Unit::Ratio));
    let text = "The microbursts of Fig. 1, memcached beside four hosts (Fig. 3) and W3 to W5 over raw Ethernet (Fig. 8), \
                with bursts of one to sixteen packets and threads that do nothing but send.";
    let blocks = vec![by_workload(&slowdowns, &calls)];
    Ok(findings("Packets in a burst (K), hosts without work", text, blocks, sheet))
}

/// K where an exchange takes what it takes from NIC to NIC, and threads do nothing but send.
pub(super) fn run_nic_to_nic(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../pl2/burst-nic.claims.toml"));
    let nic_to_nic = |case| {
        let mut case = without_work(case);
        let keys = ["fabric.0.host.delay", "fabric.0.host.jitter.median"];
        case.settings.extend(keys.map(|key| (key, json!("0 ns"))));
        case
    };
    let (latencies, slowdowns) = tails(nic_to_nic, effort, watch)?;
    sheet.measure("burst-nic.best", least(&latencies, Unit::Seconds));
    for (word, slowdowns) in ["w3", "w4", "w5"].iter().zip(&slowdowns) {
        sheet.measure(&format!("burst-nic.{word}"), least(slowdowns, Unit::Ratio));
    }
    let together = together(&beside_least(&latencies, &slowdowns));
    sheet.measure("burst-nic.together", least(&together, Unit::Ratio));
    let text = "The microbursts of Fig. 1 and W3 to W5 over raw Ethernet (Fig. 8), with bursts of one to sixteen packets, \
                hosts whose software takes no time, and threads that do nothing but send.";
    Ok(findings("Packets in a burst (K), exchanges from NIC to NIC", text, Vec::new(), sheet))
}

/// Latencies of microbursts and slowdowns of W3 to W5, 99th percentiles, for each length with one thing changed.
fn tails(
    change: impl Fn(Case) -> Case,
    effort: Effort,
    watch: &mut Watch<'_>,
) -> Result<(Vec<Spread>, [Vec<Spread>; 3]), Failure> {
    let kinds = [messages(effort)].into_iter().chain([0, 1, 2].map(|index| trace(index, effort)));
    let cases: Vec<Case> = kinds.map(change).flat_map(by_burst).collect();
    let mut runs = carry_all(&cases, effort.seeds_of_longest(), watch)?.into_iter();
    let mut next = || -> Vec<Vec<Ran>> { runs.by_ref().take(BURSTS.len()).collect() };
    let latencies = all(&next(), "fct.all.p99");
    Ok((latencies, std::array::from_fn(|_| all(&next(), "slowdown.all.p99"))))
}

/// For each workload, what each length has by what the best has.
fn beside_least(latencies: &[Spread], slowdowns: &[Vec<Spread>; 3]) -> Vec<Vec<f64>> {
    let all = std::iter::once(latencies).chain(slowdowns.iter().map(Vec::as_slice));
    all.map(|values| beside_best(values, f64::min)).collect()
}

/// For each length the largest of these ratios.
fn together(ratios: &[Vec<f64>]) -> Vec<Spread> {
    let worst = |place: usize| {
        let worst = ratios.iter().map(|ratios| ratios[place]).max_by(f64::total_cmp);
        Spread::of(&[worst.expect("there are workloads")])
    };
    (0..BURSTS.len()).map(worst).collect()
}

/// Each value by the best of them.
fn beside_best(values: &[Spread], best: fn(f64, f64) -> f64) -> Vec<f64> {
    let means = values.iter().map(|value| value.mean);
    let best = means.clone().reduce(best).expect("there are lengths");
    means.map(|mean| mean / best).collect()
}

/// A number of the summaries, for each length of bursts.
fn all(group: &[Vec<Ran>], path: &str) -> Vec<Spread> {
    group.iter().map(|runs| Spread::of(&numbers(runs, path))).collect()
}

fn words(values: &[Spread], unit: Unit) -> String {
    values.iter().map(|value| unit.format(value.mean)).collect::<Vec<_>>().join(", ")
}

/// Whether the length that the paper chose has the least.
fn least(values: &[Spread], unit: Unit) -> Measured {
    let place = (0..BURSTS.len()).min_by(|&a, &b| values[a].mean.total_cmp(&values[b].mean));
    let is_best = place.is_some_and(|place| BURSTS[place] == BEST);
    Measured::shape(words(values, unit), Shape::of(is_best))
}

/// Whether it has the most.
fn most(values: &[Spread], unit: Unit) -> Measured {
    let place = (0..BURSTS.len()).max_by(|&a, &b| values[a].mean.total_cmp(&values[b].mean));
    let is_best = place.is_some_and(|place| BURSTS[place] == BEST);
    Measured::shape(words(values, unit), Shape::of(is_best))
}

fn line(name: &str, values: &[Spread]) -> PlotSeries {
    let points = BURSTS.iter().zip(values).map(|(&packets, &value)| (f64::from(packets), value));
    curve(name, &points.collect::<Vec<_>>())
}

fn plots(
    one: &[Spread],
    three: &[Spread],
    p99: &[Spread],
    p50: &[Spread],
    slowdowns: &[Vec<Spread>; 3],
) -> Vec<Plot> {
    let x = || Axis::linear("Packets in a burst", Unit::Count);
    let rate = Axis::linear("Throughput", Unit::BitsPerSecond);
    let latency = Axis::log("Latency of microbursts", Unit::Seconds);
    let slowdown = Axis::log("Slowdown, 99 %", Unit::Ratio);
    let rates = vec![line("One to one, three flows", one), line("Three to one", three)];
    let names = ["W3 at 40 Gbps", "W4", "W5"];
    let traces = names.iter().zip(slowdowns).map(|(name, values)| line(name, values)).collect();
    vec![
        plot("Throughput", "", x(), rate, rates),
        plot("Latency", "", x(), latency, vec![line("99 %", p99), line("Median", p50)]),
        plot("Messages of W3 to W5", "", x(), slowdown, traces),
    ]
}

/// Slowdowns and calls for each length of bursts: means over seeds.
fn by_workload(slowdowns: &[Vec<Spread>; 3], calls: &[Spread]) -> Block {
    let columns = [
        ("packets", "Packets in a burst", Unit::Count),
        ("w3", "Slowdown of W3 at 40 Gbps, 99 %", Unit::Ratio),
        ("w4", "of W4", Unit::Ratio),
        ("w5", "of W5", Unit::Ratio),
        ("calls", "Calls of memcached a second", Unit::Count),
    ];
    let row = |place: usize| {
        let [w3, w4, w5] = slowdowns.each_ref().map(|values| json!(values[place].mean));
        vec![json!(BURSTS[place]), w3, w4, w5, json!(calls[place].mean)]
    };
    table("Means over seeds", &columns, (0..BURSTS.len()).map(row).collect())
}
