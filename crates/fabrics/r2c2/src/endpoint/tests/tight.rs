//! Ports with little room: what is dropped is retransmitted, to those who missed it, and that ends.

use rack::topology::Mesh;

use super::*;

/// Flows between all pairs of nodes.
fn shuffle(nodes: u32, size: u64) -> Vec<Flow> {
    let pairs = (1..nodes).flat_map(|step| (0..nodes).map(move |src| (src, (src + step) % nodes)));
    (0..).zip(pairs).map(|(id, (src, dst))| flow(id, src, dst, size, Time::ZERO)).collect()
}

/// How often a copy may have been retransmitted in so long: each wait is twice as long as the last.
fn repeats_max(plan: &Plan, time: Time) -> u64 {
    let pauses = time.as_ps() / plan.config.recovery.pause.as_ps();
    u64::from((1 + pauses).ilog2() + 1)
}

/// Lets a rack go on to `until`, in steps of `step`: repeating never multiplies.
#[track_caller]
fn advance(
    network: &mut Network<Endpoints>,
    plan: &Plan,
    (step, until): (Span, Time),
    ends: &mut Ends,
) -> Advance {
    let nodes = u64::from(plan.nodes());
    loop {
        let state = network.advance((network.now() + step).min(until), ends);
        let counts = network.transport().news.counts();
        let most = counts.sent * (nodes - 1) * repeats_max(plan, network.now());
        assert!(counts.repeated <= most, "{counts:?}");
        if state == Advance::Idle || network.now() >= until {
            return state;
        }
    }
}

/// 240 flows start at once where nine kilobytes wait at a port. Each broadcast that was dropped at four
/// ports was retransmitted to all by four new ones.
#[test]
fn m13_broadcasts_that_find_no_room_do_not_multiply() {
    let plan = Config { port_buffer: Bytes::new(9_000), ..torus(&[4, 4]) }.plan().unwrap();
    let mut network = rack(&plan, 1);
    shuffle(16, 1_000_000).iter().for_each(|flow| network.offer(flow));
    let mut ends = Ends::default();
    let until = Time::ZERO + Span::from_us(300);
    advance(&mut network, &plan, (Span::from_us(5), until), &mut ends);
    let counts = network.transport().news.counts();
    assert_eq!(counts.sent, 240, "no flow has ended: {counts:?}");
    assert!(counts.repeated > 0 && counts.repeated <= counts.lost, "{counts:?}");
    let until = Time::ZERO + Span::from_us(2_000);
    advance(&mut network, &plan, (Span::from_us(5), until), &mut ends);
    assert!(ends.completed.is_empty());
    // Once rates fit the links, all come to know of all flows.
    for node in (0..16).map(NodeId::new) {
        assert_eq!(network.transport().news.facts.known(node).count(), 240, "{node}");
    }
}

#[test]
fn m13_broadcasts_without_room_are_said_again() {
    let config = Config { port_buffer: Bytes::new(3_000), ..torus(&[4, 4]) };
    let plan = config.plan().unwrap();
    let mut network = rack(&plan, 1);
    let ends = carry(&mut network, &permutation(16, 6, 400_000));
    let counts = network.transport().news.counts();
    assert_eq!(ends.completed.len(), 16);
    assert!(counts.lost > 0 && counts.repeated > 0, "{counts:?}");
    // No node hears what it has heard: no broadcast is sent twice.
    assert_eq!(counts.sent, 32);
}

/// A search over hundreds of flows where ports have room for a packet.
#[test]
fn m33_what_is_told_of_many_flows_goes_in_many_packets() {
    let selection = Selection {
        period: Span::from_us(100),
        age: Span::ZERO,
        population: 11,
        patience: 1,
        least_gain: 0.0,
        ..Selection::default()
    };
    let small = Bytes::new(200);
    let config = Config { mtu: small, burst: small, port_buffer: small, ..torus(&[4, 4]) };
    // Where all send to all, two legs for each packet are one too many.
    let classes = vec![config::Class { protocol: Protocol::Valiant, ..config::Class::default() }];
    let plan = Config { selection: Some(selection), classes, ..config }.plan().unwrap();
    // (32 - 14) / 5.
    assert_eq!(plan.pairs_max(), 3);
    let mut network = rack(&plan, 1);
    let ends = carry(&mut network, &shuffle(16, 50_000));
    assert_eq!(ends.completed.len(), 240);
    let (searches, changes) = network.transport().selector.counts();
    assert!(changes > 37, "{searches} {changes}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any buffer that holds a packet, any small rack, from a few flows to all pairs at once: broadcasts
    /// never multiply, all flows arrive, and in the end nobody remembers any.
    #[test]
    fn slow_m13_repeating_ends_under_any_buffer(
        dimensions in prop::collection::vec(2u32..6, 1..3),
        is_mesh in any::<bool>(),
        buffer in prop_oneof![Just(1_500u64), 1_500u64..20_000],
        size in 1u64..60_000,
        share in 1u32..=8,
        pause in prop::sample::select(&[1u64, 10, 100][..]),
        priority in prop::sample::select(&[0u8, 7][..]),
        interval in prop::sample::select(&[0u64, 500][..]),
        loss_rate in prop::sample::select(&[0.0, 0.0, 0.02][..]),
        seed in any::<u64>(),
    ) {
        let topology = if is_mesh {
            Shape::Mesh(Mesh { dimensions, ..Mesh::default() })
        } else {
            Shape::Torus(Torus { dimensions, ..Torus::default() })
        };
        let recovery = config::Recovery { pause: Span::from_us(pause), ..config::Recovery::default() };
        let plan = Config {
            topology,
            port_buffer: Bytes::new(buffer),
            broadcast_priority: priority,
            interval: Span::from_us(interval),
            recovery,
            loss_rate,
            ..Config::default()
        }.plan().unwrap();
        let mut flows = shuffle(plan.nodes(), size);
        flows.retain(|flow| flow.id.get() % 8 < u64::from(share));
        let mut network = rack(&plan, seed);
        flows.iter().for_each(|flow| network.offer(flow));
        let mut ends = Ends::default();
        let until = Time::ZERO + Span::from_us(20_000_000);
        let state = advance(&mut network, &plan, (Span::from_us(200), until), &mut ends);
        prop_assert_eq!(state, Advance::Idle);
        prop_assert_eq!(ends.completed.len(), flows.len());
        network.check().unwrap();
        let news = &network.transport().news;
        prop_assert_eq!((news.facts.live(), news.facts.waiting()), (0, 0));
        prop_assert!(news.repeats.is_empty());
    }
}
