//! Tests of the fabric, of its decomposition and of what its failures cost.

use ::rack::Component;

use super::*;
use crate::schedule::{Order, Schedule};

/// The schedule of Fig. 3: in position `p` a node is connected to the one `p + 1` further.
fn cyclic(nodes: u32) -> impl Fn(NodeId, u32) -> Option<NodeId> + Copy {
    move |from, position| Some(NodeId::new((from.get() + position + 1) % nodes))
}

fn clos(nodes: u32, radix: u32, planes: u32) -> Clos {
    Clos::for_rack(nodes, radix, planes).unwrap()
}

fn schedules(nodes: u32, radix: u32, planes: u32) -> SwitchSchedules {
    SwitchSchedules::new(clos(nodes, radix, planes), nodes - 1, cyclic(nodes)).unwrap()
}

fn node(index: u32) -> NodeId {
    NodeId::new(index)
}

#[test]
fn s10_racks_have_these_switches() {
    // nodes, ports: leaves, spines, parallel links, nodes on a leaf, switches a plane.
    let rows = [
        ((8, 4), (4, 2, 1, 2, 6)),         // Fig. 2
        ((2048, 64), (64, 32, 1, 32, 96)), // §3.2
        ((512, 64), (16, 8, 4, 32, 24)),   // §5
        ((512, 32), (32, 16, 1, 16, 48)),  // p = √(2N)
        ((64, 64), (1, 0, 0, 64, 1)),
        ((65, 64), (3, 2, 16, 32, 5)),
        ((7, 4), (4, 2, 1, 2, 6)),
        ((9, 6), (3, 3, 1, 3, 6)),
        ((18, 6), (6, 3, 1, 3, 9)),
        ((12, 5), (0, 0, 0, 0, 0)),
    ];
    for ((nodes, radix), expected) in rows {
        let found = Clos::for_rack(nodes, radix, 1).map_or((0, 0, 0, 0, 0), |clos| {
            let stages = (clos.leaves(), clos.spines(), clos.links());
            (stages.0, stages.1, stages.2, clos.nodes_per_leaf(), clos.switches())
        });
        assert_eq!(found, expected, "{nodes} nodes, {radix} ports");
    }
    assert_eq!(clos(512, 64, 4).switches(), 96);
}

#[test]
fn s10_racks_that_cannot_be_are_named() {
    let rows = [
        (1, 64, 1, "nodes"),
        (2049, 64, 1, "nodes"),
        (9, 4, 1, "nodes"),
        (8, 1, 1, "radix"),
        (8, 4, 0, "channels"),
    ];
    for (nodes, radix, planes, key) in rows {
        let problem = Clos::for_rack(nodes, radix, planes).unwrap_err();
        assert_eq!(problem.key, key, "{problem}");
    }
    let problem = Clos::for_rack(2049, 64, 1).unwrap_err();
    assert!(problem.message.contains("at most 2048"), "{problem}");
}

#[test]
fn s11_wires_lead_back_where_they_come_from() {
    for (nodes, radix) in [(8, 4), (7, 4), (18, 6), (65, 64), (500, 64), (512, 64), (6, 8)] {
        let clos = clos(nodes, radix, 1);
        let mut nodes_met = 0;
        for switch in clos.switch_list() {
            for port in 0..radix {
                match clos.wire(switch, port) {
                    None => {}
                    Some(End::Node(node)) => {
                        assert_eq!(clos.attachment(node), (switch, port));
                        nodes_met += 1;
                    }
                    Some(End::Port(other, far)) => {
                        assert!(far < radix, "port {far} of {other:?}");
                        assert_eq!(clos.wire(other, far), Some(End::Port(switch, port)));
                    }
                }
            }
        }
        assert_eq!(nodes_met, nodes);
    }
}

