//! What changes in a packet as it crosses: its Ethernet header, and one hop (M401, M428, I51).

use super::Interface;
use super::fields::{Fields, IP_V4, IP_V6};
use super::plan::EthernetAddress;

/// Bytes of an Ethernet header without a tag.
const HEADER: usize = 14;
/// Bytes of a frame before its check sequence, at least (IEEE 802.3 §4.4.2).
const LEAST: usize = 60;

/// What crosses the fabric of a frame that is forwarded: the IP packet without Ethernet's header, padding and one hop; the
/// whole frame where it goes encapsulated. `None`: not all of it is here, or it has no hop to spend.
#[must_use]
pub fn enter(frame: &[u8], fields: &Fields) -> Option<Vec<u8>> {
    let Some(ip) = &fields.ip else {
        return Some(frame.to_vec());
    };
    let mut packet = frame.get(fields.at..fields.at.checked_add(ip.length)?)?.to_vec();
    let is_v4 = ip.destination.is_ipv4();
    let place = if is_v4 { 8 } else { 7 };
    let before = u16::from_be_bytes([*packet.get(place & !1)?, *packet.get(place | 1)?]);
    packet[place] = packet[place].checked_sub(1)?;
    if is_v4 {
        let after = u16::from_be_bytes([packet[8], packet[9]]);
        let sum = u16::from_be_bytes([*packet.get(10)?, *packet.get(11)?]);
        packet[10..12].copy_from_slice(&changed(sum, before, after).to_be_bytes());
    }
    Some(packet)
}

/// An Internet checksum when one word changes (RFC 1624, equation 3).
fn changed(sum: u16, before: u16, after: u16) -> u16 {
    let mut total = u32::from(!sum) + u32::from(!before) + u32::from(after);
    while total > 0xFFFF {
        total = (total >> 16) + (total & 0xFFFF);
    }
    !(total as u16)
}

/// Who is at the other end of each interface, by Ethernet address: a host, or a switch of the spine (M428).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Neighbours([Option<EthernetAddress>; 4]);

impl Neighbours {
    /// Says who is at an interface.
    pub fn set(&mut self, at: Interface, neighbour: EthernetAddress) {
        self.0[at as usize] = Some(neighbour);
    }

    /// The frame in which a packet leaves at an interface; `None`: nobody is known there, or it is no IP packet.
    #[must_use]
    pub fn leave(&self, at: Interface, own: EthernetAddress, packet: &[u8]) -> Option<Vec<u8>> {
        frame(self.0[at as usize]?, own, packet)
    }
}

/// The frame of a packet from one Ethernet address to another; `None`: it is no IP packet.
pub(super) fn frame(to: EthernetAddress, from: EthernetAddress, packet: &[u8]) -> Option<Vec<u8>> {
    let kind = match packet.first()? >> 4 {
        4 => IP_V4,
        6 => IP_V6,
        _ => return None,
    };
    let mut frame = Vec::with_capacity(HEADER + packet.len());
    frame.extend(to);
    frame.extend(from);
    frame.extend(kind.to_be_bytes());
    frame.extend(packet);
    frame.resize(frame.len().max(LEAST), 0);
    Some(frame)
}
