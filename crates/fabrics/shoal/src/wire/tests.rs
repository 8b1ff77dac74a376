//! Tests of the header codec.

use proptest::prelude::*;

use super::*;

/// Widths by name, in order: the table a reviewer compares with Fig. 5.
const WIDTHS: &[(u32, u32, [u32; FIELDS])] = &[
    // nodes, classes: src dst  seq  fb sop eop lcd cls crc
    (2, 1, [10, 10, 22, 11, 1, 1, 1, 0, 8]),
    (512, 1, [10, 10, 22, 11, 1, 1, 1, 0, 8]),
    (1024, 1, [10, 10, 22, 11, 1, 1, 1, 0, 8]),
    (1025, 1, [11, 11, 19, 12, 1, 1, 1, 0, 8]),
    (2048, 1, [11, 11, 19, 12, 1, 1, 1, 0, 8]),
    (2, 2, [9, 9, 22, 10, 1, 1, 1, 3, 8]),
    (512, 8, [9, 9, 22, 10, 1, 1, 1, 3, 8]),
    (513, 2, [10, 10, 19, 11, 1, 1, 1, 3, 8]),
    (1024, 8, [10, 10, 19, 11, 1, 1, 1, 3, 8]),
    (2048, 8, [11, 11, 16, 12, 1, 1, 1, 3, 8]),
];

fn layout(nodes: u32, classes: u32) -> Layout {
    Layout::new(nodes, classes).unwrap()
}

fn header(source: u32, destination: u32, sequence: u32, feedback: u32) -> Header {
    Header {
        source: NodeId::new(source),
        destination: NodeId::new(destination),
        sequence,
        feedback,
        ..Header::empty(NodeId::new(0))
    }
}

#[test]
fn s20_the_fields_have_the_widths_of_figure_5() {
    for &(nodes, classes, widths) in WIDTHS {
        let layout = layout(nodes, classes);
        let found: Vec<u32> = layout.fields().iter().map(|field| field.bits).collect();
        assert_eq!(found, widths, "{nodes} nodes, {classes} classes");
        assert_eq!(widths.iter().sum::<u32>(), 64);
    }
}

#[test]
fn s20_every_rack_fits_the_header_and_no_two_fields_overlap() {
    for nodes in 2..=NODES_MAX {
        for classes in 1..=CLASSES_MAX {
            let layout = layout(nodes, classes);
            let masks =
                layout.fields().iter().map(|field| ((1_u64 << field.bits) - 1) << field.shift);
            assert_eq!(masks.clone().fold(0, |all, mask| all ^ mask), u64::MAX);
            assert_eq!(masks.map(u64::count_ones).sum::<u32>(), 64);
            assert!(layout.field(Name::Feedback).max >= 2 * nodes - 2, "Eq. 6 at {nodes} nodes");
            // §7.3 sees 200 KB out of order: 3572 cells of 56 B, and half the space is the past.
            assert!(layout.sequence().window() > 3572);
            for field in layout.fields() {
                assert!(u64::from(field.max) < 1 << field.bits || field.bits == 0, "{field:?}");
            }
        }
    }
}

#[test]
fn s20_headers_look_like_this_on_the_wire() {
    let paper = layout(1024, 1);
    let wide = layout(2048, 8);
    let data = Header { start_of_packet: true, last_cell_dropped: true, ..header(1, 2, 3, 4) };
    let relayed = header(1023, 0, 0, 2046);
    let empty = Header::empty(NodeId::new(7));
    let end = Header { end_of_packet: true, class: Class::new(5), ..header(2047, 0, 65535, 4095) };
    // Source, destination, sequence, feedback, the three flags, and the class if there is one. The
    // checksum behind them is tested with its polynomial.
    let rows = [
        (&paper, data, "0000000001 0000000010 0000000000000000000011 00000000100 101"),
        (&paper, relayed, "1111111111 0000000000 0000000000000000000000 11111111110 000"),
        (&paper, empty, "0000000111 0000000111 0000000000000000000000 00000000000 000"),
        (&wide, end, "11111111111 00000000000 1111111111111111 111111111111 010 101"),
    ];
    for (layout, header, bits) in rows {
        let bytes = layout.encode(&header, &[0xA5; 56]);
        let bits = u64::from_str_radix(&bits.replace(' ', ""), 2).unwrap();
        assert_eq!(u64::from_be_bytes(bytes) >> 8, bits, "{header:?}");
        assert_eq!(layout.decode(bytes, &[0xA5; 56]), Ok(header));
    }
}

#[test]
fn s21_an_empty_cell_names_its_sender_twice() {
    let empty = Header::empty(NodeId::new(3));
    assert!(empty.is_empty());
    assert!(!header(3, 4, 0, 0).is_empty());
    let layout = layout(8, 1);
    let decoded = layout.decode(layout.encode(&empty, &[]), &[]).unwrap();
    assert!(decoded.is_empty());
}

#[test]
fn s20_what_this_rack_does_not_have_is_refused() {
    let (big, small) = (layout(1024, 1), layout(8, 1));
    let rows = [
        (header(8, 1, 0, 0), WireError::Range { field: "source", value: 8, max: 7 }),
        (header(1, 900, 0, 0), WireError::Range { field: "destination", value: 900, max: 7 }),
    ];
    for (header, error) in rows {
        assert_eq!(small.decode(big.encode(&header, b"pay"), b"pay"), Err(error));
    }
    let (eight, three) = (layout(8, 8), layout(8, 3));
    let bytes = eight.encode(&Header { class: Class::new(3), ..header(0, 1, 0, 0) }, &[]);
    let error = WireError::Range { field: "class", value: 3, max: 2 };
    assert_eq!(three.decode(bytes, &[]), Err(error));
}

