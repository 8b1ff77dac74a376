//! News of failures, carried in the payload of empty cells.
//!
//! Models: Shoal §3.5 (claim S26): a node that no longer hears another tells all others. The paper
//! gives no message. **Our choice**: a cell that has nothing else to carry carries notices, so that
//! news costs no slot, and reaches every node within an epoch of the sender's knowing.
//!
//! The payload of an empty cell: one byte that counts the notices, then eight bytes for each, most
//! significant first: what changed (1 bit), the subject (15), zero (1), the reporter (15), the
//! epoch (32). The rest is zero, so that a payload of zeros carries no news.

use rack::NodeId;

/// Bytes of one notice.
pub const NOTICE_BYTES: usize = 8;

/// What a node says of another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reachability {
    /// It can no longer exchange cells with it.
    Failed,
    /// It can again.
    Recovered,
}

/// One piece of news.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Notice {
    /// What changed.
    pub change: Reachability,
    /// The node of which it is told.
    pub subject: NodeId,
    /// The node that found it out.
    pub reporter: NodeId,
    /// The epoch in which it was found out, modulo 2³²: of two notices with the same subject and
    /// reporter the later one holds.
    pub epoch: u32,
}

/// Why a payload is not a list of notices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoticeError {
    /// It says that it holds more than it can.
    #[error("{count} notices in a payload that holds at most {most}")]
    Count {
        /// How many it says.
        count: usize,
        /// How many fit.
        most: usize,
    },
    /// A bit that must be zero is not.
    #[error("byte {byte} of the notices is not zero")]
    Reserved {
        /// The offset of the byte in the payload.
        byte: usize,
    },
}

/// How many notices fit into a payload of this many bytes.
#[must_use]
pub const fn notices_per_cell(payload_bytes: usize) -> usize {
    let room = payload_bytes.saturating_sub(1) / NOTICE_BYTES;
    if room < 255 { room } else { 255 }
}

/// Notices in a cell of the paper's size: 64 B less the header (§3.5).
pub const NOTICES_PER_CELL: usize = notices_per_cell(56);

/// The bit that says that a node recovered.
const RECOVERED: u16 = 1 << 15;

/// Writes the notices into a payload and fills the rest with zeros.
///
/// # Panics
/// If there are more than fit, or a node has a number of 2¹⁵ or more.
pub fn encode_notices(notices: &[Notice], payload: &mut [u8]) {
    let most = notices_per_cell(payload.len());
    assert!(notices.len() <= most, "{} notices in a payload for {most}", notices.len());
    payload.fill(0);
    let Some((count, records)) = payload.split_first_mut() else { return };
    *count = notices.len() as u8;
    for (notice, record) in notices.iter().zip(records.chunks_exact_mut(NOTICE_BYTES)) {
        let change = match notice.change {
            Reachability::Failed => 0,
            Reachability::Recovered => RECOVERED,
        };
        record[..2].copy_from_slice(&(node_bits(notice.subject) | change).to_be_bytes());
        record[2..4].copy_from_slice(&node_bits(notice.reporter).to_be_bytes());
        record[4..].copy_from_slice(&notice.epoch.to_be_bytes());
    }
}

/// Reads the notices in the payload of an empty cell, in the order in which they were written.
///
/// # Errors
/// If the payload is none that [`encode_notices`] writes.
pub fn decode_notices(payload: &[u8]) -> Result<Vec<Notice>, NoticeError> {
    let Some((&count, records)) = payload.split_first() else { return Ok(Vec::new()) };
    let (count, most) = (usize::from(count), notices_per_cell(payload.len()));
    if count > most {
        return Err(NoticeError::Count { count, most });
    }
    let (records, rest) = records.split_at(count * NOTICE_BYTES);
    if let Some(byte) = rest.iter().position(|&byte| byte != 0) {
        return Err(NoticeError::Reserved { byte: 1 + records.len() + byte });
    }
    let notices = records.chunks_exact(NOTICE_BYTES).enumerate();
    notices.map(|(index, record)| decode_notice(index, record)).collect()
}

