//! From a base without a row to registers.

use std::collections::BTreeSet;

use aquila::pipeline::compute::each;
use aquila::pipeline::plan::Plan;
use aquila::pipeline::routes::Found;
use aquila::tables::Condition;
use aquila::tables::compute::compute;
use aquila::tables::condition::State;
use aquila::topology::Shape;

use super::routes::{Works, stuck};
use super::world::World;
use crate::apps::front_end::intent::Intent;
use crate::apps::front_end::order;
use crate::apps::rows::{BatchRow, Outcome, PROGRAMMED, ResultRow, SessionRow, split_key};
use crate::expand::tables;
use crate::nib::{Key, Table};
use crate::registers::Entry;
use crate::registers::file::RegisterFile;
use crate::registers::map::ROUTE;

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
        let routes = crate::expand::ip::routes(&chip.file).unwrap();
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

/// Whenever nothing is on its way: if a batch is said to be done, all its rows have results (I72); and what is said to be
/// programmed at a TiN, a different one each time, is what its chip holds (I78).
pub fn watch_results(world: &World) {
    if world.quiet > world.chips.len() {
        // All were looked at since something has changed.
        return;
    }
    let result = |key: &Key| {
        let key = (Table::ProgrammingResult, [&[key.0 as u8][..], &key.1].concat());
        world.rows.get(&key).and_then(|(_, value)| ResultRow::decode(value))
    };
    let programmed = || world.rows.iter().filter(|(key, _)| PROGRAMMED.contains(&key.0));
    let batch = world.rows.get(&(Table::Batch, Vec::new()));
    if batch.and_then(|(_, row)| BatchRow::decode(row)).is_some_and(|row| row.is_done) {
        for (key, (version, _)) in programmed() {
            let has_result = result(key).is_some_and(|result| result.version == *version);
            assert!(has_result, "I72: the batch is done, and {key:?} has no result");
        }
    }
    let tin = (world.steps % world.chips.len() as u64) as u16;
    let chip = &world.chips[usize::from(tin)];
    let session = world.rows.get(&(Table::TinSession, tin.to_be_bytes().to_vec()));
    let session = session.and_then(|(_, row)| SessionRow::decode(row)).unwrap_or_default();
    // The base has not heard yet of a chip that has just lost its power.
    if !session.is_ready || session.boot != chip.boot {
        return;
    }
    let is_its = |key: &[u8]| split_key(key).is_some_and(|(of, _)| of == tin);
    let results = world.rows.keys().filter(|(table, _)| *table == Table::ProgrammingResult);
    let results = results.filter(|(_, key)| is_its(&key[1..])).count();
    let mut intent = Intent::default();
    // What is ready carries others' cells, and is no row (M815).
    intent.set_passes(true);
    let mut rows = 0;
    for (key, (version, value)) in programmed().filter(|(key, _)| is_its(&key.1)) {
        let done = ResultRow { version: *version, outcome: Outcome::Done };
        if result(key) != Some(done) {
            return;
        }
        intent.set(&world.clique, key, Some(value)).expect("it is programmed");
        rows += 1;
    }
    // A row that is gone may still be programmed.
    if rows != results {
        return;
    }
    let image = intent.image(&world.clique, tin, &BTreeSet::new());
    for register in order::owned() {
        let differ = chip.file.differing(&image, register);
        assert!(differ.is_empty(), "I78: {} of TiN {tin} at {differ:?}", register.name);
    }
}

#[test]
fn m703_m705_m706_i75_i78_from_nothing_to_registers() {
    let mut world = World::new(&Shape::TINY, 1);
    world.settle();
    audit(&world, &world.condition(&[], &[]));
}

/// Others' cells have ways to it and none through it, before anyone has heard of it; when it connects it has tables at once.
#[test]
fn m815_a_tin_that_has_never_connected_is_routed_to_and_carries_nothing() {
    let mut world = World::new(&Shape::TINY, 6);
    world.disconnect(5, false);
    world.settle();
    let works = Works { port: &|_, _| true, tin: &|_| true, may_pass: &|tin| tin != 5 };
    let from_it: Vec<_> = (0..18).filter(|&to| to != 5).map(|to| (5, to)).collect();
    assert_eq!(stuck(&world, &works), from_it);
    let batches = |world: &World| world.constellation.base().unwrap().batch();
    let before = batches(&world);
    world.disconnect(5, true);
    while world.chips[5].file.differing(&RegisterFile::new(), ROUTE.register()).is_empty() {
        world.step();
    }
    assert_eq!(batches(&world), before, "nothing had to be worked out for it");
    world.settle();
    audit(&world, &world.condition(&[], &[]));
}

#[test]
fn m610_of_a_chip_that_has_just_started_nothing_is_read() {
    let mut world = World::new(&Shape::TINY, 5);
    // The controller knows all that it wants before it reaches anyone.
    (0..18).for_each(|tin| world.disconnect(tin, false));
    world.settle();
    (0..18).for_each(|tin| world.disconnect(tin, true));
    world.settle();
    audit(&world, &world.condition(&[], &[]));
    let read = |world: &World| world.constellation.front_end().unwrap().counts().read;
    assert_eq!(read(&world), 0);
    // One that has lost an entry is read, block by block: a block has 256 entries.
    let route = ROUTE.address([0; 3]).unwrap();
    world.chips[3].file.write(route, &Entry::from_bytes(&[7; 32]).unwrap()).unwrap();
    world.disconnect(3, true);
    world.settle();
    audit(&world, &world.condition(&[], &[]));
    assert_eq!(read(&world), 256);
}
