//! The hash by which ECMP keeps a flow on one path.
//!
//! CRC-32 (the `crc32fast` crate) of source, destination and ports, as switch chips offer. A CRC is
//! linear: switches that merely start it from different seeds make choices that depend on each
//! other, and a second tier then uses only some of its links ("hash polarisation"). So each switch
//! mixes the CRC with its own number before it takes the choice from the upper bits.

use crate::packet::Packet;

/// The CRC-32 of an address pair and ports.
fn crc(src: u32, dst: u32, entropy: u16) -> u32 {
    let mut bytes = [0u8; 10];
    bytes[..4].copy_from_slice(&src.to_be_bytes());
    bytes[4..8].copy_from_slice(&dst.to_be_bytes());
    bytes[8..].copy_from_slice(&entropy.to_be_bytes());
    crc32fast::hash(&bytes)
}

/// The hash of a packet's addresses and ports: the same for all packets of a flow one way. A CRC is
/// linear, so that of the whole is the sum, without carry, of what each part adds to that of zeros:
/// looked up by host and by byte.
#[derive(Clone, Debug)]
pub(crate) struct FlowHash {
    by_source: Vec<u32>,
    by_destination: Vec<u32>,
    by_entropy: [[u32; 256]; 2],
}

impl FlowHash {
    /// For packets between `hosts` hosts.
    pub(crate) fn new(hosts: u32) -> Self {
        let zeros = crc(0, 0, 0);
        let byte = |shift: u32| {
            std::array::from_fn(|byte: usize| zeros ^ crc(0, 0, (byte as u16) << shift))
        };
        Self {
            by_source: (0..hosts).map(|host| crc(host, 0, 0)).collect(),
            by_destination: (0..hosts).map(|host| zeros ^ crc(0, host, 0)).collect(),
            by_entropy: [byte(0), byte(8)],
        }
    }

    /// The hash of a packet.
    #[inline]
    pub(crate) fn of(&self, packet: &Packet) -> u32 {
        let [high, low] = packet.entropy.to_be_bytes();
        self.by_source[packet.src.index()]
            ^ self.by_destination[packet.dst.index()]
            ^ self.by_entropy[0][usize::from(low)]
            ^ self.by_entropy[1][usize::from(high)]
    }
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

#[cfg(test)]
mod tests {
    use rack::NodeId;

    use super::*;

    #[test]
    fn the_sum_of_the_parts_is_the_crc_of_the_whole() {
        let hash = FlowHash::new(300);
        for (src, dst) in [(0, 1), (1, 0), (299, 256), (255, 299), (17, 0)] {
            for entropy in [0, 1, 255, 256, 0x8000, 0x1234, u16::MAX] {
                let (src, dst) = (NodeId::new(src), NodeId::new(dst));
                let packet = Packet { src, dst, entropy, ..Packet::default() };
                assert_eq!(hash.of(&packet), crc(src.get(), dst.get(), entropy));
            }
        }
    }
}
