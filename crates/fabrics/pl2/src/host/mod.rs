//! PL2 at the hosts: a shim below any transport, and a transport itself.
//!
//! Models: PL2 §4.2.1, §4.4, §4.5, §5, Algorithm 2 (claims M19 to M25, M28, M29, M31). The shim takes
//! what the transport would send, gathers bursts, reserves slots for them and sends them in their time.
//! The transport knows nothing of it: it is asked for packets when a thread is free, and is handed what
//! arrives, once.
//!
//! - `exchange`: Algorithm 2, from a burst to its reservation, its grant and its end
//! - [`wait`]: Eq. 1
//! - `layout`, `bursts`, `held`: threads, lanes, bursts and the packets in them
//! - `nic`: bursts that wait for their slot, and the line
//! - `silence`: destinations that do not answer
//! - `duplicates`, `tracking`: the receiving side
//! - `books`: what is held reserved, and what of it has leaked
//! - `outside`: traffic from other racks

mod books;
mod bursts;
mod counts;
mod duplicates;
mod exchange;
mod feed;
mod held;
mod jitter;
mod layout;
mod nic;
mod outside;
mod silence;
#[cfg(test)]
mod tests;
mod tracking;
pub mod wait;

use std::sync::Arc;

use kernel::{Bytes, Rate, Slab, Span, Stream, Time};
use packets::wire::Codec;
use packets::{
    Effect, FlowKey, Framing, Gate, Kind, Line, Live, Marks, Opening, Outbox, Packet, Timer,
    Timers, Transport, Way,
};
use rack::{Class, NodeId};

use self::books::Books;
use self::bursts::{Agent, Burst, Lane};
use self::counts::Counts;
use self::duplicates::Duplicates;
use self::held::{Held, NONE, Note, Queue};
use self::jitter::Delays;
use self::layout::Layout;
use self::nic::Nic;
use self::outside::Outside;
use self::tracking::Tracking;
use self::wait::chosen;
use crate::config::{self, Plan};
use crate::framing::Frames;
use crate::message::{Message, tag_of};
use crate::wire::control::Opcode;
use crate::wire::{OVERHEAD, Tag, on_the_wire};

/// What every host goes by.
#[derive(Clone, Debug)]
struct Rules {
    /// K.
    burst_packets: u32,
    /// t, in counts.
    unsolicited_below: u32,
    unsolicited_age: Span,
    /// T, in counts.
    drop_above: u32,
    /// What a packet counts.
    increment: u32,
    /// The time of a count.
    unit: Span,
    line_rate: Rate,
    host: config::Host,
    patience: Span,
    longest_exchange: Span,
    threads: u32,
    scheduling: config::Scheduling,
    handling: config::GrantHandling,
    acknowledgments: config::Acknowledgments,
    has_copies: bool,
}

/// What the shim knows of a flow at one of its ends.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    host: NodeId,
    /// The thread that sends what this end sends.
    thread: u32,
    /// How many flows that had its key were given up: what is held of those is nobody's.
    life: u32,
    /// Names it in frames that need no slot: they wait where nothing counts them.
    label: FlowKey,
    /// Packets of it that are held.
    held: u32,
    /// Whether the transport has done with it: it closes when the last of its packets has gone.
    is_closing: bool,
    /// Whether it has closed.
    is_closed: bool,
}

/// In place of the life of a flow: a packet that says once more that all is there.
const ANSWER: u32 = u32::MAX;

