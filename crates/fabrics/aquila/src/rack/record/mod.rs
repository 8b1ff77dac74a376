//! The record of chosen packets' cells ([`::rack::trace`]), of a Clique or of a part.
//!
//! The engine records packets on hosts' lines. What is between their arrival at a TiN and their way out of another is
//! recorded here: the request and the clearance of each, its data cells hop by hop, and what went on the lines that they
//! waited for. Switches see cells ([`crate::switch::record`]); whose these are, and beside whom they waited, is found
//! when all parts are put together ([`book`]).

mod book;
mod header;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use kernel::{Rate, Time};
use packets::{Chosen, Name, Packet};

use super::blueprint::Blueprint;
use super::jobs::Jobs;
use super::nic::Cores;
use super::outside::ETHERNET;
use crate::ip;
use crate::switch::Switches;
use crate::switch::record::{Key, Known, Numbers, Who};
pub(super) use book::{Ended, close};

/// The link-layer header type of captures for Aquila's cells: LINKTYPE_USER2, for private use (our choice).
pub(super) const LINK_TYPE: u16 = 149;

/// Who has a place from an instant on. Unit: ps.
#[derive(Clone, Copy, Debug)]
struct Owner {
    key: Key,
    at: u64,
    name: Name,
    /// Its place among the recorded packets, if it is one; of remote memory, that of its host's command.
    packet: Option<u32>,
    /// Of an operation on memory: which bytes of its flow it is about.
    bytes: [u64; 2],
}

/// Who has the place of another from an instant on. Unit: ps.
#[derive(Clone, Copy, Debug)]
struct Heir {
    key: Key,
    at: u64,
    of: Key,
    /// How many bytes behind the beginning.
    after: u64,
}

/// A packet on its way out of a TiN where recorded flows end.
#[derive(Clone, Copy, Debug)]
struct Left {
    tin: u16,
    /// Whether it goes out of the Ethernet port.
    is_ethernet: bool,
    /// Its line is busy with it. Unit: ps.
    line: [u64; 2],
    packet: Packet,
}

/// The record in the making.
#[derive(Clone, Debug)]
pub(super) struct Record {
    chosen: Arc<Chosen>,
    numbers: Arc<Numbers>,
    is_end: Arc<Vec<bool>>,
    rate: Rate,
    /// Packets as they came to their TiNs, and when.
    packets: Vec<(Packet, Time)>,
    /// By handle: their places in that list.
    by_handle: HashMap<u32, u32>,
    owners: Vec<Owner>,
    heirs: Vec<Heir>,
    left: Vec<Left>,
}

impl Record {
    /// Of these flows.
    pub(super) fn new(chosen: &Arc<Chosen>, blueprint: &Blueprint, rate: Rate) -> Self {
        let mut is_end = vec![false; usize::from(blueprint.shape().tins())];
        for node in chosen.ends() {
            match blueprint.addresses.get(node.index()) {
                Some(&address) => is_end[usize::from(blueprint.place_of(address).0)] = true,
                // Outside, which may be behind any.
                None => is_end.fill(true),
            }
        }
        Self {
            chosen: Arc::clone(chosen),
            numbers: Arc::new(blueprint.numbers()),
            is_end: Arc::new(is_end),
            rate,
            packets: Vec::new(),
            by_handle: HashMap::new(),
            owners: Vec::new(),
            heirs: Vec::new(),
            left: Vec::new(),
        }
    }

    /// Lets switches keep it, too.
    pub(super) fn begin(&self, switches: &mut Switches<Cores>) {
        switches.set_record(Arc::clone(&self.numbers), Arc::clone(&self.is_end));
    }

    /// A packet has come to its TiN, where it has this handle. Whether its cells are recorded.
    pub(super) fn comes(&mut self, packet: &Packet, handle: u32, now: Time) -> bool {
        self.by_handle.remove(&handle);
        let is_chosen = self.chosen.has(packet, now);
        if is_chosen {
            self.by_handle.insert(handle, self.packets.len() as u32);
            self.packets.push((*packet, now));
        }
        is_chosen
    }

    /// A host's command has come to its TiN, where it has this number. Since when its operations wait, if they are
    /// recorded.
    pub(super) fn commanded(&self, job: u32) -> Option<u64> {
        let place = *self.by_handle.get(&job)?;
        Some(self.packets[place as usize].1.as_ps())
    }

    /// Somebody has come to have places: packets of these handles, or operations of commands.
    pub(super) fn learns(
        &mut self,
        known: Vec<Known>,
        packet: impl Fn(u32) -> Packet,
        job: impl Fn(u32) -> Option<(u32, Name)>,
    ) {
        for Known { key, at, who } in known {
            let (name, handle, bytes) = match who {
                Who::Packet(handle) => (Name::of(&packet(handle)), handle, [0; 2]),
                Who::Operation { handle, offset, length } => {
                    let Some((job, name)) = job(handle) else { continue };
                    let first = Jobs::byte_of(offset);
                    (name, job, [first, first + u64::from(length)])
                }
                Who::Of(of, after) => {
                    self.heirs.push(Heir { key, at, of, after });
                    continue;
                }
            };
            let packet = self.by_handle.get(&handle).copied();
            self.owners.push(Owner { key, at, name, packet, bytes });
        }
    }

    /// A packet leaves a TiN at an instant.
    pub(super) fn leaves(&mut self, (tin, host): (u16, usize), packet: &Packet, at: Time) {
        if !self.is_end[usize::from(tin)] {
            return;
        }
        let (is_ethernet, start) = (host == ETHERNET, at.as_ps());
        let end = start + ip::line_time(self.rate, packet.wire, is_ethernet);
        self.left.push(Left { tin, is_ethernet, line: [start, end], packet: *packet });
    }
}
