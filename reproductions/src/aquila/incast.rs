//! Many that send to one (§3.3; X09, X27): what waits in the fabric, and what becomes of others.

use aquila::cells::ip::wire_bytes;
use aquila::config::Ip;
use aquila::ip::Loss;
use aquila::ip::open_loop::{End, OpenLoop, Packet};
use aquila::link::classes::CellKind;
use aquila::switch::Switches;
use aquila::switch::settings::Settings;
use aquila::topology::{Fibres, Shape};
use kernel::{Bytes, Rate, Span, Stream, Time};
use report::Unit;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::SEEDS;
use super::clique::{BULK, Clique, run as run_cells, send_all, us};
use crate::claims::{Measured, Shape as Agreement, Sheet, Spread};
use crate::drawing::{findings, table};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// Senders (X09).
const SENDERS: [u32; 3] = [32, 128, 500];
/// Packets of "more than 1 KB" on average (§3.3).
const PACKET: u16 = 1_024;
/// The flow beside them. Unit: Gbps.
const BESIDE: u64 = 40;
/// A queue of requests that never drops.
const NO_DROPS: u32 = 60_000;

/// Who sends what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Case {
    pub(super) senders: u32,
    pub(super) solicitation: bool,
    /// Packets of each sender, all at once.
    pub(super) packets: u64,
    /// Whether there is an incast at all.
    pub(super) is_incast: bool,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Point {
    /// Most bytes in the fabric at a time: of requests, and of data.
    pub(super) requests: f64,
    pub(super) data: f64,
    /// What the flow beside carries. Unit: bit/s.
    pub(super) beside: f64,
}

/// Senders spread over all pods but the first, the receiver and that of the flow beside in the first.
struct Roles {
    senders: Vec<u16>,
    receiver: u16,
    beside: (u16, u16),
}

fn roles(clique: &Clique, senders: u32, seed: u64) -> Roles {
    let each = clique.shape().tins_per_pod;
    let mut stream = Stream::new(seed, "reproductions/aquila/incast", senders.into());
    let receiver = stream.below(each.into()) as u16;
    let other = (receiver + 1 + stream.below(u64::from(each) - 1) as u16) % each;
    // Two hosts a TiN, as many in each pod; those of the first pod receive.
    let hosts = clique.hosts(senders + 40);
    let away = hosts.into_iter().filter(|place| place.tin >= each);
    let mut senders: Vec<u16> =
        away.map(|place| clique.host(place)).take(senders as usize + 1).collect();
    let last = senders.pop().expect("there is one more");
    Roles { senders, receiver: clique.address(receiver), beside: (last, clique.address(other)) }
}

/// Carries the incast, and a flow beside it to another TiN of the same pod.
pub(super) fn carry(
    clique: &Clique,
    (settings, ip): (&Settings, &Ip),
    case: Case,
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<Point, Failure> {
    let solicitation = case.solicitation;
    let ip = Ip { solicitation, drop_above: NO_DROPS, queue_limit: NO_DROPS, ..ip.clone() };
    let mut cells = clique.ip(settings, &ip, seed);
    let roles = roles(clique, case.senders, seed);
    let begin = us(2);
    let mut all = Vec::new();
    if case.is_incast {
        for &from in &roles.senders {
            let packet = Packet::new((from, roles.receiver), PACKET, BULK, begin);
            all.extend(std::iter::repeat_n(packet, case.packets as usize));
        }
    }
    // As long as the receiver's line has work.
    let line = Rate::from_gbps(100).send_time(Bytes::new(PACKET.into()));
    let busy = line * case.packets * u64::from(case.senders);
    let gap = Rate::from_gbps(BESIDE).send_time(Bytes::new(PACKET.into()));
    let length = busy.max(Span::from_us(10)).min(Span::from_us(40));
    let count = length.as_ps() / gap.as_ps();
    all.extend((0..count).map(|at| Packet::new(roles.beside, PACKET, BULK, begin + gap * at)));
    send_all(&mut cells, all);
    run_cells(&mut cells, Time::NEVER, pulse)?;
    cells.check_home().map_err(Failure::Model)?;
    let open_loop = cells.endpoints();
    let own = open_loop.packets().iter().filter(|packet| packet.from == roles.beside.0);
    let ends: Vec<Time> =
        own.filter_map(|packet| packet.latency().map(|latency| packet.at + latency)).collect();
    let last = ends.iter().copied().max().unwrap_or(begin + length);
    Ok(Point {
        requests: open_loop.under_way(CellKind::Rts).most as f64,
        data: open_loop.under_way(CellKind::Data).most as f64,
        beside: (ends.len() as u64 * u64::from(PACKET) * 8) as f64 / (last - begin).as_seconds(),
    })
}

/// What an incast that is dropped and marked puts into the fabric.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Dropped {
    dropped: u64,
    marked: u64,
    /// Bytes of data cells, and of those of packets that arrived.
    sent: u64,
    due: u64,
}

