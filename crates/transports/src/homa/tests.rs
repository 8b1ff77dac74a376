use proptest::prelude::*;

use super::*;
use crate::chaos::{Chaos, Weather, flow, surroundings};
use crate::kinds;
use kernel::{Span, Time};

/// Payload of a full packet.
const FULL: u64 = 1_440;

fn profile() -> Profile {
    // Half of all bytes of 10-packet windows: 4 unscheduled priorities of 8.
    Profile::new(vec![(Bytes::new(FULL), 10.0), (Bytes::new(FULL * 30), 1.0)])
}

/// Endpoints with a window of ten packets, more than the test network's round trip of 8 µs.
fn homa(hosts: u32) -> Homa {
    let config = Config { rtt_bytes: Bytes::new(FULL * 10), ..Config::default() };
    assert_eq!(config.check(), []);
    Homa::new(&config, &surroundings(hosts), &profile())
}

fn chaos(hosts: u32, weather: Weather, seed: u64) -> Chaos<Homa> {
    Chaos::new(homa(hosts), hosts, weather, seed)
}

fn kinds(chaos: &Chaos<Homa>, kind: Kind) -> Vec<(Time, Packet)> {
    chaos.sent.iter().filter(|(_, packet)| packet.kind == kind).copied().collect()
}

fn weather() -> impl Strategy<Value = Weather> {
    (0.0..0.2f64, 0.0..0.1f64, 0u64..30).prop_map(|(loss, twice, jitter)| Weather {
        loss,
        twice,
        jitter: Span::from_us(jitter),
        ..Weather::FAIR
    })
}

