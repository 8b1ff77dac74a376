use kernel::Time;
use proptest::prelude::*;
use rack::NodeId;

use super::*;
use crate::packet::{FlowKey, Kind, Marks, PRIORITIES};

const CODEC: Datagrams = Datagrams { header: 42 };

/// Any packet that a header can be of.
fn packets() -> impl Strategy<Value = Packet> {
    let long = (any::<[u64; 4]>(), 0u32..1 << 29, any::<[u32; 2]>(), any::<[u16; 4]>());
    (long, any::<[bool; 3]>(), any::<u8>(), 0..PRIORITIES, any::<[u8; 2]>()).prop_map(
        |(
            (longs, number, [src, dst], shorts),
            [back, second, small],
            kind,
            priority,
            [marks, hops],
        )| {
            let flow = if back { FlowKey::receivers(number) } else { FlowKey::new(number) };
            Packet {
                seq: longs[0],
                ack: longs[1],
                word: longs[2],
                stamp: Time::from_ps(longs[3]),
                flow: if second { flow.of_second() } else { flow },
                src: NodeId::new(src),
                dst: NodeId::new(dst),
                entropy: shorts[0],
                path: shorts[1],
                wire: shorts[2],
                payload: if small { shorts[3] % 1_500 } else { shorts[3] },
                kind: Kind::of_number(kind).unwrap_or(Kind::DATA),
                priority,
                marks: Marks::from_bits_truncate(marks),
                hops,
            }
        },
    )
}

proptest! {
    #[test]
    fn nodes_have_addresses_of_their_own(node in any::<u32>(), bytes in any::<[u8; 6]>()) {
        let node = NodeId::new(node);
        prop_assert_eq!(Address::of(node).node(), Some(node));
        if let Some(node) = Address(bytes).node() {
            prop_assert_eq!(Address::of(node), Address(bytes));
        }
    }

    #[test]
    fn what_is_read_is_what_was_written(packet in packets()) {
        prop_assert_eq!(decode(&CODEC, &encode(&CODEC, &packet)), Ok(packet));
    }

    #[test]
    fn one_or_two_wrong_bits_are_found(packet in packets(), a: usize, b: usize) {
        let mut bytes = encode(&CODEC, &Packet { payload: packet.payload % 500, ..packet });
        let (a, b) = (a % (8 * bytes.len()), b % (8 * bytes.len()));
        bytes[a / 8] ^= 1 << (a % 8);
        prop_assert_eq!(decode(&CODEC, &bytes), Err(WireError::Checksum));
        if a != b {
            bytes[b / 8] ^= 1 << (b % 8);
            prop_assert_eq!(decode(&CODEC, &bytes), Err(WireError::Checksum));
        }
    }

    /// What is read without an error is written as it was, whatever has become of the bytes.
    #[test]
    fn no_bytes_break_the_reader(
        packet in packets(),
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 0..4),
        cut in 0usize..80,
        noise in prop::collection::vec(any::<u8>(), 0..90),
        is_noise: bool,
    ) {
        let mut bytes = encode(&CODEC, &Packet { payload: packet.payload % 50, ..packet });
        if is_noise {
            bytes = noise;
        }
        bytes.truncate(bytes.len().saturating_sub(cut));
        let length = bytes.len().max(1);
        for (at, value) in changes {
            if let Some(place) = bytes.get_mut(at % length) {
                *place = value;
            }
        }
        ether::seal(&mut bytes);
        if let Ok(packet) = decode(&CODEC, &bytes) {
            prop_assert_eq!(encode(&CODEC, &packet), bytes);
        }
    }

    #[test]
    fn ports_name_each_flow_and_its_side(number in 0u32..1 << 29, is_receivers: bool) {
        let flow = FlowKey::of_number(number, is_receivers).unwrap();
        let ports = Ports::of(&Packet { flow, ..Packet::default() });
        prop_assert_eq!(ports.flow(), Some(flow));
        let back = FlowKey::of_number(number, !is_receivers).unwrap();
        let (from, to) = (ports.to, ports.from);
        prop_assert_eq!(Ports::of(&Packet { flow: back, ..Packet::default() }), Ports { from, to });
    }
}

