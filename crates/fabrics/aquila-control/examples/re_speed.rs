//! How long the routing engine takes on one core: a Clique from nothing to the last batch, and one link's death.

#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::Instant;

use aquila::pipeline::plan::Plan;
use aquila::topology::{Fibres, Shape, Topology};
use aquila::turns::TurnTable;
use aquila_control::apps::Clique;
use aquila_control::apps::routing::{Output, RoutingEngine};
use aquila_control::apps::rows::{BatchRow, SessionRow};
use aquila_control::nib::{Nib, Table, Write};

/// Batches until nothing is left, with all results at once; how many, with how many rows, and how long the engine alone
/// took: to the first batch, and in all. Unit: ms.
fn settle(engine: &mut RoutingEngine, nib: &mut Nib) -> (u64, usize, f64, f64) {
    let (mut batches, mut rows, mut first, mut all) = (0, 0, 0.0, 0.0);
    loop {
        let changes = nib.since(engine.seen(), &RoutingEngine::TABLES);
        let mut out = Vec::new();
        let start = Instant::now();
        engine.learn(&changes, &mut out);
        all += start.elapsed().as_secs_f64() * 1e3;
        let Some(Output::Batch { number, writes }) = out.pop() else {
            return (batches, rows, first, all);
        };
        if batches == 0 {
            first = all;
        }
        batches += 1;
        rows += writes.len();
        nib.apply(number, &writes).expect("it is the next");
        let start = Instant::now();
        engine.written(&mut out);
        all += start.elapsed().as_secs_f64() * 1e3;
        let done = BatchRow { number, is_done: true, failed: [0; 3] };
        nib.write(&[Write::set(Table::Batch, &[], &done.encode())]).expect("nothing is expected");
    }
}

fn main() {
    for (name, shape) in [("mini", Shape::MINI), ("full", Shape::FULL)] {
        let topology = Topology::new(&shape, Fibres::Grid).expect("a shape that is built");
        let global = topology.links().iter().position(|link| link.is_global).expect("there is one");
        let clique = Clique::new(topology, TurnTable::P1, Plan::new(&shape, 2));
        let mut engine = RoutingEngine::new(Arc::new(clique));
        let mut nib = Nib::new();
        let ready = SessionRow { is_up: true, is_ready: true, is_over_pmos: false, boot: 1 };
        let row = |tin: u16| Write::set(Table::TinSession, &tin.to_be_bytes(), &ready.encode());
        nib.write(&(0..shape.tins()).map(row).collect::<Vec<_>>()).expect("nothing is expected");
        let mut say = |what: &str, nib: &mut Nib| {
            let (batches, rows, first, all) = settle(&mut engine, nib);
            println!(
                "{name}, {what}: {batches} batches, {rows} rows; first {first:.1} ms, all {all:.1} ms"
            );
        };
        say("from nothing", &mut nib);
        for (what, link) in [("a link in a pod dies", 7), ("a link between pods dies", global + 7)]
        {
            let key = (link as u32).to_be_bytes();
            nib.write(&[Write::set(Table::Link, &key, &[2])]).expect("nothing is expected");
            say(what, &mut nib);
        }
        nib.write(&[Write::set(Table::Node, &[0, 5], &[1])]).expect("nothing is expected");
        say("a TiN is drained", &mut nib);
        let sizes = nib.sizes();
        println!("{name}: {} rows, {} bytes raw, {} as kept", sizes.rows, sizes.raw, sizes.stored);
    }
}
