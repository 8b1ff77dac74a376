//! What the tables say of a healthy Clique.

use super::compute::compute;
use super::*;
use crate::topology::{Fibres, Topology};
use crate::turns::TurnTable;

fn healthy(shape: &Shape) -> (Topology, Tables) {
    let topology = Topology::new(shape, Fibres::Grid).unwrap();
    let tables = compute(&topology, &TurnTable::P1, &Condition::healthy(&topology));
    (topology, tables)
}

#[test]
fn m315_the_shortest_ways_to_another_pod() {
    let (topology, tables) = healthy(&Shape::FULL);
    let terminal = Shape::FULL.external_ports();
    for (tin, pod) in (0..12).flat_map(|tin| (1..48).map(move |pod| (tin, pod))) {
        let row = tables.row(tin, terminal, 0, Address::new(pod, 0, Endpoint::HOST_0));
        let ports: Vec<u8> = compute::ports(row.minimal_ports()).collect();
        let kinds: Vec<PortKind> = ports.iter().map(|&port| topology.kind(port)).collect();
        if kinds.contains(&PortKind::Global) {
            assert_eq!(kinds, [PortKind::Global], "its own port alone");
        } else {
            assert!([4, 6].contains(&ports.len()), "{} ports", ports.len());
        }
    }
}

#[test]
fn the_tables_are_small() {
    let (_, tables) = healthy(&Shape::FULL);
    println!("{} rows, {} entries", tables.rows.len(), tables.entries.len());
    assert!(tables.rows.len() < 20_000);
}
