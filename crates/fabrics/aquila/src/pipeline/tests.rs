//! Input and output processing against slower programs, other decoders and closed forms.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use etherparse::{
    ArpEthIpv4Packet, ArpHardwareId, ArpOperation, ArpPacket, EtherType, Icmpv4Type, Icmpv6Type,
    NetSlice, PacketBuilder, SlicedPacket, TransportSlice,
};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use kernel::{Span, Time};
use proptest::prelude::*;

use super::control::{Answer, answer};
use super::fields::parse;
use super::plan::{GATEWAY_ETHERNET, GATEWAY_V4, GATEWAY_V6, Version};
use super::rewrite::{Neighbours, enter};
use super::routes::{Group, GroupError, Next};
use super::*;
use crate::state::{indexed_ip_flows, ip_flows};
use crate::topology::Shape;

const HOST_ETHERNET: [u8; 6] = [2, 0, 0, 0, 0, 9];

fn everyone(_: u16, _: Interface) -> bool {
    true
}

fn plan() -> Plan {
    Plan::new(&Shape::FULL, 2)
}

/// A pipeline of a TiN of the full Clique, with a way out by four TiNs.
fn pipeline(tin: u16) -> Pipeline {
    let plan = plan();
    let mut routes = compute::indexed(&plan, &everyone);
    let all = [IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())];
    let tins = [(3, 1), (100, 1), (200, 2), (575, 4)];
    compute::add_outside(&mut routes, &plan, &all, &tins).unwrap();
    Pipeline::new(tin, &plan, Arc::new(routes))
}

/// A UDP frame between two addresses of a version, as etherparse writes it.
fn udp(from: IpAddr, to: IpAddr, hops: u8, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(HOST_ETHERNET, GATEWAY_ETHERNET);
    let builder = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => builder.ipv4(from.octets(), to.octets(), hops),
        (IpAddr::V6(from), IpAddr::V6(to)) => builder.ipv6(from.octets(), to.octets(), hops),
        _ => panic!("{from} to {to}"),
    };
    let mut frame = Vec::new();
    builder.udp(ports.0, ports.1).write(&mut frame, payload).unwrap();
    frame
}

fn version(is_v6: bool) -> Version {
    if is_v6 { Version::V6 } else { Version::V4 }
}

/// I75, M405, M721, M722: every address of the full Clique finds the same by groups as by a flow each; there are as many
/// flows as the counts of §4.2 say; and what is next to a subnet is nobody's.
#[test]
fn i75_m405_indexed_groups_are_a_flow_for_each_address() {
    for (shape, hosts) in [(Shape::FULL, 2), (Shape::FULL, 1), (Shape::TINY, 2)] {
        let plan = Plan::new(&shape, hosts);
        let (indexed, each) = (compute::indexed(&plan, &everyone), compute::each(&plan, &everyone));
        let tins = u64::from(shape.tins());
        assert_eq!(each.flows() as u64 * tins, ip_flows(&shape, hosts));
        assert_eq!(indexed.flows() as u64 * tins, indexed_ip_flows(&shape, hosts));
        let mut addresses = 0;
        for interface in plan.addressed() {
            for version in Plan::VERSIONS {
                for tin in 0..shape.tins() {
                    let ip = plan.ip(tin, interface, version);
                    let to = plan.address(tin, interface.endpoint());
                    assert_eq!(each.look_up(ip, 0), routes::Found::Address(to), "{ip}");
                    assert_eq!(indexed.look_up(ip, 0), routes::Found::Indexed(to), "{ip}");
                    assert_eq!(plan.of_ip(ip), Some((tin, interface)));
                    addresses += 1;
                }
                let nobody = plan.ip(shape.tins(), interface, version);
                assert_eq!(indexed.look_up(nobody, 0), routes::Found::Nothing);
                assert_eq!(each.look_up(nobody, 0), routes::Found::Nothing);
                assert_eq!(plan.of_ip(nobody), None);
            }
        }
        assert_eq!(addresses, 2 * tins * (u64::from(hosts) + 1));
    }
}

