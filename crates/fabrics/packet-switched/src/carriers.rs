//! How each transport meets the network: what it asks of switches, and what it cannot do without.

use ::rack::{Fabric, Problem};
use kernel::Bytes;
use packets::config::{FlowControl, MTU_MAX, Marking, Pfc, Red, Scheduling, Step};
use packets::{Routing, surroundings};
use transports::raw::Losses;
use transports::tables::{Bank, Table};

use crate::asks::Asks;
use crate::config::Plan;
use crate::switch::{Switch, Trimming};
use crate::transport::{Fluid, framing};

/// A transport's table, as this crate uses it.
pub(crate) trait Carrier: Table {
    /// What it asks of the network where the scenario does not say.
    fn asks(&self) -> Asks {
        Asks::drop_tail(self.mtu())
    }

    /// What keeps these switches, all keys filled in, from carrying it. Keys are the fabric's.
    fn check_switch(&self, switch: &Switch) -> Vec<Problem> {
        let _ = switch;
        Vec::new()
    }

    /// What makes it useless on this network, whose switches could carry it. Keys are the fabric's.
    fn check_network(&self, plan: &packets::Plan) -> Option<Problem> {
        let _ = plan;
        None
    }
}

/// What has a network of its own.
pub(crate) trait Networked {
    /// The network with this transport at its hosts.
    type Network: Fabric;

    /// Builds it for flows of such sizes; none: nobody knows. Table and network have been checked.
    fn network(&self, plan: &Plan, seed: u64, sizes: &[Bytes]) -> Self::Network;
}

impl<T: Bank> Networked for T {
    type Network = packets::Network<T::Endpoints>;

    fn network(&self, plan: &Plan, seed: u64, sizes: &[Bytes]) -> Self::Network {
        let plan = plan.network.clone();
        let transport = self.endpoints(&surroundings(&plan, seed), sizes);
        packets::Network::new(plan, transport, seed).expect("the network's mtu is the transport's")
    }
}

impl Networked for Fluid {
    type Network = packets::fluid::Oracle;

    fn network(&self, plan: &Plan, _: u64, _: &[Bytes]) -> Self::Network {
        packets::fluid::Oracle::new(plan.network.clone(), framing(self.mtu, self.header))
    }
}

/// Packets of the queue beyond which DCTCP's packets are marked (our choice, for Shoal does not say:
/// a third of its queue of 100; DCTCP §3.4 asks for more than a seventh of the bandwidth-delay product,
/// which is 3 packets here, and its hosts sent bursts of 30 to 40, §3.5).
const DCTCP_MARK_PACKETS: u64 = 30;

impl Carrier for transports::newreno::Config {
    fn check_switch(&self, switch: &Switch) -> Vec<Problem> {
        marks_wanted(self.ecn, "transport.ecn", switch)
    }
}

impl Carrier for transports::cubic::Config {
    fn check_switch(&self, switch: &Switch) -> Vec<Problem> {
        marks_wanted(self.ecn, "transport.ecn", switch)
    }
}

impl Carrier for transports::dctcp::Config {
    fn asks(&self) -> Asks {
        let step = Step { threshold: self.mtu() * DCTCP_MARK_PACKETS };
        Asks { marking: Marking::Step(step), ..Asks::drop_tail(self.mtu()) }
    }

    fn check_switch(&self, switch: &Switch) -> Vec<Problem> {
        marks_needed("dctcp", "step", switch).into_iter().collect()
    }
}

impl Carrier for transports::swift::Config {}

/// Packets that a port holds for NDP, and as many bytes for headers (Shoal §7.3; NDP §3.2).
const NDP_PORT_PACKETS: u64 = 12;

impl Carrier for transports::ndp::Config {
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

    fn check_switch(&self, switch: &Switch) -> Vec<Problem> {
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
}

impl Carrier for transports::dcqcn::Config {
    fn asks(&self) -> Asks {
        Asks {
            marking: Marking::Red(Red::default()),
            // Headroom for the one priority in use, not for seven.
            flow_control: FlowControl::Pfc(Pfc {
                priorities: vec![self.priority],
                ..Pfc::default()
            }),
            ..Asks::drop_tail(self.mtu)
        }
    }

    fn check_switch(&self, switch: &Switch) -> Vec<Problem> {
        let mut problems: Vec<_> = marks_needed("dcqcn", "red", switch).into_iter().collect();
        match &switch.flow_control {
            Some(FlowControl::Pfc(pfc)) if !pfc.priorities.contains(&self.priority) => {
                let message = format!(
                    "{:?} leave out transport.priority, {}; dcqcn needs it never to be dropped",
                    pfc.priorities, self.priority
                );
                problems.push(Problem::new("switch.flow_control.priorities", message));
            }
            _ if holds_back(switch) => {}
            _ => {
                let message = "none, but dcqcn is made for networks that drop nothing; remove it, or \
                               set kind = \"pfc\"";
                problems.push(Problem::new("switch.flow_control", message));
            }
        }
        problems
    }

