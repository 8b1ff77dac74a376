//! What the tables say.

use std::sync::LazyLock;

use super::compute::{compute, expand, routes, update};
use super::condition::State;
use super::flows::{CLASSES, InputClass};
use super::slots::ports;
use super::*;
use crate::topology::{Fibres, Topology};
use crate::turns::{HopType, TurnTable};

fn wire(shape: &Shape) -> Topology {
    Topology::new(shape, Fibres::Grid).unwrap()
}

fn healthy(shape: &Shape) -> (Topology, Tables) {
    let topology = wire(shape);
    let tables = compute(&topology, &TurnTable::P1, &Condition::healthy(&topology));
    (topology, tables)
}

// Worked out once for all tests that only read it.
static FULL: LazyLock<(Topology, Tables)> = LazyLock::new(|| healthy(&Shape::FULL));

/// A healthy full Clique.
pub fn full() -> (&'static Topology, &'static Tables) {
    (&FULL.0, &FULL.1)
}

fn to_pod(pod: u16) -> Address {
    Address::new(pod, 0, Endpoint::HOST_0)
}

/// All places of a shape at which cells can come in.
fn inputs(shape: &Shape) -> impl Iterator<Item = (u16, u8)> + use<> {
    let (tins, ports) = (shape.tins(), shape.external_ports());
    (0..tins).flat_map(move |tin| (0..=ports).map(move |port| (tin, port)))
}

#[test]
fn m315_a40_the_shortest_ways_to_another_pod() {
    let (topology, tables) = full();
    let terminal = Shape::FULL.external_ports();
    for (tin, pod) in (0..12).flat_map(|tin| (1..48).map(move |pod| (tin, pod))) {
        let row = tables.row(tin, terminal, 0, to_pod(pod));
        let ports: Vec<u8> = ports(row.minimal_ports()).collect();
        let kinds: Vec<PortKind> = ports.iter().map(|&port| topology.kind(port)).collect();
        if kinds.contains(&PortKind::Global) {
            assert_eq!(kinds, [PortKind::Global], "its own port alone");
        } else {
            assert!([4, 6].contains(&ports.len()), "{} ports", ports.len());
        }
    }
}

#[test]
fn m316_m317_ways_inside_a_pod() {
    let (topology, tables) = full();
    let terminal = Shape::FULL.external_ports();
    for (from, to) in (0..12u16).flat_map(|a| (0..12).map(move |b| (a, b))).filter(|(a, b)| a != b)
    {
        let row = tables.row(from, terminal, 0, Address::new(0, to, Endpoint::HOST_0));
        let tins = |mask| ports(mask).map(|port| topology.far(from, port).unwrap().tin);
        assert!(tins(row.minimal_ports()).all(|tin| tin == to));
        assert_eq!(row.minimal_ports().count_ones(), if from / 2 == to / 2 { 4 } else { 2 });
        let mut detours: Vec<u16> = tins(row.other_ports()).collect();
        detours.sort_unstable();
        detours.dedup();
        assert_eq!(detours.len(), usize::from(TurnTable::P1.detours(12, from, to)), "I24");
    }
}

#[test]
fn m304_m317_detours_between_pods_are_for_channel_0_alone() {
    let (topology, tables) = full();
    let is_global = |port: u8| topology.kind(port) == PortKind::Global;
    let terminal = Shape::FULL.external_ports();
    for (tin, port) in inputs(&Shape::FULL).take(12 * 33) {
        for pod in 1..48 {
            for rvc in 0..ROUTING_VCS {
                let row = tables.row(tin, port, rvc, to_pod(pod));
                let others = ports(row.other_ports()).filter(|&port| is_global(port)).count();
                let wired = ports(0xFF << 24).filter(|&p| topology.far(tin, p).is_some()).count();
                let own = ports(row.minimal_ports()).filter(|&port| is_global(port)).count();
                // A cell from another pod goes on by the shortest way.
                let is_first = rvc == 0 && (port == terminal || !is_global(port));
                assert_eq!(others, if is_first { wired - own } else { 0 }, "{tin} {port} {rvc}");
                let locals = row.other_ports().count_ones() as usize - others;
                assert_eq!(locals > 0, port == terminal && rvc == 0, "{tin} {port} {rvc}");
            }
        }
    }
}

