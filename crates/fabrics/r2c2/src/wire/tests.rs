//! Round trips, golden bytes, damage, and any bytes at all.

use std::num::NonZeroU8;

use proptest::prelude::*;
use rack::NodeId;

use super::*;
use crate::routing::{Protocol, Route};

const NODES: u32 = 512;

fn node() -> impl Strategy<Value = NodeId> {
    (0..NODES).prop_map(NodeId::new)
}

/// Two different nodes.
fn pair() -> impl Strategy<Value = (NodeId, NodeId)> {
    (0..NODES, 1..NODES).prop_map(|(a, by)| (NodeId::new(a), NodeId::new((a + by) % NODES)))
}

fn protocol() -> impl Strategy<Value = Protocol> {
    prop::sample::select(&Protocol::ALL[..])
}

fn event() -> impl Strategy<Value = Event> {
    prop::sample::select(&[Event::Start, Event::Finish, Event::Demand, Event::Route][..])
}

fn announcement() -> impl Strategy<Value = Announcement> {
    let allocation = (any::<u32>(), 1u8.., any::<u8>(), protocol());
    let allocation = allocation.prop_map(|(demand, weight, priority, protocol)| Allocation {
        demand: Kbps::new(demand),
        weight: NonZeroU8::new(weight).unwrap(),
        priority,
        protocol,
    });
    (event(), 0u8..16, any::<u8>(), pair(), any::<u8>(), allocation).prop_map(
        |(event, number, way, (source, destination), index, allocation)| Announcement {
            event,
            number,
            way,
            source,
            destination,
            index,
            round: 0,
            allocation,
        },
    )
}

fn data() -> impl Strategy<Value = Data> {
    let route = prop::collection::vec(0u8..8, 0..=42);
    (route, any::<prop::sample::Index>(), any::<u32>(), pair(), any::<u32>(), any::<bool>())
        .prop_map(|(hops, done, flow, (source, destination), sequence, is_last)| Data {
            done: done.index(hops.len() + 1) as u8,
            route: Route::new(&hops),
            flow,
            source,
            destination,
            sequence,
            is_last,
        })
}

fn assignments() -> impl Strategy<Value = Assignments> {
    let one = (pair(), 0u8..16, protocol());
    let one = one.prop_map(|((source, destination), index, protocol)| Assignment {
        source,
        destination,
        index,
        protocol,
    });
    (node(), any::<u8>(), any::<u16>(), prop::collection::vec(one, 0..20))
        .prop_map(|(source, way, round, pairs)| Assignments { source, way, round, pairs })
}

fn notice() -> impl Strategy<Value = Notice> {
    let of_flow = (event(), 0u8..16, any::<u8>()).prop_map(Some);
    let what = prop_oneof![of_flow, Just(None)];
    (pair(), any::<u8>(), what, any::<(u16, bool)>(), node(), node()).prop_map(
        |((source, destination), way, what, (round, is_anew), dropper, child)| {
            let dropped = match what {
                Some((event, number, index)) => {
                    Dropped::Announcement { event, number, destination, index }
                }
                None if is_anew => Dropped::Anew { round },
                None => Dropped::Assignments { round },
            };
            Notice { source, way, dropped, dropper, child }
        },
    )
}

fn answer() -> impl Strategy<Value = Answer> {
    let missing = any::<(u32, u32)>().prop_map(|(first, there)| Word::Missing { first, there });
    (data(), prop_oneof![Just(Word::All), missing]).prop_map(|(data, word)| {
        let Data { route, done, flow, source: from, destination: to, .. } = data;
        Answer { route, done, flow, from, to, word }
    })
}

fn report(said: Announcement) -> Message<'static> {
    Message::Report(Report::Flow(said))
}

fn rates() -> impl Strategy<Value = Rates> {
    let rates = prop::collection::vec(any::<u32>(), 0..=15);
    let fields = (node(), any::<u16>(), any::<u8>(), 0..1u32 << 24, rates);
    fields.prop_map(|(node, round, part, tag, rates)| {
        let rates = rates.into_iter().map(Kbps::new).collect();
        Rates { node, way: 0, round, part, tag, rates }
    })
}

