//! The record of packets and their cells: against closed forms, and against the run without it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use ::rack::topology::PortId;
use ::rack::trace::{Account, Followed, Hop, Outcome, Part, Purpose, Trace, account};
use ::rack::{Completion, Component as Fails, Fabric, Failure, Flow, FlowId, Group, Probe};
use kernel::{Span, Time};
use proptest::prelude::*;

use super::super::Rack;
use super::super::blueprint::Blueprint;
use super::super::tests::{fault, flow};
use crate::Config;
use crate::address::{Address, Endpoint};
use crate::config::{Carrier, Ip, Order, Plan};
use crate::link::classes::class_of;
use crate::link::header::Header;
use crate::tables::{Component, Condition, component_from, compute::compute};
use crate::topology::Fibres;
use crate::turns::TurnTable;

/// What becomes of flows.
#[derive(Default)]
struct Told(Vec<Followed>, Vec<String>);

impl Probe for Told {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        let Completion { flow, end, .. } = *completion;
        let Flow { id, src, dst, start, .. } = *flow;
        self.0.push(Followed { flow: id, src, dst, start, end });
        self.1.push(format!("{completion:?}"));
        ControlFlow::Continue(())
    }

    fn failed(&mut self, flow: &Flow, at: Time, why: Failure) -> ControlFlow<()> {
        self.1.push(format!("{flow:?} {at} {why:?}"));
        ControlFlow::Continue(())
    }
}

fn run(rack: &mut Rack, flows: &[Flow]) -> Told {
    let mut told = Told::default();
    for flow in flows {
        rack.advance(flow.start, &mut told);
        rack.offer(flow);
    }
    rack.advance(Time::ZERO + Span::from_us(200_000), &mut told);
    told.1.push(format!("{:?} {:?}", rack.totals(), rack.details()));
    rack.check().unwrap();
    told
}

/// Runs flows, and runs them again recorded, whole and in parts: all of them.
#[track_caller]
fn traced(config: &Config, flows: &[Flow]) -> (Vec<Account>, Trace) {
    traced_plan(&config.plan().unwrap(), flows)
}

#[track_caller]
fn traced_plan(plan: &Plan, flows: &[Flow]) -> (Vec<Account>, Trace) {
    let rack = || Rack::new(plan.clone(), 1);
    let mut told = run(&mut rack(), flows);
    told.0.sort_by_key(|followed| followed.flow);
    let once = |shards: usize| {
        let mut again = rack();
        again.set_shards(shards);
        again.set_trace(&told.0);
        assert_eq!(run(&mut again, flows).1, told.1);
        again.take_trace()
    };
    let trace = once(1);
    assert!(once(3) == trace, "in three parts");
    for hop in &trace.hops {
        assert!(hop.joined <= hop.started && hop.started <= hop.arrived, "{hop:#?}");
    }
    let accounts = told.0.iter().map(|followed| {
        let found = account(followed, trace.of(followed.flow)).unwrap();
        let sum: Span = found.shares.iter().map(|share| share.span).sum();
        assert_eq!(sum, followed.end - followed.start, "{found:#?}");
        found
    });
    let accounts = accounts.collect();
    for hop in &trace.hops {
        assert!(hop.own + hop.others <= hop.wait(), "{hop:?}");
        let Some(cell) = hop.cell.as_ref().filter(|_| hop.hop > 0) else { continue };
        let waits = cell.fifo + cell.room + cell.crossbar + cell.line + cell.credit;
        assert_eq!(waits, hop.wait(), "{hop:?}");
    }
    (accounts, trace)
}

/// Hosts of 17 pods of 4 TiNs, with fibres of 100 m (A42).
fn mini() -> Config {
    Config { nodes: 136, fibres: Fibres::Metres(100), ..Config::default() }
}

/// Hops of each cell of a packet, by its number.
fn cells(trace: &Trace, flow: u64, packet: u32) -> BTreeMap<u32, Vec<&Hop>> {
    let mut cells: BTreeMap<u32, Vec<&Hop>> = BTreeMap::new();
    let hops = trace.of(FlowId::new(flow)).iter().filter(|hop| hop.packet == packet);
    for hop in hops {
        if let Some(cell) = &hop.cell {
            cells.entry(cell.number).or_default().push(hop);
        }
    }
    cells
}

