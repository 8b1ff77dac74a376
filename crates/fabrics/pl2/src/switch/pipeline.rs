//! The switch's program: one packet through parser, two register arrays and deparser.
//!
//! Models: PL2 §4.1.1, Algorithm 1, §4.2, §4.4 (claims M05 to M09, M12, M13, I08). A packet is matched
//! once, to an operation on each array; it passes the array of outputs first, then that of inputs, and
//! each once. So the program is what a pipeline of match-action stages can run: no loop, no second
//! look, and no operation that knows what another array holds but by what the packet carries on.
//!
//! Outputs come first (our choice: Alg. 1 has inputs first, where the order plays no part), for an
//! unsolicited packet that is dropped at the output must leave the input alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::registers::{Action, Registers};
use crate::wire::Tag;

/// What a packet takes off the counters (M13): the paper leaves open what a burst does that comes
/// twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Accounting {
    /// Each packet one, and below zero comes the largest number: Alg. 1 to the letter.
    Literal,
    /// Each packet one, down to zero.
    Saturating,
    /// Each packet one, down to zero, but for those that say that their first copy was counted.
    #[default]
    Flagged,
}

/// When a packet is taken off the counter of its output (M07): the paper does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Decrement {
    /// When it comes in: the counter holds what was reserved and has not come. Unsolicited bursts then
    /// leave no trace while they wait: senders that have few bursts under way overload an output, and
    /// its counter stays below t.
    Ingress,
    /// When it goes out: the counter holds what waits in the queue, too.
    #[default]
    Egress,
}

/// What the program is built with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Ports, each with a register in both arrays.
    pub ports: u32,
    /// Slots reserved at an output above which unsolicited packets are dropped (T).
    pub drop_above: u32,
    /// What a packet takes off the counters.
    pub accounting: Accounting,
    /// When it is taken off that of its output.
    pub decrement: Decrement,
    /// What a slot counts (M32): 1, or more where entering traffic has a share.
    pub increment: u32,
}

/// What the parser makes of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Header {
    /// A reservation of so many slots (RSV).
    Reserve(u16),
    /// Data, with its tag.
    Data(Option<Tag>),
    /// So many slots given back (M31).
    Reset(u16),
    /// A frame that passes by the program: broadcast, or one of its own.
    Other,
}

/// Between which ports: of reset slots those where they were reserved, else those by which the frame
/// comes and would leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Between {
    /// Register of the input.
    pub input: u32,
    /// Register of the output.
    pub output: u32,
}

/// What becomes of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It goes back as a grant of these slots.
    Grant {
        /// What was reserved at the input (`sendTimeslot`).
        send_slot: u32,
        /// What was reserved at the output (`recvTimeslot`).
        receive_slot: u32,
        /// Whether unsolicited packets would be dropped there.
        is_crowded: bool,
    },
    /// It goes on.
    Forward,
    /// It goes back as it is, done with.
    Return,
    /// It is dropped.
    Drop,
}

/// The program with its state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pipeline {
    settings: Settings,
    /// `inReservation` of Alg. 1.
    pub(crate) input: Registers,
    /// `outReservation` of Alg. 1.
    pub(crate) output: Registers,
    /// Frames that passed.
    pub(crate) passes: u64,
}

impl Pipeline {
    /// The program at start-up: nothing is reserved (Alg. 1, lines 1 to 3).
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let registers = || Registers::new(settings.ports);
        Self { settings, input: registers(), output: registers(), passes: 0 }
    }

    /// What it was built with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The counters of inputs (`inReservation`).
    #[must_use]
    pub fn input(&self) -> &Registers {
        &self.input
    }

    /// The counters of outputs (`outReservation`).
    #[must_use]
    pub fn output(&self) -> &Registers {
        &self.output
    }

    /// The counters of inputs and outputs, for the control plane.
    pub fn registers_mut(&mut self) -> [&mut Registers; 2] {
        [&mut self.input, &mut self.output]
    }

    /// Lets a frame pass (Alg. 1, lines 4 to 16).
    #[inline]
    pub fn process(&mut self, header: Header, between: Between) -> Outcome {
        self.passes += 1;
        let (at_output, at_input) = self.matched(header);
        // First stage: one operation on one register of the outputs.
        let output = self.output.operate(between.output, at_output);
        let at_input = if output.is_above { Action::Read } else { at_input };
        // Second stage: the same at the inputs.
        let input = self.input.operate(between.input, at_input);
        match header {
            Header::Reserve(_) => Outcome::Grant {
                send_slot: input.before,
                receive_slot: output.before,
                is_crowded: output.before > self.settings.drop_above,
            },
            Header::Data(_) if output.is_above => Outcome::Drop,
            Header::Reset(_) => Outcome::Return,
            Header::Data(_) | Header::Other => Outcome::Forward,
        }
    }

    /// A frame's first bit leaves by the port of `output`.
    #[inline]
    pub fn leaves(&mut self, header: Header, output: u32) {
        let Header::Data(tag) = header else { return };
        if self.settings.decrement == Decrement::Egress {
            self.output.operate(output, self.taken(tag));
        }
    }

    /// The operations at output and input that a frame is matched to.
    #[inline]
    fn matched(&self, header: Header) -> (Action, Action) {
        let counted = |slots: u16| u32::from(slots).saturating_mul(self.settings.increment);
        match header {
            Header::Reserve(demand) => (Action::Add(counted(demand)), Action::Add(counted(demand))),
            Header::Reset(slots) => (Action::Take(counted(slots)), Action::Take(counted(slots))),
            Header::Other => (Action::Read, Action::Read),
            Header::Data(tag) => (self.at_output(tag), self.taken(tag)),
        }
    }

    /// M12: an unsolicited packet passes unless more than T slots are reserved at its output.
    #[inline]
    fn at_output(&self, tag: Option<Tag>) -> Action {
        let Settings { drop_above: limit, increment: amount, .. } = self.settings;
        let is_unsolicited = matches!(tag, Some(Tag::Unsolicited(_)));
        match (self.settings.decrement, is_unsolicited) {
            (Decrement::Ingress, false) => self.taken(tag),
            (Decrement::Ingress, true) => Action::TakeUpTo { limit, amount },
            (Decrement::Egress, true) => Action::Compare(limit),
            (Decrement::Egress, false) => Action::Read,
        }
    }

    /// What a packet takes off a counter (Alg. 1, lines 14 and 15).
    #[inline]
    fn taken(&self, tag: Option<Tag>) -> Action {
        let amount = self.settings.increment;
        match (self.settings.accounting, tag) {
            (_, Some(Tag::Unreserved)) => Action::Read,
            (Accounting::Flagged, Some(Tag::AgainUncounted(_))) => Action::Read,
            (Accounting::Literal, _) => Action::TakeWrapping(amount),
            _ => Action::Take(amount),
        }
    }
}
