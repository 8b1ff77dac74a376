//! Ordered sets: blocks of 8 bytes that cross a link between cells.
//!
//! Models: Aquila §3.1, §3.5, App. B (M204, M213, M216, M218, M613, M912): start of cell, flow control, TimeSync,
//! management, and what brings a link up. **Our choice**: all of their bits. The first four say what a set is.
//!
//! | set | bits after the first four |
//! | --- | --- |
//! | 0 idle | 52 spare, CRC 8 |
//! | 1 start of cell | length in bytes 8, 44 spare, CRC 8 |
//! | 2 flow control | first channel 5, count - 1 2, three limits of 12, 9 spare, CRC 8 |
//! | 3 TimeSync | 4 spare, status 8, time in ticks of 2.5 ns 48 |
//! | 4 latency measurement | is an answer 1, number 11, time in ticks 40, CRC 8 |
//! | 5 management | 4 spare, first 1, last 1, channel 3, sequence 3, data 48 |
//! | 6 physical layer | code 4, 48 spare, CRC 8 |
//! | 7 credit synchronisation | as flow control, with what was consumed |
//!
//! Spare bits are zero, and a set is refused if they are not.

use thiserror::Error;

use super::{bits, checksum};

/// Bytes of an ordered set: a block of the line code (§3.1).
pub const SET_BYTES: u8 = 8;
/// Channels that a set of flow control speaks of (M213, our choice).
pub const CHANNELS_MAX: usize = 3;

/// Cumulative numbers of consecutive virtual channels, modulo 4096, in units of 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counts {
    /// The first channel.
    first: u8,
    /// How many: 1 to 3.
    count: u8,
    /// Theirs, and zeros.
    counts: [u16; CHANNELS_MAX],
}

impl Counts {
    /// Numbers of the channels from `first` on; `None`: there are not 1 to 3 of them, a channel is above 31 or
    /// a number above 4095.
    #[must_use]
    pub fn new(first: u8, counts: &[u16]) -> Option<Self> {
        let fits = (1..=CHANNELS_MAX).contains(&counts.len())
            && usize::from(first) + counts.len() <= usize::from(super::classes::VCS)
            && counts.iter().all(|&count| count < super::credits::MODULUS);
        let mut all = [0; CHANNELS_MAX];
        fits.then(|| {
            all[..counts.len()].copy_from_slice(counts);
            Self { first, count: counts.len() as u8, counts: all }
        })
    }

    /// Channels with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u8, u16)> + '_ {
        (self.first..).zip(self.counts[..usize::from(self.count)].iter().copied())
    }

    fn word(&self) -> u64 {
        let [a, b, c] = self.counts.map(u64::from);
        u64::from(self.first) << 55 | u64::from(self.count - 1) << 53 | a << 41 | b << 29 | c << 17
    }

    fn from_word(word: u64) -> Result<Self, SetError> {
        let (first, count) = (bits(word, 55, 5) as u8, bits(word, 53, 2) as usize + 1);
        let counts = [41, 29, 17].map(|low| bits(word, low, 12) as u16);
        let some = counts.get(..count).and_then(|counts| Self::new(first, counts));
        some.ok_or(SetError::Channels { first, count: count as u8 })
    }
}

/// What a set of the physical layer says (M215, our choice).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Phy {
    /// Here is a line to lock on.
    Train = 0,
    /// The line code is locked.
    Locked = 1,
    /// Limits follow.
    Ready = 2,
    /// The link goes down.
    Down = 3,
    /// Nothing usable arrives.
    Fault = 4,
}

impl Phy {
    const ALL: [Self; 5] = [Self::Train, Self::Locked, Self::Ready, Self::Down, Self::Fault];
}

