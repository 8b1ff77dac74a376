//! What follows from definitions alone: paths, bytes, shares and tables.

use kernel::{Rate, Span};
use r2c2::broadcast::Fib;
use r2c2::rates::{Course, Courses, Terms, Waterfill, Whose, capacities, unrestricted};
use r2c2::routing::{HOPS_MAX, Network, Protocol, Scratch, Shares, of_paths};
use r2c2::wire::{NODES_MAX, SHORT_BYTES, batch};
use rack::NodeId;
use rack::topology::{Builder, LeafSpine, Link, Mesh, PortId, Shape, Topology, Torus, Vertex};
use report::Unit;
use report::page::{Axis, Block, PlotSeries, SeriesStyle};

use crate::claims::{Measured, Shape as Agreement, Sheet};
use crate::drawing::{findings, plot};
use crate::{Effort, Failure, Findings, Watch};

/// §3.2: sizes of flows in Fig. 9, in binary units as the paper's own figures are.
const SMALL: f64 = 10.0 * 1024.0;
const LARGE: f64 = 10.0 * 1024.0 * 1024.0;
/// §5.1: long flows of a data centre, and the share of bytes in small ones.
const LONG: f64 = 35.0 * 1024.0 * 1024.0;
const SMALL_SHARE: f64 = 0.05;

fn network(shape: &Shape) -> Network {
    Network::new(shape).expect("the paper's networks are sound")
}

fn torus(dimensions: &[u32]) -> Network {
    network(&Shape::Torus(Torus { dimensions: dimensions.to_vec(), ..Torus::default() }))
}

fn mesh(dimensions: &[u32]) -> Network {
    network(&Shape::Mesh(Mesh { dimensions: dimensions.to_vec(), ..Mesh::default() }))
}

/// All nodes of a network.
fn nodes(network: &Network) -> impl Iterator<Item = NodeId> + Clone + use<> {
    (0..network.nodes()).map(NodeId::new)
}

/// Shortest paths (§2.2.1).
pub(super) fn paths(_: Effort, _: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../r2c2/paths.claims.toml"));
    let network = torus(&[6, 6, 6]);
    // A torus looks the same from every node.
    let first = NodeId::new(0);
    let counts: Vec<f64> = nodes(&network).map(|to| network.path_count(first, to)).collect();
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    let farthest = counts.iter().copied().fold(0.0, f64::max);
    sheet.measure("paths.average", Measured::one(mean));
    sheet.measure("paths.farthest", Measured::one(farthest / 8.0));
    let text = "Counted by a traversal of the graph in breadth.";
    Ok(findings("Shortest paths", text, Vec::new(), sheet))
}

/// Copies of a broadcast of `source`: one for each link of its tree.
fn copies(network: &Network, trees: &Fib, source: NodeId, tree: u8) -> usize {
    let vertices = (0..network.topology().vertices()).map(Vertex::new);
    vertices.map(|vertex| trees.children(source, tree, vertex).count()).sum()
}

/// Bytes on wires of a broadcast of node 0.
fn broadcast_bytes(network: &Network) -> f64 {
    let trees = Fib::new(network, 1, 1);
    (copies(network, &trees, NodeId::new(0), 0) * SHORT_BYTES) as f64
}

/// Mean links on a shortest path from a node to another.
fn mean_hops(network: &Network) -> f64 {
    let pairs = nodes(network).flat_map(|src| nodes(network).map(move |dst| (src, dst)));
    let hops = pairs.filter_map(|(src, dst)| network.distance(src, dst));
    let count = f64::from(network.nodes());
    f64::from(hops.sum::<u32>()) / (count * (count - 1.0))
}

/// What broadcasts of starts and ends put on wires beside the data, where `small` of the bytes are in
/// flows of one size and the others in flows of another.
fn overhead(network: &Network, small: f64, sizes: [f64; 2]) -> f64 {
    let events = 2.0 * broadcast_bytes(network);
    let hops = mean_hops(network);
    small * events / (hops * sizes[0]) + (1.0 - small) * events / (hops * sizes[1])
}

