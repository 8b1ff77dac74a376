//! The Internet checksum, and what of a packet it covers.
//!
//! Models: R2C2 §3.2, §4.2 (claims M12, M35, I11), which name a checksum of the packet and not which:
//! **our choice** is RFC 1071's, computed as if checksum, index into the route and its guard were
//! zero, so that a node that forwards need not compute it anew.

pub use packets::wire::checksum;

use super::Kind;

/// Where the checksum of data stands.
const IN_DATA: usize = 16;
/// Where that of any other packet stands.
const ELSEWHERE: usize = 6;

/// Where a packet's checksum stands. Every kind is longer than that.
pub(super) fn place(kind: Kind) -> usize {
    if kind == Kind::Data { IN_DATA } else { ELSEWHERE }
}

/// The right checksum of a packet.
pub(super) fn of_packet(kind: Kind, bytes: &[u8]) -> u16 {
    let place = place(kind);
    let after = &bytes[place + 2..];
    // Bytes 2 and 3 of data change on the way; all parts but the last have an even length.
    let skipped = if kind == Kind::Data { 2..4 } else { 0..0 };
    checksum([&bytes[..skipped.start], &bytes[skipped.end..place], after])
}

/// Writes the right checksum into a packet; leaves bytes alone that are none.
pub fn seal(bytes: &mut [u8]) {
    let Some(kind) = bytes.first().and_then(|&first| Kind::of(first)) else { return };
    let place = place(kind);
    if bytes.len() >= place + 2 {
        let right = of_packet(kind, bytes).to_be_bytes();
        bytes[place..place + 2].copy_from_slice(&right);
    }
}