/// M923: hosts that are not there are nobody's, in either kind of table.
#[test]
fn m923_absent_hosts_have_no_routes() {
    let plan = Plan::new(&Shape::MINI, 2);
    let is_there = |tin: u16, interface: Interface| {
        interface == Interface::Control || (tin.is_multiple_of(3) && interface == Interface::Host0)
    };
    let (indexed, each) = (compute::indexed(&plan, &is_there), compute::each(&plan, &is_there));
    for tin in 0..Shape::MINI.tins() {
        for interface in plan.addressed() {
            let ip = plan.ip(tin, interface, Version::V6);
            let found =
                [&indexed, &each].map(|routes| routes.look_up(ip, 0) != routes::Found::Nothing);
            assert_eq!(found, [is_there(tin, interface); 2], "{ip}");
        }
    }
}

/// M722: one member changes, and no other.
#[test]
fn m722_one_member_of_a_group_changes_alone() {
    let plan = plan();
    let mut routes = compute::indexed(&plan, &everyone);
    let before = routes.clone();
    let Some(Next::Indexed(group)) = routes.next(plan.ip(7, Interface::Host1, Version::V4)) else {
        panic!("no indexed group")
    };
    assert!(routes.indexed_mut(group).unwrap().set(7, None));
    assert!(!routes.indexed_mut(group).unwrap().set(576, None));
    for tin in 0..576 {
        for interface in plan.addressed() {
            for version in Plan::VERSIONS {
                let ip = plan.ip(tin, interface, version);
                let is_it = (tin, interface, version) == (7, Interface::Host1, Version::V4);
                let is_same = routes.look_up(ip, 0) == before.look_up(ip, 0);
                assert_eq!(is_same, !is_it, "{ip}");
            }
        }
    }
}

