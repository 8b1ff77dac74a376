//! Clocks against closed forms, and software that sets them up again.

use std::collections::VecDeque;

use kernel::{Span, Time};
use proptest::prelude::*;

use super::clock::{Clock, Oscillator};
use super::measure::{Accuracy, World, accuracy, reforming_bound};
use super::tree::Tree;
use super::*;
use crate::config::Link;
use crate::link::ordered_sets::OrderedSet;
use crate::tables::Condition;
use crate::tables::condition::State;
use crate::topology::{Fibres, Shape, Topology};

fn topology(shape: &Shape) -> Topology {
    Topology::new(shape, Fibres::Grid).unwrap()
}

fn us(us: u64) -> Span {
    Span::from_us(us)
}

proptest! {
    /// Edges are where they should be: as many in a time as the rate says, and each is the first instant of its cycle.
    #[test]
    fn m911_cycles_and_edges_agree(off in -200_000..200_000i32, phase in 0..2_500u64, at in 0..10_000_000_000_000u64) {
        let oscillator = Oscillator::new(off, phase);
        let cycle = oscillator.cycle(Time::from_ps(at));
        let exact = (at as f64 - phase as f64) * (1.0 + f64::from(off) * 1e-9) / 2_500.0;
        prop_assert!((cycle as f64 - exact.floor()).abs() <= 1.0 && cycle as f64 <= exact.max(0.0) + 1e-3);
        let edge = oscillator.edge(cycle + 1);
        prop_assert_eq!(oscillator.cycle(edge), cycle + 1);
        prop_assert_eq!(oscillator.cycle(edge - Span::from_ps(1)), cycle);
        let (next, when) = oscillator.next_edge(Time::from_ps(at));
        prop_assert!(when.as_ps() >= at && when.as_ps() <= at.max(phase) + 2_502);
        prop_assert_eq!(oscillator.edge(next), when);
    }

    /// Whatever comes, at whatever port: no panic; the clock moves only by a time at its own port, with a good status, and
    /// by the threshold at most (I91); every eighth invalid one in a row is told, once.
    #[test]
    fn i91_nothing_else_moves_a_clock(
        inputs in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..6u8, any::<[u8; 8]>(), any::<u8>(), -40..40i64, 1..50_000u64),
            1..200,
        ),
    ) {
        let settings = Settings::default();
        let mut node = Node::new(&settings);
        let mut out = Vec::new();
        let mut cycle = 1_000;
        node.step(cycle, Input::Configure { epoch: 1, role: Role::Client(3), outputs: 0b100 }, &mut out);
        // It measures its link: 100 cycles and the two that are added, there and back.
        while node.delay(3).is_none() {
            for output in std::mem::take(&mut out) {
                let Output::Send(3, sending @ Sending::Ask(number)) = output else { continue };
                let OrderedSet::Latency { ticks, .. } = OrderedSet::decode(node.stamp(sending, cycle)).unwrap() else {
                    panic!("no measurement")
                };
                cycle += 202;
                let bytes = OrderedSet::Latency { is_answer: true, number, ticks }.encode();
                node.step(cycle, Input::Set { port: 3, bytes }, &mut out);
            }
            cycle = node.next().unwrap().max(cycle);
            node.step(cycle, Input::Tick, &mut out);
        }
        prop_assert_eq!(node.delay(3), Some(101));
        let good = |ticks: u64| OrderedSet::TimeSync { status: 0x81, ticks }.encode();
        node.step(cycle, Input::Set { port: 3, bytes: good(77_000_000) }, &mut out);
        prop_assert_eq!(node.clock().at(cycle), 77_000_101);
        prop_assert_eq!(node.quality(), Quality::Locked(2));
        let mut in_a_row = 0u32;
        for (choice, port, mut bytes, status, off, gap) in inputs {
            cycle += gap;
            let ticks = node.clock().at(cycle).wrapping_add_signed(off - 101) & ((1 << 48) - 1);
            match choice.index(4) {
                0 => {}
                1 => bytes = OrderedSet::TimeSync { status, ticks }.encode(),
                _ => bytes = good(ticks),
            }
            let (before, counts) = (*node.clock(), node.counts());
            out.clear();
            node.step(cycle, Input::Set { port, bytes }, &mut out);
            let moved = before.off(cycle, node.clock().at(cycle));
            let applies = match OrderedSet::decode(bytes) {
                Ok(OrderedSet::TimeSync { status, ticks }) if port == 3 => {
                    let is_near = before.off(cycle, ticks.wrapping_add(101)).abs() <= 20;
                    Some(status & 0xF0 == 0x80 && status & 0xF < 15 && is_near)
                }
                _ => None,
            };
            prop_assert!(moved.abs() <= 20);
            prop_assert_eq!(node.counts().applied - counts.applied, u64::from(applies == Some(true)));
            prop_assert!(moved == 0 || applies == Some(true));
            in_a_row = match applies {
                Some(true) => 0,
                Some(false) => in_a_row + 1,
                None => in_a_row,
            };
            let is_told = out.contains(&Output::Fail);
            prop_assert_eq!(is_told, applies == Some(false) && in_a_row == 8, "{} in a row", in_a_row);
        }
    }

    /// M914: a set says when it went on the wire, however long it waited; an answer says what it was kept for.
    #[test]
    fn m914_waiting_is_added(wait in 0..1_000u64, at in 0..1u64 << 40, number in 0..1u16 << 11) {
        let mut node = Node::new(&Settings::default());
        node.step(at, Input::Configure { epoch: 1, role: Role::Primary, outputs: 0 }, &mut Vec::new());
        let ticks = |cycle| match OrderedSet::decode(node.stamp(Sending::Time, cycle)).unwrap() {
            OrderedSet::TimeSync { status: 0x80, ticks } => ticks,
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(ticks(at + wait), ticks(at) + wait);
        let answer = Sending::Answer { number, ticks: 5, since: at };
        let expected = OrderedSet::Latency { is_answer: true, number, ticks: 5 + wait };
        prop_assert_eq!(OrderedSet::decode(node.stamp(answer, at + wait)), Ok(expected));
    }
}

