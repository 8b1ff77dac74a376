//! One queue between many sources and one sink, for tests of what a congestion control is good at:
//! hosts without lines of their own, a bottleneck with a buffer and a marking threshold, losses on
//! request, and the queue's length to look at.

use std::collections::VecDeque;

use kernel::{Bytes, Calendar, LinkClock, Rate, Span, Time};
use packets::{
    Effect, FlowKey, Line, Marks, Opening, Outbox, Packet, Surroundings, Timer, Transport,
};
use rack::{Class, Flow, FlowId, NodeId};

/// The bottleneck.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bottleneck {
    pub(crate) rate: Rate,
    /// Round-trip time without the queue and the sending.
    pub(crate) rtt: Span,
    /// Packets that may wait; more are dropped.
    pub(crate) buffer: usize,
    /// A packet that finds more than this many waiting is marked.
    pub(crate) threshold: usize,
    /// Switches that a packet is said to have crossed.
    pub(crate) hops: u8,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Arrive(Packet),
    Free,
    Alarm(NodeId),
    Timer(Timer),
}

/// Many sources, a queue, a sink: the last host.
pub(crate) struct Rig<T> {
    pub(crate) transport: T,
    pub(crate) now: Time,
    bottleneck: Bottleneck,
    clock: LinkClock,
    queue: VecDeque<Packet>,
    is_busy: bool,
    calendar: Calendar<Event>,
    /// When each flow's timers are to fire, and when their events come: a timer that is moved later
    /// keeps its event.
    timers: Vec<[[(Time, Time); 4]; 2]>,
    /// By flow: whether its receiver knows of it.
    is_met: Vec<bool>,
    out: Outbox,
    effects: Vec<Effect>,
    sources: u32,
    /// Decides which data packets are lost before the queue.
    pub(crate) loses: Box<dyn FnMut(&Packet) -> bool>,
    /// How many packets found so many waiting.
    pub(crate) seen: Vec<u64>,
    pub(crate) delivered: Vec<u64>,
    pub(crate) drops: u64,
    pub(crate) completed: usize,
}

/// What a transport of the rig is told.
pub(crate) fn around(sources: u32) -> Surroundings {
    Surroundings {
        hosts: sources + 1,
        line_rate: Rate::from_gbps(10),
        uniform_rate: Rate::from_gbps(10),
        base_rtt: Span::from_us(10),
        hops_max: 1,
        seed: 5,
    }
}

impl<T: Transport> Rig<T> {
    /// A flow of `size` from each source to the sink, all at once.
    pub(crate) fn new(transport: T, sources: u32, size: u64, bottleneck: Bottleneck) -> Self {
        let mut rig = Self {
            transport,
            now: Time::ZERO,
            bottleneck,
            clock: LinkClock::new(bottleneck.rate),
            queue: VecDeque::new(),
            is_busy: false,
            calendar: Calendar::new(),
            timers: vec![[[(Time::NEVER, Time::NEVER); 4]; 2]; sources as usize],
            is_met: vec![false; sources as usize],
            out: Outbox::default(),
            effects: Vec::new(),
            sources,
            loses: Box::new(|_| false),
            seen: Vec::new(),
            delivered: vec![0; sources as usize],
            drops: 0,
            completed: 0,
        };
        for source in 0..sources {
            let flow = Flow {
                id: FlowId::new(source.into()),
                src: NodeId::new(source),
                dst: NodeId::new(sources),
                size: Bytes::new(size),
                start: Time::ZERO,
                class: Class::new(0),
            };
            let opening = Opening {
                key: FlowKey::new(source),
                label: FlowKey::label(source, false),
                flow,
                paths: 1,
            };
            rig.transport.start(&opening, &mut rig.out);
            rig.settle();
        }
        rig
    }

