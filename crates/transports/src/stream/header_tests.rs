use etherparse::{NetSlice, SlicedPacket, TcpOptionElement, TransportSlice};
use kernel::Span;
use packets::wire::real;
use packets::{FlowKey, reply};

use super::super::sack::Block;
use super::*;
use crate::headers::{data, holds_all, rides};

const CODEC: Segments = Segments {
    segment: 1_448,
    header: 52,
    has_stamps: true,
    has_blocks: true,
    has_ecn: true,
    window: 1_448 * 4_344,
};

fn acknowledgment(blocks: &[Block], ack: u64) -> Packet {
    let mut all = [Block::default(); BLOCKS];
    all[..blocks.len()].copy_from_slice(blocks);
    let report = Report { blocks: all, hops: 0, endpoint: Span::ZERO };
    let flow = FlowKey::receivers(7);
    let wire = CODEC.header + option_size(blocks.len());
    let mut packet = Packet { flow, ack, ..reply(&data(0), kinds::ACK, wire) };
    report.encode(&mut packet);
    packet
}

#[test]
fn every_packet_comes_out_as_it_went_in() {
    holds_all(&CODEC);
    let plain =
        Segments { has_stamps: false, has_blocks: false, has_ecn: false, header: 40, ..CODEC };
    holds_all(&plain);
}

/// What the trailer holds is what TCP has no room for, and no more.
#[test]
fn what_tcp_has_room_for_is_in_its_header() {
    let segment = Packet { seq: 41, wire: 152, marks: Marks::ECT | Marks::CWR, ..data(100) };
    assert_eq!(rides(&CODEC, &segment), ["stamp", "entropy"]);
    let coarse = Packet { entropy: 0, stamp: kernel::Time::from_ps(7_000_000), ..segment };
    assert_eq!(rides(&CODEC, &coarse), [""; 0]);
    // Beyond four gigabytes the header's numbers come round.
    let far = Packet { seq: 41 + (1 << 32), ..segment };
    assert_eq!(rides(&CODEC, &far), ["seq", "stamp", "entropy"]);
    let blocks = [Block { from: 17, to: 19 }, Block { from: 65_000, to: 65_549 }];
    let ack = acknowledgment(&blocks, 15);
    assert_eq!(rides(&CODEC, &ack), ["stamp", "entropy"]);
    let mut all = acknowledgment(&[], 15);
    say_all(&mut all, 1_000);
    assert_eq!(rides(&CODEC, &all), ["stamp", "entropy"]);
    let closed = Packet { marks: Marks::LAST, ..acknowledgment(&[], 0) };
    assert_eq!(rides(&CODEC, &closed), ["stamp", "entropy"]);
    let mut swift = ack;
    swift.word |= 3 << 24;
    assert_eq!(rides(&CODEC, &swift), ["word", "stamp", "entropy"]);
    for kind in [kinds::SYN, kinds::SYN_ACK] {
        let flow = if kind == kinds::SYN { FlowKey::new(7) } else { FlowKey::receivers(7) };
        let opening = Packet { kind, flow, payload: 0, wire: 52, ..data(0) };
        assert_eq!(rides(&CODEC, &opening), ["stamp", "entropy"]);
    }
}