/// Bytes that the standard has for a pause: 802.1Qbb's opcode, one class, its time.
#[test]
fn a_pause_looks_as_802_1qbb_says() {
    let frame = Packet {
        kind: Kind::PAUSE,
        src: NodeId::new(5),
        priority: 4,
        ack: 0xABCD,
        wire: 64,
        ..Packet::default()
    };
    let bytes = encode(&CODEC, &frame);
    let real = real(&bytes).unwrap();
    assert_eq!(real.len(), 64);
    let head = [0x01, 0x80, 0xC2, 0, 0, 0x01, 2, 0, 0, 0, 0, 5, 0x88, 0x08, 0x01, 0x01, 0, 1 << 3];
    assert_eq!(real[..18], head);
    assert_eq!(real[18..34], [0, 0, 0, 0, 0, 0, 0xAB, 0xCD, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(real[34..60], [0; 26]);
    assert_eq!(decode(&CODEC, &bytes), Ok(frame));
    assert_eq!(bytes.len(), 64 + 4, "nothing but the foot rides behind it");
    let credit = Packet { kind: Kind::LINK_CREDIT, ack: 70_000, wire: 64, ..frame };
    assert_eq!(rides(&CODEC, &credit), ["wire"]);
    // Of a loss: what it was, and its bytes; which one it was rides behind.
    let (flow, src) = (FlowKey::new(17), NodeId::new(5));
    let lost =
        Packet { kind: Kind::LINK_LOST, flow, src, payload: 80, wire: 64, ..Packet::default() };
    assert_eq!(rides(&CODEC, &lost), [""; 0]);
    assert_eq!(rides(&CODEC, &Packet { seq: 9, ..lost }), ["seq"]);
}

/// A switch marks what it has read no trailer of: what the real header says is what counts.
#[test]
fn marks_and_hops_are_in_the_real_header_alone() {
    let sent = Packet { marks: Marks::ECT, payload: 10, seq: 7, ..Packet::default() };
    let seen = Packet { marks: Marks::ECT | Marks::CE, hops: 1, ..sent };
    let mut bytes = encode(&CODEC, &sent);
    let ip = 18;
    bytes[ip + 1] |= 0b11;
    bytes[ip + 8] -= 1;
    bytes[ip + 10..ip + 12].fill(0);
    let sum = checksum([&bytes[ip..ip + 20]]);
    bytes[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
    let length = bytes.len() - FCS;
    bytes.truncate(length);
    ether::seal(&mut bytes);
    assert_eq!(decode(&CODEC, &bytes), Ok(seen));
}

/// RFC 1071 §3: the sum of its example is 0xddf2.
#[test]
fn the_checksum_is_that_of_rfc_1071() {
    assert_eq!(checksum([&[0x00, 0x01, 0xF2, 0x03][..], &[0xF4, 0xF5, 0xF6, 0xF7]]), !0xDDF2);
}

/// What a decoder that is not ours reads in a UDP frame.
#[test]
fn another_decoder_reads_the_datagram() {
    let packet = Packet {
        flow: FlowKey::new(0x1_0003),
        src: NodeId::new(0x01_02_03),
        dst: NodeId::new(255),
        priority: 3,
        marks: Marks::ECT | Marks::CE,
        seq: 0x1_2345,
        payload: 101,
        hops: 2,
        ..Packet::default()
    };
    let frame = real(&encode(&CODEC, &packet)).unwrap();
    let (body, _) = frame.split_last_chunk::<FCS>().unwrap();
    let sliced = etherparse::SlicedPacket::from_ethernet(body).unwrap();
    let Some(etherparse::LinkSlice::Ethernet2(ethernet)) = &sliced.link else { panic!() };
    assert_eq!(ethernet.destination(), [2, 0, 0, 0, 0, 255]);
    assert_eq!(ethernet.source(), [2, 0, 0, 1, 2, 3]);
    let tag = sliced.vlan().unwrap();
    let etherparse::VlanSlice::SingleVlan(tag) = tag else { panic!("{tag:?}") };
    assert_eq!((tag.priority_code_point().value(), tag.vlan_identifier().value()), (4, 0));
    let Some(etherparse::NetSlice::Ipv4(ip)) = &sliced.net else { panic!() };
    let header = ip.header();
    assert_eq!(header.header_checksum(), header.to_header().calc_header_checksum());
    assert_eq!(header.source_addr().octets(), [10, 1, 2, 4]);
    assert_eq!(header.destination_addr().octets(), [10, 0, 1, 0]);
    assert_eq!((header.ecn().value(), header.dcp().value()), (3, 4 << 3));
    assert_eq!((header.ttl(), header.identification()), (253, 0x2345));
    let Some(etherparse::TransportSlice::Udp(udp)) = &sliced.transport else { panic!() };
    assert_eq!((udp.source_port(), udp.destination_port()), (0xC003, 0x0404));
    assert_eq!(udp.payload(), [0; 101]);
    let ipv4 = header.to_header();
    let sum = udp.to_header().calc_checksum_ipv4(&ipv4, udp.payload()).unwrap();
    assert_eq!(udp.checksum(), sum);
}
