//! The handshake of IP packets: request to send, clear to send or to drop, data.

use kernel::Bytes;

use super::{PayloadError, bits, exactly, put};
use crate::link::header::{CELL_MAX, CELL_MIN, CELL_STEP, HEADER_BYTES};

/// A place in a buffer, and which use of it this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pointer {
    /// Below 2^20.
    pub slot: u32,
    /// Modulo 16.
    pub generation: u8,
}

impl Pointer {
    fn put(self, low: u32) -> u64 {
        put(self.slot.into(), low + 4, 20) | put(self.generation.into(), low, 4)
    }

    const fn at(word: u64, low: u32) -> Self {
        Self { slot: bits(word, low + 4, 20) as u32, generation: bits(word, low, 4) as u8 }
    }
}

/// Longest packet that a request can name. Unit: bytes.
pub const LENGTH_MAX: u16 = (1 << 14) - 1;

/// What a request to send says (§3.3, M408), 8 bytes:
///
/// | bits | field | width |
/// | --- | --- | --- |
/// | 63-50 | length of the packet in bytes | 14 |
/// | 49-47 | class of service | 3 |
/// | 46-27 | place in the ingress buffer | 20 |
/// | 26-23 | generation of that place | 4 |
/// | 22-19 | how full the ingress buffer is, in sixteenths | 4 |
/// | 18-17 | egress port | 2 |
/// | 16 | may be marked | 1 |
/// | 15 | no IP, encapsulated | 1 |
/// | 14-3 | hash of the flow | 12 |
/// | 2-0 | spare | 3 |
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rts {
    /// Below 2^14. Unit: bytes.
    pub length: u16,
    /// 0 to 7.
    pub class_of_service: u8,
    /// Where the packet waits.
    pub ingress: Pointer,
    /// How full the buffer is there, 0 to 15 sixteenths.
    pub usage: u8,
    /// Which port of the destination it is for, 0 to 3.
    pub egress_port: u8,
    /// Whether it may be marked (ECN).
    pub may_be_marked: bool,
    /// Whether it is no IP packet.
    pub is_encapsulated: bool,
    /// Of its flow, below 2^12; 0 if unused.
    pub flow_hash: u16,
}

impl Rts {
    /// Its bytes behind the header.
    ///
    /// # Panics
    /// If a field is wider than its bits.
    #[must_use]
    pub fn encode(&self) -> [u8; 8] {
        self.word().to_be_bytes()
    }

    /// The same as one word.
    ///
    /// # Panics
    /// As [`Rts::encode`].
    #[must_use]
    pub fn word(&self) -> u64 {
        put(self.length.into(), 50, 14)
            | put(self.class_of_service.into(), 47, 3)
            | self.ingress.put(23)
            | put(self.usage.into(), 19, 4)
            | put(self.egress_port.into(), 17, 2)
            | put(self.may_be_marked.into(), 16, 1)
            | put(self.is_encapsulated.into(), 15, 1)
            | put(self.flow_hash.into(), 3, 12)
    }

    /// What the bytes behind a header say.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn decode(bytes: &[u8]) -> Result<Self, PayloadError> {
        Self::of_word(u64::from_be_bytes(exactly(bytes)?))
    }

    /// What [`Rts::word`] says.
    ///
    /// # Errors
    /// Spare bits are set.
    pub fn of_word(word: u64) -> Result<Self, PayloadError> {
        if bits(word, 0, 3) != 0 {
            return Err(PayloadError::Spare);
        }
        Ok(Self {
            length: bits(word, 50, 14) as u16,
            class_of_service: bits(word, 47, 3) as u8,
            ingress: Pointer::at(word, 23),
            usage: bits(word, 19, 4) as u8,
            egress_port: bits(word, 17, 2) as u8,
            may_be_marked: bits(word, 16, 1) != 0,
            is_encapsulated: bits(word, 15, 1) != 0,
            flow_hash: bits(word, 3, 12) as u16,
        })
    }
}

/// What an answer to a request says, to send or to drop (§3.3, M414, M415), 8 bytes: ingress place 20,
/// generation 4, egress place 20, generation 4, spare 16.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Clear {
    /// Where the packet waits, as the request said.
    pub ingress: Pointer,
    /// Where it is to be put together; zero where it is to be dropped.
    pub egress: Pointer,
}

impl Clear {
    /// Its bytes behind the header.
    ///
    /// # Panics
    /// If a field is wider than its bits.
    #[must_use]
    pub fn encode(&self) -> [u8; 8] {
        self.word().to_be_bytes()
    }

    /// The same as one word.
    ///
    /// # Panics
    /// As [`Clear::encode`].
    #[must_use]
    pub fn word(&self) -> u64 {
        self.ingress.put(40) | self.egress.put(16)
    }

    /// What the bytes behind a header say.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn decode(bytes: &[u8]) -> Result<Self, PayloadError> {
        Self::of_word(u64::from_be_bytes(exactly(bytes)?))
    }

    /// What [`Clear::word`] says.
    ///
    /// # Errors
    /// Spare bits are set.
    pub fn of_word(word: u64) -> Result<Self, PayloadError> {
        if bits(word, 0, 16) != 0 {
            return Err(PayloadError::Spare);
        }
        Ok(Self { ingress: Pointer::at(word, 40), egress: Pointer::at(word, 16) })
    }
}

/// Bytes of a data cell's own header, behind that of all cells (M417).
pub const DATA_HEADER_BYTES: u8 = 4;
/// The index that says: the packet turned out to be bad, drop it (M421).
pub const ABORT: u8 = 127;
/// Most cells of a packet: indices below [`ABORT`].
pub const DATA_CELLS_MAX: u8 = ABORT;

