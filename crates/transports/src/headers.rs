//! What the tests of all headers share.

use kernel::Time;
use packets::wire::{self, Codec, decode, encode};
use packets::{FlowKey, Kind, Marks, PRIORITIES, Packet};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use rack::NodeId;

use crate::kinds;

/// A data packet of flow 7 from host 1 to host 2, hashed as 3 and stamped to the picosecond.
pub(crate) fn data(payload: u16) -> Packet {
    Packet {
        flow: FlowKey::new(7),
        src: NodeId::new(1),
        dst: NodeId::new(2),
        entropy: 3,
        stamp: Time::from_ps(5_000_007),
        priority: 1,
        payload,
        ..Packet::default()
    }
}

/// The fields that ride in the trailer, after a look whether the packet comes out as it went in.
#[track_caller]
pub(crate) fn rides(codec: &dyn Codec, packet: &Packet) -> Vec<&'static str> {
    assert_eq!(decode(codec, &encode(codec, packet)), Ok(*packet));
    wire::rides(codec, packet)
}

/// Kinds that endpoints know, and one that they do not.
const KINDS: [Kind; 11] = [
    Kind::DATA,
    kinds::ACK,
    kinds::NACK,
    kinds::PULL,
    kinds::GRANT,
    kinds::RESEND,
    kinds::BUSY,
    kinds::CNP,
    kinds::SYN,
    kinds::SYN_ACK,
    Kind::below_transports(0),
];

/// Any packet at all, as a rule with small numbers.
fn packets() -> impl Strategy<Value = Packet> {
    let number = || prop_oneof![4 => 0u64..100_000, 1 => any::<u64>()];
    let numbers = (number(), number(), number(), number());
    let names = (any::<[u32; 3]>(), any::<[bool; 3]>(), 0..KINDS.len());
    let rest = (any::<[u16; 3]>(), 0u16..3_000, 0..PRIORITIES, any::<[u8; 2]>());
    (numbers, names, rest).prop_map(
        |(
            (seq, ack, word, stamp),
            ([number, src, dst], [back, second, large], kind),
            ([entropy, path, wire], payload, priority, [marks, hops]),
        )| {
            let flow = FlowKey::of_number(number >> if large { 3 } else { 20 }, back);
            let flow = flow.expect("29 bits");
            Packet {
                seq,
                ack,
                word,
                stamp: Time::from_ps(stamp),
                flow: if second { flow.of_second() } else { flow },
                src: NodeId::new(src),
                dst: NodeId::new(dst),
                entropy,
                path,
                wire,
                payload: if kind == 0 { payload } else { 0 },
                kind: KINDS[kind],
                priority,
                marks: Marks::from_bits_truncate(marks),
                hops,
            }
        },
    )
}

/// Whatever a packet says, it comes out as it went in; a flipped bit is found; changed bytes never break the
/// reader, and what it accepts is what is written.
pub(crate) fn holds_all(codec: &dyn Codec) {
    let change = (any::<usize>(), any::<u8>(), 0usize..60, any::<bool>());
    let mut runner = TestRunner::default();
    let result = runner.run(&(packets(), change), |(packet, (at, value, cut, seals))| {
        let mut bytes = encode(codec, &packet);
        prop_assert_eq!(decode(codec, &bytes), Ok(packet));
        let bit = at % (8 * bytes.len());
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(decode(codec, &bytes).is_err());
        bytes[bit / 8] ^= 1 << (bit % 8);
        let place = at % bytes.len();
        bytes[place] = value;
        bytes.truncate(bytes.len() - cut);
        if seals {
            let sum = wire::sequence(&[&bytes]);
            bytes.extend(sum);
        }
        if let Ok(read) = decode(codec, &bytes) {
            prop_assert_eq!(encode(codec, &read), bytes);
        }
        Ok(())
    });
    result.unwrap();
}
