//! Flows by class, through registers, to tables.

use aquila::tables::compute::{compute, routes};
use aquila::topology::Fibres;
use aquila::topology::packaging::{Packaging, Part};
use kernel::{Stream, Time};
use proptest::prelude::*;

use super::*;
use crate::flash::Flash;
use crate::memory::Memory;
use crate::registers::map::CLASS_MODE;
use crate::rpc::{Agent, Caller, MESSAGE_BYTES_MAX, Outcome, pack};

/// Writes items to a chip as a controller would: by requests, one at a time; how many entries were written.
fn program(chip: &mut RegisterFile, items: Vec<Item>) -> usize {
    let (mut caller, mut agent) = (Caller::new(), Agent::new(&Memory::default()).unwrap());
    let (mut written, mut flash) = (0, Flash::default());
    for request in pack(items) {
        let bytes = caller.send(request).unwrap().to_vec();
        assert!(bytes.len() <= MESSAGE_BYTES_MAX, "I73");
        let answer = agent.receive(Time::ZERO, chip, &mut flash, &bytes).unwrap().to_vec();
        for (item, outcome) in caller.receive(&answer).unwrap() {
            assert_eq!(outcome, Outcome::Written, "{item:?}");
            written += match item {
                Item::WriteBlock { size, bytes, .. } => bytes.len() / usize::from(size),
                _ => 1,
            };
        }
    }
    written
}

/// Programs all chips, from what they hold, and compares what they hold then with tables computed directly.
#[track_caller]
fn check(
    topology: &Topology,
    turns: &TurnTable,
    condition: &Condition,
    chips: &mut [RegisterFile],
) {
    let flows = routes(topology, turns, condition);
    let escape = Escape::compute(topology, condition);
    let solution = Solution { topology, turns, condition, flows: &flows, escape: &escape };
    for (tin, chip) in (0..).zip(&mut *chips) {
        let mut image = chip.clone();
        expand(&solution, tin, &mut image);
        let items = difference(chip, &image, &owned());
        let differ: usize = owned().iter().map(|r| chip.differing(&image, r).len()).sum();
        assert_eq!(program(chip, items), differ, "I76: TiN {tin}");
        assert!(*chip == image, "TiN {tin}");
    }
    let expected = compute(topology, turns, condition);
    assert!(tables(topology.shape(), chips).unwrap() == expected);
}

fn fresh(topology: &Topology) -> Vec<RegisterFile> {
    vec![RegisterFile::new(); usize::from(topology.shape().tins())]
}

#[track_caller]
fn check_shape(shape: &Shape, seed: u64, failures: usize) {
    let topology = Topology::new(shape, Fibres::Grid).unwrap();
    let mut chips = fresh(&topology);
    let mut condition = Condition::healthy(&topology);
    check(&topology, &TurnTable::P1, &condition, &mut chips);
    let packaging = Packaging::new(&topology);
    let parts: Vec<Part> = packaging.parts(topology.links().len() as u32).collect();
    let mut stream = Stream::new(seed, "parts that fail", 0);
    for _ in 0..failures {
        packaging.fail(&mut condition, parts[stream.below(parts.len() as u64) as usize]);
    }
    // From what they hold: what has failed is taken out, and comes back.
    check(&topology, &TurnTable::P3, &condition, &mut chips);
    check(&topology, &TurnTable::P1, &Condition::healthy(&topology), &mut chips);
}

#[test]
fn slow_i75_registers_hold_the_tables_of_the_tiny_and_mini_cliques() {
    check_shape(&Shape::TINY, 1, 2);
    check_shape(&Shape::MINI, 2, 5);
}

#[test]
fn slow_i75_registers_hold_the_tables_of_the_half_clique() {
    check_shape(&Shape::HALF, 3, 20);
}

