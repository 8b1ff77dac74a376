//! The record of packets: against closed forms, and against the run without it.

use ::rack::trace::{Account, Followed, Part, Trace, account};
use ::rack::{Fabric, Flow, FlowId};
use kernel::{Span, Time};

use super::super::tests::{carry, flow, rack, random_flows, switches};
use crate::config::{OutputQueuedTable, SwitchTable};
use crate::{ChipConfig, CutThrough};

/// A packet of 288 bytes at 25 Gbps, and a cable.
const PACKET: Span = Span::from_ps(92_160);
const CABLE: Span = Span::from_ns(10);

/// Runs flows, and runs them again recorded: all of them.
#[track_caller]
fn traced(nodes: u32, switch: &SwitchTable, flows: &[Flow]) -> (Vec<Account>, Trace) {
    let mut plain = rack(nodes, switch.clone());
    let ends = carry(&mut plain, flows);
    let follow = |flow: &Flow| {
        let Flow { id, src, dst, start, .. } = *flow;
        Followed { flow: id, src, dst, start, end: ends.0[&id.get()].0 }
    };
    let followed: Vec<_> = flows.iter().map(follow).collect();
    let mut again = rack(nodes, switch.clone());
    again.set_trace(&followed);
    assert_eq!(carry(&mut again, flows).0, ends.0);
    assert_eq!(again.totals(), plain.totals());
    let trace = again.take_trace();
    let accounts = followed.iter().map(|flow| account(flow, trace.of(flow.flow)).unwrap());
    (accounts.collect(), trace)
}

/// The parts of an account with the ports that they are at.
fn parts(account: &Account, trace: &Trace) -> Vec<(Part, String, Span)> {
    assert_eq!(account.rest, Span::ZERO);
    let place = |place: Option<u32>| place.map(|place| trace.places[place as usize].to_string());
    let shares = account.shares.iter();
    shares.map(|share| (share.part, place(share.place).unwrap_or_default(), share.span)).collect()
}

fn ideal() -> SwitchTable {
    SwitchTable::OutputQueued(OutputQueuedTable {})
}

#[test]
fn an_idle_packet_through_an_ideal_switch_takes_a_line_and_two_cables() {
    let (accounts, trace) = traced(16, &ideal(), &[flow(0, 3, 5, 288, Time::ZERO)]);
    let (up, down) = ("node 3 to switch 0".to_string(), "switch 0 to node 5".to_string());
    let expected = [
        (Part::Propagation, up, CABLE),
        (Part::Transmission, down.clone(), PACKET),
        (Part::Propagation, down, CABLE),
    ];
    assert_eq!(parts(&accounts[0], &trace), expected);
    let [first, second] = &trace.hops[..] else { panic!("{:?}", trace.hops) };
    assert_eq!([first.sent - first.started, second.sent - second.started], [PACKET; 2]);
}

/// §4.E: 15 + 15 ns and 15 cycles of 454 MHz, if the first bit is enough; no more in a chip that is idle but
/// a wait for the cycle and for the colour, as in the test of completion times.
#[test]
fn an_idle_packet_is_in_the_chip_for_the_published_fall_through() {
    let chip = ChipConfig { cut_through: CutThrough::FirstBit, ..ChipConfig::default() };
    let (accounts, _) = traced(32, &SwitchTable::Scoc(chip), &[flow(0, 3, 17, 288, Time::ZERO)]);
    let account = &accounts[0];
    let inside = account.total(Part::Inside).as_seconds();
    assert!((inside - 63.04e-9).abs() < 0.01e-9, "{inside}");
    assert_eq!(account.total(Part::Propagation), CABLE * 2);
    assert_eq!(account.total(Part::Transmission), PACKET);
    let waits = account.total(Part::QueueHeld) + account.total(Part::Start);
    assert!(waits <= Span::from_ps(6 * 2_203), "{waits}");
    let known = account.total(Part::Inside) + CABLE * 2 + PACKET + waits;
    assert_eq!(known, account.fct);
}

#[test]
fn of_two_packets_to_one_node_the_second_waits_for_the_first() {
    let all = [flow(0, 1, 5, 288, Time::ZERO), flow(1, 2, 5, 288, Time::ZERO)];
    let (accounts, trace) = traced(16, &ideal(), &all);
    let last = accounts.iter().max_by_key(|account| account.fct).unwrap();
    assert_eq!(last.fct, CABLE * 2 + PACKET * 2);
    assert_eq!(last.total(Part::QueueOthers), PACKET);
    let queue = last.queues.last().unwrap();
    let other = FlowId::new(1 - last.flow.get());
    assert_eq!(trace.places[queue.place as usize].to_string(), "switch 0 to node 5");
    assert_eq!((&queue.beside[..], queue.deepest), (&[(Some(other), 288)][..], 288));
}

/// Two flows of a node send a packet each in turn, on a line without gaps.
#[test]
fn a_source_s_line_is_its_flows() {
    let all = [flow(0, 1, 5, 3 * 288, Time::ZERO), flow(1, 1, 6, 3 * 288, Time::ZERO)];
    let (accounts, trace) = traced(16, &ideal(), &all);
    let first = &trace.of(FlowId::new(1))[0];
    assert_eq!([first.wait(), first.others], [PACKET; 2]);
    assert_eq!(first.beside, [(Some(FlowId::new(0)), 288)]);
    let at_source = [Part::SourceOthers, Part::Sending, Part::Start, Part::Waiting];
    let found = at_source.map(|part| accounts[1].total(part));
    assert_eq!(found, [PACKET * 3, PACKET * 2, Span::ZERO, Span::ZERO]);
    let line = trace.lines.lines.iter().find(|line| line.place.from == "node 1").unwrap();
    assert_eq!(line.spans.iter().map(|span| span.carried).sum::<u64>(), 6 * 288);
}

#[test]
fn slow_whatever_the_switch_a_record_changes_nothing_and_adds_up() {
    for switch in switches() {
        for seed in 0..2 {
            let flows = random_flows(seed, 1_000);
            let (accounts, trace) = traced(32, &switch, &flows);
            for account in &accounts {
                let sum: Span = account.shares.iter().map(|share| share.span).sum();
                assert_eq!(
                    (account.rest, sum),
                    (Span::ZERO, account.fct),
                    "{switch:?} {account:?}"
                );
            }
            for hop in &trace.hops {
                assert!(hop.own + hop.others <= hop.wait(), "{switch:?} {hop:?}");
                assert!(hop.joined <= hop.started && hop.started <= hop.arrived, "{hop:?}");
            }
        }
    }
}
