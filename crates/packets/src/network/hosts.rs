//! What happens inside of hosts, where it takes time: an engine, a bus, threads that wake.
//!
//! Each host has one engine: it does what it is given in order, one thing at a time ([`crate::config::Engine`]). What
//! it is given is messages to send and packets that have come, over the bus, to the host; the transport hears of them
//! when the engine is done with them. What the transport sends goes over the bus to the NIC. An application hears of
//! a message when its thread is awake ([`crate::config::WakeUp`]).
//!
//! What is not here: several engines or threads, the engine's work for the second and later packets of a message that
//! is sent, and contention for the bus.

use std::collections::{BTreeMap, VecDeque};

use kernel::{Bytes, Span, Stream, Time};
use rack::topology::Vertex;
use rack::{Failure, NodeId};

use super::part::Part;
use super::reports::{Report, What};
use crate::config::Times;
use crate::net::{Event, Journey, Name};
use crate::packet::{FlowKey, Packet};
use crate::program::Program;
use crate::transport::Transport;

/// Something for the engine to do.
#[derive(Clone, Copy, Debug)]
enum Job {
    /// A packet has come: its place in the arena, and when it was over the bus.
    Packet(u32, Time),
    /// A message is to be sent: its place among those offered.
    Start(u32),
}

/// Something that has left the engine for the NIC.
#[derive(Clone, Copy, Debug)]
enum Leaving {
    /// A message of which the transport is to hear: its place among those offered.
    Start(u32),
    /// A packet.
    Packet(Packet),
    /// Notice that the transport has something.
    Notice,
}

/// A host.
#[derive(Clone, Debug)]
struct Host {
    /// What the engine was given, and when it is done with it.
    jobs: VecDeque<(Time, Job)>,
    /// When it is done with all of that; `None`: it was never given anything.
    free_at: Option<Time>,
    leaving: VecDeque<(Time, Leaving)>,
    /// Messages that are there, by when their threads run.
    waking: BTreeMap<(Time, Name), (Bytes, Journey)>,
    service: Stream,
    sleep: Stream,
    wake_up: Stream,
}

/// The hosts of a part; those of others have nothing to do.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    times: Times,
    hosts: Vec<Host>,
}

impl Host {
    fn new(seed: u64, host: u32) -> Self {
        let stream = |purpose| Stream::new(seed, purpose, host.into());
        Self {
            jobs: VecDeque::new(),
            free_at: None,
            leaving: VecDeque::new(),
            waking: BTreeMap::new(),
            service: stream("packets/hosts/engine"),
            sleep: stream("packets/hosts/sleep"),
            wake_up: stream("packets/hosts/wake-up"),
        }
    }

    /// The engine is given something that takes `mean`: when it is done with it.
    fn work(&mut self, now: Time, mean: Span, times: &Times) -> Time {
        let has_slept = self.free_at.is_none_or(|free| now > free + times.sleep.after);
        let exit = match has_slept && times.sleep.exit > Span::ZERO {
            true => times.sleep.law.draw(times.sleep.exit, &mut self.sleep),
            false => Span::ZERO,
        };
        let begun = self.free_at.map_or(now, |free| free.max(now)) + exit;
        let done = begun + times.law.draw(mean, &mut self.service);
        self.free_at = Some(done);
        done
    }
}

/// Takes the first out that is due by `now`.
fn due<T: Copy>(list: &mut VecDeque<(Time, T)>, now: Time) -> Option<T> {
    list.front().filter(|(at, _)| *at <= now)?;
    list.pop_front().map(|(_, what)| what)
}

impl Hosts {
    /// Idle ones; `None` where nothing takes time.
    pub(super) fn new(times: Times, seed: u64, hosts: u32) -> Option<Box<Self>> {
        let hosts = || (0..hosts).map(|host| Host::new(seed, host)).collect();
        times.is_on().then(|| Box::new(Self { times, hosts: hosts() }))
    }

    /// How long a thread takes to wake at a host.
    fn wakes(&mut self, host: NodeId) -> Span {
        let [least, most] = self.times.wake_up;
        let range = (most - least).as_ps();
        least + Span::from_ps(self.hosts[host.index()].wake_up.below(range + 1))
    }
}

impl<T: Transport, S: Program> Part<T, S> {
    /// A message is to be sent: its host begins with it.
    #[inline(never)]
    pub(super) fn hand_to_host(&mut self, offer: u32) {
        let Some(hosts) = self.hosts.as_mut().filter(|hosts| hosts.times.has_engine()) else {
            return self.begin_message(offer);
        };
        let (flow, _) = self.offers[offer as usize];
        let times = hosts.times;
        let host = &mut hosts.hosts[flow.src.index()];
        let done = host.work(self.net.now, times.operation, &times);
        host.jobs.push_back((done, Job::Start(offer)));
        self.net.calendar.push(done, Event::Engine { host: flow.src.get() }.pack());
    }

    /// A packet has come to its host.
    #[inline(never)]
    pub(super) fn come_to_host(&mut self, index: u32) {
        let Some(hosts) = self.hosts.as_mut().filter(|hosts| hosts.times.has_engine()) else {
            return self.receive(index, Span::ZERO);
        };
        let (times, now) = (hosts.times, self.net.now);
        let packet = self.net.arena.get(index);
        let mean = match packet.is_data() && packet.payload > 0 {
            true => times.packet,
            false => times.control,
        };
        let host = &mut hosts.hosts[packet.dst.index()];
        let done = host.work(now, mean, &times);
        if done == now && host.jobs.is_empty() {
            self.out.set_waited(Span::ZERO);
            return self.receive(index, Span::ZERO);
        }
        host.jobs.push_back((done, Job::Packet(index, now)));
        self.net.calendar.push(done, Event::Engine { host: packet.dst.get() }.pack());
    }