fn prefixes() -> impl Strategy<Value = Vec<(IpNet, u16)>> {
    // Few different bits, so that prefixes lie in one another.
    let v4 =
        (prop::sample::select(vec![0x0a00_0000u32, 0x0a01_0000, 0x8000_0000]), 0..16u32, 0..=32u8)
            .prop_map(|(base, low, length)| {
                IpNet::V4(Ipv4Net::new((base | low << 20 | low).into(), length).unwrap().trunc())
            });
    let v6 = (0..4u128, 0..8u128, 0..=128u8).prop_map(|(high, low, length)| {
        IpNet::V6(
            Ipv6Net::new((0xfd47u128 << 112 | high << 64 | low).into(), length).unwrap().trunc(),
        )
    });
    prop::collection::vec((prop_oneof![v4, v6], any::<u16>()), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The longest prefix, against a list that is looked through; also when some are taken out again.
    #[test]
    fn m402_the_longest_prefix_is_found(
        prefixes in prefixes(),
        out in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
        addresses in prop::collection::vec((0..3usize, 0..16u32, 0..16u32, 0..4u128), 1..60),
    ) {
        let mut routes = Routes::default();
        let mut list: Vec<(IpNet, Next)> = Vec::new();
        for &(prefix, to) in &prefixes {
            let next = Next::Address(Address::from_bits(to));
            let before = list.iter().position(|&(other, _)| other == prefix).map(|at| list.remove(at).1);
            prop_assert_eq!(routes.insert(prefix, next), before);
            list.push((prefix, next));
        }
        for index in out {
            if !list.is_empty() {
                let (prefix, next) = list.remove(index.index(list.len()));
                prop_assert_eq!(routes.remove(prefix), Some(next));
            }
        }
        prop_assert_eq!(routes.flows(), list.len());
        for (base, high, low, v6) in addresses {
            let v4 = [0x0a00_0000u32, 0x0a01_0000, 0x8000_0000][base] | high << 20 | low;
            let v6 = 0xfd47u128 << 112 | v6 << 64 | u128::from(low);
            for ip in [IpAddr::V4(v4.into()), IpAddr::V6(v6.into())] {
                let fits = list.iter().filter(|(prefix, _)| prefix.contains(&ip));
                let longest = fits.max_by_key(|(prefix, _)| prefix.prefix_len());
                prop_assert_eq!(routes.next(ip), longest.map(|&(_, next)| next), "{}", ip);
            }
        }
    }

    /// M404: weights are kept exactly where they fit the slots, and otherwise each member has its share of what is left
    /// when all have one, to less than one slot.
    #[test]
    fn m404_members_have_slots_by_weight(weights in prop::collection::vec(0..5_000u32, 1..80)) {
        let members: Vec<_> = (0..).map(Address::from_bits).zip(weights.iter().copied()).collect();
        let sum: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
        let group = match Group::new(&members) {
            Ok(group) => group,
            Err(error) => {
                prop_assert_eq!((error, sum), (GroupError::Empty, 0));
                return Ok(());
            }
        };
        let all = group.slots().len() as u64;
        prop_assert!(all <= u64::from(routes::SLOTS_MAX));
        let count = |member: Address| group.slots().iter().filter(|&&slot| slot == member).count() as u64;
        let some = members.iter().filter(|member| member.1 > 0).count() as u64;
        for &(member, weight) in &members {
            let (slots, weight) = (count(member), u64::from(weight));
            prop_assert_eq!(slots > 0, weight > 0);
            let is_exact = slots * sum == weight * all;
            let fair = weight * (all - some);
            let is_near = weight > 0
                && ((slots - 1) * sum).abs_diff(fair) < sum
                && all == u64::from(routes::SLOTS_MAX);
            prop_assert!(is_exact || is_near, "{} slots of {} for {} of {}", slots, all, weight, sum);
        }
    }

    /// I51, M428: what crosses is the IP packet with one hop less, and nothing else of it changes; the checksum is that
    /// which another program works out anew; what leaves is a frame for the neighbour.
    #[test]
    fn i51_m428_a_packet_crosses_with_one_hop_less(
        is_v6: bool,
        hops in 2..=255u8,
        ports: (u16, u16),
        payload in prop::collection::vec(any::<u8>(), 0..200),
        (from, to) in (0..576u16, 0..576u16),
        padding in 0..30usize,
    ) {
        let plan = plan();
        let [from, to] = [(from, Interface::Host0), (to, Interface::Host1)]
            .map(|(tin, interface)| plan.ip(tin, interface, version(is_v6)));
        let mut frame = udp(from, to, hops, ports, &payload);
        frame.resize(frame.len() + padding, 0xAA);
        let fields = parse(&frame).unwrap();
        let ip = fields.ip.unwrap();
        prop_assert_eq!((ip.source, ip.destination, ip.hops_left), (from, to, hops));
        prop_assert_eq!((ip.ports, ip.is_whole), (Some(ports), true));
        let packet = enter(&frame, &fields).unwrap();
        let mut neighbours = Neighbours::default();
        prop_assert_eq!(neighbours.leave(Interface::Host1, GATEWAY_ETHERNET, &packet), None);
        neighbours.set(Interface::Host1, HOST_ETHERNET);
        let there = neighbours.leave(Interface::Host1, GATEWAY_ETHERNET, &packet).unwrap();
        let expected = udp(from, to, hops - 1, ports, &payload);
        prop_assert_eq!(&packet[..], &expected[14..]);
        prop_assert_eq!(&there[..6], &HOST_ETHERNET);
        prop_assert_eq!(&there[6..12], &GATEWAY_ETHERNET);
        let read = SlicedPacket::from_ethernet(&there).unwrap();
        let source = match read.net.unwrap() {
            NetSlice::Ipv4(slice) => IpAddr::V4(slice.header().source_addr()),
            NetSlice::Ipv6(slice) => IpAddr::V6(slice.header().source_addr()),
            NetSlice::Arp(_) => panic!("no IP"),
        };
        let Some(TransportSlice::Udp(read)) = read.transport else { panic!("no UDP") };
        prop_assert_eq!((source, read.source_port(), read.payload()), (from, ports.0, &payload[..]));
    }

    /// Any bytes, whole or cut, flipped or not: no panic, and what is forwarded can enter.
    #[test]
    fn m402_any_bytes_are_dealt_with(
        is_v6: bool,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        is_cut: bool,
        junk in prop::collection::vec(any::<u8>(), 0..80),
        by in prop::sample::select(Interface::ALL.to_vec()),
    ) {
        let plan = plan();
        let ends = [3, 4].map(|tin| plan.ip(tin, Interface::Host0, version(is_v6)));
        let mut frame = udp(ends[0], ends[1], 9, (1, 2), b"payload");
        for (at, value) in flips {
            let at = at.index(frame.len());
            frame[at] ^= value;
        }
        if is_cut {
            frame.truncate(cut.index(frame.len()));
        }
        for frame in [frame, junk] {
            let verdict = pipeline(1).receive(Time::ZERO, by, &frame);
            let Ok(fields) = parse(&frame) else {
                prop_assert_eq!(verdict, Verdict::Drop(Cause::Malformed));
                continue;
            };
            if let Verdict::Forward(_) = verdict {
                prop_assert!(enter(&frame, &fields).is_some());
            }
            for reason in [Reason::Trapped, Reason::WhoHas, Reason::NoHopsLeft] {
                if let Some(answer) = answer(&plan, 1, (by, reason), &frame, &fields) {
                    prop_assert_eq!(answer.by, by);
                    prop_assert!(SlicedPacket::from_ethernet(&answer.frame).is_ok());
                }
            }
        }
    }

    /// M403: over any time no more punts than the burst and what the rate allows; and those, if more are asked for.
    #[test]
    fn m403_punts_are_limited(
        gaps in prop::collection::vec(0..3_000u64, 1..400),
        (a_second, at_once) in (1..2_000u64, 1..40u64),
    ) {
        let mut police = police::Police::new(a_second, at_once);
        let gap = 1_000_000_000_000 / a_second;
        // A bucket in another form: what is in it, in picoseconds' worth.
        let (mut now, mut level, full) = (Time::ZERO, gap * at_once, gap * at_once);
        for us in gaps {
            now += Span::from_us(us);
            level = full.min(level + us * 1_000_000);
            let may = level >= gap;
            level -= if may { gap } else { 0 };
            prop_assert_eq!(police.takes(now), may, "{:?}", now);
        }
    }
}

/// M404: flows of one client, whose ports and destinations follow one another, spread over members as chance would have
/// it. Chi-squared with 7, 23 and 63 degrees of freedom is below 24.3, 49.7 and 103.4 with a probability of 0.999.
#[test]
fn m404_flows_are_balanced_and_each_stays() {
    for (members, limit) in [(8u16, 24.3), (24, 49.7), (64, 103.4)] {
        let list: Vec<_> = (0..members).map(|bits| (Address::from_bits(bits), 3)).collect();
        let group = Group::new(&list).unwrap();
        assert_eq!(group.slots().len(), usize::from(members), "equal weights need a slot each");
        for is_v6 in [false, true] {
            let mut counts = vec![0u32; usize::from(members)];
            let flows = 12_000u32;
            for flow in 0..flows {
                let from = plan().ip((flow % 500) as u16, Interface::Host0, version(is_v6));
                let to = match is_v6 {
                    false => IpAddr::V4((0xC0A8_0000 + flow / 500).into()),
                    true => IpAddr::V6((0x2001_0db8u128 << 96 | u128::from(flow / 500)).into()),
                };
                let frame = udp(from, to, 64, (32_768 + (flow % 100) as u16, 443), &[]);
                let ip = parse(&frame).unwrap().ip.unwrap();
                let member = group.member(ip.hash(5));
                assert_eq!(member, group.member(parse(&frame).unwrap().ip.unwrap().hash(5)));
                counts[usize::from(member.bits())] += 1;
            }
            let mean = f64::from(flows) / f64::from(members);
            let squared: f64 = counts.iter().map(|&c| (f64::from(c) - mean).powi(2) / mean).sum();
            assert!(squared < limit, "{members} members, IPv6 {is_v6}: {squared}");
        }
    }
}

/// M404, M731: an address outside goes by the TiNs that are connected, by weight; the same flow always by the same; and
/// different TiNs choose differently for it.
#[test]
fn m404_m731_what_is_outside_goes_by_the_group() {
    let shares = |tin: u16| {
        let pipeline = pipeline(tin);
        let look = |port: u16| {
            let from = plan().ip(9, Interface::Host0, Version::V4);
            let frame = udp(from, IpAddr::V4(Ipv4Addr::new(8, 8, 8, 8)), 64, (port, 53), &[]);
            match pipeline.look_up(&parse(&frame).unwrap(), Interface::Host0) {
                Verdict::Forward(way) => (way.by, way.to),
                other => panic!("{other:?}"),
            }
        };
        (0..8_000).map(look).collect::<Vec<_>>()
    };
    let (one, other) = (shares(1), shares(2));
    assert_eq!(one, shares(1));
    let part = |tin: u16| {
        let to = plan().address(tin, Endpoint::ETHERNET);
        one.iter().filter(|&&found| found == (By::Group, to)).count()
    };
    let counts = [3, 100, 200, 575].map(part);
    assert_eq!(counts.iter().sum::<usize>(), 8_000);
    // Of eight slots each flow finds one: a binomial, four standard errors.
    for (count, slots) in counts.into_iter().zip([1.0, 1.0, 2.0, 4.0f64]) {
        let share = slots / 8.0;
        let error = (8_000.0 * share * (1.0 - share)).sqrt();
        assert!((count as f64 - 8_000.0 * share).abs() < 4.0 * error, "{counts:?}");
    }
    // The same member by chance: 1/64 + 1/64 + 1/16 + 1/4 of flows.
    let same = one.iter().zip(&other).filter(|(one, other)| one == other).count() as f64;
    let share = 22.0 / 64.0;
    assert!((same - 8_000.0 * share).abs() < 4.0 * (8_000.0 * share * (1.0 - share)).sqrt());
}

/// M808, I83: what is for the control processor is trapped without any route, at the TiN that has the address alone, and
/// what it answers leaves where the question came in.
#[test]
fn m808_i83_what_is_for_the_control_processor_is_trapped_without_routes() {
    let plan = plan();
    for is_v6 in [false, true] {
        let own = plan.ip(17, Interface::Control, version(is_v6));
        let outside = match is_v6 {
            false => IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
            true => IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
        };
        let frame = udp(outside, own, 64, (40_000, 6_653), b"hello");
        for by in Interface::ALL {
            let empty = Arc::new(Routes::default());
            let mut pipeline = Pipeline::new(17, &plan, Arc::clone(&empty));
            assert_eq!(pipeline.receive(Time::ZERO, by, &frame), Verdict::Punt(Reason::Trapped));
            let mut other = Pipeline::new(18, &plan, empty);
            assert_eq!(other.receive(Time::ZERO, by, &frame), Verdict::Drop(Cause::NoRoute));
            // With no hops left it is for us all the same; and what passes has an answer by the same interface.
            let last = udp(outside, own, 1, (40_000, 6_653), b"hello");
            assert_eq!(pipeline.receive(Time::ZERO, by, &last), Verdict::Punt(Reason::Trapped));
            let passing =
                udp(outside, plan.ip(3, Interface::Host0, version(is_v6)), 1, (1, 2), &[]);
            let fields = parse(&passing).unwrap();
            let answer = answer(&plan, 17, (by, Reason::NoHopsLeft), &passing, &fields).unwrap();
            assert_eq!(answer.by, by);
        }
    }
}

/// M401: traceroute shows the source's TiN, and then the destination: one hop, whatever way cells take.
#[test]
fn m401_traceroute_shows_one_hop() {
    let plan = plan();
    let mut source = pipeline(40);
    for is_v6 in [false, true] {
        let [from, to] = [40, 530].map(|tin| plan.ip(tin, Interface::Host1, version(is_v6)));
        let mut hops = Vec::new();
        for probe in 1..5u8 {
            let frame = udp(from, to, probe, (33_000, 33_434), &[0; 24]);
            let fields = parse(&frame).unwrap();
            match source.receive(
                Time::ZERO + Span::from_us(1_000 * u64::from(probe)),
                Interface::Host1,
                &frame,
            ) {
                Verdict::Punt(Reason::NoHopsLeft) => {
                    let why = (Interface::Host1, Reason::NoHopsLeft);
                    let Answer { frame: told, .. } =
                        answer(&plan, 40, why, &frame, &fields).unwrap();
                    let told_fields = parse(&told).unwrap();
                    assert_eq!(told_fields.to, HOST_ETHERNET);
                    let ip = told_fields.ip.unwrap();
                    assert_eq!(ip.destination, from);
                    hops.push(ip.source);
                    let read = SlicedPacket::from_ethernet(&told).unwrap();
                    let quoted = match read.transport.unwrap() {
                        TransportSlice::Icmpv4(icmp) => {
                            assert!(matches!(icmp.icmp_type(), Icmpv4Type::TimeExceeded(_)));
                            icmp.payload().to_vec()
                        }
                        TransportSlice::Icmpv6(icmp) => {
                            assert!(matches!(icmp.icmp_type(), Icmpv6Type::TimeExceeded(_)));
                            icmp.payload().to_vec()
                        }
                        other => panic!("{other:?}"),
                    };
                    assert_eq!(quoted, &frame[14..], "what is quoted");
                    // An error is not answered with another.
                    let mut again = told.clone();
                    again[14 + if is_v6 { 7 } else { 8 }] = 1;
                    let no = control::answer(&plan, 40, why, &again, &told_fields);
                    assert_eq!(no, None);
                }
                Verdict::Forward(way) => {
                    assert_eq!(way.to, plan.address(530, Endpoint::HOST_1));
                    let packet = enter(&frame, &fields).unwrap();
                    let left = packet[if is_v6 { 7 } else { 8 }];
                    assert_eq!(left, probe - 1);
                    hops.push(to);
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(hops, [plan.ip(40, Interface::Control, version(is_v6)), to]);
    }
}

fn arp(operation: ArpOperation, sender: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    let packet = ArpPacket::new(
        ArpHardwareId::ETHERNET,
        EtherType::IPV4,
        operation,
        &HOST_ETHERNET,
        &sender.octets(),
        &[0; 6],
        &target.octets(),
    );
    let mut frame = Vec::new();
    PacketBuilder::ethernet2(HOST_ETHERNET, [0xFF; 6])
        .arp(packet.unwrap())
        .write(&mut frame)
        .unwrap();
    frame
}

/// M403, M612: who asks for the gateway, or for anyone of the Clique, is told the gateway's address; who asks whether its
/// own address is taken is told nothing, nor who asks for what is outside.
#[test]
fn m403_m612_arp_is_answered_for_the_whole_clique() {
    let plan = plan();
    let host = Ipv4Addr::new(10, 0, 0, 40);
    let ask = |operation, sender, target| {
        let frame = arp(operation, sender, target);
        let mut pipeline = pipeline(40);
        let verdict = pipeline.receive(Time::ZERO, Interface::Host0, &frame);
        assert_eq!(verdict, Verdict::Punt(Reason::WhoHas));
        let why = (Interface::Host0, Reason::WhoHas);
        let answer = answer(&plan, 40, why, &frame, &parse(&frame).unwrap())?;
        assert_eq!(answer.by, Interface::Host0);
        let read = SlicedPacket::from_ethernet(&answer.frame).unwrap();
        assert_eq!(parse(&answer.frame).unwrap().to, HOST_ETHERNET);
        let Some(NetSlice::Arp(arp)) = read.net else { panic!("no ARP") };
        let reply: ArpEthIpv4Packet = arp.to_packet().try_eth_ipv4().unwrap();
        assert_eq!(reply.operation, ArpOperation::REPLY);
        assert_eq!((reply.target_mac, reply.target_ipv4), (HOST_ETHERNET, sender.octets()));
        assert_eq!(reply.sender_mac, GATEWAY_ETHERNET);
        Some(Ipv4Addr::from(reply.sender_ipv4))
    };
    for target in [GATEWAY_V4, Ipv4Addr::new(10, 0, 0, 41), Ipv4Addr::new(10, 0, 10, 63)] {
        assert_eq!(ask(ArpOperation::REQUEST, host, target), Some(target));
    }
    for target in [host, Ipv4Addr::new(10, 0, 10, 64), Ipv4Addr::new(8, 8, 8, 8)] {
        assert_eq!(ask(ArpOperation::REQUEST, host, target), None, "{target}");
    }
    assert_eq!(ask(ArpOperation::REQUEST, Ipv4Addr::UNSPECIFIED, GATEWAY_V4), None);
    assert_eq!(ask(ArpOperation::REPLY, host, GATEWAY_V4), None);
}

/// The same of IPv6's neighbour discovery: to solicited-node addresses, and to the gateway itself.
#[test]
fn m403_m612_neighbours_are_solicited_and_advertised() {
    let plan = plan();
    let host = Ipv6Addr::new(0xfd47, 0, 0, 1, 0, 0, 0, 40);
    let ask = |by: Ipv6Addr, to: Ipv6Addr, target: Ipv6Addr, hops: u8| {
        let builder = PacketBuilder::ethernet2(HOST_ETHERNET, [0x33, 0x33, 0xFF, 0, 0, 1]);
        let mut frame = Vec::new();
        let solicitation = builder.ipv6(by.octets(), to.octets(), hops).icmpv6_raw(135, 0, [0; 4]);
        solicitation.write(&mut frame, &target.octets()).unwrap();
        let mut pipeline = pipeline(40);
        let Verdict::Punt(reason) = pipeline.receive(Time::ZERO, Interface::Host0, &frame) else {
            panic!("not punted")
        };
        let fields = parse(&frame).unwrap();
        let answer = answer(&plan, 40, (Interface::Host0, reason), &frame, &fields)?;
        let read = SlicedPacket::from_ethernet(&answer.frame).unwrap();
        let Some(TransportSlice::Icmpv6(icmp)) = read.transport else { panic!("no ICMPv6") };
        assert!(icmp.is_checksum_valid(target.octets(), by.octets()));
        let Icmpv6Type::NeighborAdvertisement(flags) = icmp.icmp_type() else { panic!("{icmp:?}") };
        assert!(flags.solicited && flags.r#override && flags.router);
        assert_eq!(&icmp.payload()[..16], &target.octets());
        assert_eq!(&icmp.payload()[16..], &[&[2, 1][..], &GATEWAY_ETHERNET].concat());
        Some(target)
    };
    let solicited = |of: Ipv6Addr| {
        let [.., a, b, c] = of.octets();
        Ipv6Addr::from(
            u128::from(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 0))
                | u128::from(u32::from_be_bytes([0, a, b, c])),
        )
    };
    let other = Ipv6Addr::new(0xfd47, 0, 0, 2, 0, 0, 0, 575);
    for target in [GATEWAY_V6, other] {
        assert_eq!(ask(host, solicited(target), target, 255), Some(target));
        // What has crossed a router is not answered.
        assert_eq!(ask(host, solicited(target), target, 254), None);
        assert_eq!(ask(Ipv6Addr::UNSPECIFIED, solicited(target), target, 255), None);
    }
    assert_eq!(ask(host, GATEWAY_V6, GATEWAY_V6, 255), Some(GATEWAY_V6));
    assert_eq!(ask(host, solicited(host), host, 255), None);
    let nobody = Ipv6Addr::new(0xfd47, 0, 0, 2, 0, 0, 0, 576);
    assert_eq!(ask(host, solicited(nobody), nobody, 255), None);
}

/// M403: what is no IP is punted, at most a thousand a second, or goes as it is to the TiN with its Ethernet address.
#[test]
fn m403_what_is_no_ip_is_punted_or_encapsulated() {
    let plan = plan();
    let mut frame =
        [&plan.ethernet(99, Interface::Host1)[..], &HOST_ETHERNET, &[0x88, 0xB5]].concat();
    frame.resize(60, 7);
    let mut pipeline = pipeline(40);
    let punts = (0..2_000u64).filter(|&at| {
        let now = Time::ZERO + Span::from_us(at * 500);
        pipeline.receive(now, Interface::Host0, &frame) == Verdict::Punt(Reason::NotIp)
    });
    // A second at a thousand, and what may come at once.
    assert_eq!(punts.count(), 1_015);
    assert_eq!(pipeline.counts().dropped[Cause::TooManyPunts as usize], 985);
    pipeline.set_not_ip(NotIp::Encapsulate);
    let verdict = pipeline.receive(Time::ZERO + Span::from_us(2_000_000), Interface::Host0, &frame);
    let Verdict::Forward(way) = verdict else { panic!("{verdict:?}") };
    assert_eq!((way.to, way.by), (plan.address(99, Endpoint::HOST_1), By::Ethernet));
    assert!(way.is_encapsulated);
    assert_eq!(enter(&frame, &parse(&frame).unwrap()), Some(frame.clone()));
    // Addresses that nobody has are still punted.
    frame[5] = 0xFF;
    frame[4] = 0xFF;
    let verdict = pipeline.receive(Time::ZERO + Span::from_us(3_000_000), Interface::Host0, &frame);
    assert_eq!(verdict, Verdict::Punt(Reason::NotIp));
}

/// M402, M903: the first rule that fits counts, but for those that only trace.
#[test]
fn m402_m903_rules_count_in_their_order() {
    let plan = plan();
    let [from, to] = [1, 2].map(|tin| plan.ip(tin, Interface::Host0, Version::V4));
    let net = |ip: IpAddr| Some(IpNet::from(ip));
    let rule = |action| Rule { destination: net(to), ..Rule::new(action) };
    let look = |rules: &[Rule], port: u16| {
        let mut pipeline = pipeline(1);
        pipeline.add_rules(rules.iter().copied());
        pipeline.look_up(&parse(&udp(from, to, 9, (5, port), &[])).unwrap(), Interface::Host0)
    };
    let forwards = |verdict: Verdict| match verdict {
        Verdict::Forward(way) => Some(way.is_traced),
        _ => None,
    };
    let (drop, permit, trace) = (rule(Action::Drop), rule(Action::Permit), rule(Action::Trace));
    assert_eq!(forwards(look(&[], 80)), Some(false));
    assert_eq!(look(&[drop, permit], 80), Verdict::Drop(Cause::Rule));
    assert_eq!(forwards(look(&[permit, drop], 80)), Some(false));
    assert_eq!(forwards(look(&[trace, permit, drop], 80)), Some(true));
    let web = Rule { to_port: Some(80), protocol: Some(17), ..Rule::new(Action::Drop) };
    assert_eq!(look(&[web], 80), Verdict::Drop(Cause::Rule));
    assert_eq!(forwards(look(&[web], 81)), Some(false));
    // Each field that does not fit keeps a rule from counting.
    for other in [
        Rule { from: Some(Interface::Ethernet), ..drop },
        Rule { ether_type: Some(fields::IP_V6), ..drop },
        Rule { source: net(to), ..drop },
        Rule { destination: net(from), ..drop },
        Rule { protocol: Some(6), ..drop },
        Rule { to_port: Some(81), ..drop },
    ] {
        assert_eq!(forwards(look(&[other], 80)), Some(false), "{other:?}");
    }
}

/// M402: packets that a router must not forward, and what they count as.
#[test]
fn m402_what_is_malformed_is_dropped() {
    let plan = plan();
    let [from, to] = [1, 2].map(|tin| plan.ip(tin, Interface::Host0, Version::V4));
    let good = udp(from, to, 9, (5, 6), b"0123456789");
    let mut pipeline = pipeline(1);
    let mut receive = |frame: &[u8]| pipeline.receive(Time::ZERO, Interface::Host0, frame);
    assert!(matches!(receive(&good), Verdict::Forward(_)));
    for change in [
        |frame: &mut Vec<u8>| frame.truncate(13),
        |frame: &mut Vec<u8>| frame.truncate(33),
        |frame: &mut Vec<u8>| frame.truncate(45),
        |frame: &mut Vec<u8>| frame[22] = 8,
        |frame: &mut Vec<u8>| frame[14] = 0x65,
    ] {
        let mut bad = good.clone();
        change(&mut bad);
        assert_eq!(receive(&bad), Verdict::Drop(Cause::Malformed), "{bad:02x?}");
    }
    assert_eq!(pipeline.counts().dropped[Cause::Malformed as usize], 5);
    assert_eq!(pipeline.counts().frames, 6);
}

/// All fragments of a packet go one way: later ones have no ports, so the first one's do not count either.
#[test]
fn m404_fragments_of_a_packet_go_one_way() {
    let plan = plan();
    let [from, to] = [1, 2].map(|tin| plan.ip(tin, Interface::Host0, Version::V4));
    let hash = |flags: [u8; 2], ports: (u16, u16)| {
        let mut frame = udp(from, to, 9, ports, b"0123456789");
        frame[20..22].copy_from_slice(&flags);
        frame[24..26].copy_from_slice(&[0; 2]);
        let sum = packets::wire::checksum([&frame[14..34]]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        parse(&frame).unwrap().ip.unwrap().hash(1)
    };
    let whole = [0x40, 0];
    let (first, later, last) = ([0x20, 0], [0x20, 5], [0, 9]);
    assert_eq!(hash(first, (5, 6)), hash(later, (700, 800)));
    assert_eq!(hash(first, (5, 6)), hash(last, (1, 2)));
    assert_ne!(hash(whole, (5, 6)), hash(whole, (5, 7)));
}

/// M015: 256 or 512 of 576, evenly: no pod has two more than another.
#[test]
fn m015_connected_tins_are_spread_over_pods() {
    for count in [24, 256, 512, 576, 900] {
        let tins = compute::connected(576, count);
        assert_eq!(tins.len(), usize::from(count.min(576)));
        assert!(tins.windows(2).all(|pair| pair[0] < pair[1]));
        let by_pod: Vec<_> =
            (0..48).map(|pod| tins.iter().filter(|&&tin| tin / 12 == pod).count()).collect();
        let (least, most) = (by_pod.iter().min().unwrap(), by_pod.iter().max().unwrap());
        assert!(most - least <= 1, "{by_pod:?}");
    }
}
