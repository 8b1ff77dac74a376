use etherparse::{EtherType, PacketBuilder, TcpHeader, VlanId};
use proptest::prelude::*;
use rack::workload::trace::TraceRow;

use super::super::{MEMORY_DEFAULT, Reading, TraceFormat, read_from};
use super::*;

/// A packet: microseconds from 1970, what was captured, how long it was.
type Recorded = (u64, Vec<u8>, usize);

/// A file of pcap, by its description: a head of 24 bytes, and 16 before each packet.
fn pcap(link: u32, packets: &[Recorded]) -> Vec<u8> {
    let mut out = vec![];
    out.extend(0xa1b2_c3d4_u32.to_le_bytes());
    out.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.extend(262_144_u32.to_le_bytes());
    out.extend(link.to_le_bytes());
    for (us, data, length) in packets {
        for word in [us / 1_000_000, us % 1_000_000, data.len() as u64, *length as u64] {
            out.extend((word as u32).to_le_bytes());
        }
        out.extend(data);
    }
    out
}

/// A block of pcapng: type, length, what is in it in words of four bytes, length again.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let length = (body.len() as u32 + 12).to_be_bytes();
    [&kind.to_be_bytes()[..], &length, &body, &length].concat()
}

/// A file of pcapng, big end first, whose clock ticks in nanoseconds.
fn pcapng(link: u16, packets: &[Recorded]) -> Vec<u8> {
    let mut head = 0x1a2b_3c4d_u32.to_be_bytes().to_vec();
    head.extend([0, 1, 0, 0]);
    head.extend(u64::MAX.to_be_bytes());
    let mut out = block(0x0a0d_0d0a, &head);
    let mut interface = link.to_be_bytes().to_vec();
    interface.extend([0, 0, 0, 0, 0, 0]);
    // if_tsresol, one byte: 10^-9.
    interface.extend([0, 9, 0, 1, 9, 0, 0, 0, 0, 0, 0, 0]);
    out.extend(block(1, &interface));
    // Names, which are no packets.
    out.extend(block(4, &[0, 0, 0, 0]));
    for (us, data, length) in packets {
        let ticks = us * 1_000;
        let words = [0, (ticks >> 32) as u32, ticks as u32, data.len() as u32, *length as u32];
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        body.extend(data);
        out.extend(block(6, &body));
    }
    out
}

fn ethernet() -> etherparse::PacketBuilderStep<etherparse::Ethernet2Header> {
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
}

fn whole(us: u64, data: Vec<u8>) -> Recorded {
    let length = data.len();
    (us, data, length)
}

/// A segment of a connection from 10.0.0.`from`:`port` to 10.0.0.`to`:80. `flags`: of S, A, F, R.
fn tcp(
    us: u64,
    (from, to): (u8, u8),
    port: u16,
    number: u32,
    flags: &str,
    bytes: usize,
) -> Recorded {
    let mut header = TcpHeader::new(port, 80, number, 1_000);
    header.syn = flags.contains('S');
    header.ack = flags.contains('A');
    header.fin = flags.contains('F');
    header.rst = flags.contains('R');
    header.set_options_raw(&[1; 12]).unwrap();
    let builder = ethernet().ipv4([10, 0, 0, from], [10, 0, 0, to], 64).tcp_header(header);
    let mut data = vec![];
    builder.write(&mut data, &vec![7; bytes]).unwrap();
    whole(us, data)
}

fn udp(us: u64, from: u8, bytes: usize) -> Recorded {
    let builder = ethernet().ipv4([10, 0, 0, from], [10, 0, 0, 9], 64).udp(5_000, 6_000);
    let mut data = vec![];
    builder.write(&mut data, &vec![7; bytes]).unwrap();
    whole(us, data)
}

fn read(bytes: Vec<u8>, capturing: Capturing) -> Result<(Vec<TraceRow>, Captured), String> {
    let reading = Reading {
        format: TraceFormat::Pcap,
        first_node: 0,
        nodes: 8,
        memory: MEMORY_DEFAULT,
        capturing,
    };
    let read = read_from("c.pcap", bytes, reading).map_err(|bad| bad.to_string())?;
    Ok((read.rows, read.captured.expect("it is a capture")))
}