/// Fig. 9, and what §3.2 and §6 say of broadcasts.
pub(super) fn broadcasts(_: Effort, _: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../r2c2/fig9.claims.toml"));
    let cube = torus(&[8, 8, 8]);
    sheet.measure("fig9.broadcast", Measured::one(broadcast_bytes(&cube)));
    let trees = Fib::new(&cube, 1, 1);
    let of_all: usize = nodes(&cube).map(|source| copies(&cube, &trees, source, 0)).sum();
    let flows_each = cube.nodes() as usize - 1;
    let links = cube.topology().ports().len();
    let on_a_link = (of_all * flows_each * SHORT_BYTES) as f64 / links as f64;
    sheet.measure("fig9.all-pairs", Measured::one(on_a_link));
    let small = overhead(&cube, 1.0, [SMALL, LONG]);
    sheet.measure("fig9.event", Measured::one(small / 2.0));
    sheet.measure("fig9.small", Measured::one(small));
    sheet.measure("fig9.large", Measured::one(overhead(&cube, 1.0, [LARGE, LONG])));
    let usual = overhead(&cube, SMALL_SHARE, [SMALL, LONG]);
    sheet.measure("fig9.data-centre", Measured::one(usual));
    let half = overhead(&cube, 0.5, [SMALL, LONG]);
    let [none, all] = [0.0, 1.0].map(|share| overhead(&cube, share, [SMALL, LONG]));
    sheet.measure("fig9.linear", Measured::one(half / none.midpoint(all)));
    // §3.2: faults of a processor a year, and processors.
    let a_day = 0.3 * f64::from(4 * cube.nodes()) / 365.0;
    sheet.measure("fig9.failures", Measured::one(a_day));
    // 16 by 32 nodes: as near to a square as 512 in powers of two come.
    let others = [("3D mesh", mesh(&[8, 8, 8])), ("2D torus", torus(&[16, 32]))];
    let at_most = others.iter().map(|(_, other)| overhead(other, 1.0, [SMALL, LONG]));
    let words: Vec<_> = at_most.clone().map(|share| Unit::Share.format(share)).collect();
    let lower = Agreement::of(at_most.into_iter().all(|share| share < small));
    let words = format!("{} beside {}", words.join(" and "), Unit::Share.format(small));
    sheet.measure("fig9.lower", Measured::shape(words, lower));
    let clos = LeafSpine { hosts: 512, radix: 32, oversubscription: 1, ..LeafSpine::default() };
    let clos = network(&Shape::LeafSpine(clos));
    sheet.measure("fig9.clos", Measured::one(broadcast_bytes(&clos)));
    let line = |(name, network): (&str, &Network)| {
        let ends = [0.0, 1.0].map(|share| (share, overhead(network, share, [SMALL, LONG])));
        PlotSeries::new(name, SeriesStyle::Line, ends.to_vec())
    };
    let others = others.iter().map(|(name, network)| (*name, network));
    let series = std::iter::once(("3D torus", &cube)).chain(others).map(line).collect();
    let x = Axis::linear("Part of bytes in small flows", Unit::Share);
    let y = Axis::linear("Bytes of broadcasts, of those of data", Unit::Share);
    let figure = plot("Fig. 9", "Small flows 10 KB, others 35 MB.", x, y, series);
    let text = "Broadcasts counted link by link of their trees; data by the mean length of \
                shortest paths, headers left out as in the paper. A flow is announced twice, as it \
                starts and as it ends.";
    Ok(findings("Bytes of broadcasts", text, vec![Block::Plots(vec![figure])], sheet))
}

/// Flows whose paths are written down.
struct Written {
    links: usize,
    /// Each flow with its links and shares.
    uses: Vec<(Course, Vec<(PortId, f64)>)>,
}

impl Courses for Written {
    fn nodes(&self) -> usize {
        4
    }

    fn links(&self) -> usize {
        self.links
    }

    fn uses(&mut self, course: Course, mut visit: impl FnMut(usize, f64)) {
        let found = self.uses.iter().find(|(known, _)| *known == course);
        let (_, shares) = found.expect("every flow is written down");
        shares.iter().for_each(|&(port, share)| visit(port.index(), share));
    }

    fn leaving(&mut self, _: NodeId, _: impl FnMut(usize, f64)) {}

    fn arriving(&mut self, _: NodeId, _: impl FnMut(usize, f64)) {}
}

/// Four nodes, and links between these.
fn graph(links: &[(u32, u32)]) -> Topology {
    let mut build = Builder::new(4);
    // Any rate will do: what comes out is in parts of it.
    let link = Link { rate: Rate::from_gbps(1), delay: Span::ZERO };
    for &(a, b) in links {
        build.link(Vertex::new(a), Vertex::new(b), link);
    }
    build.build().expect("the paper's examples are connected")
}

