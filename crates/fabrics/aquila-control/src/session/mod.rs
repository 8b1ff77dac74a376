//! What controller and control processor say in a session, beside requests themselves, and how it is carried.
//!
//! Models: Aquila §4.4 (M615, M804, M809, M810): a session over TCP carries requests about the TiN's own registers, and the
//! packets that it passes on, as a proxy, to its neighbours and from them, by PMOS. **Our choice**: the bytes.
//!
//! ```text
//! over TCP, both ways:  kind 1 | port 1 | length 2 | body, at most 1501 bytes
//!   1 HELLO  boot 4, Ethernet address 6, links 8,  the TiN's first word
//!            generation 1, firmware 2
//!   2 RPC    a piece of a request or an answer     at most 1400 bytes
//!   3 PMOS   kind 1, data                          to or from the neighbour at `port`
//!   4 ROOM   (nothing)                             the neighbour at `port` has another packet
//!   5 LINKS  links 8                               a bit for each port that is up; some have changed
//!   6 LIST   seconds 2, addresses 4 each           registers to report each so often; none: no more
//!   7 REPORT address 4, entry                      one of those
//! by PMOS:  RPC: a piece;  DEBUG: 1 BEGIN number 4, or 2 HELLO number 4 and as above;  DHCP: a message
//! ```
//!
//! A request goes in pieces, so that what a proxy passes on has room between them.

pub mod ip;
mod pieces;
mod stack;
#[cfg(test)]
mod tests;

use aquila::pipeline::plan::EthernetAddress;
use thiserror::Error;

use crate::pmos;

pub use ip::{Addresses, Versions};
pub use pieces::{PIECE_BYTES, Pieces};
pub use stack::{Client, Progress, Server, ServerCounts, WELL_KNOWN_PORT};

/// Most bytes of a body: a packet of PMOS and its kind.
pub const BODY_BYTES_MAX: usize = pmos::DATA_BYTES_MAX + 1;
/// Before a body.
pub const HEADER_BYTES: usize = 4;
/// Most registers of a list (M605, our choice).
pub const LIST_MAX: usize = (BODY_BYTES_MAX - 2) / 4;

/// Who a TiN is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The number of its chip's cold start.
    pub boot: u32,
    /// Its Ethernet address.
    pub ethernet: EthernetAddress,
    /// A bit for each port that is up.
    pub links: u64,
    /// Of its chip: the version of the register description that it was built to (M617).
    pub generation: u8,
    /// Which version of the firmware runs.
    pub firmware: u16,
}

/// What is said over TCP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// The TiN's first word.
    Hello(Hello),
    /// A piece of a request or an answer.
    Rpc(Vec<u8>),
    /// To or from the neighbour at a port.
    Pmos {
        /// Of the proxy.
        port: u8,
        /// Of the packet.
        kind: pmos::Kind,
        /// The packet.
        data: Vec<u8>,
    },
    /// The neighbour at a port has another packet.
    Room {
        /// Of the proxy.
        port: u8,
    },
    /// A bit for each port that is up.
    Links(u64),
    /// Registers to report.
    List {
        /// How often. Unit: s.
        seconds: u16,
        /// Of their entries.
        addresses: Vec<u32>,
    },
    /// An entry of a register.
    Report {
        /// Of the entry.
        address: u32,
        /// What it holds.
        entry: Vec<u8>,
    },
}

/// Why bytes are none of that: the session ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum SaidError {
    /// There is no such kind.
    #[error("kind {0}; expected 1 to 7")]
    Kind(u8),
    /// It is too long, or not as long as its kind.
    #[error(
        "{length} bytes of kind {kind}; expected at most {BODY_BYTES_MAX}, as the kind has them"
    )]
    Length {
        /// Its kind.
        kind: u8,
        /// Of its body.
        length: usize,
    },
}