/// A time that was damaged is taken if it is the first; those that are right after it are refused, and the eighth is told:
/// configured again, the clock is right.
#[test]
fn m915_a_first_set_that_is_wrong_is_found_out() {
    let mut node = Node::new(&Settings { samples: 1, ..Settings::default() });
    let mut out = Vec::new();
    let configure = |epoch| Input::Configure { epoch, role: Role::Client(0), outputs: 0 };
    node.step(0, configure(1), &mut out);
    let bytes = OrderedSet::Latency { is_answer: true, number: 1, ticks: 0 }.encode();
    node.step(200, Input::Set { port: 0, bytes }, &mut out);
    assert_eq!(node.delay(0), Some(100));
    let time = |ticks| OrderedSet::TimeSync { status: 0x80, ticks }.encode();
    let right = |cycle: u64| Input::Set { port: 0, bytes: time(cycle + 1_000_000) };
    node.step(300, Input::Set { port: 0, bytes: time(300 + 1_000_000 + (1 << 20)) }, &mut out);
    out.clear();
    let told: Vec<_> = (1..=10u64)
        .map(|set| {
            node.step(300 + set * 40_000, right(300 + set * 40_000), &mut out);
            std::mem::take(&mut out).contains(&Output::Fail)
        })
        .collect();
    assert_eq!(told.iter().position(|&is| is), Some(7));
    assert_eq!(told.iter().filter(|&&is| is).count(), 1);
    assert_eq!(node.quality(), Quality::Holdover);
    node.step(500_000, configure(1), &mut out);
    assert_eq!(node.quality(), Quality::Holdover, "an old configuration says nothing");
    node.step(500_000, configure(2), &mut out);
    node.step(500_001, right(500_001), &mut out);
    assert_eq!((node.quality(), node.clock().at(500_001)), (Quality::Locked(1), 1_500_101));
}