fn port(topology: &Topology, from: u32, to: u32) -> PortId {
    let mut ports = topology.links_between(Vertex::new(from), Vertex::new(to));
    ports.next().expect("the example has this link")
}

/// Figs 3 and 4.
pub(super) fn examples(_: Effort, _: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../r2c2/examples.claims.toml"));
    let square = mesh(&[2, 2]);
    let shares = Shares::new(&square, Protocol::Rps).expect("spraying suits any graph");
    let mut scratch = Scratch::new(&square);
    let sprayed = shares.of(NodeId::new(0), NodeId::new(3), &mut scratch).to_vec();
    let extremes = |shares: &[(PortId, f64)]| {
        let all = shares.iter().map(|&(_, share)| share);
        (all.clone().fold(f64::INFINITY, f64::min), all.fold(0.0, f64::max))
    };
    let (least, most) = extremes(&sprayed);
    // Both ends at once: a mean that only equal shares have.
    sheet.measure("examples.spray", Measured::one(least.midpoint(most)));
    sheet.measure("examples.spray-links", Measured::one(sprayed.len() as f64));
    let topology = square.topology();
    let path = |middle| vec![port(topology, 0, middle), port(topology, middle, 3)];
    let (low, high) = extremes(&of_paths(&[(1.0, path(1)), (2.0, path(2))]));
    sheet.measure("examples.weighted-low", Measured::one(low));
    sheet.measure("examples.weighted-high", Measured::one(high));
    let [restricted, free] = fig_4();
    for (word, rates) in [("restricted", restricted), ("unrestricted", free)] {
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        sheet.measure(&format!("examples.{word}"), Measured::one(least));
    }
    let text = "Rates by the rack's own water-filling, those free to choose paths by a linear \
                programme.";
    Ok(findings("Worked examples", text, Vec::new(), sheet))
}

/// Rates of Fig. 4's two flows in parts of a link: with their paths in fixed proportions, and with any.
fn fig_4() -> [Vec<f64>; 2] {
    // The paper's nodes 1 to 4 are 0 to 3 here.
    let topology = graph(&[(0, 3), (0, 2), (1, 2), (2, 3)]);
    let capacities = capacities(&topology, 0.0);
    let course = |source| Course {
        source: NodeId::new(source),
        destination: NodeId::new(3),
        protocol: Protocol::Rps,
    };
    let (direct, over) =
        (vec![port(&topology, 0, 3)], vec![port(&topology, 0, 2), port(&topology, 2, 3)]);
    let second = vec![port(&topology, 1, 2), port(&topology, 2, 3)];
    let uses = vec![
        (course(0), of_paths(&[(1.0, direct), (1.0, over)])),
        (course(1), of_paths(&[(1.0, second)])),
    ];
    let mut filling = Waterfill::new(Written { links: capacities.len(), uses }, capacities.clone());
    filling.join(0, course(0), Terms::default());
    filling.join(1, course(1), Terms::default());
    filling.fill(Whose::All);
    let any = [0, 1].map(|node| (NodeId::new(node), NodeId::new(3), Terms::default()));
    let any = unrestricted(&topology, &capacities, &any);
    let in_links = |rates: Vec<f64>| rates.iter().map(|rate| rate / capacities[0]).collect();
    [in_links([0, 1].map(|place| filling.rate(place)).to_vec()), in_links(any)]
}

/// §4.2: tables of link weights, and what packets have room for.
pub(super) fn memory(_: Effort, _: &mut Watch<'_>) -> Result<Findings, Failure> {
    /// §4.2: bytes of a weight.
    const WEIGHT: usize = 4;
    let mut sheet = Sheet::read(include_str!("../../r2c2/memory.claims.toml"));
    let cube = torus(&[8, 8, 8]);
    let table = (cube.nodes() as usize - 1) * cube.topology().ports().len() * WEIGHT;
    sheet.measure("memory.table", Measured::one(table as f64));
    let shares = Shares::new(&cube, Protocol::Rps).expect("spraying suits any graph");
    sheet.measure("memory.ours", Measured::one(shares.table_bytes() as f64));
    sheet.measure("memory.hops", Measured::one(f64::from(HOPS_MAX)));
    sheet.measure("memory.nodes", Measured::one(f64::from(NODES_MAX)));
    sheet.measure("memory.pairs", Measured::one((batch::BYTES_MAX / batch::PAIR_BYTES) as f64));
    Ok(findings("Sizes of tables and packets", "512 nodes in a 3D torus.", Vec::new(), sheet))
}
