//! Leaders, groups that fail, and inter-block controllers.

use aquila::pipeline::routes::Found;
use aquila::topology::Shape;
use kernel::{Span, Time};
use proptest::prelude::*;

use super::ends::audit;
use super::world::World;
use crate::apps::constellation::INSTANCES;
use crate::apps::election::{Application, Election};
use crate::apps::flow_manager::{FlowManager, Output, PATIENCE};
use crate::apps::front_end::{Program, Results};
use crate::apps::inter_block::{HOLD, Message};
use crate::apps::rows::{
    BatchRow, EscapeRow, IndexedRow, IpFlow, Outcome, ResultRow, SessionRow, decode_flows,
    decode_members, decode_prefix, encode_flows, encode_members, encode_prefix, key,
};
use crate::expand::ip;
use crate::nib::{Nib, Refused, Table, Write};

#[test]
fn m701_i79_who_was_deposed_changes_nothing() {
    let mut nib = Nib::new();
    let second = |seconds: u64| Time::ZERO + Span::from_us(seconds * 1_000_000);
    let mut leaders = [0, 1].map(|i| Election::new(Application::RoutingEngine, i, Time::ZERO));
    let learn = |election: &mut Election, nib: &Nib, now| {
        nib.since(0, &[Table::Lease]).changes.iter().for_each(|change| election.learn(now, change));
    };
    // Both ask; the base gives the lease to the first.
    let asked = leaders.each_mut().map(|election| election.tick(Time::ZERO).unwrap());
    assert!(nib.write(&asked[..1]).is_ok());
    assert!(matches!(nib.write(&asked[1..]), Err(Refused::Version { .. })));
    leaders.iter_mut().for_each(|election| learn(election, &nib, Time::ZERO));
    let old = leaders[0].fence().unwrap();
    assert_eq!(leaders[1].fence(), None);
    assert!(nib.check(&old).is_ok());
    // Renewals keep the other waiting; nothing is heard after the fifth second.
    for at in 1..=5 {
        nib.write(&[leaders[0].tick(second(at)).unwrap()]).unwrap();
        leaders.iter_mut().for_each(|election| learn(election, &nib, second(at)));
        assert_eq!(leaders[1].tick(second(at)), None);
    }
    assert_eq!(leaders[1].tick(second(7)), None, "3 s are not over");
    nib.write(&[leaders[1].tick(second(8)).unwrap()]).unwrap();
    learn(&mut leaders[1], &nib, second(8));
    // The first has not heard of it, and believes what it believed.
    assert_eq!(leaders[0].fence(), Some(old.clone()));
    let error = nib.check(&old).unwrap_err();
    assert!(matches!(error, Refused::Deposed { found: 2, expected: 1, .. }));
    assert!(nib.check(&leaders[1].fence().unwrap()).is_ok());
    assert_eq!(leaders[0].tick(second(9)).map(|write| nib.write(&[write]).is_ok()), Some(false));
    assert_eq!(leaders[0].fence(), None, "its lease is over by its own clock, too");
}

#[test]
fn m701_a_base_of_another_layout_is_left_alone() {
    let world = World::new(&Shape::TINY, 3);
    let fresh = world.files();
    let base = Nib::with_layout(crate::nib::LAYOUT + 1);
    let mut world = World::around(world.clique.clone(), 3, base, fresh);
    (0..300).for_each(|_| world.step());
    assert_eq!(world.constellation.base().unwrap().version(), 0);
    assert_eq!(world.written, 0);
    // Eight instances have looked at it in each step.
    assert_eq!(world.constellation.counts().other_layouts, 8 * 300);
}

#[test]
fn i80_without_a_controller_chips_keep_all_they_hold() {
    let mut world = World::new(&Shape::TINY, 4);
    world.settle();
    for name in Application::ALL.into_iter().flat_map(|a| (0..INSTANCES).map(move |i| (a, i))) {
        world.constellation.stop(name);
    }
    (0..18).for_each(|tin| world.disconnect(tin, true));
    (0..300).for_each(|_| world.step());
    audit(&world, &world.condition(&[], &[]));
}

