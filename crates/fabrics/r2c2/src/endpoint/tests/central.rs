//! One node computes the rates of all (§5.2): against what all would compute, byte for byte, and under failures.

use rack::{Component, Fault};

use super::failures::{faults, some_flows, told};
use super::*;

/// The node at the end of so many hops from node 0 that has the lowest number.
fn at_distance(plan: &Plan, hops: u32) -> NodeId {
    let mut nodes = (0..plan.nodes()).map(NodeId::new);
    nodes.find(|&node| plan.routing.distance(NodeId::new(0), node) == Some(hops)).unwrap()
}

fn bytes_of_controller(network: &Network<Endpoints>) -> u64 {
    let details = network.transport().details(network.now());
    details["controller"]["bytes"].as_u64().unwrap()
}

/// Every source holds its flows to what it would compute itself if it knew all, in whole kilobits.
#[test]
fn m53_rates_of_a_controller_are_those_that_all_would_compute() {
    let config = Config { controller: Some(5), broadcast_priority: 0, ..torus(&[4, 4, 4]) };
    let plan = config.plan().unwrap();
    // Some nodes have seven flows, more than a packet has rates.
    let to =
        |node: u32, step: u32| if node.is_multiple_of(3) { step } else { (node + 7 * step) % 64 };
    let steps = |node: u32| if node % 8 == 5 { 1..8 } else { 1..2u32 };
    let flows: Vec<Flow> = (8..64)
        .flat_map(|node| steps(node).map(move |step| (node, to(node, step))))
        .zip(0..)
        .map(|((src, dst), id)| flow(id, src, dst, 1 << 40, Time::ZERO))
        .collect();
    let mut network = rack(&plan, 1);
    flows.iter().for_each(|flow| network.offer(flow));
    network.advance(Time::ZERO + Span::from_us(600), &mut ());
    let rates = fair(&plan, &flows, &vec![Terms::default(); flows.len()]);
    let endpoints = network.transport();
    for (key, rate) in (0..).map(FlowKey::new).zip(rates) {
        let pace = endpoints.senders.get(key).bucket.pace().unwrap().as_bps();
        assert_eq!(pace, rate as u64 / 1_000 * 1_000, "{key:?}");
    }
    // Nobody else knows of flows but its own.
    for node in (0..64).map(NodeId::new).filter(|node| node.get() != 5) {
        let own = flows.iter().filter(|flow| flow.src == node).count();
        assert_eq!(endpoints.news.facts.known(node).count(), own, "{node}");
    }
    assert_eq!(endpoints.news.facts.known(NodeId::new(5)).count(), flows.len());
    assert_eq!(endpoints.news.counts().sent, 0, "something was broadcast");
}

/// X19: a report has 16 bytes, rates 12 and 4 for each, on each link of a shortest path.
#[test]
fn m53_each_event_takes_as_many_bytes_as_counted_by_hand() {
    let config = Config { controller: Some(0), interval: Span::ZERO, ..torus(&[4, 4, 4]) };
    let plan = config.plan().unwrap();
    let [far, near] = [6, 1].map(|hops| at_distance(&plan, hops).get());
    let mut network = rack(&plan, 1);
    let mut step = |id, source, to, us| {
        network.offer(&flow(id, source, to, 1 << 40, Time::ZERO + Span::from_us(us)));
        network.advance(Time::ZERO + Span::from_us(us + 20), &mut ());
        bytes_of_controller(&network)
    };
    // One node to be told of one flow; two; the far one of two flows, and so on.
    let mut expected = 6 * 16 + 6 * 16;
    assert_eq!(step(0, far, 0, 0), expected);
    expected += 16 + (6 * 16 + 16);
    assert_eq!(step(1, near, 7, 50), expected);
    for flows in 2..=5 {
        expected += 6 * 16 + (6 * (12 + 4 * flows) + 16);
        assert_eq!(step(flows, far, flows as u32, 50 * flows), expected, "{flows} flows");
    }
    // Six take two packets, five rates and one, which together are as long as one would be.
    expected += 6 * 16 + (6 * (12 + 4 * 6) + 16);
    assert_eq!(step(6, far, 6, 300), expected);
    // Of the controller's own flows all hear, and nobody has to report them.
    expected += 6 * (12 + 4 * 6) + 16;
    assert_eq!(step(7, 0, 1, 350), expected);
}

