//! Frames, words, and two ends of a bad link.

use kernel::Stream;
use proptest::prelude::*;

use super::*;

fn frames() -> impl Strategy<Value = Frame> {
    let data = prop::collection::vec(any::<u8>(), 0..=DATA_BYTES_MAX);
    (prop::sample::select(&Kind::ALL[..]), any::<u8>(), any::<u16>(), data).prop_map(
        |(kind, sequence, session, data)| {
            let data = if kind.is_data() { data } else { Vec::new() };
            Frame { kind, sequence, session, data }
        },
    )
}

/// What a joiner makes of words.
fn join(words: impl Iterator<Item = OrderedSet>) -> Vec<Result<Frame, FrameError>> {
    let mut joiner = Joiner::default();
    let mut found = Vec::new();
    for word in words {
        let OrderedSet::Management { is_first, is_last, sequence, data, .. } = word else {
            panic!("a management ordered set");
        };
        found.extend(joiner.receive((is_first, is_last, sequence), data));
    }
    found
}

proptest! {
    #[test]
    fn m614_frames_come_back_through_words(frame in frames()) {
        let words: Vec<_> = Words::new(&frame, 0).collect();
        // Six bytes of header, four of checksum, six a word.
        prop_assert_eq!(words.len(), (frame.data.len() + 10).div_ceil(6));
        prop_assert_eq!(join(words.into_iter()), [Ok(frame)]);
    }

    #[test]
    fn m614_without_a_word_or_with_wrong_bits_it_is_no_frame(
        frame in frames(),
        at in any::<prop::sample::Index>(),
        bit in 0..64u32,
    ) {
        let mut words: Vec<_> = Words::new(&frame, 0).collect();
        let at = at.index(words.len());
        let damaged = u64::from_be_bytes(words[at].encode()) ^ 1 << bit;
        if let Ok(damaged) = OrderedSet::decode(damaged.to_be_bytes())
            && matches!(damaged, OrderedSet::Management { .. })
        {
            let mut words = words.clone();
            words[at] = damaged;
            // The channel is not the joiner's affair.
            let found = join(words.into_iter());
            let is_channel = (51..54).contains(&bit);
            prop_assert!(is_channel || found.iter().all(|found| found.is_err()), "{:?}", found);
        }
        words.remove(at);
        prop_assert!(join(words.into_iter()).iter().all(Result::is_err));
    }

    #[test]
    fn m614_any_bytes_are_refused_or_written_back_the_same(
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        frame in frames(),
        (at, by) in (any::<prop::sample::Index>(), 1..=255u8),
    ) {
        let mut damaged = frame.encode();
        let at = at.index(damaged.len());
        damaged[at] ^= by;
        prop_assert!(Frame::decode(&damaged).is_err());
        if let Ok(frame) = Frame::decode(&bytes) {
            prop_assert_eq!(frame.encode(), bytes);
        }
    }
}

/// What a link does to words, in thousandths.
#[derive(Clone, Copy, Debug)]
struct Link {
    lost: u64,
    damaged: u64,
    doubled: u64,
}

/// Two ends and what is on its way between them.
struct Pair {
    now: Time,
    ends: [End; 2],
    /// By end, what arrives there and when.
    wires: [VecDeque<(Time, [u8; 8])>; 2],
    stream: Stream,
    link: Link,
    got: [Vec<Vec<u8>>; 2],
}

/// From word to word, and from end to end.
const WORD: Span = Span::from_us(50);
const DELAY: Span = Span::from_ns(500);

impl Pair {
    fn new(link: Link, seed: u64) -> Self {
        let end = |session| End::new(&Memory::default(), session).unwrap();
        Self {
            now: Time::ZERO,
            ends: [end(7), end(65_535)],
            wires: Default::default(),
            stream: Stream::new(seed, "what a link does", 0),
            link,
            got: Default::default(),
        }
    }

    /// The time of a word: what has arrived is received, and each end sends the next.
    fn step(&mut self) {
        for at in [0, 1] {
            while self.wires[at].front().is_some_and(|&(when, _)| when <= self.now) {
                let (_, bytes) = self.wires[at].pop_front().unwrap();
                if let Ok(set) = OrderedSet::decode(bytes) {
                    self.ends[at].receive(self.now, set);
                }
            }
            self.got[at].extend(std::iter::from_fn(|| self.ends[at].take()).map(|(_, data)| data));
            self.ends[at].on_time(self.now);
            if let Some(word) = self.ends[at].next_word(self.now) {
                self.carry(1 - at, word);
            }
        }
        self.now += WORD;
    }