/// Start in us, source, destination and bytes of each flow, the same by both formats.
#[track_caller]
fn flows(packets: &[Recorded]) -> (Vec<(u64, u32, u32, u64)>, Captured) {
    let [(rows, told), other] = [pcap(1, packets), pcapng(1, packets)]
        .map(|bytes| read(bytes, Capturing::default()).unwrap_or_else(|error| panic!("{error}")));
    assert_eq!((&rows, told), (&other.0, other.1));
    (listed(&rows), told)
}

fn listed(rows: &[TraceRow]) -> Vec<(u64, u32, u32, u64)> {
    rows.iter().map(|row| (row.start.as_ps() / 1_000_000, row.src, row.dst, row.bytes)).collect()
}

/// 2026-11-25, in microseconds.
const DAY: u64 = 1_795_600_000_000_000;

#[test]
fn each_direction_of_a_connection_is_a_flow_from_its_first_packet_on() {
    let (back, forth) = ((2, 1), (1, 2));
    let answer = |us, number, flags, bytes| {
        let mut recorded = tcp(us, back, 80, number, flags, bytes);
        // From port 80 to 4000: ports stand behind Ethernet and IP.
        recorded.1[34..38].copy_from_slice(&[0, 80, 15, 160]);
        recorded
    };
    let packets = [
        tcp(DAY, forth, 4_000, 99, "S", 0),
        answer(DAY + 10, 500, "SA", 0),
        tcp(DAY + 20, forth, 4_000, 100, "A", 0),
        tcp(DAY + 30, forth, 4_000, 100, "A", 300),
        answer(DAY + 40, 501, "A", 1_448),
        answer(DAY + 50, 1_949, "A", 1_448),
        tcp(DAY + 60, forth, 4_000, 400, "FA", 5),
        answer(DAY + 70, 3_397, "FA", 0),
        tcp(DAY + 80, forth, 4_000, 406, "A", 0),
        // The same ports again: another connection.
        tcp(DAY + 90, forth, 4_000, 7_000, "S", 0),
        tcp(DAY + 95, forth, 4_000, 7_001, "A", 10),
    ];
    let (found, told) = flows(&packets);
    assert_eq!(found, [(0, 0, 1, 305), (40, 1, 0, 2_896), (90, 0, 1, 10)]);
    assert_eq!(told, Captured { packets: 11, ..Captured::default() });
}

#[test]
fn a_byte_that_is_sent_again_counts_once_whatever_the_order() {
    let ends = (1, 2);
    let segment = |us, number, bytes| tcp(DAY + us, ends, 4_000, number, "A", bytes);
    let packets = [
        segment(0, 1_000, 100),
        segment(1, 1_200, 100), // one before it is missing
        segment(2, 1_000, 100), // again
        segment(3, 1_050, 200), // closes the gap, and overlaps both
        segment(4, 900, 100),   // earlier, but late
        segment(5, 1_300, 1),
    ];
    assert_eq!(flows(&packets).0, [(0, 0, 1, 401)]);
    // Numbers that go round.
    let packets =
        [segment(0, u32::MAX - 49, 100), segment(1, 50, 100), segment(2, u32::MAX - 49, 10)];
    assert_eq!(flows(&packets).0, [(0, 0, 1, 200)]);
}

#[test]
fn a_reset_ends_both_directions_and_a_silence_either() {
    let ends = (1, 2);
    let second = 1_000_000;
    let packets = [
        tcp(DAY, ends, 4_000, 100, "A", 10),
        tcp(DAY + 1, ends, 4_000, 110, "R", 0),
        // What is still sent of it belongs to it; what opens the connection again does not.
        tcp(DAY + 2, ends, 4_000, 110, "A", 5),
        tcp(DAY + 3, ends, 4_000, 900, "S", 0),
        tcp(DAY + 4, ends, 4_000, 901, "A", 7),
        udp(DAY + 5, 3, 50),
        udp(DAY + 15 * second + 5, 3, 50),
        udp(DAY + 30 * second + 6, 3, 50),
    ];
    let (found, _) = flows(&packets);
    let last = 30 * second + 6;
    assert_eq!(found, [(0, 0, 1, 15), (3, 0, 1, 7), (5, 2, 3, 100), (last, 2, 3, 50)]);
    let timeout = Span::from_us(40_000_000);
    let longer = Capturing { timeout, ..Capturing::default() };
    let (rows, _) = read(pcap(1, &packets), longer).unwrap();
    assert_eq!(listed(&rows)[2], (5, 2, 3, 150));
}

