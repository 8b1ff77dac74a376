//! Announcements whose bytes have been read, kept for the next node that hears the same.
//!
//! A cache and no more: what is not in it is read anew, and says the same. Nodes that are held together
//! hear one broadcast soon after each other.

use std::num::NonZeroU8;

use packets::Packet;
use rack::NodeId;

use crate::routing::Protocol;
use crate::view::Hint;
use crate::wire::{Allocation, Announcement, Event, Kbps, SHORT_BYTES, TREE_NONE};

/// How many announcements are kept (**our choice**: more than are under way in a rack of 512 nodes as a
/// rule, and small beside a core's cache).
const KEPT: usize = 1 << 10;
/// Bytes of an announcement with nothing behind it; there are eight more at the most.
const SHORT: u16 = SHORT_BYTES as u16;

/// An announcement as it is carried, and what it says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// Its first bytes, as packets carry them, and how many it has; none if nothing is kept here.
    words: [u64; 3],
    wire: u16,
    /// Its tree.
    pub(super) tree: u8,
    /// The digest of the links by which that was grown.
    pub(super) dead: u32,
    pub(super) said: Announcement,
    /// Where it belongs.
    pub(super) hint: Hint,
}

/// The announcements that were read last.
#[derive(Clone, Debug)]
pub(super) struct Readings {
    trees: u8,
    kept: Box<[Reading; KEPT]>,
}

impl Readings {
    /// Nothing has been read of sources with so many trees each.
    pub(super) fn new(trees: u8) -> Self {
        let said = Announcement {
            event: Event::Start,
            number: 0,
            way: 0,
            source: NodeId::default(),
            destination: NodeId::default(),
            index: 0,
            round: 0,
            allocation: Allocation {
                demand: Kbps::UNLIMITED,
                weight: NonZeroU8::MIN,
                priority: 0,
                protocol: Protocol::default(),
            },
        };
        let hint = Hint::default();
        let none = Reading { words: [0; 3], wire: 0, tree: 0, dead: 0, said, hint };
        Self { trees, kept: Box::new([none; KEPT]) }
    }

    /// Whether a source has this tree, or it stands for none.
    pub(super) fn has_tree(&self, tree: u8) -> bool {
        tree < self.trees || tree == TREE_NONE
    }

    /// Where an announcement is kept: its checksum is in the first word.
    #[inline]
    fn place(packet: &Packet) -> usize {
        let hash = packet.ack.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> (u64::BITS - KEPT.ilog2())) as usize % KEPT
    }

    /// What a packet says, if that was read before.
    #[inline]
    pub(super) fn find(&self, packet: &Packet) -> Option<usize> {
        let place = Self::place(packet);
        let reading = &self.kept[place];
        let [ack, word, behind] = reading.words;
        let is_same = (ack, word, reading.wire) == (packet.ack, packet.word, packet.wire)
            && (packet.wire == SHORT || packet.seq == behind);
        (is_same && reading.wire != 0).then_some(place)
    }

    /// Keeps what a packet says, in place of another.
    pub(super) fn keep(
        &mut self,
        packet: &Packet,
        said: Announcement,
        (tree, dead): (u8, u32),
        hint: Hint,
    ) -> usize {
        let place = Self::place(packet);
        let words = [packet.ack, packet.word, packet.seq];
        self.kept[place] = Reading { words, wire: packet.wire, tree, dead, said, hint };
        place
    }

    /// What was read.
    #[inline]
    pub(super) fn get(&mut self, place: usize) -> &mut Reading {
        &mut self.kept[place % KEPT]
    }
}
