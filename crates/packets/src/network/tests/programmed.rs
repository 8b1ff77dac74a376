//! Switches that run a program, against plain ones and closed forms.

use kernel::{Bytes, Span, Time};
use rack::topology::{PortId, Vertex};
use rack::{Component, Fabric, Fault, Flow, NodeId};

use super::sender::{LineRate, Recovery};
use super::{Ends, FRAMING, REPEAT, endless, flow, plan, raw, run, switch};
use crate::config::{Config, Plan, Queues};
use crate::network::Network;
use crate::packet::Packet;
use crate::program::{Handle, Hop, Orders, Program, Verdict};

/// Holds each packet for a stated time, in order; refuses some.
#[derive(Clone, Debug, Default)]
struct Delay {
    time: Span,
    /// Refuses every so many-th packet; 0: none.
    refuses: u64,
    /// Takes every so many-th packet for itself; 0: none.
    absorbs: u64,
    held: std::collections::VecDeque<(Handle, PortId, Time)>,
    seen: u64,
    /// What left the switch: when and by which port.
    left: Vec<(Time, PortId, Packet)>,
    /// What was to leave and never will: by which port.
    dropped: Vec<(PortId, Packet)>,
    deaths: Vec<Vertex>,
}

impl Program for Delay {
    const WATCHES_LINES: bool = true;

    fn arrives(&mut self, hop: &Hop, _: &mut Packet, orders: &mut Orders) -> Verdict {
        self.seen += 1;
        if self.refuses > 0 && self.seen.is_multiple_of(self.refuses) {
            return Verdict::Drop;
        }
        if self.absorbs > 0 && self.seen.is_multiple_of(self.absorbs) {
            return Verdict::Absorb;
        }
        if self.time == Span::ZERO {
            return Verdict::Forward;
        }
        let due = orders.now() + self.time;
        self.held.push_back((hop.handle, hop.to, due));
        orders.wake_at(hop.switch, due);
        Verdict::Keep
    }

    fn leaves(&mut self, port: PortId, packet: &Packet, orders: &mut Orders) {
        self.left.push((orders.now(), port, *packet));
    }

    fn dropped(&mut self, port: PortId, packet: &Packet, _: &mut Orders) {
        self.dropped.push((port, *packet));
    }

    fn wake(&mut self, _: Vertex, orders: &mut Orders) {
        // Alarms of packets that died with the switch come as well.
        if self.held.front().is_some_and(|&(_, _, due)| due == orders.now()) {
            let (packet, port, _) = self.held.pop_front().unwrap();
            orders.emit(packet, port);
        }
    }

    fn died(&mut self, switch: Vertex, orders: &mut Orders) {
        self.deaths.push(switch);
        self.held.drain(..).for_each(|(packet, ..)| orders.discard(packet));
    }
}

fn programmed(plan: Plan, recovery: Recovery, program: Delay) -> Network<LineRate, Delay> {
    let transport = LineRate::new(plan.topology.hosts(), FRAMING, recovery);
    Network::with_program(plan, transport, program, 1).unwrap()
}

#[track_caller]
fn run_programmed(network: &mut Network<LineRate, Delay>, flows: &[Flow]) -> Ends {
    let mut ends = Ends::default();
    flows.iter().for_each(|flow| network.offer(flow));
    network.advance(Time::from_ps(100_000_000_000), &mut ends);
    network.check().unwrap();
    ends
}

fn lossless() -> Config {
    Config { queues: endless(), ..switch(4) }
}

/// An incast of three, and a flow the other way.
fn flows() -> Vec<Flow> {
    let mut flows: Vec<_> = (1..4).map(|src| flow(src.into(), src, 0, 20_000, 0)).collect();
    flows.push(flow(4, 0, 2, 9_999, 5_000));
    flows
}

#[test]
fn a_program_that_forwards_changes_nothing() {
    let mut plain = raw(plan(&lossless(), &[]), Recovery::None, 1);
    let mut other = programmed(plan(&lossless(), &[]), Recovery::None, Delay::default());
    let (expected, found) = (run(&mut plain, &flows()), run_programmed(&mut other, &flows()));
    assert_eq!(expected.completed, found.completed);
    assert_eq!(plain.totals(), other.totals());
}

#[test]
fn a_kept_packet_is_late_by_the_time_that_it_was_kept() {
    let hold = Delay { time: Span::from_ns(333), ..Delay::default() };
    let mut plain = raw(plan(&lossless(), &[]), Recovery::None, 1);
    let mut other = programmed(plan(&lossless(), &[]), Recovery::None, hold);
    let (expected, found) = (run(&mut plain, &flows()), run_programmed(&mut other, &flows()));
    let ends = |ends: &Ends| {
        let mut ends: Vec<_> =
            ends.completed.iter().map(|(flow, end, ..)| (flow.id, *end)).collect();
        ends.sort();
        ends
    };
    let later = ends(&expected).into_iter().map(|(id, end)| (id, end + Span::from_ns(333)));
    assert_eq!(later.collect::<Vec<_>>(), ends(&found));
    assert!(other.program().held.is_empty());
}