    fn carry(&mut self, to: usize, word: OrderedSet) {
        let Link { lost, damaged, doubled } = self.link;
        let mut bytes = u64::from_be_bytes(word.encode());
        if self.stream.below(1_000) < lost {
            return;
        }
        if self.stream.below(1_000) < damaged {
            bytes ^= 1 << self.stream.below(64) | 1 << self.stream.below(64);
        }
        let copies = if self.stream.below(1_000) < doubled { 2 } else { 1 };
        for _ in 0..copies {
            self.wires[to].push_back((self.now + DELAY, bytes.to_be_bytes()));
        }
    }

    /// Runs until all has arrived; false: it takes too long.
    fn run(&mut self, packets: &[Vec<Vec<u8>>; 2]) -> bool {
        let mut next = [0; 2];
        for _ in 0..3_000_000 {
            for (at, packets) in packets.iter().enumerate() {
                while next[at] < packets.len()
                    && self.ends[at].send(Kind::Rpc, &packets[next[at]]).is_ok()
                {
                    next[at] += 1;
                }
            }
            self.step();
            let is_sent = |at: usize| next[at] == packets[at].len() && self.ends[at].is_idle();
            if is_sent(0) && is_sent(1) {
                return true;
            }
        }
        false
    }
}

fn packets(longest: usize) -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..longest), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn m614_every_packet_arrives_once_and_in_order(
        seed in any::<u64>(),
        (lost, damaged, doubled) in (0..60u64, 0..60u64, 0..60u64),
        (one, two) in (packets(40), packets(40)),
    ) {
        let mut pair = Pair::new(Link { lost, damaged, doubled }, seed);
        prop_assert!(pair.run(&[one.clone(), two.clone()]), "{:?}", pair.ends);
        prop_assert_eq!(pair.got, [two, one]);
    }

    /// An end restarts and forgets all: what the other then sends arrives, in order, and nothing twice in that life.
    #[test]
    fn m614_m609_an_end_that_restarts_gets_what_it_had_not_acknowledged(
        seed in any::<u64>(),
        (lost, steps, before) in (0..40u64, 0..3_000u32, 0..600usize),
    ) {
        let mut pair = Pair::new(Link { lost, damaged: 0, doubled: 20 }, seed);
        // So many that the numbers have come round.
        let all: Vec<Vec<u8>> = (0..before as u32 + 8).map(|n| n.to_be_bytes().to_vec()).collect();
        pair.link.lost = 0;
        prop_assert!(pair.run(&[all[..before].to_vec(), Vec::new()]));
        pair.link.lost = lost;
        for packet in &all[before..] {
            pair.ends[0].send(Kind::Rpc, packet).unwrap();
        }
        (0..steps).for_each(|_| pair.step());
        let first_life = std::mem::take(&mut pair.got[1]);
        prop_assert_eq!(&first_life[..], &all[..first_life.len()]);
        pair.ends[1] = End::new(&Memory::default(), 9).unwrap();
        prop_assert!(pair.run(&Default::default()), "{:?}", pair.ends);
        let second_life = &pair.got[1];
        prop_assert_eq!(&second_life[..], &all[all.len() - second_life.len()..]);
        prop_assert!(first_life.len() + second_life.len() >= all.len());
    }
}

/// The first frame after a restart is lost, wherever numbers are: what follows it is not taken for a beginning.
#[test]
fn m614_numbers_that_come_round_begin_no_session() {
    for before in 248..=262u16 {
        let mut pair = Pair::new(Link { lost: 0, damaged: 0, doubled: 0 }, 1);
        let packet = |number: u16| number.to_be_bytes().to_vec();
        assert!(pair.run(&[(0..before).map(packet).collect(), Vec::new()]));
        pair.got[1].clear();
        pair.ends[1] = End::new(&Memory::default(), 9).unwrap();
        let after: Vec<_> = (before..before + 8).map(packet).collect();
        after.iter().for_each(|packet| pair.ends[0].send(Kind::Rpc, packet).unwrap());
        // A frame of two words.
        pair.link.lost = 1_000;
        (0..2).for_each(|_| pair.step());
        pair.link.lost = 0;
        assert!(pair.run(&Default::default()));
        assert_eq!(pair.got[1], after, "after {before} frames");
    }
}

