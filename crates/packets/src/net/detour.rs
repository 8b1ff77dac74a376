//! Valiant load balancing: each packet first goes to a host drawn at random, then to its own
//! (R2C2 §2.2.1).
//!
//! A packet's first leg begins at its NIC. It ends where the drawn host is reached, or where no way
//! leads there any more; or at its destination, if that comes first.

use kernel::Stream;
use rack::topology::{PortId, Vertex};

use super::{NONE, Net};

/// The end of a first leg, until the packet is on the next line: there it still counts as on its
/// first, where it came from.
const TURNS: u32 = NONE - 1;

/// Whether a packet that comes from another part can go first to this host, if it is one.
pub(crate) fn can_go_first(first: u32, hosts: u32) -> bool {
    first < hosts || first == TURNS || first == NONE
}

/// Where packets go first.
#[derive(Clone, Debug)]
pub(crate) struct Detours {
    hosts: u32,
    /// One stream a host.
    streams: Vec<Stream>,
    /// By packet: the host that it goes to first, [`TURNS`], or [`NONE`] on its second leg.
    first: Vec<u32>,
}

impl Detours {
    pub(super) fn new(hosts: u32, seed: u64) -> Self {
        let stream = |host| Stream::new(seed, "packets/detour", u64::from(host));
        Self { hosts, streams: (0..hosts).map(stream).collect(), first: Vec::new() }
    }

    /// A packet leaves the NIC of `host`.
    pub(super) fn begin(&mut self, index: u32, host: Vertex) {
        let drawn = self.streams[host.index()].below(u64::from(self.hosts)) as u32;
        self.put(index, drawn);
    }

    /// Where a packet goes first, in one word.
    pub(super) fn first_of(&self, index: u32) -> u32 {
        self.first.get(index as usize).copied().unwrap_or(NONE)
    }

    /// A packet has come from another part, where [`Detours::first_of`] said this of it.
    pub(super) fn put(&mut self, index: u32, first: u32) {
        if self.first.len() <= index as usize {
            self.first.resize(index as usize + 1, NONE);
        }
        self.first[index as usize] = first;
    }

    /// Whether a packet came to where it is on its first leg.
    pub(super) fn came_on_first(&self, index: u32) -> bool {
        self.first.get(index as usize).is_some_and(|&host| host != NONE)
    }

    /// Whether a packet leaves from where it is on its first leg.
    pub(super) fn leaves_on_first(&self, index: u32) -> bool {
        self.came_on_first(index) && self.first[index as usize] != TURNS
    }

    /// A packet is on a line: which leg it is on is one thing again.
    pub(super) fn launched(&mut self, index: u32) {
        if let Some(first) = self.first.get_mut(index as usize).filter(|first| **first == TURNS) {
            *first = NONE;
        }
    }

    /// Two packets change places.
    pub(super) fn exchange(&mut self, a: u32, b: u32) {
        self.first.swap(a as usize, b as usize);
    }
}

impl Net {
    /// The port by which a packet leaves `vertex`, on its way to where it goes first.
    pub(super) fn choose_detour(&mut self, index: u32, vertex: Vertex) -> Option<PortId> {
        let detours = self.detours.as_mut()?;
        if !detours.leaves_on_first(index) {
            return None;
        }
        let first = detours.first[index as usize];
        let way = self.chooser.toward(&self.tables, vertex, first);
        if way.is_none() {
            detours.first[index as usize] = TURNS;
        }
        way
    }
}