/// Parts of a cell's way that no other cell has to do with: 40 ns a switch, 5 ns a copper link, 530 ns a fibre, 20 ns to the
/// endpoint, and its bytes at 25 Gbps (I11, A42).
fn idle(trace: &Trace, cell: &[&Hop]) -> Span {
    let links = &cell[1..cell.len() - 1];
    let local = |hop: &&&Hop| hop.propagation == Span::from_ns(5);
    let locals = links.iter().filter(local).count() as u64;
    let globals = links.len() as u64 - locals;
    assert!(globals <= 2 && trace.places.len() > links.len(), "{links:?}");
    let wire = Span::from_ps(320 * u64::from(cell[0].bytes));
    Span::from_ns(45) * locals + Span::from_ns(570) * globals + Span::from_ns(20) + wire
}

/// A42, I11: each cell takes what its way takes alone, and what it waited; each part of a hop is what the closed form
/// says. Requests and clearances are acted upon at the beginning of the cycle of 2.5 ns in which they come.
#[test]
fn slow_a42_i11_the_parts_of_a_cell_s_way_are_those_of_the_closed_form() {
    let mut furthest = 0;
    for dst in [1, 2, 9, 30, 135] {
        let (_, trace) = traced(&mini(), &[flow(0, (0, dst), 500, Time::ZERO)]);
        let all = cells(&trace, 0, 0);
        for (number, hops) in &all {
            let (first, last) = (hops[0], hops[hops.len() - 1]);
            // What comes from an endpoint is with its switch at the cycle's beginning.
            let fed = first.started.as_ps() / 2_500 * 2_500;
            let waits: Span = hops[1..].iter().map(|hop| hop.wait()).sum();
            let mut took = idle(&trace, hops) + waits;
            if first.purpose() != Some(Purpose::Payload) {
                took = Span::from_ps((fed + took.as_ps()) / 2_500 * 2_500 - fed);
            }
            assert_eq!(
                last.arrived,
                Time::from_ps(fed) + took,
                "cell {number} to {dst}: {hops:#?}"
            );
            for hop in &hops[1..hops.len() - 1] {
                assert_eq!(hop.arrived, hop.started + hop.propagation);
                assert_eq!(hop.sent, hop.started + Span::from_ps(320) * u64::from(hop.bytes));
            }
            for pair in hops.windows(2).skip(1) {
                let core = if pair[1].propagation > Span::ZERO { 40 } else { 20 };
                assert_eq!(pair[1].joined, pair[0].arrived + Span::from_ns(core));
            }
            furthest = furthest.max(idle(&trace, hops).as_ps());
        }
    }
    // 160 B over a fibre with a copper link at each end.
    assert_eq!(furthest, 731_200);
}

/// M407, M414, M417: a packet has one request, one clearance, and as many data cells as its bytes need, at most 148 in each.
#[test]
fn slow_m417_a_packet_has_the_cells_that_its_bytes_need() {
    for size in [1, 500, 4_000, 30_000] {
        let (accounts, trace) = traced(&mini(), &[flow(0, (0, 30), size, Time::ZERO)]);
        let hops = trace.of(FlowId::new(0));
        let packets = hops.iter().filter(|hop| hop.cell.is_none() && hop.hop == 0 && hop.is_data);
        let packets: Vec<&Hop> = packets.collect();
        assert_eq!(accounts[0].packets, (packets.len() as u64, 0));
        for packet in packets {
            let mut kinds: BTreeMap<String, u16> = BTreeMap::new();
            let mut carried = 0;
            for cell in cells(&trace, 0, packet.packet).values() {
                let first = cell[0];
                *kinds.entry(first.cell.as_ref().unwrap().kind.to_string()).or_default() += 1;
                carried += if first.is_data { u64::from(first.payload) } else { 0 };
            }
            let expected = [("CTS", 1), ("DATA", packet.bytes.div_ceil(148)), ("RTS", 1)];
            let expected = expected.map(|(kind, count)| (kind.to_string(), count));
            assert_eq!(kinds.into_iter().collect::<Vec<_>>(), expected, "{packet:?}");
            // The last cell is filled up to whole blocks.
            let bytes = u64::from(packet.bytes);
            assert!((bytes..bytes + 16).contains(&carried), "{carried} of {bytes}");
        }
    }
}

