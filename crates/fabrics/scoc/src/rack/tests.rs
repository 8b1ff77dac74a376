//! The rack against closed forms.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use ::rack::{Advance, Class, Completion, Fabric, Flow, FlowId, NodeId, Probe};
use kernel::{Bytes, Rate, Span, Stream, Time};

use super::Rack;
use crate::config::{Config, CrrdTable, FlatTable, HieraTable, OutputQueuedTable, SwitchTable};
use crate::{ChipConfig, CutThrough};

/// Ends of flows, ideal completion times and sums of stages.
#[derive(Default)]
pub(super) struct Ends(pub(super) BTreeMap<u64, (Time, Span, Span)>);

impl Probe for Ends {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        let stages = completion.stages.iter().copied().sum();
        let earlier =
            self.0.insert(completion.flow.id.get(), (completion.end, completion.ideal, stages));
        assert!(earlier.is_none(), "{:?} completed twice", completion.flow);
        ControlFlow::Continue(())
    }
}

pub(super) fn flow(id: u64, src: u32, dst: u32, size: u64, start: Time) -> Flow {
    Flow {
        id: FlowId::new(id),
        src: NodeId::new(src),
        dst: NodeId::new(dst),
        size: Bytes::new(size),
        start,
        class: Class::default(),
    }
}

pub(super) fn switches() -> Vec<SwitchTable> {
    vec![
        SwitchTable::Scoc(ChipConfig::default()),
        SwitchTable::Flat(FlatTable {
            port_rate: Rate::from_bps(36_320_000_000),
            ..FlatTable::default()
        }),
        SwitchTable::Hiera(HieraTable::default()),
        SwitchTable::Crrd(CrrdTable::default()),
        SwitchTable::OutputQueued(OutputQueuedTable {}),
    ]
}

pub(super) fn rack(nodes: u32, switch: SwitchTable) -> Rack {
    Rack::new(Config { nodes, switch, ..Config::default() }.plan().unwrap(), 1)
}

/// Carries flows, given by start, to the end.
pub(super) fn carry(rack: &mut Rack, flows: &[Flow]) -> Ends {
    let mut ends = Ends::default();
    for flow in flows {
        while rack.now() < flow.start {
            rack.advance(flow.start, &mut ends);
        }
        rack.offer(flow);
    }
    assert_eq!(rack.advance(Time::NEVER, &mut ends), Advance::Idle);
    rack.check().unwrap();
    assert_eq!(ends.0.len(), flows.len(), "flows completed");
    assert!(rack.unfinished(1).is_empty());
    ends
}

#[test]
fn a_flow_alone_takes_its_ideal_time_and_the_wait_for_a_cycle_or_a_slot() {
    for switch in switches() {
        let name = format!("{switch:?}");
        let mut rack = rack(32, switch);
        // The wait for a cycle, for a route's colour, or for a slot of a packet. An offer is taken up in
        // the next cycle.
        let slack = match rack.plan.config.switch {
            SwitchTable::Scoc(_) | SwitchTable::Hiera(_) => Span::from_ps(6 * 2_203),
            SwitchTable::Flat(_) | SwitchTable::Crrd(_) => Span::from_ps(2 * 92_160),
            SwitchTable::OutputQueued(_) => Span::from_ps(2_205),
        };
        for (id, size) in [1, 40, 288, 289, 10_000, 1_000_000].into_iter().enumerate() {
            let start = rack.now() + Span::from_ps(123_457);
            let alone = flow(id as u64, 3, 17, size, start);
            let ends = carry(&mut rack, &[alone]);
            let (end, ideal, stages) = ends.0[&(id as u64)];
            let took = end - start;
            assert!(took >= ideal, "{name}, {size} B: {took}, ideally {ideal}");
            assert!(took <= ideal + slack, "{name}, {size} B: {took}, ideally {ideal}");
            let off = took.as_ps().abs_diff(stages.as_ps());
            assert!(off <= 4, "{name}, {size} B: stages of {stages} make {took}");
        }
    }
}

#[test]
fn the_least_time_through_the_chip_is_the_published_fall_through() {
    // §4.E: 15 + 15 ns and 15 cycles, for any size if the first bit suffices.
    let chip = ChipConfig { cut_through: CutThrough::FirstBit, ..ChipConfig::default() };
    let config = Config { cable: Span::ZERO, switch: SwitchTable::Scoc(chip), ..Config::default() };
    let rack = Rack::new(config.plan().unwrap(), 1);
    let whole = rack.ideal_fct(&flow(0, 0, 1, 288, Time::ZERO));
    let through = (whole - Span::from_ps(92_160)).as_seconds();
    assert!((through - 63.04e-9).abs() < 0.01e-9, "{through}");
}