#[test]
fn m302_m311_ports_take_turns_in_slots_of_other_ways() {
    let (_, tables) = healthy(&Shape::HALF);
    for row in tables.rows() {
        for slots in [&row.minimal[..], &row.others[..]] {
            assert!(slots.iter().all(|&port| (port == NONE) == (slots[0] == NONE)));
        }
        let count = |port: u8| row.others.iter().filter(|&&slot| slot == port).count();
        let counts = || row.others.iter().map(|&port| count(port));
        assert!(counts().max().unwrap() - counts().min().unwrap() <= 1, "{:?}", row.others);
    }
}

/// In every row of every Clique, also where one link between the two pods is dead: of the slots of shortest ways each
/// link between pods has as many as any other, but for one, and so has each port to its TiN of what that has.
#[test]
fn slow_m315_links_to_a_pod_have_as_many_slots_each() {
    for shape in [Shape::TINY, Shape::MINI, Shape::HALF, Shape::FULL] {
        let (topology, tables) = healthy(&shape);
        let dead = wire(&shape).link(0, shape.local_ports).unwrap();
        let mut condition = Condition::healthy(&topology);
        slots_are_even(&topology, &tables, &condition);
        condition.set_link(dead, State::Dead);
        let tables = compute(&topology, &TurnTable::P1, &condition);
        slots_are_even(&topology, &tables, &condition);
    }
}

fn slots_are_even(topology: &Topology, tables: &Tables, condition: &Condition) {
    let shape = *topology.shape();
    let terminal = shape.external_ports();
    let links_of = |tin: u16, pod: u16| {
        let lives = |port: &u8| {
            let link = topology.link(tin, *port);
            let far = topology.far(tin, *port).map(|far| shape.split(far.tin).0);
            far == Some(pod) && condition.link(link.unwrap()) == State::Live
        };
        (shape.local_ports..shape.external_ports()).filter(lives).count()
    };
    for tin in 0..shape.tins() {
        let own = shape.split(tin).0;
        for pod in (0..shape.pods).filter(|&pod| pod != own && links_of(tin, pod) == 0) {
            let minimal = tables.row(tin, terminal, 0, to_pod(pod)).minimal;
            let (mut by_place, mut by_port) = ([0_usize; 16], [0_usize; 64]);
            for port in minimal {
                by_place[usize::from(shape.split(topology.far(tin, port).unwrap().tin).1)] += 1;
                by_port[usize::from(port)] += 1;
            }
            let places = (0..shape.tins_per_pod).map(|place| shape.tin(own, place));
            let all: usize = places.clone().map(|tin| links_of(tin, pod)).sum();
            for gateway in places {
                let slots = by_place[usize::from(shape.split(gateway).1)];
                let links = links_of(gateway, pod);
                let (low, high) = (8 * links / all, (8 * links).div_ceil(all));
                assert!(
                    (low..=high).contains(&slots),
                    "{tin} to {pod}: {slots} for {links} of {all}"
                );
                let to = (0..shape.local_ports).filter(|&port| {
                    topology.far(tin, port).is_some_and(|far| far.tin == gateway) && links > 0
                });
                let counts: Vec<_> = to.map(|port| by_port[usize::from(port)]).collect();
                let spread = counts.iter().max().zip(counts.iter().min());
                assert!(
                    spread.is_none_or(|(most, least)| most - least <= 1),
                    "{tin} to {pod}: {counts:?}"
                );
            }
        }
    }
}

