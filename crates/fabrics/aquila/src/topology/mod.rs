//! Who is connected to whom: a dragonfly of pods.
//!
//! Models: Aquila §3.2, App. A, §6 (M007 to M010): the TiNs of a pod are all connected by copper, the pods by
//! fibre. Ports of a TiN: local ones first, then global ones, then the 18 of its own endpoints (M102).
//! **Our choice** where the paper leaves it open: which ports join whom (M008, M009) and how long the
//! fibres are (U11).

mod wiring;

#[cfg(test)]
mod tests;

use kernel::Span;
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::address::{PODS_MAX, TINS_MAX};

/// Ports of a TiN towards its own endpoints (§3.1).
pub const TERMINAL_PORTS: u8 = 18;
/// Most ports of a TiN towards others: with 18 more they fit 64 bits (our choice; the chip has 32).
pub const EXTERNAL_PORTS_MAX: u8 = 46;

/// What to do with local ports that are over when every TiN of a pod has as many links to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LocalWiring {
    /// They all join the two TiNs of a line card: 24 ports are 4 links to that one and 2 to each other (our
    /// choice, M008, U09: the only even use of all ports that follows the packaging).
    #[default]
    CardMate,
    /// Nothing: 24 ports are 2 links to each, and two that idle.
    Uniform,
    /// They join each TiN to the ones before and after it: a third link to those.
    Ring,
}

/// How many of everything a Clique has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// TiNs of a pod.
    pub tins_per_pod: u16,
    /// Pods.
    pub pods: u16,
    /// Ports of a TiN towards its pod.
    pub local_ports: u8,
    /// Ports of a TiN towards other pods.
    pub global_ports: u8,
    /// What to do with local ports that are over.
    pub local_wiring: LocalWiring,
}

impl Shape {
    /// The largest that was built: 576 TiNs (§2, App. A).
    pub const FULL: Self = Self {
        tins_per_pod: 12,
        pods: 48,
        local_ports: 24,
        global_ports: 8,
        local_wiring: LocalWiring::CardMate,
    };
    /// Half as many pods, with twice the links between two (§5.1; their number derived, M010).
    pub const HALF: Self = Self { pods: 24, ..Self::FULL };
    /// 68 TiNs in the ratios of the full one (our choice).
    pub const MINI: Self = Self { tins_per_pod: 4, pods: 17, local_ports: 18, ..Self::FULL };
    /// 18 TiNs in the ratios of the full one, without detours in a pod (our choice).
    pub const TINY: Self = Self { tins_per_pod: 2, pods: 9, local_ports: 8, ..Self::FULL };

    /// TiNs of all pods.
    #[must_use]
    pub const fn tins(&self) -> u16 {
        self.tins_per_pod * self.pods
    }

    /// Ports of a TiN towards others, which come first.
    #[must_use]
    pub const fn external_ports(&self) -> u8 {
        self.local_ports + self.global_ports
    }

    /// All ports of a TiN.
    #[must_use]
    pub const fn ports(&self) -> u8 {
        self.external_ports() + TERMINAL_PORTS
    }

    /// The pod of a TiN and its place there.
    #[must_use]
    pub const fn split(&self, tin: u16) -> (u16, u16) {
        (tin / self.tins_per_pod, tin % self.tins_per_pod)
    }

    /// The TiN at this place of a pod.
    #[must_use]
    pub const fn tin(&self, pod: u16, place: u16) -> u16 {
        pod * self.tins_per_pod + place
    }

    /// What a port leads to, wired or not.
    #[must_use]
    pub const fn kind(&self, port: u8) -> PortKind {
        if port < self.local_ports {
            PortKind::Local
        } else if port < self.external_ports() {
            PortKind::Global
        } else {
            PortKind::Terminal
        }
    }

    /// Links between each two pods (M009).
    #[must_use]
    pub const fn links_per_pair(&self) -> u16 {
        if self.pods < 2 {
            return 0;
        }
        self.tins_per_pod * self.global_ports as u16 / (self.pods - 1)
    }

