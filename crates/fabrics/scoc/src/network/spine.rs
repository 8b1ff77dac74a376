//! A switch of a spine, clocked only while it has work.
//!
//! The engine's instants are picoseconds, the switch's its cycles. What comes during a cycle is seen
//! by the next one; what leaves is told ahead of its time.

use kernel::{Bytes, Time};
use switching::{Departure, Line, Packet, Switch, Ticks};

use crate::AnySwitch;
use crate::config::SwitchPlan;

/// One switch with its clock.
#[derive(Clone, Debug)]
pub(super) struct Clocked {
    switch: AnySwitch,
    line: Line,
    /// The next cycle.
    cycle: u64,
    /// Whether that cycle will come by itself.
    is_awake: bool,
    /// Places of an input; none: no bound.
    places: Option<usize>,
    /// By input: places taken, as far as its leaf was told.
    taken: Vec<usize>,
    /// The longest packet.
    packet_max: Bytes,
    departures: Vec<Departure>,
    /// Cycles that it was clocked.
    pub(super) steps: u64,
}

impl Clocked {
    /// An idle switch for `inputs` leaves.
    pub(super) fn new(plan: &SwitchPlan, inputs: usize, seed: u64) -> Self {
        let ports = match plan {
            SwitchPlan::Scoc(plan) => plan.config.ports,
            _ => inputs,
        };
        let switch = plan.build(ports, seed);
        let places = switch.places_free(0);
        Self {
            switch,
            line: plan.line(),
            cycle: 0,
            is_awake: false,
            places: (places != usize::MAX).then_some(places),
            taken: vec![0; inputs],
            packet_max: plan.packet_max(),
            departures: Vec::new(),
            steps: 0,
        }
    }

    /// Packets for which an input has room from the start; none: no bound.
    pub(super) fn places(&self) -> Option<usize> {
        self.places
    }

    /// When a cycle begins.
    fn start_of(&self, cycle: u64) -> Time {
        self.time(self.line.start_of(cycle))
    }

    /// An instant of the switch as one of the engine's.
    pub(super) fn time(&self, at: Ticks) -> Time {
        Time::ZERO + self.line.span(at)
    }

    /// Whether there is room for a packet from one leaf to another.
    pub(super) fn has_room(&self, from: usize, to: usize, size: Bytes) -> bool {
        size <= self.packet_max
            && self.switch.has_room(&Packet::new(from, to, size, Ticks::default()))
    }

    /// Takes a packet whose first bit came at `entered`. Gives when to clock the switch, if it was
    /// asleep.
    pub(super) fn admit(&mut self, packet: Packet, entered: Time, now: Time) -> Option<Time> {
        assert!(self.switch.has_room(&packet), "a leaf sent {packet:?} without credit");
        let wakes = !self.is_awake;
        if wakes {
            let next = self.line.cycle_of(self.line.ticks_of(now)) + 1;
            if next > self.cycle {
                self.switch.skip_to(next);
                self.cycle = next;
            }
            self.is_awake = true;
        }
        if self.places.is_some() {
            self.taken[usize::from(packet.source)] += 1;
        }
        let mut packet = packet;
        packet.entered = self.line.ticks_of(entered);
        self.switch.admit(packet);
        wakes.then(|| self.start_of(self.cycle))
    }

    /// Clocks it once. Gives when the next cycle begins, if there is anything to do in it.
    pub(super) fn step(&mut self) -> Option<Time> {
        self.departures.clear();
        self.switch.step(&mut self.departures);
        self.cycle += 1;
        self.steps += 1;
        self.is_awake = !self.switch.is_idle();
        self.is_awake.then(|| self.start_of(self.cycle))
    }

    /// What left in the last cycle.
    pub(super) fn departures(&self) -> &[Departure] {
        &self.departures
    }

    /// Places of an input that have come free since it was asked last.
    pub(super) fn freed(&mut self, input: usize) -> usize {
        let Some(places) = self.places.filter(|_| self.taken[input] > 0) else { return 0 };
        let taken = places - self.switch.places_free(input);
        let freed = self.taken[input] - taken;
        self.taken[input] = taken;
        freed
    }

    /// Packets in it.
    pub(super) fn held(&self) -> usize {
        self.switch.held()
    }

    /// Checks what the switch checks of itself.
    pub(super) fn check(&self) -> Result<(), String> {
        self.switch.check()
    }
}
