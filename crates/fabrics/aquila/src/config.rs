//! The `[fabric]` table of a Clique and the checked plan that the model runs on.
//!
//! Defaults are the Clique of Aquila §2 and App. A: 48 pods of 12 TiNs, two hosts each. Where the paper leaves
//! a point open the key's documentation says "our choice", with the point's id in the README's table.

#[cfg(test)]
mod choices;
mod classes;
mod control;
mod ip;
mod link;
mod outside;
mod rma;
mod switch;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use kernel::{Bytes, Rate, Span};
use packets::config::{Failures, Host};
use rack::equipment::Bill;
use rack::{Estimate, Fault, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::address::Endpoint;
use crate::equipment::Equipment;
use crate::link::classes::{CLASSES, Class};
use crate::tables::journal::Journal;
use crate::timesync;
use crate::topology::placement::{HostPlace, Placement, places};
use crate::topology::{Fibres, LocalWiring, Shape, Topology};
use crate::trace;
use crate::transport::Transport;
use crate::turns::{TurnTable, Turns};

pub use classes::{ClassKeys, Classes};
pub use control::{Control, Maintenance, Sdn, Work};
pub use ip::{Depth, Ip, Order, Sharing};
pub use link::Link;
pub use outside::Outside;
pub use rma::{Pcie, Power, Rma, SEGMENTS_MAX, Software};
pub use switch::{AtDeadLink, CROSSBAR_RATE, Switch, WithinClass};

/// Why nothing may be lost on purpose.
pub(crate) const SENDS_ONCE: &str = "the transport sends each packet only once; set transport.losses (of mixed: \
     transport.datagrams.losses) to \"repeat\" or \"forget\", or take another transport";

/// A Clique. Where the paper leaves something open the key's default is our choice, with its number in the README's table;
/// `rackloom reproduce aquila headline` and `fig7 --full` show headline figures with those that matter to them (U02 to U04,
/// U06, U08, U11, U15, U18, U22, U24 to U27, U29, U33, U34, U43) another way.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How large it is. Default: the smallest that has places for `nodes`; full, where that is not given either: 48
    /// pods of 12 TiNs (Aquila §2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
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
    /// Hosts that are there; the fabric is complete all the same (Aquila §6). Default 0: as many as TiNs have places
    /// for. The measurements of §5.1 have 500.
    pub nodes: u32,
    /// Rate of a node that load 1.0 refers to. Unit: bit/s. Default 0 bps: what a host has of the NIC's rate when all
    /// send, 50 Gbps where two share one (Aquila §5.1).
    pub load_rate: Rate,
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
    /// What carries flows: "ip": packets, by the hosts' transport; "1rma-write": the source writes into the destination's
    /// memory; "1rma-read": the destination reads out of the source's (Aquila §3.4). Default ip.
    pub carrier: Carrier,
    /// IP packets: their buffers and handshake.
    pub ip: Ip,
    /// Tracing of packets, which changes no result.
    pub trace: trace::Settings,
    /// One clock for all TiNs, and whether a run measures it. No result depends on it.
    pub timesync: timesync::Settings,
    /// Remote memory: windows, deadlines, the hosts' bus and their software.
    pub rma: Rma,
    /// What is outside of the Clique, and the TiNs that are attached to it; nothing by default.
    pub outside: Outside,
    /// What packets and messages take inside of hosts, where packets of IP carry flows (M925, U38).
    pub host: Host,
    /// What the hosts speak. Default swift, with packets of 4160 B and connections that stand, as those of Pony
    /// Express do (Aquila §5.1).
    pub transport: Transport,
    /// Who fills the routing tables: "ideal": a function, at once; "sdn": Aquila's controller, register by register.
    /// Default ideal.
    pub control: Control,
    /// The controller's times, and what operators do; for `control = "sdn"`.
    pub sdn: Sdn,
    /// From a failure or repair until tables are in place that lead round it, with `control = "ideal"`; adaptive cells
    /// avoid a dead link within a queue's time before that. Unit: time. Default 1 ms (our choice, as other racks have;
    /// Aquila §3.2 leaves repair to its controller). With `control = "sdn"` only `failures.oracle` waits for it.
    pub convergence: Span,
    /// How ends of flows find out that the other has died.
    pub failures: Failures,
    /// Power and cost of a TiN.
    pub equipment: Equipment,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            profile: None,
            tins_per_pod: None,
            pods: None,
            local_ports: None,
            global_ports: None,
            local_wiring: LocalWiring::default(),
            fibres: Fibres::default(),
            hosts_per_tin: 2,
            nodes: 0,
            load_rate: Rate::default(),
            placement: Placement::default(),
            turns: Turns::default(),
            link: Link::default(),
            switch: Switch::default(),
            classes: Classes::default(),
            carrier: Carrier::default(),
            ip: Ip::default(),
            trace: trace::Settings::default(),
            timesync: timesync::Settings::default(),
            rma: Rma::default(),
            outside: Outside::default(),
            host: Host::default(),
            transport: Transport::default(),
            control: Control::default(),
            sdn: Sdn::default(),
            convergence: Span::from_us(1_000),
            failures: Failures::default(),
            equipment: Equipment::default(),
        }
    }
}

