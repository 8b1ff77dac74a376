//! Connections that hosts keep open: flows are messages on them.
//!
//! Models: PL2 §6.3.1 (a master thread assigns messages to connections) and what any such application has: a message
//! goes behind those that its connection carries already, and shares segments with them ([`super::cuts`]); windows,
//! round trips and time-outs are the connection's, and go on where they stood. A message goes on the connection to its
//! destination with the fewest bytes that wait to be sent, of those on the one that has not been given any for longest
//! (our choice: a pool of workers, of whom the first that is free takes the next message).
//!
//! Segments are named by a message: the first that a connection carries after it was idle is its **carrier**, until
//! the connection is idle again. The others' bytes are handed to their halves as pieces
//! ([`packets::Outbox::unpack`]).
//!
//! Simplified: in the bytes of a real stream a message says how long it is, here both ends look it up in the same
//! list. So hosts cannot be divided among several networks. If a message is given up, so are all that its connection
//! carries (RFC 9293 §3.10.7.1: a reset).

use std::ops::Range;

use kernel::{Bytes, Lookup, Ring};
use packets::{FlowKey, Marks, Outbox, Packet};
use rack::NodeId;

use super::cuts::Cuts;
use crate::kinds;

/// In place of a connection: none.
const NONE: u32 = u32::MAX;
/// In a [`Lookup`] by pair of hosts.
const PAIR: u32 = 0;

/// A message that is not acknowledged as a whole.
#[derive(Clone, Copy, Debug, Default)]
struct Message {
    /// Its half at the source.
    key: FlowKey,
    /// Where it ends in the stream.
    end: u64,
}

/// What gives segments their name.
#[derive(Clone, Copy, Debug)]
struct Carrier {
    key: FlowKey,
    /// Its number, which packets carry.
    number: u32,
    /// Its half at the destination, once something has come there.
    receiver: Option<FlowKey>,
}

/// A connection.
#[derive(Clone, Debug, Default)]
struct Connection {
    carrier: Option<Carrier>,
    /// In order.
    messages: Ring<Message>,
    /// Of these, how many the destination has read.
    read_messages: usize,
    /// How far the destination has read.
    read: u64,
    /// Which message of all was its last.
    last: u64,
}

/// All connections of a network, which has so many between each two hosts.
#[derive(Clone, Debug)]
pub(super) struct Connections {
    per_pair: u32,
    /// The first connection from one host to another, once there is one.
    of_pair: Lookup,
    list: Vec<Connection>,
    /// Messages so far.
    count: u64,
    /// By half, at sources and at destinations: its connection.
    of: [Vec<u32>; 2],
}