/// M301 to M303: hop by hop a cell leaves by a port that the table of its input, channel and destination names, and comes
/// in at the other end of that link.
#[test]
fn m303_hops_are_those_that_the_tables_allow() {
    let config = mini();
    let plan = config.plan().unwrap();
    let tables = compute(&plan.topology, &TurnTable::P1, &Condition::healthy(&plan.topology));
    let blueprint = Blueprint::new(&plan, &super::super::engine(&plan).topology, 1);
    let flows: Vec<_> =
        (0..8).map(|id| flow(id, (id as u32 * 3, 100 + id as u32), 20_000, Time::ZERO)).collect();
    let (_, trace) = traced(&config, &flows);
    let mut seen = 0;
    let mut input = (0, 0);
    for pair in trace.hops.windows(2) {
        let [before, hop] = pair else { unreachable!() };
        let Some(cell) = hop.cell.as_ref().filter(|_| hop.hop > 0) else { continue };
        let (from, to) = (&trace.places[before.place as usize], &trace.places[hop.place as usize]);
        let there = from.to.split(" (").next();
        assert_eq!(there, Some(to.from.as_str()), "{before:?} {hop:?}");
        if hop.hop == 1 {
            let (_, terminal) = from.from.rsplit_once(' ').unwrap();
            let terminal: u8 = terminal.trim_end_matches(')').parse().unwrap();
            let tin = from.to.trim_start_matches("leaf ").parse().unwrap();
            input = (tin, plan.topology.shape().external_ports() + terminal);
        }
        let Some((tin, port)) = blueprint.tin_port(PortId::new(to.port)) else { continue };
        assert_eq!(tin, input.0);
        let header = Header::decode(*hop.header.first_chunk().unwrap()).unwrap();
        assert_eq!((header.vc, header.length.into()), (cell.vc, hop.bytes));
        let (class, _) = class_of(header.vc).unwrap();
        let rvc = before.cell.as_ref().unwrap().vc - 3 * class;
        let own = Address::new(
            plan.topology.shape().split(tin).0,
            plan.topology.shape().split(tin).1,
            Endpoint::ETHERNET,
        );
        let Component::Far(component) =
            component_from(plan.topology.shape(), own, header.destination)
        else {
            panic!("{hop:?} goes on where it is")
        };
        let entry = tables.entry(tables.block(tin, input.1, rvc), component);
        let row = tables.by_index(entry);
        let ways = row.minimal.iter().chain(&row.others);
        assert!(ways.clone().any(|&way| way == port), "{port} is none of {ways:?}");
        let far = plan.topology.far(tin, port).unwrap();
        input = (far.tin, far.port);
        seen += 1;
    }
    assert!(seen > 1_000, "{seen} hops");
}

/// M413, M423: requests for one host are granted as its line has time: a flow's request waits for as long as that has
/// others' packets to come, and it is told whose.
#[test]
fn m423_a_request_waits_for_what_the_destination_has_asked_others_for() {
    let flows: Vec<_> =
        (0..8).map(|id| flow(id, (2 * id as u32 + 2, 1), 4_000, Time::ZERO)).collect();
    // With headers of IP and TCP and a timestamp.
    const PACKET: u64 = 4_000 + 52;
    let (accounts, _) = traced(&mini(), &flows);
    let waited = |account: &Account| account.total(Part::SolicitationOthers);
    let last = accounts.iter().max_by_key(|account| account.fct).unwrap();
    // At 100 Gbps. The eighth packet is asked for as soon as what a token bucket of two largest packets (`ip.burst`) lacks
    // has come in since the first request; its own request comes later, by a longer way. Both at cycles.
    let line = |bytes: u64| Span::from_ps(80 * bytes);
    let asked = |account: &Account| account.total(Part::Request);
    let first = accounts.iter().map(asked).min().unwrap();
    let expected = line(8 * PACKET) - line(2 * 4_160) - (asked(last) - first);
    let cycles = Span::from_ps(2 * 2_500);
    assert!(waited(last) >= expected && waited(last) < expected + cycles, "{}", waited(last));
    let places = last.queues.iter().filter(|queue| queue.critical == Some(waited(last)));
    let queue = places.max_by_key(|queue| queue.beside.len()).unwrap();
    let bytes: u64 = queue.beside.iter().map(|(_, bytes)| bytes).sum();
    // Of these packets the line is still to take some when the request comes.
    assert_eq!(bytes, 4 * PACKET);
    assert!(line(bytes) >= waited(last) && line(bytes - PACKET) < waited(last), "{}", waited(last));
    let whose: Vec<_> = queue.beside.iter().map(|(flow, _)| flow.unwrap()).collect();
    assert!(whose.len() == 4 && !whose.contains(&last.flow), "{whose:?}");
}

