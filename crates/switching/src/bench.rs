//! A bench for one switch: feeds its lines, watches what leaves, measures a window.
//!
//! The far end of each line has credits for the switch's buffer and gets them back at once. Every
//! packet is numbered in its connection, so one lost, duplicated or out of order stops the run.

use std::ops::Range;

use kernel::{Bytes, Histogram, prefetch};

use crate::sources::Source;
use crate::{Departure, Line, Packet, Switch, Ticks, Traffic, Wheel};

/// Cycles that the wheel of waiting sources looks ahead; a longer pause is looked at again.
const AHEAD: u64 = 1023;

/// A connection from an input to an output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Connection {
    /// Packets that have entered.
    pub entered: u32,
    /// Packets that have left.
    pub left: u32,
    /// Bytes that left in the window.
    pub bytes: u64,
}

/// What was measured in the window.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Bytes that entered over all inputs.
    pub offered: Bytes,
    /// Bytes that left over all outputs.
    pub delivered: Bytes,
    /// Packets that left.
    pub packets: u64,
    /// From a packet's first bit at the switch to its first bit leaving, in ticks.
    pub delay: Histogram,
    /// From the moment its sender had it ready.
    pub sojourn: Histogram,
    /// What one line carries in the window, in bytes.
    pub line_bytes: f64,
}

/// Whose packet enters first when room comes free for which several inputs wait. Where each input has
/// a buffer of its own nobody does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Turns {
    /// That of the input that has waited longest.
    #[default]
    LongestWait,
    /// That of the input with the lowest number, as in a loop over all.
    LowestInput,
}

/// A switch with sources on its inputs.
pub struct Bench<S> {
    switch: S,
    line: Line,
    traffic: Traffic,
    cycle: u64,
    sources: Vec<Option<Source>>,
    /// The packet that each source holds.
    next: Vec<Packet>,
    due: Wheel<u16>,
    turns: Turns,
    /// Sources whose packet found no room, the one that has waited longest first.
    blocked: Vec<u16>,
    now_due: Vec<u16>,
    departures: Vec<Departure>,
    /// Of input `i` to output `o`: `i * ports + o`.
    connections: Vec<Connection>,
    /// The instants that count.
    window: Range<Ticks>,
    measured: Measured,
}

impl<S: Switch> Bench<S> {
    /// A bench at cycle 0.
    ///
    /// # Panics
    /// If the traffic does not fit the switch; [`crate::Pattern::check`] says so beforehand.
    #[must_use]
    pub fn new(switch: S, line: Line, traffic: Traffic, seed: u64) -> Self {
        let ports = switch.ports();
        traffic.pattern.check(ports).expect("traffic is checked before it is run");
        let mut bench = Self {
            switch,
            line,
            cycle: 0,
            sources: (0..ports).map(|port| Source::new(port, seed, &traffic, &line)).collect(),
            traffic,
            next: vec![Packet::default(); ports],
            due: Wheel::new(AHEAD),
            turns: Turns::default(),
            blocked: Vec::new(),
            now_due: Vec::new(),
            departures: Vec::new(),
            connections: vec![Connection::default(); ports * ports],
            window: Ticks::default()..Ticks::default(),
            measured: Measured::new(),
        };
        for input in 0..ports {
            bench.draw(input, Ticks::default());
            if bench.sources[input].is_some() {
                bench.due.put(0, input as u16);
            }
        }
        bench
    }

    /// The same bench with room given out in this order.
    #[must_use]
    pub fn with_turns(self, turns: Turns) -> Self {
        Self { turns, ..self }
    }

    /// The switch.
    pub fn switch(&self) -> &S {
        &self.switch
    }

    /// What the last window measured.
    #[must_use]
    pub fn measured(&self) -> &Measured {
        &self.measured
    }

    /// The next cycle.
    #[must_use]
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Runs `warm_up` cycles without measuring, then `window` more: what those measured.
    pub fn run(&mut self, warm_up: u64, window: u64) -> &Measured {
        let start = self.line.start_of(self.cycle + warm_up);
        let end = start + self.line.start_of(window);
        self.window = start..end;
        self.measured = Measured::new();
        self.measured.line_bytes = self.line.bytes(end - start);
        self.connections.iter_mut().for_each(|connection| connection.bytes = 0);
        self.advance(warm_up + window);
        &self.measured
    }

    /// The connection from `input` to `output`.
    #[must_use]
    pub fn connection(&self, input: usize, output: usize) -> &Connection {
        &self.connections[input * self.switch.ports() + output]
    }

    /// What left of a connection in the window, as a share of the line rate.
    #[must_use]
    pub fn rate(&self, input: usize, output: usize) -> f64 {
        self.connection(input, output).bytes as f64 / self.measured.line_bytes
    }

