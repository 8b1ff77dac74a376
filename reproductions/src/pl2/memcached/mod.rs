//! memcached beside hosts that send to its client as fast as they can (§6.2.1, §6.2.2, Figs 3 to 6).

mod cases;
mod pauses;
mod start;

use report::Unit;
use report::page::{Axis, Block, Plot};
use serde_json::{Value, json};

pub(super) use self::cases::Variant;
use self::cases::{Background, CUBIC, Carried, Case, NAMES, PL2, SENDERS};
pub(super) use self::pauses::beside_pauses;
pub(super) use self::start::beside_start;
use super::racks::quotients;
use crate::claims::{Measured, Shape, Sheet, Spread};
use crate::drawing::{curve, findings, plot, published, table};
use crate::paper::part;
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// Runs with zero to four hosts in the background, under both fabrics.
struct Swept {
    runs: Vec<Carried>,
    seeds: usize,
}

impl Swept {
    fn carry(cases: &[Case], effort: Effort, watch: &mut Watch<'_>) -> Result<Self, Failure> {
        Self::with_seeds(cases, effort.seeds(), watch)
    }

    fn with_seeds(cases: &[Case], seeds: u64, watch: &mut Watch<'_>) -> Result<Self, Failure> {
        let jobs = with_seeds(cases, seeds);
        let runs = spread(&jobs, watch, |(case, seed), pulse| case.run(*seed, pulse))?;
        Ok(Self { runs, seeds: seeds as usize })
    }