    /// Goes on for a while; `look` sees the transport after each event.
    pub(crate) fn run(&mut self, span: Span, mut look: impl FnMut(Time, &T)) {
        let end = self.now + span;
        while let Some((now, event)) = self.calendar.pop_before(end) {
            self.now = now;
            self.out.set_now(now);
            self.step(event);
            self.settle();
            look(now, &self.transport);
        }
        self.now = end;
        self.transport.check().unwrap();
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Arrive(packet) => self.arrive(packet),
            Event::Free => {
                self.is_busy = false;
                self.serve();
            }
            Event::Alarm(host) => self.pull(host),
            Event::Timer(timer) => {
                let now = self.now;
                let (due, event) = self.state(timer);
                if *event != now {
                    return;
                }
                *event = Time::NEVER;
                if *due == now {
                    *due = Time::NEVER;
                    self.transport.timer(timer, &mut self.out);
                } else if *due != Time::NEVER {
                    let at = *due;
                    self.set(timer, at);
                }
            }
        }
    }

    /// Flows go from hosts other than the last to the last, and both halves have the source's number.
    fn arrive(&mut self, packet: Packet) {
        let place = packet.flow.place();
        if packet.dst.get() < self.sources {
            let packet = Packet { flow: FlowKey::new(place), ..packet };
            return self.transport.receive(packet.dst, &packet, &mut self.out);
        }
        let packet = Packet { flow: FlowKey::receivers(place), ..packet };
        if !std::mem::replace(&mut self.is_met[place as usize], true) {
            self.transport.accept(&packet, FlowKey::label(place, true), &mut self.out);
        }
        self.transport.receive(packet.dst, &packet, &mut self.out);
    }

    fn settle(&mut self) {
        let mut effects = std::mem::take(&mut self.effects);
        loop {
            effects.extend(self.out.drain());
            if effects.is_empty() {
                break;
            }
            effects.drain(..).for_each(|effect| self.carry_out(effect));
        }
        self.effects = effects;
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Send(packet) => self.send(packet),
            Effect::Wake(host) => self.pull(host),
            Effect::WakeAt(host, at) => self.calendar.push(at, Event::Alarm(host)),
            Effect::Set(timer, at) => self.set(timer, at),
            Effect::Cancel(timer) => *self.state(timer).0 = Time::NEVER,
            Effect::Delivered(flow, bytes) => self.delivered[flow.index()] += bytes.get(),
            Effect::Complete(_) => self.completed += 1,
            Effect::Close(flow) => {
                let timers = &mut self.timers[flow.index()][usize::from(flow.is_receivers())];
                timers.iter_mut().for_each(|timer| timer.0 = Time::NEVER);
            }
            Effect::Resent(_) | Effect::Held(_) | Effect::InVain(_) => (),
            Effect::GiveUp(key) => unreachable!("{key:?} is given up by a transport that recovers"),
            Effect::Tell(port, _) => unreachable!("nobody here tells a neighbour by {port:?}"),
            Effect::Unpack(piece) => unreachable!("a packet here is of one flow: {piece:?}"),
        }
    }

    fn state(&mut self, timer: Timer) -> (&mut Time, &mut Time) {
        let Timer::Flow(flow, number) = timer else { panic!("{timer:?}") };
        let half = &mut self.timers[flow.index()][usize::from(flow.is_receivers())];
        let (due, event) = &mut half[usize::from(number)];
        (due, event)
    }

    fn set(&mut self, timer: Timer, at: Time) {
        let (due, event) = self.state(timer);
        *due = at;
        if at < *event {
            *event = at;
            self.calendar.push(at, Event::Timer(timer));
        }
    }

    /// The least, mean and most packets that a packet found waiting.
    pub(crate) fn queue(&self) -> (usize, f64, usize) {
        let count: u64 = self.seen.iter().sum();
        let total: u64 =
            (0..).zip(&self.seen).map(|(waiting, seen): (u64, &u64)| waiting * seen).sum();
        let least = self.seen.iter().position(|&seen| seen > 0).expect("packets were sent");
        (least, total as f64 / count as f64, self.seen.len() - 1)
    }

    fn pull(&mut self, host: NodeId) {
        while let Some(packet) = self.transport.pull(host, Line::OPEN, &mut self.out) {
            self.send(packet);
        }
    }

    /// Half a round trip to the sink and half back: the queue is at the sources' end.
    fn send(&mut self, mut packet: Packet) {
        if packet.src == NodeId::new(self.sources) {
            let at = self.now + self.bottleneck.rtt / 2;
            return self.calendar.push(at, Event::Arrive(packet));
        }
        if packet.is_data() {
            packet.stamp = self.now;
            if (self.loses)(&packet) {
                return;
            }
        }
        let waiting = self.queue.len();
        if self.seen.len() <= waiting {
            self.seen.resize(waiting + 1, 0);
        }
        self.seen[waiting] += 1;
        if waiting >= self.bottleneck.buffer {
            self.drops += 1;
            return;
        }
        if packet.marks.contains(Marks::ECT) && waiting > self.bottleneck.threshold {
            packet.marks.insert(Marks::CE);
        }
        packet.hops = self.bottleneck.hops;
        self.queue.push_back(packet);
        self.serve();
    }

    fn serve(&mut self) {
        if self.is_busy {
            return;
        }
        let Some(packet) = self.queue.pop_front() else { return };
        self.is_busy = true;
        let end = self.now + self.clock.send(packet.size());
        self.calendar.push(end, Event::Free);
        self.calendar.push(end + self.bottleneck.rtt / 2, Event::Arrive(packet));
    }
}

/// Forty terabytes: a flow that does not end.
pub(crate) const ENDLESS: u64 = 40_000_000_000_000;

/// A way without a bottleneck: nothing waits long.
pub(crate) fn wide(rtt: Span) -> Bottleneck {
    Bottleneck {
        rate: Rate::from_gbps(100_000),
        rtt,
        buffer: usize::MAX,
        threshold: usize::MAX,
        hops: 1,
    }
}

/// Loses each `period`-th data packet.
pub(crate) fn periodic(period: u64) -> Box<dyn FnMut(&Packet) -> bool> {
    let mut count = 0;
    Box::new(move |_| {
        count += 1;
        count % period == 0
    })
}

/// Loses data packets at random.
pub(crate) fn random(chance: f64) -> Box<dyn FnMut(&Packet) -> bool> {
    let mut stream = kernel::Stream::new(3, "testing/losses", 0);
    Box::new(move |_| stream.bernoulli(chance))
}

/// Segments a round trip that a lone endless flow delivers under these losses, after a warm-up.
pub(crate) fn window_under_loss<T: Transport>(
    transport: T,
    rtt: Span,
    rounds: u64,
    loses: Box<dyn FnMut(&Packet) -> bool>,
) -> f64 {
    let segment = f64::from(transport.framing().payload);
    let mut rig = Rig::new(transport, 1, ENDLESS, wide(rtt));
    rig.loses = loses;
    rig.run(rtt * (rounds / 10), |_, _| ());
    let before = rig.delivered[0];
    rig.seen.clear();
    rig.run(rtt * rounds, |_, _| ());
    (rig.delivered[0] - before) as f64 / segment / rounds as f64
}

/// Fails unless `found` is within this part of `expected`.
#[track_caller]
pub(crate) fn check_near(what: &str, found: f64, expected: f64, part: f64) {
    let off = (found - expected).abs() / expected;
    assert!(off <= part, "{what}: {found}, expected {expected}: {:.1} % off", off * 100.0);
}
