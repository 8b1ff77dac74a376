//! What a Clique is built of, counted on the built one: bundles, what fails together, classes of ports (§4.2, App. A; X11,
//! X14, X28).

use std::collections::BTreeMap;

use aquila::tables::condition::State;
use aquila::tables::{Condition, ROUTING_VCS};
use aquila::topology::packaging::{Packaging, Part};
use aquila::topology::{Fibres, PortKind, Shape};
use report::Unit;
use serde_json::json;

use super::clique::Clique;
use crate::claims::{Measured, Sheet};
use crate::drawing::{findings, table};
use crate::spread::spread_anew;
use crate::{Effort, Failure, Findings, Watch};

/// Hosts of a TiN (§2).
const HOSTS_PER_TIN: u16 = 2;
/// Every so many of the parts that are alike are failed.
const STEP: usize = 12;

/// Where an entry of a port leads: sets of ports, without those of the TiN that the port leads to.
fn ways(clique: &Clique, tin: u16, port: u8, rvc: u8, without: u64) -> Vec<(u64, u64)> {
    let block = clique.tables.block(tin, port, rvc);
    let all = 0..aquila::tables::components(clique.shape());
    let row = |component| {
        let row = clique.tables.by_index(clique.tables.entry(block, component));
        (row.minimal_ports() & !without, row.other_ports() & !without)
    };
    all.map(row).collect()
}

/// Ports of a TiN that lead where a port does.
fn beside(clique: &Clique, tin: u16, port: u8) -> u64 {
    let far = |port: u8| clique.topology.far(tin, port).map(|far| far.tin);
    let to = far(port);
    let same = |&other: &u8| to.is_some() && far(other) == to;
    (0..clique.shape().external_ports()).filter(same).fold(0, |mask, port| mask | 1 << port)
}

/// How many kinds of input ports a TiN has whose entries all agree, but for what leads back.
fn classes(clique: &Clique, tin: u16) -> usize {
    let shape = clique.shape();
    let agree = |one: u8, other: u8| {
        let without = beside(clique, tin, one) | beside(clique, tin, other);
        (0..ROUTING_VCS).all(|rvc| {
            ways(clique, tin, one, rvc, without) == ways(clique, tin, other, rvc, without)
        })
    };
    let is_wired = |&port: &u8| {
        shape.kind(port) == PortKind::Terminal || clique.topology.far(tin, port).is_some()
    };
    let mut firsts: Vec<u8> = Vec::new();
    for port in (0..shape.ports()).filter(is_wired) {
        if !firsts.iter().any(|&first| agree(first, port)) {
            firsts.push(port);
        }
    }
    firsts.len()
}

/// Servers that are gone or cut off when a part fails: those of TiNs that are dead, or that no way leads to from the
/// first that lives.
fn lost(clique: &Clique, packaging: &Packaging, part: Part) -> u32 {
    let (topology, shape) = (&clique.topology, clique.shape());
    let mut condition = Condition::healthy(topology);
    packaging.fail(&mut condition, part);
    let lives = |tin: u16| condition.tin(tin) != State::Dead;
    let mut seen = vec![false; usize::from(shape.tins())];
    let mut stack: Vec<u16> = (0..shape.tins()).find(|&tin| lives(tin)).into_iter().collect();
    stack.iter().for_each(|&tin| seen[usize::from(tin)] = true);
    while let Some(tin) = stack.pop() {
        for port in 0..shape.external_ports() {
            let ends = (topology.link(tin, port), topology.far(tin, port));
            let (Some(link), Some(far)) = ends else { continue };
            let goes = condition.link(link) != State::Dead && lives(far.tin);
            if goes && !std::mem::replace(&mut seen[usize::from(far.tin)], true) {
                stack.push(far.tin);
            }
        }
    }
    let reached = seen.into_iter().filter(|&is_seen| is_seen).count();
    (usize::from(shape.tins()) - reached) as u32 * u32::from(HOSTS_PER_TIN)
}

/// The kind of a part.
fn kind(part: Part) -> &'static str {
    match part {
        Part::Link(_) => "link",
        Part::Module(_) => "module",
        Part::Cable(_) => "cable",
        Part::Bundle(_) => "bundle",
        Part::Tin(_) => "tin",
        Part::Card(_) => "card",
        Part::Chassis(_) => "chassis",
        Part::Rack(_) => "rack",
    }
}

/// The most servers that a part of each kind takes with it.
fn failures(clique: &Clique, packaging: &Packaging) -> BTreeMap<&'static str, u32> {
    let mut most = BTreeMap::new();
    let links = clique.topology.links().len() as u32;
    let mut parts = BTreeMap::<&str, Vec<Part>>::new();
    for part in packaging.parts(links) {
        parts.entry(kind(part)).or_default().push(part);
    }
    for (kind, parts) in parts {
        // Links are many and alike.
        let step = if kind == "link" { 40 * STEP } else { STEP };
        let all = parts.into_iter().step_by(step).map(|part| lost(clique, packaging, part));
        most.insert(kind, all.max().unwrap_or(0));
    }
    most
}

/// Counts and failure domains.
pub(super) fn run(_: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/built.claims.toml"));
    let clique = Clique::new(&Shape::FULL, Fibres::Grid);
    let packaging = Packaging::new(&clique.topology);
    let mut most = spread_anew(&[()], watch, |(), _| Ok(failures(&clique, &packaging)))?;
    let most = most.remove(0);
    for kind in ["tin", "card", "chassis"] {
        sheet.measure(&format!("built.{kind}"), Measured::one(most[kind].into()));
    }
    let fibres = ["link", "module", "cable", "bundle"].map(|kind| most[kind]);
    let cut_off = fibres.into_iter().max().unwrap_or(0);
    sheet.measure("built.fibres", Measured::one(cut_off.into()));
    let parts =
        |wanted: &str| packaging.parts(0).filter(|&part| kind(part) == wanted).collect::<Vec<_>>();
    let links = |parts: &[Part]| parts.iter().map(|&part| packaging.links(part).len()).max();
    let (bundles, cables) = (parts("bundle"), parts("cable"));
    let global = clique.topology.links().iter().filter(|link| link.is_global);
    let pods = |tin: u16| clique.shape().split(tin).0;
    let pairs: std::collections::BTreeSet<_> =
        global.map(|link| (pods(link.low.tin), pods(link.high.tin))).collect();
    for (word, count) in [
        ("bundles", bundles.len()),
        ("cables", cables.len() / bundles.len()),
        ("links", links(&cables).unwrap_or(0)),
        ("pairs", pairs.len()),
        ("racks", parts("rack").len()),
    ] {
        sheet.measure(&format!("built.{word}"), Measured::one(count as f64));
    }
    // Pods are alike.
    let kinds = (0..clique.shape().tins_per_pod).map(|tin| classes(&clique, tin));
    let kinds = kinds.max().unwrap_or(0);
    sheet.measure("built.classes", Measured::one(kinds as f64));
    let text = "Counted on the full Clique as it is wired and as its tables are computed: every twelfth part of a \
                kind fails, and what is then dead or cut off is counted.";
    Ok(findings("What a Clique is built of", text, vec![lost_table(&most)], sheet))
}

fn lost_table(most: &BTreeMap<&'static str, u32>) -> report::page::Block {
    let rows = most.iter().map(|(kind, servers)| vec![json!(kind), json!(servers)]).collect();
    let columns = [
        ("part", "Part that fails", Unit::Count),
        ("servers", "Servers lost, at the most", Unit::Count),
    ];
    table("What fails takes with it", &columns, rows)
}