    fn at(&self, case: usize) -> &[Carried] {
        &self.runs[case * self.seeds..(case + 1) * self.seeds]
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

/// The mean over runs of their 99th percentiles; a lower bound where the end of one cut off the calls that decide.
fn tail(runs: &[Carried]) -> Measured {
    let is_bound = runs.iter().any(|run| run.calls.is_bound(0.99));
    let measured = if is_bound { Measured::at_least } else { Measured::mean };
    measured(&over(runs, p99))
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
    let mut sheet = Sheet::read(include_str!("../../../pl2/fig3.claims.toml"));
    let mut cases = sweep(Background::Tcp, effort);
    let beside =
        |fabric, hosts, variant| Case::new(fabric, Background::Tcp, hosts, effort).varied(variant);
    let first = cases.len();
    cases.extend([PL2, CUBIC].map(|fabric| beside(fabric, 4, Variant::Small)));
    cases.extend([beside(CUBIC, 4, Variant::Linux), beside(PL2, 4, Variant::Ingress)]);
    cases.extend([beside(PL2, 0, Variant::Brief), beside(PL2, 4, Variant::Unreserved)]);
    cases.extend([PL2, CUBIC].map(|fabric| beside(fabric, 1, Variant::Half)));
    cases.extend([0, 4].map(|hosts| beside(PL2, hosts, Variant::Free)));
    cases.push(beside(PL2, 4, Variant::Grants));
    let swept = Swept::carry(&cases, effort, watch)?;
    let mut put = |word: &str, measured| sheet.measure(&format!("fig3.{word}"), measured);
    let between = |hosts, get: fn(&Carried) -> f64, [above, below]: [usize; 2]| {
        let runs = [above, below].map(|fabric| over(swept.with(fabric, hosts), get));
        quotients(&runs[0], &runs[1])
    };
    put("idle-load", Measured::mean(&over(swept.with(CUBIC, 0), |run| run.own)));
    put("idle", Measured::mean(&between(0, rate, [PL2, CUBIC])));
    let brief = swept.at(first + 4);
    put(
        "idle-brief",
        Measured::mean(&quotients(&over(brief, rate), &over(swept.with(CUBIC, 0), rate))),
    );
    let free = [8, 9].map(|case| swept.at(first + case));
    let idle = quotients(&over(free[0], rate), &over(swept.with(CUBIC, 0), rate));
    put("idle-free", Measured::mean(&idle));
    put("p99-pl2-free", tail(free[1]));
    put("idle-latency", Measured::mean(&between(0, p99, [PL2, CUBIC])));
    put("one-load", Measured::mean(&over(swept.with(CUBIC, 1), |run| run.background)));
    put("one", Measured::mean(&between(1, rate, [PL2, CUBIC])));
    let half = [6, 7].map(|case| over(swept.at(first + case), rate));
    put("one-half", Measured::mean(&quotients(&half[0], &half[1])));
    put("downlink", Measured::mean(&over(swept.with(CUBIC, 4), |run| run.background)));
    let cubic = over(swept.with(CUBIC, 4), |run| run.background);
    let more = |pl2: &[Carried]| {
        let pairs = over(pl2, |run| run.background).into_iter().zip(&cubic);
        Measured::mean(&pairs.map(|(pl2, cubic)| pl2 - cubic).collect::<Vec<_>>())
    };
    put("more", more(swept.with(PL2, 4)));
    put("more-unreserved", more(swept.at(first + 5)));
    put("more-grants", more(swept.at(first + 10)));
    put("rate", Measured::mean(&between(4, rate, [PL2, CUBIC])));
    put("p99-pl2", tail(swept.with(PL2, 4)));
    put("p99-cubic", tail(swept.with(CUBIC, 4)));
    put("p99-ratio", Measured::mean(&between(4, p99, [CUBIC, PL2])));
    let drops: Vec<f64> =
        (0..=4).flat_map(|hosts| over(swept.with(PL2, hosts), |run| run.drops)).collect();
    put("loss", Measured::largest(&drops));
    let runs = [0, 1].map(|case| Spread::of(&over(swept.at(first + case), p99)).mean);
    let words = runs.map(|seconds| Unit::Seconds.format(seconds)).join(" and ");
    put("small", Measured::shape(words, Shape::of(runs[PL2] < runs[CUBIC])));
    let [linux, ingress] = [swept.at(first + 2), swept.at(first + 3)];
    put("p99-linux", tail(linux));
    put("loss-ingress", Measured::largest(&over(ingress, |run| run.drops)));
    let text = "One client asks for values of 4 KiB, one at a time, beside up to four hosts that each \
                send it 12 TCP flows that never end; the first of them is memcached's own.";
    let points = [("PL2, published", 56e-6), ("CUBIC, published", 127e-6)];
    let blocks = vec![Block::Plots(plots(["3", "4"], &swept, &points)), numbers_of(&swept)];
    Ok(findings("memcached beside TCP", text, blocks, sheet))
}

/// Figs 5 and 6.
pub(super) fn beside_udp(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../../pl2/fig5.claims.toml"));
    let mut cases = sweep(Background::Udp, effort);
    let beside_tcp = cases.len();
    cases.push(Case::new(PL2, Background::Tcp, 4, effort));
    cases.push(Case::new(PL2, Background::Udp, 4, effort).varied(Variant::Flows(6)));
    cases.push(Case::new(PL2, Background::Udp, 4, effort).varied(Variant::Free));
    let grants = |hosts| Case::new(PL2, Background::Udp, hosts, effort).varied(Variant::Grants);
    cases.extend((2..=4).map(grants));
    let swept = Swept::carry(&cases, effort, watch)?;
    let mut put = |word: &str, measured| sheet.measure(&format!("fig5.{word}"), measured);
    put("p99-pl2", tail(swept.with(PL2, 4)));
    put("p99-few", tail(swept.at(beside_tcp + 1)));
    put("p99-pl2-free", tail(swept.at(beside_tcp + 2)));
    let medians = [4, 0].map(|hosts| over(swept.with(PL2, hosts), |run| run.calls.quantile(0.5)));
    put("median", Measured::mean(&quotients(&medians[0], &medians[1])));
    let tails = [4, 0].map(|hosts| over(swept.with(PL2, hosts), p99));
    put("tail", Measured::mean(&quotients(&tails[0], &tails[1])));
    put("p99-cubic", tail(swept.with(CUBIC, 4)));
    for hosts in 2..=4 {
        put(&format!("rate-{hosts}"), Measured::mean(&over(swept.with(CUBIC, hosts), rate)));
        let background = over(swept.with(PL2, hosts), |run| run.background);
        put(&format!("background-{hosts}"), Measured::mean(&background));
        let grants = over(swept.at(beside_tcp + 1 + hosts), |run| run.background);
        put(&format!("background-{hosts}-grants"), Measured::mean(&grants));
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
    let blocks = vec![Block::Plots(plots(["5", "6"], &swept, &points)), numbers_of(&swept)];
    Ok(findings("memcached beside UDP", text, blocks, sheet))
}

/// Throughput and latency against hosts in the background.
fn plots([rates, calls]: [&str; 2], swept: &Swept, points: &[(&str, f64)]) -> Vec<Plot> {
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
    let note = "Bars: least and most over the seeds.";
    vec![
        plot(
            &format!("Fig. {rates}"),
            note,
            x(),
            Axis::linear("Calls a second", Unit::Count),
            lines(&rate, ""),
        ),
        plot(
            &format!("Fig. {calls}"),
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
            if hosts == 0 { Value::Null } else { mean(&|run| run.background) },
            mean(&|run| run.drops),
        ]
    };
    let points =
        [PL2, CUBIC].into_iter().flat_map(|fabric| (0..=4).map(move |hosts| (fabric, hosts)));
    table("Means over seeds", &columns, points.map(row).collect())
}

/// Calls a second beside four hosts that send TCP, with bursts of so many packets, over seeds. `variant`: one that has them.
pub(super) fn rates_by_burst(
    bursts: &[u32],
    variant: fn(u32) -> Variant,
    effort: Effort,
    watch: &mut Watch<'_>,
) -> Result<Vec<Vec<f64>>, Failure> {
    let case = |&packets: &u32| Case::new(PL2, Background::Tcp, 4, effort).varied(variant(packets));
    let swept = Swept::carry(&bursts.iter().map(case).collect::<Vec<_>>(), effort, watch)?;
    Ok((0..bursts.len()).map(|index| over(swept.at(index), rate)).collect())
}

/// What rows of Figs 3 to 6 that differ hang on: how hard hosts press that send datagrams and from how many on, how evenly
/// long messages come, and what exchanges cost.
pub(super) fn causes(
    sheet: &mut Sheet,
    effort: Effort,
    watch: &mut Watch<'_>,
) -> Result<(), Failure> {
    const HOSTS: std::ops::RangeInclusive<usize> = 2..=4;
    // Runs of the usual length in either effort: a full one has more seeds.
    let beside = |fabric, background, hosts, variant| {
        Case::new(fabric, background, hosts, Effort::Quick).varied(variant)
    };
    let paced: Vec<Case> =
        HOSTS.map(|hosts| beside(CUBIC, Background::Udp, hosts, Variant::Paced)).collect();
    let paced = Swept::with_seeds(&paced, 1, &mut part(watch, 0.0..0.7))?;
    let even = [PL2, CUBIC].map(|fabric| beside(fabric, Background::Tcp, 1, Variant::HalfEven));
    let even = Swept::carry(&even, effort, &mut part(watch, 0.7..0.8))?;
    let free = [Background::Udp, Background::Tcp]
        .map(|background| beside(PL2, background, 4, Variant::FreeExchanges));
    let free = Swept::carry(&free, effort, &mut part(watch, 0.8..0.9))?;
    let beside_udp = [2, 4].map(|hosts| beside(PL2, Background::Udp, hosts, Variant::Usual));
    let beside_udp = Swept::carry(&beside_udp, effort, &mut part(watch, 0.9..1.0))?;
    let mut put = |word: &str, measured| sheet.measure(&format!("causes.{word}"), measured);
    for (place, hosts) in HOSTS.enumerate() {
        put(&format!("rate-{hosts}-paced"), Measured::mean(&over(paced.at(place), rate)));
    }
    let [two, four] = [0, 1].map(|place| over(beside_udp.at(place), p99));
    put("tail-from-two", Measured::mean(&quotients(&four, &two)));
    let [pl2, cubic] = [0, 1].map(|place| over(even.at(place), rate));
    put("one-half-even", Measured::mean(&quotients(&pl2, &cubic)));
    let [udp, tcp] = [0, 1].map(|place| free.at(place));
    put("rate-tcp-exchanges", Measured::mean(&quotients(&over(udp, rate), &over(tcp, rate))));
    put("p99-exchanges", tail(tcp));
    Ok(())
}

/// Figs 3 to 6 beside hosts that press less hard: a little more datagrams than the port carries, however many hosts send
/// them; and seven flows of one host.
pub(super) fn gentler(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    const HOSTS: std::ops::RangeInclusive<usize> = 2..=4;
    let mut sheet = Sheet::read(include_str!("../../../pl2/gentler.claims.toml"));
    // Time-outs take hundreds of milliseconds and double. The calls that decide on the 99th percentile, which is told of
    // beside four hosts, take seconds.
    let milliseconds = |hosts| match (effort, hosts) {
        (Effort::Quick, _) => 2_000,
        (Effort::Full, 4) => 60_000,
        (Effort::Full, _) => 12_000,
    };
    let little_more = |hosts| {
        let case = Case::new(CUBIC, Background::Udp, hosts, effort);
        case.varied(Variant::LittleMore).lasting(milliseconds(hosts))
    };
    let datagrams: Vec<Case> = HOSTS.map(little_more).collect();
    let datagrams = Swept::carry(&datagrams, effort, &mut part(watch, 0.0..0.9))?;
    // CUBIC's hosts have no work that would hold seven flows: theirs are held otherwise.
    let seven = [(PL2, Variant::Flows(7)), (CUBIC, Variant::HalfEven)]
        .map(|(fabric, variant)| Case::new(fabric, Background::Tcp, 1, effort).varied(variant));
    let seven = Swept::carry(&seven, effort, &mut part(watch, 0.9..1.0))?;
    let mut put = |word: &str, measured| sheet.measure(&format!("gentler.{word}"), measured);
    for (place, hosts) in HOSTS.enumerate() {
        put(&format!("rate-{hosts}"), Measured::mean(&over(datagrams.at(place), rate)));
    }
    put("p99-cubic", tail(datagrams.at(2)));
    let [pl2, cubic] = [0, 1].map(|place| seven.at(place));
    put("one-seven", Measured::mean(&quotients(&over(pl2, rate), &over(cubic, rate))));
    put("one-seven-load", Measured::mean(&over(pl2, |run| run.background)));
    let text = "One client asks for values of 4 KiB, one at a time, beside hosts that press less hard than they can.";
    Ok(findings("Hosts that press less hard", text, Vec::new(), sheet))
}

/// Figs 3 to 6 beside hosts with a third of the flows of UDP, and beside one that sends somewhat less than half of the line.
pub(super) fn further(
    sheet: &mut Sheet,
    effort: Effort,
    watch: &mut Watch<'_>,
) -> Result<(), Failure> {
    let udp = |hosts| Case::new(PL2, Background::Udp, hosts, effort).varied(Variant::Flows(4));
    let beside_own =
        |(fabric, variant)| Case::new(fabric, Background::Tcp, 1, effort).varied(variant);
    let nearly = [PL2, CUBIC].map(|fabric| beside_own((fabric, Variant::NearlyHalf)));
    let free = [(PL2, Variant::HalfFreeExchanges), (CUBIC, Variant::Half)].map(beside_own);
    let cases = [udp(0), udp(2), udp(4)].into_iter().chain(nearly).chain(free);
    let swept = Swept::carry(&cases.collect::<Vec<_>>(), effort, watch)?;
    let [none, two, four, pl2, cubic, free, usual] =
        [0, 1, 2, 3, 4, 5, 6].map(|case| swept.at(case));
    let mut put = |word: &str, measured| sheet.measure(&format!("further.{word}"), measured);
    put("udp-p99", tail(four));
    put("udp-tail", Measured::mean(&quotients(&over(four, p99), &over(none, p99))));
    let medians = [four, none].map(|runs| over(runs, |run| run.calls.quantile(0.5)));
    put("udp-median", Measured::mean(&quotients(&medians[0], &medians[1])));
    put("udp-background-2", Measured::mean(&over(two, |run| run.background)));
    put("udp-background-4", Measured::mean(&over(four, |run| run.background)));
    put("one-half", Measured::mean(&quotients(&over(pl2, rate), &over(cubic, rate))));
    let free = quotients(&over(free, rate), &over(usual, rate));
    put("one-half-exchanges", Measured::mean(&free));
    Ok(())
}
