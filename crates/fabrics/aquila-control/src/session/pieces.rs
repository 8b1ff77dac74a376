//! Requests and answers in pieces.

use crate::rpc::{HEADER_BYTES, MESSAGE_BYTES_MAX};

/// Most bytes of a piece (our choice): with its header it fits a packet.
pub const PIECE_BYTES: usize = 1_400;
/// Where a message says how long it is.
const LENGTH_AT: usize = 8;

/// Puts messages together from their pieces. It holds one.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    bytes: Vec<u8>,
}

impl Pieces {
    /// Forgets what has come of a message.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// A piece has come.
    ///
    /// # Errors
    /// It cannot be a piece of a message: all that has come of that is forgotten.
    #[allow(clippy::result_unit_err, reason = "there is nothing to say about it")]
    pub fn add(&mut self, piece: &[u8]) -> Result<(), ()> {
        self.bytes.extend_from_slice(piece);
        let is_one = self.length().is_none_or(|length| {
            (HEADER_BYTES..=MESSAGE_BYTES_MAX).contains(&length) && self.bytes.len() <= length
        });
        if is_one && self.bytes.len() <= MESSAGE_BYTES_MAX {
            return Ok(());
        }
        self.clear();
        Err(())
    }

    /// Takes the message if it is whole.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        (self.length()? == self.bytes.len()).then(|| std::mem::take(&mut self.bytes))
    }

    /// How long the message says it is.
    fn length(&self) -> Option<usize> {
        let bytes = self.bytes.get(LENGTH_AT..LENGTH_AT + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?) as usize)
    }
}
