//! The halves of flows: one at the source, one at the destination, each with a place of its own.
//!
//! What travels between the two is the flow's **number**: flows from one host to another are counted by
//! their source. A packet names its flow by source, destination and number; a host finds its half by
//! that. The destination learns of a flow from the first packet of it that comes, and what it has
//! finished with it knows by number alone: all below a bound, and those above the bound one by one.
//! Numbers are never used twice, so a packet that is late finds no half but its own.

use kernel::{Bytes, Lookup, Time};
use rack::NodeId;

use crate::packet::{FlowKey, Packet};

/// In place of a half's place: the destination has closed the flow.
const CLOSED: u32 = u32::MAX - 1;
/// In place of a flow's number, for what is kept by pair of hosts.
const PAIR: u32 = u32::MAX;

/// How a flow is named between its two hosts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Name {
    /// Its source.
    pub src: NodeId,
    /// Its destination.
    pub dst: NodeId,
    /// Which of the flows between the two, as its source counts them.
    pub number: u32,
}

impl Name {
    #[inline]
    pub(crate) fn words(self) -> [u32; 3] {
        [self.src.get(), self.dst.get(), self.number]
    }

    #[inline]
    fn pair(self) -> [u32; 3] {
        [self.src.get(), self.dst.get(), PAIR]
    }

    /// The flow of a packet on its way.
    #[inline]
    #[must_use]
    pub fn of(packet: &Packet) -> Self {
        let (from, to) = (packet.src, packet.dst);
        let (src, dst) = if packet.goes_to_source() { (to, from) } else { (from, to) };
        Self { src, dst, number: packet.flow.place() }
    }
}

/// A flow at its source.
#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    name: Name,
    is_open: bool,
    /// Application bytes of which it has said that they were handed over, where its transport does.
    delivered: Bytes,
}

/// A flow at its destination.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receiver {
    pub(crate) name: Name,
    is_open: bool,
    /// Whether all of it is readable.
    pub(crate) is_complete: bool,
    /// Application bytes handed over.
    pub(crate) delivered: Bytes,
    pub(crate) journey: Journey,
}

/// Where the time of a flow's data packets went: sums over those that arrived whole before the flow was
/// complete.
#[derive(Clone, Copy, Debug, Default)]
pub struct Journey {
    pub(crate) count: u64,
    /// When their first bits were sent and their last received, in picoseconds.
    pub(crate) sent: u128,
    pub(crate) received: u128,
    /// Their bytes on the wire.
    pub(crate) wire: u64,
}

impl Journey {
    /// A packet sent at `sent` has arrived.
    #[inline]
    pub(crate) fn note(&mut self, sent: Time, now: Time, wire: u16) {
        self.count += 1;
        self.sent += u128::from(sent.as_ps());
        self.received += u128::from(now.as_ps());
        self.wire += u64::from(wire);
    }
}

/// What a packet finds at its host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// The half that it is for.
    Half(FlowKey),
    /// Nothing, at a destination: the flow is new to it.
    New,
    /// Nothing: the flow is closed here.
    Closed,
}

/// The halves of the flows of some hosts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Halves {
    senders: Vec<Sender>,
    free_senders: Vec<u32>,
    sender_of: Lookup,
    receivers: Vec<Receiver>,
    free_receivers: Vec<u32>,
    /// The place of an open receiver, or [`CLOSED`].
    receiver_of: Lookup,
    /// By pair, at the source: the number of the next flow.
    next: Lookup,
    /// By pair, at the destination: all flows below it are closed.
    closed_below: Lookup,
    /// Flows that their destination has closed although it has not all of them.
    broken_off: Lookup,
}

impl Halves {
    /// Opens a flow at its source.
    pub(crate) fn open_sender(&mut self, src: NodeId, dst: NodeId) -> (FlowKey, Name) {
        let mut name = Name { src, dst, number: 0 };
        name.number = self.next.get(name.pair()).unwrap_or(0);
        self.next.insert(name.pair(), name.number + 1);
        let place = place_in(&mut self.senders, &mut self.free_senders);
        self.senders[place as usize] = Sender { name, is_open: true, delivered: Bytes::ZERO };
        self.sender_of.insert(name.words(), place);
        (FlowKey::new(place), name)
    }

    /// Opens a flow at its destination, which has found it to be new.
    pub(crate) fn open_receiver(&mut self, name: Name) -> FlowKey {
        let place = place_in(&mut self.receivers, &mut self.free_receivers);
        self.receivers[place as usize] = Receiver { name, is_open: true, ..Receiver::default() };
        self.receiver_of.insert(name.words(), place);
        FlowKey::receivers(place)
    }

