//! Words through bytes, and two ends through packets.

use aquila::pipeline::plan::Version::{V4, V6};
use aquila::pipeline::plan::{EthernetAddress, Version};
use kernel::{Span, Stream, Time};
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;
use crate::memory::Memory;
use crate::rpc::{Item, Request};

const TIN: Addresses = Addresses {
    v4: Ipv4Addr::new(10, 0, 8, 7),
    v6: Some(Ipv6Addr::new(0xfd47, 0, 0, 3, 0, 0, 0, 7)),
};
const CONTROLLER: Addresses = Addresses {
    v4: Ipv4Addr::new(172, 16, 0, 1),
    v6: Some(Ipv6Addr::new(0xfd48, 0, 0, 0, 0, 0, 0, 1)),
};

fn said() -> impl Strategy<Value = Said> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..=PIECE_BYTES);
    let hello = (any::<u32>(), any::<EthernetAddress>(), any::<u64>(), any::<u8>(), any::<u16>());
    prop_oneof![
        hello.prop_map(|(boot, ethernet, links, generation, firmware)| {
            Said::Hello(Hello { boot, ethernet, links, generation, firmware })
        }),
        bytes().prop_map(Said::Rpc),
        (any::<u8>(), 0..3usize, bytes()).prop_map(|(port, kind, data)| Said::Pmos {
            port,
            kind: pmos::Kind::ALL[kind],
            data
        }),
        any::<u8>().prop_map(|port| Said::Room { port }),
        any::<u64>().prop_map(Said::Links),
        (any::<u16>(), prop::collection::vec(any::<u32>(), 0..=LIST_MAX))
            .prop_map(|(seconds, addresses)| Said::List { seconds, addresses }),
        (any::<u32>(), prop::collection::vec(any::<u8>(), 0..33))
            .prop_map(|(address, entry)| Said::Report { address, entry }),
    ]
}

proptest! {
    #[test]
    fn m809_words_come_back_and_cut_ones_wait(said in said(), cut in any::<prop::sample::Index>()) {
        let bytes = said.encode();
        prop_assert_eq!(Said::decode(&bytes[..cut.index(bytes.len())]), Ok(None));
        prop_assert_eq!(Said::decode(&bytes), Ok(Some((said, bytes.len()))));
    }

    #[test]
    fn m809_any_bytes_are_refused_wait_or_are_written_back_nearly(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(Some((said, length))) = Said::decode(&bytes) {
            let again = said.encode();
            prop_assert_eq!(&again[2..], &bytes[2..length]);
        }
        if let Some(point) = Point::decode(&bytes) {
            prop_assert_eq!(point.encode(), bytes);
        }
    }

    /// Whatever way a message is cut, it comes back whole; nonsense does not stay.
    #[test]
    fn m606_messages_come_back_from_pieces(
        items in 0..300u32,
        cuts in prop::collection::vec(1..=PIECE_BYTES, 1..60),
        nonsense in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..PIECE_BYTES), 0..8),
    ) {
        let items = (0..items).map(|address| Item::Read { address }).collect();
        let bytes = Request { sequence: 3, items }.encode();
        let mut pieces = Pieces::default();
        for piece in nonsense {
            let _ = pieces.add(&piece);
            while pieces.take().is_some() {}
        }
        pieces.clear();
        let mut rest = &bytes[..];
        for cut in cuts.into_iter().cycle() {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            prop_assert_eq!(pieces.take(), None);
            prop_assert_eq!(pieces.add(piece), Ok(()));
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(pieces.take(), Some(bytes));
    }

    /// Segments that nobody sent, or that were changed on the way, break no end: a session still comes about.
    #[test]
    fn m804_hostile_segments_harm_nobody(
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..10),
        damage in prop::collection::vec((0..40usize, any::<u8>()), 0..20),
    ) {
        let mut pair = Pair::new(1);
        for packet in packets {
            pair.server.receive(packet.clone());
            pair.client.receive(pair.now, packet);
        }
        pair.client.call(pair.now, V4);
        for (at, by) in damage {
            pair.step(0, |packet| if at < packet.len() { packet[at] ^= by });
        }
        // What was harmed is given up, and tried again.
        pair.client.call(pair.now, V4);
        pair.until(600, |pair| pair.client.progress() == Progress::Open && pair.server.has_session());
    }
}

/// Two ends and the packets between them.
struct Pair {
    now: Time,
    server: Server,
    client: Client,
    stream: Stream,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let now = Time::ZERO;
        let mut server = Server::new(&Memory::default(), now, seed).unwrap();
        server.set_addresses(Some(TIN));
        let client = Client::new(now, seed + 1, CONTROLLER, TIN);
        Self { now, server, client, stream: Stream::new(seed, "what is lost", 0) }
    }

    /// A round of packets, 10 ms later; of a thousand, so many are lost.
    fn step(&mut self, lost: u64, change: impl Fn(&mut Vec<u8>)) {
        self.now += Span::from_us(10_000);
        self.client.poll(self.now);
        self.server.poll(self.now);
        for mut packet in self.client.packets() {
            change(&mut packet);
            if self.stream.below(1_000) >= lost {
                self.server.receive(packet);
            }
        }
        self.server.poll(self.now);
        for mut packet in self.server.packets() {
            change(&mut packet);
            if self.stream.below(1_000) >= lost {
                self.client.receive(self.now, packet);
            }
        }
    }

    #[track_caller]
    fn until(&mut self, seconds: u32, is_done: impl Fn(&mut Self) -> bool) {
        for _ in 0..100 * seconds {
            if is_done(self) {
                return;
            }
            self.step(0, |_| ());
        }
        panic!("nothing after {seconds} s");
    }
}

