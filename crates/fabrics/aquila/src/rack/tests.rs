//! The Clique as a fabric: what hosts see of it.

use ::rack::{Class, Component, Fabric, Fault, Flow, FlowId, NodeId};
use kernel::{Bytes, Span, Stream, Time};
use proptest::prelude::*;

#[path = "outside_tests.rs"]
mod outside_tests;

use super::Rack;
use crate::Config;
use crate::config::{Carrier, Ip};
use crate::tables::journal::{Journal, Repair, Write};
use crate::tables::{Condition, compute::compute};
use crate::topology::Fibres;

pub(super) fn flow(id: u64, (src, dst): (u32, u32), size: u64, start: Time) -> Flow {
    let (src, dst) = (NodeId::new(src), NodeId::new(dst));
    Flow { id: FlowId::new(id), src, dst, size: Bytes::new(size), start, class: Class::new(0) }
}

/// Keeps what ends.
#[derive(Default)]
struct Ends(Vec<(u64, Span, Span)>);

impl ::rack::Probe for Ends {
    fn completed(&mut self, end: &::rack::Completion<'_>) -> std::ops::ControlFlow<()> {
        self.0.push((end.flow.id.get(), end.end - end.flow.start, end.ideal));
        std::ops::ControlFlow::Continue(())
    }

    fn failed(&mut self, flow: &Flow, _: Time, why: ::rack::Failure) -> std::ops::ControlFlow<()> {
        panic!("{flow:?} has failed: {why:?}");
    }
}

fn carry(config: &Config, flows: &[Flow]) -> (Rack, Vec<(u64, Span, Span)>) {
    carry_by(config, flows, false)
}

fn carry_by(config: &Config, flows: &[Flow], is_wire: bool) -> (Rack, Vec<(u64, Span, Span)>) {
    let mut rack = Rack::new(config.plan().unwrap(), 1);
    rack.set_wire(is_wire).unwrap();
    let mut ends = Ends::default();
    for flow in flows {
        rack.advance(flow.start, &mut ends);
        rack.offer(flow);
    }
    rack.advance(Time::NEVER, &mut ends);
    rack.check().unwrap();
    assert_eq!(ends.0.len(), flows.len());
    (rack, ends.0)
}

/// A message of one packet alone takes its ideal time but for cycles and what chance puts in its way: 2.1 us of
/// handshake across a fibre of 100 m (A42), unless packets go unasked for, its bytes on two host lines, and the last
/// cells.
#[test]
fn a42_a_message_alone_takes_its_ideal_time() {
    for solicitation in [true, false] {
        let ip = Ip { solicitation, ..Ip::default() };
        let config = Config { nodes: 136, fibres: Fibres::Metres(100), ip, ..Config::default() };
        for (dst, size) in [(1, 500), (2, 500), (9, 500), (30, 1_000), (135, 100)] {
            let (_, ends) = carry(&config, &[flow(0, (0, dst), size, Time::ZERO)]);
            let (_, took, ideal) = ends[0];
            assert!(took >= ideal, "{solicitation}, to {dst}: {took} for {ideal}");
            // No larger: cells of 4 KB queue for a gateway's two fibres, and some go round (F01, Fig. 10).
            // Its data takes a line of 25 Gbps where the ideal takes one of 50, and waits for its own cells.
            let bound = ideal + Span::from_ns(450);
            assert!(took <= bound, "{solicitation}, to {dst}: {took} for {ideal}");
        }
    }
}

