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
//! | 1 | kind of the announcement | 0 |
//! | 2, 3 | source | to whom |
//! | 4, 5 | destination | how many |
//! | 6, 7 | checksum | checksum |
//! | 8 to 11 | all else, as of an announcement | round |
//! | then | | Kb/s of each flow of the node, ordered by destination and index |

use rack::NodeId;

use super::read::{Reader, assemble, node_bytes};
use super::{Announcement, Event, Kbps, Kind, SHORT_BYTES, WireError, checksum, flow};

/// Bytes of the head of rates.
pub const HEADER_BYTES: usize = 12;
/// Bytes of a rate.
pub const RATE_BYTES: usize = 4;
/// Most rates in a packet: what the largest packet holds ([`super::batch::BYTES_MAX`]).
pub const RATES_MAX: usize = (super::batch::BYTES_MAX - HEADER_BYTES) / RATE_BYTES;

/// News of a flow for the controller. It takes no tree: the way of the announcement is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report(pub Announcement);

impl Report {
    /// The bytes.
    ///
    /// # Panics
    /// As [`Announcement::encode`], and if the announcement has a way.
    #[must_use]
    pub fn encode(&self) -> [u8; SHORT_BYTES] {
        assert_eq!(self.0.way, 0, "a report takes no tree");
        self.0.encode_as(Kind::Report, self.0.event.kind() as u8)
    }
}

pub(super) fn decode_report(read: &mut Reader<'_>) -> Result<Report, WireError> {
    let kind = read.byte()?;
    let known = Kind::of(kind).filter(|_| kind < 16).and_then(Event::of);
    let wrong = WireError::Field { field: "event", value: u32::from(kind) };
    flow::decode_after_way(read, known.ok_or(wrong)?, 0).map(Report)
}

/// What the flows of a node may send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rates {
    /// To whom.
    pub node: NodeId,
    /// Counts what the controller has computed.
    pub round: u32,
    /// The rate of each flow of the node; at most [`RATES_MAX`].
    pub rates: Vec<Kbps>,
}

impl Rates {
    /// The bytes.
    ///
    /// # Panics
    /// If there are too many rates, or the node's number is not below 65,536.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let count = self.rates.len();
        assert!(count <= RATES_MAX, "{count} rates in a packet of at most {RATES_MAX}");
        let head: [u8; HEADER_BYTES] = assemble(&[
            &[Kind::Rates as u8, 0],
            &node_bytes(self.node),
            &(count as u16).to_be_bytes(),
            &[0; 2],
            &self.round.to_be_bytes(),
        ]);
        let rates = self.rates.iter().flat_map(|rate| rate.get().to_be_bytes());
        let mut bytes: Vec<u8> = head.into_iter().chain(rates).collect();
        checksum::seal(&mut bytes);
        bytes
    }
}

pub(super) fn decode_rates(read: &mut Reader<'_>) -> Result<Rates, WireError> {
    read.no_number()?;
    read.spare::<1>()?;
    let node = read.node("node")?;
    let count = read.short()?;
    if usize::from(count) > RATES_MAX {
        return Err(WireError::Field { field: "number of rates", value: u32::from(count) });
    }
    read.checksum()?;
    let round = read.word()?;
    let rates = (0..count).map(|_| read.word().map(Kbps::new)).collect::<Result<_, _>>()?;
    Ok(Rates { node, round, rates })
}
