//! Lossless links: pauses with and without headroom, credits, per-flow backpressure.

use rack::topology::{Graph, LeafSpine, Torus};

use super::*;
use crate::config::{CreditFlow, FlowControl, PerFlow, Pfc};
use crate::packet::{Kind, Packet};

/// A fixed threshold for pauses: several packets, some round trips of a link.
const XOFF: Bytes = Bytes::new(20_000);

/// Two switches in a row: hosts 0 to 3 at the first, 4 and 5 at the second, one trunk between.
fn dumbbell() -> Shape {
    let edges = "a,b,rate,delay\n0,6,10 Gbps,1 us\n1,6,10 Gbps,1 us\n2,6,10 Gbps,1 us\n\
                 3,6,10 Gbps,1 us\n4,7,10 Gbps,1 us\n5,7,10 Gbps,1 us\n6,7,10 Gbps,1 us\n";
    Shape::Graph(Graph { hosts: 6, edges: edges.into(), ..Graph::default() })
}

fn with(flow_control: FlowControl, topology: Shape) -> Config {
    let queues = Queues { flow_control, ..Queues::default() };
    Config { topology, queues, ..Config::default() }
}

fn pfc_of(xoff: u64) -> FlowControl {
    FlowControl::Pfc(Pfc::fixed(Bytes::new(xoff)))
}

/// Four hosts through the trunk to one; all is delivered or not.
fn through_the_trunk(flow_control: FlowControl) -> (Network<LineRate>, Ends) {
    let mut flows: Vec<_> = (0..4).map(|src| flow(src.into(), src, 4, 1_460_000, 0)).collect();
    // Traffic the other way, for pauses to wait behind.
    flows.extend((4..6).map(|src| flow(src.into(), src, src - 4, 1_460_000, 0)));
    carry(&with(flow_control, dumbbell()), &flows)
}

#[test]
fn pauses_with_the_headroom_of_the_formula_lose_nothing() {
    for (xoff, xon) in [(20_000, 17_000), (1_500, 1_500), (1_500, 0), (50_000, 10_000)] {
        let (xoff, xon) = (Bytes::new(xoff), Bytes::new(xon));
        let pfc = Pfc { xoff, xon, ..Pfc::default() };
        let (network, ends) = through_the_trunk(FlowControl::Pfc(pfc));
        assert_eq!((network.totals().drops, ends.completed.len()), (0, 6), "xoff {xoff}");
        assert!(network.net().counts.pauses > 0);
        // Resumed as often as paused: nothing is held back at the end.
        assert!(network.net().ports.iter().all(|port| port.held == 0));
    }
}

#[test]
fn a_pause_that_is_said_again_never_runs_out() {
    // A pause of 63 quanta lasts for two packets and a half of 1,500 B; these must last for longer.
    let frames = |quanta| {
        let pfc = Pfc { quanta, ..Pfc::fixed(Bytes::new(20_000)) };
        let (network, ends) = through_the_trunk(FlowControl::Pfc(pfc));
        assert_eq!((network.totals().drops, ends.completed.len()), (0, 6), "{quanta} quanta");
        assert!(network.net().ports.iter().all(|port| port.held == 0), "{quanta} quanta");
        (network.net().counts.link_frames, network.net().counts.pauses)
    };
    // One frame pauses and one resumes; the longest pause needs no other.
    let (longest, pauses) = frames(65_535);
    assert_eq!(longest, 2 * pauses);
    let (shortest, pauses) = frames(63);
    assert!(shortest > 2 * pauses, "{shortest} frames for {pauses} pauses");
}

#[test]
fn a_pause_that_nobody_says_again_runs_out_after_its_quanta() {
    let mut network = raw(plan(&with(pfc_of(20_000), dumbbell()), &[]), Recovery::None, 1);
    let port = network.net().nics[0];
    let frame =
        |quanta| Packet { kind: Kind::PAUSE, priority: 1, ack: quanta, ..Packet::default() };
    network.parts.get_mut(0).net.pause_frame(&frame(1_000), port);
    network.parts.get_mut(0).net.pause_frame(&frame(100), port);
    let ends = run(&mut network, &[flow(0, 0, 4, 14_600, 0)]);
    // The last frame counts: 100 times 512 bits at 10 Gbps.
    let (_, end, ideal, _) = ends.completed[0];
    assert_eq!(end, Time::ZERO + Span::from_ps(100 * 51_200) + ideal);
}

