//! Completion of short flows, throughput of long ones, and queues (§5.2, Figs 10 to 14).

use report::Unit;
use report::page::{Axis, Block, Plot};
use serde_json::{Value, json};

use super::racks::{
    Carried, Case, RACKS, Rack, both, carry_all, carry_longest, long_quotients, losses, quotients,
};
use crate::claims::{Measured, Shape, Sheet, Spread};
use crate::drawing::{curve, distribution, findings, plot, table};
use crate::runs::quantile;
use crate::{Effort, Failure, Findings, Watch};

/// §5.2: τ in nanoseconds.
const GAPS: [u64; 4] = [100, 1_000, 10_000, 100_000];
/// ρ in microseconds where rates are computed more often than usual (our choice: the least that
/// §5.1 names).
const INTERVAL_BRIEF: u64 = 100;
/// The τ of Figs 10 and 11.
const USUAL: u64 = 1_000;
/// How fast a flow of R2C2 goes at the most, in Gbit/s (our choice: §5.2 has no limit; shortest paths carry 10 to 60).
const LIMITS: [u64; 2] = [15, 20];
/// Percentiles at which the curves of Fig. 11 are compared (our choice).
const TENTHS: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];

/// Figs 10 and 11, and the reordering.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../r2c2/fig10.claims.toml"));
    let mut cases = RACKS.map(|rack| Case::new(rack, USUAL)).to_vec();
    cases.extend([Rack::Lasting, Rack::Tcp].map(|rack| Case::new(rack, USUAL).longer()));
    cases.push(Case::new(Rack::Linked, USUAL));
    let runs = carry_all(&cases, effort, watch)?;
    let [r2c2, tcp, pfq, lasting] = [&runs[0], &runs[1], &runs[2], &runs[3]];
    let longer = [&runs[4], &runs[5]];
    for (ours, reading) in [(r2c2, ""), (lasting, "-lasting")] {
        measure_beside(&mut sheet, ["fig10", reading], ours, [tcp, pfq]);
    }
    let mut put = |word: &str, measured| sheet.measure(&format!("fig10.{word}"), measured);
    put("gap-medians", gap_of_medians(r2c2, pfq));
    put("gap-medians-lasting", gap_of_medians(lasting, pfq));
    put("tcp-long-p01", long_at(r2c2, tcp, 0.01));
    let held: Vec<f64> = r2c2.iter().map(|run| run.held_p95).collect();
    put("reorder-p95-flows", Measured::mean(&held));
    let [ours, theirs] = longer;
    put("tcp-longer", Measured::mean(&quotients(theirs, ours, Carried::short_p99)));
    let held: Vec<f64> = ours.iter().map(|run| run.held_by_node).collect();
    put("reorder-p95-longer", Measured::mean(&held));
    put("pfq-linked", Measured::mean(&quotients(&runs[6], pfq, Carried::short_p99)));
    let blocks = vec![Block::Plots(distributions(&runs[..RACKS.len()])), numbers(&cases, &runs)];
    let text = format!(
        "{} flows a run, one a microsecond on average, Pareto sizes (shape 1.05, mean 100 KB, not \
         truncated), random nodes. Short: below 100 KB; long: above 1 MB.",
        Unit::Count.format(cases[0].flows as f64)
    );
    Ok(findings("Short and long flows", &text, blocks, sheet))
}

/// Rows of Figs 10 and 11 and of reordering, in the experiment and the reading of these names: R2C2 beside TCP and a queue
/// for each flow.
fn measure_beside(
    sheet: &mut Sheet,
    [experiment, reading]: [&str; 2],
    ours: &[Carried],
    [tcp, pfq]: [&[Carried]; 2],
) {
    let mut put =
        |word: &str, measured| sheet.measure(&format!("{experiment}.{word}{reading}"), measured);
    let held = |get: fn(&Carried) -> f64| ours.iter().map(get).collect::<Vec<_>>();
    put("tcp", Measured::mean(&quotients(tcp, ours, Carried::short_p99)));
    put("pfq", Measured::mean(&quotients(ours, pfq, Carried::short_p99)));
    put("reorder-p95", Measured::mean(&held(|run| run.held_by_node)));
    put("reorder-max", Measured::largest(&held(|run| run.held_max)));
    put("tcp-long-p99", long_at(ours, tcp, 0.99));
    put("tcp-long-mean", Measured::mean(&long_quotients(ours, tcp)));
    put("order", order(ours, tcp, pfq));
    put("gap", gap(ours, pfq));
}

