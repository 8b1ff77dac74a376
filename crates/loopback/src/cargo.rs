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

    /// The flow that `bytes` are of, if they are those that its source sent.
    pub(crate) fn find(&self, payload: Payload, bytes: &[u8]) -> Option<&Flow> {
        let flow = self.flow_of(payload)?;
        let sent = bytes_of(flow.id.get(), payload.offset, payload.bytes);
        sent.eq(bytes.iter().copied()).then_some(flow)
    }
}

/// What rides with messages that a node passes on, and what has arrived there for good.
#[derive(Debug, Default)]
pub(crate) struct Cargo {
    passing: BTreeMap<Unit, Vec<u8>>,
    /// By flow: the parts that have arrived, from where to where, apart from each other.
    arrived: BTreeMap<FlowName, BTreeMap<u64, u64>>,
    /// When the last bytes of a flow came that were missing.
    whole: BTreeMap<FlowName, Time>,
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

    /// A part of a flow of `size` has come to its destination at an instant.
    pub(crate) fn arrives(&mut self, payload: Payload, size: u64, at: Time) {
        self.join(payload);
        if self.readable(payload.flow) == size {
            self.whole.entry(payload.flow).or_insert(at);
        }
    }

    /// When all of a flow was there; `None` if it is not.
    pub(crate) fn whole_at(&self, flow: FlowName) -> Option<Time> {
        self.whole.get(&flow).copied()
    }

    fn join(&mut self, payload: Payload) {
        let parts = self.arrived.entry(payload.flow).or_default();
        let (mut from, mut to) = (payload.offset, payload.offset + u64::from(payload.bytes));
        // Joined with what it touches.
        while let Some((&start, &end)) =
            parts.range(..=to).next_back().filter(|part| *part.1 >= from)
        {
            (from, to) = (from.min(start), to.max(end));
            parts.remove(&start);
        }
        parts.insert(from, to);
    }

    /// Bytes of a flow that have arrived, from the first on without a gap.
    fn readable(&self, flow: FlowName) -> u64 {
        self.arrived.get(&flow).and_then(|parts| parts.get(&0)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use rack::NodeId;

    use super::*;

    #[test]
    fn parts_join_whatever_their_order() {
        let flow = FlowName { src: NodeId::new(1), dst: NodeId::new(2), number: 3 };
        let mut cargo = Cargo::default();
        let mut arrives = |offset, bytes| {
            let at = Time::from_ps(offset);
            cargo.arrives(Payload { flow, offset, bytes }, 27, at);
            assert_eq!(cargo.whole_at(flow).is_some(), cargo.readable(flow) == 27);
            cargo.readable(flow)
        };
        assert_eq!(arrives(10, 5), 0);
        assert_eq!(arrives(0, 4), 4);
        assert_eq!(arrives(20, 5), 4);
        assert_eq!(arrives(2, 6), 8);
        assert_eq!(arrives(7, 20), 27);
        assert_eq!(arrives(0, 1), 27);
        assert_eq!(
            cargo.whole_at(flow),
            Some(Time::from_ps(7)),
            "what comes again is not the last"
        );
    }
}
