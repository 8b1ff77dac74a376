//! Several direct-connect racks in one: each a torus, and each two of them joined, by links of their
//! own or by tunnels through Ethernet switches.
//!
//! Models: R2C2 §6, "Inter-rack networking" (claim M55): multiple parallel connections between racks,
//! without any switch; or packets encapsulated in Ethernet frames that switches carry.
//!
//! **Our choices**, as the paper has words alone: nodes that have a link to another rack lie evenly
//! over theirs, at the same places of both racks that a link joins; a tunnel leads from one of them to
//! one other, over a port of a switch each, so that no frame waits in a switch; switches cut through.
//!
//! Leaves out: switches that choose among tunnels, and trunks between switches.

use kernel::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::torus::{HOSTS_MAX, wire_torus};
use super::{Builder, DELAY_MAX, Link, PortId, Topology, Vertex};
use crate::Problem;

/// What a frame has on the line besides a packet: preamble, header, check sequence and gap
/// (IEEE 802.3: 8, 14, 4 and 12 bytes).
pub const FRAME_OVERHEAD: Bytes = Bytes::new(8 + 14 + 4 + 12);
/// What the smallest frame takes of the line, with preamble and gap (IEEE 802.3: 64, 8 and 12 bytes).
pub const FRAME_MIN: Bytes = Bytes::new(64 + 8 + 12);
/// Most links between racks (our choice: far beyond what nodes have ports for).
const LINKS_MAX: u64 = 1 << 20;

/// Racks of nodes wired to each other, each a torus, joined into a cluster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Racks {
    /// Racks, each two of them joined. Default 2. At least 2.
    #[schemars(range(min = 2))]
    pub racks: u32,
    /// Hosts along each dimension of a rack, which is a torus. Default 8, 8, 8 (R2C2 §5.2). Each at least 2.
    pub dimensions: Vec<u32>,
    /// Rate of a link in a rack. Unit: bit/s. Default 10 Gbps (R2C2 §5.2).
    pub rate: Rate,
    /// Propagation of a link in a rack. Unit: time. Default 100 ns: a hop of R2C2 §5.2, its switch included.
    pub delay: Span,
    /// Parallel links, or tunnels, between two racks. Default 128 (our choice: as many links as cross the
    /// middle of a rack of 8 x 8 x 8, R2C2 §2.1). At least 1.
    #[schemars(range(min = 1))]
    pub links: u32,
    /// Rate of such a link; of a tunnel's cables. Unit: bit/s. Default 10 Gbps: that of the links in a rack (our choice).
    pub link_rate: Rate,
    /// Propagation of such a link; of each of a tunnel's two cables. Unit: time. Default 150 ns: a hop in the
    /// rack, and 10 m more of cable (our choice).
    pub link_delay: Span,
    /// The switches through which packets are tunnelled from rack to rack (R2C2 §6). Default: none; cables lead
    /// from node to node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ethernet: Option<Ethernet>,
}

/// Switches that carry packets between racks in Ethernet frames: 38 bytes more on the line, and 84 at the least.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ethernet {
    /// What it takes a node to put a packet into a frame, and as long to take it out. Unit: time.
    /// Default 500 ns (our choice: the paper says that it adds latency, and not how much). At most 1 s.
    #[schemars(extend("x-maximum" = "1 s"))]
    pub bridging: Span,
    /// From a frame's first bit into a switch to its first bit out. Unit: time. Default 500 ns (our
    /// choice). At most 1 s.
    #[schemars(extend("x-maximum" = "1 s"))]
    pub latency: Span,
    /// Ports of a switch, two for each tunnel: there are as many switches as that takes. Default 64 (Shoal §5).
    /// From 2 to 65,535.
    #[schemars(range(min = 2, max = 65_535))]
    pub ports: u32,
    /// How many times more the ports of a switch could carry than its back plane: the rate of each tunnel is
    /// that of its cables divided by this. Default 1. From 1 to 1,000.
    #[schemars(range(min = 1, max = 1_000))]
    pub oversubscription: u32,
}

impl Default for Racks {
    fn default() -> Self {
        Self {
            racks: 2,
            dimensions: vec![8, 8, 8],
            rate: Rate::from_gbps(10),
            delay: Span::from_ns(100),
            links: 128,
            link_rate: Rate::from_gbps(10),
            link_delay: Span::from_ns(150),
            ethernet: None,
        }
    }
}

impl Default for Ethernet {
    fn default() -> Self {
        let latency = Span::from_ns(500);
        Self { bridging: Span::from_ns(500), latency, ports: 64, oversubscription: 1 }
    }
}

/// How a link leads from one rack to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Joint {
    /// The end that was named first.
    pub port: PortId,
    /// The tunnel that it is; none if it is a cable.
    pub tunnel: Option<Tunnel>,
}

