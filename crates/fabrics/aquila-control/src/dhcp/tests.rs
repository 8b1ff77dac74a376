//! Bytes, a client against a server, and everything that can go wrong between them.

use aquila::pipeline::Interface;
use aquila::pipeline::plan::Plan;
use aquila::topology::Shape;
use kernel::{Span, Stream, Time};
use proptest::prelude::*;

use super::*;
use crate::session::Addresses;

const SERVER: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 2);
const SPINE: Ipv4Addr = Ipv4Addr::new(172, 16, 1, 9);

fn plan() -> Plan {
    Plan::new(&Shape::MINI, 2)
}

fn client(tin: u16) -> Client {
    let ethernet = plan().ethernet(tin, Interface::Control);
    Client::new(Time::ZERO, ethernet, Stream::new(1, "firmware", tin.into()))
}

fn at(seconds: u64) -> Time {
    Time::ZERO + Span::from_us(seconds * 1_000_000)
}

/// RFC 2131, fig. 1, and RFC 2132, by hand.
#[test]
fn m803_a_discover_is_what_the_standard_says() {
    let bytes = Message::of_client(Kind::Discover, 0x0102_0304, [2, 0x47, 0, 3, 0, 7]).encode();
    assert_eq!(bytes[..12], [1, 1, 6, 0, 1, 2, 3, 4, 0, 0, 0x80, 0]);
    assert_eq!(bytes[12..28], [0; 16]);
    assert_eq!(bytes[28..34], [2, 0x47, 0, 3, 0, 7]);
    assert_eq!(bytes[236..240], [99, 130, 83, 99]);
    // Message type DISCOVER; client identifier; end.
    assert_eq!(bytes[240..], [53, 1, 1, 61, 7, 1, 2, 0x47, 0, 3, 0, 7, 255]);
}

#[test]
fn m803_m615_a_client_gets_the_addresses_that_the_plan_has_for_it() {
    for has_v6 in [false, true] {
        gets_its_addresses(has_v6);
    }
}

#[track_caller]
fn gets_its_addresses(has_v6: bool) {
    let mut server = Server::for_ever(&plan(), SERVER).telling_v6(has_v6);
    for tin in [0, 7, 67] {
        let mut client = client(tin);
        let mut kinds = Vec::new();
        while client.addresses().is_none() {
            let message = client.on_time(client.deadline().unwrap()).unwrap();
            kinds.push(message.kind);
            let frame = to_server(message.client, &message.encode());
            let relayed = relay(SPINE, &from_frame(&frame).unwrap()).unwrap();
            let answer = server.receive(&relayed).unwrap();
            assert_eq!(Message::decode(&answer).unwrap().relay, SPINE);
            let frame = to_client(SPINE, message.client, &answer);
            let answer = Message::decode(&from_frame(&frame).unwrap()).unwrap();
            assert!(client.receive(Time::ZERO, &answer));
        }
        assert_eq!(kinds, [Kind::Discover, Kind::Request]);
        // 10.0.8.0/22, one address a TiN.
        let v4 = Ipv4Addr::new(10, 0, 8, tin as u8);
        let v6 = has_v6.then(|| Ipv6Addr::new(0xfd47, 0, 0, 3, 0, 0, 0, tin));
        assert_eq!(client.addresses(), Some(Addresses { v4, v6 }));
        assert_eq!(client.deadline(), None);
    }
    assert_eq!(server.counts.answers, [3, 3, 0]);
}

#[test]
fn m803_tries_are_1_2_4_to_64_seconds_apart_within_a_tenth() {
    let mut client = client(3);
    let mut times = Vec::new();
    let mut numbers = std::collections::BTreeSet::new();
    for _ in 0..12 {
        let now = client.deadline().unwrap();
        let message = client.on_time(now).unwrap();
        assert!(client.on_time(now).is_none());
        numbers.insert(message.transaction);
        times.push(now);
    }
    let expected = [1, 2, 4, 8, 16, 32, 64, 64, 64, 64, 64];
    for (pair, seconds) in times.windows(2).zip(expected) {
        let waited = (pair[1] - pair[0]).as_seconds();
        assert!((0.9..=1.1).contains(&(waited / f64::from(seconds))), "{waited} for {seconds} s");
    }
    assert_eq!(numbers.len(), 1, "an answer to an earlier try counts");
}

