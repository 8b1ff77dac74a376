//! What the tables say.

use std::sync::LazyLock;

use super::compute::{compute, expand, ports, routes, update};
use super::condition::State;
use super::flows::{CLASSES, InputClass};
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
fn m302_m311_ports_take_turns_in_slots() {
    let (_, tables) = healthy(&Shape::HALF);
    for row in tables.rows() {
        for slots in [&row.minimal[..], &row.others[..]] {
            assert!(slots.iter().all(|&port| (port == NONE) == (slots[0] == NONE)));
            let count = |port: u8| slots.iter().filter(|&&slot| slot == port).count();
            let counts = || slots.iter().map(|&port| count(port));
            assert!(counts().max().unwrap() - counts().min().unwrap() <= 1, "{slots:?}");
        }
    }
}

#[test]
fn slow_m315_gateways_have_as_many_slots_as_links() {
    for shape in [Shape::MINI, Shape::HALF, Shape::FULL] {
        let (topology, tables) = healthy(&shape);
        let terminal = shape.external_ports();
        // By gateway, over all destinations: a pod's TiNs stand in slots as they have links.
        for tin in 0..shape.tins_per_pod {
            let (mut slots, mut links) = ([0u32; 16], [0.0; 16]);
            for pod in 1..shape.pods {
                let gateways = |place: &u16| {
                    ports(0xFF << shape.local_ports).any(|port| {
                        let far = topology.far(*place, port);
                        far.is_some_and(|far| shape.split(far.tin).0 == pod)
                    })
                };
                if gateways(&tin) {
                    continue;
                }
                let to = |place: u16| {
                    let all = 0..shape.local_ports;
                    all.filter(|&port| topology.far(tin, port).unwrap().tin == place).count() as f64
                };
                let all: f64 = (0..shape.tins_per_pod).filter(gateways).map(to).sum();
                for place in (0..shape.tins_per_pod).filter(gateways) {
                    links[usize::from(place)] += to(place) / all * 8.0;
                }
                for port in tables.row(tin, terminal, 0, to_pod(pod)).minimal {
                    slots[usize::from(topology.far(tin, port).unwrap().tin)] += 1;
                }
            }
            for (place, (&slots, &links)) in slots.iter().zip(&links).enumerate() {
                let off = (f64::from(slots) - links).abs();
                assert!(off <= 0.2 * links, "{tin} to {place}: {slots} slots, {links} by links");
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
