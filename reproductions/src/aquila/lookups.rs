//! Round trips of IP under load (§5.1, Fig. 7; X01).
//!
//! A lookup's value is one packet of 4160 B, which is acknowledged. Hosts are not here: what they send comes at random
//! instants, whatever the fabric does with it (our choice: no congestion control holds anything back).

use aquila::config::Ip;
use aquila::ip::open_loop::{Packet, round_trips};
use aquila::switch::settings::Settings;
use aquila::topology::{Fibres, Shape};
use kernel::Rate;
use report::Unit;
use report::page::{Axis, Block, Scale};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::clique::{
    ACK, BULK, Clique, HOSTS, Uniform, VALUE, quantile, run as run_cells, send_all, us,
};
use super::sensitivity;
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{curve, findings, level, plot, table};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// Loads of a host; 47.5 is 95 % of what it has. Unit: Mbps.
const LOADS: [u64; 7] = [5_000, 15_000, 25_000, 35_000, 45_000, 47_500, 50_000];
/// 70 % of a host's line (§5.1).
const SEVENTY: u64 = 35_000;
/// 95 % of it.
const NEAR: u64 = 47_500;
/// Background of bulk traffic that a host sends (§5.1: 10 Gbps, messages of 64 KB), and lookups beside it. Unit: Mbps.
const BACKGROUND: u64 = 10_000;
const BESIDE: u64 = 5_000;
/// How long a run goes on when nothing is sent any more: as long as round trips take, twice. Unit: us.
const PATIENCE: u64 = 80;
/// Packets of a message of 64 KB.
const MESSAGE: u32 = 16;

/// What a run is to carry.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) settings: Settings,
    pub(super) ip: Ip,
    /// Lookups of a host, and bulk traffic beside them. Unit: Mbps.
    pub(super) load: u64,
    pub(super) background: u64,
    /// Their classes of service.
    pub(super) classes: [u8; 2],
    /// Unit: us.
    pub(super) micros: u64,
}

/// A number of a point.
type Get = fn(&Point) -> f64;

/// What a run gave.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Point {
    /// Round trips of values and their acknowledgments. Unit: s.
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) p999: f64,
    /// Bytes of packets that left within the window by those that came within it.
    pub(super) achieved: f64,
    /// Share of decisions for a longer way.
    pub(super) detours: f64,
    /// Packets lost.
    pub(super) lost: u64,
}