#[test]
fn an_ideal_switch_serves_a_fan_in_at_the_line_rate_without_a_gap() {
    let mut rack = rack(16, SwitchTable::OutputQueued(OutputQueuedTable {}));
    let flows: Vec<Flow> =
        (0..15).map(|id| flow(id, id as u32 + 1, 0, 28_800, Time::ZERO)).collect();
    let ends = carry(&mut rack, &flows);
    let last = ends.0.values().map(|&(end, ..)| end).max().unwrap();
    // 15 times 100 packets of 92.16 ns, and a cable of 10 ns on each side.
    assert_eq!(last, Time::ZERO + Span::from_ps(15 * 100 * 92_160) + Span::from_ns(20));
}

#[test]
fn every_switch_serves_a_fan_in_within_a_few_percent_of_the_line_rate() {
    for switch in switches() {
        let name = format!("{switch:?}");
        let mut rack = rack(16, switch);
        let flows: Vec<Flow> =
            (0..15).map(|id| flow(id, id as u32 + 1, 0, 28_800, Time::ZERO)).collect();
        let ends = carry(&mut rack, &flows);
        let last = ends.0.values().map(|&(end, ..)| end).max().unwrap();
        let exact = 15.0 * 100.0 * 92.16e-9;
        let took = (last - Time::ZERO).as_seconds();
        assert!(took >= exact && took < 1.03 * exact, "{name}: {took}, at the line rate {exact}");
    }
}

#[test]
fn a_full_way_through_hiera_holds_back_no_flow_that_goes_elsewhere() {
    // Nodes 1 to 15 send to node 0, whose column is full for 1.4 ms; node 1 also sends to node 31.
    let mut flows: Vec<Flow> =
        (1..16).map(|id| flow(id, id as u32, 0, 288_000, Time::ZERO)).collect();
    flows.push(flow(16, 1, 31, 28_800, Time::ZERO));
    let mut rack = rack(32, SwitchTable::Hiera(HieraTable::default()));
    let ends = carry(&mut rack, &flows);
    let (end, ideal, _) = ends.0[&16];
    // Half the line at worst.
    assert!(end - Time::ZERO < ideal * 3, "{end:?}, alone {ideal}");
}

#[test]
fn a_permutation_of_long_flows_is_full_on_the_chip() {
    let mut rack = rack(32, SwitchTable::Scoc(ChipConfig::default()));
    let mut to: Vec<u32> = (0..32).collect();
    Stream::new(5, "test/permutation", 0).shuffle(&mut to);
    let pairs = (0..32).filter(|&from| to[from as usize] != from);
    let flows: Vec<Flow> = pairs
        .map(|from| flow(u64::from(from), from, to[from as usize], 500_000, Time::ZERO))
        .collect();
    for (end, ideal, _) in carry(&mut rack, &flows).0.into_values() {
        let slowdown = (end - Time::ZERO).as_seconds() / ideal.as_seconds();
        assert!((1.0..1.02).contains(&slowdown), "{slowdown}");
    }
}

/// Flows at random between 32 nodes.
pub(super) fn random_flows(seed: u64, count: u64) -> Vec<Flow> {
    let mut stream = Stream::new(seed, "test/flows", 0);
    let mut start = Time::ZERO;
    (0..count)
        .map(|id| {
            start += Span::from_ps(stream.below(300_000));
            let src = stream.below(32) as u32;
            let dst = (src + 1 + stream.below(31) as u32) % 32;
            flow(id, src, dst, 1 + stream.below(5_000), start)
        })
        .collect()
}

#[test]
fn whatever_the_switch_all_flows_arrive_in_no_less_than_their_ideal_time() {
    for switch in switches() {
        for seed in 0..3 {
            let run = || {
                let mut rack = rack(32, switch.clone());
                let flows = random_flows(seed, 2_000);
                let ends = carry(&mut rack, &flows);
                for flow in &flows {
                    let (end, ideal, stages) = ends.0[&flow.id.get()];
                    let took = end - flow.start;
                    assert!(took >= ideal, "{switch:?}, {flow:?}: {took}, ideally {ideal}");
                    assert!(took.as_ps().abs_diff(stages.as_ps()) <= 4, "{flow:?}");
                }
                let sizes: Bytes = flows.iter().map(|flow| flow.size).sum();
                assert_eq!(rack.totals().delivered, sizes);
                (rack.totals(), ends.0)
            };
            assert_eq!(run(), run(), "{switch:?}, seed {seed}");
        }
    }
}

