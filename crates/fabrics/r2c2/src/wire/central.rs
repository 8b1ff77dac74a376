//! The packets of the centralised design that R2C2 is compared with.
//!
//! Models: R2C2 §2.2.2, §5.2, Fig. 19 (claim M53, X19): the source of a flow tells a controller of
//! each event; the controller tells every node that sends anything the rates of all its flows. The
//! paper gives no sizes. Fig. 19's two ratios need a head of about 12.5 bytes and 4 bytes a rate;
//! **our choice** is 12 and 4, and 16 bytes for an event.
//!
//! | bytes | event | rates |
//! | --- | --- | --- |
//! | 0 | kind and number, as of an announcement | kind |
//! | 1 | kind of the announcement; what is behind it, as of a way ([`super::way`]) | number of rates; the same |
//! | 2, 3 | source | to whom |
//! | 4, 5 | destination | round, modulo 65,536 |
//! | 6, 7 | checksum | checksum |
//! | 8 to 11 | all else, as of an announcement | part of the list, and 3 bytes of its tag |
//! | then | | Kb/s of each flow of the node, ordered by destination and index |
//!
//! A rate has no name with it: the tag says of which list of flows these are the rates ([`tag`]), as the
//! source and the controller each work it out. A list that does not fit a packet goes in parts.

use rack::NodeId;

use super::read::{Reader, assemble, node_bytes};
use super::{Anew, Announcement, Event, Kbps, Kind, SHORT_BYTES, WireError, checksum, flow};

/// Bytes of the head of rates.
pub const HEADER_BYTES: usize = 12;
/// Bytes of a rate.
pub const RATE_BYTES: usize = 4;
/// Most rates in a packet: what half a byte tells.
pub const RATES_MAX: usize = 15;
/// Bits of a way that tell what is behind a packet.
const BEHIND: u8 = 0x30;
/// A tag is below it.
const TAGS: u32 = 1 << 24;

/// News for the controller. It takes no tree: its way says only what is behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Report {
    /// Of a flow.
    Flow(Announcement),
    /// A source begins anew: what it reported is void.
    Anew(Anew),
}

impl Report {
    /// Who says so.
    #[must_use]
    pub fn source(&self) -> NodeId {
        match self {
            Self::Flow(said) => said.source,
            Self::Anew(said) => said.source,
        }
    }

    /// The bytes.
    ///
    /// # Panics
    /// As [`Announcement::encode`], and if it names a tree.
    #[must_use]
    pub fn encode(&self) -> [u8; SHORT_BYTES] {
        let way = match self {
            Self::Flow(said) => said.way,
            Self::Anew(said) => said.way,
        };
        assert_eq!(way & !BEHIND, 0, "a report takes no tree");
        match self {
            Self::Flow(said) => said.encode_as(Kind::Report, said.event.kind() as u8 | way),
            Self::Anew(said) => assemble(&[
                &[Kind::Report as u8, Kind::Anew as u8 | way],
                &node_bytes(said.source),
                &[0; 4],
                &said.number.to_be_bytes(),
                &[0; 4],
            ]),
        }
    }
}

pub(super) fn decode_report(read: &mut Reader<'_>) -> Result<Report, WireError> {
    let byte = read.byte()?;
    let way = byte & BEHIND;
    let wrong = WireError::Field { field: "event", value: u32::from(byte) };
    if byte == Kind::Anew as u8 | way {
        read.no_number()?;
        let source = read.node("source")?;
        read.spare::<2>()?;
        read.checksum()?;
        let number = read.word()?;
        read.spare::<4>()?;
        return Ok(Report::Anew(Anew { source, way, number }));
    }
    let known = Kind::of(byte).filter(|_| byte & !BEHIND < 16).and_then(Event::of);
    flow::decode_after_way(read, known.ok_or(wrong)?, way).map(Report::Flow)
}

/// What a flow of a list adds to the list's tag, which is the sum of that of all, modulo 2²⁴: the finalizer
/// of MurmurHash3 (32 bits, the published constants) of where it goes, its index and the number of what was
/// last said of it.
#[must_use]
pub fn tag((destination, index): (NodeId, u8), number: u8) -> u32 {
    // Zero would stay zero: the golden ratio's bits keep the first flow of all from adding nothing.
    let flow = destination.get() << 16 | u32::from(index) << 8 | u32::from(number);
    let mut mixed = flow ^ 0x9e37_79b9;
    mixed = (mixed ^ mixed >> 16).wrapping_mul(0x85eb_ca6b);
    mixed = (mixed ^ mixed >> 13).wrapping_mul(0xc2b2_ae35);
    (mixed ^ mixed >> 16) % TAGS
}

/// A tag from the sum of what flows add to it.
#[must_use]
pub fn tag_of_sum(sum: u32) -> u32 {
    sum % TAGS
}

/// What the flows of a node may send, or a part of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rates {
    /// To whom.
    pub node: NodeId,
    /// What is behind it ([`super::way`]).
    pub way: u8,
    /// Counts what the controller has sent to that node, modulo 65,536.
    pub round: u16,
    /// Which part of the list it is, from 0.
    pub part: u8,
    /// The tag of the list of flows; below 2²⁴.
    pub tag: u32,
    /// The rate of each flow of the part; at most [`RATES_MAX`]. What is not limited goes on as it does.
    pub rates: Vec<Kbps>,
}

impl Rates {
    /// The bytes.
    ///
    /// # Panics
    /// If there are too many rates, the tag is too large, or the node's number is not below 65,536.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self { way, tag, part, .. } = *self;
        let count = self.rates.len();
        assert!(count <= RATES_MAX, "{count} rates in a packet of at most {RATES_MAX}");
        assert!(tag < TAGS, "a tag of {tag}");
        assert_eq!(way & !BEHIND, 0, "rates take no tree of their own");
        let head: [u8; HEADER_BYTES] = assemble(&[
            &[Kind::Rates as u8, count as u8 | way],
            &node_bytes(self.node),
            &self.round.to_be_bytes(),
            &[0; 2],
            &(u32::from(part) << 24 | tag).to_be_bytes(),
        ]);
        let rates = self.rates.iter().flat_map(|rate| rate.get().to_be_bytes());
        let mut bytes: Vec<u8> = head.into_iter().chain(rates).collect();
        checksum::seal(&mut bytes);
        bytes
    }
}

/// Bytes of rates, without what is behind them, by their second byte.
pub(super) fn length(bytes: &[u8]) -> usize {
    HEADER_BYTES + RATE_BYTES * usize::from(bytes[1] & 0x0F)
}

/// Whether what begins so is a part of a list after the first.
pub(crate) fn is_later_part(bytes: &[u8]) -> bool {
    bytes[0] & 0x0F == Kind::Rates as u8 && bytes[8] > 0
}

pub(super) fn decode_rates(read: &mut Reader<'_>) -> Result<Rates, WireError> {
    read.no_number()?;
    let byte = read.byte()?;
    let (way, count) = (byte & BEHIND, byte & 0x0F);
    if byte != way | count {
        return Err(WireError::Field { field: "way", value: byte.into() });
    }
    let node = read.node("node")?;
    let round = read.short()?;
    read.checksum()?;
    let word = read.word()?;
    let rates = (0..count).map(|_| read.word().map(Kbps::new)).collect::<Result<_, _>>()?;
    Ok(Rates { node, way, round, part: (word >> 24) as u8, tag: word % TAGS, rates })
}
