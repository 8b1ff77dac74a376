use proptest::prelude::*;

use super::*;
use crate::chaos::{Chaos, Weather, flow, surroundings};
use crate::kinds;
use kernel::Span;

/// Payload of a full packet.
const FULL: u64 = 1_458;
/// A full packet on the test network's line.
const PACKET: Span = Span::from_ns(1_200);

fn config() -> Config {
    // Ten packets, more than the test network's round trip of 4 µs and three packets.
    Config { blind: Bytes::new(FULL * 10), ..Config::default() }
}

fn chaos(hosts: u32, weather: Weather, seed: u64) -> Chaos<Rds> {
    assert_eq!(config().check(), []);
    Chaos::new(Rds::new(&config(), &surroundings(hosts)), hosts, weather, seed)
}

fn kinds(chaos: &Chaos<Rds>, kind: Kind) -> Vec<(Time, Packet)> {
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
            chaos.sent
        });
        prop_assert_eq!(first, second);
    }
}

#[test]
fn a_message_alone_never_waits_and_is_granted_four_packets_at_a_time() {
    let mut chaos = chaos(2, Weather::FAIR, 1);
    chaos.carry(&[flow(0, 1, FULL * 98, 0)]);
    for (index, (at, packet)) in kinds(&chaos, Kind::DATA).iter().enumerate() {
        assert_eq!(*at, Time::ZERO + PACKET * index as u64, "packet {index}");
        assert_eq!((packet.seq, packet.priority), (index as u64, QUEUE));
    }
    // Ten blindly; room for four once four have come.
    let grants = kinds(&chaos, kinds::GRANT);
    let offsets: Vec<_> = grants.iter().map(|(_, grant)| grant.ack).collect();
    assert_eq!(offsets, (1..=22).map(|batch| 10 + 4 * batch).collect::<Vec<_>>());
    let fourth_is_here = Time::ZERO + PACKET * 4 + Span::from_us(2);
    assert_eq!(grants[0].0, fourth_is_here);
    assert_eq!(kinds(&chaos, kinds::BUSY).len(), 1);
    assert_eq!(kinds(&chaos, kinds::ACK).len(), 1);
    assert_eq!(chaos.sent.len(), 98 + 22 + 2, "nothing but data, grants and two answers");
}

#[test]
fn a_short_message_needs_one_control_packet() {
    let mut chaos = chaos(2, Weather::FAIR, 1);
    chaos.carry(&[flow(0, 1, FULL * 10, 0)]);
    assert_eq!((chaos.sent.len(), kinds(&chaos, kinds::ACK).len()), (11, 1));
}

/// Loses what `loses` says, and gives what was sent twice or more and when the message was there.
#[track_caller]
fn lose(packets: u64, loses: impl FnMut(&Packet) -> bool + 'static) -> (Vec<u64>, Chaos<Rds>) {
    let mut chaos = chaos(2, Weather::FAIR, 1);
    chaos.loses = Box::new(loses);
    chaos.carry(&[flow(0, 1, FULL * packets, 0)]);
    let mut seen = std::collections::BTreeSet::new();
    let data = kinds(&chaos, Kind::DATA);
    let again = data.iter().map(|(_, packet)| packet.seq).filter(|&seq| !seen.insert(seq));
    (again.collect(), chaos)
}

/// Loses the first packet of each kind that `is_meant` means.
fn first(
    count: usize,
    mut is_meant: impl FnMut(&Packet) -> bool + 'static,
) -> impl FnMut(&Packet) -> bool {
    let mut left = count;
    move |packet| {
        let is_lost = left > 0 && is_meant(packet);
        left -= usize::from(is_lost);
        is_lost
    }
}

fn took(chaos: &Chaos<Rds>) -> Span {
    chaos.fates[0].completed.unwrap() - Time::ZERO
}

#[test]
fn a_gap_is_told_at_once_and_nothing_else_is_sent_again() {
    let data = |seqs: &'static [u64]| {
        move |packet: &Packet| packet.is_data() && seqs.contains(&packet.seq)
    };
    for seqs in [&[3][..], &[3, 4, 7], &[0], &[20, 21]] {
        let (again, chaos) = lose(40, first(seqs.len(), data(seqs)));
        assert_eq!(again, seqs);
        assert!(took(&chaos) < Span::from_us(80), "{seqs:?}: {}", took(&chaos));
        assert_eq!((chaos.sum(|rds| rds.silences), chaos.sum(|rds| rds.blind_again)), (0, 0));
    }
}

