//! What goes into a node and what comes out of it, as plain vectors: to be replayed against the model, or
//! against hardware.
//!
//! A [`Recording`] is a rack, the number of a node in it and, in order, what the node was given and what it
//! did: flows, bytes on its wires, the ends of flows. As JSON it has the layout of these types, whose JSON
//! schema `schemars` gives ([`schema`]). Any [`Node`] can be recorded, whatever driver runs it: a
//! [`Recorder`] is a node itself.

use std::sync::{Arc, Mutex, PoisonError};

use kernel::{Bytes, Time};
use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};

use crate::node::{Ending, Message, Node, Nodes, Unit};
use crate::{Class, Failure, Flow, FlowId, NodeId};

/// What a node was given and what it did.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Recording {
    /// The rack, as its fabric's table has it.
    pub rack: serde_json::Value,
    /// Seed of all chance in it.
    pub seed: u64,
    /// The node's place among all.
    pub node: usize,
    /// The times that it was run, but for those when it was given nothing and did nothing.
    pub steps: Vec<Step>,
}

/// What a node is given, and what it then does in a time.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// What it is given, in this order.
    pub inputs: Vec<Input>,
    /// It does everything before this instant. Unit: picoseconds.
    pub until_ps: u64,
    /// What it sends, in this order.
    pub sends: Vec<Sent>,
    /// The ends of flows that it has seen, in this order.
    pub ends: Vec<Ended>,
    /// When it has to be run next if nothing comes before: its alarm. Unit: picoseconds. None: never.
    pub alarm_ps: Option<u64>,
}

/// What a node is given.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Input {
    /// A flow that it is to send.
    Flow {
        /// What names it in the run.
        id: u64,
        /// Its source.
        src: u32,
        /// Its destination.
        dst: u32,
        /// Its size.
        bytes: u64,
        /// Its class.
        class: u8,
        /// When it starts. Unit: picoseconds.
        at_ps: u64,
    },
    /// Bytes on a wire.
    Bytes {
        /// Which of its wires.
        wire: u32,
        /// When the last of them is there. Unit: picoseconds.
        at_ps: u64,
        /// The bytes, in hexadecimal.
        bytes: String,
    },
}

/// Bytes that a node sends.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Sent {
    /// The receiver's place among all nodes.
    pub to: usize,
    /// Which of the receiver's wires.
    pub wire: u32,
    /// When the last of them is there. Unit: picoseconds.
    pub at_ps: u64,
    /// The bytes, in hexadecimal.
    pub bytes: String,
}

/// The end of a flow, as a node has seen it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ended {
    /// Its source.
    pub src: u32,
    /// Its destination.
    pub dst: u32,
    /// Which of the flows between the two, as the source counts them.
    pub number: u32,
    /// When. Unit: picoseconds.
    pub at_ps: u64,
    /// Why it failed; none: all of it is there.
    pub failure: Option<Failure>,
}

impl From<&Ending> for Ended {
    fn from(ending: &Ending) -> Self {
        let Ending { flow, at, failure } = ending;
        Self {
            src: flow.src.get(),
            dst: flow.dst.get(),
            number: flow.number,
            at_ps: at.as_ps(),
            failure: *failure,
        }
    }
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
pub struct Recorder {
    node: Box<dyn Node>,
    /// Where what it does is written down, also for who has an eye on it.
    recording: Arc<Mutex<Recording>>,
    inputs: Vec<Input>,
    /// It was run until then, with nothing to do, since the last step.
    idle_until: Option<Time>,
    endings: Vec<Ending>,
}

/// All nodes of a network, recorded: `rack` and `seed` are what they were made from. Gives their recordings, in
/// the same order, which grow while the nodes are run.
#[must_use]
pub fn record(
    nodes: Nodes,
    rack: &serde_json::Value,
    seed: u64,
) -> (Nodes, Vec<Arc<Mutex<Recording>>>) {
    let (mut all, mut recordings) = (Vec::new(), Vec::new());
    for (number, node) in nodes.nodes.into_iter().enumerate() {
        let empty = Recording { rack: rack.clone(), seed, node: number, steps: Vec::new() };
        let recorder = Recorder::new(node, empty);
        recordings.push(Arc::clone(&recorder.recording));
        all.push(Box::new(recorder) as Box<dyn Node>);
    }
    (Nodes { nodes: all, ..nodes }, recordings)
}

impl Recorder {
    fn new(node: Box<dyn Node>, recording: Recording) -> Self {
        let recording = Arc::new(Mutex::new(recording));
        Self { node, recording, inputs: Vec::new(), idle_until: None, endings: Vec::new() }
    }

