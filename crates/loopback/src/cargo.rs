//! The bytes of flows: what the application sends, what rides with messages, what has arrived.

use std::collections::BTreeMap;

use kernel::Time;
use rack::node::{FlowName, Payload, Unit};
use rack::{Flow, NodeId};

/// Byte `at` of a flow, which no other flow has there but by chance.
fn byte(flow: u64, at: u64) -> u8 {
    let mut word = flow.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (at / 8);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((word ^ word >> 31) >> (8 * (at % 8))) as u8
}

/// The bytes of a flow from `offset` on.
fn bytes_of(flow: u64, offset: u64, count: u32) -> impl Iterator<Item = u8> {
    (offset..offset + u64::from(count)).map(move |at| byte(flow, at))
}

/// Bytes of a label.
const LABEL: usize = 24;

/// What stands before the bytes that ride with a message.
fn label(payload: Payload) -> [u8; LABEL] {
    let Payload { flow: FlowName { src, dst, number }, offset, bytes } = payload;
    let mut label = [0; LABEL];
    for (place, word) in [src.get(), dst.get(), number, bytes].into_iter().enumerate() {
        label[4 * place..4 * place + 4].copy_from_slice(&word.to_be_bytes());
    }
    label[16..].copy_from_slice(&offset.to_be_bytes());
    label
}

/// What rides with a message: which bytes, and the bytes.
pub(crate) fn unload(load: &[u8]) -> Option<(Payload, &[u8])> {
    let (label, bytes) = load.split_first_chunk::<LABEL>()?;
    let word = |place: usize| {
        let four = label[4 * place..4 * place + 4].try_into().expect("four bytes");
        u32::from_be_bytes(four)
    };
    let (src, dst) = (NodeId::new(word(0)), NodeId::new(word(1)));
    let flow = FlowName { src, dst, number: word(2) };
    let offset = u64::from_be_bytes(label[16..].try_into().expect("eight bytes"));
    Some((Payload { flow, offset, bytes: word(3) }, bytes))
}

/// All flows by name.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    by_name: BTreeMap<FlowName, Flow>,
}

impl Flows {
    /// Flows in the order in which their sources count them.
    pub(crate) fn new(flows: &[Flow]) -> Self {
        let mut counts = BTreeMap::new();
        let mut by_name = BTreeMap::new();
        for flow in flows {
            let count = counts.entry((flow.src, flow.dst)).or_insert(0);
            let name = FlowName { src: flow.src, dst: flow.dst, number: *count };
            *count += 1;
            by_name.insert(name, *flow);
        }
        Self { by_name }
    }

    pub(crate) fn get(&self, name: FlowName) -> Option<&Flow> {
        self.by_name.get(&name)
    }

    /// By name: how long it is.
    #[cfg(test)]
    pub(crate) fn sizes(&self) -> BTreeMap<FlowName, u64> {
        self.by_name.iter().map(|(&name, flow)| (name, flow.size.get())).collect()
    }

    /// Whether these are bytes that the flow has.
    fn flow_of(&self, payload: Payload) -> Option<&Flow> {
        let flow = self.get(payload.flow)?;
        let end = payload.offset.checked_add(payload.bytes.into())?;
        (payload.bytes > 0 && end <= flow.size.get()).then_some(flow)
    }

    /// What its source puts behind a message: which bytes follow, and the bytes.
    ///
    /// # Panics
    /// If the flow has no such bytes.
    pub(crate) fn load(&self, payload: Payload) -> Vec<u8> {
        let Some(flow) = self.flow_of(payload) else {
            panic!("a source sends {payload:?}, which it does not have")
        };
        let mut load = label(payload).to_vec();
        load.extend(bytes_of(flow.id.get(), payload.offset, payload.bytes));
        load
    }

    /// Whether `bytes` are those that the source of the flow sent.
    pub(crate) fn are_of(&self, payload: Payload, bytes: &[u8]) -> bool {
        let Some(flow) = self.flow_of(payload) else { return false };
        bytes_of(flow.id.get(), payload.offset, payload.bytes).eq(bytes.iter().copied())
    }
}

