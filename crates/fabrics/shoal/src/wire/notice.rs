//! Whom a node cannot reach, as it tells others in the payload of a cell without data.
//!
//! Models: Shoal §3.5 (claim S26): a node that no longer hears another notifies all others. The paper gives
//! no message. **Our choice**: a bit for each node, set if the sender exchanges no cells with it, in segments
//! of as many nodes as fit a cell. A notice says how things are, not what has changed: one that is lost is
//! made up for by the next, and a node that was away needs no history.
//!
//! The payload: the number of the segment (one byte), then 64 nodes at a time as a word, most significant
//! byte first, the lowest node in the lowest bit; zeros; and a checksum of its own (CRC-16, two bytes), as
//! no end of a flow would notice a wrong bit that the cell's eight bits of checksum let pass.

use crc::{CRC_16_IBM_3740, Crc, Table};

/// Bytes of the segment's number and of the checksum.
const FRAME_BYTES: usize = 3;
/// Bytes of a word.
const WORD_BYTES: usize = 8;

static CHECK: Crc<u16, Table<1>> = Crc::<u16, Table<1>>::new(&CRC_16_IBM_3740);

/// A segment of what a node says of all others.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Notice {
    /// Its number: with `n` words a cell it is about the nodes from `64 * n * segment` on.
    pub segment: u8,
    /// A bit for each of them: the sender does not reach it.
    pub unreached: Vec<u64>,
}

/// Why a payload is not a notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoticeError {
    /// It is too short for one.
    #[error("{bytes} bytes hold no notice; the shortest takes 11")]
    Short {
        /// How long it is.
        bytes: usize,
    },
    /// The checksum is wrong.
    #[error("the checksum of the notice is wrong")]
    Corrupted,
    /// A byte that must be zero is not.
    #[error("byte {byte} of the notice is not zero")]
    Reserved {
        /// The offset of the byte in the payload.
        byte: usize,
    },
}

/// How many words of 64 nodes a notice holds in a payload of this many bytes.
#[must_use]
pub const fn notice_words(payload_bytes: usize) -> usize {
    payload_bytes.saturating_sub(FRAME_BYTES) / WORD_BYTES
}

/// Writes a notice into a payload and fills the rest with zeros.
///
/// # Panics
/// If the payload is too short for its words, or for a notice.
pub fn encode_notice(notice: &Notice, payload: &mut [u8]) {
    let (words, most) = (notice.unreached.len(), notice_words(payload.len()));
    assert!(words <= most && most > 0, "{words} words in a payload for {most}");
    payload.fill(0);
    payload[0] = notice.segment;
    for (word, bytes) in notice.unreached.iter().zip(payload[1..].chunks_exact_mut(WORD_BYTES)) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    let (said, check) = payload.split_last_chunk_mut::<2>().expect("the payload has room for it");
    *check = CHECK.checksum(said).to_be_bytes();
}

/// Reads the notice in a payload, with as many words as fit.
///
/// # Errors
/// If the payload is none that [`encode_notice`] writes.
pub fn decode_notice(payload: &[u8]) -> Result<Notice, NoticeError> {
    let words = notice_words(payload.len());
    let (Some((said, check)), 1..) = (payload.split_last_chunk::<2>(), words) else {
        return Err(NoticeError::Short { bytes: payload.len() });
    };
    if CHECK.checksum(said) != u16::from_be_bytes(*check) {
        return Err(NoticeError::Corrupted);
    }
    let (records, rest) = said[1..].split_at(words * WORD_BYTES);
    if let Some(byte) = rest.iter().position(|&byte| byte != 0) {
        return Err(NoticeError::Reserved { byte: 1 + records.len() + byte });
    }
    let word = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
    let unreached = records.chunks_exact(WORD_BYTES).map(word).collect();
    Ok(Notice { segment: said[0], unreached })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn s26_a_cell_of_the_paper_tells_of_384_nodes() {
        let rows = [(0, 0), (10, 0), (11, 1), (18, 1), (19, 2), (56, 6), (57, 6), (59, 7)];
        for (payload, words) in rows {
            assert_eq!(notice_words(payload), words, "payload of {payload} bytes");
        }
    }

    #[test]
    fn s26_notices_have_this_form_on_the_wire() {
        let mut payload = [0xFF; 20];
        let unreached = vec![1 << 63 | 2, 0x0102_0304];
        encode_notice(&Notice { segment: 5, unreached: unreached.clone() }, &mut payload);
        assert_eq!(payload[..18], [5, 0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 2, 3, 4, 0]);
        assert_eq!(decode_notice(&payload), Ok(Notice { segment: 5, unreached }));
    }

    /// The catalogue's check value: what the nine digits give.
    #[test]
    fn s26_the_checksum_is_the_catalogue_s() {
        assert_eq!(CHECK.checksum(b"123456789"), 0x29b1);
    }

    #[test]
    fn s26_what_cannot_be_a_notice_is_refused() {
        assert_eq!(decode_notice(&[0; 10]), Err(NoticeError::Short { bytes: 10 }));
        let mut payload = [0; 14];
        encode_notice(&Notice { segment: 0, unreached: vec![7] }, &mut payload);
        for bit in 0..8 * payload.len() {
            let mut flipped = payload;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode_notice(&flipped), Err(NoticeError::Corrupted), "bit {bit}");
        }
        payload[10] = 1;
        let check = CHECK.checksum(&payload[..12]).to_be_bytes();
        payload[12..].copy_from_slice(&check);
        assert_eq!(decode_notice(&payload), Err(NoticeError::Reserved { byte: 10 }));
    }

    proptest! {
        #[test]
        fn s26_notices_survive_the_wire(
            segment: u8, unreached in proptest::collection::vec(any::<u64>(), 6)
        ) {
            let notice = Notice { segment, unreached };
            let mut payload = [0; 56];
            encode_notice(&notice, &mut payload);
            prop_assert_eq!(decode_notice(&payload), Ok(notice));
        }

        #[test]
        fn s26_any_bytes_are_refused_or_written_back_the_same(
            mut payload in proptest::collection::vec(any::<u8>(), 0..70), is_sealed: bool
        ) {
            if let Some((said, check)) = payload.split_last_chunk_mut::<2>().filter(|_| is_sealed) {
                *check = CHECK.checksum(said).to_be_bytes();
            }
            if let Ok(notice) = decode_notice(&payload) {
                let mut again = payload.clone();
                encode_notice(&notice, &mut again);
                prop_assert_eq!(again, payload);
            }
        }
    }
}