#[test]
fn m911_clocks_go_round_at_48_bits() {
    let mut clock = Clock::default();
    assert_eq!(clock.off(10, (1 << 48) - 5), -15);
    clock.adjust(-15);
    assert_eq!((clock.at(10), clock.at(20)), ((1 << 48) - 5, 5));
    assert_eq!(clock.off(10, 3), 8);
}

/// Distances of all TiNs from one, link by link.
fn distances(topology: &Topology, condition: &Condition, from: u16) -> Vec<Option<u8>> {
    let mut found = vec![None; usize::from(topology.shape().tins())];
    let mut queue = VecDeque::new();
    if condition.tin(from) == State::Live {
        found[usize::from(from)] = Some(0u8);
        queue.push_back(from);
    }
    while let Some(tin) = queue.pop_front() {
        let next = found[usize::from(tin)].unwrap() + 1;
        for (number, link) in (0..).zip(topology.links()) {
            let is_live = condition.link(number) == State::Live;
            for (one, other) in [(link.low, link.high), (link.high, link.low)] {
                let lives = is_live && condition.tin(other.tin) == State::Live;
                if one.tin == tin && lives && found[usize::from(other.tin)].is_none() {
                    found[usize::from(other.tin)] = Some(next);
                    queue.push_back(other.tin);
                }
            }
        }
    }
    found
}

fn check_tree(topology: &Topology, condition: &Condition, tree: &Tree) {
    let wanted = distances(topology, condition, tree.primary());
    let tins = 0..topology.shape().tins();
    assert_eq!(tins.clone().map(|tin| tree.depth(tin)).collect::<Vec<_>>(), wanted);
    let mut outputs = 0;
    for tin in tins {
        outputs += tree.outputs(tin).count_ones() as usize;
        let Some((parent, port)) = tree.parent(tin) else { continue };
        let far = topology.far(tin, port).unwrap();
        assert_eq!((far.tin, tree.depth(parent).map(|depth| depth + 1)), (parent, tree.depth(tin)));
        assert_eq!(tree.outputs(parent) >> far.port & 1, 1, "TiN {tin}");
    }
    assert_eq!(outputs + 1, tree.size());
}

