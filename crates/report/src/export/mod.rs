//! The record of a run in the formats of other people's viewers.

mod pcapng;
mod perfetto;

pub use pcapng::write_pcapng;
pub use perfetto::{EVENTS_MAX, write_perfetto};