#[test]
fn s12_every_small_rack_is_free_of_contention() {
    for radix in [4, 5, 6, 7, 8, 10, 12, 16, 64] {
        for nodes in 2..=64 {
            let Ok(clos) = Clos::for_rack(nodes, radix, 1) else { continue };
            let schedules = SwitchSchedules::new(clos, nodes - 1, cyclic(nodes)).unwrap();
            let proof = prove_contention_free(&schedules, cyclic(nodes));
            assert_eq!(proof, Ok(()), "{nodes} nodes, {radix} ports");
        }
    }
}

#[test]
fn slow_s12_racks_of_the_papers_sizes_are_free_of_contention() {
    let racks =
        [(128, 16, 1), (128, 64, 2), (511, 64, 4), (512, 64, 4), (500, 32, 1), (2048, 64, 4)];
    for (nodes, radix, planes) in racks {
        let schedules = schedules(nodes, radix, planes);
        let proof = prove_contention_free(&schedules, cyclic(nodes));
        assert_eq!(proof, Ok(()), "{nodes} nodes, {radix} ports");
    }
}

#[test]
fn s12_full_leaves_follow_the_formula() {
    for (nodes, radix) in [(8, 4), (18, 6), (32, 8), (128, 16), (512, 64)] {
        let schedules = schedules(nodes, radix, 1);
        let per_leaf = schedules.clos().nodes_per_leaf();
        for from in 0..nodes {
            for shift in 1..nodes {
                let path = schedules.path(node(from), node((from + shift) % nodes)).unwrap();
                let Route::TwoStage { uplink, .. } = path.route else { panic!("one stage") };
                assert_eq!(uplink, (from + shift / per_leaf) % per_leaf);
            }
        }
    }
}

#[test]
fn s13_positions_in_which_only_some_send_are_decomposed_too() {
    // Appendix A, Fig. 19(b): the shift by half the rack is split over two positions.
    for nodes in [8, 10, 32, 64] {
        let half = nodes / 2;
        let peer = move |from: NodeId, position: u32| {
            let shift = match position + 1 {
                shift if shift < half => shift,
                last if last == half => {
                    return (from.get() < half).then(|| node(from.get() + half));
                }
                last if last == nodes => {
                    return (from.get() >= half).then(|| node(from.get() - half));
                }
                later => nodes - (later - half),
            };
            Some(node((from.get() + shift) % nodes))
        };
        let schedules = SwitchSchedules::new(clos(nodes, 12, 2), nodes, peer).unwrap();
        assert_eq!(prove_contention_free(&schedules, peer), Ok(()), "{nodes} nodes");
    }
}

#[test]
fn s13_the_schedules_that_the_model_runs_are_free_of_contention() {
    let racks =
        [(2, 1, 4), (7, 2, 4), (8, 1, 4), (8, 4, 8), (33, 3, 10), (64, 4, 12), (512, 4, 64)];
    for (nodes, channels, radix) in racks {
        for order in [Order::Cyclic, Order::PropagationAware] {
            let schedule = Schedule::new(nodes, channels, order);
            let peer = |from: NodeId, position| schedule.peer(from.get(), position).map(node);
            let clos = clos(nodes, radix, channels);
            let schedules = SwitchSchedules::new(clos, schedule.positions(), peer).unwrap();
            let proof = prove_contention_free(&schedules, peer);
            assert_eq!(proof, Ok(()), "{nodes} nodes, {channels} channels, {order:?}");
            for to in 1..nodes {
                let path = schedules.path(node(0), node(to)).unwrap();
                assert_eq!(path.position, schedule.position(0, to));
            }
        }
    }
}

/// How many peers each node meets over each spine, the fewest and the most, sending or receiving.
fn spread(schedules: &SwitchSchedules) -> (u32, u32) {
    let clos = schedules.clos();
    let (nodes, spines) = (clos.nodes(), clos.spines() as usize);
    let mut counts = vec![0; 2 * nodes as usize * spines];
    for from in 0..nodes {
        for to in (0..nodes).filter(|&to| to != from) {
            let path = schedules.path(node(from), node(to)).unwrap();
            let Route::TwoStage { spine, .. } = path.route else { panic!("one stage") };
            counts[from as usize * spines + spine as usize] += 1;
            counts[(nodes + to) as usize * spines + spine as usize] += 1;
        }
    }
    (*counts.iter().min().unwrap(), *counts.iter().max().unwrap())
}