/// The hosts of a rack under PL2, with `T` above it.
#[derive(Clone, Debug)]
pub struct Shim<T> {
    inner: T,
    /// What the transport wants done, where the shim has a part in it.
    wishes: Vec<Effect>,
    /// Timers of a host that are the transport's: those of the shim follow.
    inner_timers: u8,
    rules: Rules,
    layout: Layout,
    /// By flow, at sources and at destinations: what is known of it.
    flows: [Vec<Known>; 2],
    /// By flow at its source: the way of its data, its agent and its lane.
    ways: Vec<Way>,
    /// By host and thread: open flows that it sends, and then those that it receives.
    busy: Vec<u32>,
    agents: Vec<Agent>,
    lanes: Vec<Lane>,
    /// By agent: what it takes from the transport.
    gates: Vec<Gate>,
    /// By host: agents that take packets.
    open: Vec<u32>,
    bursts: Slab<Burst>,
    held: Held,
    nics: Vec<Nic>,
    /// By host: when it looks for grants that do not come.
    looks: Vec<Time>,
    /// By host: when a thread may make the next reservation, where each is work to the host.
    turns: Vec<Time>,
    /// By host: whether it is known to be dead, where an oracle tells of failures.
    is_dead: Vec<bool>,
    /// By host: who it heard last, where something fails and no oracle tells.
    heard_last: Vec<Option<NodeId>>,
    /// By host: when the transport wants to be asked.
    alarms: Vec<Time>,
    delays: Delays,
    chance: Vec<Stream>,
    duplicates: Duplicates,
    tracking: Tracking,
    books: Books,
    outside: Outside,
    /// Hosts whose transport is to be asked, and agents to be looked at, in this call.
    feeds: Vec<NodeId>,
    calls: Vec<u32>,
    counts: Counts,
}

