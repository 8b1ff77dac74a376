//! The hash by which ECMP keeps a flow on one path.
//!
//! CRC-32 (the `crc32fast` crate) of source, destination and ports, as switch chips offer. A CRC is
//! linear: switches that merely start it from different seeds make choices that depend on each
//! other, and a second tier then uses only some of its links ("hash polarisation"). So each switch
//! mixes the CRC with its own number before it takes the choice from the upper bits.

use crate::packet::Packet;

/// The hash of a packet's addresses and ports: the same for all packets of a flow one way.
#[inline]
pub(crate) fn flow_hash(packet: &Packet) -> u32 {
    let mut bytes = [0u8; 10];
    bytes[..4].copy_from_slice(&packet.src.get().to_be_bytes());
    bytes[4..8].copy_from_slice(&packet.dst.get().to_be_bytes());
    bytes[8..].copy_from_slice(&packet.entropy.to_be_bytes());
    crc32fast::hash(&bytes)
}

/// A switch's choice among `count` for a flow's hash: the 64-bit finaliser of MurmurHash3 (public
/// domain, Appleby 2011) over hash and switch, then a multiplication in place of a remainder.
#[inline]
pub(crate) fn choice(hash: u32, switch: u32, count: u32) -> u32 {
    let mut mixed = u64::from(hash) | u64::from(switch) << 32;
    mixed = (mixed ^ mixed >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed = (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^= mixed >> 33;
    (((mixed >> 32) * u64::from(count)) >> 32) as u32
}