#[test]
fn slow_i75_registers_hold_the_tables_of_the_full_clique() {
    check_shape(&Shape::FULL, 4, 40);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Links and TiNs that fail, are drained and come back, in a Clique with detours.
    #[test]
    fn slow_i75_random_failures(seed in any::<u64>(), percent in prop::collection::vec(0..60u64, 1..4)) {
        let shape = Shape { tins_per_pod: 5, pods: 6, local_ports: 5, global_ports: 3, ..Shape::FULL };
        let topology = Topology::new(&shape, Fibres::Grid).unwrap();
        let mut stream = Stream::new(seed, "what fails", 0);
        let mut chips = fresh(&topology);
        for (step, percent) in percent.into_iter().enumerate() {
            let mut condition = Condition::healthy(&topology);
            let mut state = || match stream.below(100) {
                dice if dice >= percent => State::Live,
                dice if dice % 3 == 0 => State::Drained,
                _ => State::Dead,
            };
            for link in 0..topology.links().len() as u32 {
                condition.set_link(link, state());
            }
            for tin in (0..shape.tins()).filter(|tin| tin % 4 == 1) {
                condition.set_tin(tin, state());
            }
            let turns = [TurnTable::P1, TurnTable::P2, TurnTable::P3, TurnTable::P4][step];
            check(&topology, &turns, &condition, &mut chips);
        }
    }
}

/// Every port of the tiny Clique against what its links say, without flows or classes.
#[test]
fn m725_i75_the_only_ways_of_the_tiny_clique() {
    let shape = Shape::TINY;
    let topology = Topology::new(&shape, Fibres::Grid).unwrap();
    let mut chips = fresh(&topology);
    check(&topology, &TurnTable::P1, &Condition::healthy(&topology), &mut chips);
    for (tin, chip) in (0..shape.tins()).zip(&chips) {
        let mates = |port: u8| topology.far(tin, port).map(|far| shape.split(far.tin).0);
        for pod in (0..shape.pods).filter(|&pod| pod != shape.split(tin).0) {
            let direct: Vec<u8> =
                (0..shape.external_ports()).filter(|&p| mates(p) == Some(pod)).collect();
            // Each TiN has a port to each other pod, and cells from there do not go back.
            for port in 0..=shape.external_ports() {
                let row = chip.get(ROUTE, [port.into(), 0, pod.into()]);
                let comes_from_there = direct.contains(&port);
                let allowed = |slot: &u8| direct.contains(slot) && !comes_from_there;
                assert!(
                    row[..8].iter().all(|slot| allowed(slot) || comes_from_there && *slot == NONE)
                );
            }
        }
    }
}

#[test]
fn m706_registers_that_hold_no_tables_are_refused() {
    let shape = Shape::TINY;
    let topology = Topology::new(&shape, Fibres::Grid).unwrap();
    let mut chips = fresh(&topology);
    check(&topology, &TurnTable::P1, &Condition::healthy(&topology), &mut chips);
    let refused = |change: &dyn Fn(&mut RegisterFile)| {
        let mut chips = chips.clone();
        change(&mut chips[7]);
        tables(&shape, &chips).unwrap_err()
    };
    let error = refused(&|chip| chip.set(ID_GNET, [], 64));
    assert_eq!(error, ReadBack::Address { tin: 7, found: 64, expected: 3 << 10 | 1 << 6 });
    // A port that a TiN of this shape has not; a slot of eight; a pod that is not there.
    let bad = ReadBack::Row { tin: 7, port: 2, rvc: 0, at: 1 };
    assert_eq!(refused(&|chip| chip.set(ROUTE, [2, 0, 1], [34; 32])), bad);
    let mut half = [NONE; 32];
    half[0] = 3;
    assert_eq!(refused(&|chip| chip.set(ROUTE, [2, 0, 1], half)), bad);
    let error = refused(&|chip| chip.set(ROUTE, [2, 0, 9], [0; 32]));
    assert_eq!(error, ReadBack::Row { tin: 7, port: 2, rvc: 0, at: 9 });
    let error = refused(&|chip| chip.set(TERMINAL, [1], 0));
    assert_eq!(error, ReadBack::Terminal { tin: 7, endpoint: 1 });
    let error = tables(&shape, &chips[1..]).unwrap_err();
    assert_eq!(error, ReadBack::Count { found: 17, expected: 18 });
    // What the controller set elsewhere is none of this.
    let mut other = chips[0].clone();
    other.set(CLASS_MODE, [0], 3);
    assert_eq!(difference(&chips[0], &other, &owned()), []);
}
