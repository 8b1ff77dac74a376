//! A network for tests that is as bad as one wants: each packet takes its host's line, then some
//! time, and on the way may be lost, doubled, overtaken, marked, trimmed or returned. No queues, no
//! topology: what a core must survive, without what it must be good at.

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
    Timer(Timer, Time),
}

/// What became of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Fate {
    pub(crate) delivered: u64,
    pub(crate) completed: Option<Time>,
    pub(crate) closed: Option<Time>,
}

/// The network.
pub(crate) struct Chaos<T> {
    pub(crate) transport: T,
    pub(crate) fates: Vec<Fate>,
    /// Every packet that left a host, with the instant of its first bit.
    pub(crate) sent: Vec<(Time, Packet)>,
    pub(crate) resent: u64,
    weather: Weather,
    stream: Stream,
    header: u16,
    flows: Vec<Flow>,
    calendar: Calendar<Event>,
    timers: BTreeMap<String, Time>,
    lines: Vec<(LinkClock, Time, bool)>,
    queues: Vec<[VecDeque<Packet>; 8]>,
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

impl<T: Transport> Chaos<T> {
    pub(crate) fn new(transport: T, hosts: u32, weather: Weather, seed: u64) -> Self {
        let line = (LinkClock::new(surroundings(hosts).line_rate), Time::ZERO, false);
        Self {
            header: transport.framing().header,
            transport,
            fates: Vec::new(),
            sent: Vec::new(),
            resent: 0,
            weather,
            stream: Stream::new(seed, "chaos", 0),
            flows: Vec::new(),
            calendar: Calendar::new(),
            timers: BTreeMap::new(),
            lines: vec![line; hosts as usize],
            queues: vec![Default::default(); hosts as usize],
            out: Outbox::default(),
            loses: Box::new(|_| false),
            paths: 4,
        }
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
        self.transport.check().unwrap();
    }

    /// Runs to the end and checks that every flow came through.
    #[track_caller]
    pub(crate) fn carry(&mut self, flows: &[Flow]) {
        self.run(flows, Time::ZERO + Span::from_us(100_000_000));
        assert!(self.calendar.is_empty(), "still busy after 100 s: {:?}", self.fates);
        for (flow, fate) in self.flows.iter().zip(&self.fates) {
            assert_eq!(fate.delivered, flow.size.get(), "{flow:?}: {fate:?}");
            assert!(fate.completed.is_some() && fate.closed.is_some(), "{flow:?}: {fate:?}");
        }
    }

    fn is_open(&self, key: FlowKey) -> bool {
        self.fates[key.index()].closed.is_none()
    }

    fn step(&mut self, now: Time, event: Event) {
        match event {
            Event::Start(place) => {
                let flow = self.flows[place as usize];
                let key = FlowKey::new(place);
                self.transport.start(&Opening { key, flow, paths: self.paths }, &mut self.out);
            }
            Event::Arrive(packet) if self.is_open(packet.flow) => {
                self.transport.receive(packet.dst, &packet, &mut self.out);
            }
            Event::Arrive(_) => {}
            Event::Free(host) => {
                self.lines[host.index()].2 = false;
                self.serve(host, now);
            }
            Event::Alarm(host) => self.serve(host, now),
            Event::Timer(timer, at) => {
                let name = format!("{timer:?}");
                if self.timers.get(&name) == Some(&at) {
                    self.timers.remove(&name);
                    self.transport.timer(timer, &mut self.out);
                }
            }
        }
        self.settle(now);
    }

    fn settle(&mut self, now: Time) {
        loop {
            let effects: Vec<_> = self.out.drain().collect();
            if effects.is_empty() {
                return;
            }
            effects.into_iter().for_each(|effect| self.carry_out(effect, now));
        }
    }

    fn carry_out(&mut self, effect: Effect, now: Time) {
        match effect {
            Effect::Send(packet) => {
                self.queues[packet.src.index()][usize::from(packet.priority)].push_back(packet);
                self.serve(packet.src, now);
            }
            Effect::Wake(host) => self.serve(host, now),
            Effect::WakeAt(host, at) => self.calendar.push(at, Event::Alarm(host)),
            Effect::Set(timer, at) => {
                self.timers.insert(format!("{timer:?}"), at);
                self.calendar.push(at, Event::Timer(timer, at));
            }
            Effect::Cancel(timer) => {
                self.timers.remove(&format!("{timer:?}"));
            }
            Effect::Delivered(key, bytes) => {
                let fate = &mut self.fates[key.index()];
                assert!(fate.completed.is_none(), "{key:?} delivers after its end");
                fate.delivered += bytes.get();
                assert!(fate.delivered <= self.flows[key.index()].size.get(), "{key:?}: {fate:?}");
            }
            Effect::Complete(key) => {
                let fate = &mut self.fates[key.index()];
                assert_eq!(fate.delivered, self.flows[key.index()].size.get());
                assert!(fate.completed.replace(now).is_none(), "{key:?} completes twice");
            }
            Effect::Close(key) => {
                let fate = &mut self.fates[key.index()];
                assert!(fate.completed.is_some(), "{key:?} closes before it is complete");
                assert!(fate.closed.replace(now).is_none(), "{key:?} closes twice");
                for number in 0..self.transport.timers().flow {
                    self.timers.remove(&format!("{:?}", Timer::Flow(key, number)));
                }
            }
            Effect::GiveUp(key) => unreachable!("{key:?} is given up by a transport that recovers"),
            Effect::Resent(count) => self.resent += count,
            Effect::Held(_) => {}
            Effect::Tell(port, _) => unreachable!("nobody here tells a neighbour by {port:?}"),
        }
    }

    /// Lets a host send, if its line is free.
    fn serve(&mut self, host: NodeId, now: Time) {
        if self.lines[host.index()].1 > now {
            return self.expect_free(host);
        }
        let queued = self.queues[host.index()].iter_mut().find_map(VecDeque::pop_front);
        let pulled = || self.transport.pull(host, Line::OPEN, &mut self.out);
        let Some(mut packet) = queued.or_else(pulled) else { return };
        assert_eq!(packet.src, host, "{packet:?}");
        assert!(packet.wire > 0 && packet.dst != host, "{packet:?}");
        if packet.is_data() {
            packet.stamp = now;
        }
        let (clock, free_at, _) = &mut self.lines[host.index()];
        *free_at = now + clock.send(packet.size());
        let end = *free_at;
        self.sent.push((now, packet));
        self.expect_free(host);
        self.travel(packet, end);
    }

    fn expect_free(&mut self, host: NodeId) {
        let (_, free_at, expected) = &mut self.lines[host.index()];
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
            if packet.kind == Kind::Data && self.stream.bernoulli(back) {
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