#[test]
fn s14_each_node_meets_its_peers_over_all_spines_evenly() {
    assert_eq!(spread(&schedules(512, 32, 1)), (31, 32));
    assert_eq!(spread(&schedules(512, 64, 1)), (63, 64));
    assert_eq!(spread(&schedules(2048, 64, 1)), (63, 64));
    // Where the last leaf is not full there is a collision in most positions: it costs the first
    // receiver of each leaf its even share (90 over one spine, 60 over each other) and nobody else.
    let (fewest, most) = spread(&schedules(511, 64, 1));
    assert!(fewest >= 59 && most <= 91, "{fewest} to {most} of 510 over 8 spines");
}

#[test]
fn s15_every_path_crosses_a_spine_even_on_one_leaf() {
    let schedules = schedules(8, 4, 2);
    let path = schedules.path(node(0), node(1)).unwrap();
    assert_eq!((path.position, path.plane), (0, 0));
    assert!(matches!(path.route, Route::TwoStage { leaf_in: 0, leaf_out: 0, .. }), "{path:?}");
    assert_eq!(schedules.path(node(3), node(3)), None);
    assert_eq!(schedules.path(node(0), node(2)).unwrap().plane, 1);
}

#[test]
fn s12_the_checker_sees_every_single_change_of_a_map() {
    let schedules = schedules(8, 4, 1);
    let clos = *schedules.clos();
    for position in 0..7 {
        let peer = |from| cyclic(8)(from, position);
        let good = schedules.maps(position);
        for switch in clos.switch_list() {
            for ingress in 0..4 {
                let at = (clos.switch_index(switch), ingress as usize);
                for egress in [None, Some(0), Some(1), Some(2), Some(3), Some(4)] {
                    let mut maps = good.clone();
                    if std::mem::replace(&mut maps.maps[at.0][at.1], egress) != egress {
                        let result = check_position(&clos, position, &maps, peer);
                        assert!(result.is_err(), "{switch:?} port {ingress} to {egress:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn s15_the_checker_names_contention_wrong_peers_and_short_cuts() {
    let schedules = schedules(8, 4, 1);
    let clos = *schedules.clos();
    let peer = |from| cyclic(8)(from, 0);
    let check = |change: &dyn Fn(&mut PositionMaps)| {
        let mut maps = schedules.maps(0);
        change(&mut maps);
        check_position(&clos, 0, &maps, peer)
    };
    let contention = check(&|maps| maps.maps[0][1] = maps.maps[0][0]);
    assert!(matches!(contention, Err(Violation::Contention { .. })), "{contention:?}");
    let swapped = check(&|maps| maps.maps[1].swap(0, 1));
    assert!(matches!(swapped, Err(Violation::WrongPeer { .. })), "{swapped:?}");
    // Node 0 reaches node 1 on its own leaf directly: right peer, too near.
    let short = check(&|maps| {
        let into = maps.maps[0].iter().position(|&egress| egress == Some(1)).unwrap();
        maps.maps[0][into] = None;
        maps.maps[0][0] = Some(1);
    });
    assert!(matches!(short, Err(Violation::Hops { found: 1, expected: 3, .. })), "{short:?}");
    let nowhere = check(&|maps| maps.maps[0][0] = Some(9));
    assert!(matches!(nowhere, Err(Violation::Nowhere { egress: 9, .. })), "{nowhere:?}");
}

#[test]
fn s11_what_is_no_equal_rate_schedule_is_refused() {
    let build = |positions, peer: &dyn Fn(u32, u32) -> u32| {
        let peer = |from: NodeId, position| Some(node(peer(from.get(), position)));
        SwitchSchedules::new(clos(8, 4, 1), positions, peer).unwrap_err()
    };
    let twice = build(8, &|from, position| (from + position % 7 + 1) % 8);
    assert!(matches!(twice, Violation::PairTwice { positions: [0, 7], .. }), "{twice}");
    let never = build(6, &|from, position| (from + position + 1) % 8);
    assert_eq!(never, Violation::PairNever { from: node(0), to: node(7) });
    let collide = build(7, &|from, _| (from + 1 + from % 2) % 8);
    assert!(matches!(collide, Violation::TwoSenders { .. }), "{collide}");
    let outside = build(7, &|_, _| 8);
    assert!(matches!(outside, Violation::NoPeer { .. }), "{outside}");
}

#[test]
fn s16_affected_pairs_are_those_whose_path_crosses_the_component() {
    let schedules = schedules(8, 4, 1);
    let count =
        |component, direction| schedules.affected_pairs(component, direction).unwrap().len();
    use Direction::{Both, Down, Up};
    // 8 nodes, 56 pairs, 2 nodes on a leaf, 2 spines.
    assert_eq!(count(Component::Node(node(3)), Both), 14);
    assert_eq!(count(Component::NodeLink(node(3)), Both), 14);
    assert_eq!(count(Component::NodeLink(node(3)), Up), 7);
    assert_eq!(count(Component::NodeLink(node(3)), Down), 7);
    // Both nodes of the leaf with the 6 others, both ways, and with each other.
    assert_eq!(count(Component::Leaf(1), Both), 2 * 2 * 6 + 2);
    assert_eq!(count(Component::Spine(0), Both) + count(Component::Spine(1), Both), 56);
    let link = |leaf, spine| Component::LeafSpine { leaf, spine, link: 0 };
    for direction in [Up, Down] {
        // Each path goes up one link and down one.
        let all = (0..4).flat_map(|leaf| (0..2).map(move |spine| (leaf, spine)));
        let sum: u64 = all.map(|(leaf, spine)| count(link(leaf, spine), direction)).sum();
        assert_eq!(sum, 56);
    }
}

#[test]
fn s16_a_plane_fails_alone() {
    let schedules = schedules(512, 64, 4);
    let paths_of_plane = |plane: u32| {
        (0..512)
            .flat_map(|from| (0..512).map(move |to| (node(from), node(to))))
            .filter(|&(from, to)| schedules.path(from, to).is_some_and(|path| path.plane == plane))
            .count() as u64
    };
    // The spines of plane 2 are 16 to 23; together they carry all of its pairs.
    let sum: u64 = (16..24)
        .map(|spine| {
            schedules.affected_pairs(Component::Spine(spine), Direction::Both).unwrap().len()
        })
        .sum();
    assert_eq!(sum, paths_of_plane(2));
}

#[test]
fn s16_a_single_switch_fails_as_a_leaf() {
    let schedules = schedules(8, 8, 2);
    let pairs = schedules.affected_pairs(Component::Leaf(1), Direction::Both).unwrap();
    // Positions 1, 3 and 5 of 7.
    assert_eq!(pairs.len(), 3 * 8);
    assert!(schedules.affected_pairs(Component::Spine(0), Direction::Both).is_err());
}

#[test]
fn s16_components_that_do_not_exist_are_named() {
    let schedules = schedules(512, 64, 4);
    let link = |leaf, spine, link| Component::LeafSpine { leaf, spine, link };
    let rows = [
        (Component::Node(node(512)), "node", "the rack has 512, counted from 0"),
        (Component::NodeLink(node(600)), "node", "link of node 600 does not exist"),
        (Component::Leaf(64), "leaf", "the rack has 64"),
        (Component::Spine(32), "spine", "the rack has 32"),
        (link(0, 0, 4), "link", "the rack has 4"),
        (link(15, 8, 0), "spine", "in different planes"),
    ];
    for (component, key, part) in rows {
        let problem = schedules.affected_pairs(component, Direction::Both).unwrap_err();
        assert_eq!(problem.key, key);
        assert!(problem.message.contains(part), "{problem}");
    }
    assert_eq!(schedules.check_component(link(16, 8, 3)), Ok(()));
}

#[test]
fn s16_a_set_of_pairs_lists_what_was_put_in() {
    let mut set = PairSet::empty(9);
    assert!(set.is_empty());
    let pairs = [(0, 1), (0, 8), (3, 2), (7, 1), (7, 2), (8, 7)].map(|(a, b)| (node(a), node(b)));
    for (from, to) in pairs {
        set.insert(from, to);
        set.insert(from, to);
    }
    assert_eq!(set.iter().collect::<Vec<_>>(), pairs);
    assert_eq!(set.len(), 6);
    assert!(set.contains(node(3), node(2)) && !set.contains(node(2), node(3)));
    assert_eq!(set.with_reverse().len(), 12);
    assert!(set.with_reverse().contains(node(2), node(3)));
}

/// The mean over all components of a kind, so that no lucky one decides.
fn mean(fractions: impl Iterator<Item = f64>) -> f64 {
    let all: Vec<f64> = fractions.collect();
    all.iter().sum::<f64>() / all.len() as f64
}

#[test]
fn s17_table_1_is_met_on_real_schedules() {
    // Full fabrics, p = √(2N). The formulas leave out terms of order 1/p: N for N - 1, and pairs
    // both of whose directions use the broken spine.
    for (nodes, radix) in [(8, 4), (32, 8), (128, 16), (512, 32)] {
        let tolerance = 2.0 / f64::from(radix);
        let schedules = schedules(nodes, radix, 1);
        let fraction = |component| schedules.failed_slot_fraction(component).unwrap();
        let n = f64::from(nodes);
        let clos = *schedules.clos();
        let (leaves, spines) = (clos.leaves(), clos.spines());
        let rows = [
            ("node-leaf link", fraction(Component::NodeLink(node(nodes / 3))), 1.0 / n),
            ("leaf", fraction(Component::Leaf(leaves / 2)), 1.0 / (2.0 * n).sqrt()),
            (
                "leaf-spine link",
                mean((0..leaves).map(|leaf| {
                    fraction(Component::LeafSpine { leaf, spine: leaf % spines, link: 0 })
                })),
                2.0 / n,
            ),
            (
                "spine",
                mean((0..spines).map(|spine| fraction(Component::Spine(spine)))),
                2.0 * 2.0_f64.sqrt() / n.sqrt(),
            ),
        ];
        for (name, ours, published) in rows {
            let error = (ours / published - 1.0).abs();
            assert!(error <= tolerance + 1e-9, "{nodes} nodes, {name}: {ours} for {published}");
        }
    }
}

#[test]
fn s17_the_exact_counts_behind_table_1() {
    let schedules = schedules(512, 32, 1);
    let lost = |component, direction| schedules.failed_slots(component, direction).unwrap();
    let slots = 511;
    // The 511 survivors lose one slot each; so do the 496 nodes of other leaves 16 each.
    let node_link = lost(Component::NodeLink(node(100)), Direction::Both);
    assert_eq!(node_link, LostSlots { lost: 511, of: 511 * slots });
    let leaf = lost(Component::Leaf(3), Direction::Both);
    assert_eq!(leaf, LostSlots { lost: 496 * 16, of: 496 * slots });
    // Symmetric shutdown nearly doubles what a spine carries, and a link loses at most 4/N.
    let spine = lost(Component::Spine(5), Direction::Both).fraction();
    assert!((0.119..0.123).contains(&spine), "{spine}");
    let link = Component::LeafSpine { leaf: 1, spine: 2, link: 0 };
    let (one, both) = (lost(link, Direction::Down), lost(link, Direction::Both));
    assert!((0.0037..0.0041).contains(&one.fraction()), "{one:?}");
    assert!((0.0070..0.0078).contains(&both.fraction()), "{both:?}");
}
