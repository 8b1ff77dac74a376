//! Wiring.

use super::*;

#[track_caller]
fn wire(shape: &Shape) -> Topology {
    Topology::new(shape, Fibres::Grid).unwrap()
}

/// Links between two places of pod 0.
fn between(topology: &Topology, a: u16, b: u16) -> usize {
    let ports = 0..topology.shape().local_ports;
    ports.filter(|&port| topology.far(a, port).is_some_and(|far| far.tin == b)).count()
}

#[test]
fn m008_24_local_ports_join_a_tin_to_eleven_others() {
    let topology = wire(&Shape::FULL);
    for a in 0..12 {
        for b in (0..12).filter(|&b| b != a) {
            assert_eq!(between(&topology, a, b), if a / 2 == b / 2 { 4 } else { 2 }, "{a} {b}");
        }
    }
    let uniform = wire(&Shape { local_wiring: LocalWiring::Uniform, ..Shape::FULL });
    let ring = wire(&Shape { local_wiring: LocalWiring::Ring, ..Shape::FULL });
    for a in 0..12u16 {
        for b in (0..12).filter(|&b| b != a) {
            let is_next = a.abs_diff(b) == 1 || a.abs_diff(b) == 11;
            assert_eq!(between(&uniform, a, b), 2, "{a} {b}");
            assert_eq!(between(&ring, a, b), if is_next { 3 } else { 2 }, "{a} {b}");
        }
    }
}

/// Every pair of pods has as many links as the ports allow, on TiNs of their own at both ends.
#[track_caller]
fn check_global(shape: &Shape) {
    let topology = wire(shape);
    let mut pairs = std::collections::BTreeMap::<(u16, u16), Vec<Link>>::new();
    for &link in topology.links().iter().filter(|link| link.is_global) {
        let pods = (shape.split(link.low.tin).0, shape.split(link.high.tin).0);
        pairs.entry(pods).or_default().push(link);
    }
    let pods = usize::from(shape.pods);
    assert_eq!(pairs.len(), pods * (pods - 1) / 2, "{shape:?}");
    for (pair, links) in pairs {
        assert_eq!(links.len(), usize::from(shape.links_per_pair()), "{pair:?} of {shape:?}");
        let most = links.len().div_ceil(usize::from(shape.tins_per_pod));
        let lows: Vec<u16> = links.iter().map(|link| link.low.tin).collect();
        let highs: Vec<u16> = links.iter().map(|link| link.high.tin).collect();
        for ends in [lows, highs] {
            for tin in &ends {
                let here = ends.iter().filter(|&other| other == tin).count();
                assert!(here <= most, "{pair:?} of {shape:?}: {here} at TiN {tin}");
            }
        }
    }
}

#[test]
fn m009_every_pair_of_pods_is_joined_on_tins_of_their_own() {
    for shape in [Shape::FULL, Shape::HALF, Shape::MINI, Shape::TINY] {
        check_global(&shape);
    }
}

#[test]
fn slow_m009_so_it_is_in_cliques_of_any_size() {
    for tins_per_pod in 1..=16 {
        for pods in 1..=64 {
            for global_ports in [1, 3, 8] {
                let shape = Shape { tins_per_pod, pods, global_ports, ..Shape::FULL };
                if shape.check().is_empty() {
                    check_global(&shape);
                }
            }
        }
    }
}

#[test]
fn m009_the_formula_of_48_pods() {
    let topology = wire(&Shape::FULL);
    for pod in 0..48u16 {
        for distance in 1..48u16 {
            for copy in 0..2u16 {
                let place = |d: u16| (d - 1 + 6 * copy) % 12;
                let port = |d: u16| (24 + 4 * copy + (d - 1) / 12) as u8;
                let tin = Shape::FULL.tin(pod, place(distance));
                let far = topology.far(tin, port(distance)).unwrap();
                let back = 48 - distance;
                let other = Shape::FULL.tin((pod + distance) % 48, place(back));
                assert_eq!(far, Far { tin: other, port: port(back) });
            }
        }
    }
}

#[test]
fn m007_the_ends_of_a_link_know_each_other() {
    for shape in [Shape::FULL, Shape::HALF, Shape::MINI, Shape::TINY] {
        let topology = wire(&shape);
        for tin in 0..shape.tins() {
            for port in 0..shape.ports() {
                let Some(far) = topology.far(tin, port) else { continue };
                assert_eq!(topology.far(far.tin, far.port), Some(Far { tin, port }));
                assert_eq!(topology.link(tin, port), topology.link(far.tin, far.port));
                assert_eq!(topology.delay(tin, port), topology.delay(far.tin, far.port));
                assert_eq!(
                    topology.channel(tin, port).unwrap() ^ 1,
                    topology.channel(far.tin, far.port).unwrap()
                );
                let is_local = shape.split(tin).0 == shape.split(far.tin).0;
                assert_eq!(topology.kind(port) == PortKind::Local, is_local);
            }
        }
    }
}

#[test]
fn u11_fibres_are_20_to_40_metres_on_the_grid() {
    let topology = wire(&Shape::FULL);
    let delays = |is_global: bool| {
        let ends = topology.links().iter().filter(move |link| link.is_global == is_global);
        ends.map(|link| topology.delay(link.low.tin, link.low.port)).collect::<Vec<_>>()
    };
    let fibres = delays(true);
    assert_eq!(fibres.iter().min(), Some(&Span::from_ns(100)));
    assert_eq!(fibres.iter().max(), Some(&Span::from_ns(100 + 12 + 44)));
    assert!(delays(false).iter().all(|&delay| delay == Span::from_ns(5)));
    let long = Topology::new(&Shape::FULL, Fibres::Metres(100)).unwrap();
    assert_eq!(long.delay(0, 24), Span::from_ns(500));
}

#[track_caller]
fn check_refused(shape: Shape, key: &str, part: &str) {
    let problem = Topology::new(&shape, Fibres::Grid).unwrap_err();
    assert!(problem.key == key && problem.message.contains(part), "{problem}");
}

#[test]
fn what_cannot_be_wired_is_refused_by_key() {
    check_refused(Shape { pods: 0, ..Shape::FULL }, "pods", "expected 1 to 64");
    check_refused(Shape { pods: 65, ..Shape::FULL }, "pods", "6 bits");
    check_refused(Shape { tins_per_pod: 17, ..Shape::FULL }, "tins_per_pod", "4 bits");
    check_refused(Shape { tins_per_pod: 0, ..Shape::FULL }, "tins_per_pod", "1 to 16");
    check_refused(Shape { local_ports: 10, ..Shape::FULL }, "local_ports", "at least 11");
    check_refused(Shape { local_ports: 40, ..Shape::FULL }, "local_ports", "46");
    check_refused(Shape { global_ports: 3, ..Shape::FULL }, "pods", "37 pods at the most");
    let problem = Topology::new(&Shape::FULL, Fibres::Metres(101)).unwrap_err();
    assert!(problem.message.contains("1 to 100 m"), "{problem}");
}
