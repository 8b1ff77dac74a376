//! Every transport here completes every flow to a living host, whatever breaks: over the real network,
//! with the queues that it asks for and without.

use kernel::{Bytes, Span, Time};
use packets::config::{FlowControl, Marking, Pfc, Queues, Red, Trimming};
use packets::{Config, Cut, Routing, Transport};
use proptest::prelude::*;
use rack::topology::{LeafSpine, Mesh, Shape, SingleSwitch, ThreeTier, Torus};
use rack::{Component, Fabric, Fault, Flow, NodeId};

use crate::chaos::flow;
use crate::networked::{Ends, carry, network};
use crate::{dcqcn, homa, ndp, rds};

/// Carries `flows`, checks that all end well that may, and that the same happens in a second run, in one of
/// two parts and in one of a part for each host and switch, which meet in packets alone.
#[track_caller]
fn run<T: Transport>(
    config: &Config,
    faults: &[Fault],
    flows: &[Flow],
    make: impl Fn(&packets::Surroundings) -> T,
) -> Ends {
    let once = |parts: Option<usize>| {
        let plan = config.plan().unwrap().with_faults(faults).unwrap();
        let cut = parts.map(|parts| match parts {
            0 => Cut::each(&plan.topology),
            _ => Cut::balanced(&plan.topology, parts),
        });
        let mut network = network(plan, 7, &make);
        let wanted = cut.as_ref().map_or(1, Cut::parts);
        if let Some(cut) = cut {
            assert!(wanted == 1 || network.can_be_cut(&cut), "{config:?}");
            network.set_cut(cut, 1);
        }
        let ends = carry(&mut network, flows);
        assert_eq!(network.parts(), wanted);
        let totals = network.totals();
        if faults.is_empty() {
            let size = flows.iter().map(|flow| flow.size).sum::<Bytes>();
            assert_eq!((totals.delivered, totals.lost), (size, Bytes::ZERO), "{config:?}");
        }
        let all = (ends.completed.clone(), ends.failed.clone(), totals, network.details());
        (ends, all)
    };
    let (ends, all) = once(None);
    for parts in [None, Some(2), Some(0)] {
        assert_eq!(once(parts).1, all, "{parts:?} parts of {config:?}");
    }
    ends
}

/// Each transport in turn, on queues that suit it and on plain ones of `packets` packets.
#[track_caller]
fn survive(
    shape: &Shape,
    packets: u64,
    loss_rate: f64,
    faults: &[Fault],
    flows: &[Flow],
) -> Vec<Ends> {
    let port_buffer = Bytes::new(1_500 * packets);
    let plain = Queues { port_buffer, ..Queues::default() };
    let header_buffer = Bytes::new(1_500 * packets);
    let trimming = Some(Trimming { header_buffer, ..Trimming::default() });
    let marking =
        Marking::Red(Red { min: Bytes::new(1_000), max: Bytes::new(9_000), probability: 0.1 });
    let pfc = FlowControl::Pfc(Pfc::default());
    let lossless = Queues { flow_control: pfc, marking, ..Queues::default() };
    let config = |routing, queues: &Queues| Config {
        topology: shape.clone(),
        routing,
        queues: queues.clone(),
        loss_rate,
        convergence: Span::from_us(300),
        ..Config::default()
    };
    let sizes = homa::Profile::new(vec![(Bytes::new(1_000), 3.0), (Bytes::new(100_000), 1.0)]);
    let ndp = |around: &_| ndp::Ndp::new(&ndp::Config::default(), around);
    let homa = |around: &_| homa::Homa::new(&homa::Config::default(), around, &sizes);
    let dcqcn = |around: &_| dcqcn::Dcqcn::new(&dcqcn::Config::default(), around);
    let rds = |around: &_| rds::Rds::new(&rds::Config::default(), around);
    let trimmed = Queues { trimming, ..plain.clone() };
    vec![
        run(&config(Routing::SourcePath, &trimmed), faults, flows, ndp),
        run(&config(Routing::PermutationSpray, &plain), faults, flows, ndp),
        run(&config(Routing::RandomSpray, &plain), faults, flows, homa),
        run(&config(Routing::Ecmp, &plain), faults, flows, dcqcn),
        run(&config(Routing::Ecmp, &plain), faults, flows, rds),
        run(&config(Routing::RandomSpray, &plain), faults, flows, rds),
        run(&config(Routing::Ecmp, &lossless), faults, flows, dcqcn),
    ]
}