#[test]
fn m614_a_largest_packet_crosses_in_252_words() {
    let mut pair = Pair::new(Link { lost: 0, damaged: 0, doubled: 0 }, 1);
    let packet = vec![0xA5; DATA_BYTES_MAX];
    let sent =
        Words::new(&Frame { kind: Kind::Rpc, sequence: 0, session: 7, data: packet.clone() }, 0);
    // (6 + 1500 + 4) / 6.
    assert_eq!(sent.count(), 252);
    assert!(pair.run(&[vec![packet.clone(); 9], Vec::new()]));
    assert_eq!(pair.got[1], vec![packet; 9]);
    assert_eq!(pair.ends[0].counts().sent_again, 0);
}

#[test]
fn m614_time_outs_double_from_10_ms_to_a_second() {
    let mut end = End::new(&Memory::default(), 1).unwrap();
    for number in 0..6u8 {
        end.send(Kind::Debug, &[number]).unwrap();
    }
    let mut now = Time::ZERO;
    let mut waits = Vec::new();
    for _ in 0..9 {
        // Four of the six, of two words each.
        assert_eq!(std::iter::from_fn(|| end.next_word(now)).count(), 8);
        let deadline = end.deadline().unwrap();
        waits.push((deadline - now).as_ps() / 1_000_000_000);
        end.on_time(Time::from_ps(deadline.as_ps() - 1));
        assert_eq!(end.next_word(now), None);
        now = deadline;
        end.on_time(now);
    }
    assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000]);
    assert_eq!(end.counts().sent_again, 4 * 8);
}

#[test]
fn m614_i74_what_does_not_fit_is_refused() {
    let memory = Memory::default();
    let mut end = End::new(&memory, 1).unwrap();
    assert_eq!(end.send(Kind::Ack, &[]), Err(Refused::Packet(0)));
    assert_eq!(end.send(Kind::Dhcp, &[0; 1_501]), Err(Refused::Packet(1_501)));
    (0..8).for_each(|_| end.send(Kind::Dhcp, &[0; 1_500]).unwrap());
    assert_eq!(end.send(Kind::Dhcp, &[]), Err(Refused::Full));
    // One for each of a TiN's 32 links (§3.6), in less than half of its memory.
    let ends: Vec<_> = (0..31).map(|_| End::new(&memory, 1).unwrap()).collect();
    assert!(memory.peak() < 1 << 20, "{} bytes", memory.peak());
    drop((ends, end));
    assert_eq!(memory.used(), 0);
    assert!(End::new(&Memory::new(10_000), 1).is_err());
}

#[test]
fn m614_what_nobody_takes_is_not_acknowledged() {
    let mut pair = Pair::new(Link { lost: 0, damaged: 0, doubled: 0 }, 1);
    let frame = |sequence| Frame { kind: Kind::Rpc, sequence, session: 3, data: vec![sequence] };
    for sequence in 0..6 {
        Words::new(&frame(sequence), 0).for_each(|word| pair.ends[0].receive(Time::ZERO, word));
    }
    assert_eq!((pair.ends[0].counts().delivered, pair.ends[0].counts().refused), (4, 2));
    assert_eq!(pair.ends[0].take(), Some((Kind::Rpc, vec![0])));
    Words::new(&frame(4), 0).for_each(|word| pair.ends[0].receive(Time::ZERO, word));
    assert_eq!(pair.ends[0].counts().delivered, 5);
}

#[test]
fn m614_damaged_and_cut_frames_are_counted_and_deliver_nothing() {
    let frame = Frame { kind: Kind::Rpc, sequence: 0, session: 7, data: (0..40).collect() };
    let words: Vec<_> = Words::new(&frame, 0).collect();
    let count = words.len();
    let mut end = End::new(&Memory::default(), 1).unwrap();
    // Any bit of what words carry.
    for bit in 0..count * 48 {
        for (at, word) in words.iter().enumerate() {
            let mut word = *word;
            if let OrderedSet::Management { data, .. } = &mut word
                && at == bit / 48
            {
                data[bit % 48 / 8] ^= 1 << (bit % 8);
            }
            end.receive(Time::ZERO, word);
        }
    }
    assert_eq!(end.counts().damaged, count as u64 * 48);
    // Without its end, and with another one in the middle, it is none either.
    for length in 0..count {
        words[..length].iter().for_each(|&word| end.receive(Time::ZERO, word));
    }
    assert_eq!((end.take(), end.counts().delivered), (None, 0));
    words.iter().for_each(|&word| end.receive(Time::ZERO, word));
    assert_eq!(end.take(), Some((Kind::Rpc, frame.data)));
}
