//! What a cell takes alone (§3.1, §3.2; X07), and how often a request and its answer cross (§3.4; X08).

use aquila::config::{Ip, Rma};
use aquila::ip::open_loop::{Packet, round_trips};
use aquila::link::header::{CELL_MAX, CELL_MIN};
use aquila::rma::Kind;
use aquila::rma::open_loop::{Issue, latencies};
use aquila::switch::cell::{BLOCK, Cell};
use aquila::switch::settings::Settings;
use aquila::switch::{Endpoints, Room, Switches, Wishes};
use aquila::topology::{Fibres, LOCAL_LENGTH, Length, Shape};
use kernel::{Span, Time};
use report::Unit;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::clique::{BULK, Clique, quantile, run as run_cells, send_all, us};
use super::memory::ends;
use crate::claims::{Measured, Sheet};
use crate::drawing::{findings, table};
use crate::spread::spread;
use crate::{Effort, Failure, Findings, Watch};

/// All fibres of this length (§3.2: up to 100 m).
const METRES: u32 = 100;
/// Bytes of a packet that fills one cell.
const ONE_CELL: u16 = 148;
/// Bytes of memory that fill one.
const ONE_CELL_OF_MEMORY: u32 = 128;
/// The class of requests: they take shortest ways.
const CLASS: u8 = 5;

/// Endpoints of which one has one cell.
#[derive(Clone, Debug, Default)]
struct Lone {
    cell: Option<Cell>,
    come: Option<(Cell, Time)>,
}

impl Endpoints for Lone {
    fn deliver(&mut self, _: u16, _: u8, cell: &Cell, at: Time, _: &mut Wishes) {
        self.come = Some((*cell, at));
    }

    fn inject(&mut self, _: u16, _: u8, _: Room<'_>, _: &mut Wishes) -> Option<Cell> {
        self.cell.take()
    }

    fn wake(&mut self, _: u16, _: &mut Wishes) {}

    fn run(switches: &mut Switches<Self>, end: Time) {
        switches.advance(end);
    }
}

/// How long a cell takes alone, and its links.
fn alone(clique: &Clique, (from, to): (u16, u16), bytes: u8) -> (Span, u8) {
    let settings = Settings::default();
    let hops = settings.switch.hops;
    let mut cells = clique.carry(&settings, Lone::default(), 1);
    let (source, destination) = (clique.address(from), clique.address(to));
    let cell = Cell::new(source, destination, CLASS, 3, bytes / BLOCK as u8, hops);
    cells.act(from, us(1), |lone, wishes| {
        lone.cell = Some(cell);
        wishes.inject(0);
    });
    cells.run(Time::NEVER);
    let (cell, at) = cells.endpoints().come.expect("a cell alone arrives");
    (at - us(1), hops - cell.hops() - 1)
}

/// What the parts of a way take.
#[derive(Serialize, Deserialize)]
struct Parts {
    hop: Span,
    correction: Span,
    core: Span,
    wire: Span,
}

/// The parts from whole ways: over one link of the pod, over one fibre, over a link and a fibre.
fn parts(clique: &Clique) -> Parts {
    let far = |to: u16| clique.shape().split(to).0 != 0;
    let all: Vec<_> = (1..clique.shape().tins())
        .map(|to| {
            let (took, links) = alone(clique, (0, to), CELL_MIN);
            (far(to), links, took)
        })
        .collect();
    let of = |is_far, count| {
        let found = all.iter().find(|&&(far, links, _)| (far, links) == (is_far, count));
        found.expect("there are ways of each kind").2
    };
    let (near, fibre, two) = (of(false, 1), of(true, 1), of(true, 2));
    let copper = LOCAL_LENGTH.delay();
    let glass = Length::from_cm(METRES * 100).delay();
    let (largest, _) = alone(clique, (0, 1), CELL_MAX);
    let longer = u64::from(CELL_MAX - CELL_MIN);
    let wire = (largest - near) * u64::from(CELL_MAX) / longer;
    let hop = two - fibre - copper;
    let smallest = (largest - near) * u64::from(CELL_MIN) / longer;
    let core = near - hop - copper - smallest;
    let correction = fibre - near - (glass - copper);
    Parts { hop, correction, core, wire }
}

/// Reads of remote memory that one cell answers, one after the other, to all TiNs of other pods: cells that cross for
/// one, and the longest that one takes. Unit: s.
fn reads(clique: &Clique) -> (f64, f64) {
    let mut cells = ends(clique, (&Settings::default(), &Rma::default()), 1);
    let far = clique.shape().tins_per_pod..clique.shape().tins();
    for to in far {
        let at = us(20 * u64::from(to));
        cells.run(at);
        cells.act(0, at, |both, wishes| {
            let access = both.memory.access((to, 0), Kind::Read, ONE_CELL_OF_MEMORY);
            both.memory.ask(Issue { from: (0, 0), access, at, end: None }, wishes);
        });
    }
    cells.run(Time::NEVER);
    let took = latencies(cells.endpoints().memory.issues(), Time::ZERO, Time::NEVER);
    (cells.counts().delivered as f64 / took.len() as f64, quantile(&took, 1.0))
}

/// Timing constants and crossings.
pub(super) fn run(_: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/timing.claims.toml"));
    let found = spread(&[()], watch, |(), pulse| {
        let clique = Clique::new(&Shape::MINI, Fibres::Metres(METRES));
        let parts = parts(&clique);
        // To all TiNs of other pods, one after the other.
        let mut cells = clique.ip(&Settings::default(), &Ip::default(), 1);
        cells.endpoints_mut().answer_with(ONE_CELL);
        let first = clique.shape().tins_per_pod;
        let packet = |to: u16| {
            let ends = (clique.address(0), clique.address(to));
            Packet::new(ends, ONE_CELL, BULK, us(20 * u64::from(to)))
        };
        send_all(&mut cells, (first..clique.shape().tins()).map(packet).collect());
        run_cells(&mut cells, Time::NEVER, pulse)?;
        let trips = round_trips(cells.endpoints().packets(), Time::ZERO, Time::NEVER);
        let crossings = cells.counts().delivered as f64 / trips.len() as f64;
        let (reads, longest) = reads(&clique);
        Ok((parts, [crossings, reads], [quantile(&trips, 1.0), longest]))
    })?;
    let (parts, crossings, [trip, read]) = &found[0];
    let rows = [
        ("core", parts.core.as_seconds()),
        ("hop", parts.hop.as_seconds()),
        ("correction", parts.correction.as_seconds()),
        ("wire", parts.wire.as_seconds()),
    ];
    for (word, seconds) in rows {
        sheet.measure(&format!("timing.{word}"), Measured::one(seconds));
    }
    sheet.measure("timing.crossings", Measured::one(crossings[0]));
    sheet.measure("timing.crossings-read", Measured::one(crossings[1]));
    let cells = rows.map(|(word, seconds)| vec![json!(word), json!(seconds)]);
    let mut cells = cells.to_vec();
    cells.push(vec![json!("request and answer of one cell each, over IP"), json!(trip)]);
    cells
        .push(vec![json!("read of remote memory of one cell, with its hosts' buses"), json!(read)]);
    let columns = [("what", "", Unit::Count), ("time", "Time", Unit::Seconds)];
    let blocks = vec![table("What the parts of a way take", &columns, cells)];
    let text = "One cell alone on ways of one link of a pod, of one fibre of 100 m, and of both: their differences \
                are what the parts take.";
    Ok(findings("A cell alone", text, blocks, sheet))
}
