//! The `[fabric]` table of a Clique and the checked plan that the model runs on.
//!
//! Defaults are the Clique of Aquila §2 and App. A: 48 pods of 12 TiNs, two hosts each. Where the paper leaves
//! a point open the key's documentation says "our choice", with the point's id in the README's table.

mod classes;
mod ip;
mod link;
mod switch;
#[cfg(test)]
mod tests;

use rack::Problem;
use rack::equipment::Bill;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::equipment::Equipment;
use crate::link::classes::{CLASSES, Class};
use crate::topology::placement::{HostPlace, Placement, places};
use crate::topology::{Fibres, LocalWiring, Shape, Topology};
use crate::turns::{TurnTable, Turns};

pub use classes::{ClassKeys, Classes};
pub use ip::{Ip, Order};
pub use link::Link;
pub use switch::{AtDeadLink, Switch};

/// A Clique.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How large it is. Default full: 48 pods of 12 TiNs (Aquila §2).
    pub profile: Profile,
    /// TiNs of a pod, if not as many as the profile has. From 1 to 16: an address has 4 bits for them (our
    /// choice, M011).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16))]
    pub tins_per_pod: Option<u16>,
    /// Pods, if not as many as the profile has. From 1 to 64, and not more than one above all global ports of
    /// a pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub pods: Option<u16>,
    /// Ports of a TiN towards its pod, if not as many as the profile has. At least one for each other TiN of a
    /// pod; with the global ports at most 46.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 46))]
    pub local_ports: Option<u8>,
    /// Ports of a TiN towards other pods, if not as many as the profile has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 46))]
    pub global_ports: Option<u8>,
    /// What to do with local ports that are over when all TiNs of a pod have as many links to each other.
    /// Default card-mate: 24 ports are two links to each, and four to the TiN on the same line card (our
    /// choice, U09; Aquila §3.2 does not say).
    pub local_wiring: LocalWiring,
    /// How long fibres are: "grid", or { metres = 30 }, from 1 to 100 m (Aquila §6). Default grid: racks in
    /// two rows, 0.8 m apart, and 10 m of slack at each end: 20 to 31 m (our choice, U11).
    pub fibres: Fibres,
    /// Hosts of a TiN that has any. They share its NIC of 100 Gbps. Default 2 (Aquila §2, §5.1). 1 or 2.
    #[schemars(range(min = 1, max = 2))]
    pub hosts_per_tin: u8,
    /// Hosts that are there; the fabric is complete all the same (Aquila §6). Default: as many as TiNs have
    /// places for. The measurements of §5.1 have 500. From 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2))]
    pub hosts: Option<u32>,
    /// Which TiNs have hosts, where not all do. Default even: every pod as many (our choice, U43).
    pub placement: Placement,
    /// Which turns cells may take inside a pod: "p1" to "p4", or { table = [[..], [..], [..], [..]] }, rows by
    /// the hop that arrives and columns by the one that follows, in the order odd-, odd+, even-, even+.
    /// Default p1 (our choice, U12: Aquila §3.2 says that they are similar to parity-sign).
    pub turns: Turns,
    /// Links, their buffers and credits.
    pub link: Link,
    /// The cell switch of a TiN, and how cells choose their way.
    pub switch: Switch,
    /// Traffic classes: how each is routed and served.
    pub classes: Classes,
    /// IP packets: their buffers and handshake.
    pub ip: Ip,
    /// Power and cost of a TiN.
    pub equipment: Equipment,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            tins_per_pod: None,
            pods: None,
            local_ports: None,
            global_ports: None,
            local_wiring: LocalWiring::default(),
            fibres: Fibres::default(),
            hosts_per_tin: 2,
            hosts: None,
            placement: Placement::default(),
            turns: Turns::default(),
            link: Link::default(),
            switch: Switch::default(),
            classes: Classes::default(),
            ip: Ip::default(),
            equipment: Equipment::default(),
        }
    }
}

/// How large a Clique is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// 48 pods of 12 TiNs, 24 local and 8 global ports each: 576 TiNs, 1,152 hosts (Aquila §2).
    #[default]
    Full,
    /// 24 pods of them, with twice the links between two (Aquila §5.1; their number derived).
    Half,
    /// 17 pods of 4 TiNs, six links between each two TiNs of a pod: 136 hosts, in the ratios of the full one
    /// (our choice).
    Mini,
    /// 9 pods of 2 TiNs, eight links between them: 36 hosts, without detours inside a pod (our choice).
    Tiny,
}