impl Hello {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.boot.to_be_bytes().to_vec();
        bytes.extend(self.ethernet);
        bytes.extend(self.links.to_be_bytes());
        bytes.push(self.generation);
        bytes.extend(self.firmware.to_be_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (&boot, rest) = bytes.split_first_chunk()?;
        let (&ethernet, rest) = rest.split_first_chunk()?;
        let (&links, rest) = rest.split_first_chunk()?;
        let &[generation, a, b] = rest else { return None };
        let (links, firmware) = (u64::from_be_bytes(links), u16::from_be_bytes([a, b]));
        Some(Self { boot: u32::from_be_bytes(boot), ethernet, links, generation, firmware })
    }
}

impl Said {
    /// Its bytes.
    ///
    /// # Panics
    /// If it is longer than anything may be.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (kind, port, body) = match self {
            Self::Hello(hello) => (1, 0, hello.encode()),
            Self::Rpc(piece) => (2, 0, piece.clone()),
            Self::Pmos { port, kind, data } => {
                let mut body = vec![*kind as u8];
                body.extend(data);
                (3, *port, body)
            }
            Self::Room { port } => (4, *port, Vec::new()),
            Self::Links(links) => (5, 0, links.to_be_bytes().to_vec()),
            Self::List { seconds, addresses } => {
                let mut body = seconds.to_be_bytes().to_vec();
                body.extend(addresses.iter().flat_map(|address| address.to_be_bytes()));
                (6, 0, body)
            }
            Self::Report { address, entry } => {
                let mut body = address.to_be_bytes().to_vec();
                body.extend(entry);
                (7, 0, body)
            }
        };
        assert!(body.len() <= BODY_BYTES_MAX, "{} bytes to be said at once", body.len());
        let mut bytes = vec![kind, port];
        bytes.extend((body.len() as u16).to_be_bytes());
        bytes.extend(body);
        bytes
    }

    /// What these bytes begin with, and how long it is; `None`: it has not come whole.
    ///
    /// # Errors
    /// It is nothing.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, SaidError> {
        let Some((&[kind, port, high, low], rest)) = bytes.split_first_chunk::<HEADER_BYTES>()
        else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let wrong = SaidError::Length { kind, length };
        if length > BODY_BYTES_MAX {
            return Err(wrong);
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let said = match kind {
            1 => Hello::decode(body).map(Self::Hello),
            2 => Some(Self::Rpc(body.to_vec())),
            3 => body.split_first().and_then(|(&kind, data)| {
                let known = pmos::Kind::ALL.into_iter().find(|known| *known as u8 == kind)?;
                known.is_data().then(|| Self::Pmos { port, kind: known, data: data.to_vec() })
            }),
            4 => body.is_empty().then_some(Self::Room { port }),
            5 => body.try_into().ok().map(|links| Self::Links(u64::from_be_bytes(links))),
            6 => body.split_first_chunk().and_then(|(&seconds, rest)| {
                let (addresses, rest) = rest.as_chunks();
                let addresses = addresses.iter().map(|&address| u32::from_be_bytes(address));
                let seconds = u16::from_be_bytes(seconds);
                rest.is_empty().then(|| Self::List { seconds, addresses: addresses.collect() })
            }),
            7 => body.split_first_chunk().map(|(&address, entry)| Self::Report {
                address: u32::from_be_bytes(address),
                entry: entry.to_vec(),
            }),
            kind => return Err(SaidError::Kind(kind)),
        };
        let said = said.ok_or(wrong)?;
        Ok(Some((said, HEADER_BYTES + length)))
    }
}

/// What is said about a session by PMOS itself, in packets of kind DEBUG.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    /// The controller begins a session.
    Begin(u32),
    /// The TiN has begun it.
    Hello(u32, Hello),
}

impl Point {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (kind, number, rest) = match self {
            Self::Begin(number) => (1, number, Vec::new()),
            Self::Hello(number, hello) => (2, number, hello.encode()),
        };
        let mut bytes = vec![kind];
        bytes.extend(number.to_be_bytes());
        bytes.extend(rest);
        bytes
    }

    /// What these bytes say; `None`: nothing.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (&kind, rest) = bytes.split_first()?;
        let (&number, rest) = rest.split_first_chunk()?;
        let number = u32::from_be_bytes(number);
        match kind {
            1 => rest.is_empty().then_some(Self::Begin(number)),
            2 => Hello::decode(rest).map(|hello| Self::Hello(number, hello)),
            _ => None,
        }
    }
}