/// The bytes of any packet but data.
fn control() -> impl Strategy<Value = Message<'static>> {
    let hello = (node(), any::<u8>(), any::<u8>(), any::<u16>(), any::<u16>(), any::<u32>());
    let anew = (node(), any::<u8>(), any::<u32>());
    let state = (node(), any::<u32>(), any::<u8>());
    let anew_report = (node(), any::<u32>());
    prop_oneof![
        announcement().prop_map(Message::Announcement),
        announcement().prop_map(|news| report(Announcement { way: 0, ..news })),
        anew_report.prop_map(|(source, number)| {
            Message::Report(Report::Anew(Anew { source, way: 0, number }))
        }),
        assignments().prop_map(Message::Assignments),
        answer().prop_map(Message::Answer),
        notice().prop_map(Message::Notice),
        hello.prop_map(|(source, port, reach, number, heard, digest)| {
            Message::Hello(Hello { source, port, reach, number, heard, digest })
        }),
        state.prop_map(|(source, sequence, living)| {
            Message::LinkState(LinkState { source, sequence, living })
        }),
        anew.prop_map(|(source, way, number)| Message::Anew(Anew { source, way, number })),
        rates().prop_map(Message::Rates),
    ]
}

/// Every packet with one wrong bit is refused.
fn no_wrong_bit_is_missed(bytes: &[u8]) -> Result<(), TestCaseError> {
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(decode(&damaged, NODES_MAX).is_err(), "bit {} of {:?}", bit, bytes);
    }
    Ok(())
}

/// A broadcast of any kind.
fn broadcast() -> impl Strategy<Value = Message<'static>> {
    prop_oneof![
        announcement().prop_map(Message::Announcement),
        assignments().prop_map(Message::Assignments),
        (node(), any::<u8>(), any::<u32>()).prop_map(|(source, way, number)| Message::Anew(Anew {
            source,
            way,
            number
        })),
    ]
}

/// The same broadcast by another way, in a round of its source.
fn by_way(message: Message<'static>, way: u8, round: u32) -> Message<'static> {
    match message {
        Message::Announcement(said) => Message::Announcement(Announcement { way, round, ..said }),
        Message::Assignments(said) => Message::Assignments(Assignments { way, ..said }),
        Message::Anew(said) => Message::Anew(Anew { way, ..said }),
        Message::Notice(said) => Message::Notice(Notice { way, ..said }),
        other => other,
    }
}

proptest! {
    #[test]
    fn m13_m14_broadcasts_are_read_as_they_were_said(
        message in broadcast(),
        tree in 0..TREES_MAX,
        dead in prop_oneof![Just(0u32), 1u32..],
        round in prop_oneof![Just(0u32), 1u32..],
        (dropper, child) in pair(),
        is_again in any::<bool>(),
    ) {
        let is_news = matches!(message, Message::Announcement(_));
        let round = if is_news { round } else { 0 };
        let message = by_way(message, way(tree, dead, round), round);
        let again = is_again.then_some(Again { dropper, child });
        let tail = Tail { dead, round, again };
        let usual = message.encode();
        let bytes = tail.encode(&usual);
        let more = if dead == 0 { 0 } else { tail::DIGEST_BYTES };
        let more = more + if round == 0 { 0 } else { tail::ROUND_BYTES };
        let more = more + if is_again { tail::AGAIN_BYTES } else { 0 };
        prop_assert_eq!(bytes.len(), usual.len() + more);
        prop_assert_eq!(tail::decode(&bytes, NODES), Ok((message, tail)));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(tail::decode(&damaged, NODES_MAX).is_err(), "bit {}", bit);
        }
        for length in 0..bytes.len() {
            prop_assert!(tail::decode(&bytes[..length], NODES).is_err(), "{} bytes", length);
        }
    }

    #[test]
    fn m13_any_bytes_are_refused_or_a_broadcast(
        first in 0u8..7,
        tree in 0u8..72,
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        small in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if small && bytes.len() > 2 {
            bytes.iter_mut().for_each(|byte| *byte &= (*byte & 1).wrapping_neg() & 7);
            (bytes[0], bytes[1]) = (first, tree);
        }
        let _ = tail::decode(&bytes, NODES);
        seal(&mut bytes);
        if let Ok((message, tail)) = tail::decode(&bytes, NODES) {
            prop_assert_eq!(tail.encode(&message.encode()), bytes);
        }
    }

    #[test]
    fn i11_m37_control_packets_are_read_as_they_were_written(message in control()) {
        let bytes = message.encode();
        prop_assert_eq!(decode(&bytes, NODES), Ok(message));
    }

    #[test]
    fn m35_data_is_read_as_it_was_written(
        data in data(),
        payload in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let message = Message::Data(data, &payload);
        let bytes = message.encode();
        prop_assert_eq!(bytes.len(), 36 + payload.len());
        prop_assert_eq!(decode(&bytes, NODES), Ok(message));
    }

    #[test]
    fn i11_m12_a_wrong_bit_in_a_control_packet_is_noticed(message in control()) {
        no_wrong_bit_is_missed(&message.encode())?;
    }

    #[test]
    fn m35_a_wrong_bit_in_data_is_noticed(
        data in data(),
        payload in prop::collection::vec(any::<u8>(), 0..30),
    ) {
        no_wrong_bit_is_missed(&Message::Data(data, &payload).encode())?;
    }

    /// A packet cut short, or with something behind it, is refused.
    #[test]
    fn packets_of_another_length_are_refused(message in control(), more in 1usize..40) {
        let mut bytes = message.encode();
        for length in 0..bytes.len() {
            prop_assert!(decode(&bytes[..length], NODES).is_err());
        }
        bytes.resize(bytes.len() + more, 0);
        prop_assert!(decode(&bytes, NODES).is_err());
    }

    /// Any bytes, with a right checksum, which random ones seldom have: whatever is accepted is
    /// written back the same.
    #[test]
    fn any_bytes_are_refused_or_written_back_the_same(
        first in prop::sample::select(&Kind::ALL[..]),
        number in prop_oneof![4 => Just(0u8), 1 => 0u8..16],
        small in any::<bool>(),
        mut bytes in prop_oneof![
            3 => prop::collection::vec(any::<u8>(), 16),
            3 => prop::collection::vec(any::<u8>(), 36),
            1 => prop::collection::vec(any::<u8>(), 0..80),
        ],
    ) {
        if let Some(byte) = bytes.first_mut() {
            *byte = first as u8 | number << 4;
        }
        if small {
            // Numbers that mean something more often: spare fields zero, small counts and nodes.
            bytes.iter_mut().skip(1).for_each(|byte| *byte &= (*byte & 1).wrapping_neg() & 7);
        }
        let _ = decode(&bytes, NODES);
        seal(&mut bytes);
        if let Ok(message) = decode(&bytes, NODES) {
            prop_assert_eq!(message.encode(), bytes.clone());
        }
        let mut forwarded = bytes.clone();
        let _ = forward(&mut forwarded);
    }

    #[test]
    fn i12_m34_forwarding_follows_the_route_and_changes_the_index_alone(data in data()) {
        let payload = [1, 2, 3];
        let mut packet = Message::Data(Data { done: 0, ..data }, &payload).encode();
        for (done, hop) in (1u8..).zip(data.route.hops()) {
            prop_assert_eq!(forward(&mut packet), Ok(Some(hop)));
            // The checksum still holds.
            let expected = Message::Data(Data { done, ..data }, &payload);
            prop_assert_eq!(decode(&packet, NODES), Ok(expected));
        }
        let arrived = packet.clone();
        prop_assert_eq!(forward(&mut packet), Ok(None));
        prop_assert_eq!(packet, arrived);
    }
}

