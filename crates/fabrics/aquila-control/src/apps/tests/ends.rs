//! From a base without a row to registers.

use aquila::pipeline::compute::each;
use aquila::pipeline::plan::Plan;
use aquila::pipeline::routes::Found;
use aquila::tables::Condition;
use aquila::tables::compute::compute;
use aquila::tables::condition::State;
use aquila::topology::Shape;

use super::world::World;
use crate::apps::rows::{Outcome, PROGRAMMED, ResultRow, split_key};
use crate::expand::tables;
use crate::nib::Table;
use crate::registers::file::RegisterFile;

/// What chips hold against plain functions: cells and IP; and the base's results against chips (I75, I78).
#[track_caller]
pub fn audit(world: &World, condition: &Condition) {
    let topology = &world.clique.topology;
    let lives = |tin: u16| condition.tin(tin) != State::Dead;
    let mut files = world.files();
    for (tin, file) in (0..).zip(&mut files) {
        if !lives(tin) {
            *file = RegisterFile::new();
        }
    }
    let found = tables(topology.shape(), &files).unwrap();
    let expected = compute(topology, &world.clique.turns, condition);
    assert!(found == expected, "I75: cells");
    let is_there = |tin, _| lives(tin);
    let direct = each(&world.clique.plan, &is_there);
    for (_, chip) in (0..).zip(&world.chips).filter(|&(tin, _)| lives(tin)) {
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
    for change in rows.clone().filter(|c| PROGRAMMED.contains(&c.key.0)) {
        if !split_key(&change.key.1).is_some_and(|(tin, _)| lives(tin)) {
            continue;
        }
        let key = [&[change.key.0 as u8][..], &change.key.1].concat();
        let result = world.constellation.base().unwrap().get(Table::ProgrammingResult, &key);
        let result = result.and_then(|(_, value)| ResultRow::decode(&value));
        let expected = ResultRow { version: change.version, outcome: Outcome::Done };
        assert_eq!(result, Some(expected), "I78: {:?}", change.key);
        programmed += 1;
    }
    let results = rows.filter(|change| change.key.0 == Table::ProgrammingResult);
    let results = results.filter(|c| split_key(&c.key.1[1..]).is_some_and(|(tin, _)| lives(tin)));
    let results = results.count();
    assert_eq!(results, programmed, "I78: a result of nothing");
}

#[test]
fn m703_m705_m706_i75_i78_from_nothing_to_registers() {
    let mut world = World::new(&Shape::TINY, 1);
    world.settle();
    audit(&world, &world.condition(&[], &[]));
}
