//! Remote memory: requests, responses, writes and atomic operations.

use super::{PayloadError, bits, exactly, put};

/// Bytes of a request behind the header: 48 with it (§3.4).
pub const REQUEST_BYTES: usize = 40;
/// Bytes of an atomic request behind the header: two operands more.
pub const ATOMIC_BYTES: usize = 56;
/// Bytes of a response's own header.
pub const RESPONSE_HEADER_BYTES: usize = 8;
/// Most bytes that a request asks for (M505, our choice).
pub const LENGTH_MAX: u16 = 4096;
/// Bytes that a cell has at hand in a switch; the others are kept aside.
const WORD_BYTES: usize = 8;
/// Bytes of a tag that proves where a request or response comes from.
pub const TAG_BYTES: usize = 16;

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Operation {
    /// Bytes of memory.
    Read = 1,
    /// That the target fetches bytes and writes them.
    Write = 2,
    /// That 8 bytes be replaced if they are what the first operand says; the second is the new value.
    CompareAndSwap = 3,
    /// That the first operand be added to 8 bytes.
    FetchAndAdd = 4,
}

impl Operation {
    const ALL: [Self; 4] = [Self::Read, Self::Write, Self::CompareAndSwap, Self::FetchAndAdd];

    /// Whether it has operands.
    #[must_use]
    pub const fn is_atomic(self) -> bool {
        matches!(self, Self::CompareAndSwap | Self::FetchAndAdd)
    }
}

/// What a request asks for (§3.4, M504, M510), 40 bytes:
///
/// | byte | field | bits |
/// | --- | --- | --- |
/// | 0 | operation | 8 |
/// | 1 | class of service 3, low-latency half 1, was marked 1, spare 3 | 8 |
/// | 2 | length in bytes | 16 |
/// | 4 | command slot | 16 |
/// | 6 | segment | 8 |
/// | 7 | generation | 8 |
/// | 8 | region | 32 |
/// | 12 | key | 32 |
/// | 16 | address in the host, or offset in the region | 64 |
/// | 24 | tag | 128 |
///
/// Atomic operations have two operands of 64 bits more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// What to do.
    pub operation: Operation,
    /// 0 to 7.
    pub class_of_service: u8,
    /// Whether the answer is to go in the half that is to be fast.
    pub is_low_latency: bool,
    /// Whether the network marked it.
    pub is_marked: bool,
    /// At most 4096. Unit: bytes.
    pub length: u16,
    /// The initiator's command.
    pub slot: u16,
    /// Which part of the command.
    pub segment: u8,
    /// Which use of the slot.
    pub generation: u8,
    /// The region of memory.
    pub region: u32,
    /// Who asks.
    pub key: u32,
    /// Where.
    pub address: u64,
    /// Proves that the asker may.
    pub tag: [u8; TAG_BYTES],
    /// Of an atomic operation, else zeros.
    pub operands: [u64; 2],
}

