//! What an idle network takes, to the picosecond.

use rack::topology::{LeafSpine, ThreeTier, Torus};

use super::*;
use crate::config::{Forwarding, Host};

#[track_caller]
fn check_alone(config: &Config, sizes: &[u64]) {
    for &size in sizes {
        let hosts = config.plan().unwrap().topology.hosts();
        let alone = flow(0, 0, hosts - 1, size, 7_000);
        let (network, ends) = carry(config, &[alone]);
        let (_, end, ideal, stages) = &ends.completed[0];
        assert_eq!(*end - alone.start, *ideal, "{size} bytes in {config:?}");
        assert_eq!(*ideal, network.ideal_fct(&alone));
        assert_eq!(stages.iter().copied().sum::<Span>(), *ideal, "{stages:?}");
        let totals = network.totals();
        assert_eq!((totals.delivered.get(), totals.drops), (size, 0));
    }
}

/// Sizes of one packet, of a full and a short last one, and of many.
const SIZES: [u64; 7] = [1, 100, 1460, 1461, 2920, 20_000, 1_000_000];

#[test]
fn a_flow_alone_takes_its_ideal_time() {
    let rate = Rate::from_gbps(50);
    let trunk_rate = Rate::from_gbps(100);
    let shapes = [
        Shape::SingleSwitch(SingleSwitch { hosts: 4, ..Default::default() }),
        Shape::LeafSpine(LeafSpine { hosts: 32, radix: 8, rate, ..Default::default() }),
        Shape::LeafSpine(LeafSpine { hosts: 32, radix: 8, trunk_rate, ..Default::default() }),
        Shape::ThreeTier(ThreeTier { hosts: 16, radix: 4, ..Default::default() }),
        Shape::ThreeTier(ThreeTier {
            hosts: 16,
            radix: 4,
            trunk_rate: Rate::from_gbps(20),
            ..Default::default()
        }),
        Shape::Torus(Torus { dimensions: vec![4, 4], ..Default::default() }),
    ];
    for topology in shapes {
        for forwarding in [Forwarding::StoreAndForward, Forwarding::CutThrough] {
            let config = Config {
                topology: topology.clone(),
                forwarding,
                queues: endless(),
                host: Host { latency: Some(Span::from_ns(300)), ..Host::default() },
                ..Config::default()
            };
            check_alone(&config, &SIZES);
        }
    }
}

#[test]
fn memory_follows_what_is_open_and_under_way() {
    let config = Config { queues: endless(), ..switch(9) };
    let mut network = raw(plan(&config, &[]), Recovery::None, 1);
    // Eight flows at a time, one after the other for long.
    let mut sizes = (0, 0);
    for round in 0..5_000 {
        let start = network.now().as_ps();
        for src in 0..8 {
            network.offer(&flow(8 * round + u64::from(src), src, 8, 3_000, start));
        }
        network.advance(Time::from_ps(start + 40_000_000), &mut ());
        assert_eq!(network.desk.ledger.open, 0);
        if round == 10 {
            sizes = (network.net().halves.places(), network.net().arena.capacity());
        }
    }
    assert_eq!(sizes, (network.net().halves.places(), network.net().arena.capacity()));
    assert!(sizes.0 == 8 && sizes.1 <= 24, "{sizes:?}");
    network.check().unwrap();
}

#[test]
fn the_ideal_time_of_one_packet_is_the_sum_of_its_parts() {
    // 10 Gbps, 100 ns wires, a switch of 500 ns: 140 B take 112 ns a link.
    let one = flow(0, 0, 1, 100, 0);
    let store = carry(&switch(2), &[one]).1.completed[0].2;
    assert_eq!(store, Span::from_ns(112 + 100 + 500 + 112 + 100));
    // Cut-through waits for 64 bytes, 51.2 ns, only.
    let config = Config { forwarding: Forwarding::CutThrough, ..switch(2) };
    let cut = carry(&config, &[one]).1.completed[0].2;
    assert_eq!(cut, Span::from_ps(51_200 + 100_000 + 500_000 + 112_000 + 100_000));
}

#[test]
fn a_rate_that_divides_nothing_does_not_drift() {
    let shape = SingleSwitch { hosts: 2, rate: Rate::from_bps(28_000_000_001), delay: Span::ZERO };
    let topology = Shape::SingleSwitch(shape);
    let config = Config { topology, queues: endless(), ..Config::default() };
    let size = 1460 * 10_000;
    let (_, ends) = carry(&config, &[flow(0, 0, 1, size, 0)]);
    let (_, end, ideal, _) = ends.completed[0];
    // One packet store and forward, ten thousand on the line, each rounded by less than 1 ps.
    let exact = Rate::from_bps(28_000_000_001).send_time(Bytes::new(1500 * 10_001));
    let fct = end - Time::ZERO;
    let latency = Span::from_ns(500);
    let close = |span: Span| span.as_ps().abs_diff((exact + latency).as_ps());
    assert!(close(fct) <= 2, "{fct} for {exact}");
    // The ideal rounds each send up.
    assert!(close(ideal) <= 10_001, "{ideal} for {exact}");
}
