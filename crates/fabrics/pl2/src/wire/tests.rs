//! Frames by hand, there and back, and what is refused.

use proptest::prelude::*;
use rack::NodeId;

use super::tag::Place;
use super::*;

/// A reservation of 4 slots by node 1 for data to node 2, and its grant of slots 4 and 5 (Fig. 2).
fn fig2() -> (Control, Control) {
    let reservation = Control {
        destination: Address::of(NodeId::new(2)),
        source: Address::of(NodeId::new(1)),
        opcode: Opcode::Reserve,
        flags: Flags::default(),
        demand: 4,
        burst: 0x0102_0304,
        send_slot: 0,
        receive_slot: 0,
        stamp: 0x1112_1314_1516_1718,
        pair_slots: 0,
    };
    (reservation, reservation.granted(4, 5))
}

/// Written by hand from the table of the layout; the checksum is zlib's crc32 of the 60 bytes before.
#[test]
fn m15_m16_frames_are_the_bytes_of_the_table() {
    let (reservation, grant) = fig2();
    let body = |destination: u8, source: u8, first: u8, slots: [u8; 2]| {
        let mut bytes = vec![2, 0, 0, 0, 0, destination, 2, 0, 0, 0, 0, source];
        bytes.extend([0x81, 0x00, 0xE0, 0x00, 0x88, 0xB5, first, 0, 0, 4, 1, 2, 3, 4]);
        bytes.extend([0, 0, 0, slots[0], 0, 0, 0, slots[1]]);
        bytes.extend([0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]);
        bytes.extend([0; 18]);
        bytes
    };
    for (frame, body, check) in [
        (reservation, body(2, 1, 0x11, [0, 0]), 0x58F1_D24C),
        (grant, body(1, 2, 0x12, [4, 5]), 0x7805_283B),
    ] {
        let mut expected = body;
        expected.extend(u32::to_le_bytes(check));
        assert_eq!(frame.encode().to_vec(), expected);
        assert_eq!(Control::decode(&expected), Ok(frame));
    }
}

/// The check value that the catalogue of polynomials gives for Ethernet's (CRC-32/ISO-HDLC).
#[test]
fn m16_the_frame_check_sequence_is_that_of_ethernet() {
    assert_eq!(fcs::sequence(b"123456789"), 0xCBF4_3926u32.to_le_bytes());
}

#[test]
fn m03_a_full_packet_takes_1538_bytes_of_the_wire() {
    assert_eq!(on_the_wire(Bytes::new(1_500), Bytes::ZERO), Bytes::new(1_538));
    assert_eq!(on_the_wire(Bytes::new(1_500), tag::TAG), Bytes::new(1_542));
    // An acknowledgment is filled up to the smallest frame, which a control frame is.
    assert_eq!(on_the_wire(Bytes::new(40), Bytes::ZERO), Bytes::new(84));
}

#[test]
fn every_wrong_bit_is_found() {
    let (reservation, _) = fig2();
    let frame = reservation.encode();
    for bit in 0..frame.len() * 8 {
        let mut wrong = frame;
        wrong[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Control::decode(&wrong), Err(WireError::Corrupted), "bit {bit}");
    }
}

#[test]
fn what_no_writer_writes_is_refused_by_name() {
    let (reservation, _) = fig2();
    let check = |at: usize, value: u8, field: &str| {
        let mut frame = reservation.encode();
        frame[at] = value;
        fcs::seal(&mut frame);
        let Err(WireError::Field { field: found, .. }) = Control::decode(&frame) else {
            panic!("byte {at} was taken as {value}");
        };
        assert_eq!(found, field, "byte {at}");
    };
    check(14, 0x00, "tag");
    check(17, 0x00, "type");
    check(18, 0x21, "version");
    check(18, 0x16, "operation");
    check(18, 0x10, "operation");
    check(19, 4, "flags");
    check(21, 0, "demand");
    check(46, 1, "spare");
    check(59, 1, "spare");
    let length = WireError::Length { expected: 64, found: 63 };
    assert_eq!(Control::decode(&[0; 63]), Err(length));
}

#[test]
fn m17_all_tags_come_back_and_none_is_zero() {
    let mut tags = 0;
    for bits in 0..=u16::MAX {
        let Some(tag) = Tag::from_bits(bits) else { continue };
        tags += 1;
        assert_eq!(tag.bits(), bits);
        assert_eq!(Tag::decode(&tag.encode()), Ok(Some(tag)));
    }
    assert_eq!(tags, 3 * (1 << 14) + 1);
    assert_eq!(Tag::from_bits(0), None);
    assert_eq!(Tag::decode(&[0x08, 0x00]), Ok(None));
    assert_eq!(Tag::decode(&[0x88]), Err(WireError::Length { expected: 2, found: 1 }));
    assert_eq!(Tag::decode(&[0x88, 0xB6, 0]), Err(WireError::Length { expected: 4, found: 3 }));
    let place = Place { thread: 63, burst: 15, index: 15 };
    assert_eq!(Tag::AgainUncounted(place).bits(), u16::MAX);
}

fn any_control() -> impl Strategy<Value = Control> {
    let opcode = (1u8..=5).prop_filter_map("an operation", Opcode::from_number);
    let addresses = (any::<[u8; 6]>(), any::<[u8; 6]>());
    let flags = (any::<bool>(), any::<bool>());
    (addresses, opcode, flags, 1..=u16::MAX, any::<[u32; 4]>(), any::<u64>()).prop_map(
        |((to, from), opcode, (first, second), demand, [burst, send, receive, pair], stamp)| {
            Control {
                destination: Address(to),
                source: Address(from),
                opcode,
                flags: Flags { is_unsolicited: first, is_crowded: second },
                demand,
                burst,
                send_slot: send,
                receive_slot: receive,
                stamp,
                pair_slots: pair,
            }
        },
    )
}

proptest! {
    #[test]
    fn control_frames_come_back(control in any_control()) {
        prop_assert_eq!(Control::decode(&control.encode()), Ok(control));
    }

    #[test]
    fn any_bytes_are_refused_or_written_back(
        mut bytes in prop::collection::vec(any::<u8>(), 60..70),
        is_framed in any::<bool>(),
    ) {
        if is_framed && bytes.len() > 19 {
            bytes[12..20].copy_from_slice(&[0x81, 0x00, 0xE0, 0x00, 0x88, 0xB5, 0x12, 0x01]);
            bytes.iter_mut().skip(46).for_each(|byte| *byte = 0);
        }
        fcs::seal(&mut bytes);
        if let Ok(control) = Control::decode(&bytes) {
            prop_assert_eq!(control.encode().to_vec(), bytes);
        }
    }
}