    /// The half that a packet is for, at the host that it has reached.
    #[inline]
    pub(crate) fn find(&self, packet: &Packet) -> Found {
        let name = Name::of(packet);
        if packet.goes_to_source() {
            let place = self.sender_of.get(name.words());
            return place.map_or(Found::Closed, |place| Found::Half(FlowKey::new(place)));
        }
        match self.receiver_of.get(name.words()) {
            Some(CLOSED) => Found::Closed,
            Some(place) => Found::Half(FlowKey::receivers(place)),
            None if self.closed_below(name) > name.number => Found::Closed,
            None => Found::New,
        }
    }

    /// Asks for what a packet will find.
    #[inline]
    pub(crate) fn prefetch(&self, packet: &Packet) {
        let name = Name::of(packet);
        let table = if packet.goes_to_source() { &self.sender_of } else { &self.receiver_of };
        table.prefetch(name.words());
    }

    /// All places are below it, senders' and receivers'.
    pub(crate) fn places(&self) -> usize {
        self.senders.len().max(self.receivers.len())
    }

    /// How a packet that a half of this host sends names its flow on its way.
    #[inline]
    pub(crate) fn label(&self, key: FlowKey) -> FlowKey {
        key.at(self.name(key).number)
    }

    /// The flow of a half.
    #[inline]
    pub(crate) fn name(&self, key: FlowKey) -> Name {
        match key.is_receivers() {
            true => self.receivers[key.index()].name,
            false => self.senders[key.index()].name,
        }
    }

    /// The host of a half.
    #[inline]
    pub(crate) fn host(&self, key: FlowKey) -> NodeId {
        let name = self.name(key);
        if key.is_receivers() { name.dst } else { name.src }
    }

    /// A receiver.
    #[inline]
    pub(crate) fn receiver(&self, key: FlowKey) -> &Receiver {
        debug_assert!(key.is_receivers(), "{key:?} sends");
        &self.receivers[key.index()]
    }

    #[inline]
    pub(crate) fn receiver_mut(&mut self, key: FlowKey) -> &mut Receiver {
        debug_assert!(key.is_receivers(), "{key:?} sends");
        &mut self.receivers[key.index()]
    }

    /// Application bytes handed over, as a half knows of them.
    #[inline]
    pub(crate) fn delivered(&self, key: FlowKey) -> Bytes {
        match key.is_receivers() {
            true => self.receivers[key.index()].delivered,
            false => self.senders[key.index()].delivered,
        }
    }

    /// More of them.
    #[inline]
    pub(crate) fn deliver(&mut self, key: FlowKey, bytes: Bytes) {
        match key.is_receivers() {
            true => self.receivers[key.index()].delivered += bytes,
            false => self.senders[key.index()].delivered += bytes,
        }
    }

    /// The open sender of a flow.
    pub(crate) fn sender_named(&self, name: Name) -> Option<FlowKey> {
        self.sender_of.get(name.words()).map(FlowKey::new)
    }

    /// The open receiver of a flow.
    pub(crate) fn receiver_named(&self, name: Name) -> Option<FlowKey> {
        let place = self.receiver_of.get(name.words()).filter(|&place| place != CLOSED);
        place.map(FlowKey::receivers)
    }

    /// The halves that are open, senders first, in order of place.
    pub(crate) fn open(&self) -> impl Iterator<Item = (FlowKey, Name)> + '_ {
        let senders = (0..).map(FlowKey::new).zip(&self.senders);
        let senders = senders.filter(|(_, half)| half.is_open).map(|(key, half)| (key, half.name));
        let receivers = (0..).map(FlowKey::receivers).zip(&self.receivers);
        let receivers = receivers.filter(|(_, half)| half.is_open);
        senders.chain(receivers.map(|(key, half)| (key, half.name)))
    }

    /// Whether a half is open.
    pub(crate) fn is_open(&self, key: FlowKey) -> bool {
        match key.is_receivers() {
            true => self.receivers[key.index()].is_open,
            false => self.senders[key.index()].is_open,
        }
    }

    /// Closes an open half.
    pub(crate) fn close(&mut self, key: FlowKey) {
        if !key.is_receivers() {
            let sender = &mut self.senders[key.index()];
            assert!(std::mem::take(&mut sender.is_open), "{key:?} is closed twice");
            self.sender_of.remove(sender.name.words());
            return self.free_senders.push(key.place());
        }
        let receiver = &mut self.receivers[key.index()];
        assert!(std::mem::take(&mut receiver.is_open), "{key:?} is closed twice");
        let name = receiver.name;
        self.free_receivers.push(key.place());
        self.never_again(name);
    }

    /// A destination is to take no more packets of a flow that is not open there.
    fn never_again(&mut self, name: Name) {
        let mut bound = Name { number: self.closed_below(name), ..name };
        if name.number < bound.number {
            return;
        }
        self.receiver_of.insert(name.words(), CLOSED);
        if name.number > bound.number {
            return;
        }
        while self.receiver_of.get(bound.words()) == Some(CLOSED) {
            self.receiver_of.remove(bound.words());
            bound.number += 1;
        }
        self.closed_below.insert(name.pair(), bound.number);
    }

    /// A destination closes a flow of which nothing has come: it answers no packet of it.
    pub(crate) fn break_off(&mut self, key: FlowKey) {
        if key.is_receivers() {
            self.broken_off.insert(self.receiver(key).name.words(), 1);
        }
        self.close(key);
    }

    /// Whether a packet is for a destination that has broken its flow off.
    pub(crate) fn is_broken_off(&self, packet: &Packet) -> bool {
        !packet.goes_to_source() && self.broken_off.get(Name::of(packet).words()).is_some()
    }

    fn closed_below(&self, name: Name) -> u32 {
        self.closed_below.get(name.pair()).unwrap_or(0)
    }
}

