//! The TiN's end of NC-SI: what a management controller (BMC) brings its channel up with.
//!
//! Models: Aquila App. A (M616): the machine's management goes through its TiN, by the server's NC-SI port. The protocol is DMTF
//! DSP0222, of which this is a network controller with one package and one channel on each host's sideband. How packets
//! pass is the chip's ([`aquila::pipeline::sideband`]); this answers control packets.
//!
//! ```text
//! Ethernet: to, from, type 0x88F8 | header 16 | payload, zeros to a multiple of 4 | checksum 4 | zeros to 60 bytes
//! header:   controller 1 | revision 1: 1 | zero 1 | instance 1 | type 1 | package, channel 1 | length 2 | zeros 8
//! response: its type is the command's + 0x80, its payload begins with response code 2 | reason code 2
//! ```
//!
//! The checksum is the two's complement of the sum of all 16-bit words before it; zero says that there is none.
//!
//! State of a channel stands in a register of the chip (`sideband.channel`), so that a processor that restarts forgets nothing
//! (M608, M609). **Our choice**: what is beside the standard's mandatory commands is unsupported; the link is said to be 100
//! Mb/s, which is what packets get.
//!
//! Leaves out: VLANs and filters for broadcasts and multicasts, statistics, hardware arbitration (a sideband has one package),
//! PLDM, NC-SI over MCTP.

mod responder;
#[cfg(test)]
mod tests;

use aquila::pipeline::plan::EthernetAddress;
use aquila::pipeline::sideband::NC_SI;
use thiserror::Error;

pub use responder::{Link, notify, respond, settings};

/// Before the payload. Unit: bytes.
const HEADER_BYTES: usize = 16;
const ETHERNET_BYTES: usize = 14;
const CHECKSUM_BYTES: usize = 4;
/// The revision of the header.
const REVISION: u8 = 1;
/// Longest frame without its check sequence: Ethernet's. Unit: bytes.
pub const FRAME_BYTES_MAX: usize = 1_514;
/// Shortest, the same. Unit: bytes.
const FRAME_BYTES_MIN: usize = 60;
/// Longest payload that fits. Unit: bytes.
pub const PAYLOAD_BYTES_MAX: usize =
    (FRAME_BYTES_MAX - ETHERNET_BYTES - HEADER_BYTES - CHECKSUM_BYTES) / 4 * 4;
/// Control packets are for everybody on the sideband.
const EVERYBODY: EthernetAddress = [0xFF; 6];

/// A control packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The management controller's number.
    pub controller: u8,
    /// Which command it is, of a response the command's; 0: a notification.
    pub instance: u8,
    /// Its type.
    pub kind: u8,
    /// The package in the upper three bits, its channel in the others; 31: the package itself.
    pub channel: u8,
    /// At most [`PAYLOAD_BYTES_MAX`].
    pub payload: Vec<u8>,
}

/// Why a frame is no control packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum FrameError {
    /// It ends too early, or is too long.
    #[error("{0} bytes, which is not what their header says; expected at most {FRAME_BYTES_MAX}")]
    Length(usize),
    /// It is of another type.
    #[error("type {0:#06x}; expected {NC_SI:#06x}")]
    Type(u16),
    /// Its header is of another revision.
    #[error("revision {0} of the header; expected {REVISION}")]
    Revision(u8),
    /// Bits were flipped.
    #[error("checksum {found:#010x}; expected {expected:#010x}")]
    Checksum {
        /// What it says.
        found: u32,
        /// What follows from its bytes.
        expected: u32,
    },
}

impl Packet {
    /// Its frame, without the check sequence.
    ///
    /// # Panics
    /// If its payload is too long.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let length = self.payload.len();
        assert!(length <= PAYLOAD_BYTES_MAX, "a payload of {length} bytes");
        let mut frame = [EVERYBODY, EVERYBODY].concat();
        frame.extend(NC_SI.to_be_bytes());
        frame.extend([self.controller, REVISION, 0, self.instance, self.kind, self.channel]);
        frame.extend((length as u16).to_be_bytes());
        frame.extend([0; 8]);
        frame.extend(&self.payload);
        frame.resize(ETHERNET_BYTES + HEADER_BYTES + length.next_multiple_of(4), 0);
        let sum = checksum(&frame[ETHERNET_BYTES..]);
        frame.extend(sum.to_be_bytes());
        frame.resize(frame.len().max(FRAME_BYTES_MIN), 0);
        frame
    }

    /// From a frame, without its check sequence.
    ///
    /// # Errors
    /// It is none.
    pub fn decode(frame: &[u8]) -> Result<Self, FrameError> {
        let wrong = FrameError::Length(frame.len());
        let (ethernet, rest) = frame.split_first_chunk::<ETHERNET_BYTES>().ok_or(wrong)?;
        let kind = u16::from_be_bytes([ethernet[12], ethernet[13]]);
        if kind != NC_SI {
            return Err(FrameError::Type(kind));
        }
        if frame.len() > FRAME_BYTES_MAX {
            return Err(wrong);
        }
        let header: &[u8; HEADER_BYTES] = rest.first_chunk().ok_or(wrong)?;
        let &[controller, revision, _, instance, kind, channel, high, low, ..] = header;
        if revision != REVISION {
            return Err(FrameError::Revision(revision));
        }
        // The upper four bits are reserved.
        let length = usize::from(u16::from_be_bytes([high, low]) & 0xFFF);
        let end = HEADER_BYTES + length.next_multiple_of(4);
        let (bytes, rest) = rest.split_at_checked(end).ok_or(wrong)?;
        let found = u32::from_be_bytes(*rest.first_chunk().ok_or(wrong)?);
        let expected = checksum(bytes);
        if found != 0 && found != expected {
            return Err(FrameError::Checksum { found, expected });
        }
        let payload = bytes[HEADER_BYTES..][..length].to_vec();
        Ok(Self { controller, instance, kind, channel, payload })
    }
}

/// Of a header and a payload, whose length is even.
fn checksum(bytes: &[u8]) -> u32 {
    let (words, _) = bytes.as_chunks();
    let sum: u32 = words.iter().map(|&word| u32::from(u16::from_be_bytes(word))).sum();
    sum.wrapping_neg()
}
