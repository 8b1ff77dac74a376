//! The second switch of the chip, for end-to-end control messages (M49).
//!
//! Models: SCOC §5: requests, credits and acknowledgments of 10 bytes; the same quads, but a single
//! middle switch 10 bytes wide; only the two oldest messages of an input may ask; room for 256.
//! The scheduler is the data switch's with one route (E22: "slightly simpler" is all that is said).

use kernel::Bytes;

use crate::ChipConfig;

/// The control switch beside the data switch of this configuration. Its lines are the share of the
/// links that control messages may take; the default is what the crossbar can carry.
#[must_use]
pub fn ete(data: &ChipConfig) -> ChipConfig {
    let control = ChipConfig {
        routes: 1,
        word: Bytes::new(10),
        packet_max: Bytes::new(10),
        input_packets: 256,
        window: Some(2),
        ..data.clone()
    };
    ChipConfig { line_rate: control.rate_without_speed_up(), ..control }
}
