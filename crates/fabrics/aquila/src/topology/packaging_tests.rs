//! What is in what, and what it takes with it.

use super::*;
use crate::topology::Fibres;

fn full() -> (Topology, Packaging) {
    let topology = Topology::new(&Shape::FULL, Fibres::Grid).unwrap();
    let packaging = Packaging::new(&topology);
    (topology, packaging)
}

#[test]
fn a04_a_pod_has_96_links_to_others_on_24_modules() {
    let shape = Shape::FULL;
    assert_eq!(shape.tins_per_pod * u16::from(shape.global_ports), 96);
    let (_, packaging) = full();
    assert_eq!(packaging.modules.len(), 48 * 6 * 4);
    assert!(packaging.modules.iter().all(|links| links.len() <= 4));
}

#[test]
fn a05_a06_i96_2256_links_join_the_pods_on_different_cards() {
    let (topology, packaging) = full();
    let links: Vec<_> = topology.links().iter().filter(|link| link.is_global).collect();
    assert_eq!(links.len(), 2_256);
    let mut pairs = BTreeMap::<(u16, u16), Vec<(u16, u16)>>::new();
    for link in links {
        let pods = (Shape::FULL.split(link.low.tin).0, Shape::FULL.split(link.high.tin).0);
        let cards = (link.low.tin / 2, link.high.tin / 2);
        pairs.entry(pods).or_default().push(cards);
    }
    assert_eq!(pairs.len(), 1_128);
    for (pair, cards) in pairs {
        let [a, b] = cards[..] else { panic!("{} links between {pair:?}", cards.len()) };
        assert!(a.0 != b.0 && a.1 != b.1, "{pair:?} on cards {cards:?}");
    }
    // Two ports of a pod are spare: on as many TiNs.
    for pod in 0..48 {
        let wired = |tin: u16| (24..32).filter(|&port| topology.far(tin, port).is_some()).count();
        let mut counts: Vec<usize> =
            (0..12).map(|place| wired(Shape::FULL.tin(pod, place))).collect();
        counts.sort_unstable();
        assert_eq!(counts, [7, 7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8]);
    }
    assert_eq!(packaging.modules.iter().map(Vec::len).sum::<usize>(), 2 * 2_256);
}

#[test]
fn i96_a10_every_local_port_is_used() {
    let (topology, _) = full();
    for tin in 0..576 {
        assert!((0..24).all(|port| topology.far(tin, port).is_some()));
    }
    assert_eq!(topology.links().iter().filter(|link| !link.is_global).count(), 48 * 144);
}

#[test]
fn a07_a08_66_bundles_of_four_cables_of_eight_links() {
    let (_, packaging) = full();
    assert_eq!(packaging.bundles.len(), 66);
    assert_eq!(packaging.cables.len(), 264);
    assert!(packaging.bundles.iter().all(|links| links.len() == 32));
    assert!(packaging.cables.iter().all(|links| links.len() == 8));
    let long: usize = packaging.cables.iter().map(Vec::len).sum();
    assert_eq!((long, long + 12 * 6 * 2), (2_112, 2_256));
    assert_eq!(4 * 96, 11 * 32 + 2 * 12 + 8);
}

#[test]
fn m921_a_cable_has_one_link_of_a_pair_of_pods_at_the_most() {
    for shape in [Shape::FULL, Shape::HALF] {
        let topology = Topology::new(&shape, Fibres::Grid).unwrap();
        for links in Packaging::new(&topology).cables {
            let pods = |&link: &u32| {
                let link = topology.links()[link as usize];
                (shape.split(link.low.tin).0, shape.split(link.high.tin).0)
            };
            let mut pairs: Vec<_> = links.iter().map(pods).collect();
            pairs.sort_unstable();
            pairs.dedup();
            assert_eq!(pairs.len(), links.len(), "{shape:?}");
        }
    }
}

