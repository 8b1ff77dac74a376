//! Messages in frames, on the link to the datacenter's network.

use std::net::Ipv4Addr;

use aquila::pipeline::plan::EthernetAddress;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    DHCP_CLIENT_PORT, DHCP_SERVER_PORT, EthernetAddress as Hardware, EthernetFrame,
    EthernetProtocol, EthernetRepr, IpProtocol, Ipv4Packet, Ipv4Repr, UdpPacket, UdpRepr,
};

/// Hops that a message may make (RFC 1700).
const HOPS: u8 = 64;

/// A client's message in a frame to everyone, as it knows nobody.
#[must_use]
pub fn to_server(from: EthernetAddress, message: &[u8]) -> Vec<u8> {
    let ip = (Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST);
    frame((from, [0xFF; 6]), ip, (DHCP_CLIENT_PORT, DHCP_SERVER_PORT), message)
}

/// A relay's answer in a frame to a client that has no address yet.
#[must_use]
pub fn to_client(relay: Ipv4Addr, to: EthernetAddress, message: &[u8]) -> Vec<u8> {
    // The relay's own Ethernet address is of no use to anyone.
    let ethernet = ([0x02, 0, 0, 0, 0, 1], to);
    frame(ethernet, (relay, Ipv4Addr::BROADCAST), (DHCP_SERVER_PORT, DHCP_CLIENT_PORT), message)
}

fn frame(
    ethernet: (EthernetAddress, EthernetAddress),
    (src_addr, dst_addr): (Ipv4Addr, Ipv4Addr),
    (src_port, dst_port): (u16, u16),
    message: &[u8],
) -> Vec<u8> {
    let checksums = ChecksumCapabilities::default();
    let udp = UdpRepr { src_port, dst_port };
    let payload_len = udp.header_len() + message.len();
    let next_header = IpProtocol::Udp;
    let ip = Ipv4Repr { src_addr, dst_addr, next_header, payload_len, hop_limit: HOPS };
    let header = EthernetRepr {
        src_addr: Hardware(ethernet.0),
        dst_addr: Hardware(ethernet.1),
        ethertype: EthernetProtocol::Ipv4,
    };
    let mut bytes = vec![0; header.buffer_len() + ip.buffer_len() + payload_len];
    let mut frame = EthernetFrame::new_unchecked(&mut bytes[..]);
    header.emit(&mut frame);
    let mut packet = Ipv4Packet::new_unchecked(frame.payload_mut());
    ip.emit(&mut packet, &checksums);
    let mut datagram = UdpPacket::new_unchecked(packet.payload_mut());
    let fill = |payload: &mut [u8]| payload.copy_from_slice(message);
    udp.emit(&mut datagram, &src_addr.into(), &dst_addr.into(), message.len(), fill, &checksums);
    bytes
}

/// The message in a frame to the client's port or the server's; `None`: it is another frame, or a damaged one.
#[must_use]
pub fn from_frame(bytes: &[u8]) -> Option<Vec<u8>> {
    let frame = EthernetFrame::new_checked(bytes).ok()?;
    if frame.ethertype() != EthernetProtocol::Ipv4 {
        return None;
    }
    let checksums = ChecksumCapabilities::default();
    let packet = Ipv4Packet::new_checked(frame.payload()).ok()?;
    let ip = Ipv4Repr::parse(&packet, &checksums).ok()?;
    if ip.next_header != IpProtocol::Udp || packet.more_frags() || packet.frag_offset() != 0 {
        return None;
    }
    let datagram = UdpPacket::new_checked(packet.payload()).ok()?;
    let (from, to) = (ip.src_addr.into(), ip.dst_addr.into());
    let udp = UdpRepr::parse(&datagram, &from, &to, &checksums).ok()?;
    let ports = (udp.src_port, udp.dst_port);
    let is_dhcp = ports == (DHCP_CLIENT_PORT, DHCP_SERVER_PORT)
        || ports == (DHCP_SERVER_PORT, DHCP_CLIENT_PORT);
    is_dhcp.then(|| datagram.payload().to_vec())
}
