//! Whole racks, small ones: flows against their fair rates, views against the truth, failures.

mod alone;
mod books;
mod central;
mod failures;
mod headers;
mod racks;
mod tight;
mod translation;

use std::ops::ControlFlow;

use kernel::{Bytes, Rate, Span, Time};
use packets::{FlowKey, Network, Outbox, Packet, Transport};
use proptest::prelude::*;
use rack::topology::{Shape, Torus};
use rack::{Advance, Class, Completion, Fabric, Failure, Flow, FlowId, NodeId, Probe};

use super::{Endpoints, frames};
use crate::config::{self, Config, Plan, Selection, Turn};
use crate::endpoint::kinds;
use crate::rates::{Course, Routed, Terms, Waterfill, Whose, capacities};
use crate::routing::Protocol;
use crate::wire::{self, Announcement};

/// What ended.
#[derive(Clone, Debug, Default)]
struct Ends {
    completed: Vec<(Flow, Time)>,
    failed: Vec<(Flow, Failure)>,
}

impl Probe for Ends {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        let Completion { flow, end, ideal, .. } = *completion;
        assert!(end - flow.start >= ideal, "{flow:?} took {}, ideally {ideal}", end - flow.start);
        self.completed.push((*flow, end));
        ControlFlow::Continue(())
    }

    fn failed(&mut self, flow: &Flow, _: Time, why: Failure) -> ControlFlow<()> {
        self.failed.push((*flow, why));
        ControlFlow::Continue(())
    }
}

fn torus(dimensions: &[u32]) -> Config {
    let torus = Torus { dimensions: dimensions.to_vec(), ..Torus::default() };
    Config { topology: Shape::Torus(torus), ..Config::default() }
}

fn flow(id: u64, src: u32, dst: u32, size: u64, start: Time) -> Flow {
    Flow {
        id: FlowId::new(id),
        src: NodeId::new(src),
        dst: NodeId::new(dst),
        size: Bytes::new(size),
        start,
        class: Class::new(0),
    }
}

fn rack(plan: &Plan, seed: u64) -> Network<Endpoints> {
    Network::new(plan.network.clone(), Endpoints::new(plan, seed), seed).unwrap()
}

/// Carries all flows to their end. Once it is quiet nobody remembers anything.
#[track_caller]
fn carry(network: &mut Network<Endpoints>, flows: &[Flow]) -> Ends {
    // Long enough for all that these tests carry: one that never ends would be found here.
    carry_until(network, flows, Time::from_ps(20_000_000_000_000))
}

/// The same, until `end` at the latest.
#[track_caller]
fn carry_until(network: &mut Network<Endpoints>, flows: &[Flow], end: Time) -> Ends {
    let mut ends = Ends::default();
    for flow in flows {
        network.offer(flow);
    }
    assert_eq!(network.advance(end, &mut ends), Advance::Idle);
    network.check().unwrap();
    assert_eq!(ends.completed.len() + ends.failed.len(), flows.len());
    let news = &network.transport().news;
    assert_eq!(news.facts.live(), 0);
    for node in (0..network.nodes()).map(NodeId::new) {
        assert_eq!(news.facts.known(node).count(), 0, "{node} knows of flows that are over");
    }
    ends
}

/// Flows from each node to the one `step` further on.
fn permutation(nodes: u32, step: u32, size: u64) -> Vec<Flow> {
    (0..nodes)
        .map(|node| flow(node.into(), node, (node + step) % nodes, size, Time::ZERO))
        .collect()
}

#[test]
fn every_flow_arrives_and_is_forgotten() {
    for protocol in Protocol::ALL {
        let classes = vec![config::Class { protocol, ..config::Class::default() }];
        let plan = Config { classes, ..torus(&[4, 4]) }.plan().unwrap();
        let mut network = rack(&plan, 1);
        let ends = carry(&mut network, &permutation(16, 5, 300_000));
        assert_eq!((ends.completed.len(), network.totals().drops), (16, 0), "{protocol:?}");
    }
}

#[test]
fn i09_a_broadcast_takes_one_link_for_each_node_but_its_source() {
    let plan = torus(&[4, 4, 4]).plan().unwrap();
    let mut network = rack(&plan, 1);
    carry(&mut network, &permutation(64, 21, 20_000));
    // A start and a finish for each flow (§3.1).
    let counts = network.transport().news.counts();
    assert_eq!((counts.sent, counts.copies), (128, 128 * 63));
}