/// Throughput of long flows at a quantile, R2C2 by TCP, all seeds together.
fn long_at(r2c2: &[Carried], tcp: &[Carried], share: f64) -> Measured {
    let [own, theirs] = both(r2c2, tcp);
    Measured::one(quantile(&own, share) / quantile(&theirs, share))
}

/// Whether long flows are fastest with a queue for each, and slowest under TCP.
fn order(r2c2: &[Carried], tcp: &[Carried], pfq: &[Carried]) -> Measured {
    let not_below = |[first, second]: [Vec<f64>; 2]| {
        let above = TENTHS.map(|share| quantile(&first, share) >= quantile(&second, share));
        above.into_iter().filter(|&is_above| is_above).count()
    };
    let (first, second) = (not_below(both(pfq, r2c2)), not_below(both(r2c2, tcp)));
    let all = TENTHS.len();
    let words = format!("PFQ above R2C2 at {first} of {all}, R2C2 above TCP at {second} of {all}");
    Measured::shape(words, Shape::of(first == all && second == all))
}

/// Whether long flows are farther from those with a queue for each than short ones are.
fn gap(r2c2: &[Carried], pfq: &[Carried]) -> Measured {
    let short = Spread::of(&quotients(r2c2, pfq, Carried::short_p99)).mean;
    wider(Spread::of(&long_quotients(pfq, r2c2)).mean, short)
}

/// The same of medians, as curves of both figures are seen to lie apart.
fn gap_of_medians(r2c2: &[Carried], pfq: &[Carried]) -> Measured {
    let of_short = |run: &Carried| quantile(&run.short, 0.5);
    let short = Spread::of(&quotients(r2c2, pfq, of_short)).mean;
    let [theirs, ours] = both(pfq, r2c2).map(|rates| quantile(&rates, 0.5));
    wider(theirs / ours, short)
}

/// Whether the gap of long flows is wider than that of short ones.
fn wider(long: f64, short: f64) -> Measured {
    let words = [long, short].map(|quotient| Unit::Ratio.format(quotient));
    Measured::shape(words.join(" beside "), Shape::of(long > short))
}

/// Figs 10 and 11: all seeds together.
fn distributions(runs: &[Vec<Carried>]) -> Vec<Plot> {
    let lines = |get: &dyn Fn(&Carried) -> Vec<f64>| {
        let line = |(rack, runs): (&Rack, &Vec<Carried>)| {
            let values: Vec<f64> = runs.iter().flat_map(get).collect();
            distribution(rack.name(), &values)
        };
        RACKS.iter().zip(runs).map(line).collect()
    };
    let y = || Axis::linear("Part of flows", Unit::Share);
    let short = Axis::log("FCT, short flows", Unit::Seconds);
    let long = Axis::linear("Throughput, long flows", Unit::BitsPerSecond);
    vec![
        plot("Fig. 10", "All seeds together.", short, y(), lines(&|run| run.short.clone())),
        plot("Fig. 11", "", long, y(), lines(&|run| run.long.values().copied().collect())),
    ]
}

/// The runs of a sweep: for each rack those of each τ.
struct Swept<'a>(&'a [Vec<Carried>]);