#[test]
fn what_leaves_is_told_in_order_with_its_instant() {
    let mut network = programmed(plan(&lossless(), &[]), Recovery::None, Delay::default());
    run_programmed(&mut network, &flows());
    let left = &network.program().left;
    // 14 packets of each sender of the incast, 7 the other way.
    assert_eq!(left.len(), 3 * 14 + 7);
    assert!(left.is_sorted_by_key(|&(at, ..)| at));
    let from = |src| move |left: &&(Time, PortId, Packet)| left.2.src == NodeId::new(src);
    let incast: Vec<_> = left.iter().filter(|left| !from(0)(left)).collect();
    for pair in incast.windows(2) {
        assert_eq!(pair[0].1, pair[1].1, "one port");
        // 800 ps a byte at 10 Gbps.
        let time = Span::from_ps(800) * u64::from(pair[0].2.wire);
        assert!(pair[1].0 - pair[0].0 >= time, "{pair:?}");
    }
    for src in 0..4 {
        assert!(left.iter().filter(from(src)).is_sorted_by_key(|left| left.2.seq));
    }
}

/// Whatever has come to a switch leaves it, or is told as dropped: for want of room, and at a link that is
/// dead for a while.
#[test]
fn what_comes_leaves_or_is_dropped() {
    let queues = Queues { port_buffer: Bytes::new(12_000), ..Queues::default() };
    let cut = Fault {
        component: Component::NodeLink(NodeId::new(0)),
        at: Time::from_ps(9_000_000),
        until: Some(Time::from_ps(20_000_000)),
    };
    for (faults, why) in [(vec![], "dropped_full"), (vec![cut], "dropped_dead_link")] {
        let config = Config { queues: queues.clone(), ..switch(4) };
        let recovery = REPEAT;
        let mut network = programmed(plan(&config, &faults), recovery, Delay::default());
        let ends = run_programmed(&mut network, &flows());
        assert_eq!(ends.completed.len(), 4);
        let Delay { seen, left, dropped, .. } = network.program();
        assert!(network.details()[why].as_u64().unwrap() > 0, "{why}");
        assert!(dropped.iter().all(|(_, packet)| packet.dst == NodeId::new(0)));
        // All to one host: by one port.
        assert!(!dropped.is_empty() && dropped.iter().all(|&(port, _)| port == dropped[0].0));
        assert_eq!(*seen, (left.len() + dropped.len()) as u64, "{why}");
    }
}

#[test]
fn what_is_refused_is_dropped_and_sent_again() {
    let refuse = Delay { refuses: 10, ..Delay::default() };
    let recovery = REPEAT;
    let mut network = programmed(plan(&lossless(), &[]), recovery, refuse);
    let ends = run_programmed(&mut network, &flows());
    assert_eq!(ends.completed.len(), 4);
    let totals = network.totals();
    assert_eq!(totals.drops, network.program().seen / 10);
    assert_eq!(network.details()["dropped_by_program"], totals.drops);
    assert_eq!(totals.delivered, Bytes::new(69_999));
}

#[test]
fn what_is_absorbed_is_gone_but_not_dropped() {
    let absorb = Delay { absorbs: 10, ..Delay::default() };
    let recovery = REPEAT;
    let mut network = programmed(plan(&lossless(), &[]), recovery, absorb);
    let ends = run_programmed(&mut network, &flows());
    assert_eq!(ends.completed.len(), 4);
    let totals = network.totals();
    assert_eq!((totals.drops, totals.delivered), (0, Bytes::new(69_999)));
    assert!(totals.retransmissions > 0);
}

#[test]
fn a_switch_that_dies_takes_along_what_its_program_keeps() {
    let dies = Fault {
        component: Component::Switch(0),
        at: Time::from_ps(3_000_000),
        until: Some(Time::from_ps(50_000_000)),
    };
    let hold = Delay { time: Span::from_us(2), ..Delay::default() };
    let recovery = REPEAT;
    let mut network = programmed(plan(&lossless(), &[dies]), recovery, hold);
    let ends = run_programmed(&mut network, &flows());
    assert_eq!(network.program().deaths, [Vertex::new(4)]);
    assert!(network.details()["dropped_by_program"].as_u64().unwrap() > 0);
    assert_eq!(ends.completed.len(), 4);
}
