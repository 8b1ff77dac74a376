//! From a base without a row to registers.

use aquila::pipeline::compute::each;
use aquila::pipeline::plan::Plan;
use aquila::pipeline::routes::Found;
use aquila::tables::compute::compute;
use aquila::topology::Shape;

use super::world::World;
use crate::apps::rows::{Outcome, ResultRow};
use crate::expand::tables;
use crate::nib::Table;

/// What chips hold against plain functions: cells and IP; and the base's results against chips (I75, I78).
#[track_caller]
pub fn audit(world: &World, condition: &aquila::tables::Condition) {
    let topology = &world.clique.topology;
    let found = tables(topology.shape(), &world.files()).unwrap();
    let expected = compute(topology, &world.clique.turns, condition);
    assert!(found == expected, "I75: cells");
    let is_there = |tin, _| condition.tin(tin) != aquila::tables::condition::State::Dead;
    let direct = each(&world.clique.plan, &is_there);
    for chip in &world.chips {
        let routes = crate::ip::routes(&chip.file).unwrap();
        for interface in world.clique.plan.addressed() {
            for version in Plan::VERSIONS {
                for tin in 0..topology.shape().tins() {
                    let ip = world.clique.plan.ip(tin, interface, version);
                    let found = match routes.look_up(ip, 0) {
                        Found::Indexed(to) => Found::Address(to),
                        other => other,
                    };
                    assert_eq!(found, direct.look_up(ip, 0), "I75: {ip}");
                }
            }
        }
    }
    let changes = world.constellation.base().unwrap().since(0, &Table::ALL).changes;
    let rows = changes.iter().filter(|change| change.value.is_some());
    let mut programmed = 0;
    for change in rows.clone().filter(|c| crate::apps::rows::PROGRAMMED.contains(&c.key.0)) {
        let key = [&[change.key.0 as u8][..], &change.key.1].concat();
        let result = world.constellation.base().unwrap().get(Table::ProgrammingResult, &key);
        let result = result.and_then(|(_, value)| ResultRow::decode(&value));
        let expected = ResultRow { version: change.version, outcome: Outcome::Done };
        assert_eq!(result, Some(expected), "I78: {:?}", change.key);
        programmed += 1;
    }
    let results = rows.filter(|change| change.key.0 == Table::ProgrammingResult).count();
    assert_eq!(results, programmed, "I78: a result of nothing");
}

#[test]
fn m703_m705_m706_i75_i78_from_nothing_to_registers() {
    let mut world = World::new(&Shape::TINY, 1);
    world.settle();
    audit(&world, &world.condition(&[], &[]));
}