#[test]
fn pauses_without_headroom_lose_packets() {
    let none = Pfc { headroom: Bytes::new(1), ..Pfc::fixed(XOFF) };
    let (network, _) = through_the_trunk(FlowControl::Pfc(none));
    assert!(network.totals().drops > 0);
}

#[test]
fn the_headroom_is_used_and_no_more_than_it() {
    // A wire of 1 µs at 10 Gbps holds 1,250 bytes; the formula adds packets and the pipeline.
    let room = Pfc::headroom_for(
        Rate::from_gbps(10),
        Span::from_us(1),
        Span::from_ns(500),
        Bytes::new(1500),
    );
    assert_eq!(room, Bytes::new(4_500 + 128 + 3_125 + 1));
    let xoff = XOFF.get();
    let used = |pfc: Pfc| {
        let network = through_the_trunk(FlowControl::Pfc(pfc)).0;
        (u64::from(network.net().counts.ingress_max) - xoff, network.totals().drops)
    };
    // It is enough, and all but a packet and a frame of it is needed.
    let (most, drops) = used(Pfc { headroom: room, ..Pfc::fixed(XOFF) });
    assert_eq!(drops, 0);
    assert!(most <= room.get() && most + 1_700 >= room.get(), "{most} of {room}");
    let tight = Pfc { headroom: Bytes::new(most - 1), ..Pfc::fixed(XOFF) };
    assert!(used(tight).1 > 0);
}

#[test]
fn pauses_spread_and_hold_back_the_innocent() {
    // Host 3 sends to 5 over the trunk that flows to 4 have paused: it gets a fourth of the trunk
    // or less, though 5 is idle (head-of-line blocking, DCQCN Fig. 2).
    let mut flows: Vec<_> = (0..3).map(|src| flow(src.into(), src, 4, 14_600_000, 0)).collect();
    flows.push(flow(3, 3, 5, 1_460_000, 0));
    let config = with(FlowControl::Pfc(Pfc::fixed(XOFF)), dumbbell());
    let (network, ends) = carry(&config, &flows);
    let victim = ends.completed.iter().find(|(flow, ..)| flow.id.get() == 3).unwrap();
    let slowdown = (victim.1 - Time::ZERO).as_seconds() / victim.2.as_seconds();
    assert_eq!(network.totals().drops, 0);
    assert!(slowdown > 3.0, "{slowdown}");
}

#[test]
fn credits_lose_nothing_and_keep_a_lone_flow_at_line_rate() {
    let credit = CreditFlow::default();
    let (network, ends) = through_the_trunk(FlowControl::Credit(credit.clone()));
    assert_eq!((network.totals().drops, ends.completed.len()), (0, 6));
    // A buffer of a round trip and a packet keeps the line busy; the frames cost the way back only.
    let config = with(FlowControl::Credit(credit), dumbbell());
    let (_, ends) = carry(&config, &[flow(0, 0, 4, 14_600_000, 0)]);
    let (_, end, ideal, _) = ends.completed[0];
    assert_eq!(end - Time::ZERO, ideal);
}

#[test]
fn credits_for_one_packet_send_one_packet_a_round_trip() {
    let credit = CreditFlow { buffer: Bytes::new(1500), frame: Bytes::new(8) };
    let config = with(FlowControl::Credit(credit), dumbbell());
    let (network, ends) = carry(&config, &[flow(0, 0, 4, 146_000, 0)]);
    let fct = (ends.completed[0].1 - Time::ZERO).as_seconds();
    // 1.2 µs a packet, 1 µs to the switch, 0.5 µs in it, 6.4 ns for the frame and 1 µs back.
    let expected = 99.0 * 3.7064e-6;
    assert!((expected..expected + 12e-6).contains(&fct), "{fct}");
    // A packet reaches the first switch just as the trunk's credit comes back.
    assert!(network.totals().queue_max_cells <= 1);
}