#[test]
fn m803_a_refusal_starts_over_and_a_lease_is_kept() {
    let mut server = Server::new(&plan(), SERVER, 100);
    let mut client = client(5);
    let discover = client.on_time(Time::ZERO).unwrap();
    let mut offer = Message::decode(&server.receive(&discover.encode()).unwrap()).unwrap();
    // Somebody else's offer is not taken, nor one of another exchange.
    assert!(!client.receive(at(1), &Message { client: [9; 6], ..offer }));
    assert!(!client.receive(at(1), &Message { transaction: !offer.transaction, ..offer }));
    assert!(!client.receive(at(1), &Message { given: Ipv4Addr::BROADCAST, ..offer }));
    offer.given = Ipv4Addr::new(10, 0, 8, 99);
    assert!(client.receive(at(1), &offer));
    let request = client.on_time(at(1)).unwrap();
    // The server does not give what it has not for it.
    let nak = Message::decode(&server.receive(&request.encode()).unwrap()).unwrap();
    assert_eq!((nak.kind, server.counts.answers), (Kind::Nak, [1, 0, 1]));
    assert!(client.receive(at(2), &nak));
    let again = client.on_time(at(2)).unwrap();
    assert_eq!(again.kind, Kind::Discover);
    assert_ne!(again.transaction, discover.transaction);
    let offer = Message::decode(&server.receive(&again.encode()).unwrap()).unwrap();
    client.receive(at(3), &offer);
    let request = client.on_time(at(3)).unwrap();
    let ack = Message::decode(&server.receive(&request.encode()).unwrap()).unwrap();
    assert!(client.receive(at(3), &ack));
    // Half of a hundred seconds later it asks to keep it, and then each minute; unanswered, it loses it.
    assert_eq!(client.deadline(), Some(at(53)));
    let renewal = client.on_time(at(53)).unwrap();
    assert_eq!((renewal.kind, renewal.has), (Kind::Request, Ipv4Addr::new(10, 0, 8, 5)));
    let ack = Message::decode(&server.receive(&renewal.encode()).unwrap()).unwrap();
    assert!(client.receive(at(54), &ack));
    assert_eq!(client.deadline(), Some(at(104)));
    assert!(client.on_time(at(104)).is_some());
    assert_eq!(client.on_time(at(154)).map(|message| message.kind), Some(Kind::Discover));
    assert_eq!(client.addresses(), None);
}

/// RFC 2132 §8.4, by hand: an option of vendors, an item in it, of 16 bytes.
#[test]
fn m615_the_address_of_ipv6_stands_in_the_option_of_vendors() {
    let mut answer = Message::of_client(Kind::Ack, 1, [2, 0x47, 0, 3, 0, 7]);
    answer.given_v6 = Some(Ipv6Addr::new(0xfd47, 0, 0, 3, 0, 0, 0, 7));
    let bytes = answer.encode();
    let option = [43, 18, 1, 16, 0xFD, 0x47, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 7, 255];
    assert_eq!(bytes[bytes.len() - 21..], option);
    assert_eq!(Message::decode(&bytes), Ok(answer));
    // Of another vendor, or cut short, it says nothing; nor is an address taken that nobody can have.
    for (at, by) in [(2, 9), (3, 15)] {
        let mut other = bytes.clone();
        let at = other.len() - 21 + at;
        other[at] = by;
        assert_eq!(Message::decode(&other), Ok(Message { given_v6: None, ..answer }));
    }
    let (mut server, mut client) = (Server::for_ever(&plan(), SERVER), client(7));
    let mut offer = client.on_time(Time::ZERO).unwrap();
    for given_v6 in [Ipv6Addr::UNSPECIFIED, Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1)] {
        while client.addresses().is_none() {
            let answer = Message::decode(&server.receive(&offer.encode()).unwrap()).unwrap();
            client.receive(Time::ZERO, &Message { given_v6: Some(given_v6), ..answer });
            offer = client.on_time(Time::ZERO).unwrap_or(offer);
        }
        assert_eq!(client.addresses().and_then(|own| own.v6), None);
    }
}

#[test]
fn m803_who_is_not_in_the_plan_or_asks_another_gets_nothing() {
    let mut server = Server::for_ever(&plan(), SERVER);
    let stranger = Message::of_client(Kind::Discover, 1, [2, 0x47, 0, 3, 0, 68]);
    assert!(server.receive(&stranger.encode()).is_none());
    let host = Message { client: plan().ethernet(1, Interface::Host0), ..stranger };
    assert!(server.receive(&host.encode()).is_none());
    let mut other = Message { client: plan().ethernet(1, Interface::Control), ..stranger };
    (other.kind, other.server) = (Kind::Request, Some(SPINE));
    assert!(server.receive(&other.encode()).is_none());
    assert!(server.receive(&Message { kind: Kind::Offer, ..stranger }.encode()).is_none());
    let counts = server.counts;
    assert_eq!((counts.unknown, counts.others, counts.malformed), (2, 1, 1));
}