impl Swept<'_> {
    fn at(&self, rack: Rack, gap: u64) -> &[Carried] {
        let rack = RACKS.iter().position(|&known| known == rack).expect("all are listed");
        let gap = GAPS.iter().position(|&known| known == gap).expect("all are swept");
        &self.0[rack * GAPS.len() + gap]
    }

    /// How far a rack's short flows are from those with a queue for each, at the 99th percentile.
    fn beside_ideal(&self, rack: Rack, gap: u64) -> Vec<f64> {
        quotients(self.at(rack, gap), self.at(Rack::Pfq, gap), Carried::short_p99)
    }
}

/// Figs 12, 13 and 14.
pub(super) fn sweep(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../r2c2/fig12.claims.toml"));
    let of_a_rack = |&rack: &Rack| GAPS.map(|gap| Case::new(rack, gap));
    let mut cases: Vec<Case> = RACKS.iter().flat_map(of_a_rack).collect();
    let of_claims = GAPS.map(|gap| Case::new(Rack::Lasting, gap));
    cases.extend([
        of_claims[0].longer(),
        of_claims[1].longer(),
        of_claims[1].shorter(),
        Case { interval: INTERVAL_BRIEF, ..of_claims[0] },
        Case::new(Rack::Linked, GAPS[2]),
    ]);
    let runs = carry_longest(&cases, effort, watch)?;
    let swept = Swept(&runs);
    for (rack, reading) in [(Rack::R2c2, ""), (Rack::Lasting, "-lasting")] {
        measure_flows(&mut sheet, &swept, rack, reading);
        measure_queues(&mut sheet, &swept, rack, reading);
    }
    let apart = &runs[RACKS.len() * GAPS.len()..];
    measure_longer(&mut sheet, apart);
    measure_apart(&mut sheet, &swept, &apart[2..]);
    let blocks = vec![Block::Plots(against_load(&swept)), numbers(&cases, &runs)];
    let text = "The runs of Figs 10 and 11 with a flow every 100 ns to 100 µs. Where flows come \
                faster than the rack carries them, queues grow for as long as a run lasts.";
    Ok(findings("Flows and queues against load", text, blocks, sheet))
}

fn measure_flows(sheet: &mut Sheet, swept: &Swept<'_>, rack: Rack, reading: &str) {
    let mut put = |word: &str, measured| sheet.measure(&format!("fig12.{word}{reading}"), measured);
    // Seed by seed: how much farther from a queue for each flow than at the next lower load.
    let [dense, usual] = [GAPS[0], GAPS[1]].map(|gap| swept.beside_ideal(rack, gap));
    let grown: Vec<f64> = dense.iter().zip(&usual).map(|(dense, usual)| dense / usual).collect();
    put("departs", Measured::mean(&grown));
    put("converges-10us", Measured::mean(&swept.beside_ideal(rack, GAPS[2])));
    put("converges-100us", Measured::mean(&swept.beside_ideal(rack, GAPS[3])));
    put("converges", converges(&GAPS.map(|gap| Spread::of(&swept.beside_ideal(rack, gap)).mean)));
    let short = |gap| quotients(swept.at(Rack::Tcp, gap), swept.at(rack, gap), Carried::short_p99);
    let long = |gap| long_quotients(swept.at(rack, gap), swept.at(Rack::Tcp, gap));
    put("ahead", ahead(&GAPS.map(short)));
    put("ahead-long", ahead(&GAPS.map(long)));
}

/// Whether quotients come nearer to one at each step to a lower load, but for the last, which may
/// stay within a tenth of the one before (our choice): then they have converged.
fn converges(quotients: &[f64; GAPS.len()]) -> Measured {
    let distances = quotients.map(|quotient| (quotient - 1.0).abs());
    let words = distances.map(|distance| Unit::Share.format(distance)).join(", ");
    let last = quotients[GAPS.len() - 1] / quotients[GAPS.len() - 2];
    let falls = distances[..GAPS.len() - 1].is_sorted_by(|one, next| one > next);
    Measured::shape(words, Shape::of(falls && (0.9..=1.1).contains(&last)))
}

