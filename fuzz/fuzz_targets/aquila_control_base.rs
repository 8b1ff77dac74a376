//! Any rows in the base of Aquila's control plane are decoded and written back the same, or refused; and whatever stands
//! there, applications that start with it, or learn of it, do not panic. The base itself holds what was written.
#![no_main]

use std::sync::{Arc, OnceLock};

use aquila::pipeline::plan::Plan;
use aquila::topology::{Fibres, Shape, Topology};
use aquila::turns::TurnTable;
use aquila_control::apps::Clique;
use aquila_control::apps::flow_manager::FlowManager;
use aquila_control::apps::front_end::{FrontEnd, Settings};
use aquila_control::apps::inter_block::InterBlock;
use aquila_control::apps::routing::RoutingEngine;
use aquila_control::apps::rows::{
    BatchRow, EscapeRow, IndexedRow, IpFlow, ResultRow, SessionRow, decode_flows, decode_members,
    decode_prefix, encode_flows, encode_members, encode_prefix,
};
use aquila_control::nib::{Nib, Table, Write};
use arbitrary::Arbitrary;
use kernel::Time;
use libfuzzer_sys::fuzz_target;

/// What comes in: rows, and after how many of them applications start.
#[derive(Arbitrary, Debug)]
struct Input {
    rows: Vec<(u8, Vec<u8>, Option<Vec<u8>>)>,
    first: u8,
    has_layout: bool,
}

fn clique() -> Arc<Clique> {
    static CLIQUE: OnceLock<Arc<Clique>> = OnceLock::new();
    let clique = CLIQUE.get_or_init(|| {
        let topology = Topology::new(&Shape::TINY, Fibres::Grid).expect("it can be wired");
        Clique::new(topology, TurnTable::P1, Plan::new(&Shape::TINY, 2)).into()
    });
    Arc::clone(clique)
}

fuzz_target!(|input: Input| {
    let layout = aquila_control::nib::LAYOUT + u32::from(!input.has_layout);
    let mut nib = Nib::with_layout(layout);
    let writes: Vec<Write> = input
        .rows
        .iter()
        .map(|(table, key, value)| {
            let table = Table::ALL[usize::from(*table) % Table::ALL.len()];
            value.iter().for_each(|value| row(value));
            Write { key: (table, key.clone()), value: value.clone(), expected: None }
        })
        .collect();
    let (before, after) = writes.split_at(usize::from(input.first).min(writes.len()));
    nib.write(before).expect("nothing is expected");
    let mut engine = RoutingEngine::new(clique());
    let mut manager = FlowManager::new(1);
    let mut front_end = FrontEnd::new(clique(), Settings::default());
    let mut inter_block = InterBlock::new(clique().plan);
    front_end.load(&nib.since(0, &FrontEnd::TABLES));
    for _ in 0..2 {
        engine.learn(&nib.since(engine.seen(), &RoutingEngine::TABLES), &mut Vec::new());
        let changes = nib.since(manager.seen(), &FlowManager::TABLES);
        let mut out = Vec::new();
        manager.learn(Time::ZERO, changes, &mut out);
        for output in out {
            if let aquila_control::apps::flow_manager::Output::Program(program) = output {
                front_end.program(Time::ZERO, program, &mut Vec::new());
            }
        }
        inter_block.learn(Time::ZERO, &nib.since(inter_block.seen(), &InterBlock::TABLES));
        nib.write(after).expect("nothing is expected");
    }
    // The last write of a key counts.
    for (at, write) in writes.iter().enumerate() {
        if writes[at + 1..].iter().all(|later| later.key != write.key) {
            let found = nib.get(write.key.0, &write.key.1).map(|(_, value)| value);
            assert_eq!(found, write.value);
        }
    }
});

/// Whatever a reader makes of a value, it is what it says.
fn row(bytes: &[u8]) {
    if let Some(row) = SessionRow::decode(bytes) {
        assert_eq!(row.encode(), bytes);
    }
    if let Some(row) = EscapeRow::decode(bytes, Shape::TINY.tins()) {
        assert_eq!(row.encode(), bytes);
    }
    if let Some(row) = decode_flows(bytes, 2) {
        assert_eq!(encode_flows(&row), bytes);
    }
    if let Some(row) = decode_prefix(bytes) {
        assert_eq!(encode_prefix(row), bytes);
    }
    if let Some(row) = IpFlow::decode(bytes) {
        assert_eq!(row.encode(), bytes);
    }
    if let Some(row) = decode_members(bytes) {
        assert_eq!(encode_members(&row), bytes);
    }
    if let Some(row) = IndexedRow::decode(bytes) {
        assert_eq!(row.encode(), bytes);
    }
    if let Some(row) = ResultRow::decode(bytes) {
        assert_eq!(row.encode(), bytes);
    }
    if let Some(row) = BatchRow::decode(bytes) {
        assert_eq!(row.encode(), bytes);
    }
}
