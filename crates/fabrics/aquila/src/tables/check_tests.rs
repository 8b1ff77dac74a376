//! Tables with and without flaws.

use kernel::Stream;
use proptest::prelude::*;

use super::*;
use crate::tables::compute::{compute, expand, routes};
use crate::tables::flows::{Flow, InputClass};
use crate::topology::packaging::{Packaging, Part};
use crate::topology::{Fibres, LocalWiring, Shape};

/// A Clique and what is wrong with it.
struct Clique {
    topology: Topology,
    packaging: Packaging,
    condition: Condition,
}

impl Clique {
    fn new(shape: &Shape) -> Self {
        let topology = Topology::new(shape, Fibres::Grid).unwrap();
        let (packaging, condition) = (Packaging::new(&topology), Condition::healthy(&topology));
        Self { topology, packaging, condition }
    }

    fn fail(&mut self, part: Part) {
        self.packaging.fail(&mut self.condition, part);
    }

    fn heal(&mut self) {
        self.condition = Condition::healthy(&self.topology);
    }

    fn check_with(&self, turns: &TurnTable) -> Result<Report, Flaw> {
        let tables = compute(&self.topology, turns, &self.condition);
        check(&self.topology, turns, &self.condition, &tables)
    }

    #[track_caller]
    fn check(&self) -> Report {
        self.check_with(&TurnTable::P1).unwrap_or_else(|flaw| panic!("{flaw}"))
    }

    /// All parts.
    fn parts(&self) -> Vec<Part> {
        self.packaging.parts(self.topology.links().len() as u32).collect()
    }
}

/// The longest way, and the longest of those that shortest ways alone make.
#[track_caller]
fn check_healthy(shape: &Shape, turns: &TurnTable, longest: (u8, u8)) {
    let report = Clique::new(shape).check_with(turns).unwrap_or_else(|flaw| panic!("{flaw}"));
    assert_eq!((report.longest, report.longest_minimal), longest, "{shape:?}");
    assert_eq!((report.escapes, report.escapes_minimal, report.cut_off), (0, 0, 0), "{shape:?}");
    // I12: sixteen links are enough, whenever a cell escapes.
    assert!(report.longest_escape <= 8, "{report:?}");
}

#[test]
fn i20_i25_i27_m318_healthy_cliques_have_no_flaw() {
    for turns in [TurnTable::P1, TurnTable::P2, TurnTable::P3, TurnTable::P4] {
        check_healthy(&Shape::MINI, &turns, (7, 3));
    }
    // Each of its TiNs has a port to each pod.
    check_healthy(&Shape::TINY, &TurnTable::P1, (4, 2));
    for local_wiring in [LocalWiring::Uniform, LocalWiring::Ring] {
        check_healthy(&Shape { local_wiring, pods: 13, ..Shape::FULL }, &TurnTable::P1, (7, 3));
    }
}

#[test]
fn slow_i20_the_full_clique_has_no_flaw() {
    check_healthy(&Shape::FULL, &TurnTable::P1, (7, 3));
    check_healthy(&Shape::HALF, &TurnTable::P1, (7, 3));
}

#[track_caller]
fn check_single_failures(shape: &Shape) {
    let mut clique = Clique::new(shape);
    for part in clique.parts() {
        if matches!(part, Part::Link(link) if link % 11 != 0) {
            continue;
        }
        clique.heal();
        clique.fail(part);
        let report = clique.check();
        assert_eq!(report.cut_off, 0, "{part}");
        assert_eq!(report.escapes, 0, "{part}");
    }
}

#[test]
fn slow_i20_i25_no_single_failure_makes_a_flaw() {
    check_single_failures(&Shape { pods: 9, global_ports: 4, ..Shape::MINI });
}

#[test]
fn slow_i20_i25_no_single_failure_of_the_mini_makes_a_flaw() {
    check_single_failures(&Shape::MINI);
}