impl Request {
    /// Its bytes behind the header: 40, or 56 of an atomic operation.
    ///
    /// # Panics
    /// If the class of service or the length is out of range, or another operation has operands.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        assert!(self.length <= LENGTH_MAX, "{} bytes", self.length);
        assert!(self.operation.is_atomic() || self.operands == [0; 2], "{:?}", self.operation);
        let flags = put(self.class_of_service.into(), 5, 3)
            | put(self.is_low_latency.into(), 4, 1)
            | put(self.is_marked.into(), 3, 1);
        let mut bytes = Vec::with_capacity(ATOMIC_BYTES);
        bytes.extend([self.operation as u8, flags as u8]);
        bytes.extend(self.length.to_be_bytes());
        bytes.extend(self.slot.to_be_bytes());
        bytes.extend([self.segment, self.generation]);
        bytes.extend(self.region.to_be_bytes());
        bytes.extend(self.key.to_be_bytes());
        bytes.extend(self.address.to_be_bytes());
        bytes.extend(self.tag);
        if self.operation.is_atomic() {
            bytes.extend(self.operands.iter().flat_map(|operand| operand.to_be_bytes()));
        }
        bytes
    }

    /// What the bytes behind a header ask for.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn decode(bytes: &[u8]) -> Result<Self, PayloadError> {
        let short = PayloadError::Length { found: bytes.len(), expected: REQUEST_BYTES };
        let (fixed, rest) = bytes.split_first_chunk::<REQUEST_BYTES>().ok_or(short)?;
        let operation = Operation::ALL.into_iter().find(|&op| op as u8 == fixed[0]);
        let operation = operation.ok_or(PayloadError::Value {
            field: "operation",
            value: fixed[0].into(),
            expected: "1 to 4",
        })?;
        let expected = if operation.is_atomic() { ATOMIC_BYTES } else { REQUEST_BYTES };
        if bytes.len() != expected {
            return Err(PayloadError::Length { found: bytes.len(), expected });
        }
        let flags = u64::from(fixed[1]);
        let length = u16::from_be_bytes(part(fixed, 2));
        if bits(flags, 0, 3) != 0 {
            return Err(PayloadError::Spare);
        }
        if length > LENGTH_MAX {
            let value = length.into();
            return Err(PayloadError::Value { field: "length", value, expected: "4096 at most" });
        }
        let operands = match operation.is_atomic() {
            true => [0, 8].map(|at| u64::from_be_bytes(part(rest, at))),
            false => [0; 2],
        };
        Ok(Self {
            operation,
            class_of_service: bits(flags, 5, 3) as u8,
            is_low_latency: bits(flags, 4, 1) != 0,
            is_marked: bits(flags, 3, 1) != 0,
            length,
            slot: u16::from_be_bytes(part(fixed, 4)),
            segment: fixed[6],
            generation: fixed[7],
            region: u32::from_be_bytes(part(fixed, 8)),
            key: u32::from_be_bytes(part(fixed, 12)),
            address: u64::from_be_bytes(part(fixed, 16)),
            tag: part(fixed, 24),
            operands,
        })
    }
}

impl Request {
    /// Its first eight bytes behind the header as a word, and those behind them.
    #[must_use]
    pub fn parts(&self) -> (u64, Vec<u8>) {
        let mut bytes = self.encode();
        let rest = bytes.split_off(WORD_BYTES);
        (bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)), rest)
    }

    /// The request of these parts.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn of_parts(word: u64, rest: &[u8]) -> Result<Self, PayloadError> {
        let mut bytes = [0; ATOMIC_BYTES];
        let length = WORD_BYTES + rest.len();
        let found = PayloadError::Length { found: length, expected: REQUEST_BYTES };
        bytes.get_mut(WORD_BYTES..length).ok_or(found)?.copy_from_slice(rest);
        bytes[..WORD_BYTES].copy_from_slice(&word.to_be_bytes());
        Self::decode(&bytes[..length])
    }
}

/// `N` bytes from `at` on.
///
/// # Panics
/// If there are fewer: the caller has looked.
fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a slice of this length")
}

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Status {
    /// Well.
    Done = 0,
    /// Its tag is wrong.
    BadTag = 1,
    /// It reaches beyond its region.
    OutOfBounds = 2,
    /// There is no such region, or not any more.
    NoRegion = 3,
    /// The key may not do this.
    Forbidden = 4,
    /// The host did not answer.
    HostError = 5,
}

impl Status {
    const ALL: [Self; 6] = [
        Self::Done,
        Self::BadTag,
        Self::OutOfBounds,
        Self::NoRegion,
        Self::Forbidden,
        Self::HostError,
    ];
}

/// What a response says of itself (§3.4, M507), 8 bytes: command slot 16, segment 8, generation 8, offset in
/// units of 8 bytes 16, length in units of 8 bytes 8, status 8. What was read follows, and a tag of 16 bytes
/// where responses have one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Response {
    /// The initiator's command.
    pub slot: u16,
    /// Which part of the command.
    pub segment: u8,
    /// Which use of the slot.
    pub generation: u8,
    /// Where in the segment these bytes belong. Unit: 8 bytes.
    pub offset: u16,
    /// How many they are. Unit: 8 bytes.
    pub length: u8,
    /// How it ended.
    pub status: Status,
}

impl Response {
    /// Its bytes behind the header as a word.
    #[must_use]
    pub fn word(&self) -> u64 {
        u64::from(self.slot) << 48
            | u64::from(self.segment) << 40
            | u64::from(self.generation) << 32
            | u64::from(self.offset) << 16
            | u64::from(self.length) << 8
            | self.status as u64
    }

