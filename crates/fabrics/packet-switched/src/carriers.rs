//! How each transport meets the network: what it asks of switches, and what it cannot do without.

use ::rack::{Fabric, Problem};
use kernel::Bytes;
use packets::config::{FlowControl, Marking, Pfc, Step};
use packets::raw;
use packets::{Plan, Routing, Surroundings, surroundings};

use crate::asks::Asks;
use crate::switch::{Switch, Trimming};
use crate::transport::{Fluid, Raw, Recovery, framing};

/// A transport's table, as this crate uses it.
pub(crate) trait Carrier {
    /// The `kind` in scenario files.
    const NAME: &'static str;
    /// The network with this transport at its hosts.
    type Network: Fabric;

    /// Every mistake in the table.
    fn check(&self) -> Vec<Problem>;

    /// Largest packet, headers included.
    fn mtu(&self) -> Bytes;

    /// What it asks of the network where the scenario does not say.
    fn asks(&self) -> Asks {
        Asks::drop_tail(self.mtu())
    }

    /// What keeps these switches, all keys filled in, from carrying it. Keys are the fabric's.
    fn check_network(&self, switch: &Switch) -> Vec<Problem> {
        let _ = switch;
        Vec::new()
    }

    /// Whether every flow completes although packets are lost.
    fn recovers(&self) -> bool {
        true
    }

    /// Builds it. Table and network have been checked.
    fn network(&self, plan: Plan, seed: u64) -> Self::Network;
}

/// A packet network with the endpoints that `build` makes.
fn packet_network<T: packets::Transport>(
    plan: Plan,
    seed: u64,
    build: impl FnOnce(&Surroundings) -> T,
) -> packets::Network<T> {
    let transport = build(&surroundings(&plan, seed));
    packets::Network::new(plan, transport, seed).expect("the network's mtu is the transport's")
}

const CHECKED: &str = "the table was checked by the plan";

/// Packets of the queue beyond which DCTCP's packets are marked: NDP §6.1, whose simulator Shoal
/// §7.3 used; Shoal does not say.
const DCTCP_MARK_PACKETS: u64 = 30;

impl Carrier for transports::newreno::Config {
    const NAME: &'static str = "newreno";
    type Network = packets::Network<transports::newreno::NewReno>;

    fn check(&self) -> Vec<Problem> {
        self.check()
    }

    fn mtu(&self) -> Bytes {
        self.stream.mtu
    }

    fn check_network(&self, switch: &Switch) -> Vec<Problem> {
        marks_wanted(self.ecn, "transport.ecn", switch)
    }

    fn network(&self, plan: Plan, seed: u64) -> Self::Network {
        packet_network(plan, seed, |around| self.build(around).expect(CHECKED))
    }
}

impl Carrier for transports::cubic::Config {
    const NAME: &'static str = "cubic";
    type Network = packets::Network<transports::cubic::Cubic>;

    fn check(&self) -> Vec<Problem> {
        self.check()
    }

    fn mtu(&self) -> Bytes {
        self.stream.mtu
    }

    fn check_network(&self, switch: &Switch) -> Vec<Problem> {
        marks_wanted(self.ecn, "transport.ecn", switch)
    }

    fn network(&self, plan: Plan, seed: u64) -> Self::Network {
        packet_network(plan, seed, |around| self.build(around).expect(CHECKED))
    }
}

impl Carrier for transports::dctcp::Config {
    const NAME: &'static str = "dctcp";
    type Network = packets::Network<transports::dctcp::Dctcp>;

    fn check(&self) -> Vec<Problem> {
        self.check()
    }

    fn mtu(&self) -> Bytes {
        self.stream.mtu
    }

    fn asks(&self) -> Asks {
        let step = Step { threshold: self.mtu() * DCTCP_MARK_PACKETS };
        Asks { marking: Marking::Step(step), ..Asks::drop_tail(self.mtu()) }
    }

    fn check_network(&self, switch: &Switch) -> Vec<Problem> {
        marks_needed("dctcp", "step", switch).into_iter().collect()
    }

    fn network(&self, plan: Plan, seed: u64) -> Self::Network {
        packet_network(plan, seed, |around| self.build(around).expect(CHECKED))
    }
}

impl Carrier for transports::swift::Config {
    const NAME: &'static str = "swift";
    type Network = packets::Network<transports::swift::Swift>;

    fn check(&self) -> Vec<Problem> {
        self.check()
    }

    fn mtu(&self) -> Bytes {
        self.stream.mtu
    }

    fn network(&self, plan: Plan, seed: u64) -> Self::Network {
        packet_network(plan, seed, |around| self.build(around).expect(CHECKED))
    }
}

/// Packets that a port holds for NDP, and as many bytes for headers (Shoal §7.3; NDP §3.2).
const NDP_PORT_PACKETS: u64 = 12;

