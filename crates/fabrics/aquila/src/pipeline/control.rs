//! What the control processor answers by itself, controller or not.
//!
//! Models: Aquila §4.3, §6 (M401, M403, M612, I83): who has an address is answered for all of the Clique with the address of
//! the gateway, so that hosts send everything to their own TiN (**our choice**: proxy ARP, RFC 1027, and RFC 4861 §7.2.8);
//! a packet without hops left is answered with "time exceeded", from which traceroute has its one hop. An answer leaves by
//! the interface at which the question came.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::{
    ArpEthIpv4Packet, ArpOperation, ArpPacket, Icmpv4Type, Icmpv6Type, LaxNetSlice,
    LaxSlicedPacket, PacketBuilder, icmpv4, icmpv6,
};
use ipnet::{IpNet, Ipv6Net};
use packets::wire::checksum;

use super::fields::{Fields, ICMP_V4, ICMP_V6, Ip};
use super::plan::{GATEWAY_ETHERNET, GATEWAY_V4, GATEWAY_V6, Plan};
use super::{Interface, Reason};

/// Where neighbour solicitations go: the solicited-node addresses (RFC 4291 §2.7.1).
pub const SOLICITED: IpNet =
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 0), 104));
/// Types of neighbour solicitations and advertisements (RFC 4861 §4.3, §4.4).
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// Flags of an advertisement: router, solicited, override (RFC 4861 §4.4).
const FLAGS: [u8; 4] = [0xE0, 0, 0, 0];
/// Hops of what must not have crossed a router (RFC 4861 §7.1.1).
const HOPS_MAX: u8 = 255;
/// Hops of what we send otherwise (RFC 1700).
const HOPS: u8 = 64;
/// Most bytes of an answer in IPv4 and IPv6 (RFC 1812 §4.3.2.3, RFC 4443 §3.3).
const ANSWER_V4: usize = 576;
const ANSWER_V6: usize = 1_280;

/// An answer: a frame, and where it leaves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The interface at which the question came (I83).
    pub by: Interface,
    /// The frame.
    pub frame: Vec<u8>,
}

/// What is answered to a frame that was punted at a TiN; `None`: nothing, or it is for other firmware.
#[must_use]
pub fn answer(
    plan: &Plan,
    tin: u16,
    (by, reason): (Interface, Reason),
    frame: &[u8],
    fields: &Fields,
) -> Option<Answer> {
    let frame = match (reason, &fields.ip) {
        (Reason::WhoHas, None) => answer_arp(plan, frame, fields),
        (Reason::NoHopsLeft, Some(ip)) => time_exceeded(plan, tin, frame, fields, ip),
        (_, Some(ip)) if ip.protocol == ICMP_V6 => answer_solicitation(plan, frame, fields, ip),
        _ => None,
    }?;
    Some(Answer { by, frame })
}

/// Whether we answer for an address, if this one asks.
fn is_ours(plan: &Plan, asked: IpAddr, by: IpAddr) -> bool {
    let is_gateway = asked == IpAddr::V4(GATEWAY_V4) || asked == IpAddr::V6(GATEWAY_V6);
    // Who asks for its own address wants to know whether others have it, and nobody is to say yes.
    !by.is_unspecified() && asked != by && (is_gateway || plan.of_ip(asked).is_some())
}

fn answer_arp(plan: &Plan, frame: &[u8], fields: &Fields) -> Option<Vec<u8>> {
    let packet = LaxSlicedPacket::from_ethernet(frame).ok()?;
    let Some(LaxNetSlice::Arp(arp)) = packet.net else { return None };
    let request: ArpEthIpv4Packet = arp.to_packet().try_eth_ipv4().ok()?;
    let (asked, by) = (request.target_ipv4, request.sender_ipv4);
    let is_ours = is_ours(plan, Ipv4Addr::from(asked).into(), Ipv4Addr::from(by).into());
    if request.operation != ArpOperation::REQUEST || !is_ours {
        return None;
    }
    let reply = ArpEthIpv4Packet {
        operation: ArpOperation::REPLY,
        sender_mac: GATEWAY_ETHERNET,
        sender_ipv4: asked,
        target_mac: request.sender_mac,
        target_ipv4: by,
    };
    let builder = PacketBuilder::ethernet2(GATEWAY_ETHERNET, fields.from);
    let builder = builder.arp(ArpPacket::from(reply));
    let mut answer = Vec::with_capacity(builder.size());
    builder.write(&mut answer).ok()?;
    Some(answer)
}