/// M501, X06: a small flow alone takes its ideal time, but for cycles and what chance puts in its way; a large one most of
/// what the bus carries.
#[test]
fn slow_m501_a_flow_of_memory_alone_takes_its_ideal_time() {
    for carrier in [Carrier::RmaRead, Carrier::RmaWrite] {
        let fibres = Fibres::Metres(100);
        let config = Config { nodes: 136, fibres, carrier, ..Config::default() };
        for (dst, size) in [(1, 100), (2, 128), (9, 100), (30, 8), (135, 128)] {
            let (_, ends) = carry(&config, &[flow(0, (0, dst), size, Time::ZERO)]);
            let (_, took, ideal) = ends[0];
            assert!(took >= ideal, "to {dst}: {took} for {ideal}");
            assert!(took <= ideal + Span::from_ns(300), "to {dst}: {took} for {ideal}");
        }
        let size = 4_000_000;
        let (_, ends) = carry(&config, &[flow(0, (0, 60), size, Time::ZERO)]);
        let gbps = size as f64 * 8.0 / ends[0].1.as_seconds() / 1e9;
        assert!((60.0..=104.0).contains(&gbps), "{carrier:?}: {gbps} Gbps");
    }
}

/// M427: with classes of service by flow, an urgent message does not wait for bulk traffic to its host.
#[test]
fn slow_m427_classes_of_flows_are_classes_of_service() {
    let took = |priorities: Vec<u8>, classes_of_service: Vec<u8>| {
        let ip = Ip { classes_of_service, ..Ip::default() };
        let mut config = Config { nodes: 36, ip, ..Config::default() };
        if let crate::Transport::Swift(swift) = &mut config.transport {
            swift.stream.class_priorities = priorities;
        }
        let bulk = |src: u32| Flow {
            class: Class::new(1),
            ..flow(src.into(), (src, 35), 300_000, Time::ZERO)
        };
        let mut flows: Vec<_> = (0..16).map(bulk).collect();
        flows.push(flow(16, (20, 35), 4_000, Time::ZERO + Span::from_us(30)));
        let (_, ends) = carry(&config, &flows);
        ends.into_iter().find(|(id, ..)| *id == 16).unwrap().1
    };
    let plain = took(vec![], vec![]);
    assert_eq!(took(vec![0, 1], vec![1, 1]), plain, "one class of service for all");
    let urgent = took(vec![0, 1], vec![7, 1]);
    assert!(urgent * 3 < plain, "{urgent}, and {plain} without");
}

/// M925, U38: hosts' engines, buses and threads come on top of what the fabric takes.
#[test]
fn m925_hosts_take_their_time() {
    use packets::config::{Host, Preset, WakeUp};

    let took = |host: Host| {
        let config = Config { nodes: 36, host, ..Config::default() };
        let (_, ends) = carry(&config, &[flow(0, (0, 30), 4_000, Time::ZERO)]);
        let (_, took, ideal) = ends[0];
        assert!(took >= ideal, "{took} for {ideal}");
        (took, ideal)
    };
    let (plain, plain_ideal) = took(Host::default());
    let (pony, ideal) = took(Host { preset: Preset::PonyExpress, ..Host::default() });
    let hosts = Span::from_ns(900 * 2 + 800 * 2);
    // The fabric's cycles fall otherwise.
    let off = (pony - hosts).as_ps().abs_diff(plain.as_ps());
    assert!(off < 3 * 2_500, "{pony} for {plain} and {hosts}");
    assert_eq!(ideal, plain_ideal + hosts);
    let wake = Some(Span::from_us(30));
    let wake_up = WakeUp { least: wake, most: wake };
    let (legacy, _) = took(Host { preset: Preset::Legacy, wake_up, ..Host::default() });
    assert_eq!(legacy, pony + Span::from_us(30));
}

/// §5.1: 50 Gbps a machine when both hosts of a NIC send, 100 when one does (X25).
#[test]
fn slow_x25_two_hosts_share_a_nic() {
    let size = 3_000_000;
    for (senders, gbps) in [(&[0][..], 90.0..98.0), (&[0, 1], 45.0..49.5)] {
        // To two TiNs of other pods, one host each: their lines are no limit.
        let flows: Vec<_> = senders
            .iter()
            .map(|&src| flow(src.into(), (src, 40 + 40 * src), size, Time::ZERO))
            .collect();
        let mut config = Config { nodes: 136, ip: Ip::default(), ..Config::default() };
        config.transport = crate::Transport::Newreno(transports::newreno::Config::default());
        let (_, ends) = carry(&config, &flows);
        for (id, took, _) in ends {
            let rate = size as f64 * 8.0 / took.as_seconds() / 1e9;
            assert!(gbps.contains(&rate), "host {id} of {senders:?}: {rate} Gbps");
        }
    }
}

