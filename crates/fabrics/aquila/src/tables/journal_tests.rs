//! Tables that are changed entry by entry, against tables that are computed, and a list of what was written.

use std::collections::BTreeMap;

use kernel::Stream;

use super::super::compute::compute;
use super::super::condition::State;
use super::super::{Condition, NONE, Row};
use super::*;
use crate::topology::Fibres;
use crate::turns::TurnTable;

fn clique(shape: &Shape) -> Topology {
    Topology::new(shape, Fibres::Grid).unwrap()
}

fn random(topology: &Topology, stream: &mut Stream) -> Condition {
    let mut condition = Condition::healthy(topology);
    for _ in 0..stream.below(12) {
        let link = stream.below(topology.links().len() as u64) as u32;
        condition.set_link(link, State::Dead);
    }
    for _ in 0..stream.below(3) {
        let tin = stream.below(topology.shape().tins().into()) as u16;
        condition.set_tin(tin, State::Dead);
    }
    condition
}

/// I75: what makes the tables of one condition those of another does so, for the TiNs of a part, in any order.
#[test]
fn i75_writes_make_the_tables_of_one_condition_those_of_another() {
    for shape in [Shape::TINY, Shape::MINI] {
        let topology = clique(&shape);
        let mut stream = Stream::new(1, "test/journal", 0);
        let tables_in = |condition: &Condition| compute(&topology, &TurnTable::P1, condition);
        let mut before = tables_in(&Condition::healthy(&topology));
        let own = |tin: u16| tin % 3 != 1;
        let (mut editor, mut part) = Editor::new(&before, own);
        let mut written = 0;
        for _ in 0..12 {
            let after = tables_in(&random(&topology, &mut stream));
            for tin in (0..shape.tins()).filter(|&tin| own(tin)) {
                let mut changes = before.changes(tin, &after, &topology);
                written += changes.len();
                while !changes.is_empty() {
                    let at = stream.below(changes.len() as u64) as usize;
                    editor.apply(&mut part, tin, &changes.swap_remove(at));
                }
                assert!(part.is_same_at(tin, &after), "TiN {tin}");
                assert!(after.is_same_at(tin, &part), "TiN {tin}");
            }
            before = after;
        }
        assert!(written > 1_000, "{written} writes show nothing");
    }
}

/// A write changes one entry of one port and channel and no other, wherever rows and blocks are stored once.
#[test]
fn m604_a_write_changes_its_entry_alone() {
    let shape = Shape::TINY;
    let topology = clique(&shape);
    let tables = compute(&topology, &TurnTable::P1, &Condition::healthy(&topology));
    let (mut editor, mut part) = Editor::new(&tables, |_| true);
    let mut stream = Stream::new(2, "test/journal", 0);
    let mut draw = |below: u16| stream.below(below.into()) as u16;
    let mut expected: BTreeMap<(u16, u8, u8, u16), Row> = BTreeMap::new();
    for round in 0..3_000u16 {
        let tin = draw(shape.tins());
        if round % 400 == 399 {
            editor.apply(&mut part, tin, &Change::Reset);
            let all = blocks(&shape).flat_map(|(port, rvc)| {
                (0..components(&shape)).map(move |component| (tin, port, rvc, component))
            });
            expected.extend(all.map(|key| (key, Row::EMPTY)));
            assert!((0..shape.tins()).all(|to| part.escape(tin, false, to) == NONE));
            continue;
        }
        let (port, rvc) = (draw(shape.ports().into()) as u8, draw(3) as u8);
        let component = draw(components(&shape));
        let row = Row { minimal: [draw(30) as u8; 8], others: [draw(30) as u8; 24] };
        editor.apply(&mut part, tin, &Change::Row { port, rvc, component, row });
        expected.insert((tin, port, rvc, component), row);
    }
    for tin in 0..shape.tins() {
        for (port, rvc) in blocks(&shape) {
            for component in 0..components(&shape) {
                let row = |tables: &Tables| {
                    *tables.by_index(tables.entry(tables.block(tin, port, rvc), component))
                };
                let key = (tin, port, rvc, component);
                let expected = expected.get(&key).copied().unwrap_or_else(|| row(&tables));
                assert_eq!(row(&part), expected, "{key:?}");
            }
        }
    }
}

#[test]
fn writes_of_an_instant_stay_in_their_order() {
    let write = |us, tin, port| Write {
        at: Time::ZERO + Span::from_us(us),
        tin,
        change: Change::Escape { has_come_down: false, to: 0, port },
    };
    let journal =
        Journal::new(vec![write(5, 1, 3), write(2, 9, 1), write(5, 1, 2), write(5, 0, 7)]);
    assert_eq!(journal.writes(), [write(2, 9, 1), write(5, 0, 7), write(5, 1, 3), write(5, 1, 2)]);
}
