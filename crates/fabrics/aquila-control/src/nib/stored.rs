//! Values as they are kept: compressed where that makes them smaller.

use std::cell::RefCell;
use std::io;

use zstd::bulk::{Compressor, Decompressor};

/// How hard zstd tries (our choice): its fastest ordinary level.
const LEVEL: i32 = 1;
/// No value that was kept elsewhere is longer (our choice).
const VALUE_BYTES_MAX: usize = 16 << 20;

thread_local! {
    // What zstd works in. Made anew for each value it would take longer than most values do.
    static COMPRESSOR: RefCell<io::Result<Compressor<'static>>> = RefCell::new(Compressor::new(LEVEL));
    static DECOMPRESSOR: RefCell<io::Result<Decompressor<'static>>> = RefCell::new(Decompressor::new());
}

/// `None`: there is no memory for it.
fn compress(value: &[u8]) -> Option<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|with| with.as_mut().ok()?.compress(value).ok())
}

/// `None`: that is none, or a longer one than `raw` bytes.
fn decompress(bytes: &[u8], raw: usize) -> Option<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|with| with.as_mut().ok()?.decompress(bytes, raw).ok())
}

/// A value as it is kept in memory.
#[derive(Clone, Debug)]
pub(super) enum Stored {
    /// Compression would have made it larger.
    Raw(Box<[u8]>),
    Compressed {
        bytes: Box<[u8]>,
        raw: u32,
    },
}

impl Stored {
    pub(super) fn new(value: &[u8]) -> Self {
        match (compress(value), u32::try_from(value.len())) {
            (Some(bytes), Ok(raw)) if bytes.len() < value.len() => {
                Self::Compressed { bytes: bytes.into(), raw }
            }
            _ => Self::Raw(value.into()),
        }
    }

    pub(super) fn value(&self) -> Vec<u8> {
        match self {
            Self::Raw(bytes) => bytes.to_vec(),
            Self::Compressed { bytes, raw } => {
                decompress(bytes, *raw as usize).expect("we have compressed it, and know its size")
            }
        }
    }

    /// Before compression, and as it is kept. Unit: bytes.
    pub(super) fn sizes(&self) -> (u64, u64) {
        match self {
            Self::Raw(bytes) => (bytes.len() as u64, bytes.len() as u64),
            Self::Compressed { bytes, raw } => (u64::from(*raw), bytes.len() as u64),
        }
    }
}

/// A value as it is kept elsewhere: one byte, and it or, where that is smaller, its length and what zstd makes of it.
#[must_use]
pub fn pack(value: &[u8]) -> Vec<u8> {
    match Stored::new(value) {
        Stored::Raw(bytes) => [&[0], &bytes[..]].concat(),
        Stored::Compressed { bytes, raw } => [&[1], &raw.to_be_bytes()[..], &bytes].concat(),
    }
}

/// The value that was kept so; `None`: it is none.
#[must_use]
pub fn unpack(kept: &[u8]) -> Option<Vec<u8>> {
    let (&kind, rest) = kept.split_first()?;
    match kind {
        0 => Some(rest.to_vec()),
        1 => {
            let (&raw, bytes) = rest.split_first_chunk()?;
            let raw = u32::from_be_bytes(raw) as usize;
            let raw = Some(raw).filter(|&raw| raw <= VALUE_BYTES_MAX)?;
            decompress(bytes, raw).filter(|value| value.len() == raw)
        }
        _ => None,
    }
}