/// M913: healthy Cliques of all sizes have trees of three links at the most, the shortest ways that there are.
#[test]
fn m913_the_time_goes_the_shortest_ways() {
    for shape in [Shape::TINY, Shape::MINI, Shape::HALF] {
        let topology = topology(&shape);
        let condition = Condition::healthy(&topology);
        let tree = Tree::grow(&topology, &condition, 5);
        assert!(tree.height() <= 3 && tree.size() == usize::from(shape.tins()));
        check_tree(&topology, &condition, &tree);
    }
    let full = topology(&Shape::FULL);
    let tree = Tree::elect(&full, &Condition::healthy(&full));
    assert_eq!((tree.height(), tree.size(), tree.primary()), (3, 576, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever lives: the primary reaches as many as any could, and is no further from them than it need be.
    #[test]
    fn m913_the_best_primary_is_elected(
        dead_links in prop::collection::vec(any::<prop::sample::Index>(), 0..140),
        dead_tins in prop::collection::vec(0..18u16, 0..10),
    ) {
        let topology = topology(&Shape::TINY);
        let mut condition = Condition::healthy(&topology);
        dead_links.iter().for_each(|link| {
            condition.set_link(link.index(topology.links().len()) as u32, State::Dead);
        });
        dead_tins.iter().for_each(|&tin| condition.set_tin(tin, State::Dead));
        let tree = Tree::elect(&topology, &condition);
        check_tree(&topology, &condition, &tree);
        let best = (0..18).map(|tin| {
            let found: Vec<_> = distances(&topology, &condition, tin).into_iter().flatten().collect();
            (found.len(), std::cmp::Reverse(found.iter().copied().max().unwrap_or(0)))
        });
        prop_assert_eq!((tree.size(), std::cmp::Reverse(tree.height())), best.max().unwrap());
    }
}

fn check_depths(depths: &[measure::Depth], nodes: u32) {
    assert_eq!(depths.iter().map(|depth| depth.nodes).sum::<u32>(), nodes);
    for (number, depth) in depths.iter().enumerate() {
        assert!(depth.largest <= depth.bound, "depth {number}: {depths:?}");
        assert!(number == 0 || depth.corrected > Span::ZERO, "depth {number}: {depths:?}");
    }
}

fn measured(shape: &Shape, kills: bool, seed: u64) -> Accuracy {
    let (topology, settings) = (topology(shape), Settings::default());
    accuracy(&topology, &Link::default(), &settings, (us(3_000), kills), seed).unwrap()
}

/// I90, X24: no clock is further off than the closed form says, at any depth, and clocks that run 200 millionths apart
/// use up much of it.
#[test]
fn i90_x24_clocks_are_as_exact_as_the_closed_form() {
    for shape in [Shape::TINY, Shape::MINI] {
        for seed in 1..5 {
            let found = measured(&shape, false, seed);
            check_depths(&found.depths, shape.tins().into());
            let deepest = found.depths.last().unwrap();
            assert!(deepest.largest.as_ps() * 4 > deepest.bound.as_ps(), "{:?}", found.depths);
        }
    }
}

/// The same of the full Clique; and when its primary dies all follow another within what the settings add up to, and until
/// then drift apart as their oscillators do.
#[test]
fn x24_i90_the_full_clique() {
    let found = measured(&Shape::FULL, true, 1);
    check_depths(&found.depths, 576);
    check_depths(&found.depths_after, 575);
}

/// X24, M916: the primary dies. The software hears of it by those that hear nothing, and sets another tree up.
#[test]
fn x24_m916_another_primary_takes_over() {
    let settings = Settings::default();
    for shape in [Shape::TINY, Shape::MINI] {
        let topology = topology(&shape);
        for seed in 1..4 {
            let found = measured(&shape, true, seed);
            check_depths(&found.depths_after, u32::from(shape.tins()) - 1);
            let height = found.depths.len().max(found.depths_after.len()) as u8 - 1;
            let most = reforming_bound(&topology, &Link::default(), &settings, height);
            let (reformed, holdover) = (found.reformed.unwrap(), found.holdover.unwrap());
            assert!(reformed <= most, "{reformed:?} above {most:?}");
            // Nothing is known before a node has been silent, and been asked and told.
            let least =
                settings.silence - settings.interval + settings.software + settings.software;
            assert!(reformed >= least, "{reformed:?} below {least:?}");
            let drift = most.as_ps() * 2 * u64::from(settings.parts_per_million) / 1_000_000;
            let bound = found.depths.last().unwrap().bound.as_ps();
            assert!(holdover.as_ps() <= bound + drift, "{holdover:?}");
            assert!(holdover.as_ps() > bound / 4, "{holdover:?}: clocks run apart");
        }
    }
}

/// Runs until all that live follow the primary.
fn settle(world: &mut World) {
    for _ in 0..3_000 {
        if world.is_settled() {
            return;
        }
        world.run(world.now() + us(2));
    }
    panic!("not settled after {:?}", world.now());
}

/// A TiN or a link in the middle of the tree dies: the software finds out which, the primary stays, and all follow it.
#[test]
fn m916_what_breaks_in_the_middle_is_found_and_gone_round() {
    for shape in [Shape::TINY, Shape::MINI] {
        let topology = topology(&shape);
        let healthy = Tree::elect(&topology, &Condition::healthy(&topology));
        let tins = (0..shape.tins()).filter(|&tin| tin != healthy.primary());
        for tin in tins.step_by(if shape == Shape::TINY { 1 } else { 9 }) {
            for is_link in [true, false] {
                let mut world = World::new(&topology, &Link::default(), &Settings::default(), 7);
                settle(&mut world);
                let children = healthy.outputs(tin).count_ones();
                let (parent, port) = healthy.parent(tin).unwrap();
                if is_link {
                    world.cut(tin, port);
                } else if children < 2 {
                    continue;
                } else {
                    world.kill(tin);
                }
                world.run(world.now() + us(600));
                settle(&mut world);
                let (condition, tree) =
                    (world.coordinator().condition(), world.coordinator().tree());
                assert_eq!(tree.primary(), healthy.primary());
                let link = topology.link(tin, port).unwrap();
                assert_eq!(condition.link(link) == State::Dead, is_link, "TiN {tin}");
                assert_eq!(condition.tin(tin) == State::Dead, !is_link, "TiN {tin}");
                assert_eq!(condition.tin(parent), State::Live);
                let dead = (0..shape.tins()).filter(|&tin| condition.tin(tin) == State::Dead);
                assert_eq!(dead.count(), usize::from(!is_link));
                world.begin_measuring();
                world.run(world.now() + us(1_000));
                check_depths(world.depths(), u32::from(shape.tins()) - u32::from(!is_link));
            }
        }
    }
}

/// M914: no delay is measured wrong by more than a tick and a half, and sixteen measurements are better than one.
#[test]
fn m914_delays_are_measured_to_a_tick() {
    let topology = topology(&Shape::MINI);
    let tree = Tree::elect(&topology, &Condition::healthy(&topology));
    let errors = |samples: u8| {
        let mut all = Vec::new();
        for seed in 1..6 {
            let settings = Settings { samples, ..Settings::default() };
            let mut world = World::new(&topology, &Link::default(), &settings, seed);
            settle(&mut world);
            let ports = (0..68).filter_map(|tin| tree.parent(tin).map(|(_, port)| (tin, port)));
            all.extend(ports.map(|(tin, port)| world.delay_error(tin, port).unwrap()));
        }
        all
    };
    let (one, many) = (errors(1), errors(16));
    assert_eq!((one.len(), many.len()), (5 * 67, 5 * 67));
    let worst = |errors: &[i64]| errors.iter().map(|error| error.unsigned_abs()).max().unwrap();
    assert!(worst(&one) <= 3_750 && worst(&many) <= 3_750, "{one:?} {many:?}");
    let squares = |errors: &[i64]| errors.iter().map(|error| error * error).sum::<i64>();
    assert!(squares(&many) < squares(&one), "{} and {}", squares(&many), squares(&one));
    // Neither too long nor too short on average: within four standard errors of what rounding to a tick leaves.
    let mean = many.iter().sum::<i64>() as f64 / many.len() as f64;
    let deviation = (squares(&many) as f64 / many.len() as f64 / many.len() as f64).sqrt();
    assert!(mean.abs() < 4.0 * deviation, "{mean} with {deviation}");
}

/// A tenth of all sets is lost: clocks stay near the primary's, and no failure is told that is none.
#[test]
fn m915_lost_sets_are_missed_and_no_failure() {
    let topology = topology(&Shape::TINY);
    let settings = Settings { silence: us(2_000), ..Settings::default() };
    let mut world = World::new(&topology, &Link::default(), &settings, 3);
    world.set_loss(0.1);
    settle(&mut world);
    let epoch = world.coordinator().epoch();
    world.begin_measuring();
    world.run(world.now() + us(20_000));
    assert_eq!((world.coordinator().epoch(), world.is_settled()), (epoch, true));
    for tin in 0..18 {
        assert_eq!(world.node(tin).counts().failures, 0);
        // What it drifts meanwhile, at 200 millionths, if several in a row are lost.
        let error = world.error(tin, world.coordinator().tree().primary()).unsigned_abs();
        assert!(error < 150_000, "TiN {tin}: {error} ps");
    }
}
