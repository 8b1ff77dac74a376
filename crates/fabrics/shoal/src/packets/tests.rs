//! Tests of segmentation and reassembly.

use proptest::prelude::*;

use super::*;

fn plan(packet: u64, payload: u64) -> CellPlan {
    CellPlan::new(Bytes::new(packet), Bytes::new(payload)).unwrap()
}

fn paper() -> CellPlan {
    plan(PACKET_BYTES_DEFAULT, PAYLOAD_BYTES_DEFAULT)
}

#[test]
fn s27_flows_take_this_many_cells() {
    // 1500 + 2 bytes fill 26.8 cells of 56 bytes.
    let rows = [
        (1, 1),
        (54, 1),
        (55, 2), // no room for the length
        (56, 2),
        (110, 2),
        (111, 3),
        (1500, 27),
        (1501, 28),
        (3000, 54),
        (100_000, 66 * 27 + 18), // 66 full packets and 1000 bytes
    ];
    for (size, cells) in rows {
        assert_eq!(paper().cells(Bytes::new(size)), cells, "{size} bytes");
    }
    assert_eq!(paper().cells_per_packet(), 27);
}

#[test]
fn s27_cells_of_a_small_flow() {
    use Place::{First, Last, Middle, Only};
    let rows: [(u64, &[(Place, u64)]); 5] = [
        (10, &[(Only, 10)]),
        (55, &[(First, 55), (Last, 0)]),
        (56, &[(First, 56), (Last, 0)]),
        (120, &[(First, 56), (Middle, 56), (Last, 8)]),
        (210, &[(First, 56), (Middle, 56), (Middle, 56), (Last, 32), (Only, 10)]),
    ];
    for (size, expected) in rows {
        let (plan, size) = (plan(200, 56), Bytes::new(size));
        let found: Vec<(Place, u64)> = (0..plan.cells(size))
            .map(|index| plan.cell(size, index))
            .map(|cell| (cell.place, cell.data.get()))
            .collect();
        assert_eq!(found, expected, "{size}");
    }
}

#[test]
fn s27_sizes_that_make_no_cells_are_named() {
    let rows = [(0, 56, "packet"), (65536, 56, "packet"), (1500, 2, "cell"), (1500, 0, "cell")];
    for (packet, payload, key) in rows {
        let problem = CellPlan::new(Bytes::new(packet), Bytes::new(payload)).unwrap_err();
        assert_eq!(problem.key, key, "{problem}");
    }
}

#[test]
#[should_panic(expected = "cell 1 of a flow of 10 B")]
fn s27_a_cell_behind_the_end_is_our_mistake() {
    let _ = paper().cell(Bytes::new(10), 1);
}

#[test]
fn s28_the_marks_of_a_header_tell_the_place() {
    for place in Place::ALL {
        let header = Header {
            start_of_packet: place.is_start(),
            end_of_packet: place.is_end(),
            ..Header::empty(rack::NodeId::new(0))
        };
        assert_eq!(Place::told_by(&header), place);
    }
}

#[test]
fn s28_a_packet_looks_like_this_in_cells() {
    let cells: Vec<FrameCell> = segment(&[1, 2, 3, 4, 5, 6, 7], 4).collect();
    let expected = [
        (Place::First, vec![1, 2, 3, 4]),
        (Place::Middle, vec![5, 6, 7, 0]),
        (Place::Last, vec![0, 0, 0, 7]),
    ];
    assert_eq!(cells.len(), 3);
    for (cell, (place, payload)) in cells.into_iter().zip(expected) {
        assert_eq!((cell.place, cell.payload), (place, payload));
    }
}

/// What a reassembler says to a cell.
type Outcome = Result<Option<Vec<u8>>, FramingError>;

