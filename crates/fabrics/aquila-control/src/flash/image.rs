//! Images of firmware: what is sent to a TiN, and the header by which it is known.

use std::sync::Arc;

use kernel::Stream;

use super::{BLOCK_BYTES, IMAGE_BYTES_MAX};

/// The version that chips leave the factory with (our choice).
pub const FACTORY: u16 = 1;
/// What an image takes (our choice; the paper gives 100 thousand lines of C and C++). Unit: bytes.
pub const IMAGE_BYTES: u32 = 256 << 10;

/// What an image's code does, of what its bytes do not say as they are drawn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Code {
    /// What this crate's firmware does.
    #[default]
    Whole,
    /// It starts and never connects: to try what becomes of a bad one.
    Silent,
}

/// What is known of an image without its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Which firmware it is; its number says nothing about order, so that one can go back.
    pub version: u16,
    /// The version of the register description that it was made for (§6: chips have generations).
    pub generation: u8,
    /// Unit: bytes.
    pub length: u32,
    /// CRC-32 of all bytes.
    pub checksum: u32,
}

impl Header {
    /// As a message or a row has it.
    pub const BYTES: usize = 11;

    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..2].copy_from_slice(&self.version.to_be_bytes());
        bytes[2] = self.generation;
        bytes[3..7].copy_from_slice(&self.length.to_be_bytes());
        bytes[7..].copy_from_slice(&self.checksum.to_be_bytes());
        bytes
    }

    /// From these bytes.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let &[a, b, generation, c, d, e, f, g, h, i, j] = bytes;
        Self {
            version: u16::from_be_bytes([a, b]),
            generation,
            length: u32::from_be_bytes([c, d, e, f]),
            checksum: u32::from_be_bytes([g, h, i, j]),
        }
    }

    /// Blocks of it, the last of which may be shorter.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.length.div_ceil(BLOCK_BYTES)
    }

    /// Whether a flash has room for it.
    #[must_use]
    pub fn fits(&self) -> bool {
        (1..=IMAGE_BYTES_MAX).contains(&self.length)
    }
}

/// An image. Copies share their bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    /// What it says of itself.
    pub header: Header,
    bytes: Arc<[u8]>,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image").field("header", &self.header).finish_non_exhaustive()
    }
}

impl Image {
    /// The image of a version for chips of a generation. What a processor does is this crate's; so the bytes stand for
    /// code, and are drawn from the version.
    #[must_use]
    pub fn new(version: u16, generation: u8) -> Self {
        let mut stream = Stream::new(version.into(), "firmware image", generation.into());
        let words = (0..IMAGE_BYTES / 8).flat_map(|_| stream.below(u64::MAX).to_be_bytes());
        let bytes: Arc<[u8]> = words.collect();
        Self::of(version, generation, bytes)
    }

    /// The first bytes of one that never connects.
    pub(super) const SILENT: [u8; 16] = *b"never connects\n\0";

    /// The same, of which is known what its code does.
    #[must_use]
    pub fn doing(self, code: Code) -> Self {
        let Header { version, generation, .. } = self.header;
        match code {
            Code::Whole => self,
            Code::Silent => {
                let rest = self.bytes.iter().skip(Self::SILENT.len());
                let bytes = Self::SILENT.iter().chain(rest).copied().collect();
                Self::of(version, generation, bytes)
            }
        }
    }

    /// The image of these bytes.
    #[must_use]
    pub fn of(version: u16, generation: u8, bytes: Arc<[u8]>) -> Self {
        let (length, checksum) = (bytes.len() as u32, crc32fast::hash(&bytes));
        Self { header: Header { version, generation, length, checksum }, bytes }
    }

    /// With another header than follows from its bytes: what has been damaged.
    #[must_use]
    pub fn with_header(self, header: Header) -> Self {
        Self { header, ..self }
    }

    /// All of it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A block of it; empty: there is none.
    #[must_use]
    pub fn block(&self, block: u32) -> &[u8] {
        let size = BLOCK_BYTES as usize;
        let begin = (block as usize).saturating_mul(size).min(self.bytes.len());
        &self.bytes[begin..self.bytes.len().min(begin + size)]
    }
}