fn leaf_spine() -> Shape {
    Shape::LeafSpine(LeafSpine { hosts: 16, radix: 8, ..LeafSpine::default() })
}

/// Everyone sends to three others, some at once, some later.
fn crowd(hosts: u32) -> Vec<Flow> {
    let one = |src: u32, step: u32| {
        let size = 1 + u64::from(src * 7 + step) * 9_000 % 120_000;
        flow(src, (src + step) % hosts, size, u64::from(step) * 13)
    };
    (0..hosts).flat_map(|src| [1, 5, 9].map(|step| one(src, step))).collect()
}

#[track_caller]
fn all_complete(ends: &[Ends], flows: usize) {
    for (number, ends) in ends.iter().enumerate() {
        assert_eq!((ends.completed.len(), ends.failed.len()), (flows, 0), "setting {number}");
    }
}

fn fault(component: Component, from_us: u64, until_us: Option<u64>) -> Fault {
    let at = |us| Time::ZERO + Span::from_us(us);
    Fault { component, at: at(from_us), until: until_us.map(at) }
}

#[test]
fn buffers_of_one_packet() {
    let flows = crowd(16);
    all_complete(&survive(&leaf_spine(), 1, 0.0, &[], &flows), flows.len());
}

#[test]
fn a_link_that_flaps() {
    let flows = crowd(16);
    let link = Component::LeafSpine { leaf: 1, spine: 0, link: 0 };
    let faults: Vec<_> = (0..6).map(|n| fault(link, 10 + 150 * n, Some(90 + 150 * n))).collect();
    all_complete(&survive(&leaf_spine(), 12, 0.0, &faults, &flows), flows.len());
    // A host's only link: nothing reaches it for a while.
    let faults: Vec<_> = (0..3)
        .map(|n| fault(Component::NodeLink(NodeId::new(3)), 5 + 120 * n, Some(65 + 120 * n)))
        .collect();
    all_complete(&survive(&leaf_spine(), 12, 0.0, &faults, &flows), flows.len());
}

#[test]
fn a_switch_that_dies() {
    let flows = crowd(16);
    let faults = [fault(Component::Spine(1), 15, None)];
    all_complete(&survive(&leaf_spine(), 12, 0.0, &faults, &flows), flows.len());
}

#[test]
fn a_host_that_dies_takes_only_its_own_flows_along() {
    let flows = crowd(16);
    let dead = NodeId::new(6);
    let faults = [fault(Component::Node(dead), 20, None)];
    for ends in survive(&leaf_spine(), 12, 0.0, &faults, &flows) {
        assert!(ends.failed.iter().all(|flow| flow.src == dead || flow.dst == dead));
        assert!(!ends.failed.is_empty() && ends.completed.len() >= flows.len() - 6);
    }
}

#[test]
fn losses_at_random() {
    let flows = crowd(16);
    all_complete(&survive(&leaf_spine(), 12, 0.02, &[], &flows), flows.len());
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        (3u32..9).prop_map(|hosts| {
            Shape::SingleSwitch(SingleSwitch { hosts, ..Default::default() })
        }),
        (3u32..17).prop_map(|hosts| Shape::ThreeTier(ThreeTier {
            hosts,
            radix: 4,
            ..Default::default()
        })),
        (2u32..5, 2u32..4).prop_map(|(a, b)| Shape::Torus(Torus {
            dimensions: vec![a, b],
            ..Default::default()
        })),
        (2u32..4, 2u32..4)
            .prop_map(|(a, b)| Shape::Mesh(Mesh { dimensions: vec![a, b], ..Default::default() })),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_flows_over_any_small_network(
        shape in shape(),
        packets in 1u64..30,
        loss_rate in prop_oneof![Just(0.0), 0.0..0.05f64],
        flows in prop::collection::vec((any::<u32>(), any::<u32>(), 1u64..60_000, 0u64..100), 1..20),
    ) {
        let hosts = shape.build().unwrap().hosts();
        let flow = |&(src, step, size, start): &(u32, u32, u64, u64)| {
            let src = src % hosts;
            flow(src, (src + 1 + step % (hosts - 1)) % hosts, size, start)
        };
        let flows: Vec<_> = flows.iter().map(flow).collect();
        all_complete(&survive(&shape, packets, loss_rate, &[], &flows), flows.len());
    }
}
