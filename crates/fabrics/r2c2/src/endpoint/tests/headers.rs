//! Packets in their frames.

use packets::wire::{decode, encode, real, rides};
use packets::{Kind, Marks, PRIORITIES};

use super::super::frames::carry;
use super::super::kinds;
use super::*;
use crate::wire::{Hello, Kbps, Rates, SHORT_BYTES};

fn endpoints() -> Endpoints {
    Endpoints::new(&torus(&[3, 3]).plan().unwrap(), 1)
}

/// R2C2 §4.2: a header of 36 bytes, with the route and how far it is done.
#[test]
fn m34_data_has_the_papers_header_on_every_link() {
    let codec = endpoints().codec();
    let sent = Packet {
        flow: FlowKey::new(5),
        src: NodeId::new(0),
        dst: NodeId::new(4),
        seq: 9,
        payload: 100,
        wire: 136,
        marks: Marks::LAST,
        ..Packet::default()
    };
    // From the first node by its first port, and on by the third of the next: that leads somewhere.
    for hops in 0..=2 {
        let packet = Packet { hops, ..sent.with_route(0o12) };
        let bytes = encode(&*codec, &packet);
        assert_eq!(decode(&*codec, &bytes), Ok(packet));
        assert_eq!(rides(&*codec, &packet), [""; 0]);
        let frame = real(&bytes).unwrap();
        assert_eq!(frame[12..20], [0x81, 0, 7 << 5, 0, 0x88, 0xB5, 0, 136]);
        let header = &frame[20..56];
        assert_eq!(header[..4], [0x1F, 2, hops, !hops]);
        assert_eq!(header[20..36], 0o12u128.to_be_bytes());
    }
}

#[test]
fn what_neighbours_tell_stands_in_a_frame_as_its_bytes_are() {
    let codec = endpoints().codec();
    let source = NodeId::new(3);
    let hello = Hello { source, port: 1, number: 7, heard: 6, reach: 2, digest: 8 }.encode();
    let packet =
        Packet { src: NodeId::new(3), dst: NodeId::new(4), kind: kinds::GREETING, ..carry(&hello) };
    let frame = real(&encode(&*codec, &packet)).unwrap();
    assert_eq!(frame[18..20], [0, SHORT_BYTES as u8]);
    assert_eq!(frame[20..20 + SHORT_BYTES], hello);
    assert_eq!(rides(&*codec, &packet), [""; 0]);
    assert_eq!(rides(&*codec, &Packet { entropy: 2, path: 1, ..packet }), ["entropy", "path"]);
}

/// A part of a list of rates after the first has the head in its bytes, and is no longer for it.
#[test]
fn m53_parts_of_a_message_are_together_as_long_as_it() {
    let codec = endpoints().codec();
    let part = |part: u8, count: usize| {
        let rates = vec![Kbps::new(9); count];
        let said = Rates { node: NodeId::new(4), way: 0, round: 3, part, tag: 5, rates }.encode();
        let ends = Packet { src: NodeId::new(3), dst: NodeId::new(4), ..Packet::default() };
        let Packet { src, dst, .. } = ends;
        let packet = Packet { src, dst, kind: kinds::CENTRAL, ..carry(&said) };
        assert_eq!(rides(&*codec, &packet), [""; 0]);
        let (all, length) = frames::carried(&packet).unwrap();
        assert_eq!(all[..length], said);
        assert_eq!(decode(&*codec, &encode(&*codec, &packet)), Ok(packet));
        usize::from(packet.wire)
    };
    // Seven rates in parts of five and two.
    assert_eq!((part(0, 5), part(1, 2)), (12 + 4 * 5, 4 * 2));
}

proptest! {
    /// Whatever a packet says, it comes out as it went in, and a flipped bit is found.
    #[test]
    fn every_packet_comes_out_as_it_went_in(
        longs: [u64; 4],
        small: bool,
        (number, nodes, back, none) in (0u32..1 << 29, any::<[u32; 2]>(), any::<bool>(), any::<bool>()),
        (shorts, payload) in (any::<[u16; 3]>(), 0u16..2_000),
        (kind, priority, marks, hops) in (0u8..7, 0..PRIORITIES, any::<u8>(), any::<u8>()),
        flipped: usize,
    ) {
        let codec = endpoints().codec();
        let flow = FlowKey::of_number(number, back).unwrap();
        let [src, dst] = nodes.map(|node| NodeId::new(if small { node % 9 } else { node }));
        let packet = Packet {
            seq: longs[0] >> if small { 40 } else { 0 },
            ack: longs[1] >> if small { 58 } else { 0 },
            word: if small { 0 } else { longs[2] },
            stamp: Time::from_ps(longs[3]),
            flow: if none { FlowKey::NEIGHBOURS } else { flow },
            src,
            dst,
            entropy: shorts[0],
            path: shorts[1],
            wire: if small { shorts[2] % 40 } else { shorts[2] },
            payload,
            kind: [Kind::DATA, kinds::ACK, kinds::NACK, kinds::NOTICE, kinds::GREETING, kinds::LINK_STATE,
                kinds::CENTRAL][usize::from(kind)],
            priority,
            marks: Marks::from_bits_truncate(marks),
            hops,
        };
        let mut bytes = encode(&*codec, &packet);
        prop_assert_eq!(decode(&*codec, &bytes), Ok(packet));
        let bit = flipped % (8 * bytes.len());
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(decode(&*codec, &bytes).is_err());
    }
}