/// What a data cell says of itself (M417, U22, our choice: the paper names no such header, yet the receiver
/// must know the place), 4 bytes: egress place 20, generation 4, index 7, is the last 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Data {
    /// Where the packet is put together, as the clearance said.
    pub egress: Pointer,
    /// Which cell of the packet, below 128; [`ABORT`]: none.
    pub index: u8,
    /// Whether it is the last.
    pub is_last: bool,
}

impl Data {
    /// Its bytes behind the header.
    ///
    /// # Panics
    /// If a field is wider than its bits.
    #[must_use]
    pub fn encode(&self) -> [u8; 4] {
        (self.word() as u32).to_be_bytes()
    }

    /// The same as a word, in its lower half.
    ///
    /// # Panics
    /// As [`Data::encode`].
    #[must_use]
    pub fn word(&self) -> u64 {
        self.egress.put(8) | put(self.index.into(), 1, 7) | put(self.is_last.into(), 0, 1)
    }

    /// What [`Data::word`] says.
    #[must_use]
    pub const fn of_word(word: u64) -> Self {
        Self {
            egress: Pointer::at(word, 8),
            index: bits(word, 1, 7) as u8,
            is_last: bits(word, 0, 1) != 0,
        }
    }

    /// What the first four bytes behind a header say, and the payload behind them.
    ///
    /// # Errors
    /// There are fewer.
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), PayloadError> {
        let error = PayloadError::Length { found: bytes.len(), expected: 4 };
        let (&first, payload) = bytes.split_first_chunk().ok_or(error)?;
        Ok((Self::of_word(u32::from_be_bytes(first).into()), payload))
    }
}

/// Bytes of the data cells of a packet of so many bytes, where each has so many of a header of its own: 4, or
/// 0 as the paper reckons (§6). The last cell is filled up to a multiple of 8.
#[must_use]
pub fn wire_bytes(packet: u32, data_header: u8) -> Bytes {
    let headers = HEADER_BYTES + data_header;
    let each = u64::from(CELL_MAX - headers);
    let (whole, rest) = (u64::from(packet) / each, u64::from(packet) % each);
    let last = match rest {
        0 if whole > 0 => 0,
        rest => (rest + u64::from(headers)).next_multiple_of(CELL_STEP.into()).max(CELL_MIN.into()),
    };
    Bytes::new(whole * u64::from(CELL_MAX) + last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pointers() -> impl Strategy<Value = Pointer> {
        (0..1u32 << 20, 0..16u8).prop_map(|(slot, generation)| Pointer { slot, generation })
    }

    fn requests() -> impl Strategy<Value = Rts> {
        let first = (0..1u16 << 14, 0..8u8, pointers(), 0..16u8);
        let second = (0..4u8, any::<bool>(), any::<bool>(), 0..1u16 << 12);
        (first, second).prop_map(|((length, class_of_service, ingress, usage), second)| {
            let (egress_port, may_be_marked, is_encapsulated, flow_hash) = second;
            Rts {
                length,
                class_of_service,
                ingress,
                usage,
                egress_port,
                may_be_marked,
                is_encapsulated,
                flow_hash,
            }
        })
    }

    proptest! {
        #[test]
        fn m408_every_request_comes_back(rts in requests()) {
            prop_assert_eq!(Rts::decode(&rts.encode()), Ok(rts));
        }

        #[test]
        fn m414_every_clearance_comes_back(ingress in pointers(), egress in pointers()) {
            let clear = Clear { ingress, egress };
            prop_assert_eq!(Clear::decode(&clear.encode()), Ok(clear));
        }

        #[test]
        fn m417_every_data_header_comes_back(
            egress in pointers(),
            index in 0..128u8,
            is_last in any::<bool>(),
            payload in prop::collection::vec(any::<u8>(), 0..=148),
        ) {
            let data = Data { egress, index, is_last };
            let bytes = [&data.encode()[..], &payload].concat();
            prop_assert_eq!(Data::decode(&bytes), Ok((data, &payload[..])));
        }

        #[test]
        fn m408_any_bytes_are_refused_or_written_back_the_same(
            bytes in prop::collection::vec(any::<u8>(), 0..12),
        ) {
            if let Ok(rts) = Rts::decode(&bytes) {
                prop_assert_eq!(&rts.encode()[..], &bytes[..]);
            }
            if let Ok(clear) = Clear::decode(&bytes) {
                prop_assert_eq!(&clear.encode()[..], &bytes[..]);
            }
            if let Ok((data, payload)) = Data::decode(&bytes) {
                prop_assert_eq!([&data.encode()[..], payload].concat(), bytes);
            }
        }
    }

    #[test]
    fn m408_the_layout_in_bits() {
        let rts = Rts {
            length: 0x3FFF,
            class_of_service: 0,
            ingress: Pointer { slot: 0xF_FFFF, generation: 0 },
            usage: 15,
            egress_port: 0,
            may_be_marked: true,
            is_encapsulated: false,
            flow_hash: 0xFFF,
        };
        let ones = [(50, 14), (27, 20), (19, 4), (16, 1), (3, 12)];
        let word = ones.iter().map(|&(low, width)| ((1u64 << width) - 1) << low).sum::<u64>();
        assert_eq!(rts.encode(), word.to_be_bytes());
    }

    #[test]
    fn m408_spare_bits_and_short_cells_are_refused() {
        assert_eq!(Rts::decode(&[0, 0, 0, 0, 0, 0, 0, 1]), Err(PayloadError::Spare));
        assert_eq!(Rts::decode(&[0; 7]), Err(PayloadError::Length { found: 7, expected: 8 }));
        assert_eq!(Clear::decode(&[1; 8]), Err(PayloadError::Spare));
        assert_eq!(Data::decode(&[0; 3]), Err(PayloadError::Length { found: 3, expected: 4 }));
    }
}
