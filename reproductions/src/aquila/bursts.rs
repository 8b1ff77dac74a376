//! One TiN that sends to another: messages of any size (§5.1, §6, Fig. 10; X04), and all it can (§1; X19).

use aquila::config::Ip;
use aquila::ip::open_loop::{Packet, round_trips};
use aquila::link::classes::Mode;
use aquila::switch::settings::Settings;
use aquila::topology::{Fibres, Shape};
use kernel::{Bytes, Rate, Stream, Time};
use report::Unit;
use report::page::{Axis, Block, Scale};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::SEEDS;
use super::clique::{ACK, BULK, Clique, VALUE, quantile, run as run_cells, send_all, us};
use super::throughput::routed;
use crate::claims::{Measured, Shape as Agreement, Sheet, Spread};
use crate::drawing::{curve, findings, level, plot, table};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// Sizes of messages (the paper's are in an image). Unit: KB.
const SIZES: [u64; 9] = [4, 8, 16, 64, 128, 256, 512, 1_000, 2_000];
/// The smallest that is more than one packet.
const SEVERAL: u64 = 16;
/// Longer ways at other weights than ours, 2 and 8 cells: a row, what a byte that is queued on one counts, and the bytes
/// besides by which a shortest way's queue must be longer (at most 16 cells, its room).
const WEIGHTS: [(&str, f64, u64); 4] = [
    ("fig10.tail-bias-1", 2.0, 160),
    ("fig10.tail-bias-12", 2.0, 1_920),
    ("fig10.tail-bias-15", 2.0, 2_400),
    ("fig10.tail-weight-8", 8.0, 1_280),
];
/// Messages on shortest ways alone, from TiNs that own no link to the other pod: a row, and their size in KB.
const SHORTER: [(&str, u64); 2] =
    [("fig10.tail-minimal-far-512", 512), ("fig10.tail-minimal-far-1000", 1_000)];
/// Longer ways' share of decisions that still counts as not rising (our choice).
const FLAT: f64 = 0.01;
/// What is sent on average (§5.1). Unit: Mbps.
const RATE: u64 = 600;

/// A pair of TiNs of different pods.
pub(super) fn pair(clique: &Clique, seed: u64) -> (u16, u16) {
    let mut stream = Stream::new(seed, "reproductions/aquila/pair", 0);
    let tins = u64::from(clique.shape().tins());
    let pod = |tin: u16| clique.shape().split(tin).0;
    loop {
        let (from, to) = (stream.below(tins) as u16, stream.below(tins) as u16);
        if pod(from) != pod(to) {
            return (from, to);
        }
    }
}

/// Such a pair of which the first owns no link to the pod of the other: all links between the two pods are on its shortest
/// ways, and not its own alone.
fn pair_without_link(clique: &Clique, seed: u64) -> (u16, u16) {
    let (topology, shape) = (&clique.topology, clique.shape());
    let owns = |from: u16, to: u16| {
        let mut ends = (0..shape.external_ports()).filter_map(|port| topology.far(from, port));
        ends.any(|end| shape.split(end.tin).0 == shape.split(to).0)
    };
    let mut pairs = (0..).map(|draw| pair(clique, seed << 16 | draw));
    pairs.find(|&(from, to)| !owns(from, to)).expect("most TiNs own no link to a pod")
}

/// Which TiNs send to which, by a number.
type Pair = fn(&Clique, u64) -> (u16, u16);

/// A number of a point.
type Get = fn(&Point) -> f64;

/// What messages of a size met.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Point {
    pub(super) p50: f64,
    pub(super) p99: f64,
    /// Share of data cells' decisions for a longer way.
    pub(super) detours: f64,
}

