//! What a rack takes in memory, estimated from its configuration alone.

use std::collections::BTreeSet;

use kernel::Bytes;
use rack::Estimate;
use rack::topology::{Extent, Shape};

use super::Config;
use crate::routing::{Protocol, TABLE_ENTRIES_MAX, TABLE_ENTRY_BYTES, WAYS_BYTES, block};

/// The topology is kept by routing as well, and by the plan that the endpoints have.
const COPIES: u64 = 3;
/// A node: its streams, its places in routes and grid, its lists of flows, records and repeats.
const NODE: u64 = 900;
/// A port: its place in the grid, its capacity, its load and the list of who uses it.
const PORT: u64 = 160;
/// What nodes know of each other's links, where something may fail, and when they heard of each other.
const KNOWN: u64 = 12;
/// Maps of what lives that nodes go by at a time while news of a failure spread, that of the whole rack
/// aside. Our choice, by what the death of a node with six links took: each of them is news of its own.
const MAPS: u64 = 3;

impl Config {
    /// What planning and running it will take, open flows and what they have under way apart, while
    /// nothing fails. Builds nothing. Unit: bytes.
    #[must_use]
    pub fn memory(&self) -> Bytes {
        let extent = self.topology.extent();
        let Extent { hosts, ports, .. } = extent;
        Estimate::new()
            .plus(self.network().memory())
            .plus(extent.memory(COPIES))
            .and(hosts, NODE)
            .and(ports, PORT)
            .plus(self.wiring_memory(self.is_torus()))
            .plus(self.tables_memory())
            .bytes()
    }

    /// What it takes on top of that where something fails ([`super::Plan::with_faults`]): what each node
    /// knows of all others' links, and the trees and ways of another map. While news of a failure spread
    /// there may be a few such maps. Unit: bytes.
    #[must_use]
    pub fn failures_memory(&self) -> Bytes {
        let hosts = self.topology.extent().hosts;
        Estimate::new()
            .plus(self.network().failures_memory())
            .and(hosts.saturating_mul(hosts), KNOWN)
            .and(self.wiring_memory(false).get(), MAPS)
            .bytes()
    }

    /// The trees of all sources ([`crate::broadcast::Fib`]), a byte a vertex, and the shortest paths to
    /// all nodes, which a whole torus needs to one alone.
    fn wiring_memory(&self, is_torus: bool) -> Bytes {
        let Extent { hosts, vertices, .. } = self.topology.extent();
        let pairs = hosts.saturating_mul(vertices);
        let targets = if is_torus { 1 } else { hosts };
        Estimate::new()
            .and(pairs.saturating_mul(self.trees.into()), 1)
            .and(targets.saturating_mul(vertices), WAYS_BYTES)
            .bytes()
    }

    fn is_torus(&self) -> bool {
        match &self.topology {
            Shape::Torus(_) => true,
            Shape::Mesh(mesh) => mesh.dimensions.iter().all(|&length| length == 2),
            _ => false,
        }
    }

    /// The tables of shares that a torus has for all sources, one for each protocol.
    fn tables_memory(&self) -> Bytes {
        let Shape::Torus(torus) = &self.topology else { return Bytes::ZERO };
        let used: BTreeSet<Protocol> = self.protocols().chain([Protocol::Rps]).collect();
        let tables = used.into_iter().map(|protocol| table(&torus.dimensions, protocol));
        tables.fold(Estimate::new(), Estimate::plus).bytes()
    }
}

