//! IP packets without hosts: traffic that does not listen, to measure the handshake and the fabric with.
//!
//! Every TiN that sends does so at random instants, or when it is told to; what becomes of each packet is written
//! down. Whole packets only: there is no transport above, and what is lost stays lost. Packets may be answered, as a
//! transport acknowledges them, which gives the round trip of §5.1.

use std::collections::VecDeque;

use kernel::{Bytes, Rate, Span, Stream, Time};

use super::{Arrival, Counts, Engine, Loss, NEVER, Outcome};
use crate::address::{Address, Endpoint};
use crate::config::Ip;
use crate::link::classes::CellKind;
use crate::raw::Pattern;
use crate::switch::cell::{BLOCK, Cell, Watch};
use crate::switch::settings::TICK;
use crate::switch::{Endpoints, Room, Switches, Wishes};
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
    /// The packet that it answers, by its number, if it is an answer.
    pub answers: Option<u32>,
    /// What became of it, and when.
    pub end: Option<(Time, End)>,
}

impl Packet {
    /// A sound packet that is to come at `at`.
    #[must_use]
    pub const fn new((from, to): (u16, u16), length: u16, class_of_service: u8, at: Time) -> Self {
        Self {
            from,
            to,
            length,
            class_of_service,
            is_bad: false,
            at,
            whole_at: at,
            answers: None,
            end: None,
        }
    }

    /// From its header's arrival until its first bit left; `None` if it has not.
    #[must_use]
    pub fn latency(&self) -> Option<Span> {
        match self.end {
            Some((at, End::Left { .. })) => Some(at - self.at),
            _ => None,
        }
    }
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
    /// Packets to come, and answers to give, by their instants.
    due: [VecDeque<u32>; 2],
    /// When its line is free again. Unit: ps.
    line_free: u64,
    next: u64,
}

/// Bytes of cells of a kind: in the fabric now, at the most, and in all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UnderWay {
    /// Injected and not delivered.
    pub now: u64,
    /// The most that ever were.
    pub most: u64,
    /// All that were injected.
    pub all: u64,
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
    /// Size of answers; none: nothing is answered. Unit: bytes.
    answer: Option<u16>,
    sources: Vec<Source>,
    streams: Vec<Stream>,
    packets: Vec<Packet>,
    under_way: [UnderWay; CellKind::ALL.len()],
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
            answer: None,
            sources: vec![Source { next: NEVER, ..Source::default() }; all.len()],
            streams: all
                .iter()
                .map(|&tin| Stream::new(seed, "aquila/open-loop", tin.into()))
                .collect(),
            packets: Vec::new(),
            under_way: Default::default(),
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

    /// Lets every packet that arrives from now on be answered by one of so many bytes, as soon as its last bit is out.
    pub fn answer_with(&mut self, bytes: u16) {
        self.answer = Some(bytes);
    }

    /// Begins at a TiN, at time zero.
    pub fn begin(&mut self, tin: u16, wishes: &mut Wishes) {
        self.schedule(tin, 0, wishes);
    }

    /// Lets a packet come to its TiN at `at`, or when those before it have come by. Packets of a TiN in order of time.
    pub fn send(&mut self, packet: Packet, wishes: &mut Wishes) {
        let tin = usize::from(self.tin(packet.from));
        let queue = usize::from(packet.answers.is_some());
        self.sources[tin].due[queue].push_back(self.packets.len() as u32);
        self.packets.push(packet);
        wishes.wake_at(packet.at);
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

    /// What cells of a kind are under way. Cells that are lost stay so.
    #[must_use]
    pub fn under_way(&self, kind: CellKind) -> UnderWay {
        self.under_way[kind as usize]
    }

    /// Address of an endpoint of a TiN.
    #[must_use]
    pub fn address(&self, tin: u16, endpoint: Endpoint) -> u16 {
        let (pod, place) = self.shape.split(tin);
        Address::new(pod, place, endpoint).bits()
    }

    /// The TiN of an address.
    #[must_use]
    pub fn tin(&self, address: u16) -> u16 {
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
        let ends = (self.address(tin, Endpoint::HOST_0), self.address(to, Endpoint::HOST_0));
        Packet::new(ends, traffic.length, traffic.class_of_service, Time::from_ps(at))
    }

    /// Lets packets come by the line of a TiN whose turn it is before `end`.
    fn take_in(&mut self, tin: u16, end: u64, wishes: &mut Wishes) {
        loop {
            let source = &mut self.sources[usize::from(tin)];
            let first = |queue: &VecDeque<u32>| {
                queue.front().map(|&number| self.packets[number as usize].at)
            };
            let due = source.due.iter().enumerate();
            let Some((at, queue)) =
                due.filter_map(|(which, queue)| Some((first(queue)?, which))).min()
            else {
                return;
            };
            let begun = at.as_ps().max(source.line_free);
            if begun >= end {
                wishes.wake_at(Time::from_ps(begun));
                return;
            }
            let Some(number) = source.due[queue].pop_front() else { return };
            let packet = &mut self.packets[number as usize];
            let time = self.port_rate.send_time(Bytes::new(packet.length.into()));
            packet.at = Time::from_ps(begun);
            packet.whole_at = packet.at + time;
            source.line_free = packet.whole_at.as_ps();
            let arrival = Arrival {
                packet: number,
                length: packet.length,
                class_of_service: packet.class_of_service,
                from: packet.from,
                to: packet.to,
                flow_hash: 0,
                may_be_marked: true,
                is_encapsulated: false,
                watch: Watch::new(self.is_traced, false),
                is_bad: packet.is_bad,
                whole_at: packet.whole_at,
            };
            self.engine.arrive(tin, &arrival, wishes);
        }
    }

    /// Writes down what became of packets, passes contents on, and answers.
    fn settle(&mut self, wishes: &mut Wishes) {
        while let Some((_, outcome)) = self.engine.next_outcome() {
            let (number, end) = match outcome {
                Outcome::Cleared { packet, to, egress } => {
                    self.engine.attach(self.tin(to), egress, packet);
                    continue;
                }
                Outcome::Leaves { packet, at, is_marked, .. } => {
                    (packet, (at, End::Left { is_marked }))
                }
                Outcome::Lost { packet, why } => (packet, (wishes.now(), End::Lost(why))),
            };
            let packet = &mut self.packets[number as usize];
            assert!(packet.end.is_none(), "{packet:?} ends again: {end:?}");
            packet.end = Some(end);
            let packet = *packet;
            if let (Some(bytes), (at, End::Left { .. }), None) = (self.answer, end, packet.answers)
            {
                let out = self.port_rate.send_time(Bytes::new(packet.length.into()));
                let ends = (packet.to, packet.from);
                let answer = Packet::new(ends, bytes, packet.class_of_service, at + out);
                self.send(Packet { answers: Some(number), ..answer }, wishes);
            }
        }
    }
}