/// Whether mean quotients are above one at every τ. One that no flow gives is left out.
fn ahead(quotients: &[Vec<f64>]) -> Measured {
    let given = quotients.iter().filter(|of_a_gap| !of_a_gap.is_empty());
    let means: Vec<f64> = given.map(|of_a_gap| Spread::of(of_a_gap).mean).collect();
    let words: Vec<_> = means.iter().map(|&mean| Unit::Ratio.format(mean)).collect();
    Measured::shape(words.join(", "), Shape::of(means.iter().all(|&mean| mean > 1.0)))
}

fn measure_queues(sheet: &mut Sheet, swept: &Swept<'_>, rack: Rack, reading: &str) {
    let mut put = |word: &str, measured| sheet.measure(&format!("fig12.{word}{reading}"), measured);
    let of = |gap, get: fn(&Carried) -> f64| -> Vec<f64> {
        swept.at(rack, gap).iter().map(get).collect()
    };
    let p99: fn(&Carried) -> f64 = |run| run.queue_p99;
    for (word, gap) in [("1us", GAPS[1]), ("10us", GAPS[2]), ("100us", GAPS[3]), ("100ns", GAPS[0])]
    {
        put(&format!("queue-{word}"), Measured::mean(&of(gap, p99)));
    }
    let medians: Vec<f64> =
        GAPS[1..].iter().flat_map(|&gap| of(gap, |run| run.queue_p50)).collect();
    put("queue-median", Measured::largest(&medians));
    put("queue-100ns-median", Measured::mean(&of(GAPS[0], |run| run.queue_p50)));
    let grown = quotients(swept.at(rack, GAPS[0]), swept.at(rack, GAPS[1]), p99);
    put("queue-grows", Measured::mean(&grown));
    put("concurrent", Measured::mean(&of(GAPS[0], |run| run.concurrent)));
    if rack == Rack::R2c2 {
        let most = swept.at(Rack::Tcp, GAPS[0]).iter().map(|run| run.concurrent);
        put("concurrent-tcp", Measured::mean(&most.collect::<Vec<_>>()));
    }
}

/// What a third, a ninth, or a twenty-seventh of the flows leaves of what grows with a run.
pub(super) fn shorter(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../r2c2/shorter.claims.toml"));
    let of_claims = |gap| Case::new(Rack::Lasting, gap);
    let third = of_claims(USUAL).shorter();
    let ninth = third.shorter();
    let cases = [third, ninth, ninth.shorter(), of_claims(GAPS[0]).shorter()];
    let runs = carry_all(&cases, effort, watch)?;
    let [third, ninth, shortest, dense] = &runs[..] else { unreachable!("four cases") };
    let mut put = |word: &str, measured| sheet.measure(&format!("shorter.{word}"), measured);
    let over =
        |runs: &[Carried], get: fn(&Carried) -> f64| -> Vec<f64> { runs.iter().map(get).collect() };
    put("reorder-p95", Measured::mean(&over(third, |run| run.held_by_node)));
    put("reorder-max", Measured::largest(&over(third, |run| run.held_max)));
    for (word, runs) in [("queue-ninth", ninth), ("queue-100ns", dense)] {
        put(word, Measured::mean(&over(runs, |run| run.queue_p99)));
    }
    put("queue-median-ninth", Measured::mean(&over(ninth, |run| run.queue_p50)));
    put("queue-median-27th", Measured::mean(&over(shortest, |run| run.queue_p50)));
    put("queue-100ns-median", Measured::mean(&over(dense, |run| run.queue_p50)));
    let text = "The paper does not say how long its runs were. These have a third of the usual flows, a ninth, and a \
                twenty-seventh.";
    Ok(findings("Shorter runs", text, vec![numbers(&cases, &runs)], sheet))
}