/// An ordered set.
///
/// ```
/// use aquila::link::ordered_sets::{Counts, OrderedSet};
/// let update = OrderedSet::FlowControl(Counts::new(21, &[80, 4095, 0]).unwrap());
/// assert_eq!(OrderedSet::decode(update.encode()), Ok(update));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OrderedSet {
    /// Nothing to say.
    Idle,
    /// A cell of so many bytes follows.
    StartOfCell {
        /// Unit: bytes.
        length: u8,
    },
    /// What the receiver has granted by now.
    FlowControl(Counts),
    /// The time at which this set went on the wire.
    TimeSync {
        /// How exact it is.
        status: u8,
        /// Below 2^48. Unit: ticks of 2.5 ns.
        ticks: u64,
    },
    /// There and back, so that a channel's delay can be measured.
    Latency {
        /// Whether this is the way back.
        is_answer: bool,
        /// Which of them, below 2^11.
        number: u16,
        /// When it was first sent, by its sender's clock, below 2^40. Unit: ticks of 2.5 ns.
        ticks: u64,
    },
    /// Six bytes for the processor at the other end.
    Management {
        /// The message begins here.
        is_first: bool,
        /// The message ends here.
        is_last: bool,
        /// Below 8.
        channel: u8,
        /// Modulo 8.
        sequence: u8,
        /// Of the message.
        data: [u8; 6],
    },
    /// Of the physical layer.
    Phy(Phy),
    /// What the sender has consumed by now.
    CreditSync(Counts),
}

/// Why eight bytes are no ordered set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum SetError {
    /// Bits were flipped.
    #[error("its checksum is {found:#04x}; expected {expected:#04x}")]
    Checksum {
        /// What stands there.
        found: u8,
        /// What follows from the other bytes.
        expected: u8,
    },
    /// No set begins so.
    #[error("an ordered set of kind {0}; expected 0 to 7")]
    Kind(u8),
    /// Such channels do not exist.
    #[error("{count} channels from {first} on; expected 1 to 3, up to 31")]
    Channels {
        /// The first.
        first: u8,
        /// How many.
        count: u8,
    },
    /// The physical layer has no such code.
    #[error("code {0} of the physical layer; expected 0 to 4")]
    Phy(u8),
    /// Bits are set that have no meaning.
    #[error("spare bits are set")]
    Spare,
}

impl OrderedSet {
    /// Its bytes, as they cross a link.
    ///
    /// # Panics
    /// If a number does not fit its bits.
    #[must_use]
    pub fn encode(&self) -> [u8; 8] {
        let (kind, rest, is_checked) = match *self {
            Self::Idle => (0, 0, true),
            Self::StartOfCell { length } => (1, u64::from(length) << 52, true),
            Self::FlowControl(counts) => (2, counts.word(), true),
            Self::TimeSync { status, ticks } => {
                assert!(ticks < 1 << 48, "{ticks} ticks");
                (3, u64::from(status) << 48 | ticks, false)
            }
            Self::Latency { is_answer, number, ticks } => {
                assert!(number < 1 << 11, "measurement {number}");
                assert!(ticks < 1 << 40, "{ticks} ticks");
                let rest = u64::from(is_answer) << 59 | u64::from(number) << 48 | ticks << 8;
                (4, rest, true)
            }
            Self::Management { is_first, is_last, channel, sequence, data } => {
                assert!(channel < 8, "channel {channel}");
                assert!(sequence < 8, "sequence {sequence}");
                let [a, b, c, d, e, f] = data;
                let flags = u64::from(is_first) << 55 | u64::from(is_last) << 54;
                let place = u64::from(channel) << 51 | u64::from(sequence) << 48;
                (5, flags | place | u64::from_be_bytes([0, 0, a, b, c, d, e, f]), false)
            }
            Self::Phy(code) => (6, (code as u64) << 56, true),
            Self::CreditSync(counts) => (7, counts.word(), true),
        };
        let mut bytes = (kind << 60 | rest).to_be_bytes();
        if is_checked {
            bytes[7] = checksum(bytes);
        }
        bytes
    }