fn messages() -> impl Strategy<Value = Vec<rack::Flow>> {
    let one = (0u32..5, 1u32..5, 1u64..100_000, 0u64..300)
        .prop_map(|(src, step, size, start)| flow(src, (src + step) % 5, size, start));
    prop::collection::vec(one, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Every byte arrives once, in order, and both halves close, whatever the weather; a second run
    /// sends the same packets at the same instants.
    #[test]
    fn every_message_comes_through_any_weather(
        weather in weather(),
        messages in messages(),
        seed in any::<u64>(),
    ) {
        let [first, second] = [(); 2].map(|()| {
            let mut chaos = chaos(5, weather, seed);
            chaos.carry(&messages);
            prop_assert_eq!(chaos.sum(|homa| homa.open.iter().map(|&open| u64::from(open)).sum()), 0);
            Ok(chaos.sent)
        });
        prop_assert_eq!(first?, second?);
    }
}

#[test]
fn a_message_alone_never_waits_and_gets_one_grant_for_each_packet() {
    let mut chaos = chaos(2, Weather::FAIR, 1);
    chaos.carry(&[flow(0, 1, FULL * 100, 0)]);
    let data = kinds(&chaos, Kind::DATA);
    for (index, (at, packet)) in data.iter().enumerate() {
        assert_eq!(at.as_ps(), 1_200_000 * index as u64, "packet {index}");
        // Ten unscheduled, then the least urgent priority of all.
        let unscheduled = chaos.at(0).priorities.of_message(Bytes::new(FULL * 100));
        let level = if index < 10 { unscheduled } else { 7 };
        assert_eq!((packet.seq, packet.priority), (index as u64, level), "packet {index}");
    }
    let grants = kinds(&chaos, kinds::GRANT);
    let offsets: Vec<_> = grants.iter().map(|(_, grant)| grant.ack).collect();
    assert_eq!(offsets, (11..=100).collect::<Vec<_>>());
    assert_eq!(kinds(&chaos, kinds::ACK).len(), 1);
    assert_eq!(chaos.sent.len(), 191, "nothing but data, grants and an acknowledgment");
}

#[test]
fn a_short_message_needs_no_control_packet_but_the_last_acknowledgment() {
    let mut chaos = chaos(2, Weather::FAIR, 1);
    chaos.carry(&[flow(0, 1, FULL * 10, 0)]);
    assert_eq!(chaos.sent.len(), 11);
    let (at, last) = kinds(&chaos, kinds::ACK)[0];
    assert_eq!((at, last.src), (chaos.fates[0].completed.unwrap(), NodeId::new(1)));
    // Its sender forgets the message when it hears so: 64 B on its line, and the way.
    let heard = at + kernel::Rate::from_gbps(10).send_time(Bytes::new(64)) + Weather::FAIR.delay;
    assert_eq!(chaos.fates[0].closed, Some(heard));
}

#[test]
fn a_sender_sends_what_is_shortest_first() {
    let mut chaos = chaos(4, Weather::FAIR, 1);
    let sizes = [9, 3, 6];
    let flows: Vec<_> =
        sizes.iter().zip(1..).map(|(&size, dst)| flow(0, dst, FULL * size, 0)).collect();
    chaos.carry(&flows);
    let order: Vec<_> = kinds(&chaos, Kind::DATA).iter().map(|(_, data)| data.dst.get()).collect();
    // The first packet was on the line before the others came: then 8 packets of the first are
    // left, 3 and 6 of the others.
    let expected = [[1].as_slice(), &[2; 3], &[3; 6], &[1; 8]].concat();
    assert_eq!(order, expected);
}

#[test]
fn a_receiver_grants_to_the_shortest_and_uses_the_lowest_priorities() {
    // Scheduled: four. Eight long messages to one host; four are granted to at a time.
    let mut homa = homa(9);
    assert_eq!((homa.priorities.unscheduled(), homa.overcommitment), (4, 4));
    let mut out = Outbox::new(Time::ZERO);
    let mut openings = Vec::new();
    for src in 0..8 {
        let flow = flow(src, 8, FULL * (20 + 5 * u64::from(src)), 0);
        let opening =
            Opening { key: FlowKey::new(src), label: FlowKey::label(src, false), flow, paths: 1 };
        homa.start(&opening, &mut out);
        openings.push(opening);
    }
    let first: Vec<_> =
        (0..8).map(|src| homa.pull(NodeId::new(src), Line::OPEN, &mut out).unwrap()).collect();
    out.drain().for_each(drop);
    let mut grants = |homa: &mut Homa, packet: &Packet| {
        let key = FlowKey::receivers(packet.flow.place());
        let packet = Packet { flow: key, ..*packet };
        if homa.incoming.get(key.index()).is_none_or(|message| !message.is_open) {
            homa.accept(&packet, FlowKey::label(key.place(), true), &mut out);
        }
        homa.receive(NodeId::new(8), &packet, &mut out);
        let sent = out.drain().filter_map(|effect| match effect {
            packets::Effect::Send(packet) => Some((packet.dst.get(), packet.ack, packet.word)),
            _ => None,
        });
        sent.collect::<Vec<_>>()
    };
    // Longest first: each is active until four shorter ones are there. A message's first packet
    // lets one beyond the ten unscheduled ones go.
    assert_eq!(grants(&mut homa, &first[7]), [(7, 11, 7)]);
    assert_eq!(grants(&mut homa, &first[6]), [(6, 11, 6)]);
    assert_eq!(grants(&mut homa, &first[5]), [(5, 11, 5)]);
    assert_eq!(grants(&mut homa, &first[4]), [(4, 11, 4)]);
    // The fifth pushes the longest out.
    assert_eq!(grants(&mut homa, &first[3]), [(3, 11, 4)]);
    assert_eq!(grants(&mut homa, &first[0]), [(0, 11, 4)]);
    assert_eq!(grants(&mut homa, &first[2]), [(2, 11, 5)]);
    assert_eq!(grants(&mut homa, &first[1]), [(1, 11, 5)]);
    // A message that is not among the four shortest is not granted to, whatever arrives.
    let second = homa.pull(NodeId::new(7), Line::OPEN, &mut Outbox::default()).unwrap();
    assert_eq!(grants(&mut homa, &second), []);
    // When the shortest is granted in full, the next comes in: it is granted a round trip at once.
    for _ in 0..8 {
        let more = homa.pull(NodeId::new(0), Line::OPEN, &mut Outbox::default()).unwrap();
        assert_eq!(grants(&mut homa, &more).len(), 1);
    }
    let last = homa.pull(NodeId::new(0), Line::OPEN, &mut Outbox::default()).unwrap();
    let both = grants(&mut homa, &last);
    assert_eq!(both, [(0, 20, 4)], "19 + 1 of 20 packets are granted; 4 has its own grant");
}

/// Loses the `nth` packet that `is_hit` names.
fn lose(nth: u32, is_hit: impl Fn(&Packet) -> bool + 'static) -> Box<dyn FnMut(&Packet) -> bool> {
    let mut seen = 0;
    Box::new(move |packet| {
        let hit = is_hit(packet);
        seen += u32::from(hit);
        hit && seen == nth + 1
    })
}

#[track_caller]
fn check_recovery(size: u64, loses: Box<dyn FnMut(&Packet) -> bool>, timeouts: u64) -> Chaos<Homa> {
    let mut chaos = chaos(2, Weather::FAIR, 1);
    chaos.loses = loses;
    chaos.carry(&[flow(0, 1, size, 0)]);
    let end = chaos.fates[0].completed.unwrap().as_ps();
    let ideal = 1_200_000 * size.div_ceil(FULL);
    // After each timeout of 2 ms there may be a round trip, and grants pause.
    let latest = ideal + timeouts * 2_020_000_000 + 20_000_000;
    assert!(end > timeouts * 2_000_000_000 && end < latest, "{end} ps, {latest} ps at the latest");
    chaos
}

#[test]
fn each_kind_of_loss_is_recovered_after_a_timeout() {
    let is_data = |seq| move |packet: &Packet| packet.kind == Kind::DATA && packet.seq == seq;
    // The first, a middle and the last unscheduled packet, of a short message.
    for seq in [0, 4, 9] {
        let chaos = check_recovery(FULL * 10, lose(0, is_data(seq)), 1);
        assert_eq!((chaos.resent, chaos.sum(|homa| homa.asked)), (1, 1), "packet {seq}");
    }
    // A scheduled one, and the last of a long message.
    for seq in [20, 39] {
        let chaos = check_recovery(FULL * 40, lose(0, is_data(seq)), 1);
        assert_eq!(chaos.resent, 1, "packet {seq}");
    }
    // A grant in the middle is made up for by the next; the last one is asked for.
    check_recovery(FULL * 40, lose(3, |packet| packet.kind == kinds::GRANT), 0);
    check_recovery(FULL * 40, lose(29, |packet| packet.kind == kinds::GRANT), 1);
    // The request to send again is lost itself.
    let is_request = |packet: &Packet| packet.kind == kinds::RESEND && packet.src.get() == 1;
    let mut both = (lose(0, is_data(3)), lose(0, is_request));
    check_recovery(FULL * 10, Box::new(move |packet| both.0(packet) | both.1(packet)), 2);
}

#[test]
fn a_message_of_which_nothing_arrives_is_asked_for_by_its_sender() {
    for packets in [1, 10, 25] {
        let mut left = packets.min(10);
        let loses = Box::new(move |packet: &Packet| {
            let hit = packet.kind == Kind::DATA && left > 0;
            left -= u64::from(hit);
            hit
        });
        let chaos = check_recovery(FULL * packets, loses, 1);
        assert_eq!(chaos.resent, packets.min(10));
        // One from the sender, one from the receiver.
        assert_eq!(kinds(&chaos, kinds::RESEND).len(), 2);
    }
}

#[test]
fn a_sender_with_shorter_messages_says_that_it_is_busy() {
    let mut homa = homa(3);
    let mut out = Outbox::new(Time::ZERO);
    for (key, dst, packets) in [(0, 1, 8), (1, 2, 3)] {
        let flow = flow(0, dst, FULL * packets, 0);
        homa.start(
            &Opening { key: FlowKey::new(key), label: FlowKey::label(key, false), flow, paths: 1 },
            &mut out,
        );
    }
    let ask = |key: u32, dst: u32| Packet {
        flow: FlowKey::new(key),
        src: NodeId::new(dst),
        dst: NodeId::new(0),
        word: 1,
        wire: 64,
        kind: kinds::RESEND,
        ..Packet::default()
    };
    let mut said = |homa: &mut Homa, packet: Packet| {
        out.drain().for_each(drop);
        homa.receive(NodeId::new(0), &packet, &mut out);
        let kinds = out.drain().filter_map(|effect| match effect {
            packets::Effect::Send(packet) => Some(packet.kind),
            _ => None,
        });
        kinds.collect::<Vec<_>>()
    };
    assert_eq!(said(&mut homa, ask(0, 1)), [kinds::BUSY]);
    assert_eq!(said(&mut homa, ask(1, 2)), []);
    assert_eq!(homa.busy, 1);
}

#[test]
fn incast_control_limits_what_goes_unscheduled() {
    let config = Config {
        rtt_bytes: Bytes::new(FULL * 10),
        incast: Some(Incast { threshold: 2, ..Incast::default() }),
        ..Config::default()
    };
    // Eight hosts send to one, in two rounds: in the first none of them knows of the others, in the
    // second each has heard from the receiver how many there are.
    let mut chaos =
        Chaos::new(Homa::new(&config, &surroundings(9), &profile()), 9, Weather::FAIR, 1);
    let round = |at| (0..8).map(move |src| flow(src, 8, FULL * 20, at)).collect::<Vec<_>>();
    chaos.carry(&[round(0), round(1_000)].concat());
    let unscheduled = |src: u32, round: usize| {
        let data = kinds(&chaos, Kind::DATA);
        let number = round as u32 * 8 + src;
        let first = data.iter().find(|(_, data)| data.flow.place() == number).unwrap();
        first.1.ack
    };
    assert!((0..8).all(|src| unscheduled(src, 0) == 10));
    // What a sender heard last came with the end of its own message: so many were still open.
    let acks = kinds(&chaos, kinds::ACK);
    for src in 0..8 {
        let last = acks.iter().find(|(_, ack)| ack.flow.place() == src).unwrap().1;
        let expected = if last.seq > 2 { 1 } else { 10 };
        assert_eq!(unscheduled(src, 1), expected, "{src} heard of {}", last.seq);
    }
    assert!((0..8).any(|src| unscheduled(src, 1) == 1));
}

#[test]
fn bad_settings_are_named() {
    let config = Config {
        priorities: 4,
        unscheduled_priorities: 4,
        cutoffs: vec![Bytes::new(5), Bytes::new(5)],
        mtu: Bytes::new(60),
        control: Bytes::ZERO,
        resend_after: Span::ZERO,
        incast: Some(Incast { threshold: 0, unscheduled: Bytes::ZERO }),
        ..Config::default()
    };
    let keys: Vec<_> = config.check().into_iter().map(|problem| problem.key).collect();
    let expected = [
        "unscheduled_priorities",
        "cutoffs",
        "cutoffs",
        "mtu",
        "control",
        "resend_after",
        "incast.threshold",
        "incast.unscheduled",
    ];
    assert_eq!(keys, expected);
    let none = Config { priorities: 0, ..Config::default() };
    assert_eq!(none.check()[0].key, "priorities");
}

/// A packet that names a number and a size beyond all reason takes no memory for those before it.
#[test]
fn a_forged_number_takes_little_memory() {
    let mut homa = homa(2);
    let (mut out, flow) = (Outbox::new(Time::ZERO), FlowKey::receivers(0));
    let (dst, word) = (NodeId::new(1), u64::MAX >> 1);
    let packet = Packet { flow, dst, word, ack: word, payload: 1_000, ..Packet::default() };
    homa.accept(&packet, flow, &mut out);
    for seq in [word / 2_000, word / 4_000, 3, word / 3_000] {
        homa.receive(dst, &Packet { seq, ..packet }, &mut out);
    }
    assert!(homa.incoming[0].arrivals.words() < 2_000);
    assert_eq!(homa.incoming[0].arrivals.count(), 4);
}
