//! Frames of PMOS, and the words that carry them.

use aquila::link::ordered_sets::OrderedSet;
use thiserror::Error;

/// Most bytes that a frame carries (M614, our choice): a packet of Ethernet.
pub const DATA_BYTES_MAX: usize = 1_500;
/// Length 2, kind 1, sequence 1, session 2.
pub const HEADER_BYTES: usize = 6;
/// CRC-32 of all before it.
pub const CHECKSUM_BYTES: usize = 4;
/// Of a largest frame.
pub const FRAME_BYTES_MAX: usize = HEADER_BYTES + DATA_BYTES_MAX + CHECKSUM_BYTES;
/// Bytes of a frame in a management ordered set (§3.5).
pub const WORD_BYTES: usize = 6;

/// What a frame carries (M614, our choice).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// DHCP, of a TiN that has no address yet (§4.4).
    Dhcp = 1,
    /// Requests and answers about registers.
    Rpc = 2,
    /// What people look at.
    Debug = 3,
    /// Nothing: how far frames have come.
    Ack = 4,
    /// Nothing: frames of a session whose beginning the receiver does not know.
    Unknown = 5,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Dhcp, Self::Rpc, Self::Debug, Self::Ack, Self::Unknown];

    /// Whether it is kept until the other end has it, and delivered.
    #[must_use]
    pub const fn is_data(self) -> bool {
        matches!(self, Self::Dhcp | Self::Rpc | Self::Debug)
    }
}

/// A frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// What it carries.
    pub kind: Kind,
    /// Its number in its session, modulo 256; of an ACK the one that is expected next.
    pub sequence: u8,
    /// Which life of its sender; of an ACK that of the frames it is about.
    pub session: u16,
    /// At most [`DATA_BYTES_MAX`].
    pub data: Vec<u8>,
}

/// Why bytes are no frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum FrameError {
    /// It says another length.
    #[error(
        "{found} bytes that say they carry {said}; expected at most {DATA_BYTES_MAX}, with zeros to whole words"
    )]
    Length {
        /// What there is, with padding.
        found: usize,
        /// What it says it carries.
        said: usize,
    },
    /// Bits were flipped, or words are missing.
    #[error("its checksum is {found:#010x}; expected {expected:#010x}")]
    Checksum {
        /// What stands there.
        found: u32,
        /// What follows from the other bytes.
        expected: u32,
    },
    /// No frame is of this kind, or it carries what its kind does not.
    #[error("a frame of kind {0}; expected 1 to 5, without data in 4 and 5")]
    Kind(u8),
}

impl Frame {
    /// Its bytes, with zeros at the end so that they fill words.
    ///
    /// # Panics
    /// If it carries too much.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        assert!(self.data.len() <= DATA_BYTES_MAX, "a frame with {} bytes", self.data.len());
        let mut bytes = (self.data.len() as u16).to_be_bytes().to_vec();
        bytes.extend([self.kind as u8, self.sequence]);
        bytes.extend(self.session.to_be_bytes());
        bytes.extend(&self.data);
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        bytes.resize(bytes.len().next_multiple_of(WORD_BYTES), 0);
        bytes
    }

    /// The frame of these bytes.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        let found = bytes.len();
        let Some((&[high, low, kind, sequence, one, two], rest)) =
            bytes.split_first_chunk::<HEADER_BYTES>()
        else {
            return Err(FrameError::Length { found, said: 0 });
        };
        let said = usize::from(u16::from_be_bytes([high, low]));
        let whole = (HEADER_BYTES + said + CHECKSUM_BYTES).next_multiple_of(WORD_BYTES);
        if said > DATA_BYTES_MAX || whole != found {
            return Err(FrameError::Length { found, said });
        }
        let (data, rest) = rest.split_at(said);
        let (&checksum, padding) =
            rest.split_first_chunk::<CHECKSUM_BYTES>().expect("the length was held against it");
        let (checksum, expected) =
            (u32::from_be_bytes(checksum), crc32fast::hash(&bytes[..HEADER_BYTES + said]));
        if checksum != expected {
            return Err(FrameError::Checksum { found: checksum, expected });
        }
        if padding.iter().any(|&byte| byte != 0) {
            return Err(FrameError::Length { found, said });
        }
        let known = Kind::ALL.into_iter().find(|&known| known as u8 == kind);
        let fits = |kind: &Kind| kind.is_data() || said == 0;
        let kind = known.filter(fits).ok_or(FrameError::Kind(kind))?;
        let session = u16::from_be_bytes([one, two]);
        Ok(Self { kind, sequence, session, data: data.to_vec() })
    }
}

/// Cuts the bytes of a frame into management ordered sets (M613).
#[derive(Clone, Debug)]
pub struct Words {
    bytes: Vec<u8>,
    next: usize,
    channel: u8,
}

impl Words {
    /// Words of a frame on a channel below 8.
    #[must_use]
    pub fn new(frame: &Frame, channel: u8) -> Self {
        Self { bytes: frame.encode(), next: 0, channel }
    }
}

impl Iterator for Words {
    type Item = OrderedSet;

    fn next(&mut self) -> Option<OrderedSet> {
        let (words, _) = self.bytes.as_chunks::<WORD_BYTES>();
        let at = self.next;
        let data = *words.get(at)?;
        self.next += 1;
        Some(OrderedSet::Management {
            is_first: at == 0,
            is_last: self.next == words.len(),
            channel: self.channel,
            sequence: (at % 8) as u8,
            data,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.bytes.len() / WORD_BYTES - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Words {}

/// Puts frames together from the words of one channel. What misses a word is dropped.
#[derive(Clone, Debug, Default)]
pub struct Joiner {
    bytes: Vec<u8>,
    /// Whether the first word has come, and none is missing since.
    is_whole: bool,
}

impl Joiner {
    /// A word has come; `Some`: it was the last of a frame, or of what looked like one.
    pub fn receive(
        &mut self,
        (is_first, is_last, sequence): (bool, bool, u8),
        data: [u8; WORD_BYTES],
    ) -> Option<Result<Frame, FrameError>> {
        if is_first {
            self.bytes.clear();
            self.is_whole = true;
        }
        let at = self.bytes.len() / WORD_BYTES;
        let fits = self.bytes.len() < FRAME_BYTES_MAX && usize::from(sequence) == at % 8;
        self.is_whole &= fits;
        if !self.is_whole {
            return None;
        }
        self.bytes.extend(data);
        is_last.then(|| {
            self.is_whole = false;
            Frame::decode(&self.bytes)
        })
    }
}