    /// Checks that no packet is lost, and what the switch checks of itself.
    ///
    /// # Errors
    /// The invariant that is broken, with its numbers.
    pub fn check(&self) -> Result<(), String> {
        let count = |of: fn(&Connection) -> u32| -> usize {
            self.connections.iter().map(|connection| of(connection) as usize).sum()
        };
        let (entered, left) = (count(|c| c.entered), count(|c| c.left));
        if entered != left + self.switch.held() {
            let held = self.switch.held();
            return Err(format!("{entered} packets entered, {left} left and {held} are held"));
        }
        self.switch.check()
    }

    fn advance(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.feed();
            self.departures.clear();
            self.switch.step(&mut self.departures);
            self.watch();
            self.cycle += 1;
        }
    }

    /// Lets the sources send that wait for room or are due in this cycle.
    fn feed(&mut self) {
        let mut due = std::mem::take(&mut self.now_due);
        self.due.turn(&mut due);
        let ports = self.switch.ports();
        for &input in &due {
            // The table of connections is larger than a cache.
            let input = usize::from(input);
            let output = usize::from(self.next[input].destination);
            prefetch(&self.connections, input * ports + output);
        }
        let mut blocked = std::mem::take(&mut self.blocked);
        if self.turns == Turns::LowestInput {
            blocked.append(&mut due);
            blocked.sort_unstable();
        }
        for input in blocked.drain(..).chain(due.drain(..)) {
            self.serve(usize::from(input));
        }
        self.now_due = due;
        if self.blocked.is_empty() {
            self.blocked = blocked;
        }
    }

    /// Sends what can be sent in this cycle, then notes when to look at the source again.
    fn serve(&mut self, input: usize) {
        let (start, end) = (self.line.start_of(self.cycle), self.line.start_of(self.cycle + 1));
        loop {
            let packet = &self.next[input];
            if packet.entered >= end {
                let due = self.line.cycle_of(packet.entered);
                self.due.put(due.min(self.cycle + AHEAD), input as u16);
                return;
            }
            if !self.switch.has_room(packet) {
                self.blocked.push(input as u16);
                return;
            }
            self.send(input, packet.entered.max(start));
        }
    }

    fn send(&mut self, input: usize, at: Ticks) {
        let ports = self.switch.ports();
        let mut packet = self.next[input];
        packet.entered = at;
        let connection = &mut self.connections[input * ports + usize::from(packet.destination)];
        packet.sequence = connection.entered;
        connection.entered += 1;
        if self.window.contains(&at) {
            self.measured.offered += packet.size();
        }
        self.switch.admit(packet);
        self.draw(input, at + self.line.send_time(packet.size()));
    }

    /// Draws the next packet of a source whose line is free from `free` on.
    fn draw(&mut self, input: usize, free: Ticks) {
        let ports = self.switch.ports();
        if let Some(source) = &mut self.sources[input] {
            let mut packet = source.next(ports, &self.traffic, &self.line, free);
            packet.entered = packet.born.max(free);
            self.next[input] = packet;
        }
    }

    fn watch(&mut self) {
        let ports = self.switch.ports();
        let connection =
            |packet: &Packet| usize::from(packet.source) * ports + usize::from(packet.destination);
        for Departure { packet, .. } in &self.departures {
            prefetch(&self.connections, connection(packet));
        }
        for Departure { packet, at } in &self.departures {
            let (source, destination) = (packet.source, packet.destination);
            let connection = &mut self.connections[connection(packet)];
            assert!(
                packet.sequence == connection.left,
                "packet {} of {source} to {destination} left in place of {}",
                packet.sequence,
                connection.left
            );
            connection.left += 1;
            if self.window.contains(at) {
                connection.bytes += packet.size().get();
                self.measured.record(packet, *at);
            }
        }
    }
}

impl Measured {
    fn new() -> Self {
        Self {
            offered: Bytes::ZERO,
            delivered: Bytes::ZERO,
            packets: 0,
            delay: Histogram::new(),
            sojourn: Histogram::new(),
            line_bytes: 0.0,
        }
    }

    fn record(&mut self, packet: &Packet, at: Ticks) {
        self.delivered += packet.size();
        self.packets += 1;
        self.delay.record((at - packet.entered).get());
        self.sojourn.record((at - packet.born).get());
    }

    /// What left, as a share of what `ports` lines carry.
    #[must_use]
    pub fn throughput(&self, ports: usize) -> f64 {
        self.delivered.get() as f64 / (self.line_bytes * ports as f64)
    }

    /// What entered, as a share of what `ports` lines carry.
    #[must_use]
    pub fn load(&self, ports: usize) -> f64 {
        self.offered.get() as f64 / (self.line_bytes * ports as f64)
    }
}
