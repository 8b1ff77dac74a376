//! The switch's program: one packet through parser, two register arrays and deparser.
//!
//! Models: PL2 §4.1.1, Algorithm 1, §4.2, §4.4 (claims M05 to M09, M12, M13, I08). A packet is matched
//! once, to an operation on each array; it passes the array of outputs first, then that of inputs, and
//! each once. So the program is what a pipeline of match-action stages can run: no loop, no second
//! look, and no operation that knows what another array holds but by what the packet carries on.
//!
//! Outputs come first (our choice: Alg. 1 has inputs first, where the order plays no part), for an
//! unsolicited packet that is dropped at the output must leave the input alone.
//!
//! Between them may stand a third array, with a register for each pair of hosts (our choice: §4.5 leaves
//! recovery to others). Its slots are those of the inputs, told apart by destination. A grant says what
//! its pair had reserved, so that the requester finds what leaked; and a packet for which its pair has
//! nothing reserved takes nothing off, so that no counter gets below what is still to come.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::registers::{Operation, Registers, Reply};
use crate::wire::Tag;
use crate::wire::tag::Place;

/// What a packet takes off the counters (M13): the paper leaves open what a burst does that comes
/// twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Accounting {
    /// Each packet one, and below zero comes the largest number, and above that zero again: Alg. 1 to the
    /// letter, in registers of 32 bits. Only where nothing gets lost.
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
    /// Pairs of hosts, each with a register in the third array; 0: there is none.
    pub pairs: u32,
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
    /// Register of the two hosts, where pairs have some.
    pub pair: u32,
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
        /// Slots that were reserved for the pair; 0 where pairs have no registers.
        pair_slots: u32,
        /// Whether unsolicited packets would be dropped there.
        is_crowded: bool,
    },
    /// It goes on.
    Forward,
    /// It goes on, and as nothing is reserved for its pair, nothing is to be taken off when it leaves.
    ForwardUncounted,
    /// It goes back as it is, done with.
    Return,
    /// It is dropped.
    Drop,
}

/// What a data packet is matched to: an operation at its output, one at its input, and one at its
/// output when it leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    at_output: Operation,
    at_input: Operation,
    leaving: Operation,
}

/// Kinds of data packets: by tag.
const KINDS: usize = 5;

/// The program with its state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pipeline {
    settings: Settings,
    /// The table that data packets are matched with.
    table: [Entry; KINDS],
    /// `inReservation` of Alg. 1.
    pub(crate) input: Registers,
    /// `outReservation` of Alg. 1.
    pub(crate) output: Registers,
    /// Slots by pair of hosts; no registers: nobody tracks them.
    pub(crate) pairs: Registers,
    /// Frames that passed.
    pub(crate) passes: u64,
}

impl Pipeline {
    /// The program at start-up: nothing is reserved (Alg. 1, lines 1 to 3).
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let registers = || Registers::new(settings.ports);
        let place = Place::default();
        let table = [
            None,
            Some(Tag::Unreserved),
            Some(Tag::Unsolicited(place)),
            Some(Tag::Again(place)),
            Some(Tag::AgainUncounted(place)),
        ];
        let table = table.map(|tag| settings.entry(tag));
        let pairs = Registers::new(settings.pairs);
        Self { settings, table, input: registers(), output: registers(), pairs, passes: 0 }
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

    /// The counters of pairs.
    #[must_use]
    pub fn pairs(&self) -> &Registers {
        &self.pairs
    }

    /// The counters of inputs and outputs, for the control plane.
    pub fn registers_mut(&mut self) -> [&mut Registers; 2] {
        [&mut self.input, &mut self.output]
    }

    /// The control plane voids what a pair has reserved. Returns what that counted.
    pub fn void(&mut self, between: Between) -> u32 {
        let slots = self.pairs.set(between.pair, 0);
        let counts = slots.saturating_mul(self.settings.increment);
        for (registers, index) in
            [(&mut self.input, between.input), (&mut self.output, between.output)]
        {
            registers.set(index, registers.get(index).saturating_sub(counts));
        }
        counts
    }

    /// Lets a frame pass (Alg. 1, lines 4 to 16).
    #[inline]
    pub fn process(&mut self, header: Header, between: Between) -> Outcome {
        match header {
            Header::Data(tag) => self.data(tag, between),
            Header::Reserve(demand) => {
                let operation = self.settings.ended(Operation::add(self.counted(demand)));
                let [output, input] = self.access(operation, operation, between);
                let pair_slots = match self.settings.pairs {
                    0 => 0,
                    _ => self.pairs.operate(between.pair, Operation::add(demand.into())).before,
                };
                Outcome::Grant {
                    send_slot: input.before,
                    receive_slot: output.before,
                    pair_slots,
                    is_crowded: output.before > self.settings.drop_above,
                }
            }
            Header::Reset(slots) => {
                self.reset(slots, between);
                Outcome::Return
            }
            Header::Other => {
                self.access(Operation::READ, Operation::READ, between);
                Outcome::Forward
            }
        }
    }