impl Endpoints for OpenLoop {
    fn deliver(&mut self, tin: u16, terminal: u8, cell: &Cell, at: Time, wishes: &mut Wishes) {
        debug_assert_eq!(self.tin(cell.to), tin, "a cell at the wrong TiN");
        self.under_way[usize::from(cell.kind)].now -= u64::from(cell.blocks) * u64::from(BLOCK);
        self.engine.deliver(tin, terminal, cell, at, wishes);
        self.settle(wishes);
    }

    fn inject(
        &mut self,
        tin: u16,
        terminal: u8,
        room: Room<'_>,
        wishes: &mut Wishes,
    ) -> Option<Cell> {
        let cell = self.engine.inject(tin, terminal, room, wishes)?;
        let under_way = &mut self.under_way[usize::from(cell.kind)];
        let bytes = u64::from(cell.blocks) * u64::from(BLOCK);
        (under_way.now, under_way.all) = (under_way.now + bytes, under_way.all + bytes);
        under_way.most = under_way.most.max(under_way.now);
        Some(cell)
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
        self.take_in(tin, end, wishes);
        self.engine.wake(tin, wishes);
        self.settle(wishes);
    }

    fn run(switches: &mut Switches<Self>, end: Time) {
        switches.advance(end);
    }
}

/// How long packets took that came within `from..until` and left: from their headers' arrival until their first bits
/// left, shortest first. Answers do not count.
#[must_use]
pub fn latencies(packets: &[Packet], from: Time, until: Time) -> Vec<Span> {
    let is_in = |packet: &&Packet| packet.answers.is_none() && (from..until).contains(&packet.at);
    let mut found: Vec<_> = packets.iter().filter(is_in).filter_map(Packet::latency).collect();
    found.sort_unstable();
    found
}

/// Round trips of packets that came within `from..until` and whose answers left: the way there and the way of the
/// answer, without the time between (§5.1: fabric RTT), shortest first.
#[must_use]
pub fn round_trips(packets: &[Packet], from: Time, until: Time) -> Vec<Span> {
    let of = |answer: &Packet| {
        let packet = packets[answer.answers? as usize];
        let is_in = (from..until).contains(&packet.at);
        is_in.then_some(packet.latency()? + answer.latency()?)
    };
    let mut found: Vec<_> = packets.iter().filter_map(of).collect();
    found.sort_unstable();
    found
}