/// The example of RFC 1071, §3: the sum of these bytes is ddf2.
#[test]
fn the_checksum_is_that_of_the_rfc() {
    let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(checksum([&bytes[..]]), !0xddf2);
    assert_eq!(checksum([&bytes[..2], &bytes[2..]]), !0xddf2);
    assert_eq!(checksum([&[0xABu8][..]]), !0xAB00);
    // The head of an IPv4 packet: the worked example of its encyclopedia entry, b861.
    let head = "45000073000040004011\
                c0a80001c0a800c7";
    let bytes: Vec<u8> = (0..head.len() / 2)
        .map(|at| u8::from_str_radix(&head[2 * at..2 * at + 2], 16).unwrap())
        .collect();
    assert_eq!(checksum([&bytes[..]]), 0xb861);
}

fn example() -> Announcement {
    Announcement {
        event: Event::Demand,
        number: 5,
        way: 2,
        source: NodeId::new(0x0123),
        destination: NodeId::new(0x0045),
        index: 7,
        round: 0,
        allocation: Allocation {
            demand: Kbps::new(10_000_000),
            weight: NonZeroU8::new(3).unwrap(),
            priority: 1,
            protocol: Protocol::Valiant,
        },
    }
}

/// Put together by hand from the table of fields; the checksum by hand too.
#[test]
fn m36_i11_the_broadcast_packet_is_sixteen_bytes() {
    // 5302 + 0123 + 0045 + 0098 + 9680 + 0301 + 0407 = f28a; complement 0d75.
    let expected = [
        0x53, 0x02, 0x01, 0x23, 0x00, 0x45, 0x0D, 0x75, 0x00, 0x98, 0x96, 0x80, 0x03, 0x01, 0x04,
        0x07,
    ];
    assert_eq!(example().encode(), expected);
    // With a digest and a round behind it: 5302 has become 5332, and 1234 + 5678 + 0000 + 0009 are more.
    // The sum is 15b6f, with the carry 5b70; its complement a48f.
    let tail = Tail { dead: 0x1234_5678, round: 9, again: None };
    let later = tail.encode(&Announcement { way: way(2, 1, 1), ..example() }.encode());
    assert_eq!(later[..8], [0x53, 0x32, 0x01, 0x23, 0x00, 0x45, 0xA4, 0x8F]);
    assert_eq!(later[8..16], expected[8..]);
    assert_eq!(later[16..], [0x12, 0x34, 0x56, 0x78, 0, 0, 0, 9]);
}

