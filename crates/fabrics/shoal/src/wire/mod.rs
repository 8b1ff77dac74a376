//! The cell header: eight bytes, bit for bit.
//!
//! Models: Shoal §3.5, Fig. 5 (claims S20 to S25): source and destination, sequence number, rate
//! limit feedback, start and end of packet, last cell dropped, checksum. Fig. 5 gives widths for at
//! most 1024 nodes: 10 bits for the destination, 1 for each flag, 8 for the checksum; the feedback
//! needs 11 for its largest value, 2N - 2 (Eq. 6).
//!
//! **Our choices**, where the paper is silent: a source field as wide as the destination (a
//! receiver orders cells by sender); the sequence number takes what is left of the 64 bits; an
//! empty cell has its source as destination, which no data has; a rack with several traffic classes
//! (Appendix C) takes three bits for them, which up to 512 nodes the shorter ids and feedback set
//! free, and above that the sequence number gives up. All of it is one table, made by
//! [`Layout::new`].

mod link;
pub mod notice;
pub mod serial;

use rack::{Class, NodeId, Problem};

use crate::crc;
pub(crate) use link::{Codec, Malformed, Said};
pub use notice::{Notice, NoticeError, decode_notice, encode_notice, notice_words};
pub use serial::Serial;

/// Bytes of a cell header (§3.5).
pub const HEADER_BYTES: usize = 8;

/// The most nodes of a rack: §3.2 builds up to 2048 from 64-port switches.
pub const NODES_MAX: u32 = 2048;

/// The most traffic classes that the class field tells apart.
pub const CLASSES_MAX: u32 = 8;

/// What the header of a cell says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The node at which the cell's data entered the fabric; for an empty cell, who sends it.
    pub source: NodeId,
    /// The node at which the data leaves it; the source itself: the cell is empty.
    pub destination: NodeId,
    /// Counts the cells from source to destination, modulo the field's width.
    pub sequence: u32,
    /// Eq. 6: how long the sender's queues are to where the last cell it got was going.
    pub feedback: u32,
    /// The cell is the first of a packet.
    pub start_of_packet: bool,
    /// The cell is the last of a packet.
    pub end_of_packet: bool,
    /// The last cell that came the other way was dropped (Appendices C and D).
    pub last_cell_dropped: bool,
    /// Traffic class (Appendix C).
    pub class: Class,
}

impl Header {
    /// The header of a cell that carries no data, from `sender`.
    #[must_use]
    pub fn empty(sender: NodeId) -> Self {
        Self {
            source: sender,
            destination: sender,
            sequence: 0,
            feedback: 0,
            start_of_packet: false,
            end_of_packet: false,
            last_cell_dropped: false,
            class: Class::default(),
        }
    }

    /// Whether the cell carries no data.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.source == self.destination
    }
}

/// The fields that matter even when the cell is damaged (Appendix D).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Congestion {
    /// As in [`Header::feedback`], right or wrong.
    pub feedback: u32,
    /// As in [`Header::last_cell_dropped`], right or wrong.
    pub last_cell_dropped: bool,
}

/// What the checksum covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Coverage {
    /// Header and payload: nothing else in Shoal notices a damaged payload.
    #[default]
    Cell,
    /// The header alone.
    Header,
}

/// Why a cell is not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WireError {
    /// The checksum is wrong.
    #[error("the checksum of the cell is wrong")]
    Corrupted,
    /// A field names what this rack does not have.
    #[error("the {field} field holds {value}, and this rack has 0 to {max}")]
    Range {
        /// The name of the field.
        field: &'static str,
        /// What it holds.
        value: u32,
        /// The largest value that means something.
        max: u32,
    },
}

/// The fields that a [`Header`] fills, in the order in which they are sent; the checksum follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Name {
    Source,
    Destination,
    Sequence,
    Feedback,
    StartOfPacket,
    EndOfPacket,
    LastCellDropped,
    Class,
}

/// How many fields there are.
const FIELDS: usize = 9;