impl Profile {
    /// Its numbers.
    #[must_use]
    pub const fn shape(self) -> Shape {
        match self {
            Self::Full => Shape::FULL,
            Self::Half => Shape::HALF,
            Self::Mini => Shape::MINI,
            Self::Tiny => Shape::TINY,
        }
    }
}

/// A checked configuration with what follows from it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The configuration.
    pub config: Config,
    /// The links.
    pub topology: Topology,
    /// Where hosts are, by node.
    pub hosts: Vec<HostPlace>,
    /// Which turns cells may take inside a pod.
    pub turns: TurnTable,
    /// The traffic classes.
    pub classes: [Class; CLASSES as usize],
    /// What it is made of.
    pub bill: Bill,
}

impl Config {
    /// How many of everything there are, right or wrong.
    #[must_use]
    pub fn shape(&self) -> Shape {
        let profile = self.profile.shape();
        Shape {
            tins_per_pod: self.tins_per_pod.unwrap_or(profile.tins_per_pod),
            pods: self.pods.unwrap_or(profile.pods),
            local_ports: self.local_ports.unwrap_or(profile.local_ports),
            global_ports: self.global_ports.unwrap_or(profile.global_ports),
            local_wiring: self.local_wiring,
        }
    }

    /// Hosts that are there.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.hosts.unwrap_or(self.places())
    }

    /// Places for hosts.
    fn places(&self) -> u32 {
        let shape = self.shape();
        u32::from(shape.tins_per_pod) * u32::from(shape.pods) * u32::from(self.hosts_per_tin)
    }

    /// Checks the configuration and derives the plan.
    ///
    /// # Errors
    /// Every problem found, each with its key and a remedy.
    pub fn plan(&self) -> Result<Plan, Vec<Problem>> {
        let shape = self.shape();
        let mut problems = shape.check();
        let is_wired = problems.is_empty();
        self.check_hosts(&mut problems);
        if is_wired {
            let circle = self.turns.table().check(shape.tins_per_pod);
            problems.extend(circle.err().map(|problem| problem.below("turns")));
        }
        let below = |key: &'static str, found: Vec<Problem>| {
            found.into_iter().map(move |problem| problem.below(key))
        };
        problems.extend(below("link", self.link.check(self.longest_fibre(is_wired))));
        problems.extend(below("switch", self.switch.check()));
        problems.extend(below("classes", self.classes.check()));
        problems.extend(below("ip", self.ip.check()));
        problems.extend(below("equipment", self.equipment.check()));
        let topology = Topology::new(&shape, self.fibres);
        if let (Err(problem), true) = (&topology, is_wired) {
            problems.push(problem.clone());
        }
        match topology {
            Ok(topology) if problems.is_empty() => {
                let hosts = places(&shape, self.hosts_per_tin, self.nodes(), self.placement);
                Ok(Plan {
                    config: self.clone(),
                    topology,
                    hosts,
                    turns: self.turns.table(),
                    classes: self.classes.table(),
                    bill: self.equipment.bill(&shape, self.link.local_rate),
                })
            }
            _ => Err(problems),
        }
    }

    fn check_hosts(&self, problems: &mut Vec<Problem>) {
        let each = self.hosts_per_tin;
        if !(1..=2).contains(&each) {
            let message =
                format!("{each}; expected 1 or 2: a TiN has two PCIe ports (Aquila §3.6)");
            problems.push(Problem::new("hosts_per_tin", message));
            return;
        }
        let (hosts, places) = (self.nodes(), self.places());
        if hosts > places {
            let shape = self.shape();
            let tins = u32::from(shape.tins_per_pod) * u32::from(shape.pods);
            let message = format!(
                "{hosts}, but {tins} TiNs with {each} each have places for {places}; take fewer, or more pods"
            );
            problems.push(Problem::new("hosts", message));
        } else if hosts < 2 {
            let message =
                format!("{hosts}; expected 2 at least, so that there is someone to send to");
            problems.push(Problem::new("hosts", message));
        }
    }

    /// The longest fibre, if its key is right.
    fn longest_fibre(&self, is_wired: bool) -> kernel::Span {
        let shape = self.shape();
        match self.fibres {
            Fibres::Metres(metres) if metres > crate::topology::FIBRE_MAX => kernel::Span::ZERO,
            _ if !is_wired => kernel::Span::ZERO,
            fibres => {
                let to = |pod| fibres.length(shape.pods, 0, pod).delay();
                (1..shape.pods).map(to).max().unwrap_or_default()
            }
        }
    }
}
