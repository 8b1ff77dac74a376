//! What of a topology a [`Component`] means.

use super::{PortId, Tier, Topology, Vertex};
use crate::{Component, Problem};

/// What fails together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Parts {
    /// A vertex, with all its links.
    Vertex(Vertex),
    /// Links, each by one of its ends; both directions.
    Links(Vec<PortId>),
}

impl Topology {
    /// The vertices of a tier, in order.
    pub fn tier_vertices(&self, tier: Tier) -> impl Iterator<Item = Vertex> + '_ {
        (0..self.vertices()).map(Vertex::new).filter(move |&vertex| self.tier(vertex) == tier)
    }

    /// The links between two vertices, each by its end at `a`.
    pub fn links_between(&self, a: Vertex, b: Vertex) -> impl Iterator<Item = PortId> + '_ {
        self.ports_of(a).filter(move |&port| self.port(port).peer == b)
    }

    /// How many switches lie between racks.
    #[must_use]
    pub fn ethernet_switches(&self) -> u32 {
        let tunnels = self.joints.iter().filter_map(|joint| joint.tunnel);
        tunnels.map(|tunnel| tunnel.switch + 1).max().unwrap_or(0)
    }

    /// What `component` means here.
    ///
    /// # Errors
    /// If there is no such component: one problem without key.
    pub fn parts(&self, component: Component) -> Result<Parts, Problem> {
        let missing = |count: usize, what: &str| {
            let found = match count {
                0 => format!("no {what}"),
                1 => "one, number 0".to_owned(),
                count => format!("{count} {what}"),
            };
            Problem::new("", format!("there is no {component}; this network has {found}"))
        };
        let hosts = self.hosts();
        let switch = |tier: Tier, index: u32, what: &str| {
            let found = self.tier_vertices(tier).nth(index as usize);
            found.ok_or_else(|| missing(self.tier_vertices(tier).count(), what))
        };
        let link = |a: Vertex, b: Vertex, link: u32| {
            let found = self.links_between(a, b).nth(link as usize);
            let count = self.links_between(a, b).count();
            found.map(|port| Parts::Links(vec![port])).ok_or_else(|| missing(count, "such links"))
        };
        match component {
            Component::Node(node) if node.get() < hosts => Ok(Parts::Vertex(self.host(node))),
            Component::NodeLink(node) if node.get() < hosts => {
                Ok(Parts::Links(self.ports_of(self.host(node)).collect()))
            }
            Component::Node(_) | Component::NodeLink(_) => Err(missing(hosts as usize, "nodes")),
            Component::Leaf(leaf) => switch(Tier::Leaf, leaf, "leaves").map(Parts::Vertex),
            Component::Spine(spine) => switch(Tier::Spine, spine, "spines").map(Parts::Vertex),
            Component::LeafSpine { leaf, spine, link: index } => {
                let leaf = switch(Tier::Leaf, leaf, "leaves")?;
                link(leaf, switch(Tier::Spine, spine, "spines")?, index)
            }
            Component::Switch(index) if self.ethernet_switches() > 0 => {
                let tunnels =
                    self.joints.iter().filter_map(|joint| Some((joint.port, joint.tunnel?)));
                let through = tunnels.filter(|(_, tunnel)| tunnel.switch == index);
                let links: Vec<PortId> = through.map(|(port, _)| port).collect();
                let count = self.ethernet_switches() as usize;
                if links.is_empty() {
                    Err(missing(count, "switches"))
                } else {
                    Ok(Parts::Links(links))
                }
            }
            Component::Switch(index) => {
                let vertex = hosts.saturating_add(index);
                let count = (self.vertices() - hosts) as usize;
                let found = (vertex < self.vertices()).then_some(Parts::Vertex(Vertex(vertex)));
                found.ok_or_else(|| missing(count, "switches"))
            }
            Component::Group(..) => {
                let message =
                    format!("there is no {component}: this network has no such equipment");
                Err(Problem::new("", message))
            }
            Component::Link { a, b, link: index } => {
                if let Some(vertex) = [a, b].into_iter().find(|&v| v >= self.vertices()) {
                    let count = self.vertices();
                    let message =
                        format!("there is no vertex {vertex}; this network has {count}, from 0");
                    return Err(Problem::new("", message));
                }
                link(Vertex(a), Vertex(b), index)
            }
        }
    }
}