    /// Every number that is out of range or does not fit another.
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |key: &str, message: String| problems.push(Problem::new(key, message));
        if !(1..=TINS_MAX).contains(&self.tins_per_pod) {
            let found = self.tins_per_pod;
            refuse(
                "tins_per_pod",
                format!("{found}; expected 1 to {TINS_MAX}, a TiN has 4 bits of an address"),
            );
        }
        if !(1..=PODS_MAX).contains(&self.pods) {
            let found = self.pods;
            refuse(
                "pods",
                format!("{found}; expected 1 to {PODS_MAX}, a pod has 6 bits of an address"),
            );
        }
        let external = u16::from(self.local_ports) + u16::from(self.global_ports);
        if external > u16::from(EXTERNAL_PORTS_MAX) {
            let message = format!(
                "{} with {} global ports are {external}; expected {EXTERNAL_PORTS_MAX} at the most, and {TERMINAL_PORTS} \
                 more lead to the TiN's own endpoints",
                self.local_ports, self.global_ports
            );
            refuse("local_ports", message);
        }
        if !problems.is_empty() {
            return problems;
        }
        let peers = self.tins_per_pod - 1;
        if u16::from(self.local_ports) < peers {
            let message = format!(
                "{} cannot reach the {peers} other TiNs of a pod; expected at least {peers}, or fewer tins_per_pod",
                self.local_ports
            );
            problems.push(Problem::new("local_ports", message));
        }
        let (ports, others) = (self.tins_per_pod * u16::from(self.global_ports), self.pods - 1);
        if ports < others {
            let message = format!(
                "a pod of {} TiNs with {} global ports each cannot reach {others} other pods: {ports} ports; \
                 expected {} pods at the most, or more global_ports",
                self.tins_per_pod,
                self.global_ports,
                ports + 1
            );
            problems.push(Problem::new("pods", message));
        }
        problems
    }
}

/// What a port leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum PortKind {
    /// Another TiN of the pod.
    Local,
    /// A TiN of another pod.
    Global,
    /// An endpoint of the TiN itself.
    Terminal,
}

/// A port of a TiN.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Far {
    /// The TiN, among all.
    pub tin: u16,
    /// Its port.
    pub port: u8,
}

/// A link: two ports, the lower TiN first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The end at the TiN of the lower number.
    pub low: Far,
    /// The other end.
    pub high: Far,
    /// Whether it joins two pods.
    pub is_global: bool,
}

/// A length of copper or fibre. Unit: cm.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Length(u32);

impl Length {
    /// A length of centimetres.
    #[must_use]
    pub const fn from_cm(cm: u32) -> Self {
        Self(cm)
    }

    /// In centimetres.
    #[must_use]
    pub const fn as_cm(self) -> u32 {
        self.0
    }

    /// How long a signal takes, at 5 ns a metre.
    #[must_use]
    pub const fn delay(self) -> Span {
        Span::from_ps(self.0 as u64 * PS_PER_CM)
    }
}

/// Two thirds of the speed of light (our choice, C.1): 5 ns a metre.
const PS_PER_CM: u64 = 50;
/// Longest fibre (§3.2, §6). Unit: m.
pub const FIBRE_MAX: u32 = 100;
/// Copper between two TiNs of a pod (our choice: with it, an idle way over one fibre of 100 m takes the
/// 685 ns of A42).
pub const LOCAL_LENGTH: Length = Length::from_cm(100);

/// How long fibres are (U11).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fibres {
    /// As far as the racks are apart: two rows, 0.8 m from rack to rack, 2.4 m from row to row, and 10 m of
    /// slack at each end.
    #[default]
    Grid,
    /// All of one length. Unit: m. From 1 to 100 (§6).
    Metres(u32),
}