#[test]
#[should_panic(expected = "8 in the destination field, which holds at most 7")]
fn s20_a_node_outside_the_rack_is_not_sent() {
    let _ = layout(8, 1).encode(&header(1, 8, 0, 0), &[]);
}

#[test]
fn s20_racks_that_do_not_fit_are_named() {
    for (nodes, classes, key) in
        [(0, 1, "nodes"), (1, 1, "nodes"), (2049, 1, "nodes"), (8, 0, "classes"), (8, 9, "classes")]
    {
        let problem = Layout::new(nodes, classes).unwrap_err();
        assert_eq!(problem.key, key, "{problem}");
    }
}

#[test]
fn s23_every_single_bit_flip_of_a_64_byte_cell_is_detected() {
    let layout = layout(512, 1);
    let payload: Vec<u8> = (0..56).map(|byte| byte * 4 + 1).collect();
    let bytes = layout.encode(&header(5, 99, 1234, 17), &payload);
    for bit in 0..512 {
        let mut cell = [&bytes[..], &payload[..]].concat();
        cell[bit / 8] ^= 0x80 >> (bit % 8);
        let head = cell[..8].try_into().unwrap();
        assert_eq!(layout.decode(head, &cell[8..]), Err(WireError::Corrupted), "bit {bit}");
        assert!(layout.detects([bit], 56), "bit {bit}");
    }
}

#[test]
fn s22_a_header_checksum_does_not_see_the_payload() {
    let layout = layout(512, 1).with_coverage(Coverage::Header);
    let sent = header(5, 99, 1234, 17);
    let bytes = layout.encode(&sent, &[1; 56]);
    assert_eq!(layout.decode(bytes, &[2; 56]), Ok(sent));
    assert!(!layout.detects([64, 511], 56));
    assert!(layout.detects([63], 56));
}

#[test]
fn s25_a_damaged_cell_still_yields_its_congestion_fields() {
    let layout = layout(512, 1);
    let sent = Header { last_cell_dropped: true, ..header(5, 99, 1234, 17) };
    let mut bytes = layout.encode(&sent, &[0; 56]);
    bytes[0] ^= 0x40;
    assert_eq!(layout.decode(bytes, &[0; 56]), Err(WireError::Corrupted));
    let fields = layout.decode_unchecked(bytes);
    assert_eq!(fields, Congestion { feedback: 17, last_cell_dropped: true });
}

#[test]
fn s20_feedback_is_cut_off_at_the_width_of_its_field() {
    let layout = layout(512, 8);
    assert_eq!(layout.limit_feedback(1022), 1022);
    assert_eq!(layout.limit_feedback(5000), 1023);
}

/// A rack and a header that fits it.
fn any_header() -> impl Strategy<Value = (Layout, Header)> {
    (2..=NODES_MAX, 1..=CLASSES_MAX, any::<[u32; 4]>(), any::<[bool; 3]>(), any::<u8>()).prop_map(
        |(nodes, classes, numbers, flags, class)| {
            let layout = layout(nodes, classes);
            let fit = |name, value: u32| {
                (u64::from(value) % (u64::from(layout.field(name).max) + 1)) as u32
            };
            let header = Header {
                source: NodeId::new(fit(Name::Source, numbers[0])),
                destination: NodeId::new(fit(Name::Destination, numbers[1])),
                sequence: fit(Name::Sequence, numbers[2]),
                feedback: fit(Name::Feedback, numbers[3]),
                start_of_packet: flags[0],
                end_of_packet: flags[1],
                last_cell_dropped: flags[2],
                class: Class::new(class % classes as u8),
            };
            (layout, header)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn s20_every_header_survives_the_wire(
        (layout, header) in any_header(), payload in proptest::collection::vec(any::<u8>(), 0..130)
    ) {
        for coverage in [Coverage::Cell, Coverage::Header] {
            let layout = layout.clone().with_coverage(coverage);
            let bytes = layout.encode(&header, &payload);
            prop_assert_eq!(layout.decode(bytes, &payload), Ok(header));
            let fields = layout.decode_unchecked(bytes);
            prop_assert_eq!(fields.feedback, header.feedback);
            prop_assert_eq!(fields.last_cell_dropped, header.last_cell_dropped);
        }
    }

    #[test]
    fn s25_any_bytes_are_refused_or_written_back_the_same(
        nodes in 2..=NODES_MAX, classes in 1..=CLASSES_MAX, mut bytes in any::<[u8; 8]>(),
        payload in proptest::collection::vec(any::<u8>(), 0..70),
    ) {
        let layout = layout(nodes, classes);
        let _ = layout.decode_unchecked(bytes);
        if let Ok(header) = layout.decode(bytes, &payload) {
            prop_assert_eq!(layout.encode(&header, &payload), bytes);
        }
        // With the right checksum most of them get past it.
        bytes[7] = crate::crc::checksum(&bytes[..7], &payload);
        match layout.decode(bytes, &payload) {
            Ok(header) => prop_assert_eq!(layout.encode(&header, &payload), bytes),
            Err(error) => prop_assert_ne!(error, WireError::Corrupted),
        }
    }

    #[test]
    fn s22_an_error_pattern_is_seen_in_a_header_as_it_is_alone(
        (layout, header) in any_header(),
        bits in proptest::collection::btree_set(0_usize..512, 1..6),
    ) {
        let payload = [0x3C; 56];
        let mut cell = [&layout.encode(&header, &payload)[..], &payload].concat();
        for bit in &bits {
            cell[bit / 8] ^= 0x80 >> (bit % 8);
        }
        let damaged = layout.decode(cell[..8].try_into().unwrap(), &cell[8..]);
        prop_assert_eq!(damaged == Err(WireError::Corrupted), layout.detects(bits, 56));
    }
}