impl Carrier for transports::ndp::Config {
    const NAME: &'static str = "ndp";
    type Network = packets::Network<transports::ndp::Ndp>;

    fn check(&self) -> Vec<Problem> {
        self.check()
    }

    fn mtu(&self) -> Bytes {
        self.mtu
    }

    fn asks(&self) -> Asks {
        let buffer = self.mtu * NDP_PORT_PACKETS;
        let trimming = packets::config::Trimming {
            header: self.header,
            header_buffer: buffer,
            ..packets::config::Trimming::default()
        };
        Asks {
            routing: Routing::SourcePath,
            port_buffer: buffer,
            trimming: Trimming::Header(trimming),
            ..Asks::drop_tail(self.mtu)
        }
    }

    fn check_network(&self, switch: &Switch) -> Vec<Problem> {
        let message = match &switch.trimming {
            Some(Trimming::Header(trimming)) if trimming.header == self.header => {
                return Vec::new();
            }
            Some(Trimming::Header(trimming)) => {
                let (theirs, ours) = (trimming.header, self.header);
                let message = format!("{theirs}, but transport.header is {ours}; make them equal");
                return vec![Problem::new("switch.trimming.header", message)];
            }
            _ => {
                "none, but ndp learns of full queues by trimmed packets; remove it, or set kind = \
                  \"header\""
            }
        };
        vec![Problem::new("switch.trimming", message)]
    }

    fn network(&self, plan: Plan, seed: u64) -> Self::Network {
        packet_network(plan, seed, |around| transports::ndp::Ndp::new(self, around))
    }
}

impl Carrier for Raw {
    const NAME: &'static str = "raw";
    type Network = packets::Network<raw::Raw>;

    fn check(&self) -> Vec<Problem> {
        check_packet(self.mtu, self.header)
    }

    fn mtu(&self) -> Bytes {
        self.mtu
    }

    fn asks(&self) -> Asks {
        let flow_control = match self.recovery {
            Recovery::None => FlowControl::Pfc(Pfc::default()),
            Recovery::Repeat => FlowControl::None,
        };
        Asks { flow_control, ..Asks::drop_tail(self.mtu) }
    }

    fn recovers(&self) -> bool {
        self.recovery == Recovery::Repeat
    }

    fn check_network(&self, switch: &Switch) -> Vec<Problem> {
        let is_lossy = switch.flow_control.as_ref().is_none_or(|kind| *kind == FlowControl::None);
        if !is_lossy || self.recovery == Recovery::Repeat {
            return Vec::new();
        }
        let message = "none, but raw sends a lost packet only once; set kind = \"pfc\", or \
                       transport.recovery = \"repeat\"";
        vec![Problem::new("switch.flow_control", message)]
    }

    fn network(&self, plan: Plan, seed: u64) -> Self::Network {
        let recovery = match self.recovery {
            Recovery::None => raw::Recovery::None,
            Recovery::Repeat => raw::Recovery::Repeat { seed },
        };
        let framing = framing(self.mtu, self.header);
        packet_network(plan, seed, |around| raw::Raw::new(around.hosts, framing, recovery))
    }
}

impl Carrier for Fluid {
    const NAME: &'static str = "fluid";
    type Network = packets::fluid::Oracle;

    fn check(&self) -> Vec<Problem> {
        check_packet(self.mtu, self.header)
    }

    fn mtu(&self) -> Bytes {
        self.mtu
    }

    fn network(&self, plan: Plan, _: u64) -> Self::Network {
        packets::fluid::Oracle::new(plan, framing(self.mtu, self.header))
    }
}

/// Largest packet of the network (a jumbo frame with room for headers).
const MTU_MAX: Bytes = Bytes::new(9216);

/// What is wrong with packets of this size.
fn check_packet(mtu: Bytes, header: Bytes) -> Vec<Problem> {
    if mtu <= header || mtu > MTU_MAX {
        let message =
            format!("{mtu}; expected more than the header's {header} and at most {MTU_MAX}");
        return vec![Problem::new("mtu", message)];
    }
    Vec::new()
}

fn marks(switch: &Switch) -> bool {
    !matches!(switch.marking, None | Some(Marking::None))
}

/// A transport that does nothing without marks.
fn marks_needed(name: &str, kind: &str, switch: &Switch) -> Option<Problem> {
    let message =
        format!("none, but {name} slows down only for marks; remove it, or set kind = \"{kind}\"");
    (!marks(switch)).then(|| Problem::new("switch.marking", message))
}

/// A transport that was told to heed marks.
fn marks_wanted(ecn: bool, key: &str, switch: &Switch) -> Vec<Problem> {
    if !ecn || marks(switch) {
        return Vec::new();
    }
    let message =
        "true, but no switch marks packets; set switch.marking.kind = \"step\" or \"red\"";
    vec![Problem::new(key, message)]
}