impl<T: Transport> Shim<T> {
    /// PL2 below `inner`. `seed` is that of all chance in it.
    #[must_use]
    pub fn new(plan: &Plan, inner: T, seed: u64) -> Self {
        let (config, layout) = (&plan.config, Layout::new(plan));
        let count = |slots: u32| slots.saturating_mul(plan.increment);
        let rules = Rules {
            burst_packets: config.burst_packets,
            unsolicited_below: count(config.unsolicited_below),
            unsolicited_age: config.unsolicited_age,
            drop_above: count(config.switch.drop_above),
            increment: plan.increment,
            unit: plan.unit,
            line_rate: config.line_rate,
            host: config.host.clone(),
            patience: config.recovery.patience,
            longest_exchange: config.longest_exchange(),
            threads: config.threads,
            scheduling: config.scheduling,
            handling: config.grant_handling,
            acknowledgments: config.acknowledgments,
            has_copies: plan.tracks(config::Tracking::Receivers),
        };
        let hosts = layout.hosts;
        let tracking = match rules.has_copies {
            false => Tracking::off(hosts),
            true => Tracking::new(hosts, config.recovery.silence),
        };
        Self {
            inner_timers: inner.timers().host,
            inner,
            wishes: Vec::new(),
            rules,
            layout,
            flows: [Vec::new(), Vec::new()],
            ways: Vec::new(),
            busy: vec![0; (2 * hosts * config.threads) as usize],
            agents: (0..layout.agents_all() as u32).map(|a| Agent::of(layout.host(a))).collect(),
            lanes: vec![Lane::NEW; layout.lanes_all()],
            gates: vec![Gate::OPEN; layout.agents_all()],
            open: vec![layout.agents; hosts as usize],
            bursts: Slab::default(),
            held: Held::default(),
            nics: vec![Nic::default(); hosts as usize],
            looks: vec![Time::NEVER; hosts as usize],
            turns: vec![Time::ZERO; hosts as usize],
            is_dead: vec![false; hosts as usize],
            heard_last: vec![None; if plan.hosts_watch() { hosts as usize } else { 0 }],
            alarms: vec![Time::NEVER; hosts as usize],
            delays: Delays::new(&config.host.jitter),
            chance: (0..hosts).map(|host| Stream::new(seed, "pl2/delay", host.into())).collect(),
            duplicates: Duplicates::new(layout.lanes_all()),
            tracking,
            books: Books::new(hosts, plan.tracks(config::Tracking::Pairs)),
            outside: Outside::new(plan),
            feeds: Vec::new(),
            calls: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// The transport above, to look at.
    #[must_use]
    pub fn inner(&self) -> &T {
        &self.inner
    }

    /// The shim's own timer of an agent.
    #[inline]
    fn timer_of(&self, agent: u32) -> Timer {
        let number = u32::from(self.inner_timers) + self.layout.local(agent);
        Timer::Host(self.agents[agent as usize].host, number as u8)
    }

    /// The timer by which a receiver looks for silent senders.
    fn timer_of_tracking(&self, host: NodeId) -> Timer {
        Timer::Host(host, self.inner_timers + self.layout.agents as u8)
    }

    /// The timer by which a host looks for grants that do not come.
    fn timer_of_watch(&self, host: NodeId) -> Timer {
        Timer::Host(host, self.inner_timers + self.layout.agents as u8 + 1)
    }

    /// The transport has done with its half of a flow.
    fn close(&mut self, flow: FlowKey, out: &mut Outbox) {
        self.known_mut(flow).is_closing = true;
        let timers = self.inner.timers().flow;
        (0..timers).for_each(|number| out.cancel_timer(Timer::Flow(flow, number)));
        if self.known(flow).held == 0 {
            self.finish_closing(flow, out);
        }
    }

    /// The last packet of a half that has nothing left to do has gone.
    fn finish_closing(&mut self, flow: FlowKey, out: &mut Outbox) {
        self.leave_thread(flow);
        self.known_mut(flow).is_closed = true;
        out.close(flow);
    }

    /// A half of a flow is given up: what is held of it is nobody's.
    fn end(&mut self, flow: FlowKey, out: &mut Outbox) {
        self.known_mut(flow).is_closing = false;
        // What has come to the NIC came while it was wanted.
        self.send_ripe_asks(self.known(flow).host, out);
        self.leave_thread(flow);
        let known = self.known_mut(flow);
        known.life = (known.life + 1) % ANSWER;
        known.held = 0;
        if !flow.is_receivers() {
            self.free_if_in_vain(self.ways[flow.index()].gate, out);
        }
    }

    /// A packet that was held has gone, or nobody wants it any more.
    #[inline]
    fn gone(&mut self, Note { flow, life, .. }: Note, out: &mut Outbox) {
        if self.is_over(flow, life) || life == ANSWER {
            return;
        }
        let known = self.known_mut(flow);
        known.held -= 1;
        if known.held == 0 && known.is_closing {
            self.finish_closing(flow, out);
        }
    }

    /// Lets all packets of a queue go.
    fn let_go(&mut self, queue: &mut Queue, out: &mut Outbox) {
        let mut slot = queue.head;
        while slot != NONE {
            let note = self.held.note(slot);
            self.gone(note, out);
            slot = note.next;
        }
        self.held.clear(queue);
    }

    /// What is known of a flow at this end.
    #[inline]
    fn known(&self, flow: FlowKey) -> &Known {
        &self.flows[usize::from(flow.is_receivers())][flow.index()]
    }

    #[inline]
    fn known_mut(&mut self, flow: FlowKey) -> &mut Known {
        &mut self.flows[usize::from(flow.is_receivers())][flow.index()]
    }

    /// Whether the flow of a packet that was taken in during this life of its key is given up.
    #[inline]
    fn is_over(&self, flow: FlowKey, life: u32) -> bool {
        life != ANSWER && self.known(flow).life != life
    }

    /// Whether a packet is not worth asking for ever: its flow is given up, or it tells a sender that all
    /// is there, which will ask again.
    #[inline]
    fn is_dispensable(&self, flow: FlowKey, life: u32) -> bool {
        let is_last_word = life == ANSWER || (flow.is_receivers() && self.known(flow).is_closing);
        is_last_word || self.is_over(flow, life)
    }

    /// Opens a flow at one of its ends.
    fn know(&mut self, key: FlowKey, host: NodeId, label: FlowKey) -> u32 {
        let entry = if key.is_receivers() { self.layout.hosts + host.get() } else { host.get() };
        let thread = self.take_thread(entry, key);
        let list = &mut self.flows[usize::from(key.is_receivers())];
        if list.len() <= key.index() {
            list.resize(key.index() + 1, Known::default());
        }
        let life = list[key.index()].life;
        list[key.index()] =
            Known { host, thread, life, label, held: 0, is_closing: false, is_closed: false };
        thread
    }

    fn leave_thread(&mut self, flow: FlowKey) {
        let Known { host, thread, .. } = *self.known(flow);
        let entry = host.get() + if flow.is_receivers() { self.layout.hosts } else { 0 };
        self.busy[(entry * self.rules.threads + thread) as usize] -= 1;
    }

    /// The thread that takes the next flow of a host: that of its connection, where those last. Flows that hosts
    /// receive stand behind those that they send.
    fn take_thread(&mut self, entry: u32, key: FlowKey) -> u32 {
        let thread = match self.inner.connection(key) {
            Some(connection) => connection % self.rules.threads,
            None => self.idlest_thread(entry),
        };
        self.busy[(entry * self.rules.threads + thread) as usize] += 1;
        thread
    }

    /// The first of the threads with the fewest flows of this kind, and of those with the fewest of the other: a
    /// thread that answers a long flow without a pause has no time for a request.
    fn idlest_thread(&self, entry: u32) -> u32 {
        let count = self.rules.threads;
        let of = |entry: u32| &self.busy[(entry * count) as usize..((entry + 1) * count) as usize];
        let other = of((entry + self.layout.hosts) % (2 * self.layout.hosts));
        let least = (0..).zip(of(entry).iter().zip(other)).min_by_key(|&(_, flows)| flows);
        least.expect("a host has a thread").0
    }

    /// Notes that a packet has come. False if it is a second copy.
    #[inline]
    fn note(&mut self, host: NodeId, packet: &Packet, now: Time) -> bool {
        let tag = tag_of(packet);
        // A header alone is no copy, nor is a packet that comes back to its sender.
        let is_whole = !packet.marks.contains(Marks::TRIMMED);
        if let Some(tag) = tag.filter(|_| is_whole) {
            let thread = tag.place().map_or(0, |place| place.thread.into());
            let lane = self.layout.lane(packet.src, thread, host);
            if self.duplicates.knows(lane, tag) {
                self.counts.duplicates += 1;
                return false;
            }
        }
        let is_counted = tag != Some(Tag::Unreserved) && !packet.marks.contains(Marks::RETURNED);
        if self.rules.has_copies && is_counted {
            self.tracking.came(now, host, packet.src);
        }
        true
    }

    /// A packet that is for the transport, if it is the first of its copies.
    #[inline]
    fn data(&mut self, host: NodeId, packet: &Packet, out: &mut Outbox) {
        // What was unpacked from a packet came with it.
        let is_first = packet.wire == 0 || self.note(host, packet, out.now());
        // Nobody's: its flow was over before it went.
        if !is_first || packet.flow == FlowKey::NEIGHBOURS {
            return;
        }
        if self.known(packet.flow).is_closing {
            // Its transport has done with it; what it said last is on its way.
            return;
        }
        let packet = Packet { path: 0, ..*packet };
        self.of_transport(out, |transport, out| transport.receive(host, &packet, out));
    }

    /// A frame of PL2's own.
    fn control(&mut self, host: NodeId, packet: &Packet, message: Message, out: &mut Outbox) {
        match message.opcode {
            Opcode::Grant => self.granted(host, packet, message, out),
            Opcode::Notice => {
                let slot = chosen(message.send_slot, message.receive_slot);
                let due = out.now() + self.rules.unit * u64::from(slot);
                let look = self.tracking.granted(out.now(), host, packet.src, message.demand, due);
                if let Some(at) = look {
                    out.set_timer(self.timer_of_tracking(host), at);
                }
            }
            Opcode::Withdrawal => self.tracking.withdrawn(host, packet.src, message.demand),
            // What was given back is done with.
            Opcode::Reset | Opcode::Reserve => (),
        }
    }

    /// Sends a frame before all bursts.
    #[inline]
    fn send(&mut self, packet: Packet, out: &mut Outbox) {
        self.send_ripe_asks(packet.src, out);
        self.nics[packet.src.index()].push_control(packet);
        self.ask_for_pull(packet.src, out);
    }

    /// A host has something for its line: a line that is busy asks by itself.
    #[inline]
    fn ask_for_pull(&self, host: NodeId, out: &mut Outbox) {
        if !self.nics[host.index()].is_expected {
            out.wake(host);
        }
    }

    /// A host will have something for its line at `at`.
    #[inline]
    fn ask_for_pull_at(&self, host: NodeId, at: Time, out: &mut Outbox) {
        if !self.nics[host.index()].is_expected {
            out.wake_at(host, at);
        }
    }

    /// Gives back slots that nobody will use: at the input of `sender`, at the output of `receiver`.
    fn give_back(
        &mut self,
        from: NodeId,
        sender: NodeId,
        receiver: NodeId,
        slots: u32,
        out: &mut Outbox,
    ) {
        // The switch takes it off the wire wherever it is addressed to, as long as that works: a sender
        // tells its receiver so, and a receiver some host that is not the silent sender.
        let works = |host: &NodeId| !self.is_dead[host.index()];
        let others = (0..self.layout.hosts).map(NodeId::new).filter(|&host| host != from);
        // Who knows of no dead host takes one that it has heard.
        let heard = self.heard_last.get(from.index()).copied().flatten();
        let usual = if from == receiver { None } else { Some(receiver).filter(works) };
        let best = heard.filter(|&host| from != receiver || host != sender).or(usual);
        let via = best.or_else(|| others.filter(|&host| host != sender).find(works));
        let via = via.unwrap_or(if from == receiver { sender } else { receiver });
        let reset = Message {
            opcode: Opcode::Reset,
            flags: crate::wire::Flags::default(),
            demand: u16::try_from(slots).unwrap_or(u16::MAX),
            burst: 0,
            send_slot: sender.get(),
            receive_slot: receiver.get(),
            pair_slots: 0,
            stamp: out.now(),
        };
        self.counts.given_back += u64::from(reset.demand);
        if self.books.are_kept() {
            self.books.corrects((sender, receiver));
        }
        self.send(reset.packet(from, via), out);
    }

    /// A receiver looks for senders that owe it packets and are silent.
    fn look_for_silence(&mut self, host: NodeId, out: &mut Outbox) {
        let mut silent = Vec::new();
        let next = self.tracking.look(out.now(), host, |sender, owed| silent.push((sender, owed)));
        for (sender, owed) in silent {
            self.give_back(host, sender, host, owed, out);
        }
        if let Some(at) = next {
            out.set_timer(self.timer_of_tracking(host), at);
        }
    }
}

impl<T: Transport> Transport for Shim<T> {
    fn name(&self) -> &'static str {
        "pl2"
    }

    fn can_be_cut(&self) -> bool {
        self.inner.can_be_cut()
    }

    fn add_counts(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        self.inner.add_counts(&other.inner);
    }

    fn timers(&self) -> Timers {
        let inner = self.inner.timers();
        let own = u8::try_from(self.layout.agents + 2).expect("at most 64 agents");
        Timers { flow: inner.flow, host: inner.host + own }
    }

    fn offset_of(&self, packet: &Packet) -> u64 {
        self.inner.offset_of(packet)
    }

    fn recovers(&self) -> bool {
        self.inner.recovers()
    }

    fn shares_packets(&self) -> bool {
        self.inner.shares_packets()
    }

    fn codec(&self) -> Arc<dyn Codec> {
        Arc::new(Frames { inner: self.inner.codec() })
    }

    fn framing(&self) -> Framing {
        framed(self.inner.framing())
    }

    fn framing_of(&self, class: Class) -> Framing {
        framed(self.inner.framing_of(class))
    }

    fn has_handshake(&self) -> bool {
        // A grant of the switch comes before any data, whatever the transport above does.
        true
    }

    fn speaks_to_neighbours(&self) -> bool {
        // Its control frames belong to no flow: what they are about may be over before they arrive.
        true
    }

    fn start(&mut self, opening: &Opening, out: &mut Outbox) {
        let Opening { key, flow, .. } = *opening;
        self.of_transport(out, |transport, out| transport.start(opening, out));
        let thread = self.know(key, flow.src, opening.label);
        if self.ways.len() <= key.index() {
            self.ways.resize(key.index() + 1, Way::default());
        }
        let (gate, lane) = self.layout.way(flow.src, thread, flow.dst);
        self.ways[key.index()] = Way { gate, lane };
        self.settle(out);
    }

    fn accept(&mut self, packet: &Packet, label: FlowKey, out: &mut Outbox) {
        let plain = Packet { path: 0, ..*packet };
        self.of_transport(out, |transport, out| transport.accept(&plain, label, out));
        self.know(packet.flow, packet.dst, label);
        self.settle(out);
    }

    fn receive(&mut self, host: NodeId, packet: &Packet, out: &mut Outbox) {
        if let Some(last) = self.heard_last.get_mut(host.index()) {
            *last = Some(packet.src);
        }
        match Message::of(packet) {
            Some(message) => self.control(host, packet, message, out),
            None => self.data(host, packet, out),
        }
        self.settle(out);
    }

    fn timer(&mut self, timer: Timer, out: &mut Outbox) {
        match timer {
            Timer::Host(host, number) if number >= self.inner_timers => {
                let local = u32::from(number - self.inner_timers);
                match local.checked_sub(self.layout.agents) {
                    None => self.agent_timer(self.layout.agents_of(host).start + local, out),
                    Some(0) => self.look_for_silence(host, out),
                    Some(_) => self.watch(host, out),
                }
            }
            timer => self.of_transport(out, |transport, out| transport.timer(timer, out)),
        }
        self.settle(out);
    }

    fn pull(&mut self, host: NodeId, _: Line<'_>, out: &mut Outbox) -> Option<Packet> {
        let is_outside = self.outside.holds(host);
        self.nics[host.index()].is_expected = !is_outside;
        if self.alarms[host.index()] <= out.now() {
            self.alarms[host.index()] = Time::NEVER;
            self.feeds.push(host);
            self.settle(out);
        }
        if is_outside {
            return self.pull_outside(host, out);
        }
        let packet = self.next_packet(host, out);
        if packet.is_none() {
            let nic = &mut self.nics[host.index()];
            nic.is_expected = false;
            let at = nic.next_at().min(self.alarms[host.index()]);
            if at < Time::NEVER {
                out.wake_at(host, at);
            }
        }
        self.settle(out);
        packet
    }

    fn abandon(&mut self, flow: FlowKey, out: &mut Outbox) {
        let Known { is_closing, is_closed, .. } = *self.known(flow);
        if !is_closing {
            self.of_transport(out, |transport, out| transport.abandon(flow, out));
        }
        if !is_closed {
            self.end(flow, out);
        }
        self.settle(out);
    }

    fn stray(&mut self, packet: &Packet, out: &mut Outbox) {
        if self.note(packet.dst, packet, out.now()) {
            let packet = Packet { path: 0, ..*packet };
            self.of_transport(out, |transport, out| transport.stray(&packet, out));
        }
        self.settle(out);
    }

    fn died(&mut self, host: NodeId, out: &mut Outbox) {
        self.heard_last[host.index()] = None;
        self.reset_host(host, out);
        self.of_transport(out, |transport, out| transport.died(host, out));
        self.settle(out);
    }

    fn routes_changed(&mut self, works: &Live, out: &mut Outbox) {
        for host in (0..self.layout.hosts).map(NodeId::new) {
            self.is_dead[host.index()] = !works.vertices[host.index()];
            if self.is_dead[host.index()] {
                self.reset_host(host, out);
            }
        }
        self.of_transport(out, |transport, out| transport.routes_changed(works, out));
        self.settle(out);
    }

    fn check(&self) -> Result<(), String> {
        self.check_bursts()?;
        self.inner.check()
    }

    fn details(&self, now: Time) -> serde_json::Map<String, serde_json::Value> {
        let mut details = self.counts.details();
        details.extend(self.inner.details(now));
        details
    }
}

/// How a transport's flows are cut into packets on the line.
fn framed(Framing { payload, header }: Framing) -> Framing {
    Framing { payload, header: header + OVERHEAD.get() as u16 }
}

/// What a packet of `wire` bytes takes in its frame.
#[inline]
fn framed_size(wire: u16) -> Bytes {
    on_the_wire(Bytes::new(wire.into()), Bytes::ZERO)
}

impl<T> Shim<T> {
    /// Whether slots are reserved for a packet.
    #[inline]
    fn is_reserved(&self, packet: &Packet) -> bool {
        let is_data = packet.kind == Kind::DATA && packet.payload > 0;
        is_data || self.rules.acknowledgments == config::Acknowledgments::Reserved
    }
}