/// Carries lookups between hosts at these addresses. The first third is not measured.
pub(super) fn carry(
    clique: &Clique,
    hosts: &[u16],
    case: &Case,
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<Point, Failure> {
    let (from, until) = (us(case.micros / 3), us(case.micros));
    let rate = |mbps: u64| Rate::from_bps(mbps * 1_000_000);
    let lookups =
        Uniform { rate: rate(case.load), packets: 1, length: VALUE, class: case.classes[0], until };
    let mut packets = lookups.packets(hosts, seed, "reproductions/aquila/lookups");
    if case.background > 0 {
        let rate = rate(case.background);
        let bulk =
            Uniform { rate, packets: MESSAGE, length: VALUE - 1, class: case.classes[1], until };
        packets.extend(bulk.packets(hosts, seed, "reproductions/aquila/bulk"));
    }
    let mut cells = clique.ip(&case.settings, &case.ip, seed);
    cells.endpoints_mut().answer_with(ACK);
    send_all(&mut cells, packets);
    // What came within the window has time to get its acknowledgment.
    run_cells(&mut cells, us(case.micros + PATIENCE), pulse)?;
    cells.check().map_err(Failure::Model)?;
    let (counts, open_loop) = (cells.counts(), cells.endpoints());
    let all = open_loop.packets();
    let is_value = |packet: &&Packet| packet.answers.is_none() && packet.length == VALUE;
    let came = all.iter().filter(is_value).filter(|packet| (from..until).contains(&packet.at));
    let left = all.iter().filter(is_value).filter(|packet| {
        packet.latency().is_some_and(|latency| (from..until).contains(&(packet.at + latency)))
    });
    let lookups: Vec<Packet> = all
        .iter()
        .map(|packet| match packet.answers.is_none() && packet.length != VALUE {
            // Bulk packets are not what is measured.
            true => Packet { end: None, ..*packet },
            false => *packet,
        })
        .collect();
    let trips = round_trips(&lookups, from, until);
    Ok(Point {
        p50: quantile(&trips, 0.5),
        p99: quantile(&trips, 0.99),
        p999: quantile(&trips, 0.999),
        achieved: left.count() as f64 / came.count() as f64,
        detours: counts.detours as f64 / counts.decisions as f64,
        lost: open_loop.counts().lost.iter().sum(),
    })
}

/// The addresses of the testbed's hosts.
pub(super) fn testbed(clique: &Clique) -> Vec<u16> {
    clique.hosts(HOSTS).into_iter().map(|place| clique.host(place)).collect()
}

/// Microseconds of a run. The queue of a line with a load of ρ is as it stays after some s/(1-√ρ)²/2, if it takes s to
/// send a packet: at 90 % of a TiN's 100 Gbps (333 ns) after 63 µs. Below that a window shows queues that still grow.
const fn micros(effort: Effort, load: u64) -> u64 {
    match effort {
        Effort::Quick if load > SEVENTY => 192,
        Effort::Quick => 24,
        Effort::Full => 200,
    }
}

/// Fig. 7.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/fig7.claims.toml"));
    let clique = Clique::new(&Shape::FULL, Fibres::Grid);
    let hosts = testbed(&clique);
    let mut cases: Vec<(u64, u64)> = LOADS.map(|load| (load, 0)).to_vec();
    cases.push((BESIDE, BACKGROUND));
    let jobs = with_seeds(&cases, effort.seeds_of_longest());
    let found = spread(&jobs, watch, |&((load, background), seed), pulse| {
        let (settings, ip) = (Settings::default(), Ip::default());
        let (classes, micros) = ([BULK; 2], micros(effort, load));
        let case = Case { settings, ip, load, background, classes, micros };
        carry(&clique, &hosts, &case, seed, pulse)
    })?;
    let of = |case: (u64, u64), what: Get| -> Vec<f64> {
        let all = jobs.iter().zip(&found);
        all.filter(|((other, _), _)| *other == case).map(|(_, point)| what(point)).collect()
    };
    let at = |load, what| of((load, 0), what);
    sheet.measure("fig7.seventy", Measured::mean(&at(SEVENTY, |point| point.p99)));
    sheet.measure("fig7.near", Measured::mean(&at(NEAR, |point| point.p99)));
    let background = of((BESIDE, BACKGROUND), |point| point.p99);
    sheet.measure("fig7.background", Measured::mean(&background));
    let missing = |load| {
        let achieved = at(load, |point| point.achieved);
        (Spread::of(&achieved).mean - 1.0).abs()
    };
    let sustained = LOADS.into_iter().filter(|&load| missing(load) < 0.02).max().unwrap_or(0);
    sheet.measure("fig7.sustained", Measured::one(sustained as f64 * 1e6));
    let off = LOADS.into_iter().filter(|&load| load <= SEVENTY).map(missing).fold(0.0, f64::max);
    sheet.measure("fig7.throughput", Measured::one(off));
    let line = |name: &str, what: Get| {
        let points = LOADS.map(|load| (load as f64 * 1e6, Spread::of(&at(load, what))));
        curve(name, &points)
    };
    let bound = |name: &str, seconds| level(name, 25e9, seconds);
    let series = vec![
        line("median", |point| point.p50),
        line("99 %", |point| point.p99),
        line("99.9 %", |point| point.p999),
        bound("published: below, near 50 Gbps", 40e-6),
        bound("published: below, at 70 %", 20e-6),
    ];
    let axis = |label: &str, unit| Axis { label: label.into(), unit, scale: Scale::Linear };
    let (x, y) = (
        axis("offered by a host", Unit::BitsPerSecond),
        axis("round trip in the fabric", Unit::Seconds),
    );
    let note = "500 hosts on 250 TiNs; bars from the smallest to the largest seed.";
    let mut blocks =
        vec![Block::Plots(vec![plot("Fig. 7", note, x, y, series)]), numbers(&cases, &of)];
    if effort == Effort::Full {
        blocks.push(sensitivity::table(watch)?);
    }
    let text = "Each of 500 hosts, two at a TiN and as many in each pod, sends values of 4 KB in packets of 4160 B \
                to others at random instants; each is acknowledged by 64 B. A round trip is the way of the value and \
                that of its acknowledgment, from first bit in to first bit out. There are no hosts above that hold \
                anything back: the testbed's had Swift.";
    Ok(findings("IP under load", text, blocks, sheet))
}

fn numbers(cases: &[(u64, u64)], of: &dyn Fn((u64, u64), Get) -> Vec<f64>) -> Block {
    let row = |&case: &(u64, u64)| {
        let mean = |what: Get| json!(Spread::of(&of(case, what)).mean);
        vec![
            json!(case.0 as f64 * 1e6),
            json!(case.1 as f64 * 1e6),
            mean(|point| point.p50),
            mean(|point| point.p99),
            mean(|point| point.p999),
            mean(|point| point.achieved),
            mean(|point| point.detours),
            mean(|point| point.lost as f64),
        ]
    };
    let columns = [
        ("load", "Lookups of a host", Unit::BitsPerSecond),
        ("background", "Bulk of a host", Unit::BitsPerSecond),
        ("p50", "Round trip, median", Unit::Seconds),
        ("p99", "99 %", Unit::Seconds),
        ("p999", "99.9 %", Unit::Seconds),
        ("achieved", "Carried of what is offered", Unit::Share),
        ("detours", "Decisions for longer ways", Unit::Share),
        ("lost", "Packets lost", Unit::Count),
    ];
    table("Means over seeds", &columns, cases.iter().map(row).collect())
}