#[test]
fn headers_are_found_on_every_kind_of_link_and_behind_tags() {
    let mut ip = vec![];
    PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9)
        .udp(1, 2)
        .write(&mut ip, &[7; 30])
        .unwrap();
    let framed = |head: &[u8]| [head, &ip].concat();
    let cooked = [&[0; 14][..], &[8, 0]].concat();
    let cooked_2 = [&[8, 0][..], &[0; 18]].concat();
    for (link, data) in [
        (0, framed(&[2, 0, 0, 0])),
        (12, ip.clone()),
        (101, ip.clone()),
        (108, framed(&[0, 0, 0, 2])),
        (113, framed(&cooked)),
        (228, ip.clone()),
        (276, framed(&cooked_2)),
    ] {
        let (rows, told) = read(pcap(link, &[whole(DAY, data)]), Capturing::default()).unwrap();
        assert_eq!((listed(&rows), told.left_out()), (vec![(0, 0, 1, 30)], 0), "link {link}");
    }
    let mut tagged = vec![];
    let tag = ethernet().double_vlan(VlanId::try_new(5).unwrap(), VlanId::try_new(6).unwrap());
    tag.ipv6([1; 16], [2; 16], 3).udp(1, 2).write(&mut tagged, &[7; 40]).unwrap();
    let padded = [udp(DAY, 1, 1).1, vec![0; 17]].concat();
    let (found, told) = flows(&[whole(DAY, tagged), whole(DAY, padded)]);
    assert_eq!((found, told.left_out()), (vec![(0, 0, 1, 40), (0, 2, 3, 1)], 0));
}

#[test]
fn packets_that_were_cut_short_count_in_full_as_long_as_their_headers_are_there() {
    let cut = |recorded: Recorded, at: usize| {
        let (us, mut data, length) = recorded;
        data.truncate(at);
        (us, data, length)
    };
    // Ethernet, IP, and fourteen of TCP's 32 bytes.
    let tcp = || tcp(DAY, (1, 2), 4_000, 100, "A", 1_000);
    assert_eq!(flows(&[cut(tcp(), 48)]).0, [(0, 0, 1, 1_000)]);
    let error = read(pcap(1, &[cut(tcp(), 47)]), Capturing::default()).unwrap_err();
    assert!(
        error.contains("of 1 packets 1 belong to no flow (1 with headers cut off or damaged)"),
        "{error}"
    );
    // What a NIC was to cut into packets has no length in its header, but in the file.
    let mut large = tcp();
    large.1[16..18].copy_from_slice(&[0, 0]);
    assert_eq!(flows(&[cut(large, 60)]).0, [(0, 0, 1, 1_000)]);
}

#[test]
fn what_is_no_flow_is_counted() {
    let other = |ether_type: u16, bytes: &[u8]| {
        let head = [&[2; 12][..], &ether_type.to_be_bytes()].concat();
        whole(DAY, [&head, bytes].concat())
    };
    let mut ping = vec![];
    let echo = ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9).icmpv4_echo_request(1, 2);
    echo.write(&mut ping, &[0; 8]).unwrap();
    let mut fragment = udp(DAY, 1, 100);
    // Offset of a fragment: 8 bytes.
    fragment.1[21] = 1;
    let mut bent = udp(DAY, 1, 100);
    // A header of IP of four bytes.
    bent.1[14] = 0x41;
    let packets = [
        udp(DAY, 1, 100),
        other(EtherType::ARP.0, &[0; 28]),
        other(0x88cc, &[1; 30]),
        whole(DAY, ping),
        fragment,
        bent,
        whole(DAY, vec![1, 2]),
    ];
    let (found, told) = flows(&packets);
    assert_eq!(found, [(0, 0, 1, 100)]);
    let expected = Captured {
        packets: 7,
        not_ip: 2,
        not_tcp_udp: 1,
        fragments: 1,
        short: 2,
        ..Captured::default()
    };
    assert_eq!(told, expected);
}

