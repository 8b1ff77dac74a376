//! Shoal (NSDI 2019).

pub mod crc;
pub mod wire;
pub mod packets;
pub mod reorder;