#[test]
fn each_byte_that_has_left_the_switch_is_of_a_flow_that_has_ended_or_is_open() {
    for switch in switches() {
        let mut rack = rack(32, switch.clone());
        let mut ends = Ends::default();
        // An incast: with the ideal all of it waits at an output, whose line gets it long after.
        let flows: Vec<Flow> =
            (1..32).map(|id| flow(id, id as u32, 0, 9_000, Time::ZERO)).collect();
        flows.iter().for_each(|flow| rack.offer(flow));
        for part in 1..200 {
            rack.advance(Time::ZERO + Span::from_ns(500 * part), &mut ends);
            let open: Bytes = rack.unfinished(99).iter().map(|open| open.delivered).sum();
            let ended = Bytes::new(9_000) * ends.0.len() as u64;
            assert_eq!(rack.totals().delivered, open + ended, "{switch:?}, {part}");
        }
        assert_eq!(ends.0.len(), 31);
    }
}

#[test]
fn a_pause_changes_nothing() {
    let run = |step: u64| {
        let mut rack = rack(32, SwitchTable::Scoc(ChipConfig::default()));
        let mut ends = Ends::default();
        for flow in random_flows(7, 500) {
            while rack.now() < flow.start {
                rack.advance(flow.start.min(rack.now() + Span::from_ps(step)), &mut ends);
            }
            rack.offer(&flow);
        }
        rack.advance(Time::NEVER, &mut ends);
        (rack.totals().event_hash, ends.0)
    };
    assert_eq!(run(1_000), run(u64::MAX >> 8));
}

#[test]
fn idle_time_is_skipped() {
    let mut rack = rack(32, SwitchTable::Scoc(ChipConfig::default()));
    let hour = Time::ZERO + Span::from_ns(60 * 1_000_000_000);
    carry(&mut rack, &[flow(0, 0, 1, 1_000, Time::ZERO), flow(1, 0, 1, 1_000, hour)]);
    let cycles = rack.totals().events / 32;
    assert!(cycles < 2_000, "{cycles} cycles");
    assert!(rack.now() >= hour);
}

#[track_caller]
fn check_refused(config: Config, expected: &[&str]) {
    let problems = config.plan().unwrap_err();
    let keys: Vec<&str> = problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, expected, "{problems:?}");
}

#[test]
fn bad_racks_are_refused_with_the_key_and_a_remedy() {
    let usual = Config::default;
    check_refused(Config { nodes: 130, ..usual() }, &["nodes"]);
    let message = Config { nodes: 130, ..usual() }.plan().unwrap_err()[0].message.clone();
    assert!(message.contains("groups of 4 do not divide 130") && message.contains("132"));
    check_refused(Config { nodes: 1, header: Bytes::new(288), ..usual() }, &["nodes", "header"]);
    check_refused(Config { segment: Bytes::new(321), ..usual() }, &["segment"]);
    check_refused(Config { line_rate: Rate::from_bps(1), ..usual() }, &["line_rate"]);
    let chip = ChipConfig { routes: 0, ..ChipConfig::default() };
    check_refused(Config { switch: SwitchTable::Scoc(chip), ..usual() }, &["switch.routes"]);
    let flat = FlatTable { port_rate: Rate::from_gbps(24), ..FlatTable::default() };
    check_refused(Config { switch: SwitchTable::Flat(flat), ..usual() }, &["switch.port_rate"]);
    let hiera = HieraTable { subswitch: 7, ..HieraTable::default() };
    check_refused(Config { switch: SwitchTable::Hiera(hiera), ..usual() }, &["switch.subswitch"]);
    let hiera = HieraTable { packets: 0, output_packets: Some(65_536), ..HieraTable::default() };
    let keys = ["switch.packets", "switch.output_packets"];
    check_refused(Config { switch: SwitchTable::Hiera(hiera), ..usual() }, &keys);
}

#[test]
fn d08_the_chip_as_built_draws_150_watts() {
    let plan = |nodes, switch| Config { nodes, switch, ..Config::default() }.plan().unwrap();
    let bill = plan(136, SwitchTable::Scoc(ChipConfig::default())).bill().unwrap();
    assert!((bill.switches_watts - 150.0).abs() < 1e-9, "{bill:?}");
    assert_eq!(plan(128, SwitchTable::Flat(FlatTable::default())).bill(), None);
}
