//! What passes between nodes and the switch: packets, offers of packets and the answers to them.

use kernel::{Bytes, Histogram};
use switching::{Packet, Switch};

use super::header::{decode, encode};
use super::hosts::Uplink;

/// The lines of all nodes.
#[derive(Clone, Debug)]
pub(super) struct Link {
    nodes: u32,
    /// Every message goes through its bytes.
    pub(super) uses_bytes: bool,
    /// What could not be decoded.
    pub(super) malformed: u64,
}

impl Link {
    pub(super) fn new(nodes: u32) -> Self {
        Self { nodes, uses_bytes: false, malformed: 0 }
    }

    /// A packet as its receiver decodes it.
    #[cold]
    fn through_bytes(&mut self, packet: &Packet) -> Option<Packet> {
        let there = decode(&encode(packet), self.nodes);
        self.malformed += u64::from(there.is_none());
        there
    }

    /// The way into a switch.
    pub(super) fn to<'a, S: Switch>(
        &'a mut self,
        switch: &'a mut S,
        counted: &'a mut Counted,
    ) -> Into<'a, S> {
        Into { link: self, switch, counted }
    }

    /// What a node gets of a packet that leaves: the packet itself, or what it reads of its bytes, `there`.
    #[inline]
    pub(super) fn deliver<'a>(
        &mut self,
        packet: &'a Packet,
        there: &'a mut Packet,
    ) -> Option<&'a Packet> {
        if self.uses_bytes {
            *there = self.through_bytes(packet)?;
            return Some(there);
        }
        Some(packet)
    }
}

/// The way into a switch, which answers each offer at once.
pub(super) struct Into<'a, S> {
    link: &'a mut Link,
    switch: &'a mut S,
    counted: &'a mut Counted,
}

impl<S: Switch> Uplink for Into<'_, S> {
    #[inline]
    fn has_room(&mut self, packet: &Packet) -> bool {
        // A node that waits asks in every cycle.
        if !self.link.uses_bytes {
            return self.switch.has_room(packet);
        }
        let offered = self.link.through_bytes(packet);
        offered.is_some_and(|offered| self.switch.has_room(&offered))
    }

    fn has_room_by_output(&self) -> bool {
        self.switch.has_room_by_output()
    }

    #[inline]
    fn send(&mut self, packet: Packet) {
        let packet = match self.link.uses_bytes {
            true => self.link.through_bytes(&packet),
            false => Some(packet),
        };
        if let Some(packet) = packet {
            self.counted.entered(&packet);
            self.switch.admit(packet);
        }
    }
}

/// What one input has in the switch.
#[derive(Clone, Copy, Debug, Default)]
struct Inside {
    packets: u32,
    bytes: Bytes,
}

/// What is counted of packets in the switch.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    inside: Vec<Inside>,
    /// What a packet found of its input in the switch, in bytes.
    pub(super) found: Histogram,
    /// The most of one input.
    pub(super) packets_max: u32,
    pub(super) bytes_max: Bytes,
    /// The most packets of one input since the last sample.
    peak: u32,
    pub(super) admitted: u64,
}

impl Counted {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            inside: vec![Inside::default(); nodes],
            found: Histogram::new(),
            packets_max: 0,
            bytes_max: Bytes::ZERO,
            peak: 0,
            admitted: 0,
        }
    }

    #[inline]
    fn entered(&mut self, packet: &Packet) {
        let input = &mut self.inside[usize::from(packet.source)];
        self.found.record(input.bytes.get());
        input.packets += 1;
        input.bytes += packet.size();
        self.peak = self.peak.max(input.packets);
        self.packets_max = self.packets_max.max(input.packets);
        self.bytes_max = self.bytes_max.max(input.bytes);
        self.admitted += 1;
    }

    #[inline]
    pub(super) fn left(&mut self, packet: &Packet) {
        let input = &mut self.inside[usize::from(packet.source)];
        input.packets -= 1;
        input.bytes -= packet.size();
    }

    /// The most packets of one input since the last call.
    pub(super) fn take_peak(&mut self) -> u32 {
        let now = self.inside.iter().map(|input| input.packets).max().unwrap_or(0);
        std::mem::replace(&mut self.peak, now)
    }
}
