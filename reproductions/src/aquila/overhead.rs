//! What cells and solicitation cost, measured on the wire (§6; X16, X17).

use aquila::config::Ip;
use aquila::ip::open_loop::{Packet, round_trips};
use aquila::link::classes::CellKind;
use aquila::switch::settings::Settings;
use aquila::topology::{Fibres, Shape};
use kernel::{Bytes, Time};
use report::Unit;
use report::page::{Axis, Block, PlotSeries, Scale, SeriesStyle};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::clique::{ACK, BULK, Clique, quantile, run as run_cells, send_all, us};
use crate::claims::{Measured, Shape as Agreement, Sheet};
use crate::drawing::{findings, plot, table};
use crate::spread::{Pulse, spread};
use crate::{Effort, Failure, Findings, Watch};

/// Sizes of packets (§3.2: MTUs that are in use). Unit: bytes.
const SIZES: [u16; 6] = [64, 256, 1_024, 1_500, 4_160, 9_000];
/// Other fibres, all of this length (§3.2: up to 100 m). Unit: m.
const METRES: u32 = 100;
/// Packets of a run, each alone.
const MANY: u64 = 60;

/// A run: bytes of packets, of data cells' own header, and whether they are asked for.
type Case = (u16, u64, bool);

/// What a packet alone costs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Cost {
    /// Bytes of cells for a packet: with data, and that ask and answer.
    data: f64,
    asking: f64,
    /// Median round trip of a packet and its acknowledgment. Unit: s.
    trip: f64,
    /// Ordered sets for credits, of 8 bytes, a packet, on all links together.
    sets: f64,
}

fn cost(
    clique: &Clique,
    (bytes, header, solicitation): Case,
    pulse: &mut Pulse<'_>,
) -> Result<Cost, Failure> {
    let ip = Ip {
        mtu: Bytes::new(9_000),
        data_header: Bytes::new(header),
        solicitation,
        ..Ip::default()
    };
    let run = |answer: Option<u16>, pulse: &mut Pulse<'_>| {
        let mut cells = clique.ip(&Settings::default(), &ip, 1);
        if let Some(bytes) = answer {
            cells.endpoints_mut().answer_with(bytes);
        }
        let tins = u64::from(clique.shape().tins());
        let first = u64::from(clique.shape().tins_per_pod);
        let packet = |at: u64| {
            let to = first + at * 7 % (tins - first);
            let ends = (clique.address(0), clique.address(to as u16));
            Packet::new(ends, bytes, BULK, us(20 * (at + 1)))
        };
        send_all(&mut cells, (0..MANY).map(packet).collect());
        run_cells(&mut cells, Time::NEVER, pulse)?;
        Ok::<_, Failure>(cells)
    };
    let cells = run(None, pulse)?;
    let bytes_of = |kind| cells.endpoints().under_way(kind).all as f64 / MANY as f64;
    let answered = run(Some(ACK), pulse)?;
    let trips = round_trips(answered.endpoints().packets(), Time::ZERO, Time::NEVER);
    Ok(Cost {
        data: bytes_of(CellKind::Data),
        asking: bytes_of(CellKind::Rts) + bytes_of(CellKind::Cts),
        trip: quantile(&trips, 0.5),
        sets: cells.counts().updates as f64 / MANY as f64,
    })
}

/// What solicitation adds to the round trip of a packet of one cell, in such round trips: value and acknowledgment are
/// each asked for, which is two for one of packets.
fn added(asked: &Cost, unasked: &Cost) -> f64 {
    (asked.trip - unasked.trip) / (2.0 * unasked.trip)
}

/// The same over long fibres.
fn far(sheet: &mut Sheet, watch: &mut Watch<'_>) -> Result<(), Failure> {
    let clique = Clique::new(&Shape::MINI, Fibres::Metres(METRES));
    let cases: [Case; 2] = [(SIZES[0], 4, true), (SIZES[0], 4, false)];
    let found = spread(&cases, watch, |&case, pulse| cost(&clique, case, pulse))?;
    sheet.measure("overhead.round-trip-100m", Measured::one(added(&found[0], &found[1])));
    Ok(())
}