    fn check_network(&self, plan: &packets::Plan) -> Option<Problem> {
        let (bound, queues) = (plan.marking_bound()?, &plan.config.queues);
        let (key, threshold) = match &queues.marking {
            Marking::None => return None,
            Marking::Step(step) => ("switch.marking.threshold", step.threshold),
            Marking::Red(red) => ("switch.marking.min", red.min),
        };
        let message = format!(
            "{threshold}, but switches may pause senders before they mark unless it is below {bound} \
             (DCQCN §4); lower it, raise switch.port_buffer, or leave out switch.flow_control.xoff"
        );
        (threshold >= bound).then(|| Problem::new(key, message))
    }
}

/// Packets that a port holds for Homa (our choice). Receivers keep a round trip's bytes granted to each of
/// up to seven senders (Homa §3.5), besides what comes unscheduled: at 50 Gbps and 5 us 220 KB, more than
/// the 100 packets that suit window-based senders, and what is dropped is asked for after milliseconds
/// alone. Switches whose memory ports share have room for it (Homa §3.7 takes losses to be rare).
const HOMA_PORT_PACKETS: u64 = 1000;

impl Carrier for transports::homa::Config {
    fn asks(&self) -> Asks {
        Asks {
            routing: Routing::RandomSpray,
            port_buffer: self.mtu * HOMA_PORT_PACKETS,
            ..Asks::drop_tail(self.mtu)
        }
    }

    fn check_switch(&self, switch: &Switch) -> Vec<Problem> {
        if switch.scheduling == Scheduling::Strict {
            return Vec::new();
        }
        let message = "deficit, but homa needs the most urgent packet to go first; set kind = \
                       \"strict\"";
        vec![Problem::new("switch.scheduling", message)]
    }
}

impl Carrier for transports::rds::Config {}

/// Where senders without control are paused (our choice: a dozen packets; PL2 does not say).
const RAW_XOFF: Bytes = Bytes::new(20_000);

impl Carrier for transports::raw::Config {
    fn asks(&self) -> Asks {
        let flow_control = match self.losses {
            Losses::Stay => FlowControl::Pfc(Pfc::fixed(RAW_XOFF)),
            Losses::Repeat | Losses::Forget => FlowControl::None,
        };
        Asks { flow_control, ..Asks::drop_tail(self.mtu) }
    }

    fn check_switch(&self, switch: &Switch) -> Vec<Problem> {
        if holds_back(switch) || self.losses != Losses::Stay {
            return Vec::new();
        }
        let message = "none, but raw sends a lost packet only once; set kind = \"pfc\", or \
                       transport.losses = \"repeat\" or \"forget\"";
        vec![Problem::new("switch.flow_control", message)]
    }
}

impl Carrier for transports::mixed::Config {
    fn check_switch(&self, switch: &Switch) -> Vec<Problem> {
        let mut problems = marks_wanted(self.stream.ecn, "transport.stream.ecn", switch);
        if !self.recovers() {
            problems.extend(self.datagrams.check_switch(switch));
        }
        problems
    }
}

impl Table for Fluid {
    fn name(&self) -> &'static str {
        "fluid"
    }

    fn check(&self) -> Vec<Problem> {
        check_packet(self.mtu, self.header)
    }

    fn mtu(&self) -> Bytes {
        self.mtu
    }
}

impl Carrier for Fluid {
    fn check_network(&self, plan: &packets::Plan) -> Option<Problem> {
        let message =
            "takes time in hosts, but fluid has neither packets nor messages; leave the table out";
        plan.config.host.takes_time().then(|| Problem::new("host", message))
    }
}

/// What is wrong with packets of this size.
fn check_packet(mtu: Bytes, header: Bytes) -> Vec<Problem> {
    if mtu <= header || mtu > MTU_MAX {
        let message =
            format!("{mtu}; expected more than the header's {header} and at most {MTU_MAX}");
        return vec![Problem::new("mtu", message)];
    }
    Vec::new()
}

/// Whether links hold senders back, so that queues need not drop.
fn holds_back(switch: &Switch) -> bool {
    !matches!(switch.flow_control, None | Some(FlowControl::None))
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

/// A transport that was told to react to marks.
fn marks_wanted(ecn: bool, key: &str, switch: &Switch) -> Vec<Problem> {
    if !ecn || marks(switch) {
        return Vec::new();
    }
    let message =
        "true, but no switch marks packets; set switch.marking.kind = \"step\" or \"red\"";
    vec![Problem::new(key, message)]
}