    /// The set of these bytes.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn decode(bytes: [u8; 8]) -> Result<Self, SetError> {
        let word = u64::from_be_bytes(bytes);
        let kind = bytes[0] >> 4;
        let is_checked = !matches!(kind, 3 | 5);
        let (found, expected) = (bytes[7], checksum(bytes));
        if is_checked && found != expected {
            return Err(SetError::Checksum { found, expected });
        }
        let set = match kind {
            0 => Self::Idle,
            1 => Self::StartOfCell { length: bits(word, 52, 8) as u8 },
            2 => Self::FlowControl(Counts::from_word(word)?),
            3 => Self::TimeSync { status: bytes[1], ticks: bits(word, 0, 48) },
            4 => Self::Latency {
                is_answer: bits(word, 59, 1) != 0,
                number: bits(word, 48, 11) as u16,
                ticks: bits(word, 8, 40),
            },
            5 => Self::Management {
                is_first: bits(word, 55, 1) != 0,
                is_last: bits(word, 54, 1) != 0,
                channel: bits(word, 51, 3) as u8,
                sequence: bits(word, 48, 3) as u8,
                data: [bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]],
            },
            6 => {
                let code = bits(word, 56, 4) as u8;
                let known = Phy::ALL.get(usize::from(code)).copied();
                Self::Phy(known.ok_or(SetError::Phy(code))?)
            }
            7 => Self::CreditSync(Counts::from_word(word)?),
            _ => return Err(SetError::Kind(kind)),
        };
        if set.encode() == bytes { Ok(set) } else { Err(SetError::Spare) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn counts() -> impl Strategy<Value = Counts> {
        (0..30u8, prop::collection::vec(0..4096u16, 1..=3))
            .prop_map(|(first, counts)| Counts::new(first, &counts).unwrap())
    }

    /// Any set.
    fn sets() -> impl Strategy<Value = OrderedSet> {
        let time = (any::<u8>(), 0..1u64 << 48);
        let latency = (any::<bool>(), 0..1u16 << 11, 0..1u64 << 40);
        let management = (any::<bool>(), any::<bool>(), 0..8u8, 0..8u8, any::<[u8; 6]>());
        prop_oneof![
            Just(OrderedSet::Idle),
            any::<u8>().prop_map(|length| OrderedSet::StartOfCell { length }),
            counts().prop_map(OrderedSet::FlowControl),
            time.prop_map(|(status, ticks)| OrderedSet::TimeSync { status, ticks }),
            latency.prop_map(|(is_answer, number, ticks)| OrderedSet::Latency {
                is_answer,
                number,
                ticks
            }),
            management.prop_map(|(is_first, is_last, channel, sequence, data)| {
                OrderedSet::Management { is_first, is_last, channel, sequence, data }
            }),
            prop::sample::select(&Phy::ALL[..]).prop_map(OrderedSet::Phy),
            counts().prop_map(OrderedSet::CreditSync),
        ]
    }

    proptest! {
        #[test]
        fn m204_every_set_comes_back(set in sets()) {
            prop_assert_eq!(OrderedSet::decode(set.encode()), Ok(set));
        }

        #[test]
        fn m204_any_bytes_are_refused_or_written_back_the_same(bytes in any::<[u8; 8]>()) {
            let mut sealed = bytes;
            sealed[7] = checksum(bytes);
            for bytes in [bytes, sealed] {
                if let Ok(set) = OrderedSet::decode(bytes) {
                    prop_assert_eq!(set.encode(), bytes);
                }
            }
        }

        #[test]
        fn m213_damaged_counts_are_never_taken_for_others(counts in counts(), a in 0..60, b in 0..60) {
            for set in [OrderedSet::FlowControl(counts), OrderedSet::CreditSync(counts)] {
                let error = 1u64 << a | 1u64 << b;
                let arrived: u64 = u64::from_be_bytes(set.encode()) ^ error;
                let decoded = OrderedSet::decode(arrived.to_be_bytes());
                let is_caught = matches!(decoded, Err(SetError::Checksum { .. }));
                prop_assert!(is_caught, "{:?}", decoded);
            }
        }
    }

    #[test]
    fn m213_channels_that_do_not_exist_are_refused() {
        assert_eq!(Counts::new(30, &[1, 2, 3]), None);
        assert_eq!(Counts::new(0, &[]), None);
        assert_eq!(Counts::new(0, &[4096]), None);
        let counts = Counts::new(29, &[1, 2, 3]).unwrap();
        assert_eq!(counts.iter().collect::<Vec<_>>(), [(29, 1), (30, 2), (31, 3)]);
        // A count of four, with the right checksum.
        let mut bytes = [0x20, 0x60, 0, 0, 0, 0, 0, 0];
        bytes[7] = checksum(bytes);
        assert_eq!(OrderedSet::decode(bytes), Err(SetError::Channels { first: 0, count: 4 }));
    }
}