/// Some parts of a Clique, by a stream of their own.
fn some_parts(clique: &Clique, seed: u64, count: usize) -> Vec<Part> {
    let parts = clique.parts();
    let mut stream = Stream::new(seed, "parts that fail", 0);
    (0..count).map(|_| parts[stream.below(parts.len() as u64) as usize]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever is left: no circle, and all that is still joined reaches each other.
    #[test]
    fn slow_i20_i25_random_failures_of_the_mini_make_no_flaw(seed in any::<u64>(), count in 0..120usize) {
        let mut clique = Clique::new(&Shape::MINI);
        for part in some_parts(&clique, seed, count) {
            // Racks and chassis leave too little of a small Clique.
            if !matches!(part, Part::Rack(_) | Part::Chassis(_)) {
                clique.fail(part);
            }
        }
        let turns = [TurnTable::P1, TurnTable::P2, TurnTable::P3, TurnTable::P4][count % 4];
        let report = clique.check_with(&turns);
        prop_assert!(report.is_ok(), "{}", report.unwrap_err());
    }

    /// The same where links die one by one, until next to nothing is left, and TiNs, and some are drained.
    #[test]
    fn i20_i25_few_links_are_left_and_no_flaw(seed in any::<u64>(), percent in 1..95u64) {
        let shape = Shape { tins_per_pod: 5, pods: 6, local_ports: 5, global_ports: 3, ..Shape::FULL };
        let mut clique = Clique::new(&shape);
        let mut stream = Stream::new(seed, "links that fail", 0);
        for link in 0..clique.topology.links().len() as u32 {
            match stream.below(100) {
                dice if dice < percent => clique.condition.set_link(link, State::Dead),
                dice if dice % 10 == 9 => clique.condition.set_link(link, State::Drained),
                _ => {}
            }
        }
        for tin in 0..shape.tins() {
            match stream.below(400) {
                dice if dice < percent => clique.condition.set_tin(tin, State::Dead),
                dice if dice >= 370 => clique.condition.set_tin(tin, State::Drained),
                _ => {}
            }
        }
        let report = clique.check_with(&TurnTable::P1);
        prop_assert!(report.is_ok(), "{}", report.unwrap_err());
    }
}

#[test]
fn slow_i20_i25_failures_of_the_full_clique_make_no_flaw() {
    let mut clique = Clique::new(&Shape::FULL);
    let single = [
        Part::Link(0),
        Part::Link(7_000),
        Part::Module(3),
        Part::Cable(17),
        Part::Bundle(40),
        Part::Tin(5),
        Part::Card(9),
        Part::Chassis(3),
        Part::Rack(11),
    ];
    for part in single {
        clique.heal();
        clique.fail(part);
        let report = clique.check();
        assert_eq!((report.cut_off, report.escapes), (0, 0), "{part}");
    }
    clique.heal();
    for part in some_parts(&clique, 1, 300) {
        if !matches!(part, Part::Rack(_) | Part::Chassis(_)) {
            clique.fail(part);
        }
    }
    clique.check();
}

#[test]
fn m308_where_no_legal_turn_is_left_cells_escape() {
    // Two pods of two TiNs with a link between each two: without the link inside pod 0, and that between the
    // second TiNs, TiN 1 is reached over no other.
    let shape = Shape { tins_per_pod: 3, pods: 2, local_ports: 2, global_ports: 1, ..Shape::FULL };
    let mut clique = Clique::new(&shape);
    let link = |a: u16, b: u16| {
        let joins = |l: &&crate::topology::Link| (l.low.tin, l.high.tin) == (a, b);
        let links = clique.topology.links();
        let found = links.iter().find(joins).unwrap();
        clique.topology.link(found.low.tin, found.low.port).unwrap()
    };
    for dead in [link(0, 1), link(1, 2)] {
        clique.condition.set_link(dead, State::Dead);
    }
    let report = clique.check();
    // TiNs 0 and 2 reach 1 only over the other pod, and so back; what enters at another TiN escapes there.
    assert!(report.escapes > 0 && report.cut_off == 0, "{report:?}");
}

#[test]
fn m730_nothing_passes_through_what_is_drained() {
    let mut clique = Clique::new(&Shape::MINI);
    let drained = [3u16, 10, 40];
    for tin in drained {
        clique.condition.set_tin(tin, State::Drained);
    }
    clique.condition.set_link(0, State::Drained);
    let report = clique.check();
    assert_eq!((report.escapes, report.cut_off), (0, 0));
    let tables = compute(&clique.topology, &TurnTable::P1, &clique.condition);
    let shape = Shape::MINI;
    for tin in 0..shape.tins() {
        for port in 0..=shape.external_ports() {
            for rvc in 0..ROUTING_VCS {
                for component in 0..super::super::components(&shape) {
                    let row =
                        tables.by_index(tables.entry(tables.block(tin, port, rvc), component));
                    for output in ports(row.minimal_ports() | row.other_ports()) {
                        assert_ne!(
                            clique.topology.link(tin, output),
                            Some(0),
                            "link 0 at TiN {tin}"
                        );
                        let far = clique.topology.far(tin, output).unwrap().tin;
                        let is_there =
                            component >= shape.pods && shape.split(far).1 == component - shape.pods;
                        assert!(is_there || !drained.contains(&far), "TiN {tin} to {far}");
                    }
                }
            }
        }
    }
}

/// The flaw of a Clique whose flows were changed.
#[track_caller]
fn flaw_of(change: impl FnOnce(&Clique, &mut crate::tables::flows::Flows)) -> Flaw {
    let clique = Clique::new(&Shape::MINI);
    let mut flows = routes(&clique.topology, &TurnTable::P1, &clique.condition);
    change(&clique, &mut flows);
    let tables = expand(&clique.topology, &clique.condition, &flows);
    check(&clique.topology, &TurnTable::P1, &clique.condition, &tables).unwrap_err()
}

fn only(port: u8) -> Flow {
    Flow { minimal: 1 << port, others: 0 }
}

#[test]
fn i20_turns_with_a_circle_are_found_in_the_tables() {
    let clique = Clique::new(&Shape { pods: 13, ..Shape::FULL });
    let flaw = clique.check_with(&TurnTable::from_bits(u16::MAX)).unwrap_err();
    let Flaw::Circle(circle) = &flaw else { panic!("{flaw}") };
    assert!(circle.len() >= 2 && flaw.to_string().contains("on channel 0; port"), "{flaw}");
}

#[test]
fn i22_a_third_link_between_pods_is_found() {
    // What comes from another pod on channel 0 or 1 and is for pod 3 goes on to yet another pod.
    let flaw = flaw_of(|clique, flows| {
        let shape = *clique.topology.shape();
        for tin in (0..shape.tins()).filter(|&tin| shape.split(tin).0 != 3) {
            let leads = |&port: &u8| {
                let far = clique.topology.far(tin, port);
                far.is_some_and(|far| shape.split(far.tin).0 != 3)
            };
            let port = (shape.local_ports..shape.external_ports()).find(leads).unwrap();
            for rvc in 0..2 {
                flows.set(tin, InputClass::Global, rvc, 3, only(port));
            }
        }
    });
    let is_it = matches!(flaw, Flaw::NoChannel { place: Place { rvc: 1, .. }, .. });
    assert!(is_it, "{flaw}");
}

#[test]
fn i25_an_entry_that_leaves_the_pod_is_found() {
    let flaw =
        flaw_of(|_, flows| flows.set(2, InputClass::Terminal, 0, Shape::MINI.pods, only(18)));
    assert!(matches!(flaw, Flaw::Leaves { output: 18, .. }), "{flaw}");
}

#[test]
fn i23_a_forbidden_turn_is_found() {
    // From 2 over 0 (even-) to 3 (odd+): P1 forbids it, and in one place alone it makes no circle.
    let flaw = flaw_of(|clique, flows| {
        let port = |from: u16, to: u16| {
            let leads = |&port: &u8| clique.topology.far(from, port).unwrap().tin == to;
            (0..18).find(leads).unwrap()
        };
        let to = Shape::MINI.pods + 3;
        flows.set(2, InputClass::Terminal, 0, to, only(port(2, 0)));
        flows.set(0, InputClass::Local(HopType::EvenDown), 0, to, only(port(0, 3)));
    });
    assert!(matches!(flaw, Flaw::Turn { .. }), "{flaw}");
}

#[test]
fn i25_a_way_that_ends_is_found() {
    let clique = Clique::new(&Shape::MINI);
    let mut tables = compute(&clique.topology, &TurnTable::P1, &clique.condition);
    // TiN 4 has no entries at all any more: what comes there must escape.
    let nothing = 0;
    let each = usize::from(Shape::MINI.ports()) * usize::from(ROUTING_VCS);
    tables.blocks[4 * each..5 * each].fill(nothing);
    let run = |tables: &Tables| check(&clique.topology, &TurnTable::P1, &clique.condition, tables);
    let report = run(&tables).unwrap();
    // Its own cells to 67 others, and cells of others on their way.
    assert!(report.escapes_minimal > 67 && report.escapes > report.escapes_minimal, "{report:?}");
    assert_eq!(report.cut_off, 0);
    tables.escape.forget(4);
    let found = run(&tables);
    assert!(matches!(found, Err(Flaw::Escape { at: 4, .. })), "{found:?}");
}

#[test]
fn i25_an_entry_that_leads_nowhere_is_found() {
    let mut clique = Clique::new(&Shape::MINI);
    let mut tables = compute(&clique.topology, &TurnTable::P1, &clique.condition);
    clique.fail(Part::Link(5));
    // The escapes know of it, the entries do not.
    tables.escape = crate::tables::Escape::compute(&clique.topology, &clique.condition);
    let found = check(&clique.topology, &TurnTable::P1, &clique.condition, &tables);
    assert!(matches!(found, Err(Flaw::DeadEnd { .. })), "{found:?}");
}

#[test]
fn i29_what_is_sent_back_is_found() {
    let clique = Clique::new(&Shape::MINI);
    let mut tables = compute(&clique.topology, &TurnTable::P1, &clique.condition);
    // What comes to TiN 0 from TiN 3 and is for pod 1 goes back to TiN 3.
    let count = usize::from(super::super::components(&Shape::MINI));
    for port in (0..18).filter(|&port| clique.topology.far(0, port).unwrap().tin == 3) {
        tables.rows.push(Row { minimal: [port; 8], ..Row::EMPTY });
        let row = tables.rows.len() as u32 - 1;
        let (old, new) = (tables.block(0, port, 0) as usize, tables.entries.len());
        tables.entries.extend_from_within(old..old + count);
        tables.entries[new + 1] = row;
        let place = crate::tables::block_place(&Shape::MINI, 0, port, 0);
        tables.blocks[place] = new as u32;
    }
    let found = check(&clique.topology, &TurnTable::P1, &clique.condition, &tables);
    assert!(matches!(found, Err(Flaw::SentBack { .. })), "{found:?}");
}