/// Reads a frame with a decoder that is not ours, which checks lengths; checksums are held here.
#[track_caller]
fn tcp_of(packet: &Packet, check: impl FnOnce(&etherparse::TcpSlice<'_>)) {
    let frame = real(&packets::wire::encode(&CODEC, packet)).unwrap();
    let sliced = SlicedPacket::from_ethernet(&frame[..frame.len() - 4]).unwrap();
    let Some(NetSlice::Ipv4(ip)) = &sliced.net else { panic!("{sliced:?}") };
    let header = ip.header().to_header();
    assert_eq!(header.header_checksum, header.calc_header_checksum());
    assert_eq!(ip.header().total_len(), packet.wire);
    let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { panic!("{sliced:?}") };
    let sum = tcp.to_header().calc_checksum_ipv4(&header, tcp.payload()).unwrap();
    assert_eq!(tcp.checksum(), sum);
    assert_eq!(tcp.payload().len(), usize::from(packet.payload));
    check(tcp);
}

#[test]
fn another_decoder_reads_the_segment() {
    let marks = Marks::ECT | Marks::CWR | Marks::LAST;
    tcp_of(&Packet { seq: 41, wire: 152, marks, ..data(100) }, |tcp| {
        assert_eq!((tcp.source_port(), tcp.destination_port()), (0xC007, 0x0400));
        assert_eq!((tcp.sequence_number(), tcp.acknowledgment_number()), (1 + 41 * 1_448, 1));
        let flags = [tcp.ack(), tcp.fin(), tcp.psh(), tcp.cwr(), tcp.ece(), tcp.syn(), tcp.rst()];
        assert_eq!(flags, [true, true, true, true, false, false, false]);
        // 6,290,112 bytes, in units of 128.
        assert_eq!(tcp.window_size(), 49_141);
        let options: Vec<_> = tcp.options_iterator().map(Result::unwrap).collect();
        let stamps = TcpOptionElement::Timestamp(5, 0);
        assert_eq!(options, [TcpOptionElement::Noop, TcpOptionElement::Noop, stamps]);
    });
}

#[test]
fn another_decoder_reads_the_acknowledgment() {
    let blocks =
        [Block { from: 17, to: 19 }, Block { from: 21, to: 22 }, Block { from: 30, to: 40 }];
    let ack = Packet { marks: Marks::ECE, ..acknowledgment(&blocks, 15) };
    tcp_of(&ack, |tcp| {
        assert_eq!((tcp.source_port(), tcp.destination_port()), (0x0400, 0xC007));
        assert_eq!((tcp.sequence_number(), tcp.acknowledgment_number()), (1, 1 + 15 * 1_448));
        assert_eq!([tcp.ack(), tcp.ece(), tcp.cwr(), tcp.fin()], [true, true, false, false]);
        let options: Vec<_> = tcp.options_iterator().map(Result::unwrap).collect();
        let edge = |segment: u32| 1 + segment * 1_448;
        let more = [Some((edge(21), edge(22))), Some((edge(30), edge(40))), None];
        let sack = TcpOptionElement::SelectiveAcknowledgement((edge(17), edge(19)), more);
        assert_eq!(options[2], TcpOptionElement::Timestamp(5, 5));
        assert_eq!(options[5], sack);
    });
}

/// A flow of 14 full segments and one of 448 bytes: the byte behind the last, and the FIN.
#[test]
fn another_decoder_reads_the_last_acknowledgment() {
    let mut ack = acknowledgment(&[], 15);
    say_all(&mut ack, 1_000);
    tcp_of(&ack, |tcp| {
        assert_eq!((tcp.sequence_number(), tcp.acknowledgment_number()), (1, 14 * 1_448 + 448 + 2));
        assert_eq!([tcp.ack(), tcp.fin()], [true, true]);
    });
}

#[test]
fn another_decoder_reads_what_opens_a_connection() {
    let syn = Packet { kind: kinds::SYN, wire: 60, ..data(0) };
    let accepts = Packet { kind: kinds::SYN_ACK, flow: FlowKey::receivers(7), ..syn };
    let options = [
        TcpOptionElement::MaximumSegmentSize(1_460),
        TcpOptionElement::SelectiveAcknowledgementPermitted,
        TcpOptionElement::Timestamp(5, 0),
        TcpOptionElement::Noop,
        TcpOptionElement::WindowScale(7),
    ];
    tcp_of(&syn, |tcp| {
        assert_eq!((tcp.sequence_number(), tcp.acknowledgment_number()), (0, 0));
        // RFC 3168 §6.1.1: both bits ask for ECN, one of them grants it.
        assert_eq!([tcp.syn(), tcp.ack(), tcp.ece(), tcp.cwr()], [true, false, true, true]);
        assert_eq!(tcp.window_size(), u16::MAX);
        let found: Vec<_> = tcp.options_iterator().map(Result::unwrap).collect();
        assert_eq!(found, options);
    });
    tcp_of(&accepts, |tcp| {
        assert_eq!((tcp.sequence_number(), tcp.acknowledgment_number()), (0, 1));
        assert_eq!([tcp.syn(), tcp.ack(), tcp.ece(), tcp.cwr()], [true, true, true, false]);
    });
}
