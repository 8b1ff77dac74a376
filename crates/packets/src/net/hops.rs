//! What a switch knows of the ports among which a packet may go on.

use kernel::{Bytes, Time};
use rack::topology::{PortId, Vertex};

use super::Net;
use crate::config::Routing;
use crate::route::Group;

/// The next hops of a packet that are equally near to where it goes, two or more, with the state of the
/// switch's own ports: what a switch can know by itself.
#[derive(Clone, Copy)]
pub struct NextHops<'a> {
    net: &'a Net,
    group: Group,
    priority: u8,
}

/// One of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextHop {
    /// The port.
    pub port: PortId,
    /// What waits there, all priorities together; the packet on the line apart.
    pub waiting: Bytes,
    /// When its line has sent what is on it; an instant that has passed if there is nothing.
    pub free_at: Time,
    /// Whether packets of this priority must wait: because of a pause, or for lack of credits.
    pub is_held: bool,
    /// Credits for this priority, where links have them.
    pub credits: Option<Bytes>,
    /// Whether its link works: until routes have converged, dead ones are among the ways.
    pub is_up: bool,
}

impl NextHops<'_> {
    /// How many there are.
    #[inline]
    #[must_use]
    pub fn count(&self) -> u32 {
        self.group.len
    }

    /// Next hop `index`, in the order of ports.
    #[inline]
    #[must_use]
    pub fn get(&self, index: u32) -> NextHop {
        let port = self.net.tables.member(self.group, index);
        let out = &self.net.ports[port.index()];
        let priority = usize::from(self.priority);
        let room = self.net.credits.as_ref().map(|credits| credits.room[port.index()][priority]);
        NextHop {
            port,
            waiting: Bytes::new(out.bytes.into()),
            free_at: out.free_at,
            is_held: out.held & 1 << priority != 0,
            credits: room.map(|room| Bytes::new(room.into())),
            is_up: out.faults == 0,
        }
    }

    /// All of them.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = NextHop> + '_ {
        (0..self.count()).map(|index| self.get(index))
    }
}

impl Net {
    /// The ways of a packet on from `vertex`; `None` if there is nothing to choose: one way, or a packet
    /// that carries its route or goes by way of a host drawn for it.
    #[inline]
    pub(crate) fn ways(&self, index: u32, vertex: Vertex) -> Option<NextHops<'_>> {
        let routing = self.plan.config.routing;
        if matches!(routing, Routing::SourceRoute | Routing::Valiant) {
            return None;
        }
        let packet = self.arena.get(index);
        let (_, group) = self.tables.group(vertex, packet.dst.get());
        (group.len > 1).then_some(NextHops { net: self, group, priority: packet.priority })
    }
}