/// What rides with messages that a node passes on, and what has arrived there for good.
#[derive(Debug, Default)]
pub(crate) struct Cargo {
    passing: BTreeMap<Unit, Vec<u8>>,
    /// By flow: the parts that have arrived, from where to where, and when the first copy of each did. Messages
    /// are not put in an inbox in the order in which they arrive: a copy that arrives late may be there first.
    arrived: BTreeMap<FlowName, BTreeMap<(u64, u64), Time>>,
}

impl Cargo {
    /// Something has come to a node on its way.
    pub(crate) fn keep(&mut self, unit: Unit, load: &[u8]) {
        self.passing.insert(unit, load.to_vec());
    }

    /// What rides with something that a node passes on.
    pub(crate) fn get(&self, unit: Unit) -> Option<&[u8]> {
        self.passing.get(&unit).map(Vec::as_slice)
    }

    /// A part of a flow comes to its destination at an instant.
    pub(crate) fn arrives(&mut self, payload: Payload, at: Time) {
        let part = (payload.offset, payload.offset + u64::from(payload.bytes));
        let first = self.arrived.entry(payload.flow).or_default().entry(part).or_insert(at);
        *first = at.min(*first);
    }

    /// When all of a flow of `size` was there; `None` if it is not.
    pub(crate) fn whole_at(&self, flow: FlowName, size: u64) -> Option<Time> {
        let parts = self.arrived.get(&flow)?.iter();
        let mut parts: Vec<_> = parts.map(|(&part, &at)| (at, part)).collect();
        parts.sort_unstable();
        let mut joined = Joined::default();
        parts.into_iter().find_map(|(at, part)| {
            joined.add(part);
            (joined.readable() == size).then_some(at)
        })
    }
}

/// Parts of a flow, each from where to where, apart from each other.
#[derive(Debug, Default)]
struct Joined(BTreeMap<u64, u64>);

impl Joined {
    /// Joins a part with what it touches.
    fn add(&mut self, (mut from, mut to): (u64, u64)) {
        while let Some((&start, &end)) =
            self.0.range(..=to).next_back().filter(|part| *part.1 >= from)
        {
            (from, to) = (from.min(start), to.max(end));
            self.0.remove(&start);
        }
        self.0.insert(from, to);
    }

    /// Bytes from the first on without a gap.
    fn readable(&self) -> u64 {
        self.0.get(&0).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use rack::NodeId;

    use super::*;

    fn name() -> FlowName {
        FlowName { src: NodeId::new(1), dst: NodeId::new(2), number: 3 }
    }

    #[test]
    fn parts_join_whatever_their_order() {
        let mut joined = Joined::default();
        let mut adds = |from, bytes| {
            joined.add((from, from + bytes));
            joined.readable()
        };
        assert_eq!(adds(10, 5), 0);
        assert_eq!(adds(0, 4), 4);
        assert_eq!(adds(20, 5), 4);
        assert_eq!(adds(2, 6), 8);
        assert_eq!(adds(7, 20), 27);
        assert_eq!(adds(0, 1), 27);
    }

    #[test]
    fn a_flow_is_whole_with_the_first_copy_of_its_last_part_whichever_is_looked_at_first() {
        let mut cargo = Cargo::default();
        let mut arrives = |offset, at| {
            let payload = Payload { flow: name(), offset, bytes: 5 };
            cargo.arrives(payload, Time::from_ps(at));
            cargo.whole_at(name(), 15).map(Time::as_ps)
        };
        assert_eq!(arrives(10, 40), None);
        assert_eq!(arrives(0, 50), None);
        assert_eq!(arrives(5, 90), Some(90), "a copy that took long");
        assert_eq!(arrives(5, 70), Some(70), "it came before");
        assert_eq!(arrives(5, 80), Some(70));
        assert_eq!(arrives(10, 60), Some(70));
        assert_eq!(arrives(0, 45), Some(70));
    }
}
