//! A network for tests that is as unreliable as a test asks for: each packet takes its host's line, then some
//! time, and on the way may be lost, doubled, overtaken, marked, trimmed or returned. No queues, no
//! topology: this tests what a core must survive, not how well it performs.
//!
//! Each host has a transport of its own: all that they know of each other came in packets.

use std::collections::{BTreeMap, VecDeque};

use kernel::{Bytes, Calendar, LinkClock, Rate, Span, Stream, Time};
use packets::{
    Effect, FlowKey, Kind, Line, Marks, Opening, Outbox, Packet, Surroundings, Timer, Transport,
};
use rack::{Class, Flow, FlowId, NodeId};

/// What may happen to a packet: chances, and the extra time that lets others overtake it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    pub(crate) loss: f64,
    pub(crate) twice: f64,
    pub(crate) mark: f64,
    pub(crate) trim: f64,
    pub(crate) back: f64,
    pub(crate) delay: Span,
    pub(crate) jitter: Span,
}

impl Weather {
    /// Nothing happens to anything; a packet takes 2 µs.
    pub(crate) const FAIR: Weather = Weather {
        loss: 0.0,
        twice: 0.0,
        mark: 0.0,
        trim: 0.0,
        back: 0.0,
        delay: Span::from_us(2),
        jitter: Span::ZERO,
    };
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Start(u32),
    Arrive(Packet),
    Free(NodeId),
    Alarm(NodeId),
    Timer(NodeId, Timer, Time),
}

/// What became of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Fate {
    pub(crate) delivered: u64,
    pub(crate) completed: Option<Time>,
    /// When its sender closed.
    pub(crate) closed: Option<Time>,
    /// When its receiver did.
    pub(crate) left: Option<Time>,
}

/// The halves of flows that a host knows: by place the number of the flow, and by number the place.
#[derive(Clone, Debug, Default)]
struct Halves {
    flows: Vec<Option<u32>>,
    /// `None`: it is closed.
    places: BTreeMap<u32, Option<u32>>,
}

impl Halves {
    fn open(&mut self, flow: u32) -> u32 {
        let free = self.flows.iter().position(Option::is_none);
        let place = free.unwrap_or_else(|| {
            self.flows.push(None);
            self.flows.len() - 1
        });
        self.flows[place] = Some(flow);
        self.places.insert(flow, Some(place as u32));
        place as u32
    }

    fn close(&mut self, place: usize) -> u32 {
        let flow = self.flows[place].take().expect("a half is closed once");
        self.places.insert(flow, None);
        flow
    }
}

/// A host with its own endpoints.
struct Host<T> {
    transport: T,
    senders: Halves,
    receivers: Halves,
    timers: BTreeMap<String, Time>,
    line: (LinkClock, Time, bool),
    queues: [VecDeque<Packet>; 8],
}

/// The network.
pub(crate) struct Chaos<T> {
    hosts: Vec<Host<T>>,
    pub(crate) fates: Vec<Fate>,
    /// Every packet that left a host, with the instant of its first bit.
    pub(crate) sent: Vec<(Time, Packet)>,
    pub(crate) resent: u64,
    weather: Weather,
    stream: Stream,
    header: u16,
    flows: Vec<Flow>,
    calendar: Calendar<Event>,
    out: Outbox,
    /// Decides the fate of a packet before the weather does: true loses it.
    pub(crate) loses: Box<dyn FnMut(&Packet) -> bool>,
    paths: u32,
}

/// What a transport on such a network may know: 10 Gbps, 4 µs there and back.
pub(crate) fn surroundings(hosts: u32) -> Surroundings {
    Surroundings {
        hosts,
        line_rate: Rate::from_gbps(10),
        uniform_rate: Rate::from_gbps(10),
        base_rtt: Span::from_us(8),
        hops_max: 1,
        seed: 11,
    }
}

/// A flow for tests; its place in the list given to [`Chaos::run`] becomes its number and key.
pub(crate) fn flow(src: u32, dst: u32, size: u64, start_us: u64) -> Flow {
    Flow {
        id: FlowId::new(0),
        src: NodeId::new(src),
        dst: NodeId::new(dst),
        size: Bytes::new(size),
        start: Time::ZERO + Span::from_us(start_us),
        class: Class::new(0),
    }
}

impl<T: Transport + Clone> Chaos<T> {
    /// A network of hosts that each have a copy of `transport`.
    pub(crate) fn new(transport: T, hosts: u32, weather: Weather, seed: u64) -> Self {
        let host = |_| Host {
            transport: transport.clone(),
            senders: Halves::default(),
            receivers: Halves::default(),
            timers: BTreeMap::new(),
            line: (LinkClock::new(surroundings(hosts).line_rate), Time::ZERO, false),
            queues: Default::default(),
        };
        Self {
            header: transport.framing().header,
            hosts: (0..hosts).map(host).collect(),
            fates: Vec::new(),
            sent: Vec::new(),
            resent: 0,
            weather,
            stream: Stream::new(seed, "chaos", 0),
            flows: Vec::new(),
            calendar: Calendar::new(),
            out: Outbox::default(),
            loses: Box::new(|_| false),
            paths: 4,
        }
    }