/// I93: with all packets traced every flow ends when it does without, and nothing is suspected; by default one packet in
/// so many is.
#[test]
fn i93_m903_tracing_moves_no_flow() {
    let flows: Vec<_> = (0..60u32)
        .map(|id| {
            let start = Time::ZERO + Span::from_ns(700 * u64::from(id));
            flow(id.into(), (id % 36, (id * 7 + 5) % 36), 20_000, start)
        })
        .collect();
    let traced = |one_in| {
        let trace = crate::trace::Settings { one_in, records_per_second: 100_000_000 };
        carry(&Config { nodes: 36, trace, ..Config::default() }, &flows)
    };
    let ((all, ends), (none, plain)) = (traced(1), traced(0));
    assert_eq!(ends, plain);
    let count =
        |rack: &Rack, key: &str| rack.details().get(key).and_then(serde_json::Value::as_u64);
    assert_eq!(count(&all, "traced_packets"), count(&all, "ip_packets"));
    assert_eq!(count(&all, "traced_cells"), count(&all, "cells"));
    assert_eq!(count(&all, "trace_records"), count(&all, "cell_hops"));
    assert_eq!(count(&all, "trace_suspects"), Some(0));
    assert_eq!(count(&none, "traced_packets"), None);
    let (some, ends) = traced(40);
    assert_eq!(ends, plain);
    let (packets, chosen) =
        (count(&some, "ip_packets").unwrap(), count(&some, "traced_packets").unwrap());
    assert!((packets / 80..packets / 20).contains(&chosen), "{chosen} of {packets}");
}

/// X23: nothing sound is named where a run ends with cells under way, also where TiNs may not tell of all that they see and
/// cells with the same pointers are taken for one.
#[test]
fn x23_a_run_that_is_cut_names_nothing_sound() {
    for records_per_second in [100_000_000, 30_000_000, 10_000_000] {
        let trace = crate::trace::Settings { one_in: 1, records_per_second };
        let config = Config { nodes: 10, trace, ..Config::default() };
        let mut rack = Rack::new(config.plan().unwrap(), 1);
        let (mut ends, mut stream) = (Ends::default(), Stream::new(1, "test/cut", 0));
        let mut at = Time::ZERO;
        for id in 0..800 {
            let src = stream.below(10) as u32;
            let dst = (src + 1 + stream.below(9) as u32) % 10;
            rack.advance(at, &mut ends);
            rack.offer(&flow(id, (src, dst), 3_000, at));
            at += Span::from_ns(1 + stream.below(200));
        }
        rack.advance(at, &mut ends);
        let details = rack.details();
        let count = |key: &str| details[key].as_u64().unwrap();
        assert!(ends.0.len() < 800, "some are under way");
        assert_eq!(count("trace_records") < count("cell_hops"), records_per_second < 100_000_000);
        assert_eq!(count("trace_suspects"), 0, "{}", details["trace_suspected"]);
    }
}

