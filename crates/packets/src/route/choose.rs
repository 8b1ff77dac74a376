//! Which of the next hops a packet takes.

use kernel::Stream;
use rack::topology::{PortId, Topology, Vertex};

use super::hash::{FlowHash, choice};
use super::tables::{Group, Tables};
use crate::config::Routing;
use crate::packet::Packet;

/// A switch's random order of the next hops of one group, and how far it has come.
#[derive(Clone, Debug, Default)]
struct Order {
    next: u32,
    places: Vec<u16>,
}

/// The state of the choice at every vertex.
#[derive(Clone, Debug)]
pub(crate) struct Chooser {
    routing: Routing,
    hash: FlowHash,
    /// One stream a vertex; none where nothing is drawn.
    streams: Vec<Stream>,
    /// By vertex and group, where permutations are.
    orders: Vec<Vec<Order>>,
    /// By vertex, and one more: its first port, where packets carry routes.
    first_ports: Vec<u32>,
    /// Whether there are hosts with a single link, where packets carry routes.
    has_leaves: bool,
}

impl Chooser {
    pub(crate) fn new(routing: Routing, hosts: u32, vertices: u32, seed: u64) -> Self {
        let draws =
            matches!(routing, Routing::RandomSpray | Routing::PermutationSpray | Routing::Valiant);
        let count = if draws { vertices } else { 0 };
        let stream = |vertex| Stream::new(seed, "packets/spray", u64::from(vertex));
        let orders = vec![Vec::new(); vertices as usize];
        Self {
            routing,
            hash: FlowHash::new(hosts),
            streams: (0..count).map(stream).collect(),
            orders,
            first_ports: Vec::new(),
            has_leaves: false,
        }
    }

    /// Lets packets follow the routes that they carry, in this topology.
    pub(crate) fn with_routes(mut self, topology: &Topology) -> Self {
        if self.routing == Routing::SourceRoute {
            let degrees =
                (0..topology.vertices()).map(|vertex| topology.degree(Vertex::new(vertex)));
            let mut end = 0;
            let mut hosts = (0..topology.hosts()).map(Vertex::new);
            self.has_leaves = hosts.any(|host| topology.degree(host) == 1);
            self.first_ports = std::iter::once(0)
                .chain(degrees.map(|degree| {
                    end += degree;
                    end
                }))
                .collect();
        }
        self
    }

    /// Forgets orders of next hops that have changed.
    pub(crate) fn routes_changed(&mut self) {
        self.orders.iter_mut().for_each(Vec::clear);
    }

    /// The port by which `packet` leaves `vertex`; `None`: no way leads to its destination.
    #[inline]
    pub(crate) fn choose(
        &mut self,
        tables: &Tables,
        vertex: Vertex,
        packet: &Packet,
    ) -> Option<PortId> {
        match self.routing {
            Routing::SourceRoute => {
                return self.follow_route(vertex, packet, packet.hops.into());
            }
            Routing::Valiant => return self.toward(tables, vertex, packet.dst.get()),
            _ => {}
        }
        let (number, group) = tables.group(vertex, packet.dst.get());
        let len = group.len;
        if len == 0 {
            return None;
        }
        let index = match self.routing {
            // Also where there is one: quicker than a mispredicted branch.
            Routing::Ecmp => choice(self.hash.of(packet), vertex.get(), len),
            _ if len == 1 => 0,
            Routing::RandomSpray => self.streams[vertex.index()].below(u64::from(len)) as u32,
            Routing::PermutationSpray => self.next_of_order(tables, vertex, number, group),
            Routing::SourcePath => digit(u32::from(packet.path), group),
            Routing::SourceRoute | Routing::Valiant => unreachable!("followed above"),
        };
        Some(tables.member(group, index))
    }

    /// A port at random of those that lead from `vertex` to a host; `None` if none does, or if that is
    /// the host.
    pub(crate) fn toward(&mut self, tables: &Tables, vertex: Vertex, host: u32) -> Option<PortId> {
        let group = tables.group(vertex, host).1;
        let stream = &mut self.streams[vertex.index()];
        (group.len > 0).then(|| tables.member(group, stream.below(u64::from(group.len)) as u32))
    }

    /// The port by which `packet` will leave `vertex`, to which it is on its way: what
    /// [`Chooser::choose`] will say then, where the choice draws nothing.
    #[inline]
    pub(crate) fn choose_ahead(
        &mut self,
        tables: &Tables,
        vertex: Vertex,
        packet: &Packet,
    ) -> Option<PortId> {
        if self.routing == Routing::SourceRoute {
            // The hop under way is counted when the packet is there.
            return self.follow_route(vertex, packet, u32::from(packet.hops) + 1);
        }
        self.choose(tables, vertex, packet)
    }

    /// Asks for what the choice will look at, ahead of its use.
    #[inline]
    pub(crate) fn prefetch(&self, tables: &Tables, vertex: Vertex, packet: &Packet) {
        // A route is in its packet.
        if self.routing != Routing::SourceRoute {
            tables.prefetch(vertex, packet.dst.get());
        }
    }

    /// The port that the packet's route names as its hop number `hops`, counted from 1; `None` if the
    /// vertex has no such port.
    #[inline]
    fn follow_route(&self, vertex: Vertex, packet: &Packet, hops: u32) -> Option<PortId> {
        let ports = &self.first_ports[vertex.index()..][..2];
        // That of the source is counted, too, unless its one link leaves it no choice, so that the
        // packet came by no switch of its own.
        let source = &self.first_ports[packet.src.index()..][..2];
        let is_from_leaf = self.has_leaves && source[1] - source[0] == 1;
        let hop = packet.hop_of_route((hops + u32::from(is_from_leaf)).saturating_sub(1));
        let port = ports[0] + u32::from(hop);
        (port < ports[1]).then_some(PortId::new(port))
    }

    fn next_of_order(&mut self, tables: &Tables, vertex: Vertex, number: u16, group: Group) -> u32 {
        let orders = &mut self.orders[vertex.index()];
        if orders.is_empty() {
            orders.resize(tables.groups(vertex), Order::default());
        }
        let order = &mut orders[usize::from(number)];
        if order.places.is_empty() {
            order.places = (0..group.len as u16).collect();
        }
        if order.next == 0 {
            self.streams[vertex.index()].shuffle(&mut order.places);
        }
        let place = order.places[order.next as usize];
        order.next = (order.next + 1) % group.len;
        u32::from(place)
    }
}

/// The choice that path number `path` means here: paths are numbered so that each next hop has
/// `below` of them in a row. Where next hops differ in paths, the last ones take fewer.
fn digit(path: u32, group: Group) -> u32 {
    let here = path % (group.len * group.below);
    here / group.below
}
