//! What each priority gets of a saturated line.

use super::*;
use crate::config::{Deficit, Scheduling, Trimming};
use crate::outbox::Outbox;
use crate::packet::{FlowKey, Kind, Packet};
use crate::transport::{Line, Opening, Timer, Timers, Transport};

/// Sends endlessly at line rate from each host with the priority of its number; counts arrivals.
#[derive(Clone, Debug, Default)]
struct Blast {
    flows: Vec<Option<Opening>>,
    sent: u64,
    arrived: [u64; 8],
    /// Packets after which a host stops.
    limit: u64,
    counts: Vec<u64>,
    wire: u16,
    kind: Kind,
}

impl Transport for Blast {
    fn name(&self) -> &'static str {
        "blast"
    }

    fn timers(&self) -> Timers {
        Timers::default()
    }

    fn framing(&self) -> Framing {
        FRAMING
    }

    fn start(&mut self, opening: &Opening, out: &mut Outbox) {
        let host = opening.flow.src.index();
        self.flows.resize(self.flows.len().max(host + 1), None);
        self.counts.resize(self.flows.len(), 0);
        self.flows[host] = Some(*opening);
        out.wake(opening.flow.src);
    }

    fn receive(&mut self, _: NodeId, packet: &Packet, _: &mut Outbox) {
        self.arrived[usize::from(packet.priority)] += u64::from(packet.wire);
    }

    fn timer(&mut self, timer: Timer, _: &mut Outbox) {
        unreachable!("{timer:?}");
    }

    fn pull(&mut self, host: NodeId, _: Line<'_>, _: &mut Outbox) -> Option<Packet> {
        let Opening { key, flow, .. } = self.flows.get(host.index()).copied().flatten()?;
        if self.counts[host.index()] >= self.limit {
            return None;
        }
        self.counts[host.index()] += 1;
        self.sent += 1;
        Some(Packet {
            flow: key,
            src: flow.src,
            dst: flow.dst,
            wire: self.wire,
            priority: flow.class.get(),
            kind: self.kind,
            ..Packet::default()
        })
    }

    fn abandon(&mut self, _: FlowKey, _: &mut Outbox) {}
}

/// Bytes that arrive in 10 ms from hosts `0..` with these priorities, as shares of the line.
fn shares(queues: Queues, priorities: &[u8]) -> Vec<f64> {
    let hosts = priorities.len() as u32 + 1;
    let config = Config { queues, ..switch(hosts) };
    let blast = Blast { limit: u64::MAX, wire: 1500, ..Blast::default() };
    let mut network = Network::new(plan(&config, &[]), blast, 1).unwrap();
    for (src, &priority) in (0..).zip(priorities) {
        let class = Class::new(priority);
        network.offer(&Flow { class, ..flow(u64::from(src), src, hosts - 1, 1, 0) });
    }
    let end = Time::from_ps(10_000_000_000);
    network.advance(end, &mut ());
    network.check().unwrap();
    let line = Rate::from_gbps(10).bytes_in(end - Time::ZERO).get() as f64;
    network.transport().arrived.iter().map(|&bytes| bytes as f64 / line).collect()
}

#[track_caller]
fn check_shares(queues: Queues, priorities: &[u8], expected: [f64; 4]) {
    let found = shares(queues, priorities);
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 0.002, "{found} for {expected}");
    }
}

fn deficit(weights: &[u32]) -> Queues {
    let scheduling = Scheduling::Deficit(Deficit { weights: weights.to_vec() });
    Queues { scheduling, port_buffer: Bytes::new(1_500_000), ..Queues::default() }
}

#[test]
fn strict_priority_leaves_the_others_nothing() {
    check_shares(endless(), &[1, 0, 2], [1.0, 0.0, 0.0, 0.0]);
    check_shares(endless(), &[3, 2], [0.0, 0.0, 1.0, 0.0]);
}

#[test]
fn weights_share_the_line_exactly() {
    // Buffers that hold all: what a priority lacks is never for want of room.
    let held = |weights: &[u32]| Queues { port_buffer: endless().port_buffer, ..deficit(weights) };
    check_shares(held(&[0, 1, 1, 1]), &[1, 2, 3], [0.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0]);
    check_shares(held(&[0, 4, 2, 1]), &[1, 2, 3], [0.0, 4.0 / 7.0, 2.0 / 7.0, 1.0 / 7.0]);
    check_shares(held(&[8, 1]), &[0, 1], [8.0 / 9.0, 1.0 / 9.0, 0.0, 0.0]);
    // An absent priority's share goes to the others by weight.
    check_shares(held(&[0, 4, 2, 1]), &[2, 3], [0.0, 0.0, 2.0 / 3.0, 1.0 / 3.0]);
}

#[test]
fn strict_priority_before_weights_takes_all_it_can() {
    let held = Queues { port_buffer: endless().port_buffer, ..deficit(&[0, 3, 1]) };
    check_shares(held.clone(), &[0, 1, 2], [1.0, 0.0, 0.0, 0.0]);
    check_shares(held, &[1, 2], [0.0, 0.75, 0.25, 0.0]);
}

#[test]
fn headers_get_ten_packets_for_one_of_data() {
    // Headers of 64 bytes and data of 1,500: 640 bytes for each 1,500 while both wait.
    let trimming = Trimming { header_buffer: Bytes::new(10_000_000), ..Trimming::default() };
    let queues = Queues {
        trimming: Some(trimming),
        port_buffer: Bytes::new(15_000_000),
        ..Queues::default()
    };
    let config = Config { queues, ..switch(3) };
    let blast = Blast { limit: 2_000, wire: 1500, ..Blast::default() };
    let mut network = Network::new(plan(&config, &[]), blast, 1).unwrap();
    // Both sources send full packets of 1,500 bytes: ten of priority 0 for one of priority 1.
    network.offer(&Flow { class: Class::new(0), ..flow(0, 0, 2, 1, 0) });
    network.offer(&Flow { class: Class::new(1), ..flow(1, 1, 2, 1, 0) });
    network.advance(Time::from_ps(1_322 * 1_200_000), &mut ());
    let [headers, data, ..] = network.transport().arrived;
    let ratio = headers as f64 / data as f64;
    assert!((9.9..10.1).contains(&ratio), "{headers} and {data}: {ratio}");
}
