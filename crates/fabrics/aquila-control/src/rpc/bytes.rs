//! Messages as bytes.

use super::{
    Answer, HEADER_BYTES, Item, MESSAGE_BYTES_MAX, MessageError, Outcome, Request, Restart,
};
use crate::flash::{Header, Staged, Trial};
use crate::registers::{Entry, Status};

/// First bytes of a message, and its kind.
const REQUEST: [u8; 4] = [b'R', b'L', 1, 0];
const ANSWER: [u8; 4] = [b'R', b'L', 2, 0];

/// What can stand in a list of a message.
trait Listed: Sized {
    fn write(&self, out: &mut Vec<u8>);
    /// `None`: it ends too early; `Some(None)`: it is none.
    fn read(from: &mut &[u8]) -> Option<Option<Self>>;
}

/// The next bytes.
fn take<'a>(from: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(count)?;
    *from = rest;
    Some(taken)
}

fn array<const SIZE: usize>(from: &mut &[u8]) -> Option<[u8; SIZE]> {
    take(from, SIZE)?.try_into().ok()
}

fn byte(from: &mut &[u8]) -> Option<u8> {
    array(from).map(|[byte]| byte)
}

fn word(from: &mut &[u8]) -> Option<u16> {
    array(from).map(u16::from_be_bytes)
}

/// What a length of 16 bits says.
fn length_of(bytes: usize) -> [u8; 2] {
    u16::try_from(bytes).expect("what fits a message has a length of 16 bits").to_be_bytes()
}

impl Listed for Item {
    fn write(&self, out: &mut Vec<u8>) {
        let mut begin = |kind: u8, address: u32| {
            out.push(kind);
            out.extend(address.to_be_bytes());
        };
        match self {
            Self::Read { address } => begin(0, *address),
            Self::Write { address, entry } => {
                begin(1, *address);
                out.push(entry.as_bytes().len() as u8);
                out.extend(entry.as_bytes());
            }
            Self::ReadBlock { address, count } => {
                begin(2, *address);
                out.extend(count.to_be_bytes());
            }
            Self::WriteBlock { address, size, bytes } => {
                begin(3, *address);
                out.push(*size);
                out.extend(length_of(bytes.len()));
                out.extend(bytes);
            }
            Self::Digests { address, count } => {
                begin(4, *address);
                out.extend(count.to_be_bytes());
            }
            Self::Flash => out.push(5),
            Self::Stage(header) => {
                out.push(6);
                out.extend(header.encode());
            }
            Self::Store { offset, bytes } => {
                begin(7, *offset);
                out.extend(length_of(bytes.len()));
                out.extend(bytes);
            }
            Self::Verify => out.push(8),
            Self::Activate { version, restart, trial } => {
                out.push(9);
                out.extend(version.to_be_bytes());
                out.push(*restart as u8);
                out.extend(trial.to_be_bytes());
            }
            Self::Confirm { version } => {
                out.push(10);
                out.extend(version.to_be_bytes());
            }
        }
    }

    fn read(from: &mut &[u8]) -> Option<Option<Self>> {
        let kind = byte(from)?;
        match kind {
            5 => return Some(Some(Self::Flash)),
            6 => return Some(Some(Self::Stage(Header::decode(&array(from)?)))),
            8 => return Some(Some(Self::Verify)),
            9 => {
                let (version, restart) = (word(from)?, Restart::from_number(byte(from)?));
                let trial = word(from)?;
                return Some(restart.map(|restart| Self::Activate { version, restart, trial }));
            }
            10 => return Some(Some(Self::Confirm { version: word(from)? })),
            _ => {}
        }
        let address = u32::from_be_bytes(array(from)?);
        Some(match kind {
            0 => Some(Self::Read { address }),
            1 => {
                let size = byte(from)?;
                let entry = Entry::from_bytes(take(from, size.into())?);
                entry.map(|entry| Self::Write { address, entry })
            }
            2 => Some(Self::ReadBlock { address, count: word(from)? }),
            3 => {
                let (size, length) = (byte(from)?, word(from)?);
                let bytes = take(from, length.into())?.to_vec();
                Some(Self::WriteBlock { address, size, bytes })
            }
            4 => Some(Self::Digests { address, count: word(from)? }),
            7 => {
                let length = word(from)?;
                let bytes = take(from, length.into())?.to_vec();
                Some(Self::Store { offset: address, bytes })
            }
            _ => None,
        })
    }
}

/// Kinds of outcomes that are no failure, in the byte before the status.
const WRITTEN: u8 = 1;
const ENTRY: u8 = 2;
const ENTRIES: u8 = 3;
const DIGESTS: u8 = 4;
const FLASH: u8 = 5;
/// Of an outcome of that kind: its kind, version 2, flags 1, a header, blocks 4, records 4.
pub(super) const FLASH_BYTES: usize = 12 + Header::BYTES;

