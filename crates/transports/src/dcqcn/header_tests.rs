use etherparse::{SlicedPacket, TransportSlice};
use packets::reply;
use packets::wire::{encode, real};

use super::*;
use crate::headers::{data, holds_all, rides};

const CODEC: Roce = Roce { framing: Framing { payload: 1_442, header: 58 }, control: 64 };

#[test]
fn every_packet_comes_out_as_it_went_in() {
    holds_all(&CODEC);
}

#[test]
fn what_roce_has_room_for_is_in_its_header() {
    for (seq, marks) in [(0, Marks::ECT), (5, Marks::ECT), (9, Marks::ECT | Marks::LAST)] {
        let packet = Packet { seq, marks, path: 3, wire: 159, ..data(101) };
        assert_eq!(rides(&CODEC, &packet), ["stamp"]);
        assert_eq!(rides(&CODEC, &Packet { seq: seq + (1 << 24), ..packet }), ["seq", "stamp"]);
    }
    let flow = FlowKey::receivers(7);
    for kind in [kinds::ACK, kinds::NACK, kinds::CNP] {
        let ack = if kind == kinds::CNP { 0 } else { 77 };
        let packet = Packet { flow, path: 3, ack, ..reply(&data(0), kind, 64) };
        assert_eq!(rides(&CODEC, &packet), ["stamp"]);
        let large = Packet { entropy: 0xFFFF, path: 0xFFFF, ..packet };
        assert_eq!(rides(&CODEC, &large), ["stamp", "entropy", "path"]);
    }
    let all = Packet { marks: Marks::LAST, flow, path: 3, ..reply(&data(0), kinds::ACK, 64) };
    assert_eq!(rides(&CODEC, &all), ["stamp"]);
}

/// A notification that a ConnectX-4 Lx has sent, from the tests of Scapy (`test/contrib/roce.uts`): its
/// invariant CRC, and its fields.
#[test]
fn the_invariant_crc_is_that_of_an_adapter() {
    let ip = [
        0x45, 0xC2, 0x00, 0x3C, 0x71, 0x8C, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 0x0A, 0x00, 0x11,
        0x01, 0x0A, 0x00, 0x12, 0x01,
    ];
    let mut udp = vec![0x00, 0x00, 0x12, 0xB7, 0x00, 0x28, 0x00, 0x00];
    udp.extend([0x81, 0x00, 0xFF, 0xFF, 0x40, 0x00, 0x01, 0x18, 0x00, 0x00, 0x00, 0x00]);
    udp.extend([0; 16]);
    assert_eq!(invariant(&ip, &udp), [0x82, 0xFD, 0x00, 0x2A]);
    // Ours has the same bytes but for ports, queue pair and sum.
    let flow = FlowKey::receivers(0x116);
    let ours = Packet { flow, ..reply(&data(0), kinds::CNP, 64) };
    let frame = real(&encode(&CODEC, &ours)).unwrap();
    let sliced = SlicedPacket::from_ethernet(&frame[..frame.len() - 4]).unwrap();
    let Some(TransportSlice::Udp(found)) = &sliced.transport else { panic!("{sliced:?}") };
    assert_eq!((found.destination_port(), found.length()), (4791, 0x28));
    assert_eq!(found.payload()[..28], udp[8..]);
}

#[test]
fn data_is_one_message_of_a_reliable_connection() {
    let operation = |seq, marks, payload| {
        let packet = Packet { seq, marks, ..data(payload) };
        let frame = real(&encode(&CODEC, &packet)).unwrap();
        let sliced = SlicedPacket::from_ethernet(&frame[..frame.len() - 4]).unwrap();
        let Some(TransportSlice::Udp(udp)) = &sliced.transport else { panic!("{sliced:?}") };
        let base: [u8; 12] = udp.payload()[..12].try_into().unwrap();
        assert_eq!(udp.payload().len() % 4, 0);
        assert_eq!(base[5..8], [0, 0, 9], "queue pair");
        (base[0], base[1] >> 4 & 3, base[8], u32::from_be_bytes([0, base[9], base[10], base[11]]))
    };
    assert_eq!(operation(0, Marks::empty(), 1_441), (0x00, 3, 0, 0));
    assert_eq!(operation(1, Marks::empty(), 1_442), (0x01, 2, 0, 1));
    assert_eq!(operation(2, Marks::LAST, 3), (0x02, 1, 0x80, 2));
    assert_eq!(operation(0, Marks::LAST, 4), (0x04, 0, 0x80, 0));
}