#[test]
fn per_flow_queues_share_the_trunk_and_spare_the_innocent() {
    let mut flows: Vec<_> = (0..3).map(|src| flow(src.into(), src, 4, 14_600_000, 0)).collect();
    flows.push(flow(3, 3, 5, 14_600_000, 0));
    let config = with(FlowControl::PerFlow(PerFlow::default()), dumbbell());
    let (network, ends) = carry(&config, &flows);
    assert_eq!((network.totals().drops, ends.completed.len()), (0, 4));
    // Four flows share the trunk a quarter each, so all end together: max-min fairness.
    for (flow, end, ideal, _) in &ends.completed {
        let slowdown = (*end - Time::ZERO).as_seconds() / ideal.as_seconds();
        assert!((3.9..4.05).contains(&slowdown), "{:?}: {slowdown}", flow.id);
    }
    // No queue is longer than the windows of the flows in it.
    let window = network.net().flow_queues.as_ref().unwrap().window[0];
    assert!(network.totals().queue_max_cells <= 4 * u64::from(window), "{window}");
}

#[test]
fn per_flow_queues_carry_any_pattern_over_a_torus_sprayed() {
    let topology = Shape::Torus(Torus { dimensions: vec![4, 4], ..Default::default() });
    let config = Config {
        routing: crate::config::Routing::RandomSpray,
        ..with(FlowControl::PerFlow(PerFlow::default()), topology)
    };
    let flows: Vec<_> = (0..16)
        .flat_map(|src| (0..16).filter(move |&dst| dst != src).map(move |dst| (src, dst)))
        .zip(0..)
        .map(|((src, dst), id)| flow(id, src, dst, 73_000, 0))
        .collect();
    let (network, ends) = carry(&config, &flows);
    assert_eq!((network.totals().drops, ends.completed.len()), (0, 240));
}

/// A network of per-flow queues whose packets go by way of random hosts.
fn by_way_of_any(dimensions: Vec<u32>) -> Config {
    let topology = Shape::Torus(Torus { dimensions, ..Default::default() });
    let routing = crate::config::Routing::Valiant;
    Config { routing, ..with(FlowControl::PerFlow(PerFlow::default()), topology) }
}

/// How much of a link's rate each node of a torus gets as all send to the one `step` nodes on.
fn share_of_a_link(config: &Config, nodes: u32, step: u32) -> f64 {
    let size = 7_300_000;
    let flows: Vec<_> =
        (0..nodes).map(|src| flow(src.into(), src, (src + step) % nodes, size, 0)).collect();
    let (network, ends) = carry(config, &flows);
    assert_eq!((network.totals().drops, ends.completed.len()), (0, nodes as usize));
    let last = ends.completed.iter().map(|(_, end, ..)| *end).max().unwrap();
    // As many packets as there are full ones in it, with their headers.
    let wire = size as f64 * 1500.0 / 1460.0;
    wire * 8.0 / (last - Time::ZERO).as_seconds() / 10e9
}

/// The same by counting: the hops up and down a ring that a packet takes on average from node 0 to
/// `step` by way of each node, half of them each way where both are as long. It stays where it first
/// meets its destination. The busier direction limits.
fn share_of_a_ring(nodes: i32, step: i32) -> f64 {
    let ways = |from: i32, to: i32| match (to - from).rem_euclid(nodes) {
        up if 2 * up == nodes => [up, -up],
        up if 2 * up < nodes => [up, up],
        up => [up - nodes, up - nodes],
    };
    let mut hops = [0.0, 0.0];
    for first in 0..nodes {
        for (one, other) in
            ways(0, first).into_iter().flat_map(|way| ways(first, step).map(|b| (way, b)))
        {
            let mut at = 0;
            let legs = [one, other]
                .map(|leg| std::iter::repeat_n(leg.signum(), leg.unsigned_abs() as usize));
            for hop in legs.into_iter().flatten() {
                if at != step {
                    at = (at + hop).rem_euclid(nodes);
                    hops[usize::from(hop < 0)] += 0.25 / f64::from(nodes);
                }
            }
        }
    }
    1.0 / hops[0].max(hops[1])
}

