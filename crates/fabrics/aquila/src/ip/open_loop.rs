//! IP packets without hosts: traffic that does not listen, to measure the handshake and the fabric with.
//!
//! Every TiN that sends does so at random instants; what becomes of each packet is written down. Whole packets only:
//! there is no transport above, and what is lost stays lost.

use std::collections::VecDeque;

use kernel::{Bytes, Rate, Span, Stream, Time};

use super::{Arrival, Counts, Engine, Loss, NEVER, Outcome};
use crate::address::{Address, Endpoint};
use crate::config::Ip;
use crate::raw::Pattern;
use crate::switch::cell::Cell;
use crate::switch::settings::TICK;
use crate::switch::{Endpoints, Room, Wishes};
use crate::topology::Shape;

/// A packet, and what became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// GNet address of its source.
    pub from: u16,
    /// GNet address of its destination.
    pub to: u16,
    /// Unit: bytes.
    pub length: u16,
    /// 0 to 7.
    pub class_of_service: u8,
    /// Whether it is found to be bad when its last byte has come.
    pub is_bad: bool,
    /// When its header is at its TiN.
    pub at: Time,
    /// When its last byte is there.
    pub whole_at: Time,
    /// What became of it, and when.
    pub end: Option<(Time, End)>,
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Its first bit left to where it goes.
    Left {
        /// Whether it was marked.
        is_marked: bool,
    },
    /// It was lost.
    Lost(Loss),
}

/// Traffic that a TiN offers by itself.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Traffic {
    /// Where to.
    pub pattern: Pattern,
    /// Size of a packet. Unit: bytes.
    pub length: u16,
    /// Class of service, 0 to 7.
    pub class_of_service: u8,
    /// Rate offered by a TiN: bytes of packets.
    pub rate: Rate,
    /// No packet comes at or after this instant.
    pub until: Time,
}

#[derive(Clone, Debug, Default)]
struct Source {
    /// Packets to come, by their instants.
    due: VecDeque<u32>,
    /// When its line is free again. Unit: ps.
    line_free: u64,
    next: u64,
}

/// The endpoints.
#[derive(Clone, Debug)]
pub struct OpenLoop {
    shape: Shape,
    engine: Engine,
    port_rate: Rate,
    traffic: Option<Traffic>,
    /// Whether packets are traced.
    is_traced: bool,
    sources: Vec<Source>,
    streams: Vec<Stream>,
    packets: Vec<Packet>,
}

impl OpenLoop {
    /// Nothing to send at any TiN of a Clique. `hops` is what switches let cells pass.
    #[must_use]
    pub fn new(shape: &Shape, ip: &Ip, hops: u8, seed: u64) -> Self {
        let all: Vec<u16> = (0..shape.tins()).collect();
        Self {
            shape: *shape,
            engine: Engine::new(ip, shape.tins(), &all, hops),
            port_rate: ip.port_rate,
            traffic: None,
            is_traced: false,
            sources: vec![Source::default(); all.len()],
            streams: all
                .iter()
                .map(|&tin| Stream::new(seed, "aquila/open-loop", tin.into()))
                .collect(),
            packets: Vec::new(),
        }
    }

    /// Lets all TiNs offer traffic from now on; to be followed by [`OpenLoop::begin`] at each.
    pub fn set_traffic(&mut self, traffic: Traffic) {
        self.traffic = Some(traffic);
    }

    /// Lets all packets be traced from now on, or none (M901).
    pub fn trace(&mut self, is_traced: bool) {
        self.is_traced = is_traced;
    }

    /// Begins at a TiN, at time zero.
    pub fn begin(&mut self, tin: u16, wishes: &mut Wishes) {
        self.schedule(tin, 0, wishes);
    }

    /// Lets a packet come to its TiN at `at`, or when those before it have come by. Packets of a TiN in order of time.
    pub fn send(&mut self, packet: Packet, wishes: &mut Wishes) {
        let tin = usize::from(self.tin(packet.from));
        let source = &mut self.sources[tin];
        let time = self.port_rate.send_time(Bytes::new(packet.length.into())).as_ps();
        let begun = packet.at.as_ps().max(source.line_free);
        source.line_free = begun + time;
        let whole_at = Time::from_ps(source.line_free);
        source.due.push_back(self.packets.len() as u32);
        self.packets.push(Packet { at: Time::from_ps(begun), whole_at, ..packet });
        wishes.wake_at(Time::from_ps(begun));
    }

    /// All packets so far, in the order in which they were offered.
    #[must_use]
    pub fn packets(&self) -> &[Packet] {
        &self.packets
    }

    /// What the engine counts.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.engine.counts()
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Address of an endpoint of a TiN.
    #[must_use]
    pub fn address(&self, tin: u16, endpoint: Endpoint) -> u16 {
        let (pod, place) = self.shape.split(tin);
        Address::new(pod, place, endpoint).bits()
    }