impl Listed for Outcome {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Failed(status) => out.extend([0, *status as u8]),
            Self::Written => out.push(WRITTEN),
            Self::Entry(entry) => {
                out.extend([ENTRY, entry.as_bytes().len() as u8]);
                out.extend(entry.as_bytes());
            }
            Self::Entries(bytes) => {
                out.push(ENTRIES);
                out.extend(length_of(bytes.len()));
                out.extend(bytes);
            }
            Self::Digests(digests) => {
                out.push(DIGESTS);
                out.extend(length_of(digests.len()));
                out.extend(digests.iter().flat_map(|digest| digest.to_be_bytes()));
            }
            Self::Flash { running, staged, trial, records } => {
                out.push(FLASH);
                out.extend(running.to_be_bytes());
                let flags = u8::from(staged.header.is_some()) | u8::from(staged.is_verified) << 1;
                out.push(flags | (*trial as u8) << 2);
                out.extend(staged.header.map_or([0; Header::BYTES], |header| header.encode()));
                out.extend(staged.blocks.to_be_bytes());
                out.extend(records.to_be_bytes());
            }
        }
    }

    fn read(from: &mut &[u8]) -> Option<Option<Self>> {
        Some(match byte(from)? {
            0 => {
                let status = Status::from_number(byte(from)?);
                status.filter(|&status| status != Status::Done).map(Self::Failed)
            }
            WRITTEN => Some(Self::Written),
            ENTRY => {
                let size = byte(from)?;
                Entry::from_bytes(take(from, size.into())?).map(Self::Entry)
            }
            ENTRIES => {
                let length = word(from)?;
                Some(Self::Entries(take(from, length.into())?.to_vec()))
            }
            DIGESTS => {
                let count = word(from)?;
                let bytes = take(from, 8 * usize::from(count))?;
                let (digests, _) = bytes.as_chunks::<8>();
                Some(Self::Digests(
                    digests.iter().map(|&digest| u64::from_be_bytes(digest)).collect(),
                ))
            }
            FLASH => {
                let (running, flags) = (word(from)?, byte(from)?);
                let header: [u8; Header::BYTES] = array(from)?;
                let blocks = u32::from_be_bytes(array(from)?);
                let records = u32::from_be_bytes(array(from)?);
                let is_verified = flags & 2 == 2;
                let trial = Trial::ALL.get(usize::from(flags >> 2)).copied();
                let staged = match flags & 3 {
                    0 if (header, blocks) == ([0; Header::BYTES], 0) => Some(Staged::default()),
                    1 | 3 => {
                        let header = Some(Header::decode(&header));
                        Some(Staged { header, blocks, is_verified })
                    }
                    _ => None,
                };
                let found = staged.zip(trial);
                found.map(|(staged, trial)| Self::Flash { running, staged, trial, records })
            }
            _ => None,
        })
    }
}

impl Item {
    /// Of a request. Unit: bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Read { .. } => 5,
            Self::Write { entry, .. } => 6 + entry.as_bytes().len(),
            Self::ReadBlock { .. } | Self::Digests { .. } => 7,
            Self::WriteBlock { bytes, .. } => 8 + bytes.len(),
            Self::Flash | Self::Verify => 1,
            Self::Stage(_) => 1 + Header::BYTES,
            Self::Store { bytes, .. } => 7 + bytes.len(),
            Self::Activate { .. } => 6,
            Self::Confirm { .. } => 3,
        }
    }
}

impl Outcome {
    /// Of an answer. Unit: bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Failed(_) => 2,
            Self::Written => 1,
            Self::Entry(entry) => 2 + entry.as_bytes().len(),
            Self::Entries(bytes) => 3 + bytes.len(),
            Self::Digests(digests) => 3 + 8 * digests.len(),
            Self::Flash { .. } => FLASH_BYTES,
        }
    }
}

fn encode<L: Listed>(begin: [u8; 4], sequence: u32, list: &[L]) -> Vec<u8> {
    let mut out = begin.to_vec();
    out.extend(sequence.to_be_bytes());
    out.extend([0; 4]);
    let count = u16::try_from(list.len()).expect("what fits a message has a count of 16 bits");
    out.extend(count.to_be_bytes());
    out.extend([0; 2]);
    list.iter().for_each(|item| item.write(&mut out));
    assert!(out.len() <= MESSAGE_BYTES_MAX, "a message of {} bytes", out.len());
    let length = out.len() as u32;
    out[8..12].copy_from_slice(&length.to_be_bytes());
    out
}

fn decode<L: Listed>(
    begin: [u8; 4],
    name: &'static str,
    bytes: &[u8],
) -> Result<(u32, Vec<L>), MessageError> {
    let Some((header, mut rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return Err(MessageError::Length { found: bytes.len(), said: HEADER_BYTES });
    };
    let part = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
    if header[..4] != begin {
        return Err(MessageError::Kind(part(0), name));
    }
    let (found, said) = (bytes.len(), part(8) as usize);
    if found != said || found > MESSAGE_BYTES_MAX {
        return Err(MessageError::Length { found, said });
    }
    let count = (part(12) >> 16) as u16;
    if part(12) & 0xFFFF != 0 {
        return Err(MessageError::Kind(part(12), name));
    }
    let mut list = Vec::new();
    for number in 0..count {
        let item = L::read(&mut rest).ok_or(MessageError::End(number))?;
        list.push(item.ok_or(MessageError::Item(number))?);
    }
    if rest.is_empty() { Ok((part(4), list)) } else { Err(MessageError::End(count)) }
}

impl Request {
    /// Its bytes.
    ///
    /// # Panics
    /// If they are more than [`MESSAGE_BYTES_MAX`]: [`super::pack`] makes requests that fit.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(REQUEST, self.sequence, &self.items)
    }

    /// The request of these bytes.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let (sequence, items) = decode(REQUEST, "request", bytes)?;
        Ok(Self { sequence, items })
    }
}

impl Answer {
    /// Its bytes.
    ///
    /// # Panics
    /// If they are more than [`MESSAGE_BYTES_MAX`]: [`super::Agent`] makes answers that fit.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(ANSWER, self.sequence, &self.outcomes)
    }

    /// The answer of these bytes.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let (sequence, outcomes) = decode(ANSWER, "answer", bytes)?;
        Ok(Self { sequence, outcomes })
    }
}