/// The same of operations on remote memory, whose requests, offers and answers are all traced.
#[test]
fn slow_i93_m903_tracing_moves_no_flow_of_memory() {
    let flows: Vec<_> = (0..60u32)
        .map(|id| {
            let start = Time::ZERO + Span::from_ns(700 * u64::from(id));
            flow(id.into(), (id % 36, (id * 7 + 5) % 36), 20_000, start)
        })
        .collect();
    for carrier in [Carrier::RmaRead, Carrier::RmaWrite] {
        let traced = |one_in| {
            let trace = crate::trace::Settings { one_in, records_per_second: 100_000_000 };
            carry(&Config { nodes: 36, trace, carrier, ..Config::default() }, &flows)
        };
        let ((all, ends), (none, plain)) = (traced(1), traced(0));
        assert_eq!(ends, plain);
        let count =
            |rack: &Rack, key: &str| rack.details().get(key).and_then(serde_json::Value::as_u64);
        // Two operations of 16 KiB at the most each.
        assert_eq!(count(&all, "traced_operations"), Some(120));
        assert_eq!(count(&all, "traced_cells"), count(&all, "cells"));
        assert_eq!(count(&all, "trace_records"), count(&all, "cell_hops"));
        assert_eq!(count(&all, "trace_suspects"), Some(0));
        assert_eq!(count(&none, "traced_operations"), None);
        let (some, ends) = traced(10);
        assert_eq!(ends, plain);
        let chosen = count(&some, "traced_operations").unwrap();
        assert!((1..60).contains(&chosen), "{chosen} of 120");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// All flows end, whatever the Clique; nothing is faster than its ideal, nothing is left in it.
    #[test]
    fn slow_every_flow_ends_and_none_before_its_ideal(
        drawn in prop::collection::vec((0..24u32, 0..24u32, 1..40_000u64, 0..30_000u64), 1..60),
        hosts_per_tin in 1..=2u8,
        metres in 1..=100u32,
    ) {
        let fibres = Fibres::Metres(metres);
        let config = Config { nodes: 24, hosts_per_tin, fibres, ..Config::default() };
        let mut flows: Vec<_> = (0..)
            .zip(&drawn)
            .map(|(id, &(src, dst, size, ns))| {
                let dst = if src == dst { (dst + 1) % 24 } else { dst };
                flow(id, (src, dst), size, Time::ZERO + Span::from_ns(ns))
            })
            .collect();
        flows.sort_by_key(|flow| flow.start);
        let (rack, ends) = carry(&config, &flows);
        for (id, took, ideal) in ends {
            prop_assert!(took >= ideal, "flow {}: {} for {}", id, took, ideal);
        }
        prop_assert_eq!(rack.details()["ip_no_ingress_room"].as_u64(), Some(0));
    }

    /// The same where memory carries them; what is on links as its bytes changes nothing.
    #[test]
    fn slow_m501_every_flow_ends_where_memory_carries_it(
        drawn in prop::collection::vec((0..24u32, 0..24u32, 1..200_000u64, 0..30_000u64), 1..40),
        is_read: bool,
        hosts_per_tin in 1..=2u8,
        operation in 1_000..40_000u64,
    ) {
        let carrier = if is_read { Carrier::RmaRead } else { Carrier::RmaWrite };
        let mut config = Config { nodes: 24, hosts_per_tin, carrier, ..Config::default() };
        config.rma.operation = Bytes::new(operation);
        let mut flows: Vec<_> = (0..)
            .zip(&drawn)
            .map(|(id, &(src, dst, size, ns))| {
                let dst = if src == dst { (dst + 1) % 24 } else { dst };
                flow(id, (src, dst), size, Time::ZERO + Span::from_ns(ns))
            })
            .collect();
        flows.sort_by_key(|flow| flow.start);
        let (rack, ends) = carry(&config, &flows);
        for &(id, took, ideal) in &ends {
            prop_assert!(took >= ideal, "flow {}: {} for {}", id, took, ideal);
        }
        let bytes: u64 = flows.iter().map(|flow| flow.size.get()).sum();
        let totals = rack.totals();
        prop_assert_eq!((totals.delivered, totals.drops), (Bytes::new(bytes), 0));
        prop_assert_eq!(Some(totals.hops), rack.details()["cell_hops"].as_u64());
        let (again, same) = carry_by(&config, &flows, true);
        prop_assert_eq!(same, ends);
        prop_assert_eq!(again.totals(), rack.totals());
    }
}

/// X24: a run that is to measure its clocks says how far off they were, within the bound of I90; nothing else changes, and
/// none is said where none is asked for.
#[test]
fn x24_a_run_measures_its_clocks() {
    let flows = [flow(0, (0, 30), 20_000, Time::ZERO)];
    for carrier in [Carrier::Ip, Carrier::RmaRead] {
        let mut config = Config { nodes: 36, carrier, ..Config::default() };
        let (plain, ends) = carry(&config, &flows);
        config.timesync.measured = Span::from_us(5_000);
        let (measured, same) = carry(&config, &flows);
        assert_eq!((same, measured.totals()), (ends, plain.totals()));
        let details = measured.details();
        let ns = |key: &str| details[key].as_f64().unwrap();
        assert_eq!(details["clocks_settled"], true);
        let (off, bound) = (ns("clock_error_max_ns"), ns("clock_error_bound_ns"));
        // Clocks that are 100 millionths off drift ten to twenty ns in the 100 us between two sets.
        assert!((5.0..=bound).contains(&off), "{off} of {bound} ns");
        let own = |key: &&String| key.starts_with("clock");
        assert_eq!(details.keys().filter(own).count(), 5);
        assert_eq!(plain.details().keys().filter(own).count(), 0);
    }
}

/// What is told of flows that end or fail, and when.
#[derive(Default)]
struct Books(Vec<(u64, Time, bool)>);

impl ::rack::Probe for Books {
    fn completed(&mut self, end: &::rack::Completion<'_>) -> std::ops::ControlFlow<()> {
        self.0.push((end.flow.id.get(), end.end, true));
        std::ops::ControlFlow::Continue(())
    }

    fn failed(&mut self, flow: &Flow, at: Time, _: ::rack::Failure) -> std::ops::ControlFlow<()> {
        self.0.push((flow.id.get(), at, false));
        std::ops::ControlFlow::Continue(())
    }
}

pub(super) fn fault(component: Component, at: u64, until: Option<u64>) -> Fault {
    let time = |us| Time::ZERO + Span::from_us(us);
    Fault { component, at: time(at), until: until.map(time) }
}

/// All flows to their ends, in so many parts on two threads: ends in order of flows, and the rack.
fn carry_under(
    config: &Config,
    faults: &[Fault],
    flows: &[Flow],
    parts: usize,
) -> (Rack, Vec<(u64, Time, bool)>) {
    carry_plan(config.plan().unwrap().with_faults(faults).unwrap(), flows, parts)
}

fn carry_plan(
    plan: crate::config::Plan,
    flows: &[Flow],
    parts: usize,
) -> (Rack, Vec<(u64, Time, bool)>) {
    let mut rack = Rack::new(plan, 1);
    assert_eq!(rack.set_shards(parts), parts);
    flows.iter().for_each(|flow| rack.offer(flow));
    let mut books = Books::default();
    // Not until `NEVER`, which is no instant that a run has reached: a summary says what was done by its end.
    let end = Time::ZERO + Span::from_us(60_000_000);
    while rack.advance(end, &mut books) != ::rack::Advance::Idle {}
    rack.check().unwrap();
    books.0.sort_unstable();
    (rack, books.0)
}

fn all_to_all(nodes: u32, size: u64, every: u64) -> Vec<Flow> {
    let pairs = (0..nodes).flat_map(|src| (0..nodes).map(move |dst| (src, dst)));
    (0..)
        .zip(pairs.filter(|(src, dst)| src != dst))
        .map(|(id, pair)| flow(id, pair, size, Time::ZERO + Span::from_ns(id * every)))
        .collect()
}

/// Everything of M922 fails and comes back while traffic flows: every flow of a host that lives completes; routes lead
/// round what is gone, whatever the cut.
#[test]
fn slow_m922_everything_fails_while_traffic_flows_and_nothing_is_left() {
    use ::rack::Group;
    let config = Config { nodes: 34, convergence: Span::from_us(50), ..Config::default() };
    let groups =
        [Group::Module, Group::Cable, Group::Bundle, Group::Card, Group::Chassis, Group::Rack];
    let mut cases: Vec<_> = groups.into_iter().map(|group| Component::Group(group, 0)).collect();
    cases.extend([Component::Switch(3), Component::Link { a: 34, b: 35, link: 2 }]);
    for component in cases {
        let flows = all_to_all(34, 3_000, 60);
        let faults = [fault(component, 10, Some(3_000))];
        let (rack, ends) = carry_under(&config, &faults, &flows, 1);
        assert_eq!(ends.len(), flows.len(), "{component}");
        let details = rack.details();
        let lost = details["cells_lost_at_dead_links"].as_u64().unwrap();
        assert!(lost > 0, "{component}: no cell met what is dead");
        assert!(ends.iter().all(|&(.., is_complete)| is_complete), "{component}: {ends:?}");
        let (other, others) = carry_under(&config, &faults, &flows, 3);
        assert_eq!(others, ends, "{component} in three parts");
        assert_eq!(other.totals().event_hash, rack.totals().event_hash);
        assert_eq!(other.details()["cell_hops"], details["cell_hops"]);
    }
}

/// All that leads cells round a bundle, written at one instant.
fn round_a_bundle(plan: &crate::config::Plan, at: Time) -> Journal {
    use crate::topology::packaging::{Packaging, Part};
    let topology = &plan.topology;
    let mut condition = Condition::healthy(topology);
    Packaging::new(topology).fail(&mut condition, Part::Bundle(0));
    let tables = |condition| compute(topology, &plan.turns, condition);
    let (before, after) = (tables(&Condition::healthy(topology)), tables(&condition));
    let writes = (0..topology.shape().tins()).flat_map(|tin| {
        let changes = before.changes(tin, &after, topology).into_iter();
        changes.map(move |change| Write { at, tin, change })
    });
    Journal::new(writes.collect())
}

/// A rack whose tables somebody else writes.
fn controlled() -> Config {
    let control = crate::config::Control::Sdn;
    Config { nodes: 34, convergence: Span::from_us(50), control, ..Config::default() }
}

/// A datagram's packets have smaller headers than those of the stream, so that one holds what the stream would cut in two.
#[test]
fn a_datagram_alone_takes_no_less_than_its_own_packets() {
    use crate::transport::Transport;
    use transports::{mixed, raw};
    let class = Class::new(1);
    let datagrams = raw::Config {
        header: Bytes::new(28),
        losses: raw::Losses::Forget,
        ..raw::Config::default()
    };
    let mixed =
        mixed::Config { datagrams, datagram_classes: vec![class], ..mixed::Config::default() };
    let config = Config { nodes: 34, transport: Transport::Mixed(mixed), ..Config::default() };
    let flows = [Flow { class, ..flow(0, (0, 33), 1_472, Time::ZERO) }];
    let (rack, ends) = carry(&config, &flows);
    let streamed = Flow { class: Class::new(0), ..flows[0] };
    assert!(ends[0].1 >= ends[0].2, "{ends:?}");
    assert!(rack.ideal_fct(&flows[0]) < rack.ideal_fct(&streamed), "one packet, two");
}

/// What is written before the first packet comes is in place by then: the packet does not begin before it comes.
#[test]
fn m604_writes_before_the_first_packet_leave_it_its_time() {
    let plan = controlled().plan().unwrap();
    let journal = round_a_bundle(&plan, Time::ZERO + Span::from_us(40));
    let plan = crate::config::Plan { journal: Some(std::sync::Arc::new(journal)), ..plan };
    let flows = [flow(0, (0, 33), 1, Time::ZERO + Span::from_us(100))];
    for parts in [1, 3] {
        let (rack, ends) = carry_plan(plan.clone(), &flows, parts);
        let (_, end, is_complete) = ends[0];
        let (took, ideal) = (end - flows[0].start, rack.ideal_fct(&flows[0]));
        assert!(is_complete && took >= ideal, "{took} for {ideal} at best, in {parts} parts");
    }
}

/// Tables change when somebody says that they were written, and not by themselves: requests whose way is dead are lost until
/// then and not later, whatever the cut.
#[test]
fn slow_m604_a_journal_of_writes_leads_flows_round_what_is_dead() {
    use ::rack::Group;
    let faults = [fault(Component::Group(Group::Bundle, 0), 10, None)];
    let flows = all_to_all(34, 3_000, 60);
    let plan = controlled().plan().unwrap().with_faults(&faults).unwrap();
    let at = Time::ZERO + Span::from_us(40);
    let mut journal = round_a_bundle(&plan, at);
    journal.repairs.push(Repair { since: Time::ZERO + Span::from_us(10), until: Some(at) });
    let written = journal.writes().len();
    // Those that began some microseconds behind the writes and took a time-out.
    let late = |journal: Journal, parts| {
        let journal = Some(std::sync::Arc::new(journal));
        let plan = crate::config::Plan { journal, ..plan.clone() };
        let (rack, ends) = carry_plan(plan, &flows, parts);
        let start = |id: u64| flows[id as usize].start;
        let is_late = |&&(id, end, _): &&(u64, Time, bool)| {
            start(id) > at + Span::from_us(5) && end - start(id) > Span::from_us(1_000)
        };
        (ends.iter().filter(is_late).count(), ends, rack.details())
    };
    let (none, ends, details) = late(journal.clone(), 1);
    assert!(ends.iter().all(|&(.., is_complete)| is_complete));
    assert_eq!(none, 0, "tables lead round what is dead");
    assert_eq!(details["control_entries"], written);
    assert_eq!(details["control_repairs"], 1);
    assert_eq!(details["control_repair_max_us"], 30.0);
    let (_, cut, same) = late(journal, 3);
    assert!(cut == ends, "three parts");
    assert_eq!(same, details, "three parts");
    let (some, ..) = late(Journal::default(), 1);
    assert!(some > 10, "nobody has written: {some} wait for a time-out");
}

/// A TiN that dies for good takes its hosts with it (I95): their flows fail, all others complete.
#[test]
fn i95_a_dead_tin_takes_its_hosts_with_it_and_no_others() {
    let config = Config { nodes: 36, convergence: Span::from_us(50), ..Config::default() };
    let flows = all_to_all(36, 2_000, 100);
    let plan = config.plan().unwrap();
    let gone: Vec<_> = (0..36).filter(|&node| plan.hosts[node as usize].tin == 5).collect();
    assert_eq!(gone.len(), 2);
    let (_, ends) = carry_under(&config, &[fault(Component::Switch(5), 20, None)], &flows, 1);
    assert_eq!(ends.len(), flows.len());
    for (id, at, is_complete) in ends {
        let flow = &flows[id as usize];
        let is_cut_off = [flow.src, flow.dst].iter().any(|node| gone.contains(&node.get()));
        let was_early = at < Time::ZERO + Span::from_us(20);
        assert_eq!(is_complete, !is_cut_off || was_early, "{flow:?} at {at}");
    }
}

#[test]
fn what_cannot_fail_is_refused_by_name() {
    use ::rack::Group;
    let plan = Config { nodes: 36, ..Config::default() }.plan().unwrap();
    let refuse =
        |one: Fault| plan.clone().with_faults(&[one]).expect_err("it cannot")[0].to_string();
    let cable = refuse(fault(Component::Group(Group::Cable, 900), 1, None));
    assert!(cable.contains("there is no cable 900; this Clique has"), "{cable}");
    let link = refuse(fault(Component::Link { a: 36, b: 37, link: 99 }, 1, None));
    assert!(link.contains("there is no link 99"), "{link}");
    let short = refuse(fault(Component::Switch(1), 5, Some(6)));
    assert!(short.contains("trained anew"), "{short}");
}

/// The same where memory carries the flows: all complete that hosts that live ask of hosts that live, whatever fails for a
/// while and however the Clique is cut; what was lost on the way is asked for again.
#[test]
fn slow_m922_m511_everything_fails_while_memory_carries_flows() {
    use ::rack::Group;
    let components = [
        Component::Group(Group::Module, 0),
        Component::Group(Group::Cable, 0),
        Component::Group(Group::Card, 0),
        Component::Group(Group::Chassis, 0),
        Component::Switch(3),
        Component::Link { a: 34, b: 35, link: 2 },
        Component::NodeLink(NodeId::new(4)),
    ];
    for carrier in [Carrier::RmaRead, Carrier::RmaWrite] {
        let convergence = Span::from_us(50);
        let config = Config { nodes: 34, convergence, carrier, ..Config::default() };
        let flows = all_to_all(34, 3_000, 60);
        for component in components {
            let faults = [fault(component, 10, Some(3_000))];
            let (rack, ends) = carry_under(&config, &faults, &flows, 1);
            assert_eq!(ends.len(), flows.len(), "{component}");
            let details = rack.details();
            let told = |key: &str| details[key].as_u64().unwrap();
            let is_line = matches!(component, Component::NodeLink(_));
            assert!(is_line || told("cells_lost_at_dead_links") > 0, "{component}");
            assert!(ends.iter().all(|&(.., is_complete)| is_complete), "{component}: {ends:?}");
            let (other, others) = carry_under(&config, &faults, &flows, 3);
            assert_eq!(others, ends, "{component} in three parts");
            assert_eq!(other.totals(), rack.totals());
            assert_eq!(other.details(), details);
        }
    }
}

/// A host or a TiN that dies for good: flows that it asks for or is asked for fail, all others complete, and it is said
/// which end has died, whichever of them asks.
#[test]
fn slow_m511_flows_fail_of_hosts_whose_memory_is_gone() {
    struct Why(Vec<(u64, Option<::rack::Failure>)>);
    impl ::rack::Probe for Why {
        fn completed(&mut self, end: &::rack::Completion<'_>) -> std::ops::ControlFlow<()> {
            self.0.push((end.flow.id.get(), None));
            std::ops::ControlFlow::Continue(())
        }

        fn failed(
            &mut self,
            flow: &Flow,
            _: Time,
            why: ::rack::Failure,
        ) -> std::ops::ControlFlow<()> {
            self.0.push((flow.id.get(), Some(why)));
            std::ops::ControlFlow::Continue(())
        }
    }
    for carrier in [Carrier::RmaRead, Carrier::RmaWrite] {
        let config = Config { nodes: 14, carrier, ..Config::default() };
        // They begin before the death and behind it.
        let flows = all_to_all(14, 40_000, 100);
        let plan = config.plan().unwrap();
        let tin_of = |node: u32| plan.hosts[node as usize].tin;
        let (node, switch) = (Component::Node(NodeId::new(7)), Component::Switch(tin_of(3).into()));
        let of_switch: Vec<u32> = (0..14).filter(|&node| tin_of(node) == tin_of(3)).collect();
        for (component, gone) in [(node, vec![7]), (switch, of_switch)] {
            let plan = config.plan().unwrap();
            let mut rack = Rack::new(plan.with_faults(&[fault(component, 2, None)]).unwrap(), 1);
            flows.iter().for_each(|flow| rack.offer(flow));
            let mut ends = Why(Vec::new());
            while rack.advance(Time::NEVER, &mut ends) != ::rack::Advance::Idle {}
            rack.check().unwrap();
            assert_eq!(ends.0.len(), flows.len(), "{component}");
            for (id, why) in ends.0 {
                let flow = &flows[id as usize];
                let [src, dst] = [flow.src, flow.dst].map(|node| gone.contains(&node.get()));
                match why {
                    None => assert!(!src && !dst, "{flow:?} completes"),
                    // A TiN takes none of the two with it: who is asked, or its way, is gone.
                    Some(why) if component == switch => assert!(src || dst, "{flow:?}: {why:?}"),
                    Some(why) => {
                        let known = if src {
                            ::rack::Failure::SourceDied
                        } else {
                            ::rack::Failure::DestinationDied
                        };
                        assert!((src || dst) && why == known, "{flow:?}: {why:?}");
                    }
                }
            }
        }
    }
}