fn answer_solicitation(plan: &Plan, frame: &[u8], fields: &Fields, ip: &Ip) -> Option<Vec<u8>> {
    let packet = frame.get(fields.at..fields.at.checked_add(ip.length)?)?;
    let (IpAddr::V6(by), IpAddr::V6(to)) = (ip.source, ip.destination) else { return None };
    // Without extension headers: a solicitation has none.
    let (header, body) = packet.split_first_chunk::<40>()?;
    let is_plain = header[6] == ICMP_V6 && ip.hops_left == HOPS_MAX;
    let length = (body.len() as u32).to_be_bytes();
    let pseudo = [&by.octets()[..], &to.octets(), &length, &[0, 0, 0, ICMP_V6], body];
    let target = Ipv6Addr::from(*body.get(8..24)?.first_chunk::<16>()?);
    let is_asked = body[0] == SOLICITATION && body[1] == 0 && checksum(pseudo) == 0;
    if !is_plain || !is_asked || !is_ours(plan, target.into(), by.into()) {
        return None;
    }
    let mut said = target.octets().to_vec();
    // The option that says the Ethernet address of the target (RFC 4861 §4.6.1).
    said.extend([2, 1]);
    said.extend(GATEWAY_ETHERNET);
    let builder = PacketBuilder::ethernet2(GATEWAY_ETHERNET, fields.from);
    let builder = builder.ipv6(target.octets(), by.octets(), HOPS_MAX);
    let builder = builder.icmpv6_raw(ADVERTISEMENT, 0, FLAGS);
    let mut answer = Vec::with_capacity(builder.size(said.len()));
    builder.write(&mut answer, &said).ok()?;
    Some(answer)
}

/// That a packet had no hops left, to its source, from the control processor's own address. Errors are not answered with
/// errors, nor are later fragments (RFC 1812 §4.3.2.7, RFC 4443 §2.4).
fn time_exceeded(plan: &Plan, tin: u16, frame: &[u8], fields: &Fields, ip: &Ip) -> Option<Vec<u8>> {
    let packet = frame.get(fields.at..fields.at.checked_add(ip.length)?)?;
    let is_alone = !ip.source.is_unspecified() && !ip.source.is_multicast();
    if !is_alone || ip.is_later_fragment || is_error(packet, ip) {
        return None;
    }
    let builder = PacketBuilder::ethernet2(GATEWAY_ETHERNET, fields.from);
    let mut answer = Vec::new();
    let version =
        if ip.source.is_ipv4() { super::plan::Version::V4 } else { super::plan::Version::V6 };
    match (plan.ip(tin, Interface::Control, version), ip.source) {
        (IpAddr::V4(own), IpAddr::V4(to)) => {
            let kind = Icmpv4Type::TimeExceeded(icmpv4::TimeExceededCode::TtlExceededInTransit);
            let builder = builder.ipv4(own.octets(), to.octets(), HOPS).icmpv4(kind);
            let quoted = &packet[..packet.len().min(ANSWER_V4 - 28)];
            builder.write(&mut answer, quoted).ok()?;
        }
        (IpAddr::V6(own), IpAddr::V6(to)) => {
            let kind = Icmpv6Type::TimeExceeded(icmpv6::TimeExceededCode::HopLimitExceeded);
            let builder = builder.ipv6(own.octets(), to.octets(), HOPS).icmpv6(kind);
            let quoted = &packet[..packet.len().min(ANSWER_V6 - 48)];
            builder.write(&mut answer, quoted).ok()?;
        }
        _ => return None,
    }
    Some(answer)
}

/// Whether a packet is an error of ICMP itself: of ICMPv4 anything but echo and its answer, of ICMPv6 types below 128.
fn is_error(packet: &[u8], ip: &Ip) -> bool {
    let header = match ip.protocol {
        ICMP_V4 if ip.source.is_ipv4() => {
            4 * usize::from(packet.first().map_or(0, |first| first & 0xF))
        }
        ICMP_V6 => 40,
        _ => return false,
    };
    match packet.get(header) {
        Some(&kind) if ip.protocol == ICMP_V4 => !matches!(kind, 0 | 8),
        Some(&kind) => kind < 128,
        None => true,
    }
}