#[test]
fn m35_the_header_of_data_is_thirty_six_bytes() {
    let data = Data {
        route: Route::new(&[1, 2, 3, 7]),
        done: 2,
        flow: 0xAABB_CCDD,
        source: NodeId::new(1),
        destination: NodeId::new(0xFFFF),
        sequence: 9,
        is_last: false,
    };
    let bytes = data.encode(&[0x10, 0x20, 0x30]);
    let route = 1 | 2 << 3 | 3 << 6 | 7 << 9;
    // 0f04 + aabb + ccdd + 0001 + ffff + 0000 + 0009 + 0003 + 0ed1 + 1020 + 3000 = 2d599, folded
    // d59b, complement 2a64.
    let mut expected = vec![15, 4, 2, 0xFD, 0xAA, 0xBB, 0xCC, 0xDD, 0, 1, 0xFF, 0xFF, 0, 0, 0, 9];
    expected.extend([0x2A, 0x64, 0, 3]);
    expected.extend([0; 14]);
    expected.extend(u16::to_be_bytes(route));
    assert_eq!(bytes.to_vec(), expected);
}

#[test]
fn m33_d07_a_batch_of_1500_bytes_names_298_flows() {
    assert_eq!(batch::PAIRS_MAX, 298);
    let one = Assignment {
        source: NodeId::new(1),
        destination: NodeId::new(2),
        index: 15,
        protocol: Protocol::Rps,
    };
    let batch =
        |count| Assignments { source: NodeId::new(0), way: 0, round: 1, pairs: vec![one; count] };
    let full = batch(298).encode();
    assert_eq!(full.len(), 1_500);
    assert_eq!(decode(&full, NODES), Ok(Message::Assignments(batch(298))));
    assert!(std::panic::catch_unwind(|| batch(299).encode()).is_err());
}

/// X19: a controller's packets have 12 bytes and 4 for each rate; an event has 16.
#[test]
fn m53_the_packets_of_a_controller_are_as_small_as_fig_19_needs() {
    for count in [1usize, 10] {
        let rates = vec![Kbps::new(1); count];
        let node = NodeId::new(3);
        let packet = Rates { node, way: 0, round: 1, part: 0, tag: 7, rates }.encode();
        assert_eq!(packet.len(), 12 + 4 * count);
    }
    assert_eq!(Report::Flow(Announcement { way: 0, ..example() }).encode().len(), 16);
}

proptest! {
    /// A digest of dead links and a round come behind them as behind a broadcast.
    #[test]
    fn m53_what_is_behind_a_controllers_packets_is_told_by_them(
        news in announcement(), anew in any::<u32>(), rates in rates(), dead: u32, round: u32,
    ) {
        let source = news.source;
        let reports = [(Report::Flow(Announcement { way: way(0, dead, round), round, ..news }), round),
            (Report::Anew(Anew { source, way: way(0, dead, 0), number: anew }), 0)];
        for (said, round) in reports {
            let tail = Tail { dead, round, again: None };
            let bytes = tail.encode(&said.encode());
            prop_assert_eq!(tail::decode(&bytes, NODES), Ok((Message::Report(said), tail)));
        }
        let rates = Rates { way: way(0, dead, 0), ..rates };
        let tail = Tail { dead, round: 0, again: None };
        let bytes = tail.encode(&rates.encode());
        prop_assert_eq!(tail::decode(&bytes, NODES), Ok((Message::Rates(rates), tail)));
    }
}