#[test]
fn s28_bad_framing_is_named_and_left_behind() {
    use Place::{First, Last, Middle, Only};
    let mut reassembler = Reassembler::new(4);
    let rows: [(Place, &[u8], Outcome); 10] = [
        (Middle, &[0; 4], Err(FramingError::Stray)),
        (Last, &[0; 4], Err(FramingError::Stray)),
        (First, &[1, 2, 3, 4], Ok(None)),
        (First, &[5, 6, 7, 8], Err(FramingError::Unfinished { bytes: 4 })),
        (Last, &[9, 0, 0, 5], Ok(Some(vec![5, 6, 7, 8, 9]))),
        (Only, &[9, 9, 0, 3], Err(FramingError::Length { length: 3, cells: 1 })),
        (Only, &[9, 9, 0, 0], Err(FramingError::Length { length: 0, cells: 1 })),
        (Only, &[9, 9, 0], Err(FramingError::Payload { found: 3, expected: 4 })),
        (Only, &[9, 9, 0, 2], Ok(Some(vec![9, 9]))),
        (Last, &[9, 9, 0, 2], Err(FramingError::Stray)),
    ];
    for (index, (place, payload, expected)) in rows.into_iter().enumerate() {
        assert_eq!(reassembler.push(place, payload), expected, "cell {index}");
    }
}

#[test]
fn s28_a_packet_without_end_is_given_up() {
    let mut reassembler = Reassembler::new(56);
    assert_eq!(reassembler.push(Place::First, &[0; 56]), Ok(None));
    let given_up = (1..2000).find(|_| reassembler.push(Place::Middle, &[0; 56]).is_err());
    // The longest packet: 65535 + 2 bytes in 1171 cells.
    assert_eq!(given_up, Some(1170));
}

#[test]
fn s28_the_longest_packet_is_rebuilt() {
    let packet: Vec<u8> = (0..PACKET_BYTES_MAX).map(|byte| byte as u8).collect();
    let mut reassembler = Reassembler::new(56);
    let rebuilt: Vec<Vec<u8>> = segment(&packet, 56)
        .filter_map(|cell| reassembler.push(cell.place, &cell.payload).unwrap())
        .collect();
    assert_eq!(rebuilt, [packet]);
}

proptest! {
    #[test]
    fn s27_the_cells_of_a_flow_carry_its_bytes(
        packet in 1_u64..3000, payload in 3_u64..200, size in 1_u64..20_000
    ) {
        let (plan, size) = (plan(packet, payload), Bytes::new(size));
        let (mut data, mut starts, mut ends) = (0, 0, 0);
        for index in 0..plan.cells(size) {
            prop_assert_eq!(plan.data_before(size, index).get(), data);
            let cell = plan.cell(size, index);
            data += cell.data.get();
            prop_assert!(!cell.place.is_start() || starts == ends);
            starts += u64::from(cell.place.is_start());
            ends += u64::from(cell.place.is_end());
        }
        prop_assert_eq!(data, size.get());
        prop_assert_eq!(plan.data_before(size, plan.cells(size)), size);
        prop_assert_eq!((starts, ends), (size.get().div_ceil(packet), starts));
    }

    #[test]
    fn s28_packets_survive_their_cells_and_the_plan_agrees(
        packets in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..400), 1..6),
        payload in 3_usize..80,
    ) {
        let mut reassembler = Reassembler::new(payload);
        for packet in &packets {
            let size = Bytes::new(packet.len() as u64);
            let plan = plan(size.get(), payload as u64);
            let mut rebuilt = Vec::new();
            for (index, cell) in segment(packet, payload).enumerate() {
                prop_assert_eq!(cell.place, plan.cell(size, index as u64).place);
                prop_assert_eq!(cell.payload.len(), payload);
                rebuilt.extend(reassembler.push(cell.place, &cell.payload).unwrap());
            }
            prop_assert_eq!(segment(packet, payload).count() as u64, plan.cells(size));
            prop_assert_eq!(&rebuilt, std::slice::from_ref(packet));
        }
    }

    #[test]
    fn s28_no_sequence_of_cells_breaks_the_reassembler(
        cells in proptest::collection::vec(
            (proptest::sample::select(&Place::ALL[..]), any::<[u8; 5]>()), 0..200
        )
    ) {
        let mut reassembler = Reassembler::new(5);
        for (place, payload) in cells {
            if let Ok(Some(packet)) = reassembler.push(place, &payload) {
                prop_assert!(!packet.is_empty());
            }
        }
    }
}
