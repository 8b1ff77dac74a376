//! What goes into a node and what comes out of it, as plain vectors: to be replayed against this model, or
//! against hardware.
//!
//! A [`Recording`] is a rack's configuration, a node's number and, for each slot in which something happens,
//! the flows that the node is given, the cells that it hears, the cells that it sends and the flows that end.
//! Cells are their bytes ([`crate::wire`]), in hexadecimal. As JSON it has the layout of these types, whose
//! JSON schema `schemars` gives ([`schema`]).

use kernel::{Bytes, Time};
use rack::shards::{Outbox, Shard as _};
use rack::{Class, Flow, FlowId, NodeId};
use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::instance::{Instance, Message, instances};

/// What a node was given and what it did.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Recording {
    /// The rack.
    pub rack: Config,
    /// Seed of all chance in it.
    pub seed: u64,
    /// The node.
    pub node: u32,
    /// The slots in which something happens, in order.
    pub slots: Vec<Slot>,
}

/// One slot: first cells arrive, then flows, then the node sends.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Slot {
    /// Its number, from 0.
    pub slot: u64,
    /// Cells whose last bits are there.
    pub hears: Vec<Heard>,
    /// Flows that the node is to send from now on.
    pub flows: Vec<Given>,
    /// Cells that it sends.
    pub sends: Vec<Sent>,
    /// Handles of the flows of which the last cell is there.
    pub ends: Vec<u32>,
}

/// A cell that a node hears.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Heard {
    /// The channel.
    pub channel: u32,
    /// Its bytes.
    pub cell: String,
}

/// A flow that a node is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Given {
    /// What its cells carry of it.
    pub handle: u32,
    /// The node that it is for.
    pub to: u32,
    /// Its size.
    pub bytes: u64,
    /// Its class.
    pub class: u8,
}

/// A cell that a node sends.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Sent {
    /// The node that hears it.
    pub to: u32,
    /// The channel.
    pub channel: u32,
    /// Its bytes.
    pub cell: String,
}

