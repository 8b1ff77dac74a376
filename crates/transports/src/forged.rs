//! Frames that no endpoint would send, with right check sequences: nothing breaks. They are dropped, or taken for
//! what they say.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use kernel::{Bytes, Stream, Time};
use packets::config::Queues;
use packets::wire::{self, Codec};
use packets::{FlowKey, Kind, Marks, PRIORITIES, Packet, Transport};
use rack::apart::{Outcome, carry};
use rack::node::{Ending, Message, Node, Unit};
use rack::workload::Workload;
use rack::{Fabric, Flow, NodeId};

use crate::chaos::flow;
use crate::kinds;
use crate::networked::{network, star};
use crate::tables::Bank;
use crate::{cubic, dcqcn, dctcp, homa, mixed, ndp, newreno, raw, rds, swift};

const HOSTS: u32 = 4;
/// Where the frame of a packet begins and ends in a message between nodes.
const HEAD: usize = 21;
const SUM: usize = 4;

/// A node some of whose frames say something else than was sent.
struct Forged {
    node: Box<dyn Node>,
    codec: Arc<dyn Codec>,
    chance: Stream,
}

impl Forged {
    fn number(&mut self) -> u64 {
        match self.chance.below(4) {
            0 => self.chance.below(1 << 63) << 1 | 1,
            1 => self.chance.below(100_000),
            _ => self.chance.below(5),
        }
    }

    /// The packet with a field that is another.
    fn forge(&mut self, packet: Packet) -> Packet {
        let (number, word) = (self.number(), self.number());
        let of_hosts = NodeId::new((number % u64::from(HOSTS)) as u32);
        match self.chance.below(14) {
            0 => Packet { seq: number, ..packet },
            1 => Packet { ack: number, ..packet },
            2 => Packet { word: number, ..packet },
            3 => Packet { stamp: Time::from_ps(number), ..packet },
            4 => Packet { payload: number as u16, ..packet },
            5 => Packet { marks: Marks::from_bits_truncate(number as u8), ..packet },
            6 => Packet { src: of_hosts, ..packet },
            7 => Packet { hops: number as u8, ..packet },
            8 => Packet { priority: (number % u64::from(PRIORITIES)) as u8, ..packet },
            9 => Packet { entropy: number as u16, path: word as u16, ..packet },
            10 => Packet { seq: number, ack: word, ..packet },
            11 => {
                let all = [
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
                ];
                Packet { kind: all[(number % all.len() as u64) as usize], ..packet }
            }
            _ => {
                let flow = FlowKey::of_number((number % 6) as u32, word.is_multiple_of(2));
                Packet { flow: flow.expect("a small number"), ..packet }
            }
        }
    }

    fn replace(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let frame = bytes.get(HEAD..bytes.len() - SUM)?;
        let packet = wire::decode(&*self.codec, frame).ok()?;
        let packet = self.forge(packet);
        let mut other = bytes[..HEAD].to_vec();
        other.extend(wire::encode(&*self.codec, &packet));
        let mut sum = wire::sequence(&[&other]);
        sum.reverse();
        other.extend(sum);
        Some(other)
    }
}

impl Node for Forged {
    fn next(&self) -> Time {
        self.node.next()
    }

    fn offer(&mut self, flow: &Flow) {
        self.node.offer(flow);
    }

    fn receive(&mut self, wire: u32, at: Time, bytes: &[u8]) -> Option<Unit> {
        let other = if self.chance.below(8) == 0 { self.replace(bytes) } else { None };
        self.node.receive(wire, at, other.as_deref().unwrap_or(bytes))
    }

    fn run(&mut self, until: Time, send: &mut dyn FnMut(Message<'_>)) {
        self.node.run(until, send);
    }

    fn endings(&mut self, endings: &mut Vec<Ending>) {
        self.node.endings(endings);
    }

    fn unexpected(&self) -> u64 {
        self.node.unexpected()
    }
}

struct Listed(VecDeque<Flow>);

impl Workload for Listed {
    fn next_start(&mut self) -> Option<Time> {
        self.0.front().map(|flow| flow.start)
    }

    fn next_flow(&mut self) -> Option<Flow> {
        self.0.pop_front()
    }

    fn total(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }
}

/// Lets hosts exchange flows of some packets, an eighth of whose frames are forged.
#[track_caller]
fn check<B: Bank>(table: &B) {
    let (mut completed, mut unexpected) = (0, 0);
    for seed in 0..40 {
        let plan = star(HOSTS, Queues::default()).plan().unwrap();
        let network = network(plan, seed, |around| table.endpoints(around, &[Bytes::new(9_000)]));
        let codec = network.transport().codec();
        let mut nodes = network.apart().unwrap();
        let forged = |(node, place)| -> Box<dyn Node> {
            let chance = Stream::new(seed, "forged", place);
            Box::new(Forged { node, codec: Arc::clone(&codec), chance })
        };
        nodes.nodes = nodes.nodes.into_iter().zip(0..).map(forged).collect();
        let pairs = (0..HOSTS).flat_map(|src| (1..HOSTS).map(move |by| (src, (src + by) % HOSTS)));
        let flows = pairs.map(|(src, dst)| flow(src, dst, 9_000, 0)).collect();
        let until = Time::from_ps(20_000_000_000);
        let poll = &mut |outcome: &Outcome| match outcome.messages < 20_000 {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let outcome = carry(&mut nodes, &mut Listed(flows), 12, until, poll);
        completed += outcome.completed;
        unexpected += outcome.unexpected;
    }
    // Others go on, and what makes no sense is counted.
    assert!(completed > 0 && unexpected > 0, "{completed} completed, {unexpected} unexpected");
}

#[test]
fn forged_segments_break_no_stream() {
    check(&newreno::Config::default());
    check(&cubic::Config::default());
    check(&dctcp::Config::default());
    check(&swift::Config::default());
}

#[test]
fn forged_packets_break_no_dcqcn() {
    check(&dcqcn::Config::default());
}

#[test]
fn forged_packets_break_no_homa() {
    check(&homa::Config::default());
}

#[test]
fn forged_packets_break_no_ndp() {
    check(&ndp::Config::default());
}

#[test]
fn forged_packets_break_no_rds() {
    check(&rds::Config::default());
}

#[test]
fn forged_packets_break_no_datagrams() {
    for losses in [raw::Losses::Stay, raw::Losses::Repeat, raw::Losses::Forget] {
        check(&raw::Config { losses, ..raw::Config::default() });
    }
    let mixed = mixed::Config::<cubic::Config> {
        datagram_classes: vec![rack::Class::new(0)],
        ..mixed::Config::default()
    };
    check(&mixed);
}