/// Over all offsets along a ring: how many nodes lie on the way, and how many links.
fn ring(length: u64, protocol: Protocol) -> [u64; 2] {
    let (half, is_even) = (length / 2, length.is_multiple_of(2));
    // Both ways where they are as long.
    let tie = if is_even { length } else { 0 };
    let short = (length - 1) / 2;
    let links = short.saturating_mul(short + 1).saturating_add(tie);
    match protocol {
        // One link joins the two.
        _ if length == 2 => [3, 1],
        Protocol::DimensionOrder => [length, links],
        Protocol::DimensionOrderUp => [length, links - tie + half * u64::from(is_even)],
        Protocol::Weighted => {
            let all = length.saturating_mul(length.saturating_sub(1));
            [all.saturating_add(1), all]
        }
        // Half of all offsets are a quarter of the ring away or more, and go both ways.
        Protocol::WeightedThreshold => {
            let both = length.saturating_mul(length - length.div_ceil(4) * 2 + 1);
            let near = length.div_ceil(4).saturating_sub(1);
            let links = near.saturating_mul(near + 1);
            [both.saturating_add(links + 2 * near + 1), both.saturating_add(links)]
        }
        Protocol::Rps | Protocol::RpsByHop | Protocol::Romm | Protocol::Valiant => {
            let inner = short.saturating_mul(short + 1).saturating_add(length - u64::from(is_even));
            [inner.saturating_add(tie), links]
        }
    }
}

/// What the table of a protocol takes: its entries, and where places are, moved by each other.
fn table(dimensions: &[u32], protocol: Protocol) -> Bytes {
    let lengths = || dimensions.iter().map(|&length| u64::from(length).max(1));
    let (nodes, block) = (lengths().fold(1, u64::saturating_mul), block(lengths()));
    let others = nodes / block;
    Estimate::new()
        .and(entries(dimensions, protocol), TABLE_ENTRY_BYTES)
        .array::<u16>(block.saturating_mul(block))
        .array::<u32>(others.saturating_mul(others))
        .bytes()
}

/// How many entries the table of a protocol has: for each place of the destination, the links that a
/// packet may cross.
fn entries(dimensions: &[u32], protocol: Protocol) -> u64 {
    let product = |factors: &mut dyn Iterator<Item = u64>| factors.fold(1, u64::saturating_mul);
    let lengths = || dimensions.iter().map(|&length| u64::from(length).max(1));
    if protocol == Protocol::Valiant {
        let all = product(&mut lengths());
        return all.saturating_mul(2 * dimensions.len() as u64);
    }
    let rings: Vec<[u64; 2]> = lengths().map(|length| ring(length, protocol)).collect();
    let along = |axis: usize| {
        let factors = rings.iter().enumerate().map(|(at, ring)| ring[usize::from(at == axis)]);
        product(&mut { factors })
    };
    // Too large a table is given up once it is.
    (0..rings.len()).map(along).fold(0, u64::saturating_add).min(TABLE_ENTRIES_MAX as u64)
}

#[cfg(test)]
mod tests {
    use rack::topology::Torus;

    use super::*;
    use crate::routing::{Network, Shares};

    /// Counted in the tables themselves.
    #[test]
    fn entries_of_tables_are_as_many_as_estimated() {
        for dimensions in [&[8, 8, 8][..], &[7, 5], &[4, 4], &[2, 9, 3], &[12], &[6, 6, 6]] {
            let torus = Torus { dimensions: dimensions.to_vec(), ..Torus::default() };
            let network = Network::new(&Shape::Torus(torus)).unwrap();
            for protocol in Protocol::ALL {
                let shares = Shares::new(&network, protocol).unwrap();
                let found = shares.table_bytes() as f64;
                let ours = table(dimensions, protocol).get() as f64;
                let is_near = (0.5..=2.0).contains(&(ours / found));
                assert!(is_near, "{dimensions:?}, {protocol:?}: {ours} for {found}");
            }
        }
    }

    #[test]
    fn sizes_beyond_all_bounds_are_estimated() {
        for dimensions in
            [vec![u32::MAX; 9], vec![0, 0], vec![], vec![65_535, 65_535], vec![1 << 31]]
        {
            let torus = Torus { dimensions, ..Torus::default() };
            let config = Config { topology: Shape::Torus(torus), ..Config::default() };
            assert!(config.memory() > Bytes::ZERO && config.failures_memory() >= Bytes::ZERO);
            assert!(config.plan().is_err());
        }
        let config = |dimensions: &[u32]| {
            let torus = Torus { dimensions: dimensions.to_vec(), ..Torus::default() };
            Config { topology: Shape::Torus(torus), ..Config::default() }
        };
        assert_eq!(config(&[u32::MAX; 9]).memory(), Bytes::new(u64::MAX));
        assert!(config(&[65_535, 65_535]).memory() > Bytes::new(1 << 60));
    }
}