/// I75's half of this crate: what a port has installed is what its class has, without what leads back.
#[test]
fn m725_a_port_has_the_flows_of_its_class_without_what_leads_back() {
    let topology = wire(&Shape::MINI);
    let mut condition = Condition::healthy(&topology);
    condition.set_link(3, State::Dead);
    condition.set_link(700, State::Dead);
    condition.set_tin(21, State::Dead);
    let flows = routes(&topology, &TurnTable::P1, &condition);
    let tables = expand(&topology, &condition, &flows);
    let place = |tin: u16| Shape::MINI.split(tin).1;
    for (tin, port) in inputs(&Shape::MINI) {
        let far = topology.far(tin, port);
        let class = match topology.kind(port) {
            PortKind::Terminal => InputClass::Terminal,
            PortKind::Global => InputClass::Global,
            PortKind::Local => InputClass::Local(HopType::of(place(far.unwrap().tin), place(tin))),
        };
        let link = topology.link(tin, port).map(|link| condition.link(link));
        let is_dead = link == Some(State::Dead)
            || condition.tin(tin) == State::Dead
            || far.is_some_and(|far| condition.tin(far.tin) == State::Dead)
            || (far.is_none() && class != InputClass::Terminal);
        for (rvc, component) in class.channels().flat_map(|r| (0..21).map(move |c| (r, c))) {
            let row = tables.by_index(tables.entry(tables.block(tin, port, rvc), component));
            let flow = flows.get(tin, class, rvc, component);
            let leads_back = |output: &u8| {
                far.is_some_and(|far| {
                    topology.far(tin, *output).is_some_and(|to| to.tin == far.tin)
                })
            };
            let kept = |mask| ports(mask).filter(|output| !leads_back(output));
            let expected = |mask| kept(mask).fold(0u64, |mask, port| mask | 1 << port);
            let (minimal, others) = if is_dead { (0, 0) } else { (flow.minimal, flow.others) };
            for (found, mask, room) in [
                (row.minimal_ports(), minimal, MINIMAL_SLOTS),
                (row.other_ports(), others, OTHER_SLOTS),
            ] {
                // Of many not all have a slot.
                let (count, expected) = (found.count_ones(), expected(mask));
                assert_eq!(found & !expected, 0, "{tin} {port} {rvc} {component}");
                assert_eq!(count, expected.count_ones().min(room as u32), "{tin} {port} {rvc}");
            }
        }
    }
    assert_eq!(InputClass::ALL.map(InputClass::index), std::array::from_fn::<_, CLASSES, _>(|x| x));
}

#[test]
fn m302_own_cells_go_to_their_endpoint_and_foreign_ones_nowhere() {
    let (_, tables) = healthy(&Shape::MINI);
    let first = Shape::MINI.external_ports();
    for (tin, port) in inputs(&Shape::MINI) {
        let (pod, place) = Shape::MINI.split(tin);
        let row = tables.row(tin, port, 2, Address::new(pod, place, Endpoint::RMA_HOST_0));
        assert_eq!(row.minimal_ports(), 0b1111 << (first + 8));
        let spare = Endpoint::from_number(40).unwrap();
        assert!(tables.row(tin, port, 2, Address::new(pod, place, spare)).is_empty());
        assert!(tables.row(tin, port, 0, Address::new(17, 0, Endpoint::HOST_0)).is_empty());
        assert!(tables.row(tin, port, 0, Address::new(pod, 4, Endpoint::HOST_0)).is_empty());
    }
}

#[test]
fn i75_tables_computed_again_are_the_same() {
    let topology = wire(&Shape::MINI);
    let mut condition = Condition::healthy(&topology);
    condition.set_tin(7, State::Dead);
    let once = || compute(&topology, &TurnTable::P2, &condition);
    assert_eq!(once(), once());
}

#[test]
fn tables_of_the_full_clique_take_some_megabytes() {
    let (_, tables) = full();
    let bytes = size_of_val(&tables.rows[..])
        + size_of_val(&tables.entries[..])
        + size_of_val(&tables.blocks[..]);
    assert!(bytes < 6_000_000, "{bytes} bytes");
    assert_eq!(size_of::<Row>(), 32);
}

#[test]
fn m729_updated_flows_are_those_computed_from_nothing() {
    let shape = Shape { tins_per_pod: 4, pods: 8, local_ports: 4, global_ports: 3, ..Shape::FULL };
    let topology = wire(&shape);
    let mut stream = kernel::Stream::new(9, "what fails", 0);
    for turns in [TurnTable::P1, TurnTable::P4] {
        let mut condition = Condition::healthy(&topology);
        let mut flows = routes(&topology, &turns, &condition);
        for _ in 0..150 {
            let before = condition.clone();
            for _ in 0..=stream.below(3) {
                let state = [State::Live, State::Dead, State::Dead, State::Drained];
                let state = state[stream.below(4) as usize];
                if stream.below(4) == 0 {
                    condition.set_tin(stream.below(shape.tins().into()) as u16, state);
                } else {
                    condition.set_link(stream.below(topology.links().len() as u64) as u32, state);
                }
            }
            let old = flows.clone();
            let pods = update(&mut flows, &topology, &turns, &before, &condition);
            assert!(flows == routes(&topology, &turns, &condition));
            for tin in (0..shape.tins()).filter(|&tin| !pods[usize::from(shape.split(tin).0)]) {
                assert_eq!(old.of(tin), flows.of(tin), "TiN {tin} is said to have kept its flows");
            }
        }
    }
}