/// What the flow manager says in answer to what the front end says.
fn say(
    manager: &mut FlowManager,
    program: &Program,
    outcome: impl Fn(Table) -> Outcome,
) -> Vec<Output> {
    let result = |operation: &crate::apps::front_end::Operation| {
        (operation.key.clone(), operation.version, outcome(operation.key.0))
    };
    let results = program.operations.iter().map(result).collect();
    let mut out = Vec::new();
    manager.results(Time::ZERO, Results { tin: program.tin, results }, &mut out);
    out
}

fn program(out: &[Output]) -> &Program {
    match out {
        [Output::Program(program)] => program,
        other => panic!("expected one program, found {other:?}"),
    }
}

#[test]
fn m705_m707_i70_groups_before_flows_and_flows_before_groups() {
    let group = key(3, &7u16.to_be_bytes());
    let flow = key(3, &encode_prefix("203.0.113.0/24".parse().unwrap()));
    let next = aquila::pipeline::routes::Next::Group(7);
    let set = [
        Write::set(Table::IpFlow, &flow, &IpFlow { index: 9, next }.encode()),
        Write::set(Table::Group, &group, &encode_members(&[(64, 1)])),
    ];
    let batch = |number| {
        let row = BatchRow { number, ..BatchRow::default() };
        Write::set(Table::Batch, &[], &row.encode())
    };
    for fails in [false, true] {
        let (mut nib, mut manager, mut out) = (Nib::new(), FlowManager::new(1), Vec::new());
        nib.apply(1, &[&set[..], &[batch(1)]].concat()).unwrap();
        manager.learn(Time::ZERO, nib.since(0, &FlowManager::TABLES), &mut out);
        let tables = |p: &Program| p.operations.iter().map(|o| o.key.0).collect::<Vec<_>>();
        assert_eq!(tables(program(&out)), [Table::Group]);
        let outcome = if fails { Outcome::Failed } else { Outcome::Done };
        let mut out = say(&mut manager, program(&out), |_| outcome);
        if !fails {
            assert_eq!(tables(program(&out)), [Table::IpFlow]);
            out = say(&mut manager, program(&out), |_| Outcome::Done);
        }
        let [Output::Write(writes)] = &out[..] else { panic!("{out:?}") };
        nib.write(writes).unwrap();
        let (_, row) = nib.get(Table::Batch, &[]).unwrap();
        let row = BatchRow::decode(&row).unwrap();
        assert_eq!((row.is_done, row.failed), (true, if fails { [1, 1, 0] } else { [0; 3] }));
        if fails {
            continue;
        }
        manager.written(Time::ZERO, &mut Vec::new());
        // Taken out: the flow first.
        let delete = [Write::delete(Table::Group, &group), Write::delete(Table::IpFlow, &flow)];
        nib.apply(2, &[&delete[..], &[batch(2)]].concat()).unwrap();
        let mut out = Vec::new();
        let seen = manager.seen();
        manager.learn(Time::ZERO, nib.since(seen, &FlowManager::TABLES), &mut out);
        assert_eq!(tables(program(&out)), [Table::IpFlow]);
        let out = say(&mut manager, program(&out), |_| Outcome::Done);
        assert_eq!(tables(program(&out)), [Table::Group]);
        let out = say(&mut manager, program(&out), |_| Outcome::Done);
        let [Output::Write(writes)] = &out[..] else { panic!("{out:?}") };
        nib.write(writes).unwrap();
        assert_eq!(nib.get(Table::ProgrammingResult, &[&[6][..], &group].concat()), None);
    }
}

