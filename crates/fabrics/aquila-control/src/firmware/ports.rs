//! The ends of PMOS at all GNet links, and what is passed on there for the controller.

use std::collections::VecDeque;

use aquila::link::ordered_sets::OrderedSet;
use kernel::{Span, Time};

use super::chip::PORTS;
use crate::memory::{Memory, OutOfMemory};
use crate::pmos::{Counts, End, Frame, Kind};

/// A link on which ordered sets go and come.
#[derive(Debug)]
struct Port {
    end: End,
    /// Packets of the controller's that the neighbour does not have yet.
    passed: usize,
    /// All packets that it does not have, when last looked at.
    pending: usize,
}

/// All ports of a TiN.
#[derive(Debug)]
pub struct Ports {
    memory: Memory,
    /// Of the next end: each has another.
    session: u16,
    timeout: Span,
    ports: Vec<Option<Port>>,
    open: u64,
    wanting: u64,
    /// Ports at which packets wait to be taken.
    heard: u64,
    /// Ports whose neighbours have one packet more of the controller's, which it has not been told.
    rooms: VecDeque<u8>,
    /// Of ends that are closed.
    counts: Counts,
}

impl Ports {
    pub fn new(memory: &Memory, session: u16, timeout: Span) -> Self {
        Self {
            memory: memory.clone(),
            session,
            timeout,
            ports: (0..PORTS).map(|_| None).collect(),
            open: 0,
            wanting: 0,
            heard: 0,
            rooms: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// Words go and come at a port; whether that is new.
    pub fn open(&mut self, port: u8) -> Result<bool, OutOfMemory> {
        let place = &mut self.ports[usize::from(port)];
        if place.is_some() {
            return Ok(false);
        }
        self.session = self.session.wrapping_add(1);
        let end = End::new(&self.memory, self.session)?.with_timeout(self.timeout);
        *place = Some(Port { end, passed: 0, pending: 0 });
        self.open |= 1 << port;
        Ok(true)
    }

    /// No words come at a port any more.
    pub fn close(&mut self, port: u8) {
        let Some(closed) = self.ports[usize::from(port)].take() else { return };
        add(&mut self.counts, closed.end.counts());
        self.open &= !(1 << port);
        self.heard &= !(1 << port);
        self.rooms.retain(|&other| other != port);
    }

    /// Ports that are open, a bit each.
    pub fn open_ports(&self) -> u64 {
        self.open
    }

    fn port(&mut self, port: u8) -> Option<&mut Port> {
        self.ports.get_mut(usize::from(port))?.as_mut()
    }

    /// Sends a packet of the firmware's own.
    pub fn send(&mut self, port: u8, kind: Kind, data: &[u8]) -> bool {
        let Some(place) = self.port(port) else { return false };
        let is_sent = place.end.send(kind, data).is_ok();
        place.pending = place.end.pending();
        self.wanting |= u64::from(is_sent) << port;
        is_sent
    }

    /// Sends a packet of the controller's.
    pub fn pass(&mut self, port: u8, kind: Kind, data: &[u8]) -> bool {
        let is_sent = self.send(port, kind, data);
        if let Some(place) = self.port(port) {
            place.passed += usize::from(is_sent);
        }
        is_sent
    }

    /// Sends a packet wherever nothing waits.
    pub fn send_to_idle(&mut self, kind: Kind, data: &[u8]) {
        for port in bits(self.open) {
            if self.port(port).is_some_and(|place| place.end.is_idle()) {
                self.send(port, kind, data);
            }
        }
    }

    pub fn receive(&mut self, now: Time, port: u8, set: OrderedSet) {
        if let Some(place) = self.port(port) {
            place.end.receive(now, set);
            self.look(port);
        }
    }

    pub fn receive_frame(&mut self, now: Time, port: u8, frame: Frame) {
        if let Some(place) = self.port(port) {
            place.end.receive_frame(now, frame);
            self.look(port);
        }
    }

    pub fn has_gone(&mut self, now: Time, port: u8) {
        if let Some(place) = self.port(port) {
            place.end.has_gone(now);
            self.wanting |= 1 << port;
        }
    }

    pub fn on_time(&mut self, now: Time) {
        for port in bits(self.open) {
            let place = self.port(port).expect("the port is open");
            if place.end.deadline().is_some_and(|deadline| deadline <= now) {
                place.end.on_time(now);
                self.wanting |= 1 << port;
            }
        }
    }

    pub fn deadline(&self) -> Option<Time> {
        self.ports.iter().flatten().filter_map(|port| port.end.deadline()).min()
    }

    pub fn next_frame(&mut self, port: u8, is_free: bool) -> Option<Frame> {
        let end = &mut self.port(port)?.end;
        end.next_ack().or_else(|| if is_free { end.next_frame() } else { None })
    }

    pub fn wanting(&mut self) -> u64 {
        std::mem::take(&mut self.wanting)
    }

    /// Ports at which packets may wait.
    pub fn heard(&self) -> u64 {
        self.heard
    }

    /// The next packet that has come at a port.
    pub fn take(&mut self, port: u8) -> Option<(Kind, Vec<u8>)> {
        let taken = self.port(port).and_then(|place| place.end.take());
        if taken.is_none() {
            self.heard &= !(1 << port);
        }
        taken
    }

    /// A port whose neighbour has one packet more.
    pub fn take_room(&mut self) -> Option<u8> {
        self.rooms.pop_front()
    }

    pub fn counts(&self) -> Counts {
        let mut counts = self.counts;
        self.ports.iter().flatten().for_each(|port| add(&mut counts, port.end.counts()));
        counts
    }

    /// Something has come at a port: what follows from it.
    fn look(&mut self, port: u8) {
        self.wanting |= 1 << port;
        self.heard |= 1 << port;
        let Some(place) = self.ports[usize::from(port)].as_mut() else { return };
        let gone = place.pending.saturating_sub(place.end.pending()).min(place.passed);
        (place.pending, place.passed) = (place.end.pending(), place.passed - gone);
        self.rooms.extend(std::iter::repeat_n(port, gone));
    }
}

fn bits(mut mask: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as u8)?;
        mask &= mask - 1;
        Some(bit)
    })
}

fn add(sum: &mut Counts, more: Counts) {
    sum.delivered += more.delivered;
    sum.sent_again += more.sent_again;
    sum.damaged += more.damaged;
    sum.out_of_order += more.out_of_order;
    sum.refused += more.refused;
    sum.sessions += more.sessions;
}