/// What becomes of Figs 10 to 14 at τ = 1 µs where no flow of R2C2 goes as fast as its shortest paths carry.
pub(super) fn limited(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../r2c2/limited.claims.toml"));
    let of_limit = |limit| Case { limit: Some(limit), ..Case::new(Rack::R2c2, USUAL) };
    let mut cases = LIMITS.map(of_limit).to_vec();
    cases.extend([Rack::Tcp, Rack::Pfq].map(|rack| Case::new(rack, USUAL)));
    cases.push(Case { headroom: 0.0, ..of_limit(LIMITS[0]) });
    let runs = carry_all(&cases, effort, watch)?;
    let [limited, _, tcp, pfq, without] = &runs[..] else { unreachable!("five cases") };
    for (limit, ours) in LIMITS.iter().zip(&runs) {
        measure_beside(&mut sheet, ["limited", &format!("-{limit}")], ours, [tcp, pfq]);
        let queues: Vec<f64> = ours.iter().map(|run| run.queue_p99).collect();
        sheet.measure(&format!("limited.queue-{limit}"), Measured::mean(&queues));
    }
    let [low, high] = LIMITS;
    let gained = losses(quotients(limited, without, Carried::short_p99));
    sheet.measure(&format!("limited.headroom-{low}"), Measured::mean(&gained));
    let text = format!(
        "A flow that is alone goes as fast as its shortest paths carry, up to 60 Gbps. Here the application gives the \
         data of a flow to its node at {low} and at {high} Gbps. All flows are considered, and start at their share."
    );
    let blocks = vec![numbers(&cases, &runs)];
    Ok(findings("Flows whose applications limit them", &text, blocks, sheet))
}

/// What grows with the run: of three times as many flows, at τ = 100 ns and 1 µs.
fn measure_longer(sheet: &mut Sheet, runs: &[Vec<Carried>]) {
    let mut put = |word: &str, gap: usize, get: fn(&Carried) -> f64| {
        let values: Vec<f64> = runs[gap].iter().map(get).collect();
        sheet.measure(&format!("fig12.{word}-longer"), Measured::mean(&values));
    };
    put("concurrent", 0, |run| run.concurrent);
    put("queue-100ns", 0, |run| run.queue_p99);
    put("queue-100ns-median", 0, |run| run.queue_p50);
    put("queue-1us", 1, |run| run.queue_p99);
}

/// What a shorter run at τ = 1 µs, more frequent computations at 100 ns, and all flows at a link's
/// rate at 10 µs make of the rows of claims.
fn measure_apart(sheet: &mut Sheet, swept: &Swept<'_>, runs: &[Vec<Carried>]) {
    let [shorter, often, linked] = [&runs[0], &runs[1], &runs[2]];
    let p99: fn(&Carried) -> f64 = |run| run.queue_p99;
    let dense = swept.at(Rack::Lasting, GAPS[0]);
    let mut put = |word: &str, values: Vec<f64>| {
        sheet.measure(&format!("fig12.{word}"), Measured::mean(&values));
    };
    put("queue-1us-shorter", shorter.iter().map(p99).collect());
    put("queue-1us-median-shorter", shorter.iter().map(|run| run.queue_p50).collect());
    put("queue-grows-shorter", quotients(dense, shorter, p99));
    put("mitigates", quotients(often, dense, p99));
    let ideal = swept.at(Rack::Pfq, GAPS[2]);
    put("converges-10us-linked", quotients(linked, ideal, Carried::short_p99));
}