/// What carries flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    /// Packets of IP (Aquila §3.3).
    #[default]
    Ip,
    /// The destination reads the source's memory (Aquila §3.4).
    #[serde(rename = "1rma-read")]
    RmaRead,
    /// The source writes the destination's memory (Aquila §3.4).
    #[serde(rename = "1rma-write")]
    RmaWrite,
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

impl Profile {
    /// All of them, with their names.
    const NAMES: [(Self, &str); 4] =
        [(Self::Full, "full"), (Self::Half, "half"), (Self::Mini, "mini"), (Self::Tiny, "tiny")];
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, name) =
            Self::NAMES.iter().find(|(profile, _)| profile == self).expect("all are there");
        f.pad(name)
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(_, known)| *known == name);
        found
            .map(|(profile, _)| *profile)
            .ok_or_else(|| format!("{name:?}; expected full, half, mini or tiny"))
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
    /// What fails in a run: links, TiNs and hosts, as the engine's graph names them.
    pub faults: Vec<Fault>,
    /// What operators do in a run, with `control = "sdn"`.
    pub works: Vec<(Maintenance, Work)>,
    /// What is written to tables in a run; `None`: tables follow `convergence` after what happens. Whoever runs the
    /// controller sets it: no plan has one by itself.
    pub journal: Option<Arc<Journal>>,
}

impl Plan {
    /// Nodes of a scenario: hosts of the Clique, and then those outside.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.config.nodes + self.config.outside.hosts
    }
}

impl Config {
    /// How many of everything there are, right or wrong.
    #[must_use]
    pub fn shape(&self) -> Shape {
        let profile = self.profile().shape();
        Shape {
            tins_per_pod: self.tins_per_pod.unwrap_or(profile.tins_per_pod),
            pods: self.pods.unwrap_or(profile.pods),
            local_ports: self.local_ports.unwrap_or(profile.local_ports),
            global_ports: self.global_ports.unwrap_or(profile.global_ports),
            local_wiring: self.local_wiring,
        }
    }

    /// The profile that is meant.
    fn profile(&self) -> Profile {
        let has_places = |profile: &Profile| {
            let places = u32::from(profile.shape().tins()) * u32::from(self.hosts_per_tin);
            self.nodes > 0 && self.nodes <= places
        };
        let smallest =
            || [Profile::Tiny, Profile::Mini, Profile::Half].into_iter().find(has_places);
        self.profile.or_else(smallest).unwrap_or_default()
    }

    /// Places for hosts.
    fn places(&self) -> u32 {
        let shape = self.shape();
        u32::from(shape.tins_per_pod) * u32::from(shape.pods) * u32::from(self.hosts_per_tin)
    }