impl Connections {
    pub(super) fn new(per_pair: u32) -> Self {
        let (of_pair, list, count, of) = Default::default();
        Self { per_pair, of_pair, list, count, of }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    fn note(&mut self, key: FlowKey, connection: usize) {
        let list = &mut self.of[usize::from(key.is_receivers())];
        if list.len() <= key.index() {
            list.resize(key.index() + 1, NONE);
        }
        list[key.index()] = connection as u32;
    }

    /// The connection of a half.
    #[inline]
    pub(super) fn of(&self, key: FlowKey) -> usize {
        self.of[usize::from(key.is_receivers())][key.index()] as usize
    }

    /// Which of those between its two hosts that is.
    pub(super) fn number_of(&self, key: FlowKey) -> u32 {
        self.of(key) as u32 % self.per_pair
    }

    /// The connections from `src` to `dst`, which there are from now on.
    pub(super) fn between(&mut self, src: NodeId, dst: NodeId) -> Range<usize> {
        let pair = [src.get(), dst.get(), PAIR];
        let first = self.of_pair.get(pair).unwrap_or_else(|| {
            let first = self.list.len() as u32;
            self.of_pair.insert(pair, first);
            self.list.resize(self.list.len() + self.per_pair as usize, Connection::default());
            first
        });
        first as usize..(first + self.per_pair) as usize
    }

    /// That of these which is to carry the next message, where so many bytes wait to be sent on each.
    pub(super) fn next(&self, among: Range<usize>, waiting: impl Fn(usize) -> u64) -> usize {
        let key = |&place: &usize| (waiting(place), self.list[place].last);
        among.min_by_key(key).expect("at least one connection between two hosts")
    }

    /// A message is appended to what a connection carries, up to the byte `end` of its stream. Gives the carrier's
    /// half: it is its own if nothing was under way.
    pub(super) fn append(
        &mut self,
        connection: usize,
        (key, number): (FlowKey, u32),
        end: u64,
    ) -> FlowKey {
        self.note(key, connection);
        self.count += 1;
        let Connection { carrier, messages, last, .. } = &mut self.list[connection];
        *last = self.count;
        messages.push(Message { key, end });
        carrier.get_or_insert(Carrier { key, number, receiver: None }).key
    }

    /// The first packet of a flow of this number has come: its half at the destination opens.
    pub(super) fn accept(&mut self, packet: &Packet, number: u32) {
        let between = self.between(packet.src, packet.dst);
        let is_of = |carrier: &Carrier| carrier.number == number;
        let carried = between
            .clone()
            .find(|&connection| self.list[connection].carrier.as_ref().is_some_and(is_of));
        match (carried, packet.kind) {
            (_, kinds::PIECE) => self.note(packet.flow, packet.seq as usize),
            (Some(connection), _) => {
                self.note(packet.flow, connection);
                let carrier = self.list[connection].carrier.as_mut().expect("it was found");
                carrier.receiver = Some(packet.flow);
            }
            // Its sender has given it up since.
            (None, _) => self.note(packet.flow, NONE as usize),
        }
    }

    /// The half at the source of what a connection carries, if it carries something.
    pub(super) fn carrier(&self, place: usize) -> Option<FlowKey> {
        self.list.get(place)?.carrier.map(|carrier| carrier.key)
    }

    /// Whether a half carries segments.
    #[inline]
    pub(super) fn is_carrier(&self, key: FlowKey) -> bool {
        let Some(connection) = self.list.get(self.of(key)) else { return false };
        connection.carrier.as_ref().is_some_and(|carrier| match key.is_receivers() {
            true => carrier.receiver == Some(key),
            false => carrier.key == key,
        })
    }

    /// What is carried can be read as far as the byte `to`; `packet` has made it so.
    pub(super) fn read(&mut self, to: u64, packet: &Packet, out: &mut Outbox) {
        let place = self.of(packet.flow);
        let Connection { carrier, messages, read_messages, read, .. } = &mut self.list[place];
        while *read < to {
            let message = *messages.get(*read_messages).expect("all bytes are some message's");
            let from = std::mem::replace(read, message.end.min(to));
            let is_whole = *read == message.end;
            *read_messages += usize::from(is_whole);
            if carrier.is_some_and(|carrier| carrier.key == message.key) {
                out.delivered(packet.flow, Bytes::new(*read - from));
                if is_whole {
                    out.complete(packet.flow);
                }
                continue;
            }
            unpack(packet, (place, message.key), (from..*read, is_whole), out);
        }
    }

    /// Everything up to the byte `to` of a stream is acknowledged: the messages that end there are done with.
    pub(super) fn acknowledged(&mut self, place: usize, to: u64, out: &mut Outbox) {
        let connection = &mut self.list[place];
        let carrier = connection.carrier.map(|carrier| carrier.key);
        while connection.messages.front().is_some_and(|message| message.end <= to) {
            let message = connection.messages.pop().expect("there is one");
            connection.read_messages -= 1;
            if Some(message.key) != carrier {
                out.close(message.key);
            }
        }
    }

    /// A connection is idle: its carrier has nothing left to do, at both of its ends.
    pub(super) fn rest(&mut self, place: usize, out: &mut Outbox) {
        let connection = &mut self.list[place];
        debug_assert!(connection.messages.is_empty(), "{connection:?} is idle");
        let Some(Carrier { key, receiver, .. }) = connection.carrier.take() else { return };
        out.close(key);
        receiver.into_iter().for_each(|half| out.close(half));
    }

    /// A half is given up. Gives the connection if that is broken with it, which is then as if it had carried
    /// nothing yet; its other messages are given up.
    pub(super) fn abandon(&mut self, key: FlowKey, out: &mut Outbox) -> Option<usize> {
        let place = self.of(key);
        self.note(key, NONE as usize);
        let connection = self.list.get_mut(place)?;
        if key.is_receivers() {
            // Its source finds out by itself.
            let carrier = connection.carrier.as_mut().filter(|c| c.receiver == Some(key));
            carrier.into_iter().for_each(|carrier| carrier.receiver = None);
            return None;
        }
        let Connection { carrier, messages, .. } = std::mem::take(connection);
        for message in messages.iter().filter(|message| message.key != key) {
            self.note(message.key, NONE as usize);
            out.give_up(message.key);
        }
        if let Some(Carrier { key: half, receiver, .. }) = carrier {
            let is_listed = half == key || messages.iter().any(|message| message.key == half);
            if !is_listed {
                // All of its own has been acknowledged.
                self.note(half, NONE as usize);
                out.close(half);
            }
            receiver.into_iter().for_each(|half| self.note(half, NONE as usize));
        }
        Some(place)
    }

    /// What must hold of a connection whose stream has these cuts.
    pub(super) fn check(&self, place: usize, cuts: &Cuts) -> Result<(), String> {
        let connection = &self.list[place];
        let Connection { carrier, messages, read_messages, read, .. } = connection;
        let written = messages.iter().last().map_or(cuts.written(), |message| message.end);
        let is_sound = written == cuts.written()
            && *read <= written
            && *read_messages <= messages.len()
            && (carrier.is_some() || messages.is_empty());
        if is_sound { Ok(()) } else { Err(format!("{connection:?} with {cuts:?}")) }
    }
}

/// Hands bytes of a message, which came in a segment, to its half at the destination.
fn unpack(
    packet: &Packet,
    (place, key): (usize, FlowKey),
    (bytes, is_whole): (Range<u64>, bool),
    out: &mut Outbox,
) {
    let mut left = bytes.end - bytes.start;
    while left > 0 {
        // What waited for a gap to be filled may be more than a packet can hold.
        let payload = left.min(u16::MAX.into());
        left -= payload;
        out.unpack(Packet {
            kind: kinds::PIECE,
            flow: key,
            src: packet.src,
            dst: packet.dst,
            stamp: packet.stamp,
            seq: place as u64,
            payload: payload as u16,
            marks: if is_whole && left == 0 { Marks::LAST } else { Marks::empty() },
            ..Packet::default()
        });
    }
}