/// Messages of a size between pairs of TiNs, one after the other at the rate of the line.
pub(super) fn messages(
    clique: &Clique,
    how: (&Settings, &Ip),
    what: (u64, u64),
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<Point, Failure> {
    messages_of(pair, clique, how, what, seed, pulse)
}

/// The same of some pairs.
fn messages_of(
    pair: Pair,
    clique: &Clique,
    (settings, ip): (&Settings, &Ip),
    (kilobytes, many): (u64, u64),
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<Point, Failure> {
    let bytes = kilobytes * 1_000;
    let packets = bytes.div_ceil(u64::from(VALUE));
    let gap = Rate::from_bps(RATE * 1_000_000).send_time(Bytes::new(packets * u64::from(VALUE)));
    // A host waits where the buffer is full; these have none that could, and so room for the whole message.
    let ip = Ip { ingress_buffer: Some(Bytes::new(64 << 20)), ..ip.clone() };
    let mut cells = clique.ip(settings, &ip, seed);
    cells.endpoints_mut().answer_with(ACK);
    let mut all = Vec::new();
    for message in 0..many {
        let (from, to) = pair(clique, seed * 1_000 + message);
        let ends = (clique.address(from), clique.address(to));
        let packet = Packet::new(ends, VALUE, BULK, us(1) + gap * message);
        all.extend(std::iter::repeat_n(packet, packets as usize));
    }
    send_all(&mut cells, all);
    run_cells(&mut cells, Time::NEVER, pulse)?;
    cells.check_home().map_err(Failure::Model)?;
    let lost: u64 = cells.endpoints().counts().lost.iter().sum();
    if lost > 0 {
        return Err(Failure::Model(format!("{lost} packets of a burst were lost")));
    }
    let trips = round_trips(cells.endpoints().packets(), Time::ZERO, Time::NEVER);
    let counts = cells.counts();
    Ok(Point {
        p50: quantile(&trips, 0.5),
        p99: quantile(&trips, 0.99),
        detours: counts.detours as f64 / counts.decisions as f64,
    })
}

/// Messages of a run: small ones need more, that a hundredth of their packets is some.
const fn many(effort: Effort, kilobytes: u64) -> u64 {
    let least = match effort {
        Effort::Quick => 6,
        Effort::Full => 40,
    };
    least + 40 * least / kilobytes
}

/// Fig. 10.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/fig10.claims.toml"));
    let cliques = [Shape::FULL, Shape::HALF].map(|shape| Clique::new(&shape, Fibres::Grid));
    let cases: Vec<(usize, u64)> =
        (0..2).flat_map(|which| SIZES.map(|size| (which, size))).collect();
    let jobs = with_seeds(&cases, SEEDS);
    let found = spread(&jobs, watch, |&((which, size), seed), pulse| {
        let settings = (&Settings::default(), &Ip::default());
        messages(&cliques[which], settings, (size, many(effort, size)), seed, pulse)
    })?;
    let of = |case: (usize, u64), what: Get| -> Vec<f64> {
        let all = jobs.iter().zip(&found);
        all.filter(|((other, _), _)| *other == case).map(|(_, point)| what(point)).collect()
    };
    let mean = |case, what| Spread::of(&of(case, what)).mean;
    judge(&mut sheet, &mean);
    causes(&mut sheet, &cliques, effort, watch)?;
    let names = ["full", "half"];
    let line = |which: usize, name: &str, what: Get| {
        let point = |size: u64| (size as f64 * 1e3, Spread::of(&of((which, size), what)));
        curve(format!("{}, {name}", names[which]), &SIZES.map(point))
    };
    let mut series = vec![level("published: beyond, full", 30e3, 40e-6)];
    for which in 0..2 {
        series.push(line(which, "median", |point| point.p50));
        series.push(line(which, "99 %", |point| point.p99));
    }
    let axis = |label: &str, unit, scale| Axis { label: label.into(), unit, scale };
    let (x, y) = (
        axis("message", Unit::Bytes, Scale::Log),
        axis("round trip in the fabric", Unit::Seconds, Scale::Linear),
    );
    let note = "One pair of TiNs at a time, 0.6 Gbps; bars from the smallest to the largest seed.";
    let rows = cases.iter().map(|&case| {
        let mean = |what| json!(mean(case, what));
        vec![
            json!(names[case.0]),
            json!(case.1 * 1_000),
            mean(|point| point.p50),
            mean(|point| point.p99),
            mean(|point| point.detours),
        ]
    });
    let columns = [
        ("size", "Clique", Unit::Count),
        ("message", "Message", Unit::Bytes),
        ("p50", "Round trip, median", Unit::Seconds),
        ("p99", "99 %", Unit::Seconds),
        ("detours", "Decisions for longer ways", Unit::Share),
    ];
    let blocks = vec![
        Block::Plots(vec![plot("Fig. 10", note, x, y, series)]),
        table("Means over seeds", &columns, rows.collect()),
    ];
    let text = "A message comes to its TiN at 100 Gbps in packets of 4160 B, and goes to a TiN of another pod; each \
                packet is acknowledged. Between two pods there are 50 Gbps of fibre in the full Clique and 100 in \
                the half one. No congestion control holds packets back.";
    Ok(findings("Bursts that meet themselves", text, blocks, sheet))
}

/// What makes ours differ: each cause taken away.
fn causes(
    sheet: &mut Sheet,
    cliques: &[Clique; 2],
    effort: Effort,
    watch: &mut Watch<'_>,
) -> Result<(), Failure> {
    // Of any pairs and of those without a link of their own, in both Cliques; and shorter messages of the latter.
    let pairs: [Pair; 2] = [pair, pair_without_link];
    let longest = (0..2).flat_map(|of| [(of, 0, 2_000), (of, 1, 2_000)]);
    let cases: Vec<_> = longest.chain(SHORTER.map(|(_, size)| (1, 0, size))).collect();
    let shortest = with_seeds(&cases, SEEDS);
    let tails = spread(&shortest, watch, |&((of, which, size), seed), pulse| {
        let (settings, ip) = (routed(Mode::MinimalAdaptive), Ip::default());
        let what = (size, many(effort, size));
        Ok(messages_of(pairs[of], &cliques[which], (&settings, &ip), what, seed, pulse)?.p99)
    })?;
    let of = |wanted: (usize, usize, u64)| -> Vec<f64> {
        let all = shortest.iter().zip(&tails);
        all.filter(|((case, _), _)| *case == wanted).map(|(_, &tail)| tail).collect()
    };
    sheet.measure("fig10.tail-minimal", Measured::mean(&of((0, 0, 2_000))));
    for (id, size) in SHORTER {
        sheet.measure(id, Measured::mean(&of((1, 0, size))));
    }
    for (pair, id) in [(0, "fig10.between-minimal"), (1, "fig10.between-minimal-far")] {
        let (full, half) = (of((pair, 0, 2_000)), of((pair, 1, 2_000)));
        let worse: Vec<f64> = full.iter().zip(half).map(|(full, half)| full / half).collect();
        sheet.measure(id, Measured::mean(&worse));
    }
    // A line of the NIC so slow that a burst with its headers is less than four links between pods, from TiNs that own
    // none of them.
    let (settings, narrow) =
        (Settings::default(), Ip { port_rate: Rate::from_gbps(90), ..Ip::default() });
    let cases: Vec<(usize, u64)> = (0..2).flat_map(|which| [(which, 4), (which, 2_000)]).collect();
    let jobs = with_seeds(&cases, SEEDS);
    let found = spread(&jobs, watch, |&((which, size), seed), pulse| {
        let (how, what) = ((&settings, &narrow), (size, many(effort, size)));
        Ok(messages_of(pair_without_link, &cliques[which], how, what, seed, pulse)?.detours)
    })?;
    let mean = |case: (usize, u64)| {
        let all = jobs.iter().zip(&found).filter(|((other, _), _)| *other == case);
        Spread::of(&all.map(|(_, &share)| share).collect::<Vec<_>>()).mean
    };
    sheet.measure("fig10.longer-narrow-far", longer(&mean));
    weights(sheet, &cliques[0], effort, watch)
}

/// The largest messages in the full Clique, with longer ways at other weights.
fn weights(
    sheet: &mut Sheet,
    clique: &Clique,
    effort: Effort,
    watch: &mut Watch<'_>,
) -> Result<(), Failure> {
    let jobs = with_seeds(&WEIGHTS, SEEDS);
    let tails = spread(&jobs, watch, |&((_, weight, bias), seed), pulse| {
        let mut settings = Settings::default();
        settings.switch.detour_weight = weight;
        settings.switch.detour_bias = Bytes::new(bias);
        let (how, what) = ((&settings, &Ip::default()), (2_000, many(effort, 2_000)));
        Ok(messages(clique, how, what, seed, pulse)?.p99)
    })?;
    for (id, _, _) in WEIGHTS {
        let all = jobs.iter().zip(&tails).filter(|(((other, _, _), _), _)| *other == id);
        let of_it: Vec<f64> = all.map(|(_, &tail)| tail).collect();
        sheet.measure(id, Measured::mean(&of_it));
    }
    Ok(())
}

/// Whether bursts send cells by longer ways in the full Clique and not in the half one.
fn longer(detours: &dyn Fn((usize, u64)) -> f64) -> Measured {
    let [[small, large], [half_small, half_large]] =
        [0, 1].map(|which| [detours((which, 4)), detours((which, 2_000))]);
    let words = format!(
        "{:.1} % to {:.1} % in the full one, {:.1} % to {:.1} % in the half one",
        small * 100.0,
        large * 100.0,
        half_small * 100.0,
        half_large * 100.0
    );
    let agrees = large - small > FLAT && half_large - half_small < FLAT;
    Measured::shape(words, Agreement::of(agrees))
}

fn judge(sheet: &mut Sheet, mean: &dyn Fn((usize, u64), Get) -> f64) {
    let tail = |which: usize, size: u64| mean((which, size), |point| point.p99);
    let full = SIZES.map(|size| tail(0, size));
    sheet.measure("fig10.tail", Measured::one(full.into_iter().fold(0.0, f64::max)));
    // Within the noise of five seeds; from the smallest that is more than one packet.
    let rises = full.windows(2).all(|pair| pair[1] > pair[0] * 0.95);
    let grows = rises && tail(0, 2_000) > tail(0, SEVERAL) * 1.3;
    let words = if grows { "grows" } else { "does not grow" };
    sheet.measure("fig10.grows", Measured::shape(words, Agreement::of(grows)));
    let (largest, several) = (tail(1, 2_000), tail(1, SEVERAL));
    sheet.measure("fig10.half", Measured::one(largest / several));
    let worse = tail(0, 2_000) / tail(1, 2_000);
    sheet.measure("fig10.between", Measured::one(worse));
    sheet.measure("fig10.longer", longer(&|case| mean(case, |point| point.detours)));
}

/// What a TiN sends to another for a while, of 100 Gbps. Unit: bit/s.
pub(super) fn stream(
    clique: &Clique,
    (settings, ip): (&Settings, &Ip),
    micros: u64,
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<f64, Failure> {
    let (from, to) = pair(clique, seed);
    let gap = ip.port_rate.send_time(Bytes::new(VALUE.into()));
    let ends = (clique.address(from), clique.address(to));
    let (begin, end) = (us(micros / 4), us(micros));
    let count = (end - Time::ZERO).as_ps() / gap.as_ps();
    let packets = (0..count).map(|at| Packet::new(ends, VALUE, BULK, Time::ZERO + gap * at));
    let mut cells = clique.ip(settings, ip, seed);
    send_all(&mut cells, packets.collect());
    run_cells(&mut cells, end, pulse)?;
    let all = cells.endpoints().packets().iter();
    let left = all.filter(|packet| {
        packet.latency().is_some_and(|latency| (begin..end).contains(&(packet.at + latency)))
    });
    Ok((left.count() as u64 * u64::from(VALUE) * 8) as f64 / (end - begin).as_seconds())
}

/// One TiN sends all it can to another.
pub(super) fn one_pair(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/pair.claims.toml"));
    let clique = Clique::new(&Shape::FULL, Fibres::Grid);
    let modes = [
        (Mode::FullyAdaptive, "fully adaptive"),
        (Mode::MinimalAdaptive, "minimal adaptive"),
        (Mode::Deterministic, "deterministic"),
        (Mode::MinimalDeterministic, "minimal deterministic"),
    ];
    let micros = if effort == Effort::Quick { 100 } else { 1_000 };
    let jobs = with_seeds(&modes, SEEDS);
    let found = spread(&jobs, watch, |&((mode, _), seed), pulse| {
        stream(&clique, (&routed(mode), &Ip::default()), micros, seed, pulse)
    })?;
    let of = |wanted: Mode| -> Vec<f64> {
        let all = jobs.iter().zip(&found);
        all.filter(|(((mode, _), _), _)| *mode == wanted).map(|(_, &rate)| rate).collect()
    };
    sheet.measure("pair.adaptive", Measured::mean(&of(Mode::FullyAdaptive)));
    sheet.measure("pair.minimal", Measured::mean(&of(Mode::MinimalAdaptive)));
    let rows = modes.map(|(mode, name)| {
        let spread = Spread::of(&of(mode));
        vec![json!(name), json!(spread.mean), spread.interval()]
    });
    let columns = [
        ("mode", "Routing of data", Unit::Count),
        ("rate", "Carried", Unit::BitsPerSecond),
        ("spread", "Over seeds", Unit::BitsPerSecond),
    ];
    let blocks = vec![table("Packets of 4160 B at 100 Gbps", &columns, rows.to_vec())];
    let text = "A TiN sends all that its NIC takes to one of another pod, in an idle full Clique; other pairs of \
                them for each seed. Rates are those of IP packets.";
    Ok(findings("From one TiN to another", text, blocks, sheet))
}
