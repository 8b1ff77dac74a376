//! What the routes of cells of a full Clique take in the network information base: a row for each TiN, class of input
//! ports and routing channel, with 16 bytes a destination.

#![allow(clippy::print_stdout)]

use aquila::tables::compute::routes;
use aquila::tables::flows::InputClass;
use aquila::tables::{Condition, components};
use aquila::topology::{Fibres, Shape, Topology};
use aquila::turns::TurnTable;
use aquila_control::nib::{Nib, Sizes, Table, Write};

fn main() {
    for (name, shape) in [("mini", Shape::MINI), ("full", Shape::FULL)] {
        let topology = Topology::new(&shape, Fibres::Grid).expect("a shape that is built");
        let flows = routes(&topology, &TurnTable::P1, &Condition::healthy(&topology));
        let mut nib = Nib::new();
        for tin in 0..shape.tins() {
            let mut batch = Vec::new();
            for class in InputClass::ALL {
                for rvc in class.channels() {
                    let key = [&tin.to_be_bytes()[..], &[class.index() as u8, rvc]].concat();
                    let bytes = |component| {
                        let flow = flows.get(tin, class, rvc, component);
                        [flow.minimal.to_be_bytes(), flow.others.to_be_bytes()].concat()
                    };
                    let value: Vec<u8> = (0..components(&shape)).flat_map(bytes).collect();
                    batch.push(Write::set(Table::GnetFlow, &key, &value));
                }
            }
            nib.apply(nib.batch() + 1, &batch).expect("it is the next");
        }
        let Sizes { rows, raw, stored } = nib.sizes();
        let flows = rows * u64::from(components(&shape));
        println!("{name}: {flows} flows in {rows} rows, {raw} bytes raw, {stored} as kept");
    }
}