/// Figs 12 to 14.
fn against_load(swept: &Swept<'_>) -> Vec<Plot> {
    let line = |name: &str, of: &dyn Fn(u64) -> Vec<f64>| {
        let points = GAPS.iter().filter_map(|&gap| {
            let values = of(gap);
            (!values.is_empty()).then(|| (gap as f64 * 1e-9, Spread::of(&values)))
        });
        curve(name, &points.collect::<Vec<_>>())
    };
    let beside_tcp = [Rack::R2c2, Rack::Pfq, Rack::Lasting];
    let short = beside_tcp.map(|rack| {
        line(rack.name(), &|gap| {
            quotients(swept.at(rack, gap), swept.at(Rack::Tcp, gap), Carried::short_p99)
        })
    });
    let long = beside_tcp.map(|rack| {
        line(rack.name(), &|gap| long_quotients(swept.at(rack, gap), swept.at(Rack::Tcp, gap)))
    });
    let queues =
        |rack, gap, get: fn(&Carried) -> f64| swept.at(rack, gap).iter().map(get).collect();
    let queues = [Rack::R2c2, Rack::Lasting].map(|rack| {
        let name = |part: &str| format!("{}, {part}", rack.name());
        [
            line(&name("99th percentile"), &|gap| queues(rack, gap, |run| run.queue_p99)),
            line(&name("median"), &|gap| queues(rack, gap, |run| run.queue_p50)),
        ]
    });
    let x = || Axis::log("Time from flow to flow", Unit::Seconds);
    let note = "Bars: least and most over the seeds.";
    let ratio = |label| Axis::linear(label, Unit::Ratio);
    vec![
        plot("Fig. 12", note, x(), ratio("FCT p99, short flows, of TCP's"), short.into()),
        plot("Fig. 13", note, x(), ratio("Throughput, long flows, of TCP's"), long.into()),
        plot("Fig. 14", note, x(), Axis::log("Longest queue", Unit::Bytes), queues.concat()),
    ]
}

/// Every figure of every run: means over seeds.
fn numbers(cases: &[Case], runs: &[Vec<Carried>]) -> Block {
    let columns = [
        ("rack", "Rack", Unit::Count),
        ("gap", "Time from flow to flow", Unit::Seconds),
        ("interval", "From computation to computation", Unit::Seconds),
        ("headroom", "Headroom", Unit::Share),
        ("limit", "Limit of a flow", Unit::BitsPerSecond),
        ("flows", "Flows", Unit::Count),
        ("realised", "Load, realised", Unit::Share),
        ("fct_p50", "FCT short, median", Unit::Seconds),
        ("fct_p99", "p99", Unit::Seconds),
        ("long", "Long flows, all seeds", Unit::Count),
        ("throughput_p01", "Throughput long, p1", Unit::BitsPerSecond),
        ("throughput_p50", "median", Unit::BitsPerSecond),
        ("throughput_p99", "p99", Unit::BitsPerSecond),
        ("concurrent", "Flows at a time, most", Unit::Count),
        ("queue_p50", "Longest queue, median port", Unit::Bytes),
        ("queue_p99", "p99", Unit::Bytes),
        ("held_p95", "Packets out of order, p95 of flows", Unit::Count),
        ("held_by_node", "p95 of nodes", Unit::Count),
        ("held_max", "most", Unit::Count),
    ];
    let row = |(case, runs): (&Case, &Vec<Carried>)| {
        let mean = |get: &dyn Fn(&Carried) -> f64| {
            let values: Vec<f64> = runs.iter().map(get).filter(|value| !value.is_nan()).collect();
            if values.is_empty() { Value::Null } else { json!(Spread::of(&values).mean) }
        };
        let long: Vec<f64> = runs.iter().flat_map(|run| run.long.values().copied()).collect();
        let of_long =
            |share| if long.is_empty() { Value::Null } else { json!(quantile(&long, share)) };
        vec![
            json!(case.rack.name()),
            json!(case.gap as f64 * 1e-9),
            json!(case.interval as f64 * 1e-6),
            json!(case.headroom),
            json!(case.limit.map(|gbps| gbps as f64 * 1e9)),
            json!(case.flows),
            mean(&|run| run.realised),
            mean(&|run| quantile(&run.short, 0.5)),
            mean(&Carried::short_p99),
            json!(long.len()),
            of_long(0.01),
            of_long(0.5),
            of_long(0.99),
            mean(&|run| run.concurrent),
            mean(&|run| run.queue_p50),
            mean(&|run| run.queue_p99),
            mean(&|run| run.held_p95),
            mean(&|run| run.held_by_node),
            mean(&|run| run.held_max),
        ]
    };
    table("Means over seeds", &columns, cases.iter().zip(runs).map(row).collect())
}