/// Without a handshake there is none to record, and cells wait all the same.
#[test]
fn m002_cells_that_nobody_asked_for_have_no_handshake() {
    let ip = Ip { solicitation: false, ..Ip::default() };
    let flows: Vec<_> =
        (0..8).map(|id| flow(id, (2 * id as u32 + 2, 1), 20_000, Time::ZERO)).collect();
    let (accounts, trace) = traced(&Config { ip, ..mini() }, &flows);
    let asks = |part: Part| accounts.iter().map(|account| account.total(part)).max().unwrap();
    for part in [Part::Request, Part::Solicitation, Part::SolicitationOthers] {
        assert_eq!(asks(part), Span::ZERO);
    }
    let cells = trace.hops.iter().filter_map(|hop| hop.cell.as_ref());
    assert!(cells.map(|cell| cell.line + cell.fifo).max() > Some(Span::ZERO));
}

/// A scenario of its own: flows, what fails, and which ways cells take.
fn cases() -> impl Strategy<Value = (Config, Vec<Flow>)> {
    let pairs = prop::collection::vec(((0..36u32, 1..36u32), 1..30_000u64, 0..40u64), 1..24);
    (pairs, any::<[bool; 2]>(), 0..3u8).prop_map(|(pairs, [solicitation, order], errors)| {
        let mut config = Config { nodes: 36, ..Config::default() };
        config.ip.solicitation = solicitation;
        if !order {
            config.ip.order = Order::None;
        }
        config.link.local_bit_error_rate = [0.0, 1e-7, 1e-5][usize::from(errors)];
        let of = |(id, ((src, by), size, at)): (u64, ((u32, u32), u64, u64))| {
            flow(id, (src, (src + by) % 36), size, Time::ZERO + Span::from_ns(100 * at))
        };
        let mut flows: Vec<Flow> = (0..).zip(pairs).map(of).collect();
        flows.sort_by_key(|flow| (flow.start, flow.id));
        (config, flows)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn slow_whatever_happens_a_record_changes_nothing_and_adds_up((config, flows) in cases()) {
        traced(&config, &flows);
    }
}

/// Flows carried by operations on remote memory.
fn memory(carrier: Carrier) -> Config {
    Config { carrier, ..mini() }
}

/// M504, M507: what a flow's bytes need: a request for each 4 KB, and for a write an offer as well; an answer for each 128 B.
#[test]
fn slow_m507_memory_has_the_cells_that_its_bytes_need() {
    for carrier in [Carrier::RmaRead, Carrier::RmaWrite] {
        for size in [1, 128, 129, 4_096, 40_000, 300_000] {
            let (accounts, trace) = traced(&memory(carrier), &[flow(0, (0, 30), size, Time::ZERO)]);
            let mut kinds: BTreeMap<(String, Purpose), (u64, u64)> = BTreeMap::new();
            for hop in trace.hops.iter().filter(|hop| hop.hop == 0) {
                let Some(cell) = &hop.cell else { continue };
                let (count, bytes) =
                    kinds.entry((cell.kind.to_string(), cell.purpose)).or_default();
                (*count, *bytes) = (*count + 1, *bytes + u64::from(hop.payload));
                assert!(hop.offset + u64::from(hop.payload) <= size, "{hop:?}");
            }
            // Operations are of 16 KB, segments of 4 KB, answers of 128 B (M505, M507).
            let segments = size.div_ceil(4_096);
            let answers = size.div_ceil(128);
            let of = |kind: &str, purpose| kinds.get(&(kind.to_string(), purpose)).copied();
            assert_eq!(of("REQ", Purpose::Solicitation), Some((segments, 0)), "{kinds:?}");
            assert_eq!(of("RESP", Purpose::Payload), Some((answers, size)), "{kinds:?}");
            let is_write = carrier == Carrier::RmaWrite;
            let offers = is_write.then_some((segments, 0));
            assert_eq!(of("WRITE_REQ", Purpose::Request), offers, "{kinds:?}");
            assert_eq!(accounts[0].packets, (answers, 0));
        }
    }
}

/// X06: a read alone: the command on the host's line and over the bus, the request's way, 600 ns of the bus at the target, the
/// answer's way, and 350 ns until it is in memory, of which software hears.
#[test]
fn x06_the_parts_of_a_read_are_those_of_the_closed_form() {
    let config = memory(Carrier::RmaRead);
    let (accounts, trace) = traced(&config, &[flow(0, (0, 30), 100, Time::ZERO)]);
    let (account, rma) = (&accounts[0], &config.rma);
    // 64 B at 100 Gbps to the TiN of the host that reads; 136 B at 25 Gbps: two headers, 104 B and a tag.
    assert_eq!(account.total(Part::Transmission), Span::from_ps(5_120 + 320 * 136));
    let cells = cells(&trace, 0, 0);
    let [asks, answer] = [&cells[&0], &cells[&1]];
    assert_eq!([asks[0].bytes, answer[0].bytes], [48, 136]);
    for cell in [asks, answer] {
        let waits: Span = cell[1..].iter().map(|hop| hop.wait()).sum();
        assert_eq!(cell[cell.len() - 1].arrived, cell[0].arrived + idle(&trace, cell) + waits);
    }
    let arrived = asks[asks.len() - 1].arrived;
    assert_eq!(answer[0].joined, arrived + rma.request_time);
    // The doorbell, but for what of it a cycle of 2.5 ns hides.
    let held = account.total(Part::SolicitationHeld);
    assert!(held >= rma.pcie.doorbell && held < rma.pcie.doorbell + Span::from_ns(5), "{held}");
    assert_eq!(account.total(Part::SolicitationOthers), Span::ZERO);
    let after = account.total(Part::Destination);
    let landing = rma.landing_time + rma.pcie.completion + Span::from_ps(5_120 + 5_000);
    assert!(after >= landing && after < landing + Span::from_ns(15), "{after} of {landing}");
}

/// Hosts that read from one, and one that writes to many: whatever waits, waits for something, and it adds up.
#[test]
fn slow_m506_who_waits_for_memory_is_told_for_whom() {
    for carrier in [Carrier::RmaRead, Carrier::RmaWrite] {
        let into: Vec<_> =
            (0..8).map(|id| flow(id, (2 * id as u32 + 2, 1), 60_000, Time::ZERO)).collect();
        let from: Vec<_> =
            (0..8).map(|id| flow(id, (1, 2 * id as u32 + 2), 60_000, Time::ZERO)).collect();
        for flows in [into, from] {
            let (accounts, _) = traced(&memory(carrier), &flows);
            let beside = accounts.iter().flat_map(|account| &account.queues);
            let beside = beside.flat_map(|queue| &queue.beside);
            let others = beside.filter(|(flow, _)| flow.is_some()).count();
            assert!(others > 0, "{carrier:?}: {accounts:#?}");
        }
    }
}

/// M922: whatever fails while flows are carried, a record changes nothing, is the same however the Clique is cut, and of
/// each flow that completes the parts add up; what is lost is told.
#[test]
fn slow_m922_what_fails_is_recorded_and_adds_up() {
    let components = [Fails::Group(Group::Bundle, 0), Fails::Switch(3)];
    for carrier in [Carrier::Ip, Carrier::RmaRead, Carrier::RmaWrite] {
        let convergence = Span::from_us(50);
        let config = Config { nodes: 34, convergence, carrier, ..Config::default() };
        let of = |id: u64| {
            let (src, by) = (id as u32 * 7 % 34, 1 + id as u32 * 5 % 33);
            flow(id, (src, (src + by) % 34), 20_000, Time::ZERO + Span::from_ns(150 * id))
        };
        let flows: Vec<_> = (0..120).map(of).collect();
        let mut lost = 0;
        for component in components {
            let plan = config.plan().unwrap();
            let plan = plan.with_faults(&[fault(component, 10, Some(3_000))]).unwrap();
            let (accounts, trace) = traced_plan(&plan, &flows);
            assert!(accounts.len() > 60, "{carrier:?}, {component}: {}", accounts.len());
            let cells = trace.hops.iter().filter(|hop| hop.cell.is_some());
            lost += cells.filter(|hop| hop.outcome == Outcome::DeadLink).count();
        }
        assert!(lost > 0, "{carrier:?}");
    }
}
