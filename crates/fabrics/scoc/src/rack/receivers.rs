//! The half of flows at their destinations: what has arrived, and when.
//!
//! A destination learns of a flow by its first packet and forgets it once its last is there.

use kernel::{Bytes, Lookup, Slab};
use switching::{Line, Packet, Ticks};

use super::header::LAST;

/// A flow at its destination.
#[derive(Clone, Copy, Debug, Default)]
struct Receiving {
    /// Packets that have arrived, and their application bytes.
    arrived: u32,
    bytes: Bytes,
    /// Sums over them: until the first bit enters, from then to the first bit leaving, and on the line.
    host: u64,
    switch: u64,
    line: u64,
}

/// The end of a flow, as its destination sees it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct End {
    /// When its last bit has left the switch.
    pub at: Ticks,
    /// The node that sent it, and its number there.
    pub source: u16,
    /// As its source counts its flows.
    pub number: u32,
    /// The node that it is for.
    pub destination: u16,
    /// Its packets and their application bytes.
    pub packets: u32,
    /// Application bytes.
    pub bytes: Bytes,
    /// Sums over its packets: until the first bit enters the switch.
    pub host: u64,
    /// From then to the first bit leaving.
    pub switch: u64,
    /// On the line.
    pub line: u64,
}

/// Those of a set of nodes.
#[derive(Clone, Debug)]
pub(super) struct Receivers {
    line: Line,
    header: Bytes,
    /// Halves by destination, source and number.
    places: Lookup,
    slab: Slab<Receiving>,
    /// By node: when its line is free again. A crossbar that is faster than the lines may bring a packet
    /// while the one before it is still on the line.
    line_free: Vec<Ticks>,
    /// Packets that were not expected: dropped.
    pub(super) unexpected: u64,
}

fn key(packet: &Packet) -> [u32; 3] {
    [packet.destination.into(), packet.source.into(), packet.tag & !LAST]
}

impl Receivers {
    pub(super) fn new(line: Line, header: Bytes, nodes: usize) -> Self {
        Self {
            line,
            header,
            places: Lookup::default(),
            slab: Slab::default(),
            line_free: vec![Ticks::default(); nodes],
            unexpected: 0,
        }
    }

    /// A packet leaves the switch at `at`. Gives the end of its flow, if it was the last.
    pub(super) fn receive(&mut self, packet: &Packet, at: Ticks) -> Option<End> {
        let key = key(packet);
        let place = self.places.get(key);
        let expected = place.map_or(0, |place| self.slab[place as usize].arrived);
        if packet.sequence != expected || packet.size() <= self.header {
            self.unexpected += 1;
            return None;
        }
        let is_last = packet.tag & LAST != 0;
        let place = place.unwrap_or_else(|| self.keep(key));
        let open = &mut self.slab[place as usize];
        let on_line = self.line.send_time(packet.size());
        let free = &mut self.line_free[usize::from(packet.destination)];
        let at = at.max(*free);
        *free = at + on_line;
        open.arrived += 1;
        open.bytes += packet.size() - self.header;
        open.host += packet.entered.get().saturating_sub(packet.born.get());
        open.switch += at.get().saturating_sub(packet.entered.get());
        open.line += on_line.get();
        if is_last {
            let Receiving { arrived: packets, bytes, host, switch, line } = *open;
            let Packet { source, destination, .. } = *packet;
            let (at, number) = (at + on_line, packet.tag & !LAST);
            return Some(End {
                at,
                source,
                number,
                destination,
                packets,
                bytes,
                host,
                switch,
                line,
            });
        }
        None
    }

    /// The last bit of a flow is there: its destination forgets it.
    pub(super) fn close(&mut self, end: &End) {
        let key = [end.destination.into(), end.source.into(), end.number];
        if let Some(place) = self.places.remove(key) {
            self.slab.release(place);
        }
    }

    fn keep(&mut self, key: [u32; 3]) -> u32 {
        let place = self.slab.insert(Receiving::default());
        self.places.insert(key, place);
        place
    }

    /// Application bytes of a flow that have arrived.
    pub(super) fn bytes(&self, destination: u32, source: u32, number: u32) -> Bytes {
        let place = self.places.get([destination, source, number]);
        place.map_or(Bytes::ZERO, |place| self.slab[place as usize].bytes)
    }
}
