//! Toy nodes on a ring: each part of a flow goes round until its destination has it, and is repeated until its
//! source hears so.

use rack::node::{Payload, Stands, Unit};
use rack::{Class, FlowId, NodeId};

use super::*;

const NODES: usize = 5;
const PART: u32 = 100;
/// From a node to the next.
const WIRE: Span = Span::from_ns(500);
const PATIENCE: Span = Span::from_us(20);

/// A part of a flow, or word that it has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Word {
    payload: Payload,
    is_answer: bool,
}

impl Word {
    fn encode(self) -> Vec<u8> {
        let Payload { flow, offset, bytes } = self.payload;
        let words = [flow.src.get(), flow.dst.get(), flow.number, offset as u32, bytes];
        let words = words.into_iter().chain([u32::from(self.is_answer)]);
        let mut encoded: Vec<u8> = words.flat_map(u32::to_be_bytes).collect();
        let sum = Self::checksum(&encoded);
        encoded.extend(sum.to_be_bytes());
        encoded
    }

    /// Fletcher's, which finds every single wrong bit.
    fn checksum(bytes: &[u8]) -> u32 {
        let step = |(a, b): (u32, u32), &byte: &u8| {
            let a = (a + u32::from(byte)) % 65_521;
            (a, (a + b) % 65_521)
        };
        let (a, b) = bytes.iter().fold((1, 0), step);
        b << 16 | a
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (head, sum) = bytes.split_last_chunk::<4>()?;
        if Self::checksum(head) != u32::from_be_bytes(*sum) {
            return None;
        }
        let word = |at: usize| {
            let four = head.get(4 * at..4 * at + 4)?.try_into().ok()?;
            Some(u32::from_be_bytes(four))
        };
        let flow =
            FlowName { src: NodeId::new(word(0)?), dst: NodeId::new(word(1)?), number: word(2)? };
        let payload = Payload { flow, offset: word(3)?.into(), bytes: word(4)? };
        Some(Self { payload, is_answer: word(5)? == 1 })
    }
}

fn unit(payload: Payload) -> Unit {
    let Payload { flow, offset, .. } = payload;
    let ends = u128::from(flow.src.get()) << 32 | u128::from(flow.dst.get());
    Unit(ends << 64 | u128::from(flow.number) << 32 | u128::from(offset))
}

/// A node of the ring.
struct Toy {
    place: usize,
    now: Time,
    names: BTreeMap<NodeId, u32>,
    /// What goes out, and when.
    calendar: BTreeMap<(Time, u64), Word>,
    pushed: u64,
    /// Parts that no answer has come for.
    unanswered: BTreeSet<Payload>,
    /// By flow: its size, and the parts that have come.
    come: BTreeMap<FlowName, BTreeSet<u64>>,
    sizes: BTreeMap<FlowName, u64>,
    endings: Vec<Ending>,
    unexpected: u64,
    /// Fails at this instant.
    fails_at: Time,
}

impl Toy {
    fn push(&mut self, at: Time, word: Word) {
        self.pushed += 1;
        self.calendar.insert((at, self.pushed), word);
    }
}

impl Node for Toy {
    fn next(&self) -> Time {
        self.calendar.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at)
    }

    fn offer(&mut self, flow: &Flow) {
        let number = self.names.entry(flow.dst).or_insert(0);
        let name = FlowName { src: flow.src, dst: flow.dst, number: *number };
        *number += 1;
        for offset in (0..flow.size.get()).step_by(PART as usize) {
            let bytes = PART.min((flow.size.get() - offset) as u32);
            let payload = Payload { flow: name, offset, bytes };
            self.unanswered.insert(payload);
            self.push(self.now.max(flow.start), Word { payload, is_answer: false });
        }
    }

    fn receive(&mut self, wire: u32, at: Time, bytes: &[u8]) -> Option<Unit> {
        assert_eq!(wire, 7);
        let Some(word) = Word::decode(bytes) else {
            self.unexpected += 1;
            return None;
        };
        let Word { payload, is_answer } = word;
        let end = if is_answer { payload.flow.src } else { payload.flow.dst };
        if end.index() != self.place {
            self.push(at, word);
        } else if is_answer {
            self.unanswered.remove(&payload);
        } else {
            self.push(at, Word { payload, is_answer: true });
            let come = self.come.entry(payload.flow).or_default();
            let is_new = come.insert(payload.offset);
            let come = come.len() as u64;
            let size = self.sizes[&payload.flow];
            if is_new && come == size.div_ceil(PART.into()) {
                self.endings.push(Ending { flow: payload.flow, at, failure: None });
            }
        }
        (!is_answer).then_some(unit(payload))
    }

    fn run(&mut self, until: Time, send: &mut dyn FnMut(Message<'_>)) {
        while let Some((&(at, number), &word)) = self.calendar.first_key_value() {
            if at >= until {
                break;
            }
            assert!(at < self.fails_at, "node {} fails", self.place);
            self.calendar.remove(&(at, number));
            self.now = at;
            let from = if word.is_answer { word.payload.flow.dst } else { word.payload.flow.src };
            if from.index() == self.place && !word.is_answer {
                if !self.unanswered.contains(&word.payload) {
                    continue;
                }
                self.push(at + PATIENCE, word);
            }
            send(Message {
                to: (self.place + 1) % NODES,
                wire: 7,
                at: at + WIRE,
                bytes: &word.encode(),
                unit: (!word.is_answer).then_some(unit(word.payload)),
                payload: (from.index() == self.place && !word.is_answer).then_some(word.payload),
            });
        }
    }

    fn endings(&mut self, endings: &mut Vec<Ending>) {
        endings.append(&mut self.endings);
    }

    fn unexpected(&self) -> u64 {
        self.unexpected
    }
}