/// The rates of `flows` in the whole network, by water-filling with all of them known.
fn fair(plan: &Plan, flows: &[Flow], terms: &[Terms]) -> Vec<f64> {
    let used: Vec<Protocol> = plan.config.classes.iter().map(|class| class.protocol).collect();
    let routed = Routed::new(&plan.routing, &used).unwrap();
    let free = capacities(&plan.network.topology, plan.config.headroom);
    let mut filling = Waterfill::new(routed, free);
    for (place, (flow, terms)) in (0..).zip(flows.iter().zip(terms)) {
        let protocol = plan.config.classes[usize::from(flow.class.get())].protocol;
        filling.join(place, Course { source: flow.src, destination: flow.dst, protocol }, *terms);
    }
    filling.fill(Whose::All);
    (0..flows.len() as u32).map(|place| filling.rate(place)).collect()
}

/// Computations are far apart: rates are those of the flows' starts.
#[test]
fn a_flow_starts_at_its_share_of_what_its_node_knows() {
    let start = config::Start::Share;
    let plan = Config { start, interval: Span::from_us(1_000_000), ..torus(&[4, 4, 4]) };
    let plan = plan.plan().unwrap();
    // The third comes long after the broadcasts of the others.
    let flows = [(0, 0, 0), (1, 0, 0), (2, 1, 20)]
        .map(|(id, source, us)| flow(id, source, 2, 1 << 40, Time::ZERO + Span::from_us(us)));
    let mut network = rack(&plan, 1);
    flows.iter().for_each(|flow| network.offer(flow));
    network.advance(Time::ZERO + Span::from_us(30), &mut ());
    let terms = [Terms::default(); 3];
    let [two, three] = [2, 3].map(|count| fair(&plan, &flows[..count], &terms[..count]));
    // Node 0 does not compute again when the third comes.
    let expected = [two[0], two[1], three[2]];
    let senders = &network.transport().senders;
    for (key, expected) in (0..).map(FlowKey::new).zip(expected) {
        let ours = senders.get(key).bucket.pace().unwrap().as_bps();
        assert_eq!(ours, expected as u64, "{key:?}");
    }
}

#[test]
fn slow_long_flows_get_their_fair_rates() {
    let plan = torus(&[4, 4, 4]).plan().unwrap();
    // Everybody sends to a few, so that rates differ; 40 ms at the least rate that there is.
    let flows: Vec<Flow> = (1..64)
        .map(|node| {
            flow(
                node.into(),
                node,
                if node % 3 == 0 { 0 } else { (node + 7) % 64 },
                1 << 40,
                Time::ZERO,
            )
        })
        .collect();
    let rates = fair(&plan, &flows, &vec![Terms::default(); flows.len()]);
    assert!(
        rates.iter().copied().fold(0.0, f64::max)
            > 2.0 * rates.iter().copied().fold(f64::INFINITY, f64::min)
    );
    let mut network = rack(&plan, 1);
    for flow in &flows {
        network.offer(flow);
    }
    let delivered = |network: &Network<Endpoints>| -> Vec<u64> {
        let receivers = &network.transport().receivers;
        flows.iter().map(|flow| receivers.received(flow.src, flow.dst)).collect()
    };
    // Until all have computed, flows of 10 Gbps each fill queues, which the headroom empties: 5 % of a
    // link in 30 ms are 1.9 MB.
    network.advance(Time::ZERO + Span::from_us(40_000), &mut Ends::default());
    let before = delivered(&network);
    network.advance(Time::ZERO + Span::from_us(45_000), &mut Ends::default());
    let after = delivered(&network);
    for (index, rate) in rates.iter().enumerate() {
        let packets = after[index] - before[index];
        let found = packets as f64 * 1_500.0 * 8.0 / 5e-3;
        assert!((found / rate - 1.0).abs() < 0.02, "flow {index}: {found} for {rate} bit/s");
    }
    // I19: where no link has more than its part, queues do not grow.
    let mut gauges = vec![0.0; network.gauges().len()];
    network.sample(&mut gauges);
    network.advance(Time::ZERO + Span::from_us(46_000), &mut Ends::default());
    network.sample(&mut gauges);
    let longest = gauges[2];
    // M/D/1 at 95 %: more than n packets wait with a chance of about exp(-0.1 n).
    assert!(longest < 150_000.0, "{longest} B wait at a port");
}