/// A place in `list` that is not in use.
fn place_in<T: Default>(list: &mut Vec<T>, free: &mut Vec<u32>) -> u32 {
    free.pop().unwrap_or_else(|| {
        list.push(T::default());
        u32::try_from(list.len() - 1).expect("fewer than 2^32 open flows")
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::packet::Marks;

    fn name(src: u32, dst: u32, number: u32) -> Name {
        Name { src: NodeId::new(src), dst: NodeId::new(dst), number }
    }

    fn packet(flow: Name, is_reverse: bool) -> Packet {
        let Name { src, dst, number } = flow;
        match is_reverse {
            false => Packet { flow: FlowKey::new(number), src, dst, ..Packet::default() },
            true => {
                Packet { flow: FlowKey::receivers(number), src: dst, dst: src, ..Packet::default() }
            }
        }
    }

    #[test]
    fn a_returned_packet_finds_its_sender() {
        let mut halves = Halves::default();
        let (key, name) = halves.open_sender(NodeId::new(4), NodeId::new(2));
        let sent = packet(name, false);
        assert_eq!(halves.find(&sent), Found::New);
        let back =
            Packet { src: sent.dst, dst: sent.src, marks: Marks::RETURNED, ..packet(name, false) };
        assert_eq!(halves.find(&back), Found::Half(key));
    }

    proptest! {
        /// Flows of two pairs are opened and closed in any order: each packet finds the half that a map
        /// would find, and a flow that is closed stays closed.
        #[test]
        fn packets_find_their_own_half(steps in prop::collection::vec((0u8..4, 0u32..2, 0usize..8), 1..200)) {
            let mut halves = Halves::default();
            // By pair and number: sender's key; receiver's key if it was ever opened, and whether it is.
            let mut senders: BTreeMap<(u32, u32), Option<FlowKey>> = BTreeMap::new();
            let mut receivers: BTreeMap<(u32, u32), (FlowKey, bool)> = BTreeMap::new();
            for (step, pair, which) in steps {
                let nth = |count: usize| (which < count).then_some(which);
                match step {
                    0 => {
                        let (key, name) = halves.open_sender(NodeId::new(7), NodeId::new(pair));
                        let count = senders.keys().filter(|&&(p, _)| p == pair).count() as u32;
                        prop_assert_eq!(name.number, count);
                        senders.insert((pair, name.number), Some(key));
                    }
                    1 => {
                        let open: Vec<_> =
                            senders.iter().filter_map(|(id, key)| key.map(|key| (*id, key))).collect();
                        let Some(at) = nth(open.len()) else { continue };
                        halves.close(open[at].1);
                        senders.insert(open[at].0, None);
                    }
                    2 => {
                        let new: Vec<_> =
                            senders.keys().filter(|id| !receivers.contains_key(id)).copied().collect();
                        let Some(at) = nth(new.len()) else { continue };
                        let key = halves.open_receiver(name(7, new[at].0, new[at].1));
                        receivers.insert(new[at], (key, true));
                    }
                    _ => {
                        let open: Vec<_> = receivers.iter_mut().filter(|(_, (_, open))| *open).collect();
                        let Some(at) = nth(open.len()) else { continue };
                        for (place, (_, (key, is_open))) in open.into_iter().enumerate() {
                            if place == at {
                                halves.close(*key);
                                *is_open = false;
                            }
                        }
                    }
                }
                for (&(pair, number), sender) in &senders {
                    let flow = name(7, pair, number);
                    let found = halves.find(&packet(flow, true));
                    prop_assert_eq!(found, sender.map_or(Found::Closed, Found::Half));
                    let expected = match receivers.get(&(pair, number)) {
                        None => Found::New,
                        Some(&(key, true)) => Found::Half(key),
                        Some((_, false)) => Found::Closed,
                    };
                    prop_assert_eq!(halves.find(&packet(flow, false)), expected);
                }
                // What is closed costs nothing once all before it is closed too.
                let open = receivers.values().filter(|(_, open)| *open).count();
                let closed_above = receivers.iter().filter(|((pair, number), (_, open))| {
                    let before = |n| receivers.get(&(*pair, n)).is_some_and(|(_, open)| !open);
                    !open && !(0..*number).all(before)
                });
                prop_assert_eq!(halves.receiver_of.len(), open + closed_above.count());
            }
        }
    }
}
