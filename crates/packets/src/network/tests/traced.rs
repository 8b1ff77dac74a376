//! The record of packets: against closed forms, and against the run without it.

use proptest::prelude::*;
use rack::Component;
use rack::trace::{Account, Followed, Outcome, Part, Trace, account};

use super::random::{config, flows, may_deadlock, resolve};
use super::*;
use crate::config::{Forwarding, Routing};
use crate::cut::Cut;

/// A packet of 1,500 bytes at 10 Gbps.
const PACKET: Span = Span::from_ns(1_200);
/// The switch's latency, and what each cable takes.
const LATENCY: Span = Span::from_ns(500);
const CABLE: Span = Span::from_ns(100);

/// A switch that stores and forwards.
fn plain(hosts: u32) -> Config {
    let forwarding = Forwarding::StoreAndForward;
    Config { forwarding, switch_latency: LATENCY, queues: endless(), ..switch(hosts) }
}

/// Runs flows, and runs them again recorded: all of them, until each had ended.
#[track_caller]
fn traced(config: &Config, flows: &[Flow]) -> (Vec<Account>, Trace) {
    let (_, ends) = carry(config, flows);
    let followed: Vec<_> =
        ends.completed.iter().map(|(flow, end, ..)| follow(flow, *end)).collect();
    let mut network = raw(plan(config, &[]), Recovery::None, 1);
    network.set_trace(&followed);
    let again = run(&mut network, flows);
    assert_eq!(format!("{again:?}"), format!("{ends:?}"));
    let trace = network.take_trace();
    let accounts = followed.iter().map(|flow| account(flow, trace.of(flow.flow)).unwrap());
    (accounts.collect(), trace)
}

fn follow(flow: &Flow, end: Time) -> Followed {
    Followed { flow: flow.id, src: flow.src, dst: flow.dst, start: flow.start, end }
}

/// The parts of an account with the ports that they are at.
fn parts(account: &Account, trace: &Trace) -> Vec<(Part, String, Span)> {
    assert_eq!(account.rest, Span::ZERO);
    let shares = account.shares.iter();
    let place = |place: Option<u32>| place.map(|place| trace.places[place as usize].to_string());
    shares.map(|share| (share.part, place(share.place).unwrap_or_default(), share.span)).collect()
}

#[test]
fn a_flow_alone_takes_its_lines_and_cables_and_nothing_else() {
    let (accounts, trace) = traced(&plain(3), &[flow(0, 0, 2, 3 * 1460, 7_000)]);
    let (up, down) = ("node 0 to leaf 0".to_string(), "leaf 0 to node 2".to_string());
    let expected = [
        (Part::Sending, up.clone(), PACKET * 2),
        (Part::Transmission, up.clone(), PACKET),
        (Part::Propagation, up, CABLE + LATENCY),
        (Part::Transmission, down.clone(), PACKET),
        (Part::Propagation, down, CABLE),
    ];
    assert_eq!(parts(&accounts[0], &trace), expected);
    assert_eq!((accounts[0].critical, accounts[0].packets), (2, (3, 0)));
    // Three packets of two hops, each as far behind the one before as a packet is long.
    assert_eq!(trace.hops.len(), 6);
    for (number, hops) in (0..).zip(trace.hops.chunks(2)) {
        let sent = Time::from_ps(7_000) + PACKET * number;
        assert_eq!([hops[0].started, hops[0].sent], [sent, sent + PACKET]);
        assert_eq!(hops[0].arrived, sent + PACKET + CABLE + LATENCY);
        assert_eq!([hops[1].joined, hops[1].started], [hops[0].arrived; 2]);
        assert_eq!((hops[1].found_bytes, hops[1].found_packets), (0, 0));
    }
}

#[test]
fn cut_through_forwards_behind_the_header_and_the_parts_still_add_up() {
    let config = Config { forwarding: Forwarding::CutThrough, ..plain(3) };
    let (accounts, trace) = traced(&config, &[flow(0, 0, 2, 1460, 0)]);
    // The switch begins once it has 64 bytes, of 800 ps each (`CUT_THROUGH_HEADER`).
    let header = Span::from_ps(64 * 800);
    let found = parts(&accounts[0], &trace);
    let transmissions = found.iter().filter(|(part, ..)| *part == Part::Transmission);
    assert_eq!(transmissions.map(|(.., span)| *span).collect::<Vec<_>>(), [header, PACKET]);
    assert_eq!(accounts[0].fct, header + CABLE + LATENCY + PACKET + CABLE);
}

#[test]
fn the_second_of_two_waits_as_long_as_the_first_still_takes() {
    // The second comes 200 ns after the first, which then has 1,000 ns to go.
    let later = Span::from_ns(200);
    let all = [flow(0, 0, 2, 1460, 0), flow(1, 1, 2, 1460, later.as_ps())];
    let (accounts, trace) = traced(&plain(3), &all);
    assert_eq!(accounts[0].total(Part::QueueOthers), Span::ZERO);
    assert_eq!(accounts[1].total(Part::QueueOthers), PACKET - later);
    let queue = accounts[1].queues.last().unwrap();
    assert_eq!(queue.beside, [(Some(FlowId::new(0)), 1_500)]);
    assert_eq!((queue.critical, queue.packets, queue.lost), (Some(PACKET - later), 1, 0));
    // It was on the line, so nothing waited before the second.
    assert_eq!(queue.deepest, 0);
    assert_eq!(trace.places[queue.place as usize].to_string(), "leaf 0 to node 2");
}