#[test]
fn m23_what_a_host_cannot_send_others_get() {
    let limited =
        config::Class { application_rate: Some(Rate::from_gbps(1)), ..config::Class::default() };
    let ordered =
        config::Class { protocol: Protocol::DimensionOrderUp, ..config::Class::default() };
    let limited = config::Class { protocol: Protocol::DimensionOrderUp, ..limited };
    let plan = Config { classes: vec![ordered, limited], ..torus(&[4, 4]) }.plan().unwrap();
    // Both cross the link from node 1 to node 2; the second gives 1 Gbps for 20 ms.
    let flows = [
        flow(0, 1, 2, 18_000_000, Time::ZERO),
        Flow { class: Class::new(1), ..flow(1, 0, 2, 2_500_000, Time::ZERO) },
    ];
    let mut network = rack(&plan, 1);
    let ends = carry(&mut network, &flows);
    let first = ends.completed.iter().find(|(flow, _)| flow.id.get() == 0).unwrap();
    // At the half of 9.5 Gbps it would take 30 ms; at all but the other's 1 Gbps 17 ms, and some
    // more for the first intervals.
    let took = first.1 - Time::ZERO;
    assert!(took < Span::from_us(20_000), "{took}");
    assert!(took > Span::from_us(16_900), "{took}");
}

/// Flows that have the rack to themselves, of a tenth of an interval to four, at any time of one: each takes
/// as long as its application does, and hardly longer.
#[test]
fn m23_a_flow_alone_ends_when_its_application_does() {
    let application = Rate::from_gbps(5);
    let class = config::Class { application_rate: Some(application), ..config::Class::default() };
    let plain = Config { classes: vec![class], ..torus(&[4, 4]) };
    let interval = plain.interval;
    let flows: Vec<Flow> = (0..400)
        .map(|id: u64| {
            let (src, part) = ((id * 7 % 16) as u32, id % 40 + 1);
            let size = application.bytes_in(interval * part / 10).get();
            let start = Time::ZERO + interval * 10 * id + interval * (id * 37 % 101) / 101;
            flow(id, src, (src + 6) % 16, size, start)
        })
        .collect();
    for (start, controller) in
        [(config::Start::Link, None), (config::Start::Share, None), (config::Start::Link, Some(3))]
    {
        let plan = Config { start, controller, ..plain.clone() }.plan().unwrap();
        let ends = carry(&mut rack(&plan, 1), &flows);
        assert_eq!(ends.completed.len(), flows.len());
        for (flow, end) in ends.completed {
            let gives = application.send_time(flow.size);
            let took = end - flow.start;
            assert!(
                took > gives && took < gives * 11 / 10 + interval / 10,
                "{start:?} {flow:?} took {took} for {gives}"
            );
        }
    }
}

#[test]
fn m21_a_flow_of_later_priority_waits_for_what_is_left() {
    let class = |priority| config::Class {
        protocol: Protocol::DimensionOrderUp,
        priority,
        ..config::Class::default()
    };
    let plan = Config { classes: vec![class(0), class(1)], ..torus(&[4, 4]) }.plan().unwrap();
    let flows = [
        flow(0, 0, 2, 12_000_000, Time::ZERO),
        Flow { class: Class::new(1), ..flow(1, 1, 2, 12_000_000, Time::ZERO) },
    ];
    let mut network = rack(&plan, 1);
    let ends = carry(&mut network, &flows);
    let at = |id| ends.completed.iter().find(|(flow, _)| flow.id.get() == id).unwrap().1;
    // 12 MB and headers at 9.5 Gbps take 10.4 ms each, one after the other.
    assert!(at(FlowId::new(0).get()) < Time::ZERO + Span::from_us(11_500));
    assert!(at(1) > Time::ZERO + Span::from_us(19_500));
}

