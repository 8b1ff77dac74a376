//! One part left out at a time (§1: credits, shallow buffers and solicitation have to stand together; X20).

use aquila::config::{Ip, Order};
use aquila::ip::open_loop::{OpenLoop, Packet};
use aquila::link::classes::Mode;
use aquila::raw::Pattern;
use aquila::switch::Switches;
use aquila::switch::settings::Settings;
use aquila::topology::{Fibres, Shape};
use aquila::turns::TurnTable;
use kernel::{Bytes, Time};
use report::Unit;
use report::page::Block;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::SEEDS;
use super::clique::{BULK, Clique, URGENT};
use super::incast;
use super::lookups::{self, testbed};
use super::pieces::{self, Pieces};
use super::throughput::{Offered, TRAIN, carried};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{findings, table};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// What is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Without {
    Nothing,
    Credits,
    Adaptive,
    Solicitation,
    Sampling,
    Detours,
    Classes,
    Order,
    Shallow,
}

const ALL: [(Without, &str); 9] = [
    (Without::Nothing, "nothing"),
    (Without::Credits, "credits"),
    (Without::Adaptive, "longer ways"),
    (Without::Solicitation, "solicitation"),
    (Without::Sampling, "sampling: all 32 ports compared"),
    (Without::Detours, "detours inside a pod"),
    (Without::Classes, "classes of their own for what is urgent"),
    (Without::Order, "order"),
    (Without::Shallow, "shallow buffers: six times as deep"),
];

/// Lookups of a host: 70 % (§5.1), and 95 % of its line, where ports queue; and, of isolation, urgent ones beside bulk messages. Unit: Mbps.
const LOAD: u64 = 35_000;
const NEAR: u64 = 47_500;
const URGENT_LOAD: u64 = 1_000;
/// What is offered to a pod's own links and to those of the next pod. Unit: Gbps a TiN.
const WORST: u64 = 100;

/// A number of a point.
type Get = fn(&Point) -> f64;

/// What a Clique does without something.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Point {
    /// Round trips of lookups: 99 %, in s.
    p99: f64,
    /// The same at 95 %.
    near: f64,
    /// What is carried of what lookups offer, and packets of theirs that are lost.
    achieved: f64,
    lost: f64,
    /// The same of urgent lookups beside bulk messages.
    urgent: f64,
    /// Each pod to the next, and each TiN to the next of its pod. Unit: bit/s a TiN.
    pods: f64,
    tins: f64,
    /// An incast of 500: what a flow of 40 Gbps beside it gets in bit/s, and most data in the fabric in bytes.
    beside: f64,
    data: f64,
}

fn settings(without: Without) -> (Settings, Ip) {
    let (mut settings, mut ip) = (Settings::default(), Ip::default());
    match without {
        Without::Adaptive => {
            for class in &mut settings.classes {
                if class.mode == Mode::FullyAdaptive {
                    class.mode = Mode::MinimalAdaptive;
                }
            }
        }
        Without::Credits => settings.link.credits = false,
        Without::Solicitation => ip.solicitation = false,
        Without::Sampling => settings.switch.compares_all = true,
        Without::Order => ip.order = Order::None,
        Without::Shallow => {
            for buffer in [&mut settings.link.local_buffer, &mut settings.link.global_buffer] {
                *buffer = Bytes::new(buffer.get() * 6);
            }
        }
        Without::Nothing | Without::Detours | Without::Classes => {}
    }
    (settings, ip)
}