    /// Its bytes behind the header.
    #[must_use]
    pub fn encode(&self) -> [u8; RESPONSE_HEADER_BYTES] {
        self.word().to_be_bytes()
    }

    /// What the first eight bytes behind a header say, and what follows them.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), PayloadError> {
        let expected = RESPONSE_HEADER_BYTES;
        let error = PayloadError::Length { found: bytes.len(), expected };
        let (first, rest) = bytes.split_at_checked(expected).ok_or(error)?;
        Ok((Self::of_word(u64::from_be_bytes(exactly(first)?))?, rest))
    }

    /// What a word says.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of_word(word: u64) -> Result<Self, PayloadError> {
        let status = bits(word, 0, 8) as u8;
        let status = Status::ALL.get(usize::from(status)).copied().ok_or(PayloadError::Value {
            field: "status",
            value: status.into(),
            expected: "0 to 5",
        })?;
        Ok(Self {
            slot: bits(word, 48, 16) as u16,
            segment: bits(word, 40, 8) as u8,
            generation: bits(word, 32, 8) as u8,
            offset: bits(word, 16, 16) as u16,
            length: bits(word, 8, 8) as u8,
            status,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn requests() -> impl Strategy<Value = Request> {
        let first = (
            prop::sample::select(&Operation::ALL[..]),
            0..8u8,
            any::<bool>(),
            any::<bool>(),
            0..=LENGTH_MAX,
            any::<(u16, u8, u8)>(),
        );
        let second = any::<(u32, u32, u64, [u8; 16], [u64; 2])>();
        (first, second).prop_map(|(first, (region, key, address, tag, operands))| {
            let (operation, class_of_service, is_low_latency, is_marked, length, place) = first;
            let (slot, segment, generation) = place;
            let operands = if operation.is_atomic() { operands } else { [0; 2] };
            Request {
                operation,
                class_of_service,
                is_low_latency,
                is_marked,
                length,
                slot,
                segment,
                generation,
                region,
                key,
                address,
                tag,
                operands,
            }
        })
    }

    proptest! {
        #[test]
        fn m504_m510_every_request_comes_back(request in requests()) {
            let bytes = request.encode();
            let expected = if request.operation.is_atomic() { 64 } else { 48 };
            prop_assert_eq!(bytes.len() + 8, expected, "a cell of 48 B, or 64 with operands");
            prop_assert_eq!(Request::decode(&bytes), Ok(request));
            let (word, rest) = request.parts();
            prop_assert_eq!(Request::of_parts(word, &rest), Ok(request));
        }

        #[test]
        fn m507_every_response_comes_back(
            (slot, segment, generation, offset, length) in any::<(u16, u8, u8, u16, u8)>(),
            status in prop::sample::select(&Status::ALL[..]),
            payload in prop::collection::vec(any::<u8>(), 0..=144),
        ) {
            let response = Response { slot, segment, generation, offset, length, status };
            let bytes = [&response.encode()[..], &payload].concat();
            prop_assert_eq!(Response::decode(&bytes), Ok((response, &payload[..])));
        }

        #[test]
        fn m504_any_bytes_are_refused_or_written_back_the_same(
            mut bytes in prop::collection::vec(any::<u8>(), 0..64),
            operation in 0..6u8,
        ) {
            if let Some(first) = bytes.first_mut() {
                *first = operation;
            }
            if let Ok(request) = Request::decode(&bytes) {
                prop_assert_eq!(request.encode(), bytes.clone());
            }
            if let Ok((response, rest)) = Response::decode(&bytes) {
                prop_assert_eq!([&response.encode()[..], rest].concat(), bytes);
            }
        }
    }

    #[test]
    fn m504_what_is_no_request_is_refused_by_name() {
        let refused = |bytes: &[u8]| Request::decode(bytes).unwrap_err().to_string();
        assert_eq!(refused(&[0; 39]), "39 bytes; expected 40");
        assert_eq!(refused(&[0; 40]), "operation is 0; expected 1 to 4");
        let mut long = [0; 40];
        (long[0], long[2]) = (1, 0x11);
        assert_eq!(refused(&long), "length is 4352; expected 4096 at most");
        let mut atomic = [0; 40];
        atomic[0] = 3;
        assert_eq!(refused(&atomic), "40 bytes; expected 56");
    }
}
