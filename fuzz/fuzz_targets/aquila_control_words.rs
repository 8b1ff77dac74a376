//! Any bytes are refused as DHCP, as what is said in sessions of Aquila's control plane, as messages of inter-block
//! controllers and as control packets of NC-SI, or decoded and written back the same; and a server, a relay and a client of
//! DHCP, the application that hears inter-block controllers, and the responder of NC-SI, stand what they are told.
#![no_main]

use std::net::Ipv4Addr;

use aquila::pipeline::plan::Plan;
use aquila::topology::Shape;
use aquila_control::apps::inter_block::{InterBlock, Message as Reach};
use aquila_control::dhcp::{Client, Message, Server, from_frame, relay, to_client, to_server};
use aquila_control::nc_si::{Link, Packet, respond};
use aquila_control::nib::Nib;
use aquila_control::registers::file::RegisterFile;
use aquila_control::rpc::{MESSAGE_BYTES_MAX, Request};
use aquila_control::session::{Pieces, Point, Said, ip};
use arbitrary::Arbitrary;
use kernel::{Span, Stream, Time};
use libfuzzer_sys::fuzz_target;

const SERVER: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 2);

/// What comes in.
#[derive(Arbitrary, Debug)]
struct Input<'a> {
    parts: Vec<&'a [u8]>,
}

fuzz_target!(|input: Input<'_>| {
    let plan = Plan::new(&Shape::TINY, 2);
    let mut server = Server::for_ever(&plan, SERVER).telling_v6(true);
    let ethernet = plan.ethernet(3, aquila::pipeline::Interface::Control);
    let mut client = Client::new(Time::ZERO, ethernet, Stream::new(1, "firmware", 3));
    let mut inter_block = InterBlock::new(plan);
    inter_block.learn(Time::ZERO, &Nib::new().since(0, &InterBlock::TABLES));
    let mut pieces = Pieces::default();
    let mut registers = RegisterFile::new();
    for bytes in input.parts {
        session(bytes);
        if let Some((from, to)) = ip::ends(bytes) {
            assert_eq!(ip::addresses(bytes), Some((from.ip(), to.ip())));
        }
        // The same behind a header of Ethernet, which random bytes seldom have; without a checksum, that is one of zeros.
        let header = [&[0xFF; 12][..], &[0x88, 0xF8]].concat();
        control_packet(bytes, &mut registers);
        control_packet(&[&header, bytes].concat(), &mut registers);
        control_packet(&[&header, &[0, 1][..], bytes, &[0; 46]].concat(), &mut registers);
        dhcp(bytes, &mut server, &mut client);
        // The same behind a header that fits, which random bytes seldom have.
        inter_block.hear(Time::ZERO, &[b"IB", bytes].concat(), &mut Vec::new());
        for bytes in [bytes.to_vec(), [b"IB", bytes].concat()] {
            if let Ok(message) = Reach::decode(&bytes) {
                assert_eq!(message.encode(), bytes);
            }
        }
        if pieces.add(bytes).is_ok()
            && let Some(message) = pieces.take()
        {
            assert!(message.len() <= MESSAGE_BYTES_MAX);
            let _ = Request::decode(&message);
        }
    }
    inter_block.tick(Time::ZERO + Span::from_us(60_000_000), &mut Vec::new());
});

fn control_packet(frame: &[u8], registers: &mut RegisterFile) {
    let Ok(packet) = Packet::decode(frame) else { return };
    assert_eq!(Packet::decode(&packet.encode()), Ok(packet.clone()));
    if let Some(answer) = respond(registers, 0, &packet, Link::Up, 1) {
        assert_eq!(answer.instance, packet.instance);
        assert_eq!(Packet::decode(&answer.encode()), Ok(answer));
    }
}

fn session(bytes: &[u8]) {
    if let Ok(Some((said, length))) = Said::decode(bytes) {
        let again = said.encode();
        assert_eq!(again.len(), length);
        assert_eq!(Said::decode(&again), Ok(Some((said, length))));
    }
    if let Some(point) = Point::decode(bytes) {
        assert_eq!(point.encode(), bytes);
    }
}

fn dhcp(bytes: &[u8], server: &mut Server, client: &mut Client) {
    if let Ok(message) = Message::decode(bytes) {
        assert_eq!(Message::decode(&message.encode()), Ok(message));
        client.receive(Time::ZERO, &message);
    }
    let _ = (server.receive(bytes), relay(SERVER, bytes));
    if let Some(payload) = from_frame(bytes) {
        assert!(payload.len() < bytes.len());
    }
    for frame in [to_server([2; 6], bytes), to_client(SERVER, [2; 6], bytes)] {
        if bytes.len() < 60_000 {
            assert_eq!(from_frame(&frame).as_deref(), Some(bytes));
        }
    }
    if let Some(deadline) = client.deadline() {
        client.on_time(deadline);
        assert!(client.deadline().is_none_or(|next| next > deadline));
    }
}