    /// Lets data pass, or drops it.
    #[inline]
    pub fn data(&mut self, tag: Option<Tag>, between: Between) -> Outcome {
        if self.settings.pairs > 0 {
            return self.data_of_pair(tag, between);
        }
        let Entry { at_output, at_input, .. } = self.table[kind(tag)];
        let [output, _] = self.access(at_output, at_input, between);
        if output.is_above { Outcome::Drop } else { Outcome::Forward }
    }

    /// The same where pairs have registers, and packets are counted until they leave: at the output nothing
    /// is taken off yet.
    #[inline]
    fn data_of_pair(&mut self, tag: Option<Tag>, between: Between) -> Outcome {
        self.passes += 1;
        let limit =
            if let Some(Tag::Unsolicited(_)) = tag { self.settings.drop_above } else { u32::MAX };
        let is_dropped = self.output.is_above(between.output, limit);
        let wanted = u32::from(is_counted(tag) && !is_dropped);
        let had = self.pairs.take(between.pair, wanted);
        self.input.take(between.input, had * self.settings.increment);
        match (is_dropped, had < wanted) {
            (true, _) => Outcome::Drop,
            (_, true) => Outcome::ForwardUncounted,
            _ => Outcome::Forward,
        }
    }

    /// Takes slots off that are given back. Where pairs have registers, the output comes last, behind the
    /// queues as for data, so that no counter loses more than the pair had: others may have used it since.
    fn reset(&mut self, slots: u16, between: Between) {
        if self.settings.pairs == 0 {
            let operation = Operation::take(self.counted(slots));
            self.access(operation, operation, between);
            return;
        }
        self.passes += 1;
        let had = self.pairs.take(between.pair, slots.into());
        self.input.take(between.input, had * self.settings.increment);
        self.output.take(between.output, had * self.settings.increment);
    }

    /// The two stages of the ports: one operation on one register of the outputs, then the same at the
    /// inputs, where nothing changes if the first was refused.
    #[inline]
    fn access(&mut self, output: Operation, input: Operation, between: Between) -> [Reply; 2] {
        self.passes += 1;
        let at_output = self.output.operate(between.output, output);
        let input = if at_output.is_above { Operation::READ } else { input };
        [at_output, self.input.operate(between.input, input)]
    }

    fn counted(&self, slots: u16) -> u32 {
        u32::from(slots).saturating_mul(self.settings.increment)
    }

    /// The first bit of data leaves by the port of `output`.
    #[inline]
    pub fn leaves(&mut self, tag: Option<Tag>, output: u32) {
        if self.settings.pairs > 0 {
            if is_counted(tag) {
                self.output.take(output, self.settings.increment);
            }
        } else if self.settings.decrement == Decrement::Egress {
            self.output.operate(output, self.table[kind(tag)].leaving);
        }
    }
}

/// Whether a data packet is taken off, where second copies are told apart.
#[inline]
fn is_counted(tag: Option<Tag>) -> bool {
    !matches!(tag, Some(Tag::Unreserved | Tag::AgainUncounted(_)))
}

/// The place in the table of a data packet.
#[inline]
fn kind(tag: Option<Tag>) -> usize {
    match tag {
        None => 0,
        Some(Tag::Unreserved) => 1,
        Some(Tag::Unsolicited(_)) => 2,
        Some(Tag::Again(_)) => 3,
        Some(Tag::AgainUncounted(_)) => 4,
    }
}

impl Settings {
    /// What a data packet with this tag is matched to.
    fn entry(&self, tag: Option<Tag>) -> Entry {
        let at_input = self.taken(tag);
        let (at_output, leaving) = match (self.decrement, tag) {
            // M12: an unsolicited packet passes unless more than T slots are reserved at its output.
            (Decrement::Ingress, Some(Tag::Unsolicited(_))) => {
                (at_input.up_to(self.drop_above), Operation::READ)
            }
            (Decrement::Egress, Some(Tag::Unsolicited(_))) => {
                (Operation::READ.up_to(self.drop_above), at_input)
            }
            (Decrement::Ingress, _) => (at_input, Operation::READ),
            (Decrement::Egress, _) => (Operation::READ, at_input),
        };
        Entry { at_output, at_input, leaving }
    }

    /// What a packet takes off a counter (Alg. 1, lines 14 and 15).
    fn taken(&self, tag: Option<Tag>) -> Operation {
        match (self.accounting, tag) {
            (_, Some(Tag::Unreserved)) => Operation::READ,
            (Accounting::Flagged, Some(Tag::AgainUncounted(_))) => Operation::READ,
            _ => self.ended(Operation::take(self.increment)),
        }
    }

    /// The operation with what the accounting has at the ends of a register.
    fn ended(&self, operation: Operation) -> Operation {
        if self.accounting == Accounting::Literal { operation.wrapping() } else { operation }
    }
}
