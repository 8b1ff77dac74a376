//! The tag of data that is not simply what was reserved.
//!
//! Models: PL2 §4.4 (claims M12, M13, M17, M25): unsolicited packets are marked "by using a spare
//! packet header field". **Our choice** is a tag of four bytes before the frame's type, as 802.1Q has
//! it, with what receiver and switch need beside the mark: which of the two copies of a burst it is,
//! and whether the switch has taken the burst off its counters already. Ordinary data has no tag.
//!
//! | bits | field |
//! | --- | --- |
//! | 16 | type 0x88B6, for local experiments (IEEE 802 §9.2.3.4) |
//! | 2 | kind: 0 outside all reservations, 1 unsolicited, 2 retransmitted, 3 retransmitted and not counted |
//! | 6 | thread of the requester |
//! | 4 | unsolicited burst of this thread to this destination, modulo 16 |
//! | 4 | packet of the burst |
//!
//! In kind 0 the other bits are zero but the last, so that no tag is all zeros.

use kernel::Bytes;

use super::WireError;

/// Bytes that a tag adds to a frame.
pub const TAG: Bytes = Bytes::new(4);
/// The type of the second local experiment (IEEE 802 §9.2.3.4).
const TYPE: u16 = 0x88B6;
/// Threads that a tag tells apart.
pub const THREADS_MAX: u32 = 64;
/// Packets of a burst that a tag tells apart.
pub const BURST_MAX: u32 = 16;
/// Unsolicited bursts that a tag tells apart.
pub const BURSTS: u8 = 16;

/// Which packet of which burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// The thread of the requester; below [`THREADS_MAX`].
    pub thread: u8,
    /// The burst among the unsolicited ones of thread and destination, modulo [`BURSTS`].
    pub burst: u8,
    /// The packet in it; below [`BURST_MAX`].
    pub index: u8,
}

/// What a tag says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tag {
    /// No slot was reserved for this packet: the switch does not count it.
    Unreserved,
    /// It goes before its grant is there.
    Unsolicited(Place),
    /// It is retransmitted, in the slot that was granted.
    Again(Place),
    /// It is retransmitted, and the switch has counted its first copy.
    AgainUncounted(Place),
}

impl Tag {
    /// The same packet, of which the switch takes nothing off.
    #[must_use]
    pub fn uncounted(self) -> Self {
        self.place().map_or(Self::Unreserved, Self::AgainUncounted)
    }

    /// The 16 bits that follow the type; never zero.
    #[must_use]
    pub fn bits(self) -> u16 {
        let (kind, place) = match self {
            Self::Unreserved => return 1,
            Self::Unsolicited(place) => (1, place),
            Self::Again(place) => (2, place),
            Self::AgainUncounted(place) => (3, place),
        };
        let Place { thread, burst, index } = place;
        debug_assert!(u32::from(thread) < THREADS_MAX && u32::from(index) < BURST_MAX);
        kind << 14 | u16::from(thread) << 8 | u16::from(burst % BURSTS) << 4 | u16::from(index)
    }

    /// The tag of these bits; `None`: no writer writes them.
    #[must_use]
    pub fn from_bits(bits: u16) -> Option<Self> {
        let place = Place {
            thread: (bits >> 8 & 0x3F) as u8,
            burst: (bits >> 4 & 0xF) as u8,
            index: (bits & 0xF) as u8,
        };
        match bits >> 14 {
            0 => (bits == 1).then_some(Self::Unreserved),
            1 => Some(Self::Unsolicited(place)),
            2 => Some(Self::Again(place)),
            _ => Some(Self::AgainUncounted(place)),
        }
    }

    /// The tag as it stands in a frame, after the addresses.
    #[must_use]
    pub fn encode(self) -> [u8; 4] {
        (u32::from(TYPE) << 16 | u32::from(self.bits())).to_be_bytes()
    }

    /// Reads what follows a frame's addresses: a tag, or none.
    ///
    /// # Errors
    /// If there is less than a type, or a tag that no writer writes.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, WireError> {
        let short = |expected| WireError::Length { expected, found: bytes.len() };
        let kind = bytes.first_chunk::<2>().ok_or(short(2))?;
        if u16::from_be_bytes(*kind) != TYPE {
            return Ok(None);
        }
        let field = bytes.get(2..).and_then(|rest| rest.first_chunk::<2>()).ok_or(short(4))?;
        let bits = u16::from_be_bytes(*field);
        let wrong = WireError::Field { field: "tag", value: bits.into() };
        Self::from_bits(bits).ok_or(wrong).map(Some)
    }

    /// Which packet of which burst it is, where that is told.
    #[must_use]
    pub fn place(self) -> Option<Place> {
        match self {
            Self::Unreserved => None,
            Self::Unsolicited(place) | Self::Again(place) | Self::AgainUncounted(place) => {
                Some(place)
            }
        }
    }
}