/// The JSON schema of a [`Recording`].
#[must_use]
pub fn schema() -> Schema {
    schema_for!(Recording)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of an even number of hexadecimal digits.
fn unhex(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || !digits.is_ascii() {
        return None;
    }
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).ok();
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// A node that is recorded.
#[derive(Debug)]
pub struct Recorder {
    instance: Instance,
    out: Outbox<Message>,
    recording: Recording,
    now: Slot,
}

impl Recorder {
    /// A node of an idle rack.
    ///
    /// # Errors
    /// If there is no such rack or node: what is wrong.
    pub fn new(rack: &Config, node: u32, seed: u64) -> Result<Self, String> {
        let plan = rack.plan().map_err(|problems| format!("{problems:?}"))?;
        let all = instances(&plan, seed).map_err(|problem| format!("{problem:?}"))?;
        let count = all.len();
        let instance = all.into_iter().nth(node as usize);
        let instance = instance.ok_or_else(|| format!("node {node} of {count}"))?;
        let recording = Recording { rack: rack.clone(), seed, node, slots: Vec::new() };
        Ok(Self { instance, out: Outbox::new(count), recording, now: Slot::default() })
    }

    /// A cell is there in the slot that comes next.
    pub fn hear(&mut self, channel: u32, cell: &[u8]) {
        let (to, at) = (self.recording.node, 2 * self.now.slot);
        self.now.hears.push(Heard { channel, cell: hex(cell) });
        self.instance.take(&mut vec![Message { to, at, channel, cell: cell.to_vec() }]);
    }

    /// Gives the node a flow in the slot that comes next.
    pub fn give(&mut self, given: Given) {
        let flow = Flow {
            id: FlowId::new(given.handle.into()),
            src: NodeId::new(self.recording.node),
            dst: NodeId::new(given.to),
            size: Bytes::new(given.bytes),
            start: Time::ZERO,
            class: Class::new(given.class),
        };
        self.now.flows.push(given);
        self.instance.run(2 * self.now.slot + 1, &mut self.out);
        self.instance.offer(&flow, given.handle);
    }

    /// Lets a slot pass; gives what the node sent in it.
    pub fn step(&mut self) -> Vec<Message> {
        self.instance.run(2 * self.now.slot + 2, &mut self.out);
        let sent: Vec<_> = self.out.drain().map(|(_, message)| message).collect();
        self.now.sends.extend(sent.iter().map(|message| Sent {
            to: message.to,
            channel: message.channel,
            cell: hex(&message.cell),
        }));
        let mut ends = Vec::new();
        self.instance.report(&mut ends);
        self.now.ends.extend(ends.iter().map(|end| end.flow));
        let next = Slot { slot: self.now.slot + 1, ..Slot::default() };
        let now = std::mem::replace(&mut self.now, next);
        if now != (Slot { slot: now.slot, ..Slot::default() }) {
            self.recording.slots.push(now);
        }
        sent
    }

    /// What was recorded so far.
    #[must_use]
    pub fn recording(&self) -> &Recording {
        &self.recording
    }
}

impl Recording {
    /// Gives a node of this model what was recorded and compares what it does, slot by slot.
    ///
    /// # Errors
    /// The first slot in which it does something else.
    pub fn replay(&self) -> Result<(), String> {
        let mut recorder = Recorder::new(&self.rack, self.node, self.seed)?;
        for expected in &self.slots {
            while recorder.now.slot < expected.slot {
                recorder.step();
            }
            for Heard { channel, cell } in &expected.hears {
                let bytes = unhex(cell).ok_or_else(|| format!("{cell}: no bytes"))?;
                recorder.hear(*channel, &bytes);
            }
            for &given in &expected.flows {
                if given.to == self.node || given.to >= self.rack.nodes {
                    return Err(format!("{given:?} of node {} of {}", self.node, self.rack.nodes));
                }
                recorder.give(given);
            }
            recorder.step();
            let done = recorder.recording.slots.last();
            if done != Some(expected) {
                return Err(format!("expected {expected:?}, and the node did {done:?}"));
            }
        }
        let (known, done) = (self.slots.len(), recorder.recording.slots.len());
        if known == done {
            Ok(())
        } else {
            Err(format!("{done} slots with something, not {known}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::Stream;

    use super::*;
    use crate::config::Transport;

    /// All nodes of a rack, recorded, while they carry some flows; some cells are damaged on their way.
    fn record(rack: &Config, damages: bool) -> Vec<Recording> {
        let new = |node| Recorder::new(rack, node, 1).unwrap();
        let mut nodes: Vec<_> = (0..rack.nodes).map(new).collect();
        let (mut draw, mut wires) = (Stream::new(2, "test", 0), Vec::<Message>::new());
        let mut ended = 0;
        for slot in 0..6_000 {
            let (due, rest) = wires.into_iter().partition(|message| message.at == 2 * slot);
            wires = rest;
            for message in due {
                nodes[message.to as usize].hear(message.channel, &message.cell);
            }
            if slot % 10 == 0 && slot < 300 {
                let from = draw.below(rack.nodes.into()) as u32;
                let to = (from + 1 + draw.below(u64::from(rack.nodes) - 1) as u32) % rack.nodes;
                let (handle, bytes) = (slot as u32, 1 + draw.below(5_000));
                nodes[from as usize].give(Given { handle, to, bytes, class: 0 });
            }
            for node in &mut nodes {
                for mut message in node.step() {
                    if damages && draw.below(20) == 0 {
                        message.cell[30] ^= 4;
                    }
                    wires.push(message);
                }
            }
        }
        for node in &nodes {
            ended += node.recording().slots.iter().map(|slot| slot.ends.len()).sum::<usize>();
        }
        assert_eq!(ended, 30);
        nodes.into_iter().map(|node| node.recording).collect()
    }

    #[test]
    fn what_is_recorded_is_replayed_from_its_bytes_and_another_run_is_told() {
        let small = Config { nodes: 6, channels: 2, ..Config::default() };
        let reliable = Config { transport: Transport::Reliable, ..small.clone() };
        for (rack, damages) in [(small, false), (reliable, true)] {
            for recording in record(&rack, damages) {
                let json = serde_json::to_string(&recording).unwrap();
                let read: Recording = serde_json::from_str(&json).unwrap();
                assert_eq!(read, recording);
                read.replay().unwrap();
                let mut other = recording.clone();
                let sends = other.slots.iter_mut().find(|slot| !slot.sends.is_empty()).unwrap();
                sends.sends[0].cell.replace_range(4..5, "x");
                assert!(other.replay().unwrap_err().contains("the node did"));
                let mut other = recording;
                let hears = other.slots.iter_mut().find(|slot| !slot.hears.is_empty()).unwrap();
                hears.hears[0].cell.push('0');
                assert!(other.replay().unwrap_err().contains("no bytes"));
            }
        }
        let schema = serde_json::to_value(schema()).unwrap();
        assert!(schema["properties"]["slots"].is_object(), "{schema}");
    }
}