    /// The transports of all hosts.
    pub(crate) fn transports(&self) -> impl Iterator<Item = &T> {
        self.hosts.iter().map(|host| &host.transport)
    }

    /// The transport of a host.
    pub(crate) fn at(&self, host: u32) -> &T {
        &self.hosts[host as usize].transport
    }

    /// What is added up over the transports of all hosts.
    pub(crate) fn sum(&self, count: impl Fn(&T) -> u64) -> u64 {
        self.transports().map(count).sum()
    }

    /// Packets that made no sense where they came.
    pub(crate) fn unexpected(&self) -> u64 {
        self.out.unexpected_count()
    }

    /// Runs until nothing is left to do, or `limit`.
    pub(crate) fn run(&mut self, flows: &[Flow], limit: Time) {
        let first = self.flows.len();
        for (place, flow) in flows.iter().enumerate() {
            let number = (first + place) as u64;
            self.flows.push(Flow { id: FlowId::new(number), ..*flow });
            self.fates.push(Fate::default());
            self.calendar.push(flow.start, Event::Start(number as u32));
        }
        while let Some((now, event)) = self.calendar.pop_before(limit) {
            self.out.set_now(now);
            self.step(now, event);
        }
        self.transports().for_each(|transport| transport.check().unwrap());
    }

    /// Runs to the end and checks that every flow came through, and that nobody heard nonsense.
    #[track_caller]
    pub(crate) fn carry(&mut self, flows: &[Flow]) {
        self.run(flows, Time::ZERO + Span::from_us(100_000_000));
        assert!(self.calendar.is_empty(), "still busy after 100 s: {:?}", self.fates);
        for (flow, fate) in self.flows.iter().zip(&self.fates) {
            assert_eq!(fate.delivered, flow.size.get(), "{flow:?}: {fate:?}");
            let Fate { completed, closed, left, .. } = fate;
            assert!([completed, closed, left].iter().all(|at| at.is_some()), "{flow:?}: {fate:?}");
        }
        assert_eq!(self.unexpected(), 0, "packets made no sense");
    }

    fn step(&mut self, now: Time, event: Event) {
        let host = match event {
            Event::Start(number) => {
                let flow = self.flows[number as usize];
                let host = &mut self.hosts[flow.src.index()];
                let key = FlowKey::new(host.senders.open(number));
                let label = FlowKey::label(number, false);
                let opening = Opening { key, label, flow, paths: self.paths };
                host.transport.start(&opening, &mut self.out);
                flow.src
            }
            Event::Arrive(packet) => {
                self.arrive(packet);
                packet.dst
            }
            Event::Free(host) => {
                self.hosts[host.index()].line.2 = false;
                self.serve(host, now);
                host
            }
            Event::Alarm(host) => {
                self.serve(host, now);
                host
            }
            Event::Timer(host, timer, at) => {
                let name = format!("{timer:?}");
                let entry = &mut self.hosts[host.index()];
                if entry.timers.get(&name) == Some(&at) {
                    entry.timers.remove(&name);
                    entry.transport.timer(timer, &mut self.out);
                }
                host
            }
        };
        self.settle(host, now);
    }

    /// A packet at its host: it finds its half, or opens one, or comes too late.
    fn arrive(&mut self, packet: Packet) {
        let host = &mut self.hosts[packet.dst.index()];
        let number = packet.flow.place();
        let is_senders = self.flows[number as usize].src == packet.dst;
        let halves = if is_senders { &mut host.senders } else { &mut host.receivers };
        let known = halves.places.get(&number).copied();
        let place = match known {
            Some(Some(place)) => place,
            None if !is_senders => halves.open(number),
            _ => return host.transport.stray(&packet, &mut self.out),
        };
        let key = if is_senders { FlowKey::new(place) } else { FlowKey::receivers(place) };
        let packet = Packet { flow: key, ..packet };
        if known.is_none() {
            let label = FlowKey::label(number, true);
            host.transport.accept(&packet, label, &mut self.out);
        }
        host.transport.receive(packet.dst, &packet, &mut self.out);
    }

    fn settle(&mut self, host: NodeId, now: Time) {
        loop {
            let effects: Vec<_> = self.out.drain().collect();
            if effects.is_empty() {
                return;
            }
            effects.into_iter().for_each(|effect| self.carry_out(effect, host, now));
        }
    }

    /// The number of the flow of an open half.
    #[track_caller]
    fn number(&self, host: NodeId, key: FlowKey) -> u32 {
        let host = &self.hosts[host.index()];
        let halves = if key.is_receivers() { &host.receivers } else { &host.senders };
        halves.flows[key.index()].expect("a half that is open")
    }