fn drops(clique: &Clique, seed: u64, pulse: &mut Pulse<'_>) -> Result<Dropped, Failure> {
    let ip = Ip { drop_above: 128, mark_above: 64, ..Ip::default() };
    let mut cells: Switches<OpenLoop> = clique.ip(&Settings::default(), &ip, seed);
    let roles = roles(clique, 128, seed);
    let mut all = Vec::new();
    for &from in &roles.senders {
        let packet = Packet::new((from, roles.receiver), PACKET, BULK, us(1));
        all.extend(std::iter::repeat_n(packet, 8));
    }
    send_all(&mut cells, all);
    run_cells(&mut cells, Time::NEVER, pulse)?;
    let open_loop = cells.endpoints();
    let counts = open_loop.counts();
    let arrived = open_loop
        .packets()
        .iter()
        .filter(|packet| matches!(packet.end, Some((_, End::Left { .. }))));
    Ok(Dropped {
        dropped: counts.lost[Loss::Dropped as usize],
        marked: counts.marked,
        sent: open_loop.under_way(CellKind::Data).all,
        due: arrived.count() as u64 * wire_bytes(PACKET.into(), 4).get(),
    })
}

/// Packets of a sender.
const fn packets(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => 8,
        Effort::Full => 100,
    }
}

/// Incasts.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/incast.claims.toml"));
    let clique = Clique::new(&Shape::FULL, Fibres::Grid);
    let mut cases = Vec::new();
    for senders in SENDERS {
        for (solicitation, is_incast) in [(true, true), (false, true), (true, false)] {
            cases.push(Case { senders, solicitation, packets: packets(effort), is_incast });
            // One packet of each: what is offered at once.
            cases.push(Case { senders, solicitation, packets: 1, is_incast });
        }
    }
    let jobs = with_seeds(&cases, SEEDS);
    let found = spread(&jobs, watch, |&(case, seed), pulse| {
        carry(&clique, (&Settings::default(), &Ip::default()), case, seed, pulse)
    })?;
    let of = |wanted: Case, what: fn(&Point) -> f64| -> Vec<f64> {
        let all = jobs.iter().zip(&found);
        all.filter(|((case, _), _)| *case == wanted).map(|(_, point)| what(point)).collect()
    };
    let case = |senders, solicitation, packets, is_incast| Case {
        senders,
        solicitation,
        packets,
        is_incast,
    };
    let over = |top: Vec<f64>, bottom: Vec<f64>| -> Vec<f64> {
        top.iter().zip(bottom).map(|(top, bottom)| top / bottom).collect()
    };
    for senders in SENDERS {
        let data = of(case(senders, false, 1, true), |point| point.data);
        let requests = of(case(senders, true, 1, true), |point| point.requests);
        sheet.measure(&format!("incast.fewer-{senders}"), Measured::mean(&over(data, requests)));
    }
    let many = packets(effort);
    let alone = || of(case(500, true, many, false), |point| point.beside);
    let with = over(of(case(500, true, many, true), |point| point.beside), alone());
    let without = over(of(case(500, false, many, true), |point| point.beside), alone());
    sheet.measure("incast.beside", Measured::smallest(&with));
    sheet.measure("incast.beside-unasked", Measured::mean(&without));
    let dropped =
        spread(&with_seeds(&[()], SEEDS), watch, |&((), seed), pulse| drops(&clique, seed, pulse))?;
    let wasted: Vec<f64> =
        dropped.iter().map(|found| found.sent as f64 - found.due as f64).collect();
    sheet.measure("incast.wasted", Measured::largest(&wasted));
    let some = dropped.iter().all(|found| found.dropped > 0 && found.marked > 0);
    let first = dropped[0];
    let words = format!("{} dropped, {} marked", first.dropped, first.marked);
    sheet.measure("incast.signals", Measured::shape(words, Agreement::of(some)));
    let rows = cases.iter().filter(|case| case.is_incast).map(|&case| row(case, &of));
    let columns = [
        ("senders", "Senders", Unit::Count),
        ("packets", "Packets of each", Unit::Count),
        ("solicitation", "Solicitation", Unit::Count),
        ("requests", "Most requests in the fabric", Unit::Bytes),
        ("data", "Most data in the fabric", Unit::Bytes),
        ("beside", "Flow beside, of 40 Gbps", Unit::BitsPerSecond),
    ];
    let blocks = vec![table("Means over seeds", &columns, rows.collect())];
    let text = "Hosts of all pods but one send packets of 1 KB to one host of that pod at the same instant, and one \
                more sends 40 Gbps to another TiN there. Without solicitation cells go at once. Requests wait in \
                queues without end here, but for the rows of drops and marks: dropped above 128 requests, marked \
                above 64.";
    Ok(findings("Many that send to one", text, blocks, sheet))
}

fn row(case: Case, of: &dyn Fn(Case, fn(&Point) -> f64) -> Vec<f64>) -> Vec<Value> {
    let mean = |what: fn(&Point) -> f64| json!(Spread::of(&of(case, what)).mean);
    vec![
        json!(case.senders),
        json!(case.packets),
        json!(if case.solicitation { "yes" } else { "no" }),
        mean(|point| point.requests),
        mean(|point| point.data),
        mean(|point| point.beside),
    ]
}