    /// The same with nothing left open.
    fn resolved(&self) -> Self {
        let nodes = if self.nodes == 0 { self.places() } else { self.nodes };
        let load_rate = match self.load_rate.as_bps() {
            0 => Rate::from_bps(self.ip.port_rate.as_bps() / u64::from(self.hosts_per_tin.max(1))),
            _ => self.load_rate,
        };
        let host = self.host.resolve();
        let ip = self.ip.resolved();
        Self { profile: Some(self.profile()), nodes, load_rate, host, ip, ..self.clone() }
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
        problems.extend(below("transport", self.transport.table().check()));
        let (mtu, most) = (self.transport.table().mtu(), self.ip.mtu);
        if mtu > most {
            let message =
                format!("{mtu}; expected at most {most}, what crosses the fabric (ip.mtu)");
            let key = self.transport.table().mtu_key();
            problems.push(Problem::new(key, message).below("transport"));
        }
        problems.extend(below("link", self.link.check(self.longest_fibre(is_wired))));
        self.check_losses(&mut problems);
        self.check_terminals(&mut problems);
        problems.extend(below("switch", self.switch.check()));
        problems.extend(below("classes", self.classes.check()));
        problems.extend(below("ip", self.ip.check()));
        problems.extend(below("trace", self.trace.check()));
        problems.extend(below("timesync", self.timesync.check()));
        problems.extend(below("failures", self.failures.check()));
        problems.extend(below("rma", self.rma.check()));
        problems.extend(below("host", self.host.check()));
        if is_wired {
            problems.extend(below("outside", self.outside.check(shape.tins())));
        }
        self.check_carrier(&mut problems);
        problems.extend(below("equipment", self.equipment.check()));
        self.check_control(&mut problems);
        let topology = Topology::new(&shape, self.fibres);
        if let (Err(problem), true) = (&topology, is_wired) {
            problems.push(problem.clone());
        }
        match topology {
            Ok(topology) if problems.is_empty() => {
                let config = self.resolved();
                let works = config.sdn.works(&topology);
                let works = works.map_err(|all| below("sdn", all).collect::<Vec<_>>())?;
                let hosts = places(&shape, config.hosts_per_tin, config.nodes, config.placement);
                Ok(Plan {
                    config,
                    topology,
                    hosts,
                    turns: self.turns.table(),
                    classes: self.classes.table(),
                    bill: self.equipment.bill(&shape, self.link.local_rate),
                    faults: Vec::new(),
                    works,
                    journal: None,
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
        let (hosts, places) = (self.resolved().nodes, self.places());
        if hosts > places {
            let shape = self.shape();
            let tins = u32::from(shape.tins_per_pod) * u32::from(shape.pods);
            let message = format!(
                "{hosts}, but {tins} TiNs with {each} each have places for {places}; take fewer, or more pods"
            );
            problems.push(Problem::new("nodes", message));
        } else if hosts < 2 {
            let message =
                format!("{hosts}; expected 2 at least, so that there is someone to send to");
            problems.push(Problem::new("nodes", message));
        }
    }

    /// Refuses a NIC that is faster than the way from it into the switch.
    fn check_terminals(&self, problems: &mut Vec<Problem>) {
        let (_, terminals) = Endpoint::HOST_0.terminals().expect("a host's endpoint has some");
        let each = self.switch.injection_rate();
        let most = Rate::from_bps(each.as_bps().saturating_mul(terminals.into()));
        if self.ip.port_rate > most {
            let message = format!(
                "{}, but its {terminals} terminal ports let {most} into the switch: {each} each (switch.terminal_rate, or \
                 switch.speedup times {CROSSBAR_RATE} if that is less); expected at most that, or raise these",
                self.ip.port_rate
            );
            problems.push(Problem::new("port_rate", message).below("ip"));
        }
    }

    /// Refuses links that lose cells for a transport that sends everything once: its flows would not end.
    fn check_losses(&self, problems: &mut Vec<Problem>) {
        if self.transport.table().recovers() {
            return;
        }
        let Link { local_bit_error_rate: local, global_bit_error_rate: global, .. } = self.link;
        let rates = [("link.local_bit_error_rate", local), ("link.global_bit_error_rate", global)];
        let lossy = rates.into_iter().filter(|&(_, rate)| rate > 0.0);
        problems.extend(
            lossy.map(|(key, rate)| Problem::new(key, format!("{rate}, but {SENDS_ONCE}"))),
        );
    }

    /// Checks what is said of the controller.
    fn check_control(&self, problems: &mut Vec<Problem>) {
        let mut refuse = |key: &str, message: &str| problems.push(Problem::new(key, message));
        if self.control == Control::Ideal {
            if self.sdn != Sdn::default() {
                let message =
                    "is for control = \"sdn\", and control is \"ideal\"; leave the table out";
                refuse("sdn", message);
            }
            return;
        }
        if self.turns.table() != TurnTable::P1 {
            refuse("turns", "the controller of control = \"sdn\" has \"p1\"; leave the key out");
        }
        let found = self.sdn.check(&self.shape()).into_iter();
        problems.extend(found.map(|problem| problem.below("sdn")));
    }

    /// Refuses what says how packets are sent, where remote memory carries the flows.
    fn check_carrier(&self, problems: &mut Vec<Problem>) {
        if self.carrier == Carrier::Ip {
            return;
        }
        if self.outside.hosts > 0 {
            let message = format!(
                "{}, but the carrier is remote memory, which ends at the Clique's own hosts (Aquila §2); expected 0",
                self.outside.hosts
            );
            problems.push(Problem::new("hosts", message).below("outside"));
        }
        if self.host.takes_time() {
            let message = "takes time in hosts that send packets, but the carrier is remote memory, whose hosts have \
                           rma.pcie and rma.power; leave the table out";
            problems.push(Problem::new("host", message));
        }
        if self.transport != Transport::default() {
            let message = "says how packets are sent, but the carrier is remote memory, which has rma.software in its \
                           place; leave the table out";
            problems.push(Problem::new("transport", message));
        }
    }

    /// The longest fibre, if its key is right.
    fn longest_fibre(&self, is_wired: bool) -> Span {
        let shape = self.shape();
        match self.fibres {
            Fibres::Metres(metres) if metres > crate::topology::FIBRE_MAX => Span::ZERO,
            _ if !is_wired => Span::ZERO,
            fibres => {
                let to = |pod| fibres.length(shape.pods, 0, pod).delay();
                (1..shape.pods).map(to).max().unwrap_or_default()
            }
        }
    }
}

/// What a TiN takes: 64 ports with 32 channels each, queues and buffers (measured).
const TIN: u64 = 200_000;
/// What of a routing table's rows each pair of a TiN and a place or pod takes (measured).
const ROUTES: u64 = 600;
/// A link: two ports of the engine, and what waits at its ends.
const LINK: u64 = 1_200;
/// What a controller holds of a TiN while it boots the Clique: its registers, and rows of the base (measured: 0.70 MB a TiN of
/// the mini Clique, 0.92 MB of the full one).
const CONTROLLED: u64 = 1_000_000;
/// What is allocated whatever the size: the engine's calendar and histograms.
const FIXED: u64 = 1 << 20;

impl Config {
    /// What planning and running it will take, open flows and their packets apart. Builds nothing.
    /// Unit: bytes.
    #[must_use]
    pub fn memory(&self) -> Bytes {
        let shape = self.shape();
        let tins = u64::from(shape.tins_per_pod) * u64::from(shape.pods);
        let components = u64::from(shape.tins_per_pod) + u64::from(shape.pods);
        let links = tins * u64::from(shape.local_ports.saturating_add(shape.global_ports)) / 2;
        Estimate::new()
            .and(1, FIXED)
            .and(tins, TIN)
            .and(tins.saturating_mul(components), ROUTES)
            .and(links + u64::from(self.resolved().nodes), LINK)
            .and(u64::from(self.outside.hosts) + tins, LINK)
            .and(if self.control == Control::Sdn { tins } else { 0 }, CONTROLLED)
            .bytes()
    }

    /// What it takes on top of that where something fails. Unit: bytes.
    #[must_use]
    pub fn failures_memory(&self) -> Bytes {
        // A second set of tables, while the first is in use; and the engine's own.
        let shape = self.shape();
        let tins = u64::from(shape.tins_per_pod) * u64::from(shape.pods);
        let components = u64::from(shape.tins_per_pod) + u64::from(shape.pods);
        let nodes = u64::from(self.resolved().nodes) + u64::from(self.outside.hosts);
        Estimate::new()
            .and(tins.saturating_mul(components), ROUTES)
            .and(nodes.saturating_mul(tins + nodes), 2)
            .bytes()
    }
}
