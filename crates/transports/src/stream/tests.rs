//! Whole connections over a network that loses, duplicates, delays and marks.

use kernel::{Bytes, Span, Time};
use packets::{Kind, Marks};
use proptest::prelude::*;
use rack::Flow;

use super::config::{Config, Recovery};
use super::*;
use crate::chaos::{Chaos, Fate, Weather, flow, surroundings};
use crate::kinds;
use crate::{cubic, dctcp, newreno, swift};

/// Timeouts of a rack, so that tests end soon.
pub(crate) fn quick() -> Config {
    Config {
        rto_initial: Span::from_us(1_000),
        rto_max: Span::from_us(50_000),
        ack_delay: Span::from_us(200),
        ..Config::default()
    }
}

const RTO_MIN: Span = Span::from_us(200);

fn reno(stream: Config) -> newreno::NewReno {
    let config = newreno::Config { rto_min: RTO_MIN, stream, ..newreno::Config::default() };
    config.build(&surroundings(4)).unwrap()
}

#[derive(Clone, Copy, Debug)]
enum Which {
    NewReno { ecn: bool },
    Cubic { ecn: bool },
    Dctcp,
    Swift,
}

/// Runs the flows twice and demands the same; gives what became of them.
fn carry(which: Which, stream: &Config, weather: Weather, flows: &[Flow], seed: u64) {
    let around = surroundings(4);
    let (rto_min, stream) = (RTO_MIN, stream.clone());
    match which {
        Which::NewReno { ecn } => {
            twice(
                &newreno::Config { ecn, rto_min, stream }.build(&around).unwrap(),
                weather,
                flows,
                seed,
            );
        }
        Which::Cubic { ecn } => {
            let config = cubic::Config { ecn, rto_min, stream, ..cubic::Config::default() };
            twice(&config.build(&around).unwrap(), weather, flows, seed);
        }
        Which::Dctcp => {
            let config = dctcp::Config { rto_min, stream, ..dctcp::Config::default() };
            twice(&config.build(&around).unwrap(), weather, flows, seed);
        }
        Which::Swift => {
            let config = swift::Config { rto_min, stream, ..swift::Config::default() };
            twice(&config.build(&around).unwrap(), weather, flows, seed);
        }
    }
}

fn twice<C: Congestion>(bank: &Stream<C>, weather: Weather, flows: &[Flow], seed: u64) {
    let once = || -> (Vec<Fate>, usize) {
        let mut chaos = Chaos::new(bank.clone(), 4, weather, seed);
        chaos.carry(flows);
        for bank in chaos.transports() {
            assert_eq!(bank.open_halves(), 0, "flows are left open");
            assert!(bank.turns.iter().all(Ring::is_empty), "turns are left");
        }
        (chaos.fates, chaos.sent.len())
    };
    assert_eq!(once(), once(), "seed {seed}");
}

fn weather() -> impl Strategy<Value = Weather> {
    (0.0..0.2f64, 0.0..0.1f64, 0.0..0.5f64, 0u64..20).prop_map(|(loss, twice, mark, us)| Weather {
        loss,
        twice,
        mark,
        jitter: Span::from_us(us),
        ..Weather::FAIR
    })
}

const RECOVERIES: [Recovery; 3] = [Recovery::Sack, Recovery::Duplicates, Recovery::Single];

pub(crate) fn recovery() -> impl Strategy<Value = Recovery> {
    prop::sample::select(&RECOVERIES[..])
}

fn stream() -> impl Strategy<Value = Config> {
    (any::<bool>(), recovery(), any::<bool>(), 1u32..4, 1u32..40, 1u64..100).prop_map(
        |(handshake, recovery, timestamps, ack_segments, initial_window, window)| Config {
            handshake,
            recovery,
            timestamps,
            ack_segments,
            initial_window,
            receive_window: Bytes::new(1448 * window),
            ..quick()
        },
    )
}

fn which() -> impl Strategy<Value = Which> {
    prop_oneof![
        any::<bool>().prop_map(|ecn| Which::NewReno { ecn }),
        any::<bool>().prop_map(|ecn| Which::Cubic { ecn }),
        Just(Which::Dctcp),
        Just(Which::Swift),
    ]
}