#[test]
fn m804_m615_what_is_said_arrives_in_order_though_packets_are_lost() {
    for version in [V4, V6] {
        arrives_in_order(version);
    }
}

#[track_caller]
fn arrives_in_order(version: Version) {
    let mut pair = Pair::new(7);
    pair.client.call(pair.now, version);
    pair.until(5, |pair| pair.client.progress() == Progress::Open && pair.server.has_session());
    let words: Vec<Said> = (0..200).map(|at| Said::Rpc(vec![at; PIECE_BYTES])).collect();
    let (mut said, mut heard) = (0, Vec::new());
    for _ in 0..20_000 {
        while said < words.len() && pair.client.say(&words[said]) {
            said += 1;
        }
        pair.step(100, |_| ());
        heard.extend(std::iter::from_fn(|| pair.server.hear()));
    }
    assert_eq!(heard.len(), words.len());
    assert!(heard == words);
}

#[test]
fn m804_m615_a_new_session_takes_the_place_of_the_old_whichever_version_it_is_of() {
    let mut pair = Pair::new(3);
    for (sessions, version) in (1..=5).zip([V4, V6, V6, V4, V6]) {
        pair.client.call(pair.now, version);
        pair.until(5, |pair| pair.client.progress() == Progress::Open);
        pair.until(5, |pair| {
            pair.server.counts().sessions == sessions && pair.server.has_session()
        });
        let word = Said::Links(sessions);
        assert!(pair.server.say(&word));
        pair.step(0, |_| ());
        pair.step(0, |_| ());
        assert_eq!(pair.client.hear(), Ok(Some(word)));
        // The controller is gone without a word, and another one calls.
        pair.client = Client::new(pair.now, 100 + sessions, CONTROLLER, TIN);
        (0..sessions).for_each(|_| pair.client.port += 1);
    }
}

#[test]
fn m804_nonsense_ends_a_session_and_is_counted() {
    let mut pair = Pair::new(4);
    pair.client.call(pair.now, V4);
    pair.until(5, |pair| pair.client.progress() == Progress::Open && pair.server.has_session());
    pair.client.nonsense();
    pair.until(5, |pair| {
        let _ = pair.server.hear();
        !pair.server.has_session()
    });
    assert_eq!(pair.server.counts().malformed, 1);
    pair.until(5, |pair| pair.client.progress() == Progress::Closed);
}

#[test]
fn m804_silence_ends_a_session_at_both_ends() {
    let mut pair = Pair::new(5);
    pair.client.call(pair.now, V4);
    pair.until(5, |pair| pair.client.progress() == Progress::Open && pair.server.has_session());
    // Both ask from time to time, and stay.
    for _ in 0..20_000 {
        pair.step(0, |_| ());
    }
    assert!(pair.server.has_session() && pair.client.progress() == Progress::Open);
    for _ in 0..20_000 {
        pair.step(1_000, |_| ());
    }
    assert!(!pair.server.has_session() && pair.client.progress() == Progress::Closed);
}

#[test]
fn m615_packets_are_of_the_version_that_was_called_and_from_the_address_that_was() {
    for version in [V4, V6] {
        let mut pair = Pair::new(8);
        pair.client.call(pair.now, version);
        let is_right = move |packet: &mut Vec<u8>| {
            let (from, to) = ip::addresses(packet).expect("a packet of IP");
            let both = [TIN, CONTROLLER].map(|end| end.of(version).expect("it has both"));
            assert!(both.contains(&from) && both.contains(&to) && from != to, "{from} to {to}");
        };
        for _ in 0..10 {
            pair.step(0, is_right);
        }
        assert!(pair.server.has_session());
    }
}

#[test]
fn m615_who_has_no_address_of_a_version_does_not_answer_over_it() {
    let mut pair = Pair::new(9);
    pair.server.set_addresses(Some(Addresses { v6: None, ..TIN }));
    pair.client.call(pair.now, V6);
    (0..300).for_each(|_| pair.step(0, |_| ()));
    assert_eq!(pair.client.progress(), Progress::Calling);
    pair.client.call(pair.now, V4);
    pair.until(5, |pair| pair.client.progress() == Progress::Open && pair.server.has_session());
}

#[test]
fn i74_a_server_without_memory_does_not_start() {
    assert!(Server::new(&Memory::new(70_000), Time::ZERO, 1).is_err());
}