#[test]
fn m803_messages_cut_short_or_of_servers_are_refused_and_counted() {
    let mut server = Server::for_ever(&plan(), SERVER);
    let client = plan().ethernet(1, Interface::Control);
    let bytes = Message::of_client(Kind::Discover, 1, client).encode();
    // A message may end behind its type: the rest is padding. Before that nothing is one.
    let type_ends = 243;
    for length in 0..type_ends {
        assert_eq!(server.receive(&bytes[..length]), None, "{length} bytes");
    }
    assert_eq!(server.receive(&[&bytes[..], &[0; super::MESSAGE_BYTES_MAX]].concat()), None);
    for kind in [Kind::Offer, Kind::Ack, Kind::Nak] {
        assert_eq!(server.receive(&Message::of_client(kind, 1, client).encode()), None);
    }
    assert_eq!(server.counts.malformed, type_ends as u64 + 1 + 3);
    assert_eq!(server.counts.answers, [0; 3]);
    assert!(server.receive(&bytes).is_some());
}

#[test]
fn m810_copies_by_other_proxies_are_dropped_until_their_way_is_gone() {
    let mut merge = Merge::default();
    let discover = Message::of_client(Kind::Discover, 7, [1; 6]);
    assert!(merge.admit(at(0), &discover, 'a'));
    assert!(!merge.admit(at(1), &discover, 'b'));
    // Sent again by the client; another client; another exchange.
    assert!(merge.admit(at(2), &discover, 'a'));
    assert!(merge.admit(at(2), &Message { client: [2; 6], ..discover }, 'b'));
    assert!(merge.admit(at(2), &Message { transaction: 8, ..discover }, 'b'));
    let offer = Message { kind: Kind::Offer, ..discover };
    assert_eq!(merge.way(&offer), Some('a'));
    assert_eq!(merge.way(&Message { kind: Kind::Ack, ..discover }), None);
    merge.forget(|way| way == 'a');
    assert_eq!(merge.way(&offer), None);
    assert!(merge.admit(at(3), &discover, 'c'));
    assert_eq!(merge.merged, 1);
}

#[test]
fn m803_a_relay_names_itself_once_and_ends_circles() {
    let mut bytes = Message::of_client(Kind::Discover, 7, [1; 6]).encode();
    for hop in 1..=16 {
        bytes = relay(if hop == 1 { SPINE } else { SERVER }, &bytes).unwrap();
        assert_eq!((Message::decode(&bytes).unwrap().relay, bytes[3]), (SPINE, hop));
    }
    assert_eq!(relay(SPINE, &bytes), Err(MessageError::Kind));
}

fn messages() -> impl Strategy<Value = Message> {
    let address = || any::<u32>().prop_map(Ipv4Addr::from);
    let head = (0..5usize, any::<u32>(), any::<[u8; 6]>(), address(), address(), address());
    let option = || prop::option::of(any::<u32>().prop_map(Ipv4Addr::from));
    let options = (option(), option(), prop::option::of(any::<u32>()), option());
    (head, options, prop::option::of(any::<Ipv6Addr>())).prop_map(
        |((kind, transaction, client, has, given, relay), options, given_v6)| {
            let kind = Kind::ALL[kind].0;
            let (requested, server, lease, mask) = options;
            Message {
                kind,
                transaction,
                client,
                has,
                given,
                relay,
                requested,
                server,
                lease,
                mask,
                given_v6,
            }
        },
    )
}

proptest! {
    #[test]
    fn m803_messages_come_back_through_bytes_and_frames(message in messages()) {
        let bytes = message.encode();
        prop_assert_eq!(Message::decode(&bytes), Ok(message));
        let frame = to_server([4; 6], &bytes);
        prop_assert_eq!(from_frame(&frame), Some(bytes));
    }

    /// A client that hears nothing but nonsense of its own exchange keeps asking, or has an address that ends.
    #[test]
    fn m803_a_hostile_server_cannot_stop_a_client(messages in prop::collection::vec(messages(), 1..40)) {
        let mut client = client(3);
        for message in messages {
            let (ethernet, transaction) = (client.ethernet, client.transaction);
            client.receive(Time::ZERO, &Message { client: ethernet, transaction, ..message });
            prop_assert!(client.addresses().is_some() || client.deadline().is_some());
            if let Some(deadline) = client.deadline() {
                client.on_time(deadline);
                prop_assert!(client.deadline().is_some_and(|next| next > deadline));
            }
        }
    }

    /// Whatever comes, nobody panics, and a client takes no address but by an exchange of its own.
    #[test]
    fn m803_hostile_bytes_do_nothing(
        messages in prop::collection::vec((messages(), any::<prop::sample::Index>(), any::<u8>()), 1..20),
        bytes in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let mut server = Server::for_ever(&plan(), SERVER);
        let mut client = client(3);
        server.receive(&bytes);
        let _ = from_frame(&bytes);
        for (message, at, by) in messages {
            let mut bytes = message.encode();
            let at = at.index(bytes.len());
            bytes[at] ^= by;
            let frame = to_server([4; 6], &bytes);
            let _ = from_frame(&frame[..frame.len() - at]);
            let _ = (server.receive(&bytes), relay(SPINE, &bytes));
            if let Ok(message) = Message::decode(&bytes) {
                client.receive(Time::ZERO, &message);
            }
            prop_assert_eq!(client.addresses(), None);
        }
    }
}