/// One field of the header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// Its name, for people.
    pub name: &'static str,
    /// Its width in bits; 0: this rack does without it.
    pub bits: u32,
    /// How many bits of the header follow it.
    pub shift: u32,
    /// The largest value it may hold in this rack.
    pub max: u32,
}

/// Where each field of the header stands, for one rack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    fields: [Field; FIELDS],
    coverage: Coverage,
}

impl Layout {
    /// The header of a rack of `nodes` nodes and `classes` traffic classes, with a checksum over
    /// the whole cell.
    ///
    /// # Errors
    /// Below 2 or above [`NODES_MAX`] nodes, and without classes or above [`CLASSES_MAX`].
    pub fn new(nodes: u32, classes: u32) -> Result<Self, Problem> {
        if !(2..=NODES_MAX).contains(&nodes) {
            let message =
                format!("{nodes} nodes: the cell header tells 2 to {NODES_MAX} nodes apart");
            return Err(Problem::new("nodes", message));
        }
        if !(1..=CLASSES_MAX).contains(&classes) {
            let message = format!(
                "{classes} traffic classes: the cell header tells 1 to {CLASSES_MAX} apart"
            );
            return Err(Problem::new("classes", message));
        }
        // Fig. 5's widths wherever they will do, so that small racks look like the paper's.
        let class_bits = if classes == 1 { 0 } else { 3 };
        let id_bits = match nodes {
            ..=512 if classes > 1 => 9,
            ..=1024 => 10,
            _ => 11,
        };
        let feedback_bits = id_bits + 1;
        let sequence_bits = 64 - 2 * id_bits - feedback_bits - 3 - class_bits - 8;
        let widest = |bits: u32| u32::MAX >> (32 - bits);
        let table = [
            ("source", id_bits, nodes - 1),
            ("destination", id_bits, nodes - 1),
            ("sequence", sequence_bits, widest(sequence_bits)),
            ("feedback", feedback_bits, widest(feedback_bits)),
            ("start-of-packet", 1, 1),
            ("end-of-packet", 1, 1),
            ("last-cell-dropped", 1, 1),
            ("class", class_bits, classes - 1),
            ("checksum", 8, 0xFF),
        ];
        let mut shift = 64;
        let fields = table.map(|(name, bits, max)| {
            shift -= bits;
            Field { name, bits, shift, max }
        });
        Ok(Self { fields, coverage: Coverage::Cell })
    }

    /// The same layout with a checksum over less or more.
    #[must_use]
    pub fn with_coverage(self, coverage: Coverage) -> Self {
        Self { coverage, ..self }
    }

    /// The fields in the order in which they are sent, most significant bit first.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The width of a node's number.
    #[must_use]
    pub fn id_bits(&self) -> u32 {
        self.field(Name::Destination).bits
    }

    /// The width of the feedback.
    #[must_use]
    pub fn feedback_bits(&self) -> u32 {
        self.field(Name::Feedback).bits
    }

    /// The arithmetic of sequence numbers.
    #[must_use]
    pub fn sequence(&self) -> Serial {
        Serial::new(self.field(Name::Sequence).bits)
    }

    /// The feedback as it goes into the header. With one class it always fits (Eq. 6: at most
    /// 2N - 2); the sum over several classes (Appendix C) is cut off at the largest value, which
    /// still tells the source to wait for longer than a queue of one class can be.
    #[must_use]
    pub fn limit_feedback(&self, feedback: u32) -> u32 {
        feedback.min(self.field(Name::Feedback).max)
    }