    fn tin(&self, address: u16) -> u16 {
        let address = Address::from_bits(address);
        self.shape.tin(address.pod(), address.tin())
    }

    fn schedule(&mut self, tin: u16, now: u64, wishes: &mut Wishes) {
        let Some(traffic) = self.traffic else { return };
        let gap = traffic.rate.send_time(Bytes::new(traffic.length.into()));
        let stream = &mut self.streams[usize::from(tin)];
        let next = now + (stream.exponential(gap.as_ps() as f64) as u64).max(1);
        let is_over = next >= traffic.until.as_ps();
        self.sources[usize::from(tin)].next = if is_over { NEVER } else { next };
        if !is_over {
            wishes.wake_at(Time::from_ps(next));
        }
    }

    fn draw(&mut self, traffic: &Traffic, tin: u16, at: u64) -> Packet {
        let Shape { tins_per_pod, pods, .. } = self.shape;
        let (stream, tins) = (&mut self.streams[usize::from(tin)], tins_per_pod * pods);
        let to = match traffic.pattern {
            Pattern::Uniform => (tin + 1 + stream.below(u64::from(tins) - 1) as u16) % tins,
            Pattern::NextPod => {
                let pod = (tin / tins_per_pod + 1) % pods;
                pod * tins_per_pod + stream.below(tins_per_pod.into()) as u16
            }
            Pattern::NextTin => {
                let (pod, place) = self.shape.split(tin);
                pod * tins_per_pod + (place + 1) % tins_per_pod
            }
        };
        let at = Time::from_ps(at);
        Packet {
            from: self.address(tin, Endpoint::HOST_0),
            to: self.address(to, Endpoint::HOST_0),
            length: traffic.length,
            class_of_service: traffic.class_of_service,
            is_bad: false,
            at,
            whole_at: at,
            end: None,
        }
    }

    /// Writes down what became of packets, and passes contents on.
    fn settle(&mut self, now: Time) {
        while let Some((_, outcome)) = self.engine.next_outcome() {
            let (packet, end) = match outcome {
                Outcome::Cleared { packet, to, egress } => {
                    self.engine.attach(self.tin(to), egress, packet);
                    continue;
                }
                Outcome::Leaves { packet, at, is_marked, .. } => {
                    (packet, (at, End::Left { is_marked }))
                }
                Outcome::Lost { packet, why } => (packet, (now, End::Lost(why))),
            };
            let packet = &mut self.packets[packet as usize];
            assert!(packet.end.is_none(), "{packet:?} ends again: {end:?}");
            packet.end = Some(end);
        }
    }
}

impl Endpoints for OpenLoop {
    fn deliver(&mut self, tin: u16, _: u8, cell: &Cell, at: Time, wishes: &mut Wishes) {
        debug_assert_eq!(self.tin(cell.to), tin, "a cell at the wrong TiN");
        let is_known = self.engine.deliver(tin, cell, at, wishes);
        debug_assert!(is_known, "{cell:?}");
        self.settle(wishes.now());
    }

    fn inject(
        &mut self,
        tin: u16,
        terminal: u8,
        room: Room<'_>,
        wishes: &mut Wishes,
    ) -> Option<Cell> {
        self.engine.inject(tin, terminal, room, wishes)
    }

    fn wake(&mut self, tin: u16, wishes: &mut Wishes) {
        let end = wishes.now().as_ps() + TICK.as_ps();
        if let Some(traffic) = self.traffic {
            while self.sources[usize::from(tin)].next < end {
                let at = self.sources[usize::from(tin)].next;
                let packet = self.draw(&traffic, tin, at);
                self.send(packet, wishes);
                self.schedule(tin, at, wishes);
            }
        }
        while let Some(&number) = self.sources[usize::from(tin)].due.front() {
            let packet = self.packets[number as usize];
            if packet.at.as_ps() >= end {
                break;
            }
            self.sources[usize::from(tin)].due.pop_front();
            let arrival = Arrival {
                packet: number,
                length: packet.length,
                class_of_service: packet.class_of_service,
                from: packet.from,
                to: packet.to,
                flow_hash: 0,
                may_be_marked: true,
                is_encapsulated: false,
                is_traced: self.is_traced,
                is_bad: packet.is_bad,
                whole_at: packet.whole_at,
            };
            self.engine.arrive(tin, &arrival, wishes);
        }
        self.engine.wake(tin, wishes);
        self.settle(wishes.now());
    }
}

/// How long packets took that came within `from..until` and left: from their headers' arrival until their first bits
/// left, shortest first.
#[must_use]
pub fn latencies(packets: &[Packet], from: Time, until: Time) -> Vec<Span> {
    let of = |packet: &Packet| match packet.end {
        Some((at, End::Left { .. })) if (from..until).contains(&packet.at) => Some(at - packet.at),
        _ => None,
    };
    let mut found: Vec<_> = packets.iter().filter_map(of).collect();
    found.sort_unstable();
    found
}