fn measure(
    cliques: &[Clique; 2],
    without: Without,
    effort: Effort,
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<Point, Failure> {
    let clique = &cliques[usize::from(without == Without::Detours)];
    let hosts = testbed(clique);
    let (settings, ip) = settings(without);
    let micros = if effort == Effort::Quick { 15 } else { 60 };
    let case = lookups::Case {
        settings: settings.clone(),
        ip: ip.clone(),
        load: LOAD,
        background: 0,
        classes: [BULK; 2],
        micros,
    };
    let point = lookups::carry(clique, &hosts, &case, seed, pulse)?;
    let near = lookups::Case { load: NEAR, ..case.clone() };
    let near = lookups::carry(clique, &hosts, &near, seed, pulse)?;
    let class = if without == Without::Classes { BULK } else { URGENT };
    let mixed =
        lookups::Case { load: URGENT_LOAD, background: LOAD, classes: [class, BULK], ..case };
    let urgent = lookups::carry(clique, &hosts, &mixed, seed, pulse)?;
    let cells = if effort == Effort::Quick { 12 } else { 48 };
    let mut raw = |pattern| {
        let offered = Offered { pattern, gbps: WORST, cells: TRAIN };
        carried(clique, &settings, offered, cells, seed, pulse)
    };
    let (pods, tins) = (raw(Pattern::NextPod)?, raw(Pattern::NextTin)?);
    let solicitation = ip.solicitation;
    let many = incast::Case { senders: 500, solicitation, packets: 8, is_incast: true };
    let incast = incast::carry(clique, (&settings, &ip), many, seed, pulse)?;
    Ok(Point {
        p99: point.p99,
        near: near.p99,
        achieved: point.achieved,
        lost: point.lost as f64,
        urgent: urgent.p99,
        pods,
        tins,
        beside: incast.beside,
        data: incast.data,
    })
}

/// Packets of one source that leave after one that came later, as a share: without order kept.
fn overtaken(
    clique: &Clique,
    order: Order,
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<f64, Failure> {
    let ip = Ip { order, ..Ip::default() };
    let mut cells: Switches<OpenLoop> = clique.ip(&Settings::default(), &ip, seed);
    let (from, to) = super::bursts::pair(clique, seed);
    let ends = (clique.address(from), clique.address(to));
    let packet = Packet::new(ends, super::clique::VALUE, BULK, super::clique::us(1));
    super::clique::send_all(&mut cells, vec![packet; 200]);
    super::clique::run(&mut cells, Time::NEVER, pulse)?;
    let left: Vec<Time> = cells
        .endpoints()
        .packets()
        .iter()
        .filter_map(|packet| packet.latency().map(|latency| packet.at + latency))
        .collect();
    let late = left.windows(2).filter(|pair| pair[1] < pair[0]).count();
    Ok(late as f64 / left.len() as f64)
}

/// Ways of packets, beside cells.
const PIECES: [(Pieces, &str); 3] = [
    (Pieces::Cells, "cells"),
    (Pieces::Packets, "packets in one piece, buffers of as many of them"),
    (Pieces::ShallowPackets, "packets in one piece, buffers of four"),
];

/// Packets in one piece in place of cells.
fn in_pieces(
    sheet: &mut Sheet,
    clique: &Clique,
    effort: Effort,
    watch: &mut Watch<'_>,
) -> Result<Block, Failure> {
    let micros = if effort == Effort::Quick { 24 } else { 80 };
    let jobs = with_seeds(&PIECES, SEEDS);
    let found = spread(&jobs, watch, |&((pieces, _), seed), pulse| {
        pieces::carry(clique, pieces, micros, seed, pulse)
    })?;
    let of = |wanted: Pieces, what: fn(&pieces::Point) -> f64| -> Vec<f64> {
        let all = jobs.iter().zip(&found).filter(|(((pieces, _), _), _)| *pieces == wanted);
        all.map(|(_, point)| what(point)).collect()
    };
    let small = |pieces| of(pieces, |point| point.small);
    let over: Vec<f64> = small(Pieces::Packets)
        .iter()
        .zip(small(Pieces::Cells))
        .map(|(packets, cells)| packets / cells)
        .collect();
    sheet.measure("ablation.cells", Measured::mean(&over));
    let row = |&(pieces, name): &(Pieces, &str)| -> Vec<Value> {
        let mean = |what: fn(&pieces::Point) -> f64| json!(Spread::of(&of(pieces, what)).mean);
        vec![
            json!(name),
            mean(|point| point.small),
            mean(|point| point.large),
            mean(|point| point.carried),
        ]
    };
    let columns = [
        ("pieces", "Packets cross as", Unit::Count),
        ("small", "Urgent messages of 416 B: one way, 99 %", Unit::Seconds),
        ("large", "Packets of 4160 B: one way, 99 %", Unit::Seconds),
        ("carried", "carried of them", Unit::Share),
    ];
    Ok(table("Without cells, means over seeds", &columns, PIECES.iter().map(row).collect()))
}

/// The parts.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/ablation.claims.toml"));
    let none = TurnTable::from_bits(0);
    let cliques = [
        Clique::new(&Shape::FULL, Fibres::Grid),
        Clique::with_turns(&Shape::FULL, Fibres::Grid, &none),
    ];
    let jobs = with_seeds(&ALL, effort.seeds_of_longest());
    let found = spread(&jobs, watch, |&((without, _), seed), pulse| {
        measure(&cliques, without, effort, seed, pulse)
    })?;
    let of = |wanted: Without, what: Get| -> Vec<f64> {
        let all = jobs.iter().zip(&found);
        all.filter(|(((without, _), _), _)| *without == wanted)
            .map(|(_, point)| what(point))
            .collect()
    };
    let over = |without: Without, what: Get| -> Vec<f64> {
        of(without, what)
            .iter()
            .zip(of(Without::Nothing, what))
            .map(|(without, with)| without / with)
            .collect()
    };
    let rows: [(&str, Without, Get); 9] = [
        ("credits", Without::Credits, |point| point.pods),
        ("flocking", Without::Sampling, |point| point.pods),
        ("adaptive", Without::Adaptive, |point| point.pods),
        ("solicitation", Without::Solicitation, |point| point.beside),
        ("data", Without::Solicitation, |point| point.data),
        ("sampling", Without::Sampling, |point| point.p99),
        ("sampling-near", Without::Sampling, |point| point.near),
        ("detours", Without::Detours, |point| point.tins),
        ("classes", Without::Classes, |point| point.urgent),
    ];
    for (word, without, what) in rows {
        sheet.measure(&format!("ablation.{word}"), Measured::mean(&over(without, what)));
    }
    sheet
        .measure("ablation.lossless", Measured::largest(&of(Without::Nothing, |point| point.lost)));
    let orders = [Order::Source, Order::None];
    let jobs_of_order = with_seeds(&orders, SEEDS);
    let late = spread(&jobs_of_order, watch, |&(order, seed), pulse| {
        overtaken(&cliques[0], order, seed, pulse)
    })?;
    let (kept, lost) = late.split_at(SEEDS as usize);
    sheet.measure("ablation.kept", Measured::largest(kept));
    sheet.measure("ablation.order", Measured::mean(lost));
    let in_pieces = in_pieces(&mut sheet, &cliques[0], effort, watch)?;
    let blocks = vec![numbers(&of), in_pieces];
    let text = "The full Clique without one of its parts. Without credits cells are sent whatever room there \
                is, and dropped where there is none. In place of cells packets cross the switches in one piece: \
                beside 50 Gbps a TiN of packets of 4160 B go 2 Gbps of urgent messages of 416 B, to random others; \
                nothing asks for either first, as a smallest cell is then as long as an urgent message.";
    Ok(findings("What each part is for", text, blocks, sheet))
}

/// Every figure without each part; `of` gives those over seeds.
fn numbers(of: &dyn Fn(Without, Get) -> Vec<f64>) -> Block {
    let row = |&(without, name): &(Without, &str)| -> Vec<Value> {
        let mean = |what: Get| json!(Spread::of(&of(without, what)).mean);
        vec![
            json!(name),
            mean(|point| point.p99),
            mean(|point| point.near),
            mean(|point| point.achieved),
            mean(|point| point.lost),
            mean(|point| point.urgent),
            mean(|point| point.pods),
            mean(|point| point.tins),
            mean(|point| point.beside),
            mean(|point| point.data),
        ]
    };
    let columns = [
        ("without", "Without", Unit::Count),
        ("p99", "Lookups at 70 %: round trip, 99 %", Unit::Seconds),
        ("near", "the same at 95 %", Unit::Seconds),
        ("achieved", "carried of those at 70 %", Unit::Share),
        ("lost", "packets of theirs lost", Unit::Count),
        ("urgent", "Urgent ones beside bulk, 99 %", Unit::Seconds),
        ("pods", "Each pod to the next, of 100 Gbps a TiN", Unit::BitsPerSecond),
        ("tins", "Each TiN to the next, of 100 Gbps", Unit::BitsPerSecond),
        ("beside", "Beside an incast, of 40 Gbps", Unit::BitsPerSecond),
        ("data", "most data in the fabric", Unit::Bytes),
    ];
    table("Means over seeds", &columns, ALL.iter().map(row).collect())
}