    /// The header in front of `payload`.
    ///
    /// # Panics
    /// If a field holds more than this rack's header has room for.
    #[must_use]
    pub fn encode(&self, header: &Header, payload: &[u8]) -> [u8; HEADER_BYTES] {
        let word = self.put(Name::Source, header.source.get())
            | self.put(Name::Destination, header.destination.get())
            | self.put(Name::Sequence, header.sequence)
            | self.put(Name::Feedback, header.feedback)
            | self.put(Name::StartOfPacket, u32::from(header.start_of_packet))
            | self.put(Name::EndOfPacket, u32::from(header.end_of_packet))
            | self.put(Name::LastCellDropped, u32::from(header.last_cell_dropped))
            | self.put(Name::Class, u32::from(header.class.get()));
        let mut bytes = word.to_be_bytes();
        bytes[7] = crc::checksum(&bytes[..7], self.covered(payload));
        bytes
    }

    /// Reads the header in front of `payload`.
    ///
    /// # Errors
    /// If the checksum is wrong, or a field names a node or class that this rack does not have.
    pub fn decode(&self, bytes: [u8; HEADER_BYTES], payload: &[u8]) -> Result<Header, WireError> {
        if !crc::is_intact(&bytes[..7], bytes[7], self.covered(payload)) {
            return Err(WireError::Corrupted);
        }
        let word = u64::from_be_bytes(bytes);
        let get = |name| self.get(name, word);
        let flag = |name| self.get(name, word).map(|value| value == 1);
        Ok(Header {
            source: NodeId::new(get(Name::Source)?),
            destination: NodeId::new(get(Name::Destination)?),
            sequence: get(Name::Sequence)?,
            feedback: get(Name::Feedback)?,
            start_of_packet: flag(Name::StartOfPacket)?,
            end_of_packet: flag(Name::EndOfPacket)?,
            last_cell_dropped: flag(Name::LastCellDropped)?,
            class: Class::new(get(Name::Class)? as u8),
        })
    }

    /// Reads the congestion-control fields without a look at the checksum: what a node still takes
    /// from a damaged cell before it drops it (Appendix D, step 1).
    #[must_use]
    pub fn decode_unchecked(&self, bytes: [u8; HEADER_BYTES]) -> Congestion {
        let word = u64::from_be_bytes(bytes);
        Congestion {
            feedback: self.raw(Name::Feedback, word),
            last_cell_dropped: self.raw(Name::LastCellDropped, word) == 1,
        }
    }

    /// Whether the checksum catches the flipping of these bits of a cell with this many bytes of
    /// payload, whatever the cell holds. Bit 0 is the first of the header.
    ///
    /// # Panics
    /// If a bit lies outside the cell.
    #[must_use]
    pub fn detects(&self, flipped: impl IntoIterator<Item = usize>, payload_bytes: usize) -> bool {
        let cell = 8 * (HEADER_BYTES + payload_bytes);
        let covered = match self.coverage {
            Coverage::Cell => cell,
            Coverage::Header => 8 * HEADER_BYTES,
        };
        let in_cell = flipped.into_iter().inspect(|bit| {
            assert!(*bit < cell, "bit {bit} of a cell of {cell} bits");
        });
        crc::detects(in_cell.filter(|&bit| bit < covered), covered)
    }

    fn covered<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        match self.coverage {
            Coverage::Cell => payload,
            Coverage::Header => &[],
        }
    }

    fn field(&self, name: Name) -> &Field {
        &self.fields[name as usize]
    }

    /// `value` at the place of its field.
    fn put(&self, name: Name, value: u32) -> u64 {
        let Field { name, shift, max, .. } = *self.field(name);
        assert!(value <= max, "{value} in the {name} field, which holds at most {max}");
        u64::from(value) << shift
    }

    /// What the field holds, whether it means something or not.
    fn raw(&self, name: Name, word: u64) -> u32 {
        let Field { bits, shift, .. } = *self.field(name);
        (word >> shift & ((1 << bits) - 1)) as u32
    }

    /// What the field holds, if it means something.
    fn get(&self, name: Name, word: u64) -> Result<u32, WireError> {
        let Field { name: field, max, .. } = *self.field(name);
        let value = self.raw(name, word);
        if value > max { Err(WireError::Range { field, value, max }) } else { Ok(value) }
    }
}

#[cfg(test)]
mod tests;