    fn carry_out(&mut self, effect: Effect, host: NodeId, now: Time) {
        match effect {
            Effect::Send(packet) => {
                assert_eq!(packet.src, host, "{packet:?}");
                let packet = self.labelled(packet);
                self.hosts[host.index()].queues[usize::from(packet.priority)].push_back(packet);
                self.serve(host, now);
            }
            Effect::Wake(woken) => {
                assert_eq!(woken, host);
                self.serve(host, now);
            }
            Effect::WakeAt(host, at) => self.calendar.push(at, Event::Alarm(host)),
            Effect::Set(timer, at) => {
                self.hosts[host.index()].timers.insert(format!("{timer:?}"), at);
                self.calendar.push(at, Event::Timer(host, timer, at));
            }
            Effect::Cancel(timer) => {
                self.hosts[host.index()].timers.remove(&format!("{timer:?}"));
            }
            Effect::Delivered(key, bytes) => {
                let number = self.number(host, key) as usize;
                let fate = &mut self.fates[number];
                assert!(key.is_receivers() && fate.completed.is_none(), "{key:?}: {fate:?}");
                fate.delivered += bytes.get();
                assert!(fate.delivered <= self.flows[number].size.get(), "{key:?}: {fate:?}");
            }
            Effect::Complete(key) => {
                let number = self.number(host, key) as usize;
                let fate = &mut self.fates[number];
                assert_eq!(fate.delivered, self.flows[number].size.get());
                assert!(fate.completed.replace(now).is_none(), "{key:?} completes twice");
            }
            Effect::Close(key) => self.close(key, host, now),
            Effect::GiveUp(key) => unreachable!("{key:?} is given up by a transport that recovers"),
            Effect::Resent(count) => self.resent += count,
            Effect::Held(_) | Effect::InVain(_) => {}
            Effect::Tell(port, _) => unreachable!("nobody here tells a neighbour by {port:?}"),
            Effect::Unpack(piece) => {
                unreachable!("hosts here know of each other what packets tell: {piece:?}")
            }
        }
    }

    fn close(&mut self, key: FlowKey, host: NodeId, now: Time) {
        let entry = &mut self.hosts[host.index()];
        let halves = if key.is_receivers() { &mut entry.receivers } else { &mut entry.senders };
        let fate = &mut self.fates[halves.close(key.index()) as usize];
        assert!(fate.completed.is_some(), "{key:?} closes before it is complete");
        let closed = if key.is_receivers() { &mut fate.left } else { &mut fate.closed };
        assert!(closed.replace(now).is_none(), "{key:?} closes twice");
        for number in 0..entry.transport.timers().flow {
            entry.timers.remove(&format!("{:?}", Timer::Flow(key, number)));
        }
    }

    /// A packet on its way names its flow by number.
    fn labelled(&self, packet: Packet) -> Packet {
        let key = packet.flow;
        let number = if key.is_closed() { key.place() } else { self.number(packet.src, key) };
        Packet { flow: key.at(number), ..packet }
    }

    /// Lets a host send, if its line is free.
    fn serve(&mut self, host: NodeId, now: Time) {
        let entry = &mut self.hosts[host.index()];
        if entry.line.1 > now {
            return self.expect_free(host);
        }
        let queued = entry.queues.iter_mut().find_map(VecDeque::pop_front);
        let mut packet = match queued {
            Some(packet) => packet,
            None => match entry.transport.pull(host, Line::OPEN, &mut self.out) {
                Some(pulled) => self.labelled(pulled),
                None => return,
            },
        };
        assert_eq!(packet.src, host, "{packet:?}");
        assert!(packet.wire > 0 && packet.dst != host, "{packet:?}");
        if packet.is_data() {
            packet.stamp = now;
        }
        let (clock, free_at, _) = &mut self.hosts[host.index()].line;
        *free_at = now + clock.send(packet.size());
        let end = *free_at;
        self.sent.push((now, packet));
        self.expect_free(host);
        self.travel(packet, end);
    }

    fn expect_free(&mut self, host: NodeId) {
        let (_, free_at, expected) = &mut self.hosts[host.index()].line;
        if !std::mem::replace(expected, true) {
            self.calendar.push(*free_at, Event::Free(host));
        }
    }

    fn travel(&mut self, mut packet: Packet, end: Time) {
        let Weather { loss, twice, mark, trim, back, delay, jitter } = self.weather;
        let copies = if self.stream.bernoulli(twice) { 2 } else { 1 };
        if (self.loses)(&packet) {
            return;
        }
        if packet.marks.contains(Marks::ECT) && self.stream.bernoulli(mark) {
            packet.marks.insert(Marks::CE);
        }
        if packet.marks.contains(Marks::MAY_TRIM) && self.stream.bernoulli(trim) {
            packet.marks.insert(Marks::TRIMMED);
            (packet.wire, packet.payload, packet.priority) = (self.header, 0, 0);
            if packet.kind == Kind::DATA && self.stream.bernoulli(back) {
                packet.marks.insert(Marks::RETURNED);
                std::mem::swap(&mut packet.src, &mut packet.dst);
            }
        }
        for _ in 0..copies {
            let extra = Span::from_ps(self.stream.below(jitter.as_ps() + 1));
            if !self.stream.bernoulli(loss) {
                self.calendar.push(end + delay + extra, Event::Arrive(packet));
            }
        }
    }
}