/// The controller dies, and what it does not hear of goes on: old flows at their last rates, new ones at the
/// initial rate. Once it is back it comes to know all.
#[test]
fn m53_while_the_controller_is_dead_flows_keep_their_rates() {
    let at = |us| Time::ZERO + Span::from_us(us);
    let dead = Fault {
        component: Component::Node(NodeId::new(9)),
        at: at(10_000),
        until: Some(at(30_000)),
    };
    let config = Config { controller: Some(9), ..torus(&[4, 4]) };
    let plan = config.plan().unwrap().with_faults(&[dead]).unwrap();
    // The first crosses the link from node 1 to node 2, and half of the second's packets do.
    let flows = [flow(0, 1, 2, 1 << 40, at(0)), flow(1, 0, 2, 1 << 40, at(20_000))];
    let mut network = rack(&plan, 1);
    flows.iter().for_each(|flow| network.offer(flow));
    let pace = |network: &Network<Endpoints>, key| {
        network.transport().senders.get(FlowKey::new(key)).bucket.pace().unwrap()
    };
    network.advance(at(9_000), &mut ());
    assert_eq!(pace(&network, 0), Rate::from_bps(9_500_000_000));
    network.advance(at(29_000), &mut ());
    assert_eq!(pace(&network, 0), Rate::from_bps(9_500_000_000));
    assert_eq!(pace(&network, 1), Rate::from_gbps(10));
    let details = network.transport().details(network.now());
    assert!(details["controller"]["dropped"].as_u64() > Some(0), "{details:?}");
    network.advance(at(45_000), &mut ());
    assert_eq!([0, 1].map(|key| pace(&network, key)), [Rate::from_bps(6_333_333_000); 2]);
}