#[test]
fn equal_runs_are_equal() {
    let plan = torus(&[4, 4]).plan().unwrap();
    let run = |seed| {
        let mut network = rack(&plan, seed);
        carry(&mut network, &permutation(16, 6, 200_000));
        network.totals().event_hash
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn what_links_lose_is_sent_again_data_and_news_alike() {
    let config = Config { loss_rate: 0.01, ..torus(&[4, 4]) };
    let mut network = rack(&config.plan().unwrap(), 1);
    let ends = carry(&mut network, &permutation(16, 6, 400_000));
    assert_eq!(ends.completed.len(), 16);
    assert!(network.totals().retransmissions > 0);
    assert!(network.transport().news.counts().lost > 0);
}

/// A rack in which two neighbours send to each other for long.
fn pair(turn: Option<Turn>) -> (Config, Vec<Flow>) {
    let search = |turn| Selection {
        turn,
        period: Span::from_us(4_000),
        age: Span::from_us(1_000),
        ..Selection::default()
    };
    let config = Config { selection: turn.map(search), ..torus(&[4, 4, 4]) };
    (config, vec![flow(0, 0, 1, 60_000_000, Time::ZERO), flow(1, 1, 0, 60_000_000, Time::ZERO)])
}

#[test]
fn slow_m31_long_flows_come_to_use_other_paths() {
    let time = |turn| {
        let (config, flows) = pair(turn);
        let mut network = rack(&config.plan().unwrap(), 1);
        let ends = carry(&mut network, &flows);
        let last = ends.completed.iter().map(|(_, end)| *end).max().unwrap();
        (last - Time::ZERO, network.transport().selector.counts())
    };
    // On the one shortest path 60 MB, and headers, take 51.8 ms at 9.5 Gbps.
    let (alone, counts) = time(None);
    assert!(alone > Span::from_us(51_000) && counts == (0, 0), "{alone}");
    for turn in [Turn::First, Turn::Random, Turn::Token] {
        let (found, (searches, changes)) = time(Some(turn));
        assert!(found < alone / 2, "{turn:?}: {found} with, {alone} without");
        assert!(searches > 0 && changes >= 2, "{turn:?}: {searches} {changes}");
    }
}

#[test]
fn a_search_speaks_of_flows_that_end_meanwhile() {
    // A search every 50 us over flows that last about as long: news of other routing often come to
    // sources whose flow is over.
    let settings = Selection {
        period: Span::from_us(50),
        age: Span::ZERO,
        population: 11,
        patience: 1,
        least_gain: 0.0,
        ..Selection::default()
    };
    let plan = Config { selection: Some(settings), ..torus(&[4, 4]) }.plan().unwrap();
    let flows: Vec<Flow> = (0..300)
        .map(|id| {
            let src = (id * 7 % 16) as u32;
            flow(id, src, (src + 1 + (id % 15) as u32) % 16, 40_000, Time::from_ps(id * 10_000_000))
        })
        .collect();
    let mut network = rack(&plan, 1);
    assert_eq!(carry(&mut network, &flows).completed.len(), 300);
    assert!(network.transport().selector.counts().1 > 0);
}

/// Indices tell 256 flows between two nodes apart: what comes then starts when another is over, or fails
/// with its destination.
#[test]
fn flows_beyond_the_last_index_wait() {
    let flows: Vec<Flow> = (0..300).map(|id| flow(id, 0, 1, 20_000, Time::ZERO)).collect();
    let mut network = rack(&torus(&[4]).plan().unwrap(), 1);
    flows.iter().for_each(|flow| network.offer(flow));
    network.advance(Time::ZERO + Span::from_us(100), &mut ());
    for node in (0..4).map(NodeId::new) {
        assert_eq!(network.transport().news.facts.known(node).count(), 256, "{node}");
    }
    let mut network = rack(&torus(&[4]).plan().unwrap(), 1);
    let ends = carry(&mut network, &flows);
    assert_eq!((ends.completed.len(), network.transport().waiting.len()), (300, 0));
    assert_eq!(network.transport().news.counts().sent, 600);
    let at = Time::ZERO + Span::from_us(200);
    let dies = rack::Fault { component: rack::Component::Node(NodeId::new(1)), at, until: None };
    for is_told in [false, true] {
        let config = Config { failures: failures::told(is_told), ..torus(&[4]) };
        let plan = config.plan().unwrap().with_faults(&[dies]).unwrap();
        let mut network = rack(&plan, 1);
        let ends = carry(&mut network, &flows);
        assert!(ends.failed.len() > 200, "{}", ends.failed.len());
        assert_eq!(network.transport().waiting.len(), 0);
    }
}

/// What changes on its way is found, counted and dropped, and so is what no node would say.
#[test]
fn broadcasts_that_make_no_sense_are_counted() {
    let plan = torus(&[4]).plan().unwrap();
    let mut endpoints = Endpoints::new(&plan, 1);
    let mut out = Outbox::default();
    let said = Announcement {
        event: wire::Event::Start,
        number: 0,
        way: 0,
        source: NodeId::new(0),
        destination: NodeId::new(2),
        index: 0,
        round: 0,
        allocation: wire::Allocation {
            demand: wire::Kbps::UNLIMITED,
            weight: std::num::NonZeroU8::MIN,
            priority: 0,
            protocol: Protocol::Rps,
        },
    };
    let here = NodeId::new(1);
    let from = |bytes: &[u8]| Packet {
        kind: kinds::NOTICE,
        src: NodeId::new(0),
        dst: here,
        ..frames::carry(bytes)
    };
    let mut hear = |packet: Packet| {
        let before = out.unexpected_count();
        endpoints.receive(here, &packet, &mut out);
        let known = endpoints.news.facts.known(here).count();
        (out.unexpected_count() - before, known)
    };
    let good = said.encode();
    for bit in 0..128 {
        let mut damaged = good;
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(hear(from(&damaged)), (1, 0), "bit {bit}");
    }
    let allocation = wire::Allocation { protocol: Protocol::Valiant, ..said.allocation };
    let wrong = [
        // A tree that no source has, a protocol that no class has, a broadcast of its own.
        Announcement { way: 4, ..said },
        Announcement { allocation, ..said },
        Announcement { source: here, ..said },
        // A digest that is not there.
        Announcement { way: 0x10, ..said },
    ];
    for said in wrong {
        assert_eq!(hear(from(&said.encode())), (1, 0), "{said:?}");
    }
    assert_eq!(hear(Packet { wire: 33, ..from(&good) }), (1, 0));
    assert_eq!(hear(Packet { wire: 15, ..from(&good) }), (1, 0));
    assert_eq!(hear(Packet { kind: kinds::NACK, ..from(&good) }), (1, 0));
    let dropped = wire::Dropped::Anew { round: 7 };
    let (dropper, child) = (here, NodeId::new(2));
    let notice = wire::Notice { source: here, way: 0, dropped, dropper, child };
    assert_eq!(hear(from(&notice.encode())), (1, 0));
    // Of what it never said.
    let of_flow = wire::Dropped::Announcement {
        event: wire::Event::Start,
        number: 3,
        destination: child,
        index: 0,
    };
    let notice = wire::Notice { dropped: of_flow, ..notice };
    assert_eq!(hear(Packet { kind: kinds::NACK, ..from(&notice.encode()) }), (1, 0));
    assert_eq!(hear(from(&good)), (0, 1));
    // By a port that its sender does not have, where it would go by all links.
    let flooded = Announcement { way: wire::TREE_NONE, index: 1, ..said }.encode();
    assert_eq!(hear(Packet { entropy: 9, ..from(&flooded) }), (1, 2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Small racks of any shape under random flows and protocols: every flow arrives, whole, and
    /// all nodes come to know that it is over.
    #[test]
    fn random_racks_carry_all(
        dimensions in prop::collection::vec(2u32..5, 1..4),
        protocol in prop::sample::select(&Protocol::ALL[..]),
        interval in prop::sample::select(&[0u64, 20, 500][..]),
        flows in prop::collection::vec((any::<u32>(), any::<u32>(), 1u64..200_000, 0u64..3_000), 1..40),
        seed in any::<u64>(),
        loss_rate in prop::sample::select(&[0.0, 0.0, 0.02][..]),
        searches in any::<bool>(),
    ) {
        let classes = vec![config::Class { protocol, ..config::Class::default() }];
        let interval = Span::from_us(interval);
        let settings = Selection {
            period: Span::from_us(100),
            turn: Turn::Random,
            age: Span::ZERO,
            population: 11,
            patience: 1,
            ..Selection::default()
        };
        let selection = searches.then_some(settings);
        let config = Config { classes, interval, loss_rate, selection, ..torus(&dimensions) };
        let plan = config.plan().unwrap();
        let nodes = plan.nodes();
        let flows: Vec<Flow> = (0..).zip(flows).map(|(id, (src, step, size, at))| {
            let src = src % nodes;
            let dst = (src + 1 + step % (nodes - 1)) % nodes;
            flow(id, src, dst, size, Time::from_ps(at * 1_000_000))
        }).collect();
        let mut network = rack(&plan, seed);
        let ends = carry(&mut network, &flows);
        prop_assert_eq!(ends.completed.len(), flows.len());
        let sent: u64 = flows.iter().map(|flow| flow.size.get()).sum();
        prop_assert_eq!(network.totals().delivered.get(), sent);
    }
}