/// What lists of flows differ in, however little, their tags tell: all pairs of lists of up to two flows to
/// eight nodes by four indices under three numbers.
#[test]
fn m53_lists_that_differ_have_other_tags() {
    let flows =
        (0..8u32).flat_map(|to| (0..4u8).flat_map(move |i| (0..3u8).map(move |n| (to, i, n))));
    let adds: Vec<u32> =
        flows.map(|(to, index, number)| central::tag((NodeId::new(to), index), number)).collect();
    let pairs = (0..adds.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
    let sums = pairs.map(|(a, b)| central::tag_of_sum(adds[a] + adds[b]));
    let mut tags: Vec<u32> = adds.iter().copied().chain(sums).chain([0]).collect();
    let all = tags.len();
    tags.sort_unstable();
    tags.dedup();
    // Of 4,657 lists a random function of 24 bits would have a pair or none alike: 4657² / 2²⁵ = 0.65.
    assert_eq!(all, 1 + 96 + 96 * 95 / 2);
    assert!(all - tags.len() <= 4, "{} lists have the tag of another", all - tags.len());
}

#[test]
fn m36_demand_is_in_kilobits_up_to_four_terabits() {
    assert_eq!(Kbps::at_least(Rate::from_bps(1_000_001)).get(), 1_001);
    assert_eq!(Kbps::at_most(Rate::from_bps(1_000_999)).get(), 1_000);
    assert_eq!(Kbps::at_least(Rate::from_gbps(4_000)).rate(), Some(Rate::from_gbps(4_000)));
    assert_eq!(Kbps::at_least(Rate::from_gbps(5_000)), Kbps::UNLIMITED);
    assert_eq!(Kbps::UNLIMITED.rate(), None);
}

#[track_caller]
fn check_refused(mut bytes: Vec<u8>, change: impl FnOnce(&mut [u8]), expected: WireError) {
    change(&mut bytes);
    seal(&mut bytes);
    assert_eq!(decode(&bytes, NODES), Err(expected));
}

#[test]
fn fields_that_mean_nothing_are_refused_by_name() {
    let news = || example().encode().to_vec();
    let field = |field, value| WireError::Field { field, value };
    check_refused(news(), |b| b[12] = 0, field("weight", 0));
    check_refused(news(), |b| b[14] = 200, field("protocol", 200));
    check_refused(news(), |b| b[2..4].fill(2), field("source", 514));
    check_refused(news(), |b| b.copy_within(2..4, 4), field("destination", 0x0123));
    check_refused(news(), |b| b[0] = 0x57, WireError::Kind(0x57));
    let short = WireError::Length { expected: 8, found: 5 };
    assert_eq!(decode(&news()[..5], NODES), Err(short));
    let hello = Hello { source: NodeId::new(1), port: 2, reach: 6, number: 3, heard: 4, digest: 5 };
    check_refused(hello.encode().to_vec(), |b| b[5] = 9, field("spare", 9));
    check_refused(hello.encode().to_vec(), |b| b[0] |= 0x10, field("spare", 1));
    let data = Data {
        route: Route::new(&[1, 2]),
        done: 1,
        flow: 0,
        source: NodeId::new(0),
        destination: NodeId::new(1),
        sequence: 0,
        is_last: true,
    };
    let data = || data.encode(&[]).to_vec();
    check_refused(data(), |b| b[0] = 0x4F, field("spare", 4));
    check_refused(data(), |b| b[1] = 43, field("route length", 43));
    check_refused(data(), |b| (b[2], b[3]) = (3, !3), field("route index", 3));
    check_refused(data(), |b| b[2] = 0, WireError::Corrupted);
    check_refused(data(), |b| b[35] |= 0x40, field("route length", 2));
    check_refused(data(), |b| b[19] = 1, WireError::Length { expected: 37, found: 36 });
}

#[test]
fn kinds_are_far_enough_from_data() {
    for kind in Kind::ALL.into_iter().filter(|&kind| kind != Kind::Data) {
        assert!((kind as u8 ^ Kind::Data as u8).count_ones() >= 2, "{kind:?}");
    }
}

#[test]
fn a_way_names_the_tree_and_tells_of_a_digest() {
    assert_eq!((way(3, 0, 0), way(3, 0x1234_5678, 0), way(3, 7, 7)), (3, 0x13, 0x33));
    assert_eq!((tree_of(0x33), tree_of(way(TREE_NONE, 0, 0))), (3, TREE_NONE));
    assert!(std::panic::catch_unwind(|| way(16, 0, 0)).is_err());
}

#[test]
fn states_that_differ_have_other_digests() {
    let state = |source, sequence, living| {
        LinkState { source: NodeId::new(source), sequence, living }.digest()
    };
    let all = [state(1, 1, 3), state(1, 2, 3), state(2, 1, 3), state(1, 1, 7)];
    for (at, one) in all.iter().enumerate() {
        assert!(!all[..at].contains(one), "{all:x?}");
    }
    // Numbers exchanged between two nodes do not cancel.
    assert_ne!(state(1, 1, 3) ^ state(2, 2, 3), state(1, 2, 3) ^ state(2, 1, 3));
}