/// A link that leads through a switch in frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tunnel {
    /// The switch, counted from 0.
    pub switch: u32,
    /// Rate of its two cables. Unit: bit/s.
    pub cables: Rate,
}

impl Joint {
    /// How many cables it takes.
    #[must_use]
    pub fn cables(&self) -> u32 {
        if self.tunnel.is_some() { 2 } else { 1 }
    }
}

/// What a packet of this size takes of the line in a frame.
#[must_use]
pub fn framed(size: Bytes) -> Bytes {
    (size + FRAME_OVERHEAD).max(FRAME_MIN)
}

impl Racks {
    /// Hosts of a rack; none if a dimension is too small or they are too many.
    fn hosts_each(&self) -> Option<u64> {
        let lengths = self.dimensions.iter().map(|&length| u64::from(length));
        let hosts = lengths.clone().try_fold(1u64, u64::checked_mul)?;
        (!self.dimensions.is_empty() && lengths.min() > Some(1)).then_some(hosts)
    }

    /// Hosts of all racks together, saturating.
    #[must_use]
    pub fn hosts(&self) -> u64 {
        let lengths = self.dimensions.iter().map(|&length| u64::from(length));
        lengths.fold(self.racks.into(), u64::saturating_mul)
    }

    /// Links between all racks together, saturating.
    pub(super) fn joints(&self) -> u64 {
        let racks = u64::from(self.racks);
        (racks * racks.saturating_sub(1) / 2).saturating_mul(self.links.into())
    }

    /// The topology.
    ///
    /// # Errors
    /// Every problem: too few or too many racks, hosts or links, or a key beyond its range; and as
    /// [`Builder::build`].
    pub fn build(&self) -> Result<Topology, Vec<Problem>> {
        let problems = self.check();
        let Some(each) = self.hosts_each().filter(|_| problems.is_empty()) else {
            return Err(problems);
        };
        let each = each as u32;
        let mut build = Builder::new(self.racks * each);
        let inner = Link { rate: self.rate, delay: self.delay };
        for rack in 0..self.racks {
            wire_torus(&mut build, &self.dimensions, rack * each, inner);
        }
        let mut count = 0;
        for (a, b) in (0..self.racks).flat_map(|a| (a + 1..self.racks).map(move |b| (a, b))) {
            for link in 0..self.links {
                let host = self.place(a, b, link, each);
                let [from, to] = [a, b].map(|rack| Vertex::new(rack * each + host));
                let (link, tunnel) = self.joint(count);
                build.join(from, to, link, tunnel);
                count += 1;
            }
        }
        build.build()
    }

    /// The place in both racks of a link between them. Links of a rack, to all others, lie evenly over its hosts:
    /// of two racks the sum tells apart with whom else each is joined.
    fn place(&self, a: u32, b: u32, link: u32, each: u32) -> u32 {
        let (links, turns) = match self.racks {
            2 => (u64::from(self.links), 0),
            racks => (u64::from(self.links) * u64::from(racks), u64::from((a + b) % racks)),
        };
        let peers = links / u64::from(self.links);
        let index = u64::from(link) * peers + turns;
        (index * u64::from(each) / links) as u32
    }

    /// What the link with this number is like, among all between racks.
    fn joint(&self, number: u32) -> (Link, Option<Tunnel>) {
        let Some(ethernet) = &self.ethernet else {
            return (Link { rate: self.link_rate, delay: self.link_delay }, None);
        };
        let rate = self.link_rate.as_bps() / u64::from(ethernet.oversubscription);
        let delay = (self.link_delay + ethernet.bridging) * 2 + ethernet.latency;
        let switch = number / (ethernet.ports / 2);
        let tunnel = Tunnel { switch, cables: self.link_rate };
        (Link { rate: Rate::from_bps(rate), delay }, Some(tunnel))
    }

    fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |bad: bool, key: &str, message: String| {
            if bad {
                problems.push(Problem::new(key, message));
            }
        };
        let each = self.hosts_each();
        refuse(self.racks < 2, "racks", format!("{}; expected 2 or more", self.racks));
        refuse(self.links == 0, "links", "0; expected 1 or more".into());
        let message = format!(
            "{:?}; expected one or more numbers, each 2 or more, and at most {HOSTS_MAX} hosts in {} racks",
            self.dimensions, self.racks
        );
        refuse(each.is_none() || self.hosts() > HOSTS_MAX, "dimensions", message);
        let (joints, racks) = (self.joints(), self.racks);
        let message =
            format!("{joints} between {racks} racks; expected at most {LINKS_MAX} together");
        refuse(joints > LINKS_MAX, "links", message);
        let delay = self.link_delay;
        refuse(delay > DELAY_MAX, "link_delay", format!("{delay}; expected at most {DELAY_MAX}"));
        crate::ranges::check(self, problems)
    }
}