/// Reads the notice with this index in the payload.
fn decode_notice(index: usize, record: &[u8]) -> Result<Notice, NoticeError> {
    let half = |at: usize| u16::from_be_bytes([record[at], record[at + 1]]);
    if half(2) & RECOVERED != 0 {
        return Err(NoticeError::Reserved { byte: 1 + index * NOTICE_BYTES + 2 });
    }
    Ok(Notice {
        change: match half(0) & RECOVERED {
            0 => Reachability::Failed,
            _ => Reachability::Recovered,
        },
        subject: NodeId::new(u32::from(half(0) & !RECOVERED)),
        reporter: NodeId::new(u32::from(half(2))),
        epoch: u32::from_be_bytes([record[4], record[5], record[6], record[7]]),
    })
}

/// A node's number in 15 bits.
fn node_bits(node: NodeId) -> u16 {
    assert!(node.get() < u32::from(RECOVERED), "{node} does not fit 15 bits");
    node.get() as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn notice(change: Reachability, subject: u32, reporter: u32, epoch: u32) -> Notice {
        Notice { change, subject: NodeId::new(subject), reporter: NodeId::new(reporter), epoch }
    }

    #[test]
    fn s26_six_notices_fit_a_cell_of_the_paper() {
        let rows = [(0, 0), (8, 0), (9, 1), (56, 6), (57, 7), (120, 14), (100_000, 255)];
        for (payload, notices) in rows {
            assert_eq!(notices_per_cell(payload), notices, "payload of {payload} bytes");
        }
        assert_eq!(NOTICES_PER_CELL, 6);
    }

    #[test]
    fn s26_notices_have_this_form_on_the_wire() {
        let mut payload = [0xFF; 20];
        let news = [
            notice(Reachability::Failed, 511, 3, 7),
            notice(Reachability::Recovered, 2, 1, 0x0102_0304),
        ];
        encode_notices(&news, &mut payload);
        assert_eq!(payload, [2, 0x01, 0xFF, 0, 3, 0, 0, 0, 7, 0x80, 2, 0, 1, 1, 2, 3, 4, 0, 0, 0]);
        assert_eq!(decode_notices(&payload), Ok(news.to_vec()));
    }

    #[test]
    fn s26_what_cannot_be_notices_is_refused() {
        let mut payload = [0; 56];
        assert_eq!(decode_notices(&payload), Ok(Vec::new()));
        payload[0] = 7;
        assert_eq!(decode_notices(&payload), Err(NoticeError::Count { count: 7, most: 6 }));
        payload[0] = 0;
        payload[30] = 1;
        assert_eq!(decode_notices(&payload), Err(NoticeError::Reserved { byte: 30 }));
        payload = [0; 56];
        payload[0] = 2;
        payload[11] = 0x80;
        assert_eq!(decode_notices(&payload), Err(NoticeError::Reserved { byte: 11 }));
    }

    proptest! {
        #[test]
        fn s26_notices_survive_the_wire(
            rows in proptest::collection::vec(
                (any::<bool>(), 0_u32..32768, 0_u32..32768, any::<u32>()), 0..=6
            )
        ) {
            let news: Vec<Notice> = rows
                .into_iter()
                .map(|(recovered, subject, reporter, epoch)| {
                    let change =
                        if recovered { Reachability::Recovered } else { Reachability::Failed };
                    notice(change, subject, reporter, epoch)
                })
                .collect();
            let mut payload = [0; 56];
            encode_notices(&news, &mut payload);
            prop_assert_eq!(decode_notices(&payload), Ok(news));
        }

        #[test]
        fn s26_any_bytes_are_refused_or_written_back_the_same(
            payload in proptest::collection::vec(any::<u8>(), 0..70)
        ) {
            if let Ok(news) = decode_notices(&payload) {
                let mut again = payload.clone();
                encode_notices(&news, &mut again);
                prop_assert_eq!(again, payload);
            }
        }
    }
}