#[test]
fn of_a_queue_it_is_told_who_was_ahead_with_how_much() {
    // Two packets of each of three flows come to one port at once; the last to go waits for all others.
    let all: Vec<_> = (0..3).map(|id| flow(id, id as u32, 3, 2 * 1460, 0)).collect();
    let (accounts, _) = traced(&plain(4), &all);
    let last = accounts.iter().max_by_key(|account| account.fct).unwrap();
    // Six packets in a row leave the port; its own two are among them, the later one last.
    assert_eq!(last.fct, PACKET + CABLE + LATENCY + PACKET * 6 + CABLE);
    let queued = last.total(Part::QueueOthers) + last.total(Part::QueueOwn);
    // It came behind another packet of its own on its host's line.
    assert_eq!(queued, PACKET * 4);
    let beside: u64 = last.queues.last().unwrap().beside.iter().map(|(_, bytes)| bytes).sum();
    assert_eq!(PACKET * (beside / 1_500), last.total(Part::QueueOthers));
}

#[test]
fn what_is_dropped_is_told_and_what_it_costs_is_recovery() {
    // Room for one packet: of three that come at once one goes, one waits and one is dropped.
    let queues = Queues { port_buffer: Bytes::new(1_500), ..Queues::default() };
    let config = Config { queues, ..plain(4) };
    let all: Vec<_> = (0..3).map(|id| flow(id, id as u32, 3, 1460, 0)).collect();
    let repeat = Span::from_us(1_000);
    let mut first = raw(plan(&config, &[]), Recovery::Repeat(repeat), 1);
    let ends = run(&mut first, &all);
    let followed: Vec<_> =
        ends.completed.iter().map(|(flow, end, ..)| follow(flow, *end)).collect();
    let mut network = raw(plan(&config, &[]), Recovery::Repeat(repeat), 1);
    network.set_trace(&followed);
    run(&mut network, &all);
    let trace = network.take_trace();
    let dropped: Vec<_> = trace.hops.iter().filter(|hop| hop.outcome == Outcome::NoRoom).collect();
    assert_eq!(dropped.len(), 1);
    assert_eq!((dropped[0].hop, dropped[0].found_bytes), (1, 0));
    let of_it = |flow: &&Followed| flow.flow == dropped[0].flow;
    let flow = followed.iter().find(of_it).unwrap();
    let account = account(flow, trace.of(flow.flow)).unwrap();
    assert_eq!((account.packets, account.rest), ((2, 1), Span::ZERO));
    // Alone by then: all but its lines and cables was waiting for the repetition.
    let way = PACKET * 2 + CABLE * 2 + LATENCY;
    assert_eq!(account.total(Part::Sending), PACKET);
    assert_eq!(account.total(Part::Recovery), account.fct - way - PACKET);
    assert!(account.total(Part::Recovery) + PACKET >= repeat);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Nothing changes by it, however the network is cut, and the parts of each flow add up.
    #[test]
    fn slow_the_record_of_a_random_network_adds_up_and_changes_nothing(
        config in config(),
        valiant: bool,
        flows in flows(),
        faults in prop::collection::vec((0u32..400, 1u64..100, 1u64..50), 0..3),
        every in 1u64..4,
    ) {
        let rings = matches!(config.topology, Shape::Torus(_) | Shape::Mesh(_));
        let routing = if valiant && rings { Routing::Valiant } else { config.routing };
        let config = Config { routing, ..config };
        prop_assume!(!may_deadlock(&config) && config.plan().is_ok());
        let built = plan(&config, &[]);
        let links: Vec<_> = built.topology.links().collect();
        let fault = |(link, at, lasts): (u32, u64, u64)| {
            let end = *built.topology.port(links[link as usize % links.len()]);
            let component = Component::Link { a: end.vertex.get(), b: end.peer.get(), link: 0 };
            let at = Time::from_ps(at * 1_000_000);
            Fault { component, at, until: Some(at + Span::from_us(lasts)) }
        };
        let faults: Vec<_> = faults.into_iter().map(fault).collect();
        let flows = resolve(built.topology.hosts(), &flows);
        let Ok(plan) = config.plan().unwrap().with_faults(&faults) else { return Ok(()) };
        let once = |followed: Option<&[Followed]>, cut: Option<Cut>| {
            let mut network = raw(plan.clone(), REPEAT, 7);
            if let Some(followed) = followed {
                network.set_trace(followed);
            }
            if let Some(cut) = cut {
                network.set_cut(cut, 1);
            }
            let ends = run(&mut network, &flows);
            let totals = network.totals();
            (ends, totals, network.take_trace())
        };
        let (ends, totals, nothing) = once(None, None);
        prop_assert_eq!(nothing, Trace::default());
        let chosen = ends.completed.iter().filter(|(flow, ..)| flow.id.get() % every == 0);
        let mut followed: Vec<_> = chosen.map(|(flow, end, ..)| follow(flow, *end)).collect();
        followed.sort_by_key(|followed| followed.flow);
        let (again, same, trace) = once(Some(&followed), None);
        prop_assert_eq!(format!("{again:?}"), format!("{ends:?}"));
        prop_assert_eq!(same, totals);
        for flow in &followed {
            let found = account(flow, trace.of(flow.flow));
            let found = found.unwrap_or_else(|| panic!("{flow:?}: {:#?}", trace.of(flow.flow)));
            prop_assert_eq!(found.rest, Span::ZERO, "{:?} {:#?}", found, trace.of(flow.flow));
            let sum: Span = found.shares.iter().map(|share| share.span).sum();
            prop_assert_eq!(sum, flow.end - flow.start);
        }
        for hop in &trace.hops {
            prop_assert!(hop.own + hop.others <= hop.wait(), "{:?}", hop);
        }
        for cut in [Cut::balanced(&plan.topology, 3), Cut::each(&plan.topology)] {
            let (_, _, parts) = once(Some(&followed), Some(cut));
            prop_assert_eq!(&parts, &trace);
        }
    }
}