fn flows() -> Vec<Flow> {
    let flow = |id: u64| Flow {
        id: FlowId::new(id),
        src: NodeId::new(id as u32 % 5),
        dst: NodeId::new((id as u32 + 1 + id as u32 / 5 % 4) % 5),
        size: kernel::Bytes::new(1 + id * 37),
        start: Time::from_ps(id * 1_000_000),
        class: Class::new(0),
    };
    (0..40).map(flow).collect()
}

fn ring(fails_at: Time) -> Nodes {
    let flows = Flows::new(&flows());
    let toy = |place| Toy {
        place,
        now: Time::ZERO,
        names: BTreeMap::new(),
        calendar: BTreeMap::new(),
        pushed: 0,
        unanswered: BTreeSet::new(),
        come: BTreeMap::new(),
        sizes: flows.sizes(),
        endings: Vec::new(),
        unexpected: 0,
        fails_at: if place == 3 { fails_at } else { Time::NEVER },
    };
    let nodes = (0..NODES).map(|place| Box::new(toy(place)) as Box<dyn Node>).collect();
    Nodes { nodes, delay: WIRE, stands: Stands::Loss, memory: None }
}

#[test]
fn every_byte_arrives_and_on_an_undisturbed_ring_nothing_is_late() {
    let flows = flows();
    let outcome = carry(ring(Time::NEVER), &flows, Config::default());
    assert_eq!(outcome.ended.len(), flows.len());
    assert_eq!((outcome.incomplete.len(), outcome.wrong, outcome.unexpected), (0, 0, 0));
    for flow in &flows {
        let hops = (flow.dst.get() + 5 - flow.src.get()) % 5;
        let expected = flow.start + WIRE * u64::from(hops);
        assert_eq!(outcome.ended[&flow.id.get()], (expected, None), "{flow:?}");
    }
}

#[test]
fn every_byte_arrives_where_messages_are_lost_damaged_and_late() {
    let flows = flows();
    let (one_in, ahead) = (10, Some(Span::from_us(3)));
    let config =
        Config { loses_one_in: one_in, damages_one_in: one_in, ahead, ..Config::default() };
    let outcome = carry(ring(Time::NEVER), &flows, config);
    assert_eq!(outcome.ended.len(), flows.len());
    assert_eq!((outcome.incomplete.len(), outcome.wrong), (0, 0));
    assert!(outcome.lost > 20 && outcome.damaged > 20, "{outcome:?}");
    assert!(outcome.unexpected > 20 && outcome.unexpected <= outcome.damaged, "{outcome:?}");
}

#[test]
fn time_is_up_for_what_never_ends() {
    let config = Config { loses_one_in: 1, limit: Span::from_us(300), ..Config::default() };
    let outcome = carry(ring(Time::NEVER), &flows(), config);
    assert!(outcome.ended.is_empty() && outcome.lost == outcome.messages, "{outcome:?}");
}

#[test]
fn the_panic_of_a_node_ends_the_run() {
    let nodes = ring(Time::from_ps(10_000_000));
    let panic = catch_unwind(AssertUnwindSafe(|| carry(nodes, &flows(), Config::default())));
    let panic = panic.map(|_| ()).expect_err("a node fails");
    assert_eq!(panic.downcast_ref::<String>().map(String::as_str), Some("node 3 fails"));
}