/// What of the bytes on the wire is not the packet's own.
fn overhead(wire: f64, bytes: u16) -> f64 {
    1.0 - f64::from(bytes) / wire
}

/// Overheads by size of packet.
pub(super) fn run(_: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/overhead.claims.toml"));
    let clique = Clique::new(&Shape::MINI, Fibres::Grid);
    let cases: Vec<Case> = SIZES
        .iter()
        .flat_map(|&bytes| [(bytes, 0, true), (bytes, 4, true), (bytes, 4, false)])
        .collect();
    let found = spread(&cases, watch, |&case, pulse| cost(&clique, case, pulse))?;
    let of = |wanted: Case| {
        let place = cases.iter().position(|&case| case == wanted).expect("it was run");
        found[place]
    };
    let plain = overhead(of((9_000, 0, true)).data, 9_000);
    sheet.measure("overhead.header", Measured::one(plain));
    sheet.measure("overhead.asking", Measured::one(of((1_024, 4, true)).asking));
    let (asked, unasked) = (of((SIZES[0], 4, true)), of((SIZES[0], 4, false)));
    sheet.measure("overhead.round-trip", Measured::one(added(&asked, &unasked)));
    far(&mut sheet, watch)?;
    let extra = |bytes: u16| of((bytes, 4, true)).trip - of((bytes, 4, false)).trip;
    let share = |bytes: u16| extra(bytes) / of((bytes, 4, true)).trip;
    let (small, large) = (share(64), share(9_000));
    let words =
        format!("{:.0} % of a round trip at 64 B, {:.0} % at 9000 B", small * 100.0, large * 100.0);
    sheet.measure("overhead.large", Measured::shape(words, Agreement::of(large < small * 0.9)));
    let line = |name: &str, is_asked: bool| {
        let point = |&bytes: &u16| (f64::from(bytes), of((bytes, 4, is_asked)).trip);
        PlotSeries::new(name, SeriesStyle::Line, SIZES.iter().map(point).collect())
    };
    let axis = |label: &str, unit, scale| Axis { label: label.into(), unit, scale };
    let (x, y) = (
        axis("packet", Unit::Bytes, Scale::Log),
        axis("round trip in the fabric", Unit::Seconds, Scale::Linear),
    );
    let series = vec![line("asked for", true), line("not asked for", false)];
    let note = "Idle mini Clique; each packet is acknowledged by 64 B.";
    let blocks =
        vec![Block::Plots(vec![plot("What solicitation costs", note, x, y, series)]), numbers(&of)];
    let text = "Bytes of cells that packets alone put on the wire, and how long they take with and without \
                solicitation. The first byte of a packet waits for no other here, and its request goes before its \
                last byte is in.";
    Ok(findings("What cells and solicitation cost", text, blocks, sheet))
}

/// Every figure by size of packet; `of` gives those of a case.
fn numbers(of: &dyn Fn(Case) -> Cost) -> Block {
    let row = |&bytes: &u16| -> Vec<Value> {
        let (plain, ours, unasked) =
            (of((bytes, 0, true)), of((bytes, 4, true)), of((bytes, 4, false)));
        let all = ours.data + ours.asking;
        vec![
            json!(bytes),
            json!(plain.data),
            json!(ours.data),
            json!(ours.asking),
            json!(overhead(plain.data, bytes)),
            json!(overhead(all, bytes)),
            json!(ours.sets),
            json!(ours.trip),
            json!(unasked.trip),
        ]
    };
    let columns = [
        ("packet", "Packet", Unit::Bytes),
        ("plain", "Data cells, header alone", Unit::Bytes),
        ("ours", "with 4 B of their own", Unit::Bytes),
        ("asking", "RTS and CTS", Unit::Bytes),
        ("overhead", "Overhead of headers", Unit::Share),
        ("all", "of everything", Unit::Share),
        ("sets", "Ordered sets for credits", Unit::Count),
        ("trip", "Round trip", Unit::Seconds),
        ("unasked", "without solicitation", Unit::Seconds),
    ];
    table("A packet alone", &columns, SIZES.iter().map(row).collect())
}