#[test]
fn slow_by_way_of_random_hosts_a_ring_carries_what_its_links_do() {
    // Two legs of four hops on average over two links a node: a fourth of a link, were it not for those
    // that pass their destination early.
    let ring = by_way_of_any(vec![16]);
    for step in [1, 5, 8] {
        let expected = share_of_a_ring(16, step);
        let found = share_of_a_link(&ring, 16, step as u32);
        assert!(
            (0.93 * expected..1.01 * expected).contains(&found),
            "{step}: {found} of {expected}"
        );
    }
    // Straight on, nodes seven apart get a seventh of a link, and neighbours a whole one.
    let straight = Config { routing: crate::config::Routing::RandomSpray, ..ring };
    for step in [1, 7] {
        let found = share_of_a_link(&straight, 16, step);
        let expected = 1.0 / f64::from(step);
        assert!((0.97 * expected..1.01 * expected).contains(&found), "{step}: {found}");
    }
}

#[test]
fn per_flow_queues_carry_any_pattern_by_way_of_random_hosts() {
    for dimensions in [vec![4, 4], vec![5], vec![2, 3, 2]] {
        let nodes = dimensions.iter().product::<u32>();
        let flows: Vec<_> = (0..nodes)
            .flat_map(|src| (0..nodes).filter(move |&dst| dst != src).map(move |dst| (src, dst)))
            .zip(0..)
            .map(|((src, dst), id)| flow(id, src, dst, 73_000, 0))
            .collect();
        let (network, ends) = carry(&by_way_of_any(dimensions), &flows);
        assert_eq!((network.totals().drops, ends.completed.len()), (0, flows.len()));
    }
}

#[test]
fn pauses_work_across_a_clos_under_incast() {
    for pfc in [Pfc::default(), Pfc::fixed(XOFF)] {
        let topology = Shape::LeafSpine(LeafSpine { hosts: 32, radix: 8, ..Default::default() });
        let config = with(FlowControl::Pfc(pfc), topology);
        let flows: Vec<_> = (1..32).map(|src| flow(src.into(), src, 0, 146_000, 0)).collect();
        let (network, ends) = carry(&config, &flows);
        assert_eq!((network.totals().drops, ends.completed.len()), (0, 31));
        assert!(network.net().counts.pauses > 0);
    }
}

#[test]
fn thresholds_that_follow_the_free_memory_lose_nothing_and_use_it_all() {
    // Four senders through a trunk: all memory but the headroom of the ports that nobody fills is
    // taken, and the senders are resumed as often as they were paused.
    for beta in [0.125, 1.0, 8.0, 128.0] {
        let pfc = Pfc { beta, priorities: vec![1], ..Pfc::default() };
        let (network, ends) = through_the_trunk(FlowControl::Pfc(pfc));
        assert_eq!((network.totals().drops, ends.completed.len()), (0, 6), "beta {beta}");
        assert!(network.net().counts.pauses > 0, "beta {beta}");
        assert!(network.net().ports.iter().all(|port| port.held == 0), "beta {beta}");
        let pauses = network.net().pauses_state();
        assert!(pauses.iter().all(|memory| memory.used == 0), "beta {beta}: {pauses:?}");
    }
}

#[test]
fn two_ports_are_paused_when_each_holds_a_third_of_the_memory() {
    // Two senders at line rate, one trunk: both ports fill alike, until each holds x, with
    // x = beta / 8 (M - 2 x): M / 3 for a beta of 8. What comes later is under way.
    let pfc = Pfc { priorities: vec![1], ..Pfc::default() };
    let flows: Vec<_> = (0..2).map(|src| flow(src.into(), src, 4, 4_000_000, 0)).collect();
    let (network, _) = carry(&with(FlowControl::Pfc(pfc), dumbbell()), &flows);
    let pool = network.net().pauses_state()[6].pool;
    let most = u64::from(network.net().counts.ingress_max);
    let third = pool / 3;
    assert!(most >= third && most <= third + 20_000, "{most} of {pool}");
}