/// After any failures the controller knows the flows of all that it can reach, and has told them so.
fn controller_comes_to_know_all(
    config: Config,
    breaks: &[super::failures::Break],
    raw: &[(u32, u32, u64, u64)],
    seed: u64,
) -> Result<(), TestCaseError> {
    let plan = config.plan().unwrap();
    let faults = faults(&plan, breaks);
    let plan = plan.with_faults(&faults).unwrap();
    let controller = plan.controller().unwrap();
    let mut flows = some_flows(plan.nodes(), raw);
    // One in three never ends.
    flows.iter_mut().step_by(3).for_each(|flow| flow.size = Bytes::new(1 << 40));
    let last = plan.changes_until().unwrap_or(Time::ZERO).max(Time::from_ps(25_000_000_000));
    let mut network = rack(&plan, seed);
    let mut ends = Ends::default();
    flows.iter().for_each(|flow| network.offer(flow));
    // As for views of all, and for a source that asks again after 1.5, 3, 6 and 12 ms.
    network.advance(last + Span::from_us(80_000), &mut ends);
    network.check().map_err(TestCaseError::fail)?;
    let (works, living) = super::failures::last_state(&plan, &faults);
    if !living[controller.index()] {
        return Ok(());
    }
    let part = super::failures::parts(&plan, &works);
    let is_over = |flow: &&Flow| {
        let mut failed = ends.failed.iter().map(|(flow, _)| flow.id);
        let mut completed = ends.completed.iter().map(|(flow, _)| flow.id);
        !failed.any(|id| id == flow.id) && !completed.any(|id| id == flow.id)
    };
    let open = flows.iter().filter(is_over);
    let open = open.filter(|flow| part[flow.src.index()] == part[controller.index()]);
    let mut expected: Vec<_> = open.map(|flow| (flow.src, flow.dst)).collect();
    let endpoints = network.transport();
    let facts = &endpoints.news.facts;
    let course = |id| facts.fact(id).course;
    let known = facts.known(controller).map(|id| (course(id).source, course(id).destination));
    let mut known: Vec<_> = known.collect();
    expected.sort_unstable();
    known.sort_unstable();
    prop_assert_eq!(&known, &expected);
    let central = endpoints.news.central.as_ref().unwrap();
    for &(source, _) in &expected {
        prop_assert!(source == controller || !central.waits(source), "{} has no answer", source);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn m53_random_racks_with_a_controller_carry_all(
        dimensions in prop::collection::vec(2u32..5, 1..4),
        controller in any::<u32>(),
        interval in prop::sample::select(&[0u64, 20, 500][..]),
        is_lasting in any::<bool>(),
        raw in prop::collection::vec((any::<u32>(), any::<u32>(), 1u64..200_000, 0u64..3_000), 1..40),
        seed in any::<u64>(),
        loss_rate in prop::sample::select(&[0.0, 0.0, 0.02][..]),
        port_buffer in prop::sample::select(&[0u64, 0, 3_000][..]),
    ) {
        let nodes: u32 = dimensions.iter().product();
        let config = Config {
            controller: Some(controller % nodes),
            interval: Span::from_us(interval),
            batch: if is_lasting { config::Batch::Lasting } else { config::Batch::All },
            port_buffer: Bytes::new(port_buffer),
            loss_rate,
            ..torus(&dimensions)
        };
        let plan = config.plan().unwrap();
        let flows = some_flows(nodes, &raw);
        let mut network = rack(&plan, seed);
        let ends = carry(&mut network, &flows);
        prop_assert_eq!(ends.completed.len(), flows.len());
        // What is lost of a controller's messages is no broadcast's.
        prop_assert_eq!(network.transport().news.counts(), super::super::news::Counts::default());
    }

    #[test]
    fn slow_m53_a_controller_comes_to_know_all_after_any_failures(
        topology in super::failures::shape(),
        controller in any::<u32>(),
        breaks in super::failures::breaks(),
        raw in prop::collection::vec((any::<u32>(), any::<u32>(), 1u64..300_000, 0u64..20_000), 1..12),
        interval in prop::sample::select(&[0u64, 500][..]),
        loss_rate in prop::sample::select(&[0.0, 0.0, 0.02][..]),
        is_told in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let config = Config { topology, ..Config::default() };
        let nodes = config.plan().unwrap().nodes();
        let config = Config {
            controller: Some(controller % nodes),
            interval: Span::from_us(interval),
            failures: told(is_told),
            broadcast_priority: 0,
            loss_rate,
            ..config
        };
        controller_comes_to_know_all(config, &breaks, &raw, seed)?;
    }

    /// Whatever fails, every flow ends, and when all is quiet nobody remembers any.
    #[test]
    fn slow_m53_with_a_controller_all_flows_end_under_any_faults(
        topology in super::failures::shape(),
        controller in any::<u32>(),
        breaks in super::failures::breaks(),
        raw in prop::collection::vec((any::<u32>(), any::<u32>(), 1u64..300_000, 0u64..20_000), 1..20),
        interval in prop::sample::select(&[0u64, 500][..]),
        is_told in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let config = Config { topology, ..Config::default() };
        let nodes = config.plan().unwrap().nodes();
        let config = Config {
            controller: Some(controller % nodes),
            interval: Span::from_us(interval),
            failures: told(is_told),
            ..config
        };
        let plan = config.plan().unwrap();
        let faults = faults(&plan, &breaks);
        let plan = plan.with_faults(&faults).unwrap();
        let flows = some_flows(plan.nodes(), &raw);
        carry(&mut rack(&plan, seed), &flows);
    }
}
