//! Flows that change one at a time, in any order within a batch, against cells that are followed by them.

use aquila::pipeline::plan::Plan;
use aquila::tables::check::check;
use aquila::tables::compute::{compute, routes};
use aquila::topology::{Fibres, Shape, Topology};
use aquila::turns::TurnTable;
use kernel::Stream;
use proptest::prelude::*;

use super::*;

/// Whether a cell to a TiN arrives, whichever way it takes from an input port.
struct Walk<'a> {
    clique: &'a Clique,
    flows: &'a Flows,
    to: u16,
    known: Vec<Option<bool>>,
}

impl Walk<'_> {
    fn arrives(&mut self, tin: u16, port: u8, rvc: u8) -> bool {
        if tin == self.to {
            return true;
        }
        let topology = &self.clique.topology;
        let shape = topology.shape();
        let Some(class) = self.clique.class(tin, port).filter(|c| c.channels().contains(&rvc))
        else {
            return false;
        };
        let known = (usize::from(tin) * 64 + usize::from(port)) * 3 + usize::from(rvc);
        if let Some(arrives) = self.known[known] {
            return arrives;
        }
        self.known[known] = Some(false);
        let (pod, place) = shape.split(self.to);
        let component = if shape.split(tin).0 == pod { shape.pods + place } else { pod };
        let flow = self.flows.get(tin, class, rvc, component).without(self.clique.back(tin, port));
        let arrives = flow.all() != 0
            && ports(flow.all()).all(|output| {
                let far = topology.far(tin, output).unwrap();
                let rvc = next_rvc(topology.kind(port), topology.kind(output), rvc);
                self.arrives(far.tin, far.port, rvc)
            });
        self.known[known] = Some(arrives);
        arrives
    }
}

/// The first pair of TiNs between which a cell can get stuck.
fn stuck(clique: &Clique, flows: &Flows) -> Option<(u16, u16)> {
    let shape = clique.topology.shape();
    for to in 0..shape.tins() {
        let known = vec![None; usize::from(shape.tins()) * 64 * 3];
        let mut walk = Walk { clique, flows, to, known };
        let mut from = 0..shape.tins();
        if let Some(from) = from.find(|&from| !walk.arrives(from, shape.external_ports(), 0)) {
            return Some((from, to));
        }
    }
    None
}

/// Links and TiNs that are drained at random, so that all cells still have ordinary ways.
fn drained(clique: &Clique, stream: &mut Stream, percent: u64) -> Condition {
    loop {
        let topology = &clique.topology;
        let mut condition = Condition::healthy(topology);
        for link in 0..topology.links().len() as u32 {
            if stream.below(100) < percent {
                condition.set_link(link, State::Drained);
            }
        }
        if stream.below(2) == 0 {
            condition.set_tin(stream.below(topology.shape().tins().into()) as u16, State::Drained);
        }
        let tables = compute(topology, &clique.turns, &condition);
        let report = check(topology, &clique.turns, &condition, &tables).unwrap();
        if report.escapes == 0 {
            return condition;
        }
    }
}

/// What of a wave takes effect when.
#[derive(Clone, Copy)]
enum Order {
    Waves,
    /// All at once, which must fail for the test to be one.
    AtOnce,
}

/// From one condition to another; how many pairs were stuck in between.
fn change(shape: &Shape, turns: TurnTable, seed: u64, percent: u64, order: Order) -> u64 {
    let topology = Topology::new(shape, Fibres::Grid).unwrap();
    let clique = Clique::new(topology, turns, Plan::new(shape, 2));
    let mut stream = Stream::new(seed, "what is drained, and in which order", 0);
    let conditions = [(); 2].map(|()| drained(&clique, &mut stream, percent));
    let [mut now, target] = conditions.map(|c| routes(&clique.topology, &turns, &c));
    let live = live(&clique, &Condition::healthy(&clique.topology));
    let condition = Condition::healthy(&clique.topology);
    let mut found = 0;
    for _ in 0..40 {
        let tins = (0..shape.tins()).collect();
        let wave = match order {
            Order::Waves => next(&clique, &condition, &live, (&now, &target), &tins),
            Order::AtOnce => {
                let all = |tin| {
                    let rows =
                        move |c: InputClass| c.channels().map(move |rvc| (tin, c.index(), rvc));
                    InputClass::ALL.into_iter().flat_map(rows)
                };
                let rows = (0..shape.tins()).flat_map(all).collect();
                Wave { flows: target.clone(), rows, forced: 0 }
            }
        };
        assert_eq!(wave.forced, 0, "there is always an order");
        if wave.rows.is_empty() {
            assert!(now == target, "it ends where it should");
            return found;
        }
        let mut rows: Vec<_> = wave.rows.into_iter().collect();
        while !rows.is_empty() {
            let (tin, class, rvc) = rows.swap_remove(stream.below(rows.len() as u64) as usize);
            let class = InputClass::ALL[class];
            let mut has_changed = false;
            for component in 0..components(shape) {
                let flow = wave.flows.get(tin, class, rvc, component);
                has_changed |= flow != now.get(tin, class, rvc, component);
                now.set(tin, class, rvc, component, flow);
            }
            if has_changed {
                found += u64::from(stuck(&clique, &now).is_some());
            }
        }
        if matches!(order, Order::AtOnce) {
            return found;
        }
    }
    panic!("40 batches, and no end");
}

const SMALL: Shape =
    Shape { tins_per_pod: 4, pods: 5, local_ports: 6, global_ports: 2, ..Shape::FULL };
const TURNS: [TurnTable; 4] = [TurnTable::P1, TurnTable::P2, TurnTable::P3, TurnTable::P4];

#[test]
fn i71_without_batches_cells_would_be_lost() {
    let found = (0..12).map(|seed| change(&SMALL, TurnTable::P1, seed, 25, Order::AtOnce));
    assert!(found.sum::<u64>() > 0, "the test must be able to fail");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn slow_i71_every_state_between_two_solutions_has_a_way_for_every_cell(
        seed in any::<u64>(), percent in 1..40u64, turns in 0..4usize,
    ) {
        prop_assert_eq!(change(&SMALL, TURNS[turns], seed, percent, Order::Waves), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn slow_i71_every_state_between_many_solutions(
        seed in any::<u64>(), percent in 1..60u64, turns in 0..4usize,
    ) {
        prop_assert_eq!(change(&SMALL, TURNS[turns], seed, percent, Order::Waves), 0);
    }
}
