//! What goes into the chip and what comes out of it, as plain vectors: to be replayed against this model, or
//! against hardware.
//!
//! A [`Recording`] is a chip's configuration and, for each cycle in which something happens, the packets that
//! enter, the grants that are issued and the packets that leave. As JSON it has the layout of these types,
//! whose JSON schema `schemars` gives ([`schema`]). `vectors/chip.json` is one, made by
//! `cargo run -p rackloom-scoc --example record`.

use kernel::{Bytes, Rate};
use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};
use switching::{Departure, Packet, Switch, Ticks};

use crate::{Chip, ChipConfig};

/// What a chip was given and what it did.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Recording {
    /// Ports of the chip.
    pub ports: usize,
    /// Rate of its lines.
    pub line_rate: Rate,
    /// The rest of its configuration.
    pub chip: ChipConfig,
    /// Seed of all chance in it.
    pub seed: u64,
    /// Ticks in a cycle: all instants are in ticks, from the first cycle on.
    pub cycle_ticks: u64,
    /// The cycles in which something happens, in order.
    pub cycles: Vec<Cycle>,
}

/// One cycle.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Cycle {
    /// Its number, from 0.
    pub cycle: u64,
    /// Packets whose first bits arrive before its end, in this order.
    pub enter: Vec<Entering>,
    /// Output and input group of each grant issued in it.
    pub grants: Vec<[u16; 2]>,
    /// Packets accepted in it, in this order.
    pub leave: Vec<Leaving>,
}

/// A packet that enters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Entering {
    /// Its input port.
    pub input: u16,
    /// Its output port.
    pub output: u16,
    /// Its length.
    pub bytes: u16,
    /// What names it among the packets in the chip.
    pub tag: u32,
    /// When its first bit arrives, in ticks.
    pub at: u64,
}

/// A packet that leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Leaving {
    /// As it entered.
    pub tag: u32,
    /// Its output port.
    pub output: u16,
    /// When its first bit goes on the line, in ticks.
    pub at: u64,
}

/// The JSON schema of a [`Recording`].
#[must_use]
pub fn schema() -> Schema {
    schema_for!(Recording)
}

/// A chip that is recorded.
#[derive(Debug)]
pub struct Recorder {
    chip: Chip,
    recording: Recording,
    now: Cycle,
    departures: Vec<Departure>,
}

impl Recorder {
    /// An empty chip.
    ///
    /// # Errors
    /// Each problem of the configuration.
    pub fn new(chip: &ChipConfig, seed: u64) -> Result<Self, Vec<rack::Problem>> {
        let (plan, usual) = (chip.plan()?, ChipConfig::default());
        let cycle_ticks = plan.line.start_of(1).get();
        Ok(Self {
            chip: Chip::new(plan, seed),
            recording: Recording {
                ports: chip.ports,
                line_rate: chip.line_rate,
                // What a scenario says elsewhere, and so does a recording.
                chip: ChipConfig { ports: usual.ports, line_rate: usual.line_rate, ..chip.clone() },
                seed,
                cycle_ticks,
                cycles: Vec::new(),
            },
            now: Cycle::default(),
            departures: Vec::new(),
        })
    }

    /// Whether an input has room.
    #[must_use]
    pub fn has_room(&self, input: u16) -> bool {
        self.chip.places_free(input.into()) > 0
    }

    /// Gives the chip a packet in the cycle that comes next.
    ///
    /// # Errors
    /// If the chip would not take it: what is wrong.
    pub fn enter(&mut self, packet: Entering) -> Result<(), String> {
        let Entering { input, output, bytes, tag, at } = packet;
        let ports = self.recording.ports;
        if usize::from(input.max(output)) >= ports {
            return Err(format!("{packet:?}; the chip has ports 0 to {}", ports - 1));
        }
        if bytes == 0 || u64::from(bytes) > self.recording.chip.packet_max.get() {
            let most = self.recording.chip.packet_max;
            return Err(format!("{packet:?}; expected 1 B to {most}"));
        }
        if !self.has_room(input) {
            return Err(format!("{packet:?}; the input has no room"));
        }
        let size = Bytes::new(bytes.into());
        let mut inside = Packet::new(input.into(), output.into(), size, Ticks::new(at));
        inside.tag = tag;
        self.chip.admit(inside);
        self.now.enter.push(packet);
        Ok(())
    }