impl Fibres {
    /// The fibre between two pods.
    #[must_use]
    pub fn length(&self, pods: u16, from: u16, to: u16) -> Length {
        match *self {
            Self::Metres(metres) => Length::from_cm(metres * 100),
            Self::Grid => packaging::fibre(pods, from, to),
        }
    }
}

pub mod packaging;
pub mod placement;

/// A Clique's links.
#[derive(Clone, Debug)]
pub struct Topology {
    shape: Shape,
    links: Vec<Link>,
    /// By TiN and external port: the link there, or [`NO_LINK`].
    at: Vec<u32>,
    /// The same: the other end.
    far: Vec<Option<Far>>,
    /// By link: the time from end to end.
    delays: Vec<Span>,
}

/// In `Topology::at`: nothing is plugged in.
const NO_LINK: u32 = u32::MAX;

impl Topology {
    /// Wires a Clique.
    ///
    /// # Errors
    /// The first number that is out of range or does not fit the others.
    pub fn new(shape: &Shape, fibres: Fibres) -> Result<Self, Problem> {
        if let Some(problem) = shape.check().into_iter().next() {
            return Err(problem);
        }
        if let Fibres::Metres(metres) = fibres
            && !(1..=FIBRE_MAX).contains(&metres)
        {
            let message = format!("{metres} m; expected 1 to {FIBRE_MAX} m (Aquila §6)");
            return Err(Problem::new("fibres", message));
        }
        let mut links = wiring::local(shape);
        links.extend(wiring::global(shape));
        let ports = usize::from(shape.external_ports());
        let mut at = vec![NO_LINK; usize::from(shape.tins()) * ports];
        let mut far = vec![None; at.len()];
        let mut delays = Vec::with_capacity(links.len());
        for (index, link) in links.iter().enumerate() {
            for (end, other) in [(link.low, link.high), (link.high, link.low)] {
                let place = usize::from(end.tin) * ports + usize::from(end.port);
                assert_eq!(at[place], NO_LINK, "two links at {end:?}");
                at[place] = index as u32;
                far[place] = Some(other);
            }
            let (from, to) = (shape.split(link.low.tin).0, shape.split(link.high.tin).0);
            let length =
                if link.is_global { fibres.length(shape.pods, from, to) } else { LOCAL_LENGTH };
            delays.push(length.delay());
        }
        Ok(Self { shape: *shape, links, at, far, delays })
    }

    /// How many of everything there are.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// All links: those inside pods first, by pod and place, then those between pods, by pods.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The link at a port; `None`: a terminal port, or nothing is plugged in.
    #[must_use]
    pub fn link(&self, tin: u16, port: u8) -> Option<u32> {
        let place = self.place(tin, port)?;
        (self.at[place] != NO_LINK).then_some(self.at[place])
    }

    /// The other end of the link at a port; `None` as in [`Topology::link`].
    #[must_use]
    pub fn far(&self, tin: u16, port: u8) -> Option<Far> {
        self.far[self.place(tin, port)?]
    }

    /// What a port leads to.
    #[must_use]
    pub fn kind(&self, port: u8) -> PortKind {
        self.shape.kind(port)
    }

    /// How long a signal takes on the wire at a port: copper or fibre alone, without error correction,
    /// serialisation or switch. Zero at terminal ports and where nothing is plugged in.
    #[must_use]
    pub fn delay(&self, tin: u16, port: u8) -> Span {
        self.link(tin, port).map_or(Span::ZERO, |link| self.delays[link as usize])
    }

    /// The directed link out of a port: twice the link's index, and one more from its higher end; `None` as
    /// in [`Topology::link`].
    #[must_use]
    pub fn channel(&self, tin: u16, port: u8) -> Option<u32> {
        let link = self.link(tin, port)?;
        let is_high = self.links[link as usize].high == Far { tin, port };
        Some(2 * link + u32::from(is_high))
    }

    fn place(&self, tin: u16, port: u8) -> Option<usize> {
        let ports = self.shape.external_ports();
        (port < ports).then(|| usize::from(tin) * usize::from(ports) + usize::from(port))
    }
}
