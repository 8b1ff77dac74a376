//! Answers to hosts that ask who has an address.
//!
//! Models: Aquila §4.3 (M612): the controller says once for which addresses; the table stands in the chip's registers, so
//! answers go on while the controller is away, and after the processor has restarted.

use std::net::IpAddr;

use aquila::pipeline::plan::EthernetAddress;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress as Hardware, EthernetFrame, EthernetProtocol,
    EthernetRepr, Icmpv6Packet, Icmpv6Repr, IpAddress, IpProtocol, Ipv6Packet, Ipv6Repr,
    NdiscNeighborFlags, NdiscRepr,
};

use super::chip::prefix;
use crate::registers::file::RegisterFile;
use crate::registers::map::RESPONDER;

/// Hops of what must not have crossed a router (RFC 4861 §7.1.1).
const HOPS_MAX: u8 = 255;

/// The answer to a question; `None`: it is none, or nobody is to answer it.
#[must_use]
pub fn answer(registers: &RegisterFile, question: &[u8]) -> Option<Vec<u8>> {
    let frame = EthernetFrame::new_checked(question).ok()?;
    match frame.ethertype() {
        EthernetProtocol::Arp => answer_arp(registers, &frame),
        EthernetProtocol::Ipv6 => answer_solicitation(registers, &frame),
        _ => None,
    }
}

/// Whose address it is, as the longest prefix of the table has it.
fn owner(registers: &RegisterFile, asked: IpAddress) -> Option<EthernetAddress> {
    let asked = IpAddr::from(asked);
    let entries = RESPONDER.register().entries();
    let entry = |at| {
        let entry: [u8; 32] = registers.get(RESPONDER, [at]);
        let prefix = prefix(&entry).filter(|prefix| prefix.contains(&asked))?;
        Some((prefix.prefix_len(), *entry[18..].first_chunk()?))
    };
    (0..entries).filter_map(entry).max_by_key(|&(length, _)| length).map(|(_, owner)| owner)
}

fn answer_arp(registers: &RegisterFile, frame: &EthernetFrame<&[u8]>) -> Option<Vec<u8>> {
    let packet = ArpPacket::new_checked(frame.payload()).ok()?;
    let ArpRepr::EthernetIpv4 {
        operation: ArpOperation::Request,
        source_hardware_addr,
        source_protocol_addr,
        target_protocol_addr,
        ..
    } = ArpRepr::parse(&packet).ok()?
    else {
        return None;
    };
    // Who asks for its own address wants to know whether others have it (RFC 5227): nobody is to say yes.
    if source_protocol_addr.is_unspecified() || source_protocol_addr == target_protocol_addr {
        return None;
    }
    let owner = owner(registers, target_protocol_addr.into())?;
    let reply = ArpRepr::EthernetIpv4 {
        operation: ArpOperation::Reply,
        source_hardware_addr: Hardware(owner),
        source_protocol_addr: target_protocol_addr,
        target_hardware_addr: source_hardware_addr,
        target_protocol_addr: source_protocol_addr,
    };
    let mut bytes = begin(owner, frame.src_addr(), EthernetProtocol::Arp, reply.buffer_len());
    let mut answer = EthernetFrame::new_unchecked(&mut bytes[..]);
    reply.emit(&mut ArpPacket::new_unchecked(answer.payload_mut()));
    Some(bytes)
}

fn answer_solicitation(registers: &RegisterFile, frame: &EthernetFrame<&[u8]>) -> Option<Vec<u8>> {
    let checksums = ChecksumCapabilities::default();
    let packet = Ipv6Packet::new_checked(frame.payload()).ok()?;
    let ip = Ipv6Repr::parse(&packet).ok()?;
    if ip.next_header != IpProtocol::Icmpv6 || ip.hop_limit != HOPS_MAX {
        return None;
    }
    let message = Icmpv6Packet::new_checked(packet.payload()).ok()?;
    let message = Icmpv6Repr::parse(&ip.src_addr, &ip.dst_addr, &message, &checksums).ok()?;
    let Icmpv6Repr::Ndisc(NdiscRepr::NeighborSolicit { target_addr, .. }) = message else {
        return None;
    };
    if ip.src_addr.is_unspecified() || ip.src_addr == target_addr {
        return None;
    }
    let owner = owner(registers, target_addr.into())?;
    let advertisement = Icmpv6Repr::Ndisc(NdiscRepr::NeighborAdvert {
        flags: NdiscNeighborFlags::ROUTER
            | NdiscNeighborFlags::SOLICITED
            | NdiscNeighborFlags::OVERRIDE,
        target_addr,
        lladdr: Some(Hardware(owner).into()),
    });
    let payload_len = advertisement.buffer_len();
    let reply = Ipv6Repr { src_addr: target_addr, dst_addr: ip.src_addr, payload_len, ..ip };
    let length = reply.buffer_len() + payload_len;
    let mut bytes = begin(owner, frame.src_addr(), EthernetProtocol::Ipv6, length);
    let mut answer = EthernetFrame::new_unchecked(&mut bytes[..]);
    let mut packet = Ipv6Packet::new_unchecked(answer.payload_mut());
    reply.emit(&mut packet);
    let mut message = Icmpv6Packet::new_unchecked(packet.payload_mut());
    advertisement.emit(&reply.src_addr, &reply.dst_addr, &mut message, &checksums);
    Some(bytes)
}

/// A frame with room for so many bytes.
fn begin(
    from: EthernetAddress,
    dst_addr: Hardware,
    ethertype: EthernetProtocol,
    length: usize,
) -> Vec<u8> {
    let header = EthernetRepr { src_addr: Hardware(from), dst_addr, ethertype };
    let mut bytes = vec![0; header.buffer_len() + length];
    header.emit(&mut EthernetFrame::new_unchecked(&mut bytes[..]));
    bytes
}