    fn write(&self, step: Step) {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner).steps.push(step);
    }

    fn take_in(&mut self, input: Input) {
        // How far it was then is part of what it was given.
        if let Some(until) = self.idle_until.take() {
            let alarm_ps = self.alarm();
            self.write(Step { until_ps: until.as_ps(), alarm_ps, ..Step::default() });
        }
        self.inputs.push(input);
    }

    /// When the node has to be run next.
    fn alarm(&self) -> Option<u64> {
        Some(self.node.next()).filter(|&at| at != Time::NEVER).map(Time::as_ps)
    }
}

impl Node for Recorder {
    fn next(&self) -> Time {
        self.node.next()
    }

    fn offer(&mut self, flow: &Flow) {
        let Flow { id, src, dst, size, start, class } = *flow;
        self.take_in(Input::Flow {
            id: id.get(),
            src: src.get(),
            dst: dst.get(),
            bytes: size.get(),
            class: class.get(),
            at_ps: start.as_ps(),
        });
        self.node.offer(flow);
    }

    fn receive(&mut self, wire: u32, at: Time, bytes: &[u8]) -> Option<Unit> {
        self.take_in(Input::Bytes { wire, at_ps: at.as_ps(), bytes: hex(bytes) });
        self.node.receive(wire, at, bytes)
    }

    fn run(&mut self, until: Time, send: &mut dyn FnMut(Message<'_>)) {
        let mut sends = Vec::new();
        self.node.run(until, &mut |message| {
            let Message { to, wire, at, bytes, .. } = message;
            sends.push(Sent { to, wire, at_ps: at.as_ps(), bytes: hex(bytes) });
            send(message);
        });
        let known = self.endings.len();
        self.node.endings(&mut self.endings);
        let ends: Vec<_> = self.endings[known..].iter().map(Ended::from).collect();
        let inputs = std::mem::take(&mut self.inputs);
        if inputs.is_empty() && sends.is_empty() && ends.is_empty() {
            self.idle_until = Some(until);
            return;
        }
        self.idle_until = None;
        let alarm_ps = self.alarm();
        self.write(Step { inputs, until_ps: until.as_ps(), sends, ends, alarm_ps });
    }

    fn endings(&mut self, endings: &mut Vec<Ending>) {
        endings.append(&mut self.endings);
    }

    fn unexpected(&self) -> u64 {
        self.node.unexpected()
    }
}

impl Recording {
    /// Gives a node, which is as the recorded one was at first, what that was given, and compares what it does,
    /// step by step.
    ///
    /// # Errors
    /// The first step in which it does something else.
    pub fn replay(&self, node: Box<dyn Node>) -> Result<(), String> {
        let empty = Self { steps: Vec::new(), ..self.clone() };
        let mut recorder = Recorder::new(node, empty);
        for (number, expected) in self.steps.iter().enumerate() {
            for input in &expected.inputs {
                match input {
                    Input::Flow { id, src, dst, bytes, class, at_ps } => recorder.offer(&Flow {
                        id: FlowId::new(*id),
                        src: NodeId::new(*src),
                        dst: NodeId::new(*dst),
                        size: Bytes::new(*bytes),
                        start: Time::from_ps(*at_ps),
                        class: Class::new(*class),
                    }),
                    Input::Bytes { wire, at_ps, bytes } => {
                        let bytes = unhex(bytes).ok_or_else(|| format!("{bytes}: no bytes"))?;
                        recorder.receive(*wire, Time::from_ps(*at_ps), &bytes);
                    }
                }
            }
            recorder.run(Time::from_ps(expected.until_ps), &mut |_| ());
            let mut steps = recorder
                .recording
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .steps
                .split_off(0);
            let idle =
                Step { until_ps: expected.until_ps, alarm_ps: recorder.alarm(), ..Step::default() };
            let done = steps.pop().unwrap_or(idle);
            if done != *expected {
                return Err(format!("step {number}: expected {expected:?}, the node did {done:?}"));
            }
        }
        Ok(())
    }
}