#[test]
fn m704_m731_a_lost_shard_leaves_the_routes_of_the_others() {
    let mut world = World::new(&Shape::TINY, 5);
    world.settle();
    let prefix = |shard: u8| format!("198.51.{shard}.0/24").parse().unwrap();
    for shard in 0..4u8 {
        let members = vec![(u16::from(shard), 1), (9, 3)];
        let message = Message::Reach { shard, version: 1, prefix: prefix(shard), members };
        world.constellation.hear(world.now, &message.encode());
    }
    world.constellation.hear(world.now, b"IB nothing of the kind");
    assert_eq!(world.told.len(), 0);
    world.settle();
    assert_eq!(world.told.iter().map(|told| told.0).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let reached = |world: &World, shard: u8| {
        let routes = ip::routes(&world.chips[4].file).unwrap();
        let address = format!("198.51.{shard}.77").parse().unwrap();
        let mut counts = std::collections::BTreeMap::<u16, u32>::new();
        for hash in 0..4 {
            if let Found::Group(to) = routes.look_up(address, hash) {
                *counts.entry(to.pod() * 2 + to.tin()).or_default() += 1;
            }
        }
        counts.into_iter().collect::<Vec<_>>()
    };
    for shard in 0..4u8 {
        assert_eq!(reached(&world, shard), [(u16::from(shard), 1), (9, 3)]);
    }
    // Shard 2 is silent for longer than that.
    let until = world.now + HOLD + Span::from_us(1_000_000);
    while world.now < until {
        for shard in [0, 1, 3] {
            world.constellation.hear(world.now, &Message::Alive { shard }.encode());
        }
        (0..50).for_each(|_| world.step());
    }
    world.settle();
    for shard in 0..4u8 {
        let expected = if shard == 2 { vec![] } else { vec![(u16::from(shard), 1), (9, 3)] };
        assert_eq!(reached(&world, shard), expected);
    }
}

proptest! {
    #[test]
    fn m702_m704_any_bytes_are_refused_or_written_back_the_same(
        bytes in prop::collection::vec(prop_oneof![0..7u8, any::<u8>()], 0..60),
        header in any::<bool>(),
    ) {
        if let Some(row) = SessionRow::decode(&bytes) { prop_assert_eq!(row.encode(), &bytes[..]); }
        if let Some(row) = EscapeRow::decode(&bytes, 4) { prop_assert_eq!(row.encode(), &bytes[..]); }
        if let Some(row) = decode_flows(&bytes, 2) { prop_assert_eq!(encode_flows(&row), &bytes[..]); }
        if let Some(row) = decode_prefix(&bytes) { prop_assert_eq!(encode_prefix(row), &bytes[..]); }
        if let Some(row) = IpFlow::decode(&bytes) { prop_assert_eq!(row.encode(), &bytes[..]); }
        if let Some(row) = decode_members(&bytes) { prop_assert_eq!(encode_members(&row), &bytes[..]); }
        if let Some(row) = IndexedRow::decode(&bytes) { prop_assert_eq!(row.encode(), &bytes[..]); }
        if let Some(row) = ResultRow::decode(&bytes) { prop_assert_eq!(row.encode(), &bytes[..]); }
        if let Some(row) = BatchRow::decode(&bytes) { prop_assert_eq!(row.encode(), &bytes[..]); }
        let bytes = if header { [&b"IB"[..], &bytes].concat() } else { bytes };
        if let Ok(message) = Message::decode(&bytes) { prop_assert_eq!(message.encode(), &bytes[..]); }
    }
}

/// A flow goes in after its group; a group that is there and changes in place keeps it waiting, but by PMOS (M811).
#[test]
fn m705_m811_by_pmos_flows_go_in_while_their_group_changes() {
    let group = key(3, &7u16.to_be_bytes());
    let flow = key(3, &encode_prefix("203.0.113.0/24".parse().unwrap()));
    let next = aquila::pipeline::routes::Next::Group(7);
    let members = |to| Write::set(Table::Group, &group, &encode_members(&[(to, 1)]));
    let batch = |number| {
        let row = BatchRow { number, ..BatchRow::default() };
        Write::set(Table::Batch, &[], &row.encode())
    };
    let flows = |out: &[Output]| {
        let programs = out.iter().filter_map(|output| match output {
            Output::Program(program) => Some(program),
            Output::Write(_) => None,
        });
        let operations = programs.flat_map(|program| &program.operations);
        operations.filter(|operation| operation.key.0 == Table::IpFlow).count()
    };
    for is_over_pmos in [false, true] {
        let session = SessionRow { is_up: true, is_ready: false, is_over_pmos, boot: 1 };
        let session = Write::set(Table::TinSession, &key(3, &[]), &session.encode());
        let (mut nib, mut manager, mut out) = (Nib::new(), FlowManager::new(1), Vec::new());
        let row = IpFlow { index: 9, next }.encode();
        let first = [session, members(64), Write::set(Table::IpFlow, &flow, &row), batch(1)];
        nib.apply(1, &first).unwrap();
        manager.learn(Time::ZERO, nib.since(0, &FlowManager::TABLES), &mut out);
        let asked = program(&out).clone();
        assert_eq!(asked.operations.len(), 1, "the group alone");
        // It changes before its result is in.
        out.clear();
        nib.write(&[members(128)]).unwrap();
        manager.learn(Time::ZERO, nib.since(manager.seen(), &FlowManager::TABLES), &mut out);
        assert_eq!(flows(&out), 0, "nothing is known of any version");
        out = say(&mut manager, &asked, |_| Outcome::Done);
        assert_eq!(flows(&out), usize::from(is_over_pmos));
        // After another start of its chip nothing is there.
        let again = SessionRow { is_up: true, is_ready: false, is_over_pmos, boot: 2 };
        let again = Write::set(Table::TinSession, &key(3, &[]), &again.encode());
        nib.write(&[again, Write::set(Table::IpFlow, &flow, &IpFlow { index: 10, next }.encode())])
            .unwrap();
        out.clear();
        manager.learn(Time::ZERO, nib.since(manager.seen(), &FlowManager::TABLES), &mut out);
        assert_eq!(flows(&out), 0);
    }
}

#[test]
fn m813_a_batch_waits_longer_for_who_carries_traffic_and_has_a_session_and_for_nobody_else() {
    let group = key(3, &7u16.to_be_bytes());
    let rows = [
        Write::set(Table::Group, &group, &encode_members(&[(64, 1)])),
        Write::set(Table::Batch, &[], &BatchRow { number: 1, ..BatchRow::default() }.encode()),
    ];
    let up = SessionRow { is_up: true, is_ready: true, is_over_pmos: false, boot: 1 };
    let cases = [
        (up, true),
        (SessionRow { is_up: false, ..up }, false),
        (SessionRow { is_ready: false, ..up }, false),
        (SessionRow { is_over_pmos: true, ..up }, false),
    ];
    for (session, waits) in cases {
        let mut manager = FlowManager::new(1).waiting(PATIENCE * 2);
        let (mut nib, mut out) = (Nib::new(), Vec::new());
        let session = [Write::set(Table::TinSession, &key(3, &[]), &session.encode())];
        nib.apply(1, &[&session[..], &rows[..]].concat()).unwrap();
        manager.learn(Time::ZERO, nib.since(0, &FlowManager::TABLES), &mut out);
        out.clear();
        manager.tick(Time::ZERO + PATIENCE, &mut out);
        let is_written = out.iter().any(|output| matches!(output, Output::Write(_)));
        assert_eq!(is_written, !waits, "{out:?}");
        assert_eq!(manager.counts().unreachable, u64::from(!waits));
        manager.tick(Time::ZERO + PATIENCE * 2, &mut out);
        assert_eq!(manager.counts().unreachable, 1);
    }
}