    /// Lets a cycle pass; gives what left in it.
    pub fn step(&mut self) -> &[Leaving] {
        self.departures.clear();
        self.chip.step(&mut self.departures);
        self.now.grants.extend(self.chip.issued());
        self.now.leave.extend(self.departures.iter().map(|departure| Leaving {
            tag: departure.packet.tag,
            output: departure.packet.destination,
            at: departure.at.get(),
        }));
        let next = Cycle { cycle: self.now.cycle + 1, ..Cycle::default() };
        let now = std::mem::replace(&mut self.now, next);
        let is_silent = now.enter.is_empty() && now.grants.is_empty() && now.leave.is_empty();
        let left = now.leave.len();
        if !is_silent {
            self.recording.cycles.push(now);
        }
        let last = self.recording.cycles.last().map_or(&[][..], |cycle| &cycle.leave);
        if left > 0 { last } else { &[] }
    }

    /// What was recorded so far.
    #[must_use]
    pub fn recording(&self) -> &Recording {
        &self.recording
    }
}

impl Recording {
    /// Gives a chip of this model what was recorded and compares what it does, cycle by cycle.
    ///
    /// # Errors
    /// The first cycle in which it does something else.
    pub fn replay(&self) -> Result<(), String> {
        let Self { ports, line_rate, .. } = *self;
        let chip = ChipConfig { ports, line_rate, ..self.chip.clone() };
        let mut recorder = Recorder::new(&chip, self.seed)
            .map_err(|problems| format!("no such chip: {problems:?}"))?;
        for expected in &self.cycles {
            while recorder.now.cycle < expected.cycle {
                recorder.step();
            }
            expected.enter.iter().try_for_each(|&packet| recorder.enter(packet))?;
            recorder.step();
            let done = recorder.recording.cycles.last();
            if done != Some(expected) {
                return Err(format!("expected {expected:?}, and the chip did {done:?}"));
            }
        }
        let (known, done) = (self.cycles.len(), recorder.recording.cycles.len());
        if known == done {
            Ok(())
        } else {
            Err(format!("{done} cycles with something, not {known}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::Stream;

    use super::*;

    fn recording() -> Recording {
        let chip = ChipConfig { ports: 16, ..ChipConfig::default() };
        let mut recorder = Recorder::new(&chip, 3).unwrap();
        let (mut draw, mut tag) = (Stream::new(1, "test", 0), 0);
        for cycle in 0..2_000 {
            let input = draw.below(16) as u16;
            if cycle < 1_500 && draw.below(2) == 0 && recorder.has_room(input) {
                let (output, bytes) = (draw.below(16) as u16, 40 + draw.below(281) as u16);
                let at = cycle * recorder.recording.cycle_ticks;
                recorder.enter(Entering { input, output, bytes, tag, at }).unwrap();
                tag += 1;
            }
            recorder.step();
        }
        recorder.recording().clone()
    }

    #[test]
    fn what_is_recorded_is_replayed_from_its_bytes_and_another_run_is_told() {
        let recording = recording();
        let entered: usize = recording.cycles.iter().map(|cycle| cycle.enter.len()).sum();
        let left: usize = recording.cycles.iter().map(|cycle| cycle.leave.len()).sum();
        assert!(entered > 300 && left == entered, "{left} of {entered}");
        let json = serde_json::to_string(&recording).unwrap();
        let read: Recording = serde_json::from_str(&json).unwrap();
        assert_eq!(read, recording);
        read.replay().unwrap();
        let at = |wanted: fn(&Cycle) -> bool| recording.cycles.iter().position(wanted).unwrap();
        let mut other = recording.clone();
        other.cycles[at(|cycle| !cycle.leave.is_empty())].leave[0].at += 1;
        assert!(other.replay().unwrap_err().contains("the chip did"));
        let mut other = recording.clone();
        other.cycles[at(|cycle| !cycle.grants.is_empty())].grants.clear();
        other.replay().unwrap_err();
        let mut other = recording.clone();
        other.cycles[at(|cycle| !cycle.enter.is_empty())].enter[0].output = 16;
        assert!(other.replay().unwrap_err().contains("ports 0 to 15"));
        let mut other = recording;
        other.seed += 1;
        other.replay().unwrap_err();
    }

    #[test]
    fn the_vectors_hold() {
        let json = include_str!("../vectors/chip.json");
        let recording: Recording = serde_json::from_str(json).unwrap();
        recording.replay().unwrap();
        assert!(recording.cycles.len() > 50, "{}", recording.cycles.len());
        let schema = serde_json::to_value(schema()).unwrap();
        let keys = &schema["properties"];
        assert!(keys["cycles"].is_object() && keys["chip"].is_object(), "{schema}");
    }
}