#[test]
fn a_burst_of_which_nothing_comes_is_told_after_a_timeout() {
    // The last grant's packets, and one that is lost when it is retransmitted, too.
    let (again, chaos) = lose(18, first(4, |packet| packet.is_data() && packet.seq >= 14));
    assert_eq!(again, [14, 15, 16, 17]);
    assert_eq!(chaos.sum(|rds| rds.silences), 1);
    assert!(took(&chaos) > Span::from_us(1_000) && took(&chaos) < Span::from_us(1_050));
    let (again, chaos) = lose(18, first(2, |packet| packet.is_data() && packet.seq == 5));
    assert_eq!((again, chaos.sum(|rds| rds.silences)), (vec![5, 5], 1));
}

#[test]
fn a_receiver_that_hears_nothing_waits_twice_as_long_each_time() {
    // The last grant's packets are lost, and lost again: after 1, 3, 7, 15 and 31 ms. Every 2 ms the sender
    // asks with the last of them whether all is there.
    let (_, chaos) = lose(18, first(40, |packet| packet.is_data() && packet.seq >= 14));
    let (silences, took_all) = (chaos.sum(|rds| rds.silences), took(&chaos));
    assert!((4..=6).contains(&silences), "{silences}");
    assert!(took_all > Span::from_us(25_000), "{took_all}");
}

#[test]
fn blind_packets_of_which_nothing_is_heard_are_sent_again_by_their_sender() {
    let (again, chaos) = lose(30, first(10, Packet::is_data));
    assert_eq!(again, (0..10).collect::<Vec<_>>());
    assert_eq!((chaos.sum(|rds| rds.blind_again), chaos.sum(|rds| rds.silences)), (1, 0));
    assert!(took(&chaos) > Span::from_us(1_010) && took(&chaos) < Span::from_us(1_100));
}

#[test]
fn lost_grants_notices_and_answers_are_made_up_for() {
    for (kind, repeated) in [(kinds::GRANT, vec![]), (kinds::BUSY, vec![]), (kinds::ACK, vec![29])]
    {
        let (again, chaos) = lose(30, first(1, move |packet| packet.kind == kind));
        assert_eq!(again, repeated, "{kind:?}");
        assert!(took(&chaos) < Span::from_us(1_150), "{kind:?}: {}", took(&chaos));
    }
    let mut lost = first(1, |packet| packet.is_data() && packet.seq == 12);
    let mut notice = first(1, |packet| packet.kind == kinds::RESEND);
    let (again, _) = lose(30, move |packet| lost(packet) || notice(packet));
    assert_eq!(again, [12]);
}

#[test]
fn a_receiver_divides_its_slots_among_senders() {
    // Three messages to one host: after the blind packets each sender has a third of the slots, so
    // that all end within a few slots of each other.
    let mut chaos = chaos(4, Weather::FAIR, 1);
    let flows: Vec<_> = (1..4).map(|src| flow(src, 0, FULL * 202, 0)).collect();
    chaos.carry(&flows);
    let grants = kinds(&chaos, kinds::GRANT);
    let order: Vec<_> = grants.iter().map(|(_, grant)| grant.dst.get()).collect();
    for turns in order.windows(3).take(100) {
        let mut senders = turns.to_vec();
        senders.sort_unstable();
        assert_eq!(senders, [1, 2, 3], "{order:?}");
    }
    // A slot lasts as long as its packets take.
    for pair in grants.windows(2) {
        assert!(pair[1].0 - pair[0].0 >= PACKET * 4);
    }
}

/// A packet that names a number and a size beyond all reason takes no memory for those before it.
#[test]
fn a_forged_number_takes_little_memory() {
    let mut rds = Rds::new(&config(), &surroundings(2));
    let (mut out, flow) = (Outbox::new(Time::ZERO), FlowKey::receivers(0));
    let (dst, word) = (NodeId::new(1), u64::MAX >> 1);
    let packet = Packet { flow, dst, word, ack: word, payload: 1_000, ..Packet::default() };
    rds.accept(&packet, flow, &mut out);
    for seq in [word / 2_000, word / 4_000, 3, word / 3_000] {
        rds.receive(dst, &Packet { seq, ..packet }, &mut out);
    }
    assert!(rds.incoming[0].arrivals.words() < 2_000);
    assert_eq!(rds.incoming[0].arrivals.count(), 1);
}