#[test]
fn nodes_are_addresses_as_they_appear_or_as_they_are_listed() {
    let packets: Vec<_> =
        [3, 1, 2].iter().zip(0..).map(|(&from, us)| udp(DAY + us, from, 10)).collect();
    assert_eq!(flows(&packets).0, [(0, 0, 1, 10), (1, 2, 1, 10), (2, 3, 1, 10)]);
    let hosts = [1, 3, 9].map(|last| IpAddr::from([10, 0, 0, last])).to_vec();
    let listed_hosts = Capturing { hosts, ..Capturing::default() };
    let (rows, told) = read(pcap(1, &packets), listed_hosts).unwrap();
    assert_eq!(listed(&rows), [(0, 1, 2, 10), (1, 0, 2, 10)]);
    assert_eq!(told.other_hosts, 1);
    let many: Vec<_> = (20..40).map(|from| udp(DAY, from, 10)).collect();
    let error = read(pcap(1, &many), Capturing::default()).unwrap_err();
    assert!(error.contains("packets of 21 addresses, and the rack has 8 nodes"), "{error}");
}

#[test]
fn a_file_that_ends_within_a_packet_is_read_up_to_there_and_said_so() {
    let packets = [udp(DAY, 1, 10), udp(DAY + 1, 2, 10), udp(DAY + 2, 3, 10)];
    for bytes in [pcap(1, &packets), pcapng(1, &packets)] {
        let torn = bytes[..bytes.len() - 5].to_vec();
        let (rows, told) = read(torn, Capturing::default()).unwrap();
        assert_eq!((rows.len(), told.packets, told.cut_off), (2, 2, true));
    }
}

#[test]
fn damaged_files_are_refused_with_the_byte_from_which_on_they_are() {
    let good = pcapng(1, &[udp(DAY, 1, 10)]);
    let mut bent = good.clone();
    let last = bent.len() - 1;
    bent[last] ^= 4;
    let mut nobody = good.clone();
    // The interface of the packet, behind three blocks and two words.
    let packet = good.len() - block(6, &[0; 20 + 52]).len();
    nobody[packet + 8 + 3] = 7;
    let mut huge = pcap(1, &[udp(DAY, 1, 10)]);
    huge[24 + 8..24 + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    huge.resize(1 << 25, 0);
    for (bytes, expected) in [
        (vec![], "the file is empty; expected a capture".to_string()),
        (b"start,src,dst\n1,2,3\n".to_vec(), "byte 0: found no head of a capture".into()),
        (bent, format!("byte {packet}: found no packet where one begins")),
        (nobody, format!("byte {packet}: found a packet of interface 7, and the section has 1")),
        (huge, "byte 24: found a packet of more than 16777216 bytes".into()),
        (pcap(1, &[]), "holds no flow; expected at least one".into()),
    ] {
        let error = read(bytes, Capturing::default()).unwrap_err();
        assert!(error.contains(&expected), "{error}\ninstead of\n{expected}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        link in 0u32..300, data in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..90), 0..6),
        flip in any::<prop::sample::Index>(), to: u8, cut in any::<prop::sample::Index>(),
    ) {
        let mut packets: Vec<Recorded> = data.into_iter().map(|data| whole(DAY, data)).collect();
        packets.push(tcp(DAY + 5, (1, 2), 4_000, 100, "A", 20));
        for mut bytes in [pcap(link, &packets), pcapng(link as u16, &packets)] {
            _ = read(bytes.clone(), Capturing::default());
            let at = flip.index(bytes.len());
            bytes[at] = to;
            bytes.truncate(cut.index(bytes.len()) + 1);
            _ = read(bytes, Capturing::default());
        }
    }

    /// The ranges of a stream against a set of its bytes.
    #[test]
    fn bytes_of_a_stream_are_counted_as_a_set_counts_them(
        segments in prop::collection::vec((0u32..2_000, 0usize..200), 1..60), first: u32,
    ) {
        let mut seen = std::collections::BTreeSet::new();
        let mut packets = vec![];
        for (us, &(number, bytes)) in (0..).zip(&segments) {
            seen.extend(number..number + bytes as u32);
            packets.push(tcp(DAY + us, (1, 2), 4_000, first.wrapping_add(number), "A", bytes));
        }
        if seen.is_empty() {
            return Ok(());
        }
        let (rows, _) = read(pcap(1, &packets), Capturing::default()).unwrap();
        prop_assert_eq!(listed(&rows)[0].3, seen.len() as u64);
    }
}
