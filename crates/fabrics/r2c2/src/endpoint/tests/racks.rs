//! Several racks (§6, claim M55): what crosses between them, by closed forms.

use rack::topology::{Ethernet, Racks};
use rack::{Component, Fault};

use super::*;

/// Two racks of 4 x 4 x 4 with so many links between them: 150 ns of cable, and tunnels 500 ns at
/// either bridge and in the switch.
fn two_racks(links: u32, ethernet: Option<Ethernet>) -> Config {
    let racks = Racks { dimensions: vec![4, 4, 4], links, ethernet, ..Racks::default() };
    Config { topology: Shape::Racks(racks), ..Config::default() }
}

fn tunnels(oversubscription: u32) -> Option<Ethernet> {
    Some(Ethernet { oversubscription, ..Ethernet::default() })
}

/// How long a flow of so many bytes takes alone, in picoseconds.
#[track_caller]
fn check_time(config: &Config, (src, dst): (u32, u32), size: u64, expected: u64) {
    let mut network = rack(&config.plan().unwrap(), 1);
    let ends = carry(&mut network, &[flow(0, src, dst, size, Time::ZERO)]);
    assert_eq!(ends.completed[0].1 - Time::ZERO, Span::from_ps(expected));
}

#[test]
fn m55_a_packet_takes_the_cables_the_bridges_and_its_frame() {
    // 36 bytes of header; 0.8 ns a byte on each line. On the first the flow's start and end go before it.
    let direct = two_racks(16, None);
    check_time(&direct, (0, 64), 1_000, (1_036 + 2 * 16) * 800 + 150_000);
    // A link of the rack to the node with a link to the other, that link, and a link of the other.
    check_time(&direct, (1, 65), 1_000, (3 * 1_036 + 2 * 16) * 800 + 150_000 + 2 * 100_000);
    let tunnelled = two_racks(16, tunnels(1));
    let bridge = 2 * (150_000 + 500_000) + 500_000;
    check_time(&tunnelled, (0, 64), 1_000, (1_036 + 38 + 2 * 84) * 800 + bridge);
    check_time(&tunnelled, (1, 65), 1_000, (3 * 1_036 + 38 + 2 * 16) * 800 + bridge + 2 * 100_000);
    // A packet of 37 bytes is padded to the smallest frame.
    check_time(&tunnelled, (0, 64), 1, 3 * 84 * 800 + bridge);
    // A quarter of the rate, and the same way.
    check_time(&two_racks(16, tunnels(4)), (0, 64), 1_000, (1_036 + 38 + 2 * 84) * 3_200 + bridge);
}

/// The rates of flows from each node to that at its place in the other rack, both ways.
fn twins(config: &Config) -> Vec<f64> {
    let plan = config.plan().unwrap();
    let mut filling = plan.wiring(&[], 1).filling;
    let protocol = Protocol::Rps;
    for node in 0..128 {
        let [source, destination] = [node, (node + 64) % 128].map(NodeId::new);
        filling.join(node, Course { source, destination, protocol }, Terms::default());
    }
    filling.fill(Whose::All);
    (0..128).map(|place| filling.rate(place)).collect()
}

#[test]
fn m55_parallel_links_between_racks_are_shared_evenly_and_filled() {
    // Nodes with a link out lie so evenly that each serves as many others: rates are what the links carry,
    // less the headroom, over the nodes of a rack.
    for links in [1, 2, 4, 8, 16, 32, 64] {
        let share = f64::from(links) * 10e9 * 0.95 / 64.0;
        for (ethernet, carried) in
            [(None, 1.0), (tunnels(1), 1_500.0 / 1_538.0), (tunnels(4), 1_500.0 / 1_538.0 / 4.0)]
        {
            for rate in twins(&two_racks(links, ethernet.clone())) {
                let expected = share * carried;
                assert!(
                    (rate / expected - 1.0).abs() < 1e-6,
                    "{links} links, {ethernet:?}: {rate} for {expected}"
                );
            }
        }
    }
}

#[test]
fn m55_one_copy_of_a_broadcast_crosses_a_single_link() {
    for ethernet in [None, tunnels(1)] {
        let mut network = rack(&two_racks(1, ethernet).plan().unwrap(), 1);
        carry(&mut network, &permutation(128, 64, 20_000));
        let counts = network.transport().news.counts();
        // A start and a finish of each flow, to all nodes of both racks; one copy of each crosses.
        assert_eq!((counts.sent, counts.copies), (256, 256 * 127));
        assert_eq!(counts.to_other_racks, Some(256));
    }
    // With more links at least one crosses, and at most one a link.
    let mut network = rack(&two_racks(16, None).plan().unwrap(), 1);
    carry(&mut network, &permutation(128, 64, 20_000));
    let counts = network.transport().news.counts();
    let crossed = counts.to_other_racks.unwrap();
    assert_eq!(counts.copies, 256 * 127);
    assert!((257..=256 * 16).contains(&crossed), "{crossed}");
}

#[test]
fn m55_flows_go_round_a_switch_that_has_died() {
    let ethernet = Some(Ethernet { ports: 4, ..Ethernet::default() });
    let at = Time::ZERO + Span::from_us(20);
    let fault = |switch| Fault { component: Component::Switch(switch), at, until: None };
    for (faults, failed) in [(vec![fault(0)], 0), (vec![fault(0), fault(1)], 128)] {
        let plan = two_racks(4, ethernet.clone()).plan().unwrap().with_faults(&faults).unwrap();
        let mut network = rack(&plan, 1);
        let ends = carry(&mut network, &permutation(128, 64, 100_000));
        assert_eq!(ends.failed.len(), failed, "{} of two switches", faults.len());
    }
}

#[test]
fn m55_three_racks_carry_all() {
    for ethernet in [None, tunnels(1)] {
        let racks =
            Racks { racks: 3, dimensions: vec![3, 3], links: 2, ethernet, ..Racks::default() };
        let classes = [Protocol::Rps, Protocol::RpsByHop, Protocol::Valiant]
            .map(|protocol| config::Class { protocol, ..config::Class::default() });
        let topology = Shape::Racks(racks);
        let plan = Config { topology, classes: classes.to_vec(), ..Config::default() };
        let mut network = rack(&plan.plan().unwrap(), 1);
        let mut flows = permutation(27, 10, 300_000);
        for flow in &mut flows {
            flow.class = Class::new((flow.src.get() % 3) as u8);
        }
        let ends = carry(&mut network, &flows);
        assert_eq!((ends.completed.len(), network.totals().drops), (27, 0));
    }
}

#[test]
fn m55_what_a_route_has_no_room_for_is_refused() {
    let valiant = config::Class { protocol: Protocol::Valiant, ..config::Class::default() };
    let racks = Shape::Racks(Racks { links: 1, ..Racks::default() });
    let config = Config { topology: racks, classes: vec![valiant], ..Config::default() };
    let problems = config.plan().unwrap_err();
    // Through both racks, twelve hops each, and back.
    assert!(problems[0].message.contains("up to 50 hops"), "{problems:?}");
    // Three links more than the six of the torus.
    let problems = two_racks(3 * 64, None).plan().unwrap_err();
    assert!(problems[0].message.contains("9 links"), "{problems:?}");
}