#[test]
fn a35_i95_what_fails_takes_few_servers_with_it() {
    let (topology, packaging) = full();
    let mut most = BTreeMap::<&str, u32>::new();
    for part in packaging.parts(topology.links().len() as u32) {
        let kind = match part {
            Part::Tin(_) => "TiN",
            Part::Card(_) => "card",
            Part::Chassis(_) => "chassis",
            Part::Rack(_) => "rack",
            _ => "links",
        };
        let servers = most.entry(kind).or_default();
        *servers = packaging.servers(part, 2).max(*servers);
    }
    let expected = [("TiN", 2), ("card", 4), ("chassis", 24), ("links", 0), ("rack", 48)];
    assert_eq!(most, BTreeMap::from(expected));
}

#[test]
fn m922_parts_of_odd_sizes_hold_every_tin_once() {
    for (tins_per_pod, pods) in [(1, 1), (3, 5), (12, 48), (5, 17)] {
        let shape = Shape { tins_per_pod, pods, ..Shape::FULL };
        let topology = Topology::new(&shape, Fibres::Grid).unwrap();
        let packaging = Packaging::new(&topology);
        let all: Vec<u16> = (0..shape.tins()).collect();
        let parts: Vec<Part> = packaging.parts(0).collect();
        let kinds: [fn(&Part) -> bool; 4] = [
            |part| matches!(part, Part::Tin(_)),
            |part| matches!(part, Part::Card(_)),
            |part| matches!(part, Part::Chassis(_)),
            |part| matches!(part, Part::Rack(_)),
        ];
        for kind in kinds {
            let tins = parts.iter().filter(|part| kind(part));
            let tins: Vec<u16> = tins.flat_map(|&part| packaging.tins(part)).collect();
            assert_eq!(tins, all, "{tins_per_pod} by {pods}");
        }
    }
}

/// Whether all TiNs that live reach each other over links that live.
fn is_connected(topology: &Topology, condition: &Condition) -> bool {
    let escape = crate::tables::Escape::compute(topology, condition);
    (0..topology.shape().tins()).all(|tin| escape.has(tin) || condition.tin(tin) == State::Dead)
}

#[test]
fn slow_i97_no_single_failure_cuts_others_off() {
    for shape in [Shape::FULL, Shape::HALF, Shape::MINI] {
        let topology = Topology::new(&shape, Fibres::Grid).unwrap();
        let packaging = Packaging::new(&topology);
        // Links inside pods are alike: those of one pod and all between pods.
        let links = topology.links().len() as u32;
        for part in packaging.parts(links) {
            if matches!(part, Part::Link(link) if link > 200 && link % 17 != 0) {
                continue;
            }
            let mut condition = Condition::healthy(&topology);
            packaging.fail(&mut condition, part);
            assert!(connected_quickly(&topology, &condition), "{part} of {shape:?}");
        }
        assert!(is_connected(&topology, &Condition::healthy(&topology)));
    }
}

/// The same by a search of its own.
fn connected_quickly(topology: &Topology, condition: &Condition) -> bool {
    let lives = |tin: u16| condition.tin(tin) != State::Dead;
    let tins = topology.shape().tins();
    let Some(root) = (0..tins).find(|&tin| lives(tin)) else { return true };
    let mut seen = vec![false; usize::from(tins)];
    seen[usize::from(root)] = true;
    let mut stack = vec![root];
    while let Some(tin) = stack.pop() {
        for port in 0..topology.shape().external_ports() {
            let (Some(link), Some(far)) = (topology.link(tin, port), topology.far(tin, port))
            else {
                continue;
            };
            let goes = condition.link(link) != State::Dead && lives(far.tin);
            if goes && !std::mem::replace(&mut seen[usize::from(far.tin)], true) {
                stack.push(far.tin);
            }
        }
    }
    (0..tins).all(|tin| seen[usize::from(tin)] || !lives(tin))
}