fn flows() -> impl Strategy<Value = Vec<Flow>> {
    let one = (0u32..4, 1u32..4, 1u64..300_000, 0u64..500);
    let one = one.prop_map(|(src, off, size, start)| flow(src, (src + off) % 4, size, start));
    prop::collection::vec(one, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Every byte once, in order; every flow completes and closes both its halves; the same on
    /// repeat. The network of the test asserts the first three.
    #[test]
    fn every_flow_comes_through_whatever_the_weather(
        which in which(),
        stream in stream(),
        weather in weather(),
        flows in flows(),
        seed: u64,
    ) {
        carry(which, &stream, weather, &flows, seed);
    }
}

/// One flow of `size` under NewReno, losing the packets that `loses` says.
fn lossy(
    stream: Config,
    size: u64,
    loses: impl FnMut(&Packet) -> bool + 'static,
) -> Chaos<newreno::NewReno> {
    lossy_in(Weather::FAIR, stream, size, loses)
}

fn lossy_in(
    weather: Weather,
    stream: Config,
    size: u64,
    loses: impl FnMut(&Packet) -> bool + 'static,
) -> Chaos<newreno::NewReno> {
    let mut chaos = Chaos::new(reno(stream), 4, weather, 1);
    chaos.loses = Box::new(loses);
    chaos.carry(&[flow(0, 1, size, 0)]);
    chaos
}

/// So long a way that a whole window is under way before the first acknowledgment.
const FAR: Weather = Weather { delay: Span::from_us(30), ..Weather::FAIR };

/// Loses the first `count` packets that match.
fn first(count: usize, matches: impl Fn(&Packet) -> bool) -> impl FnMut(&Packet) -> bool {
    let mut left = count;
    move |packet| {
        let hit = left > 0 && matches(packet);
        left -= usize::from(hit);
        hit
    }
}

/// Loses these segments, each once.
fn once(mut segments: Vec<u64>) -> impl FnMut(&Packet) -> bool {
    move |packet| {
        let place = segments.iter().position(|&lost| packet.is_data() && packet.seq == lost);
        place.map(|place| segments.remove(place)).is_some()
    }
}

fn end<T: Transport>(chaos: &Chaos<T>) -> Span {
    chaos.fates[0].completed.unwrap() - Time::ZERO
}

/// Microseconds of a packet of `bytes` on the line of 10 Gbps and on its way.
fn us(bytes: u64) -> Span {
    kernel::Rate::from_gbps(10).send_time(Bytes::new(bytes)) + Span::from_us(2)
}

#[test]
fn a_flow_alone_takes_its_handshake_and_its_packets() {
    // Ten segments: the initial window, back to back.
    let found = end(&lossy(quick(), 14_480, |_| false));
    let line = kernel::Rate::from_gbps(10).send_time(Bytes::new(1500));
    assert_eq!(found, us(52) * 2 + line * 9 + us(1500));
    let found = end(&lossy(Config { handshake: false, ..quick() }, 14_480, |_| false));
    assert_eq!(found, line * 9 + us(1500));
}

#[test]
fn slow_start_doubles_the_window_each_round_trip() {
    let config = Config { initial_window: 1, handshake: false, ..quick() };
    let weather = Weather { delay: Span::from_us(50), ..Weather::FAIR };
    let chaos = lossy_in(weather, config, 1448 * 63, |_| false);
    // 1, 2, 4, 8 and so on: a segment sent in round n has a number of 2^n - 1 to 2^(n+1) - 2.
    let rtt = us(1500) + us(52) + Span::from_us(96);
    let data = chaos.sent.iter().filter(|(_, packet)| packet.kind == Kind::DATA);
    for (at, packet) in data {
        let round = u64::from((packet.seq + 1).ilog2());
        let start = Time::ZERO + rtt * round;
        assert!(*at >= start && *at < start + rtt, "segment {} at {at}", packet.seq);
    }
}

#[test]
fn a_lost_syn_is_sent_again_and_leaves_a_window_of_one_segment() {
    let chaos = lossy(quick(), 14_480, first(1, |packet| packet.kind == kinds::SYN));
    let second =
        chaos.sent.iter().filter(|(_, packet)| packet.kind == kinds::SYN).nth(1).unwrap().0;
    assert_eq!(second, Time::ZERO + Span::from_us(1_000));
    let data: Vec<_> = chaos.sent.iter().filter(|(_, packet)| packet.kind == Kind::DATA).collect();
    assert!(data[1].0 > data[0].0 + Span::from_us(4), "a window of one segment, then two");
    assert_eq!(chaos.sum(|bank| bank.counts.syn_timeouts), 1);
}

#[test]
fn syns_back_off() {
    for kind in [kinds::SYN, kinds::SYN_ACK] {
        let chaos = lossy(quick(), 1_000, first(3, move |packet| packet.kind == kind));
        let syns: Vec<_> =
            chaos.sent.iter().filter(|(_, p)| p.kind == kinds::SYN).map(|s| s.0).collect();
        let expected = [0, 1_000, 3_000, 7_000].map(|us| Time::ZERO + Span::from_us(us));
        assert_eq!(syns, expected, "{kind:?}");
    }
}

#[test]
fn one_loss_is_recovered_in_a_round_trip_without_a_timeout() {
    for recovery in RECOVERIES {
        let config = Config { recovery, ..quick() };
        let chaos = lossy(config, 144_800, first(1, |p| p.kind == Kind::DATA && p.seq == 20));
        let [timeouts, recoveries] =
            [chaos.sum(|bank| bank.counts.timeouts), chaos.sum(|bank| bank.counts.recoveries)];
        assert_eq!((timeouts, recoveries, chaos.resent), (0, 1, 1), "{recovery:?}");
    }
}

#[test]
fn many_losses_of_one_window_are_one_recovery() {
    let holes = [20, 22, 25, 26, 29];
    let chaos = lossy_in(FAR, quick(), 144_800, once(holes.to_vec()));
    let [timeouts, recoveries] =
        [chaos.sum(|bank| bank.counts.timeouts), chaos.sum(|bank| bank.counts.recoveries)];
    assert_eq!((timeouts, recoveries, chaos.resent), (0, 1, 5));
    let sent = |seq: u64| chaos.sent.iter().filter(move |(_, p)| p.is_data() && p.seq == seq);
    assert!((0..100).all(|seq| sent(seq).count() == 1 + usize::from(holes.contains(&seq))));
    // With selective acknowledgments sooner: without, each hole takes a round trip.
    let config = Config { recovery: Recovery::Duplicates, ..quick() };
    let slow = lossy_in(FAR, config, 144_800, once(holes.to_vec()));
    assert_eq!(
        (slow.sum(|bank| bank.counts.timeouts), slow.sum(|bank| bank.counts.recoveries)),
        (0, 1)
    );
    assert!(end(&slow) > end(&chaos) + Span::from_us(60), "{} {}", end(&slow), end(&chaos));
}

/// Windows of 40 segments: 20 is lost, and so is another of those up to 59 that are under way with it. After the one
/// retransmission half of the 40 may be under way, and a segment more, as a whole window was acknowledged; 60 less the
/// second one are. So three new ones go, which tell of it, where it is 42 or above; below it takes a timeout.
#[test]
fn a_second_loss_in_a_window_takes_three_new_segments_or_a_timeout() {
    for second in 21..60 {
        let config = Config {
            recovery: Recovery::Single,
            handshake: false,
            initial_window: 40,
            receive_window: Bytes::new(1448 * 40),
            ..quick()
        };
        let chaos = lossy_in(FAR, config, 144_800, once(vec![20, second]));
        let [timeouts, recoveries] =
            [chaos.sum(|bank| bank.counts.timeouts), chaos.sum(|bank| bank.counts.recoveries)];
        let expected = if second < 42 { (1, 1) } else { (0, 2) };
        assert_eq!((timeouts, recoveries), expected, "20 and {second}");
    }
}

/// After the retransmission nothing goes before its acknowledgment, a round trip of 60 us of wire and more; otherwise
/// duplicates let new segments go as soon as they take what is under way below half.
#[test]
fn duplicates_let_nothing_new_go_in_a_recovery_of_one_segment() {
    for recovery in RECOVERIES {
        let config = Config { recovery, handshake: false, initial_window: 40, ..quick() };
        let chaos = lossy_in(FAR, config, 144_800, once(vec![20]));
        let data: Vec<_> = chaos.sent.iter().filter(|(_, packet)| packet.is_data()).collect();
        let again = data.iter().rposition(|(_, packet)| packet.seq == 20).unwrap();
        let gap = data[again + 1].0 - data[again].0;
        assert_eq!(gap > FAR.delay * 2, recovery == Recovery::Single, "{recovery:?}: {gap}");
    }
}

#[test]
fn the_tail_is_recovered_by_timeout_and_the_timeout_backs_off() {
    let lost = |p: &Packet| p.kind == Kind::DATA && p.marks.contains(Marks::LAST);
    let chaos = lossy(quick(), 14_480, first(3, lost));
    assert_eq!(chaos.sum(|bank| bank.counts.timeouts), 3);
    let sent: Vec<_> = chaos.sent.iter().filter(|(_, p)| lost(p)).map(|s| s.0).collect();
    let gaps: Vec<_> =
        sent.windows(2).map(|pair| (pair[1] - pair[0]) / Span::from_us(100)).collect();
    // The floor is 200 us, from the last acknowledgment; then twice, then four times.
    assert_eq!(gaps, [2, 4, 8]);
}

#[test]
fn a_lost_last_acknowledgment_costs_a_retransmission_and_no_byte_twice() {
    let chaos = lossy(quick(), 1_000, first(1, |p| p.kind == kinds::ACK));
    assert_eq!((chaos.resent, chaos.sum(|bank| bank.counts.timeouts)), (1, 1));
    let fate = chaos.fates[0];
    assert!(fate.closed.unwrap() > fate.completed.unwrap() + Span::from_us(190));
}

#[test]
fn the_last_hole_gets_one_more_chance_at_a_recoverys_end() {
    // Nothing arrives above the last two of 30, so no rule but the fourth of NextSeg sends one of them
    // before a timeout.
    let chaos = lossy_in(FAR, quick(), 1448 * 30, once(vec![12, 28, 29]));
    assert_eq!(chaos.resent, 3);
    assert_eq!(chaos.sum(|bank| bank.counts.timeouts), 0);
}

#[test]
fn the_receivers_buffer_bounds_what_is_under_way() {
    let config = Config { receive_window: Bytes::new(1448 * 4), ..quick() };
    let chaos = lossy(config, 144_800, |_| false);
    let mut highest_ack = 0;
    for (_, packet) in &chaos.sent {
        match packet.kind {
            kinds::ACK => highest_ack = highest_ack.max(packet.ack),
            Kind::DATA => assert!(packet.seq < highest_ack + 4, "segment {} early", packet.seq),
            _ => (),
        }
    }
}

#[test]
fn flows_of_a_host_take_turns() {
    let config = Config { handshake: false, ..quick() };
    let mut chaos = Chaos::new(reno(config), 4, Weather::FAIR, 1);
    chaos.carry(&[flow(0, 1, 14_480, 0), flow(0, 2, 14_480, 0), flow(0, 3, 14_480, 0)]);
    let order: Vec<_> =
        chaos.sent.iter().filter(|(_, p)| p.kind == Kind::DATA).map(|s| s.1.flow.get()).collect();
    // The first packet leaves when the first flow starts; from then on one each.
    assert_eq!(
        order[1..28].chunks(3).filter(|turn| turn[0] != turn[1] && turn[1] != turn[2]).count(),
        9
    );
}

#[test]
fn a_mark_halves_newrenos_window_once_a_window_of_data() {
    let stream = Config { handshake: false, ..quick() };
    let config = newreno::Config { ecn: true, rto_min: RTO_MIN, stream };
    let bank = config.build(&surroundings(4)).unwrap();
    let mut chaos = Chaos::new(bank, 4, Weather { mark: 1.0, ..Weather::FAIR }, 1);
    chaos.carry(&[flow(0, 1, 144_800, 0)]);
    assert_eq!(chaos.resent, 0);
    let answers: Vec<_> =
        chaos.sent.iter().filter(|(_, p)| p.marks.contains(Marks::CWR)).map(|s| s.1.seq).collect();
    // The line sends five before the first acknowledgment comes: cut to two, the floor, and told with
    // the sixth. From then on two segments are a window, and each window has its answer.
    assert_eq!(answers, (5..100).step_by(2).collect::<Vec<_>>());
}

#[test]
fn retransmissions_bear_no_ecn_bits_and_new_data_tells_of_the_cut() {
    let stream = Config { handshake: false, ..quick() };
    let config = newreno::Config { ecn: true, rto_min: RTO_MIN, stream };
    let mut chaos = Chaos::new(config.build(&surroundings(4)).unwrap(), 4, FAR, 1);
    chaos.loses = Box::new(once(vec![20, 22]));
    chaos.carry(&[flow(0, 1, 144_800, 0)]);
    let data: Vec<_> = chaos.sent.iter().map(|sent| sent.1).filter(Packet::is_data).collect();
    let mut seen = 0;
    for packet in &data {
        let is_new = packet.seq >= seen;
        seen = seen.max(packet.seq + 1);
        assert_eq!(packet.marks.contains(Marks::ECT), is_new, "{packet:?}");
    }
    let told: Vec<_> = data.iter().filter(|packet| packet.marks.contains(Marks::CWR)).collect();
    assert!(told.len() == 1 && told[0].seq > 22, "{told:?}");
}

#[test]
fn an_open_flow_takes_less_than_half_a_kilobyte() {
    let halves = size_of::<sender::Sender<newreno::Window>>() + size_of::<Receiver>();
    assert!(halves <= 512, "{halves} bytes");
}