    /// The engine of a host is done with something.
    pub(super) fn engine(&mut self, host: u32) {
        let Some(hosts) = &mut self.hosts else { return };
        match due(&mut hosts.hosts[host as usize].jobs, self.net.now) {
            Some(Job::Packet(index, at)) => {
                let waited = self.net.now - at;
                self.out.set_waited(waited);
                self.receive(index, waited);
            }
            Some(Job::Start(offer)) => self.begin_message(offer),
            // The host has died since.
            None => {}
        }
    }

    /// A message goes over the bus to the NIC. The transport hears of it there, so that nothing of it is sent before.
    fn begin_message(&mut self, offer: u32) {
        match &self.hosts {
            Some(hosts) if hosts.times.send_latency > Span::ZERO => {
                self.cross_bus(self.offers[offer as usize].0.src, Leaving::Start(offer));
            }
            _ => self.start(offer),
        }
    }

    /// A packet goes over the bus to the NIC.
    #[inline]
    pub(super) fn send_from_host(&mut self, packet: Packet) {
        match &self.hosts {
            Some(hosts) if hosts.times.send_latency > Span::ZERO => {
                self.cross_bus(packet.src, Leaving::Packet(packet));
            }
            _ => self.send(packet),
        }
    }

    /// The transport says that it has something to send.
    #[inline]
    pub(super) fn notify_nic(&mut self, host: NodeId) {
        match &self.hosts {
            Some(hosts) if hosts.times.send_latency > Span::ZERO => {
                self.cross_bus(host, Leaving::Notice);
            }
            _ => self.net.ready_nics.push(host.get()),
        }
    }

    fn cross_bus(&mut self, host: NodeId, what: Leaving) {
        let Some(hosts) = &mut self.hosts else { return };
        let at = self.net.now + hosts.times.send_latency;
        hosts.hosts[host.index()].leaving.push_back((at, what));
        self.net.calendar.push(at, Event::Leave { host: host.get() }.pack());
    }

    /// Something is over the bus at the NIC of a host.
    pub(super) fn reach_nic(&mut self, host: u32) {
        let Some(hosts) = &mut self.hosts else { return };
        match due(&mut hosts.hosts[host as usize].leaving, self.net.now) {
            Some(Leaving::Start(offer)) => {
                self.start(offer);
                self.net.ready_nics.push(host);
            }
            Some(Leaving::Packet(packet)) => self.send(packet),
            Some(Leaving::Notice) => self.net.ready_nics.push(host),
            None => {}
        }
    }

    /// All of a flow is readable at its destination, where a thread wakes to read it.
    #[inline]
    pub(super) fn rouse(&mut self, key: FlowKey) {
        let wakes = |hosts: &Hosts| hosts.times.wake_up[1] > Span::ZERO;
        if !self.hosts.as_ref().is_some_and(|hosts| wakes(hosts)) {
            return self.complete(key);
        }
        let receiver = self.net.halves.receiver_mut(key);
        receiver.is_complete = true;
        let (name, delivered, journey) = (receiver.name, receiver.delivered, receiver.journey);
        self.reports.push(Report { at: self.net.now, what: What::Left { name, delivered } });
        let Some(hosts) = &mut self.hosts else { return };
        let at = self.net.now + hosts.wakes(name.dst);
        hosts.hosts[name.dst.index()].waking.insert((at, name), (delivered, journey));
        self.net.calendar.push(at, Event::Rouse { host: name.dst.get() }.pack());
    }

    /// A thread of a host runs.
    pub(super) fn run_thread(&mut self, host: u32) {
        let Some(hosts) = &mut self.hosts else { return };
        let waking = &mut hosts.hosts[host as usize].waking;
        if waking.first_key_value().is_none_or(|((at, _), _)| *at > self.net.now) {
            return;
        }
        if let Some(((at, name), (delivered, journey))) = waking.pop_first() {
            self.reports.push(Report { at, what: What::Whole { name, delivered, journey } });
        }
    }

    /// A host has died, with all that is in it.
    pub(super) fn empty_host(&mut self, node: NodeId) {
        if !self.net.owns(Vertex::new(node.get())) {
            return;
        }
        let Some(hosts) = &mut self.hosts else { return };
        let host = &mut hosts.hosts[node.index()];
        let jobs = std::mem::take(&mut host.jobs);
        let waking = std::mem::take(&mut host.waking);
        let leaving = std::mem::take(&mut host.leaving);
        host.free_at = None;
        // Their sources may have closed them by now, so nobody else would say so.
        let gone = |(_, name)| Report { at: self.net.now, what: What::GaveUp { name } };
        self.reports.extend(waking.into_keys().map(gone));
        for (_, job) in jobs {
            match job {
                Job::Packet(index, _) => self.net.drop_at_dead_host(index),
                Job::Start(offer) => self.refuse(offer, Failure::SourceDied),
            }
        }
        for (_, what) in leaving {
            if let Leaving::Start(offer) = what {
                self.refuse(offer, Failure::SourceDied);
            }
        }
    }
}
